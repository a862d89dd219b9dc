"""Who and what a sentence mentions: names and whether they are described, noun phrases and how they are determined."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from finecomb.annotators.detectors.coherence.grammar_parse import ParsedSentence, ParsedToken

SUBJECT_RELATIONS = frozenset({"nsubj", "nsubjpass", "csubj"})
OBJECT_RELATIONS = frozenset({"dobj", "dative", "obj", "iobj"})
_TITLES = frozenset("mr mrs ms miss dr sir lady lord madame madam monsieur captain colonel mr. mrs. ms. dr.".split())
_NON_PERSON_ENTITIES = frozenset({"DATE", "TIME", "CARDINAL", "ORDINAL", "MONEY", "PERCENT", "QUANTITY", "LANGUAGE"})
_PLACE_ENTITIES = frozenset({"GPE", "LOC", "FAC"})
_OTHER_ENTITIES = frozenset({"ORG", "NORP", "WORK_OF_ART", "EVENT", "LAW", "PRODUCT"})
_PLACE_PREPOSITIONS = frozenset({"in", "at", "from", "into", "near", "through", "across", "around", "outside"})
_DESCRIBING = frozenset({"appos", "relcl", "acl"})
_NON_NAME_POS = frozenset({"DET", "PRON", "ADP", "CCONJ", "SCONJ", "AUX", "PART", "INTJ", "NUM"})
_OPENERS = frozenset({'"', "“", "‘", "'", ":", "-", "—", "("})
"""Signs after which a capital is no name."""
_NAMING = frozenset({"name", "call", "know", "nickname"})

NameKind = Literal["person", "place", "other"]
Determiner = Literal["definite", "demonstrative", "possessive", "indefinite", "bare"]


@dataclass(frozen=True, slots=True)
class NameMention:
    """A name in a sentence."""

    words: frozenset[str]
    """Its words in lower case, titles left out."""
    start: int
    end: int
    head: int
    """Place of its head token."""
    kind: NameKind
    role: str
    """S for a subject, O for an object, X for anything else."""
    description: frozenset[str]
    """Lemmas of the nouns that say who this is: an apposition, a noun before the name, what comes after `is`."""
    described: bool
    """Whether anything says who this is, also a relative clause, an owner or `named`."""
    owns: bool
    """Whether something belongs to it: `Nora's garden`."""
    listed: bool
    """Whether it stands in a list of names."""
    typed: bool = False
    """Whether a recogniser of names says that this is a person."""


@dataclass(frozen=True, slots=True)
class NounMention:
    """A noun phrase without a name."""

    lemma: str
    start: int
    end: int
    determiner: Determiner
    role: str
    explained: bool
    """Whether a clause or a phrase with `of` says which one is meant."""


def grid_role(dep: str) -> str:
    """The role in an entity grid: S, O or X."""
    return "S" if dep in SUBJECT_RELATIONS else "O" if dep in OBJECT_RELATIONS else "X"


def names(sentence: ParsedSentence) -> list[NameMention]:
    """The names of a sentence in text order."""
    return [_build_name_mention(sentence, first, last) for first, last in _name_runs(sentence)]


def _name_runs(sentence: ParsedSentence) -> Iterator[tuple[int, int]]:
    at = 0
    while at < len(sentence):
        end = at
        while end < len(sentence) and _is_name_token(sentence, end, inside=end > at):
            end += 1
        words = [token.text.lower() for token in sentence[at:end]]
        if end > at and any(word not in _TITLES for word in words):
            yield at, end
        at = max(end, at + 1)


def _is_name_token(sentence: ParsedSentence, at: int, inside: bool) -> bool:
    token = sentence[at]
    if token.entity in _NON_PERSON_ENTITIES or not token.text[:1].isupper() or token.pos in _NON_NAME_POS:
        return False
    if token.pos == "PROPN" or token.entity:
        return True
    return inside or (at > 0 and token.text[1:].islower() and sentence[at - 1].text not in _OPENERS)


def _build_name_mention(sentence: ParsedSentence, first: int, last: int) -> NameMention:
    head = next((at for at in range(last - 1, first - 1, -1) if not first <= sentence[at].head < last), last - 1)
    token = sentence[head]
    words = frozenset(word.text.lower().strip(".") for word in sentence[first:last] if word.text.lower() not in _TITLES)
    nouns = frozenset(_description(sentence, first, last, head))
    described = bool(nouns) or _is_described(sentence, head)
    owns = token.dep == "poss"
    listed = token.dep == "conj" or any(other.dep == "conj" and other.head == head for other in sentence)
    kind = _name_kind(sentence, first, last, head)
    return NameMention(
        words, sentence[first].start, sentence[last - 1].end, head, kind, grid_role(_dependency_relation(sentence,
        head)), nouns, described,
        owns, listed, any(word.entity == "PERSON" for word in sentence[first:last]),
    )  # fmt: skip


def _dependency_relation(sentence: ParsedSentence, at: int) -> str:
    """The relation of a token; of one in a list that of the first."""
    for _ in range(8):
        if sentence[at].dep != "conj":
            break
        at = sentence[at].head
    return sentence[at].dep


def _name_kind(sentence: ParsedSentence, first: int, last: int, head: int) -> NameKind:
    """What a name stands for: whoever acts or owns is a person, whatever a recogniser of names says."""
    entities = {token.entity for token in sentence[first:last]}
    dep = _dependency_relation(sentence, head)
    if dep in SUBJECT_RELATIONS | OBJECT_RELATIONS | {"poss", "agent", "npadvmod"} or "PERSON" in entities:
        return "person"
    if entities & _PLACE_ENTITIES or (dep == "pobj" and sentence[sentence[head].head].lemma in _PLACE_PREPOSITIONS):
        return "place"
    return "other" if entities & _OTHER_ENTITIES or dep in {"compound", "amod"} else "person"


def _description(sentence: ParsedSentence, first: int, last: int, head: int) -> Iterator[str]:
    for at, token in enumerate(sentence):
        if token.pos != "NOUN":
            continue
        before = first - 3 <= at < first and token.head in range(first, last)
        after = token.dep == "appos" and token.head == head
        over = sentence[head].dep == "appos" and sentence[head].head == at
        verb = sentence[token.head]
        copula = token.dep == "attr" and verb.lemma in {"be", "become"} and sentence[head].head == token.head
        if before or after or over or (copula and sentence[head].dep in SUBJECT_RELATIONS):
            yield token.lemma


def _is_described(sentence: ParsedSentence, head: int) -> bool:
    children = [token for token in sentence if token.head == head]
    naming = sentence[sentence[head].head].lemma in _NAMING
    return naming or any(token.dep in _DESCRIBING or (token.dep == "poss") for token in children)


def nouns(sentence: ParsedSentence) -> Iterator[NounMention]:
    """Noun phrases whose head is a common noun."""
    for at, token in enumerate(sentence):
        if token.pos != "NOUN" or token.dep in {"compound", "npadvmod"} or token.entity in _NON_PERSON_ENTITIES:
            continue
        children = [(place, other) for place, other in enumerate(sentence) if other.head == at and place != at]
        start = min([token.start, *(other.start for place, other in children if place < at)])
        explained = any(other.dep in _DESCRIBING or other.lemma == "of" for place, other in children if place > at)
        yield NounMention(
            token.lemma, start, token.end, _determiner([other for _, other in children]),
            grid_role(_dependency_relation(sentence, at)),
            explained,
        )  # fmt: skip


def _determiner(children: list[ParsedToken]) -> Determiner:
    for child in children:
        if child.dep == "poss":
            return "possessive"
        if child.dep == "det":
            return (
                "definite" if child.lemma == "the" else "indefinite" if child.lemma in {"a", "an"} else "demonstrative"
            )
    return "bare"
