"""A report as patterns see it: sentences of words in which names, numbers, days and statistics are single codes.

`Paul Reyes had 21 points and a steal on Monday.` becomes `P had N Spoints and N Ssteals on D .`, and each code knows
what it stands for and where it is in the text. A pattern is a regular expression over such a line.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any

import yaml

from finecomb.annotators.detectors.boxscore.game import Game, Player, Team

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_UNIT_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
NUMBERS = {word: value for value, word in enumerate(_UNIT_WORDS)} | {word: 10 * n for n, word in enumerate(_TENS, 2)}
NUMBERS |= {"dozen": 12}
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
ORDINALS = {word: value for value, word in enumerate(_ORDINALS, 1)}
NUMBER_BY_ARTICLE = {"a": 1, "an": 1, "pair": 2, "couple": 2, "no": 0, "single": 1, "lone": 1}
_MAX_SENTENCE_WORDS = (
    300  # words of a sentence; what goes on longer is cut, so that time grows with the text and no faster
)
_ORDINAL = re.compile(r"\d+(?:st|nd|rd|th)")
_SUFFIXES = {"jr", "sr", "ii", "iii", "iv"}
_SIDES = {
    "home": ["the home team", "the hosts", "the host team", "the home side", "the hosting team"],
    "vis": ["the visitors", "the visiting team", "the road team", "the away team", "the visiting side"],
}
_TOKEN = re.compile(
    r"(?:[A-Z]\.){2,}|\d+(?:st|nd|rd|th|ers)\b|3P[Tt]\b|\d+\.\d+|\d+|\.\d+|n['’]t\b|['’](?:s|re|ve|ll|d|m|t)\b"
    r"|[^\W\d_]+(?:['’](?!(?:s|re|ve|ll|d|m|t)\b)[^\W\d_]+)*|\S"
)
# Capitalised words that are no part of a person's name.
_NOT_NAMES = set(
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
    """One word of a sentence: what patterns see, where it is, and what it stands for."""

    code: str
    start: int
    end: int
    value: Any = None
    odd: bool = False
    """A name that is like one of the record but not it; of an unknown word, that it is all capitals."""


@dataclass(frozen=True)
class Sentence:
    """Words of one sentence, with the line that patterns read."""

    words: tuple[Word, ...]
    view: str = field(init=False)
    starts: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        starts, at = [], 0
        for word in self.words:
            starts.append(at)
            at += len(word.code) + 1
        object.__setattr__(self, "starts", tuple(starts))
        object.__setattr__(self, "view", " ".join(word.code for word in self.words))

    @functools.cached_property
    def word_index_by_offset(self) -> dict[int, int]:
        """Number of the word that begins at a place of the view."""
        return {start: number for number, start in enumerate(self.starts)}

    def text_span(self, first: int, last: int) -> tuple[int, int]:
        """Where the words of a stretch of the view are in the text."""
        inside = [word for word, start in zip(self.words, self.starts, strict=True) if first <= start < last]
        return inside[0].start, inside[-1].end

    def indices_with_code(self, codes: str) -> list[int]:
        """Numbers of the words with one of these codes."""
        return [number for number, word in enumerate(self.words) if word.code in codes and word.value is not None]


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that together get one code."""

    words: tuple[str, ...]
    code: str
    value: Any
    proper: bool = True
    """Whether it must begin with a capital letter."""


Phrases = Mapping[str, Sequence[Phrase]]  # by first word, longest first


