"""One capture in each object store, over servers on this machine."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from traceback import format_exception
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pyarrow import fs

from tests.support import store_servers
from tests.support.dumps import Batch, print_dump
from tests.support.log_bytes import encode_batch, encode_snapshot, to_bytes
from tests.support.log_notation import TS, T
from tests.support.receiver import Receiver, receiving
from tests.support.store_servers import Store
from txnlib.core.kafka.log_dir_files import ProducerState
from txnlib.core.kafka.record_batch import Record
from txnlib.errors import ConfigError, UnreadableInputError
from txnlib.readers import arrow_schemas, table_readers
from txnlib.readers.capture import CaptureFile, FileKind, list_capture
from txnlib.readers.storage import files
from txnlib.readers.storage.object_stores import may_pass
from txnlib.readers.table_readers import read_table

SERVERS = {
    "s3": store_servers.amazons,
    "gs": store_servers.googles,
    "strict-gs": store_servers.strict_googles,
    "abfss": store_servers.microsofts,
    "hdfs": store_servers.hadoops,
}
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("strict-gs", "abfss", "hdfs")]
ODD_NAME = "what a name & 100% #1?.txt"


@pytest.fixture(scope="module", params=["s3", "gs", *SLOW])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with SERVERS[request.param](tmp_path_factory.mktemp("store")) as store:
        store.client.create_dir("captures")
        yield store


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory, repository: Path, captures: Path) -> Path:
    """One broker of the example, with what it lacks: snapshots, a packed dump, a metadata log, a file of nobody's and
    an empty one."""
    folder = tmp_path_factory.mktemp("local") / "quickstart"
    shutil.copytree(repository / "examples" / "quickstart", folder, ignore=shutil.ignore_patterns("2"))
    partition = next(folder.rglob("orders-0"))
    state = ProducerState(producer_epoch=1, last_sequence=4, last_offset=9, last_timestamp=TS)
    (partition / f"{10:020}.snapshot").write_bytes(encode_snapshot({7: state}))
    (partition / f"{10:020}.log").write_bytes(b"")
    (folder / "late-3.txt.gz").write_bytes(gzip.compress(print_dump(Batch(), Batch())))
    metadata = "__cluster_metadata-0"
    shutil.copytree(captures / "md-4.1" / "brokers" / "1" / metadata, partition.parent / metadata)
    (folder / ODD_NAME).write_bytes(b"\0 of nobody's")
    return folder


@pytest.fixture(scope="module")
def uploaded(store: Store, quickstart: Path) -> str:
    fs.copy_files(str(quickstart), "captures/quickstart", destination_filesystem=store.client, use_threads=False)
    return store.uri("captures/quickstart")


def rows(table: str, found: list[CaptureFile] | tuple[CaptureFile, ...], root: str) -> list[dict[str, Any]]:
    listed = [row for file in found for batch in read_table(table, file) for row in batch.to_pylist()]
    return [row | ({"path": row["path"].removeprefix(root)} if "path" in row else {}) for row in listed]


def test_a_listing_is_sorted_and_the_same_everywhere(uploaded, quickstart):
    here = [(entry.path, entry.size) for entry in files.list_files([str(quickstart)])]
    there = [(entry.path, entry.size) for entry in files.list_files([uploaded])]
    assert [path.removeprefix(f"{quickstart}/") for path, _ in here] == [
        path.removeprefix(f"{uploaded}/") for path, _ in there
    ]
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
    assert {file.kind for file in there.files} == set(FileKind) - {
        FileKind.CONSOLE,
        FileKind.REFUSED,
        FileKind.LIVE_PRODUCERS,
        FileKind.LIVE_TRANSACTIONS,
    }


# The sample has no answers of brokers.
@pytest.mark.parametrize("table", [name for name in arrow_schemas.TABLES if not name.startswith("live_")])
def test_every_table_reads_the_same_from_a_store(table, uploaded, quickstart):
    here = rows(table, list_capture([str(quickstart)]).files, str(quickstart))
    assert rows(table, list_capture([uploaded]).files, uploaded) == here
    assert here


def test_one_object_is_an_input_too(uploaded, quickstart):
    of_all = list_capture([uploaded]).of_kind(FileKind.SEGMENT)[0]
    (file,) = list_capture([of_all.path]).files
    assert (file.path, file.kind, file.size) == (of_all.path, FileKind.SEGMENT, of_all.size)
    here = [
        file for file in list_capture([str(quickstart)]).files if file.path.endswith(of_all.path.removeprefix(uploaded))
    ]
    assert rows("record_batches", [file], uploaded) == [
        {**row, "source": file.source} for row in rows("record_batches", here, str(quickstart))
    ]


@pytest.mark.parametrize("store", ["s3"], indirect=True)
def test_s3a_is_s3(uploaded):
    there, as_spark_says = list_capture([uploaded]).files, list_capture([uploaded.replace("s3://", "s3a://")]).files
    assert {file.path.partition("://")[0] for file in as_spark_says} == {"s3a"}
    assert [replace(file, path=file.path.replace("s3a://", "s3://")) for file in as_spark_says] == list(there)
    assert files.read_all(as_spark_says[0].path, 1 << 20) == files.read_all(there[0].path, 1 << 20)


def test_inputs_here_and_in_a_store_make_one_capture(uploaded, quickstart):
    both = list_capture([str(quickstart), f"{uploaded}/brokers/"])
    assert both.inputs == (str(quickstart), f"{uploaded}/brokers")
    assert {file.source.split("/")[0] for file in both.of_kind(FileKind.SEGMENT)} == {"raw:quickstart", "raw:brokers"}


def test_a_whole_bucket_is_a_capture(store):
    store.client.create_dir("whole")
    store.put(f"whole/1/orders-0/{0:020}.log", to_bytes(T(1, 0, 0, at=0)))
    whole = store.uri("whole")
    (file,) = list_capture([f"{whole}/"]).files
    assert (file.path, file.source) == (f"{whole}/1/orders-0/{0:020}.log", "raw:1")


def test_what_is_not_there_is_named_with_what_to_do(store, uploaded):
    for place in (
        f"{uploaded}/nothing",
        f"{uploaded}/capture.jso",
        store.uri("no-such-bucket/x"),
        store.uri("no-such-bucket"),
    ):
        with pytest.raises(UnreadableInputError, match="no such file or folder") as caught:
            list_capture([place])
        assert caught.value.path == place
        assert store.credentials in caught.value.remedy


def test_wrong_credentials_are_named_with_what_to_do_and_not_shown(store, uploaded):
    captured = list_capture([uploaded])
    with store.refusing():
        with pytest.raises(UnreadableInputError, match=store.refused) as caught:
            list_capture([uploaded])
        assert str(caught.value).startswith(f"{uploaded}: cannot be listed: ")
        assert f"Check {store.credentials}" in caught.value.remedy
        (row,) = rows("segments", [captured.of_kind(FileKind.SEGMENT)[0]], "")
    assert row["unreadable"][0]["reason"].startswith("CANNOT_OPEN: ")
    assert store_servers.SECRET not in f"{row} {''.join(format_exception(caught.value))}"


def test_a_store_that_does_not_answer_is_named(store):
    with store.away(), pytest.raises(UnreadableInputError, match=f"cannot be listed: .*{store.unreachable}") as caught:
        list_capture([store.uri("captures/quickstart")])
    assert store.credentials in caught.value.remedy


@pytest.mark.parametrize("kind", sorted(set(FileKind) - {FileKind.CHECKPOINT, FileKind.REFUSED}))
def test_an_object_that_is_gone_is_a_row(kind, store, uploaded):
    """By a name, here, that is itself in what stores say when it is not the file's fault."""
    gone = f"{uploaded}/connect-status-0/gone"
    file = CaptureFile(gone, kind, "raw:1", 10, "__transaction_state", 0)
    (row,) = rows("segments", [file], "")
    assert row["unreadable"][0]["reason"].startswith("CANNOT_OPEN: ")
    assert (row["path"], row["bytes"]) == (gone, 10)
    assert rows("record_batches", [file], "") == []


