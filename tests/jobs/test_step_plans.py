"""Which plans are interpreted, and which are compiled."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from txnlib.delta.tuning import Plans
from txnlib.pipeline.step_plans import Scale, plans_of, scale_of
from txnlib.pipeline.tables import AUDIT

MIB = 1 << 20


@pytest.mark.parametrize(
    ("size", "of_topics", "scale"),
    [
        (31 * MIB, {"__transaction_state": 31 * MIB}, Scale.ALL_FIT),
        (32 * MIB, {"orders": 32 * MIB}, Scale.BATCHES_DO_NOT),
        (1 << 50, {"orders": 1 << 50, "__transaction_state": 16 * MIB, "__consumer_offsets": 15 * MIB}, Scale.BATCHES_DO_NOT),
        (1 << 50, {"__transaction_state": 16 * MIB, "__consumer_offsets": 16 * MIB}, Scale.NONE_NEED),
    ],
)
def test_the_logs_of_coordinators_and_groups_decide_what_fits(size, of_topics, scale):
    assert scale_of(size, of_topics) is scale


@pytest.mark.parametrize(
    ("scale", "step", "new_rows", "rows", "plans"),
    [
        (Scale.ALL_FIT, "producer_spans", 1 << 40, 1 << 40, Plans.SMALL),
        (Scale.NONE_NEED, "brokers", 0, 0, Plans.MANY_ROWS),
        (Scale.BATCHES_DO_NOT, "producer_spans", 200_000, 1 << 40, Plans.FEW_ROWS),
        (Scale.BATCHES_DO_NOT, "producer_spans", 200_001, 200_001, Plans.MANY_ROWS),
        (Scale.BATCHES_DO_NOT, "partition_transactions", 200_000, 1 << 40, Plans.FEW_ROWS),
        (Scale.BATCHES_DO_NOT, "checked_batches", 0, 200_001, Plans.MANY_ROWS),
        (Scale.BATCHES_DO_NOT, "findings", 0, 1_000_000, Plans.FEW_ROWS),
        (Scale.BATCHES_DO_NOT, "findings", 0, 1_000_001, Plans.MANY_ROWS),
        (Scale.BATCHES_DO_NOT, "brokers", 1_000_001, 1_000_001, Plans.MANY_ROWS),
    ],
)
def test_the_rows_of_batches_decide_how_a_step_is_planned(scale, step, new_rows, rows, plans):
    assert step in {each.name for each in AUDIT}
    assert plans_of(SimpleNamespace(scale=scale, new_batch_rows=new_rows, batch_rows=rows), step) is plans
