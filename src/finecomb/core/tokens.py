"""Words and sentences: a fast rule that needs no model, behind a seam that takes any other.

The rule for words (`words`):

1. a run of letters, digits and underscores, with the marks that combine with them, is one token: `don't` is three
   (`don`, `'`, `t`), `3,000` is three, `naïve` is one however it is encoded;
2. scripts written without spaces (Han, Hiragana, Thai, Lao, Khmer, Burmese, Tai) give one token per character together
   with its marks, a run of Katakana is one token;
3. any other visible character is a token of its own, an emoji with all its modifiers being one character.

For text in ASCII this is exactly the regular expression `\\w+|[^\\w\\s]`. `whitespace` splits at white space only.

The rule for sentences (`sentences`): a sentence ends

1. after `.`, `!`, `?` or `…` with any closing quotes and brackets, where white space follows and the next letter is not
   lower case, unless the full stop ends an initial (`J.`), a title (`Dr.`) or another common abbreviation, or the
   number of a list's item (`1.` at the start of a line);
2. after `。`, `！`, `？`, `｡` or their kin in other scripts (`।`, `؟`, `။`), with or without white space;
3. at a blank line, and at a line break unless the next line begins with a lower-case letter and is thus a wrapped line.

Every visible character belongs to exactly one sentence, and white space around sentences to none.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable

import numpy as np
import regex

from finecomb.core.errors import FinecombError, did_you_mean
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

_CLOSERS = r"[\"'”’»›)\]}」』）】》]*"
_STOP = regex.compile(
    rf"(?P<hard>[。！？｡．।॥؟۔။။]+{_CLOSERS})|(?P<soft>[.!?…]+{_CLOSERS})(?=\s)|(?P<line>[\r\n\u2028\u2029]\s*)",
    regex.VERSION1,
)
_ALWAYS_INSIDE = frozenset(
    "mr mrs ms dr prof st rev gen col capt lt sgt sen rep gov pres hon vs e.g i.e cf fig figs eq".split()
)
_BEFORE_NUMBERS = frozenset(
    "no nos vol pp p ed approx est jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun".split()
)
_LAST_WORD = regex.compile(r"[\w.&]+$")
_LONGEST_ABBREVIATION = 24
_LIST_NUMBER = re.compile(r"[\r\n\u2028\u2029][^\S\r\n]*\d{1,3}\Z")
_LINE_BREAK = re.compile(r"\r\n|[\r\n\u2028\u2029]")


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


def sentences(text: str) -> Offsets:
    """Sentences by the rule at the top of this module.

    >>> text = "Dr. Ng left. “Why?” she asked. It was 5 p.m. on Friday."
    >>> [text[start:end] for start, end in sentences(text)]
    ['Dr. Ng left.', '“Why?” she asked.', 'It was 5 p.m. on Friday.']
    """
    starts = [0]
    for match in _STOP.finditer(text):
        if _ends_sentence(text, match, starts[-1]):
            starts.append(match.end())
    bounds = zip(starts, [*starts[1:], len(text)], strict=True)
    return _offsets(trimmed for start, end in bounds if (trimmed := _trim(text, start, end)))


def _ends_sentence(text: str, match: regex.Match[str], start: int) -> bool:
    if match.lastgroup == "hard":
        return True
    following = _next_visible(text, match.end())
    if match.lastgroup == "line":
        return not following.islower() or len(_LINE_BREAK.findall(match.group())) > 1
    if following.islower():
        return False
    if not match.group().startswith("."):
        return True
    before = text[max(start, match.start() - _LONGEST_ABBREVIATION) : match.start()]
    return not (_is_abbreviation(before, following) or _is_list_number(text, match.start()))


def _next_visible(text: str, at: int) -> str:
    """The first letter, digit or sign at or after `at` that is no opening quote or bracket, or an empty string."""
    while at < len(text) and (text[at].isspace() or text[at] in "\"'“‘«‹([{「『（"):
        at += 1
    return text[at : at + 1]


def _is_abbreviation(before: str, following: str) -> bool:
    """Whether the full stop after `before` belongs to its last word and the sentence goes on."""
    match = _LAST_WORD.search(before)
    word = match.group() if match else ""
    if len(word) == 1 and word.isalpha() and word.isupper() and word != "I":
        return True  # an initial
    word = word.lower()
    return word in _ALWAYS_INSIDE or (word in _BEFORE_NUMBERS and following.isdigit())


def _is_list_number(text: str, stop: int) -> bool:
    """Whether the full stop at `stop` ends nothing but a number of up to three digits at the start of a line."""
    near = text[stop - 24 : stop] if stop > 24 else "\n" + text[:stop]
    return _LIST_NUMBER.search(near) is not None


def _trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    stripped = text[start:end].strip()
    if not stripped:
        return None
    start = text.index(stripped[0], start)
    return start, start + len(stripped)


def windows(offsets: Offsets, size: int) -> Offsets:
    """Neighbouring tokens or sentences joined `size` at a time, e.g. every three sentences; the last may be shorter."""
    if size < 1:
        raise FinecombError(f"windows need a size of at least 1, not {size}")
    firsts = np.arange(0, len(offsets), size)
    lasts = np.minimum(firsts + size, len(offsets)) - 1
    return np.stack([offsets[firsts, 0], offsets[lasts, 1]], axis=1) if len(offsets) else offsets


def _spacy(name: str) -> Tokenizer:
    try:
        import spacy
    except ImportError:
        raise FinecombError(
            f"tokens 'spacy:{name}' need spaCy; install it with: pip install 'finecomb[models]'"
        ) from None
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
