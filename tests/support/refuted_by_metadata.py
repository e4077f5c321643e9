"""Schedules: records of the metadata log that refute a proof, or bear it out."""

from dataclasses import replace

from tests.support.cluster import HOUR, MINUTE, Copy, Entry
from tests.support.refutations import (
    END,
    NO_COMMIT,
    NOTHING_ELSE,
    OLD_ENOUGH,
    compacted,
    one_leader,
    refuted,
    safe,
    tick,
    unsafe,
    with_metadata,
)
from tests.support.refuted_orphans import orphan
from tests.support.schedules import Expected, Schedule, Schedules, Story

# ---- What the cluster's metadata log shows

METADATA = Schedules()


@METADATA
def producer_id_that_the_cluster_never_allocated(s: Story) -> Expected:
    with_metadata(s)
    orphan(s)
    foreign_id = 5_000_000
    s.c.logs[s.place] = [replace(e, producer_id=foreign_id) if e.producer_id == s.pid else e for e in s.c.logs[s.place]]
    return unsafe(s, pid=foreign_id, finds=("PRODUCER_ID_NEVER_ALLOCATED",), fails=NOTHING_ELSE, says="cluster")


@METADATA
def nobodys_producer_id_of_this_cluster(s: Story) -> Expected:
    with_metadata(s)
    orphan(s)
    return safe(s)


def of_a_block(allocated: int, *, is_safe: bool, owned: bool = False) -> Schedule:
    """Stamps around it are two hours old, and the controller handed out its block at an instant."""

    def of(s: Story) -> Expected:
        with_metadata(s, allocated=allocated)
        if owned:
            s.note("Empty", 58 * MINUTE)
        tick(s, 59 * MINUTE)
        s.write(HOUR)
        tick(s, 61 * MINUTE)
        one_leader(s)
        return safe(s) if is_safe else unsafe(s, fails=OLD_ENOUGH)

    return of


METADATA |= {"block_handed_out_before_the_stamps": of_a_block(50 * MINUTE, is_safe=True)}


#: Leaders since, by minutes, each with its in-sync set if it changed.
CLEAN, UNCLEAN = (("2", 0, None), ("1", MINUTE, None)), (("1", 0, (1,)), ("2", MINUTE, (2,)), ("1", 2 * MINUTE, (1,)))
LEADERLESS = (("-1", 0, None), ("1", MINUTE, None))


def elections(*events: tuple[str, int, tuple[int, ...] | None], recreated: bool = False, is_safe: bool) -> Schedule:
    """Leaders since the first open batch, each with its in-sync set; compaction hides what the coordinator decided."""

    def of(s: Story) -> Expected:
        log = with_metadata(s)
        assert log is not None
        s.note("Empty", -4 * HOUR)
        s.note("Empty", 25 * MINUTE, epoch=1)
        compacted(s)
        at = -3 * HOUR if recreated else 20 * MINUTE
        for number, (leader, later, isr) in enumerate(events):
            log.elect(s.topic, int(leader), at + later + number, isr=isr)
        if recreated:
            log.remove(s.topic, -2 * HOUR)
            log.topic(s.topic, 2, -2 * HOUR)
        s.beat(0)
        s.write(MINUTE)
        s.beat(10 * MINUTE)
        s.beat(100 * MINUTE, leader_epoch=0 if recreated else len(events))
        return safe(s) if is_safe else unsafe(s, fails=NO_COMMIT)

    return of


@METADATA
def unclean_election_that_the_leaders_checkpoint_does_not_have(s: Story) -> Expected:
    """5.4.3 c: the checkpoint has one leader epoch, and the metadata log an unclean election behind it."""
    log = with_metadata(s)
    assert log is not None
    s.note("Empty", -4 * HOUR)
    s.note("Empty", 25 * MINUTE, epoch=1)
    compacted(s)
    s.beat(0)
    s.write(MINUTE)
    s.beat(10 * MINUTE, 19 * MINUTE)
    for leader, at in ((1, 0), (2, MINUTE), (1, 2 * MINUTE)):
        log.elect(s.topic, leader, 20 * MINUTE + at, isr=(leader,))
    one_leader(s)
    return refuted(s)


def beside_clean_elections(newest: int, tail: bool, *, is_safe: bool) -> Schedule:
    """Two clean elections; the newest leader epoch of the log, and a truncated tail in the copy of broker 2."""

    def of(s: Story) -> Expected:
        elections(*CLEAN, is_safe=True)(s)
        if newest != len(CLEAN):
            s.beat(110 * MINUTE, leader_epoch=newest)
        if tail:
            own = {"producer_id": s.pid + 900, "producer_epoch": 0, "sequence": 0, "stamp": 12 * MINUTE}
            s.copied(Copy(1, END), Copy(2, 11 * MINUTE, taken=END, own=(Entry(at=0, offset=5, **own),)))
        return safe(s) if is_safe else refuted(s)

    return of


METADATA |= {
    "leader_epoch_that_the_metadata_log_does_not_have": beside_clean_elections(5, False, is_safe=False),
    "clean_elections_beside_a_truncated_tail": beside_clean_elections(2, True, is_safe=False),
    "clean_elections_and_nothing_else": beside_clean_elections(2, False, is_safe=True),
    "clean_elections_since": elections(*CLEAN, is_safe=True),
    "unclean_election_since": elections(*UNCLEAN, is_safe=False),
    "unclean_election_of_a_deleted_topic_of_the_name": elections(*UNCLEAN, recreated=True, is_safe=True),
    "minute_without_a_leader_before_4_2": elections(*LEADERLESS, is_safe=True),
}
#: Last: their producer ids are the newest.
METADATA |= {
    "block_handed_out_five_minutes_ago": of_a_block(END - 5 * MINUTE, is_safe=False),
    "block_handed_out_five_minutes_ago_to_an_id": of_a_block(END - 5 * MINUTE, is_safe=False, owned=True),
}
FROM_4_2 = Schedules({"minute_without_a_leader_from_4_2": elections(*LEADERLESS, is_safe=False)})
FROM_4_2["clean_elections_since_from_4_2"] = elections(*CLEAN, is_safe=True)
