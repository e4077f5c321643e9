"""Audits that use what others have read, against full ones."""

import random
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from tests.support.audits import audited, needed_for, printed
from tests.support.changing_log import ChangingCoordinator, ChangingGroups, ChangingLog
from tests.support.daemons import OF_READING
from txnlib.ask.delta_rows import Tables
from txnlib.core.schema.rows_of_runs import OF_PARTS
from txnlib.engine import retention
from txnlib.engine.retention import forget_runs
from txnlib.engine.store import RunStore
from txnlib.errors import UnreadableInputError
from txnlib.jobs.audit import ingest_dumps, reconstruct_state, report_transactions
from txnlib.jobs.options import AUDIT, parse, request_of
from txnlib.jobs.program import main
from txnlib.pipeline import parts
from txnlib.pipeline import run as pipeline_run
from txnlib.pipeline.audit import carry_out_steps
from txnlib.pipeline.audit_request import AuditRequest
from txnlib.pipeline.clock import now
from txnlib.pipeline.run import open_run, reopen_run
from txnlib.pipeline.tables import AUDIT as AUDIT_STEPS
from txnlib.spark.frames import arrow_of
from txnlib.spark.schemas import OPEN_TRANSACTION, TABLES

#: What says how a run was made, or how what earlier runs showed has ended.
OF_RUNS = {"audit_runs", "ended_transactions"}
#: The tables of open transactions.
JUDGED = {"open_transactions", "hanging_transactions", "late_transactions"}


class OfHistory(NamedTuple):
    """A column of the JUDGED tables that earlier audits change, and what they may make of the value without them."""

    name: str
    why: str
    may_become: Callable[[Any, Any], bool]


def has_lost_nothing(alone, later):
    held = [{each["name"] for each in safety if each["holds"]} for safety in (alone, later)]
    return held[0] <= held[1] and [each["name"] for each in alone] == [each["name"] for each in later]


OF_HISTORY = (
    OfHistory("first_seen", "the first audit that saw it", lambda alone, later: later <= alone),
    OfHistory("runs_seen", "the audits that saw it", lambda alone, later: later >= alone),
    OfHistory(
        "broker_clock_age_ms",
        "it was open when an earlier audit's copies were taken",
        lambda alone, later: later is not None and later >= (alone or 0),
    ),
    OfHistory(
        "blocks_since", "by that proof, it blocks for longer", lambda alone, later: alone is None or later <= alone
    ),
    OfHistory("safety", "its proofs are carried, and its age is one", has_lost_nothing),
)
READ = (
    *OF_PARTS,
    "segments",
    "coverage",
    "quarantine",
    "producer_spans",
    "partition_transactions",
    "open_transactions",
)
#: What was read, and where that is listed.
PARTS = (*OF_PARTS, "segments")


def opened(capture, output, *options):
    given = ["--input", str(capture), "--output", str(output), "--cluster", "eu", *options]
    return open_run(request_of(parse(AUDIT, "", given)))


def carried_out(run, names=TABLES):
    """The run, with these tables and what they are made of."""
    needed = set().union(*map(needed_for, names))
    carry_out_steps(run, [step for step in AUDIT_STEPS if step.name in needed])
    run.note("DONE")
    return run


def night(capture, output, *options, names=TABLES):
    """A run with real tables, in a folder."""
    return carried_out(opened(capture, output, *options), names)


def columns_of(name):
    """The columns that each audit shows by itself."""
    history = [each.name for each in OF_HISTORY] if name in JUDGED else []
    return [column for column in TABLES[name].names if column not in (*OF_READING, *history)]


def rows_of(frame, name):
    return printed(arrow_of(frame.select(*columns_of(name))).to_pylist())


def history_of(frame):
    """The rows by transaction."""
    rows = arrow_of(frame).to_pylist()
    return {tuple(row[name] for name in OPEN_TRANSACTION): row for row in rows}


def same_tables(run, full, names=TABLES):
    """Read by SQL and, if they are rows of parts, while the run lasts and by a later one: the rows of a full audit.

    Of an open transaction, earlier audits may only have proved more.
    """
    later = RunStore(run.tables.store, run.tables.cluster, run.tables.run_id)
    for name in sorted(set(names) - OF_RUNS):
        expected = rows_of(full.frame(name), name)
        # Only rows of parts may be those of an earlier run.
        for tables in (run.tables, later) if name in OF_PARTS else ():
            assert rows_of(tables.read(name), name) == expected, name
        found = Tables(run.tables.store.output).rows(name, columns_of(name), [("run_id", "=", run.tables.run_id)])
        assert printed(found) == expected, name
    for judged in sorted(JUDGED & {*names}):
        later, alone = (history_of(each(judged)) for each in (run.tables.read, full.frame))
        for key, row in later.items():
            for name, why, may_become in OF_HISTORY:
                before, now = alone[key].get(name), row.get(name)
                assert before == now or may_become(before, now), (key, name, why, before, now)


