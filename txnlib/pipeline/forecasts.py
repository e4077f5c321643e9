"""The forecasts of a run: made from its own tables and from those of earlier runs, and added to its findings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.ask.run_result import Written
from txnlib.core.display import counted
from txnlib.core.findings.forecast_findings import FEW_PRODUCERS, NAMES, NIGHT_MS, ForecastSettings, forecasts
from txnlib.pipeline.clock import now
from txnlib.pipeline.given_rows import Given, earlier_rows_of, selected
from txnlib.pipeline.run import Run
from txnlib.pipeline.scheduler import RunChange, table_of
from txnlib.spark.findings import forecast_findings
from txnlib.spark.local_rows import local_relation
from txnlib.spark.schemas import TABLES

#: Earlier runs that are compared: those of a month of nights.
MOST_RUNS: Final = 30


def _unless_empty(transform: Callable[..., DataFrame], *names: str) -> Given:
    """What a transform selects; nothing, without a query, if one of these tables is empty."""
    rows = selected(transform)
    return Given(rows.reads, lambda run: () if any(map(run.tables.is_empty, names)) else rows(run))


def _earlier_epochs(run: Run) -> Callable[[DataFrame], DataFrame]:
    read, earlier_ids = run.tables.read, earlier_rows_of("transactional_ids", MOST_RUNS)
    return lambda used: forecast_findings.earlier_epochs(
        used, read("coordinator_states"), read("producer_spans"), earlier_ids(run)
    )


def _still_partitions(run: Run) -> DataFrame | tuple[()]:
    read, earlier = run.tables.read, earlier_rows_of("partitions", MOST_RUNS)(run)
    if earlier is None or run.tables.is_empty("open_transactions"):
        return ()
    return forecast_findings.still_partitions(read("partitions"), read("open_transactions"), earlier)


def _kept_producers(run: Run) -> DataFrame | tuple[()]:
    """Compares with the newest run that is at least a night older, else with the oldest."""
    # Each partition of a broker counts once, so no broker keeps more producers than the table has rows.
    if (producers := run.tables.commit("producer_states").rows) is not None and producers < FEW_PRODUCERS:
        return ()
    read, store, as_of_ms = run.tables.read, run.tables.store, run.settings.as_of_ms
    earlier, before = run.history.before(as_of_ms)[:MOST_RUNS], None
    if earlier and store.exists("producer_states") and store.exists("coverage"):
        then = next((each for each in earlier if as_of_ms - each.as_of_ms >= NIGHT_MS), earlier[-1])
        states, copies = (
            store.read_all(name).where(F.col("run_id") == then.run_id) for name in ("producer_states", "coverage")
        )
        before = states, copies, then.as_of_ms
    return forecast_findings.kept_producers(
        read("producer_states"), read("coverage"), read("producer_id_blocks"), before
    )


_FORECASTS: Final = table_of(
    forecasts,
    name="findings",
    used_epochs=_unless_empty(forecast_findings.used_epochs, "transactional_ids"),
    earlier_epochs=_earlier_epochs,
    held_ids=_unless_empty(forecast_findings.held_ids, "transactional_ids", "open_transactions"),
    kept_producers=Given(("producer_states", "coverage", "producer_id_blocks"), _kept_producers),
    old_clients=_unless_empty(forecast_findings.old_clients, "transactions"),
    still_partitions=Given(("partitions", "open_transactions"), _still_partitions),
    settings=lambda run: ForecastSettings(
        **run.settings.model_dump(include=set(ForecastSettings.__dataclass_fields__))
    ),
    # These read `findings`, which this step writes again.
    after=("findings", "ended_transactions"),
)


def _forecast(run: Run) -> None:
    """Adds the forecasts to `findings`, in place of those of an earlier attempt. Usually there are few, and often there
    are none.
    """
    begun, before = now(), run.written.get("findings")
    made = _FORECASTS.transform(run)
    assert isinstance(made, pa.Table)
    findings = run.tables.read("findings")
    is_forecast = F.col("name").isin(*NAMES)
    # Findings that this run has just made contain none.
    if not made.num_rows and (before is not None or findings.where(is_forecast).isEmpty()):
        return
    run.tables.write(
        "findings", findings.where(~is_forecast).unionByName(local_relation(run.spark, made, TABLES["findings"]))
    )
    seconds = (now() - begun).total_seconds() + (0 if before is None else before.seconds)
    run.written["findings"] = Written(run.tables.commit("findings").rows, seconds)
    run.say(f"findings: {run.written['findings']}, of which {counted(made.num_rows, 'forecast')}")


FORECAST: Final = RunChange("forecast", _FORECASTS.reads, _forecast)
