"""`import txnlib` as its page describes it, over the audit of a notebook."""

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from html import escape, unescape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shutil import rmtree
from typing import get_args, get_type_hints

import pytest

import txnlib
from tests.support.delta_tables import called_plainly, txn_audit
from tests.support.three_nights import NIGHTS, three_nights
from txnlib import auditing, errors
from txnlib.ask.terminal_report import render
from txnlib.engine import spark as spark_engine
from txnlib.errors import MissingTableError, UnreadableInputError, UsageError
from txnlib.pipeline.audit_request import MODES, AuditRequest
from txnlib.spark.frames import arrow_of

pytestmark = pytest.mark.shares("notebooks")

ROOT = Path(__file__).resolve().parent.parent.parent
AS_OF = datetime(2026, 11, 21, 7, 42, 41, 899_000, tzinfo=UTC)


@pytest.fixture(scope="module")
def found(audited_in_a_notebook):
    return audited_in_a_notebook["found"]


def example(page):
    """The first piece of Python of a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)[0]


def verdicts(audit):
    return {(row["topic"], row["start_offset"]): row["verdict"] for row in audit.table("open_transactions").collect()}


JUDGED = {("payments", 24): "HANGING", ("orders", 21): "LATE", ("audit-trail", 14): "LATE", ("payments", 100): "OPEN"}


def test_a_capture_is_audited_into_the_tables_that_the_command_line_makes(found):
    assert (found.cluster, found.as_of, found.settings.coordinator_partitions) == ("quickstart", AS_OF, 5)
    assert verdicts(found) == JUDGED
    assert found.report() == called_plainly(txn_audit(found.location, "report")[1])


def test_it_is_opened_again_by_its_place_its_instant_and_its_id(found):
    for chosen in ({}, {"as_of": AS_OF}, {"as_of": "2026-11-21T07:42:41.899Z"}, {"run_id": found.run_id}):
        assert txnlib.open_audit(found.location, **chosen).run_id == found.run_id
    nobody = f"no such run: {found.run_id}0; did you mean {found.run_id}?"
    for said, wrong in {
        "check cluster= and as_of=": {"as_of": 0},
        nobody: {"run_id": f"{found.run_id}0"},
        "mutually exclusive": {"schema": "a.b"},
    }.items():
        with pytest.raises(UsageError, match=re.escape(said)):
            txnlib.open_audit(found.location, **wrong)


def test_the_example_of_the_page_explains_a_transaction_as_the_command_line_does(found, monkeypatch, capsys):
    monkeypatch.setattr(txnlib, "audit", {"capture": found}.__getitem__)
    exec(example("api.md"), {})  # audits a capture, and explains one transaction of it
    assert capsys.readouterr().out.endswith(txn_audit(found.location, "explain", "payments", 0, 24)[1] + "\n")
    in_a_store = txnlib.open_audit(f"file://{found.location}")
    assert str(txnlib.explain(in_a_store, "payments", 0, 24)) == str(txnlib.explain(found, "payments", 0, 24))
    with pytest.raises(UsageError, match="open there: 24"):
        txnlib.explain(found, "payments", 0, 25)
    assert str(found.explain("payments", "0", "24")) == str(found.explain("payments", 0, 24))
    with pytest.raises(UsageError, match="start_offset=first: expected a whole number"):
        found.explain("payments", 0, "first")


def test_an_audit_answers_as_the_command_line_does(found):
    asked = {
        "abort-plan": found.plan(),
        "explain payments 0 24": found.explain("payments", 0, 24),
        "timeline payments 0": found.timeline("payments", 0),
        "timeline payments-batch-7": found.timeline("payments-batch-7"),
        "transaction payments-batch-7": found.transaction("payments-batch-7"),
    }
    for command, answer in asked.items():
        assert str(answer) == txn_audit(found.location, *command.split())[1], command
    assert found.counts == {"HANGING": 1, "LATE": 2, "OPEN": 1}
    assert [row["topic"] for row in found.hanging.collect()] == ["payments"]
    assert len(found.hanging.columns) < 10, "as many as a screen has room for"
    assert found.html().startswith("<!doctype html>")


def test_a_notebook_shows_the_report_and_completes_tables(found):
    assert found._repr_html_() == f"<pre>{escape(render(found._reported(), 88))}\n</pre>"
    assert escape(found.report()).split()[:40] == found._repr_html_().removeprefix("<pre>").split()[:40]
    story = found.explain("payments", 0, 24)
    shown = story._repr_html_()
    told, _, _ = unescape(shown[shown.index("<pre>") :]).partition("\nRECORDS")
    is_command = re.compile("  do ")
    longest = max(len(line) for line in told.splitlines() if not is_command.match(line))
    assert longest <= len("<pre>") + 88, "JupyterLab would break longer lines"
    assert len(shown.split()) > len(str(story).split()) / 2
    assert repr(story) == f"<Story of {len(story.events)} events, run {found.run_id}>"
    assert {"open_transactions", "findings"} <= set(dir(found.tables))
    assert found.tables.brokers.count() == 2
    with pytest.raises(AttributeError, match="no table nothing"):
        _ = found.tables.nothing


def test_runs_are_listed_and_two_are_compared(spark, tmp_path):
    out = three_nights(tmp_path / "out")
    assert [row["run_id"] for row in txnlib.runs(out).collect()] == sorted(
        (row["run_id"] for row in txnlib.runs(out).collect()), reverse=True
    )
    then, now = (txnlib.open_audit(out, as_of=NIGHTS[number]) for number in (0, 1))
    assert txnlib.diff(then, now) == txn_audit(out, "diff", then.run_id, now.run_id)[1]


def test_a_query_is_asked_as_documents_show(found, capsys):
    exec(example("sql.md").replace("out/quickstart", found.location), {})
    assert "|   payments|        0|HANGING|" in capsys.readouterr().out


def test_tables_of_one_run_and_of_all(spark, tmp_path):
    out = three_nights(tmp_path / "out")
    night = txnlib.open_audit(out, as_of=NIGHTS[1])
    assert (night.table("open_transactions").count(), night.all_runs("open_transactions").count()) == (2, 7)
    changes = night.sql("SELECT change FROM verdict_changes WHERE topic = 'payments' ORDER BY as_of").collect()
    assert changes == [("NEW",), ("ENDED",)]
    with pytest.raises(UsageError, match="no table transaction; expected one of audit_runs"):
        night.table("transaction")
    assert night.table("live_producers").isEmpty(), "a table that is made only with rows"
    rmtree(out / "quarantine")
    with pytest.raises(MissingTableError, match="quarantine"):
        night.table("quarantine")


def test_what_cannot_be_audited_is_named(spark, tmp_path):
    with pytest.raises(UnreadableInputError, match="no such file or folder"):
        txnlib.audit(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="mutually exclusive"):
        txnlib.audit(tmp_path, output=tmp_path, schema="a.b")
    for nothing in (None, [], ""):
        with pytest.raises(UsageError, match=r"capture= names nothing"):
            txnlib.audit(nothing)


def test_the_import_is_light_and_offers_what_it_says():
    asked = (
        "import sys, txnlib; before = 'pyspark' in sys.modules; from txnlib import audit, explain, open_audit,"
        " Audit;print(before, 'pyspark' in sys.modules, sorted(txnlib.__all__), hasattr(txnlib, 'nothing'), 'audit' in"
        " dir(txnlib))"
    )
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True, cwd=ROOT)
    names = ["Audit", "Story", *ERRORS, "__version__", "audit", "diff", "explain", "open_audit", "read", "runs"]
    assert done.stdout.strip() == f"False True {sorted(names)} False True"


ERRORS = [
    name for name, error in vars(errors).items() if isinstance(error, type) and issubclass(error, errors.TxnlibError)
]


def test_all_errors_can_be_caught_by_the_names_of_the_library():
    assert len(ERRORS) > 7
    assert [getattr(txnlib, name) for name in ERRORS] == [getattr(errors, name) for name in ERRORS]


def test_editors_complete_the_modes_that_the_job_offers():
    """And other values are refused: each would silently mean the default."""
    hints = get_type_hints(txnlib.audit, vars(auditing) | {"Callable": Callable, "Sequence": Sequence})
    assert get_args(hints["mode"]) == MODES
    with pytest.raises(txnlib.UsageError, match=f"mode=other: expected {' or '.join(MODES)}"):
        AuditRequest(mode="other")


#: What needs no PySpark, over the tables of a folder: what it reads, and what it answers.
WITHOUT_PYSPARK = """
import json, sys
sys.modules["pyspark"] = None
import txnlib

