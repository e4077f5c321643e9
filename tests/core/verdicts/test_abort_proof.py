"""Safe to abort: each of the five statements alone, with and without its witnesses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.dossier_samples import (
    CLAIM,
    COORDINATOR,
    COPY,
    DECISION,
    DOSSIER,
    FOO,
    LOST,
    MINUTE,
    NOON,
    ONE,
    ORPHAN,
    SPAN,
    failing,
    judged,
)
from txnlib.core.cluster_metadata import ProducerIdBlock
from txnlib.core.verdicts.cluster_facts import Thresholds
from txnlib.core.verdicts.statements import STATEMENTS, Statement
from txnlib.core.verdicts.whose_clock import Clocks, Difference

#: Statement of docs/rules/abort.md, in order -> words that only this statement has.
IN_ORDER = {
    "IS_OPEN_NOW": "it is open now",
    "NO_COORDINATOR_ENDS_IT": "no coordinator will end it",
    "NO_COMMIT_INCLUDES_IT": "no COMMIT includes it",
    "IS_OLD_ENOUGH": "older than the timeout",
    "NOTHING_ELSE_IS_WRONG": "ERROR or CRITICAL",
}


def test_the_five_statements_are_proven_in_order_each_with_a_witness():
    row = judged()
    assert (row.verdict, row.reason, row.safe_to_abort) == ("HANGING", "WRITTEN_AFTER_MARKER", True)
    assert (
        [proof.name.value for proof in row.safety]
        == list(IN_ORDER)
        == [each.value for each in STATEMENTS]
        == [*Statement]
    )
    assert all(proof.holds and proof.witnesses for proof in row.safety)
    for statement, words in IN_ORDER.items():
        assert [name for name, text in STATEMENTS.items() if words in text] == [statement]
    assert row.abort_command.endswith("abort --topic foo --partition 5 --start-offset 50")
    assert row.do_not_abort_because is None


#: The last producer id of the newest block, less that of the case; whether an id owns it; whether an abort is safe.
BLOCKS = [(0, False, True), (-1, False, False), (-1, True, True), (None, False, True)]


@pytest.mark.parametrize(("behind", "is_owned", "is_safe"), BLOCKS)
def test_a_producer_id_beyond_every_block_is_of_this_cluster_only_if_an_id_owns_it(behind, is_owned, is_safe):
    last = None if behind is None else DOSSIER.producer_id + behind
    blocks = () if last is None else (ProducerIdBlock(first_producer_id=0, last_producer_id=last),)
    row = judged(dossier=DOSSIER if is_owned else ORPHAN, facts={"blocks": blocks})
    assert row.safe_to_abort is is_safe
    if not is_safe:
        only(row, "NOTHING_ELSE_IS_WRONG", "ask the cluster that the partition was copied from")


def test_an_orphan_is_proven_by_every_coordinator():
    row = judged(dossier=ORPHAN)
    assert (row.reason, row.safe_to_abort) == ("PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR", True)
    assert "every coordinator partition" in row.safety[1].witnesses[0]


def only(row, statement: str, said: str) -> None:
    """Exactly one statement fails, and this is what would settle it."""
    assert not row.safe_to_abort
    assert failing(row) == [statement]
    assert said in row.do_not_abort_because
    assert (row.abort_command is not None) == (statement == "IS_OLD_ENOUGH")


CHECK = SPAN.checks[1]
#: What is changed in the copy, in the span -> what is said.
NOT_OPEN = [
    ({"leader_basis": None}, {}, "the leader of the partition is not known for certain"),
    ({"leader_basis": "METADATA_LOG_UNCONFIRMED"}, {}, "is not known for certain"),
    ({"leader": "-1"}, {}, "has no leader"),
    ({"role": "FURTHEST"}, {}, "is not known to be current"),
    ({"role": "LAST_LEADER"}, {}, "is not known to be current"),
    ({"role": "OTHER"}, {}, "is not known to be current"),
    ({"ends": "TORN"}, {}, "is not known to be current"),
    ({"assigned_leader": "2"}, {}, "name different ones"),
    ({"high_watermark": None, "noted_high_watermark": None}, {}, "replication-offset-checkpoint"),
    ({"high_watermark": 50, "noted_high_watermark": 50}, {}, "at or above the high watermark"),
    ({}, {"last_elsewhere_offset": 100}, "another copy, which goes on behind this one"),
    ({}, {"is_start_exact": False}, "its true start offset is not known"),
    ({}, {"checks": (replace(CHECK, is_crc_valid=None),)}, "audit the raw segments"),
    ({}, {"checks": ()}, "audit the raw segments"),
    (
        {"read_from_offset": 60, "log_start_offset": 0},
        {"checks": ()},
        "its first batch is gone: only a producer snapshot",
    ),
]


@pytest.mark.parametrize(("copy", "span", "said"), NOT_OPEN)
def test_it_is_open_now_only_by_the_whole_copy_of_a_certain_leader(copy, span, said):
    row = judged(copy=copy, span=span)
    assert "IS_OPEN_NOW" in failing(row)
    assert said in row.safety[0].says
    assert row.abort_command is None


@pytest.mark.parametrize(
    ("copy", "reason"),
    [
        ({"answered_stable_offset": 51, "answered_at_ms": ONE}, "BROKER_ANSWERED_OTHERWISE"),
        ({"gap_offset": 60, "role": "FURTHEST"}, "PARTITION_LOG_INCOMPLETE"),
        ({"damaged_offset": 60}, "PARTITION_LOG_INCOMPLETE"),
        ({"ends": "SHORT"}, "PARTITION_LOG_INCOMPLETE"),
    ],
)
def test_what_contradicts_that_it_is_open_makes_it_unknown(copy, reason):
    row = judged(copy=copy)
    assert (row.verdict, row.reason) == ("UNKNOWN", reason)
    assert not row.safety[0].holds


def test_an_answer_below_its_first_batch_is_a_witness():
    row = judged(copy={"answered_stable_offset": 50, "answered_at_ms": ONE})
    assert row.safe_to_abort
    assert "answered a last stable offset of 50" in row.safety[0].witnesses[-1]


# ---- 2. No coordinator will end it.

#: Changes -> what is said.
NOT_DECIDED = [
    ({"facts": {"count_basis": "DEFAULT"}}, "the number of coordinator partitions is assumed"),
    ({"facts": {"count_basis": "ASSUMED"}}, "the number of coordinator partitions is assumed"),
    ({"coordinator_copy": {"leader_basis": None}}, "is not known for certain"),
    ({"coordinator_copy": {"high_watermark": None}}, "is not confirmed"),
    ({"coordinator_copy": {"role": "FURTHEST"}}, "is not known to be current"),
    ({"coordinator_copy": {"damaged_offset": 20}}, "damaged below offset 20"),
    ({"coordinator_copy": {"log_start_offset": 5}}, "lacks its first segments"),
    (
        {
            "dossier": replace(
                DOSSIER, claims=(CLAIM, replace(CLAIM, transactional_id="baz", owner="CURRENT", state="Ongoing"))
            )
        },
        "baz",
    ),
    ({"claim": {"owner": "NEXT"}}, "will use the producer id next"),
    (
        {"claim": {"is_superseded": True, "state": "Ongoing"}},
        "was Ongoing in an older copy of its log, and no record shows its end",
    ),
    ({"facts": {"kafka_version": "2.8.2"}}, "brokers before 3.0"),
]


@pytest.mark.parametrize(("changes", "said"), NOT_DECIDED)
def test_no_coordinator_ends_it_only_by_copies_that_show_all_of_them(changes, said):
    row = judged(**changes)
    assert "NO_COORDINATOR_ENDS_IT" in failing(row)
    assert said in row.safety[1].says
    assert row.abort_command is None


@pytest.mark.parametrize("state", ["Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"])
def test_an_id_in_a_transaction_may_still_include_it(state):
    row = judged(claim={"state": state})
    assert not row.safety[1].holds
    assert f"bar is {state}" in row.safety[1].says


@pytest.mark.parametrize("state", ["Empty", "CompleteCommit", "CompleteAbort", None])
def test_an_id_between_transactions_ends_nothing(state):
    assert judged(claim={"state": state, "owner": "CURRENT" if state else "EXPIRED"}).safe_to_abort


def test_before_3_0_only_an_id_that_is_gone_for_good_is_safe():
    assert judged(claim={"owner": "EXPIRED", "state": None}, facts={"kafka_version": "2.8.2"}).safe_to_abort


def test_a_broker_that_names_an_owner_is_believed():
    row = judged(dossier=replace(ORPHAN, answered_owners=("qux",)))
    assert (row.verdict, row.reason) == ("UNKNOWN", "BROKER_ANSWERED_OTHERWISE")
    assert "qux" in row.explanation
    assert not row.safe_to_abort


# ---- 3. No COMMIT includes it: in `test_no_commit.py`, and its premises in `test_world.py`.


# ---- 4. It is old enough.


@pytest.mark.parametrize("behind", [None, ONE - 15 * MINUTE, NOON - 30 * MINUTE])
def test_brokers_clocks_prove_the_age(behind):
    stamps = (replace(SPAN.stamps[0], behind_ms=behind),)
    row = judged(span={"stamps": stamps})
    only(
        row,
        "IS_OLD_ENOUGH",
        "brokers' clocks prove only 15 min" if behind == ONE - 15 * MINUTE else "no broker's clock",
    )


def test_a_clock_that_is_behind_makes_it_younger():
    def compared(offset_ms):
        return judged(facts={"clocks": Clocks(measured={("9", "1"): Difference(offset_ms=offset_ms, differ_ms=1_000)})})

    only(compared(-50 * MINUTE), "IS_OLD_ENOUGH", "only 9 min")
    assert compared(50 * MINUTE).safe_to_abort


def test_not_yet_safe_says_from_when_on():
    half = {"stamps": (replace(SPAN.stamps[0], behind_ms=ONE - 10 * MINUTE),)}
    row = judged(span=half)
    assert row.safe_from_ms == ONE + 5 * MINUTE + 1
    assert "safe from 2024-03-09T17:05:01Z on" in row.do_not_abort_because
    # If another statement fails, too, time settles nothing.
    assert judged(span=half, facts={"count_basis": "DEFAULT"}).safe_from_ms is None
    assert judged().safe_from_ms is None


def test_this_audit_proves_the_age_for_the_next_unless_it_wrote_since():
    unproven = {"stamps": (replace(SPAN.stamps[0], behind_ms=None),)}
    assert judged(span=unproven).safe_from_ms == ONE + 15 * MINUTE + 1
    young = {"last_timestamp_ms": ONE - MINUTE}
    row = judged(span=young)
    assert (row.verdict, row.safe_to_abort, row.safe_from_ms) == ("SUSPECT", False, ONE + 14 * MINUTE + 1)
    assert failing(row) == ["IS_OLD_ENOUGH"]


def test_the_timeout_is_the_limit():
    row = judged(facts={"thresholds": Thresholds(as_of_ms=ONE, max_transaction_timeout_ms=59 * MINUTE)})
    only(row, "IS_OLD_ENOUGH", "brokers' clocks prove only 59 min")
    assert judged(
        facts={"thresholds": Thresholds(as_of_ms=ONE, max_transaction_timeout_ms=59 * MINUTE - 1)}
    ).safe_to_abort


# ---- 5. Nothing else is wrong with it.


def test_a_finding_about_the_partition_the_producer_or_its_id_forbids_it():
    for changes in ({"place": {"alarms": ("X",)}}, {"dossier": {"alarms": ("X",)}}):
        only(judged(**changes), "NOTHING_ELSE_IS_WRONG", "findings name it or its partition: X")


@pytest.mark.parametrize(
    ("dossier", "alarm", "is_safe"),
    [
        (DOSSIER, "ANY", True),
        (DOSSIER, "COPIES_DISAGREE", False),
        (ORPHAN, "ANY", True),
        (ORPHAN, "CORRUPT_MESSAGE", False),
        (ORPHAN, "COPIES_DISAGREE", False),
    ],
)
def test_a_finding_about_a_coordinator_partition_forbids_it_for_an_orphan(dossier, alarm, is_safe):
    assert judged(dossier=dossier, coordinator={"alarms": (alarm,)}).safe_to_abort is is_safe


# ---- Together.


def test_every_statement_that_fails_is_named_and_a_commit_comes_first():
    row = judged(copy={"leader_basis": None}, dossier={"decisions": (DECISION, LOST)}, facts={"count_basis": "DEFAULT"})
    assert row.do_not_abort_because.startswith("a COMMIT marker is due here")
    assert "not known for certain" in row.do_not_abort_because
    assert "the number of coordinator partitions is assumed" in row.do_not_abort_because
    assert len(failing(row)) == 3


def test_a_topic_that_no_command_line_can_name_is_not_safe():
    row = judged(span={"topic": "a\x00b"}, dossier=ORPHAN)
    assert not row.safe_to_abort
    assert row.abort_command is None
    assert row.do_not_abort_because.startswith("no command line can carry its topic")


# ---- Limits and words.


def test_what_its_coordinator_cannot_end_is_aborted_only_once_its_application_is_stopped():
    row = judged(span={"producer_epoch": 7}, claim={"state": "Ongoing", "partitions": (FOO,)})
    assert row.reason == "EPOCH_AHEAD_OF_COORDINATOR"
    assert row.safety[1].says.startswith("its coordinator still lists the partition")


def test_a_verdict_other_than_hanging_fails_the_second_statement_without_a_witness():
    row = judged(claim={"state": "Ongoing", "partitions": (FOO,), "start_ms": ONE - 1_000})
    assert (row.safety[1].holds, row.safety[1].says, row.safety[1].witnesses) == (
        False,
        "a coordinator may still end it: the verdict is LATE",
        (),
    )


@pytest.mark.parametrize(
    ("written", "is_safe"), [(ONE - 10 * MINUTE, True), (ONE - 10 * MINUTE + 1, False), (None, False)]
)
def test_a_write_is_older_than_a_copy_of_the_same_instant(written, is_safe):
    older = {"captured_at_ms": ONE - 10 * MINUTE, "known_until_ms": ONE - 10 * MINUTE, "newest_stamp_ms": NOON}
    row = judged(coordinator_copy=older, span={"stamps": (replace(SPAN.stamps[0], behind_last_ms=written),)})
    assert row.safe_to_abort is row.safety[1].holds is is_safe
    if not is_safe:
        only(row, "NO_COORDINATOR_ENDS_IT", "may have written after")


def test_without_the_instant_of_a_coordinators_copy_nothing_precedes_it():
    assert not judged(coordinator_copy={"captured_at_ms": None}).safety[1].holds
    undated = replace(COORDINATOR, partition=4, copies=(replace(COPY, captured_at_ms=None),))
    assert not judged(dossier=ORPHAN, facts={"coordinators": (COORDINATOR, undated)}).safety[1].holds
    assert (
        judged(
            coordinator_copy={"captured_at_ms": ONE}, span={"stamps": (replace(SPAN.stamps[0], behind_last_ms=None),)}
        )
        .safety[1]
        .holds
    )


def test_witnesses_say_by_what_the_last_write_precedes_the_copies():
    assert "its last write is older than that" in judged().safety[1].witnesses[-1]
    unstamped = {"stamps": (replace(SPAN.stamps[0], behind_last_ms=None),)}
    assert judged(span=unstamped).safety[1].witnesses[-1] == "the partition was not copied later"
    assert "expired" in judged(claim={"owner": "EXPIRED", "state": None}).safety[1].witnesses[1]


def test_only_the_first_problem_of_the_first_statement_is_named():
    row = judged(copy={"leader_basis": None, "high_watermark": None})
    assert "high watermark" not in row.safety[0].says


def test_an_age_is_an_interval():
    assert judged().safety[3].says == "it has been open for at least 59 min, and at most 1 h, by brokers' clocks"
    same = judged(span={"stamps": (replace(SPAN.stamps[0], before_ms=ONE - 60 * MINUTE + 1_000),)})
    assert same.safety[3].says == "it has been open for 59 min, by brokers' clocks"
    unbounded = judged(span={"stamps": (replace(SPAN.stamps[0], before_ms=None),)}, dossier=ORPHAN)
    assert unbounded.safety[3].says == "it has been open for at least 59 min, by brokers' clocks"
    # Its coordinator's clock is behind: it began before what stands before it.
    begun = judged(claim={"state": "Ongoing", "partitions": (FOO,), "start_ms": NOON - 2 * MINUTE})
    assert begun.safety[3].says == "it has been open for at least 1 h 2 min, by brokers' clocks"
    future = {"stamps": (replace(SPAN.stamps[0], before_ms=None, behind_ms=ONE + 5 * MINUTE),)}
    assert "only 0 s" in judged(span=future).safety[3].says


@pytest.mark.parametrize("written", [ONE - MINUTE, ONE, ONE + 5 * MINUTE])
def test_a_promise_counts_from_the_last_write(written):
    assert judged(span={"last_timestamp_ms": written}).safe_from_ms == written + 15 * MINUTE + 1


@pytest.mark.parametrize(("stamp", "is_promised"), [(ONE + 1_000, True), (ONE + 1_001, False)])
def test_a_copy_that_was_taken_after_its_noted_instant_promises_no_time(stamp, is_promised):
    """What it shows may have begun after that instant."""
    unproven = {"stamps": (replace(SPAN.stamps[0], behind_ms=None),)}
    later = {"captured_at_ms": stamp, "known_until_ms": stamp}
    row = judged(span=unproven, copy={"newest_stamp_ms": stamp}, coordinator_copy=later)
    assert (row.safe_from_ms is not None) is is_promised
    assert failing(row) == ["IS_OLD_ENOUGH"]


def test_a_write_that_a_client_dated_ahead_delays_nothing():
    assert judged(span={"last_timestamp_ms": ONE + 5 * MINUTE + 1}).safe_to_abort
