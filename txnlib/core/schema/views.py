"""Views over several runs, in SQL that Spark, DuckDB and DataFusion read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from txnlib.core.coverage.unread import NOTHING_LOST
from txnlib.core.kafka.constants import EXHAUSTED_EPOCH, TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.transaction_state import TransactionState
from txnlib.core.schema import TABLES
from txnlib.core.schema.columns import Array, Scalar, Struct, Type
from txnlib.core.schema.rows_of_runs import OF_PARTS, RUN_COLUMNS, rows_of_runs
from txnlib.core.verdicts.marker_states import WHOLE_OUTCOMES, MarkerState

#: The report tables and views that have a view of their newest rows, because most questions are about these.
OF_REPORT: Final = (
    "transaction_outcomes",
    "in_doubt_transactions",
    "open_transactions",
    "hanging_transactions",
    "late_transactions",
    "abort_plan",
    "findings",
    "partitions",
    "blocked_groups",
    "ended_transactions",
    "brokers",
    "coverage",
    "unread_files",
    "producer_spans",
    "partition_transactions",
)


@dataclass(frozen=True, slots=True)
class View:
    """A description and a query. The query names tables, and views before it, in braces."""

    about: str
    query: str

    @property
    def reads(self) -> list[str]:
        """The tables and views that the query names."""
        return list(dict.fromkeys(re.findall(r"\{(\w+)\}", self.query)))

    def named(self, name: Callable[[str], str]) -> str:
        """The query, with the name that `name` gives to every table and view."""
        return re.sub(r"\{(\w+)\}", lambda found: name(found[1]), self.query)


def _latest(name: str, rows: str, which: str) -> View:
    """The newest rows of a table or view. `which`: which they are, in words."""
    return View(
        f"The rows of {name} that {which}.",
        f"""
SELECT rows_of_run.*
FROM {{{rows}}} AS rows_of_run
JOIN {{latest_runs}} AS latest ON rows_of_run.run_id = latest.run_id
""",
    )


def _number_of(*states: MarkerState) -> str:
    """SQL for the number of partitions whose marker is in one of these states."""
    return f"sum(CASE WHEN marker IN ({', '.join(repr(state.value) for state in states)}) THEN 1 ELSE 0 END)"


_WHOLE_OUTCOME: Final = "\n".join(
    f"         WHEN {_number_of(*sorted(any_of))} > 0 THEN '{outcome.value}'"
    for outcome, any_of in WHOLE_OUTCOMES.items()
)

_BROKERS: Final = View(
    "The values of each broker's own metrics, in each run: PartitionsWithLateTransactionsCount over the"
    " partitions_led, coordinators among them (coordinators_led). oldest_ongoing_start is when the oldest Ongoing"
    " transaction of its coordinators began, of which KIP-939 shows the age (active-transaction-open-time-max); NULL if"
    " there is none. is_leadership_assumed: where leaders are not noted, the judged copy counts as the leader's."
    " replicas: partitions with a copy of the broker.",
    f"""
SELECT held.cluster, held.run_id, run.as_of, held.broker, max(held.is_assumed) = 1 AS is_leadership_assumed,
       count(*) AS replicas, sum(held.leads) AS partitions_led,
       sum(CASE WHEN held.leads = 1 AND place.is_late THEN 1 ELSE 0 END) AS partitions_with_late_transactions,
       sum(CASE WHEN held.leads = 1 AND held.topic = '{TRANSACTION_STATE_TOPIC}' THEN 1 ELSE 0 END) AS coordinators_led,
       min(CASE WHEN held.leads = 1 THEN ongoing.oldest END) AS oldest_ongoing_start
FROM (
  SELECT cluster, run_id, broker, topic, partition,
         max(CASE WHEN coalesce(is_leader, is_judged) THEN 1 ELSE 0 END) AS leads,
         max(CASE WHEN is_leader IS NULL THEN 1 ELSE 0 END) AS is_assumed
  FROM {{coverage}}
  WHERE broker IS NOT NULL AND status <> 'MISSING'
  GROUP BY cluster, run_id, broker, topic, partition
) AS held
JOIN {{audit_runs}} AS run ON run.run_id = held.run_id
LEFT JOIN {{partitions}} AS place
  ON place.run_id = held.run_id AND place.topic = held.topic AND place.partition = held.partition
