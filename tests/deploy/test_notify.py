"""Messages to Slack and PagerDuty about a summary, as docs/scheduling.md shows them."""

import json
import os
import re
import runpy
import shlex
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.house.test_docs import ROOT, commands
from tests.support.outcomes import TRANSACTION, outcome
from tests.support.receiver import Receiver, receiving
from txnlib.ask.run_result import render_numbers

NOW_MS = int(datetime.now(UTC).timestamp() * 1000)
#: A name that would call everybody, end a JSON string, and make a link.
HOSTILE = '<!channel> "}\\ & <https://example.com|click>\n'
SECRET = "/services/T0/B0/secret"


def summary(
    folder: Path, *, code: int = 0, hours: float = 1, error: str | None = None, name: str | None = None
) -> Path:
    """A summary as an audit writes it, which ended so many hours ago."""
    ended = NOW_MS - int(hours * 3_600_000)
    run = outcome(open_transactions=[{**TRANSACTION, "transactional_id": name}])
    run = replace(run, exit_code=code, started_ms=ended - 1000, finished_ms=ended)
    file = folder / "blue.json"
    file.write_text(render_numbers(replace(run, error=error, found=None) if error else run))
    return file


def shown(service: str) -> list[str]:
    """The words of the command in the documents."""
    (line,) = [line for line in commands() if f"notify.py {service}" in line]
    return shlex.split(line)


@dataclass(frozen=True)
class Done:
    """How a program ended."""

    returncode: int
    stdout: str
    stderr: str


def notify(service: str, file: Path, receiver: Receiver, *options: str, **environment: str) -> Done:
    """The command of the documents with another file, and another address of the service, in this process."""
    variables = {
        "SLACK_WEBHOOK_URL": receiver.url + SECRET,
        "PAGERDUTY_ROUTING_KEY": "key",
        "PAGERDUTY_EVENTS_URL": receiver.url,
    }
    assignments = [word for word in shown(service) if re.match(r"[A-Z_]+=", word)]
    assert {word.partition("=")[0] for word in assignments} <= variables.keys()
    program, *words = [word for word in shown(service) if word not in assignments]
    assert program == "python3"
    argv = [str(file) if word.endswith(".json") else word.replace("/opt/txnlib", str(ROOT)) for word in words]
    out, err, code = StringIO(), StringIO(), 0
    with (
        mock.patch.dict(os.environ, variables | environment, clear=True),
        mock.patch.object(sys, "argv", [*argv, *options]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            runpy.run_path(argv[0], run_name="__main__")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
            err.write("" if isinstance(end.code, int) else f"{end.code}\n")
    return Done(code, out.getvalue(), err.getvalue())


def bodies(receiver: Receiver) -> list[dict[str, Any]]:
    kinds = {(method, headers["Content-Type"]) for method, _, headers, _ in receiver.requests}
    assert kinds <= {("POST", "application/json")}
    return [json.loads(body) for *_, body in receiver.requests]


@pytest.mark.parametrize(
    ("code", "error", "text"),
    [
        (
            3,
            None,
            "txnlib: blue: 2 HANGING; read 3 of 4 partitions\n2 HANGING, nobody will ever end them\n1 OPEN, in time\n"
            "HANGING payments-0 offset 24 producer 1 payments-7: holds the partition, 187 offsets wait; safe to abort:"
            " yes",
        ),
        (1, "the disk is full", "txnlib: blue: the audit failed (exit code 1)\nthe disk is full"),
        (0, None, None),
    ],
)
def test_slack_is_told_and_a_scheduler_that_sends_mails_is_failed_unless_all_is_well(tmp_path, code, error, text):
    file = summary(tmp_path, code=code, error=error, name="payments-7")
    with receiving() as slack:
        told, failed = notify("slack", file, slack), notify("fail", file, slack)
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")
    assert [(path, body) for (_, path, *_), body in zip(slack.requests, bodies(slack), strict=True)] == (
        [(SECRET, {"text": text})] if text else []
    )
    assert (failed.returncode, failed.stdout, failed.stderr) == ((1, "", f"{text}\n") if text else (0, "", ""))


def test_no_message_is_calm_about_what_was_not_read(tmp_path):
    file = summary(tmp_path, code=3)
    told = json.loads(file.read_text())
    told["found"]["unacknowledged"]["transactions"] = {"OPEN": 1}
    told["found"]["coverage"]["unreadable_files"] = 2
    file.write_text(json.dumps(told))
    with receiving() as slack:
        notify("slack", file, slack)
    first = bodies(slack)[0]["text"].split("\n")[0]
    assert first.endswith("no transaction needs attention in what was read; read 3 of 4 partitions; 2 files not read")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "holds the partition, 187 offsets wait; safe to abort: yes"),
        (
            {"safe_to_abort": False, "safe_from": "2026-11-21T08:10:00.400Z"},
            "holds the partition, 187 offsets wait; safe to abort: from 2026-11-21 08:10:01Z on",
        ),
        (
            {"safe_to_abort": False, "holds": False, "blocked_offsets": 1},
            "waits behind another, 1 offset waits behind its start; safe to abort: no",
        ),
    ],
)
def test_a_line_says_what_is_held_who_waits_and_from_when_it_is_safe(tmp_path, fields, said):
    file = summary(tmp_path, code=3, name="pay-7")
    told = json.loads(file.read_text())
    told["found"]["transactions"][0] |= fields
    file.write_text(json.dumps(told))
    with receiving() as slack:
        notify("slack", file, slack)
    assert bodies(slack)[0]["text"].split("\n")[-1] == f"HANGING payments-0 offset 24 producer 1 pay-7: {said}"


