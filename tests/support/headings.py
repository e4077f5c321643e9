"""Anchors of the headings in a page."""

import re
from pathlib import Path


def anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    """The anchors of all headings; a line of a code block is none."""
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    return {anchor(heading) for heading in re.findall(r"^#+ (.*)$", prose, re.MULTILINE)}
