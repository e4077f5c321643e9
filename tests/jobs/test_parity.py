"""Audits against Kafka's live tools and the truth of each capture.

Every capture with recorded live output, from raw files and from text; the copies are in tests/captures.
"""

from pathlib import Path

import pytest

from tests.support import live_output
from tests.support.audits import AuditTables, audited

#: capture -> dumps to audit besides the raw files; each tool generation is read at least once.
CAPTURES = {
    "quickstart": [], "causes-3.9": ["2.8.2"], "transactions-v2-4.3": ["4.3.0"], "expired-3.7": ["3.7.2"],
    "two-phase-4.3": [], "hostile-3.9": ["4.1.1-print-data-log"], "hostile-4.3": [], "healthy-4.0": ["4.0.1"],
    "cluster-3.9": ["3.9.1"], "real-clients-4.2": ["4.2.1"], "prepared-4.1": [], "tools-3.7": [],
    "overflow-4.2": ["4.2.1"], "damaged-3.8": [], "nights-3.9/night-3": [], "old-disk-4.1": [], "md-4.1": [],
}  # fmt: skip
INPUTS = [(name, "brokers") for name in CAPTURES] + [(name, f"dumps/{v}") for name, vs in CAPTURES.items() for v in vs]
#: An audit takes half a minute, so CI has time for these only: raw files and text, the oldest tool and the newest.
IN_CI = {
    ("cluster-3.9", "brokers"),
    ("hostile-3.9", "brokers"),
    ("causes-3.9", "dumps/2.8.2"),
    ("transactions-v2-4.3", "dumps/4.3.0"),
}
MARKED = [pytest.param(given, marks=[] if given in IN_CI else pytest.mark.slow) for given in INPUTS]


@pytest.fixture(scope="module", params=MARKED, ids=lambda given: "-".join(given).replace("/", "-"))
def audit(request, captures: Path) -> tuple[Path, str, AuditTables]:
    name, part = request.param
    capture = captures / name
    return capture, part, audited(capture / part, "--as-of", str(live_output.as_of(capture)))


def test_find_hanging_prints_the_same_rows(audit):
    capture, part, tables = audit
    theirs, ours = live_output.hanging(capture), live_output.our_hanging(tables)
    # The live tool sees nothing of a partition without a leader, and nothing at all where it failed.
    is_blind = any(live_output.failed(path) for path in (capture / "live").glob("find-hanging-broker-*.txt"))
    unled = live_output.leaderless(capture)
    seen = {key: row for key, row in ours.items() if key in theirs or not (is_blind or f"{key[0]}-{key[1]}" in unled)}
    theirs = {key: row for key, row in theirs.items() if key not in allowed(capture.name, part)}
    assert without_minutes(seen) == without_minutes(theirs)
    for key, row in theirs.items():
        assert row[-1] - seen[key][-1] in (0, 1), "the tool reads its clock after ours"


def without_minutes(rows):
    return {key: row[:-1] for key, row in rows.items()}


def test_describe_producers_prints_the_same_rows(audit):
    capture, part, tables = audit
    theirs, ours = live_output.producers(capture), live_output.our_producers(tables)
    if part != "brokers":  # a text dump prints no log start: what only a snapshot remembers may be beyond it
        theirs = {key: row for key, row in theirs.items() if not key[0].startswith("fin.kept")}
    assert {key: ours.get(key) for key in theirs} == theirs


def test_list_prints_the_same_ids(audit):
    capture, _, tables = audit
    theirs, ours = live_output.listed(capture), live_output.our_listed(tables)
    if theirs is None:
        assert any(live_output.failed(path) for path in (capture / "live").glob("*.txt")), (
            "list.txt is missing without a reason"
        )
        return
    # The tool prints a tab inside an id as a column break, so neither half of such a row is one.
    torn = {name for name in theirs if any(our.startswith(name + "\t") for our in ours)}
    torn |= {name for name in ours if "\t" in name}
    assert {k: v for k, v in ours.items() if k not in torn} == {k: v for k, v in theirs.items() if k not in torn}


def test_what_was_left_open_has_the_verdict_it_deserves(audit):
    capture, part, tables = audit
    if capture.name == "md-4.1":  # its truth names none: `test_metadata_audit` has them
        return
    opened = {(row["topic"], row["partition"], row["producer_id"]): row for row in tables.rows("open_transactions")}
    expected = {}
    for left in live_output.truth(capture)["open"]:
        key = (left["topic"], left["partition"], left["producer_id"])
        expected[key] = left["expected_verdict"]
    actual = {key: row["verdict"] for key, row in opened.items()}
    rest = {key: verdict for key, verdict in actual.items() if key not in expected}
    assert all(
        key in live_output.stuck(capture) and verdict in ("STUCK", "OPEN", "UNKNOWN") for key, verdict in rest.items()
    ), rest
    unproven = UNPROVEN_BY_TEXT.get(capture.name, {}) if part != "brokers" else {}
    assert {key: actual.get(key) for key in expected} == {**expected, **allowed(capture.name, part), **unproven}


def allowed(name: str, part: str) -> dict[tuple[str, int, int], str | None]:
    """Where text alone cannot tell what raw files can, and the audit says so."""
    return LESS_BY_TEXT.get(name, {}) if part != "brokers" else {}


#: Text has no checkpoint that proves these to have begun before their coordinators were copied, milliseconds earlier.
UNPROVEN_BY_TEXT: dict[str, dict[tuple[str, int, int], str]] = {
    "cluster-3.9": {("fin.kept", 0, 0): "UNKNOWN", ("fin.main", 2, 3022): "UNKNOWN"}
}

#: An empty log prints nothing, so a coordinator partition that lost its disk is, in text, one that was not captured.
LESS_BY_TEXT: dict[str, dict[tuple[str, int, int], str | None]] = {
    "real-clients-4.2": {("carts", 1, 29): "UNKNOWN", ("receipts", 0, 34): "UNKNOWN"}
}


def test_copies_and_transaction_indexes_agree(audit):
    _, _, tables = audit
    names = {"COPIES_DISAGREE", "TRANSACTION_INDEX_DISAGREES"}
    assert [row for row in tables.rows("findings") if row["name"] in names] == []
