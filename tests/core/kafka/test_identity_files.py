"""The broker of a log directory and the topic of a log: `meta.properties` and `partition.metadata`."""

import pytest

from txnlib.core.kafka.log_dir_files import MetaProperties, properties_in, read_meta_properties, read_topic_id

ID = "LAP4W8nXTU-a0ZfoHk0lbw"

#: The content of `partition.metadata` -> the topic id.
TOPIC_IDS = [
    (f"version: 0\ntopic_id: {ID}", ID),
    (f"version: 0\ntopic_id: {ID}\n", ID),
    (f"version:0\r\ntopic_id:{ID}\r\n", ID),
    (f"version: 1\ntopic_id: {ID}", None),
    (f"version: 0\ntopic_id: {ID[:-1]}", None),
    (f"version: 0\ntopic_id: {ID}x", None),
    ("version: 0\n", None),
    ("", None),
]


@pytest.mark.parametrize(("content", "expected"), TOPIC_IDS)
def test_a_topic_id_is_read_only_from_a_whole_file(content: str, expected: str | None) -> None:
    assert read_topic_id(content.encode()) == expected


#: The content of `meta.properties` -> the ids of the cluster and of the broker.
IDENTITIES = [
    ("version=1\ncluster.id=abc\nnode.id=7\n", ("abc", "7")),
    ("version=0\ncluster.id=abc\nbroker.id=7\n", ("abc", "7")),
    ("cluster.id=abc\nnode.id=007\nbroker.id=8\n", ("abc", "7")),
    ("node.id=\nbroker.id=8\n", (None, "8")),
    ("cluster.id=\\ abc \nnode.id=0\n", ("abc", "0")),
    ("cluster.id=\nnode.id=x\n", (None, None)),
    ("node.id=2147483647", (None, "2147483647")),
    ("node.id=2147483648", (None, None)),
    ("node.id=-1", (None, None)),
    ("version=0\r\ncluster.id=abc\r\nbroker.id=7\r\n", ("abc", "7")),
    ("\udcff\0", (None, None)),  # no UTF-8
    ("", (None, None)),
]


@pytest.mark.parametrize(("content", "expected"), IDENTITIES)
def test_a_log_directory_says_whose_it_is(content: str, expected: tuple[str | None, str | None]) -> None:
    assert read_meta_properties(content.encode(errors="surrogateescape")) == MetaProperties(*expected)


#: As `java.util.Properties.load` reads them.
PROPERTIES = [
    ("a=b", {"a": "b"}),
    ("a:b", {"a": "b"}),
    ("a b", {"a": "b"}),
    ("  a \t=  b ", {"a": "b "}),
    ("a", {"a": ""}),
    ("a==b", {"a": "=b"}),
    ("=b", {"": "b"}),
    ("#a=b\n!c=d\n \n\ne=f", {"e": "f"}),
    ("#\na=#b", {"a": "#b"}),
    ("a=b\na=c", {"a": "c"}),
    ("a=b\\\n  c\nd=e", {"a": "bc", "d": "e"}),
    ("a=b\\\n#c", {"a": "b#c"}),
    ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
    ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
    ("a=b\\", {"a": "b"}),
    ("a\\=b\\ c=d", {"a=b c": "d"}),
    ("\\u0041=\\u00e9\\t\\n\\x", {"A": "\u00e9\t\nx"}),
    ("a=\\r\\f\\u00", {"a": "\r\fu00"}),
    ("", {}),
]


@pytest.mark.parametrize(("text", "expected"), PROPERTIES)
def test_properties_are_read_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    assert properties_in(text) == expected
