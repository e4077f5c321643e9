"""Incremental audits against full ones, over real nights and logs cut anywhere."""

import random
import shutil
from collections import Counter

import pytest

from tests.support.audits import audited, needed_for, printed
from tests.support.daemons import OF_EARLIER_RUNS
from txnlib.ask.delta_rows import Tables
from txnlib.core.schema.rows_of_runs import OF_LOG
from txnlib.engine.retention import forget_runs
from txnlib.engine.store import RunStore
from txnlib.incremental import resumption
from txnlib.jobs.audit import ingest_dumps, reconstruct_state, report_transactions
from txnlib.jobs.main import main
from txnlib.jobs.options import AUDIT, parse, request_of
from txnlib.pipeline.audit_request import AuditRequest
from txnlib.pipeline.run import open_run, reopen_run
from txnlib.pipeline.scheduler import carry_out
from txnlib.pipeline.tables import AUDIT as AUDIT_STEPS
from txnlib.spark.frames import arrow_of
from txnlib.spark.schemas import TABLES

#: What says how a run was made, or what earlier runs showed.
OF_RUNS = {"audit_runs", "ended_transactions"}
COLUMNS_OF_RUNS = {*OF_EARLIER_RUNS, "first_seen", "runs_seen"}
READ = (
    "record_batches",
    "segments",
    "coverage",
    "quarantine",
    "producer_spans",
    "partition_transactions",
    "open_transactions",
)


@pytest.fixture(autouse=True)
def small_runs_resume(monkeypatch):
    monkeypatch.setattr(resumption, "MIN_RESUMED_BYTES", 0)


def night(capture, output, *options, names=TABLES):
    """A run with real tables, in a folder."""
    given = ["--input", str(capture), "--output", str(output), "--cluster", "eu", "--mode", "incremental", *options]
    run = open_run(request_of(parse(AUDIT, "", given)))
    needed = set().union(*map(needed_for, names))
    carry_out(run, [step for step in AUDIT_STEPS if step.name in needed])
    run.note("DONE")
    return run


def rows_of(table):
    shown = [name for name in table.column_names if name not in COLUMNS_OF_RUNS]
    return printed(table.select(shown).to_pylist())


def same_tables(run, full, names=TABLES):
    """Read by SQL and, if they are rows of the log, while the run lasts and by a later one: the rows of a full
    audit."""
    later = RunStore(run.tables.store, run.tables.cluster, run.tables.run_id, run.tables.chain)
    for name in sorted(set(names) - OF_RUNS):
        expected = rows_of(arrow_of(full.frame(name)))
        # Only rows of the log may be those of an earlier run.
        for tables in (run.tables, later) if name in OF_LOG else ():
            assert rows_of(arrow_of(tables.read(name))) == expected, name
        shown = [column for column in TABLES[name].names if column not in COLUMNS_OF_RUNS]
        found = Tables(run.tables.store.output).rows(name, shown, [("run_id", "=", run.tables.run_id)])
        assert printed(found) == expected, name


def positions_read(run):
    return {segment.path: segment.position for segment in run.capture.resumed}


def test_two_nights_equal_full_audits(captures, tmp_path):
    nights = [captures / "nights-3.9" / f"night-{number}" / "brokers" for number in (1, 2)]
    first, second = (
        night(capture, tmp_path / "out", names=names) for capture, names in zip(nights, (OF_LOG, TABLES), strict=True)
    )
    assert (first.settings.night, second.settings.night, second.settings.chain) == (0, 1, first.settings.run_id)
    assert len(positions_read(second)) >= 6
    same_tables(second, audited(nights[1], "--cluster", "eu"))


@pytest.mark.slow
def test_three_nights_equal_full_audits(captures, tmp_path):
    """Segments that rolled, were deleted and grew; a topic that was deleted and made again under its name."""
    nights = [captures / "nights-3.9" / f"night-{number}" / "brokers" for number in (1, 2, 3)]
    runs = [night(capture, tmp_path / "out") for capture in nights]
    assert len(positions_read(runs[2])) >= 10
    assert runs[2].resumption.appended
    for run, capture in zip(runs, nights, strict=True):
        same_tables(run, audited(capture, "--cluster", "eu"), TABLES if run is runs[2] else OF_LOG)


def last_batch(content):
    """The position of the last batch; None if there is none."""
    found, position = None, 0
    while position + 12 <= len(content):
        found, position = position, position + 12 + int.from_bytes(content[position + 8 : position + 12], "big")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_logs_cut_at_random_places_into_nights(captures, tmp_path, seed):
    """Segments that were not captured, were cut, written again, or damaged where no night had read them; the last night
    has all."""
    chance = random.Random(seed)
    whole, runs, shown = captures / "hostile-3.9" / "brokers", [], Counter[str]()
    for number in range(3):
        capture = tmp_path / str(number)
        shutil.copytree(whole, capture)
        for segment in [] if number == 2 else sorted(capture.rglob("*.log")):
            fate, name = chance.random(), str(segment.relative_to(capture))
            if fate < 0.1:
                segment.unlink()
            elif fate < 0.7:
                size = segment.stat().st_size
                segment.write_bytes(segment.read_bytes()[: chance.randint(0, size)])
            elif fate < 0.8:
                content = bytearray(segment.read_bytes())
                if shown[name] < len(content):
                    content[chance.randrange(shown[name], len(content))] ^= 0x10
                segment.write_bytes(content)
            elif fate < 0.9 and (found := last_batch(segment.read_bytes())) is not None:
                content = bytearray(segment.read_bytes())
                content[found + 15] += 1  # its leader's epoch: a new leader got the same bytes from the producer
                segment.write_bytes(content)
            if segment.exists():
                shown[name] = max(shown[name], segment.stat().st_size)
        runs.append(night(capture, tmp_path / "out", "--as-of", f"{1_795_000_000_000 + number}", names=READ))
    for number, run in enumerate(runs):
        full = audited(tmp_path / str(number), "--cluster", "eu", "--as-of", f"{run.settings.as_of_ms}")
        same_tables(run, full, READ)


