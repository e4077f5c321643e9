#!/usr/bin/env python3
"""Count the changed rules of the core that its tests notice.

    ./run-tests.sh mutants                                        100 changes, sampled evenly over the files of the
    rules
    ./run-tests.sh mutants --sample 0 txnlib/core/verdicts/*.py   every change of these files

A change ("mutant") is made in a copy of the tree. The tests of `tests/core` that import the changed file then run until
the first failure, nearest importers first. A change that no test notices is printed with its line: write a test, or
delete the rule. Some changes mean the same as before, so 100 percent cannot be reached. The exit code is 1 below the
goal.
"""

from __future__ import annotations

import argparse
import ast
import enum
import importlib
import multiprocessing
import os
import queue
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Final

REPOSITORY = Path(__file__).resolve().parent.parent
#: Files that are changed unless files are given.
RULES = (
    *("txnlib/core/kafka/*.py", "txnlib/core/verdicts/*.py", "txnlib/core/coverage/*.py", "txnlib/core/findings/*.py"),
    "txnlib/core/copies.py",
)
TESTS = "tests/core"
#: Percentage of changes that the tests have to notice.
GOAL = 90
#: A change that makes a loop endless is noticed, too.
TIMEOUT_S = 300
#: Copied into each workplace; the rest of the tree is not needed by these tests.
NEEDED = ("txnlib", "tests", "pyproject.toml", "CHANGELOG.md")

COMPARISONS: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
#: Where a change says nothing about a rule: how classes are made, and checks of programming errors.
NO_RULES = frozenset({"dataclass", "NamedTuple", "TypeVar", "zip"})


@dataclass(frozen=True)
class Mutant:
    """One change of a file: the text between two offsets in bytes, and what replaces it."""

    file: str
    line: int
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {_short(self.before)}  ->  {_short(self.after)}"

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.after.encode() + source[self.end :]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 80 else f"{line[:38]} … {line[-38:]}"


