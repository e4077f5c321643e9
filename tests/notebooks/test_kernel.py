"""Notebooks in a kernel of Jupyter, without a session of Spark: what one shows is what its file shows.

One that audits, and one that reads tables; the others are run in test_notebooks.py alone.
"""

import re
from html import unescape

import pytest

from tests.support.notebooks import NOTEBOOKS, committed, run_in_kernel

pytestmark = pytest.mark.shares("notebooks")

AUDITS, READS = "audit_a_capture.ipynb", "why_is_this_partition_stuck.ipynb"
ALL = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Notebook -> the outputs of each of its cells: in a kernel, or those in its file. One makes the tables of the
    other."""
    sample = str(tmp_path_factory.mktemp("kernel") / "out" / "quickstart")
    ran = {AUDITS: run_in_kernel(AUDITS, OUTPUT=sample), READS: run_in_kernel(READS, TABLES=sample)}
    return {name: committed(name) for name in ALL} | ran


def displayed(cells):
    """What a kernel shows of each cell, but for what was printed."""
    return [[_text(each["data"]["text/html"]) for each in cell if "data" in each] for cell in cells]


def _text(lines):
    return lines if isinstance(lines, str) else "".join(lines)


@pytest.mark.parametrize("name", [AUDITS, READS])
def test_a_kernel_shows_what_the_file_shows(name, outputs):
    assert [each for cell in outputs[name] for each in cell if each["output_type"] == "error"] == []
    assert displayed(outputs[name]) == displayed(committed(name))


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_printed_but_words(name, outputs):
    """No escape codes, which viewers show as they are, no empty boxes, and nothing on stderr."""
    printed = [_text(each["text"]) for cell in outputs[name] for each in cell if each["output_type"] == "stream"]
    assert [each["name"] for cell in outputs[name] for each in cell if each.get("name") == "stderr"] == []
    for shown in (*printed, *(each for cell in displayed(outputs[name]) for each in cell)):
        # The words of an image are what stands in its place.
        named = re.sub(r'<img[^>]* alt="([^"]*)"[^>]*>', r"\1", shown)
        words = unescape(re.sub(r"<style.*?</style>|<[^>]+>", "", named, flags=re.DOTALL))
        assert words.strip()
        assert [character for character in words if not character.isprintable() and character != "\n"] == []


@pytest.mark.parametrize("name", ALL)
def test_lines_are_no_longer_than_a_viewer_shows_without_breaking_them(name, outputs):
    """But for commands and records, which stand whole: a broken line moves all columns of a table."""
    for shown in (each for cell in displayed(outputs[name]) for each in cell if "<pre>" in each):
        text, _, _ = unescape(re.findall("<pre>(.*?)</pre>", shown, re.DOTALL)[0]).partition("\nRECORDS")
        assert [line for line in text.splitlines() if len(line) > 88 and "kafka-transactions.sh" not in line] == []