@pytest.mark.slow
def test_what_was_damaged_the_night_before_is_read_again(captures, tmp_path):
    whole, damaged = captures / "hostile-3.9" / "brokers", tmp_path / "night"
    shutil.copytree(whole, damaged)
    segment = max(damaged.glob("*/*/*.log"), key=lambda path: path.stat().st_size * ("__" not in str(path)))
    content = bytearray(segment.read_bytes())
    content[len(content) // 3 : len(content) // 3 + 200] = bytes(200)
    segment.write_bytes(content)
    night(damaged, tmp_path / "out", "--as-of", "1000", names=READ)
    run = night(whole, tmp_path / "out", "--as-of", "2000", names=READ)
    assert str(whole / segment.relative_to(damaged)) not in positions_read(run)
    same_tables(run, audited(whole, "--cluster", "eu", "--as-of", "2000"), READ)


@pytest.fixture(scope="module")
def grown(captures, tmp_path_factory):
    """A capture, and what it was before it grew."""
    whole, before = captures / "causes-3.9" / "brokers", tmp_path_factory.mktemp("before") / "brokers"
    chance = random.Random(4)
    shutil.copytree(whole, before)
    for segment in before.rglob("*.log"):
        segment.write_bytes(segment.read_bytes()[: int(segment.stat().st_size * chance.uniform(0.3, 1))])
    return before, whole


@pytest.mark.slow
def test_a_night_without_news_writes_nothing_of_the_log_again(grown, tmp_path):
    before, whole = grown
    night(before, tmp_path / "out", "--as-of", "1000", names=OF_LOG)
    for as_of in ("2000", "3000"):
        run = night(whole, tmp_path / "out", "--as-of", as_of, names=OF_LOG)
        assert run.resumption.appended
        same_tables(run, audited(whole, "--cluster", "eu"), OF_LOG)
    resumed = {(each.topic, each.partition) for each in run.capture.resumed}
    again = {(row["topic"], row["partition"]) for row in run.tables.read_written("record_batches").collect()}
    assert resumed
    assert not resumed & again
    ended = (
        run.tables.read_written("partition_transactions")
        .where("marker_offset IS NOT NULL")
        .select("topic", "partition")
    )
    assert not {tuple(row) for row in ended.collect()} & {
        (topic, partition) for topic, partition, *_ in run.resumption.appended
    }


@pytest.mark.slow
def test_a_night_again_replaces_its_rows_unless_later_nights_need_them(grown, tmp_path):
    before, whole = grown
    full = {capture: audited(capture, "--cluster", "eu") for capture in grown}
    out = tmp_path / "out"
    first = night(before, out, "--as-of", "1000", names=OF_LOG)
    night(before, out, "--as-of", "2000", names=OF_LOG)
    second = night(whole, out, "--as-of", "2000", names=OF_LOG)
    assert (second.settings.chain, second.settings.night) == (first.settings.chain, 1)
    same_tables(second, full[whole], OF_LOG)
    again = night(before, out, "--as-of", "1000", "--mode", "full", names=OF_LOG)
    assert again.settings.chain != first.settings.chain
    for run, capture in ((again, before), (second, whole)):
        same_tables(run, full[capture], OF_LOG)
    between = night(whole, out, "--as-of", "1500", names=OF_LOG)
    assert (between.settings.chain, between.settings.night) == (again.settings.chain, 1)
    for run, capture in ((again, before), (second, whole), (between, whole)):
        same_tables(run, full[capture], OF_LOG)


@pytest.mark.slow
def test_old_runs_go_but_not_the_rows_that_later_ones_need(grown, tmp_path):
    before, whole = grown
    out = tmp_path / "out"
    night(before, out, "--as-of", "1000", names=OF_LOG)
    second = night(whole, out, "--as-of", "2000", names=OF_LOG)
    assert forget_runs(second.tables.store, "eu", 2000) == ["eu-1000"]
    same_tables(second, audited(whole, "--cluster", "eu"), OF_LOG)
    third = night(whole, out, "--as-of", "3000", "--mode", "full", names=OF_LOG)
    forget_runs(third.tables.store, "eu", 3000)
    for name in OF_LOG:
        assert {row["run_id"] for row in third.tables.store.read_all(name).select("run_id").collect()} <= {"eu-3000"}
    same_tables(third, audited(whole, "--cluster", "eu"), OF_LOG)


@pytest.mark.slow
def test_the_jobs_one_by_one_and_once_more_make_the_tables_of_a_full_audit(captures, tmp_path):
    nights = [captures / "nights-3.9" / f"night-{number}" / "brokers" for number in (1, 2)]
    full, out = audited(nights[1], "--cluster", "eu"), str(tmp_path / "out")
    night(nights[0], out)
    options = ["--input", str(nights[1]), "--cluster", "eu", "--mode", "incremental", "--output", out]
    assert main(ingest_dumps, options) == 0
    for _ in range(2):
        assert main(reconstruct_state, ["--output", out]) == 0
        assert main(report_transactions, ["--output", out]) == 0
        run = reopen_run(AuditRequest(output=out), is_finished=True)
        assert run.settings.night == 1
        same_tables(run, full, TABLES.keys())
