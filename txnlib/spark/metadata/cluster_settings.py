"""`cluster_settings`: dynamic settings and feature levels, from when to when."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.metadata_records import MetadataType
from txnlib.spark import windows
from txnlib.spark.joins import broadcast
from txnlib.spark.metadata.metadata_log import effective
from txnlib.spark.metadata.partition_assignments import topics
from txnlib.spark.metadata.validity import since, until
from txnlib.spark.schemas import CLUSTER_SETTINGS, conform


def cluster_settings(metadata_log: DataFrame) -> DataFrame:
    """One row per setting and value of it. Columns: CLUSTER_SETTINGS.

    Removing a topic removes its settings. Kafka: `ConfigurationControlManager.replay`, `FeatureControlManager.replay`.
    """
    place = ["at_offset", "is_in_snapshot", "timestamp_ms"]
    features = effective(metadata_log, MetadataType.FEATURE_LEVEL).select(
        F.lit("FEATURE").alias("scope"),
        F.lit(None).cast("string").alias("scope_name"),
        "name",
        F.col("feature_level").cast("string").alias("value"),
        *place,
    )
    configs = effective(metadata_log, MetadataType.CONFIG).select(
        F.col("resource_type").alias("scope"), F.nullif("resource_name", F.lit("")).alias("scope_name"), "name", "value", *place
    )
    keys = configs.where("scope = 'TOPIC'").select("scope", "scope_name", "name").distinct()
    removed = (
        effective(metadata_log, MetadataType.REMOVE_TOPIC)
        .join(broadcast(topics(metadata_log)), on="topic_id")
        .select(F.col("topic").alias("scope_name"), *place)
        .join(broadcast(keys), on="scope_name")
        .withColumn("value", F.lit(None).cast("string"))
    )
    ordered = windows.changes_of_setting()
    events = since(features.unionByName(configs).unionByName(removed)).withColumn("before", F.lag("value").over(ordered))
    changed = events.where(~F.col("value").eqNullSafe(F.col("before")))
    return conform(until(changed, ordered).where(F.col("value").isNotNull()), CLUSTER_SETTINGS)
