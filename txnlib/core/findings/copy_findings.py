"""Findings about copies of a partition that disagree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from txnlib.core.finding import Finding, Severity, Topic
from txnlib.core.findings.finding_row import FindingRow, found, known
from txnlib.core.rows import OfProducer, OnPartition

CAPTURE_AGAIN: Final = (
    "abort nothing on the strength of this log. Capture again. If the two still disagree, restart or move the leader,"
    " so that it loads its state from the log, and report the problem to Apache Kafka with both captures."
)
COPIES_DISAGREE: Final = Finding(
    name="COPIES_DISAGREE",
    severity=Severity.ERROR,
    topic=Topic.FILES,
    meaning=(
        "Copies of a partition have different batches at the same offset below their high watermarks: there was an"
        " unclean election, or the files are from different clusters."
    ),
    advice=(
        "there was an unclean election, or the files are from different clusters. Decide which replica is right"
        " before you rely on any other result for the partition."
    ),
)
PRODUCER_SNAPSHOT_DISAGREES: Final = Finding(
    name="PRODUCER_SNAPSHOT_DISAGREES",
    severity=Severity.ERROR,
    topic=Topic.FILES,
    meaning=(
        "A producer snapshot of a copy has a producer with nothing open where the log of that copy shows its"
        " transaction open: the marker was there when the broker took the snapshot, or the two are of different"
        " logs."
    ),
    advice=CAPTURE_AGAIN,
)
OPEN_ON_REPLICA: Final = Finding(
    name="OPEN_ON_REPLICA",
    severity=Severity.WARNING,
    topic=Topic.FILES,
    meaning=(
        "A replica has a transaction open that the log of the leader does not show: retention or compaction removed"
        " its records there, or its marker before the replica read it. `find-hanging --broker-id` of its broker"
        " lists it. If that broker becomes the leader, read_committed consumers stop there."
    ),
    advice=(
        "move the replica to another broker and back (kafka-reassign-partitions.sh): a new replica builds its state"
        " from the log of the leader."
    ),
)


#: Most copies that the evidence shows.
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class CopiedRow:
    """A batch, or a coordinator's record, in one copy: what is compared of it, as JSON."""

    source: str
    read: str


@dataclass(frozen=True, slots=True)
class DifferingCopies(OnPartition):
    """The first offset of a partition at which its copies have different batches or records."""

    offset: int
    producer_id: int | None
    copies: tuple[CopiedRow, ...]
    #: Number of such offsets.
    count: int


def of_copies(differing: Iterable[DifferingCopies]) -> Iterator[FindingRow]:
    """A finding for each partition whose copies disagree."""
    for each in differing:
        copies = sorted((copy.source, copy.read) for copy in each.copies)
        more = f"; and {each.count - 1} more offsets" if each.count > 1 else ""
        shown = "; ".join(f"{source} {read}" for source, read in copies[:_SHOWN])
        yield found(COPIES_DISAGREE, shown + more, each)


@dataclass(frozen=True, slots=True)
class ClosedInSnapshot(OfProducer):
    """An open transaction, and a producer snapshot of its copy that has the producer with nothing open, or with
    another transaction."""

    start_offset: int
    snapshot_offset: int


def of_snapshots(closed: Iterable[ClosedInSnapshot]) -> Iterator[FindingRow]:
    """The finding about each transaction. Kafka: `ProducerStateManager.takeSnapshot`."""
    for each in closed:
        says = f"nothing of it is open in the snapshot at offset {each.snapshot_offset}"
        yield found(PRODUCER_SNAPSHOT_DISAGREES, says, each, offset=each.start_offset)


@dataclass(frozen=True, slots=True)
class OpenOnReplica(OfProducer):
    """A transaction that the newest producer snapshot of a replica has open, and the log of the leader does not
    show."""

    broker: str | None
    snapshot_offset: int
    producer_epoch: int
    first_offset: int


def of_replicas(opened: Iterable[OpenOnReplica]) -> Iterator[FindingRow]:
    """The finding about each transaction. Kafka: `ProducerStateManager.truncateAndReload`; a new replica has no such
    snapshot."""
    for each in opened:
        says = (
            f"open on broker {known(each.broker)}, by its snapshot at offset {each.snapshot_offset}: epoch"
            f" {each.producer_epoch}"
        )
        yield found(OPEN_ON_REPLICA, says, each, offset=each.first_offset)
