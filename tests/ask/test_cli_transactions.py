"""The commands of Kafka's tool, to the byte. Group A restates Kafka's `TransactionsCommandTest`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.delta_tables import NOW, at, txn_audit, write, write_run
from tests.support.golden import printed

MINUTE = 60_000
FOO_5 = {"topic": "foo", "partition": 5}
HEADER = "Topic\tPartition\tProducerId\tProducerEpoch\tCoordinatorEpoch\tStartOffset\tLastTimestamp\tDuration(min)\t\n"


def copies(topic: str, partition: int, *brokers: int, **more: Any) -> list[dict[str, Any]]:
    common = {"topic": topic, "partition": partition, "status": "COMPLETE", "is_decoded": True}
    return [{**common, "broker": str(broker), "source": f"raw:{broker}", **more} for broker in brokers]


def opened(topic: str, partition: int, *, age_ms: int, hanging: bool | None, producer_id: int = 132) -> dict[str, Any]:
    """The common input of the tool's tests: epoch 5, coordinator epoch 19, open since offset 29384."""
    return {
        "topic": topic,
        "partition": partition,
        "producer_id": producer_id,
        "producer_epoch": 5,
        "coordinator_epoch": 19,
        "start_offset": 29_384,
        "last_timestamp": at(NOW - age_ms),
        "last_timestamp_ms": NOW - age_ms,
        "kafka_find_hanging": hanging,
        "verdict": "HANGING" if hanging else "OPEN",
    }


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """A run with the layout of A03: foo-0 on brokers 0 and 1, foo-1 on 1 and 5; both hang."""
    write_run(tmp_path)
    write(tmp_path, "coverage", *copies("foo", 0, 0, 1), *copies("foo", 1, 1, 5), *copies("bar", 0, 0))
    rows = [opened("foo", p, age_ms=60 * MINUTE, hanging=True) for p in (0, 1)]
    write(tmp_path, "open_transactions", *rows, opened("bar", 0, age_ms=60 * MINUTE, hanging=True, producer_id=133))
    write(tmp_path, "producer_states")
    return tmp_path


def hanging(root: Path, *argv: object) -> list[tuple[str, int]]:
    code, out, err = txn_audit(root, "find-hanging", "--format", "kafka", *argv)
    assert (code, out.splitlines()[0].split()) == (0, HEADER.split()), err
    return sorted((cells[0].strip(), int(cells[1])) for cells in (line.split("\t") for line in out.splitlines()[1:]))


def test_A01_kafkas_search_needs_a_topic_or_a_broker_and_ours_does_not(tables):
    code, out, err = txn_audit(tables, "find-hanging", "--format", "kafka")
    assert (code, out) == (2, "")
    assert "needs --topic or --broker-id" in err
    everywhere, of_topic = (
        txn_audit(tables, "find-hanging", "--format", "csv", *scope)[1] for scope in ((), ("--topic", "zz"))
    )
    assert everywhere.count("HANGING") > of_topic.count("HANGING") == 0


def test_A02_a_partition_needs_a_topic(tables):
    code, out, err = txn_audit(tables, "find-hanging", "--broker-id", 5, "--partition", 5)
    assert (code, out) == (2, "")
    assert "--partition needs --topic" in err


def test_A03_a_broker_is_searched_for_every_partition_it_has_a_copy_of(tables):
    assert hanging(tables, "--broker-id", 5) == [("foo", 1)]
    assert hanging(tables, "--broker-id", 1) == [("foo", 0), ("foo", 1)]
    assert hanging(tables, "--broker-id", 0) == [("bar", 0), ("foo", 0)]


def test_A04_a_topic_may_be_searched_on_one_broker(tables):
    assert hanging(tables, "--topic", "foo", "--broker-id", 5) == [("foo", 1)]
    assert hanging(tables, "--topic", "foo", "--broker-id", 0) == [("foo", 0)]
    assert hanging(tables, "--topic", "foo", "--partition", 0, "--broker-id", 5) == [("foo", 0)], (
        "named: wherever it lives"
    )


def test_A06_without_producers_there_is_a_header_only(tmp_path):
    write_run(tmp_path)
    write(tmp_path, "coverage", *copies("foo", 0, 0))
    for name in ("open_transactions", "producer_states"):
        write(tmp_path, name)
    assert txn_audit(tmp_path, "find-hanging", "--topic", "foo", "--format", "kafka") == (0, HEADER, "")


def test_what_a_missing_coordinator_decides_is_said_and_not_printed(tmp_path):
    write_run(tmp_path, max_transaction_timeout_ms=60 * MINUTE)
    missing = {"topic": "__transaction_state", "partition": 1, "status": "MISSING", "source": None}
    write(tmp_path, "coverage", *copies("foo", 5, 0), *copies("__transaction_state", 0, 0), missing)
    write(tmp_path, "open_transactions", opened("foo", 5, age_ms=20 * MINUTE, hanging=False))
    for name in ("producer_states", "transactional_ids"):
        write(tmp_path, name)
    code, out, err = txn_audit(
        tmp_path, *["find-hanging", "--topic", "foo", "--max-transaction-timeout", "5", "--format", "kafka"]
    )
    assert (code, out) == (0, HEADER)
    assert "1 open transaction could not be judged" in err


def test_a_broker_of_which_there_is_no_copy_is_named(tables):
    code, out, err = txn_audit(tables, *["find-hanging", "--broker-id", "9", "--format", "kafka"])
    assert (code, out) == (0, HEADER)
    said = "no copy of broker 9 was audited, only of 0, 1, 5"
    assert said in err, "Kafka's tool prints the same, and exits with 0"
    code, out, err = txn_audit(tables, *["find-hanging", "--broker-id", "9"])
    assert (code, out, said in err) == (2, "", True)


