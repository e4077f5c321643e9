"""Spark sessions that can write Delta. The only module that builds one."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaClass, JavaMember
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from txnlib.spark.joins import BROADCAST_LIMIT, NEVER


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

    Delta's jars are those that `bootstrap.sh` fetched, else they are fetched from a Maven repository. Databricks has its own.
    """
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ or "--jars" in os.environ.get("PYSPARK_SUBMIT_ARGS", "")
    if is_submitted or "DATABRICKS_RUNTIME_VERSION" in os.environ:
        return {}
    fetched = os.environ.get("TXNLIB_DELTA_JARS") or ",".join(map(str, sorted(Path(sys.prefix, "jars").glob("*.jar"))))
    if fetched:
        return {**ALONE, "spark.jars": fetched}
    spark, delta = version("pyspark").split("."), version("delta-spark")
    return {**ALONE, "spark.jars.packages": f"io.delta:delta-spark_{spark[0]}.{spark[1]}_2.13:{delta}"}


def is_driver_local(spark: SparkSession) -> bool:
    """Whether a path without a scheme means the same file to the driver's Python and to Spark."""
    if is_remote() or {"HADOOP_CONF_DIR", "YARN_CONF_DIR"} & os.environ.keys():
        return False
    is_local_system = str(spark.conf.get("spark.hadoop.fs.defaultFS", "file:///")).startswith("file:")
    return is_local_system and str(spark.conf.get("spark.master", "")).startswith("local")


@contextmanager
def settings_kept(spark: SparkSession) -> Iterator[None]:
    """Restores the settings that `tune_for` changes, for a session that is shared with other code."""
    before = {key: spark.conf.get(key, None) for key in {**INTERPRET, **COMPILE, **WRITE}}
    try:
        yield
    finally:
        for key, value in before.items():
            with suppress(PySparkException):  # settings that could not be set are unchanged
                if value is None:
                    spark.conf.unset(key)
                else:
                    spark.conf.set(key, value)


def tune_for(spark: SparkSession, read_bytes: int, held_bytes: int = 0) -> None:
    """Tunes the session for the number of bytes that an audit reads, and that it carries over from an earlier one.

    Compiling a plan to Java takes longer than interpreting it over a few thousand rows: with 21 tables, this is most of the time of
    a small audit (measured: 66 s of CPU against 53 s for the sample capture). Rows that are carried over are scanned, too, but only
    a few columns of them (50 MB appended to 5 GB: 57 s compiled, 51 s interpreted).
    """
    is_small = read_bytes < SMALL_INPUT_BYTES and held_bytes < MUCH_HELD_BYTES
    settings = INTERPRET if is_small else COMPILE
    for key, value in {**settings, **WRITE}.items():
        # A shared server may refuse settings that are not per session. The audit is then slower, with the same result.
        with suppress(PySparkException):
            spark.conf.set(key, value)
    for key in INTERPRET.keys() - settings.keys():
        # Set for a small audit before this one in the same session.
        with suppress(PySparkException):
            if spark.conf.get(key, None) == INTERPRET[key]:
                spark.conf.unset(key)


#: Below both limits, plans are interpreted.
SMALL_INPUT_BYTES = 64 << 20
MUCH_HELD_BYTES = 16 << 30
INTERPRET = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Adaptive execution plans again after every stage, and every shuffle partition is a task.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # A broadcast is a job of its own. Rows of one partition are joined where they are (`spark.joins`).
    BROADCAST_LIMIT: NEVER,
    "spark.sql.leafNodeDefaultParallelism": "1",
    # Every query prints its plan for a web page. The short form names it only once.
    "spark.sql.ui.explainMode": "simple",
}
COMPILE = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}

#: A run writes only its own partition, in one or two kinds of files, so rows need not be sorted by partition first. The sort takes
#: half of a large write.
WRITE = {
    "spark.sql.maxConcurrentOutputFileWriters": "3",
    # Spark's default, INT96, stores nanoseconds, and other readers wrap values beyond their range (years after 2262).
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}

#: Settings that enable Delta tables. They belong to a server, not to one of its sessions.
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
#: Timestamps are shown in UTC.
SHOWN = {"spark.sql.session.timeZone": "UTC"}

#: The settings of `conf/spark-defaults.conf` (see there for reasons) without which a session on one machine is slow or noisy.
ALONE = {
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.shuffle.partitions": "8",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
