"""The repair of a lost marker: its request, its sender, and what consumers saw.

Nothing here writes to a cluster. The request is shown so that somebody can judge a repair, or hand it to Kafka's developers.
Kafka: `WriteTxnMarkersRequest`, `AbortTransactionHandler.buildBatchedRequest`, `TransactionMarkerChannelManager`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from txnlib.core.kafka.constants import is_from
from txnlib.core.kafka.producer_state import LAST_EPOCH, Acceptance, acceptance
from txnlib.core.verdicts.transaction_outcome import MarkerState

#: First version of brokers whose request names the transaction version (KAFKA-19446).
_NAMES_VERSION_FROM: Final = (4, 2)


class Fate(StrEnum):
    """What became of the records that the marker should have ended."""

    #: They are still open.
    OPEN = "OPEN"
    #: A later marker ended them.
    COMMIT = "COMMIT"
    ABORT = "ABORT"
    #: The partition has no record of the transaction, or none any more.
    NONE = "NONE"


@dataclass(frozen=True, slots=True, kw_only=True)
class LostMarker:
    """A partition of a decided transaction without its marker; names are the columns of `marker_repairs`."""

    topic: str
    partition: int
    producer_id: int
    #: Epochs of the decision.
    marker_epoch: int
    coordinator_epoch: int | None
    decided_outcome: str
    marker: str
    transaction_version: int | None
    #: Epochs that the partition has seen of the producer, and of its coordinators; None if it has seen none.
    seen_epoch: int | None
    seen_coordinator_epoch: int | None
    fate: str
    first_offset: int | None
    ended_at_offset: int | None


@dataclass(frozen=True, slots=True)
class Repair:
    """The request as JSON, whether the partition accepts the decided epochs, who can send it, and what consumers saw.

    There is no request if another marker has ended the records.
    """

    request: str | None
    is_accepted: str
    tool: str
    consumers_saw: str


_WAIT: Final = "read_committed consumers wait at offset {first_offset} and have read none of these records"
#: Decision and what became of the records -> what consumers saw.
CONSUMERS_SAW: Final[Mapping[tuple[str, Fate], str]] = {
    ("COMMIT", Fate.OPEN): f"{_WAIT}, although the transaction is committed",
    ("COMMIT", Fate.COMMIT): "read_committed consumers read the records late, with the COMMIT marker at offset {ended_at_offset}",
    ("COMMIT", Fate.ABORT): (
        "read_committed consumers skip the records because of the ABORT marker at offset {ended_at_offset}, although the "
        "transaction is committed"
    ),
    ("COMMIT", Fate.NONE): "the partition shows no record of the transaction, so consumers read none here",
    ("ABORT", Fate.OPEN): f"{_WAIT}, as they should",
    ("ABORT", Fate.COMMIT): (
        "read_committed consumers read the records because of the COMMIT marker at offset {ended_at_offset}, although the "
        "transaction is aborted"
    ),
    (
        "ABORT",
        Fate.ABORT,
    ): "read_committed consumers skip the records, as they should, since the ABORT marker at offset {ended_at_offset}",
    ("ABORT", Fate.NONE): "the partition shows no record of the transaction, so consumers read none here",
}
_ENDED: Final = "no marker changes records that another marker ended: repair the data with the application's own tools"
_RETRIES: Final = "its coordinator: it sends the request again by itself until the leader of the partition accepts it"
_NOBODY: Final = (
    "no shipped tool: kafka-transactions.sh abort, and Admin.abortTransaction behind it, always send transactionResult=false "
    "(AbortTransactionHandler.buildBatchedRequest)"
)
_BY_HAND: Final = "kafka-transactions.sh abort: it sends transactionResult=false, as was decided"
_REFUSED: Final = "the partition refuses the decided epochs for good, however often its coordinator tries; by hand: "
#: State of the marker, decision, and whether the partition refuses it -> who can send the request while the records are open.
TOOLS: Final[Mapping[tuple[MarkerState, str, bool], str]] = {
    (MarkerState.PENDING, "COMMIT", False): _RETRIES,
    (MarkerState.PENDING, "ABORT", False): _RETRIES,
    (MarkerState.PENDING, "COMMIT", True): f"{_REFUSED}{_NOBODY}",
    (MarkerState.PENDING, "ABORT", True): f"{_REFUSED}{_BY_HAND}",
    (MarkerState.MISSING, "COMMIT", False): f"{_NOBODY}, and the coordinator has forgotten the transaction",
    (MarkerState.MISSING, "ABORT", False): _BY_HAND,
    (MarkerState.MISSING, "COMMIT", True): f"{_NOBODY}, and the coordinator has forgotten the transaction",
    (MarkerState.MISSING, "ABORT", True): _BY_HAND,
}


def repair(lost: LostMarker, kafka_version: str | None) -> Repair:
    """What the marker of one partition needs."""
    fate = Fate(lost.fate)
    saw = CONSUMERS_SAW[lost.decided_outcome, fate].format(first_offset=lost.first_offset, ended_at_offset=lost.ended_at_offset)
    if fate is not Fate.NONE:
        saw += "; read_uncommitted consumers read the records as soon as they were replicated"
    accepted = _accepts(lost, lost.marker_epoch, kafka_version)
    is_fenced = (lost.seen_coordinator_epoch or 0) > (lost.coordinator_epoch or 0)
    if is_fenced:
        accepted = Acceptance.REFUSED
    state = MarkerState(lost.marker)
    is_ended = fate in (Fate.COMMIT, Fate.ABORT) or state is MarkerState.CONTRADICTING
    tool = _ENDED if is_ended else TOOLS[state, lost.decided_outcome, accepted is Acceptance.REFUSED]
    return Repair(None if is_ended else _request(lost, kafka_version), accepted.value, tool, saw)


def _accepts(lost: LostMarker, epoch: int, kafka_version: str | None) -> Acceptance:
    if lost.seen_epoch is None:
        return Acceptance.ACCEPTED
    return acceptance(lost.seen_epoch, epoch, kafka_version, lost.transaction_version)


def _accepted_epoch(lost: LostMarker, kafka_version: str | None) -> int:
    """The lowest epoch, from that of the decision on, that the partition accepts whatever its version."""
    seen = lost.marker_epoch if lost.seen_epoch is None else lost.seen_epoch
    for epoch in (lost.marker_epoch, max(seen, lost.marker_epoch)):
        if _accepts(lost, epoch, kafka_version) is Acceptance.ACCEPTED:
            return epoch
    return min(max(seen, lost.marker_epoch) + 1, LAST_EPOCH)


def _request(lost: LostMarker, kafka_version: str | None) -> str:
    """The body of the request that the partition accepts, with the names and the order of Kafka's message definition."""
    marker: dict[str, object] = {
        "producerId": lost.producer_id,
        "producerEpoch": _accepted_epoch(lost, kafka_version),
        "transactionResult": lost.decided_outcome == "COMMIT",
        "topics": [{"name": lost.topic, "partitionIndexes": [lost.partition]}],
        "coordinatorEpoch": max(lost.coordinator_epoch or 0, lost.seen_coordinator_epoch or 0),
    }
    if is_from(_NAMES_VERSION_FROM, kafka_version) and lost.transaction_version is not None:
        marker["transactionVersion"] = lost.transaction_version
    return json.dumps({"markers": [marker]})
