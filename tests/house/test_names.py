"""Names of code in docstrings, comments and texts: each exists where they say."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from txnlib.core.schema import TABLES

FOLDERS = ("txnlib", "jobs", "tests", "docs", "bench", "scripts")
#: Settings, features and classes of Kafka, and settings of Spark.
NOT_OURS = ("kafka.", "metadata.max.", "transaction.", "client.properties", "spark.driver.", "spark.python.")
#: Files, which `test_citations` looks for.
FILE = re.compile(r"\.(?:json|md)$")
#: `module.name`, `package.module.Class.member`, or a module alone by its path (`core.findings.copy_findings`).
NAMED = re.compile(r"`((?:txnlib\.)?[a-z]\w*(?:\.\w+)+)(?:\(\))?`")


@cache
def modules(repository: Path) -> dict[tuple[str, ...], Path]:
    """Every module and package by its path: `("txnlib", "core", "rows")`."""
    found = {path.relative_to(repository).with_suffix("").parts: path for path in (repository / "txnlib").rglob("*.py")}
    return {parts[:-1] if parts[-1] == "__init__" else parts: path for parts, path in found.items()}


@cache
def defined(path: Path) -> set[tuple[str, ...]]:
    """The names that a module defines, and the members of its classes.

    What a module only imports has its home elsewhere; a package offers what it imports.
    """
    body = ast.parse(path.read_text()).body
    imports = [each for each in ast.walk(ast.Module(body, [])) if isinstance(each, ast.ImportFrom)]
    offered = imports if path.name == "__init__.py" else []
    return {*definitions(body, ()), *((alias.asname or alias.name,) for each in offered for alias in each.names)}


def definitions(body: list[ast.stmt], prefix: tuple[str, ...]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for each in body:
        match each:
            case ast.FunctionDef(name=name):
                found.append((*prefix, name))
            case ast.ClassDef(name=name, body=members):
                found += [(*prefix, name), *definitions(members, (*prefix, name))]
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.append((*prefix, name))
            case ast.Assign(targets=targets):
                named = [name for target in targets for name in ast.walk(target)]
                found += [(*prefix, name.id) for name in named if isinstance(name, ast.Name)]
            case ast.If(body=then, orelse=otherwise):
                found += definitions([*then, *otherwise], prefix)
    return found


def resolves(repository: Path, name: str) -> bool:
    """Whether a name exists, or is none of ours: its first part is no module or package of txnlib."""
    if name.startswith(NOT_OURS) or FILE.search(name):
        return True
    parts = tuple(name.removesuffix(".py").split("."))
    if parts[0] in TABLES and parts[1] in {column.name for column in TABLES[parts[0]].columns}:
        return True
    known = modules(repository)
    if not any(parts[0] in module for module in known):
        return True
    homes = ((path, parts[len(end) :]) for module, path in known.items() for end in ends(module) if begins(parts, end))
    return any(not rest or rest in defined(path) for path, rest in homes)


def ends(module: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The ways to name a module, from its own name to its whole path."""
    return [module[start:] for start in range(len(module))]


def begins(parts: tuple[str, ...], end: tuple[str, ...]) -> bool:
    return parts[: len(end)] == end


def test_every_name_of_code_exists(repository: Path) -> None:
    found = [
        f"{path.relative_to(repository)}: {name}"
        for folder in FOLDERS
        for path in sorted((repository / folder).rglob("*.py"))
        for name in NAMED.findall(path.read_text())
        if not resolves(repository, name)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("name", "exists"),
    [
        ("odd_coordinator_records.oddities", True),
        ("core.kafka.odd_coordinator_records.CoordinatorRecord.epoch", True),
        ("txnlib.core.kafka.odd_coordinator_records", True),
        ("producer_spans.suspect", True),
        ("odd_coordinator_records.is_ahead", False),
        ("core.kafka.odd_coordinator_records.CoordinatorRecord.cat", False),
        ("core.cats.coordinator", False),
        ("txnlib.cats", False),
        ("audit_runs.settings", True),
        ("unclean.leader.election.enable", True),
    ],
)
def test_a_dead_name_is_found(repository: Path, name: str, exists: bool) -> None:
    assert resolves(repository, name) is exists
