"""The cluster's own metadata log: who led what, when; settings, brokers, and producer ids."""

from __future__ import annotations

from txnlib.spark.metadata.metadata_log import metadata_log, effective
from txnlib.spark.metadata.validity import since, until
from txnlib.spark.metadata.partition_assignments import partition_assignments, topics
from txnlib.spark.metadata.cluster_settings import cluster_settings
from txnlib.spark.metadata.broker_sessions import broker_sessions
from txnlib.spark.metadata.producer_id_blocks import producer_id_blocks

__all__ = [
    "metadata_log",
    "effective",
    "since",
    "until",
    "partition_assignments",
    "topics",
    "cluster_settings",
    "broker_sessions",
    "producer_id_blocks",
]
