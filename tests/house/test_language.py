"""Titles of modules, and words that documents avoid."""

import ast
import re
from pathlib import Path

import pytest

TITLE_WORDS = 12
#: Words that made readers stop.
BANNED = re.compile(
    r"\b(whoever|nobody's|so many|is told|are told|to be told|as ever|anew|there where|be it only)\b", re.IGNORECASE
)
CODE = ("txnlib", "jobs", "bench", "deploy", "docs", "scripts", "tests")


def sources(repository: Path) -> list[Path]:
    return [path for folder in CODE for path in sorted((repository / folder).rglob("*.py")) if path.read_text().strip()]


def title(docstring: str) -> str:
    """The first sentence, or what is before its first colon; each name in code counts as one word."""
    first = re.sub(r"`[^`]*`(: )?", "x ", docstring.split("\n\n")[0].replace("\n", " "))
    return re.split(r"(?<=\w)[.:;](?:\s|$)", re.sub(r"^\d+\. ", "", first))[0]


def faults(path: Path) -> list[str]:
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    if not docstring:
        return ["has no title"]
    count = len(title(docstring).split())
    return [
        *(["asks"] if "?" in docstring.split("\n\n")[0] else []),
        *([f"has {count} words"] if count > TITLE_WORDS + 1 else []),
    ]


def test_a_module_has_a_title_that_is_no_question(repository):
    assert [f"{path.relative_to(repository)} {fault}" for path in sources(repository) for fault in faults(path)] == []


@pytest.mark.parametrize("folder", ["README.md", "CHANGELOG.md", "docs"])
def test_pages_are_in_plain_english(repository, folder):
    pages = [repository / folder] if folder.endswith(".md") else sorted((repository / folder).rglob("*.md"))
    for page in pages:
        prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        assert (page.name, BANNED.findall(prose)) == (page.name, [])
