"""A capture of brokers in memory, which change between any two requests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.fake_brokers import FakeBrokers, Log, brokers_with, filled, taken_by
from tests.support.wire_captures import log_of, notes_of
from txnlib.errors import UsageError
from txnlib.wire_capture.capture import ALL, OPEN
from txnlib.wire_capture.partition_copy import Taken

ORDERS = ("orders", 0)


@pytest.fixture
def fake() -> FakeBrokers:
    return brokers_with(orders=filled())


def whole(fake: FakeBrokers, folder: Path, broker: int = 1) -> Taken:
    """The copy of `orders-0`, without a problem and with the bytes of its leader's log."""
    each = taken_by(fake, folder, scope=ALL)["orders-0"]
    assert each.problem is None
    assert log_of(folder / str(broker) / "orders-0") == fake.logs[ORDERS].content()
    return each


def test_a_quota_is_waited_for(fake: FakeBrokers, tmp_path: Path) -> None:
    """A throttled Fetch has no topics. Kafka: `FetchContext.getThrottledResponse`."""
    throttled = SimpleNamespace(error_code=0, throttle_time_ms=3, responses=[])
    fake.instead = lambda number, answer: answer if number % 9 == 0 else throttled
    assert whole(fake, tmp_path).end_offset == 20


def test_an_answer_without_records_is_not_the_end_of_the_log(fake: FakeBrokers, tmp_path: Path) -> None:
    def sometimes_empty(number: int, answer: SimpleNamespace) -> SimpleNamespace:
        if number % 3:
            answer.responses[0].partitions[0].records = b""
        return answer

    fake.instead = sometimes_empty
    each = whole(fake, tmp_path)
    assert (each.end_offset, each.notes) == (20, [])


def test_a_leader_that_has_no_more_is_believed_and_noted(fake: FakeBrokers, tmp_path: Path) -> None:
    def without_the_end(number: int, answer: SimpleNamespace) -> SimpleNamespace:
        said = answer.responses[0].partitions[0]
        if said.records[:8] == (18).to_bytes(8, "big"):
            said.records = b""
        return answer

    fake.instead = without_the_end
    each = taken_by(fake, tmp_path, scope=ALL)["orders-0"]
    assert (each.problem, each.end_offset) == (None, 18)
    assert each.notes == ["its leader has nothing from offset 18 up to its high watermark 20"]


@pytest.mark.parametrize(
    ("damaged", "problem"), [(2, None), (3, "orders-0: the batch at offset 8, up to 9, is damaged in every")]
)
def test_a_damaged_answer_is_asked_for_again(
    fake: FakeBrokers, tmp_path: Path, damaged: int, problem: str | None
) -> None:
    answers = []

    def damaging(number: int, answer: SimpleNamespace) -> SimpleNamespace:
        said = answer.responses[0].partitions[0]
        if said.records[:8] == (8).to_bytes(8, "big") and len(answers) < damaged:
            answers.append(number)
            said.records = said.records[:-1] + b"?"
        return answer

    fake.instead = damaging
    each = taken_by(fake, tmp_path, scope=ALL)["orders-0"]
    assert (each.problem or "").startswith(problem or "")
    content = fake.logs[ORDERS].content()
    expected = content if problem is None else content[: content.index((8).to_bytes(8, "big"))]
    assert log_of(tmp_path / "1" / "orders-0") == expected


def test_a_topic_that_was_created_again_is_a_new_log(fake: FakeBrokers, tmp_path: Path) -> None:
    taken_by(fake, tmp_path, scope=ALL)
    fake.logs[ORDERS], fake.topic_id = filled(15, epoch=0), 8
    assert whole(fake, tmp_path).notes == ["its topic was created again since an earlier fetch: fetched from the start"]


@pytest.mark.parametrize("newest_version", [12, 13], ids=["by name", "by id"])
@pytest.mark.parametrize("at", range(3, 13))
def test_a_topic_that_is_created_again_within_a_call_is_a_new_log(
    fake: FakeBrokers, tmp_path: Path, newest_version: int, at: int
) -> None:
    """Leader and leader epoch may be the same as before, and the new log may be longer than what is fetched of the old
    one."""
    fake.newest_version = newest_version

    def create_again(number: int) -> None:
        if number == at:
            fake.logs[ORDERS], fake.topic_id = filled(25), 8
            assert {each[2] for each in fake.logs[ORDERS].batches} == {0}

    fake.before_fetch = create_again
    assert "topic was created again" in whole(fake, tmp_path).notes[0]


