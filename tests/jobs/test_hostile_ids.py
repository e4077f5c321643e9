"""Lists about ids that hold spaces, quotes, commas and markup, in terminals."""

from pathlib import Path

import pytest

from tests.house.test_terminals import LIST_WIDTHS, Listed, assert_lists_fit, listed_in_a_pipe, run_in
from tests.support import live_output
from tests.support.audits import audited
from tests.support.delta_tables import READ_BY_COMMANDS


@pytest.fixture(scope="module")
def listed(captures: Path, repository: Path) -> Listed:
    capture = captures / "hostile-3.9"
    as_of = str(live_output.as_of(capture))
    root = audited(capture / "brokers", "--as-of", as_of).finished(*READ_BY_COMMANDS)  # as test_parity.py does
    return listed_in_a_pipe(root, run_in(root, repository))


@pytest.mark.parametrize("columns", LIST_WIDTHS)
def test_every_list_fits_into_the_terminal_and_cuts_no_word(listed, repository, tmp_path, columns):
    assert_lists_fit(listed, run_in(tmp_path, repository), columns)
