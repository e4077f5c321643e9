"""What an open transaction is, why, and what to do about it."""

from __future__ import annotations

from txnlib.core.verdicts.evidence import Evidence, PartitionSide, CoordinatorSide, Owner, Decided, Crc, Thresholds
from txnlib.core.verdicts.copies import Copy, Role, End, KnownBy, known_until_ms
from txnlib.core.verdicts.reason import REASONS_OF_OWNER, REASONS_OF_OTHERS
from txnlib.core.verdicts.reason import Verdict, Reason, EXPLANATIONS
from txnlib.core.verdicts.doubt import DOUBTS
from txnlib.core.verdicts.verdict import Judgement, judge
from txnlib.core.verdicts.find_hanging import SearchScope, find_hanging, is_candidate
from txnlib.core.verdicts.doubt import LATE_BY
from txnlib.core.verdicts.cause import causes
from txnlib.core.verdicts.proof import STATEMENTS
from txnlib.core.verdicts.judged import remedy
from txnlib.core.verdicts.abort_plan import OpenTransaction, plan
from txnlib.core.verdicts.evidence_records import evidence_records

__all__ = [
    "Evidence",
    "PartitionSide",
    "CoordinatorSide",
    "Owner",
    "Decided",
    "Crc",
    "Thresholds",
    "Copy",
    "Role",
    "End",
    "KnownBy",
    "known_until_ms",
    "REASONS_OF_OWNER",
    "REASONS_OF_OTHERS",
    "Verdict",
    "Reason",
    "EXPLANATIONS",
    "DOUBTS",
    "Judgement",
    "judge",
    "SearchScope",
    "find_hanging",
    "is_candidate",
    "LATE_BY",
    "causes",
    "STATEMENTS",
    "remedy",
    "OpenTransaction",
    "plan",
    "evidence_records",
]
