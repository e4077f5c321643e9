"""Files that texts of this repository name: each exists, and a page has the heading."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.house.test_docs import anchors
from txnlib.core.verdicts.statements import STATEMENTS

#: A page, by its path or its name alone, and a heading in it; in code also a record of `docs/decisions`, by its number
#: alone.
NAMED = re.compile(r"(?<![\w/.*}{-])((?:[\w.-]+/)*[\w-]+\.md)(?:#([\w-]+))?(?![\w*])|\b(docs/decisions/\d{4})\b")
#: Any other file, by its path from the root.
FILE = re.compile(
    r"(?<![\w/.{}-])((?:txnlib|tests|docs|scripts|bench|deploy|jobs|conf|notebooks)/[\w./-]*\.(?:py|sh|toml|conf|xml|ipynb))\b"
)
#: Sections cited by number: a number is no anchor, and moves when a section is added. Pages outside of the repository.
NO_ANCHOR = re.compile(
    r"\w\.md`?,? \(?(?:section |rule )?\d|\bDESIGN\b|/shared/|\b(?:Section|Group) [A-Z] of (?!docs/)"
)
#: The dead citations that it must find, and names of pages in the site, which is built strictly.
ELSEWHERE = ("tests/house/test_citations.py", "docs/site_pages.py", "mkdocs.yml", "tests/house/test_site.py")


def texts(repository: Path) -> dict[str, str]:
    """Tracked path -> text."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=repository, capture_output=True, text=True, check=True)
    found = {}
    for name in filter(None, listed.stdout.split("\0")):
        try:
            found[name] = (repository / name).read_text()
        except (UnicodeDecodeError, FileNotFoundError):
            continue
    return found


def page_named(repository: Path, where: str, name: str, *, is_quoted: bool) -> Path | None:
    """A page by its path from the root; by a link, from the page with the link; in quotes, also as code finds it in
    `docs`."""
    folders = [repository, (repository / where).parent, *([repository / "docs"] if is_quoted else [])]
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def faults(repository: Path, where: str, line: str) -> list[str]:
    found = []
    for name, anchor, decision in NAMED.findall(line):
        if decision:
            found += [] if [*repository.glob(f"{decision}-*.md")] else [f"{decision} does not exist"]
            continue
        page = page_named(repository, where, name, is_quoted=f'"{name}"' in line)
        if page is None:
            found.append(f"{name} does not exist")
        elif anchor and anchor not in anchors(page):
            found.append(f"{name} has no heading {anchor}")
    found += [f"{name} does not exist" for name in FILE.findall(line) if not (repository / name).exists()]
    return found + [f"{cited} is no anchor" for cited in NO_ANCHOR.findall(line)]


def test_every_file_that_is_named_exists(repository):
    found = [
        f"{where}:{number}: {fault}"
        for where, text in texts(repository).items()
        if where not in ELSEWHERE
        for number, line in enumerate(text.splitlines(), 1)
        for fault in faults(repository, where, line)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("Source: docs/rules/copies.md#current-copies.", 0),
        ("Source: docs/rules/copies.md#known-until.", 1),
        ("Source: docs/rules/cats.md.", 1),
        ("semantics.md 1.9", 2),
        ("(DESIGN 5.2)", 1),
        ("Section A of scenarios.md", 2),
        ("docs/decisions/0001, docs/decisions/9999", 1),
        ("`tests/core/verdicts/test_copies.py`, `tests/core/verdicts/test_cats.py`", 1),
    ],
)
def test_a_dead_citation_is_found(repository, line, count):
    assert len(faults(repository, "txnlib/core/cat.py", line)) == count


def test_the_page_about_aborts_has_every_statement(repository):
    page = (repository / "docs" / "rules" / "abort.md").read_text()
    assert [name for name, says in STATEMENTS.items() if f"`{name}`: {says}" not in page] == []
