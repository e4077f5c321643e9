"""Checkpoint files as brokers write them, and bad copies."""

import io

import pytest

from txnlib.core.kafka.log_dir_files import CheckpointEntries

WHOLE = b"0\n3\norders 0 1234\n__transaction_state 12 5\norders 11 987654\n"
ENTRIES = [("orders", 0, 1234), ("__transaction_state", 12, 5), ("orders", 11, 987654)]


def read_checkpoint(content, *, fields):
    lines = CheckpointEntries(io.BytesIO(content), fields=fields)
    return list(lines), lines.problem, lines.position


def test_entries_are_read_in_the_order_of_the_file():
    assert read_checkpoint(WHOLE, fields=3) == (ENTRIES, None, 0)
    assert read_checkpoint(b"0\n2\n0 0\n7 120\n", fields=2) == ([(None, 0, 0), (None, 7, 120)], None, 0)


@pytest.mark.parametrize("content", [b"", b"0\n0\n"])
def test_no_entries_are_no_problem(content):
    assert read_checkpoint(content, fields=3) == ([], None, 0)


@pytest.mark.parametrize("cut", range(1, len(WHOLE)))
def test_a_file_cut_anywhere_keeps_its_whole_entries_and_is_named(cut):
    entries, problem, position = read_checkpoint(WHOLE[:cut], fields=3)
    assert entries == ENTRIES[: max(WHOLE[:cut].count(b"\n") - 2, 0)]
    assert problem is not None
    assert 0 <= position < len(WHOLE)


@pytest.mark.parametrize(
    "content",
    [
        b"1\n1\norders 0 12\n",
        b"orders 0 12\n",
        b"\0\0\0\0",
        b"0\n1\norders x 12\n",
        b"0\n1\norders 0 -1\n",
        b"0\n1\norders 0 \xc2\xb2\n",
        b"0\n2\norders 0 12\n",
        b"0\nmany\norders 0 12\n",
    ],
)
def test_what_no_broker_writes_is_named(content):
    assert read_checkpoint(content, fields=3)[1] is not None


DIGITS = b"9" * 5_000


@pytest.mark.parametrize(
    "line",
    [
        b"orders 0 9223372036854775808",
        b"orders 0 " + DIGITS,
        b"orders 2147483648 12",
        b"orders " + DIGITS + b" 12",
        b"or\xffders 0 12",
        b"or/ders 0 12",
        b"o" * 250 + b" 0 12",
    ],
)
def test_an_entry_that_kafka_could_not_hold_is_no_entry_and_has_a_place(line):
    content = b"0\n3\norders 0 1\n" + line + b"\norders 11 9223372036854775807\n"
    entries, problem, position = read_checkpoint(content, fields=3)
    assert entries == [("orders", 0, 1), ("orders", 11, 2**63 - 1)]
    assert content[position:].startswith(line)
    assert f"at byte {position}" in str(problem)


@pytest.mark.parametrize("line", [b"2147483648 0", b"0 9223372036854775808", DIGITS + b" 0", b"0 0 0"])
def test_a_leader_epoch_is_an_int32_and_its_start_an_int64(line):
    entries, problem, _ = read_checkpoint(b"0\n2\n" + line + b"\n2147483647 9223372036854775807\n", fields=2)
    assert entries == [(None, 2**31 - 1, 2**63 - 1)]
    assert problem is not None


def test_a_count_of_any_length_is_only_a_wrong_count():
    assert read_checkpoint(b"0\n" + DIGITS + b"\norders 0 1\n", fields=3)[0] == [("orders", 0, 1)]
    assert read_checkpoint(b"0\n0000001\norders 0 0000000000000000000000001\n", fields=3) == (
        [("orders", 0, 1)],
        None,
        0,
    )


#: A file -> the first line that is no entry, and where it begins.
NO_ENTRY = [
    (b"0\n2\norders 0 1\nord", b"ord", 15),
    (b"0\n3\norders 0 1\n\norders 1 2\n", b"", 15),
    (b"0\n3\norders x 1\norders y 1\norders 1 2\n", b"orders x 1", 4),
    (b"0\n1\n" + b"o" * 30 + b"\n", b"o" * 20, 4),
]


@pytest.mark.parametrize(("content", "line", "position"), NO_ENTRY)
def test_the_first_line_that_is_no_entry_is_named(content, line, position):
    _, problem, at = read_checkpoint(content, fields=3)
    assert at == position
    assert problem.endswith(f"; {line!r} at byte {position} is none")


def test_spaces_at_the_end_are_no_line():
    _, problem, position = read_checkpoint(b"0\n2\norders 0 1\n ", fields=3)
    assert (problem, position) == ("1 whole entries, and b'2' are expected", 2)
