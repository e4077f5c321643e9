"""What terminals show of texts."""

from __future__ import annotations

import pytest

from txnlib.core.display import FIRST_OF_TEXT, OFFSETS_OF_TEXT, at_offset, encodable, offset_text, some_of

TEXT = "verdict\n───────\n24–25 … é 漢"


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", TEXT),
        (None, TEXT),
        ("iso-8859-1", "verdict\n-------\n24-25 ... é \\u6f22"),
        ("ascii", "verdict\n-------\n24-25 ... \\xe9 \\u6f22"),
        ("no-such-encoding", "verdict\n-------\n24-25 ... \\xe9 \\u6f22"),
    ],
)
def test_rules_stay_rules_and_ids_stay_readable_in_any_encoding(encoding, shown):
    told = encodable(TEXT, encoding)
    assert told == shown
    if encoding not in (None, "no-such-encoding"):
        assert told.encode(encoding).decode(encoding) == shown


def test_a_lone_surrogate_harms_nothing_else():
    assert encodable("─ \ud800", "utf-8") == "- \\ud800"


def test_a_record_of_console_text_has_its_number_and_no_made_up_offset():
    third = FIRST_OF_TEXT + 3 * OFFSETS_OF_TEXT
    assert (at_offset(third), offset_text(third)) == ("record 3 of its text", "record 3 of its text")
    assert (at_offset(0), offset_text(24)) == ("@0", "offset 24")


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a, b"),
        (["a", "b", "c"], "a, b and 1 more"),
        ([*"abcde"], "a, b and 3 more"),
    ],
)
def test_the_first_names_are_told_with_how_many_more_there_are(named, says):
    assert some_of(named, 2) == says
