"""`producer_id_blocks`: which broker was given which producer ids."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.metadata_records import MetadataType
from txnlib.spark import windows
from txnlib.spark.instants import instant
from txnlib.spark.metadata.metadata_log import effective
from txnlib.spark.schemas import PRODUCER_ID_BLOCKS, conform

#: Kafka: `ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE`.
BLOCK_SIZE: Final = 1_000


def producer_id_blocks(metadata_log: DataFrame) -> DataFrame:
    """One row per block. Columns: PRODUCER_ID_BLOCKS.

    A record contains the producer id after its block, which begins after the block before. Kafka: `ProducerIdControlManager`.
    """
    events = effective(metadata_log, MetadataType.PRODUCER_IDS)
    before = F.lag("next_producer_id").over(windows.blocks_of_producer_ids())
    first = F.coalesce("before", F.greatest(F.col("next_producer_id") - BLOCK_SIZE, F.lit(0).cast("long")))
    blocks = events.withColumn("before", before).where("before IS NULL OR next_producer_id > before")
    is_dated = ~F.col("is_in_snapshot")
    return conform(
        blocks.withColumns(
            {
                "first_producer_id": first,
                "last_producer_id": F.col("next_producer_id") - 1,
                "offset": F.when(is_dated, F.col("at_offset")),
                "allocated_at": instant(F.when(is_dated, F.col("timestamp_ms"))),
            }
        ).where("first_producer_id <= last_producer_id"),
        PRODUCER_ID_BLOCKS,
    )
