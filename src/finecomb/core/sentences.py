"""Sentence splitting by a fast rule without a model.

A sentence ends

1. after `.`, `!`, `?` or `…` with any closing quotes and brackets, if white space follows and the next letter is not
   lower case, unless the full stop ends an initial (`J.`), a title (`Dr.`), another common abbreviation or the number
   of a list item;
2. after `。`, `！`, `？`, `｡` or the corresponding characters of other scripts (`।`, `؟`, `။`), with or without white
   space;
3. at a blank line, and at a line break unless the next line begins with a lower-case letter, which indicates a wrapped
   line;
4. before the next item of a list that is written in one line (`1) Milk 2) Bread`).

An abbreviation with inner stops (`U.S.`, `p.m.`) ends a sentence only before a word that usually begins one, so that
`the U.S. Army` stays together and `the U.S. It` is split. An omission (`. . .`, `[...]`) does not end a sentence by
itself; with an additional stop (`. . . .`) it does. Every visible character belongs to exactly one sentence; white
space around sentences belongs to none.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import numpy as np
import regex

from finecomb.core.span import Offsets

_CLOSERS = r"[\"'”’»›)\]}」』）】》]*"
_SENTENCE_STOP = regex.compile(
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
"""Words that usually begin a sentence if they are capitalised in the middle of a text."""
_LAST_WORD = regex.compile(r"[\w.&°º]+$")
_NEXT_WORD = regex.compile(r"[\s\"'“‘«‹(\[{「『（]*(\w+)")
_DOTTED_ABBREVIATION = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]{1,2}")
_MAX_ABBREVIATION_LENGTH = 24
_LIST_NUMBER = re.compile(r"[\r\n\u2028\u2029][^\S\r\n]*\d{1,3}\Z")
_LINE_BREAK = re.compile(r"\r\n|[\r\n\u2028\u2029]")
_FIRST_ITEM = re.compile(
    r"(?:^|(?<=[\r\n\u2028\u2029]))[^\S\r\n]*(?P<bullet>[•⁃‣*-]?)[^\S\r\n]?(?P<item>\d{1,3}|a)(?P<sign>\.\)|\)|\.)[^\S\r\n]"
)


def sentence_offsets(text: str) -> Offsets:
    """Return the code-point offsets of the sentences of a text, (n, 2), by the rule in the module docstring.

    >>> text = "Dr. Ng left. “Why?” she asked. The U.S. Army came at 5 p.m. on Friday."
    >>> [text[start:end] for start, end in sentence_offsets(text)]
    ['Dr. Ng left.', '“Why?” she asked.', 'The U.S. Army came at 5 p.m. on Friday.']
    """
    # Start of each item of a list written in one line, and the position of the full stop after its number
    items: dict[int, int] = {}
    for first in _FIRST_ITEM.finditer(text):
        line_end = _LINE_BREAK.search(text, first.end())
        following = list(_following_list_items(text, first, line_end.start() if line_end else len(text)))
        if following or first["bullet"]:
            items |= {first.start(): first.start("sign"), **dict(following)}
    list_stops, boundaries, sentence_start = set(items.values()), set(items), 0
    for match in _SENTENCE_STOP.finditer(text):
        if match.start() not in list_stops and _ends_sentence(text, match, sentence_start):
            sentence_start = match.end()
            boundaries.add(sentence_start)
    edges = sorted({0, len(text), *boundaries})
    offsets: list[tuple[int, int]] = []
    for start, end in itertools.pairwise(edges):
        if stripped := text[start:end].strip():
            start = text.index(stripped[0], start)
            offsets.append((start, start + len(stripped)))
    return np.array(offsets, dtype=np.int64).reshape(-1, 2)


def _ends_sentence(text: str, match: regex.Match[str], start: int) -> bool:
    if match.lastgroup == "hard":
        return True
    # First visible character from `at` on that is not an opening quote or bracket, or an empty string
    at = match.end()
    while at < len(text) and (text[at].isspace() or text[at] in "\"'“‘«‹([{「『（"):
        at += 1
    following = text[at : at + 1]
    if match.lastgroup == "line":
        return not following.islower() or len(_LINE_BREAK.findall(match.group())) > 1
    if following.islower():
        return False
    if match.lastgroup == "omission":
        stops = match.group().count(".")
        attached = match.start() > 0 and not text[match.start() - 1].isspace()
        return not match.group().startswith("[") and (stops > 3 or attached)
    if not match.group().startswith("."):
        return True
    before = text[max(start, match.start() - _MAX_ABBREVIATION_LENGTH) : match.start()]
    line_start = text[match.start() - 24 : match.start()] if match.start() > 24 else "\n" + text[: match.start()]
    return not (_is_abbreviation(before, text, match.end(), following) or _LIST_NUMBER.search(line_start))


def _is_abbreviation(before: str, text: str, after: int, following: str) -> bool:
    """Return True if the full stop after `before` belongs to an abbreviation and the sentence continues."""
    match = _LAST_WORD.search(before)
    word = match.group() if match else ""
    if len(word) == 1 and word.isalpha() and word.isupper():
        # True if a single capital is part of a name: `J. Ng`, `Albert I. Jones`, but not `vitamin C. Then`.
        words = before[:-1].split()
        name = words[-1] if words else ""
        if word == "I" or name.islower():
            begins = _sentence_begins_after("", text, after)
            return (
                not begins if word != "I" else name.istitle() and name.lower() not in _SENTENCE_STARTERS and not begins
            )
        return True
    folded = word.lower()
    if folded in _ABBREVIATIONS or (folded in _NUMBER_ABBREVIATIONS and following.isdigit()):
        return True
    return (
        _DOTTED_ABBREVIATION.fullmatch(word) is not None
        and following != ""
        and not _sentence_begins_after(word, text, after)
    )


def _sentence_begins_after(abbreviation: str, text: str, at: int) -> bool:
    """Return True if a sentence begins after an abbreviation; after `P.M.`, anything but a number begins a sentence."""
    match = _NEXT_WORD.match(text, at)
    word = match.group(1) if match else ""
    return word.lower() in _SENTENCE_STARTERS or (abbreviation in ("A.M", "P.M") and not word[:1].isdigit())


# --- lists -------------------------------------------------------------------------------------------------------


def _following_list_items(text: str, first: re.Match[str], end: int) -> Iterator[tuple[int, int]]:
    """Yield the second and later items of a line whose numbers or letters continue from the first item."""
    number, position = first["item"], first.end()
    while number != "z":
        number = str(int(number) + 1) if number.isdigit() else chr(ord(number) + 1)
        sign = rf"(?<=\s){re.escape(first['bullet'])}[^\S\r\n]?{number}({re.escape(first['sign'])})(?=\s)"
        item = re.compile(sign).search(text, position, end)
        if item is None:
            return
        yield item.start(), item.start(1)
        position = item.end()
