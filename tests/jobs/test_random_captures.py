"""Laws of random captures.

What the whole history ends or owns is never HANGING; a transaction with a due COMMIT is never aborted.
The price of that caution is counted: of whole captures hardly anything may be UNKNOWN.
"""

from pathlib import Path
from random import Random

import pytest

from tests.support.audits import audited
from tests.support.random_history import History, partial_capture, random_history, whole_capture

SEEDS = [1]
MANY_SEEDS = range(2, 13)
#: Transactions v1 and v2, by versions of brokers that have them.
VERSIONS = {False: "3.9.1", True: "4.1.1"}


def alarms(folder: Path, history: History) -> tuple[list[str], list[dict]]:
    """What an audit of a capture says wrongly, and its open transactions."""
    rows = audited(folder).rows("open_transactions")
    wrong = []
    for row in rows:
        place, pid = (row["topic"], row["partition"]), row["producer_id"]
        is_over = history.is_ended(place, pid, row["start_offset"]) or history.is_owned(place, pid)
        if row["verdict"] == "HANGING" and is_over:
            wrong.append(
                f"HANGING though it ends: {place} {pid} {row['start_offset']} {row['reason']}: {row['explanation']}"
            )
        if row["safe_to_abort"] and (is_over or history.is_commit_due(place, pid, row["start_offset"])):
            wrong.append(f"safe though it is not: {place} {pid} {row['start_offset']} {row['reason']}")
    return wrong, rows


def check(folder: Path, seed: int, *, is_whole: bool) -> list[dict]:
    random, is_v2 = Random(seed), seed % 2 == 0
    history = random_history(random, is_v2=is_v2)
    notes = {"kafka_version": VERSIONS[is_v2], "transaction_version": 2 if is_v2 else 0}
    capture = whole_capture(history, folder, **notes) if is_whole else partial_capture(random, history, folder, **notes)
    wrong, rows = alarms(capture, history)
    assert wrong == []
    return rows


@pytest.mark.parametrize("seed", SEEDS)
def test_a_partial_capture_raises_no_alarm_that_the_history_refutes(tmp_path, seed):
    rows = check(tmp_path / "brokers", seed, is_whole=False)
    assert {row["verdict"] for row in rows} >= {"HANGING", "UNKNOWN"}


@pytest.mark.slow
def test_of_a_whole_capture_hardly_anything_is_unknown(tmp_path):
    rows = check(tmp_path / "brokers", SEEDS[0], is_whole=True)
    assert any(row["safe_to_abort"] for row in rows)
    assert sum(row["verdict"] == "UNKNOWN" for row in rows) <= len(rows) / 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", MANY_SEEDS)
@pytest.mark.parametrize("is_whole", [False, True])
def test_the_same_of_many_histories(tmp_path, seed, is_whole):
    check(tmp_path / "brokers", seed, is_whole=is_whole)
