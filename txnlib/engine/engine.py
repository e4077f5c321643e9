"""The engine of an audit: the embedded one, or Spark. Nothing else asks which of them runs."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import SparkSession

from txnlib.engine.choice import EMBEDDED, choose, program_with_a_file
from txnlib.engine.store import Store
from txnlib.readers.capture import Capture
from txnlib.spark.capture_source import CaptureSource


class Engine(Protocol):
    """What carries out queries and keeps tables."""

    name: str
    spark: SparkSession
    #: How many tables it makes at a time.
    steps_at_once: int

    def store(self, output: str | None, schema: str | None) -> Store:
        """The tables of an output."""

    def source(self, capture: Capture) -> CaptureSource:
        """The rows of a capture."""


def open_engine(asked: str | None = None, schema: str | None = None, *, is_shared: bool = False) -> Engine:
    """The engine, started if need be. Raises UsageError, EngineError or MissingExtraError.

    `is_shared`: on Spark, its frames are those of the session that users have, and not of one beside it.
    """
    with program_with_a_file():
        if choose(asked, schema) == EMBEDDED:
            from txnlib.engine.embedded import running

            return running(is_asked_for=asked == EMBEDDED)
        from txnlib.engine.spark import SparkEngine

        return SparkEngine(is_shared=is_shared)
