"""The action plan of the report page: every step, by reason, with what its steps share said once."""

from __future__ import annotations

import re
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pages import planned, transaction
from txnlib.ask.page_rows import at_once, is_offered, plan_groups
from txnlib.core.kafka_commands import abort, force_terminate, refusal
from txnlib.page.report_page import advice, timed, with_placeholder

ROWS = st.lists(
    st.builds(
        lambda action, reason, command, notes: (action, reason, command, notes),
        st.sampled_from(["ABORT", "ABORT_LATER", "WAIT"]),
        st.sampled_from(["A", "B"]),
        st.sampled_from([None, "one", "two"]),
        st.lists(st.sampled_from("xyz"), max_size=3),
    ),
    min_size=1,
    max_size=20,
)


def made(rows: list[tuple[str, str, str | None, list[str]]]) -> list[dict[str, object]]:
    return [
        planned(
            transaction(
                action=action, reason=reason, command=command, notes=notes, number=i, start_offset=i, places=None
            )
        )
        for i, (action, reason, command, notes) in enumerate(rows)
    ]


@given(ROWS)
def test_no_step_is_lost_and_nothing_that_is_said_of_it(rows):
    plan = made(rows)
    groups = plan_groups(plan)
    kept = [row["number"] for group in groups for step in group.steps for row in step.rows]
    assert sorted(kept) == list(range(len(plan)))
    assert [group.action for group in groups] == list(dict.fromkeys(row["action"] for row in plan))
    for group in groups:
        assert group.count == sum(len(step.rows) for step in group.steps)
        for step in group.steps:
            for note in chain.from_iterable(row["notes"] for row in step.rows):
                assert (note in group.says) != (note in step.says)


def test_one_command_is_one_step_and_rows_without_a_command_are_their_own():
    rows = made(
        [
            ("ABORT", "A", "one", []),
            ("ABORT", "A", "two", []),
            ("ABORT", "A", "one", []),
            *[("WAIT", "A", None, [])] * 2,
        ]
    )
    assert [[row["number"] for row in each] for each in at_once(rows)] == [[0, 2], [1], [3], [4]]


def test_only_a_command_to_be_run_now_is_offered():
    assert is_offered(transaction())
    assert not is_offered(transaction(action="ABORT_LATER"))
    assert not is_offered(transaction(command=None))
    assert not is_offered(transaction(command="abort \u202e"))


# ---- Text


NAMES = st.text(min_size=1).filter(lambda name: refusal(name) is None)


@given(NAMES)
def test_only_the_broker_is_a_place_to_fill_in_whatever_a_log_says(name):
    for command in (
        force_terminate(f"$BOOTSTRAP {name} $BOOTSTRAP"),
        abort(f" --bootstrap-server $BOOTSTRAP {name}", 0, 1),
    ):
        filled = str(with_placeholder(command))
        assert filled.count('<span class="bootstrap">$BOOTSTRAP</span>') == 1
        assert filled.index('<span class="bootstrap">') == len(
            '<span class="word">kafka-transactions.sh</span> <span class="word">--bootstrap-server</span> '
        )


def test_a_command_that_does_not_begin_like_ours_has_no_place_to_fill_in():
    command = "echo; kafka-topics.sh --bootstrap-server $BOOTSTRAP --list"
    for told in (command, "kafka-topics.sh --bootstrap-server $BOOTSTRAPS"):
        assert 'class="bootstrap"' not in with_placeholder(told)
        assert re.sub(r"</?span.*?>", "", str(with_placeholder(told))) == told


def test_names_in_a_text_break_only_where_a_reader_expects_it():
    assert (
        timed("(ledger-1 is, find-hanging --start-offset 2")
        == '<span class="word">(ledger-1</span> is, <span class="word">find-hanging</span> <span'
        ' class="word">--start-offset</span> 2'
    )
    assert (
        timed("pay-0 and wal-b-0: <MARKER_REFUSED>, x_y")
        == '<span class="word">pay-0</span> and <span class="word">wal-b-0</span>: &lt;MARKER_<wbr>REFUSED&gt;, x_y'
    )


def test_instants_in_a_text_are_times_and_nothing_else_is_markup():
    assert (
        timed("since 2026-11-21 07:19:41Z <b>")
        == 'since <time datetime="2026-11-21T07:19:41Z">2026-11-21 07:19:41Z</time> &lt;b&gt;'
    )
    assert "<time" not in timed("2026-11-21 07:19:41")
    assert timed("2026-11-21T07:19:41Z") == timed("2026-11-21 07:19:41Z"), "one form on one screen"
    assert '<time datetime="2026-11-21T07:19:41.372Z">2026-11-21 07:19:41.372Z</time>' in timed(
        '{"start_ms":1795245581372}'
    )


def test_advice_has_code_for_what_is_in_backticks():
    assert advice("look into `findings` & <b>") == "Look into <code>findings</code> &amp; &lt;b&gt;"


@pytest.mark.parametrize("tool", ["kafka-transactions.sh", "kafka-transactions"], ids=["Kafka's", "Confluent's"])
def test_the_address_of_a_command_is_an_element_whatever_its_tool_is_called(tool):
    shown = with_placeholder(f"{tool} --bootstrap-server $BOOTSTRAP abort --topic t")
    assert '<span class="bootstrap">$BOOTSTRAP</span>' in shown
