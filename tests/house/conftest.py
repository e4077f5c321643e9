"""What several pages are held against: the audit of the sample, run once as the README says, and the wheel."""

import subprocess
import sys
from pathlib import Path
from shutil import rmtree

import pytest


@pytest.fixture(scope="session")
def demo_run(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """The audit of the first command of the README; its tables are in out/quickstart from then on."""
    rmtree(repository / "out" / "quickstart", ignore_errors=True)
    sample = [
        "--input",
        repository / "examples" / "quickstart" / "brokers",
        "--output",
        repository / "out" / "quickstart",
    ]
    done = subprocess.run(
        [sys.executable, repository / "jobs" / "audit.py", *sample],
        cwd=tmp_path_factory.mktemp("elsewhere"),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="session")
def demo(demo_run: subprocess.CompletedProcess[str]) -> str:
    """What the first command of the README prints."""
    return demo_run.stdout


@pytest.fixture(scope="session")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of what is packaged, so that no folder `build` of an earlier build gets into it."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "txnlib", "jobs"):
        (source / name).symlink_to(repository / name)
    build = [
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--wheel-dir",
        str(folder),
        str(source),
    ]
    done = subprocess.run([sys.executable, "-m", "pip", *build], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (found,) = folder.glob("*.whl")
    return found
