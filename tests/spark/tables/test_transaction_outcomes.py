"""Whole transactions: the marker on each partition, what a lost one needs, and what is in doubt."""

from datetime import UTC, datetime

import pytest

from tests.support.frames import frame, kept
from txnlib.core.kafka.constants import MAX_INT32
from txnlib.spark.schemas import TABLES
from txnlib.spark.tables.transaction_outcomes import transaction_outcomes

AS_OF = 9_000_000
BEGAN, DECIDED, COMPLETED = 1_000_000, 1_000_100, 1_000_200
#: Partition 7 was not captured; 8 begins at offset 50; all others are whole.
NOT_CAPTURED, CUT = 7, 8
(
    COMMITTED,
    LOST,
    UNSEEN,
    PENDING,
    OPEN,
    PREPARED,
    SPLIT,
    HASTY,
    FORGOTTEN,
    UNKNOWN_OWNER,
    TWO_OWNERS,
    LEFT_OPEN,
    BEFORE,
) = range(1, 14)
#: Producer id -> partitions of its transaction, decision, state.
DECISIONS = {
    COMMITTED: ([0, 1], "COMMIT", "CompleteCommit"),
    LOST: ([0, 1, CUT], "COMMIT", "CompleteCommit"),
    UNSEEN: ([0, NOT_CAPTURED], "ABORT", "CompleteAbort"),
    PENDING: ([0, 1], "COMMIT", "PrepareCommit"),
    OPEN: ([0], "OPEN", "Ongoing"),
    PREPARED: ([0, 1], "OPEN", "Ongoing"),
    SPLIT: ([0, 1], "COMMIT", "CompleteCommit"),
    HASTY: ([0, 1], "OPEN", "Ongoing"),
    FORGOTTEN: (None, "COMMIT", "CompleteCommit"),
}
#: Producer id -> partition, first offset, marker, its type and time of each span.
SPANS = {
    COMMITTED: [(0, 10, 11, "COMMIT", DECIDED + 5), (1, 10, 11, "COMMIT", DECIDED + 5)],
    LOST: [(0, 20, 21, "COMMIT", DECIDED + 5), (1, 20, None, None, None)],
    UNSEEN: [(0, 30, 31, "ABORT", DECIDED + 5)],
    PENDING: [(0, 40, 41, "COMMIT", DECIDED + 5), (1, 40, None, None, None)],
    OPEN: [(0, 50, None, None, None)],
    PREPARED: [(0, 60, None, None, None), (1, 60, None, None, None)],
    # Somebody aborted partition 0 by hand; the coordinator's COMMIT ended nothing there.
    SPLIT: [(0, 70, 71, "ABORT", BEGAN + 50), (0, None, 72, "COMMIT", DECIDED + 5), (1, 70, 71, "COMMIT", DECIDED + 5)],
    HASTY: [(0, 80, 81, "ABORT", BEGAN + 50), (1, 80, None, None, None)],
    # The first is of a transaction before, the second has the epoch of another.
    FORGOTTEN: [
        (0, 90, 91, "COMMIT", BEGAN - 10),
        (0, 92, 93, "COMMIT", DECIDED + 5),
        (1, 92, 93, "ABORT", DECIDED + 5),
    ],
    UNKNOWN_OWNER: [(0, 100, 101, "ABORT", DECIDED)],
    TWO_OWNERS: [(0, 110, 111, "COMMIT", DECIDED)],
    LEFT_OPEN: [(0, 120, None, None, None)],
    # Partition 1 is older than all transactions.
    BEFORE: [(1, 1, 2, "COMMIT", BEGAN - 500)],
}


def at(ms):
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)


def name(producer_id):
    return f"id-{producer_id}"


def places(numbers):
    return [{"topic": "orders", "partition": number} for number in numbers]


def transaction(producer_id, partitions, outcome, state):
    is_decided = outcome != "OPEN"
    is_listed = is_decided and partitions is not None
    row = {
        "transactional_id": name(producer_id),
        "coordinator_partition": 3,
        "transaction_number": 1,
        "producer_id": producer_id,
    }
    row |= {
        "producer_epoch": 0,
        "state": state,
        "outcome": outcome,
        "start": at(BEGAN),
        "last_record_offset": 900 + producer_id,
    }
    is_prepared = producer_id == PREPARED
    row |= {"is_two_phase_commit": is_prepared, "transaction_timeout_ms": MAX_INT32 if is_prepared else 60_000}
    row |= {"partitions": None if partitions is None else places(partitions), "transaction_version": 0}
    if producer_id == FORGOTTEN:
        row["markers"] = [matched(producer_id, 0, outcome, number=1)]
    elif partitions is not None:
        row["markers"] = [matched(producer_id, number, outcome) for number in partitions]
    if is_listed:
        row |= {"prepared": at(DECIDED), "decided": at(DECIDED), "decided_epoch": 0}
    if state.startswith("Complete"):
        row["completed"] = at(COMPLETED)
    return row


