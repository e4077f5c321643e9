"""Findings in the coordinators' logs."""

from dataclasses import replace

import pytest

from tests.support.log_notation import judged, rec
from txnlib.core.findings.coordinator_findings import (
    ClaimedProducerId,
    LoggedId,
    NamedProducerId,
    OddRecord,
    RefusedTimeout,
    of_ids,
    of_owners,
    of_records,
)
from txnlib.core.kafka.coordinator_partition import partition_for
from txnlib.core.kafka.odd_coordinator_records import SuspectStep
from txnlib.core.rows import TopicPartition

TS = 1_700_000_000_000
ID = LoggedId(
    transactional_id="pay", coordinator_partition=partition_for("pay", 50), producer_id=7, state="Ongoing",
    partitions=(TopicPartition("gone", 0),), offset=10, record_ms=TS, last_update_ms=TS, start_ms=TS, refused=None,
)  # fmt: skip


def found(each: LoggedId, **deleted: int) -> list[tuple[str, int | None, int | None, str | None]]:
    gone = {(topic, 0): ms for topic, ms in deleted.items()}
    return [
        (row.name, row.offset, row.producer_id, row.evidence)
        for row in of_ids([each], coordinator_partitions=50, deleted=gone)
    ]


def test_an_id_like_any_other_has_no_finding() -> None:
    assert found(ID) == []


def test_an_id_in_a_partition_of_another_hash_is_found() -> None:
    (row,) = found(replace(ID, coordinator_partition=51))
    assert row == (
        "WRONG_COORDINATOR_PARTITION",
        10,
        None,
        f"of 50 partitions its hash leads to {partition_for('pay', 50)}",
    )


def test_a_refused_timeout_is_found_at_its_record() -> None:
    assert found(replace(ID, refused=RefusedTimeout(4, 6, -5))) == [
        ("INVALID_TRANSACTION_TIMEOUT", 4, 6, "timeout of -5 ms")
    ]


@pytest.mark.parametrize(
    ("changed", "evidence"),
    [
        ({"record_ms": TS * 10**6}, f"appended stamped {TS * 10**6} ms"),
        ({"last_update_ms": 0, "start_ms": -1}, "last update stamped 0 ms; transaction start stamped -1 ms"),
        ({"start_ms": -1, "state": "Empty"}, None),
        ({"start_ms": -1, "state": None}, None),
        ({"start_ms": 0, "state": "Empty"}, "transaction start stamped 0 ms"),
        ({"record_ms": None, "last_update_ms": None, "start_ms": None}, None),
    ],
)
def test_times_that_no_clock_shows_are_found(changed: dict[str, object], evidence: str | None) -> None:
    assert found(replace(ID, **changed)) == ([("INVALID_TIMESTAMP", 10, 7, evidence)] if evidence else [])


def test_a_transaction_that_lists_a_deleted_topic_is_found_while_it_has_not_ended() -> None:
    assert found(ID, gone=TS + 1) == [("UNKNOWN_TOPIC_OR_PARTITION", 10, 7, "Ongoing with gone-0")]
    assert found(replace(ID, state="CompleteAbort"), gone=TS + 1) == []


def test_each_finding_of_a_record_is_a_row_with_what_is_odd() -> None:
    step = SuspectStep(judged(rec("O", 7, 3), 5), judged(rec("CC", 7, 2), 4), is_consecutive=True)
    rows = list(of_records([OddRecord("pay", 3, 9, 7, "Ongoing → CompleteCommit", step)]))
    assert [(row.name, row.severity, row.evidence) for row in rows] == [
        ("COORDINATOR_EPOCH_WENT_BACK", "ERROR", "Ongoing → CompleteCommit: coordinator epoch 5 to 4"),
        (
            "ILLEGAL_TRANSITION",
            "ERROR",
            "Ongoing → CompleteCommit: no coordinator takes this step, producer epoch 3 to 2",
        ),
    ]
    assert {(row.topic, row.partition, row.offset, row.producer_id, row.transactional_id) for row in rows} == {
        ("__transaction_state", 3, 9, 7, "pay")
    }


CLAIM = NamedProducerId(7, "one", 3, 10, TS)


def owned(*claims: NamedProducerId, highest: int | None = None) -> list[tuple[str, int | None, int | None, str | None]]:
    rows = of_owners([ClaimedProducerId(7, claims)], highest=highest, whole_metadata_ms=None if highest is None else TS)
    return [(row.name, row.partition, row.offset, row.evidence) for row in rows]


def test_M22_a_producer_id_with_two_owners_is_found_at_the_newest_record() -> None:
    other = NamedProducerId(7, "another", 4, 11, TS)
    assert owned(CLAIM, other) == [("PRODUCER_ID_OWNED_TWICE", 4, 11, "claimed by another, one")]
    assert owned(CLAIM, replace(CLAIM, coordinator_partition=4)) == []


def test_ten_owners_are_named() -> None:
    ((*_, evidence),) = owned(*[replace(CLAIM, transactional_id=f"{number:02}") for number in range(20)])
    assert evidence == "claimed by " + ", ".join(f"{number:02}" for number in range(10))


def test_a_producer_id_beyond_all_blocks_is_found_in_records_up_to_the_end_of_the_metadata_log() -> None:
    says = "the last producer id that the cluster handed out is 6"
    assert owned(CLAIM, highest=6) == [("PRODUCER_ID_NEVER_ALLOCATED", 3, 10, says)]
    assert owned(CLAIM, highest=7) == []
    assert (
        owned(replace(CLAIM, last_seen_ms=TS + 1), highest=6)
        == owned(replace(CLAIM, last_seen_ms=None), highest=6)
        == []
    )
