"""The dashboard for Grafana: of Grafana's types, with every gauge, and without queries for anything else."""

import json
import re
from itertools import combinations
from typing import Any

import promql_parser
import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from tests.support.promql import check
from txnlib.ask.metrics import METRICS


@pytest.fixture(scope="module")
def board(repository) -> dict[str, Any]:
    return json.loads((repository / "deploy" / "grafana" / "txnlib.json").read_text())


@pytest.fixture(scope="module")
def panels(board) -> list[dict[str, Any]]:
    return board["panels"]


def queries(panels: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Each expression, as Prometheus gets it, with its legend."""
    targets = [target for panel in panels for target in panel.get("targets", [])]
    return [(target["expr"].replace("$cluster", "blue"), target["legendFormat"]) for target in targets]


def grouped_by(expression: str) -> list[str]:
    """Labels of all `by (…)` in an expression."""
    found: list[str] = []

    def visit(part: promql_parser.Expr) -> None:
        found.extend(part.modifier.labels if isinstance(part, promql_parser.AggregateExpr) and part.modifier else [])

    promql_parser.walk(promql_parser.parse(expression), visit)
    return found


def lost(given: Any, kept: Any, path: str = "") -> list[str]:
    """Where `kept` lacks something of `given`."""
    if isinstance(given, dict) and isinstance(kept, dict):
        return [each for key, value in given.items() for each in lost(value, kept.get(key, "nothing"), f"{path}/{key}")]
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        return [
            each
            for number, pair in enumerate(zip(given, kept, strict=True))
            for each in lost(*pair, f"{path}/{number}")
        ]
    return [] if given == kept else [path]


def test_grafana_knows_every_field(board):
    """A field that its types do not have is lost on the way through them."""
    register_default_plugins()
    kept = json.loads(JSONEncoder().encode(Dashboard.from_json(board)))
    assert lost(board, kept) == []
    assert lost({**board, "panles": []}, kept) == ["/panles"]


def test_every_query_asks_for_gauges_and_labels_that_there_are(panels):
    for expression, legend in queries(panels):
        check(expression, grouped_by(expression))
        shown = set(re.findall(r"\{\{(\w+)\}\}", legend))
        by = grouped_by(expression)
        assert shown <= (set(by) if by else label_names(expression)), (expression, legend)


def label_names(expression: str) -> set[str]:
    return {"cluster"}.union(*[METRICS[name].labels for name in check(expression)])


def test_every_gauge_is_shown(panels):
    assert set().union(*[check(expression) for expression, _ in queries(panels)]) == METRICS.keys()


def test_every_query_is_about_the_clusters_that_are_chosen(board, panels):
    for panel in panels:
        for target in panel.get("targets", []):
            assert target["expr"].count('cluster=~"$cluster"') == len(re.findall(r"txnlib_\w+", target["expr"])), panel[
                "title"
            ]
            assert target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert [variable["name"] for variable in board["templating"]["list"]] == ["datasource", "cluster"]
    (asked,) = re.findall(r"label_values\((\w+), cluster\)", board["templating"]["list"][1]["query"]["query"])
    assert asked in METRICS


def test_panels_have_numbers_and_places_of_their_own(panels):
    assert len({panel["id"] for panel in panels}) == len(panels)
    places = [panel["gridPos"] for panel in panels]
    for one, other in combinations(places, 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below, (one, other)
    assert max(place["x"] + place["w"] for place in places) == 24


def test_what_a_table_renames_is_a_column_that_it_has(panels):
    tables = [panel for panel in panels if panel["type"] == "table"]
    assert len(tables) == 2
    for table in tables:
        columns = {"Time", *[f"Value #{target['refId']}" for target in table["targets"]]}
        (organized,) = [each["options"] for each in table["transformations"] if each["id"] == "organize"]
        assert organized["excludeByName"].keys() | organized["renameByName"].keys() == columns
        named = {override["matcher"]["options"] for override in table["fieldConfig"]["overrides"]}
        assert named <= set(organized["renameByName"].values())
