#!/usr/bin/env python3
"""A message to Slack or PagerDuty about the last audit.

    SLACK_WEBHOOK_URL=…     deploy/notify.py slack FILE.json
    PAGERDUTY_ROUTING_KEY=… deploy/notify.py pagerduty FILE.json
    deploy/notify.py fail FILE.json

FILE.json is what `audit --summary FILE.json` wrote. Slack gets a message if the audit failed, or if it found what
`--fail-on` names. PagerDuty gets one incident for each of these, which the next audit without it resolves. `fail` ends
with the message and exit code 1, for schedulers that send mails. A summary that is too old counts as a failure: the
audit was killed, or did not start. The exit code is 0, 1 if the message was not accepted, or 2 for bad usage.

Needs Python 3.11 and nothing else. PAGERDUTY_EVENTS_URL replaces the address of PagerDuty's events, for the EU region.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

PAGERDUTY_EVENTS_URL = "https://events.pagerduty.com/v2/enqueue"
#: Exit code of an audit that found what --fail-on names.
FOUND = 3
SHOWN_TRANSACTIONS = 10
#: Verdicts on which nobody has to act: in time, or late only by old timestamps of clients.
IN_TIME = ("OPEN", "LOOKS_LATE")
MAX_SUMMARY = 1024  # characters of a summary in PagerDuty
TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class News:
    """What a summary says: `failed`, `found` or neither, a headline, and lines: the first of the report, and one per
    transaction.

    All are printable.
    """

    cluster: str
    kind: str | None
    headline: str
    lines: list[str]


def news_of(summary: dict[str, Any], now: datetime, max_age_hours: float) -> News:
    """The news in a summary."""
    news = _news_of(summary, now, max_age_hours)
    return replace(
        news,
        cluster=printable(news.cluster),
        headline=printable(news.headline),
        lines=[printable(line) for line in news.lines],
    )


def printable(line: str) -> str:
    """One line: a name from a log must not forge another, turn the text around, or steer a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def _news_of(summary: dict[str, Any], now: datetime, max_age_hours: float) -> News:
    cluster, found = summary["cluster"], summary["found"] or {}
    hours = (now - datetime.fromisoformat(summary["finished"])).total_seconds() / 3600
    if hours > max_age_hours:
        return News(cluster, "failed", f"{cluster}: no audit has ended for {hours:.0f} hours", [])
    if not summary["success"]:
        return News(
            cluster,
            "failed",
            f"{cluster}: the audit failed (exit code {summary['exit_code']})",
            [summary["error"] or ""],
        )
    # What is acknowledged is silent here, too. Summaries of earlier versions have no such field.
    left = found.get("unacknowledged", {})
    counted = left.get("transactions", found["transactions_by_verdict"]).items()
    verdicts = ", ".join(f"{count} {name}" for name, count in counted if count and name != "OPEN")
    critical = left.get("findings", found["findings"]).get("CRITICAL", 0)
    coverage = found["coverage"]
    unread = coverage.get("unreadable_files", 0)  # summaries of earlier versions have no such field
    said = "; ".join(
        [
            verdicts or f"no transaction needs attention{' in what was read' if unread else ''}",
            *([f"{critical} CRITICAL finding{'' if critical == 1 else 's'}"] if critical else []),
            f"read {coverage['partitions_read']} of {coverage['partitions_known']} partitions",
            *([f"{unread} file{'' if unread == 1 else 's'} not read"] if unread else []),
            *_known(found),
        ]
    )
    urgent = [
        each for each in found["transactions"] if each["verdict"] not in IN_TIME and each.get("acknowledged_by") is None
    ]
    lines = found["answer"] + [_line(each) for each in urgent[:SHOWN_TRANSACTIONS]]
    return News(cluster, "found" if summary["exit_code"] == FOUND else None, f"{cluster}: {said}", lines)


def _known(found: dict[str, Any]) -> list[str]:
    """How many rows are acknowledged, and until when the first of them are."""
    known = sum(each.get("acknowledged_by") is not None for each in found["transactions"])
    until = found.get("acknowledged_until")
    return [f"{known} acknowledged{f', the first until {_time(until)}' if until else ''}"] if known else []


