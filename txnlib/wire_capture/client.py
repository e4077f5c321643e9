"""Requests that only read, and brokers' answers to them.

The client library connects, authenticates and encodes.
"""

from __future__ import annotations

import logging
import re
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from txnlib.errors import MissingExtraError, UnreadableInputError, UsageError

_PLAIN: Final = "Set security.protocol to PLAINTEXT or SASL_PLAINTEXT, or choose the port for TLS"
_TLS: Final = "Set security.protocol to SSL or SASL_SSL, or choose the port without TLS"
_USER: Final = "Set security.protocol to SASL_SSL or SASL_PLAINTEXT, with sasl.mechanism and sasl.jaas.config"
_NO_USER: Final = "Set security.protocol to SSL or PLAINTEXT, or choose the port for users"
_CREDENTIALS: Final = "Check user and password, or the client of the token, in sasl.jaas.config"
_CERTIFICATE: Final = "Check ssl.keystore.location: it may want a certificate"
_NOT_PLAIN: Final = "it does not speak Kafka's protocol without TLS on this port", _TLS
SILENT: Final = "it does not answer in time", "Check the address, the network and firewalls"
#: By what the library's errors contain.
_NETWORK: Final = {
    "ECONNREFUSED": ("nothing listens on this port", "Check the port, and whether the broker runs"),
    "UNREACH": ("its host cannot be reached", "Check the address, the network and firewalls"),
    "DNS": ("its host name is unknown", "Check the name, and whether this machine can resolve it"),
    "timed out": SILENT,
}


def meaning(error: BaseException, config: Mapping[str, Any], *, is_broker: bool | None) -> tuple[str, str]:
    """What failed, and what to do, in words.

    `config`: arguments of the client library. `is_broker`: whether the other end had said on this connection that it
    speaks Kafka's protocol; None if the same settings have worked before, so that a closed connection says nothing
    about them.
    """
    found = next((said for part, said in _NETWORK.items() if part in str(error)), None)
    other = f"the connection fails: {type(error).__name__}", "Check the address, the network and --command-config"
    return found or _of_tls(error, config) or _of_answer(error, config) or _of_end(error, config, is_broker) or other


def _of_tls(error: BaseException, config: Mapping[str, Any]) -> tuple[str, str] | None:
    for each in _chain(error):
        if isinstance(each, ssl.SSLCertVerificationError):
            remedy = "Name its CA in ssl.truststore.location, and connect to a host name that the certificate has"
            return f"its certificate is not trusted: {each.verify_message}", remedy
        if isinstance(each, ssl.SSLError) and "ALERT" in (each.reason or ""):
            return f"it refuses the TLS of this client: {each.reason}", _CERTIFICATE
    return (
        ("it does not speak TLS on this port", _PLAIN)
        if _has_tls(config) and "Handshake failed" in str(error)
        else None
    )


def _of_answer(error: BaseException, config: Mapping[str, Any]) -> tuple[str, str] | None:
    from kafka import errors

    mechanism = (
        f"it does not know users by {config.get('sasl_mechanism')}",
        "Set sasl.mechanism to one that it has enabled",
    )
    too_old = (
        "it does not know the requests of a capture",
        "Connect to a broker, not to a controller, of version 2.8 or newer",
    )
    kinds = {
        errors.UnsupportedSaslMechanismError: mechanism,
        errors.IllegalSaslStateError: ("it knows no users on this port", _NO_USER),
        errors.SaslAuthenticationFailedError: ("it refuses this user", _CREDENTIALS),
        errors.IncompatibleBrokerVersion: too_old,
        errors.KafkaProtocolError: _NOT_PLAIN,
        errors.KafkaTimeoutError: SILENT,
        errors.RequestTimedOutError: SILENT,
    }
    return next((said for kind, said in kinds.items() if isinstance(error, kind)), None)


def _of_end(error: BaseException, config: Mapping[str, Any], is_broker: bool | None) -> tuple[str, str] | None:
    """Why the other end closed a connection, and what to do; None if it did not. A broker may answer and close at once:
    then the library sees only the end."""
    from kafka import errors

    if is_broker is None or not isinstance(error, errors.KafkaConnectionError):
        return None
    if not is_broker:
        return ("it closes the connection after TLS has begun", _CERTIFICATE) if _has_tls(config) else _NOT_PLAIN
    if config.get("security_protocol", "").startswith("SASL"):
        return "it refuses this user", _CREDENTIALS
    return "it closes the connection without a user", _USER


