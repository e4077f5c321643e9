"""Findings about aborts on which a log and its transaction index disagree."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

from txnlib.core.findings.transaction_index_findings import of_indexed, of_unindexed
from txnlib.spark.joins import select

#: Entries of the index files of judged copies without damage, and the ABORT markers of their partitions: most captures
#: have an index of few partitions. An empty index file has a row, too: its segment has no aborts.
_INDEX: Final = """
WITH whole AS (
  SELECT topic, partition, source, end_offset, gap_offset,
    coalesce(read_from_offset, 0) AS read_from_offset, log_start_offset
  FROM {coverage} WHERE is_judged AND damaged_offset IS NULL AND tail IN ('CLEAN', 'ZEROS')
), entries AS (
  SELECT /*+ BROADCAST(whole) */ *, last_offset AS marker_offset
  FROM {index} JOIN whole USING (topic, partition, source)
), aborts AS (
  SELECT /*+ BROADCAST(entries) */ topic, partition, producer_id, marker_offset, first_offset, last_offset
  FROM {spans} LEFT SEMI JOIN entries USING (topic, partition) WHERE marker_type = 'ABORT'
)
"""


def unindexed_aborts(aborted_transactions: DataFrame, producer_spans: DataFrame, coverage: DataFrame) -> DataFrame:
    """Aborts of data in the log without an index entry, below the newest entry: the index may have been copied before
    the log.

    Nobody reads data below the log start, and a broker that has started since does not know of it.
    """
    text = """
    SELECT /*+ BROADCAST(files) */ topic, partition, producer_id, marker_offset
    FROM (SELECT * FROM aborts WHERE first_offset IS NOT NULL)
    LEFT ANTI JOIN entries USING (topic, partition, producer_id, marker_offset)
    JOIN (
      SELECT topic, partition, min(segment_base_offset) AS first_segment, max(marker_offset) AS newest_entry,
        max(log_start_offset) AS log_start_offset
      FROM entries GROUP BY topic, partition
    ) AS files USING (topic, partition)
    WHERE marker_offset < newest_entry AND marker_offset >= first_segment
      AND coalesce(last_offset >= log_start_offset, TRUE)
    """
    return select(_INDEX + text, spans=producer_spans, index=aborted_transactions, coverage=coverage)


def lost_aborts(aborted_transactions: DataFrame, producer_spans: DataFrame, coverage: DataFrame) -> DataFrame:
    """Index entries whose marker is not in the part of the log that was read. Below a hole, compaction may have removed
    it."""
    text = """
    SELECT topic, partition, producer_id, first_offset, marker_offset, last_stable_offset
    FROM entries LEFT ANTI JOIN aborts USING (topic, partition, producer_id, marker_offset)
    WHERE producer_id IS NOT NULL AND marker_offset >= read_from_offset AND marker_offset < end_offset
      AND coalesce(marker_offset > gap_offset, TRUE)
    """
    return select(_INDEX + text, spans=producer_spans, index=aborted_transactions, coverage=coverage)


#: What is selected here, and the function of the core that makes findings of it.
RULES: Final = ((unindexed_aborts, of_unindexed), (lost_aborts, of_indexed))
