"""What can be seen without understanding: doubled words, quotes and brackets that do not close, broken endings."""

from __future__ import annotations

from collections.abc import Iterator

import regex

from finecomb.annotators.detectors.rules.rule_finding import RuleFinding
from finecomb.core.records import Document

_DOUBLED = regex.compile(r"\b(?P<word>\p{L}+)\s+(?P<again>(?P=word))\b(?![-’'])", regex.IGNORECASE)
_ALLOWED_DOUBLES = frozenset("had that is bye ha no so very really yes well now there far many again long blah".split())
_PAIRS = {"(": ")", "[": "]", "{": "}", "“": "”", "«": "»", "「": "」", "『": "』"}
_SENTENCE_END_SIGNS = frozenset(".!?…\"'”’»)]}。！？」』】।؟۔:;*`")


def find_doubled_words(document: Document) -> Iterator[RuleFinding]:
    """`the the`: the second one is marked, unless the word may well come twice."""
    for match in _DOUBLED.finditer(document.text):
        word, again = match["word"], match["again"]
        if word.casefold() not in _ALLOWED_DOUBLES and not (word[0].isupper() and again[0].isupper()):
            start, end = match.span("again")
            yield RuleFinding(start, end, "grammar-usage", f"“{again}” stands twice in a row.", match.span("word"))


def find_unbalanced_signs(document: Document) -> Iterator[RuleFinding]:
    """Quotes and brackets that open and never close, or close and were never opened, within their paragraph."""
    start = 0
    for paragraph in document.text.split("\n"):
        yield from _unbalanced_in_paragraph(paragraph, start)
        start += len(paragraph) + 1


def _unbalanced_in_paragraph(text: str, offset: int) -> Iterator[RuleFinding]:
    open_: list[int] = []
    closing = {closer: opener for opener, closer in _PAIRS.items()}
    for at, sign in enumerate(text):
        if sign in _PAIRS:
            open_.append(at)
        elif sign in closing and sign != "’":
            if open_ and text[open_[-1]] == closing[sign]:
                open_.pop()
            elif not _is_list_bracket(text, at):
                yield _sign_finding(offset + at, f"“{sign}” closes what was never opened.")
    for at in open_:
        yield _sign_finding(offset + at, f"“{text[at]}” is opened and never closed.")
    straight = [at for at, sign in enumerate(text) if sign == '"']
    if len(straight) % 2:
        yield _sign_finding(offset + straight[-1], "This quotation mark has no partner.")


def _is_list_bracket(text: str, at: int) -> bool:
    """Whether a bracket ends the number of a list, as in `1)` or `a)`, or is the mouth of a smiley."""
    before = text[max(0, at - 3) : at].strip()
    return text[at] == ")" and (before.isdigit() or len(before) == 1 or before[-1:] in ":;-=")


def _sign_finding(at: int, reason: str) -> RuleFinding:
    return RuleFinding(at, at + 1, "grammar-usage", reason)


def find_broken_ending(document: Document) -> Iterator[RuleFinding]:
    """A text of several sentences whose last words have no end."""
    text = document.text.rstrip()
    if len(text) < 80 or text[-1] in _SENTENCE_END_SIGNS or not regex.search(r"[.!?。！？]\s", text):
        return
    words = list(regex.finditer(r"\S+", text))
    start = words[-min(3, len(words))].start()
    yield RuleFinding(start, len(text), "grammar-usage", "The text breaks off in the middle of a sentence.")
