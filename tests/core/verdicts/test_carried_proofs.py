"""What an earlier audit proved, while no decision can have followed.

Source: docs/rules/abort.md#no-commit.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.cases import NOON, Given, case, decided
from tests.support.dossier_samples import COORDINATOR as WHOLE_COORDINATOR
from tests.support.dossier_samples import COPY, DOSSIER, FACTS, MINUTE, SPAN, placed
from txnlib.core.copies import CoverageRow
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.verdicts.case import Case
from txnlib.core.verdicts.cluster_facts import ClusterFacts
from txnlib.core.verdicts.dossier import CheckedBatch, EpochStamps, Owner
from txnlib.core.verdicts.earlier_audits import EarlierAudit
from txnlib.core.verdicts.history import History
from txnlib.core.verdicts.no_commit import led_at_copies, no_commit_includes_it, proof_carried
from txnlib.core.verdicts.reason import Reason

#: It proved that no COMMIT includes the records, when leader epoch 4 led, and 77 was the newest record of the id.
EARLIER = EarlierAudit(
    run_id="yesterday", as_of_ms=NOON, copied_ms=NOON, topic_id="T", first_batch_crc=9, reason="WRITTEN_AFTER_MARKER",
    newest_leader_epoch=4, record_offset=77, proves_no_commit=True,
)  # fmt: skip
#: Since then the id has another record, and the partition another leader.
PARTITION = Given(
    topic="foo", partition=5, producer_id=7, producer_epoch=3, start_offset=50, topic_id="T", first_batch_crc=9,
    newest_leader_epoch=5, checkpoint_leader_epoch=5,
)  # fmt: skip
COORDINATOR = Given(transactional_id="pay", state=TransactionState.EMPTY, record_offset=80, record_ms=NOON + 1)
COMMIT = decided("COMMIT", 3, decided_ms=NOON, completed_ms=NOON)


def unmarked(type: str, record_offset: int) -> History:
    of = replace(COMMIT.of, outcome=type, last_record_offset=record_offset)
    return History(unmarked=(replace(COMMIT, of=of),))


#: What differs in the earlier audit, in what the partition shows now, and at the coordinator -> whether it is carried.
CARRIED = {
    "the id wrote again and another leader followed": ({}, {}, {}, False),
    "the id has written nothing since": ({}, {}, {"record_offset": 77, "record_ms": NOON}, True),
    "the last record of the id is younger than its oldest copy": ({}, {}, {"record_offset": 77, "record_ms": NOON + 1},
                                                                  False),
    "the last record of the id has no time": ({}, {}, {"record_offset": 77, "record_ms": None}, False),
    "no record of the id is known": ({"record_offset": None}, {}, {"record_offset": None}, False),
    "the same leader leads until now": ({}, {"newest_leader_epoch": 4, "checkpoint_leader_epoch": 4}, {}, True),
    "a leader of a checkpoint that was not copied": ({}, {"newest_leader_epoch": 4, "checkpoint_leader_epoch": None},
                                                     {}, False),
    "the checkpoint is behind the log": ({}, {"newest_leader_epoch": 5, "checkpoint_leader_epoch": 4}, {}, False),
    "the audit saw an older leader": ({"newest_leader_epoch": 3},
                                      {"newest_leader_epoch": 4, "checkpoint_leader_epoch": 4}, {}, False),
    "no leader epoch is known": ({"newest_leader_epoch": None},
                                 {"newest_leader_epoch": None, "checkpoint_leader_epoch": None}, {}, False),
    "the id had expired": ({"reason": Reason.TRANSACTIONAL_ID_EXPIRED.value}, {}, {}, True),
    "the id had another producer id": ({"reason": Reason.PRODUCER_ID_ROTATED.value}, {}, {}, True),
    "no coordinator knew it": ({"reason": Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR.value}, {}, {}, True),
    "no coordinator knew it, and an id has it now": (
        {"reason": Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR.value}, {}, {"owner": Owner.CURRENT}, False),
    "it lacked a record that is older than its copies": (
        {}, {"newest_leader_epoch": 4, "checkpoint_leader_epoch": 4}, {"record_ms": NOON}, False),
    "it proved nothing": ({"proves_no_commit": False}, {}, {"record_offset": 77, "record_ms": NOON}, False),
    "it saw another topic of that name": ({"topic_id": "S"}, {}, {"record_offset": 77, "record_ms": NOON}, False),
    "it saw another first batch": ({"first_batch_crc": 8}, {}, {"record_offset": 77, "record_ms": NOON}, False),
}  # fmt: skip


@pytest.mark.parametrize("name", CARRIED)
def test_a_proof_is_carried_while_no_decision_can_have_followed(name):
    audit, here, there, is_carried = CARRIED[name]
    earlier = replace(EARLIER, **audit)
    of = case(Given(PARTITION | here | {"earlier": (earlier,)}), Given(COORDINATOR | there))
    assert proof_carried(of) == (earlier if is_carried else None)
    assert no_commit_includes_it(of).holds is is_carried


#: The decision without a marker, its record, the newest record that the audit knew -> whether the proof is carried.
DECIDED_SINCE = {
    "a COMMIT behind what it knew": ("COMMIT", 78, 77, False),
    "a COMMIT that it knew": ("COMMIT", 77, 77, True),
    "an ABORT behind what it knew": ("ABORT", 78, 77, True),
    "a COMMIT, and it knew no record": ("COMMIT", 76, None, False),
}


@pytest.mark.parametrize("name", DECIDED_SINCE)
def test_a_commit_that_may_be_younger_refutes_it(name):
    type, record, known, is_carried = DECIDED_SINCE[name]
    earlier = replace(EARLIER, record_offset=known, reason=Reason.TRANSACTIONAL_ID_EXPIRED.value)
    of = case(Given(PARTITION | {"earlier": (earlier,)}), Given(COORDINATOR | {"history": unmarked(type, record)}))
    assert (proof_carried(of) is not None) is is_carried


def test_the_newest_of_several_counts():
    older = replace(EARLIER, run_id="the day before", as_of_ms=NOON - 1, newest_leader_epoch=5)
    newer = replace(EARLIER, newest_leader_epoch=5)
    for earlier in ((older, newer), (newer, older)):
        assert proof_carried(case(Given(PARTITION | {"earlier": earlier}), COORDINATOR)) == newer


# ---- The leader at the instant of the copies

#: Leader epochs of the copy, and of its checkpoint; how much later than the coordinator it was copied; the stamps
#: behind the first batch, of leader epoch 0, by leader epoch -> the newest leader epoch that had begun then.
LED_AT_COPIES = [
    (3, 3, 0, {}, 3),
    (3, 4, 0, {}, 4),
    (3, 3, -1, {}, 3),
    (3, 3, 1, {}, None),
    (3, 3, 1, {3: 0}, 3),
    (3, 3, 1, {3: 1}, None),
    (3, 3, 1, {2: 0}, None),
    (3, 4, 1, {3: 0}, None),
    (0, 0, 1, {}, 0),
    (3, 3, None, {3: 0}, None),
]


def case_of(facts: ClusterFacts, copy: CoverageRow, **span: object) -> Case:
    of = replace(DOSSIER.open[0], **span)
    return Case(dossier=DOSSIER, span=of, facts=placed(facts, {"copies": (copy,)}))


@pytest.mark.parametrize(("newest", "checkpoint", "later", "stamped", "led"), LED_AT_COPIES)
def test_a_leader_counts_for_later_audits_if_it_led_when_the_coordinators_were_copied(
    newest, checkpoint, later, stamped, led
):
    copied = NOON + 30 * MINUTE
    coordinator = replace(WHOLE_COORDINATOR, copies=(replace(COPY, captured_at_ms=copied),))
    taken = None if later is None else copied + later
    copy = replace(
        COPY, leader_epoch=newest, checkpoint_leader_epoch=checkpoint, captured_at_ms=taken, newest_stamp_ms=None
    )
    stamps = tuple(EpochStamps(leader_epoch=epoch, behind_ms=copied + after) for epoch, after in stamped.items())
    first = CheckedBatch(place="first", base_offset=SPAN.start_offset, partition_leader_epoch=0)
    facts = replace(FACTS, coordinators=(coordinator,))
    assert led_at_copies(case_of(facts, copy, stamps=stamps, checks=(first,))) == led
