"""Three nights of one cluster, as small tables in a folder.

orders-0 is SUSPECT, then HANGING, then HANGING still. payments-0 is LATE on the second night, and was aborted by hand
before the third. On the third a two-phase commit is open in orders-1. What is open in orders-2, which the second night
did not capture, is OPEN, not seen, and UNKNOWN.
"""

from collections import Counter
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.support.delta_tables import at, write, write_run
from txnlib.core.instants import parse_instant
from txnlib.core.schema import ALWAYS_THERE

ORDERS, PAYMENTS = ({"topic": topic, "partition": 0} for topic in ("orders", "payments"))
NIGHTS = tuple(parse_instant(f"2026-11-{day}T02:00:00Z") for day in (19, 20, 21))
BILLING = {
    **ORDERS, "start_offset": 100, "producer_id": 1, "transactional_id": "billing-0",
    "application": "billing", "blocks_since": at(NIGHTS[0] - 600_000), "last_timestamp": at(NIGHTS[0] - 600_000),
    "first_seen": at(NIGHTS[0]), "is_two_phase_commit": False,
}  # fmt: skip
FRAUD = {
    **PAYMENTS, "start_offset": 7, "producer_id": 2, "transactional_id": "fraud-1",
    "application": "fraud", "blocks_since": at(NIGHTS[1] - 1_800_000), "is_two_phase_commit": False,
}  # fmt: skip
LEDGER = {
    "topic": "orders", "partition": 1, "start_offset": 50, "producer_id": 3, "transactional_id": "ledger-0",
    "application": "ledger", "coordinator_state": "Ongoing", "transaction_start": at(NIGHTS[2] - 7_200_000),
    "blocks_since": at(NIGHTS[2] - 7_200_000), "is_two_phase_commit": True,
}  # fmt: skip
NOBODY = ORDERS | {"partition": 2, "start_offset": 9, "producer_id": 4, "blocks_since": at(NIGHTS[2] - 60_000)}
#: What tells a transaction from others.
KEY = ("topic", "partition", "start_offset", "producer_id", "transactional_id")
_EXPLAINED = {"HANGING": "nobody owns its producer id", "UNKNOWN": "a coordinator partition was not captured"}


def _judged(seen: dict[str, Any], verdict: str, night: int, **more: Any) -> dict[str, Any]:
    reason = {"HANGING": "TRANSACTIONAL_ID_EXPIRED", "UNKNOWN": "COORDINATOR_PARTITION_NOT_CAPTURED"}.get(
        verdict, "EXPECTED"
    )
    told = {"verdict": verdict, "reason": reason, "explanation": _EXPLAINED.get(verdict, "expected"), "runs_seen": 1}
    return {"as_of": at(NIGHTS[night]), "first_seen": at(NIGHTS[night]), "blocked_offsets": 40, **seen, **told, **more}


YOUNG = {"runs_seen": 2, "duration_minutes": 1450, "safe_to_abort": False, "do_not_abort_because": "too young"}
OLD = {"runs_seen": 3, "duration_minutes": 2890, "blocked_offsets": 400, "safe_to_abort": True}
OLD |= {"abort_command": "kafka-transactions.sh abort --topic orders --partition 0 --start-offset 100"}
OPENED = (
    [_judged(BILLING, "SUSPECT", 0, duration_minutes=10), _judged(NOBODY, "OPEN", 0)],
    [_judged(BILLING, "HANGING", 1, **YOUNG), _judged(FRAUD, "LATE", 1)],
    [_judged(BILLING, "HANGING", 2, **OLD), _judged(LEDGER, "OPEN", 2), _judged(NOBODY, "UNKNOWN", 2)],
)


#: Base offsets of the segments of a copy, each of one batch, that a night captured; the night before has read others.
SEGMENTS = ({80, 105}, {90, 105, 115}, {90, 100, 105, 115, 125})


