"""Shallow dumps read by blocks, against the same text by lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.dumps import lines_in, read_in_blocks, same_both_ways
from txnlib.readers.text_events import BatchBlock, DumpStream, read_plain_batches

TABLES = ["record_batches", "segments", "transaction_log"]
LINE = (
    "baseOffset: {at} lastOffset: {to} count: {count} baseSequence: {sequence} lastSequence: {last} producerId: 7"
    " producerEpoch: 3 partitionLeaderEpoch: 4 isTransactional: true isControl: {control} deleteHorizonMs:"
    " OptionalLong.empty position: {position} CreateTime: {time} size: {size} magic: 2 compresscodec: none crc: {crc}"
    " isvalid: true\n"
)


def shallow(count: int, markers: frozenset[int] = frozenset(), gaps: frozenset[int] = frozenset()) -> bytes:
    """A shallow dump: every line a batch of two records, or a marker."""
    lines, offset, position, sequence = (
        ["Dumping /d/orders-0/00000000000000000000.log\n", "Log starting offset: 0\n"],
        0,
        0,
        0,
    )
    for number in range(count):
        is_marker, size = number in markers, 78 if number in markers else 120
        offset += 5 if number in gaps else 0
        fields = {
            "at": offset,
            "to": offset + (not is_marker),
            "count": 2 - is_marker,
            "control": str(is_marker).lower(),
        }
        fields |= {"sequence": -1 if is_marker else sequence, "last": -1 if is_marker else sequence + 1}
        lines.append(
            LINE.format(
                **fields, position=position, time=1_710_000_000_000 + number, size=size, crc=number * 977 % 2**32
            )
        )
        offset, position, sequence = offset + 2 - is_marker, position + size, sequence + (0 if is_marker else 2)
    return "".join(lines).encode()


PLAIN = shallow(60, markers=frozenset({9, 10, 30, 59}), gaps=frozenset({5, 40}))


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("chunk", [1, 400, 2_000, 10_000, 1 << 20])
def test_blocks_of_any_size_are_read_as_their_lines_are(name, chunk):
    same_both_ways(PLAIN, chunk, [name])


def test_blocks_are_really_taken_and_end_before_a_trailing_marker():
    body = PLAIN.split(b"\n", 2)[2]
    columns_, size, *_ = read_plain_batches(body, 0, -1)
    assert len(columns_.is_control) == 59
    assert body[size:].startswith(b"baseOffset: ")
    events = list(DumpStream(lines_in(body), None))
    (taken,) = [event for event in events if isinstance(event, BatchBlock)]
    assert (len(taken.columns.is_control), taken.size) == (58, size - body.index(b"\n") - 1)
    assert [type(event).__name__ for event in events] == [
        "FileStart",
        "DumpedBatch",
        "BatchBlock",
        "DumpedBatch",
        "FileEnd",
    ]


@example(at=6353, byte=255, chunk=3_000)  # inside a label
@given(
    at=st.integers(0, len(PLAIN) - 1),
    byte=st.sampled_from(b"0 9ab\n\r:|-\xff"),
    chunk=st.sampled_from([700, 3_000, 9_000]),
)
def test_one_wrong_byte_changes_nothing_between_the_two_ways(at, byte, chunk):
    text = PLAIN[:at] + bytes([byte]) + PLAIN[at + 1 :]
    same_both_ways(text, chunk)


@given(cut=st.integers(0, len(PLAIN)), chunk=st.sampled_from([700, 3_000]))
def test_a_cut_changes_nothing_between_the_two_ways(cut, chunk):
    same_both_ways(PLAIN[:cut], chunk)


@pytest.mark.parametrize(
    ("printed", "changed"),
    [
        (b"magic: 2", b"magic: 0x2"),
        (b"size: 120", b"size: 0X78"),
        (b"baseOffset: 45 lastOffset: 46", b"baseOffset: 9223372036854775807 lastOffset: -9223372036854775808"),
        (b"magic: 2", b"magic: +2"),
        (b"magic: 2", b"magic:\t2"),
        (b"baseOffset: 45", b"baseoffset: 45"),
        (b"baseOffset: 45", b"\nbaseOffset: 45"),
        (b"lastOffset: 46", b"lastoffset: 46"),
    ],
)
def test_what_one_way_takes_for_a_number_or_a_line_the_other_does(printed, changed):
    place = PLAIN.index(printed + b" ", PLAIN.index(b"baseOffset: 45 "))  # in the middle of a block
    text = PLAIN[:place] + changed + PLAIN[place + len(printed) :]
    same_both_ways(text, 1 << 20, TABLES)


def test_a_coordinator_of_empty_batches_lacks_no_records():
    """As compaction leaves them: nothing was to be decoded."""
    text = PLAIN.replace(b"orders-0", b"__transaction_state-0")
    for count in (b"count: 1", b"count: 2"):
        text = text.replace(count, b"count: 0")
    assert read_in_blocks("segments", text, 1 << 20)["is_decoded"].to_pylist() == [True]
    same_both_ways(text, 1 << 20, ["segments"])


@pytest.mark.parametrize("name", TABLES)
def test_real_dumps_are_read_the_same_both_ways(captures: Path, name):
    dumps = [
        path for path in sorted(captures.rglob("dumps/*/**/*")) if path.is_file() and path.suffix not in (".err", ".gz")
    ]
    assert len(dumps) > 50
    for path in dumps[:: 1 if name == "record_batches" else 7]:
        text = path.read_bytes()
        if len(text) < 1 << 20:
            assert read_in_blocks(name, text, 4_096) == read_in_blocks(name, text, None), path
