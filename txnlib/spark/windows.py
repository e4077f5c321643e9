"""The named windows over a log, as SQL.

Each is completed by what it covers: `max(value) OVER ({BATCHES_OF_PRODUCER} {BEFORE})`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.sql_text import BEFORE

#: Everything up to and including the row.
UNTIL_NOW: Final = "ROWS UNBOUNDED PRECEDING"
#: Every row of the group, computed once for all of them.
WHOLE: Final = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"

#: What stands for no value; no number of a log.
NOTHING: Final = -1
#: How many windows the batches of all producers are divided into (`in_buckets`).
_BUCKETS: Final = 256
_PRODUCER: Final = ("producer_id", "topic", "partition")
#: The batches of the producers of one bucket, one producer after the other, each in offset order.
IN_BUCKET: Final = f"PARTITION BY bucket ORDER BY {', '.join(_PRODUCER)}, base_offset"
_CONTINUES: Final = " AND ".join(f"lag({name}) OVER ({IN_BUCKET}) = {name}" for name in _PRODUCER)


# The batches of a producer on a partition. An engine sets up each window anew, and a log may have a million producers
# with a few batches each. So many producers share a window, and each row knows at which row its producer begins: what
# stands below belongs to another one.


def in_buckets(batches: DataFrame) -> DataFrame:
    """The batches, each offset of a producer once, because a dump may print a part twice.

    With bucket, row (a number in the order of the bucket), begins (that of the first row of the producer), continues
    (whether the row before is of the same producer), and offset_before."""
    bucketed = batches.withColumn("bucket", F.expr(f"pmod(hash({', '.join(_PRODUCER)}), {_BUCKETS})"))
    numbered = bucketed.withColumns(
        {
            "row": F.expr(f"row_number() OVER ({IN_BUCKET})"),
            "continues": F.expr(f"coalesce({_CONTINUES}, FALSE)"),
        }
    )
    known = numbered.withColumns(
        {
            "begins": F.expr(f"max(if(continues, NULL, row)) OVER ({IN_BUCKET} {UNTIL_NOW})"),
            "offset_before": F.expr(lag_of_batches("base_offset")),
        }
    )
    return known.where("NOT coalesce(offset_before = base_offset, FALSE)")


def lag_of_batches(value: str) -> str:
    """The value of the batch before each batch of a producer, as SQL over rows of `in_buckets`."""
    return f"if(continues, lag({value}) OVER ({IN_BUCKET}), NULL)"


def bounded(value: str, nothing: int = NOTHING) -> str:
    """The value of a batch, or `nothing` for the first batch of a producer without one, as SQL: where `last_of_batches`
    ends its search."""
    return f"coalesce({value}, if(continues, NULL, {nothing}))"


def last_of_batches(column: str, *, covers: str = BEFORE, nothing: int = NOTHING) -> str:
    """The last value that is not NULL and not `nothing` in the batches before each batch of a producer, as SQL.

    `column`: one that is `bounded`. `covers`: UNTIL_NOW, with the batch itself.
    """
    last = f"nullif(max_by({column}, if({column} IS NOT NULL, row, NULL)) OVER ({IN_BUCKET} {covers}), {nothing})"
    return last if covers == UNTIL_NOW else f"if(continues, {last}, NULL)"


def sum_of_bucket(value: str) -> str:
    """The sum over the batches of a bucket before each one, as SQL."""
    return f"coalesce(sum({value}) OVER ({IN_BUCKET} {BEFORE}), 0)"


def at_last(value: str, is_there: str) -> str:
    """The value of the last batch for which something is true, up to and including each, as SQL. It is true at least
    for the first batch of each producer."""
    return f"max_by({value}, if({is_there}, row, NULL)) OVER ({IN_BUCKET} {UNTIL_NOW})"


#: The records of one coordinator partition, in offset order.
RECORDS_OF_COORDINATOR: Final = "PARTITION BY partition ORDER BY offset"


@dataclass(frozen=True, slots=True)
class SharedWindow:
    """Windows that many groups of a few rows share: of a bucket, one group after the other, each in its order.

    `keys` name a group, and are never NULL; `order`: columns that are different for each row of a group. All
    expressions are SQL.
    """

    keys: tuple[str, ...]
    order: tuple[str, ...]

    @property
    def over(self) -> str:
        """The rows of a bucket, in order."""
        return f"PARTITION BY {self._bucket} ORDER BY {', '.join((*self.keys, *self.order))}"

    @property
    def back(self) -> str:
        """The same rows from the last one back."""
        return f"PARTITION BY {self._bucket} ORDER BY {', '.join(f'{name} DESC' for name in (*self.keys, *self.order))}"

    @property
    def _bucket(self) -> str:
        return f"pmod(hash({', '.join(self.keys)}), {_BUCKETS})"

    def is_same(self, neighbour: str) -> str:
        """Whether the row before (`lag`) or after it (`lead`) is of the same group; NULL if there is none."""
        return " AND ".join(f"{neighbour}({name}) OVER ({self.over}) = {name}" for name in self.keys)

    def of_neighbour(self, neighbour: str, value: str) -> str:
        """The value of the row before (`lag`) or after (`lead`) a row in its group; else NULL."""
        return f"if({self.is_same(neighbour)}, {neighbour}({value}) OVER ({self.over}), NULL)"

    def neighbour(self, neighbour: str, value: str, distance: int = 1) -> str:
        """The value of a row before or after a row in its group; else NULL. Needs `begins`."""
        there = f"{neighbour}({{}}, {distance}) OVER ({self.over})"
        return f"if({there.format('begins')} = begins, {there.format(value)}, NULL)"

    @property
    def begins(self) -> str:
        """The number, in the bucket, of the row with which the group of a row begins. Needs the columns of `numbered`.

        What a running maximum has of a smaller number is another group's."""
        return f"max(if(is_first, row, NULL)) OVER ({self.over} {UNTIL_NOW})"

    @property
    def row(self) -> str:
        """The number of a row in its bucket."""
        return f"row_number() OVER ({self.over})"

    @property
    def is_first(self) -> str:
        """Whether a row is the first of its group."""
        return f"NOT coalesce({self.is_same('lag')}, FALSE)"

    @property
    def numbered(self) -> str:
        """Both, as columns `row` and `is_first` of a SELECT."""
        return f"{self.row} AS row, {self.is_first} AS is_first"

    @property
    def rank(self) -> str:
        """The number of a row in its group, from 1. Needs the columns of `numbered`."""
        return f"row - {self.begins} + 1"

    def at_first(self, value: str) -> str:
        """The value of the first row of its group, which must have one. Needs the columns of `numbered`."""
        return f"max_by({value}, if(is_first, row, NULL)) OVER ({self.over} {UNTIL_NOW})"

    def highest_before(self, value: str) -> str:
        """The highest value of the rows before each one of its group, for `own`. Needs `begins`."""
        return f"max({_of_group(value)}) OVER ({self.over} {BEFORE})"

    def lowest_after(self, value: str) -> str:
        """The lowest value of the rows after each one, for `own`. Needs `begins`."""
        return f"min({_of_group(value)}) OVER ({self.back} {BEFORE})"


