"""Each premise of a world decides something that no other one does: a case beside one that differs in it alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.dossier_samples import (
    BEFORE_MS,
    COMPACTED,
    COPY,
    DECISION,
    FACTS,
    LOST,
    MARKER,
    MINUTE,
    NOON,
    ONE,
    ORPHAN,
    SPAN,
    judged,
)
from txnlib.core.cluster_metadata import Election
from txnlib.core.copies import CopyBeside, LeaderEpoch, TruncatedEpoch
from txnlib.core.rows import TopicPartition
from txnlib.core.verdicts.clock_bounds import ClockBounds
from txnlib.core.verdicts.dossier import (
    Carried,
    EarlierAudit,
    EpochStamps,
    Hole,
    OddStep,
    Owner,
    SiblingMarkers,
    UnexplainedCommit,
)
from txnlib.core.verdicts.reason import Reason
from txnlib.core.verdicts.scene import COMPARED, MOST_COMPARED
from txnlib.core.verdicts.whose_clock import Clocks
from txnlib.core.verdicts.world import AXIOMS, Axiom

#: Leaders changed since, and nothing shows how.
CHANGED = {"copy": {"leader_epoch": 4}}
#: A COMMIT nine minutes before noon, whose marker is not here: leaders changed before, too.
OLD = replace(
    DECISION, first_record_offset=20, last_record_offset=22, start_ms=NOON - 10 * MINUTE, said_ms=NOON - 9 * MINUTE,
    prepared_ms=None, completed_ms=NOON - 8 * MINUTE,
)  # fmt: skip
MARKED_EARLIER = {"span": {"markers": ()}, "copy": {"leader_epoch": 4, "log_start_offset": 20}}
UNSTAMPED = {"stamps": (replace(SPAN.stamps[0], before_ms=None),), "markers": ()}
#: Retention removed the beginning.
CUT_OFF = {"copy": {"log_start_offset": 20}}
#: Nothing shows that no other leader followed.
BARE = {"copy": {"checkpoint_leader_epoch": None}}
STAMPED = {"stamps": (replace(SPAN.stamps[0], before_ms=NOON - 500),)}
AT_ANOTHER = {"coordinator_copy": {"leader": "2"}}


def bounds(lower: int, upper: int, pairs: int = 3, clock: str = "foo-5@3") -> dict[str, Clocks]:
    """What others show of the clocks of the coordinator and of the partition's leader in epoch 3."""
    found = ClockBounds(coordinator_clock="2", clock=clock, lower_ms=lower, upper_ms=upper, pairs=pairs)
    return {"clocks": Clocks(bounds=(found,))}


def only_left(**claim: object) -> dict[str, object]:
    """Compaction left no decision of the id, whose newest record is at offset 95."""
    return {"dossier": {"decisions": ()}, "coordinator": COMPACTED, "claim": {"record_offset": 95, **claim}}


RECENT = replace(OLD, start_ms=BEFORE_MS - 4 * MINUTE, said_ms=BEFORE_MS - 3 * MINUTE, completed_ms=BEFORE_MS - 1_000)
ONE_COMMIT = {"dossier": {"decisions": (RECENT,)}, **MARKED_EARLIER, **AT_ANOTHER}
EXTRA = replace(MARKER, offset=45, ms=NOON - MINUTE + 5_000, first_offset=42)
UNCLEAN = Election(offset=7, at_ms=NOON + MINUTE, leader=1, leader_epoch=4, is_unclean=True)
STEP = OddStep(
    state_before="Ongoing", epoch_before=5, start_before_ms=1, listed_before=(), offset=61, state="Ongoing", epoch=5,
    start_ms=1,
)  # fmt: skip
TOMBSTONE = {"state": None, "epoch": None, "start_ms": None}
HERE = (TopicPartition("foo", 5),)
BORN = Election(offset=3, at_ms=NOON + 20 * MINUTE, leader=1, leader_epoch=0, is_first=True)
SEEN = EarlierAudit(
    run_id="first", as_of_ms=NOON + 2 * MINUTE, copied_ms=NOON + 2 * MINUTE, topic_id="AAAA", first_batch_crc=77,
    newest_leader_epoch=3,
    carried=Carried(coordinator_partition=3, until_offset=80, decisions=(DECISION,)),
)  # fmt: skip

