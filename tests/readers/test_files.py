"""Folders and addresses that can be read, and errors for others."""

from __future__ import annotations

import pytest

from tests.support.log_bytes import to_bytes
from tests.support.log_notation import T
from tests.support.segments import rows_of_file
from txnlib.errors import UnreadableInputError, UsageError
from txnlib.readers import capture
from txnlib.readers.capture import list_capture
from txnlib.readers.storage import files, object_stores


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
    ("every", "said"),
    [(2, ["listed 2 files", "listed 4 files"]), (5, ["listed 5 files"]), (6, [])],
    ids=["two", "five", "six"],
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
    [
        ("hdfs://127.0.0.1:1/capture", "Connection refused"),
        ("hdfs:///capture", "fs.defaultFS"),
        ("hdfs://ns/x", "NameNode"),
    ],
)
def test_a_hadoop_that_is_not_there_is_named(monkeypatch, tmp_path, place, said):
    monkeypatch.setattr("txnlib.readers.storage.object_stores.ATTEMPTS", 1)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    with pytest.raises(UnreadableInputError, match=f"cannot be listed: .*{said}") as caught:
        list_capture([place])
    assert "HADOOP_CONF_DIR" in caught.value.remedy


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
    found = {file.offset: rows_of_file("record_batches", file) for file in listed}
    assert {offset: len(batches) for offset, batches in found.items()} == {0: 0, 1: 1}
    (segment,) = [row for file in listed if file.offset == 0 for row in rows_of_file("segments", file)]
    assert [each["reason"] for each in segment["unreadable"]] == ["CANNOT_OPEN: it became a link after it was listed"]


def test_a_link_that_is_an_input_is_followed(tmp_path):
    file, link = tmp_path / "orders-0" / f"{0:020}.log", tmp_path / "orders-1" / f"{0:020}.log"
    for each in (file, link):
        each.parent.mkdir()
    file.write_bytes(to_bytes(T(1, 0, 0, at=0)))
    link.symlink_to(file)
    (listed,) = list_capture([str(link)]).files
    assert len(rows_of_file("record_batches", listed)) == 1


HEX = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize("ending", ["future", "delete", "stray"])
def test_a_moved_folder_that_is_not_being_deleted_is_a_copy_with_a_source_of_its_own(tmp_path, ending):
    segment = to_bytes(T(1, 0, 0, 4, at=0))
    for folder in ("orders-0", f"orders-0.{HEX}-{ending}"):
        inside = tmp_path / "1" / folder
        inside.mkdir(parents=True)
        (inside / f"{0:020}.log").write_bytes(segment)
        (inside / f"{5:020}.snapshot").write_bytes(b"")
        (inside / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        (inside / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA\n")
    found = list_capture([str(tmp_path)]).files
    sources = [(file.source, file.kind.value) for file in found if (file.topic, file.partition) == ("orders", 0)]
    kinds = ["checkpoint", "checkpoint", "producer_snapshot", "segment"]
    of_both = ["raw:1"] if ending == "delete" else ["raw:1", f"raw:1/-{ending}"]
    assert sorted(sources) == [(source, kind) for source in of_both for kind in kinds]


def test_a_future_folder_whose_name_kafka_may_have_cut_is_refused(tmp_path):
    for length in (254, 255):
        name = "o" * (length - len(f"-0.{HEX}-future"))
        inside = tmp_path / "1" / f"{name}-0.{HEX}-future"
        inside.mkdir(parents=True)
        (inside / f"{0:020}.log").write_bytes(to_bytes(T(1, 0, 0, 4, at=0)))
    read, refused = sorted(list_capture([str(tmp_path)]).files, key=lambda file: file.problem)
    assert (read.partition, refused.topic) == (0, None)
    assert refused.problem.startswith("NAME_MAY_BE_CUT")
