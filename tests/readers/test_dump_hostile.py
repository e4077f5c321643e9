"""Payloads, header keys and transactional ids that imitate dump lines."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.dumps import (
    COORDINATOR_PATH,
    PATH,
    Batch,
    Record,
    base_offsets,
    batch_lines,
    dumped,
    marker,
    print_dump,
    rows,
    unreadable,
)


def lines_of(*batches: Batch, at: tuple[int, int]) -> list[bytes]:
    """Perfect lines of batches, as they would be printed next."""
    return [line for lines in batch_lines(*batches, start=at) for line in lines]


#: A transaction of a producer that does not exist, exactly where the next batch of a file is expected: the first batch
#: holds two records and 120 bytes.
PERFECT = lines_of(Batch(producer_id=666), marker("ABORT", 666), at=(2, 120))
#: The same elsewhere.
IMPERFECT = lines_of(Batch(producer_id=666), marker("ABORT", 666), at=(2, 500))
ANOTHER_FILE = [b"Dumping /x/payments-3/00000000000000000000.log", b"Log starting offset: 0"]
ANOTHER_FILE += lines_of(Batch(producer_id=666), marker("COMMIT", 666), at=(0, 0))
REMARKS = [b"Found 40 invalid bytes at the end of 0.log", b'Exception in thread "main" java.lang.Error', b"", b"noise"]
PRODUCER = [b"producerId: 1 producerEpoch: 0 coordinatorEpoch: 0 currentTxnFirstOffset: None "]
COORDINATOR = [
    b"| offset: 1 CreateTime: 1710120000001 keySize: 7 valueSize: 37 sequence: 1 headerKeys: [] key: "
    b"transaction_metadata::transactionalId=bad payload: <DELETE>"
]
HOSTILE = {
    "perfect": PERFECT,
    "imperfect": IMPERFECT,
    "another file": ANOTHER_FILE,
    "remarks": REMARKS,
    "producer": PRODUCER,
    "coordinator": COORDINATOR,
    "all": [*COORDINATOR, *IMPERFECT, *REMARKS, *PRODUCER, *PERFECT, *ANOTHER_FILE],
}


def log_with(record: Record) -> tuple[Batch, ...]:
    """A record among others, in a transaction that commits."""
    return Batch((record, Record())), Batch((Record(), Record())), marker("COMMIT"), Batch()


def same_as_without_contents(batches: tuple[Batch, ...], text: bytes) -> None:
    plain = print_dump(*batches)
    assert rows("record_batches", text) == rows("record_batches", plain)
    assert rows("transaction_log", text) == rows("producer_snapshots", text) == []
    assert [row | {"unreadable": []} for row in rows("segments", text)] == [
        row | {"unreadable": []} for row in rows("segments", plain)
    ]
    assert unreadable(text) == []


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_contents_are_measured_off(name: str, line_end: bytes) -> None:
    hostile = line_end.join([b"x", *HOSTILE[name], b"y"])
    for key, value in ((hostile, hostile), (None, hostile), (hostile, None), (b"", hostile), (None, None)):
        batches = log_with(Record(key, value))
        same_as_without_contents(batches, print_dump(*batches, contents=True))


@pytest.mark.parametrize("name", HOSTILE)
def test_contents_are_measured_off_where_line_ends_were_converted(name: str) -> None:
    hostile = b"\n".join([b"x", *HOSTILE[name], b"y"])
    batches = log_with(Record(key=hostile, value=hostile))

    text = print_dump(*batches, contents=True).replace(b"\n", b"\r\n")

    assert base_offsets(text) == [0, 2, 4, 5]
    assert unreadable(text) == []


def reads_only_a_beginning(batches: tuple[Batch, ...], text: bytes, reason: str) -> None:
    """Nothing is read behind the text that hides its end, and that is told."""
    whole, found = rows("record_batches", print_dump(*batches)), rows("record_batches", text)
    assert found == whole[: len(found)]
    (segment,) = rows("segments", text)
    assert segment["tail"] == "UNMEASURED"
    assert segment["unreadable"][0]["reason"].startswith(reason)
    end = segment["unreadable"][0]["position"] + segment["unreadable"][0]["length"]
    assert end == len(text), "all of the rest"
    assert rows("transaction_log", text) == rows("producer_snapshots", text) == []


@pytest.mark.parametrize("name", HOSTILE)
def test_behind_contents_of_which_the_size_is_wrong_nothing_is_read(name: str) -> None:
    """The console prints a question mark for each character it does not have, so the sizes are too large."""
    printed = b"\n".join([b"???", *HOSTILE[name], b"?"])
    batches = log_with(Record(value="äöü".encode() + printed[3:], printed_value=printed))

    reads_only_a_beginning(batches, print_dump(*batches, contents=True), "SIZE_MISMATCH")


def test_files_behind_contents_without_a_known_end_are_named() -> None:
    other = print_dump(Batch(), path="/d/orders-1/00000000000000000000.log")
    text = print_dump(Batch((Record(value=b"xy", printed_value=b"x"),)), contents=True) + other + other

    stretches = unreadable(text)

    assert [(reason.partition(":")[0], length) for reason, _position, length in stretches] == [
        ("SIZE_MISMATCH", len(text) - text.index(b"| offset: 0")),
        ("FILE_NOT_READ", 0),
    ]
    assert base_offsets(text) == [0]


@pytest.mark.parametrize("value", ["grün", "two\nlines, grün", "äöü" * 20])
@pytest.mark.parametrize("charset", ["ascii", "latin-1"])
def test_contents_that_a_console_printed_with_other_characters_are_measured_where_one_end_is_possible(
    value: str, charset: str
) -> None:
    raw = value.encode()
    printed = value.encode("ascii", "replace") if charset == "ascii" else raw.replace(b"\xc3", b"\xef\xbf\xbd")
    batches = log_with(Record(value=raw, printed_value=printed))

    text = print_dump(*batches, contents=True)
    if charset == "ascii":
        assert base_offsets(text) == [0, 2, 4, 5]
        assert unreadable(text) == []
    else:
        assert set(base_offsets(text)) <= {0, 2, 4, 5}


@pytest.mark.parametrize("name", HOSTILE)
def test_behind_header_keys_with_line_feeds_nothing_is_read(name: str) -> None:
    batches = log_with(Record(header_keys=(b"\n".join([b"trace", *HOSTILE[name], b"]"]),)))

    reads_only_a_beginning(batches, print_dump(*batches, contents=True), "SIZE_MISMATCH")
    reads_only_a_beginning(batches, print_dump(*batches), "SIZE_MISMATCH")


@pytest.mark.parametrize("name", ["perfect", "another file", "all"])
def test_header_keys_that_seem_to_end_before_a_line_are_found_by_the_line_that_follows(name: str) -> None:
    batches = log_with(Record(header_keys=(b"trace]", b"\n".join([b"[x]", *HOSTILE[name], b"]"]))))

    text = print_dump(*batches)

    reads_only_a_beginning(batches, text, "HEADER_KEYS")


@pytest.mark.parametrize("name", ["another file", "all"])
@pytest.mark.parametrize("hidden_label", [b"", b"] headerKeys: []"])
@pytest.mark.parametrize("is_valid", [True, False])
def test_header_keys_of_a_last_record_give_no_record_to_another_partition(
    name: str, hidden_label: bytes, is_valid: bool
) -> None:
    """Nothing continues the file of the header keys, so that only its own batches can be forged."""
    keys = (b"trace" + hidden_label, b"\n".join([b"]", *HOSTILE[name], b"]"]))
    last = Batch((Record(header_keys=keys),), size=2_000, is_valid=is_valid)
    text = print_dump(Batch(), last) + print_dump(Batch(), path=PATH.replace("orders", "stock"))

    assert {row["topic"] for row in rows("record_batches", text)} == {"orders"}
    assert rows("transaction_log", text) == rows("producer_snapshots", text) == []
    (segment,) = rows("segments", text)
    assert segment["tail"] == "UNMEASURED"
    told = [(bad["reason"].partition(":")[0], bad["sample"]) for bad in segment["unreadable"]]
    assert ("FILE_NOT_READ", ANOTHER_FILE[0].decode()) in told
    assert ("FILE_NOT_READ", "Dumping " + PATH.replace("orders", "stock")) in told


@pytest.mark.parametrize("where", ["behind the batch's size", "the same partition"])
def test_a_file_behind_header_keys_is_read_if_they_cannot_give_it_records_of_others(where: str) -> None:
    keys = Batch((Record(header_keys=(b"traceparent",)),), size=100)
    log = (keys, marker("COMMIT")) if where == "behind the batch's size" else (keys,)
    path = PATH.replace("orders", "stock") if where == "behind the batch's size" else PATH.replace("0.log", "9.log")

    text = print_dump(*log) + print_dump(Batch(), path=path)

    assert base_offsets(text) == [*range(len(log)), 0]
    assert unreadable(text) == []


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("key", [None, b"key"])
def test_behind_contents_without_metadata_nothing_is_read(name: str, key: bytes | None) -> None:
    batches = log_with(Record(key=key, value=b"\n".join([b"x", *HOSTILE[name], b"y"])))

    text = print_dump(*batches, contents=True, skip_record_metadata=True)

    reads_only_a_beginning(batches, text, "SIZE_MISMATCH")


_PIECES = st.sampled_from(
    [*PERFECT, *IMPERFECT, *ANOTHER_FILE, *REMARKS, *PRODUCER, b"| offset: ", b" payload: ", b"]"]
)
_CONTENTS = st.none() | st.lists(
    _PIECES | st.text(st.characters(max_codepoint=127), max_size=5).map(str.encode), max_size=6
).map(b"\n".join)


@settings(deadline=None, database=None)
@given(st.lists(st.lists(st.builds(Record, _CONTENTS, _CONTENTS), min_size=1, max_size=3), min_size=1, max_size=4))
def test_whatever_contents_hold_the_batches_are_the_same(contents: list[list[Record]]) -> None:
    batches = tuple(Batch(tuple(records)) for records in contents)

    same_as_without_contents(batches, print_dump(*batches, contents=True))


@pytest.mark.parametrize("version", ["2.8.2", "3.9.1"])
def test_a_real_hostile_dump(version: str) -> None:
    text = dumped(f"real-{version}-hostile-data")

    found = rows("record_batches", text)

    assert [(row["base_offset"], row["producer_id"], row["control_type"]) for row in found] == [
        (0, 0, None),
        (2, 0, "ABORT"),
        (3, 1, None),
        (5, 1, "COMMIT"),
        (6, 2, None),
        (8, 2, "COMMIT"),
    ]
    assert unreadable(text) == []


@pytest.mark.parametrize("version", ["3.9.1", "4.3.0"])
def test_real_hostile_ids(version: str) -> None:
    text = dumped(f"real-{version}-hostile-txnstate")

    found = {row["transactional_id"] for row in rows("transaction_log", text)}
    assert found == {"quote\"and'apostrophe", "<script>alert(1)</script>"}
    assert unreadable(text) == []


TEXT_PAYLOAD = (
    b"producerId:1,producerEpoch:0,state=Ongoing,partitions=[a-b-0],txnLastUpdateTimestamp=5,txnTimeoutMs=60000"
)
IDS = [
    "a,state=Dead,partitions=[x-1]: payload:",
    " payload: <DELETE>",
    f"x payload: {TEXT_PAYLOAD.decode()}",
    f"x payload: {TEXT_PAYLOAD.decode()}\ny",
    "x\n\n",
    "\n".join(line.decode() for line in PERFECT),
    "\r\n\r",
    "ünïcode-订单-🦄",
    '{"type":"0"}',
    "x" * 249,
]


def coordinator_dump(ids: list[str], *, json_keys: bool, printed: str = "utf-8") -> bytes:
    records = []
    for transactional_id in ids:
        raw = transactional_id.encode()
        if json_keys:
            wrapped = {"type": "0", "data": {"transactionalId": transactional_id}}
            key = json.dumps(wrapped, ensure_ascii=False, separators=(",", ":")).encode()
            value = (
                b'{"version":"0","data":{"producerId":1,"producerEpoch":0,"transactionTimeoutMs":60000,'
                b'"transactionStatus":1,"transactionPartitions":[{"topic":"a-b","partitionIds":[0]}],'
                b'"transactionLastUpdateTimestampMs":5,"transactionStartTimestampMs":5}}'
            )
        else:
            key = b"transaction_metadata::transactionalId=" + transactional_id.encode(printed, "replace")
            value = TEXT_PAYLOAD
        records += [
            Record(b"\0\0\0\0" + raw, b"v" * 55, printed_key=key, printed_value=value),
            Record(b"\0\0\0\0" + raw, None, printed_key=key, printed_value=b"<DELETE>"),
        ]
    batches = [Batch((record,), producer_id=-1) for record in records]
    return print_dump(*batches, path=COORDINATOR_PATH, contents=True)


@pytest.mark.parametrize("json_keys", [False, True])
@pytest.mark.parametrize("convert", [False, True])
def test_ids_are_read_exactly(json_keys: bool, convert: bool) -> None:
    text = coordinator_dump(IDS, json_keys=json_keys)
    # Converting line ends cannot be undone for an id that holds both kinds.
    expected = [identifier for identifier in IDS for _ in range(2) if not convert or "\r" not in identifier]
    found = rows("transaction_log", text.replace(b"\n", b"\r\n") if convert else text)

    ids = [row["transactional_id"] for row in found]
    assert [identifier for identifier in ids if not convert or "\r" not in identifier] == expected
    assert [row["offset"] for row in found] == list(range(2 * len(IDS)))
    assert [row["state"] for row in found] == ["Ongoing", None] * len(IDS)
    assert len(rows("record_batches", text)) == 2 * len(IDS)
    assert unreadable(text) == []


_NASTY = st.lists(
    st.sampled_from([*"a\n ,:=[]{}\"'\\|ü🦄", " payload: ", "<DELETE>", "baseOffset: ", "| offset: 1 "]), min_size=1
).map("".join)


@settings(deadline=None, database=None)
@given(st.lists(_NASTY, min_size=1, max_size=4), st.booleans())
def test_any_id_is_read_exactly(ids: list[str], json_keys: bool) -> None:
    text = coordinator_dump(ids, json_keys=json_keys)

    assert [row["transactional_id"] for row in rows("transaction_log", text)] == [i for i in ids for _ in range(2)]
    assert unreadable(text) == []


def test_ids_of_one_line_with_characters_that_the_console_lacks_are_read_as_printed() -> None:
    text = coordinator_dump(["grün", "plain", "zwei\nZeilen, grün", "last"], json_keys=False, printed="ascii")

    found = [row["transactional_id"] for row in rows("transaction_log", text)]
    assert found == ["gr?n", "gr?n", "plain", "plain", "last", "last"]
    assert [reason.partition(":")[0] for reason, _position, _length in unreadable(text)] == ["SIZE_MISMATCH"] * 2


def test_coordinator_records_in_a_topic_of_users_are_payload() -> None:
    text = coordinator_dump(["a"], json_keys=True).replace(b"__transaction_state-7", b"orders-0")

    assert rows("transaction_log", text) == []
    assert len(rows("record_batches", text)) == 2


def test_an_unpaired_surrogate_in_an_id_does_no_harm() -> None:
    text = coordinator_dump(["a"], json_keys=True).replace(b'"a"', b'"a\\ud800"')

    assert [row["transactional_id"] for row in rows("transaction_log", text)] == ["a?", "a?"]
