"""Requests that only read, and brokers' answers to them.

The client library connects, authenticates and encodes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from typing import Any, Final

from txnlib.errors import MissingExtraError, UnreadableInputError

#: What may be sent, apart from what a connection needs. None of these changes anything on a broker; FindCoordinator is not among
#: them, because the first one makes the broker create `__transaction_state`.
READ_ONLY: Final = frozenset(
    {"Metadata", "ListOffsets", "Fetch", "DescribeProducers", "ListTransactions", "DescribeTransactions", "DescribeConfigs"}
)
#: Kafka's `Errors`, by code.
OFFSET_OUT_OF_RANGE: Final = 1
REFUSED: Final = frozenset({29, 31, 53})  # TOPIC_, CLUSTER_ and TRANSACTIONAL_ID_AUTHORIZATION_FAILED
#: The leader moved, is starting or is unknown to the broker that was asked: ask for metadata, then ask the leader.
MOVED: Final = frozenset({3, 5, 6, 14, 15, 16, 56, 74, 75, 100, 103})
_TRIES_SECONDS: Final = 10
_PAUSE_SECONDS: Final = 0.5
#: How often a thread that waits for an answer looks whether it should stop, and how long closing waits for the library's thread.
_GLANCE_SECONDS: Final = 0.1
_CLOSE_MS: Final = 300
_MOST_BYTES: Final = 256 << 20


class RefusedError(Exception):
    """A broker does not let this user read."""


class MovedError(Exception):
    """Another broker leads the partition now, or none does for the moment."""


class StoppedError(Exception):
    """Somebody interrupts the capture."""


class Client:
    """A connection to the cluster. Close it, or use it as a context manager.

    `config`: arguments of the client library (`client_properties.client_config`).
    """

    def __init__(self, bootstrap: str, config: Mapping[str, Any], *, seconds: float = 30) -> None:
        try:
            from kafka.errors import KafkaError
            from kafka.net.manager import KafkaConnectionManager
            from kafka.net.selector import NetworkSelector
        except ImportError as error:
            raise MissingExtraError("txn-audit capture", "kafka-python", "capture") from error
        # The library logs at level INFO whom it connects to, and its configuration at DEBUG: secrets stay out of every log.
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        given = {"client_id": "txnlib-capture", "receive_message_max_bytes": _MOST_BYTES, **config}
        servers = [server.strip() for server in bootstrap.split(",") if server.strip()]
        self._failed: type[Exception] = KafkaError
        #: Brokers whose last answer did not come in time.
        self.silent: set[int | None] = set()
        self._stopping = threading.Event()
        self._net = NetworkSelector(**given)
        self._manager = KafkaConnectionManager(self._net, bootstrap_servers=servers, **given)
        self._net.start()
        remedy = "Check the address, the network and --command-config"
        refused = self._manager.run(self._authentication_error)
        if refused is not None:
            self.close()
            remedy = "Check mechanism, user and password in --command-config"
            raise UnreadableInputError(bootstrap, f"a broker answers, but not to this user: {_said(refused)}", remedy) from refused
        try:
            self._manager.bootstrap(timeout_ms=int(seconds * 1000))
        except self._failed as error:
            self.close()
            raise UnreadableInputError(bootstrap, f"no broker answered: {_said(error)}", remedy) from error

    async def _authentication_error(self) -> Exception | None:
        """Why the first broker that answers does not let this user in; None if it does, or if none answers.

        The library's own bootstrap would try again until its time is up, and then say only that it is.
        """
        for broker in self._manager.cluster.bootstrap_brokers():
            connection = self._manager.get_connection(broker.node_id, refresh_metadata_on_err=False)
            try:
                await connection
            except Exception as error:  # of any library that authenticates
                # The broker tells its version before it authenticates anyone.
                if connection.broker_version is not None:
                    return error
            else:
                return None
            finally:
                connection.close()
        return None

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes all connections."""
        self._manager.close()
        self._net.stop(_CLOSE_MS)

    def stop(self) -> None:
        """Makes all threads that wait for an answer or pause raise StoppedError."""
        self._stopping.set()

    def pause(self, seconds: float) -> None:
        """Waits. Raises StoppedError once `stop` was called."""
        if self._stopping.wait(seconds):
            raise StoppedError

    def version_of(self, request: Any) -> int:
        """The newest version of a request that both sides know; -1 if the brokers do not know it."""
        try:
            return int(self._manager.broker_version_data.api_version(request))
        except self._failed:
            return -1

    @property
    def broker_version(self) -> str:
        """The version of the brokers, as far as the versions of their requests tell, such as `3.9`."""
        return ".".join(str(part) for part in self._manager.broker_version)

    @property
    def features(self) -> dict[str, int]:
        """Finalized levels of the cluster's features."""
        from kafka.protocol.metadata import ApiVersionsRequest

        try:
            answer = self._run(ApiVersionsRequest(client_software_name="txnlib", client_software_version="0"), None)
        except self._failed:
            return {}
        return {feature.name: feature.max_version_level for feature in answer.finalized_features or ()}

    def ask(self, request: Any, broker: int | None = None, *, seconds: float = _TRIES_SECONDS) -> Any:
        """The answer of a broker, or of any. Tries again while the connection fails.

        Raises MovedError when time is up, and StoppedError once `stop` was called.
        """
        assert request.name.removesuffix("Request") in READ_ONLY, f"{request.name} is not a request that only reads"
        until = time.monotonic() + seconds
        while True:
            try:
                answer = self._run(request, broker)
            except self._failed as error:
                if time.monotonic() >= until:
                    self.silent.add(broker)
                    raise MovedError(f"broker {'?' if broker is None else broker} does not answer: {_said(error)}") from error
            else:
                self.silent.discard(broker)
                return answer
            self.pause(_PAUSE_SECONDS)

    def _run(self, request: Any, broker: int | None) -> Any:
        self.pause(0)
        answered = threading.Event()
        future = self._manager.call_soon(self._manager.send, request, broker)
        future.add_both(lambda _: answered.set())
        while not answered.wait(_GLANCE_SECONDS):
            self.pause(0)
        if future.exception is not None:
            raise future.exception
        return future.value


def _said(error: Exception) -> str:
    """The kind of error: what a library adds might contain what it was given."""
    return type(error).__name__


def check(code: int, what: str) -> None:
    """Raises what an error code in an answer means: RefusedError, MovedError, or OSError for any other."""
    if code == 0:
        return
    from kafka.errors import for_code

    name = for_code(code).__name__
    if code in REFUSED:
        raise RefusedError(f"{what}: {name}")
    if code in MOVED:
        raise MovedError(f"{what}: {name}")
    raise OSError(f"{what}: {name}")
