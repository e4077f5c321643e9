"""`checked_batches`: CRC checks of odd batches and of evidence for verdicts.

For batches above a page, the readers read only the headers (docs/decisions/0001). So one flipped bit could invent an
orphaned transaction, or hide one. Before a transaction may be reported as hanging, its first and last batch, and the
producer's batch before them, are read again completely. So is each batch that does not fit what its producer wrote
before. These are few rows at known positions. Source: docs/rules/abort.md#open-now; Kafka:
`DefaultRecordBatch.isValid`.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from txnlib.core.batch_runs import LAST_BATCH_OFFSET, is_divided_at
from txnlib.core.sql_text import IS_NEWEST, IS_OPEN
from txnlib.readers.header_columns import PAGE
from txnlib.spark.core_udfs import is_batch_valid
from txnlib.spark.frames import arrow_of, frame_of, kept
from txnlib.spark.joins import broadcast, bucket_of, end_batches, select, single_batches
from txnlib.spark.schemas import COPY, PRODUCER, TABLES, TOPIC_PARTITION, conform
from txnlib.spark.windows import SharedWindow

#: Maximum number of odd batches to check. A log has none, or is in a state where more checks would show nothing new.
ODD_CHECKED: Final = 1_000


def checked_batches(
    record_batches: DataFrame, producer_spans: DataFrame, coverage: DataFrame, segments: DataFrame
) -> DataFrame:
    """One row per batch and transaction that depends on it. Columns: CHECKED_BATCHES."""
    judged = broadcast(coverage.where("is_judged").select(*COPY))
    opened = producer_spans.where(IS_OPEN).join(judged, on=list(TOPIC_PARTITION))
    opened = opened.select(*COPY, "producer_id", F.col("first_offset").alias("start_offset"))
    data = record_batches.where("NOT is_control")
    written = data.join(broadcast(opened), on=[*COPY, "producer_id"])
    # Numbers alone are cheap to compare; the few rows that have the wanted batches are looked up again, with all
    # columns.
    nearest = kept(written.groupBy(*COPY, "producer_id", "start_offset").agg(*map(F.expr, _NEAREST)))
    own = data.join(broadcast(nearest), on=[*COPY, "producer_id"]).where(_MAY_BE_NEAREST)
    # Of each row, the first and the last batch: the lowest and the highest of some batches are among them.
    own = end_batches(single_batches(own, is_divided_at("start_offset")))
    # Gathered, because there are hardly ever any: then the engine need not look for them among all batches.
    found = arrow_of(select(_ODD, spans=producer_spans))
    odd = frame_of(producer_spans.sparkSession, found, _BATCH_KEY).join(judged, on=list(TOPIC_PARTITION))
    around = select(
        f"""
        SELECT /*+ BROADCAST(wanted) */ *
        FROM (
          SELECT *, {bucket_of("base_offset")} AS bucket FROM {{batches}}
          -- Of a run, the size is that of all its batches, so that it may have one above a page.
          WHERE source LIKE 'raw:%' AND size > {PAGE} AND NOT is_control
        )
        JOIN (
          SELECT topic, partition, source, producer_id, base_offset AS odd_offset, {bucket_of("base_offset")} AS bucket
          FROM {{odd}}
        ) AS wanted
        USING (topic, partition, source, producer_id, bucket)
        WHERE odd_offset BETWEEN base_offset AND {LAST_BATCH_OFFSET}
        """,
        batches=record_batches,
        odd=odd,
    )
    exactly = single_batches(around, "TRUE").where(f"base_offset = odd_offset AND size > {PAGE}")
    located = select(_LOCATED, own=own, odd=exactly, segments=segments)
    # NULL if there are no bytes to check: for text, and for files that no longer exist.
    again = is_batch_valid()(F.expr(f"if(kind = 'raw' AND size > {PAGE}, path, NULL)"), "position", "size")
    is_valid = F.when(F.expr(f"kind = 'raw' AND size <= {PAGE}"), F.lit(True)).otherwise(again)
    return conform(located.withColumn("is_crc_valid", is_valid), TABLES["checked_batches"])


#: Of the rows before the start of a transaction, the last one; of those from there on, the first and the last one.
_NEAREST: Final = (
    f"max({LAST_BATCH_OFFSET}) FILTER (WHERE {LAST_BATCH_OFFSET} < start_offset) AS before",
    "min(base_offset) FILTER (WHERE base_offset >= start_offset) AS first",
    f"max({LAST_BATCH_OFFSET}) FILTER (WHERE {LAST_BATCH_OFFSET} >= start_offset) AS last",
)
_MAY_BE_NEAREST: Final = (
    f"{is_divided_at('start_offset')} OR {LAST_BATCH_OFFSET} IN (before, last) OR base_offset = first"
)
#: The batches that do not fit the producer's state, each with the batch that left that state. Also the last batch of
#: each producer that wrote outside of transactions after a marker, as no client does.
_ODD: Final = f"""
SELECT DISTINCT topic, partition, producer_id, explode(array_compact(array(
    suspect.batch.base_offset, suspect.before.last_offset - suspect.before.offset_delta,
    if(is_outside, state.last_offset - state.offset_delta, NULL)))) AS base_offset
FROM (
  SELECT *, {IS_NEWEST} AND span > 0 AND first_offset IS NULL AND marker_offset IS NULL AS is_outside FROM {{spans}}
)
WHERE suspect IS NOT NULL OR is_outside
ORDER BY topic, partition, producer_id, base_offset LIMIT {ODD_CHECKED}
"""
_BATCH_KEY: Final = StructType(
    [TABLES["record_batches"][name] for name in (*TOPIC_PARTITION, "producer_id", "base_offset")]
)
_BATCH: Final = (
    "base_offset, last_offset, position, size, segment_base_offset, producer_epoch, base_sequence, last_sequence, "
    "partition_leader_epoch, crc"
)
#: The batches of an open transaction in the judged copy, and the producer's batch before them; a producer has one on a
#: partition. A dump may print a part twice.
_OF_TRANSACTION: Final = SharedWindow(
    PRODUCER, ("base_offset", "last_offset", "position", "size", "segment_base_offset")
)
#: Both kinds of batches, each with its file. An aggregate of structs for each transaction would take 5 KB for each.
_LOCATED: Final = f"""
SELECT *
FROM (
  SELECT topic, partition, source, producer_id, start_offset, place, {_BATCH}
  FROM (
    SELECT *, explode(array_compact(array(
      if(base_offset < start_offset AND NOT coalesce(next_offset < start_offset, FALSE), 'before', NULL),
      if(base_offset >= start_offset AND NOT coalesce(offset_before >= start_offset, FALSE), 'first', NULL),
      if(base_offset >= start_offset AND next_offset IS NULL, 'last', NULL)))) AS place
    FROM (
      SELECT *, {_OF_TRANSACTION.of_neighbour("lag", "base_offset")} AS offset_before,
        {_OF_TRANSACTION.of_neighbour("lead", "base_offset")} AS next_offset
      FROM {{own}}
    )
  )
  UNION ALL
  SELECT topic, partition, source, producer_id, NULL, 'odd', {_BATCH} FROM {{odd}}
)
LEFT JOIN (
  SELECT topic, partition, source, segment_base_offset, max_by(path, bytes) AS path, max(kind) AS kind
  FROM {{segments}} WHERE kind IN ('raw', 'text') GROUP BY topic, partition, source, segment_base_offset
) USING (topic, partition, source, segment_base_offset)
"""
