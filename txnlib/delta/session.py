"""How is a Spark session made that can write Delta? The only place that builds one."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession


def delta_session(name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The active session if there is one (Databricks, notebooks, spark-submit), else a new one with Delta's catalog."""
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    for key, value in {**DELTA, **(settings or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


#: What a session needs to know Delta tables, and to show times as they are.
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
}
