"""The party that ended a transaction, by a grid and by Kafka's flows."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from txnlib.core.ended_by import EndedBy, Ending, ended_by

TIMEOUT = 60_000


ABORT = Ending(
    is_commit=False, ongoing_epoch=3, prepared_epoch=3, client_version=0, is_without_ongoing=False, open_ms=1_000,
    timeout_ms=TIMEOUT, is_reinitialized=False,
)  # fmt: skip


def ending(ongoing, prepared, **changed):
    return replace(ABORT, ongoing_epoch=ongoing, prepared_epoch=prepared, **changed)


#: Who aborted. Columns: age; in each, without a new producer that follows at once, and with one.
#: c client, t timeout, p new producer, k coordinator (timeout or new producer), ? unknown.
ABORTS = """
                     IN_TIME  TIMED_OUT  UNKNOWN
KEPT                 c c      c c        c c
RAISED               p p      t t        k p
RAISED_BY_V2         c p      t t        ? p
RAISED_BY_SOMEBODY   ? p      t t        ? p
NOTHING_ADDED        c c      c c        c c
UNKNOWN              ? ?      t t        ? ?
"""
SIGNS = {
    "c": EndedBy.CLIENT,
    "t": EndedBy.TIMEOUT,
    "p": EndedBy.NEW_PRODUCER,
    "k": EndedBy.COORDINATOR,
    "?": EndedBy.UNKNOWN,
}

#: Step -> epochs of the last Ongoing record and of the Prepare record, transaction version of the client.
STEPS = {
    "KEPT": [(3, 3, 0), (3, 3, 1), (3, 3, 2), (3, 3, None)],
    "RAISED": [(3, 4, 0), (3, 4, 1), (3, 5, 1), (3, 5, 2)],
    "RAISED_BY_V2": [(3, 4, 2), (3, 4, 3)],
    "RAISED_BY_SOMEBODY": [(3, 4, None), (3, 5, None)],
    "NOTHING_ADDED": [(None, 4, 2)],
    "UNKNOWN": [(None, 4, 0), (None, 4, 2), (3, None, 0), (None, None, None)],
}
#: Age -> time from the beginning to the decision, timeout.
AGES = {
    "IN_TIME": [(0, TIMEOUT), (TIMEOUT - 1, TIMEOUT)],
    "TIMED_OUT": [(TIMEOUT, TIMEOUT), (TIMEOUT + 1, TIMEOUT)],
    "UNKNOWN": [(None, TIMEOUT), (TIMEOUT, None)],
}


def aborts() -> list[tuple[str, str, bool, EndedBy]]:
    header, *rows = ABORTS.strip().splitlines()
    cells = list(itertools.product(header.split(), (False, True)))
    return [
        (step, age, follows, SIGNS[sign])
        for step, *signs in map(str.split, rows)
        for (age, follows), sign in zip(cells, signs, strict=True)
    ]


@pytest.mark.parametrize(("step", "age", "follows", "expected"), aborts())
def test_a_commit_is_always_the_clients_and_an_abort_is_the_grids(step, age, follows, expected):
    for (ongoing, prepared, version), (open_ms, timeout_ms) in itertools.product(STEPS[step], AGES[age]):
        fields = {
            "client_version": version,
            "open_ms": open_ms,
            "timeout_ms": timeout_ms,
            "is_reinitialized": follows,
            "is_without_ongoing": step == "NOTHING_ADDED",
        }
        assert ended_by(ending(ongoing, prepared, **fields)) is expected
        assert ended_by(ending(ongoing, prepared, is_commit=True, **fields)) is EndedBy.CLIENT


@pytest.mark.parametrize("timeout_ms", [-1, 2**31 - 1])
def test_two_phase_commit_never_times_out(timeout_ms):
    assert ended_by(ending(3, 4, open_ms=10**9, timeout_ms=timeout_ms)) is EndedBy.NEW_PRODUCER
