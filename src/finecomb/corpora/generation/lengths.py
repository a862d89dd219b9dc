"""How long texts are: counted in words of our tokenizer, and always cut at the end of a sentence."""

from __future__ import annotations

import re
from typing import NamedTuple

from pydantic import Field, model_validator

from finecomb.core import tokens
from finecomb.core.errors import ParameterError, param
from finecomb.core.records import Record
from finecomb.core.sentences import sentences


class CutText(NamedTuple):
    """A text cut at the end of a sentence, or why it could not be."""

    text: str
    words: int
    """Of the text."""
    why: str = ""
    """Why there is no text; empty where there is one."""


class LengthRule(Record):
    """Texts end with the first sentence that reaches `least` words; with more than `most` they do not count.

    Dou et al. (2022) have 80 to 145, Clark et al. (2021) at least 100. Words are those of `finecomb.core.tokens`, in
    which a punctuation mark is one, as it is in Stanza's tokens.
    """

    least: int = Field(default=80, ge=1)
    most: int | None = Field(default=145, ge=1)
    """No limit when None."""

    @model_validator(mode="after")
    def _is_a_range(self) -> LengthRule:
        if self.most is not None and self.most < self.least:
            raise ValueError(f"a text cannot have at least {self.least} and at most {self.most} words")
        return self

    @classmethod
    def parse(cls, text: str) -> LengthRule:
        """From `80-145`, or `100-` for no limit.

        >>> LengthRule.parse("100-").most is None
        True
        """
        match = re.fullmatch(r"(\d+)-(\d*)", text.strip())
        if not match or int(match[1]) < 1 or (match[2] and int(match[2]) < int(match[1])):
            raise ParameterError(
                f"{param('words', text)}: expected LEAST-MOST or LEAST-, e.g. 80-145 or 100-", parameter="words"
            )
        return cls(least=int(match[1]), most=int(match[2]) if match[2] else None)

    def __str__(self) -> str:
        return f"{self.least}-{self.most or ''}"

    def cut(self, text: str, is_whole: bool) -> CutText:
        """The text up to the end of the first sentence that reaches the least number of words.

        The last sentence of a text that goes on (`is_whole` is false) has no end yet.

        >>> LengthRule(least=4, most=8).cut("One two. Three four. Five", is_whole=False).text
        'One two. Three four.'
        """
        text = text.strip()
        word_ends = tokens.words(text)[:, 1]
        ends = sentences(text)[:, 1]
        for end in ends if is_whole else ends[:-1]:
            words = int(word_ends.searchsorted(end, side="right"))
            if words >= self.least:
                return self._reject_if_too_long(text[:end], words)
        if self.most is not None and len(word_ends) > self.most:
            return CutText("", len(word_ends), f"no sentence ends within {self} words")
        why = f"fewer than {self.least} words" if is_whole or len(word_ends) < self.least else "cut off in a sentence"
        return CutText("", len(word_ends), why)

    def _reject_if_too_long(self, text: str, words: int) -> CutText:
        if self.most is not None and words > self.most:
            return CutText("", words, f"no sentence ends within {self} words")
        return CutText(text, words)

    def is_settled(self, text: str) -> bool:
        """Whether more words can change nothing: the text has its end, or is too long to get one."""
        cut = self.cut(text, is_whole=False)
        return bool(cut.text) or (self.most is not None and cut.words > self.most)

    def token_budget(self) -> int:
        """More subword tokens than a text of this length usually has, with room for its last sentence."""
        return 2 * (self.most or 2 * self.least + 100)
