"""The identity of a kept transaction, against the examples of KIP-939."""

from __future__ import annotations

import pytest

from txnlib.core.verdicts.in_doubt import Identity, kept_identity

MAX = 32767
#: Ongoing identity, next identity in the record -> what the next InitProducerId with keepPreparedTxn returns; None: a new id.
KEPT = [
    ((42, 100), (None, None), (42, 101)),
    ((42, 100), (None, -1), (42, 101)),
    ((42, 100), (42, 101), (42, 102)),
    # KIP-939, example B: rows 4, 6 and 7
    ((42, MAX - 1), (None, None), (None, 0)),
    ((42, MAX - 1), (73, 0), (73, 1)),
    ((42, MAX - 1), (73, 1), (73, 2)),
    # a plain overflow has a next id without a next epoch
    ((42, 5), (85, None), (42, 6)),
    # the client's epochs are used up, too
    ((42, MAX - 1), (73, MAX - 2), (73, MAX - 1)),
    ((42, MAX - 1), (73, MAX - 1), (None, 0)),
    ((42, MAX - 1), (73, MAX), (None, 0)),
]


@pytest.mark.parametrize(("ongoing", "following", "kept"), KEPT)
def test_a_client_that_comes_back_gets_the_next_identity(ongoing, following, kept):
    assert kept_identity(*ongoing, *following) == Identity(*kept)
