"""Do imports run one way, and do habits hold? Read from the source, so that a drift shows in review."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

BELOW_STAGES = {"txnlib.delta", "txnlib.spark", "txnlib.readers", "txnlib.core", "txnlib.settings", "txnlib.errors"}
#: package -> the packages of ours it may import; never back.
MAY_IMPORT = {
    "txnlib.errors": set(),
    "txnlib.settings": {"txnlib.core", "txnlib.errors"},
    "txnlib.core": {"txnlib.core", "txnlib.errors"},
    "txnlib.readers": {"txnlib.readers", "txnlib.core", "txnlib.errors"},
    "txnlib.spark": {"txnlib.spark", "txnlib.readers", "txnlib.core", "txnlib.errors"},
    "txnlib.delta": {"txnlib.delta", "txnlib.spark", "txnlib.core", "txnlib.errors"},
    "txnlib.stages": BELOW_STAGES | {"txnlib.stages", "txnlib.answers", "txnlib.report"},
    "txnlib.api": BELOW_STAGES | {"txnlib.stages", "txnlib.answers", "txnlib.report", "txnlib.cli"},
    "txnlib.__init__": {"txnlib.api"},
    "txnlib.report": {"txnlib.report", "txnlib.core", "txnlib.errors"},
    "txnlib.answers": {"txnlib.answers", "txnlib.report", "txnlib.core", "txnlib.errors"},
    "txnlib.cli": {"txnlib.cli", "txnlib.answers", "txnlib.report", "txnlib.core", "txnlib.errors"},
}
#: What only some files may use: the word -> the files.
ONLY_IN = {
    "Window": {"txnlib/spark/windows.py"},
    "udf": {"txnlib/spark/core_udfs.py"},
    "SparkSession.builder": {"txnlib/delta/session.py"},
    "sparkContext": {"jobs/progress.py"},
    "_jvm": set(),
    "rdd": set(),
    "cache": {"txnlib/spark/core_udfs.py"},
    "persist": set(),
}
#: The one file that may ask for the time, and who may ask it: to note when, never to judge by.
CLOCK, ASKS_THE_CLOCK = "txnlib/pipeline/clock.py", "txnlib.stages"
#: Modules that bring a clock, chance or an environment.
FORBIDDEN_MODULES = {"time", "random", "subprocess"}


def sources(repository: Path, *folders: str) -> list[Path]:
    found = [path for folder in folders for path in sorted((repository / folder).rglob("*.py"))]
    assert found
    return found


def module_of(repository: Path, path: Path) -> str:
    return ".".join(path.relative_to(repository).with_suffix("").parts)


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_run_one_way(repository, package):
    allowed = MAY_IMPORT[package]
    for path in sources(repository, "txnlib"):
        module = module_of(repository, path)
        if module != package and not module.startswith(package + "."):
            continue
        for name in imports(path):
            if name.split(".")[0] in ("txnlib", "jobs") and name != "txnlib.__version__":
                assert any(name == ours or name.startswith(ours + ".") for ours in allowed), f"{module} imports {name}"


def test_the_core_needs_nothing_but_the_standard_library(repository):
    for path in sources(repository, "txnlib/core"):
        for name in imports(path):
            root = name.split(".")[0]
            assert root == "txnlib" or root in sys.stdlib_module_names, f"{path.name} imports {name}"


def test_the_library_asks_for_no_clock_and_no_chance(repository):
    for path in sources(repository, "txnlib"):
        assert not {name.split(".")[0] for name in imports(path)} & FORBIDDEN_MODULES, path
        text = path.read_text()
        assert "datetime.now" not in text or path == repository / CLOCK, path
        assert "current_timestamp" not in text, path
        asks = "txnlib.pipeline.clock.now" in imports(path)
        assert not asks or module_of(repository, path).startswith(f"{ASKS_THE_CLOCK}."), path


def attributes(path: Path) -> set[str]:
    """Every name and dotted name that a file uses."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
            if isinstance(node.value, ast.Name):
                found.add(f"{node.value.id}.{node.attr}")
        elif isinstance(node, ast.Name):
            found.add(node.id)
    return found


@pytest.mark.parametrize("word", ONLY_IN)
def test_what_needs_care_stands_in_one_place(repository, word):
    for path in sources(repository, "txnlib", "jobs"):
        if word in attributes(path):
            assert path.relative_to(repository).as_posix() in ONLY_IN[word], f"{path}: {word}"


def test_no_file_is_a_drawer(repository):
    for path in sources(repository, "txnlib", "jobs"):
        assert path.stem not in {"utils", "helpers", "common", "base", "misc"}, path
        assert len(path.read_text().splitlines()) <= 450, f"{path} cannot be held in mind"


def test_every_module_says_which_question_it_answers(repository):
    for path in sources(repository, "txnlib", "jobs"):
        assert ast.get_docstring(ast.parse(path.read_text())), path


def test_instants_are_made_of_milliseconds_in_one_place():
    """Any int64 may stand in a log, and `timestamp_millis` raises on most."""
    makers = [path.name for path in Path("txnlib").rglob("*.py") if "timestamp_millis" in path.read_text()]
    assert makers == ["instants.py"]
