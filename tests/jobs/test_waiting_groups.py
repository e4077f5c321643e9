"""Groups that an open transaction blocks, in a copy of a real cluster."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support import live_output
from tests.support.audits import AuditTables, audited, made_of
from tests.support.log_bytes import encode_batch, encode_offset_commit_key, encode_offset_commit_value
from tests.support.log_notation import TS
from txnlib.core.kafka.record_batch import Record
from txnlib.core.kafka.transaction_log import OffsetCommit, OffsetCommitKey
from txnlib.core.sql_text import tables_of
from txnlib.core.tables.blocked_groups import GROUP_POSITIONS
from txnlib.spark.joins import select

#: Where the clients of the capture left their groups: ten commits, all in transactions, three of them aborted.
STANDS = {
    ("group-2", "carts", 0): 21,
    ("group-2", "carts", 2): 58,
    ("group-2", "receipts", 1): 52,
    ("group-3", "carts", 2): 40,
    ("group-3", "odd.name_with-1", 0): 50,
}


@pytest.fixture(scope="module")
def capture(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shutil.copytree(captures / "real-clients-4.2", tmp_path_factory.mktemp("waiting") / "capture")


@pytest.fixture(scope="module")
def offsets(capture: Path) -> dict[tuple[str, int], dict[str, int]]:
    """Log start, high watermark and last stable offset as a consumer was told."""
    told = json.loads((capture / "live" / "offsets.json").read_text())
    return {(name.rpartition("-")[0], int(name.rpartition("-")[2])): marks for name, marks in told.items()}


@pytest.fixture(scope="module")
def audit(capture: Path, offsets) -> AuditTables:
    """The audit of the capture and of three groups more: one waits, one reads uncommitted data, one has fallen
    behind."""
    log = capture / "brokers" / "1" / "__consumer_offsets-2" / "00000000000000000000.log"
    commits = [
        (group, *where, offset)
        for where, marks in offsets.items()
        for group, offset in (("waits", marks["last_stable_offset"]), ("dirty", marks["high_watermark"]), ("behind", 0))
    ]
    records = [
        Record(
            2 + index,
            TS,
            encode_offset_commit_key(OffsetCommitKey(group, topic, partition)),
            encode_offset_commit_value(OffsetCommit(version=4, offset=offset, metadata=b"", commit_timestamp_ms=TS)),
        )
        for index, (group, topic, partition, offset) in enumerate(commits)
    ]
    log.write_bytes(log.read_bytes() + encode_batch(records, leader_epoch=0))
    return audited(capture / "brokers", "--as-of", str(live_output.as_of(capture)))


def test_groups_stand_where_the_clients_left_them(audit):
    tables = {name: audit.frame(name) for name in tables_of(GROUP_POSITIONS) if name != "asked"}
    found = select(GROUP_POSITIONS, asked=audit.frame("partitions"), **tables).collect()
    rows = [row for row in found if row["group_id"].startswith("group-")]
    assert {(row["group_id"], row["topic"], row["partition"]): row["committed_offset"] for row in rows} == STANDS


def test_a_group_waits_wherever_kafka_s_last_stable_offset_is_below_its_high_watermark(audit, offsets):
    blocked = {
        where: marks for where, marks in offsets.items() if marks["last_stable_offset"] < marks["high_watermark"]
    }
    assert len(blocked) > 3
    rows = audit.rows("blocked_groups")
    found = {(row["topic"], row["partition"]): row for row in rows if row["group_id"] == "waits"}
    assert len(rows) == len(found), "nobody else waits"
    assert {where: row["lag_offsets"] for where, row in found.items()} == {
        where: marks["high_watermark"] - marks["last_stable_offset"] for where, marks in blocked.items()
    }


def test_a_waiting_group_is_told_who_blocks_it(audit):
    starts = {(row["topic"], row["partition"], row["producer_id"]): row for row in audit.rows("open_transactions")}
    for row in audit.rows("blocked_groups"):
        blocking = starts[row["topic"], row["partition"], row["blocking_producer_id"]]
        assert blocking["start_offset"] == row["last_stable_offset"]
        assert blocking["transactional_id"] == row["blocking_transactional_id"]


def test_where_no_commits_were_read_nobody_waits(audit):
    tables = {name: audit.frame(name) for name in ("partitions", "coverage")}
    assert made_of("blocked_groups", audit.run.settings, **tables) == []