def _has_tls(config: Mapping[str, Any]) -> bool:
    return str(config.get("security_protocol", "")).endswith("SSL")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, the errors in its arguments, and its causes."""
    found: BaseException | None = error
    while found is not None:
        yield found
        yield from (each for each in found.args if isinstance(each, BaseException))
        found = found.__cause__ or found.__context__


# ---- Requests


#: What may be sent, apart from what a connection needs. None of these changes anything on a broker; FindCoordinator is
#: not among them, because the first one makes the broker create `__transaction_state`.
READ_ONLY: Final = frozenset(
    {
        "Metadata",
        "ListOffsets",
        "Fetch",
        "DescribeProducers",
        "ListTransactions",
        "DescribeTransactions",
        "DescribeConfigs",
    }
)
#: Kafka's `Errors`, by code.
OFFSET_OUT_OF_RANGE: Final = 1
REFUSED: Final = frozenset({29, 31, 53})  # TOPIC_, CLUSTER_ and TRANSACTIONAL_ID_AUTHORIZATION_FAILED
#: The leader moved, is starting or is unknown to the broker that was asked: ask for metadata, then ask the leader.
MOVED: Final = frozenset({3, 5, 6, 14, 15, 16, 56, 74, 75, 100, 103})
#: How long a first connection may take, so that a wrong address is reported within 5 s, all other work included. Kafka:
#: `socket.connection.setup.timeout.ms`, 10 s.
_CONNECT_SECONDS: Final = 4
_TRIES_SECONDS: Final = 10
_OPTIONAL_SECONDS: Final = 5
_SILENT_SECONDS: Final = 60
#: How long to wait in vain for all brokers together. After that, a broker that has never answered gets one second,
#: once. So the time is bounded if a cluster names endless brokers, or if a firewall hides most of them.
_VAIN_SECONDS: Final = 300
_LAST_SECONDS: Final = 1
_PAUSE_SECONDS: Final = 0.5
#: How often a thread that waits for an answer looks whether it should stop, and how long closing waits for the
#: library's thread.
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

    def __init__(self, bootstrap: str, config: Mapping[str, Any]) -> None:
        servers = _servers(bootstrap)
        try:
            from kafka.errors import KafkaError
            from kafka.net.manager import KafkaConnectionManager
            from kafka.net.selector import NetworkSelector
        except ImportError as error:
            raise MissingExtraError("txn-audit capture", "kafka-python", "capture") from error
        # The library logs at level INFO whom it connects to, and its configuration at DEBUG: secrets stay out of every
        # log.
        logging.getLogger("kafka").setLevel(logging.CRITICAL)
        given = {"client_id": "txnlib-capture", "receive_message_max_bytes": _MOST_BYTES, **config}
        self._config = given
        #: The errors that the library raises, and those that a provider of tokens raises.
        self._failed = (KafkaError, UnreadableInputError)
        #: Broker -> when it last failed to answer in time; and the broker that answered last.
        self._given_up: dict[int, float] = {}
        self._answered_last: int | None = None
        #: The brokers that ever answered, those that are not asked any more, and for how long brokers were waited for
        #: in vain.
        self._answered: set[int] = set()
        self.lost: set[int] = set()
        self._vain_seconds = 0.0
        self._stopping = threading.Event()
        if "sasl_oauth_token_provider" in config:
            config["sasl_oauth_token_provider"].token()  # if it fails, no broker is to blame
        self._net = NetworkSelector(**given)
        self._manager = _with_last_words(KafkaConnectionManager(self._net, bootstrap_servers=servers, **given))
        self._net.start()
        try:
            first = self._first_that_answers()
            self._net.run(self._manager.close)
            # The library would come back to those that do not answer, and wait for them.
            self._manager = KafkaConnectionManager(self._net, bootstrap_servers=[first], **given)
            self._manager.bootstrap(timeout_ms=_CONNECT_SECONDS * 1000)
        except self._failed as error:
            self.close()
            if isinstance(error, UnreadableInputError):
                raise
            raise UnreadableInputError(bootstrap, *meaning(error, given, is_broker=None)) from error

    def _first_that_answers(self) -> str:
        """The first server that answers this user. Raises UnreadableInputError, which says of each why it does not."""
        brokers = {broker.node_id: _address(broker) for broker in self._manager.cluster.bootstrap_brokers()}
        changed = threading.Event()
        tries = {address: self._manager.call_soon(self._refusal, node) for node, address in brokers.items()}
        for future in tries.values():
            future.add_both(lambda _: changed.set())
        until = time.monotonic() + _CONNECT_SECONDS
        while time.monotonic() < until and not all(future.is_done for future in tries.values()):
            changed.wait(_GLANCE_SECONDS)
            changed.clear()
            if any(future.is_done and future.value is None for future in tries.values()):
                break
        failed: dict[tuple[str, str], list[str]] = {}
        for address, future in sorted(tries.items()):
            if future.is_done and future.value is None:
                return address
            failed.setdefault(future.value or SILENT, []).append(address)
        # One sentence for each kind of failure; the last remedy is that of the error.
        *others, (path, problem, remedy) = ((", ".join(some), *what) for what, some in failed.items())
        before = "".join(f"{UnreadableInputError(*other).says()}. " for other in others)
        raise UnreadableInputError(f"{before}{path}", problem, remedy)

    async def _refusal(self, node: str) -> tuple[str, str] | None:
        """Why a server does not answer this user, in words; None if it does.

        The library's own bootstrap would try again until its time is up, and then say only that it is.
        """
        from kafka.protocol.metadata import MetadataRequest

        connection = self._manager.get_connection(node, refresh_metadata_on_err=False)
        try:
            await connection
            await connection.send_request(MetadataRequest(topics=[], allow_auto_topic_creation=False, min_version=1))
        except Exception as error:  # of any library that authenticates
            # A broker tells its version before it authenticates anyone.
            return meaning(error, self._config, is_broker=connection.broker_version is not None)
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

    @property
    def silent(self) -> set[int]:
        """Brokers that are not asked now: they did not answer in the last minute, or are given up for good."""
        now = time.monotonic()
        return self.lost | {broker for broker, at in self._given_up.items() if now - at < _SILENT_SECONDS}

    def ask(self, request: Any, broker: int, *, is_optional: bool = False) -> Any:
        """The answer of a broker. Tries again while the connection fails.

        `is_optional`: the capture is whole without this answer. Then the broker has less time to answer, and other
        requests to it are still sent if it does not. Raises MovedError when time is up, and StoppedError once `stop`
        was called.
        """
        assert request.name.removesuffix("Request") in READ_ONLY, f"{request.name} is not a request that only reads"
        if broker in self.silent:
            raise MovedError(f"{self._name(broker)} did not answer before")
        is_last = self._vain_seconds >= _VAIN_SECONDS and broker not in self._answered
        seconds = _LAST_SECONDS if is_last else _OPTIONAL_SECONDS if is_optional else _TRIES_SECONDS
        began = time.monotonic()
        while True:
            try:
                until = began + seconds if is_last else None
                answer = self._run(request, broker, seconds * 1000 if is_optional else None, until)
            except self._failed as error:
                if is_last or time.monotonic() >= began + seconds:
                    if is_last:
                        self.lost.add(broker)
                    elif not is_optional:
                        self._given_up[broker] = time.monotonic()
                    self._vain_seconds += time.monotonic() - began
                    problem, remedy = meaning(error, self._config, is_broker=None)
                    raise MovedError(f"{self._name(broker)} does not answer: {problem}. {remedy}") from error
            else:
                self._answered_last = broker
                self._answered.add(broker)
                return answer
            self.pause(_PAUSE_SECONDS)

    def ask_any(self, request: Any, *, is_optional: bool = False) -> tuple[Any, int]:
        """The answer of the first broker that gives one, and who it is. Raises as `ask`."""
        known = sorted(
            (broker.node_id for broker in self._manager.cluster.brokers()),
            key=lambda node: (node != self._answered_last, node),
        )
        failed = MovedError("no broker is known")
        for node in known:
            try:
                return self.ask(request, node, is_optional=is_optional), node
            except MovedError as error:
                failed = error
        raise failed

    def _name(self, broker: int) -> str:
        known = self._manager.cluster.broker_metadata(broker)
        return f"broker {broker}" + (f" ({_address(known)})" if known else "")

    def _run(self, request: Any, broker: int | None, timeout_ms: int | None = None, until: float | None = None) -> Any:
        """The answer. `until`: on the monotonic clock, when not to wait any more, whatever the library still tries."""
        from kafka.errors import KafkaTimeoutError

        self.pause(0)
        answered = threading.Event()
        future = self._manager.call_soon(self._manager.send, request, broker, timeout_ms)
        future.add_both(lambda _: answered.set())
        while not answered.wait(_GLANCE_SECONDS):
            self.pause(0)
            if until is not None and time.monotonic() > until:
                raise KafkaTimeoutError
        if future.exception is not None:
            raise future.exception
        return future.value


def _with_last_words(manager: Any) -> Any:
    """The manager, which then reads what a broker says just before it closes a connection. The library drops it."""
    build = manager._build_transport

    async def built(*given: Any, **named: Any) -> Any:
        transport = await build(*given, **named)
        receive = transport._sock_recv

        def received() -> tuple[bytes, Exception | None]:
            data, error = receive()
            return (data, None) if data else (data, error)  # the end of the connection is there again at the next call

        transport._sock_recv = received
        return transport

    manager._build_transport = built
    return manager


def _servers(bootstrap: str) -> list[str]:
    """The servers in a list. Raises UsageError if one has no port."""
    servers = [server.strip() for server in bootstrap.split(",") if server.strip()]
    for server in servers:
        if re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^]\[:/\s]+):[0-9]{1,5}", server) is None:
            raise UsageError(
                f"--bootstrap-server {server}: expected host:port, such as {server.partition(':')[0]}:9092"
            )
    if not servers:
        raise UsageError("--bootstrap-server: expected host:port")
    return servers


def _address(broker: Any) -> str:
    return f"[{broker.host}]:{broker.port}" if ":" in broker.host else f"{broker.host}:{broker.port}"


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Raises MovedError for an answer that makes no sense, as a damaged one may: ask for it again."""
    try:
        yield
    except (TypeError, AttributeError, ValueError, LookupError) as error:
        raise MovedError(f"{what}: the answer is damaged ({type(error).__name__})") from error


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
