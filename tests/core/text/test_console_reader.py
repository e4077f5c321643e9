"""Records in the text of a console consumer, and lines that imitate them."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.consoles import (
    DEPRECATED,
    FILES,
    LOGGED,
    PROCESSED,
    Record,
    as_json,
    as_line,
    console_text,
    metadata,
    read,
    records,
    tombstone,
    unreadable,
)
from tests.support.cuts import STRIDES, cuts
from txnlib.core.text import console
from txnlib.core.text.console import read_lines, read_objects
from txnlib.core.text.lines import TextLines
from txnlib.core.text.printed import ConsoleRecord, DumpTail, Printed, TransactionLogText, Unreadable
from txnlib.readers.text_events import find_console_record

NAMES = sorted(path.stem for path in FILES.glob("*.txt"))
FORMS = pytest.mark.parametrize("print_record", [as_line, as_json])
VICTIM = "victim"
IMITATION = f"{VICTIM}::{metadata(VICTIM, 666)}"
JSON_IMITATION = as_json(tombstone(VICTIM)).decode()
ONE_LINE = [
    "a,b", "quote\"and'apostrophe", "{braces}", "a::b", "::NULL", "x::NULL", metadata("x"), JSON_IMITATION,
    JSON_IMITATION * 2, "unknown::version=1", "Processed a total of 3 messages", ", producerId=1, producerEpoch=2",
    "carriage\rreturn", "schreiber-ä-计🦄", "\u2028", " ", "a" * 32_767,
]  # fmt: skip
#: Ids with the text between the two copies of an id.
LABELLED = [
    "::TransactionMetadata(transactionalId=", "a::TransactionMetadata(transactionalId=a",
    "a::TransactionMetadata(transactionalId=a::TransactionMetadata(transactionalId=a", IMITATION,
]  # fmt: skip
LONG = [
    "a\nb", "\n", "\n\nb", "b\n", "a\na\na", f"x::NULL\n{VICTIM}", f"{IMITATION}\nrest", f"{IMITATION}\n{IMITATION}",
    f"rest\n{IMITATION}", f"Processed a total of 3 messages\n{VICTIM}", f"{JSON_IMITATION}\nx",
    f"a\nDumping /x/payments-0/00000000000000000000.log\n{VICTIM}", "a\n" * 16_000 + "b", "a\r\nb",
    f"x::NULL\n{IMITATION}\nrest", f"z::{metadata('z')}\nz::TransactionMetadata(transactionalId=z",
    f"x::NULL\n{IMITATION}\np::TransactionMetadata(transactionalId=p, producerId=1",
    f"z, producerId=1::NULL\n{IMITATION}\nz", f"[2024-03-11 01:20:00,000] WARN \n{IMITATION}\nlog4j:WARN ",
]  # fmt: skip
#: More records than a piece of another one makes ambiguous.
FAR = [Record(f"far-{number}", number) for number in range(1_500)]


def told(text: bytes, chunk: int = 1 << 20) -> tuple[list[Record], list[str]]:
    """The records, and why stretches were unreadable."""
    printed = read(text, chunk)
    return records(printed), [reason for reason, _position, _length in unreadable(printed)]


@pytest.mark.parametrize("name", NAMES)
def test_what_tools_print_is_read_whole(name: str) -> None:
    printed = read(console_text(name))
    assert unreadable(printed) == []
    assert len(records(printed)) == (44 if "hostile" in name else 8 if name.startswith("4") else 7)
    assert printed[-1].tail is DumpTail.CLEAN
    assert find_console_record(console_text(name)) == (114 if name == "real-4.3.0-hostile" else 0)


#: An id with line feeds can be told from imitations in JSON only.
DECIDABLE = [(as_line, name) for name in ONE_LINE] + [(as_json, name) for name in (*ONE_LINE, *LABELLED, *LONG)]


@pytest.mark.parametrize(("print_record", "hostile"), DECIDABLE)
def test_an_id_may_hold_anything(print_record, hostile: str) -> None:
    around = Record("plain"), tombstone("gone")
    text = b"".join(map(print_record, (*around, Record(hostile, 7), Record(hostile, 8), Record("plain", 9))))
    assert told(text) == ([*around, Record(hostile, 7), Record(hostile, 8), Record("plain", 9)], [])


@pytest.mark.parametrize("hostile", [*LABELLED, *LONG])
def test_lines_of_an_id_with_line_feeds_and_lines_near_them_are_ambiguous(hostile: str) -> None:
    """They make no record, and harm none that is far away."""
    near = [Record("plain"), tombstone("gone")]
    given = [*FAR, *near, Record(hostile, 7), Record(hostile, 8), tombstone(hostile), *near, *FAR]
    printed = read(b"".join(map(as_line, given)))
    found = records(printed)
    before = next(number for number, record in enumerate(found) if record != FAR[number])
    assert found == FAR[:before] + FAR[before - len(found) :]
    assert min(before, len(found) - before) > 100
    assert {reason for reason, _position, _length in unreadable(printed)} == {"AMBIGUOUS_RECORD"}


@pytest.mark.parametrize(("print_record", "hostile"), DECIDABLE)
def test_the_first_id_does_not_decide_of_which_form_a_text_is(print_record, hostile: str) -> None:
    text = print_record(Record(hostile, 7))
    assert records(read(text)) == [Record(hostile, 7)]
    assert find_console_record(text) == 0 or len(text) > 1 << 16


@pytest.mark.parametrize("hostile", [*LABELLED, *LONG])
def test_an_ambiguous_first_record_shows_of_which_form_a_text_is(hostile: str) -> None:
    assert find_console_record(as_line(Record(hostile, 7))) == 0


@pytest.mark.parametrize("hostile", ONE_LINE)
def test_a_tombstone_is_told_or_named(hostile: str) -> None:
    text = b"".join(map(as_line, (Record(hostile, 7), tombstone(hostile), tombstone("gone"))))
    printed = read(text)
    assert set(records(printed)) <= {Record(hostile, 7), tombstone(hostile), tombstone("gone")}
    is_piece = ", producerId=" in hostile
    assert records(printed)[:1] == ([] if is_piece else [Record(hostile, 7)])
    assert records(printed)[-1:] == ([] if is_piece else [tombstone("gone")])
    assert (len(records(printed)) == 3) is (unreadable(printed) == [])
    assert all(reason == "AMBIGUOUS_RECORD" for reason, _position, _length in unreadable(printed))


@pytest.mark.parametrize("hostile", ["a\nb", "\nb", "\n\n", f"{metadata('x')}\nb"])
def test_a_tombstone_behind_what_is_no_record_may_be_of_a_longer_id(hostile: str) -> None:
    text = b"".join(map(as_line, (Record("plain"), tombstone(hostile), tombstone("gone"))))
    printed = read(text)
    assert records(printed) == ([] if "producerId=" in hostile else [Record("plain"), tombstone("gone")])
    assert "AMBIGUOUS_RECORD" in [reason for reason, _position, _length in unreadable(printed)] or hostile == "\n\n"


def test_a_tombstone_that_ends_two_known_ids_is_of_neither() -> None:
    short, long = "::NULL\n", "a::NULL\n::NULL\n"
    text = b"".join(map(as_line, (Record(short), Record(long), tombstone(long))))
    assert (records(read(text)), unreadable(read(text))) == ([], [("AMBIGUOUS_RECORD", 0, len(text))])


def test_ids_that_overlap_hide_no_imitation() -> None:
    """A genuine line, and an id that begins with the same line."""
    given = [tombstone("x"), Record("plain"), Record(f"x::NULL\n{IMITATION}\nrest"), Record("plain")]
    assert told(b"".join(map(as_line, given))) == ([], ["AMBIGUOUS_RECORD"])


@FORMS
@pytest.mark.parametrize("chatter", [DEPRECATED, LOGGED, PROCESSED, DEPRECATED + b"\n" + LOGGED + PROCESSED])
def test_chatter_is_no_damage(print_record, chatter: bytes) -> None:
    given = [Record("a"), tombstone("b"), Record("c")]
    text = chatter + chatter.join(map(print_record, given)) + chatter
    printed = read(text)
    assert records(printed) == given or (print_record is as_line and b"\n\n" in chatter)
    assert unreadable(printed) == []
    assert printed[-1].tail is DumpTail.CLEAN


@FORMS
def test_an_exception_ends_a_text_early_and_a_timeout_does_not(print_record) -> None:
    error = (
        b"[2024-03-11 01:20:00,000] ERROR Error processing message, terminating consumer process:  (kafka.tools.X$)\n"
    )
    text = print_record(Record("a")) + error
    timeout = read(text + b"org.apache.kafka.common.errors.TimeoutException\n")
    unknown = read(
        text + b"java.lang.IllegalStateException: Unknown version 7\n\tat kafka.coordinator.X.y(X.scala:1)\n"
    )
    assert (timeout[-1].tail, unknown[-1].tail) == (DumpTail.CLEAN, DumpTail.CORRUPT)
    assert unreadable(timeout) == unreadable(unknown) == []


def test_records_of_unknown_versions_are_named() -> None:
    key = b'{"key":{"version":1,"data":"unknown"},"value":null}'
    value = b'{"key":{"version":0,"data":{"transactionalId":"a"}},"value":{"version":9,"data":"unknown"}}'
    no_key = b'{"key":null,"value":null}'
    found = told(as_json(Record("a")) + key + value + no_key + as_json(Record("b")))
    assert found == ([Record("a"), Record("b")], ["UNKNOWN_KEY_VERSION", "UNKNOWN_VALUE_VERSION", "UNDECODABLE_RECORD"])
    found = told(as_line(Record("a")) + b"unknown::version=1\n" + as_line(tombstone("b")))
    assert found == ([Record("a"), tombstone("b")], ["UNKNOWN_KEY_VERSION"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"state=Ongoing", b"state=Going"),
        (b"producerEpoch=3", b"producerEpoch=32768"),
        (b"__consumer_offsets-12", b"__consumer_offsets"),
        (b"pendingState=None", b"pendingState=Some(Dead)"),
        (b"HashSet(", b"HashSet("[:-1]),
        (b"damaged", b"dam\xffged"),
    ],
)
def test_a_damaged_line_is_named_and_harms_no_other(old: bytes, new: bytes) -> None:
    damaged = as_line(Record("damaged")).replace(old, new)
    printed = read(as_line(Record("a")) + damaged + as_line(Record("b")))
    assert records(printed) == [Record("a"), Record("b")]
    assert [length for _reason, _position, length in unreadable(printed)] == [len(damaged)]


@pytest.mark.parametrize("hostile", [f"{IMITATION}\nrest", f"x::NULL\n{VICTIM}", f"a\n{IMITATION}\nb"])
@pytest.mark.parametrize("new", [b"state=Going", b"state=", b""])
def test_what_the_id_of_a_damaged_record_imitates_is_no_record(hostile: str, new: bytes) -> None:
    damaged = as_line(Record(hostile, 7))
    end = damaged.rindex(b"state=Ongoing")
    damaged = damaged[:end] + new + damaged[end + len(b"state=Ongoing") :]
    text = as_line(Record("a")) + damaged + as_line(tombstone("b"))
    assert told(text) == ([], ["AMBIGUOUS_RECORD"])


@pytest.mark.parametrize("at", [3, 30, 60, 150])
@pytest.mark.parametrize("junk", [b"\0\0\0", LOGGED, b"}", b'"', b"\xff"])
def test_a_damaged_object_is_named_and_harms_no_other(at: int, junk: bytes) -> None:
    whole = as_json(Record("damaged"))
    printed = read(as_json(Record("a")) + whole[:at] + junk + whole[at + 1 :] + as_json(Record("b")))
    assert records(printed) == [Record("a"), Record("b")]
    assert unreadable(printed) != []


@STRIDES
@pytest.mark.parametrize("name", [name for name in NAMES if "real" not in name])
def test_a_text_cut_anywhere_tells_all_before_the_cut(name: str, stride: int) -> None:
    text = console_text(name)
    whole = [value for value in read(text) if isinstance(value, ConsoleRecord)]
    for end in cuts(text, stride):
        printed = read(text[:end])
        expected = [value for value in whole if value.position + value.length <= end]
        assert [value for value in printed if isinstance(value, ConsoleRecord)] == expected
        read_until = sum(value.length for value in expected)
        assert sum(length for _reason, _position, length in unreadable(printed)) == end - read_until
        assert printed[-1].tail is (DumpTail.CLEAN if read_until == end else DumpTail.TORN)


@pytest.mark.parametrize("hostile", LONG[:10])
def test_a_cut_echo_is_no_record(hostile: str) -> None:
    text = as_line(Record("plain")) + as_line(Record(hostile, 7))
    echo = text.index(b"TransactionMetadata(transactionalId=" + hostile.encode()) + len(hostile.splitlines()[0]) + 37
    for end in range(echo, len(text)):
        assert set(records(read(text[:end]))) <= {Record("plain")}


@pytest.mark.parametrize("name", NAMES)
def test_line_ends_and_the_mark_of_an_editor_make_no_difference(name: str) -> None:
    text = console_text(name)
    converted = b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n")
    assert told(converted) == (records(read(text)), [])


def test_an_id_with_line_feeds_is_ambiguous_with_converted_line_ends_too() -> None:
    text = b"".join(map(as_line, (Record("a"), Record("b\nc"), Record("d")))).replace(b"\n", b"\r\n")
    assert told(text) == ([], ["AMBIGUOUS_RECORD"])


@pytest.mark.parametrize("count", [1, 5_000])
def test_two_forms_in_one_text_are_never_taken_for_harmless(count: int) -> None:
    lines = b"".join(map(as_line, (Record("a"), tombstone("b"))))
    objects = as_json(Record("a")) * count
    for text in (lines + objects, objects + b"\n" + lines, objects + lines):
        printed = read(text)
        assert set(records(printed)) <= {Record("a"), tombstone("b")}
        assert {reason for reason, *_ in unreadable(printed)} - {"NOT_DUMP_TEXT"}


def test_objects_may_stand_on_lines_of_their_own_and_be_indented() -> None:
    given = [Record("a"), tombstone('b{"key":'), Record("c")]
    indented = "\n".join(json.dumps(json.loads(as_json(record)), indent=2) for record in given).encode()
    assert told(indented) == (given, [])
    assert records(read(b"\n".join(map(as_json, given)) + b"\n")) == given


FRAGMENTS = st.sampled_from(
    [
        *("a", "b", "\n", "\r", "::", "::NULL", "::NULL\n", "::TransactionMetadata(transactionalId="),
        *(IMITATION, JSON_IMITATION, metadata("a"), ", producerId=1", '"', "{", "}", '{"key":', "ä"),
    ]
)
IDS = st.lists(FRAGMENTS, min_size=1, max_size=5).map("".join)


def pieces_make_no_difference(text: bytes) -> None:
    """Not even for a form by itself; where the form is decided, the first megabyte is held as a whole."""
    for read_form in (read_lines, read_objects):
        whole = list(read_form(TextLines([text])))
        for chunk in (1, 7, 4096):
            assert (
                list(read_form(TextLines(text[start : start + chunk] for start in range(0, len(text), chunk)))) == whole
            )


@settings(deadline=None, max_examples=150)
@given(
    st.lists(IDS, min_size=1, max_size=4),
    st.sampled_from([as_line, as_json]),
    st.lists(st.booleans(), min_size=8, max_size=8),
)
def test_nothing_is_told_that_is_not_there(ids: list[str], print_record, dead: list[bool]) -> None:
    """Every id is seen alive before it dies, as in a log that is not compacted."""
    given = [Record(name, number) for number, name in enumerate(ids)]
    given += [tombstone(name) for name, is_dead in zip(ids, dead, strict=False) if is_dead]
    text = b"".join(map(print_record, given))
    printed = read(text)
    told = iter(given)
    assert all(record in told for record in records(printed)), "in order, and none that is not there"
    assert len(records(printed)) == len(given) or unreadable(printed) != []
    assert print_record is as_line or len(records(printed)) == len(given)
    for chunk in (1, 7, 4096):
        assert read(text, chunk) == printed
    pieces_make_no_difference(text)


@pytest.mark.parametrize("name", NAMES)
def test_pieces_make_no_difference(name: str) -> None:
    pieces_make_no_difference(console_text(name))


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=300) | st.lists(FRAGMENTS, max_size=12).map(lambda pieces: "".join(pieces).encode()))
def test_any_bytes_are_accounted_for(text: bytes) -> None:
    assert read(text, 7) == read(text)
    pieces_make_no_difference(text)


def test_what_is_as_long_as_no_record_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "LONGEST_LINE", 1000)
    long = b"x" * 5_000 + as_line(tombstone(VICTIM))
    for print_record in (as_line, as_json):
        printed = read_in_pieces(print_record(Record("a")) + long + print_record(Record("b")), print_record)
        assert records(printed) == [Record("a"), Record("b")]
        assert sum(length for _reason, _position, length in unreadable(printed)) == len(long)


def read_in_pieces(text: bytes, print_record) -> list[Printed]:
    read_form = read_lines if print_record is as_line else read_objects
    chunks = (text[start : start + 100] for start in range(0, len(text), 100))
    return [
        ConsoleRecord(piece.position, piece.length, *piece.read)
        if isinstance(piece.read, TransactionLogText)
        else Unreadable(piece.position, piece.length, piece.read, "")
        for piece in read_form(TextLines(chunks, longest=1000))
        if piece.read is not None and piece.length
    ]


def test_records_a_window_apart_are_told_in_order() -> None:
    long = "a\n" * 16_000 + "b"
    between = [*FAR, *FAR]
    found, reasons = told(b"".join(map(as_line, [Record(long, 1), *between, Record(long, 2), tombstone(long)])), 4096)
    start = between.index(found[0])
    assert found == between[start : start + len(found)]
    assert len(found) > 100
    assert reasons == ["AMBIGUOUS_RECORD"] * 2


@pytest.mark.parametrize(
    "text", [b"", b"std::NULL is\nx::NULL\n", b'{"key":{"type":1,"data":{"group":"g"}},"value":null}', DEPRECATED]
)
def test_other_text_is_none_of_a_console_consumer(text: bytes) -> None:
    assert find_console_record(text) is None


def test_a_tombstone_behind_a_record_that_lost_its_line_feed_is_named() -> None:
    record, end = as_line(Record("a")), as_line(tombstone("b"))
    text = record.removesuffix(b"\n") + end
    assert unreadable(read(text)) == [("UNDECODABLE_RECORD", 0, len(text))]
