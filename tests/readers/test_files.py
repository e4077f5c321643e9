"""Is a capture in an object store the same capture? Against a server that speaks S3 on this machine."""

from __future__ import annotations

import gzip
import logging
import os
import shutil
import urllib.request
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs

from tests.support.batches import TS, T
from tests.support.dumps import Batch, print_dump
from tests.support.log_bytes import encode_batch, encode_snapshot, to_bytes
from txnlib.core.producer_snapshot import ProducerState
from txnlib.core.record_batch import Record
from txnlib.errors import ConfigError, UnreadableInputError, UsageError
from txnlib.readers import columns, files
from txnlib.readers.capture import CaptureFile, FileKind, list_capture
from txnlib.readers.tables import read_table

ODD_NAME = "what a name & 100% #1?.txt"


@dataclass(frozen=True)
class Store:
    """A server, and a client that does not go through the code under test."""

    endpoint: str
    client: Any

    def put(self, name: str, content: bytes) -> str:
        with self.client.open_output_stream(name) as stream:
            stream.write(content)
        return f"s3://{name}"

    def demand_credentials(self, demanded: bool) -> None:
        """moto takes any key until it is told to count down to the first request that it checks."""
        count = b"0" if demanded else b"inf"
        request = urllib.request.Request(f"{self.endpoint}/moto-api/reset-auth", count, {"Content-Type": "text/plain"})
        with urllib.request.urlopen(request):
            pass


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ThreadedMotoServer = pytest.importorskip("moto.server").ThreadedMotoServer
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    set_here = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        for name, value in set_here.items():
            patch.setenv(name, value)
        client = fs.S3FileSystem(
            endpoint_override=f"127.0.0.1:{port}", scheme="http", region="eu-central-1", allow_bucket_creation=True
        )
        client.create_dir("captures")
        yield Store(set_here["AWS_ENDPOINT_URL"], client)
    server.stop()


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """The example, with what it lacks: a snapshot, a packed dump, a file of nobody's and an empty one."""
    folder = tmp_path_factory.mktemp("local") / "quickstart"
    shutil.copytree(repository / "examples" / "quickstart", folder)
    partition = next(folder.rglob("orders-0"))
    state = ProducerState(producer_epoch=1, last_sequence=4, last_offset=9, last_timestamp=TS)
    (partition / f"{10:020}.snapshot").write_bytes(encode_snapshot({7: state}))
    (partition / f"{10:020}.log").write_bytes(b"")
    (folder / "late-3.txt.gz").write_bytes(gzip.compress(print_dump(Batch(), Batch())))
    (folder / ODD_NAME).write_bytes(b"\0 of nobody's")
    return folder


@pytest.fixture(scope="module")
def uploaded(store: Store, quickstart: Path) -> str:
    fs.copy_files(str(quickstart), "captures/quickstart", destination_filesystem=store.client, use_threads=False)
    return "s3://captures/quickstart"


def rows(table: str, found: list[CaptureFile] | tuple[CaptureFile, ...], root: str) -> list[dict[str, Any]]:
    listed = [row for file in found for batch in read_table(table, file) for row in batch.to_pylist()]
    return [row | ({"path": row["path"].removeprefix(root)} if "path" in row else {}) for row in listed]


def test_a_listing_is_sorted_and_the_same_everywhere(uploaded, quickstart):
    here = list(files.list_files(str(quickstart)))
    there = list(files.list_files(uploaded))
    assert [path.removeprefix(f"{quickstart}/") for path, _ in here] == [path.removeprefix(f"{uploaded}/") for path, _ in there]
    assert [size for _, size in here] == [size for _, size in there]
    assert here == sorted(here)
    assert there == sorted(there)
    assert f"{uploaded}/{ODD_NAME}" in dict(there)


def test_a_capture_in_a_store_has_the_same_files_and_notes(uploaded, quickstart):
    here, there = list_capture([str(quickstart)]), list_capture([uploaded])
    assert there.inputs == (uploaded,)
    assert there.notes == here.notes
    assert there.notes.cluster == "quickstart"
    assert [replace(file, path=file.path.removeprefix(uploaded)) for file in there.files] == [
        replace(file, path=file.path.removeprefix(str(quickstart))) for file in here.files
    ]
    assert {file.kind for file in there.files} == set(FileKind) - {FileKind.CONSOLE, FileKind.SKIPPED_SEGMENT}


