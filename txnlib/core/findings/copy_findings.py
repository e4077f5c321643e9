"""Findings about copies of a partition that disagree below their high watermarks.

Ranges of offsets are compared by fingerprint first, and batch by batch only if the fingerprints differ. So copies that
agree cost one pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from txnlib.core.batch_runs import BATCH_HASH, RUN_OFFSETS, single_batches_of
from txnlib.core.copies import LIVING
from txnlib.core.finding import Finding, Severity, Topic
from txnlib.core.findings.rule import FindingRow, QueryStep, Rule, found, known
from txnlib.core.rows import OfProducer, OnPartition
from txnlib.core.sql_text import IS_OPEN

CAPTURE_AGAIN: Final = (
    "abort nothing on the strength of this log. Capture again. If the two still disagree, restart or move the leader,"
    " so that it loads its state from the log, and report the problem to Apache Kafka with both captures."
)
COPIES_DISAGREE: Final = Finding(
    name="COPIES_DISAGREE",
    severity=Severity.ERROR,
    topic=Topic.FILES,
    meaning=(
        "Copies of a partition have different batches at the same offset below their high watermarks: there was an"
        " unclean election, or the files are from different clusters."
    ),
    advice=(
        "there was an unclean election, or the files are from different clusters. Decide which replica is right"
        " before you rely on any other result for the partition."
    ),
)
PRODUCER_SNAPSHOT_DISAGREES: Final = Finding(
    name="PRODUCER_SNAPSHOT_DISAGREES",
    severity=Severity.ERROR,
    topic=Topic.FILES,
    meaning=(
        "A producer snapshot of a copy has a producer with nothing open where the log of that copy shows its"
        " transaction open: the marker was there when the broker took the snapshot, or the two are of different"
        " logs."
    ),
    advice=CAPTURE_AGAIN,
)
OPEN_ON_REPLICA: Final = Finding(
    name="OPEN_ON_REPLICA",
    severity=Severity.WARNING,
    topic=Topic.FILES,
    meaning=(
        "A replica has a transaction open that the log of the leader does not show: retention or compaction removed"
        " its records there, or its marker before the replica read it. `find-hanging --broker-id` of its broker"
        " lists it. If that broker becomes the leader, read_committed consumers stop there."
    ),
    advice=(
        "move the replica to another broker and back (kafka-reassign-partitions.sh): a new replica builds its state"
        " from the log of the leader."
    ),
)


#: Most copies that the evidence shows.
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class CopiedRow:
    """A batch, or a coordinator's record, in one copy: the fields that are compared, as JSON."""

    source: str
    read: str


@dataclass(frozen=True, slots=True)
class DifferingCopies(OnPartition):
    """The first offset of a partition at which its copies have different batches or records."""

    offset: int
    producer_id: int | None
    copies: tuple[CopiedRow, ...]
    #: Number of offsets at which the copies differ.
    count: int


def of_copies(differing: Iterable[DifferingCopies]) -> Iterator[FindingRow]:
    """A finding for each partition whose copies disagree."""
    for each in differing:
        copies = sorted((copy.source, copy.read) for copy in each.copies)
        more = f"; and {each.count - 1} more offsets" if each.count > 1 else ""
        shown = "; ".join(f"{source} {read}" for source, read in copies[:_SHOWN])
        yield found(COPIES_DISAGREE, shown + more, each)


def _first_difference(rows: str, place: tuple[str, ...], compared: tuple[str, ...]) -> QueryStep:
    """The first offset of each partition at which copies differ in one of these columns, with the number of such
    offsets.

    `rows`: a query. `place`: the columns in which copies of one row agree, besides its partition. Not all tools print
    all columns, and NULL is no contradiction.
    """
    key = ", ".join(("topic", "partition", *place))
    # Not every engine orders arrays of structs.
    comparable = [f"to_json({name})" if name == "partitions" else name for name in compared]
    differs = " OR ".join(f"coalesce(min({value}) != max({value}), FALSE)" for value in comparable)
    query = f"""
    WITH copied AS ({rows}), differing AS (SELECT {key} FROM copied GROUP BY {key} HAVING {differs})
    SELECT topic, partition, count, {", ".join(f"place.{name}" for name in place)}
    FROM (
      SELECT topic, partition, count(*) AS count, min(struct({", ".join(place)})) AS place
      FROM differing GROUP BY topic, partition
    )
    """
    return QueryStep("first", query)


def _copies_there(rows: str, place: tuple[str, ...], compared: tuple[str, ...]) -> str:
    """A query for the batch or record that each copy has at the first difference."""
    key = ", ".join(("topic", "partition", *place))
    return f"""
    WITH copied AS ({rows})
    SELECT /*+ BROADCAST(first) */ topic, partition, offset, max(producer_id) AS producer_id, max(count) AS count,
      transform(sort_array(collect_set(struct(source, struct({", ".join(compared)}) AS read))),
        copy -> named_struct('source', copy.source, 'read', to_json(copy.read))) AS copies
    FROM copied JOIN {{first}} AS first USING ({key}) GROUP BY {key}
    """


