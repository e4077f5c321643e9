"""Charts for notebooks, of rows that queries return: timeline, lags, verdicts over nights.

Needs the extra `charts`. Titles and axes are fixed texts. What comes from a log is in the data of a chart only, and
cannot end the script that Altair writes it into.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from txnlib.ask.episode import CONTROLLER, COORDINATOR, Episode, Event
from txnlib.ask.rows import Row
from txnlib.ask.timeline import Timeline
from txnlib.core.display import duration, printable, utc_time
from txnlib.errors import MissingExtraError

try:
    import altair as alt
except ImportError as error:
    raise MissingExtraError("a chart", "Altair", "charts") from error

#: Verdict -> colour, worst first: those of the report page.
VERDICTS: Final = {
    "HANGING": "#b42318",
    "STUCK": "#8f3b00",
    "LATE": "#7a5200",
    "SUSPECT": "#7a3e9d",
    "UNKNOWN": "#4b5563",
    "OPEN": "#1a6b3c",
}
#: Verdicts in the chart over nights: those that need somebody. A busy cluster has thousands of OPEN.
SHOWN: Final = tuple(verdict for verdict in VERDICTS if verdict != "OPEN")
#: How a transaction ended, or its verdict -> colour.
ENDINGS: Final = {"COMMIT": "#8ab4d8", "ABORT": "#9aa0a6", **VERDICTS}
#: Who wrote the record of an event -> shape of its point.
WRITERS: Final = {"producer": "triangle-right", "coordinator": "circle", "marker": "square", "controller": "diamond"}
WIDTH: Final = 640
#: Labels are never cut off.
_WHOLE: Final = alt.Axis(labelLimit=0)


def timeline_chart(history: Episode[Timeline]) -> alt.LayerChart:
    """Each transaction as a bar from its first record to its marker, and the records of both logs as points.

    A lane is a transactional id, or a producer without one; in the timeline of an id, it is a log.
    """
    timeline = history.outcome
    events = [_event(timeline, event) for event in history.events if event.key[0]]
    untimed = len(history.events) - len(events)
    notes = [
        (
            "Bars: from the first record to the marker; open transactions last until the instant of the audit. Points:"
            " records."
        ),
        *([f"Records without a known time, not shown: {untimed}."] if untimed else []),
        *([f"Earlier transactions, not shown: {timeline.earlier}."] if timeline.earlier else []),
    ]
    lane = alt.Y("lane:N", sort=None, axis=_WHOLE, title="producer" if timeline.is_of_partition else "log")
    when = alt.Scale(type="utc", nice=False, padding=8)
    spans = _bars(history)
    bars = (
        alt.Chart(alt.InlineData(values=spans))
        .mark_bar(size=14, strokeWidth=2)
        .encode(
            x=alt.X("from:T", scale=when, title="time (UTC)"),
            x2="to:T",
            y=lane,
            color=_colours("ending", "transaction", ENDINGS, spans),
            stroke=_colours("ending", "transaction", ENDINGS, spans),
            tooltip=_shown("log", "offset", "ending", "lasted", "began", "ended", "producer"),
        )
    )
    points = (
        alt.Chart(alt.InlineData(values=events))
        .mark_point(filled=True, size=45, color="#1b1f24", opacity=0.8)
        .encode(
            x=alt.X("at:T", scale=when, title="time (UTC)"),
            y=lane,
            shape=alt.Shape("by:N", title="record", scale=_scale("by", WRITERS, events)),
            tooltip=_shown("event", "log", "offset", "written", "clock", "producer", "last stable offset", "detail"),
        )
        .add_params(alt.selection_interval(name="zoom", bind="scales", encodings=["x"]))
        .properties(name="records")
    )
    named = (
        alt.Chart(alt.InlineData(values=[{"subject": _text(timeline.subject)}]))
        .mark_text(align="left", baseline="bottom", fontWeight="bold", clip=False)
        .encode(text="subject:N", x=alt.value(0), y=alt.value(-6))
    )
    about = "a partition" if timeline.is_of_partition else "a transactional id"
    return alt.LayerChart(layer=[bars, points, named]).properties(
        width=WIDTH,
        height=alt.Step(30),
        title=_title(f"Transactions of {about} over time", *notes),
        description=f"Transactions: {len(spans)}. Records: {len(events)}.",
    )


def lag_chart(lags: Sequence[Row], lagging: int) -> alt.HConcatChart:
    """Partitions by the lag of their last stable offset, in minutes and in offsets.

    `lags`: rows of `partitions`, longest first; `lagging`: the number of all such partitions. An unknown lag has no
    bar.
    """
    rows = [
        {
            "partition": _text(f"{row['topic']}-{row['partition']}"),
            "minutes": None if row["lag_ms"] is None else round(row["lag_ms"] / 60_000, 1),
            "offsets": row["lag_offsets"],
            "bytes": row["lag_bytes"],
            "last stable offset": row["last_stable_offset"],
            "high watermark": row["high_watermark"],
            "verdict": row["blocking_verdict"] or "UNKNOWN",
            "blocked by": _producer(row["blocking_transactional_id"], row["blocking_producer_id"]),
        }
        for row in lags
    ]
    base = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar()
        .encode(
            color=_colours("verdict", "blocked by a transaction that is", VERDICTS, rows),
            tooltip=_shown(
                "partition",
                "blocked by",
                "verdict",
                "minutes",
                "offsets",
                "bytes",
                "last stable offset",
                "high watermark",
            ),
        )
        .properties(width=WIDTH // 2, height=alt.Step(22))
    )
    minutes = base.encode(
        x=alt.X("minutes:Q", title="lag (minutes)"), y=alt.Y("partition:N", sort=None, axis=_WHOLE, title="partition")
    )
    offsets = base.encode(x=alt.X("offsets:Q", title="lag (offsets)"), y=alt.Y("partition:N", sort=None, axis=None))
    shown = f"The {len(rows)} longest of {lagging} lags." if len(rows) < lagging else "All partitions with a lag."
    note = f"{shown} read_committed consumers wait at the last stable offset." if rows else "No partition has a lag."
    return alt.hconcat(minutes, offsets).properties(
        title=_title("Lag of the last stable offset", note), description=f"Partitions with a lag: {lagging}."
    )


def verdict_chart(runs: Sequence[Row]) -> alt.Chart:
    """Transactions that need somebody, stacked by verdict, for each finished run from the oldest to the newest.

    `runs`: run_id, as_of_ms, and verdicts, the number of open transactions with each.
    """
    rows = [
        {
            "night": utc_time(run["as_of_ms"]),
            "verdict": verdict,
            "transactions": run["verdicts"].get(verdict, 0),
            "severity": len(SHOWN) - number,
            "run": _text(run["run_id"]),
        }
        for run in sorted(runs, key=lambda run: run["as_of_ms"])
        for number, verdict in enumerate(SHOWN)
    ]
    most = max([1, *(sum(run["verdicts"].get(verdict, 0) for verdict in SHOWN) for run in runs)])
    chart: alt.Chart = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar()
        .encode(
            x=alt.X(
                "night:O", sort=None, axis=alt.Axis(labelLimit=0, labelAngle=-40), title="instant of the audit (UTC)"
            ),
            y=alt.Y(
                "transactions:Q", axis=alt.Axis(tickCount=min(5, most), format="d"), title="open transactions (number)"
            ),
            color=_colours("verdict", "verdict", VERDICTS, rows),
            order=alt.Order("severity:Q", sort="descending"),
            tooltip=_shown("night", "verdict", "transactions", "run"),
        )
        .properties(
            width=alt.Step(48),
            height=220,
            title=_title("Verdicts over nights", "Open transactions that are in time (OPEN) are not shown."),
            description=f"Finished audits: {len(runs)}.",
        )
    )
    return chart


def _bars(history: Episode[Timeline]) -> list[Row]:
    """The transactions, each from its first record to the marker of its producer; without a marker, to the instant of
    the audit."""
    opened: dict[tuple[str, int | None], Event] = {}
    bars = []
    on_partitions = (event for event in history.events if event.clock not in (COORDINATOR, CONTROLLER))
    for event in sorted(on_partitions, key=lambda event: (event.log, event.offset)):
        producer = (event.log, event.producer_id)
        if not event.is_marker:
            opened[producer] = event
        elif producer in opened:
            bars.append(_bar(history.outcome, opened.pop(producer), event.key[0], event.event.partition(" ")[0]))
    for began in opened.values():
        bars.append(_bar(history.outcome, began, max(history.as_of_ms, began.key[0]), began.mark or "OPEN"))
    return sorted((bar for bar in bars if bar["from"]), key=lambda bar: (bar["from"], bar["log"], bar["offset"]))


def _bar(timeline: Timeline, began: Event, until_ms: int, ending: str) -> Row:
    return {
        "lane": _lane(timeline, began),
        "from": began.key[0],
        "to": until_ms,
        "ending": ending if ending in ENDINGS else "UNKNOWN",
        "log": _text(began.log),
        "offset": began.offset,
        "lasted": duration(until_ms - began.key[0]),
        "began": utc_time(began.at_ms),
        "ended": "still open" if ending in VERDICTS else utc_time(until_ms),
        "producer": _producer(began.transactional_id, began.producer_id),
    }


def _event(timeline: Timeline, event: Event) -> Row:
    return {
        "lane": _lane(timeline, event),
        "at": event.key[0],
        "by": "marker" if event.is_marker else event.written_by.split(" ")[0],
        "event": _text(event.event),
        "log": _text(event.log),
        "offset": event.offset,
        "written": utc_time(event.at_ms),
        "clock": event.clock.lower(),
        "producer": _producer(event.transactional_id, event.producer_id),
        "last stable offset": event.last_stable_offset,
        "detail": _text(event.detail),
    }


def _lane(timeline: Timeline, event: Event) -> str:
    if not timeline.is_of_partition or event.clock == CONTROLLER:
        return _text(event.log)
    return _producer(event.transactional_id, event.producer_id)


def _producer(transactional_id: str | None, producer_id: int | None) -> str:
    if transactional_id is not None:
        return _text(transactional_id)
    return "unknown" if producer_id is None else f"producer {producer_id}"


def _text(text: str) -> str:
    """Text from a log. Altair writes data into a script without escapes: `</script>` in an id would end it."""
    return printable(text).replace("<", "\\u003c")


def _colours(field: str, title: str, colours: Mapping[str, str], rows: Sequence[Row]) -> alt.Color:
    return alt.Color(f"{field}:N", title=title, scale=_scale(field, colours, rows), legend=alt.Legend(titleLimit=0))


def _scale(field: str, drawn: Mapping[str, str], rows: Sequence[Row]) -> alt.Scale:
    """How each value that the rows have is drawn."""
    used = {row[field] for row in rows}
    return alt.Scale(
        domain=[name for name in drawn if name in used], range=[drawn[name] for name in drawn if name in used]
    )


def _shown(*fields: str) -> list[alt.Tooltip]:
    return [alt.Tooltip(field, type="nominal") for field in fields]


def _title(text: str, *notes: str) -> alt.TitleParams:
    return alt.TitleParams(text, subtitle=list(notes), anchor="start", offset=20)
