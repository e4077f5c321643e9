"""A dossier that proves an abort safe; tests change one thing at a time.

`bar` committed on foo-5 at noon less a minute, and a batch came after the marker. All copies are whole and of one
o'clock.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from txnlib.core.copies import CoverageRow
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC
from txnlib.core.rows import TopicPartition
from txnlib.core.tables.judged_transactions import judge_dossier
from txnlib.core.verdicts.cluster_facts import ClusterFacts, Thresholds
from txnlib.core.verdicts.coordinators import CoordinatorPartition, PartitionFacts
from txnlib.core.verdicts.dossier import (
    CheckedBatch,
    Claim,
    CoordinatorDecision,
    Dossier,
    EpochStamps,
    OpenSpan,
    WrittenMarker,
)
from txnlib.core.verdicts.whose_clock import clocks_by_epoch

MINUTE = 60_000
NOON = 1_710_000_000_000
ONE = NOON + 60 * MINUTE
FOO = TopicPartition("foo", 5)

COPY = CoverageRow(
    topic="foo", partition=5, source="raw:1", broker="1", topic_id="AAAA", is_judged=True, is_current=True,
    role="LEADER",
    ends="WHOLE", leader="1", leader_basis="CAPTURE_JSON", leader_epoch=3, checkpoint_leader_epoch=3, end_offset=100,
    survives_until=100, log_start_offset=0, read_from_offset=0, high_watermark=100, noted_high_watermark=100,
    checkpointed_at_ms=ONE, captured_at_ms=ONE, newest_stamp_ms=ONE - MINUTE, known_until_ms=ONE,
    is_instant_assumed=False, tail="CLEAN", is_decoded=True, status="COMPLETE",
)  # fmt: skip
MARKER = WrittenMarker(offset=40, type="COMMIT", epoch=5, coordinator_epoch=19, ms=NOON - MINUTE + 10, first_offset=30)
BEFORE = CheckedBatch(
    place="before", producer_epoch=5, base_sequence=0, last_sequence=4, partition_leader_epoch=3, is_crc_valid=True
)
FIRST = replace(BEFORE, place="first", base_sequence=5, last_sequence=6, crc=77)
BEFORE_MS, BEHIND_MS = NOON - MINUTE + 10, NOON + MINUTE
STAMPS = EpochStamps(
    leader_epoch=3, before_ms=BEFORE_MS, before_last_ms=BEFORE_MS, behind_ms=BEHIND_MS, behind_last_ms=BEHIND_MS
)
SPAN = OpenSpan(
    topic="foo", partition=5, start_offset=50, last_offset=51, first_epoch=5, producer_epoch=5, coordinator_epoch=19,
    first_timestamp_ms=NOON, last_timestamp_ms=NOON, records=2, bytes_from_here=700, markers=(MARKER,),
    checks=(BEFORE, FIRST), stamps=(STAMPS,),
)  # fmt: skip
DECISION = CoordinatorDecision(
    coordinator_partition=3, outcome="COMMIT", state="CompleteCommit", first_epoch=5, decided_epoch=5,
    coordinator_epoch=19, partitions=(FOO,), first_record_offset=60, last_record_offset=62, start_ms=NOON - 2 * MINUTE,
    said_ms=NOON - MINUTE, prepared_ms=NOON - MINUTE, completed_ms=NOON - MINUTE + 20,
)  # fmt: skip
#: A later transaction of `bar` that its coordinator committed with the partition, and whose marker is not here.
LOST = replace(
    DECISION, first_record_offset=70, last_record_offset=72, start_ms=NOON - 1_000, said_ms=NOON + 1_000,
    prepared_ms=NOON + 1_000, completed_ms=NOON + 1_020,
)  # fmt: skip
CLAIM = Claim(
    transactional_id="bar", coordinator_partition=3, owner="CURRENT", first_record_offset=10, last_record_offset=62,
    state="CompleteCommit", producer_epoch=5, transaction_timeout_ms=60_000, start_ms=NOON - 2 * MINUTE,
    last_update_ms=NOON - MINUTE, record_ms=NOON - MINUTE + 20, record_coordinator_epoch=19, record_offset=62,
)  # fmt: skip
DOSSIER = Dossier(producer_id=132, open=(SPAN,), claims=(CLAIM,), decisions=(DECISION,))
COORDINATOR = CoordinatorPartition(partition=3, copies=(COPY,), newest_coordinator_epoch=19, last_offset=99)
#: Compaction removed records that are younger than everything in the dossier.
COMPACTED = replace(COORDINATOR, hole_offset=90, hole_ms=NOON + 10 * MINUTE)


def with_clocks(facts: ClusterFacts) -> ClusterFacts:
    """The facts, with the clocks that the copies of the partitions and of the coordinators show."""
    named = {place: clocks_by_epoch(each.copies, each.elections) for place, each in facts.partitions.items()}
    for each in facts.coordinators:
        named[TRANSACTION_STATE_TOPIC, each.partition] = clocks_by_epoch(each.copies, each.elections)
    return replace(facts, clocks=replace(facts.clocks, named=named))


def placed(facts: ClusterFacts, given: dict[str, Any]) -> ClusterFacts:
    """The facts, with changes to what they show about foo-5."""
    return with_clocks(replace(facts, partitions={FOO_5: replace(facts.partition(*FOO_5), **given)}))


FOO_5 = ("foo", 5)
FACTS = with_clocks(
    ClusterFacts(
        thresholds=Thresholds(as_of_ms=ONE), kafka_version="3.9.1", transaction_version=0, coordinators=(COORDINATOR,),
        partitions={FOO_5: PartitionFacts(copies=(COPY,))},
    )
)  # fmt: skip
ORPHAN = replace(DOSSIER, claims=(), decisions=(), open=(replace(SPAN, markers=()),))


def judged(
    *,
    dossier: dict[str, Any] | Dossier = DOSSIER,
    span: dict[str, Any] | None = None,
    copy: dict[str, Any] | None = None,
    place: dict[str, Any] | None = None,
    claim: dict[str, Any] | None = None,
    coordinator: dict[str, Any] | CoordinatorPartition = COORDINATOR,
    coordinator_copy: dict[str, Any] | None = None,
    facts: dict[str, Any] | None = None,
) -> Any:
    """The only open transaction of the sample, with changes to its parts."""
    of = replace(DOSSIER, **dossier) if isinstance(dossier, dict) else dossier
    (opened,) = of.open
    opened = replace(opened, **span or {})
    place = dict(place or {})
    if copy is not None:
        place["copies"] = (replace(COPY, **copy),)
    if claim is not None:
        of = replace(of, claims=(replace(CLAIM, **claim),))
    partition = replace(COORDINATOR, **coordinator) if isinstance(coordinator, dict) else coordinator
    if coordinator_copy is not None:
        partition = replace(partition, copies=(replace(COPY, **coordinator_copy),))
    of = replace(of, open=(opened,))
    of_cluster = replace(FACTS, **{"coordinators": (partition,), **(facts or {})})
    (row,) = judge_dossier(of, placed(of_cluster, place))
    return row


def failing(row: Any) -> list[str]:
    """The statements of the proof that do not hold."""
    return [proof.name.value for proof in row.safety if not proof.holds]
