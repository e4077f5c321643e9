"""The world in which a COMMIT may include open records, in words: each event, in an order that its times allow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.dossier_samples import COMPACTED, DECISION, LOST, MARKER, MINUTE, NOON, judged
from txnlib.core.verdicts.statements import Statement

CHANGED = {"leader_epoch": 4}
FIRST = "its first batch is written, at offset 50"


def story(**given):
    (proof,) = [each for each in judged(**given).safety if each.name is Statement.NO_COMMIT_INCLUDES_IT]
    return proof.holds, list(proof.witnesses)


def test_a_shown_decision_is_told_behind_the_batch():
    holds, told = story(dossier={"decisions": (DECISION, LOST)}, copy=CHANGED)
    assert not holds
    assert told[1] == FIRST
    assert told[2].startswith("its coordinator decides COMMIT (")
    assert told[2].endswith(", which lists this partition")
    assert told[3].startswith("the marker of that COMMIT is written here, and lost: leaders changed since")


def test_a_hidden_decision_is_told_with_what_hides_it():
    holds, told = story(dossier={"decisions": ()}, coordinator=COMPACTED, claim={"record_offset": 95}, copy=CHANGED)
    assert not holds
    assert any("compaction removed records below" in each for each in told)
    assert told[-1].startswith("the marker of that COMMIT is written here, and lost")


def test_a_decision_that_its_coordinator_lost_need_not_have_a_marker():
    holds, told = story(claim={"highest_epoch": 4})
    assert not holds
    assert told[-1] == "the marker of that COMMIT is not written here"


def test_a_marker_names_the_decision_that_it_carries_out():
    _, told = story(dossier={"decisions": (DECISION, LOST)}, copy=CHANGED)
    assert told[0].startswith("COMMIT marker at offset 40 (")
    assert f": it carries out offset {DECISION.last_record_offset} of __transaction_state-3" in told[0]


@pytest.mark.parametrize("age", [1, 30, 600])
def test_events_are_told_in_the_order_of_their_times(age):
    """Decided long after the last marker here."""
    lost = replace(
        LOST, start_ms=NOON + age * MINUTE, said_ms=NOON + age * MINUTE, prepared_ms=NOON + age * MINUTE,
        completed_ms=NOON + (age + 1) * MINUTE,
    )  # fmt: skip
    holds, told = story(dossier={"decisions": (DECISION, lost)}, span={"markers": (MARKER,)}, copy=CHANGED)
    assert not holds
    kinds = [
        next(kind for kind in ("marker at", "first batch", "decides", "that COMMIT") if kind in each) for each in told
    ]
    assert kinds == ["marker at", "first batch", "decides", "that COMMIT"]


def test_what_is_proven_tells_the_facts_that_close_every_other_world():
    holds, told = story()
    assert holds
    assert told
    assert not any("first batch is written" in each for each in told)
