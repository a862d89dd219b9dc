from __future__ import annotations

import re
import string
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.core.errors import FinecombError
from finecomb.core.span import Offsets
from finecomb.core.tokens import (
    TOKENIZERS,
    Tokenizer,
    character_offsets,
    get_tokenizer,
    group_into_windows,
    whitespace_token_offsets,
    word_offsets,
)

# Scripts and signs that have been trouble: marks, no spaces, joiners, flags, directions, unusual spaces.
TRICKY = (
    "ab1_.,!?'\"()- \n\r\t\x1c\x85\u00a0\u2028\u3000"
    "ée\u0301n\u0303ßΩ中文字々〇ひらがカガキー\u3099ｶﾞﾟไทยก็ខ្មែរမြန်မာลาว"
    "اَللُّهמְהहिन्दी।가각\u1100\u1161\u200c\u200d\u200e\u00ad"
    "😀👩🏽\ufe0f🇩🇪🇫🇷1\u20e3≠=\u0338。！？…“”‘’«»「」"
)
tricky_texts = st.text(TRICKY, max_size=30) | st.text(max_size=30)


def cut(text: str, tokenize: Tokenizer = word_offsets) -> list[str]:
    return [text[start:end] for start, end in tokenize(text)]


def visible(text: str) -> list[int]:
    return [at for at, character in enumerate(text) if not character.isspace()]


def positions(offsets: Offsets) -> list[int]:
    return [at for start, end in offsets.tolist() for at in range(start, end)]


# --- words ---


@given(st.text(st.characters(max_codepoint=127)))
def test_words_of_ascii_text_are_the_usual_regular_expression(text: str) -> None:
    assert cut(text) == re.findall(r"\w+|[^\w\s]", text)


@given(st.text(string.printable + "\x1c\x00", max_size=30))
def test_an_accent_elsewhere_does_not_change_the_words_of_ascii_text(text: str) -> None:
    assert cut(text + " é") == [*cut(text), "é"]


@pytest.mark.parametrize("tokenize", TOKENIZERS.values(), ids=TOKENIZERS)
@given(text=tricky_texts)
def test_tokens_are_sorted_disjoint_and_not_empty(tokenize: Tokenizer, text: str) -> None:
    offsets = tokenize(text)
    assert offsets.shape == (len(offsets), 2)
    assert offsets.dtype == np.int64
    assert (offsets[:, 0] < offsets[:, 1]).all()
    assert (offsets[1:, 0] >= offsets[:-1, 1]).all()


@pytest.mark.parametrize("tokenize", TOKENIZERS.values(), ids=TOKENIZERS)
@given(text=tricky_texts)
def test_tokens_cover_every_character_that_is_not_white_space(tokenize: Tokenizer, text: str) -> None:
    assert set(visible(text)) <= set(positions(tokenize(text)))


@pytest.mark.parametrize("tokenize", [whitespace_token_offsets, character_offsets])
@given(text=tricky_texts)
def test_plain_tokenizers_cover_nothing_else(tokenize: Tokenizer, text: str) -> None:
    assert positions(tokenize(text)) == visible(text)


@given(tricky_texts)
def test_composed_and_decomposed_text_have_equally_many_words(text: str) -> None:
    assert len(word_offsets(unicodedata.normalize("NFC", text))) == len(
        word_offsets(unicodedata.normalize("NFD", text))
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("don't", ["don", "'", "t"]),
        ("3,000.5", ["3", ",", "000", ".", "5"]),
        ("snake_case", ["snake_case"]),
        ("nai\u0308ve", ["nai\u0308ve"]),
        ("我喜欢3个苹果。", ["我", "喜", "欢", "3", "个", "苹", "果", "。"]),
        ("カタカナとひらがな", ["カタカナ", "と", "ひ", "ら", "が", "な"]),
        ("ガギ", ["ガギ"]),
        ("カ\u3099キ\u3099", ["カ\u3099キ\u3099"]),
        ("スーパー", ["スーパー"]),
        ("ﾊﾞｽ", ["ﾊﾞｽ"]),
        ("ไทยดี", ["ไ", "ท", "ย", "ดี"]),
        ("اَلْكِتَابُ جَدِيدٌ", ["اَلْكِتَابُ", "جَدِيدٌ"]),
        ("हिन्दी में।", ["हिन्दी", "में", "।"]),
        ("می\u200cخواهم بروم", ["می\u200cخواهم", "بروم"]),
        ("한국어 텍스트", ["한국어", "텍스트"]),
        ("👩\u200d👩\u200d👧!", ["👩\u200d👩\u200d👧", "!"]),
        ("👍🏽👍", ["👍🏽", "👍"]),
        ("🇩🇪🇫🇷", ["🇩🇪", "🇫🇷"]),
        ("a\u00a0b", ["a", "b"]),
        ("Привет, мир!", ["Привет", ",", "мир", "!"]),
        ("x≠\u0338y", ["x", "≠\u0338", "y"]),
        ("", []),
        (" \n\t", []),
    ],
)
def test_words_of_many_scripts(text: str, expected: list[str]) -> None:
    assert cut(text) == expected


def test_plain_tokenizers_by_example() -> None:
    assert cut("It isn't\u00a03.5 km.", whitespace_token_offsets) == ["It", "isn't", "3.5", "km."]
    assert cut("a é\n😀", character_offsets) == ["a", "é", "😀"]


@pytest.mark.parametrize("text", [" " * 200_000 + "x", "J. " * 60_000, "9. " * 60_000, '. "' * 60_000, "a.\n" * 60_000])
def test_odd_long_texts_are_cut_to_their_end(text: str) -> None:
    assert word_offsets(text)[-1, 1] == len(text.rstrip())


# --- windows ---


@given(st.integers(0, 20), st.integers(1, 8))
def test_windows_join_neighbours_and_only_the_last_may_be_shorter(count: int, size: int) -> None:
    offsets = np.array([(3 * n, 3 * n + 2) for n in range(count)], dtype=np.int64).reshape(-1, 2)
    groups = [offsets[at : at + size].tolist() for at in range(0, count, size)]
    assert group_into_windows(offsets, size).tolist() == [[group[0][0], group[-1][1]] for group in groups]


@pytest.mark.parametrize("size", [0, -1])
def test_windows_need_a_size(size: int) -> None:
    with pytest.raises(FinecombError, match="at least 1"):
        group_into_windows(np.array([[0, 1]]), size)


# --- by name ---


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_tokenizer_is_found_by_name(name: str) -> None:
    assert get_tokenizer(name) is TOKENIZERS[name]


@pytest.mark.parametrize(
    ("name", "hint"),
    [("word", "did you mean 'words'"), ("zzz", "available: words, whitespace, characters"), ("spacy:", "spacy:NAME")],
)
def test_an_unknown_tokenizer_is_named_with_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(FinecombError, match=re.escape(hint)):
        get_tokenizer(name)


def test_a_blank_spacy_tokenizer_covers_every_visible_character() -> None:
    pytest.importorskip("spacy")
    text = "Dr. Ng isn't 😀 here.\n\nNo?"
    assert set(visible(text)) == set(positions(get_tokenizer("spacy:en")(text)))
    assert "n't" in cut(text, get_tokenizer("spacy:en"))


def test_an_unknown_spacy_pipeline_is_the_users_mistake() -> None:
    pytest.importorskip("spacy")
    with pytest.raises(FinecombError, match="spaCy cannot load 'no_such_pipeline'"):
        get_tokenizer("spacy:no_such_pipeline")
