"""Detokenisation of texts stored with spaces around punctuation."""

from __future__ import annotations

import re

_TREEBANK_SIGNS = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
    "``": '"',
    "''": '"',
}
"""Punctuation marks by their Penn Treebank escape."""
_TREEBANK_SIGN_PATTERN = re.compile(r"(?<!\S)(" + "|".join(map(re.escape, _TREEBANK_SIGNS)) + r")(?!\S)", re.IGNORECASE)
_AT_SIGN_JOINER = re.compile(r"[ \t]*@([-,.])@[ \t]*")
_SPACE_BEFORE_SIGN = re.compile(r"[ \t]+(?=[.,;:!?%)\]}»”…](?:\s|$|[.,;:!?)\]}»”\"']))")
_SPACE_AFTER_SIGN = re.compile(r"(?<=[(\[{«“$£€])[ \t]+(?=\S)")
_SPACE_BEFORE_CLITIC = re.compile(r"(?<=\w)[ \t]+(?=(?:n['’]t|['’](?:s|m|d|re|ve|ll))\b)", re.IGNORECASE)
_SPACED_QUOTE = re.compile(r'(?<!\S)"[ \t]+([^"\n]*?)[ \t]+"(?=[\s.,;:!?)]|$)')


def detokenise(text: str) -> str:
    """Remove the spaces that a tokenizer inserted into a text; texts that were not tokenised stay unchanged.

    >>> detokenise("`` I do n't know , '' she said -LRB- twice -RRB- . It cost $ 3 @,@ 000 .")
    '"I don\\'t know," she said (twice). It cost $3,000.'
    """
    text = _AT_SIGN_JOINER.sub(r"\1", text)
    text = _TREEBANK_SIGN_PATTERN.sub(
        lambda match: _TREEBANK_SIGNS.get(match[1], _TREEBANK_SIGNS.get(match[1].upper(), match[1])), text
    )
    text = _SPACE_BEFORE_CLITIC.sub("", text)
    text = _SPACE_AFTER_SIGN.sub("", text)
    text = _SPACE_BEFORE_SIGN.sub("", text)
    return _SPACE_BEFORE_SIGN.sub("", _SPACED_QUOTE.sub(r'"\1"', text))