def again() -> Log:
    """The log of a topic that was created again, with other records."""
    log = Log()
    for number in range(25):
        log.append(at_ms=5_000 + number)
    return log


@pytest.mark.parametrize("at", range(5, 15))
def test_a_topic_without_id_that_is_created_again_within_a_call_is_a_new_log(
    fake: FakeBrokers, tmp_path: Path, at: int
) -> None:
    """Brokers before topic ids: its first batch is another one."""
    fake.newest_version, fake.has_topic_ids = 12, False

    def create_again(number: int) -> None:
        if number == at:
            fake.logs[ORDERS] = again()

    fake.before_fetch = create_again
    expected = "fetched again: its first batch is not the one that was fetched: its topic was created again, or cleaned"
    assert whole(fake, tmp_path).notes == [expected]


def test_a_topic_without_id_that_was_created_again_since_is_a_new_log(fake: FakeBrokers, tmp_path: Path) -> None:
    fake.newest_version, fake.has_topic_ids = 12, False
    assert whole(fake, tmp_path).notes == []
    assert whole(fake, tmp_path).notes == []
    fake.logs[ORDERS] = again()
    assert whole(fake, tmp_path).notes[0].startswith("fetched again: its first batch is not the one that was fetched")


def test_a_log_that_a_leader_cut_and_wrote_again_between_two_calls_is_fetched_again(
    fake: FakeBrokers, tmp_path: Path
) -> None:
    """It ends where it did: no offset tells, only the epoch."""
    taken_by(fake, tmp_path, scope=ALL)
    log = fake.logs[ORDERS]
    del log.batches[-2:]
    log.epoch = 1
    log.append()
    log.append()
    assert whole(fake, tmp_path).end_offset == 20


def test_what_is_appended_after_the_instant_of_the_copy_is_left_out(fake: FakeBrokers, tmp_path: Path) -> None:
    before = fake.logs[ORDERS].content()
    fake.before_fetch = lambda number: fake.logs[ORDERS].append()
    each = taken_by(fake, tmp_path, scope=ALL)["orders-0"]
    noted = notes_of(tmp_path)["partitions"]["orders-0"]
    wire = log_of(tmp_path / "1" / "orders-0")
    assert each.end_offset == noted["high_watermark"]
    assert wire.startswith(before)
    assert fake.logs[ORDERS].content().startswith(wire)


def test_a_topic_may_have_the_longest_name(tmp_path: Path) -> None:
    """Kafka: `Topic.MAX_NAME_LENGTH`, and a folder's name is that of the topic, a dash and the partition."""
    fake = FakeBrokers({("o" * 249, 99_999): filled()})
    name = "o" * 249 + "-99999"
    each = taken_by(fake, tmp_path, scope=ALL)[name]
    assert (each.problem, each.end_offset) == (None, 20)
    assert log_of(tmp_path / "1" / name) == fake.logs["o" * 249, 99_999].content()
    fake.asked.clear()
    assert taken_by(fake, tmp_path, scope=ALL)[name].problem is None
    assert fake.asked.count("Fetch") == 1, "more than to compare it with the leader's log"


def test_only_the_owner_can_read_a_capture(tmp_path: Path) -> None:
    taken_by(brokers_with(orders=filled(last_stable=4), quiet=Log()), tmp_path / "new" / "capture", scope=ALL)
    modes = {path: path.stat().st_mode & 0o777 for path in (tmp_path / "new").rglob("*")}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}


def test_only_open_partitions_are_fetched_from_their_context_on(tmp_path: Path) -> None:
    fake = brokers_with(orders=filled(last_stable=14), quiet=filled())
    found = taken_by(fake, tmp_path, scope=OPEN, context=3)
    assert found["orders-0"].fetched_from == 10  # the batch that contains offset 11
    assert log_of(tmp_path / "1" / "orders-0") == fake.logs[ORDERS].content(11)
    assert found["quiet-0"].captured_at_ms is None
    assert not (tmp_path / "1" / "quiet-0").exists()
    noted = notes_of(tmp_path)["partitions"]["quiet-0"]
    assert (noted["last_stable_offset"], noted["high_watermark"]) == (20, 20)


