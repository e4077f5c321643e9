"""What an audit on one machine writes, which one elsewhere is held against; in a process of its own, as those are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.daemons import submitted


@pytest.fixture(scope="session")
def capture(captures: Path) -> Path:
    """A small capture of a real cluster."""
    return captures / "quickstart" / "brokers"


@pytest.fixture(scope="session")
def audited_here(repository: Path, capture: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the tables of an audit of `capture` on `local[2]`."""
    out = tmp_path_factory.mktemp("here") / "out"
    asked = ["audit", "--input", str(capture), "--output", str(out), "--master", "local[2]"]
    with submitted(repository, *asked) as audit:
        _, said = audit.communicate()
    assert audit.returncode == 0, said
    return out
