from __future__ import annotations

import warnings

import pytest
from hypothesis import given

from finecomb.core.sentences import sentence_offsets
from tests.core.test_tokens import positions, tricky_texts, visible


def cut(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_offsets(text)]


@given(tricky_texts)
def test_every_visible_character_is_in_exactly_one_sentence(text: str) -> None:
    found = positions(sentence_offsets(text))
    assert len(found) == len(set(found))
    assert set(visible(text)) <= set(found)


@given(tricky_texts)
def test_sentences_have_no_white_space_around_them(text: str) -> None:
    assert all(sentence and sentence == sentence.strip() for sentence in cut(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four… Five", ["One.", "Two!", "Three?", "Four…", "Five"]),
        ("J. R. R. Tolkien wrote it. It is long.", ["J. R. R. Tolkien wrote it.", "It is long."]),
        ("Dr. Ng met Mrs. Li. They left.", ["Dr. Ng met Mrs. Li.", "They left."]),
        ("So did I. Then we slept.", ["So did I.", "Then we slept."]),
        ("It cost 3.50 in all. Cheap.", ["It cost 3.50 in all.", "Cheap."]),
        ("See No. 5 and fig. 2. Done.", ["See No. 5 and fig. 2.", "Done."]),
        ("I said no. Nobody heard.", ["I said no.", "Nobody heard."]),
        ("Fruit, e.g. Apples, is good. Yes.", ["Fruit, e.g. Apples, is good.", "Yes."]),
        ("It was 5 p.m. on Friday. We ate.", ["It was 5 p.m. on Friday.", "We ate."]),
        ("“Why?” she asked. He smiled.", ["“Why?” she asked.", "He smiled."]),
        ('He said "Go." Then he went.', ['He said "Go."', "Then he went."]),
        ("(He left.) She stayed.", ["(He left.)", "She stayed."]),
        ("Wait... what? OK.", ["Wait... what?", "OK."]),
        ("Really?! Yes.", ["Really?!", "Yes."]),
        ("Visit example.com today. Bye.", ["Visit example.com today.", "Bye."]),
        ("One.\r\nTwo.\r\n\r\nthree", ["One.", "Two.", "three"]),
        ("a heading\n\nthe text", ["a heading", "the text"]),
        ("old\r\rmac", ["old", "mac"]),
        ("para\u2029\u2029graph", ["para", "graph"]),
        ("a wrapped\nline of text. And\nmore.", ["a wrapped\nline of text.", "And\nmore."]),
        ("Title\nBody text.", ["Title", "Body text."]),
        ("- one\n- two\n- three", ["- one", "- two", "- three"]),
        ("1. Buy milk.\n2. Go home.\n 10. Sleep.", ["1. Buy milk.", "2. Go home.", "10. Sleep."]),
        ("It was 1990. We met.", ["It was 1990.", "We met."]),
        ("我来了。你呢？好！", ["我来了。", "你呢？", "好！"]),
        ("他说：“好。”然后走了。", ["他说：“好。”", "然后走了。"]),
        ("「行くぞ。」と言った。", ["「行くぞ。」", "と言った。"]),
        ("यह है। वह है।", ["यह है।", "वह है।"]),
        ("هل أنت هنا؟ نعم.", ["هل أنت هنا؟", "نعم."]),
        ("No stop at the end", ["No stop at the end"]),
        ("", []),
        ("\n \n", []),
    ],
)
def test_sentences_by_example(text: str, expected: list[str]) -> None:
    assert cut(text) == expected


# Each in our own words: the kinds of trouble that rules for sentences are usually tried on.
HARD = [
    ["We can see Mt. Rainier from Ft. Lewis."],
    ["She joined the U.S. Army in May.", "It suited her."],
    ["They moved to the U.K.", "She stayed behind."],
    ["The bus leaves at 7 a.m. on Mondays."],
    ["Shops close at 8 p.m.", "We were late."],
    ["Ask Lena and co.", "They will know."],
    ["The file is under N°. 44.2.", "That is all."],
    ["Was it you or I.", "Ines could not say."],
    ["Did you meet Peter I. Novak there?", "No."],
    ["He swallowed a vitamin C.", "Then he slept."],
    ["It will reach 21°C.", "Winds stay light."],
    ["The paper says “nothing was left. . . .”"],
    ['"Boats [...] came home [...]" (Ng 12).'],
    ["We waited . . . and then it rained."],
    ["The thing is . . . I forgot it."],
    ["Nobody came. . . .", "The hall was dark."],
    ["It stops with a point . . . .", "Next one."],
    ["1) Milk", "2) Bread", "3) Salt"],
    ["1.) Buy milk.", "2.) Go home."],
    ["1. Buy milk.", "2. Go home."],
    ["1. Milk", "2. Bread"],
    ["• 9. Milk", "• 10. Bread"],
    ["a. Milk", "b. Bread", "c. Salt"],
    ["She shouted at Yahoo! in the evening."],
    ["He said 'Fine.' and left.", "We did not."],
]


@pytest.mark.parametrize("expected", HARD, ids=[" ".join(example)[:40] for example in HARD])
def test_sentences_in_hard_places(expected: list[str]) -> None:
    assert cut(" ".join(expected)) == expected


def test_the_rule_is_as_good_as_an_independent_splitter_in_hard_places() -> None:
    pysbd = pytest.importorskip("pysbd")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        segmenter = pysbd.Segmenter(language="en", clean=False)
        theirs = [[part.strip() for part in segmenter.segment(" ".join(example))] for example in HARD]
    right = sum(parts == expected for parts, expected in zip(theirs, HARD, strict=True))
    assert 15 <= right <= len(HARD), "the examples are ones that the other splitter mostly agrees with"


def test_a_line_that_only_begins_with_a_number_is_no_list() -> None:
    assert cut("3. Liga players met 4 times. They lost.") == ["3. Liga players met 4 times.", "They lost."]


@pytest.mark.parametrize("text", [" " * 200_000 + "x", "J. " * 60_000, "9. " * 60_000, '. "' * 60_000, "a.\n" * 60_000])
def test_odd_long_texts_are_cut_to_their_end(text: str) -> None:
    assert sentence_offsets(text)[-1, 1] == len(text.rstrip())
