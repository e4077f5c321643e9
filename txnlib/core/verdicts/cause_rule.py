"""The form of a known cause, and the order of those that match."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum

from txnlib.core.kafka.constants import is_from
from txnlib.core.verdicts.case import Case
from txnlib.core.verdicts.metadata_events import shown
from txnlib.core.verdicts.no_commit import Answer
from txnlib.core.verdicts.reason import fields_of


@dataclass(frozen=True, slots=True)
class Cause:
    """A known cause in words, how likely it is, and what shows it."""

    cause: str
    likelihood: str
    evidence: str


class Likelihood(IntEnum):
    #: Records of the cluster's metadata log show it.
    PROVEN = 0
    LIKELY = 1
    POSSIBLE = 2
    UNLIKELY = 3


@dataclass(frozen=True, slots=True)
class CauseRule:
    """A known cause. `{…}` in `shows` are fields of the case. `given`: a condition on the answer of the worlds.
    `fixed_in`: the first version of the brokers without the fault."""

    cause: str
    likelihood: Likelihood
    shows: str
    applies: Callable[[Case], bool] = lambda case: True
    fixed_in: tuple[int, int] | None = None
    given: Callable[[Answer], bool] = lambda answer: True


def ranked(rules: Iterable[CauseRule], case: Case, answer: Answer) -> tuple[Cause, ...]:
    """The candidates whose signature matches, most likely first; empty if the transaction needs no explanation.

    `answer`: of the worlds. None of them contradicts a candidate.
    """
    decision, unmarked = case.decision, answer.unmarked
    removed = f"offsets {case.truncated_from} to {case.truncated_until}"
    fields = {
        **fields_of(case),
        **shown(case),
        "lost_offsets": (
            "" if case.truncated_from is None else f"; another copy still has the {removed} that it removed"
        ),
        "decision": "not known" if decision is None else decision.of.outcome,
        "too_few_in_sync": "" if case.place.too_few_in_sync is None else case.place.too_few_in_sync.says,
        "coordinator_too_few_in_sync": (
            "" if case.coordinator.too_few_in_sync is None else case.coordinator.too_few_in_sync.says
        ),
        "lost_decisions": answer.lost_decisions or "",
        "unmarked": "" if unmarked is None else f"{unmarked.place} decided {unmarked.outcome} for this partition, too",
    }
    found = []
    for rule in rules:
        if rule.given(answer) and rule.applies(case):
            shows, likelihood = rule.shows.format(**fields), rule.likelihood
            if rule.fixed_in is not None and is_from(rule.fixed_in, case.kafka_version) is True:
                likelihood, shows = Likelihood.UNLIKELY, f"{shows}; but the capture says Kafka {case.kafka_version}"
            found.append((likelihood, Cause(rule.cause.format(**fields), likelihood.name, shows)))
    return tuple(cause for _, cause in sorted(found, key=lambda pair: pair[0]))
