"""Rules over whole tables that find oddities."""

from __future__ import annotations

from txnlib.spark.findings.findings import findings

__all__ = [
    "findings",
]
