"""Words that are typical of one group of texts, by log-odds with a prior so that rare words do not rank first."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

_WORD_PATTERN = re.compile(r"[^\W\d_](?:[\w'’-]*\w)?")
_STOP_WORDS = frozenset(
    "a an and are as at be been but by can do does for from had has have he her his i if in is it its not of on or she "
    "so that the their them then there they this to too was were what which who will with would you".split()
)
"""Stop words, which are ignored on their own; a word pair with a stop word still counts."""


class TypicalWord(NamedTuple):
    """Word or word pair of a group, with its frequency and score."""

    group: str
    words: str
    occurrences: int
    log_odds: float
    """Log-odds of the word in the group compared with all other groups."""
    score: float
    """Log-odds divided by its standard error; above 1.96 the word is significantly more frequent in the group."""


def extract_terms(text: str) -> list[str]:
    """Return the lower-case words and adjacent word pairs of a text; a stop word counts only in a pair.

    >>> extract_terms("This was already stated.")
    ['already', 'stated', 'was already', 'already stated']
    """
    words = [word.lower() for word in _WORD_PATTERN.findall(text)]
    pairs = [f"{first} {second}" for first, second in itertools.pairwise(words)]
    alone = [word for word in words if word not in _STOP_WORDS]
    return alone + [pair for pair in pairs if any(word not in _STOP_WORDS for word in pair.split())]


def typical_words(texts: Mapping[str, Iterable[str]], top: int = 5, min_count: int = 2) -> list[TypicalWord]:
    r"""Return the `top` words of each group by log-odds with an informative Dirichlet prior.

    Monroe, Colaresi and Quinn (2008), "Fightin' Words", section 3.4. The prior of a word is its share of all words,
    with as many pseudo-counts in total as there are different words. The score is
    $\delta / \sqrt{1 / (y_i + \alpha) + 1 / (y_j + \alpha)}$. Words that occur fewer than `min_count` times are
    omitted.
    """
    counts = {
        group: Counter(term for text in group_texts for term in extract_terms(text))
        for group, group_texts in texts.items()
    }
    total: Counter[str] = sum(counts.values(), Counter())
    size = sum(total.values())
    prior = {word: len(total) * count / size for word, count in total.items()} if size else {}
    alphas = sum(prior.values())
    rows: list[TypicalWord] = []
    for group, own_counts in counts.items():
        scored, own_size = [], sum(own_counts.values())
        for word, inside in own_counts.items():
            if inside >= min_count:
                alpha, outside = prior[word], total[word] - inside
                delta = math.log((inside + alpha) / (own_size + alphas - inside - alpha))
                delta -= math.log((outside + alpha) / (size - own_size + alphas - outside - alpha))
                error = math.sqrt(1 / (inside + alpha) + 1 / (outside + alpha))
                scored.append(TypicalWord(group, word, inside, delta, delta / error))
        rows += sorted(scored, key=lambda row: (-row.score, row.words))[:top]
    return rows
