"""Automatic metrics that score candidate texts; each is a row of `METRICS`.

ROUGE is computed here (F1 of unigrams, bigrams and the longest common subsequence, lower case, no stemming). BLEU and
chrF come from sacrebleu, per sentence. BERTScore and perplexity use any transformers model.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq

from finecomb.core import tokens
from finecomb.core.errors import FinecombError, did_you_mean
from finecomb.core.optional_packages import import_optional_package
from finecomb.core.records import Document

Floats = NDArray[np.float64]


class Candidate(NamedTuple):
    """Text to score, original or corrupted."""

    text: str
    references: tuple[str, ...]
    """Reference texts; not used by every metric."""
    document: Document
    """Document that the text comes from."""


@dataclass(frozen=True, slots=True)
class Metric:
    """Metric that scores candidate texts."""

    name: str
    score: Callable[[Sequence[Candidate]], Sequence[float]]
    """Function from candidates to one score each; NaN where undefined."""
    needs_references: bool = False
    higher_is_better: bool = True
    of_corpus: bool = False
    """True if `score` returns one number for all candidates together."""
    by_text: bool = False
    """True if a score depends on its candidate alone and `score` can be pickled, as parallel scoring requires."""
    needs_document: bool = False
    """True if the metric reads more of a candidate's document than its ID."""
    uses_all_cores: bool = False
    """True if the metric itself uses all cores, as neural models do."""
    identity: str = ""
    """Anything besides the name that the scores depend on, e.g. the contents of a file."""


# --- ROUGE -------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def lowercase_words(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case, without punctuation."""
    words = (text[start:end].lower() for start, end in tokens.word_offsets(text))
    return tuple(word for word in words if word.isalnum())


def f1(common: int, candidate: int, reference: int) -> float:
    """Return F1 from the numbers of common, candidate and reference items; 0 if none are common."""
    return 2 * common / (candidate + reference) if common else 0.0


def rouge_n(candidate: str, reference: str, size: int) -> float:
    """Return ROUGE-N, the F1 of n-grams of `size` words.

    >>> round(rouge_n("the cat sat", "the cat ran", 1), 3), rouge_n("the cat sat", "the cat ran", 2)
    (0.667, 0.5)
    """
    counts = [
        Counter(zip(*(words[offset:] for offset in range(size)), strict=False))
        for words in _lowercase_pair(candidate, reference)
    ]
    return f1((counts[0] & counts[1]).total(), counts[0].total(), counts[1].total())


def rouge_l(candidate: str, reference: str) -> float:
    """Return ROUGE-L, the F1 of the longest common subsequence of words."""
    first, second = _lowercase_pair(candidate, reference)
    return f1(LCSseq.similarity(first, second), len(first), len(second))


