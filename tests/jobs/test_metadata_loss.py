"""Audits of a real cluster whose metadata log lost records.

The law: no loss decides what the whole log left undecided. Each verdict is that of the whole log, or UNKNOWN; what was
not safe to abort is not safe.
"""

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import live_output
from tests.support.audits import AuditTables, audited

FOLDER = "__cluster_metadata-0"
#: Offset of the newest snapshot of the capture.
SNAPSHOT = 347


def damage(folder: Path, offset: int) -> None:
    """Flips a bit of the batch with an offset, in the logs of all brokers."""
    for path in folder.glob(f"*/{FOLDER}/*.log"):
        content = bytearray(path.read_bytes())
        at = 0
        while at + 61 <= len(content):
            base, length = struct.unpack_from(">qi", content, at)
            (delta,) = struct.unpack_from(">i", content, at + 23)
            if base <= offset <= base + delta:
                content[at + 61] ^= 1
            at += 12 + length
        path.write_bytes(content)


def without_snapshots(folder: Path) -> None:
    for path in folder.glob(f"*/{FOLDER}/*.checkpoint"):
        path.unlink()


def all_damaged(folder: Path) -> None:
    without_snapshots(folder)
    for path in folder.glob(f"*/{FOLDER}/*.log"):
        path.write_bytes(b"\xff" * 500)


def begin_lost(folder: Path) -> None:
    without_snapshots(folder)
    damage(folder, 0)


def middle_lost(folder: Path) -> None:
    without_snapshots(folder)
    damage(folder, 120)


def snapshots_damaged(folder: Path) -> None:
    for path in folder.glob(f"*/{FOLDER}/*.checkpoint"):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)


LOSSES: dict[str, Callable[[Path], None]] = {
    "an unclean election before the snapshot": lambda folder: damage(folder, 184),
    "after the snapshot": lambda folder: damage(folder, SNAPSHOT + 5),
    "all": all_damaged,
    "the begin": begin_lost,
    "in the middle, without a snapshot": middle_lost,
    "every snapshot": snapshots_damaged,
}
KEY = ("topic", "partition", "producer_id", "start_offset")
#: The broker that leads most partitions, and the controller. Without them, the log of a dead broker names itself.
LEADING = ("1", "100")
#: The cases of the fast tier: loss, and the brokers that were not captured.
FAST = [("all", ()), ("in the middle, without a snapshot", LEADING)]
CASES = [
    pytest.param(loss, gone, marks=() if (loss, gone) in FAST else pytest.mark.slow, id=" without ".join((loss, *gone)))
    for loss in LOSSES
    for gone in ((), LEADING)
]


def audit_of(capture: Path, *inputs: Path) -> AuditTables:
    return audited([*inputs], "--as-of", str(live_output.as_of(capture)), "--max-transaction-timeout", "0")


@pytest.mark.parametrize(("loss", "gone"), CASES)
def test_no_loss_decides_what_the_whole_log_does_not(captures, tmp_path, loss, gone):
    """Without the broker that leads, the whole log decides nothing either (test_metadata_audit.py)."""
    capture, folder = captures / "md-4.1", tmp_path / "brokers"
    shutil.copytree(capture / "brokers", folder)
    for broker in gone:
        shutil.rmtree(folder / broker)
    LOSSES[loss](folder)
    whole, lossy = (audit_of(capture, each) for each in (capture / "brokers", folder))
    known = {} if gone else {tuple(row[name] for name in KEY): row for row in whole.rows("open_transactions")}
    for row in lossy.rows("open_transactions"):
        before = known.get(tuple(row[name] for name in KEY))
        assert row["verdict"] == "UNKNOWN" or (before is not None and row["verdict"] == before["verdict"]), row
        assert not row["safe_to_abort"] or (before is not None and before["safe_to_abort"]), row
    absent = {"PRODUCER_ID_NEVER_ALLOCATED", "CAPTURE_JSON_CONTRADICTED", "COPY_OF_DELETED_TOPIC"}
    found, expected = (
        {(row["name"], row["topic"], row["evidence"]) for row in each.rows("findings") if row["name"] in absent}
        for each in (lossy, whole)
    )
    assert found <= expected
