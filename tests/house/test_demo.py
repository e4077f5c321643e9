"""The audit of the sample: its tables, its report and its log."""

import re

import pytest
from deltalake import DeltaTable

from tests.support.delta_tables import called_plainly, txn_audit
from txnlib.core.schema import ALWAYS_THERE, TABLES


@pytest.fixture
def out(repository):
    return repository / "out" / "quickstart"


def counts(out) -> dict[str, int]:
    """Rows of every table. Most tables without rows are not there."""
    made = {path.name for path in out.iterdir()}
    return {
        name: DeltaTable(f"{out}/{name}").to_pyarrow_dataset().count_rows() if name in made else 0 for name in TABLES
    }


def test_it_writes_every_table_that_has_rows(demo_run, out):
    assert {path.name for path in out.iterdir() if path.is_dir()} == {
        name for name, rows in counts(out).items() if rows
    } | ALWAYS_THERE


def test_every_line_of_a_good_run_is_ours(demo_run):
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ", line) for line in demo_run.stderr.splitlines())


def test_the_report_again_without_spark_is_the_same(demo, out):
    assert "FINDINGS" not in demo, "a cluster without corruption has no finding above INFO"
    code, again, _ = txn_audit(out, "report")
    demo, again = called_plainly(demo), called_plainly(again)
    assert (code, again.replace(f"{out}", "out/quickstart")) == (0, demo.replace(f"{out}", "out/quickstart"))