def _lowercase_pair(candidate: str, reference: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return lowercase_words(candidate), lowercase_words(reference)


@dataclass(frozen=True, slots=True)
class BestReference:
    """Scores of candidates against their best-matching reference."""

    score: Callable[[str, str], float]
    """Function that scores a candidate text against one reference."""

    def __call__(self, candidates: Sequence[Candidate]) -> list[float]:
        """Score candidates; NaN for a candidate without references."""
        return [
            max((self.score(candidate.text, reference) for reference in candidate.references), default=math.nan)
            for candidate in candidates
        ]


# --- third-party metrics -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SacrebleuScores:
    """Sentence BLEU (effective order) or chrF from sacrebleu, scaled to 0 to 1."""

    name: Literal["bleu", "chrf"]

    def __call__(self, candidates: Sequence[Candidate]) -> list[float]:
        """Score candidates; NaN for a candidate without references."""
        metrics: Any = _import_package("sacrebleu.metrics")
        metric = metrics.BLEU(effective_order=True) if self.name == "bleu" else metrics.CHRF()
        return [
            metric.sentence_score(candidate.text, list(candidate.references)).score / 100
            if candidate.references
            else math.nan
            for candidate in candidates
        ]


@dataclass(frozen=True, slots=True)
class BertScore:
    """BERTScore F1 (Zhang et al. 2020): greedy matching of last-layer token states, without weights or rescaling."""

    model: str

    def __call__(self, candidates: Sequence[Candidate]) -> list[float]:
        """Score candidates against their best-matching reference."""
        encoder = _load_encoder(self.model)
        return BestReference(lambda text, reference: greedy_match_f1(encoder(text), encoder(reference)))(candidates)


def greedy_match_f1(first: Floats, second: Floats) -> float:
    """Return F1 from the best cosine of each token on either side; both arrays are (tokens, width) with unit rows."""
    if not len(first) or not len(second):
        return math.nan
    cosines = first @ second.T
    precision, recall = cosines.max(axis=1).mean(), cosines.max(axis=0).mean()
    return float(2 * precision * recall / (precision + recall))


@dataclass(frozen=True, slots=True)
class TextPerplexity:
    """Perplexity of a text's tokens under a causal model."""

    model: str

    def __call__(self, candidates: Sequence[Candidate]) -> list[float]:
        """Score candidates; NaN for a text with fewer than two tokens."""
        return [corpus_perplexity(self.model, [candidate.text], words=False) for candidate in candidates]


def corpus_perplexity(model: str, texts: Iterable[str], words: bool = True) -> float:
    """Return the perplexity of all texts per word, or per token of the model; NaN if there are no words or tokens.

    Per-word values are comparable between models with different tokenizers. The first token of a text is not predicted,
    and only the first 1,024 tokens of a text are read.
    """
    nats = count = 0.0
    surprisal = _load_surprisal_model(model)
    for text in texts:
        total, tokens_read, words_read = surprisal(text)
        nats, count = nats + total, count + (words_read if words else tokens_read)
    return math.exp(nats / count) if count else math.nan


def mauve(model: str, real: Sequence[str], generated: Sequence[str]) -> float:
    """Return the MAUVE of two corpora (Pillutla et al. 2021), from the authors' package and mean encoder states."""
    try:
        package = importlib.import_module("mauve")
    except ImportError:
        raise FinecombError("MAUVE requires the package mauve-text; run `pip install mauve-text`") from None
    encoder = _load_encoder(model)
    features = [np.stack([encoder(text).mean(axis=0) for text in texts if text.strip()]) for texts in (real, generated)]
    return float(package.compute_mauve(p_features=features[0], q_features=features[1], verbose=False).mauve)


def _import_package(module: str) -> Any:
    return import_optional_package("this metric requires", module)


@functools.lru_cache(maxsize=2)
def _load_encoder(model: str) -> Callable[[str], Floats]:
    torch, transformers = _import_package("torch"), _import_package("transformers")
    tokenizer, network = (
        _load_pretrained(transformers.AutoTokenizer, model),
        _load_pretrained(transformers.AutoModel, model).eval(),
    )

    @functools.lru_cache(maxsize=4096)
    def token_vectors(text: str) -> Floats:
        inputs = tokenizer(text, return_tensors="pt", truncation=True, max_length=512)
        with torch.no_grad():
            vectors = network(**inputs).last_hidden_state[0, 1:-1]
        return np.asarray(torch.nn.functional.normalize(vectors, dim=-1).numpy(), dtype=np.float64)

    return token_vectors


@functools.lru_cache(maxsize=2)
def _load_surprisal_model(model: str) -> Callable[[str], tuple[float, int, int]]:
    """Return a function from a text to its surprisal in nats after the first token, and its token and word counts."""
    torch, transformers = _import_package("torch"), _import_package("transformers")
    tokenizer = _load_pretrained(transformers.AutoTokenizer, model)
    network = _load_pretrained(transformers.AutoModelForCausalLM, model).eval()

    def summed_surprisal(text: str) -> tuple[float, int, int]:
        inputs = tokenizer(text, return_tensors="pt", truncation=True, max_length=1024)
        count = inputs["input_ids"].shape[1] - 1
        if count < 1:
            return 0.0, 0, 0
        with torch.no_grad():
            loss = float(network(**inputs, labels=inputs["input_ids"]).loss)
        read = tokenizer.decode(inputs["input_ids"][0], skip_special_tokens=True)
        return loss * count, count, len(tokens.word_offsets(read))

    return summed_surprisal


def _load_pretrained(kind: Any, model: str) -> Any:
    try:
        return kind.from_pretrained(model)
    except (OSError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise FinecombError(
            f"model {model} cannot be loaded ({reason}); give a folder or the name of an installed model"
        ) from None


# --- metrics by name ---------------------------------------------------------------------------------------------


def _reference_metric(name: str, score: Callable[[Sequence[Candidate]], list[float]]) -> Metric:
    return Metric(name, score, needs_references=True, by_text=True)


METRICS: Mapping[str, Metric] = {
    row.name: row
    for row in (
        _reference_metric("rouge1", BestReference(functools.partial(rouge_n, size=1))),
        _reference_metric("rouge2", BestReference(functools.partial(rouge_n, size=2))),
        _reference_metric("rougeL", BestReference(rouge_l)),
        _reference_metric("bleu", SacrebleuScores("bleu")),
        _reference_metric("chrf", SacrebleuScores("chrf")),
    )
}
"""Metrics that need no model, by name."""


def _bertscore_metric(model: str) -> Metric:
    return replace(_reference_metric(f"bertscore:{model}", BertScore(model)), uses_all_cores=True)


def _perplexity_metric(model: str) -> Metric:
    score = TextPerplexity(model)
    return Metric(f"perplexity:{model}", score, higher_is_better=False, by_text=True, uses_all_cores=True)


def _mauve_metric(model: str) -> Metric:
    return Metric(
        f"mauve:{model}",
        lambda candidates: [
            mauve(
                model,
                [candidate.references[0] for candidate in candidates],
                [candidate.text for candidate in candidates],
            )
        ],
        needs_references=True,
        of_corpus=True,
        uses_all_cores=True,
    )


MODEL_METRICS: Mapping[str, Callable[[str], Metric]] = {
    "bertscore": _bertscore_metric,
    "perplexity": _perplexity_metric,
    "mauve": _mauve_metric,
}
"""Builders of metrics that need a model, requested as `NAME:MODEL`."""


def metric_by_name(name: str) -> Metric:
    """Return the metric requested as `NAME` or `NAME:MODEL`."""
    if name in METRICS:
        return METRICS[name]
    kind, _, model = name.partition(":")
    if kind in MODEL_METRICS and model:
        return MODEL_METRICS[kind](model)
    if kind in MODEL_METRICS:
        raise FinecombError(
            f"metric {kind} requires a model; use {kind}:NAME, where NAME is a Hugging Face model or a model folder"
        )
    raise FinecombError(f"unknown metric {name!r}{did_you_mean(name, [*METRICS, *MODEL_METRICS])}")
