"""The story of one open transaction, and the verdict on it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from txnlib.ask.log_rows import COUNT, batches_between, first_batches, last_batches, leader_changes
from txnlib.ask.rows import Filter, Row, StoredRun, ms
from txnlib.ask.story_steps import ExplainedPlace, Stamps, StoryStep, is_stamped, story_steps
from txnlib.core.batch_runs import RUN_OFFSETS
from txnlib.core.broker_logs import GrepCommand, grep_commands, logs_of_cause
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.text import dump_printer
from txnlib.errors import MissingTableError, UsageError

#: Number of earlier transactions of the producer on the partition to show, and of their batches.
EARLIER_TRANSACTIONS: Final = 2
EARLIER_BATCHES: Final = 200
#: Number of batches of the open transaction to show, before folding. The rest is counted.
OPEN_BATCHES: Final = 5_000
#: Number of coordinator records to show up to the start, after it, and at the end of the log.
RECORDS_BEFORE, RECORDS_AFTER, RECORDS_LAST = 8, 6, 2
#: Number of copies of a partition to show.
COPIES: Final = 5
#: Range of offsets that is first searched for the nearest broker-stamped batches.
NEARBY: Final = 50_000

_VERDICT: Final = (
    "topic",
    "partition",
    "producer_id",
    "producer_epoch",
    "coordinator_epoch",
    "start_offset",
    "last_timestamp",
    "last_timestamp_ms",
    "duration_minutes",
    "transactional_id",
    "coordinator_partition",
    "coordinator_state",
    "verdict",
    "reason",
    "explanation",
    "kafka_find_hanging",
    "causes",
    "evidence",
    "late_by",
    "age_basis",
    "broker_clock_age_ms",
    "safe_to_abort",
    "abort_command",
    "do_not_abort_because",
    "blocked_offsets",
    "blocked_bytes",
    "blocks_since",
    "first_seen",
    "runs_seen",
    "safety",
)
_COPY: Final = ("topic", "partition", "source", "role", "ends", "known_until", "leader", "is_judged")
_BATCH: Final = (
    "base_offset",
    "last_offset",
    "records_count",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "last_sequence",
    "partition_leader_epoch",
    "is_transactional",
    "is_control",
    "control_type",
    "coordinator_epoch",
    "timestamp_type",
    "max_timestamp_ms",
    "delete_horizon_ms",
    "position",
    "size",
    "magic",
    "compression_type",
    "crc",
)
#: Columns of a coordinator record that a story uses.
RECORD: Final = (
    "transactional_id",
    "coordinator_partition",
    "offset",
    "timestamp_ms",
    "is_tombstone",
    "state",
    "transaction_number",
    "producer_id",
    "producer_epoch",
    "partitions",
)
_LOGGED: Final = (
    "offset",
    "timestamp_ms",
    "transactional_id",
    "is_tombstone",
    "value_version",
    "producer_id",
    "previous_producer_id",
    "next_producer_id",
    "producer_epoch",
    "next_producer_epoch",
    "last_producer_epoch",
    "transaction_timeout_ms",
    "state",
    "partitions",
    "last_update_ms",
    "start_ms",
    "client_transaction_version",
)


@dataclass(frozen=True, slots=True)
class Explained:
    """An open transaction, its story, and the records that support its verdict."""

    cluster: str
    run_id: str
    as_of_ms: int
    #: The row of open_transactions; instants as epoch ms.
    verdict: Row
    steps: Sequence[StoryStep]
    #: What is left out, in words.
    left_out: Sequence[str]
    #: The evidence, with the lines that Kafka's dump tool prints for it.
    evidence: Sequence[Row]
    #: Rows of coverage that the verdict depends on; instants as epoch ms.
    copies: Sequence[Row] = ()
    #: Commands that find the most likely cause in the logs of brokers.
    searches: Sequence[GrepCommand] = ()
    #: Why the logs do not show the cause itself.
    not_logged: str | None = None


def explain(run: StoredRun, topic: str, partition: int, start_offset: int) -> Explained:
    """The story of an open transaction, from the tables of a run. Raises UsageError if no transaction is open there."""
    verdict = _verdict(run, topic, partition, start_offset)
    place = ExplainedPlace(verdict["topic"], verdict["partition"], verdict["producer_id"], verdict["start_offset"])
    copy = _copy(run, place)
    batches, left_out = _batches(run, place, copy)
    stamps = _stamps(run, place, copy, batches)
    records = _records(run, verdict, _start_ms(place, batches, stamps))
    left_out += _left_out(run, verdict, records)
    steps = story_steps(place, batches, stamps, records, _changes(run, verdict, batches, records))
    evidence = _printed(run, verdict, copy)
    searches, not_logged = _searches(run, verdict)
    copies = _copies(run, verdict)
    return Explained(run.cluster, run.run_id, run.as_of_ms, verdict, steps, left_out, evidence, copies, searches, not_logged)


#: How people write a partition, and a transaction there: `payments-0`, `payments-0@24`.
_PLACE: Final = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)(?:@(?P<start_offset>\d+))?")
#: Most open transactions among which a name is sought that nobody has.
MOST_NAMES: Final = 1_000


def place_of(run: StoredRun, words: Sequence[str]) -> tuple[str, int, int]:
    """Topic, partition and first offset of an open transaction that is named by these, by its partition, or by an id.

    Of several, the one with the lowest offset, which holds its partition. Raises UsageError if none is open there.
    """
    if len(words) == 3 and words[1].isdecimal() and words[2].isdecimal():
        return words[0], int(words[1]), int(words[2])
    named = "-".join(words)
    wanted: list[list[Filter]] = []
    if (place := _PLACE.fullmatch(named)) is not None:
        here: list[Filter] = [("topic", "=", place["topic"]), ("partition", "=", int(place["partition"]))]
        wanted.append(here if place["start_offset"] is None else [*here, ("start_offset", "=", int(place["start_offset"]))])
    wanted.append([("transactional_id", "=", named)])
    if named.isdecimal():
        wanted.append([("producer_id", "=", int(named))])
    columns = ("topic", "partition", "start_offset")
    for where in wanted:
        if found := run.rows("open_transactions", columns, where, order='"start_offset", "topic", "partition"', limit=1):
            return found[0]["topic"], found[0]["partition"], found[0]["start_offset"]
    raise UsageError(f"nothing is open of {named}{_meant(run, named)}; txn-audit open lists what is")


def _meant(run: StoredRun, named: str) -> str:
    """The open transaction whose name is near."""
    opened = run.rows(
        "open_transactions", ("topic", "partition", "transactional_id"), order='"topic", "partition"', limit=MOST_NAMES
    )
    names = {f"{row['topic']}-{row['partition']}" for row in opened} | {row["transactional_id"] for row in opened} - {None}
    near = get_close_matches(named, sorted(names), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _searches(run: StoredRun, verdict: Row) -> tuple[Sequence[GrepCommand], str | None]:
    """What to search in the logs for the most likely cause, and why they do not show it."""
    likely = next(iter(verdict["causes"] or ()), None)
    logs = None if likely is None else logs_of_cause(likely["cause"], verdict)
    if logs is None:
        return (), None
    return grep_commands(logs, verdict, run.settings.get("kafka_version")), logs.silent_because


def _changes(run: StoredRun, verdict: Row, batches: Sequence[Row], records: Sequence[Row]) -> list[Row]:
    """The leader changes of the partition and of the coordinator's, since the first broker-stamped record of the story."""
    stamped = [batch["max_timestamp_ms"] for batch in batches if is_stamped(batch)]
    times = [clock_ms(ms) for ms in (*stamped, *(record["timestamp_ms"] for record in records))]
    since_ms = min((ms for ms in times if ms is not None), default=None)
    changes = leader_changes(run, verdict["topic"], verdict["partition"], since_ms)
    if verdict["coordinator_partition"] is not None:
        changes += leader_changes(run, TRANSACTION_STATE_TOPIC, verdict["coordinator_partition"], since_ms)
    return changes


