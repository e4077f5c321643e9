"""Equal tables by both engines, of more captures: the sample, damage, compaction, old formats, lost disks, metadata."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.both_engines import Asked, audit_by_embedded, audit_by_spark, differences

pytestmark = [pytest.mark.classic, pytest.mark.slow]

CAPTURES = (
    *("cluster-3.9/brokers", "cluster-3.9/dumps", "md-4.1/brokers", "old-disk-4.1/brokers", "damaged-3.8/brokers"),
    *("old-2.8/brokers", "two-phase-4.3/brokers", "transactions-v2-4.3/brokers", "in-motion-4.0/brokers"),
    *("hostile-3.9/dumps", "hostile-4.3/brokers", "expired-3.7/brokers", "overflow-4.2/brokers"),
    *("prepared-4.1/brokers",),
)


def compared(captures: list[Path], folder: Path) -> list[str]:
    """What differs after audits of these captures, one after the other, into one folder of each engine."""
    for engine, audit in (("embedded", audit_by_embedded), ("spark", audit_by_spark)):
        audit([Asked(str(each), str(folder / engine), cluster="eu") for each in captures])
    return differences(folder / "embedded", folder / "spark")


@pytest.mark.parametrize("name", CAPTURES)
def test_both_engines_make_equal_tables(engine, captures, tmp_path, name):
    assert compared([captures / name], tmp_path) == []


def test_both_engines_make_equal_tables_of_the_sample(engine, repository, tmp_path):
    assert compared([repository / "examples" / "quickstart" / "brokers"], tmp_path) == []


def test_both_engines_make_equal_tables_of_nights(engine, captures, tmp_path):
    nights = [captures / "nights-3.9" / f"night-{number}" / "brokers" for number in (1, 2, 3)]
    assert compared(nights, tmp_path) == []
