"""A rule-based resolver for persons in English: names, descriptions and third-person pronouns, and no model at all.

Mentions are found by word lists and capitals. They are joined in passes from the surest to the least sure, after Lee et
al. (2013), "Deterministic Coreference Resolution Based on Entity-Centric, Precision-Ranked Rules": equal names, parts
of names, titles, repeated descriptions, and last pronouns, by the salience of Lappin and Leass (1994): every mention of
a person weighs more as a subject, half as much with each sentence that has passed; genders and numbers must agree.
First and second persons are left alone: who speaks is not in the rules.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Literal

import yaml

from finecomb.annotators.coreference.chains import Chains, Mention, only_chains
from finecomb.annotators.coreference.pronouns import FEMALE, MALE, OTHERS, PLURAL
from finecomb.core.sentences import sentences
from finecomb.core.tokens import words

Gender = Literal["M", "F", "P", "N"]

_THEY = ("they", "them", "their", "theirs", "themselves")
_PRONOUNS: dict[str, Gender] = {
    **dict.fromkeys(MALE, "M"), **dict.fromkeys(FEMALE, "F"), **dict.fromkeys(_THEY, "P")
}  # fmt: skip
_REFLEXIVE = {"himself", "herself", "themselves"}
_POSSESSIVE = {"his", "her", "their"}
_DETERMINERS = {"the", "this", "that", "these", "those"}
_INDEFINITE = {"a", "an", "another", "one", "two", "three", "some", "several", "many", "no"}
_BE = {"is", "was", "are", "were", "be", "been", "being", "become", "becomes", "became", "as"}
_PLACES = {"in", "at", "from", "near", "into", "across", "through", "of"}
_BREAKS = set(
    ", ; : — – ( ) but and or that when while where who whom which because until if after before so than".split()
)
_FUNCTION = set(
    "the a an to in on at of from for with by and but or as until when while if that than so into onto over under "
    "about after before because then there here back up down out off away again too first alone home".split()
)
_COMMON = frozenset(_FUNCTION | _DETERMINERS | _INDEFINITE | _BREAKS | {*MALE, *FEMALE, *PLURAL, *OTHERS, "it", "its"})
_VERBS_OR_AND = {"and", "'", "’", "has", "had", "will"}
_RECENCY, _SUBJECT, _OTHER, _UNKNOWN_GENDER = 100.0, 80.0, 40.0, 0.6


@dataclass(frozen=True, slots=True)
class _Lexicon:
    titles: dict[str, Gender]
    nouns: dict[str, Gender]
    names: dict[str, Gender]
    generic: frozenset[str]


@functools.cache
def lexicon() -> _Lexicon:
    """The word lists, by word."""
    text = resources.files(__package__).joinpath("coreference_words.yaml").read_text(encoding="utf-8")
    read = yaml.safe_load(text)

    def by_word(lists: dict[Gender, str]) -> dict[str, Gender]:
        return {word: gender for gender, listed in lists.items() for word in listed.split()}

    titles, nouns, names = (by_word(read[kind]) for kind in ("titles", "nouns", "names"))
    return _Lexicon(titles, nouns, names, frozenset(read["generic"].split()))


@dataclass(frozen=True, slots=True)
class _PersonMention:
    """A mention as the rules see it."""

    span: Mention
    kind: Literal["name", "noun", "pronoun"]
    words: tuple[str, ...]
    """In lower case: the pronoun, the parts of a name without its title, or the head noun."""
    gender: Gender
    sentence: int
    clause: int
    """Numbered through the text."""
    subject: bool = False
    possessive: bool = False
    """A pronoun that owns the noun after it."""
    definite: bool = True
    title: str = ""


@dataclass(slots=True)
class _Person:
    """An entity as it grows."""

    mentions: list[_PersonMention] = field(default_factory=list)

    @property
    def gender(self) -> Gender:
        """Of the first mention that tells one."""
        return next((mention.gender for mention in self.mentions if mention.gender != "N"), "N")

    def leads(self, clause: int) -> bool:
        """Whether a mention is the subject of that clause."""
        return any(mention.subject and mention.clause == clause for mention in self.mentions)

    def salience(self, sentence: int) -> float:
        """Lappin and Leass's weights, halved with each sentence since."""
        return sum(
            (_RECENCY + (_SUBJECT if mention.subject else _OTHER)) * 0.5 ** (sentence - mention.sentence)
            for mention in self.mentions
        )


