"""The law of random true histories (tests/support/random_worlds.py).

A COMMIT that a client was told of, and that lacks its marker, is never called absent; what its coordinator will end is
never HANGING. Thousands of them: `python -m tests.support.random_worlds 1000 1100`.
"""

import pytest

from tests.support.random_worlds import Worlds, random_worlds, rows_of, rows_of_nights

#: Of clusters with a metadata log or without, of transactions v1 or v2.
SEEDS, NIGHTS = range(4), range(4, 6)
#: What is wrong today, by seed: topics and partitions.
OPEN: dict[int, set[str]] = {}


def check(worlds: Worlds, rows: list[dict]) -> None:
    wrong, still_open = worlds.wrong(rows), OPEN.get(worlds.seed, set())
    new = {key: f"{says}\n{worlds.told(key)}" for key, says in wrong.items() if key not in still_open}
    assert not new, "\n\n".join(f"{key}: {text}" for key, text in new.items())
    assert set(wrong) == still_open, "no longer open"
    assert any(row["safe_to_abort"] for row in rows)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_lost_commit_is_called_absent(tmp_path, seed):
    worlds = random_worlds(seed)
    check(worlds, rows_of(worlds, tmp_path))


@pytest.mark.parametrize("seed", NIGHTS)
def test_no_lost_commit_is_called_absent_on_a_second_night(tmp_path, seed):
    worlds = random_worlds(seed)
    check(worlds, rows_of_nights(worlds, tmp_path))
