"""The law of kept rows: computed once, and gone with the last plan that reads them."""

import gc
from pathlib import Path

import pytest

from txnlib.spark.frames import by_parts, kept, kept_if_any


def test_the_file_goes_with_the_last_plan_that_reads_it(engine):
    folder = Path(engine.spark.private_folder)
    before = set(folder.glob("kept-*"))
    frame = kept(engine.spark.range(5))
    (file,) = set(folder.glob("kept-*")) - before
    above = frame.where("id > 2")
    del frame
    gc.collect()
    assert above.union(above).count() == 4
    del above
    gc.collect()
    assert not file.exists()


def test_no_rows_need_no_file(engine):
    folder = Path(engine.spark.private_folder)
    before = set(folder.glob("kept-*"))
    none = engine.spark.range(0)
    assert kept_if_any(none) is None
    assert kept(none).columns == ["id"]
    assert kept(none).count() == 0
    assert set(folder.glob("kept-*")) == before


@pytest.mark.parametrize(("most", "parts"), [(12, 1), (11, 2), (5, 3), (1, 12)])
def test_rows_of_one_key_are_transformed_together_part_by_part(engine, most, parts):
    """`most` rows at a time, as far as keys allow."""
    rows, seen = kept(engine.spark.range(12).selectExpr("id DIV 3 AS producer_id", "id")), []

    def summed(part):
        seen.append(part)
        return part.groupBy("producer_id").count()

    found = by_parts(rows, summed, "producer_id", most).toArrow().to_pylist()
    assert sorted((row["producer_id"], row["count"]) for row in found) == [(number, 3) for number in range(4)]
    assert len(seen) == parts
