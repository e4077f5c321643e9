"""Access to files on a disk, in an object store, or in HDFS.

`files` every place · `local_files` disks · `object_stores` stores and HDFS · `block_buffer` a file that can be sliced
like bytes.
"""
