from __future__ import annotations

from finecomb.core.records import Document
from finecomb.corpora.generation.priming import Priming, document_prompt, largest_word_overlap

SHOTS = (
    Document(id="s1", text="It sailed north.", context={"prompt": "The ferry left.", "headline": "Ferry"}),
    Document(id="s2", text="Rain fell all day."),
)


def test_priming_texts_stand_before_the_prompt_with_delimiters() -> None:
    prompt = Document(id="p", text="(human)", context={"prompt": "A vote was held."})
    whole = Priming(SHOTS, "<END>").full_prompt(prompt)
    assert whole == "Ferry\nThe ferry left. It sailed north.\n<END>\nRain fell all day.\n<END>\nA vote was held."
    assert "(human)" not in whole


def test_a_prompt_is_never_primed_with_itself() -> None:
    assert Priming(SHOTS).full_prompt(SHOTS[1]).count("Rain") == 1


def test_a_document_without_a_prompt_is_one() -> None:
    assert document_prompt(Document(id="p", text=" Once upon a time ")) == "Once upon a time"


def test_copies_of_priming_texts_are_found_out() -> None:
    priming = Priming((Document(id="s", text="One two three four five six seven eight nine ten."),))
    assert priming.is_copy("one two three four five six seven eight nine ten.")
    assert priming.is_copy("Well, one two three four five six seven eight nine.")  # 9 + 1 of 12 words
    assert not priming.is_copy("One two three four is where the counting of the children ended.")
    assert not Priming().is_copy("anything")
    assert largest_word_overlap("", ["x"]) == 0


def test_exactly_the_limit_is_no_copy() -> None:
    assert largest_word_overlap("a b c d e", ["a b c d"]) == 0.8
    assert not Priming((Document(id="s", text="a b c d"),)).is_copy("a b c d e")