@pytest.mark.parametrize("table", columns.TABLES)
def test_every_table_reads_the_same_from_a_store(table, uploaded, quickstart):
    here = rows(table, list_capture([str(quickstart)]).files, str(quickstart))
    assert rows(table, list_capture([uploaded]).files, uploaded) == here
    assert here


def test_one_object_is_an_input_too_and_s3a_is_s3(uploaded):
    uri = next(file.path for file in list_capture([uploaded]).of_kind(FileKind.SEGMENT))
    as_spark_says = uri.replace("s3://", "s3a://")
    (file,) = list_capture([as_spark_says]).files
    assert (file.path, file.kind, file.topic is None) == (as_spark_says, FileKind.SEGMENT, False)
    assert rows("segments", [file], as_spark_says) == [
        {**row, "source": file.source} for row in rows("segments", [replace(file, path=uri)], uri)
    ]


def test_inputs_here_and_in_a_store_make_one_capture(uploaded, quickstart):
    both = list_capture([str(quickstart), f"{uploaded}/brokers/"])
    assert both.inputs == (str(quickstart), f"{uploaded}/brokers")
    assert {file.source.split("/")[0] for file in both.of_kind(FileKind.SEGMENT)} == {"raw:quickstart", "raw:brokers"}


def test_a_whole_bucket_is_a_capture(store):
    store.client.create_dir("whole")
    store.put(f"whole/1/orders-0/{0:020}.log", to_bytes(T(1, 0, 0, at=0)))
    (file,) = list_capture(["s3://whole/"]).files
    assert (file.path, file.source) == (f"s3://whole/1/orders-0/{0:020}.log", "raw:1")


def test_what_is_not_there_is_named_with_what_to_do(uploaded):
    for place in (f"{uploaded}/nothing", "s3://no-such-bucket/x", "s3://no-such-bucket"):
        with pytest.raises(UnreadableInputError, match="no such file or folder") as caught:
            list_capture([place])
        assert caught.value.path == place
        assert "AWS_ENDPOINT_URL" in caught.value.remedy


def test_wrong_credentials_are_named_with_what_to_do(store, uploaded):
    captured = list_capture([uploaded])
    store.demand_credentials(True)
    try:
        with pytest.raises(UnreadableInputError, match=r"ACCESS_DENIED|INVALID_ACCESS_KEY_ID") as caught:
            list_capture([uploaded])
        assert str(caught.value).startswith(f"{uploaded}: cannot be listed: ")
        assert "Check AWS_ACCESS_KEY_ID" in caught.value.remedy
        file = captured.of_kind(FileKind.SEGMENT)[0]
        (row,) = rows("segments", [file], "")
        assert row["unreadable"][0]["reason"].startswith("CANNOT_OPEN: ")
    finally:
        store.demand_credentials(False)


def test_a_store_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(UnreadableInputError, match=r"cannot be listed: .*NETWORK_CONNECTION") as caught:
        list_capture(["s3://captures/quickstart"])
    assert "AWS_ENDPOINT_URL" in caught.value.remedy


@pytest.mark.parametrize("kind", sorted(set(FileKind) - {FileKind.CHECKPOINT, FileKind.SKIPPED_SEGMENT}))
def test_an_object_that_is_gone_is_a_row(kind, store, uploaded):
    file = CaptureFile(f"{uploaded}/gone", kind, "raw:1", 10, "__transaction_state", 0)
    (row,) = rows("segments", [file], "")
    assert row["unreadable"][0]["reason"].startswith("CANNOT_OPEN: ")
    assert (row["path"], row["bytes"]) == (f"{uploaded}/gone", 10)
    assert rows("record_batches", [file], "") == []


def test_an_object_that_breaks_off_fails_rather_than_passing_for_read(store):
    """Rows of half a file would be judged as if they were all of it."""
    uri = store.put(f"captures/broken/orders-0/{0:020}.log", bytes(50_000))
    with files.open_buffer(uri, block_bytes=1_000) as opened:
        assert opened.buffer[0:10] == bytes(10)
        store.client.delete_file(uri.removeprefix("s3://"))
        with pytest.raises(UnreadableInputError, match="reading stopped at byte 30000") as caught:
            opened.buffer[30_000:30_010]
    assert caught.value.path == uri


def test_a_stream_begins_where_it_was_asked_to_begin(store, tmp_path):
    content = bytes(range(256)) * 200
    (tmp_path / "here").write_bytes(content)
    for place in (store.put("captures/streamed", content), str(tmp_path / "here")):
        for start in (0, 1, 30_000, len(content)):
            with files.open_stream(place, start) as stream:
                assert b"".join(iter(lambda: stream.read(7_000), b"")) == content[start:]


