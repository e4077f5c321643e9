"""Views that reports read: the metrics of each broker, and two-phase commits that are not decided, without a JVM.

The identity of a kept transaction is that of the examples of KIP-939. Spark and DuckDB: tests/house/test_sql.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.delta_tables import NOW, RUN, at, write, write_run
from txnlib.ask.delta_rows import Tables, open_run
from txnlib.ask.queries import Row
from txnlib.ask.report_rows import _in_doubt, broker_rows
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC

# ---- Brokers

LED = {"topic": "orders", "partition": 0, "broker": "1", "is_leader": True, "is_judged": True, "status": "COMPLETE"}
FOLLOWED = LED | {"broker": "2", "is_leader": False, "is_judged": False}
COORDINATOR = LED | {"topic": TRANSACTION_STATE_TOPIC, "partition": 7}
LATE = {"topic": "orders", "partition": 0, "is_late": True}
ONGOING = {"coordinator_partition": 7, "state": "Ongoing", "transaction_start": at(NOW - 600)}
NUMBERS = (
    "is_leadership_assumed",
    "replicas",
    "partitions_led",
    "partitions_with_late_transactions",
    "coordinators_led",
)


def brokers(root: Path, *copies: Row, late: tuple[Row, ...] = (), ids: tuple[Row, ...] = ()) -> list[Row]:
    write_run(root)
    write(root, "coverage", *copies)
    write(root, "partitions", *late)
    write(root, "transactional_ids", *ids)
    for name, rows in {"coverage": [LED], "partitions": [LATE], "transactional_ids": [ONGOING]}.items():
        write(root, name, *rows, run_id="another")
    return broker_rows(open_run(Tables(str(root)), run_id=RUN), NUMBERS, 10)


def test_only_the_leader_counts_a_late_partition(tmp_path: Path) -> None:
    made = brokers(tmp_path, LED, FOLLOWED, late=(LATE,))
    assert [[row[name] for name in ("broker", *NUMBERS)] for row in made] == [
        ["1", False, 1, 1, 1, 0],
        ["2", False, 1, 0, 0, 0],
    ]


def test_where_leaders_are_not_noted_the_judged_copy_leads(tmp_path: Path) -> None:
    made = brokers(tmp_path, LED | {"is_leader": None}, FOLLOWED | {"is_leader": None})
    assert [(row["partitions_led"], row["is_leadership_assumed"]) for row in made] == [(1, True), (0, True)]


def test_two_copies_from_one_broker_are_one_replica(tmp_path: Path) -> None:
    (made,) = brokers(tmp_path, LED, LED | {"is_leader": False, "is_judged": False})
    assert (made["replicas"], made["partitions_led"]) == (1, 1)


def test_the_oldest_ongoing_transaction_counts_on_its_leader(tmp_path: Path) -> None:
    ids = (ONGOING, ONGOING | {"transaction_start": at(NOW - 100)}, ONGOING | {"state": "PrepareCommit"})
    made = brokers(tmp_path, COORDINATOR, COORDINATOR | {"broker": "2", "is_leader": False}, ids=ids)
    assert [row["active_transaction_open_time_max_ms"] for row in made] == [600, None]
    assert [row["coordinators_led"] for row in made] == [1, 0]


def test_a_start_in_the_future_is_no_time_open(tmp_path: Path) -> None:
    (made,) = brokers(tmp_path, COORDINATOR, ids=(ONGOING | {"transaction_start": at(NOW + 1_000)},))
    assert made["active_transaction_open_time_max_ms"] == 0


def test_missing_partitions_and_copies_without_a_broker_have_no_row(tmp_path: Path) -> None:
    assert not brokers(tmp_path, LED | {"status": "MISSING"}, LED | {"broker": None})


# ---- In doubt

LIMIT = 900_000
BEGAN = NOW - 8_000_000
ID = {"transactional_id": "flink-1-7", "coordinator_partition": 3}
PREPARED = ID | {
    "transaction_number": 1, "producer_id": 6, "producer_epoch": 0, "state": "Ongoing", "start": at(BEGAN),
    "is_two_phase_commit": True, "outcome": "OPEN", "partitions": [{"topic": "orders", "partition": 0}],
    "last_record_offset": 906,
}  # fmt: skip
OWNER = ID | {"application": "flink", "last_update": at(BEGAN + 20)}
RECORD = {"topic": TRANSACTION_STATE_TOPIC, "partition": 3, "offset": 906, "transactional_id": "flink-1-7"}
NEXT = RECORD | {"next_producer_id": 73, "next_producer_epoch": 4}
HELD = ID | {"transaction_number": 1, "topic": "orders", "records": 5, "bytes": 500, "marker": "UNDECIDED"}
COLUMNS = (
    "transactional_id", "application", "state", "partitions", "records", "bytes", "open_since", "last_update",
    "is_kept", "kept_producer_id", "kept_producer_epoch", "first_seen", "runs_seen",
)  # fmt: skip


def in_doubt(root: Path, *transactions: Row, records: tuple[Row, ...] = (NEXT,), **earlier: Row) -> list[Row]:
    """`earlier`: run -> the transaction that it saw, a second after it began."""
    write_run(root)
    write(root, "transactions", *transactions)
    write(root, "transactional_ids", OWNER)
    write(root, "transaction_log", *records)
    write(root, "transaction_outcomes", *[HELD | {"partition": partition} for partition in (0, 1)])
    run: dict[str, Any] = {"as_of": at(BEGAN + 1_000), "started_at": at(NOW), "settings": "{}"}
    for run_id, seen in earlier.items():
        write(root, "audit_runs", run | {"status": "FAILED" if run_id == "failed" else "DONE"}, run_id=run_id)
        write(root, "transactions", seen, run_id=run_id)
    return open_run(Tables(str(root)), run_id=RUN).rows("in_doubt_transactions", COLUMNS)


def test_a_prepared_transaction_is_in_doubt(tmp_path: Path) -> None:
    decided, of_other_kind = PREPARED | {"outcome": "COMMIT"}, PREPARED | {"is_two_phase_commit": False}
    (row,) = in_doubt(tmp_path, PREPARED, decided, of_other_kind)
    assert (row["application"], row["state"], row["partitions"]) == ("flink", "Ongoing", PREPARED["partitions"])
    assert (row["records"], row["bytes"], row["last_update"], row["open_since"]) == (
        10,
        1_000,
        at(BEGAN + 20),
        at(BEGAN),
    )
    assert (row["is_kept"], row["kept_producer_id"], row["kept_producer_epoch"]) == (True, 73, 5)
    assert (row["first_seen"], row["runs_seen"]) == (at(NOW), 1)


MAX = 32767
#: Ongoing identity, next identity in the record -> what the next InitProducerId with keepPreparedTxn returns; None: a
#: new id.
KEPT = [
    ((42, 100), (None, None), (42, 101)),
    ((42, 100), (None, -1), (42, 101)),
    ((42, 100), (42, 101), (42, 102)),
    # KIP-939, example B: rows 4, 6 and 7
    ((42, MAX - 1), (None, None), (None, 0)),
    ((42, MAX - 1), (73, 0), (73, 1)),
    ((42, MAX - 1), (73, 1), (73, 2)),
    # a plain overflow has a next id without a next epoch
    ((42, 5), (85, None), (42, 6)),
    # the client's epochs are used up, too
    ((42, MAX - 1), (73, MAX - 2), (73, MAX - 1)),
    ((42, MAX - 1), (73, MAX - 1), (None, 0)),
    ((42, MAX - 1), (73, MAX), (None, 0)),
]


def test_a_client_that_comes_back_gets_the_next_identity(tmp_path: Path) -> None:
    numbered = list(enumerate(KEPT))
    transactions = [
        PREPARED | {"transactional_id": f"id-{number}", "producer_id": producer_id, "producer_epoch": epoch}
        for number, ((producer_id, epoch), _, _) in numbered
    ]
    records = [
        RECORD | {"transactional_id": f"id-{number}", "next_producer_id": next_id, "next_producer_epoch": epoch}
        for number, (_, (next_id, epoch), _) in numbered
    ]
    found = {row["transactional_id"]: row for row in in_doubt(tmp_path, *transactions, records=tuple(records))}
    kept = [(found[f"id-{n}"]["kept_producer_id"], found[f"id-{n}"]["kept_producer_epoch"]) for n, _ in numbered]
    assert kept == [returned for _, _, returned in KEPT]


@pytest.mark.parametrize(
    ("records", "kept"),
    [
        pytest.param((RECORD, NEXT), (True, 73, 5), id="text that omits fields, and a copy that has them"),
        pytest.param((), (None, 6, 1), id="no copy"),
        pytest.param((RECORD | {"next_producer_epoch": -1},), (False, 6, 1), id="not kept"),
        pytest.param((NEXT | {"offset": 1},), (None, 6, 1), id="another record"),
    ],
)
def test_copies_of_the_last_record_are_one(tmp_path: Path, records: tuple[Row, ...], kept: tuple[object, ...]) -> None:
    (row,) = in_doubt(tmp_path, PREPARED, records=records)
    assert (row["is_kept"], row["kept_producer_id"], row["kept_producer_epoch"]) == kept


def test_what_another_transaction_holds_is_not_counted(tmp_path: Path) -> None:
    (row,) = in_doubt(tmp_path, PREPARED | {"transaction_number": 2})
    assert (row["records"], row["bytes"]) == (None, None)


def test_a_transaction_is_overdue_after_the_limit(tmp_path: Path) -> None:
    starts = (NOW - LIMIT, NOW - LIMIT - 1, NOW + 5, None)  # nobody knows that the last one is young
    transactions = [
        PREPARED | {"transaction_number": n, "start": None if ms is None else at(ms)} for n, ms in enumerate(starts)
    ]
    assert len(in_doubt(tmp_path, *transactions)) == 4
    assert _in_doubt(open_run(Tables(str(tmp_path)))) == {"OVERDUE": 2, "IN_TIME": 2}


@pytest.mark.parametrize(
    ("earlier", "runs", "first_ms"),
    [
        ({"one": PREPARED, "two": PREPARED}, 3, BEGAN + 1_000),
        ({"failed": PREPARED}, 1, NOW),
        ({"one": PREPARED | {"producer_epoch": 1}}, 1, NOW),
        ({"one": PREPARED | {"producer_id": 7}}, 1, NOW),
        ({"one": PREPARED | {"start": at(BEGAN + 1)}}, 1, NOW),
    ],
)
def test_runs_that_saw_the_same_transaction_count(
    tmp_path: Path, earlier: dict[str, Row], runs: int, first_ms: int
) -> None:
    (row,) = in_doubt(tmp_path, PREPARED, **earlier)
    assert (row["runs_seen"], row["first_seen"]) == (runs, at(first_ms))


def test_of_a_transaction_whose_start_is_not_known_nobody_knows_whether_it_was_seen(tmp_path: Path) -> None:
    unknown = PREPARED | {"start": None}
    (row,) = in_doubt(tmp_path, unknown, one=unknown)
    assert row["runs_seen"] == 1
