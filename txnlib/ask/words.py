"""Words that several answers share."""

from __future__ import annotations

from typing import Final

from txnlib.ask.rows import Row
from txnlib.core.display import not_before, printable

#: What to do where instants of copies are not known.
INSTANTS_ASSUMED: Final = (
    "no capture.json notes when the copies were taken, so each counts as taken at its newest record: audit again with"
    " --captured-at TIME, when copying began"
)


def where(row: Row) -> str:
    return f"{printable(row['topic'])}-{row['partition']}"


def clock(*, is_brokers: bool) -> str:
    return "brokers' clocks" if is_brokers else "its client's clock"


def named_producer(producer_id: int, transactional_id: str | None) -> str:
    """A producer, with its transactional id if that is known."""
    return f"producer {producer_id}" + ("" if transactional_id is None else f" ({printable(transactional_id)})")


def ahead(row: Row) -> str:
    """The transaction that holds the partition. `row`: has the columns of `partitions`."""
    if row["blocking_producer_id"] is None:
        return "another one"
    return named_producer(row["blocking_producer_id"], row["blocking_transactional_id"])


def ends_text(ends_by: int | None, as_of_ms: int) -> str:
    """By when its coordinator ends a transaction, or should have; empty if nobody does, or nobody knows when."""
    if ends_by is None:
        return ""
    if ends_by < as_of_ms:
        return f"its coordinator should have ended it by {not_before(ends_by)}"
    return f"its coordinator ends it by {not_before(ends_by)} at the latest"


def which_ends(ends_by: int | None, as_of_ms: int) -> str:
    """The same of another transaction that was just named."""
    if ends_by is None:
        return ""
    if ends_by < as_of_ms:
        return f", which its coordinator should have ended by {not_before(ends_by)}"
    return f", which its coordinator ends by {not_before(ends_by)} at the latest"
