"""The story of one transaction, from a bounded part of both logs."""

from __future__ import annotations

import json
import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from tests.support.delta_tables import NOW, at, txn_audit, write, write_run
from tests.support.golden import differences, printed
from txnlib.ask.delta_rows import open_run, open_tables
from txnlib.ask.explain import explain
from txnlib.ask.explain_command import answer

PAY = {"topic": "payments", "partition": 0}
SOURCE = "raw:1"
ID = "payments-batch-7"
COORDINATOR = {"topic": "__transaction_state", "partition": 3}


def batch(first: int, last: int, ms: int, producer_id: int = 7, **more: Any) -> dict[str, Any]:
    row = {**PAY, "source": SOURCE, "base_offset": first, "last_offset": last, "records_count": last - first + 1}
    row |= {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": first, "last_sequence": last, "magic": 2}
    row |= {
        "is_transactional": True,
        "is_control": False,
        "timestamp_type": "CREATE_TIME",
        "max_timestamp_ms": NOW + ms,
    }
    row |= {"partition_leader_epoch": 0, "position": first * 77, "size": 77, "compression_type": "none", "crc": 1}
    return row | more


def marker(offset: int, ms: int, producer_id: int = 7) -> dict[str, Any]:
    kind = {
        "is_control": True,
        "control_type": "ABORT",
        "coordinator_epoch": 0,
        "base_sequence": None,
        "last_sequence": None,
    }
    return batch(offset, offset, ms, producer_id, **kind)


def spans_of(*batches: dict[str, Any]) -> list[dict[str, Any]]:
    """What the audit makes of the markers among these batches."""
    columns = {"base_offset": "marker_offset", "max_timestamp_ms": "marker_ms", "producer_id": "producer_id"}
    return [PAY | {to: row[name] for name, to in columns.items()} for row in batches if row["is_control"]]


def state(offset: int, ms: int, name: str | None, *partitions: dict[str, Any], number: int = 1) -> dict[str, Any]:
    row = {
        "transactional_id": ID,
        "coordinator_partition": 3,
        "offset": offset,
        "timestamp_ms": NOW + ms,
        "state": name,
    }
    row |= {"is_tombstone": name is None, "producer_id": 7, "producer_epoch": 0, "partitions": list(partitions)}
    return row | {"transaction_number": number}


def verdict(start_offset: int, **more: Any) -> dict[str, Any]:
    evidence = [
        {
            **PAY,
            "offset": start_offset - 1,
            "record": "endTxnMarker: ABORT",
            "says": "the producer's last marker in this partition",
        },
        {**COORDINATOR, "offset": 4, "record": "state=CompleteAbort", "says": "does not list this partition"},
        {**PAY, "offset": 5_000, "record": "as the audit noted it", "says": "a record that is not in the tables"},
    ]
    row = {**PAY, "producer_id": 7, "producer_epoch": 0, "start_offset": start_offset, "last_timestamp": at(NOW)}
    row |= {
        "transactional_id": ID,
        "coordinator_partition": 3,
        "coordinator_state": "CompleteAbort",
        "verdict": "HANGING",
    }
    row |= {
        "reason": "WRITTEN_AFTER_MARKER",
        "explanation": "written after the ABORT marker",
        "kafka_find_hanging": True,
    }
    row |= {"causes": [{"cause": "late produce", "likelihood": "LIKELY", "evidence": "it says"}], "evidence": evidence}
    row |= {
        "age_basis": "CLIENT_CLOCK",
        "broker_clock_age_ms": 1_380_000,
        "duration_minutes": 23,
        "safe_to_abort": True,
    }
    row |= {"abort_command": "kafka-transactions.sh … abort", "blocked_offsets": 212, "blocked_bytes": 10_035}
    return row | {"blocks_since": at(NOW), "first_seen": at(NOW), "runs_seen": 1} | more


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A late produce after an abort; beside it a copy that is not judged, and another producer."""
    write_run(tmp_path)
    write(tmp_path, "open_transactions", verdict(27))
    copies = [("raw:1", True), ("raw:2", False)]
    write(
        tmp_path,
        "coverage",
        *[{**PAY, "source": name, "is_judged": judged, "status": "COMPLETE"} for name, judged in copies],
    )
    batches = [
        batch(24, 24, 105),
        batch(25, 25, 114),
        marker(26, 141),
        batch(27, 27, 120),
        batch(28, 28, 500, producer_id=8),
    ]
    batches = [marker(20, 50, producer_id=8), *batches, marker(30, 65_000, producer_id=8)]
    write(tmp_path, "record_batches", *batches)
    write(tmp_path, "producer_spans", *spans_of(*batches))
    write(tmp_path, "record_batches", *[{**row, "source": "raw:2"} for row in batches])
    write(tmp_path, "partition_transactions", {**PAY, "producer_id": 7, "first_offset": 24, "marker_offset": 26})
    states = [
        state(1, 101, "Ongoing", {"topic": "orders", "partition": 2}, PAY),
        state(3, 127, "PrepareAbort", {"topic": "orders", "partition": 2}, PAY),
        state(4, 150, "CompleteAbort"),
    ]
    write(tmp_path, "coordinator_states", *states)
    logged = {**COORDINATOR, "offset": 4, "timestamp_ms": NOW + 150, "transactional_id": ID, "is_tombstone": False}
    logged |= {"producer_id": 7, "producer_epoch": 0, "transaction_timeout_ms": 900_000, "state": "CompleteAbort"}
    write(
        tmp_path,
        "transaction_log",
        {**logged, "partitions": [], "value_version": 1, "last_update_ms": NOW, "start_ms": NOW},
    )
    return tmp_path


GONE = dict.fromkeys(
    ("transactional_id", "coordinator_partition", "coordinator_state", "evidence", "causes", "abort_command")
) | {"do_not_abort_because": "no clock proves its age"}
UNCLEAR = {
    "verdict": "UNKNOWN",
    "reason": "COORDINATOR_LOG_DAMAGED",
    "abort_command": None,
    "do_not_abort_because": "x",
}
#: What is changed of the transaction, and others that are open beside it.
OTHERS: dict[str, list[dict[str, Any]]] = {
    "a coordinator's log would settle it": [verdict(27, **UNCLEAR)],
    "its command must wait": [
        verdict(27, safe_to_abort=False, do_not_abort_because="young", safe_from=at(NOW + 60_000))
    ],
    "only a snapshot remembers it": [verdict(40, **GONE, producer_id=9, safe_to_abort=False, kafka_find_hanging=None)],
    "it waits behind another one": [verdict(27, holds=False)],
    "it is open on other partitions, too": [
        verdict(27),
        *[verdict(9, topic="orders", partition=number) for number in range(8)],
        verdict(9, topic="a", producer_id=8),
        verdict(9, topic="a", transactional_id="b"),
    ],
}


def test_what_is_told_is_as_it_was_read_last(assert_as_read, tables):
    """The story of a late produce, from both sides and with its evidence; and what is said if it differs."""
    holder = {**PAY, "blocking_producer_id": 3, "blocking_transactional_id": "app-7", "last_stable_offset": 9}
    write(tables, "partitions", holder)
    base, cases = printed(tables, ["explain payments 0 27"]), dict[str, str]()
    for name, rows in OTHERS.items():
        shutil.rmtree(tables / "open_transactions")
        write(tables, "open_transactions", *rows)
        cases[name] = printed(tables, [f"explain payments 0 {rows[0]['start_offset']}"])
    assert_as_read("explain", differences(base, cases))


def test_sentences_are_as_wide_as_the_terminal_and_records_in_one_piece(tables):
    run = open_run(open_tables(str(tables)))
    opened = run.rows("open_transactions", ("topic", "partition", "start_offset"))[0]
    told = answer(run, Namespace(where=[str(value) for value in opened.values()]))
    assert callable(told.tail)
    wide, narrow = told.tail(132), told.tail(60)
    says, _, records = narrow.partition("\nRECORDS")
    assert [line for line in says.splitlines() if len(line) > 60 and not line.startswith("  do ")] == []
    assert wide.split() == narrow.split(), "the words are the same"
    printed = [line for line in records.splitlines() if "ffset: " in line]
    assert len(printed) > 2
    assert printed == [line for line in wide.partition("\nRECORDS")[2].splitlines() if "ffset: " in line]
    assert told.text("table", width=60).endswith(narrow)
    assert told.text("table").endswith(wide)


def test_programs_get_instants_and_offsets(tables):
    code, out, _ = txn_audit(tables, "explain", "payments", 0, 27, "--format", "json")
    told = json.loads(out)
    assert (code, told["verdict"]["verdict"]) == (0, "HANGING")
    assert told["steps"][-1] == {
        "log": "payments-0",
        "first_offset": 27,
        "last_offset": 27,
        "written_by": "producer 7",
        "after_ms": NOW + 141,
        "before_ms": NOW + 65_000,
        "record": "1 record, epoch 0, sequence 27",
        "state_after": "open from 27",
        "is_open": True,
    }


def test_the_story_is_data_that_prints_as_the_command_does(tables):
    story = explain(open_run(open_tables(str(tables))), "payments", 0, 27)
    assert str(story) == txn_audit(tables, "explain", "payments", 0, 27)[1]
    assert (story.verdict["verdict"], story.verdict["blocks_since"]) == ("HANGING", NOW)
    assert [(row["log"], row["event"], row["offset"]) for row in story.rows] == [
        ("__transaction_state-3", "Ongoing", 1),
        ("payments-0", "batch", 24),
        ("__transaction_state-3", "PrepareAbort", 3),
        ("payments-0", "ABORT marker", 26),
        ("__transaction_state-3", "CompleteAbort", 4),
        ("payments-0", "batch", 27),
    ]
    late = story.rows[-1]
    assert (late["at_ms"], late["clock"], late["after_ms"], late["before_ms"]) == (
        NOW + 120,
        "CLIENT",
        NOW + 141,
        NOW + 65_000,
    )
    assert (late["written_by"], late["producer_id"], late["mark"]) == ("producer 7", 7, "HANGING")


def test_a_long_history_is_bounded_and_what_is_left_out_is_counted(tmp_path):
    """A producer of 100 transactions, 300 records of its id before the start and 300 after it."""
    write_run(tmp_path)
    write(tmp_path, "open_transactions", verdict(1_000))
    write(tmp_path, "coverage", {**PAY, "source": SOURCE, "is_judged": True})
    past = [
        row for n in range(100) for row in (batch(n * 10, n * 10 + 8, n * 100 + 40), marker(n * 10 + 9, n * 100 + 60))
    ]
    past.append(marker(1_001, 10_100, producer_id=8))
    write(tmp_path, "record_batches", *past, batch(1_000, 1_000, 5))
    write(tmp_path, "producer_spans", *spans_of(*past))
    firsts = [{**PAY, "producer_id": 7, "first_offset": n * 10} for n in range(100)]
    write(tmp_path, "partition_transactions", *firsts)
    steps = ("Ongoing", "PrepareAbort", "CompleteAbort")
    states = [
        state(n, n // 3 * 100 + n % 3 * 50, steps[n % 3], *([PAY] if n % 3 < 2 else []), number=n // 3)
        for n in range(600)
    ]
    write(tmp_path, "coordinator_states", *states)
    write(tmp_path, "transaction_log")
    code, out, err = txn_audit(tmp_path, "explain", "payments", 0, 1_000, "--format", "json")
    told = json.loads(out)
    assert (code, err) == (0, "")
    here = [step["first_offset"] for step in told["steps"] if step["log"] == "payments-0"]
    assert here == [980, 989, 990, 999, 1_000]
    assert len(told["steps"]) < 30
    assert told["left_out"][0] == "196 earlier batches of producer 7 here"
    assert told["left_out"][1].endswith(" earlier records of payments-batch-7")
    (gap,) = (step for step in told["steps"] if step["first_offset"] is None)
    shown = [step["first_offset"] for step in told["steps"] if step["log"].startswith("__transaction_state")]
    assert shown[-2:] == [598, 599], "the last word of the coordinator is always there"
    assert (
        gap["record"]
        == f"… {600 - int(told['left_out'][1].split()[0]) - len(shown)} records of payments-batch-7 left out"
    )


def test_records_without_times_are_told_in_their_order(tables):
    """A console consumer prints none; the offsets stand for an order, below zero."""
    name = "printed-by-a-console"
    write(tables, "open_transactions", verdict(40, transactional_id=name))
    untimed = [
        {**state(n - 5, 0, step, PAY), "timestamp_ms": None}
        for n, step in enumerate(("Empty", "Ongoing", "PrepareAbort"))
    ]
    write(tables, "coordinator_states", *[{**row, "transactional_id": name} for row in untimed])
    write(tables, "record_batches", batch(40, 40, 70_000))
    code, out, _ = txn_audit(tables, "explain", "payments", 0, 40, "--format", "json")
    told = [step["first_offset"] for step in json.loads(out)["steps"] if step["log"].startswith("__transaction_state")]
    assert (code, told) == (0, [-5, -4, -3])


def test_an_id_cannot_forge_a_line_of_an_explanation(tables):
    evil = "x\nHANGING  nothing to see\x1b[2J"
    write(
        tables,
        "open_transactions",
        verdict(
            40,
            transactional_id=evil,
            explanation=evil,
            do_not_abort_because=evil,
            abort_command=None,
            causes=[{"cause": evil, "likelihood": "LIKELY", "evidence": evil}],
        ),
    )
    code, out, err = txn_audit(tables, "explain", "payments", 0, 40)
    assert (code, err) == (0, "")
    assert sum(line.startswith("HANGING") for line in out.splitlines()) == 1
    assert all(c.isprintable() or c == "\n" for c in out)


def test_that_nothing_is_open_on_a_topic_is_said_with_what_was_not_seen(tables):
    write(tables, "partitions", {"topic": "b", "partition": 0, "lag_offsets": 7})
    write(
        tables,
        "coverage",
        *[{"topic": "b", "partition": p, "status": s} for p, s in enumerate(("COMPLETE", "MISSING"))],
    )
    write(tables, "coverage", {"topic": "a", "partition": 0, "status": "COMPLETE"})
    said = {topic: txn_audit(tables, "explain", topic)[2] for topic in ("a", "b")}
    assert "nothing is open on a; " in said["a"]
    assert (
        "nothing is open on b as far as copies show: 1 partition of it not captured, consumers wait on 1 partition for"
        " what no copy shows; "
    ) in said["b"]


def test_programs_get_what_is_held_and_what_else_is_open(tables):
    holder = {**PAY, "blocking_producer_id": 7, "lag_offsets": 5, "last_stable_offset": 27}
    write(tables, "partitions", holder, {**holder, "partition": 1, "lag_offsets": 3})
    younger = verdict(40, partition=1, holds=True, blocks_since=at(NOW + 5), ends_by=at(NOW + 9_000), verdict="OPEN")
    write(tables, "open_transactions", verdict(45, holds=True, blocks_since=at(NOW - 5)), younger)
    told = json.loads(txn_audit(tables, "explain", "payments", "--format", "json")[1])
    assert [(row["partition"], row["ends_by"]) for row in told["held"]] == [(0, None), (1, "2024-03-11T01:20:09.000Z")]
    assert told["verdict"]["start_offset"] == 45
    assert [(row["partition"], row["start_offset"]) for row in told["also_open"]] == [(0, 27), (1, 40)]


def test_of_a_topic_what_needs_somebody_comes_before_what_it_waits_behind(tables):
    holder = {**PAY, "blocking_producer_id": 7, "lag_offsets": 5, "last_stable_offset": 27}
    write(tables, "partitions", holder)
    in_time = verdict(40, holds=True, blocks_since=at(NOW - 90), verdict="OPEN")
    waits = [verdict(offset, holds=False, blocks_since=at(NOW - 5)) for offset in (45, 50)]
    write(tables, "open_transactions", in_time, *waits, verdict(60, holds=False, verdict="OPEN"))
    _, out, _ = txn_audit(tables, "explain", "payments")
    assert [line.split(",")[0] for line in out.split("\n\n")[0].splitlines()] == [
        "payments-0 from offset 45: HANGING",
        "payments-0 from offset 50: HANGING",
        "payments-0 from offset 40: OPEN",
    ]
    assert "THE FIRST OF THESE\n\npayments-0 from offset 45" in out
