"""Versions of brokers, as operators and Confluent's tools write them."""

import pytest

from txnlib.core.kafka.constants import is_confluent, is_from


@pytest.mark.parametrize(
    ("version", "kafka", "following"),
    [
        ("3.9.1", (3, 9), (3, 10)),
        ("4.2.0-SNAPSHOT", (4, 2), (4, 3)),
        ("5.5.1-ccs", (2, 5), (2, 6)),
        ("6.2.0-ce", (2, 8), (2, 9)),
        ("7.5.0-ccs", (3, 5), (3, 6)),
        ("7.9.2-ce", (3, 9), (3, 10)),
        ("8.1.0-ccs", (4, 1), (4, 2)),
    ],
)
def test_a_version_of_confluent_platform_is_that_of_its_kafka(version, kafka, following):
    assert (is_from(kafka, version), is_from(following, version)) == (True, False)
    assert is_confluent(version) is (("-c") in version)


def test_the_oldest_version_that_it_can_be_proves_nothing_of_later_ones():
    assert (is_from((3, 0), "3.0+"), is_from((2, 8), "3.0+"), is_from((4, 0), "3.0+")) == (True, True, None)


@pytest.mark.parametrize("version", [None, "", "unknown", "4", "99.0.0-ccs"])
def test_of_other_words_nothing_is_known(version):
    assert is_from((3, 0), version) is None
