"""Do blocks of a deep dump that are read by columns say what the same lines say one by one?"""

from __future__ import annotations

import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.dumps import TS, Batch, Record, batch_lines, marker, print_dump, read_in_blocks
from txnlib.core.record_batch import ControlType
from txnlib.readers import dump
from txnlib.readers.dump_plain import field_of
from txnlib.readers.dump_plain_records import read_plain_records
from txnlib.readers.text_lines import TextLines

TABLES = ["record_batches", "segments", "transaction_log"]
TWO = (Record(), Record())


def body_of(text: bytes) -> bytes:
    """What stands behind the two lines at the head."""
    return text.split(b"\n", 2)[2]


LOG = [batch for number in range(40) for batch in (Batch(TWO, producer_id=number % 3), marker("COMMIT", number % 3))]
PLAIN = print_dump(*LOG)
LINE = body_of(print_dump(Batch())).splitlines(keepends=True)[1]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("chunk", [1, 400, 2_000, 10_000, 1 << 20])
def test_blocks_of_any_size_are_read_as_their_lines_are(name, chunk):
    assert read_in_blocks(name, PLAIN, chunk) == read_in_blocks(name, PLAIN, None)


def test_blocks_are_really_taken_up_to_the_last_batch_line_with_the_types_of_markers():
    body = body_of(PLAIN)
    found, size, record_offset = read_plain_records(body, 0, -1)
    assert len(found) == len(LOG) - 1
    assert body[size:].count(b"baseOffset: ") == 1
    assert body[size:].startswith(b"baseOffset: ")
    assert record_offset == field_of(found, "last_offset")[-1]
    assert field_of(found, "control_type")[:4].tolist() == [-1, ControlType.COMMIT, -1, ControlType.COMMIT]
    assert field_of(found, "coordinator_epoch")[:4].tolist() == [-1, 7, -1, 7]
    taken = TextLines(io.BytesIO(body)).take_plain(0, -1, True)
    assert (len(taken.columns), taken.end, taken.has_untyped_markers) == (len(LOG) - 1, size, False)
    assert TextLines(io.BytesIO(body)).take_plain(0, -1, False) is None, "of a shallow dump, records are none of the block"


def test_the_head_of_a_dump_does_not_keep_what_follows_from_being_taken():
    reader = dump.open_dump(TextLines(io.BytesIO(print_dump(*LOG * 20))), "orders")
    blocks = [value for value in reader.read_to(None) if type(value).__name__ == "DumpedBatches"]
    assert sum(len(block.columns) for block in blocks) > 0.9 * 20 * len(LOG)


@example(at=PLAIN.index(b"| offset: 1 ") + 10, byte=ord("9"), chunk=3_000)  # an offset of another batch
@example(at=PLAIN.index(b"headerKeys: []\n") + 13, byte=ord("x"), chunk=3_000)  # no end of the header keys
@example(at=PLAIN.index(b"CreateTime", PLAIN.index(b"endTxnMarker") - 90), byte=ord("K"), chunk=3_000)
@given(at=st.integers(0, len(PLAIN) - 1), byte=st.sampled_from(b"0 9ab\n\r:|-[]\xff"), chunk=st.sampled_from([700, 3_000, 9_000]))
def test_one_wrong_byte_changes_nothing_between_the_two_ways(at, byte, chunk):
    text = PLAIN[:at] + bytes([byte]) + PLAIN[at + 1 :]
    for name in ("record_batches", "segments"):
        assert read_in_blocks(name, text, chunk) == read_in_blocks(name, text, None)


@given(cut=st.integers(0, len(PLAIN)), chunk=st.sampled_from([700, 3_000]))
def test_a_cut_changes_nothing_between_the_two_ways(cut, chunk):
    for name in ("record_batches", "segments"):
        assert read_in_blocks(name, PLAIN[:cut], chunk) == read_in_blocks(name, PLAIN[:cut], None)


@given(lines=st.sets(st.integers(2, 60), max_size=3), chunk=st.sampled_from([700, 3_000, 1 << 20]))
def test_missing_and_doubled_lines_change_nothing_between_the_two_ways(lines, chunk):
    printed = PLAIN.splitlines(keepends=True)
    without = b"".join(line for number, line in enumerate(printed) if number not in lines)
    doubled = b"".join(line * (1 + (number in lines)) for number, line in enumerate(printed))
    for text in (without, doubled):
        for name in ("record_batches", "segments"):
            assert read_in_blocks(name, text, chunk) == read_in_blocks(name, text, None)


