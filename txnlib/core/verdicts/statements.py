"""What the five statements of the proof have in common.

Each statement has a table of what refutes it, or leaves it without a witness, and what would settle it, in the order of
docs/rules/abort.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from txnlib.core.verdicts.case import Case


class Statement(StrEnum):
    IS_OPEN_NOW = "IS_OPEN_NOW"
    NO_COORDINATOR_ENDS_IT = "NO_COORDINATOR_ENDS_IT"
    NO_COMMIT_INCLUDES_IT = "NO_COMMIT_INCLUDES_IT"
    IS_OLD_ENOUGH = "IS_OLD_ENOUGH"
    NOTHING_ELSE_IS_WRONG = "NOTHING_ELSE_IS_WRONG"


#: Statement, in order -> what it says.
STATEMENTS: Final[Mapping[Statement, str]] = {
    Statement.IS_OPEN_NOW: "it is open now: the leader's whole copy shows its first batch, below the high watermark",
    Statement.NO_COORDINATOR_ENDS_IT: "no coordinator will end it: the logs of all that could are current and whole",
    Statement.NO_COMMIT_INCLUDES_IT: "no COMMIT includes it",
    Statement.IS_OLD_ENOUGH: "it is older than the timeout by brokers' clocks",
    Statement.NOTHING_ELSE_IS_WRONG: "no finding of severity ERROR or CRITICAL names it",
}


@dataclass(frozen=True, slots=True)
class Proof:
    """One statement. `says`: what holds; or else what fails, and what would settle it. `witnesses`: what shows that it
    holds, in words."""

    name: Statement
    holds: bool
    says: str
    witnesses: tuple[str, ...] = ()


#: What refutes a statement, or leaves it without a witness -> what would settle it.
Refuters = Sequence[tuple[Callable[[Case], bool], str | Callable[[Case], str]]]


def refuted(case: Case, refuters: Refuters) -> list[str]:
    """What refutes a statement, in words."""
    return [text if isinstance(text, str) else text(case) for applies, text in refuters if applies(case)]


def settled(statement: Statement, problems: Sequence[str], witnesses: Sequence[str]) -> Proof:
    if problems:
        return Proof(statement, False, "; ".join(problems))
    return Proof(statement, True, STATEMENTS[statement], tuple(witnesses))