#: An ABORT that its coordinator has no marker of: it began before the first batch, and the batch was before its end.
OPENED = replace(
    LOST, outcome="ABORT", start_ms=NOON - 500, said_ms=NOON + 2 * MINUTE, prepared_ms=None,
    completed_ms=NOON + 2 * MINUTE,
)  # fmt: skip
#: An election that may have lost decisions of its coordinator, and nothing shows which leaders the partition had.
ELECTED = {"coordinator": {"elections": (UNCLEAN,)}, **BARE}
ALONE = replace(
    LOST, outcome="ABORT", first_epoch=5, decided_epoch=6, transaction_version=2, client_transaction_version=2,
    prepared_ms=None,
)  # fmt: skip
#: A decision without times, in front of the one whose marker is here.
UNDATED = replace(
    DECISION, first_record_offset=50, last_record_offset=52, start_ms=None, said_ms=None, prepared_ms=None,
    completed_ms=None,
)  # fmt: skip
LATE = replace(LOST, start_ms=NOON + 29 * MINUTE, said_ms=NOON + 30 * MINUTE, completed_ms=NOON + 31 * MINUTE)
CUT = {"truncated": (TruncatedEpoch(leader_epoch=3, from_offset=40),)}
WEEK = 7 * 24 * 60 * MINUTE
AN_ABORT = replace(DECISION, outcome="ABORT", state="CompleteAbort")
ITS_MARKER = {"span": {"markers": (replace(MARKER, type="ABORT"),)}}
#: As far as the captures' clock may differ from the coordinator's.
SEEN_BEHIND_MS = LOST.completed_ms + 5 * MINUTE


def seen_at(ms: int, **changes: object) -> EarlierAudit:
    """An earlier audit of copies of that time, which read nothing of the coordinator."""
    return replace(SEEN, copied_ms=ms, **{"carried": None, **changes})


def read_until(ms: int) -> dict[str, object]:
    """A second COMMIT marker here, which only a decision in a hole can explain; and when what an earlier audit read in
    front of the hole was written."""
    carried = replace(SEEN.carried, until_ms=ms)
    return {"markers": (MARKER, EXTRA), "earlier": (replace(SEEN, carried=carried),)}


def hidden_until(**changes: object) -> dict[str, object]:
    """An earlier audit that read all that is left, and of what it lacked the newest was a minute older."""
    hole = Hole(end_offset=75, ms=NOON + MINUTE)
    carried = {"copied_ms": SEEN.copied_ms, "holes": (hole,), **changes}
    span = {"earlier": (replace(SEEN, carried=replace(SEEN.carried, **carried)),)}
    return {**only_left(), "claim": {"record_offset": 80}, "span": span, **CHANGED}


def elsewhere(ms: int, kind: str) -> tuple[SiblingMarkers, ...]:
    """A marker on another partition that no decision explains."""
    commit = {"newest_unexplained_commit_ms": ms} if kind == "COMMIT" else {}
    return (SiblingMarkers(topic="foo", partition=6, newest_unexplained_ms=ms, **commit),)


#: It began before the first batch, and was complete at once.
EARLY = replace(OPENED, said_ms=NOON + 1, completed_ms=NOON + 2)

