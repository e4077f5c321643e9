"""`coordinator_states`: each coordinator record with the state before it, and illegal steps.

A record contains the whole state, so one `lag` is sufficient. Compaction may have removed records between two
survivors; a step is judged only if every offset between them is present.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from txnlib.core.copies import survives
from txnlib.core.instants import NO_INSTANT_MS
from txnlib.core.kafka.constants import EXHAUSTED_EPOCH, TRANSACTION_STATE_TOPIC
from txnlib.core.kafka.odd_coordinator_records import CoordinatorRecord, SuspectStep
from txnlib.core.kafka.transaction_state import ACTIVE_STATES, NEVER_WRITTEN_STATES, PREPARED_STATES
from txnlib.core.sql_text import clock_ms, is_shown, quoted_list, struct
from txnlib.readers.typed_rows import hints_of
from txnlib.spark.core_udfs import legality
from txnlib.spark.frames import no_rows
from txnlib.spark.joins import select, with_columns
from txnlib.spark.schemas import TABLES, conform
from txnlib.spark.windows import (
    OF_IDS,
    RECORDS_OF_COORDINATOR,
    RECORDS_OF_IDS,
    UNTIL_NOW,
    WHOLE,
    at_last_of_id,
    before_of_id,
    sum_of_id,
)

#: The judged copies of coordinator partitions that are current and show all records: their partition, source and end.
CURRENT_COPIES: Final = "partition int, current string, copy_end long"


def coordinator_log(
    transaction_log: DataFrame, coverage: DataFrame, current_copies: DataFrame | None = None
) -> DataFrame:
    """The records of `transaction_log`, each offset of a partition once, with the column is_superseded.

    is_superseded: the current copy of the partition extends beyond the record but does not have it. Compaction keeps
    the newest record of an id until the id expires, so such a record is not the newest of its id, or the id has
    expired. Rows without an offset are unused records of console text (`console_copies`). `current_copies`
    (CURRENT_COPIES): None if there are none. Kafka: `LogCleaner`.
    """
    current = no_rows(coverage.sparkSession, CURRENT_COPIES) if current_copies is None else current_copies
    log = select(_LOG, log=transaction_log, coverage=coverage, current=current)
    return log.select(*TABLES["transaction_log"].names, "is_superseded")


#: Of the copies of a record, the highest leader epoch survived; raw files have more fields than text. That copy is the
#: last of its offset in this order: a window for each record would take longer than all else.
_COPIES: Final = (
    "PARTITION BY partition ORDER BY offset DESC, coordinator_epoch NULLS FIRST, start_ms IS NOT NULL,"
    " is_other DESC NULLS LAST, source DESC NULLS LAST"
)
_LOG: Final = f"""
WITH copies AS (
  SELECT partition, source, truncated, is_deleted, NOT is_judged AS is_other
  FROM {{coverage}} WHERE topic = '{TRANSACTION_STATE_TOPIC}'
), records AS (
  SELECT /*+ BROADCAST(copies, newest) */ *
  FROM {{log}} LEFT JOIN copies USING (partition, source) LEFT JOIN {{current}} AS newest USING (partition)
  WHERE offset IS NOT NULL AND NOT coalesce(is_deleted, FALSE) AND {survives("coordinator_epoch", "offset")}
)
SELECT *, coalesce(coalesce(held != offset, current IS NOT NULL) AND offset < copy_end, FALSE) AS is_superseded
FROM (
  SELECT *, lead(offset) OVER ({_COPIES}) AS following,
    min(if(source = current, offset, NULL)) OVER ({_COPIES} {UNTIL_NOW}) AS held
  FROM records
)
WHERE NOT coalesce(following = offset, FALSE)
"""


# ---- `coordinator_states`


def coordinator_states(
    transaction_log: DataFrame, coverage: DataFrame, current_copies: DataFrame | None = None
) -> DataFrame:
    """One row per coordinator record. Columns: COORDINATOR_STATES. Kafka: `TransactionMetadata.prepareTransitionTo`.

    `current_copies`: see `coordinator_log`.
    """
    log = with_columns(coordinator_log(transaction_log, coverage, current_copies), _OF_LOG)
    written = {"newest_until_now_ms": f"max({_WRITTEN_BY}) OVER ({RECORDS_OF_COORDINATOR} {UNTIL_NOW})"}
    log = with_columns(with_columns(log, written), _OF_HOLES).withColumnRenamed("partition", "coordinator_partition")
    placed = {"before": before_of_id(*_REMEMBERED), "row": OF_IDS.row, "is_first": OF_IDS.is_first}
    stepped = with_columns(with_columns(log, placed), _OF_STEP)
    summed = with_columns(stepped, {"begins_of_bucket": f"sum(begins) OVER ({RECORDS_OF_IDS} {UNTIL_NOW})"})
    numbered = with_columns(summed, {"transaction_number": f"if(belongs, {sum_of_id('begins')}, NULL)"}).withColumn(
        "legality",
        F.when(F.col("is_consecutive"), legality(F.col("state_before"), F.col("state"))).otherwise("UNKNOWN"),
    )
    derived = {
        "suspect": f"if({_IS_CLEAN}, NULL, {_SUSPECT})",
        "start_ms": f"coalesce(start_ms, {_DERIVED_START})",
    }
    return conform(with_columns(numbered, derived), TABLES["coordinator_states"])


_BEFORE: Final = f"lag(offset) OVER ({RECORDS_OF_COORDINATOR})"
_OF_LOG: Final = {
    # Offset minus rank: equal for two records exactly if nothing is missing between them.
    "dense": f"offset - row_number() OVER ({RECORDS_OF_COORDINATOR})",
    # The offset after the previous record in the log; 0 for the first record, and after records from console text.
    "expected_offset": f"if({_BEFORE} >= 0, {_BEFORE} + 1, 0L)",
    "newest_ms": f"max({clock_ms('timestamp_ms')}) OVER ({RECORDS_OF_COORDINATOR} {WHOLE})",
}
#: The latest time at which a record was written. For a record with a time that no clock shows, this is the newest time
#: in the log: the record is not younger.
_WRITTEN_BY: Final = f"if(NOT {is_shown('timestamp_ms')}, coalesce(newest_ms, {NO_INSTANT_MS}), timestamp_ms)"
#: Records are missing directly before such a record. These are older than it, unless its clock is behind that of a
#: record in front of them.
_FOLLOWS_HOLE: Final = "offset >= 0 AND offset > expected_offset"
_OF_HOLES: Final = {
    name: f"max(if({_FOLLOWS_HOLE}, {value}, NULL)) OVER ({RECORDS_OF_COORDINATOR} {UNTIL_NOW})"
    for name, value in {"hole_ms": "newest_until_now_ms", "hole_offset": "offset"}.items()
}
_REMEMBERED: Final = (
    *("is_tombstone", "state", "producer_id", "next_producer_id", "producer_epoch", "partitions", "start_ms"),
    *("coordinator_epoch", "dense"),
)
_PREPARED, _ACTIVE, _NEVER_WRITTEN = (
    quoted_list(state.kafka_name for state in states)
    for states in (PREPARED_STATES, ACTIVE_STATES, NEVER_WRITTEN_STATES)
)
_MISSING: Final = "size(array_except(coalesce(before.partitions, array()), coalesce(partitions, array())))"
#: Whether two Ongoing records are of one transaction. If records may be missing between them, a new epoch, or a
#: partition list that is no superset, means two transactions.
_IS_SAME: Final = (
    f"(coalesce(before.dense = dense, FALSE) OR (before.producer_epoch = producer_epoch AND {_MISSING} = 0))"
)
_CONTINUES: Final = f"(before.state IN {_ACTIVE} AND coalesce(before.start_ms = start_ms, TRUE))"
#: Whether the record before is of the transaction that a Complete record ends. An older copy of a log may end with one
#: decision, and the current one go on with the end of another, which began at another time.
_IS_ENDED: Final = (
    f"((before.state IN {_PREPARED} OR before.state = state) "
    "AND (coalesce(before.dense = dense, FALSE) OR coalesce(before.start_ms = start_ms, TRUE)))"
)
#: Whether a record is the first of a transaction, as far as the surviving records show.
_BEGINS: Final = f"""coalesce(
  (state = 'Ongoing' AND NOT coalesce({_CONTINUES} AND {_IS_SAME}, FALSE))
  OR (state IN {_PREPARED} AND NOT coalesce({_CONTINUES}, FALSE))
  OR (state LIKE 'Complete%' AND NOT coalesce({_IS_ENDED}, FALSE)),
  FALSE
)"""
_OF_STEP: Final = {
    "state_before": "before.state",
    "is_consecutive": "coalesce(before.dense = dense, FALSE)",
    "transition": "concat_ws(' → ', coalesce(before.state, 'none'), coalesce(state, 'none'))",
    "begins": f"CAST({_BEGINS} AS INT)",
    "belongs": "coalesce(state != 'Empty', FALSE)",
}
#: Start of a transaction if the text does not print it: the update time of its first Ongoing record.
_BEGUN_MS: Final = at_last_of_id("if(state = 'Ongoing', last_update_ms, NULL)", "begins = 1")
_DERIVED_START: Final = f"if(value_version IS NULL AND belongs, {_BEGUN_MS}, NULL)"

#: Whether neither the record nor the step to it can be odd; the core judges all others.
_IS_CLEAN: Final = f"""(
  (is_tombstone OR coalesce(state NOT IN {_NEVER_WRITTEN} AND producer_epoch <= {EXHAUSTED_EPOCH}, FALSE))
  AND legality != 'ILLEGAL'
  AND coalesce(coordinator_epoch >= before.coordinator_epoch, TRUE)
  AND (before IS NULL OR is_tombstone OR before.is_tombstone OR coalesce(
    if(producer_id = before.producer_id, producer_epoch >= before.producer_epoch, state = 'Empty'), FALSE))
)"""
_RECORD: Final = {"state_name": "state", "lists_partitions": "coalesce(size(partitions) > 0, FALSE)"}
_BEFORE_RECORD: Final = {name: f"before.{name}" for name in hints_of(CoordinatorRecord)} | {
    "state_name": "before.state",
    "lists_partitions": "coalesce(size(before.partitions) > 0, FALSE)",
}
_SUSPECT: Final = struct(
    SuspectStep,
    {
        "before": f"if(before IS NULL, NULL, {struct(CoordinatorRecord, _BEFORE_RECORD)})",
        "after": struct(CoordinatorRecord, _RECORD),
    },
)
