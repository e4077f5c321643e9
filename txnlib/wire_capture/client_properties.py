"""`client.properties` of Kafka's own tools, for the client library.

Secrets stay in memory: no message contains a value.
Kafka: `SslConfigs`, `SaslConfigs`, `JaasContext`.
"""

from __future__ import annotations

import base64
import json
import os
import re
import ssl
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from txnlib.core.kafka.log_dir_files import properties_in
from txnlib.errors import ConfigError, UnreadableInputError

_PROTOCOL: Final = "security.protocol"
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISM: Final = "sasl.mechanism"
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM")
_JAAS: Final = "sasl.jaas.config"
_TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_PEM: Final = "PEM"
_BEGIN: Final = "-----BEGIN"
#: name="value" or name='value' in a JAAS configuration.
_JAAS_OPTION: Final = re.compile(r"""([A-Za-z.]+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;]+)""")
_TOKEN_SECONDS: Final = 30
#: A token is asked for again after this part of its life, as Kafka does (`sasl.login.refresh.window.factor`).
_REFRESH: Final = 0.8
#: What the client library connects with, by Kafka's names; every other property is for something that a capture does
#: not do.
_NUMBERS: Final = {"request.timeout.ms": "request_timeout_ms", "connections.max.idle.ms": "connections_max_idle_ms"}


