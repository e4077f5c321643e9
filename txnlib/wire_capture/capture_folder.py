"""The files of a capture beside the logs, and those of earlier calls.

They are checkpoints, the brokers' answers, capture.json, and notes on where a fetch can go on.
Each file is replaced as a whole, so that a capture that was killed has none that is half written.
Only its owner can read a capture: it contains what applications wrote.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from txnlib.core.instants import LAST_INSTANT_MS
from txnlib.core.kafka.constants import is_topic_name
from txnlib.errors import UsageError
from txnlib.wire_capture.cluster import Partition

CAPTURE_JSON: Final = "capture.json"
#: One JSON object per line: a partition with its producers, a transactional id.
DESCRIBED_PRODUCERS: Final = "describe-producers.jsonl"
DESCRIBED_TRANSACTIONS: Final = "describe-transactions.jsonl"
#: Folder of the coordinators that were fetched before the other partitions, as scripts/capture.sh has it.
FIRST: Final = "first"
#: Inside the folder: a name of 255 bytes, as topics may make it, leaves none for an ending. Audits ignore it.
_STATE: Final = "fetch.capture"


def make_folder(folder: Path) -> None:
    """Makes a folder and those above it, unless they are there."""
    if not folder.parent.exists():
        make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def owned(path: str, flags: int) -> int:
    """Opens a file for `open`, which only its owner can read if it is new. Follows no link."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def replace(path: Path, content: str) -> None:
    """Writes a file as a whole."""
    make_folder(path.parent)
    unfinished = path.with_name(f"{path.name}.tmp")
    unfinished.unlink(missing_ok=True)
    with open(unfinished, "w", encoding="utf-8", opener=owned) as file:
        file.write(content)
    os.replace(unfinished, path)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Writes one JSON object, with its keys in the given order."""
    replace(path, json.dumps(value, indent=1, ensure_ascii=True) + "\n")


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes one JSON object per line."""
    replace(path, "".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows))


def write_offsets(path: Path, offsets: Mapping[Partition, int]) -> None:
    """Writes a broker's checkpoint of offsets. Kafka: `OffsetCheckpointFile`."""
    lines = [f"{each.topic} {each.partition} {offset}" for each, offset in sorted(offsets.items())]
    replace(path, "\n".join(["0", str(len(lines)), *lines, ""]))


def write_topic_id(folder: Path, topic_id: str) -> None:
    """Writes `partition.metadata`, unless the broker has no topic ids. Kafka: `PartitionMetadataFile`."""
    if topic_id:
        replace(folder / "partition.metadata", f"version: 0\ntopic_id: {topic_id}")


def read_topic_id(folder: Path) -> str:
    """The topic id in `partition.metadata`; empty if there is none."""
    try:
        return (folder / "partition.metadata").read_text(encoding="utf-8").partition("topic_id: ")[2].strip()
    except (OSError, ValueError):
        return ""


def read_state(folder: Path) -> dict[str, Any]:
    """Where the fetch of a partition can go on; empty if there is nothing to go on from, also behind a link."""
    if folder.is_symlink() or not state_file(folder).is_file():
        return {}
    try:
        state = json.loads(state_file(folder).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return state if isinstance(state, dict) else {}


def state_file(folder: Path) -> Path:
    """The file that says how far a partition was fetched."""
    return folder / _STATE


def fetched_folders(output: Path) -> list[Path]:
    """The folders of partitions that a capture has begun to fetch."""
    return sorted(state.parent for state in (*output.glob(f"*/*/{_STATE}"), *output.glob(f"*/{FIRST}/*/{_STATE}")))


def move(was: Path, now: Path) -> None:
    """Moves a partition's copy to another broker, which has none; or removes it."""
    if now.exists() or not was.exists():
        remove(was)
        return
    make_folder(now.parent)
    was.rename(now)


def copy(was: Path, now: Path) -> None:
    """Copies a partition's copy, its state last, so that what an interrupt leaves is not gone on with."""
    remove(now)
    make_folder(now.parent)
    shutil.copytree(was, now, ignore=shutil.ignore_patterns(_STATE))
    shutil.copy(state_file(was), state_file(now))


def remove(folder: Path) -> None:
    """Removes a partition's copy, or a link in its place. Without its state it is not gone on with, even if this is
    interrupted."""
    if folder.is_symlink():
        folder.unlink()
        return
    state_file(folder).unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


# ---- What an earlier call left


CAPTURED_BY: Final = "txn-audit capture"


@dataclass(frozen=True, slots=True)
class Earlier:
    """What capture.json said before this call: notes by partition, instants by copy in epoch ms."""

    partitions: dict[str, Any] = field(default_factory=dict)
    instants: dict[str, int] = field(default_factory=dict)

    def besides(self, folders: Collection[str]) -> Earlier:
        """What it said of partitions that this call leaves alone, because it has other --topics."""
        return Earlier(
            {name: noted for name, noted in self.partitions.items() if name not in folders},
            {copy: at for copy, at in self.instants.items() if copy.rpartition("/")[2] not in folders},
        )


def read_notes(output: Path, cluster_id: str | None) -> Earlier:
    """What an earlier call noted. Raises UsageError if the folder has a capture that was taken otherwise, or of another
    cluster."""
    path = output / CAPTURE_JSON
    if not path.exists():
        return Earlier()
    try:
        notes = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: remove it, or choose another --output") from error
    if not isinstance(notes, dict) or notes.get("captured_by") != CAPTURED_BY:
        raise UsageError(f"{output} has a capture that {CAPTURED_BY} did not take: choose another --output")
    if notes.get("cluster_id") != cluster_id:
        raise UsageError(
            f"{output} has a capture of cluster {notes.get('cluster_id')}, not of {cluster_id}: choose another --output"
        )
    partitions, instants = notes.get("partitions", {}), notes.get("captured_at_ms", {})
    if not _are_notes(partitions) or not _are_instants(instants):
        raise UsageError(f"{path} is damaged: remove it, or choose another --output")
    return Earlier(partitions, instants)


def _are_notes(partitions: object) -> bool:
    return isinstance(partitions, dict) and all(
        is_topic_name(name.rpartition("-")[0]) and isinstance(noted, dict) for name, noted in partitions.items()
    )


def _are_instants(instants: object) -> bool:
    return isinstance(instants, dict) and all(
        type(at) is int and 0 <= at <= LAST_INSTANT_MS for at in instants.values()
    )


def follow_leaders(output: Path, leaders: Mapping[str, int]) -> None:
    """Moves copies to the folders of those who lead now. `leaders`: node ids by name of the partition's folder."""
    for folder in fetched_folders(output):
        broker = folder.parent.parent if folder.parent.name == FIRST else folder.parent
        leader = leaders.get(folder.name)
        if leader is not None and broker.name != str(leader):
            move(folder, output / str(leader) / folder.relative_to(broker))


def remove_copies(output: Path, folders: Collection[str]) -> None:
    """Removes copies of these partitions, by name of their folders."""
    for folder in fetched_folders(output):
        if folder.name in folders:
            remove(folder)
