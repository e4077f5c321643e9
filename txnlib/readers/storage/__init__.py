"""Access to files on a disk, in an object store, or in HDFS."""

from __future__ import annotations

from txnlib.readers.storage.files import locate, list_files, open_buffer, open_stream, read_all, read_head, read_range
from txnlib.readers.storage.local_files import FolderEntry, FileShrunk
from txnlib.readers.storage.block_buffer import BlockBuffer, Buffer
from txnlib.readers.storage.object_stores import may_pass

__all__ = [
    "locate",
    "list_files",
    "open_buffer",
    "open_stream",
    "read_all",
    "read_head",
    "read_range",
    "FolderEntry",
    "FileShrunk",
    "BlockBuffer",
    "Buffer",
    "may_pass",
]
