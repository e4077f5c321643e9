"""Deep dumps read by blocks, against the same text by lines."""

from __future__ import annotations

import io
from collections import deque

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.dumps import (
    TS,
    Batch,
    Record,
    batch_lines,
    marker,
    new_chain,
    print_dump,
    read_in_blocks,
    same_both_ways,
    with_forgeries,
)
from txnlib.core.kafka.record_batch import ControlType
from txnlib.core.text.batch_chain import Chain
from txnlib.readers import dump, dump_stream
from txnlib.readers.dump_blocks import BatchBlock, field_of
from txnlib.readers.dump_record_blocks import read_plain_records
from txnlib.readers.dump_stream import BlockTaker, DumpStream
from txnlib.readers.text_lines import TextLines

TABLES = ["record_batches", "segments", "transaction_log"]
TWO = (Record(), Record())


def body_of(text: bytes) -> bytes:
    """What stands behind the two lines at the head."""
    return text.split(b"\n", 2)[2]


LOG = [batch for number in range(40) for batch in (Batch(TWO, producer_id=number % 3), marker("COMMIT", number % 3))]
PLAIN = print_dump(*LOG)


KEYS_OF_A_TRACE = (b"traceparent", b"b3] [single", b"")
#: Some records have header keys, and some of those a line feed.
WITH_KEYS = print_dump(
    *(
        Batch((Record(header_keys=KEYS_OF_A_TRACE if number % 3 else ()), Record(header_keys=(b"x\ny",) if number == 70 else ())))
        if number % 5
        else marker("COMMIT")
        for number in range(100)
    )
)
TEXTS = {"plain": PLAIN, "with keys": WITH_KEYS}
NAMES = st.sampled_from(sorted(TEXTS))
LINE = body_of(print_dump(Batch())).splitlines(keepends=True)[1]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("chunk", [1, 400, 2_000, 10_000, 1 << 20])
@pytest.mark.parametrize("text", TEXTS)
def test_blocks_of_any_size_are_read_as_their_lines_are(name, chunk, text):
    same_both_ways(TEXTS[text], chunk, [name])


def test_blocks_are_really_taken_up_to_the_last_batch_line_with_the_types_of_markers():
    body = body_of(PLAIN)
    found, size, record_offset = read_plain_records(body, 0, -1)
    assert len(found) == len(LOG) - 1
    assert body[size:].count(b"baseOffset: ") == 1
    assert body[size:].startswith(b"baseOffset: ")
    assert record_offset == field_of(found, "last_offset")[-1]
    assert field_of(found, "control_type")[:4].tolist() == [-1, ControlType.COMMIT, -1, ControlType.COMMIT]
    assert field_of(found, "coordinator_epoch")[:4].tolist() == [-1, 7, -1, 7]
    taken = BlockTaker(TextLines(io.BytesIO(body))).take(deque(), new_chain(is_deep=True))
    assert (len(taken.columns), taken.size, taken.chained.has_untyped_markers) == (len(LOG) - 1, size, False)
    assert BlockTaker(TextLines(io.BytesIO(body))).take(deque(), new_chain(is_deep=False)) is None, "no records in a shallow dump"


def test_the_head_of_a_dump_does_not_keep_what_follows_from_being_taken():
    stream = DumpStream(TextLines(io.BytesIO(print_dump(*LOG * 20))), "orders")
    blocks = [value for value in stream if type(value) is BatchBlock]
    assert sum(len(block.columns) for block in blocks) > 0.9 * 20 * len(LOG)


@example(name="plain", at=PLAIN.index(b"| offset: 1 ") + 10, byte=ord("9"), chunk=3_000)  # an offset of another batch
@example(name="plain", at=PLAIN.index(b"headerKeys: []\n") + 13, byte=ord("x"), chunk=3_000)  # no end of the header keys
@example(name="plain", at=PLAIN.index(b"CreateTime", PLAIN.index(b"endTxnMarker") - 90), byte=ord("K"), chunk=3_000)
@example(name="with keys", at=WITH_KEYS.index(b" keySize", WITH_KEYS.index(b"traceparent") - 60), byte=ord("x"), chunk=9_000)
@settings(deadline=None)
@given(
    name=NAMES,
    at=st.integers(0, len(WITH_KEYS) - 1),
    byte=st.sampled_from(b"0 9ab\n\r:|-[]\xff"),
    chunk=st.sampled_from([700, 3_000, 9_000, 1 << 20]),
)
def test_one_wrong_byte_changes_nothing_between_the_two_ways(name, at, byte, chunk):
    text = TEXTS[name][:at] + bytes([byte]) + TEXTS[name][at + 1 :]
    same_both_ways(text, chunk)


