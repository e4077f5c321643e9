"""Records of `__transaction_state` as brokers write them: worked bytes, three whole logs."""

import pytest

from tests.support.log_bytes import (
    encode_transaction_log_batch,
    encode_transaction_log_key,
    encode_transaction_log_value,
)
from tests.support.log_notation import rec
from tests.support.samples import START, sample
from txnlib.core.kafka.transaction_log import (
    VALUE,
    TransactionLogEntry,
    UnknownVersionError,
    read_transaction_log_key,
    read_transaction_log_value,
)
from txnlib.core.rows import TopicPartition

OFFSETS_12 = "__consumer_offsets-12"


def of(state: str, *partitions: str, update: int, start: int = 0, **fields: object) -> TransactionLogEntry:
    """orders-app-1 of producer 4001, epoch 3; times count from the start of the samples."""
    given = {"id": "orders-app-1", "start_timestamp_ms": None if state == "E" else START + start} | fields
    pid, epoch = given.pop("pid", 4001), given.pop("epoch", 3)
    return rec(state, pid, epoch, list(partitions), update=START + update, **given)


def v0(*args: str, **fields: object) -> TransactionLogEntry:
    return of(*args, version=0, **fields)


def v2(*args: str, **fields: object) -> TransactionLogEntry:
    """As a client of transactions v2 has it written, before brokers wrote the linked producer ids."""
    return of(*args, client_transaction_version=2, **fields)


def linked(*args: str, **fields: object) -> TransactionLogEntry:
    """The same, by a broker of 4.3."""
    return v2(*args, **{"previous_producer_id": 4001} | fields)


def hex_bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


#: What is in the value -> its bytes, and the entry they hold.
WORKED = {
    "v0 Empty: null partitions, no start": (
        "0000 0000000000000fa1 0003 0000ea60 00 ffffffff 0000018e2b1859ce ffffffffffffffff",
        v0("E", update=-50),
    ),
    "v0 Ongoing": (
        (
            "0000 0000000000000fa1 0003 0000ea60 01 00000001 0008 7061796d656e7473 00000001 000000000000018e2b185a00"
            " 0000018e2b185a00"
        ),
        v0("O", "payments-0", update=0),
    ),
    "v0 Complete: no partitions, but the start": (
        "0000 0000000000000fa1 0003 0000ea60 04 00000000 0000018e2b185a73 0000018e2b185a00",
        v0("CC", update=115),
    ),
    "v1 Ongoing, tags 0 and 2": (
        (
            "0001 0000000000000fa1 0003 0000ea60 01 02 09 7061796d656e7473 02 00000000 00 0000018e2b185a00"
            " 0000018e2b185a0002 00 08 0000000000000fa1 02 02 0002"
        ),
        linked("O", "payments-0", update=0),
    ),
    "v1 PrepareAbort, tags 0, 1 and 2: the epoch is exhausted": (
        (
            "0001 000000000000125c 7fff 0000ea60 03 02 09 7061796d656e7473 02 00000001 00 0000018e2b185b2c"
            " 0000018e2b185ac803 00 08 000000000000125c 01 08 000000000000125d 02 02 0002"
        ),
        linked(
            "PA",
            "payments-1",
            update=300,
            start=200,
            pid=4700,
            epoch=32767,
            previous_producer_id=4700,
            next_producer_id=4701,
        ),
    ),
}


@pytest.mark.parametrize("name", WORKED)
def test_a_value_written_out_byte_by_byte_is_read_and_written_so(name: str) -> None:
    text, entry = WORKED[name]
    assert read_transaction_log_value("orders-app-1", hex_bytes(text)) == entry
    assert encode_transaction_log_value(entry) == hex_bytes(text)
    assert VALUE.write(entry.version, VALUE.read(entry.version, hex_bytes(text), 2)) == hex_bytes(text)[2:]


HOSTILE = "pay,ments=1: [eu] payload: x"
PREPARED = ["payments-0", OFFSETS_12]
WRAPPED = {"id": "wrap-id", "start": 200, "pid": 4700, "epoch": 32767}
REBORN = {"id": "wrap-id", "start": 200, "pid": 4701, "epoch": 0}
ODD_ID = {"id": HOSTILE, "start": 990, "pid": 4003, "epoch": 5, "transaction_timeout_ms": 900_000}

