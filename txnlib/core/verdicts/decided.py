"""The decisions that may include an open transaction.

Source: docs/rules/abort.md#no-commit.
"""

from __future__ import annotations

from dataclasses import dataclass

from txnlib.core.copies import lowest
from txnlib.core.kafka.marker_acceptance import record_epochs
from txnlib.core.verdicts.dossier import CoordinatorDecision, OpenSpan
from txnlib.core.verdicts.match import Fit, Match, decided_ms, marker_epoch
from txnlib.core.verdicts.past import Past


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A decision about the producer id that lists, or may list, the partition, as far as it concerns the open
    records."""

    of: CoordinatorDecision
    #: Newest leader epoch of the coordinator partition, which a marker for the decision would have.
    coordinator_epoch: int | None = None
    #: Whether its marker is in the partition; None if the relevant records are gone.
    is_marked: bool | None = None
    #: Whether that marker can be of no other decision.
    is_surely_marked: bool = False
    #: Whether its marker may have been in the part of the log that was deleted.
    may_be_deleted: bool = False

    @property
    def is_commit(self) -> bool:
        return self.of.outcome == "COMMIT"

    @property
    def lists_partition(self) -> bool:
        """Whether its records list the partition; if not, only its last record is left, which lists none."""
        return self.of.partitions is not None


# ---- A decision, as far as it concerns the open records


def decided_of(match: Match, past: Past) -> Decided:
    decision, may_be_deleted = match.decision, _may_be_deleted(match, past)
    newest = past.facts.coordinator(decision.coordinator_partition).newest_coordinator_epoch
    return Decided(
        of=decision,
        coordinator_epoch=decision.coordinator_epoch if newest is None else newest,
        is_marked=None if may_be_deleted else _is_marked(match),
        is_surely_marked=past.is_sure(match),
        may_be_deleted=may_be_deleted,
    )


def _may_be_deleted(match: Match, past: Past) -> bool:
    """Whether the marker of a decision may have been in a part of the log that retention or compaction removed.

    It was not, if an older stamp is left before the first batch, or if every stamp that is left is older than the
    decision.
    """
    copy, decision, stamps = past.copy, match.decision, past.span.stamps
    begins = (copy.begins_at_start and not copy.first_offset) or any(each.before_ms is not None for each in stamps)
    if match.marker is not None or (begins and copy.gap_offset is None):
        return False
    oldest, ended = lowest(each.behind_ms for each in stamps), decided_ms(decision)
    differ = past.clocks.today(decision)
    return oldest is None or ended is None or ended + differ.offset_ms <= oldest + differ.differ_ms


def _is_marked(match: Match) -> bool | None:
    """Whether the marker of a decision is here; None if its records, or no times, are left to tell."""
    if match.fit is Fit.UNTIMED:
        return None
    if match.marker is not None:
        return True
    return False if match.decision.partitions is not None else None


def began_later_by_epoch(decision: CoordinatorDecision, span: OpenSpan) -> bool:
    """Whether none of the open records is of a transaction: its first record would have raised the epoch of the
    producer here.

    Its records were lost with a former leader, or never arrived.
    """
    epoch = marker_epoch(decision)
    return (
        epoch is not None
        and span.producer_epoch < record_epochs(epoch, decision.outcome, decision.transaction_version)[0]
    )
