"""Epochs of markers: which ones partitions accept, and which records they end."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from itertools import product
from typing import Final

from txnlib.core.kafka.constants import is_from

#: First version in which a marker of transaction version 2 must have a higher epoch than the partition has seen.
STRICT_FROM: Final = (4, 2)
#: First version of clusters that may have transaction version 2.
V2_FROM: Final = (4, 0)
#: The only epoch without a successor, which a marker may therefore repeat.
LAST_EPOCH: Final = 2**15 - 1


class MarkerEpoch(Enum):
    """The epoch of the marker, relative to the one that the partition has seen."""

    LOWER = "LOWER"
    EQUAL = "EQUAL"
    HIGHER = "HIGHER"


class Brokers(Enum):
    BEFORE_4_2 = "BEFORE_4_2"
    FROM_4_2 = "FROM_4_2"
    UNKNOWN = "UNKNOWN"


class MarkerVersion(Enum):
    """Transaction version of the marker; the tool's own abort is V0_OR_V1."""

    V0_OR_V1 = "V0_OR_V1"
    V2 = "V2"
    UNKNOWN = "UNKNOWN"


class Acceptance(Enum):
    ACCEPTED = "ACCEPTED"
    REFUSED = "REFUSED"
    #: Brokers before 4.2 accept the marker, newer ones do not.
    DEPENDS_ON_VERSION = "DEPENDS_ON_VERSION"


#: (the marker's epoch, the brokers, the marker's version) -> whether the partition accepts the marker.
ACCEPTANCES: Final[Mapping[tuple[MarkerEpoch, Brokers, MarkerVersion], Acceptance]] = {
    **{(MarkerEpoch.LOWER, *rest): Acceptance.REFUSED for rest in product(Brokers, MarkerVersion)},
    **{(MarkerEpoch.HIGHER, *rest): Acceptance.ACCEPTED for rest in product(Brokers, MarkerVersion)},
    **{(MarkerEpoch.EQUAL, Brokers.BEFORE_4_2, version): Acceptance.ACCEPTED for version in MarkerVersion},
    (MarkerEpoch.EQUAL, Brokers.FROM_4_2, MarkerVersion.V0_OR_V1): Acceptance.ACCEPTED,
    (MarkerEpoch.EQUAL, Brokers.FROM_4_2, MarkerVersion.V2): Acceptance.REFUSED,
    (MarkerEpoch.EQUAL, Brokers.FROM_4_2, MarkerVersion.UNKNOWN): Acceptance.DEPENDS_ON_VERSION,
    (MarkerEpoch.EQUAL, Brokers.UNKNOWN, MarkerVersion.V0_OR_V1): Acceptance.ACCEPTED,
    (MarkerEpoch.EQUAL, Brokers.UNKNOWN, MarkerVersion.V2): Acceptance.DEPENDS_ON_VERSION,
    (MarkerEpoch.EQUAL, Brokers.UNKNOWN, MarkerVersion.UNKNOWN): Acceptance.DEPENDS_ON_VERSION,
}


#: Outcome -> by how much, at most, a decision raises the epoch of its records. KAFKA-19367: an ABORT of 4.0.0 raises it
#: by two.
MOST_RAISED: Final = {"COMMIT": 1, "ABORT": 2}


def record_epochs(marker_epoch: int, outcome: str, transaction_version: int | None) -> tuple[int, int]:
    """The lowest and the highest producer epoch that records of a decided transaction may have.

    `marker_epoch`: the producer epoch of the decision. Under transactions v2, every end raises the epoch; before, only
    an abort by the coordinator does. Kafka: `TransactionMetadata.prepareAbortOrCommit`, `prepareFenceProducerEpoch`;
    KIP-890; docs/rules/copies.md#order-of-decisions-and-markers.
    """
    return marker_epoch - MOST_RAISED[outcome], marker_epoch - 1 if (transaction_version or 0) >= 2 else marker_epoch


def acceptance(
    seen_epoch: int, marker_epoch: int, kafka_version: str | None, transaction_version: int | None
) -> Acceptance:
    """Whether a partition with open records accepts a marker, by the producer epoch that it has seen and that of the
    marker.

    `transaction_version` is that of the marker, None if unknown.
    """
    brokers = {None: Brokers.UNKNOWN, False: Brokers.BEFORE_4_2, True: Brokers.FROM_4_2}[
        is_from(STRICT_FROM, kafka_version)
    ]
    return ACCEPTANCES[_order(seen_epoch, marker_epoch), brokers, _version(kafka_version, transaction_version)]


def _order(seen_epoch: int, marker_epoch: int) -> MarkerEpoch:
    if marker_epoch > seen_epoch or marker_epoch == seen_epoch == LAST_EPOCH:
        return MarkerEpoch.HIGHER
    return MarkerEpoch.EQUAL if marker_epoch == seen_epoch else MarkerEpoch.LOWER


def _version(kafka_version: str | None, transaction_version: int | None) -> MarkerVersion:
    if is_from(V2_FROM, kafka_version) is False:
        return MarkerVersion.V0_OR_V1
    if transaction_version is None:
        return MarkerVersion.UNKNOWN
    return MarkerVersion.V2 if transaction_version >= 2 else MarkerVersion.V0_OR_V1


def marker_needed(
    of: str,
    producer_epochs: tuple[int | None, int | None],
    coordinator_epochs: tuple[int | None, int | None],
    transaction_version: int | None,
) -> str:
    """The fields of a marker for a decision, in words. `of`: type and producer id.

    `producer_epochs`, `coordinator_epochs`: the epoch of the decision, and the one that the partition has seen. The
    marker needs the higher one, because the partition accepts no lower.
    """
    version = "not known" if transaction_version is None else transaction_version
    return (
        f"{of}, producer epoch {_at_least(*producer_epochs)}, coordinator epoch {_at_least(*coordinator_epochs)},"
        f" transaction version {version}"
    )


def _at_least(decided: int | None, seen: int | None) -> str:
    return "not known" if decided is None else str(decided if seen is None else max(decided, seen))
