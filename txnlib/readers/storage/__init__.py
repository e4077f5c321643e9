"""Access to files on a disk, in an object store, or in HDFS.

`files` every place · `packed_text` text in them · `local_files` disks ·
`object_stores` stores and HDFS · `block_buffer` a file that can be sliced like bytes.
"""
