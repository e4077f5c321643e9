"""Pictures against the core: arrows, stories, legible text."""

import sys
from importlib import import_module
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest

from tests.house.test_docs import ROOT
from txnlib.core.kafka.transaction_state import STEPS, Step, TransactionState

SVG = "{http://www.w3.org/2000/svg}"
PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))
#: Width of a character by its font's size, as DejaVu Sans has it, which is wider than what most browsers take.
REGULAR, BOLD = 0.58, 0.7
Extent = tuple[float, float, float, float]


@pytest.fixture(scope="module")
def drawn():
    """The modules that draw, by name."""
    sys.path.append(str(ROOT / "docs"))
    return {name: import_module(name) for name in ("state_picture", "stories", "timelines")}


def shapes(svg: str, kind: str) -> list[dict[str, str]]:
    return [
        {**node.attrib, "text": node.text or ""} for node in ElementTree.fromstring(svg) if node.tag == f"{SVG}{kind}"
    ]


def arrows(svg: str) -> set[str]:
    return {path["d"] for path in shapes(svg, "path") if "marker-end" in path}


def boxes(svg: str) -> list[Extent]:
    """Left, top, right, bottom of each box and disc, without the background."""
    found = []
    for box in shapes(svg, "rect")[1:]:
        x, y, width, height = (float(box[name]) for name in ("x", "y", "width", "height"))
        found.append((x, y, x + width, y + height))
    for disc in shapes(svg, "circle"):
        x, y, radius = (float(disc[name]) for name in ("cx", "cy", "r"))
        found.append((x - radius, y - radius, x + radius, y + radius))
    return found


def texts(svg: str) -> list[Extent]:
    """The same of each text."""
    found = []
    for text in shapes(svg, "text"):
        size, x, y = (float(text[name]) for name in ("font-size", "x", "y"))
        long = len(text["text"]) * size * (BOLD if "font-weight" in text else REGULAR)
        left = x - {"start": 0, "middle": long / 2, "end": long}[text["text-anchor"]]
        found.append((left, y - size * 0.75, left + long, y))
    return found


def overlap(one: Extent, other: Extent) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def is_in(one: Extent, other: Extent) -> bool:
    return other[0] <= one[0] and one[2] <= other[2] and other[1] <= one[1] and one[3] <= other[3]


def legal() -> list[tuple[object, object]]:
    return [pair for pair, step in STEPS.items() if pair[0] != pair[1] and step not in (Step.ILLEGAL, Step.RETRY)]


def test_every_legal_step_between_two_states_is_an_arrow(drawn):
    legend = 2
    assert len(arrows(drawn["state_picture"].state_picture())) == len(legal()) + legend


@pytest.mark.parametrize("before", [None, *TransactionState])
@pytest.mark.parametrize("after", [None, *TransactionState])
def test_a_changed_table_changes_the_picture(before, after, drawn, monkeypatch):
    module = drawn["state_picture"]
    is_legal = (before, after) in legal()
    then = arrows(module.state_picture())
    monkeypatch.setattr(module, "STEPS", {**STEPS, (before, after): Step.ILLEGAL if is_legal else Step.LEGAL})
    now = arrows(module.state_picture())
    assert (now != then) == (before != after)


def test_the_coordinators_in_the_pictures_take_legal_steps(drawn):
    stories = drawn["stories"]
    for story in (stories.HEALTHY, *stories.OPEN):
        taken = [None, *[state for _, state in story.states]]
        assert [STEPS[step] for step in pairwise(taken)] == [Step.LEGAL] * len(story.states), story


def test_each_open_transaction_has_the_verdict_that_the_page_is_about(drawn):
    stories = drawn["stories"]
    assert [story.judged().verdict for story in stories.OPEN] == ["HANGING", "LATE", "STUCK", "OPEN"]
    assert stories.HEALTHY.open_since is None


def test_the_last_stable_offset_stands_at_the_first_open_batch(drawn):
    stories = drawn["stories"]
    for story in stories.OPEN:
        *_, (_, end, stable) = story.ends()
        assert (stable, end) == (story.offsets[story.open_since], len(story.offsets))
    *_, (_, end, stable) = stories.HEALTHY.ends()
    assert stable == end


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_nothing_overlaps_or_is_cut_off(picture):
    svg = picture.read_text()
    width, height = (float(ElementTree.fromstring(svg).attrib[name]) for name in ("width", "height"))
    assert [pair for pair in combinations(boxes(svg), 2) if overlap(*pair)] == []
    assert [pair for pair in combinations(texts(svg), 2) if overlap(*pair)] == []
    assert [
        (text, box) for text in texts(svg) for box in boxes(svg) if overlap(text, box) and not is_in(text, box)
    ] == []
    assert [text for text in texts(svg) if not is_in(text, (0, 0, width, height))] == []


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_whoever_does_not_see_a_picture_is_told_what_it_shows(picture):
    root = ElementTree.parse(picture).getroot()
    named = {node.attrib["id"]: node.text for node in root if "id" in node.attrib}
    assert all(named[name] for name in root.attrib["aria-labelledby"].split())
    assert f"](pictures/{picture.name})" in (ROOT / "docs" / "concepts.md").read_text()
