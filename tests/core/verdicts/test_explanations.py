"""What a verdict says: why, what is missing, and what helps where nothing is to be aborted."""

from __future__ import annotations

from dataclasses import replace as changed

import pytest

from tests.core.verdicts.test_verdict import (
    AT_ONE,
    COMPLETE,
    EXPIRED,
    MARKED,
    MINUTE,
    NOBODY,
    NOON,
    ONGOING,
    PARTITION,
    PREPARED,
)
from tests.support import dossier_samples as samples
from tests.support.cases import Given, case, derived, replace
from txnlib.core.copies import UNOPENED, CoverageRow, End, Role
from txnlib.core.display import FIRST_OF_TEXT, OFFSETS_OF_TEXT
from txnlib.core.kafka.coordinator_partition import CountBasis
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.verdicts.capture_skew import EXPLANATIONS_BY_SKEW, Skew
from txnlib.core.verdicts.cause import CAUSES, causes
from txnlib.core.verdicts.coordinators import CoordinatorPartition, Coordinators
from txnlib.core.verdicts.dossier import EarlierAudit
from txnlib.core.verdicts.evidence_records import evidence_records
from txnlib.core.verdicts.in_sync import TooFewInSync
from txnlib.core.verdicts.no_commit import answer_of
from txnlib.core.verdicts.reason import EXPLANATIONS, Reason, Verdict
from txnlib.core.verdicts.remedy import REFUSALS_BY_REASON, remedy
from txnlib.core.verdicts.verdict import explain, judge

ONE = AT_ONE.as_of_ms
#: What the copy of the partition shows -> what it lacks.
LOSSES = [
    ({"tail": UNOPENED}, "has files that could not be opened"),
    ({"tail": "CORRUPT"}, "could not be read to its end"),
    ({"tail": "CORRUPT", "noted_high_watermark": 90, "survives_until": 90}, "could not be read to its end"),
    ({"tail": "CORRUPT", "noted_high_watermark": 91, "survives_until": 90}, "ends below the high watermark"),
    ({"noted_high_watermark": 91, "survives_until": 90}, "ends below the high watermark"),
    ({"ends": End.SHORT}, "ends below what a file beside it shows"),
    ({"gap_offset": 99}, "has a hole before offset 99"),
    ({}, "is damaged above the transaction's start"),
]


@pytest.mark.parametrize(("copy", "said"), LOSSES)
def test_a_copy_that_is_not_whole_says_what_it_lacks(copy, said):
    of = case(replace(PARTITION, **copy), NOBODY)
    assert explain(Reason.PARTITION_LOG_INCOMPLETE, of, NOON).startswith(f"the copy of this partition {said}, and ")


DEFAULT = "if it has as many as Kafka's default"
#: What of the coordinators is missing, how their number is known, who leads them -> in words.
MISSING = [
    (None, CountBasis.GIVEN, None, "no partition of __transaction_state was captured"),
    ((7,), CountBasis.GIVEN, None, "__transaction_state partition 7 is missing or incomplete:"),
    ((7, 8), CountBasis.GIVEN, None, "__transaction_state partitions 7, 8 are missing or incomplete:"),
    ((7,), CountBasis.DEFAULT, None, f"missing or incomplete, {DEFAULT}"),
    ((7,), CountBasis.GIVEN, "2", "missing or incomplete (led by broker 2):"),
    ((7,), CountBasis.DEFAULT, "2", f"missing or incomplete (led by broker 2), {DEFAULT}"),
]


@pytest.mark.parametrize(("missing", "basis", "leader", "words"), MISSING)
def test_coordinators_that_are_missing_are_named(missing, basis, leader, words):
    given = replace(NOBODY, missing_partitions=missing, count_basis=basis, coordinator_leader=leader)
    assert words in explain(Reason.COORDINATOR_PARTITION_NOT_CAPTURED, case(PARTITION, given), NOON)


@pytest.mark.parametrize(
    ("leader", "said"),
    [("7", "; broker 7 leads it: copy its log directory"), (None, "; its leader is not known")],
)
def test_an_old_copy_says_where_a_newer_one_is(leader, said):
    old = case(PARTITION, replace(ONGOING, coordinator_leader=leader, role=Role.LAST_LEADER))
    assert explain(Reason.COORDINATOR_COPY_NOT_CURRENT, old, NOON).endswith(said)


