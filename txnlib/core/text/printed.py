"""Events of reading text: what it shows, what is unreadable, and what its tools say about themselves."""

from __future__ import annotations

import re
from enum import Enum, StrEnum
from typing import Final, NamedTuple

from txnlib.core.kafka.metadata_records import MetadataRecord
from txnlib.core.kafka.transaction_log import TransactionLogEntry
from txnlib.core.text.dump_lines import (
    DumpedBatch,
    DumpedFile,
    DumpedSnapshotEntry,
)
from txnlib.core.text.lines import UnreadableReason


class DumpTail(StrEnum):
    """How the dump of a file, or the text of a console, ends."""

    CLEAN = "CLEAN"
    #: After the first lines of a log, where the text ends, too. The tool prints no more for a file of 0 bytes; or the
    #: text was cut.
    EMPTY_OR_CUT = "EMPTY_OR_CUT"
    #: Inside a batch or record, as the tool says, or because the text itself is truncated.
    TORN = "TORN"
    #: In contents without a known end: what follows of the file is not read.
    UNMEASURED = "UNMEASURED"
    #: The tool gave up, or nothing believable follows.
    CORRUPT = "CORRUPT"


_SAMPLE_BYTES: Final = 160


def sample_of(text: bytes) -> str:
    """The beginning of an unreadable range, as a sample."""
    return text[:_SAMPLE_BYTES].decode(errors="replace").rstrip("\r\n")


class Unreadable(NamedTuple):
    """An unreadable range of the text file, in bytes."""

    position: int
    length: int
    reason: UnreadableReason
    sample: str

    @property
    def end(self) -> int:
        """The position after the range."""
        return self.position + self.length


# ---- Events of a dump


class TransactionLogText(NamedTuple):
    """A transactional id and its entry; None for a tombstone."""

    transactional_id: str
    entry: TransactionLogEntry | None


class DumpedRecord(NamedTuple):
    """A record of `__transaction_state` or `__cluster_metadata`. `position`: that of its batch in the file."""

    offset: int
    timestamp: int
    partition_leader_epoch: int
    position: int
    content: TransactionLogText | MetadataRecord


class FileStart(NamedTuple):
    position: int
    file: DumpedFile


class FileEnd(NamedTuple):
    """The end of a dumped file. `is_decoded`: all of its marker types and coordinator records were printed."""

    position: int
    tail: DumpTail
    is_decoded: bool


Dumped = FileStart | FileEnd | DumpedBatch | DumpedRecord | DumpedSnapshotEntry | Unreadable


# ---- Events of console text: only white space and messages of the tool, its shell or its loggers have none


class ConsoleRecord(NamedTuple):
    """A record and the range of its text, including the line end. `entry` is None for a tombstone."""

    position: int
    length: int
    transactional_id: str
    entry: TransactionLogEntry | None


class ConsoleEnd(NamedTuple):
    """The end of the text. CORRUPT: the consumer ended with an exception; TORN: the text ends inside a record."""

    position: int
    tail: DumpTail


Printed = ConsoleRecord | Unreadable | ConsoleEnd


# ---- Messages of the dump tool


class Remark(Enum):
    """A message of the tool about itself or about a file."""

    HARMLESS = "HARMLESS"
    #: The file ends inside a batch.
    TORN = "TORN"
    #: The tool gave up: whatever follows in the segment is missing from the text
    #: (docs/rules/formats.md#ends-of-a-dump).
    ENDED_EARLY = "ENDED_EARLY"


_TORN: Final = re.compile(rb"Found \d+ invalid bytes at the end of ")
_EXCEPTION: Final = re.compile(
    rb'Exception in thread "|Caused by: |at [\w$.<>/]+\(|\.\.\. \d+ more|Found record size '
    rb"|[a-z]\w*(\.\w+)+(\$\w+)?(Exception|Error)\b"
)
#: Output of a tool, to stdout or stderr, without anything that an audit needs
#: (docs/rules/formats.md#messages-of-the-tools).
_HARMLESS: Final = re.compile(
    rb"\s*$|(Log s|S)tarting offset: |Snapshot end offset: |KRaft bootstrap snapshot|\S+ is deprecated\. Please use "
    rb"|Non-consecutive offsets in |-?\d+ is followed by \d+|Mismatches in :|Index offset: |Index timestamp: "
    rb"|Found (timestamp mismatch|out of order timestamp) in :|The following indexed offsets are not found in the log"
    rb"|Indexed offset: |Ignoring unknown file |\S+ passed sanity check\.|\S+ is empty\.\s*$"
)
#: Three fields in a row as the tool prints them, or the end of a record's metadata.
_PIECE_OF_A_LINE: Final = re.compile(
    rb"((baseOffset|lastOffset|offset|count|baseSequence|lastSequence|sequence|producerId|producerEpoch|position|size"
    rb"|partitionLeaderEpoch|coordinatorEpoch|isTransactional|isControl|deleteHorizonMs|CreateTime|LogAppendTime|magic"
    rb"|compresscodec|crc|is[vV]alid|key[sS]ize|value[sS]ize|endTxnMarker): \S+\s*){3}| headerKeys: \["
)


def remark_of(line: bytes) -> Remark | None:
    """The message of the tool in a line; None for any other line."""
    if _HARMLESS.match(line):
        return Remark.HARMLESS
    if _TORN.match(line):
        return Remark.TORN
    return Remark.ENDED_EARLY if _EXCEPTION.match(line) else None


def is_piece_of_a_line(text: bytes) -> bool:
    """Whether a line contains a part of a batch or record line, as no prose does."""
    return _PIECE_OF_A_LINE.search(text) is not None


# ---- Messages of a console consumer, its shell and its loggers


#: Messages of a terminal, of options, of loggers (log4j 1 and 2, slf4j), of the JVM, and Kafka's last message.
_CHATTER: Final = re.compile(
    rb"(\^C)?Processed a total of \d+ messages\s*\Z"
    rb"|(The )?[Oo]ption (--)?\S+ (is|has been) deprecated|WARNING: \S+ is deprecated and will be removed "
    rb"|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) |log4j:WARN |SLF4J: "
    rb"|Picked up (_JAVA_OPTIONS|JAVA_TOOL_OPTIONS): |OpenJDK 64-Bit Server VM warning: |\tat [\w$.<>/]+\(|\t\.\.\. \d+"
    rb" more"
)
_CONSOLE_EXCEPTION: Final = re.compile(
    rb'(Caused by: |Exception in thread "[^"]*" )?[a-z]\w*(\.\w+)+(\$\w+)?(Exception|Error)\b'
)
#: The last message with `--timeout-ms`.
_TIMEOUT: Final = re.compile(
    rb"org\.apache\.kafka\.common\.errors\.TimeoutException\b|kafka\.consumer\.ConsumerTimeoutException"
)


def is_chatter(line: bytes) -> bool:
    """Whether a line begins like a message of a tool or logger. White space does not."""
    return _CHATTER.match(line) is not None or _CONSOLE_EXCEPTION.match(line) is not None


def ends_consumer(line: bytes) -> bool:
    """Whether a line is the exception that ended the consumer. The exception of `--timeout-ms` does not count.

    Kafka: `ConsoleConsumer.main`. A formatter that cannot read a record throws, up to 3.8 and from 4.1.
    """
    return _CONSOLE_EXCEPTION.match(line) is not None and _TIMEOUT.match(line) is None
