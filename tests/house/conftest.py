"""The audit of the sample, run once as the README says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def demo(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the first command of the README prints; its tables are in out/quickstart from then on."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    done = subprocess.run(
        [repository / "spark-submit.sh"], cwd=elsewhere, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"report: [\d.]+ s", done.stderr.splitlines()[-1]), "the last line of a good run is ours"
    return done.stdout
