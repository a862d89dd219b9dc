"""How unexpected the words of each sentence are to a causal language model that has read everything before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from finecomb.annotators.detectors.coherence.narrative import Narrative
from finecomb.annotators.detectors.coherence.sentence_scores import Floats, Ints
from finecomb.annotators.model_loading import import_library, load_pretrained

NAME = "surprisal"
_WINDOW, _STRIDE = 1536, 1024


@dataclass(frozen=True, slots=True)
class TokenSurprisals:
    """Negative log probabilities of one text's tokens."""

    nats: Floats
    """(tokens,)"""
    offsets: Ints
    """(tokens, 2)"""

    def nats_in_span(self, start: int, end: int) -> Floats:
        """Those of the tokens that end within a stretch of the text."""
        inside: Floats = self.nats[(self.offsets[:, 1] > start) & (self.offsets[:, 1] <= end)]
        return inside


@dataclass(frozen=True)
class SurprisalScorer:
    """A causal language model as a measure of surprise."""

    model: Any = field(repr=False)
    tokenizer: Any = field(repr=False)

    @classmethod
    def from_pretrained(cls, name: str) -> SurprisalScorer:
        """With the model of a public name, or of a folder or GGUF file."""
        tokenizer, model = load_pretrained("AutoModelForCausalLM", name, NAME)
        model.eval()
        return cls(model, tokenizer)

    def __call__(self, texts: Sequence[Narrative]) -> list[TokenSurprisals]:
        """Surprisals of every text."""
        return [self._text_surprisals(text.text) for text in texts]

    def _text_surprisals(self, text: str) -> TokenSurprisals:
        codes = self.tokenizer(text, return_offsets_mapping=True, add_special_tokens=False, verbose=False)
        ids = np.array(codes["input_ids"], dtype=np.int64)
        first = next(
            (id for id in (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id) if id is not None), 0
        )  # so that the first word has a probability too
        nats = np.zeros(len(ids))
        for begin in range(0, len(ids), _STRIDE):
            start = max(begin - (_WINDOW - _STRIDE), 0)
            end = min(begin + _STRIDE, len(ids))
            nats[begin:end] = self._window_surprisals(first, ids[start:end])[begin - start :]
        return TokenSurprisals(nats, np.array(codes["offset_mapping"], dtype=np.int64).reshape(-1, 2))

    def _window_surprisals(self, first: int, ids: Ints) -> Floats:
        torch = import_library("torch", NAME)
        codes = torch.from_numpy(np.concatenate([[first], ids]))
        with torch.inference_mode():
            logits = self.model(codes[None]).logits[0, :-1].float()
            chosen = torch.log_softmax(logits, dim=-1).gather(1, codes[1:, None])
        nats: Floats = -chosen[:, 0].double().numpy()
        return nats


def sentence_surprisals(text: Narrative, surprisals: TokenSurprisals, whole: bool = False) -> Floats:
    """Mean surprisal of each sentence's tokens, or its sum with `whole`: -log P(s | c), (sentences,)."""
    rows = [surprisals.nats_in_span(sentence.start, sentence.end) for sentence in text.sentences]
    return np.array([(row.sum() if whole else row.mean()) if len(row) else 0.0 for row in rows])


def surprisal_features(text: Narrative, surprisals: TokenSurprisals) -> list[dict[str, float]]:
    """Numbers by name for every sentence."""
    features = []
    past: list[float] = []
    for sentence in text.sentences:
        nats = surprisals.nats_in_span(sentence.start, sentence.end)
        nats = nats if len(nats) else np.zeros(1)
        mean = float(nats.mean())
        features.append({
            "surprisal.mean": mean, "surprisal.sum": float(nats.sum()), "surprisal.max": float(nats.max()),
            "surprisal.start": float(nats[:5].mean()), "surprisal.second": float(np.sort(nats)[-2:][0]),
            "surprisal.against.past": mean - (float(np.mean(past)) if past else mean),
        })  # fmt: skip
        past.append(mean)
    return features
