"""Every step between two states, by the table of docs/rules/transactions.md#states-and-steps."""

from __future__ import annotations

from itertools import product

import pytest

from txnlib.core.kafka import transaction_state
from txnlib.core.kafka.transaction_state import BY_KAFKA_NAME, STEPS, Step, TransactionState

#: code, name, states it may be entered from through 3.9, whether it is written, whether the id may expire in it.
KAFKA = [
    (0, "Empty", "Empty CompleteCommit CompleteAbort", True, True),
    (1, "Ongoing", "Ongoing Empty CompleteCommit CompleteAbort", True, False),
    (2, "PrepareCommit", "Ongoing", True, False),
    (3, "PrepareAbort", "Ongoing PrepareEpochFence", True, False),
    (4, "CompleteCommit", "PrepareCommit", True, True),
    (5, "CompleteAbort", "PrepareAbort", True, True),
    (6, "Dead", "Empty CompleteAbort CompleteCommit", False, False),
    (7, "PrepareEpochFence", "Ongoing", False, False),
]
#: What 4.0 added: the abort of a transaction to which nothing was added.
ADDED_IN_4_0 = {"PrepareAbort": "Empty CompleteCommit CompleteAbort"}

#: Steps between consecutive records: - illegal, r a retry only, 2 for transactions v2 only. None: tombstone or nothing.
ON_DISK = """
                   None Empty Ongoing PrepareCommit PrepareAbort CompleteCommit CompleteAbort Dead PrepareEpochFence
None               ok   ok    -       -             -            -              -             -    -
Empty              ok   ok    ok      -             2            -              -             -    -
Ongoing            -    -     ok      ok            ok           -              -             -    -
PrepareCommit      -    -     -       r             -            ok             -             -    -
PrepareAbort       -    -     -       -             r            -              ok            -    -
CompleteCommit     ok   ok    ok      -             2            r              -             -    -
CompleteAbort      ok   ok    ok      -             2            -              r             -    -
Dead               -    -     -       -             -            -              -             -    -
PrepareEpochFence  -    -     -       -             -            -              -             -    -
"""
SIGNS = {"ok": Step.LEGAL, "r": Step.RETRY, "2": Step.TRANSACTIONS_V2, "-": Step.ILLEGAL}


def state(name: str) -> TransactionState | None:
    return None if name == "None" else BY_KAFKA_NAME[name]


def states(names: str) -> frozenset[TransactionState | None]:
    return frozenset(map(state, names.split()))


def on_disk() -> list[tuple[str, str, Step]]:
    header, *rows = ON_DISK.strip().splitlines()
    return [
        (before, after, SIGNS[sign])
        for before, *signs in map(str.split, rows)
        for after, sign in zip(header.split(), signs, strict=True)
    ]


@pytest.mark.parametrize(("before", "after", "step"), on_disk())
def test_a_step_between_two_records_is_what_the_coordinator_can_do(before: str, after: str, step: Step) -> None:
    assert STEPS[state(before), state(after)] is step


def test_every_pair_of_states_has_a_step() -> None:
    assert set(STEPS) == set(product([None, *TransactionState], repeat=2))
    assert len(on_disk()) == len(STEPS) == 81


def test_E22_E23_there_are_exactly_eight_states_and_codes_and_names_lead_to_each_other() -> None:
    assert [(s.value, s.kafka_name) for s in TransactionState] == [row[:2] for row in KAFKA]
    assert [(state.value, name) for name, state in BY_KAFKA_NAME.items()] == [row[:2] for row in KAFKA]


#: Kafka: `TransactionState.validPreviousStates`, and what 4.0 and transactions v2 added to it.
VALID_PREVIOUS_STATES = {BY_KAFKA_NAME[name]: states(previous) for _code, name, previous, *_ in KAFKA}
EMPTY_ABORT_PREVIOUS_STATES = states(ADDED_IN_4_0["PrepareAbort"])


#: name of a set in the module -> the states in it.
SETS = {
    "ACTIVE_STATES": "Ongoing PrepareCommit PrepareAbort",
    "PREPARED_STATES": "PrepareCommit PrepareAbort",
    "COMPLETE_STATES": "CompleteCommit CompleteAbort",
    "NEVER_WRITTEN_STATES": " ".join(row[1] for row in KAFKA if not row[3]),
}


@pytest.mark.parametrize("name", SETS)
def test_a_named_set_holds_its_states(name: str) -> None:
    assert getattr(transaction_state, name) == states(SETS[name])


WRITTEN = [s for s in TransactionState if s not in transaction_state.NEVER_WRITTEN_STATES]


@pytest.mark.parametrize(("before", "after"), list(product(WRITTEN, repeat=2)))
def test_steps_between_written_states_follow_from_the_valid_previous_states(
    before: TransactionState, after: TransactionState
) -> None:
    """Two tables, one truth: what memory allows, plus retried appends, is what the log may show."""
    if before in VALID_PREVIOUS_STATES[after]:
        expected = Step.LEGAL
    elif after is TransactionState.PREPARE_ABORT and before in EMPTY_ABORT_PREVIOUS_STATES:
        expected = Step.TRANSACTIONS_V2
    elif before is after:
        expected = Step.RETRY
    else:
        expected = Step.ILLEGAL

    assert STEPS[before, after] is expected


@pytest.mark.parametrize("before", list(TransactionState))
def test_a_tombstone_follows_only_where_the_id_may_expire(before: TransactionState) -> None:
    is_legal = STEPS[before, None] is Step.LEGAL

    assert is_legal is (before.kafka_name in {row[1] for row in KAFKA if row[4]})
    assert is_legal is (before in VALID_PREVIOUS_STATES[TransactionState.DEAD])
