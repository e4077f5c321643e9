"""Open transactions that only the answer of their leader shows.

DeleteRecords cut the front of a log. One capture has a topic for each case, and what happens between two requests.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.audits import AuditTables, audited
from tests.support.fake_brokers import FakeBrokers, Log, brokers_with, filled, taken_by
from tests.support.log_notation import A, N, T
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.record_batch import RecordBatch, TimestampType
from txnlib.wire_capture.capture import ALL, OPEN

PRODUCER, EPOCH, START, LOG_START, END = 7, 3, 30, 34, 43
BEGUN = int(time.time() * 1000) - 7_200_000
STAMPED: dict[str, Any] = {"timestamp_type": TimestampType.LOG_APPEND_TIME, "ts": BEGUN + 1_000}
#: Topics in which only the leader knows the transaction, as it began; and those in which it has ended, or is not told.
ONLY_ANSWERED = ("deleted", "goes.on", "all.deleted")
ENDED = ("ended.since", "ended.before", "busy")
UNTOLD = ("overtaken", "not.described")


def log_with_a_transaction(*more: RecordBatch, deleted_before: int = LOG_START) -> Log:
    """A log whose front was deleted inside a transaction, and what its leader knows of the producer."""
    log = Log(last_stable=START)
    log.put(
        N(at=0, to=29, ts=BEGUN), T(PRODUCER, EPOCH, 0, 3, at=START, ts=BEGUN), *(more or [N(at=34, to=42, **STAMPED)])
    )
    known = {
        "producer_id": PRODUCER,
        "producer_epoch": EPOCH,
        "coordinator_epoch": -1,
        "current_txn_start_offset": START,
    }
    log.producers.append(SimpleNamespace(**known, last_sequence=3, last_timestamp=BEGUN))
    log.delete_before(deleted_before)
    return log


def ended_before() -> Log:
    log = log_with_a_transaction(N(at=34, to=41, **STAMPED), A(PRODUCER, EPOCH, at=42, ts=BEGUN + 2_000))
    log.producers.clear()
    log.last_stable = None
    return log


def not_described() -> Log:
    log = log_with_a_transaction()
    log.producers.clear()
    return log


def abort(log: Log) -> None:
    log.put(A(PRODUCER, EPOCH, at=END, ts=BEGUN + 2_000))
    log.producers.clear()
    log.last_stable = None


def overtake(log: Log) -> None:
    log.put(N(at=END, to=49, **STAMPED), N(at=50, to=60, **STAMPED))
    log.delete_before(50)


class Racing(FakeBrokers):
    """Brokers on which something happens once a request of a name has been answered, each time."""

    def __init__(self, logs: dict[str, Log], after: dict[str, Callable[[], None]]) -> None:
        super().__init__({(TRANSACTION_STATE_TOPIC, 0): Log(), **{(topic, 0): log for topic, log in logs.items()}})
        self.after = after

    def ask(self, request: Any, broker: int | None = None, **how: Any) -> Any:
        answer = super().ask(request, broker, **how)
        self.after.get(self.asked[-1], lambda: None)()
        return answer


def cluster() -> Racing:
    logs = {
        "deleted": log_with_a_transaction(),
        "goes.on": log_with_a_transaction(T(PRODUCER, EPOCH, 4, 5, at=34, ts=BEGUN + 500), N(at=36, to=42, **STAMPED)),
        "all.deleted": log_with_a_transaction(deleted_before=END),
        "ended.since": log_with_a_transaction(),
        "ended.before": ended_before(),
        "busy": Log(),
        "overtaken": log_with_a_transaction(),
        "not.described": not_described(),
    }

    def after_producers() -> None:
        abort(logs["ended.since"])
        overtake(logs["overtaken"])

    return Racing(logs, {"DescribeProducers": after_producers, "ListOffsets": logs["busy"].append})


@pytest.fixture(scope="module", params=[OPEN, ALL])
def tables(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AuditTables:
    folder: Path = tmp_path_factory.mktemp(request.param)
    taken_by(cluster(), folder, scope=request.param)
    return audited(folder)


def test_a_transaction_that_only_its_leader_shows_is_open(tables: AuditTables) -> None:
    rows = {row["topic"]: row for row in tables.rows("open_transactions")}
    assert set(rows) == set(ONLY_ANSWERED)
    for row in rows.values():
        assert (row["producer_id"], row["producer_epoch"], row["start_offset"]) == (PRODUCER, EPOCH, START)
        assert (row["verdict"], row["kafka_find_hanging"]) == ("HANGING", True)
        assert "this record is gone" in row["evidence"][0]["says"]


def test_it_is_not_safe_to_abort_and_the_reason_is_named(tables: AuditTables) -> None:
    for row in tables.rows("open_transactions"):
        assert not row["safe_to_abort"]
        assert row["abort_command"] is None
        assert "its first batch is gone" in row["do_not_abort_because"]


def test_its_producer_is_described_as_by_the_live_tool(tables: AuditTables) -> None:
    starts = {row["topic"]: row["current_transaction_start_offset"] for row in tables.rows("producer_states")}
    assert {topic for topic, start in starts.items() if start == START} == set(ONLY_ANSWERED)


def test_the_late_gauge_counts_it(tables: AuditTables) -> None:
    rows = {row["topic"]: row for row in tables.rows("partitions")}
    late = {topic: row["last_stable_offset"] for topic, row in rows.items() if row["is_late"]}
    assert late == {"deleted": LOG_START, "goes.on": LOG_START, "all.deleted": END}


def test_one_that_a_marker_ended_since_is_no_row_and_no_finding(tables: AuditTables) -> None:
    named = {row["topic"] for name in ("open_transactions", "findings") for row in tables.rows(name)}
    assert named.isdisjoint(ENDED)


def test_what_the_leader_answered_and_nothing_shows_is_said(tables: AuditTables) -> None:
    found = {(row["topic"], row["name"], row["offset"]) for row in tables.rows("findings")}
    assert found == {
        ("overtaken", "LIVE_ANSWER_DISAGREES", START),
        ("overtaken", "LIVE_STABLE_OFFSET_DISAGREES", LOG_START),
        ("not.described", "LIVE_STABLE_OFFSET_DISAGREES", LOG_START),
    }
    rows = {row["topic"]: row for row in tables.rows("partitions")}
    for topic in UNTOLD:
        assert (rows[topic]["blocking_verdict"], rows[topic]["blocking_producer_id"]) == ("UNKNOWN", None)
    assert rows["not.described"]["last_stable_offset"] == LOG_START


def test_a_dry_run_foresees_what_only_the_leader_knows_to_be_open(tmp_path: Path) -> None:
    """Everything was deleted below its end, so that only the answer about producers shows it."""
    fake = brokers_with(emptied=log_with_a_transaction(deleted_before=END), quiet=filled())
    planned, real = (taken_by(fake, tmp_path / str(is_dry), scope=OPEN, is_dry_run=is_dry) for is_dry in (True, False))
    for taken in (planned, real):
        assert {folder for folder, each in taken.items() if each.end_offset is not None} == {
            "emptied-0",
            "__transaction_state-0",
        }
