"""Outcome of a run in which two transactions hang; each part can be replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tests.support.delta_tables import at
from txnlib.ask.queries import Filter, Row, Rows
from txnlib.ask.report import FindingPlaces, Report
from txnlib.ask.run_result import Outcome, Written, results_of

AS_OF = 1_795_246_961_899
ENDED = AS_OF + 7_200_000
TRANSACTION = {
    "topic": "payments",
    "partition": 0,
    "producer_id": 1,
    "producer_epoch": 0,
    "start_offset": 24,
    "transactional_id": None,
    "verdict": "HANGING",
    "reason": "PRODUCER_ID_ROTATED",
    "blocks_since": datetime.fromtimestamp(AS_OF / 1000, UTC),
    "blocked_offsets": 187,
    "blocked_bytes": None,
    "safe_to_abort": True,
    "runs_seen": 1,
    "application": None,
    "explanation": "it is so",
    "safe_from": None,
    "ends_by": at(AS_OF + 900_000),
    "holds": True,
}
REPORT = Report(
    "blue",
    AS_OF,
    "given",
    "out",
    counts={
        "verdicts": {"HANGING": 2, "OPEN": 1},
        "transactions": {"HANGING": 2, "OPEN": 1},
        "findings": {"WARNING": 1},
        "in_doubt": {"OVERDUE": 1},
        "holding": {"HANGING": 1},
    },
    captured_to_ms=AS_OF,
    partitions_read=3,
    partitions_known=4,
    coordinators_read=1,
    coordinators_known=1,
    findings=(FindingPlaces("COPIES_DISAGREE", "WARNING", 1, "they do"),),
    ended=({**TRANSACTION, "says": "aborted by hand"},),
)


def lag(**fields: Any) -> dict[str, Any]:
    """A row of `partitions`."""
    row = {"topic": "payments", "partition": 0, "lag_offsets": 187, "lag_bytes": 7_400, "lag_ms": 1_380_000}
    return row | {"blocking_producer_id": 1, "blocking_transactional_id": None, "blocking_verdict": "HANGING"} | fields


class Stored(Rows):
    """A run with these rows; aggregates are always the same."""

    root = "out"

    as_of_ms = AS_OF

    def __init__(self, rows: Mapping[str, list[Row]]) -> None:
        self.of = rows

    def ask(self, name: str, chosen: str, where: Sequence[Filter], after: str = "") -> list[Row]:
        equal = [(column, value) for column, comparison, value in where if comparison == "="]
        return [row for row in self.of[name] if all(row[column] == value for column, value in equal)]

    def one(self, name: str, expressions: Mapping[str, str], where: Sequence[Filter] = ()) -> Row:
        return {"partitions": 1, "offsets": 187, "ms": 1_380_000}

    def grouped(
        self, name: str, keys: Sequence[str], expression: str, where: Sequence[Filter] = ()
    ) -> dict[tuple[Any, ...], int]:
        return {("COMPLETE",): 2, ("PARTIAL",): 1}


def outcome(report: Report = REPORT, **rows: list[Row]) -> Outcome:
    broker = {"broker": "3", "partitions_with_late_transactions": 4, "oldest_ongoing_start": at(AS_OF - 1_500)}
    stored = {"open_transactions": [TRANSACTION], "partitions": [lag()], "brokers": [broker], **rows}
    return Outcome(
        cluster="blue",
        version="1.0",
        exit_code=0,
        started_ms=ENDED - 90_000,
        finished_ms=ENDED,
        run_id="blue-1",
        written={"segments": Written(23, 1.5)},
        found=results_of(Stored(stored), report, ENDED),  # type: ignore[arg-type]
        in_doubt={"OVERDUE": 1},
    )
