"""Brokers in memory on ports of loopback, and a proxy that damages answers."""

import io
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from kafka.protocol.admin.configs import DescribeConfigsRequest, DescribeConfigsResponse
from kafka.protocol.admin.transactions import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kafka.protocol.api_header import RequestHeader
from kafka.protocol.consumer import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest, MetadataResponse
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from tests.support.fake_brokers import FakeBrokers
from txnlib.wire_capture.client import MovedError

KNOWN: dict[int, tuple[Any, Any]] = {
    request.API_KEY: (request, response)
    for request, response in (
        (ApiVersionsRequest, ApiVersionsResponse),
        (MetadataRequest, MetadataResponse),
        (ListOffsetsRequest, ListOffsetsResponse),
        (FetchRequest, FetchResponse),
        (DescribeProducersRequest, DescribeProducersResponse),
        (ListTransactionsRequest, ListTransactionsResponse),
        (DescribeTransactionsRequest, DescribeTransactionsResponse),
        (DescribeConfigsRequest, DescribeConfigsResponse),
        (SaslHandshakeRequest, SaslHandshakeResponse),
        (SaslAuthenticateRequest, SaslAuthenticateResponse),
    )
}
UNKNOWN_MECHANISM, ILLEGAL_STATE, REFUSED_USER = 33, 34, 58
#: Kafka: `socket.request.max.bytes`.
_LARGEST = 100 << 20
_SIZE = struct.Struct(">i")


@contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A port on loopback. `serve` is called in a thread of its own for each connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        open_ones: list[socket.socket] = []

        def handle(connection: socket.socket) -> None:
            with connection, suppress(OSError, EOFError, LookupError):  # as of a question about what there is not
                serve(connection)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    open_ones.append(connection)
                    threading.Thread(target=handle, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield server.getsockname()[1]
        finally:
            with suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            for each in open_ones:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)


def frame_of(connection: socket.socket) -> bytes:
    """The next request or answer, without its size. Raises EOFError at the end, and for what no broker accepts."""
    (size,) = _SIZE.unpack(_exactly(connection, _SIZE.size))
    if not 0 < size <= _LARGEST:
        raise EOFError
    return _exactly(connection, size)


