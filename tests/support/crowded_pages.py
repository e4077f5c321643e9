"""Report pages with many open transactions."""

from dataclasses import replace
from typing import Any

from tests.support.pages import LAG, held, page, planned, transaction
from txnlib.ask.page_rows import MOST_ROWS, SHOWN_CARDS, Page

VERDICTS = ("HANGING", "STUCK", "LATE", "SUSPECT", "OPEN", "UNKNOWN")
REASONS = ("WRITTEN_AFTER_MARKER", "PRODUCER_ID_ROTATED")


def crowded_page(count: int = 128, **more: Any) -> Page:
    """A page with that many hanging transactions on 60 topics, of which every third is new since the audit before."""
    rows = []
    for i in range(count):
        fields: dict[str, Any] = {
            "topic": f"topic-{i % 60}",
            "start_offset": i,
            "producer_id": 7 + i,
            "reason": REASONS[i % 2],
        }
        fields |= {
            "number": i + 1, "runs_seen": 1 if i % 3 == 0 else 4, "transactional_id": f"shop-{i}",
            "blocked_offsets": 1_000 - i,
        }  # fmt: skip
        tool = "kafka-transactions.sh --bootstrap-server $BOOTSTRAP"
        fields |= {"command": f"{tool} abort --topic topic-{i % 60} --partition 0 --start-offset {i}", "places": None}
        rows.append(transaction(**fields))
    lags = [{"topic": "topic", "partition": i, **LAG, "lag_ms": 1_384_000 - i} for i in range(40)]
    summary = {
        "counts": {
            "verdicts": {"HANGING": count},
            "transactions": {"HANGING": count},
            "new": {"HANGING": len(range(0, count, 3))},
        },
        **more,
    }
    return page(*rows, report=summary, lags=lags, lagging=40)


def big_page(length: int = 24, count: int = MOST_ROWS) -> Page:
    """A page of six verdicts with ten thousand transactions each, with as many rows as the readers of tables load."""
    long = "x" * length
    rows = [
        (held if verdict in ("LATE", "OPEN") else transaction)(
            verdict=verdict, start_offset=i, topic=long, transactional_id=f"{long}-{i}", groups=[long] * 10, number=i
        )
        for verdict in VERDICTS
        for i in range(min(count, SHOWN_CARDS))
    ]
    opened = [transaction(topic=long, start_offset=i, producer_id=i, runs_seen=2) for i in range(count)]
    plan = [planned({**row, "number": i, "command": f"abort {i}", "places": None}) for i, row in enumerate(opened)]
    counts = {"verdicts": dict.fromkeys(VERDICTS, 10_000), "transactions": dict.fromkeys(VERDICTS, 10_000)}
    small = page(*rows, plan=plan, opened=opened, report={"actions": {"ABORT": 60_000}, "counts": counts})
    harmed = [{"topic": "payments", "partition": 2 * i, "status": "MISSING"} for i in range(min(count, 5_000) // 2)]
    return replace(small, harmed=harmed)
