"""Charts of the library, as specifications: what is drawn, and where text from logs may be."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from txnlib import charts
from txnlib.ask.episode import Episode, Event
from txnlib.ask.timeline import Timeline, record_events

AS_OF = 1_795_246_961_000
EVIL = "</script><script>alert(1)</script><b>{{id}}"


def event(at, name, offset, *, producer=1, owner="billing-0", clock="BROKER", log="orders-0", **more):
    known = {"log": log, "offset": offset, "event": name, "at_ms": at, "clock": clock, "key": (at or 0, 1, offset)}
    return Event(**known, transactional_id=owner, producer_id=producer, producer_epoch=0, **more)


def record(at, offset, *, owner="billing-0"):
    row = {
        "timestamp_ms": at,
        "is_tombstone": False,
        "state": "Ongoing",
        "transactional_id": owner,
        "transaction_number": 1,
    }
    return {
        **row,
        "coordinator_partition": 3,
        "offset": offset,
        "producer_id": 1,
        "producer_epoch": 0,
        "partitions": None,
    }


ENDED = [event(AS_OF - 9_000, "begins", 5), event(AS_OF - 8_000, "COMMIT marker", 7)]
OPEN = [event(AS_OF - 6_000, "begins", 8, producer=2, owner=None, mark="HANGING")]


def timeline(*events, subject="orders-0", **more):
    return Episode("eu", "run-1", AS_OF, events, Timeline(subject, **{"is_of_partition": True, **more}))


def data(spec):
    """The rows of each layer or part of a chart."""
    parts = spec.get("layer") or spec.get("hconcat") or [spec]
    return [spec["datasets"][part.get("data", spec.get("data"))["name"]] for part in parts]


def drawn(rows, *columns):
    return [tuple(row[column] for column in columns) for row in rows]


def all_charts(text):
    events = [
        event(AS_OF - 9_000, "begins", 5, owner=text, log=text),
        *record_events([record(AS_OF - 8_000, 1, owner=text)]),
    ]
    lag = {"topic": text, "partition": 0, "blocking_transactional_id": text, "blocking_producer_id": 1}
    lag |= dict.fromkeys(
        ("lag_ms", "lag_offsets", "lag_bytes", "last_stable_offset", "high_watermark", "blocking_verdict")
    )
    return [
        charts.timeline_chart(timeline(*events, subject=text)),
        charts.timeline_chart(timeline(*events, subject=text, is_of_partition=False)),
        charts.lag_chart([lag], 1),
        charts.verdict_chart([{"run_id": text, "as_of_ms": AS_OF, "verdicts": {"LATE": 1}}]),
    ]


def test_a_bar_lasts_from_the_first_record_to_the_marker_or_to_the_audit():
    bars, points, subject = data(charts.timeline_chart(timeline(*ENDED, *OPEN)).to_dict())
    assert drawn(bars, "lane", "from", "to", "ending", "offset") == [
        ("billing-0", AS_OF - 9_000, AS_OF - 8_000, "COMMIT", 5),
        ("producer 2", AS_OF - 6_000, AS_OF, "HANGING", 8),
    ]
    assert drawn(points, "lane", "at", "by") == [
        ("billing-0", AS_OF - 9_000, "producer"),
        ("billing-0", AS_OF - 8_000, "marker"),
        ("producer 2", AS_OF - 6_000, "producer"),
    ]
    assert subject == [{"subject": "orders-0"}]


def test_a_marker_ends_the_transaction_of_its_own_producer_only():
    others = [event(AS_OF - 7_000, "ABORT marker", 9, producer=3)]
    bars, _, _ = data(charts.timeline_chart(timeline(*OPEN, *others)).to_dict())
    assert drawn(bars, "ending", "to") == [("HANGING", AS_OF)]


def test_coordinators_have_the_lane_of_the_id_and_in_its_own_timeline_that_of_their_log():
    records = record_events([record(AS_OF - 9_500, 1)])
    for is_of_partition, lane in {True: "billing-0", False: "__transaction_state-3"}.items():
        _, points, _ = data(charts.timeline_chart(timeline(*records, is_of_partition=is_of_partition)).to_dict())
        assert drawn(points, "lane", "by") == [(lane, "coordinator")]


def test_records_without_a_time_are_counted_and_not_drawn():
    spec = charts.timeline_chart(timeline(event(None, "begins", 1, clock="CLIENT"), earlier=3)).to_dict()
    assert [len(rows) for rows in data(spec)[:2]] == [0, 0]
    notes = spec["title"]["subtitle"][1:]
    assert notes == ["Records without a known time, not shown: 1.", "Earlier transactions, not shown: 3."]


def test_times_are_shown_in_utc_with_names_and_units_on_all_axes():
    bars, points, _ = charts.timeline_chart(timeline(*ENDED)).to_dict()["layer"]
    for layer in (bars, points):
        assert (layer["encoding"]["x"]["scale"]["type"], layer["encoding"]["x"]["title"]) == ("utc", "time (UTC)")
    lags = charts.lag_chart([], 0).to_dict()["hconcat"]
    assert [part["encoding"]["x"]["title"] for part in lags] == ["lag (minutes)", "lag (offsets)"]
    nights = charts.verdict_chart([]).to_dict()["encoding"]
    assert (nights["x"]["title"], nights["y"]["title"]) == ("instant of the audit (UTC)", "open transactions (number)")


LAG = {
    "topic": "orders", "partition": 0, "lag_ms": 90_000, "lag_offsets": 40, "lag_bytes": 4096, "last_stable_offset": 8,
    "high_watermark": 48, "blocking_producer_id": 2, "blocking_transactional_id": None, "blocking_verdict": "HANGING",
}  # fmt: skip


def test_a_lag_names_what_blocks_and_an_unknown_one_is_not_zero():
    unknown = {
        **LAG,
        "partition": 1,
        "lag_ms": None,
        "blocking_transactional_id": "billing-0",
        "blocking_verdict": None,
    }
    spec = charts.lag_chart([LAG, unknown], 7).to_dict()
    rows = data(spec)[0]
    assert drawn(rows, "partition", "minutes", "offsets", "blocked by", "verdict") == [
        ("orders-0", 1.5, 40, "producer 2", "HANGING"),
        ("orders-1", None, 40, "billing-0", "UNKNOWN"),
    ]
    assert spec["title"]["subtitle"][0].startswith("The 2 longest of 7 lags.")
    assert "blocked by" in [shown["field"] for shown in spec["hconcat"][0]["encoding"]["tooltip"]]


def test_nights_are_stacked_in_order_of_time_and_a_good_night_has_its_place():
    night = 86_400_000
    runs = [
        {"run_id": "eu-2", "as_of_ms": AS_OF + night, "verdicts": {"HANGING": 2, "LATE": 1, "OPEN": 900}},
        {"run_id": "eu-1", "as_of_ms": AS_OF, "verdicts": {}},
    ]
    spec = charts.verdict_chart(runs).to_dict()
    (rows,) = data(spec)
    assert list(dict.fromkeys(row["run"] for row in rows)) == ["eu-1", "eu-2"]
    assert {row["run"]: row["night"] for row in rows}["eu-1"] == "2026-11-21 07:42:41Z"
    counts = {(row["run"], row["verdict"]): row["transactions"] for row in rows if row["transactions"]}
    assert counts == {("eu-2", "HANGING"): 2, ("eu-2", "LATE"): 1}, "OPEN would dwarf the others"
    assert spec["encoding"]["y"]["field"] == "transactions"
    assert spec["encoding"]["y"]["axis"]["tickCount"] == 3, "more than the highest bar would label halves"


@pytest.mark.parametrize("number", range(4))
def test_text_from_logs_is_data_only_and_cannot_end_a_script(number):
    shown, other = all_charts(EVIL)[number], all_charts("x")[number]
    assert "<script>alert" not in shown.to_html()
    specs = [chart.to_dict() for chart in (shown, other)]
    names = [list(spec.pop("datasets")) for spec in specs]
    texts = [json.dumps(spec) for spec in specs]
    for place, (before, after) in enumerate(zip(*names, strict=True)):  # the name of data is its digest
        texts = [texts[0].replace(before, f"data {place}"), texts[1].replace(after, f"data {place}")]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("number", range(4))
def test_no_label_is_cut_off(number):
    spec = json.dumps(all_charts("x" * 300)[number].to_dict())
    assert '"labelLimit": 0' in spec
    assert "x" * 300 in spec


def test_a_chart_is_the_same_each_time():
    assert [chart.to_json() for chart in all_charts("x")] == [chart.to_json() for chart in all_charts("x")]


def test_without_altair_a_chart_names_the_extra():
    asked = "import sys; sys.modules['altair'] = None; import txnlib.charts"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith(
        f"MissingExtraError: a chart needs Altair: {sys.executable} -m pip install 'txnlib[charts]'"
    )
