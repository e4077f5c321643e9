"""Commands that need no tables: locate, version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import Namespace

import pytest

from tests.support.delta_tables import txn_audit, write_run
from txnlib import __version__
from txnlib.ask.collect_plan import locate
from txnlib.ask.main import main
from txnlib.core.kafka.coordinator_partition import partition_for


def printed(capsys, *argv: object) -> str:
    assert main([*map(str, argv)]) == 0
    return capsys.readouterr().out


def test_an_id_is_located_as_kafka_does(capsys):
    """The sample capture holds payments-batch-7 in partition 3 of 5."""
    (row,) = json.loads(
        printed(capsys, "locate", "--transactional-id", "payments-batch-7", "--partitions", 5, "--format", "json")
    )
    assert (row["coordinator_partition"], row["folder"]) == (3, "__transaction_state-3")
    assert "__transaction_state-3/*.log" in row["files"]


def test_several_ids_make_one_list_of_what_to_copy(capsys):
    fifty = ("--partitions", 50)
    out = printed(capsys, "locate", "--transactional-id", "a", "--transactional-id", "b", *fifty)
    numbers = sorted({partition_for(name, 50) for name in "ab"})
    assert ", ".join(f"__transaction_state-{number}/" for number in numbers) in out
    assert printed(capsys, "locate", "a", "b", *fifty) == out
    assert printed(capsys, "locate", "a", "--transactional-id", "b", *fifty) == out
    assert main(["locate"]) == 2
    assert "locate needs a transactional id" in capsys.readouterr().err
    assert "\x1b" not in printed(capsys, "locate", "--transactional-id", "\x1b[2J")


def test_what_to_copy_is_wrapped_and_commands_are_not():
    output = locate(Namespace(ids=[str(number) for number in range(9)], transactional_id=[], partitions=50))
    text = output.text("table", width=80)
    assert [
        line
        for line in text.splitlines()
        if len(line) > 80 and "scripts/capture.sh" not in line and "kafka-" not in line
    ] == []
    command = "kafka-topics.sh --bootstrap-server $BOOTSTRAP --describe --topic __transaction_state\n"
    assert command in text.replace(f"\\\n{'':11}", "")


def test_without_a_number_of_partitions_that_of_an_audit_counts_else_kafkas_default_and_either_is_said(
    tmp_path, monkeypatch, capsys
):
    write_run(tmp_path, coordinator_partitions=5)
    code, out, err = txn_audit(tmp_path, "locate", "payments-batch-7")
    assert (code, "__transaction_state-3" in out) == (0, True)
    assert err.startswith("txn-audit: 5 partitions, as in run test-")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TXN_AUDIT_TABLES", raising=False)
    assert main(["locate", "a"]) == 0
    assert "assumed: 50 partitions, Kafka's default" in capsys.readouterr().err


def test_no_partitions_is_bad_usage(capsys):
    assert main(["locate", "--transactional-id", "a", "--partitions", "0"]) == 2
    assert "expected 1 or more" in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys):
    assert printed(capsys, "--version") == f"txn-audit {__version__}\n"


@pytest.mark.parametrize("argv", [["locate", "a", "--partitions", "5"], ["--help"], ["completion", "bash"]])
def test_what_needs_no_tables_waits_for_no_library_that_reads_them(repository, argv):
    code = (
        "import sys; from txnlib.ask.main import main; main(sys.argv[1:]); print([m for m in sys.modules if m in"
        " LIBRARIES])"
    )
    code = code.replace("LIBRARIES", "('pyarrow', 'deltalake', 'rich', 'numpy')")
    done = subprocess.run(
        [sys.executable, "-c", code, *argv], cwd=repository, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_reader_that_has_enough_breaks_nothing(repository):
    """`| head`, which is gone before anything is printed: no traceback."""
    unread, written = os.pipe()
    os.close(unread)
    argv = [sys.executable, "-m", "txnlib.ask.main", "completion", "fish"]
    done = subprocess.run(argv, cwd=repository, stdout=written, stderr=subprocess.PIPE, text=True, check=False)
    os.close(written)
    assert (done.returncode, done.stderr) == (0, "")
