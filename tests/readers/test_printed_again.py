"""The same dump twice in a text counts once, and is noted."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.support.dumps import COORDINATOR_PATH, PATH, Batch, Record, dumped, marker, print_dump, rows
from txnlib.core.copies import is_harmful
from txnlib.core.text.lines import UnreadableReason

TABLES: Final = ("record_batches", "transaction_log", "producer_snapshots")
LOG: Final = Batch((Record(), Record())), marker("COMMIT"), Batch((Record(),) * 3), marker("ABORT")
SECOND: Final = print_dump(Batch(), marker("COMMIT"), path=PATH.replace("0.log", "7.log"), start=(7, 0))
TEXTS: Final = {
    "shallow": print_dump(*LOG, deep=False),
    "deep": print_dump(*LOG),
    "contents": print_dump(*LOG, contents=True),
    "two segments": print_dump(*LOG) + SECOND,
    "coordinator": dumped("3.9-txnstate"),
    "coordinator JSON": dumped("4.3-txnstate"),
    "without metadata": dumped("real-3.4.1-skip-record-metadata-txnstate"),
    "snapshot": dumped("3.9-snapshot"),
}


def notes(text: bytes) -> list[dict[str, Any]]:
    return [
        each
        for row in rows("segments", text)
        for each in row["unreadable"]
        if each["reason"] == UnreadableReason.PRINTED_AGAIN
    ]


@pytest.mark.parametrize("name", TEXTS)
def test_the_same_dump_twice_counts_once(name: str) -> None:
    text = TEXTS[name]

    for table in TABLES:
        assert rows(table, text + text) == rows(table, text), table
    once, twice = rows("segments", text), rows("segments", text + text)
    assert [{**row, "unreadable": []} for row in twice] == [{**row, "unreadable": []} for row in once + once]


@pytest.mark.parametrize("name", [name for name in TEXTS if name != "snapshot"])
def test_a_note_says_what_is_printed_again(name: str) -> None:
    text = TEXTS[name]

    (first, *_others) = notes(text + text)

    assert notes(text) == []
    assert (first["position"], first["length"]) == (len(text), 0)
    assert not is_harmful(first["reason"])


def test_a_log_that_grew_between_two_dumps_gives_what_is_new() -> None:
    before, after = print_dump(*LOG[:2]), print_dump(*LOG)

    assert [row["base_offset"] for row in rows("record_batches", before + after)] == [0, 2, 3, 6]
    assert [row["offset_gap"] for row in rows("record_batches", before + after)][-2:] == [None, 0]


def test_what_is_not_equal_remains() -> None:
    """Two files of one path, as after a topic was deleted and created again."""
    other = print_dump(Batch((Record(), Record()), producer_id=5), *LOG[1:])

    found = [(row["base_offset"], row["producer_id"]) for row in rows("record_batches", TEXTS["deep"] + other)]

    assert found == [(0, 4001), (2, 4001), (3, 4001), (6, 4001), (0, 5)]


def test_what_one_print_has_lost_the_other_has() -> None:
    text = TEXTS["coordinator"]
    place = text.index(b"| offset: 3 ") + len("| offset: 3 CreateTime: ")

    once, twice = (rows("transaction_log", each) for each in (text, text[:place] + b"x" + text[place:] + text))

    assert sorted(row["offset"] for row in twice) == [row["offset"] for row in once]


def test_a_dump_without_its_first_line_counts_once_too() -> None:
    text = print_dump(*LOG, path=COORDINATOR_PATH)
    without = text[text.index(b"baseOffset") :]

    assert rows("record_batches", text + without) == rows("record_batches", text)
    assert [row["tail"] for row in rows("segments", text + without)] == ["CLEAN", "CLEAN"]
