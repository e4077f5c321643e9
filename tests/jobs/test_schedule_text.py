"""The reader of schedules as text: what each word does, and what it refuses."""

from collections.abc import Callable

import pytest

from tests.support import schedule_text
from tests.support.cluster import HOUR, MINUTE, NOON, SECOND, Cluster, id_in
from tests.support.refutations import (
    NO_COMMIT,
    OF_V2,
    compacted,
    elected_since,
    led_by_another,
    one_leader,
    other,
    tick,
)
from tests.support.schedule_text import OPTIONS, VERDICTS, WORDS, milliseconds, schedules_of
from tests.support.schedules import Expected, Story

FOREVER = 2**31 - 1
#: Events, and the calls that do the same.
EVENTS: dict[str, Callable[[Story], object]] = {
    "Empty 0": lambda s: s.note("Empty", 0),
    "Empty 1m epoch=2 leader_epoch=3": lambda s: s.note("Empty", MINUTE, epoch=2, leader_epoch=3),
    "Empty 1m pid=+1": lambda s: s.note("Empty", MINUTE, pid=s.pid + 1),
    "Empty 1m timeout=never v2": lambda s: s.note("Empty", MINUTE, transaction_timeout_ms=FOREVER, **OF_V2),
    "Ongoing 1m timeout=3h": lambda s: s.note("Ongoing", MINUTE, [s.place], transaction_timeout_ms=3 * HOUR),
    "Ongoing 1m on 0,1": lambda s: s.note("Ongoing", MINUTE, [s.place, (s.topic, 1)]),
    "Ongoing 1m start=50s": lambda s: s.note("Ongoing", MINUTE, [s.place], start=50 * SECOND),
    "PrepareCommit 2m": lambda s: s.note("PrepareCommit", 2 * MINUTE, [s.place]),
    "PrepareAbort 2m start=1m next_pid=+1": lambda s: s.note(
        "PrepareAbort", 2 * MINUTE, [s.place], start=MINUTE, next_producer_id=s.pid + 1
    ),
    "PrepareEpochFence 2m": lambda s: s.note("PrepareEpochFence", 2 * MINUTE, [s.place]),
    "CompleteCommit 2m updated=1m stamp=3m": lambda s: s.note(
        "CompleteCommit", 2 * MINUTE, stamp=3 * MINUTE, last_update_timestamp_ms=NOON + MINUTE
    ),
    "CompleteAbort 2m": lambda s: s.note("CompleteAbort", 2 * MINUTE),
    "Dead 2m": lambda s: s.note("Dead", 2 * MINUTE),
    "tombstone 3m": lambda s: s.note(None, 3 * MINUTE),
    "next coordinator 10m leader_epoch=4": lambda s: s.c.note(
        other(s, "later"), "Empty", 920_000 + s.number, 0, (), 10 * MINUTE, leader_epoch=4
    ),
    "write 3m": lambda s: s.write(3 * MINUTE),
    "write 3m on 0,1 epoch=1 pid=+700": lambda s: [
        s.c.write((s.topic, partition), s.pid + 700, 1, 3 * MINUTE) for partition in (0, 1)
    ],
    "COMMIT 31m coordinator_epoch=12": lambda s: s.c.mark(
        s.place, s.pid, 0, "COMMIT", 31 * MINUTE, coordinator_epoch=12
    ),
    "ABORT 31m on 1 epoch=5 stamp=30m": lambda s: s.c.mark(
        (s.topic, 1), s.pid, 5, "ABORT", 31 * MINUTE, stamp=30 * MINUTE
    ),
    "begin 1m on 1 epoch=2": lambda s: s.begin(MINUTE, [(s.topic, 1)], epoch=2),
    "end 2m": lambda s: s.end(2 * MINUTE, start=2 * MINUTE),
    "end 2m ABORT marker_epoch=1 start=1m": lambda s: s.end(2 * MINUTE, "ABORT", start=MINUTE, marker_epoch=1),
    "end 2m on 1 lost incomplete": lambda s: s.end(
        2 * MINUTE, start=2 * MINUTE, places=[(s.topic, 1)], lost=[(s.topic, 1)], complete=False
    ),
    "T 1m": lambda s: s.transaction(MINUTE),
    "T 1m ABORT": lambda s: s.transaction(MINUTE, "ABORT"),
    "beat 0 5m": lambda s: s.beat(0, 5 * MINUTE),
    "beat 5m on 1 leader_epoch=3": lambda s: s.beat(5 * MINUTE, partition=1, leader_epoch=3),
    "tick 0 5m skew=-2h": lambda s: tick(s, 0, 5 * MINUTE, skew=-2 * HOUR),
    "tick 5m on 1 leader_epoch=3": lambda s: tick(s, 5 * MINUTE, partition=1, leader_epoch=3),
    "elected": elected_since,
    "one leader": one_leader,
    "led by another": led_by_another,
    "led by another skew=150ms": lambda s: led_by_another(s, 150),
    "compacted": compacted,
    "compacted 30s": lambda s: compacted(s, 30 * SECOND),
}


def story() -> Story:
    return Story(Cluster(), "topic", id_in(7, "topic"), 1_000, 7)


def records(s: Story) -> dict[str, object]:
    return {name: getattr(s.c, name) for name in ("logs", "copies", "skews", "leaders")}


