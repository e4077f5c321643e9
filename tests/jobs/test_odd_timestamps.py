"""Laws of timestamps that are out of range: one finding, no other change."""

import re

import pytest

from tests.support.audits import AuditTables, audited
from tests.support.cluster import HOUR, MINUTE, NOON, SECOND, Cluster, id_in
from tests.support.delta_tables import READ_BY_COMMANDS, txn_audit

END = 3 * HOUR
#: Where a client, or a broker gone mad, stamps its batches, in epoch ms.
ODD = {
    "greatest": (1 << 63) - 1, "least": -(1 << 63) + 1, "nanoseconds": (NOON + MINUTE) * 1_000_000,
    "microseconds": (NOON + MINUTE) * 1_000, "negative": -2, "zero": 0,
}  # fmt: skip
#: Kafka's -1 says that there is no time.
STAMPS = {**ODD, "none": -1}
TOPIC_OF_OTHERS = "orders"


def built(*, odd: bool) -> Cluster:
    """A cluster whose clients and coordinators write odd times, or the same without any of them."""
    c = Cluster()
    others = (TOPIC_OF_OTHERS, 0)
    for number, (name, stamp) in enumerate(STAMPS.items() if odd else ()):
        topic, at = f"stamped-{name}", 10 * MINUTE
        hanging, expected, ended, told, marked = (1_000 * (number + 1) + n for n in range(5))
        c.write((topic, 0), hanging, 0, at, stamp=stamp - NOON)
        c.begin(id_in(number, f"expected-{name}"), expected, 0, [(topic, 1)], END - 20 * SECOND)
        c.write((topic, 1), expected, 0, END - 10 * SECOND, stamp=stamp - NOON)
        # Ended, with odd data; with odd coordinator records; with an odd marker.
        c.begin(id_in(number, f"ended-{name}"), ended, 0, [(topic, 2)], at)
        c.write((topic, 2), ended, 0, at + SECOND, stamp=stamp - NOON)
        c.end(id_in(number, f"ended-{name}"), ended, 0, [(topic, 2)], at + 2 * SECOND, start=at)
        owner, place = id_in(number, f"told-{name}"), (topic, 3)
        times = {"last_update_timestamp_ms": stamp, "start_timestamp_ms": stamp}
        c.note(owner, "Ongoing", told, 0, [place], at, **times)
        c.write(place, told, 0, at + 5)
        c.note(owner, "PrepareCommit", told, 0, [place], at + SECOND, **times)
        c.mark(place, told, 0, "COMMIT", at + SECOND + 10)
        c.note(owner, "CompleteCommit", told, 0, (), at + SECOND + 20, **times)
        c.begin(id_in(number, f"marked-{name}"), marked, 0, [(topic, 4)], at)
        c.note(id_in(number, f"marked-{name}"), "PrepareAbort", marked, 0, [(topic, 4)], at + SECOND, start=at)
        c.mark((topic, 4), marked, 0, "ABORT", at + SECOND + 10, stamp=stamp - NOON)
        c.note(id_in(number, f"marked-{name}"), "CompleteAbort", marked, 0, (), at + SECOND + 20, start=at)
        c.write(others, 500 + number, 0, at + 30 * SECOND, stamp=stamp - NOON, is_transactional=False)
        for partition in range(5):
            c.beat((topic, partition), (MINUTE, 30 * MINUTE, 90 * MINUTE), 900 + 10 * number + partition)
    c.beat(others, (MINUTE, 90 * MINUTE), 1)
    c.write(others, 2, 0, 20 * MINUTE)
    c.begin(id_in(40, "late"), 3, 0, [(TOPIC_OF_OTHERS, 1)], 20 * MINUTE)
    c.beat((TOPIC_OF_OTHERS, 1), (MINUTE, 90 * MINUTE), 4)
    c.begin(id_in(41, "in-time"), 5, 0, [(TOPIC_OF_OTHERS, 2)], END - 30 * SECOND)
    return c


@pytest.fixture(scope="module")
def odd(tmp_path_factory) -> AuditTables:
    return audited(built(odd=True).capture(tmp_path_factory.mktemp("odd") / "brokers", END))


def opened(tables: AuditTables) -> dict[tuple[str, int, int], dict]:
    return {(row["topic"], row["partition"], row["producer_id"]): row for row in tables.rows("open_transactions")}


def test_what_others_have_open_is_judged_as_ever(odd):
    found = {key: row["verdict"] for key, row in opened(odd).items() if key[0] == TOPIC_OF_OTHERS}
    assert found == {
        (TOPIC_OF_OTHERS, 0, 2): "HANGING",
        (TOPIC_OF_OTHERS, 1, 3): "LATE",
        (TOPIC_OF_OTHERS, 2, 5): "OPEN",
    }


