"""A small console consumer: coordinator records to text, and text to events."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.text.console import read_console_text
from txnlib.core.text.lines import BYTE_ORDER_MARK, TextLines
from txnlib.core.text.printed import ConsoleEnd, ConsoleRecord, Printed, Unreadable, is_chatter

FILES = Path(__file__).parent / "console_files"
TS = 1_710_120_000_000
DEPRECATED = (
    b"Option --consumer-property is deprecated and will be removed in a future version. Use --command-property"
    b" instead.\n"
)
PROCESSED = b"Processed a total of 3 messages\n"
LOGGED = (
    b"[2024-03-11 01:20:00,000] WARN [Consumer clientId=console-consumer] Connection to node 1 was lost"
    b" (org.apache.x)\n"
)


def console_text(name: str) -> bytes:
    return (FILES / f"{name}.txt").read_bytes()


@dataclass(frozen=True)
class Record:
    """A record of Ongoing, or a tombstone; `producer_id` tells records of one id apart."""

    transactional_id: str
    producer_id: int = 4001
    is_tombstone: bool = False


def tombstone(transactional_id: str) -> Record:
    return Record(transactional_id, is_tombstone=True)


def metadata(transactional_id: str, producer_id: int = 4001) -> str:
    """What the old formatter prints behind the id."""
    return (
        f"TransactionMetadata(transactionalId={transactional_id}, producerId={producer_id}, producerEpoch=3,"
        " txnTimeoutMs=60000, state=Ongoing, pendingState=None, topicPartitions=HashSet(payments-0,"
        f" __consumer_offsets-12), txnStartTimestamp={TS}, txnLastUpdateTimestamp={TS + 5})"
    )


def as_line(record: Record) -> bytes:
    """A record as tools up to 3.8 print it."""
    value = "NULL" if record.is_tombstone else metadata(record.transactional_id, record.producer_id)
    return f"{record.transactional_id}::{value}\n".encode()


def as_json(record: Record) -> bytes:
    """A record as tools from 4.0 to 4.3 print it."""
    data = {
        "producerId": record.producer_id, "producerEpoch": 3, "transactionTimeoutMs": 60000,
        "transactionStatus": int(TransactionState.ONGOING),
        "transactionPartitions": [{"topic": "payments", "partitionIds": [0, 3]}],
        "transactionLastUpdateTimestampMs": TS + 5, "transactionStartTimestampMs": TS, "clientTransactionVersion": 2,
    }  # fmt: skip
    value = None if record.is_tombstone else {"version": 1, "data": data}
    printed = {"key": {"type": 0, "data": {"transactionalId": record.transactional_id}}, "value": value}
    return json.dumps(printed, separators=(",", ":"), ensure_ascii=False).encode()


def read(text: bytes, chunk: int = 1 << 20) -> list[Printed]:
    """All that is read of a text: in order, without overlap, and with nothing but chatter and white space between."""
    printed = list(read_console_text(TextLines(text[start : start + chunk] for start in range(0, len(text), chunk))))
    end = printed.pop()
    assert isinstance(end, ConsoleEnd)
    position = len(BYTE_ORDER_MARK) if text.startswith(BYTE_ORDER_MARK) else 0
    for value in (*printed, end):
        assert value.position >= position
        gap = text[position : value.position]
        assert all(not line.strip() or is_chatter(line) for line in gap.splitlines(keepends=True))
        if not isinstance(value, ConsoleEnd):
            assert value.length > 0
            position = value.position + value.length
    assert end.position == len(text)
    return [*printed, end]


def records(printed: Iterable[Printed]) -> list[Record]:
    """The records, as they went in."""
    found = [value for value in printed if isinstance(value, ConsoleRecord)]
    return [
        (
            tombstone(value.transactional_id)
            if value.entry is None
            else Record(value.transactional_id, value.entry.producer_id)
        )
        for value in found
    ]


def unreadable(printed: Iterable[Printed]) -> list[tuple[str, int, int]]:
    """(reason, position, length) of every stretch."""
    return [(value.reason.name, value.position, value.length) for value in printed if isinstance(value, Unreadable)]
