"""The site of docs/: built strictly, with every page."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def site(repository, tmp_path_factory):
    """Its folder. A page without a reader, and a dead link or anchor, are warnings, and so errors."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=repository, env=quiet, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_every_page_is_in_the_site(repository, site):
    pages = {path.relative_to(repository / "docs").with_suffix(".html") for path in (repository / "docs").rglob("*.md")}
    assert pages <= {path.relative_to(site) for path in site.rglob("*.html")}
    assert "Quick start" in (site / "quick-start.html").read_text()


def test_tables_lists_and_links_of_each_page_are_rendered(site):
    """What GitHub understands and mkdocs does not would be left as it was written."""
    for path in site.rglob("*.html"):
        shown = re.sub(r"<pre.*?</pre>|<code.*?</code>", "", path.read_text(), flags=re.DOTALL)
        assert (path.name, re.findall(r"---\|---|\]\(|```|^\* ", shown, re.MULTILINE)) == (path.name, [])
