"""Probable causes: known ones with their signatures, ranked, each with what in the records speaks for it.

A signature is a predicate on the case; a cause is named only if it matches. Versions are those with the fault: if
the brokers are newer according to the capture, the cause is UNLIKELY, because the fault may date from before an
upgrade. Source: the issues that the causes name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Final

from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import (
    EXHAUSTED_EPOCH,
    GROUP_METADATA_TOPIC,
    is_ahead,
)
from txnlib.core.kafka_commands import MS_PER_MINUTE
from txnlib.core.verdicts.case import Case
from txnlib.core.verdicts.cause_rule import Cause, CauseRule, Likelihood, ranked
from txnlib.core.verdicts.metadata_events import (
    events,
    has_event,
    is_coordinator_leaderless,
    is_dropped_without_leader,
    is_leaderless,
    lacks_marker,
    lost_by,
    may_be_lost_by_election,
)
from txnlib.core.verdicts.no_commit import Answer
from txnlib.core.verdicts.reason import Reason


class CauseName(StrEnum):
    """A known cause. The value is what it says; `{…}` are fields of the case."""

    UNCLEAN_ELECTION = (
        "an unclean election removed the newest records of the partition, and with them the marker of the decision"
    )
    UNDATED_ELECTION = (
        "the leader of the partition was elected without being in sync, and may have lost the marker of the decision"
    )
    TOPIC_CREATED_AGAIN = (
        "the topic was deleted and created again after the decision, and its markers were deleted with it"
    )
    DROPPED_WITHOUT_LEADER = (
        "the partition had no leader when its coordinator ended the transaction, and the marker was dropped (brokers"
        " from 4.2 on)"
    )
    TRANSACTION_VERSION_LOWERED = (
        "transaction.version was lowered while the transaction, or the one before it, was open"
    )
    MARKER_CLEANED = (
        "compaction removed its marker: this broker's cleaner (KAFKA-13727; fixed in 3.0.2, 3.1.1 and 3.2.0), or that"
        " of another replica before this one copied it"
    )
    MARKER_LOST = (
        "its coordinator decided a transaction with this partition, and the marker is gone: the topic was created"
        " again, the log was truncated (unclean election), or the copy is an older one"
    )
    NO_LEADER = "the partition has no leader, so nobody can write the marker"
    NO_COORDINATOR = "the coordinator's partition has no leader, so nobody acts for {transactional_id}"
    TOO_FEW_IN_SYNC = (
        "the partition has fewer in-sync replicas than min.insync.replicas, so it refuses the marker, and its"
        " coordinator tries again for ever"
    )
    COORDINATOR_TOO_FEW_IN_SYNC = (
        "the coordinator's partition has fewer in-sync replicas than min.insync.replicas, so its coordinator cannot"
        " write that the transaction ends"
    )
    COORDINATOR_FENCED = (
        "the broker that was the coordinator was fenced, and its successor has not finished the transaction"
    )
    OLD_TIMES = (
        "the producer writes old timestamps: by its coordinator's clock, the transaction is younger than its last write"
    )
    OFFSET_COMMIT_RACED = (
        "a transactional offset commit raced its verification (KAFKA-15784; brokers 3.6, fixed in 3.7.0)"
    )
    LATE_PRODUCE = (
        "late produce request after its transaction's end (KAFKA-14402 family; fixed by transactions v2, 4.0)"
    )
    ENDED_EARLY = (
        "a repeated marker of the previous transaction ended the next one too early (KAFKA-19446; brokers 4.0 and 4.1)"
    )
    OTHER_CLIENT_CONTINUED = "a client other than Kafka's own continued to write after its EndTxn (KAFKA-18957)"
    PARTITION_NOT_ADDED = (
        "a client wrote without adding the partition to its transaction (KAFKA-12671; brokers before 3.6, or with "
        "transaction.partition.verification.enable off)"
    )
    PARTITION_NOT_ADDED_TO_NEWEST = (
        "a client wrote without adding the partition to its newest transaction (KAFKA-12671; brokers before 3.6, or"
        " with transaction.partition.verification.enable off)"
    )
    FOREIGN_PRODUCER_ID = (
        "no coordinator made the producer id: a client made it up, or the records are from another cluster"
    )
    COORDINATOR_LOST_RECORDS = (
        "a coordinator partition lost its records (disk lost, topic created again, log truncated)"
    )
    ID_EXPIRED = "its transactional id expired, and compaction removed its tombstone"
    RECORDS_LOST_OR_ID_MADE_UP = "a coordinator partition lost its records, or a client made up its producer id"
    HUNG_UNTIL_EXPIRY = (
        "the partition hung for longer than transactional.id.expiration.ms, and its id expired meanwhile"
    )
    LATE_WITH_FORMER_PRODUCER_ID = (
        "late produce request with a producer id that its transactional id has given up (epochs exhausted, or the id"
        " was created again)"
    )
    COORDINATOR_UNCLEAN_ELECTION = (
        "an unclean election of its coordinator's partition removed the coordinator's newest records"
    )
    EPOCH_MADE_UP = (
        "a client wrote with an epoch that its coordinator never assigned (accepted without verification, before 4.0)"
    )
    COORDINATOR_LOST_NEWEST_RECORDS = (
        "the coordinator lost its newest records (unclean election, or a restored older copy)"
    )
    EPOCH_AHEAD = (
        "the partition has seen a newer producer epoch than the decision's, so it refuses every retry of the marker"
    )
    COORDINATOR_EPOCH_AHEAD = (
        "the partition has seen a newer coordinator epoch, as after a marker by a zombie coordinator or by hand"
        " (KAFKA-9144 and similar), so it refuses every retry of the marker"
    )
    LEADER_UNREACHABLE = "the partition's leader is not reachable"
    FORGOTTEN = (
        "the coordinator stopped sending markers (KAFKA-16352, fixed in 3.8.0; KAFKA-9777, fixed in 2.6.0; KAFKA-10080)"
    )
    REPEATED_MARKER_REFUSED = "a repeated marker is refused under transactions v2 (KAFKA-19999; 4.2 before its fix)"
    EPOCH_EXHAUSTED = "the epoch is exhausted, so its coordinator cannot fence it (KAFKA-20090)"
    TIMEOUT_SCAN_STOPPED = (
        "its coordinator does not run the timeout scan: __transaction_state-{coordinator_partition} has no leader, or"
        " one that is overloaded"
    )


def _has_marker(case: Case) -> bool:
    return case.span.marker is not None


def _is_same_epoch(case: Case) -> bool:
    """Data at the marker's epoch: transactions v0 and v1 do not fence it."""
    return case.span.marker is not None and case.span.producer_epoch == case.span.marker.epoch


