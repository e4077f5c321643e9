"""Copies of deleted topics: every case as a row of a grid."""

import pytest

from tests.support.copies import assigned, captured, checkpoint, noted
from txnlib.core.coverage.captured_files import of_copies
from txnlib.core.coverage.leaders import deleted_copies

#: Topic id in the folder (None: text), ids of the topic now and in the past, whether the broker's own metadata log was
#: captured, whether the log is whole, whether it is confirmed -> whether the copy is of a deleted topic.
COPIES = {
    "the topic of today": ("now", "now", [], True, True, True, False),
    "the topic of today, which had another id": ("now", "now", ["old"], True, True, True, False),
    "the folder of the topic before": ("old", "now", ["old"], True, True, True, True),
    "the same, by a log that proves little": ("old", "now", ["old"], False, False, False, True),
    "a deleted topic": ("old", None, ["old"], True, True, True, True),
    "an id that the log does not have, beside its own log": ("other", "now", [], True, True, False, True),
    "an id that the log does not have, in a confirmed log": ("other", "now", [], False, True, True, True),
    "an id that the log does not have, and nothing else": ("other", "now", [], False, True, False, False),
    "an id that a damaged log may have lost": ("other", "now", [], True, False, True, False),
    "a topic that the log does not have, beside its own log": ("other", None, [], True, True, False, True),
    "a topic that the log does not have, and nothing else": ("other", None, [], False, True, False, False),
    "text of a topic of today": (None, "now", ["old"], False, True, True, False),
    "text of a deleted topic": (None, None, ["old"], False, True, True, True),
    "text of a deleted topic, by a log that proves little": (None, None, ["old"], False, False, False, False),
    "text of a topic that the log does not have": (None, None, [], False, True, True, True),
    "the same, if the log is not confirmed": (None, None, [], False, True, False, False),
}


@pytest.mark.parametrize(
    ("own", "now", "past", "has_log", "is_whole", "is_confirmed", "expected"), COPIES.values(), ids=COPIES
)
def test_which_copies_are_of_deleted_topics(own, now, past, has_log, is_whole, is_confirmed, expected):
    source = "text:1" if own is None else "raw:1"
    states = [] if now is None else [assigned("t", 1, topic_id=now)]
    states += [assigned("t", 1, topic_id=each, is_current=False) for each in past]
    # The metadata log's own folder has an id that is in no record.
    segments = [captured(source=source), captured("__cluster_metadata")]
    ids = [checkpoint("topic_id", "A", "__cluster_metadata")]
    ids += [] if own is None else [checkpoint("topic_id", own)]
    found = deleted_copies(
        segments,
        of_copies(ids),
        states,
        (),
        {"1"} if has_log else set(),
        is_metadata_whole=is_whole,
        is_metadata_confirmed=is_confirmed,
        metadata_known_ms=90,
    )
    assert found == ({("t", 0, source)} if expected else set())


#: Topic ids that the log has, newest stamp of a copy with id "now", end of the log (None: it has no time) -> whether it
#: is deleted.
OUTLIVED = {
    "an older id": ([], 90, 90, True),
    "without a stamp": ([], None, 90, True),
    "written after the end of the log: the record of its topic is lost": ([], 91, 90, False),
    "the same, of a topic that was deleted before": (["old"], 91, 90, False),
    "a known id that is deleted, by a clock that is ahead": (["now"], 91, 90, True),
}


@pytest.mark.parametrize(("past", "stamp", "end", "expected"), OUTLIVED.values(), ids=OUTLIVED)
@pytest.mark.parametrize("is_confirmed", [True, False])
def test_a_log_that_ends_before_a_copy_was_written_says_nothing_of_its_topic(past, stamp, end, expected, is_confirmed):
    found = deleted_copies(
        [captured(source="raw:1", newest_broker_ms=stamp)],
        of_copies([checkpoint("topic_id", "now")]),
        [assigned("t", 1, topic_id=each, is_current=False) for each in past],
        (),
        {"1"},
        is_metadata_whole=True,
        is_metadata_confirmed=is_confirmed,
        metadata_known_ms=end,
    )
    assert found == ({("t", 0, "raw:1")} if expected else set())


#: Copies of one partition without a metadata log: source -> topic id, newest stamp. The leader by capture.json. ->
#: Deleted copies.
IDS = {
    "one id": ({"raw:1": ("A", 1), "raw:2": ("A", 9)}, 1, []),
    "the leader's lives": ({"raw:1": ("A", 1), "raw:2": ("B", 9)}, 1, ["raw:2"]),
    "without a leader, the youngest lives": ({"raw:1": ("A", 1), "raw:2": ("B", 9)}, None, ["raw:1"]),
    "nobody copied the leader's": ({"raw:1": ("A", 1), "raw:2": ("B", 9)}, 7, ["raw:1"]),
    "whatever its id": ({"raw:1": ("A", 9), "raw:2": ("B", 1)}, None, ["raw:2"]),
    "a stamp is younger than none": ({"raw:1": ("B", 1), "raw:2": ("A", None)}, None, ["raw:2"]),
    "text has no id": ({"raw:1": ("A", 1), "text:2": (None, 9)}, 1, []),
    "two old folders": ({"raw:1": ("A", 1), "raw:2": ("B", 9), "raw:3": ("C", 8)}, 1, ["raw:2", "raw:3"]),
}


@pytest.mark.parametrize(("copies", "leader", "expected"), IDS.values(), ids=IDS)
def test_topic_ids_separate_logs_without_a_metadata_log(copies, leader, expected):
    found = deleted_copies(
        [captured(source=source, newest_broker_ms=stamp) for source, (_, stamp) in copies.items()],
        of_copies(
            [checkpoint("topic_id", topic_id, source=source) for source, (topic_id, _) in copies.items() if topic_id]
        ),
        (),
        [] if leader is None else [noted(leader=leader, replicas=[1, 2])],
        (),
        is_metadata_whole=False,
        is_metadata_confirmed=False,
        metadata_known_ms=None,
    )
    assert found == {("t", 0, source) for source in expected}