read, found = txnlib.read(sys.argv[1]), txnlib.open_audit(sys.argv[1])
print(json.dumps([read.run_id, read.open_transactions.num_rows, answers(found), found.cluster]))
for needs_it in (lambda: found.hanging, lambda: found.sql("SELECT 1"), lambda: txnlib.audit, lambda: txnlib.runs):
    try:
        needs_it()
    except txnlib.MissingExtraError as error:
        print(error)
"""


def answers(audit):
    return [
        audit.counts, audit.report(), audit.plan(), str(audit.explain("payments", 0, 24)),
        str(audit.timeline("orders", 0)), str(audit.transaction("payments-batch-7")), audit.html(), str(audit.as_of),
        audit.settings.coordinator_partitions,
    ]  # fmt: skip


def test_without_pyspark_an_output_is_read_and_answers(found):
    program = f"{inspect.getsource(answers)}\n{WITHOUT_PYSPARK}"
    done = subprocess.run(
        [sys.executable, "-c", program, found.location], capture_output=True, text=True, check=True, cwd=ROOT
    )
    known, *refused = done.stdout.splitlines()
    again = answers(txnlib.open_audit(found.location))
    assert json.loads(known) == [found.run_id, len(JUDGED), again, "quickstart"]
    named = ("a DataFrame", "a DataFrame", "txnlib.audit", "txnlib.runs")
    for what, says in zip(named, refused, strict=True):
        assert says.startswith(f"{what} needs pyspark: {sys.executable} -m pip install 'txnlib[local]'")


@pytest.mark.parametrize("name", ["audit_runs", "partition_transactions", "hanging_transactions", "brokers"])
def test_rows_are_read_as_frames_have_them(found, name):
    read, frame = txnlib.read(found.location)[name], arrow_of(found.table(name))
    assert read.column_names == frame.column_names
    assert sorted(map(repr, read.to_pylist())) == sorted(map(repr, frame.to_pylist()))


def test_a_catalog_needs_spark():
    asked = "import sys, txnlib; sys.modules['pyspark'] = None; txnlib.open_audit(schema='audits')"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False, cwd=ROOT)
    assert "needs pyspark: " in done.stderr.splitlines()[-1]
    assert "install 'txnlib[spark]'" in done.stderr.splitlines()[-1]
    for needs_a_place in (txnlib.open_audit, txnlib.runs):
        with pytest.raises(UsageError, match="give either output= or schema="):
            needs_a_place()


def test_without_delta_a_session_names_the_extra(monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(spark_engine, "version", lambda name: missing(name) if name == "delta-spark" else version(name))
    monkeypatch.setattr(spark_engine.sys, "prefix", "nowhere")
    for name in ("TXNLIB_DELTA_JARS", "PYSPARK_GATEWAY_PORT", "PYSPARK_SUBMIT_ARGS", "DATABRICKS_RUNTIME_VERSION"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ImportError, match=r"needs delta-spark: .* -m pip install 'txnlib\[spark\]'"):
        spark_engine._alone()
