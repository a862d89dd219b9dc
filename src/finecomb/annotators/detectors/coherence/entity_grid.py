"""Entity grids (Barzilay and Lapata 2005, 2008): how likely the roles of entities go over into the next sentence's."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finecomb.annotators.detectors.coherence.entity_mentions import names, nouns
from finecomb.annotators.detectors.coherence.grammar_parse import ParsedSentence
from finecomb.annotators.detectors.coherence.sentence_scores import Floats

NAME = "entity-grid"
ROLES = "SOX-"
"""Subject, object, any other, absent; a word in several roles has the first of them."""


@dataclass(frozen=True, slots=True)
class EntityGrid:
    """Chances of role transitions."""

    transitions: NDArray[np.float64]
    """(4, 4): p(role in this sentence | role in the one before), in the order of `ROLES`."""

    def __call__(self, sentences: Sequence[ParsedSentence]) -> Floats:
        """w(c, s) of each sentence, (sentences,): the sum over entities of s and the sentence before of log p.

        Higher is more coherent. The first sentence has none before it, and 0.
        """
        grid = [entity_roles(sentence) for sentence in sentences]
        return np.array([0.0, *(self._transition_score(before, after) for before, after in itertools.pairwise(grid))])[
            : len(grid)
        ]

    def _transition_score(self, before: Mapping[str, str], after: Mapping[str, str]) -> float:
        entities = before.keys() | after.keys()
        return sum(
            math.log(self.transitions[ROLES.index(before.get(entity, "-")), ROLES.index(after.get(entity, "-"))])
            for entity in entities
        )


def entity_roles(sentence: ParsedSentence) -> dict[str, str]:
    """The role of each entity of a sentence: names by their last word, other nouns by their lemma."""
    mentions = [(sentence[name.head].text.lower(), name.role) for name in names(sentence)]
    mentions += [(noun.lemma, noun.role) for noun in nouns(sentence)]
    roles: dict[str, str] = {}
    for entity, role in mentions:
        roles[entity] = min(role, roles.get(entity, "-"), key=ROLES.index)
    return roles


def fit_entity_grid(texts: Iterable[Sequence[ParsedSentence]]) -> EntityGrid:
    """Transition chances from real texts, one added to every count; absent to absent is counted for known entities."""
    counts: Counter[tuple[str, str]] = Counter()
    for sentences in texts:
        known: set[str] = set()
        before: dict[str, str] = {}
        for sentence in sentences:
            after = entity_roles(sentence)
            known |= after.keys()
            counts.update((before.get(entity, "-"), after.get(entity, "-")) for entity in sorted(known))
            before = after
    table = np.array([[counts[one, other] + 1.0 for other in ROLES] for one in ROLES])
    return EntityGrid(table / table.sum(axis=1, keepdims=True))
