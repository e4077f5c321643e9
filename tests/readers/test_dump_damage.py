"""Damaged dumps: cuts, noise, stderr in between, repeats, invalid batches."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.cuts import STRIDES, cuts
from tests.support.dumps import (
    COORDINATOR_PATH,
    PATH,
    TS,
    Batch,
    Record,
    base_offsets,
    batch_lines,
    dumped,
    lines_in,
    marker,
    print_dump,
    rows,
    unreadable,
)
from txnlib.core.text.dump_lines import DumpedBatch, DumpedSnapshotEntry
from txnlib.core.text.dump_reader import DumpReader
from txnlib.core.text.lines import UnreadableReason
from txnlib.core.text.printed import DumpedRecord, DumpTail, FileEnd

TABLES = ("record_batches", "transaction_log", "segments", "producer_snapshots")
LOG = (
    Batch((Record(), Record())),
    Batch(),
    marker("COMMIT"),
    Batch((Record(),) * 3),
    marker("ABORT"),
    Batch(producer_id=-1),
)
OFFSETS = [0, 2, 3, 4, 7, 8]
HEADER = b"Dumping %b\nLog starting offset: 0\n" % PATH.encode()


SMALL_DUMPS = {
    "shallow": print_dump(*LOG, deep=False),
    "deep": print_dump(*LOG),
    "contents": print_dump(*LOG, contents=True),
    "bare": print_dump(*LOG, skip_record_metadata=True),
    "3.9 shallow": dumped("3.9-partition-batch"),
    "2.8 deep": dumped("2.8-partition-deep"),
    "coordinator": dumped("2.8-txnstate"),
    "coordinator JSON": dumped("4.3-txnstate"),
    "legacy": dumped("3.9-legacy-magic-deep"),
    "snapshot": dumped("3.9-snapshot"),
}


def values(text: bytes, kind: type) -> list[Any]:
    return [value for value in events(text) if type(value) is kind]


def events(text: bytes) -> list[Any]:
    """Line by line."""
    return list(DumpReader(lines_in(text), None))


@STRIDES
@pytest.mark.parametrize("name", SMALL_DUMPS)
def test_a_cut_loses_nothing_before_it_and_invents_nothing(name: str, stride: int) -> None:
    """Of what prints records, it shows at the end."""
    text = SMALL_DUMPS[name]
    batches, records, producers = (values(text, kind) for kind in RESULTS)
    # A batch line is whole with its last word, but for digits of a CRC.
    is_whole = re.compile(rb"^(?:baseO|o)ffset.*(?:isvalid: true$|crc: \d(?=\d*$))", re.MULTILINE)
    ends = [match.end() for match in is_whole.finditer(text)]
    # Nothing shows that batches are missing, nor, before the first record, that records are printed.
    hidden = {match.start() for match in re.finditer(rb"^(baseOffset|\| offset: 0 )|\Z", text, re.MULTILINE)}

    for cut in cuts(text, stride):
        found = events(text[:cut])
        found_batches, found_records, found_producers = ([v for v in found if type(v) is kind] for kind in RESULTS)
        # What records tell of a batch may be missing, and a CRC at the end of a line.
        assert len(found_batches) == sum(end <= cut for end in ends)
        assert all(is_part_of(*pair) for pair in zip(found_batches, batches, strict=False))
        assert found_records == records[: len(found_records)]
        assert found_producers == producers[: len(found_producers)]
        if name in SHOWN and cut >= text.index(b"baseOffset"):
            (end,) = [value for value in found if type(value) is FileEnd]
            assert end.tail is DumpTail.TORN or cut in hidden, text[cut - 40 : cut]


RESULTS = (DumpedBatch, DumpedRecord, DumpedSnapshotEntry)
#: What prints records.
SHOWN = {"deep", "contents", "coordinator", "coordinator JSON"}


def is_part_of(found: DumpedBatch, whole: DumpedBatch) -> bool:
    names = ("control_type", "coordinator_epoch", "crc")
    return found == whole._replace(**{name: -1 for name in names if getattr(found, name) == -1})


NOISE = [
    b"SLF4J: Class path contains multiple SLF4J bindings.",
    b"admin@broker-1:~$ kafka-dump-log.sh --deep-iteration --files 0.log",
    b"\xff\xfe\x00binary",
    b"baseOffset: 17 lastOffset: 17",
    b"| offset: 17 CreateTime: 17",
    b"| offset: x",
    b"Dumping core",
    b"offset: 5 position: 5",
    b"isvalid: true",
    b"producerId: 4001 producerEpoch: 3",
    b'key: {"type":"0"}',
    b"payload: x",
    b"Found something",
    b"OpenJDK 64-Bit Server VM warning: Option UseConcMarkSweepGC was deprecated",
    next(batch_lines(*LOG))[0],  # printed twice
]


@settings(deadline=None, database=None)
@given(st.data())
@pytest.mark.parametrize("contents", [False, True])
@pytest.mark.parametrize("deep", [False, True])
def test_noise_between_lines_loses_nothing(deep: bool, contents: bool, data: st.DataObject) -> None:
    text = print_dump(*LOG, deep=deep, contents=contents)
    lines = text.splitlines(keepends=True)
    noisy = lines[:2]
    for line in lines[2:]:
        noisy += data.draw(st.lists(st.sampled_from(NOISE).map(lambda noise: noise + b"\n"), max_size=2))
        noisy.append(line)

    assert rows("record_batches", b"".join(noisy)) == rows("record_batches", text)
    (before,) = rows("segments", text)
    (after,) = rows("segments", b"".join(noisy))
    assert after | {"unreadable": []} == before


def test_noise_outside_of_files_is_named() -> None:
    noise = b"SLF4J: nothing\nnor this\n"

    (segment, elsewhere) = rows("segments", noise + print_dump(*LOG))

    assert (segment["batches"], segment["unreadable"]) == (6, [])
    assert (elsewhere["topic"], elsewhere["batches"], elsewhere["kind"]) == (None, 0, "text")
    assert elsewhere["unreadable"] == [
        {"position": 0, "length": 24, "reason": "NOT_DUMP_TEXT", "sample": "SLF4J: nothing", "next_offset": None}
    ]
    assert rows("segments", b"not a dump at all\n")[0]["unreadable"][0]["reason"] == "NOT_DUMP_TEXT"


STDERR = [
    b"Non-consecutive offsets in /x/orders-0/00000000000000000000.log\n  -1 is followed by 3\n  3 is followed by 5\n",
    b"Non-consecutive offsets in :/x/orders-0/00000000000000000000.log\n  3 is followed by 5\n",
    b"Mismatches in :/x/0.index\n  Index offset: 5, log offset: 6\n",
    b"Found timestamp mismatch in :/x/0.timeindex\n  Index timestamp: 5, log timestamp: 6\n",
    b"Ignoring unknown file /x/orders-0/0.log.deleted\n",
    b"kafka.serializer.StringDecoder is deprecated. Please use org.apache.kafka.tools.api.StringDecoder instead\n",
    b"\n",
    b"\r\n",
]


@pytest.mark.parametrize("remark", STDERR)
def test_remarks_of_the_tool_are_no_damage(remark: bytes) -> None:
    text = print_dump(*LOG)

    for at in (0, text.index(b"baseOffset"), text.index(b"| offset: 4"), len(text)):
        assert rows("segments", text[:at] + remark + text[at:]) == rows("segments", text)


def test_stderr_in_the_middle_of_a_line_costs_that_line() -> None:
    text = print_dump(*LOG)
    at = text.index(b"isvalid", text.index(b"baseOffset: 3 "))
    broken = text[:at] + STDERR[0] + text[at:]

    assert base_offsets(broken) == [0, 2, 4, 7, 8]
    (segment,) = rows("segments", broken)
    assert (segment["last_gap_offset"], segment["tail"]) == (4, "CLEAN")
    assert {stretch["next_offset"] for stretch in segment["unreadable"]} == {4}
    assert [stretch["reason"] for stretch in segment["unreadable"]] == ["BROKEN_LINE", "NOT_DUMP_TEXT", "OUT_OF_CHAIN"]
    assert rows("record_batches", broken)[2]["offset_gap"] == 1


def test_a_lost_record_line_of_a_marker_is_named() -> None:
    lines = print_dump(*LOG).splitlines(keepends=True)
    lost = [line for line in lines if b"endTxnMarker: COMMIT" not in line]

    (segment,) = rows("segments", b"".join(lost))

    assert [row["control_type"] for row in rows("record_batches", b"".join(lost))] == [None] * 4 + ["ABORT", None]
    assert [(s["reason"], s["length"], s["next_offset"]) for s in segment["unreadable"]] == [("OUT_OF_CHAIN", 0, 4)]
    assert segment["is_decoded"], "markers were printed, this one was lost"


def without_batch(text: bytes, lost: int) -> bytes:
    lines = text.splitlines(keepends=True)
    starts = [index for index, line in enumerate(lines) if line.startswith(b"baseOffset")] + [len(lines)]
    return b"".join(lines[: starts[lost]] + lines[starts[lost + 1] :])


@pytest.mark.parametrize("lost", range(6))
def test_the_chain_is_taken_up_again_behind_lost_lines(lost: int) -> None:
    text = without_batch(print_dump(*LOG), lost)

    assert base_offsets(text) == [offset for index, offset in enumerate(OFFSETS) if index != lost]
    (segment,) = rows("segments", text)
    expected = [] if lost == 5 else [("OUT_OF_CHAIN", 0, OFFSETS[lost + 1])]
    assert [(s["reason"], s["length"], s["next_offset"]) for s in segment["unreadable"]] == expected


@pytest.mark.parametrize("lost", range(1, 5))
def test_behind_lost_lines_among_contents_nothing_of_the_file_is_believed(lost: int) -> None:
    """The rest of a lost payload may imitate any line. The next file is read again."""
    text = without_batch(print_dump(*LOG, contents=True), lost)
    other = print_dump(*LOG, path=PATH.replace("orders", "payments"), contents=True)

    assert base_offsets(text + other) == OFFSETS[:lost] + OFFSETS
    (segment, after) = rows("segments", text + other)
    assert [(bad["reason"], bad["position"] + bad["length"]) for bad in segment["unreadable"][-1:]] == [
        ("OUT_OF_CHAIN", len(text))
    ]
    assert (segment["tail"], after["tail"], after["unreadable"]) == ("CORRUPT", "CLEAN", [])


@settings(deadline=None, database=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(["shallow", "deep", "contents"]))
def test_whatever_is_missing_the_rest_is_read_or_named(start: int, length: int, name: str) -> None:
    text = SMALL_DUMPS[name]
    start = len(HEADER) + start % (len(text) - len(HEADER))
    end = min(start + 1 + length % 900, len(text))
    starts = [match.start() for match in re.finditer(rb"^baseOffset", text, re.MULTILINE)]
    whole = [text.index(b"\n", at) < start or at >= end for at in starts]
    expected = [offset for offset, is_whole in zip(OFFSETS, whole, strict=True) if is_whole]

    torn = text[:start] + text[end:]
    found = base_offsets(torn)

    # Two halves can make up a line that looks whole.
    assert len(found) <= len(expected) + 1
    is_named = bool(unreadable(torn)) or rows("segments", torn)[0]["tail"] != "CLEAN"
    lost = set(OFFSETS) - set(found)
    assert is_named or not any(offset < max(found, default=0) for offset in lost)
    assert is_named or set(expected) <= set(found)
    if name == "shallow":
        assert set(expected) <= set(found)


@pytest.mark.parametrize("deep", [False, True])
def test_batches_that_fail_their_crc_are_no_batches(deep: bool) -> None:
    log = (*LOG[:3], Batch((Record(),) * 3, is_valid=False), *LOG[4:])
    text = print_dump(*log, deep=deep)

    assert base_offsets(text) == [0, 2, 3, 7, 8]
    (segment,) = rows("segments", text)
    assert [(s["reason"], s["next_offset"]) for s in segment["unreadable"]] == [("CRC_MISMATCH", 7)]
    stretch = segment["unreadable"][0]
    assert text[stretch["position"] :].startswith(b"baseOffset: 4 ")
    assert text[stretch["position"] + stretch["length"] :].startswith(b"baseOffset: 7 ")
    assert (segment["tail"], segment["last_gap_offset"]) == ("CLEAN", 7)


@pytest.mark.parametrize("path", [COORDINATOR_PATH, PATH])
@pytest.mark.parametrize("label", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("lines", ["batch", "record"])
def test_a_coordinators_batch_and_its_only_record_have_one_time_or_it_is_told(
    path: str, label: str, lines: str
) -> None:
    """Its markers are compared by that time. A batch of several records has the time of its newest one."""
    key = b"transaction_metadata::transactionalId=a"
    gone = Record(b"\0\0\0\0a", None, printed_key=key, printed_value=b"<DELETE>")
    log = Batch((gone, gone), producer_id=-1), Batch((gone,), producer_id=-1)
    text = print_dump(*log, path=path, contents=True)
    text = text.replace(b"CreateTime", label.encode())
    assert unreadable(text) == []
    start = text.index(b"baseOffset: 2 " if lines == "batch" else b"| offset: 2 ")
    time = b"%b: %d " % (label.encode(), TS + 2)
    changed = text[:start] + text[start:].replace(time, b"%b: %d " % (label.encode(), TS + 3_000), 1)

    is_told = path == COORDINATOR_PATH and label == "CreateTime"
    place = text.index(b"| offset: 2 ")
    assert unreadable(changed) == [
        ("TIMES_DIFFER: of a coordinator's batch and of its record", place, 0) for _ in range(is_told)
    ]
    assert base_offsets(changed) == [0, 2]
    assert [row["tail"] for row in rows("segments", changed)] == ["CLEAN"]


def test_a_last_batch_that_fails_its_crc_makes_a_corrupt_end() -> None:
    assert [row["tail"] for row in rows("segments", print_dump(*LOG, Batch(is_valid=False)))] == ["CORRUPT"]
    assert base_offsets(dumped("3.9-partition-badcrc-batch")) == [0, 2, 3, 5]


ENDS = {
    b"Found 40 invalid bytes at the end of 00000000000000000000.log\n": "TORN",
    b'Exception in thread "main" org.apache.kafka.common.errors.CorruptRecordException: Found record\n': "CORRUPT",
    b"Found record size 0 smaller than minimum record overhead (14) in file /x/0.log.\n"
    b"org.apache.kafka.common.errors.CorruptRecordException: Found record size 0\n\tat kafka.tools.Dump.main()\n"
    b"Caused by: java.lang.IllegalStateException\n\t... 3 more\n": "CORRUPT",
    b"": "CLEAN",
}


@pytest.mark.parametrize("end", ENDS)
def test_how_the_tool_ends_is_how_the_segment_ends(end: bytes) -> None:
    assert [(row["tail"], row["unreadable"]) for row in rows("segments", print_dump(*LOG) + end)] == [(ENDS[end], [])]


def test_a_file_that_follows_a_cut_line_is_found() -> None:
    first = print_dump(*LOG)[:-20]
    second = print_dump(Batch(), path=PATH.replace("orders", "payments"))

    assert [row["topic"] for row in rows("record_batches", first + second)] == ["orders"] * 6 + ["payments"]
    assert unreadable(first + second)[0][0] == "BROKEN_LINE"


def test_batches_of_a_file_whose_first_line_is_lost_are_not_mixed_up_with_the_one_before() -> None:
    other = print_dump(Batch(producer_id=5), *LOG[1:], deep=False)
    text = print_dump(*LOG, deep=False) + other[other.index(b"baseOffset") :]

    assert base_offsets(text) == OFFSETS
    assert [(row["topic"], row["batches"]) for row in rows("segments", text)] == [("orders", 6), (None, 6)]
    assert unreadable(text)[-1][0] == UnreadableReason.TOPIC_PARTITION_UNKNOWN


def test_readers_never_raise_for_numbers_that_no_column_holds() -> None:
    text = print_dump(*LOG, contents=True)
    for label in set(re.findall(rb"\w+: (?=-?\d)", text)):
        for number in (
            b"-2",
            b"2147483648",
            b"9223372036854775807",
            b"9223372036854775808",
            b"9" * 5_000,
            b"1_0",
            b"x",
        ):
            broken = re.sub(label + rb"-?\d+", label + number, text)
            for table in TABLES:
                rows(table, broken)
