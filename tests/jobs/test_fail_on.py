"""What makes an audit fail a pipeline."""

import pytest

from txnlib.errors import UsageError
from txnlib.jobs.fail_on import matches, parse_fail_on

NOTHING = {
    "verdicts": {"OPEN": 3},
    "new": {"OPEN": 3},
    "findings": {"ERROR": 2},
    "coverage": {"COMPLETE": 9, "DAMAGED": 0},
}
KNOWN = {**NOTHING, "verdicts": {"HANGING": 1, "LATE": 2}, "new": {"LATE": 1}}


@pytest.mark.parametrize(
    ("given", "counts", "expected"),
    [
        ("hanging,stuck,late,suspect,unknown,new,critical,coverage", NOTHING, False),
        ("hanging", KNOWN, True),
        ("HANGING , stuck", KNOWN, True),
        ("stuck", KNOWN, False),
        ("new", KNOWN, True),
        ("new-late", KNOWN, True),
        ("new-hanging", KNOWN, False),
        (
            "late,new",
            {**NOTHING, "verdicts": {"LOOKS_LATE": 2}, "new": {"LOOKS_LATE": 2}},
            False,
        ),
        ("holding-hanging", KNOWN, False),
        ("holding-hanging", {**KNOWN, "holding": {"LATE": 1}}, False),
        ("holding-hanging", {**KNOWN, "holding": {"HANGING": 1}}, True),
        ("in-doubt", KNOWN, False),
        ("in-doubt", {**KNOWN, "in_doubt": {"IN_TIME": 3}}, False),
        ("in-doubt", {**KNOWN, "in_doubt": {"IN_TIME": 3, "OVERDUE": 1}}, True),
        ("stuck", {**KNOWN, "in_doubt": {"OVERDUE": 1}}, False),
        ("critical", {**NOTHING, "findings": {"CRITICAL": 1}}, True),
        ("coverage", {**NOTHING, "coverage": {"COMPLETE": 9, "MISSING": 1}}, True),
        ("coverage", {**NOTHING, "coverage": {"PARTIAL": 1}}, True),
        ("coverage", {**NOTHING, "unread": {"FILES": 1}}, True),
        ("unknown", {**NOTHING, "unread": {"FILES": 1}}, True),
        ("coverage", {**NOTHING, "unread": {"FILES": 0, "PARTITIONS": 1}}, True),
        ("unknown", {**NOTHING, "unread": {"PARTITIONS": 1}}, True),
        ("hanging,stuck,late,suspect,new,critical", {**NOTHING, "unread": {"FILES": 1}}, False),
        ("coverage,unknown", {**NOTHING, "unread": {"FILES": 0, "PARTITIONS": 0}}, False),
        ("", KNOWN, False),
        (None, KNOWN, False),
    ],
)
def test_an_audit_fails_on_what_was_named_alone(given, counts, expected):
    assert bool(matches(parse_fail_on(given), counts)) is expected


def test_what_made_it_fail_is_said_once():
    counts = {**NOTHING, "verdicts": {"HANGING": 3}, "new": {"HANGING": 2, "LATE": 1}, "holding": {"HANGING": 4}}
    assert matches(parse_fail_on("hanging,new,new-late,holding-hanging"), counts) == [
        "3 HANGING",
        "2 new HANGING",
        "1 new LATE",
        "4 partitions held by HANGING",
    ]


@pytest.mark.parametrize("given", ["open", "new-open", "lost", "hanging,lost"])
def test_what_is_no_condition_is_refused(given):
    with pytest.raises(UsageError, match="expected some of hanging"):
        parse_fail_on(given)