def _is_v2(case: Case) -> bool:
    return (case.claim.client_transaction_version or 0) >= 2


def _is_in_time_at_coordinator(case: Case) -> bool:
    """By the coordinator's clock, the transaction is younger than the last write claims."""
    start, written = clock_ms(case.claim.start_ms), clock_ms(case.span.last_timestamp_ms)
    return start is not None and written is not None and written < start - 5 * MS_PER_MINUTE


_PROVEN, _L, _P = Likelihood.PROVEN, Likelihood.LIKELY, Likelihood.POSSIBLE

_AFTER_MARKER: Final = "the open batches are after the {marker_type} marker at offset {marker_offset}"
_NO_RECORD: Final = "no record of any coordinator names producer {producer_id}"
_EPOCHS: Final = "epoch {producer_epoch} in the partition, {coordinator_producer_epoch} at the coordinator"
_RECORD: Final = "{transactional_id} at {record_place} of __transaction_state-{coordinator_partition}"

_LATE_AT_MARKERS_EPOCH: Final = CauseRule(
    CauseName.LATE_PRODUCE, _L, _AFTER_MARKER + ", with its epoch {marker_epoch}", _is_same_epoch
)
_OFFSETS: Final = CauseRule(
    CauseName.OFFSET_COMMIT_RACED,
    _L,
    "the partition belongs to __consumer_offsets; the last marker of this producer there: {marker_offset}",
    lambda case: case.span.topic == GROUP_METADATA_TOPIC,
    (3, 7),
)
_UNCLEAN_SHOWS: Final = "{unclean_election}{lost_offsets}; before, {transactional_id} was decided ({decision})"
#: Causes of a missing marker that the metadata log shows.
_SHOWN_LOSSES: Final = (
    CauseRule(CauseName.UNCLEAN_ELECTION, _PROVEN, _UNCLEAN_SHOWS, lost_by("unclean_election", is_proven=True)),
    CauseRule(CauseName.UNCLEAN_ELECTION, _L, _UNCLEAN_SHOWS, lost_by("unclean_election", is_proven=False)),
    CauseRule(
        CauseName.UNDATED_ELECTION,
        _L,
        "{undated_unclean_election}; {transactional_id} was decided ({decision}), at an unknown time before or after",
        may_be_lost_by_election,
    ),
    CauseRule(
        CauseName.TOPIC_CREATED_AGAIN,
        _PROVEN,
        "{topic_created}; before, {transactional_id} was decided ({decision})",
        lost_by("topic_created", is_proven=True),
    ),
    CauseRule(
        CauseName.DROPPED_WITHOUT_LEADER,
        _L,
        "{leaderless}; {transactional_id} was decided ({decision}) and completed without this marker",
        is_dropped_without_leader,
    ),
)
_GAP_BEHIND: Final = "records are missing behind it, before offset {gap_offset}"
_CLEANED: Final = (
    CauseRule(
        CauseName.MARKER_CLEANED,
        _L,
        _GAP_BEHIND + "; {transactional_id} was decided ({decision})",
        lambda case: case.gap_offset is not None and lacks_marker(case),
    ),
    CauseRule(
        CauseName.MARKER_CLEANED,
        _L,
        _GAP_BEHIND + "; {unmarked}",
        lambda case: case.gap_offset is not None and not lacks_marker(case),
        given=lambda answer: answer.unmarked is not None,
    ),
    CauseRule(
        CauseName.MARKER_CLEANED,
        _P,
        _GAP_BEHIND + ": a marker may be among them",
        lambda case: case.gap_offset is not None and not lacks_marker(case),
        given=lambda answer: answer.unmarked is None,
    ),
)
_LOWERED: Final = CauseRule(
    CauseName.TRANSACTION_VERSION_LOWERED, _L, "{lowered_feature}", has_event("lowered_feature")
)
_LOST_MARKER: Final = CauseRule(
    CauseName.MARKER_LOST,
    _L,
    "__transaction_state-{coordinator_partition} has the decision ({decision}) of {transactional_id}; no marker follows"
    " it here",
    lambda case: (
        lacks_marker(case) and case.gap_offset is None and not any(rule.applies(case) for rule in _SHOWN_LOSSES)
    ),
)


