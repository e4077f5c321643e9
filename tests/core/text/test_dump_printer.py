"""Batches and records printed as the dump tool prints them, from real segments."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from txnlib.core.batch_runs import single_batches
from txnlib.core.text.dump_printer import batch_line, coordinator_line, marker_line, value_size
from txnlib.readers.capture import list_capture
from txnlib.readers.table_readers import read_table

#: capture -> the tool's version; the last writes tagged fields.
CAPTURES = {"quickstart": "4.1.1", "real-clients-4.2": "4.2.1", "transactions-v2-4.3": "4.3.0"}


def rows(table: str, folder: Path) -> list[dict[str, Any]]:
    return [
        row
        for file in list_capture([str(folder)]).files
        for batch in read_table(table, file)
        for row in batch.to_pylist()
    ]


def in_order(line: str) -> str:
    """A coordinator's line with its partitions in order: the order on disk is a set's, and the tables do not keep
    it."""
    listed = re.search(r"partitions=\[(.*?)\]", line)
    if listed:
        return line.replace(listed[1], ",".join(sorted(listed[1].split(","))))
    head, label, payload = line.partition(" payload: {")
    if not label:
        return line
    value = json.loads("{" + payload)
    topics = value["data"]["transactionPartitions"] or []
    for topic in topics:
        topic["partitionIds"].sort()
    topics.sort(key=lambda topic: topic["topic"])
    return f"{head}{label[:-1]}{json.dumps(value, separators=(',', ':'), ensure_ascii=False)}"


@pytest.fixture(scope="module", params=CAPTURES)
def capture(request, captures: Path) -> tuple[Path, frozenset[str]]:
    folder = captures / request.param
    printed = (folder / "dumps" / CAPTURES[request.param]).rglob("*.txt")
    return folder / "brokers", frozenset(in_order(line) for file in printed for line in file.read_text().splitlines())


def test_batches_and_markers_are_printed_as_the_tool_prints_them(capture):
    brokers, text = capture
    batches = [batch for row in rows("record_batches", brokers) for batch in single_batches(row)]
    assert len(batches) > 10
    assert [batch_line(row) for row in batches if batch_line(row) not in text] == []
    markers = [row for row in batches if row["control_type"] is not None]
    assert markers
    assert [marker_line(row) for row in markers if marker_line(row) not in text] == []


def test_coordinator_records_are_printed_as_the_tool_prints_them(capture):
    brokers, text = capture
    records = rows("transaction_log", brokers)
    assert len(records) > 10
    assert [coordinator_line(row) for row in records if in_order(coordinator_line(row)) not in text] == []


def test_a_record_known_from_old_text_is_printed_as_that_tool_did(captures):
    folder = captures / "cluster-3.9" / "dumps" / "3.9.1"
    text = {
        in_order(line) for file in folder.rglob("__transaction_state*.txt") for line in file.read_text().splitlines()
    }
    records = [row for row in rows("transaction_log", folder) if not row["is_tombstone"]]
    assert records
    # That tool's brokers wrote version 0.
    assert [coordinator_line(row) for row in records if in_order(coordinator_line(row)) not in text] == []


def test_a_tombstone_is_printed_without_a_value():
    row = {
        "offset": 6, "timestamp_ms": 1_710_120_002_000, "transactional_id": "stale-id", "is_tombstone": True,
        "value_version": None,
    }  # fmt: skip
    assert coordinator_line(row) == (
        "| offset: 6 CreateTime: 1710120002000 keySize: 12 valueSize: -1 sequence: -1 headerKeys: [] "
        'key: {"type":"0","data":{"transactionalId":"stale-id"}} payload: <DELETE>'
    )


def test_a_line_feed_in_an_id_stays_in_its_line():
    row = {
        "offset": 6,
        "timestamp_ms": 1,
        "transactional_id": "a\nb\u2028c",
        "is_tombstone": True,
        "value_version": None,
    }
    assert coordinator_line(row).isprintable()


def test_version_0_has_a_size_of_its_own():
    numbers = ("producer_id", "producer_epoch", "transaction_timeout_ms", "last_update_ms", "start_ms")
    partitions = [{"topic": "orders", "partition": 1}, {"topic": "orders", "partition": 2}]
    row = {"value_version": 0, "state": "Ongoing", "partitions": partitions, **dict.fromkeys(numbers, 0)}
    assert value_size(row) == 37 + 2 + 6 + 4 + 4 * 2
