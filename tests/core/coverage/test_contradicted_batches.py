"""Batches that contradict their copy, and the quarantine."""

from dataclasses import replace

import pytest

from tests.support.copies import captured, checkpoint, covered, unreadable
from txnlib.core.coverage.captured_files import PRINTED, CapturedFile, CheckpointEntry, of_copies
from txnlib.core.coverage.quarantine import Quarantined, RefutedBatch, lowered, quarantine
from txnlib.core.coverage.truncated_tails import (
    EPOCH,
    GAP,
    OVERLAP,
    UNLISTED_EPOCH,
    EpochOfSegment,
    contradicted_batches,
)

Log = list[tuple[int, int | None]]
#: Segments by base offset (None: not known), each a list of (base offset, leader epoch); highest epoch and high
#: watermark of the checkpoints; whether a stretch was unreadable -> base offset of the contradicted batch, and why.
GRID: dict[str, tuple[dict[int | None, Log], int | None, int | None, bool, tuple[int, str] | None]] = {
    "epochs rise": ({0: [(0, 3), (1, 3)], 2: [(2, 4), (3, 4)]}, 4, 4, False, None),
    "one epoch per batch": ({0: [(0, 1), (1, 2)], 2: [(2, 3)]}, 3, 3, False, None),
    "no checkpoints": ({0: [(0, 3), (1, 9)]}, None, None, False, None),
    "raised at the end of a segment": ({0: [(0, 3), (1, 9)], 2: [(2, 3), (3, 3)]}, 3, 4, False, (1, EPOCH)),
    "raised where an epoch ends": ({0: [(0, 3), (1, 9)], 2: [(2, 4), (3, 4)]}, None, None, False, (1, EPOCH)),
    "raised, alone in the first segment": ({0: [(0, 9)], 1: [(1, 4), (2, 4)]}, None, None, False, (0, EPOCH)),
    "lowered at the beginning of a segment": ({0: [(0, 3), (1, 3)], 2: [(2, 1), (3, 3)]}, 3, 4, False, (2, EPOCH)),
    "lowered, the last of all": ({0: [(0, 3), (1, 3)], 2: [(2, 1)]}, 3, 4, False, (2, EPOCH)),
    "a leader that knew less wrote on": ({0: [(0, 7), (1, 7)], 2: [(2, 3), (3, 3)]}, 7, 4, False, None),
    "the last epoch is not listed": ({0: [(0, 3), (1, 3), (2, 9)]}, 3, 3, False, (2, UNLISTED_EPOCH)),
    "several batches of an epoch that is not listed yet": ({0: [(0, 3), (1, 9), (2, 9)]}, 3, 3, False, None),
    "no leader epoch at all": ({0: [(0, None), (1, None)]}, 3, 2, False, None),
    "raised beyond the next segment": ({0: [(0, 3), (700, 3)], 2: [(2, 3), (3, 3)]}, 3, 4, False, (700, OVERLAP)),
    "cleaned segments, and one that the cleaner merged": (
        {0: [(0, 3), (2, 3), (3, 3)], 2: [(2, 3), (3, 3)]},
        3,
        4,
        False,
        None,
    ),
    "a gap before the last of all": ({0: [(0, 3), (1, 3)], 2: [(2, 3), (900, 3)]}, 3, 3, False, (900, GAP)),
    "a gap before the last of all, and nothing noted": ({0: [(0, 3), (900, 3)]}, None, None, False, (900, GAP)),
    "a gap that the high watermark shows": ({0: [(0, 3), (900, 3)]}, 3, 901, False, None),
    "a gap before the last of a cleaned segment": (
        {0: [(0, 3), (90, 3)], 200: [(200, 3), (201, 3)]},
        3,
        100,
        False,
        None,
    ),
    "a gap between segments": ({0: [(0, 3), (1, 3)], 200: [(200, 3)]}, 3, 2, False, None),
    "a gap farther up": ({0: [(0, 3), (90, 3), (91, 3)]}, 3, 2, False, None),
    "the name of a segment is cut off its text": ({2: [(2, 3), (3, 3)], None: [(0, 3), (1, 3)]}, 3, 4, False, None),
    "it has no other segment": ({None: [(0, 3), (1, 3)]}, 3, 4, False, None),
    "the same, and its last epoch is raised": ({2: [(2, 3), (3, 3)], None: [(0, 3), (1, 9)]}, 3, 4, False, (1, EPOCH)),
    "a gap that damage made": ({0: [(0, 3), (90, 3)]}, 3, 2, True, None),
}
CONTRADICTED = {name: expected for name, (*_, expected) in GRID.items() if expected is not None}


def epochs_of(topic: str, base: int | None, log: Log) -> list[EpochOfSegment]:
    """One row for each leader epoch of a segment."""
    found: dict[int | None, EpochOfSegment] = {}
    before = None
    for offset, leader_epoch in log:
        gap = None if before is None else offset - before - 1
        first = found.get(leader_epoch)
        begins, batches = (offset, 1) if first is None else (first.begins, first.batches + 1)
        batch = offset, offset, 100 * offset, 100, gap
        found[leader_epoch] = EpochOfSegment(topic, 0, "raw:1", base, leader_epoch, batches, begins, offset, *batch)
        before = offset
    return list(found.values())


