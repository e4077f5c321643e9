"""Acknowledgements in counts, in the report, and for programs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.delta_tables import NOW, READ_BY_COMMANDS, at, txn_audit, write, write_plan, write_run
from txnlib.ask.acknowledgements import acknowledged, read_acknowledgements
from txnlib.ask.delta_rows import open_run, open_tables
from txnlib.ask.queries import StoredRun
from txnlib.ask.report_rows import report_of
from txnlib.ask.run_result import Outcome, render_metrics, results_of
from txnlib.errors import ConfigError
from txnlib.jobs.fail_on import matches, parse_fail_on

SAID = 'by = "ada"\nwhy = "its owner looks"\n'
LATER, EARLIER = at(NOW + 1).isoformat(), at(NOW).isoformat()


def entry(text: str, until: str = LATER, said: str = SAID) -> str:
    return f"[[acknowledged]]\n{text}\nuntil = {until}\n{said}"


def opened(partition: int, verdict: str = "HANGING", **fields: object) -> dict[str, object]:
    place = {"topic": "t", "partition": partition, "producer_id": partition, "start_offset": 9}
    judged = {"transactional_id": f"id{partition}", "verdict": verdict, "reason": "R1", "explanation": "so"}
    return place | judged | {"runs_seen": 1, "blocked_offsets": 10 - partition} | fields


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    for name in READ_BY_COMMANDS:
        write(folder, name)
    write_run(folder)
    rows = [opened(0), opened(1), opened(2, runs_seen=2), opened(3, "LATE")]
    write(folder, "open_transactions", *rows)
    write_plan(folder, *rows)
    odd = {"name": "MARKER_MISSING", "severity": "CRITICAL", "topic": "t"}
    write(folder, "findings", {**odd, "partition": 0}, {**odd, "partition": 0}, {**odd, "partition": 1})
    return folder


@pytest.fixture(scope="module")
def run(root: Path) -> StoredRun:
    return open_run(open_tables(str(root)))


@pytest.fixture(scope="module")
def counts(run: StoredRun) -> Mapping[str, int]:
    return report_of(run).counts


@pytest.fixture
def known(run, tmp_path):
    def read(text: str):
        (tmp_path / "known.toml").write_text(text)
        return acknowledged(run, read_acknowledgements(str(tmp_path / "known.toml")))

    return read


ALL = entry('topic = "t"')


@pytest.mark.parametrize(
    ("text", "conditions", "fails"),
    [
        ("", "hanging", True),
        (ALL, "hanging,late,new,new-hanging", False),
        (entry('topic = "t"', EARLIER), "hanging", True),
        (entry('topic = "t"\npartition = 0'), "hanging", True),
        (entry('topic = "t"\npartition = 0') + entry("producer_id = 1"), "new-hanging", False),
        (entry('topic = "t"\npartition = 0') + entry("producer_id = 1"), "hanging", True),
        (entry('transactional_id = "id3"'), "late", False),
        (entry('topic = "other"'), "late", True),
        (ALL, "critical", True),
        (entry('finding = "MARKER_MISSING"'), "critical", False),
        (entry('finding = "MARKER_MISSING"\ntopic = "t"\npartition = 0'), "critical", True),
        # Two entries that match the same two findings hide no third one.
        (entry('finding = "MARKER_MISSING"\ntopic = "t"\npartition = 0') * 2, "critical", True),
        (entry('finding = "MARKER_MISSING"') * 2, "critical", False),
        (entry('finding = "MARKER_MISSING"'), "hanging", True),
    ],
)
def test_only_what_is_not_acknowledged_makes_an_audit_fail(counts, known, text, conditions, fails):
    assert bool(matches(parse_fail_on(conditions), known(text).remaining(counts))) is fails


def test_what_is_acknowledged_moves_down_and_never_out(root, run, known, tmp_path):
    text = known(entry('topic = "t"\npartition = 0') + entry('topic = "gone"') + entry("producer_id = 1", EARLIER))
    summary = report_of(run, text)
    assert [row["partition"] for row in summary.transactions["HANGING"]] == [1, 2]
    code, out, _ = txn_audit(root, "report", "--acknowledged", tmp_path / "known.toml")
    assert code == 0
    assert "3 HANGING   nobody will ever end them: all wait behind others (1 acknowledged)" in out
    section = out[out.index("\nACKNOWLEDGED\n") :]
    until = "until 2024-03-11 01:20:00Z by ada: its owner looks"
    assert f"  HANGING t-0 offset 9: {until}\n" in section
    assert f"  ended on 2024-03-11 01:20:00Z, so this counts again: producer_id 1 ({until})" in section
    assert f"  matches nothing, and can be removed: topic gone ({until})" in section
    assert "t-0 offset 9" not in out[: out.index("\nACKNOWLEDGED\n")]
    assert "ACKNOWLEDGED" not in txn_audit(root, "report")[1]


def test_the_page_lists_what_is_acknowledged_apart_from_what_is_not(root, known, tmp_path):
    both = entry('topic = "t"\npartition = 0') + entry("producer_id = 3")
    known(both + entry('topic = "gone"') + entry("producer_id = 1", EARLIER))
    page = tmp_path / "page.html"
    code, out, _ = txn_audit(root, "report", "--acknowledged", tmp_path / "known.toml", "--html", page)
    assert (code, "\nACKNOWLEDGED\n" in out) == (0, True)
    html = page.read_text("utf-8")
    section = html[html.index('<section id="acknowledged"') :]
    section = section[: section.index("</section>")]
    assert re.findall(r'<a href="#t-(\d)-9">', section) == ["0", "3"]
    hanging = html[html.index('<section id="hanging"') :]
    hanging = hanging[: hanging.index("</section>")]
    assert re.findall(r'<article class="card hanging" id="t-(\d)-9"', hanging) == ["1", "2"]
    assert '<section id="late"' not in html, "all of them are acknowledged"
    opened = html[html.index('<section id="transactions"') : html.index('<section id="acknowledged"')]
    assert len(re.findall(r'<th scope="row"><a href="#t-\d-9">', opened)) == 4, "no row is left out"


def test_programs_are_told_who_acknowledged_what(root, known, tmp_path):
    known(entry('topic = "t"\npartition = 0') + entry('finding = "MARKER_MISSING"'))
    code, out, _ = txn_audit(root, "report", "--acknowledged", tmp_path / "known.toml", "--format", "json")
    assert code == 0
    found = json.loads(out)
    by = {row["partition"]: row["acknowledged_by"] for row in found["transactions"]}
    assert by == {0: "ada", 1: None, 2: None, 3: None}
    assert [(each["finding"], each["matches"], each["is_over"]) for each in found["acknowledged"]] == [
        (None, 1, False),
        ("MARKER_MISSING", 3, False),
    ]
    assert {each["until"] for each in found["acknowledged"]} == {"2024-03-11T01:20:00.001Z"}


def test_gauges_are_silent_on_what_is_acknowledged_and_tell_until_when(root, run, known, tmp_path):
    text = known(entry('topic = "t"\npartition = 0') + entry('finding = "MARKER_MISSING"'))
    found = results_of(run, report_of(run, text))
    outcome = Outcome("c", "1", 0, NOW, NOW, found=found)
    told = {line.split(" ")[0]: float(line.split(" ")[1]) for line in _samples(render_metrics(outcome))}
    of = 'cluster="c",verdict="HANGING"'
    rows, every = report_of(run).counts["verdicts"]["HANGING"], report_of(run).counts["transactions"]["HANGING"]
    assert told[f"txnlib_open_transactions{{{of}}}"] == rows - 1
    assert told[f"txnlib_acknowledged_transactions{{{of}}}"] == 1
    assert told[f"txnlib_transactions{{{of}}}"] == every - 1
    assert told['txnlib_findings{cluster="c",severity="CRITICAL"}'] == 0
    assert told['txnlib_acknowledged_until_timestamp_seconds{cluster="c"}'] == (NOW + 1) / 1000
    assert found["findings"]["CRITICAL"] == 3, "programs that read the JSON have all"


def test_a_transaction_is_acknowledged_when_all_its_rows_are(root, run, known, tmp_path):
    assert known(ALL).whole == {"HANGING": 3, "LATE": 1}
    assert known(entry('topic = "t"\npartition = 0')).whole["HANGING"] == 1
    for name in READ_BY_COMMANDS:
        write(tmp_path / "two", name)
    write_run(tmp_path / "two")
    write(tmp_path / "two", "open_transactions", opened(0), opened(0) | {"partition": 1})
    of_two = open_run(open_tables(str(tmp_path / "two")))
    entries = read_acknowledgements(str(tmp_path / "known.toml"))
    partly = acknowledged(of_two, entries)
    assert partly.whole["HANGING"] == 0, "one of its partitions is not"
    assert "acknowledged" not in report_of(of_two, partly).answer[0]


def _samples(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_a_date_is_its_first_instant_in_utc(known):
    day = at(NOW).date()
    assert known(entry('topic = "t"', day.isoformat())).ended
    assert known(entry('topic = "t"', at(NOW + 86_400_000).date().isoformat())).transactions


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[", "is not TOML"),
        ("known = 1", "known"),
        (entry(""), "acknowledged.1: name what is acknowledged"),
        (entry("partition = 1"), "acknowledged.1: name what is acknowledged"),
        (ALL + entry("producer_id = 1\npartition = 1"), "acknowledged.2: partition needs its topic"),
        (entry('finding = "NO_SUCH"'), "acknowledged.1.finding: no finding has this name"),
        (entry('finding = "MARKER_MISSING"\nstart_offset = 1'), "findings have no start_offset"),
        (entry('topic = "t"', said='by = "ada"'), "acknowledged.1.why: Field required"),
        (entry('topic = "t"', said='by = ""\nwhy = "x"'), "acknowledged.1.by"),
        (entry('topic = "t"', '"soon"'), "acknowledged.1.until"),
        (entry('topic = "t"', "2024-03-11T01:20:00"), "acknowledged.1.until"),
        (
            entry('topic = "t"\nparttion = 1'),
            "acknowledged.1.parttion: there is no such key; did you mean partition?",
        ),
        ("[[acknowledge]]", "acknowledge: there is no such key; did you mean acknowledged?"),
        (entry('topic = "t"\npartition = "1"'), "acknowledged.1.partition"),
    ],
)
def test_an_unusable_file_is_named_with_the_entry_and_the_key(tmp_path, text, says):
    path = tmp_path / "known.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as raised:
        read_acknowledgements(str(path))
    assert says in str(raised.value)
    assert str(path) in str(raised.value)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ConfigError, match="is no file; check acknowledged="):
        read_acknowledgements(str(tmp_path / "fifo"))
    with pytest.raises(ConfigError, match="cannot be read"):
        read_acknowledgements(str(tmp_path / "none.toml"))


def test_the_documented_example_can_be_read(repository, tmp_path):
    page = (repository / "docs" / "configuration.md").read_text()
    (tmp_path / "known.toml").write_text(
        page.split("## Acknowledgements", 1)[1].split("```toml\n", 1)[1].split("```", 1)[0]
    )
    assert [entry.finding is None for entry in read_acknowledgements(str(tmp_path / "known.toml"))] == [True, False]
