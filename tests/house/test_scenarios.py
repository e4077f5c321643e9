"""A test, or a reason for none, for every row of the scenarios."""

import ast
import re
from functools import cache
from pathlib import Path

#: group -> the rows of the conformance scenarios: Kafka's own tests restated, and cases derived from its code.
ROWS = {
    "A": "01 02 03 04 06 07 08 10 11 13 15 17 18 19 20 22 23 24",
    "B": "01 02 03 04 05 06 08 09 10 12 13 14 15 16 17 19 21 22 24 25 27 29 30 31 32 35 36 37 39 41 42 44 45 46 47",
    "C": "01 02 03 04 06 07 09 11 12 14 15 16",
    "D": "01 02 03 04 05 06 07 09 10 12 13 16",
    "E": "01 03 05 06 07 08 10 11 12 13 15 16 17 18 20 21 22 23 25",
    "F": "01 02 03 05 06 08 11 13 15 16 17 18 19 20 21 22 23 25 26 27 28",
    "L": (
        "01 02 03 04 05 07 08 09 10 12 13 15 17 19 20 21 23 24 25 27 28 30 31 33 34 35 37 38 39 40 42 43 44 45 47 48"
        " 49 50"
    ),
    "M": "02 03 04 05 07 08 09 10 12 13 14 15 17 18 19 20 22 24",
}
SCENARIOS = {group + number for group, numbers in ROWS.items() for number in numbers.split()}
#: Rows whose tests are being written on other branches: empty this once they are here.
AWAITED: set[str] = set()
ID = r"[A-FLM]\d\d"


@cache
def named_in_tests(repository: Path) -> set[str]:
    """Ids in names of tests, and at the head of what names their parameters."""
    found: set[str] = set()
    for path in (repository / "tests").rglob("test_*.py"):
        if path.parent.name == "house":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found |= set(re.findall(rf"_({ID})(?=_)", node.name))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= set(re.findall(rf"^({ID})(?= |$)", node.value))
    return found


def without_a_test(repository: Path) -> set[str]:
    return set(re.findall(rf"^\| ({ID}) \|", (repository / "docs" / "scenarios.md").read_text(), re.MULTILINE))


def test_every_scenario_has_a_test_or_a_reason_why_not(repository):
    assert sorted(SCENARIOS - AWAITED - named_in_tests(repository) - without_a_test(repository)) == []


def test_no_scenario_with_a_test_is_said_to_have_none(repository):
    assert sorted(named_in_tests(repository) & without_a_test(repository)) == []


def test_only_scenarios_are_named(repository):
    assert sorted((named_in_tests(repository) | without_a_test(repository)) - SCENARIOS) == []