def told(text: str) -> tuple[Story, Expected]:
    s = story()
    (schedule,) = schedules_of(f"name: {text}").values()
    return s, schedule(s)


@pytest.mark.parametrize("text", EVENTS)
def test_an_event_does_what_its_word_says(text):
    by_calls = story()
    EVENTS[text](by_calls)
    assert records(told(f"{text} → safe")[0]) == records(by_calls)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("Ongoing 1m | PrepareCommit 3m", MINUTE),
        ("Ongoing 1m start=50s | PrepareCommit 3m", 50 * SECOND),
        ("Ongoing 1m | Ongoing 2m | CompleteCommit 3m", 2 * MINUTE),
        ("begin 1m | end 3m", MINUTE),
    ],
)
def test_a_transaction_ends_that_began_last(text, start):
    s, _ = told(f"{text} → safe")
    ((_, log),) = [(place, log) for place, log in s.c.logs.items() if place[0] != s.topic]
    assert log[-1].value.start_timestamp_ms == NOON + start


def test_every_word_and_option_is_tested_and_in_the_grammar():
    tested = " | ".join(EVENTS)
    for word in WORDS:
        assert any(text.startswith(word) for text in EVENTS), word
    states = {word for word in WORDS if word[0].isupper() and word not in ("T", "COMMIT", "ABORT")}
    for each in {*WORDS, *OPTIONS} - states:
        assert f"`{each}" in schedule_text.__doc__, each
    for option in {*OPTIONS, "on", "lost", "incomplete", "v2"}:
        assert option in tested, option


@pytest.mark.parametrize(
    ("text", "ms"),
    [("0", 0), ("5ms", 5), ("10s", 10_000), ("2h", 7_200_000), ("20m-20ms", 1_199_980), ("-24h+1m", -86_340_000)],
)
def test_times_are_sums(text, ms):
    assert milliseconds(text) == ms


@pytest.mark.parametrize("text", ["", "5", "5d", "m", "1h30m", "1.5h", "1m+", "--1m"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ValueError, match="no time"):
        milliseconds(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("safe", Expected(1_000, "HANGING", is_safe=True)),
        ("unsafe", Expected(1_000, "HANGING")),
        ("unsafe NO_COMMIT", Expected(1_000, "HANGING", fails=NO_COMMIT)),
        ("refuted error", Expected(1_000, "HANGING", or_verdict="UNKNOWN", is_error=True)),
        ("closed finds=*", Expected(1_000, None, finds=("*",))),
        ("STUCK reason=MARKER_OVERDUE", Expected(1_000, "STUCK", reason="MARKER_OVERDUE")),
        (
            "LATE or OPEN never_finds=MARKER_MISSING,MARKER_WITHOUT_DECISION",
            Expected(1_000, "LATE", or_verdict="OPEN", never_finds=("MARKER_MISSING", "MARKER_WITHOUT_DECISION")),
        ),
        ("safe pid=+700", Expected(1_700, "HANGING", is_safe=True)),
    ],
)
def test_what_an_audit_says_is_read(text, expected):
    assert told(f"T 1m → {text}")[1] == expected


def test_schedules_keep_their_order_and_go_on_over_lines():
    found = schedules_of("""
        # Why.
        second: Empty 0 → safe
        first:
            Empty 0 |
            write 3m → unsafe

        third: Empty 0 → closed
    """)
    assert list(found) == ["second", "first", "third"]
    s = story()
    found["first"](s)
    assert [len(log) for log in s.c.logs.values()] == [1, 1]


@pytest.mark.parametrize(
    "wrong",
    [
        "name: Emty 0 → safe",
        "name: Ongoin 1m → safe",
        "name: write 3 → safe",
        "name: write → safe",
        "name: write 3m 4m → safe",
        "name: elected 3m → safe",
        "name: write 3m epoch → safe",
        "name: write 3m epoch=one → safe",
        "name: write 3m coordinator_epoch=1 → safe",
        "name: T 1m lost → safe",
        "name: end 2m lost=1 → safe",
        "name: write 3m on → safe",
        "name: write 3m on one → safe",
        "name: Ongoing 1m timeout=forever → safe",
        "name: write 3m → save",
        "name: write 3m →",
        "name: write 3m → unsafe NO_SUCH",
        "name: write 3m → STUCK or STOPPED",
        "name: write 3m → STUCK or",
        "name: write 3m → STUCK reason=NONE",
        "name: write 3m → closed finds",
        "name: write 3m → closed never_finds=MARKER_LOST",
        "write 3m → safe",
        "before: write 3m → safe",
    ],
)
def test_a_wrong_line_is_refused_and_named(wrong):
    with pytest.raises(ValueError) as raised:  # noqa: PT011 (the next line says which)
        schedules_of(f"# Why.\nbefore: Empty 0 → safe\n\n{wrong}\nafter: Empty 0 → safe")
    assert str(raised.value).startswith(f"line 4, {wrong!r}: ")


@pytest.mark.parametrize("text", ["name:\n    Empty 0", "name:\n    Empty 0\nlast: Empty 0 → safe"])
def test_a_schedule_without_an_arrow_is_refused_and_named(text):
    with pytest.raises(ValueError, match="name has no arrow"):
        schedules_of(text)


def test_every_verdict_may_be_expected():
    for verdict in VERDICTS:
        assert told(f"T 1m → {verdict}")[1].producer_id == 1_000
