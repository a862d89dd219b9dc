"""A small encoder, fine-tuned to say for each sentence which errors it has and for each token whether it is in one.

The paper gives T5 a context and one sentence at a time. Here a window of neighbouring sentences is read at once, which
costs a tenth, and attention is masked so that no token sees a later sentence: the question is the same, P(y | c, s).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from finecomb.annotators.detectors.coherence.narrative import Narrative
from finecomb.annotators.detectors.coherence.sentence_scores import Floats, TextScores
from finecomb.annotators.detectors.coherence.text_windows import Ints, SpecialTokens, TokenWindow, build_windows
from finecomb.annotators.model_loading import import_library, load_pretrained

log = logging.getLogger(__name__)
_DETECTOR_NAME = "coherence"


@dataclass(frozen=True, slots=True)
class TaggerSettings:
    """How a tagger is made and fitted."""

    encoder: str
    epochs: int = 3
    rate: float = 1e-4
    batch: int = 8
    length: int = 320
    context: int = 128
    frozen: int = 2
    """How many of the encoder's lowest layers, and its embeddings, stay as they are: a fifth of the time saved."""
    seed: int = 0


@dataclass(frozen=True)
class SentenceTagger:
    """A fitted tagger."""

    settings: TaggerSettings
    labels: tuple[str, ...]
    network: Any = field(repr=False)
    tokenizer: Any = field(repr=False)

    def __call__(self, texts: Sequence[Narrative]) -> list[TextScores]:
        """Scores of every text."""
        torch = import_library("torch", _DETECTOR_NAME)
        self.network.eval()
        cut = _encode_windows(texts, self.tokenizer, self.settings)
        results = [_ScoreCollector(len(text.sentences), len(self.labels)) for text in texts]
        order = sorted(range(len(cut)), key=lambda at: len(cut[at].ids))
        with torch.inference_mode():
            for begin in range(0, len(order), self.settings.batch):
                batch = [cut[at] for at in order[begin : begin + self.settings.batch]]
                tokens, sentences = _forward(torch, self.network, batch)
                for row, window in enumerate(batch):
                    results[window.text].add(
                        window, torch.sigmoid(tokens[row]).numpy(), torch.sigmoid(sentences[row]).numpy()
                    )
        return [result.scores() for result in results]

    def state(self) -> dict[str, NDArray[np.float32]]:
        """Its weights by name."""
        return {name: tensor.detach().numpy().copy() for name, tensor in self.network.state_dict().items()}

    @classmethod
    def from_state(
        cls, settings: TaggerSettings, labels: Sequence[str], state: Mapping[str, NDArray[Any]]
    ) -> SentenceTagger:
        """A tagger with stored weights; the encoder's shape and vocabulary come from the model of that name."""
        torch = import_library("torch", _DETECTOR_NAME)
        network, tokenizer = _build_network(torch, settings, len(labels))
        network.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in state.items()})
        return cls(settings, tuple(labels), network, tokenizer)


class _ScoreCollector:
    """Scores of one text as its windows come in."""

    def __init__(self, sentences: int, labels: int) -> None:
        self.sentences = np.zeros((sentences, labels + 1))
        self.pieces: list[tuple[int, Floats, Ints]] = []

    def add(self, window: TokenWindow, tokens: Floats, sentences: Floats) -> None:
        """One window's scores of the sentences that it is to score."""
        first, last = window.scored
        self.sentences[first:last] = sentences[first - max(window.sentences[1], 0) :][: last - first]
        inside = (window.sentences >= first) & (window.offsets[:, 1] > window.offsets[:, 0])
        self.pieces.append((first, tokens[: len(window.ids)][inside], window.offsets[inside]))

    def scores(self) -> TextScores:
        """All of them in text order."""
        self.pieces.sort(key=lambda piece: piece[0])
        width = self.sentences.shape[1] - 1
        tokens = np.concatenate([np.zeros((0, width)), *(piece[1] for piece in self.pieces)])
        offsets = np.concatenate([np.zeros((0, 2), dtype=np.int64), *(piece[2] for piece in self.pieces)])
        return TextScores(self.sentences, tokens.astype(np.float64), offsets)


def _encode_windows(texts: Sequence[Narrative], tokenizer: Any, settings: TaggerSettings) -> list[TokenWindow]:
    special = SpecialTokens(tokenizer.cls_token_id, tokenizer.sep_token_id)
    encoded = []
    for text in texts:
        codes = tokenizer(
            text.text, return_offsets_mapping=True, add_special_tokens=False, truncation=False, verbose=False
        )
        offsets = np.array(codes["offset_mapping"], dtype=np.int64).reshape(-1, 2)
        encoded.append((np.array(codes["input_ids"], dtype=np.int64), offsets))
    return build_windows(texts, encoded, special, settings.length, settings.context)


def _build_network(torch: Any, settings: TaggerSettings, labels: int) -> tuple[Any, Any]:
    tokenizer, encoder = load_pretrained("AutoModel", settings.encoder, _DETECTOR_NAME)
    width = encoder.config.hidden_size
    heads = {"tokens": torch.nn.Linear(width, labels), "sentences": torch.nn.Linear(2 * width, labels + 1)}
    return torch.nn.ModuleDict({"encoder": encoder, **heads}), tokenizer