#: The fields of a batch that compaction does not change, and every tool prints.
_COMPARED: Final = (
    *("last_offset", "producer_id", "producer_epoch", "base_sequence"),
    *("is_transactional", "is_control", "partition_leader_epoch", "control_type"),
)
_COPY: Final = ("topic", "partition", "source")
_OF_SEVERAL: Final = single_batches_of(
    """(
      SELECT /*+ BROADCAST(several) */ *
      FROM {record_batches} JOIN {several} AS several USING (topic, partition, source)
    )""",
    # The batches of a run are not all stable if the high watermark is above its beginning and not above its end.
    "base_offset < high_watermark AND last_offset >= high_watermark",
    (
        *_COPY,
        "base_offset",
        *_COMPARED,
        "batches_count",
        "batches_hash",
        "run_batches",
        "high_watermark",
        "overlap_offset",
    ),
)
#: The batches of these copies below the high watermark of their own copy, if that is known: batches above it may still
#: be truncated.
_STABLE: Final = f"""
SELECT {", ".join((*_COPY, "base_offset", *_COMPARED))}, batches_count, run_batches,
  base_offset div {RUN_OFFSETS} AS bucket, {BATCH_HASH} AS hash, last_offset >= overlap_offset AS may_be_twice
FROM ({_OF_SEVERAL})
WHERE coalesce(last_offset < high_watermark, TRUE)
"""
_SUSPECTS: Final = single_batches_of(
    f"""(
      SELECT /*+ BROADCAST(suspects) */ *
      FROM ({_STABLE}) AS stable LEFT SEMI JOIN {{suspects}} AS suspects USING (topic, partition, bucket)
    )""",
    "TRUE",
    (*_COPY, "base_offset", *_COMPARED),
)
_BATCHES: Final = (f"SELECT *, base_offset AS offset FROM ({_SUSPECTS})", ("offset",), _COMPARED)
#: The first offset of each partition at which its copies have different batches, by their headers. A batch that only
#: one copy has is no disagreement, because copies begin, end and are compacted independently.
DIFFERING_BATCHES: Final = Rule(
    of="record_batches",
    steps=(
        # The copies of partitions with several, and copies in which files overlap, with their high watermarks.
        QueryStep(
            "several",
            f"""
            SELECT topic, partition, source, high_watermark, overlap_offset
            FROM (
              SELECT *, count(*) OVER (PARTITION BY topic, partition) AS copies FROM {{coverage}} WHERE {LIVING}
            )
            WHERE copies > 1 OR overlap_offset IS NOT NULL
            """,
        ),
        # The ranges of offsets in which copies have different batches, or one copy may have an offset twice.
        QueryStep(
            "suspects",
            f"""
            SELECT topic, partition, bucket
            FROM (
              SELECT topic, partition, source, bucket, bit_xor(hash) AS print, bool_or(may_be_twice) AS may_be_twice
              FROM ({_STABLE}) GROUP BY topic, partition, source, bucket
            )
            GROUP BY topic, partition, bucket HAVING min(print) != max(print) OR bool_or(may_be_twice)
            """,
        ),
        _first_difference(*_BATCHES),
    ),
    query=_copies_there(*_BATCHES),
    judge=of_copies,
)
_RECORDS: Final = (
    f"""
    SELECT /*+ BROADCAST(living) */ topic, partition, source, offset, coordinator_epoch, transactional_id,
      is_tombstone, state, producer_id, producer_epoch, sort_array(partitions) AS partitions
    FROM {{transaction_log}}
    LEFT SEMI JOIN (SELECT topic, partition, source FROM {{coverage}} WHERE {LIVING}) AS living
      USING (topic, partition, source)
    WHERE coordinator_epoch IS NOT NULL AND offset >= 0
    """,
    ("offset", "coordinator_epoch"),
    ("transactional_id", "is_tombstone", "state", "producer_id", "producer_epoch", "partitions"),
)
#: The first offset of each coordinator partition at which its copies have different records of one leader epoch: they
#: are of different logs. Records are compared by what is decoded and every tool prints.
DIFFERING_RECORDS: Final = Rule(
    of="transaction_log",
    steps=(_first_difference(*_RECORDS),),
    query=_copies_there(*_RECORDS),
    judge=of_copies,
)


@dataclass(frozen=True, slots=True)
class ClosedInSnapshot(OfProducer):
    """A transaction that is open in a copy, although a producer snapshot of that copy does not have it open."""

    start_offset: int
    snapshot_offset: int


