"""The severity and the meaning of every finding."""

from __future__ import annotations

import pytest

from txnlib.core.finding_catalogue import FINDINGS, Finding, Severity


def test_every_finding_has_a_row_of_its_own() -> None:
    assert len(FINDINGS) == len(Finding.__members__)


@pytest.mark.parametrize("finding", list(Finding))
def test_meaning_and_advice_are_sentences(finding: Finding) -> None:
    meaning, advice = FINDINGS[finding].meaning, FINDINGS[finding].advice

    assert meaning[0].isupper()
    assert meaning.endswith(".")
    assert len(meaning.split()) >= 6
    assert meaning.isprintable()
    assert not advice[0].isupper()
    assert advice.endswith(".")


def test_no_two_findings_mean_the_same() -> None:
    assert len({rule.meaning for rule in FINDINGS.values()}) == len(Finding)


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
    assert FINDINGS[Finding[name]].severity > Severity.INFO


#: finding -> severity, where a scenario or an incident depends on it.
SEVERITIES = {
    Finding.SPLIT_OUTCOME: Severity.CRITICAL,  # M20: atomicity is broken
    Finding.PRODUCER_ID_OWNED_TWICE: Severity.CRITICAL,  # M22: corruption
}


@pytest.mark.parametrize("finding", list(SEVERITIES))
def test_a_severity_is_what_the_scenario_demands(finding: Finding) -> None:
    assert FINDINGS[finding].severity is SEVERITIES[finding]
