"""A causal model of transformers in this process: many texts at a time, every token drawn by our own sampling."""

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
from finecomb.annotators.llm.local_models import is_local, model_file
from finecomb.core.errors import FinecombError
from finecomb.corpora.generation.decoding import Decoding
from finecomb.corpora.generation.lengths import LengthRule
from finecomb.corpora.generation.priming import DELIMITER
from finecomb.corpora.generation.sampling import TokenSampler

HOST = "transformers"
WORDS_FINISH = "words"
"""Why a text ends: no more words are needed."""
_LENGTH_CHECK_INTERVAL = 4  # tokens between two looks at whether a text is long enough
_KEPT_CONTEXT_SHARE = 0.75  # of a text that outgrows the model, so much is read again
_MAX_CONTEXT = 8192  # where a model names none, or an endless one


@dataclass(slots=True, eq=False)
class _PendingText:
    """One text that is being written."""

    request: ChatRequest
    future: asyncio.Future[ChatReply]
    prompt: list[int]
    sampler: TokenSampler
    finish: str = ""
    logits: Any = field(default=None)


class TransformersEndpoint:
    """Answers requests to go on with a text, as many at a time as `batch` says.

    A text ends with the model's own end, with the delimiter of texts, or as soon as the length rule is settled.
    """

    host = HOST

    def __init__(
        self, model: str, rule: LengthRule | None, batch: int, delimiter: str = DELIMITER, context: int | None = None
    ) -> None:
        self.rule, self.batch, self.delimiter = rule, batch, delimiter
        self._tokenizer, self._model = _load_model(model)
        self.context = min(context or _MAX_CONTEXT, _context_size(self._model))
        self._ends = _end_tokens(self._tokenizer, self._model, delimiter)
        self._waiting: list[_PendingText] = []
        self._worker: asyncio.Task[None] | None = None
        self.computing = 0.0
        """Seconds that the model has been at work."""
        self.tokens = 0
        """Drawn so far."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The continuation of one text."""
        future: asyncio.Future[ChatReply] = asyncio.get_running_loop().create_future()
        prompt = self._tokenizer(request.prompt)["input_ids"]
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
        """Let what is being computed come to its end; nobody waits for it any more."""
        if self._worker is not None and not self._worker.done():
            self._waiting.clear()
            await asyncio.gather(self._worker, return_exceptions=True)

    async def _run_batches(self) -> None:
        await asyncio.sleep(0.02)  # others of the first batch are on their way
        while self._waiting:
            rows, self._waiting = self._waiting[: self.batch], self._waiting[self.batch :]
            try:
                await asyncio.to_thread(self._write_batch, rows, asyncio.get_running_loop())
            except RuntimeError as error:  # e.g. out of memory: these texts fail, the others are tried
                for row in rows:
                    if not row.future.done():
                        row.future.set_exception(CallError(f"the model failed: {str(error).splitlines()[0]}"))

    # --- in a thread -------------------------------------------------------------------------------------------------

    def _write_batch(self, rows: Sequence[_PendingText], loop: asyncio.AbstractEventLoop) -> None:
        """Write all texts of a batch; each is handed over when it is done."""
        writing = [row for row in rows if not row.future.done()]
        cache, mask = None, None
        while writing:
            if mask is None or mask.shape[1] >= self.context:
                cache, mask = self._prefill_cache(writing)
            else:
                cache, mask = self._decode_step(writing, cache, mask)
            done = [self._draw(row) for row in writing]
            if any(done):
                for row in (row for row in writing if row.finish):
                    loop.call_soon_threadsafe(_resolve_future, row.future, self._reply(row))
                numbers = [number for number, row in enumerate(writing) if not row.finish and not row.future.done()]
                writing = [writing[number] for number in numbers]
                if writing:
                    cache, mask = _select_rows(cache, mask, numbers)

    def _prefill_cache(self, rows: Sequence[_PendingText]) -> tuple[Any, Any]:
        """The model's memory after reading what the rows have so far, their last part where it outgrew the model."""
        import torch

        most = int(self.context * _KEPT_CONTEXT_SHARE)
        texts = [[*row.prompt, *row.sampler.tokens] for row in rows]
        texts = [text if len(text) < self.context else text[-most:] for text in texts]
        width = max(map(len, texts))
        ids = torch.tensor([[0] * (width - len(text)) + text for text in texts])
        mask = torch.tensor([[0] * (width - len(text)) + [1] * len(text) for text in texts])
        return self._run_model(rows, ids, mask, None)

    def _decode_step(self, rows: Sequence[_PendingText], cache: Any, mask: Any) -> tuple[Any, Any]:
        import torch

        ids = torch.tensor([[row.sampler.tokens[-1]] for row in rows])
        mask = torch.cat([mask, torch.ones((len(rows), 1), dtype=mask.dtype)], dim=1)
        return self._run_model(rows, ids, mask, cache)

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
        """Logits of the last token alone, where the model can leave out the others."""
        import inspect

        return {"logits_to_keep": 1} if "logits_to_keep" in inspect.signature(self._model.forward).parameters else {}

    def _draw(self, row: _PendingText) -> bool:
        """Draw a row's next token; whether the row is done."""
        token = row.sampler.draw(row.logits)
        self.tokens += 1
        drawn = len(row.sampler.tokens)
        if token in self._ends:
            row.finish = "stop"
        elif self._is_settled(row, drawn):
            row.finish = WORDS_FINISH
        elif drawn >= row.request.max_tokens:
            row.finish = "length"
        return bool(row.finish)

    def _is_settled(self, row: _PendingText, drawn: int) -> bool:
        if self.rule is None or drawn % _LENGTH_CHECK_INTERVAL or drawn < self.rule.least // 2:
            return False
        return self.rule.is_settled(self._decode_text(row))

    def _decode_text(self, row: _PendingText) -> str:
        tokens = [token for token in row.sampler.tokens if token not in self._ends]
        return str(self._tokenizer.decode(tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def _reply(self, row: _PendingText) -> ChatReply:
        return ChatReply(
            text=self._decode_text(row).replace("\0", "\N{REPLACEMENT CHARACTER}"),
            finish=row.finish,
            prompt_tokens=len(row.prompt),
            completion_tokens=len(row.sampler.tokens),
            model=Path(str(row.request.model)).name,
        )


def _resolve_future(future: asyncio.Future[ChatReply], reply: ChatReply) -> None:
    if not future.done():
        future.set_result(reply)


def _select_rows(cache: Any, mask: Any, numbers: Sequence[int]) -> tuple[Any, Any]:
    """Cache and mask of some of the rows."""
    import torch

    chosen = torch.tensor(list(numbers))
    cache.reorder_cache(chosen)
    return cache, mask[chosen]


def _load_model(model: str) -> tuple[Any, Any]:
    from finecomb.annotators.model_loading import load_pretrained

    place = str(model_file(model)) if is_local(model) else model
    try:
        tokenizer, network = load_pretrained("AutoModelForCausalLM", place, "generate")
    except (TypeError, KeyError, AttributeError) as error:  # what loaders raise for folders that hold no such model
        raise FinecombError(f"generate: the model {model} cannot be loaded ({error}); is it a causal model?") from None
    if not getattr(tokenizer, "vocab_size", 0) or len(tokenizer) < 2:
        raise FinecombError(
            f"generate: the model {model} has no tokenizer; put its tokenizer files into the same folder"
        )
    return tokenizer, network.eval()


def _context_size(model: Any) -> int:
    """Tokens that fit into a model by its own word."""
    names = ("max_position_embeddings", "n_positions", "n_ctx")
    return next((int(size) for name in names if (size := getattr(model.config, name, None))), _MAX_CONTEXT)


def _end_tokens(tokenizer: Any, model: Any, delimiter: str) -> frozenset[int]:
    """Tokens that end a text: those that the model names, and the delimiter of texts where it is one token."""
    named = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    ends = [tokenizer.eos_token_id, *(named if isinstance(named, list) else [named])]
    token = tokenizer.convert_tokens_to_ids(delimiter) if delimiter else None
    unknown = getattr(tokenizer, "unk_token_id", None)
    return frozenset(end for end in [*ends, token if token != unknown else None] if isinstance(end, int))
