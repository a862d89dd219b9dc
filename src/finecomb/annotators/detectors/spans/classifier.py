"""The span classifier of Scarecrow (Dou et al. 2022, section 6), an encoder with a network over spans."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finecomb.annotators.detectors.spans.examples import SpanText, sample_training_spans
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
    """Hyperparameters of the span classifier."""

    encoder: str = DEFAULT_ENCODER
    labels: tuple[str, ...] = ()
    tune: bool = False
    """True to fine-tune the encoder as in the paper, False to train only the network on top of it."""
    epochs: int = 20
    rate: float = 1e-3
    encoder_rate: float = 5e-5
    hidden: int = 128
    lengths: int = 32
    """Size of the length embedding."""
    longest: int = MAX_SPAN_WORDS
    chunk: int = 256
    """Maximum number of tokens encoded together."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class EncodedText:
    """Vectors of the first and the last token of each word."""

    starts: Floats
    ends: Floats


class TextEncoder:
    """A pretrained encoder that returns word vectors."""

    def __init__(self, settings: SpanSettings) -> None:
        self.settings = settings
        self.tokenizer, self.model = load_pretrained("AutoModel", settings.encoder, NAME)
        self.width = int(self.model.config.hidden_size)

    def __call__(self, texts: Sequence[SpanText]) -> list[EncodedText]:
        """Return the word vectors of each text."""
        torch = import_library("torch", NAME)
        self.model.eval()
        with torch.inference_mode():
            pairs = [self.encode_as_tensors(text) for text in texts]
        return [
            EncodedText(starts.numpy().astype(np.float32), ends.numpy().astype(np.float32)) for starts, ends in pairs
        ]

    def encode_as_tensors(self, text: SpanText) -> tuple[Any, Any]:
        """Return the word vectors of a text as tensors that keep gradients, for fine-tuning."""
        torch = import_library("torch", NAME)
        words = [text.text[start:end] for start, end in text.offsets.tolist()]
        pieces = self.tokenizer(words, add_special_tokens=False, verbose=False)["input_ids"] if words else []
        # A word without tokens still needs a vector.
        pieces = [piece[: self.settings.chunk - 2] or [self.tokenizer.unk_token_id] for piece in pieces]
        starts, ends = [], []
        max_tokens = self.settings.chunk - 2  # without the opening and the closing token
        chunks: list[list[list[int]]] = []
        used = max_tokens + 1
        for piece in pieces:
            if used + len(piece) > max_tokens:
                chunks.append([])
                used = 0
            chunks[-1].append(piece)
            used += len(piece)
        for chunk in chunks:
            ids = [self.tokenizer.cls_token_id, *(id for piece in chunk for id in piece), self.tokenizer.sep_token_id]
            hidden = self.model(input_ids=torch.tensor([ids])).last_hidden_state[0]
            edges = np.cumsum([1, *(len(piece) for piece in chunk)])
            starts.append(hidden[torch.from_numpy(edges[:-1])])
            ends.append(hidden[torch.from_numpy(edges[1:] - 1)])
        if not starts:
            return torch.zeros((0, self.width)), torch.zeros((0, self.width))
        return torch.cat(starts), torch.cat(ends)


@dataclass(frozen=True)
class SpanClassifier:
    """A fitted span classifier."""

    settings: SpanSettings
    encoder: TextEncoder = field(repr=False)
    head: SpanHead = field(repr=False)

    def __call__(self, texts: Sequence[SpanText]) -> list[Floats]:
        """Return the probability of each word and label, (words, labels), for each text."""
        return [self.word_probabilities(vectors) for vectors in self.encoder(texts)]

    def word_probabilities(self, vectors: EncodedText) -> Floats:
        """Return the probability of each word and label from word vectors."""
        logits = all_span_logits(vectors.starts, vectors.ends, self.head)
        if not logits:
            return np.zeros((0, len(self.settings.labels)), dtype=np.float32)
        return word_probabilities(logits, len(vectors.starts))

    @classmethod
    def from_state(
        cls, settings: SpanSettings, head: Mapping[str, NDArray[Any]], state: Mapping[str, NDArray[Any]]
    ) -> SpanClassifier:
        """Rebuild the classifier from its stored weights."""
        encoder = TextEncoder(settings)
        if state:
            torch = import_library("torch", NAME)
            encoder.model.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in state.items()})
        return cls(settings, encoder, SpanHead.from_arrays(head))


def fit_span_classifier(
    texts: Sequence[SpanText], settings: SpanSettings, encoded: Sequence[EncodedText] | None = None
) -> SpanClassifier:
    """Fit the classifier to marked spans and three times as many unmarked ones, sampled anew in each epoch.

    `encoded` are precomputed word vectors of the texts, for an encoder that is not fine-tuned.
    """
    torch = import_library("torch", NAME)
    rng = np.random.default_rng(settings.seed)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(settings.seed)
        encoder = TextEncoder(settings)
        network = _build_network(torch, settings, encoder.width)
        fixed = [
            (torch.from_numpy(vectors.starts), torch.from_numpy(vectors.ends))
            for vectors in (() if settings.tune else encoded or encoder(texts))
        ]
        groups = [{"params": network.parameters(), "lr": settings.rate}]
        groups += [{"params": encoder.model.parameters(), "lr": settings.encoder_rate}] if settings.tune else []
        optimiser = torch.optim.AdamW(groups, weight_decay=0.01)
        encoder.model.train(settings.tune)
        for _ in range(settings.epochs):
            for index in rng.permutation(len(texts)).tolist():
                spans = sample_training_spans(texts[index], settings.longest, rng)
                if spans:
                    vectors = fixed[index] if fixed else encoder.encode_as_tensors(texts[index])
                    first, last, label = (
                        torch.tensor([getattr(span, name) for span in spans]) for name in ("first", "last", "label")
                    )
                    rows = torch.cat([vectors[0][first], vectors[1][last], network["lengths"](last - first)], dim=1)
                    logits = network["out"](torch.nn.functional.dropout(torch.relu(network["first"](rows)), 0.2))
                    torch.nn.functional.cross_entropy(logits, label).backward()
                    optimiser.step()
                    optimiser.zero_grad()
    encoder.model.eval()
    return SpanClassifier(settings, encoder, _extract_span_head(network, encoder.width))


def _build_network(torch: Any, settings: SpanSettings, width: int) -> Any:
    nn = torch.nn
    first = nn.Linear(2 * width + settings.lengths, settings.hidden)
    out = nn.Linear(settings.hidden, len(settings.labels) + 1)
    return nn.ModuleDict({"lengths": nn.Embedding(settings.longest, settings.lengths), "first": first, "out": out})


def _extract_span_head(network: Any, width: int) -> SpanHead:
    """Split the first layer of the trained network into its weights for start, end and length."""
    weight, bias = network["first"].weight.detach().numpy(), network["first"].bias.detach().numpy()
    lengths = network["lengths"].weight.detach().numpy()
    parts = weight[:, :width].T, weight[:, width : 2 * width].T, lengths @ weight[:, 2 * width :].T + bias
    out = network["out"].weight.detach().numpy().T, network["out"].bias.detach().numpy()
    return SpanHead(*(np.ascontiguousarray(array, dtype=np.float32) for array in (*parts, *out)))
