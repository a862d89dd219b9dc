"""Names and noun phrases in a sentence, with their roles, descriptions and determiners."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from finecomb.annotators.detectors.coherence.grammar_parse import ParsedSentence

SUBJECT_RELATIONS = frozenset({"nsubj", "nsubjpass", "csubj"})
OBJECT_RELATIONS = frozenset({"dobj", "dative", "obj", "iobj"})
_PERSON_TITLES = frozenset(
    "mr mrs ms miss dr sir lady lord madame madam monsieur captain colonel mr. mrs. ms. dr.".split()
)
_NON_NAME_ENTITY_TYPES = frozenset({"DATE", "TIME", "CARDINAL", "ORDINAL", "MONEY", "PERCENT", "QUANTITY", "LANGUAGE"})
_PLACE_ENTITY_TYPES = frozenset({"GPE", "LOC", "FAC"})
_OTHER_ENTITY_TYPES = frozenset({"ORG", "NORP", "WORK_OF_ART", "EVENT", "LAW", "PRODUCT"})
_PLACE_PREPOSITIONS = frozenset({"in", "at", "from", "into", "near", "through", "across", "around", "outside"})
_DESCRIBING_RELATIONS = frozenset({"appos", "relcl", "acl"})
_NON_NAME_POS = frozenset({"DET", "PRON", "ADP", "CCONJ", "SCONJ", "AUX", "PART", "INTJ", "NUM"})
_OPENING_SIGNS = frozenset({'"', "“", "‘", "'", ":", "-", "—", "("})
"""Signs after which a capital letter does not indicate a name."""
_NAMING_VERBS = frozenset({"name", "call", "know", "nickname"})

NameKind = Literal["person", "place", "other"]
Determiner = Literal["definite", "demonstrative", "possessive", "indefinite", "bare"]


@dataclass(frozen=True, slots=True)
class NameMention:
    """A name in a sentence."""

    words: frozenset[str]
    """Lower-case words without titles."""
    start: int
    end: int
    head: int
    """Index of the head token."""
    kind: NameKind
    role: str
    """Grid role: S for subject, O for object, X for other."""
    description: frozenset[str]
    """Lemmas of descriptive nouns: an apposition, a noun before the name, or a complement of `be`."""
    described: bool
    """True if anything describes the name, including a relative clause, a possessor or `named`."""
    owns: bool
    """True for a possessor, as in `Nora's garden`."""
    listed: bool
    """True if the name is in a list of names."""
    typed: bool = False
    """True if the named entity recogniser labels it as a person."""


@dataclass(frozen=True, slots=True)
class NounMention:
    """A noun phrase whose head is a common noun."""

    lemma: str
    start: int
    end: int
    determiner: Determiner
    role: str
    explained: bool
    """True if a clause or a phrase with `of` specifies the noun."""


def grid_role(dep: str) -> str:
    """Return the role of a dependency relation in an entity grid: S, O or X."""
    return "S" if dep in SUBJECT_RELATIONS else "O" if dep in OBJECT_RELATIONS else "X"


def find_name_mentions(sentence: ParsedSentence) -> list[NameMention]:
    """Return the names of a sentence in text order."""
    mentions, index = [], 0
    while index < len(sentence):
        end = index
        while end < len(sentence):
            token = sentence[end]
            if token.entity in _NON_NAME_ENTITY_TYPES or not token.text[:1].isupper() or token.pos in _NON_NAME_POS:
                break
            # A capital letter shows a name inside a run of names, or where a lower-case word could be.
            is_capitalised_name = end > index or (
                end > 0 and token.text[1:].islower() and sentence[end - 1].text not in _OPENING_SIGNS
            )
            if token.pos != "PROPN" and not token.entity and not is_capitalised_name:
                break
            end += 1
        if any(token.text.lower() not in _PERSON_TITLES for token in sentence[index:end]):
            mentions.append(_build_name_mention(sentence, index, end))
        index = max(end, index + 1)
    return mentions


def _build_name_mention(sentence: ParsedSentence, first: int, last: int) -> NameMention:
    head = next(
        (index for index in range(last - 1, first - 1, -1) if not first <= sentence[index].head < last), last - 1
    )
    token = sentence[head]
    words = frozenset(
        word.text.lower().strip(".") for word in sentence[first:last] if word.text.lower() not in _PERSON_TITLES
    )
    nouns = frozenset(
        noun.lemma
        for index, noun in enumerate(sentence)
        if noun.pos == "NOUN"
        and (
            (first - 3 <= index < first and first <= noun.head < last)
            or (noun.dep == "appos" and noun.head == head)
            or (token.dep == "appos" and token.head == index)
            or (
                noun.dep == "attr"
                and sentence[noun.head].lemma in {"be", "become"}
                and token.head == noun.head
                and token.dep in SUBJECT_RELATIONS
            )
        )
    )
    is_named = sentence[token.head].lemma in _NAMING_VERBS
    described = (
        bool(nouns)
        or is_named
        or any(child.head == head and child.dep in _DESCRIBING_RELATIONS | {"poss"} for child in sentence)
    )
    owns = token.dep == "poss"
    listed = token.dep == "conj" or any(other.dep == "conj" and other.head == head for other in sentence)
    entities = {token.entity for token in sentence[first:last]}
    dep = _dependency_relation(sentence, head)
    kind: NameKind
    if dep in SUBJECT_RELATIONS | OBJECT_RELATIONS | {"poss", "agent", "npadvmod"} or "PERSON" in entities:
        kind = "person"
    elif entities & _PLACE_ENTITY_TYPES or (
        dep == "pobj" and sentence[sentence[head].head].lemma in _PLACE_PREPOSITIONS
    ):
        kind = "place"
    else:
        kind = "other" if entities & _OTHER_ENTITY_TYPES or dep in {"compound", "amod"} else "person"
    return NameMention(
        words, sentence[first].start, sentence[last - 1].end, head, kind, grid_role(dep), nouns, described,
        owns, listed, any(word.entity == "PERSON" for word in sentence[first:last]),
    )  # fmt: skip


def _dependency_relation(sentence: ParsedSentence, index: int) -> str:
    """Return the dependency relation of a token. In a list, this is the relation of the first item."""
    for _ in range(8):
        if sentence[index].dep != "conj":
            break
        index = sentence[index].head
    return sentence[index].dep


def find_noun_mentions(sentence: ParsedSentence) -> Iterator[NounMention]:
    """Yield the noun phrases whose head is a common noun."""
    for index, token in enumerate(sentence):
        if token.pos != "NOUN" or token.dep in {"compound", "npadvmod"} or token.entity in _NON_NAME_ENTITY_TYPES:
            continue
        children = [(place, other) for place, other in enumerate(sentence) if other.head == index and place != index]
        start = min([token.start, *(other.start for place, other in children if place < index)])
        explained = any(
            other.dep in _DESCRIBING_RELATIONS or other.lemma == "of" for place, other in children if place > index
        )
        determiner: Determiner = "bare"
        marker = next((other for _, other in children if other.dep in {"poss", "det"}), None)
        if marker is not None and marker.dep == "poss":
            determiner = "possessive"
        elif marker is not None and marker.lemma in {"a", "an"}:
            determiner = "indefinite"
        elif marker is not None:
            determiner = "definite" if marker.lemma == "the" else "demonstrative"
        role = grid_role(_dependency_relation(sentence, index))
        yield NounMention(token.lemma, start, token.end, determiner, role, explained)
