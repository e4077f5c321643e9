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
from tests.support.audits import printed
from tests.support.both_engines import Asked, audit_by_embedded, audit_by_spark, differences, engines_of
from tests.support.daemons import OF_READING
from tests.support.store_servers import amazons
from txnlib.ask.delta_rows import Tables, open_tables, runs
from txnlib.core.schema import TABLES
from txnlib.spark.frames import arrow_of

pytestmark = pytest.mark.classic

#: Of each cluster, two nights. More captures are in `test_both_engines_of_more`: on Spark, an audit takes a minute.
NIGHTS = ("night-1", "night-2")
#: What says how a run was made, or what earlier runs showed; proofs rest on what they read, too.
OF_RUNS = {"audit_runs", "ended_transactions"}
COLUMNS_OF_RUNS = {*OF_READING, "carried", "first_seen", "runs_seen", "safety"}


@pytest.fixture(scope="module")
def nights(engine: Any, captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The URIs of two nights of a real cluster in an object store, whose keys are in the environment of every process,
    also of Spark's workers."""
    with amazons(tmp_path_factory.mktemp("server")) as store, pytest.MonkeyPatch.context() as patch:
        for night in NIGHTS:
            store.client.create_dir(night)
            here = str(captures / "nights-3.9" / night / "brokers")
            fs.copy_files(here, f"{night}/brokers", destination_filesystem=store.client, use_threads=False)
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.setitem(engine.spark.sparkContext.environment, name, os.environ[name])
        first, second = (store.uri(f"{night}/brokers") for night in NIGHTS)
        yield first, second


@pytest.fixture(scope="module")
def audited(nights: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder: by each engine, the tables of the first night; two nights by one engine, and by one after the other;
    the second night alone."""
    root = tmp_path_factory.mktemp("engines")
    first, second = nights

    def asked(capture: str, output: str) -> Asked:
        return Asked(capture, str(root / output), cluster="eu")

    for engine, audit in (("embedded", audit_by_embedded), ("spark", audit_by_spark)):
        audit([asked(first, engine)])
        copytree(root / engine, root / f"begun by {engine}")
    copytree(root / "embedded", root / "nights")
    audit_by_spark([asked(second, "begun by embedded")])
    audit_by_embedded([asked(second, output) for output in ("nights", "begun by spark", "full")])
    return root


def test_both_engines_make_equal_tables(audited):
    folders = [audited / engine for engine in ("embedded", "spark")]
    assert [engines_of(folder) for folder in folders] == [["embedded"], ["spark"]]
    assert differences(*folders) == []


@pytest.mark.parametrize("name", ["audit_runs", "partition_transactions", "hanging_transactions", "brokers"])
def test_rows_are_read_as_frames_of_spark_have_them(audited, name):
    found = txnlib.open_audit(audited / "spark")
    read, frame = txnlib.read(found.location)[name], arrow_of(found.table(name))
    assert read.column_names == frame.column_names
    assert sorted(map(repr, read.to_pylist())) == sorted(map(repr, frame.to_pylist()))


@pytest.mark.parametrize(("begun", "engines"), [("embedded", ["embedded", "spark"]), ("spark", ["spark", "embedded"])])
def test_what_one_engine_began_and_the_other_continued_is_as_if_one_had_made_it(audited, begun, engines):
    mixed = audited / f"begun by {begun}"
    assert engines_of(mixed) == engines
    assert differences(mixed, audited / "nights") == []


@pytest.mark.parametrize("begun", ["embedded", "spark"])
def test_what_one_engine_began_and_the_other_continued_equals_a_full_audit(audited, begun):
    mixed, full = (Tables(str(audited / name)) for name in (f"begun by {begun}", "full"))
    (night, *_), (run,) = (runs(open_tables(each.root)) for each in (mixed, full))
    assert night["run_id"] == run["run_id"]
    for name in TABLES.keys() - OF_RUNS:
        columns = [each.name for each in TABLES[name].columns if each.name not in COLUMNS_OF_RUNS]
        rows = [printed(each.rows(name, columns, [("run_id", "=", run["run_id"])])) for each in (mixed, full)]
        assert rows[0] == rows[1], name