def _copies(run: StoredRun, verdict: Row) -> list[Row]:
    """The copies that the verdict depends on: those of the partition and of its coordinator partition. If the owner is unknown,
    those of the coordinator partitions about which the least is known."""
    here: list[Filter] = [("topic", "=", verdict["topic"]), ("partition", "=", verdict["partition"])]
    copies = run.rows("coverage", _COPY, here, order='"is_judged" DESC, "source"', limit=COPIES)
    number = verdict["coordinator_partition"]
    of_coordinator: list[Filter] = [("topic", "=", TRANSACTION_STATE_TOPIC)]
    if number is not None:
        of_coordinator.append(("partition", "=", number))
    copies += run.rows("coverage", _COPY, of_coordinator, order='"known_until" NULLS FIRST, "partition", "source"', limit=COPIES)
    for row in copies:
        row["known_until"] = ms(row["known_until"])
    return copies


def _verdict(run: StoredRun, topic: str, partition: int, start_offset: int) -> Row:
    here: list[Filter] = [("topic", "=", topic), ("partition", "=", partition)]
    rows = run.rows("open_transactions", _VERDICT, [*here, ("start_offset", "=", start_offset)])
    if not rows:
        opened = run.rows("open_transactions", ("start_offset", "producer_id"), here, order='"start_offset"', limit=10)
        starts = ", ".join(f"{row['start_offset']} (producer {row['producer_id']})" for row in opened) or "none"
        raise UsageError(f"no open transaction starts at offset {start_offset} of {topic}-{partition}; open there: {starts}")
    row = rows[0]
    for name in ("last_timestamp", "blocks_since", "first_seen"):
        row[name] = ms(row[name])
    return row