def _of_group(value: str) -> str:
    return f"if({value} IS NOT NULL, struct(begins AS of_group, {value} AS value), NULL)"


def own(name: str) -> str:
    """The value in a column that `highest_before` or `lowest_after` made; NULL if the group has none, as SQL."""
    return f"if({name}.of_group = begins, {name}.value, NULL)"


#: The records of transactional ids, in offset order.
OF_IDS: Final = SharedWindow(("coordinator_partition", "transactional_id"), ("offset",))
RECORDS_OF_IDS: Final = OF_IDS.over


def before_of_id(*names: str) -> str:
    """These columns of the record before each record of an id, as a struct in SQL; NULL for the first one."""
    return _neighbour_of_id("lag", names)


def next_of_id(*names: str) -> str:
    """The same of the record after it; NULL for the last one."""
    return _neighbour_of_id("lead", names)


def _neighbour_of_id(neighbour: str, names: Sequence[str]) -> str:
    """The embedded engine reads the fields of a struct that became NULL (Sail 0.7.2), so each field becomes NULL."""
    is_there = OF_IDS.is_same(neighbour)
    fields = [f"{OF_IDS.of_neighbour(neighbour, name)} AS {name}" for name in names]
    return f"if({is_there}, struct({', '.join(fields)}), NULL)"


def sum_of_id(count: str) -> str:
    """The sum of counts over the records of an id up to and including each, as SQL. Needs is_first, and a column
    {count}_of_bucket with the sum over the bucket."""
    before_id = f"max(if(is_first, {count}_of_bucket - {count}, NULL)) OVER ({RECORDS_OF_IDS} {UNTIL_NOW})"
    return f"({count}_of_bucket - {before_id})"


def at_last_of_id(value: str, is_there: str) -> str:
    """The value of the last record of an id for which something is true, up to and including each, as SQL; else NULL.
    Needs OF_IDS.numbered."""
    until_now = f"OVER ({RECORDS_OF_IDS} {UNTIL_NOW})"
    last = f"max(if({is_there}, row, NULL)) {until_now}"
    return f"if({last} >= {OF_IDS.begins}, max_by({value}, if({is_there}, row, NULL)) {until_now}, NULL)"
