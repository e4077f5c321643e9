"""Text and files as people have them, each with its source (tests/data/*/case.md)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from txnlib.errors import UnreadableInputError
from txnlib.readers.capture import FileKind, list_capture
from txnlib.readers.table_readers import READ_TABLES, read_tables

DATA: Final = Path(__file__).parents[1] / "data"
#: Folders with the same log of a partition and of its coordinator.
TEXTS: Final = sorted(
    path
    for case in ("p01*", "p02*", "p04*", "p05*", "p07*", "p11*")
    for path in DATA.glob(f"{case}/*")
    if path.is_dir()
)


def read(folder: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {table: [] for table in READ_TABLES}
    for file in list_capture([str(folder)]).files:
        for table, batch in read_tables(READ_TABLES, file):
            found[table] += batch.to_pylist()
    return found


@pytest.mark.parametrize("folder", TEXTS, ids=lambda path: path.name)
def test_a_text_is_read_whole_however_it_came(folder: Path) -> None:
    found = read(folder)

    batches = Counter((row["topic"], row["partition"]) for row in found["record_batches"])
    assert batches == {("invoices", 0): 9, ("__transaction_state", 33): 7}
    assert sum(row["control_type"] is not None for row in found["record_batches"]) == 4
    assert {row["partition"] for row in found["transaction_log"]} == {33}
    assert len(found["transaction_log"]) == 7
    of_partitions = [row for row in found["segments"] if row["topic"] is not None]
    assert [row["tail"] for row in of_partitions] == ["CLEAN", "CLEAN"]
    reasons = {bad["reason"].partition(":")[0] for row in found["segments"] for bad in row["unreadable"]}
    assert reasons <= {"NOT_DUMP_TEXT", "LINE_FORM"}


def test_a_prefix_is_told_in_one_row_and_white_space_in_none() -> None:
    prefixed = read(DATA / "p02-prefixed-lines" / "m6-compose-all")["segments"]
    told = [bad["sample"] for row in prefixed for bad in row["unreadable"]]
    assert told == ["prefix of each line: kafka-1  | "] * 2, "of two texts"
    indented = read(DATA / "p11-indented-dump" / "m6-sp4-all")["segments"]
    assert [bad for row in indented for bad in row["unreadable"]] == []


#: The same log of `pay-0` and its coordinator, as it came.
WRAPPED: Final = ("t05-ansible-stdout", "t07-nbsp", "t10-bz2", "t11-xz")


@pytest.mark.parametrize("name", WRAPPED)
def test_a_wrapped_text_is_read_whole(name: str) -> None:
    found = read(DATA / "q10-refused-without-a-reason" / name)

    batches = Counter((row["topic"], row["partition"]) for row in found["record_batches"])
    assert batches == {("pay", 0): 9, ("__transaction_state", 18): 5}
    assert {row["partition"] for row in found["transaction_log"]} == {18}
    assert {row["tail"] for row in found["segments"]} == {"CLEAN"}
    reasons = {bad["reason"].partition(":")[0] for row in found["segments"] for bad in row["unreadable"]}
    assert reasons <= {"LINE_FORM"}


def test_console_records_in_one_array_are_read_whole() -> None:
    found = read(DATA / "q16-console-text" / "u12-console-jq-slurp")

    records = [(row["transactional_id"], row["producer_id"]) for row in found["console_log"]]
    assert ("settle-svc-1", 4242) in records
    (segment,) = [row for row in found["segments"] if row["kind"] == "console"]
    assert (segment["batches"], segment["tail"], segment["unreadable"]) == (len(records), "CLEAN", [])


def test_a_gzipped_segment_is_read() -> None:
    found = read(DATA / "p13-odd-files" / "r27c-raw-gz")

    assert {(row["topic"], row["partition"]) for row in found["record_batches"]} == {("inv", 0)}
    (segment,) = found["segments"]
    assert (segment["kind"], segment["batches"], segment["bytes"], segment["unreadable"]) == ("raw", 7, 538, [])


def test_files_that_brokers_leave_beside_a_segment_are_no_damage() -> None:
    found = read(DATA / "p13-odd-files" / "E-odd-files")

    assert [row["unreadable"] for row in found["segments"]] == [[], []]
    kinds = {file.kind for file in list_capture([str(DATA / "p13-odd-files" / "E-odd-files")]).files}
    assert kinds == {FileKind.SEGMENT}


def test_a_segment_above_the_largest_one_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    with (tmp_path / "orders-0" / f"{0:020}.log").open("wb") as stream:
        stream.truncate(1 << 31)

    with pytest.raises(UnreadableInputError, match="TOO_LARGE: a segment has at most 2147483647 bytes"):
        list_capture([str(tmp_path)])


@pytest.mark.parametrize("ending", ["txt", "log.txt"])
def test_zero_bytes_end_a_text(tmp_path: Path, ending: str) -> None:
    text = (DATA / "p04-trailing-space" / "m7-trailing-space" / "p.txt").read_bytes()
    with (tmp_path / f"dump.{ending}").open("wb") as stream:
        stream.write(text)
        stream.truncate(1 << 34)

    found = read(tmp_path)

    assert len(found["record_batches"]) == 9
    reasons = [bad["reason"].partition(":")[0] for row in found["segments"] for bad in row["unreadable"]]
    assert reasons == ["NOT_DUMP_TEXT", "ZERO_BYTES"]
    assert [row["tail"] for row in found["segments"]] == ["CORRUPT"]


@pytest.mark.parametrize("folder", ["INC-48213", "notes", "orders-7"])
def test_the_folder_names_the_partition_only_if_the_text_is_named_like_a_segment(tmp_path: Path, folder: str) -> None:
    text = (DATA / "p04-trailing-space" / "m7-trailing-space" / "p.txt").read_bytes()
    relative = text.replace(b"/var/lib/kafka/data/invoices-0/", b"")
    (tmp_path / folder).mkdir()
    for name in ("dump.txt", f"{0:020}.log.txt"):
        path = tmp_path / folder / name
        path.write_bytes(relative)
        places = {(row["topic"], row["partition"]) for row in read(tmp_path)["record_batches"]}
        assert places == ({("orders", 7)} if folder == "orders-7" and name != "dump.txt" else set())
        path.unlink()
