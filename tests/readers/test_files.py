"""Folders and addresses that can be read, and errors for others."""

from __future__ import annotations

import gzip
from collections.abc import Sequence

import pytest

from tests.support.dumps import Batch, print_dump
from tests.support.log_bytes import to_bytes
from tests.support.log_notation import T
from txnlib.errors import UnreadableInputError, UsageError
from txnlib.readers import capture
from txnlib.readers.capture import CaptureFile, FileKind, list_capture
from txnlib.readers.storage import files, object_stores
from txnlib.readers.table_readers import read_table


def reasons(found: Sequence[CaptureFile]) -> list[str | None]:
    listed = [row for file in found for batch in read_table("segments", file) for row in batch.to_pylist()]
    return [row["unreadable"][0]["reason"] if row["unreadable"] else None for row in listed]


def test_a_path_a_file_uri_and_a_relative_path_are_one_place(repository, monkeypatch):
    quickstart = repository / "examples" / "quickstart"
    monkeypatch.chdir(quickstart.parent)
    plain = list_capture([str(quickstart)])
    for given in (f"file:{quickstart}", f"file://{quickstart}", "quickstart", "file:quickstart", f"{quickstart}/"):
        assert list_capture([given]) == plain


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ("/Volumes/main/logs/capture", "/Volumes/main/logs/capture"),
        ("dbfs:/Volumes/main/logs/capture", "/Volumes/main/logs/capture"),
        ("dbfs:///Volumes/main/logs/capture/", "/Volumes/main/logs/capture"),
        ("dbfs:/mnt/capture", "/dbfs/mnt/capture"),
        ("s3a://bucket/a b/", "s3a://bucket/a b"),
        ("gs://bucket", "gs://bucket"),
        ("hdfs:///user/kafka", "hdfs:///user/kafka"),
        ("hdfs://name:8020/", "hdfs://name:8020"),
        ("abfss://logs@onelake.dfs.fabric.microsoft.com/x", "abfss://logs@onelake.dfs.fabric.microsoft.com/x"),
        ("abfss://logs@account.dfs.core.windows.net/x", "abfss://logs@account.dfs.core.windows.net/x"),
    ],
)
def test_where_a_place_is(given, place):
    assert files.locate(given) == place
    assert object_stores.is_remote(place) is ("://" in place)


@pytest.mark.parametrize(
    "given", ["ftp://host/x", "s3://", "s3:///x", "gs:///x", "abfss://c/x", "abfss://c@a.blob.x/y", "hdfs://h:port/x"]
)
def test_a_place_that_cannot_be_is_refused(given):
    with pytest.raises(UsageError, match=given):
        files.locate(given)


@pytest.mark.parametrize(
    ("every", "said"), [(2, ["listed 2 files", "listed 4 files"]), (5, ["listed 5 files"]), (6, [])], ids=["two", "five", "six"]
)
def test_a_long_listing_reports_how_many_files_it_has_found(tmp_path, monkeypatch, every, said):
    monkeypatch.setattr(capture, "REPORTED_FILES", every)
    folder = tmp_path / "1" / "orders-0"
    folder.mkdir(parents=True)
    for name in (f"{0:020}.log", f"{0:020}.index", f"{0:020}.timeindex", "partition.metadata", "odd"):
        (folder / name).write_bytes(to_bytes(T(1, 0, 0, at=0)))
    lines: list[str] = []
    list_capture([str(tmp_path)], say=lines.append)
    assert lines == said


def test_keys_in_a_path_are_refused_and_not_repeated():
    with pytest.raises(UsageError, match="AWS_ACCESS_KEY_ID") as caught:
        files.locate("s3://AKIA:secret@bucket/x")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("place", "said"),
    [("hdfs://127.0.0.1:1/capture", "Connection refused"), ("hdfs:///capture", "fs.defaultFS"), ("hdfs://ns/x", "NameNode")],
)
def test_a_hadoop_that_is_not_there_is_named(monkeypatch, tmp_path, place, said):
    monkeypatch.setattr("txnlib.readers.storage.object_stores.ATTEMPTS", 1)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    with pytest.raises(UnreadableInputError, match=f"cannot be listed: .*{said}") as caught:
        list_capture([place])
    assert "HADOOP_CONF_DIR" in caught.value.remedy


def test_a_link_to_nowhere_is_listed_and_said(tmp_path):
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(to_bytes(T(1, 0, 0, at=0)))
    (folder / f"{9:020}.log").symlink_to(tmp_path / "gone")
    captured = list_capture([str(tmp_path)])
    assert [file.size > 0 for file in captured.files] == [True, False]
    assert reasons(captured.files) == [None, "CANNOT_OPEN: No such file or directory"]


def test_a_torn_packed_file_does_not_stop_the_listing(tmp_path):
    (tmp_path / "dump.txt.gz").write_bytes(gzip.compress(print_dump(Batch()))[:-12])
    (tmp_path / "noise.gz").write_bytes(b"\x1f\x8b\x08" + bytes(20))
    captured = list_capture([str(tmp_path)])
    assert [file.kind for file in captured.files] == [FileKind.DUMP, FileKind.UNKNOWN]
    assert reasons(captured.files) == ["CUT_LINE", "CANNOT_UNPACK"]


def test_a_link_put_in_place_of_a_listed_file_is_not_followed(tmp_path):
    """Neither by an audit that another user's folder deceives, nor if the target looks like a log."""
    folder, secret = tmp_path / "capture" / "orders-0", tmp_path / "secret"
    folder.mkdir(parents=True)
    for offset in (0, 1):
        (folder / f"{offset:020}.log").write_bytes(to_bytes(T(1, 0, offset, at=offset)))
    (folder / f"{2:020}.log").symlink_to(folder / f"{1:020}.log")
    listed = list_capture([str(tmp_path / "capture")]).files
    secret.write_bytes(to_bytes(T(1, 0, 0, at=0)))
    (folder / f"{0:020}.log").unlink()
    (folder / f"{0:020}.log").symlink_to(secret)
    found = {file.offset: rows("record_batches", file) for file in listed}
    assert {offset: len(batches) for offset, batches in found.items()} == {0: 0, 1: 1}
    (segment,) = [row for file in listed if file.offset == 0 for row in rows("segments", file)]
    assert [each["reason"] for each in segment["unreadable"]] == ["CANNOT_OPEN: it became a link after it was listed"]


def test_a_link_that_is_an_input_is_followed(tmp_path):
    file, link = tmp_path / "orders-0" / f"{0:020}.log", tmp_path / "orders-1" / f"{0:020}.log"
    for each in (file, link):
        each.parent.mkdir()
    file.write_bytes(to_bytes(T(1, 0, 0, at=0)))
    link.symlink_to(file)
    (listed,) = list_capture([str(link)]).files
    assert len(rows("record_batches", listed)) == 1


def rows(table, file):
    return [row for batch in read_table(table, file) for row in batch.to_pylist()]
