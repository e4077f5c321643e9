"""Log directories that scripts/capture.sh copies, without a broker."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from txnlib.readers.capture import FileKind, list_capture
from txnlib.readers.capture_notes import read_capture_notes

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPT = ROOT / "scripts" / "capture.sh"
FIRST, SECOND, THIRD = (f"{offset:020}" for offset in (0, 50, 90))
METADATA = "__cluster_metadata-0"
#: What Kafka leaves in a log directory that is no data, or none of ours.
NO_DATA = (
    f"orders-0/{FIRST}.index", f"orders-0/{FIRST}.timeindex", f"orders-0/{THIRD}.log.deleted",
    f"orders-0/{THIRD}.log.swap", f"orders-0/{THIRD}.log.cleaned", f"orders-0/{THIRD}.snapshot.deleted",
    f"orders-1.0123456789abcdef0123456789abcdef-delete/{FIRST}.log",
    f"orders-1.0123456789abcdef0123456789abcdef-future/{FIRST}.log",
    f"__cluster_metadata-0/{FIRST}-0000000001.checkpoint.part",
    f"__cluster_metadata-0/{FIRST}-0000000001.checkpoint.deleted", "__cluster_metadata-0/quorum-state", ".lock",
)  # fmt: skip


def write(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A log directory of broker 3: two coordinator partitions, two of a topic, one of another."""
    data = tmp_path / "data"
    write(data / "meta.properties", "version=1\ncluster.id=someCluster\nnode.id=3\n")
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
        write(data / name, "0\n0\n")
    for folder in ("__transaction_state-0", "__transaction_state-4", "orders-0", "orders-12", "odd.name-1-0"):
        write(data / folder / f"{FIRST}.log", f"{folder} first ")
        write(data / folder / f"{SECOND}.log", f"{folder} second ")
        write(data / folder / f"{SECOND}.snapshot", "producers")
        write(data / folder / f"{FIRST}.txnindex", "aborted")
        write(data / folder / "leader-epoch-checkpoint", "0\n1\n0 0\n")
        write(data / folder / "partition.metadata", "version: 0\n")
    write(data / METADATA / f"{FIRST}.log", "metadata")
    write(data / METADATA / f"{SECOND}-0000000001.checkpoint", "snapshot of metadata")
    for name in NO_DATA:
        write(data / name, "no data")
    return data


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def command(data: Path, out: Path, *options: str | Path) -> list[str]:
    return [str(SCRIPT), "--output", str(out), "--log-dirs", str(data), *map(str, options)]


def capture(data: Path, out: Path, *options: str | Path, expected: int = 0) -> str:
    done = subprocess.run(command(data, out, *options), capture_output=True, text=True, check=False)
    assert done.returncode == expected, done.stderr
    return done.stdout + done.stderr


def contents(folder: Path) -> dict[str, str]:
    """The files of a folder that are not the script's own."""
    found = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path.read_text() for name, path in found.items() if not name.endswith((".capture", "capture.json"))}


def instants(out: Path) -> dict[str, int]:
    return read_capture_notes(str(out / "3" / "capture.json")).captured_at_ms


def inodes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_ino for path in folder.iterdir() if path.suffix != ".capture"}


def segment(folder: Path, base: str = SECOND) -> Path:
    return folder / f"{base}.log"


def test_every_data_file_is_copied_byte_for_byte_and_coordinators_twice(data, out):
    capture(data, out)
    given = {name: text for name, text in contents(data).items() if name not in NO_DATA}
    again = {f"first/{name}": text for name, text in given.items() if name.startswith("__transaction_state-")}
    assert contents(out / "3") == given | again


def test_nothing_in_the_log_directory_is_touched(data, out):
    def seen():
        return {
            path: (path.stat().st_mtime_ns, path.stat().st_ctime_ns, path.stat().st_size)
            for path in [data, *data.rglob("*")]
        }

    before = seen()
    capture(data, out)
    assert seen() == before


