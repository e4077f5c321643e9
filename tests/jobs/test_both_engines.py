"""The law of both engines: their tables are equal, and either continues what the other began."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from pyarrow import fs

import txnlib
from tests.support.both_engines import Asked, audit_by_embedded, audit_by_spark, differences, engines_of
from tests.support.store_servers import amazons
from txnlib.spark.frames import arrow_of

pytestmark = pytest.mark.classic

#: Of a real cluster. More captures are in `test_both_engines_of_more`: on Spark, an audit takes a minute.
NIGHTS = ("night-1", "night-2", "night-3")


@pytest.fixture(scope="module")
def nights(engine: Any, captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Where the nights are: the second one, which both engines audit, in an object store, whose keys are in the
    environment of every process, also of Spark's workers."""
    first, second, third = (str(captures / "nights-3.9" / night / "brokers") for night in NIGHTS)
    with amazons(tmp_path_factory.mktemp("server")) as store, pytest.MonkeyPatch.context() as patch:
        store.client.create_dir("night")
        fs.copy_files(second, "night/brokers", destination_filesystem=store.client, use_threads=False)
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.setitem(engine.spark.sparkContext.environment, name, os.environ[name])
        yield [first, store.uri("night/brokers"), third]


@pytest.fixture(scope="module")
def audited(nights: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders: the nights by the embedded engine; and the same, but that Spark audited the second one."""
    root = tmp_path_factory.mktemp("engines")
    first, second, third = nights

    def asked(capture: str, output: str) -> Asked:
        return Asked(capture, str(root / output), cluster="eu")

    audit_by_embedded([asked(first, "embedded")])
    copytree(root / "embedded", root / "both")
    audit_by_spark([asked(second, "both")])
    audit_by_embedded([asked(second, "embedded"), asked(third, "embedded"), asked(third, "both")])
    return root


def test_nobody_can_tell_by_the_tables_which_engine_made_them(audited):
    """Spark continues what the embedded engine began, and that goes on. That what it continues equals a full audit is
    `test_incremental`'s."""
    assert engines_of(audited / "embedded") == ["embedded"] * 3
    assert engines_of(audited / "both") == ["embedded", "spark", "embedded"]
    assert differences(audited / "both", audited / "embedded") == []


@pytest.mark.parametrize("name", ["partition_transactions", "hanging_transactions"])
def test_rows_are_read_as_frames_of_spark_have_them(audited, name):
    found = txnlib.open_audit(audited / "both")
    read, frame = txnlib.read(found.location)[name], arrow_of(found.table(name))
    assert read.column_names == frame.column_names
    assert sorted(map(repr, read.to_pylist())) == sorted(map(repr, frame.to_pylist()))