LEFT JOIN (
  SELECT run_id, coordinator_partition, min(transaction_start) AS oldest
  FROM {{transactional_ids}}
  WHERE state = '{TransactionState.ONGOING.kafka_name}'
  GROUP BY run_id, coordinator_partition
) AS ongoing
  ON ongoing.run_id = held.run_id AND ongoing.coordinator_partition = held.partition
  AND held.topic = '{TRANSACTION_STATE_TOPIC}'
GROUP BY held.cluster, held.run_id, run.as_of, held.broker
""",
)

_IN_DOUBT_TRANSACTIONS: Final = View(
    "Undecided two-phase commits (KIP-939), in each run: only the application's transaction manager may decide them."
    " records, bytes: what they hold; NULL if not counted. is_kept: whether a client came back and kept it as prepared;"
    " NULL if no record says so. kept_producer_id (NULL for a new one), kept_producer_epoch: what InitProducerId with"
    " keepPreparedTxn returns next. first_seen, runs_seen: the first audit that saw it, and how many have.",
    f"""
WITH undecided AS (
  SELECT each.*, run.as_of, run.status
  FROM {{transactions}} AS each
  JOIN {{audit_runs}} AS run ON run.run_id = each.run_id
  WHERE each.is_two_phase_commit AND each.outcome = 'OPEN'
),
held AS (
  SELECT run_id, transactional_id, coordinator_partition, transaction_number,
         sum(records) AS records, sum(bytes) AS bytes
  FROM {{transaction_outcomes}}
  GROUP BY run_id, transactional_id, coordinator_partition, transaction_number
),
logged AS (
  SELECT run_id, transactional_id, partition, record.offset AS record_offset,
         max(next_producer_id) AS next_id, max(next_producer_epoch) AS next_epoch
  FROM {{transaction_log_of_runs}} AS record
  WHERE topic = '{TRANSACTION_STATE_TOPIC}'
  GROUP BY run_id, transactional_id, partition, record.offset
),
kept AS (
  SELECT undecided.*, logged.next_epoch >= 0 AS is_kept,
         CASE WHEN logged.next_id IS NOT NULL AND logged.next_epoch >= 0 THEN logged.next_id
              ELSE undecided.producer_id END AS last_id,
         CASE WHEN logged.next_id IS NOT NULL AND logged.next_epoch >= 0 THEN logged.next_epoch
              ELSE undecided.producer_epoch END AS last_epoch
  FROM undecided
  LEFT JOIN logged
    ON logged.run_id = undecided.run_id AND logged.transactional_id = undecided.transactional_id
    AND logged.partition = undecided.coordinator_partition AND logged.record_offset = undecided.last_record_offset
),
seen AS (
  SELECT now.run_id, now.transactional_id, now.coordinator_partition, now.transaction_number,
         min(before.as_of) AS first_seen, count(DISTINCT before.run_id) AS earlier
  FROM undecided AS now
  JOIN undecided AS before
    ON before.cluster = now.cluster AND before.transactional_id = now.transactional_id
    AND before.producer_id = now.producer_id AND before.producer_epoch = now.producer_epoch
    AND before.start = now.start AND before.as_of < now.as_of AND before.status = 'DONE'
  GROUP BY now.run_id, now.transactional_id, now.coordinator_partition, now.transaction_number
)
SELECT kept.cluster, kept.run_id, kept.as_of, kept.transactional_id, kept.coordinator_partition,
       kept.transaction_number, kept.producer_id, kept.producer_epoch, owner.application, kept.state,
       kept.start AS open_since, owner.last_update, kept.partitions, held.records, held.bytes, kept.is_kept,
       CASE WHEN kept.last_epoch < {EXHAUSTED_EPOCH} THEN kept.last_id END AS kept_producer_id,
       CASE WHEN kept.last_epoch < {EXHAUSTED_EPOCH} THEN kept.last_epoch + 1 ELSE 0 END AS kept_producer_epoch,
       coalesce(seen.first_seen, kept.as_of) AS first_seen, 1 + coalesce(seen.earlier, 0) AS runs_seen
