"""The transactions that the pictures show, minute by minute; their verdicts are those of the core."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from txnlib.core.kafka.constants import TWO_PHASE_COMMIT_TIMEOUTS
from txnlib.core.kafka.transaction_state import ACTIVE_STATES, COMPLETE_STATES, PREPARED_STATES, TransactionState
from txnlib.core.verdicts.evidence import CoordinatorSide, Decided, Evidence, Owner, PartitionSide, Thresholds
from txnlib.core.verdicts.verdict import Judgement, judge

_S = TransactionState
MINUTE: Final = 60_000
#: The minute at which all is judged, and until which all is captured.
NOW: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One producer id: what its coordinator and one partition wrote, by minute."""

    about: str
    states: tuple[tuple[int, TransactionState], ...]
    writes: tuple[int, ...]
    marker: tuple[int, str] | None = None
    #: Batches of other producers.
    others: tuple[int, ...] = ()
    timeout_minutes: int | None = 15
    #: Where the marker that is missing would stand, and whether a coordinator would send it.
    missing: int | None = None
    is_missing_sent: bool = True
    #: What happened outside both logs: minute and what.
    noted: tuple[int, str] | None = None
    #: Why the states change.
    asked: tuple[tuple[int, str], ...] = ()

    @property
    def offsets(self) -> dict[int, int]:
        """minute -> offset of the batch or marker of that minute."""
        minutes = sorted([*self.writes, *self.others, *([self.marker[0]] if self.marker else [])])
        return {minute: offset for offset, minute in enumerate(minutes)}

    @property
    def open_since(self) -> int | None:
        """The minute of the first batch that no marker follows."""
        ended = self.marker[0] if self.marker else 0
        return min((minute for minute in self.writes if minute > ended), default=None)

    def ends(self) -> Iterator[tuple[int, int, int]]:
        """After each batch and marker: minute, end of the log, last stable offset."""
        for minute, offset in self.offsets.items():
            is_done = self.marker is not None and minute >= self.marker[0]
            open_writes = [w for w in self.writes if w <= minute and not (is_done and w < self.marker[0])]
            yield minute, offset + 1, min([self.offsets[w] for w in open_writes], default=offset + 1)

    def judged(self) -> Judgement:
        """What the core says of the open transaction at NOW."""
        (last, state), prepared = self.states[-1], [at for at, state in self.states if state in PREPARED_STATES]
        since = self.open_since
        partition = PartitionSide(
            topic="orders",
            partition=0,
            producer_id=1001,
            producer_epoch=4,
            coordinator_epoch=2,
            start_offset=self.offsets[since],
            first_timestamp_ms=since * MINUTE,
            last_timestamp_ms=max(self.writes) * MINUTE,
            is_broker_clock=True,
            known_until_ms=NOW * MINUTE,
            marker_offset=self.offsets[self.marker[0]] if self.marker else None,
            marker_type=self.marker[1] if self.marker else None,
            marker_epoch=4 if self.marker else None,
            marker_coordinator_epoch=2 if self.marker else None,
            marker_ms=self.marker[0] * MINUTE if self.marker else None,
        )
        coordinator = CoordinatorSide(
            owner=Owner.CURRENT,
            transactional_id="payments-1",
            coordinator_partition=3,
            state=state,
            record_offset=len(self.states),
            producer_epoch=4,
            transaction_timeout_ms=max(TWO_PHASE_COMMIT_TIMEOUTS)
            if self.timeout_minutes is None
            else self.timeout_minutes * MINUTE,
            transaction_start_ms=next(at for at, state in self.states if state is _S.ONGOING) * MINUTE,
            last_update_ms=last * MINUTE,
            record_ms=last * MINUTE,
            record_coordinator_epoch=2,
            newest_coordinator_epoch=2,
            is_listed=state in ACTIVE_STATES,
            known_until_ms=NOW * MINUTE,
            ended_ms=last * MINUTE if state in COMPLETE_STATES else None,
            decision=self._decision(prepared[-1]) if prepared else None,
        )
        return judge(Evidence(partition, coordinator), Thresholds(as_of_ms=NOW * MINUTE))

    def _decision(self, prepared: int) -> Decided:
        kind = "COMMIT" if (prepared, _S.PREPARE_COMMIT) in self.states else "ABORT"
        is_marked = self.marker is not None and self.marker[0] >= prepared
        return Decided(
            type=kind,
            producer_epoch=4,
            coordinator_epoch=2,
            decided_ms=prepared * MINUTE,
            completed_ms=None,
            is_marked=is_marked,
        )


HEALTHY: Final = Story(
    about="While it is open, the last stable offset stands at its first batch; the marker lets it go on.",
    states=((0, _S.EMPTY), (5, _S.ONGOING), (18, _S.PREPARE_COMMIT), (27, _S.COMPLETE_COMMIT)),
    writes=(7, 11, 14),
    marker=(22, "COMMIT"),
    others=(2, 9, 17, 20, 25, 29, 32, 35, 38),
    asked=((5, "producer adds orders-0"), (18, "producer commits"), (27, "every partition has its marker")),
)
#: What stays open, each with what is missing.
OPEN: Final = (
    Story(
        about="Missing: a coordinator that lists orders-0. Nobody will end what came after the marker.",
        states=((0, _S.EMPTY), (3, _S.ONGOING), (11, _S.PREPARE_ABORT), (19, _S.COMPLETE_ABORT)),
        writes=(5, 8, 22),
        marker=(15, "ABORT"),
        others=(2, 10, 18, 25, 29, 36, 38),
        missing=33,
        is_missing_sent=False,
    ),
    Story(
        about="Missing: the decision. Its coordinator lists orders-0, and should have aborted at its timeout.",
        states=((0, _S.EMPTY), (3, _S.ONGOING)),
        writes=(5, 8, 13),
        others=(2, 10, 17, 26, 30, 34, 37),
        missing=21,
    ),
    Story(
        about="Missing: the marker. It is decided, but no marker came, or the partition would refuse it.",
        states=((0, _S.EMPTY), (3, _S.ONGOING), (14, _S.PREPARE_COMMIT)),
        writes=(5, 8, 12),
        others=(2, 10, 17, 24, 28, 33, 37),
        missing=20,
    ),
    Story(
        about="Missing: its owner's decision, and no timeout replaces it. In two-phase commit that is in order.",
        states=((0, _S.EMPTY), (3, _S.ONGOING)),
        writes=(5, 8, 12),
        others=(2, 10, 17, 20, 24, 28, 31),
        timeout_minutes=None,
        missing=36,
        noted=(14, "prepared: all is written, nothing is decided"),
    ),
)
