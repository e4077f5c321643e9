"""Output of `kafka-console-consumer.sh --topic __transaction_state --formatter …`, of any version.

Rule 1: a file has one form, lines or JSON, as one run of one tool prints it. An id may contain a perfect record of the other form.
Only white space and chatter can be between JSON objects, so if there are record lines, the form is lines.
Rule 2: text never raises, and every byte is accounted for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from txnlib.core.text.console_events import Chatter, ConsoleEnd, ConsoleRecord, Printed
from txnlib.core.text.console_forms import ECHO_LABEL, OBJECT_START, read_json_form, read_text_form
from txnlib.core.text.dump_events import Unreadable
from txnlib.core.text.tool_messages import UnreadableReason

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
#: Number of bytes that decide the form of a text.
_HEAD_BYTES: Final = 1 << 20
_LINE_FORM: Final = re.compile(rb"::TransactionMetadata\(transactionalId=|::NULL\r?(?:\n|\Z)")


def read_console_text(chunks: Iterable[bytes]) -> Iterator[Printed]:
    """The events of console consumer text, in order: records, chatter, unreadable ranges, and the end.

    `chunks`: the text in chunks of any size. Positions and lengths are in bytes; the lengths add up to the size of the text. Memory
    is bounded by the first megabyte or the longest record. Never raises.
    Kafka: `TransactionLogMessageFormatter` of `kafka.coordinator.transaction.TransactionLog` and of
    `org.apache.kafka.tools.consumer`; docs/rules/formats.md#records-of-a-console-consumer.
    """
    rest = iter(chunks)
    held, size = [], 0
    for chunk in rest:
        held.append(chunk)
        size += len(chunk)
        if size >= _HEAD_BYTES:
            break
    head = b"".join(held)
    start = len(_BYTE_ORDER_MARK) if head.startswith(_BYTE_ORDER_MARK) else 0
    if start:
        yield Chatter(0, start)
    read = read_json_form if _is_json(head[start:_HEAD_BYTES]) else read_text_form
    yield from read(chain((head[start:],), rest), start)


def find_console_record(head: bytes) -> int | None:
    """The position of the first record in the beginning of a file; None if it is no console consumer text.

    A record of an id with line feeds counts, although it is ambiguous. Tombstones count only if all other text is chatter, because
    `::NULL` occurs in other texts, too.
    """
    if head.startswith(b"\0"):
        return None
    first_tombstone = None
    for printed in read_console_text((head,)):
        if type(printed) is ConsoleRecord:
            if printed.entry is not None or head[printed.position : printed.position + 1] == b"{":
                return printed.position
            first_tombstone = printed.position if first_tombstone is None else first_tombstone
        elif type(printed) is Unreadable and printed.reason is not UnreadableReason.CUT_LINE:
            if printed.reason is UnreadableReason.AMBIGUOUS_RECORD and head.find(ECHO_LABEL, printed.position, printed.end) >= 0:
                return printed.position
            first_tombstone = None
            break
    return first_tombstone


def _is_json(head: bytes) -> bool:
    """Whether the JSON objects in a text are records, not ids that imitate them."""
    if not OBJECT_START.search(head):
        return False
    has_records = False
    for printed in read_json_form((head,)):
        if type(printed) is ConsoleRecord:
            has_records = True
        elif not isinstance(printed, ConsoleEnd) and _LINE_FORM.search(head, printed.position, printed.position + printed.length):
            is_object = OBJECT_START.match(head, printed.position) is not None
            if not (is_object and type(printed) is Unreadable and printed.reason is UnreadableReason.CUT_LINE):
                return False
    return has_records or not _LINE_FORM.search(head)
