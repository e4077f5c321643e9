"""One direction of imports, and habits of the code, read from the source."""

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from txnlib.core.schema import TABLES

#: What the core may import of the standard library: nothing that knows the time, chance, or the machine.
CORE_MODULES = {
    "base64", "__future__", "codecs", "collections", "contextlib", "csv", "dataclasses", "datetime", "enum",
    "functools", "html", "itertools", "json", "operator", "re", "shlex", "struct", "types", "typing",
}  # fmt: skip
#: What only some files may use: the word -> the files.
ONLY_IN = {
    "Window": set(),
    "udf": {"txnlib/spark/core_udfs.py"},
    "SparkSession.builder": {"txnlib/engine/embedded.py", "txnlib/engine/spark.py"},
    "sparkContext": {"txnlib/jobs/progress.py"},
    "_jvm": set(),
    "rdd": set(),
    "cache": {"txnlib/spark/core_udfs.py"},
    # Where it is refused, files are read again, and frames computed again.
    "persist": {"txnlib/spark/capture_source.py", "txnlib/engine/spark_tables.py"},
}
#: The programs, which write files as of now, stop the clock and set the environment of the JVM that they start.
JOBS = "txnlib/jobs/"
#: `txn-audit capture`, which waits for brokers and notes instants; no audit imports it.
WIRE = "txnlib/wire_capture/"
#: The one file of the library that may ask for the time, and who may ask it: to note when, never to judge by.
CLOCK, ASKS_THE_CLOCK = "txnlib/pipeline/clock.py", "txnlib.pipeline"
#: What writes tables waits for a random time after a conflict.
WRITER = "txnlib/engine/store.py"
#: Modules that bring a clock, chance or other processes, and the files that may import them.
FORBIDDEN_MODULES = {"time": {WRITER}, "random": {WRITER}, "secrets": set(), "subprocess": set(), "uuid": set()}
#: Who may read the environment: whatever opens files in stores, and engines.
READS_THE_ENVIRONMENT = {
    "txnlib/engine/choice.py",
    "txnlib/engine/embedded.py",
    "txnlib/engine/spark.py",
    "txnlib/engine/spark_session.py",
    "txnlib/ask/delta_rows.py",
    "txnlib/store_options.py",
    "txnlib/readers/storage/object_stores.py",
}


def sources(repository: Path, *folders: str) -> list[Path]:
    found = [path for folder in folders for path in sorted((repository / folder).rglob("*.py"))]
    assert found
    return found


def module_of(repository: Path, path: Path) -> str:
    return ".".join(path.relative_to(repository).with_suffix("").parts)


@cache
def nodes(path: Path) -> list[Any]:
    return list(ast.walk(ast.parse(path.read_text())))


def imports(path: Path) -> set[str]:
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_imports_run_one_way(repository):
    """The contracts are in pyproject.toml."""
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_imports_make_no_circle(repository):
    """Imports for types, in functions and by name count, too: a type stands below those who use it."""
    paths = {module_of(repository, path): path for path in sources(repository, "txnlib")}
    needs = {module: paths.keys() & {*parents_of(path), *called_by_name(path)} for module, path in paths.items()}
    TopologicalSorter(needs).prepare()  # raises CycleError, which names the modules


def parents_of(path: Path) -> set[str]:
    """What a file imports, and the modules from which it imports names."""
    found = imports(path)
    return found | {name.rpartition(".")[0] for name in found}


def called_by_name(path: Path) -> set[str]:
    """The modules that a file imports by `import_module`."""
    calls = (node for node in nodes(path) if isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func))
    return {call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)}


def test_the_core_needs_nothing_but_a_little_of_the_standard_library(repository):
    for path in sources(repository, "txnlib/core"):
        roots = {name.split(".")[0] for name in imports(path)} - {"txnlib"}
        assert roots <= CORE_MODULES, f"{path.name} imports {roots - CORE_MODULES}"
        assert not {"datetime.now", "datetime.today", "datetime.utcnow"} & attributes(path), path


