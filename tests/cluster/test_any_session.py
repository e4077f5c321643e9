"""Audits on sessions that others made, with Delta's two settings: plain spark-submit, and notebooks of both kinds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.daemons import assert_same_tables, bare_environment, daemons
from txnlib.ask.delta_rows import finished_run, open_tables
from txnlib.ask.report_rows import report_of
from txnlib.ask.terminal_report import render
from txnlib.core.schema.views import VIEWS
from txnlib.engine.spark import DELTA
from txnlib.spark.schemas import TABLES

#: What a notebook does before an audit, in it, and after it. It prints what it then has.
NOTEBOOK = """
import json, sys
from pyspark.sql import SparkSession

begin, capture, out, names = json.loads(sys.argv[1])
exec(begin)
spark.range(1).createOrReplaceTempView("theirs")

def state():
    settings = {key: value for key, value in spark.conf.getAll.items() if "fieldId" not in key}  # Delta's own
    views = [row["viewName"] for row in spark.sql("SHOW VIEWS IN spark_catalog.default").collect()]
    return [settings, views, spark.catalog.currentCatalog(), spark.catalog.currentDatabase()]

before = state()
import txnlib
found = txnlib.audit(capture, output=out)
columns = {name: len(found.table(name).columns) for name in names}
mine = spark.createDataFrame([("payments",)], "topic STRING")
print(json.dumps({
    "as it was": state() == before,
    "active": SparkSession.active() is spark,
    "open": sorted(row["verdict"] for row in found.table("open_transactions").join(mine, "topic").collect()),
    "opened again": txnlib.open_audit(out).hanging.count(),
    "columns": columns,
}))
"""
#: Settings of a session by which SQL means something else, or another catalog is the current one.
HOSTILE = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "7",
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.session.timeZone": "Asia/Kolkata",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.catalog.other": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
    "spark.sql.catalog.other.url": "jdbc:derby:memory:other;create=true",
    "spark.sql.catalog.other.driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver",
}
BARE = """
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
for key, value in {settings!r}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
"""
AND_HOSTILE = """
for key, value in {settings!r}.items():
    spark.conf.set(key, value)
spark.catalog.setCurrentCatalog("other")
"""


def ran(*argv: object, environment: dict[str, str] | None = None) -> str:
    """What a program prints, in an environment that has nothing of ours but the packages."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**bare_environment(), "PATH": path, "SPARK_LOCAL_IP": "127.0.0.1", **(environment or {})}
    done = subprocess.run([*map(str, argv)], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def assert_left_as_it_was(begin: str, capture: Path, out: Path) -> None:
    names = [*(TABLES.keys() - {"audit_runs"}), *VIEWS]
    said = ran(sys.executable, "-c", NOTEBOOK, json.dumps([begin, str(capture), str(out), names]))
    has = json.loads(said.splitlines()[-1])
    assert (has["as it was"], has["active"], has["opened again"]) == (True, True, 1)
    assert has["open"] == ["HANGING", "OPEN"], "frames are those of their session"
    assert min(has["columns"].values()) > 1


@pytest.mark.parametrize("more", ["", AND_HOSTILE.format(settings=HOSTILE)], ids=["bare", "hostile"])
def test_an_audit_in_the_session_of_a_notebook_has_the_same_tables(audited_here, capture, tmp_path, more):
    settings = {**DELTA, "spark.jars": os.environ["TXNLIB_DELTA_JARS"]}
    assert_left_as_it_was(BARE.format(settings=settings) + more, capture, tmp_path / "out")
    assert_same_tables(tmp_path / "out", audited_here)


def test_an_audit_in_the_session_of_a_connected_notebook_has_the_same_tables(audited_here, capture, tmp_path):
    """The server's Python has no txnlib."""
    (tmp_path / "server").mkdir()
    with daemons(tmp_path / "server") as started:
        begin = f"spark = SparkSession.builder.remote({started.connect_server()!r}).getOrCreate()"
        assert_left_as_it_was(begin, capture, tmp_path / "out")
    assert_same_tables(tmp_path / "out", audited_here)


def test_plain_spark_submit_prints_the_report_and_makes_the_same_tables(audited_here, repository, capture, tmp_path):
    out = tmp_path / "out"
    asked = ["--input", capture, "--output", out, "--quiet"]
    said = ran("spark-submit", "--jars", os.environ["TXNLIB_DELTA_JARS"], repository / "jobs" / "audit.py", *asked)
    report = render(report_of(finished_run(open_tables(str(out)))))
    assert said.splitlines()[:20] == report.splitlines()[:20]
    assert said.startswith("txnlib audit")
    assert_same_tables(out, audited_here)