def test_what_is_acknowledged_is_counted_with_its_end_and_has_no_line(tmp_path):
    file = summary(tmp_path, code=3, name="pay-7")
    told = json.loads(file.read_text())
    told["found"]["transactions"][0]["acknowledged_by"] = "ada"
    told["found"]["unacknowledged"]["transactions"]["HANGING"] = 1
    told["found"]["acknowledged_until"] = "2026-12-01T00:00:00.000Z"
    file.write_text(json.dumps(told))
    with receiving() as slack:
        notify("slack", file, slack)
    text = bodies(slack)[0]["text"]
    assert "blue: 1 HANGING; " in text
    assert text.split("\n")[0].endswith("; 1 acknowledged, the first until 2026-12-01 00:00:00Z")
    assert "pay-7" not in text


def test_a_name_from_a_log_is_text_and_nothing_else(tmp_path):
    with receiving() as slack:
        assert notify("slack", summary(tmp_path, code=3, name=HOSTILE), slack).returncode == 0
        assert notify("pagerduty", summary(tmp_path, code=3, name=HOSTILE), slack).returncode == 0
    text = bodies(slack)[0]["text"]
    assert "&lt;!channel&gt; " in text
    assert "&amp; &lt;https://example.com|click&gt;" in text
    assert not re.search(r"[<>]", text)
    assert set(bodies(slack)[0]) == {"text"}
    assert '<!channel> "}\\' in bodies(slack)[2]["payload"]["custom_details"]["lines"][-1]


@pytest.mark.parametrize("service", ["slack", "pagerduty", "fail"])
def test_a_name_from_a_log_forges_no_line_and_steers_no_terminal(tmp_path, service):
    name = "x\nHANGING all-is-well\x1b[2J\u202egnp\u2028y"
    with receiving() as receiver:
        done = notify(service, summary(tmp_path, code=3, name=name), receiver)
    sent = bodies(receiver)
    lines = done.stderr.splitlines()
    for body in sent:
        lines += (
            body["text"].split("\n")
            if service == "slack"
            else body.get("payload", {}).get("custom_details", {}).get("lines", [])
        )
    (told,) = [line for line in lines if "all-is-well" in line]
    assert r"producer 1 x\nHANGING all-is-well\x1b[2J\u202egnp\u2028y: holds the partition" in told
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize(("hours", "says"), [(19, "2 HANGING"), (21, "no audit has ended for 21 hours")])
def test_an_old_summary_is_not_repeated_but_reported(tmp_path, hours, says):
    with receiving() as slack:
        notify("slack", summary(tmp_path, code=3, hours=hours), slack)
        notify("slack", summary(tmp_path, code=3, hours=hours), slack, "--max-age", str(hours + 1))
    first, second = (body["text"] for body in bodies(slack))
    assert says in first
    assert "2 HANGING" in second


