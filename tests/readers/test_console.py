"""The text of a console consumer against the log that it read."""

from __future__ import annotations

import gzip
from collections import defaultdict
from pathlib import Path
from typing import Any

import cramjam
import pytest

from tests.support.consoles import FILES, Record, as_json, as_line, console_text, tombstone
from tests.support.dumps import dumped, lines_in
from tests.support.samples import START, sample
from tests.support.segments import opened, read_rows, rows_of_file
from txnlib.core.text.console import read_console_text
from txnlib.errors import UnreadableInputError
from txnlib.readers import text_rows
from txnlib.readers.arrow_schemas import one_pass
from txnlib.readers.capture import FileKind, list_capture

TOPIC = "__transaction_state"
#: The formatter prints none of these; `position` is an ordinal.
PLACE = (
    "partition",
    "source",
    "segment_base_offset",
    "position",
    "offset",
    "timestamp_ms",
    "coordinator_epoch",
    "unknown_tags",
)
ONLY_JSON = (
    *("value_version", "previous_producer_id", "next_producer_id"),
    *("next_producer_epoch", "last_producer_epoch", "client_transaction_version"),
)
#: text -> (bytes of the log, columns that its formatter does not print)
SAMPLES = {
    "3.8-txnstate-scala212": ("txnstate-v0.log", ONLY_JSON),
    "3.8-txnstate-scala213": ("txnstate-v0.log", ONLY_JSON),
    "3.9-txnstate": ("txnstate-v0.log", ()),
    "4.0-txnstate": ("txnstate-v1-broker40.log", ()),
    "4.4-txnstate": ("txnstate-v1-broker43.log", ()),
}
TOOLS = ["2.8.2", "3.4.1", "3.7.2", "3.9.1", "4.0.1", "4.1.1", "4.2.1", "4.3.0"]
HOSTILE = {
    "real-3.9.1-hostile-old-formatter": ("hostile-3.9", ONLY_JSON),
    "real-3.9.1-hostile": ("hostile-3.9", ()),
    "real-4.3.0-hostile": ("hostile-4.3", ()),
}


def rows(table: str, text: bytes, partition: int | None = None, chunk: int = 1 << 20) -> list[dict[str, Any]]:
    lines = lines_in(text, chunk)
    read = (
        text_rows.console_log_rows("text:1", partition)
        if table == "transaction_log"
        else text_rows.ConsoleSegmentRow(lines, "text:1", "console.txt", partition)
    )
    return [row for _, batch in one_pass(read_console_text(lines), {"": read}) for row in batch.to_pylist()]


def raw_rows(content: bytes) -> list[dict[str, Any]]:
    return read_rows("transaction_log", opened(content, TOPIC))


def as_printed(row: dict[str, Any], not_printed: tuple[str, ...] = ()) -> dict[str, Any]:
    """What a text can tell of a record; old formatters list partitions in the order of a hash set."""
    partitions = row["partitions"]
    ordered = partitions and sorted(partitions, key=lambda tp: (tp["topic"], tp["partition"]))
    told = {name: value for name, value in row.items() if name not in PLACE}
    return told | {"partitions": ordered} | dict.fromkeys(not_printed)


