"""The broker of a copy, under its former name."""

from __future__ import annotations

from txnlib.spark.coverage.coverage import NO_LEADER, broker

__all__ = ["NO_LEADER", "broker"]
