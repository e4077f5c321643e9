"""Are tables behind a real S3 protocol the same tables?"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from tests.support.delta_tables import NOW, at, txn_audit, write, write_run
from tests.support.stores import microsofts

BUCKET = "tables"


@pytest.fixture
def store() -> Iterator[fs.S3FileSystem]:
    """An S3 server on loopback, and an environment that names it as operators do."""
    pytest.importorskip("moto.server")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    # A process of its own: deltalake keeps the interpreter's lock while it waits for an answer.
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _wait_for(port)
    set_here = {"ENDPOINT_URL": f"http://127.0.0.1:{port}", "REGION": "eu-central-1", "EC2_METADATA_DISABLED": "true"}
    set_here |= {"ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test"}
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)
        for name, value in set_here.items():
            patch.setenv(f"AWS_{name}", value)
        client = fs.S3FileSystem(
            endpoint_override=f"127.0.0.1:{port}", scheme="http", region="eu-central-1", allow_bucket_creation=True
        )
        client.create_dir(BUCKET)
        yield client
    server.terminate()
    server.wait()


def _wait_for(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError("the S3 server does not answer")


def same_answers(folder: Path, client: fs.FileSystem, root: str) -> None:
    """Asserts that tables in a bucket, whose uri is `root`, answer as they do in the folder that they are copied from."""
    write_run(folder)
    write(folder, "late_transactions", {"topic": "orders", "partition": 1, "transaction_start": at(NOW), "late_by": "BOTH"})
    fs.copy_files(str(folder), f"{BUCKET}/audits/out", destination_filesystem=client, use_threads=False)
    for command, shown in {"find-late": "orders", "runs": f"test-{NOW}"}.items():
        in_folder = txn_audit(folder, command)
        assert (in_folder[0], shown in in_folder[1]) == (0, True)
        assert txn_audit(f"{root}/audits/out", command) == in_folder


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_tables_in_a_store_are_read_as_those_in_a_folder(store, tmp_path: Path, scheme):
    same_answers(tmp_path, store, f"{scheme}://{BUCKET}")


@pytest.mark.slow
def test_tables_in_azure_are_read_as_those_in_a_folder(tmp_path: Path):
    (tmp_path / "server").mkdir()
    with microsofts(tmp_path / "server") as azure:
        azure.client.create_dir(BUCKET)
        same_answers(tmp_path / "tables", azure.client, azure.uri(BUCKET))


def test_a_folder_of_a_store_without_tables_is_named(store):
    code, out, err = txn_audit(f"s3://{BUCKET}/nothing", "list")
    assert (code, out) == (2, "")
    assert f"s3://{BUCKET}/nothing: no tables of an audit can be read there" in err
