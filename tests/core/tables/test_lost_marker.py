"""What a lost marker needs, against grids written by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import pytest

from txnlib.core.tables.marker_repairs import CONSUMERS_SAW, TOOLS, Fate, LostMarker, repair
from txnlib.core.verdicts.transaction_outcome import MarkerState

LOST = LostMarker(
    topic="orders",
    partition=3,
    producer_id=4004,
    marker_epoch=7,
    coordinator_epoch=12,
    decided_outcome="COMMIT",
    marker="MISSING",
    transaction_version=0,
    seen_epoch=7,
    seen_coordinator_epoch=11,
    fate=Fate.OPEN,
    first_offset=90,
    ended_at_offset=None,
)


def test_the_request_is_what_the_coordinator_would_send():
    """Kafka: `WriteTxnMarkersRequest.json`, with the names of its JSON converter."""
    assert json.loads(repair(LOST, "3.9.1").request) == {
        "markers": [
            {
                "producerId": 4004,
                "producerEpoch": 7,
                "transactionResult": True,
                "topics": [{"name": "orders", "partitionIndexes": [3]}],
                "coordinatorEpoch": 12,
            }
        ]
    }


def test_an_abort_is_the_result_false():
    (marker,) = json.loads(repair(replace(LOST, decided_outcome="ABORT"), "3.9.1").request)["markers"]
    assert marker["transactionResult"] is False


#: Kafka, transaction version, decided epoch, seen epoch, coordinator's epoch, seen coordinator epoch -> accepted, and
#: the epochs of a request that the partition accepts. From docs/rules/transactions.md#epochs-of-markers.
EPOCHS = [
    ("3.9.1", 0, 7, 7, 12, 11, "ACCEPTED", 7, 12),
    ("3.9.1", 0, 7, None, 12, None, "ACCEPTED", 7, 12),
    ("3.9.1", 0, 7, 9, 12, 11, "REFUSED", 9, 12),
    ("3.9.1", 0, 7, 7, 12, 20, "REFUSED", 7, 20),
    ("4.2.1", 2, 7, 7, 12, 11, "REFUSED", 8, 12),
    ("4.2.1", 2, 8, 7, 12, 11, "ACCEPTED", 8, 12),
    ("4.2.1", 2, 8, 9, 12, 11, "REFUSED", 10, 12),
    ("4.2.1", 1, 7, 7, 12, 11, "ACCEPTED", 7, 12),
    ("4.2.1", 2, 32767, 32767, 12, 11, "ACCEPTED", 32767, 12),
    (None, 2, 7, 7, 12, 11, "DEPENDS_ON_VERSION", 8, 12),
]


@pytest.mark.parametrize(
    ("version", "of", "epoch", "seen", "coordinator", "fence", "accepted", "sent", "with_epoch"), EPOCHS
)
def test_the_request_has_epochs_that_the_partition_accepts(
    version, of, epoch, seen, coordinator, fence, accepted, sent, with_epoch
):
    lost = replace(LOST, transaction_version=of, marker_epoch=epoch, seen_epoch=seen)
    found = repair(replace(lost, coordinator_epoch=coordinator, seen_coordinator_epoch=fence), version)
    (marker,) = json.loads(found.request)["markers"]
    assert (found.is_accepted, marker["producerEpoch"], marker["coordinatorEpoch"]) == (accepted, sent, with_epoch)


@pytest.mark.parametrize(("version", "named"), [("4.1.1", False), ("4.2.0", True), ("4.3.0", True), (None, False)])
def test_brokers_from_4_2_are_told_the_transaction_version(version, named):
    (marker,) = json.loads(repair(replace(LOST, transaction_version=2, marker_epoch=8), version).request)["markers"]
    assert ("transactionVersion" in marker) is named


def test_no_shipped_tool_commits():
    assert "no shipped tool" in repair(LOST, "3.9.1").tool
    assert "AbortTransactionHandler" in repair(LOST, "3.9.1").tool
    assert repair(replace(LOST, decided_outcome="ABORT"), "3.9.1").tool.startswith("kafka-transactions.sh abort")


def test_a_coordinator_that_still_tries_needs_nobody_unless_it_is_refused():
    pending = replace(LOST, marker="PENDING")
    assert repair(pending, "3.9.1").tool.startswith("its coordinator")
    assert "refuses the decided epochs for good" in repair(replace(pending, seen_epoch=9), "3.9.1").tool


@pytest.mark.parametrize("fate", ["COMMIT", "ABORT"])
def test_nobody_repairs_what_another_marker_ended(fate):
    found = repair(replace(LOST, fate=Fate(fate), ended_at_offset=95), "3.9.1")
    assert found.request is None
    assert "application's own tools" in found.tool


@pytest.mark.parametrize("fate", [Fate.OPEN, Fate.NONE])
@pytest.mark.parametrize("decided", ["COMMIT", "ABORT"])
def test_no_marker_may_end_records_of_another_transaction(fate, decided):
    shared = replace(LOST, decided_outcome=decided, fate=fate, others_offset=70)
    found = repair(shared, "3.9.1")
    assert found.request is None
    assert found.tool.startswith(
        "no one: a marker ends whatever the producer has open, and the records from offset 70 on"
    )
    pending = repair(replace(shared, marker="PENDING"), "3.9.1")
    assert (pending.request, pending.tool[:15]) == (None, "its coordinator")
    assert repair(replace(shared, marker="PENDING", seen_epoch=9), "3.9.1").tool.startswith("no one")


def test_what_another_marker_ended_needs_the_data_repaired_whatever_else_is_open():
    found = repair(replace(LOST, marker="CONTRADICTING", fate=Fate.NONE, others_offset=70), "3.9.1")
    assert (found.request, "application's own tools" in found.tool) == (None, True)


#: Decision, fate -> what read_committed consumers did with the records.
SAW = {
    ("COMMIT", "OPEN"): "wait at offset 90",
    ("COMMIT", "COMMIT"): "read the records late",
    (
        "COMMIT",
        "ABORT",
    ): "skip the records because of the ABORT marker at offset 95, although the transaction is committed",
    ("COMMIT", "NONE"): "no record of the transaction",
    ("ABORT", "OPEN"): "wait at offset 90",
    (
        "ABORT",
        "COMMIT",
    ): "read the records because of the COMMIT marker at offset 95, although the transaction is aborted",
    ("ABORT", "ABORT"): "skip the records, as they should",
    ("ABORT", "NONE"): "no record of the transaction",
}


@pytest.mark.parametrize(("decided", "fate"), SAW)
def test_what_consumers_saw_depends_on_what_ended_the_records(decided, fate):
    found = repair(replace(LOST, decided_outcome=decided, fate=Fate(fate), ended_at_offset=95), "3.9.1")
    assert SAW[decided, fate] in found.consumers_saw
    assert ("read_uncommitted" in found.consumers_saw) == (fate != "NONE")


def test_the_tables_are_complete():
    assert set(CONSUMERS_SAW) == set(product(("COMMIT", "ABORT"), Fate))
    assert set(TOOLS) == set(product((MarkerState.PENDING, MarkerState.MISSING), ("COMMIT", "ABORT"), (False, True)))


def test_a_hostile_topic_stays_data():
    (marker,) = json.loads(repair(replace(LOST, topic='a"b\nc'), "3.9.1").request)["markers"]
    assert marker["topics"][0]["name"] == 'a"b\nc'
