"""Metrics under stress: what gives each candidate text a number. A row of `METRICS` each; your own are functions.

ROUGE is computed here (F1 of words, of pairs and of the longest common subsequence, lower case, no stemming); BLEU and
chrF by sacrebleu, sentence by sentence; BERTScore and perplexity by any model that transformers loads.
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
from finecomb.core.optional_packages import optional_package
from finecomb.core.records import Document

Floats = NDArray[np.float64]


class Candidate(NamedTuple):
    """A text to be scored, whole or damaged."""

    text: str
    references: tuple[str, ...]
    """What it is compared with; a metric may do without."""
    document: Document
    """The document it was made from."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What gives each candidate a number."""

    name: str
    score: Callable[[Sequence[Candidate]], Sequence[float]]
    """A number for each candidate; NaN where it has none."""
    needs_references: bool = False
    higher_is_better: bool = True
    of_corpus: bool = False
    """Whether `score` gives one number for all candidates together."""
    by_text: bool = False
    """Whether a candidate's number depends on it alone and `score` can be pickled, so that others can do the work."""
    needs_document: bool = False
    """Whether it reads more of a candidate's document than its id."""
    uses_all_cores: bool = False
    """Whether it keeps all cores busy by itself, as a neural model does."""
    identity: str = ""
    """What its numbers depend on beside its name, e.g. the contents of a file."""


# --- ROUGE -------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=4096)
def lowercase_words(text: str) -> tuple[str, ...]:
    """Words in lower case without punctuation."""
    words = (text[start:end].lower() for start, end in tokens.words(text))
    return tuple(word for word in words if word.isalnum())


def f1(common: int, candidate: int, reference: int) -> float:
    """The harmonic mean of precision and recall; 0 where nothing is common."""
    return 2 * common / (candidate + reference) if common else 0.0


def rouge_n(candidate: str, reference: str, size: int) -> float:
    """ROUGE-N: F1 of the runs of `size` words.

    >>> round(rouge_n("the cat sat", "the cat ran", 1), 3), rouge_n("the cat sat", "the cat ran", 2)
    (0.667, 0.5)
    """
    counts = [
        Counter(zip(*(words[at:] for at in range(size)), strict=False))
        for words in _lowercase_pair(candidate, reference)
    ]
    return f1((counts[0] & counts[1]).total(), counts[0].total(), counts[1].total())


def rouge_l(candidate: str, reference: str) -> float:
    """ROUGE-L: F1 of the longest common subsequence of words."""
    first, second = _lowercase_pair(candidate, reference)
    return f1(LCSseq.similarity(first, second), len(first), len(second))


