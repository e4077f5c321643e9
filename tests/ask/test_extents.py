"""The extent of each verdict in a summary."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.delta_tables import NOW, READ_BY_COMMANDS, at, write, write_plan, write_run
from txnlib.ask.delta_rows import open_run, open_tables
from txnlib.ask.extents import Reach
from txnlib.ask.queries import StoredRun
from txnlib.ask.report import Report
from txnlib.ask.report_rows import report_of


def opened(partition: int, producer_id: int, since_ms: int | None, **fields: object) -> dict[str, object]:
    place = {"topic": "t", "partition": partition, "producer_id": producer_id, "start_offset": 9}
    own = {"transactional_id": f"id{producer_id}", "application": "app", "runs_seen": 1, "safe_to_abort": False}
    held = {"blocked_offsets": 1, "blocks_since": None if since_ms is None else at(since_ms)}
    return place | own | held | {"verdict": "HANGING", "reason": "R1"} | fields


@pytest.fixture
def run(tmp_path) -> StoredRun:
    for name in READ_BY_COMMANDS:
        write(tmp_path, name)
    write_run(tmp_path)
    write_run(tmp_path, NOW - 1_000)
    write_run(tmp_path, NOW - 500, status="RUNNING")
    write_run(tmp_path, NOW - 400, cluster="other")
    write(
        tmp_path,
        "open_transactions",
        opened(0, 1, NOW - 90, safe_to_abort=True, broker_clock_age_ms=90, holds=True),
        opened(1, 1, NOW - 80, safe_from=at(NOW + 10)),
        opened(1, 2, NOW - 70, reason="R2", application="other", safe_from=at(NOW + 20), runs_seen=2, holds=True),
        opened(2, 3, NOW - 60, verdict="LATE", application=None, transactional_id=None, holds=True),
        opened(2, 4, None, verdict="UNKNOWN"),
    )
    write_plan(tmp_path, opened(0, 1, None), opened(1, 1, None), opened(1, 2, None))
    write(
        tmp_path,
        "findings",
        *[
            {"name": "MARKER_MISSING", "severity": "CRITICAL", "topic": "t", "partition": n, "offset": n}
            for n in range(5)
        ],
    )
    lost = {"status": "MISSING", "is_judged": False}
    write(tmp_path, "coverage", {"topic": "b", "partition": 2, **lost}, {"topic": "a", "partition": 7, **lost})
    write(tmp_path, "coverage", {"topic": "__transaction_state", "partition": 3, **lost})
    return open_run(open_tables(str(tmp_path)))


@pytest.fixture
def summary(run: StoredRun) -> Report:
    return report_of(run)


def test_transactions_and_partitions_are_counted_once(summary):
    reasons, applications = (("R1", 1), ("R2", 1)), (("app", 1), ("other", 1))
    safe = {"safe": 1, "safe_rows": 1, "safe_later": 2, "safe_from_ms": NOW + 20}
    held = {"held": 2, "holding": 2, "held_offsets": 2, "since_ms": NOW - 90, "is_since_proven": True}
    hanging = Reach(3, 2, 2, 1, 2, **held, **safe, reasons=reasons, applications=applications)
    late = {"held": 1, "holding": 1, "held_offsets": 1, "since_ms": NOW - 60}
    assert {name: [row["partition"] for row in extent.places] for name, extent in summary.extents.items()} == {
        "HANGING": [0, 1],
        "LATE": [2],
        "UNKNOWN": [],
    }
    assert {name: replace(extent, places=()) for name, extent in summary.extents.items()} == {
        "HANGING": hanging,
        "LATE": Reach(1, 1, 1, 1, 1, **late, reasons=(("R1", 1),), applications=((None, 1),)),
        "UNKNOWN": Reach(1, 1, 1, 1, 1, reasons=(("R1", 1),), applications=(("app", 1),)),
    }
    assert summary.counts["verdicts"] == {"HANGING": 3, "LATE": 1, "UNKNOWN": 1}
    assert summary.counts["transactions"] == {"HANGING": 2, "LATE": 1, "UNKNOWN": 1}
    assert summary.counts["new"] == {"HANGING": 2, "LATE": 1, "UNKNOWN": 1}


def test_a_transaction_with_two_reasons_is_one_of_its_application(run, tmp_path):
    write(tmp_path, "open_transactions", opened(3, 1, NOW - 50, reason="R2"))
    extent = report_of(open_run(open_tables(str(tmp_path)))).extents["HANGING"]
    assert (extent.transactions, extent.applications) == (2, (("app", 1), ("other", 1)))
    assert extent.reasons == (("R2", 2), ("R1", 1))


def test_a_finding_of_two_severities_has_the_places_of_each_and_context_has_none(run, tmp_path):
    place = {"topic": "t", "partition": 9, "offset": 9}
    write(
        tmp_path,
        "findings",
        {"name": "MARKER_MISSING", "severity": "WARNING", **place},
        {"name": "COPY_OF_DELETED_TOPIC", "severity": "INFO", **place},
    )
    found = report_of(open_run(open_tables(str(tmp_path)))).findings
    assert [(each.severity, each.count, [row["partition"] for row in each.places][:3]) for each in found] == [
        ("CRITICAL", 5, [0, 1, 2]),
        ("WARNING", 1, [9]),
        ("INFO", 1, []),
    ]


def test_what_only_looks_late_is_counted_apart(run, tmp_path):
    old = {"verdict": "LATE", "reason": "TIMEOUT_NOT_PASSED"}
    write(
        tmp_path,
        "open_transactions",
        opened(7, 20, NOW - 200, **old, safe_from=None, holds=True),
        opened(8, 20, NOW - 300, **old, holds=True),
        opened(8, 21, NOW - 10, verdict="LATE", reason="OVERDUE"),
    )
    summary = report_of(open_run(open_tables(str(tmp_path))))
    late, looks_late = summary.extents["LATE"], summary.extents["LOOKS_LATE"]
    assert (late.transactions, late.rows, late.held, late.holding, late.since_ms) == (2, 2, 1, 1, NOW - 60)
    assert (looks_late.transactions, looks_late.rows) == (1, 2)
    assert (looks_late.held, looks_late.holding, looks_late.since_ms) == (2, 1, NOW - 300)
    assert {name: summary.counts["verdicts"][name] for name in ("LATE", "LOOKS_LATE")} == {"LATE": 2, "LOOKS_LATE": 2}
    assert summary.counts["holding"]["LOOKS_LATE"] == 2
    assert {name: summary.counts["transactions"][name] for name in ("LATE", "LOOKS_LATE")} == {
        "LATE": 2,
        "LOOKS_LATE": 1,
    }
    assert (late.reasons, looks_late.reasons) == ((("OVERDUE", 1), ("R1", 1)), (("TIMEOUT_NOT_PASSED", 1),))


def test_an_age_is_that_of_the_oldest_transaction_that_holds_a_partition(run, tmp_path):
    write(tmp_path, "open_transactions", opened(5, 9, NOW - 100), opened(6, 8, NOW - 95, holds=True))
    summary = report_of(open_run(open_tables(str(tmp_path))))
    extent = summary.extents["HANGING"]
    assert (extent.held, extent.holding, extent.since_ms, extent.is_since_proven) == (3, 3, NOW - 95, False)


def test_the_audit_before_is_a_finished_one_of_the_same_cluster(summary):
    assert summary.earlier_ms == NOW - 1_000


def test_findings_have_places_and_missing_partitions_have_names(summary):
    (found,) = summary.findings
    assert (found.count, [place["partition"] for place in found.places]) == (5, [0, 1, 2])
    assert summary.missing_partitions == (("a", 7), ("b", 2))
    assert summary.missing_coordinators == (3,)
