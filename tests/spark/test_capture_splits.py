"""Laws of a capture split among tasks: the rows of the whole."""

from __future__ import annotations

from pathlib import Path

from tests.support.dumps import Batch, print_dump
from tests.support.frames import assert_same
from tests.support.log_bytes import segment
from tests.support.log_notation import TS, C, T
from txnlib.readers.capture import list_capture
from txnlib.spark.capture_source import read_capture
from txnlib.spark.capture_splits import split_large_files

FIRST = f"{0:020d}.log"
TABLES = ("record_batches", "segments")


def capture_in(folder: Path) -> list[str]:
    """A segment with a damaged place, a dump, which is never split, and a small segment."""
    log = bytearray(segment([*(T(1, 0, n, at=n, ts=TS + n) for n in range(900)), C(1, 0, 15, at=900, ts=TS + 400)]))
    log[9_000] ^= 1
    for name, content in {f"orders-0/{FIRST}": bytes(log), f"orders-1/{FIRST}": bytes(log[:500])}.items():
        (folder / name).parent.mkdir()
        (folder / name).write_bytes(content)
    (folder / "dump.txt").write_bytes(print_dump(*[Batch()] * 200))
    return [str(folder)]


def test_rows_are_the_same_for_every_split_size(spark, tmp_path):
    whole = list_capture(capture_in(tmp_path))
    split = split_large_files(spark, whole, 30_000)
    assert {Path(path).name: len(parts) > 2 for path, parts in split.parts.items()} == {FIRST: True}
    assert split_large_files(spark, whole).parts == {}
    for table in TABLES:
        assert_same(read_capture(spark, split, table), read_capture(spark, whole, table))
