"""The rows of a capture on the embedded engine: files of a private folder that a pool of processes has written."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

from pyspark.sql import DataFrame

from txnlib.engine.file_pool import processes, read_to_files
from txnlib.readers.table_readers import READ_TABLES, bundle
from txnlib.spark.capture_source import SCHEMAS, CaptureSource
from txnlib.spark.frames import no_rows


@dataclass(slots=True)
class PoolSource(CaptureSource):
    """A capture that processes of this machine read. `folder`: where they write."""

    folder: Path = field(kw_only=True)
    _read: Path | None = field(default=None, init=False, repr=False)

    def forget(self) -> None:
        read, self._read = self._read, None
        if read is not None:
            shutil.rmtree(read, ignore_errors=True)

    def read(self, table: str) -> DataFrame:
        if self._read is None:
            into = Path(mkdtemp(prefix="capture-", dir=self.folder))
            bundles = bundle(self.capture.files, processes())
            try:
                read_to_files(bundles, READ_TABLES, into, self.is_read)
            except BaseException:
                shutil.rmtree(into, ignore_errors=True)
                raise
            self._read = into
        folder = self._read / table
        return self.spark.read.parquet(str(folder)) if os.listdir(folder) else no_rows(self.spark, SCHEMAS[table])
