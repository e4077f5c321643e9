"""The choice of an engine, in a program of any kind."""

import subprocess
import sys

import pytest

from tests.support.daemons import bare_environment

#: Asks for a session of Spark Connect, where there is none.
ASKED = """
import sys
import pyspark.sql
from txnlib.engine.choice import choose

before = dict(vars())
assert choose(None, None) == "embedded"
assert vars().keys() - before.keys() == {"before"}
print("pyspark.testing.connectutils" in sys.modules)
"""


@pytest.mark.parametrize("how", ["-c", "a file"])
def test_no_program_is_taken_for_doctests_of_pyspark(repository, tmp_path, how):
    """PySpark would look for an installed Spark, and end the process without one: `python -c` with the extra local."""
    (tmp_path / "program.py").write_text(ASKED)
    program = ["-c", ASKED] if how == "-c" else [tmp_path / "program.py"]
    environment = bare_environment() | {"SPARK_CONNECT_MODE_ENABLED": "1", "PYTHONPATH": str(repository)}
    done = subprocess.run(
        [sys.executable, *program], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
    )
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
