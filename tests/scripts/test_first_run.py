"""The first call of a script: what `bootstrap.sh` shows while it installs."""

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
else:
    os.execv({python!r}, [{python!r}, *argv])
"""


@pytest.fixture
def clone(repository, tmp_path) -> Path:
    """A folder with what a bootstrap needs of a clone."""
    folder = tmp_path / "clone"
    folder.mkdir()
    for name in ("bootstrap.sh", "pyproject.toml"):
        shutil.copy(repository / name, folder)
    fake = tmp_path / "python"
    fake.write_text(PYTHON.format(python=sys.executable, itself=str(fake)))
    fake.chmod(0o755)
    for jar in JARS:
        place = tmp_path / "maven" / "io" / "delta" / jar.removesuffix(f"-{DELTA}.jar") / DELTA / jar
        place.parent.mkdir(parents=True)
        place.write_text(jar)
    return folder


def environment(clone: Path) -> dict[str, str]:
    given = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TXNLIB_", "VENV", "VIRTUAL_ENV", "PYTHON"))
    }
    maven = (clone.parent / "maven").as_uri()
    return given | {
        "TXNLIB_PYTHON": str(clone.parent / "python"),
        "HOME": str(clone.parent),
        "DEFAULT_ARTIFACT_REPOSITORY": maven,
    }


def in_a_log(clone: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [clone / "bootstrap.sh", "run"], env=environment(clone), capture_output=True, text=True, check=False
    )


def on_a_terminal(clone: Path) -> str:
    terminal, its_end = pty.openpty()
    with subprocess.Popen(
        [clone / "bootstrap.sh", "run"], env=environment(clone), stdout=subprocess.DEVNULL, stderr=its_end
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


def test_in_a_log_each_stage_is_a_line_with_its_size(clone):
    done = in_a_log(clone)
    assert done.returncode == 0, done.stderr
    stages = [
        line for line in done.stderr.splitlines() if line.startswith("txnlib: ") and not line.startswith("txnlib:  ")
    ]
    assert [line.split()[1] for line in stages] == ["creating", "installing", "fetching", "installed"]
    assert "620 MB" in stages[1]
    assert "\r" not in done.stderr
    (pip,) = [line for line in done.stderr.splitlines() if line.startswith("pip ")]
    assert pip.startswith("pip --quiet ")
    assert f"install --editable {clone}[spark]" in pip
    assert pip.endswith("no bars")


def test_each_jar_is_fetched_and_named_when_its_download_begins(clone):
    jars = [line for line in in_a_log(clone).stderr.splitlines() if line.startswith("txnlib:  ")]
    assert jars == [f"txnlib:   {jar}" for jar in JARS]
    assert {path.name: path.read_text() for path in (clone / ".venv" / "jars").iterdir()} == {jar: jar for jar in JARS}


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
    assert pip.endswith("install --editable " + f"{clone}[spark] bars")


def test_a_second_call_installs_and_says_nothing(clone):
    assert in_a_log(clone).returncode == 0
    assert in_a_log(clone).stderr == ""


def test_a_link_to_the_environment_of_another_folder_is_spared(clone):
    other = clone.parent / "other"
    subprocess.run([clone.parent / "python", "-m", "venv", "--clear", other], check=True)
    (other / ".complete-run").write_text("of another folder")
    kept = sorted(path.name for path in other.rglob("*"))
    (clone / ".venv").symlink_to(other)
    done = in_a_log(clone)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "Remove the link" in done.stderr
    assert sorted(path.name for path in other.rglob("*")) == kept
