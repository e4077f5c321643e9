"""Advice that several findings share, for the runbook."""

from __future__ import annotations

from typing import Final

ACCEPTED_BY_A_LEADER: Final = (
    "a leader accepted a batch that it should have refused. An unclean election or removed records explain this. If neither "
    "happened, keep the segments and report the problem to Apache Kafka with the rows of `findings`."
)
TWO_COORDINATORS: Final = (
    "two brokers acted as the same coordinator. Look for long pauses or a network partition at that time, and compare what the two "
    "decided about each transaction."
)
WRITTEN_BY_NO_COORDINATOR: Final = (
    "no coordinator writes such records. Check that the copies are from one cluster and one time. If they are, look for an unclean "
    "election of that `__transaction_state` partition."
)
CAPTURE_AGAIN: Final = (
    "abort nothing on the strength of this log. Capture again. If the two still disagree, restart or move the leader, so that it "
    "loads its state from the log, and report the problem to Apache Kafka with both captures."
)
EXPLAINS_WHAT_FOLLOWS: Final = "nothing to do. They explain the records that follow."
SELDOM_HARMFUL: Final = "odd, but seldom harmful by themselves. If a transaction of the same id hangs, they help to explain it."
REUSE_IDS: Final = (
    "an application creates a new id for each use. Make it reuse its ids, because brokers keep every id in memory until it expires."
)
REBUILD_THE_INDEX: Final = (
    "the index of that segment is wrong. Stop the broker, remove that `.txnindex`, and let it be rebuilt. Until then consumers "
    "may read aborted records or miss committed ones."
)
