"""Thresholds for ids that are used once: how long one must be idle, and how many are too many.

A client that creates a new id for every piece of work leaves state that brokers keep for days: by default seven days for a
transactional id at its coordinator, and one day for a producer id on each partition that it wrote to.
"""

from __future__ import annotations

from typing import Final

#: An id counts as abandoned if its application created a newer id at least this long after its last use. Instances that start one
#: after the other also create new ids while older ids wait for work, but rarely for an hour.
LEFT_BEHIND_AFTER_MS: Final = 3_600_000

#: Abandoned ids of an application from which the finding is a WARNING: more than a fleet that has just started has instances.
MANY_TRANSACTIONAL_IDS: Final = 100
#: Abandoned producer ids on a partition from which the finding is a WARNING. Java clients are idempotent by default since 3.0, so
#: each server of a large fleet has a producer id.
MANY_PRODUCER_IDS: Final = 1_000
#: Below either number divided by this, there is no finding, because restarts abandon some ids. In between it is INFO.
FEW: Final = 10
