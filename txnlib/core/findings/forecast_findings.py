"""Forecasts: what will go wrong next, when, and the arithmetic behind it.

A forecast extrapolates a rate, or adds a broker's setting to the time of a record. It is a WARNING only if the date is
near and the harm is real, and never an error: nothing is wrong yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from txnlib.core.display import counted, duration, instant, printable
from txnlib.core.finding_catalogue import Finding, Severity, Topic
from txnlib.core.findings.finding_row import FindingRow, found
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import EXHAUSTED_EPOCH, LATE_TRANSACTION_BUFFER_MS
from txnlib.core.rows import ProducerId

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS

#: Later than this, nothing is forecast: load changes within a quarter, and every night forecasts again.
HORIZON_MS: Final = 90 * DAY_MS
#: Up to this, a date is near: a team needs about a week to change and release an application.
NEAR_MS: Final = 7 * DAY_MS
#: Up to this, an id is about to expire: two nightly audits are left in which its coordinator still knows it.
LAST_NIGHTS_MS: Final = 2 * DAY_MS
#: A rate that was measured for less than this is no reason for a WARNING: it may be that of a burst, or of a start.
MEASURED_MS: Final = HOUR_MS
#: What follows the load of a day is measured from one night to the next. Nightly audits do not begin at the same
#: minute.
NIGHT_MS: Final = 20 * HOUR_MS

#: Epoch from which exhaustion is forecast: half of them. At a steady rate, an id then has as long ahead of it as it has
#: behind it, so a slow one is forecast early enough, and no young id of a short capture is forecast from a minute of
#: its life.
FORECAST_FROM_EPOCH: Final = EXHAUSTED_EPOCH // 2
#: An id that uses up all epochs within this has done so before: its next rotation is routine.
ROUTINE_MS: Final = 30 * DAY_MS

#: How long a coordinator may take to expire an id. Kafka: `transaction.remove.expired.transaction.cleanup.interval.ms`.
EXPIRY_SCAN_MS: Final = HOUR_MS

#: Producers in the memory of a broker that are too many: with PRODUCER_BYTES each, 400 MB of a heap of usually 6 GB.
MANY_PRODUCERS: Final = 1_000_000
#: Below this, nothing is forecast: a few MB, and even tenfold growth in a night would be seen in time.
FEW_PRODUCERS: Final = MANY_PRODUCERS // 100
#: Memory of a producer on a partition, in bytes: `ProducerStateEntry` (48), its queue of batches (24, and 88 for its
#: array), up to five `BatchMetadata` (40 each), and its place in a `HashMap` with its key (56), in a JVM with
#: compressed pointers.
PRODUCER_BYTES: Final = 400

#: Audits in which a last stable offset is the same, from which it is said: two may have seen one long transaction.
STILL_RUNS: Final = 3
#: From this on, a last stable offset that stands still is a WARNING: consumers are a day behind, whatever clients'
#: clocks say.
STILL_MS: Final = DAY_MS
#: Names of the findings that are forecasts.
NAMES: Final = tuple(finding.name for finding in Finding if finding.value.topic is Topic.FORECASTS)
#: Verdicts that already say that a partition is blocked.
CALLED: Final = frozenset({"HANGING", "STUCK", "LATE"})
#: Verdicts on transactions that no coordinator will end: all that the producer id of an id in an expirable state can
#: have open.
UNENDED: Final = frozenset({"HANGING", "SUSPECT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastSettings:
    """The settings of an audit that forecasts use."""

    as_of_ms: int
    transactional_id_expiration_ms: int
    producer_id_expiration_ms: int
    transaction_max_timeout_ms: int
    max_transaction_timeout_ms: int
    timeout_scan_interval_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IdRecord:
    """The record of a transactional id that a forecast is about; None if it is about none."""

    transactional_id: str | None = None
    coordinator_partition: int | None = None
    offset: int | None = None
    producer_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochUse(IdRecord):
    """The epoch of a producer id."""

    epoch: int
    is_two_phase_commit: bool | None = None


@dataclass(frozen=True, slots=True)
class EarlierEpoch:
    """The oldest known epoch of a producer id, and when it had it."""

    producer_id: int
    epoch: int
    ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldId(IdRecord):
    """A transactional id that may expire although its producer id has open transactions."""

    last_update_ms: int
    #: Number of partitions with an open transaction, and one of them.
    partitions: int
    first: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerProducers:
    """The producers that a broker keeps in memory, one per partition and producer id, and how their number grows."""

    broker: str
    kept: int
    #: By how many it grew since an earlier audit, on partitions that both captured.
    grown: int | None = None
    earlier_ms: int | None = None
    #: Distinct producer ids that the brokers keep.
    producer_ids: int | None = None
    #: Producer ids that the cluster handed out since an instant.
    allocated: int | None = None
    allocated_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OldClients(IdRecord):
    """Transactional ids of an application whose newest transaction is of version 0 or 1, although version 2 applies."""

    application: str
    ids: int
    ids_behind: int
    #: Transactions of version 0 or 1 of these ids, and the time of the newest one.
    transactions: int
    newest_ms: int
    #: The first time at which version 2 is known to apply.
    raised_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StillPartition:
    """A partition whose last stable offset was the same in several audits, and the transaction that blocks it, if
    known."""

    topic: str | None = None
    partition: int | None = None
    #: The last stable offset.
    offset: int
    lag_offsets: int
    #: Audits with that offset, including this one, and the instant of the first.
    runs: int
    since_ms: int
    verdict: str | None = None
    transactional_id: str | None = None
    producer_id: int | None = None
    is_two_phase_commit: bool | None = None
    start_ms: int | None = None
    timeout_ms: int | None = None
    last_timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    #: Whether it is a WARNING.
    is_urgent: bool
    #: When it comes true, in epoch ms; None if that cannot be said.
    expected_ms: int | None
    #: The numbers and the date that follows from them, as one sentence.
    arithmetic: str


def epochs_run_out(use: EpochUse, earlier: EarlierEpoch | None, settings: ForecastSettings) -> Forecast | None:
    """When a producer id has used all epochs, so that its transactional id gets another one.

    Kafka: `TransactionMetadata.isEpochExhausted`.
    """
    if use.epoch < FORECAST_FROM_EPOCH:
        return None
    at, left = f"epoch {use.epoch:,} of {EXHAUSTED_EPOCH:,}", EXHAUSTED_EPOCH - use.epoch
    used, period_ms = (0, 0) if earlier is None else (use.epoch - earlier.epoch, settings.as_of_ms - earlier.ms)
    is_routine = used > 0 and EXHAUSTED_EPOCH * period_ms // used <= ROUTINE_MS
    is_worth_a_look = bool(use.is_two_phase_commit) or not is_routine
    if left <= 0:
        return Forecast(
            is_worth_a_look, settings.as_of_ms, f"{at}: exhausted, so the next change gives it a new producer id"
        )
    if earlier is None or period_ms <= 0:
        return Forecast(False, None, f"{at}; no earlier epoch is known, so neither is the date of its exhaustion")
    rate = f"{at}, {_a_day(used, period_ms)} epochs a day since {instant(earlier.ms)}: exhausted"
    is_urgent = is_worth_a_look and period_ms >= MEASURED_MS
    return _at_this_rate(left, used, period_ms, settings, is_urgent=is_urgent, says=rate)


def id_expires(held: HeldId, settings: ForecastSettings) -> Forecast | None:
    """When a transactional id expires that an open transaction belongs to.

    Kafka: `TransactionStateManager.shouldExpire`; the coordinator's clock wrote the time of the last update.
    """
    after_ms = settings.transactional_id_expiration_ms
    expected_ms = held.last_update_ms + after_ms
    ahead_ms = expected_ms - settings.as_of_ms
    # An id that is still there long after its time shows that the brokers have another setting.
    if not -EXPIRY_SCAN_MS <= ahead_ms <= NEAR_MS:
        return None
    return Forecast(
        ahead_ms <= LAST_NIGHTS_MS,
        expected_ms,
        f"last updated {instant(held.last_update_ms)}, expires after {duration(after_ms)}:"
        f" {_about(expected_ms, settings)}; producer id {held.producer_id} has an open transaction on"
        f" {counted(held.partitions, 'partition')}:"
        f" {printable(held.first)}{' and others' if held.partitions > 1 else ''}",
    )


def producers_fill_memory(producers: BrokerProducers, settings: ForecastSettings) -> Forecast | None:
    """When a broker keeps MANY_PRODUCERS.

    With a steady rate of new producer ids, a broker keeps as many as come within `producer.id.expiration.ms`. If these
    are fewer, it never keeps that many. Kafka: `ProducerStateManager.removeExpiredProducers`.
    """
    if producers.kept < FEW_PRODUCERS:
        return None
    keeps = (
        f"broker {producers.broker} keeps {producers.kept:,} producers (about"
        f" {producers.kept * PRODUCER_BYTES // 10**6:,} MB)"
    )
    left = MANY_PRODUCERS - producers.kept
    if left <= 0:
        return Forecast(True, settings.as_of_ms, f"{keeps}: more than {MANY_PRODUCERS:,} already")
    expiration_ms = settings.producer_id_expiration_ms
    allocated, allocating_ms = _since(producers.allocated, producers.allocated_ms, settings)
    is_steady = allocating_ms >= MEASURED_MS and bool(producers.producer_ids)
    # Each producer id is kept once per partition that it writes to.
    steady = (
        allocated * expiration_ms * producers.kept // (allocating_ms * (producers.producer_ids or 1))
        if is_steady
        else 0
    )
    if is_steady and steady < MANY_PRODUCERS:
        return None
    grown, period_ms = _since(producers.grown, producers.earlier_ms, settings)
    is_urgent = period_ms >= NIGHT_MS
    if producers.earlier_ms is not None and period_ms >= MEASURED_MS:
        growth = f"{_a_day(grown, period_ms)} more a day since {instant(producers.earlier_ms)}"
    elif is_steady:
        growth = f"{_a_day(allocated, allocating_ms)} new producer ids a day, each kept for {duration(expiration_ms)}"
        grown, period_ms = steady, expiration_ms
    else:
        return None
    return _at_this_rate(
        left, grown, period_ms, settings, is_urgent=is_urgent, says=f"{keeps}, {growth}: {MANY_PRODUCERS:,}"
    )


def client_is_behind(clients: OldClients, settings: ForecastSettings) -> Forecast | None:
    """An application that keeps late writes possible. There is no date: it stays so until the clients are upgraded."""
    if clients.ids_behind <= 0:
        return None
    return Forecast(
        False,
        None,
        f"{clients.ids_behind:,} of {counted(clients.ids, 'transactional id')} of application"
        f" {printable(clients.application)}: {counted(clients.transactions, 'transaction')} of version 0 or 1, the"
        f" newest {instant(clients.newest_ms)}, although version 2 has applied since {instant(clients.raised_ms)} or"
        " earlier",
    )


def stands_still(partition: StillPartition, settings: ForecastSettings) -> Forecast | None:
    """A blocked partition that no verdict calls blocked yet, and when one will."""
    if partition.runs < STILL_RUNS or partition.verdict in CALLED:
        return None
    still_ms = settings.as_of_ms - partition.since_ms
    names = (partition.transactional_id, partition.producer_id)
    blocker = next((printable(name) for name in names if name is not None), "an unknown transaction")
    expected_ms = _called_ms(partition, settings)
    if expected_ms is not None:
        then = f"it is called {'HANGING' if partition.verdict == 'SUSPECT' else 'LATE'} {_about(expected_ms, settings)}"
    else:
        then = (
            "a two-phase commit is never called LATE"
            if partition.is_two_phase_commit
            else "no date follows from the logs"
        )
    return Forecast(
        still_ms >= STILL_MS,
        expected_ms,
        f"last stable offset {partition.offset:,} in {partition.runs} audits since {instant(partition.since_ms)} "
        f"({duration(still_ms)}), {counted(partition.lag_offsets, 'offset')} behind; blocked by {blocker}, "
        f"{partition.verdict or 'without a verdict'}: {then}",
    )


def _called_ms(partition: StillPartition, settings: ForecastSettings) -> int | None:
    """The first later instant at which a verdict calls the blocking transaction HANGING or LATE; None if none does."""
    due: list[int | None] = []
    if partition.verdict == "SUSPECT":
        due = [_plus(partition.last_timestamp_ms, settings.max_transaction_timeout_ms)]
    elif partition.verdict == "OPEN" and not partition.is_two_phase_commit:
        allowed_ms = None if partition.timeout_ms is None else partition.timeout_ms + settings.timeout_scan_interval_ms
        last_ms = settings.transaction_max_timeout_ms + LATE_TRANSACTION_BUFFER_MS
        due = [_plus(partition.start_ms, allowed_ms), _plus(partition.last_timestamp_ms, last_ms)]
    return min((ms for ms in due if ms is not None and ms >= settings.as_of_ms), default=None)


def _plus(ms: int | None, more_ms: int | None) -> int | None:
    """A later time; None if one of the two is unknown, or if no clock shows the sum."""
    return None if ms is None or more_ms is None else clock_ms(ms + more_ms)


def _at_this_rate(
    left: int, grown: int, period_ms: int, settings: ForecastSettings, *, is_urgent: bool, says: str
) -> Forecast | None:
    """The forecast of when what is left is used up, if as much is used in each period; None if never, or too far
    ahead."""
    ahead_ms = -(-left * period_ms // grown) if grown > 0 else HORIZON_MS + 1
    if ahead_ms > HORIZON_MS:
        return None
    expected_ms = settings.as_of_ms + ahead_ms
    return Forecast(is_urgent and ahead_ms <= NEAR_MS, expected_ms, f"{says} {_about(expected_ms, settings)}")


def _since(number: int | None, since_ms: int | None, settings: ForecastSettings) -> tuple[int, int]:
    """A number, and the period since an instant; zeros if one of the two is unknown."""
    return (0, 0) if number is None or since_ms is None else (number, settings.as_of_ms - since_ms)


def _a_day(number: int, period_ms: int) -> str:
    """A number in a period, per day: 120, or 0.5."""
    rate = number * DAY_MS / period_ms
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def _about(expected_ms: int, settings: ForecastSettings) -> str:
    """When something is expected: to the day, or to the second within the next two days."""
    shown = instant(expected_ms)
    return f"about {shown if expected_ms - settings.as_of_ms < 2 * DAY_MS else shown[:10]}"


def forecasts(
    used_epochs: Sequence[EpochUse],
    earlier_epochs: Callable[[Sequence[ProducerId]], Sequence[EarlierEpoch]],
    held_ids: Sequence[HeldId],
    kept_producers: Sequence[BrokerProducers],
    old_clients: Sequence[OldClients],
    still_partitions: Sequence[StillPartition],
    *,
    settings: ForecastSettings,
) -> Iterator[FindingRow]:
    """The rows of `findings` that say what will go wrong next."""
    asked = [ProducerId(use.producer_id) for use in used_epochs if use.producer_id is not None]
    earlier: dict[int | None, EarlierEpoch] = {each.producer_id: each for each in earlier_epochs(asked)}
    rules: tuple[tuple[Finding, Sequence[Any], Callable[[Any], Forecast | None]], ...] = (
        (
            Finding.PRODUCER_EPOCHS_RUN_OUT,
            used_epochs,
            lambda use: epochs_run_out(use, earlier.get(use.producer_id), settings),
        ),
        (Finding.TRANSACTIONAL_ID_EXPIRES, held_ids, lambda held: id_expires(held, settings)),
        (Finding.PRODUCER_IDS_FILL_MEMORY, kept_producers, lambda kept: producers_fill_memory(kept, settings)),
        (Finding.CLIENT_BEHIND_TRANSACTION_VERSION, old_clients, lambda old: client_is_behind(old, settings)),
        (Finding.LAST_STABLE_OFFSET_STANDS_STILL, still_partitions, lambda still: stands_still(still, settings)),
    )
    for finding, rows, rule in rules:
        for at in rows:
            if (forecast := rule(at)) is not None:
                severity = Severity.WARNING if forecast.is_urgent else Severity.INFO
                yield found(finding, forecast.arithmetic, at, severity=severity, expected_ms=forecast.expected_ms)
