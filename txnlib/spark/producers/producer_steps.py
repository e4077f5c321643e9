"""Producer state before and after each batch, by windows.

Two passes over one sort: first the neighbours of each batch, then the state so far. Each expression is a running `last`, `sum` or
`lag` of a plain number: structs in windows, and windows over windows, cost several times as much.

| field after a batch | changed by |
| --- | --- |
| producer_epoch, last_timestamp | every batch |
| last_sequence, last_offset, offset_delta | data; reset when the epoch changes, or the producer is forgotten |
| coordinator_epoch | a marker; reset when the producer is forgotten |
| current_txn_first_offset | transactional data while nothing is open; reset by a marker |

Kafka: `ProducerAppendInfo`. The same steps in Python are `core.kafka.producer_state.append`; a property test compares them row by
row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from txnlib.core.kafka.constants import GROUP_METADATA_TOPIC, MAX_SEQUENCE, PRODUCER_ID_EXPIRATION_MS
from txnlib.spark import windows
from txnlib.spark.schemas import STATE_FIELDS

#: In a `_change` column: from here on there is no value. A running `last` skips NULL, which means no change.
RESET: Final = -1
#: The fields with such a change.
RESETTABLE: Final = frozenset({"sequence", "data_offset", "coordinator", "start", "first_timestamp", "newest_timestamp"})
#: Column of batches after those of an earlier run: what that run remembered of their producer (`incremental.resumed_spans.memory`).
EARLIER: Final = "earlier"


def with_states(batches: DataFrame, *, producer_id_expiration_ms: int = PRODUCER_ID_EXPIRATION_MS) -> DataFrame:
    """Each batch with the state before and after it, the sums of its span, and whether the core should check it.

    A row may be a run of batches (`spark.batch_runs`). The windows need no single batches: a run continues one state, and changes
    it as its last batch does. `suspects`: how many of its batches, from the first on, the core should check.
    """
    stepped = _remembered(_neighboured(batches, producer_id_expiration_ms)).where("is_batch")
    suspects = F.when(_is_outside(), F.col("batches")).when(_is_suspect(), 1).otherwise(0)
    return stepped.withColumns(
        {"span": F.col("spans_before"), "before": _before(), "after": _after(), "suspects": suspects, "is_suspect": suspects > 0}
    )


def _neighboured(batches: DataFrame, producer_id_expiration_ms: int) -> DataFrame:
    """Each batch with the one before it, and whether it repeats that one, opens a transaction, or begins a span.

    is_forgotten: whether the broker had forgotten the producer before it (`core.kafka.producer_state.has_expired`).
    """
    window, earlier = windows.batches_of_producer(), earlier_of(batches)
    whole, before = windows.whole(window), windows.before_now(window)
    is_opening = F.col("opens_at").isNotNull()
    is_first = F.lag("base_offset").over(window).isNull()

    def one_before(name: str) -> Column:
        return F.when(is_first, earlier(name)).otherwise(F.lag(name).over(window))

    last_opening = F.last(F.when(is_opening, F.col("base_offset")), ignorenulls=True).over(before)
    seen = batches.withColumns(
        {
            "offset_before": one_before("base_offset"),
            "epoch_before": one_before("producer_epoch"),
            "timestamp_before": one_before("max_timestamp_ms"),
            "is_marker_before": F.coalesce(one_before("is_marker"), F.lit(False)),
            "is_seed_before": F.coalesce(F.lag("is_seed").over(window), F.lit(False)),
            "last_marker": F.last(F.when(F.col("is_marker"), F.col("base_offset")), ignorenulls=True).over(before),
            "last_opening": F.coalesce(last_opening, earlier("start")),
            "newest_batch": F.max("base_offset").over(whole),
            "first_batch": F.min(F.when(~F.col("is_seed"), F.col("base_offset"))).over(whole),
            "seeded_until": F.max("snapshot_offset").over(whole),
            "seeded_start": F.max(F.when(F.col("is_seed"), F.col("opens_at"))).over(whole),
        }
    )
    # A snapshot above the first offset gives the state there only for producers without a batch in between. For all others, it
    # shows at most one thing: which transaction had begun before and was still open.
    is_weak = F.coalesce(F.col("first_batch") < F.col("seeded_until"), F.lit(False))
    is_void = is_weak & F.coalesce(F.col("seeded_start") >= F.col("first_batch"), F.lit(True))
    marked = seen.withColumns({"is_weak": is_weak & F.col("is_seed"), "is_void": is_void & F.col("is_seed")})
    unknown = ("producer_epoch", "base_sequence", "last_sequence", "last_offset", "coordinator_epoch")
    is_opened_by_void = is_void & (F.col("last_opening") < F.col("first_batch"))
    is_ended = F.coalesce(F.col("last_marker") >= F.col("last_opening"), F.lit(False))
    is_open = F.col("last_opening").isNotNull() & ~is_ended & ~F.coalesce(is_opened_by_void, F.lit(False))
    # A dump may print a part twice: the same offset is the same batch.
    is_repeat = F.coalesce(F.col("offset_before") == F.col("base_offset"), F.lit(False))
    follows_weak = is_weak & F.col("is_seed_before")
    silent_ms = F.try_subtract(F.coalesce("first_timestamp_ms", F.lit(-1)), F.coalesce("timestamp_before", F.lit(-1)))
    return marked.withColumns(
        {
            **{name: F.when(~F.col("is_weak"), F.col(name)) for name in unknown},
            "opens_at": F.when(~F.col("is_void"), F.col("opens_at")),
            "epoch_before": F.when(~follows_weak, F.col("epoch_before")),
            "has_before": F.col("offset_before").isNotNull() & ~(is_void & F.col("is_seed_before")),
            "is_batch": ~is_repeat & ~F.col("is_void"),
            "is_newest": F.col("base_offset") == F.col("newest_batch"),
            "is_forgotten": ~is_open & F.coalesce(silent_ms >= producer_id_expiration_ms, F.lit(False)),
            "opens": is_opening & ~F.col("is_void") & ~is_open,
            "begins_span": F.col("offset_before").isNull() | F.col("is_marker_before") | follows_weak,
        }
    )


def _remembered(batches: DataFrame) -> DataFrame:
    """Each batch with what it changes (`_change`) or adds (`_here`), and the totals of all batches before it (`_before`)."""
    before, earlier = windows.before_now(windows.batches_of_producer()), earlier_of(batches)
    is_data = ~F.col("is_marker") & (~F.col("is_seed") | F.col("last_sequence").isNotNull())
    is_new = F.col("is_forgotten") | (F.col("producer_epoch") != F.col("epoch_before"))
    in_transaction = F.col("opens_at").isNotNull() & ~F.col("is_marker")
    is_counted = in_transaction & ~F.col("is_seed") & F.col("is_batch")
    delta = (F.col("last_offset") - F.col("last_batch_offset")).cast("int")
    reset = F.lit(RESET)
    changes = {
        "sequence": F.when(is_data, F.coalesce("last_sequence", reset)).when(is_new, reset),
        "data_offset": F.when(is_data, F.coalesce("last_offset", reset)).when(is_new, reset),
        "delta": F.when(is_data, delta).when(is_new, F.lit(0)),
        "coordinator": F.coalesce("coordinator_epoch", F.when(F.col("is_forgotten"), reset)),
        "start": F.when(F.col("is_marker"), reset.cast("long")).when(F.col("opens"), F.col("opens_at")),
        "first_epoch": F.when(F.col("begins_span"), F.col("producer_epoch")),
        "first_timestamp": F.when(F.col("opens"), F.coalesce("first_timestamp_ms", reset)),
        "newest_timestamp": F.when(F.col("opens"), F.coalesce("max_timestamp_ms", reset)).when(
            in_transaction, F.col("max_timestamp_ms")
        ),
        "newest_offset": F.when(is_counted, F.col("last_offset")),
    }
    amounts = {
        "spans": F.col("is_marker") & F.col("is_batch"),
        "batches": F.when(is_counted, F.col("batches")),
        "records": F.when(is_counted, F.col("records")),
        "uncounted": is_counted & F.col("records").isNull(),
        "bytes": F.when(is_counted, F.col("bytes")),
        "client_clocks": F.when(in_transaction & ~F.col("is_broker_clock"), F.col("batches")),
    }
    changed = batches.withColumns(
        {f"{name}_change": change for name, change in changes.items()}
        | {f"{name}_here": F.coalesce(amount.cast("long"), F.lit(0)) for name, amount in amounts.items()}
    )

    def value_before(name: str) -> Column:
        last = F.coalesce(F.last(f"{name}_change", ignorenulls=True).over(before), earlier(name))
        return _value(last) if name in RESETTABLE else last

    return changed.withColumns(
        {f"{name}_before": value_before(name) for name in changes}
        | {f"{name}_before": _or_zero(F.sum(f"{name}_here").over(before)) + _or_zero(earlier(name)) for name in amounts}
    )


def _or_zero(amount: Column) -> Column:
    return F.coalesce(amount, F.lit(0))


def earlier_of(rows: DataFrame) -> Callable[[str], Column]:
    """Function from a name to what an earlier run remembered of the row's producer under that name; NULL if it knew none."""
    if EARLIER not in rows.columns:
        return lambda name: F.lit(None)
    return lambda name: F.col(f"{EARLIER}.{name}")


