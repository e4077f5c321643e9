"""Bytes that are no record: cut, too long, damaged, or noise, of every format."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.kafka.test_metadata_records import VECTORS
from tests.core.kafka.test_offset_commit import FIELDS
from tests.core.kafka.test_record_batch import BODY, WRITTEN
from tests.support.log_bytes import (
    encode_offset_commit_key,
    encode_offset_commit_value,
    encode_transaction_log_key,
    encode_transaction_log_value,
    read_records,
)
from tests.support.log_notation import TS, rec
from tests.support.samples import sample
from txnlib.core.kafka.log_dir_files import read_producer_snapshot
from txnlib.core.kafka.metadata_records import read_metadata_record
from txnlib.core.kafka.transaction_log import (
    OffsetCommit,
    OffsetCommitKey,
    UnknownVersionError,
    read_offset_commit_key,
    read_offset_commit_value,
    read_transaction_log_key,
    read_transaction_log_value,
)
from txnlib.core.kafka.wire import CorruptRecordError

REFUSED = (CorruptRecordError, UnknownVersionError)
read_value = partial(read_transaction_log_value, "bar")
PREPARED = rec("PC", 4001, 3, {"a-0", "a-7", "b-1"}, version=0)
TAGGED = rec("O", 4001, 3, {"a-0", "a-7", "b-1"}, next_producer_id=9, client_transaction_version=2)
COMMITS = {
    version: OffsetCommit(version=version, offset=5, metadata=b"mine", commit_timestamp_ms=9) for version in FIELDS
}


def read_written(body: bytes) -> None:
    assert len(read_records(body, len(WRITTEN), 7, TS)) == len(WRITTEN)


#: Format -> its reader, and a whole record.
WHOLE: dict[str, tuple[Callable[[bytes], Any], bytes]] = {
    "key of a transaction": (read_transaction_log_key, encode_transaction_log_key("bär")),
    "transaction v0": (read_value, encode_transaction_log_value(PREPARED)),
    "transaction v0 without partitions": (read_value, encode_transaction_log_value(rec("E", 4001, 3, version=0))),
    "transaction v1": (read_value, encode_transaction_log_value(TAGGED, more_tags={9: b"more"}, topic_tags={1: b"x"})),
    "transaction v1 without partitions": (read_value, encode_transaction_log_value(rec("E", 4001, 3))),
    "key of a commit": (read_offset_commit_key, encode_offset_commit_key(OffsetCommitKey("audit", "orders", 7))),
    **{
        f"commit v{version}": (read_offset_commit_value, encode_offset_commit_value(commit, {0: bytes(16), 300: b"x"}))
        for version, commit in COMMITS.items()
    },
    **{
        name: (read_metadata_record, b"\x01" + content)
        for name, (content, _, (kind, *_)) in VECTORS.items()
        if kind != "USER_SCRAM_CREDENTIAL_RECORD"
    },
    "producer snapshot": (read_producer_snapshot, sample("payments-0.snapshot")),
    "records": (read_written, BODY),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_record_cut_anywhere_or_followed_by_anything_is_corrupt(name):
    read, content = WHOLE[name]
    read(content)
    for damaged in (*(content[:end] for end in range(len(content))), content + b"\0", content + bytes(46)):
        with pytest.raises(CorruptRecordError):
            read(damaged)


@pytest.mark.parametrize("name", [name for name in WHOLE if name.startswith(("transaction", "records"))])
def test_a_record_with_one_wrong_byte_is_read_or_refused_but_nothing_else_happens(name):
    read, content = WHOLE[name]
    for position in range(len(content)):
        for byte in range(256):
            with suppress(*REFUSED):
                read(content[:position] + bytes([byte]) + content[position + 1 :])


READERS = [read_transaction_log_key, read_value, read_offset_commit_key, read_offset_commit_value]


@given(st.binary(max_size=60))
def test_noise_is_read_or_refused_but_nothing_else_happens(noise):
    for read in READERS:
        for version in (b"", b"\0\0", b"\0\1", b"\0\3", b"\0\4"):
            with suppress(*REFUSED):
                read(version + noise)
