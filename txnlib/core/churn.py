"""Thresholds for ids that are used once: how long one must be idle, and how many are too many.

A client that makes a new id for every piece of work leaves state behind that brokers keep for days: by default seven days for a
transactional id in its coordinator, one day for a producer id in each partition it wrote to.
"""

from __future__ import annotations

from typing import Final

#: So much later than an id was used last, its application must have taken a new one: then it was left behind. Instances that
#: start one after the other also make new ids while the older ones wait for work, but rarely for an hour.
LEFT_BEHIND_AFTER_MS: Final = 3_600_000

#: Of an application, from here on WARNING: more than one has instances, so it is no fleet that has just started.
MANY_TRANSACTIONAL_IDS: Final = 100
#: In a partition, from here on WARNING: idempotence is the default of Java clients since 3.0, so that each of a large fleet of
#: web servers has a producer id.
MANY_PRODUCER_IDS: Final = 1_000
#: Below either number by this factor nothing is said: restarts leave some behind. Between them it is INFO.
FEW: Final = 10