@pytest.mark.parametrize(("role", "same"), [(None, Role.OTHER), (Role.OTHER, Role.OTHER), (Role.LEADER, Role.LEADER)])
def test_a_copy_without_a_role_is_any_replicas(role, same):
    def said(of_partition, of_coordinator):
        of = case(replace(PARTITION, role=of_partition), replace(ONGOING, role=of_coordinator))
        return [
            explain(reason, of, NOON)
            for reason in (Reason.PARTITION_COPY_NOT_CURRENT, Reason.COORDINATOR_COPY_NOT_CURRENT)
        ]

    assert said(role, role) == said(same, same)
    assert said(Role.LEADER, Role.OTHER) != said(Role.OTHER, Role.OTHER) != said(Role.OTHER, Role.LEADER)


@pytest.mark.parametrize(
    ("stamped", "start", "is_said"),
    [
        (NOON - 1_001, NOON, True),
        (NOON - 1_000, NOON, False),
        (NOON - 1_001, None, False),
        (None, NOON, False),
    ],
)
def test_records_from_before_a_transaction_are_ended_with_it(stamped, start, is_said):
    of = case(replace(PARTITION, stamped_after_ms=stamped), replace(ONGOING, start_ms=start))
    assert ("before that transaction began, and will be ended with it" in judge(of).explanation) is is_said


def test_what_the_tool_does_not_print_is_said():
    """Its epoch is ahead of its coordinator's, which lists the partition."""
    ahead = judge(case(replace(PARTITION, producer_epoch=7), ONGOING))
    assert (ahead.verdict, ahead.kafka_find_hanging) == (Verdict.HANGING, False)
    assert "find-hanging does not print it" in ahead.explanation
    assert "find-hanging" not in judge(case(PARTITION, COMPLETE)).explanation


@pytest.mark.parametrize(
    ("partition", "coordinator", "is_printed"),
    [
        (PARTITION, PREPARED, False),
        (PARTITION, replace(PREPARED, is_listed=False), True),
        (MARKED, replace(PREPARED, is_listed=False), True),
    ],
)
def test_a_prepared_id_lists_only_what_has_not_acknowledged(partition, coordinator, is_printed):
    assert judge(case(partition, coordinator)).kafka_find_hanging is is_printed


def test_an_orphan_with_an_old_coordinator_copy_is_told_without_a_name():
    old = replace(NOBODY, role=Role.OTHER, known_until_ms=NOON + 10 * MINUTE)
    said = explain(Reason.COORDINATOR_COPY_NOT_CURRENT, case(PARTITION, old), AT_ONE.as_of_ms)
    assert "the copy of a coordinator partition" in said
    assert "an owner of producer 132 may have continued" in said


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ({"producer_epoch": 6}, "producer epoch 6 (its coordinator has 5)"),
        ({"coordinator_epoch": 99}, "coordinator epoch 99 (its coordinator has 19)"),
        (
            {"producer_epoch": 6, "coordinator_epoch": 99},
            "producer epoch 6 (its coordinator has 5) and coordinator epoch 99 (its coordinator has 19)",
        ),
        ({}, "producer epoch 5"),
    ],
)
def test_a_refused_marker_names_both_epochs_where_they_differ(seen, said):
    given = case(replace(PARTITION, **seen), PREPARED)
    assert explain(Reason.MARKER_REFUSED, given, NOON).endswith(f"because it has seen {said}")


@pytest.mark.parametrize("is_assumed", [False, True])
def test_only_what_rests_on_the_instants_of_copies_says_that_they_were_assumed(is_assumed):
    of = case(replace(PARTITION, is_instant_assumed=is_assumed), COMPLETE)
    said = {reason for reason in EXPLANATIONS if EXPLANATIONS_BY_SKEW[Skew.ASSUMED] in explain(reason, of, NOON)}
    assert said == ({Reason.CAPTURE_SKEW} if is_assumed else set())


