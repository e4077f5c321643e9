"""What an earlier audit proved, while no decision can have followed.

Source: docs/rules/abort.md#no-commit.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.cases import NOON, Given, case, decided
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.verdicts.earlier_audits import EarlierAudit
from txnlib.core.verdicts.history import History
from txnlib.core.verdicts.no_commit import no_commit_includes_it, proof_carried
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
COORDINATOR = Given(transactional_id="pay", state=TransactionState.EMPTY, record_offset=80)
COMMIT = decided("COMMIT", 3, decided_ms=NOON, completed_ms=NOON)


def unmarked(type: str, record_offset: int) -> History:
    of = replace(COMMIT.of, outcome=type, last_record_offset=record_offset)
    return History(unmarked=(replace(COMMIT, of=of),))


#: What differs in the earlier audit, in what the partition shows now, and at the coordinator -> whether it is carried.
CARRIED = {
    "the id wrote again and another leader followed": ({}, {}, {}, False),
    "the id has written nothing since": ({}, {}, {"record_offset": 77}, True),
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
    "it proved nothing": ({"proves_no_commit": False}, {}, {"record_offset": 77}, False),
    "it saw another topic of that name": ({"topic_id": "S"}, {}, {"record_offset": 77}, False),
    "it saw another first batch": ({"first_batch_crc": 8}, {}, {"record_offset": 77}, False),
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
