"""Is it told rightly who ended a transaction? The table is walked in full; the rows of Kafka's flows are named."""

from __future__ import annotations

import itertools

import pytest

from txnlib.core.findings.ended_by import ABORTED_BY, Age, EndedBy, Ending, Step, ended_by

TIMEOUT = 60_000


def ending(
    ongoing=3,
    prepared=3,
    *,
    is_commit=False,
    version=0,
    open_ms=1_000,
    timeout_ms=TIMEOUT,
    is_reinitialized=False,
    is_without_ongoing=False,
):
    return Ending(
        is_commit=is_commit,
        ongoing_epoch=ongoing,
        prepared_epoch=prepared,
        client_version=version,
        is_without_ongoing=is_without_ongoing,
        open_ms=open_ms,
        timeout_ms=timeout_ms,
        is_reinitialized=is_reinitialized,
    )


def test_the_table_knows_every_case():
    assert set(ABORTED_BY) == set(itertools.product(Step, Age, (False, True)))


@pytest.mark.parametrize("case", ABORTED_BY, ids=lambda case: "-".join(str(getattr(part, "name", part)) for part in case))
def test_a_commit_is_always_the_clients_and_an_abort_is_the_tables(case):
    step, age, follows = case
    epochs, version = {
        Step.KEPT: ((3, 3), 1),
        Step.RAISED: ((3, 4), 1),
        Step.RAISED_BY_V2: ((3, 4), 2),
        Step.RAISED_BY_SOMEBODY: ((3, 4), None),
        Step.NOTHING_ADDED: ((None, 4), 2),
        Step.UNKNOWN: ((None, 4), 0),
    }[step]
    open_ms = {Age.IN_TIME: TIMEOUT - 1, Age.TIMED_OUT: TIMEOUT, Age.UNKNOWN: None}[age]
    is_empty = step is Step.NOTHING_ADDED
    fields = {"version": version, "open_ms": open_ms, "is_reinitialized": follows, "is_without_ongoing": is_empty}
    assert ended_by(ending(*epochs, **fields)) is ABORTED_BY[case]
    assert ended_by(ending(*epochs, is_commit=True, **fields)) is EndedBy.CLIENT


def test_M03_an_abort_one_epoch_up_after_the_timeout_is_the_timeouts():
    assert ended_by(ending(3, 4, open_ms=TIMEOUT + 4_000)) is EndedBy.TIMEOUT


def test_M04_an_abort_one_epoch_up_in_time_is_a_new_producers():
    assert ended_by(ending(3, 4, is_reinitialized=True)) is EndedBy.NEW_PRODUCER


def test_M05_a_double_bump_of_a_v2_client_is_no_client_abort():
    assert ended_by(ending(3, 5, version=2)) is EndedBy.NEW_PRODUCER
    assert ended_by(ending(3, 5, version=2, open_ms=TIMEOUT)) is EndedBy.TIMEOUT


def test_M09_an_abort_of_nothing_is_the_clients():
    assert ended_by(ending(None, 4, version=2, is_without_ongoing=True)) is EndedBy.CLIENT


@pytest.mark.parametrize("timeout_ms", [-1, 2**31 - 1])
def test_two_phase_commit_never_times_out(timeout_ms):
    assert ended_by(ending(3, 4, open_ms=10**9, timeout_ms=timeout_ms)) is EndedBy.NEW_PRODUCER