def sieve(text: str) -> Chains:
    """The chains of persons in an English text.

    >>> text = "Anna met Mr. Brown. She thanked him, and Brown smiled at her."
    >>> [[text[start:end] for start, end in chain] for chain in sieve(text)]
    [['Anna', 'She', 'her'], ['Mr. Brown', 'him', 'Brown']]
    """
    people: list[_Person] = []
    for mention in _mentions(text):
        person = _RULES[mention.kind](mention, people)
        if person is None:
            person = _Person()
            people.append(person)
        person.mentions.append(mention)
    return only_chains([mention.span for mention in person.mentions] for person in people)


# --- finding mentions --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sentence:
    number: int
    tokens: list[str]
    spans: list[Mention]

    def lower(self, at: int) -> str:
        """The token at `at` in lower case, empty outside the sentence."""
        return self.tokens[at].lower() if 0 <= at < len(self.tokens) else ""


def _mentions(text: str) -> list[_PersonMention]:
    rows = [_sentence(text, number, start, end) for number, (start, end) in enumerate(sentences(text).tolist())]
    persons = _person_names(rows)
    mentions: list[_PersonMention] = []
    clause = 0
    for row in rows:
        located = sorted([*_pronouns(row), *_names(row, persons), *_nouns(row)], key=lambda pair: pair[0])
        placed, clause = _placed(row, located, clause)
        mentions += placed
    return mentions


def _sentence(text: str, number: int, start: int, end: int) -> _Sentence:
    spans = [(start + first, start + last) for first, last in words(text[start:end]).tolist()]
    return _Sentence(number, [text[first:last] for first, last in spans], spans)


def _pronouns(row: _Sentence) -> Iterator[tuple[int, _PersonMention]]:
    for at in range(len(row.tokens)):
        word = row.lower(at)
        if word in _PRONOUNS:
            owns = word in _POSSESSIVE and _is_noun_like(row.tokens[at + 1 : at + 2])
            yield at, _PersonMention(row.spans[at], "pronoun", (word,), _PRONOUNS[word], row.number, 0, possessive=owns)


def _is_noun_like(following: Sequence[str]) -> bool:
    return bool(following) and following[0][:1].isalpha() and following[0].lower() not in _FUNCTION


def _nouns(row: _Sentence) -> Iterator[tuple[int, _PersonMention]]:
    nouns = lexicon().nouns
    for at, token in enumerate(row.tokens):
        if token in nouns and row.lower(at + 1) not in nouns and not _is_predicate(row, at):
            marker = _determiner(row, at)
            if marker:
                definite = marker not in _INDEFINITE
                yield (
                    at,
                    _PersonMention(row.spans[at], "noun", (token,), nouns[token], row.number, 0, definite=definite),
                )


def _determiner(row: _Sentence, at: int) -> str:
    """The determiner or possessive at most three words before a noun, or an empty string."""
    for back in range(at - 1, max(at - 5, -1), -1):
        word = row.lower(back)
        if word in _DETERMINERS | _INDEFINITE | _POSSESSIVE or (word == "s" and row.lower(back - 1) in ("'", "’")):
            return word
        if not word.isalpha() or word in _FUNCTION:
            return ""
    return ""


