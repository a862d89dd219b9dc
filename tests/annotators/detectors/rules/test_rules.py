"""Tests of what each rule must mark and what it must not mark."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.annotators.detectors.rules import DEFAULT_RULES, RULES_BY_NAME, RuleDetector, RulesOptions
from finecomb.annotators.detectors.rules.repetition import (
    MIN_SENTENCE_WORDS,
    MIN_SIMILARITY,
    EarlierSentences,
    fold_sentences,
)
from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.protocols import load_shipped


def quotes(rule: str, text: str) -> list[str]:
    return [text[hint.start : hint.end] for hint in RULES_BY_NAME[rule](Document(id="d", text=text))]


RUMOUR = (
    "Nobody knew who owned the small red boat. "
    "I have heard more than once in May that nobody knew who owned the small red boat."
)
LONG = "The ferry crossed the bay before the storm came in from the west. "


@pytest.mark.parametrize(
    ("rule", "text", "expected"),
    [
        ("repetition", "The old harbour wall is made of stone. It rained. The old harbour wall is made of stone.",
         ["The old harbour wall is made of stone."]),
        ("repetition", "The old harbour wall is made of grey stone. The old harbour wall is made of stone.",
         ["The old harbour wall is made of stone."]),
        ("repetition", "She smiled. He left. She smiled.", []),
        ("repetition", RUMOUR,
         ["nobody knew who owned the small red boat"]),
        ("repetition", "The mayor opened the bridge. The council closed the school.", []),
        ("doubled-words", "He went to the the shop.", ["the"]),
        ("doubled-words", "She had had enough, so so much. Duran Duran played.", []),
        ("doubled-words", "It is a long long way and very very far.", []),
        ("unbalanced", "He said “go and left.", ["“"]),
        ("unbalanced", 'He said "go" and "stay and left.', ['"']),
        ("unbalanced", "It was late (very late and cold.", ["("]),
        ("unbalanced", "It was late) and cold.", [")"]),
        ("unbalanced", "1) Milk\n2) Bread :) (done) “yes” [no] {so}", []),
        ("broken-ending", LONG + "The captain then decided that he would not", ["he would not"]),
        ("broken-ending", LONG + "The captain went home.”", []),
        ("broken-ending", "A title without a stop", []),
        ("arithmetic", "12 plus 9 is 22, and 3 x 4 = 12.", ["22"]),
        ("arithmetic", "1,200 + 300 = 1,500. 10 divided by 4 is 2.5. 2 / 3 = 0.67.", []),
        ("conversions", "a walk of 5 miles (20 km)", ["20"]),
        ("conversions", "a walk of 5 miles (8 km), at 50°F (10°C), 6 feet (1.8 m)", []),
        ("impossible", "We met on February 30 and on 31 June.", ["February 30", "31 June"]),
        ("impossible", "We met on February 29 at 7:30 p.m. with 40% of the votes.", []),
        ("impossible", "It was 14:75 p.m., and 130% of the voters came.", ["14:75 p.m.", "130"]),
        ("ages", "Ines Falk, 34, spoke. Later Ines Falk, 36, left. Ben Ode, 34, stayed.", ["36"]),
    ],
)  # fmt: skip
def test_a_rule_marks_what_it_should_and_nothing_else(rule: str, text: str, expected: list[str]) -> None:
    assert quotes(rule, text) == expected


def test_every_mark_says_why_and_where_it_was_before() -> None:
    text = "The old harbour wall is made of stone. The old harbour wall is made of stone. He saw the the boat."
    annotation = RuleDetector(load_shipped("scarecrow"), RulesOptions())(Document(id="d", text=text))
    assert [mark.label for mark in annotation.marks] == ["redundant", "grammar-usage"]
    assert annotation.marks[0].antecedents is not None
    assert annotation.marks[0].antecedents.quotes == ("The old harbour wall is made of stone.",)
    assert [mark.meta["rule"] for mark in annotation.marks] == ["repetition", "doubled-words"]
    assert all(str(mark.answers["explanation"]).endswith(".") for mark in annotation.marks)


def test_rules_are_chosen_by_name() -> None:
    text = "He saw the the boat. 1 plus 1 is 3."
    detector = RuleDetector(load_shipped("scarecrow"), RulesOptions(("arithmetic",)))
    assert [mark.label for mark in detector(Document(id="d", text=text)).marks] == ["bad-math"]
    assert "rules:('arithmetic',)" in detector.signature
    with pytest.raises(FinecombError, match="unknown rule 'arithmatic'; did you mean 'arithmetic'"):
        RulesOptions(("arithmatic",))


@given(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60)
    | st.text("ab1 .,()\"“”'\n%:+=", max_size=80)
)
def test_any_text_gives_marks_inside_it(text: str) -> None:
    for rule in (RULES_BY_NAME[name] for name in (*DEFAULT_RULES, "people", "definite")):
        for hint in rule(Document(id="d", text=text)):
            assert 0 <= hint.start < hint.end <= len(text)


@given(st.lists(st.lists(st.sampled_from("abcdef"), min_size=4, max_size=9), max_size=8))
def test_near_repetitions_equal_their_definition(parts: list[list[str]]) -> None:
    text = " ".join(" ".join(["Xx", *words]) + "." for words in parts)
    folded = fold_sentences(text)
    earlier = EarlierSentences(Counter(word for sentence in folded for word in set(sentence.folded)))
    for number, sentence in enumerate(folded):
        same = [
            first
            for first in folded[:number]
            if len(set(first.folded) & set(sentence.folded))
            >= MIN_SIMILARITY * len(set(first.folded) | set(sentence.folded))
            and len(first.folded) >= MIN_SENTENCE_WORDS
        ]
        match = earlier.find_similar(sentence) if len(sentence.folded) >= MIN_SENTENCE_WORDS else None
        assert (match is not None) == bool(same and len(sentence.folded) >= MIN_SENTENCE_WORDS)
        earlier.add_sentence(sentence)
