"""Three nights of one cluster: what an earlier night read of a coordinator that has lost it since.

A disk was replaced, or an unclean election cut the log: topic and topic id are the same. More of
tests/jobs/test_world_nights.py.
"""

from dataclasses import replace

import pytest

from tests.support.audits import AuditTables
from tests.support.cluster import MINUTE, TXN, Copy
from tests.support.nights import CAPTURED, audited_nights, leader_epochs, nights_of
from tests.support.refutations import Open, expect_of, other, refuted
from tests.support.schedules import Expected, Schedule, Schedules, Story, Told

NIGHTS = Schedules()
#: The answers of today that are not those expected, by the night and the schedule.
OPEN: Open = {}
FIRST, SECOND_NIGHT, THIRD = CAPTURED
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"


def since(s: Story, at: int, captured: int, *, kept: int, is_checkpointed: bool) -> Copy:
    """A copy of the coordinator that has the first records of before an instant, and those behind it."""
    log = sorted(nights_of(s).logs[TXN, s.number], key=lambda entry: entry.at)
    if captured < at:
        epochs = {"leader_epochs": ((0, 0),)} if is_checkpointed else {}
        return Copy(1, captured, taken=captured, topic_id=TOPIC_ID, **epochs)
    left = [*log[:kept], *(each for each in log if at < each.at <= captured)]
    own = tuple(replace(entry, offset=offset) for offset, entry in enumerate(left))
    epochs = {"leader_epochs": ((0, 0), (2, kept)) if kept else ((2, 0),)} if is_checkpointed else {}
    mark = {"high_watermark": len(own)}
    return Copy(1, captured, taken=captured, topic_id=TOPIC_ID, own=own, keep=lambda e: False, **mark, **epochs)


def copies(s: Story, at: int, *, kept: int, is_checkpointed: bool) -> None:
    c = nights_of(s)
    for captured in CAPTURED:

        def copy(captured: int = captured) -> None:
            s.copied(Copy(1, captured, taken=captured, leader_epochs=leader_epochs(s, captured)))
            s.coordinator(since(s, at, captured, kept=kept, is_checkpointed=is_checkpointed))

        c.copied[captured].append(copy)


LOST_AT = 80 * MINUTE


def prepared(*, kept: int, is_checkpointed: bool) -> Schedule:
    """The first night read a PrepareCommit that lists the partition, and waits for the leader of another one. Then its
    coordinator lost it."""

    def of(s: Story) -> Expected:
        s.c.note(other(s), "Empty", 900_000 + s.number, 0, (), 0)
        s.note("Empty", MINUTE)
        s.beat(0, 28 * MINUTE)
        gone = (s.topic, 1)
        s.begin(30 * MINUTE, [s.place, gone])
        s.end(31 * MINUTE, start=30 * MINUTE, places=[s.place, gone], lost=[s.place, gone], complete=False)
        for at in (90, 100, 160):
            s.c.note(other(s), "Empty", 900_000 + s.number, at, (), at * MINUTE, leader_epoch=2)
        s.beat(60 * MINUTE, 100 * MINUTE, 150 * MINUTE)
        copies(s, LOST_AT, kept=kept, is_checkpointed=is_checkpointed)
        nights_of(s).expect(s, s.expect("STUCK"), refuted(s), refuted(s))
        return refuted(s)

    return of


NIGHTS |= {
    "prepared-before-a-new-disk": prepared(kept=0, is_checkpointed=True),
    "prepared-before-a-new-disk-without-a-checkpoint": prepared(kept=0, is_checkpointed=False),
    "prepared-before-an-unclean-election": prepared(kept=2, is_checkpointed=True),
    "prepared-before-an-unclean-election-without-a-checkpoint": prepared(kept=2, is_checkpointed=False),
}


def committed(*, is_checkpointed: bool) -> Schedule:
    """The first night read a whole COMMIT, with its marker. Then an unclean election cut both logs: the records are
    open again."""

    def of(s: Story) -> Expected:
        c = nights_of(s)
        s.c.note(other(s), "Empty", 900_000 + s.number, 0, (), 0)
        s.note("Empty", MINUTE)
        s.beat(0, 28 * MINUTE)
        s.begin(30 * MINUTE)
        s.end(31 * MINUTE, start=30 * MINUTE)
        for at in (90, 100, 160):
            s.c.note(other(s), "Empty", 900_000 + s.number, at, (), at * MINUTE, leader_epoch=2)
        s.beat(100 * MINUTE, 150 * MINUTE, leader_epoch=1)
        for captured in CAPTURED:

            def copy(captured: int = captured) -> None:
                log = sorted(c.logs[s.place], key=lambda entry: entry.at)
                mark = next(n for n, e in enumerate(log) if e.producer_id == s.pid and e.marker)
                left = [e for n, e in enumerate(log) if n != mark and e.at <= captured]
                own = tuple(replace(entry, offset=offset) for offset, entry in enumerate(left))
                whole = Copy(1, captured, taken=captured, topic_id=TOPIC_ID)
                cut = replace(whole, own=own, keep=lambda e: False, high_watermark=len(own))
                s.copied(whole if captured < LOST_AT else cut)
                s.coordinator(since(s, LOST_AT, captured, kept=2, is_checkpointed=is_checkpointed))

            c.copied[captured].append(copy)
        c.expect(s, s.expect(None), refuted(s), refuted(s))
        return refuted(s)

    return of


NIGHTS |= {
    "committed-before-both-logs-were-cut": committed(is_checkpointed=True),
    "committed-before-both-logs-were-cut-without-a-checkpoint": committed(is_checkpointed=False),
}


def expired(s: Story) -> Expected:
    """A COMMIT whose marker is not there, on the first night; then its id expires, and is cleaned."""
    s.c.note(other(s), "Empty", 900_000 + s.number, 0, (), 0)
    s.note("Empty", MINUTE)
    s.beat(0, 28 * MINUTE)
    s.begin(30 * MINUTE)
    s.end(31 * MINUTE, start=30 * MINUTE, lost=[s.place])
    s.note(None, 90 * MINUTE)
    for at in (91, 100, 160):
        s.c.note(other(s), "Empty", 900_000 + s.number, at, (), at * MINUTE)
    s.beat(36 * MINUTE, 60 * MINUTE, 100 * MINUTE, 150 * MINUTE)
    for captured in CAPTURED:

        def copy(captured: int = captured) -> None:
            s.copied(Copy(1, captured, taken=captured, leader_epochs=leader_epochs(s, captured)))
            keep = (lambda e: e.key != s.id) if captured == THIRD else (lambda e: True)
            s.coordinator(Copy(1, captured, taken=captured, keep=keep))

        nights_of(s).copied[captured].append(copy)
    told = s.expect("HANGING", or_verdict="UNKNOWN")
    nights_of(s).expect(s, told, told, told)
    return told


NIGHTS["commit-without-its-marker-whose-id-expired"] = expired


@pytest.fixture(scope="session")
def nights(tmp_path_factory) -> dict[int, tuple[AuditTables, Told]]:
    return audited_nights(NIGHTS, tmp_path_factory.mktemp("nights"))


@pytest.mark.parametrize("night", [1, 2, 3])
@pytest.mark.parametrize("name", NIGHTS)
def test_what_a_coordinator_lost_is_still_known(nights, name, night):
    tables, told = nights[CAPTURED[night - 1]]
    if name in told:
        key = f"{night}: {name}"
        expect_of(tables, {key: told[name]}, key, OPEN)
