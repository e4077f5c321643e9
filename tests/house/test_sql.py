"""Queries of the documents and views, alike on Spark and on DuckDB."""

import json
import re
import shlex
import shutil
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest

from tests.support.delta_tables import session_views, txn_audit
from tests.support.three_nights import NIGHTS, SEGMENTS, three_nights
from txnlib.ask.delta_rows import open_tables
from txnlib.ask.sql import ask
from txnlib.core.schema import ALWAYS_THERE, TABLES
from txnlib.core.schema.views import OF_REPORT, VIEWS
from txnlib.engine.store import create_views
from txnlib.jobs import audit
from txnlib.jobs.program import main

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: How docs/sql.md opens the tables in DuckDB.
(FOR_DUCKDB,) = re.findall(r"```python\n(from txnlib.ask.*?)```", (ROOT / "docs" / "sql.md").read_text(), re.DOTALL)
QUERY = re.compile(r"(?:<!-- (?P<engine>\w+) -->\n)?```sql\n(?P<text>.*?)```", re.DOTALL)


#: Example values of the documents, which are those of the demo -> the same in the three nights.
IN_THE_NIGHTS = {
    "'payments-batch-7'": "'billing-0'",
    "topic = 'payments' AND partition = 0 AND start_offset = 24": (
        "topic = 'orders' AND partition = 0 AND start_offset = 100"
    ),
}


class Question(NamedTuple):
    """A query of a document, as each engine is to be asked, and the heading it stands under; or a view, by its name."""

    heading: str
    on: dict[str, str]


def questions() -> list[Question]:
    """Those of the pages, and the views."""
    found = [Question(name, dict.fromkeys(("spark", "duckdb"), view.named(str))) for name, view in VIEWS.items()]
    for page in PAGES:
        text = page.read_text()
        for match in QUERY.finditer(text):
            heading = re.findall(r"^#+ (.*)$", text[: match.start()], re.MULTILINE)[-1]
            if match["engine"] is None:
                found.append(Question(heading, {"spark": match["text"], "duckdb": match["text"]}))
            elif found[-1].heading == heading and match["engine"] not in found[-1].on:
                found[-1].on[match["engine"]] = match["text"]
            else:
                found.append(Question(heading, {match["engine"]: match["text"]}))
    return found


@pytest.fixture(scope="module")
def nights(tmp_path_factory) -> Path:
    return three_nights(tmp_path_factory.mktemp("nights") / "out" / "quickstart")


@pytest.fixture(scope="module")
def database(nights) -> duckdb.DuckDBPyConnection:
    """DuckDB over the folder, as docs/sql.md shows it."""
    known: dict[str, object] = {}
    exec(FOR_DUCKDB.replace("out/quickstart", str(nights)), known)
    return known["database"]


@pytest.fixture(scope="module")
def on_spark(spark, nights):
    with session_views(spark, nights):
        yield lambda query: [tuple(map(plain, row)) for row in spark.sql(query).collect()]


def on_duckdb(database, query):
    return [tuple(map(plain, row)) for row in database.execute(query).fetchall()]


