"""Is a checkpoint read as brokers write it, and is a bad copy never half believed?"""

from __future__ import annotations

import pytest

from txnlib.core.checkpoint_file import read_checkpoint

WHOLE = b"0\n3\norders 0 1234\n__transaction_state 12 5\norders 11 987654\n"
ENTRIES = [("orders", "0", "1234"), ("__transaction_state", "12", "5"), ("orders", "11", "987654")]


def test_entries_are_read_in_the_order_of_the_file():
    assert read_checkpoint(WHOLE, fields=3) == (ENTRIES, None)
    assert read_checkpoint(b"0\n2\n0 0\n7 120\n", fields=2) == ([("0", "0"), ("7", "120")], None)


@pytest.mark.parametrize("content", [b"", b"0\n0\n"])
def test_no_entries_are_no_problem(content):
    assert read_checkpoint(content, fields=3) == ([], None)


@pytest.mark.parametrize("cut", range(1, len(WHOLE)))
def test_a_file_cut_anywhere_keeps_its_whole_entries_and_is_named(cut):
    entries, problem = read_checkpoint(WHOLE[:cut], fields=3)
    assert entries == ENTRIES[: max(WHOLE[:cut].count(b"\n") - 2, 0)]
    assert problem is not None


@pytest.mark.parametrize(
    "content",
    [
        b"1\n1\norders 0 12\n",
        b"orders 0 12\n",
        b"\0\0\0\0",
        b"0\n1\norders x 12\n",
        b"0\n1\norders 0 -1\n",
        b"0\n1\norders 0 \xc2\xb2\n",
        b"0\n2\norders 0 12\n",
        b"0\nmany\norders 0 12\n",
    ],
)
def test_what_no_broker_writes_is_named(content):
    assert read_checkpoint(content, fields=3).problem is not None
