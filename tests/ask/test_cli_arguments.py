"""Arguments as people paste them, and commands as answers print them."""

from __future__ import annotations

import csv
import io
import re
import shlex
import socket
import time
from functools import cache
from pathlib import Path

import pytest

from tests.support.delta_tables import NOW, READ_BY_COMMANDS, txn_audit, write, write_run
from txnlib.ask.commands import COMMANDS, GROUPS
from txnlib.ask.main import main

ID = "payments-batch-7"
OWNED = {"transactional_id": ID, "coordinator_partition": 3}
OPENED = {**OWNED, "topic": "payments", "producer_id": 7, "producer_epoch": 0, "reason": "SO"}
#: It only looks late: its timestamps are old.
OLD = {**OPENED, "producer_id": 21, "transactional_id": None, "reason": "TIMEOUT_NOT_PASSED"}
PLANNED = {"topic": "payments", "partition": 1}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two transactions open on payments-0; nothing open on orders-0 to orders-2."""
    root = tmp_path_factory.mktemp("tables")
    write_run(root)
    captured = [
        ("payments", 0),
        ("payments", 1),
        ("orders", 0),
        ("orders", 1),
        ("orders", 2),
        ("__transaction_state", 3),
    ]
    rows = {
        "coverage": [{"topic": topic, "partition": number, "status": "COMPLETE"} for topic, number in captured],
        "open_transactions": [
            {**OPENED, "partition": 0, "start_offset": 24, "verdict": "HANGING"},
            {
                **OPENED,
                "partition": 0,
                "start_offset": 40,
                "verdict": "OPEN",
                "producer_id": 8,
                "transactional_id": None,
            },
            {**OLD, "partition": 1, "start_offset": 5, "verdict": "LATE"},
            {**OLD, "partition": 1, "start_offset": 6, "verdict": "LATE", "reason": "OVERDUE", "producer_id": 22},
        ],
        "transactional_ids": [{**OWNED, "producer_id": 7, "state": "CompleteAbort"}],
        "producer_id_owners": [{**OWNED, "producer_id": 7, "last_record_offset": 4}],
        "producer_states": [{"topic": "payments", "partition": 0, "producer_id": number} for number in (7, 8)],
        "coordinator_states": [{**OWNED, "offset": 4, "timestamp_ms": NOW, "state": "Empty"}],
        "abort_plan": [
            {"number": 1, "action": "ABORT_LATER", "topic": "payments", "partition": 0, "verdict": "HANGING"},
            {"number": 2, "action": "CHECK_TIMESTAMPS", "verdict": "LATE", **PLANNED, "reason": "TIMEOUT_NOT_PASSED"},
            {"number": 3, "action": "END_AT_COORDINATOR", "verdict": "LATE", **PLANNED, "reason": "OVERDUE"},
        ],
        "findings": [{"name": "MARKER_MISSING", "severity": "ERROR", "topic": "payments", "partition": 0}],
    }
    for name in READ_BY_COMMANDS:
        write(root, name, *rows.get(name, ()))
    write(root, "coverage", {"topic": "lost", "partition": 0, "status": "MISSING"})
    return root


#: Arguments as they are pasted -> those that mean the same.
SAME = {
    "explain payments-0": "explain payments 0 24",
    "explain payments-0@24": "explain payments 0 24",
    "explain payments-0@40": "explain payments 0 40",
    "explain payments 0": "explain payments 0 24",
    "explain payments-0 @24": "explain payments 0 24",
    "explain payments-0 offset 40": "explain payments 0 40",
    "explain payments-0 from offset 40": "explain payments 0 40",
    f"explain {ID}": "explain payments 0 24",
    "explain 7": "explain payments 0 24",
    "explain 8": "explain payments 0 40",
    "explain payments-0:40": "explain payments 0 40",
    "explain payments-0 40": "explain payments 0 40",
    f"explain '{ID} of payments'": "explain payments 0 24",
    "explain producer 8": "explain payments 0 40",
    "explain producer id 8": "explain payments 0 40",
    "explain 'producer 8 (app-7)'": "explain payments 0 40",
    "explain 'producer 8 epoch 0'": "explain payments 0 40",
    "explain payments-0 from offset 40 on": "explain payments 0 40",
    "explain '#payments-0-40'": "explain payments 0 40",
    "explain 'file:///tmp/a%20b/report.html#payments-0-40'": "explain payments 0 40",
    "explain 'https://host/x?y#plan:payments-0-40'": "explain payments 0 40",
    "timeline '#lag:payments-0'": "timeline payments 0",
    "describe-producers '#payments-0-40'": "describe-producers payments 0",
    "explain payments-0@40/": "explain payments 0 40",
    "explain payments-0@40:": "explain payments 0 40",
    "explain payments-0@40,": "explain payments 0 40",
    "explain payments 0 40;": "explain payments 0 40",
    """explain '"payments-0@40"'""": "explain payments 0 40",
    "timeline payments-0/": "timeline payments 0",
    f"timeline '{ID} '": f"timeline {ID}",
    f"describe '{ID},'": f"describe {ID}",
    "describe-producers payments-0/": "describe-producers payments 0",
    "timeline payments-0": "timeline payments 0",
    "timeline payments-0@24": "timeline payments 0",
    "timeline payments 0 24": "timeline payments 0",
    "timeline 7": f"timeline {ID}",
    "open --verdict hanging": "open --verdict HANGING",
    "open --verdict looks-late": "open --verdict LOOKS_LATE",
    "open --verdict 'LOOKS LATE'": "open --verdict LOOKS_LATE",
    "findings --severity Error": "findings --severity ERROR",
    "findings --name marker_missing": "findings --name MARKER_MISSING",
    "abort-plan --action abort-later": "abort-plan --action ABORT_LATER",
    "abort-plan --verdict hanging": "abort-plan --verdict HANGING",
}


@pytest.fixture(scope="module")
def answers(tables):
    """The answers to commands, each asked for once."""
    return cache(lambda command: txn_audit(tables, *shlex.split(command)))


@pytest.mark.parametrize(("pasted", "meant"), SAME.items())
def test_an_argument_is_understood_as_people_paste_it(answers, pasted, meant):
    answered = answers(pasted)
    assert (answered[0], answered[2]) == (0, "")
    assert answered == answers(meant)


#: Arguments that name nothing -> what is said of them.
NOTHING = {
    "explain payment-0": "no captured log has payment-0; did you mean payments-0?",
    "explain orders-9": "no captured log has orders-9; did you mean orders-2?",
    "explain pay": f"no captured log has pay; did you mean payments-0 or {ID}?",
    "explain PAYMENTS-B": f"no captured log has PAYMENTS-B; did you mean {ID}?",
    "timeline ord": "no captured log has ord; did you mean orders-0?",
    "explain test-": f"no captured log has test-; did you mean --run test-{NOW}?",
    "explain paymints 0 24": "no copy of paymints-0 was audited in this run; did you mean payments-0?",
    "explain orders-1": "nothing is open on orders-1; ",
    "explain PAYMENTS-0@95": "no captured log has PAYMENTS-0@95; did you mean payments-0@95?",
    "explain '#payment-0-24'": "no captured log has #payment-0-24; did you mean payments-0@24?",
    "explain payments-0@-1": "no captured log has payments-0@-1; did you mean payments-0?",
    "explain paymints-0 offset 95/": "no captured log has paymints-0 offset 95/; did you mean payments-0@95?",
    "explain orders": "nothing is open on orders",
    "timeline ORDERS,": "orders is a topic; name a partition of it, such as orders-0",
    "explain producer 3": "no captured log has producer 3",
    f"transaction {ID.upper()}": f"no captured log has {ID.upper()}; did you mean {ID}?",
    "open --topic ORDERS": "no copy of ORDERS was audited in this run; did you mean orders?",
    "describe-producers ORDERS-1": "no copy of ORDERS-1 was audited in this run; did you mean orders-1?",
    "explain payments-0@23": (
        "no open transaction starts at offset 23 of payments-0; open there: 24 (producer 7), 40 (producer 8)"
    ),
    "explain payments 0 23": (
        "no open transaction starts at offset 23 of payments-0; open there: 24 (producer 7), 40 (producer 8)"
    ),
    "explain payments-batch-8": f"no captured log has payments-batch-8; did you mean {ID}?",
    "explain 9": "no captured log has 9",
    "timeline lost 0": "no copy of lost-0 was audited",
    "timeline orders one": "no captured log has orders one",
    "timeline payments 0 --last 0": "expected 1 or more",
    "timeline paymints 0": "no copy of paymints-0 was audited in this run; did you mean payments-0?",
    "timeline payments-batch-8": f"no captured log has payments-batch-8; did you mean {ID}?",
    "transaction payments-batch-8": f"no captured log has payments-batch-8; did you mean {ID}?",
    "describe payments-batch-8": f"no captured log has payments-batch-8; did you mean {ID}?",
    "describe-producers --topic paymints --partition 0": (
        "no copy of paymints-0 was audited in this run; did you mean payments-0?"
    ),
    "find-hanging --topic paymints": "no copy of paymints was audited in this run; did you mean payments?",
    "find-hanging --topic paymints --format kafka": (
        "no copy of paymints was audited in this run; did you mean payments?"
    ),
    "find-hanging --topic orders --partition 7": "no copy of orders-7 was audited in this run; did you mean orders-2?",
    "open --topic paymints": "no copy of paymints was audited in this run; did you mean payments?",
    "open --topic lost": "no copy of lost was audited in this run",
    "findings --topic paymints": "no copy of paymints was audited in this run; did you mean payments?",
    "groups --topic paymints": "no copy of paymints was audited in this run; did you mean payments?",
    "abort-plan --topic paymints": "no copy of paymints was audited in this run; did you mean payments?",
    "findings --name MARKER_MISING": "there is no finding MARKER_MISING; did you mean MARKER_MISSING?",
    "open --verdict hangin": "did you mean HANGING?",
    "open --verdict looks_lat": "did you mean LOOKS_LATE?",
    "open --limit -1": "argument --limit: -1: expected a whole number from 1 on",
    "findings --limit many": "argument --limit: many: expected a whole number from 1 on",
    f"open --run test-{NOW + 1}": f"no such run: test-{NOW + 1}; did you mean test-{NOW}?",
    f"diff test-{NOW + 1}": f"no such run: test-{NOW + 1}; did you mean test-{NOW}?",
}


@pytest.mark.parametrize(("asked", "said"), NOTHING.items())
def test_a_name_that_nothing_has_is_said_with_the_one_that_may_be_meant(tables, asked, said):
    code, out, err = txn_audit(tables, *shlex.split(asked))
    assert (code, out) == (2, "")
    assert said in err


@pytest.mark.parametrize(
    ("verdict", "offsets", "steps"),
    [("looks_late", ["5"], ["2"]), ("Looks Late", ["5"], ["2"]), ("LATE", ["6"], ["3"])],
)
def test_what_only_looks_late_is_not_among_what_is_late(tables, verdict, offsets, steps):
    for command, column, shown in (("open", "start_offset", offsets), ("abort-plan", "number", steps)):
        out = txn_audit(tables, command, "--verdict", verdict, "--format", "csv")[1]
        assert [row[column] for row in csv.DictReader(io.StringIO(out))] == shown


EMPTY = ["open --topic orders", "findings --topic orders", "open --verdict STUCK", "findings --name CORRUPT_MESSAGE"]


@pytest.mark.parametrize("asked", EMPTY)
def test_what_exists_may_have_nothing_to_list(tables, asked):
    code, _, err = txn_audit(tables, *asked.split())
    assert (code, err) == (0, "")


#: Arguments -> the command that the error tells.
TOLD = {
    "explain orders-1": "open",
    "open --run nobody": "runs",
    "open --as-of 2001-01-01T00:00:00Z": "runs",
    "diff": "runs",
    "diff nobody": "runs",
}


@pytest.mark.parametrize(("asked", "told"), TOLD.items())
def test_a_command_that_an_error_tells_can_be_pasted_anywhere(tables, monkeypatch, asked, told):
    monkeypatch.chdir(tables.parent)
    err = txn_audit(tables.name, *asked.split())[2]
    (command,) = re.findall(r"(\S*/txn-audit .*?) lists", err)
    assert shlex.split(command)[1:] == [told, "--tables", str(tables)]
    assert Path(shlex.split(command)[0]).is_absolute()


def test_a_server_that_says_nothing_is_given_up_in_five_seconds(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        began = time.monotonic()
        code = main(["capture", "--bootstrap-server", address, "--output", str(tmp_path / "c")])
        took = time.monotonic() - began
    assert (code, capsys.readouterr().err) == (
        2,
        f"txn-audit: {address}: it does not answer in time. Check the address, the network and firewalls\n",
    )
    assert took < 5


def helped(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main([*words, "--help"]) == 0
    return capsys.readouterr().out


def test_the_help_groups_the_commands(capsys):
    shown = helped(capsys)
    assert [name for names in GROUPS.values() for name in names] == [*COMMANDS]
    for heading, names in GROUPS.items():
        section = shown.partition(f"\n{heading}:\n")[2].partition("\n\n")[0]
        assert re.findall(r"^  ([\w-]+)", section, re.MULTILINE) == list(names)


#: Option -> commands in whose help it does not stand.
MEANINGLESS = {
    "--wide": ["report", "completion", "describe"],
    "--format": ["completion"],
    "--run": ["sql", "locate", "capture", "completion"],
    "--as-of": ["sql", "locate", "capture", "completion"],
    "--tables": ["capture", "completion"],
}


@pytest.mark.parametrize(("option", "without"), MEANINGLESS.items())
def test_an_option_stands_only_where_it_means_something(capsys, option, without):
    assert [name for name in COMMANDS if f"  {option}" not in helped(capsys, name)] == [
        n for n in COMMANDS if n in without
    ]
