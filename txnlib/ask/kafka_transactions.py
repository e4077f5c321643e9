"""The commands of Kafka's own tool: `list`, `describe`, `describe-producers` and `find-hanging`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.ask import kafka_table
from txnlib.ask.collect_plan import READ, shows_absence
from txnlib.ask.command_output import KAFKA, CommandOutput
from txnlib.ask.own_command import own_command
from txnlib.ask.queries import Filter, Row, StoredRun, ms
from txnlib.ask.subject import equal, known_subject, take_place
from txnlib.ask.words import named
from txnlib.core.display import counted
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.wire import on_disk
from txnlib.core.kafka_commands import MS_PER_MINUTE, SearchScope, duration_minutes, is_candidate, is_printed
from txnlib.core.rows import grouped
from txnlib.core.schema import TABLES, shown
from txnlib.errors import UsageError

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class HangingSearch:
    """The hanging transactions of the searched partitions, and what else decides the order in which Kafka prints
    them."""

    scope: SearchScope
    as_of_ms: int
    #: Rows of open_transactions that the tool would print, each with its duration in minutes.
    hanging: Sequence[Row]
    #: Number of transactions that cannot be decided, because coordinator partitions are missing.
    undecided: int
    #: Brokers from which copies were captured.
    brokers: Collection[int]
    #: Searched partition -> number of its producers, for Kafka's order.
    producers: Mapping[TopicPartition, int]
    #: Number of producers with a transaction that is older than the timeout.
    candidates: int


def hanging_search(
    run: StoredRun, scope: SearchScope, timeout_minutes: int | None = None, *, with_order: bool = False
) -> HangingSearch:
    """The search of `find-hanging` over the captured copies; `with_order`: also what decides Kafka's order.

    `timeout_minutes`: default is the timeout of the audit.
    """
    audited_ms = int(run.settings["max_transaction_timeout_ms"])
    timeout_ms = audited_ms if timeout_minutes is None else timeout_minutes * MS_PER_MINUTE
    replicas = _replicas(run)
    searched = [place for place, brokers in replicas.items() if scope.covers(*place, brokers)]
    opened = [
        row
        for row in run.rows(
            "open_transactions",
            (*shown("find-hanging"), "last_timestamp_ms", "kafka_find_hanging"),
            order='"topic", "partition", "start_offset"',
        )
        if scope.covers(row["topic"], row["partition"], replicas.get((row["topic"], row["partition"]), frozenset()))
    ]
    decisions = _decisions(run, opened, timeout_ms, audited_ms)
    hanging = [named(row) for row, hangs in zip(opened, decisions, strict=True) if hangs]
    for row in hanging:
        has_time = row["last_timestamp"] is not None
        row["duration_minutes"] = duration_minutes(row["last_timestamp_ms"], run.as_of_ms) if has_time else None
    producers = run.grouped("producer_states", ("topic", "partition"), "count(*)") if with_order else {}
    return HangingSearch(
        scope,
        run.as_of_ms,
        hanging,
        undecided=decisions.count(None),
        brokers=frozenset().union(*replicas.values()),
        producers={place: producers.get(place, 0) for place in searched},
        candidates=len(
            {row["producer_id"] for row in opened if is_candidate(row["last_timestamp_ms"], run.as_of_ms, timeout_ms)}
        ),
    )


def _replicas(run: StoredRun) -> dict[TopicPartition, frozenset[int]]:
    """The brokers from which a copy of each partition was captured."""
    replicas: dict[TopicPartition, frozenset[int]] = {}
    for row in run.rows("coverage", ("topic", "partition", "broker"), [("status", "<>", "MISSING")]):
        place, broker = (row["topic"], row["partition"]), broker_id(row["broker"])
        replicas[place] = replicas.get(place, frozenset()) | ({broker} if broker is not None else set())
    return replicas


def _decisions(run: StoredRun, opened: Sequence[Row], timeout_ms: int, audited_ms: int) -> list[bool | None]:
    """For each open transaction, whether the tool would print it; None if that cannot be decided. This is the answer of
    the audit. Transactions too young for the audit get the tool's own steps, over the tables."""
    if timeout_ms >= audited_ms:
        return [
            row["kafka_find_hanging"] and is_candidate(row["last_timestamp_ms"], run.as_of_ms, timeout_ms)
            for row in opened
        ]
    producer_ids = {row["producer_id"] for row in opened}
    owners = rows_of_ids(run, ("producer_id", "IN", producer_ids)) if opened else []
    listed = {row["producer_id"]: row["partitions"] for row in owners}
    are_complete = _are_coordinators_complete(run)
    return [
        row["kafka_find_hanging"]
        if is_candidate(row["last_timestamp_ms"], run.as_of_ms, audited_ms)
        else is_printed(
            is_candidate=is_candidate(row["last_timestamp_ms"], run.as_of_ms, timeout_ms),
            is_id_known=row["producer_id"] in listed,
            is_partition_listed={"topic": row["topic"], "partition": row["partition"]}
            in listed.get(row["producer_id"], []),
            are_coordinators_complete=are_complete,
        )
        for row in opened
    ]


