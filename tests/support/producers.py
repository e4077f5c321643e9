"""Transactional producers (librdkafka) that commit and abort until they are stopped."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer

_SECONDS = 60


def transactional(bootstrap: str, transactional_id: str) -> Producer:
    """A producer that may begin transactions."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, "linger.ms": 0, "log_level": 0}
    )
    producer.init_transactions(_SECONDS)
    return producer


def write(producer: Producer, topic: str, partitions: int, count: int, value: bytes = b"x" * 500) -> None:
    """Writes to each partition, and waits until the broker has it."""
    for number in range(count * partitions):
        producer.produce(topic, value, partition=number % partitions)
    assert producer.flush(_SECONDS) == 0


@contextmanager
def busy(bootstrap: str, topic: str, partitions: int, producers: int = 2) -> Iterator[None]:
    """Producers at work beside the caller: each fifth transaction is aborted. Their last ones are ended when the block
    is."""
    stop, failures = threading.Event(), list[BaseException]()
    warm = threading.Barrier(producers + 1)

    def work(number: int) -> None:
        try:
            producer = transactional(bootstrap, f"busy-{number}")
            for round_ in range(1_000_000):
                producer.begin_transaction()
                write(producer, topic, partitions, 3)
                (producer.abort_transaction if round_ % 5 == 3 else producer.commit_transaction)(_SECONDS)
                if round_ == 10:
                    warm.wait(_SECONDS)
                if stop.is_set():
                    return
                time.sleep(0.01)
        except BaseException as error:
            failures.append(error)
            warm.abort()
            raise

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(producers)]
    for thread in threads:
        thread.start()
    try:
        warm.wait(_SECONDS)
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(_SECONDS)
    assert not failures, failures
