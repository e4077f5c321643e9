"""The files of a capture among tasks of about equal work."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnlib.readers.capture import CaptureFile, FileKind
from txnlib.readers.table_readers import (
    HEADERS_ONLY,
    MOST_TASK_BYTES,
    MOST_TASK_FILES,
    TASK_BYTES,
    TASK_FILES,
    bundle,
)

MIB = 1 << 20


def file_of(size: int, topic: str = "orders", kind: FileKind = FileKind.SEGMENT) -> CaptureFile:
    return CaptureFile(f"/d/{topic}-0/{0:020}.log", kind, "raw:1", size, topic, 0, 0)


def dumps(*mib: int) -> list[CaptureFile]:
    return [file_of(size * MIB, kind=FileKind.DUMP) for size in mib]


SIZES = st.lists(st.integers(0, 3 << 30) | st.integers(0, 100), max_size=600)


@given(sizes=SIZES, tasks=st.integers(1, 400))
def test_each_file_is_in_one_bundle_in_order_and_none_is_much_heavier_than_the_others(sizes, tasks):
    files = [file_of(size, kind=FileKind.DUMP) for size in sizes]
    bundles = bundle(files, tasks)
    assert [file for some in bundles for file in some] == files
    assert all(0 < len(some) <= max(TASK_FILES, len(files) // tasks) for some in bundles)
    share = min(max(TASK_BYTES, sum(sizes) // tasks), MOST_TASK_BYTES)
    for some in bundles:
        assert sum(file.size for file in some) <= share + max(file.size for file in some)


def test_a_small_capture_is_one_task_and_a_large_one_as_many_as_are_wanted():
    assert len(bundle(dumps(*[1] * 30), 8)) == 1
    assert [len(some) for some in bundle(dumps(*[100] * 20), 8)] == [2, 3, 2, 3, 2, 3, 2, 3]
    assert len(bundle(dumps(*[100] * 20), 200)) == 20
    assert len(bundle(dumps(*[250] * 40), 2)) == 40, "no task is asked for more than it should take"
    assert [len(some) for some in bundle(dumps(0, 0, 0), 8)] == [3]
    assert bundle([], 8) == []


@pytest.mark.parametrize(
    ("files", "tasks", "most"),
    [(600, 8, TASK_FILES), (8_000, 8, 1_000), (50_000, 8, MOST_TASK_FILES), (50_000, 200, TASK_FILES)],
)
def test_of_many_small_files_a_task_reads_more(files, tasks, most):
    bundles = bundle([file_of(100)] * files, tasks)
    assert max(map(len, bundles)) == most
    assert len(bundles) == -(-files // most)


def test_where_only_headers_are_read_a_task_takes_more():
    sizes = [256 * MIB] * 16
    data, coordinator = ([file_of(size, topic) for size in sizes] for topic in ("orders", "__transaction_state"))
    assert len(bundle(coordinator, 1)) == HEADERS_ONLY * len(bundle(data, 1))
