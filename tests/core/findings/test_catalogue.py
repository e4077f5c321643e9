"""The severity and the meaning of every finding."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from txnlib.core.finding import Alarm, Finding, Severity
from txnlib.core.findings.catalogue import FINDINGS
from txnlib.core.findings.coordinator_findings import PRODUCER_ID_OWNED_TWICE
from txnlib.core.findings.marker_findings import SPLIT_OUTCOME


def test_every_finding_of_the_core_is_listed_by_the_name_of_its_constant(repository: Path) -> None:
    defined = re.compile(r'^(\w+): Final = Finding\(\n    name="(\w+)",$', re.MULTILINE)
    files = sorted((repository / "txnlib").rglob("*.py"))
    found = [pair for path in files for pair in defined.findall(path.read_text())]
    assert sorted(found) == sorted((name, name) for name in FINDINGS)
    assert len(found) == sum(path.read_text().count("= Finding(") for path in files)


@pytest.mark.parametrize("finding", FINDINGS.values(), ids=lambda finding: finding.name)
def test_meaning_and_advice_are_sentences(finding: Finding) -> None:
    meaning, advice = finding.meaning, finding.advice

    assert meaning[0].isupper()
    assert meaning.endswith(".")
    assert len(meaning.split()) >= 6
    assert meaning.isprintable()
    assert not advice[0].isupper()
    assert advice.endswith(".")


def test_a_verdict_asks_for_no_finding_that_no_rule_has() -> None:
    assert {alarm.value for alarm in Alarm} <= set(FINDINGS)


def test_no_two_findings_mean_the_same() -> None:
    assert len({each.meaning for each in FINDINGS.values()}) == len(FINDINGS)


def test_severities_can_be_compared() -> None:
    assert sorted(Severity) == [Severity.INFO, Severity.WARNING, Severity.ERROR, Severity.CRITICAL]


#: Findings named after the error that a broker would have returned (Kafka: `Errors`).
ERRORS = [
    "INVALID_PRODUCER_EPOCH",
    "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "INVALID_TXN_STATE",
    "TRANSACTION_COORDINATOR_FENCED",
    "UNKNOWN_TOPIC_OR_PARTITION",
]


@pytest.mark.parametrize("name", ERRORS)
def test_what_a_leader_refuses_is_named_as_its_error_and_is_no_mere_information(name: str) -> None:
    assert FINDINGS[name].severity > Severity.INFO


#: finding -> severity, where a scenario or an incident depends on it.
SEVERITIES = {
    SPLIT_OUTCOME: Severity.CRITICAL,  # M20: atomicity is broken
    PRODUCER_ID_OWNED_TWICE: Severity.CRITICAL,  # M22: corruption
}


@pytest.mark.parametrize("finding", list(SEVERITIES), ids=lambda finding: finding.name)
def test_a_severity_is_what_the_scenario_demands(finding: Finding) -> None:
    assert finding.severity is SEVERITIES[finding]
