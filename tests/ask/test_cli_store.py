"""Tables in an object store, read by the S3 protocol."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyarrow import fs

from tests.support.delta_tables import NOW, at, txn_audit, write, write_run
from tests.support.store_servers import Store, amazons, hadoops, microsofts

BUCKET = "tables"


@pytest.fixture
def amazon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with amazons(tmp_path_factory.mktemp("server")) as store:
        store.client.create_dir(BUCKET)
        yield store


def same_answers(folder: Path, client: fs.FileSystem, root: str) -> None:
    """Asserts that tables in a bucket, whose uri is `root`, answer as they do in the folder that they are copied
    from."""
    write_run(folder)
    write(
        folder,
        "late_transactions",
        {"topic": "orders", "partition": 1, "transaction_start": at(NOW), "verdict": "LATE", "reason": "OVERDUE"},
    )
    fs.copy_files(str(folder), f"{BUCKET}/audits/out", destination_filesystem=client, use_threads=False)
    for command, shown in {"find-late": "orders", "runs": f"test-{NOW}"}.items():
        in_folder = txn_audit(folder, command)
        assert (in_folder[0], shown in in_folder[1]) == (0, True)
        assert txn_audit(f"{root}/audits/out", command) == in_folder


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_tables_in_a_store_are_read_as_those_in_a_folder(amazon, tmp_path: Path, scheme):
    same_answers(tmp_path, amazon.client, f"{scheme}://{BUCKET}")


@pytest.mark.slow
@pytest.mark.parametrize("server", [pytest.param(microsofts, id="abfss"), pytest.param(hadoops, id="hdfs")])
def test_tables_in_other_stores_are_read_as_those_in_a_folder(tmp_path: Path, server):
    (tmp_path / "server").mkdir()
    with server(tmp_path / "server") as store:
        store.client.create_dir(BUCKET)
        same_answers(tmp_path / "tables", store.client, store.uri(BUCKET))


def test_a_folder_of_a_store_without_tables_is_named(amazon):
    code, out, err = txn_audit(f"s3://{BUCKET}/nothing", "list")
    assert (code, out) == (2, "")
    assert f"s3://{BUCKET}/nothing: no tables of an audit can be read there" in err
