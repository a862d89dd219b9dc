"""Tokenizers: a fast, rule-based word tokenizer, and a registry of others.

The rule for words (`word_offsets`):

1. a run of letters, digits and underscores, with their combining marks, is one token: `don't` is three (`don`, `'`,
   `t`), `3,000` is three, `naïve` is one in any encoding;
2. scripts written without spaces (Han, Hiragana, Thai, Lao, Khmer, Burmese, Tai) give one token per character together
   with its marks, and a run of Katakana is one token;
3. any other visible character is a token; an emoji with all its modifiers counts as one character.

For ASCII text this is exactly the regular expression `\\w+|[^\\w\\s]`. `whitespace_token_offsets` splits at white space
only.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable

import numpy as np
import regex

from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.optional_packages import import_optional_package
from finecomb.core.span import Offsets

Tokenizer = Callable[[str], Offsets]
"""Function that returns the (n, 2) code-point offsets of the tokens of a text, in order and without overlaps."""

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
_WORD_CHARACTER = re.compile(r"\w")


def _to_offsets(pairs: Iterable[tuple[int, int]]) -> Offsets:
    return np.array(list(pairs), dtype=np.int64).reshape(-1, 2)


def word_offsets(text: str) -> Offsets:
    """Return the offsets of word tokens by the rule in the module docstring.

    >>> text = "It isn't 3.5 km."
    >>> [text[start:end] for start, end in word_offsets(text)]
    ['It', 'isn', "'", 't', '3', '.', '5', 'km', '.']
    """
    pattern = _ASCII_WORD if text.isascii() else _WORD
    return np.array([match.span() for match in pattern.finditer(text)], dtype=np.int64).reshape(-1, 2)


def whitespace_token_offsets(text: str) -> Offsets:
    """Return the offsets of tokens separated by white space.

    >>> text = "It isn't 3.5 km."
    >>> [text[start:end] for start, end in whitespace_token_offsets(text)]
    ['It', "isn't", '3.5', 'km.']
    """
    return _to_offsets(match.span() for match in _WHITESPACE.finditer(text))


def character_offsets(text: str) -> Offsets:
    """Return the offsets of all code points that are not white space."""
    return _to_offsets((index, index + 1) for index, character in enumerate(text) if not character.isspace())


def group_into_windows(offsets: Offsets, size: int) -> Offsets:
    """Group tokens or sentences into consecutive windows of `size`, e.g. three sentences; the last may be shorter."""
    if size < 1:
        raise FinecombError(f"window size must be at least 1, found {size}")
    firsts = np.arange(0, len(offsets), size)
    lasts = np.minimum(firsts + size, len(offsets)) - 1
    return np.stack([offsets[firsts, 0], offsets[lasts, 1]], axis=1) if len(offsets) else offsets


TOKENIZERS: dict[str, Tokenizer] = {
    "words": word_offsets,
    "whitespace": whitespace_token_offsets,
    "characters": character_offsets,
}


@functools.cache
def get_tokenizer(name: str) -> Tokenizer:
    """Return a tokenizer by name: `words`, `whitespace`, `characters`, or `spacy:NAME` (a language or a pipeline)."""
    kind, _, pipeline = name.partition(":")
    if kind == "spacy" and pipeline:
        spacy = import_optional_package(f"tokenizer 'spacy:{pipeline}' requires", "spacy")
        try:
            nlp = spacy.blank(pipeline) if len(pipeline) == 2 else spacy.load(pipeline, enable=[])
        except (OSError, ImportError, ValueError) as error:
            raise FinecombError(f"spaCy cannot load {pipeline!r}: {error}") from None

        def tokenize(text: str) -> Offsets:
            document = nlp.make_doc(text)
            return _to_offsets((token.idx, token.idx + len(token.text)) for token in document if not token.is_space)

        return tokenize
    if name not in TOKENIZERS:
        raise FinecombError(f"unknown tokenizer {name!r}{did_you_mean(name, [*TOKENIZERS, 'spacy:NAME'])}")
    return TOKENIZERS[name]


def count_words(text: str, tokens: str = "words") -> int:
    """Count the words of a text: tokens that contain a letter, digit or underscore. Punctuation is not a word.

    >>> count_words("It isn't 3.5 km.")
    6
    """
    offsets = get_tokenizer(tokens)(text)
    return sum(_WORD_CHARACTER.search(text, start, end) is not None for start, end in offsets.tolist())
