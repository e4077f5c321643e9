"""Incremental audits against full ones, over real nights and logs cut anywhere."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from jobs.options import AUDIT, parse, request_of
from tests.support.memory_audits import audited, needed_for, resumed_audit
from txnlib.core.batch_runs import single_batches
from txnlib.incremental import linked_tables, resumption
from txnlib.incremental.linked_files import files_of
from txnlib.pipeline.run import open_run
from txnlib.pipeline.scheduler import carry_out
from txnlib.pipeline.tables import AUDIT as AUDIT_STEPS
from txnlib.spark.schemas import TABLES

#: All but the run's own row, which says how it was made.
SAME = sorted(TABLES.keys() - {"audit_runs"})
READ = ("record_batches", "segments", "coverage", "quarantine", "producer_spans", "open_transactions")


@pytest.fixture(autouse=True)
def small_runs_resume_and_link(monkeypatch):
    monkeypatch.setattr(resumption, "MIN_RESUMED_BYTES", 0)
    monkeypatch.setattr(linked_tables, "MIN_LINKED_BYTES", 0)


def same_tables(incremental, full, names):
    for name in names:
        assert printed(incremental.rows(name)) == printed(full.rows(name)), name


def printed(rows):
    """The rows in order. Of `record_batches`, the single batches: a run ends where the reader resumed."""
    return sorted(repr(batch) for row in rows for batch in single_batches(row))


def positions_read(tables):
    return {segment.path: segment.position for segment in tables.run.capture.resumed}


def test_two_resumed_nights_equal_full_audits(spark, captures):
    nights = [captures / "nights-3.9" / f"night-{number}" / "brokers" for number in (1, 2)]
    second = resumed_audit(spark, audited(spark, nights[0]), nights[1])
    assert len(positions_read(second)) >= 6
    same_tables(second, audited(spark, nights[1]), SAME)
    # And those of a full audit without runs.
    assert any(row["batches_count"] > 1 for row in second.rows("record_batches"))
    same_tables(second, audited(spark, nights[1], "--detail", "batches"), SAME)


@pytest.mark.slow
def test_three_resumed_nights_equal_full_audits(spark, captures):
    """Segments that rolled, were deleted and grew; a topic that was deleted and made again under its name."""
    nights = [captures / "nights-3.9" / f"night-{number}" / "brokers" for number in (1, 2, 3)]
    second = resumed_audit(spark, audited(spark, nights[0]), nights[1])
    third = resumed_audit(spark, second, nights[2])
    assert len(positions_read(second)) >= 6
    assert len(positions_read(third)) >= 10
    same_tables(third, audited(spark, nights[2]), SAME)
    assert third.run.resumption.appended


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_logs_cut_at_random_places_into_nights(spark, captures, tmp_path, seed):
    chance = random.Random(seed)
    whole = captures / "hostile-3.9" / "brokers"
    night = tmp_path / "night"
    shutil.copytree(whole, night)
    for segment in night.rglob("*.log"):
        fate = chance.random()
        if fate < 0.1:
            segment.unlink()
        elif fate < 0.7:
            size = segment.stat().st_size
            segment.write_bytes(segment.read_bytes()[: chance.randint(0, size)])
        elif fate < 0.8:
            content = bytearray(segment.read_bytes())
            if content:
                content[chance.randrange(len(content))] ^= 0x10
            segment.write_bytes(content)
    tables = resumed_audit(spark, audited(spark, night), whole)
    same_tables(tables, audited(spark, whole), READ)


@pytest.mark.slow
def test_what_was_damaged_the_night_before_is_read_again(spark, captures, tmp_path):
    whole, night = captures / "hostile-3.9" / "brokers", tmp_path / "night"
    shutil.copytree(whole, night)
    segment = max(night.glob("*/*/*.log"), key=lambda path: path.stat().st_size * ("__" not in str(path)))
    content = bytearray(segment.read_bytes())
    content[len(content) // 3 : len(content) // 3 + 200] = bytes(200)
    segment.write_bytes(content)
    tables = resumed_audit(spark, audited(spark, night), whole)
    assert str(whole / segment.relative_to(night)) not in positions_read(tables)
    same_tables(tables, audited(spark, whole), READ)


#: The tables of which files are linked.
LINKED = ("record_batches", "producer_spans", "partition_transactions")


def written(capture, output, *options):
    """A run with the real tables that are linked, and those they need."""
    run = open_run(request_of(parse(AUDIT, "", ["--input", str(capture), "--output", str(output), "--cluster", "eu", *options])))
    needed = set().union(*map(needed_for, LINKED))
    carry_out(run, [step for step in AUDIT_STEPS if step.name in needed])
    run.note("DONE")
    return run


@pytest.mark.slow
def test_nights_that_link_files_have_the_rows_of_a_full_audit(spark, captures, tmp_path):
    """Real tables, two nights of logs that were cut, and one that finds nothing new."""
    whole, night, out = captures / "causes-3.9" / "brokers", tmp_path / "night", tmp_path / "out"
    chance = random.Random(4)
    shutil.copytree(whole, night)
    for segment in night.rglob("*.log"):
        segment.write_bytes(segment.read_bytes()[: int(segment.stat().st_size * chance.uniform(0.3, 1))])
    before, full = written(night, out, "--as-of", "1000"), audited(spark, whole)
    linked = set()
    for as_of in ("2000", "3000"):
        run = written(whole, out, "--as-of", as_of, "--mode", "incremental")
        assert run.resumption.appended
        for name in LINKED:
            found = run.tables.read(name).toArrow().to_pylist()
            assert printed(found) == printed(full.rows(name)), name
            linked |= {name for known in inodes(before, name) if known in inodes(run, name)}
        before = run
    assert linked == set(LINKED)


def inodes(run, name):
    return {file.path.stat().st_ino for file in files_of(Path(run.tables.store.folder, name), run.tables.run_id)}
