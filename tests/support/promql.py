"""What a PromQL expression selects."""

from collections.abc import Iterable

import promql_parser

from txnlib.ask.extents import LOOKS_LATE
from txnlib.ask.metrics import METRICS
from txnlib.ask.run_result import SEVERITIES, URGENCY
from txnlib.ask.summary import STATUSES

#: Values of the labels that have a closed list of them.
VALUES = {"verdict": (*URGENCY, LOOKS_LATE), "severity": SEVERITIES, "status": STATUSES}


def selected(expression: str) -> list[promql_parser.VectorSelector]:
    """The selectors of series in an expression. Raises ValueError if Prometheus would not parse it."""
    found: list[promql_parser.VectorSelector] = []

    def visit(part: promql_parser.Expr) -> None:
        if isinstance(part, promql_parser.VectorSelector):
            found.append(part)

    promql_parser.walk(promql_parser.parse(expression), visit)
    return found


def check(expression: str, grouped_by: Iterable[str] = ()) -> set[str]:
    """The gauges of an expression. Fails if one, a label or the value of a label is not written by an audit."""
    names = set()
    for selector in selected(expression):
        assert selector.name in METRICS, expression
        names.add(selector.name)
        labels = {"cluster", *METRICS[selector.name].labels}
        for matcher in selector.matchers.matchers:
            assert matcher.name in labels, expression
            assert matcher.value in VALUES.get(matcher.name, (matcher.value,)), expression
        assert set(grouped_by) <= labels, expression
    assert names, expression
    return names
