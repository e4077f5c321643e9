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

from tests.support.outcomes import AS_OF, lag, outcome, results
from txnlib.ask.metrics import METRICS, render_metrics
from txnlib.ask.run_result import URGENCY
from txnlib.ask.summary_json import Numbers, render_numbers
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
    assert {name for name, *_ in samples(render_metrics(outcome()))} == set(METRICS)


def test_what_was_not_found_is_0_and_not_missing():
    read = samples(render_metrics(outcome()))
    told = {
        dict(labels)["verdict"]: value for (name, *labels), value in read.items() if name == "txnlib_open_transactions"
    }
    assert told == dict.fromkeys(URGENCY, 0) | {"HANGING": 2, "OPEN": 1}


def test_a_run_that_failed_says_so_and_nothing_of_what_it_would_have_results():
    failed = replace(outcome(), exit_code=1, error="the disk is full", results=None)
    told = {name for name, *_ in samples(render_metrics(failed))}
    assert samples(render_metrics(failed))["txnlib_audit_success", ("cluster", "blue")] == 0
    assert {name for name in told if not name.startswith("txnlib_audit_")} == set()
    numbers = Numbers.model_validate_json(render_numbers(failed))
    assert (numbers.success, numbers.exit_code, numbers.error, numbers.found) == (False, 1, "the disk is full", None)


def test_without_capture_instants_their_age_is_not_told():
    summary = replace(results().summary, captured_to_ms=None)
    unknown = outcome(replace(results(), summary=summary))
    assert "newest_capture" not in render_metrics(unknown)
    assert json.loads(render_numbers(unknown))["found"]["newest_capture"] is None


@settings(max_examples=50, deadline=None, database=None)
@given(cluster=NAMES, topic=NAMES)
def test_names_come_back_as_they_were(cluster, topic):
    named = replace(outcome(replace(results(), lags=[lag(topic=topic)])), cluster=cluster)
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


def test_an_instant_that_no_calendar_reaches_is_told_as_a_number():
    far = replace(results(), transactions=[results().transactions[0] | {"blocks_since": 2**62}])
    assert json.loads(render_numbers(outcome(far)))["found"]["transactions"][0]["blocks_since"] == f"{2**62} ms"
    assert AS_OF < 2**62


def test_every_field_says_what_it_is():
    models = [Numbers.model_json_schema(), *Numbers.model_json_schema()["$defs"].values()]
    assert [name for model in models for name, field in model["properties"].items() if "description" not in field] == []
