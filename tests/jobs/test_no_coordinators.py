"""Clusters whose metadata log shows whether there is a `__transaction_state`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.audits import AuditTables, audited_anew
from tests.support.cluster import MINUTE, NOON, TXN, Cluster
from tests.support.delta_tables import READ_BY_COMMANDS
from tests.support.metadata_log import MetadataLog
from txnlib.ask.report_rows import report_of
from txnlib.ask.terminal_report import render
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.pipeline.audit import query_run

ORDERS = ("orders", 0)
END = 20 * MINUTE


def capture(
    folder: Path, *, topic: str | None = None, removed: bool = False, whole: bool = True, listed: str = ""
) -> Path:
    """What is left of a cluster without its coordinators: a partition with an open transaction, and the metadata
    log."""
    log = MetadataLog(NOON)
    log.broker(1, 0)
    log.topic("orders", 1, 1_000, replicas=(1,))
    if topic is not None:
        log.topic(topic, 5, 2_000, replicas=(1,))
        if removed:
            log.remove(topic, 3_000)
    log.level(2, END - 1_000)
    cluster = Cluster(metadata=log)
    cluster.write(ORDERS, 7, 0, 6 * MINUTE)
    cluster.capture(folder, END)
    for found in folder.glob(f"*/{TXN}-*"):
        shutil.rmtree(found)
    (folder / "1" / "replication-offset-checkpoint").write_text(listed)
    notes = json.loads((folder / "capture.json").read_text())
    del notes["coordinator_partitions"]
    (folder / "capture.json").write_text(json.dumps(notes))
    if not whole:
        (segment,) = folder.glob("1/__cluster_metadata-0/*.log")
        segment.rename(segment.with_name(f"{1:020}.log"))
        segment.with_name(f"{1:020}.log").write_bytes(segment.with_name(f"{1:020}.log").read_bytes()[200:])
    return folder


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"topic": TXN}, 5),
        ({"topic": TXN, "removed": True}, 50),
        ({"whole": False}, 50),
        ({"listed": f"0\n2\norders 0 1\n{TXN} 3 9\n"}, 1),
    ],
    ids=["there", "deleted", "log without its beginning", "a broker has one"],
)
def test_coordinators_that_may_have_existed_are_missing(tmp_path: Path, given: dict[str, Any], missing: int) -> None:
    found = [
        row["status"]
        for row in audited_anew([capture(tmp_path, **given)]).rows("coverage")
        if row["topic"] == TRANSACTION_STATE_TOPIC
    ]
    assert found == ["MISSING"] * missing


@pytest.fixture(scope="module")
def without_any(tmp_path_factory: pytest.TempPathFactory) -> AuditTables:
    tables = audited_anew([capture(tmp_path_factory.mktemp("without"))])
    tables.finished(*READ_BY_COMMANDS)
    return tables


def test_no_coordinators_that_never_existed_are_missing(without_any: AuditTables) -> None:
    assert {row["topic"] for row in without_any.rows("coverage")} == {"orders", "__cluster_metadata"}


def test_what_is_open_without_any_is_not_judged(without_any: AuditTables) -> None:
    """The records may be of another cluster."""
    rows = without_any.rows("open_transactions")
    assert [(row["verdict"], row["safe_to_abort"]) for row in rows] == [("UNKNOWN", False)]


def test_the_report_says_that_there_are_none(without_any: AuditTables) -> None:
    said = " ".join(render(report_of(query_run(without_any.run))).split())
    assert "2 of 2 partitions, no coordinator partitions (by the metadata log, there is no __transaction_state)" in said
    assert "of 50" not in said
