"""The examples for schedulers and alerts: valid, with existing names."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator

import pytest
import yaml

from tests.house.test_docs import ROOT, blocks
from txnlib.jobs import options
from txnlib.queries.run_result import SEVERITIES, STATUSES, URGENCY
from txnlib.render.metrics import METRICS
from txnlib.render.summary_json import Findings, Numbers

PAGE = [ROOT / "docs" / "scheduling.md"]
RULES = ROOT / "deploy" / "prometheus" / "txnlib.rules.yaml"


def documents() -> dict[str, dict]:
    """The YAML examples of Kubernetes, by their kind."""
    parsed = [yaml.safe_load(text) for text in blocks("yaml", PAGE)]
    return {each["kind"]: each for each in parsed}


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
    moved = [re.sub(r"^(--\w+=)?/(var|textfile|tmp)/", rf"\1{tmp_path}/", word) for word in words[2:]]
    given = options.parse(options.AUDIT, "", moved)
    assert given.cluster == "blue"
    assert given.metrics.endswith(".prom")


def test_the_line_of_cron_is_an_audit(tmp_path):
    (text,) = blocks("cron", PAGE)
    (line,) = [line for line in text.splitlines() if not line.startswith("#")]
    *_, command = line.split(None, 6)
    assert "%" not in command, "cron makes a line feed of it"
    understood(shlex.split(command.partition(" >")[0]), tmp_path)


def test_the_job_of_kubernetes_is_an_audit_that_is_alone_and_mounts_what_it_names(tmp_path):
    job = documents()["CronJob"]["spec"]
    pod = job["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    understood([*container["command"], *container["args"]], tmp_path)
    assert (job["concurrencyPolicy"] == "Forbid") == ("--take-over" in container["args"])
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    places = [mount["mountPath"] for mount in container["volumeMounts"]]
    for word in container["args"]:
        path = word.partition("=")[2]
        assert not path.startswith("/") or any(path.startswith(f"{place}/") for place in places), word
    (rule,) = job["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]
    assert rule["onExitCodes"]["values"] == [2, 3]


def test_the_dag_of_airflow_is_an_audit_and_reads_what_a_summary_holds(tmp_path):
    (text,) = blocks("python", PAGE)
    program = ast.parse(text)
    command = max((each for each in texts(program) if " audit " in each), key=len)  # its parts are strings, too
    understood(shlex.split(command), tmp_path)
    keys = [
        node.slice.value for node in ast.walk(program) if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)
    ]
    assert set(keys) <= {*Numbers.model_fields, *Findings.model_fields, *URGENCY}
    assert {"found", "verdicts", "HANGING"} <= set(keys)


def alerts() -> list[dict]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    rules: list[dict] = group["rules"]
    return rules


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_an_alert_asks_for_gauges_and_labels_that_there_are(rule):
    asked = re.findall(r"(txnlib_\w+)(?:\{(\w+)=\"(\w+)\"\})?", rule["expr"])
    assert asked
    for name, label, value in asked:
        assert name in METRICS
        assert not label or label in METRICS[name].labels
        assert not value or value in (*URGENCY, *STATUSES, *SEVERITIES)
    first = METRICS[asked[0][0]].labels
    assert set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])) <= {"cluster", *first}


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_the_runbook_of_an_alert_is_there(rule):
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
    assert not anchor or anchor in anchors


def test_the_names_of_alerts_differ():
    assert len({rule["alert"] for rule in alerts()}) == len(alerts()) > 5
