"""Which text comes next: fewest annotators first, balanced over strata, among equals as the seed says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from finecomb.store.access import seeded

Stratum = tuple[str, str]
"""A name of document meta and its value there."""
Setting = tuple[str, ...]
"""The values of document meta that all texts of one person share, e.g. a domain and a model."""
HUMAN = "human"
"""The model of texts that people wrote; they go with every model."""
_BLOCK = 10  # texts among which one attention check is hidden


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """Somebody's annotation or mark that is to be judged."""

    document: str
    annotator: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What there is to give out."""

    documents: Sequence[str]
    """Ids in order, without attention checks; of annotations or marks, where these are judged."""
    strata: Mapping[str, Sequence[Stratum]]
    """Of each document."""
    checks: Sequence[str] = ()
    """Attention checks, which everybody gets."""
    settings: Mapping[str, Sequence[Setting]] = field(default_factory=dict)
    """In which settings each document can be read, where everybody keeps to one."""
    models: Mapping[str, str] = field(default_factory=dict)
    """Which system wrote each document."""
    judged: Mapping[str, JudgedItem] = field(default_factory=dict)
    """What each id stands for, where other people's work is judged."""

    def places(self, document: str, annotators: int) -> int:
        """How many annotators a document should get: so many in each of its settings."""
        return annotators * max(1, len(self.settings.get(document, ())))


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
        and counts.of(document) < plan.places(document, annotators)
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
    return draw((document for ranks, document in ranked if ranks == best), seed, annotator)


# --- one setting for each person ---------------------------------------------------------------------------------


def settings(metas: Mapping[str, Mapping[str, object]], within: Sequence[str]) -> dict[str, list[Setting]]:
    """In which settings each document can be read. A text by a person goes with every model, all else being equal.

    >>> settings({"a": {"topic": "sea", "model": "x"}, "b": {"topic": "sea", "model": "human"}}, ("topic", "model"))
    {'a': [('sea', 'x')], 'b': [('sea', 'x')]}
    """
    own = {id: tuple(str(meta.get(name, "")) for name in within) for id, meta in metas.items()}
    by_people = {id for id, meta in metas.items() if "model" in within and meta.get("model") == HUMAN}
    machine: dict[Setting, list[Setting]] = {}
    for setting in dict.fromkeys(each for id, each in own.items() if id not in by_people):
        machine.setdefault(_apart_from_model(setting, within), []).append(setting)
    return {
        id: machine.get(_apart_from_model(setting, within), [setting]) if id in by_people else [setting]
        for id, setting in own.items()
    }


def _apart_from_model(setting: Setting, within: Sequence[str]) -> Setting:
    return tuple(value for name, value in zip(within, setting, strict=True) if name != "model")


def choose_setting(
    candidates: Iterable[str], plan: Plan, people: Mapping[Setting, int], texts: int, seed: int, annotator: str
) -> Setting | None:
    """The setting with fewest people among those with enough texts left; among equals, the seed decides."""
    room = Counter(setting for document in candidates for setting in plan.settings[document])
    return min(
        room,
        key=lambda each: (room[each] < texts, people.get(each, 0), seeded(seed, annotator, "setting", *each)),
        default=None,
    )


def draw(candidates: Iterable[str], seed: int, annotator: str) -> str | None:
    """A document at random, as the seed says."""
    return min(candidates, key=lambda document: seeded(seed, annotator, document), default=None)


# --- attention checks, machine marks, pairs ----------------------------------------------------------------------


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


def first_of_pair(seed: int, annotator: str, document: str) -> str:
    """Which text of a pair somebody is shown first: `a` or `b`."""
    return "ab"[seeded(seed, annotator, "first", document) % 2]
