"""Parsing of reports into coded sentences, in which a single code replaces each name, number, day or statistic.

`Paul Reyes had 21 points and a steal on Monday.` becomes `P had N Spoints and N Ssteals on D .`, where each code has a
value and a position in the text. Patterns are regular expressions over coded sentences.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any

from finecomb.annotators.detectors.boxscore.game import Game, Player, Team
from finecomb.core.protocol_yaml import load_yaml

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_UNIT_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS_WORDS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
NUMBER_BY_WORD = {word: value for value, word in enumerate(_UNIT_WORDS)} | {
    word: 10 * n for n, word in enumerate(_TENS_WORDS, 2)
}
NUMBER_BY_WORD |= {"dozen": 12}
_ORDINAL_WORDS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
ORDINAL_BY_WORD = {word: value for value, word in enumerate(_ORDINAL_WORDS, 1)}
NUMBER_BY_ARTICLE = {"a": 1, "an": 1, "pair": 2, "couple": 2, "no": 0, "single": 1, "lone": 1}
_MAX_SENTENCE_WORDS = 300  # longer sentences are split, so that the time grows linearly with the text
_ORDINAL_PATTERN = re.compile(r"\d+(?:st|nd|rd|th)")
_NAME_SUFFIXES = {"jr", "sr", "ii", "iii", "iv"}
_SIDE_PHRASES = {
    "home": ["the home team", "the hosts", "the host team", "the home side", "the hosting team"],
    "vis": ["the visitors", "the visiting team", "the road team", "the away team", "the visiting side"],
}
_TOKEN_PATTERN = re.compile(
    r"(?:[A-Z]\.){2,}|\d+(?:st|nd|rd|th|ers)\b|3P[Tt]\b|\d+\.\d+|\d+|\.\d+|n['’]t\b|['’](?:s|re|ve|ll|d|m|t)\b"
    r"|[^\W\d_]+(?:['’](?!(?:s|re|ve|ll|d|m|t)\b)[^\W\d_]+)*|\S"
)
# Capitalised words that are not part of a person's name.
_NON_NAME_WORDS = set(
    "the a an in on at it he they this that these those his their both with after despite coming up next however "
    "meanwhile while as for and but if so not no all star game nba east west eastern western conference division "
    "atlantic central southeast northwest pacific southwest finals championship christmas day eve january february "
    "march april may june july october november december season mvp big three trust process rookie of player coach "
    "head first second third fourth fifth quarter half overtime what when who which there one two four five six seven "
    "eight nine ten fg ft pt dnp i we you she her our us my also still only even just then now fresh new year "
    "playoffs ot former fellow starting starter reserve veteran guard forward center swingman superstar sophomore "
    "backup teammate".split()
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a sentence with its code, position and value."""

    code: str
    start: int
    end: int
    value: Any = None
    odd: bool = False
    """True for a name that resembles one in the record, and for an unknown word in capitals."""


@dataclass(frozen=True)
class CodedSentence:
    """The words of a sentence with their codes as one line."""

    words: tuple[Word, ...]
    view: str = field(init=False)
    starts: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        starts, offset = [], 0
        for word in self.words:
            starts.append(offset)
            offset += len(word.code) + 1
        object.__setattr__(self, "starts", tuple(starts))
        object.__setattr__(self, "view", " ".join(word.code for word in self.words))

    @functools.cached_property
    def word_index_by_offset(self) -> dict[int, int]:
        """Word index by offset in the coded line."""
        return {start: number for number, start in enumerate(self.starts)}

    def text_span(self, first: int, last: int) -> tuple[int, int]:
        """Return the position in the text that corresponds to a range of the coded line."""
        inside = [word for word, start in zip(self.words, self.starts, strict=True) if first <= start < last]
        return inside[0].start, inside[-1].end

    def indices_with_code(self, codes: str) -> list[int]:
        """Return the indices of the words with one of the codes."""
        return [number for number, word in enumerate(self.words) if word.code in codes and word.value is not None]


