"""An audit: request, run, and the steps that make its tables."""

from __future__ import annotations

from txnlib.pipeline.audit_request import AuditRequest
from txnlib.pipeline.run import Run, open_run, reopen_run
from txnlib.pipeline.scheduler import TableStep, RunChange, carry_out
from txnlib.pipeline.tables import INGEST, RECONSTRUCT, REPORT, AUDIT
from txnlib.pipeline.audit import carry_out_steps, close
from txnlib.pipeline.run_lock import claim
from txnlib.pipeline.what_if import UnwrittenTables

__all__ = [
    "AuditRequest",
    "Run",
    "open_run",
    "reopen_run",
    "TableStep",
    "RunChange",
    "carry_out",
    "INGEST",
    "RECONSTRUCT",
    "REPORT",
    "AUDIT",
    "carry_out_steps",
    "close",
    "claim",
    "UnwrittenTables",
]
