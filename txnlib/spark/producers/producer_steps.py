"""Producer state before and after each batch, by windows.

Passes over one sort: first the neighbours of each batch, then the state so far. Each expression is a running `max`,
`max_by`, `sum` or `lag` of a plain number: structs in windows cost several times as much.

| field after a batch | changed by |
| --- | --- |
| producer_epoch, last_timestamp | every batch |
| last_sequence, last_offset, offset_delta | data; reset when the epoch changes, or the producer is forgotten |
| coordinator_epoch | a marker; reset when the producer is forgotten |
| current_txn_first_offset | transactional data while nothing is open; reset by a marker |

A *seed* is the state of a producer in a snapshot, as a row in front of its batches. It is *weak* if the snapshot is of
an offset above the first batch: then it shows no state in front of that, only a transaction that had begun before and
was still open. A weak seed is *void* if it does not show that either.

Kafka: `ProducerAppendInfo`. The same steps in Python are `core.kafka.producer_state.append`; a property test compares
them row by row.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame

from txnlib.core.kafka.constants import GROUP_METADATA_TOPIC, MAX_SEQUENCE, PRODUCER_ID_EXPIRATION_MS
from txnlib.spark.joins import with_columns
from txnlib.spark.schemas import STATE_FIELDS, named
from txnlib.spark.windows import (
    IN_BUCKET,
    NOTHING,
    UNTIL_NOW,
    at_last,
    bounded,
    in_buckets,
    lag_of_batches,
    last_of_batches,
    sum_of_bucket,
)

#: In a `_change` column, RESET means that there is no value from here on. NULL means no change, and `last_of_batches`
#: skips it.
RESET: Final = NOTHING


def state(*values: str) -> str:
    """The state of a producer as a struct of these values, in the order of STATE_FIELDS. This and the next functions
    return SQL."""
    return named(STATE_FIELDS, values)


def now(name: str) -> str:
    """The value directly after a batch; NULL if it is unknown or nothing is open."""
    return f"nullif(coalesce({name}_change, {name}_before), {RESET})"


def sum_until_now(name: str) -> str:
    """The sum over the batches of a span up to and including this one."""
    return f"({name}_before + {name}_here)"


def with_states(batches: DataFrame, *, producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS) -> DataFrame:
    """Each batch with the state before and after it, the sums of its span, and whether the core should check it.

    A row may be a run of batches (`core.batch_runs`). The windows need no single batches: a run continues one state,
    and changes it as its last batch does. `suspects`: how many of its batches, from the first on, the core should
    check.
    """
    stepped = _remembered(_neighboured(batches, producer_id_expiration_ms)).where("NOT is_void")
    suspects = f"CASE WHEN {_IS_OUTSIDE} THEN batches WHEN {_IS_SUSPECT} THEN 1 ELSE 0 END"
    steps = {"span": "spans_before", "before": _BEFORE, "after": _AFTER, "suspects": suspects}
    return with_columns(stepped, steps | {"is_suspect": f"{suspects} > 0"})


_IS_WEAK: Final = "coalesce(first_batch < seeded_until, FALSE)"
_IS_VOID: Final = f"({_IS_WEAK} AND coalesce(seeded_start >= first_batch, TRUE))"
_FOLLOWS_WEAK: Final = f"({_IS_WEAK} AND is_seed_before)"
_IS_ENDED: Final = "coalesce(last_marker >= last_opening, FALSE)"
_IS_OPEN: Final = (
    f"(last_opening IS NOT NULL AND NOT {_IS_ENDED} AND NOT coalesce({_IS_VOID} AND last_opening < first_batch, FALSE))"
)
_SILENT_MS: Final = "try_subtract(coalesce(first_timestamp_ms, -1), coalesce(timestamp_before, -1))"
#: Columns of the seed that say nothing if the seed is weak.
_OF_SEED: Final = ("producer_epoch", "base_sequence", "last_sequence", "last_offset", "coordinator_epoch")


def _neighboured(batches: DataFrame, producer_id_expiration_ms: int) -> DataFrame:
    """Each batch with the one before it, and whether it repeats that one, opens a transaction, or begins a span.

    is_forgotten: whether the broker had forgotten the producer before it (`core.kafka.producer_state.has_expired`).
    """

    near = with_columns(
        in_buckets(batches),
        {
            "epoch_before": lag_of_batches("producer_epoch"),
            "timestamp_before": lag_of_batches("max_timestamp_ms"),
            "is_marker_before": f"coalesce({lag_of_batches('is_marker')}, FALSE)",
            "is_seed_before": f"coalesce({lag_of_batches('is_seed')}, FALSE)",
            "is_newest": f"NOT coalesce(lead(continues) OVER ({IN_BUCKET}), FALSE)",
            "next_batch": f"if(lead(continues) OVER ({IN_BUCKET}), lead(base_offset) OVER ({IN_BUCKET}), NULL)",
        },
    )
    placed = with_columns(
        near,
        {
            "marker_at": bounded("if(is_marker, base_offset, NULL)"),
            "opening_at": bounded("if(opens_at IS NOT NULL, base_offset, NULL)"),
            # The seed of a producer stands before its batches.
            "first_at": bounded("if(NOT is_seed AND (is_seed_before OR NOT continues), base_offset, NULL)"),
            "seed_at": bounded("snapshot_offset"),
            "seed_start": bounded("if(is_seed, opens_at, NULL)"),
        },
    )
    seen = with_columns(
        placed,
        {
            "last_marker": last_of_batches("marker_at"),
            "last_opening": last_of_batches("opening_at"),
            "first_batch": f"if(is_seed, next_batch, {last_of_batches('first_at', covers=UNTIL_NOW)})",
            "seeded_until": last_of_batches("seed_at", covers=UNTIL_NOW),
            "seeded_start": last_of_batches("seed_start", covers=UNTIL_NOW),
        },
    )
    marked = with_columns(seen, {"is_weak": f"{_IS_WEAK} AND is_seed", "is_void": f"{_IS_VOID} AND is_seed"})
    return with_columns(
        marked,
        {name: f"if(is_weak, NULL, {name})" for name in _OF_SEED}
        | {
            "opens_at": "if(is_void, NULL, opens_at)",
            "epoch_before": f"if({_FOLLOWS_WEAK}, NULL, epoch_before)",
            "has_before": f"offset_before IS NOT NULL AND NOT ({_IS_VOID} AND is_seed_before)",
            "is_forgotten": f"NOT {_IS_OPEN} AND coalesce({_SILENT_MS} >= {producer_id_expiration_ms}, FALSE)",
            "opens": f"opens_at IS NOT NULL AND NOT is_void AND NOT {_IS_OPEN}",
            "begins_span": f"offset_before IS NULL OR is_marker_before OR {_FOLLOWS_WEAK}",
        },
    )


_IS_DATA: Final = "(NOT is_marker AND (NOT is_seed OR last_sequence IS NOT NULL))"
_IN_TRANSACTION: Final = "(opens_at IS NOT NULL AND NOT is_marker)"
_IS_COUNTED: Final = f"({_IN_TRANSACTION} AND NOT is_seed)"
_IS_NEW: Final = "(is_forgotten OR producer_epoch != epoch_before)"
_DELTA: Final = "CAST(last_offset - last_batch_offset AS INT)"


def _of_data(value: str) -> str:
    return f"CASE WHEN {_IS_DATA} THEN coalesce({value}, {RESET}) WHEN {_IS_NEW} THEN {RESET} END"


_CHANGES: Final = {
    "sequence": _of_data("last_sequence"),
    "data_offset": _of_data("last_offset"),
    "delta": f"CASE WHEN {_IS_DATA} THEN {_DELTA} WHEN {_IS_NEW} THEN 0 END",
    "coordinator": f"coalesce(coordinator_epoch, if(is_forgotten, {RESET}, NULL))",
    "start": f"CASE WHEN is_marker THEN {RESET} WHEN opens THEN opens_at END",
    "first_epoch": "if(begins_span, producer_epoch, NULL)",
    "first_timestamp": f"if(opens, coalesce(first_timestamp_ms, {RESET}), NULL)",
    "newest_timestamp": (
        f"if({_IN_TRANSACTION} OR opens, if(opens, coalesce(max_timestamp_ms, {RESET}), max_timestamp_ms), NULL)"
    ),
    "newest_offset": f"if({_IS_COUNTED}, last_offset, NULL)",
}
_AMOUNTS: Final = {
    "spans": "is_marker",
    "batches": f"if({_IS_COUNTED}, batches, NULL)",
    "records": f"if({_IS_COUNTED}, records, NULL)",
    "uncounted": f"{_IS_COUNTED} AND records IS NULL",
    "bytes": f"if({_IS_COUNTED}, bytes, NULL)",
    "client_clocks": f"if({_IN_TRANSACTION} AND NOT is_broker_clock, batches, NULL)",
}


def _remembered(batches: DataFrame) -> DataFrame:
    """Each batch with what it changes (`_change`) or adds (`_here`), and with the totals before it (`_before`). The
    totals of amounts begin after the marker before; that of spans begins with the producer."""
    changed = with_columns(
        batches,
        {f"{name}_change": change for name, change in _CHANGES.items()}
        | {f"{name}_mark": bounded(change) for name, change in _CHANGES.items()}
        | {f"{name}_here": f"coalesce(CAST({amount} AS BIGINT), 0)" for name, amount in _AMOUNTS.items()},
    )

    before = {name: last_of_batches(f"{name}_mark") for name in _CHANGES}
    before |= {name: sum_of_bucket(f"{name}_here") for name in _AMOUNTS}
    summed = with_columns(changed, {f"{name}_before": value for name, value in before.items()})
    begins = dict.fromkeys(_AMOUNTS, "NOT continues OR is_marker_before") | {"spans": "NOT continues"}
    return with_columns(
        summed, {f"{name}_before": f"{name}_before - {at_last(f'{name}_before', begins[name])}" for name in _AMOUNTS}
    )


_STATE_BEFORE: Final = state(
    *("epoch_before", "sequence_before", "data_offset_before", "coalesce(delta_before, 0)"),
    *("coordinator_before", "start_before", "timestamp_before"),
)
_BEFORE: Final = f"if(has_before, {_STATE_BEFORE}, NULL)"
_AFTER: Final = state(
    *("producer_epoch", now("sequence"), now("data_offset"), "coalesce(delta_change, delta_before, 0)"),
    *(now("coordinator"), now("start"), "max_timestamp_ms"),
)

#: Whether a row is data outside of a transaction although its producer has one open. In a run, this holds for all
#: batches or for none.
_IS_OUTSIDE: Final = (
    "(has_before AND NOT is_seed AND coalesce(start_before IS NOT NULL AND NOT is_transactional AND NOT is_marker,"
    " FALSE))"
)
_EXPECTED: Final = (
    "CASE WHEN producer_epoch != epoch_before OR sequence_before IS NULL THEN 0 "
    f"ELSE (CAST(sequence_before AS BIGINT) + 1) & {MAX_SEQUENCE} END"
)
#: Whether a batch, or the first batch of a run, may have a finding for another reason. The core decides about these; a
#: property test shows that all others have none. All other batches of a run have the epoch of the batch before them,
#: and the next sequence.
_IS_SUSPECT: Final = f"""(has_before AND NOT is_seed AND coalesce(
  producer_epoch < epoch_before
  OR (is_marker AND coordinator_epoch < coordinator_before)
  OR (NOT is_marker AND base_sequence != {_EXPECTED} AND topic != '{GROUP_METADATA_TOPIC}'),
  FALSE
))"""
