"""Pictures of the docs: linked, told in words, and of the steps that the core allows."""

import re
from xml.etree import ElementTree

import pytest

from tests.house.test_docs import ROOT
from txnlib.core.kafka.transaction_state import STEPS, Step

PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))


def described(picture):
    """The title and the description."""
    root = ElementTree.parse(picture).getroot()
    named = {node.attrib["id"]: node.text for node in root if "id" in node.attrib}
    return [named[name] for name in root.attrib["aria-labelledby"].split()]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_whoever_does_not_see_a_picture_is_told_what_it_shows(picture):
    assert len(list(filter(None, described(picture)))) == 2
    assert f"](pictures/{picture.name})" in (ROOT / "docs" / "concepts.md").read_text()


def test_every_legal_step_between_two_states_is_an_arrow_and_named():
    picture = ROOT / "docs" / "pictures" / "states.svg"
    legal = [pair for pair, step in STEPS.items() if pair[0] != pair[1] and step not in (Step.ILLEGAL, Step.RETRY)]
    names = [["no record" if state is None else state.kafka_name for state in pair] for pair in legal]
    _, about = described(picture)
    steps = about.removeprefix("Legal steps: ").partition(".")[0].split("; ")
    assert sorted(steps) == sorted(f"{before} to {after}" for before, after in names)
    of_legend = 2
    assert len(re.findall("marker-end", picture.read_text())) == len(legal) + of_legend
