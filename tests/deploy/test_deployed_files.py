"""What a person copies from `deploy`: it loads, and what it names exists."""

import json
import re
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.house.test_docs import anchors
from txnlib import __version__
from txnlib.ask.report_fields import SEVERITIES
from txnlib.ask.run_result import METRICS
from txnlib.ask.words import URGENCY
from txnlib.jobs import options

#: Values of the labels that have a closed list of them.
VALUES = {"verdict": {*URGENCY}, "severity": {*SEVERITIES}}


@pytest.fixture
def alerts(repository) -> list[dict[str, Any]]:
    (group,) = yaml.safe_load((repository / "deploy" / "prometheus" / "txnlib.rules.yaml").read_text())["groups"]
    return group["rules"]


@pytest.fixture
def panels(repository) -> list[dict[str, Any]]:
    return json.loads((repository / "deploy" / "grafana" / "txnlib.json").read_text())["panels"]


def unknown(expression: str) -> list[str]:
    """The gauges, labels and values of an expression that no audit writes."""
    found = [name for name in re.findall(r"txnlib_\w+", expression) if name not in METRICS]
    for name, selected in re.findall(r"(txnlib_\w+)\{([^}]*)\}", expression):
        for label, value in re.findall(r'(\w+)[!=~]+"([^"]*)"', selected):
            is_known = label in {"cluster", *METRICS[name].labels} and value in VALUES.get(label, {value})
            found += [] if is_known else [f"{name}: {label} {value}"]
    return found


def test_alerts_ask_for_gauges_labels_and_values_that_there_are(alerts):
    assert [fault for alert in alerts for fault in unknown(alert["expr"])] == []
    assert unknown('txnlib_cats > 0 or txnlib_transactions{verdict="HUNG"} > 0') == [
        "txnlib_cats",
        "txnlib_transactions: verdict HUNG",
    ]


def test_somebody_is_paged_for_what_cannot_wait(alerts):
    for selector in ('verdict="STUCK"', 'severity="CRITICAL"'):
        assert [alert["labels"]["severity"] for alert in alerts if selector in alert["expr"]] == ["page"]
    hanging = [alert for alert in alerts if 'verdict="HANGING"' in alert["expr"]]
    assert [alert["labels"]["severity"] for alert in hanging] == ["page", "ticket"]
    assert hanging[0]["expr"].startswith("last_over_time(txnlib_held_partitions{"), "what holds no partition can wait"


def test_the_runbook_of_an_alert_is_there(repository, alerts):
    for alert in alerts:
        page, _, anchor = alert["annotations"]["runbook"].partition("#")
        assert not anchor or anchor in anchors(repository / page), alert["alert"]


def test_the_dashboard_asks_for_gauges_labels_and_values_that_there_are(panels):
    queries = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    assert [fault for query in queries for fault in unknown(query.replace("$cluster", "blue"))] == []
    assert len(queries) > 10


def test_the_image_copies_what_exists_and_reaches_the_build(repository):
    dockerfile = (repository / "deploy" / "Dockerfile").read_text()
    taken = [source for line in re.findall(r"^COPY (.*)$", dockerfile, re.MULTILINE) for source in line.split()[:-1]]
    kept = re.findall(r"^!(.*)$", (repository / "deploy" / "Dockerfile.dockerignore").read_text(), re.MULTILINE)
    scripts = "".join((repository / name).read_text() for name in ("spark-submit.sh", "bootstrap.sh"))
    named = set(re.findall(r"\$root/([\w.-]+)", scripts)) - {".venv", ".venv-spark", "dist", "out"}
    assert named <= {source.split("/")[0] for source in taken}
    for source in taken:
        assert (repository / source).exists(), source
        assert any(fnmatch(source, each) or source.startswith(f"{each}/") for each in kept), source


def arguments(manifests: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """The image and the arguments of the container, with the variables of the config map."""
    variables, _, job = manifests
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    given = [re.sub(r"\$\((\w+)\)", lambda found: variables["data"][found[1]], word) for word in container["args"]]
    return container["image"], given


def test_the_cron_job_is_an_audit_that_is_not_tried_again_for_what_it_found(repository, tmp_path: Path):
    manifests = list(yaml.safe_load_all((repository / "deploy" / "cronjob.yaml").read_text()))
    image, (job, *given) = arguments(manifests)
    assert image == f"registry.example.com/txnlib:{__version__}"
    parsed = options.parse(job, "", [word.replace("/var/lib/txnlib", str(tmp_path)) for word in given])
    assert (job, parsed.cluster, parsed.fail_on) == (options.AUDIT, "blue", {"hanging", "stuck", "critical"})
    spec = manifests[-1]["spec"]
    rules = spec["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]
    assert [rule["onExitCodes"]["values"] for rule in rules if rule["action"] == "FailJob"] == [[2, 3]]
    assert spec["concurrencyPolicy"] == "Forbid"
