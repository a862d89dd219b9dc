"""Rules that need a package: grammar by Harper, and sentences that mean the same by a sentence encoder."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finecomb.annotators.detectors.rules.rule_finding import RuleFinding
from finecomb.annotators.model_loading import DEFAULT_ENCODER, has_library, import_library, load_pretrained
from finecomb.core.errors import FinecombError
from finecomb.core.records import Document
from finecomb.core.sentences import sentences

MIN_COSINE = 0.85
"""Cosine of two sentences from which on they say the same."""
_MIN_WORDS = 5
_LINT_KINDS = {"Agreement", "Grammar"}  # the others are style, spelling of names, and spaces


def find_grammar_errors(document: Document) -> Iterator[RuleFinding]:
    """What Harper (package harper-py) finds wrong in grammar and agreement, with its own reason."""
    for lint in load_linter().lint(document.text):
        if lint.lint_kind in _LINT_KINDS:
            yield RuleFinding(lint.span.start, lint.span.end, "grammar-usage", lint.message)


@functools.cache
def load_linter() -> Any:
    """Harper's linter; an error with the command where it is missing."""
    if not has_library("harper"):
        raise FinecombError("rule grammar: needs the package harper-py; pip install harper-py")
    return import_library("harper", "rule grammar").Linter()


def find_paraphrases(document: Document) -> Iterator[RuleFinding]:
    """A sentence that means nearly the same as an earlier one, by the cosine of their vectors."""
    parts = [(start, end) for start, end in sentences(document.text).tolist()]
    parts = [part for part in parts if len(document.text[slice(*part)].split()) >= _MIN_WORDS]
    vectors = sentence_vectors([document.text[start:end] for start, end in parts])
    for number, part in enumerate(parts[1:], 1):
        alike = vectors[:number] @ vectors[number]  # a row at a time: all pairs of a long text are gigabytes
        nearest = int(alike.argmax())
        if alike[nearest] >= MIN_COSINE:
            reason = f"An earlier sentence means nearly the same (cosine {alike[nearest]:.2f})."
            yield RuleFinding(*part, "redundant", reason, parts[nearest])


@functools.cache
def load_encoder() -> tuple[Any, Any]:
    """Tokenizer and model of the sentence encoder."""
    return load_pretrained("AutoModel", DEFAULT_ENCODER, "rule meaning")


def sentence_vectors(texts: list[str], batch: int = 64) -> NDArray[np.float64]:
    """Vectors of length one, a row for each text: the mean over its tokens."""
    tokenizer, model = load_encoder()
    torch = import_library("torch", "rule meaning")
    rows = []
    for first in range(0, len(texts), batch):
        encoded = tokenizer(texts[first : first + batch], padding=True, truncation=True, return_tensors="pt")
        with torch.inference_mode():
            states = model(**encoded).last_hidden_state
        mask = encoded["attention_mask"].unsqueeze(-1)
        rows.append(((states * mask).sum(1) / mask.sum(1)).numpy().astype(np.float64))
    vectors = np.concatenate(rows) if rows else np.zeros((0, 1))
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, 1e-12), dtype=np.float64)
