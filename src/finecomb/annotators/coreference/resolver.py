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

from finecomb.annotators.coreference.chains import Chains, Mention, build_chains
from finecomb.annotators.coreference.pronouns import FEMALE, FIRST_SECOND_PERSON, MALE, PLURAL
from finecomb.core.sentences import sentences
from finecomb.core.tokens import words

Gender = Literal["M", "F", "P", "N"]

_THEY = ("they", "them", "their", "theirs", "themselves")
_GENDER_BY_PRONOUN: dict[str, Gender] = {
    **dict.fromkeys(MALE, "M"), **dict.fromkeys(FEMALE, "F"), **dict.fromkeys(_THEY, "P")
}  # fmt: skip
_REFLEXIVE = {"himself", "herself", "themselves"}
_POSSESSIVE = {"his", "her", "their"}
_DETERMINERS = {"the", "this", "that", "these", "those"}
_INDEFINITE = {"a", "an", "another", "one", "two", "three", "some", "several", "many", "no"}
_COPULAS = {"is", "was", "are", "were", "be", "been", "being", "become", "becomes", "became", "as"}
_PLACE_PREPOSITIONS = {"in", "at", "from", "near", "into", "across", "through", "of"}
_CLAUSE_BREAKS = set(
    ", ; : — – ( ) but and or that when while where who whom which because until if after before so than".split()
)
_FUNCTION_WORDS = set(
    "the a an to in on at of from for with by and but or as until when while if that than so into onto over under "
    "about after before because then there here back up down out off away again too first alone home".split()
)
_COMMON = frozenset(
    _FUNCTION_WORDS
    | _DETERMINERS
    | _INDEFINITE
    | _CLAUSE_BREAKS
    | {*MALE, *FEMALE, *PLURAL, *FIRST_SECOND_PERSON, "it", "its"}
)
_NAME_FOLLOWERS = {"and", "'", "’", "has", "had", "will"}
_RECENCY_WEIGHT, _SUBJECT_WEIGHT, _OTHER_ROLE_WEIGHT, _UNKNOWN_GENDER_FACTOR = 100.0, 80.0, 40.0, 0.6


@dataclass(frozen=True, slots=True)
class _Lexicon:
    titles: dict[str, Gender]
    nouns: dict[str, Gender]
    names: dict[str, Gender]
    generic: frozenset[str]


@functools.cache
def load_lexicon() -> _Lexicon:
    """The word lists, by word."""
    text = resources.files(__package__).joinpath("coreference_words.yaml").read_text(encoding="utf-8")
    read = yaml.safe_load(text)

    def invert_word_lists(lists: dict[Gender, str]) -> dict[str, Gender]:
        return {word: gender for gender, listed in lists.items() for word in listed.split()}

    titles, nouns, names = (invert_word_lists(read[kind]) for kind in ("titles", "nouns", "names"))
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

    def is_subject_of(self, clause: int) -> bool:
        """Whether a mention is the subject of that clause."""
        return any(mention.subject and mention.clause == clause for mention in self.mentions)

    def salience(self, sentence: int) -> float:
        """Lappin and Leass's weights, halved with each sentence since."""
        return sum(
            (_RECENCY_WEIGHT + (_SUBJECT_WEIGHT if mention.subject else _OTHER_ROLE_WEIGHT))
            * 0.5 ** (sentence - mention.sentence)
            for mention in self.mentions
        )


def resolve_coreference(text: str) -> Chains:
    """The chains of persons in an English text.

    >>> text = "Anna met Mr. Brown. She thanked him, and Brown smiled at her."
    >>> [[text[start:end] for start, end in chain] for chain in resolve_coreference(text)]
    [['Anna', 'She', 'her'], ['Mr. Brown', 'him', 'Brown']]
    """
    people: list[_Person] = []
    for mention in _find_mentions(text):
        person = _MATCH_RULES[mention.kind](mention, people)
        if person is None:
            person = _Person()
            people.append(person)
        person.mentions.append(mention)
    return build_chains([mention.span for mention in person.mentions] for person in people)


# --- finding mentions --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sentence:
    number: int
    tokens: list[str]
    spans: list[Mention]

    def lower_token(self, at: int) -> str:
        """The token at `at` in lower case, empty outside the sentence."""
        return self.tokens[at].lower() if 0 <= at < len(self.tokens) else ""


def _find_mentions(text: str) -> list[_PersonMention]:
    rows = [_parse_sentence(text, number, start, end) for number, (start, end) in enumerate(sentences(text).tolist())]
    persons = _person_names(rows)
    mentions: list[_PersonMention] = []
    clause = 0
    for row in rows:
        located = sorted(
            [*_pronoun_mentions(row), *_name_mentions(row, persons), *_noun_mentions(row)], key=lambda pair: pair[0]
        )
        placed, clause = _assign_clauses(row, located, clause)
        mentions += placed
    return mentions


def _parse_sentence(text: str, number: int, start: int, end: int) -> _Sentence:
    spans = [(start + first, start + last) for first, last in words(text[start:end]).tolist()]
    return _Sentence(number, [text[first:last] for first, last in spans], spans)


