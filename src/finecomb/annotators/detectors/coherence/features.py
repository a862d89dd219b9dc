"""Coherence features of a sentence, computed from the sentence and the preceding text without a language model.

They cover first mentions and their descriptions, noun phrases that presuppose something known, continuity of entities,
unresolved pronouns, and repeated or contradicting events and attributes. No feature uses later sentences.
"""

from __future__ import annotations

import bisect
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from finecomb.annotators.coreference.resolver import resolve_coreference
from finecomb.annotators.detectors.coherence.entity_mentions import (
    OBJECT_RELATIONS,
    SUBJECT_RELATIONS,
    NameMention,
    NounMention,
    find_name_mentions,
    find_noun_mentions,
)
from finecomb.annotators.detectors.coherence.grammar_parse import ParsedSentence, ParsedToken
from finecomb.annotators.detectors.coherence.narrative import Narrative

Floats = NDArray[np.float64]
_CONTENT_POS = frozenset({"NOUN", "VERB", "ADJ", "PROPN"})
_OPENING_POS = ("PRON", "PROPN", "DET", "ADP", "SCONJ", "ADV", "CCONJ", "NOUN", "VERB")
_PERSONAL_PRONOUNS = frozenset("he she him her his hers they them their theirs".split())
_DEATH_VERBS = frozenset("die kill murder execute drown perish".split())
_COREFERENCE_WINDOW = 8
_MAX_NAME_AGE = 40.0
POSITIONAL_FEATURES = frozenset({"position", "position.log", "opens", "first", "segment", "in.segment"})
"""Features of a sentence's position, independent of its content."""
_NOMINAL_SUFFIXES = ("tion", "ment", "ance", "ence", "ing", "al", "ure", "sion")


