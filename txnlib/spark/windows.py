"""The named windows over a log, as SQL.

Each is completed by what it covers: `last(value, TRUE) OVER ({BATCHES_OF_PRODUCER} {BEFORE})`.
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
