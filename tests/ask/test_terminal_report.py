"""The report as text: what an on-call engineer needs, in order. What it says is in golden files (`screens`)."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import Any

import pytest

from tests.support.golden import differences
from tests.support.pages import broken
from txnlib.ask.extents import Reach
from txnlib.ask.grid import WIDTH
from txnlib.ask.own_command import program
from txnlib.ask.report import MEANINGS, UNPROVEN, FindingPlaces, Report
from txnlib.ask.stuck_ids import StuckId
from txnlib.ask.terminal_report import render, terminal_report
from txnlib.ask.words import PREPARED
from txnlib.core.coverage.unread import UnreadFiles
from txnlib.core.kafka_commands import abort, describe_producers, force_terminate

AS_OF = 1_795_243_361_000
#: No line of a golden file is folded: tests below are about that.
WHOLE = 400
ROW = {
    "topic": "orders", "partition": 3, "start_offset": 41, "producer_id": 7, "producer_epoch": 0, "number": 1,
    "action": "ABORT", "transactional_id": "shop-eu-4", "application": "shop-eu", "coordinator_state": "Ongoing",
    "coordinator_partition": 1,
    "transaction_timeout_ms": 60_000, "transaction_start": AS_OF - 3_600_000, "reason": "SO", "explanation": "it is so",
    "blocks_since": AS_OF - 3_600_000, "blocked_offsets": 12, "blocked_bytes": 2048, "lag_offsets": 12,
    "lag_bytes": 2048,
    "causes": [{"likelihood": "LIKELY", "cause": "a cause", "evidence": "x"}], "runs_seen": 1, "first_seen": AS_OF,
    "duration_minutes": 60, "age_basis": "CLIENT_CLOCK", "broker_clock_age_ms": 3_600_000, "last_stable_offset": 41,
    "abort_command": None, "safe_to_abort": False, "do_not_abort_because": "of this", "is_two_phase_commit": False,
    "before": [{"command": "describe", "must_print": "this"}], "after": [{"command": "describe", "must_print": "that"}],
    "holds": True, "ends_by": None, "safe_from": None, "high_watermark": 53, "end_offset": 53,
    "last_timestamp": AS_OF - 3_600_000, "last_timestamp_ms": AS_OF - 3_600_000, "verdict": "HANGING",
    "blocking_producer_id": 7,
    **dict.fromkeys(("places", "command", "next_blocking_offset", "next_blocking_producer_id")),
    "next_blocking_transactional_id": None,
    **dict.fromkeys(("blocking_transactional_id", "effect", "notes", "command_for_old_brokers", "groups")),
}  # fmt: skip


HANGING = Report(
    "c",
    AS_OF,
    "given",
    "/out",
    counts={"verdicts": {"HANGING": 1}, "transactions": {"HANGING": 1}},
    transactions={"HANGING": [ROW]},
)
BEHIND = {"holds": False, "blocking_producer_id": 9, "blocking_transactional_id": "a", "last_stable_offset": 30}
NEXT = {"next_blocking_offset": 50, "next_blocking_producer_id": 8, "next_blocking_transactional_id": "b"}
LAG = {"lag_offsets": 10, "lag_bytes": 1024, "blocked_offsets": 12, "blocked_bytes": 4096}
SAFE = {"abort_command": abort("orders", 3, 41), "safe_to_abort": True, "do_not_abort_because": None}
LATER = {"abort_command": abort("orders", 3, 41), "safe_from": AS_OF + 1, "action": "ABORT_LATER"}
NO_CLOCK = {"last_timestamp": None, "last_timestamp_ms": 1_763_711_999_000_000, "duration_minutes": None}
#: What is changed of the row of a report of one hanging transaction.
ROWS: dict[str, dict[str, Any]] = {
    "an application with the name of its id is named once": {"transactional_id": "shop-eu"},
    "checks stand around the command, and can be pasted": SAFE
    | {"before": [{"command": describe_producers("orders", 3), "must_print": "this"}]},
    "a command that must wait stands behind its instant": LATER,
    "what holds the partition next": NEXT,
    "what waits says behind what, and not what comes next": NEXT | BEHIND,
    "nobody knows what it waits behind": BEHIND | {"blocking_producer_id": None, "blocking_transactional_id": None},
    "a holder keeps back the lag of its partition, not what is beyond the high watermark": LAG,
    "what waits counts from its own start": LAG | BEHIND,
    "two groups wait": {"groups": ["a", "b"]},
    "five groups wait": {"groups": ["a", "b", "c", "d", "e"]},
    "its last write has a time that no clock shows": NO_CLOCK | {"runs_seen": 2},
    **{
        f"its last write was {minutes} minutes ago": {"duration_minutes": minutes, "runs_seen": 2}
        for minutes in (0, -5, 59, 120)
    },
    "its coordinator should have ended it": {"ends_by": AS_OF - 60_001},
    "its coordinator ends it": {"ends_by": AS_OF + 60_001},
}


def hanging(number: int, *more: dict[str, Any], **fields: Any) -> Report:
    """As many hang, and more rows."""
    rows = [ROW | {"partition": n, "producer_id": n, "transactional_id": f"shop-eu-{n}"} for n in range(number)]
    counts = {"verdicts": {"HANGING": number}, "transactions": {"HANGING": number}}
    return replace(HANGING, **{"counts": counts, "transactions": {"HANGING": [*rows, *more]}} | fields)


CUT = Reach(900, 700, 12, safe=2, safe_rows=3, safe_later=5, safe_from_ms=AS_OF, reasons=(("R1", 800), ("R2", 100)))
APPLICATIONS = tuple((f"app{n}", 9 - n) for n in range(7))
OF_900 = {"counts": {"verdicts": {"HANGING": 900}, "transactions": {"HANGING": 900}}}
LATE = {"verdicts": {"LATE": 2, "LOOKS_LATE": 3}, "transactions": {"LATE": 2, "LOOKS_LATE": 3}}
A_DAY_AGO = AS_OF - 86_400_000
#: Three transactions on nine rows, and how far they reach.
THREE = replace(HANGING, counts={"verdicts": {"HANGING": 9}, "transactions": {"HANGING": 3}}, transactions={})
TWO_HOLD = {"held": 2, "holding": 2, "held_offsets": 9}
REACHES: dict[str, dict[str, Any]] = {
    "two hold partitions, by brokers' clocks": TWO_HOLD | {"since_ms": AS_OF - 3_600_000, "is_since_proven": True},
    "one holds a partition, by its client's clock": {"held": 1, "holding": 1, "since_ms": AS_OF - 3_600_000},
    "all hold partitions, and no clock says since when": {"held": 3, "holding": 3},
    "a clock that is ahead makes no age negative": {"held": 1, "holding": 1, "since_ms": AS_OF + 5_000},
    "one offset waits until a coordinator ends it": {"held": 1, "holding": 1, "held_offsets": 1, "ends_ms": AS_OF + 1},
    "offsets wait until the last is ended": TWO_HOLD | {"ends_ms": AS_OF + 1},
    "coordinators should have ended them": TWO_HOLD | {"ends_ms": AS_OF - 1},
    "the owner of one decides": TWO_HOLD | {"ends_ms": AS_OF + 1, "undecided": 1},
    "the owners of all decide": {"held": 3, "holding": 3, "undecided": 3, "owners": ("a", "b", "c")},
    "nothing waits for them yet": {"idle": 3},
    "nothing waits for one of them yet": {"idle": 1},
    "two hold partitions, and nothing waits for one of them": TWO_HOLD | {"idle": 1},
}


def waiting(*groups: str, verdict: str = "HANGING") -> Report:
    """These groups committed offsets in an open transaction."""
    commits = [{"group_id": group, "topic": "t", "partition": 0} for group in groups]
    row = ROW | {"topic": "__consumer_offsets", "pending_commits": commits, "verdict": verdict}
    counts = {"verdicts": {verdict: 1}, "transactions": {verdict: 1}}
    return replace(HANGING, counts=counts, transactions={verdict: [row]})


#: Reports in which something is open.
OPENED = {
    **{name: replace(HANGING, transactions={"HANGING": [ROW | row]}) for name, row in ROWS.items()},
    "a group cannot fetch its offsets": waiting("a"),
    "five groups cannot fetch theirs": waiting("b", "a", "c", "d", "e"),
    "the commits of one in time are not in the first lines": waiting("a", verdict="OPEN"),
    "a two-phase commit left alone has a section, and no alarm": replace(
        HANGING,
        counts={"verdicts": {"OPEN": 1}, "transactions": {"OPEN": 1}},
        transactions={PREPARED: [ROW | {"command": "forceTerminateTransaction"}]},
    ),
    "two have room for both": hanging(2),
    "the hint names one that holds its partition": replace(
        HANGING, transactions={"HANGING": [ROW | BEHIND], "LATE": [ROW | {"topic": "late", "partition": 5}]}
    ),
    "the hint names one that waits if none holds": replace(HANGING, transactions={"HANGING": [ROW | BEHIND]}),
    "one abort is to be done": replace(HANGING, actions={"ABORT": 1}),
    "nine aborts are to be done": replace(HANGING, actions={"ABORT": 8, "ABORT_AS_DECIDED": 1, "WAIT": 3}),
    "aborts of a topic": replace(HANGING, actions={"ABORT": 2}, topic="orders"),
    "no abort is to be done yet": replace(HANGING, actions={"ABORT_LATER": 2}),
    "a topic leads to more of that topic": hanging(9, topic="orders"),
    "the tables of a catalog have no command": replace(HANGING, output="main.audit"),
    "a folder with a space": replace(HANGING, output="/my out"),
    "a line says whether it holds or waits": hanging(2, ROW | {"lag_offsets": 1}, ROW | BEHIND),
    "some are new": hanging(
        4, ROW | {"runs_seen": 2}, extents={"HANGING": Reach(4, 4, 4, new=2)}, earlier_ms=A_DAY_AGO
    ),
    "nothing is new": hanging(1, earlier_ms=A_DAY_AGO),
    "in the first audit all is new": hanging(1, extents={"HANGING": Reach(1, 1, 1, new=1)}),
    "a section that is cut says what it is in all": hanging(
        20, **OF_900, extents={"HANGING": replace(CUT, applications=APPLICATIONS)}
    ),
    "six applications need no others": hanging(
        20, **OF_900, extents={"HANGING": replace(CUT, applications=APPLICATIONS[:6])}
    ),
    "a section that is whole does not say it": hanging(2, extents={"HANGING": replace(CUT, rows=2, transactions=2)}),
    "what only looks late has a line of its own": replace(
        HANGING,
        counts=LATE,
        transactions={},
        extents={"LATE": Reach(2, 2, 2), "LOOKS_LATE": Reach(3, 3, 3, held=3, holding=3)},
    ),
}


def test_what_is_said_of_open_transactions_is_as_it_was_read_last(assert_as_read):
    cases = {name: render(report, WHOLE) for name, report in OPENED.items()}
    reaches = {
        name: render(replace(THREE, extents={"HANGING": Reach(9, 3, 2, **fields)}), WHOLE)
        for name, fields in REACHES.items()
    }
    told = differences(render(HANGING, WHOLE), cases) + "\n" + differences(render(THREE, WHOLE), reaches)
    assert_as_read("open", told)


NOTHING = Report("c", AS_OF, "given", "/out")
GONE = {"topic": "t", "partition": 0, "start_offset": 1, "producer_id": 2, "verdict": "HANGING"} | {"says": "by hand"}
LOST = (("a", 1), ("b\nc", 0))
PLACE = {"topic": "t", "partition": 3, "offset": 7, "transactional_id": None}
WAITING = replace(broken(), partitions=[each | {"marker": "PENDING"} for each in broken().partitions])
MINOR = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
#: Reports in which nothing is open: what is changed.
CALM: dict[str, dict[str, Any]] = {
    **{
        f"{number} in time, {age} ms old": {
            "counts": {"verdicts": {"OPEN": number}, "transactions": {"OPEN": number}},
            "oldest_open_ms": None if age is None else AS_OF - age,
        }
        for number, age in ((1, 38_000), (41, 38_000), (41, None))
    },
    "what ended": {"ended": (GONE,), "ended_known": 1},
    "what ended is many": {"ended": (GONE,) * 8, "ended_known": 8},
    "one is split": {"broken": [broken()]},
    "one only waits for its markers": {"broken": [WAITING]},
    "eight are split": {"broken": [replace(broken(), number=number) for number in range(8)]},
    "coordinators are missing": {"missing_coordinators": (7, 31)},
    "their number is assumed": {
        "missing_coordinators": tuple(range(49)),
        "coordinators_known": 50,
        "coordinators_read": 1,
        "is_count_assumed": True,
    },
    "no coordinator was captured": {"coordinators_known": 50, "missing_coordinators": tuple(range(20))},
    "one coordinator was captured": {
        "coordinators_known": 50,
        "coordinators_read": 1,
        "missing_coordinators": tuple(range(20)),
    },
    "no coordinator was read": {"coordinators_known": 5},
    "one coordinator was read": {"coordinators_known": 5, "coordinators_read": 1},
    "instants are assumed": {"is_instant_assumed": True},
    **{
        f"leaders are known by {basis}": {"metadata_ms": 0, "metadata_basis": basis}
        for basis in (None, "METADATA_LOG", *UNPROVEN)
    },
    **{
        f"assumed: {', '.join(names)}": {"assumed": names}
        for names in (
            ("transaction.max.timeout.ms", MINOR),
            ("producer.id.expiration.ms",),
            (MINOR,),
        )
    },
    "no snapshot shows what was open before": {"partitions_hidden": 2},
    "a partition was read as text": {"partitions_as_text": 1},
    "a critical finding is in the first lines": {
        "findings": (FindingPlaces("MARKER_MISSING", "CRITICAL", 5, "it is so", places=[PLACE, PLACE]),)
    },
    "a text was not read": {
        "unread_by_reason": [UnreadFiles("TOPIC_PARTITION_UNKNOWN", 1, 4096, ["/in/a.txt"])],
        "unreadable_files": 1,
    },
    "several files were not read": {
        "unread_by_reason": [
            UnreadFiles("PERMISSION_DENIED", 3, 0, ["/in/a", "/in/b", "/in/c"]),
            UnreadFiles("LINK_OUT_OF_INPUT", 2, 0, ["/in/l", "/in/m"]),
            UnreadFiles("CORRUPT_BATCH", 1, 90, ["/in/d"]),
            UnreadFiles("CUT_LINE", 1, 9, ["/in/e"]),
        ],
        "unreadable_files": 7,
    },
    "a partition was read in part": {
        "incomplete": [
            {"topic": topic, "partition": 3, "source": "raw:1", "status": "DAMAGED", "detail": "ends inside a batch"}
            for topic in ("__transaction_state", "t")
        ],
        "partitions_in_part": 1,
    },
    "ids are stuck alone": {
        "stuck_ids": [
            StuckId(f"pay-gw-{n}", 3, 7000 + n, 6, "PrepareCommit", AS_OF - 7_200_000 // n, "pay-gw") for n in (1, 2)
        ]
    },
    "the copies were taken later": {"captured_to_ms": AS_OF + 7_000},
    "two partitions were not read": {"partitions_known": 14, "partitions_read": 12, "missing_partitions": LOST},
    "eight partitions were not read": {"partitions_known": 20, "partitions_read": 12, "missing_partitions": LOST},
    "coordinators among these are named apart": {
        "partitions_known": 20,
        "partitions_read": 12,
        "missing_partitions": LOST,
        "missing_coordinators": tuple(range(6)),
    },
}


def test_what_is_said_where_nothing_is_open_is_as_it_was_read_last(assert_as_read):
    cases = {name: render(replace(NOTHING, **fields), WHOLE) for name, fields in CALM.items()}
    told = differences(render(NOTHING, WHOLE), cases)
    assert_as_read("calm", told)


def test_nothing_from_a_log_forges_a_line():
    evil = {"transactional_id": "x\nHANGING", "groups": ["g\n  do  rm"], "explanation": "a\x1b[2J"}
    evil |= {"pending_commits": [{"group_id": "g\nHANGING", "topic": "t\nHANGING", "partition": 0}]}
    text = render(replace(HANGING, transactions={"HANGING": [ROW | evil]}))
    assert [part for part in text.splitlines() if part == "HANGING"] == ["HANGING"]
    assert "\x1b" not in text
    assert not any(part.startswith("  do  rm") for part in text.splitlines())


def several(section: str, number: int, total: int | None = None, **fields):
    rows = [
        ROW | {"partition": n, "transactional_id": f"shop-eu-{n}", "producer_id": n} | fields for n in range(number)
    ]
    counts = {
        "verdicts": {"OPEN" if section == PREPARED else section: total or number},
        "transactions": {"OPEN" if section == PREPARED else section: total or number},
    }
    return render(Report("c", AS_OF, "given", "/out", counts=counts, transactions={section: rows}))


@pytest.mark.parametrize("section", ["HANGING", "STUCK", "LATE", "SUSPECT", PREPARED, "UNKNOWN"])
def test_however_many_there_are_a_section_stays_on_a_screen_and_says_what_it_leaves_out(section):
    text = several(section, 20, 900)
    assert len(text.splitlines()) <= 45
    shown = [f"shop-eu-{n}" in text for n in range(20)]
    assert shown == sorted(shown, reverse=True), "those that block most come first"
    left = (20 if section == PREPARED else 900) - sum(shown)
    assert f"and {left} more" in text


def test_where_everything_is_wrong_it_is_hardly_more_than_a_screen():
    rows = [ROW | {"partition": n, "transactional_id": f"shop-eu-{n}", "producer_id": n} for n in range(20)]
    counts = {
        "verdicts": dict.fromkeys(("HANGING", "STUCK", "LATE", "SUSPECT", "UNKNOWN"), 900),
        "transactions": dict.fromkeys(("HANGING", "STUCK", "LATE", "SUSPECT", "UNKNOWN"), 900),
    }
    text = render(Report("c", AS_OF, "given", "/out", counts=counts, transactions=dict.fromkeys(MEANINGS, rows)))
    assert len(text.splitlines()) <= 125
    assert [text.count(f"\n{section}\n") for section in MEANINGS] == [1] * 8, "and every section is there"


def test_an_instant_is_not_broken_between_two_lines():
    assert not re.search(r"\d{4}-\d\d-\d\d\n", "".join(render(_timed(width), width) for width in range(60, 133)))


def _timed(width: int) -> Report:
    said = {"explanation": " ".join(["x" * (width % 7 + 1), *["until 2026-11-21T07:46:12Z it is so,"] * 9])}
    return Report("c", AS_OF, "given", "/out", transactions={"HANGING": [ROW | said]})


@pytest.mark.parametrize("width", [60, 80, 100, 132])
def test_a_report_is_as_wide_as_the_terminal_but_for_what_is_copied(width):
    fields = {"abort_command": abort("x" * 200, 3, 41), "safe_to_abort": True}
    text = render(Report("c", AS_OF, "given", "/out", transactions={"HANGING": [ROW | fields]}), width)
    kept = ("  do ", "           abort ", "  before ", "  after ", "for details: ", "to do ")
    assert [found for found in text.splitlines() if len(found) > width and not found.startswith(kept)] == []
    assert f"  do       {fields['abort_command']}\n" in text.replace(f"\\\n{'':11}", ""), "a command stays in one piece"


def test_colours_are_for_terminals_that_want_them(monkeypatch):
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "70"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("txnlib.ask.terminal_report.program", lambda: "txn-audit")
    styled = terminal_report(HANGING, is_terminal=True)
    assert "\x1b[1;31mHANGING\x1b[0m" in styled
    assert "\x1b[1morders-3 offset 41\x1b[0m" in styled
    assert re.sub(r"\x1b\[[0-9;]*m", "", styled) == f"{render(HANGING, 70)}\n", "the words are the same"
    monkeypatch.setenv("NO_COLOR", "1")
    assert "[1;31m" not in terminal_report(HANGING, is_terminal=True)
    assert terminal_report(HANGING, is_terminal=False) == f"{render(HANGING)}\n", "piped, it is as wide as ever"


def test_the_command_for_details_names_the_program_that_is_there(monkeypatch, tmp_path):
    beside = tmp_path / "my env" / "txn-audit"
    beside.parent.mkdir()
    beside.touch()
    monkeypatch.setattr("sys.executable", str(beside.with_name("python")))
    assert program() == f"'{beside}'"
    beside.unlink()
    assert program() == "txn-audit"


@pytest.mark.parametrize("width", [80, 120, 132, 200])
def test_a_command_wider_than_its_terminal_is_broken_where_a_shell_goes_on(width):
    command = force_terminate("a --b " * 6)
    row = {**ROW, "number": 1, "action": "END_AT_COORDINATOR", "command": command, "do_not_abort_because": "it is so"}
    text = render(Report("c", AS_OF, "given", "/out", transactions={"LATE": [row]}), width)
    shown = re.search(r"^  do       ((?:.*\\\n)?.*)$", text, re.MULTILINE)
    assert ("\\\n" in shown[1]) == (width < WIDTH)
    assert shlex.split(shown[1].replace("\\\n", " ")) == shlex.split(command)