@pytest.mark.parametrize(
    ("sources", "noted_ms", "begins"),
    [
        (["console:."], NOON, "a console consumer's text of __transaction_state-3 does not tell where it ends"),
        (["console:."], None, EXPLANATIONS_BY_SKEW[Skew.ASSUMED]),
        (["console:.", "raw:1"], NOON, "the copies of the partition"),
    ],
)
def test_instants_that_are_noted_are_not_asked_for(sources, noted_ms, begins):
    of = case(replace(PARTITION, is_instant_assumed=True, captured_at_ms=NOON), COMPLETE)
    copies = tuple(CoverageRow(source=each, status="PARTIAL", captured_at_ms=noted_ms) for each in sources)
    derived(of, coordinators=Coordinators((CoordinatorPartition(partition=3, copies=copies),)))
    said = explain(Reason.CAPTURE_SKEW, of, NOON)
    assert said.startswith(begins)
    # One reason: where the instants are one, or unknown, they are not called different.
    assert ("different instants" in said) is (begins == "the copies of the partition")


@pytest.mark.parametrize(
    ("missing", "basis", "is_ambiguous"),
    [
        ((), CountBasis.AMBIGUOUS, True),
        ((), CountBasis.GIVEN, False),
        ((4,), CountBasis.AMBIGUOUS, False),
    ],
)
def test_several_numbers_of_coordinators_are_named_if_no_partition_is_missing(missing, basis, is_ambiguous):
    of = case(PARTITION, replace(NOBODY, missing_partitions=missing, count_basis=basis))
    said = explain(Reason.COORDINATOR_PARTITION_NOT_CAPTURED, of, NOON)
    assert ("how many partitions" in said) is is_ambiguous


def test_a_record_of_a_text_without_offsets_has_no_made_up_one():
    """Its offset only gives an order."""
    made_up = FIRST_OF_TEXT + 2 * OFFSETS_OF_TEXT
    of_text = replace(samples.DECISION, last_record_offset=made_up)
    assert of_text.place == "record 2 of its text of __transaction_state-3"


# ---- What helps.

HERE, THERE = (
    TooFewInSync(
        topic=topic, partition=number, minimum=2, in_sync=(1,), away=(away,), since_ms=NOON, since_offset=4
    )
    for topic, number, away in (("foo", 5, 2), ("__transaction_state", 3, 3))
)  # fmt: skip
LISTED = {"partitions": (samples.FOO,), "start_ms": NOON - MINUTE, "record_ms": NOON, "last_update_ms": NOON}
WAITING = changed(samples.LOST, state="PrepareCommit", completed_ms=None)
EXPECTING = "its coordinator still expects it, and cannot write that it ends: bring broker 3 back"
DECIDED = "its coordinator decided, and cannot write the marker: bring broker"
#: The state of its id, which partitions have too few replicas in sync, its epoch -> the reason, what helps.
HELP = [
    ("Ongoing", None, THERE, 5, "OVERDUE", EXPECTING),
    ("Ongoing", HERE, None, 5, "OVERDUE", None),
    ("PrepareCommit", HERE, None, 5, "MARKER_OVERDUE", f"{DECIDED} 2 back"),
    ("PrepareCommit", None, THERE, 5, "MARKER_OVERDUE", f"{DECIDED} 3 back"),
    ("PrepareCommit", HERE, THERE, 5, "MARKER_OVERDUE", f"{DECIDED} 2 back"),
    ("PrepareCommit", None, None, 5, "MARKER_OVERDUE", None),
    ("PrepareCommit", HERE, THERE, 6, "MARKER_REFUSED", None),
    ("CompleteCommit", HERE, THERE, 5, "WRITTEN_AFTER_MARKER", None),
]


@pytest.mark.parametrize(("state", "here", "there", "epoch", "reason", "said"), HELP)
def test_replicas_are_brought_back_where_nobody_can_write(state, here, there, epoch, reason, said):
    decisions = (samples.DECISION, WAITING) if state == "PrepareCommit" else (samples.DECISION,)
    row = samples.judged(
        dossier={"decisions": decisions},
        claim={"state": state, **LISTED}, span={"producer_epoch": epoch}, place={"too_few_in_sync": here},
        coordinator={"too_few_in_sync": there},
    )  # fmt: skip
    assert row.reason == reason
    is_unreachable = any("not reachable" in each.cause for each in row.causes)
    assert is_unreachable is (reason == "MARKER_OVERDUE" and here is None)
    if said is None:
        assert "bring broker" not in (row.do_not_abort_because or "")
    else:
        assert row.do_not_abort_because.startswith(said)


