"""The instants at which the folders of a capture were copied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from txnlib.core.copies import highest, lowest
from txnlib.core.coverage.captured_files import broker_of, place_in
from txnlib.core.instants import clock_ms
from txnlib.core.kafka.constants import TRANSACTION_STATE_TOPIC

_CHECKPOINT: Final = "replication-offset-checkpoint"


@dataclass(frozen=True, slots=True)
class CaptureInstants:
    """What capture.json and `--captured-at` note, in epoch ms."""

    #: For every folder that is not named.
    default_ms: int | None = None
    #: `<broker>/<folder>`, or `<broker>/first/<folder>` for a copy in a folder `first`.
    of_folders: Mapping[str, int] = field(default_factory=dict)

    @property
    def earliest_ms(self) -> int | None:
        return lowest(self._all())

    @property
    def latest_ms(self) -> int | None:
        return highest(self._all())

    def of_copy(self, source: str, topic: str, partition: int) -> int | None:
        """When a copy was taken."""
        folder = f"{topic}-{partition}"
        named = (self._named(where, folder) for where in (place_in(source), broker_of(source)))
        return next((ms for each in (*named, self.default_ms) if (ms := clock_ms(each)) is not None), None)

    def of_checkpoint(self, broker: str | None) -> int | None:
        """When the checkpoints of a broker were copied. They are beside the folders of partitions."""
        own_ms = self._named(broker, _CHECKPOINT)
        return self.default_ms if own_ms is None else own_ms

    def of_high_watermarks(self) -> dict[str, int]:
        """Broker -> when its high watermarks were copied at the latest: before its partitions (scripts/capture.sh)."""
        folders: dict[str, dict[str, int]] = {}
        for name, ms in self.of_folders.items():
            broker, _, folder = name.rpartition("/")
            folders.setdefault(broker, {})[folder] = ms
        latest = {
            broker: of_broker.get(_CHECKPOINT, _first_of_data(broker, of_broker))
            for broker, of_broker in folders.items()
        }
        return {broker: ms for broker, ms in latest.items() if ms is not None}

    def _all(self) -> tuple[int | None, ...]:
        return (self.default_ms, *self.of_folders.values())

    def _named(self, where: str | None, folder: str) -> int | None:
        return None if where is None else self.of_folders.get(f"{where}/{folder}")


def _first_of_data(broker: str, of_folders: Mapping[str, int]) -> int | None:
    if "/" in broker:
        return None
    return lowest(ms for folder, ms in of_folders.items() if not folder.startswith(TRANSACTION_STATE_TOPIC))
