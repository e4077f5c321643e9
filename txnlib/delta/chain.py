"""Chains of runs: what a run that continues another one has of the earlier runs, and which rows its writes replace.

A full audit begins a chain. A run that continues another one writes only what is new: the rows of the log (`Table.of_log`) that
the earlier runs wrote stay valid for it. Nothing is copied, so this works in every kind of store.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.schema.rows_of_runs import OF_LOG, earlier_rows
from txnlib.delta.commits import quoted
from txnlib.spark.joins import broadcast


@dataclass(frozen=True, slots=True)
class Chain:
    """The place of a run in its chain."""

    name: str
    #: Number of the run in the chain.
    night: int = 0
    #: Other chains in which later runs need the rows that an earlier attempt of this run wrote.
    kept: tuple[str, ...] = ()

    def replaced(self, run_id: str) -> str:
        """The condition on rows of the log that a write of the run replaces.

        These are its own from earlier attempts, and those of runs that died after the one that this run continues.
        """
        kept = ", ".join(map(quoted, self.kept))
        own = f"run_id = {quoted(run_id)}" + (f" AND (chain IS NULL OR chain NOT IN ({kept}))" if kept else "")
        return f"({own}) OR (chain = {quoted(self.name)} AND night >= {self.night})"

    def earlier_rows(self, name: str, stored: DataFrame, copies: DataFrame) -> DataFrame:
        """The rows that earlier runs wrote and that count for a run of this place. `copies`: its rows of `coverage`."""
        earlier = stored.where((F.col("chain") == self.name) & (F.col("night") < self.night))
        counted = stored.sparkSession.sql(earlier_rows(name), stored=earlier, copies=broadcast(copies))
        return counted.select(*OF_LOG[name].names)
