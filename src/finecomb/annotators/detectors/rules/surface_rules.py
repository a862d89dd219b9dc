"""Surface rules: doubled words, unbalanced quotes and brackets, and unfinished endings."""

from __future__ import annotations

from collections.abc import Iterator

import regex

from finecomb.annotators.detectors.rules.rule_finding import RuleFinding
from finecomb.core.records import Document

_DOUBLED_WORD_PATTERN = regex.compile(r"\b(?P<word>\p{L}+)\s+(?P<again>(?P=word))\b(?![-’'])", regex.IGNORECASE)
_ALLOWED_DOUBLES = frozenset("had that is bye ha no so very really yes well now there far many again long blah".split())
_CLOSING_SIGN_BY_OPENING = {"(": ")", "[": "]", "{": "}", "“": "”", "«": "»", "「": "」", "『": "』"}
_SENTENCE_END_SIGNS = frozenset(".!?…\"'”’»)]}。！？」』】।؟۔:;*`")


def find_doubled_words(document: Document) -> Iterator[RuleFinding]:
    """Find doubled words such as `the the`, except words that can be correct twice in a row."""
    for match in _DOUBLED_WORD_PATTERN.finditer(document.text):
        word, again = match["word"], match["again"]
        if word.casefold() not in _ALLOWED_DOUBLES and not (word[0].isupper() and again[0].isupper()):
            start, end = match.span("again")
            yield RuleFinding(start, end, "grammar-usage", f"“{again}” is repeated.", match.span("word"))


def find_unbalanced_signs(document: Document) -> Iterator[RuleFinding]:
    """Find unmatched quotation marks and brackets in each paragraph."""
    start = 0
    for paragraph in document.text.split("\n"):
        open_: list[int] = []
        closing = {closer: opener for opener, closer in _CLOSING_SIGN_BY_OPENING.items()}
        for index, sign in enumerate(paragraph):
            if sign in _CLOSING_SIGN_BY_OPENING:
                open_.append(index)
            elif sign in closing and sign != "’":
                if open_ and paragraph[open_[-1]] == closing[sign]:
                    open_.pop()
                    continue
                # A bracket may end a list number, as in `1)` or `a)`, or belong to an emoticon.
                before = paragraph[max(0, index - 3) : index].strip()
                if sign != ")" or not (before.isdigit() or len(before) == 1 or before[-1:] in ":;-="):
                    yield _unbalanced_sign_finding(start + index, f"“{sign}” is never opened.")
        for index in open_:
            yield _unbalanced_sign_finding(start + index, f"“{paragraph[index]}” is never closed.")
        straight = [index for index, sign in enumerate(paragraph) if sign == '"']
        if len(straight) % 2:
            yield _unbalanced_sign_finding(start + straight[-1], "This quotation mark is unmatched.")
        start += len(paragraph) + 1


def _unbalanced_sign_finding(index: int, reason: str) -> RuleFinding:
    return RuleFinding(index, index + 1, "grammar-usage", reason)


def find_unfinished_ending(document: Document) -> Iterator[RuleFinding]:
    """Find the last words of a multi-sentence text that ends mid-sentence."""
    text = document.text.rstrip()
    if len(text) < 80 or text[-1] in _SENTENCE_END_SIGNS or not regex.search(r"[.!?。！？]\s", text):
        return
    words = list(regex.finditer(r"\S+", text))
    start = words[-min(3, len(words))].start()
    yield RuleFinding(start, len(text), "grammar-usage", "The text ends in the middle of a sentence.")
