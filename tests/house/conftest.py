"""The audit of the sample, run once as the README says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def demo_run(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """The first command of the README, carried out; its tables are in out/quickstart from then on."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    done = subprocess.run(
        [repository / "spark-submit.sh"], cwd=elsewhere, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="session")
def demo(demo_run: subprocess.CompletedProcess[str]) -> str:
    """What the first command of the README prints."""
    return demo_run.stdout
