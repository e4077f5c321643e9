"""The collect plan from tables: its rows, its commands, and its forms for programs."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime

from tests.support.delta_tables import txn_audit, write, write_run

STATE = "__transaction_state"


def tables(root, *coverage):
    write_run(root)
    write(root, "coverage", *coverage)
    unknown = {"topic": "orders", "partition": 0, "verdict": "UNKNOWN", "reason": "COORDINATOR_PARTITION_NOT_CAPTURED"}
    unknown |= {"producer_id": 7, "coordinator_partition": 1}
    write(root, "open_transactions", unknown)
    ended = {"transactional_id": "b", "state": "CompleteCommit", "partitions": [{"topic": "pay", "partition": 1}]}
    write(root, "transactional_ids", {**ended, "transactional_id": "a", "state": "Ongoing"}, ended)
    return root


def whole(topic, partition):
    return {
        "topic": topic,
        "partition": partition,
        "status": "COMPLETE",
        "source": "raw:1",
        "broker": "1",
        "is_judged": True,
    } | {
        "is_decoded": True,
        "high_watermark": 1,
        "captured_at": datetime(2026, 11, 21, tzinfo=UTC),
    }


def gone(topic, partition, leader=None):
    return {"topic": topic, "partition": partition, "status": "MISSING", "is_judged": False, "leader": leader}


def test_what_is_missing_is_named_with_what_it_would_decide(tmp_path):
    root = tables(tmp_path, whole(STATE, 0), whole("orders", 0), gone(STATE, 1, "4"), gone("pay", 1, "4"))
    code, out, err = txn_audit(root, "collect-plan", "--format", "json")
    assert (code, err) == (0, "")
    first, second = json.loads(out)
    assert (first["need"], first["partition"], first["broker"], first["undecided"]) == (
        "COORDINATOR_MISSING",
        1,
        "4",
        1,
    )
    assert "listed by 1 unfinished transaction" in second["why"]
    text = txn_audit(root, "collect-plan")[1]
    command = "scripts/capture.sh --output CAPTURE --log-dirs DIRS --partitions pay-1"
    assert f"# on broker 4, whose coordinators are copied along\n{command}\n" in text


def test_people_see_what_helps_most_and_programs_all(tmp_path):
    root = tables(tmp_path, whole(STATE, 0), *[gone("pay", number) for number in range(90)])
    text = txn_audit(root, "collect-plan")[1]
    assert "and 50 more (--format csv has all)" in text
    assert len(text.splitlines()) < 50
    assert len(list(csv.DictReader(io.StringIO(txn_audit(root, "collect-plan", "--format", "csv")[1])))) == 90


def test_nothing_missing_is_said(tmp_path):
    root = tables(tmp_path, whole("orders", 0), whole(STATE, 0))
    assert txn_audit(root, "collect-plan") == (
        0,
        "nothing is missing: every partition that is named was captured whole\n",
        "",
    )
    assert json.loads(txn_audit(root, "collect-plan", "--format", "json")[1]) == []


def test_assumed_instants_are_said(tmp_path):
    root = tables(tmp_path, whole("orders", 0) | {"captured_at": None})
    assert "audit again with --captured-at TIME" in txn_audit(root, "collect-plan")[1]


def test_where_no_coordinator_was_read_nothing_is_not_missing(tmp_path):
    (row,) = json.loads(txn_audit(tables(tmp_path, whole("orders", 0)), "collect-plan", "--format", "json")[1])
    assert (row["need"], row["topic"], row["partition"], row["undecided"]) == ("COORDINATOR_MISSING", STATE, None, 1)
