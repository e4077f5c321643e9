"""A damaged dump: no batch is moved to another partition, and none is lost in silence.

Damages are digits, cut lines, lost line ends, doubled and lost lines. What no reader can know is left out of the law
by what the damage touched: a wrong digit in a batch line changes that batch itself, and a lost or cut line at the end
of a file looks like a file that is shorter. Where damage hides the record line above it, a payload that imitates a
whole file may be read as a file of its own, but never with the batches of another one.
"""

from __future__ import annotations

import io
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from operator import ne
from typing import Any, Final

import pytest

from tests.readers.test_dump_hostile import HOSTILE
from tests.support.dumps import COORDINATOR_PATH, Batch, Record, dumped, marker, print_dump, rows, unreadable
from txnlib.core.text.lines import UnreadableReason
from txnlib.core.text.printed import DumpTail

Line = bytes
TABLES: Final = ("record_batches", "transaction_log", "segments", "producer_snapshots")


def partition(number: int, topic: str = "orders") -> str:
    return f"/var/lib/kafka/data/{topic}-{number}/00000000000000000000.log"


def twins(record: Record, *, contents: bool) -> bytes:
    """Two partitions that are written together, so that they have the same positions and offsets up to the end of the
    first."""
    one, other = (
        (Batch((Record(), Record()), producer), marker("COMMIT", producer), Batch((Record(), record), producer))
        for producer in (4001, 4002)
    )
    rest = (Batch((record,)), marker("ABORT"), Batch(producer_id=5))
    return print_dump(*one, path=partition(0), contents=contents) + print_dump(
        *other, *rest, path=partition(1), contents=contents
    )


def of_other_size(value: bytes) -> Record:
    """A record whose contents cannot be measured: a console without some of its characters printed it."""
    return Record(value="äöü".encode() + value, printed_value=b"???" + value)


HOSTILE_VALUES: Final = {name: b"\n".join([b"", *lines, b"y"]) for name, lines in HOSTILE.items()}
TEXTS: Final = {
    "measured": twins(Record(value=HOSTILE_VALUES["all"]), contents=True),
    "measured file": twins(Record(value=HOSTILE_VALUES["another file"]), contents=True),
    "unmeasured": twins(of_other_size(HOSTILE_VALUES["remarks"] + HOSTILE_VALUES["imperfect"]), contents=True),
    "unmeasured file": twins(of_other_size(HOSTILE_VALUES["another file"]), contents=True),
    "header keys": twins(Record(header_keys=(b"trace", HOSTILE_VALUES["another file"])), contents=False),
    "real 3.9": dumped("real-3.9.1-hostile-data").replace(b"odd.topic_with-dashes-1-0", b"orders-0")
    + dumped("real-3.9.1-hostile-data"),
    "real 2.8": dumped("real-2.8.2-hostile-data"),
    "real coordinator 3.9": dumped("real-3.9.1-hostile-txnstate"),
    "real coordinator 4.3": dumped("real-4.3.0-hostile-txnstate"),
    "coordinator": print_dump(Batch(), Batch(), path=COORDINATOR_PATH, contents=True),
}

#: The same batches without anything hostile.
TRUTHS: Final = {name: twins(Record(), contents=False) for name in list(TEXTS)[:5]}


def change_digit(text: bytes, chance: random.Random) -> bytes:
    """One wrong digit, not in the path of a file: that would be another partition."""
    paths = [(found.start(), found.end()) for found in re.finditer(rb"^Dumping .*$", text, re.MULTILINE)]
    digits = [index for index, byte in enumerate(text) if byte in b"0123456789"]
    place = chance.choice([index for index in digits if not any(start <= index < end for start, end in paths)])
    return text[:place] + bytes([chance.choice(b"0123456789")]) + text[place + 1 :]


def of_lines(change: Callable[[list[Line], int, random.Random], None]) -> Callable[[bytes, random.Random], bytes]:
    def damage(text: bytes, chance: random.Random) -> bytes:
        lines = io.BytesIO(text).readlines()
        change(lines, chance.randrange(len(lines)), chance)
        return b"".join(lines)

    return damage


