"""Gauges in a Pushgateway: those of the last audit, whatever it found, and its exit code."""

import json
import shutil
import subprocess
import sys
from base64 import urlsafe_b64decode
from pathlib import Path

import pytest

from tests.support.receiver import receiving

#: An audit that writes its arguments, and gauges unless it ends with 2, as for a command line that is refused.
AUDIT = (
    f"#!{sys.executable}"
    + """
import json, os, sys
code = int(os.environ["CODE"])
with open(os.environ["CALLED"], "w") as called:
    json.dump(sys.argv[1:], called)
if code != 2 and "--metrics" in sys.argv:
    with open(sys.argv[sys.argv.index("--metrics") + 1], "w") as metrics:
        metrics.write(f"txnlib_audit_exit_code{{cluster=\\"blue\\"}} {code}\\n")
sys.exit(code)
"""
)
CLUSTER = "blue/eu ü"


@pytest.fixture
def script(repository, tmp_path) -> Path:
    (tmp_path / "deploy").mkdir()
    (tmp_path / "spark-submit.sh").write_text(AUDIT)
    (tmp_path / "spark-submit.sh").chmod(0o755)
    text = (repository / "deploy" / "audit_and_push.py").read_text()
    target = tmp_path / "deploy" / "audit_and_push.py"
    target.write_text(text.replace("WAITS = (5, 15, 45)", "WAITS = (0, 0, 0)"))
    assert target.read_text() != text
    shutil.copymode(repository / "deploy" / "audit_and_push.py", target)
    return target


def run(script: Path, code: int, gateway: str, *argv: str) -> tuple[int, list[str], str]:
    """Its exit code, the arguments of the audit (none if it did not run), and stderr."""
    called = script.with_name("called")
    called.unlink(missing_ok=True)
    environment = {"CODE": str(code), "CALLED": str(called), "PUSHGATEWAY_URL": gateway}
    command = [sys.executable, script, *(argv or ("audit", "--cluster", CLUSTER, "--input=in"))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(called.read_text()) if called.exists() else [], done.stderr


@pytest.mark.parametrize("code", [0, 1, 3])
def test_the_gauges_of_any_audit_are_pushed_and_its_exit_code_is_kept(script, code):
    with receiving() as gateway:
        ended, argv, said = run(script, code, f"{gateway.url}/")
    assert (ended, said) == (code, "")
    assert (argv[:2], argv[3:]) == (["audit", "--metrics"], ["--cluster", CLUSTER, "--input=in"])
    ((method, path, _, body),) = gateway.requests
    assert (method, body.decode()) == ("PUT", f'txnlib_audit_exit_code{{cluster="blue"}} {code}\n'), (
        "PUT replaces, POST adds"
    )
    place, _, group = path.rpartition("/")
    assert place == "/metrics/job/txnlib/cluster@base64"
    assert urlsafe_b64decode(group + "=" * (-len(group) % 4)).decode() == CLUSTER


def test_an_audit_without_gauges_pushes_nothing(script):
    """The alert TransactionAuditMissing covers it."""
    with receiving() as gateway:
        ended, _, said = run(script, 2, gateway.url)
    assert (ended, gateway.requests, "nothing to push" in said) == (2, [], True)


def test_a_push_is_tried_again(script):
    with receiving() as gateway:
        gateway.answers = [503, 503]
        assert run(script, 0, gateway.url)[0] == 0
    assert len(gateway.requests) == 3


@pytest.mark.parametrize(("code", "expected"), [(0, 1), (1, 1), (3, 3)])
def test_gauges_that_nobody_takes_are_a_failure_unless_there_is_a_stronger_one(script, code, expected):
    with receiving() as gateway:
        gateway.answers = [400] * 4
        ended, _, said = run(script, code, gateway.url)
    assert (ended, len(gateway.requests), said.count("HTTP Error 400")) == (expected, 4, 4)


def test_without_a_gateway_it_is_only_an_audit(script):
    assert run(script, 3, "") == (3, ["audit", "--cluster", CLUSTER, "--input=in"], "")


@pytest.mark.parametrize("argv", [("audit", "--input", "in"), ("ingest_dumps", "--cluster", "blue")])
def test_an_audit_without_a_cluster_is_refused_before_it_runs(script, argv):
    ended, called, said = run(script, 0, "http://127.0.0.1:1", *argv)
    assert (ended, called, "--cluster NAME" in said) == (2, [], True)