def _pronoun_mentions(row: _Sentence) -> Iterator[tuple[int, _PersonMention]]:
    for at in range(len(row.tokens)):
        word = row.lower_token(at)
        if word in _GENDER_BY_PRONOUN:
            owns = word in _POSSESSIVE and _is_noun_like(row.tokens[at + 1 : at + 2])
            yield (
                at,
                _PersonMention(
                    row.spans[at], "pronoun", (word,), _GENDER_BY_PRONOUN[word], row.number, 0, possessive=owns
                ),
            )


def _is_noun_like(following: Sequence[str]) -> bool:
    return bool(following) and following[0][:1].isalpha() and following[0].lower() not in _FUNCTION_WORDS


def _noun_mentions(row: _Sentence) -> Iterator[tuple[int, _PersonMention]]:
    nouns = load_lexicon().nouns
    for at, token in enumerate(row.tokens):
        if token in nouns and row.lower_token(at + 1) not in nouns and not _is_predicate(row, at):
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
        word = row.lower_token(back)
        if word in _DETERMINERS | _INDEFINITE | _POSSESSIVE or (
            word == "s" and row.lower_token(back - 1) in ("'", "’")
        ):
            return word
        if not word.isalpha() or word in _FUNCTION_WORDS:
            return ""
    return ""


def _is_predicate(row: _Sentence, at: int) -> bool:
    """Whether a noun says what somebody is (`is a pilot`, `Brandt, the director`), which is no mention."""
    back = at - 1
    while (
        back > 0
        and row.lower_token(back).isalpha()
        and row.lower_token(back) not in _DETERMINERS | _INDEFINITE | _POSSESSIVE
    ):
        back -= 1
    before = row.lower_token(back - 1)
    if row.lower_token(back) in _INDEFINITE and before in _COPULAS | {"once", "not", "only", "still", "just"}:
        return True
    named = row.tokens[back - 2][:1].isupper() if back >= 2 else False
    return before == "," and named and row.lower_token(back) in {"the", "a", "an"}


def _name_mentions(row: _Sentence, persons: set[str]) -> Iterator[tuple[int, _PersonMention]]:
    for first, last in _capitalised_runs(row, persons):
        parts = tuple(token.lower() for token in row.tokens[first:last] if token.isalpha())
        title = parts[0] if parts[0] in load_lexicon().titles and len(parts) > 1 else ""
        parts = parts[1:] if title else parts
        if title or any(part in persons for part in parts):
            span = (row.spans[first][0], row.spans[last - 1][1])
            yield first, _PersonMention(span, "name", parts, _name_gender(parts, title), row.number, 0, title=title)


def _capitalised_runs(row: _Sentence, names: Set[str]) -> Iterator[tuple[int, int]]:
    """Stretches of capitalised words, with full stops after titles and initials; not of words like `The`."""
    at = 0
    while at < len(row.tokens):
        end = at
        while end < len(row.tokens) and (
            _is_capitalised(row, end, names) or (end > at and _is_abbreviation_stop(row, end))
        ):
            end += 1
        if end > at:
            yield at, end
        at = max(end, at + 1)


def _is_capitalised(row: _Sentence, at: int, names: Set[str]) -> bool:
    token = row.tokens[at]
    common = row.lower_token(at) in _COMMON
    return (
        token[:1].isupper() and token.isalpha() and not common and (at > 0 or not _starts_with_common_word(row, names))
    )


def _starts_with_common_word(row: _Sentence, extra: Set[str]) -> bool:
    """Whether a sentence begins with an ordinary word: a capital there tells nothing unless the word is known."""
    word, names = row.lower_token(0), load_lexicon().names
    if word in names or word in load_lexicon().titles or word in extra or len(word) == 1:
        return False
    return row.lower_token(1) in names or not _is_followed_by_verb(row, 0)


_VERB_ENDING = re.compile(r"\w+(?:s|ed)$")


def _is_followed_by_verb(row: _Sentence, at: int) -> bool:
    """Whether the next word looks like a verb of the third person or past, or the next is a name again."""
    following = row.tokens[at + 1] if at + 1 < len(row.tokens) else ""
    return bool(_VERB_ENDING.match(following)) or following[:1].isupper() or following in _NAME_FOLLOWERS


def _is_abbreviation_stop(row: _Sentence, at: int) -> bool:
    before = row.tokens[at - 1]
    follows = at + 1 < len(row.tokens) and row.tokens[at + 1][:1].isupper()
    return row.tokens[at] == "." and follows and (len(before) == 1 or before.lower() in load_lexicon().titles)


