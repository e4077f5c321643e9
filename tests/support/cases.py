"""Cases for the grids of the rules.

A grid gives facts of both sides by their names. Those that are gathered stand where they are gathered (`OpenSpan`,
`CoverageRow`, `Claim`, ...); those that a case derives are set as if it had derived them.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any

from txnlib.core.copies import NO_LEADER, CoverageRow, End, LeaderBasis, Role
from txnlib.core.verdicts.case import Case, Crc
from txnlib.core.verdicts.cluster_facts import ClusterFacts, Thresholds
from txnlib.core.verdicts.coordinators import CoordinatorPartition, Coordinators, PartitionFacts
from txnlib.core.verdicts.dossier import Claim, CoordinatorDecision, Dossier, OpenSpan, SiblingMarkers, WrittenMarker
from txnlib.core.verdicts.match import Marked

NOON = 1_710_000_000_000
#: The instant of the audit.
AT_ONE = Thresholds(as_of_ms=NOON + 60 * 60_000)


class Given(dict[str, Any]):
    """Facts by their names."""

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(name)
        return self[name]


def replace(of: Any, **changes: Any) -> Any:
    return Given(of | changes) if isinstance(of, Given) else dataclasses.replace(of, **changes)


def derived(of: Any, **facts: Any) -> Any:
    """The same object, with facts that it would derive."""
    for name, value in facts.items():
        assert isinstance(getattr(type(of), name), cached_property), name
        of.__dict__[name] = value
    return of


def decided(type: str, epoch: int, *, decided_ms: int, completed_ms: int | None) -> Marked:
    """A decision that lists the partition, of leader epoch 19 of its coordinator, without its marker."""
    of = CoordinatorDecision(
        coordinator_partition=3, outcome=type, decided_epoch=epoch, partitions=(), said_ms=decided_ms,
        completed_ms=completed_ms, first_record_offset=76, last_record_offset=77,
    )  # fmt: skip
    return Marked(of=of)


def with_marker(of: Marked, is_marked: bool | None) -> Marked:
    """A decision that has its marker, has none, or has one in some histories."""
    found = WrittenMarker(offset=78)
    return dataclasses.replace(of, markers={True: (found,), False: (None,), None: (found, None)}[is_marked])


def _copy(given: Given) -> CoverageRow:
    """A copy, by default the whole one of a leader that is known."""
    leader = {True: "1", False: NO_LEADER, None: None}[given.get("has_leader", True)]
    basis = LeaderBasis.METADATA_LOG_DAMAGED if given.get("is_leader_hidden") else LeaderBasis.CAPTURE_JSON
    whole = {"role": Role.LEADER, "ends": End.WHOLE, "leader": leader, "leader_basis": basis, "is_judged": True}
    return CoverageRow(**whole | _of(CoverageRow, given))


def _of(kind: Any, given: Given) -> dict[str, Any]:
    return {field.name: given[field.name] for field in dataclasses.fields(kind) if field.name in given}


def _named(prefix: str, given: Given) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in given.items() if name.startswith(prefix)}


#: The facts that a case derives.
NAMES = {name for name in dir(Case) if isinstance(getattr(Case, name), cached_property)}
#: The others that a grid may give.
GATHERED = {
    "has_leader", "is_leader_hidden", "missing_partitions", "damaged_offset", "coordinator_elections",
    *(field.name for kind in (OpenSpan, CoverageRow, Dossier, Claim, ClusterFacts, CoordinatorPartition)
      for field in dataclasses.fields(kind)),
}  # fmt: skip
#: What a case derives by default.
DERIVED = Given(
    crc=Crc.VALID, is_start_exact=True, is_start_committed=True, is_instant_assumed=False, may_be_v2=False,
    pending_ids=(), coordinator_leader=None, coordinators_known_until_ms=None,
)  # fmt: skip
#: What the coordinators derive by default.
OF_COORDINATORS = Given(uncertain_copies=(), earliest_captured_at_ms=None, unclean_elections=(), is_leader_hidden=False)
#: Facts that both sides have -> their names in the case, at the coordinator.
AT_COORDINATOR = {"known_until_ms": "coordinators_known_until_ms"}


def case(
    partition: Given,
    coordinator: Given,
    thresholds: Thresholds = AT_ONE,
    version: str | None = None,
    *,
    cluster: Given | None = None,
) -> Case:
    """A case by what its partition's copy, its coordinator and the cluster's metadata log show."""
    cluster = cluster or Given()
    marker, commit = _named("marker_", partition), _named("newest_commit_", partition)
    state = coordinator.get("state")
    claim = Claim(**_of(Claim, coordinator) | {"state": None if state is None else state.kafka_name})
    led = CoordinatorPartition(
        partition=3,
        elections=cluster.get("coordinator_elections", ()),
        newest_coordinator_epoch=coordinator.get("newest_coordinator_epoch"),
    )
    derived(led, damaged_offset=coordinator.get("damaged_offset"), best=_copy(coordinator))
    place = PartitionFacts(copies=(_copy(partition),), elections=cluster.get("elections", ()))
    missing = coordinator.get("missing_partitions", ())
    compacted = CoordinatorPartition(partition=3, hole_offset=coordinator.get("compacted_offset"))
    complete = derived(compacted, shows_absence=True)
    facts = ClusterFacts(
        thresholds=thresholds,
        kafka_version=version,
        partitions={(partition.topic, partition.partition): place},
        coordinators=() if missing is None else (complete, *(CoordinatorPartition(partition=each) for each in missing)),
        **_of(ClusterFacts, coordinator) | _of(ClusterFacts, cluster),
    )
    siblings = {f"newest_unexplained_commit_{name}": value for name, value in commit.items()}
    span = OpenSpan(
        **_of(OpenSpan, partition),
        markers=(WrittenMarker(**marker),) if marker else (),
    )
    dossier = Dossier(open=(span,), **_of(Dossier, Given(partition | coordinator | cluster)))
    set_here = {name: value for name, value in (DERIVED | partition).items() if name in NAMES}
    set_there = {AT_COORDINATOR.get(name, name): value for name, value in coordinator.items()}
    shared = {name: coordinator.get(name, value) for name, value in OF_COORDINATORS.items()}
    known = NAMES | GATHERED | AT_COORDINATOR.keys() | OF_COORDINATORS.keys()
    unknown = {*partition, *coordinator, *cluster} - known
    assert all(name.startswith(("marker_", "newest_commit_", "compacted_")) for name in unknown), unknown
    coordinators = derived(Coordinators(facts.coordinators), **shared)
    parts = {
        "claim": claim,
        "coordinator": led,
        "coordinator_copy": _copy(coordinator),
        "coordinators": coordinators,
    }
    if siblings:
        parts["newest_commit"] = SiblingMarkers(topic=span.topic, partition=span.partition, **siblings)
    made = Case(dossier=dossier, span=span, facts=facts)
    return derived(made, **set_here | {n: v for n, v in set_there.items() if n in NAMES} | parts)