class Changes(ast.NodeVisitor):
    """Collects the changes of one file."""

    def __init__(self, file: str, source: str, names: Mapping[str, object]) -> None:
        self.file, self.source, self.names = file, source, names
        self.found: list[Mutant] = []
        self._lines = [0]
        for line in source.encode().splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def _add(self, node: ast.expr | ast.stmt, after: str) -> None:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._lines[node.lineno - 1] + node.col_offset
        end = self._lines[node.end_lineno - 1] + node.end_col_offset
        before = self.source.encode()[start:end].decode()
        self.found.append(Mutant(self.file, node.lineno, start, end, before, after))

    def _replace(self, node: ast.expr, changed: ast.expr) -> None:
        self._add(node, f"({ast.unparse(changed)})")

    def visit_Compare(self, node: ast.Compare) -> None:
        for number, operator in enumerate(node.ops):
            changed = deepcopy(node)
            changed.ops[number] = COMPARISONS[type(operator)]()
            self._replace(node, changed)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        changed = deepcopy(node)
        changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self._replace(node, changed)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._replace(node, node.operand)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add(node, str(not node.value))
        elif isinstance(node.value, int):
            self._add(node, f"({node.value} + 1)")
            self._add(node, f"({node.value} - 1)")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """A member of an enum becomes the next one."""
        if isinstance(node.value, ast.Name):
            cls = self.names.get(node.value.id)
            if isinstance(cls, type) and issubclass(cls, enum.Enum) and node.attr in cls.__members__:
                members = [member.name for member in cls]
                after = members[(members.index(cls[node.attr].name) + 1) % len(members)]
                self._add(node, f"{node.value.id}.{after}")
                return
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        for number in range(len(node.values)):
            changed = deepcopy(node)
            del changed.keys[number], changed.values[number]
            self._replace(node, changed)
        self.generic_visit(node)

    def visit_Set(self, node: ast.Set) -> None:
        for number in range(len(node.elts) if len(node.elts) > 1 else 0):
            changed = deepcopy(node)
            del changed.elts[number]
            self._replace(node, changed)
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self._add(node, "return None")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if not (isinstance(node.func, ast.Name) and node.func.id in NO_RULES):
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
        for statement in node.body:
            self.visit(statement)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self.generic_visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Texts are no rules, and Python 3.11 does not know where their expressions stand."""


def mutants_of(file: str) -> list[Mutant]:
    source = (REPOSITORY / file).read_text()
    changes = Changes(file, source, vars(importlib.import_module(_module(file))))
    changes.visit(ast.parse(source))
    return changes.found


def _module(file: str | Path) -> str:
    return ".".join(Path(file).with_suffix("").parts).removesuffix(".__init__")


def sample(mutants: Mapping[str, list[Mutant]], count: int, seed: int) -> list[Mutant]:
    """As many changes, one of each file in turn; all of them if `count` is 0."""
    chance = random.Random(seed)
    decks = [chance.sample(deck, len(deck)) for deck in mutants.values()]
    dealt = [deck[number] for number in range(max(map(len, decks), default=0)) for deck in decks if number < len(deck)]
    return dealt[:count] if count else dealt


# The tests of a file.


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def import_graph() -> dict[str, set[str]]:
    """Module -> the modules of ours that it names."""
    paths = [path for folder in ("txnlib", "tests") for path in sorted((REPOSITORY / folder).rglob("*.py"))]
    modules = {_module(path.relative_to(REPOSITORY)): path for path in paths}
    return {module: modules.keys() & set(_imports(path)) for module, path in modules.items()}


def tests_of(file: str, graph: Mapping[str, set[str]]) -> list[str]:
    """The tests of the core that import a file, directly or not, the nearest first."""
    importers: dict[str, set[str]] = {}
    for module, named in graph.items():
        for each in named:
            importers.setdefault(each, set()).add(module)
    distances, edge = {_module(file): 0}, [_module(file)]
    for module in edge:  # grows while it is walked
        for importer in sorted(importers.get(module, ())):
            if importer not in distances:
                distances[importer] = distances[module] + 1
                edge.append(importer)
    tests = [_module(path.relative_to(REPOSITORY)) for path in sorted((REPOSITORY / TESTS).rglob("test_*.py"))]
    return [
        f"{test.replace('.', '/')}.py"
        for test in sorted(set(tests) & set(distances), key=lambda test: (distances[test], test))
    ]


# Running them.


def arguments_for(tests: list[str]) -> list[str]:
    """The arguments of pytest. Its warning about modules that were loaded before it would be an error here."""
    return [
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "--no-header",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
        *tests,
    ]


def run_pytest(workplace: Path, tests: list[str], writes_bytecode: bool) -> None:
    """Ends this process, which was forked from one that had pytest loaded, with the exit code of pytest."""
    os.chdir(workplace)
    sys.path[:] = [
        str(workplace),
        *(path for path in sys.path if Path(path).resolve() not in (REPOSITORY, REPOSITORY / "scripts")),
    ]
    sys.dont_write_bytecode = not writes_bytecode
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    import pytest

    sys.exit(pytest.main(arguments_for(tests)))


FORKED: Final = multiprocessing.get_context("forkserver")


def passes(workplace: Path, tests: list[str], writes_bytecode: bool = False) -> bool:
    """Whether the tests pass, in time. Bytecode would be wrong for a file that changes twice within a second."""
    process = FORKED.Process(target=run_pytest, args=(workplace, tests, writes_bytecode))
    process.start()
    process.join(TIMEOUT_S)
    if process.is_alive():
        process.kill()
        process.join()
    return process.exitcode == 0


def is_noticed(mutant: Mutant, workplace: Path, tests: list[str]) -> bool:
    if not tests:
        return False
    path = workplace / mutant.file
    source = path.read_bytes()
    try:
        path.write_bytes(mutant.applied(source))
        return not passes(workplace, tests)
    finally:
        path.write_bytes(source)


def run(mutants: list[Mutant], processes: int) -> list[Mutant]:
    """Tries every change; returns those that no test noticed, which it also prints as they are found."""
    graph, survivors = import_graph(), list[Mutant]()
    places: queue.Queue[Path] = queue.Queue()
    FORKED.set_forkserver_preload(["pytest", "hypothesis"])
    with tempfile.TemporaryDirectory(prefix="txnlib-mutants-") as folder:
        for number in range(processes):
            place = Path(folder) / str(number)
            if number == 0:
                place.mkdir()
                for name in NEEDED:
                    _copy(REPOSITORY / name, place / name)
                files = sorted({mutant.file for mutant in mutants})
                tests = list(dict.fromkeys(test for file in files for test in tests_of(file, graph)))
                if not passes(place, tests, writes_bytecode=True):
                    sys.exit("the tests fail before any change: run ./run-tests.sh tests/core")
            else:
                shutil.copytree(Path(folder) / "0", place)
            places.put(place)

        def attempt(mutant: Mutant) -> tuple[Mutant, bool]:
            place = places.get()
            try:
                return mutant, is_noticed(mutant, place, tests_of(mutant.file, graph))
            finally:
                places.put(place)

        with ThreadPoolExecutor(processes) as pool:
            for done, (mutant, noticed) in enumerate(pool.map(attempt, mutants), 1):
                if not noticed:
                    survivors.append(mutant)
                    print(mutant, flush=True)
                elif done % 20 == 0:
                    print(f"{done} of {len(mutants)} changes tried", file=sys.stderr, flush=True)
    return survivors


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy2(source, target)


def options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run-tests.sh mutants", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", help=f"files to change; default: those of {', '.join(RULES)}")
    parser.add_argument(
        "--sample", type=int, default=100, metavar="N", help="number of changes, 0 for all (default: 100)"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="choose other changes (default: 0)")
    parser.add_argument("--processes", type=int, choices=(1, 2), default=2, help="tests to run at a time (default: 2)")
    parser.add_argument("--list", action="store_true", help="print the changes, and try none")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    given = options(arguments)
    sys.path.insert(0, str(REPOSITORY))
    found = [path for pattern in RULES for path in sorted(REPOSITORY.glob(pattern)) if path.name != "__init__.py"]
    files = [str((Path(file)).resolve().relative_to(REPOSITORY)) for file in given.files or found]
    mutants = sample({file: mutants_of(file) for file in files}, given.sample, given.seed)
    if given.list:
        print(*mutants, sep="\n")
        return 0
    survivors = run(mutants, given.processes)
    noticed = len(mutants) - len(survivors)
    percent = 100 * noticed / len(mutants) if mutants else 100.0
    print(f"{noticed} of {len(mutants)} changes were noticed: {percent:.0f} percent (goal: {GOAL})")
    return 0 if percent >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
