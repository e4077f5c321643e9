"""Clusters and brokers are who their log directories say they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from txnlib.core.coverage.capture_instants import CaptureInstants
from txnlib.errors import UsageError
from txnlib.readers.capture import FileKind, list_capture

ONE, OTHER = "MkU3OEVBNTcwNTJENDM2Qg", "XB4QhweWTe-kZwMNW25y1A"


def log_directory(folder: Path, cluster_id: str | None = None, broker_id: int | None = None) -> Path:
    """A log directory with a segment, and what brokers from 3.x on note of it."""
    (folder / "orders-0").mkdir(parents=True)
    (folder / "orders-0" / f"{0:020}.log").touch()
    said = {"cluster.id": cluster_id, "node.id": broker_id}
    lines = [f"{name}={value}" for name, value in said.items() if value is not None]
    if lines:
        (folder / "meta.properties").write_text("\n".join(["#", "#Sat Nov 21", "version=1", *lines, ""]))
    return folder


@pytest.mark.parametrize("note", [None, "kafka"])
@pytest.mark.parametrize("are_apart", [False, True])
def test_log_directories_of_two_clusters_are_refused_whatever_notes_say(
    tmp_path: Path, note: str | None, are_apart: bool
) -> None:
    for folder, cluster_id in (("prod", ONE), ("dr", OTHER)):
        log_directory(tmp_path / folder / "1", cluster_id, 1)
        if note is not None:
            (tmp_path / folder / "capture.json").write_text(json.dumps({"cluster": note}))
    inputs = [tmp_path / "dr", tmp_path / "prod"] if are_apart else [tmp_path]
    dr, prod = (tmp_path / name / "1" / "meta.properties" for name in ("dr", "prod"))
    with pytest.raises(UsageError) as refused:
        list_capture(map(str, inputs))
    named = f"{OTHER}: {dr}; {ONE}: {prod}"
    assert str(refused.value) == f"the inputs belong to different clusters ({named}): audit one at a time"


def test_notes_of_a_capture_over_the_wire_name_the_cluster_too(tmp_path: Path) -> None:
    log_directory(tmp_path / "a" / "1", ONE, 1)
    log_directory(tmp_path / "b" / "1")
    note = tmp_path / "b" / "capture.json"
    note.write_text(json.dumps({"cluster": "kafka", "cluster_id": OTHER}))
    with pytest.raises(UsageError, match="different clusters"):
        list_capture([str(tmp_path)])
    note.write_text(json.dumps({"cluster": "kafka", "cluster_id": ONE}))
    assert list_capture([str(tmp_path)]).cluster_id == ONE


def test_a_directory_without_an_identity_speaks_for_none(tmp_path: Path) -> None:
    log_directory(tmp_path / "1", ONE, 1)
    log_directory(tmp_path / "2")
    log_directory(tmp_path / "3", None, 3)
    capture = list_capture([str(tmp_path)])
    assert (capture.cluster_id, capture.misnamed) == (ONE, ())
    assert list_capture([str(tmp_path / "2")]).cluster_id is None


def test_one_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = log_directory(tmp_path / "1", ONE, 1) / "meta.properties"
    path.write_bytes(b"#" * (1 << 20))
    (refused,) = list_capture([str(tmp_path)]).of_kind(FileKind.REFUSED)
    assert refused.path == str(path)
    assert refused.problem.startswith("CANNOT_OPEN: ")


@pytest.mark.parametrize(
    ("folder", "broker_id", "source"),
    [
        ("1", 1, "raw:1"),
        ("01", 1, "raw:01"),
        ("1", 2, "raw:2/1"),
        ("prod/1", 2, "raw:2/prod/1"),
        ("kafka-1", 2, "raw:2/kafka-1"),
        ("blue-1/kafka-logs", 2, "raw:2/blue-1/kafka-logs"),
        ("kafka-1", None, "raw:kafka-1"),
        ("1", None, "raw:1"),
    ],
)
def test_a_copy_is_of_the_broker_that_its_directory_names(
    tmp_path: Path, folder: str, broker_id: int | None, source: str
) -> None:
    log_directory(tmp_path / folder, ONE, broker_id)
    first = tmp_path / folder / "first" / "__transaction_state-0"
    first.mkdir(parents=True)
    (first / f"{0:020}.log").touch()
    capture = list_capture([str(tmp_path)])
    assert {file.source for file in capture.files} == {source, f"{source}/first"}
    is_moved = source != f"raw:{folder}" and "kafka" not in folder  # a name is not the number of another
    assert len(capture.misnamed) == is_moved
    assert all(f"folder {folder}: " in says and f"of broker {broker_id}" in says for says in capture.misnamed)


def test_notes_name_a_broker_by_its_number_or_by_its_folder(tmp_path: Path) -> None:
    log_directory(tmp_path / "kafka-1", ONE, 2)
    noted = {"kafka-1/orders-0": 5, "kafka-1/first/__transaction_state-0": 3, "2/orders-1": 7}
    (tmp_path / "capture.json").write_text(json.dumps({"captured_at_ms": {"default": 9, **noted}}))
    notes = list_capture([str(tmp_path)]).notes.captured_at_ms
    instants = CaptureInstants(notes["default"], notes)
    source = "raw:2/kafka-1"
    assert instants.of_copy(source, "orders", 0) == 5
    assert instants.of_copy(source, "orders", 1) == 7
    assert instants.of_copy(source, "orders", 2) == 9
    assert instants.of_copy(f"{source}/first", "__transaction_state", 0) == 3


def test_an_identity_above_the_log_directories_renames_none_of_them(tmp_path: Path) -> None:
    """Somebody put the file of one broker beside the folders of all."""
    log_directory(tmp_path / "9", ONE, 1)
    for broker in (2, 3):
        log_directory(tmp_path / "9" / str(broker), ONE, broker)
    sources = {file.source for file in list_capture([str(tmp_path / "9")]).files}
    assert sources == {"raw:.", "raw:2", "raw:3"}
