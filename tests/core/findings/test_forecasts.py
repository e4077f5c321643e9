"""Forecasts: when, how severe, and the arithmetic, as grids."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from txnlib.core.finding_catalogue import Finding, Severity
from txnlib.core.findings.forecast_findings import (
    CALLED,
    DAY_MS,
    FEW_PRODUCERS,
    HOUR_MS,
    MANY_PRODUCERS,
    NAMES,
    UNENDED,
    BrokerProducers,
    EarlierEpoch,
    EpochUse,
    Forecast,
    ForecastSettings,
    HeldId,
    OldClients,
    StillPartition,
    client_is_behind,
    epochs_run_out,
    forecasts,
    id_expires,
    producers_fill_memory,
    stands_still,
)
from txnlib.core.instants import LAST_MS
from txnlib.core.rows import ProducerId
from txnlib.core.verdicts.reason import Verdict

AS_OF = 1_795_226_400_000  # 2026-11-21T02:00:00Z
MINUTE = 60_000
SETTINGS = ForecastSettings(
    as_of_ms=AS_OF,
    transactional_id_expiration_ms=7 * DAY_MS,
    producer_id_expiration_ms=DAY_MS,
    transaction_max_timeout_ms=15 * MINUTE,
    max_transaction_timeout_ms=15 * MINUTE,
    timeout_scan_interval_ms=10_000,
)
INFO, WARNING = "INFO", "WARNING"


def shown(forecast: Forecast | None) -> tuple[str, str | None] | None:
    """The severity and the date, to the minute."""
    if forecast is None:
        return None
    due, severity = forecast.expected_ms, WARNING if forecast.is_urgent else INFO
    return severity, None if due is None else f"{datetime.fromtimestamp(due / 1000, UTC):%m-%d %H:%M}"


# Epochs: 32,766 of them, forecast from 16,383 on.
@pytest.mark.parametrize(
    ("epoch", "used", "hours", "two_phase", "expected"),
    [
        # used in that many hours -> left at that rate
        (16_382, 16_382, 24, False, None),  # one below half
        (16_383, 16_383, 24, False, (INFO, "11-22 02:00")),  # as far ahead as behind, and routine: every second day
        (31_000, 840, 168, False, (INFO, "12-05 19:12")),  # 1,766 left, 120 a day: 14.7 days
        (31_926, 840, 168, False, (WARNING, "11-28 02:00")),  # 840 left: just a week
        (31_925, 840, 168, False, (INFO, "11-28 02:12")),  # 841 left
        (31_926, 840, 168, True, (WARNING, "11-28 02:00")),
        (31_925, 840, 168, True, (INFO, "11-28 02:12")),
        (32_000, 4_551, 100, False, (INFO, "11-21 18:49")),  # all epochs within 30 days
        (32_000, 4_550, 100, False, (WARNING, "11-21 18:50")),  # in a little more
        (32_000, 4_551, 100, True, (WARNING, "11-21 18:49")),  # routine, but something may store the producer id
        (32_765, 5, 0.99, False, (INFO, "11-21 02:11")),  # measured for less than an hour, and routine at that
        (32_765, 1, 1, True, (WARNING, "11-21 03:00")),
        (32_765, 1, 0.9, True, (INFO, "11-21 02:54")),
        (30_606, 24, 24, False, (INFO, "02-19 02:00")),  # 2,160 left at 24 a day: 90 days
        (30_605, 24, 24, False, None),
        (32_700, 0, 24, False, None),  # idle
        (32_700, -1, 24, False, None),  # went back: a finding of its own
        (32_700, None, None, False, (INFO, None)),
        (32_766, None, None, False, (WARNING, "11-21 02:00")),  # the last that a client may have
        (32_767, None, None, True, (WARNING, "11-21 02:00")),
        (32_766, 32_766, 24, False, (INFO, "11-21 02:00")),  # once a day
        (32_766, 32_766, 24, True, (WARNING, "11-21 02:00")),
    ],
)
def test_epochs(
    epoch: int, used: int | None, hours: float | None, two_phase: bool, expected: tuple[str, str | None] | None
) -> None:
    earlier = None if used is None or hours is None else EarlierEpoch(1, epoch - used, AS_OF - round(hours * HOUR_MS))
    assert shown(epochs_run_out(EpochUse(epoch=epoch, is_two_phase_commit=two_phase), earlier, SETTINGS)) == expected


def test_an_epoch_of_the_same_instant_gives_no_rate() -> None:
    assert shown(epochs_run_out(EpochUse(epoch=32_000), EarlierEpoch(1, 31_000, AS_OF), SETTINGS)) == (INFO, None)


@pytest.mark.parametrize(
    ("last_update_hours_ago", "expiration_days", "expected"),
    [
        (0, 7, (INFO, "11-28 02:00")),
        (5 * 24 - 1, 7, (INFO, "11-23 03:00")),
        (5 * 24, 7, (WARNING, "11-23 02:00")),  # two nights
        (7 * 24 - 1, 7, (WARNING, "11-21 03:00")),
        (7 * 24, 7, (WARNING, "11-21 02:00")),
        (7 * 24 + 1, 7, (WARNING, "11-21 01:00")),  # the next scan of its coordinator
        (7 * 24 + 1.1, 7, None),  # still there: the brokers have another setting
        (0, 7.1, None),
        (24, 8, (INFO, "11-28 02:00")),
    ],
)
def test_expiry(last_update_hours_ago: float, expiration_days: float, expected: tuple[str, str] | None) -> None:
    settings = ForecastSettings(
        **{name: getattr(SETTINGS, name) for name in SETTINGS.__slots__}
        | {"transactional_id_expiration_ms": round(expiration_days * DAY_MS)}
    )
    held = HeldId(
        last_update_ms=AS_OF - round(last_update_hours_ago * HOUR_MS), producer_id=7, partitions=1, first="orders-0"
    )
    assert shown(id_expires(held, settings)) == expected


@pytest.mark.parametrize(
    ("kept", "grown", "hours", "expected"),
    [
        (FEW_PRODUCERS - 1, 900_000, 24, None),
        (FEW_PRODUCERS, 990_000, 24, (WARNING, "11-22 02:00")),
        (500_000, 100_000, 24, (WARNING, "11-26 02:00")),
        (500_000, 71_429, 24, (WARNING, "11-28 01:59")),  # a week
        (500_000, 71_428, 24, (INFO, "11-28 02:00")),
        (500_000, 100_000, 19, (INFO, "11-25 01:00")),  # not from one night to the next
        (500_000, 100_000, 20, (WARNING, "11-25 06:00")),
        (500_000, 100_000, 0.9, None),  # a burst
        (500_000, 5_556, 24, (INFO, "02-19 01:49")),
        (500_000, 5_555, 24, None),  # more than a quarter
        (500_000, 0, 24, None),
        (500_000, -1, 24, None),
        (500_000, None, None, None),
        (MANY_PRODUCERS - 1, 24, 24, (WARNING, "11-21 03:00")),
        (MANY_PRODUCERS, None, None, (WARNING, "11-21 02:00")),
        (MANY_PRODUCERS, -5, 24, (WARNING, "11-21 02:00")),
    ],
)
def test_growth_of_producers(
    kept: int, grown: int | None, hours: float | None, expected: tuple[str, str] | None
) -> None:
    earlier_ms = None if hours is None else AS_OF - round(hours * HOUR_MS)
    producers = BrokerProducers(broker="1", kept=kept, grown=grown, earlier_ms=earlier_ms, producer_ids=kept)
    assert shown(producers_fill_memory(producers, SETTINGS)) == expected


@pytest.mark.parametrize(
    ("allocated", "hours", "producer_ids", "grown", "expected"),
    [
        # 500,000 kept. As many come in a day, on one partition each.
        (1_000_000, 24, 500_000, None, (INFO, "11-21 14:00")),
        (999_999, 24, 500_000, None, None),  # then no broker ever keeps that many
        (999_999, 24, 500_000, 100_000, None),  # whatever it grew
        (999_999, 24, 250_000, None, (INFO, "11-21 08:00")),  # two partitions each
        (1_000_000, 24, 500_000, 100_000, (WARNING, "11-26 02:00")),  # what grew is better than what may come
        (41_667, 1, 500_000, None, (INFO, "11-21 13:59")),
        (41_666, 1, 500_000, None, None),
        (1_000_000, 0.9, 500_000, None, None),
        (0, 24, 500_000, 100_000, None),
        (1_000_000, 24, None, None, None),
        (None, None, 500_000, 100_000, (WARNING, "11-26 02:00")),
    ],
)
def test_producer_ids_that_are_handed_out(
    allocated: int | None,
    hours: float | None,
    producer_ids: int | None,
    grown: int | None,
    expected: tuple[str, str] | None,
) -> None:
    producers = BrokerProducers(
        broker="1",
        kept=500_000,
        grown=grown,
        earlier_ms=None if grown is None else AS_OF - DAY_MS,
        producer_ids=producer_ids,
        allocated=allocated,
        allocated_ms=None if hours is None else AS_OF - round(hours * HOUR_MS),
    )
    assert shown(producers_fill_memory(producers, SETTINGS)) == expected


@pytest.mark.parametrize(("behind", "expected"), [(0, None), (1, (INFO, None)), (5, (INFO, None))])
def test_clients_behind(behind: int, expected: tuple[str, None] | None) -> None:
    clients = OldClients(
        application="shop", ids=5, ids_behind=behind, transactions=9, newest_ms=AS_OF, raised_ms=AS_OF - DAY_MS
    )
    assert shown(client_is_behind(clients, SETTINGS)) == expected


def still(**changes: object) -> StillPartition:
    """A partition that has stood still for two days, blocked by an open transaction."""
    given = {"offset": 5, "lag_offsets": 9, "runs": 3, "since_ms": AS_OF - 2 * DAY_MS, "verdict": "OPEN"}
    return StillPartition(**given | changes)


@pytest.mark.parametrize(
    ("runs", "hours", "verdict", "expected"),
    [
        (2, 48, "OPEN", None),
        (3, 0.01, "OPEN", (INFO, "11-21 02:10")),
        (3, 23.9, "OPEN", (INFO, "11-21 02:10")),
        (3, 24, "OPEN", (WARNING, "11-21 02:10")),
        (3, 24, "SUSPECT", (WARNING, "11-21 02:05")),
        (3, 24, "UNKNOWN", (WARNING, None)),
        (3, 24, None, (WARNING, None)),
        *((9, 240, verdict, None) for verdict in ("HANGING", "STUCK", "LATE")),
    ],
)
def test_verdicts_on_what_stands_still(
    runs: int, hours: float, verdict: str | None, expected: tuple[str, str | None] | None
) -> None:
    since_ms = AS_OF - round(hours * HOUR_MS)
    partition = still(runs=runs, since_ms=since_ms, verdict=verdict, last_timestamp_ms=AS_OF - 10 * MINUTE)
    assert shown(stands_still(partition, SETTINGS)) == expected


# When its coordinator, or the brokers' metric, calls an open transaction late: minutes of start, timeout and last
# write.
@pytest.mark.parametrize(
    ("start", "timeout", "last", "two_phase", "expected"),
    [
        (-10, 60, -10, False, "11-21 02:10"),  # 15 and 5 minutes after the last write
        (-10, 15, -1, False, "11-21 02:05"),  # 15 minutes and a scan after the start
        (-10, 60, 600, False, "11-21 02:50"),  # the client's clock is ahead
        (-10, 60, None, False, "11-21 02:50"),
        (None, 60, -10, False, "11-21 02:10"),
        (-10, None, -10, False, "11-21 02:10"),
        (-10, 60, -30, False, "11-21 02:50"),  # in the past, so it said nothing
        (-90, 60, -30, False, None),
        (-10, 60, -10, True, None),
        (None, None, None, False, None),
    ],
)
def test_when_it_is_called(
    start: int | None, timeout: int | None, last: int | None, two_phase: bool, expected: str | None
) -> None:
    partition = still(
        is_two_phase_commit=two_phase,
        start_ms=None if start is None else AS_OF + start * MINUTE,
        timeout_ms=None if timeout is None else timeout * MINUTE,
        last_timestamp_ms=None if last is None else AS_OF + last * MINUTE,
    )
    assert shown(stands_still(partition, SETTINGS)) == (WARNING, expected)


def test_its_coordinator_scans_for_timeouts_now_and_then() -> None:
    forecast = stands_still(still(start_ms=AS_OF, timeout_ms=MINUTE), SETTINGS)
    assert forecast is not None
    assert forecast.expected_ms == AS_OF + MINUTE + SETTINGS.timeout_scan_interval_ms


def test_a_client_that_stamps_the_end_of_time_gives_no_date() -> None:
    assert shown(stands_still(still(last_timestamp_ms=LAST_MS), SETTINGS)) == (WARNING, None)


_STILL = still(offset=1_020, lag_offsets=1, transactional_id="etl\n7", producer_id=9)


@pytest.mark.parametrize(
    ("forecast", "sentence"),
    [
        (
            epochs_run_out(EpochUse(epoch=31_000), EarlierEpoch(1, 30_160, AS_OF - 7 * DAY_MS), SETTINGS),
            "epoch 31,000 of 32,766, 120 epochs a day since 2026-11-14T02:00:00Z: exhausted about 2026-12-05",
        ),
        (
            epochs_run_out(EpochUse(epoch=32_764), EarlierEpoch(1, 32_761, AS_OF - 2 * DAY_MS), SETTINGS),
            "epoch 32,764 of 32,766, 1.5 epochs a day since 2026-11-19T02:00:00Z: exhausted about 2026-11-22T10:00:00Z",
        ),
        (
            epochs_run_out(EpochUse(epoch=32_764), None, SETTINGS),
            "epoch 32,764 of 32,766; no earlier epoch is known, so neither is the date of its exhaustion",
        ),
        (
            epochs_run_out(EpochUse(epoch=32_766), None, SETTINGS),
            "epoch 32,766 of 32,766: exhausted, so the next change gives it a new producer id",
        ),
        (
            id_expires(HeldId(last_update_ms=AS_OF - DAY_MS, producer_id=7, partitions=2, first="orders-0"), SETTINGS),
            (
                "last updated 2026-11-20T02:00:00Z, expires after 7 d: about 2026-11-27; producer id 7 has an open"
                " transaction on 2 partitions: orders-0 and others"
            ),
        ),
        (
            producers_fill_memory(
                BrokerProducers(broker="1", kept=500_000, grown=100_000, earlier_ms=AS_OF - DAY_MS, producer_ids=1),
                SETTINGS,
            ),
            (
                "broker 1 keeps 500,000 producers (about 200 MB), 100,000 more a day since 2026-11-20T02:00:00Z:"
                " 1,000,000 about 2026-11-26"
            ),
        ),
        (
            producers_fill_memory(
                BrokerProducers(
                    broker="1", kept=500_000, producer_ids=500_000, allocated=1_000_000, allocated_ms=AS_OF - DAY_MS
                ),
                SETTINGS,
            ),
            (
                "broker 1 keeps 500,000 producers (about 200 MB), 1,000,000 new producer ids a day, each kept for 1 d:"
                " 1,000,000 about 2026-11-21T14:00:00Z"
            ),
        ),
        (
            producers_fill_memory(BrokerProducers(broker="1", kept=1_200_000), SETTINGS),
            "broker 1 keeps 1,200,000 producers (about 480 MB): more than 1,000,000 already",
        ),
        (
            client_is_behind(
                OldClients(
                    application="shop",
                    ids=5,
                    ids_behind=2,
                    transactions=1_000,
                    newest_ms=AS_OF,
                    raised_ms=AS_OF - DAY_MS,
                ),
                SETTINGS,
            ),
            (
                "2 of 5 transactional ids of application shop: 1000 transactions of version 0 or 1, the newest"
                " 2026-11-21T02:00:00Z, although version 2 has applied since 2026-11-20T02:00:00Z or earlier"
            ),
        ),
        (
            stands_still(_STILL, SETTINGS),
            (
                "last stable offset 1,020 in 3 audits since 2026-11-19T02:00:00Z (2 d), 1 offset behind; blocked by"
                " etl\\n7, OPEN: no date follows from the logs"
            ),
        ),
    ],
)
def test_the_arithmetic_is_a_sentence(forecast: Forecast | None, sentence: str) -> None:
    assert forecast is not None
    assert forecast.arithmetic == sentence


def test_what_blocks_is_named_as_well_as_it_is_known() -> None:
    blocked = {"offset": 1, "lag_offsets": 2, "runs": 3, "since_ms": AS_OF}
    unowned = stands_still(StillPartition(**blocked, producer_id=9, verdict="UNKNOWN"), SETTINGS)
    unseen = stands_still(StillPartition(**blocked), SETTINGS)
    prepared = stands_still(StillPartition(**blocked, verdict="OPEN", is_two_phase_commit=True), SETTINGS)
    assert [each.arithmetic.partition("; ")[2] for each in (unowned, unseen, prepared) if each] == [
        "blocked by 9, UNKNOWN: no date follows from the logs",
        "blocked by an unknown transaction, without a verdict: no date follows from the logs",
        "blocked by an unknown transaction, OPEN: a two-phase commit is never called LATE",
    ]


def test_each_forecast_of_the_catalogue_is_made_and_shown_where_it_belongs() -> None:
    record = {"transactional_id": "billing-0", "coordinator_partition": 4, "offset": 9, "producer_id": 1}
    old = OldClients(application="shop", ids=5, ids_behind=1, transactions=9, newest_ms=AS_OF, raised_ms=0, **record)
    asked = []

    def earlier(producers: Sequence[ProducerId]) -> list[EarlierEpoch]:
        asked.extend(producers)
        return [EarlierEpoch(1, 31_000, AS_OF - 7 * DAY_MS)]

    idle = EpochUse(epoch=31_000, **record)
    found = list(
        forecasts(
            [EpochUse(epoch=31_840, **record), idle],
            earlier,
            [HeldId(last_update_ms=AS_OF - DAY_MS, partitions=1, first="orders-0", **record)],
            [BrokerProducers(broker="1", kept=MANY_PRODUCERS)],
            [old],
            [still(topic="orders", partition=2)],
            settings=SETTINGS,
        )
    )
    assert asked == [ProducerId(1), ProducerId(1)]
    assert sorted(each.name for each in found) == sorted(NAMES), "one of each; nothing for an epoch that does not grow"
    places = {
        each.name: (each.topic, each.partition, each.offset, each.producer_id, each.transactional_id) for each in found
    }
    assert places == {
        **dict.fromkeys(NAMES, ("__transaction_state", 4, 9, 1, "billing-0")),
        "PRODUCER_IDS_FILL_MEMORY": (None, None, None, None, None),
        "LAST_STABLE_OFFSET_STANDS_STILL": ("orders", 2, 5, None, None),
    }
    assert {each.name: each.expected_ms for each in found}["TRANSACTIONAL_ID_EXPIRES"] == AS_OF + 6 * DAY_MS
    assert {Finding[name].value.severity for name in NAMES} == {Severity.INFO}


def test_the_named_verdicts_exist() -> None:
    assert set(Verdict) > {*CALLED, *UNENDED}