def own_parts(run):
    return {file.part for file in run.capture.files}


def used(run):
    """The paths of the segments of which an earlier audit had read something that the run uses."""
    rows = run.tables.read("segments").select("path", "parts").collect()
    return {row["path"] for row in rows if not own_parts(run).issuperset(row["parts"])}


def written(run):
    """The segments of which the run itself has stored batches or records."""
    place = ("topic", "partition", "source", "segment_base_offset")
    tables = [run.tables.store.read_all(name).select("part", *place).distinct() for name in OF_PARTS]
    stored = [row for table in tables for row in table.collect()]
    return {tuple(row[name] for name in place) for row in stored if row["part"] in own_parts(run)}


def test_two_nights_equal_full_audits(captures, tmp_path):
    nights = [captures / "nights-3.9" / f"night-{number}" / "brokers" for number in (1, 2)]
    first, second = (
        night(capture, tmp_path / "out", names=names) for capture, names in zip(nights, (PARTS, TABLES), strict=True)
    )
    assert not used(first)
    assert len(used(second)) >= 6
    same_tables(second, audited(nights[1], "--cluster", "eu"))


@pytest.mark.slow
def test_three_nights_equal_three_full_audits(captures, tmp_path):
    """Segments that rolled, were deleted and grew; a topic that was deleted and made again under its name. What earlier
    audits saw and proved is the same, too."""
    nights = [captures / "nights-3.9" / f"night-{number}" / "brokers" for number in (1, 2, 3)]
    runs = [night(capture, tmp_path / "out") for capture in nights]
    assert len(used(runs[2])) >= 10
    full = [night(capture, tmp_path / "full", "--mode", "full") for capture in nights]
    tables = [Tables(str(tmp_path / folder)) for folder in ("out", "full")]
    for name in sorted(TABLES.keys() - {"audit_runs"}):
        shown = [column for column in TABLES[name].names if column not in OF_READING]
        for run, other in zip(runs, full, strict=True):
            is_of = [("run_id", "=", run.tables.run_id)]
            assert run.tables.run_id == other.tables.run_id
            found, expected = (printed(of.rows(name, shown, is_of)) for of in tables)
            assert found == expected, name


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
    assert str(whole / segment.relative_to(damaged)) not in used(run)
    same_tables(run, audited(whole, "--cluster", "eu", "--as-of", "2000"), READ)


class Killed(BaseException):
    """As by the system."""


def killed_at(name):
    def begin(step):
        if step == name:
            raise Killed

    return begin


@pytest.mark.parametrize(
    ("seed", "nights"),
    [
        (4, 3),  # one is killed, and old ones are deleted
        pytest.param(0, 5, marks=pytest.mark.slow),
        *(pytest.param(seed, 5, marks=(pytest.mark.both, pytest.mark.slow)) for seed in (1, 2)),
    ],
)
def test_after_any_sequence_of_audits_each_has_the_rows_of_a_full_one_alone(tmp_path, monkeypatch, seed, nights):
    """Of logs that grow, roll, are cut, compacted, created again, and not all of which is captured each night. Audits
    are carried out again, at the same time, and killed at any step; old ones are deleted, but for the last."""
    chance = random.Random(seed)
    logs, captures, finished = [each(chance) for each in (ChangingLog, ChangingCoordinator, ChangingGroups)], {}, {}
    for number in range(1, nights + 1):
        for log in logs:
            log.change()
        for module in (parts, pipeline_run):  # a week later than the last: what nobody uses may be deleted
            monkeypatch.setattr(module, "now", lambda: now() + timedelta(days=8 * number))  # noqa: B023
        as_of, capture = 1_795_000_000_000 + number, tmp_path / str(number)
        for log in logs:
            log.capture(capture)
        captures[as_of] = capture
        asked = [as_of, *chance.choice([(), (), (), (as_of,), (chance.choice(sorted(captures)),)])]
        try:
            runs = [(each, opened(captures[each], tmp_path / "out", "--as-of", str(each))) for each in asked]
        except UnreadableInputError:
            del captures[as_of]
            continue
        chance.shuffle(runs)
        for each, run in runs:  # all were opened before one of them began
            finished.pop(each, None)
            left = chance.randint(1, 25) if number < nights and chance.random() < 0.3 else 1_000

            def begin(step):
                nonlocal left
                left -= 1
                if left == 0:
                    raise Killed

            run.begin = begin
            try:
                finished[each] = carried_out(run, READ)
            except Killed:
                continue
        if number < nights and chance.random() < 0.3:
            gone = forget_runs(run.tables.store, "eu", chance.choice(sorted(captures)))
            captures = {each: place for each, place in captures.items() if f"eu-{each}" not in gone}
            finished = {each: run for each, run in finished.items() if each in captures}
    assert finished
    for each, run in finished.items():
        same_tables(run, audited(captures[each], "--cluster", "eu", "--as-of", str(each)), READ)


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
def test_what_is_there_is_not_read_again(grown, tmp_path):
    before, whole = grown
    night(before, tmp_path / "out", "--as-of", "1000", names=PARTS)
    for as_of in ("2000", "3000"):
        run = night(whole, tmp_path / "out", "--as-of", as_of, names=PARTS)
        same_tables(run, audited(whole, "--cluster", "eu"), PARTS)
    known = [file for file in run.capture.files if file.path in used(run)]
    assert {"__transaction_state", "__consumer_offsets", "ca_compacted"} <= {file.topic for file in known}
    assert not {(file.topic, file.partition, file.source, file.offset) for file in known} & written(run)
    again = night(whole, tmp_path / "out", "--as-of", "4000", "--mode", "full", names=PARTS)
    assert not used(again)


