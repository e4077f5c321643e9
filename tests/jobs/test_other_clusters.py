"""Nights of another cluster that has the same name."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.audits import audited_anew
from tests.support.cluster import HOUR, MINUTE, Cluster
from txnlib.errors import UsageError

ORDERS = ("orders", 0)


def night(folder: Path, number: int, cluster_id: str | None) -> Path:
    """A capture of the same open transaction, that many hours later."""
    cluster = Cluster()
    cluster.beat(ORDERS, (0, 5 * MINUTE), 900)
    cluster.write(ORDERS, 7, 0, 6 * MINUTE)
    capture = cluster.capture(folder / str(number), (3 + number) * HOUR)
    if cluster_id is not None:
        (capture / "1" / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={cluster_id}\n")
    return capture


@pytest.mark.parametrize(
    ("before", "tonight", "is_refused"),
    [
        (["A"], "B", True),
        (["A", None], "B", True),
        (["A"], "A", False),
        (["A"], None, False),
        ([None], "A", False),
    ],
    ids=["another", "another before", "the same", "unknown tonight", "unknown before"],
)
def test_history_of_another_cluster_is_refused(
    tmp_path: Path, before: list[str | None], tonight: str | None, is_refused: bool
) -> None:
    folder = TemporaryDirectory()
    for number, cluster_id in enumerate(before):
        audited_anew([night(tmp_path, number, cluster_id)], "--cluster", "kafka", folder=folder).run.note("DONE", {})
    inputs = [night(tmp_path, len(before), tonight)]
    if is_refused:
        with pytest.raises(UsageError, match="are of the cluster with the id A, this capture is of B: give"):
            audited_anew(inputs, "--cluster", "kafka", folder=folder)
        inputs_of = audited_anew(inputs, "--cluster", "other", folder=folder)
        assert inputs_of.run.earlier == ()
    else:
        assert len(audited_anew(inputs, "--cluster", "kafka", folder=folder).run.earlier) == len(before)