@pytest.mark.parametrize(
    ("code", "error", "actions"),
    [
        (3, None, {"failed": "resolve", "found": "trigger"}),
        (1, "the disk is full", {"failed": "trigger"}),  # what hung yesterday may still hang
        (2, "no readable input", {"failed": "trigger"}),
        (0, None, {"failed": "resolve", "found": "resolve"}),
    ],
)
def test_pagerduty_has_an_incident_for_each_kind_of_news(tmp_path, code, error, actions):
    with receiving() as pagerduty:
        assert notify("pagerduty", summary(tmp_path, code=code, error=error), pagerduty).returncode == 0
    assert {event["dedup_key"]: event["event_action"] for event in bodies(pagerduty)} == {
        f"txnlib/{kind}/blue": action for kind, action in actions.items()
    }
    for event in bodies(pagerduty):
        assert event["routing_key"] == "key"
        payload = event.get("payload")
        assert (payload is not None) == (event["event_action"] == "trigger")
        if payload:
            assert {"summary", "source", "severity"} <= payload.keys()
            assert (payload["severity"] == "critical") == (code == 3)


@pytest.mark.parametrize("service", ["slack", "pagerduty"])
def test_a_message_that_is_refused_ends_with_1_and_without_the_secret(tmp_path, service):
    with receiving() as receiver:
        receiver.otherwise = (403, b"")
        done = notify(service, summary(tmp_path, code=3), receiver)
        assert (done.returncode, "HTTP Error 403" in done.stderr, SECRET in done.stderr) == (1, True, False)
    for wrong in ("secret:no url", "secret", "http://127.0.0.1:1/the secret", "file:///etc/secret"):
        done = notify(service, summary(tmp_path, code=3), receiver, SLACK_WEBHOOK_URL=wrong, PAGERDUTY_EVENTS_URL=wrong)
        assert (done.returncode, "secret" in done.stderr, "Traceback" in done.stderr) == (1, False, False), done.stderr


def test_bad_usage_ends_with_2_and_sends_nothing(tmp_path):
    with receiving() as slack:
        done = notify("slack", summary(tmp_path, code=3), slack, SLACK_WEBHOOK_URL="")
        assert (done.returncode, "SLACK_WEBHOOK_URL is not set" in done.stderr) == (2, True)
        for text in ("", "[]", "{}", "3", "[" * 99_999):
            (tmp_path / "blue.json").write_text(text)
            done = notify("slack", tmp_path / "blue.json", slack)
            assert (done.returncode, "not a summary" in done.stderr) == (2, True), done.stderr
    assert slack.requests == []


ODD = [None, 7, "x", [], {}, [None], {"x": None}, True]


@pytest.mark.parametrize("odd", ODD, ids=json.dumps)
@pytest.mark.parametrize(
    "name",
    ["cluster", "found", "finished", "transactions_by_verdict", "findings", "coverage", "transactions", "answer"],
)
def test_odd_values_end_with_a_sentence(tmp_path, name, odd):
    file = summary(tmp_path, code=3)
    content = json.loads(file.read_text())
    (content if name in content else content["found"])[name] = odd
    file.write_text(json.dumps(content))
    for service in ("slack", "pagerduty", "fail"):
        with receiving() as receiver:
            done = notify(service, file, receiver)
        assert done.returncode in (0, 1, 2)


def test_the_name_of_a_cluster_is_escaped_for_pagerduty(tmp_path):
    file = summary(tmp_path, code=3)
    content = json.loads(file.read_text()) | {"cluster": "x\nHANGING\x1b[2J"}
    file.write_text(json.dumps(content))
    with receiving() as receiver:
        assert notify("pagerduty", file, receiver).returncode == 0
    for event in bodies(receiver):
        assert event["dedup_key"].isprintable()
        assert event.get("payload", {"source": ""})["source"].isprintable()