@settings(deadline=None)
@given(name=NAMES, cut=st.integers(0, len(WITH_KEYS)), chunk=st.sampled_from([700, 3_000]))
def test_a_cut_changes_nothing_between_the_two_ways(name, cut, chunk):
    text = TEXTS[name][:cut]
    same_both_ways(text, chunk)


@settings(deadline=None)
@given(name=NAMES, lines=st.sets(st.integers(2, 260), max_size=3), chunk=st.sampled_from([700, 3_000, 1 << 20]))
def test_missing_and_doubled_lines_change_nothing_between_the_two_ways(name, lines, chunk):
    printed = TEXTS[name].splitlines(keepends=True)
    without = b"".join(line for number, line in enumerate(printed) if number not in lines)
    doubled = b"".join(line * (1 + (number in lines)) for number, line in enumerate(printed))
    for changed in (without, doubled):
        same_both_ways(changed, chunk)


PERFECT = [line for lines in batch_lines(Batch(producer_id=666), marker("ABORT", 666), start=(2, 120)) for line in lines]
PIECES = st.sampled_from([*PERFECT, b"]", b"[", LINE.rstrip(b"\n"), b"headerKeys: []", b"| offset: 1 ", b"x", b""])
KEYS = st.lists(st.lists(PIECES, max_size=4).map(b"\n".join), max_size=2).map(tuple)


@example(keys=[(b"]\n" + LINE.replace(b"offset: 0", b"offset: 1") + b"x",)], before_and_after=6, chunk=1 << 20)
@settings(deadline=None)
@given(
    keys=st.lists(KEYS, min_size=1, max_size=12),
    before_and_after=st.sampled_from([6, 30, 40, 70]),
    chunk=st.sampled_from([400, 3_000, 1 << 20]),
)
def test_whatever_header_keys_hold_both_ways_say_the_same(keys, before_and_after, chunk):
    held = [Batch((Record(header_keys=key), Record())) for key in keys]
    text = print_dump(*LOG[:4], *held, *LOG[:before_and_after], *held, *LOG[:before_and_after])
    same_both_ways(text, chunk)


@pytest.mark.parametrize(("forged", "step", "apart"), [(5, 4, 0), (10, 2, 0), (16, 4, 0), (31, 4, 0), (10, 3, 40), (6, 3, 45)])
def test_many_imitated_batches_pass_for_none_wherever_they_stand(forged, step, apart):
    """Lines are judged in groups; where those begin must not depend on what was read as a block before."""
    for place in range(60, 84, step):
        text = with_forgeries(forged, place, place + apart, count=250)
        for chunk in (None, 400, 3_000):
            found = read_in_blocks("record_batches", text, chunk)
            assert found["base_offset"].to_pylist() == list(range(250)), (place, chunk)
            assert 666 not in found["producer_id"].to_pylist()


def test_lines_of_which_none_is_left_over_are_judged_many_at_a_time(monkeypatch):
    judged = []
    judge = Chain._judge
    monkeypatch.setattr(Chain, "_judge", lambda *given: judged.append(given) or judge(*given))
    read_in_blocks("record_batches", with_forgeries(0, 0, count=500), None)
    assert 0 < len(judged) < 500 / 20


def test_an_imitated_file_with_missing_offsets_behind_it_is_told_apart_the_same_way_wherever_it_stands():
    keyed, another = (
        Batch((Record(header_keys=(b"trace",)),)),
        b"k\nDumping /x/b-3/00000000000000000000.log\nLog starting offset: 0\nx",
    )
    for place in range(60, 84, 3):
        text = print_dump(*[keyed] * (place - 1), Batch((Record(header_keys=(another,)),)))
        text += body_of(print_dump(*[keyed] * 100, start=(place + 5, 120 * place)))
        same_both_ways(text, 400)


@pytest.mark.parametrize("contents", [False, True], ids=["many records a batch", "contents"])
def test_text_that_is_not_for_blocks_is_looked_at_as_one_only_now_and_then(monkeypatch, contents):
    looked_at = []
    monkeypatch.setattr(dump_stream, "_read_block", lambda block, *_: looked_at.append(len(block)))
    record = Record(header_keys=(b"trace",), value=b"ab\n" * 10 if contents else b"v")
    text = print_dump(*[Batch((record,) * 3_000)] * 30, contents=contents)
    list(dump.read_located(dump.iter_lines(io.BytesIO(text)), "text:1", ("orders", 0)))
    assert 0 < sum(looked_at) < 2 * len(text)


