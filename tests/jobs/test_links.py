"""Links in captures: lower coverage, and rows of quarantine."""

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.copies import covered
from tests.support.log_bytes import to_bytes
from tests.support.log_notation import T
from txnlib.core.copies import LOG_END
from txnlib.core.coverage.captured_files import CapturedFile
from txnlib.core.coverage.quarantine import quarantine
from txnlib.errors import UsageError
from txnlib.jobs.options import AUDIT, parse, request_of
from txnlib.pipeline import run
from txnlib.pipeline.run import open_run
from txnlib.pipeline.tables import INGEST
from txnlib.readers.capture import FileKind, list_capture
from txnlib.readers.table_readers import read_table
from txnlib.readers.typed_rows import typed_rows


@pytest.fixture(scope="module")
def capture(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("links")
    elsewhere = root / "elsewhere" / "orders-9"
    elsewhere.mkdir(parents=True)
    (elsewhere / "segment").write_bytes(to_bytes(T(1, 0, 1, at=1)))
    for partition in range(4):
        folder = root / "capture" / "1" / f"orders-{partition}"
        folder.mkdir(parents=True)
        (folder / f"{0:020}.log").write_bytes(to_bytes(T(1, 0, 0, at=0)))
    later = f"{1:020}.log"
    (root / "capture" / "1" / "orders-1" / later).symlink_to(elsewhere / "segment")
    os.mkfifo(root / "capture" / "1" / "orders-2" / later)
    (root / "capture" / "1" / "orders-3" / "99999999999999999999.log").write_bytes(b"")
    (root / "capture" / "1" / "orders-4").symlink_to(elsewhere)
    return root / "capture"


@pytest.fixture(scope="module")
def segments(capture) -> list[CapturedFile]:
    batches = [batch for file in list_capture([str(capture)]).files for batch in read_table("segments", file)]
    return typed_rows(pa.Table.from_batches(batches), CapturedFile)


def test_what_was_not_opened_lowers_the_coverage_of_its_partition(segments):
    assert {row.partition: (row.status, row.end_offset) for row in covered(*segments)} == {
        0: ("COMPLETE", 1),
        1: ("PARTIAL", 1),
        2: ("PARTIAL", 1),
        3: ("PARTIAL", 1),
        4: ("PARTIAL", None),
    }
    details = {row.partition: row.detail for row in covered(*segments)}
    assert details[0] is None
    assert details[1].startswith("1 file not opened: a link that was not followed"), "that is no damage"


def test_nothing_is_decided_behind_what_was_not_opened(segments):
    """As behind damage: records that would decide it may be there."""
    for row in covered(*segments):
        if row.partition in (1, 2, 4):
            assert (row.ends, row.damage_ends_at, row.is_current, row.shows_absence) == ("SHORT", LOG_END, False, False)


def test_what_was_not_opened_is_in_quarantine(segments):
    found = quarantine(segments, (), (), ())
    assert sorted((row.partition, row.reason.partition(":")[0], row.sample) for row in found) == [
        (1, "LINK_OUT_OF_INPUT", ""),
        (2, "NOT_A_REGULAR_FILE", ""),
        (3, "NAME_OUT_OF_RANGE", ""),
        (4, "LINK_OUT_OF_INPUT", ""),
    ]


@pytest.mark.parametrize(("options", "is_read"), [((), False), (("--follow-links",), True)])
def test_links_are_followed_if_that_is_asked_for(capture, monkeypatch, options, is_read):
    opened = []

    def read(inputs: Sequence[str], *, follow_links: bool, **_: object) -> None:
        opened.extend(list_capture(inputs, follow_links=follow_links).of_kind(FileKind.SEGMENT))
        raise UsageError("that is all")

    monkeypatch.setattr(run, "list_capture", read)
    with pytest.raises(UsageError, match="that is all"):
        open_run(request_of(parse(AUDIT, "", ["--input", str(capture), "--output", "unused", *options])))
    assert ((1, 1) in {(file.partition, file.offset) for file in opened}) == is_read


def test_segments_are_read_after_all_that_is_read_from_them():
    """So that no table says more was read than is in the others, whatever shrinks meanwhile."""
    (segments,) = (step for step in INGEST if step.name == "segments")
    assert {"record_batches", "transaction_log", "committed_offsets"} <= set(segments.reads)
