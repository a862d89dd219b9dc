"""Rules that require a package: grammar errors with Harper, and paraphrased sentences with a sentence encoder."""

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
from finecomb.core.sentences import sentence_offsets

MIN_COSINE = 0.85
"""Minimum cosine similarity of two sentences to count as paraphrases."""
_MIN_SENTENCE_WORDS = 5
_LINT_KINDS = {"Agreement", "Grammar"}  # other kinds concern style, spelling of names, and spacing


def find_grammar_errors(document: Document) -> Iterator[RuleFinding]:
    """Find grammar and agreement errors with Harper (package harper-py), with Harper's explanations."""
    for lint in load_harper_linter().lint(document.text):
        if lint.lint_kind in _LINT_KINDS:
            yield RuleFinding(lint.span.start, lint.span.end, "grammar-usage", lint.message)


@functools.cache
def load_harper_linter() -> Any:
    """Load Harper's linter, or raise an error with the install command."""
    if not has_library("harper"):
        raise FinecombError("rule 'grammar' requires the package harper-py; run `pip install harper-py`")
    return import_library("harper", "rule grammar").Linter()


def find_paraphrased_sentences(document: Document) -> Iterator[RuleFinding]:
    """Find sentences whose vector is nearly identical to that of an earlier sentence."""
    parts = [(start, end) for start, end in sentence_offsets(document.text).tolist()]
    parts = [part for part in parts if len(document.text[slice(*part)].split()) >= _MIN_SENTENCE_WORDS]
    vectors = sentence_vectors([document.text[start:end] for start, end in parts])
    for number, part in enumerate(parts[1:], 1):
        # One row at a time, because the matrix of all pairs of a long text would take gigabytes
        alike = vectors[:number] @ vectors[number]
        nearest = int(alike.argmax())
        if alike[nearest] >= MIN_COSINE:
            reason = f"An earlier sentence has nearly the same meaning (cosine {alike[nearest]:.2f})."
            yield RuleFinding(*part, "redundant", reason, parts[nearest])


@functools.cache
def load_sentence_encoder() -> tuple[Any, Any]:
    """Load the tokenizer and model of the sentence encoder."""
    return load_pretrained("AutoModel", DEFAULT_ENCODER, "rule meaning")


def sentence_vectors(texts: list[str], batch: int = 64) -> NDArray[np.float64]:
    """Return one unit vector per text, the normalised mean of its token vectors."""
    tokenizer, model = load_sentence_encoder()
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
