"""Texts that were stored as tokens, with blanks around every sign, written as people write them."""

from __future__ import annotations

import re

_SIGNS = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
    "``": '"',
    "''": '"',
}
"""How treebanks write signs."""
_SIGN = re.compile(r"(?<!\S)(" + "|".join(map(re.escape, _SIGNS)) + r")(?!\S)", re.IGNORECASE)
_INSIDE = re.compile(r"[ \t]*@([-,.])@[ \t]*")
_BEFORE = re.compile(r"[ \t]+(?=[.,;:!?%)\]}»”…](?:\s|$|[.,;:!?)\]}»”\"']))")
_AFTER = re.compile(r"(?<=[(\[{«“$£€])[ \t]+(?=\S)")
_CLITIC = re.compile(r"(?<=\w)[ \t]+(?=(?:n['’]t|['’](?:s|m|d|re|ve|ll))\b)", re.IGNORECASE)
_QUOTED = re.compile(r'(?<!\S)"[ \t]+([^"\n]*?)[ \t]+"(?=[\s.,;:!?)]|$)')


def detokenised(text: str) -> str:
    """The text without the blanks that a tokenizer put in; a text that has none of them stays as it is.

    >>> detokenised("`` I do n't know , '' she said -LRB- twice -RRB- . It cost $ 3 @,@ 000 .")
    '"I don\\'t know," she said (twice). It cost $3,000.'
    """
    text = _INSIDE.sub(r"\1", text)
    text = _SIGN.sub(lambda match: _SIGNS.get(match[1], _SIGNS.get(match[1].upper(), match[1])), text)
    text = _CLITIC.sub("", text)
    text = _AFTER.sub("", text)
    text = _BEFORE.sub("", text)
    return _BEFORE.sub("", _QUOTED.sub(r'"\1"', text))