@pytest.mark.parametrize(
    "argv",
    [
        pytest.param("explain foo 5", id="a19 a transaction is named by its start offset"),
        pytest.param("explain foo five 1", id="a20 a partition is a number"),
        pytest.param("describe-producers --partition 5", id="a20 without a topic"),
        pytest.param("describe-producers --topic foo", id="a20 without a partition"),
        pytest.param("describe", id="without an id"),
        pytest.param("abort --topic foo --partition 5 --start-offset 1", id="a19 nothing is ever aborted from here"),
        pytest.param("list --format xml", id="an unknown form"),
        pytest.param("explain foo 0 29384 --format kafka", id="Kafka has no such command"),
        pytest.param("abort-plan --format kafka", id="nor this one"),
        pytest.param("", id="no command"),
    ],
)
def test_A19_A20_what_is_not_said_whole_is_bad_usage(tables, argv):
    for name in ("partition_transactions", "record_batches", "coordinator_states", "transaction_log"):
        write(tables, name)
    code, out, err = txn_audit(tables, *argv.split())
    assert (code, out) == (2, "")
    assert err


def test_A22_a_partition_without_a_copy_is_not_one_without_producers(tmp_path):
    write_run(tmp_path)
    write(tmp_path, "coverage", {**FOO_5, "status": "MISSING"})
    write(tmp_path, "producer_states")
    code, _, err = txn_audit(tmp_path, *["describe-producers", "--topic", "foo", "--partition", "5"])
    assert code == 2
    assert "no copy of foo-5 was audited" in err


@pytest.mark.parametrize("place", ["foo-0", "foo-0@29384", "foo 0"])
@pytest.mark.parametrize("command", ["find-hanging", "describe-producers"])
def test_a_partition_as_answers_print_it_stands_for_topic_and_partition(tables, command, place):
    write(tables, "record_batches")
    named = txn_audit(tables, command, *place.split(), "--format", "kafka")
    assert named == txn_audit(tables, command, "--topic", "foo", "--partition", 0, "--format", "kafka")
    assert named[0] == 0


@pytest.mark.parametrize("words", ["foo-0 --topic foo", "foo-0 --partition 0", "foo", "foo zero"])
@pytest.mark.parametrize("command", ["find-hanging", "describe-producers"])
def test_a_partition_is_named_once_and_whole(tables, command, words):
    code, out, err = txn_audit(tables, command, *words.split())
    assert (code, out) == (2, "")
    assert "payments-0" in err


@pytest.fixture
def ids(tables: Path) -> Path:
    """Three ids on two coordinators; one has expired."""
    leaders = [
        *copies("__transaction_state", 0, 1, is_leader=True),
        *copies("__transaction_state", 1, 0, is_leader=True),
    ]
    write(tables, "coverage", *leaders, *copies("__transaction_state", 0, 0, is_leader=False))
    common = {"producer_epoch": 3, "transaction_timeout_ms": 300_000}
    write(
        tables,
        "transactional_ids",
        {**common, "transactional_id": "foo", "coordinator_partition": 0, "producer_id": 12345, "state": "Ongoing"},
        {
            **common,
            "transactional_id": "it's",
            "coordinator_partition": 0,
            "producer_id": 98765,
            "state": "PrepareAbort",
        },
        {
            **common,
            "transactional_id": "baz",
            "coordinator_partition": 1,
            "producer_id": 13579,
            "state": "Ongoing",
            "transaction_start": at(NOW - 5_000),
            "partitions": [{"topic": "bar", "partition": 0}, {"topic": "bar", "partition": 1}],
        },
        {**common, "transactional_id": "gone", "coordinator_partition": 1, "producer_id": 1},
    )
    write(tables, "coordinator_states")
    return tables


def test_A08_A22_A23_A24_tables_are_the_tools_own(assert_as_read, ids):
    """Producers of a partition with -1 and None; ids coordinator by coordinator; partitions in the order of a Java
    set."""
    first = {"producer_id": 12345, "producer_epoch": 15, "coordinator_epoch": 20, "last_sequence": 1300}
    second = {"producer_id": 98765, "producer_epoch": 30, "last_sequence": 2300, "last_timestamp_ms": 1_599_509_599}
    opened = first | {"last_timestamp_ms": 1_599_509_565, "current_transaction_start_offset": 990}
    write(ids, "coverage", *copies("foo", 5, 0))
    write(ids, "producer_states", {**FOO_5, **second}, {**FOO_5, **opened}, {**FOO_5, **first, "partition": 6})
    write(ids, "record_batches")
    asked = ("find-hanging foo-1", "describe-producers foo-5", "list", "describe --transactional-id baz")
    told = printed(ids, [f"{each} --format kafka" for each in asked])
    assert_as_read("kafka", told)


@pytest.mark.parametrize("name", ["gone", "nobody", "' OR 1=1 --"])
def test_an_id_that_no_coordinator_holds_is_named(ids, name):
    code, out, err = txn_audit(ids, "describe", "--transactional-id", name)
    assert (code, out) == (2, "")
    assert f"no captured coordinator has the transactional id {name!r}" in err or f"no captured log has {name}" in err


def test_a_quote_in_an_id_is_part_of_it(ids):
    code, out, _ = txn_audit(ids, "describe", "--transactional-id", "it's", "--format", "json")
    assert (code, '"producer_id": 98765' in out) == (0, True)