PERFECT = [line for lines in batch_lines(Batch(producer_id=666), marker("ABORT", 666), start=(2, 120)) for line in lines]
PIECES = st.sampled_from([*PERFECT, b"]", b"[", LINE.rstrip(b"\n"), b"headerKeys: []", b"| offset: 1 ", b"x", b""])
KEYS = st.lists(st.lists(PIECES, max_size=4).map(b"\n".join), max_size=2).map(tuple)


@example(keys=[(b"]\n" + LINE.replace(b"offset: 0", b"offset: 1") + b"x",)], chunk=1 << 20)
@given(keys=st.lists(KEYS, min_size=1, max_size=12), chunk=st.sampled_from([400, 3_000, 1 << 20]))
def test_whatever_header_keys_hold_both_ways_say_the_same(keys, chunk):
    held = [Batch((Record(header_keys=key), Record())) for key in keys]
    text = print_dump(*LOG[:4], *held, *LOG[:6])
    for name in ("record_batches", "segments"):
        assert read_in_blocks(name, text, chunk) == read_in_blocks(name, text, None)


def test_compacted_batches_and_empty_ones_are_taken_too():
    text = body_of(print_dump(*[Batch(TWO)] * 30))
    first, second, third = (line + b"\n" for line in text.splitlines()[:3])
    compacted = first.replace(b"count: 2", b"count: 1") + third
    empty = first.replace(b"count: 2", b"count: 0")
    rest = text[len(first + second + third) :]
    for start, last in ((compacted, b"| offset: 1 "), (empty, b"baseOffset: 0 ")):
        assert last in start
        found, _, _ = read_plain_records(start + rest, 0, -1)
        assert len(found) == 29
        whole = b"Dumping /d/orders-0/00000000000000000000.log\nLog starting offset: 0\n" + start + rest
        assert read_in_blocks("record_batches", whole, 1 << 20) == read_in_blocks("record_batches", whole, None)


def test_control_records_that_are_no_markers_are_none_here_either():
    other = marker("COMMIT", -1)
    text = print_dump(Batch(), other, *[Batch()] * 9).replace(b" endTxnMarker: COMMIT coordinatorEpoch: 7", b" controlType: 5")
    found, _, _ = read_plain_records(body_of(text), 0, -1)
    assert field_of(found, "control_type").tolist() == [-1] * 10
    assert read_in_blocks("segments", text, 1 << 20) == read_in_blocks("segments", text, None)
    broken = text.replace(b" controlType: 5", b" endTxnMarker: PERHAPS coordinatorEpoch: 7")
    assert read_plain_records(body_of(broken), 0, -1) is None


def test_a_time_of_another_type_is_not_the_batchs():
    text = PLAIN.replace(b"| offset: 2 CreateTime: %d" % (TS + 2), b"| offset: 2 LogAppendTime: %d" % (TS + 2))
    assert text != PLAIN
    assert read_plain_records(body_of(text), 0, -1) is None
    assert read_in_blocks("segments", text, 1 << 20) == read_in_blocks("segments", text, None)


@pytest.mark.parametrize("keys", [(b"trace",), (b"x] headerKeys: [",), (b"a", b"b")])
def test_records_with_header_keys_are_for_the_line_reader(keys):
    text = print_dump(Batch((Record(header_keys=keys), Record())), *LOG[:9])
    assert read_plain_records(body_of(text), 0, -1) is None
    assert read_plain_records(body_of(print_dump(Batch(TWO), *LOG[:9])), 0, -1) is not None


def test_a_control_record_whose_time_is_of_another_type_is_for_the_line_reader():
    text = print_dump(Batch(), marker("COMMIT", -1), *[Batch()] * 9).replace(b" endTxnMarker: COMMIT coordinatorEpoch: 7", b"")
    assert read_plain_records(body_of(text), 0, -1) is not None
    other = text.replace(b"| offset: 1 CreateTime", b"| offset: 1 LogAppendTime")
    assert other != text
    assert read_plain_records(body_of(other), 0, -1) is None
