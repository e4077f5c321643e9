"""The commands of docs/scheduling.md that no shell of a test runs: the line of cron, and the one that makes links."""

import re
import shlex
import subprocess

import yaml

from tests.house.test_docs import ROOT, blocks, commands
from txnlib.jobs import options

PAGE = [ROOT / "docs" / "scheduling.md"]


def test_the_line_of_cron_is_an_audit(tmp_path):
    (text,) = blocks("cron", PAGE)
    (line,) = [line for line in text.splitlines() if not line.startswith("#")]
    *_, command = line.split(None, 6)
    assert "%" not in command, "cron makes a line feed of it"
    program, job, *words = shlex.split(command.partition(" >")[0])
    assert (program, job) == ("/opt/txnlib/spark-submit.sh", options.AUDIT)
    given = options.parse(job, "", [re.sub(r"^(--\w+=)?/(var|tmp)/", rf"\1{tmp_path}/", word) for word in words])
    assert given.cluster == "blue"
    assert given.metrics.endswith(".prom")


def test_the_command_makes_each_runbook_a_link():
    (command,) = [line for line in commands() if line.startswith("sed ")]
    words = shlex.split(command.partition(" > ")[0])
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    (before,) = yaml.safe_load((ROOT / "deploy" / "prometheus" / "txnlib.rules.yaml").read_text())["groups"]
    (after,) = yaml.safe_load(done.stdout)["groups"]
    pages = [rule["annotations"]["runbook"] for rule in before["rules"]]
    links = [rule["annotations"]["runbook_url"] for rule in after["rules"]]
    assert links == [f"https://git.example.com/platform/txnlib/blob/main/{page}" for page in pages]