def three_nights(root: Path) -> Path:
    """Writes the tables, those of a run that failed among them."""
    for night, as_of_ms in enumerate(NIGHTS):
        verdicts = Counter(row["verdict"] for row in OPENED[night])
        _night(root, night, write_run(root, as_of_ms, verdicts=verdicts))
    write_run(root, NIGHTS[2] + 3_600_000, status="FAILED")
    for name in ALWAYS_THERE:
        if not (root / name).exists():
            write(root, name)
    return root


def _night(root: Path, night: int, run_id: str) -> None:
    as_of = at(NIGHTS[night])

    def add(name: str, *rows: dict[str, Any]) -> None:
        write(root, name, *rows, run_id=run_id)

    add("open_transactions", *OPENED[night])
    add("hanging_transactions", *[row for row in OPENED[night] if row["verdict"] == "HANGING"])
    copy = {"is_judged": True, "status": "COMPLETE"}
    judged = [
        copy
        | {"topic": topic, "partition": partition, "source": f"raw:{leader}"}
        | {"leader": leader, "broker": leader, "is_leader": True}
        for topic, partition, leader in (
            ("orders", 0, "1"),
            ("orders", 1, "2"),
            ("orders", 2, "2"),
            ("payments", 0, "1"),
        )
    ]
    judged[2] |= {"status": "MISSING"} if night == 1 else {}
    nowhere = {"topic": "__transaction_state", "partition": 7, "source": "-", "is_judged": False, "status": "MISSING"}
    add("coverage", *judged, nowhere | {"detail": "no copy"})
    told = {"as_of": as_of}
    blocked = told | ORDERS | {"last_stable_offset": 100, "high_watermark": 140 + 10 * night}
    blocked |= {"lag_offsets": 40 + 10 * night, "lag_ms": 600_000 + 86_400_000 * night, "lag_bytes": 4096}
    blocked |= {"blocking_producer_id": 1, "blocking_transactional_id": "billing-0"}
    blocked |= {"blocking_verdict": OPENED[night][0]["verdict"]}
    behind = {
        "next_blocking_offset": 120,
        "next_blocking_producer_id": 9,
        "next_blocking_transactional_id": "billing-1",
    }
    free = told | PAYMENTS | {"last_stable_offset": 90, "high_watermark": 90, "lag_offsets": 0}
    add("partitions", blocked | behind, free)
    waiting = told | ORDERS | {"committed_offset": 100, "lag_offsets": 40}
    waiting |= {"committed_at": at(NIGHTS[0]), "blocking_producer_id": 1, "blocking_transactional_id": "billing-0"}
    add("blocked_groups", waiting | {"group_id": "invoices"}, waiting | {"group_id": "mailer"})
    plan = told | {key: BILLING[key] for key in KEY}
    add("abort_plan", plan | {"number": 1, "action": "ABORT", "command": "kafka-transactions.sh abort …"})
    ids = [("billing-0", "billing", 3, 1, 32_000), ("fraud-1", "fraud", 4, 2, 3), ("ledger-0", "ledger", 4, 3, 0)]
    names = ("transactional_id", "application", "coordinator_partition", "producer_id", "producer_epoch")
    add("transactional_ids", *[dict(zip(names, row, strict=True)) for row in ids])
    ledger = {"transactional_id": "ledger-0", "coordinator_partition": 4, "transaction_number": 1, "producer_id": 3}
    ledger |= {"producer_epoch": 0, "state": "Ongoing", "start": LEDGER["transaction_start"], "outcome": "OPEN"}
    add("transactions", *_ended(), *[ledger | {"is_two_phase_commit": True}] * (night == 2))
    add("coordinator_states", *_records())
    add("transaction_outcomes", *_outcomes(night))
    split = ORDERS | {"name": "SPLIT_OUTCOME", "severity": "CRITICAL", "offset": 5, "message": "…"}
    twice = {"name": "COPY_OF_DELETED_TOPIC", "severity": "INFO", "transactional_id": "billing-0", "message": "…"}
    add("findings", split, twice)
    bad = ORDERS | {"source": "raw:1", "path": "1/orders-0/0.log", "length": 20, "reason": "CRC"}
    add("quarantine", *[bad | {"position": position} for position in (10, 99)])
    gone = told | {key: FRAUD[key] for key in KEY}
    gone |= {"verdict": "LATE", "how": "BY_HAND", "outcome": "ABORT", "ended_at": as_of - timedelta(hours=3)}
    add("ended_transactions", *[gone | {"says": "aborted by hand at offset 60"}] * (night == 2))
    ended = PAYMENTS | {"producer_id": 2, "first_offset": 7, "outcome": "ABORT", "completed": as_of}
    add("partition_transactions", *[ended | {"marker_offset": 60}] * (night == 2))
    new = SEGMENTS[night] - (SEGMENTS[night - 1] if night else set())
    for name, topic, offsets in (
        ("record_batches", "orders", ("base_offset", "last_offset")),
        ("transaction_log", "__transaction_state", ("offset",)),
        ("committed_offsets", "__consumer_offsets", ("offset",)),
    ):
        copy = {"topic": topic, "partition": 0, "source": "raw:1"}
        add(
            name,
            *[copy | dict.fromkeys(("segment_base_offset", "part", *offsets), at) | {"producer_id": 1} for at in new],
        )
        add("segments", *[copy | {"kind": "raw", "segment_base_offset": at, "parts": [at]} for at in SEGMENTS[night]])
    span = ORDERS | {"producer_id": 1, "span": night}
    spans = {80 + night: False, 100: True}
    add("producer_spans", *[span | {"first_offset": at, "is_newest": newest} for at, newest in spans.items()])


