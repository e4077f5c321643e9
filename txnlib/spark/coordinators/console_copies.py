"""Copies of coordinator partitions from console text, which prints neither partitions nor offsets.

The formatter does not print append times either. The partition follows from the hash of the id, and the order of the
text is the offset order within a partition. So such a text shows what a coordinator wrote, up to its newest record. It
never proves that a coordinator wrote nothing else, because it is unknown where the consumer began.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.copies import HARMLESS_REASONS
from txnlib.core.coverage.captured_files import PRINTED
from txnlib.core.display import FIRST_OF_TEXT, OFFSETS_OF_TEXT
from txnlib.core.kafka.transaction_state import COMPLETE_STATES
from txnlib.core.sql_text import clock_ms
from txnlib.spark.core_udfs import coordinator_partition_of
from txnlib.spark.joins import broadcast
from txnlib.spark.schemas import COPY, TABLES, conform

#: Above every offset: a record in an unreadable range may have been newer than any other.
_BEHIND_ALL: Final = 1 << 62


def console_records(console_log: DataFrame, transaction_log: DataFrame, coordinator_partitions: int) -> DataFrame:
    """The records of console consumer text with partition, order and time. Columns: TRANSACTION_LOG.

    `offset` is negative and only an order. It is NULL in a text that is not used, because there is another copy of the
    partition, or a better text. `timestamp_ms` is the time of the transition; NULL for Complete records and tombstones,
    which are written later than the time in them (docs/rules/transactions.md#times-in-coordinator-records).
    """
    hashed = coordinator_partition_of()("transactional_id", F.lit(coordinator_partitions))
    located = console_log.withColumn("partition", F.coalesce("partition", hashed))
    covered = (
        transaction_log.where(F.col("offset") >= 0).select("partition").distinct().withColumn("is_covered", F.lit(True))
    )
    texts = located.groupBy("partition", "source", "part").agg(
        F.expr(f"max({clock_ms('last_update_ms')}) AS newest_ms"), F.count("*").alias("records")
    )
    rank = (
        "row_number() OVER (PARTITION BY partition ORDER BY newest_ms DESC NULLS LAST, records DESC, source, part) AS"
        " rank"
    )
    best = texts.selectExpr("*", rank).where("rank = 1")
    used = best.join(covered, on="partition", how="left_anti").select(
        "partition", "source", "part", F.lit(True).alias("is_used")
    )
    is_timed = ~F.coalesce(
        F.col("state").isin([s.kafka_name for s in COMPLETE_STATES]) | F.col("is_tombstone"), F.lit(True)
    )
    placed = located.join(broadcast(used), on=["partition", "source", "part"], how="left").withColumns(
        {
            "offset": F.when(F.col("is_used"), F.lit(FIRST_OF_TEXT) + F.col("position") * OFFSETS_OF_TEXT),
            "timestamp_ms": F.when(is_timed, F.col("last_update_ms")),
        }
    )
    return conform(placed, TABLES["transaction_log"])


def console_segments(segments: DataFrame, console_records: DataFrame) -> DataFrame:
    """One row per text and coordinator partition with records in it. Columns: SEGMENTS, of kind `PRINTED`.

    A text that is not used is not decoded (NULL), so that it proves nothing. An unreadable range of a text counts for
    each of its partitions.
    """
    texts = segments.where(F.col("kind") == "console").select(
        "source", "path", "tail", "is_decoded", "unreadable", "parts", F.get("parts", F.lit(0)).alias("part")
    )
    harmful = F.expr(f"filter(unreadable, each -> NOT each.reason RLIKE '^({'|'.join(HARMLESS_REASONS)})')")
    lost = F.transform(harmful, lambda s: s.withField("next_offset", F.lit(_BEHIND_ALL)))
    rows = (
        console_records.groupBy(*COPY, "part")
        .agg(
            F.count("*").alias("batches"),
            F.expr(f"max({clock_ms('last_update_ms')}) AS newest_broker_ms"),
            F.expr("bool_or(offset IS NOT NULL) AS is_used"),
        )
        .join(texts, on=["source", "part"], how="left")
        .withColumns(
            {
                "kind": F.lit(PRINTED),
                "unreadable": lost,
                "is_decoded": F.when(F.col("is_used"), F.col("is_decoded")),
            }
        )
    )
    absent = [field for field in TABLES["segments"] if field.name not in rows.columns]
    return conform(rows.withColumns({f.name: F.lit(None).cast(f.dataType) for f in absent}), TABLES["segments"])
