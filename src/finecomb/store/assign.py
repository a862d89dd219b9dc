"""Which text comes next: fewest annotators first, balanced over strata, among equals as the seed says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from finecomb.store.people import seeded

Stratum = tuple[str, str]
"""A name of document meta and its value there."""
_BLOCK = 10  # texts among which one attention check is hidden


@dataclass(frozen=True, slots=True)
class Plan:
    """What there is to give out."""

    documents: Sequence[str]
    """In order, without attention checks."""
    strata: Mapping[str, Sequence[Stratum]]
    """Of each document."""
    checks: Sequence[str]
    """Attention checks, which everybody gets."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How the work stands, under the protocol in force."""

    submitted: Mapping[str, int]
    """Annotators who handed in, by document."""
    working: Mapping[str, int]
    """Annotators for whom it is kept at the moment, by document."""

    def of(self, document: str) -> int:
        """Places taken."""
        return self.submitted.get(document, 0) + self.working.get(document, 0)


def free(
    plan: Plan, counts: Counts, annotators: int, mine: Iterable[str], quotas: Mapping[str, int], pool: Sequence[str]
) -> list[str]:
    """The documents of `pool` that can be given to somebody who has had `mine`."""
    totals = stratum_totals(plan, counts)
    full = {stratum for stratum, count in totals.items() if count >= quotas.get(stratum[1], count + 1)}
    had = set(mine)
    return [
        document
        for document in pool
        if document not in had
        and counts.of(document) < annotators
        and not (full and full.intersection(plan.strata.get(document, ())))
    ]


def stratum_totals(plan: Plan, counts: Counts) -> Counter[Stratum]:
    """Places taken by stratum."""
    totals: Counter[Stratum] = Counter()
    for document, strata in plan.strata.items():
        for stratum in strata:
            totals[stratum] += counts.of(document)
    return totals


def choose(
    candidates: Iterable[str], plan: Plan, counts: Counts, mine: Iterable[str], seed: int, annotator: str
) -> str | None:
    """The next document: fewest places taken, then the strata this annotator and then everybody has had least of."""
    own = Counter(stratum for document in mine for stratum in plan.strata.get(document, ()))
    totals = stratum_totals(plan, counts)

    def rank(document: str) -> tuple[int, int, int]:
        strata = plan.strata.get(document, ())
        return counts.of(document), sum(own[each] for each in strata), sum(totals[each] for each in strata)

    ranked = [(rank(document), document) for document in candidates]
    best = min((ranks for ranks, _ in ranked), default=None)
    equal = (document for ranks, document in ranked if ranks == best)
    return min(equal, key=lambda document: seeded(seed, annotator, document), default=None)


def check_due(plan: Plan, mine: Sequence[str], seed: int, annotator: str, expected: int, last: bool) -> str | None:
    """The attention check to be given now, if one is: each hides at a seeded place in its own stretch of texts.

    `mine` are the texts given so far in their order; `last` says that nothing else is left.
    """
    order = sorted(plan.checks, key=lambda check: seeded(seed, annotator, "check", check))
    left = [(index, check) for index, check in enumerate(order) if check not in set(mine)]
    if not left:
        return None
    index, check = left[0]
    block = max(1, min(_BLOCK, (expected + len(order)) // len(order) - 1))
    place = 1 + index * (block + 1) + seeded(seed, annotator, "place", check) % block
    return check if last or len(mine) >= place else None


def is_blind(seed: int, document: str, share: float) -> bool:
    """Whether a document is shown without machine marks, so that anchoring can be measured."""
    return seeded(seed, "blind", document) < share * 2**64
