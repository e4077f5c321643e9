"""The search of `find-hanging` as data, complete for every form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.delta_tables import NOW, at, write, write_run
from txnlib.ask.delta_rows import open_run, open_tables
from txnlib.ask.kafka_transactions import HangingSearch, find_hanging_output, hanging_search
from txnlib.core.kafka_commands import SearchScope

MINUTE = 60_000
FOO = SearchScope(topic="foo")
FOO_0 = {"topic": "foo", "partition": 0}


def opened(partition: int, producer_id: int, age_minutes: int, hangs: bool | None) -> dict[str, Any]:
    row = {"topic": "foo", "partition": partition, "producer_id": producer_id, "start_offset": 7, "producer_epoch": 0}
    ms = NOW - age_minutes * MINUTE
    return row | {"last_timestamp": at(ms), "last_timestamp_ms": ms, "kafka_find_hanging": hangs, "verdict": "OPEN"}


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """An audit with a timeout of 60 minutes: foo-0 hangs, foo-1 cannot be decided, foo-2 was too young; producer 4 is
    known."""
    write_run(tmp_path, max_transaction_timeout_ms=60 * MINUTE)
    copy = {"topic": "foo", "broker": "1", "source": "raw:1", "status": "COMPLETE", "is_decoded": True}
    write(tmp_path, "coverage", *[{**copy, "partition": n} for n in range(4)], {**copy, "topic": "bar", "partition": 0})
    write(tmp_path, "coverage", {**copy, "topic": "__transaction_state", "partition": 0})
    write(tmp_path, "open_transactions", opened(0, 1, 120, True), opened(1, 2, 90, None), opened(2, 3, 20, False))
    listed = {
        "transactional_id": "d",
        "coordinator_partition": 0,
        "producer_id": 4,
        "state": "Ongoing",
        "partitions": [],
    }
    write(tmp_path, "open_transactions", opened(3, 4, 20, False))
    write(
        tmp_path,
        "transactional_ids",
        {**listed, "partitions": [{"topic": "foo", "partition": 3}]},
        {**listed, "transactional_id": "c", "producer_id": 3, "partitions": [FOO_0]},
        {**listed, "transactional_id": "gone", "producer_id": 1, "state": None, "partitions": [FOO_0]},
    )
    write(tmp_path, "producer_states", *[{"topic": "foo", "partition": 0, "producer_id": n} for n in range(5)])
    return tmp_path


def search(root: Path, minutes: int | None = None, *, with_order: bool = False) -> HangingSearch:
    return hanging_search(open_run(open_tables(str(root))), FOO, minutes, with_order=with_order)


def test_the_timeout_of_the_audit_takes_its_decisions(tables):
    result = search(tables)
    assert [(row["partition"], row["duration_minutes"]) for row in result.hanging] == [(0, 120)]
    assert (result.undecided, result.candidates) == (1, 2)


@pytest.mark.parametrize(
    ("minutes", "partitions", "undecided", "candidates"),
    [(10, [0, 2], 1, 4), (30, [0], 1, 2), (100, [0], 1, 1), (150, [], 1, 0)],
)
def test_another_timeout_is_decided_by_the_core(tables, minutes, partitions, undecided, candidates):
    """What the audit could not decide stays undecided, and a partition that its id lists does not hang."""
    result = search(tables, minutes)
    assert [row["partition"] for row in result.hanging] == partitions
    assert (result.undecided, result.candidates) == (undecided, candidates)


def test_the_order_of_kafka_is_queried_where_it_is_printed(tables):
    assert not any(search(tables).producers.values()), "not asked for"
    result = search(tables, with_order=True)
    assert result.producers == {("foo", 0): 5, ("foo", 1): 0, ("foo", 2): 0, ("foo", 3): 0}, (
        "of searched partitions only"
    )
    printed = find_hanging_output(result).text("kafka")
    assert [line.split("\t")[1].strip() for line in printed.splitlines()[1:]] == ["0"]
