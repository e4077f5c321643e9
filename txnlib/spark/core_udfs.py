"""The core inside Spark: its tables as map literals, its functions as Arrow UDFs. The only module with `F.udf`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, wraps
from typing import Any

from pyspark.sql import Column, Row
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, DataType, IntegerType, StringType

from txnlib.core.application import application_of as application_in
from txnlib.core.application import compiled
from txnlib.core.ended_by import Ending
from txnlib.core.ended_by import ended_by as by_records
from txnlib.core.kafka.coordinator_partition import partition_for
from txnlib.core.kafka.transaction_state import STEPS
from txnlib.core.verdicts.match import MarkerGroup, StoredMatch, stored_match
from txnlib.core.verdicts.whose_clock import Clocks
from txnlib.errors import UnreadableInputError
from txnlib.readers.batch_checks import is_crc_valid
from txnlib.readers.storage.files import read_range
from txnlib.readers.typed_rows import typed
from txnlib.spark.core_rows import struct_of
from txnlib.spark.python_tasks import begin_task

NO_STATE = "none"


def legality(state_before: Column, state_after: Column) -> Column:
    """Name of the step between two states (Kafka's names, null for none), from the core's table."""
    steps: Mapping[str, str] = {
        f"{NO_STATE if before is None else before.kafka_name} > {NO_STATE if after is None else after.kafka_name}": (
            step.name
        )
        for (before, after), step in STEPS.items()
    }
    table = F.create_map(*[F.lit(text) for item in steps.items() for text in item])
    step = F.concat_ws(" > ", F.coalesce(state_before, F.lit(NO_STATE)), F.coalesce(state_after, F.lit(NO_STATE)))
    return table[step]


def _udf(decide: Callable[..., Any], returns: DataType) -> Any:
    @wraps(decide)
    def decided(*values: Any) -> Any:
        begin_task()
        return decide(*values)

    return F.udf(decided, returns, useArrow=True)


@lru_cache
def coordinator_partition_of() -> Any:
    """UDF (transactional_id, partitions) -> the coordinator partition of the id's hash."""
    return _udf(partition_for, IntegerType())


@lru_cache
def is_batch_valid() -> Any:
    """UDF (path, position, size) -> whether the CRC of that batch matches; null without a path, or if it cannot be
    read."""

    def valid(path: str | None, position: int | None, size: int | None) -> bool | None:
        if path is None or position is None or size is None:
            return None
        try:
            content = read_range(path, position, size)
        except (OSError, UnreadableInputError):
            return None
        return len(content) == size and is_crc_valid(content, 0, size)

    return _udf(valid, BooleanType())


@lru_cache
def application_of(own_patterns: tuple[str, ...]) -> Any:
    """UDF (transactional_id) -> its application, by the operator's patterns and those of `core.application`."""
    patterns = compiled(own_patterns)

    def application(transactional_id: str | None) -> str | None:
        return None if transactional_id is None else application_in(transactional_id, patterns)

    return _udf(application, StringType())


@lru_cache
def ended_by() -> Any:
    """UDF (the fields of `core.ended_by.Ending`) -> who decided the transaction."""

    def decided(ending: Row) -> str:
        return by_records(Ending(**ending.asDict())).value

    return _udf(decided, StringType())


def markers_by_core(clocks: Clocks) -> Any:
    """UDF (the fields of `core.verdicts.match.MarkerGroup`, or null) -> for each decision, the fields of a
    StoredMatch."""

    def matched(group: Row | None) -> list[tuple[int | None, Sequence[int] | None]] | None:
        if group is None:
            return None
        found = stored_match(typed(MarkerGroup, group.asDict(recursive=True)), clocks)
        return [(each.number, each.possible_offsets) for each in found]

    return _udf(matched, ArrayType(struct_of(StoredMatch)))
