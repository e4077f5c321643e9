"""The result of a run for programs, as Prometheus metrics and as JSON."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as text_format

from tests.support.outcomes import REPORT, lag, outcome
from txnlib.ask.run_result import METRICS, render_metrics, render_numbers
from txnlib.ask.words import URGENCY
from txnlib.core.display import printable

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def samples(text, parser=text_format):
    return {(s.name, *sorted(s.labels.items())): s.value for family in parser(text) for s in family.samples}


def test_both_formats_of_prometheus_read_the_same_numbers():
    text = render_metrics(outcome())
    assert samples(text) == samples(text, open_metrics)
    assert text.endswith("# EOF\n")
    cluster = ("cluster", "blue")
    read = samples(text)
    assert read["txnlib_audit_success", cluster] == 1
    assert read["txnlib_open_transactions", cluster, ("verdict", "HANGING")] == 2
    assert read["txnlib_partitions_with_late_transactions", ("broker", "3"), cluster] == 4
    assert read["txnlib_lso_lag_max_seconds", cluster] == 1_380
    assert read["txnlib_coverage_ratio", cluster] == 0.75
    assert read["txnlib_audit_newest_capture_age_seconds", cluster] == 7_200
    assert read["txnlib_audit_duration_seconds", cluster] == 90


def test_every_gauge_is_there_when_everything_is_known():
    told = {name for name, *_ in samples(render_metrics(outcome()))}
    assert {*METRICS} - told == {"txnlib_acknowledged_until_timestamp_seconds"}, "nothing is acknowledged"
    assert told <= {*METRICS}


def test_what_was_not_found_is_0_and_not_missing():
    read = samples(render_metrics(outcome()))
    told = {
        dict(labels)["verdict"]: value for (name, *labels), value in read.items() if name == "txnlib_open_transactions"
    }
    assert told == dict.fromkeys(URGENCY, 0) | {"HANGING": 2, "OPEN": 1}


def test_a_run_that_failed_says_so_and_nothing_of_what_it_would_have_results():
    failed = replace(outcome(), exit_code=1, error="the disk is full", found=None)
    told = {name for name, *_ in samples(render_metrics(failed))}
    assert samples(render_metrics(failed))["txnlib_audit_success", ("cluster", "blue")] == 0
    assert {name for name in told if not name.startswith("txnlib_audit_")} == set()
    said = json.loads(render_numbers(failed))
    expected = {"success": False, "exit_code": 1, "error": "the disk is full", "found": None}
    assert {name: said[name] for name in expected} == expected


def test_without_capture_instants_their_age_is_not_told():
    unknown = outcome(replace(REPORT, captured_to_ms=None))
    assert "newest_capture" not in render_metrics(unknown)
    assert json.loads(render_numbers(unknown))["found"]["newest_capture"] is None


@settings(max_examples=50, deadline=None, database=None)
@given(cluster=NAMES, topic=NAMES)
def test_names_come_back_as_they_were(cluster, topic):
    named = replace(outcome(partitions=[lag(topic=topic)]), cluster=cluster)
    labels = {("cluster", printable(cluster)), ("topic", printable(topic)), ("partition", "0")}
    for parser in (text_format, open_metrics):
        read = samples(render_metrics(named), parser)
        assert read["txnlib_lso_lag_offsets", *sorted(labels)] == 187
        assert all(c.isprintable() or c == "\n" for c in render_metrics(named))
    numbers = render_numbers(named)
    assert json.loads(numbers)["found"]["lag"]["longest"][0]["topic"] == topic
    assert all(c.isprintable() or c == "\n" for c in numbers)


@pytest.mark.parametrize("name", METRICS)
def test_a_gauge_says_what_it_is_in_words_that_both_formats_allow(name):
    metric = METRICS[name]
    assert re.fullmatch(r"[A-Z_1][^\"\\\n]+\.", metric.about), "the older format knows no quotes in a help"
    assert re.fullmatch(r"txnlib_[a-z_]+(?<!_total)", name)


def test_json_tells_what_the_report_tells():
    told = json.loads(render_numbers(outcome()))
    assert (told["cluster"], told["run_id"], told["exit_code"], told["duration_seconds"]) == ("blue", "blue-1", 0, 90)
    assert told["written"] == {"segments": {"rows": 23, "seconds": 1.5}}
    assert told["found"]["verdicts"]["HANGING"] == 2
    assert told["found"]["transactions_left_out"] == 2
    (shown,) = told["found"]["transactions"]
    assert (shown["topic"], shown["start_offset"], shown["verdict"]) == ("payments", 24, "HANGING")
    assert told["found"]["coverage"]["partitions"] == {"COMPLETE": 2, "PARTIAL": 1, "DAMAGED": 0, "MISSING": 1}
    assert told["found"]["as_of"] == "2026-11-21T07:42:41.899Z"


FIELDS = (
    "schema_version success exit_code error cluster run_id version engine started finished duration_seconds written"
    " found"
)
FOUND = (
    "as_of as_of_basis newest_capture newest_capture_age_seconds tables answer verdicts transactions_by_verdict"
    " held_partitions_by_verdict stuck_ids withdrawn transactions transactions_left_out ended"
    " unacknowledged acknowledged_until acknowledged lag brokers"
    " coverage findings named_findings"
)


def test_the_fields_of_the_json_stay_until_its_version_changes():
    told = json.loads(render_numbers(outcome()))
    assert (told["schema_version"], " ".join(told), " ".join(told["found"])) == (1, FIELDS, FOUND)
    assert " ".join(told["found"]["lag"]) == "partitions max_offsets max_seconds longest"
    assert " ".join(told["found"]["lag"]["longest"][0]) == (
        "topic partition lag_offsets lag_bytes lag_seconds blocking_producer_id blocking_transactional_id"
        " blocking_verdict ends_by"
    )
    assert told["found"]["brokers"] == [
        {"broker": "3", "partitions_with_late_transactions": 4, "active_transaction_open_time_max_seconds": 1.5}
    ]
    assert told["found"]["named_findings"] == [{"name": "COPIES_DISAGREE", "severity": "WARNING", "count": 1}]


def test_the_page_names_fields_that_there_are(repository):
    page = (repository / "docs" / "numbers.md").read_text().partition("## `--summary")[2]
    named = re.findall(r"^`(\w+)` \|", page, re.MULTILINE)
    told = json.loads(render_numbers(outcome()))
    assert "answer" in named
    assert {*named} <= {*told, *told["found"]}
