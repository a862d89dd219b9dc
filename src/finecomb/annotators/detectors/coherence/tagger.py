"""A small encoder, fine-tuned to predict the errors of each sentence and the tokens that belong to an error.

The paper gives T5 a context and one sentence at a time. This tagger encodes a window of consecutive sentences at once,
at a tenth of the cost. Attention is masked so that no token sees a later sentence, so the tagger estimates P(y | c, s).
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
from finecomb.annotators.detectors.coherence.text_windows import Ints, SpecialTokens, TokenWindow, build_token_windows
from finecomb.annotators.model_loading import import_library, load_pretrained

log = logging.getLogger(__name__)
_DETECTOR_NAME = "coherence"


@dataclass(frozen=True, slots=True)
class TaggerSettings:
    """Hyperparameters of the tagger."""

    encoder: str
    epochs: int = 3
    rate: float = 1e-4
    batch: int = 8
    length: int = 320
    context: int = 128
    frozen: int = 2
    """Number of the lowest encoder layers frozen along with the embeddings, which saves a fifth of the time."""
    seed: int = 0


@dataclass(frozen=True)
class SentenceTagger:
    """A fitted tagger."""

    settings: TaggerSettings
    labels: tuple[str, ...]
    network: Any = field(repr=False)
    tokenizer: Any = field(repr=False)

    def __call__(self, texts: Sequence[Narrative]) -> list[TextScores]:
        """Return the scores of each text."""
        torch = import_library("torch", _DETECTOR_NAME)
        self.network.eval()
        width = len(self.labels)
        sentence_scores = [np.zeros((len(text.sentences), width + 1)) for text in texts]
        pieces: list[list[tuple[int, Floats, Ints]]] = [[] for _ in texts]
        # Windows of similar length share a batch, because shorter ones are padded.
        windows = sorted(_encode_windows(texts, self.tokenizer, self.settings), key=lambda window: len(window.ids))
        with torch.inference_mode():
            for begin in range(0, len(windows), self.settings.batch):
                batch = windows[begin : begin + self.settings.batch]
                tokens, sentences = _forward_logits(torch, self.network, batch)
                for row, window in enumerate(batch):
                    first, last = window.scored
                    skipped = first - max(window.sentences[1], 0)
                    sentence_chances = torch.sigmoid(sentences[row]).numpy()[skipped:][: last - first]
                    sentence_scores[window.text][first:last] = sentence_chances
                    inside = (window.sentences >= first) & (window.offsets[:, 1] > window.offsets[:, 0])
                    token_chances = torch.sigmoid(tokens[row]).numpy()[: len(window.ids)][inside]
                    pieces[window.text].append((first, token_chances, window.offsets[inside]))
        results = []
        for chances, parts in zip(sentence_scores, pieces, strict=True):
            parts.sort(key=lambda part: part[0])
            token_scores = np.concatenate([np.zeros((0, width)), *(part[1] for part in parts)]).astype(np.float64)
            offsets = np.concatenate([np.zeros((0, 2), dtype=np.int64), *(part[2] for part in parts)])
            results.append(TextScores(chances, token_scores, offsets))
        return results

    def state(self) -> dict[str, NDArray[np.float32]]:
        """Return the weights by name."""
        return {name: tensor.detach().numpy().copy() for name, tensor in self.network.state_dict().items()}

    @classmethod
    def from_state(
        cls, settings: TaggerSettings, labels: Sequence[str], state: Mapping[str, NDArray[Any]]
    ) -> SentenceTagger:
        """Rebuild the tagger from stored weights, using the architecture and vocabulary of the named encoder."""
        torch = import_library("torch", _DETECTOR_NAME)
        network, tokenizer = _build_network(torch, settings, len(labels))
        network.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in state.items()})
        return cls(settings, tuple(labels), network, tokenizer)


def _encode_windows(texts: Sequence[Narrative], tokenizer: Any, settings: TaggerSettings) -> list[TokenWindow]:
    special = SpecialTokens(tokenizer.cls_token_id, tokenizer.sep_token_id)
    encoded = []
    for text in texts:
        codes = tokenizer(
            text.text, return_offsets_mapping=True, add_special_tokens=False, truncation=False, verbose=False
        )
        offsets = np.array(codes["offset_mapping"], dtype=np.int64).reshape(-1, 2)
        encoded.append((np.array(codes["input_ids"], dtype=np.int64), offsets))
    return build_token_windows(texts, encoded, special, settings.length, settings.context)


def _build_network(torch: Any, settings: TaggerSettings, labels: int) -> tuple[Any, Any]:
    tokenizer, encoder = load_pretrained("AutoModel", settings.encoder, _DETECTOR_NAME)
    width = encoder.config.hidden_size
    heads = {"tokens": torch.nn.Linear(width, labels), "sentences": torch.nn.Linear(2 * width, labels + 1)}
    return torch.nn.ModuleDict({"encoder": encoder, **heads}), tokenizer


def _forward_logits(torch: Any, network: Any, batch: Sequence[TokenWindow]) -> tuple[Any, Any]:
    """Return the logits of tokens, (windows, tokens, labels), and sentences, (windows, sentences, labels + 1)."""
    longest = max(len(window.ids) for window in batch)
    ids = torch.zeros((len(batch), longest), dtype=torch.long)
    visible = torch.zeros((len(batch), 1, longest, longest), dtype=torch.bool)
    # padding attends to itself, because a fully masked row would be undefined
    visible[:, :, range(longest), range(longest)] = True
    owner = torch.full((len(batch), longest), -1, dtype=torch.long)
    for row, window in enumerate(batch):
        size = len(window.ids)
        ids[row, :size] = torch.from_numpy(window.ids)
        visible[row, 0, :size, :size] = torch.from_numpy(window.attention_mask())
        owner[row, :size] = torch.from_numpy(window.sentences - max(window.sentences[1:2].tolist() or [0]))
        owner[row, 0] = -1
    least = torch.finfo(torch.float32).min
    mask = torch.where(visible, 0.0, least)
    hidden = network["encoder"](input_ids=ids, attention_mask=mask).last_hidden_state
    count = int(owner.max()) + 1
    member = torch.nn.functional.one_hot(owner.clamp(min=0), count).float() * (owner >= 0)[..., None]
    sums = member.transpose(1, 2) @ hidden
    means = sums / member.sum(1)[..., None].clamp(min=1)
    tops = torch.stack([
        hidden.masked_fill((owner != index)[..., None], least).amax(1).clamp(min=-1e4) for index in range(count)
    ], dim=1)  # fmt: skip
    return network["tokens"](hidden), network["sentences"](torch.cat([means, tops], dim=-1))


# --- fitting -----------------------------------------------------------------------------------------------------


def fit_tagger(texts: Sequence[Narrative], labels: Sequence[str], settings: TaggerSettings) -> SentenceTagger:
    """Fine-tune an encoder on annotated texts with AdamW and linear decay, on sentences and tokens jointly."""
    torch = import_library("torch", _DETECTOR_NAME)
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(settings.seed)
        network, tokenizer = _build_network(torch, settings, len(labels))
        _freeze_lower_layers(network["encoder"], settings.frozen)
        cut = _encode_windows(texts, tokenizer, settings)
        targets = [_window_targets(texts[window.text], window, labels) for window in cut]
        rng = np.random.default_rng(settings.seed)
        heads = [*network["tokens"].parameters(), *network["sentences"].parameters()]
        groups = [
            {"params": [weight for weight in network["encoder"].parameters() if weight.requires_grad]},
            {"params": heads, "lr": 10 * settings.rate},
        ]
        optimiser = torch.optim.AdamW(groups, lr=settings.rate, weight_decay=0.01)
        batches = [
            order[begin : begin + settings.batch]
            for order in (rng.permutation(len(cut)).tolist() for _ in range(settings.epochs))
            for begin in range(0, len(cut), settings.batch)
        ]
        steps, warm = len(batches), max(1, len(batches) // 10)
        # Warm-up over the first tenth of the steps, then linear decay to zero
        decay = torch.optim.lr_scheduler.LambdaLR(
            optimiser,
            lambda step: (step + 1) / warm if step < warm else max(0.0, (steps - step) / max(1, steps - warm)),
        )
        network.train()
        for step, rows in enumerate(batches):
            loss = _batch_loss(torch, network, [cut[index] for index in rows], [targets[index] for index in rows])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            decay.step()
            optimiser.zero_grad()
            if step % 25 == 0:
                log.info("fitting the tagger: step %d of %d, loss %.3f", step, len(batches), float(loss.detach()))
    network.eval()
    return SentenceTagger(settings, tuple(labels), network, tokenizer)


def _freeze_lower_layers(encoder: Any, layers: int) -> None:
    """Freeze the embeddings and lowest layers of a BERT-like encoder. Other encoders are not frozen."""
    stack = getattr(getattr(encoder, "encoder", None), "layer", None)
    if stack is not None and layers:
        for part in (encoder.embeddings, *stack[:layers]):
            part.requires_grad_(False)


def _window_targets(text: Narrative, window: TokenWindow, labels: Sequence[str]) -> tuple[Floats, Floats]:
    """Return the targets of tokens, (tokens, labels), and of scored sentences, (sentences, labels + 1)."""
    tokens = np.zeros((len(window.ids), len(labels)))
    first, last = window.scored
    for index in range(first, last):
        for span in text.sentences[index].spans:
            if span.label in labels:
                inside = (window.offsets[:, 0] < span.end) & (window.offsets[:, 1] > span.start)
                tokens[inside, labels.index(span.label)] = 1.0
    return tokens, text.target_matrix(labels)[first:last].astype(np.float64)


def _batch_loss(
    torch: Any, network: Any, batch: Sequence[TokenWindow], targets: Sequence[tuple[Floats, Floats]]
) -> Any:
    """Return the mean cross-entropy of the scored sentences plus that of their tokens."""
    tokens, sentences = _forward_logits(torch, network, batch)
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