@dataclass(frozen=True, slots=True)
class Phrase:
    """A sequence of words with a common code."""

    words: tuple[str, ...]
    code: str
    value: Any
    proper: bool = True
    """True if the phrase must begin with a capital letter."""


PhrasesByFirstWord = Mapping[str, Sequence[Phrase]]  # longest phrases first


@functools.cache
def load_yaml_table(name: str) -> Mapping[str, Any]:
    """Load one of this package's YAML files."""
    text = resources.files(__package__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    loaded: Mapping[str, Any] = load_yaml(text, "the box score lexicon")
    return loaded


@functools.cache
def compile_pattern(name: str) -> re.Pattern[str]:
    """Compile a pattern of `relations.yaml`, replacing each %name% with its word list."""
    text = _join_alternatives(load_yaml_table("relations")["patterns"][name])
    for _ in range(2):  # word lists may refer to other word lists
        text = re.sub(
            r"%(\w+)%", lambda match: _join_alternatives(load_yaml_table("relations")["words"][match[1]]), text
        )
    return re.compile(text)


def _join_alternatives(entry: str | list[str]) -> str:
    return "|".join(item.replace("\n", "") for item in ([entry] if isinstance(entry, str) else entry))


def iter_token_matches(text: str) -> Iterator[re.Match[str]]:
    """Yield words, numbers and signs. Hyphens are separate, so that `24-point` and `24 - point` match alike."""
    return _TOKEN_PATTERN.finditer(text)


def normalise_token(token: str) -> str:
    """Normalise a token for comparison: lower case, without dots and apostrophes."""
    return re.sub(r"[.'’]", "", token).lower() or token


def _normalised_words(text: str) -> tuple[str, ...]:
    return tuple(normalise_token(match[0]) for match in iter_token_matches(text) if match[0] not in {".", ","})


@functools.cache
def _statistic_phrases() -> tuple[Phrase, ...]:
    """Return the phrases for the statistics of a box score."""
    result = []
    for code, group in (("L", "lines"), ("S", "counts")):
        for name, entry in load_yaml_table("statistics")[group].items():
            result += [
                Phrase(_normalised_words(say), code + re.sub(r"\W", "", name), name, proper=False)
                for say in entry["say"]
            ]
    return tuple(result)


@functools.cache
def _league_phrases() -> tuple[Phrase, ...]:
    """Return the phrases for teams, cities and arenas. A city or an arena refers to all teams that share it."""
    names_by_words: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for name, entry in load_yaml_table("league")["teams"].items():
        places = [entry["city"], *entry.get("places", [])]
        nicknames = [name, *entry.get("short", [])]
        singular = [name[:-1]] if name.endswith("s") and " " not in name else []
        full_names = [f"{place} {nickname}" for place in places for nickname in nicknames]
        for code, says in (
            ("T", nicknames + singular + full_names),
            ("C", places),
            ("A", entry.get("arenas", [])),
        ):
            for say in says:
                names_by_words.setdefault((code, _normalised_words(say)), []).append(name)
    return tuple(Phrase(words, code, tuple(names)) for (code, words), names in names_by_words.items())


def _team_phrases(game: Game) -> Iterator[Phrase]:
    """Yield the phrases for the teams of the league and for both teams of the game, which the league list may lack."""
    teams = {team.name: team for team in game.teams}
    for team in game.teams:
        singular = team.name[:-1] if team.name.endswith("s") and " " not in team.name else ""
        says = [say for say in (f"{team.city} {team.name}", team.name, singular) if say.strip()]
        yield from (Phrase(_normalised_words(say), "T", (team,)) for say in says)
        if team.city:
            yield Phrase(
                _normalised_words(team.city), "C", tuple(other for other in game.teams if other.city == team.city)
            )
        yield from (Phrase(_normalised_words(say), "H", (team,), proper=False) for say in _SIDE_PHRASES[team.side])
    for phrase in _league_phrases():
        names = [teams.get(name, name) for name in phrase.value]
        teams_of_game = tuple(name for name in names if isinstance(name, Team))
        yield replace(phrase, value=teams_of_game or tuple(names))


def _player_phrases(game: Game) -> Iterator[Phrase]:
    """Yield the phrases for full names, surnames and first names. Short names refer to all players who share them."""
    surnames: dict[tuple[str, ...], list[Player]] = {}
    firsts: dict[tuple[str, ...], list[Player]] = {}
    for player in game.players:
        full_name = _normalised_words(" ".join(player.name_words_without_suffix))
        yield Phrase(full_name, "P", (player,))
        if len(player.name_words_without_suffix) > 1:
            for short in {
                _normalised_words(" ".join(player.name_words_without_suffix[1:])),
                _normalised_words(player.name_words_without_suffix[-1]),
            }:
                surnames.setdefault(short, []).append(player)
            firsts.setdefault(_normalised_words(player.name_words_without_suffix[0]), []).append(player)
    for words, bearers in (firsts | surnames).items():
        if words in surnames or (words[0] not in _NON_NAME_WORDS and len(words[0]) > 2):
            yield Phrase(words, "P", tuple(bearers))


def parse_sentences(text: str, game: Game) -> list[CodedSentence]:
    """Parse a report into sentences with names and numbers as codes."""
    # Of several phrases with the same words, the first one counts.
    by_words: dict[tuple[str, ...], Phrase] = {}
    for phrase in (
        *_statistic_phrases(),
        *_team_phrases(game),
        *[Phrase((day.lower(),), "D", number) for number, day in enumerate(WEEKDAYS)],
        *_player_phrases(game),
    ):
        by_words.setdefault(phrase.words, phrase)
    codes: dict[str, list[Phrase]] = {}
    for phrase in sorted(by_words.values(), key=lambda item: -len(item.words)):
        codes.setdefault(phrase.words[0], []).append(phrase)
    matches = list(iter_token_matches(text))
    result: list[list[Word]] = [[]]
    index = 0
    while index < len(matches):
        word, index = _read_word(matches, index, codes)
        result[-1].append(word)
        is_abbreviation = len(result[-1]) > 1 and result[-1][-2].code in {"jr", "sr", "st", "vs"}
        ends = word.code in {".", "!", "?"} and not is_abbreviation
        if ends or len(result[-1]) >= _MAX_SENTENCE_WORDS:
            result.append([])
    sentences = []
    for words in (_merge_number_words(_merge_name_words(words)) for words in result if words):
        for number, word in enumerate(words):
            if word.odd and word.code in "PX" and (player := _find_resembling_player(word, text, game)):
                words[number] = replace(word, code="P", value=(player,), odd=False)
        sentences.append(CodedSentence(tuple(words)))
    return sentences


def _find_resembling_player(word: Word, text: str, game: Game) -> Player | None:
    """Return the player whose name in the record resembles a misspelt or shortened name (`Steph Curry`), or None."""
    written = text[word.start : word.end].lower()
    first, _, surname = written.partition(" ")
    near = difflib.get_close_matches(written, [player.name.lower() for player in game.players], n=1, cutoff=0.85)
    for player in game.players:
        name = player.name.lower()
        if name in near or (len(first) > 2 and name.startswith(first) and name.endswith(f" {surname}")):
            return player
    return None


def _read_word(matches: list[re.Match[str]], index: int, codes: PhrasesByFirstWord) -> tuple[Word, int]:
    """Return the word at token `index`, and the index of the next token.

    A token outside all phrases is a number, an ordinal, a possible name or a plain word.
    """
    match = matches[index]
    token, low = match[0], match[0].lower().replace("’", "'")
    for phrase in codes.get(normalise_token(token), ()):
        end = index + len(phrase.words)
        begins = not phrase.proper or token[0].isupper() or token[0].isdigit()
        if begins and tuple(normalise_token(other[0]) for other in matches[index:end]) == phrase.words:
            return Word(phrase.code, match.start(), matches[end - 1].end(), phrase.value), end
    word = Word(low, match.start(), match.end())
    if low.isascii() and low.isdigit():
        word = replace(word, code="N", value=int(low))
    elif low in NUMBER_BY_WORD:
        word = replace(word, code="N", value=NUMBER_BY_WORD[low])
    elif low in ORDINAL_BY_WORD or _ORDINAL_PATTERN.fullmatch(low):
        word = replace(word, code="O", value=ORDINAL_BY_WORD.get(low) or int(low[:-2]))
    elif token[0].isupper() and len(token) > 1 and low not in _NON_NAME_WORDS:
        word = replace(word, code="X", value=low, odd=token.isupper())  # a capitalised word may be a name
    return word, index + 1


def _merge_name_words(words: list[Word]) -> list[Word]:
    """Merge adjacent name words into one person, who may be known, misnamed (`odd`) or missing from the record."""
    result: list[Word] = []
    index = 0
    while index < len(words):
        end = index + 1
        if words[index].code in "PX":
            while end < len(words) and words[end].code in "PX" and words[end].value not in _NAME_SUFFIXES:
                end += 1
            result += _merge_name_run(words[index:end], begins=index == 0)
            codes = [word.code if word.code != "X" else word.value for word in words[end : end + 2]]
            if codes[:1] and codes[0] in _NAME_SUFFIXES:
                end = end + 1
            else:
                end = end + 2 if codes[:1] == [","] and codes[1:] and codes[1] in _NAME_SUFFIXES else end
            result[-1] = replace(result[-1], end=words[end - 1].end)
        else:
            result.append(words[index])
        index = end
    return result


def _merge_name_run(run: list[Word], begins: bool) -> list[Word]:
    """Merge a run of name words. A capitalised word that is single or begins the sentence is an ordinary word."""
    if begins and run[0].code == "X" and (len(run) == 1 or run[1].code == "P") and not run[0].odd:
        return [replace(run[0], code=run[0].value), *(_merge_name_run(run[1:], begins=False) if run[1:] else [])]
    listed = [word for word in run if word.code == "P"]
    if len(run) == 1:
        return listed or [replace(run[0], code=run[0].value, odd=False)]
    merged = replace(run[-1], start=run[0].start, end=run[-1].end, odd=True)
    if (
        run[0].code == "P"
        and not listed[1:]
        and all(len(player.name_words_without_suffix) == 1 for player in run[0].value)
    ):
        return [replace(merged, code="P", value=run[0].value, odd=False)]  # the record lists only one name
    return [merged]


def _merge_number_words(words: list[Word]) -> list[Word]:
    """Convert number expressions to numbers: `a steal`, `a pair of steals`, `twenty - five points`."""
    result: list[Word] = []
    for index, word in enumerate(words):
        following = [other.code for other in words[index + 1 : index + 3]]
        if word.code in {"pair", "couple"}:
            counts = following[:1] == ["of"] and following[1:] != [] and following[1].startswith("S")
        else:
            counts = following[:1] != [] and following[0].startswith("S") and following[0] != "Sminutes"
        tens, hyphen = result[-2:] if len(result) > 1 else (word, word)
        is_spelled_unit = word.code == "N" and 0 < word.value < 10 and word.end - word.start > 1
        if word.code in NUMBER_BY_ARTICLE and counts:
            result.append(replace(word, code="N", value=NUMBER_BY_ARTICLE[word.code]))
        elif (
            is_spelled_unit
            and hyphen.code == "-"
            and tens.code == "N"
            and tens.value in range(20, 100, 10)
            and tens.end - tens.start > 2
        ):
            result[-2:] = [replace(tens, end=word.end, value=tens.value + word.value)]
        else:
            result.append(word)
    return result