def by_id(rows_of_log: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Between partitions, a console consumer has no order."""
    found = defaultdict(list)
    for row in rows_of_log:
        found[row["transactional_id"]].append(row)
    return dict(found)


def log_rows(capture: Path) -> list[dict[str, Any]]:
    logs = sorted(capture.glob(f"brokers/*/{TOPIC}-*/*.log"))
    assert logs
    return [row for log in logs for row in raw_rows(log.read_bytes())]


@pytest.mark.parametrize("name", SAMPLES)
def test_every_generation_tells_the_same_of_a_coordinator(name: str) -> None:
    content, not_printed = SAMPLES[name]

    actual = rows("transaction_log", console_text(name))

    assert [as_printed(row) for row in actual] == [as_printed(row, not_printed) for row in raw_rows(sample(content))]
    assert [row["position"] for row in actual] == list(range(len(actual)))
    assert {
        tuple(row[column] for column in ("partition", "offset", "timestamp_ms", "coordinator_epoch")) for row in actual
    } == {(None, None, None, None)}
    assert {(row["topic"], row["source"]) for row in actual} == {(TOPIC, "text:1")}


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_tells_the_same_of_a_cluster(tool: str, captures: Path) -> None:
    capture = captures / "tools-3.7"
    not_printed = ONLY_JSON if tool < "4" else ()

    actual = rows("transaction_log", (capture / "dumps" / tool / "console.txt").read_bytes())

    expected = by_id([as_printed(row, not_printed) for row in log_rows(capture)])
    told = by_id([as_printed(row) for row in actual])
    assert told.keys() == expected.keys()
    for transactional_id, found in told.items():
        # It ran after the log was copied: in between, the log was compacted and ids expired.
        expired_since = found[-1]["is_tombstone"] and not expected[transactional_id][-1]["is_tombstone"]
        left = found[:-1] if expired_since else found
        assert left == expected[transactional_id][-len(left) :]
    assert [row["transactional_id"] for row in actual if row["is_tombstone"]] == [
        "brief",
        "writer a,b",
        "schreiber-ä",
        "batch-7",
    ]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_ids_of_a_cluster_are_told_as_they_are(name: str, captures: Path) -> None:
    capture, not_printed = HOSTILE[name]

    actual = rows("transaction_log", console_text(name))

    expected = [as_printed(row, not_printed) for row in log_rows(captures / capture)]
    assert by_id([as_printed(row) for row in actual]) == by_id(expected)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_text_is_one_segment(name: str) -> None:
    text = console_text(name)

    (found,) = rows("segments", text, partition=7)

    newest = max(row["last_update_ms"] or 0 for row in raw_rows(sample(SAMPLES[name][0])))
    assert newest > START
    none = ("segment_base_offset", "first_offset", "end_offset", "last_gap_offset", "landmarks", "version", "parts")
    assert found == dict.fromkeys(none) | {
        "topic": TOPIC,
        "partition": 7,
        "source": "text:1",
        "path": "console.txt",
        "kind": "console",
        "bytes": len(text),
        "batches": len(rows("transaction_log", text)),
        "tail": "CLEAN",
        "is_decoded": True,
        "newest_broker_ms": newest,
        "unreadable": [],
    }


def test_a_cut_text_says_so() -> None:
    text = console_text("4.0-txnstate")[:-9]

    (found,) = rows("segments", text)

    start = text.rindex(b'{"key":')
    assert (found["tail"], found["batches"]) == ("TORN", 7)
    assert found["unreadable"] == [
        {
            "position": start,
            "length": len(text) - start,
            "reason": "CUT_LINE",
            "sample": text[start:].decode(),
            "next_offset": None,
        }
    ]


def compressed(text: bytes, name: str) -> bytes:
    if name.endswith(".gz"):
        return gzip.compress(text)
    return bytes(cramjam.zstd.compress(text)) if name.endswith(".zst") else text


@pytest.mark.parametrize("path", sorted(FILES.glob("*.txt")), ids=lambda path: path.stem)
@pytest.mark.parametrize(
    "name",
    ["anything", "console.txt.gz", "console.zst", f"{TOPIC}-12.txt", f"{TOPIC}-3.of.broker.1.json.gz", f"{TOPIC}-x"],
)
def test_content_decides_whatever_a_file_is_called(path: Path, name: str, tmp_path: Path) -> None:
    text = path.read_bytes()
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / name).write_bytes(compressed(text, name))

    (file,) = list_capture([str(tmp_path)]).files

    partition = 12 if "-12" in name else 3 if "-3" in name else None
    assert (file.kind, file.source, file.topic, file.partition) == (FileKind.CONSOLE, "console:1", TOPIC, partition)
    for table, holds in {"console_log": "transaction_log", "segments": "segments"}.items():
        place = {"source": "text:1"} | ({"path": "console.txt"} if table == "segments" else {})
        actual = [row | place for row in rows_of_file(table, file)]
        assert actual == rows(holds, text, partition)
    assert rows_of_file("record_batches", file) == []


@pytest.mark.parametrize("print_record", [as_line, as_json])
def test_imitated_dump_lines_make_no_dump(print_record, tmp_path: Path) -> None:
    dump_lines = dumped("3.9-partition").decode()
    (tmp_path / "console.txt").write_bytes(print_record(Record(f"a\n{dump_lines}")) + print_record(Record("b")))

    (file,) = list_capture([str(tmp_path)]).files

    assert file.kind is FileKind.CONSOLE


@pytest.mark.parametrize("imitation", [as_line(Record("a")), as_json(Record("a")), as_json(tombstone("a")) * 2])
def test_imitated_console_lines_in_a_dump_make_no_console(imitation: bytes, tmp_path: Path) -> None:
    head, label, rest = dumped("3.9-partition").partition(b" payload: ")
    (tmp_path / "dump.txt").write_bytes(head + label + b"x\n" + imitation + rest)

    (file,) = list_capture([str(tmp_path)]).files

    assert file.kind is FileKind.DUMP


def test_a_file_with_zero_bytes_is_no_console_text(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(b"\0" + as_line(Record("a")))

    with pytest.raises(UnreadableInputError, match="kafka-console-consumer"):
        list_capture([str(tmp_path)])
