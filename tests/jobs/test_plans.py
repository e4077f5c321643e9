"""Plans are as large as their question: what has no rows, or is not open, is not asked about."""

import pytest

from bench.plans import counted
from tests.support.audits import AuditTables, audited_anew
from txnlib.core.findings.catalogue import RULES
from txnlib.core.sql_text import tables_of, values_of
from txnlib.pipeline.scheduler import called
from txnlib.pipeline.tables import AUDIT as STEPS
from txnlib.spark.core_rows import odd_rows
from txnlib.spark.frames import no_rows
from txnlib.spark.schemas import TABLES

#: What an audit of the sample may ask for. Whoever needs more says why; whoever needs less lowers it.
MOST_PLANS, MOST_BYTES = 66, 1_020_000


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


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.row.__name__)
def test_a_rule_finds_nothing_without_rows_to_judge(sample, rule):
    tables, *_ = sample
    run = tables.run
    given = {name: called(make)(run) for name, make in rule.given.items()}
    values = {
        name: given[name] if name in given else getattr(run.settings, name)
        for text in rule.texts
        for name in values_of(text)
    }
    named = {name for text in rule.texts for name in tables_of(text)} - {step.name for step in rule.steps}
    rows = {name: run.tables.read(name) for name in named} | {rule.of: no_rows(run.spark, TABLES[rule.of])}
    found = odd_rows(rule, rows, values)
    assert found is None or found.isEmpty()