#: (the premise, what is changed, whether it is proven that no COMMIT includes the records)
GRID = [
    # What is in front of the first batch is older.
    (Axiom.ORDER, {"dossier": {"decisions": (OLD,)}, **MARKED_EARLIER}, True),
    (Axiom.ORDER, {"dossier": {"decisions": (OLD,)}, **MARKED_EARLIER, "span": UNSTAMPED}, False),
    (Axiom.ORDER, {"dossier": {"decisions": (UNDATED, DECISION)}, **CHANGED}, True),
    # A stamp in front that is left shows that retention removed no marker behind it.
    (Axiom.ORDER, {"dossier": {"decisions": (replace(OLD, outcome="ABORT"),)}, **CUT_OFF, "span": {
        "markers": (), "stamps": (replace(SPAN.stamps[0], before_ms=OLD.said_ms - 1),)}}, False),
    (Axiom.ORDER, {"dossier": {"decisions": (replace(OLD, outcome="ABORT"),)}, **CUT_OFF, "span": {
        "markers": (), "stamps": (replace(SPAN.stamps[0], before_ms=OLD.said_ms),)}}, True),
    # Three pairs show how far two clocks are apart; fewer do not; and clocks that moved prove little.
    (Axiom.CLOCKS, {**ONE_COMMIT, "facts": bounds(-5, 5)}, True),
    (Axiom.CLOCKS, {**ONE_COMMIT, "facts": bounds(-5, 5, 2)}, False),
    (Axiom.CLOCKS, {**ONE_COMMIT, "facts": bounds(990, 999)}, False),
    (Axiom.CLOCKS, {**ONE_COMMIT, "facts": bounds(900, 905)}, True),
    (Axiom.CLOCKS, {**ONE_COMMIT, "facts": bounds(600, 0)}, False),
    (Axiom.CLOCKS, {**ONE_COMMIT, "facts": {}}, False),
    # Two that were never compared may be apart as far as one of them is from others.
    (Axiom.CLOCKS, {**ONE_COMMIT, "dossier": {"decisions": (OLD,)}, "facts": {}}, True),
    (Axiom.CLOCKS, {**ONE_COMMIT, "dossier": {"decisions": (OLD,)}, "facts": bounds(-9**7, -9**7, 3, "9")}, False),
    # Nor does a clock of a former leader differ by more than five minutes, whatever it stamped.
    (Axiom.CLOCKS, {"span": {"markers": (replace(MARKER, leader_epoch=2, ms=MARKER.ms - 4 * MINUTE),)}}, True),
    (Axiom.CLOCKS, {"span": {"markers": (replace(MARKER, leader_epoch=2, ms=MARKER.ms - 6 * MINUTE),)}}, False),
    (Axiom.CLOCKS, {"dossier": {"decisions": (OLD,)}, **MARKED_EARLIER, "span": {"markers": (), "stamps": (
        replace(SPAN.stamps[0], leader_epoch=2),)}}, True),
    (Axiom.CLOCKS, {**only_left(), "coordinator": replace(COMPACTED, hole_ms=BEFORE_MS - 6 * MINUTE), **AT_ANOTHER,
        **CHANGED, "span": {"markers": ()}}, True),
    (Axiom.CLOCKS, {**only_left(), "coordinator": replace(COMPACTED, hole_ms=BEFORE_MS - 4 * MINUTE), **AT_ANOTHER,
        **CHANGED, "span": {"markers": ()}}, False),
    # Of two stamps that contradict each other, neither counts.
    (Axiom.CLOCKS, {"span": {"stamps": (*SPAN.stamps, EpochStamps(leader_epoch=2, before_ms=ONE - MINUTE))}}, True),
    # A Prepare has the clock of its own leader epoch; the record behind it has another one.
    (Axiom.CLOCKS, {"dossier": {"decisions": (replace(DECISION, coordinator_epoch=18, stamped_epoch=19,
        said_ms=NOON + MINUTE),)}}, True),
    (Axiom.CLOCKS, {"dossier": {"decisions": (replace(DECISION, stamped_epoch=19, said_ms=NOON + MINUTE),)}}, False),
    # A decision that is complete has its marker here, unless it may be lost.
    (Axiom.EVERY_MARKER, {"dossier": {"decisions": (DECISION, LOST)}}, False),
    (Axiom.EVERY_MARKER, {"dossier": {"decisions": (DECISION, replace(LOST, partitions=()))}}, True),
    (Axiom.EVERY_MARKER, {"dossier": {"decisions": (DECISION, replace(LOST, outcome="ABORT"))}, **CHANGED}, True),
    (Axiom.EVERY_MARKER, {"dossier": {"decisions": (DECISION, replace(LOST, outcome="ABORT"))}}, False),
    # A second marker does not take the first decision's.
    (Axiom.EVERY_MARKER, {"dossier": {"decisions": (OLD, DECISION)}, "span": {"markers": (
        replace(MARKER, offset=35, ms=OLD.said_ms + 10), MARKER)}}, True),
    # Only an ABORT may be one by hand, or one that its coordinator lost.
    (Axiom.ONE_DECISION, {"span": {"markers": (MARKER, EXTRA)}}, False),
    (Axiom.ONE_DECISION, {"span": {"markers": (MARKER, replace(EXTRA, type="ABORT"))}}, True),
    (Axiom.ONE_DECISION, {"span": {"markers": (MARKER, replace(EXTRA, type="ABORT"))}, **CHANGED}, False),
    (Axiom.ONE_DECISION, {"dossier": {"decisions": (AN_ABORT,)}, **ITS_MARKER, **CHANGED}, True),
    (Axiom.ONE_DECISION, {"dossier": {"decisions": (LOST, replace(AN_ABORT, first_record_offset=80,
        last_record_offset=82, start_ms=NOON + 2_000, said_ms=NOON + 3_000, completed_ms=NOON + 4_000))}, **ITS_MARKER,
        **CHANGED, **AT_ANOTHER}, False),
    # A marker elsewhere that no decision explains: others may be lost, too, but for what compaction removed.
    (Axiom.ONE_DECISION, {"span": {"siblings": elsewhere(NOON, "ABORT")}, **CHANGED}, False),
    (Axiom.ONE_DECISION, {**only_left(), "span": {"siblings": elsewhere(NOON + 15 * MINUTE, "COMMIT")}}, True),
    (Axiom.ONE_DECISION, {**only_left(), "span": {"siblings": elsewhere(NOON + 15 * MINUTE + 1, "COMMIT")}}, False),
    # A repeat is written before the decision is complete.
    (Axiom.ONE_DECISION, {"span": {"markers": (MARKER, replace(MARKER, offset=41, ms=MARKER.ms + 10))}}, True),
    # A hidden decision is complete before the next one begins.
    (Axiom.ONE_AT_A_TIME, {**only_left(), "dossier": {"decisions": (replace(LOST, outcome="ABORT",
        first_record_offset=92, last_record_offset=94),)}, "span": STAMPED, **BARE}, True),
    (Axiom.ONE_AT_A_TIME, {**only_left(), "dossier": {"decisions": (replace(LOST, outcome="ABORT",
        start_ms=NOON + 500, first_record_offset=92, last_record_offset=94),)}, "span": STAMPED, **BARE}, False),
    (Axiom.ONE_AT_A_TIME, {**only_left(), "coordinator": replace(COMPACTED, hole_offset=94), "dossier": {"decisions": (
        replace(LOST, outcome="ABORT", first_record_offset=92, last_record_offset=94),)}, "span": STAMPED,
        **BARE}, True),
    # A later one that may be a COMMIT lacks its marker, too: which of them includes the records is not known.
    (Axiom.ONE_AT_A_TIME, {**only_left(), "claim": {"record_offset": 97}, "dossier": {"decisions": (replace(LOST,
        outcome="ABORT", first_record_offset=92, last_record_offset=94), replace(LATE, partitions=None,
        first_record_offset=95, last_record_offset=97))}, "span": STAMPED, **BARE}, False),
    # What began before an ABORT ends with it, whatever its coordinator lost, if it was not complete before.
    (Axiom.ONE_AT_A_TIME, {"dossier": {"decisions": (DECISION, OPENED)}, "span": STAMPED, **ELECTED}, True),
    (Axiom.ONE_AT_A_TIME, {"dossier": {"decisions": (DECISION, replace(OPENED, start_ms=NOON - 499))}, "span": STAMPED,
        **ELECTED}, False),
    (Axiom.ONE_AT_A_TIME, {"dossier": {"decisions": (DECISION, replace(OPENED, said_ms=None))}, "span": STAMPED,
        **ELECTED}, False),
    (Axiom.ONE_AT_A_TIME, {"dossier": {"decisions": (DECISION, replace(OPENED, partitions=None))}, "span": STAMPED,
        **ELECTED}, False),
    (Axiom.ONE_AT_A_TIME, {"dossier": {"decisions": (DECISION, replace(OPENED, said_ms=NOON + 1,
        completed_ms=NOON + 2))}, "span": STAMPED, **ELECTED}, False),
    *((Axiom.ONE_AT_A_TIME, {**only_left(), "dossier": {"decisions": (replace(OPENED, first_record_offset=first,
        last_record_offset=94),)}, "coordinator": replace(COMPACTED, elections=(UNCLEAN,)), "span": STAMPED, **BARE},
        is_proven) for first, is_proven in [(90, True), (89, False)]),
    # Compaction keeps the newest record of an id, and hides none of an id behind it.
    (Axiom.COMPACTION, {**only_left(), **CHANGED}, False),
    (Axiom.COMPACTION, {"dossier": {"decisions": (replace(DECISION, coordinator_partition=4),)}, "coordinator": replace(
        COMPACTED, hole_offset=60), "claim": {"record_offset": 95}, **CHANGED}, False),
    (Axiom.COMPACTION, {**only_left(), "coordinator": replace(COMPACTED, hole_ms=MARKER.ms + 9), "span": STAMPED,
        **BARE}, True),
    (Axiom.COMPACTION, {"coordinator": COMPACTED, "claim": {"complete_from": 0}, **CHANGED}, True),
    (Axiom.COMPACTION, {"coordinator": COMPACTED, "claim": {"complete_from": 61}, **CHANGED}, True),
    (Axiom.COMPACTION, {**only_left(state="Empty", producer_epoch=0, highest_epoch=9), **CHANGED,
        "span": {"markers": ()}}, True),
    (Axiom.COMPACTION, {**only_left(), "coordinator": replace(COMPACTED, hole_ms=MARKER.ms + 9), **BARE, "span": {
        **STAMPED, **ITS_MARKER["span"]}}, True),
    # Behind an ABORT whose marker is lost, too, a COMMIT may be hidden in a log that is not whole.
    (Axiom.LOSS, {"dossier": {"decisions": (DECISION, EARLY)}, "span": STAMPED, **BARE}, True),
    (Axiom.LOSS, {"dossier": {"decisions": (DECISION, EARLY)}, "span": STAMPED, **BARE,
        "coordinator_copy": {"damaged_offset": 95, "status": "DAMAGED"}}, False),
    # What an election, a crash or a topic that was made again may lose.
    (Axiom.LOSS, only_left(), True),
    (Axiom.LOSS, {**only_left(), "place": {"elections": (replace(UNCLEAN, is_unclean=False, is_after_crash=True),)}},
        False),
    (Axiom.LOSS, {"coordinator": {"elections": (UNCLEAN,)}}, False),
    (Axiom.LOSS, {"coordinator": {"elections": (replace(UNCLEAN, at_ms=NOON - 10 * MINUTE),)}}, True),
    (Axiom.LOSS, {"coordinator": {"elections": (replace(UNCLEAN, is_unclean=False, is_after_crash=True),)}}, False),
    (Axiom.LOSS, {"coordinator": {"truncated_ids": (132,)}, "coordinator_copy": CUT}, False),
    (Axiom.LOSS, {"coordinator": {"truncated_ids": (133,)}, "coordinator_copy": CUT}, True),
    (Axiom.LOSS, {"coordinator": {"truncated_ids": (132,)}}, True),
    # An epoch that no record has.
    (Axiom.EPOCHS, {"claim": {"highest_epoch": 5}}, True),
    (Axiom.EPOCHS, {"claim": {"highest_epoch": 4}}, False),
    (Axiom.EPOCHS, {"span": {"coordinator_epoch": 20}, "coordinator": {"newest_coordinator_epoch": 19}}, False),
    (Axiom.EPOCHS, only_left(highest_epoch=5), True),
    (Axiom.EPOCHS, only_left(highest_epoch=4), False),
    (Axiom.EPOCHS, only_left(highest_epoch=4, owner=Owner.ROTATED), True),
    (Axiom.EPOCHS, {"claim": {"highest_epoch": 4, "owner": Owner.ROTATED}}, False),
    (Axiom.EPOCHS, {**only_left(highest_epoch=0), "span": {"producer_epoch": 0, "first_epoch": 0,
        "markers": ()}}, True),
    # A COMMIT has the epoch of its records, or the one after; under transactions v2 always that.
    *((Axiom.EPOCHS, {"dossier": {"decisions": (DECISION, replace(LOST, decided_epoch=epoch, transaction_version=version
        ))}, **CHANGED}, is_proven) for epoch, version, is_proven in [
        (4, 0, True), (5, 0, False), (6, 0, False), (7, 0, True), (5, 2, True), (6, 2, False), (7, 2, True),
        (None, 0, False)]),
    # One of an epoch of its own is the only one, unless its coordinator lost records behind its first one.
    *((Axiom.EPOCHS, {"dossier": {"decisions": (DECISION, replace(ALONE, said_ms=said_ms, completed_ms=said_ms + 1))},
        "claim": {"odd_steps": (replace(STEP, epoch=7, offset=offset),)}, "span": STAMPED, **BARE}, is_proven)
      for offset, said_ms, is_proven in [(70, NOON + 1_000, True), (71, NOON + 1_000, False), (71, NOON - 501, True)]),
    # Transactions v2 leave nothing open below their coordinator's epoch.
    (Axiom.REGISTERED, {**only_left(producer_epoch=5), "facts": {"transaction_version": 2}}, True),
    (Axiom.REGISTERED, {**only_left(producer_epoch=6), "facts": {"transaction_version": 2}}, False),
    # A log that is younger than the batch; an id that cannot have expired.
    (Axiom.ORIGINS, {"coordinator": {"elections": (replace(BORN, at_ms=NOON - 20 * MINUTE),)}}, True),
    (Axiom.ORIGINS, {"coordinator": {"elections": (BORN,)}}, False),
    (Axiom.ORIGINS, {"coordinator": {"elections": (replace(BORN, offset=None),)}}, True),
    (Axiom.ORIGINS, {"claim": {"is_first_assigned": True, "created_ms": NOON - 3 * MINUTE}}, True),
    (Axiom.ORIGINS, {"claim": {"is_first_assigned": True, "created_ms": NOON + 10 * MINUTE}}, False),
    (Axiom.ORIGINS, {"claim": {"created_ms": NOON + 10 * MINUTE}}, True),
    (Axiom.ORIGINS, {"dossier": ORPHAN}, True),
    (Axiom.ORIGINS, {"dossier": ORPHAN, "span": {"markers": (MARKER,)}}, False),
    (Axiom.ORIGINS, {"dossier": ORPHAN, "span": {"markers": (replace(MARKER, ms=NOON - 9 * 24 * 60 * MINUTE),)}}, True),
    (Axiom.ORIGINS, {"dossier": ORPHAN, "span": {"markers": (replace(MARKER, ms=ONE - WEEK),)}}, True),
    (Axiom.ORIGINS, {"dossier": ORPHAN, "span": {"markers": (replace(MARKER, ms=ONE - WEEK + 1),)}}, False),
    # What is lost behind a record is of no older producer id that no coordinator knows.
    (Axiom.ORIGINS, {"dossier": ORPHAN, "coordinator": {"lost_commit": "offset 3 of bar-0", "lost_commit_ms": NOON,
        "lost_commit_since_ms": NOON + 6 * MINUTE}}, False),
    (Axiom.ORIGINS, {"dossier": ORPHAN, "coordinator": {"lost_commit": "offset 3 of bar-0", "lost_commit_ms": NOON,
        "lost_commit_since_ms": NOON + 6 * MINUTE + 1}}, True),
    # What a log lacks, though no offset is missing.
    (Axiom.CONTENT, {"coordinator": {"newest_marker_epoch": 19}}, True),
    (Axiom.CONTENT, {"coordinator": {"newest_marker_epoch": 20}}, False),
    (Axiom.CONTENT, {"coordinator": {"lacked_epoch": 7}}, False),
    (Axiom.CONTENT, {"coordinator": {"lost_commit": "offset 3 of bar-0", "lost_commit_ms": NOON}}, False),
    (Axiom.CONTENT, {"coordinator": {"lost_commit": "offset 3 of bar-0", "lost_commit_ms": ONE - MINUTE}}, True),
    (Axiom.CONTENT, {"claim": {"odd_steps": (STEP,)}}, True),
    (Axiom.CONTENT, {"claim": {"odd_steps": (replace(STEP, epoch=7),)}}, False),
    (Axiom.CONTENT, {"claim": {"odd_steps": (replace(STEP, epoch=7, state="PrepareAbort"),)}}, True),
    (Axiom.CONTENT, {"claim": {"odd_steps": (replace(STEP, epoch=8, state="PrepareAbort"),)}}, False),
    (Axiom.CONTENT, {"claim": {"odd_steps": (replace(STEP, epoch=6, state="PrepareCommit"),)}}, True),
    (Axiom.CONTENT, {"claim": {"odd_steps": (replace(STEP, epoch_before=0, epoch=1, state="PrepareCommit"),)}}, True),
    (Axiom.CONTENT, {"claim": {"odd_steps": (replace(STEP, epoch_before=0, epoch=2, state="PrepareCommit"),)}}, False),
    (Axiom.CONTENT, {"claim": {"odd_steps": (replace(STEP, start_ms=2, state="PrepareCommit"),)}}, False),
    (Axiom.CONTENT, {"claim": {"odd_steps": (replace(STEP, state="Empty"),)}}, True),
    (Axiom.CONTENT, {"claim": {"odd_steps": (replace(STEP, state="Empty", listed_before=HERE),)}}, False),
    (Axiom.CONTENT, {"claim": {"odd_steps": (replace(STEP, **TOMBSTONE),)}}, True),
    (Axiom.CONTENT, {"claim": {"odd_steps": (replace(STEP, **TOMBSTONE, listed_before=HERE),)}}, False),
    # What an earlier audit read fills a hole; and what it saw open was not yet ended.
    (Axiom.CARRIED, {**only_left(), "span": {"earlier": (SEEN,)}, **CHANGED}, False),
    (Axiom.CARRIED, {**only_left(), "claim": {"record_offset": 80}, "span": {"earlier": (SEEN,)}, **CHANGED}, True),
    (Axiom.CARRIED, {**only_left(), "claim": {"record_offset": 80}, "span": {"earlier": (
        replace(SEEN, topic_id="BBBB"),)}, **CHANGED}, False),
    # A decision in a hole is behind what was read in front of it, and behind the copies of that audit.
    (Axiom.CARRIED, {**only_left(), "span": read_until(EXTRA.ms)}, True),
    (Axiom.CARRIED, {**only_left(), "span": read_until(EXTRA.ms + 1)}, False),
    *((Axiom.CARRIED, {**only_left(record_ms=record_ms), "span": {
        "siblings": elsewhere(copied_ms - behind_ms, "COMMIT"), "earlier": (replace(SEEN, copied_ms=copied_ms,
        carried=replace(SEEN.carried, is_current=True)),)}}, is_proven)
      for copied_ms in (NOON + 7 * MINUTE,) for behind_ms, record_ms, is_proven in [
        (5 * MINUTE - 1, ONE, True), (5 * MINUTE, ONE, False), (5 * MINUTE, None, False),
        # That copy was older than its id's newest record, which it did not have.
        (5 * MINUTE, copied_ms, True)]),
    # What was complete before the copy of an audit was not lost behind it.
    (Axiom.CARRIED, hidden_until(), True),
    (Axiom.CARRIED, hidden_until(holes=(Hole(end_offset=75, ms=SEEN.copied_ms + 1),)), False),
    (Axiom.CARRIED, hidden_until(holes=(Hole(end_offset=75, ms=NOON + MINUTE, until_run="other"),)), False),
    # No leader that could have lost its marker followed until an audit saw it open still.
    *((Axiom.CARRIED, {"dossier": {"decisions": (DECISION, LOST)}, "span": {"earlier": audits}, **CHANGED}, is_proven)
      for audits, is_proven in [
        ((seen_at(SEEN_BEHIND_MS - 1),), False),
        ((seen_at(SEEN_BEHIND_MS),), True),
        ((seen_at(SEEN_BEHIND_MS, newest_leader_epoch=None),), False),
        ((seen_at(SEEN.copied_ms), seen_at(SEEN_BEHIND_MS, run_id="second", as_of_ms=ONE)), True),
    ]),
    # A copy that is older than one before shows no leader for longer.
    (Axiom.CARRIED, {"dossier": {"decisions": (DECISION, LATE)}, "copy": {"leader_epoch": 6}, "span": {"earlier": (
        seen_at(NOON + 10 * MINUTE, newest_leader_epoch=4),
        seen_at(NOON + 50 * MINUTE, run_id="second", as_of_ms=ONE))}}, False),
    (Axiom.CARRIED, {"span": {"earlier": (replace(SEEN, carried=replace(SEEN.carried, odd_steps=(
        replace(STEP, epoch=8),))),)}}, False),
    (Axiom.CARRIED, {"span": {"earlier": (replace(SEEN, carried=replace(SEEN.carried, unexplained=(
        UnexplainedCommit(topic="foo", partition=6, ms=NOON),))),)}}, False),
]  # fmt: skip


