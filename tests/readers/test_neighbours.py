"""Fields without a CRC against their neighbours: offsets, leader epochs."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from tests.support.log_bytes import encode_legacy, to_bytes
from tests.support.log_notation import TS, N
from tests.support.segments import opened, read_rows
from txnlib.readers import batch_headers
from txnlib.readers.fingerprints import resume_position
from txnlib.readers.header_columns import ReaderState


def read(batches: list[bytes], base_offset: int = 0) -> tuple[list[int], list[tuple[int, str]]]:
    """Which batches were read, and which were not and why."""
    segment = opened(b"".join(batches), base_offset=base_offset)
    starts = {sum(map(len, batches[:number])): number for number in range(len(batches) + 1)}
    kept = [starts[row["position"]] for row in read_rows("record_batches", segment)]
    (row,) = read_rows("segments", segment)
    lost = []
    for bad in row["unreadable"]:
        first, behind = starts[bad["position"]], starts[bad["position"] + bad["length"]]
        lost += [(number, bad["reason"]) for number in range(first, behind)]
    return kept, lost


def log_of(epochs: list[int], first: int = 0) -> list[bytes]:
    return [to_bytes(N(at=first + at, ts=TS, partition_leader_epoch=epoch)) for at, epoch in enumerate(epochs)]


CONTRADICTED = "CORRUPT_BATCH: its leader epoch contradicts those of its neighbours"
#: leader epochs in the order of offsets -> the one batch whose epoch is wrong, if one is.
EPOCHS: list[tuple[list[int], int | None]] = [
    ([3, 3, 3], None),
    ([3, 3, 7], None),
    ([3, 7, 7, 8], None),
    ([3, 3, 7, 3, 3], 2),
    ([3, 7, 3], 1),
    ([7, 3, 3, 3], 0),
    ([7, 3, 7], 1),
    ([3, 3, 1, 3], 2),
    ([3, 3, 1], 2),
    # Without the other, either could stand: both are kept, and the leader epoch checkpoint decides.
    ([3, 1], None),
    ([3, 9, 4], None),
    ([3, 9, 4, 9], 2),
    ([3, 3, 9, 4, 12], None),
    ([5, 9, 4], 2),
    ([3, 3, 0, 4, 4], 2),
    # A leader that knew less wrote on: that is no damage.
    ([7, 7, 3, 3], None),
    ([7, 7, 3, 4, 4], None),
    ([7, 7, 5, 3, 3], None),
    # Who has none contradicts no one.
    ([3, -1, 3], None),
    ([7, -1, 3], None),
    ([3, 3, -2, 3], 2),
]


@pytest.mark.parametrize("block", [65_536, 4, 3, 2])
@pytest.mark.parametrize(("epochs", "wrong"), EPOCHS)
def test_leader_epochs_never_fall_as_offsets_rise(monkeypatch, epochs, wrong, block):
    monkeypatch.setattr(batch_headers, "BLOCK", block)
    kept, lost = read(log_of(epochs))
    reason = "CORRUPT_BATCH" if wrong is not None and epochs[wrong] < -1 else CONTRADICTED
    assert lost == ([] if wrong is None else [(wrong, reason)])
    assert kept == [number for number in range(len(epochs)) if number != wrong]


def test_a_batch_beside_a_damaged_one_keeps_its_epoch():
    log = log_of([3, 3, 7, 3, 7])
    log[3] = log[3][:-1] + b"\xff"
    assert read(log) == ([0, 1, 2, 4], [(3, "CORRUPT_BATCH")])


def test_message_sets_have_no_leader_epoch():
    log = [*log_of([3]), encode_legacy(1, b"k", b"v", magic=1), *log_of([3, 3], first=2)]
    assert read(log) == ([0, 1, 2, 3], [])


def test_every_changed_bit_of_an_epoch_costs_its_batch_unless_it_could_be():
    """The first may be of an older leader, the last of a newer one."""
    log = log_of([5] * 6)
    for number in range(6):
        for bit in range(32):
            epoch = (5 ^ 1 << bit).to_bytes(4, "big")
            changed = [*log[:number], log[number][:12] + epoch + log[number][16:], *log[number + 1 :]]
            is_lower = bool(1 << bit & 5)
            is_possible = (number == 0 and is_lower) or (number == 5 and not is_lower and bit < 31)
            kept, _ = read(changed)
            assert kept == [other for other in range(6) if other != number or is_possible], (number, bit)


@pytest.mark.parametrize("base_offset", [0, 500, 2**62, 2**63 - 10])
def test_offsets_lie_less_than_2_to_31_above_the_name_of_a_segment(base_offset):
    log = [to_bytes(N(at=0, ts=TS)) for _ in range(4)]
    for number in range(4):
        for offset in {
            base_offset + number,
            base_offset - 1,
            -1,
            2**63 - 1,
            -(2**63),
            base_offset + 2**31,
            base_offset + 2**31 - 1,
        }:
            if not -(2**63) <= offset < 2**63:
                continue
            offsets = [base_offset + other for other in range(4)]
            offsets[number] = offset
            batches = [at.to_bytes(8, "big", signed=True) + batch[8:] for at, batch in zip(offsets, log, strict=True)]
            is_possible = base_offset <= offset < min(base_offset + 2**31, 2**63 - 1)
            # An offset that nothing above contradicts is believed at the end, and nowhere else.
            is_believed = offset == base_offset + number or (is_possible and number == 3)
            kept, lost = read(batches, base_offset)
            assert kept == [other for other in range(4) if other != number or is_believed], (number, offset)
            assert [other for other, _ in lost] == [] if is_believed else [number]


def test_no_last_offset_leaves_int64():
    batch = to_bytes(N(at=2**63 - 5, to=2**63 - 2, ts=TS))
    assert read([batch], 2**63 - 10) == ([0], [])
    beyond = (2**63 - 3).to_bytes(8, "big") + batch[8:]
    assert read([beyond], 2**63 - 10) == ([], [(0, "CORRUPT_BATCH")])


def test_offsets_may_be_missing_where_a_log_was_compacted():
    log = [to_bytes(N(at=at, ts=TS)) for at in (0, 7, 2**30, 2**31 - 1)]
    assert read(log) == ([0, 1, 2, 3], [])


def noted(batches: list[bytes]) -> dict[str, Any]:
    (row,) = read_rows("segments", opened(b"".join(batches)))
    return row


def test_reading_resumes_with_the_epoch_of_the_last_batch_unless_the_next_denies_it():
    first, higher, lower = log_of([5, 5]), log_of([6], first=2), log_of([4, 4], first=2)
    row = noted(first)
    for more, expected in (([], 5), (higher, 5), ([bytes(200)], 5), (lower, None)):
        content = b"".join([*first, *more])
        at = resume_position(content, len(content), row["landmarks"])
        assert at == (None if expected is None else ReaderState(len(b"".join(first)), 1, expected))


@pytest.mark.parametrize("misplaced", [1, 300, 2**30])
def test_between_damaged_places_an_offset_needs_one_above_it(misplaced):
    log = [to_bytes(N(at=at, ts=TS)) for at in range(6)]
    broken = log[1][:-1] + b"\xff"
    wrong = (2 + misplaced).to_bytes(8, "big") + log[2][8:]
    for pair in ([broken, wrong, broken], [broken, wrong, log[0]]):
        kept, lost = read([log[0], *pair, *log[4:]])
        assert kept == [0, 4, 5] if misplaced > 1 else [0, 2, 4, 5]
        assert [number for number, _ in lost] == [number for number in range(6) if number not in kept]


def test_a_wrong_epoch_costs_no_other_batch_unless_two_readings_agree():
    """One bit of one leader epoch is wrong, in logs whose epochs rise. What is lost beside that batch is an unreadable
    range."""
    lost_beside = 0
    for seed in range(600):
        chance = random.Random(seed)
        epochs = list(
            itertools.accumulate(
                chance.choices([0, 1, 2, 5], [6, 2, 1, 1], k=chance.randrange(2, 8)), initial=chance.randrange(9)
            )
        )
        wrong, bit = chance.randrange(len(epochs)), chance.randrange(32)
        log = log_of(epochs)
        log[wrong] = log[wrong][:12] + (epochs[wrong] ^ 1 << bit).to_bytes(4, "big") + log[wrong][16:]
        kept, lost = read(log)
        assert sorted([*kept, *(number for number, _ in lost)]) == list(range(len(epochs)))
        lost_beside += sum(number != wrong for number, _ in lost)
    assert lost_beside <= 3
