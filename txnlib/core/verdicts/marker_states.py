"""The state of a transaction's marker on each partition, and its whole outcome.

Tables: `MARKER_STATES` names what one partition shows of one transaction, and `SENTENCES` says it. `WHOLE_OUTCOMES`
sums the partitions of a transaction up. None of them reads a clock or a log. Whether a copy proves that a marker is
absent was decided before (`core.copies`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final


class DecisionState(StrEnum):
    """What the coordinator's log says about the end of a transaction."""

    #: No record of the transaction survives at its coordinator.
    NOT_KNOWN = "NOT_KNOWN"
    #: Not decided yet. Its client or its coordinator will decide.
    OPEN = "OPEN"
    #: Not decided yet, and only an external coordinator may decide (two-phase commit, KIP-939).
    TWO_PHASE = "TWO_PHASE"
    #: Decided, while some markers are not acknowledged.
    DECIDED = "DECIDED"
    #: Decided, and all markers are acknowledged.
    COMPLETE = "COMPLETE"


class MarkerEvidence(StrEnum):
    """What the copy of a partition shows of the marker of a transaction."""

    #: A marker with the type and the epoch of the decision.
    AGREES = "AGREES"
    #: A marker of the other type ended records of the transaction.
    DIFFERS = "DIFFERS"
    #: The copy proves that there is no marker.
    ABSENT = "ABSENT"
    #: The copy is not known far enough, begins too late, or was not captured.
    HIDDEN = "HIDDEN"


class MarkerState(StrEnum):
    """The marker of a transaction on one partition."""

    FOUND = "FOUND"
    CONTRADICTING = "CONTRADICTING"
    EARLY = "EARLY"
    MISSING = "MISSING"
    PENDING = "PENDING"
    UNDECIDED = "UNDECIDED"
    IN_DOUBT = "IN_DOUBT"
    UNKNOWN = "UNKNOWN"


#: Marker state -> what it means.
MEANINGS: Final[Mapping[MarkerState, str]] = {
    MarkerState.FOUND: (
        "the partition has the marker of the decision, or the decision is not known and the partition has a marker"
    ),
    MarkerState.CONTRADICTING: "a marker of the other type ended the records here",
    MarkerState.EARLY: "a marker ended the records here although the transaction is not decided",
    MarkerState.MISSING: "the coordinator completed the transaction, but its marker is proven not to be here",
    MarkerState.PENDING: "the transaction is decided, and its marker is not here yet",
    MarkerState.UNDECIDED: "no decision is known, so no marker is due",
    MarkerState.IN_DOUBT: "only the application's own transaction manager knows the decision (two-phase commit)",
    MarkerState.UNKNOWN: "no captured copy shows whether the marker is here",
}

_D, _E, _M = DecisionState, MarkerEvidence, MarkerState
#: Decision and evidence -> state. Without a decision, no marker is due: then it does not matter what a copy hides.
MARKER_STATES: Final[Mapping[tuple[DecisionState, MarkerEvidence], MarkerState]] = {
    (_D.NOT_KNOWN, _E.AGREES): _M.FOUND,
    (_D.NOT_KNOWN, _E.DIFFERS): _M.FOUND,
    (_D.NOT_KNOWN, _E.ABSENT): _M.UNDECIDED,
    (_D.NOT_KNOWN, _E.HIDDEN): _M.UNKNOWN,
    (_D.OPEN, _E.AGREES): _M.EARLY,
    (_D.OPEN, _E.DIFFERS): _M.EARLY,
    (_D.OPEN, _E.ABSENT): _M.UNDECIDED,
    (_D.OPEN, _E.HIDDEN): _M.UNDECIDED,
    (_D.TWO_PHASE, _E.AGREES): _M.EARLY,
    (_D.TWO_PHASE, _E.DIFFERS): _M.EARLY,
    (_D.TWO_PHASE, _E.ABSENT): _M.IN_DOUBT,
    (_D.TWO_PHASE, _E.HIDDEN): _M.IN_DOUBT,
    (_D.DECIDED, _E.AGREES): _M.FOUND,
    (_D.DECIDED, _E.DIFFERS): _M.CONTRADICTING,
    (_D.DECIDED, _E.ABSENT): _M.PENDING,
    (_D.DECIDED, _E.HIDDEN): _M.UNKNOWN,
    (_D.COMPLETE, _E.AGREES): _M.FOUND,
    (_D.COMPLETE, _E.DIFFERS): _M.CONTRADICTING,
    (_D.COMPLETE, _E.ABSENT): _M.MISSING,
    (_D.COMPLETE, _E.HIDDEN): _M.UNKNOWN,
}