def _is_predicate(row: _Sentence, at: int) -> bool:
    """Whether a noun says what somebody is (`is a pilot`, `Brandt, the director`), which is no mention."""
    back = at - 1
    while back > 0 and row.lower(back).isalpha() and row.lower(back) not in _DETERMINERS | _INDEFINITE | _POSSESSIVE:
        back -= 1
    before = row.lower(back - 1)
    if row.lower(back) in _INDEFINITE and before in _BE | {"once", "not", "only", "still", "just"}:
        return True
    named = row.tokens[back - 2][:1].isupper() if back >= 2 else False
    return before == "," and named and row.lower(back) in {"the", "a", "an"}


def _names(row: _Sentence, persons: set[str]) -> Iterator[tuple[int, _PersonMention]]:
    for first, last in _capitalised_runs(row, persons):
        parts = tuple(token.lower() for token in row.tokens[first:last] if token.isalpha())
        title = parts[0] if parts[0] in lexicon().titles and len(parts) > 1 else ""
        parts = parts[1:] if title else parts
        if title or any(part in persons for part in parts):
            span = (row.spans[first][0], row.spans[last - 1][1])
            yield first, _PersonMention(span, "name", parts, _name_gender(parts, title), row.number, 0, title=title)


def _capitalised_runs(row: _Sentence, names: Set[str]) -> Iterator[tuple[int, int]]:
    """Stretches of capitalised words, with full stops after titles and initials; not of words like `The`."""
    at = 0
    while at < len(row.tokens):
        end = at
        while end < len(row.tokens) and (_is_capitalised(row, end, names) or (end > at and _is_inner_stop(row, end))):
            end += 1
        if end > at:
            yield at, end
        at = max(end, at + 1)


def _is_capitalised(row: _Sentence, at: int, names: Set[str]) -> bool:
    token = row.tokens[at]
    common = row.lower(at) in _COMMON
    return token[:1].isupper() and token.isalpha() and not common and (at > 0 or not _starts_plainly(row, names))


def _starts_plainly(row: _Sentence, extra: Set[str]) -> bool:
    """Whether a sentence begins with an ordinary word: a capital there tells nothing unless the word is known."""
    word, names = row.lower(0), lexicon().names
    if word in names or word in lexicon().titles or word in extra or len(word) == 1:
        return False
    return row.lower(1) in names or not _acts(row, 0)


_ACTS = re.compile(r"\w+(?:s|ed)$")


def _acts(row: _Sentence, at: int) -> bool:
    """Whether the next word looks like a verb of the third person or past, or the next is a name again."""
    following = row.tokens[at + 1] if at + 1 < len(row.tokens) else ""
    return bool(_ACTS.match(following)) or following[:1].isupper() or following in _VERBS_OR_AND


def _is_inner_stop(row: _Sentence, at: int) -> bool:
    before = row.tokens[at - 1]
    follows = at + 1 < len(row.tokens) and row.tokens[at + 1][:1].isupper()
    return row.tokens[at] == "." and follows and (len(before) == 1 or before.lower() in lexicon().titles)


def _person_names(rows: Sequence[_Sentence]) -> set[str]:
    """Words that name a person somewhere in the text: with a title, after a given name, or where persons act."""
    names: set[str] = set()
    for row in rows:
        for first, last in _capitalised_runs(row, names):
            parts = [token.lower() for token in row.tokens[first:last] if token.isalpha()]
            surely = parts[0] in lexicon().names or (parts[0] in lexicon().titles and len(parts) > 1)
            placed = row.lower(first - 1) in _PLACES
            if surely or (not placed and last - first <= 2 and _acts(row, last - 1)):
                names.update(part for part in parts if part not in lexicon().titles)
    return names


def _name_gender(parts: Sequence[str], title: str) -> Gender:
    by_title = lexicon().titles.get(title, "N")
    return by_title if by_title != "N" else lexicon().names.get(parts[0], "N")


