"""Findings about ids that are used once and abandoned: transactional ids, and producer ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from txnlib.core.display import precise_time
from txnlib.core.finding import Finding, Severity, Topic
from txnlib.core.findings.finding_row import FindingRow, found
from txnlib.core.rows import OnPartition

_REUSE_IDS: Final = (
    "an application creates a new id for each use. Make it reuse its ids, because brokers keep every id in memory until"
    " it expires."
)
TRANSACTIONAL_IDS_NOT_REUSED: Final = Finding(
    name="TRANSACTIONAL_IDS_NOT_REUSED",
    severity=Severity.WARNING,
    topic=Topic.LEFT_BEHIND,
    meaning=(
        "An application abandons its transactional ids after one use. Coordinators keep each id until it expires."
        " The severity is INFO while there are few."
    ),
    advice=_REUSE_IDS,
)
PRODUCER_IDS_NOT_REUSED: Final = Finding(
    name="PRODUCER_IDS_NOT_REUSED",
    severity=Severity.WARNING,
    topic=Topic.LEFT_BEHIND,
    meaning=(
        "Producers of a partition wrote one batch each and were then abandoned. The broker keeps each producer"
        " until it expires. The severity is INFO while there are few."
    ),
    advice=_REUSE_IDS,
)


#: An id counts as abandoned if its application created a newer id at least this long after its last use. Instances that
#: start one after the other also create new ids while older ids wait for work, but rarely for an hour.
LEFT_BEHIND_AFTER_MS: Final = 3_600_000

#: Abandoned ids of an application from which the finding is a WARNING: more than a fleet that has just started has
#: instances.
MANY_TRANSACTIONAL_IDS: Final = 100
#: Abandoned producer ids on a partition from which the finding is a WARNING. Java clients are idempotent by default
#: since 3.0, so each server of a large fleet has a producer id.
MANY_PRODUCER_IDS: Final = 1_000
#: Below either number divided by this, there is no finding, because restarts abandon some ids. In between it is INFO.
FEW: Final = 10


@dataclass(frozen=True, slots=True)
class AbandonedIds:
    """The transactional ids of an application that were each used once, and abandoned."""

    application: str
    count: int
    from_ms: int
    to_ms: int
    #: Of these, the id that was used last, and its last record.
    coordinator_partition: int
    offset: int
    transactional_id: str


def of_abandoned_ids(applications: Iterable[AbandonedIds]) -> Iterator[FindingRow]:
    """A finding for each application that abandoned many."""
    for each in applications:
        if each.count >= MANY_TRANSACTIONAL_IDS // FEW:
            yield found(
                TRANSACTIONAL_IDS_NOT_REUSED,
                f"{each.count} transactional ids of application {each.application}, each initialised once and used for"
                f" at most one transaction, from {_between(each)}",
                each,
                severity=_severity(each.count, MANY_TRANSACTIONAL_IDS),
            )


@dataclass(frozen=True, slots=True)
class AbandonedProducers(OnPartition):
    """The producer ids on a partition that each wrote one batch, and were abandoned."""

    count: int
    from_ms: int
    to_ms: int
    #: Of these, the producer id that was used last, and its batch.
    producer_id: int
    offset: int


def of_abandoned_producers(partitions: Iterable[AbandonedProducers]) -> Iterator[FindingRow]:
    """A finding for each partition with many."""
    for each in partitions:
        if each.count >= MANY_PRODUCER_IDS // FEW:
            yield found(
                PRODUCER_IDS_NOT_REUSED,
                f"{each.count} producer ids with one batch each, by their clients' clocks from {_between(each)}",
                each,
                severity=_severity(each.count, MANY_PRODUCER_IDS),
            )


def _between(each: AbandonedIds | AbandonedProducers) -> str:
    return f"{precise_time(each.from_ms)} to {precise_time(each.to_ms)}"


def _severity(count: int, many: int) -> Severity:
    return Severity.WARNING if count >= many else Severity.INFO
