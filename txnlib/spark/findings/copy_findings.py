"""Findings about copies of a partition that disagree below their high watermarks.

Spark finds where they do, the core says how.

Ranges of offsets are compared by fingerprint first, and batch by batch only if the fingerprints differ. So copies that
agree cost one pass.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.findings.copy_findings import of_copies, of_replicas, of_snapshots
from txnlib.spark.batch_runs import BATCH_HASH, single_batches
from txnlib.spark.coverage import LIVING
from txnlib.spark.frames import gathered_if_any
from txnlib.spark.joins import broadcast, bucket_of, select
from txnlib.spark.producers.producer_spans import IS_OPEN
from txnlib.spark.schemas import COPY, TOPIC_PARTITION

#: The fields of a batch that compaction does not change, and every tool prints.
COMPARED: Final = (
    *("last_offset", "producer_id", "producer_epoch", "base_sequence"),
    *("is_transactional", "is_control", "partition_leader_epoch", "control_type"),
)
#: The fields of a coordinator's record that every tool prints.
_COMPARED_RECORD: Final = ("transactional_id", "is_tombstone", "state", "producer_id", "producer_epoch", "partitions")


def differing_records(transaction_log: DataFrame, coverage: DataFrame) -> DataFrame | None:
    """The first offset of each coordinator partition at which its copies have different records of one leader epoch.

    They are of different logs. Records are compared by what is decoded. None if no copies differ.
    """
    living = broadcast(coverage.where(LIVING).select(*COPY))
    records = (
        transaction_log.where("coordinator_epoch IS NOT NULL AND offset >= 0")
        .join(living, on=list(COPY), how="left_semi")
        .withColumn("partitions", F.expr("sort_array(partitions)"))
    )
    return _first_difference(records, ("offset", "coordinator_epoch"), _COMPARED_RECORD)


def differing_batches(record_batches: DataFrame, coverage: DataFrame) -> DataFrame | None:
    """The first offset of each partition at which its copies have different batches, by their headers.

    A batch counts only below the high watermark of its own copy, if that is known: batches above it may still be
    truncated. A batch that only one copy has is no disagreement, because copies begin, end and are compacted
    independently. None if no copies differ.
    """
    bounds = gathered_if_any(select(_SEVERAL, coverage=coverage))
    if bounds is None:
        return None
    # The batches of a run are not all stable if the high watermark is above its beginning and not above its end.
    is_divided = "(base_offset < high_watermark AND last_offset >= high_watermark)"
    each = single_batches(record_batches.join(broadcast(bounds), on=list(COPY)), is_divided)
    read = (*COPY, "base_offset", *COMPARED, "batches_count", "run_batches")
    rows = each.where("coalesce(last_offset < high_watermark, TRUE)").selectExpr(
        *read,
        *(f"{bucket_of('base_offset')} AS bucket", f"{BATCH_HASH} AS hash"),
        "last_offset >= overlap_offset AS may_be_twice",
    )
    suspects = gathered_if_any(select(_SUSPECTS, rows=rows))
    if suspects is None:
        return None
    odd = rows.join(broadcast(suspects), on=[*TOPIC_PARTITION, "bucket"], how="left_semi")
    single = single_batches(odd, "TRUE", has=read)
    return _first_difference(single.withColumnRenamed("base_offset", "offset"), ("offset",), COMPARED)


#: The copies of partitions with several, and copies in which files overlap, with their high watermarks.
_SEVERAL: Final = f"""
SELECT topic, partition, source, high_watermark, overlap_offset
FROM (
  SELECT *, count(*) OVER (PARTITION BY topic, partition) AS copies FROM {{coverage}} WHERE {LIVING}
)
WHERE copies > 1 OR overlap_offset IS NOT NULL
"""
#: The ranges of offsets in which copies have different batches, or one copy may have an offset twice.
_SUSPECTS: Final = """
SELECT topic, partition, bucket
FROM (
  SELECT topic, partition, source, bucket, bit_xor(hash) AS print, bool_or(may_be_twice) AS may_be_twice
  FROM {rows} GROUP BY topic, partition, source, bucket
)
GROUP BY topic, partition, bucket HAVING min(print) != max(print) OR bool_or(may_be_twice)
"""


def _first_difference(rows: DataFrame, place: tuple[str, ...], compared: tuple[str, ...]) -> DataFrame | None:
    """The first offset of each partition at which copies differ in one of these columns, and the number of such
    offsets; None if there is none. `place`: the columns in which copies of one row agree, besides its partition.

    Not all tools print all columns, and NULL is no contradiction.
    """
    key = ", ".join((*TOPIC_PARTITION, *place))
    # Not every engine orders arrays of structs.
    comparable = [f"to_json({name})" if name == "partitions" else name for name in compared]
    differs = " OR ".join(f"coalesce(min({value}) != max({value}), FALSE)" for value in comparable)
    text = f"""
    SELECT topic, partition, count, {", ".join(f"place.{name}" for name in place)}
    FROM (
      SELECT topic, partition, count(*) AS count, min(struct({", ".join(place)})) AS place
      FROM (SELECT {key} FROM {{rows}} GROUP BY {key} HAVING {differs}) GROUP BY topic, partition
    )
    """
    first = gathered_if_any(select(text, rows=rows))
    if first is None:
        return None
    text = f"""
    SELECT topic, partition, offset, max(producer_id) AS producer_id, max(count) AS count,
      transform(sort_array(collect_set(struct(source, struct({", ".join(compared)}) AS read))),
        copy -> named_struct('source', copy.source, 'read', to_json(copy.read))) AS copies
    FROM {{rows}} JOIN {{first}} USING ({key}) GROUP BY {key}
    """
    return select(text, rows=rows, first=broadcast(first))


def open_on_replicas(producer_snapshots: DataFrame, producer_spans: DataFrame, coverage: DataFrame) -> DataFrame:
    """Transactions that the newest producer snapshot of a replica has open, and the log of the leader does not show.

    The copy of the leader has every record since that snapshot, so that no marker has ended them.
    """
    text = """
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
      FROM {snapshots} WHERE is_answer IS NULL GROUP BY topic, partition, source
    ), opened AS (
      SELECT /*+ BROADCAST(leaders, replicas, newest) */ topic, partition, producer_id, broker, snapshot_offset,
        producer_epoch,
        current_txn_first_offset AS first_offset
      FROM (SELECT * FROM {snapshots} WHERE current_txn_first_offset IS NOT NULL)
      JOIN newest USING (topic, partition, source, snapshot_offset)
      JOIN replicas USING (topic, partition, source)
      JOIN leaders USING (topic, partition)
      WHERE snapshot_offset BETWEEN whole_from AND end_offset
    )
    SELECT opened.topic, opened.partition, opened.producer_id, broker, snapshot_offset, producer_epoch, first_offset
    FROM opened LEFT ANTI JOIN (
      SELECT topic, partition, producer_id, marker_offset, state.current_txn_first_offset IS NOT NULL AS is_open
      FROM {spans}
    ) AS known
    ON opened.topic = known.topic AND opened.partition = known.partition AND opened.producer_id = known.producer_id
      AND (is_open OR marker_offset > opened.first_offset)
    """
    return select(text, snapshots=producer_snapshots, spans=producer_spans, coverage=coverage)


def closed_in_snapshots(producer_snapshots: DataFrame, producer_spans: DataFrame, coverage: DataFrame) -> DataFrame:
    """Open transactions of judged copies that a producer snapshot above their first batch does not have open, or with
    an epoch that their batches do not have.

    A snapshot at an offset has the state of all batches below it, so it has what began there and has not ended. A
    producer with something open never expires.
    """
    text = f"""
    SELECT topic, partition, producer_id, first_offset AS start_offset, max(snapshot_offset) AS snapshot_offset
    FROM (
      SELECT topic, partition, producer_id, first_offset, producer_epoch, state.producer_epoch AS newest_epoch
      FROM {{spans}} WHERE {IS_OPEN} AND is_start_exact
    )
    JOIN (
      SELECT topic, partition, snapshot_offset,
        collect_list(CASE WHEN current_txn_first_offset IS NOT NULL
          THEN struct(producer_id AS id, producer_epoch AS epoch, current_txn_first_offset AS offset) END) AS open
      FROM {{snapshots}}
      LEFT SEMI JOIN (SELECT topic, partition, source FROM {{coverage}} WHERE is_judged) AS judged
        USING (topic, partition, source)
      WHERE is_answer IS NULL GROUP BY topic, partition, snapshot_offset
    ) USING (topic, partition)
    WHERE snapshot_offset > first_offset AND NOT exists(open, each -> each.id = producer_id
      AND each.offset = first_offset AND each.epoch BETWEEN producer_epoch AND newest_epoch)
    GROUP BY topic, partition, producer_id, first_offset
    """
    return select(text, spans=producer_spans, snapshots=producer_snapshots, coverage=coverage)


#: What is selected here, and the function of the core that makes findings of it.
RULES: Final = (
    (differing_batches, of_copies),
    (differing_records, of_copies),
    (open_on_replicas, of_replicas),
    (closed_in_snapshots, of_snapshots),
)
