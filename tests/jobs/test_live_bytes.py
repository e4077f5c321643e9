"""`txn-audit --format kafka` against `kafka-transactions.sh`, to the byte."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import live_output
from tests.support.audits import audited
from tests.support.delta_tables import READ_BY_COMMANDS, spark_rows, txn_audit
from txnlib.ask.delta_rows import open_run, open_tables
from txnlib.ask.report_rows import report_of
from txnlib.ask.words import name_of

CAPTURES = ("quickstart", "hostile-4.3", "cluster-3.9")
#: Live output that copies cannot give back. An empty log leaves no file; a start that only the coordinator's memory
#: held; an id's place in a hash table that has been larger than what is left in it.
NOT_IN_COPIES = {
    "quickstart": {"describe-producers-__consumer_offsets-0.txt", "describe-producers-__consumer_offsets-2.txt"},
    "cluster-3.9": {"describe-0.txt", "list.txt"},
}


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[] if name == "cluster-3.9" else pytest.mark.slow) for name in CAPTURES],
)
def audit(request, captures: Path) -> tuple[Path, Path]:
    """A capture, and the tables of its audit at the instant of the live find-hanging."""
    capture = captures / request.param
    tables = audited(capture / "brokers", "--as-of", str(live_output.as_of(capture)))
    return capture, tables.finished(*READ_BY_COMMANDS)


def command(path: Path) -> list[str] | None:
    """What was asked for a file of live output."""
    if path.name == "list.txt":
        return ["list"]
    if found := re.fullmatch(r"describe-producers-(.*)-(\d+)\.txt", path.name):
        return ["describe-producers", "--topic", found[1], "--partition", found[2]]
    if found := re.fullmatch(r"(?:timeout-(\d+)min-)?find-hanging-broker-(\d+)(?:-(\d+)min)?\.txt", path.name):
        minutes = found[1] or found[3]
        return ["find-hanging", "--broker-id", found[2], *(["--max-transaction-timeout", minutes] if minutes else [])]
    return None


def test_every_table_is_the_same_to_the_byte(audit):
    capture, root = audit
    asked = {path: command(path) for path in sorted((capture / "live").glob("*.txt")) if not live_output.failed(path)}
    known = {
        path: argv for path, argv in asked.items() if argv and path.name not in NOT_IN_COPIES.get(capture.name, set())
    }
    assert len(known) > 3
    different = {
        path.name: (ours, path.read_text())
        for path, argv in known.items()
        if (ours := txn_audit(root, *argv, "--format", "kafka")) != (0, path.read_text(), "")
    }
    assert different == {}


def test_a_description_is_the_same_but_for_the_clock_of_the_tool(audit):
    """The tool prints the age up to its own instant, which was seconds after the audit's."""
    capture, root = audit
    paths = [path for path in sorted((capture / "live").glob("describe-[0-9]*.txt")) if not live_output.failed(path)]
    assert paths
    for path in paths:
        if path.name in NOT_IN_COPIES.get(capture.name, set()):
            continue
        theirs = path.read_text().splitlines()[1]
        cells = theirs.split("\t")
        name = "\t".join(cells[1:-8]).rstrip(" ")
        _, out, _ = txn_audit(root, "describe", "--transactional-id", name, "--format", "kafka")
        ours = out.splitlines()[1].split("\t")
        assert [*ours[:-3], *ours[-2:]] == [*cells[:-3], *cells[-2:]], path
        assert ours[-3].strip() == "None" or 0 <= int(cells[-3]) - int(ours[-3]) < 60_000


def test_every_open_transaction_can_be_explained(audit):
    _, root = audit
    opened = open_run(open_tables(str(root))).rows(
        "open_transactions", ("topic", "partition", "start_offset", "verdict", "reason")
    )
    assert opened
    for row in opened:
        code, out, err = txn_audit(root, "explain", row["topic"], row["partition"], row["start_offset"])
        assert (code, err) == (0, "")
        assert f"\n{name_of(row)}  " in out


def test_every_open_transaction_has_its_place_in_a_timeline_and_what_blocks_is_where_it_stands_still(audit):
    _, root = audit
    run = open_run(open_tables(str(root)))
    opened = run.rows("open_transactions", ("topic", "partition", "start_offset", "transactional_id"))
    for row in opened:
        where = [row["topic"], row["partition"]]
        events = json.loads(txn_audit(root, "timeline", *where, "--format", "json")[1])
        own = [event for event in events if event["log"] == f"{where[0]}-{where[1]}"]
        assert [event["offset"] for event in own] == sorted(event["offset"] for event in own)
        assert ("begins", row["start_offset"]) in [(event["event"], event["offset"]) for event in own]
        lowest = min(each["start_offset"] for each in opened if [each["topic"], each["partition"]] == where)
        judged = [("topic", "=", where[0]), ("partition", "=", where[1]), ("is_judged", "=", True)]
        (start,) = (copy["log_start_offset"] for copy in run.rows("coverage", ("log_start_offset",), judged))
        assert own[-1]["last_stable_offset"] == max(lowest, start or 0)
    for name in {row["transactional_id"] for row in opened} - {None}:
        assert txn_audit(root, "timeline", name)[0] == 0


def test_the_report_without_spark_is_that_of_spark(audit, spark):
    _, root = audit
    run = open_run(open_tables(str(root)))
    assert run.number("coverage", "count(*)")
    assert report_of(replace(run, tables=spark_rows(spark, root))) == report_of(run)


INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def _values(value, name=""):
    """The fields of JSON with their names, however deep."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _values(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from _values(each, name)
    else:
        yield name, value


def test_json_has_one_format_of_instants(audit):
    _, root = audit
    opened = json.loads(txn_audit(root, "open", "--format", "json")[1])
    own = [("explain", row["topic"], row["partition"], row["start_offset"]) for row in opened[:2]]
    own += [("timeline", row["topic"], row["partition"]) for row in opened[:1]]
    names = ("report", "open", "findings", "groups", "find-late", "coverage", "runs", "abort-plan", "collect-plan")
    asked = [(name,) for name in names]
    for command in (*asked, *own):
        code, out, _ = txn_audit(root, *command, "--format", "json")
        assert code == 0
        for name, value in _values(json.loads(out)):
            if isinstance(value, int) and not isinstance(value, bool) and 1_500_000_000_000 < value < 3_000_000_000_000:
                assert name.endswith("_ms"), (command, name, value)
            if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d[T ]", value):
                assert INSTANT.fullmatch(value), (command, name, value)
