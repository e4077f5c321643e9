"""The engine of an audit: the embedded one, or Spark. Nothing else asks which of them runs."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Final, Protocol

from pyspark.sql import DataFrame, SparkSession

from txnlib.engine.store import Store
from txnlib.errors import UsageError
from txnlib.readers.capture import Capture
from txnlib.spark.capture_source import CaptureSource

EMBEDDED: Final = "embedded"
SPARK: Final = "spark"
ENGINES: Final = (EMBEDDED, SPARK)
#: Variables of the environment that say that there is a Spark: `spark-submit`, a cluster, a server, Databricks.
_OF_SPARK: Final = ("PYSPARK_GATEWAY_PORT", "SPARK_MASTER", "SPARK_REMOTE", "DATABRICKS_RUNTIME_VERSION")


class Engine(Protocol):
    """What carries out queries and keeps tables."""

    name: str
    spark: SparkSession

    @property
    def version(self) -> str:
        """Its name and version, for people."""

    def store(self, output: str | None, schema: str | None) -> Store:
        """The tables of an output."""

    def source(self, capture: Capture, earlier_parts: DataFrame | None = None) -> CaptureSource:
        """The rows of a capture. `earlier_parts`: what an earlier run has read of its files."""

    def release(self) -> None:
        """Gives back what an audit changed. Frames can still be read."""


def choose(asked: str | None, schema: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """The name of the engine: as asked for, else Spark where somebody named one, else the embedded engine.

    Raises UsageError for a catalog on the embedded engine.
    """
    if asked == EMBEDDED and schema is not None:
        raise UsageError("--schema needs Spark, which has the catalog: --engine spark")
    if asked is not None:
        return asked
    is_submitted = "--master" in environment.get("PYSPARK_SUBMIT_ARGS", "")
    is_named = is_submitted or any(environment.get(name) for name in _OF_SPARK)
    return SPARK if schema is not None or is_named or _has_session() else EMBEDDED


def _has_session() -> bool:
    """Whether a session of Spark is active, as in a notebook."""
    if "pyspark.sql" not in sys.modules:
        return False
    active: Any = SparkSession.getActiveSession()
    return active is not None and not getattr(active, "is_embedded", False)


def open_engine(asked: str | None = None, schema: str | None = None) -> Engine:
    """The engine, started if need be. Raises UsageError, EngineError or MissingExtraError."""
    if choose(asked, schema) == EMBEDDED:
        from txnlib.engine.embedded import running

        return running(is_asked_for=asked == EMBEDDED)
    from txnlib.engine.spark import SparkEngine

    return SparkEngine()
