"""The named windows over a log, as SQL.

Each is completed by what it covers: `max(value) OVER ({BATCHES_OF_PRODUCER} {BEFORE})`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

#: Everything up to and including the row.
UNTIL_NOW: Final = "ROWS UNBOUNDED PRECEDING"
#: Everything strictly before the row.
BEFORE: Final = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
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


def last_of(value: str, by: str, over: str) -> str:
    """The last value that is not NULL, in a window in the order of `by`, as SQL.

    The embedded engine looks for `last(value, TRUE)` among all rows before each row, which takes quadratic time.
    """
    return f"max_by({value}, if({value} IS NOT NULL, {by}, NULL)) OVER ({over})"


def next_of(value: str, by: str, over: str) -> str:
    """The value of `last_of` in a window in descending order of `by`: the next one in order, as SQL."""
    return f"min_by({value}, if({value} IS NOT NULL, {by}, NULL)) OVER ({over})"


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

# The records of a transactional id, of which a cluster has as many as producers: these share windows, too.

_ID: Final = ("coordinator_partition", "transactional_id")
#: The records of the ids of one bucket, one id after the other, each in offset order.
RECORDS_OF_IDS: Final = f"PARTITION BY pmod(hash({', '.join(_ID)}), {_BUCKETS}) ORDER BY {', '.join(_ID)}, offset"


def before_of_id(*names: str) -> str:
    """These columns of the record before each record of an id, as a struct in SQL; NULL for the first one."""
    return _neighbour_of_id("lag", names)


def next_of_id(*names: str) -> str:
    """The same of the record after it; NULL for the last one."""
    return _neighbour_of_id("lead", names)


def _neighbour_of_id(neighbour: str, names: Sequence[str]) -> str:
    """The embedded engine reads the fields of a struct that became NULL (Sail 0.7.2), so each field becomes NULL."""
    is_there = _is_of_same_id(neighbour)
    fields = [f"if({is_there}, {neighbour}({name}) OVER ({RECORDS_OF_IDS}), NULL) AS {name}" for name in names]
    return f"if({is_there}, struct({', '.join(fields)}), NULL)"


def _is_of_same_id(neighbour: str) -> str:
    return " AND ".join(f"{neighbour}({name}) OVER ({RECORDS_OF_IDS}) = {name}" for name in _ID)


#: Columns by which sums over the records of a bucket become those of an id: the number of a record in the order of the
#: bucket, and whether it is the first of its id.
NUMBERED_BY_ID: Final = {
    "row": f"row_number() OVER ({RECORDS_OF_IDS})",
    "is_first_of_id": f"NOT coalesce({_is_of_same_id('lag')}, FALSE)",
}


def sum_of_id(count: str) -> str:
    """The sum of counts over the records of an id up to and including each, as SQL. Needs is_first_of_id, and a column
    {count}_of_bucket with the sum over the bucket."""
    before_id = f"max(if(is_first_of_id, {count}_of_bucket - {count}, NULL)) OVER ({RECORDS_OF_IDS} {UNTIL_NOW})"
    return f"({count}_of_bucket - {before_id})"


def at_last_of_id(value: str, is_there: str) -> str:
    """The value of the last record of an id for which something is true, up to and including each, as SQL; else NULL.
    Needs NUMBERED_BY_ID."""
    until_now = f"OVER ({RECORDS_OF_IDS} {UNTIL_NOW})"
    last, first = f"max(if({is_there}, row, NULL)) {until_now}", f"max(if(is_first_of_id, row, NULL)) {until_now}"
    return f"if({last} >= {first}, max_by({value}, if({is_there}, row, NULL)) {until_now}, NULL)"
