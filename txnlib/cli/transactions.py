"""The commands of Kafka's own tool: `list`, `describe`, `describe-producers` and `find-hanging`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Any, Final

from txnlib.cli.output import Answer
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.verdicts.find_hanging import MS_PER_MINUTE, SearchScope, duration_minutes, find_hanging, is_candidate
from txnlib.errors import UsageError
from txnlib.queries.collect_plan import shows_absence
from txnlib.queries.kafka_filters import matches_whole, runs_longer
from txnlib.queries.tables import Filter, Row, Run, ms
from txnlib.render import kafka_table

_ID_COLUMNS: Final = (
    "transactional_id",
    "coordinator_partition",
    "producer_id",
    "producer_epoch",
    "state",
    "transaction_timeout_ms",
    "transaction_start",
    "partitions",
)
_PRODUCER_COLUMNS: Final = (
    "producer_id",
    "producer_epoch",
    "coordinator_epoch",
    "last_sequence",
    "last_timestamp",
    "current_transaction_start_offset",
)
_OPEN_COLUMNS: Final = (
    "topic",
    "partition",
    "producer_id",
    "producer_epoch",
    "coordinator_epoch",
    "start_offset",
    "last_timestamp",
    "transactional_id",
    "verdict",
    "reason",
    "kafka_find_hanging",
)


def list_transactions(run: Run, options: Namespace) -> Answer:
    """Every transactional id that has not expired and that passes the filters. Raises UsageError for an invalid expression."""
    rows = [row for row in _ids(run) if runs_longer(row["transaction_start_ms"], run.as_of_ms, options.duration_filter)]
    matching = matches_whole(options.transactional_id_pattern, [row["transactional_id"] for row in rows])
    rows = [row for row, is_match in zip(rows, matching, strict=True) if is_match]
    idle = sum(row["transaction_start_ms"] is None for row in rows)
    notes = []
    if idle and (options.duration_filter or -1) >= 0:
        notes.append(f"{idle} of these have no known start, and pass every --duration-filter, as on a broker")
    return Answer(
        ("transactional_id", "coordinator", "coordinator_partition", "producer_id", "producer_epoch", "state", "partitions"),
        rows,
        kafka=lambda: kafka_table.list_table(
            _by(rows, "transactional_id", run.grouped("coordinator_states", ("transactional_id",), 'min("offset")'))
        ),
        notes=notes,
    )


def describe(run: Run, options: Namespace) -> Answer:
    """One transactional id. Raises UsageError if no captured coordinator knows it."""
    rows = _ids(run, ("transactional_id", "=", options.transactional_id))
    if not rows:
        raise UsageError(f"no captured coordinator has the transactional id {options.transactional_id!r} (any more)")
    row = rows[0]
    start = row["transaction_start_ms"]
    row["duration_ms"] = None if start is None else run.as_of_ms - start
    return Answer(
        ("coordinator", *_ID_COLUMNS[:7], "duration_ms", "partitions"),
        rows[:1],
        kafka=lambda: kafka_table.describe_table(row, run.as_of_ms),
    )


def _ids(run: Run, *which: Filter) -> list[Row]:
    where: list[Filter] = [("state", "IS NOT", None), *which]
    rows = run.rows("transactional_ids", _ID_COLUMNS, where, order='"coordinator_partition", "transactional_id"')
    led = run.rows("coverage", ("partition", "broker"), [("topic", "=", TRANSACTION_STATE_TOPIC), ("is_leader", "=", True)])
    leaders = {row["partition"]: _broker_id(row["broker"]) for row in led}
    for row in rows:
        row["coordinator"] = leaders.get(row["coordinator_partition"])
        row["transaction_start_ms"] = ms(row["transaction_start"])
        row["partitions"] = row["partitions"] or []
    return rows


def _broker_id(broker: str | None) -> int | None:
    return int(broker) if broker is not None and broker.isdecimal() else None


def describe_producers(run: Run, options: Namespace) -> Answer:
    """The producers of a partition. Raises UsageError if no copy of it was read."""
    here = [("topic", "=", options.topic), ("partition", "=", options.partition)]
    rows = run.rows("producer_states", (*_PRODUCER_COLUMNS, "last_timestamp_ms"), here)
    if not rows and not run.number("coverage", "count(*)", [*here, ("status", "<>", "MISSING")]):
        raise UsageError(f"no copy of {options.topic}-{options.partition} was audited in this run")
    for row in rows:
        row["last_timestamp_ms"] = _written_ms(row)
    rows.sort(key=lambda row: int(row["producer_id"]))

    def printed() -> str:
        firsts = run.grouped("record_batches", ("producer_id",), 'min("base_offset")', here)
        return kafka_table.describe_producers_table(_by(rows, "producer_id", firsts))

    return Answer(_PRODUCER_COLUMNS, rows, kafka=printed)


def _by(rows: list[Row], key: str, firsts: Mapping[tuple[Any, ...], int]) -> list[Row]:
    """The rows in the order in which brokers first saw them: Kafka's hash tables keep that order within a bucket."""
    return sorted(rows, key=lambda row: firsts.get((row[key],), 1 << 62))


