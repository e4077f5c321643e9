"""The Databricks dashboard, as far as it can be checked without Databricks."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.delta_tables import session_views
from txnlib.core.schema.views import VIEWS

WIDTH = 6
#: Widgets that Databricks draws in this version.
VERSIONS = {"table": 2, "counter": 2, "filter-multi-select": 2, "filter-date-range-picker": 2, "bar": 3, "line": 3}
#: What a filter asks for beside its values, so that Databricks knows which are left.
ASSOCIATIVITY = "COUNT_IF(`associative_filter_predicate_group`)"


@pytest.fixture(scope="module")
def dashboard(repository) -> dict[str, Any]:
    resources = yaml.safe_load((repository / "resources" / "dashboard.yml").read_text())["resources"]
    return json.loads((repository / "resources" / resources["dashboards"]["transactions"]["file_path"]).read_text())


@pytest.fixture(scope="module")
def datasets(dashboard) -> dict[str, str]:
    """The query of each data set."""
    return {each["name"]: "".join(each["queryLines"]) for each in dashboard["datasets"]}


def widgets(page: dict[str, Any]) -> list[dict[str, Any]]:
    return [place["widget"] for place in page["layout"]]


def kind(widget: dict[str, Any]) -> str:
    return widget["spec"]["widgetType"]


def queries(dashboard: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for page in dashboard["pages"]:
        for widget in widgets(page):
            for query in widget["queries"]:
                yield widget, query


def encoded(widget: dict[str, Any]) -> list[dict[str, str]]:
    """The fields that a widget draws."""
    found: list[dict[str, str]] = []
    for drawn in widget["spec"]["encodings"].values():
        found += drawn if isinstance(drawn, list) else [drawn]
    return found


def test_it_has_counters_charts_over_nights_tables_and_filters(dashboard):
    tonight, nights = ([kind(widget) for widget in widgets(page)] for page in dashboard["pages"])
    assert (tonight.count("counter"), "table" in tonight, "filter-multi-select" in tonight) == (4, True, True)
    assert {"bar", "line", "filter-multi-select", "filter-date-range-picker"} <= set(nights)
    assert [
        kind(w) for page in dashboard["pages"] for w in widgets(page) if w["spec"]["version"] != VERSIONS[kind(w)]
    ] == []


def test_every_widget_draws_what_it_asks_for_and_every_data_set_is_shown(dashboard, datasets):
    shown = [(widget, query) for widget, query in queries(dashboard) if not kind(widget).startswith("filter")]
    assert {query["query"]["datasetName"] for _, query in shown} == datasets.keys()
    for widget, query in shown:
        asked = [field["name"] for field in query["query"]["fields"]]
        assert sorted(asked) == sorted(field["fieldName"] for field in encoded(widget)), widget["name"]
        assert all(field["displayName"] for field in encoded(widget))


def test_a_filter_filters_all_that_its_page_shows(dashboard):
    for page in dashboard["pages"]:
        shown = {
            q["query"]["datasetName"] for w in widgets(page) if not kind(w).startswith("filter") for q in w["queries"]
        }
        for widget in widgets(page):
            if kind(widget).startswith("filter"):
                asked = {query["name"]: query["query"] for query in widget["queries"]}
                assert {query["datasetName"] for query in asked.values()} == shown, widget["name"]
                (column,) = {field["fieldName"] for field in encoded(widget)}
                assert [field["queryName"] for field in encoded(widget)] == list(asked)
                for query in asked.values():
                    assert [field["expression"] for field in query["fields"]] == [f"`{column}`", ASSOCIATIVITY]


def test_widgets_have_names_of_their_own_and_places_of_their_own(dashboard):
    names = [widget["name"] for page in dashboard["pages"] for widget in widgets(page)]
    assert len(names) == len(set(names))
    for page in dashboard["pages"]:
        places = [place["position"] for place in page["layout"]]
        squares = [
            (x, y)
            for p in places
            for x in range(p["x"], p["x"] + p["width"])
            for y in range(p["y"], p["y"] + p["height"])
        ]
        assert len(squares) == len(set(squares))
        assert {x for x, _ in squares} == set(range(WIDTH))


def test_what_is_shown_of_tonight_comes_from_the_views(dashboard, datasets):
    tonight, _ = dashboard["pages"]
    for name in {query["query"]["datasetName"] for widget in widgets(tonight) for query in widget["queries"]}:
        named = re.findall(r"(?:FROM|JOIN) (\w+)", datasets[name])
        assert [table for table in named if not table.startswith("latest_") or table not in VIEWS] == [], name


def test_every_widget_has_something_to_show_on_the_sample(spark, audited_in_a_notebook, dashboard, datasets):
    """But for what the sample does not have: verdicts of two kinds, and an audit before."""
    shown = {}
    with session_views(spark, Path(audited_in_a_notebook["found"].location)):
        for widget, query in queries(dashboard):
            fields = [field["expression"] for field in query["query"]["fields"] if field["expression"] != ASSOCIATIVITY]
            grouped = [expression for expression in fields if expression.startswith("`")]
            asked = f"SELECT {', '.join(fields)} FROM ({datasets[query['query']['datasetName']]})"
            if not query["query"]["disaggregated"] and grouped:
                asked += f" GROUP BY {', '.join(grouped)}"
            rows = spark.sql(asked).collect()
            shown[widget["name"]] = (
                rows[0][0] if kind(widget) == "counter" else shown.get(widget["name"], 0) + len(rows)
            )
    empty = {name for name, rows in shown.items() if not rows}
    assert empty == {"stuck_counter", "not_decided_counter", "changes_table"}
    assert (shown["hanging_counter"], shown["late_counter"], shown["verdicts_chart"], shown["plan_table"]) == (
        1,
        2,
        2,
        2,
    )
