"""Copies of a partition and its coordinators that are of different instants.

Each copy has an instant that is noted (`captured_at_ms`), and one up to which it shows everything (`known_until_ms`).
What happened between two copies, neither shows: docs/rules/copies.md#two-capture-instants.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from txnlib.core.copies import is_above
from txnlib.core.instants import clock_ms, clock_ms_or_latest
from txnlib.core.verdicts.age import ages_since
from txnlib.core.verdicts.case import Case
from txnlib.core.verdicts.reason import DECIDED_BY_RECORDS, EXPECTED_BY_RECORDS, NOBODY_ENDS_IT, Reason


def is_skewed(case: Case, reason: Reason) -> bool:
    """Whether the transaction may have begun after the coordinator's copy, or ended after the partition's own
    (docs/rules/copies.md#two-capture-instants)."""
    if reason in EXPECTED_BY_RECORDS:
        return _ended_after_coordinator(case) or _is_another_transaction(case)
    if reason in DECIDED_BY_RECORDS:
        return _ended_after_capture(case)
    if reason not in NOBODY_ENDS_IT:
        return False
    if _ended_after_capture(case) or not _began_before_capture(case):
        return True
    return _may_be_written_since(case)


def is_undated(case: Case, reason: Reason) -> bool:
    """Whether nothing notes when the copies were taken, and the transaction is old only if that was late."""
    return case.is_instant_assumed and ages_since(case, reason)


def _ended_after_coordinator(case: Case) -> bool:
    """Whether a marker of the producer, on any partition, is younger than the coordinator's copy: then the transaction
    has ended."""
    marked, copied = clock_ms_or_latest(case.newest_marker_ms), case.coordinators_known_until_ms
    return marked is not None and copied is not None and marked > copied - case.clocks_differ_ms


def _is_another_transaction(case: Case) -> bool:
    """Whether the partition's copy is older than the transaction of the coordinator: then the open records may be of
    another one."""
    known, copied, start = (
        case.copy.known_until_ms,
        case.coordinators_known_until_ms,
        clock_ms_or_latest(case.claim.start_ms),
    )
    if known is None or copied is None or start is None or copied <= known:
        return known is None and not case.is_current
    return start > known - case.clocks_differ_ms


def _ended_after_capture(case: Case) -> bool:
    """Whether a decision that lists the partition, or its completion, may be younger than the partition's copy: only
    this copy may lack the marker."""
    ended, known = clock_ms_or_latest(case.ended_ms), case.copy.known_until_ms
    # If it is unknown up to when the copy is complete, it may lack any marker.
    return ended is not None and (known is None or ended > known - margin_ms(case))


def margin_ms(case: Case) -> int:
    """How much earlier than the partition's copy a coordinator's time may seem, in ms, although it is later.

    If the marker of the newest decision is here, or both copies are of one instant, no clocks need to be compared
    (docs/rules/copies.md#clocks-of-two-brokers).
    """
    known, copied, decision = case.copy.known_until_ms, case.coordinators_known_until_ms, case.decision
    is_marked = decision is not None and decision.is_marked is True
    return case.clocks_differ_ms if is_above(copied, known) and not is_marked else 0


def _began_before_capture(case: Case) -> bool:
    """Whether the transaction is known to have begun before the coordinator's log was copied."""
    if _is_copied_first(case):
        return True
    proofs = (case.stamped_after_ms, case.checkpointed_ms, case.seen_open_ms)
    return _precedes_capture(case, proofs, case.first_timestamp_ms, case.stamped_before_ms)


def _may_be_written_since(case: Case) -> bool:
    """Whether it may have been written to after the coordinator's copy: in a transaction that this copy cannot show."""
    if case.is_written_after_coordinator:
        return True
    if not case.is_written_again or _is_copied_first(case):
        return False
    proofs = (case.written_before_ms, case.written_checkpointed_ms)
    return not _precedes_capture(case, proofs, case.span.last_timestamp_ms, case.written_after_ms)


def _is_copied_first(case: Case) -> bool:
    """Whether the partition was copied before its coordinator's log, or at the same time."""
    copied = case.coordinators_known_until_ms
    taken = case.copy.known_until_ms if case.captured_by_ms is None else case.captured_by_ms
    return taken is not None and copied is not None and copied >= taken


def _precedes_capture(
    case: Case, proofs: tuple[int | None, ...], written_ms: int | None, stamped_ms: int | None
) -> bool:
    """Whether something was written before the coordinator's log was copied.

    By instants that are not older than it (`proofs`), or by its own time, if the newest stamp before it confirms that
    clock.
    """
    copied = case.coordinators_known_until_ms
    if copied is None:
        return False
    if any(proof is not None and proof <= copied for proof in map(clock_ms, proofs)):
        return True
    written, stamped = clock_ms(written_ms), clock_ms(stamped_ms)
    if written is None or case.hides_stamps:
        return False
    if case.span.is_broker_clock:
        return max(written, written if stamped is None else stamped) <= copied
    # A client's clock counts only if a broker's timestamp near it confirms it.
    if stamped is None or abs(stamped - written) > case.thresholds.clock_tolerance_ms:
        return False
    return max(written, stamped) <= copied


# ---- Why, in words


class Skew(Enum):
    """Why the copies of a partition and of its coordinator are not of one instant."""

    #: They were taken at different ones.
    TAKEN = "TAKEN"
    #: Nothing notes the instants.
    ASSUMED = "ASSUMED"
    #: A console consumer's text does not tell where it ends.
    PRINTED = "PRINTED"


def skew_of(case: Case) -> Skew:
    """The one reason of `CAPTURE_SKEW`, whatever else holds."""
    if not case.is_instant_assumed:
        return Skew.TAKEN
    copies = [copy for each in case.coordinators.logs for copy in each.captured]
    if not copies or any(copy.captured_at_ms is None for copy in (case.copy, *copies)):
        return Skew.ASSUMED
    return Skew.PRINTED if all(copy.is_console_text for copy in copies) else Skew.TAKEN


#: Skew -> text in place of that of `EXPLANATIONS`.
EXPLANATIONS_BY_SKEW: Final[Mapping[Skew, str]] = {
    Skew.ASSUMED: (
        "the instants of the copies are assumed, because nothing notes them (give --captured-at TIME, or one line of"
        " capture.json: captured_at_ms): the transaction may have begun, or ended, between the copy of the partition"
        " and that of its coordinator"
    ),
    Skew.PRINTED: (
        "a console consumer's text of {name} does not tell where it ends (dump or copy that partition): the transaction"
        " may have begun, or ended, behind the last record in it"
    ),
}
#: Skew -> why no marker may be written by hand, in place of the text of `REFUSALS_BY_REASON`.
REFUSALS_BY_SKEW: Final[Mapping[Skew, str]] = {
    Skew.ASSUMED: (
        "the instants of the copies are not known: give --captured-at TIME, or copy the coordinators before and after"
        " the partitions"
    ),
    Skew.PRINTED: "a console consumer's text does not tell where it ends: dump or copy {log}",
}