def _not_added(likelihood: Likelihood, given: Callable[[Answer], bool]) -> CauseRule:
    return CauseRule(
        CauseName.PARTITION_NOT_ADDED,
        likelihood,
        "no current record of {transactional_id} lists {topic}-{partition}, and the partition has no marker of the"
        " producer",
        lambda case: not _has_marker(case) and not lacks_marker(case),
        given=given,
    )


def _may_be_compacted(case: Case) -> bool:
    """Whether a record may have been removed from a coordinator's log: no copy shows one that has all records."""
    logs = case.facts.coordinators
    return not logs or any(each.hole_end is not None for each in logs)


_NO_LEADER: Final = CauseRule(CauseName.NO_LEADER, _PROVEN, "{leaderless}", is_leaderless)
_NO_COORDINATOR: Final = CauseRule(
    CauseName.NO_COORDINATOR, _PROVEN, "{coordinator_leaderless}", is_coordinator_leaderless
)
#: Nothing is written there: no marker, no end of a transaction.
_TOO_FEW: Final = CauseRule(
    CauseName.TOO_FEW_IN_SYNC, _PROVEN, "{too_few_in_sync}", lambda case: case.place.too_few_in_sync is not None
)
_COORDINATOR_TOO_FEW: Final = CauseRule(
    CauseName.COORDINATOR_TOO_FEW_IN_SYNC,
    _PROVEN,
    "{coordinator_too_few_in_sync}",
    lambda case: case.coordinator.too_few_in_sync is not None,
)
_FENCED_COORDINATOR: Final = CauseRule(
    CauseName.COORDINATOR_FENCED,
    _L,
    "{fenced_coordinator}",
    lambda case: events(case)["fenced_coordinator"] is not None and not is_coordinator_leaderless(case),
)
_OLD_TIMESTAMPS: Final = CauseRule(
    CauseName.OLD_TIMES,
    _L,
    "the timestamp of the last write is older than the transaction's start at the coordinator",
    _is_in_time_at_coordinator,
)

