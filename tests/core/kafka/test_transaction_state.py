"""Every step between two states, by the table of docs/rules/transactions.md#states-and-steps."""

from itertools import product

import pytest

from txnlib.core.kafka import transaction_state
from txnlib.core.kafka.transaction_state import BY_KAFKA_NAME, STEPS, VALID_PREVIOUS_STATES, Step, TransactionState

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


def test_a_step_between_two_records_is_what_the_coordinator_can_do() -> None:
    assert {(state(before), state(after)): step for before, after, step in on_disk()} == STEPS
    assert set(STEPS) == set(product([None, *TransactionState], repeat=2))


@pytest.mark.parametrize(("code", "name"), [row[:2] for row in KAFKA])
def test_E22_codes_and_names_are_kafka_s_and_lead_to_each_other(code: int, name: str) -> None:
    found = TransactionState(code)
    assert (found.kafka_name, BY_KAFKA_NAME[name], BY_KAFKA_NAME[found.kafka_name]) == (name, found, found)


def test_E23_there_are_exactly_eight_states() -> None:
    assert [(s.value, s.kafka_name) for s in TransactionState] == [row[:2] for row in KAFKA]
    assert list(BY_KAFKA_NAME) == [row[1] for row in KAFKA]


@pytest.mark.parametrize(("name", "previous"), [(row[1], row[2]) for row in KAFKA])
def test_a_state_is_entered_only_from_its_valid_previous_states(name: str, previous: str) -> None:
    assert VALID_PREVIOUS_STATES[BY_KAFKA_NAME[name]] == states(previous)


def test_transactions_v2_abort_what_was_never_begun() -> None:
    assert states(ADDED_IN_4_0["PrepareAbort"]) == transaction_state.EMPTY_ABORT_PREVIOUS_STATES


#: name of a set in the module -> the states in it.
SETS = {
    "ACTIVE_STATES": "Ongoing PrepareCommit PrepareAbort",
    "PREPARED_STATES": "PrepareCommit PrepareAbort",
    "COMPLETE_STATES": "CompleteCommit CompleteAbort",
    "EXPIRATION_ALLOWED_STATES": " ".join(row[1] for row in KAFKA if row[4]),
    "NEVER_WRITTEN_STATES": " ".join(row[1] for row in KAFKA if not row[3]),
}


@pytest.mark.parametrize("name", SETS)
def test_a_named_set_holds_its_states(name: str) -> None:
    assert getattr(transaction_state, name) == states(SETS[name])