def plain(value):
    """The same value whichever engine gave it."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=None)
    return float(value) if isinstance(value, Decimal) else value


@pytest.mark.parametrize("question", questions(), ids=lambda question: question.heading)
def test_every_query_shown_is_answered_and_alike_on_both_engines(on_spark, database, question):
    answers = [on_spark(of_the_nights(question.on["spark"])), on_duckdb(database, of_the_nights(question.on["duckdb"]))]
    if "ORDER BY" not in question.on["spark"].splitlines()[-1]:
        answers = [sorted(rows, key=repr) for rows in answers]
    assert answers[0] == answers[1]
    # No transaction is late on the last of the three nights.
    assert bool(answers[0]) == (question.heading != "latest_late_transactions"), "nothing in three nights answers it"


def answer(database, heading):
    (found,) = [question.on["duckdb"] for question in questions() if question.heading == heading]
    return on_duckdb(database, of_the_nights(found))


def of_the_nights(query):
    for shown, there in IN_THE_NIGHTS.items():
        query = query.replace(shown, there)
    return query


#: Questions without an answer on the demo: it has no findings, and only several audits can answer the others.
UNANSWERED = {
    "Findings by name",
    "Partitions that stood still in three audits",
    "Outcome of transactions from the earlier run",
    "Changes since the earlier run",
    "Changes in the last week",
}


def test_every_other_question_has_an_answer_on_the_demo(demo_run):
    tables = open_tables(str(ROOT / "out" / "quickstart"))
    asked = [each for each in questions() if each.heading not in VIEWS]
    assert {each.heading for each in asked if not ask(tables, each.on["duckdb"]).rows} == UNANSWERED


@pytest.mark.slow  # an audit
def test_a_second_audit_of_the_demo_shows_changes(spark, demo_run, tmp_path, monkeypatch):
    (given,) = re.findall(r"^./spark-submit.sh audit (.*)$", (ROOT / "docs" / "sql.md").read_text(), re.MULTILINE)
    shutil.copytree(ROOT / "out" / "quickstart", tmp_path / "out" / "quickstart")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    assert main(audit.job, shlex.split(given)) == 0
    tables = open_tables("out/quickstart")
    changes = [each.on["duckdb"] for each in questions() if each.heading.startswith("Changes ")]
    assert [len(ask(tables, query).rows) for query in changes] == [3, 3]


def test_example_values_are_those_of_the_demo(demo_run, monkeypatch):
    """Whoever tries a query on the demo gets rows, even if a report page is beside the tables."""
    (ROOT / "out" / "quickstart" / "report.html").touch()
    monkeypatch.chdir(ROOT)
    known: dict[str, object] = {}
    exec(FOR_DUCKDB, known)
    named = [each.on["duckdb"] for each in questions() if any(value in each.on["duckdb"] for value in IN_THE_NIGHTS)]
    assert len(named) == len(IN_THE_NIGHTS), "each value is in one query"
    assert [query for query in named if not on_duckdb(known["database"], query)] == []


def test_every_query_names_examples_of_the_demo_or_none():
    """A literal in capitals is a value of the tables: a verdict or a status."""
    known = "".join(IN_THE_NIGHTS)
    others = [
        text for each in questions() for text in re.findall(r"= ('[^']*')", each.on["duckdb"]) if text not in known
    ]
    of_kafka = {"'__transaction_state'", "'Ongoing'"}
    assert [text for text in others if text not in of_kafka and not re.fullmatch("'[A-Z_]+'", text)] == []


def test_percentiles_are_named_by_their_number():
    found = [
        named
        for each in questions()
        for named in re.findall(r"percentile_cont\(0\.(\d+)\).* AS (\w+)", each.on["duckdb"])
    ]
    assert [alias for _, alias in found] == [f"p{number.ljust(2, '0')}_ms" for number, _ in found] != []


def test_what_the_answers_say(database):
    told = {
        "Changes since the earlier run": [
            ("test", "ENDED", "payments", 0, 7, "fraud-1", "LATE", None, "aborted by hand at offset 60"),
            ("test", "NEW", "orders", 1, 50, "ledger-0", None, "OPEN", "expected"),
            ("test", "SEEN", "orders", 2, 9, None, None, "UNKNOWN", "a coordinator partition was not captured"),
        ],
        "Applications with the most aborts": [("billing", 3, 1, 1, 33.3), ("fraud", 1, 0, 0, 0.0)],
        "Clients of version 0 or 1": [
            ("billing", 1, 2, datetime(2026, 11, 19, 2)),
            ("fraud", 1, 1, datetime(2026, 11, 19, 2)),
        ],
        "Partitions that stood still in three audits": [
            ("orders", 0, 100, 60, "billing-0", "HANGING", 3, datetime(2026, 11, 19, 2)),
        ],
        "Producer ids near their last epoch": [
            ("billing-0", "billing", 1, 32_000, 766),
            ("fraud-1", "fraud", 2, 3, 32_763),
            ("ledger-0", "ledger", 3, 0, 32_766),
        ],
        "Time to write the markers": [(3, 3, 40, 4.0, 39.28), (4, 1, 4, 4.0, 4.0)],
    }
    assert {heading: answer(database, heading) for heading in told} == told
    first = ("orders", 0, 100, "billing-0", "HANGING", 3, datetime(2026, 11, 19, 2))
    assert answer(database, "Transactions open over several audits")[0] == first
    assert answer(database, "List columns")[0] == ("fraud-1", datetime(2026, 11, 19, 2), "payments", 0, None)
    assert [row[-5:] for row in answer(database, "Verdicts over time")] == [
        (0, 0, 0, 0, 2),
        (1, 0, 1, 0, 2),
        (1, 0, 0, 1, 3),
    ]
    assert [row[1] for row in answer(database, "One transaction over time")] == ["SUSPECT", "HANGING", "HANGING"]


def test_the_view_of_changes_is_what_txn_audit_diff_says_of_each_pair_of_nights(database, nights):
    columns = "change, topic, partition, start_offset, producer_id, transactional_id, verdict_before, verdict_now"
    for run, before in database.execute("SELECT DISTINCT run_id, previous_run_id FROM verdict_changes").fetchall():
        seen = database.execute(f"SELECT {columns} FROM verdict_changes WHERE run_id = ?", [run]).fetchall()
        rows = json.loads(txn_audit(nights, "diff", before, run, "--format", "json")[1])["changes"]
        names = ["verdict_then" if name == "verdict_before" else name for name in columns.split(", ")]
        assert sorted(map(repr, seen)) == sorted(repr(tuple(row[name] for name in names)) for row in rows)


def test_a_table_that_is_not_there_has_no_rows_and_its_columns(nights, tmp_path):
    few = tmp_path / "few"
    for name in ALWAYS_THERE & {folder.name for folder in nights.iterdir()}:
        shutil.copytree(nights / name, few / name)
    tables = open_tables(str(few))
    for name in TABLES.keys() - ALWAYS_THERE:
        assert (tables.rows(name, TABLES[name].names), tables.number(name, "count(*)")) == ([], 0), name
        assert ask(tables, f"SELECT * FROM {name}").rows == []
    query = (
        "SELECT unnest(notes) FROM latest_abort_plan WHERE as_of < now()"
        " UNION SELECT topic FROM latest_open_transactions"
    )
    assert (
        ask(tables, query).rows
        == ask(tables, 'SELECT DISTINCT topic AS "unnest(notes)" FROM latest_open_transactions').rows
    )


def test_a_run_has_the_batches_of_the_parts_that_it_lists_whoever_read_them(database):
    for as_of_ms, wanted in zip(NIGHTS, SEGMENTS, strict=True):
        query = f"SELECT base_offset FROM record_batches_of_runs WHERE run_id = 'test-{as_of_ms}'"
        assert sorted(row[0] for row in database.execute(query).fetchall()) == sorted(wanted)


@pytest.mark.classic
def test_a_catalog_schema_has_the_views_beside_the_tables(engine, spark, nights):
    spark.sql("CREATE SCHEMA night_audits")
    later = {"abort_plan", "producer_spans"}
    for name in dict.fromkeys(("audit_runs", "segments", "record_batches", *OF_REPORT)):
        if name not in later | VIEWS.keys():
            spark.sql(f"CREATE TABLE night_audits.{name} USING delta LOCATION '{nights / name}'")
    create_views(engine.store(None, "night_audits"))
    views = ("latest_abort_plan", "latest_producer_spans")
    assert [spark.table(f"night_audits.{name}").isEmpty() for name in views] == [True, True]
    for name in later:
        spark.sql(f"CREATE TABLE night_audits.{name} USING delta LOCATION '{nights / name}'")
    create_views(engine.store(None, "night_audits"))
    assert [spark.table(f"night_audits.{name}").isEmpty() for name in views] == [False, False]
    (latest,) = spark.table("night_audits.latest_runs").collect()
    assert (latest["as_of"], latest["previous_as_of"]) == (datetime(2026, 11, 21, 2), datetime(2026, 11, 20, 2))
    made = [row["viewName"] for row in spark.sql("SHOW VIEWS IN night_audits").collect() if not row["isTemporary"]]
    assert sorted(made) == sorted(VIEWS)
    spark.sql("DROP SCHEMA night_audits CASCADE")
