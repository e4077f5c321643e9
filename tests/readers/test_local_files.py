"""Captures with pipes, devices, circular links, deep folders and odd names."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.log_bytes import to_bytes
from tests.support.log_notation import T
from txnlib.errors import UnreadableInputError
from txnlib.readers import arrow_schemas
from txnlib.readers.broker_files import MOST_BYTES
from txnlib.readers.capture import Capture, FileKind, list_capture
from txnlib.readers.storage import files
from txnlib.readers.storage.local_files import MAY_NOT, native, shown
from txnlib.readers.table_readers import read_table

SEGMENT = f"{0:020}.log"
#: More than Python lets functions call each other.
DEPTH = sys.getrecursionlimit() + 50
SECRET = b"root:$6$secret"


def segment_in(folder: Path, base_offset: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{base_offset:020}.log"
    path.write_bytes(to_bytes(T(1, 0, 0, at=base_offset)))
    return path


@pytest.fixture
def capture(tmp_path) -> Path:
    """A good segment, next to which odd things may lie."""
    segment_in(tmp_path / "capture" / "1" / "orders-0")
    return tmp_path / "capture"


def rows(table: str, listed: Capture) -> list[dict[str, Any]]:
    return [row for file in listed.files for batch in read_table(table, file) for row in batch.to_pylist()]


def quarantine(listed: Capture) -> dict[str, str]:
    """Path below the input -> reason; and no table raises."""
    for table in arrow_schemas.TABLES:
        rows(table, listed)
    return {
        os.path.relpath(row["path"], listed.inputs[0]): stretch["reason"]
        for row in rows("segments", listed)
        for stretch in row["unreadable"]
    }


def batches_of(listed: Capture) -> list[tuple[str, int, str, int]]:
    return [
        (row["topic"], row["partition"], row["source"], row["base_offset"]) for row in rows("record_batches", listed)
    ]


# ---- What is not there


@pytest.mark.parametrize("name", ["index", "timeindex", "txnindex"])
def test_a_segment_whose_index_alone_was_copied_is_named_and_lowers_the_coverage(capture, name):
    folder = capture / "1" / "orders-0"
    segment_in(folder, 9)
    for base_offset in (0, 5, 9):
        (folder / f"{base_offset:020}.{name}").touch()
    (capture / "1" / "link").symlink_to("orders-0")
    deleted = capture / "1" / f"orders-0.{'0' * 32}-delete"
    deleted.mkdir()
    (deleted / f"{7:020}.{name}").touch()
    listed = list_capture([str(capture)])
    assert quarantine(listed) == {
        f"1/orders-0/{5:020}.log": "MISSING_SEGMENT: its index is here, and it is not: copy it, too"
    }
    (row,) = [row for row in rows("segments", listed) if row["unreadable"]]
    assert (row["topic"], row["source"], row["segment_base_offset"], row["kind"]) == ("orders", "raw:1", 5, "raw")


# ---- What is no file


@pytest.mark.parametrize(
    "name", [f"{9:020}.log", "leader-epoch-checkpoint", f"{9:020}.snapshot", "text", "x.index", "capture.json"]
)
def test_a_pipe_and_a_socket_are_named_and_never_opened(capture, name, monkeypatch):
    folder = capture / "1" / "orders-0"
    monkeypatch.chdir(folder)  # names of sockets are short
    os.mkfifo(name)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s")
        listed = list_capture([str(capture)])
    assert quarantine(listed) == {
        f"1/orders-0/{name}": "NOT_A_REGULAR_FILE: it is a FIFO",
        "1/orders-0/s": "NOT_A_REGULAR_FILE: it is a socket",
    }
    assert batches_of(listed) == [("orders", 0, "raw:1", 0)]


def test_a_pipe_that_takes_the_place_of_a_file_is_not_waited_for(capture):
    listed = list_capture([str(capture)])
    path = Path(listed.files[0].path)
    path.unlink()
    os.mkfifo(path)
    assert quarantine(listed) == {f"1/orders-0/{SEGMENT}": "CANNOT_OPEN: it is a FIFO"}


def test_a_pipe_is_no_input(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnreadableInputError, match="pipe: it is a FIFO"):
        list_capture([str(tmp_path / "pipe")])


# ---- Links


def test_links_in_circles_end_and_give_each_segment_once(capture):
    """2^40 paths lead through forty folders of which each has two links to the next."""
    for number in range(40):
        folder = capture / f"d{number}"
        folder.mkdir()
        for name in ("a", "b"):
            (folder / name).symlink_to(f"../d{(number + 1) % 40}")
    (capture / "1" / "orders-0" / "again").symlink_to(".")
    (capture / "1" / "orders-0-again").symlink_to("orders-0")
    (capture / "1" / "orders-1").symlink_to("orders-0")
    (capture / "1" / "orders-0" / f"{5:020}.log").symlink_to(SEGMENT)
    listed = list_capture([str(capture)])
    assert batches_of(listed) == [("orders", 0, "raw:1", 0)]
    assert quarantine(listed) == {}


def test_a_link_to_itself_and_a_segment_that_is_a_link_to_nowhere_are_named(capture):
    (capture / "circle").symlink_to("circle")
    (capture / "1" / "orders-0" / f"{9:020}.log").symlink_to("gone")
    assert quarantine(list_capture([str(capture)])) == {
        "circle": "CANNOT_OPEN: Too many levels of symbolic links",
        f"1/orders-0/{9:020}.log": "CANNOT_OPEN: No such file or directory",
    }


def test_what_only_a_link_names_as_kafka_does_is_read_by_the_links_name(tmp_path):
    """Stores by content keep files under names of their own."""
    capture = tmp_path / "capture"
    segment_in(capture / "store" / "xyz")
    os.rename(segment_in(capture / "store" / "blobs", 7), capture / "store" / "blobs" / "cafe")
    (capture / "1").mkdir()
    (capture / "1" / "orders-0").symlink_to("../store/xyz")
    (capture / "1" / "orders-1").mkdir()
    (capture / "1" / "orders-1" / f"{7:020}.log").symlink_to("../../store/blobs/cafe")
    listed = list_capture([str(capture)])
    assert batches_of(listed) == [("orders", 0, "raw:1", 0), ("orders", 1, "raw:1", 7)]
    assert quarantine(listed) == {}


def test_the_input_may_be_a_link_and_be_given_twice(capture, tmp_path):
    (tmp_path / "link").symlink_to(capture)
    assert batches_of(list_capture([str(tmp_path / "link")])) == [("orders", 0, "raw:1", 0)]
    assert batches_of(list_capture([str(capture), str(tmp_path / "link")])) == [("orders", 0, "raw:capture/1", 0)]


def test_hard_links_are_copies(capture):
    """scripts/capture.sh --link makes them."""
    (capture / "1" / "first" / "orders-0").mkdir(parents=True)
    (capture / "1" / "first" / "orders-0" / SEGMENT).hardlink_to(capture / "1" / "orders-0" / SEGMENT)
    assert {source for _, _, source, _ in batches_of(list_capture([str(capture)]))} == {"raw:1", "raw:1/first"}


@pytest.fixture
def outside(tmp_path) -> Path:
    """A broker's folder, and a file that is nobody's business."""
    segment_in(tmp_path / "outside" / "2" / "orders-1", 3)
    (tmp_path / "outside" / "secret").write_bytes(SECRET)
    return tmp_path / "outside"


@pytest.fixture
def linked(capture, outside) -> Path:
    (capture / "2").symlink_to(outside / "2")
    (capture / "1" / "orders-1").symlink_to(outside / "2" / "orders-1")
    (capture / "1" / "orders-0" / f"{3:020}.log").symlink_to(outside / "2" / "orders-1" / f"{3:020}.log")
    (capture / "1" / "orders-0" / "notes").symlink_to(outside / "secret")
    (capture / "1" / "orders-0" / f"{9:020}.log").symlink_to(outside / "secret")
    (capture / "1" / "replication-offset-checkpoint").symlink_to("/dev/zero")
    return capture


def test_a_link_out_of_the_input_is_named_with_its_partition_and_not_followed(linked, outside):
    listed = list_capture([str(linked)])
    assert batches_of(listed) == [("orders", 0, "raw:1", 0)]
    reason = "LINK_OUT_OF_INPUT: leads to {}, which is read with --follow-links only"
    assert quarantine(listed) == {
        "2": reason.format(outside / "2"),
        "1/orders-1": reason.format(outside / "2" / "orders-1"),
        f"1/orders-0/{3:020}.log": reason.format(outside / "2" / "orders-1" / f"{3:020}.log"),
        "1/orders-0/notes": reason.format(outside / "secret"),
        f"1/orders-0/{9:020}.log": reason.format(outside / "secret"),
        "1/replication-offset-checkpoint": reason.format("/dev/zero"),
    }
    told = [row for row in rows("segments", listed) if row["kind"] == "raw"]
    assert {
        (row["topic"], row["partition"], row["source"], row["segment_base_offset"], row["tail"]) for row in told
    } == {
        ("orders", 0, "raw:1", 0, "CLEAN"),
        ("orders", 0, "raw:1", 3, "UNOPENED"),
        ("orders", 0, "raw:1", 9, "UNOPENED"),
        ("orders", 1, "raw:1", None, "UNOPENED"),
    }


def test_links_that_are_followed_give_each_segment_once_and_no_sample(linked):
    listed = list_capture([str(linked)], follow_links=True)
    assert sorted(batches_of(listed)) == [("orders", 0, "raw:1", 0), ("orders", 1, "raw:1", 3)]
    told = quarantine(listed)
    assert told["1/replication-offset-checkpoint"] == "NOT_A_REGULAR_FILE: it is a character device"
    assert told.keys() == {"1/replication-offset-checkpoint", f"1/orders-0/{9:020}.log"}
    assert SECRET[:4].hex() not in str(rows("segments", listed))


def test_an_input_with_nothing_but_links_out_of_it_says_what_to_do(tmp_path, outside):
    (tmp_path / "capture").mkdir()
    (tmp_path / "capture" / "2").symlink_to(outside / "2")
    with pytest.raises(UnreadableInputError, match=r"no Kafka log among its 1 files .*follow_links=True"):
        list_capture([str(tmp_path / "capture")])


# ---- Depth and size


@pytest.fixture
def deep(capture) -> Iterator[Path]:
    """Folders below which lies a segment, and below that folders until no path is that long. Made, and removed, from
    inside."""
    here = os.open(capture, os.O_RDONLY)
    for name in [*["d"] * DEPTH, *["d" * 200] * 12]:
        if name != "d":
            os.mkdir("orders-1", dir_fd=here)
            log = os.open(f"orders-1/{SEGMENT}", os.O_WRONLY | os.O_CREAT, dir_fd=here)
            os.write(log, to_bytes(T(1, 0, 0, at=0)))
            os.close(log)
        os.mkdir(name, dir_fd=here)
        inner = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    yield capture
    subprocess.run(["rm", "-rf", capture], check=True)


def test_folders_deeper_than_calls_and_paths_are_read_as_far_as_they_can_be_opened(deep):
    listed = list_capture([str(deep)])
    assert {(topic, partition) for topic, partition, _, _ in batches_of(listed)} == {("orders", 0), ("orders", 1)}
    assert list(quarantine(listed).values()) == ["CANNOT_OPEN: File name too long"]


@pytest.mark.parametrize(
    "name",
    [
        "replication-offset-checkpoint",
        f"orders-0/{0:020}.snapshot",
        f"orders-0/{0:020}.txnindex",
        "orders-0/leader-epoch-checkpoint",
    ],
)
def test_a_helper_file_has_a_size_that_it_may_have(capture, name):
    with (capture / "1" / name).open("wb") as stream:
        stream.truncate(1 << 40)
    listed = list_capture([str(capture)])
    assert quarantine(listed) == {f"1/{name}": f"CANNOT_OPEN: it has more than {MOST_BYTES} bytes"}


# ---- Names


@pytest.mark.parametrize(
    "name", ["orders-0", "gr\u00fc\u00dfe", "a\udcffb", "\\xff", "\\x5cxff\udc80", "x\\x", "\\xzz\\", "\udcc3("]
)
def test_any_name_is_shown_in_utf_8_and_found_again(name):
    assert native(shown(name)) == name
    shown(name).encode()


def test_names_that_are_no_utf_8_are_shown_escaped_and_read(tmp_path):
    root = os.fsencode(tmp_path) + b"/\xe9t\xe9"
    segment_in(Path(os.fsdecode(root)) / "b\udcff" / "orders-0")
    os.mkfifo(root + b"/\xff")
    (Path(os.fsdecode(root)) / "link\udcff").symlink_to("/nowhere\udcff")
    listed = list_capture([os.fsdecode(root)])
    assert listed.inputs == (f"{tmp_path}/\\xe9t\\xe9",)
    assert batches_of(listed) == [("orders", 0, "raw:b\\xff", 0)]
    assert quarantine(listed) == {
        "\\xff": "NOT_A_REGULAR_FILE: it is a FIFO",
        "link\\xff": "CANNOT_OPEN: No such file or directory",
    }
    for file in listed.files:
        file.path.encode()
    assert files.read_range(listed.of_kind(FileKind.SEGMENT)[0].path, 0, 8) == bytes(8)


def test_a_missing_input_that_is_no_utf_8_can_be_printed(tmp_path):
    with pytest.raises(UnreadableInputError) as caught:
        list_capture([f"{tmp_path}/\udcff"])
    assert str(caught.value).encode().startswith(f"{tmp_path}/\\xff: no such".encode())


def test_a_name_that_no_column_holds_is_refused_with_its_partition(capture):
    too_high = segment_in(capture / "1" / "orders-2147483648")
    (capture / "1" / "orders-2147483648" / "leader-epoch-checkpoint").write_bytes(b"0\n1\n0 0\n")
    above = capture / "1" / "orders-0" / "99999999999999999999.log"
    above.write_bytes(too_high.read_bytes())
    (capture / "1" / f"orders-{'9' * 200}").mkdir()
    segment_in(capture / "1" / f"orders-{'9' * 200}")
    (capture / "1" / "orders-\u0663").mkdir()
    segment_in(capture / "1" / "orders-2147483647", 9)
    listed = list_capture([str(capture)])
    assert sorted(batches_of(listed)) == [("orders", 0, "raw:1", 0), ("orders", 2**31 - 1, "raw:1", 9)]
    told = quarantine(listed)
    assert told.pop("1/orders-0/99999999999999999999.log").startswith("NAME_OUT_OF_RANGE: 99999999999999999999 ")
    assert {reason.partition(":")[0] for reason in told.values()} == {"NAME_OUT_OF_RANGE"}
    assert {path.partition("/")[2].partition("/")[0] for path in told} == {"orders-2147483648", f"orders-{'9' * 200}"}
    refused = [row for row in rows("segments", listed) if row["path"] == str(above)]
    assert [(row["topic"], row["partition"], row["segment_base_offset"], row["kind"]) for row in refused] == [
        ("orders", 0, None, "raw")
    ]


def test_a_folder_that_may_not_be_listed_is_named(capture, monkeypatch):
    segment_in(capture / "1" / "orders-3")
    scandir = os.scandir

    def refuse(path: str) -> Any:
        if str(path).endswith("orders-3"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr("txnlib.readers.storage.local_files.os.scandir", refuse)
    listed = list_capture([str(capture)])
    assert quarantine(listed) == {"1/orders-3": MAY_NOT}
    assert [(row["topic"], row["partition"]) for row in rows("segments", listed)] == [("orders", 0), ("orders", 3)]
