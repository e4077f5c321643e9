"""The examples for schedulers and alerts: valid, with existing names."""

import ast
import re
import shlex
import subprocess
from collections.abc import Iterator

import pytest
import yaml

from tests.house.test_docs import ROOT, anchors, blocks, commands
from tests.support.kustomize import build
from tests.support.promql import check
from txnlib.ask.metrics import METRICS
from txnlib.ask.run_result import URGENCY
from txnlib.ask.summary_json import Findings, Numbers
from txnlib.jobs import options

PAGE = [ROOT / "docs" / "scheduling.md"]
RULES = ROOT / "deploy" / "prometheus" / "txnlib.rules.yaml"


def texts(tree: ast.AST) -> Iterator[str]:
    """Strings of a Python program; what an f-string fills in is left as a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def understood(words: list[str], tmp_path) -> None:
    """As `audit` does, but that files are written below a folder of the test."""
    assert words[0].endswith("/spark-submit.sh"), words
    assert words[1] == options.AUDIT
    moved = [re.sub(r"^(--\w+=)?/(var|tmp)/", rf"\1{tmp_path}/", word) for word in words[2:]]
    given = options.parse(options.AUDIT, "", moved)
    assert given.cluster == "blue"
    assert given.metrics.endswith(".prom")


def test_the_line_of_cron_is_an_audit(tmp_path):
    (text,) = blocks("cron", PAGE)
    (line,) = [line for line in text.splitlines() if not line.startswith("#")]
    *_, command = line.split(None, 6)
    assert "%" not in command, "cron makes a line feed of it"
    understood(shlex.split(command.partition(" >")[0]), tmp_path)


def test_prometheus_scrapes_the_pushgateway_of_the_manifests_and_keeps_its_labels():
    (text,) = blocks("yaml", PAGE)
    (job,) = yaml.safe_load(text)["scrape_configs"]
    assert job["honor_labels"] is True, (
        "otherwise `cluster` stays, but `job` and `instance` are those of the Pushgateway"
    )
    environment = build(ROOT / "deploy" / "kubernetes" / "base")["ConfigMap", "txnlib-environment"]["data"]
    assert [f"http://{target}" for target in job["static_configs"][0]["targets"]] == [environment["PUSHGATEWAY_URL"]]


def test_the_dag_of_airflow_is_an_audit_and_reads_what_a_summary_holds(tmp_path):
    (text,) = blocks("python", PAGE)
    program = ast.parse(text)
    command = max((each for each in texts(program) if " audit " in each), key=len)  # its parts are strings, too
    understood(shlex.split(command), tmp_path)
    keys = [
        node.slice.value
        for node in ast.walk(program)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
    ]
    assert set(keys) <= {*Numbers.model_fields, *Findings.model_fields, *URGENCY}
    assert {"found", "verdicts", "HANGING"} <= set(keys)


def alerts() -> list[dict]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    rules: list[dict] = group["rules"]
    return rules


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_an_alert_asks_for_gauges_and_labels_that_there_are(rule):
    names = check(rule["expr"])
    labels = {"cluster"}.union(*[METRICS[name].labels for name in names])
    assert set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])) <= labels
    assert rule["labels"]["severity"] in ("page", "ticket")


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_the_runbook_of_an_alert_is_there(rule):
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert not anchor or anchor in anchors(ROOT / page)


def test_the_command_makes_each_runbook_a_link():
    (command,) = [line for line in commands() if line.startswith("sed ")]
    done = subprocess.run(
        shlex.split(command.partition(" > ")[0]), cwd=ROOT, capture_output=True, text=True, check=True
    )
    (group,) = yaml.safe_load(done.stdout)["groups"]
    before = [rule["annotations"]["runbook"] for rule in alerts()]
    after = [rule["annotations"]["runbook_url"] for rule in group["rules"]]
    assert after == [f"https://git.example.com/platform/txnlib/blob/main/{page}" for page in before]


@pytest.mark.parametrize("selector", ['verdict="HANGING"', 'verdict="STUCK"', 'severity="CRITICAL"'])
def test_somebody_is_paged_for_what_cannot_wait(selector):
    assert [rule["labels"]["severity"] for rule in alerts() if selector in rule["expr"]] == ["page"]


def test_the_names_of_alerts_differ():
    assert len({rule["alert"] for rule in alerts()}) == len(alerts()) > 5
