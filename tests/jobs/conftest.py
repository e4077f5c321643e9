"""Two audits of all schedules: of those beside whole coordinators, and of those beside others."""

import pytest

from tests.jobs import test_partial_copies as partial
from tests.jobs import test_proofs as proofs
from tests.support.audits import AuditTables, audited
from tests.support.cluster import MANY_COORDINATORS, Cluster
from tests.support.schedules import Told, built

WITH = {
    "whole coordinators": partial.LOGS | proofs.SCHEDULES,
    "other coordinators": partial.COORDINATORS | proofs.DAMAGED,
}


@pytest.fixture(scope="session", params=WITH.values(), ids=WITH)
def audit_of_schedules(request, tmp_path_factory) -> tuple[AuditTables, Told]:
    c, told = built(request.param, Cluster(coordinators=MANY_COORDINATORS))
    notes = {"transactional_id_expiration_ms": proofs.MINUTE}  # tombstones of these minutes are of ids that expired
    return audited(c.capture(tmp_path_factory.mktemp("schedules") / "brokers", proofs.END, notes=notes)), told