@pytest.mark.parametrize("name", ODD)
def test_a_time_that_no_clock_shows_is_null_and_said(odd, name):
    number = list(STAMPS).index(name)
    row = opened(odd)[f"stamped-{name}", 0, 1_000 * (number + 1)]
    assert (row["last_timestamp"], row["last_timestamp_ms"], row["duration_minutes"]) == (None, ODD[name], None)
    assert f"its last write is stamped with a time that no clock shows ({ODD[name]} ms)" in row["explanation"]


@pytest.mark.parametrize("name", STAMPS)
def test_what_brokers_prove_counts_in_its_place(odd, name):
    number = list(STAMPS).index(name)
    rows = opened(odd)
    hanging, expected = (rows[f"stamped-{name}", n, 1_000 * (number + 1) + n] for n in (0, 1))
    assert (hanging["verdict"], expected["verdict"]) == ("HANGING", "OPEN")
    marked = 30 * MINUTE + SECOND + 10
    assert hanging["broker_clock_age_ms"] == END - marked


def test_only_they_are_open(odd):
    assert {key[1] for key in opened(odd) if key[0] != TOPIC_OF_OTHERS} == {0, 1}


def test_each_is_a_finding_once(odd):
    rows = [row for row in odd.rows("findings") if row["name"] == "INVALID_TIMESTAMP"]
    places = {(row["topic"], row["producer_id"]) for row in rows}
    assert len(rows) == len(places)
    for name, stamp in ODD.items():
        number = list(STAMPS).index(name)
        first = 1_000 * (number + 1)
        told = {producer for topic, producer in places if topic in (f"stamped-{name}", "__transaction_state")}
        # A coordinator's time below 0 is read as none.
        of_coordinator = {first + 3} if stamp >= 0 else set()
        assert told & set(range(first, first + 5)) == {first, first + 1, first + 4} | of_coordinator
        assert any(str(stamp) in row["evidence"] for row in rows if row["producer_id"] == first)


def test_no_other_finding_comes_of_them(odd):
    alarming = [row for row in odd.rows("findings") if row["severity"] in ("ERROR", "CRITICAL")]
    assert alarming == []


TABLES = (
    "transactions", "partition_transactions", "producer_states", "partitions", "transactional_ids",
    "producer_id_owners", "abort_plan", "blocked_groups", "coverage",
)  # fmt: skip


def test_every_instant_in_the_tables_is_one_of_the_capture(odd):
    for table in TABLES:
        for row in odd.rows(table):
            for column, value in row.items():
                if hasattr(value, "timestamp"):
                    assert NOON <= value.timestamp() * 1000 <= NOON + END, (table, column, value)


@pytest.fixture(scope="module")
def stored(odd):
    return odd.finished(*READ_BY_COMMANDS)


#: Years that only a wrapped or unchecked number gives, and ages that only a difference to one gives.
STRANGE = re.compile(r"\b(1[0-6]\d\d|1745|1970|[3-9]\d\d\d)-\d\d-\d\d|-\d+ (min|s|h|d) ago|\d{6,} (min|h|d)\b")
COMMANDS = (
    ("report",),
    ("report", "--format", "json"),
    ("find-hanging", "--format", "kafka", "--broker-id", "1"),
    ("describe-producers", "--format", "kafka", "--topic", "stamped-nanoseconds", "--partition", "0"),
    ("list", "--format", "kafka"),
    ("find-late",),
    ("abort-plan",),
    ("coverage",),
    *(("describe", "--transactional-id", id_in(number, f"told-{name}")) for number, name in enumerate(STAMPS)),
    *(("timeline", f"stamped-{name}", str(partition)) for name in STAMPS for partition in range(5)),
    *(("timeline", id_in(number, f"told-{name}")) for number, name in enumerate(STAMPS)),
    *(("explain", f"stamped-{name}", "0", "2") for name in STAMPS),
    *(("explain", f"stamped-{name}", "1", "6") for name in STAMPS),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_answers_with_times_of_the_capture_only(stored, command):
    code, printed, problem = txn_audit(stored, *command)
    assert (code, problem) == (0, "")
    assert STRANGE.search(printed) is None


def test_the_page_is_written_and_shows_times_of_the_capture_only(stored, tmp_path):
    file = tmp_path / "page.html"
    code, _, problem = txn_audit(stored, "report", "--html", file)
    assert (code, problem) == (0, f"txn-audit: page: {file}\n")
    text = re.sub(r"<(style|script|svg)\b.*?</\1>", "", file.read_text(), flags=re.DOTALL)
    assert STRANGE.search(text) is None
