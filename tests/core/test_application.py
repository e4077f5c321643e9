"""The application in a transactional id of each framework."""

from __future__ import annotations

import pytest

from txnlib.core.application import BARE_UUIDS, PATTERNS, application_of, compiled

UUID = "0c5a1f9e-4b1d-4c7e-9f3a-2b8d6e7f1a90"
EXAMPLES = {
    f"fraud-scores-{UUID}-3": "fraud-scores",
    "fraud-scores-0_3": "fraud-scores",
    "connect-cluster-jdbc-sinks": "jdbc-sinks",
    "orders-enricher-4-1187": "orders-enricher",
    "payments-batch-7": "payments-batch",
    "tx.7": "tx",
    "stream-app-0_3-17": "stream-app",
    f"worker-{UUID}": "worker",
    "connect-cluster-jdbc-source-0": "jdbc-source",
    "connect-cluster-jdbc-source-11": "jdbc-source",
    "connect-cluster-connect-cluster": "connect-cluster",
    "eu-connect-jdbc-source-3": "eu-connect-jdbc-source",
    "billing-7c9f8b6d5f-x2k4j": "billing",
    "billing-7c9f8b6d5f-x2k4j-3": "billing",
    "ledger-3f9a1c7b2e44": "ledger",
    "ledger_3f9a1c-2": "ledger",
    f"ledger.{UUID.upper()}": "ledger",
    f"ledger-{UUID.replace('-', '')}": "ledger",
}
#: Words and numbers that look like a suffix, and are none.
WHOLE = ["the-facade", "gold-decade", "card-brndsbcd-wxyzb"]


@pytest.mark.parametrize(("transactional_id", "application"), EXAMPLES.items())
def test_every_framework_has_its_form(transactional_id, application):
    assert application_of(transactional_id, compiled()) == application


def test_every_pattern_is_met_by_an_example():
    patterns = compiled()
    first = {next(p.pattern for p in patterns if p.fullmatch(transactional_id)) for transactional_id in EXAMPLES}
    assert first == set(PATTERNS.values())


@pytest.mark.parametrize("transactional_id", [UUID, UUID.upper(), f"{UUID}-7", f"{UUID}_12"])
def test_ids_without_a_name_are_one_application(transactional_id):
    assert application_of(transactional_id, compiled()) == BARE_UUIDS


@pytest.mark.parametrize("transactional_id", ["billing", "", "42", "ünïcode\nid", *WHOLE])
def test_an_id_without_such_a_form_is_its_own_application(transactional_id):
    assert application_of(transactional_id, compiled()) == transactional_id


def test_an_operators_own_pattern_comes_first():
    assert application_of(f"{UUID}-7", compiled([r"(?P<application>\w+)-.*"])) == "0c5a1f9e"
    assert application_of("eu.shop.payments-batch-7", compiled([r"\w+\.(?P<application>\w+)\..*"])) == "shop"


@pytest.mark.parametrize("pattern", ["(", r"(.*)-\d+"])
def test_a_pattern_that_cannot_name_an_application_is_refused(pattern):
    with pytest.raises(ValueError, match=r"application|regular expression"):
        compiled([pattern])
