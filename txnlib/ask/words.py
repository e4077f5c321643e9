"""Names and words that several answers share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from txnlib.ask.queries import Filter, Row
from txnlib.core.display import not_before, printable
from txnlib.core.verdicts.reason import Reason

#: What to do where instants of copies are not known.
INSTANTS_ASSUMED: Final = (
    "no capture.json notes when the copies were taken, so each counts as taken at its newest record: audit again with"
    " --captured-at TIME, when copying began"
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence, with what it is about."""

    #: Such as `why` or `holds`; in the answer of a report a verdict, `first`, or nothing.
    label: str
    says: str
    #: The number of transactions of the verdict.
    number: int | None = None

    def __str__(self) -> str:
        if self.number is not None:
            return f"{self.number} {self.label}, {self.says}"
        return f"{self.label}: {self.says}" if self.label else self.says


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
    """As `ends_text`, as a relative clause about the transaction that the sentence has just named."""
    if ends_by is None:
        return ""
    if ends_by < as_of_ms:
        return f", which its coordinator should have ended by {not_before(ends_by)}"
    return f", which its coordinator ends by {not_before(ends_by)} at the latest"


# ---- What an open transaction counts as: on screens, in JSON, in gauges and as an option


#: A LATE transaction that only looks late, because its client's timestamps are old: its coordinator still waits for it,
#: and ends it in time.
LOOKS_LATE: Final = "LOOKS_LATE"
#: A two-phase commit that has been open for longer than any other transaction may be. Its verdict is OPEN.
PREPARED: Final = "PREPARED"
#: In the order in which they are shown: the most urgent first.
URGENCY: Final = ("HANGING", "STUCK", "LATE", "SUSPECT", "UNKNOWN", LOOKS_LATE, "OPEN")
_OLD_TIMESTAMPS: Final = Reason.TIMEOUT_NOT_PASSED.value
#: `name_of` in SQL.
NAME: Final = (
    f"CASE WHEN \"verdict\" = 'LATE' AND \"reason\" = '{_OLD_TIMESTAMPS}' THEN '{LOOKS_LATE}' ELSE \"verdict\" END"
)


def name_of(row: Row) -> str:
    """What a transaction counts as: LOOKS_LATE, or else its verdict."""
    looks_late = row["verdict"] == "LATE" and row["reason"] == _OLD_TIMESTAMPS
    return LOOKS_LATE if looks_late else str(row["verdict"])


def named(row: Row) -> Row:
    """The row, with what it counts as (`name_of`) as its verdict."""
    return {**row, "verdict": name_of(row)}


def counted_as(name: str | None) -> list[Filter]:
    """Filters for the transactions that count as this; None: all."""
    if name is None:
        return []
    if name not in ("LATE", LOOKS_LATE):
        return [("verdict", "=", "OPEN" if name == PREPARED else name)]
    return [("verdict", "=", "LATE"), ("reason", "=" if name == LOOKS_LATE else "<>", _OLD_TIMESTAMPS)]
