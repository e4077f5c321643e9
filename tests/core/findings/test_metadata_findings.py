"""Findings from the cluster's metadata log, and how rows of findings are written."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import pytest

from txnlib.core.cluster_metadata import PartitionAssignment
from txnlib.core.copies import CoverageRow
from txnlib.core.display import told
from txnlib.core.finding import Severity
from txnlib.core.findings.catalogue import FINDINGS
from txnlib.core.findings.metadata_findings import metadata_findings
from txnlib.core.findings.rule import as_json, found
from txnlib.core.findings.transaction_findings import MARKER_MISSING

TS = 1_700_000_000_000
ELECTED = PartitionAssignment(topic="orders", leader=2, leader_epoch=5, is_unclean=True, since_ms=TS, since_offset=40)
COPY = CoverageRow("orders", 0, "raw:1", leader="1")


def rows(
    *rows: PartitionAssignment | CoverageRow, contradictions: tuple[str, ...] = (), misnamed: tuple[str, ...] = ()
) -> list[tuple[str, str | None, str | None]]:
    elections = [row for row in rows if isinstance(row, PartitionAssignment)]
    copies = [row for row in rows if isinstance(row, CoverageRow)]
    return [
        (row.name, row.topic, row.evidence)
        for row in metadata_findings(elections, copies, contradictions=contradictions, misnamed=misnamed)
    ]


def test_an_unclean_election_is_found_at_its_record() -> None:
    says = "__cluster_metadata offset 40: broker 2 elected at 2023-11-14 22:13:20.000Z, leader epoch 5"
    assert rows(ELECTED) == [("UNCLEAN_LEADER_ELECTION", "orders", says)]
    assert rows(replace(ELECTED, is_unclean=False), replace(ELECTED, since_offset=None)) == []


def test_a_folder_with_the_number_of_another_broker_is_found() -> None:
    assert rows(misnamed=("1 is broker 2's",)) == [("INCONSISTENT_BROKER_ID", None, "1 is broker 2's")]


def test_what_is_not_known_of_an_election_is_null() -> None:
    ((*_, says),) = rows(replace(ELECTED, leader=None, since_ms=None))
    assert says == "__cluster_metadata offset 40: broker null elected at null, leader epoch 5"


def test_leaders_that_contradict_each_other_are_one_finding_per_partition() -> None:
    differs = replace(COPY, noted_leader="1", assigned_leader="2")
    says = "leader 1 by capture.json, 2 by the metadata log; used: 1"
    assert rows(differs, replace(differs, source="raw:2")) == [("CAPTURE_JSON_CONTRADICTED", "orders", says)]
    assert rows(replace(differs, noted_leader=None), replace(differs, assigned_leader="1")) == []


def test_contradicted_settings_have_no_place() -> None:
    assert rows(contradictions=("a", "b")) == [("CAPTURE_JSON_CONTRADICTED", None, says) for says in "ab"]


def test_each_copy_of_a_deleted_topic_is_found() -> None:
    assert rows(replace(COPY, is_deleted=True, topic_id="A"), replace(COPY, is_deleted=True), COPY) == [
        ("COPY_OF_DELETED_TOPIC", "orders", "raw:1 has topic id A"),
        ("COPY_OF_DELETED_TOPIC", "orders", "raw:1 has topic id unknown"),
    ]


def test_a_row_has_severity_and_meaning_from_the_catalogue() -> None:
    for finding in FINDINGS.values():
        row = found(finding, "shown")
        assert (row.name, row.severity, row.message) == (finding.name, finding.severity.name, finding.meaning)
    assert found(MARKER_MISSING, "shown", severity=Severity.WARNING).severity == "WARNING"


@dataclass(frozen=True)
class Inner:
    name: str | None


@dataclass(frozen=True)
class Outer:
    text: str
    number: int | None
    is_set: bool
    inner: tuple[Inner, ...]


def test_json_is_that_of_spark() -> None:
    text = as_json(Outer('é"\\u001f\x1f\t', None, is_set=True, inner=(Inner(None), Inner("a"))))
    assert text == '{"text":"é\\"\\\\u001f\\u001F\\t","is_set":true,"inner":[{},{"name":"a"}]}'
    assert json.loads(text)["text"] == 'é"\\u001f\x1f\t'


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("since 2023-11-14T22:13:20Z", "since 2023-11-14 22:13:20Z"),
        ("since 2023-11-14T22:13:20.050Z", "since 2023-11-14 22:13:20.050Z"),
        (f'{{"start_ms":{TS},"offset":{TS}}}', f'{{"start":"2023-11-14 22:13:20.000Z","offset":{TS}}}'),
        (f'{{"last_timestamp":{TS + 5}}}', '{"last_timestamp":"2023-11-14 22:13:20.005Z"}'),
        (f'{{"max_timestamp_ms":{TS + 50}}}', '{"max_timestamp":"2023-11-14 22:13:20.050Z"}'),
        ('{"transaction_timeout_ms":900000}', '{"transaction_timeout_ms":900000}'),
        (f'{{"start_ms":-{TS}}}', f'{{"start_ms":-{TS}}}'),
    ],
)
def test_instants_in_a_stored_sentence_are_told_in_one_form(stored: str, said: str) -> None:
    assert told(stored) == said
