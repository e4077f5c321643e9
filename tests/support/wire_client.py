"""How does a transaction get stuck on a real broker? Requests that no well-behaved client sends, byte by byte.

A broker that does not verify (`transaction.partition.verification.enable=false`) takes a transactional batch of a
transactional id that never added the partition: its coordinator will never write the marker.
"""

from __future__ import annotations

import socket
import struct
import time

from tests.support.log_bytes import encode_batch
from txnlib.core.record_batch import Record

_PRODUCE, _INIT_PRODUCER_ID, _FIND_COORDINATOR = 0, 22, 10
_RETRIABLE = (14, 15, 16, 51)  # the coordinator is loading, is not there yet, was elsewhere, or is busy
_SECONDS = 30


def write_outside_a_transaction(bootstrap: str, transactional_id: str, topic: str, partition: int, *, timestamp: int) -> int:
    """The producer id of a batch that opens a transaction on a partition which its coordinator knows nothing of."""
    host, _, port = bootstrap.partition(",")[0].partition(":")
    with socket.create_connection((host, int(port))) as connection:
        producer_id, epoch = _init_producer_id(connection, transactional_id)
        batch = encode_batch(
            [Record(0, timestamp, b"key", b"value")],
            max_timestamp=timestamp,
            base_timestamp=timestamp,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=0,
            is_transactional=True,
        )
        body = _string(transactional_id) + struct.pack(">hii", -1, 10_000, 1) + _string(topic)
        body += struct.pack(">iii", 1, partition, len(batch)) + batch
        answer = _ask(connection, _PRODUCE, 7, body)
        (error,) = struct.unpack_from(">h", answer, 4 + 2 + len(topic) + 4 + 4)
        assert error == 0, f"Produce was answered with error {error}"
        return producer_id


def _init_producer_id(connection: socket.socket, transactional_id: str) -> tuple[int, int]:
    until = time.monotonic() + _SECONDS
    while True:
        _ask(connection, _FIND_COORDINATOR, 1, _string(transactional_id) + b"\x01")  # makes the topic, the first time
        answer = _ask(connection, _INIT_PRODUCER_ID, 0, _string(transactional_id) + struct.pack(">i", 60_000))
        _, error, producer_id, epoch = struct.unpack_from(">ihqh", answer)
        if error == 0:
            return producer_id, epoch
        assert error in _RETRIABLE, f"InitProducerId was answered with error {error}"
        assert time.monotonic() < until, f"InitProducerId is still answered with error {error}"
        time.sleep(0.1)


def _ask(connection: socket.socket, key: int, version: int, body: bytes) -> bytes:
    """The body of the answer to a request with a header of version 1."""
    request = struct.pack(">hhi", key, version, 1) + _string("test") + body
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
