"""Tables after an audit that was killed, and after the next one."""

import os
import random
import resource
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from shutil import copytree

import pytest

from tests.support.both_engines import differences, rows_of
from tests.support.daemons import wait_until
from txnlib.core.schema import TABLES
from txnlib.engine.retention import forget_runs
from txnlib.jobs import audit
from txnlib.jobs.program import main
from txnlib.pipeline import parts
from txnlib.pipeline.clock import now

pytestmark = pytest.mark.both

#: How many commits audits make before they are killed: somewhere between the first table and the last ones.
COMMITS = random.Random(20261121).sample(range(2, 25), 3)


@pytest.fixture(scope="module")
def asked(request, repository):
    """The options of an audit of the sample into a folder, on the engine of the tests."""
    sample, engine = repository / "examples" / "quickstart" / "brokers", request.config.option.engine
    return lambda out: ["--input", str(sample), "--output", str(out), "--engine", engine]


@pytest.fixture(scope="module")
def fresh(engine, asked, tmp_path_factory) -> Path:
    """The tables of an audit that nobody killed."""
    out = tmp_path_factory.mktemp("fresh") / "out"
    assert main(audit.job, asked(out)) == 0
    return out


def commits_of(out):
    return len(list(out.glob("*/_delta_log/*.json")))


def started(options, **how):
    repository = Path(__file__).resolve().parent.parent.parent
    return subprocess.Popen(
        [sys.executable, str(repository / "jobs" / "audit.py"), *options],
        env={**os.environ, "PYTHONPATH": str(repository)},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        **how,
    )


def kill_in_the_middle(options, out, commits):
    before, process = commits_of(out), started(options)
    wait_until(lambda: commits_of(out) >= before + commits, "commits")
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, "it ended before it could be killed"


@pytest.mark.parametrize("commits", COMMITS)
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "again"])
def test_a_killed_audit_leaves_each_table_as_it_was_or_whole_and_the_next_one_mends_all(
    asked, fresh, tmp_path, is_first, commits
):
    out = tmp_path / "out"
    if not is_first:
        copytree(fresh, out)
    kill_in_the_middle(asked(out), out, commits)
    assert not (is_first and "'DONE'" in str(rows_of(out, "audit_runs")))
    for name in TABLES.keys() - {"audit_runs"}:
        left = rows_of(out, name)
        assert left == rows_of(fresh, name) or (is_first and left == []), name
    assert main(audit.job, asked(out)) == 0
    assert differences(out, fresh) == []


@pytest.mark.parametrize("most", [6_000, 12_000, 20_000])
def test_an_audit_that_could_write_no_large_file_fails_and_the_next_one_mends_all(asked, fresh, tmp_path, most):
    """As on a full disk: first the small tables are written."""
    out, limits = tmp_path / "out", (most, resource.RLIM_INFINITY)
    assert started(asked(out), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limits)).wait() == 1
    for name in TABLES.keys() - {"audit_runs"}:
        assert rows_of(out, name) in ([], rows_of(fresh, name)), name
    assert main(audit.job, asked(out)) == 0
    assert differences(out, fresh) == []


@pytest.mark.parametrize("is_first", [True, False], ids=["first", "again"])
def test_two_audits_of_the_same_at_once_leave_the_tables_of_one(asked, fresh, tmp_path, is_first):
    out = tmp_path / "out"
    if not is_first:
        copytree(fresh, out)
    both = [started(asked(out)) for _ in range(2)]
    assert [each.wait() for each in both] == [0, 0]
    assert differences(out, fresh) == []


def test_two_audits_beside_the_deletion_of_what_they_use_have_the_rows_of_full_ones(
    engine, asked, tmp_path, monkeypatch
):
    out, full, nights = tmp_path / "out", tmp_path / "full", ("2099-01-01T00:00:00Z", "2099-01-01T00:00:01Z")
    with monkeypatch.context() as then:  # what nobody uses may be deleted
        then.setattr(parts, "now", lambda: now() - timedelta(days=8))
        assert main(audit.job, [*asked(out), "--as-of", "1000", "--cluster", "eu"]) == 0
    store, before = engine.store(str(out), None), len(list((out / "audit_runs" / "_delta_log").glob("*.json")))
    both = [started([*asked(out), "--as-of", night, "--cluster", "eu", "--keep-days", "1"]) for night in nights]
    wait_until(lambda: len(list((out / "audit_runs" / "_delta_log").glob("*.json"))) > before, "a run")
    while any(each.poll() is None for each in both):
        forget_runs(store, "eu", 2000)
    assert [each.wait() for each in both] == [0, 0]
    for night in nights:
        assert main(audit.job, [*asked(full), "--as-of", night, "--cluster", "eu", "--mode", "full"]) == 0
    for name in ("record_batches", "segments", "coverage", "producer_spans", "partition_transactions"):
        assert rows_of(out, name) == rows_of(full, name), name
