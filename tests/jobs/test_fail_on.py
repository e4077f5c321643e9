"""What makes an audit fail a pipeline."""

import pytest

from txnlib.ask.run_result import is_failure
from txnlib.errors import UsageError
from txnlib.jobs.options import parse_fail_on

NOTHING = {
    "alarms": {"OPEN": 3},
    "new": {"OPEN": 3},
    "findings": {"ERROR": 2},
    "coverage": {"COMPLETE": 9, "DAMAGED": 0},
}
KNOWN = {**NOTHING, "alarms": {"HANGING": 1, "LATE": 2}, "new": {"LATE": 1}}


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
            {**NOTHING, "verdicts": {"LATE": 2}, "alarms": {"LOOKS_LATE": 2}, "new": {"LOOKS_LATE": 2}},
            False,
        ),
        ("in-doubt", KNOWN, False),
        ("in-doubt", {**KNOWN, "in_doubt": {"IN_TIME": 3}}, False),
        ("in-doubt", {**KNOWN, "in_doubt": {"IN_TIME": 3, "OVERDUE": 1}}, True),
        ("stuck", {**KNOWN, "in_doubt": {"OVERDUE": 1}}, False),
        ("critical", {**NOTHING, "findings": {"CRITICAL": 1}}, True),
        ("coverage", {**NOTHING, "coverage": {"COMPLETE": 9, "MISSING": 1}}, True),
        ("coverage", {**NOTHING, "coverage": {"PARTIAL": 1}}, True),
        ("", KNOWN, False),
        (None, KNOWN, False),
    ],
)
def test_an_audit_fails_on_what_was_named_alone(given, counts, expected):
    assert is_failure(parse_fail_on(given), counts) is expected


@pytest.mark.parametrize("given", ["open", "new-open", "lost", "hanging,lost"])
def test_what_is_no_condition_is_refused(given):
    with pytest.raises(UsageError, match="expected some of hanging"):
        parse_fail_on(given)
