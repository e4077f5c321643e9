"""The rows and counts that the report page shows beside the summary. Instants are epoch milliseconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from txnlib.queries.summary import Row, Summary
from txnlib.render.story_text import Explained

#: Number of transactions in each section with a story, which takes a dozen queries each.
STORIES: Final[Mapping[str, int]] = {"HANGING": 6, "STUCK": 3, "LATE": 3, "SUSPECT": 2, "PREPARED": 2, "UNKNOWN": 2}
SHOWN_STEPS: Final = 40
SHOWN_PLAN: Final = 30
SHOWN_LAGS: Final = 15
SHOWN_TOPICS: Final = 40
#: Most partitions in the coverage map. If there are more, topics are only counted.
SHOWN_PARTITIONS: Final = 5_000
SHOWN_RUNS: Final = 30
SHOWN_ENDINGS: Final = 30
SHOWN_BROKERS: Final = 50
SHOWN_TWO_PHASE: Final = 15

#: topic, partition, producer_id, start_offset of an open transaction.
Key = tuple[str, int, int, int]


@dataclass(frozen=True, slots=True)
class Story:
    """One open transaction from both sides, and the growth of the log after its start."""

    told: Explained
    #: Broker-stamped batches from its start on: base_offset, max_timestamp_ms.
    growth: Sequence[Row] = ()
    #: Row of `partitions`: last_stable_offset, high_watermark.
    partition: Row = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Page:
    """One run, as its page shows it. Each list is cut; the counts beside them are not."""

    summary: Summary
    run_id: str
    version: str = ""
    inputs: str = ""
    #: The settings of the run.
    settings: Mapping[str, Any] = field(default_factory=dict)
    #: The --tables for `txn-audit`; None for tables in a catalog, which it cannot read.
    tables: str | None = None
    #: verdict, reason, count.
    reasons: Sequence[Row] = ()
    #: The open transaction of the worst verdict that has blocked longest: topic, partition, verdict, blocks_since.
    oldest: Row | None = None
    stories: Mapping[Key, Story] = field(default_factory=dict)
    #: Rows of abort_plan in order, and the number of each action.
    plan: Sequence[Row] = ()
    actions: Mapping[str, int] = field(default_factory=dict)
    #: Rows of partitions whose last stable offset lags, and their number.
    lags: Sequence[Row] = ()
    lagging: int = 0
    brokers: Sequence[Row] = ()
    #: Topic, partition and status of judged copies and of missing partitions, only for `topics`.
    covered: Sequence[Row] = ()
    #: Topic -> status -> number of partitions, without coordinators; and the number of topics.
    topics: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    topics_known: int = 0
    quarantined: int = 0
    #: Open transactions of two-phase commits, oldest first, and their number.
    two_phase: Sequence[Row] = ()
    two_phase_open: int = 0
    #: Finished runs of the cluster up to this one, newest first: run_id, as_of_ms, verdicts, lag_ms.
    runs: Sequence[Row] = ()
    #: Transactions that earlier runs warned of and that have ended, newest first: rows of ended_transactions.
    endings: Sequence[Row] = ()
