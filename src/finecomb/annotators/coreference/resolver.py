"""A rule-based coreference resolver for persons in English: names, descriptions and third-person pronouns.

Word lists and capital letters identify mentions. Matching rules run from the most to the least precise, after Lee et
al. (2013), "Deterministic Coreference Resolution Based on Entity-Centric, Precision-Ranked Rules": identical names,
partial names, titles, repeated descriptions, and finally pronouns. Pronouns take the most salient person whose gender
and number agree (Lappin and Leass 1994). Subjects weigh more than other mentions, and all weights halve with each
sentence. First- and second-person pronouns are ignored, because the rules do not identify speakers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Literal

from finecomb.annotators.coreference.chains import Chains, Mention, build_chains
from finecomb.annotators.coreference.pronouns import FEMALE, FIRST_SECOND_PERSON, MALE, PLURAL
from finecomb.core.protocol_yaml import load_yaml
from finecomb.core.sentences import sentence_offsets
from finecomb.core.tokens import word_offsets

Gender = Literal["M", "F", "P", "N"]

_THEY_FORMS = ("they", "them", "their", "theirs", "themselves")
_GENDER_BY_PRONOUN: dict[str, Gender] = {
    **dict.fromkeys(MALE, "M"), **dict.fromkeys(FEMALE, "F"), **dict.fromkeys(_THEY_FORMS, "P")
}  # fmt: skip
_REFLEXIVE_PRONOUNS = {"himself", "herself", "themselves"}
_POSSESSIVE_DETERMINERS = {"his", "her", "their"}
_DETERMINERS = {"the", "this", "that", "these", "those"}
_INDEFINITE_DETERMINERS = {"a", "an", "another", "one", "two", "three", "some", "several", "many", "no"}
_COPULAS = {"is", "was", "are", "were", "be", "been", "being", "become", "becomes", "became", "as"}
_PREDICATE_ADVERBS = {"once", "not", "only", "still", "just"}
_PLACE_PREPOSITIONS = {"in", "at", "from", "near", "into", "across", "through", "of"}
_CLAUSE_BREAKS = set(
    ", ; : — – ( ) but and or that when while where who whom which because until if after before so than".split()
)
_FUNCTION_WORDS = set(
    "the a an to in on at of from for with by and but or as until when while if that than so into onto over under "
    "about after before because then there here back up down out off away again too first alone home".split()
)
_COMMON_WORDS = frozenset(
    _FUNCTION_WORDS
    | _DETERMINERS
    | _INDEFINITE_DETERMINERS
    | _CLAUSE_BREAKS
    | {*MALE, *FEMALE, *PLURAL, *FIRST_SECOND_PERSON, "it", "its"}
)
_WORDS_BEFORE_SUBJECT = (
    _CLAUSE_BREAKS
    | _DETERMINERS
    | _INDEFINITE_DETERMINERS
    | _POSSESSIVE_DETERMINERS
    | {"young", "old", "elder", "youngest", "s", "'", "’"}
)
_NAME_FOLLOWERS = {"and", "'", "’", "has", "had", "will"}
_RECENCY_WEIGHT, _SUBJECT_WEIGHT, _OTHER_ROLE_WEIGHT, _UNKNOWN_GENDER_FACTOR = 100.0, 80.0, 40.0, 0.6


@dataclass(frozen=True, slots=True)
class _PersonLexicon:
    titles: dict[str, Gender]
    nouns: dict[str, Gender]
    names: dict[str, Gender]
    generic: frozenset[str]


@functools.cache
def load_person_lexicon() -> _PersonLexicon:
    """Load the titles, person nouns and given names with their genders."""
    text = resources.files(__package__).joinpath("coreference_words.yaml").read_text(encoding="utf-8")
    read = load_yaml(text, "the person lexicon")

    titles, nouns, names = (
        {word: gender for gender, listed in read[kind].items() for word in listed.split()}
        for kind in ("titles", "nouns", "names")
    )
    return _PersonLexicon(titles, nouns, names, frozenset(read["generic"].split()))


@dataclass(frozen=True, slots=True)
class _PersonMention:
    """A mention with the features that the matching rules use."""

    span: Mention
    kind: Literal["name", "noun", "pronoun"]
    words: tuple[str, ...]
    """Lower-case words: the pronoun, the parts of a name without its title, or the head noun."""
    gender: Gender
    sentence: int
    clause: int
    """Clause number, counted over the whole text."""
    subject: bool = False
    possessive: bool = False
    """True for a possessive pronoun before a noun."""
    definite: bool = True
    title: str = ""


@dataclass(slots=True)
class _Person:
    """A person with the mentions found so far."""

    mentions: list[_PersonMention] = field(default_factory=list)

    @property
    def gender(self) -> Gender:
        """Gender of the first mention whose gender is known, otherwise `N`."""
        return next((mention.gender for mention in self.mentions if mention.gender != "N"), "N")


def resolve_coreference(text: str) -> Chains:
    """Return the coreference chains of the persons in an English text.

    >>> text = "Anna met Mr. Brown. She thanked him, and Brown smiled at her."
    >>> [[text[start:end] for start, end in chain] for chain in resolve_coreference(text)]
    [['Anna', 'She', 'her'], ['Mr. Brown', 'him', 'Brown']]
    """
    people: list[_Person] = []
    rows: list[_Sentence] = []
    for number, (start, end) in enumerate(sentence_offsets(text).tolist()):
        spans = [(start + first, start + last) for first, last in word_offsets(text[start:end]).tolist()]
        rows.append(_Sentence(number, [text[first:last] for first, last in spans], spans))
    persons = _find_person_name_words(rows)
    mentions: list[_PersonMention] = []
    clause = 0
    for row in rows:
        placed, clause = _assign_clauses_and_subjects(row, _find_mentions(row, persons), clause)
        mentions += placed
    for mention in mentions:
        person = _MATCH_RULES[mention.kind](mention, people)
        if person is None:
            person = _Person()
            people.append(person)
        person.mentions.append(mention)
    return build_chains([mention.span for mention in person.mentions] for person in people)


# --- mention detection -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Sentence:
    number: int
    tokens: list[str]
    spans: list[Mention]

    def lower_token(self, index: int) -> str:
        """Return the token at `index` in lower case, or an empty string outside the sentence."""
        return self.tokens[index].lower() if 0 <= index < len(self.tokens) else ""


def _find_mentions(row: _Sentence, persons: set[str]) -> list[tuple[int, _PersonMention]]:
    """Return the mentions in a sentence with the index of their first token, in text order."""
    lexicon = load_person_lexicon()
    located: list[tuple[int, _PersonMention]] = []
    for index, (token, span) in enumerate(zip(row.tokens, row.spans, strict=True)):
        word, following = token.lower(), row.tokens[index + 1] if index + 1 < len(row.tokens) else ""
        if gender := _GENDER_BY_PRONOUN.get(word):
            is_before_noun = following[:1].isalpha() and following.lower() not in _FUNCTION_WORDS
            owns = word in _POSSESSIVE_DETERMINERS and is_before_noun
            located.append((index, _PersonMention(span, "pronoun", (word,), gender, row.number, 0, possessive=owns)))
        elif (
            token in lexicon.nouns
            and following.lower() not in lexicon.nouns
            and (marker := _find_noun_determiner(row, index))
        ):
            definite, gender = marker not in _INDEFINITE_DETERMINERS, lexicon.nouns[token]
            located.append((index, _PersonMention(span, "noun", (token,), gender, row.number, 0, definite=definite)))
    for first, last in _capitalised_runs(row, persons):
        parts = tuple(token.lower() for token in row.tokens[first:last] if token.isalpha())
        title = parts[0] if parts[0] in lexicon.titles and len(parts) > 1 else ""
        parts = parts[1:] if title else parts
        if title or any(part in persons for part in parts):
            span = (row.spans[first][0], row.spans[last - 1][1])
            gender = lexicon.titles.get(title, "N")
            gender = lexicon.names.get(parts[0], "N") if gender == "N" else gender
            located.append((first, _PersonMention(span, "name", parts, gender, row.number, 0, title=title)))
    return sorted(located, key=lambda pair: pair[0])


def _find_noun_determiner(row: _Sentence, index: int) -> str:
    """Return the determiner or possessive at most four words before a noun.

    Return an empty string if there is none, or if the noun does not mention a person because it is a predicate
    (`is a pilot`) or an apposition (`Brandt, the director`).
    """
    determiners = _DETERMINERS | _INDEFINITE_DETERMINERS | _POSSESSIVE_DETERMINERS
    back = index - 1
    while back > 0 and row.lower_token(back).isalpha() and row.lower_token(back) not in determiners:
        back -= 1
    opening, before = row.lower_token(back), row.lower_token(back - 1)
    is_named_before = before == "," and back >= 2 and row.tokens[back - 2][:1].isupper()
    if (opening in _INDEFINITE_DETERMINERS and before in _COPULAS | _PREDICATE_ADVERBS) or (
        is_named_before and opening in {"the", "a", "an"}
    ):
        return ""
    for back in range(index - 1, max(index - 5, -1), -1):
        word = row.lower_token(back)
        if word in determiners or (word == "s" and row.lower_token(back - 1) in ("'", "’")):
            return word
        if not word.isalpha() or word in _FUNCTION_WORDS:
            break
    return ""


def _capitalised_runs(row: _Sentence, names: Set[str]) -> Iterator[tuple[int, int]]:
    """Yield runs of capitalised words, including full stops after titles and initials, without words such as `The`."""
    lexicon, opening = load_person_lexicon(), row.lower_token(0)
    # The first word of every sentence is capitalised, so an ordinary word is excluded there.
    is_known = opening in lexicon.names or opening in lexicon.titles or opening in names or len(opening) == 1
    opens_with_common_word = not is_known and (row.lower_token(1) in lexicon.names or not _is_followed_by_verb(row, 0))
    index = 0
    while index < len(row.tokens):
        end = index
        while end < len(row.tokens):
            token, before = row.tokens[end], row.tokens[end - 1]
            following = row.tokens[end + 1] if end + 1 < len(row.tokens) else ""
            is_abbreviated = len(before) == 1 or before.lower() in lexicon.titles
            if token[:1].isupper() and token.isalpha() and token.lower() not in _COMMON_WORDS:
                if end == 0 and opens_with_common_word:
                    break
            elif not (end > index and token == "." and following[:1].isupper() and is_abbreviated):
                break
            end += 1
        if end > index:
            yield index, end
        index = max(end, index + 1)


_VERB_ENDING = re.compile(r"\w+(?:s|ed)$")


def _is_followed_by_verb(row: _Sentence, index: int) -> bool:
    """Return whether the next word looks like a third-person or past verb, or like another part of a name."""
    following = row.tokens[index + 1] if index + 1 < len(row.tokens) else ""
    return bool(_VERB_ENDING.match(following)) or following[:1].isupper() or following in _NAME_FOLLOWERS


def _find_person_name_words(rows: Sequence[_Sentence]) -> set[str]:
    """Collect the words of names that follow a title, begin with a given name, or precede a verb."""
    names: set[str] = set()
    for row in rows:
        for first, last in _capitalised_runs(row, names):
            parts = [token.lower() for token in row.tokens[first:last] if token.isalpha()]
            surely = parts[0] in load_person_lexicon().names or (
                parts[0] in load_person_lexicon().titles and len(parts) > 1
            )
            placed = row.lower_token(first - 1) in _PLACE_PREPOSITIONS
            if surely or (not placed and last - first <= 2 and _is_followed_by_verb(row, last - 1)):
                names.update(part for part in parts if part not in load_person_lexicon().titles)
    return names


def _assign_clauses_and_subjects(
    row: _Sentence, located: Sequence[tuple[int, _PersonMention]], clause: int
) -> tuple[list[_PersonMention], int]:
    """Return the mentions with their clause and subject flag, and the number of the next clause.

    A clause's subject is its first mention if only conjunctions, determiners, adjectives and possessors precede it.
    """
    clauses, number = [], clause
    for token in row.tokens:
        number += token.lower() in _CLAUSE_BREAKS
        clauses.append(number)
    mentions: list[_PersonMention] = []
    with_subject: set[int] = set()
    for index, mention in located:
        mention_clause = clauses[index]
        between = [token.lower() for token in row.tokens[clauses.index(mention_clause) : index]]
        opens = all(word in _WORDS_BEFORE_SUBJECT for word in between) or (
            len(between) < 4 and between[:1] in (["in"], ["on"], ["at"])
        )
        after = next((index for index, span in enumerate(row.spans) if span[0] >= mention.span[1]), len(row.spans))
        owns = mention.possessive or (row.lower_token(after) in ("'", "’") and row.lower_token(after + 1) == "s")
        subject = opens and not owns and mention_clause not in with_subject
        if subject:
            with_subject.add(mention_clause)
        mentions.append(replace(mention, clause=mention_clause, subject=subject))
    return mentions, number + 1


# --- matching mentions to persons --------------------------------------------------------------------------------


def _find_person_by_name(mention: _PersonMention, people: Sequence[_Person]) -> _Person | None:
    """Return the last person introduced whose name contains this name or is part of it."""
    mine = set(mention.words)
    for person in reversed(people):
        for other in person.mentions:
            theirs = set(other.words)
            alike = other.kind == "name" and (mine <= theirs or theirs <= mine)
            if alike and _are_genders_compatible(mention.gender, person.gender):
                return person
    return None


def _find_person_by_noun(mention: _PersonMention, people: Sequence[_Person]) -> _Person | None:
    """Return the last person with this description or title. A generic noun matches the most salient person."""
    if not mention.definite:
        return None
    (noun,) = mention.words
    for person in reversed(people):
        is_described = any(
            (other.kind == "noun" and other.words == (noun,)) or {"dr": "doctor"}.get(other.title, other.title) == noun
            for other in person.mentions
        )
        if is_described and _are_genders_compatible(mention.gender, person.gender):
            return person
    if noun in load_person_lexicon().generic:
        described = [person for person in people if all(other.kind != "name" for other in person.mentions)]
        return _most_salient_person(
            mention, [person for person in described if _are_genders_compatible(mention.gender, person.gender)]
        )
    return None


def _match_pronoun(mention: _PersonMention, people: Sequence[_Person]) -> _Person | None:
    """Return the most salient person whose gender, number and clause are compatible with the pronoun."""
    able = [
        person
        for person in people
        if _are_genders_compatible(mention.gender, person.gender)
        and mention.sentence - person.mentions[-1].sentence <= 4
    ]
    subjects = [
        person for person in able if any(other.subject and other.clause == mention.clause for other in person.mentions)
    ]
    if mention.words[0] in _REFLEXIVE_PRONOUNS:
        return _most_salient_person(mention, subjects or able)
    if not mention.subject and not mention.possessive:
        able = [person for person in able if person not in subjects]
    return _most_salient_person(mention, able)


_MATCH_RULES = {"name": _find_person_by_name, "noun": _find_person_by_noun, "pronoun": _match_pronoun}


def _are_genders_compatible(gender: Gender, other: Gender) -> bool:
    """Return whether two genders agree. An unknown gender agrees with he and she but not with they."""
    return gender == other or ("N" in (gender, other) and "P" not in (gender, other))


def _most_salient_person(mention: _PersonMention, people: Sequence[_Person]) -> _Person | None:
    def salience(person: _Person) -> float:
        """Sum the Lappin and Leass weights of a person's mentions, each halved for every sentence since then."""
        total = sum(
            (_RECENCY_WEIGHT + (_SUBJECT_WEIGHT if other.subject else _OTHER_ROLE_WEIGHT))
            * 0.5 ** (mention.sentence - other.sentence)
            for other in person.mentions
        )
        return total * (_UNKNOWN_GENDER_FACTOR if person.gender == "N" else 1.0)

    return max(people, key=salience, default=None)
