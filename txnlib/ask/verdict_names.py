"""What an open transaction counts as: its verdict, or LOOKS_LATE; on screens, in JSON, in gauges and as an option."""

from __future__ import annotations

from typing import Final

from txnlib.ask.rows import Filter, Row
from txnlib.core.verdicts.reason import Reason

#: LATE only by old timestamps of its client: its coordinator still waits, and ends it in time.
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
    """What a transaction counts as."""
    looks_late = row["verdict"] == "LATE" and row["reason"] == _OLD_TIMESTAMPS
    return LOOKS_LATE if looks_late else str(row["verdict"])


def named(row: Row) -> Row:
    """The row with that as its verdict."""
    return {**row, "verdict": name_of(row)}


def counted_as(name: str | None) -> list[Filter]:
    """Filters for the transactions that count as this; None: all."""
    if name is None:
        return []
    if name not in ("LATE", LOOKS_LATE):
        return [("verdict", "=", "OPEN" if name == PREPARED else name)]
    return [("verdict", "=", "LATE"), ("reason", "=" if name == LOOKS_LATE else "<>", _OLD_TIMESTAMPS)]