FROM kept
LEFT JOIN {{transactional_ids}} AS owner
  ON owner.run_id = kept.run_id AND owner.transactional_id = kept.transactional_id
  AND owner.coordinator_partition = kept.coordinator_partition
LEFT JOIN held
  ON held.run_id = kept.run_id AND held.transactional_id = kept.transactional_id
  AND held.coordinator_partition = kept.coordinator_partition AND held.transaction_number = kept.transaction_number
LEFT JOIN seen
  ON seen.run_id = kept.run_id AND seen.transactional_id = kept.transactional_id
  AND seen.coordinator_partition = kept.coordinator_partition AND seen.transaction_number = kept.transaction_number
""",
)

_IS_LOST: Final = " AND ".join(f"reason NOT LIKE '{each}%'" for each in NOTHING_LOST)
_UNREAD_FILES: Final = View(
    "What was given and not read, in each run: a row for each path and reason, whether it lies in a partition or not."
    " bytes: how many, 0 where that is not known, as of a folder; stretches: in how many parts; code: the reason up to"
    " its colon. What coverage counts of each partition (unreadable_bytes) is among it.",
    f"""
SELECT cluster, run_id, path, topic, partition, split_part(reason, ':', 1) AS code, min(reason) AS reason,
       count(*) AS stretches, min(position) AS first_position, sum(length) AS bytes
FROM {{quarantine}}
WHERE {_IS_LOST}
GROUP BY cluster, run_id, path, topic, partition, split_part(reason, ':', 1)
""",
)

#: Name -> view, each after the views that it reads.
VIEWS: Final[dict[str, View]] = {
    **{
        f"{name}_of_runs": View(
            f"The rows of {name} that each run has, whichever audit read them. run_id is the run that has them.",
            rows_of_runs(name),
        )
        for name in OF_PARTS
    },
    "brokers": _BROKERS,
    "in_doubt_transactions": _IN_DOUBT_TRANSACTIONS,
    "unread_files": _UNREAD_FILES,
    "latest_runs": View(
        "The newest finished run of each cluster, and its earlier run, the finished run before it (NULL if there is"
        " none).",
        """
SELECT cluster, run_id, as_of, previous_run_id, previous_as_of
FROM (
  SELECT cluster, run_id, as_of,
         lag(run_id) OVER (PARTITION BY cluster ORDER BY as_of) AS previous_run_id,
         lag(as_of) OVER (PARTITION BY cluster ORDER BY as_of) AS previous_as_of,
         row_number() OVER (PARTITION BY cluster ORDER BY as_of DESC) AS age
  FROM {audit_runs}
  WHERE status = 'DONE'
) AS finished
WHERE age = 1
""",
    ),
    **{
        f"latest_{name}": _latest(name, name, "belong to the newest finished run of each cluster") for name in OF_REPORT
    },
    **{
        f"latest_{name}": _latest(name, f"{name}_of_runs", "the newest finished run of each cluster has")
        for name in OF_PARTS
    },
    "whole_transactions": View(
        "Each transaction that a coordinator's record shows, over all of its partitions, in each run. whole_outcome is"
        f" the first that applies of {', '.join(WHOLE_OUTCOMES)} (docs/rules/reference.md).",
        f"""
SELECT cluster, run_id, as_of, transactional_id, coordinator_partition, transaction_number,
       producer_id, producer_epoch, is_two_phase_commit, decided_outcome, max(decided) AS decided,
       CASE
{_WHOLE_OUTCOME}
       END AS whole_outcome,
       count(*) AS partitions, {_number_of(MarkerState.FOUND)} AS partitions_marked,
       sum(records) AS records, sum(bytes) AS bytes
FROM {{transaction_outcomes}}
WHERE transaction_number IS NOT NULL
GROUP BY cluster, run_id, as_of, transactional_id, coordinator_partition, transaction_number,
         producer_id, producer_epoch, is_two_phase_commit, decided_outcome
