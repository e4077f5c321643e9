"""How a run continues an earlier one: it writes only what is new, and says which earlier rows still count."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import PRODUCER_ID_EXPIRATION_MS
from txnlib.engine.store import RunStore
from txnlib.incremental.earlier_run import EarlierRun, resumed_frame
from txnlib.incremental.resumed_spans import (
    APPENDED,
    AppendedPartition,
    appended_partitions,
    not_ended_before,
    resumed_spans,
)
from txnlib.readers.capture import Capture
from txnlib.readers.file_parts import first_segments
from txnlib.spark.frames import local_rows
from txnlib.spark.joins import broadcast
from txnlib.spark.producers.partition_transactions import partition_transactions
from txnlib.spark.schemas import COPY

#: Fewest bytes of resumed segments for which resuming the windows pays. Below this, running them over all batches takes
#: no longer than finding out where to resume.
MIN_RESUMED_BYTES: Final = 64 << 20
#: The copies whose earlier rows count: columns of `coverage`.
_COUNTED: Final = "topic string, partition int, source string, batches_since int, batches_from long"


@dataclass(slots=True)
class Resumption:
    """What a run has of an earlier one. With it, each of its tables has the rows that a full audit would give it."""

    spark: SparkSession
    #: The capture, with its resumed segments (`earlier_run.resume_from`).
    capture: Capture
    earlier: EarlierRun
    #: The tables of this run.
    tables: RunStore
    #: The partitions to which batches were only appended, once `find_appended_partitions` has found them.
    appended: tuple[AppendedPartition, ...] = ()
    #: The copies of which only appended bytes are read. Columns: COPY, batches_since, batches_from.
    copies: DataFrame = field(init=False)
    #: The setting with which the windows resume.
    producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS

    def __post_init__(self) -> None:
        first = first_segments(self.capture)
        resumed = {(each.topic, each.partition, each.source) for each in self.capture.resumed}
        since = {tuple(row[name] for name in COPY): row["batches_since"] for row in self._nights("batches_since")}
        rows = [(*copy, since.get(copy, self.earlier.run.night), first[copy]) for copy in sorted(resumed)]
        self.copies = local_rows(self.spark, rows, _COUNTED)
        self.tables.count_earlier_rows("record_batches", self.copies)

    def _nights(self, column: str) -> list[dict[str, object]]:
        """The copies that the earlier run resumed, too: for each, since which night rows of still older runs count."""
        found = self.earlier.tables.read("coverage").where(F.col(column).isNotNull()).select(*COPY, column).collect()
        return [row.asDict() for row in found]

    def find_appended_partitions(self, producer_id_expiration_ms: int) -> None:
        """Finds the partitions whose windows resume, if that pays, and notes them in `coverage`.

        None resume if the setting has changed, because the earlier run may have forgotten other producers.

        Reads `segments`, `coverage` and `producer_snapshots`.
        """
        self.producer_id_expiration_ms = producer_id_expiration_ms
        is_changed = self.earlier.run.producer_id_expiration_ms != producer_id_expiration_ms
        if is_changed or self.capture.size - self.capture.size_to_read < MIN_RESUMED_BYTES:
            return
        earlier, coverage = self.earlier.tables, self.tables.read("coverage")
        found = appended_partitions(
            self.tables.read("segments"),
            coverage,
            self.tables.read("producer_snapshots"),
            earlier.read("segments"),
            earlier.read("coverage"),
            earlier.read("producer_snapshots"),
            resumed_frame(self.spark, self.capture),
        )
        self.appended = tuple(
            (row["topic"], row["partition"], row["source"], row["appended_from"]) for row in found.collect()
        )
        if self.appended:
            self.tables.write("coverage", self._with_spans_since(coverage))

    def _with_spans_since(self, coverage: DataFrame) -> DataFrame:
        since = {(row["topic"], row["partition"]): row["spans_since"] for row in self._nights("spans_since")}
        rows = [
            (topic, partition, source, since.get((topic, partition), self.earlier.run.night))
            for topic, partition, source, _ in self.appended
        ]
        nights = local_rows(self.spark, rows, "topic string, partition int, source string, spans_since int")
        return coverage.drop("spans_since").join(broadcast(nights), on=list(COPY), how="left")

    def new_rows(self, name: str) -> DataFrame | None:
        """The rows of a table that are not in earlier runs; None if all rows must be made."""
        if not self.appended:
            return None
        if name == "producer_spans":
            return self._new_spans()
        if name == "partition_transactions":
            new_spans = self.tables.read_written("producer_spans")
            return partition_transactions(not_ended_before(new_spans, self._appended_frame()))
        return None

    def _new_spans(self) -> DataFrame:
        new_batches = self.tables.read_written("record_batches")
        partitions = {(topic, partition) for topic, partition, *_ in self.appended}
        # In all other partitions every batch is new, unless the run resumed some of their segments.
        are_all_new = all((each.topic, each.partition) in partitions for each in self.capture.resumed)
        return resumed_spans(
            new_batches if are_all_new else self.tables.read("record_batches"),
            new_batches,
            self.tables.read("producer_snapshots"),
            self.tables.read("coverage"),
            self.earlier.tables.read("producer_spans"),
            self._appended_frame(),
            producer_id_expiration_ms=self.producer_id_expiration_ms,
        )

    def _appended_frame(self) -> DataFrame:
        return local_rows(self.spark, self.appended, APPENDED)
