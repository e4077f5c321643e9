"""`metadata_log`: the records of `__cluster_metadata`, and which of them count.

The state of the cluster follows from one unbroken run of records: from the newest complete snapshot, or from offset 0,
up to the first record that is missing. Records before that snapshot count as history if they belong to the same run.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pyspark.sql import DataFrame

from txnlib.core.coverage.known_metadata import MetadataReach
from txnlib.core.kafka.constants import MetadataType
from txnlib.core.sql_text import BEFORE, clock_ms, last_of, next_of, quoted_list
from txnlib.spark.joins import select
from txnlib.spark.schemas import TABLES, conform
from txnlib.spark.windows import UNTIL_NOW


def metadata_log(records: DataFrame) -> DataFrame:
    """The records of all copies, each with `is_effective`. Columns: METADATA_LOG.

    `records`: what the readers yield. Of several copies of one record, one is effective. Kafka: `QuorumController`, its
    transactions (KIP-868), `RecordsSnapshotReader`.
    """
    of_log = select(_OF_LOG, records=records)
    of_snapshots = select(_OF_SNAPSHOTS, records=records)
    return conform(of_log.unionByName(of_snapshots), TABLES["metadata_log"])


def effective(metadata_log: DataFrame, types: Collection[MetadataType]) -> DataFrame:
    """The records of these types that count."""
    return metadata_log.where(f"is_effective AND type IN {quoted_list(each.value for each in types)}")


def reach(metadata_log: DataFrame) -> MetadataReach:
    """How far the records that count reach, and how far those of any copy do."""
    found = metadata_log.selectExpr(
        f"max({clock_ms('timestamp_ms')}) FILTER (WHERE is_effective) AS known_ms",
        "max(coalesce(snapshot_offset - 1, last_offset)) FILTER (WHERE is_effective) AS last_offset",
        f"bool_or(is_effective AND type = '{MetadataType.NO_OP.value}') AS has_no_ops",
        "bool_or(is_effective AND (snapshot_offset IS NOT NULL OR offset = 0)) AS is_complete",
        "max(last_offset) FILTER (WHERE snapshot_offset IS NULL) AS end",
    ).first()
    return MetadataReach() if found is None else MetadataReach(**found.asDict())


_COLUMNS: Final = ", ".join(name for name in TABLES["metadata_log"].names if name != "is_effective")
#: The newest snapshot that is complete; NULL if there is none.
_NEWEST: Final = f"""newest AS (
  SELECT max(struct(snapshot_offset, path)) AS newest
  FROM (
    SELECT snapshot_offset, path FROM {{records}} WHERE snapshot_offset IS NOT NULL
    GROUP BY snapshot_offset, path
    HAVING min_by(type, offset) = '{MetadataType.SNAPSHOT_HEADER.value}'
      AND max_by(type, offset) = '{MetadataType.SNAPSHOT_FOOTER.value}'
      AND sum(last_offset - offset + 1) = max(last_offset) - min(offset) + 1
  )
)"""
_OF_SNAPSHOTS: Final = f"""
WITH {_NEWEST}
SELECT /*+ BROADCAST(newest) */ {_COLUMNS}, coalesce(struct(snapshot_offset, path) = newest, FALSE) AS is_effective
FROM {{records}} CROSS JOIN newest WHERE snapshot_offset IS NOT NULL
"""
#: All records of the log in all copies, in offset order, the newest leader epoch first. None of them has a
#: `snapshot_offset`, so they are one group. By a constant there would be no group for Spark, which warns then.
_RECORDS: Final = "PARTITION BY snapshot_offset ORDER BY offset, epoch DESC, last_offset DESC, source, path"
_OF_RUN: Final = "PARTITION BY run ORDER BY offset, epoch DESC, last_offset DESC, source, path"
_OF_RUN_DOWNWARDS: Final = "PARTITION BY run ORDER BY offset DESC, epoch, last_offset, source DESC, path DESC"
_ENDS: Final = (MetadataType.BEGIN_TRANSACTION, MetadataType.END_TRANSACTION, MetadataType.ABORT_TRANSACTION)
_MARK: Final = f"if(is_first AND type IN {quoted_list(each.value for each in _ENDS)}, type, NULL)"
#: Leader epochs never fall as offsets rise: what follows a higher one at a lower offset was truncated. Of the copies of
#: a record, raw files come before text, which an old tool may have printed. The state follows from the run that
#: continues the newest snapshot; without a snapshot, from the run from offset 0, else from the newest one, whose
#: beginning is unknown.
_OF_LOG: Final = f"""
WITH {_NEWEST}, survivors AS (
  SELECT *, epoch >= max(epoch) OVER ({_RECORDS} {UNTIL_NOW}) AS survives
  FROM (SELECT *, coalesce(controller_epoch, -1) AS epoch FROM {{records}} WHERE snapshot_offset IS NULL)
), runs AS (
  SELECT *, sum(starts) OVER ({_RECORDS} {UNTIL_NOW}) AS run, survives AND 1 = row_number() OVER (
      PARTITION BY snapshot_offset, offset ORDER BY survives DESC, last_offset DESC, source, path) AS is_first
  FROM (
    SELECT *,
      if(survives AND offset > max(if(survives, last_offset, NULL)) OVER ({_RECORDS} {BEFORE}) + 1, 1, 0) AS starts
    FROM survivors
  )
), marked AS (
  SELECT *, {last_of(_MARK, "offset", f"{_OF_RUN} {BEFORE}")} AS mark_before,
    {next_of(_MARK, "offset", f"{_OF_RUN_DOWNWARDS} {BEFORE}")} AS mark_after
  FROM runs
), known AS (
  SELECT max_by(run, struct(rank, run)) AS known_run
  FROM (
    SELECT run, CASE
        WHEN newest IS NULL THEN if(begins = 0, 2, 1)
        WHEN begins <= newest.snapshot_offset AND ends >= newest.snapshot_offset - 1 THEN 1
      END AS rank
    FROM (SELECT run, min(offset) AS begins, max(last_offset) AS ends FROM runs WHERE survives GROUP BY run)
    CROSS JOIN newest
  )
  WHERE rank IS NOT NULL
)
SELECT /*+ BROADCAST(known) */ {_COLUMNS}, coalesce(is_first AND run = known_run AND NOT coalesce(
    {_MARK} IS NULL AND mark_before = '{MetadataType.BEGIN_TRANSACTION.value}'
      AND NOT coalesce(mark_after = '{MetadataType.END_TRANSACTION.value}', FALSE), FALSE
  ), FALSE) AS is_effective
FROM marked CROSS JOIN known
"""
