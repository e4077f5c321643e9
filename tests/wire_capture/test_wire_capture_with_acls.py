"""Captures by users with passwords, over TLS, who may not read everything."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.support import kafka
from tests.support.certificates import self_signed
from tests.support.wire_captures import command
from txnlib.ask import main

pytestmark = pytest.mark.slow
PASSWORDS = {"admin": "admin-s3cret", "auditor": "auditor-s3cret", "guest": "guest-s3cret"}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@dataclass(frozen=True)
class Secured:
    """A cluster with one open transaction, and the client.properties of each user."""

    bootstrap: str
    properties: dict[str, Path]
    #: The controller's port.
    without_tls: str = ""


@pytest.fixture(scope="module", params=["3.7.2", "3.9.2", "4.0.1", None, "4.2.0", "4.3.1"])
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    key, certificate = self_signed()
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": _one_line(key),
        "ssl.keystore.certificate.chain": _one_line(certificate),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": _one_line(certificate),
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": (
            f'{PLAIN} username="admin" password="{PASSWORDS["admin"]}" {users};'
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
        "transaction.state.log.num.partitions": "2",
    }
    authority = folder / "ca.pem"
    authority.write_text(certificate)
    with kafka.running(folder / "cluster", protocol="SASL_SSL", version=request.param, **settings) as cluster:
        login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "admin"}
        login |= {
            "bootstrap.servers": cluster.bootstrap,
            "sasl.password": PASSWORDS["admin"],
            "ssl.ca.location": str(authority),
        }
        admin = AdminClient(login)
        for created in admin.create_topics([NewTopic("orders", 1, 1), NewTopic("hidden", 1, 1)]).values():
            created.result(30)
        everything = [("auditor", ResourceType.TOPIC, "*", each) for each in (AclOperation.READ, AclOperation.DESCRIBE)]
        everything.append(("auditor", ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE_CONFIGS))
        everything.append(("auditor", ResourceType.TRANSACTIONAL_ID, "*", AclOperation.DESCRIBE))
        only_orders = [
            ("guest", ResourceType.TOPIC, "orders", each) for each in (AclOperation.READ, AclOperation.DESCRIBE)
        ]
        bindings = [
            AclBinding(kind, name, ResourcePatternType.LITERAL, f"User:{user}", "*", operation, AclPermissionType.ALLOW)
            for user, kind, name, operation in everything + only_orders
        ]
        for made in admin.create_acls(bindings).values():
            made.result(30)
        producer = Producer({**login, "transactional.id": "open-one"})
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.produce("orders", b"value")
        assert producer.flush(60) == 0
        settings_written = (cluster.nodes[1] / "server.properties").read_text()
        (controller,) = re.findall(r"^controller\.quorum\.voters=1@(.*)$", settings_written, re.MULTILINE)
        users_of = {user: _properties(folder, user, authority) for user in ("auditor", "guest", "nobody")}
        yield Secured(cluster.bootstrap, users_of, controller)


def _one_line(pem: str) -> str:
    return pem.strip().replace("\n", "\\n")


def _properties(folder: Path, user: str, authority: Path) -> Path:
    path = folder / f"{user}.properties"
    password = PASSWORDS.get(user, "wr0ng-s3cret")
    path.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nssl.truststore.type=PEM\n"
        f'ssl.truststore.location={authority}\nsasl.jaas.config={PLAIN} username="{user}" password="{password}";\n'
    )
    return path


def _capture(secured: Secured, user: str, output: Path, *more: str) -> int:
    login = ["--command-config", str(secured.properties[user])]
    return main.main(command(secured.bootstrap, output, *login, *more))


def test_an_auditor_captures_everything(secured: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = _capture(secured, "auditor", tmp_path / "c", "--format", "json")
    printed = capsys.readouterr()
    assert (code, "Needed" in printed.err) == (0, False), printed.err
    rows = {(row["topic"], row["partition"]): row["captured"] for row in json.loads(printed.out)}
    assert rows == {
        ("__transaction_state", 0): "YES",
        ("__transaction_state", 1): "YES",
        ("hidden", 0): "NOTHING_OPEN",
        ("orders", 0): "YES",
    }
    notes = json.loads((tmp_path / "c" / "capture.json").read_text())
    assert notes["coordinator_partitions"] == 2
    assert notes["transaction_max_timeout_ms"] == 900_000
    described = [
        json.loads(line) for line in (tmp_path / "c" / "1" / "describe-transactions.jsonl").read_text().splitlines()
    ]
    assert [(row["transactional_id"], row["state"], row["partitions"]) for row in described] == [
        ("open-one", "Ongoing", ["orders-0"])
    ]


def test_a_guest_is_told_what_is_needed_and_gets_the_rest(
    secured: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = _capture(secured, "guest", tmp_path / "c", "--format", "json")
    printed = capsys.readouterr()
    assert printed.out, printed.err
    assert [row["topic"] for row in json.loads(printed.out)] == ["orders"]
    assert code == 1
    assert "may not describe __transaction_state" in printed.err
    assert "every open transaction will be UNKNOWN. Needed: the operations DESCRIBE and READ on it" in printed.err
    assert "DESCRIBE_CONFIGS on the cluster" in printed.err
    assert "the operation DESCRIBE on all transactional ids" in printed.err
    assert "call it again" not in printed.err
    assert "coordinator_partitions" not in json.loads((tmp_path / "c" / "capture.json").read_text())


def test_a_wrong_password_is_a_clear_error(
    secured: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _capture(secured, "nobody", tmp_path / "c") == 2
    remedy = "Check user and password, or the client of the token, in sasl.jaas.config"
    assert capsys.readouterr().err == f"txn-audit: {secured.bootstrap}: it refuses this user. {remedy}\n"


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        ("SASL_SSL", "SASL_PLAINTEXT", "it does not speak Kafka's protocol without TLS on this port"),
        ("SASL_SSL", "PLAINTEXT", "it does not speak Kafka's protocol without TLS on this port"),
        ("SASL_SSL", "SSL", "it closes the connection without a user"),
        ("=PLAIN\n", "=SCRAM-SHA-256\n", "it does not know users by SCRAM-SHA-256"),
        ("ssl.truststore", "unused", "its certificate is not trusted: self-signed certificate"),
    ],
)
def test_wrong_settings_are_named(
    secured: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str], was: str, now: str, said: str
) -> None:
    changed = tmp_path / "client.properties"
    changed.write_text(secured.properties["auditor"].read_text().replace(was, now))
    wrong = Secured(secured.bootstrap, {"auditor": changed})
    assert _capture(wrong, "auditor", tmp_path / "c") == 2
    assert capsys.readouterr().err.startswith(f"txn-audit: {secured.bootstrap}: {said}. ")


def test_tls_against_a_port_without_is_named(
    secured: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _capture(Secured(secured.without_tls, secured.properties), "auditor", tmp_path / "c") == 2
    assert capsys.readouterr().err.startswith(f"txn-audit: {secured.without_tls}: it does not speak TLS on this port. ")


def test_no_password_is_written_or_printed(
    secured: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for user in ("auditor", "guest"):
        _capture(secured, user, tmp_path / user)
    printed = capsys.readouterr()
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"open-one" in written
    assert b"s3cret" not in written + (printed.out + printed.err).encode()
