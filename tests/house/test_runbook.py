"""An entry of the runbook for everything that a report can say."""

import re

import pytest

from txnlib.core.findings.catalogue import FINDINGS
from txnlib.core.verdicts.reason import Verdict


@pytest.fixture(scope="module")
def sections(repository):
    text = (repository / "docs" / "runbook.md").read_text()
    verdicts, findings = text.split("\n## Findings\n")
    return verdicts, findings


def test_every_verdict_has_a_section_and_nothing_else_has(sections):
    assert re.findall(r"^### `(\w+)`$", sections[0], re.MULTILINE) == [str(verdict) for verdict in Verdict]


def test_every_finding_has_one_place(sections):
    named = [
        name
        for entry in re.findall(r"^\* ((?:`\w+`,?\s+)*`\w+`):", sections[1], re.MULTILINE)
        for name in re.findall(r"\w+", entry)
    ]
    assert sorted(named) == sorted(FINDINGS)
