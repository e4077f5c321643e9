"""What an earlier call left in the folder of a capture."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from txnlib.errors import UsageError
from txnlib.wire_capture import capture_folder as files

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
    """What an earlier call noted. Raises UsageError if the folder has a capture that was taken otherwise, or of another cluster."""
    path = output / files.CAPTURE_JSON
    if not path.exists():
        return Earlier()
    try:
        notes = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{path} is not JSON: remove it, or choose another --output") from error
    if not isinstance(notes, dict) or notes.get("captured_by") != CAPTURED_BY:
        raise UsageError(f"{output} has a capture that {CAPTURED_BY} did not take: choose another --output")
    if notes.get("cluster_id") != cluster_id:
        raise UsageError(
            f"{output} has a capture of cluster {notes.get('cluster_id')}, not of {cluster_id}: choose another --output"
        )
    return Earlier(notes.get("partitions", {}), notes.get("captured_at_ms", {}))


def follow_leaders(output: Path, leaders: Mapping[str, int]) -> None:
    """Moves copies to the folders of those who lead now. `leaders`: node ids by name of the partition's folder."""
    for folder in files.fetched_folders(output):
        broker = folder.parent.parent if folder.parent.name == files.FIRST else folder.parent
        leader = leaders.get(folder.name)
        if leader is not None and broker.name != str(leader):
            files.move(folder, output / str(leader) / folder.relative_to(broker))


def remove(output: Path, folders: Collection[str]) -> None:
    """Removes copies of these partitions, by name of their folders."""
    for folder in files.fetched_folders(output):
        if folder.name in folders:
            files.remove(folder)