@pytest.mark.slow
def test_rows_that_no_run_lists_are_deleted_with_old_runs_and_no_others(grown, tmp_path, monkeypatch):
    before, whole = grown
    out = tmp_path / "out"
    night(before, out, "--as-of", "1000", names=PARTS)
    second = night(whole, out, "--as-of", "2000", names=PARTS)
    dead = opened(whole, out, "--as-of", "1500", "--mode", "full")
    dead.begin = killed_at("segments")
    with pytest.raises(Killed):
        carried_out(dead, PARTS)
    assert forget_runs(second.tables.store, "eu", 2000) == ["eu-1000"], "the other one may be at work"
    assert written(dead)
    monkeypatch.setattr(retention, "AT_WORK_S", -60)
    assert forget_runs(second.tables.store, "eu", 2000) == ["eu-1500"]
    assert not written(dead)
    same_tables(second, audited(whole, "--cluster", "eu"), PARTS)
    third = night(whole, out, "--as-of", "3000", "--mode", "full", names=PARTS)
    forget_runs(third.tables.store, "eu", 3000)
    parts = {row["part"] for row in third.tables.store.read_all("record_batches").select("part").collect()}
    assert parts <= own_parts(third)
    same_tables(third, audited(whole, "--cluster", "eu"), PARTS)


@pytest.fixture
def known(grown, tmp_path, monkeypatch):
    """An audit, as if made a week ago: what nobody uses of it may be deleted."""
    with monkeypatch.context() as then:
        then.setattr(parts, "now", lambda: now() - timedelta(days=8))
        return night(grown[0], tmp_path / "out", "--as-of", "1000", names=PARTS)


@pytest.mark.slow
def test_an_audit_reads_again_what_was_deleted_before_it_began(grown, known, tmp_path):
    whole, out = grown[1], tmp_path / "out"
    second = opened(whole, out, "--as-of", "2000")
    newer = night(whole, out, "--mode", "full", "--as-of", "3000", names=PARTS)
    assert forget_runs(newer.tables.store, "eu", 2000) == ["eu-1000"]
    assert not written(known)
    assert used(second) == set()
    same_tables(carried_out(second, PARTS), audited(whole, "--cluster", "eu"), PARTS)


@pytest.mark.slow
def test_what_an_audit_at_work_uses_is_not_deleted(grown, known, tmp_path):
    whole, out = grown[1], tmp_path / "out"
    newer = night(whole, out, "--mode", "full", "--as-of", "3000", names=PARTS)
    second = opened(whole, out, "--as-of", "2000")

    def begin(step):
        if step == "segments":  # its batches are stored, and nobody else lists those that it uses
            assert forget_runs(newer.tables.store, "eu", 2000) == ["eu-1000"]

    second.begin = begin
    same_tables(carried_out(second, PARTS), audited(whole, "--cluster", "eu"), PARTS)
    assert used(second)


@pytest.mark.slow
def test_the_jobs_one_by_one_and_once_more_make_the_tables_of_a_full_audit(captures, tmp_path):
    nights = [captures / "nights-3.9" / f"night-{number}" / "brokers" for number in (1, 2)]
    full, out = audited(nights[1], "--cluster", "eu"), str(tmp_path / "out")
    night(nights[0], out)
    options = ["--input", str(nights[1]), "--cluster", "eu", "--output", out]
    assert main(ingest_dumps, options) == 0
    for _ in range(2):
        assert main(reconstruct_state, ["--output", out]) == 0
        assert main(report_transactions, ["--output", out]) == 0
        run = reopen_run(AuditRequest(output=out), is_finished=True)
        same_tables(run, full, TABLES.keys())