""",
    ),
    "latest_whole_transactions": _latest(
        "whole_transactions", "whole_transactions", "belong to the newest finished run of each cluster"
    ),
    "verdict_changes": View(
        "Transactions that differ between each finished run and its earlier run: NEW, VERDICT or ENDED, or, if only one"
        " of the two runs captured the partition, SEEN or NOT_SEEN. The same as `txn-audit diff`, for all runs.",
        """
WITH pairs AS (
  SELECT cluster, run_id, as_of,
         lag(run_id) OVER (PARTITION BY cluster ORDER BY as_of) AS previous_run_id
  FROM {audit_runs}
  WHERE status = 'DONE'
),
captured AS (
  SELECT DISTINCT run_id, topic, partition FROM {coverage} WHERE status <> 'MISSING'
)
SELECT pairs.cluster, pairs.run_id, pairs.as_of, pairs.previous_run_id,
       CASE WHEN before.run_id IS NOT NULL THEN 'VERDICT'
            WHEN captured.run_id IS NULL THEN 'SEEN' ELSE 'NEW' END AS change,
       now.topic, now.partition, now.producer_id, now.start_offset, now.transactional_id, now.application,
       before.verdict AS verdict_before, now.verdict AS verdict_now, now.reason, now.explanation AS says
FROM pairs
JOIN {open_transactions} AS now ON now.run_id = pairs.run_id
LEFT JOIN {open_transactions} AS before
  ON before.run_id = pairs.previous_run_id AND before.topic = now.topic AND before.partition = now.partition
  AND before.producer_id = now.producer_id AND before.start_offset = now.start_offset
LEFT JOIN captured
  ON captured.run_id = pairs.previous_run_id AND captured.topic = now.topic AND captured.partition = now.partition
WHERE pairs.previous_run_id IS NOT NULL AND (before.run_id IS NULL OR before.verdict <> now.verdict)
UNION ALL
SELECT pairs.cluster, pairs.run_id, pairs.as_of, pairs.previous_run_id,
       CASE WHEN captured.run_id IS NULL THEN 'NOT_SEEN' ELSE 'ENDED' END AS change,
       before.topic, before.partition, before.producer_id, before.start_offset,
       before.transactional_id, before.application,
       before.verdict AS verdict_before, NULL AS verdict_now, before.reason, ended.says
FROM pairs
JOIN {open_transactions} AS before ON before.run_id = pairs.previous_run_id
LEFT JOIN {open_transactions} AS now
  ON now.run_id = pairs.run_id AND before.topic = now.topic AND before.partition = now.partition
  AND before.producer_id = now.producer_id AND before.start_offset = now.start_offset
LEFT JOIN {ended_transactions} AS ended
  ON ended.run_id = pairs.run_id AND ended.topic = before.topic AND ended.partition = before.partition
  AND ended.producer_id = before.producer_id AND ended.start_offset = before.start_offset
LEFT JOIN captured
  ON captured.run_id = pairs.run_id AND captured.topic = before.topic AND captured.partition = before.partition
WHERE now.run_id IS NULL
""",
    ),
}


def named_by(query: str) -> tuple[list[str], list[str]]:
    """The names of tables and of views, in the order in which they can be created, that a query names, directly or by a
    view.

    A word in a query that is no such name counts as a table.
    """
    words = set(re.findall(r"\w+", query))
    for name in reversed(VIEWS):
        if name in words:
            words.update(VIEWS[name].reads)
    return sorted(words - VIEWS.keys()), [name for name in VIEWS if name in words]


def without_rows(name: str) -> str:
    """A query of Spark and DataFusion without rows, with the columns of a table as it is stored.

    It stands for a table that no run has had rows for.
    """
    columns = (*RUN_COLUMNS, *TABLES[name].columns)
    return f"SELECT {', '.join(f'CAST(NULL AS {_type(each.type)}) AS {each.name}' for each in columns)} WHERE FALSE"


def _type(kind: Type) -> str:
    match kind:
        case Array(element):
            return f"ARRAY<{_type(element)}>"
        case Struct(fields):
            return f"STRUCT<{', '.join(f'{each.name} {_type(each.type)}' for each in fields)}>"
        case Scalar.LONG:
            return "BIGINT"
    return str(kind.value).upper()
