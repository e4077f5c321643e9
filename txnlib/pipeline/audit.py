"""An audit: the tables of all three stages, and the row that marks it as done."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from pyspark.errors import PySparkException

from txnlib.delta.views import create_views
from txnlib.pipeline import ingest_dumps, reconstruct_state, report_transactions
from txnlib.pipeline.run import Run, reading_text
from txnlib.pipeline.run_lock import claim
from txnlib.pipeline.run_tables import asked_of
from txnlib.pipeline.scheduler import Step, carry_out
from txnlib.queries.summary import Summary, summarise

#: The three stages as one list: a table is written as soon as the tables it reads are, whatever its stage. Tables on which most
#: others depend come first.
_LATER: Final = (*report_transactions.STEPS, *reconstruct_state.STEPS)
#: If two stages write a table, the later stage does.
STEPS: Final[tuple[Step, ...]] = (
    *_LATER,
    *[step for step in ingest_dumps.STEPS if step.name not in {later.name for later in _LATER}],
)


def carry_out_all(run: Run, *, take_over: bool = False) -> None:
    """Writes every table of the run, as `carry_out_stage` does."""
    carry_out_stage(run, STEPS, take_over=take_over)


def carry_out_stage(run: Run, steps: Sequence[Step], *, take_over: bool = False) -> None:
    """Writes the tables of some steps. A failure is recorded in the row of the run in `audit_runs`.

    Raises BusyError if another audit of the cluster is running in these tables, unless `take_over` is set.
    """
    claim(run, take_over=take_over)
    if run.capture is not None:
        run.say(reading_text(run.capture))
    try:
        carry_out(run, steps)
    except Exception:
        with suppress(Exception):  # if even that cannot be written, the next audit finds that this one died
            run.note("FAILED")
        raise


def close(run: Run) -> Summary:
    """Marks the run as DONE in `audit_runs`, creates the views of a catalog, and returns the summary."""
    summary = summarise(asked_of(run))
    run.note("DONE", summary.counts)
    create_views(run.tables.store)
    compact(run)
    return summary


def compact(run: Run) -> None:
    """Compacts tables of many small files. The audit is done whether or not that succeeds."""
    for name in run.scattered:
        try:
            run.tables.compact(name)
            run.say(f"{name}: compacted small files")
        except PySparkException as error:
            run.say(f"{name}: cannot compact small files: {error.getCondition() or type(error).__name__}")