@functools.cache
def load_table(name: str) -> Mapping[str, Any]:
    """One of the data files beside this module."""
    text = resources.files(__package__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    loaded: Mapping[str, Any] = yaml.safe_load(text)
    return loaded


@functools.cache
def compile_pattern(name: str) -> re.Pattern[str]:
    """One of the patterns of `relations.yaml`, its %words% filled in."""
    text = _join_alternatives(load_table("relations")["patterns"][name])
    for _ in range(2):  # words may name words
        text = re.sub(r"%(\w+)%", lambda match: _join_alternatives(load_table("relations")["words"][match[1]]), text)
    return re.compile(text)


def _join_alternatives(entry: str | list[str]) -> str:
    return "|".join(item.replace("\n", "") for item in ([entry] if isinstance(entry, str) else entry))


def tokens(text: str) -> Iterator[re.Match[str]]:
    """Words, numbers and signs; hyphens stand alone, so `24-point` and `24 - point` are the same."""
    return _TOKEN.finditer(text)


def normalise_token(token: str) -> str:
    """A token as it is compared: lower case, without dots and apostrophes."""
    return re.sub(r"[.'’]", "", token).lower() or token


def _normalised_words(text: str) -> tuple[str, ...]:
    return tuple(normalise_token(match[0]) for match in tokens(text) if match[0] not in {".", ","})


@functools.cache
def _statistic_phrases() -> tuple[Phrase, ...]:
    """The ways people say what a box score counts."""
    result = []
    for code, group in (("L", "lines"), ("S", "counts")):
        for name, entry in load_table("statistics")[group].items():
            result += [
                Phrase(_normalised_words(say), code + re.sub(r"\W", "", name), name, proper=False)
                for say in entry["say"]
            ]
    return tuple(result)


@functools.cache
def _league_phrases() -> tuple[Phrase, ...]:
    """Teams, cities and arenas; a city or an arena stands for all teams that share it."""
    names_by_words: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for name, entry in load_table("league")["teams"].items():
        places = [entry["city"], *entry.get("places", [])]
        nicknames = [name, *entry.get("short", [])]
        singular = [name[:-1]] if name.endswith("s") and " " not in name else []
        whole = [f"{place} {nickname}" for place in places for nickname in nicknames]
        for code, says in (
            ("T", nicknames + singular + whole),
            ("C", places),
            ("A", entry.get("arenas", [])),
        ):
            for say in says:
                names_by_words.setdefault((code, _normalised_words(say)), []).append(name)
    return tuple(Phrase(words, code, tuple(names)) for (code, words), names in names_by_words.items())


def build_phrases(game: Game) -> Phrases:
    """Phrases that get a code in a report about this game."""
    by_words: dict[tuple[str, ...], Phrase] = {}
    for phrase in (*_statistic_phrases(), *_known_teams(game), *_weekday_phrases(), *_known_players(game)):
        by_words.setdefault(phrase.words, phrase)
    by_first: dict[str, list[Phrase]] = {}
    for phrase in sorted(by_words.values(), key=lambda item: -len(item.words)):
        by_first.setdefault(phrase.words[0], []).append(phrase)
    return by_first


def _weekday_phrases() -> list[Phrase]:
    return [Phrase((day.lower(),), "D", number) for number, day in enumerate(DAYS)]


def _known_teams(game: Game) -> Iterator[Phrase]:
    """The league's teams, with the two of the game in place of their names; teams that no league lists are added."""
    teams = {team.name: team for team in game.teams}
    for team in game.teams:
        singular = team.name[:-1] if team.name.endswith("s") and " " not in team.name else ""
        says = [say for say in (f"{team.city} {team.name}", team.name, singular) if say.strip()]
        yield from (Phrase(_normalised_words(say), "T", (team,)) for say in says)
        if team.city:
            yield Phrase(
                _normalised_words(team.city), "C", tuple(other for other in game.teams if other.city == team.city)
            )
        yield from (Phrase(_normalised_words(say), "H", (team,), proper=False) for say in _SIDES[team.side])
    for phrase in _league_phrases():
        names = [teams.get(name, name) for name in phrase.value]
        here = tuple(name for name in names if isinstance(name, Team))
        yield replace(phrase, value=here or tuple(names))


def _known_players(game: Game) -> Iterator[Phrase]:
    """Full names, surnames and first names; a short name stands for all who bear it, a surname before a first name."""
    surnames: dict[tuple[str, ...], list[Player]] = {}
    firsts: dict[tuple[str, ...], list[Player]] = {}
    for player in game.players:
        whole = _normalised_words(" ".join(player.name_words))
        yield Phrase(whole, "P", (player,))
        if len(player.name_words) > 1:
            for short in {_normalised_words(" ".join(player.name_words[1:])), _normalised_words(player.name_words[-1])}:
                surnames.setdefault(short, []).append(player)
            firsts.setdefault(_normalised_words(player.name_words[0]), []).append(player)
    for words, bearers in (firsts | surnames).items():
        if words in surnames or (words[0] not in _NOT_NAMES and len(words[0]) > 2):
            yield Phrase(words, "P", tuple(bearers))


def parse_sentences(text: str, game: Game) -> list[Sentence]:
    """The sentences of a report, names and numbers as codes."""
    codes = build_phrases(game)
    matches = list(tokens(text))
    result: list[list[Word]] = [[]]
    at = 0
    while at < len(matches):
        word, at = _read_word(matches, at, codes)
        result[-1].append(word)
        ends = word.code in {".", "!", "?"} and not _ends_with_abbreviation(result[-1])
        if ends or len(result[-1]) >= _MAX_SENTENCE_WORDS:
            result.append([])
    named = (_merge_numbers(_merge_names(words)) for words in result if words)
    return [Sentence(tuple(_resolve_near_name(word, text, game) for word in words)) for words in named]


def _resolve_near_name(word: Word, text: str, game: Game) -> Word:
    """A name that is a slip of the pen or a short form away from one of the record means that one."""
    if not word.odd or word.code not in "PX":
        return word
    written = text[word.start : word.end].lower()
    near = difflib.get_close_matches(written, [player.name.lower() for player in game.players], n=1, cutoff=0.85)
    meant = [player for player in game.players if player.name.lower() in near or _is_short_form(written, player)]
    return replace(word, code="P", value=tuple(meant[:1]), odd=False) if meant else word


def _is_short_form(written: str, player: Player) -> bool:
    """`Steph Curry` for Stephen Curry."""
    first, _, rest = written.partition(" ")
    return len(first) > 2 and player.name.lower().startswith(first) and player.name.lower().endswith(" " + rest)


def _ends_with_abbreviation(words: list[Word]) -> bool:
    return len(words) > 1 and words[-2].code in {"jr", "sr", "st", "vs"}


def _read_word(matches: list[re.Match[str]], at: int, codes: Phrases) -> tuple[Word, int]:
    """The word that begins at token `at`, and where the next one begins."""
    token = matches[at][0]
    for phrase in codes.get(normalise_token(token), ()):
        end = at + len(phrase.words)
        begins = not phrase.proper or token[0].isupper() or token[0].isdigit()
        if begins and tuple(normalise_token(match[0]) for match in matches[at:end]) == phrase.words:
            return Word(phrase.code, matches[at].start(), matches[end - 1].end(), phrase.value), end
    return _classify_token(matches[at]), at + 1


def _classify_token(match: re.Match[str]) -> Word:
    """A token that is no name and no statistic: a number, an ordinal, perhaps a person, or just a word."""
    token = match[0]
    low = token.lower().replace("’", "'")
    code, value = low, None
    if low.isascii() and low.isdigit():
        code, value = "N", int(low)
    elif low in NUMBERS:
        code, value = "N", NUMBERS[low]
    elif low in ORDINALS or _ORDINAL.fullmatch(low):
        code, value = "O", ORDINALS.get(low) or int(low[:-2])
    elif token[0].isupper() and len(token) > 1 and low not in _NOT_NAMES:
        return Word("X", match.start(), match.end(), low, odd=token.isupper())  # a capital letter: perhaps a name
    return Word(code, match.start(), match.end(), value)


def _merge_names(words: list[Word]) -> list[Word]:
    """Names put together: what stands side by side is one person, known, misnamed (`odd`) or not in the record."""
    result: list[Word] = []
    at = 0
    while at < len(words):
        end = at + 1
        if words[at].code in "PX":
            while end < len(words) and words[end].code in "PX" and words[end].value not in _SUFFIXES:
                end += 1
            result += _merge_name_run(words[at:end], begins=at == 0)
            end = _skip_name_suffix(words, end)
            result[-1] = replace(result[-1], end=words[end - 1].end)
        else:
            result.append(words[at])
        at = end
    return result


def _merge_name_run(run: list[Word], begins: bool) -> list[Word]:
    """One run of name words; a lone capital, and one that only begins the sentence, is an ordinary word."""
    if begins and run[0].code == "X" and (len(run) == 1 or run[1].code == "P") and not run[0].odd:
        return [replace(run[0], code=run[0].value), *(_merge_name_run(run[1:], begins=False) if run[1:] else [])]
    listed = [word for word in run if word.code == "P"]
    if len(run) == 1:
        return listed or [replace(run[0], code=run[0].value, odd=False)]
    whole = replace(run[-1], start=run[0].start, end=run[-1].end, odd=True)
    if run[0].code == "P" and not listed[1:] and all(len(player.name_words) == 1 for player in run[0].value):
        return [replace(whole, code="P", value=run[0].value, odd=False)]  # the record calls him by one name
    return [whole]


def _skip_name_suffix(words: list[Word], end: int) -> int:
    """Past `Jr`, `, Jr.` or `III` after a name."""
    codes = [word.code if word.code != "X" else word.value for word in words[end : end + 2]]
    if codes[:1] and codes[0] in _SUFFIXES:
        return end + 1
    return end + 2 if codes[:1] == [","] and codes[1:] and codes[1] in _SUFFIXES else end


def _merge_numbers(words: list[Word]) -> list[Word]:
    """`a steal`, `a pair of steals`, `twenty - five points`: numbers in other clothes."""
    result: list[Word] = []
    for number, word in enumerate(words):
        following = [following_word.code for following_word in words[number + 1 : number + 3]]
        if word.code in NUMBER_BY_ARTICLE and _is_counting_article(word.code, following):
            result.append(replace(word, code="N", value=NUMBER_BY_ARTICLE[word.code]))
        elif _completes_tens(result, word):
            result[-2:] = [replace(result[-2], end=word.end, value=result[-2].value + word.value)]
        else:
            result.append(word)
    return result


def _is_counting_article(article: str, following: list[str]) -> bool:
    """Whether an article stands for a number: something that is counted follows."""
    if article in {"pair", "couple"}:
        return following[:1] == ["of"] and following[1:] != [] and following[1].startswith("S")
    return following[:1] != [] and following[0].startswith("S") and following[0] != "Sminutes"


def _completes_tens(before: list[Word], word: Word) -> bool:
    """Whether it is the `five` of `twenty - five`, spelled out."""
    if word.code != "N" or not 0 < word.value < 10 or word.end - word.start < 2 or len(before) < 2:
        return False
    tens, hyphen = before[-2:]
    spelled = tens.code == "N" and tens.value in range(20, 100, 10) and tens.end - tens.start > 2
    return hyphen.code == "-" and spelled
