"""Each pattern against a line as Kafka's source formats it.

What a leader refuses is two lines: the exception of the second one is what a pattern finds.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from txnlib.core.broker_logs.kafka_lines import LOGS_OF_CAUSES, LOGS_OF_FINDINGS
from txnlib.core.broker_logs.log_line import READ, BrokerLogs, forms_of, grep_commands, pattern

LINES = list(
    dict.fromkeys(line for logs in (*LOGS_OF_CAUSES.values(), *LOGS_OF_FINDINGS.values()) for line in logs.lines)
)
NAMES = {"topic": "payments", "partition": 0, "producer_id": 7, "transactional_id": "pay-1", "coordinator_partition": 3}
#: Names of another partition, producer and id: no pattern with a name finds the lines of NAMES with these.
OTHERS = {"topic": "orders", "partition": 9, "producer_id": 8, "transactional_id": "ord-1", "coordinator_partition": 5}

#: First and last version, and a line.
SAMPLES = [
    tuple(sample.split(" ", 2))
    for sample in (Path(__file__).parent / "broker_log_samples.txt").read_text().splitlines()
    if not sample.startswith("#")
]


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


def about_the_coordinator(line: str) -> str:
    """A line about a partition, as it is about the coordinator's partition."""
    return (
        line.replace("payments", "__transaction_state")
        .replace("_state-0", "_state-3")
        .replace("partition 0 to", "partition 3 to")
    )


def log_of(version: str) -> list[str]:
    """Every line that brokers of a version may log."""
    logged = [
        f"[2024-03-11 01:20:00,000] {line}"
        for first, last, line in SAMPLES
        if numbers(first) <= numbers(version) <= numbers(last)
    ]
    return [each for line in logged for each in dict.fromkeys((line, about_the_coordinator(line)))]


def found(text: str, names: dict[str, str | int], log: list[str]) -> list[str]:
    compiled = re.compile(pattern(text, names))
    return [line for line in log if compiled.search(line)]


@pytest.mark.parametrize("version", READ)
def test_each_form_of_a_version_finds_a_line_of_that_version(version):
    log = log_of(version)
    assert [form.text for line in LINES for form in forms_of(line, version) if not found(form.text, NAMES, log)] == []


@pytest.mark.parametrize("version", READ)
def test_each_line_of_a_version_is_found(version):
    texts = {form.text for line in LINES for form in forms_of(line, version)}
    logged = [line for first, last, line in SAMPLES if numbers(first) <= numbers(version) <= numbers(last)]
    assert [line for line in logged if not any(found(text, NAMES, [line]) for text in texts)] == []


@pytest.mark.parametrize("version", READ)
def test_a_form_with_a_name_finds_no_line_of_another(version):
    log = log_of(version)
    named = [form.text for line in LINES for form in forms_of(line, version) if "{" in form.text]
    assert [text for text in named if found(text, OTHERS, log)] == []


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.shows)
def test_grep_finds_what_the_pattern_does(line, tmp_path):
    log = log_of("4.3.0") + log_of("2.8.2") + log_of("3.9.1") + log_of("4.0.1") + log_of("3.4.1") + log_of("4.2.0")
    (each,) = grep_commands(BrokerLogs((line,)), NAMES)
    for name in ("server.log", "controller.log", "state-change.log"):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in log))
    done = subprocess.run(
        ["bash", "-c", each.command],
        env={"LOGS": ".", "APPLICATION_LOG": "server.log", "PATH": "/usr/bin:/bin", "LC_ALL": "C"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    wanted = [text for text in log if any(found(form.text, NAMES, [text]) for form in line.forms)]
    assert (done.stdout.splitlines(), done.stderr) == (wanted, "")
    assert wanted
