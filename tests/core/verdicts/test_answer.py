"""What the worlds of a case answer, in words: which decision lacks its marker, and what closes every other world."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.verdicts.test_case import case_of
from tests.core.verdicts.test_world import AT_ANOTHER, BARE, CHANGED, LATE, OLD, STAMPED, UNDATED, only_left
from tests.support.dossier_samples import (
    COMPACTED,
    COORDINATOR,
    DECISION,
    DOSSIER,
    FACTS,
    LOST,
    MARKER,
    MINUTE,
    NOON,
    ORPHAN,
    SPAN,
    judged,
)
from txnlib.core.verdicts import world
from txnlib.core.verdicts.cause import causes
from txnlib.core.verdicts.dossier import MOST_MARKERS, Carried, EarlierAudit, Owner
from txnlib.core.verdicts.no_commit import answer_of
from txnlib.core.verdicts.reason import Reason
from txnlib.core.verdicts.scene import is_complete

FOREIGN = replace(LOST, partitions=())
BEHIND = replace(
    LOST, outcome="ABORT", first_record_offset=80, last_record_offset=82, start_ms=NOON + MINUTE, said_ms=NOON + MINUTE,
    prepared_ms=None, completed_ms=NOON + MINUTE,
)  # fmt: skip
OF_ANOTHER_EPOCH = replace(LOST, decided_epoch=8)
#: The decisions -> the last offset of the newest that has no marker here and may include open records.
UNMARKED = [
    ((DECISION,), None),
    ((DECISION, LOST), 72),
    ((DECISION, FOREIGN), None),
    ((DECISION, replace(LOST, partitions=None)), None),
    ((DECISION, OF_ANOTHER_EPOCH), None),
    ((DECISION, LOST, replace(BEHIND, decided_epoch=8)), 72),
    ((OLD, DECISION), None),
    ((DECISION, LOST, BEHIND), 82),
]  # fmt: skip


@pytest.mark.parametrize(("decisions", "expected"), UNMARKED)
def test_the_newest_decision_without_its_marker_is_named(decisions, expected):
    found = answer_of(case_of(replace(DOSSIER, decisions=decisions))).unmarked
    assert (None if found is None else found.last_record_offset) == expected


def test_what_its_coordinator_lost_is_named():
    lacking = replace(FACTS, coordinators=(replace(COORDINATOR, lacked_epoch=7),))
    said = "a marker that no decision explains has coordinator epoch 7, which its log lacks"
    for facts, expected in ((lacking, said), (FACTS, None)):
        of = case_of(facts=facts)
        answer = answer_of(of)
        assert answer.lost_decisions == expected
        shown = [each.evidence for each in causes(Reason.PARTITION_NOT_IN_TRANSACTION, of, answer)]
        assert (said in shown) is (expected is not None)


@pytest.mark.parametrize(("most", "is_proven"), [(1, True), (0, False)])
def test_a_search_ends_after_its_choices(most, is_proven, monkeypatch):
    """One for the marker here, one for its end."""
    monkeypatch.setattr(world, "MOST_CHOICES", most)
    proof = judged().safety[2]
    assert proof.holds is is_proven
    assert ("not all were compared" in proof.says) is not is_proven


def test_of_more_decisions_than_a_dossier_has_each_that_is_complete_has_its_marker():
    many = tuple(replace(DECISION, partitions=(), last_record_offset=200 + number) for number in range(MOST_MARKERS))
    assert judged(dossier={"decisions": many}, span={"markers": ()}).safety[2].holds


GONE = EarlierAudit(
    run_id="first", as_of_ms=NOON, topic_id="AAAA", first_batch_crc=77,
    carried=Carried(coordinator_partition=3, until_offset=80, decisions=(
        DECISION, replace(LOST, outcome="ABORT", first_record_offset=64, last_record_offset=66, start_ms=NOON - 3_000,
        said_ms=NOON - 2_000, prepared_ms=None, completed_ms=NOON - 1_500), replace(LOST, outcome="ABORT"))),
)  # fmt: skip
FIRST_EPOCH = {
    "copy": {"leader_epoch": 0, "checkpoint_leader_epoch": 0},
    "span": {"checks": tuple(replace(each, partition_leader_epoch=0) for each in SPAN.checks)},
}
ABORTED = replace(LOST, outcome="ABORT", state="CompleteAbort", first_record_offset=92, last_record_offset=94)
SECOND = replace(
    ABORTED, first_record_offset=96, last_record_offset=98, start_ms=NOON - 900, said_ms=NOON + 3_000,
    prepared_ms=None, completed_ms=NOON + 4_000,
)  # fmt: skip
EMPTY = {"state": "Empty", "producer_epoch": 0, "highest_epoch": 9}
UNMARKED_SPAN = {"markers": ()}
COMPACTION = "compaction removed records of __transaction_state-3 below offset 90"
#: What is changed, whether that is proven -> words of what is said, or of the first fact or the last.
SAID = [
    ({"span": {"earlier": (GONE,)}, **CHANGED}, False, "an earlier audit read a decision at offset 72, which is gone"),
    ({"dossier": {"decisions": (DECISION, LOST)}}, False, "a COMMIT marker is due here"),
    # The marker may be of either of two decisions.
    ({"dossier": {"decisions": (DECISION, replace(LOST, start_ms=MARKER.ms + 30, said_ms=MARKER.ms + 40,
        prepared_ms=None, completed_ms=MARKER.ms + 50))}, **CHANGED, **AT_ANOTHER}, False,
        "the marker here may be of another decision"),
    # An ABORT that lacks its marker is due nowhere.
    ({"dossier": {"decisions": (DECISION, replace(LOST, outcome="ABORT"))}}, False, "or a decision lacks its marker"),
    ({"span": {"markers": (MARKER, replace(MARKER, offset=45, ms=NOON))}}, False, "or a decision lacks its marker"),
    # Nor is the marker of a COMMIT that is not complete.
    ({"dossier": {"decisions": (DECISION, replace(LOST, state="PrepareCommit", completed_ms=None))}, "span": {
        "markers": (MARKER, replace(MARKER, offset=45, ms=NOON))}}, False, "or a decision lacks its marker"),
    ({"dossier": {"decisions": (DECISION, LOST)}, "span": {"markers": (MARKER, replace(MARKER, offset=45, ms=NOON))}},
        False, "a COMMIT marker is due here"),
    ({**only_left(), "dossier": {"decisions": (replace(LATE, partitions=None),)}, **CHANGED}, False,
        "compaction removed the records that show whether the decision includes this partition"),
    # The log that had the records of an orphan may be gone, however old the holes of the others are.
    ({"dossier": ORPHAN, "coordinator": replace(COMPACTED, hole_ms=NOON - 10 * MINUTE), **CHANGED}, False,
        "no coordinator has a record of the producer id"),
    (FIRST_EPOCH, True, "leader epoch 0 of its first batch is still the newest in the log and in its checkpoint"),
    ({**only_left(), "dossier": {"decisions": (ABORTED,)}, "span": STAMPED, **BARE}, True,
        "its coordinator decided ABORT, and only the marker is missing"),
    ({**only_left(), "dossier": {"decisions": (ABORTED,)}, "span": STAMPED, **BARE}, True,
        "offset 94 of __transaction_state-3: ABORT of its epoch"),
    ({**only_left(), "claim": {"record_offset": 99}, "dossier": {"decisions": (ABORTED, SECOND)}, "span": STAMPED,
        **BARE}, True, "offset 98 of __transaction_state-3: ABORT of its epoch"),
    ({}, True, "__transaction_state-3 has every record since offset 0"),
    (only_left(), True, f"{COMPACTION}: what they decided was before the first batch, or left its marker"),
    ({**only_left(**EMPTY), "span": UNMARKED_SPAN}, True,
        f"{COMPACTION}, but the last record of bar assigned the producer id, and stays"),
    ({**only_left(**EMPTY | {"producer_epoch": 1}), "span": UNMARKED_SPAN}, True, "or left its marker"),
    ({**only_left(**EMPTY | {"state": "CompleteCommit"}), "span": UNMARKED_SPAN}, True, "or left its marker"),
    ({**only_left(**EMPTY, owner=Owner.ROTATED), "span": UNMARKED_SPAN}, True, "or left its marker"),
    ({**only_left(), "dossier": {"decisions": (DECISION,)}, "span": {"earlier": (replace(GONE, carried=replace(
        GONE.carried, until_offset=95, decisions=(DECISION,))),)}}, True,
        "has every record since offset 0, with what earlier audits read"),
    ({**only_left(is_first_assigned=True, first_record_offset=90), "span": UNMARKED_SPAN}, True,
        f"{COMPACTION}, but none since offset 90, which assigned the producer id"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "is_proven", "words"), SAID)
def test_it_says_what_it_rests_on(changes, is_proven, words):
    proof = judged(**changes).safety[2]
    assert proof.holds is is_proven
    told = proof.witnesses if is_proven else (proof.says,)
    assert any(each.endswith(words) or words in proof.says for each in told), told


@pytest.mark.parametrize("changes", [{"dossier": ORPHAN}, {"coordinator_copy": {"is_decoded": False}}])
def test_a_coordinator_that_does_not_show_every_decision_is_no_witness(changes):
    (kept,) = judged(**changes).safety[2].witnesses
    assert "leader epoch 3 of its first batch is still the newest" in kept


@pytest.mark.parametrize(
    ("state", "completed_ms", "expected"),
    [(None, None, False), (None, 5, True), ("PrepareCommit", None, False), ("CompleteCommit", None, True),
     ("CompleteAbort", None, True), ("PrepareAbort", 5, True)],
)  # fmt: skip
def test_a_decision_is_complete_by_its_state_or_by_the_time_of_its_last_record(state, completed_ms, expected):
    assert is_complete(replace(UNDATED, state=state, completed_ms=completed_ms)) is expected
