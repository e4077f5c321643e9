"""Audits of the same logs in other ways: the same verdicts, or less."""

import shutil
from pathlib import Path

import pytest

from tests.support import live_output
from tests.support.audits import audited, audited_anew, printed
from tests.support.daemons import OF_READING
from txnlib.engine import file_pool
from txnlib.readers import batch_rows
from txnlib.spark.schemas import TABLES

SAME = (
    "topic",
    "partition",
    "producer_id",
    "producer_epoch",
    "coordinator_epoch",
    "start_offset",
    "verdict",
    "kafka_find_hanging",
)


def judged(tables):
    return sorted(tuple(row[name] for name in SAME) for row in tables.rows("open_transactions"))


def stable(tables):
    return sorted(
        (row["topic"], row["partition"], row["last_stable_offset"], row["is_late"]) for row in tables.rows("partitions")
    )


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dump"), [("quickstart", "4.1.1"), ("cluster-3.9", "3.9.1")])
def test_text_beside_raw_files_changes_nothing(spark, captures, name, dump):
    as_of = ("--as-of", str(live_output.as_of(captures / name)))
    raw, text = captures / name / "brokers", captures / name / "dumps" / dump
    alone, mixed = audited(raw, *as_of), audited([raw, text], *as_of)
    assert (judged(mixed), stable(mixed)) == (judged(alone), stable(alone))
    assert [row for row in mixed.rows("findings") if row["name"] == "COPIES_DISAGREE"] == []
    assert any(row["source"].startswith("text:") for row in mixed.rows("coverage"))


def without_coordinators(capture: Path, folder: Path) -> Path:
    leave_out = shutil.ignore_patterns("__transaction_state-*")
    return Path(shutil.copytree(capture / "brokers", folder / "brokers", ignore=leave_out))


def ids(tables):
    return {
        row["transactional_id"]: (row["coordinator_partition"], row["producer_id"])
        for row in tables.rows("transactional_ids")
    }


def verdicts(tables):
    return {
        (row["topic"], row["partition"], row["start_offset"]): row["verdict"]
        for row in tables.rows("open_transactions")
    }


@pytest.mark.slow
def test_ids_are_those_of_the_log_and_a_verdict_is_the_same_or_unknown(captures, tmp_path):
    capture = captures / "hostile-3.9"
    as_of = ("--as-of", str(live_output.as_of(capture)))
    raw = audited(capture / "brokers", *as_of)
    console = capture / "dumps" / "console" / "TransactionLogMessageFormatter.txt"
    text = audited([without_coordinators(capture, tmp_path), console], *as_of)
    assert ids(text) == ids(raw)
    # A consumer's text is no copy of the leader's log: what an id did since its newest record is not known.
    assert verdicts(raw) == {("odd.topic_with-dashes-1", 0, 27): "HANGING", ("odd.topic_with-dashes-1", 1, 24): "LATE"}
    assert set(verdicts(text)) == set(verdicts(raw))
    assert set(verdicts(text).values()) == {"UNKNOWN"}
    coordinators = [row for row in text.rows("coverage") if row["topic"] == "__transaction_state"]
    assert {(row["status"], row["source"]) for row in coordinators if row["status"] != "MISSING"} == {
        ("PARTIAL", "console:.")
    }


#: All but the run's own row, which says how it was made.
ALL = sorted(TABLES.keys() - {"audit_runs"})
CAPTURES = (
    "quickstart", "hostile-3.9", "hostile-4.3", "causes-3.9", "damaged-3.8", "in-motion-4.0", "old-disk-4.1",
    "overflow-4.2",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CAPTURES)
def test_every_table_is_the_same_with_runs_and_without(captures, name, monkeypatch):
    folder = captures / name / "brokers"
    runs = {table: audited(folder).rows(table) for table in ALL}
    monkeypatch.setattr(batch_rows, "find_runs", lambda block, gaps: None)
    monkeypatch.setattr(file_pool, "processes", lambda: 1)  # so that files are read here
    batches = audited_anew([folder])
    assert len(runs["record_batches"]) < len(batches.rows("record_batches"))
    for table in ALL:
        alone, together = (
            printed({name: value for name, value in row.items() if name not in OF_READING} for row in rows)
            for rows in (batches.rows(table), runs[table])
        )
        assert together == alone, table
