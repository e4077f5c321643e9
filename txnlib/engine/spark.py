"""Spark as the engine: a session that can write Delta. The only module that builds one."""

from __future__ import annotations

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pyspark.sql import SparkSession

from txnlib.engine.spark_session import choose_catalog, copy_of, prepare, running_session, size_for
from txnlib.engine.spark_tables import SparkTables
from txnlib.engine.store import Store
from txnlib.errors import MissingExtraError
from txnlib.readers.capture import Capture
from txnlib.spark.capture_source import CaptureSource, TaskSource


class SparkEngine:
    """Spark: beside the session that is there (Databricks, notebooks, spark-submit), or in a new one.

    `is_shared`: in that session itself, whose user gets the frames and combines them with others.
    """

    name = "spark"
    steps_at_once = 1  # its tasks take all cores, and its jobs are named by the thread

    def __init__(self, *, is_shared: bool = False) -> None:
        found = running_session()
        self._session = new_session() if found is None else found
        self.spark = self._session if found is None or is_shared else copy_of(found)
        self._is_own = self.spark is not found

    def store(self, output: str | None, schema: str | None) -> Store:
        """The tables under a folder or any Hadoop URI, or in a catalog schema."""
        if self._is_own:
            choose_catalog(self.spark, self._session, schema)
        return Store(self.spark, SparkTables(self.spark, output, schema), output, schema)

    def source(self, capture: Capture) -> CaptureSource:
        if self._is_own:
            size_for(self.spark, capture.size)
        return TaskSource(self.spark, capture)


def new_session() -> SparkSession:
    """A session with Delta's catalog. With SPARK_REMOTE it is one of Spark Connect, whose server must support Delta."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("txnlib")
    for key, value in ({} if "SPARK_REMOTE" in os.environ else {**DELTA, **_alone()}).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    prepare(session)
    return session


def _alone() -> dict[str, str]:
    """Settings for a session that spark-submit did not start, and that lacks `conf/spark-defaults.conf` and the jars.

    Delta's jars are those that `bootstrap.sh` fetched, else they are fetched from a Maven repository. Databricks has
    its own.
    """
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ or "--jars" in os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    if is_submitted or "DATABRICKS_RUNTIME_VERSION" in os.environ:
        return {}
    fetched = os.environ.get("TXNLIB_DELTA_JARS") or ",".join(map(str, sorted(Path(sys.prefix, "jars").glob("*.jar"))))
    if fetched:
        return {**ALONE, "spark.jars": fetched}
    try:
        spark, delta = version("pyspark").split("."), version("delta-spark")
    except PackageNotFoundError as error:  # PySpark was installed without Delta, or from an archive of Spark
        raise MissingExtraError("a Spark session with Delta tables", str(error.name), "spark") from error
    packages = f"io.delta:delta-spark_{spark[0]}.{spark[1]}_2.13:{delta}"
    return {**ALONE, "spark.jars.packages": packages, "spark.jars.excludes": IN_SPARK}


#: Settings that enable Delta tables. They belong to a server, not to one of its sessions.
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
#: What Delta's Maven package depends on and needs no download, as in `bootstrap.sh`: libraries that Spark has (Hadoop,
#: Parquet, Jackson, …), and clients of Unity Catalog, which paths and Spark's own catalog do not load. Five jars of 33
#: remain.
IN_SPARK = "org.*:*,com.*:*,commons-*:*,javax.*:*,io.airlift:*,io.unitycatalog:*"

#: The settings of `conf/spark-defaults.conf` (see there for reasons) without which a session on one machine is slow or
#: noisy.
ALONE = {
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.shuffle.partitions": "8",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
