"""The first lines of a report: each number in them is what SQL says of the tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.delta_tables import NOW, READ_BY_COMMANDS, at, write, write_run
from txnlib.ask.delta_rows import Tables, open_run, open_tables
from txnlib.ask.extents import held
from txnlib.ask.queries import ms
from txnlib.ask.report import FindingPlaces, Report
from txnlib.ask.report_rows import STEPS, report_of
from txnlib.ask.sql import ask
from txnlib.ask.terminal_report import render, terminal_report
from txnlib.core.coverage.unread import UnreadFiles
from txnlib.core.verdicts.plan_step import Action

IN_SQL = """
WITH opened AS (
  SELECT *, CASE WHEN verdict = 'LATE' AND reason = 'TIMEOUT_NOT_PASSED' THEN 'LOOKS_LATE' ELSE verdict END AS name
  FROM latest_open_transactions
), holders AS (
  SELECT opened.*, lag.lag_offsets
  FROM latest_partitions AS lag JOIN opened
    ON opened.topic = lag.topic AND opened.partition = lag.partition AND opened.producer_id = lag.blocking_producer_id
  WHERE lag.lag_offsets > 0
)
SELECT name, count(*) AS row_count, count(DISTINCT (producer_id, transactional_id)) AS transactions,
  (SELECT count(*) FROM holders WHERE holders.name = opened.name) AS held,
  (SELECT count(DISTINCT (producer_id, transactional_id)) FROM holders WHERE holders.name = opened.name) AS holding,
  (SELECT coalesce(sum(lag_offsets), 0) FROM holders WHERE holders.name = opened.name) AS held_offsets,
  (SELECT min(blocks_since) FROM holders WHERE holders.name = opened.name) AS since,
  (SELECT max(ends_by) FROM holders WHERE holders.name = opened.name) AS ends,
  (SELECT count(DISTINCT producer_id) FROM holders
   WHERE holders.name = opened.name AND is_two_phase_commit AND ends_by IS NULL) AS undecided