def matched(producer_id, partition, outcome, number=0):
    of = [span for span in SPANS[producer_id] if span[0] == partition and span[3] == outcome]
    found = {
        "topic": "orders",
        "partition": partition,
        "is_followed": False,
        "clock_offset_ms": 0,
        "clocks_differ_ms": 1_000,
    }
    found |= {"marker_offset": of[number][2], "marker_type": outcome, "first_offset": of[number][1]} if of else {}
    return tuple(found.get(field.name) for field in TABLES["transactions"]["markers"].dataType.elementType)


def span(producer_id, partition, first_offset, marker_offset, marker_type, marker_ms):
    row = {
        "topic": "orders",
        "partition": partition,
        "producer_id": producer_id,
        "producer_epoch": 0,
        "first_offset": first_offset,
    }
    row |= {
        "marker_offset": marker_offset,
        "marker_type": marker_type,
        "marker_ms": marker_ms,
        "first_timestamp_ms": BEGAN + 10,
    }
    row |= {"records": None if first_offset is None else 5, "bytes": None if first_offset is None else 500, "span": 0}
    if marker_offset is None:
        state = {"producer_epoch": 0, "current_txn_first_offset": first_offset, "last_timestamp": BEGAN + 10}
        row["state"] = tuple(state.get(field.name) for field in TABLES["producer_spans"]["state"].dataType)
    return row | {"is_newest": marker_offset is None, "marker_epoch": None if marker_offset is None else 0}


def copy(partition, **facts):
    row = {"topic": "orders", "partition": partition, "source": "raw:1", "is_judged": True, "is_decoded": True}
    row |= {"status": "COMPLETE", "log_start_offset": 0, "read_from_offset": 0, "leader": "1"}
    return row | {"known_until": at(AS_OF), "captured_at": at(AS_OF)} | facts


@pytest.fixture(scope="module")
def told(spark):
    copies = [copy(0), copy(1), copy(CUT, log_start_offset=50, read_from_offset=50)]
    copies += [{"topic": "orders", "partition": NOT_CAPTURED, "status": "MISSING", "is_judged": False}]
    return {
        "transactions": frame(
            spark, TABLES["transactions"], *[transaction(number, *each) for number, each in DECISIONS.items()]
        ),
        "producer_spans": frame(
            spark, TABLES["producer_spans"], *[span(number, *each) for number, spans in SPANS.items() for each in spans]
        ),
        "coverage": frame(spark, TABLES["coverage"], *copies, copy(3, topic="__transaction_state", leader_epoch=6)),
    }


@pytest.fixture(scope="module")
def outcomes(spark, told):
    owners = [(number, name(number)) for number in DECISIONS] + [
        (TWO_OWNERS, "one"),
        (TWO_OWNERS, "other"),
        (LEFT_OPEN, "left"),
    ]
    owned = [{"producer_id": number, "transactional_id": owner, "coordinator_partition": 3} for number, owner in owners]
    odd = [("SPLIT_OUTCOME", SPLIT, 0, 71), ("ABORTED_WHILE_ONGOING", HASTY, 0, 81), ("MARKER_MISSING", LOST, 1, None)]
    findings = [finding(*each) for each in odd]
    found = kept(outcomes_of(spark, told, told["transactions"], told["producer_spans"], owned, findings))
    return found, [row.asDict() for row in found.collect()]


def finding(kind, producer_id, partition, offset):
    of = {"transactional_id": name(producer_id), "transaction_number": 1, "producer_id": producer_id}
    return of | {"name": kind, "severity": "ERROR", "topic": "orders", "partition": partition, "offset": offset}


def outcomes_of(spark, told, transactions, spans, owned=(), findings=()):
    owners = frame(spark, TABLES["producer_id_owners"], *owned)
    return transaction_outcomes(
        transactions, spans, owners, frame(spark, TABLES["findings"], *findings), told["coverage"], as_of_ms=AS_OF
    )


#: Producer, partition -> where the row comes from, marker, its offset, outcome, records.
EXPECTED = {
    (COMMITTED, 0): ("COORDINATOR", "FOUND", 11, "COMMIT", 5),
    (COMMITTED, 1): ("COORDINATOR", "FOUND", 11, "COMMIT", 5),
    (LOST, 0): ("COORDINATOR", "FOUND", 21, "COMMIT", 5),
    (LOST, 1): ("COORDINATOR", "MISSING", None, "OPEN", 5),
    (LOST, CUT): ("COORDINATOR", "UNKNOWN", None, None, None),
    (UNSEEN, 0): ("COORDINATOR", "FOUND", 31, "ABORT", 5),
    (UNSEEN, NOT_CAPTURED): ("COORDINATOR", "UNKNOWN", None, None, None),
    (PENDING, 0): ("COORDINATOR", "FOUND", 41, "COMMIT", 5),
    (PENDING, 1): ("COORDINATOR", "PENDING", None, "OPEN", 5),
    (OPEN, 0): ("COORDINATOR", "UNDECIDED", None, "OPEN", 5),
    (PREPARED, 0): ("COORDINATOR", "IN_DOUBT", None, "OPEN", 5),
    (PREPARED, 1): ("COORDINATOR", "IN_DOUBT", None, "OPEN", 5),
    (SPLIT, 0): ("COORDINATOR", "CONTRADICTING", 71, "ABORT", 5),
    (SPLIT, 1): ("COORDINATOR", "FOUND", 71, "COMMIT", 5),
    (HASTY, 0): ("COORDINATOR", "EARLY", 81, "ABORT", 5),
    (HASTY, 1): ("COORDINATOR", "UNDECIDED", None, "OPEN", 5),
    (FORGOTTEN, 0, 93): ("MARKER", "FOUND", 93, "COMMIT", 5),
    (FORGOTTEN, 0, 91): ("PARTITION", "FOUND", 91, "COMMIT", 5),
    (FORGOTTEN, 1): ("PARTITION", "FOUND", 93, "ABORT", 5),
    (UNKNOWN_OWNER, 0): ("PARTITION", "FOUND", 101, "ABORT", 5),
    (TWO_OWNERS, 0): ("PARTITION", "FOUND", 111, "COMMIT", 5),
    (LEFT_OPEN, 0): ("PARTITION", "UNDECIDED", None, "OPEN", 5),
    (BEFORE, 1): ("PARTITION", "FOUND", 2, "COMMIT", 5),
}


