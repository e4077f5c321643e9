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


def newest(value: str, covered: str) -> str:
    """The last value that is not NULL among the batches of one producer on one partition, in offset order, as SQL.

    `covered`: UNTIL_NOW or BEFORE. For each row, the embedded engine looks through all rows before it to find
    `last(value, TRUE)`.
    """
    return f"max_by({value}, if({value} IS NOT NULL, base_offset, NULL)) OVER ({BATCHES_OF_PRODUCER} {covered})"


#: The coordinators' decisions for one producer on one partition, and its markers there, in time order, and in
#: descending order. At the same instant, the decision comes first. What follows a row precedes it in descending order:
#: Spark scans a frame that ends in UNBOUNDED FOLLOWING again for every row, which takes quadratic time.
DECISIONS_AND_MARKERS: Final = (
    "PARTITION BY producer_id, topic, partition ORDER BY at_ms, marker.marker_offset NULLS FIRST"
)
DECISIONS_AND_MARKERS_DOWNWARDS: Final = (
    "PARTITION BY producer_id, topic, partition ORDER BY at_ms DESC, marker.marker_offset DESC NULLS LAST"
)

#: The records of one coordinator partition, and of one transactional id, in offset order.
RECORDS_OF_COORDINATOR: Final = "PARTITION BY partition ORDER BY offset"
RECORDS_OF_ID: Final = "PARTITION BY coordinator_partition, transactional_id ORDER BY offset"