PROMISED = EarlierAudit(run_id="first", as_of_ms=NOON, topic_id="AAAA", first_batch_crc=77, safe_to_abort=True)
#: What an earlier audit promised, what is changed now -> the end of what is said.
WITHDRAWN = [
    (PROMISED, {"copy": {"leader": "-1"}}, "; audit first called it safe: that is withdrawn"),
    (changed(PROMISED, safe_to_abort=False, safe_from_ms=NOON + 1), {"copy": {"leader": "-1"}},
        "; audit first called it safe from 2024-03-09T16:00:01Z on: that is withdrawn"),
    (changed(PROMISED, safe_to_abort=False), {"copy": {"leader": "-1"}}, None),
    (changed(PROMISED, topic_id="BBBB"), {"copy": {"leader": "-1"}}, None),
]  # fmt: skip


@pytest.mark.parametrize(("promised", "changes", "said"), WITHDRAWN)
def test_what_was_called_safe_and_is_not_is_withdrawn(promised, changes, said):
    why = samples.judged(span={"earlier": (promised,)}, **changes).do_not_abort_because
    assert why.endswith(said) if said else "withdrawn" not in why


def test_nothing_is_withdrawn_where_only_time_is_missing():
    row = samples.judged(
        span={"earlier": (PROMISED,), "stamps": (changed(samples.STAMPS, behind_ms=ONE - MINUTE),)},
        copy={"known_until_ms": ONE},
    )
    assert row.safe_from_ms is not None or row.safe_to_abort
    assert "withdrawn" not in (row.do_not_abort_because or "")


def test_old_brokers_need_the_epochs_of_the_producer():
    row = samples.judged(dossier=samples.ORPHAN, facts={"kafka_version": "2.8.0"})
    assert "--start-offset" not in row.abort_command
    assert "--producer-id 132 --producer-epoch 5 --coordinator-epoch 19" in row.abort_command


YOUNG_MS = ONE - 5 * MINUTE


@pytest.mark.parametrize(
    ("claim", "behind_ms", "said"),
    [
        (
            {"is_first_assigned": True, "created_ms": YOUNG_MS},
            NOON + MINUTE,
            "it is at most 5 min old: only then was",
        ),
        ({"created_ms": YOUNG_MS}, YOUNG_MS, "brokers' clocks prove only 5 min of its age"),
        ({"is_first_assigned": True, "created_ms": NOON}, YOUNG_MS, "brokers' clocks prove only 5 min of its age"),
    ],
)
def test_what_is_not_old_enough_says_whether_time_alone_settles_it(claim, behind_ms, said):
    stamps = (changed(samples.STAMPS, behind_ms=behind_ms, behind_last_ms=behind_ms),)
    assert samples.judged(claim=claim, span={"stamps": stamps}).safety[3].says.startswith(said)


#: Reason -> words of what helps instead of an abort, where its verdict alone does not say it.
INSTEAD = {
    Reason.TWO_PHASE_COMMIT: "only its owner may decide it",
    Reason.TIMEOUT_NOT_PASSED: "look at the timestamps that its producer writes",
    Reason.MARKER_REFUSED: "getting the coordinator going does not help",
    Reason.COORDINATOR_PARTITION_NOT_CAPTURED: "a coordinator that was not captured may still end it",
    Reason.COORDINATOR_LOG_DAMAGED: "the newest records of its coordinator are lost",
    Reason.PARTITION_LOG_INCOMPLETE: "copy another replica",
    Reason.CAPTURE_SKEW: "copy the coordinators before and after the partitions",
    Reason.PARTITION_COPY_NOT_CURRENT: "copy the partition from its leader",
    Reason.COORDINATOR_COPY_NOT_CURRENT: "copy its coordinator partition from its leader",
    Reason.COORDINATOR_RECORDS_COMPACTED: "copy the partition again",
    Reason.COPIES_DISAGREE: "name the leaders in capture.json",
    Reason.BROKER_ANSWERED_OTHERWISE: "capture again",
    Reason.CORRUPT_MESSAGE: "a batch is damaged: copy another replica",
    Reason.METADATA_LOG_DAMAGED: "copy __cluster_metadata-0 of another broker",
    Reason.BROKER_VERSION_UNKNOWN: "add kafka_version to capture.json",
}


