"""Which plans are interpreted, and which are compiled."""

from types import SimpleNamespace

import pytest
from txnlib.delta import store
from txnlib.delta.tuning import Plans, settings_kept
from txnlib.pipeline.step_plans import Scale, plans_of, scale_of

from txnlib.ask.run_result import Written
from txnlib.jobs import options
from txnlib.jobs.options import parse, request_of
from txnlib.pipeline import run as pipeline_run
from txnlib.pipeline import step_plans
from txnlib.pipeline.run import Run
from txnlib.pipeline.scheduler import carry_out
from txnlib.pipeline.tables import AUDIT
from txnlib.spark.schemas import TABLES

MIB = 1 << 20


@pytest.mark.parametrize(
    ("size", "of_topics", "files", "scale"),
    [
        (31 * MIB, {"__transaction_state": 31 * MIB}, 20_000, Scale.ALL_FIT),
        (31 * MIB, {"__transaction_state": 31 * MIB}, 20_001, Scale.BATCHES_DO_NOT),
        (32 * MIB, {"orders": 32 * MIB}, 1, Scale.BATCHES_DO_NOT),
        (
            1 << 50,
            {"orders": 1 << 50, "__transaction_state": 16 * MIB, "__consumer_offsets": 15 * MIB},
            1,
            Scale.BATCHES_DO_NOT,
        ),
        (1 << 50, {"__transaction_state": 16 * MIB, "__consumer_offsets": 16 * MIB}, 1, Scale.NONE_NEED),
    ],
)
def test_the_logs_of_coordinators_and_groups_and_the_number_of_files_decide_what_fits(size, of_topics, files, scale):
    assert scale_of(size, of_topics, files) is scale


@pytest.mark.parametrize(
    ("scale", "step", "new_rows", "rows", "plans"),
    [
        (Scale.ALL_FIT, "producer_spans", 1 << 40, 1 << 40, Plans.SMALL),
        (Scale.NONE_NEED, "brokers", 0, 0, Plans.MANY_ROWS),
        (Scale.BATCHES_DO_NOT, "record_batches", 0, 0, Plans.COMPILED),
        (Scale.BATCHES_DO_NOT, "producer_spans", 200_000, 1 << 40, Plans.FEW_ROWS),
        (Scale.BATCHES_DO_NOT, "producer_spans", 200_001, 200_001, Plans.MANY_ROWS),
        (Scale.BATCHES_DO_NOT, "partition_transactions", 200_000, 1 << 40, Plans.FEW_ROWS),
        (Scale.BATCHES_DO_NOT, "open_transactions", 0, 200_000, Plans.FEW_ROWS),
        (Scale.BATCHES_DO_NOT, "open_transactions", 0, 200_001, Plans.COMPILED),
        (Scale.BATCHES_DO_NOT, "checked_batches", 0, 1_000_000, Plans.COMPILED),
        (Scale.BATCHES_DO_NOT, "checked_batches", 0, 1_000_001, Plans.MANY_ROWS),
        (Scale.BATCHES_DO_NOT, "findings", 0, 1_000_000, Plans.FEW_ROWS),
        (Scale.BATCHES_DO_NOT, "findings", 0, 1_000_001, Plans.MANY_ROWS),
        (Scale.BATCHES_DO_NOT, "brokers", 1_000_001, 1_000_001, Plans.MANY_ROWS),
    ],
)
def test_the_rows_of_batches_decide_how_a_step_is_planned(scale, step, new_rows, rows, plans):
    assert step in {each.name for each in AUDIT}
    assert (
        plans_of(SimpleNamespace(scale=scale, new_batch_rows=new_rows, batch_rows=rows, segments=10_000), step) is plans
    )


@pytest.mark.parametrize(
    ("scale", "rows", "plans"),
    [
        (Scale.ALL_FIT, 0, Plans.SMALL),
        (Scale.BATCHES_DO_NOT, 1_000_000, Plans.MANY_PARTITIONS),
        (Scale.BATCHES_DO_NOT, 1_000_001, Plans.MANY_ROWS),
    ],
)
def test_of_many_segments_few_rows_are_not_broadcast(scale, rows, plans):
    assert (
        plans_of(SimpleNamespace(scale=scale, new_batch_rows=0, batch_rows=rows, segments=10_001), "open_transactions")
        is plans
    )


@pytest.mark.parametrize(
    ("written", "is_resumed", "new_rows", "rows"),
    [
        (None, True, 0, 0),
        (20, False, 20, 20),
        (20, True, 20, 2_000),
        (0, True, 0, 0),
        (None, False, 0, 0),
    ],
)
def test_the_rows_of_earlier_nights_are_as_many_as_their_bytes_suggest(written, is_resumed, new_rows, rows):
    source = SimpleNamespace(capture=SimpleNamespace(size=50_000, size_to_read=500))
    resumption = object() if is_resumed else None
    run = Run(None, None, None, None, source=source, resumption=resumption)
    if written is not None:
        run.written["record_batches"] = Written(written, 0.1)
    assert (run.new_batch_rows, run.batch_rows) == (new_rows, rows)


def test_unknown_rows_count_as_many():
    run = Run(None, None, None, None, written={"record_batches": Written(None, 0.1)})
    assert run.batch_rows > step_plans.MAX_SCANNED_ROWS


@pytest.mark.slow
def test_tables_are_the_same_however_steps_are_planned(spark, captures, tmp_path, monkeypatch):
    monkeypatch.setattr(step_plans, "MAX_INTERPRETED_ROWS", 100)
    made = {}
    # The last: of a capture of many partitions, with tables too large to keep.
    for scale, most in (*((scale, 10_000) for scale in Scale), (Scale.BATCHES_DO_NOT, 10)):
        monkeypatch.setattr(pipeline_run, "scale_of", lambda size, of_topics, files, scale=scale: scale)
        monkeypatch.setattr(step_plans, "MAX_BROADCAST_SEGMENTS", most)
        monkeypatch.setattr(store, "KEPT_ROWS", most)
        output = tmp_path / f"{scale.name}-{most}"
        argv = ["--input", str(captures / "old-disk-4.1" / "brokers"), "--output", str(output)]
        with settings_kept(spark):
            run = pipeline_run.open_run(request_of(parse(options.AUDIT, "", argv)))
            carry_out(run, AUDIT)
            rows = {name: sorted(map(repr, run.tables.read(name).collect())) for name in TABLES.keys() - {"audit_runs"}}
        made[output.name] = rows
    whole = made["ALL_FIT-10000"]
    assert len(whole["record_batches"]) > 100
    for name, rows in made.items():
        assert rows == whole, name
