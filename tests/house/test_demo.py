"""The audit of the sample: its tables, its report and its log."""

import re

import pytest
from deltalake import DeltaTable

from tests.support.delta_tables import called_plainly, txn_audit
from txnlib.spark.schemas import TABLES

#: What a line of progress tells of a table.
TOLD = re.compile(r"^\S+Z (\w+): ([\d,]+) rows?, ", re.MULTILINE)


@pytest.fixture
def out(repository):
    return repository / "out" / "quickstart"


def counts(out) -> dict[str, int]:
    """Rows of every table, read without Spark: two dozen counts of Delta tables would take it half a minute."""
    return {name: DeltaTable(f"{out}/{name}").to_pyarrow_dataset().count_rows() for name in TABLES}


def test_it_writes_every_table_and_tells_how_many_rows(demo_run, out):
    assert {path.name for path in out.iterdir()} >= set(TABLES)
    rows = {name: int(rows.replace(",", "")) for name, rows in TOLD.findall(demo_run.stderr)}
    assert rows == {name: rows for name, rows in counts(out).items() if name != "audit_runs"}


def test_the_last_line_of_a_good_run_is_ours(demo_run):
    assert re.fullmatch(r"\S+Z report: [\d.]+ s", demo_run.stderr.splitlines()[-1])


def test_the_report_again_without_spark_is_the_same(demo, out):
    assert "FINDINGS" not in demo, "a cluster without corruption has no finding above INFO"
    code, again, _ = txn_audit(out, "report")
    demo, again = called_plainly(demo), called_plainly(again)
    assert (code, again.replace(f"{out}", "out/quickstart")) == (0, demo.replace(f"{out}", "out/quickstart"))
