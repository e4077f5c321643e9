"""The choice of the earlier run: the newest that succeeded."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support import live_output
from tests.support.frames import empty
from tests.support.memory_audits import MemoryTables, audited
from txnlib.engine.store import stored_schema
from txnlib.incremental import history_of
from txnlib.pipeline.given_rows import earlier_rows_of
from txnlib.pipeline.run import Run
from txnlib.pipeline.tables import REPORT
from txnlib.settings import Settings
from txnlib.spark.schemas import TABLES

NIGHT = datetime(2026, 11, 1, tzinfo=UTC)
HANGING = {"topic": "orders", "partition": 0, "producer_id": 7, "start_offset": 5, "verdict": "HANGING"}


@dataclass
class Nights:
    """Stands in for `RunStore` and its `Store`: what earlier runs left behind, and what this one found, if anything."""

    spark: Any
    earlier: dict[str, list[dict[str, Any]]]
    run_id: str = "tonight"
    found: MemoryTables | None = None

    @property
    def store(self):
        return self

    def exists(self, name):
        return name in self.earlier

    def read_all(self, name):
        schema = stored_schema(name)
        return self.spark.createDataFrame(
            [[row.get(field) for field in schema.names] for row in self.earlier[name]], schema
        )

    def read(self, name):
        return empty(self.spark, TABLES[name]) if self.found is None else self.found.frame(name)

    def rows(self, name, columns):
        return self.read(name).select(columns).toArrow()

    def held_rows(self, name):
        return None


def told(spark, statuses, night_of_warning):
    """Rows told on the night after `statuses`, if a transaction hung on one of these nights, and no partition is
    captured now."""
    nights = {
        night: {"cluster": "eu", "run_id": f"night-{night}", "as_of": NIGHT + timedelta(days=night)}
        for night in range(len(statuses))
    }
    runs = [{**nights[night], "status": status} for night, status in enumerate(statuses)]
    other = {"cluster": "us", "run_id": "us", "as_of": NIGHT + timedelta(days=len(statuses) - 0.5), "status": "DONE"}
    made = {"settings": "{}", "version": "1", "finished_at": NIGHT}
    tables = Nights(
        spark,
        {
            "audit_runs": [row | made for row in (*runs, other)],
            "open_transactions": [{**nights[night_of_warning], **HANGING}],
            "ended_transactions": [],
        },
    )
    return ended(tables, round((NIGHT + timedelta(days=len(statuses))).timestamp() * 1000))


def ended(tables, as_of_ms):
    settings = Settings(cluster="eu", as_of_ms=as_of_ms, as_of_basis="given")
    run = Run(tables.spark, tables, settings, NIGHT, history=history_of(tables, "eu"))
    return next(step for step in REPORT if step.name == "ended_transactions").transform(run).to_pylist()


@pytest.mark.parametrize(
    ("statuses", "night_of_warning", "count"),
    [
        pytest.param(["DONE"], 0, 1, id="the night before"),
        pytest.param(["DONE", "DONE"], 0, 0, id="of what was told the night before, nothing is told again"),
        pytest.param(["DONE", "FAILED"], 0, 1, id="a run that failed told nothing"),
        pytest.param(["FAILED"], 0, 0, id="the first night"),
    ],
)
def test_the_newest_finished_run_counts(spark, statuses, night_of_warning, count):
    rows = told(spark, statuses, night_of_warning)
    assert [(row["run_id_then"], row["how"]) for row in rows] == [("night-0", "NOT_CAPTURED")] * count


@pytest.mark.slow
def test_the_night_after_an_abort_confirms_it_and_tells_of_nothing_else(spark, captures):
    night_2, night_3 = (captures / "nights-3.9" / f"night-{number}" for number in (2, 3))
    before, after = (
        audited(spark, night / "brokers", "--as-of", str(live_output.as_of(night))) for night in (night_2, night_3)
    )
    assert before.frame("open_transactions").count() == len(live_output.truth(night_2)["open"])
    run = {
        "cluster": "eu", "run_id": "night-2", "as_of": NIGHT, "settings": "{}", "version": "1", "finished_at": NIGHT,
        "status": "DONE",
    }  # fmt: skip
    opened = [row | {"run_id": "night-2"} for row in before.rows("open_transactions")]
    tables = Nights(spark, {"audit_runs": [run], "open_transactions": opened, "ended_transactions": []}, found=after)
    rows = ended(tables, live_output.as_of(night_3))
    (aborted,) = live_output.truth(night_3)["admin_aborts"]
    names = ("topic", "partition", "producer_id", "start_offset", "transactional_id")
    assert [[row[name] for name in names] for row in rows] == [[aborted[name] for name in names]]
    assert (rows[0]["verdict"], rows[0]["how"], rows[0]["outcome"]) == ("HANGING", "BY_HAND", "ABORT")


def test_what_a_dead_night_had_found_is_still_new_to_the_next_one(spark):
    """`first_seen` and `runs_seen` count finished audits, as far as anybody read their reports."""
    found = {"cluster": "eu", "as_of": NIGHT, "topic": "orders", "partition": 0, "producer_id": 7, "start_offset": 5}
    runs = [{"cluster": "eu", "run_id": f"night-{night}", "as_of": NIGHT + timedelta(days=night)} for night in range(2)]
    made = {"settings": "{}", "version": "1", "finished_at": NIGHT}
    tables = Nights(
        spark,
        {
            "audit_runs": [runs[0] | made | {"status": "DIED"}, runs[1] | made | {"status": "DONE"}],
            "open_transactions": [found | run for run in runs],
        },
    )
    as_of_ms = round((NIGHT + timedelta(days=2)).timestamp() * 1000)
    run = Run(
        spark,
        tables,
        Settings(cluster="eu", as_of_ms=as_of_ms, as_of_basis="given"),
        NIGHT,
        history=history_of(tables, "eu"),
    )
    earlier = earlier_rows_of("open_transactions")(run)
    assert earlier is not None
    assert [row["run_id"] for row in earlier.collect()] == ["night-1"]
