"""The commands of docs/capture.md, carried out, and the captures that they make."""

import re
import shlex
from pathlib import Path

import pytest

from tests.support.capture_guide import LOCAL, carry_out
from txnlib.jobs import options
from txnlib.readers.capture import FileKind, list_capture

GUIDE = Path(__file__).resolve().parent.parent.parent / "docs" / "capture.md"
BLOCKS = re.findall(r"```sh\n(.*?)```", GUIDE.read_text(), re.DOTALL)
AUDIT = re.compile(r"^\./spark-submit\.sh (?P<job>\w+) (?P<options>.*)$", re.MULTILINE)
#: Words of a block -> where its capture lies, its brokers, kind of its logs, its partitions without coordinators. The
#: first counts.
LEAVES = {
    "scripts/capture.sh --output /backup/capture": (
        "backup/capture",
        {"1"},
        FileKind.SEGMENT,
        {"orders-0", "orders-1", "payments.eu-0"},
    ),
    "ssh": ("capture", {"1", "2", "3"}, FileKind.SEGMENT, {"orders-0", "orders-1", "payments.eu-0"}),
    "--since-snapshot": ("backup/payments", {"1"}, FileKind.SEGMENT, {"orders-0", "orders-1", "payments.eu-0"}),
    "cp -R": ("capture", {"1"}, FileKind.SEGMENT, {"orders-0", "orders-1"}),
    "--text": ("backup/text", {"1"}, FileKind.DUMP, {"orders-0"}),
    "--deep-iteration": ("capture", {"1"}, FileKind.DUMP, {"orders-0"}),
    "kubectl": ("capture", {"4", "5"}, FileKind.SEGMENT, {"orders-0", "orders-1", "payments.eu-0"}),
}


def kind_of(block: str) -> str | None:
    return next((words for words in LEAVES if words in block), None)


@pytest.mark.parametrize("block", [block for block in BLOCKS if kind_of(block)], ids=kind_of)
def test_what_the_guide_says_leads_to_a_capture(block, tmp_path):
    here = carry_out(AUDIT.sub("", block), tmp_path)
    where, brokers, kind, partitions = LEAVES[kind_of(block)]
    place = here / where if where == "capture" else tmp_path / "machines" / LOCAL / where
    logs = list_capture([str(place)]).of_kind(kind)
    assert {file.source.split(":")[1].split("/")[0] for file in logs} == brokers
    internal = ("__transaction_state", "__cluster_metadata")
    assert {f"{file.topic}-{file.partition}" for file in logs if file.topic not in internal} == partitions
    assert "__cluster_metadata" in {file.topic for file in logs}
    assert {file.partition for file in logs if file.topic == "__transaction_state"} >= {0}
    assert not list(place.rglob("*.deleted"))


def test_the_guide_shows_every_kind_of_capture_once():
    assert sorted(filter(None, map(kind_of, BLOCKS))) == sorted(LEAVES)


@pytest.mark.parametrize("block", [block for block in BLOCKS if not kind_of(block)])
def test_other_commands_of_the_guide_work(block, tmp_path):
    (tmp_path / "machines" / LOCAL / "backup" / "capture").mkdir(parents=True)
    carry_out(AUDIT.sub("", block), tmp_path)


def test_a_snapshot_of_the_disk_is_noted_as_an_audit_reads_it(tmp_path):
    (block,) = [block for block in BLOCKS if "default" in block]
    here = carry_out(block, tmp_path)
    (here / "capture" / "1" / "orders-0").mkdir()
    (here / "capture" / "1" / "orders-0" / "00000000000000000000.log").write_bytes(b"")
    notes = list_capture([str(here / "capture")]).notes
    assert notes.instants.of_copy("raw:1", "orders", 0) == notes.instants.latest_ms
    assert notes.instants.latest_ms > 1_700_000_000_000


def test_audits_in_the_guide_have_options_that_exist():
    audits = [match for block in BLOCKS for match in AUDIT.finditer(block)]
    assert len(audits) >= 2
    for match in audits:
        options.parse(match["job"], "", shlex.split(match["options"]))
