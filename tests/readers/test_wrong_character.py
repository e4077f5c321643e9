"""One wrong character in a coordinator's dump costs a batch or two.

It changes no other record.
The characters are those that people lose, type or paste: a digit, a letter, a line feed. Left out is the path in a
`Dumping` line: with another path, the same lines are those of another partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Final, NamedTuple

import pytest

from tests.support.dumps import Batch, Record, dumped, lines_in, marker, print_dump
from txnlib.core.text.dump_lines import DumpedBatch
from txnlib.core.text.dump_reader import DumpReader
from txnlib.core.text.printed import Dumped, DumpedRecord, DumpTail, FileEnd, Unreadable

CHARACTERS: Final = (b"7", b"x", b"\n", b"|", b'"', b" ")
NAMES: Final = (
    "2.8-txnstate",
    "3.9-txnstate",
    "3.9-txnstate-skip-record-metadata",
    "4.0-txnstate",
    "4.3-txnstate",
    "real-3.4.1-skip-record-metadata-txnstate",
    "real-3.9.1-hostile-txnstate",
    "real-4.3.0-hostile-txnstate",
)
#: Each so many-th place is tried, from another one on for each change.
STRIDES: Final = pytest.mark.parametrize("stride", [127, pytest.param(5, marks=pytest.mark.slow)], ids=["few", "many"])


class Change(NamedTuple):
    text: bytes
    #: Where the character is.
    place: int
    by: str


def changes(text: bytes, stride: int) -> Iterator[Change]:
    """One character deleted, replaced or inserted, at each so many-th place outside of paths."""
    paths = [range(*found) for found in _paths(text)]
    for first, (name, new, width) in enumerate(
        [("delete", b"", 1), *((f"{verb} {new!r}", new, width) for new in CHARACTERS for verb, width in VERBS)]
    ):
        for place in range(first % stride, len(text), stride):
            changed = text[:place] + new + text[place + width :]
            if changed != text and not any(place in path for path in paths):
                yield Change(changed, place, name)


VERBS: Final = (("change to", 1), ("insert", 0))


def _paths(text: bytes) -> Iterator[tuple[int, int]]:
    """The ranges of `Dumping` lines with their line ends."""
    start = text.find(b"Dumping ")
    while start >= 0:
        end = text.index(b"\n", start) + 1
        yield start, end
        start = text.find(b"\nDumping ", end - 1) + 1 or -1


def events(text: bytes) -> list[Dumped]:
    return list(DumpReader(lines_in(text), None))


def records(found: list[Dumped]) -> dict[tuple[int, int], DumpedRecord]:
    """By the number of the file and the offset."""
    number, result = 0, {}
    for value in found:
        number += isinstance(value, FileEnd)
        if isinstance(value, DumpedRecord):
            result[number, value.offset] = value
    return result


def batches_by_line(text: bytes) -> list[int]:
    """For each line, the number of the batch to which it belongs."""
    return list(accumulate(line.startswith(b"baseOffset: ") for line in text.splitlines(keepends=True)))


def batch_of_offsets(found: list[Dumped]) -> dict[tuple[int, int], int]:
    """The number of the batch of each offset, as `batches_by_line` counts them."""
    number, batch, result = 0, 0, {}
    for value in found:
        number += isinstance(value, FileEnd)
        if isinstance(value, DumpedBatch):
            batch += 1
            result |= {(number, offset): batch for offset in range(value.base_offset, value.last_offset + 1)}
    return result


@STRIDES
@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_character_costs_its_batch_and_at_most_the_next(name: str, stride: int) -> None:
    text = dumped(name)
    whole = events(text)
    truth, batch_of, of_line = records(whole), batch_of_offsets(whole), batches_by_line(text)

    for changed, place, by in changes(text, stride):
        found = events(changed)
        read = records(found)
        touched = of_line[text[:place].count(b"\n")]
        near = {touched, touched + 1}
        wrong = {at for at in truth if read.get(at) != truth[at]}
        assert {batch_of[at] for at in wrong} <= near, (by, place, text[place - 40 : place + 40])
        strange = {at for at in read if at not in truth}
        assert all(_is_of(read[at], truth, batch_of, touched) for at in strange), (by, place, strange)
        lost = {at for at in truth if at not in read}
        ranges = [value for value in found if isinstance(value, Unreadable)]
        ends = [value.tail for value in found if isinstance(value, FileEnd)]
        # A digit of a batch line changes the offsets of its records.
        assert not lost or ranges or strange or set(ends) != {DumpTail.CLEAN}, (by, place, lost)


def _is_of(
    record: DumpedRecord, truth: dict[tuple[int, int], DumpedRecord], batch_of: dict[tuple[int, int], int], touched: int
) -> bool:
    """Whether a record with an offset of its own is one of the touched batch, whose line has a wrong digit."""
    ids = {truth[at].content.transactional_id for at in truth if batch_of[at] in (touched, touched + 1)}  # type: ignore[union-attr]
    return record.content.transactional_id in ids  # type: ignore[union-attr]


MARKERS: Final = print_dump(
    Batch((Record(),)), marker("COMMIT"), Batch((Record(), Record())), marker("ABORT"), Batch(), marker("COMMIT")
)


@STRIDES
def test_a_wrong_character_in_a_marker_costs_that_marker(stride: int) -> None:
    whole = [value for value in events(MARKERS) if isinstance(value, DumpedBatch)]
    of_line = batches_by_line(MARKERS)

    for changed, place, by in changes(MARKERS, stride):
        line = MARKERS[:place].count(b"\n")
        if b"endTxnMarker" not in MARKERS.splitlines()[line]:
            continue
        found = [value for value in events(changed) if isinstance(value, DumpedBatch)]
        near = of_line[line] - 1, of_line[line]
        other = [batch for number, batch in enumerate(whole) if number not in near]
        assert [batch for batch in found if batch in other] == other, (by, place)


def test_what_is_lost_is_one_range() -> None:
    """It begins at the damaged line and ends where the next batch does begin."""
    text = dumped("4.3-txnstate")
    start = text.index(b"| offset: 2 ")
    place = text.index(b' key: {"type"', start) + len(b" key: ")
    changed = text[:place] + b"x" + text[place:]

    found = events(changed)

    ranges = [value for value in found if isinstance(value, Unreadable)]
    end = changed.index(b"baseOffset: 3 ")
    assert [(bad.position, bad.end) for bad in ranges] == [(start, end)]
    assert [value.tail for value in found if isinstance(value, FileEnd)] == [DumpTail.CLEAN]


def test_lines_that_an_id_can_hold_are_not_believed() -> None:
    """An id of the size of a batch line, which imitates the next one, with a wrong size before it."""
    text = dumped("3.9-txnstate")
    first, second = text.index(b"baseOffset: 1 "), text.index(b"baseOffset: 2 ")
    line, size = text[second:].splitlines()[0], 900
    imitated = line.replace(b"producerId: -1", b"producerId: 99")
    transactional_id = b"a\n" + imitated + b"\nb"
    head = text[first:second].replace(b"size: 140 ", b"size: %d " % size)
    imitated_at = b"position: %d " % (121 + size)
    transactional_id = transactional_id.replace(b"position: 261 ", imitated_at)
    head = head.replace(b"orders-app-1", transactional_id)
    rest = text[second:].replace(b"position: 261 ", imitated_at)

    found = events(text[:first] + head + rest)

    assert not [value for value in found if isinstance(value, DumpedBatch) and value.producer_id == 99]
