"""The first lines of a report: each number in them is what SQL says of the tables."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.delta_tables import NOW, READ_BY_COMMANDS, at, write, write_run
from txnlib.ask.delta_rows import open_run, open_tables
from txnlib.ask.extents import VerdictExtent
from txnlib.ask.headline import HEADLINES, STEPS, answer
from txnlib.ask.report import terminal_report
from txnlib.ask.report_text import render
from txnlib.ask.rows import ms
from txnlib.ask.sql import ask
from txnlib.ask.summary import FindingPlaces, Summary, summarise
from txnlib.core.verdicts.abort_plan import IDLE, Action

IN_SQL = """
WITH opened AS (
  SELECT *, CASE WHEN verdict = 'LATE' AND reason = 'TIMEOUT_NOT_PASSED' THEN 'LOOKS_LATE' ELSE verdict END AS name
  FROM latest_open_transactions
), holders AS (
  SELECT opened.name, opened.producer_id, opened.blocks_since, held.lag_offsets
  FROM latest_partitions AS held JOIN opened
    ON opened.topic = held.topic AND opened.partition = held.partition
      AND opened.producer_id = held.blocking_producer_id
)
SELECT name, count(*) AS row_count, count(DISTINCT (producer_id, transactional_id)) AS transactions,
  (SELECT count(*) FROM holders WHERE holders.name = opened.name) AS held,
  (SELECT count(DISTINCT producer_id) FROM holders WHERE holders.name = opened.name) AS holding,
  (SELECT coalesce(sum(lag_offsets), 0) FROM holders WHERE holders.name = opened.name) AS held_offsets,
  (SELECT min(blocks_since) FROM holders WHERE holders.name = opened.name) AS since
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
]
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
        rows.append(
            row | {"application": application, "blocks_since": at(NOW - age), "runs_seen": 1, "safe_to_abort": False}
        )
        if number is not None:
            steps.append(
                row
                | {
                    "number": number,
                    "action": ACTIONS.get(reason, "ABORT_LATER"),
                    "is_holder": partition not in partitions,
                }
            )
        held = {
            "blocking_producer_id": producer,
            "blocking_verdict": verdict,
            "last_stable_offset": start + 1,  # the log start: what it wrote below is deleted
            "high_watermark": start + 9,
        }
        behind = {"next_blocking_offset": start, "next_blocking_producer_id": producer}
        place = {"topic": "t", "partition": partition, "lag_offsets": 9 + partition}
        partitions[partition] = partitions[partition] | behind if partition in partitions else place | held
    rows[1]["safe_from"], rows[0]["safe_from"] = at(NOW + 90_500), at(NOW + 200_000)
    write(tmp_path, "open_transactions", *rows)
    write(tmp_path, "abort_plan", *steps)
    write(tmp_path, "partitions", *partitions.values())
    return tmp_path


def test_every_number_of_a_verdict_is_what_sql_says(root):
    tables = open_tables(str(root))
    told = summarise(open_run(tables)).extents
    in_sql = {row.pop("name"): row for row in ask(tables, IN_SQL).rows}
    assert told.keys() == in_sql.keys()
    for name, row in in_sql.items():
        extent = told[name]
        said = [extent.rows, extent.transactions, extent.held, extent.holding, extent.held_offsets]
        assert said == [row["row_count"], row["transactions"], row["held"], row["holding"], row["held_offsets"]], name
        assert name == "OPEN" or extent.since_ms == ms(row["since"]), name
        assert sum(number for _, number in extent.applications) == extent.transactions, name


def test_it_says_who_blocks_what_who_waits_and_when_something_is_safe(root):
    assert answer(summarise(open_run(open_tables(str(root))))).lines == [
        (
            "3 HANGING, nobody will ever end them: 2 hold 2 partitions (t-3 from offset 40, t-0 from offset 10), the"
            " longest for 0 s by its client's clock; 21 offsets wait; 1 waits behind others"
        ),
        (
            "1 LATE, its coordinator still expects it, and it is overdue: holds t-1 from offset 20 for 0 s by its"
            " client's clock; 10 offsets wait"
        ),
        (
            "2 LOOKS LATE, their clients' timestamps are old, but their coordinators still wait: 2 hold 2 partitions "
            "(t-4 from offset 50, t-2 from offset 30), the longest for 0 s by its client's clock; 24 offsets wait"
        ),
        "1 OPEN, in time",
        "first: no abort is safe yet: t-0 from offset 15 will be at 2024-03-11 01:21:31Z, if it is still open",
    ]


def test_entries_are_in_the_order_of_the_plan_each_with_what_is_behind_it(root):
    summary = summarise(open_run(open_tables(str(root))))
    numbers = {section: [row["number"] for row in rows] for section, rows in summary.transactions.items()}
    assert numbers == {"HANGING": [1, 2, 4, 5], "LATE": [3, 6, 7]}
    text = render(summary, 10_000)
    assert "behind   producer 2 from offset 15 on, which holds the partition once this one is ended" in text
    assert "t-1 offset 25   producer 1 epoch None   id-1 of shop   waits behind producer 3: PRODUCER_ID_ROTATED" in text
    assert "explain t 3 40" in text.splitlines()[-1], "the first that holds a partition"
    assert "block" not in text.split("tables in")[0]


def test_what_cannot_wait_stands_in_the_answer_and_colours_it():
    calm = Summary("c", NOW, "given", "/out", coordinators_read=1, coordinators_known=5)
    found = FindingPlaces("MARKER_MISSING", "CRITICAL", 2, "it is so")
    assert [
        answer(each).level for each in (calm, replace(calm, coordinators_read=0), replace(calm, findings=(found,)))
    ] == [
        "calm",
        "warning",
        "alarm",
    ]
    assert answer(replace(calm, coordinators_read=0)).urgent[0].startswith("0 of 5 coordinator partitions read")
    assert answer(replace(calm, findings=(found,))).urgent[0].startswith("CRITICAL: 2 MARKER_MISSING")


@pytest.mark.parametrize(("safe", "behind"), [(1, "1 that waits behind others"), (2, "2 that wait behind others")])
def test_what_is_safe_behind_others_is_named_if_the_first_step_is_not(root, safe, behind):
    summary = summarise(open_run(open_tables(str(root))))
    extent = replace(next(iter(summary.extents.values())), safe=safe)
    first = answer(replace(summary, extents={"HANGING": extent})).first
    assert first.endswith(f"; to abort {behind} is safe (abort-plan --action ABORT)")


def test_a_clock_that_is_ahead_makes_no_age_negative():
    extent = VerdictExtent(1, 1, 1, held=1, holding=1, since_ms=NOW + 5_000)
    counts = {"verdicts": {"HANGING": 1}, "transactions": {"HANGING": 1}}
    summary = Summary("c", NOW, "given", "/out", counts=counts, extents={"HANGING": extent}, captured_to_ms=NOW + 7_000)
    assert "for 0 s by" in answer(summary).lines[0]
    assert "captured 7 s after" in render(summary)


def test_only_what_was_read_is_green_and_what_cannot_wait_is_red(monkeypatch):
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "120"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)
    calm = Summary(
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


def test_the_plan_and_the_first_lines_have_one_order_for_what_nobody_ends():
    idle = {"SUSPECT": Action.WAIT, "UNKNOWN": Action.CAPTURE_MORE, "LOOKS_LATE": Action.CHECK_TIMESTAMPS}
    assert sorted(idle, key=idle.__getitem__) == [name for name in HEADLINES if name in idle]
    assert set(idle.values()) == IDLE