@dataclass(slots=True)
class _DiscourseMemory:
    """The information given by the preceding text."""

    names: dict[str, int] = field(default_factory=dict)
    """Index of the last sentence that contains each word of a name."""
    described: set[str] = field(default_factory=set)
    lemmas: dict[str, int] = field(default_factory=dict)
    """Index of the last sentence that contains each content lemma."""
    events: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Counts of events as (subject, verb, object). A pronoun as subject is replaced with an empty string."""
    denied: dict[tuple[str, str], bool] = field(default_factory=dict)
    """True if the last event with a given subject and verb was negated."""
    attributes: dict[str, set[str]] = field(default_factory=dict)
    """Descriptive nouns of a name, by each word of the name."""
    dead: set[str] = field(default_factory=set)
    subjects: frozenset[str] = frozenset()
    """Subjects of the last sentence."""


@dataclass(frozen=True, slots=True)
class SentenceFacts:
    """The names, nouns, subjects and events of one sentence."""

    tokens: ParsedSentence
    people: list[NameMention]
    things: list[NounMention]
    content: frozenset[str]
    """Lemmas of nouns, verbs, adjectives and proper names."""
    subjects: frozenset[str]
    events: list[tuple[tuple[str, str, str], bool]]
    """(Subject, verb, object) of each clause, with True if negated."""


def extract_sentence_facts(sentence: ParsedSentence) -> SentenceFacts:
    """Extract the names, nouns, subjects and events of a sentence."""
    events = []
    for index, token in enumerate(sentence):
        if token.pos not in {"VERB", "AUX"} or token.dep in {"aux", "auxpass"}:
            continue
        children = [other for place, other in enumerate(sentence) if other.head == index and place != index]
        subject = _find_child_word(children, SUBJECT_RELATIONS)
        if subject or token.pos == "VERB":
            negated = any(child.dep == "neg" for child in children)
            events.append(
                ((subject, token.lemma, _find_child_word(children, OBJECT_RELATIONS | {"attr", "acomp"})), negated)
            )
    return SentenceFacts(
        sentence,
        find_name_mentions(sentence),
        list(find_noun_mentions(sentence)),
        frozenset(token.lemma for token in sentence if token.pos in _CONTENT_POS and len(token.lemma) > 1),
        frozenset(token.text.lower() for token in sentence if token.dep in SUBJECT_RELATIONS and token.pos != "PRON"),
        events,
    )


EMPTY_FACTS = SentenceFacts((), [], [], frozenset(), frozenset(), [])


def sentence_features(text: Narrative, sentences: Sequence[ParsedSentence]) -> list[dict[str, float]]:
    """Return the features of each sentence in a text."""
    memory = _DiscourseMemory()
    facts = [extract_sentence_facts(sentence) for sentence in sentences]
    rows: list[dict[str, float]] = []
    for index, sentence in enumerate(facts):
        rows.append(_feature_row(text, facts, index, memory))
        _add_sentence_to_memory(memory, sentence, index)
    return rows


def last_sentence_features(text: Narrative, facts: Sequence[SentenceFacts]) -> dict[str, float]:
    """Return the features of the last sentence in a text."""
    memory = _DiscourseMemory()
    for index, sentence in enumerate(facts[:-1]):
        _add_sentence_to_memory(memory, sentence, index)
    return _feature_row(text, facts, len(facts) - 1, memory)


def _feature_row(
    text: Narrative, facts: Sequence[SentenceFacts], index: int, memory: _DiscourseMemory
) -> dict[str, float]:
    sentence, before = facts[index], facts[index - 1] if index else EMPTY_FACTS
    row: dict[str, float] = {"nouns": float(len(sentence.things))}
    for kind in ("definite", "demonstrative", "possessive", "indefinite", "bare"):
        phrases = [noun for noun in sentence.things if noun.determiner == kind]
        new = [noun for noun in phrases if noun.lemma not in memory.lemmas]
        row[f"nouns.{kind}"] = float(len(phrases))
        row[f"nouns.{kind}.new"] = float(len(new))
        row[f"nouns.{kind}.new.bare"] = float(sum(not noun.explained for noun in new))
        row[f"nouns.{kind}.new.event"] = float(sum(noun.lemma.endswith(_NOMINAL_SUFFIXES) for noun in new))
        row[f"nouns.{kind}.new.subject"] = float(sum(noun.role == "S" for noun in new))
    ages = [index - memory.lemmas[noun.lemma] for noun in sentence.things if noun.lemma in memory.lemmas]
    row["nouns.age.max"] = float(max(ages, default=0))
    row["nouns.known"] = len(ages) / max(len(sentence.things), 1)
    return {
        **_position_and_form_features(text, index, sentence.tokens, before.tokens),
        **_name_features(sentence.people, memory, index),
        **row,
        **_continuity_features(sentence, before, facts[max(index - 4, 0) : index], memory),
        **_event_features(sentence, memory),
        **_coreference_features(text, index),
    }


def feature_matrix(rows: Iterable[Mapping[str, float]], columns: Sequence[str]) -> Floats:
    """Return a feature matrix, (rows, columns), with 0 for missing features."""
    return np.array([[row.get(name, 0.0) for name in columns] for row in rows], dtype=np.float64).reshape(
        -1, len(columns)
    )


# --- feature groups ----------------------------------------------------------------------------------------------


def _position_and_form_features(
    text: Narrative, index: int, sentence: ParsedSentence, before: ParsedSentence
) -> dict[str, float]:
    place = text.sentences[index]
    opening = bisect.bisect_left(text.sentences, place.segment, key=lambda sentence: sentence.segment)
    first = next((token.pos for token in sentence if token.pos not in {"PUNCT", "SPACE"}), "")
    words = [token for token in sentence if token.pos not in {"PUNCT", "SPACE"}]
    return {
        "position": float(index), "position.log": math.log1p(index), "opens": float(place.opens),
        "first": float(index == 0),
        "segment": float(place.segment), "in.segment": float(index - opening),
        "words": float(len(words)), "words.before": float(len(before)),
        "ends": float(text.sentence_text(index)[-1:] in ".!?\"”'’"),
        "quotes": float(sum(token.text in "\"“”‘’" for token in sentence)),
        "capitals": float(sum(token.text.isupper() and len(token.text) > 2 for token in sentence)),
        "verbs": float(sum(token.pos == "VERB" for token in sentence)),
        "past": float(sum(token.tag in {"VBD", "VBN"} for token in sentence)),
        "past.before": float(sum(token.tag in {"VBD", "VBN"} for token in before)),
        "perfect": float(sum(token.lemma == "have" and token.dep == "aux" for token in sentence)),
        "times": float(sum(token.entity in {"DATE", "TIME"} for token in sentence)),
        "adverbs": float(sum(token.pos == "ADV" for token in sentence)),
        "passive": float(sum(token.dep == "nsubjpass" for token in sentence)),
        "clauses": float(sum(token.dep in {"advcl", "relcl", "ccomp"} for token in sentence)),
        **{f"starts.{pos}": float(first == pos) for pos in _OPENING_POS},
    }  # fmt: skip


def _name_features(people: Sequence[NameMention], memory: _DiscourseMemory, index: int) -> dict[str, float]:
    new = [name for name in people if not name.words & memory.names.keys()]
    fresh: list[NameMention] = []
    for name in new:
        if not any(name.words & other.words for other in fresh):
            fresh.append(name)
    persons = [name for name in fresh if name.kind == "person"]
    known = [name for name in people if name.words & memory.names.keys()]
    ages = [index - max(memory.names.get(word, -1) for word in name.words) for name in known]
    undescribed = [name for name in persons if not name.described]
    return {
        "names": float(len(people)), "names.known": float(len(known)), "names.new": float(len(fresh)),
        "persons.new": float(len(persons)), "persons.bare": float(len(undescribed)),
        "persons.bare.subject": float(sum(name.role == "S" for name in undescribed)),
        "persons.bare.object": float(sum(name.role == "O" for name in undescribed)),
        "persons.bare.owner": float(sum(name.owns for name in undescribed)),
        "persons.bare.listed": float(sum(name.listed for name in undescribed)),
        "persons.bare.one.word": float(sum(len(name.words) == 1 for name in undescribed)),
        "persons.bare.typed": float(sum(name.typed for name in undescribed)),
        "persons.bare.rest": float(sum(name.role == "X" and not name.owns for name in undescribed)),
        "persons.described.noun": float(sum(bool(name.description) for name in persons)),
        "persons.described.subject": float(sum(name.described and name.role == "S" for name in persons)),
        "persons.described": float(len(persons) - len(undescribed)),
        "places.new": float(sum(name.kind == "place" for name in fresh)),
        "others.new": float(sum(name.kind == "other" for name in fresh)),
        "names.partly.new": float(sum(any(word not in memory.names for word in name.words) for name in known)),
        "names.age.max": float(max(ages, default=0)), "names.age.min": float(min(ages, default=_MAX_NAME_AGE)),
        "names.known.ever": float(len(memory.names)),
        "undescribed.again": float(sum(not name.words & memory.described for name in known)),
    }  # fmt: skip


def _continuity_features(
    sentence: SentenceFacts, before: SentenceFacts, recent: Sequence[SentenceFacts], memory: _DiscourseMemory
) -> dict[str, float]:
    content, subjects = sentence.content, sentence.subjects
    wider = frozenset().union(*(other.content for other in recent))
    spoken = [token for token in sentence.tokens if token.dep in SUBJECT_RELATIONS]
    words = frozenset().union(*(name.words for name in sentence.people))
    last = frozenset().union(*(name.words for name in before.people))
    return {
        "shared.before": len(content & before.content) / max(len(content), 1),
        "shared.recent": len(content & wider) / max(len(content), 1),
        "shared.ever": sum(lemma in memory.lemmas for lemma in content) / max(len(content), 1),
        "new.content": float(sum(lemma not in memory.lemmas for lemma in content)),
        "subject.same": float(bool(subjects & memory.subjects)),
        "subject.pronoun": float(any(token.pos == "PRON" for token in spoken)),
        "subject.new": float(bool(subjects) and not subjects & (memory.lemmas.keys() | memory.names.keys())),
        "subject.in.last": float(bool(subjects & (before.content | last))),
        "people.shared.before": float(len(words & last)),
        "people.gone": float(len(last - words)),
        "verbs.known": float(sum(token.lemma in memory.lemmas for token in sentence.tokens if token.pos == "VERB")),
    }


def _find_child_word(children: Sequence[ParsedToken], deps: Set[str]) -> str:
    return next(
        (child.text.lower() if child.pos == "PROPN" else child.lemma for child in children if child.dep in deps), ""
    )


def _event_features(sentence: SentenceFacts, memory: _DiscourseMemory) -> dict[str, float]:
    events, people = sentence.events, sentence.people
    acting = {event[0] for event, _ in events}
    again = sum(memory.events[event] > 0 for event, _ in events if all(event))
    partly = sum((event[0], event[1]) in memory.denied for event, _ in events if event[0] and event[1] != "be")
    contrary = sum(memory.denied.get((event[0], event[1]), negated) != negated for event, negated in events)
    old = [
        (name, set().union(*(memory.attributes.get(word, set()) for word in name.words)) if name.words else set())
        for name in people
    ]
    return {
        "events": float(len(events)), "events.again": float(again), "events.same.actor": float(partly),
        "events.contrary": float(contrary), "negations": float(sum(negated for _, negated in events)),
        "dead.acts": float(len(acting & memory.dead)),
        "dead.named": float(sum(bool(name.words & memory.dead) for name in people)),
        "fatal": float(any(event[1] in _DEATH_VERBS for event, _ in events)),
        "attributes.again": float(sum(bool(name.description & known) for name, known in old)),
        "attributes.other": float(sum(bool(known) and bool(name.description - known) for name, known in old)),
    }  # fmt: skip


def _coreference_features(text: Narrative, index: int) -> dict[str, float]:
    """Return features of the coreference chains in the last few sentences, without using later ones."""
    begin = text.sentences[max(index - _COREFERENCE_WINDOW + 1, 0)].start
    sentence = text.sentences[index]
    chains = resolve_coreference(text.text[begin : sentence.end])
    inside = [[begin + start for start, _ in chain] for chain in chains]
    linked = [starts for starts in inside if starts[0] < sentence.start <= starts[-1]]
    last = text.sentences[index - 1].start if index else sentence.start
    resolved = {start for starts in linked for start in starts if start >= sentence.start}
    pronouns = []
    for match in re.finditer(r"\S+", text.sentence_text(index)):
        word = match[0]
        if word.strip(".,;:!?\"'()").lower() in _PERSONAL_PRONOUNS:
            pronouns.append(sentence.start + match.start() + len(word) - len(word.lstrip("\"'(")))
    return {
        "links": float(len(linked)),
        "links.last": float(sum(any(last <= start < sentence.start for start in starts) for starts in linked)),
        "pronouns": float(len(pronouns)),
        "pronouns.lost": float(sum(start not in resolved for start in pronouns)),
    }


def _add_sentence_to_memory(memory: _DiscourseMemory, sentence: SentenceFacts, index: int) -> None:
    for name in sentence.people:
        memory.names |= dict.fromkeys(name.words, index)
        if name.described:
            memory.described |= name.words
        for word in name.words:
            memory.attributes.setdefault(word, set()).update(name.description)
    memory.lemmas |= dict.fromkeys(sentence.content, index)
    for event, negated in sentence.events:
        memory.events[event] += 1
        memory.denied[event[0], event[1]] = negated
        victim = event[0] if event[1] in {"die", "drown", "perish"} else event[2] if event[1] in _DEATH_VERBS else ""
        memory.dead |= {victim} & memory.names.keys()
    memory.subjects = sentence.subjects
