"""Events of reading console text. Every byte belongs to a record, to chatter, or to an unreadable range."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from txnlib.core.kafka.transaction_log import TransactionLogEntry
from txnlib.core.text.dump_events import Unreadable, sample_of
from txnlib.core.text.tool_messages import DumpTail, UnreadableReason


class ConsoleRecord(NamedTuple):
    """A record and the range of its text, including the line end. `entry` is None for a tombstone."""

    position: int
    length: int
    transactional_id: str
    entry: TransactionLogEntry | None


class Chatter(NamedTuple):
    """White space, and messages of the tool, its shell or its loggers."""

    position: int
    length: int


class ConsoleEnd(NamedTuple):
    """The end of the text. CORRUPT: the consumer ended with an exception; TORN: the text ends inside a record."""

    position: int
    tail: DumpTail


Printed = ConsoleRecord | Chatter | Unreadable | ConsoleEnd

_BLANK: Final = re.compile(rb"\s*")
#: Messages of a terminal, of options, of loggers (log4j 1 and 2, slf4j), of the JVM, and Kafka's last message.
_CHATTER: Final = re.compile(
    rb"(\^C)?Processed a total of \d+ messages\s*\Z"
    rb"|(The )?[Oo]ption (--)?\S+ (is|has been) deprecated|WARNING: \S+ is deprecated and will be removed "
    rb"|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) |log4j:WARN |SLF4J: "
    rb"|Picked up (_JAVA_OPTIONS|JAVA_TOOL_OPTIONS): |OpenJDK 64-Bit Server VM warning: |\tat [\w$.<>/]+\(|\t\.\.\. \d+ more"
)
_EXCEPTION: Final = re.compile(rb'(Caused by: |Exception in thread "[^"]*" )?[a-z]\w*(\.\w+)+(\$\w+)?(Exception|Error)\b')
#: The last message with `--timeout-ms`.
_TIMEOUT: Final = re.compile(rb"org\.apache\.kafka\.common\.errors\.TimeoutException\b|kafka\.consumer\.ConsumerTimeoutException")


def is_blank(line: bytes) -> bool:
    """Whether a line is only white space."""
    return _BLANK.fullmatch(line) is not None


def is_chatter(line: bytes) -> bool:
    """Whether a line begins like a message of a tool or logger. White space does not."""
    return _CHATTER.match(line) is not None or _EXCEPTION.match(line) is not None


def is_last_word(line: bytes) -> bool:
    """Whether a line is the exception that ended the consumer. The exception of `--timeout-ms` does not count.

    Kafka: `ConsoleConsumer.main`. A formatter that cannot read a record throws, up to 3.8 and from 4.1.
    """
    return _EXCEPTION.match(line) is not None and _TIMEOUT.match(line) is None


class ConsoleOutput:
    """Events that were read but not yielded yet. Adjacent ranges of one kind are merged."""

    def __init__(self) -> None:
        self.values: list[Printed] = []
        self._last: Chatter | Unreadable | None = None
        self.end = 0
        self.is_torn = self.is_ended_early = False

    @property
    def last_reason(self) -> UnreadableReason | None:
        """The reason if the text so far ends with an unreadable range, else None."""
        return self._last.reason if type(self._last) is Unreadable else None

    def record(self, position: int, length: int, transactional_id: str, entry: TransactionLogEntry | None) -> None:
        self._settle()
        self.values.append(ConsoleRecord(position, length, transactional_id, entry))
        self.end = position + length
        self.is_torn = False

    def chatter(self, position: int, text: bytes) -> None:
        if not text:
            return
        self.is_ended_early = self.is_ended_early or is_last_word(text)
        if type(self._last) is Chatter:
            self._last = Chatter(self._last.position, self._last.length + len(text))
        else:
            self._settle()
            self._last = Chatter(position, len(text))
        self.end = position + len(text)

    def unreadable(self, position: int, text: bytes, reason: UnreadableReason) -> None:
        if not text:
            return
        if type(self._last) is Unreadable and self._last.reason is reason:
            self._last = self._last._replace(length=self._last.length + len(text))
        else:
            self._settle()
            self._last = Unreadable(position, len(text), reason, sample_of(text))
        self.end = position + len(text)
        self.is_torn = reason is UnreadableReason.CUT_LINE

    def finish(self) -> None:
        """Adds all remaining events, and the end of the text."""
        self._settle()
        tail = DumpTail.TORN if self.is_torn else DumpTail.CLEAN
        self.values.append(ConsoleEnd(self.end, DumpTail.CORRUPT if self.is_ended_early else tail))

    def _settle(self) -> None:
        if self._last is not None:
            self.values.append(self._last)
            self._last = None
