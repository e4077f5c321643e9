"""The wheel, installed alone."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from zipfile import ZipFile

import pytest

from txnlib import __version__


@pytest.fixture(scope="module")
def wheel(repository, tmp_path_factory) -> Path:
    """Built from a copy of what is packaged, so that no folder `build` of an earlier build gets into it."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "txnlib", "jobs"):
        (source / name).symlink_to(repository / name)
    built = [
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--wheel-dir",
        str(folder),
        str(source),
    ]
    done = subprocess.run([sys.executable, *built], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The `bin` of a new environment with the wheel, and beside it the packages that the tests have: PySpark alone is 400 MB."""
    root = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    install = ["--python", str(root), "install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", str(wheel)]
    # A folder on PYTHONPATH may hold the metadata of an editable install, which pip would take for this one.
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([sys.executable, "-m", "pip", *install], check=True, env=bare)
    (packages,) = root.glob("lib/python*/site-packages")
    (packages / "beside.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n{sysconfig.get_paths()['platlib']}\n")
    return root / "bin"


def run(installed: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Away from the repository, and without what the tests put on the path."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return subprocess.run(
        [str(installed / argv[0]), *argv[1:]], cwd=installed, env=clean, capture_output=True, text=True, check=False
    )


def test_the_wheel_holds_the_packages_the_types_and_the_licence(wheel, repository):
    names = set(ZipFile(wheel).namelist())
    assert wheel.name == f"txnlib-{__version__}-py3-none-any.whl"
    sources = {path.relative_to(repository).as_posix() for top in ("txnlib", "jobs") for path in (repository / top).rglob("*.py")}
    assert sources <= names, "a package that pyproject.toml does not name"
    assert {"txnlib/py.typed", f"txnlib-{__version__}.dist-info/licenses/LICENSE"} <= names
    assert not [name for name in names if name.split("/")[0] not in ("txnlib", "jobs", f"txnlib-{__version__}.dist-info")]


def test_the_command_runs_where_only_the_wheel_is(installed):
    done = run(installed, "txn-audit", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"txn-audit {__version__}\n", "")
    done = run(installed, "txn-audit", "locate", "--transactional-id", "payments-batch-7", "--partitions", "5", "--format", "csv")
    assert (done.returncode, done.stdout.splitlines()[1].split(",")[1]) == (0, "3")


def test_it_is_the_wheel_that_runs_and_it_reads_tables(installed, tmp_path):
    asked = "from importlib.util import find_spec; print(*(find_spec(name).origin for name in ('txnlib', 'jobs.audit')))"
    done = run(installed, "python", "-c", asked)
    assert [str(installed.parent) in path for path in done.stdout.split()] == [True, True], done
    done = run(installed, "txn-audit", "runs", "--tables", str(tmp_path))
    assert (done.returncode, "no tables of an audit" in done.stderr) == (2, True)


def declared(repository: Path) -> set[str]:
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    given = [*project["dependencies"], *extras["spark"], *extras["sql"], *extras["charts"]]
    return {re.match(r"[\w.-]+", each)[0] for each in given}


def test_the_job_starts_by_its_name_in_the_wheel(installed):
    done = run(installed, "txnlib-audit", "--help")
    assert (done.returncode, "--input PATH" in done.stdout) == (0, True), done
    done = run(installed, "txnlib-audit", "--no-such-option")
    assert (done.returncode, "--no-such-option" in done.stderr) == (2, True), done


def test_what_has_its_own_spark_is_brought_no_other(wheel):
    """Serverless compute of Databricks stops where a package brings PySpark."""
    with ZipFile(wheel) as files:
        metadata = files.read(f"txnlib-{__version__}.dist-info/METADATA").decode()
    needed = re.findall(r"^Requires-Dist: ([\w.-]+)(.*)$", metadata, re.MULTILINE)
    assert [name for name, rest in needed if "spark" in name and "extra ==" not in rest] == []
    assert {name for name, rest in needed if 'extra == "spark"' in rest} == {"pyspark", "delta-spark", "pandas"}


def test_everything_that_is_imported_is_declared_and_nothing_else(repository):
    """Not by name: py4j comes with PySpark, which asks for pandas; by the version of delta-spark its jars are fetched."""
    owners = packages_distributions()
    used = set()
    for path in [*(repository / "txnlib").rglob("*.py"), *(repository / "jobs").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            used |= {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"txnlib", "jobs"}
    found = {owner.lower().replace("_", "-") for name in used for owner in owners[name]}
    assert found - {"py4j"} | {"pandas", "delta-spark"} == declared(repository)


def test_every_dependency_has_its_notice(repository):
    rows = re.findall(r"^\| `([\w.-]+)` \| (.+?) \| (.+?) \|$", (repository / "docs" / "notices.md").read_text(), re.MULTILINE)
    assert {name for name, _, _ in rows} == declared(repository), "run python docs/render.py"
    assert all(licence.strip() and home.startswith("http") for _, licence, home in rows)
