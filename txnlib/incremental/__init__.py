"""Resuming from an earlier run: which files, partitions and rows are unchanged."""

from __future__ import annotations

from txnlib.incremental.earlier_run import finished_runs, go_on_from, read_new
from txnlib.incremental.resumed_segments import continue_segments
from txnlib.incremental.appended_partitions import grown_partitions
from txnlib.incremental.resumed_spans import continued_spans

__all__ = [
    "finished_runs",
    "go_on_from",
    "read_new",
    "continue_segments",
    "grown_partitions",
    "continued_spans",
]
