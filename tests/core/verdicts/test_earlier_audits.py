"""What earlier audits read, and which of them a world needs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.core.verdicts.test_world import SEEN
from tests.support.cases import derived
from tests.support.dossier_samples import DECISION, DOSSIER, FACTS, SPAN, placed
from txnlib.core.verdicts.case import Case
from txnlib.core.verdicts.earlier_audits import telling
from txnlib.core.verdicts.reason import Reason
from txnlib.core.verdicts.scene import Scene

#: Changes to what an earlier audit read, and to its row -> whether it read all of the decision before it copied the
#: partition. The clocks of the two differ by less than a second.
DECIDED_MS = DECISION.completed_ms
READ = [
    ({}, {}, True),
    ({"coordinator_partition": 4}, {}, False),
    ({"until_offset": DECISION.last_record_offset}, {}, True),
    ({"until_offset": DECISION.last_record_offset - 1}, {}, False),
    ({}, {"copied_ms": DECIDED_MS + 1_000}, True),
    ({}, {"copied_ms": DECIDED_MS + 999}, False),
    ({"copied_ms": DECIDED_MS}, {"copied_ms": DECIDED_MS}, True),
    ({"copied_ms": DECIDED_MS - 1}, {"copied_ms": DECIDED_MS - 1}, False),
    ({}, {"copied_ms": None}, False),
    (None, {}, False),
]


@pytest.mark.parametrize(("read", "changes", "expected"), READ)
def test_an_earlier_audit_read_what_was_complete_before_its_copy(read, changes, expected):
    carried = None if read is None else replace(SEEN.carried, **read)
    scene = Scene(Case(dossier=DOSSIER, span=SPAN, facts=placed(FACTS, {})))
    derived(scene.case, clocks_differ_ms=1_000)
    assert scene.has_read(replace(SEEN, carried=carried, **changes), DECISION) is expected


def test_of_years_of_nights_those_count_that_tell_something_new():
    nights = [replace(SEEN, run_id=str(number), newest_leader_epoch=number // 100) for number in range(400)]
    kept = [0, 99, 100, 199, 200, 299, 300, 396, 397, 398, 399]
    assert [int(each.run_id) for each in telling(nights, ())] == kept
    assert [int(each.run_id) for each in telling(nights, ("7", None))] == sorted([*kept, 7])
    nights[50] = replace(nights[50], reason=Reason.PRODUCER_ID_ROTATED)
    assert [int(each.run_id) for each in telling(nights, ())] == sorted([*kept, 49, 50, 51])
    assert telling((), ()) == []
