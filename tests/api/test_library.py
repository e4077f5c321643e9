"""Does `import txnlib` do what its page says? One audit in a temporary folder, asked from there on; and what it costs to import."""

from __future__ import annotations

import pytest

import txnlib
from tests.support.delta_tables import txn_audit


@pytest.fixture(scope="module")
def found(spark, repository):
    return txnlib.audit(repository / "examples" / "quickstart" / "brokers", progress=LINES.append)


LINES: list[str] = []


def verdicts(audit):
    return {row["verdict"]: row["count"] for row in audit.table("open_transactions").groupBy("verdict").count().collect()}


def test_a_capture_is_audited_into_tables(spark, found):
    before = spark.conf.get("spark.sql.maxConcurrentOutputFileWriters")
    assert verdicts(found) == {"HANGING": 1, "LATE": 2, "OPEN": 1}
    assert (found.cluster, found.as_of.isoformat()) == ("quickstart", "2026-11-21T07:42:41.899000+00:00")
    assert found.settings.coordinator_partitions == 5
    assert [line for line in LINES if line.startswith("open_transactions: ")]
    assert spark.conf.get("spark.sql.maxConcurrentOutputFileWriters") == before
    assert found.report() == txn_audit(found.location, "report")[1]
