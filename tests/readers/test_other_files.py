"""Files that no reader knows: each is named with what it is and what to do, or has nothing of Kafka in it."""

from __future__ import annotations

import bz2
import codecs
import io
import lzma
import tarfile
import zipfile
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.dumps import Batch, print_dump
from tests.support.log_bytes import to_bytes
from tests.support.log_notation import T
from tests.support.segments import rows_of_file
from txnlib.core.coverage.unread import NOTHING_LOST
from txnlib.errors import UnreadableInputError
from txnlib.readers.capture import list_capture

DATA: Final = Path(__file__).parents[1] / "data"
REFUSED: Final = DATA / "q10-refused-without-a-reason"
SEGMENT: Final = f"{0:020}.log"
OF_REDPANDA: Final = "data/kafka/pay/0_27/0-1-v1.log"
RAW: Final = to_bytes(T(1, 0, 0, at=0))
DUMP: Final = print_dump(Batch(), Batch())


def tarred() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a"))
    return packed.getvalue()


def zipped() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", DUMP)
    return packed.getvalue()


#: Path of a file -> its content, how its reason begins, and what it says to do.
NAMED: Final[dict[str, tuple[bytes, str, str]]] = {
    f"copied/{SEGMENT}": (RAW, "NO_PARTITION_FOLDER", "<topic>-<partition>"),
    "segment of orders-0": (RAW, "NO_PARTITION_FOLDER", "<topic>-<partition>"),
    f"copied/{0:020}.snapshot": (b"\0" * 20, "NO_PARTITION_FOLDER", "<topic>-<partition>"),
    f"orders-1/{SEGMENT}.xz": (lzma.compress(RAW), "PACKED", "unpack"),
    f"orders-1/{SEGMENT}.bz2": (bz2.compress(RAW), "PACKED", "unpack"),
    "dump": (bz2.compress(DUMP), "PACKED", "call it dump.bz2"),
    "dump.txt": (lzma.compress(DUMP), "PACKED", "call it dump.txt.xz"),
    "dump.gz": (DUMP, "CANNOT_UNPACK", "copy it again"),
    "files": (tarred(), "ARCHIVE", "unpack"),
    "broker1.tar.gz": ((DATA / "p13-odd-files/r26b-tarball-only/broker1.tar.gz").read_bytes(), "ARCHIVE", "unpack it"),
    "files.dat": (zipped(), "ARCHIVE", "unpack"),
    "ticket.docx": (zipped(), "OTHER_FORMAT", "plain text"),
    "ticket.pdf": (b"%PDF-1.7\n" + bytes(range(128, 256)) * 9, "OTHER_FORMAT", "plain text"),
    "wide.txt": (DUMP.decode().encode("utf-16-le"), "UTF_16", "iconv"),
    "of PowerShell.txt": (DUMP.decode().encode("utf-16"), "UTF_16", "iconv -f UTF-16 -t UTF-8"),
    "marked.txt": (codecs.BOM_UTF16_BE + DUMP.decode().encode("utf-16-be"), "UTF_16", "iconv -f UTF-16 -t UTF-8"),
    "kcat.jsonl": ((REFUSED / "u01-kcat/state.jsonl").read_bytes(), "OTHER_FORMAT", "kcat"),
    "export.json": ((REFUSED / "u02-kafbat/messages.json").read_bytes(), "OTHER_FORMAT", "kafka-console-consumer.sh"),
    OF_REDPANDA: ((REFUSED / "u03-redpanda/redpanda" / OF_REDPANDA).read_bytes(), "OTHER_FORMAT", "Redpanda"),
    "odd.txt": (b"baseOffset is 0 and lastOffset is 3, I think\n", "OTHER_FORMAT", "a line for a line"),
    "late.txt": (b"Dear all,\n" * 10_000 + b"it printed baseOffset: 0 \n", "OTHER_FORMAT", "cut off"),
    "noise": (bytes(range(256)) * 9, "UNKNOWN_FORMAT", "by its first bytes"),
}
#: What has nothing that an audit needs.
OTHERS: Final[dict[str, bytes]] = {
    "README.md": b"# Copies of the logs, taken on Tuesday\n",
    "server.log": b"[2026-11-22] INFO [TransactionCoordinator id=1] Initialized with producerId 7\n" * 5_000,
    "empty": b"",
    "wide notes.txt": "no dump".encode("utf-16"),
}


def unreadable(folder: Path) -> dict[str, dict[str, Any]]:
    found = {}
    for file in list_capture([str(folder)]).files:
        for row in rows_of_file("segments", file):
            found |= {row["path"].removeprefix(f"{folder}/"): row for _ in row["unreadable"]}
    return found


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    (tmp_path / "1" / "pay-0").mkdir(parents=True)
    (tmp_path / "1" / "pay-0" / SEGMENT).write_bytes(RAW)
    return tmp_path


def put(folder: Path, name: str, content: bytes) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


@pytest.mark.parametrize("name", NAMED)
def test_a_file_is_named_with_what_it_is_and_what_to_do(capture: Path, name: str) -> None:
    content, code, remedy = NAMED[name]
    put(capture, name, content)

    (bad,) = unreadable(capture)[name]["unreadable"]

    assert (bad["reason"].partition(":")[0], remedy in bad["reason"]) == (code, True), bad["reason"]
    assert (bad["position"], bad["length"]) == (0, len(content))


@pytest.mark.parametrize("name", NAMED)
def test_alone_it_is_refused_with_the_same_words(tmp_path: Path, name: str) -> None:
    content, code, remedy = NAMED[name]
    put(tmp_path, name, content)
    with pytest.raises(UnreadableInputError) as refused:
        list_capture([str(tmp_path)])
    assert f"{tmp_path}/{name}: {code}" in str(refused.value)
    assert remedy in str(refused.value)


@pytest.mark.parametrize("name", OTHERS)
def test_a_file_without_a_word_of_the_tools_was_looked_through(capture: Path, name: str) -> None:
    put(capture, name, OTHERS[name])

    (bad,) = unreadable(capture)[name]["unreadable"]

    assert bad["reason"] == "NOT_A_KAFKA_FILE"
    assert bad["reason"].startswith(NOTHING_LOST)


@pytest.mark.parametrize("ending", ["xz", "bz2", "zst", "zip"])
def test_a_packed_segment_lowers_its_partition(capture: Path, ending: str) -> None:
    put(capture, f"1/pay-0/{7:020}.log.{ending}", lzma.compress(RAW))

    row = unreadable(capture)[f"1/pay-0/{7:020}.log.{ending}"]

    assert (row["topic"], row["partition"], row["kind"], row["tail"]) == ("pay", 0, "raw", "UNOPENED")
