"""The brokers' answers in a capture, whole and cut at every byte."""

from __future__ import annotations

import json

import pytest

from tests.support.segments import rows_of_file
from txnlib.readers import arrow_schemas, broker_files
from txnlib.readers.capture import CaptureFile, FileKind
from txnlib.readers.table_readers import read_table

PRODUCER = {"producer_id": 7, "producer_epoch": 3, "current_transaction_start_offset": None}
ANSWERS = {
    FileKind.LIVE_PRODUCERS: [
        {"topic": "orders", "partition": n, "high_watermark": 9, "producers": [PRODUCER] * n, "asked_at_ms": 1}
        for n in range(3)
    ],
    FileKind.LIVE_TRANSACTIONS: [
        {"transactional_id": f"id-{n}", "coordinator_partition": 1, "log_end_offset": end, "state": "Ongoing"}
        | {"producer_id": 7, "producer_epoch": 3}
        for n, end in enumerate([9, None])
    ],
}
TABLES = {FileKind.LIVE_PRODUCERS: "live_producers", FileKind.LIVE_TRANSACTIONS: "live_transactions"}
#: What is not an answer.
BAD = ["", "{}", "[]", "7", "null", "{", '{"topic": "orders"}', "\ud800"]


def read(path, kind, content):
    path.write_bytes(content)
    file = CaptureFile(str(path), kind, "raw:1", len(content))
    unreadable = [bad for row in rows_of_file("segments", file) for bad in row["unreadable"]]
    return rows_of_file(TABLES[kind], file), [(bad["position"], bad["length"], bad["reason"]) for bad in unreadable]


def lines(kind):
    return [json.dumps(answer).encode() + b"\n" for answer in ANSWERS[kind]]


def test_each_producer_is_a_row_and_each_partition_too(tmp_path):
    rows, bad = read(tmp_path / "a", FileKind.LIVE_PRODUCERS, b"".join(lines(FileKind.LIVE_PRODUCERS)))
    assert [(row["partition"], row["producer_id"]) for row in rows] == [
        (0, None),
        (1, None),
        (1, 7),
        (2, None),
        (2, 7),
        (2, 7),
    ]
    assert {(row["topic"], row["high_watermark"]) for row in rows} == {("orders", 9)}
    assert bad == []


def test_each_open_transaction_is_a_row_of_a_snapshot(tmp_path):
    names = ("producer_id", "producer_epoch", "coordinator_epoch", "last_sequence", "last_timestamp_ms")
    place, state = {"topic": "orders", "partition": 1}, dict(zip(names, (7, 3, 2, 5, 1_000), strict=True))
    producers = [{**state, "current_transaction_start_offset": 4}, PRODUCER, {**PRODUCER, "last_timestamp_ms": -1}]
    content = json.dumps({**place, "high_watermark": 9, "producers": producers}).encode()
    (tmp_path / "a").write_bytes(content)
    file = CaptureFile(str(tmp_path / "a"), FileKind.LIVE_PRODUCERS, "raw:1", len(content))
    (row,) = rows_of_file("producer_snapshots", file)
    told = {"source": "raw:1", "path": file.path, "snapshot_offset": 9, "is_answer": True}
    unknown = {"last_offset": None, "offset_delta": None}
    assert row == place | state | told | unknown | {"current_txn_first_offset": 4}


def test_each_transactional_id_is_a_row(tmp_path):
    rows, bad = read(tmp_path / "a", FileKind.LIVE_TRANSACTIONS, b"".join(lines(FileKind.LIVE_TRANSACTIONS)))
    assert [(row["transactional_id"], row["log_end_offset"], row["state"]) for row in rows] == [
        ("id-0", 9, "Ongoing"),
        ("id-1", None, "Ongoing"),
    ]
    assert bad == []


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_cut_costs_the_line_that_it_struck(tmp_path, kind):
    first, second = lines(kind)[:2]
    whole, _ = read(tmp_path / "a", kind, first)
    for cut in range(1, len(second) - 1):
        assert read(tmp_path / "a", kind, first + second[:cut]) == (whole, [(len(first), cut, "NOT_A_LIVE_ANSWER")])
        assert read(tmp_path / "a", kind, second[:cut] + b"\n" + first) == (whole, [(0, cut + 1, "NOT_A_LIVE_ANSWER")])


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("bad", BAD)
def test_a_line_that_is_no_answer_is_quarantined(tmp_path, kind, bad):
    line = bad.encode(errors="surrogatepass") + b"\n"
    first = lines(kind)[0]
    whole, _ = read(tmp_path / "a", kind, first)
    assert read(tmp_path / "a", kind, line + first) == (whole, [(0, len(line), "NOT_A_LIVE_ANSWER")])


@pytest.mark.parametrize("kind", ANSWERS)
def test_many_bad_lines_are_one_stretch_behind_the_first_ones(tmp_path, kind):
    _, bad = read(tmp_path / "a", kind, b"{}\n" * 1_000)
    assert len(bad) == 100
    assert bad[-1][:2] == (99 * 3, 901 * 3)


def test_of_many_bad_lines_only_the_first_ones_are_looked_at(tmp_path, monkeypatch):
    path, kept = tmp_path / "a", []
    path.write_bytes(b"\n" * 1_000)
    real = broker_files._lines
    monkeypatch.setattr(broker_files, "_lines", lambda *given: (kept.append(line) or line for line in real(*given)))
    (row,) = rows_of_file("segments", CaptureFile(str(path), FileKind.LIVE_PRODUCERS, "raw:1", 1_000))
    assert (len(kept), len(row["unreadable"])) == (101, 100)


@pytest.mark.parametrize("kind", ANSWERS)
def test_answers_come_in_batches_of_bounded_size(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(arrow_schemas, "DECODED_ROWS_PER_BATCH", 2)
    path = tmp_path / "a"
    path.write_bytes(b"".join(lines(kind)[:2] * 10))
    sizes = [
        batch.num_rows for batch in read_table(TABLES[kind], CaptureFile(str(path), kind, "raw:1", path.stat().st_size))
    ]
    assert len(sizes) >= 10
    assert max(sizes) <= 3
