"""The forecasts of a run: made from its own tables and from those of earlier runs, and added to its findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.display import counted
from txnlib.core.finding_catalogue import Finding
from txnlib.core.findings.forecasts import FEW_PRODUCERS, NIGHT_MS, ForecastSettings
from txnlib.pipeline.clock import now
from txnlib.pipeline.run import Run
from txnlib.pipeline.scheduler import Decision
from txnlib.pipeline.what_if import UnwrittenTables
from txnlib.queries.run_result import Written
from txnlib.spark.findings.forecast_findings import (
    NAMES,
    PlacedFacts,
    collect_facts,
    epoch_histories,
    forecast_rows,
    held_ids,
    kept_producers,
    old_clients,
    still_partitions,
    used_epochs,
)
from txnlib.spark.local_rows import local_rows
from txnlib.spark.schemas import FINDINGS

#: Earlier runs that are compared: those of a month of nights.
MOST_RUNS: Final = 30


@dataclass(frozen=True, slots=True)
class EarlierRuns:
    """The finished runs of the cluster before this one, the newest first: id and instant in ms. None may be there."""

    run: Run
    instants: dict[str, int]

    def read(self, name: str, run_id: str | None = None) -> DataFrame | None:
        """The rows of these runs, or of one of them, in a table; None if there are none."""
        store = self.run.tables.store
        run_ids = list(self.instants) if run_id is None else [run_id]
        return store.read_all(name).where(F.col("run_id").isin(run_ids)) if run_ids and store.exists(name) else None

    @property
    def night_before(self) -> str | None:
        """The newest run that is at least a night older than this one, else the oldest; None if there is none."""
        nights = (run_id for run_id, ms in self.instants.items() if self.run.settings.as_of_ms - ms >= NIGHT_MS)
        return next(nights, next(reversed(self.instants), None))


def _earlier_runs(run: Run) -> EarlierRuns:
    newest = run.history.before(run.settings.as_of_ms)[:MOST_RUNS]
    return EarlierRuns(run, {each.run_id: each.as_of_ms for each in newest})


def _forecast(run: Run) -> None:
    """Adds the forecasts to `findings`, in place of those of an earlier attempt. Usually there are few, and often there are none.

    Thresholds that are only tried out change no forecast.
    """
    if isinstance(run.tables, UnwrittenTables):
        return
    begun, before = now(), run.written.get("findings")
    settings = ForecastSettings(**run.settings.model_dump(include=set(ForecastSettings.__dataclass_fields__)))
    earlier = _earlier_runs(run)
    rows = forecast_rows(_with_histories(run, earlier, collect_facts(_frames(run, earlier))), settings)
    findings = run.tables.read("findings")
    is_forecast = F.col("name").isin(*NAMES)
    # Findings that this run has just made contain none.
    if not rows and (before is not None or findings.where(is_forecast).isEmpty()):
        return
    forecasts = local_rows(run.spark, rows, FINDINGS)
    run.tables.write("findings", findings.where(~is_forecast).unionByName(forecasts))
    seconds = (now() - begun).total_seconds() + (0 if before is None else before.seconds)
    run.written["findings"] = Written(run.tables.commit("findings").rows, seconds)
    run.say(f"findings: {run.written['findings']}, of which {counted(len(rows), 'forecast')}")


def _frames(run: Run, earlier: EarlierRuns) -> list[DataFrame]:
    """The facts of the forecasts that the tables allow."""
    read, is_empty = run.tables.read, run.tables.is_empty
    found = []
    if not is_empty("transactional_ids"):
        found.append(used_epochs(read("transactional_ids")))
        if not is_empty("open_transactions"):
            found.append(held_ids(read("transactional_ids"), read("open_transactions")))
    if not is_empty("transactions"):
        found.append(old_clients(read("transactions"), read("transactional_ids")))
    if not is_empty("open_transactions") and (partitions := earlier.read("partitions")) is not None:
        found.append(still_partitions(read("partitions"), read("open_transactions"), partitions))
    # Each partition of a broker counts once, so no broker keeps more producers than the table has rows.
    producers = run.tables.commit("producer_states").rows
    if producers is None or producers >= FEW_PRODUCERS:
        found.append(_kept_producers(run, earlier))
    return found


def _kept_producers(run: Run, earlier: EarlierRuns) -> DataFrame:
    before = None
    if (run_id := earlier.night_before) is not None:
        states, copies = earlier.read("producer_states", run_id), earlier.read("coverage", run_id)
        before = None if states is None or copies is None else (states, copies, earlier.instants[run_id])
    read = run.tables.read
    return kept_producers(read("producer_states"), read("coverage"), read("producer_id_blocks"), before)


def _with_histories(run: Run, earlier: EarlierRuns, found: Sequence[PlacedFacts]) -> list[PlacedFacts]:
    """The facts, with an earlier epoch of each producer id that has used many. Usually there is none of these."""
    producer_ids = [each.producer_id for each in found if each.finding is Finding.PRODUCER_EPOCHS_RUN_OUT]
    if not producer_ids:
        return list(found)
    read = run.tables.read
    of_runs = earlier.read("transactional_ids")
    rows = epoch_histories(producer_ids, read("coordinator_states"), read("producer_spans"), of_runs).collect()
    histories = {row["producer_id"]: {name: row[name] for name in ("earlier_epoch", "earlier_ms")} for row in rows}
    return [
        replace(each, facts=each.facts | histories.get(each.producer_id, {}))
        if each.finding is Finding.PRODUCER_EPOCHS_RUN_OUT
        else each
        for each in found
    ]


_READS: Final = (
    "findings",
    "transactional_ids",
    "transactions",
    "open_transactions",
    "partitions",
    "producer_states",
    "producer_id_blocks",
    "coverage",
    # These read `findings`, which this step writes again.
    "ended_transactions",
)

FORECAST: Final = Decision("forecast", _READS, _forecast)
