"""Scarecrow's span classifier (Dou et al. 2022, section 6): an encoder, and a network over start, end and length."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finecomb.annotators.detectors.spans.examples import SpanText, WordSpan, training_spans, word_truth
from finecomb.annotators.detectors.spans.scoring import (
    MAX_SPAN_WORDS,
    Floats,
    SpanHead,
    all_span_logits,
    word_probabilities,
)
from finecomb.annotators.model_loading import DEFAULT_ENCODER, import_library, load_pretrained

log = logging.getLogger(__name__)
NAME = "spans"


@dataclass(frozen=True, slots=True)
class SpanSettings:
    """How the classifier is made and fitted."""

    encoder: str = DEFAULT_ENCODER
    labels: tuple[str, ...] = ()
    tune: bool = False
    """Whether the encoder itself is fine-tuned, as in the paper, and not only the network on top."""
    epochs: int = 20
    rate: float = 1e-3
    encoder_rate: float = 5e-5
    hidden: int = 128
    lengths: int = 32
    """Width of the length embedding."""
    longest: int = MAX_SPAN_WORDS
    chunk: int = 256
    """Tokens that are encoded together."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class EncodedText:
    """Vectors of a text's words: of the first and of the last token of each."""

    starts: Floats
    ends: Floats


class TextEncoder:
    """An encoder that gives words their vectors."""

    def __init__(self, settings: SpanSettings) -> None:
        self.settings = settings
        self.tokenizer, self.model = load_pretrained("AutoModel", settings.encoder, NAME)
        self.width = int(self.model.config.hidden_size)

    def __call__(self, texts: Sequence[SpanText]) -> list[EncodedText]:
        """Vectors of every text's words."""
        torch = import_library("torch", NAME)
        self.model.eval()
        with torch.inference_mode():
            pairs = [self.vectors(text) for text in texts]
        return [
            EncodedText(starts.numpy().astype(np.float32), ends.numpy().astype(np.float32)) for starts, ends in pairs
        ]

    def vectors(self, text: SpanText) -> tuple[Any, Any]:
        """The same as tensors, for learning."""
        torch = import_library("torch", NAME)
        words = [text.text[start:end] for start, end in text.offsets.tolist()]
        pieces = self.tokenizer(words, add_special_tokens=False, verbose=False)["input_ids"] if words else []
        pieces = [piece[: self.settings.chunk - 2] or [self.tokenizer.unk_token_id] for piece in pieces]
        starts, ends = [], []
        for chunk in _chunk_words(pieces, self.settings.chunk - 2):
            ids = [self.tokenizer.cls_token_id, *(id for piece in chunk for id in piece), self.tokenizer.sep_token_id]
            hidden = self.model(input_ids=torch.tensor([ids])).last_hidden_state[0]
            edges = np.cumsum([1, *(len(piece) for piece in chunk)])
            starts.append(hidden[torch.from_numpy(edges[:-1])])
            ends.append(hidden[torch.from_numpy(edges[1:] - 1)])
        if not starts:
            return torch.zeros((0, self.width)), torch.zeros((0, self.width))
        return torch.cat(starts), torch.cat(ends)


def _chunk_words(pieces: Sequence[list[int]], max_tokens: int) -> list[list[list[int]]]:
    """Words in chunks of at most so many tokens."""
    chunks: list[list[list[int]]] = []
    used = max_tokens + 1
    for piece in pieces:
        if used + len(piece) > max_tokens:
            chunks.append([])
            used = 0
        chunks[-1].append(piece)
        used += len(piece)
    return chunks


@dataclass(frozen=True)
class SpanClassifier:
    """A fitted classifier."""

    settings: SpanSettings
    encoder: TextEncoder = field(repr=False)
    head: SpanHead = field(repr=False)

    def __call__(self, texts: Sequence[SpanText]) -> list[Floats]:
        """Chances of each word and label, (words, labels), of every text."""
        return [self.probabilities(vectors) for vectors in self.encoder(texts)]

    def probabilities(self, vectors: EncodedText) -> Floats:
        """Chances of the words of an encoded text."""
        logits = all_span_logits(vectors.starts, vectors.ends, self.head)
        if not logits:
            return np.zeros((0, len(self.settings.labels)), dtype=np.float32)
        return word_probabilities(logits, len(vectors.starts))

    def encoder_state(self) -> dict[str, NDArray[Any]]:
        """The encoder's weights, where it was fine-tuned."""
        if not self.settings.tune:
            return {}
        return {name: tensor.detach().numpy().copy() for name, tensor in self.encoder.model.state_dict().items()}

    @classmethod
    def from_state(
        cls, settings: SpanSettings, head: Mapping[str, NDArray[Any]], state: Mapping[str, NDArray[Any]]
    ) -> SpanClassifier:
        """From storage."""
        encoder = TextEncoder(settings)
        if state:
            torch = import_library("torch", NAME)
            encoder.model.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in state.items()})
        return cls(settings, encoder, SpanHead.from_arrays(head))


