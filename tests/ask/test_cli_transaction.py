"""One transaction on all of its partitions, on the command line."""

from __future__ import annotations

import json

import pytest

from tests.support.delta_tables import NOW, at, txn_audit, write, write_run
from tests.support.golden import printed
from txnlib.ask.delta_rows import open_run, open_tables
from txnlib.ask.transaction import whole_transaction

ID = "payments-batch-7"
OWN = {"transactional_id": ID, "coordinator_partition": 3, "producer_id": 7, "producer_epoch": 0}


def outcome(number, topic, partition, marker, **more):
    row = {
        **OWN,
        "as_of": at(NOW),
        "transaction_number": number,
        "topic": topic,
        "partition": partition,
        "marker": marker,
    }
    row |= {"known_from": "COORDINATOR", "decided_outcome": "COMMIT", "records": 4, "is_two_phase_commit": False}
    return row | more


def shown(*words, tables):
    code, text, message = txn_audit(tables, "transaction", *words)
    assert code == 0, message
    return text


@pytest.fixture
def tables(tmp_path):
    write_run(tmp_path)
    write(tmp_path, "coverage")
    write(tmp_path, "transactional_ids")
    ended = [OWN | {"transaction_number": number, "outcome": "COMMIT"} for number in (1, 2)]
    write(
        tmp_path,
        "transactions",
        *ended,
        {**OWN, "transactional_id": "4711", "transaction_number": 1, "outcome": "OPEN"},
    )
    places = [{"topic": "payments", "partition": 0}, {"topic": "orders", "partition": 1}]
    states = [(1, 10, "CompleteCommit", []), (2, 11, "Ongoing", places), (2, 12, "PrepareCommit", places)]
    write(
        tmp_path,
        "coordinator_states",
        *[
            OWN
            | {
                "transaction_number": number,
                "offset": at_offset,
                "state": state,
                "partitions": listed,
                "is_tombstone": False,
            }
            | {"timestamp_ms": NOW - 60_000}
            for number, at_offset, state, listed in states
        ],
    )
    write(
        tmp_path,
        "transaction_outcomes",
        outcome(1, "payments", 0, "FOUND", marker_offset=9, outcome="COMMIT"),
        outcome(2, "payments", 0, "FOUND", marker_offset=20, outcome="COMMIT", marked=at(NOW - 59_000)),
        outcome(
            2,
            "orders",
            1,
            "PENDING",
            outcome="OPEN",
            first_offset=5,
            says="the COMMIT is decided, but its marker is not here",
        ),
        outcome(1, "lost", 0, "MISSING", outcome="OPEN", records=None, transactional_id="4711"),
        outcome(None, "orders", 2, "FOUND", marker_offset=31, outcome="ABORT", first_offset=30, known_from="PARTITION"),
    )
    return tmp_path


#: A producer id leads to its newest transaction, unless an id has that name.
ASKED = [f"transaction {ID}", f"transaction {ID} --number 1", "transaction 7", "transaction 4711"]


def test_what_is_told_of_it_is_as_it_was_read_last(assert_as_read, places):
    """What hangs is said before what is complete: the question is about what its producer left open."""
    told = printed(places, [*ASKED, "transaction orders-2@30"])
    alone = {"known_from": "PARTITION", "outcome": "OPEN", "first_offset": 30}
    write(places, "transaction_outcomes", outcome(None, "payments", 0, "MISSING", **alone))
    opened = {"topic": "payments", "partition": 0, "producer_id": 7, "start_offset": 30, "verdict": "HANGING"}
    write(places, "open_transactions", opened | {"transactional_id": ID, "explanation": "written after the marker"})
    told += printed(places, ["transaction 7 --number 1"])
    assert_as_read("transaction", told)


def test_programs_get_partitions_and_records(tables):
    whole = json.loads(shown(ID, "--format", "json", tables=tables))
    assert (whole["outcome"], whole["number"], whole["numbers"]) == ("HALF_MARKED", 2, [2, 1])
    assert [(row["partition"], row["marker"]) for row in whole["partitions"]] == [(1, "PENDING"), (0, "FOUND")]
    assert whole["partitions"][1]["marked"] == "2024-03-11T01:19:01.000Z"
    assert [row["state"] for row in whole["records"]] == ["Ongoing", "PrepareCommit"]


def test_a_transaction_is_data_that_prints_as_the_command_does(tables):
    whole = whole_transaction(open_run(open_tables(str(tables))), ID)
    assert str(whole) == shown(ID, tables=tables)
    assert [(row["log"], row["event"]) for row in whole.rows] == [
        ("__transaction_state-3", "Ongoing"),
        ("__transaction_state-3", "PrepareCommit"),
        ("orders-1", "begins"),
        ("payments-0", "COMMIT marker"),
    ], "all of its records are of one instant"


def test_a_hostile_id_forges_no_line(tmp_path):
    write_run(tmp_path)
    hostile = "a\nSPLIT  \x1b[31mb"
    write(tmp_path, "transactions", OWN | {"transactional_id": hostile, "transaction_number": 1, "outcome": "OPEN"})
    write(tmp_path, "coordinator_states")
    write(
        tmp_path,
        "transaction_outcomes",
        outcome(1, "payments", 0, "UNDECIDED", transactional_id=hostile, decided_outcome="OPEN"),
    )
    text = shown(hostile, tables=tmp_path)
    assert "\x1b" not in text
    assert not any(line.startswith("SPLIT") for line in text.splitlines())


#: Words that name a partition, or a place on it -> what the answer begins with.
PLACES = {
    "orders-1@5": f"{ID}   transaction 2   producer 7 epoch 0\n",
    "orders 1 5": f"{ID}   transaction 2   producer 7 epoch 0\n",
    "orders-1": f"{ID}   transaction 2   producer 7 epoch 0\n",
    "orders-2@30": f"{ID}   producer 7 epoch 0\n",
}


@pytest.fixture
def places(tables):
    write(
        tables, "coverage", *[{"topic": "orders", "partition": partition, "status": "COMPLETE"} for partition in (1, 2)]
    )
    write(tables, "open_transactions", {"topic": "orders", "partition": 1, "start_offset": 5})
    write(tables, "producer_states")
    return tables


@pytest.mark.parametrize("words", PLACES)
def test_a_place_as_answers_print_it_names_the_transaction_that_begins_there(places, words):
    assert shown(*words.split(), tables=places).startswith(PLACES[words])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("orders-1@6", "no transaction begins at offset 6 of orders-1"),
        ("orders-2", "nothing is open on orders-2"),
        ("orders-3@1", "no captured log has orders-3@1"),
        ("orders-1@5 --number 1", "--number is for an id"),
        ("nobody", "no captured log has nobody"),
        (f"{ID} --number 9", "no transaction 9"),
    ],
)
def test_what_is_not_there_is_bad_usage(places, words, says):
    code, text, message = txn_audit(places, "transaction", *words.split())
    assert (code, text) == (2, "")
    assert says in message
