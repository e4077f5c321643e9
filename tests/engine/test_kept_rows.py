"""The law of kept rows: computed once, and gone with the last plan that reads them."""

import gc
from pathlib import Path

from txnlib.spark.frames import kept, kept_if_any


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