def test_each_of_these_reasons_has_its_own_help():
    assert INSTEAD.keys() == REFUSALS_BY_REASON.keys()
    of = case(PARTITION, ONGOING)
    for reason, words in INSTEAD.items():
        given = changed(judge(of), verdict=Verdict.UNKNOWN, reason=reason)
        assert words in remedy(of, given, answer_of(of)).do_not_abort_because


def cure(partition: Given, coordinator: Given, kafka_version: str | None = "3.9.1"):
    given = case(partition, coordinator, version=kafka_version)
    return remedy(given, judge(given), answer_of(given))


@pytest.mark.parametrize("coordinator", [ONGOING, PREPARED, replace(NOBODY, missing_partitions=(1,))])
def test_nothing_else_gets_a_command(coordinator):
    found = cure(PARTITION, coordinator)
    assert (found.safe_to_abort, found.abort_command) == (False, None)
    assert found.do_not_abort_because


def test_an_agreed_abort_that_the_partition_refuses_gets_a_command_and_is_not_safe():
    refusing = replace(PARTITION, producer_epoch=PREPARED.producer_epoch + 1)
    agreed, due = (
        cure(refusing, replace(PREPARED, state=state))
        for state in (TransactionState.PREPARE_ABORT, TransactionState.PREPARE_COMMIT)
    )
    assert (agreed.safe_to_abort, agreed.do_not_abort_because) == (False, None)
    assert agreed.abort_command.endswith("abort --topic foo --partition 5 --start-offset 29384")
    assert (due.safe_to_abort, due.abort_command) == (False, None), "an abort would contradict a COMMIT"
    assert due.do_not_abort_because


@pytest.mark.parametrize("coordinator", [replace(ONGOING, start_ms=0), replace(ONGOING, transaction_timeout_ms=-1)])
@pytest.mark.parametrize(
    ("version", "way"),
    [
        ("3.9.1", "of a tool of 4.1 or newer, which works with these brokers"),
        ("4.1.1", "(forceTerminateTransaction)"),
        (None, "of a tool of 4.1 or newer, Admin.fenceProducers since 3.2"),
    ],
)
def test_what_a_coordinator_holds_is_ended_there_by_a_tool_that_can(coordinator, version, way):
    why = cure(PARTITION, coordinator, version).do_not_abort_because
    assert way in why
    assert "{" not in why


def test_every_cause_and_every_explanation_can_be_written_out():
    for coordinator in (NOBODY, ONGOING, COMPLETE, PREPARED, EXPIRED):
        for partition in (PARTITION, MARKED, replace(PARTITION, coordinator_epoch=None)):
            given = case(partition, coordinator)
            for reason in Reason:
                assert "{" not in explain(reason, given, NOON)
                assert all("{" not in cause.evidence for cause in causes(reason, given, answer_of(given)))
            assert evidence_records(given)
    assert set(CAUSES) <= set(Reason)


@pytest.mark.parametrize(
    ("noted_ms", "said"),
    [
        (NOON, "a console consumer's text does not tell where it ends: dump or copy __transaction_state-3"),
        (None, "the instants of the copies are not known: give --captured-at TIME, or copy"),
    ],
)
def test_what_helps_against_a_skew_is_of_its_one_reason(noted_ms, said):
    of = case(replace(PARTITION, is_instant_assumed=True, captured_at_ms=NOON), COMPLETE)
    copies = (CoverageRow(source="console:.", status="PARTIAL", captured_at_ms=noted_ms),)
    derived(of, coordinators=Coordinators((CoordinatorPartition(partition=3, copies=copies),)))
    skewed = replace(judge(of), verdict=Verdict.UNKNOWN, reason=Reason.CAPTURE_SKEW)
    assert remedy(of, skewed, answer_of(of)).do_not_abort_because.startswith(said)
