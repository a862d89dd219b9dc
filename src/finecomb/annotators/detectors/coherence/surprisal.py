"""Surprisal of each sentence's words under a causal language model, given all preceding text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from finecomb.annotators.detectors.coherence.narrative import Narrative
from finecomb.annotators.detectors.coherence.sentence_scores import Floats, Ints
from finecomb.annotators.model_loading import import_library, load_pretrained

NAME = "surprisal"
_WINDOW_TOKENS, _STRIDE_TOKENS = 1536, 1024


@dataclass(frozen=True, slots=True)
class TokenSurprisals:
    """Negative log probabilities of a text's tokens."""

    nats: Floats
    """Surprisal of each token in nats, (tokens,)."""
    offsets: Ints
    """Start and end of each token, (tokens, 2)."""

    def nats_in_span(self, start: int, end: int) -> Floats:
        """Return the surprisals of the tokens that end inside a span."""
        inside: Floats = self.nats[(self.offsets[:, 1] > start) & (self.offsets[:, 1] <= end)]
        return inside


@dataclass(frozen=True)
class SurprisalScorer:
    """A causal language model that computes surprisal."""

    model: Any = field(repr=False)
    tokenizer: Any = field(repr=False)

    @classmethod
    def from_pretrained(cls, name: str) -> SurprisalScorer:
        """Load a causal language model from a Hugging Face model name, a folder or a GGUF file."""
        tokenizer, model = load_pretrained("AutoModelForCausalLM", name, NAME)
        model.eval()
        return cls(model, tokenizer)

    def __call__(self, texts: Sequence[Narrative]) -> list[TokenSurprisals]:
        """Return the surprisals of each text."""
        torch = import_library("torch", NAME)
        # An opening token gives the first word a probability as well.
        openings = (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id)
        opening = next((id for id in openings if id is not None), 0)
        results = []
        for text in texts:
            encoded = self.tokenizer(text.text, return_offsets_mapping=True, add_special_tokens=False, verbose=False)
            ids = np.array(encoded["input_ids"], dtype=np.int64)
            nats = np.zeros(len(ids))
            # Windows overlap, so that the first tokens of a window have context as well.
            for begin in range(0, len(ids), _STRIDE_TOKENS):
                start = max(begin - (_WINDOW_TOKENS - _STRIDE_TOKENS), 0)
                end = min(begin + _STRIDE_TOKENS, len(ids))
                codes = torch.from_numpy(np.concatenate([[opening], ids[start:end]]))
                with torch.inference_mode():
                    logits = self.model(codes[None]).logits[0, :-1].float()
                    chosen = torch.log_softmax(logits, dim=-1).gather(1, codes[1:, None])
                nats[begin:end] = -chosen[begin - start :, 0].double().numpy()
            offsets = np.array(encoded["offset_mapping"], dtype=np.int64).reshape(-1, 2)
            results.append(TokenSurprisals(nats, offsets))
        return results


def sentence_surprisals(text: Narrative, surprisals: TokenSurprisals, whole: bool = False) -> Floats:
    """Return the mean surprisal of each sentence, or with `whole` the sum -log P(s | c), (sentences,)."""
    rows = [surprisals.nats_in_span(sentence.start, sentence.end) for sentence in text.sentences]
    return np.array([(row.sum() if whole else row.mean()) if len(row) else 0.0 for row in rows])


def surprisal_features(text: Narrative, surprisals: TokenSurprisals) -> list[dict[str, float]]:
    """Return the surprisal features of each sentence."""
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
