"""Hooks of mkdocs: pages from the root, and links that leave docs.

`mkdocs.yml` names this file. A site has only pages: a link to another file of the repository becomes its text.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
#: Page of the site -> file in the root of the repository.
FROM_ROOT = {
    "quick-start.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
    "contributing.md": "CONTRIBUTING.md",
}
#: The text and the target of a link, without those to the web and within the page.
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?!\w+:|#)(?P<path>[^)#]+)(?P<heading>#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """All pages, with those from the root."""
    for page, name in FROM_ROOT.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page with links as the site has them."""
    uri = page.file.src_uri
    folder = ROOT if uri in FROM_ROOT else (DOCS / uri).parent
    pages = {(ROOT / name).resolve(): DOCS / name_of for name_of, name in FROM_ROOT.items()}

    def linked(found: re.Match[str]) -> str:
        path = (folder / found["path"]).resolve()
        place = pages.get(path, path)
        if place.is_relative_to(DOCS) and not place.is_dir():
            there = os.path.relpath(place, (DOCS / uri).parent)
            return f"{found['image']}[{found['text']}]({there}{found['heading'] or ''})"
        return found["text"]

    return LINK.sub(linked, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page without the backslash that GitHub needs before a `|` in a cell."""
    return re.sub(r"<td>.*?</td>", lambda cell: cell[0].replace("\\|", "|"), html)
