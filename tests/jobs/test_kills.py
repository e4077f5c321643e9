"""Tables after an audit that was killed, and the next audit."""

import os
import random
import shlex
import signal
import subprocess
import sys

import pytest
from deltalake import DeltaTable

from txnlib.jobs import audit
from txnlib.jobs.main import main
from txnlib.spark.schemas import TABLES

AS_OF = ["--as-of", "2026-11-21T07:42:41.899Z"]


@pytest.fixture
def killed(repository, tmp_path):
    """An output, and the tables that were written before the audit was killed at a random one of them."""
    out, sample = tmp_path / "out", repository / "examples" / "quickstart" / "brokers"
    submit = ["--master", "local[2]", "--driver-memory", "1g", "--jars", os.environ["TXNLIB_DELTA_JARS"]]
    settings = ["--properties-file", str(repository / "conf" / "spark-defaults.conf"), "pyspark-shell"]
    process = subprocess.Popen(
        [sys.executable, str(repository / "jobs" / "audit.py"), "--input", str(sample), "--output", str(out), *AS_OF],
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": shlex.join([*submit, *settings]), "PYTHONPATH": str(repository)},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )
    last, written = random.Random(20261121).randint(3, 12), []
    assert process.stderr is not None
    for line in process.stderr:
        if (name := line.partition(":")[0]) in TABLES:
            written.append(name)
        if len(written) == last:
            break
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert len(written) == last, "it ended before it could be killed"
    return out, sample, written


def rows(out, name):
    return DeltaTable(f"{out}/{name}").to_pyarrow_table().to_pylist()


def test_a_killed_audit_leaves_whole_tables_and_the_next_one_mends_them(spark, killed, tmp_path, capsys):
    out, sample, written = killed
    before = {name: rows(out, name) for name in written}
    assert [row["status"] for row in before.get("audit_runs", [])] in ([], ["RUNNING"])
    assert main(audit.job, ["--input", str(sample), "--output", str(out), *AS_OF]) == 0
    for name in written:
        if name != "audit_runs":
            assert sorted(map(repr, rows(out, name))) == sorted(map(repr, before[name])), f"{name} was whole"
    assert [row["status"] for row in rows(out, "audit_runs")] == ["DONE"]
    assert {path.name for path in out.iterdir()} == set(TABLES)
    assert "1 HANGING" in capsys.readouterr().out
