"""An audit that takes nearly all memory ends with a word; the kernel would give it none."""

import queue
import re
import subprocess
import sys

import pytest

from txnlib.engine.memory import limit_bytes
from txnlib.jobs.program import taken_bytes, watch_memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, nothing is watched")

#: Takes memory until it is stopped.
GREEDY = """
import time

from txnlib.jobs import program
program.limit_bytes = lambda: 300 << 20


def job(argv):
    taken = [bytes([1]) * (32 << 20) for number in range(20)]
    time.sleep(60)
    return len(taken)


program.start(job)
"""


def test_the_last_line_says_how_much_was_taken_and_how_to_go_on():
    said: queue.Queue[str] = queue.Queue()
    watch_memory(said.put, most=0)
    assert re.fullmatch(
        r"txnlib: the audit took \d+\.\d GiB of memory, nearly all that there is; to go on with Spark: --engine spark",
        said.get(timeout=5),
    )


def test_nothing_is_said_while_there_is_memory():
    said: queue.Queue[str] = queue.Queue()
    watch_memory(said.put)
    with pytest.raises(queue.Empty):
        said.get(timeout=1)
    assert 0 < taken_bytes()[1] < limit_bytes()


def test_the_program_ends_with_the_exit_code_of_a_failure():
    ended = subprocess.run([sys.executable, "-c", GREEDY], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr.endswith("GiB of memory, nearly all that there is; to go on with Spark: --engine spark\n")


@pytest.mark.parametrize(("asked", "code", "said"), [([], 1, "ulimit -v allows 1.9 GiB"), (["--help"], 0, "")])
def test_too_little_address_space_is_told_before_anything_aborts(repository, asked, code, said):
    # The shell sets the limit: a fork of this process, which may have an engine in it, could abort below it.
    limited = ["sh", "-c", 'ulimit -v 2000000 && exec "$@"', "sh"]
    ended = subprocess.run(
        [*limited, sys.executable, "jobs/audit.py", *asked], cwd=repository, capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stderr.count("\n")) == (code, code)
    assert said in ended.stderr