def cut(lines: list[Line], index: int, chance: random.Random) -> None:
    lines[index] = lines[index][: chance.randrange(len(lines[index]))] + b"\n"


def join(lines: list[Line], index: int, _chance: random.Random) -> None:
    lines[index] = lines[index].rstrip(b"\r\n")


def double(lines: list[Line], index: int, _chance: random.Random) -> None:
    lines.insert(index, lines[index])


def lose(lines: list[Line], index: int, _chance: random.Random) -> None:
    del lines[index]


DAMAGES: Final = {
    "digit": change_digit,
    "cut": of_lines(cut),
    "join": of_lines(join),
    "double": of_lines(double),
    "lose": of_lines(lose),
}
SEEDS = pytest.mark.parametrize(
    "seeds", [range(4), pytest.param(range(100, 400), marks=pytest.mark.slow)], ids=["few", "many"]
)


def damaged(name: str, damage: str, seeds: range) -> Iterator[bytes]:
    for seed in seeds:
        yield DAMAGES[damage](TEXTS[name], random.Random(f"{name} {damage} {seed}"))


def told(text: bytes) -> Counter[tuple[Any, ...]]:
    names = ("topic", "partition", "base_offset", "last_offset", "position", "producer_id")
    return Counter(tuple(row[name] for name in names) for row in rows("record_batches", text))


def said(text: bytes) -> Counter[tuple[str, int]]:
    return Counter((reason, length) for reason, _position, length in unreadable(text))


def recorded(text: bytes) -> Counter[str]:
    return Counter(repr(row) for row in rows("transaction_log", text))


@SEEDS
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_one_damage_moves_no_batch_and_hides_none(name: str, damage: str, seeds: range) -> None:
    whole, first = TEXTS[name], told(TRUTHS.get(name, TEXTS[name]))
    home = {batch[2:]: {other[:2] for other in first if other[2:] == batch[2:]} for batch in first}
    clean = {row["tail"] for row in rows("segments", whole)}
    before = said(whole)
    for text in damaged(name, damage, seeds):
        found = told(text)
        strange = [
            batch
            for batch in found - first
            if batch[2:] in home and batch[:2] not in home[batch[2:]] and batch[0] is not None
        ]
        assert not strange, (strange, text)
        tails = {(row["topic"], row["partition"]): row["tail"] for row in rows("segments", text)}
        # Coordinator records without a partition are read as console text.
        is_said = bool(said(text) - before) or {*tails.values()} != clean or is_read_as_console(text)
        assert is_said or {batch[:2] for batch in found} <= {batch[:2] for batch in first}, text
        for batch in told(whole) - found:
            is_changed = any(other[:2] == batch[:2] and sum(map(ne, other, batch)) == 1 for other in found)
            is_said |= tails.get(batch[:2]) == DumpTail.CORRUPT
            assert is_said or (damage == "digit" and is_changed) or _is_at_end(batch, first), (batch, text)
        lost, new = recorded(whole) - recorded(text), recorded(text) - recorded(whole)
        is_of_last_batch = all(f"'offset': {max(batch[3] for batch in first)}," in row for row in lost)
        assert lost.total() <= new.total() or is_said or is_of_last_batch, (lost, text)
        for table in TABLES:
            rows(table, text)


def is_read_as_console(text: bytes) -> bool:
    return any(row["kind"] == "console" for row in rows("segments", text))


def _is_at_end(batch: tuple[Any, ...], whole: Counter[tuple[Any, ...]]) -> bool:
    return all(other[2] <= batch[2] for other in whole if other[:2] == batch[:2])


def test_a_snapshot_without_a_folder_is_named() -> None:
    text = b"Dumping 00000000000933607637.snapshot\n" + dumped("3.9-snapshot").partition(b"\n")[2]

    assert rows("producer_snapshots", text) == []
    assert unreadable(text) == [(UnreadableReason.TOPIC_PARTITION_UNKNOWN, 0, len(text))]
    assert rows("segments", text)[0]["unreadable"][0]["sample"] == "00000000000933607637.snapshot"