def test_an_object_that_breaks_off_fails_rather_than_passing_for_read(store):
    """Rows of half a file would be judged as if they were all of it."""
    uri = store.put(f"captures/broken/orders-0/{0:020}.log", bytes(50_000))
    with files.open_buffer(uri, block_bytes=1_000) as opened:
        assert opened[0:10] == bytes(10)
        store.delete(f"captures/broken/orders-0/{0:020}.log")
        with pytest.raises(UnreadableInputError, match="reading stopped at byte 30000") as caught:
            opened[30_000:30_010]
    assert caught.value.path == uri


def test_a_stream_gives_the_content(store, tmp_path):
    content = bytes(range(256)) * 200
    (tmp_path / "here").write_bytes(content)
    for place in (store.put("captures/streamed", content), str(tmp_path / "here")):
        with files.open_stream(place) as stream:
            assert b"".join(iter(lambda: stream.read(7_000), b"")) == content


def test_a_store_that_falls_silent_between_two_tables_fails_the_second(store, uploaded):
    """Else `segments` would say that all was read."""
    file = list_capture([uploaded]).of_kind(FileKind.SEGMENT)[0]
    with store.away():
        with pytest.raises(UnreadableInputError, match=f"cannot be opened: .*{store.unreachable}"):
            rows("record_batches", [file], "")
        (row,) = rows("segments", [file], "")
    assert row["unreadable"][0]["reason"].startswith("CANNOT_OPEN: ")


