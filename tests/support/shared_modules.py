"""Processes share the test modules: one begins with the first, others with the last.

Each takes a module that no other has taken, until none is left; so all end at the same time. Modules that share
something costly are marked `shares`, with its name: they are taken together, and before all others, since they take
long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", type=Path, help="a folder: run the modules that no other process with it has taken")
    parser.addoption("--from-the-end", action="store_true", help="with --share: take the last modules first")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Runs the tests of the modules that this process takes. Without --share, pytest runs all."""
    folder: Path | None = session.config.option.share
    if folder is None or session.config.option.collectonly:
        return None
    if session.testsfailed and not session.config.option.continue_on_collection_errors:
        raise session.Interrupted(f"{session.testsfailed} errors during collection")
    taken = _taken(session.items, folder, from_the_end=session.config.option.from_the_end)
    item = next(taken, None)
    while item is not None:
        following = next(taken, None)  # what stays set up between two tests depends on both
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following
    return True


def _taken(items: Sequence[pytest.Item], folder: Path, *, from_the_end: bool) -> Iterator[pytest.Item]:
    alone, shared = dict[str, list[pytest.Item]](), dict[str, list[pytest.Item]]()
    for item in items:
        if marker := item.get_closest_marker("shares"):
            shared.setdefault(f"shared {marker.args[0]}", []).append(item)
        else:
            alone.setdefault(item.nodeid.partition("::")[0], []).append(item)
    in_order = [*alone.items()]
    for name, tests in [*shared.items(), *(reversed(in_order) if from_the_end else in_order)]:
        try:
            (folder / name.replace("/", "%")).touch(exist_ok=False)
        except FileExistsError:
            continue
        yield from tests
