"""Findings about transactions whose partitions do not show what their coordinator decided: lost markers, and records
that are older than their transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from txnlib.core import sql_text
from txnlib.core.copies import BEGINS_LATE, SHOWS_MARKERS
from txnlib.core.display import precise_time
from txnlib.core.finding import Finding, Severity, Topic
from txnlib.core.findings.rule import FindingRow, OfTransaction, QueryStep, Rule, found
from txnlib.core.instants import clock_ms

MARKER_MISSING: Final = Finding(
    name="MARKER_MISSING",
    severity=Severity.CRITICAL,
    topic=Topic.OUTCOME,
    meaning=(
        "A completed transaction has no marker on one of its partitions, although the log of that partition extends"
        " from before the transaction to after it. The severity is WARNING if the transaction was aborted, because"
        " an abort by hand repairs that."
    ),
    advice=(
        "the coordinator considers the transaction complete, but a partition never got its marker. The records"
        " there are read as part of the producer's next transaction, or block consumers as `HANGING`. Check for an"
        " unclean election of that partition at the time in `completed`."
    ),
)
WRITTEN_BEFORE_TRANSACTION: Final = Finding(
    name="WRITTEN_BEFORE_TRANSACTION",
    severity=Severity.ERROR,
    topic=Topic.OUTCOME,
    meaning=(
        "Records were written before the transaction that ended them: they came too late for the previous one, or"
        " its marker was lost."
    ),
    advice=(
        "records became part of the wrong transaction (KAFKA-14402; or, with UNCLEAN_LEADER_ELECTION, a leader lost"
        " a marker). Compare them with the source of the data, and upgrade to transactions v2."
    ),
)


@dataclass(frozen=True, slots=True)
class UnmarkedPartition(OfTransaction):
    """A partition of a completed transaction that has no marker of it, in a copy that would show the marker."""

    outcome: str
    completed_ms: int


def of_unmarked(partitions: Iterable[UnmarkedPartition]) -> Iterator[FindingRow]:
    """A finding for each such partition."""
    for each in partitions:
        yield found(
            MARKER_MISSING,
            f"Complete{each.outcome.capitalize()} at {precise_time(each.completed_ms)}, no marker",
            each,
            # A manual abort repairs a lost ABORT marker, but destroys data after a lost COMMIT marker.
            severity=Severity.WARNING if each.outcome == "ABORT" else None,
        )


#: Partitions of completed transactions without a marker, in copies that would show it: no hole, damage or snapshot
#: hides it, and the copy was taken later. If the oldest marker of the log is younger, the topic may have been deleted
#: and created again. Where the partition's clock is ahead of the coordinator's, the transaction completed later than
#: its records say.
UNMARKED_PARTITIONS: Final = Rule(
    of="transactions",
    query=f"""
    WITH whole AS (
      SELECT topic, partition, unix_millis(known_until) AS known_until_ms
      FROM {{coverage}} WHERE is_judged AND {SHOWS_MARKERS} AND NOT {BEGINS_LATE}
    ), marked AS (
      SELECT topic, partition, min({sql_text.clock_ms("marker_ms")}) AS oldest_ms
      FROM {{producer_spans}} WHERE marker_offset IS NOT NULL GROUP BY topic, partition
    )
    SELECT /*+ BROADCAST(whole) */ transactional_id, transaction_number, producer_id, outcome,
      unix_millis(completed) AS completed_ms, topic, partition
    FROM (
      SELECT transactional_id, transaction_number, producer_id, outcome, completed, start, inline(markers)
      FROM {{transactions}} WHERE completed IS NOT NULL AND start IS NOT NULL
    )
    JOIN whole USING (topic, partition)
    JOIN marked USING (topic, partition)
    WHERE marker_offset IS NULL AND NOT is_followed
      AND known_until_ms > unix_millis(completed) + greatest(clock_offset_ms, 0) + clocks_differ_ms
      AND oldest_ms < unix_millis(start) + least(clock_offset_ms, 0)
    """,
    judge=of_unmarked,
)


@dataclass(frozen=True, slots=True)
class EarlyWrite(OfTransaction):
    """Records of a transaction on a partition whose first batch may be older than the transaction."""

    first_offset: int
    first_timestamp_ms: int
    is_broker_clock: bool | None
    #: The oldest time of any marker between the first batch and the marker that ended it.
    stamp_ms: int | None
    began_ms: int
    #: When the transaction began, converted to the partition's clock as far as the two clocks were compared.
    start_ms: int


def of_early_writes(writes: Iterable[EarlyWrite]) -> Iterator[FindingRow]:
    """The finding about records that are older, by a broker's clock, than the transaction that ended them.

    If a marker after the first batch is older than the transaction, the batch is older still.
    """
    for each in writes:
        proof_ms = clock_ms(each.first_timestamp_ms) if each.is_broker_clock else each.stamp_ms
        if proof_ms is not None and proof_ms < each.start_ms:
            began = precise_time(each.began_ms)
            says = f"written before {precise_time(proof_ms)} by the broker's clock; the transaction began at {began}"
            yield found(WRITTEN_BEFORE_TRANSACTION, says, each, offset=each.first_offset)


#: Most early writes to check per partition.
_CHECKED: Final = 100
#: Records whose first batch may be older than the transaction that ended them, with the oldest stamp between the
#: beginning of the records and their marker. A log has many markers and few suspects. `start_ms` is on the partition's
#: clock, as far as the two were compared.
EARLY_WRITES: Final = Rule(
    of="transactions",
    steps=(
        QueryStep(
            "early",
            f"""
            SELECT *
            FROM (
              SELECT *, row_number() OVER (PARTITION BY topic, partition ORDER BY first_offset) AS number
              FROM (
                SELECT *, unix_millis(start) AS began_ms,
                  unix_millis(start) + clock_offset_ms - clocks_differ_ms AS start_ms
                FROM (
                  SELECT transactional_id, transaction_number, producer_id, start, inline(markers)
                  FROM {{transactions}} WHERE start IS NOT NULL
                )
              )
              WHERE first_offset IS NOT NULL AND first_timestamp_ms < start_ms
            )
            WHERE number <= {_CHECKED}
            """,
        ),
    ),
    query=f"""
    WITH stamps AS (
      SELECT topic, partition, {sql_text.clock_ms("marker_ms")} AS stamp_ms, marker_offset AS stamp_offset
      FROM {{producer_spans}} WHERE marker_offset IS NOT NULL
    )
    SELECT *
    FROM {{early}}
    LEFT JOIN (
      SELECT /*+ BROADCAST(early) */ topic, partition, producer_id, first_offset, marker_offset, start_ms,
        min(stamp_ms) AS stamp_ms
      FROM stamps JOIN {{early}} AS early USING (topic, partition)
      WHERE stamp_offset BETWEEN first_offset AND marker_offset
      GROUP BY topic, partition, producer_id, first_offset, marker_offset, start_ms
    ) USING (topic, partition, producer_id, first_offset, marker_offset, start_ms)
    """,
    judge=of_early_writes,
)
