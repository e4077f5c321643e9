"""The story of one open transaction: its records in both logs, and what its verdict leans on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from txnlib.ask.events import RECORD, Numbered, number_of
from txnlib.ask.partition_events import Stamp, gone_batch, is_stamped, story_events
from txnlib.ask.pending_commits import put_commits
from txnlib.ask.picture import image
from txnlib.ask.queries import Filter, Row, StoredRun, column_names, ms
from txnlib.ask.story import Story, leader_changes, matched
from txnlib.ask.subject import check_captured, equal, holders_of
from txnlib.ask.words import named
from txnlib.core.batch_runs import single_batches
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.schema import shown
from txnlib.core.text import dump_printer
from txnlib.errors import MissingTableError, UsageError

#: Number of earlier transactions of the producer on the partition to show, and of their batches.
EARLIER_TRANSACTIONS: Final = 2
EARLIER_BATCHES: Final = 200
#: Number of batches of the open transaction to show, before folding. The rest is counted.
OPEN_BATCHES: Final = 5_000
#: Number of coordinator records to show up to the start, after it, and at the end of the log.
RECORDS_BEFORE, RECORDS_AFTER, RECORDS_LAST = 8, 6, 2
#: Most places where the transaction is open.
OTHERS: Final = 1_000
#: Number of copies of a partition to show.
COPIES: Final = 5
#: Most markers of the partition among which a batch is placed.
MARKERS: Final = 50_000

#: Columns of a batch from which an event is made; and columns that are needed to take single batches out of a run.
_BATCH: Final = column_names(
    "base_offset last_offset records_count producer_id producer_epoch base_sequence last_sequence"
    " partition_leader_epoch is_transactional is_control control_type coordinator_epoch timestamp_type max_timestamp_ms"
    " delete_horizon_ms position size magic compression_type crc"
)
_OF_RUNS: Final = column_names(
    "base_offset last_offset offset_gap base_sequence position first_timestamp_ms run_batches"
)
#: Number of batches in rows.
_COUNT: Final = 'sum(coalesce("batches_count", 1))'
_COPY: Final = ("topic", "partition", "source", "role", "ends", "known_until", "leader", "is_judged")
_PLACE: Final = ("topic", "partition", "start_offset")
_LOGGED: Final = column_names(
    "offset timestamp_ms transactional_id is_tombstone value_version producer_id previous_producer_id next_producer_id"
    " producer_epoch next_producer_epoch last_producer_epoch transaction_timeout_ms state partitions last_update_ms"
    " start_ms client_transaction_version"
)


@dataclass(frozen=True, slots=True, repr=False)
class Explained(Story):
    """The verdict on an open transaction, and the records that support it. A notebook shows its picture, too."""

    #: The row of open_transactions; instants as epoch ms.
    verdict: Row
    #: What is left out, in words.
    left_out: Sequence[str] = ()
    #: The evidence, with the lines that Kafka's dump tool prints for it.
    evidence: Sequence[Row] = ()
    #: Rows of coverage that the verdict depends on; instants as epoch ms.
    copies: Sequence[Row] = ()
    #: Where else the transaction is open: topic, partition and start_offset.
    others: Sequence[Row] = ()
    #: The folder of the tables, or the URI of one.
    tables: str = ""
    #: The row of `partitions`, if another transaction holds the partition.
    holder: Row | None = None

    def _repr_html_(self) -> str:
        return image(self.events, self.as_of_ms, self.verdict) + Story._repr_html_(self)


def explain(run: StoredRun, topic: str, partition: int, start_offset: int) -> Explained:
    """The story of an open transaction, from the tables of a run. Raises UsageError if no transaction is open there."""
    logs = _logs(run, topic, partition, start_offset)
    batches, left_out = logs.batches()
    stamps = logs.stamps(batches)
    records = logs.records(_start_ms(start_offset, batches, stamps))
    matches = logs.matches(batches)
    waits = logs.verdict["holds"] is False
    put_commits(run, [logs.verdict])
    return Explained(
        run.cluster,
        run.run_id,
        run.as_of_ms,
        story_events(logs.verdict, batches, stamps, records, logs.changes(batches, records), matches),
        logs.verdict,
        left_out=[*left_out, *logs.earlier(records)],
        evidence=[{**each, "printed": logs.printed(each)} for each in logs.verdict["evidence"] or ()],
        copies=logs.copies(),
        others=logs.others(),
        tables=run.tables.root,
        holder=next(iter(holders_of(run, [logs.verdict]).values()), None) if waits else None,
    )


# ---- What is read of both logs


@dataclass(frozen=True, slots=True)
class _Logs:
    """Both logs around one open transaction."""

    run: StoredRun
    #: The row of open_transactions; instants as epoch ms.
    verdict: Row
    #: The partition, and the copy of it that was judged, as filters.
    here: Sequence[Filter]
    copy: Sequence[Filter]

    @property
    def own(self) -> list[Filter]:
        """The batches of the producer."""
        return [*self.copy, ("producer_id", "=", self.verdict["producer_id"])]

    @property
    def own_records(self) -> list[Filter]:
        """The records of its coordinator."""
        return [(name, "=", self.verdict[name]) for name in ("transactional_id", "coordinator_partition")]

    def _singles(self, where: Sequence[Filter], *, order: str = "", limit: int | None = None) -> list[Row]:
        """Single batches out of rows of record_batches, which may be runs of batches, by offset."""
        columns = list(dict.fromkeys((*_BATCH, *_OF_RUNS)))
        rows = self.run.rows("record_batches", columns, where, order=order, limit=limit)
        singles = ({name: batch[name] for name in _BATCH} for row in rows for batch in single_batches(row))
        return sorted(singles, key=lambda batch: batch["base_offset"])

    def batches(self) -> tuple[list[Row], list[str]]:
        """The batches of the producer from its last transactions on, by offset, and how many are left out."""
        run, own, start, producer = self.run, self.own, self.verdict["start_offset"], self.verdict["producer_id"]
        before: list[Filter] = [*self.here, ("producer_id", "=", producer), ("first_offset", "<", start)]
        newest = '"first_offset" DESC'
        earlier = run.rows(
            "partition_transactions", ("first_offset",), before, order=newest, limit=EARLIER_TRANSACTIONS
        )
        since: list[Filter] = [("base_offset", ">=", earlier[-1]["first_offset"])] if earlier else []
        # A run of batches does not extend over the start of a transaction of its producer.
        is_before: Filter = ("base_offset", "<", start)
        last = self._singles([*own, *since, is_before], order='"base_offset" DESC', limit=EARLIER_BATCHES + 1)
        shown = [batch for batch in last if batch["base_offset"] < start][-EARLIER_BATCHES:]
        first = self._singles([*own, ("last_offset", ">=", start)], order='"base_offset"', limit=OPEN_BATCHES + 1)
        opened = [batch for batch in first if batch["base_offset"] >= start][:OPEN_BATCHES]
        counts = {"earlier": (run.number("record_batches", _COUNT, [*own, is_before]) or 0) - len(shown)}
        if len(opened) == OPEN_BATCHES:
            counts["later"] = (
                run.number("record_batches", _COUNT, [*own, ("base_offset", ">=", start)]) or 0
            ) - OPEN_BATCHES
        left_out = [
            f"{n} {when} {'batch' if n == 1 else 'batches'} of producer {producer} here"
            for when, n in counts.items()
            if n
        ]
        is_gone = not any(batch["base_offset"] == start for batch in opened)
        return [*shown, *([gone_batch(self.verdict)] if is_gone else []), *opened], left_out

    def stamps(self, batches: Sequence[Row]) -> list[Stamp]:
        """The offset and time of each marker of the partition around the batches. The first and the last item are the
        newest time before the batches and the oldest after them."""
        if all(is_stamped(batch) for batch in batches):
            return []
        first, last = min(b["base_offset"] for b in batches), max(b["last_offset"] for b in batches)
        between = [*self.here, ("marker_offset", ">=", first), ("marker_offset", "<=", last)]
        columns = ("marker_offset", "marker_ms")
        rows = self.run.rows("producer_spans", columns, between, order='"marker_offset"', limit=MARKERS)
        before = self.run.number("producer_spans", 'max("marker_ms")', [*self.here, ("marker_offset", "<", first)])
        after = self.run.number("producer_spans", 'min("marker_ms")', [*self.here, ("marker_offset", ">", last)])
        stamps = [(-1, before), *((row["marker_offset"], row["marker_ms"]) for row in rows), (last + 1, after)]
        return [(offset, at) for offset, at in stamps if at is not None]

    def matches(self, batches: Sequence[Row]) -> dict[int, Numbered]:
        """Offset of a marker, or start offset of the open transaction -> what identifies its transaction."""
        ends = [(None, batch["base_offset"]) for batch in batches if batch["is_control"]]
        place = {name: self.verdict[name] for name in ("topic", "partition", "producer_id")}
        spans = [
            place | {"first_offset": first, "marker_offset": marker}
            for first, marker in (*ends, (self.verdict["start_offset"], None))
        ]
        return {row["marker_offset"] or row["first_offset"]: number_of(row) for row in matched(self.run, spans)}

    def records(self, start_ms: int | None) -> list[Row]:
        """The coordinator's records of the transactional id around the start, and its last ones, by offset."""
        if self.verdict["transactional_id"] is None:
            return []

        def read(*where: Filter, order: str = '"offset" DESC', limit: int) -> list[Row]:
            return self.run.rows("coordinator_states", RECORD, [*self.own_records, *where], order=order, limit=limit)

        newest = read(limit=RECORDS_LAST)
        chosen: list[Row] = []
        if start_ms is not None:
            chosen = read(("timestamp_ms", "<=", start_ms), limit=RECORDS_BEFORE)
            chosen += read(("timestamp_ms", ">", start_ms), order='"offset"', limit=RECORDS_AFTER)
        if not chosen:  # no broker's clock gives the start, or the records have no times, as from a console consumer
            chosen = read(limit=RECORDS_BEFORE + RECORDS_AFTER)
        near = max((row["offset"] for row in chosen), default=0)
        if newest and (first_of_last := newest[-1])["offset"] > near:
            gap: list[Filter] = [*self.own_records, ("offset", ">", near), ("offset", "<", first_of_last["offset"])]
            first_of_last["left_out"] = self.run.number("coordinator_states", "count(*)", gap)
        return sorted({row["offset"]: row for row in [*chosen, *newest]}.values(), key=lambda row: row["offset"])

    def earlier(self, records: Sequence[Row]) -> list[str]:
        """How many records are left out before the first one shown."""
        before: list[Filter] = [*self.own_records, ("offset", "<", records[0]["offset"])] if records else []
        number = self.run.number("coordinator_states", "count(*)", before) if records else 0
        return [f"{number} earlier records of {self.verdict['transactional_id']}"] if number else []

    def changes(self, batches: Sequence[Row], records: Sequence[Row]) -> list[Row]:
        """The leader changes of the partition and of the coordinator's, since the first broker-stamped record of the
        story."""
        stamped = [batch["max_timestamp_ms"] for batch in batches if is_stamped(batch)]
        times = [clock_ms(ms) for ms in (*stamped, *(record["timestamp_ms"] for record in records))]
        since_ms = min((ms for ms in times if ms is not None), default=None)
        places = {(self.verdict["topic"], self.verdict["partition"])}
        if self.verdict["coordinator_partition"] is not None:
            places.add((TRANSACTION_STATE_TOPIC, self.verdict["coordinator_partition"]))
        return leader_changes(self.run, places, since_ms)

    def copies(self) -> list[Row]:
        """The copies that the verdict depends on: those of the partition and of its coordinator partition. If the owner
        is unknown, those of the coordinator partitions about which the least is known."""
        of_coordinator: list[Filter] = [("topic", "=", TRANSACTION_STATE_TOPIC)]
        if self.verdict["coordinator_partition"] is not None:
            of_coordinator.append(("partition", "=", self.verdict["coordinator_partition"]))
        copies = self.run.rows("coverage", _COPY, self.here, order='"is_judged" DESC, "source"', limit=COPIES)
        order = '"known_until" NULLS FIRST, "partition", "source"'
        copies += self.run.rows("coverage", _COPY, of_coordinator, order=order, limit=COPIES)
        return [row | {"known_until": ms(row["known_until"])} for row in copies]

    def others(self) -> list[Row]:
        """Where else the transaction is open."""
        same = equal(**{name: self.verdict[name] for name in ("producer_id", "transactional_id")})
        found = self.run.rows(
            "open_transactions", _PLACE, same, order='"topic", "partition", "start_offset"', limit=OTHERS
        )
        own = {name: self.verdict[name] for name in _PLACE}
        return [row for row in found if row != own]

    def printed(self, evidence: Row) -> list[str]:
        """A record as the dump tool prints it, or as stored with the verdict if it is not in the tables."""
        try:
            if (
                evidence["topic"] == TRANSACTION_STATE_TOPIC
                and evidence["partition"] == self.verdict["coordinator_partition"]
            ):
                at: list[Filter] = [(name, "=", evidence[name]) for name in ("topic", "partition", "offset")]
                at.append(("transactional_id", "=", self.verdict["transactional_id"]))
                newest = '"value_version" DESC NULLS LAST'
                records = self.run.rows("transaction_log", _LOGGED, at, order=newest, limit=1)
                return [dump_printer.coordinator_line(row) for row in records] or [evidence["record"]]
            at_offset = [("last_offset", ">=", evidence["offset"]), ("base_offset", "<=", evidence["offset"])]
            near = self._singles([*self.own, *at_offset])
        except MissingTableError:
            return [evidence["record"]]
        batch = next((each for each in near if each["base_offset"] == evidence["offset"]), None)
        if batch is None:
            return [evidence["record"]]
        is_marker = batch["is_control"] and batch["control_type"] is not None
        return [dump_printer.batch_line(batch), *([dump_printer.marker_line(batch)] if is_marker else [])]


