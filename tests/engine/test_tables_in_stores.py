"""Tables of the embedded engine in an object store on this machine."""

import os
from collections.abc import Iterator

import pytest

from tests.engine.test_store import positions, rows
from tests.support.store_servers import ACCOUNT, Store, amazons, microsofts
from txnlib.ask.delta_rows import Tables
from txnlib.core.schema import ALWAYS_THERE
from txnlib.engine.store import RunStore
from txnlib.store_options import store_options

BUCKET = "written"
NAME = "quarantine"
AZURES = f"https://{ACCOUNT}.blob.core.windows.net"


@pytest.fixture(params=[amazons, pytest.param(microsofts, marks=pytest.mark.slow)], ids=["s3", "abfss"])
def server(request, tmp_path) -> Iterator[Store]:
    with request.param(tmp_path) as store:
        store.client.create_dir(BUCKET)
        yield store


def test_tables_in_a_store_are_written_and_read_as_those_in_a_folder(engine, server, monkeypatch):
    monkeypatch.delenv("AWS_REGION", raising=False)  # other stores than Amazon's have none
    monkeypatch.setenv("AZURE_STORAGE_USE_EMULATOR", "true")  # it lists all, whatever it was asked to begin with
    monkeypatch.setenv("AZURITE_BLOB_STORAGE_URL", os.environ.get(server.endpoint, "").removesuffix(f"/{ACCOUNT}"))
    output = server.uri(f"{BUCKET}/audits/out")
    store = engine.store(output, None)
    assert not store.exists(NAME)
    monday, tuesday = RunStore(store, "eu", "eu-1"), RunStore(store, "eu", "eu-2")
    monday.write(NAME, rows(engine.spark, 1, 2))
    tuesday.write(NAME, rows(engine.spark, 3))
    monday.write(NAME, rows(engine.spark, 4))
    monday.compact(NAME)
    again = engine.store(output, None)
    assert (positions(RunStore(again, "eu", "eu-1")), positions(RunStore(again, "eu", "eu-2"))) == ([4], [3])
    again.tables.delete(NAME, "run_id = 'eu-2'")
    again.tables.vacuum(NAME)
    assert [row["position"] for row in again.read_all(NAME).collect()] == [4]
    for name in ALWAYS_THERE - {NAME}:
        assert not again.exists(name)
    assert [row["position"] for row in Tables(output).rows(NAME, ["position"])] == [4]


@pytest.mark.parametrize(
    ("place", "set_by_user", "also"),
    [
        ("s3", {}, {}),
        ("s3", {"AWS_ENDPOINT_URL": "https://minio"}, {"AWS_REGION": "us-east-1"}),
        ("s3", {"AWS_ENDPOINT_URL": "http://minio:9000"}, {"AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}),
        (
            "s3a",
            {"AWS_ENDPOINT_URL": "https://a", "AWS_ENDPOINT_URL_S3": "http://b", "AWS_REGION": "eu-west-1"},
            {"AWS_ALLOW_HTTP": "true", "AWS_ENDPOINT_URL": "http://b"},
        ),
        ("s3", {"AWS_DEFAULT_REGION": "eu-west-1"}, {"AWS_REGION": "eu-west-1"}),
        ("abfss", {}, {}),
        ("abfss", {"AZURE_STORAGE_KEY": "a2V5"}, {"AZURE_STORAGE_ACCOUNT_KEY": "a2V5"}),
        (
            "abfss",
            {"AZURE_STORAGE_SERVICE_ENDPOINT": AZURES},
            {"AZURE_STORAGE_ENDPOINT": AZURES, "AZURE_ALLOW_HTTP": "false"},
        ),
        (
            "abfss",
            {"AZURE_STORAGE_SERVICE_ENDPOINT": "http://azurite:10000/a"},
            {"AZURE_STORAGE_ENDPOINT": "http://azurite:10000/a", "AZURE_ALLOW_HTTP": "true"},
        ),
        ("gs", {"AWS_ENDPOINT_URL": "http://minio:9000", "AZURE_STORAGE_KEY": "a2V5"}, {}),
    ],
)
def test_settings_of_the_tools_of_a_store_reach_the_tables(monkeypatch, place, set_by_user, also):
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION", "AZURE_STORAGE_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("AZURE_STORAGE_SERVICE_ENDPOINT", raising=False)
    for name, value in set_by_user.items():
        monkeypatch.setenv(name, value)
    assert store_options(f"{place}://tables/out") == also
    assert store_options("/tables/out") == {}
