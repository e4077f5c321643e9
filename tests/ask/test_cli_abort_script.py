"""The plan as a script: it checks before each step, and stops at the first surprise. Run by Bash, with a tool that only
prints."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.delta_tables import txn_audit
from tests.support.planned import HANGING, row_of, write_plan
from txnlib.core.verdicts.plan_step import Action

PRODUCERS = (
    "ProducerId\tProducerEpoch\tLatestCoordinatorEpoch\tLastSequence\tLastTimestamp\tCurrentTransactionStartOffset"
)
DESCRIBED = (
    "CoordinatorId\tTransactionalId\tProducerId\tProducerEpoch\tTransactionState\tTransactionTimeoutMs\t"
    "CurrentTransactionStartTimeMs\tTransactionDurationMs\tTopicPartitions"
)


def producers(start: object, producer: int = 7) -> str:
    other = "8         \t0            \t3                     \t0           \t1            \tNone"
    return f"{PRODUCERS}\t\n{other}\t\n{producer}\t1\t3\t9\t2\t{start}\t\n"


def described(state: str, partitions: str, producer: int = 7) -> str:
    return f"{DESCRIBED}\t\n1\tpay\t{producer}\t1\t{state}\t60000\tNone\tNone\t{partitions}\t\n"


FOUND = "Topic\tPartition\tProducerId\tProducerEpoch\tCoordinatorEpoch\tStartOffset\tLastTimestamp\tDuration(min)"


def hanging(start: int, producer: int = 7) -> str:
    return f"{FOUND}\npayments\t0\t{producer}\t1\t3\t{start}\t2\t60\n"


#: What the tool prints when all is as the plan says: before, at the coordinator, after.
AS_PLANNED = {
    "open": producers(24),
    "state": described("CompleteAbort", ""),
    "found": hanging(24),
    "ended": producers(None),
}
SURPRISES = {
    "another transaction began": {"open": producers(25)},
    "it has ended": {"open": producers(None)},
    "another producer has one there": {"open": producers(24, producer=70)},
    "the coordinator lists the partition": {"state": described("Ongoing", "orders-1,payments-0")},
    "it is to be committed": {"state": described("PrepareCommit", "")},
    "a table of another form": {"state": described("Ongoing", "payments-0").replace("TopicPartitions", "Partitions")},
    "the live tool finds nothing": {"found": f"{FOUND}\n"},
    "the live tool finds another one": {"found": hanging(25)},
    "the live tool finds another producer": {"found": hanging(24, producer=70)},
    "no row": {"state": f"{DESCRIBED}\n"},
    "nothing": {"open": ""},
}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    _, row = row_of(replace(HANGING, transactional_id="pay"))
    evil = {"transactional_id": "evil\nrun false", "notes": ["a\nrun false"]}
    write_plan(tmp_path / "out", row, {**row, "number": 2, "action": Action.DO_NOT_ABORT.name, **evil})
    code, out, err = txn_audit(tmp_path / "out", "abort-plan", "--format", "sh")
    assert (code, err) == (0, "")
    path = tmp_path / "plan.sh"
    path.write_text(out)
    return path


def carried_out(
    script: Path,
    printed: dict[str, str],
    *,
    fails: str = "",
    name: str = "kafka-transactions.sh",
    is_in_path: bool = True,
) -> tuple[int, list[str]]:
    """The exit code, and the commands that reached the tool."""
    folder = script.parent
    for file, text in printed.items():
        (folder / file).write_text(text)
    tool = folder / "bin" / name
    tool.parent.mkdir()
    tool.write_text(
        f"""#!/usr/bin/env bash
[[ -z "${{JMX_PORT:-}}${{KAFKA_JMX_OPTS:-}}" ]] || exit 9
echo "$*" >> {folder}/ran
[[ "$3" != "{fails}" ]] || exit 1
case "$3" in
  describe-producers) if grep -q ' abort ' {folder}/ran; then cat {folder}/ended; else cat {folder}/open; fi ;;
  describe) cat {folder}/state ;;
  find-hanging) cat {folder}/found ;;