def _lowercase_pair(candidate: str, reference: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return lowercase_words(candidate), lowercase_words(reference)


@dataclass(frozen=True, slots=True)
class BestReference:
    """Scores of candidates against whichever of their references fits best."""

    score: Callable[[str, str], float]
    """Of a candidate and one reference."""

    def __call__(self, candidates: Sequence[Candidate]) -> list[float]:
        """NaN for a candidate without references."""
        return [
            max((self.score(candidate.text, reference) for reference in candidate.references), default=math.nan)
            for candidate in candidates
        ]


# --- others' metrics ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SacrebleuScores:
    """Sentence BLEU (with effective order) or chrF of sacrebleu, between 0 and 1."""

    name: Literal["bleu", "chrf"]

    def __call__(self, candidates: Sequence[Candidate]) -> list[float]:
        """NaN for a candidate without references."""
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
    """F1 of greedily matched token states of an encoder (Zhang et al. 2020), last layer, no weights, no rescaling."""

    model: str

    def __call__(self, candidates: Sequence[Candidate]) -> list[float]:
        """Against the reference that fits best."""
        encoder = _load_encoder(self.model)
        return BestReference(lambda text, reference: greedy_match_f1(encoder(text), encoder(reference)))(candidates)


def greedy_match_f1(first: Floats, second: Floats) -> float:
    """F1 of the best cosine of each token of either side, (tokens, width) each, rows of length 1."""
    if not len(first) or not len(second):
        return math.nan
    cosines = first @ second.T
    precision, recall = cosines.max(axis=1).mean(), cosines.max(axis=0).mean()
    return float(2 * precision * recall / (precision + recall))


@dataclass(frozen=True, slots=True)
class TextPerplexity:
    """exp of the mean negative log-probability of a text's tokens under a causal model."""

    model: str

    def __call__(self, candidates: Sequence[Candidate]) -> list[float]:
        """NaN for a text of fewer than two tokens."""
        return [corpus_perplexity(self.model, [candidate.text], words=False) for candidate in candidates]


def corpus_perplexity(model: str, texts: Iterable[str], words: bool = True) -> float:
    """exp of the negative log-probability of all texts by their words, or by the model's tokens; NaN without any.

    By words, models with different tokens can be compared. The first token of a text is given, not predicted, and of a
    text the first 1,024 tokens are read.
    """
    nats = count = 0.0
    surprisal = _load_surprisal_model(model)
    for text in texts:
        total, tokens_read, words_read = surprisal(text)
        nats, count = nats + total, count + (words_read if words else tokens_read)
    return math.exp(nats / count) if count else math.nan


def mauve(model: str, real: Sequence[str], generated: Sequence[str]) -> float:
    """MAUVE (Pillutla et al. 2021) of two corpora, by the package of its authors and any encoder's mean states."""
    try:
        package = importlib.import_module("mauve")
    except ImportError:
        raise FinecombError("this metric needs the package mauve-text; pip install mauve-text") from None
    encoder = _load_encoder(model)
    features = [np.stack([encoder(text).mean(axis=0) for text in texts if text.strip()]) for texts in (real, generated)]
    return float(package.compute_mauve(p_features=features[0], q_features=features[1], verbose=False).mauve)


def mauve_scores(model: str) -> Callable[[Sequence[Candidate]], list[float]]:
    """MAUVE of all candidates together against their first references."""
    return lambda candidates: [
        mauve(
            model, [candidate.references[0] for candidate in candidates], [candidate.text for candidate in candidates]
        )
    ]


def _import_package(module: str) -> Any:
    return optional_package("this metric needs", module)


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
    """From a text to the nats of its tokens after the first, how many these are, and how many words they are."""
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
        return loss * count, count, len(tokens.words(read))

    return summed_surprisal


def _load_pretrained(kind: Any, model: str) -> Any:
    try:
        return kind.from_pretrained(model)
    except (OSError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise FinecombError(
            f"model {model}: cannot be loaded ({reason}); name a folder or an installed model"
        ) from None


# --- by name -----------------------------------------------------------------------------------------------------


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
"""Metrics that need no model."""


def _bertscore_metric(model: str) -> Metric:
    return replace(_reference_metric(f"bertscore:{model}", BertScore(model)), uses_all_cores=True)


def _perplexity_metric(model: str) -> Metric:
    score = TextPerplexity(model)
    return Metric(f"perplexity:{model}", score, higher_is_better=False, by_text=True, uses_all_cores=True)


def _mauve_metric(model: str) -> Metric:
    return Metric(f"mauve:{model}", mauve_scores(model), needs_references=True, of_corpus=True, uses_all_cores=True)


MODEL_METRICS: Mapping[str, Callable[[str], Metric]] = {
    "bertscore": _bertscore_metric,
    "perplexity": _perplexity_metric,
    "mauve": _mauve_metric,
}
"""Metrics of a model, asked for as `NAME:MODEL`."""


def metric_by_name(name: str) -> Metric:
    """The metric that is asked for as `NAME` or `NAME:MODEL`."""
    if name in METRICS:
        return METRICS[name]
    kind, _, model = name.partition(":")
    if kind in MODEL_METRICS and model:
        return MODEL_METRICS[kind](model)
    if kind in MODEL_METRICS:
        raise FinecombError(
            f"metric {kind}: needs a model, e.g. {kind}:NAME with a name or folder that transformers loads"
        )
    raise FinecombError(f"no metric is called {name!r}{did_you_mean(name, [*METRICS, *MODEL_METRICS])}")
