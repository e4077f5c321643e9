"""Why a broker cannot be asked, and what to do about it.

The client library says so in its log, or in the text of its errors. No sentence here repeats what a broker or a library said of
a user: that might contain a secret.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping
from typing import Any, Final

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

    `config`: arguments of the client library. `is_broker`: whether the other end had said on this connection that it speaks
    Kafka's protocol; None if the same settings have worked before, so that a closed connection says nothing about them.
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
    return ("it does not speak TLS on this port", _PLAIN) if _has_tls(config) and "Handshake failed" in str(error) else None


def _of_answer(error: BaseException, config: Mapping[str, Any]) -> tuple[str, str] | None:
    from kafka import errors

    mechanism = f"it does not know users by {config.get('sasl_mechanism')}", "Set sasl.mechanism to one that it has enabled"
    too_old = "it does not know the requests of a capture", "Connect to a broker, not to a controller, of version 2.8 or newer"
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
    """A connection that the other end closed. A broker may answer and close at once: the library sees only the latter."""
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
    """An error, what it was raised for, and what it contains."""
    found: BaseException | None = error
    while found is not None:
        yield found
        yield from (each for each in found.args if isinstance(each, BaseException))
        found = found.__cause__ or found.__context__