def _ended() -> list[dict[str, Any]]:
    marker = ORDERS | {"marker_offset": 60, "marker_type": "COMMIT"}
    base = {
        "coordinator_partition": 3,
        "transactional_id": "billing-0",
        "is_two_phase_commit": False,
        "prepared": at(NIGHTS[0]),
    }
    base |= {
        "transaction_timeout_ms": 60_000,
        "markers": [marker],
        "transaction_version": 0,
        "completed": at(NIGHTS[0]),
    }
    quick = base | {"outcome": "COMMIT", "ended_by": "CLIENT", "time_to_decide_ms": 100, "time_to_write_markers_ms": 4}
    slow = base | {
        "outcome": "ABORT",
        "ended_by": "TIMEOUT",
        "time_to_decide_ms": 61_000,
        "time_to_write_markers_ms": 40,
    }
    lost = PAYMENTS | {"marker_offset": None, "marker_type": None}
    other = {"coordinator_partition": 4, "transactional_id": "fraud-1", "markers": [marker, lost]}
    return [
        quick,
        quick,
        slow,
        quick | other,
        base | {"transactional_id": "ledger-0", "outcome": "OPEN", "markers": []},
    ]


def _outcomes(night: int) -> list[dict[str, Any]]:
    """A committed transaction, and one that lacks a marker."""
    base = {
        "as_of": at(NIGHTS[night]), "producer_id": 1, "producer_epoch": 0, "is_two_phase_commit": False,
        "transaction_number": 1,
    }  # fmt: skip
    base |= ORDERS | {"transactional_id": "billing-0", "coordinator_partition": 3, "marker": "FOUND"}
    base |= {
        "known_from": "COORDINATOR",
        "marker_offset": 60,
        "outcome": "COMMIT",
        "decided_outcome": "COMMIT",
        "records": 2,
    }
    lost = PAYMENTS | {"transactional_id": "fraud-1", "producer_id": 2, "marker": "MISSING", "marker_offset": None}
    return [base, base | lost | {"outcome": "OPEN", "says": "its marker never reached this log"}]


def _records() -> list[dict[str, Any]]:
    states = [None, "Empty", "Ongoing", "PrepareAbort", "CompleteAbort"]
    base = {
        "transactional_id": "billing-0",
        "coordinator_partition": 3,
        "producer_id": 1,
        "producer_epoch": 0,
        "legality": "LEGAL",
    }
    return [
        base | {"offset": offset, "timestamp_ms": NIGHTS[0] + offset, "state_before": before, "state": after}
        for offset, (before, after) in enumerate(pairwise(states))
    ]
