"""Words: a fast rule that needs no model, behind a seam that takes any other.

The rule for words (`words`):

1. a run of letters, digits and underscores, with the marks that combine with them, is one token: `don't` is three
   (`don`, `'`, `t`), `3,000` is three, `naïve` is one however it is encoded;
2. scripts written without spaces (Han, Hiragana, Thai, Lao, Khmer, Burmese, Tai) give one token per character together
   with its marks, a run of Katakana is one token;
3. any other visible character is a token of its own, an emoji with all its modifiers being one character.

For text in ASCII this is exactly the regular expression `\\w+|[^\\w\\s]`. `whitespace` splits at white space only.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable

import numpy as np
import regex

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.optional_packages import optional_package
from finecomb.core.span import Offsets

Tokenizer = Callable[[str], Offsets]
"""Takes a text, returns the (n, 2) code-point offsets of its tokens, in order and not overlapping."""

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tai_Le}\p{New_Tai_Lue}\p{Tai_Tham}"
_KATAKANA = r"\p{Katakana}ーｰﾞﾟ"
_ASCII_WORD = re.compile(r"\w+|[^\w\s]")
_WORD = regex.compile(
    rf"""
      [[{_UNSPACED}]&&[\w]]\p{{M}}*                                   # one character of an unspaced script
    | (?:[{_KATAKANA}]\p{{M}}*)+                                      # a run of Katakana
    | [\w--[{_UNSPACED}{_KATAKANA}]][[\w\p{{M}}\u200c\u200d]--[{_UNSPACED}{_KATAKANA}]]*  # a word
    | (?![\s\x1c-\x1f])\X                                           # anything else that can be seen
    """,
    regex.VERBOSE | regex.VERSION1,
)
_WHITESPACE = re.compile(r"\S+")


def _offsets(pairs: Iterable[tuple[int, int]]) -> Offsets:
    return np.array(list(pairs), dtype=np.int64).reshape(-1, 2)


def words(text: str) -> Offsets:
    """Word tokens by the rule at the top of this module.

    >>> text = "It isn't 3.5 km."
    >>> [text[start:end] for start, end in words(text)]
    ['It', 'isn', "'", 't', '3', '.', '5', 'km', '.']
    """
    pattern = _ASCII_WORD if text.isascii() else _WORD
    return _offsets(match.span() for match in pattern.finditer(text))


def whitespace(text: str) -> Offsets:
    """Tokens between white space.

    >>> text = "It isn't 3.5 km."
    >>> [text[start:end] for start, end in whitespace(text)]
    ['It', "isn't", '3.5', 'km.']
    """
    return _offsets(match.span() for match in _WHITESPACE.finditer(text))


def characters(text: str) -> Offsets:
    """One token per code point that is not white space."""
    return _offsets((at, at + 1) for at, character in enumerate(text) if not character.isspace())


def group_into_windows(offsets: Offsets, size: int) -> Offsets:
    """Neighbouring tokens or sentences joined `size` at a time, e.g. every three sentences; the last may be shorter."""
    if size < 1:
        raise FinecombError(f"windows need a size of at least 1, not {size}")
    firsts = np.arange(0, len(offsets), size)
    lasts = np.minimum(firsts + size, len(offsets)) - 1
    return np.stack([offsets[firsts, 0], offsets[lasts, 1]], axis=1) if len(offsets) else offsets


def _spacy(name: str) -> Tokenizer:
    spacy = optional_package(f"tokens 'spacy:{name}' need", "spacy")
    try:
        nlp = spacy.blank(name) if len(name) == 2 else spacy.load(name, enable=[])
    except (OSError, ImportError, ValueError) as error:
        raise FinecombError(f"spaCy cannot load {name!r}: {error}") from None

    def tokenize(text: str) -> Offsets:
        document = nlp.make_doc(text)
        return _offsets((token.idx, token.idx + len(token.text)) for token in document if not token.is_space)

    return tokenize


TOKENIZERS: dict[str, Tokenizer] = {"words": words, "whitespace": whitespace, "characters": characters}


@functools.cache
def tokenizer(name: str) -> Tokenizer:
    """The tokenizer called `name`: `words`, `whitespace`, `characters`, or `spacy:NAME` (a language or a pipeline)."""
    kind, _, rest = name.partition(":")
    if kind == "spacy" and rest:
        return _spacy(rest)
    if name not in TOKENIZERS:
        raise FinecombError(f"no tokenizer is called {name!r}{did_you_mean(name, [*TOKENIZERS, 'spacy:NAME'])}")
    return TOKENIZERS[name]