def _person_names(rows: Sequence[_Sentence]) -> set[str]:
    """Words that name a person somewhere in the text: with a title, after a given name, or where persons act."""
    names: set[str] = set()
    for row in rows:
        for first, last in _capitalised_runs(row, names):
            parts = [token.lower() for token in row.tokens[first:last] if token.isalpha()]
            surely = parts[0] in load_lexicon().names or (parts[0] in load_lexicon().titles and len(parts) > 1)
            placed = row.lower_token(first - 1) in _PLACE_PREPOSITIONS
            if surely or (not placed and last - first <= 2 and _is_followed_by_verb(row, last - 1)):
                names.update(part for part in parts if part not in load_lexicon().titles)
    return names


def _name_gender(parts: Sequence[str], title: str) -> Gender:
    by_title = load_lexicon().titles.get(title, "N")
    return by_title if by_title != "N" else load_lexicon().names.get(parts[0], "N")


def _assign_clauses(
    row: _Sentence, located: Sequence[tuple[int, _PersonMention]], clause: int
) -> tuple[list[_PersonMention], int]:
    """Mentions with their clause and whether they are its subject; and the next clause's number."""
    clauses, number = [], clause
    for token in row.tokens:
        number += token.lower() in _CLAUSE_BREAKS
        clauses.append(number)
    placed: list[_PersonMention] = []
    with_subject: set[int] = set()
    for at, mention in located:
        here = clauses[at]
        opens = here not in with_subject and _is_clause_initial(row, at, clauses)
        subject = opens and not mention.possessive and not _is_possessor(row, mention)
        if subject:
            with_subject.add(here)
        placed.append(replace(mention, clause=here, subject=subject))
    return placed, number + 1


def _is_clause_initial(row: _Sentence, at: int, clauses: Sequence[int]) -> bool:
    """Whether only a conjunction, determiners, adjectives and owners stand before the mention in its clause."""
    start = clauses.index(clauses[at])
    between = [row.lower_token(place) for place in range(start, at)]
    allowed = (
        _CLAUSE_BREAKS | _DETERMINERS | _INDEFINITE | _POSSESSIVE | {"young", "old", "elder", "youngest", "s", "'", "’"}
    )
    return all(word in allowed for word in between) or (len(between) < 4 and between[:1] in (["in"], ["on"], ["at"]))


def _is_possessor(row: _Sentence, mention: _PersonMention) -> bool:
    """Whether `'s` follows a mention."""
    after = next((at for at, span in enumerate(row.spans) if span[0] >= mention.span[1]), len(row.spans))
    return row.lower_token(after) in ("'", "’") and row.lower_token(after + 1) == "s"


# --- joining them ------------------------------------------------------------------------------------------------


def _match_name(mention: _PersonMention, people: Sequence[_Person]) -> _Person | None:
    """The latest person with this name, or one whose name has all its parts or only parts of it."""
    mine = set(mention.words)
    for person in reversed(people):
        for other in person.mentions:
            theirs = set(other.words)
            alike = other.kind == "name" and (mine <= theirs or theirs <= mine)
            if alike and _is_gender_compatible(mention.gender, person.gender):
                return person
    return None


def _match_noun(mention: _PersonMention, people: Sequence[_Person]) -> _Person | None:
    """The latest person described so before, or with that title; a generic noun takes whoever fits best."""
    if not mention.definite:
        return None
    (noun,) = mention.words
    for person in reversed(people):
        if any(_matches_description(noun, other) for other in person.mentions) and _is_gender_compatible(
            mention.gender, person.gender
        ):
            return person
    if noun in load_lexicon().generic:
        described = [person for person in people if all(other.kind != "name" for other in person.mentions)]
        return _most_salient(
            mention, [person for person in described if _is_gender_compatible(mention.gender, person.gender)]
        )
    return None


def _matches_description(noun: str, other: _PersonMention) -> bool:
    title = {"dr": "doctor"}.get(other.title, other.title)
    return (other.kind == "noun" and other.words == (noun,)) or title == noun


def _antecedent(mention: _PersonMention, people: Sequence[_Person]) -> _Person | None:
    """The most salient person of the right gender and number that the clause allows."""
    able = [
        person
        for person in people
        if _is_gender_compatible(mention.gender, person.gender) and _is_recent(person, mention)
    ]
    subjects = [person for person in able if person.is_subject_of(mention.clause)]
    if mention.words[0] in _REFLEXIVE:
        return _most_salient(mention, subjects or able)
    if not mention.subject and not mention.possessive:
        able = [person for person in able if person not in subjects]
    return _most_salient(mention, able)


_MATCH_RULES = {"name": _match_name, "noun": _match_noun, "pronoun": _antecedent}


def _is_gender_compatible(one: Gender, other: Gender) -> bool:
    """Equal genders agree, and an unknown one agrees with he and she but not with they."""
    return one == other or ("N" in (one, other) and "P" not in (one, other))


def _is_recent(person: _Person, mention: _PersonMention) -> bool:
    return mention.sentence - person.mentions[-1].sentence <= 4


def _most_salient(mention: _PersonMention, people: Sequence[_Person]) -> _Person | None:
    def weight(person: _Person) -> float:
        return person.salience(mention.sentence) * (_UNKNOWN_GENDER_FACTOR if person.gender == "N" else 1.0)

    return max(people, key=weight, default=None)
