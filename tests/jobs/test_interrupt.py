"""Ctrl-C while a job is still loading."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

#: A job that waits for ever: while it is loaded, or once it runs.
LOADS = "import time\nprint('here', flush=True)\ntime.sleep(60)\n"
RUNS = "import time\ndef job(argv):\n    print('here', flush=True)\n    time.sleep(60)\n"


@pytest.mark.parametrize(
    ("module", "told"),
    [
        (LOADS, "txnlib: interrupted before anything was read"),
        (RUNS, "txnlib: interrupted; complete tables stay, and the same command makes the others"),
    ],
    ids=["loading", "running"],
)
def test_ctrl_c_ends_a_job_with_one_line_at_any_moment(tmp_path: Path, module, told):
    (tmp_path / "slow.py").write_text(module)
    program = "from txnlib.jobs.command import start_program; start_program('slow:job')"
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "here\n"
        job.send_signal(signal.SIGINT)
        _, err = job.communicate(timeout=30)
    assert (job.returncode, err.strip()) == (130, told)
