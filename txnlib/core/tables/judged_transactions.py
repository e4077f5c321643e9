"""Rows of `open_transactions`: each open transaction of a dossier, judged."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from txnlib.core.application import application_of
from txnlib.core.finding import Alarm
from txnlib.core.instants import clock_ms
from txnlib.core.kafka_commands import MS_PER_MINUTE
from txnlib.core.rows import row_of
from txnlib.core.schema import row_class
from txnlib.core.verdicts.age import known_at_ms
from txnlib.core.verdicts.case import Case
from txnlib.core.verdicts.cause import causes
from txnlib.core.verdicts.cluster_facts import ClusterFacts
from txnlib.core.verdicts.dossier import Dossier
from txnlib.core.verdicts.earlier_audits import seen
from txnlib.core.verdicts.evidence_records import evidence_records
from txnlib.core.verdicts.no_commit import answer_of
from txnlib.core.verdicts.remedy import remedy
from txnlib.core.verdicts.verdict import judge

#: Most partitions to name in a row.
_SHOWN: Final = 20


JudgedTransaction: Final = row_class("open_transactions")


def judge_dossier(dossier: Dossier, facts: ClusterFacts, patterns: Sequence[re.Pattern[str]] = ()) -> list[Any]:
    """A row of `open_transactions` for each transaction of a dossier that has not ended. `patterns`: those that find
    the application in an id."""
    cases: list[Case] = []
    cases += [Case(dossier=dossier, span=span, facts=facts, of_producer=cases) for span in dossier.open]
    return [_judged(case, patterns) for case in cases if not case.has_ended]


def _judged(case: Case, patterns: Sequence[re.Pattern[str]]) -> Any:
    span, copy, claim, as_of = case.span, case.copy, case.claim, case.thresholds.as_of_ms
    judgement, answer = judge(case), answer_of(case)
    promised = case.earlier[-1] if case.earlier and case.earlier[-1].is_promised else None
    written = clock_ms(span.last_timestamp_ms)
    since = (judgement.proven_since_ms, clock_ms(case.first_timestamp_ms), written)
    return row_of(
        JudgedTransaction,
        judgement,
        remedy(case, judgement, answer, promised),
        seen(span.earlier, copy, case.first_batch_crc, as_of),
        case,
        span,
        claim,
        as_of_ms=as_of,
        producer_id=case.dossier.producer_id,
        topic_id=copy.topic_id,
        newest_leader_epoch=case.led_at_copies,
        duration_minutes=None if written is None else int((as_of - written) / MS_PER_MINUTE),
        coordinator_state=claim.state,
        transaction_start_ms=clock_ms(claim.start_ms),
        causes=causes(judgement.reason, case, answer),
        evidence=evidence_records(case),
        blocked_offsets=max(copy.high_watermark_or_end - max(span.start_offset, copy.log_start_offset or 0), 0),
        blocked_bytes=span.bytes_from_here if copy.has_read(span.start_offset) else None,
        blocks_since_ms=next((ms for ms in since if ms is not None), None),
        committed_siblings=case.committed_siblings[:_SHOWN],
        holds=_holds(case),
        carried=case.to_carry,
        copied_at_ms=known_at_ms(case) if copy.known_until_ms is not None else None,
        application=None if claim.transactional_id is None else application_of(claim.transactional_id, patterns),
    )


def _holds(case: Case) -> bool | None:
    """Whether the transaction holds the last stable offset of its partition. None if the leader said that another one
    does, which no captured record shows."""
    if case.span.first_open_offset is None or Alarm.LIVE_STABLE_OFFSET_DISAGREES in case.place.alarms:
        return None
    return case.span.start_offset == case.span.first_open_offset