def _placed(
    row: _Sentence, located: Sequence[tuple[int, _PersonMention]], clause: int
) -> tuple[list[_PersonMention], int]:
    """Mentions with their clause and whether they are its subject; and the next clause's number."""
    clauses, number = [], clause
    for token in row.tokens:
        number += token.lower() in _BREAKS
        clauses.append(number)
    placed: list[_PersonMention] = []
    with_subject: set[int] = set()
    for at, mention in located:
        here = clauses[at]
        opens = here not in with_subject and _opens(row, at, clauses)
        subject = opens and not mention.possessive and not _owns(row, mention)
        if subject:
            with_subject.add(here)
        placed.append(replace(mention, clause=here, subject=subject))
    return placed, number + 1


def _opens(row: _Sentence, at: int, clauses: Sequence[int]) -> bool:
    """Whether only a conjunction, determiners, adjectives and owners stand before the mention in its clause."""
    start = clauses.index(clauses[at])
    between = [row.lower(place) for place in range(start, at)]
    allowed = _BREAKS | _DETERMINERS | _INDEFINITE | _POSSESSIVE | {"young", "old", "elder", "youngest", "s", "'", "’"}
    return all(word in allowed for word in between) or (len(between) < 4 and between[:1] in (["in"], ["on"], ["at"]))


def _owns(row: _Sentence, mention: _PersonMention) -> bool:
    """Whether `'s` follows a mention."""
    after = next((at for at, span in enumerate(row.spans) if span[0] >= mention.span[1]), len(row.spans))
    return row.lower(after) in ("'", "’") and row.lower(after + 1) == "s"


# --- joining them ------------------------------------------------------------------------------------------------


def _same_name(mention: _PersonMention, people: Sequence[_Person]) -> _Person | None:
    """The latest person with this name, or one whose name has all its parts or only parts of it."""
    mine = set(mention.words)
    for person in reversed(people):
        for other in person.mentions:
            theirs = set(other.words)
            alike = other.kind == "name" and (mine <= theirs or theirs <= mine)
            if alike and _agree(mention.gender, person.gender):
                return person
    return None


def _same_noun(mention: _PersonMention, people: Sequence[_Person]) -> _Person | None:
    """The latest person described so before, or with that title; a generic noun takes whoever fits best."""
    if not mention.definite:
        return None
    (noun,) = mention.words
    for person in reversed(people):
        if any(_describes(noun, other) for other in person.mentions) and _agree(mention.gender, person.gender):
            return person
    if noun in lexicon().generic:
        described = [person for person in people if all(other.kind != "name" for other in person.mentions)]
        return _most_salient(mention, [person for person in described if _agree(mention.gender, person.gender)])
    return None


def _describes(noun: str, other: _PersonMention) -> bool:
    title = {"dr": "doctor"}.get(other.title, other.title)
    return (other.kind == "noun" and other.words == (noun,)) or title == noun


def _antecedent(mention: _PersonMention, people: Sequence[_Person]) -> _Person | None:
    """The most salient person of the right gender and number that the clause allows."""
    able = [person for person in people if _agree(mention.gender, person.gender) and _recent(person, mention)]
    subjects = [person for person in able if person.leads(mention.clause)]
    if mention.words[0] in _REFLEXIVE:
        return _most_salient(mention, subjects or able)
    if not mention.subject and not mention.possessive:
        able = [person for person in able if person not in subjects]
    return _most_salient(mention, able)


_RULES = {"name": _same_name, "noun": _same_noun, "pronoun": _antecedent}


def _agree(one: Gender, other: Gender) -> bool:
    """Equal genders agree, and an unknown one agrees with he and she but not with they."""
    return one == other or ("N" in (one, other) and "P" not in (one, other))


def _recent(person: _Person, mention: _PersonMention) -> bool:
    return mention.sentence - person.mentions[-1].sentence <= 4


def _most_salient(mention: _PersonMention, people: Sequence[_Person]) -> _Person | None:
    def weight(person: _Person) -> float:
        return person.salience(mention.sentence) * (_UNKNOWN_GENDER if person.gender == "N" else 1.0)

    return max(people, key=weight, default=None)