def _exactly(connection: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = connection.recv(count - len(found))
        if not part:
            raise EOFError
        found += part
    return found


@dataclass(frozen=True)
class Served:
    """How brokers in memory are reached. `password`: of every user, by PLAIN. `ports`: what Metadata names, as of
    proxies."""

    fake: FakeBrokers
    tls: ssl.SSLContext | None = None
    password: str | None = None
    ports: dict[int, int] | None = None


@contextmanager
def served(fake: FakeBrokers, **how: Any) -> Iterator[dict[int, int]]:
    """The port of each broker."""
    own: dict[int, int] = {}
    reached, lock = Served(fake, **{"ports": own, **how}), threading.Lock()
    nodes = sorted({log.leader for log in fake.logs.values()})

    def answer(node: int) -> Callable[[socket.socket], None]:
        return lambda connection: _Conversation(reached, node, lock).hold(connection)

    with _all(answer(node) for node in nodes) as found:
        own.update(zip(nodes, found, strict=True))
        yield own


@contextmanager
def _all(each: Iterator[Callable[[socket.socket], None]]) -> Iterator[list[int]]:
    serve = next(each, None)
    if serve is None:
        yield []
        return
    with listening(serve) as port, _all(each) as others:
        yield [port, *others]


class _Conversation:
    def __init__(self, reached: Served, node: int, lock: threading.Lock) -> None:
        self._reached, self._node, self._lock = reached, node, lock
        self._is_known = reached.password is None
        self._is_over = False

    def hold(self, connection: socket.socket) -> None:
        """Answers until the other end closes, or asks for what a broker would close for."""
        if self._reached.tls is not None:
            connection = self._reached.tls.wrap_socket(connection, server_side=True)
        with connection:
            while True:
                content = frame_of(connection)
                with self._lock:
                    said = self._answered(content)
                connection.sendall(said)
                if self._is_over:
                    return

    def _answered(self, content: bytes) -> bytes:
        key, version = struct.unpack_from(">hh", content)
        request_class, response_class = KNOWN[key]
        stream = io.BytesIO(content)
        header = RequestHeader.decode(stream, flexible=request_class.flexible_version_q(version))
        response = _filled(response_class, self._said(request_class[version].decode(stream.read())), version)
        response.with_header(correlation_id=header.correlation_id)
        return bytes(response.encode(header=True, framed=True))

    def _said(self, request: Any) -> Any:
        name, password = request.name.removesuffix("Request"), self._reached.password
        if name == "ApiVersions":
            keys = [
                SimpleNamespace(api_key=k, min_version=0, max_version=known.max_version)
                for k, (known, _) in KNOWN.items()
            ]
            return SimpleNamespace(error_code=0, api_keys=keys)
        if name == "SaslHandshake":
            code = ILLEGAL_STATE if password is None else 0 if request.mechanism == "PLAIN" else UNKNOWN_MECHANISM
            self._is_over = code != 0  # as brokers do, at once
            return SimpleNamespace(error_code=code, mechanisms=["PLAIN"])
        if name == "SaslAuthenticate":
            self._is_known = request.auth_bytes.endswith(f"\0{password}".encode())
            self._is_over = not self._is_known
            return SimpleNamespace(error_code=0 if self._is_known else REFUSED_USER, auth_bytes=b"")
        if not self._is_known:
            raise EOFError
        try:
            said = self._reached.fake.ask(request, self._node)
        except MovedError as error:
            raise EOFError from error
        for broker in said.brokers if name == "Metadata" else ():
            broker.host, broker.port = "127.0.0.1", (self._reached.ports or {}).get(broker.node_id, 1)
        return said


def _filled(kind: Any, said: Any, version: int) -> Any:
    """A message of the client library with what the brokers in memory said, and defaults elsewhere."""
    given = {}
    for name, known in kind.fields.items():
        value = getattr(said, name, None)
        if value is None:
            continue
        if known.is_struct_array():
            value = [_filled(known.data_class, each, version) for each in value]
        elif known.is_struct():
            value = _filled(known.data_class, value, version)
        given[name] = value
    return kind(version=version, **given)


class Proxy:
    """Passes on requests, and answers as `fault` makes them: their number and bytes, from 1 on; None cuts the
    connection."""

    def __init__(self) -> None:
        self.targets: dict[int, int] = {}
        self.fault: Callable[[int, bytes], bytes | None] = lambda number, answer: answer
        self._count = 0
        self._lock = threading.Lock()

    def serve(self, node: int) -> Callable[[socket.socket], None]:
        """What a port in front of a broker does with a connection."""

        def serve(connection: socket.socket) -> None:
            with socket.create_connection(("127.0.0.1", self.targets[node])) as broker:
                threading.Thread(target=self._requests, args=(connection, broker), daemon=True).start()
                while True:
                    content = frame_of(broker)
                    with self._lock:
                        self._count += 1
                        number = self._count
                    said = self.fault(number, _SIZE.pack(len(content)) + content)
                    if said is None:
                        connection.shutdown(socket.SHUT_RDWR)
                        return
                    connection.sendall(said)

        return serve

    @staticmethod
    def _requests(connection: socket.socket, broker: socket.socket) -> None:
        with suppress(OSError):
            while part := connection.recv(1 << 16):
                broker.sendall(part)
        with suppress(OSError):
            broker.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxied(nodes: list[int]) -> Iterator[tuple[Proxy, dict[int, int]]]:
    """A proxy with a port for each broker. Its `targets` are to be filled in."""
    proxy = Proxy()
    with _all(proxy.serve(node) for node in nodes) as ports:
        yield proxy, dict(zip(nodes, ports, strict=True))
