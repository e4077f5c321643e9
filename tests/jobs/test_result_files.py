"""The result files of a job, however it ends."""

import json
from argparse import Namespace

import pytest

from tests.support.delta_tables import at, write, write_run
from tests.support.outcomes import lag
from txnlib.ask.delta_rows import open_run, open_tables
from txnlib.ask.report import Report
from txnlib.ask.report_fields import SHOWN_LAGS, SHOWN_TRANSACTIONS
from txnlib.ask.run_result import results_of
from txnlib.errors import TxnlibError, UnreadableInputError
from txnlib.jobs.program import main
from txnlib.jobs.result_files import result_files


def given(**options):
    return Namespace(
        **{"cluster": None, "input": ["/backup/blue"], "metrics": None, "summary": None, "dry_run": False} | options
    )


def failing(options, error):
    def job(argv):
        with result_files(options):
            raise error

    return main(job, [])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RuntimeError("the disk is full"), 1),
        (UnreadableInputError("/backup/blue", "is empty", "Fill it"), 2),
    ],
)
def test_a_job_that_fails_is_told_with_its_exit_code(tmp_path, capsys, error, code):
    metrics, numbers = tmp_path / "audit.prom", tmp_path / "audit.json"
    assert failing(given(metrics=str(metrics), summary=str(numbers)), error) == code
    assert 'txnlib_audit_success{cluster="blue"} 0.0\n' in metrics.read_text()
    assert f'txnlib_audit_exit_code{{cluster="blue"}} {code}.0\n' in metrics.read_text()
    told = json.loads(numbers.read_text())
    said = error.says() if isinstance(error, TxnlibError) else str(error)
    assert (told["success"], told["exit_code"], said in told["error"]) == (False, code, True)
    assert said in capsys.readouterr().err


def test_what_went_wrong_first_is_what_decides(tmp_path, capsys):
    folder = tmp_path / "taken"
    folder.mkdir()
    assert failing(given(metrics=str(folder)), UnreadableInputError("x", "is empty", "Fill it")) == 2
    lost, failed = capsys.readouterr().err.splitlines()
    assert ("taken" in lost, failed) == (True, "txnlib: x: is empty. Fill it")


def test_a_dash_puts_json_in_the_place_of_the_report(capsys):
    assert failing(given(summary="-", cluster="green"), RuntimeError("no")) == 1
    assert json.loads(capsys.readouterr().out)["cluster"] == "green"
    with result_files(given(summary="-")) as to:
        assert to.replaces_report


def test_a_dry_run_writes_nothing(tmp_path):
    assert failing(given(metrics=str(tmp_path / "audit.prom"), dry_run=True), RuntimeError("no")) == 1
    assert list(tmp_path.iterdir()) == []


def test_what_is_told_one_by_one_is_bounded_and_begins_with_what_is_urgent(tmp_path):
    more = SHOWN_TRANSACTIONS + 5
    write_run(tmp_path)
    opened = [
        {"topic": "a", "partition": n, "producer_id": 1, "start_offset": 7, "blocked_offsets": n} for n in range(more)
    ]
    verdicts = {"OPEN": more - 3, "STUCK": 1, "HANGING": 2}
    each = [name for name, count in verdicts.items() for _ in range(count)]
    rows = [{**row, "verdict": verdict} for row, verdict in zip(opened, each, strict=True)]
    write(tmp_path, "open_transactions", *({**row, "blocks_since": at(5)} for row in rows))
    lagging = [lag(partition=n, lag_ms=n) for n in range(1, SHOWN_LAGS + 10)]
    write(tmp_path, "partitions", *lagging, lag(partition=0, lag_offsets=0, lag_ms=None))
    write(tmp_path, "transactional_ids")
    judged = [("COMPLETE", True), ("PARTIAL", True), ("DAMAGED", False), ("MISSING", False)]
    write(
        tmp_path,
        "coverage",
        *({"topic": "a", "partition": 1, "status": status, "is_judged": of} for status, of in judged),
    )
    summary = Report(
        "test",
        0,
        "given",
        "out",
        counts={"verdicts": verdicts, "transactions": verdicts, "holding": {}, "findings": {}},
        partitions_known=5,
        partitions_read=2,
    )

    found = results_of(open_run(open_tables(str(tmp_path))), summary)

    listed = found["transactions"]
    assert len(listed) == SHOWN_TRANSACTIONS
    assert found["transactions_left_out"] == more - SHOWN_TRANSACTIONS
    assert [row["verdict"] for row in listed][:4] == ["HANGING", "HANGING", "STUCK", "OPEN"]
    assert [row["partition"] for row in listed][:2] == [more - 1, more - 2], "those that block most first"
    assert listed[0]["blocks_since"] == at(5)
    lag_of_all = found["lag"]
    assert [row["partition"] for row in lag_of_all.pop("longest")] == [*range(SHOWN_LAGS + 9, 9, -1)]
    assert lag_of_all == {"partitions": SHOWN_LAGS + 9, "max_offsets": 187, "max_seconds": (SHOWN_LAGS + 9) / 1000}
    assert found["coverage"]["partitions"] == {"COMPLETE": 1, "PARTIAL": 1, "DAMAGED": 0, "MISSING": 3}
