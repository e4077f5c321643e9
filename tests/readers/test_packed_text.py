"""Compressed text that is cut or damaged: rows of its readable part."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import cramjam
import pytest

from tests.support.dumps import Batch, Record, print_dump, rows
from tests.support.segments import rows_of_file
from txnlib.readers import arrow_schemas
from txnlib.readers.capture import FileKind, list_capture

COUNT: Final = 1_500
#: Contents that do not pack well, as real ones.
_CHANCE: Final = random.Random(18)
TEXT: Final = print_dump(
    *(Batch((Record(value=_CHANCE.randbytes(40).hex().encode()),)) for _ in range(COUNT)), contents=True
)
CONSOLE: Final = b"".join(
    b'{"key":{"type":0,"data":{"transactionalId":"%b"}},"value":null}' % _CHANCE.randbytes(40).hex().encode()
    for _ in range(COUNT)
)


def zstd(text: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(text))


PACKERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    ".gz": gzip.compress,
    ".zst": zstd,
    ".bz2": partial(bz2.compress, compresslevel=1),
    ".xz": lzma.compress,
}


def cut(packed: bytes, share: float) -> bytes:
    return packed[: int(len(packed) * share)]


def overwrite(packed: bytes, share: float) -> bytes:
    at = int(len(packed) * share)
    return packed[:at] + bytes(byte ^ 0x55 for byte in packed[at : at + 64]) + packed[at + 64 :]


def tables_of(path: Path) -> dict[str, list[dict[str, Any]]]:
    (file,) = list_capture([str(path)]).files
    names = ("record_batches", "segments", "console_log")
    return {name: rows_of_file(name, file) for name in names}


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path, ending: str) -> None:
    """That line names the segment."""
    text = b"\xef\xbb\xbf" + print_dump(*(Batch(), Batch()))
    path = tmp_path / f"text{ending}"
    path.write_bytes(gzip.compress(text) if ending else text)
    (segment,) = tables_of(path)["segments"]
    assert (segment["segment_base_offset"], segment["batches"], segment["unreadable"]) == (0, 2, [])


@pytest.mark.parametrize("ending", PACKERS)
@pytest.mark.parametrize("damage", [cut, overwrite])
@pytest.mark.parametrize("share", [0.6, 0.9])
def test_what_stands_before_the_damage_counts(tmp_path: Path, ending: str, damage: Any, share: float) -> None:
    path = tmp_path / f"orders-0.txt{ending}"
    path.write_bytes(damage(PACKERS[ending](TEXT), share))

    tables = tables_of(path)

    (segment,) = tables["segments"]
    assert 0 < len(tables["record_batches"]) == segment["batches"] < COUNT
    offsets = [row["base_offset"] for row in tables["record_batches"]]
    # Damage may unpack to other text of the same length, before it shows.
    assert offsets == (list(range(segment["batches"])) if damage is cut else sorted(set(offsets)))
    assert len(tables["record_batches"]) > COUNT * (share - 0.5)
    if damage is overwrite and ending == ".zst":
        return  # frames without a checksum may unpack to other text, and nothing tells
    assert segment["tail"] == "CORRUPT"
    last = segment["unreadable"][-1]
    assert last["reason"].startswith("CANNOT_UNPACK: cut or damaged from this position in the unpacked text on")
    assert last["next_offset"] is None


@pytest.mark.parametrize("ending", PACKERS)
def test_tables_agree_where_there_are_more_rows_than_a_batch_holds(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_schemas, "ROWS_PER_BATCH", 100)
    path = tmp_path / f"orders-0.txt{ending}"
    path.write_bytes(cut(PACKERS[ending](TEXT), 0.8))

    tables = tables_of(path)

    assert len(tables["record_batches"]) == tables["segments"][0]["batches"] > 100


@pytest.mark.parametrize("ending", PACKERS)
def test_console_text_counts_up_to_the_damage(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"console.txt{ending}"
    path.write_bytes(cut(PACKERS[ending](CONSOLE), 0.8))

    tables = tables_of(path)

    (segment,) = tables["segments"]
    assert 0 < len(tables["console_log"]) == segment["batches"] < COUNT
    assert segment["tail"] == "CORRUPT"
    assert [each["reason"].partition(":")[0] for each in segment["unreadable"]] == ["CUT_LINE", "CANNOT_UNPACK"]


@pytest.mark.parametrize("ending", PACKERS)
def test_a_whole_file_is_read_as_its_text_is_and_has_nothing_wrong(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"orders-0.txt{ending}"
    half = len(TEXT) // 2
    path.write_bytes(PACKERS[ending](TEXT[:half]) + PACKERS[ending](TEXT[half:]))

    tables = tables_of(path)

    (segment,) = tables["segments"]
    assert (segment["batches"], segment["tail"], segment["unreadable"]) == (COUNT, "CLEAN", [])
    assert [row | {"source": "text:1"} for row in tables["record_batches"]] == rows("record_batches", TEXT)


@pytest.mark.parametrize("ending", PACKERS)
def test_what_cannot_be_unpacked_at_all_is_said_to_be_so_and_a_torn_file_is_read(tmp_path: Path, ending: str) -> None:
    (tmp_path / "orders-1.txt.gz").write_bytes(gzip.compress(print_dump(Batch()))[:-12])  # within its last line
    path = tmp_path / f"orders-0.txt{ending}"
    path.write_bytes(PACKERS[ending](TEXT)[:20])

    listed = list_capture([str(tmp_path)]).files
    segments = [row for file in listed for row in rows_of_file("segments", file)]

    assert [file.kind for file in listed] == [FileKind.UNKNOWN, FileKind.DUMP]
    said = [[each["reason"].partition(":")[0] for each in row["unreadable"]] for row in segments]
    assert said == [["CANNOT_UNPACK"], ["CUT_LINE", "CANNOT_UNPACK"]]