def test_the_library_asks_for_no_clock_no_chance_and_no_environment(repository):
    for path in sources(repository, "txnlib"):
        where = path.relative_to(repository).as_posix()
        if where.startswith((JOBS, WIRE)):
            continue
        roots = {name.split(".")[0] for name in imports(path)}
        assert not {module for module, files in FORBIDDEN_MODULES.items() if module in roots and where not in files}, (
            path
        )
        text = path.read_text()
        assert "datetime.now" not in text or where == CLOCK, path
        assert "current_timestamp" not in text, path
        asks = "txnlib.pipeline.clock.now" in imports(path)
        assert not asks or module_of(repository, path).startswith(f"{ASKS_THE_CLOCK}."), path
        assert not {"os.environ", "os.getenv"} & attributes(path) or where in READS_THE_ENVIRONMENT, path


@cache
def attributes(path: Path) -> set[str]:
    """Every name and dotted name that a file uses."""
    found = set()
    for node in nodes(path):
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


#: Rooms in which a module has a name of its own and is no crumb, and the small modules with their reason.
ROOMS = ("ask", "page", "jobs", "core/text")
SMALL = {
    "txnlib/ask/own_command.py": "for what opens tables and reads words of commands, and prints nothing",
    "txnlib/jobs/command.py": "Ctrl-C must work before anything large is loaded",
}
#: Names that a module of these rooms shares with others: `txnlib.jobs.audit` is the door that programs name.
SHARED = {"audit"}


@pytest.mark.parametrize("room", ROOMS)
def test_a_module_has_a_name_of_its_own_and_is_no_crumb(repository, room):
    names = Counter(path.stem for path in sources(repository, "txnlib"))
    for path in (repository / "txnlib" / room).glob("[!_]*.py"):
        assert names[path.stem] == 1 or path.stem in SHARED, path
        is_small = len(path.read_text().splitlines()) < 60
        assert is_small == (path.relative_to(repository).as_posix() in SMALL), (
            f"{path}: put it where it is used, or say why it is small"
        )


def test_instants_are_made_of_milliseconds_in_one_place():
    """Any int64 may stand in a log, and `timestamp_millis` raises on most."""
    makers = [path.name for path in Path("txnlib").rglob("*.py") if "timestamp_millis" in path.read_text()]
    assert makers == ["sql_text.py"]


def test_a_class_name_has_one_meaning(repository):
    found = Counter(
        node.name
        for path in sorted((repository / "txnlib").rglob("*.py"))
        for node in nodes(path)[0].body
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in found.items() if count > 1] == []


@pytest.mark.parametrize("package", sorted(Path("txnlib").rglob("__init__.py")), ids=lambda path: path.parent.name)
def test_a_package_names_its_modules_and_no_other(package):
    said = set(re.findall(r"`([a-z_]+)[`.]", ast.get_docstring(ast.parse(package.read_text())) or ""))
    folder = package.parent
    modules = {path.stem for path in folder.glob("*.py")} | {path.parent.name for path in folder.glob("*/__init__.py")}
    modules.remove("__init__")
    others = {"readers", "spark", "core", "delta"}  # whose modules it names with their package
    assert sorted(said - modules - TABLES.keys() - others - {"answer"}) == []
    if folder.name != "txnlib":  # its docstring shows how to use it; docs/architecture.md has the packages
        assert sorted(modules - said) == []


def test_what_benchmarks_and_scripts_import_of_the_package_exists(repository):
    """Other tests do not run them, and a changed name breaks them."""
    named = {
        (node.module, each.name)
        for path in sources(repository, "bench", "deploy", "docs", "scripts")
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("txnlib")
        for each in node.names
    }
    assert len(named) > 30
    assert [names for names in named if not _is_there(*names)] == []


def _is_there(module: str, name: str) -> bool:
    found = import_module(module)
    return hasattr(found, name) or (hasattr(found, "__path__") and find_spec(f"{module}.{name}") is not None)
