"""The judged rows of a dossier: each of its open transactions with verdict, causes, proof and remedy."""

from __future__ import annotations

from dataclasses import dataclass, field

from txnlib.core.instants import clock_ms
from txnlib.core.verdicts.ages import known_at_ms
from txnlib.core.verdicts.cause import Cause, causes
from txnlib.core.verdicts.coordinator_copies import Coordinators
from txnlib.core.verdicts.dossier import ClusterFacts, Dossier, OpenSpan
from txnlib.core.verdicts.dossier_evidence import evidence_of
from txnlib.core.verdicts.dossier_partition import committed_siblings, is_same_transaction
from txnlib.core.verdicts.evidence import Evidence
from txnlib.core.verdicts.evidence_records import EvidenceRecord, evidence_records
from txnlib.core.verdicts.find_hanging import MS_PER_MINUTE
from txnlib.core.verdicts.proof import Proof
from txnlib.core.verdicts.remedy import remedy
from txnlib.core.verdicts.verdict import judge

#: Most partitions in a row.
_SHOWN: int = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedTransaction:
    """A row of `open_transactions`, with the names of its columns. Instants are epoch ms: `as_of_ms` for the column as_of."""

    as_of_ms: int
    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    start_offset: int
    last_timestamp_ms: int | None
    duration_minutes: int | None
    transactional_id: str | None
    coordinator_partition: int | None
    coordinator_state: str | None
    transaction_start_ms: int | None
    transaction_timeout_ms: int | None
    is_two_phase_commit: bool
    verdict: str
    reason: str
    explanation: str
    kafka_find_hanging: bool | None
    causes: tuple[Cause, ...]
    evidence: tuple[EvidenceRecord, ...]
    late_by: str | None
    age_basis: str
    broker_clock_age_ms: int | None
    safe_to_abort: bool
    abort_command: str | None
    do_not_abort_because: str | None
    blocked_offsets: int
    blocked_bytes: int | None
    blocks_since_ms: int | None
    first_seen_ms: int
    runs_seen: int
    safe_from_ms: int | None
    safety: tuple[Proof, ...]
    records: int | None
    committed_siblings: tuple[str, ...] = field(default=())
    copied_at_ms: int | None
    topic_id: str | None
    first_batch_crc: int | None
    #: Added by whoever knows the patterns of applications.
    application: str | None = None


def judge_dossier(dossier: Dossier, facts: ClusterFacts, coordinators: Coordinators | None = None) -> list[JudgedTransaction]:
    """One row per open transaction of the dossier. `coordinators`: `Coordinators.of(facts)`, if computed before."""
    known = Coordinators.of(facts) if coordinators is None else coordinators
    return [_judged(span, evidence_of(dossier, span, facts, known), facts) for span in dossier.open]


def _judged(span: OpenSpan, evidence: Evidence, facts: ClusterFacts) -> JudgedTransaction:
    thresholds, version = facts.thresholds, facts.kafka_version
    judgement = judge(evidence, thresholds, version)
    cure = remedy(evidence, judgement, thresholds, version)
    partition, coordinator = evidence.on_partition, evidence.at_coordinator
    copy, first = span.judged_copy, span.first_check
    seen = {each.run_id: each.as_of_ms for each in span.earlier if is_same_transaction(each, copy, first) is not False}
    written = clock_ms(span.last_timestamp_ms)
    end = copy.high_watermark if copy.high_watermark is not None else copy.end_offset
    is_counted = (
        copy.read_from_offset is None
        or (copy.log_start_offset or 0) >= copy.read_from_offset
        or span.start_offset >= copy.read_from_offset
    )
    since = (judgement.proven_since_ms, clock_ms(partition.first_timestamp_ms), written)
    return JudgedTransaction(
        as_of_ms=thresholds.as_of_ms,
        topic=span.topic,
        partition=span.partition,
        producer_id=partition.producer_id,
        producer_epoch=span.producer_epoch,
        coordinator_epoch=span.coordinator_epoch,
        start_offset=span.start_offset,
        last_timestamp_ms=span.last_timestamp_ms,
        duration_minutes=None if written is None else int((thresholds.as_of_ms - written) / MS_PER_MINUTE),
        transactional_id=coordinator.transactional_id,
        coordinator_partition=coordinator.coordinator_partition,
        coordinator_state=None if coordinator.state is None else coordinator.state.kafka_name,
        transaction_start_ms=clock_ms(coordinator.transaction_start_ms),
        transaction_timeout_ms=coordinator.transaction_timeout_ms,
        is_two_phase_commit=coordinator.is_two_phase_commit,
        verdict=judgement.verdict.value,
        reason=judgement.reason.value,
        explanation=judgement.explanation,
        kafka_find_hanging=judgement.kafka_find_hanging,
        causes=tuple(causes(judgement.reason, evidence, version)),
        evidence=evidence_records(evidence),
        late_by=None if judgement.late_by is None else judgement.late_by.value,
        age_basis=judgement.age_basis,
        broker_clock_age_ms=judgement.broker_clock_age_ms,
        safe_to_abort=cure.safe_to_abort,
        abort_command=cure.abort_command,
        do_not_abort_because=cure.do_not_abort_because,
        blocked_offsets=max((end or 0) - span.start_offset, 0),
        blocked_bytes=span.bytes_from_here if is_counted else None,
        blocks_since_ms=next((ms for ms in since if ms is not None), None),
        first_seen_ms=min(seen.values(), default=thresholds.as_of_ms),
        runs_seen=1 + len(seen),
        safe_from_ms=cure.safe_from_ms,
        safety=cure.safety,
        records=span.records,
        committed_siblings=committed_siblings(span)[:_SHOWN],
        copied_at_ms=known_at_ms(evidence, thresholds) if partition.known_until_ms is not None else None,
        topic_id=partition.topic_id,
        first_batch_crc=partition.first_batch_crc,
    )
