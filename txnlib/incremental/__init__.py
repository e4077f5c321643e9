"""Resuming from an earlier run. Only the pipeline imports this package.

In reading order:

* `resumption`: what a run has of the run that it continues
* `earlier_run`: the run to continue, and the segments of which only appended bytes are read
* `resumed_spans`: the partitions whose windows resume, and how they do
"""

from __future__ import annotations

from txnlib.incremental.resumption import Resumption
from txnlib.incremental.earlier_run import EarlierRun, history_of, resume_from, resumed_source, runs_to_continue

__all__ = ["Resumption", "EarlierRun", "history_of", "resume_from", "resumed_source", "runs_to_continue"]
