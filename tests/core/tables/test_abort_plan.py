"""The order of the steps of a plan, and what one step ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from txnlib.core.rows import IdKey, OfProducer
from txnlib.core.tables.abort_plan import PlannedStep, abort_plan
from txnlib.core.verdicts.plan_step import OpenTransaction, WholeTransaction

AS_OF, MAX_TIMEOUT = 10_000_000, 900_000
LATE = OpenTransaction(
    topic="orders",
    partition=0,
    producer_id=7,
    producer_epoch=1,
    coordinator_epoch=None,
    start_offset=50,
    transactional_id="billing-7",
    verdict="LATE",
    reason="OVERDUE",
    safe_to_abort=False,
    coordinator_partition=3,
    coordinator_state="Ongoing",
    records=12,
    blocked_offsets=100,
    blocks_since_ms=AS_OF - 1_000,
)
HANGING = replace(
    LATE,
    verdict="HANGING",
    reason="WRITTEN_AFTER_MARKER",
    safe_to_abort=True,
    abort_command="abort",
    transactional_id=None,
)
LATER = replace(HANGING, safe_to_abort=False)
UNKNOWN = replace(LATE, verdict="UNKNOWN", reason="CAPTURE_SKEW")
OPEN = replace(LATE, verdict="OPEN", reason="EXPECTED")


def steps(
    *opened: OpenTransaction, wholes: Sequence[WholeTransaction] = (), asked: list[str] | None = None
) -> list[PlannedStep]:
    def answer(ids: Sequence[IdKey]) -> Sequence[WholeTransaction]:
        if asked is not None:
            asked.extend(each.transactional_id for each in ids)
        return wholes

    return list(
        abort_plan(opened, answer, as_of_ms=AS_OF, transaction_max_timeout_ms=MAX_TIMEOUT, kafka_version="3.9.1")
    )


def test_a_coordinator_ends_a_transaction_everywhere_in_one_step() -> None:
    (step,) = steps(LATE, replace(LATE, partition=2, start_offset=9), replace(LATE, partition=10, blocked_offsets=300))
    assert (step.action, step.partition, step.blocked_offsets) == ("END_AT_COORDINATOR", 10, 300)
    assert step.places == ("orders-0 offset 50", "orders-10 offset 50", "orders-2 offset 9")


def test_other_transactions_are_other_steps() -> None:
    assert len(steps(LATE, replace(LATE, producer_id=8), replace(LATE, transactional_id="billing-8"))) == 3


def test_what_unblocks_consumers_most_comes_first_in_any_order_of_rows() -> None:
    expected = [
        replace(HANGING, partition=5, blocked_offsets=10),
        replace(HANGING, partition=7, blocked_offsets=0),
        replace(HANGING, partition=6, blocked_offsets=None),
        replace(LATE, partition=1, producer_id=1, blocked_offsets=300),
        replace(LATE, partition=2, producer_id=2, blocks_since_ms=None),
        replace(LATE, partition=3, producer_id=3, blocks_since_ms=1),
        replace(LATE, partition=2, producer_id=4, start_offset=49, blocks_since_ms=1, topic="payments"),
        replace(LATE, partition=4, producer_id=5, blocks_since_ms=1, topic="payments"),
        # Frees its partition at its instant, or once more copies tell.
        replace(LATER, partition=9, safe_from_ms=AS_OF + 1),
        replace(LATER, partition=10, safe_from_ms=AS_OF + 2, blocked_offsets=900),
        replace(UNKNOWN, partition=8, producer_id=8, blocked_offsets=900),
        # Wait for another transaction on their partition, so that they free nobody yet.
        replace(
            HANGING, partition=4, producer_id=6, start_offset=60, blocked_offsets=900, topic="payments", holds=False
        ),
        replace(LATER, partition=4, producer_id=9, start_offset=70, safe_from_ms=AS_OF, holds=False),
        # Nobody can do anything.
        replace(LATER, partition=11, abort_command=None),
    ]
    for seed in range(50):
        found = steps(*Random(seed).sample(expected, len(expected)))
        assert [(step.topic, step.partition, step.producer_id) for step in found] == [
            (each.topic, each.partition, each.producer_id) for each in expected
        ]
        assert [step.number for step in found] == list(range(1, len(expected) + 1))


def test_a_transaction_in_time_needs_no_step() -> None:
    (step,) = steps(replace(OPEN, start_offset=40), replace(HANGING, holds=False))
    assert (step.verdict, step.is_holder) == ("HANGING", False)


def test_a_step_that_must_wait_says_until_when() -> None:
    now, later = steps(HANGING, replace(LATER, partition=1, safe_from_ms=AS_OF + 1))
    assert (now.not_before_ms, later.not_before_ms) == (None, AS_OF + 1)


def test_a_step_is_that_of_the_place_where_its_transaction_holds_consumers() -> None:
    behind = replace(LATE, partition=1, blocked_offsets=900, holds=False)
    (step,) = steps(replace(OPEN, partition=1, start_offset=1), behind, LATE)
    assert (step.partition, step.is_holder, step.places) == (0, True, ("orders-0 offset 50", "orders-1 offset 50"))


def test_a_two_phase_commit_needs_somebody_once_no_other_transaction_could_be_as_old() -> None:
    prepared = replace(OPEN, reason="TWO_PHASE_COMMIT", transaction_start_ms=AS_OF - MAX_TIMEOUT, blocks_since_ms=1)
    assert steps(prepared) == []
    assert len(steps(replace(prepared, transaction_start_ms=AS_OF - MAX_TIMEOUT - 1))) == 1
    assert len(steps(replace(prepared, transaction_start_ms=None))) == 1, "by its partition"
    assert steps(replace(prepared, transaction_start_ms=None, blocks_since_ms=None)) == []
    assert steps(replace(OPEN, transaction_start_ms=1)) == []


def test_a_step_says_what_the_newest_transaction_that_holds_its_place_loses() -> None:
    held = (OfProducer("orders", 0, 7),)
    newest = WholeTransaction(
        "billing-7", 3, 9, held_partitions=3, held_records=30, committed_partitions=1, aborted_partitions=0, held=held
    )
    older = replace(newest, transaction_number=8, held_records=99)
    other = replace(newest, transaction_number=10, transactional_id="billing-8")
    asked: list[str] = []
    (step, *_) = steps(LATE, HANGING, OPEN, wholes=[newest, older, other], asked=asked)
    assert asked == ["billing-7"], "what is in time, or has no id, is not asked for"
    (effect,) = {step.effect for step in steps(LATE, wholes=[newest, older, other])}
    assert effect == "drops 30 records on 3 partitions; 1 other partition stays committed"
    (step,) = steps(replace(LATE, partition=1), wholes=[newest])
    assert step.effect == "drops 12 records here, from offset 50 on"
