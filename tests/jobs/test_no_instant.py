"""Captures in which no broker notes a time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.support.audits import audited_anew
from tests.support.log_bytes import encode_batch, encode_snapshot
from txnlib.core.instants import BY_CLIENTS, BY_NOBODY, LAST_INSTANT_MS
from txnlib.core.kafka.producer_state import ProducerState
from txnlib.core.kafka.record_batch import Record
from txnlib.engine import pool_source
from txnlib.errors import UnreadableInputError
from txnlib.jobs.options import AUDIT, parse, request_of
from txnlib.pipeline.audit import carry_out_steps
from txnlib.pipeline.clock import now
from txnlib.pipeline.run import open_run
from txnlib.pipeline.tables import INGEST

TS = 1_700_000_000_000


def capture(folder: Path, timestamps: Sequence[int], *, is_transactional: bool = False) -> Path:
    """A partition to which a client wrote at these times."""
    producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0} if is_transactional else {}
    batches = [
        encode_batch([Record(at, ts, b"k", b"v")], base_sequence=at, is_transactional=is_transactional, **producer)
        if is_transactional
        else encode_batch([Record(at, ts, b"k", b"v")])
        for at, ts in enumerate(timestamps)
    ]
    partition = folder / "1" / "orders-0"
    partition.mkdir(parents=True)
    (partition / f"{0:020}.log").write_bytes(b"".join(batches))
    return folder


@pytest.mark.parametrize(
    ("timestamps", "as_of_ms", "basis"),
    [pytest.param((TS, TS - 5), TS, BY_CLIENTS, marks=pytest.mark.both), ((-1,), 0, BY_NOBODY), ((), 0, BY_NOBODY)],
    ids=["clients", "no times", "no records"],
)
def test_where_nothing_may_be_open_no_time_is_asked_for(
    tmp_path: Path, timestamps: Sequence[int], as_of_ms: int, basis: str
) -> None:
    settings = audited_anew([capture(tmp_path, timestamps)]).run.settings
    assert (settings.as_of_ms, settings.as_of_basis) == (as_of_ms, basis)


@pytest.mark.parametrize("odd", [LAST_INSTANT_MS + 1, 9_700_000_000_000])
def test_no_time_of_a_client_is_later_than_the_audit(tmp_path: Path, odd: int) -> None:
    """Else audits of later nights would never be the newest, and `--keep-days` would delete those of earlier ones."""
    settings = audited_anew([capture(tmp_path, (TS, odd))]).run.settings
    assert TS < settings.as_of_ms <= now().timestamp() * 1000
    assert settings.as_of_basis == BY_CLIENTS


@pytest.mark.parametrize("kind", [pytest.param("batches", marks=pytest.mark.both), "snapshot"])
def test_where_something_may_be_open_a_time_is_asked_for(tmp_path: Path, kind: str) -> None:
    copies = capture(tmp_path / "capture", (TS,), is_transactional=kind == "batches")
    if kind == "snapshot":
        state = ProducerState(producer_epoch=0, last_offset=0, current_txn_first_offset=0, last_timestamp=TS)
        (copies / "1" / "orders-0" / f"{1:020}.snapshot").write_bytes(encode_snapshot({7: state}))
    output = TemporaryDirectory()
    with pytest.raises(UnreadableInputError, match="contains no time at which it was taken"):
        audited_anew([copies], folder=output)
    assert os.listdir(output.name) == []
    given = audited_anew([copies], "--captured-at", str(TS), folder=output)
    assert given.run.settings.as_of_ms == TS


def test_a_capture_without_notes_is_read_once_and_not_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies, said, reads = capture(tmp_path, (TS,)), list[object](), list[int]()
    read = pool_source.read_to_files

    def counted(*args: Any) -> None:
        reads.append(len(said))
        read(*args)

    monkeypatch.setattr(pool_source, "read_to_files", counted)
    with TemporaryDirectory() as output:
        request = request_of(parse(AUDIT, "", ["--input", str(copies), "--output", output]))
        run = open_run(request, said.append, lambda size: lambda read: said.append(("read", read, size)))
        carry_out_steps(run, INGEST)
    (before,) = reads
    size = sum(file.stat().st_size for file in copies.rglob("*.log"))
    assert str(said[before - 1]).startswith("reading 1 files")
    assert [each for each in said if isinstance(each, tuple)] == [("read", size, size)]
    assert sum(str(each).startswith("reading ") for each in said) == 1
