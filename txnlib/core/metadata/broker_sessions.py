"""`broker_sessions`: when each broker was registered, and when it was fenced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from txnlib.core.kafka.metadata_records import MetadataType
from txnlib.core.metadata.changes import MetadataChange, ValidState, by_subject, with_validity

TYPES: Final = (
    MetadataType.REGISTER_BROKER,
    MetadataType.UNREGISTER_BROKER,
    MetadataType.BROKER_REGISTRATION_CHANGE,
    MetadataType.FENCE_BROKER,
    MetadataType.UNFENCE_BROKER,
)


@dataclass(frozen=True, slots=True)
class BrokerRecord(MetadataChange):
    """A row of `metadata_log`. A flag that is None does not change."""

    broker_id: int | None = None
    broker_epoch: int | None = None
    incarnation_id: str | None = None
    is_fenced: bool | None = None
    is_in_controlled_shutdown: bool | None = None


@dataclass(frozen=True, slots=True)
class BrokerState:
    """What the cluster knows of a broker."""

    is_registered: bool = False
    broker_epoch: int | None = None
    incarnation_id: str | None = None
    is_fenced: bool | None = None
    is_in_controlled_shutdown: bool | None = None


@dataclass(frozen=True, slots=True)
class SessionRow(ValidState):
    """A row of `broker_sessions`."""

    broker_id: int | None
    broker_epoch: int | None
    incarnation_id: str | None
    is_fenced: bool | None
    is_in_controlled_shutdown: bool | None


def broker_sessions(metadata_log: Sequence[BrokerRecord]) -> Iterator[SessionRow]:
    """A row for each broker and state of it while it is registered. Kafka: `ClusterControlManager.replay`."""
    for records in by_subject((each for each in metadata_log if each.broker_id is not None), lambda each: each.broker_id):
        states: list[tuple[BrokerRecord, BrokerState]] = []
        now = BrokerState()
        for record in records:
            before, now = now, _after(now, record)
            if not states or now != before:
                states.append((record, now))
        for record, state, validity in with_validity(states):
            if state.is_registered:
                yield SessionRow(
                    *validity,
                    record.broker_id,
                    state.broker_epoch,
                    state.incarnation_id,
                    state.is_fenced,
                    state.is_in_controlled_shutdown,
                )


def _after(state: BrokerState, record: BrokerRecord) -> BrokerState:
    """The state after a record. A registration begins anew; old versions of it do not contain the last flag."""
    is_shutting_down = record.is_in_controlled_shutdown
    if record.type == MetadataType.REGISTER_BROKER:
        is_shutting_down = bool(is_shutting_down)
    return replace(
        state,
        is_registered=record.type != MetadataType.UNREGISTER_BROKER,
        broker_epoch=record.broker_epoch,
        incarnation_id=state.incarnation_id if record.incarnation_id is None else record.incarnation_id,
        is_fenced=state.is_fenced if record.is_fenced is None else record.is_fenced,
        is_in_controlled_shutdown=state.is_in_controlled_shutdown if is_shutting_down is None else is_shutting_down,
    )