def read_properties(path: str) -> dict[str, str]:
    """The properties in a file of Java's format. Raises ConfigError if it cannot be read."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise ConfigError(path, "", f"cannot be opened: {error.strerror or error}") from error
    return properties_in(text)


def client_config(properties: Mapping[str, str], path: str = "client.properties") -> dict[str, Any]:
    """The arguments of the client library for these properties. Raises ConfigError, which names the property but no
    value."""
    config: dict[str, Any] = {}
    for name, argument in _NUMBERS.items():
        if name in properties:
            if not properties[name].strip().isdigit():
                raise ConfigError(path, name, "is not a number of milliseconds")
            config[argument] = int(properties[name])
    protocol = _one_of(properties, _PROTOCOL, _PROTOCOLS, "PLAINTEXT", path)
    config["security_protocol"] = protocol
    if protocol.endswith("SSL"):
        config["ssl_context"] = _ssl_context(properties, path)
        config["ssl_check_hostname"] = config["ssl_context"].check_hostname
    if protocol.startswith("SASL"):
        config.update(_sasl(properties, path))
    return config


def _one_of(properties: Mapping[str, str], name: str, known: tuple[str, ...], default: str, path: str) -> str:
    value = properties.get(name, default).strip()
    if value.upper() not in known:
        raise ConfigError(path, name, f"is not one of {', '.join(known)}")
    return value.upper()


def _sasl(properties: Mapping[str, str], path: str) -> dict[str, Any]:
    mechanism = _one_of(properties, _MECHANISM, _MECHANISMS, "GSSAPI", path)
    config: dict[str, Any] = {"sasl_mechanism": mechanism}
    options = {}
    for name, value in _JAAS_OPTION.findall(properties.get(_JAAS, "")):
        is_quoted = value[:1] in ("'", '"')
        options[name] = re.sub(r"\\(.)", r"\1", value[1:-1], flags=re.DOTALL) if is_quoted else value
    if mechanism == "GSSAPI":
        config["sasl_kerberos_service_name"] = properties.get(
            "sasl.kerberos.service.name", options.get("serviceName", "kafka")
        )
    elif mechanism == "OAUTHBEARER":
        config["sasl_oauth_token_provider"] = _token_provider(properties, options, path)
    elif mechanism != "AWS_MSK_IAM":
        for name, argument in {"username": "sasl_plain_username", "password": "sasl_plain_password"}.items():
            if name not in options:
                raise ConfigError(
                    path, _JAAS, f'has no {name}; expected …LoginModule required username="…" password="…";'
                )
            config[argument] = options[name]
    return config


def _ssl_context(properties: Mapping[str, str], path: str) -> ssl.SSLContext:
    trusted = _pem(properties, "ssl.truststore", "ssl.truststore.certificates", path)
    try:
        context = ssl.create_default_context(cadata=trusted)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(path, "ssl.truststore.location", "contains no certificates in PEM") from error
    context.check_hostname = properties.get("ssl.endpoint.identification.algorithm", "https").strip().lower() == "https"
    own = _pem(properties, "ssl.keystore", "ssl.keystore.certificate.chain", path)
    if own is not None:
        key = properties.get("ssl.keystore.key", "")
        _load_own(context, f"{key}\n{own}" if key else own, properties.get("ssl.key.password"), path)
    return context


def _pem(properties: Mapping[str, str], prefix: str, inline: str, path: str) -> str | None:
    """Certificates in PEM: from the property, else from the file that the properties name; None if they name none."""
    if properties.get(inline):
        return properties[inline]
    name = f"{prefix}.location"
    if not properties.get(name):
        return None
    try:
        content = Path(properties[name]).read_bytes()
    except OSError as error:
        raise ConfigError(path, name, f"cannot be opened: {error.strerror or error}") from error
    if properties.get(f"{prefix}.type", "").upper() != _PEM and _BEGIN.encode() not in content:
        remedy = "keytool -importkeystore -deststoretype PKCS12, then openssl pkcs12 -nodes"
        raise ConfigError(
            path,
            name,
            f"is not in PEM, the only form that Python reads: convert it ({remedy}), and set {prefix}.type=PEM",
        )
    return content.decode("ascii", errors="replace")


def _load_own(context: ssl.SSLContext, pem: str, password: str | None, path: str) -> None:
    """The client's own certificate. Python reads it from a file only: one that nobody else can open, and not for
    long."""
    descriptor, name = tempfile.mkstemp(prefix="txnlib-")  # mode 0600
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(pem)
        context.load_cert_chain(name, password=password or "")
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(
            path, "ssl.keystore.location", "has no certificate with its key in PEM, or its password is wrong"
        ) from error
    finally:
        os.unlink(name)


def _token_provider(properties: Mapping[str, str], options: Mapping[str, str], path: str) -> Any:
    """Tokens by OAuth's client credentials, as Kafka's `OAuthBearerLoginCallbackHandler` gets them."""
    from kafka.net.sasl.oauth import AbstractTokenProvider

    url = properties.get(_TOKEN_URL, "")
    names = {"id": ("clientId", "client.id"), "secret": ("clientSecret", "client.secret")}
    given = {
        what: next(
            (options[name] for name in those if name in options),
            properties.get(f"sasl.oauthbearer.client.credentials.client.{what}"),
        )
        for what, those in names.items()
    }
    if not url.startswith(("https://", "http://")):
        raise ConfigError(path, _TOKEN_URL, "is missing, or is not an address of http or https")
    if not all(given.values()):
        raise ConfigError(path, _JAAS, "has no clientId and clientSecret, which OAUTHBEARER needs")
    basic = base64.b64encode(f"{given['id']}:{given['secret']}".encode()).decode()
    form = {"grant_type": "client_credentials"} | ({"scope": options["scope"]} if "scope" in options else {})

    class ClientCredentials(AbstractTokenProvider):  # type: ignore[misc]
        """A token, until most of its life is over."""

        def __init__(self) -> None:
            self._token, self._until = "", 0.0

        def token(self) -> str:
            if time.monotonic() >= self._until:
                asked = urllib.request.Request(
                    url,
                    urllib.parse.urlencode(form).encode(),
                    {"Authorization": f"Basic {basic}", "Accept": "application/json"},
                )
                try:
                    with urllib.request.urlopen(asked, timeout=_TOKEN_SECONDS) as answer:
                        said = json.load(answer)
                    self._token = str(said["access_token"])
                except (OSError, ValueError, LookupError, TypeError) as error:
                    raise UnreadableInputError(f"{path}: {_TOKEN_URL}", *_token_problem(error)) from error
                self._until = time.monotonic() + _REFRESH * float(said.get("expires_in", 0))
            return self._token

    return ClientCredentials()


def _token_problem(error: Exception) -> tuple[str, str]:
    """Why there is no token, and what to do. No answer is repeated: it might contain a secret."""
    if isinstance(error, urllib.error.HTTPError):
        return f"the server refuses a token: HTTP {error.code}", f"Check clientId, clientSecret and scope in {_JAAS}"
    if isinstance(error, OSError):
        reason = getattr(error, "reason", error)
        return f"the server cannot be reached: {type(reason).__name__}", "Check the address and the network"
    return "what the server answers has no access_token", "Check the address"
