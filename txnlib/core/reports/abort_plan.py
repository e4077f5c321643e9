"""`abort_plan`: the steps that end the open transactions, in order.

`core.verdicts.abort_plan` has the content of a step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from txnlib.core.reports.keys import IdKey
from txnlib.core.verdicts.abort_plan import (
    IDLE,
    OF_WHOLE_TRANSACTION,
    OpenTransaction,
    Plan,
    PlanCommand,
    WholeTransaction,
    needs_somebody,
    plan,
)


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A row of `abort_plan`."""

    as_of_ms: int
    number: int
    action: str
    topic: str
    partition: int
    producer_id: int
    start_offset: int
    transactional_id: str | None
    coordinator_partition: int | None
    verdict: str
    reason: str
    do_not_abort_because: str | None
    before: tuple[PlanCommand, ...]
    command: str | None
    command_for_old_brokers: str | None
    after: tuple[PlanCommand, ...]
    effect: str | None
    notes: tuple[str, ...]
    is_holder: bool
    places: tuple[str, ...]
    blocked_offsets: int | None
    blocks_since_ms: int | None


@dataclass(frozen=True, slots=True)
class _PlanCandidate:
    """An open transaction that somebody must end, and its plan."""

    of: OpenTransaction
    plan: Plan
    is_holder: bool

    @property
    def step(self) -> tuple[object, ...]:
        """What one step ends: a coordinator ends a transaction on all its partitions at once."""
        place = () if self.plan.action in OF_WHOLE_TRANSACTION else (self.of.topic, self.of.partition, self.of.start_offset)
        return (self.plan.action, self.of.transactional_id, self.of.producer_id, *place)

    @property
    def blocks(self) -> tuple[bool, int]:
        """Sorts by blocked offsets, most first; an unknown number comes last."""
        return self.of.blocked_offsets is None, -(self.of.blocked_offsets or 0)

    @property
    def within_step(self) -> tuple[object, ...]:
        """Sorts the transactions of a step: first what determines the last stable offset of a partition, and blocks most."""
        return (not self.is_holder, self.blocks, self.of.topic, self.of.partition, self.of.start_offset)

    @property
    def within_plan(self) -> tuple[object, ...]:
        """Sorts the steps: those that unblock consumers come first."""
        return (
            *(self.plan.action in IDLE, not self.is_holder, self.plan.action, self.blocks, self.of.blocks_since_ms or 0),
            *(self.of.topic, self.of.partition, self.of.producer_id, self.of.start_offset),
        )


def abort_plan(
    open_transactions: Sequence[OpenTransaction],
    whole_transactions: Callable[[Sequence[IdKey]], Sequence[WholeTransaction]],
    *,
    as_of_ms: int,
    transaction_max_timeout_ms: int,
    kafka_version: str | None,
) -> Iterator[PlannedStep]:
    """A row for each step; steps that unblock consumers come first.

    A step that the coordinator takes for all partitions of a transaction at once is one row. On each partition, the open
    transaction with the lowest start offset determines the last stable offset. The others are waiting for it to end.
    """
    lowest: dict[tuple[str, int], int] = {}
    for each in open_transactions:
        place = each.topic, each.partition
        lowest[place] = min(lowest.get(place, each.start_offset), each.start_offset)
    needy = [
        each
        for each in open_transactions
        if needs_somebody(each.verdict, each.reason, _open_ms(each, as_of_ms), transaction_max_timeout_ms)
    ]
    wholes = _newest_of_places(whole_transactions([IdKey(name) for name in _ids_of(needy)]))
    steps: dict[tuple[object, ...], list[_PlanCandidate]] = defaultdict(list)
    for each in needy:
        planned = plan(each, kafka_version, wholes.get((each.transactional_id, each.topic, each.partition, each.producer_id)))
        if planned is not None:
            candidate = _PlanCandidate(each, planned, each.start_offset == lowest[each.topic, each.partition])
            steps[candidate.step].append(candidate)
    firsts = [(min(members, key=lambda each: each.within_step), members) for members in steps.values()]
    for number, (first, members) in enumerate(sorted(firsts, key=lambda step: step[0].within_plan), 1):
        yield _row(first, members, number, as_of_ms)


def _open_ms(transaction: OpenTransaction, as_of_ms: int) -> int | None:
    since_ms = transaction.blocks_since_ms if transaction.transaction_start_ms is None else transaction.transaction_start_ms
    return None if since_ms is None else as_of_ms - since_ms


def _ids_of(transactions: Sequence[OpenTransaction]) -> list[str]:
    return sorted({each.transactional_id for each in transactions if each.transactional_id is not None})


def _newest_of_places(wholes: Sequence[WholeTransaction]) -> dict[tuple[str | None, str, int, int], WholeTransaction]:
    """Transactional id, partition and producer id -> the newest transaction that holds the partition."""
    ordered = sorted(wholes, key=lambda whole: (whole.transaction_number, whole.coordinator_partition))
    return {(whole.transactional_id, at.topic, at.partition, at.producer_id): whole for whole in ordered for at in whole.held}


def _row(first: _PlanCandidate, members: Sequence[_PlanCandidate], number: int, as_of_ms: int) -> PlannedStep:
    of, planned = first.of, first.plan
    return PlannedStep(
        as_of_ms=as_of_ms,
        number=number,
        action=planned.action.name,
        topic=of.topic,
        partition=of.partition,
        producer_id=of.producer_id,
        start_offset=of.start_offset,
        transactional_id=of.transactional_id,
        coordinator_partition=of.coordinator_partition,
        verdict=of.verdict,
        reason=of.reason,
        do_not_abort_because=of.do_not_abort_because,
        before=planned.before,
        command=planned.command,
        command_for_old_brokers=planned.command_for_old_brokers,
        after=planned.after,
        effect=planned.effect,
        notes=planned.notes,
        is_holder=first.is_holder,
        places=tuple(sorted({f"{each.of.topic}-{each.of.partition} offset {each.of.start_offset}" for each in members})),
        blocked_offsets=of.blocked_offsets,
        blocks_since_ms=of.blocks_since_ms,
    )
