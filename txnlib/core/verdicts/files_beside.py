"""What files beside logs know of an open transaction.

Every file of a topic id speaks, also where the log beside it was not captured, or ends earlier. Source:
docs/rules/copies.md#files-beside-logs.
"""

from __future__ import annotations

from txnlib.core.copies import CopyBeside, highest, is_above
from txnlib.core.verdicts.case_facts import CaseFacts
from txnlib.core.verdicts.dossier import FileBeside


def files_against(case: CaseFacts) -> list[FileBeside]:
    """The files that contradict the judged copy: they do not have the transaction open since its first batch, or have
    more of it."""
    start, end = case.span.start_offset, case.copy.end_offset or 0
    return [
        each
        for each in case.span.files_beside
        if each.is_index or each.first_offset != start or is_above(each.last_offset, end - 1)
    ]


def ended_by(case: CaseFacts) -> FileBeside | None:
    """The first that shows that it has ended, behind the end of the judged copy; None if none does.

    Up to that end, the judged copy itself shows that there is no marker. Truncated records end nothing.
    """
    start, end = case.span.start_offset, case.copy.end_offset or 0
    behind = [each for each in files_against(case) if each.end_offset > end and not each.is_truncated]
    return next(
        (each for each in behind if each.is_index or each.first_offset is None or each.first_offset > start), None
    )


def newer_leader(case: CaseFacts) -> CopyBeside | None:
    """The copy with the newest leader epoch, if the judged copy does not know that epoch; else None."""
    others = [CopyBeside(each.source or "", each.broker, each.leader_epoch) for each in case.place.captured]
    known = highest((case.copy.leader_epoch, case.copy.checkpoint_leader_epoch))
    newer = [each for each in (*others, *(case.copy.copies_beside or ())) if is_above(each.leader_epoch, known)]
    return max(newer, key=lambda each: each.leader_epoch or 0, default=None)


def leader_in_words(found: CopyBeside | None) -> str:
    """What the copy with the newer leader epoch shows, and what to do; empty without one."""
    if found is None:
        return ""
    where, since = "the copy", ""
    if found.from_offset is not None:
        where, since = "the leader-epoch-checkpoint", f" from offset {found.from_offset} on"
    return (
        f"{where} of broker {found.broker} has leader epoch {found.leader_epoch}{since}, which the judged copy does not"
        " know: copy the log directory of the broker that leads it now"
    )
