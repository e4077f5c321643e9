"""The steps of a run. Each begins when the tables it reads are there.

A job is a list of steps; an audit is the lists of all three jobs. Most steps wait for a commit or for one slow task, so a
small machine does four at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame

from txnlib.delta.carried_rows import Grown
from txnlib.errors import StepError, TxnlibError
from txnlib.pipeline.clock import now
from txnlib.pipeline.failure import failure_of, texts_of
from txnlib.pipeline.run import Run
from txnlib.queries.run_result import Written

#: Steps at a time: enough to keep two cores busy while commits wait for the file system.
AT_ONCE: Final = 4


@dataclass(frozen=True, slots=True)
class Step:
    """One table of a run, the tables that it reads, and the function that makes it.

    `make` returns all rows, or the new rows and those carried over from an earlier run; or None if the step only decides something.
    """

    name: str
    reads: tuple[str, ...]
    make: Callable[[Run], DataFrame | Grown | None]


def step_of(
    transform: Callable[..., DataFrame],
    *reads: str,
    settings: Callable[[Run], Mapping[str, object]] = lambda run: {},
    after: tuple[str, ...] = (),
) -> Step:
    """The step that calls a transform with the tables it reads, in the order of its parameters, and with settings of the run.

    The table has the name of the transform. `after`: further steps to wait for, because they change the settings.
    """
    return Step(transform.__name__, (*reads, *after), lambda run: transform(*map(run.tables.read, reads), **settings(run)))


def carry_out(run: Run, steps: Sequence[Step]) -> None:
    """Takes every step after the steps whose tables it reads. Tables that no step makes exist already.

    Steps earlier in the list have priority. The first failure is raised once all running steps have ended: as StepError, or
    unchanged if it is a TxnlibError, which already says what to do.
    """
    waiting = list(steps)
    running: dict[Future[None], Step] = {}
    with ThreadPoolExecutor(AT_ONCE) as workers:
        while waiting or running:
            undone = {step.name for step in waiting} | {step.name for step in running.values()}
            for step in [step for step in waiting if not undone.intersection(step.reads)]:
                waiting.remove(step)
                running[workers.submit(_take, run, step)] = step
            if not running:
                raise ValueError(f"steps wait for each other: {', '.join(step.name for step in waiting)}")
            ended, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                step = running.pop(future)
                if (error := future.exception()) is not None:
                    workers.shutdown(cancel_futures=True)
                    if isinstance(error, TxnlibError):
                        raise error
                    raise _failed(run, step, error) from error


def _failed(run: Run, step: Step, error: BaseException) -> StepError:
    failure = failure_of(texts_of(error))
    return StepError(step.name, failure.says, sorted(run.written), failure.cause.remedy)


def _take(run: Run, step: Step) -> None:
    begun = now()
    run.begin(step.name)
    made = step.make(run)
    if made is not None:
        frame, held = (made.made, made.held) if isinstance(made, Grown) else (made, None)
        run.tables.write(step.name, frame, held)
        commit = run.tables.commit(step.name)
        run.written[step.name] = Written(commit.rows, (now() - begun).total_seconds())
        if commit.is_scattered:
            run.scattered.append(step.name)
        run.say(f"{step.name}: {run.written[step.name]}")