def _are_coordinators_complete(run: StoredRun) -> bool:
    """Whether every coordinator partition has a copy that proves which ids it does not contain."""
    rows = run.rows("coverage", ("partition", *READ), [("topic", "=", TRANSACTION_STATE_TOPIC)])
    copies = grouped(rows, lambda row: row["partition"])
    return bool(copies) and all(map(shows_absence, copies.values()))


# ---- Transactional ids as their coordinators have them: all that pass a filter, or one


_ID_COLUMNS: Final = tuple(name for name in shown("describe") if name in TABLES["transactional_ids"].names)


def transactional_id(run: StoredRun, name: str) -> Row:
    """One transactional id, with its duration up to the instant of the run. Raises UsageError if no coordinator has
    it."""
    rows = rows_of_ids(run, ("transactional_id", "=", name))
    if not rows:
        known = known_subject(run, [name]).get("transactional_id", name)
        if known != name:
            return transactional_id(run, known)
        raise UsageError(f"no captured coordinator has the transactional id {name!r} (any more)")
    start_ms = rows[0]["transaction_start_ms"]
    return {**rows[0], "duration_ms": None if start_ms is None else run.as_of_ms - start_ms}


def rows_of_ids(run: StoredRun, *where: Filter) -> list[Row]:
    """Rows of transactional_ids that have not expired, each with its `coordinator` and `transaction_start_ms`."""
    order = '"coordinator_partition", "transactional_id"'
    rows = run.rows("transactional_ids", _ID_COLUMNS, [("state", "IS NOT", None), *where], order=order)
    led = run.rows(
        "coverage", ("partition", "broker"), [("topic", "=", TRANSACTION_STATE_TOPIC), ("is_leader", "=", True)]
    )
    leaders = {row["partition"]: broker_id(row["broker"]) for row in led}
    for row in rows:
        row["coordinator"] = leaders.get(row["coordinator_partition"])
        row["transaction_start_ms"] = ms(row["transaction_start"])
        row["partitions"] = row["partitions"] or []
    return rows


def broker_id(broker: str | None) -> int | None:
    """The number of a broker; None if a capture names it otherwise."""
    return int(broker) if broker is not None and broker.isdecimal() else None


def runs_longer(start_ms: int | None, now_ms: int, filter_ms: int | None) -> bool:
    """Whether a transaction has been running for longer (KIP-994). True if the limit is negative or not given.

    The broker uses -1 as the start of an id without a transaction, so an id in Empty passes. It ignores the state, so
    an id whose transaction has ended passes by the start of that transaction.
    """
    if filter_ms is None or filter_ms < 0:
        return True
    return now_ms - on_disk(start_ms) > filter_ms


def matches_whole(pattern: str | None, names: Sequence[str]) -> list[bool]:
    """Whether an RE2 expression matches each name from beginning to end (KIP-1152); an empty one matches all.

    Brokers use RE2J, the same language in Java: no look-around, no backreferences, linear time. Python's `re` allows
    both, and interprets some expressions differently. Raises UsageError for an invalid expression.
    """
    if not pattern:
        return [True] * len(names)
    import re2

    quiet = re2.Options()
    quiet.log_errors = False  # otherwise it also prints them
    try:
        expression = re2.compile(pattern, quiet)
    except re2.error as error:
        raise UsageError(
            f"--transactional-id-pattern {pattern}: {error.args[0].decode(errors='replace')[:200]}"
        ) from error
    return [expression.fullmatch(name) is not None for name in names]


# ---- The output of the commands that Kafka's own tool has: `list`, `describe`, `describe-producers` and `find-hanging`


#: Within a bucket, Kafka's hash tables keep the order of first records. This is the position of a row whose first
#: record is unknown.
_LAST: Final = 1 << 62


