"""Section titles made comparable: lower case, without numbers, each word in the singular and in one spelling.

Deng et al. (2022), Appendix E, lemmatise with WordNet's nouns. These rules need no dictionary: they know the usual
English plurals and the endings that only look like one.
"""

from __future__ import annotations

import functools
import re

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_SPELLINGS = {
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
"""Plurals of -use: causes, houses; other words in -uses are those of -us, as viruses."""
_NON_PLURAL_ENDINGS = ("ss", "us", "is", "ics", "'s", "’s")
"""Endings in s that are no plural."""
_IE_WORDS = {"calorie", "cookie", "genie", "lie", "movie", "pie", "rookie", "selfie", "tie", "zombie"}
"""Words whose plural in -ies does not come from -y."""
_PLURALS = (
    ("uses", "us"), ("ies", "y"), ("sses", "ss"), ("shes", "sh"), ("ches", "ch"), ("xes", "x"), ("zes", "z"), ("s", ""),
)  # fmt: skip


def normalise_title(title: str) -> str:
    """A title as a section type.

    >>> normalise_title("2.1 Materials and Methods"), normalise_title("Acknowledgements"), normalise_title("SEE ALSO")
    ('material and method', 'acknowledgment', 'see also')
    """
    return " ".join(_normalise_word(word) for word in _WORD.findall(title.lower()))


@functools.lru_cache(maxsize=65_536)
def _normalise_word(word: str) -> str:
    singular = _singularise(word)
    return _SPELLINGS.get(singular, singular)


def _singularise(word: str) -> str:
    if word in _IRREGULAR_SINGULARS:
        return _IRREGULAR_SINGULARS[word]
    if word.endswith(_NON_PLURAL_ENDINGS) or len(word) <= 3:
        return word
    if word[:-1] in _IE_WORDS or word.endswith(_USE_PLURAL_ENDINGS):
        return word[:-1]
    for plural, singular in _PLURALS:
        if word.endswith(plural) and len(word) - len(plural) >= 2:
            return word[: -len(plural)] + singular
    return word
