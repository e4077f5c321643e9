"""The named windows over a log, as SQL.

Each is completed by what it covers: `max(value) OVER ({BATCHES_OF_PRODUCER} {BEFORE})`.
"""

from __future__ import annotations

from typing import Final

#: Everything up to and including the row.
UNTIL_NOW: Final = "ROWS UNBOUNDED PRECEDING"
#: Everything strictly before the row.
BEFORE: Final = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
#: Every row of the group, computed once for all of them.
WHOLE: Final = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"

#: The batches of one producer on one partition, in offset order. `producer_id` comes first: sorting compares it first.
BATCHES_OF_PRODUCER: Final = "PARTITION BY producer_id, topic, partition ORDER BY base_offset"


def last_of(value: str, by: str, over: str) -> str:
    """The last value that is not NULL, in a window in the order of `by`, as SQL.

    The embedded engine looks for `last(value, TRUE)` among all rows before each row, which takes quadratic time.
    """
    return f"max_by({value}, if({value} IS NOT NULL, {by}, NULL)) OVER ({over})"


def next_of(value: str, by: str, over: str) -> str:
    """The value of `last_of` in a window in descending order of `by`: the next one in order, as SQL."""
    return f"min_by({value}, if({value} IS NOT NULL, {by}, NULL)) OVER ({over})"


def last_of_batches(value: str) -> str:
    """The last value that is not NULL in the batches before each batch of a producer, as SQL."""
    return last_of(value, "base_offset", f"{BATCHES_OF_PRODUCER} {BEFORE}")


#: The records of one coordinator partition, and of one transactional id, in offset order.
RECORDS_OF_COORDINATOR: Final = "PARTITION BY partition ORDER BY offset"
RECORDS_OF_ID: Final = "PARTITION BY coordinator_partition, transactional_id ORDER BY offset"