#: file -> (ms of the record, what it holds); a bare id is a tombstone.
LOGS: dict[str, list[tuple[int, TransactionLogEntry | str]]] = {
    "txnstate-v0.log": [
        (-49, v0("E", update=-50)),
        (1, v0("O", "payments-0", update=0)),
        (6, v0("O", *PREPARED, update=5)),
        (111, v0("PC", *PREPARED, update=110)),
        (130, v0("CC", update=115)),
        (991, v0("O", "payments-0", "payments-3", update=990, **ODD_ID)),
        (2000, "stale-id"),
    ],
    "txnstate-v1-broker40.log": [
        (-49, of("E", update=-50)),
        (1, v2("O", "payments-0", update=0)),
        (111, v2("PC", "payments-0", update=110, epoch=4)),
        (130, v2("CC", update=115, epoch=4)),
        (301, v2("PA", "payments-1", update=300, **WRAPPED)),
        (306, v2("CA", update=305, **REBORN)),
        (991, v2("O", "payments-0", "payments-3", update=990, **ODD_ID)),
        (2000, "stale-id"),
    ],
    "txnstate-v1-broker43.log": [
        (-49, of("E", update=-50, previous_producer_id=4001)),
        (1, linked("O", "payments-0", update=0)),
        (111, linked("PC", "payments-0", update=110, epoch=4)),
        (130, linked("CC", update=115, epoch=4)),
        (301, v2("PA", "payments-1", update=300, previous_producer_id=4700, next_producer_id=4701, **WRAPPED)),
        (306, v2("CA", update=305, previous_producer_id=4700, **REBORN)),
        (991, v2("O", "payments-0", "payments-3", update=990, previous_producer_id=4003, **ODD_ID)),
        (2000, "stale-id"),
    ],
}


@pytest.mark.parametrize("name", LOGS)
def test_a_sample_log_is_reproduced_bit_for_bit(name: str) -> None:
    batches = [
        encode_transaction_log_batch([value], at=offset, ts=START + ms, leader_epoch=2)
        for offset, (ms, value) in enumerate(LOGS[name])
    ]
    assert b"".join(batches) == sample(name)


def test_a_key_is_an_id_behind_a_version() -> None:
    assert read_transaction_log_key(hex_bytes("0000 000c 6f72646572732d6170702d31")) == "orders-app-1"
    assert read_transaction_log_key(hex_bytes("0000 0000")) == ""


@pytest.mark.parametrize("version", [1, -1, 32767])
def test_another_version_of_the_key_is_named(version: int) -> None:
    with pytest.raises(UnknownVersionError) as error:
        read_transaction_log_key(encode_transaction_log_key("bar", version))
    assert (error.value.field_name, error.value.version) == ("key", version)
    assert str(error.value) == f"key version {version} of a transaction log record is not known"


@pytest.mark.parametrize("version", [2, -1, 32767])
def test_another_version_of_the_value_is_named(version: int) -> None:
    with pytest.raises(UnknownVersionError) as error:
        read_transaction_log_value("bar", version.to_bytes(2, "big", signed=True) + bytes(35))
    assert (error.value.field_name, error.value.version) == ("value", version)


#: timeout -> whether it never passes.
TIMEOUTS = [(2147483647, True), (-1, True), (0, False), (60_000, False), (2147483646, False)]


@pytest.mark.parametrize(("timeout", "is_two_phase_commit"), TIMEOUTS)
def test_a_timeout_that_never_passes_is_two_phase_commit(timeout: int, is_two_phase_commit: bool) -> None:
    """2147483647 is what brokers write, -1 what KIP-939 says."""
    assert rec("O", 1, 0, transaction_timeout_ms=timeout).is_two_phase_commit is is_two_phase_commit


def test_partitions_are_ordered_and_named_as_kafka_names_them() -> None:
    assert str(TopicPartition("a-b", 0)) == "a-b-0"
    assert sorted([TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 9)]) == [
        TopicPartition("a", 9),
        TopicPartition("a", 10),
        TopicPartition("b", 0),
    ]
