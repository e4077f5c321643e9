"""Audits over time: each number is what SQL says of that night."""

from __future__ import annotations

import re
from base64 import b64decode
from xml.etree import ElementTree

import pytest

from tests.support.delta_tables import NOW, READ_BY_COMMANDS, at, write, write_run
from txnlib.ask.delta_rows import open_run, open_tables
from txnlib.ask.nights import MOST_NIGHTS, Night, Nights, chart, nights, summary

DAY = 86_400_000
NIGHTS = [Night("a", NOW - DAY, 1, 40, 600_000), Night("b", NOW, 3, 400, DAY)]


@pytest.fixture
def found(tmp_path):
    for name in READ_BY_COMMANDS:
        write(tmp_path, name)
    for days in (2, 1, 0):
        write_run(tmp_path, NOW - days * DAY)
    write_run(tmp_path, NOW - DAY // 2, status="RUNNING")
    write_run(tmp_path, NOW - DAY // 3, cluster="other")
    own = {"topic": "t", "partition": 0, "producer_id": 1, "start_offset": 9, "reason": "R", "holds": True}
    hangs = own | {"verdict": "HANGING", "blocked_offsets": 40, "blocks_since": at(NOW - DAY - 5_000)}
    before = open_run(open_tables(str(tmp_path)), as_of=str(NOW - DAY)).run_id
    write(tmp_path, "open_transactions", hangs, hangs | {"partition": 1, "blocked_offsets": 2}, run_id=before)
    write(
        tmp_path,
        "open_transactions",
        hangs | {"blocked_offsets": 400},
        hangs | {"partition": 2, "holds": False},
        hangs | {"partition": 3, "verdict": "OPEN"},
        hangs | {"partition": 4, "verdict": "LATE", "reason": "TIMEOUT_NOT_PASSED"},
        hangs | {"partition": 5, "blocked_offsets": 0},
    )
    return nights(open_run(open_tables(str(tmp_path))))


def test_what_needs_somebody_is_counted_night_by_night(found):
    assert [(night.as_of_ms, night.held, night.offsets, night.age_ms) for night in found] == [
        (NOW - 2 * DAY, 0, 0, None),
        (NOW - DAY, 2, 42, 5_000),
        (NOW, 1, 400, DAY + 5_000),
    ]


def test_the_chart_has_a_bar_for_each_night_with_its_number():
    svg = ElementTree.fromstring(chart(NIGHTS))
    bars = [each.findtext("title") or "" for each in svg.iter("rect")]
    assert [told.partition(": ")[2] for told in bars] == ["1", "3", "40", "400", "10 min", "1 d"]
    tall = [float(each.get("height") or 0) for each in svg.iter("rect")]
    assert [round(low / high, 3) for low, high in zip(tall[::2], tall[1::2], strict=True)] == [0.333, 0.1, 0.007]
    texts = [each.text for each in svg.iter("text")]
    assert texts[0] == "partitions held: at most 3"
    assert summary(NIGHTS).endswith("the oldest has been open for: 10 min then, 1 d now.")


@pytest.mark.parametrize("number", [0, 1, MOST_NIGHTS])
def test_any_number_of_nights_is_a_chart_that_a_notebook_shows(number):
    shown = Nights([Night(f"r{n}", NOW + n * DAY) for n in range(number)])._repr_html_()
    encoded = re.search(r"base64,([^\"]+)\"", shown)
    assert encoded is not None
    svg = ElementTree.fromstring(b64decode(encoded[1]).decode())
    assert len([*svg.iter("{http://www.w3.org/2000/svg}rect")]) == 3 * number
