"""The folder for a machine without a network: what is collected, and when nothing is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: A Python whose environments have a pip that notes how it was called, and makes an empty wheel.
PYTHON = """#!{python}
import sys
from pathlib import Path

argv = sys.argv[1:]
if argv[:2] == ["-m", "venv"]:
    made = Path(argv[-1]) / "bin" / "python"
    made.parent.mkdir(parents=True)
    made.write_text(Path({itself!r}).read_text())
    made.chmod(0o755)
else:
    with open({log!r}, "a") as log:
        print(*argv, file=log)
    folder = Path(argv[argv.index("--wheel-dir") + 1])
    folder.mkdir(exist_ok=True)
    (folder / "txnlib-9-py3-none-any.whl").touch()
"""


def collected(repository: Path, tmp_path: Path, *given: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """How the script ends, and how it called pip."""
    fake, log = tmp_path / "python", tmp_path / "log"
    fake.write_text(PYTHON.format(python=sys.executable, itself=str(fake), log=str(log)))
    fake.chmod(0o755)
    done = subprocess.run(
        [repository / "scripts" / "offline.sh", *given],
        env=os.environ | {"TXNLIB_PYTHON": str(fake)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done, log.read_text().splitlines() if log.exists() else []


def test_the_wheel_and_all_that_it_needs_are_collected_in_the_locked_versions(repository: Path, tmp_path: Path) -> None:
    folder = tmp_path / "offline"

    done, calls = collected(repository, tmp_path, "local", str(folder))

    assert done.returncode == 0, done.stderr
    own, others = calls
    assert own.endswith(f"--no-deps --wheel-dir {folder}/wheels {repository}")
    assert f"--constraint {repository}/constraints.txt --wheel-dir {folder}/wheels" in others
    assert others.endswith(f"{folder}/wheels/txnlib-9-py3-none-any.whl[local,capture,sql] setuptools")
    assert (folder / "constraints.txt").read_bytes() == (repository / "constraints.txt").read_bytes()


@pytest.mark.parametrize("given", [(), ("local",), ("java", "{tmp}/new"), ("local", "{tmp}/new", "more")])
def test_what_it_does_not_know_is_refused(repository: Path, tmp_path: Path, given: tuple[str, ...]) -> None:
    done, calls = collected(repository, tmp_path, *(each.format(tmp=tmp_path) for each in given))

    assert (done.returncode, calls) == (2, [])
    assert done.stderr.startswith("usage: ")
    assert not (tmp_path / "new").exists()


def test_a_folder_with_other_versions_is_refused(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "old.whl").touch()

    done, calls = collected(repository, tmp_path, "local", str(tmp_path / "full"))

    assert (done.returncode, calls) == (2, [])
    assert "is not empty" in done.stderr


@pytest.mark.slow
def test_what_the_page_shows_installs_without_a_network(repository: Path, tmp_path: Path) -> None:
    """Takes minutes: collects over the network, then installs and audits where nothing answers."""
    page = (repository / "docs" / "operations.md").read_text()
    blocks = page.partition("### Without a network")[2].split("```sh\n")[1:3]
    collect, install = (block.partition("```")[0] for block in blocks)
    collect = collect.replace("scripts/offline.sh", str(repository / "scripts" / "offline.sh"))
    sample = repository / "examples" / "quickstart" / "brokers"
    install = install.replace("/mnt/captures/production", str(sample)).replace("/var/lib/txnlib", str(tmp_path))
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    python = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["bash", "-ec", collect], cwd=here, env=python, check=True, capture_output=True)
    (here / "txnlib-offline.tar.gz").rename(there / "txnlib-offline.tar.gz")

    nowhere = python | {"https_proxy": "http://127.0.0.1:9", "PIP_FIND_LINKS": "", "HOME": str(there)}
    done = subprocess.run(["bash", "-ec", install], cwd=there, env=nowhere, check=True, capture_output=True, text=True)

    assert "1 HANGING" in done.stdout
