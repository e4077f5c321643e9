"""Requests that no well-behaved client sends, byte by byte.

A broker that does not verify (`transaction.partition.verification.enable=false`) takes a transactional batch of a
transactional id that never added the partition: its coordinator will never write the marker.
"""

import socket
import struct
import time

from tests.support.log_bytes import encode_batch
from txnlib.core.kafka.record_batch import Record

_PRODUCE, _FIND_COORDINATOR, _INIT_PRODUCER_ID = 0, 10, 22
#: Not the leader; the coordinator is loading, is not there yet, is elsewhere; the id is busy: ask again, or ask
#: another.
_RETRIABLE = (3, 5, 6, 14, 15, 16, 51)
_SECONDS = 60


def write_outside_a_transaction(
    bootstrap: str, transactional_id: str, topic: str, partition: int, *, timestamp: int
) -> int:
    """The producer id of a batch that opens a transaction on a partition which its coordinator knows nothing of."""
    _answered(
        bootstrap, _FIND_COORDINATOR, 1, _string(transactional_id) + b"\x01", error_at=4
    )  # makes the topic, the first time
    answer = _answered(
        bootstrap, _INIT_PRODUCER_ID, 0, _string(transactional_id) + struct.pack(">i", 60_000), error_at=4
    )
    producer_id, epoch = struct.unpack_from(">qh", answer, 6)
    batch = encode_batch(
        [Record(0, timestamp, b"key", b"value")], max_timestamp=timestamp, base_timestamp=timestamp,
        producer_id=producer_id, producer_epoch=epoch, base_sequence=0, is_transactional=True,
    )  # fmt: skip
    body = _string(transactional_id) + struct.pack(">hii", -1, 10_000, 1) + _string(topic)
    body += struct.pack(">iii", 1, partition, len(batch)) + batch
    _answered(bootstrap, _PRODUCE, 7, body, error_at=4 + 2 + len(topic) + 4 + 4)
    return int(producer_id)


def _answered(bootstrap: str, key: int, version: int, body: bytes, *, error_at: int) -> bytes:
    """The answer of the first broker that has one."""
    until, error = time.monotonic() + _SECONDS, -1
    while time.monotonic() < until:
        for address in bootstrap.split(","):
            answer = _ask(address, key, version, body)
            (error,) = struct.unpack_from(">h", answer, error_at)
            if error == 0:
                return answer
            assert error in _RETRIABLE, f"request {key} was answered with error {error}"
        time.sleep(0.1)
    raise AssertionError(f"request {key} is still answered with error {error}")


def _ask(address: str, key: int, version: int, body: bytes) -> bytes:
    """The body of the answer to a request with a header of version 1."""
    request = struct.pack(">hhi", key, version, 1) + _string("test") + body
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        (size,) = struct.unpack(">i", _receive(connection, 4))
        return _receive(connection, size)[4:]


def _receive(connection: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        part = connection.recv(count - len(received))
        assert part, "the broker hung up"
        received += part
    return received


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()