def find_hanging_output(search: HangingSearch, tables: str = "") -> CommandOutput:
    """`find-hanging`. Notes name a searched broker without copies, and the number of undecided transactions. `tables`:
    the folder of the tables, for the command that a note names."""
    notes = _unknown_broker(search)
    if search.undecided:
        missing = f"coordinator partitions are missing ({own_command(tables, 'coverage')})"
        notes.append(f"{counted(search.undecided, 'open transaction')} could not be judged: {missing}")
    return CommandOutput(
        shown("find-hanging"),
        search.hanging,
        others={
            KAFKA: lambda: kafka_table.find_hanging_table(
                search.hanging, search.as_of_ms, producers=search.producers, candidates=search.candidates
            )
        },
        notes=notes,
    )


def _unknown_broker(search: HangingSearch) -> list[str]:
    """That no copy of the searched broker was audited, if so."""
    broker = search.scope.broker_id
    if broker is None or broker in search.brokers:
        return []
    return [f"no copy of broker {broker} was audited, only of {', '.join(map(str, sorted(search.brokers)))}"]


# ---- The commands


def answer_list(run: StoredRun, options: Namespace) -> CommandOutput:
    """Every transactional id that has not expired and that passes the filters. Raises UsageError for an invalid
    expression.

    A note counts the ids that pass a filter by duration only because their start is unknown, as on a broker.
    """
    least_ms = options.duration_filter
    rows = [row for row in rows_of_ids(run) if runs_longer(row["transaction_start_ms"], run.as_of_ms, least_ms)]
    matching = matches_whole(options.transactional_id_pattern, [row["transactional_id"] for row in rows])
    rows = [row for row, is_match in zip(rows, matching, strict=True) if is_match]
    # The order of Kafka's tool takes a query more.
    first = run.grouped("coordinator_states", ("transactional_id",), 'min("offset")') if options.format == KAFKA else {}
    in_order = sorted(rows, key=lambda row: first.get((row["transactional_id"],), _LAST))
    notes = []
    without_start = sum(row["transaction_start_ms"] is None for row in rows)
    if without_start and least_ms is not None and least_ms > 0:
        notes.append(f"{without_start} of these have no known start, and pass every --duration-filter, as on a broker")
    return CommandOutput(shown("list"), rows, others={KAFKA: lambda: kafka_table.list_table(in_order)}, notes=notes)


def answer_describe(run: StoredRun, options: Namespace) -> CommandOutput:
    """One transactional id. Raises UsageError if no captured coordinator has it."""
    named = options.id if options.transactional_id is None else options.transactional_id
    if named is None or None not in (options.id, options.transactional_id):
        raise UsageError("describe needs one transactional id")
    row = transactional_id(run, named)
    return CommandOutput(
        shown("describe"), [row], others={KAFKA: lambda: kafka_table.describe_table(row, run.as_of_ms)}
    )


def answer_describe_producers(run: StoredRun, options: Namespace) -> CommandOutput:
    """The producers of a partition. Raises UsageError unless one is named."""
    take_place(options)
    if options.topic is None or options.partition is None:
        raise UsageError("describe-producers needs a partition: payments-0, or --topic and --partition")
    here = equal(topic=options.topic, partition=options.partition)
    rows = run.rows("producer_states", (*shown("describe-producers"), "last_timestamp_ms"), here)
    rows.sort(key=lambda row: int(row["producer_id"]))
    first = (
        run.grouped("record_batches", ("producer_id",), 'min("base_offset")', here) if options.format == KAFKA else {}
    )
    in_order = sorted(rows, key=lambda row: first.get((row["producer_id"],), _LAST))
    return CommandOutput(
        shown("describe-producers"), rows, others={KAFKA: lambda: kafka_table.describe_producers_table(in_order)}
    )


def answer_find_hanging(run: StoredRun, options: Namespace) -> CommandOutput:
    """What the live `find-hanging` would have printed at the instant of the run.

    Raises UsageError where the tool does. Output that is not in Kafka's form also raises it for a broker without
    copies, for which the tool prints nothing.
    """
    take_place(options)
    scope = SearchScope(options.topic, options.partition, options.broker_id)
    if options.format == KAFKA:
        scope.check()
    found = hanging_search(run, scope, options.max_transaction_timeout, with_order=options.format == KAFKA)
    if options.format != KAFKA and not found.hanging and (unknown := _unknown_broker(found)):
        raise UsageError(*unknown)
    return find_hanging_output(found, run.tables.root)
