"""The versions that two installations share: constraints.txt, and what writes it."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from importlib.metadata import distributions
from pathlib import Path
from types import ModuleType

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

#: What an environment has besides: its installer, and this package.
NOT_LOCKED = {"pip", "txnlib"}


def lines(repository: Path) -> list[str]:
    text = (repository / "constraints.txt").read_text()
    return [line for line in text.splitlines() if not line.startswith("#")]


def locked(repository: Path) -> dict[str, str]:
    """The versions for this Python."""
    found = {}
    for line in lines(repository):
        package, _, marker = line.partition(" ; ")
        if not marker or Marker(marker).evaluate():
            name, _, version = package.partition("==")
            assert name not in found, f"{name} has two versions"
            found[name] = version
    return found


def required(repository: Path) -> dict[str, list[Requirement]]:
    """What pyproject.toml asks for, in any extra."""
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    found: dict[str, list[Requirement]] = {}
    for each in map(Requirement, [*project["dependencies"], *(line for extra in extras for line in extra)]):
        found.setdefault(canonicalize_name(each.name), []).append(each)
    del found["txnlib"]
    return found


def test_a_line_is_a_package_and_its_version(repository: Path) -> None:
    """No address, no path and no hash, so that it holds on every platform and with every mirror."""
    form = re.compile(r'[a-z0-9-]+==[0-9][0-9a-z.+!]*( ; (python_version == "3\.\d+"( or )?)+)?')

    assert [line for line in lines(repository) if not form.fullmatch(line)] == []
    assert lines(repository) == sorted(lines(repository), key=lambda line: line.partition("==")[0])


def test_what_is_asked_for_is_locked_in_its_range(repository: Path) -> None:
    versions = locked(repository)

    for name, requirements in required(repository).items():
        assert name in versions, "python3 scripts/lock.py"
        assert all(each.specifier.contains(versions[name]) for each in requirements), name


def test_what_is_installed_is_what_is_locked(repository: Path) -> None:
    versions = locked(repository)
    installed = {canonicalize_name(each.metadata["Name"]): each.version for each in distributions()}

    assert {name: version for name, version in installed.items() if name not in NOT_LOCKED} == {
        name: versions.get(name) for name in installed if name not in NOT_LOCKED
    }


def test_everything_that_installs_takes_them(repository: Path) -> None:
    places = [repository / name for name in ("bootstrap.sh", ".github/workflows/ci.yml", "scripts/check_wheel.sh")]

    for path in [*places, repository / "scripts" / "offline.sh"]:
        said = re.findall(r"^.*pip (?:install|wheel) .*$", path.read_text(), re.MULTILINE)
        calls = [
            line for line in said if "--no-deps" not in line and not re.match(r"\s*(#|step |printf|expect )", line)
        ]
        assert calls
        assert [line for line in calls if "--constraint" not in line] == [], path


@pytest.fixture
def lock(repository: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("lock", repository / "scripts" / "lock.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_lock_knows_every_python_and_every_extra(lock: ModuleType, repository: Path) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    supported = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    asked = {extra for extras in lock.ENVIRONMENTS for extra in extras.split(",")}
    inner = {
        each for extra in asked for line in project["optional-dependencies"][extra] for each in Requirement(line).extras
    }

    assert list(lock.PYTHONS) == supported
    assert asked | inner >= set(project["optional-dependencies"])


def test_versions_that_differ_between_pythons_have_a_marker(lock: ModuleType) -> None:
    found = {"3.11": {"a": "1", "b": "2"}, "3.12": {"a": "1", "b": "3", "c": "4"}, "3.13": {"a": "1", "b": "3"}}

    assert list(lock.lines_of(found)) == [
        "a==1",
        'b==2 ; python_version == "3.11"',
        'b==3 ; python_version == "3.12" or python_version == "3.13"',
        "c==4",
    ]


def test_environments_that_differ_are_refused(lock: ModuleType) -> None:
    with pytest.raises(lock.LockError, match="a is 1 in one environment and 2 in another one"):
        lock.merged([{"a": "1"}, {"a": "2", "b": "1"}])