#: Marker state -> what a row says. `{marker}` is the marker's type with its article, `{decision}` COMMIT or ABORT.
SENTENCES: Final[Mapping[MarkerState, str]] = {
    MarkerState.CONTRADICTING: "{marker} marker at offset {marker_offset} contradicts the decision, {decision}",
    MarkerState.EARLY: "{marker} marker at offset {marker_offset} ended records of a transaction that is not decided",
    MarkerState.MISSING: "the coordinator completed the {decision}, but its marker never reached this log",
    MarkerState.PENDING: "the {decision} is decided, but its marker is not here yet",
    MarkerState.UNKNOWN: "not known whether the marker of the {decision} is here: {hidden_by}",
}
#: Why a copy does not show a marker: a condition on the copy -> what to say. The first one that is true counts.
HIDDEN_BY: Final[Mapping[str, str]] = {
    "is_gone": "the topic no longer exists",
    "is_not_captured": "no copy of the partition was captured",
    "is_followed": "later markers of the producer are here, and which one is of this transaction is not known",
    "has_hole": "the copy has a hole before offset {gap_offset}",
    "is_damaged": "the copy is damaged at offset {damaged_offset}",
    "is_not_opened": "no file of the copy was opened: coverage says why",
    "is_not_decoded": "the copy is text in which markers were not printed",
    "is_not_known_to_the_end": "the copy is known only until {known_until}",
    "begins_late": "the copy begins at offset {from_offset}",
    "is_captured": "nothing proves that the marker should still be here",
}


class WholeOutcome(StrEnum):
    """A transaction over all of its partitions."""

    SPLIT = "SPLIT"
    HALF_MARKED = "HALF_MARKED"
    IN_DOUBT = "IN_DOUBT"
    OPEN = "OPEN"
    COMPLETE = "COMPLETE"


#: Whole outcome -> marker states, any one of which leads to it. The first outcome that applies counts.
WHOLE_OUTCOMES: Final[Mapping[WholeOutcome, frozenset[MarkerState]]] = {
    WholeOutcome.SPLIT: frozenset({_M.CONTRADICTING}),
    WholeOutcome.HALF_MARKED: frozenset({_M.MISSING, _M.PENDING, _M.EARLY}),
    WholeOutcome.IN_DOUBT: frozenset({_M.UNKNOWN, _M.IN_DOUBT}),
    WholeOutcome.OPEN: frozenset({_M.UNDECIDED}),
    WholeOutcome.COMPLETE: frozenset({_M.FOUND}),
}
#: Whole outcome -> what it means.
WHOLE_MEANINGS: Final[Mapping[WholeOutcome, str]] = {
    WholeOutcome.SPLIT: "committed on one partition and aborted on another",
    WholeOutcome.HALF_MARKED: "decided, but a partition lacks its marker; or not decided, but a partition has one",
    WholeOutcome.IN_DOUBT: "the captured logs do not show its outcome on every partition",
    WholeOutcome.OPEN: "not decided",
    WholeOutcome.COMPLETE: "marked on every partition",
}


def whole_outcome(states: Iterable[MarkerState]) -> WholeOutcome | None:
    """The outcome of a transaction with these marker states; None if it has no partition."""
    seen = frozenset(states)
    return next((outcome for outcome, any_of in WHOLE_OUTCOMES.items() if seen & any_of), None)