def test_coordinators_are_taken_before_and_after_the_others(data, out):
    capture(data, out)
    noted = instants(out)
    assert set(noted) == {
        *(
            f"3/{name}"
            for name in ("__transaction_state-0", "__transaction_state-4", "orders-0", "orders-12", "odd.name-1-0")
        ),
        f"3/{METADATA}",
        *(f"3/first/{name}" for name in ("__transaction_state-0", "__transaction_state-4")),
    }
    assert noted.pop(f"3/{METADATA}") > max(noted.values()), "it shows the leaders of the whole period"
    data_partitions = [instant for name, instant in noted.items() if "__transaction_state" not in name]
    assert max(instant for name, instant in noted.items() if "/first/" in name) < min(data_partitions)
    assert max(data_partitions) < min(
        instant for name, instant in noted.items() if name.startswith("3/__transaction_state")
    )
    assert all(abs(time.time() * 1000 - instant) < 60_000 for instant in noted.values())


def test_an_audit_finds_a_capture_and_nothing_that_it_does_not_know(data, out):
    capture(data, out, "--cluster", 'the "big" one \\ here')
    listed = list_capture([str(out)])
    assert listed.notes.cluster == 'the "big" one \\ here'
    assert listed.of_kind(FileKind.UNKNOWN) == ()
    assert {file.source for file in listed.of_kind(FileKind.SEGMENT)} == {"raw:3", "raw:3/first"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--topics", "orders"], {"orders-0", "orders-12"}),
        (["--topics", "o.*-1|nothing"], {"odd.name-1-0"}),
        (["--partitions", "orders-12,odd.name-1-0"], {"orders-12", "odd.name-1-0"}),
        (["--topics", "order"], set()),
    ],
)
def test_a_choice_of_partitions_is_copied_and_coordinators_always(data, out, options, expected):
    capture(data, out, *options)
    found = {path.name for path in (out / "3").iterdir() if path.is_dir()}
    assert found == expected | {"first", "__transaction_state-0", "__transaction_state-4", METADATA}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--colour"], "unknown option: --colour"),
        (["--topics"], "--topics needs a value"),
        (["--topics", "("], "is not an extended regular expression"),
        (["--topics", "a", "--partitions", "a-0"], "mutually exclusive"),
        (["--limit-rate", "fast"], "--limit-rate fast: expected a number"),
        (["--step", "all"], "--step all: expected coordinators, partitions or coordinators-again"),
        (["--log-dirs", "/nowhere"], "/nowhere: not a readable log directory"),
        (["--bootstrap-server", "localhost:9092"], "--kafka-home is missing"),
        (["--text", "--since-snapshot"], "--text cannot be combined"),
        (["--server-properties", "/nowhere"], "--server-properties /nowhere cannot be read"),
    ],
)
def test_bad_usage_is_named_exits_with_2_and_writes_nothing(data, out, options, message):
    assert message in capture(data, out, *options, expected=2)
    assert not out.exists()


def test_an_output_inside_a_log_directory_is_refused(data):
    assert "is inside the log directory" in capture(data, data / "orders-0" / "copy", expected=2)


