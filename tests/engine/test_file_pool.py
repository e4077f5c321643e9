"""Files read by a pool of processes."""

import os
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from tests.support.failing_files import Deadly, Failing
from txnlib.engine import file_pool
from txnlib.engine.file_pool import read_to_files
from txnlib.engine.pool_source import PoolSource
from txnlib.errors import EngineError, UnreadableInputError
from txnlib.readers.capture import list_capture
from txnlib.readers.table_readers import READ_TABLES


@pytest.fixture
def files(repository):
    return list(list_capture([str(repository / "examples" / "quickstart" / "brokers")]).files)


def read(files, folder, monkeypatch, count):
    """The rows of each table, by file; and the bytes that were told to be read."""
    monkeypatch.setattr(file_pool, "processes", lambda: count)
    done = []
    read_to_files([files[:20], files[20:]], READ_TABLES, folder, done.append)
    paths = sorted(folder.glob("*/*.parquet"))
    return {str(path.relative_to(folder)): pq.read_table(path) for path in paths}, sum(done)


def test_two_processes_read_what_one_reads(files, tmp_path, monkeypatch):
    one, two = (read(files, tmp_path / str(count), monkeypatch, count) for count in (1, 2))
    assert one == two
    assert two[1] == sum(file.extent for file in files)
    assert {name.partition("/")[0] for name in two[0]} > {"record_batches", "segments", "transaction_log"}


#: As users write them: without `if __name__ == "__main__"`.
SCRIPT = """
import sys
from pathlib import Path
from txnlib.engine import file_pool
from txnlib.readers.capture import list_capture

print("begins")
file_pool.processes = lambda: 2
files = list_capture([sys.argv[1]]).files
file_pool.read_to_files([files[:1], files[1:]], ["segments"], Path(sys.argv[2]))
"""


def test_a_script_is_run_by_no_process_of_the_pool(repository, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    given = [repository / "examples" / "quickstart" / "brokers", tmp_path / "read"]
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    done = subprocess.run([sys.executable, tmp_path / "script.py", *given], env=environment, capture_output=True)
    assert (done.stdout, done.returncode) == (b"begins\n", 0), done.stderr.decode()
    assert len(list(tmp_path.glob("read/segments/*.parquet"))) == 2


def test_the_error_of_a_process_arrives(tmp_path, monkeypatch):
    monkeypatch.setattr(file_pool, "processes", lambda: 2)
    with pytest.raises(UnreadableInputError, match=r"a\.log: is gone\. Copy it again"):
        read_to_files([[Failing()], [Failing()]], READ_TABLES, tmp_path)


def test_a_process_that_was_killed_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(file_pool, "processes", lambda: 2)
    with pytest.raises(EngineError, match="the memory of this machine is full"):
        read_to_files([[Deadly()], [Deadly()]], READ_TABLES, tmp_path)


def test_nothing_is_left_of_a_capture_that_cannot_be_read_and_it_may_be_read_later(engine, files, tmp_path):
    capture = list_capture([file.path for file in files[:2]])
    source, problems = PoolSource(engine.spark, capture, folder=tmp_path), [OSError("disk is full")]

    def is_read(_: int) -> None:
        if problems:
            raise problems.pop()

    source.is_read = is_read
    with pytest.raises(OSError, match="disk is full"):
        source.read("segments")
    assert list(tmp_path.iterdir()) == []
    assert source.read("segments").count() > 0
    source.forget()
    assert list(tmp_path.iterdir()) == []
