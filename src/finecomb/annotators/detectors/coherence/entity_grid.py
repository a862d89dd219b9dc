"""Entity grids (Barzilay and Lapata 2005, 2008): probabilities of entity role transitions between sentences."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from finecomb.annotators.detectors.coherence.entity_mentions import find_name_mentions, find_noun_mentions
from finecomb.annotators.detectors.coherence.grammar_parse import ParsedSentence
from finecomb.annotators.detectors.coherence.sentence_scores import Floats

NAME = "entity-grid"
GRID_ROLES = "SOX-"
"""Roles of an entity: subject, object, other, absent. A word with several roles gets the one listed first."""


@dataclass(frozen=True, slots=True)
class EntityGrid:
    """Probabilities of role transitions."""

    transitions: NDArray[np.float64]
    """Matrix (4, 4) of p(role in this sentence | role in the previous one), in the order of `GRID_ROLES`."""

    def __call__(self, sentences: Sequence[ParsedSentence]) -> Floats:
        """Return w(c, s), (sentences,), the sum of log p over the entities in a sentence or in the previous one.

        Higher is more coherent. The first sentence has no previous one and scores 0.
        """
        grid = [entity_roles(sentence) for sentence in sentences]
        scores = [0.0]
        for before, after in itertools.pairwise(grid):
            pairs = ((before.get(entity, "-"), after.get(entity, "-")) for entity in before.keys() | after.keys())
            scores.append(
                sum(math.log(self.transitions[GRID_ROLES.index(old), GRID_ROLES.index(new)]) for old, new in pairs)
            )
        return np.array(scores)[: len(grid)]


def entity_roles(sentence: ParsedSentence) -> dict[str, str]:
    """Return the role of each entity in a sentence.

    Names are identified by their head word, other nouns by their lemma.
    """
    mentions = [(sentence[name.head].text.lower(), name.role) for name in find_name_mentions(sentence)]
    mentions += [(noun.lemma, noun.role) for noun in find_noun_mentions(sentence)]
    roles: dict[str, str] = {}
    for entity, role in mentions:
        roles[entity] = min(role, roles.get(entity, "-"), key=GRID_ROLES.index)
    return roles


def fit_entity_grid(texts: Iterable[Sequence[ParsedSentence]]) -> EntityGrid:
    """Estimate transition probabilities from coherent texts with add-one smoothing.

    Transitions from absent to absent are counted only for entities that were mentioned earlier.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for sentences in texts:
        known: set[str] = set()
        before: dict[str, str] = {}
        for sentence in sentences:
            after = entity_roles(sentence)
            known |= after.keys()
            counts.update((before.get(entity, "-"), after.get(entity, "-")) for entity in sorted(known))
            before = after
    table = np.array([[counts[role, next_role] + 1.0 for next_role in GRID_ROLES] for role in GRID_ROLES])
    return EntityGrid(table / table.sum(axis=1, keepdims=True))
