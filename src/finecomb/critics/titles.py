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
_SINGULAR = {
    "analyses": "analysis",
    "appendices": "appendix",
    "bases": "basis",
    "children": "child",
    "criteria": "criterion",
    "diagnoses": "diagnosis",
    "hypotheses": "hypothesis",
    "indices": "index",
    "men": "man",
    "people": "person",
    "series": "series",
    "species": "species",
    "synopses": "synopsis",
    "theses": "thesis",
    "women": "woman",
}
_KEPT = ("ss", "us", "is", "ics", "'s", "’s")
"""Endings in s that are no plural."""
_PLURALS = (("ies", "y"), ("sses", "ss"), ("shes", "sh"), ("ches", "ch"), ("xes", "x"), ("zes", "z"), ("s", ""))


def normalised(title: str) -> str:
    """A title as a section type.

    >>> normalised("2.1 Materials and Methods"), normalised("Acknowledgements"), normalised("SEE ALSO")
    ('material and method', 'acknowledgment', 'see also')
    """
    return " ".join(_standard(word) for word in _WORD.findall(title.lower()))


@functools.lru_cache(maxsize=65_536)
def _standard(word: str) -> str:
    singular = _singular(word)
    return _SPELLINGS.get(singular, singular)


def _singular(word: str) -> str:
    if word in _SINGULAR:
        return _SINGULAR[word]
    if word.endswith(_KEPT) or len(word) <= 3:
        return word
    for plural, singular in _PLURALS:
        if word.endswith(plural) and len(word) - len(plural) >= 2:
            return word[: -len(plural)] + singular
    return word
