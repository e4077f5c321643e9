"""Chains of runs: which finished run a new one continues, and its place in a chain.

A full audit begins a chain. A run that continues another one writes only what is new: the rows of the log
(`schema.columns.OfLog`) that the earlier runs of its chain wrote stay valid for it. A place in a chain belongs to one
run: the last one that began there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

#: Finished runs to consider, newest first. More than one, because the newest may be of this very capture.
_CANDIDATES: Final = 2


@dataclass(frozen=True, slots=True)
class Chain:
    """The place of a run in its chain."""

    name: str
    #: Number of the run in the chain.
    night: int = 0
    #: Other chains in which later runs need the rows that an earlier attempt of this run wrote.
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A row of `audit_runs` with the status DONE. Instants are in epoch ms."""

    run_id: str
    as_of_ms: int
    finished_ms: int
    chain: str
    night: int
    #: The version that made it. Another one does not continue it.
    version: str | None
    #: Its setting; None if not stored.
    producer_id_expiration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class RunHistory:
    """The finished runs of a cluster."""

    runs: frozenset[FinishedRun] = frozenset()

    def before(self, as_of_ms: int | None) -> list[FinishedRun]:
        """The runs before an instant, newest first. None: all."""
        runs = (run for run in self.runs if as_of_ms is None or run.as_of_ms < as_of_ms)
        return sorted(runs, key=lambda run: run.as_of_ms, reverse=True)

    def to_continue(self, version: str, before_ms: int | None) -> list[FinishedRun]:
        """The runs that a run of this version can continue, newest first.

        `before_ms`: its instant, if that is known.
        """
        runs = [run for run in self.before(before_ms) if run.version == version]
        return runs[:_CANDIDATES]

    def is_continued(self, run: FinishedRun, *, but_at: Iterable[int | None] = ()) -> bool:
        """Whether runs come after it in its chain, except at these instants, whose runs an audit as of them
        replaces."""
        later = {other.as_of_ms for other in self.runs if other.chain == run.chain and other.night > run.night}
        return bool(later.difference(but_at))

    def next_place(self, run_id: str, continued: FinishedRun | None) -> tuple[str, int]:
        """The chain of a run and its number there. One that reads everything begins a chain, whose name no other run
        uses."""
        if continued is not None:
            return continued.chain, continued.night + 1
        taken = {run.chain for run in self.runs if run.run_id != run_id}
        names = (run_id, *(f"{run_id}-{number}" for number in range(2, len(taken) + 3)))
        return next(name for name in names if name not in taken), 0

    def chain(self, run_id: str, as_of_ms: int, name: str, night: int) -> Chain:
        """The place of a run, with what it must not replace: an earlier attempt of it may have been of a chain that
        goes on."""
        later = {run.chain for run in self.runs if run.run_id != run_id and run.as_of_ms > as_of_ms}
        return Chain(name, night, tuple(sorted(later - {name})))
