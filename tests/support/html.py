"""HTML as a tree of elements, if it is well-formed."""

from html.parser import HTMLParser
from xml.etree.ElementTree import Element, TreeBuilder

#: Elements without an end.
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class _Tree(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tree, self.opened = TreeBuilder(), list[str]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(attrs) == len(dict(attrs)), f"{tag} has an attribute twice: {attrs}"
        self.tree.start(tag, {name: value or "" for name, value in attrs})
        if tag in VOID:
            self.tree.end(tag)
        else:
            self.opened.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened, f"</{tag}> ends nothing"
        assert self.opened[-1] == tag, f"</{tag}> ends <{self.opened[-1]}>"
        self.tree.end(self.opened.pop())

    def handle_data(self, data: str) -> None:
        assert self.opened or not data.strip(), f"text outside of the document: {data}"
        if self.opened:
            self.tree.data(data)


def parsed(html: str) -> Element:
    """The document. Fails where an element does not end, ends another, or has an attribute twice."""
    parser = _Tree()
    parser.feed(html)
    parser.close()
    assert parser.opened == []
    return parser.tree.close()