esac
"""
    )
    tool.chmod(0o755)
    where = {"PATH": f"{tool.parent}:{os.environ['PATH']}"} if is_in_path else {"TOOLS": str(tool.parent)}
    environment = {"PATH": os.environ["PATH"], "BOOTSTRAP": "broker:9092", "JMX_PORT": "9999"} | where
    done = subprocess.run(["bash", script], env=environment, capture_output=True, text=True)
    ran = (folder / "ran").read_text().splitlines() if (folder / "ran").exists() else []
    assert ("STOPPED" in done.stderr) == (done.returncode != 0), done.stderr
    (folder / "told").write_text(done.stderr)
    return done.returncode, [line.split()[2] for line in ran]


def test_a_step_that_is_as_planned_is_checked_done_and_checked_again(script):
    code, ran = carried_out(script, AS_PLANNED)
    assert (code, ran) == (0, ["describe-producers", "describe", "find-hanging", "abort", "describe-producers"])
    told = (script.parent / "told").read_text()
    assert told.startswith("step     1 of 1: 1. ABORT payments-0 offset 24, producer 7\n")
    assert told.endswith("\ndone     1 of 1 steps\n")


@pytest.mark.parametrize("is_in_path", [True, False], ids=["in PATH", "in TOOLS"])
@pytest.mark.parametrize("name", ["kafka-transactions.sh", "kafka-transactions"])
def test_the_tool_is_found_with_and_without_an_ending(script, name, is_in_path):
    code, ran = carried_out(script, AS_PLANNED, name=name, is_in_path=is_in_path)
    assert (code, ran[-2:]) == (0, ["abort", "describe-producers"])


def test_a_tool_that_is_not_there_is_named(script):
    environment = {"PATH": os.environ["PATH"], "BOOTSTRAP": "broker:9092"}
    done = subprocess.run(["bash", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "neither kafka-transactions.sh nor kafka-transactions is in PATH" in done.stderr


def test_nothing_is_done_after_a_surprise_and_what_is_told_is_as_it_was_read_last(assert_as_read, script):
    told = ""
    before = SURPRISES | {f"{command} fails": {} for command in ("describe-producers", "describe", "find-hanging")}
    after = {"abort fails": {}, "the abort has no effect": {"ended": producers(24)}}
    for surprise, printed in (before | after).items():
        own = script.parent / surprise.replace(" ", "-") / script.name
        own.parent.mkdir()
        shutil.copy(script, own)
        fails = surprise.removesuffix(" fails")
        code, ran = carried_out(own, {**AS_PLANNED, **printed}, fails=fails)
        assert (code, "abort" in ran) == (1, surprise in after), surprise
        whole = (own.parent / "told").read_text()
        says = re.findall(r"^(?:STOPPED|expected) .*\n", whole, re.MULTILINE)
        told += f"== {surprise}\n{''.join(says)}"
    told += f"== whole\n{whole}"
    assert_as_read("surprises", told)


def test_with_nothing_to_do_it_is_short(tmp_path):
    _, row = row_of(replace(HANGING, transactional_id="pay"))
    write_plan(tmp_path, {**row, "action": Action.DO_NOT_ABORT.name})
    _, out, _ = txn_audit(tmp_path, "abort-plan", "--format", "sh")
    assert len(out.splitlines()) < 15
    done = subprocess.run(["bash"], input=out, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "nothing to do\n"), "no address is needed"


def test_the_text_of_a_stored_command_is_not_run(tmp_path):
    _, row = row_of(replace(HANGING, transactional_id="pay"))
    edited = {
        "command": "false; touch edited",
        "before": [{**step, "command": "touch edited"} for step in row["before"]],
    }
    write_plan(tmp_path / "sound", row)
    write_plan(tmp_path / "edited", {**row, **edited})
    sound, other = (txn_audit(tmp_path / name, "abort-plan", "--format", "sh")[1] for name in ("sound", "edited"))
    assert "abort --topic payments --partition 0 --start-offset 24" in sound
    assert other == sound


def test_the_address_must_be_named(script):
    done = subprocess.run(["bash", script], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True)
    assert (done.returncode != 0, "set BOOTSTRAP" in done.stderr) == (True, True)
