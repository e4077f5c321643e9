"""Plans are as large as their question: what has no rows, or is not open, is not asked about."""

from inspect import signature
from typing import get_type_hints

import pytest
from pyspark.sql import DataFrame

from bench.plans import counted
from tests.support.audits import AuditTables, audited_anew
from txnlib.pipeline.scheduler import called
from txnlib.pipeline.tables import AUDIT as STEPS
from txnlib.spark import findings
from txnlib.spark.core_rows import Suspects
from txnlib.spark.frames import no_rows
from txnlib.spark.schemas import TABLES

#: What an audit of the sample may ask for. Whoever needs more says why; whoever needs less lowers it.
MOST_PLANS, MOST_BYTES = 66, 1_020_000
#: The rules that judge the rows of a table, which is their first parameter.
RULES = {
    rule.__name__: rule
    for rule in (*(select for select, _ in findings.RULES), *findings.OTHERS)
    if get_type_hints(rule)[next(iter(signature(rule).parameters))] is DataFrame
}


@pytest.fixture(scope="module")
def sample(repository) -> tuple[AuditTables, int, int]:
    """An audit of the sample, the number of its plans, and their bytes."""
    with counted() as plans:
        tables = audited_anew([repository / "examples" / "quickstart" / "brokers"])
        tables.make(*(step.name for step in STEPS))
    return tables, len(plans), sum(plan.bytes for plan in plans)


def test_an_audit_of_the_sample_asks_for_few_and_small_plans(sample):
    _, number, size = sample
    assert number <= MOST_PLANS
    assert size <= MOST_BYTES


def test_where_nothing_is_open_nothing_is_asked_about_it(captures):
    tables = audited_anew([captures / "healthy-4.0" / "brokers"])
    tables.make("findings", "transactions", "checked_batches", "producer_id_owners", "measured_clocks")
    with counted() as plans:
        tables.make("open_transactions")
    assert sum(plan.bytes for plan in plans if plan.step == "open_transactions") < 8_000
    assert tables.rows("open_transactions") == []


@pytest.mark.parametrize("name", RULES)
def test_a_rule_finds_nothing_without_rows_to_judge(sample, name):
    tables, *_ = sample
    judged = next(iter(signature(RULES[name]).parameters))
    found = called(RULES[name], **{judged: lambda run: no_rows(run.spark, TABLES[judged])})(tables.run)
    rows = found.rows if isinstance(found, Suspects) else found
    assert rows is None or rows.isEmpty()
