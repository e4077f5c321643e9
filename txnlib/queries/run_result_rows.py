"""The rows behind `--metrics` and `--summary`, each query with a limit."""

from __future__ import annotations

from typing import Final

from txnlib.queries.run_result import SHOWN_BROKERS, SHOWN_LAGS, SHOWN_TRANSACTIONS, STATUSES, URGENCY, Found
from txnlib.queries.summary import Summary
from txnlib.queries.tables import Row, Run, ms

_BROKER: Final = ("broker", "partitions_with_late_transactions", "active_transaction_open_time_max_ms")
_LAG: Final = (
    "topic",
    "partition",
    "lag_offsets",
    "lag_bytes",
    "lag_ms",
    "blocking_producer_id",
    "blocking_transactional_id",
    "blocking_verdict",
)
_HIGHEST: Final = {"partitions": "count(*)", "offsets": 'max("lag_offsets")', "ms": 'max("lag_ms")'}
_TRANSACTION: Final = (
    "topic",
    "partition",
    "producer_id",
    "producer_epoch",
    "start_offset",
    "transactional_id",
    "verdict",
    "reason",
    "blocks_since",
    "blocked_offsets",
    "blocked_bytes",
    "safe_to_abort",
    "runs_seen",
)


def found_by(run: Run, summary: Summary) -> Found:
    """What a run whose tables are all there found."""
    statuses = run.grouped("coverage", ("status",), "count(*)", [("is_judged", "=", True)])
    judged = {status: statuses.get((status,), 0) for status in STATUSES}
    is_behind = [("lag_offsets", ">", 0)]
    return Found(
        summary=summary,
        brokers=run.rows("brokers", _BROKER, order='"broker"', limit=SHOWN_BROKERS),
        lags=run.rows("partitions", _LAG, is_behind, order=_LONGEST, limit=SHOWN_LAGS),
        lag=run.one("partitions", _HIGHEST, is_behind),
        partitions={**judged, "MISSING": summary.partitions_known - summary.partitions_read},
        transactions=_transactions(run, summary),
    )


_LONGEST: Final = '"lag_ms" DESC NULLS LAST, "lag_offsets" DESC, "topic", "partition"'
_MOST_BLOCKING: Final = '"blocked_offsets" DESC NULLS LAST, "topic", "partition", "producer_id", "start_offset"'


def _transactions(run: Run, summary: Summary) -> list[Row]:
    found: list[Row] = []
    for verdict in URGENCY:
        left = SHOWN_TRANSACTIONS - len(found)
        if left and summary.counts["verdicts"].get(verdict):
            found += run.rows("open_transactions", _TRANSACTION, [("verdict", "=", verdict)], order=_MOST_BLOCKING, limit=left)
    return [{**row, "blocks_since": ms(row["blocks_since"])} for row in found]
