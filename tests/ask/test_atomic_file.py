"""Output files: complete or absent, and checked before any work."""

from __future__ import annotations

from pathlib import Path

import pytest

from txnlib.ask.command_output import check_whole_file, write_whole_file
from txnlib.errors import UsageError


def test_folders_that_are_missing_are_made_when_the_page_is_written_and_not_before(tmp_path):
    file = tmp_path / "new" / "report.html"
    check_whole_file(str(file))
    assert list(tmp_path.iterdir()) == []
    write_whole_file(str(file), "<p>ü")
    assert file.read_bytes() == "<p>ü".encode()
    assert list(file.parent.iterdir()) == [file]


def test_a_page_that_cannot_be_written_leaves_the_one_before(tmp_path):
    file = tmp_path / "report.html"
    file.write_text("before")
    with pytest.raises(UnicodeEncodeError):
        write_whole_file(str(file), "half \ud800")
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]


def test_who_reads_the_page_before_reads_it_to_its_end(tmp_path):
    file = tmp_path / "report.html"
    file.write_text("before")
    with file.open() as reader:
        write_whole_file(str(file), "after")
        assert reader.read() == "before"
    assert file.read_text() == "after"


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "latest.html").symlink_to(tmp_path / "report.html")
    check_whole_file(str(tmp_path / "latest.html"))
    write_whole_file(str(tmp_path / "latest.html"), "page")
    assert (tmp_path / "report.html").read_text() == "page"
    assert (tmp_path / "latest.html").is_symlink()


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("", "is a folder; name a file"),
        ("/dev/null", "is not a regular file"),
        ("taken/report.html", "cannot be written (Not a directory)"),
        ("/proc/none/report.html", "cannot be written (No such file or directory)"),
        ("s3://bucket/report.html", "written to a local file, not to a store"),
    ],
)
def test_a_place_that_cannot_be_written_is_named(tmp_path, place, problem):
    (tmp_path / "taken").write_text("a file")
    given = place if "://" in place or Path(place).is_absolute() else str(tmp_path / place)
    with pytest.raises(UsageError) as caught:
        check_whole_file(given)
    assert str(caught.value).startswith(given)
    assert problem in str(caught.value)
