"""Findings about ids that are used once and abandoned: transactional ids, and producer ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from txnlib.core.display import precise_time
from txnlib.core.finding import Finding, Severity, Topic
from txnlib.core.findings.rule import FindingRow, Rule, found
from txnlib.core.kafka.transaction_state import ACTIVE_STATES
from txnlib.core.rows import OnPartition
from txnlib.core.sql_text import IS_NEWEST, clock_ms, quoted_list

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


_ACTIVE: Final = quoted_list(state.kafka_name for state in ACTIVE_STATES)
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
    #: The id among them that was used last, and its last record.
    coordinator_partition: int
    offset: int
    transactional_id: str


def of_abandoned_ids(applications: Iterable[AbandonedIds]) -> Iterator[FindingRow]:
    """A finding for each application that abandoned many transactional ids."""
    for each in applications:
        if each.count >= MANY_TRANSACTIONAL_IDS // FEW:
            yield found(
                TRANSACTIONAL_IDS_NOT_REUSED,
                f"{each.count} transactional ids of application {each.application}, each initialised once and used for"
                f" at most one transaction, from {_between(each)}",
                each,
                severity=_severity(each.count, MANY_TRANSACTIONAL_IDS),
            )


#: The applications with several ids that were initialised only once. Only ids whose records begin with their first
#: initialisation count, so that no earlier record is missing.
ABANDONED_IDS: Final = Rule(
    of="coordinator_states",
    query=f"""
    WITH ids AS (
      SELECT transactional_id, coordinator_partition, min(used_ms) AS first_ms, max(used_ms) AS last_ms,
        max(offset) AS last_offset, count_if(state = 'Empty') AS initialisations,
        coalesce(max(transaction_number), 0) AS transactions,
        coalesce(max_by(state IN {_ACTIVE}, offset), FALSE) AS is_active
      FROM (SELECT *, if(NOT is_tombstone, {clock_ms("timestamp_ms")}, NULL) AS used_ms FROM {{coordinator_states}})
      GROUP BY transactional_id, coordinator_partition
      HAVING min_by(state = 'Empty' AND producer_epoch = 0, offset)
    ), replaced AS (
      SELECT *, max(first_ms) OVER (PARTITION BY application) AS newest_ms
      FROM ids
      JOIN (SELECT transactional_id, coordinator_partition, application FROM {{transactional_ids}})
        USING (transactional_id, coordinator_partition)
    ), applications AS (
      SELECT application, count(*) AS count, min(first_ms) AS from_ms, max(last_ms) AS to_ms,
        max_by(struct(coordinator_partition, last_offset AS offset, transactional_id), last_ms) AS newest
      FROM replaced
      WHERE initialisations = 1 AND transactions <= 1 AND NOT is_active
        AND last_ms + {LEFT_BEHIND_AFTER_MS} <= newest_ms
      GROUP BY application
    )
    SELECT application, count, from_ms, to_ms, newest.coordinator_partition, newest.offset, newest.transactional_id
    FROM applications WHERE count > 1
    """,
    judge=of_abandoned_ids,
)


@dataclass(frozen=True, slots=True)
class AbandonedProducers(OnPartition):
    """The producer ids on a partition that each wrote one batch, and were abandoned."""

    count: int
    from_ms: int
    to_ms: int
    #: The producer id among them that was used last, and its batch.
    producer_id: int
    offset: int


def of_abandoned_producers(partitions: Iterable[AbandonedProducers]) -> Iterator[FindingRow]:
    """A finding for each partition with many abandoned producer ids."""
    for each in partitions:
        if each.count >= MANY_PRODUCER_IDS // FEW:
            yield found(
                PRODUCER_IDS_NOT_REUSED,
                f"{each.count} producer ids with one batch each, by their clients' clocks from {_between(each)}",
                each,
                severity=_severity(each.count, MANY_PRODUCER_IDS),
            )


#: The partitions with producer ids that wrote outside of transactions, one batch, of epoch 0, from sequence 0 on.
ABANDONED_PRODUCERS: Final = Rule(
    of="producer_spans",
    query=f"""
    WITH newest AS (
      SELECT topic, partition, producer_id, state.last_offset AS offset, {clock_ms("state.last_timestamp")} AS at_ms
      FROM {{producer_spans}}
      WHERE {IS_NEWEST} AND state.producer_epoch = 0 AND state.last_sequence = state.offset_delta
        AND marker_offset IS NULL AND first_offset IS NULL AND span = 0
    )
    SELECT topic, partition, count(*) AS count, min(at_ms) AS from_ms, max(at_ms) AS to_ms,
      max_by(producer_id, at_ms) AS producer_id, max_by(offset, at_ms) AS offset
    FROM (SELECT *, max(at_ms) OVER (PARTITION BY topic, partition) AS newest_ms FROM newest)
    WHERE at_ms + {LEFT_BEHIND_AFTER_MS} <= newest_ms
    GROUP BY topic, partition
    """,
    judge=of_abandoned_producers,
)


def _between(each: AbandonedIds | AbandonedProducers) -> str:
    return f"{precise_time(each.from_ms)} to {precise_time(each.to_ms)}"


def _severity(count: int, many: int) -> Severity:
    return Severity.WARNING if count >= many else Severity.INFO
