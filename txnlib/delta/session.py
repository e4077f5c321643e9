"""Spark sessions that can write Delta. The only module that builds one."""

from __future__ import annotations

import os
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaClass, JavaMember
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from txnlib.errors import MissingExtraError


def delta_session(name: str) -> SparkSession:
    """The active session if there is one (Databricks, notebooks, spark-submit), else a new one with Delta's catalog.

    With SPARK_REMOTE it is a Spark Connect session, whose server must support Delta. The session uploads the code that
    TXNLIB_PY_FILES names (set by `spark-submit.sh`).
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        _remember_java_classes()
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    asks_server = "SPARK_REMOTE" in os.environ
    builder = SparkSession.builder.appName(name)
    for key, value in {**SHOWN, **({} if asks_server else {**DELTA, **_alone()})}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    if asks_server:
        session.addArtifacts(*filter(None, os.environ.get("TXNLIB_PY_FILES", "").split(",")), pyfile=True)
    _remember_java_classes()
    return session


#: The Java classes that pyspark asks for by name at every call of a function of `pyspark.sql.functions`.
_ASKED_FOR = ("functions", "org.apache.spark.sql.functions", "PythonUtils", "PythonSQLUtils")


class _KnownClass(JavaClass):  # type: ignore[misc]
    """A Java class whose methods are looked up once."""

    def __getattr__(self, name: str) -> Any:
        member = super().__getattr__(name)
        if isinstance(member, JavaMember):
            setattr(self, name, member)
        return member


def _remember_java_classes() -> None:
    """Lets a classic session look up Java's classes once. Does nothing for Spark Connect, which has no Java of its own.

    For each lookup of a class, Java searches its 300 jars for several names. This took a twelfth of a small audit.
    """
    jvm = SparkContext._jvm
    if jvm is None:
        return
    for name in _ASKED_FOR:
        if name not in vars(jvm) and isinstance(found := getattr(jvm, name), JavaClass):
            setattr(jvm, name, _KnownClass(found._fqn, found._gateway_client))


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


def is_driver_local(spark: SparkSession) -> bool:
    """Whether a path without a scheme means the same file to the driver's Python and to Spark."""
    if is_remote() or {"HADOOP_CONF_DIR", "YARN_CONF_DIR"} & os.environ.keys():
        return False
    is_local_system = str(spark.conf.get("spark.hadoop.fs.defaultFS", "file:///")).startswith("file:")
    return is_local_system and str(spark.conf.get("spark.master", "")).startswith("local")


#: Settings that enable Delta tables. They belong to a server, not to one of its sessions.
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
#: What Delta's Maven package depends on and needs no download, as in `bootstrap.sh`: libraries that Spark has (Hadoop,
#: Parquet, Jackson, …), and clients of Unity Catalog, which paths and Spark's own catalog do not load. Five jars of 33
#: remain.
IN_SPARK = "org.*:*,com.*:*,commons-*:*,javax.*:*,io.airlift:*,io.unitycatalog:*"
#: Timestamps are shown in UTC.
SHOWN = {"spark.sql.session.timeZone": "UTC"}

#: The settings of `conf/spark-defaults.conf` (see there for reasons) without which a session on one machine is slow or
#: noisy.
ALONE = {
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.shuffle.partitions": "8",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
