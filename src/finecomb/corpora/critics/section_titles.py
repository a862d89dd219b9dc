"""Normalisation of section titles: lower case, no numbers, singular words and consistent spelling.

Deng et al. (2022), Appendix E, lemmatise with WordNet's nouns. These rules need no dictionary; they cover regular
English plurals, and endings that only look like plurals.
"""

from __future__ import annotations

import functools
import re

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_PREFERRED_SPELLINGS = {
    "acknowledgement": "acknowledgment",
    "analyse": "analysis",
    "behaviour": "behavior",
    "colour": "color",
    "judgement": "judgment",
    "licence": "license",
    "modelling": "modeling",
    "optimisation": "optimization",
    "organisation": "organization",
    "summarisation": "summarization",
    "visualisation": "visualization",
}
_IRREGULAR_SINGULARS = {
    "analyses": "analysis",
    "aliases": "alias",
    "atlases": "atlas",
    "bias": "bias",
    "biases": "bias",
    "buses": "bus",
    "canvases": "canvas",
    "appendices": "appendix",
    "bases": "basis",
    "children": "child",
    "criteria": "criterion",
    "diagnoses": "diagnosis",
    "hypotheses": "hypothesis",
    "indices": "index",
    "men": "man",
    "people": "person",
    "movies": "movie",
    "news": "news",
    "series": "series",
    "species": "species",
    "synopses": "synopsis",
    "theses": "thesis",
    "women": "woman",
}
_USE_PLURAL_ENDINGS = ("auses", "ouses", "fuses", "abuses", "excuses", "muses", "reuses")
"""Plural endings of words in -use (causes, houses); other plurals in -uses come from words in -us (viruses)."""
_NON_PLURAL_ENDINGS = ("ss", "us", "is", "ics", "'s", "’s")
"""Endings in s that are not plurals."""
_IE_WORDS = {"calorie", "cookie", "genie", "lie", "movie", "pie", "rookie", "selfie", "tie", "zombie"}
"""Words in -ie, whose plural ends in -ies like that of words in -y."""
_PLURAL_ENDINGS = (
    ("uses", "us"), ("ies", "y"), ("sses", "ss"), ("shes", "sh"), ("ches", "ch"), ("xes", "x"), ("zes", "z"), ("s", ""),
)  # fmt: skip


def normalise_title(title: str) -> str:
    """Return the section type of a title.

    >>> normalise_title("2.1 Materials and Methods"), normalise_title("Acknowledgements"), normalise_title("SEE ALSO")
    ('material and method', 'acknowledgment', 'see also')
    """
    return " ".join(_normalise_word(word) for word in _WORD.findall(title.lower()))


@functools.lru_cache(maxsize=65_536)
def _normalise_word(word: str) -> str:
    singular = _singularise(word)
    return _PREFERRED_SPELLINGS.get(singular, singular)


def _singularise(word: str) -> str:
    if word in _IRREGULAR_SINGULARS:
        return _IRREGULAR_SINGULARS[word]
    if word.endswith(_NON_PLURAL_ENDINGS) or len(word) <= 3:
        return word
    if word[:-1] in _IE_WORDS or word.endswith(_USE_PLURAL_ENDINGS):
        return word[:-1]
    for plural, singular in _PLURAL_ENDINGS:
        if word.endswith(plural) and len(word) - len(plural) >= 2:
            return word[: -len(plural)] + singular
    return word
