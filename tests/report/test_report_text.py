"""Does the report say what an on-call engineer needs, in the order in which it is needed?"""

from __future__ import annotations

from txnlib.report.summary import PREPARED, Summary
from txnlib.report.text import render

AS_OF = 1_795_243_361_000
ROW = {
    "topic": "orders",
    "partition": 3,
    "start_offset": 41,
    "producer_id": 7,
    "producer_epoch": 0,
    "transactional_id": "shop-eu-4",
    "application": "shop-eu",
    "coordinator_state": "Ongoing",
    "coordinator_partition": 1,
    "transaction_timeout_ms": 60_000,
    "transaction_start": AS_OF - 3_600_000,
    "explanation": "it is so",
    "blocks_since": AS_OF - 3_600_000,
    "blocked_offsets": 12,
    "blocked_bytes": 2048,
    "causes": [{"likelihood": "LIKELY", "cause": "a cause", "evidence": "x"}],
    "runs_seen": 1,
    "first_seen": AS_OF,
    "duration_minutes": 60,
    "age_basis": "CLIENT_CLOCK",
    "abort_command": None,
    "safe_to_abort": False,
    "broker_clock_age_ms": 3_600_000,
    "do_not_abort_because": "of this",
    "before": [{"command": "describe", "must_print": "this"}],
    "command": None,
    "after": [{"command": "describe", "must_print": "that"}],
    "next_blocking_offset": None,
    "next_blocking_producer_id": None,
    "next_blocking_transactional_id": None,
    "blocking_producer_id": 7,
    "groups": None,
}


def rendered(section="HANGING", ended=(), **fields):
    verdict = "OPEN" if section == PREPARED else section
    transactions = {section: [ROW | fields]}
    return render(Summary("c", AS_OF, "given", "out", counts={"verdicts": {verdict: 1}}, transactions=transactions, ended=ended))


def line(text, label):
    return next(found.strip() for found in text.splitlines() if found.strip().startswith(label))


def test_an_id_is_shown_with_its_application():
    assert "shop-eu-4 of shop-eu" in rendered()
    assert "of shop-eu" not in rendered(transactional_id="shop-eu")


def test_the_checks_stand_around_the_command():
    text = rendered(abort_command="abort it", safe_to_abort=True)
    labels = [part.split()[0] for part in text.splitlines() if part.strip().startswith(("before", "do ", "after"))]
    assert labels == ["before", "do", "after"]
    assert line(text, "before").endswith("describe   must show: this")


def test_what_blocks_next_is_named_where_this_one_blocks_now():
    behind = {"next_blocking_offset": 50, "next_blocking_producer_id": 8, "next_blocking_transactional_id": "b"}
    assert line(rendered(**behind), "behind").endswith("once it is ended, producer 8 (b) blocks from offset 50")
    assert "behind" not in rendered(**behind, blocking_producer_id=9)


def test_groups_that_wait_are_counted_when_they_are_many():
    assert line(rendered(groups=["a", "b"]), "waiting").endswith("groups a, b on orders-3")
    assert line(rendered(groups=["a", "b", "c", "d", "e"]), "waiting").endswith("groups a, b, c and 2 more on orders-3")


def test_two_phase_commits_left_alone_have_a_section_and_no_alarm():
    text = rendered(PREPARED, command="forceTerminateTransaction")
    assert "nothing hangs" in text
    assert text.index("PREPARED") < text.index("forceTerminateTransaction")


def test_what_ended_since_is_told():
    gone = {"topic": "t", "partition": 0, "start_offset": 1, "producer_id": 2, "verdict": "HANGING", "says": "ended by hand"}
    assert line(rendered(ended=(gone,)), "t-0").endswith("was HANGING: ended by hand")
    assert "ENDED SINCE" not in rendered()


def test_nothing_from_a_log_forges_a_line():
    text = rendered(transactional_id="x\nHANGING", groups=["g\n  do  rm"], explanation="a\x1b[2J")
    assert [part for part in text.splitlines() if part == "HANGING"] == ["HANGING"]
    assert "\x1b" not in text
    assert not any(part.startswith("  do  rm") for part in text.splitlines())