def _logs(run: StoredRun, topic: str, partition: int, start_offset: int) -> _Logs:
    here: list[Filter] = [("topic", "=", topic), ("partition", "=", partition)]
    rows = run.rows("open_transactions", shown("explain"), [*here, ("start_offset", "=", start_offset)])
    if not rows:
        check_captured(run, topic, partition)
        opened = run.rows("open_transactions", ("start_offset", "producer_id"), here, order='"start_offset"', limit=10)
        starts = ", ".join(f"{row['start_offset']} (producer {row['producer_id']})" for row in opened) or "none"
        raise UsageError(
            f"no open transaction starts at offset {start_offset} of {topic}-{partition}; open there: {starts}"
        )
    verdict = named(rows[0]) | {
        name: ms(rows[0][name]) for name in ("last_timestamp", "blocks_since", "ends_by", "first_seen", "safe_from")
    }
    judged = run.rows("coverage", ("source",), [*here, ("is_judged", "=", True)], limit=1)
    return _Logs(run, verdict, here, [*here, *(("source", "=", row["source"]) for row in judged)])


def _start_ms(start_offset: int, batches: Sequence[Row], stamps: Sequence[Stamp]) -> int | None:
    """The earliest time at which the transaction can have begun, by a broker's clock."""
    first = next((batch for batch in batches if batch["base_offset"] >= start_offset), None)
    if first is not None and is_stamped(first):
        return int(first["max_timestamp_ms"])
    return None if first is None else max((at for offset, at in stamps if offset < first["base_offset"]), default=None)
