"""Offset commits in `__consumer_offsets`, by their bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.log_bytes import encode_offset_commit_key, encode_offset_commit_value
from txnlib.core.kafka.transaction_log import (
    OffsetCommit,
    OffsetCommitKey,
    read_offset_commit_key,
    read_offset_commit_value,
)
from txnlib.core.kafka.wire import CorruptRecordError

int32 = st.integers(-(2**31), 2**31 - 1)
some32, some64 = (st.none() | st.integers(0, 2**bits - 1) for bits in (31, 63))
names = st.text(st.characters(codec="utf-8"), max_size=20)
#: version -> the fields that only some versions have.
FIELDS = {0: {}, 1: {"expire_timestamp_ms": some64}, 2: {}, 3: {"leader_epoch": some32}, 4: {"leader_epoch": some32}}
keys = st.builds(OffsetCommitKey, names, names, int32)
commits = st.one_of(
    st.builds(
        OffsetCommit,
        version=st.just(version),
        offset=some64,
        metadata=st.binary(max_size=200),  # its length takes two bytes from 127 on
        commit_timestamp_ms=some64,
        **fields,
    )
    for version, fields in FIELDS.items()
)
tags = st.dictionaries(st.integers(0, 300), st.binary(max_size=20), max_size=3)

#: What is in the value, as real brokers wrote it -> its bytes, and the commit they hold.
WORKED = {
    "3.9.1": (
        "0003 0000000000000030 ffffffff 0000 000001a1fcd8bf0f",
        OffsetCommit(version=3, offset=48, metadata=b"", commit_timestamp_ms=0x01A1FCD8BF0F),
    ),
    "4.1.1": (
        "0004 0000000000000048 ffffffff 01 000001a1fcf98e9d 00",
        OffsetCommit(version=4, offset=72, metadata=b"", commit_timestamp_ms=0x01A1FCF98E9D),
    ),
}


@pytest.mark.parametrize("broker", WORKED)
def test_a_value_of_a_real_broker_is_read_and_written_so(broker: str) -> None:
    text, commit = WORKED[broker]
    value = bytes.fromhex(text.replace(" ", ""))
    assert read_offset_commit_value(value) == commit
    assert encode_offset_commit_value(commit) == value


def test_a_key_of_a_real_broker_is_read_and_written_so() -> None:
    key = b"\x00\x01\x00\x07group-3\x00\tca.events\x00\x00\x00\x02"
    assert read_offset_commit_key(key) == OffsetCommitKey("group-3", "ca.events", 2)
    assert encode_offset_commit_key(OffsetCommitKey("group-3", "ca.events", 2)) == key


@given(keys, st.sampled_from([0, 1]), commits, tags)
def test_what_is_written_is_read(
    key: OffsetCommitKey, version: int, commit: OffsetCommit, tagged: dict[int, bytes]
) -> None:
    assert read_offset_commit_key(encode_offset_commit_key(key, version)) == key
    assert read_offset_commit_value(encode_offset_commit_value(commit, tagged)) == commit


@pytest.mark.parametrize("version", [-1, 2, 3, 8, 2**15 - 1])
def test_a_record_of_another_kind_is_no_commit_and_no_fault(version: int) -> None:
    assert read_offset_commit_key(encode_offset_commit_key(OffsetCommitKey("g", "t", 0), version)) is None


@pytest.mark.parametrize("version", [-1, 5, 2**15 - 1])
def test_a_value_of_an_unknown_version_is_not_guessed(version: int) -> None:
    with pytest.raises(CorruptRecordError, match=f"byte 0: offset commit value of version {version} is not known"):
        read_offset_commit_value(version.to_bytes(2, "big", signed=True) + bytes(40))


@pytest.mark.parametrize(("version", "empty", "null"), [(3, b"\0\0", b"\xff\xff"), (4, b"\1", b"\0")])
def test_metadata_that_is_null_is_corrupt_because_brokers_never_write_it(
    version: int, empty: bytes, null: bytes
) -> None:
    commit = OffsetCommit(version=version, offset=5, metadata=b"", commit_timestamp_ms=9)
    before, after = encode_offset_commit_value(commit)[:14], encode_offset_commit_value(commit)[14 + len(empty) :]
    assert read_offset_commit_value(before + empty + after) == commit
    with pytest.raises(CorruptRecordError, match="-1 bytes are promised"):
        read_offset_commit_value(before + null + after)
