"""How small frames are joined with others."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from txnlib.spark.session_settings import setting

#: The setting that stops broadcasts, and its value. `delta.tuning` sets it for a small audit.
BROADCAST_LIMIT: Final = "spark.sql.autoBroadcastJoinThreshold"
NEVER: Final = "-1"


def broadcast(frame: DataFrame) -> DataFrame:
    """The frame, marked to be sent whole to every task of a join.

    In a session without broadcasts, it is not marked. All rows of a small audit are in one partition, so a join needs neither
    a broadcast, which is a job of its own, nor a shuffle.
    """
    return frame if _is_stopped(frame.sparkSession) else F.broadcast(frame)


def broadcasting(spark: SparkSession, *names: str) -> str:
    """The hint of a SELECT that sends relations whole to every task of a join, or none."""
    return "" if _is_stopped(spark) else f"/*+ BROADCAST({', '.join(names)}) */"


def _is_stopped(spark: SparkSession) -> bool:
    return setting(spark, BROADCAST_LIMIT) == NEVER
