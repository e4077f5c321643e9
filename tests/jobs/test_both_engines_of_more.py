"""Equal tables by both engines, of more captures: damage, compaction, old formats, lost disks, and cluster metadata."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.both_engines import Asked, audit_by_embedded, audit_by_spark, differences

pytestmark = [pytest.mark.classic, pytest.mark.slow]

CAPTURES = (
    "quickstart", "cluster-3.9", "md-4.1", "old-disk-4.1", "causes-3.9", "healthy-4.0", "in-motion-4.0", "damaged-3.8",
    "old-2.8", "two-phase-4.3", "hostile-3.9", "expired-3.7", "overflow-4.2", "prepared-4.1", "real-clients-4.2",
)  # fmt: skip


@pytest.fixture(scope="module")
def audited(engine, captures: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folders = [tmp_path_factory.mktemp(name) for name in ("embedded", "spark")]
    for folder, audit in zip(folders, (audit_by_embedded, audit_by_spark), strict=True):
        audit(
            [
                *(
                    Asked(str(captures / name / part), str(folder / name / part))
                    for name in CAPTURES
                    for part in ("brokers", "dumps")
                    if (captures / name / part).exists()
                ),
                *(
                    Asked(str(captures / "nights-3.9" / f"night-{number}" / "brokers"), str(folder / "nights"), "eu")
                    for number in (1, 2, 3)
                ),
            ]
        )
    return folders


@pytest.mark.parametrize("name", CAPTURES)
def test_both_engines_make_equal_tables(audited, captures, name):
    for part in ("brokers", "dumps"):
        folders = [folder / name / part for folder in audited]
        assert [folder.exists() for folder in folders] == [(captures / name / part).exists()] * 2
        assert differences(*folders) == []


def test_both_engines_make_equal_tables_of_nights(audited):
    assert differences(*(folder / "nights" for folder in audited)) == []