def now(name: str) -> Column:
    """The value directly after a batch; NULL if it is unknown or nothing is open."""
    return _value(F.coalesce(f"{name}_change", f"{name}_before"))


def sum_until_now(name: str) -> Column:
    """The sum over the batches up to and including this one."""
    return F.col(f"{name}_before") + F.col(f"{name}_here")


def _value(change: Column) -> Column:
    """The value after a change; NULL after a reset."""
    return F.when(change != RESET, change)


def _before() -> Column:
    state = F.struct(
        F.col("epoch_before").alias("producer_epoch"),
        F.col("sequence_before").alias("last_sequence"),
        F.col("data_offset_before").alias("last_offset"),
        F.coalesce("delta_before", F.lit(0)).alias("offset_delta"),
        F.col("coordinator_before").alias("coordinator_epoch"),
        F.col("start_before").alias("current_txn_first_offset"),
        F.col("timestamp_before").alias("last_timestamp"),
    )
    return F.when(F.col("has_before"), state.cast(STATE_FIELDS))


def _after() -> Column:
    return F.struct(
        F.col("producer_epoch"),
        now("sequence").alias("last_sequence"),
        now("data_offset").alias("last_offset"),
        F.coalesce("delta_change", "delta_before", F.lit(0)).alias("offset_delta"),
        now("coordinator").alias("coordinator_epoch"),
        now("start").alias("current_txn_first_offset"),
        F.col("max_timestamp_ms").alias("last_timestamp"),
    ).cast(STATE_FIELDS)


