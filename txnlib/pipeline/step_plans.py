"""What Spark is tuned for while a step runs: few rows or many."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from typing import TYPE_CHECKING, Final

from txnlib.core.kafka.constants import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.delta.tuning import Plans

if TYPE_CHECKING:
    from txnlib.pipeline.run import Run

#: Below this, all tables of a capture are expected to fit in the driver.
SMALL_CAPTURE_BYTES: Final = 32 << 20
#: Tables with rows for batches, and for what producers did on partitions. All others are few if the logs of
#: coordinators are small.
OF_BATCHES: Final = frozenset({"record_batches", "producer_spans", "partition_transactions", "transaction_outcomes"})
#: Steps that sort rows of batches. In a run that continues another one, they sort only new ones.
SORTING: Final = frozenset({"producer_spans", "partition_transactions"})
#: Steps that look through all rows of batches, or of what producers did, in large queries.
LOOKING_THROUGH: Final = frozenset(
    {"checked_batches", "open_transactions", "transaction_outcomes", "partitions", "ended_transactions"}
)
#: The most rows of batches that such steps sort or look through with plans that are interpreted.
MAX_INTERPRETED_ROWS: Final = 200_000
#: The most rows of batches for which other steps, which only look some of them up, interpret their plans. With 560,000
#: rows of 10,000,000 batches, an audit took 161 s with plans that were all interpreted, and 195 s with plans that were
#: all compiled.
MAX_SCANNED_ROWS: Final = 1_000_000
#: The most files whose tables are all expected to fit in the driver: each partition has a row in several of them.
MAX_SMALL_FILES: Final = 20_000
#: The most segments for which frames about partitions are small enough for broadcasts.
MAX_BROADCAST_SEGMENTS: Final = 10_000


class Scale(Enum):
    """Which tables of a capture are expected to fit in the driver."""

    ALL_FIT = "all tables"
    BATCHES_DO_NOT = "all tables but those of batches"
    NONE_NEED = "no table"


def is_small(size: int, files: int) -> bool:
    """Whether what is read of a capture is expected to fit in the driver. `size`: its bytes. `files`: their number."""
    return size < SMALL_CAPTURE_BYTES and files <= MAX_SMALL_FILES


def scale_of(size: int, of_topics: Mapping[str, int], files: int) -> Scale:
    """The scale of a capture. `size`: its bytes. `of_topics`: the bytes of each of Kafka's own topics. `files`: their
    number."""
    if is_small(size, files):
        return Scale.ALL_FIT
    is_few = (
        sum(of_topics.get(topic, 0) for topic in (TRANSACTION_STATE_TOPIC, GROUP_METADATA_TOPIC)) < SMALL_CAPTURE_BYTES
    )
    return Scale.BATCHES_DO_NOT if is_few else Scale.NONE_NEED


def tuned_for(run: Run, step: str) -> AbstractContextManager[None]:
    """While this lasts, the session of a run is tuned for a step."""
    return nullcontext() if run.tuning is None else run.tuning.of(plans_of(run, step))


def plans_of(run: Run, step: str) -> Plans:
    """What the session is to be tuned for."""
    if run.scale is not Scale.BATCHES_DO_NOT:
        return Plans.SMALL if run.scale is Scale.ALL_FIT else Plans.MANY_ROWS
    if step == "record_batches":
        return Plans.COMPILED
    rows, most = (run.new_batch_rows, MAX_INTERPRETED_ROWS) if step in SORTING else (run.batch_rows, MAX_SCANNED_ROWS)
    if rows > most:
        return Plans.MANY_ROWS
    if run.segments > MAX_BROADCAST_SEGMENTS:
        return Plans.MANY_PARTITIONS
    return Plans.COMPILED if step in LOOKING_THROUGH and rows > MAX_INTERPRETED_ROWS else Plans.FEW_ROWS
