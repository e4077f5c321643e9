"""Settings of a session, where there are any."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


def setting(spark: SparkSession, key: str) -> str | None:
    """The value of a setting; None if it has none, or if the server does not tell it (serverless compute of Databricks)."""
    try:
        value = spark.conf.get(key, None)
    except PySparkException:
        return None
    return None if value is None else str(value)
