"""A small `kafka-dump-log.sh`: batches to text, and text to rows."""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from txnlib.core.text.lines import LONGEST_LINE, TextLines
from txnlib.readers import text_events
from txnlib.readers.arrow_schemas import one_pass
from txnlib.readers.capture import CaptureFile, FileKind
from txnlib.readers.table_readers import KINDS

FILES = Path(__file__).parent / "dump_files"
PATH = "/var/lib/kafka/data/orders-0/00000000000000000000.log"
COORDINATOR_PATH = "/var/lib/kafka/data/__transaction_state-7/00000000000000000000.log"
TS = 1_710_120_000_000


def dumped(name: str) -> bytes:
    return (FILES / f"{name}.txt").read_bytes()


@dataclass(frozen=True)
class Record:
    key: bytes | None = b"k"
    value: bytes | None = b"v"
    header_keys: tuple[bytes, ...] = ()
    #: What a console or a decoder makes of key and value, in place of themselves.
    printed_key: bytes | None = None
    printed_value: bytes | None = None


@dataclass(frozen=True)
class Batch:
    """A batch of a producer; offsets, positions and sequences come from what stands before it."""

    records: tuple[Record, ...] = (Record(),)
    producer_id: int = 4001
    marker: str | None = None
    size: int = 120
    is_valid: bool = True
    extra: dict[str, Any] = field(default_factory=dict)


def marker(control_type: str, producer_id: int = 4001) -> Batch:
    return Batch((Record(b"\0\0\0\0", b"\0\0\0\0\0\0"),), producer_id, control_type, 78)


def print_dump(
    *batches: Batch,
    path: str = PATH,
    deep: bool = True,
    contents: bool = False,
    skip_record_metadata: bool = False,
    start: tuple[int, int] = (0, 0),
) -> bytes:
    """The dump of a segment; `start` is its first offset and position. Its starting offset is the number in its
    name."""
    number = path.rpartition("/")[2].partition(".")[0]
    lines = [
        b"Dumping " + path.encode(),
        b"Log starting offset: %d" % (int(number) if number.isdecimal() else start[0]),
    ]
    for lines_of_batch in batch_lines(*batches, deep=deep, contents=contents, bare=skip_record_metadata, start=start):
        lines += lines_of_batch
    return b"".join(line + b"\n" for line in lines)


def batch_lines(
    *batches: Batch, deep: bool = True, contents: bool = False, bare: bool = False, start: tuple[int, int] = (0, 0)
) -> Iterator[list[bytes]]:
    """For each batch, its line and those of its records."""
    offset, position = start
    for batch in batches:
        yield [_batch_line(batch, offset, position), *(_record_lines(batch, offset, contents, bare) if deep else ())]
        offset += len(batch.records)
        position += batch.size


def _batch_line(batch: Batch, offset: int, position: int) -> bytes:
    count = len(batch.records)
    has_sequence = batch.marker is None and batch.producer_id >= 0
    fields = {
        "baseOffset": offset, "lastOffset": offset + count - 1, "count": count,
        "baseSequence": offset if has_sequence else -1,
        "lastSequence": offset + count - 1 if has_sequence else -1, "producerId": batch.producer_id,
        "producerEpoch": 3 if batch.producer_id >= 0 else -1, "partitionLeaderEpoch": 4,
        "isTransactional": str(batch.producer_id >= 0).lower(), "isControl": str(batch.marker is not None).lower(),
        "deleteHorizonMs": "OptionalLong.empty", "position": position, "CreateTime": TS + offset + count - 1,
        "size": batch.size, "magic": 2, "compresscodec": "none", "crc": (offset * 2_654_435_761 + position) % 2**32,
        "isvalid": str(batch.is_valid).lower(),
    }  # fmt: skip
    return " ".join(f"{label}: {value}" for label, value in (fields | batch.extra).items()).encode()


def _record_lines(batch: Batch, offset: int, contents: bool, bare: bool) -> Iterator[bytes]:
    for index, record in enumerate(batch.records):
        sequence = offset + index if batch.marker is None and batch.producer_id >= 0 else -1
        sizes = tuple(-1 if text is None else len(text) for text in (record.key, record.value))
        metadata = b"offset: %d CreateTime: %d keySize: %d valueSize: %d sequence: %d headerKeys: [%b]" % (
            *(offset + index, TS + offset + index, *sizes, sequence),
            b",".join(record.header_keys),
        )
        if batch.marker is not None:
            yield b"" if bare else b"| %b endTxnMarker: %b coordinatorEpoch: 7" % (metadata, batch.marker.encode())
            continue
        key = record.key if record.printed_key is None else record.printed_key
        value = record.value if record.printed_value is None else record.printed_value
        printed = b"" if key is None or not contents else b" key: " + key
        printed += b"" if value is None or not contents else b" payload: " + value
        yield (b"|" + printed if printed else b"") if bare else b"| " + metadata + printed


def lines_in(text: bytes, chunk: int = 1 << 20, longest: int = LONGEST_LINE) -> TextLines:
    """The lines of a text that comes in chunks."""
    return TextLines(iter(partial(io.BytesIO(text).read, chunk), b""), longest=longest)


def rows(
    table: str, text: bytes, topic_partition: tuple[str, int] | None = None, chunk: int = 1 << 20
) -> list[dict[str, Any]]:
    """The rows of one reader."""
    lines = lines_in(text, chunk)
    return [row for batch in read_lines(table, lines, topic_partition) for row in batch.to_pylist()]


def read_lines(
    table: str, lines: TextLines, topic_partition: tuple[str, int] | None = None
) -> Iterator[pa.RecordBatch]:
    """What one reader makes of the lines of a text."""
    file = CaptureFile("dump.txt", FileKind.DUMP, "text:1", 0)
    return (
        batch
        for _, batch in one_pass(
            text_events.read_located(lines, file.source, topic_partition), {table: KINDS[file.kind][1][table](file)}
        )
    )


def base_offsets(text: bytes) -> list[int]:
    return [row["base_offset"] for row in rows("record_batches", text)]


def unreadable(text: bytes) -> list[tuple[str, int, int]]:
    """(reason, position, length) of every stretch."""
    return unreadable_in(rows("segments", text))


def unreadable_in(segments: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    """The same of rows of `segments`."""
    stretches = [stretch for row in segments for stretch in row["unreadable"]]
    return [(stretch["reason"], stretch["position"], stretch["length"]) for stretch in stretches]
