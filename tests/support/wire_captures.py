"""The command of a capture over the wire, and its files."""

import json
from pathlib import Path
from typing import Any

#: Columns of open transactions in which all captures of a cluster agree.
JUDGED = ("topic", "partition", "start_offset", "producer_id", "transactional_id", "verdict", "reason")


def command(server: str, output: Path, *more: str) -> list[str]:
    """The words behind `txn-audit`."""
    return ["capture", "--bootstrap-server", server, "--output", str(output), *more]


def notes_of(capture: Path) -> dict[str, Any]:
    """Its capture.json."""
    notes = json.loads((capture / "capture.json").read_text())
    assert isinstance(notes, dict)
    return notes


def instant_of(capture: Path) -> int:
    """When its last copy was taken, in epoch milliseconds."""
    return max(notes_of(capture)["captured_at_ms"].values())


def notes_of_disks(capture: Path) -> dict[str, Any]:
    """What scripts/capture.sh would note of the same cluster: the instant, and the leaders."""
    notes = notes_of(capture)
    leaders = {name: {"leader": noted["leader"]} for name, noted in notes["partitions"].items()}
    return notes | {"partitions": leaders, "captured_at_ms": {"default": instant_of(capture)}}


def log_of(folder: Path) -> bytes:
    """The segments of a partition, one after the other."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))
