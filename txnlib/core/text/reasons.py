"""Why a range of a text could not be read."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class UnreadableReason(StrEnum):
    #: Text that no tool prints; nothing is missing around it.
    NOT_DUMP_TEXT = "NOT_DUMP_TEXT"
    #: What each line carries besides the tool's own text, and what was taken off; length 0.
    LINE_FORM = "LINE_FORM: this was taken off each line"
    #: A file that the text has printed before, and equal batches, records or producers of it; length 0.
    PRINTED_AGAIN = "PRINTED_AGAIN: the text prints this file more than once; what is equal counts once"
    #: A part of a line.
    BROKEN_LINE = "BROKEN_LINE"
    #: A line in a form that only tools before 2.8 print.
    OLD_TOOL = "OLD_TOOL: printed by a tool before Kafka 2.8"
    #: A line above the limit, or what is left of a console record above it. No part of it is read.
    LINE_TOO_LONG = "LINE_TOO_LONG: more than 16 MiB"
    #: The last line of the text, without its end.
    CUT_LINE = "CUT_LINE"
    #: A batch that the tool calls invalid, with its records.
    CRC_MISMATCH = "CRC_MISMATCH"
    #: A line that does not follow from the lines before it; with length 0, the position of missing lines.
    OUT_OF_CHAIN = "OUT_OF_CHAIN"
    #: The only record of a coordinator's batch has another time than the batch: one of the lines is wrong; length 0.
    TIMES_DIFFER = "TIMES_DIFFER: of a coordinator's batch and of its record"
    #: A coordinator record with a key of a version that Kafka skips, too.
    UNKNOWN_KEY_VERSION = "UNKNOWN_KEY_VERSION"
    #: A coordinator record with a value of a version that the tool does not know.
    UNKNOWN_VALUE_VERSION = "UNKNOWN_VALUE_VERSION"
    #: A coordinator record that the tool or this reader could not decode.
    UNDECODABLE_RECORD = "UNDECODABLE_RECORD"
    #: Lines of a console consumer near a piece of a record. They may be of an id with line feeds that imitates records.
    AMBIGUOUS_RECORD = "AMBIGUOUS_RECORD: near a piece of a record; print it again as JSON, by Kafka 3.9 or later"
    #: Contents whose end the printed sizes do not show. Any line behind may be a part of them, so none is read.
    SIZE_MISMATCH = "SIZE_MISMATCH: contents without a known end; print it again without --print-data-log"
    #: The same behind header keys, of which no size is printed: a line continues the dump before them, or another
    #: partition follows.
    HEADER_KEYS = "HEADER_KEYS: no size shows where they end, so that nothing behind them is read"
    #: A `Dumping` line behind such contents; length 0.
    FILE_NOT_READ = "FILE_NOT_READ: it may be a part of contents; print it into a text of its own"
    #: More zero bytes than a text can have. What follows is not read.
    ZERO_BYTES = "ZERO_BYTES: more than 1 MiB of them; nothing behind is read"
    #: Compressed text that is truncated or damaged. An unknown number of bytes after it is lost.
    CANNOT_UNPACK = "CANNOT_UNPACK: cut or damaged from this position in the unpacked text on"
    #: The text is shorter than when the capture was listed; length 0, because the lost content is unknown.
    FILE_SHRANK = "FILE_SHRANK: the text ends here, before the size that it had"
    #: A whole file whose path does not contain its partition.
    TOPIC_PARTITION_UNKNOWN = (
        "TOPIC_PARTITION_UNKNOWN: nothing in it names its partition: call the file <topic>-<partition>.txt"
    )


#: Reasons that, at the end of a file, do not mean that the file is incomplete.
HARMLESS_AT_THE_END: Final = frozenset(
    {
        UnreadableReason.NOT_DUMP_TEXT,
        UnreadableReason.CUT_LINE,
        UnreadableReason.TIMES_DIFFER,
        UnreadableReason.UNKNOWN_KEY_VERSION,
        UnreadableReason.UNKNOWN_VALUE_VERSION,
        UnreadableReason.UNDECODABLE_RECORD,
    }
)
