from __future__ import annotations

from collections import Counter

import pytest

from finecomb.core.errors import FinecombError, format_as_flag
from finecomb.core.records import Document, Segment
from finecomb.corpora.generation.lengths import LengthRule
from finecomb.corpora.generation.priming import Priming
from finecomb.corpora.preparation import DUPLICATE_REASON, NOT_DRAWN_REASON, Preparation, prepare

LONG = "Then {} more people came to the old harbour to see the boats. " * 12


def article(number: int, **fields: object) -> Document:
    text = f"Ferry {number} left. {LONG.replace('{}', str(number))}"
    return Document.model_validate({"id": f"a{number}", "text": text.strip(), **fields})


def test_an_article_becomes_a_prompt_and_a_human_continuation() -> None:
    (text,) = prepare([article(1)], Preparation(prompt="first-sentence", rule=LengthRule())).documents
    assert text.context == {"prompt": "Ferry 1 left."}
    assert text.text.startswith("Then 1 more people")
    assert text.text.endswith("boats.")
    assert text.meta["model"] == "human"
    assert text.text.count(".") == 6  # six sentences of 14 words are the first 80 and more


def test_headlines_and_beginnings_are_prompts_too() -> None:
    with_headline = article(1, context={"headline": "Boats"})
    (text,) = prepare([with_headline], Preparation(prompt="headline+first-sentence")).documents
    assert text.context == {"headline": "Boats", "prompt": "Ferry 1 left."}
    (text,) = prepare([with_headline], Preparation(prompt="headline")).documents
    assert text.context == {"prompt": "Boats"}
    assert text.text.startswith("Ferry 1 left.")
    story = Document(id="s", text="Once upon a time there was a boat.")
    result = prepare([story, article(2)], Preparation(prompt="start", start="Once upon a time"))
    assert result.documents[0].context["prompt"] == "Once upon a time"
    assert result.documents[0].text == "there was a boat."
    assert result.reasons == {"a2": "does not begin with 'Once upon a time'"}


def test_every_dropped_text_is_counted_with_its_reason() -> None:
    documents = [
        article(1),
        article(2),
        article(2, id="copy"),
        Document(id="short", text="One. Two words."),
        Document(id="lone", text="Only a sentence."),
        Document(id="empty", text=" "),
        Document(id="primed", text=f"First. {LONG.replace('{}', '9')}"),
    ]
    shots = Priming((Document(id="shot", text=LONG.replace("{}", "9")),))
    preparation = Preparation(prompt="first-sentence", rule=LengthRule.parse("100-"), priming=shots, most_overlap=0.97)
    result = prepare(documents, preparation)
    assert [text.id for text in result.documents] == ["a1", "a2"]
    assert result.dropped == Counter(
        {
            DUPLICATE_REASON: 1,
            "fewer than 100 words": 1,
            "has no text after its prompt": 2,
            "shares more than 97% of its words with a priming text": 1,
        }
    )
    assert len(result.documents) + result.dropped.total() == len(documents)


def test_equal_texts_stay_where_that_is_wanted() -> None:
    documents = [article(2), article(2, id="copy")]
    assert len(prepare(documents, Preparation(duplicates=True)).documents) == 2


def test_balance_draws_equally_many_of_each_cell_and_says_who_has_too_few() -> None:
    documents = [
        article(number, meta={"topic": "sea" if number % 3 else "land", "model": "a" if number % 2 else "b"})
        for number in range(60)
    ]
    result = prepare(documents, Preparation(balance=("topic", "model"), seed=1))
    assert set(result.cells.values()) == {10}
    assert result.dropped == {NOT_DRAWN_REASON: 20}
    assert result.notes == ()
    again = prepare(list(reversed(documents)), Preparation(balance=("topic", "model"), seed=1))
    assert {text.id for text in again.documents} == {text.id for text in result.documents}  # whatever the order
    many = prepare(documents, Preparation(balance=("topic", "model"), per_cell=15))
    assert sorted(many.cells.values()) == [10, 10, 15, 15]
    assert many.notes[0] == "land a: 10 of 15 texts; the cell has no more"
    with pytest.raises(FinecombError, match="did you mean 'topic'"):
        prepare(documents, Preparation(balance=("topics",)))


def test_sections_are_marked_and_read_back() -> None:
    whole = Document(
        id="w",
        text="One .\n\nTwo .",
        segments=(Segment(start=0, end=5, title="A"), Segment(start=7, end=12, title="B")),
    )
    (marked,) = prepare([whole], Preparation(sections="with-titles", detokenise=True)).documents
    assert marked.text == "<|section|> A\nOne.\n<|section|> B\nTwo."
    (back,) = prepare([marked], Preparation(sections="read")).documents
    assert [(part.title, back.text[part.start : part.end]) for part in back.segments] == [("A", "One."), ("B", "Two.")]
    result = prepare([whole, article(1)], Preparation(sections="without-titles"))
    assert result.dropped == {"has no sections": 1}


@pytest.mark.parametrize(
    ("preparation", "message"),
    [
        (Preparation(prompt="start"), "--start 'Once upon a time'"),
        (Preparation(start="x"), "--start requires --prompt start"),
        (Preparation(per_cell=3), "--per-cell requires --balance"),
        (Preparation(sections="with-titles", rule=LengthRule()), "cannot be used with --prompt or --words"),
    ],
)
def test_options_that_do_not_fit_are_refused(preparation: Preparation, message: str) -> None:
    with pytest.raises(FinecombError) as error:
        prepare([article(1)], preparation)
    assert message in error.value.format_message(format_as_flag)


def test_no_texts_and_two_of_one_name_are_refused() -> None:
    with pytest.raises(FinecombError, match="no texts"):
        prepare([], Preparation())
    with pytest.raises(FinecombError, match="2 texts have the ID 'a1'"):
        prepare([article(1), article(1)], Preparation())
    assert len(prepare([article(1)], Preparation()).documents) == 1
