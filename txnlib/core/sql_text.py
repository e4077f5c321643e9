"""Parts of SQL that several queries share, as text that both engines read.

A time that no clock shows (`core.instants`) is NULL as an instant; raw columns (`*_ms`) keep it. All instants, and the
milliseconds read back from them, are small enough to add and subtract.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, get_type_hints

from txnlib.core.instants import FIRST_MS, LAST_MS, NO_INSTANT_MS
from txnlib.core.kafka.constants import TWO_PHASE_COMMIT_TIMEOUTS
from txnlib.core.schema.columns import Array, Scalar, Struct, Type, type_of


def quoted(text: str) -> str:
    """The text as a literal. Names of clusters may contain any character."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def quoted_list(texts: Iterable[str]) -> str:
    """The texts as a list of literals, for IN."""
    return f"({', '.join(map(quoted, sorted(texts)))})"


def tables_of(text: str) -> tuple[str, ...]:
    """The tables that a query names in braces, each once."""
    return tuple(dict.fromkeys(re.findall(r"\{(\w+)\}", text)))


_VALUE: Final = re.compile(r":([a-z]\w*)")


def values_of(text: str) -> tuple[str, ...]:
    """The values that a query names after a colon, each once."""
    return tuple(dict.fromkeys(_VALUE.findall(text)))


def with_values(text: str, values: Mapping[str, int | None]) -> str:
    """A query with these numbers in place of their names; None is NULL."""
    return _VALUE.sub(lambda name: "NULL" if (value := values[name[1]]) is None else str(value), text)


# ---- Times


def is_shown(ms: str) -> str:
    """Whether a time is one that a clock can show; NULL for NULL."""
    return f"({ms} BETWEEN {FIRST_MS} AND {LAST_MS})"


def clock_ms(ms: str) -> str:
    """`core.instants.clock_ms`: NULL for a time that no clock shows."""
    return f"CASE WHEN {is_shown(ms)} THEN {ms} END"


def clock_ms_or_latest(ms: str) -> str:
    """`core.instants.clock_ms_or_latest`: a time that no clock shows becomes later than any other."""
    return f"CASE WHEN NOT {is_shown(ms)} THEN {NO_INSTANT_MS} ELSE {ms} END"


def instant(ms: str) -> str:
    """A time in epoch ms as TIMESTAMP; NULL for one that no clock shows. The only maker of instants, because a log may
    contain any int64."""
    return f"timestamp_millis({clock_ms(ms)})"


# ---- Structs


def sql_type(hint: Any) -> str:
    """The type of a field of a dataclass."""
    return _named(type_of(hint))


def _named(kind: Type) -> str:
    match kind:
        case Scalar():
            return "BIGINT" if kind is Scalar.LONG else kind.name
        case Array(element):
            return f"ARRAY<{_named(element)}>"
        case Struct(members):
            return f"STRUCT<{', '.join(f'{each.name}: {_named(each.type)}' for each in members)}>"


def struct(of: Any, given: Mapping[str, str] | None = None) -> str:
    """The fields of a dataclass as one struct. A field that is not given is the column of its name."""
    hints = get_type_hints(of)
    columns = {name: name for name in hints} | dict(given or {})
    unknown = columns.keys() - hints.keys()
    if unknown:
        raise ValueError(f"{of.__name__} has no field {', '.join(sorted(unknown))}")
    values = [f"'{name}', CAST({columns[name]} AS {sql_type(hint)})" for name, hint in hints.items()]
    return f"named_struct({', '.join(values)})"


# ---- Windows

#: Everything strictly before the row.
BEFORE: Final = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"


def last_of(value: str, by: str, over: str) -> str:
    """The last value that is not NULL, in a window in the order of `by`.

    The embedded engine looks for `last(value, TRUE)` among all rows before each row, which takes quadratic time.
    """
    return f"max_by({value}, if({value} IS NOT NULL, {by}, NULL)) OVER ({over})"


def next_of(value: str, by: str, over: str) -> str:
    """The value of `last_of` in a window in descending order of `by`: the next one in order."""
    return f"min_by({value}, if({value} IS NOT NULL, {by}, NULL)) OVER ({over})"


# ---- Rows of tables

#: Whether a row of `producer_spans` is the newest of its producer, and whether that has a transaction open.
IS_NEWEST: Final = "is_newest AND state IS NOT NULL"
IS_OPEN: Final = f"{IS_NEWEST} AND first_offset IS NOT NULL AND marker_offset IS NULL"

#: Whether the timeout of an id is one of those that never expire; NULL if it is unknown.
IS_TWO_PHASE_COMMIT: Final = f"transaction_timeout_ms IN {tuple(TWO_PHASE_COMMIT_TIMEOUTS)}"

_OF_VALUE: Final = ("producer_id", "producer_epoch", "transaction_timeout_ms", "start_ms", "last_update_ms")
_OF_RECORD: Final = (
    "is_tombstone",
    "partitions",
    "coordinator_epoch",
    "client_transaction_version",
    "is_superseded",
    "hole_ms",
    "hole_offset",
)


def last_records(records: str, *also: str) -> str:
    """A query for the last record of each id, with its full set of partitions; after a tombstone, the last value
    without state.

    `records`: rows of `coordinator_states`, such as "{coordinator_states}". `also`: aggregates over all records of the
    id.
    """
    fields = [
        *(f"max_by({name}, offset) FILTER (WHERE NOT is_tombstone) AS {name}" for name in _OF_VALUE),
        *(f"max_by({name}, offset) AS {name}" for name in _OF_RECORD),
        # An id whose last record the current copy no longer has, has expired.
        "max_by(if(coalesce(is_superseded, FALSE), NULL, state), offset) AS state",
        "max_by(timestamp_ms, offset) AS record_ms",
        "max(offset) AS record_offset",
        *also,
    ]
    return f"""
    SELECT transactional_id, coordinator_partition, {", ".join(fields)}
    FROM {records} GROUP BY transactional_id, coordinator_partition
    """
