"""Calm is said only where all that was given was read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.html import parsed
from txnlib.ask.delta_rows import open_run, open_tables
from txnlib.ask.overviews import NOT_READ, answer_coverage
from txnlib.ask.page_rows import page_rows_of
from txnlib.ask.report import CALM, Report
from txnlib.ask.report_rows import report_of
from txnlib.ask.run_result import Outcome, render_metrics, results_of
from txnlib.auditing import audit
from txnlib.core.instants import parse_instant
from txnlib.jobs.fail_on import matches, parse_fail_on
from txnlib.page.report_page import render_page

Q01: Final = Path(__file__).parents[1] / "data" / "q01-unread-text-called-calm"
HEALTHY: Final = Q01 / "x4-healthy-and-lost-text"
TEXT: Final = "from-colleague.txt"
SEGMENT: Final = f"{0:020}.log"
AS_OF: Final = parse_instant("2026-11-22T10:00:00Z")


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A whole and healthy capture."""
    folder = shutil.copytree(HEALTHY, tmp_path / "capture")
    (folder / TEXT).unlink()
    return folder


def reported(capture: Path, output: Path) -> Report:
    audit(capture, output=output, as_of=AS_OF)
    return report_of(open_run(open_tables(str(output))))


def pack(folder: Path) -> str:
    with tarfile.open(folder / "more.tar.gz", "w:gz") as archive:
        archive.add(HEALTHY / TEXT, TEXT)
    return "1 archive of {size} was not unpacked: {path}"


def put_into_plain_folder(folder: Path) -> str:
    (folder / "copied").mkdir()
    shutil.copy(folder / "1" / "gold-0" / SEGMENT, folder / "copied" / SEGMENT)
    return "1 partition's file of {size} could not be placed: {path}"


def lead_out(folder: Path) -> str:
    outside = folder.parent / "orders-7"
    shutil.copytree(folder / "1" / "gold-0", outside)
    (folder / "1" / "orders-7").symlink_to(outside)
    return "1 link was not followed: {path}"


def paste(folder: Path) -> str:
    shutil.copy(HEALTHY / TEXT, folder / TEXT)
    return "1 text of {size} could not be placed: {path}"


def cut_copy(folder: Path) -> str:
    path = folder / "1" / "gold-0" / SEGMENT
    content = path.read_bytes()
    marker = content[-78:]
    behind = int.from_bytes(marker[:8], "big") + 1
    path.write_bytes(content + behind.to_bytes(8, "big") + marker[8:40])
    return "{size} at the end of 1 file could not be read: {path}"


def damage(folder: Path) -> str:
    path = folder / "1" / "__transaction_state-1" / SEGMENT
    content = path.read_bytes()
    path.write_bytes(content + b"\x77" * 60 + content)
    return "{size} of 1 file could not be read: {path}"


#: As many as the first line names, in each.
UNREAD: Final = [(paste, pack, lead_out), (put_into_plain_folder, cut_copy, damage)]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("makes", UNREAD, ids=["not placed", "not read"])
def test_nothing_hangs_in_what_was_read_alone(capture: Path, tmp_path: Path, makes: tuple[Any, ...]) -> None:
    expected = [make(capture) for make in makes]
    report = reported(capture, tmp_path / "out")

    rows = {row["path"]: row for row in report.unread}
    assert report.answer[0].startswith("nothing hangs in what was read; ")
    said = [{"size": _size(each.bytes), "path": each.paths[0]} for each in report.unread_by_reason]
    for text in expected:
        assert any(text.format(**each) in report.answer[0] for each in said), (text, report.answer[0])
    assert (report.level, report.unreadable_files) == ("warning", len(makes))
    for condition in ("coverage", "unknown"):
        assert f"{len(makes)} files not read, or not to their end" in matches(parse_fail_on(condition), report.counts)
    run = open_run(open_tables(str(tmp_path / "out")))
    found = results_of(run, report)
    assert found["coverage"]["unreadable_files"] == len(makes)
    assert sorted(each["path"] for each in found["coverage"]["not_read"]) == sorted(rows)
    gauges = render_metrics(Outcome("c", "1", 0, 0, 0, found=found))
    assert f'txnlib_unreadable_files{{cluster="c"}} {float(len(makes))}' in gauges
    assert f'txnlib_unreadable_bytes{{cluster="c"}} {float(report.unreadable_bytes)}' in gauges
    page = " ".join("".join(parsed(render_page(page_rows_of(run, tables=None))).itertext()).split())
    assert "Nothing hangs in what was read" in page
    details = [each["detail"] for each in answer_coverage(run, None).rows if each["status"] == NOT_READ]  # type: ignore[arg-type]
    for row in rows.values():
        assert row["reason"] in page
        assert (f"{row['path']}: {row['reason']}" in details) == (row["topic"] is None)


