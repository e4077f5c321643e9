"""6. A night that adds one per cent: an incremental audit next to a full one, in a folder and in an S3 bucket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from generate import generate
from processes import Watched
from ratio_table import Ratio, Table
from whole_audits import Generated, audit

from tests.support.store_servers import amazons, s3a_options
from txnlib.core.schema import TABLES as CATALOGUE

ADDED, MOST_WITH_START, MOST_BYTES = 0.01, 0.35, 0.03
#: Too few batches to take any time.
NOTHING = 1_000
LATER = "2099-01-01T00:00:00Z"
ABOUT = f"""Seconds of `audit --mode incremental` of a capture that has grown by {ADDED:.0%}, against a full audit with
the same rows. The first line leaves out what such an audit takes for {NOTHING:,} batches; the third compares MiB
written. S3 is a server on this machine (moto), reached by Hadoop's S3A. Each ran once."""


@dataclass(frozen=True)
class Place:
    """Where tables are written."""

    name: str
    root: str
    #: For delta-rs, which counts bytes.
    options: dict[str, str] | None = None
    #: For Spark.
    submit: tuple[str, ...] = ()


def measure(known: Generated, folder: Path, partitions: int) -> list[Ratio]:
    """`known`: the capture before it grows."""
    batches, size = known.batches, known.batch_bytes
    grown, little = folder / "grown" / "capture", folder / "little" / "capture"
    for capture, wanted, spread in ((grown, int(batches * (1 + ADDED)), partitions), (little, NOTHING, 1)):
        if not capture.exists():
            generate(capture, wanted, size, spread, is_mixed=True)  # the same seeds: the same logs, and what follows
    ratios = _measured(Place("folder", str(folder / "tables")), known, grown, little, folder)
    with s3(folder / "s3") as place:
        return ratios + _measured(place, known, grown, little, folder)


def _measured(place: Place, known: Generated, grown: Path, little: Path, folder: Path) -> list[Ratio]:
    def taken(capture: Path, tables: str, *options: str) -> Watched:
        log = folder / f"{place.name}-{tables}{'-night' if options else ''}.stderr"
        return audit(capture, f"{place.root}/{tables}", log, *options, submit=place.submit)

    start = taken(little, "little").seconds
    night_start = taken(little, "little", "--mode", "incremental", "--as-of", LATER).seconds
    taken(known.capture, "known")
    before = _bytes(place, "known")
    night = taken(grown, "known", "--mode", "incremental").seconds
    added = _bytes(place, "known") - before
    full = taken(grown, "grown").seconds
    name = f"{place.name}: {known.batches:,} batches and {ADDED:.0%} more"
    return [
        Ratio(f"{name}: incremental", night - night_start, full - start),
        Ratio(f"{name}: with the start of each", night, full, at_most=MOST_WITH_START),
        Ratio(f"{name}: MiB written", added / 2**20, before / 2**20, at_most=MOST_BYTES),
    ]


def _bytes(place: Place, tables: str) -> int:
    """Bytes of all data files of the tables."""
    folders = [f"{place.root}/{tables}/{name}" for name in CATALOGUE]
    opened = [
        DeltaTable(folder, storage_options=place.options)
        for folder in folders
        if DeltaTable.is_deltatable(folder, place.options)
    ]
    return sum(sum(pa.table(table.get_add_actions())["size_bytes"].to_pylist()) for table in opened)


@contextmanager
def s3(folder: Path) -> Iterator[Place]:
    """A bucket of a server on this machine."""
    folder.mkdir(exist_ok=True)
    with amazons(folder) as store:
        store.client.create_dir("bench")
        yield Place("S3", "s3a://bench", {"AWS_ALLOW_HTTP": "true"}, s3a_options())


def table(ratios: list[Ratio]) -> Table:
    return Table("Nights", ABOUT, "night", "full audit", ratios)