def _copy(run: StoredRun, place: ExplainedPlace) -> list[Filter]:
    """The copy that was judged, as a filter of record_batches."""
    here: list[Filter] = [("topic", "=", place.topic), ("partition", "=", place.partition)]
    judged = run.rows("coverage", ("source",), [*here, ("is_judged", "=", True)], limit=1)
    return [*here, *(("source", "=", row["source"]) for row in judged)]


def _batches(run: StoredRun, place: ExplainedPlace, copy: list[Filter]) -> tuple[list[Row], list[str]]:
    """The batches of the producer from its last transactions on, by offset, and how many are left out."""
    own: list[Filter] = [*copy, ("producer_id", "=", place.producer_id)]
    before: list[Filter] = [*own, ("base_offset", "<", place.start_offset)]
    earlier = run.rows(
        "partition_transactions",
        ("first_offset",),
        [*copy[:2], ("producer_id", "=", place.producer_id), ("first_offset", "<", place.start_offset)],
        order='"first_offset" DESC',
        limit=EARLIER_TRANSACTIONS,
    )
    since: list[Filter] = [("base_offset", ">=", earlier[-1]["first_offset"])] if earlier else []
    # A run of batches does not extend over the start of a transaction of its producer.
    shown = last_batches(run, _BATCH, [*own, *since], place.start_offset, EARLIER_BATCHES)
    opened = [*own, ("base_offset", ">=", place.start_offset)]
    shown_open = first_batches(run, _BATCH, own, place.start_offset, OPEN_BATCHES)
    hidden = (run.number("record_batches", COUNT, before) or 0) - len(shown)
    later = 0
    if len(shown_open) == OPEN_BATCHES:
        later = (run.number("record_batches", COUNT, opened) or 0) - OPEN_BATCHES
    counts = {"earlier": hidden, "later": later}
    left_out = [f"{n} {when} batches of producer {place.producer_id} here" for when, n in counts.items() if n]
    if not shown_open:
        left_out.append("its own batches, which are not in the captured log (any more): only a producer snapshot tells of them")
    return [*shown, *shown_open], left_out


def _stamps(run: StoredRun, place: ExplainedPlace, copy: list[Filter], batches: list[Row]) -> Stamps:
    """The broker-stamped batches around those shown; if there are none nearby, the nearest times beyond."""
    if all(is_stamped(batch) for batch in batches):
        return Stamps()
    low = min(place.start_offset, *(b["base_offset"] for b in batches)) - NEARBY
    high = max(place.start_offset, *(b["last_offset"] for b in batches)) + NEARBY
    is_marker: list[Filter] = [("is_control", "=", True), ("producer_id", "IS NOT", None)]
    is_appended: list[Filter] = [("timestamp_type", "=", "LOG_APPEND_TIME"), ("is_control", "=", False)]
    wanted = ("base_offset", "max_timestamp_ms")
    stamped = [row for kind in (is_marker, is_appended) for row in batches_between(run, wanted, [*copy, *kind], low, high)]
    stamped.sort(key=lambda row: row["base_offset"])

    def beyond(expression: str, side: Filter, first: int, last: int) -> Iterator[int]:
        """The extreme time of the rows on one side, and the times between two offsets, where a run may extend over that side."""
        for kind in (is_marker, is_appended):
            time = run.number("record_batches", expression, [*copy, side, *kind])
            divided = batches_between(run, wanted, [*copy, *kind], first, last)
            yield from (ms for ms in (time, *(batch["max_timestamp_ms"] for batch in divided)) if ms is not None)

    def before() -> int | None:
        return max(beyond("max(max_timestamp_ms)", ("last_offset", "<", low), low - RUN_OFFSETS, low - 1), default=None)

    def after() -> int | None:
        earliest = "min(coalesce(first_timestamp_ms, max_timestamp_ms))"
        return min(beyond(earliest, ("base_offset", ">", high), high + 1, high + RUN_OFFSETS), default=None)

    has_lower = any(row["base_offset"] < min(b["base_offset"] for b in batches) for row in stamped)
    has_upper = any(row["base_offset"] > max(b["last_offset"] for b in batches) for row in stamped)
    return Stamps(
        [row["base_offset"] for row in stamped],
        [row["max_timestamp_ms"] for row in stamped],
        None if has_lower or low <= 0 else before(),
        None if has_upper else after(),
    )


