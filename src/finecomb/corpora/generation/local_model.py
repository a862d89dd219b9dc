"""Endpoint for causal transformers models in this process, with batching and our own token sampling."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from finecomb.annotators.llm.chat import FINISH_CONTEXT_OVERFLOW, ChatReply, ChatRequest
from finecomb.annotators.llm.endpoint import CallError
from finecomb.annotators.llm.local_models import is_local_model, local_model_file
from finecomb.annotators.llm.providers import Capability, Provider
from finecomb.core.errors import FinecombError
from finecomb.core.records import ModelSettings
from finecomb.corpora.generation.decoding import Decoding
from finecomb.corpora.generation.lengths import LengthRule
from finecomb.corpora.generation.priming import DELIMITER
from finecomb.corpora.generation.sampling import TokenSampler

HOST = "transformers"
LENGTH_RULE_FINISH = "words"
"""Finish reason of a text that satisfies the length rule."""
_LENGTH_CHECK_INTERVAL = 4  # tokens between two checks of the length rule
_KEPT_CONTEXT_SHARE = 0.75  # share of the context kept when a text outgrows the model's context
_CONTEXT_SIZE_NAMES = ("max_position_embeddings", "n_positions", "n_ctx")
_DEFAULT_CONTEXT_SIZE = 8192  # limit for models whose context size is unknown or unlimited


@dataclass(slots=True, eq=False)
class _PendingText:
    """One text in generation."""

    request: ChatRequest
    future: asyncio.Future[ChatReply]
    prompt: list[int]
    sampler: TokenSampler
    finish: str = ""
    logits: Any = field(default=None)


class TransformersEndpoint:
    """Endpoint that continues texts in batches of up to `batch` requests.

    A text ends with an end token of the model, with the delimiter, or when the length rule needs no more words.
    """

    host = HOST

    def __init__(
        self, model: str, rule: LengthRule | None, batch: int, delimiter: str = DELIMITER, context: int | None = None
    ) -> None:
        self.rule, self.batch, self.delimiter = rule, batch, delimiter
        self._tokenizer, self._model = _load_model(model)
        sizes = [getattr(self._model.config, name, None) for name in _CONTEXT_SIZE_NAMES]
        own_context = next((int(size) for size in sizes if size), _DEFAULT_CONTEXT_SIZE)
        self.context = min(context or _DEFAULT_CONTEXT_SIZE, own_context)
        # Texts end with the model's tokens, and with the delimiter if it is a single token.
        model_ends = getattr(getattr(self._model, "generation_config", None), "eos_token_id", None)
        ends = [self._tokenizer.eos_token_id, *(model_ends if isinstance(model_ends, list) else [model_ends])]
        token = self._tokenizer.convert_tokens_to_ids(delimiter) if delimiter else None
        if token != getattr(self._tokenizer, "unk_token_id", None):
            ends.append(token)
        self._ends = frozenset(end for end in ends if isinstance(end, int))
        self._waiting: list[_PendingText] = []
        self._worker: asyncio.Task[None] | None = None
        self.computing = 0.0
        """Seconds spent in the model."""
        self.tokens = 0
        """Number of sampled tokens."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the continuation of a prompt."""
        future: asyncio.Future[ChatReply] = asyncio.get_running_loop().create_future()
        prompt = self._tokenizer(request.continuation_prompt)["input_ids"]
        needed = len(prompt) + (request.max_tokens if self.rule else 1)
        if needed > self.context or not prompt:
            return ChatReply(text="", finish=FINISH_CONTEXT_OVERFLOW, prompt_tokens=len(prompt), completion_tokens=0)
        decoding = Decoding(
            top_p=1.0 if request.top_p is None else request.top_p,
            temperature=1.0 if request.temperature is None else request.temperature,
            frequency_penalty=request.frequency_penalty or 0.0,
        )
        sampler = TokenSampler(decoding, np.random.default_rng(request.seed))
        self._waiting.append(_PendingText(request, future, prompt, sampler))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._run_batches())
        return await future

    async def close(self) -> None:
        """Discard queued requests and wait for the running batch."""
        if self._worker is not None and not self._worker.done():
            self._waiting.clear()
            await asyncio.gather(self._worker, return_exceptions=True)

    async def _run_batches(self) -> None:
        await asyncio.sleep(0.02)  # wait for the other requests of the first batch
        while self._waiting:
            rows, self._waiting = self._waiting[: self.batch], self._waiting[self.batch :]
            try:
                await asyncio.to_thread(self._write_batch, rows, asyncio.get_running_loop())
            except RuntimeError as error:  # e.g. out of memory; fail this batch and continue with the next one
                for row in rows:
                    if not row.future.done():
                        row.future.set_exception(CallError(f"the model failed: {str(error).splitlines()[0]}"))

    # --- in a worker thread ------------------------------------------------------------------------------------------

    def _write_batch(self, rows: Sequence[_PendingText], loop: asyncio.AbstractEventLoop) -> None:
        """Generate all texts of a batch and resolve each future as soon as its text is complete."""
        import torch

        writing = [row for row in rows if not row.future.done()]
        cache, mask = None, None
        while writing:
            if mask is None or mask.shape[1] >= self.context:
                cache, mask = self._prefill_cache(writing)
            else:
                ids = torch.tensor([[row.sampler.tokens[-1]] for row in writing])
                mask = torch.cat([mask, torch.ones((len(writing), 1), dtype=mask.dtype)], dim=1)
                cache, mask = self._run_model(writing, ids, mask, cache)
            done = [self._draw_token(row) for row in writing]
            if any(done):
                for row in (row for row in writing if row.finish):
                    reply = ChatReply(
                        text=self._decode_text(row).replace("\0", "\N{REPLACEMENT CHARACTER}"),
                        finish=row.finish,
                        prompt_tokens=len(row.prompt),
                        completion_tokens=len(row.sampler.tokens),
                        model=Path(str(row.request.model)).name,
                    )
                    loop.call_soon_threadsafe(_resolve_future, row.future, reply)
                numbers = [number for number, row in enumerate(writing) if not row.finish and not row.future.done()]
                writing = [writing[number] for number in numbers]
                if writing:
                    cache, mask = _select_rows(cache, mask, numbers)

    def _prefill_cache(self, rows: Sequence[_PendingText]) -> tuple[Any, Any]:
        """Run the model on prompts and sampled tokens, truncated on the left if too long; return cache and mask."""
        import torch

        kept_length = int(self.context * _KEPT_CONTEXT_SHARE)
        texts = [[*row.prompt, *row.sampler.tokens] for row in rows]
        texts = [text if len(text) < self.context else text[-kept_length:] for text in texts]
        width = max(map(len, texts))
        ids = torch.tensor([[0] * (width - len(text)) + text for text in texts])
        mask = torch.tensor([[0] * (width - len(text)) + [1] * len(text) for text in texts])
        return self._run_model(rows, ids, mask, None)

    def _run_model(self, rows: Sequence[_PendingText], ids: Any, mask: Any, cache: Any) -> tuple[Any, Any]:
        import torch

        positions = (mask.cumsum(1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        started = time.perf_counter()
        with torch.inference_mode():
            output = self._model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=cache,
                use_cache=True,
                **self._last_logits_option,
            )
            logits = output.logits[:, -1].float().numpy()
        self.computing += time.perf_counter() - started
        for row, values in zip(rows, logits, strict=True):
            row.logits = values
        return output.past_key_values, mask

    @property
    def _last_logits_option(self) -> dict[str, int]:
        """Keyword argument that limits the model's output to the logits of the last token; empty if unsupported."""
        import inspect

        return {"logits_to_keep": 1} if "logits_to_keep" in inspect.signature(self._model.forward).parameters else {}

    def _draw_token(self, row: _PendingText) -> bool:
        """Draw the next token of a text and return True if the text is finished."""
        token = row.sampler.draw(row.logits)
        self.tokens += 1
        drawn = len(row.sampler.tokens)
        checks_rule = self.rule and drawn % _LENGTH_CHECK_INTERVAL == 0 and drawn >= self.rule.least // 2
        if token in self._ends:
            row.finish = "stop"
        elif self.rule and checks_rule and self.rule.can_stop_generating(self._decode_text(row)):
            row.finish = LENGTH_RULE_FINISH
        elif drawn >= row.request.max_tokens:
            row.finish = "length"
        return bool(row.finish)

    def _decode_text(self, row: _PendingText) -> str:
        tokens = [token for token in row.sampler.tokens if token not in self._ends]
        return str(self._tokenizer.decode(tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False))


class TransformersProvider(Provider):
    """Causal transformers models in this process; each run has its own provider, with the run's length rule."""

    name = HOST
    capabilities: frozenset[Capability] = frozenset({"completions", "seed"})
    calls_per_slot = 2  # the next batch queues while one is computed

    def __init__(self, rule: LengthRule | None, delimiter: str) -> None:
        self.rule, self.delimiter = rule, delimiter

    def host(self, settings: ModelSettings) -> str:
        """Return `transformers`, or raise an error if the file of a local model is missing."""
        if is_local_model(settings.model):
            local_model_file(settings.model)
        return HOST

    def open_endpoint(self, settings: ModelSettings) -> TransformersEndpoint:
        """Load the model."""
        return TransformersEndpoint(
            settings.model, self.rule, settings.concurrency, self.delimiter, settings.context_tokens
        )


def _resolve_future(future: asyncio.Future[ChatReply], reply: ChatReply) -> None:
    if not future.done():
        future.set_result(reply)


def _select_rows(cache: Any, mask: Any, numbers: Sequence[int]) -> tuple[Any, Any]:
    """Return the cache and mask of the selected rows."""
    import torch

    chosen = torch.tensor(list(numbers))
    cache.reorder_cache(chosen)
    return cache, mask[chosen]


def _load_model(model: str) -> tuple[Any, Any]:
    from finecomb.annotators.model_loading import load_pretrained

    location = str(local_model_file(model)) if is_local_model(model) else model
    try:
        tokenizer, network = load_pretrained("AutoModelForCausalLM", location, "generate")
    except (TypeError, KeyError, AttributeError) as error:  # raised by loaders for folders without such a model
        raise FinecombError(
            f"generate: the model {model} cannot be loaded ({error}); use a causal language model"
        ) from None
    if not getattr(tokenizer, "vocab_size", 0) or len(tokenizer) < 2:
        raise FinecombError(f"generate: the model {model} has no tokenizer; add its tokenizer files to the same folder")
    return tokenizer, network.eval()
