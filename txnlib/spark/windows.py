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

#: A window frame: everything up to and including the row.
UNTIL_NOW: Final = "ROWS UNBOUNDED PRECEDING"
#: A window frame: every row of the group. Its value is computed once for all of them.
WHOLE: Final = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"

#: The number that stands for no value; no log contains it.
NOTHING: Final = -1
#: How many windows the batches of all producers are divided into (`in_buckets`).
_BUCKETS: Final = 256
_PRODUCER: Final = ("producer_id", "topic", "partition")
#: The batches of the producers of one bucket, one producer after the other, each in offset order.
IN_BUCKET: Final = f"PARTITION BY bucket ORDER BY {', '.join(_PRODUCER)}, base_offset"
_CONTINUES: Final = " AND ".join(f"lag({name}) OVER ({IN_BUCKET}) = {name}" for name in _PRODUCER)


# Windows over the batches of a producer on a partition. An engine sets up each window anew, and a log may have a
# million producers with a few batches each. So many producers share a window, and each row has the number of the row at
# which its producer begins: rows with lower numbers are of other producers.


def in_buckets(batches: DataFrame) -> DataFrame:
    """The batches, each offset of a producer once, because a dump may print a part twice.

    Adds the columns bucket, row (the number of the row in its bucket), begins (the row number of the producer's first
    batch), continues (whether the row before is of the same producer), and offset_before.
    """
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
    """The value of a batch. If the first batch of a producer has none, it is `nothing`, at which `last_of_batches` ends
    its search. As SQL."""
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
    """For each batch, the value of the last batch up to it for which `is_there` is true, as SQL. `is_there` must be
    true for the first batch of each producer."""
    return f"max_by({value}, if({is_there}, row, NULL)) OVER ({IN_BUCKET} {UNTIL_NOW})"


#: The records of one coordinator partition, in offset order.
RECORDS_OF_COORDINATOR: Final = "PARTITION BY partition ORDER BY offset"


@dataclass(frozen=True, slots=True)
class SharedWindow:
    """A window that many small groups share. A bucket has the groups one after the other, each in its order.

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
        """The rows of a bucket, from the last one back."""
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
        """The number, in the bucket, of the first row of a row's group. Needs the columns of `numbered`.

        A value of a running maximum with a smaller number is of another group.
        """
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
        """The columns `row` and `is_first` of a SELECT."""
        return f"{self.row} AS row, {self.is_first} AS is_first"

    @property
    def rank(self) -> str:
        """The number of a row in its group, from 1. Needs the columns of `numbered`."""
        return f"row - {self.begins} + 1"

    def at_first(self, value: str) -> str:
        """The value of the first row of its group, which must have one. Needs the columns of `numbered`."""
        return f"max_by({value}, if(is_first, row, NULL)) OVER ({self.over} {UNTIL_NOW})"

    def highest_before(self, value: str) -> str:
        """For each row, the highest value of the rows before it in its group; to be read by `own`. Needs `begins`."""
        return f"max({_of_group(value)}) OVER ({self.over} {BEFORE})"

    def lowest_after(self, value: str) -> str:
        """For each row, the lowest value of the rows after it in its group; to be read by `own`. Needs `begins`."""
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
    """These columns of the record after each record of an id, as a struct in SQL; NULL for the last one."""
    return _neighbour_of_id("lead", names)


def _neighbour_of_id(neighbour: str, names: Sequence[str]) -> str:
    """The columns of a neighbour as a struct. Each field is NULL, too, where there is none: the embedded engine reads
    fields of a NULL struct (Sail 0.7.2)."""
    is_there = OF_IDS.is_same(neighbour)
    fields = [f"{OF_IDS.of_neighbour(neighbour, name)} AS {name}" for name in names]
    return f"if({is_there}, struct({', '.join(fields)}), NULL)"


def sum_of_id(count: str) -> str:
    """For each record, the sum of counts over the records of its id up to it, as SQL. Needs is_first, and a column
    {count}_of_bucket with the sum over the bucket."""
    before_id = f"max(if(is_first, {count}_of_bucket - {count}, NULL)) OVER ({RECORDS_OF_IDS} {UNTIL_NOW})"
    return f"({count}_of_bucket - {before_id})"


def at_last_of_id(value: str, is_there: str) -> str:
    """For each record, the value of the last record of its id up to it for which `is_there` is true, as SQL; NULL if
    there is none. Needs OF_IDS.numbered."""
    until_now = f"OVER ({RECORDS_OF_IDS} {UNTIL_NOW})"
    last = f"max(if({is_there}, row, NULL)) {until_now}"
    return f"if({last} >= {OF_IDS.begins}, max_by({value}, if({is_there}, row, NULL)) {until_now}, NULL)"
