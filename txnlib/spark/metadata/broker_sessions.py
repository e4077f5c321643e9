"""`broker_sessions`: when each broker was registered, and when it was fenced."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.metadata_records import MetadataType
from txnlib.spark import windows
from txnlib.spark.metadata.metadata_log import effective
from txnlib.spark.metadata.validity import since, until
from txnlib.spark.schemas import BROKER_SESSIONS, conform

_TYPES: Final = (
    MetadataType.REGISTER_BROKER,
    MetadataType.UNREGISTER_BROKER,
    MetadataType.BROKER_REGISTRATION_CHANGE,
    MetadataType.FENCE_BROKER,
    MetadataType.UNFENCE_BROKER,
)
_STATE: Final = ("is_registered", "broker_epoch", "incarnation_id", "is_fenced", "is_in_controlled_shutdown")


def broker_sessions(metadata_log: DataFrame) -> DataFrame:
    """One row per broker and state of it. Columns: BROKER_SESSIONS. Kafka: `ClusterControlManager.replay`."""
    is_new = F.col("type") == MetadataType.REGISTER_BROKER.value
    events = effective(metadata_log, *_TYPES).where(F.col("broker_id").isNotNull())
    # A registration begins anew; old versions of it do not contain the last flag.
    is_shutting_down = F.when(is_new, F.coalesce("is_in_controlled_shutdown", F.lit(False))).otherwise(
        F.col("is_in_controlled_shutdown")
    )
    ordered = windows.changes_of_broker()
    now = windows.until_now(ordered)
    states = since(events.withColumn("is_in_controlled_shutdown", is_shutting_down)).withColumns(
        {
            "is_registered": F.col("type") != MetadataType.UNREGISTER_BROKER.value,
            "incarnation_id": F.last("incarnation_id", ignorenulls=True).over(now),
            "is_fenced": F.last("is_fenced", ignorenulls=True).over(now),
            "is_in_controlled_shutdown": F.last("is_in_controlled_shutdown", ignorenulls=True).over(now),
        }
    )
    changed = (
        states.withColumn("state", F.struct(*_STATE))
        .withColumn("before", F.lag("state").over(ordered))
        .where(F.col("before").isNull() | ~F.col("state").eqNullSafe(F.col("before")))
    )
    return conform(until(changed, ordered).where("is_registered"), BROKER_SESSIONS)