def _line(each: dict[str, Any]) -> str:
    """What a transaction holds, what waits there, and whether, or from when on, it is safe to abort."""
    who = f"producer {each['producer_id']} {each['transactional_id'] or 'no transactional id'}"
    offsets = each["blocked_offsets"] or 0
    waits = "1 offset waits" if offsets == 1 else f"{offsets} offsets wait"
    holds = f"holds the partition, {waits}" if each.get("holds") else f"waits behind another, {waits} behind its start"
    safe = "yes" if each["safe_to_abort"] else f"from {_time(each['safe_from'])} on" if each.get("safe_from") else "no"
    place = f"{each['topic']}-{each['partition']} offset {each['start_offset']}"
    return f"{each['verdict']} {place} {who}: {holds}; safe to abort: {safe}"


def _time(instant: str) -> str:
    """An instant of the JSON as on all screens, rounded up to a second."""
    at = datetime.fromisoformat(instant)
    return f"{at + timedelta(microseconds=-at.microsecond % 1_000_000):%Y-%m-%d %H:%M:%SZ}"


def slack_messages(news: News) -> list[dict[str, Any]]:
    """The message to Slack, if there is news. A name from a log must not become a mention or a link."""
    text = "\n".join(["txnlib: " + news.headline, *news.lines])
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return [{"text": escaped}] if news.kind else []


def pagerduty_events(news: News, routing_key: str) -> list[dict[str, Any]]:
    """An event for each kind of incident: it triggers or resolves it. A failed audit does not say what it would have
    found."""
    events = []
    for kind, severity in (("failed", "error"), ("found", "critical")):
        event: dict[str, Any] = {"routing_key": routing_key, "dedup_key": f"txnlib/{kind}/{news.cluster}"[:255]}
        if kind == news.kind:
            payload = {
                "summary": f"txnlib: {news.headline}"[:MAX_SUMMARY],
                "source": news.cluster,
                "severity": severity,
            }
            events.append(
                event | {"event_action": "trigger", "payload": payload | {"custom_details": {"lines": news.lines}}}
            )
        elif news.kind != "failed":
            events.append(event | {"event_action": "resolve"})
    return events


def send(url: str, message: dict[str, Any]) -> bool:
    """Posts a message as JSON. Returns whether it was accepted. Never prints the URL, because that of Slack is a
    secret."""
    if not url.startswith(("https://", "http://")):
        say("the message was not sent: the address is no URL")
        return False
    try:
        request = Request(url, json.dumps(message).encode(), {"Content-Type": "application/json"})
        with urlopen(request, timeout=TIMEOUT_SECONDS):
            return True
    except OSError as error:
        say(f"the message was not accepted: {error}")
    except (ValueError, HTTPException):
        say("the message was not sent: the address is no URL, or something else than HTTP answers there")
    return False


def say(text: str) -> None:
    print(f"txnlib: {text}", file=sys.stderr)


def main(argv: Sequence[str]) -> int | str:
    """Sends the news of a summary. Returns the exit code, or the message to fail with."""
    parser = argparse.ArgumentParser(description="Send a message to Slack or PagerDuty about the last audit.")
    parser.add_argument("service", choices=["slack", "pagerduty", "fail"])
    parser.add_argument("file", metavar="FILE.json", type=Path, help="written by audit --summary")
    parser.add_argument(
        "--max-age", type=float, default=20, metavar="HOURS", help="an older summary is a failure (default: 20)"
    )
    given = parser.parse_args(argv)
    name = {"slack": "SLACK_WEBHOOK_URL", "pagerduty": "PAGERDUTY_ROUTING_KEY"}.get(given.service, "")
    secret = os.environ.get(name, "").strip()
    if name and not secret:
        parser.error(f"the environment variable {name} is not set")
    try:
        news = news_of(json.loads(given.file.read_text("utf-8")), datetime.now(UTC), given.max_age)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        parser.error(f"{given.file} is not a summary of an audit ({type(error).__name__}: {error})")
    if given.service == "fail":
        return "\n".join(["txnlib: " + news.headline, *news.lines]) if news.kind else 0
    if given.service == "slack":
        url, messages = secret, slack_messages(news)
    else:
        url, messages = os.environ.get("PAGERDUTY_EVENTS_URL", PAGERDUTY_EVENTS_URL), pagerduty_events(news, secret)
    sent = [send(url, message) for message in messages]
    return 0 if all(sent) else 1


if __name__ == "__main__" and (code := main(sys.argv[1:])):
    sys.exit(code)  # only if it is not 0, as Databricks requires
