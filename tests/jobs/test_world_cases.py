"""What an audit must say of small captures with a trap each (tests/captures/README.md)."""

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.audits import audited
from tests.support.refutations import Open

REPOSITORY = Path(__file__).parents[2]
#: By case, `topic-partition/producer`: the verdicts that are allowed, whether it may be called safe (`no`, `yes`: it
#: must be, `any`), and why.
EXPECTED: dict[str, dict[str, tuple[str, str, str]]] = {}
with tarfile.open(REPOSITORY / "tests" / "captures" / "world-cases.tar.xz") as archive:
    for case in ("absorb", "copies", "mda", "prep"):
        member = archive.extractfile(f"{case}.expect.json")
        assert member is not None
        EXPECTED[case] = json.load(member)
#: The answers of today that are not those expected.
OPEN: Open = {}


@pytest.fixture(scope="session")
def rows_of(tmp_path_factory) -> Callable[[str], dict[str, dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("cases")
    with tarfile.open(REPOSITORY / "tests" / "captures" / "world-cases.tar.xz") as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
        archive.extractall(folder)

    def of(case: str) -> dict[str, dict[str, Any]]:
        rows = audited(folder / case, "--as-of", "2026-11-22T10:00:00Z").rows("open_transactions")
        return {f"{row['topic']}-{row['partition']}/{row['producer_id']}": row for row in rows}

    return of


@pytest.mark.parametrize(("case", "key"), [(case, key) for case, keys in EXPECTED.items() for key in keys])
def test_a_small_capture_with_a_trap(rows_of, case, key):
    verdicts, safe, why = EXPECTED[case][key]
    row = rows_of(case).get(key)
    said = (None, False) if row is None else (row["verdict"], row["safe_to_abort"])
    is_right = str(said[0] or "NONE") in verdicts.split() and (safe == "any" or said[1] == (safe == "yes"))
    if f"{case} {key}" in OPEN:
        assert (is_right, said) == (False, OPEN[f"{case} {key}"]), "no longer open, or otherwise"
    else:
        assert is_right, f"{said}, not {verdicts}, safe {safe}: {why}"
