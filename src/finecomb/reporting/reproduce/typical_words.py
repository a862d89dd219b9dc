"""Words that are typical of one group of texts: log-odds with a prior, as scores that rare words do not win."""

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
"""Words that say nothing alone; two words of which one is among them still count."""


class TypicalWord(NamedTuple):
    """A word or two of one group, how often it occurs there, and how typical it is."""

    group: str
    words: str
    occurrences: int
    log_odds: float
    """Of the group against all others."""
    score: float
    """Log-odds over its standard error: beyond 1.96 the word is more frequent here than chance has it."""


def extract_terms(text: str) -> list[str]:
    """Words and pairs of neighbours, in small letters; common words only beside others.

    >>> extract_terms("This was already stated.")
    ['already', 'stated', 'was already', 'already stated']
    """
    words = [word.lower() for word in _WORD_PATTERN.findall(text)]
    pairs = [f"{first} {second}" for first, second in itertools.pairwise(words)]
    alone = [word for word in words if word not in _STOP_WORDS]
    return alone + [pair for pair in pairs if any(word not in _STOP_WORDS for word in pair.split())]


def typical_words(texts: Mapping[str, Iterable[str]], top: int = 5, min_count: int = 2) -> list[TypicalWord]:
    r"""The `top` words of each group by log-odds with an informative Dirichlet prior.

    Monroe, Colaresi and Quinn (2008), "Fightin' Words", section 3.4. The prior of a word is its share of all words,
    with as many pseudo-counts in total as there are different words. The score is
    $\delta / \sqrt{1 / (y_i + \alpha) + 1 / (y_j + \alpha)}$. Words that occur fewer than `least` times are left out.
    """
    counts = {
        group: Counter(term for text in group_texts for term in extract_terms(text))
        for group, group_texts in texts.items()
    }
    total: Counter[str] = sum(counts.values(), Counter())
    size = sum(total.values())
    prior = {word: len(total) * count / size for word, count in total.items()} if size else {}
    rows: list[TypicalWord] = []
    for group, own_counts in counts.items():
        scored = [
            _score_word(group, word, own_counts, total, prior)
            for word, count in own_counts.items()
            if count >= min_count
        ]
        rows += sorted(scored, key=lambda row: (-row.score, row.words))[:top]
    return rows


def _score_word(
    group: str, word: str, own_counts: Counter[str], total: Counter[str], prior: Mapping[str, float]
) -> TypicalWord:
    alpha, alphas = prior[word], sum(prior.values())
    inside, outside = own_counts[word], total[word] - own_counts[word]
    size, rest = sum(own_counts.values()), sum(total.values()) - sum(own_counts.values())
    delta = math.log((inside + alpha) / (size + alphas - inside - alpha))
    delta -= math.log((outside + alpha) / (rest + alphas - outside - alpha))
    error = math.sqrt(1 / (inside + alpha) + 1 / (outside + alpha))
    return TypicalWord(group, word, inside, delta, delta / error)
