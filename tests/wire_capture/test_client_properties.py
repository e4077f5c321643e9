"""client.properties become arguments of the client library, and stay secret."""

from __future__ import annotations

import json
import ssl
from pathlib import Path

import pytest

from tests.support.receiver import receiving
from txnlib.errors import ConfigError
from txnlib.wire_capture.client_properties import client_config, read_properties

SECRET = "hunter2"
LOGIN = "org.apache.kafka.common.security.{}LoginModule required"


def test_the_file_is_read_as_java_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "# a comment\n! another\n\n  security.protocol = SASL_SSL\nsasl.mechanism:PLAIN\n"
        'sasl.jaas.config=a.b.C required \\\n    username="al\\u0069ce" \\\n    password="x";\n'
        "a\\ b c\nempty=\nends\\\\=with\\\\\n"
    )
    assert read_properties(str(file)) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": 'a.b.C required username="alice" password="x";',
        "a b": "c",
        "empty": "",
        "ends\\": "with\\",
    }


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.properties: cannot be opened"):
        read_properties(str(tmp_path / "absent.properties"))


def test_nothing_is_needed_for_plaintext() -> None:
    assert client_config({}) == {"security_protocol": "PLAINTEXT"}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_user_and_password_come_from_the_jaas_configuration(mechanism: str) -> None:
    jaas = LOGIN.format("plain.Plain") + ' username="al\\"ice" password=\'p="; x\';'
    config = client_config(
        {"security.protocol": "sasl_plaintext", "sasl.mechanism": mechanism, "sasl.jaas.config": jaas}
    )
    assert config == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": 'al"ice',
        "sasl_plain_password": 'p="; x',
    }


def test_kerberos_and_msk_need_no_password() -> None:
    kerberos = client_config({"security.protocol": "SASL_PLAINTEXT", "sasl.kerberos.service.name": "broker"})
    assert kerberos["sasl_mechanism"] == "GSSAPI"
    assert kerberos["sasl_kerberos_service_name"] == "broker"
    msk = client_config({"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"})
    assert msk["sasl_mechanism"] == "AWS_MSK_IAM"
    assert msk["ssl_context"].check_hostname


def test_host_names_are_checked_unless_the_algorithm_is_empty() -> None:
    config = client_config({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""})
    assert config["ssl_check_hostname"] is False
    assert config["ssl_context"].verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("properties", "key"),
    [
        ({"security.protocol": SECRET}, "security.protocol"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": SECRET}, "sasl.mechanism"),
        (
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": f'x required password="{SECRET}";',
            },
            "sasl.jaas.config",
        ),
        ({"security.protocol": "SSL", "ssl.truststore.certificates": SECRET}, "ssl.truststore.location"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/nowhere"}, "ssl.truststore.location"),
        (
            {"security.protocol": "SSL", "ssl.keystore.certificate.chain": SECRET, "ssl.keystore.key": SECRET},
            "ssl.keystore.location",
        ),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}, "sasl.oauthbearer.token.endpoint.url"),
        ({"request.timeout.ms": SECRET}, "request.timeout.ms"),
    ],
)
def test_a_message_names_the_property_and_no_value(properties: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as raised:
        client_config(properties, "c.properties")
    assert str(raised.value).startswith(f"c.properties: {key}: ")
    assert SECRET not in str(raised.value)


def test_a_java_keystore_is_refused_with_the_way_to_convert_it(tmp_path: Path) -> None:
    store = tmp_path / "trust.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed")
    with pytest.raises(ConfigError, match="keytool -importkeystore"):
        client_config({"security.protocol": "SSL", "ssl.truststore.location": str(store)})


def test_a_token_is_asked_for_once_and_again_when_it_is_old() -> None:
    with receiving() as server:
        for token, seconds in (("t1", 0), ("t2", 3_600)):
            server.answers.append((200, json.dumps({"access_token": token, "expires_in": seconds}).encode()))
        jaas = LOGIN.format("oauthbearer.OAuthBearer") + f' clientId="me" clientSecret="{SECRET}" scope="read";'
        provider = client_config(
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.jaas.config": jaas,
                "sasl.oauthbearer.token.endpoint.url": f"{server.url}/token",
            }
        )["sasl_oauth_token_provider"]
        assert [provider.token() for _ in range(3)] == ["t1", "t2", "t2"]
    _, _, headers, body = server.requests[0]
    assert (headers["Authorization"], body) == ("Basic bWU6aHVudGVyMg==", b"grant_type=client_credentials&scope=read")