def _start_ms(place: ExplainedPlace, batches: list[Row], stamps: Stamps) -> int | None:
    """The earliest time at which the transaction can have begun, by a broker's clock."""
    for batch in batches:
        if batch["base_offset"] >= place.start_offset:
            if is_stamped(batch):
                return int(batch["max_timestamp_ms"])
            return stamps.around(batch["base_offset"], batch["last_offset"])[0]
    return None


def _records(run: StoredRun, verdict: Row, start_ms: int | None) -> list[Row]:
    """The coordinator's records of the transactional id around the start, and its last ones, by offset."""
    if verdict["transactional_id"] is None:
        return []
    own = _own(verdict)
    newest = run.rows("coordinator_states", RECORD, own, order='"offset" DESC', limit=RECORDS_LAST)
    chosen: list[Row] = []
    if start_ms is not None:
        before, after = [*own, ("timestamp_ms", "<=", start_ms)], [*own, ("timestamp_ms", ">", start_ms)]
        chosen = run.rows("coordinator_states", RECORD, before, order='"offset" DESC', limit=RECORDS_BEFORE)
        chosen += run.rows("coordinator_states", RECORD, after, order='"offset"', limit=RECORDS_AFTER)
    if not chosen:  # no broker's clock gives the start, or the records have no times, as from a console consumer
        chosen = run.rows("coordinator_states", RECORD, own, order='"offset" DESC', limit=RECORDS_BEFORE + RECORDS_AFTER)
    by_offset = sorted({row["offset"]: row for row in [*chosen, *newest]}.values(), key=lambda row: row["offset"])
    near = max((row["offset"] for row in chosen), default=0)
    for row in by_offset:
        row["left_out"] = 0
    if newest and (first_of_last := newest[-1]["offset"]) > near:
        gap: list[Filter] = [*own, ("offset", ">", near), ("offset", "<", first_of_last)]
        next(row for row in by_offset if row["offset"] == first_of_last)["left_out"] = run.number(
            "coordinator_states", "count(*)", gap
        )
    return by_offset


def _own(verdict: Row) -> list[Filter]:
    return [
        ("transactional_id", "=", verdict["transactional_id"]),
        ("coordinator_partition", "=", verdict["coordinator_partition"]),
    ]


def _left_out(run: StoredRun, verdict: Row, records: list[Row]) -> list[str]:
    if not records:
        return []
    earlier = run.number("coordinator_states", "count(*)", [*_own(verdict), ("offset", "<", records[0]["offset"])])
    return [f"{earlier} earlier records of {verdict['transactional_id']}"] if earlier else []


def _printed(run: StoredRun, verdict: Row, copy: list[Filter]) -> list[Row]:
    """The evidence, each record as the dump tool prints it, or as stored with the verdict if the record is not in the tables."""
    return [{**each, "printed": _lines_of(run, each, verdict, copy)} for each in verdict["evidence"] or ()]


def _lines_of(run: StoredRun, evidence: Row, verdict: Row, copy: list[Filter]) -> list[str]:
    try:
        if evidence["topic"] == TRANSACTION_STATE_TOPIC and evidence["partition"] == verdict["coordinator_partition"]:
            where: list[Filter] = [
                ("topic", "=", evidence["topic"]),
                ("partition", "=", evidence["partition"]),
                ("offset", "=", evidence["offset"]),
                ("transactional_id", "=", verdict["transactional_id"]),
            ]
            records = run.rows("transaction_log", _LOGGED, where, order='"value_version" DESC NULLS LAST', limit=1)
            return [dump_printer.coordinator_line(row) for row in records] or [evidence["record"]]
        own: list[Filter] = [*copy, ("producer_id", "=", verdict["producer_id"])]
        batches = batches_between(run, _BATCH, own, evidence["offset"], evidence["offset"])
    except MissingTableError:
        return [evidence["record"]]
    if not batches:
        return [evidence["record"]]
    is_marker = batches[0]["is_control"] and batches[0]["control_type"] is not None
    return [dump_printer.batch_line(batches[0]), *([dump_printer.marker_line(batches[0])] if is_marker else [])]