def of_snapshots(closed: Iterable[ClosedInSnapshot]) -> Iterator[FindingRow]:
    """The finding about each transaction. Kafka: `ProducerStateManager.takeSnapshot`."""
    for each in closed:
        says = f"nothing of it is open in the snapshot at offset {each.snapshot_offset}"
        yield found(PRODUCER_SNAPSHOT_DISAGREES, says, each, offset=each.start_offset)


#: Open transactions of judged copies that a producer snapshot above their first batch does not have open, or has with
#: another epoch. A snapshot has the state after all batches below its offset, so it must have a transaction that began
#: below and has not ended. A producer with an open transaction never expires.
CLOSED_IN_SNAPSHOTS: Final = Rule(
    of="producer_snapshots",
    query=f"""
    SELECT topic, partition, producer_id, first_offset AS start_offset, max(snapshot_offset) AS snapshot_offset
    FROM (
      SELECT topic, partition, producer_id, first_offset, producer_epoch, state.producer_epoch AS newest_epoch
      FROM {{producer_spans}} WHERE {IS_OPEN} AND is_start_exact
    )
    JOIN (
      SELECT topic, partition, snapshot_offset,
        collect_list(CASE WHEN current_txn_first_offset IS NOT NULL
          THEN struct(producer_id AS id, producer_epoch AS epoch, current_txn_first_offset AS offset) END) AS open
      FROM {{producer_snapshots}}
      LEFT SEMI JOIN (SELECT topic, partition, source FROM {{coverage}} WHERE is_judged) AS judged
        USING (topic, partition, source)
      WHERE is_answer IS NULL GROUP BY topic, partition, snapshot_offset
    ) USING (topic, partition)
    WHERE snapshot_offset > first_offset AND NOT exists(open, each -> each.id = producer_id
      AND each.offset = first_offset AND each.epoch BETWEEN producer_epoch AND newest_epoch)
    GROUP BY topic, partition, producer_id, first_offset
    """,
    judge=of_snapshots,
)


@dataclass(frozen=True, slots=True)
class OpenOnReplica(OfProducer):
    """A transaction that is open in the newest producer snapshot of a replica, but not in the log of the leader."""

    broker: str | None
    snapshot_offset: int
    producer_epoch: int
    first_offset: int


def of_replicas(opened: Iterable[OpenOnReplica]) -> Iterator[FindingRow]:
    """The finding about each transaction. Kafka: `ProducerStateManager.truncateAndReload`; a new replica has no such
    snapshot."""
    for each in opened:
        says = (
            f"open on broker {known(each.broker)}, by its snapshot at offset {each.snapshot_offset}: epoch"
            f" {each.producer_epoch}"
        )
        yield found(OPEN_ON_REPLICA, says, each, offset=each.first_offset)


#: Transactions that are open in the newest producer snapshot of a replica, but not in the log of the leader. The
#: leader's copy has every record since that snapshot, so no marker has ended them.
OPEN_ON_REPLICAS: Final = Rule(
    of="producer_snapshots",
    query="""
    WITH leaders AS (
      SELECT topic, partition, greatest(log_start_offset, read_from_offset, first_offset, gap_offset)
        AS whole_from, end_offset
      FROM {coverage} WHERE is_judged AND is_current AND is_decoded AND damaged_offset IS NULL
    ), replicas AS (
      SELECT topic, partition, source, broker
      FROM {coverage}
      WHERE NOT is_judged AND status != 'MISSING' AND NOT coalesce(is_deleted, FALSE) AND truncated IS NULL
    ), newest AS (
      SELECT topic, partition, source, max(snapshot_offset) AS snapshot_offset
      FROM {producer_snapshots} WHERE is_answer IS NULL GROUP BY topic, partition, source
    ), opened AS (
      SELECT /*+ BROADCAST(leaders, replicas, newest) */ topic, partition, producer_id, broker, snapshot_offset,
        producer_epoch,
        current_txn_first_offset AS first_offset
      FROM (SELECT * FROM {producer_snapshots} WHERE current_txn_first_offset IS NOT NULL)
      JOIN newest USING (topic, partition, source, snapshot_offset)
      JOIN replicas USING (topic, partition, source)
      JOIN leaders USING (topic, partition)
      WHERE snapshot_offset BETWEEN whole_from AND end_offset
    )
    SELECT opened.topic, opened.partition, opened.producer_id, broker, snapshot_offset, producer_epoch, first_offset
    FROM opened LEFT ANTI JOIN (
      SELECT topic, partition, producer_id, marker_offset, state.current_txn_first_offset IS NOT NULL AS is_open
      FROM {producer_spans}
    ) AS known
    ON opened.topic = known.topic AND opened.partition = known.partition AND opened.producer_id = known.producer_id
      AND (is_open OR marker_offset > opened.first_offset)
    """,
    judge=of_replicas,
)
