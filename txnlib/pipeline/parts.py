"""What earlier audits have read of files, and new parts.

Rows of `schema.rows_of_runs.OF_PARTS` are stored before `segments` lists their parts. So whatever `segments` lists is
there, even if that run died later, and rows that it does not list are of no use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from pyspark.sql import functions as F

from txnlib.core.kafka.constants import CLUSTER_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.core.schema.rows_of_runs import part_at
from txnlib.core.sql_text import quoted_list
from txnlib.engine.store import Store
from txnlib.errors import MissingTableError
from txnlib.pipeline.clock import now
from txnlib.readers.capture import CHECKPOINTS, CLEANER_OFFSET, READ_WHOLE, Capture, FileKind
from txnlib.readers.fingerprints import ReadSegment
from txnlib.readers.storage.packed_text import COMPRESSED
from txnlib.readers.table_readers import may_hold, read_table
from txnlib.spark.frames import arrow_of
from txnlib.spark.joins import select
from txnlib.version import __version__

#: Number of newest audits to look through. More than one, because a disk may have been missing in the newest.
_NEWEST: Final = 10
_KEY: Final = ("topic", "partition", "source", "segment_base_offset")
#: Rows with the same last part are of the same bytes. A hole in a segment shows that it was compacted. Another version
#: may read the same bytes differently.
_READ: Final = f"""
SELECT {", ".join(_KEY)}, run_id, parts, landmarks, first_offset, batches, newest_broker_ms, unreadable FROM (
  SELECT *, row_number() OVER (PARTITION BY get(parts, size(parts) - 1) ORDER BY run_id) AS number
  FROM {{segments}}
  WHERE kind = 'raw' AND size(landmarks) > 0 AND size(parts) > 0 AND last_gap_offset IS NULL
    AND version = '{__version__}'
) WHERE number = 1
"""


def read_segments(store: Store, cluster: str, as_of_ms: int | None) -> list[dict[str, Any]]:
    """What the newest audits of a cluster have read of segments: columns of `segments`.

    `as_of_ms`: the instant of this audit, if it is known. Later audits do not count: what they read may be damaged in
    this capture.
    """
    try:
        runs = store.read_all("audit_runs").where(F.col("cluster") == cluster)
    except MissingTableError:
        return []
    if as_of_ms is not None:
        runs = runs.where(F.unix_millis("as_of") <= as_of_ms)
    newest = [row["run_id"] for row in runs.orderBy(F.desc("started_at")).limit(_NEWEST).select("run_id").collect()]
    if not newest:
        return []
    rows = store.read_all("segments").where(f"run_id IN {quoted_list(newest)}")
    found: list[dict[str, Any]] = arrow_of(select(_READ, segments=rows)).to_pylist()
    return found


def with_parts(capture: Capture, read: Iterable[Mapping[str, Any]]) -> Capture:
    """The capture, each file with the number of its part, and with what earlier audits have read of it (`read`)."""
    known = defaultdict(list)
    for row in read:
        values: dict[str, Any] = {name: row[name] for name in ReadSegment.__dataclass_fields__}
        segment = ReadSegment(**values)
        if segment.is_whole:
            known[tuple(row[name] for name in _KEY)].append(segment)
    changing = _changing_segments(capture, known)
    first, files = part_at(now().timestamp()), []
    for number, file in enumerate(capture.files, first):
        key = (file.topic, file.partition, file.source, file.offset)
        is_plain = file.kind is FileKind.SEGMENT and not file.path.endswith(COMPRESSED)
        of_file = known[key] if is_plain and key not in changing else ()
        longest = sorted(of_file, key=lambda each: each.position, reverse=True)
        files.append(replace(file, part=number, earlier=tuple(longest)))
    return replace(capture, files=tuple(files))


def _changing_segments(capture: Capture, known: Iterable[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    """The keys (`_KEY`) of segments that must be read again, because no fingerprint proves that they are unchanged: in
    compacted copies, all but the newest segment, to which a broker only appends. `known`: the keys that earlier audits
    read; a segment that is not the newest in them is not the newest.

    And the keys of segments that are always read as a whole: of the metadata log, where a row may be a run of
    NoOpRecords, and of coordinators, if there is text of a console, which is compared with all of their records.
    """
    compacted = _compacted_copies(capture)
    is_printed = any(may_hold("console_log", file) for file in capture.files)
    whole = {CLUSTER_METADATA_TOPIC, *((TRANSACTION_STATE_TOPIC,) if is_printed else ())}
    captured = capture.of_kind(FileKind.SEGMENT, FileKind.REFUSED)  # a segment that is missing, too
    keys = {*known, *((file.topic, file.partition, file.source, file.offset) for file in captured)}
    newest = {key[:3]: key[3] for key in sorted(keys, key=lambda key: key[3])}
    return {
        key
        for key in keys
        if key[0] in whole or (key[3] < newest[key[:3]] and (key[0] in READ_WHOLE or key[:3] in compacted))
    }


def _compacted_copies(capture: Capture) -> set[tuple[Any, ...]]:
    """The copies that are compacted, according to the log cleaner's checkpoint."""
    found: set[tuple[Any, ...]] = set()
    for file in capture.of_kind(FileKind.CHECKPOINT):
        if CHECKPOINTS[file.path.rpartition("/")[2]] == CLEANER_OFFSET:
            for rows in read_table("checkpoints", file):
                found |= {(row["topic"], row["partition"], row["source"]) for row in rows.to_pylist()}
    return found


def without_deleted(capture: Capture, store: Store) -> Capture:
    """The capture, without what earlier audits read in parts that no run lists any more.

    To be called once the run is RUNNING. From then on, nobody deletes parts that are listed now
    (`engine.retention.forget_runs`).
    """
    known = {part for file in capture.files for read in file.earlier for part in read.parts}
    if not known:
        return capture
    listed = store.read_all("segments").select(F.explode("parts").alias("part")).where(F.col("part") >= min(known))
    if not (deleted := known - {*arrow_of(listed.distinct())["part"].to_pylist()}):
        return capture
    files = (
        replace(file, earlier=tuple(read for read in file.earlier if deleted.isdisjoint(read.parts)))
        for file in capture.files
    )
    return replace(capture, files=tuple(files))
