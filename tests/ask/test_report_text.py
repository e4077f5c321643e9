"""The report as text: what an on-call engineer needs, in order."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

import pytest

from txnlib.ask.extents import Reach
from txnlib.ask.grid import WIDTH
from txnlib.ask.own_command import program
from txnlib.ask.report import MEANINGS, FindingPlaces, Report
from txnlib.ask.report_text import render, terminal_report
from txnlib.ask.words import PREPARED
from txnlib.core.kafka_commands import abort, describe_producers, force_terminate

AS_OF = 1_795_243_361_000
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


def rendered(section="HANGING", ended=(), **fields):
    verdict = "OPEN" if section == PREPARED else section
    transactions = {section: [ROW | fields]}
    summary = Report(
        "c",
        AS_OF,
        "given",
        "out",
        counts={"verdicts": {verdict: 1}, "transactions": {verdict: 1}},
        transactions=transactions,
        ended=ended,
    )
    return render(replace(summary, ended_known=len(ended)))


def line(text, label):
    return next(found.strip() for found in text.splitlines() if found.strip().startswith(label))


def test_an_id_is_shown_with_its_application():
    assert "shop-eu-4 of shop-eu" in rendered()
    assert "of shop-eu" not in rendered(transactional_id="shop-eu")


def test_the_checks_stand_around_the_command():
    text = rendered(abort_command="abort it", safe_to_abort=True)
    labels = [part.split()[0] for part in text.splitlines() if part.strip().startswith(("before", "do ", "after"))]
    assert labels == ["before", "do", "after"]
    assert re.findall(r"^  before   (.*)\n +must show: (.*)$", text, re.MULTILINE) == [("describe", "this")]


def test_a_check_can_be_pasted_as_it_stands():
    check = {"command": describe_producers("orders", 3), "must_print": "this"}
    text = rendered(abort_command="abort it", safe_to_abort=True, before=[check])
    assert line(text, "before") == f"before   {check['command']}"


def test_what_blocks_next_is_named_where_this_one_blocks_now():
    behind = {"next_blocking_offset": 50, "next_blocking_producer_id": 8, "next_blocking_transactional_id": "b"}
    assert line(rendered(**behind), "behind").endswith(
        "producer 8 (b) from offset 50 on, which holds the partition once this one is ended"
    )
    waits = rendered(
        **behind, holds=False, blocking_producer_id=9, blocking_transactional_id="a", last_stable_offset=30
    )
    assert "once this one is ended" not in waits
    assert "waits behind producer 9 (a), which holds orders-3 from offset 30 on" in " ".join(waits.split())


def test_what_a_holder_keeps_from_consumers_is_the_lag_of_its_partition():
    """The bytes behind its start go to the end of the log, which may be beyond the high watermark."""
    told = {"lag_offsets": 10, "lag_bytes": 1024, "blocked_offsets": 12, "blocked_bytes": 4096}
    assert "10 offsets, 1.0 KiB" in line(rendered(**told), "holds")
    assert "12 offsets, 4.0 KiB" in line(rendered(**told, holds=False, blocking_producer_id=9), "waits")


def test_groups_that_wait_are_counted_when_they_are_many():
    assert line(rendered(groups=["a", "b"]), "waiting").endswith("groups a, b on orders-3")
    assert line(rendered(groups=["a", "b", "c", "d", "e"]), "waiting").endswith("groups a, b, c and 2 more on orders-3")


def test_two_phase_commits_left_alone_have_a_section_and_no_alarm():
    text = rendered(PREPARED, command="forceTerminateTransaction")
    assert "nothing hangs" in text
    assert text.index("PREPARED") < text.index("forceTerminateTransaction")


def test_what_ended_since_is_told():
    gone = {
        "topic": "t",
        "partition": 0,
        "start_offset": 1,
        "producer_id": 2,
        "verdict": "HANGING",
        "says": "ended by hand",
    }
    assert line(rendered(ended=(gone,)), "t-0").endswith("was HANGING: ended by hand")
    assert "ENDED SINCE" not in rendered()
    assert "and 3 more (diff)" in rendered(ended=(gone,) * 8)


def test_nothing_from_a_log_forges_a_line():
    text = rendered(transactional_id="x\nHANGING", groups=["g\n  do  rm"], explanation="a\x1b[2J")
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


def test_nothing_is_left_out_where_there_is_room():
    text = several("HANGING", 2)
    assert text.count("  why ") == 2
    assert "more" not in text


def test_the_extent_of_a_verdict_names_what_is_held_and_what_only_waits():
    def told(held: int, holding: int, since_ms: int | None, *, is_proven: bool = False) -> str:
        extent = Reach(9, 3, 2, held=held, holding=holding, since_ms=since_ms, is_since_proven=is_proven)
        counts = {"verdicts": {"HANGING": 9}, "transactions": {"HANGING": 3}}
        return " ".join(render(Report("c", AS_OF, "given", "/out", counts=counts, extents={"HANGING": extent})).split())

    hour_ago = AS_OF - 3_600_000
    several = (
        "3 HANGING nobody will ever end them: 2 hold 2 partitions, the longest for 1 h by brokers' clocks; 0 offsets"
        " wait; 1 waits behind others "
    )
    assert several in told(2, 2, hour_ago, is_proven=True)
    assert ": 1 holds 1 partition for 1 h by its client's clock; 0 offsets wait; 2 wait behind others " in told(
        1, 1, hour_ago
    )
    assert ": 3 hold 3 partitions; 0 offsets wait read" in told(3, 3, None)
    assert ": all wait behind others read" in told(0, 0, None)


def test_the_hint_names_a_transaction_that_holds_a_partition():
    waits = ROW | {
        "holds": False,
        "blocking_producer_id": 9,
        "blocking_transactional_id": "a",
        "last_stable_offset": 30,
    }
    holds = ROW | {"topic": "late", "partition": 5, "blocked_offsets": 1}
    summary = Report("c", AS_OF, "given", "/out", transactions={"HANGING": [waits], "LATE": [holds]})
    assert "explain late 5 41" in render(summary).splitlines()[-1]
    alone = render(replace(summary, transactions={"HANGING": [waits]}))
    assert "explain orders 3 41" in alone.splitlines()[-1], "none holds one"


@pytest.mark.parametrize(
    ("actions", "topic", "said"),
    [
        ({"ABORT": 1}, None, "to do the abort, with checks: txn-audit abort-plan --format sh --tables /out"),
        (
            {"ABORT": 8, "ABORT_AS_DECIDED": 1, "WAIT": 3},
            None,
            "to do all 9 aborts, with checks: txn-audit abort-plan --f",
        ),
        ({"ABORT": 2}, "orders", "to do all 2 aborts, with checks: txn-audit abort-plan --topic orders --format sh"),
        ({"ABORT_LATER": 2}, None, "for details: txn-audit explain orders 3 41 --tables /out"),
    ],
)
def test_the_last_line_is_what_to_do_next(actions, topic, said):
    summary = Report("c", AS_OF, "given", "/out", topic=topic, actions=actions, transactions={"HANGING": [ROW]})
    assert render(summary).splitlines()[-1].startswith(said)


def test_a_report_about_a_topic_leads_to_more_of_that_topic():
    rows = [ROW | {"partition": number, "producer_id": number} for number in range(9)]
    summary = Report("c", AS_OF, "given", "/out", topic="orders", transactions={"HANGING": rows})
    assert "  txn-audit open --verdict HANGING --topic orders --tables /out" in render(summary).splitlines()


def test_an_instant_is_not_broken_between_two_lines():
    assert not re.search(r"\d{4}-\d\d-\d\d\n", "".join(render(_timed(width), width) for width in range(60, 133)))


def _timed(width: int) -> Report:
    said = {"explanation": " ".join(["x" * (width % 7 + 1), *["until 2026-11-21T07:46:12Z it is so,"] * 9])}
    return Report("c", AS_OF, "given", "/out", transactions={"HANGING": [ROW | said]})


def test_a_line_says_whether_a_transaction_holds_its_partition_or_waits():
    waits = ROW | {
        "holds": False,
        "blocking_producer_id": 9,
        "blocking_transactional_id": "a",
        "last_stable_offset": 30,
    }
    rows = [ROW | {"partition": number} for number in range(2)] + [ROW | {"lag_offsets": 1}, waits]
    text = " ".join(render(Report("c", AS_OF, "given", "/out", transactions={"HANGING": rows}), 10_000).split())
    assert "holds 1 offset since" in text
    assert "waits behind producer 9 (a): SO" in text


@pytest.mark.parametrize("width", [60, 80, 100, 132])
def test_a_report_is_as_wide_as_the_terminal_but_for_what_is_copied(width):
    fields = {"abort_command": abort("x" * 200, 3, 41), "safe_to_abort": True}
    text = render(Report("c", AS_OF, "given", "/out", transactions={"HANGING": [ROW | fields]}), width)
    kept = ("  do ", "           abort ", "  before ", "  after ", "for details: ", "to do ")
    assert [found for found in text.splitlines() if len(found) > width and not found.startswith(kept)] == []
    assert f"  do       {fields['abort_command']}\n" in text.replace(f"\\\n{'':11}", ""), "a command stays in one piece"


@pytest.mark.parametrize(
    ("opened", "oldest", "said"),
    [
        pytest.param(0, None, "No transaction is open.", id="none"),
        pytest.param(1, AS_OF - 38_000, "1 open transaction in time, the oldest for 38 s.", id="one"),
        pytest.param(41, AS_OF - 38_000, "41 open transactions, all in time, the oldest for 38 s.", id="several"),
        pytest.param(41, None, "41 open transactions, all in time.", id="of which no clock tells the age"),
    ],
)
def test_nothing_alarming_is_said_where_nothing_is_wrong(opened, oldest, said):
    text = render(
        Report(
            "c",
            AS_OF,
            "given",
            "/out",
            counts={"verdicts": {"OPEN": opened}, "transactions": {"OPEN": opened}},
            oldest_open_ms=oldest,
        )
    )
    assert f"nothing hangs, nothing is late, nothing is stuck.  {said}" in text
    assert not any(verdict in text for verdict in ("HANGING", "STUCK", "LATE", "UNKNOWN"))


def test_missing_coordinators_lead_to_what_to_copy():
    text = render(Report("c", AS_OF, "given", "/out", missing_coordinators=(7, 31)))
    assert "not captured: __transaction_state-{7, 31} (what to copy: collect-plan)" in text
    assert text.endswith("for details: txn-audit collect-plan --tables /out")


def test_a_number_of_coordinators_that_is_assumed_is_told_with_the_option_that_gives_it():
    lost = Report("c", AS_OF, "given", "/out", missing_coordinators=tuple(range(49)), coordinators_known=50)
    lost = replace(lost, coordinators_read=1, is_count_assumed=True)
    text = " ".join(render(lost).split())
    assert "not captured: 49 of 50 partitions of __transaction_state, if it has 50, which is assumed as Kafka's" in text
    assert "audit again with --coordinator-partitions N" in text
    assert "{0, 1" not in text


def test_that_no_coordinator_was_captured_is_said_in_words():
    summary = Report("c", AS_OF, "given", "/out", coordinators_known=50, missing_coordinators=tuple(range(20)))
    text = render(summary)
    assert "  no coordinator partition was captured (what to copy: collect-plan)" in text
    assert "__transaction_state-{" not in text
    assert "__transaction_state-{0, 1" in render(replace(summary, coordinators_read=1))


def test_assumed_instants_are_said_with_the_option_that_gives_them():
    said = "audit again with --captured-at TIME"
    summary = Report("c", AS_OF, "given", "/out", is_instant_assumed=True)
    assert said in " ".join(render(summary).split())
    assert said not in " ".join(render(replace(summary, is_instant_assumed=False)).split())


def test_details_are_asked_for_by_a_command_that_a_shell_understands():
    command = line(render(Report("c", AS_OF, "given", "/my out", transactions={"LATE": [ROW]})), "for details: ")
    assert shlex.split(command.removeprefix("for details: ")) == [
        "txn-audit",
        "explain",
        "orders",
        "3",
        "41",
        "--tables",
        "/my out",
    ]
    assert "details" not in render(Report("c", AS_OF, "given", "main.audit", transactions={"LATE": [ROW]})), (
        "a catalog's tables"
    )


def test_colours_are_for_terminals_that_want_them(monkeypatch):
    summary = Report(
        "c",
        AS_OF,
        "given",
        "/out",
        counts={"verdicts": {"HANGING": 1}, "transactions": {"HANGING": 1}},
        transactions={"HANGING": [ROW]},
    )
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "70"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("txnlib.ask.report_text.program", lambda: "txn-audit")
    styled = terminal_report(summary, is_terminal=True)
    assert "\x1b[1;31mHANGING\x1b[0m" in styled
    assert re.sub(r"\x1b\[[0-9;]*m", "", styled) == f"{render(summary, 70)}\n", "the words are the same"
    monkeypatch.setenv("NO_COLOR", "1")
    assert "[1;31m" not in terminal_report(summary, is_terminal=True)
    assert terminal_report(summary, is_terminal=False) == f"{render(summary)}\n", "piped, it is as wide as ever"


def test_a_last_write_at_a_time_that_no_clock_shows_has_no_age():
    text = " ".join(
        rendered(
            last_timestamp=None, last_timestamp_ms=1_763_711_999_000_000, duration_minutes=None, runs_seen=2
        ).split()
    )
    assert "last write at a time that no clock shows" in text
    assert "min ago" not in text


@pytest.mark.parametrize(
    ("basis", "says"),
    [
        (None, None),
        ("METADATA_LOG", None),
        ("METADATA_LOG_UNCONFIRMED", "leaders may have changed since, so no abort is called safe"),
        ("METADATA_LOG_STALE", "its broker was dead or cut off when it was copied, so no copy counts as current"),
        ("METADATA_LOG_DAMAGED", "newer records of it are lost, so nothing that depends on leaders is decided"),
    ],
)
def test_a_metadata_log_that_proves_nothing_is_named(basis, says):
    summary = Report(cluster="c", as_of_ms=0, as_of_basis="", output="o", metadata_ms=0, metadata_basis=basis)
    lines = [line for line in render(summary, 10_000).splitlines() if "metadata log" in line]
    assert lines == ([] if says is None else [f"  the cluster's metadata log ends at 1970-01-01 00:00:00Z: {says}"])


@pytest.mark.parametrize("name", ["transaction.max.timeout.ms", "producer.id.expiration.ms"])
def test_assumed_settings_are_named_if_a_verdict_depends_on_them(name):
    minor = "transaction.abort.timed.out.transaction.cleanup.interval.ms"

    def named(*assumed):
        summary = Report(cluster="c", as_of_ms=0, as_of_basis="", output="o", assumed=assumed)
        return f"Kafka's defaults of {', '.join(assumed)}" in " ".join(render(summary, 10_000).split())

    assert (named(name), named(name, minor), named(minor), named()) == (True, True, False, False)


def test_what_is_new_since_the_audit_before_is_counted_and_marked():
    rows = [
        ROW | {"partition": n, "transactional_id": f"shop-eu-{n}", "producer_id": n, "runs_seen": 1 + n % 2}
        for n in range(4)
    ]
    counts = {"verdicts": {"HANGING": 4, "OPEN": 7}, "transactions": {"HANGING": 4, "OPEN": 7}}
    reach = {"HANGING": Reach(4, 4, 4, new=2), "OPEN": Reach(7, 7, 7, new=7)}
    made = Report("c", AS_OF, "given", "/out", counts=counts, transactions={"HANGING": rows}, extents=reach)
    known = replace(made, earlier_ms=AS_OF - 86_400_000)
    text = render(known)
    assert "  new since the audit as of 2026-11-20 06:42:41Z: 2 HANGING\n" in text
    shown = [re.search(rf"orders-{n} offset .*", text) for n in range(4)]
    assert [bool(found and re.search(r"   new( |$)", found[0])) for found in shown] == [True, False, True, False]
    first = render(replace(known, earlier_ms=None))
    assert "new" not in first, "in the first audit all is new"
    assert "new since the audit as of 2026-11-20 06:42:41Z: nothing" in render(replace(known, extents={}))


def test_a_section_that_is_cut_says_what_it_is_in_all():
    extent = Reach(
        900, 700, 12, safe=2, safe_rows=3, safe_later=5, safe_from_ms=AS_OF, reasons=(("R1", 800), ("R2", 100))
    )
    apps = tuple((f"app{n}", 9 - n) for n in range(7))
    rows = [ROW | {"partition": n, "producer_id": n} for n in range(20)]
    counts = {"verdicts": {"HANGING": 900}, "transactions": {"HANGING": 900}}
    cut = Report("c", AS_OF, "given", "/out", counts=counts, transactions={"HANGING": rows})
    text = render(replace(cut, extents={"HANGING": replace(extent, applications=apps)}), 200)
    assert (
        line(text, "in all")
        == "in all   700 transactions on 12 partitions (900 rows); 2 safe to abort now (3 rows); 5 once they are old"
        " enough, the last from 2026-11-21 06:42:41Z on"
    )
    assert "  and 695 more, 895 rows (open --verdict HANGING)\n" in text
    assert line(text, "reasons") == "reasons  800 R1, 100 R2; some have several"
    assert line(text, "of ") == "of       9 app0, 8 app1, 7 app2, 6 app3, 5 app4, 7 in 2 others"
    six = render(replace(cut, extents={"HANGING": replace(extent, applications=apps[:6])}), 200)
    assert line(six, "of ") == "of       9 app0, 8 app1, 7 app2, 6 app3, 5 app4, 4 app5"
    whole = replace(
        cut,
        counts={"verdicts": {"HANGING": 2}, "transactions": {"HANGING": 2}},
        transactions={"HANGING": rows[:2]},
        extents={"HANGING": replace(extent, rows=2, transactions=2)},
    )
    assert "in all" not in render(whole)


def test_what_only_looks_late_has_a_line_of_its_own():
    counts = {"verdicts": {"LATE": 2, "LOOKS_LATE": 3}, "transactions": {"LATE": 2, "LOOKS_LATE": 3}}
    reach = {"LATE": Reach(2, 2, 2), "LOOKS_LATE": Reach(3, 3, 3, held=3, holding=3)}
    text = render(Report("c", AS_OF, "given", "/out", counts=counts, extents=reach), 200)
    assert line(text, "2 LATE").startswith("2 LATE        their coordinators still expect them")
    assert (
        line(text, "3 LOOKS_LATE")
        == "3 LOOKS_LATE  their clients' timestamps are old, but their coordinators still wait: 3 hold 3 partitions; 0"
        " offsets wait"
    )


@pytest.mark.parametrize(
    ("ends_by", "said"),
    [
        (None, None),
        (AS_OF - 60_001, "its coordinator should have ended it by 2026-11-21 06:41:41Z"),
        (AS_OF + 60_001, "its coordinator ends it by 2026-11-21 06:43:42Z at the latest"),
    ],
)
def test_what_a_coordinator_ends_is_told_with_its_instant(ends_by, said):
    text = rendered("LATE", ends_by=ends_by)
    assert (None if "  ends" not in text else line(text, "ends").removeprefix("ends     ")) == said


def test_a_command_that_must_wait_stands_behind_its_instant():
    later = {"abort_command": "abort it", "safe_from": AS_OF + 1, "action": "ABORT_LATER"}
    text = rendered(**later)
    assert "  then     # not before 2026-11-21 06:42:42Z\n           abort it\n" in text
    assert "not before" not in rendered(abort_command="abort it", safe_to_abort=True, do_not_abort_because=None)


def test_what_no_snapshot_shows_is_named():
    told = (
        "what was open before the first record of 2 partitions is not known: no producer snapshot of that was captured"
        " (coverage)"
    )
    text = " ".join(render(Report("c", AS_OF, "given", "/out", partitions_hidden=2)).split())
    assert told in text
    assert "producer snapshot" not in render(Report("c", AS_OF, "given", "/out"))


def test_text_is_named_with_what_it_does_not_prove():
    summary = Report("c", AS_OF, "given", "/out", partitions_as_text=1)
    assert (
        line(render(summary, 200), "1 partition read")
        == "1 partition read as text, which has no bytes to check: no abort there is called safe, and copies of the"
        " files would settle it (docs/capture.md)"
    )
    assert "as text" not in render(replace(summary, partitions_as_text=0))


def test_good_news_says_that_no_coordinator_was_read():
    text = render(Report("c", AS_OF, "given", "/out", coordinators_known=5))
    assert line(text, "0 of 5") == "0 of 5 coordinator partitions read: what coordinators expect is not known"
    assert "0 of 5 coordinator partitions read:" not in render(
        Report("c", AS_OF, "given", "/out", coordinators_known=5, coordinators_read=1)
    )


def test_critical_findings_are_in_the_headline_with_their_places():
    place = {"topic": "t", "partition": 3, "offset": 7, "transactional_id": None}
    found = FindingPlaces("MARKER_MISSING", "CRITICAL", 5, "it is so", places=[place, place])
    text = render(Report("c", AS_OF, "given", "/out", findings=(found,)))
    assert text.index("  CRITICAL: 5 MARKER_MISSING: t-3 offset 7 and 3 more") < text.index("FINDINGS")
    assert "     5 CRITICAL MARKER_MISSING: it is so (t-3 offset 7 and 3 more)" in text


def test_partitions_that_were_not_read_are_named():
    lost = (("a", 1), ("b\nc", 0))
    text = render(Report("c", AS_OF, "given", "/out", partitions_known=14, partitions_read=12, missing_partitions=lost))
    assert "  not read, because no copy was captured: a-1, b\\nc-0\n" in text
    more = Report("c", AS_OF, "given", "/out", partitions_known=20, partitions_read=12, missing_partitions=lost)
    assert "b\\nc-0 and 6 more (coverage)" in render(more)
    assert render(more).endswith("for details: txn-audit coverage --tables /out")
    coordinators = replace(more, missing_coordinators=tuple(range(6)))
    assert "more (coverage)" not in render(coordinators)


@pytest.mark.parametrize(
    ("minutes", "said"),
    [(0, "less than a minute ago"), (-5, "at a time that is still to come"), (59, "59 min ago"), (120, "2 h ago")],
)
def test_ages_have_one_unit_and_one_rounding(minutes, said):
    assert f"last write {said} by its client's clock" in rendered(duration_minutes=minutes, runs_seen=2)


def test_entries_are_set_apart_and_their_heads_are_bold(monkeypatch):
    text = several("HANGING", 5)
    heads = [number - 1 for number, each in enumerate(text.splitlines()) if each.startswith("  why ")]
    assert len(heads) == 2
    assert [text.splitlines()[number - 1] for number in heads] == ["HANGING", ""]
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    summary = Report(
        "c",
        AS_OF,
        "given",
        "/out",
        counts={"verdicts": {"HANGING": 1}, "transactions": {"HANGING": 1}},
        transactions={"HANGING": [ROW]},
    )
    assert "\x1b[1morders-3 offset 41\x1b[0m" in terminal_report(summary, is_terminal=True)


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


def test_the_tables_are_named_once():
    assert render(Report("c", AS_OF, "given", "/out", transactions={"LATE": [ROW]})).count("/out") == 1
    assert "tables in /out (Delta)" in render(Report("c", AS_OF, "given", "/out"))
