"""Findings about the producers of a partition: suspect batches, newest spans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from txnlib.core.finding import Finding, Severity, Topic
from txnlib.core.findings.metadata_findings import highest_producer_id, never_allocated
from txnlib.core.findings.rule import INVALID_TIMESTAMP, FindingRow, Rule, as_json, found, is_unshown, unshown
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.producer_state import ProducerState, append, append_origin
from txnlib.core.kafka.record_batch import ControlType, EndTxnMarker, RecordBatch
from txnlib.core.rows import OfProducer, OnPartition, row_of
from txnlib.core.sql_text import IS_NEWEST, is_shown

TIMESTAMP_IN_FUTURE: Final = Finding(
    name="TIMESTAMP_IN_FUTURE",
    severity=Severity.WARNING,
    topic=Topic.BATCHES,
    meaning=(
        "The last write of a producer is stamped later than the instant of the audit: the client's clock is wrong,"
        " and so are ages derived from it."
    ),
    advice=(
        "the client's clock is wrong. Ages derived from it are wrong too, and time-based retention keeps the"
        " segments too long."
    ),
)
CORRUPT_MESSAGE: Final = Finding(
    name="CORRUPT_MESSAGE",
    severity=Severity.ERROR,
    topic=Topic.BATCHES,
    meaning=(
        "The CRC of a batch does not match, so its header cannot be trusted. A verdict depends on the batch, or the"
        " batch is odd."
    ),
    advice=(
        "a batch of an open transaction is damaged on that disk. Copy another replica; `quarantine` has the position."
    ),
)


#: Maximum number of suspect batches per producer and partition that are kept for the core; the others are counted. A
#: misbehaving producer must not fill a row.
SUSPECTS_KEPT: Final = 100


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """`suspect.batch` of `producer_spans`."""

    base_offset: int
    last_offset: int
    producer_epoch: int | None
    base_sequence: int | None
    max_timestamp_ms: int | None
    is_transactional: bool
    is_marker: bool
    control_type: str | None
    coordinator_epoch: int | None


@dataclass(frozen=True, slots=True)
class Suspect:
    """`suspect` of `producer_spans`: a batch that a native predicate did not clear, and the state before it."""

    before: ProducerState
    batch: StoredBatch


@dataclass(frozen=True, slots=True)
class NewestSpan:
    """The newest span of a producer, from `producer_spans`."""

    first_offset: int | None
    last_offset: int | None
    is_start_exact: bool | None
    marker_offset: int | None
    marker_ms: int | None
    first_timestamp_ms: int | None
    is_broker_clock: bool | None
    state: ProducerState

    @property
    def is_open(self) -> bool:
        return self.first_offset is not None and self.marker_offset is None


@dataclass(frozen=True, slots=True)
class OddProducer(OfProducer):
    """A producer on a partition with suspect batches, or with a newest span that may be odd."""

    suspects: tuple[Suspect, ...]
    #: Number of suspect batches, also those that are not stored.
    suspects_count: int | None
    newest: NewestSpan | None


def of_producers(
    producers: Iterable[OddProducer],
    *,
    as_of_ms: int,
    clock_tolerance_ms: int,
    producer_id_expiration_ms: int,
    whole_metadata_ms: int | None,
    highest: int | None,
) -> Iterator[FindingRow]:
    """The findings about each producer.

    `highest`: as `core.findings.metadata_findings.highest_producer_id` gives it.
    """
    for producer in producers:
        for suspect in producer.suspects:
            yield from _of_suspect(producer, suspect, producer_id_expiration_ms)
        if (span := producer.newest) is not None:
            yield from _of_times(producer, span, as_of_ms + clock_tolerance_ms)
            if highest is not None:
                yield from _of_producer_id(producer, span, highest, whole_metadata_ms)


def _of_suspect(producer: OddProducer, suspect: Suspect, producer_id_expiration_ms: int) -> Iterator[FindingRow]:
    unkept = (producer.suspects_count or 0) - SUSPECTS_KEPT
    more = f"; and {unkept} more batches of the same producer" if unkept > 0 else ""
    appended = append(
        suspect.before,
        _batch(suspect.batch, producer.producer_id),
        origin=append_origin(producer.topic),
        producer_id_expiration_ms=producer_id_expiration_ms,
    )
    shown = f"batch {as_json(suspect.batch)} after {as_json(suspect.before)}{more}"
    yield from (found(finding, shown, producer, offset=suspect.batch.base_offset) for finding in appended.findings)


def _batch(stored: StoredBatch, producer_id: int) -> RecordBatch:
    control_type = None if stored.control_type is None else ControlType[stored.control_type]
    return row_of(
        RecordBatch,
        stored,
        producer_id=producer_id,
        max_timestamp=stored.max_timestamp_ms,
        is_control=stored.is_marker,
        marker=EndTxnMarker(control_type, stored.coordinator_epoch) if stored.is_marker else None,
    )


def _of_times(producer: OddProducer, span: NewestSpan, latest_ms: int) -> Iterator[FindingRow]:
    state, last_ms = span.state, clock_ms(span.state.last_timestamp)
    if span.is_open and last_ms is not None and last_ms > latest_ms:
        yield found(TIMESTAMP_IN_FUTURE, f"last write stamped {last_ms} ms", producer, offset=span.last_offset)
    is_begun = state.current_txn_first_offset is not None
    if is_unshown(state.last_timestamp) or (is_begun and is_unshown(span.first_timestamp_ms)):
        times = {"last write": state.last_timestamp, "first write": span.first_timestamp_ms}
        offsets = (span.last_offset, state.last_offset, span.marker_offset)
        known = next((offset for offset in offsets if offset is not None), None)
        yield found(INVALID_TIMESTAMP, unshown(times), producer, offset=known)


def _of_producer_id(
    producer: OddProducer, span: NewestSpan, highest: int, whole_metadata_ms: int | None
) -> Iterator[FindingRow]:
    first = span.marker_offset if span.first_offset is None else span.first_offset
    stamped_ms = clock_ms(span.first_timestamp_ms) if span.is_broker_clock else None
    stamped_ms = clock_ms(span.marker_ms) if stamped_ms is None else stamped_ms
    # Only what is older than the end of the metadata log can contradict it.
    is_dated = stamped_ms is not None and whole_metadata_ms is not None and stamped_ms <= whole_metadata_ms
    yield from never_allocated(producer, highest, is_dated=is_dated, offset=first)


#: The producers with suspect batches, or whose newest span may be odd. Rows that cannot matter are cleared.
ODD_PRODUCERS: Final = Rule(
    of="producer_spans",
    query=f"""
    WITH judged AS (
      SELECT *, {IS_NEWEST} AS is_last,
        (first_offset IS NOT NULL AND marker_offset IS NULL
          AND state.last_timestamp > :as_of_ms + :clock_tolerance_ms)
          OR (NOT {is_shown("state.last_timestamp")})
          OR (state.current_txn_first_offset IS NOT NULL AND NOT {is_shown("first_timestamp_ms")})
          OR (producer_id > :highest) AS may_be_odd
      FROM {{producer_spans}}
    )
    SELECT topic, partition, producer_id, collect_list(suspect) AS suspects,
      max(suspects_count) FILTER (WHERE is_last) AS suspects_count,
      first(struct(first_offset, last_offset, is_start_exact, marker_offset, marker_ms, first_timestamp_ms,
        is_broker_clock, state)) FILTER (WHERE is_last AND may_be_odd) AS newest
    FROM judged
    WHERE suspect IS NOT NULL OR (is_last AND (may_be_odd OR suspects_count > {SUSPECTS_KEPT}))
    GROUP BY topic, partition, producer_id
    """,
    judge=of_producers,
    given={"highest": highest_producer_id},
)


@dataclass(frozen=True, slots=True)
class CorruptBatch(OnPartition):
    """A row of `checked_batches` whose CRC does not match."""

    path: str | None
    position: int | None
    size: int | None
    base_offset: int | None
    producer_id: int | None


def of_corrupt_batches(batches: Iterable[CorruptBatch]) -> Iterator[FindingRow]:
    """A finding for each batch."""
    for each in batches:
        shown = f"{each.path} at byte {each.position}: {each.size} bytes"
        yield found(CORRUPT_MESSAGE, shown, each, offset=each.base_offset)


CORRUPT_BATCHES: Final = Rule(
    of="checked_batches",
    query="""
    SELECT DISTINCT topic, partition, path, position, size, base_offset, producer_id
    FROM {checked_batches} WHERE NOT is_crc_valid
    """,
    judge=of_corrupt_batches,
)
