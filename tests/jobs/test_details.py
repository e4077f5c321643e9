"""Audits with runs of batches against audits with single batches."""

import pytest

from tests.support.memory_audits import audited
from txnlib.core.batch_runs import single_batches
from txnlib.spark.schemas import TABLES

#: All but the run's own row, which says how it was made.
SAME = sorted(TABLES.keys() - {"audit_runs"})
CAPTURES = (
    "quickstart",
    "hostile-3.9",
    "hostile-4.3",
    "causes-3.9",
    "damaged-3.8",
    "in-motion-4.0",
    "old-disk-4.1",
    "overflow-4.2",
)


def printed(rows):
    """The rows in order, and the single batches of runs."""
    return sorted(repr(batch) for row in rows for batch in single_batches(row))


@pytest.mark.slow
@pytest.mark.parametrize("name", CAPTURES)
def test_every_table_is_the_same_with_runs_and_without(spark, captures, name):
    folder = captures / name
    runs, batches = (audited(spark, folder / "brokers", "--detail", detail) for detail in ("runs", "batches"))
    assert len(runs.rows("record_batches")) < len(batches.rows("record_batches"))
    for table in SAME:
        assert printed(runs.rows(table)) == printed(batches.rows(table)), table
