"""What log directories say of themselves, in `meta.properties`: their cluster and their broker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from txnlib.core.coverage.captured_files import IN_THE_MAKING, broker_of, is_broker_id
from txnlib.core.display import printable
from txnlib.core.kafka.broker_files import read_meta_properties
from txnlib.errors import UsageError
from txnlib.readers.storage import files
from txnlib.readers.storage.packed_text import READ_ERRORS

META_PROPERTIES: Final = "meta.properties"
#: Size limit, in bytes. Brokers write less than 200.
_MOST_BYTES: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class Identities:
    """What the files of a capture say of their clusters and brokers."""

    #: Id of a cluster -> the first file that says it.
    _clusters: dict[str, str] = field(default_factory=dict)
    #: Folder with the number of another broker -> the one that its `meta.properties` names, whose copies are there: its
    #: disk moved, or somebody copied it there.
    _owners: dict[str, str] = field(default_factory=dict)

    def read(self, path: str, folder: str) -> str | None:
        """Reads the `meta.properties` of a folder of the input. Returns why that was not possible; None if it was."""
        try:
            said = read_meta_properties(files.read_all(path, _MOST_BYTES))
        except READ_ERRORS as error:
            return f"CANNOT_OPEN: {getattr(error, 'strerror', None) or error}"
        self.note(path, said.cluster_id)
        named = broker_of(f"raw:{folder}") or ""
        if said.broker_id is not None and is_broker_id(named) and int(named) != int(said.broker_id):
            self._owners[folder] = said.broker_id
        return None

    def note(self, path: str, cluster_id: str | None) -> None:
        """Notes of which cluster the copies around a file are, if it says so."""
        if cluster_id is not None:
            self._clusters.setdefault(cluster_id, path)

    def cluster_id(self) -> str | None:
        """The id of the cluster of all copies; None if no file says it. Raises UsageError for several."""
        if len(self._clusters) > 1:
            named = "; ".join(f"{printable(cluster_id)}: {path}" for cluster_id, path in self._clusters.items())
            raise UsageError(f"the inputs belong to different clusters ({named}): audit one at a time")
        return next(iter(self._clusters), None)

    @property
    def misnamed(self) -> tuple[str, ...]:
        """What is wrong with the names of folders, in words."""
        says = f"by its {META_PROPERTIES}, it is of broker"
        return tuple(f"folder {name}: {says} {owner}" for name, owner in self._owners.items())

    def source_of(self, source: str) -> str:
        """The source of a copy, with the number of its broker in front if its folder has that of another."""
        how, _, folder = source.partition(":")
        owner = self._owners.get(folder.removesuffix(IN_THE_MAKING).removesuffix("/first"))
        return source if owner is None else f"{how}:{owner}/{folder}"
