"""What files beside logs say of the transaction of the sample.

It is open since offset 50, and its copy ends at 100.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.dossier_samples import COPY, failing, judged
from txnlib.core.copies import CopyBeside
from txnlib.core.verdicts.dossier import FileBeside, MarkerElsewhere

SNAPSHOT = FileBeside(is_index=False, broker="2", file_offset=60, offset=60)
INDEX = FileBeside(is_index=True, broker="2", file_offset=0, offset=60, first_offset=50)
OPEN = replace(SNAPSHOT, first_offset=50, last_offset=51)
#: File, verdict, and what the reader is told; None: nothing, and an abort is safe.
FILES = [
    (OPEN, "HANGING", None),
    (replace(OPEN, offset=120, file_offset=120), "HANGING", None),
    (replace(SNAPSHOT, offset=100), "HANGING", "60.snapshot of broker 2 has nothing open of its producer, which"),
    (replace(SNAPSHOT, offset=101), "UNKNOWN", "60.snapshot of broker 2 has nothing open of its producer"),
    (replace(SNAPSHOT, offset=101, is_truncated=True), "HANGING", "has nothing open of its producer, which"),
    (replace(OPEN, offset=101, first_offset=80), "UNKNOWN", "open from offset 80 to 51"),
    (replace(OPEN, offset=101, first_offset=40), "HANGING", "open from offset 40 to 51, which"),
    (replace(OPEN, offset=101, last_offset=99), "HANGING", None),
    (replace(OPEN, offset=101, last_offset=100), "HANGING", "open from offset 50 to 100, which"),
    (replace(INDEX, offset=99), "HANGING", "00.txnindex of broker 2 has an abort of it, by a marker at offset 99, whi"),
    (replace(INDEX, offset=100), "UNKNOWN", "00.txnindex of broker 2 has an abort of it, by a marker at offset 100"),
    (replace(INDEX, offset=100, is_truncated=True), "HANGING", "by a marker at offset 100, which"),
]


@pytest.mark.parametrize(("file", "verdict", "said"), FILES)
def test_a_file_that_does_not_have_it_open_forbids_an_abort_and_names_itself(file, verdict, said):
    row = judged(span={"files_beside": (OPEN, file)})
    assert (row.verdict, row.safe_to_abort) == (verdict, said is None)
    if said is not None:
        assert said in row.do_not_abort_because + row.explanation
        assert "IS_OPEN_NOW" in failing(row)


@pytest.mark.parametrize(
    ("beside", "others", "said"),
    [
        (CopyBeside("raw:2", "2", 3, 0), (), None),
        (CopyBeside("raw:2", "2", None), (), None),
        (CopyBeside("raw:2", "2", 4, 100), (), "epoch-checkpoint of broker 2 has leader epoch 4 from offset 100"),
        (None, (replace(COPY, is_judged=False, broker="2", leader_epoch=4),), "copy of broker 2 has leader epoch 4"),
        (None, (replace(COPY, is_judged=False, broker="2"),), None),
    ],
)  # fmt: skip
def test_a_leader_epoch_that_the_judged_copy_does_not_know_forbids_an_abort(beside, others, said):
    copy = replace(COPY, copies_beside=None if beside is None else (beside,))
    row = judged(place={"copies": (copy, *others)})
    assert row.safe_to_abort is (said is None)
    if said is not None:
        assert said in row.do_not_abort_because


def test_a_marker_that_was_cleaned_forbids_an_abort():
    cleaned = MarkerElsewhere(is_truncated=False, is_cleaned=True, broker="1", offset=60, type=None)
    row = judged(span={"markers_elsewhere": (cleaned,)})
    assert (row.verdict, row.safe_to_abort, failing(row)) == ("HANGING", False, ["IS_OPEN_NOW"])
    assert "a cleaner removed it (a marker at offset 60 of broker 1)" in row.do_not_abort_because
