"""How small frames are joined with others."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
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
    is_stopped = setting(frame.sparkSession, BROADCAST_LIMIT) == NEVER
    return frame if is_stopped else F.broadcast(frame)