def fit_span_classifier(
    texts: Sequence[SpanText], settings: SpanSettings, encoded: Sequence[EncodedText] | None = None
) -> SpanClassifier:
    """Learn from marked spans and as many as three times unmarked ones, drawn anew in every round.

    `encoded` are vectors of the texts, where they are known already and the encoder stays as it is.
    """
    torch = import_library("torch", NAME)
    rng = np.random.default_rng(settings.seed)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(settings.seed)
        encoder = TextEncoder(settings)
        network = _build_network(torch, settings, encoder.width)
        fixed = None if settings.tune else _to_tensors(torch, encoded or encoder(texts))
        groups = [{"params": network.parameters(), "lr": settings.rate}]
        groups += [{"params": encoder.model.parameters(), "lr": settings.encoder_rate}] if settings.tune else []
        optimiser = torch.optim.AdamW(groups, weight_decay=0.01)
        encoder.model.train(settings.tune)
        for _ in range(settings.epochs):
            for at in rng.permutation(len(texts)).tolist():
                spans = training_spans(texts[at], settings.longest, rng)
                if spans:
                    vectors = fixed[at] if fixed else encoder.vectors(texts[at])
                    _span_loss(torch, network, vectors, spans).backward()
                    optimiser.step()
                    optimiser.zero_grad()
    encoder.model.eval()
    return SpanClassifier(settings, encoder, _extract_span_head(network, encoder.width))


def _to_tensors(torch: Any, encoded: Sequence[EncodedText]) -> list[tuple[Any, Any]]:
    return [(torch.from_numpy(vectors.starts), torch.from_numpy(vectors.ends)) for vectors in encoded]


def _build_network(torch: Any, settings: SpanSettings, width: int) -> Any:
    nn = torch.nn
    first = nn.Linear(2 * width + settings.lengths, settings.hidden)
    out = nn.Linear(settings.hidden, len(settings.labels) + 1)
    return nn.ModuleDict({"lengths": nn.Embedding(settings.longest, settings.lengths), "first": first, "out": out})


def _span_loss(torch: Any, network: Any, vectors: tuple[Any, Any], spans: Sequence[WordSpan]) -> Any:
    """Cross-entropy of the definition: [start; end; length], one layer, a rectifier, one layer."""
    first, last, label = (torch.tensor([getattr(span, name) for span in spans]) for name in ("first", "last", "label"))
    rows = torch.cat([vectors[0][first], vectors[1][last], network["lengths"](last - first)], dim=1)
    logits = network["out"](torch.nn.functional.dropout(torch.relu(network["first"](rows)), 0.2))
    return torch.nn.functional.cross_entropy(logits, label)


def _extract_span_head(network: Any, width: int) -> SpanHead:
    """The trained network with its first layer taken apart."""
    weight, bias = network["first"].weight.detach().numpy(), network["first"].bias.detach().numpy()
    lengths = network["lengths"].weight.detach().numpy()
    parts = weight[:, :width].T, weight[:, width : 2 * width].T, lengths @ weight[:, 2 * width :].T + bias
    out = network["out"].weight.detach().numpy().T, network["out"].bias.detach().numpy()
    return SpanHead(*(np.ascontiguousarray(array, dtype=np.float32) for array in (*parts, *out)))


# --- thresholds and figures --------------------------------------------------------------------------------------


def word_thresholds(chances: Sequence[Floats], texts: Sequence[SpanText], labels: int) -> list[float]:
    """For each label the chance from which marking words gives the highest F1 on these texts."""
    from finecomb.annotators.detectors.coherence.sentence_scores import best_threshold

    every, truth = (
        np.concatenate(chances).astype(np.float64),
        np.concatenate([word_truth(text, labels) for text in texts]),
    )
    return [best_threshold(every[:, at], truth[:, at]) for at in range(labels)]


def word_score_rows(
    chances: Sequence[Floats], texts: Sequence[SpanText], labels: Sequence[str], thresholds: Sequence[float]
) -> list[dict[str, object]]:
    """Precision, recall and F1 of words for each label: Scarecrow's Table 2."""
    every, truth = np.concatenate(chances), np.concatenate([word_truth(text, len(labels)) for text in texts])
    rows: list[dict[str, object]] = []
    for at, label in enumerate(labels):
        marked = every[:, at] >= thresholds[at]
        right, gold, predicted = int((marked & truth[:, at]).sum()), int(truth[:, at].sum()), int(marked.sum())
        rows.append({
            "label": label, "words": gold, "precision": right / predicted if predicted else float("nan"),
            "recall": right / gold if gold else float("nan"), "f1": 2 * right / max(gold + predicted, 1),
        })  # fmt: skip
    return rows
