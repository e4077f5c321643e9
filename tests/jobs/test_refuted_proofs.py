"""Proofs that another record refutes, beside controls that nothing refutes.

Every schedule that is not safe has a witness for all five statements of docs/rules/abort.md, and a record that
contradicts one of them. Every control differs in that record alone, so over-caution is seen, too. Times are relative to
an instant t, and the capture is taken hours later.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.support.audits import AuditTables, audited
from tests.support.cluster import HOUR, MINUTE, Cluster, id_in
from tests.support.refutations import (
    END,
    OF_4_1,
    Kit,
    audits,
    cases,
    kraft,
    one_leader,
    tick,
    with_an_id_of_v2,
)
from tests.support.refuted_by_metadata import FROM_4_2, METADATA
from tests.support.refuted_copies import INVENTED, MORE
from tests.support.refuted_histories import OWNED
from tests.support.refuted_orphans import (
    BESIDE_A_LOSS,
    BESIDE_AN_ALARM,
    HOLES,
    HOLES_AND_A_NEW_LOG,
    LOWERED,
    NEVER_V2,
    NOT_REFUTED,
    NOTED,
    ORPHANS,
    V2,
    ten_days_ago,
)
from tests.support.schedules import Story, Told, wrong

pytestmark = pytest.mark.shares("kits")


KITS = {
    "owned": Kit(OWNED),
    "more": Kit(MORE),
    "orphans": Kit(ORPHANS, beside="what nobody owns"),
    "alarm": Kit(BESIDE_AN_ALARM, beside="what nobody owns"),
    "loss": Kit(BESIDE_A_LOSS, notes=OF_4_1, cluster=kraft(), beside="nothing else"),
    "holes": Kit(HOLES, then=partial(ten_days_ago, new=None)),
    "new log": Kit(HOLES_AND_A_NEW_LOG, then=partial(ten_days_ago, new=7)),
    "v2": Kit(V2, notes=OF_4_1 | {"transaction_version": 2}, then=with_an_id_of_v2),
    "lowered": Kit(LOWERED, notes=OF_4_1, cluster=kraft(((2, -5 * HOUR), (1, 70 * MINUTE)))),
    "never v2": Kit(NEVER_V2, notes=OF_4_1, cluster=kraft()),
    "noted": Kit(NOTED, then=with_an_id_of_v2),
    "not refuted": Kit(NOT_REFUTED),
    "metadata": Kit(METADATA, notes=OF_4_1, cluster=kraft(), beside="what nobody owns"),
    "invented": Kit(INVENTED),
    "from 4.2": Kit(FROM_4_2, notes={"kafka_version": "4.2.0"}, cluster=kraft()),
}


@pytest.fixture(scope="session")
def audit_of(tmp_path_factory) -> Callable[[str], tuple[AuditTables, Told]]:
    return audits(KITS, tmp_path_factory)


@pytest.mark.parametrize(("kit", "name"), cases(KITS))
def test_a_witness_that_the_capture_refutes_proves_nothing(audit_of, kit, name):
    tables, told = audit_of(kit)
    assert wrong(tables, {name: told[name]}) == {}


# ---- Texts


def texts_of(row: dict[str, Any]) -> str:
    causes = [f"{each['cause']} {each['evidence']}" for each in row["causes"] or ()]
    return " ".join([row["explanation"], row["do_not_abort_because"] or "", *causes])


def unsafe_rows(audit_of: Any, kit: str) -> list[dict[str, Any]]:
    tables, _ = audit_of(kit)
    return [row for row in tables.rows("open_transactions") if row["verdict"] == "HANGING" and not row["safe_to_abort"]]


TOLD = ["owned", "orphans", "v2", "metadata", "more", "invented"]


@pytest.mark.parametrize("kit", TOLD)
def test_every_statement_that_fails_is_named(audit_of, kit):
    left_out = {
        (row["topic"], each["name"])
        for row in unsafe_rows(audit_of, kit)
        for each in row["safety"]
        if not each["holds"] and each["says"] not in row["do_not_abort_because"]
    }
    assert left_out == set()


@pytest.mark.parametrize("kit", TOLD)
def test_no_partition_forgets_a_producer_whose_transaction_is_open(audit_of, kit):
    tables, _ = audit_of(kit)
    told = [texts_of(row) for row in tables.rows("open_transactions")]
    told += [" ".join([*(row["notes"] or ()), row["effect"] or ""]) for row in tables.rows("abort_plan")]
    assert [text for text in told if "forgets the producer" in text] == []


@pytest.mark.parametrize("kit", TOLD)
def test_an_action_that_contains_an_abort_is_not_called_do_not_abort(audit_of, kit):
    """The row and the plan of a transaction agree on whether somebody is to abort."""
    tables, _ = audit_of(kit)
    place = ("topic", "partition", "producer_id")
    told = {tuple(row[name] for name in place): texts_of(row) for row in tables.rows("open_transactions")}
    forbidden = [row for row in tables.rows("abort_plan") if row["action"] == "DO_NOT_ABORT"]
    assert [row["topic"] for row in forbidden if row["command"] is not None] == []
    assert [row["topic"] for row in forbidden if "then abort" in told[tuple(row[name] for name in place)]] == []


@pytest.mark.parametrize("kit", TOLD)
def test_no_cause_contradicts_what_the_copies_show(audit_of, kit):
    tables, _ = audit_of(kit)
    told = {row["topic"]: texts_of(row) for row in tables.rows("open_transactions")}
    both = [topic for topic, text in told.items() if "removed its tombstone" in text and "removed none" in text]
    assert both == []
    nobodys = [row for row in tables.rows("open_transactions") if row["transactional_id"] is None]
    assert [row["topic"] for row in nobodys if "a log was lost" in texts_of(row)] == []
    assert [row["topic"] for row in nobodys if "than the coordinator's" in texts_of(row)] == []


def test_skew_of_assumed_instants_says_so_and_what_helps(tmp_path):
    """No file notes an instant, and the transaction began after the newest stamp of its coordinator."""
    c = Cluster()
    s = Story(c, "assumed", id_in(7, "assumed"), 1_000, 7)
    s.note("Empty", 0)
    s.beat(MINUTE)
    s.write(50 * MINUTE)
    tick(s, HOUR)
    one_leader(s)
    tables = audited(c.capture(tmp_path / "brokers", END, notes={"captured_at_ms": None}))
    (row,) = tables.rows("open_transactions")
    assert (row["verdict"], row["reason"]) == ("UNKNOWN", "CAPTURE_SKEW")
    told = texts_of(row)
    assert "assumed" in told
    assert "--captured-at" in told
    assert "capture.json" in told
