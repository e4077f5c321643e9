"""Brokers that do not answer, and questions that are optional."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_brokers import REFUSED_ID, FakeBrokers, brokers_with, filled
from tests.support.wire_brokers import served
from tests.support.wire_captures import command, log_of, notes_of
from txnlib.ask import main
from txnlib.wire_capture import client as module
from txnlib.wire_capture.capture import ALL, OPEN, CaptureRequest, take_capture
from txnlib.wire_capture.client import Client, MovedError
from txnlib.wire_capture.partition_copy import Progress, Taken


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "_TRIES_SECONDS", 1)
    monkeypatch.setattr(module, "_OPTIONAL_SECONDS", 0.5)
    return


def _taken(fake: FakeBrokers, output: Path, scope: str, **how: Any) -> tuple[dict[str, Taken], str]:
    said = io.StringIO()
    with served(fake, **how) as ports, Client(f"127.0.0.1:{ports[1]}", {}) as client:
        captured = take_capture(client, CaptureRequest(output, scope=scope), Progress(said))
    return {each.partition.folder: each for each in captured.taken}, said.getvalue()


class Hanging(FakeBrokers):
    """Brokers that never answer one kind of question."""

    question = ""

    def ask(self, request: Any, broker: int | None = None, **how: Any) -> Any:
        if request.name == f"{self.question}Request":
            raise EOFError
        return super().ask(request, broker, **how)


@pytest.mark.parametrize(
    "question", ["DescribeProducers", "ListTransactions", "DescribeTransactions", "DescribeConfigs"]
)
def test_an_optional_question_without_an_answer_costs_no_broker(tmp_path: Path, question: str) -> None:
    fake = Hanging(brokers_with(orders=filled(last_stable=4), others=filled(leader=2, last_stable=4)).logs)
    fake.question = question
    found, _ = _taken(fake, tmp_path, OPEN)
    assert {name: each.problem for name, each in found.items()} == dict.fromkeys(found)
    assert log_of(tmp_path / "2" / "others-0") == fake.logs["others", 0].content()
    assert not [note for note in notes_of(tmp_path)["partitions"].values() if "problem" in note]


class Noting(Client):
    """A client that notes what it says of brokers that do not answer."""

    failures: list[str]

    def ask(self, request: Any, broker: int | None = None, **how: Any) -> Any:
        try:
            return super().ask(request, broker, **how)
        except MovedError as error:
            self.failures.append(str(error))
            raise


def test_an_unreachable_broker_is_waited_for_once(tmp_path: Path) -> None:
    topics = {f"t{number}": filled(leader=number % 3 + 1) for number in range(30)}
    fake, ports = brokers_with(**topics), {2: 1}  # nothing listens on port 1
    with served(fake, ports=ports) as own:
        ports |= {1: own[1], 3: own[3]}
        with Noting(f"127.0.0.1:{own[1]}", {}) as client:
            client.failures = []
            captured = take_capture(client, CaptureRequest(tmp_path, scope=ALL), Progress(io.StringIO()))
    waited_for = [said for said in client.failures if said != "broker 2 (127.0.0.1:1) did not answer before"]
    (said,) = waited_for
    assert said.startswith("broker 2 (127.0.0.1:1) does not answer: nothing listens on this port. ")
    problems = {each.partition.leader: each.problem for each in captured.taken}
    assert problems == {1: None, 2: "broker 2 does not answer", 3: None}


def test_a_user_who_may_not_describe_every_transactional_id_is_told(tmp_path: Path) -> None:
    fake = brokers_with(orders=filled())
    assert "transactional ids" not in _taken(fake, tmp_path / "1", ALL)[1]
    fake.transactional_ids_code = REFUSED_ID
    assert "Needed: the operation DESCRIBE on all transactional ids" in _taken(fake, tmp_path / "2", ALL)[1]


@pytest.mark.parametrize(
    ("is_readable", "leader", "said"),
    [
        (False, 1, "1 partition cannot be captured as things are: the column detail says why"),
        (True, -1, "1 partition not whole: call it again to go on with what is missing"),
    ],
)
def test_another_call_is_proposed_where_it_helps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_readable: bool, leader: int, said: str
) -> None:
    fake = brokers_with(orders=filled(is_readable=is_readable, leader=leader))
    with served(fake) as ports:
        assert main.main(command(f"127.0.0.1:{ports[1]}", tmp_path / "c", "--scope", ALL, "--format", "json")) == 1
    printed = capsys.readouterr()
    proposals = [line for line in printed.err.splitlines() if line.startswith("txn-audit: 1 ")]
    assert proposals == [f"txn-audit: {said}"]
    assert {row["topic"]: row["captured"] for row in json.loads(printed.out)}["orders"] == "NO"


def test_a_dry_run_says_what_a_capture_would_fetch_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = {"orders": filled(last_stable=14), "quiet": filled(leader=2), "hidden": filled(is_readable=False)}
    fake = brokers_with(**logs)
    fake.transactional_ids_code = REFUSED_ID
    with served(fake) as ports:
        where = command(f"127.0.0.1:{ports[1]}", tmp_path / "c", "--format", "json")
        assert main.main([*where, "--dry-run"]) == 1
        printed = capsys.readouterr()
        assert list(tmp_path.iterdir()) == []
        assert "Fetch" not in fake.asked
        rows = {row["topic"]: row for row in json.loads(printed.out)}
        planned = {topic: (row["captured"], row["from_offset"], row["end_offset"]) for topic, row in rows.items()}
        assert planned == {
            "__transaction_state": ("PLANNED", 0, 4),
            "hidden": ("NO", None, None),
            "orders": ("PLANNED", 0, 20),
            "quiet": ("NOTHING_OPEN", None, None),
        }
        assert (
            "dry run: a capture would fetch 24 offsets of 2 partitions from 1 broker. Nothing was written"
            in printed.err
        )
        assert "Needed: the operation READ on these topics" in printed.err
        assert "Needed: the operation DESCRIBE on all transactional ids" in printed.err
        main.main(where)
        real = {row["topic"]: row for row in json.loads(capsys.readouterr().out)}
        assert {
            (topic, row["from_offset"], row["end_offset"]) for topic, row in real.items() if row["captured"] == "YES"
        } == {(topic, begin, end) for topic, (captured, begin, end) in planned.items() if captured == "PLANNED"}
        main.main([*where, "--dry-run"])
        assert "would fetch 0 offsets of 2 partitions" in capsys.readouterr().err, "what an earlier call fetched"


@pytest.mark.parametrize("module_name", ["kafka", "google_crc32c"])
def test_a_missing_extra_is_named_with_the_python_that_lacks_it(tmp_path: Path, module_name: str) -> None:
    hidden = (
        f"import sys; sys.modules[{module_name!r}] = None; from txnlib.ask.main import main;"
        " sys.exit(main(sys.argv[1:]))"
    )
    words = command("127.0.0.1:1", tmp_path / "c")
    done = subprocess.run([sys.executable, "-c", hidden, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.endswith(f": {sys.executable} -m pip install 'txnlib[capture]'\n")
