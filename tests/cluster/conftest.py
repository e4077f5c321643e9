"""Tables of audits on one machine, written in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.daemons import audited


@pytest.fixture(scope="session")
def capture(captures: Path) -> Path:
    """A small capture of a real cluster."""
    return captures / "quickstart" / "brokers"


@pytest.fixture(scope="session")
def nights(captures: Path) -> list[Path]:
    """Two captures of one cluster."""
    return [captures / "nights-3.9" / f"night-{number}" / "brokers" for number in (1, 2)]


@pytest.fixture(scope="session")
def audited_here(repository: Path, capture: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the tables of an audit of `capture` on `local[2]`."""
    out = tmp_path_factory.mktemp("here") / "out"
    audited(repository, "--input", str(capture), "--output", str(out), "--master", "local[2]")
    return out


@pytest.fixture(scope="session")
def nights_here(repository: Path, nights: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same of audits of `nights`, each of which reads everything."""
    out = tmp_path_factory.mktemp("nights") / "out"
    for night in nights:
        audited(repository, "--input", str(night), "--output", str(out), "--master", "local[2]")
    return out
