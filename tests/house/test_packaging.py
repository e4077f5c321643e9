"""The wheel, installed alone."""

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.support.delta_tables import READ_BY_COMMANDS, write, write_run
from txnlib import __version__


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> Path:
    """The `bin` of a new environment with the wheel, and beside it the packages that the tests have: PySpark alone is
    400 MB."""
    root = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    install = [
        "--python",
        str(root),
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--disable-pip-version-check",
        str(wheel),
    ]
    # A folder on PYTHONPATH may hold the metadata of an editable install, which pip would take for this one.
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([sys.executable, "-m", "pip", *install], check=True, env=bare)
    (packages,) = root.glob("lib/python*/site-packages")
    (packages / "beside.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n{sysconfig.get_paths()['platlib']}\n")
    return root / "bin"


@pytest.fixture(scope="module")
def alone(installed, repository, tmp_path_factory) -> Path:
    """The same without what extras bring: the packages are there, and cannot be imported."""
    root = tmp_path_factory.mktemp("alone")
    shutil.copytree(installed.parent, root, symlinks=True, dirs_exist_ok=True)
    for script in (root / "bin").glob("txn*"):
        script.write_text(script.read_text().replace(str(installed.parent), str(root)))
    extras = set.union(*(declared(repository)[extra] for extra in EXTRAS))
    absent = {name for name, found in owners().items() if {spelled(owner) for owner in found} & extras}
    (packages,) = root.glob("lib/python*/site-packages")
    (packages / "absent.py").write_text(ABSENT.format(names=absent))
    (packages / "absent.pth").write_text("import absent\n")
    return root / "bin"


#: Refuses to import packages as if they were not installed.
ABSENT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in {names}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""


