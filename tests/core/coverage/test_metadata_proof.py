"""What damage to the metadata log leaves of each conclusion."""

from __future__ import annotations

from itertools import product

import pytest

from txnlib.core.coverage.known_metadata import Conclusion, MetadataExtent, holds

#: Conclusion, and whether it holds: with all records, without the newest ones, without the first ones, without both.
GRID = """
LEADER                      yes no  yes no
LEADER_NOT_NAMED            yes no  no  no
CLEAN_ELECTIONS             yes no  yes no
TOPIC_UNKNOWN               yes no  no  no
COORDINATOR_COUNT           yes no  no  no
SETTING                     yes no  yes no
SETTING_NEVER_SET           yes no  no  no
NOTED_SETTING_CONTRADICTED  yes no  yes no
FEATURE_LEVEL               yes no  yes no
FEATURE_NEVER_SET           yes no  no  no
"""
EXTENTS = [MetadataExtent(has_begin=begin, has_end=end) for begin, end in product((True, False), repeat=2)]


def test_each_conclusion_holds_where_the_grid_says() -> None:
    found = {name: [holds(Conclusion(name), extent) for extent in EXTENTS] for name in Conclusion}
    expected = {words[0]: [word == "yes" for word in words[1:]] for words in map(str.split, GRID.split("\n")) if words}
    assert found == expected


@pytest.mark.parametrize("conclusion", Conclusion)
def test_loss_never_proves_anything(conclusion: Conclusion) -> None:
    """What holds with fewer records holds with more."""
    for less, more in product(EXTENTS, repeat=2):
        if less.has_begin <= more.has_begin and less.has_end <= more.has_end:
            assert holds(conclusion, less) <= holds(conclusion, more)


def test_without_a_metadata_log_nothing_in_it_is_lost() -> None:
    assert all(holds(conclusion, None) for conclusion in Conclusion)