def _size(count: int) -> str:
    return f"{count} B" if count < 1024 else f"{count / 1024:.1f} KiB"


@pytest.mark.usefixtures("engine")
def test_what_was_read_whole_is_calm_beside_a_readme(capture: Path, tmp_path: Path) -> None:
    (capture / "README.md").write_text("# Copies of Tuesday\n")
    report = reported(capture, tmp_path / "out")
    assert report.answer[0] == f"{CALM}  No transaction is open."
    assert (report.level, report.unreadable_files, report.unread) == ("calm", 0, [])
    assert matches(parse_fail_on("coverage,unknown"), report.counts) == []


@pytest.mark.usefixtures("engine")
def test_a_text_alone_that_cannot_be_placed_is_said_with_what_to_do(tmp_path: Path) -> None:
    report = reported(Q01 / "x1-pasted-no-dumping-line", tmp_path / "out")
    assert report.answer[0].startswith("nothing hangs in what was read; 1 text of 4.0 KiB could not be placed: ")
    (row,) = report.unread
    assert row["reason"].endswith("call the file <topic>-<partition>.txt")


# ---- What the user of the audit may not open


#: Root may open everything, unless it is without these.
_AS_OTHERS: Final = ["setpriv", "--inh-caps=-dac_override,-dac_read_search"]
_AS_OTHERS_TOO: Final = "--bounding-set=-dac_override,-dac_read_search"


def as_ordinary_user(*command: str) -> subprocess.CompletedProcess[str]:
    before = [*_AS_OTHERS, _AS_OTHERS_TOO] if os.geteuid() == 0 else []
    return subprocess.run([*before, *command], capture_output=True, text=True, check=False, timeout=300)


def may_not(path: Path) -> None:
    path.chmod(0)


@pytest.fixture
def closed(capture: Path) -> Any:
    """A file, a folder of a partition, and a text that may not be opened."""
    shutil.copy(HEALTHY / TEXT, capture / "gold-1.txt")
    paths = [capture / "1" / "__transaction_state-2", capture / "1" / "gold-0" / SEGMENT, capture / "gold-1.txt"]
    for path in paths:
        may_not(path)
    yield paths
    for path in paths:
        path.chmod(0o700)


def test_permission_denied_is_said_as_that(repository: Path, capture: Path, closed: list[Path], tmp_path: Path) -> None:
    job, output = str(repository / "jobs" / "audit.py"), tmp_path / "out"
    options = ["--input", str(capture), "--output", str(output), "--as-of", "2026-11-22T10:00:00Z"]
    files = ["--summary", str(tmp_path / "summary.json"), "--fail-on", "coverage"]

    ended = as_ordinary_user(sys.executable, job, *options, *files)

    assert ended.returncode == 3, ended.stderr
    screen = " ".join(ended.stdout.split())
    assert "nothing hangs in what was read; Permission denied: " in screen
    for path in closed:
        assert f"Permission denied: {path}" in ended.stderr
        assert f"{path} " in screen
    for never in ("damaged", "nothing unreadable", "no copy was captured"):
        assert never not in screen.casefold()
    told = json.loads((tmp_path / "summary.json").read_text())["found"]["coverage"]
    assert told["unreadable_files"] == 3
    assert told["partitions"] == {"COMPLETE": 4, "PARTIAL": 2, "DAMAGED": 0, "MISSING": 0}
    assert {each["reason"].partition(":")[0] for each in told["not_read"]} == {"PERMISSION_DENIED"}


def test_a_capture_that_may_not_be_opened_at_all_is_refused_with_its_paths(
    repository: Path, capture: Path, tmp_path: Path
) -> None:
    job, options = str(repository / "jobs" / "audit.py"), ["--output", str(tmp_path / "out")]
    may_not(capture / "1")
    try:
        refused = as_ordinary_user(sys.executable, job, "--input", str(capture), *options)
        below = as_ordinary_user(sys.executable, job, "--input", str(capture / "1" / "gold-0"), *options)
    finally:
        (capture / "1").chmod(0o700)
    assert (refused.returncode, below.returncode) == (2, 2)
    assert f"(Permission denied: {capture / '1'})" in refused.stderr
    assert f"{capture / '1' / 'gold-0'}: Permission denied. " in below.stderr
