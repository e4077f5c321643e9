"""The order of tables and decisions, and the failure of one of them."""

import re
import sys
from threading import Barrier, Event
from types import SimpleNamespace

import pytest
from pyspark.errors import AnalysisException

from txnlib.engine.tables import MANY_FILES, Commit
from txnlib.errors import StepError, UnreadableInputError
from txnlib.pipeline import audit
from txnlib.pipeline.scheduler import RunChange, TableStep, carry_out
from txnlib.pipeline.tables import AUDIT, INGEST, RECONSTRUCT, REPORT
from txnlib.spark.schemas import TABLES


def run_of(written: list[str], commit: Commit = Commit(1_234), at_once: int = 1) -> SimpleNamespace:  # noqa: B008
    """A run whose tables only note that they are written and put together."""

    def note(name: str, frame: object = None) -> Commit:
        written.append(name)
        return commit

    tables = SimpleNamespace(write=note, compact=note)
    begun: list[str] = []
    return SimpleNamespace(
        engine=SimpleNamespace(steps_at_once=at_once),
        tables=tables, written={}, scattered=[], say=lambda text: print(text, file=sys.stderr),
        begun=begun, begin=begun.append, ended=lambda name, rows: print(f"{name}: {rows}", file=sys.stderr),
    )  # fmt: skip


@pytest.mark.parametrize("at_once", [1, 2])
def test_every_step_comes_after_the_steps_it_reads(at_once):
    written: list[str] = []
    steps = [TableStep(step.name, step.reads, lambda run: object()) for step in AUDIT]
    carry_out(run_of(written, at_once=at_once), steps)
    assert sorted(written) == sorted(step.name for step in AUDIT)
    for step in AUDIT:
        assert all(written.index(read) < written.index(step.name) for read in step.reads), step.name


def test_steps_that_do_not_wait_for_each_other_are_taken_side_by_side():
    meet = Barrier(2, timeout=60)
    steps = [TableStep(name, (), lambda run: meet.wait()) for name in "ab"]
    run = run_of([], at_once=2)
    carry_out(run, [*steps, TableStep("c", ("a", "b"), lambda run: run.written.copy())])
    assert run.begun == ["a", "b", "c"]
    assert list(run.written)[2:] == ["c"]


def test_a_change_of_the_run_comes_after_and_before_the_same_steps_as_one_by_one():
    """Of the small steps, the first waits for a long one; the second could begin beside that, before the change."""
    seen: dict[str, list[str]] = {}
    for at_once in (1, 2):
        order: list[str] = []
        change = RunChange("change", ("long",), lambda run, order=order: order.append("change"))
        before = TableStep("before", ("long",), lambda run, order=order: order.append("before"))
        after = TableStep("after", (), lambda run, order=order: order.append("after"))
        long = TableStep("long", (), lambda run, order=order: order.append("long"))
        carry_out(run_of([], at_once=at_once), [before, long, change, after])
        seen[str(at_once)] = order
    assert seen["1"] == seen["2"] == ["long", "before", "change", "after"]


def test_what_runs_beside_a_failure_ends_and_the_first_failure_in_order_is_told():
    second_has_failed, first_ends = Event(), Event()

    def slow(run):
        assert second_has_failed.wait(60)
        first_ends.set()
        raise OSError(28, "No space left on device")

    def fast(run):
        second_has_failed.set()
        raise OSError(13, "Permission denied")

    run = run_of([], at_once=2)
    steps = [TableStep("a", (), slow), TableStep("b", (), fast), TableStep("c", (), lambda run: object())]
    with pytest.raises(StepError, match=r"^at a: no space is left"):
        carry_out(run, steps)
    assert first_ends.is_set()
    assert run.begun == ["a", "b"]