def test_a_store_that_falls_silent_between_two_tables_fails_the_second(uploaded, monkeypatch):
    """Else `segments` would say that all was read."""
    file = list_capture([uploaded]).of_kind(FileKind.SEGMENT)[0]
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(UnreadableInputError, match=r"cannot be opened: .*NETWORK_CONNECTION"):
        rows("record_batches", [file], "")
    (row,) = rows("segments", [file], "")
    assert row["unreadable"][0]["reason"].startswith("CANNOT_OPEN: ")


def test_an_object_that_can_be_seen_but_not_read_is_a_row(store):
    """As archived ones are."""
    uri = store.put(f"captures/archived/orders-0/{0:020}.log", bytes(50_000))
    with files.open_buffer(uri) as opened:
        store.client.delete_file(uri.removeprefix("s3://"))
        with pytest.raises(OSError, match="AWS Error"):
            opened.buffer[0:10]


def test_of_large_batches_in_a_store_only_headers_are_downloaded(store, monkeypatch):
    one = encode_batch([Record(0, TS, None, bytes(16_384 - 100))], producer_id=1, producer_epoch=0, base_sequence=0)
    uri = store.put(f"captures/large/orders-0/{0:020}.log", b"".join(n.to_bytes(8, "big") + one[8:] for n in range(200)))
    downloaded = []
    read_at = files._read_at

    def counted(path: str, opened: Any, position: int, count: int) -> bytes:
        downloaded.append(count)
        return read_at(path, opened, position, count)

    monkeypatch.setattr(files, "_read_at", counted)
    monkeypatch.setattr(files.open_buffer.__wrapped__, "__defaults__", (1_024, files.HELD_BYTES))
    (file,) = list_capture([uri]).files
    assert len(rows("record_batches", [file], "")) == 200
    assert 0 < sum(downloaded) < file.size / 5


def test_a_capture_json_in_a_store_that_is_broken_names_file_and_field(store):
    uri = store.put("captures/noted/capture.json", b'{"coordinator_partitions": "many"}')
    with pytest.raises(ConfigError) as caught:
        list_capture(["s3://captures/noted"])
    assert (caught.value.path, caught.value.key) == (uri, "coordinator_partitions")


def test_a_path_a_file_uri_and_a_relative_path_are_one_place(quickstart, monkeypatch):
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
    assert files.is_remote(place) is ("://" in place)


@pytest.mark.parametrize(
    "given", ["ftp://host/x", "s3://", "s3:///x", "gs:///x", "abfss://c/x", "abfss://c@a.blob.x/y", "hdfs://h:port/x"]
)
def test_a_place_that_cannot_be_is_refused(given):
    with pytest.raises(UsageError, match=given):
        files.locate(given)


def test_keys_in_a_path_are_refused_and_not_repeated():
    with pytest.raises(UsageError, match="AWS_ACCESS_KEY_ID") as caught:
        files.locate("s3://AKIA:secret@bucket/x")
    assert "secret" not in str(caught.value)


def test_what_pyarrow_cannot_open_from_here_is_named(monkeypatch):
    monkeypatch.setenv("HADOOP_HOME", "/nowhere")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(UnreadableInputError, match="cannot be listed") as caught:
        list_capture(["hdfs://127.0.0.1:1/capture"])
    assert "CLASSPATH" in caught.value.remedy


def test_a_link_to_nowhere_is_listed_and_said(tmp_path):
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(to_bytes(T(1, 0, 0, at=0)))
    (folder / f"{9:020}.log").symlink_to(tmp_path / "gone")
    captured = list_capture([str(tmp_path)])
    assert [file.size > 0 for file in captured.files] == [True, False]
    assert rows("segments", captured.files, "")[1]["unreadable"][0]["reason"] == "CANNOT_OPEN: No such file or directory"


def test_a_torn_packed_file_does_not_stop_the_listing(tmp_path):
    (tmp_path / "dump.txt.gz").write_bytes(gzip.compress(print_dump(Batch()))[:-12])
    (tmp_path / "noise.gz").write_bytes(b"\x1f\x8b\x08" + bytes(20))
    captured = list_capture([str(tmp_path)])
    assert [file.kind for file in captured.files] == [FileKind.DUMP, FileKind.UNKNOWN]
    reasons = [row["unreadable"][0]["reason"] for row in rows("segments", captured.files, "")]
    assert reasons == ["CANNOT_OPEN: Compressed file ended before the end-of-stream marker was reached", "NOT_A_KAFKA_FILE"]
