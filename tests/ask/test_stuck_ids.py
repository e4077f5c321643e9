"""Transactional ids that are stuck without holding a partition: named at once, with what helps."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from tests.support.delta_tables import NOW, READ_BY_COMMANDS, at, txn_audit, write, write_run
from txnlib.ask.acknowledgements import Acknowledgement, acknowledged
from txnlib.ask.delta_rows import open_run, open_tables
from txnlib.ask.report_rows import report_of
from txnlib.ask.run_result import results_of
from txnlib.jobs.fail_on import matches

TWO_HOURS = 7_200_000
OWN = {"transactional_id": "pay-gw-1", "coordinator_partition": 3, "producer_id": 7001, "producer_epoch": 6}


def overdue(own: dict[str, object]) -> dict[str, object]:
    place = {"topic": "__transaction_state", "partition": own["coordinator_partition"], "offset": 10}
    ids = {name: own[name] for name in ("transactional_id", "producer_id")}
    return {"name": "COMPLETION_OVERDUE", "severity": "WARNING", **place, **ids, "evidence": "PrepareCommit"}


@pytest.fixture
def tables(tmp_path):
    for name in READ_BY_COMMANDS:
        write(tmp_path, name)
    write_run(tmp_path, verdicts={})
    younger = OWN | {"transactional_id": "pay-gw-2", "producer_id": 7002}
    for own, age in ((OWN, TWO_HOURS), (younger, 600_000)):
        write(tmp_path, "findings", overdue(own))
        stamped = {"record_timestamp": at(NOW - age), "state": "PrepareCommit", "application": "pay-gw"}
        write(tmp_path, "transactional_ids", own | stamped)
        whole = {"transaction_number": 1, "outcome": "COMMIT"}
        write(tmp_path, "transactions", own | whole)
        marked = {"topic": "pay", "partition": 0, "marker": "FOUND", "marker_offset": 3, "outcome": "COMMIT"}
        write(tmp_path, "transaction_outcomes", own | whole | marked | {"known_from": "COORDINATOR"})
    return tmp_path


def report(tables, **known):
    return report_of(open_run(open_tables(str(tables))), **known)


def test_nothing_is_called_calm_above_an_id_that_is_stuck(tables):
    told = report(tables)
    assert (told.level, told.calm, told.headline) == ("alarm", "", "2 STUCK_ID.")
    assert told.answer == [
        "2 STUCK_ID, ids hold no partition, and can begin no transaction, the longest: pay-gw-1 has been in"
        " PrepareCommit for 2 h",
        "first: pay-gw-1: get its coordinator __transaction_state-3 going, which sends its markers again",
    ]


def test_what_is_acknowledged_leaves_all_calm_and_fails_no_audit(tables):
    run = open_run(open_tables(str(tables)))
    known = [Acknowledgement(finding="COMPLETION_OVERDUE", until=_later(), by="me", why="known")]
    told = report_of(run, acknowledged(run, known))
    assert (told.stuck_ids, told.level) == ([], "calm")
    assert matches(["stuck"], told.counts) == []
    of_one = [known[0].model_copy(update={"producer_id": 7001})]
    assert [each.producer_id for each in report_of(run, acknowledged(run, of_one)).stuck_ids] == [7002]
    assert matches(["stuck"], report(tables).counts) == ["2 ids stuck without holding a partition"]


def _later() -> datetime:
    return datetime.fromtimestamp(NOW / 1000 + 90, UTC)


@pytest.mark.parametrize("words", [["explain", "pay-gw-1"], ["explain", "7001"], ["transaction", "pay-gw-1"]])
def test_an_answer_about_the_id_begins_with_what_is_wrong(tables, words):
    code, text, message = txn_audit(tables, *words)
    assert (code, message) == (0, "")
    first = text.split("\n\n")[1]
    assert first.startswith(
        "STUCK_ID  PrepareCommit for 2 h, and it can begin no other transaction\n  why      its coord"
    )
    assert text.index("STUCK_ID") < text.index("COMPLETE")


def test_an_id_that_is_not_stuck_has_nothing_to_explain(tables):
    write(tables, "transactional_ids", OWN | {"transactional_id": "calm", "producer_id": 1, "state": "Empty"})
    assert "nothing is open of calm" in txn_audit(tables, "explain", "calm")[2]


def test_programs_get_the_same(tables):
    run = open_run(open_tables(str(tables)))
    found = results_of(run, report_of(run))["stuck_ids"]
    assert [(each["transactional_id"], each["state"], each["since"]) for each in found] == [
        ("pay-gw-1", "PrepareCommit", at(NOW - TWO_HOURS)),
        ("pay-gw-2", "PrepareCommit", at(NOW - 600_000)),
    ]
    told = json.loads(txn_audit(tables, "transaction", "pay-gw-1", "--format", "json")[1])
    assert told["stuck"]["since_ms"] == NOW - TWO_HOURS