@pytest.mark.parametrize(("axiom", "changes", "is_proven"), GRID)
def test_a_premise_decides(axiom, changes, is_proven):
    assert judged(**changes).safety[2].holds is is_proven


def test_each_premise_is_in_the_grid_but_that_of_the_first_statement():
    assert {axiom for axiom, _, _ in GRID} == AXIOMS.keys() - {Axiom.FILES}


def led(*epochs: tuple[int, int]) -> tuple[LeaderEpoch, ...]:
    return tuple(LeaderEpoch(leader_epoch=epoch, from_offset=offset) for epoch, offset in epochs)


#: The newest leader epoch in the checkpoint of a copy of the coordinator, and where it begins -> whether the log of its
#: leader, with leader epochs 0 and 2 from offset 3 on, has all that it had.
BESIDE = [
    ((1, 2), False), ((1, 3), True), ((1, 4), True), ((2, 2), True), ((0, 0), True), ((3, 2), True), ((None, 2), True),
    ((1, None), True),
]  # fmt: skip


@pytest.mark.parametrize(("beside", "is_proven"), BESIDE)
def test_a_leader_that_lacked_records_of_a_coordinator_wrote_others_which_are_lost(beside, is_proven):
    copies = (CopyBeside("raw:9", "9", *beside),)
    row = judged(coordinator_copy={"leader_epochs": led((0, 0), (2, 3)), "copies_beside": copies})
    assert row.safety[2].holds is is_proven
    assert is_proven or "a checkpoint of broker 9 has leader epoch 1 from offset 2 on" in row.safety[2].says