def test_a_folder_without_partitions_is_no_log_directory(out, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "no partition to copy" in capture(tmp_path / "empty", out, "--broker-id", "1", expected=2)


@pytest.mark.parametrize("depth", ["kafka-log3", "kafka/data"])
@pytest.mark.parametrize("options", [[], ["--broker-id", "3"]])
def test_at_the_root_of_a_volume_the_log_directory_below_is_named(data, out, tmp_path, depth, options):
    (tmp_path / "volume" / depth).parent.mkdir(parents=True)
    data.rename(tmp_path / "volume" / depth)
    said = capture(tmp_path / "volume", out, *options, expected=2)
    assert f"has no meta.properties: use --log-dirs {tmp_path}/volume/{depth}\n" in said
    assert not out.exists()


def test_help_names_every_option(data, out):
    said = capture(data, out, "--help")
    for option in (
        "--output",
        "--server-properties",
        "--since-snapshot",
        "--limit-rate",
        "--command-config",
        "Exit codes",
    ):
        assert option in said


def test_a_dry_run_says_what_would_be_copied_and_writes_nothing(data, out):
    said = capture(data, out, "--dry-run")
    assert "orders-0\t6 files\t" in said
    assert "broker 3 of cluster someCluster: 2 coordinator partitions, 3 others" in said
    assert not out.exists()


def test_what_did_not_change_is_not_copied_again_and_its_instant_moves_on(data, out):
    capture(data, out)
    before, noted = inodes(out / "3" / "orders-0"), instants(out)
    capture(data, out)
    assert inodes(out / "3" / "orders-0") == before
    assert all(instant > noted[name] for name, instant in instants(out).items())


def test_a_segment_that_grew_is_continued(data, out):
    capture(data, out)
    before = inodes(out / "3" / "orders-0")
    with segment(data / "orders-0").open("a") as grown:
        grown.write("and more")
    capture(data, out)
    assert segment(out / "3" / "orders-0").read_text() == "orders-0 second and more"
    assert inodes(out / "3" / "orders-0") == before


def test_a_segment_that_was_truncated_and_written_anew_is_copied_anew(data, out):
    capture(data, out)
    segment(data / "orders-0").write_text("another history, and longer than the old one")
    capture(data, out)
    assert segment(out / "3" / "orders-0").read_text() == "another history, and longer than the old one"


def test_a_segment_that_was_written_anew_in_the_same_second_to_the_same_size_is_copied_anew(data, out):
    path = segment(data / "orders-0")
    second = path.stat().st_mtime_ns // 10**9 * 10**9
    os.utime(path, ns=(second, second))
    capture(data, out)
    path.write_text(path.read_text().upper())
    os.utime(path, ns=(second, second + 1_000_000))
    capture(data, out)
    assert segment(out / "3" / "orders-0").read_text() == path.read_text()


def test_segments_that_were_cleaned_into_one_replace_their_copies(data, out):
    capture(data, out)
    cleaned = write(data / "orders-0" / "new", "both in one")
    cleaned.rename(segment(data / "orders-0", FIRST))
    segment(data / "orders-0").unlink()
    capture(data, out)
    assert sorted(path.name for path in (out / "3" / "orders-0").glob("*.log")) == [f"{FIRST}.log"]
    assert segment(out / "3" / "orders-0", FIRST).read_text() == "both in one"


def started(data: Path, out: Path, *options: str) -> subprocess.Popen[bytes]:
    """A slow call, once it is copying the second segment of orders-0."""
    process = subprocess.Popen(
        command(data, out, "--limit-rate", "100K", "--topics", "orders", *options),
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    until = time.monotonic() + 20
    while not (out / "3" / "orders-0" / f"{SECOND}.log.tmp").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    return process


@pytest.fixture
def large(data: Path) -> Path:
    """The log directory with a segment that takes a second to copy, behind one that takes a tenth of it."""
    segment(data / "orders-0", FIRST).write_text("a" * 10_000)
    segment(data / "orders-0").write_text("b" * 100_000)
    return data


def test_a_call_that_was_killed_leaves_no_instant_and_the_next_goes_on(large, out):
    process = started(large, out)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert instants(out) == {}
    copied = segment(out / "3" / "orders-0", FIRST).stat()
    capture(large, out, "--topics", "orders")
    assert segment(out / "3" / "orders-0").read_text() == "b" * 100_000
    after = segment(out / "3" / "orders-0", FIRST).stat()
    assert (after.st_ino, after.st_mtime_ns) == (copied.st_ino, copied.st_mtime_ns)
    assert len(instants(out)) == 7
    assert list(out.rglob("*.tmp")) == []


def test_a_later_call_that_was_killed_takes_back_the_instants_of_what_it_may_have_changed(large, out):
    capture(large, out, "--topics", "orders")
    assert "3/orders-0" in instants(out)
    segment(large / "orders-0").unlink()
    segment(large / "orders-0").write_text("c" * 100_000)
    process = started(large, out)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert instants(out) == {}
    capture(large, out, "--step", "coordinators-again")
    assert "3/orders-12" in instants(out)
    assert "3/orders-0" not in instants(out)


def test_a_call_that_was_interrupted_notes_what_it_has_and_exits_with_1(large, out):
    process = started(large, out)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate()
    assert (process.returncode, b"call it again to resume" in said) == (1, True)
    assert set(instants(out)) == {"3/first/__transaction_state-0", "3/first/__transaction_state-4"}


def appended(folder: Path) -> None:
    with segment(folder).open("a") as growing:
        growing.write("written too late")


def retained(folder: Path) -> None:
    segment(folder, FIRST).rename(folder / f"{FIRST}.log.deleted")


def cleaned(folder: Path) -> None:
    write(folder / "new", "cleaned").rename(segment(folder, FIRST))


def cleaned_into_one(folder: Path) -> None:
    cleaned(folder)
    segment(folder).unlink()


BOTH = {f"{FIRST}.log": "a" * 10_000, f"{SECOND}.log": "b" * 100_000}
CLEANED = {f"{FIRST}.log": "cleaned"}


@pytest.mark.parametrize(
    ("meanwhile", "expected"),
    [(appended, BOTH), (retained, BOTH), (cleaned, BOTH | CLEANED), (cleaned_into_one, CLEANED)],
)
def test_what_is_copied_already_stays_and_what_is_cleaned_meanwhile_is_copied_as_it_is_now(
    large, out, meanwhile, expected
):
    process = started(large, out)
    meanwhile(large / "orders-0")
    _, said = process.communicate()
    assert process.returncode == 0, said
    assert {path.name: path.read_text() for path in (out / "3" / "orders-0").glob("*.log")} == expected


def test_two_calls_do_not_write_to_one_copy(large, out):
    process = started(large, out)
    assert "is writing to" in capture(large, out, expected=1)
    process.communicate()
    assert process.returncode == 0


def test_from_the_newest_snapshot_on_where_it_stands_at_a_segment(data, out):
    write(data / "orders-0" / f"{THIRD}.snapshot", "of a clean shutdown, in the middle of a segment")
    capture(data, out, "--since-snapshot")
    files = ["leader-epoch-checkpoint", "partition.metadata"]
    assert sorted(contents(out / "3" / "orders-0")) == [
        f"{SECOND}.log",
        f"{SECOND}.snapshot",
        f"{THIRD}.snapshot",
        *files,
    ]
    assert segment(out / "3" / "__transaction_state-0", FIRST).exists()


def test_rolled_segments_are_linked_if_asked_and_the_active_one_is_copied(data, out):
    capture(data, out, "--link")
    rolled, active = (segment(data / "orders-0", base).stat() for base in (FIRST, SECOND))
    copies = inodes(out / "3" / "orders-0")
    assert copies[f"{FIRST}.log"] == rolled.st_ino
    assert copies[f"{SECOND}.log"] != active.st_ino


def test_a_linked_segment_is_never_written_to(data, out):
    """A follower that truncates may make a rolled segment its active one again."""
    capture(data, out, "--link")
    segment(data / "orders-0").unlink()
    with segment(data / "orders-0", FIRST).open("a") as again_active:
        again_active.write("and more")
    capture(data, out, "--link")
    assert segment(data / "orders-0", FIRST).read_text() == "orders-0 first and more"
    assert segment(out / "3" / "orders-0", FIRST).read_text() == "orders-0 first and more"


def test_log_directories_and_broker_are_known_from_server_properties(data, out, tmp_path):
    second = tmp_path / "data-2"
    shutil.copytree(data / "orders-0", second / "payments-7")
    write(second / "replication-offset-checkpoint", "0\n0\n")
    lines = ["# node.id=1", " node.id = 8", f"log.dirs={data},{second}", "transaction.max.timeout.ms=60000"]
    properties = write(tmp_path / "server.properties", "\n".join([*lines, "transaction.state.log.num.partitions=5\n"]))
    done = subprocess.run(
        [SCRIPT, "--output", out, "--server-properties", properties], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert segment(out / "8" / "dir-0" / "orders-0").exists()
    assert segment(out / "8" / "dir-1" / "payments-7").exists()
    assert (out / "8" / "dir-1" / "replication-offset-checkpoint").exists()
    assert segment(out / "8" / "first" / "__transaction_state-0").exists()
    notes = read_capture_notes(str(out / "8" / "capture.json"))
    assert (notes.transaction_max_timeout_ms, notes.coordinator_partitions) == (60_000, 5)
    assert notes.broker_settings["transaction.max.timeout.ms"] == "60000"
    assert {"8/orders-0", "8/payments-7", "8/first/__transaction_state-4"} <= set(notes.captured_at_ms)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Kafka's tools, answering what a cluster of two brokers would; kafka-configs.sh gets no answer."""
    partition = "\\tTopic: {}\\tPartition: {}\\tLeader: {}\\tReplicas: {}\\tIsr: 3\\tElr: \\tLastKnownElr: \\n"
    described = [
        ("orders", 0, "3", "3,4"),
        ("orders", 12, "none", "4"),
        ("other", 0, "3", "3"),
        ("__transaction_state", 0, 4, "4,3"),
    ]
    answers = {
        "kafka-topics.sh": "printf '" + "".join(partition.format(*row) for row in described) + "'",
        "kafka-configs.sh": "echo 'Connection to node -1 could not be established' >&2; exit 1",
        "kafka-broker-api-versions.sh": "echo 3.9.1",
        "kafka-dump-log.sh": 'echo "Starting offset: 0"; echo "$*"',
    }
    for name, answer in answers.items():
        write(tmp_path / "kafka" / "bin" / name, f"#!/bin/sh\n{answer}\n").chmod(0o755)
    return tmp_path / "kafka"


def confluent(home: Path) -> Path:
    """The same tools as Confluent Platform has them: in a folder of programs, without an ending."""
    for path in (home / "bin").iterdir():
        path.rename(path.with_suffix(""))
    return home


@pytest.mark.parametrize("place", ["--kafka-home", "PATH"])
@pytest.mark.parametrize("tools", [lambda home: home, confluent], ids=["apache", "confluent"])
def test_tools_are_found_with_and_without_an_ending(data, out, home, monkeypatch, place, tools):
    where = tools(home)
    options = ["--kafka-home", where]
    if place == "PATH":
        monkeypatch.setenv("PATH", f"{where}/bin:{os.environ['PATH']}")
        options = []
    said = capture(data, out, "--text", "--bootstrap-server", "b:9092", *options, expected=1)
    assert "Connection to node -1 could not be established" in said, "what a tool says that fails"
    notes = json.loads((out / "3" / "capture.json").read_text())
    assert (notes["kafka_version"], notes["partitions"]["other-0"]["leader"]) == ("3.9.1", 3)
    assert f"{SECOND}.log" in gzip.decompress((out / "3" / "orders-0.txt.gz").read_bytes()).decode()


@pytest.mark.parametrize("options", [["--text"], ["--bootstrap-server", "b:9092"]])
def test_tools_that_are_not_there_are_named(data, out, tmp_path, options):
    name = "kafka-dump-log" if options == ["--text"] else "kafka-topics"
    said = capture(data, out, *options, "--kafka-home", tmp_path, expected=2)
    assert f"--kafka-home {tmp_path}: neither {name}.sh nor {name} is in its bin" in said


def test_what_tools_say_that_succeed_is_not_repeated(data, out, home):
    path = home / "bin" / "kafka-topics.sh"
    path.write_text(path.read_text() + "\necho 'log4j: no appenders' >&2\n")
    said = capture(data, out, "--kafka-home", home, "--bootstrap-server", "b:9092", expected=1)
    assert "log4j" not in said


def test_a_cluster_that_gives_no_answer_costs_the_notes_and_not_the_copies(data, out, home):
    said = capture(data, out, "--topics", "orders", "--kafka-home", home, "--bootstrap-server", "b:9092", expected=1)
    assert "kafka-configs got no answer from b:9092" in said
    assert segment(out / "3" / "orders-0").exists()
    notes = json.loads((out / "3" / "capture.json").read_text())
    assert notes["kafka_version"] == "3.9.1"
    assert notes["coordinator_partitions"] == 1
    assert notes["partitions"] == {
        "__transaction_state-0": {"leader": 4, "replicas": [4, 3]},
        "orders-0": {"leader": 3, "replicas": [3, 4]},
        "orders-12": {"leader": -1, "replicas": [4]},
    }


def test_notes_of_an_earlier_call_stay_where_the_cluster_is_not_asked_again(data, out, home):
    capture(data, out, "--kafka-home", home, "--bootstrap-server", "b:9092", "--cluster", "ours", expected=1)
    before = instants(out)
    capture(data, out, "--step", "coordinators-again")
    notes = read_capture_notes(str(out / "3" / "capture.json"))
    assert (notes.cluster, notes.partitions["orders-0"].leader) == ("ours", 3)
    changed = {name for name, instant in notes.captured_at_ms.items() if instant != before[name]}
    assert changed == {"3/__transaction_state-0", "3/__transaction_state-4", f"3/{METADATA}"}


#: By the partition whose journal has it.
HOSTILE = {
    "__transaction_state-0": "$(touch hostile)",
    "orders-12": "x[$(touch hostile)]",
    "orders-0": "../../../precious",
    "odd.name-1-0": "orders-0",
}


@pytest.mark.parametrize("field", range(4))
def test_a_journal_of_an_earlier_call_is_no_program(data, out, tmp_path, monkeypatch, field):
    """Bash evaluates what stands in its arithmetic and in the subscripts that it removes."""
    monkeypatch.chdir(tmp_path)
    capture(data, out)
    for name, hostile in HOSTILE.items():
        journal = out / "3" / name / "journal.capture"
        lines = [line.split(" ") for line in journal.read_text().splitlines()]
        for words in lines:
            words[min(field, len(words) - 1)] = hostile
        journal.write_text("".join(" ".join(words) + "\n" for words in lines))
    precious = write(tmp_path / "precious", "mine")
    capture(data, out)
    assert not (tmp_path / "hostile").exists()
    assert precious.read_text() == "mine"
    for name in HOSTILE:
        assert segment(out / "3" / name).read_text() == segment(data / name).read_text()
        assert f"3/{name}" in instants(out)


def test_what_an_earlier_call_noted_of_the_cluster_stays_json(data, out, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    capture(data, out)
    hostile = [
        'setting:x","y\t1',
        'partition:a"b-0\t1 1',
        "partition:orders-0\t$(touch hostile) 1",
        "x[$(touch hostile)]\t1",
    ]
    with (out / "3" / "notes.capture").open("a") as notes:
        notes.writelines(f"{line}\n" for line in hostile)
    capture(data, out)
    assert not (tmp_path / "hostile").exists()
    noted = json.loads((out / "3" / "capture.json").read_text())
    assert (noted["partitions"], noted["broker_settings"]) == ({}, {})


def test_a_name_that_kafka_forbids_is_not_noted(data, out, home):
    path = home / "bin" / "kafka-topics.sh"
    path.write_text("#!/bin/sh\nprintf 'Topic: a\"b Partition: 0 Leader: 1 Replicas: 1\\n'\n")
    capture(data, out, "--kafka-home", home, "--bootstrap-server", "b:9092", expected=1)
    assert json.loads((out / "3" / "capture.json").read_text())["partitions"] == {}


@pytest.mark.parametrize("name", ["orders-0", f"orders-0/{SECOND}.log", f"orders-0/{SECOND}.log.tmp"])
def test_a_link_in_a_capture_is_replaced_and_not_followed(data, out, tmp_path, name):
    capture(data, out)
    path, precious = out / "3" / name, tmp_path / "precious"
    if path.exists():
        path.rename(precious)
    else:
        precious.write_text("mine")
    before = {each: each.read_text() for each in (precious, *precious.glob("*")) if each.is_file()}
    path.symlink_to(precious)
    appended(data / "orders-0")
    capture(data, out)
    assert segment(out / "3" / "orders-0").read_text() == segment(data / "orders-0").read_text()
    assert {each: each.read_text() for each in (precious, *precious.glob("*")) if each.is_file()} == before


def test_text_is_printed_by_kafkas_tool_with_the_options_that_an_audit_needs(data, out, home):
    capture(data, out, "--text", "--kafka-home", home)
    files = [
        f"{data}/orders-0/{name}"
        for name in (f"{FIRST}.log", f"{SECOND}.log", f"{SECOND}.snapshot", f"{FIRST}.txnindex")
    ]
    expected = {
        "orders-0": ["--deep-iteration --files ", *files],
        "first/__transaction_state-0": ["--transaction-log-decoder --files "],
        METADATA: ["--cluster-metadata-decoder --files ", f"{SECOND}-0000000001.checkpoint"],
    }
    for name, words in expected.items():
        text = gzip.decompress((out / "3" / f"{name}.txt.gz").read_bytes()).decode()
        assert [word for word in words if word not in text] == [], name
    assert "3/first/__transaction_state-0" in instants(out)


@pytest.mark.parametrize("how", ["files", "text"])
def test_a_topic_may_have_the_longest_name(data, out, home, how):
    """Kafka: `Topic.MAX_NAME_LENGTH`, 249, and file systems take names of 255 bytes."""
    topics = ["o" * length for length in (200, 241, 242, 249)]
    for topic in topics:
        shutil.copytree(data / "orders-0", data / f"{topic}-1234")
    options = [] if how == "files" else ["--text", "--kafka-home", home]
    for _ in range(2):
        capture(data, out, *options)
    texts = [gzip.decompress(path.read_bytes()).decode() for path in (out / "3").glob("*.txt.gz")]
    for topic in topics:
        assert f"3/{topic}-1234" in instants(out)
        if how == "files":
            assert segment(out / "3" / f"{topic}-1234").read_text() == "orders-0 second "
        else:
            assert sum(f"/{topic}-1234/{FIRST}.log" in text for text in texts) == 1
    assert list(out.rglob("*.tmp")) == []


def test_a_link_in_place_of_a_segment_is_refused(data, out, tmp_path):
    secret = write(tmp_path / "secret", "a password")
    segment(data / "orders-0").unlink()
    segment(data / "orders-0").symlink_to(secret)
    said = capture(data, out, expected=1)
    assert f"{data}/orders-0/{SECOND}.log is a link, not a file of a broker" in said
    assert "orders-0 could not be copied" in said
    assert [path for path in out.rglob("*") if path.is_file() and "password" in path.read_text()] == []
    assert segment(out / "3" / "orders-12").exists()


@pytest.mark.parametrize("how", ["files", "text", "slow"])
def test_only_the_owner_can_read_a_capture(data, out, home, how):
    options = {"files": [], "text": ["--text", "--kafka-home", home], "slow": ["--limit-rate", "1M"]}[how]
    for path in data.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    for _ in range(2):
        capture(data, out, *options)
    modes = {path: path.stat().st_mode & 0o777 for path in (out, *out.rglob("*"))}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}


def test_brokers_share_a_folder(data, out):
    capture(data, out)
    capture(data, out, "--broker-id", "4")
    notes = list_capture([str(out)]).notes
    assert {"3/orders-0", "4/orders-0", "4/first/__transaction_state-0"} <= set(notes.captured_at_ms)
