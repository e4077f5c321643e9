"""Readers that turn the files of a capture into Arrow batches."""

from __future__ import annotations

from txnlib.readers.capture import Capture, CaptureFile, FileKind, list_capture
from txnlib.readers.capture_notes import CaptureNotes, PartitionNotes
from txnlib.readers.file_splits import start_at_snapshots
from txnlib.readers.capture import Part
from txnlib.readers.file_parts import put_together
from txnlib.readers.file_splits import chunks_of, reach, parts_of
from txnlib.readers.file_parts import resume_position
from txnlib.readers.table_readers import may_hold, read_table
from txnlib.readers.arrow_schemas import TABLES

__all__ = [
    "Capture",
    "CaptureFile",
    "FileKind",
    "list_capture",
    "CaptureNotes",
    "PartitionNotes",
    "start_at_snapshots",
    "Part",
    "put_together",
    "chunks_of",
    "reach",
    "parts_of",
    "resume_position",
    "may_hold",
    "read_table",
    "TABLES",
]