@pytest.mark.parametrize(
    ("reason", "is_proven"),
    [
        (Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR, True),
        (Reason.TRANSACTIONAL_ID_EXPIRED, True),
        (Reason.PRODUCER_ID_ROTATED, True),
        (Reason.EXPECTED, False),
        (None, False),
    ],
)
def test_no_decision_follows_a_night_on_which_a_producer_id_had_been_given_up(reason, is_proven):
    """It was open under the leader of its first batch; a marker that was lost was written before."""
    seen = replace(SEEN, reason=reason, carried=None)
    row = judged(**{**only_left(), "claim": {"owner": Owner.ROTATED}, "span": {"earlier": (seen,)}, **CHANGED})
    assert row.safety[2].holds is is_proven


@pytest.mark.parametrize(("apart_ms", "is_proven"), [(0, False), (1, True)])
def test_an_id_that_went_on_after_a_tombstone_may_have_expired_again(apart_ms, is_proven):
    """The append of the tombstone may have timed out. `apart_ms`: how much shorter than the expiration of ids is the
    time since that night."""
    seen = replace(SEEN, reason=Reason.TRANSACTIONAL_ID_EXPIRED, carried=None)
    assert COPY.known_until_ms is not None
    assert seen.copied_ms is not None
    expires_after = COPY.known_until_ms - seen.copied_ms + apart_ms
    facts = {"thresholds": replace(FACTS.thresholds, transactional_id_expiration_ms=expires_after)}
    row = judged(
        **{**only_left(), "claim": {"owner": Owner.ROTATED}, "span": {"earlier": (seen,)}, **CHANGED}, facts=facts
    )
    assert row.safety[2].holds is is_proven


