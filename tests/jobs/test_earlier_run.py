"""The choice of the earlier run: the newest that succeeded."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.support import live_output
from tests.support.audits import audited_anew
from tests.support.delta_tables import write
from txnlib.engine.engine import open_engine
from txnlib.engine.store import RunStore
from txnlib.pipeline.given_rows import earlier_rows_of
from txnlib.pipeline.run import Run, earlier_runs
from txnlib.pipeline.tables import REPORT
from txnlib.settings import Settings
from txnlib.spark.schemas import TABLES

NIGHT = datetime(2026, 11, 1, tzinfo=UTC)
HANGING = {"topic": "orders", "partition": 0, "producer_id": 7, "start_offset": 5, "verdict": "HANGING"}


def write_run(root, run_id, night, status, cluster="eu"):
    as_of = NIGHT + timedelta(days=night)
    row = {"cluster": cluster, "as_of": as_of, "status": status, "settings": "{}", "version": "1"}
    write(root, "audit_runs", row | {"finished_at": NIGHT}, run_id=run_id)


def write_hanging(root, run_id, night):
    write(root, "open_transactions", HANGING | {"cluster": "eu", "as_of": NIGHT + timedelta(days=night)}, run_id=run_id)


def run_after(root, nights):
    """The run of the night after so many, which captured nothing."""
    for name in TABLES:
        write(root, name)
    engine, as_of_ms = open_engine(), round((NIGHT + timedelta(days=nights)).timestamp() * 1000)
    store, settings = engine.store(str(root), None), Settings(cluster="eu", as_of_ms=as_of_ms, as_of_basis="given")
    tables = RunStore(store, "eu", settings.run_id)
    return Run(engine, tables, settings, NIGHT, earlier=earlier_runs(store, settings))


@pytest.mark.parametrize(
    ("statuses", "night_of_warning", "count"),
    [
        pytest.param(["DONE"], 0, 1, id="the night before"),
        pytest.param(["DONE", "DONE"], 0, 0, id="of what was told the night before, nothing is told again"),
        pytest.param(["DONE", "FAILED"], 0, 1, id="a run that failed told nothing"),
        pytest.param(["FAILED"], 0, 0, id="the first night"),
    ],
)
def test_the_newest_finished_run_counts(tmp_path, statuses, night_of_warning, count):
    """Of what hung on a night, the night after these tells, if its partition is not captured now."""
    for night, status in enumerate(statuses):
        write_run(tmp_path, f"night-{night}", night, status)
    write_run(tmp_path, "us", len(statuses) - 0.5, "DONE", cluster="us")
    write_hanging(tmp_path, f"night-{night_of_warning}", night_of_warning)
    step = next(step for step in REPORT if step.name == "ended_transactions")
    rows = step.transform(run_after(tmp_path, len(statuses))).to_pylist()
    assert [(row["run_id_then"], row["how"]) for row in rows] == [("night-0", "NOT_CAPTURED")] * count


@pytest.mark.slow
def test_the_night_after_an_abort_confirms_it_and_tells_of_nothing_else(captures):
    night_2, night_3 = (captures / "nights-3.9" / f"night-{number}" for number in (2, 3))
    options = {night: ("--cluster", "eu", "--as-of", str(live_output.as_of(night))) for night in (night_2, night_3)}
    before = audited_anew([night_2 / "brokers"], *options[night_2])
    assert len(before.rows("open_transactions")) == len(live_output.truth(night_2)["open"])
    before.run.note("DONE")
    rows = audited_anew([night_3 / "brokers"], *options[night_3], folder=before.folder).rows("ended_transactions")
    (aborted,) = live_output.truth(night_3)["admin_aborts"]
    names = ("topic", "partition", "producer_id", "start_offset", "transactional_id")
    assert [[row[name] for name in names] for row in rows] == [[aborted[name] for name in names]]
    assert (rows[0]["verdict"], rows[0]["how"], rows[0]["outcome"]) == ("HANGING", "BY_HAND", "ABORT")


def test_what_a_dead_night_had_found_is_still_new_to_the_next_one(tmp_path):
    """`first_seen` and `runs_seen` count finished audits, as far as anybody read their reports."""
    for night, status in enumerate(("RUNNING", "DONE")):
        write_run(tmp_path, f"night-{night}", night, status)
        write_hanging(tmp_path, f"night-{night}", night)
    earlier = earlier_rows_of("open_transactions")(run_after(tmp_path, 2))
    assert earlier is not None
    assert [row["run_id"] for row in earlier.collect()] == ["night-1"]
