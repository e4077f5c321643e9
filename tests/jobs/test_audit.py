"""One audit of the sample: tables, report, exit code."""

import json

import pytest

from tests.house.test_demo import counts
from tests.support.delta_tables import txn_audit
from txnlib.ask.delta_rows import Tables
from txnlib.core.schema import ALWAYS_THERE
from txnlib.jobs import audit, stages
from txnlib.jobs.program import main
from txnlib.pipeline.scheduler import TableStep
from txnlib.spark.schemas import TABLES


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("audit") / "out"


@pytest.fixture(scope="module")
def sample(repository):
    return str(repository / "examples" / "quickstart" / "brokers")


@pytest.mark.slow  # `tests/house/test_demo.py` looks at one in CI
def test_an_audit_writes_every_table_prints_the_report_and_exits_with_0(out, sample, capsys):
    page, metrics, numbers = (out.parent / name for name in ("report.html", "audit.prom", "audit.json"))
    files = ["--report", str(page), "--metrics", str(metrics), "--summary", str(numbers)]
    assert main(audit.job, ["--input", sample, "--output", str(out), *files]) == 0
    printed = capsys.readouterr()
    assert printed.err.endswith(f"page: {page}\n")
    told = {name: each["rows"] for name, each in json.loads(numbers.read_text())["written"].items()}
    assert told == {name: rows for name, rows in counts(out).items() if name != "audit_runs"}, (
        "as the tables themselves say"
    )
    (run,) = Tables(str(out)).rows("audit_runs", ("counts",))
    assert json.loads(run["counts"])["tables"] == sorted(name for name, rows in told.items() if rows)
    assert 'txnlib_open_transactions{cluster="quickstart",verdict="HANGING"} 1.0\n' in metrics.read_text()
    assert 'txnlib_lso_lag_offsets{cluster="quickstart",partition="0",topic="payments"} 187.0\n' in metrics.read_text()
    assert "abort --topic payments --partition 0 --start-offset 24" in page.read_text()
    assert "1 HANGING   nobody will ever end it" in printed.out
    assert "abort --topic payments --partition 0 --start-offset 24" in printed.out
    assert "FINDINGS" not in printed.out, "a cluster without corruption has no finding above INFO"
    assert {path.name for path in out.iterdir()} == {name for name, rows in counts(out).items() if rows} | ALWAYS_THERE
    assert txn_audit(out, "report") == (0, printed.out, ""), "the same report again, without Spark"


@pytest.mark.slow
def test_jobs_again_repair_what_a_dead_run_left_double_nothing_and_exit_with_3_if_asked(out, capsys):
    before = counts(out)
    assert main(audit.reconstruct_state, ["--output", str(out)]) == 0
    assert main(audit.report_transactions, ["--output", str(out), "--fail-on", "hanging,stuck"]) == 3
    assert "1 HANGING" in capsys.readouterr().out
    assert counts(out) == before
    (run,) = Tables(str(out)).rows("audit_runs", ("status", "counts"))
    assert run["status"] == "DONE"
    assert json.loads(run["counts"])["verdicts"] == {"HANGING": 1, "LATE": 2, "OPEN": 1}


@pytest.mark.slow
def test_a_later_audit_remembers_since_when_a_transaction_hangs(out, sample, capsys):
    later = ["--as-of", "2026-11-22T07:00:00Z"]
    before = counts(out)
    assert main(audit.job, ["--input", sample, "--output", str(out), *later]) == 0
    report, progress = capsys.readouterr()
    assert ", of which " in progress
    added = counts(out)["record_batches"] - before["record_batches"]
    assert added < before["record_batches"] / 4, "the log was stored the first time"
    assert "seen by 2 audits, first as of 2026-11-21 07:42:41Z" in report
    assert txn_audit(out, "report")[1] == report
    changes = json.loads(txn_audit(out, "diff", "--format", "json")[1])["changes"]
    assert {row["change"] for row in changes} <= {"VERDICT"}, "the same capture, judged a day later"
    seen = Tables(str(out)).rows("hanging_transactions", ("producer_id", "runs_seen"), order='"as_of"')
    assert [row["runs_seen"] for row in seen if row["producer_id"] == 1001] == [1, 2]


def test_a_dry_run_says_what_would_be_read_and_writes_nothing(sample, tmp_path, capsys):
    assert main(audit.job, ["--input", sample, "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("cluster quickstart, as of 2026-11-21 07:42:41Z (newest capture instant)\n")
    assert " KiB: " in told.splitlines()[1]


def test_an_instant_before_all_copies_is_questioned_at_once(sample, capsys):
    """A slip in the hour: without a word, nothing would be old enough to hang."""
    for instant, is_odd in {"2026-11-21T06:42:41Z": True, "2026-11-21T07:42:41.899Z": False}.items():
        assert main(audit.job, ["--input", sample, "--dry-run", "--as-of", instant]) == 0
        assert ("before the first copy was taken" in capsys.readouterr().err) is is_odd


def test_a_failure_inside_exits_with_1_and_is_noted(sample, tmp_path, capsys, monkeypatch):
    def broken(run):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(stages, "AUDIT", (TableStep("coverage", (), broken),))
    metrics = tmp_path / "audit.prom"
    assert main(audit.job, ["--input", sample, "--output", str(tmp_path / "out"), "--metrics", str(metrics)]) == 1
    assert 'txnlib_audit_success{cluster="quickstart"} 0.0\n' in metrics.read_text()
    assert (
        "txnlib: the audit failed at coverage: RuntimeError: out of luck. Tables of this run that are complete: none"
        in capsys.readouterr().err
    )
    (run,) = Tables(str(tmp_path / "out")).rows("audit_runs", ("status",))
    assert run["status"] == "FAILED"


def test_a_failure_is_told_in_one_last_line_and_its_traces_are_in_a_file(sample, tmp_path, capfd, monkeypatch):
    step = TableStep("coverage", (), lambda run: run.spark.createDataFrame([], TABLES["coverage"]))
    monkeypatch.setattr(stages, "AUDIT", (step,))
    out = tmp_path / "out"
    out.mkdir()
    (out / "coverage").write_text("not a folder")
    argv = ["--input", sample, "--output", str(out)]
    assert main(audit.job, argv) == 1
    *_, last = capfd.readouterr().err.splitlines()
    traces = tmp_path / "out.failed.log"
    assert last.startswith("txnlib: the audit failed at coverage: there is a file where a folder should be (")
    assert str(out / "coverage") in last
    assert last.endswith(f"run the same command again. Traces: {traces}")
    assert "Not a directory" in traces.read_text()
    assert "StepError" in traces.read_text()
    traces.unlink()
    assert main(audit.job, [*argv, "--debug"]) == 1
    *told, last = capfd.readouterr().err.splitlines()
    assert any(line.startswith("Traceback ") for line in told)
    assert (last.startswith("txnlib: the audit failed at coverage: "), "Traces" in last, traces.exists()) == (
        True,
        False,
        False,
    )