FROM opened GROUP BY name
"""
#: partition, producer, start, verdict, reason, application, since, step; the first of each partition holds it.
OPENED = [
    (0, 1, 10, "HANGING", "WRITTEN_AFTER_MARKER", "shop", 900, 2),
    (0, 2, 15, "HANGING", "PRODUCER_ID_ROTATED", "shop", 5_000, 4),
    (1, 3, 20, "LATE", "OVERDUE", "bank", 800, 3),
    (1, 1, 25, "HANGING", "PRODUCER_ID_ROTATED", "shop", 700, 5),
    (2, 4, 30, "LATE", "TIMEOUT_NOT_PASSED", "bank", 600, 6),
    (3, 5, 40, "HANGING", "WRITTEN_AFTER_MARKER", "shop", 400, 1),
    (4, 5, 50, "LATE", "TIMEOUT_NOT_PASSED", "shop", 300, 7),
    (5, 6, 60, "OPEN", "EXPECTED", "shop", 200, None),
    (6, 7, 70, "OPEN", "TWO_PHASE_COMMIT", "flink", 150, None),
    (7, 8, 80, "OPEN", "EXPECTED", "bank", 100, None),
]
#: Producer -> ms from the instant of the audit to the end by its coordinator.
ENDS = {3: -60_000, 4: 30_000, 5: 40_500, 6: 5_000, 8: 9_000}
NOT_OF_STEPS = ("holds", "ends_by", "is_two_phase_commit")
ACTIONS = {"OVERDUE": "END_AT_COORDINATOR", "TIMEOUT_NOT_PASSED": "CHECK_TIMESTAMPS"}


@pytest.fixture
def root(tmp_path):
    for name in READ_BY_COMMANDS:
        write(tmp_path, name)
    write_run(tmp_path)
    rows, steps, partitions = [], [], {}
    for partition, producer, start, verdict, reason, application, age, number in OPENED:
        row = {"topic": "t", "partition": partition, "producer_id": producer, "start_offset": start, "verdict": verdict}
        row |= {"transactional_id": f"id-{producer}", "reason": reason}
        row |= {"holds": partition not in partitions, "blocked_offsets": 9 + partition}
        row["is_two_phase_commit"] = reason == "TWO_PHASE_COMMIT"
        is_ended = verdict != "HANGING" and producer in ENDS
        row["ends_by"] = at(NOW + ENDS[producer]) if is_ended else None
        rows.append(
            row | {"application": application, "blocks_since": at(NOW - age), "runs_seen": 1, "safe_to_abort": False}
        )
        if number is not None:
            step = {name: row[name] for name in row if name not in NOT_OF_STEPS} | {"number": number}
            steps.append(step | {"action": ACTIONS.get(reason, "ABORT_LATER"), "is_holder": row["holds"]})
        held = {
            "blocking_producer_id": producer,
            "blocking_verdict": verdict,
            "last_stable_offset": start + 1,  # the log start: what it wrote below is deleted
            "high_watermark": start + 9,
        }
        behind = {"next_blocking_offset": start, "next_blocking_producer_id": producer}
        place = {"topic": "t", "partition": partition, "lag_offsets": 9 + partition}
        partitions[partition] = partitions[partition] | behind if partition in partitions else place | held
    steps[5]["not_before"] = at(NOW + 90_500)
    write(tmp_path, "open_transactions", *rows)
    write(tmp_path, "abort_plan", *steps)
    write(tmp_path, "partitions", *partitions.values())
    return tmp_path


def test_every_number_of_a_verdict_is_what_sql_says(root):
    assert_numbers_of_sql(open_tables(str(root)))


def assert_numbers_of_sql(tables: Tables) -> None:
    """Every number of the first lines, again from the partitions and what is open."""
    told = report_of(open_run(tables)).extents
    in_sql = {row.pop("name"): row for row in ask(tables, IN_SQL).rows}
    assert told.keys() == in_sql.keys()
    for name, row in in_sql.items():
        extent = told[name]
        said = [extent.rows, extent.transactions, extent.held, extent.holding, extent.held_offsets]
        assert said == [row["row_count"], row["transactions"], row["held"], row["holding"], row["held_offsets"]], name
        assert extent.since_ms == ms(row["since"]), name
        assert (extent.ends_ms, extent.undecided) == (ms(row["ends"]), row["undecided"]), name
        assert sum(number for _, number in extent.applications) == extent.transactions, name


def test_what_holds_a_partition_on_which_nothing_waits_waits_for_nobody(root):
    """A transaction that has just begun at the end of its log."""
    own = {"topic": "t", "partition": 9, "producer_id": 90, "start_offset": 9, "verdict": "OPEN", "reason": "EXPECTED"}
    write(root, "open_transactions", own | {"transactional_id": "id-90", "holds": True, "blocked_offsets": 0})
    reach = report_of(open_run(open_tables(str(root)))).extents["OPEN"]
    assert (reach.held, reach.holding, reach.idle) == (3, 3, 1)
    assert held(reach, NOW).endswith("; nothing waits for 1 of them yet")


@pytest.mark.parametrize(("end", "least"), [(19, False), (20, True)])
def test_offsets_that_an_old_checkpoint_hides_are_a_lower_bound(root, end, least):
    """The checkpoint of the high watermark of t-0 says 19."""
    place = {"topic": "t", "partition": 0, "lag_offsets": 9, "high_watermark": 19, "end_offset": end}
    write(root, "partitions", place)
    assert ("at least 21 offsets wait" in report_of(open_run(open_tables(str(root)))).answer[0]) is least


def test_entries_are_in_the_order_of_the_plan_holders_first_each_with_what_is_behind_it(root):
    report = report_of(open_run(open_tables(str(root))))
    numbers = {section: [row["number"] for row in rows] for section, rows in report.transactions.items()}
    assert numbers == {"HANGING": [1, 2, 4, 5], "LATE": [3], "LOOKS_LATE": [6, 7], "OPEN": [None] * 3}
    text = render(report, 10_000)
    assert "behind   producer 2 from offset 15 on, which holds the partition once this one is ended" in text
    assert "t-1 offset 25   producer 1 epoch None   id-1 of shop   waits behind producer 3: PRODUCER_ID_ROTATED" in text
    assert "explain t 3 40" in text, "the first that holds a partition"
    assert "block" not in text.split("tables in")[0]


def test_what_cannot_wait_and_what_was_not_read_colour_the_answer():
    calm = Report("c", NOW, "given", "/out", coordinators_read=1, coordinators_known=5)
    unread = [UnreadFiles("CORRUPT_BATCH", 1, 90, ["/in/d"])]
    found = FindingPlaces("MARKER_MISSING", "CRITICAL", 2, "it is so")
    changes: list[dict[str, Any]] = [{}, {"unread_by_reason": unread}, {"coordinators_read": 0}, {"findings": (found,)}]
    assert [replace(calm, **each).level for each in changes] == ["calm", "warning", "warning", "alarm"]


PROMISED = {"safe_from": at(NOW - 1_000)}
#: What the audit before said, what this one says, and whether it withdraws a promise.
PROMISES = {
    "kept": (PROMISED, {"safe_to_abort": True}, False),
    "kept for later": (PROMISED, PROMISED, False),
    "broken": (PROMISED, {}, True),
    "moved": (PROMISED, {"safe_from": at(NOW + 9_000)}, True),
    "safe and no more": ({"safe_to_abort": True}, {}, True),
    "of another transaction": (PROMISED | {"first_batch_crc": 1}, {"first_batch_crc": 2}, False),
    "never made": ({}, {}, False),
}


@pytest.mark.parametrize("promise", PROMISES)
def test_a_promise_that_an_audit_withdraws_is_told_with_its_reason(tmp_path, promise):
    then, now, is_withdrawn = PROMISES[promise]
    for name in READ_BY_COMMANDS:
        write(tmp_path, name)
    write_run(tmp_path)
    before = write_run(tmp_path, NOW - 86_400_000)
    row = {"topic": "t", "partition": 0, "producer_id": 1, "start_offset": 5, "verdict": "HANGING", "reason": "R"}
    row |= {"safe_to_abort": False, "do_not_abort_because": "a COMMIT may include it", "runs_seen": 2}
    write(tmp_path, "open_transactions", row | then, run_id=before)
    write(tmp_path, "open_transactions", row | now)
    report = report_of(open_run(open_tables(str(tmp_path))))
    assert bool(report.withdrawn) is is_withdrawn
    assert ("withdrawn since the audit as of" in " ".join(report.answer)) is is_withdrawn
    if is_withdrawn:
        when = "now" if "safe_to_abort" in then else "from 2024-03-11 01:19:59Z on"
        because = "it is not, because a COMMIT may include it"
        assert report.withdrawn == [f"an abort of t-0 from offset 5 was called safe {when}; {because}"]


def test_only_what_was_read_is_green_and_what_cannot_wait_is_red(monkeypatch):
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "120"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    calm = Report(
        "c",
        NOW,
        "given",
        "/out",
        counts={"verdicts": {"OPEN": 1}, "transactions": {"OPEN": 1}},
        coordinators_read=1,
        coordinators_known=5,
    )
    green, yellow, red = (f"\x1b[{code}m" for code in ("32", "33", "1;31"))
    assert f"{green}nothing hangs" in terminal_report(calm, is_terminal=True)
    unread = terminal_report(replace(calm, coordinators_read=0), is_terminal=True)
    assert (green in unread, f"{yellow}0 of 5" in unread) == (False, True)
    found = FindingPlaces("MARKER_MISSING", "CRITICAL", 2, "it is so")
    urgent = terminal_report(replace(calm, findings=(found,)), is_terminal=True)
    assert (green in urgent, f"{red}CRITICAL: 2 MARKER_MISSING" in urgent) == (False, True)


def test_the_first_step_of_every_action_has_words():
    assert list(STEPS) == [action.name for action in Action]


def test_a_report_about_a_topic_has_its_steps_wherever_they_stand_in_the_plan(tmp_path):
    """A transaction on two topics is one step, of the partition that it holds up most."""
    for name in READ_BY_COMMANDS:
        write(tmp_path, name)
    write_run(tmp_path)
    own = {"partition": 0, "producer_id": 1, "start_offset": 5, "verdict": "LATE", "reason": "OVERDUE", "holds": True}
    own |= {"runs_seen": 1, "blocked_offsets": 9, "transactional_id": "shop"}
    write(tmp_path, "open_transactions", own | {"topic": "a"}, own | {"topic": "b"})
    other = own | {"topic": "a", "partition": 1, "producer_id": 2, "transactional_id": "bank"}
    write(tmp_path, "open_transactions", other)
    kept = ("topic", "partition", "producer_id", "start_offset", "transactional_id", "verdict", "reason")
    steps = [{name: row[name] for name in kept} for row in (other, own | {"topic": "a"})]
    planned = {"action": "END_AT_COORDINATOR", "is_holder": True}
    write(tmp_path, "abort_plan", *[step | planned | {"number": n} for n, step in enumerate(steps, 1)])
    report = report_of(replace(open_run(open_tables(str(tmp_path))), topic="b"))
    assert [(row["topic"], row["number"]) for row in report.transactions["LATE"]] == [("b", 2)]
    assert report.first.startswith("shop: ")
    assert report.actions == {"END_AT_COORDINATOR": 1}
    assert "topic b" in render(report)
