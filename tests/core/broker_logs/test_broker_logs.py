"""Log lines of causes and findings: complete, in plain words, and found by their commands."""

from __future__ import annotations

import re
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.house.test_language import BANNED
from txnlib.core.broker_logs.kafka_lines import KAFKA_LINES, LOGS_OF_CAUSES, LOGS_OF_FINDINGS, logs_of_cause
from txnlib.core.broker_logs.log_line import (
    NEWEST,
    OLDEST,
    READ,
    BrokerLogs,
    LogFile,
    Writer,
    forms_of,
    grep_commands,
    pattern,
)
from txnlib.core.finding_catalogue import Finding
from txnlib.core.verdicts.cause import CAUSES

TABLE = {**LOGS_OF_CAUSES, **{finding.name: logs for finding, logs in LOGS_OF_FINDINGS.items()}}
LINES = list(dict.fromkeys(line for logs in TABLE.values() for line in logs.lines))
FORMS = [(line, form) for line in LINES for form in line.forms]
NAMES = {"topic": "payments", "partition": 0, "producer_id": 7, "transactional_id": "pay-1", "coordinator_partition": 3}


def test_every_cause_has_an_entry_and_nothing_else_has():
    assert sorted(LOGS_OF_CAUSES) == sorted({rule.cause for rules in CAUSES.values() for rule in rules})


def test_every_finding_has_an_entry():
    assert [finding for finding in Finding if finding not in LOGS_OF_FINDINGS] == []


def test_every_line_is_of_a_cause_or_a_finding():
    assert [name for name, line in KAFKA_LINES.items() if line.shows not in {each.shows for each in LINES}] == []


def test_an_entry_has_lines_or_says_why_nothing_is_logged():
    assert [name for name, logs in TABLE.items() if not logs.lines and not logs.silent_because] == []


@pytest.mark.parametrize("said", sorted({each for logs in TABLE.values() for each in (logs.silent_because,) if each}))
def test_a_reason_for_silence_is_plain_english(said):
    assert not BANNED.search(said)
    assert "?" not in said
    assert not said.endswith("."), "it goes on in the runbook"


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.shows)
def test_a_line_says_in_plain_english_what_it_shows(line):
    assert not BANNED.search(line.shows)
    assert "?" not in line.shows
    assert not line.shows.endswith(".")
    assert line.shows[0].islower()
    assert (line.writer is Writer.PRODUCER) == (line.file is LogFile.APPLICATION)


@pytest.mark.parametrize(("line", "form"), FORMS, ids=[form.text[:60] for _, form in FORMS])
def test_a_form_names_its_source_its_versions_and_known_placeholders(line, form):
    known = {
        "topic",
        "partition",
        "producer_id",
        "transactional_id",
        "coordinator_partition",
    }  # what a command fills in
    assert set(re.findall(r"\{(\w+)\}", form.text)) <= known
    assert re.fullmatch(r"(org\.apache\.)?kafka(\.[a-z]+)*(\.[A-Z]\w+)\.[a-z]\w+", form.source)
    assert OLDEST <= form.first <= form.last <= NEWEST
    read = {tuple(map(int, version.split(".")[:2])) for version in READ}
    assert {form.first, form.last} <= read
    assert ("Exception: " in form.text) == (form.logged_by is not None), "what is thrown is logged by something else"
    assert "''" not in pattern(form.text, NAMES)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.shows)
def test_a_text_has_one_source_in_each_version(line):
    for version in READ:
        texts = [form.text for form in forms_of(line, version)]
        assert len(texts) == len(set(texts))


@pytest.mark.parametrize(
    ("version", "ends"),
    [
        ("3.4.1", ["is smaller than the last seen epoch"]),
        ("4.1.1", ["is smaller than the last seen epoch"]),
        ("4.2", ["is … the last seen epoch"]),
        (None, ["is smaller than the last seen epoch", "is … the last seen epoch"]),
        ("2.7.1", ["is smaller than the last seen epoch", "is … the last seen epoch"]),
        ("4.4.0", ["is smaller than the last seen epoch", "is … the last seen epoch"]),
        ("trunk", ["is smaller than the last seen epoch", "is … the last seen epoch"]),
    ],
)
def test_a_version_that_was_not_read_is_searched_for_every_form(version, ends):
    texts = dict.fromkeys(form.text for form in forms_of(KAFKA_LINES["COPIED_EPOCH"], version))
    assert [text.rpartition("which ")[2] for text in texts] == ends


