"""Audits with a console consumer's text instead of coordinator logs."""

import shutil
from pathlib import Path

import pytest

from tests.support import live_output
from tests.support.memory_audits import audited


def without_coordinators(capture: Path, folder: Path) -> Path:
    leave_out = shutil.ignore_patterns("__transaction_state-*")
    return Path(shutil.copytree(capture / "brokers", folder / "brokers", ignore=leave_out))


def ids(tables):
    return {row["transactional_id"]: (row["coordinator_partition"], row["producer_id"]) for row in tables.rows("transactional_ids")}


def verdicts(tables):
    return {(row["topic"], row["partition"], row["start_offset"]): row["verdict"] for row in tables.rows("open_transactions")}


@pytest.mark.slow
def test_ids_are_those_of_the_log_and_a_verdict_is_the_same_or_unknown(spark, captures, tmp_path):
    capture = captures / "hostile-3.9"
    as_of = ("--as-of", str(live_output.as_of(capture)))
    raw = audited(spark, capture / "brokers", *as_of)
    printed = audited(
        spark,
        [without_coordinators(capture, tmp_path), capture / "dumps" / "console" / "TransactionLogMessageFormatter.txt"],
        *as_of,
    )
    assert ids(printed) == ids(raw)
    # A consumer's text is no copy of the leader's log: what an id did since its newest record is not known.
    assert verdicts(raw) == {("odd.topic_with-dashes-1", 0, 27): "HANGING", ("odd.topic_with-dashes-1", 1, 24): "LATE"}
    assert set(verdicts(printed)) == set(verdicts(raw))
    assert set(verdicts(printed).values()) == {"UNKNOWN"}
    coordinators = [row for row in printed.rows("coverage") if row["topic"] == "__transaction_state"]
    assert {(row["status"], row["source"]) for row in coordinators if row["status"] != "MISSING"} == {("PARTIAL", "console:.")}
