"""Ids and oddities of a coordinator's log, from its bytes. Group F restates Kafka's `TransactionStateManagerTest`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.support.log_bytes import encode_batch, encode_transaction_log_batch, encode_transaction_log_key
from tests.support.log_notation import TS, judged, rec
from txnlib.core.finding import Finding
from txnlib.core.kafka.odd_coordinator_records import (
    COORDINATOR_EPOCH_WENT_BACK,
    ILLEGAL_TRANSITION,
    SuspectStep,
    oddities,
)
from txnlib.core.kafka.record_batch import HEADER, Record
from txnlib.core.kafka.transaction_log import TransactionLogEntry
from txnlib.readers.decoded_records import entry_row, iter_entries

DAY = 86_400_000
#: What a test writes: an entry, or the id of a tombstone.
Written = TransactionLogEntry | str


class Loaded:
    """The last record of each id by offset, as `TransactionStateManager.loadTransactionMetadata` keeps it."""

    def __init__(self, *batches: bytes) -> None:
        #: id -> the entry of its last record, and the leader epoch of the batch around it.
        self.last: dict[str, tuple[TransactionLogEntry | None, int]] = {}
        self.findings: list[Finding] = []
        self.tombstones: Counter[str] = Counter()
        for batch in batches:
            for found in iter_entries(batch):
                assert not isinstance(found, str)
                _, transactional_id, entry = found
                record = entry, HEADER.unpack_from(batch)[2]
                before = judged(*self.last[transactional_id]) if transactional_id in self.last else None
                self.findings += [finding for finding, _ in oddities(SuspectStep(before, judged(*record), True))]
                self.last[transactional_id] = record
                self.tombstones[transactional_id] += entry is None

    @property
    def states(self) -> dict[str, str]:
        return {id: e.transaction_state.kafka_name for id, (e, _) in self.last.items() if e is not None}


def written(records: Iterable[Written], *, at: int = 0, leader_epoch: int = 0) -> list[bytes]:
    """One record to a batch, as a coordinator appends everything but tombstones."""
    return [encode_transaction_log_batch([r], at=at + n, leader_epoch=leader_epoch) for n, r in enumerate(records)]


def one(state: str, *partitions: str, **fields: object) -> TransactionLogEntry:
    return rec(state, 1, 0, partitions, id="one", **fields)


def two(state: str, *partitions: str, **fields: object) -> TransactionLogEntry:
    return rec(state, 2, 0, partitions, id="two", **fields)


T1, T2, T3 = ["topic1-0", "topic1-1"], ["topic2-0", "topic2-1", "topic2-2"], ["topic3-0", "topic3-1", "topic3-2"]
F01 = [one("O", *T1), one("O", *T1, *T2), one("PC", *T1, *T2), two("O", *T3), two("PA", *T3), two("CA"), two("E")]


def test_F01_the_last_record_of_an_id_is_what_its_coordinator_knows() -> None:
    loaded = Loaded(*written(F01, at=15))

    assert loaded.findings == []
    assert loaded.states == {"one": "PrepareCommit", "two": "Empty"}
    assert [str(tp) for tp in loaded.last["one"][0].transaction_partitions] == T1 + T2
    assert loaded.last["two"][0].transaction_partitions is None
    assert [e.producer_id for e, _ in loaded.last.values()] == [1, 2]


def test_F01_the_last_record_by_offset_wins_whatever_its_time() -> None:
    late, early = one("O", *T1, update=TS + 9), one("PC", *T1, update=TS - 9)

    assert Loaded(*written([late, early])).states == {"one": "PrepareCommit"}


def test_F02_a_complete_record_that_still_lists_partitions_is_read_as_it_stands() -> None:
    listing = [*F01[:5], two("CA", *T3), two("E")]
    loaded = Loaded(*written(listing, at=15)[:-1])

    assert [str(tp) for tp in loaded.last["two"][0].transaction_partitions] == T3
    assert [p["partition"] for p in entry_row(loaded.last["two"][0])["partitions"]] == [0, 1, 2]
    assert Loaded(*written(listing, at=15)).findings == []


def test_F05_a_log_that_comes_back_to_a_coordinator_is_held_at_the_newer_epoch() -> None:
    loaded = Loaded(*written(F01[:2]), *written(F01[2:], at=2, leader_epoch=1))

    assert {id: epoch for id, (_, epoch) in loaded.last.items()} == {"one": 1, "two": 1}
    assert loaded.findings == []


def test_F05_a_coordinator_epoch_never_comes_back() -> None:
    loaded = Loaded(*written(F01[:1], leader_epoch=1), *written(F01[1:2], at=1))

    assert loaded.findings == [COORDINATOR_EPOCH_WENT_BACK]


EXPIRABLE = ["E", "CC", "CA"]


@pytest.mark.parametrize("state", EXPIRABLE)
def test_F13_an_expired_id_is_gone_and_the_others_stay(state: str) -> None:
    old, young = one(state, update=TS - 7 * DAY), two(state)
    loaded = Loaded(*written([old, young, "one"]))

    assert (set(loaded.states), loaded.findings) == ({"two"}, [])


@pytest.mark.parametrize("state", ["PC", "PA"])
def test_F13_an_id_that_has_decided_does_not_expire(state: str) -> None:
    assert Loaded(*written([one("O", *T1), one(state, *T1), "one"])).findings == [ILLEGAL_TRANSITION]


def test_F16_expired_ids_leave_in_several_batches_of_many_tombstones() -> None:
    ids = [f"id-{number}" for number in range(1001)]
    ends = written([rec("E", number, 0, id=name) for number, name in enumerate(ids)])
    batches = [encode_transaction_log_batch(ids[n : n + 20], at=1001 + n) for n in range(0, len(ids), 20)]
    loaded = Loaded(*ends, *batches)

    assert len(batches) == 51
    assert loaded.states == {}
    assert loaded.tombstones == Counter(ids)
    assert loaded.findings == []


def test_F17_a_tombstone_of_an_id_that_was_never_written_is_legal() -> None:
    loaded = Loaded(*written(["one", "one", one("E")]))

    assert (loaded.states, loaded.tombstones["one"], loaded.findings) == ({"one": "Empty"}, 2, [])


def listed() -> list[TransactionLogEntry]:
    """The ids of testListTransactionsFiltering; t7 is being fenced, which lives in memory only: its log says
    Ongoing."""
    states = ["O", "O", "PC", "PA", "CC", "CA", "CA", "O"]
    return [rec(state, n, 0, {"a-0"} if state[0] in "OP" else (), id=f"t{n}") for n, state in enumerate(states)]


def test_F19_every_id_is_listed_but_a_dead_one_which_no_log_holds() -> None:
    dead = rec("DEAD", 8, 0, id="t8")

    assert (list(Loaded(*written(listed())).states), Loaded(*written(listed())).findings) == (
        [f"t{n}" for n in range(8)],
        [],
    )
    assert Loaded(*written([dead])).findings == [ILLEGAL_TRANSITION]


#: states as the tool's options name them -> ids.
BY_STATE = [
    ({"Ongoing"}, ["t0", "t1", "t7"]),
    ({"PrepareCommit", "CompleteCommit"}, ["t2", "t4"]),
    ({"UnknownState"}, []),
    ({"Dead"}, []),
]


@pytest.mark.parametrize(("states", "expected"), BY_STATE)
def test_F21_states_are_listed_by_the_names_that_kafka_gives_them(states: set[str], expected: list[str]) -> None:
    rows = {id: entry_row(entry) for id, (entry, _) in Loaded(*written(listed())).last.items()}

    assert [id for id, row in rows.items() if row["state"] in states] == expected


def test_F21_a_state_that_kafka_does_not_know_is_reported_and_not_guessed() -> None:
    key, value = (
        encode_transaction_log_key("t9"),
        bytes.fromhex("0000 0000000000000fa1 0003 0000ea60 08 ffffffff") + bytes(16),
    )

    found = [*iter_entries(encode_batch([Record(7, TS, key, value)]))]

    assert found == ["UNDECODABLE_VALUE: offset 7, transaction status 8 is not known"]


#: producer ids -> ids; those that no record names are no one's.
BY_PRODUCER_ID = [({5}, ["t5"]), ({5, 6, 8, 9}, ["t5", "t6"]), ({8, 9}, [])]


@pytest.mark.parametrize(("wanted", "expected"), BY_PRODUCER_ID)
def test_F22_a_producer_id_leads_to_the_id_that_has_it(wanted: set[int], expected: list[str]) -> None:
    assert [id for id, (e, _) in Loaded(*written(listed())).last.items() if e.producer_ids & wanted] == expected


@pytest.mark.parametrize("state", ["CC", "CA"])
def test_F26_a_complete_that_was_appended_again_is_the_same_complete(state: str) -> None:
    prepare = one("PC" if state == "CC" else "PA", *T1)
    loaded = Loaded(*written([one("O", *T1), prepare, one(state), one(state), two("E"), one(state)]))

    assert (loaded.states, loaded.findings) == (
        {"one": {"CC": "CompleteCommit", "CA": "CompleteAbort"}[state], "two": "Empty"},
        [],
    )


def test_F27_a_record_of_a_producer_that_was_fenced_meanwhile_is_superseded() -> None:
    """Its append was refused in memory; the abort of the fence goes on from the set before it."""
    superseded = one("O", *T1, *T2, update=TS + 1)
    fence = replace(one("PA", *T1, update=TS + 2), producer_epoch=1)
    loaded = Loaded(*written([one("E"), one("O", *T1), superseded, fence]))

    assert loaded.findings == []
    assert [str(tp) for tp in loaded.last["one"][0].transaction_partitions] == T1


#: transactions version of the cluster -> value version, and what the value says of the client.
VERSIONS = [(0, 0, None), (1, 1, 0), (2, 1, 2)]


@pytest.mark.parametrize(("transactions", "value", "client"), VERSIONS)
def test_F28_transactions_v1_and_v2_write_values_of_version_1(
    transactions: int, value: int, client: int | None
) -> None:
    told = {"client_transaction_version": client} if client else {}
    begun = one("O", *T1, version=min(transactions, 1), **told)
    loaded = Loaded(*written([begun]))

    row = entry_row(loaded.last["one"][0])
    assert (row["value_version"], row["client_transaction_version"]) == (value, client)
    assert (row["state"], row["producer_id"], row["start_ms"]) == ("Ongoing", 1, TS)


def test_F28_an_upgrade_of_the_cluster_changes_no_transaction() -> None:
    upgraded = [one("O", *T1, version=0), one("PC", *T1, version=1), one("CC", version=1)]

    assert Loaded(*written(upgraded)).findings == []
