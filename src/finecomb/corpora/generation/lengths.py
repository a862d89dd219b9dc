"""Length limits for texts, counted in words and always cut at the end of a sentence."""

from __future__ import annotations

import re
from typing import NamedTuple

from pydantic import Field, model_validator

from finecomb.core import tokens
from finecomb.core.errors import ParameterError, param
from finecomb.core.records import Record
from finecomb.core.sentences import sentence_offsets


class CutText(NamedTuple):
    """Text cut at the end of a sentence, or the reason why it was rejected."""

    text: str
    words: int
    """Number of words in the text."""
    why: str = ""
    """Reason why the text was rejected; empty if it was not."""


class LengthRule(Record):
    """Limits on text length: a text ends with the first sentence that reaches `least` words, and has at most `most`.

    Dou et al. (2022) use 80 to 145 words, Clark et al. (2021) at least 100. Words are those of `finecomb.core.tokens`,
    which count a punctuation mark as a word, as Stanza's tokens do.
    """

    least: int = Field(default=80, ge=1)
    most: int | None = Field(default=145, ge=1)
    """Maximum number of words; None for no limit."""

    @model_validator(mode="after")
    def _check_range(self) -> LengthRule:
        if self.most is not None and self.most < self.least:
            raise ValueError(f"the minimum of {self.least} words is above the maximum of {self.most}")
        return self

    @classmethod
    def parse(cls, text: str) -> LengthRule:
        """Parse a rule such as `80-145`, or `100-` for no maximum.

        >>> LengthRule.parse("100-").most is None
        True
        """
        match = re.fullmatch(r"(\d+)-(\d*)", text.strip())
        if not match or int(match[1]) < 1 or (match[2] and int(match[2]) < int(match[1])):
            raise ParameterError(
                f"{param('words', text)}: expected MIN-MAX or MIN-, e.g. 80-145 or 100-", parameter="words"
            )
        return cls(least=int(match[1]), most=int(match[2]) if match[2] else None)

    def __str__(self) -> str:
        return f"{self.least}-{self.most or ''}"

    def cut_to_length(self, text: str, is_whole: bool) -> CutText:
        """Return the text up to the end of the first sentence that reaches the minimum number of words.

        With `is_whole` false, the text may continue, so its last sentence is not complete.

        >>> LengthRule(least=4, most=8).cut_to_length("One two. Three four. Five", is_whole=False).text
        'One two. Three four.'
        """
        text = text.strip()
        word_ends = tokens.word_offsets(text)[:, 1]
        ends = sentence_offsets(text)[:, 1]
        for end in ends if is_whole else ends[:-1]:
            words = int(word_ends.searchsorted(end, side="right"))
            if words >= self.least and self.most is not None and words > self.most:
                return CutText("", words, f"no sentence ends within {self} words")
            if words >= self.least:
                return CutText(text[:end], words)
        if self.most is not None and len(word_ends) > self.most:
            return CutText("", len(word_ends), f"no sentence ends within {self} words")
        why = (
            f"fewer than {self.least} words" if is_whole or len(word_ends) < self.least else "cut off within a sentence"
        )
        return CutText("", len(word_ends), why)

    def can_stop_generating(self, text: str) -> bool:
        """Check whether the text is complete or already too long, so that more words would not change the result."""
        cut = self.cut_to_length(text, is_whole=False)
        return bool(cut.text) or (self.most is not None and cut.words > self.most)

    def token_budget(self) -> int:
        """Return a token limit above the usual length of a text under this rule, with room for its last sentence."""
        return 2 * (self.most or 2 * self.least + 100)
