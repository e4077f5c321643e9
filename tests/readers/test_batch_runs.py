"""Runs of batches against a fold batch by batch."""

from __future__ import annotations

from random import Random

import pytest

from tests.support.run_logs import RandomLog, read_rows
from txnlib.core.batch_runs import RUN_OFFSETS, single_batches
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import MAX_SEQUENCE
from txnlib.readers import batch_headers, batch_rows

#: What all batches of a run have in common.
SAME = (
    "producer_id",
    "producer_epoch",
    "is_transactional",
    "partition_leader_epoch",
    "timestamp_type",
    "compression_type",
)


def can_fold(batch: dict) -> bool:
    """Whether a batch may be part of a run."""
    is_whole = batch["records_count"] == batch["last_offset"] - batch["base_offset"] + 1
    has_sequence = (batch["producer_id"] is None) == (batch["base_sequence"] is None)
    is_odd = batch["magic"] != 2 or batch["is_control"] or batch["delete_horizon_ms"] is not None or not has_sequence
    return is_whole and not is_odd and clock_ms(batch["max_timestamp_ms"]) is not None


def continues(batch: dict, before: dict) -> bool:
    """Whether a batch merely continues the batch of its producer before it."""
    if not (can_fold(batch) and can_fold(before) and batch["offset_gap"] == 0):
        return False
    if (
        any(batch[name] != before[name] for name in SAME)
        or batch["last_offset"] // RUN_OFFSETS != before["base_offset"] // RUN_OFFSETS
    ):
        return False
    is_in_time = batch["max_timestamp_ms"] >= before["max_timestamp_ms"]
    is_alike = (batch["size"] <= batch_rows.PAGE) == (before["size"] <= batch_rows.PAGE)
    if batch["timestamp_type"] == "LOG_APPEND_TIME" and not (is_in_time and is_alike):
        return False
    return batch["producer_id"] is None or batch["base_sequence"] == (before["last_sequence"] + 1) & MAX_SEQUENCE


def folded(batches: list[dict]) -> list[list[dict]]:
    """The runs of one block. The last batch is single, and so are those of a run whose times are too far
    apart."""
    runs: list[list[dict]] = []
    newest: dict[int | None, list[dict]] = {}
    for batch in batches:
        own = newest.get(batch["producer_id"])
        if own is not None and batch is not batches[-1] and continues(batch, own[-1]):
            own.append(batch)
        else:
            runs.append(own := [batch])
            newest[batch["producer_id"]] = own
    far = [
        run for run in runs if any(abs(b["max_timestamp_ms"] - run[0]["max_timestamp_ms"]) >= 2**31 for b in run[1:])
    ]
    return [run for run in runs if run not in far] + [[batch] for run in far for batch in run]


@pytest.fixture
def small_pages(monkeypatch):
    """Pages of 150 bytes, so that small batches may be larger than one."""
    monkeypatch.setattr(batch_rows, "PAGE", 150)


@pytest.mark.parametrize("seed", range(60))
def test_the_batches_of_runs_are_the_rows_without_runs(seed, small_pages):
    content = RandomLog(Random(seed), oddity=Random(seed).choice((0.0, 0.01, 0.05))).segment(150)
    rows = read_rows(content, has_runs=True)
    assert sum(row["batches_count"] for row in rows) == 150
    single = sorted((batch for row in rows for batch in single_batches(row)), key=lambda row: row["position"])
    assert single == read_rows(content, has_runs=False)


@pytest.mark.parametrize("seed", range(60))
def test_runs_are_those_of_a_fold_batch_by_batch(seed, small_pages):
    content = RandomLog(Random(seed), oddity=Random(seed).choice((0.0, 0.01, 0.05))).segment(150)
    expected = sorted(folded(read_rows(content, has_runs=False)), key=lambda run: run[0]["position"])
    rows = read_rows(content, has_runs=True)
    # Producers that share sixteen bits end each other's runs.
    shared = {7, 7 + (1 << 16)}
    assert [row["position"] for row in rows if row["producer_id"] not in shared] == [
        run[0]["position"] for run in expected if run[0]["producer_id"] not in shared
    ]
    by_position = {run[0]["position"]: run for run in expected}
    for row in rows:
        if row["producer_id"] in shared:
            continue
        run = by_position[row["position"]]
        assert row["batches_count"] == len(run)
        assert row["size"] == sum(batch["size"] for batch in run)
        assert row["records_count"] == sum(batch["records_count"] for batch in run)
        ends = ("last_offset", "last_sequence", "max_timestamp_ms")
        assert [row[name] for name in ends] == [run[-1][name] for name in ends]
        assert row["last_batch_offset"] == run[-1]["base_offset"]
        assert row["first_timestamp_ms"] == run[0]["max_timestamp_ms"]


def test_the_last_batch_of_every_block_is_single(monkeypatch):
    monkeypatch.setattr(batch_headers, "BLOCK", 16)
    content = RandomLog(Random(3), oddity=0.0).segment(200)
    whole = read_rows(content, has_runs=True)
    last = max(whole, key=lambda row: row["base_offset"])
    assert last["batches_count"] == 1
    assert last["last_offset"] == max(row["last_offset"] for row in whole)
    single = sorted((batch for row in whole for batch in single_batches(row)), key=lambda row: row["position"])
    assert single == read_rows(content, has_runs=False)


def test_batches_without_a_producer_id_are_few_rows():
    log = RandomLog(Random(1), oddity=0.0)
    content = b"".join(log._batch(-1) for _ in range(1_000))
    rows = read_rows(content, has_runs=True)
    assert len(rows) < 150, "one run for each range of offsets"
    assert all(len(row["run_batches"] or ()) in (0, row["batches_count"]) for row in rows)
