"""Each failure of a first connection: which broker, what failed, what to do."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.certificates import self_signed
from tests.support.fake_brokers import brokers_with, filled
from tests.support.receiver import receiving
from tests.support.wire_brokers import served
from tests.support.wire_captures import command
from txnlib.ask import main

JAAS = 'sasl.jaas.config=x.PlainLoginModule required username="auditor" password="{}";\n'
SECRET = "hunter2"


@pytest.fixture
def tls(tmp_path: Path) -> ssl.SSLContext:
    key, certificate = self_signed()
    (tmp_path / "own.pem").write_text(key + certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "own.pem")
    return context


def _said(tmp_path: Path, server: str, properties: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """Exit code and lines of a capture of this server."""
    file = tmp_path / "client.properties"
    file.write_text(properties)
    code = main.main(command(server, tmp_path / "c", "--command-config", str(file)))
    assert not (tmp_path / "c").exists()
    said = capsys.readouterr().err
    assert SECRET not in said
    return code, said.replace(server, "SERVER").splitlines()


@contextmanager
def _closed() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    yield f"127.0.0.1:{port}"


@contextmanager
def _broker(**how: object) -> Iterator[str]:
    with served(brokers_with(orders=filled()), **how) as ports:
        yield f"127.0.0.1:{ports[1]}"


TLS = "Set security.protocol to SSL or SASL_SSL, or choose the port without TLS"
PLAIN = "Set security.protocol to PLAINTEXT or SASL_PLAINTEXT, or choose the port for TLS"
WITH_USER = "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n" + JAAS
FAILURES = {
    "closed port": ("closed", "", "nothing listens on this port. Check the port, and whether the broker runs"),
    "wrong CA": (
        "tls",
        "security.protocol=SSL\n",
        "its certificate is not trusted: self-signed certificate. "
        "Name its CA in ssl.truststore.location, and connect to a host name that the certificate has",
    ),
    "TLS against PLAINTEXT": ("plain", "security.protocol=SSL\n", f"it does not speak TLS on this port. {PLAIN}"),
    "PLAINTEXT against TLS": ("tls", "", f"it does not speak Kafka's protocol without TLS on this port. {TLS}"),
    "wrong mechanism": (
        "user",
        WITH_USER.format(SECRET).replace("=PLAIN\n", "=SCRAM-SHA-512\n"),
        "it does not know users by SCRAM-SHA-512. Set sasl.mechanism to one that it has enabled",
    ),
    "wrong password": (
        "user",
        WITH_USER.format(SECRET),
        "it refuses this user. Check user and password, or the client of the token, in sasl.jaas.config",
    ),
    "no user": (
        "user",
        "",
        "it closes the connection without a user. "
        "Set security.protocol to SASL_SSL or SASL_PLAINTEXT, with sasl.mechanism and sasl.jaas.config",
    ),
    "a user for nobody": (
        "plain",
        WITH_USER.format(SECRET),
        "it knows no users on this port. Set security.protocol to SSL or PLAINTEXT, or choose the port for users",
    ),
}


@pytest.mark.parametrize(("server", "properties", "expected"), FAILURES.values(), ids=FAILURES)
def test_a_failure_has_its_own_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tls: ssl.SSLContext, server: str, properties: str, expected: str
) -> None:
    kinds = {
        "closed": _closed,
        "plain": _broker,
        "tls": lambda: _broker(tls=tls),
        "user": lambda: _broker(password="right"),
    }
    with kinds[server]() as address:
        assert _said(tmp_path, address, properties, capsys) == (2, [f"txn-audit: SERVER: {expected}"])


def test_lines_of_failures_differ() -> None:
    assert len({expected for _, _, expected in FAILURES.values()}) == len(FAILURES)


def test_an_unknown_host_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = _said(tmp_path, "broker.invalid:9092", "", capsys)
    assert (code, lines) == (
        2,
        ["txn-audit: SERVER: its host name is unknown. Check the name, and whether this machine can resolve it"],
    )


@pytest.mark.parametrize(
    "server", ["host", "host:", "host:port", "SSL://host:9092", "host:9092,other", ",", "::1:9092"]
)
def test_a_server_without_port_is_bad_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str], server: str) -> None:
    assert main.main(command(server, tmp_path / "c")) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "--bootstrap-server" in line
    assert "expected host:port" in line


def test_one_server_of_several_is_enough(tmp_path: Path) -> None:
    with _closed() as closed, _broker() as address:
        assert main.main(command(f"{closed},broker.invalid:9092,{address}", tmp_path / "c")) == 0


def test_each_of_several_servers_is_said_to_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with _closed() as closed:
        code, (line,) = _said(tmp_path, f"{closed},broker.invalid:9092", "", capsys)
    assert code == 2
    assert f"{closed}: nothing listens on this port" in line
    assert "broker.invalid:9092: its host name is unknown" in line


def test_a_refused_token_is_not_the_fault_of_a_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with receiving() as server, _broker(password="right") as address:
        server.otherwise = (401, b"")
        properties = (
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
            f"sasl.oauthbearer.token.endpoint.url={server.url}/token\n"
            f'sasl.jaas.config=x required clientId="me" clientSecret="{SECRET}";\n'
        )
        code, (line,) = _said(tmp_path, address, properties, capsys)
    assert code == 2
    assert line.endswith(
        "sasl.oauthbearer.token.endpoint.url: the server refuses a token: HTTP 401. "
        "Check clientId, clientSecret and scope in sasl.jaas.config"
    )
