"""Sentences: a fast rule that needs no model. A sentence ends

1. after `.`, `!`, `?` or `…` with any closing quotes and brackets, where white space follows and the next letter is not
   lower case, unless the full stop ends an initial (`J.`), a title (`Dr.`) or another common abbreviation, or the
   number of a list's item;
2. after `。`, `！`, `？`, `｡` or their kin in other scripts (`।`, `؟`, `။`), with or without white space;
3. at a blank line, and at a line break unless the next line begins with a lower-case letter and is thus a wrapped line;
4. before the next item of a list that is written into one line (`1) Milk 2) Bread`).

An abbreviation with inner stops (`U.S.`, `p.m.`) ends a sentence only before a word that usually begins one, so that
`the U.S. Army` stays together and `the U.S. It` does not. An omission (`. . .`, `[...]`) ends none by itself; with one
stop more (`. . . .`) it does. Every visible character belongs to exactly one sentence, and white space around sentences
to none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import regex

from finecomb.core.span import Offsets

_CLOSERS = r"[\"'”’»›)\]}」』）】》]*"
_STOP = regex.compile(
    rf"""
      (?P<hard>[。！？｡．।॥؟۔။]+{_CLOSERS})
    | (?P<omission>(?:\[\s?(?:\.\s?){{3}}\]|(?<![.!?…])\.(?:\x20\.){{2,}}+(?!\.)){_CLOSERS})(?=\s|\Z)
    | (?P<soft>[.!?…]+{_CLOSERS})(?=\s)
    | (?P<line>[\r\n\u2028\u2029]\s*)
    """,
    regex.VERSION1 | regex.VERBOSE,
)
_ABBREVIATIONS = frozenset(
    """mr mrs ms mx dr prof st rev gen col capt cmdr lt sgt sen rep gov pres hon messrs mt ft vs e.g i.e cf fig figs
    eq""".split()
)
_NUMBER_ABBREVIATIONS = frozenset(
    """no nos n° n.º vol pp p ed approx est ca sec ch art jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed
    thu fri sat sun""".split()
)
_SENTENCE_STARTERS = frozenset(
    """a an and another as at but by did do does for from had has have he her here his how however i if in is it its
    my nobody no nor not of on one or our she so some such that the their then there these they this those to was we
    were what when where whether which while who why will with yes you your""".split()
)
"""Words that usually begin a sentence when they are capitalised in the middle of a text."""
_LAST_WORD = regex.compile(r"[\w.&°º]+$")
_NEXT_WORD = regex.compile(r"[\s\"'“‘«‹(\[{「『（]*(\w+)")
_DOTTED_ABBREVIATION = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]{1,2}")
_MAX_ABBREVIATION_LENGTH = 24
_LIST_NUMBER = re.compile(r"[\r\n\u2028\u2029][^\S\r\n]*\d{1,3}\Z")
_LINE_BREAK = re.compile(r"\r\n|[\r\n\u2028\u2029]")
_FIRST_ITEM = re.compile(
    r"(?:^|(?<=[\r\n\u2028\u2029]))[^\S\r\n]*(?P<bullet>[•⁃‣*-]?)[^\S\r\n]?(?P<item>\d{1,3}|a)(?P<sign>\.\)|\)|\.)[^\S\r\n]"
)


def sentences(text: str) -> Offsets:
    """The code-point offsets of the sentences of a text, by the rule at the top of this module.

    >>> text = "Dr. Ng left. “Why?” she asked. The U.S. Army came at 5 p.m. on Friday."
    >>> [text[start:end] for start, end in sentences(text)]
    ['Dr. Ng left.', '“Why?” she asked.', 'The U.S. Army came at 5 p.m. on Friday.']
    """
    items = dict(_list_items(text))
    starts = [0]
    for boundary in sorted({*items, *_boundaries(text, set(items.values()))}):
        if boundary > starts[-1]:
            starts.append(boundary)
    bounds = zip(starts, [*starts[1:], len(text)], strict=True)
    offsets = [trimmed for start, end in bounds if (trimmed := _trim_whitespace(text, start, end))]
    return np.array(offsets, dtype=np.int64).reshape(-1, 2)


def _boundaries(text: str, list_stops: set[int]) -> Iterator[int]:
    """Where a sentence ends by its stop or line; `list_stops` are the full stops that belong to numbers of a list."""
    start = 0
    for match in _STOP.finditer(text):
        if match.start() not in list_stops and _ends_sentence(text, match, start):
            start = match.end()
            yield start


def _ends_sentence(text: str, match: regex.Match[str], start: int) -> bool:
    if match.lastgroup == "hard":
        return True
    following = _next_visible(text, match.end())
    if match.lastgroup == "line":
        return not following.islower() or len(_LINE_BREAK.findall(match.group())) > 1
    if following.islower():
        return False
    if match.lastgroup == "omission":
        return _closes_sentence(text, match)
    if not match.group().startswith("."):
        return True
    before = text[max(start, match.start() - _MAX_ABBREVIATION_LENGTH) : match.start()]
    return not (_is_abbreviation(before, text, match.end(), following) or _is_list_number(text, match.start()))


def _closes_sentence(text: str, omission: regex.Match[str]) -> bool:
    """Whether an omission has a full stop of its own: one stop more, or one that stands at the word before it."""
    stops = omission.group().count(".")
    attached = omission.start() > 0 and not text[omission.start() - 1].isspace()
    return not omission.group().startswith("[") and (stops > 3 or attached)


def _next_visible(text: str, at: int) -> str:
    """The first letter, digit or sign at or after `at` that is no opening quote or bracket, or an empty string."""
    while at < len(text) and (text[at].isspace() or text[at] in "\"'“‘«‹([{「『（"):
        at += 1
    return text[at : at + 1]


def _is_abbreviation(before: str, text: str, after: int, following: str) -> bool:
    """Whether the full stop after `before` belongs to its last word and the sentence goes on."""
    match = _LAST_WORD.search(before)
    word = match.group() if match else ""
    if len(word) == 1 and word.isalpha() and word.isupper():
        return _is_initial(word, before[:-1], text, after)
    folded = word.lower()
    if folded in _ABBREVIATIONS or (folded in _NUMBER_ABBREVIATIONS and following.isdigit()):
        return True
    return (
        _DOTTED_ABBREVIATION.fullmatch(word) is not None and following != "" and not _begins_sentence(word, text, after)
    )


def _is_initial(letter: str, before: str, text: str, after: int) -> bool:
    """Whether a single capital is part of a name: `J. Ng`, `Albert I. Jones`, but not `vitamin C. Then`."""
    words = before.split()
    name = words[-1] if words else ""
    if letter == "I" or name.islower():
        begins = _begins_sentence("", text, after)
        return not begins if letter != "I" else name.istitle() and name.lower() not in _SENTENCE_STARTERS and not begins
    return True


def _begins_sentence(abbreviation: str, text: str, at: int) -> bool:
    """Whether what follows an abbreviation begins a sentence; after `P.M.` anything but a number does."""
    match = _NEXT_WORD.match(text, at)
    word = match.group(1) if match else ""
    return word.lower() in _SENTENCE_STARTERS or (abbreviation in ("A.M", "P.M") and not word[:1].isdigit())


# --- lists -------------------------------------------------------------------------------------------------------


def _is_list_number(text: str, stop: int) -> bool:
    """Whether the full stop at `stop` ends nothing but a number of up to three digits at the start of a line."""
    near = text[stop - 24 : stop] if stop > 24 else "\n" + text[:stop]
    return _LIST_NUMBER.search(near) is not None


def _list_items(text: str) -> Iterator[tuple[int, int]]:
    """Where each item of a list that is written into one line begins, and where the full stop of its number is."""
    for first in _FIRST_ITEM.finditer(text):
        end = _LINE_BREAK.search(text, first.end())
        rest = list(_later_items(text, first, end.start() if end else len(text)))
        if rest or first["bullet"]:
            yield from [(first.start(), first.start("sign")), *rest]


def _later_items(text: str, first: re.Match[str], end: int) -> Iterator[tuple[int, int]]:
    """The second and later items of a line whose numbers or letters count on, written as the first is."""
    number, at = first["item"], first.end()
    while number != "z":
        number = str(int(number) + 1) if number.isdigit() else chr(ord(number) + 1)
        sign = rf"(?<=\s){re.escape(first['bullet'])}[^\S\r\n]?{number}({re.escape(first['sign'])})(?=\s)"
        item = re.compile(sign).search(text, at, end)
        if item is None:
            return
        yield item.start(), item.start(1)
        at = item.end()


def _trim_whitespace(text: str, start: int, end: int) -> tuple[int, int] | None:
    stripped = text[start:end].strip()
    if not stripped:
        return None
    start = text.index(stripped[0], start)
    return start, start + len(stripped)