def test_a_line_that_a_version_does_not_log_has_no_command():
    logs = BrokerLogs((KAFKA_LINES["REPEATED_MARKER"], KAFKA_LINES["ROLLED_BACK"]))
    assert [each.line for each in grep_commands(logs, NAMES, "4.1.1")] == [KAFKA_LINES["ROLLED_BACK"]]
    assert [each.line for each in grep_commands(logs, NAMES, "4.2.0")] == [*logs.lines]


def test_a_cause_is_found_by_its_text_with_names():
    text = "the coordinator's partition has no leader, so nobody acts for {transactional_id}"
    assert logs_of_cause(text.format(transactional_id="pay-1"), NAMES) is LOGS_OF_CAUSES[text]
    assert (
        logs_of_cause(text.format(transactional_id=None), {**NAMES, "transactional_id": None}) is LOGS_OF_CAUSES[text]
    )
    assert logs_of_cause(text.format(transactional_id="pay-2"), NAMES) is None
    assert logs_of_cause("a cause of another release", NAMES) is None


def test_unknown_names_match_any_text():
    text = "Fencing producer {transactional_id} {producer_id} with epoch equal to Short.MaxValue"
    assert pattern(text, {}) == r"Fencing producer .* .* with epoch equal to Short\.MaxValue"
    assert (
        pattern(text, {"transactional_id": None, "producer_id": 7})
        == r"Fencing producer .* 7 with epoch equal to Short\.MaxValue"
    )
    assert pattern("a …{topic}… b", {}) == "a .* b", "one of them is enough"


def searched(command: str, log: bytes, folder) -> list[bytes]:
    """The lines that a command prints, run by bash in a folder of its own."""
    (folder / "server.log").write_bytes(log)
    done = subprocess.run(
        ["bash", "-c", command],
        env={"LOGS": ".", "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        cwd=folder,
        capture_output=True,
        check=False,
    )
    assert done.stderr == b""
    return done.stdout.splitlines()


HOSTILE = (
    *("it's", 'say "x"', "$HOME", "$(touch pwned)", "`touch pwned`", "a;touch pwned", "'; touch pwned; '"),
    *("a\\b", "\\n", "!!", "*"),
    *(
        "a.b",
        "[a",
        "a{2}",
        "a|b",
        "^a$",
        "(a",
        "a+b?",
        "-e",
        "--help",
        "#x",
        "\ttab",
        "\x1b[2J",
        "\x07",
        "ключ",
        "🙂",
        "a\u2028b",
    ),
)


@pytest.mark.parametrize("name", HOSTILE)
def test_an_id_reaches_grep_as_it_is(name, tmp_path):
    (each,) = grep_commands(BrokerLogs((KAFKA_LINES["ROLLED_BACK"],)), {**NAMES, "transactional_id": name})
    own = f"Completed rollback of ongoing transaction for transactionalId {name} due to timeout"
    others = "Completed rollback of ongoing transaction for transactionalId other due to timeout\nb|a b due to timeout"
    assert searched(each.command, f"{others}\n{own}\n".encode(), tmp_path) == [own.encode()]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["server.log"]
    assert each.command.isprintable(), "no terminal acts on what a log contains"


def test_an_id_with_a_line_feed_is_found_by_its_first_line_and_adds_no_pattern(tmp_path):
    (each,) = grep_commands(BrokerLogs((KAFKA_LINES["ROLLED_BACK"],)), {**NAMES, "transactional_id": "a\nb"})
    log = (
        b"transaction for transactionalId a\nCompleted rollback of ongoing transaction for transactionalId a\nb due to"
        b" timeout\nb\n"
    )
    assert searched(each.command, log, tmp_path) == [b"Completed rollback of ongoing transaction for transactionalId a"]


def test_an_id_that_no_command_line_can_carry_matches_any_text(tmp_path):
    for name in ("a\0b", "\ud800"):
        (each,) = grep_commands(BrokerLogs((KAFKA_LINES["ROLLED_BACK"],)), {**NAMES, "transactional_id": name})
        assert "transactionalId .* due to timeout" in each.command


@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0\n"), max_size=12))
def test_a_pattern_matches_its_name_and_never_fails_to_compile(name):
    compiled = re.compile(pattern("id {transactional_id} ends", {"transactional_id": name}), re.DOTALL)
    assert compiled.fullmatch(f"id {name} ends")
    assert not compiled.fullmatch(f"id {name}x ends")
