"""Tables after an audit that was killed, and the next audit."""

import os
import random
import signal
import subprocess
import sys

import pytest
from deltalake import DeltaTable

from tests.support.daemons import wait_until
from txnlib.core.schema import ALWAYS_THERE
from txnlib.jobs import audit
from txnlib.jobs.main import main

AS_OF = ["--as-of", "2026-11-21T07:42:41.899Z"]


@pytest.fixture
def killed(repository, tmp_path):
    """An output, and the tables that were written before the audit was killed at a random one of them."""
    out, sample = tmp_path / "out", repository / "examples" / "quickstart" / "brokers"
    process = subprocess.Popen(
        [sys.executable, str(repository / "jobs" / "audit.py"), "--input", str(sample), "--output", str(out), *AS_OF],
        env={**os.environ, "PYTHONPATH": str(repository)},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    least = random.Random(20261121).randint(3, 12)
    wait_until(lambda: len(written(out)) >= least, "tables")
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it ended before it could be killed"
    return out, sample, written(out)


def written(out):
    """The tables into which rows were written: a commit creates one, another notes its constraints."""
    found = [path.parent for path in out.glob("*/_delta_log")]
    return [path.name for path in found if any(each["operation"] == "WRITE" for each in history(path))]


def history(table):
    return DeltaTable(str(table)).history() if DeltaTable.is_deltatable(str(table)) else []


def rows(out, name):
    return DeltaTable(f"{out}/{name}").to_pyarrow_table().to_pylist()


def test_a_killed_audit_leaves_whole_tables_and_the_next_one_mends_them(killed, capsys):
    out, sample, names = killed
    before = {name: rows(out, name) for name in names}
    assert [row["status"] for row in before.get("audit_runs", [])] in ([], ["RUNNING"])
    assert main(audit.job, ["--input", str(sample), "--output", str(out), *AS_OF]) == 0
    for name in names:
        if name != "audit_runs":
            assert sorted(map(repr, rows(out, name))) == sorted(map(repr, before[name])), f"{name} was whole"
    assert [row["status"] for row in rows(out, "audit_runs")] == ["DONE"]
    assert {path.name for path in out.iterdir()} >= ALWAYS_THERE
    assert "1 HANGING" in capsys.readouterr().out
