"""An audit: the tables of all three stages, and the row that marks it as done."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from pyspark.errors import PySparkException

from txnlib.answers.summary import summarise
from txnlib.delta.views import create_views
from txnlib.report.summary import Summary
from txnlib.stages import ingest_dumps, reconstruct_state, report_transactions
from txnlib.stages.answering import asked_of
from txnlib.stages.claim import claim
from txnlib.stages.run import Run, reading_text
from txnlib.stages.steps import Step, carry_out

#: The three stages as one: a table is written as soon as those it reads are, whichever stage it belongs to. What everything
#: waits for goes first.
_LATER: Final = (*report_transactions.STEPS, *reconstruct_state.STEPS)
#: A table that two stages write is written by the later one.
STEPS: Final[tuple[Step, ...]] = (
    *_LATER,
    *[step for step in ingest_dumps.STEPS if step.name not in {later.name for later in _LATER}],
)


def carry_out_all(run: Run, *, take_over: bool = False) -> None:
    """Writes every table of the run; as `carry_out_stage` otherwise."""
    carry_out_stage(run, STEPS, take_over=take_over)


def carry_out_stage(run: Run, steps: Sequence[Step], *, take_over: bool = False) -> None:
    """Writes the tables of some steps; if that fails, the run's row in `audit_runs` says so.

    Raises BusyError while another audit of the cluster is at work in the tables, unless it is to be taken over.
    """
    claim(run, take_over=take_over)
    if run.capture is not None:
        run.say(reading_text(run.capture))
    try:
        carry_out(run, steps)
    except Exception:
        with suppress(Exception):  # where not even that can be written, the next audit finds that this one died
            run.note("FAILED")
        raise


def close(run: Run) -> Summary:
    """What the run found; from now on its row in `audit_runs` says that it is done, and a catalog has the views."""
    summary = summarise(asked_of(run))
    run.note("DONE", summary.counts)
    create_views(run.tables.store)
    compact(run)
    return summary


def compact(run: Run) -> None:
    """Puts small files together where there are many. The audit is done, whether or not that succeeds."""
    for name in run.scattered:
        try:
            run.tables.compact(name)
            run.say(f"{name}: many small files were put together")
        except PySparkException as error:
            run.say(f"{name}: its small files could not be put together: {error.getCondition() or type(error).__name__}")