def _forward(torch: Any, network: Any, batch: Sequence[TokenWindow]) -> tuple[Any, Any]:
    """Logits of tokens, (windows, tokens, labels), and of each window's sentences, (windows, sentences, labels + 1)."""
    longest = max(len(window.ids) for window in batch)
    ids = torch.zeros((len(batch), longest), dtype=torch.long)
    seen = torch.zeros((len(batch), 1, longest, longest), dtype=torch.bool)
    seen[:, :, range(longest), range(longest)] = True  # padding sees itself, so that no row of attention is empty
    owner = torch.full((len(batch), longest), -1, dtype=torch.long)
    for row, window in enumerate(batch):
        size = len(window.ids)
        ids[row, :size] = torch.from_numpy(window.ids)
        seen[row, 0, :size, :size] = torch.from_numpy(window.attention_mask())
        owner[row, :size] = torch.from_numpy(window.sentences - max(window.sentences[1:2].tolist() or [0]))
        owner[row, 0] = -1
    least = torch.finfo(torch.float32).min
    mask = torch.where(seen, 0.0, least)
    hidden = network["encoder"](input_ids=ids, attention_mask=mask).last_hidden_state
    count = int(owner.max()) + 1
    member = torch.nn.functional.one_hot(owner.clamp(min=0), count).float() * (owner >= 0)[..., None]
    sums = member.transpose(1, 2) @ hidden
    means = sums / member.sum(1)[..., None].clamp(min=1)
    tops = torch.stack([
        hidden.masked_fill((owner != at)[..., None], least).amax(1).clamp(min=-1e4) for at in range(count)
    ], dim=1)  # fmt: skip
    return network["tokens"](hidden), network["sentences"](torch.cat([means, tops], dim=-1))


# --- fitting -----------------------------------------------------------------------------------------------------


def fit_tagger(texts: Sequence[Narrative], labels: Sequence[str], settings: TaggerSettings) -> SentenceTagger:
    """Fine-tune an encoder on marked texts: AdamW, linear decay, sentences and tokens together."""
    torch = import_library("torch", _DETECTOR_NAME)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(settings.seed)
        network, tokenizer = _build_network(torch, settings, len(labels))
        _freeze(network["encoder"], settings.frozen)
        cut = _encode_windows(texts, tokenizer, settings)
        targets = [_targets(texts[window.text], window, labels) for window in cut]
        _optimise(torch, network, cut, targets, settings)
    network.eval()
    return SentenceTagger(settings, tuple(labels), network, tokenizer)


def _freeze(encoder: Any, layers: int) -> None:
    """Fix the embeddings and the lowest layers of an encoder that is built like BERT; leave any other free."""
    stack = getattr(getattr(encoder, "encoder", None), "stroke_name", None)
    if stack is not None and layers:
        for part in (encoder.embeddings, *stack[:layers]):
            part.requires_grad_(False)


def _targets(text: Narrative, window: TokenWindow, labels: Sequence[str]) -> tuple[Floats, Floats]:
    """What is right for tokens, (tokens, labels), and for the scored sentences, (sentences, labels + 1)."""
    tokens = np.zeros((len(window.ids), len(labels)))
    first, last = window.scored
    for at in range(first, last):
        for span in text.sentences[at].spans:
            if span.label in labels:
                inside = (window.offsets[:, 0] < span.end) & (window.offsets[:, 1] > span.start)
                tokens[inside, labels.index(span.label)] = 1.0
    return tokens, text.targets(labels)[first:last].astype(np.float64)


def _optimise(
    torch: Any,
    network: Any,
    cut: Sequence[TokenWindow],
    targets: Sequence[tuple[Floats, Floats]],
    settings: TaggerSettings,
) -> None:
    rng = np.random.default_rng(settings.seed)
    heads = [*network["tokens"].parameters(), *network["sentences"].parameters()]
    groups = [
        {"params": [weight for weight in network["encoder"].parameters() if weight.requires_grad]},
        {"params": heads, "lr": 10 * settings.rate},
    ]
    optimiser = torch.optim.AdamW(groups, lr=settings.rate, weight_decay=0.01)
    batches = [batch for _ in range(settings.epochs) for batch in _batches(cut, settings.batch, rng)]
    decay = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _learning_rate_factor(step, len(batches)))
    network.train()
    for step, rows in enumerate(batches):
        loss = _loss(torch, network, [cut[at] for at in rows], [targets[at] for at in rows])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        decay.step()
        optimiser.zero_grad()
        if step % 25 == 0:
            log.info("fitting the tagger: step %d of %d, loss %.3f", step, len(batches), float(loss.detach()))


def _learning_rate_factor(step: int, steps: int) -> float:
    """Warm-up over the first tenth, then linear decay to nothing."""
    warm = max(1, steps // 10)
    return (step + 1) / warm if step < warm else max(0.0, (steps - step) / max(1, steps - warm))


def _batches(cut: Sequence[TokenWindow], size: int, rng: np.random.Generator) -> list[list[int]]:
    order = rng.permutation(len(cut)).tolist()
    return [order[begin : begin + size] for begin in range(0, len(order), size)]


def _loss(torch: Any, network: Any, batch: Sequence[TokenWindow], targets: Sequence[tuple[Floats, Floats]]) -> Any:
    """Mean cross-entropy of sentences plus that of tokens, of scored sentences only."""
    tokens, sentences = _forward(torch, network, batch)
    cross = torch.nn.functional.binary_cross_entropy_with_logits
    token_logits, token_truth, sentence_logits, sentence_truth = [], [], [], []
    for row, (window, (right_tokens, right_sentences)) in enumerate(zip(batch, targets, strict=True)):
        first, last = window.scored
        inside = np.flatnonzero(window.sentences >= first)
        token_logits.append(tokens[row][inside])
        token_truth.append(torch.from_numpy(right_tokens[inside]).float())
        begin = first - int(window.sentences[1])
        sentence_logits.append(sentences[row][begin : begin + last - first])
        sentence_truth.append(torch.from_numpy(right_sentences).float())
    of_sentences = cross(torch.cat(sentence_logits), torch.cat(sentence_truth))
    return of_sentences + cross(torch.cat(token_logits), torch.cat(token_truth))
