"""One log through every tool and option, against its raw segments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.segments import rows_of_file
from txnlib.readers.capture import list_capture

TOOLS = ("2.8.2", "3.4.1", "3.7.2", "3.9.1", "4.0.1", "4.1.1", "4.2.1", "4.3.0")
KEYS = {"record_batches": ("topic", "partition", "base_offset"), "transaction_log": ("partition", "offset")}
#: Copies differ in these.
NOT_COMPARED = ("source", "path")
MARKER = frozenset({"control_type", "coordinator_epoch"})
#: No tool prints tags that it does not know; up to 4.0 the decoder prints neither version nor start.
OLD_DECODER, DECODER = frozenset({"start_ms", "value_version", "unknown_tags"}), frozenset({"unknown_tags"})
#: options -> columns not printed of batches, and of coordinator records (None: no decoder, so no records) beyond the
#: decoder's
OPTIONS: dict[str, tuple[frozenset[str], frozenset[str] | None]] = {
    "shallow": (MARKER, None),
    "deep": (frozenset(), frozenset()),
    "print-data-log": (frozenset(), None),
    "skip-record-metadata": (MARKER, frozenset({"timestamp_ms"})),
}


def rows(table: str, folder: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    found = {}
    for file in list_capture([str(folder)]).files:
        for row in rows_of_file(table, file):
            key = tuple(row[name] for name in KEYS[table])
            found[key] = {n: value for n, value in row.items() if n not in NOT_COMPARED}
    return found


def without(found: dict[tuple[Any, ...], dict[str, Any]], names: frozenset[str]) -> Any:
    return {key: row | dict.fromkeys(names) for key, row in found.items()}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("tool", TOOLS)
def test_every_generation_tells_what_the_raw_segments_tell(tool: str, options: str, captures: Path) -> None:
    raw, text = captures / "tools-3.7" / "brokers", captures / "tools-3.7" / "dumps" / tool / options
    of_batches, of_records = OPTIONS[options]

    assert rows("record_batches", text) == without(rows("record_batches", raw), of_batches)
    decoder = OLD_DECODER if tool < "4.1" else DECODER
    expected = {} if of_records is None else without(rows("transaction_log", raw), decoder | of_records)
    printed = rows("transaction_log", text)
    # A record without metadata has the time of its batch, if that holds no other.
    times = {key: row["timestamp_ms"] for key, row in printed.items() if row["timestamp_ms"] is not None}
    assert without(printed, of_records or frozenset()) == expected
    assert times == {key: row["timestamp_ms"] for key, row in rows("transaction_log", raw).items() if key in times}
