"""The files that are read for each table."""

from __future__ import annotations

from itertools import product

import pytest

from txnlib.core.kafka.constants import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from txnlib.readers.capture import CaptureFile, FileKind
from txnlib.readers.table_readers import ONLY_IN, READERS, may_hold

TABLES = sorted({table for table, _ in READERS})
TOPICS = (TRANSACTION_STATE_TOPIC, GROUP_METADATA_TOPIC, "orders", None)


@pytest.mark.parametrize(("table", "kind", "topic"), list(product(TABLES, FileKind, TOPICS)))
def test_segments_are_read_for_the_tables_of_their_topic_and_text_for_all_since_only_it_tells_its_topics(table, kind, topic):
    expected = (table, kind) in READERS
    if kind is FileKind.SEGMENT and table in ONLY_IN:
        expected = {"transaction_log": TRANSACTION_STATE_TOPIC, "committed_offsets": GROUP_METADATA_TOPIC}[table] == topic
    assert may_hold(table, CaptureFile("a", kind, "raw", 1, topic, 0)) == expected