Rows = tuple[list[CapturedFile], list[CheckpointEntry], list[EpochOfSegment]]


def rows_of(names: object) -> Rows:
    segments: list[CapturedFile] = []
    noted: list[CheckpointEntry] = []
    epochs: list[EpochOfSegment] = []
    for topic, (logs, highest_epoch, high_watermark, is_damaged, _) in GRID.items():
        if topic not in names:  # type: ignore[operator]
            continue
        noted += [] if highest_epoch is None else [checkpoint("leader_epoch", highest_epoch, topic, start=0)]
        noted += [] if high_watermark is None else [checkpoint("high_watermark", high_watermark, topic)]
        for base, log in logs.items():
            bad = (unreadable(log[-1][0]),) if is_damaged else ()
            segments.append(captured(topic, end=log[-1][0] + 1, base=base, first_offset=log[0][0], unreadable=bad))
            epochs += epochs_of(topic, base, log)
    return segments, noted, epochs


@pytest.mark.parametrize("name", GRID)
def test_what_is_contradicted_at_the_end_of_a_segment(name: str) -> None:
    segments, checkpoints, epochs = rows_of([name])
    found = contradicted_batches(epochs, segments, of_copies(checkpoints))
    expected = GRID[name][4]
    assert [(batch.base_offset, reason) for batch, reason in found] == ([] if expected is None else [expected])


def test_a_contradicted_batch_damages_its_copy_and_is_quarantined() -> None:
    segments, checkpoints, epochs = rows_of(GRID)
    copies = covered(*segments, checkpoints=checkpoints, epochs=epochs)
    damaged = {row.topic: row for row in copies if row.status == "DAMAGED" and not GRID[row.topic][3]}
    assert {topic: (row.damaged_offset or 0) - 1 for topic, row in damaged.items()} == {
        name: offset for name, (offset, _) in CONTRADICTED.items()
    }
    assert {row.unreadable_bytes for row in damaged.values()} == {100}
    found = [row for row in quarantine(segments, checkpoints, epochs, ()) if row.length != 9]
    assert {(row.topic, row.position, row.length, row.next_offset, row.reason) for row in found} == {
        (name, 100 * offset, 100, offset + 1, reason) for name, (offset, reason) in CONTRADICTED.items()
    }
    assert {row.path for row in found if row.topic == "lowered, the last of all"} == {
        "raw:1/lowered, the last of all/2"
    }


def test_damage_before_and_after_a_contradicted_batch_adds_to_it() -> None:
    segments, checkpoints, epochs = rows_of(["raised at the end of a segment"])
    for next_offset, highest in ((1, 2), (9, 9)):
        damaged = [replace(segments[0], unreadable=(unreadable(next_offset),)), *segments[1:]]
        (row,) = covered(*damaged, checkpoints=checkpoints, epochs=epochs)
        assert (row.damaged_offset, row.unreadable_bytes) == (highest, 109)


def test_a_leader_epoch_of_only_a_contradicted_batch_proves_nothing() -> None:
    """It would show that a newer leader truncated the batches after it."""
    segments, checkpoints, epochs = rows_of(["raised at the end of a segment"])
    (row,) = covered(*segments, checkpoints=checkpoints, epochs=epochs)
    assert (row.leader_epoch, row.truncated) == (3, None)
    believed = [replace(each, batches=2) for each in epochs]
    (row,) = covered(*segments, checkpoints=checkpoints, epochs=believed)
    assert (row.leader_epoch, row.truncated is not None) == (9, True)


REFUTED = RefutedBatch("t", 0, "raw:1", "p", 100, 50, 4, 6)
BY_CRC = Quarantined("t", 0, "raw:1", "p", 100, 50, "CORRUPT_BATCH: its CRC does not fit", None, 7)


def test_a_batch_that_two_transactions_depend_on_is_quarantined_once() -> None:
    assert list(quarantine((), (), (), [REFUTED, REFUTED])) == [BY_CRC]


def test_a_range_of_console_text_is_quarantined_once_for_its_file() -> None:
    """Its rows of kind `printed` repeat it for each coordinator partition."""
    file = captured(source="console:1", kind="console", topic=None, partition=None, unreadable=(unreadable(),))
    found = list(quarantine([file, replace(file, topic="t", partition=0, kind=PRINTED)], (), (), ()))
    assert found == [Quarantined(None, None, "console:1", file.path, 61, 9, "CORRUPT_BATCH", None, None)]


def test_a_corrupt_batch_lowers_the_coverage_of_its_copy_once() -> None:
    rows = covered(captured(unreadable=(unreadable(3),)), captured(source="raw:2"))
    (first, second) = lowered(rows, [REFUTED, REFUTED])
    assert (first.status, first.detail) == ("DAMAGED", "damaged stretches; a batch whose CRC does not fit")
    assert (first.damaged_offset, first.unreadable_bytes) == (7, 59)
    assert second == rows[1]
    assert list(lowered([first, second], [REFUTED])) == [first, second]
