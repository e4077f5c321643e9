"""Tonight's records against what earlier nights said.

A proof is made anew each night. What an earlier night has read of the same topics stays true, also where it is no
longer there; its sentence does not. More of tests/jobs/test_adverse_nights.py.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.audits import AuditTables
from tests.support.cluster import COORDINATORS, MINUTE, NOON, SECOND, TXN, Copy, Entry, id_in
from tests.support.nights import (
    CAPTURED,
    ThreeNights,
    audited_nights,
    audited_together,
    leader_epochs,
    nights_of,
    together,
)
from tests.support.refutations import Open, expect_of, other, refuted, safe, tick
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told
from txnlib.core.kafka.transaction_log import TransactionLogEntry
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.rows import TopicPartition

pytestmark = pytest.mark.shares("nights")

ONE, V2, ANEW = Schedules(), Schedules(), Schedules()
#: The answers of today that are not those expected, by the night and the schedule.
OPEN: Open = {}
FIRST, SECOND_NIGHT, THIRD = CAPTURED


def open_since_half_past(s: Story, *, moved: int | None = None) -> None:
    """Open since +30 min, with an election at +60: only the coordinator's whole history proves that no COMMIT includes
    it. `moved`: the minute at which another coordinator follows."""
    for at in (0, 2, 33, 46, 64, 88, 118, 140, 170):
        led = 1 if moved is not None and at >= moved else 0
        s.c.note(other(s), "Empty", 900_000 + s.number, 0, (), at * MINUTE, leader_epoch=led)
    s.note("Empty", 0)
    s.beat(MINUTE, 28 * MINUTE)
    s.transaction(29 * MINUTE)
    s.write(30 * MINUTE)
    s.beat(31 * MINUTE)
    s.beat(60 * MINUTE, *(at * MINUTE for at in (76, 100, 150)), leader_epoch=1)


def copies(s: Story, *compacted: int | None) -> None:
    """Of each night: the leader's, with its leader epochs, and the coordinator's, compacted up to a minute."""
    c = nights_of(s)
    for captured, until in zip(CAPTURED, compacted, strict=True):

        def copy(captured: int = captured, until: int | None = until) -> None:
            s.copied(Copy(1, captured, taken=captured, leader_epochs=leader_epochs(s, captured)))
            cleaned = None if until is None else until * MINUTE
            s.coordinator(Copy(1, captured, taken=captured, is_compacted_until=cleaned))
            s.c.copies[s.topic, 1] = [Copy(1, captured, taken=captured)]

        c.copied[captured].append(copy)


# ---- A COMMIT elsewhere, after the first night


def committed_elsewhere(*compacted: int | None, is_decided: bool) -> Schedule:
    """Another partition has a COMMIT of +85 min; if no record explains it, its coordinator lost its tail then."""

    def of(s: Story) -> Expected:
        sibling = (s.topic, 1)
        open_since_half_past(s, moved=None if is_decided else 88)
        s.beat(10 * MINUTE, 50 * MINUTE, 100 * MINUTE, 150 * MINUTE, partition=1)
        if is_decided:
            s.begin(80 * MINUTE, [sibling])
            s.end(85 * MINUTE, start=80 * MINUTE, places=[sibling])
        else:
            s.c.write(sibling, s.pid, 0, 80 * MINUTE)
            s.c.mark(sibling, s.pid, 0, "COMMIT", 85 * MINUTE)
            s.note("Empty", 90 * MINUTE, epoch=1, leader_epoch=1)
        copies(s, None, *compacted)
        later = safe(s) if is_decided else refuted(s)
        nights_of(s).expect(s, safe(s), later, later)
        return later

    return of


ONE |= {
    "commit-elsewhere-that-no-record-explains": committed_elsewhere(None, None, is_decided=False),
    "commit-elsewhere-that-no-record-explained-before-compaction": committed_elsewhere(80, 160, is_decided=False),
    "commit-elsewhere-that-a-record-explains": committed_elsewhere(None, None, is_decided=True),
    "explained-commit-elsewhere-that-was-compacted": committed_elsewhere(110, 160, is_decided=True),
}


def deleted_since(*, is_decided: bool) -> Schedule:
    """The first night read a COMMIT elsewhere, of +32 min, whose segment was deleted before the second one."""

    def of(s: Story) -> Expected:
        sibling, c = (s.topic, 1), nights_of(s)
        open_since_half_past(s, moved=None if is_decided else 33)
        if is_decided:
            s.begin(10 * MINUTE, [sibling])
            s.end(11 * MINUTE, start=10 * MINUTE, places=[sibling])
        else:
            s.c.write(sibling, s.pid, 0, 31 * MINUTE)
            s.c.mark(sibling, s.pid, 0, "COMMIT", 32 * MINUTE)
            s.note("Empty", 40 * MINUTE, epoch=1, leader_epoch=1)
        s.beat(50 * MINUTE, 100 * MINUTE, 150 * MINUTE, partition=1)
        copies(s, None, None, None)
        for captured in (SECOND_NIGHT, THIRD):

            def copy(captured: int = captured) -> None:
                s.c.copies[sibling] = [Copy(1, captured, taken=captured, log_start=2)]

            c.copied[captured].append(copy)
        told = safe(s) if is_decided else refuted(s)
        c.expect(s, told, told, told)
        return told

    return of


ONE |= {
    "commit-elsewhere-that-was-deleted-since": deleted_since(is_decided=False),
    "explained-commit-elsewhere-that-was-deleted-since": deleted_since(is_decided=True),
}


# ---- A tail of the coordinator, which the first night read


def read_and_lost(*, is_committed: bool) -> Schedule:
    """On the first night, the coordinator's log ends with a decision of another id. The log of the next leader epoch
    does not have it; it was below the high watermark, or above."""

    def of(s: Story) -> Expected:
        c, place = nights_of(s), (s.topic, 1)
        open_since_half_past(s, moved=88)
        copies(s, None, None, None)

        def copy() -> None:
            end = sum(entry.at <= FIRST for entry in c.logs[TXN, s.number])
            own = []
            for n, state in enumerate((TransactionState.ONGOING, TransactionState.PREPARE_COMMIT)):
                at = FIRST - (2 - n) * SECOND
                value = TransactionLogEntry(
                    transactional_id=other(s, "lost"), producer_id=910_000 + s.number, producer_epoch=0,
                    transaction_state=state, transaction_partitions=(TopicPartition(*place),), version=0,
                    transaction_timeout_ms=60_000, last_update_timestamp_ms=NOON + at,
                    start_timestamp_ms=NOON + FIRST - 2 * SECOND,
                )  # fmt: skip
                own.append(Entry(at=at, offset=end + n, key=value.transactional_id, value=value, stamp=at))
            mark = end + len(own) if is_committed else end
            s.coordinator(Copy(1, FIRST, taken=FIRST, own=tuple(own), high_watermark=mark))

        c.copied[FIRST].append(copy)
        later = refuted(s) if is_committed else safe(s)
        c.expect(s, None, later, later)
        return later

    return of


ONE |= {
    "tail-of-the-coordinator-that-was-read-and-is-lost": read_and_lost(is_committed=True),
    "tail-of-the-coordinator-above-the-high-watermark": read_and_lost(is_committed=False),
}


# ---- A clock that later pairs measure


def measured_since(skew: int, *, is_safe: bool) -> Schedule:
    """The stamp in front of the batch was by a clock that the first night could not compare. It proves that the batch
    is younger than what compaction may have removed, until pairs of the second night show it ahead."""

    def of(s: Story) -> Expected:
        broker, second, c = 100 + s.number, (s.topic, 1), nights_of(s)
        for place in (s.place, second):
            s.c.leaders[place], s.c.skews[place] = broker, skew
        begun = 21 * MINUTE if not is_safe else 40 * MINUTE
        s.note("Empty", 0)
        tick(s, begun + 30 * SECOND, skew=skew)
        if not is_safe:
            s.note("Ongoing", begun, [s.place])
        s.write(begun + MINUTE)
        if not is_safe:
            s.end(begun + 2 * MINUTE, start=begun, lost=[s.place])
        s.note("Empty", 24 * MINUTE, epoch=1)
        for at in (1, 26, 60, 100, 150):
            s.c.note(other(s), "Empty", 900_000 + s.number, 0, (), at * MINUTE)
        s.beat(80 * MINUTE, 90 * MINUTE, 110 * MINUTE, partition=1)
        tick(s, 65 * MINUTE, 100 * MINUTE, 150 * MINUTE, skew=skew)
        for captured in CAPTURED:

            def copy(captured: int = captured) -> None:
                s.copied(Copy(broker, captured, taken=captured))
                s.c.copies[second] = [Copy(broker, captured, taken=captured)]
                s.coordinator(Copy(1, captured, taken=captured, is_compacted_until=25 * MINUTE))

            c.copied[captured].append(copy)
        later = safe(s) if is_safe else refuted(s)
        c.expect(s, None, later, later)
        return later

    return of


ONE |= {
    "clock-that-the-second-night-measures-twenty-minutes-ahead": measured_since(20 * MINUTE, is_safe=False),
    "clock-that-the-second-night-measures-right": measured_since(0, is_safe=True),
}


# ---- Transactions v2, which the first night did not see


def v2_since(epoch: int, *, is_safe: bool) -> Schedule:
    """The first night lacks the coordinator partition whose records of v2 are older than the batch. Compaction left one
    record of the id, of epoch 9."""

    def of(s: Story) -> Expected:
        c = nights_of(s)
        s.note("Empty", 10 * SECOND)
        s.beat(0)
        s.write(30 * MINUTE, epoch)
        s.note("Empty", 40 * MINUTE, epoch=9)
        for at in (44, 46):
            s.c.note(other(s), "Empty", 900_000 + s.number, 0, (), at * MINUTE)
        s.beat(32 * MINUTE, 60 * MINUTE, 100 * MINUTE, 150 * MINUTE)
        s.c.note(id_in(48, f"v2-{s.number}"), "Empty", 790_000 + s.number, 0, (), MINUTE, version=1)
        for state, at in (("Ongoing", 2), ("PrepareCommit", 3), ("CompleteCommit", 4)):
            of_v2 = {"version": 1, "client_transaction_version": 2, "start": 2 * MINUTE}
            places = [("of-v2", s.number)] if at < 4 else []
            after = 0 if at == 2 else 1
            s.c.note(id_in(48, f"v2-{s.number}"), state, 790_000 + s.number, after, places, at * MINUTE, **of_v2)
            if at == 2:
                s.c.write(places[0], 790_000 + s.number, 0, at * MINUTE + 5)
            if at == 3:
                s.c.mark(places[0], 790_000 + s.number, 1, "COMMIT", at * MINUTE + 5)
        for captured in CAPTURED:

            def copy(captured: int = captured) -> None:
                s.copied(Copy(1, captured, taken=captured, leader_epochs=((0, 0),)))
                s.coordinator(Copy(1, captured, taken=captured, is_compacted_until=45 * MINUTE))
                if captured == FIRST:
                    s.c.copies[TXN, 48] = []
                    s.c.copies["of-v2", s.number] = []
                else:
                    s.c.copies["of-v2", s.number] = [Copy(1, captured, taken=captured)]

            c.copied[captured].append(copy)
        later = safe(s) if is_safe else refuted(s)
        c.expect(s, safe(s), later, later)
        return later

    return of


V2 |= {
    "older-epoch-whose-cluster-turns-out-to-have-v2": v2_since(3, is_safe=False),
    "same-epoch-whose-cluster-turns-out-to-have-v2": v2_since(9, is_safe=True),
}


# ---- Coordinators whose topic was made anew between two nights

OLD, NEW = "AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBB"
MADE_ANEW = 80 * MINUTE


def made_anew(written: int, *, is_safe: bool) -> Schedule:
    """A batch of before or after that. Its producer id is nobody's then, or the id's first one."""

    def of(s: Story) -> Expected:
        c = nights_of(s)
        if is_safe:
            s.note("Empty", 85 * MINUTE)
        else:
            s.note("Empty", 0)
            s.c.note(s.id, "Empty", s.pid + 1, 0, (), 85 * MINUTE)
        s.c.note(other(s), "Empty", 900_000 + s.number, 0, (), 88 * MINUTE)
        tick(s, 0, written - MINUTE, written + MINUTE, 65 * MINUTE, 110 * MINUTE, 150 * MINUTE)
        s.write(written)
        for captured in CAPTURED:

            def copy(captured: int = captured) -> None:
                s.copied(Copy(1, captured, taken=captured, leader_epochs=((0, 0),)))
                for number in range(COORDINATORS):
                    s.c.copies[TXN, number] = [coordinator_at(c, number, captured)]

            c.copied[captured].append(copy)
        told = s.expect("HANGING", or_verdict="" if is_safe else "UNKNOWN", is_safe=is_safe)
        c.expect(s, None if is_safe else safe(s), told, told)
        return told

    return of


def coordinator_at(c: ThreeNights, number: int, captured: int) -> Copy:
    """Of the topic of that night: the second one begins at offset 0 again."""
    if captured < MADE_ANEW:
        return Copy(1, captured, taken=captured, topic_id=OLD)
    log = sorted(c.logs[TXN, number], key=lambda entry: entry.at)
    kept = [entry for entry in log if MADE_ANEW < entry.at <= captured]
    own = tuple(replace(entry, offset=offset) for offset, entry in enumerate(kept))
    mark = {"high_watermark": len(own)}
    return Copy(1, captured, taken=captured, topic_id=NEW, own=own, keep=lambda e: False, **mark)


ANEW |= {
    "batch-older-than-the-coordinators-topic-of-the-second-night": made_anew(30 * MINUTE, is_safe=False),
    "batch-younger-than-the-coordinators-topic-of-the-second-night": made_anew(95 * MINUTE, is_safe=True),
}

CLUSTERS = {"one": together(ONE), "v2": V2, "anew": ANEW}


@pytest.fixture(scope="session")
def nights(tmp_path_factory) -> Callable[[str], dict[int, tuple[AuditTables, Told]]]:
    found: dict[str, dict[int, tuple[AuditTables, Told]]] = {}

    def of(cluster: str) -> dict[int, tuple[AuditTables, Told]]:
        if cluster == "one":
            return audited_together(tmp_path_factory)
        if cluster not in found:
            folder = tmp_path_factory.mktemp("nights")
            found[cluster] = audited_nights(CLUSTERS[cluster], folder)
        return found[cluster]

    return of


@pytest.mark.parametrize("night", [1, 2, 3])
@pytest.mark.parametrize(("cluster", "name"), [(key, name) for key, each in CLUSTERS.items() for name in each])
def test_a_night_is_judged_by_all_that_was_read(nights, cluster, name, night):
    tables, told = nights(cluster)[CAPTURED[night - 1]]
    if name in told:
        key = f"{night}: {name}"
        expect_of(tables, {key: told[name]}, key, OPEN)