def test_a_control_batch_of_two_records_is_for_the_line_reader():
    two = Batch((Record(b"\0\0\0\0", b"\0\0\0\0\0\0"),) * 2, 4001, "COMMIT", 78)
    text = print_dump(Batch(), two, *[Batch()] * 9)
    last = text.rindex(b"COMMIT")
    text = text[:last] + b"ABORT" + text[last + len(b"COMMIT") :]
    same_both_ways(text, 1 << 20)
    assert read_plain_records(body_of(text), 0, -1) is None


def test_a_line_with_two_lists_of_header_keys_is_not_made_up_for_by_one_with_none():
    text = print_dump(*[Batch()] * 3, marker("COMMIT"), *LOG)
    balanced = text.replace(b" headerKeys: [] endTxnMarker", b" endTxnMarker", 1).replace(b"[]\n", b"[a] headerKeys: []\n", 1)
    assert read_plain_records(body_of(text), 0, -1) is not None
    assert read_plain_records(body_of(balanced), 0, -1) is None


def test_compacted_batches_and_empty_ones_are_taken_too():
    text = body_of(print_dump(*[Batch(TWO)] * 30))
    first, second, third = (line + b"\n" for line in text.splitlines()[:3])
    compacted = first.replace(b"count: 2", b"count: 1") + third
    empty = first.replace(b"count: 2", b"count: 0")
    rest = text[len(first + second + third) :]
    for start, last in ((compacted, b"| offset: 1 "), (empty, b"baseOffset: 0 ")):
        assert last in start
        found, *_ = read_plain_records(start + rest, 0, -1)
        assert len(found) == 29
        whole = b"Dumping /d/orders-0/00000000000000000000.log\nLog starting offset: 0\n" + start + rest
        same_both_ways(whole, 1 << 20, ["record_batches"])


def test_control_records_that_are_no_markers_are_none_here_either():
    other = marker("COMMIT", -1)
    text = print_dump(Batch(), other, *[Batch()] * 9).replace(b" endTxnMarker: COMMIT coordinatorEpoch: 7", b" controlType: 5")
    found, *_ = read_plain_records(body_of(text), 0, -1)
    assert field_of(found, "control_type").tolist() == [-1] * 10
    same_both_ways(text, 1 << 20, ["segments"])
    broken = text.replace(b" controlType: 5", b" endTxnMarker: PERHAPS coordinatorEpoch: 7")
    assert read_plain_records(body_of(broken), 0, -1) is None


def test_a_time_of_another_type_is_not_the_batchs():
    text = PLAIN.replace(b"| offset: 2 CreateTime: %d" % (TS + 2), b"| offset: 2 LogAppendTime: %d" % (TS + 2))
    assert text != PLAIN
    assert read_plain_records(body_of(text), 0, -1) is None
    same_both_ways(text, 1 << 20, ["segments"])


def taken_of(text: bytes) -> int:
    found = read_plain_records(body_of(text), 0, -1)
    return 0 if found is None else len(found.columns)


@pytest.mark.parametrize(
    "keys", [(b"trace",), (b"a", b"b"), (b"a]", b""), (b"x] headerKeys: [",), (b"x] key: ",), (b"] payload: ",), (b"x\ny",)]
)
def test_header_keys_are_for_the_line_reader(keys):
    assert taken_of(print_dump(*LOG)) == len(LOG) - 1
    assert taken_of(print_dump(Batch((Record(header_keys=keys), Record())), *LOG)) == 0


def test_contents_are_for_the_line_reader():
    assert taken_of(print_dump(*LOG, contents=True)) == 0
    assert taken_of(print_dump(Batch((Record(None, None),)), *LOG)) == len(LOG)


def test_after_header_keys_blocks_are_read_again():
    log = [*LOG, Batch((Record(header_keys=KEYS_OF_A_TRACE),)), *LOG * 20]
    stream = DumpStream(TextLines(io.BytesIO(print_dump(*log)), 1 << 12), "orders")
    blocks = [value for value in stream if type(value) is BatchBlock]
    assert sum(len(block.columns) for block in blocks) > 0.2 * len(log)
    assert stream.reader.chain.has_text


def test_a_control_record_whose_time_is_of_another_type_is_for_the_line_reader():
    text = print_dump(Batch(), marker("COMMIT", -1), *[Batch()] * 9).replace(b" endTxnMarker: COMMIT coordinatorEpoch: 7", b"")
    assert read_plain_records(body_of(text), 0, -1) is not None
    other = text.replace(b"| offset: 1 CreateTime", b"| offset: 1 LogAppendTime")
    assert other != text
    assert read_plain_records(body_of(other), 0, -1) is None
