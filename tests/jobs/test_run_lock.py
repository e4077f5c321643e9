"""Two audits of one cluster at a time, and their rows of audit_runs."""

import shutil
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from deltalake import DeltaTable

from txnlib.core.chains import Chain
from txnlib.engine.store import RunStore
from txnlib.errors import BusyError, OvertakenError
from txnlib.incremental import history_of
from txnlib.pipeline.run import Run
from txnlib.pipeline.run_lock import announce, claim, settle
from txnlib.pipeline.run_owner import LEASE, is_alive, start_of, this_process
from txnlib.settings import Settings

NOW = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.fixture
def sleepers():
    """Two processes that could be audits."""
    processes = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) for _ in range(2)]
    yield processes
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture
def sleeper(sleepers):
    return sleepers[0]


def owner_of(process):
    return f"{socket.gethostname()} {process.pid} {start_of(process.pid)}"


def test_a_process_is_known_by_its_host_its_id_and_its_start(sleeper):
    began = int(NOW.timestamp() * 1000)
    assert is_alive(this_process(), began, NOW)
    assert is_alive(owner_of(sleeper), began, NOW)
    host, process, start = owner_of(sleeper).split()
    assert not is_alive(f"{host} {process} {int(start) - 60}", began, NOW), "the id was given to another process since"
    sleeper.kill()
    sleeper.wait()
    assert not is_alive(owner := f"{host} {process} {start}", began, NOW), owner


def test_of_another_machine_only_the_time_tells():
    for age, alive in ((LEASE - timedelta(minutes=1), True), (LEASE, False)):
        assert is_alive("elsewhere 1 1", int((NOW - age).timestamp() * 1000), NOW) is alive


def run_of(engine, out, as_of_ms, owner, cluster="c"):
    settings = Settings(cluster=cluster, as_of_ms=as_of_ms, as_of_basis="given")
    store = engine.store(str(out), None)
    return Run(engine, RunStore(store, cluster, settings.run_id), settings, NOW, owner=owner)


def noted(out):
    rows = DeltaTable(f"{out}/audit_runs").to_pyarrow_table().to_pylist()
    return sorted((row["run_id"], row["status"], row["owner"]) for row in rows)


@pytest.mark.both
def test_a_second_audit_of_a_cluster_refuses_and_takes_over_from_a_dead_one(engine, tmp_path, sleeper):
    owners = owner_of(sleeper), this_process()
    first, second = (run_of(engine, tmp_path, n, owner) for n, owner in enumerate(owners, 1))
    claim(first)
    expected = (
        f"c is writing to these tables: run c-1 by {first.owner} .* since 2026-11-21 00:00:00Z.*Wait .*take_over=True"
    )
    with pytest.raises(BusyError, match=expected):
        claim(second)
    claim(other := run_of(engine, tmp_path, 3, this_process(), cluster="other"))
    sleeper.kill()
    sleeper.wait()
    claim(second)
    assert noted(tmp_path) == [
        ("c-1", "DIED", first.owner),
        ("c-2", "RUNNING", second.owner),
        ("other-3", "RUNNING", other.owner),
    ]


@pytest.mark.parametrize(("second_as_of", "looks_first"), [(1, 0), (1, 1), (2, 1)])
def test_of_two_audits_that_claim_at_once_the_second_takes_its_row_back(
    engine, tmp_path, sleepers, second_as_of, looks_first
):
    first, second = (
        run_of(engine, tmp_path, n, owner_of(each)) for n, each in zip((1, second_as_of), sleepers, strict=True)
    )
    second.started_at -= timedelta(minutes=5)  # it began first and claims second
    first.note("FAILED")  # of an attempt before
    announce(first)
    announce(second)
    for run in ((first, second), (second, first))[looks_first]:
        if run is first:
            settle(run)
        else:
            with pytest.raises(BusyError, match=f"run c-1 by {first.owner}"):
                settle(run)
    assert noted(tmp_path) == [("c-1", "RUNNING", first.owner)]


def test_an_audit_elsewhere_is_taken_over_from_only_if_one_is_told_to(engine, tmp_path):
    elsewhere, here = run_of(engine, tmp_path, 1, "elsewhere 1 1"), run_of(engine, tmp_path, 1, this_process())
    elsewhere.started_at = here.started_at = datetime.now(UTC)
    claim(elsewhere)
    with pytest.raises(BusyError):
        claim(here)
    assert noted(tmp_path) == [("c-1", "RUNNING", "elsewhere 1 1")]
    claim(here, take_over=True)
    assert noted(tmp_path) == [("c-1", "RUNNING", here.owner)]


def place_of(engine, out, as_of_ms, owner, night, chain="c-1", **more):
    """A run at a place in a chain, opened now."""
    settings = Settings(cluster="c", as_of_ms=as_of_ms, as_of_basis="given", chain=chain, night=night)
    store = engine.store(str(out), None)
    tables = RunStore(store, "c", settings.run_id, Chain(chain, night))
    return Run(engine, tables, settings, NOW, owner=owner, history=history_of(store, "c"), **more)


def ended(run):
    claim(run)
    run.note("DONE")


def test_an_audit_that_ended_since_another_was_opened_refuses_it(engine, tmp_path):
    """Both would continue night 0, and each would lack what the other had read."""
    ended(place_of(engine, tmp_path, 1, this_process(), 0))
    first, second = (place_of(engine, tmp_path, at, this_process(), 1) for at in (2, 3))
    ended(first)
    before = noted(tmp_path)
    with pytest.raises(OvertakenError, match=r"run c-3 .* another audit, run c-2, has ended .*\. Nothing was written"):
        claim(second)
    assert noted(tmp_path) == before
    ended(place_of(engine, tmp_path, 3, this_process(), 2))


@pytest.fixture(scope="module")
def ingested(engine, tmp_path_factory):
    """Tables of a first night that ended, and of a second that was ingested."""
    out = tmp_path_factory.mktemp("nights")
    ended(place_of(engine, out, 1, this_process(), 0))
    second = place_of(engine, out, 2, this_process(), 1)
    claim(second)
    second.note("INGESTED")
    return out


@pytest.mark.parametrize(
    ("as_of_ms", "chain", "night", "status", "is_refused"),
    [
        pytest.param(3, "c-1", 1, "DONE", True, id="another took its place"),
        pytest.param(3, "c-1", 1, "DIED", True, id="another that died replaced its rows"),
        pytest.param(3, "c-1", 0, "DIED", True, id="the first night was read again"),
        pytest.param(3, "c-1", 2, "DONE", True, id="another continues it"),
        pytest.param(3, "c-1", 2, "DIED", False, id="another that died continued it"),
        pytest.param(3, "c-3", 0, "DONE", False, id="another chain began"),
        pytest.param(2, "c-1", 1, "DONE", False, id="itself"),
    ],
)
def test_a_run_is_opened_again_only_in_its_place(
    engine, ingested, tmp_path, as_of_ms, chain, night, status, is_refused
):
    shutil.copytree(ingested, tmp_path, dirs_exist_ok=True)
    other = place_of(engine, tmp_path, as_of_ms, this_process(), night, chain)
    other.started_at += timedelta(minutes=1)
    claim(other)
    other.note(status)
    again = place_of(engine, tmp_path, 2, this_process(), 1, began_at=NOW)
    if is_refused:
        with pytest.raises(OvertakenError, match=f"run c-2 .* run c-{as_of_ms}, "):
            claim(again)
    else:
        claim(again)
