"""Settings of a session that we did not make: each is asked for as any session answers."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def defaults_given(source):
    """The line and the default of each `conf.get(key, default)`, whatever stands before `conf`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-2:] == ["conf", "get"]:
            given = [*node.args[1:], *(keyword.value for keyword in node.keywords if keyword.arg == "default")]
            yield from ((node.lineno, ast.unparse(default)) for default in given)


def test_no_setting_has_a_default_of_ours():
    """Spark refuses one that is not of the setting's type (INVALID_CONF_VALUE) wherever nobody has set it; any other
    takes the place of Spark's own default."""
    sources = [*(ROOT / "txnlib").rglob("*.py"), *(ROOT / "jobs").glob("*.py")]
    found = {
        f"{path.relative_to(ROOT)}:{line}": default
        for path in sources
        for line, default in defaults_given(path.read_text())
    }
    assert {place: default for place, default in found.items() if default != "None"} == {}
    assert len(sources) > 200


def test_defaults_are_found():
    said = ('spark.conf.get("a", "")', 'conf.get("a", default="b")', 'self.conf.get("a", None)', 'conf.get("a")')
    assert list(defaults_given("\n".join((*said, 'notes.get("a", 1)')))) == [(1, "''"), (2, "'b'"), (3, "None")]
