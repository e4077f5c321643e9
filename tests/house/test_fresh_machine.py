"""The wheel on a machine that never saw the repository."""

import subprocess

import pytest


@pytest.mark.slow
def test_the_wheel_audits_the_sample_where_nothing_else_is(wheel, repository):
    done = subprocess.run(
        [repository / "scripts" / "check_wheel.sh", wheel], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "== all is well"


def test_the_check_of_a_wheel_wants_one(repository, tmp_path):
    for given in ([], [str(tmp_path / "absent.whl")]):
        done = subprocess.run(
            [repository / "scripts" / "check_wheel.sh", *given], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("usage: ")