def test_an_object_that_can_be_seen_but_not_read_is_a_row(store):
    """As archived ones are."""
    uri = store.put(f"captures/archived/orders-0/{0:020}.log", bytes(50_000))
    with files.open_buffer(uri) as opened:
        store.delete(f"captures/archived/orders-0/{0:020}.log")
        with pytest.raises(OSError, match=store.gone):
            opened[0:10]


def test_of_large_batches_in_a_store_only_headers_are_downloaded(store, monkeypatch):
    one = encode_batch([Record(0, TS, None, bytes(16_384 - 100))], producer_id=1, producer_epoch=0, base_sequence=0)
    uri = store.put(
        f"captures/large/orders-0/{0:020}.log", b"".join(n.to_bytes(8, "big") + one[8:] for n in range(200))
    )
    downloaded = []
    read_at = files._read_at

    def counted(path: str, opened: Any, position: int, count: int) -> bytes:
        downloaded.append(count)
        return read_at(path, opened, position, count)

    monkeypatch.setattr(files, "_read_at", counted)
    monkeypatch.setattr(table_readers, "bytes_per_request", lambda rest: 1_024)
    (file,) = list_capture([uri]).files
    assert len(rows("record_batches", [file], "")) == 200
    assert 0 < sum(downloaded) < file.size / 5


def test_a_capture_json_in_a_store_that_is_broken_names_file_and_field(store):
    uri = store.put("captures/noted/capture.json", b'{"coordinator_partitions": "many"}')
    with pytest.raises(ConfigError) as caught:
        list_capture([store.uri("captures/noted")])
    assert (caught.value.path, caught.value.key) == (uri, "coordinator_partitions")


@pytest.mark.parametrize("store", [pytest.param("abfss", marks=pytest.mark.slow)], indirect=True)
def test_a_token_of_azures_opens_what_the_key_opens(uploaded, monkeypatch):
    by_key = list_capture([uploaded])
    monkeypatch.delenv("AZURE_STORAGE_KEY")
    for token in (store_servers.azure_token(), f"?{store_servers.azure_token()}"):
        monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", token)
        assert list_capture([uploaded]) == by_key
        assert rows("segments", by_key.files, "")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", store_servers.azure_token(permissions="w"))
    with pytest.raises(UnreadableInputError, match="AuthorizationPermissionMismatch"):
        list_capture([uploaded])


