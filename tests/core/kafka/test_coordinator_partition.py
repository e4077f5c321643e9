"""The partition that owns an id, and their number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from txnlib.core.kafka.coordinator_partition import CountBasis, count_partitions, java_string_hash, partition_for

#: id, its hash in Java, its partition of 50, of 3.
IDS = [
    ("kafka-txn-0", -1469191130, 30, 2),
    ("my-txn-id", 1405732511, 11, 2),
    ("payments-app-1", 1999685861, 11, 2),
    ("transactional-id", 510590431, 31, 1),
    ("tx-😀", 112519500, 0, 0),  # two code units
    ("polygenelubricants", -2147483648, 0, 0),  # abs of it does not fit an int
    ("", 0, 0, 0),
]


@pytest.mark.parametrize(("transactional_id", "value", "of_50", "of_3"), IDS)
def test_an_id_hashes_to_its_partition_as_in_java(transactional_id: str, value: int, of_50: int, of_3: int) -> None:
    assert java_string_hash(transactional_id) == value
    assert (partition_for(transactional_id, 50), partition_for(transactional_id, 3)) == (of_50, of_3)


def test_F08_two_ids_of_two_partitions() -> None:
    assert (partition_for("b", 2), partition_for("a", 2)) == (0, 1)


def test_a_lone_surrogate_is_a_code_unit_too() -> None:
    assert java_string_hash("\ud83d") == 0xD83D


ids = st.text(max_size=12)
numbers = st.integers(1, 200)


@given(ids, st.characters(max_codepoint=0xFFFF, exclude_categories=("Cs",)))
def test_one_code_unit_more_multiplies_by_31(prefix: str, unit: str) -> None:
    difference = java_string_hash(prefix + unit) - (31 * java_string_hash(prefix) + ord(unit))
    assert difference % 2**32 == 0
    assert -(2**31) <= java_string_hash(prefix + unit) < 2**31


@given(ids, numbers)
def test_an_id_belongs_to_a_partition_that_exists(transactional_id: str, partitions: int) -> None:
    assert 0 <= partition_for(transactional_id, partitions) < partitions


def owned(transactional_ids: list[str], partitions: int) -> list[tuple[str, int]]:
    return [(each, partition_for(each, partitions)) for each in transactional_ids]


@given(st.lists(ids, max_size=30, unique=True), numbers, st.integers(1, 20))
def test_the_number_found_puts_every_id_where_it_was(found: list[str], partitions: int, default: int) -> None:
    pairs = owned(found, partitions)
    counted, _ = count_partitions(pairs, at_least=1, default=default)
    if pairs:
        assert pairs == owned(found, counted)
        assert counted <= max(partitions, default)


@given(st.lists(ids, max_size=30), numbers, numbers)
def test_no_fewer_partitions_are_counted_than_were_seen(found: list[str], partitions: int, at_least: int) -> None:
    assert count_partitions(owned(found, partitions), at_least=at_least, default=50)[0] >= at_least


@given(st.lists(ids, min_size=1, max_size=6), numbers)
def test_an_id_seen_again_proves_nothing_more(found: list[str], partitions: int) -> None:
    once = owned(sorted(set(found)), partitions)
    for seen in (once, once * 3):
        assert count_partitions(seen, at_least=1, default=50) == count_partitions(once, at_least=1, default=50)


MANY = [f"app-{number}" for number in range(200)]

BY_DEFAULT, ASSUMED, AMBIGUOUS = CountBasis.DEFAULT, CountBasis.ASSUMED, CountBasis.AMBIGUOUS

#: ids and where they were found, how many partitions were seen, the default -> the count, and how it is known.
COUNTS = [
    pytest.param([], 1, 50, 50, BY_DEFAULT, id="nothing found: the default"),
    pytest.param([], 50, 50, 50, BY_DEFAULT, id="nothing found in as many partitions as the default"),
    pytest.param([], 51, 50, 51, AMBIGUOUS, id="nothing found, but more partitions seen than the default"),
    pytest.param([], 2000, 50, 2000, AMBIGUOUS, id="nothing found, in more partitions than are tried"),
    pytest.param([], 1, 2000, 2000, BY_DEFAULT, id="nothing found, and a default above what is tried"),
    pytest.param(owned(MANY, 50), 1, 50, 50, BY_DEFAULT, id="many ids fit the default"),
    pytest.param(owned(MANY, 7), 1, 50, 7, ASSUMED, id="many ids leave one other number"),
    pytest.param(owned(MANY, 1000), 1, 50, 1000, ASSUMED, id="as many as are tried"),
    pytest.param(owned(MANY, 1001), 1, 50, 50, AMBIGUOUS, id="more than are tried"),
    pytest.param(owned(MANY, 7), 8, 50, 50, AMBIGUOUS, id="more partitions seen than fit: mixed clusters"),
    pytest.param(owned(MANY, 7), 60, 50, 60, AMBIGUOUS, id="the same, with more partitions than the default"),
    pytest.param([("app-1", 0), ("app-1", 1)], 1, 50, 50, AMBIGUOUS, id="an id in two partitions: mixed clusters"),
    pytest.param(owned(MANY[:2], 50), 1, 50, 50, BY_DEFAULT, id="two ids fit the default"),
    pytest.param([("b", 0)], 1, 50, 1, AMBIGUOUS, id="one id at which the default does not fit"),
    pytest.param([("polygenelubricants", 0)] * 3, 1, 50, 50, BY_DEFAULT, id="one id, seen in three records"),
    # "aa" hashes to 3104 and "BB" to 2112: what fits 4 and 12 divides both 3100 and 2100, and is above 12.
    pytest.param(
        owned(["aa", "BB", "polygenelubricants"], 50), 1, 50, 50, BY_DEFAULT, id="three ids fit 20, and the default"
    ),
    *[
        pytest.param(
            [(i, p) for i, p in owned(MANY, 50) if p < part],
            1,
            50,
            50,
            BY_DEFAULT,
            id=f"the first {part} of 50 fit {part}, too",
        )
        for part in (1, 2, 5, 10, 25)
    ],
    pytest.param(
        [(i, p) for i, p in owned(MANY, 60) if p < 12], 12, 50, 12, AMBIGUOUS, id="the first 12 of 60 fit 12, 15, 20 …"
    ),
]


@pytest.mark.parametrize(("pairs", "at_least", "default", "expected", "basis"), COUNTS)
def test_ids_refute_numbers_of_partitions_and_prove_none(pairs, at_least, default, expected, basis):
    assert count_partitions(pairs, at_least=at_least, default=default) == (expected, basis)
