"""Text of Kafka's tools as events: what a text is, and the place of each event."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.text.console import ECHO_LABEL, read_console_text
from txnlib.core.text.dump_lines import (
    DumpedFile,
    is_of_old_tool,
    read_batch_line,
    read_file_line,
    read_record_line,
)
from txnlib.core.text.dump_reader import DumpReader
from txnlib.core.text.lines import TextLines, UnreadableReason
from txnlib.core.text.printed import ConsoleRecord, Dumped, FileEnd, FileStart, Unreadable
from txnlib.errors import UnreadableInputError
from txnlib.readers.printed_again import Again, PrintedFiles
from txnlib.readers.storage.object_stores import may_pass
from txnlib.readers.storage.packed_text import READ_ERRORS, open_text

#: Number of bytes of a file that show what it is.
_HEAD_BYTES: Final = 65_536
_NAMED_BY_PARTITION: Final = re.compile(re.escape(TRANSACTION_STATE_TOPIC) + r"-(\d{1,9})(?!\d)")


def head_of(path: str) -> bytes:
    """The first bytes of a file, unpacked and taken out of what they stand in; empty if it cannot be read, because the
    table readers report that."""
    try:
        with open_text(path, chunk=_HEAD_BYTES) as text:
            return TextLines(text).head(_HEAD_BYTES)
    except READ_ERRORS as error:
        if isinstance(error, OSError) and may_pass(path, error):
            raise UnreadableInputError(path, f"cannot be opened: {error}", "Run the audit again") from error
        return b""


def looks_like_dump(head: bytes) -> bool:
    """Whether the first kilobytes of a file contain dump text, possibly after other text.

    A segment can contain such text in its payloads, but all of Kafka's binary files start with a zero byte.
    """
    if head.startswith(b"\0"):
        return False
    readers = read_file_line, read_batch_line, read_record_line, is_of_old_tool
    return any(read(line.strip()) for _position, line in TextLines((head,)) for read in readers)


def find_console_record(head: bytes) -> int | None:
    """The position of the first record in the beginning of a file; None if it is no console consumer text.

    A record that is ambiguous counts. Tombstones count only if all other text is chatter, because `::NULL` occurs in
    other texts, too.
    """
    if head.startswith(b"\0"):
        return None
    first_tombstone = None
    for printed in read_console_text(TextLines((head,))):
        if type(printed) is ConsoleRecord:
            if printed.entry is not None or head[printed.position : printed.position + 1] == b"{":
                return printed.position
            first_tombstone = printed.position if first_tombstone is None else first_tombstone
        elif type(printed) is Unreadable and printed.reason is not UnreadableReason.CUT_LINE:
            labels = re.finditer(re.escape(ECHO_LABEL), head[: printed.end])
            return min((_begin_of_record(head, label.start()) for label in labels), default=None)
    return first_tombstone


def _begin_of_record(head: bytes, label: int) -> int:
    """Where a record begins, by the label between the two copies of its id, which may have several lines."""
    echo = label + len(ECHO_LABEL)
    first_line = head[echo:].partition(b"\n")[0]
    begin = (b"\n" + head).find(b"\n" + first_line + b"\n", 0, label + 1)
    is_echoed = begin >= 0 and head.startswith(head[begin:label], echo)
    return begin if is_echoed else head.rfind(b"\n", 0, label) + 1


def partition_in_name(path: str) -> int | None:
    """The partition of `__transaction_state` in a file's name, as with `--partition`; None if there is none."""
    match = _NAMED_BY_PARTITION.match(PurePath(path).name)
    return int(match[1]) if match else None


# ---- Events and their places


class DumpPlace(NamedTuple):
    """The copy to which a dumped file belongs. `topic` and `partition` are None if they are unknown."""

    topic: str | None
    partition: int | None
    source: str
    file: DumpedFile

    @property
    def is_known(self) -> bool:
        return self.topic is not None and self.partition is not None

    def columns(self, path: str) -> dict[str, Any]:
        """The columns that say where a row is from. `path`: that of the text."""
        return {"topic": self.topic, "partition": self.partition, "source": self.source, "path": path}


#: An event of the text with its place; None for text outside any file.
Located = tuple[DumpPlace | None, Dumped | Again]


def read_located(lines: TextLines, source: str, topic_partition: tuple[str, int] | None) -> Iterator[Located]:
    """Yields the events of the text. `topic_partition` applies to files whose path does not contain it.

    Folders that Kafka is deleting are left out. The first log directory belongs to the source itself; further ones
    become sources of their own, named `<source>:<log directory>`. What is printed again of a file comes as `Again`.
    """
    topic, partition = topic_partition or (None, None)
    place: DumpPlace | None = None
    last: DumpPlace | None = None
    first_directory: str | None = None
    printed = PrintedFiles()
    for value in chain.from_iterable(map(printed.mark, DumpReader(lines, topic))):
        if type(value) is FileStart:
            file = value.file
            if (
                file.path is None
                and last is not None
                and last.file.topic is not None
                and last[:2] != (topic, partition)
            ):
                # The line with the partition of these batches is lost, and the name of the text belongs to other files.
                place = DumpPlace(None, None, source, file)
            elif file.topic is None or file.is_deleted:
                place = DumpPlace(topic, partition, source, file)
            else:
                first_directory = file.log_directory if first_directory is None else first_directory
                own = source if file.log_directory == first_directory else f"{source}:{file.log_directory}"
                place = DumpPlace(file.topic, file.partition, own, file)
            last = place
        if place is None or not place.file.is_deleted:
            yield place, value
        if type(value) is FileEnd:
            place = None
