"""Results of a run in which two transactions hang; each part can be replaced."""

from __future__ import annotations

from typing import Any

from txnlib.ask.run_result import Outcome, Results, Written
from txnlib.ask.summary import FindingPlaces, Summary

AS_OF = 1_795_246_961_899


def lag(**fields: Any) -> dict[str, Any]:
    """A row of `partitions`."""
    row = {"topic": "payments", "partition": 0, "lag_offsets": 187, "lag_bytes": 7_400, "lag_ms": 1_380_000}
    return row | {"blocking_producer_id": 1, "blocking_transactional_id": None, "blocking_verdict": "HANGING"} | fields


def results() -> Results:
    transaction = {"topic": "payments", "partition": 0, "producer_id": 1, "producer_epoch": 0, "start_offset": 24}
    transaction |= {
        "transactional_id": None,
        "verdict": "HANGING",
        "reason": "PRODUCER_ID_ROTATED",
        "blocks_since": AS_OF - 1,
    }
    transaction |= {"blocked_offsets": 187, "blocked_bytes": None, "safe_to_abort": True, "runs_seen": 1}
    transaction |= {"application": None, "explanation": "it is so", "safe_from": None}
    counts = {"verdicts": {"HANGING": 2, "OPEN": 1}, "findings": {"WARNING": 1}, "in_doubt": {"OVERDUE": 1}}
    read = {"partitions_read": 3, "partitions_known": 4, "coordinators_read": 1, "coordinators_known": 1}
    found = (FindingPlaces("COPIES_DISAGREE", "WARNING", 1, "they do"),)
    ended = ({**transaction, "says": "aborted by hand"},)
    summary = Summary(
        "blue", AS_OF, "given", "out", counts=counts, captured_to_ms=AS_OF, **read, findings=found, ended=ended
    )
    return Results(
        summary=summary,
        brokers=[{"broker": "3", "partitions_with_late_transactions": 4, "active_transaction_open_time_max_ms": 1_500}],
        lags=[lag()],
        lag={"partitions": 1, "offsets": 187, "ms": 1_380_000},
        partitions={"COMPLETE": 2, "PARTIAL": 1, "MISSING": 1},
        transactions=[transaction],
    )


def outcome(given: Results | None = None) -> Outcome:
    ended = AS_OF + 7_200_000
    return Outcome(
        cluster="blue", version="1.0", exit_code=0, started_ms=ended - 90_000, finished_ms=ended, run_id="blue-1",
        written={"segments": Written(23, 1.5)}, results=given or results(),
    )  # fmt: skip