def run(installed: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    """Away from the repository, and without what the tests put on the path."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return subprocess.run(
        [str(installed / argv[0]), *argv[1:]], cwd=installed, env=clean, capture_output=True, text=True, check=False
    )


#: Commands of each kind: what they read and how they answer.
ANSWERED = (
    "report", "open", "list --transactional-id-pattern .*", "find-hanging", "abort-plan --format sh",
    "runs --format json", "coverage", "findings",
)  # fmt: skip


@pytest.fixture(scope="module")
def sample_tables(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    write_run(folder)
    for name in READ_BY_COMMANDS:
        write(folder, name)
    return folder


def test_the_wheel_holds_the_packages_the_types_and_the_licence(wheel, repository):
    names = set(ZipFile(wheel).namelist())
    assert wheel.name == f"txnlib-{__version__}-py3-none-any.whl"
    sources = {path.relative_to(repository).as_posix() for path in (repository / "txnlib").rglob("*.py")}
    assert sources <= names, "a package that pyproject.toml does not name"
    assert {"txnlib/py.typed", f"txnlib-{__version__}.dist-info/licenses/LICENSE"} <= names
    assert not [name for name in names if name.split("/")[0] not in ("txnlib", f"txnlib-{__version__}.dist-info")]


def test_the_command_runs_where_only_the_wheel_is(installed):
    done = run(installed, "txn-audit", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"txn-audit {__version__}\n", "")
    done = run(
        installed,
        "txn-audit",
        "locate",
        "--transactional-id",
        "payments-batch-7",
        "--partitions",
        "5",
        "--format",
        "csv",
    )
    assert (done.returncode, done.stdout.splitlines()[1].split(",")[1]) == (0, "3")


def test_it_is_the_wheel_that_runs_and_it_reads_tables(installed, tmp_path):
    asked = (
        "from importlib.util import find_spec; print(*(find_spec(name).origin for name in ('txnlib',"
        " 'txnlib.jobs.audit')))"
    )
    done = run(installed, "python", "-c", asked)
    assert [str(installed.parent) in path for path in done.stdout.split()] == [True, True], done
    done = run(installed, "txn-audit", "runs", "--tables", str(tmp_path))
    assert (done.returncode, "no tables of an audit" in done.stderr) == (2, True)


def test_the_job_starts_by_its_name_in_the_wheel(installed):
    done = run(installed, "txnlib-audit", "--help")
    assert (done.returncode, "--input PATH" in done.stdout) == (0, True), done
    assert done.stdout.startswith("usage: txnlib-audit [options]")
    done = run(installed, "txnlib-audit", "--no-such-option")
    assert (done.returncode, "see txnlib-audit --help" in done.stderr) == (2, True), done


@pytest.mark.parametrize("command", ANSWERED)
def test_txn_audit_needs_no_extra(alone, sample_tables, command):
    done = run(alone, "txn-audit", *command.split(), "--tables", str(sample_tables))
    assert (done.returncode, done.stderr) == (0, ""), done
    assert done.stdout


def test_what_needs_an_extra_says_which(alone, sample_tables, repository):
    done = run(alone, "txn-audit", "sql", "SELECT 1", "--tables", str(sample_tables))
    assert (done.returncode, "pip install 'txnlib[sql]'" in done.stderr) == (2, True), done
    sample = repository / "examples" / "quickstart" / "brokers"
    done = run(alone, "txnlib-audit", "--input", str(sample), "--output", str(sample_tables / "out"))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done
    assert "an audit needs " in done.stderr
    assert "pip install 'txnlib[local]'" in done.stderr
    done = run(alone, "python", "-c", "import txnlib; print(txnlib.__version__); txnlib.audit")
    assert (done.stdout, "pip install 'txnlib[local]'" in done.stderr.splitlines()[-1]) == (
        f"{__version__}\n",
        True,
    ), done


NOT_DECLARED = {"py4j", "grpcio", "markupsafe"}  # come with PySpark and Jinja
#: PySpark asks for pandas; by the version of delta-spark, its jars are fetched; pyspark-client is PySpark.
NOT_IMPORTED = {"pandas", "delta-spark", "botocore", "pyspark-client"}
#: What `txn-audit` consists of.
ANSWERS = ("ask", "core", "page")
WIRE = "txnlib/wire_capture"
EXTRAS = ("audit", "local", "spark", "sql", "capture")


def declared(repository: Path) -> dict[str, set[str]]:
    """The packages that each extra brings by itself; under "" those that all installations have."""
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    given = {"": project["dependencies"], **{extra: project["optional-dependencies"][extra] for extra in EXTRAS}}
    return {extra: {re.match(r"[\w.-]+", each)[0] for each in lines} - {"txnlib"} for extra, lines in given.items()}


def imported(files: Iterable[Path]) -> set[str]:
    """The packages that files import, wherever in them."""
    names = set[str]().union(*map(names_imported, files)) - set(sys.stdlib_module_names) - {"txnlib"}
    return {spelled(owner) for name in names for owner in owners()[name]} - NOT_DECLARED


@cache
def owners() -> Mapping[str, list[str]]:
    """Module -> the packages that it comes with."""
    return packages_distributions()


@cache
def names_imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        found = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        found += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        names |= {name.split(".")[0] for name in found}
    return names


def spelled(package: str) -> str:
    """The name of a package as pyproject.toml spells it."""
    return package.lower().replace("_", "-")


def test_an_audit_with_its_own_spark_is_brought_no_other(wheel, repository):
    """Serverless compute of Databricks stops where a package brings PySpark."""
    with ZipFile(wheel) as files:
        metadata = files.read(f"txnlib-{__version__}.dist-info/METADATA").decode()
    needed = re.findall(r"^Requires-Dist: ([\w.-]+)(.*)$", metadata, re.MULTILINE)
    assert {
        extra for name, rest in needed if "spark" in name for extra in re.findall(r'extra == "(\w+)"', rest) or [""]
    } == {"local", "spark"}
    assert {name for name, rest in needed if 'extra == "spark"' in rest} == {
        "pyspark",
        "delta-spark",
        "pandas",
        "txnlib",
    }
    assert 'Requires-Dist: txnlib[audit]; extra == "spark"' in metadata


def test_both_environments_have_one_pyspark_and_tests_have_both_engines(repository):
    extras = tomllib.loads((repository / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pinned = {
        extra: dict(re.findall(r"^([\w-]+)(?:\[.*\])?==([\d.]+)$", "\n".join(lines), re.MULTILINE))
        for extra, lines in extras.items()
    }
    assert pinned["local"]["pyspark-client"] == pinned["spark"]["pyspark"]
    assert pinned["local"]["pysail"] == pinned["dev"]["pysail"]
    assert "pyspark" not in pinned["local"]
    assert "pyspark-client" not in pinned["spark"] | pinned["dev"]


def test_everything_that_is_imported_is_declared_and_nothing_else(repository):
    needs = declared(repository)
    files = set((repository / "txnlib").rglob("*.py"))
    answers = {path for name in ANSWERS for path in (repository / "txnlib" / name).rglob("*.py")}
    assert imported(answers) == needs[""] | needs["sql"], "what txn-audit imports, and nothing else, is for everybody"
    assert imported(files) | NOT_IMPORTED == set.union(*needs.values())
    wire = set((repository / WIRE).rglob("*.py"))
    assert imported(wire) == needs["capture"] - NOT_IMPORTED
    audits = imported(files - answers - wire) - needs[""]
    assert audits == needs["audit"] | (needs["spark"] | needs["local"]) - NOT_IMPORTED
