"""The memory that the embedded engine may take: a share of what is free, by the machine and its control groups."""

import os
from pathlib import Path

import pytest

from txnlib.engine.memory import Group, free_bytes, groups, limit_bytes, pool_bytes

GIB = 1 << 30


def written(root: Path, folder: str, files: dict[str, object]) -> None:
    (root / folder).mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (root / folder / name).write_text(f"{content}\n")


def v2(limit: object, taken: int, droppable: int) -> dict[str, object]:
    return {"memory.max": limit, "memory.current": taken, "memory.stat": f"anon 5\ninactive_file {droppable}"}


def v1(limit: object, taken: int, droppable: int) -> dict[str, object]:
    numbers = f"cache 5\ntotal_inactive_file {droppable}"
    return {"memory.limit_in_bytes": limit, "memory.usage_in_bytes": taken, "memory.stat": numbers}


@pytest.mark.parametrize(
    ("lines", "folders", "found"),
    [
        ("0::/a/b", {"a/b": v2(4 * GIB, 3 * GIB, GIB), "a": v2("max", GIB, 0)}, [Group(4 * GIB, 2 * GIB)]),
        ("0::/a/b", {"a/b": v2("max", 1, 0), "a": v2(2 * GIB, GIB, 0)}, [Group(2 * GIB, GIB)]),
        ("0::/", {"": v2(GIB, 5, 0)}, [Group(GIB, 5)]),  # a container with a namespace of its own
        ("0::/not/here", {"": v2(GIB, 5, 0)}, [Group(GIB, 5)]),  # a container without
        ("9:cpu:/\n4:memory:/a\n0::/", {"memory/a": v1(GIB, 7, 2)}, [Group(GIB, 5)]),
        ("0::/a", {}, []),
    ],
)
def test_every_group_that_the_program_is_in_may_limit_it(tmp_path, lines, folders, found):
    written(tmp_path, "proc/self", {"cgroup": lines})
    for folder, files in folders.items():
        written(tmp_path / "groups", folder, files)
    assert groups(tmp_path / "proc", tmp_path / "groups") == found


def test_a_system_without_groups_has_none(tmp_path):
    assert groups(tmp_path, tmp_path) == []


def test_a_pool_is_a_share_of_what_is_free():
    assert 0 < free_bytes() < limit_bytes()
    assert pool_bytes() < limit_bytes()


@pytest.mark.usefixtures("engine")
def test_the_engine_has_a_pool():
    assert int(os.environ["SAIL_RUNTIME__MEMORY_POOL__FAIR__MAX_SIZE"]) >= 256 << 20
