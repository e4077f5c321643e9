"""Report pages without tables: rows as an audit has them, with fields to change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import date
from typing import Any

from txnlib.ask.acknowledgements import Acknowledged, Acknowledgement
from txnlib.ask.explain import Explained
from txnlib.ask.extents import Reach
from txnlib.ask.page_rows import Page
from txnlib.ask.partition_events import story_events
from txnlib.ask.report import FindingPlaces, Report
from txnlib.ask.transaction import TransactionStory
from txnlib.ask.words import PREPARED
from txnlib.core.coverage.unread import UnreadFiles
from txnlib.core.findings.marker_findings import SPLIT_OUTCOME

AS_OF = 1_795_246_961_899
START = AS_OF - 1_380_000
TOOL = "kafka-transactions.sh --bootstrap-server $BOOTSTRAP"
HERE = {"topic": "payments", "partition": 0}
#: What its partition lags behind.
LAG = {
    "lag_offsets": 187, "lag_bytes": 7_400, "last_stable_offset": 24, "high_watermark": 211,
    "blocking_producer_id": 1001, "blocking_transactional_id": "payments-batch-7", "blocking_verdict": "HANGING",
    "ends_by": None,
}  # fmt: skip
#: Columns with words of our own, or of Kafka's: nothing in them comes from a log.
OURS = {
    "outcome", "decided_outcome", "marker", "verdict", "status", "action", "likelihood", "severity", "name", "state",
    "coordinator_state", "clock", "event", "mark", "age_basis", "how",
}  # fmt: skip


def transaction(**fields: Any) -> dict[str, Any]:
    """A hanging transaction that may be aborted, as a report gets it."""
    evidence = [
        {**HERE, "offset": 23, "record": "endTxnMarker: ABORT", "says": "the producer's last marker in this partition"}
    ]
    row = {
        **HERE, "producer_id": 1001, "producer_epoch": 0, "start_offset": 24, "last_timestamp": START,
        "duration_minutes": 23, "last_timestamp_ms": 0,
    }  # fmt: skip
    row |= {"transactional_id": "payments-batch-7", "application": "payments-batch", "coordinator_partition": 3}
    row |= {"coordinator_state": "CompleteAbort", "transaction_start": START, "transaction_timeout_ms": 900_000}
    row |= {"is_two_phase_commit": False, "verdict": "HANGING", "reason": "WRITTEN_AFTER_MARKER", "explanation": "late"}
    row |= {"kafka_find_hanging": True, "causes": [{"cause": "late produce", "likelihood": "LIKELY", "evidence": "x"}]}
    row |= {"evidence": evidence, "age_basis": "CLIENT_CLOCK", "broker_clock_age_ms": 1_324_000, "safe_to_abort": True}
    row |= {
        "abort_command": f"{TOOL} abort --topic payments --partition 0 --start-offset 24",
        "do_not_abort_because": None,
    }
    row |= {"blocked_offsets": 187, "blocked_bytes": 7_400, "blocks_since": START, "first_seen": AS_OF, "runs_seen": 1}
    row |= {"number": 1, "action": "ABORT", "command": f"{TOOL} abort --topic payments --partition 0 --start-offset 24"}
    row |= {
        "before": [
            {"command": f"{TOOL} describe-producers --topic payments --partition 0", "must_print": "producer 1001"}
        ]
    }
    row |= {"after": [{"command": f"{TOOL} describe-producers --topic payments --partition 0", "must_print": "None"}]}
    row |= {
        "last_stable_offset": 24, "lag_offsets": 187, "lag_bytes": 7_400, "is_holder": True,
        "blocking_transactional_id": "payments-batch-7", "safe_from": None, "late_by": None,
        "holds": True, "ends_by": None, "not_before": None, "high_watermark": 211, "end_offset": 211,
    }  # fmt: skip
    row |= {
        "effect": "drops 1 record here, from offset 24 on", "notes": ["look twice"],
        "places": ["payments-0 offset 24"], "command_for_old_brokers": None, "safety": [],
    }  # fmt: skip
    row |= {"blocking_producer_id": 1001, "next_blocking_offset": None, "next_blocking_producer_id": None}
    row |= {"next_blocking_transactional_id": None, "groups": ["settlement"]}
    return row | fields


def held(verdict: str = "LATE", **fields: Any) -> dict[str, Any]:
    """A transaction that its coordinator holds."""
    row = transaction(verdict=verdict, transactional_id="fraud-detector", producer_id=1002, coordinator_state="Ongoing")
    row |= {"safe_to_abort": False, "abort_command": None, "do_not_abort_because": "its coordinator still holds it"}
    row |= {
        "action": "END_AT_COORDINATOR",
        "command": f"{TOOL} forceTerminateTransaction --transactionalId fraud-detector",
    }
    return row | fields


def story(row: Mapping[str, Any]) -> Explained:
    """What the two logs show of it: begun, aborted, and written to once more."""
    start = row["start_offset"]
    data = {
        "producer_epoch": 0,
        "is_transactional": True,
        "is_control": False,
        "timestamp_type": "CREATE_TIME",
        "records_count": 1,
    }
    marker = {**data, "is_control": True, "control_type": "ABORT", "coordinator_epoch": 0, "base_sequence": None}
    first, second = (
        {"max_timestamp_ms": START, "base_sequence": number, "last_sequence": number} for number in range(2)
    )
    batches = [
        {**data, "base_offset": start - 2, "last_offset": start - 2, **first},
        {**marker, "base_offset": start - 1, "last_offset": start - 1, "max_timestamp_ms": START + 50},
        {**data, "base_offset": start, "last_offset": start, **second},
    ]
    own = {"transactional_id": row["transactional_id"], "coordinator_partition": 3, "producer_id": row["producer_id"]}
    own |= {"is_tombstone": False, "transaction_number": 1, "producer_epoch": 0}
    here = [{"topic": row["topic"], "partition": row["partition"]}]
    records = [
        {**own, "offset": 1, "timestamp_ms": START + 1, "state": "Ongoing", "partitions": here},
        {**own, "offset": 3, "timestamp_ms": START + 40, "state": "PrepareAbort", "partitions": here},
        {**own, "offset": 4, "timestamp_ms": START + 60, "state": "CompleteAbort", "partitions": []},
    ]
    stamps = [(start - 1, START + 50), (start + 9, START + 60_000)]
    events = story_events(dict(row), batches, stamps, records, (), {start - 1: (row["transactional_id"], 1)})
    evidence = [
        {**each, "printed": [f"baseOffset: {each['offset']} lastOffset: {each['offset']}"]} for each in row["evidence"]
    ]
    return Explained("quickstart", "run-1", AS_OF, events, dict(row), ["3 earlier records of it"], evidence)


def broken() -> TransactionStory:
    """A transaction that somebody aborted by hand on one of its two partitions."""
    own = {
        "topic": "orders", "records": 2, "marked": START, "says": None, "marker": "FOUND", "marker_offset": 43,
        "outcome": "COMMIT",
    }  # fmt: skip
    odd = {
        "marker": "CONTRADICTING",
        "marker_offset": 88,
        "outcome": "ABORT",
        "says": "an ABORT marker contradicts the decision",
    }
    places = [{"topic": "orders", "partition": 0}, {"topic": "orders", "partition": 1}]
    records = [{"offset": 24, "timestamp_ms": START, "state": "Ongoing", "partitions": places}]
    rows = [own | {"partition": 0} | odd, own | {"partition": 1}]
    own = ("split-1", 3, 1, 2013, 0, "COMMIT")
    return TransactionStory("quickstart", "run-1", AS_OF, [], *own, records, rows)


def extent(*rows: Mapping[str, Any]) -> Reach:
    """What these transactions hold, each the producer of one."""
    held = [dict(row) for row in rows if row["holds"]]
    hold = {"held": len(held), "holding": len(held), "held_offsets": sum(row["lag_offsets"] for row in held)}
    reasons = tuple(Counter(str(row["reason"]) for row in rows).most_common())
    places = tuple(held[:2])
    since = {"since_ms": START, "is_since_proven": True} if held else {}
    return Reach(len(rows), len(rows), len(rows), **hold, **since, places=places, reasons=reasons)


def planned(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "command_for_old_brokers": f"{TOOL} abort --producer-id 1001"}


def page(*rows: Mapping[str, Any], report: Mapping[str, Any] | None = None, **fields: Any) -> Page:
    """A page with these open transactions; what is not given is as in a small cluster where all was read."""
    sections: dict[str, list[Any]] = {}
    verdicts: dict[str, int] = {}
    actions: dict[str, int] = {}
    for row in rows:
        sections.setdefault(PREPARED if row["verdict"] == "OPEN" else row["verdict"], []).append(row)
        verdicts[row["verdict"]] = verdicts.get(row["verdict"], 0) + 1
        actions[row["action"]] = actions.get(row["action"], 0) + 1
    shown = Report(
        "quickstart",
        AS_OF,
        "given",
        "/data/out",
        "4.1.1",
        counts={"verdicts": verdicts, "transactions": verdicts},
        transactions=sections,
        actions=actions,
        first="abort payments-0 from offset 24 by hand" if "ABORT" in actions else "",
        brokers=2,
    )
    reach = {name: extent(*[row for row in rows if row["verdict"] == name]) for name in verdicts}
    shown = replace(shown, captured_to_ms=AS_OF, extents=reach)
    shown = replace(
        shown, partitions_read=12, partitions_known=14, coordinators_read=5, coordinators_known=5, **(report or {})
    )
    harmed = [
        {"topic": "payments", "partition": i, "status": ("", "MISSING", "DAMAGED")[i % 3]} for i in range(7) if i % 3
    ]
    broker = {"broker": "1", "partitions_led": 7, "partitions_with_late_transactions": 1, "coordinators_led": 2}
    run = {"run_id": "run-1", "as_of_ms": AS_OF, "verdicts": verdicts, "lag_ms": 1_384_000}
    known: dict[str, Any] = {"run_id": "run-1", "tables": "out", "inputs": "/data/capture", "harmed": harmed}
    known |= {"coordinators_complete": 5}
    known |= {"settings": {"cluster": "quickstart", "stuck_after_ms": 300_000, "application_patterns": []}}
    known |= {
        "opened": rows,
        "plan": [planned(row) for row in rows],
        "lags": [HERE | LAG | {"lag_ms": 1_384_000}],
        "lagging": 1,
    }
    known |= {"brokers": [{**broker, "active_transaction_open_time_max_ms": None}]}
    known |= {"topics": {"payments": {"COMPLETE": 3, "MISSING": 2, "DAMAGED": 2}}, "topics_known": 1}
    places = ("topic", "partition", "producer_id", "start_offset")
    known |= {"stories": {tuple(row[name] for name in places): story(row) for row in rows[:12]}}
    known |= {"runs": [run, {**run, "run_id": "run-0", "as_of_ms": AS_OF - 86_400_000, "verdicts": {"LATE": 1}}]}
    return Page(shown, **known | fields)


def full_page() -> Page:
    """A page with every section."""
    ended = {
        **HERE,
        "start_offset": 3,
        "producer_id": 9,
        "transactional_id": "gone",
        "verdict": "HANGING",
        "says": "ended by hand",
    }
    rows = [
        transaction(),
        transaction(
            start_offset=40, safe_to_abort=False, do_not_abort_because="no clock proves its age", action="ABORT_LATER"
        ),
        held("STUCK", action="REVIVE_COORDINATOR", command=None),
        held(start_offset=50),
        transaction(
            verdict="SUSPECT", start_offset=60, abort_command=None, do_not_abort_because="young", action="WAIT"
        ),
        held("OPEN", start_offset=70, is_two_phase_commit=True, coordinator_state="Ongoing"),
        transaction(
            verdict="UNKNOWN", start_offset=80, abort_command=None, do_not_abort_because="x", action="CAPTURE_MORE"
        ),
    ]
    harmed = {
        **HERE,
        "source": "raw:1",
        "status": "PARTIAL",
        "detail": "the log begins in the middle",
        "unreadable_bytes": 0,
    }
    more = {"incomplete": (harmed,), "findings": findings(), "missing_coordinators": (7, 31), "unreadable_bytes": 12}
    unread = {"path": "/data/capture/a.txt", "topic": None, "partition": None, "bytes": 12, "code": "ARCHIVE"}
    more |= {"unread": [unread | {"reason": "ARCHIVE: unpack it"}], "unreadable_files": 3}
    more |= {"unread_by_reason": [UnreadFiles("ARCHIVE", 3, 12, ["/data/capture/a.txt"])]}
    more |= {"ended": (ended,), "ended_known": 1, "broken": [broken()]}
    endings = [{**ended, "as_of": AS_OF}]
    more["known"] = acknowledged_of(held(start_offset=90))
    return page(*rows, report=more, two_phase=[rows[5]], two_phase_open=1, endings=endings)


def acknowledged_of(row: Mapping[str, Any]) -> Acknowledged:
    """A transaction that is acknowledged, findings that are, an entry that is over, and one that matches nothing."""
    said = {"until": date(2027, 1, 1), "by": "ada", "why": "its owner looks"}
    entry = Acknowledgement.model_validate({"topic": row["topic"], **said})
    key = (row["topic"], row["partition"], row["producer_id"], row["start_offset"])
    return Acknowledged({key: (dict(row), entry)}, {"CRITICAL": 2}, [(entry, 2)], [entry], [entry], {row["verdict"]: 1})


def findings() -> list[FindingPlaces]:
    """One finding with places, and one of severity INFO."""
    places = [
        {**HERE, "offset": offset, "producer_id": 9, "transactional_id": "gone", "evidence": "a marker"}
        for offset in (7, 9)
    ]
    return [
        FindingPlaces("SPLIT_OUTCOME", "CRITICAL", 2, SPLIT_OUTCOME.meaning, SPLIT_OUTCOME.advice, places),
        FindingPlaces("COPY_OF_DELETED_TOPIC", "INFO", 5, "A topic was deleted.", "nothing to do."),
    ]


def tainted(value: Any, taint: str, column: str = "") -> Any:
    """The value with something evil in every text of it that may come from a log."""
    if is_dataclass(value) and not isinstance(value, type):
        changed = {each.name: tainted(getattr(value, each.name), taint, each.name) for each in fields(value)}
        return replace(value, **changed)
    if isinstance(value, Acknowledgement):
        return value.model_copy(update={name: f"{getattr(value, name)}{taint}" for name in ("topic", "by", "why")})
    if isinstance(value, str):
        return value if column in OURS else f"{value}{taint}"
    if isinstance(value, Mapping):
        return {_tainted_key(key, taint, column): tainted(each, taint, str(key)) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(tainted(each, taint, column) for each in value)
    return value


def _tainted_key(key: Any, taint: str, column: str) -> Any:
    """Topics stand in keys, too."""
    if column == "stories":
        return (f"{key[0]}{taint}", *key[1:])
    return f"{key}{taint}" if column == "topics" else key
