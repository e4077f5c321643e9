"""Which rows of an earlier run does a run have, too? Whoever makes a table says so; how they get there is the store's business."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.spark.schemas import TABLES

#: The column by which rows are told.
HOLDS: Final = "holds"


class Readable(Protocol):
    """The tables of one run."""

    @property
    def run_id(self) -> str: ...

    def read(self, name: str) -> DataFrame: ...


@dataclass(frozen=True, slots=True)
class Held:
    """Rows that an earlier run has in a table, and this one has as they are."""

    earlier: Readable
    #: Adds the boolean column `holds` to rows of the earlier run, and takes none away.
    mark: Callable[[DataFrame], DataFrame]

    def of(self, rows: DataFrame, name: str) -> DataFrame:
        """Those of some rows of the earlier run that hold."""
        return self.mark(rows).where(HOLDS).select(*TABLES[name].names)

    def rows(self, name: str) -> DataFrame:
        """All of them."""
        return self.of(self.earlier.read(name), name)


@dataclass(frozen=True, slots=True)
class Grown:
    """A table of a run: rows that it makes, and rows that it holds."""

    made: DataFrame
    held: Held


def whole_files(marked: DataFrame) -> set[str]:
    """Of rows with their file, as column `file`: the files in which every row holds."""
    told = marked.groupBy("file").agg(F.bool_and(HOLDS).alias(HOLDS))
    return {row["file"] for row in told.where(HOLDS).collect()}