def find_hanging_transactions(run: Run, options: Namespace) -> Answer:
    """What the live `find-hanging` would have printed at the instant of the run. Raises UsageError as the tool does."""
    scope = SearchScope(options.topic, options.partition, options.broker_id)
    replicas, notes = _replicas(run), []
    brokers = frozenset().union(*replicas.values()) if replicas else frozenset()
    if options.broker_id is not None and options.broker_id not in brokers:
        notes.append(f"no copy of broker {options.broker_id} was audited, only of {sorted(brokers)}")
    searched = [place for place, copies in replicas.items() if scope.covers(*place, copies)]
    rows = [
        row
        for row in run.rows(
            "open_transactions", (*_OPEN_COLUMNS, "last_timestamp_ms"), order='"topic", "partition", "start_offset"'
        )
        if scope.covers(row["topic"], row["partition"], replicas.get((row["topic"], row["partition"]), frozenset()))
    ]
    for row in rows:
        row["last_timestamp_ms"] = _written_ms(row)
    limit_ms = _limit_ms(run, options.max_transaction_timeout)
    answers = _answers(run, rows, limit_ms)
    old = {row["producer_id"] for row in rows if is_candidate(row["last_timestamp_ms"], run.as_of_ms, limit_ms)}
    undecided = sum(answer is None for answer in answers)
    if undecided:
        notes.append(f"{undecided} open transactions cannot be decided: coordinator partitions are missing (txn-audit coverage)")
    found = [row for row, answer in zip(rows, answers, strict=True) if answer]
    for row in found:
        row["duration_minutes"] = (
            None if row["last_timestamp"] is None else duration_minutes(row["last_timestamp_ms"], run.as_of_ms)
        )

    def printed() -> str:
        known = run.grouped("producer_states", ("topic", "partition"), "count(*)")
        producers = {place: known.get(place, 0) for place in searched}
        return kafka_table.find_hanging_table(found, run.as_of_ms, producers=producers, candidates=len(old))

    columns = (*_OPEN_COLUMNS[:7], "duration_minutes", "transactional_id", "verdict", "reason")
    return Answer(columns, found, kafka=printed, notes=notes)


def _written_ms(row: Row) -> int | None:
    """The time of the last write as in the log. Tables of older versions contain only valid times."""
    raw_ms: int | None = row["last_timestamp_ms"]
    return ms(row["last_timestamp"]) if raw_ms is None else raw_ms


def _replicas(run: Run) -> dict[tuple[str, int], frozenset[int]]:
    """The brokers from which a copy of each partition was captured."""
    found: dict[tuple[str, int], frozenset[int]] = {}
    for row in run.rows("coverage", ("topic", "partition", "broker"), [("status", "<>", "MISSING")]):
        broker = _broker_id(row["broker"])
        place = row["topic"], row["partition"]
        found[place] = found.get(place, frozenset()) | ({broker} if broker is not None else set())
    return found


def _limit_ms(run: Run, minutes: int | None) -> int:
    return int(run.settings["max_transaction_timeout_ms"]) if minutes is None else minutes * MS_PER_MINUTE


def _answers(run: Run, rows: list[Row], asked_ms: int) -> list[bool | None]:
    """The answer of the audit if it has one; for transactions too young for the audit, the steps of the tool over the tables."""
    audited_ms = _limit_ms(run, None)
    if asked_ms >= audited_ms:
        return [row["kafka_find_hanging"] and is_candidate(row["last_timestamp_ms"], run.as_of_ms, asked_ms) for row in rows]
    asked_for = {row["producer_id"] for row in rows}
    known = {row["producer_id"]: row["partitions"] for row in _ids(run, ("producer_id", "IN", asked_for))} if rows else {}
    are_complete = _are_coordinators_complete(run)
    return [
        row["kafka_find_hanging"]
        if is_candidate(row["last_timestamp_ms"], run.as_of_ms, audited_ms)
        else find_hanging(
            is_candidate=is_candidate(row["last_timestamp_ms"], run.as_of_ms, asked_ms),
            is_id_known=row["producer_id"] in known,
            is_partition_listed={"topic": row["topic"], "partition": row["partition"]} in known.get(row["producer_id"], []),
            are_coordinators_complete=are_complete,
        )
        for row in rows
    ]


def _are_coordinators_complete(run: Run) -> bool:
    """Whether every coordinator partition has a copy that proves which ids it does not contain."""
    columns = ("partition", "status", "is_decoded", "damaged_offset", "source")
    copies: dict[int, list[Row]] = {}
    for row in run.rows("coverage", columns, [("topic", "=", TRANSACTION_STATE_TOPIC)]):
        copies.setdefault(row["partition"], []).append(row)
    return bool(copies) and all(map(shows_absence, copies.values()))
