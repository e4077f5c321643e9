"""`abort_plan`: the steps that end the open transactions, in order.

`core.verdicts.plan_step` has the content of a step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from txnlib.core.rows import IdKey, row_of
from txnlib.core.schema import row_class
from txnlib.core.verdicts.plan_step import (
    IN_TIME,
    NO_ACTION,
    OF_WHOLE_TRANSACTION,
    Action,
    OpenTransaction,
    Plan,
    WholeTransaction,
    needs_somebody,
    plan,
)

PlannedStep: Final = row_class("abort_plan")


#: The transactions, of the ids asked for, that are open on some partition. Rows: `WholeTransaction`.
WHOLE_TRANSACTIONS: Final = """
SELECT /*+ BROADCAST(ids) */ transactional_id, coordinator_partition, transaction_number,
  count_if(outcome = 'OPEN') AS held_partitions, sum(records) FILTER (WHERE outcome = 'OPEN') AS held_records,
  count_if(outcome = 'COMMIT') AS committed_partitions, count_if(outcome = 'ABORT') AS aborted_partitions,
  collect_list(struct(topic, partition, producer_id)) FILTER (WHERE outcome = 'OPEN') AS held
FROM {transaction_outcomes} LEFT SEMI JOIN {asked} AS ids USING (transactional_id)
WHERE transaction_number IS NOT NULL
GROUP BY transactional_id, coordinator_partition, transaction_number
HAVING count_if(outcome = 'OPEN') > 0
"""


@dataclass(frozen=True, slots=True)
class _PlanCandidate:
    """An open transaction that somebody must end, and its plan."""

    of: OpenTransaction
    plan: Plan

    @property
    def is_holder(self) -> bool:
        return self.of.holds is not False

    @property
    def not_before_ms(self) -> int | None:
        """The instant until which the step has to wait, if only time is missing."""
        return self.of.safe_from_ms if self.plan.action in IN_TIME else None

    @property
    def step(self) -> tuple[object, ...]:
        """The key of the step: equal for all partitions of a transaction if its coordinator ends them at once."""
        place = (
            () if self.plan.action in OF_WHOLE_TRANSACTION else (self.of.topic, self.of.partition, self.of.start_offset)
        )
        return (self.plan.action, self.of.transactional_id, self.of.producer_id, *place)

    @property
    def order(self) -> tuple[object, ...]:
        """Sort key within a step: transactions that hold a partition first, then those that block most offsets."""
        blocks = self.of.blocked_offsets is None, -(self.of.blocked_offsets or 0)
        return not self.is_holder, blocks, self.of.topic, self.of.partition, self.of.start_offset

    @property
    def order_in_plan(self) -> tuple[object, ...]:
        """Sort key of the step in the plan: first steps that free a partition, now or at an instant; then those for
        transactions that wait behind others; then those that nobody can take."""
        is_waiting, blocks, *_ = self.order
        of, action, instant = self.of, self.plan.action, self.not_before_ms
        is_useless = action in NO_ACTION or (action is Action.WAIT and instant is None)
        stage = "time" if action in IN_TIME else "copies" if action is Action.CAPTURE_MORE else "now"
        first = is_useless, is_waiting, ("now", "time", "copies").index(stage), instant is None, instant or 0, action
        return *first, blocks, of.blocks_since_ms or 0, of.topic, of.partition, of.producer_id, of.start_offset


def abort_plan(
    open_transactions: Sequence[OpenTransaction],
    whole_transactions: Callable[[Sequence[IdKey]], Sequence[WholeTransaction]],
    *,
    as_of_ms: int,
    transaction_max_timeout_ms: int,
    kafka_version: str | None,
) -> Iterator[Any]:
    """A row for each step; steps that unblock consumers come first.

    A step that the coordinator takes for all partitions of a transaction at once is one row.
    """
    needy = [
        each
        for each in open_transactions
        if needs_somebody(
            each.verdict,
            each.reason,
            each.transaction_start_ms,
            each.blocks_since_ms,
            as_of_ms,
            transaction_max_timeout_ms,
        )
    ]
    ids = sorted({each.transactional_id for each in needy if each.transactional_id is not None})
    ordered = sorted(
        whole_transactions(list(map(IdKey, ids))),
        key=lambda whole: (whole.transaction_number, whole.coordinator_partition),
    )
    # Transactional id, partition and producer id -> the newest transaction that holds the partition.
    wholes: dict[tuple[str | None, str, int, int], WholeTransaction] = {
        (whole.transactional_id, at.topic, at.partition, at.producer_id): whole
        for whole in ordered
        for at in whole.held
    }
    steps: dict[tuple[object, ...], list[_PlanCandidate]] = defaultdict(list)
    for each in needy:
        planned = plan(
            each, kafka_version, wholes.get((each.transactional_id, each.topic, each.partition, each.producer_id))
        )
        if planned is not None:
            candidate = _PlanCandidate(each, planned)
            steps[candidate.step].append(candidate)
    firsts = [(min(members, key=lambda each: each.order), members) for members in steps.values()]
    for number, (first, members) in enumerate(sorted(firsts, key=lambda step: step[0].order_in_plan), 1):
        places = {f"{each.of.topic}-{each.of.partition} offset {each.of.start_offset}" for each in members}
        yield row_of(
            PlannedStep,
            first.of,
            first.plan,
            as_of_ms=as_of_ms,
            number=number,
            action=first.plan.action.name,
            is_holder=first.is_holder,
            places=tuple(sorted(places)),
            not_before_ms=first.not_before_ms,
        )