def _is_outside() -> Column:
    """Whether a row is data outside of the transaction of its producer. All batches of a run are, or none."""
    outside = F.col("start_before").isNotNull() & ~F.col("is_transactional") & ~F.col("is_marker")
    return F.col("has_before") & ~F.col("is_seed") & F.coalesce(outside, F.lit(False))


def _is_suspect() -> Column:
    """Whether a batch, or the first of a run, could have a finding for any other reason.

    The core decides about these; a property test shows that all others have none. All other batches of a run have the epoch of the
    batch before them, and the next sequence.
    """
    epoch_before, sequence_before = F.col("epoch_before"), F.col("sequence_before")
    went_back = F.col("producer_epoch") < epoch_before
    begins = (F.col("producer_epoch") != epoch_before) | sequence_before.isNull()
    expected = F.when(begins, F.lit(0)).otherwise((sequence_before.cast("long") + 1).bitwiseAND(MAX_SEQUENCE))
    sequence_jumped = F.col("base_sequence").isNotNull() & (F.col("base_sequence") != expected)
    is_checked = F.col("topic") != GROUP_METADATA_TOPIC
    fenced = F.col("coordinator_epoch") < F.col("coordinator_before")
    odd_data = ~F.col("is_marker") & sequence_jumped & is_checked
    odd_marker = F.col("is_marker") & fenced
    is_odd = [F.coalesce(odd, F.lit(False)) for odd in (went_back, odd_data, odd_marker)]
    return F.col("has_before") & ~F.col("is_seed") & (is_odd[0] | is_odd[1] | is_odd[2])
