"""Text of Kafka's command-line tools: `kafka-dump-log.sh` and `kafka-console-consumer.sh`."""

from __future__ import annotations

from txnlib.core.text.dump_reader import DumpReader
from txnlib.core.text.dump_events import FileStart, FileEnd, DumpedTransactionLogRecord, Dumped, Unreadable
from txnlib.core.text.dump_lines import DumpedFile, DumpedBatch, DumpedSnapshotEntry, read_file_line, read_batch_line
from txnlib.core.text.record_lines import read_record_line, read_marker
from txnlib.core.text.batch_chain import BatchChain, ChainedBatches
from txnlib.core.text.tool_messages import UnreadableReason, DumpTail
from txnlib.core.text.console_reader import read_console_text, find_console_record
from txnlib.core.text.console_events import ConsoleRecord, ConsoleEnd
from txnlib.core.text.long_line import LONGEST_LINE, LongLine

__all__ = [
    "DumpReader",
    "FileStart",
    "FileEnd",
    "DumpedTransactionLogRecord",
    "Dumped",
    "Unreadable",
    "DumpedFile",
    "DumpedBatch",
    "DumpedSnapshotEntry",
    "read_file_line",
    "read_batch_line",
    "read_record_line",
    "read_marker",
    "BatchChain",
    "ChainedBatches",
    "UnreadableReason",
    "DumpTail",
    "read_console_text",
    "find_console_record",
    "ConsoleRecord",
    "ConsoleEnd",
    "LONGEST_LINE",
    "LongLine",
]
