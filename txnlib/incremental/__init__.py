"""Resuming from an earlier run. Only the pipeline imports this package.

In reading order:

* `resumption`: the part of a run that resumes
* `earlier_run`, `resumed_segments`: the run to resume from, and the segments of which only appended bytes are read
* `appended_partitions`, `resumed_spans`: the partitions whose windows resume, and how they do
* `carried_rows`, `resumed_tables`: rows carried over, and the tables that have some
* `linked_tables`, `linked_files`: files of the earlier run, linked instead of written again
"""

from __future__ import annotations

from txnlib.incremental.resumption import Resumption
from txnlib.incremental.earlier_run import finished_runs, resume_from, read_segments
from txnlib.incremental.linked_tables import remove_temporary_files

__all__ = [
    "Resumption",
    "finished_runs",
    "resume_from",
    "read_segments",
    "remove_temporary_files",
]