@pytest.mark.parametrize(
    ("since_ms", "last_stable", "expected"),
    [(1_007, 20, 14), (1_007, 6, 6), (9_999, 20, 20), (9_999, 6, 6), (0, 20, 0)],
    ids=["newer", "newer, and open before", "nothing newer", "nothing newer, but open", "all"],
)
def test_since_an_instant_and_what_is_open(tmp_path: Path, since_ms: int, last_stable: int, expected: int) -> None:
    fake = brokers_with(orders=filled(last_stable=last_stable))
    each = taken_by(fake, tmp_path, scope=ALL, since_ms=since_ms)["orders-0"]
    assert (each.fetched_from, each.end_offset) == (expected, 20)
    assert log_of(tmp_path / "1" / "orders-0") == fake.logs[ORDERS].content(expected)


def elect(log: Log) -> None:
    log.leader, log.epoch = 2, 1


def elect_again(log: Log) -> None:
    log.epoch = 1


def truncate(log: Log) -> None:
    del log.batches[3:]
    elect(log)
    for _ in range(9):
        log.append(3, at_ms=2_000)


def delete(log: Log) -> None:
    del log.batches[:7]
    log.start = 14


MOVED = "its leader was broker 1 when the capture began, then broker 2"
TRUNCATED = "fetched again: epoch 0 ends at 6 on the leader: offsets from there on were truncated"


@pytest.mark.parametrize(
    ("at", "happens", "broker", "fetched_from", "notes"),
    [
        pytest.param(6, elect, 2, 0, [MOVED], id="a new leader with the same log"),
        pytest.param(6, elect_again, 1, 0, [], id="a fenced epoch"),
        pytest.param(8, truncate, 2, 0, [MOVED, TRUNCATED], id="a new leader that truncated what was fetched"),
        pytest.param(6, delete, 1, 14, ["fetched again: offset "], id="a log start that overtakes the capture"),
    ],
)
def test_what_happens_to_a_log_while_it_is_fetched_is_followed_and_noted(
    fake: FakeBrokers,
    tmp_path: Path,
    at: int,
    happens: Callable[[Log], None],
    broker: int,
    fetched_from: int,
    notes: list[str],
) -> None:
    fake.before_fetch = lambda number: happens(fake.logs[ORDERS]) if number == at else None
    each = whole(fake, tmp_path, broker)
    assert each.fetched_from == each.log_start == fetched_from
    assert [said.startswith(note) for said, note in zip(each.notes, notes, strict=True)] == [True] * len(notes)
    assert notes_of(tmp_path)["partitions"]["orders-0"].get("notes", []) == each.notes
    assert [path.name for path in tmp_path.glob("[12]") if (path / "orders-0").exists()] == [str(broker)]


def test_a_partition_that_fails_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    fake = brokers_with(orders=filled(is_readable=False), quiet=filled())
    found = taken_by(fake, tmp_path, scope=ALL)
    assert found["orders-0"].problem == "this user may not read it"
    assert found["quiet-0"].problem is None
    noted = notes_of(tmp_path)["partitions"]
    assert noted["orders-0"]["problem"] == "this user may not read it"


def test_a_partition_whose_dead_leader_was_replaced_is_fetched_from_the_new_one(tmp_path: Path) -> None:
    fake = brokers_with(orders=filled(leader=2))
    log = fake.logs[ORDERS]
    fake.dead.add(2)
    fake.on_silence = lambda: vars(log).update(leader=1, epoch=1)
    assert taken_by(fake, tmp_path, scope=OPEN)["orders-0"].problem is None
    assert log_of(tmp_path / "1" / "orders-0") == log.content()


def test_no_request_but_those_that_read(tmp_path: Path) -> None:
    fake = brokers_with(orders=filled(last_stable=4))
    taken_by(fake, tmp_path)
    described = {f"Describe{name}" for name in ("Producers", "Transactions", "Configs")}
    assert set(fake.asked) == {"Metadata", "ListOffsets", "Fetch", "ListTransactions", *described}


def test_a_pattern_that_matches_nothing_is_bad_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="topics= payments matches no topic"):
        taken_by(brokers_with(orders=filled()), tmp_path, topics="payments")
    assert not list(tmp_path.iterdir())


def test_a_cluster_without_topics_is_nothing_to_capture(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no topic that this user may describe"):
        taken_by(FakeBrokers({}), tmp_path)