#: Reason -> candidates, most likely first.
CAUSES: Final[Mapping[Reason, tuple[CauseRule, ...]]] = {
    Reason.WRITTEN_AFTER_MARKER: (
        *_SHOWN_LOSSES,
        _LOWERED,
        _OFFSETS,
        _LATE_AT_MARKERS_EPOCH,
        *_CLEANED,
        CauseRule(
            CauseName.ENDED_EARLY,
            _P,
            "transactions v2, and the marker at offset {marker_offset} has the epoch of the data, {marker_epoch}",
            lambda case: _is_v2(case) and _is_same_epoch(case),
            (4, 2),
        ),
        CauseRule(CauseName.OTHER_CLIENT_CONTINUED, _P, _AFTER_MARKER, _has_marker),
    ),
    Reason.PARTITION_NOT_IN_TRANSACTION: (
        *_SHOWN_LOSSES,
        _LOWERED,
        _OFFSETS,
        _LOST_MARKER,
        CauseRule(
            CauseName.COORDINATOR_LOST_RECORDS, _L, "{lost_decisions}", given=lambda answer: bool(answer.lost_decisions)
        ),
        _not_added(_L, lambda answer: answer.no_commit.holds and answer.unmarked is None),
        _not_added(_P, lambda answer: not answer.no_commit.holds and answer.unmarked is None),
        CauseRule(
            CauseName.EPOCH_MADE_UP,
            _P,
            "epoch {producer_epoch} in the partition, and no record of {transactional_id} has it",
            lambda case: is_ahead(case.span.producer_epoch, case.claim.highest_epoch),
            fixed_in=(4, 0),
        ),
        _LATE_AT_MARKERS_EPOCH,
        *_CLEANED,
        CauseRule(
            CauseName.PARTITION_NOT_ADDED_TO_NEWEST,
            _P,
            "the producer's last marker here, at offset {marker_offset}, ended an earlier transaction",
            lambda case: _has_marker(case) and not lacks_marker(case),
        ),
    ),
    Reason.PRODUCER_ID_UNKNOWN_TO_EVERY_COORDINATOR: (
        CauseRule(
            CauseName.FOREIGN_PRODUCER_ID,
            _PROVEN,
            "producer {producer_id} is beyond every block of producer ids that the cluster handed out",
            lambda case: case.dossier.is_never_allocated,
        ),
        *_CLEANED,
        CauseRule(
            CauseName.COORDINATOR_LOST_RECORDS,
            _P,
            _NO_RECORD + ", although a coordinator wrote its marker at offset {marker_offset}",
            _has_marker,
        ),
        CauseRule(CauseName.ID_EXPIRED, _P, _NO_RECORD, _may_be_compacted),
        CauseRule(
            CauseName.RECORDS_LOST_OR_ID_MADE_UP,
            _P,
            _NO_RECORD + ", and the partition has no marker of it",
            lambda case: not _has_marker(case),
        ),
    ),
    Reason.TRANSACTIONAL_ID_EXPIRED: (
        *_SHOWN_LOSSES,
        _LOST_MARKER,
        CauseRule(CauseName.HUNG_UNTIL_EXPIRY, _L, "tombstone of " + _RECORD),
        *_CLEANED,
        CauseRule(CauseName.LATE_PRODUCE, _P, _AFTER_MARKER, _is_same_epoch),
    ),
    Reason.PRODUCER_ID_ROTATED: (
        *_SHOWN_LOSSES,
        _LOST_MARKER,
        CauseRule(
            CauseName.LATE_WITH_FORMER_PRODUCER_ID,
            _L,
            "{transactional_id} had producer {producer_id} before, not now",
            lambda case: not lacks_marker(case),
        ),
        *_CLEANED,
    ),
    Reason.EPOCH_AHEAD_OF_COORDINATOR: (
        _LOWERED,
        CauseRule(
            CauseName.COORDINATOR_UNCLEAN_ELECTION, _PROVEN, "{coordinator_unclean}", has_event("coordinator_unclean")
        ),
        CauseRule(CauseName.EPOCH_MADE_UP, _L, _EPOCHS, fixed_in=(4, 0)),
        CauseRule(CauseName.COORDINATOR_LOST_NEWEST_RECORDS, _P, _EPOCHS),
    ),
    Reason.MARKER_REFUSED: (
        CauseRule(
            CauseName.EPOCH_AHEAD,
            _L,
            "producer epoch {producer_epoch} in the partition, {coordinator_producer_epoch} in the Prepare record",
            lambda case: is_ahead(case.span.producer_epoch, case.claim.producer_epoch),
        ),
        CauseRule(
            CauseName.COORDINATOR_EPOCH_AHEAD,
            _L,
            "coordinator epoch {coordinator_epoch} in the partition, {newest_coordinator_epoch} is the newest in "
            "__transaction_state-{coordinator_partition}",
            lambda case: is_ahead(case.span.coordinator_epoch, case.coordinator.newest_coordinator_epoch),
        ),
    ),
    Reason.MARKER_PENDING: (_NO_LEADER, _NO_COORDINATOR, _TOO_FEW, _COORDINATOR_TOO_FEW, _FENCED_COORDINATOR),
    Reason.MARKER_OVERDUE: (
        _NO_LEADER,
        _NO_COORDINATOR,
        _TOO_FEW,
        _COORDINATOR_TOO_FEW,
        _FENCED_COORDINATOR,
        CauseRule(
            CauseName.LEADER_UNREACHABLE,
            _P,
            "no marker since the decision at {record_place}",
            lambda case: not is_leaderless(case) and case.place.too_few_in_sync is None,
        ),
        CauseRule(
            CauseName.FORGOTTEN,
            _P,
            "no marker since the decision at {record_place} of __transaction_state-{coordinator_partition}",
            fixed_in=(3, 8),
        ),
        CauseRule(
            CauseName.REPEATED_MARKER_REFUSED,
            _P,
            "transactions v2; decided at {record_place} of __transaction_state-{coordinator_partition}",
            _is_v2,
        ),
    ),
    Reason.TIMEOUT_NOT_PASSED: (_OLD_TIMESTAMPS,),
    Reason.OVERDUE: (
        _NO_COORDINATOR,
        _COORDINATOR_TOO_FEW,
        _FENCED_COORDINATOR,
        _OLD_TIMESTAMPS,
        CauseRule(
            CauseName.EPOCH_EXHAUSTED,
            _L,
            "epoch {coordinator_producer_epoch} at the coordinator",
            lambda case: (case.claim.producer_epoch or 0) > EXHAUSTED_EPOCH,
        ),
        CauseRule(CauseName.TIMEOUT_SCAN_STOPPED, _P, _RECORD, lambda case: case.coordinator.too_few_in_sync is None),
    ),
}


def causes(reason: Reason, case: Case, answer: Answer) -> tuple[Cause, ...]:
    """The causes of a verdict's reason whose signature matches, most likely first; empty if it needs no explanation.

    `answer`: of the worlds. None of them contradicts a cause.
    """
    return ranked(CAUSES.get(reason, ()), case, answer)