def test_a_table_that_is_made_beside_a_failure_is_complete():
    failed = Event()

    def fail(run):
        failed.set()
        raise OSError(28, "No space left on device")

    run = run_of([], at_once=2)
    with pytest.raises(StepError, match=r"complete: 1 \(b\)"):
        carry_out(run, [TableStep("a", (), fail), TableStep("b", (), lambda run: failed.wait(60))])


def test_the_jobs_write_every_table_once():
    names = [step.name for steps in (INGEST, RECONSTRUCT, REPORT) for step in steps]
    claimed = {"audit_runs"}  # before the first step
    decisions = [
        "forget_capture",
        "infer_settings",
        "lower_coverage",
    ]
    assert sorted(names) == sorted([*(TABLES.keys() - claimed), *decisions])
    audited = [step.name for step in AUDIT]
    assert len(audited) == len(set(audited)) == len(names)


@pytest.mark.parametrize("at_once", [1, 2])
def test_after_a_failure_nothing_new_begins_and_it_says_what_is_complete(at_once):
    def fail(run):
        raise OSError(28, "No space left on device")

    written: list[str] = []
    run = run_of(written, at_once=at_once)
    steps = [
        TableStep("first", (), lambda run: object()),
        TableStep("b", ("first",), fail),
        TableStep("c", ("b",), lambda run: object()),
    ]
    with pytest.raises(StepError) as caught:
        carry_out(run, steps)
    assert written == ["first"]
    assert str(caught.value).startswith(
        "at b: no space is left on the disk (OSError: [Errno 28] No space left on device). "
    )
    assert "Tables of this run that are complete: 1 (first)" in str(caught.value)
    assert isinstance(caught.value.__cause__, OSError)


def test_what_says_itself_what_to_do_is_raised_as_it_is():
    error = UnreadableInputError("x", "is empty", "Fill it")

    def fail(run):
        raise error

    with pytest.raises(UnreadableInputError) as caught:
        carry_out(run_of([]), [TableStep("a", (), fail)])
    assert caught.value is error


def test_steps_that_wait_for_each_other_are_named():
    steps = [TableStep("a", ("b",), lambda run: object()), TableStep("b", ("a",), lambda run: object())]
    with pytest.raises(ValueError, match="wait for each other: a, b"):
        carry_out(run_of([]), steps)


def test_each_table_has_a_line_with_its_rows_and_seconds_and_a_decision_writes_none(capsys):
    written: list[str] = []
    run = run_of(written)
    carry_out(run, [RunChange("number", (), lambda run: None), TableStep("a", ("number",), lambda run: object())])
    assert re.fullmatch(r"a: 1,234 rows, \d+\.\d s\n", capsys.readouterr().err)
    assert {name: written.rows for name, written in run.written.items()} == {"a": 1_234}
    assert (written, run.begun) == (["a"], ["number", "a"])


def test_a_table_of_many_small_files_is_put_together_when_the_audit_is_done(capsys):
    steps = [TableStep("a", (), lambda run: object())]
    written: list[str] = []
    scattered = run_of(written, Commit(9, files=MANY_FILES + 1, bytes=1))
    carry_out(scattered, steps)
    audit.compact(scattered)
    assert written == ["a", "a"]
    assert "a: compacted small files" in capsys.readouterr().err
    whole = run_of([])
    carry_out(whole, steps)
    audit.compact(whole)
    assert "compacted" not in capsys.readouterr().err


def test_an_audit_is_done_though_its_files_cannot_be_put_together(capsys):
    def fail(name: str) -> None:
        raise AnalysisException(
            "no such table", errorClass="TABLE_OR_VIEW_NOT_FOUND", messageParameters={"relationName": name}
        )

    run = run_of([])
    run.scattered, run.tables.compact = ["a"], fail
    audit.compact(run)
    assert capsys.readouterr().err.startswith("a: cannot compact small files: ")


def test_only_decisions_write_no_table_of_their_name():
    for step in AUDIT:
        assert isinstance(step, TableStep) == (step.name in TABLES), step.name
