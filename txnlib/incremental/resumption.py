"""How a run resumes from an earlier one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from txnlib.delta.store import RunStore
from txnlib.incremental.appended_partitions import AppendedPartition, appended_partitions
from txnlib.incremental.carried_rows import ResumedTable, RunTables
from txnlib.incremental.earlier_run import read_segments
from txnlib.incremental.linked_tables import LinkedTables
from txnlib.incremental.resumed_segments import resumed_frame
from txnlib.incremental.resumed_tables import resume_partition_transactions, resume_producer_spans, resume_record_batches
from txnlib.readers.capture import Capture

#: Fewest bytes of resumed segments for which resuming the windows pays. Below this, running them over all batches takes no longer
#: than finding out where to resume.
MIN_RESUMED_BYTES: Final = 64 << 20


@dataclass(slots=True)
class Resumption:
    """Makes the tables of a run that resumes from an earlier one. Each has the rows that a full audit would give it."""

    spark: SparkSession
    #: The capture, with its resumed segments (`earlier_run.resume_from`).
    capture: Capture
    earlier: RunTables
    #: The tables of this run.
    tables: RunStore
    #: The partitions to which batches were only appended, once `find_appended_partitions` has found them.
    appended: tuple[AppendedPartition, ...] = ()
    _linked: LinkedTables = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._linked = LinkedTables(self.tables)

    def read_segments(self) -> DataFrame:
        """`segments` of the capture, including what the earlier run has already read."""
        return read_segments(self.spark, self.capture, self.earlier)

    def find_appended_partitions(self) -> None:
        """Finds the partitions whose windows resume, if that pays. Reads `segments`, `coverage` and `producer_snapshots`."""
        if self.capture.size - self.capture.size_to_read < MIN_RESUMED_BYTES:
            return
        found = appended_partitions(
            self.tables.read("segments"),
            self.tables.read("coverage"),
            self.tables.read("producer_snapshots"),
            self.earlier.read("segments"),
            self.earlier.read("coverage"),
            self.earlier.read("producer_snapshots"),
            resumed_frame(self.spark, self.capture),
        )
        self.appended = tuple((row["topic"], row["partition"], row["source"], row["appended_from"]) for row in found.collect())

    def write(self, name: str) -> bool:
        """Writes a table with rows carried over. Returns False, without writing, if all its rows must be made."""
        table = self._resumed(name)
        if table is None:
            return False
        self._linked.write(name, table)
        return True

    def _resumed(self, name: str) -> ResumedTable | None:
        if name == "record_batches" and self.capture.resumed:
            return resume_record_batches(self.spark, self.capture, self.earlier)
        if name == "producer_spans" and self.appended:
            new_batches = self._linked.read_new("record_batches")
            return resume_producer_spans(self.spark, self.capture, self.earlier, self.tables, self.appended, new_batches)
        if name == "partition_transactions" and self.appended:
            new_spans = self._linked.read_new("producer_spans")
            return resume_partition_transactions(self.spark, self.earlier, self.appended, new_spans)
        return None