@pytest.fixture
def asked() -> Iterator[Receiver]:
    """A server that refuses everything."""
    with receiving() as server:
        server.otherwise = (403, b"")
        yield server


@pytest.mark.parametrize(("host", "folder"), [("127.0.0.1", "/acme/logs"), ("acme.blob.localhost", "/logs")])
@pytest.mark.parametrize("mark", ["", "?"])
def test_a_token_is_sent_where_the_endpoint_says_and_shown_to_nobody(asked, monkeypatch, host, folder, mark):
    """Pyarrow repeats the addresses it asks for, and the token is a part of them."""
    server = f"{host}:{urlsplit(asked.url).port}"
    monkeypatch.delenv("AZURE_STORAGE_KEY", raising=False)
    monkeypatch.setenv("AZURE_STORAGE_SERVICE_ENDPOINT", f"http://{server}/{'acme' if host[0] == '1' else ''}")
    monkeypatch.setenv(
        "AZURE_STORAGE_SAS_TOKEN", f"{mark}sp=r&sig={store_servers.SECRET.replace('=', '%3D')}&sv=2020-08-04"
    )
    place = "abfss://logs@acme.dfs.core.windows.net"
    with pytest.raises(UnreadableInputError, match=r"cannot be listed: .*403") as caught:
        list_capture([place])
    file = CaptureFile(f"{place}/orders-0/{0:020}.log", FileKind.SEGMENT, "raw:1", 10, "orders", 0)
    (row,) = rows("segments", [file], "")
    assert "403" in row["unreadable"][0]["reason"]
    assert store_servers.SECRET.rstrip("=") not in f"{row} {''.join(format_exception(caught.value))}"
    sent = {(headers["Host"], urlsplit(path).path.startswith(folder)) for _, path, headers, _ in asked.requests}
    assert sent == {(server, True)}
    assert {tuple(parse_qs(urlsplit(path).query)["sig"]) for _, path, *_ in asked.requests} == {(store_servers.SECRET,)}


@pytest.mark.parametrize(
    ("problem", "passes"),
    [
        (
            (
                "GetProperties failed for 'http://host/a/c/connect-configs-0/0.log'. Azure Error: [BlobNotFound] 404"
                " Not there."
            ),
            False,
        ),
        (
            "ReadAt for 'http://host/a/c/x' failed. Azure Error: [BlobArchived] 409 Not permitted on an archived blob.",
            False,
        ),
        (
            (
                "Azure Error: [AuthorizationPermissionMismatch] 403 This request is not authorized to perform this"
                " operation."
            ),
            False,
        ),
        ("Azure Error: [AuthenticationFailed] 403 Server failed to authenticate the request.", True),
        ("Azure Error: [ServerBusy] 503 The server is busy.", True),
        ("Azure Error: [OperationTimedOut] 500 The operation could not be completed within the permitted time.", True),
        ("Azure Error: [] Timeout waiting for socket to read.", True),
        ("google::cloud::Status(PERMISSION_DENIED: Permanent error, with a last message of Forbidden", False),
        ("google::cloud::Status(DEADLINE_EXCEEDED: Retry policy exhausted, with a last message of PerformWork()", True),
        ("When reading information for key 'connect-status-0/0.log' in bucket 'c': AWS Error ACCESS_DENIED", False),
        ("When reading information for key 'x' in bucket 'c': AWS Error SLOW_DOWN during HeadObject", True),
        (
            (
                "AccessControlException: Permission denied: user=x, access=EXECUTE,"
                ' inode="/connect-status-0":root:root:drwx------'
            ),
            False,
        ),
        ("StandbyException: Operation category READ is not supported in state standby.", True),
        ("failed to lookup address information: Temporary failure in name resolution", True),
    ],
)
def test_a_refusal_of_one_file_is_told_from_one_of_all(problem, passes):
    assert may_pass("abfss://c@a.dfs.core.windows.net/x", OSError(problem)) is passes