@pytest.mark.parametrize(("leader_epoch", "is_proven"), [(3, True), (0, False)])
def test_what_lacks_its_marker_in_front_was_lost_by_a_leader_before(leader_epoch, is_proven):
    """The log has its beginning. Where its first leader wrote the batch, nothing was lost in front of it."""
    checks = tuple(replace(each, partition_leader_epoch=leader_epoch) for each in SPAN.checks)
    older = replace(OLD, outcome="ABORT")
    whole = {"leader_epoch": 4, "log_start_offset": 0, "read_from_offset": 0, "first_offset": 0}
    row = judged(dossier={"decisions": (older, DECISION)}, span={"checks": checks}, copy=whole)
    assert row.safety[2].holds is is_proven


@pytest.mark.parametrize(("kind", "is_proven"), [("COMMIT", False), ("ABORT", True)])
def test_a_commit_elsewhere_that_no_decision_explains_closes_every_proof(kind, is_proven):
    commit = {"newest_unexplained_commit_ms": NOON} if kind == "COMMIT" else {}
    sibling = SiblingMarkers(topic="foo", partition=6, newest_unexplained_ms=NOON, **commit)
    row = judged(span={"siblings": (sibling,)})
    assert row.safety[2].holds is is_proven
    if not is_proven:
        assert "foo-6" in row.safety[2].says


def test_of_a_busy_producer_only_what_follows_a_sure_marker_is_compared():
    busy = [
        replace(
            DECISION, first_record_offset=3 * number, last_record_offset=3 * number + 2,
            **{name: getattr(DECISION, name) - (60 - number) * MINUTE
               for name in ("start_ms", "said_ms", "prepared_ms", "completed_ms")},
        )
        for number in range(60)
    ]  # fmt: skip
    marked = tuple(
        replace(MARKER, offset=number, ms=each.said_ms + 10, first_offset=None) for number, each in enumerate(busy)
    )
    claim = {"record_offset": 3 * 60}
    known = {"dossier": {"decisions": tuple(busy)}, "claim": claim}
    assert len(busy) > MOST_COMPARED > COMPARED
    assert judged(**known, span={"markers": marked}, **CHANGED).safety[2].holds
    row = judged(**known, span={"markers": ()}, **CHANGED)
    assert not row.safety[2].holds
    assert "readings" in row.safety[2].says