def test_each_transaction_has_a_row_for_each_partition(outcomes):
    _, rows = outcomes
    shown = {}
    for row in rows:
        key = (row["producer_id"], row["partition"])
        key += (row["marker_offset"],) if key == (FORGOTTEN, 0) else ()
        assert key not in shown
        shown[key] = tuple(row[name] for name in ("known_from", "marker", "marker_offset", "outcome", "records"))
    assert shown == EXPECTED


def test_only_a_single_owner_is_named(outcomes):
    _, rows = outcomes
    owners = {row["producer_id"]: row["transactional_id"] for row in rows}
    assert (owners[UNKNOWN_OWNER], owners[TWO_OWNERS], owners[LEFT_OPEN]) == (None, None, "left")
    assert owners[COMMITTED] == name(COMMITTED)


def test_what_is_not_known_says_which_copy_would_tell(outcomes):
    _, rows = outcomes
    says = {(row["producer_id"], row["partition"]): row["says"] for row in rows}
    assert says[UNSEEN, NOT_CAPTURED].endswith("no copy of the partition was captured")
    assert says[LOST, CUT].endswith("the copy begins at offset 50")
    assert says[SPLIT, 0] == "an ABORT marker at offset 71 contradicts the decision, COMMIT"
    assert says[COMMITTED, 0] is None


def test_a_copy_that_may_hide_a_marker_is_told_by_what_hides_it(spark, told):
    hiding = {
        "the copy has a hole before offset 22": {"gap_offset": 22},
        "the copy is damaged at offset 9": {"damaged_offset": 9},
        "the copy is text in which markers were not printed": {"is_decoded": False},
    }
    for says, facts in hiding.items():
        altered = {**told, "coverage": frame(spark, TABLES["coverage"], copy(CUT, **facts))}
        rows = (
            outcomes_of(spark, altered, told["transactions"], told["producer_spans"])
            .where(f"partition = {CUT}")
            .collect()
        )
        assert {row["says"].partition(": ")[2] for row in rows} == {says}


#: Epoch of a decision, transaction version -> whether open records of epochs 3 to 5 may be of that transaction.
EPOCHS = {
    (2, None): False,
    (3, None): True,
    (6, None): True,
    (7, None): False,
    (3, 2): False,
    (4, 2): True,
    (6, 2): True,
    (7, 2): False,
}


def test_open_records_are_of_no_transaction_whose_epoch_they_lack(spark, told):
    """`core.kafka.marker_acceptance.record_epochs`; a leader elected uncleanly lost the records of the others."""
    rows, spans = [], []
    for number, (epoch, version) in enumerate(EPOCHS, 100):
        names = {
            "producer_id": number,
            "transactional_id": name(number),
            "decided_epoch": epoch,
            "transaction_version": version,
        }
        rows.append(transaction(LOST, [1], "COMMIT", "CompleteCommit") | names)
        opened = span(number, 1, number, None, None, None) | {"producer_epoch": 3}
        spans.append(opened | {"state": (5, *opened["state"][1:])})
    before = [span(BEFORE, *each) for each in SPANS[BEFORE]]
    found = outcomes_of(
        spark,
        told,
        frame(spark, TABLES["transactions"], *rows),
        frame(spark, TABLES["producer_spans"], *spans, *before),
        findings=[finding("MARKER_MISSING", row["producer_id"], 1, None) for row in rows],
    ).collect()
    listed = {row["producer_id"]: row["first_offset"] for row in found if row["known_from"] == "COORDINATOR"}
    assert [listed[number] is not None for number in range(100, 100 + len(EPOCHS))] == list(EPOCHS.values())
    alone = {row["producer_id"] for row in found if row["known_from"] == "PARTITION" and row["producer_id"] >= 100}
    assert alone == {number for number, is_own in enumerate(EPOCHS.values(), 100) if not is_own}, "they are still shown"
