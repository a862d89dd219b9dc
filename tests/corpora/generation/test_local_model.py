"""A tiny model with made-up weights stands for a real one: batches, penalty, context and ends are the same."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from finecomb.annotators.llm.chat import FINISH_CONTEXT_OVERFLOW, ChatMessage, ChatReply, ChatRequest
from finecomb.annotators.llm.local_models import local_model_install_hint
from finecomb.core.errors import FinecombError
from finecomb.core.records import Document, ModelSettings
from finecomb.core.tokens import word_offsets
from finecomb.corpora.generation import local_model
from finecomb.corpora.generation.decoding import Decoding
from finecomb.corpora.generation.generation import GenerationSettings, generate, plan_generation
from finecomb.corpora.generation.lengths import LengthRule
from finecomb.corpora.generation.local_model import TransformersEndpoint
from finecomb.corpora.generation.sampling import TokenSampler

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.long
CONTEXT = 64


class Letters:
    """A tokenizer with a token for each letter; 0 ends a text."""

    eos_token_id, unk_token_id, vocab_size = 0, None, 40
    letters = "\0abcdefghijklmnopqrstuvwxyz .ABCDEFGHIJKL"

    def __call__(self, text: str) -> dict[str, list[int]]:
        return {"input_ids": [max(1, self.letters.find(letter)) for letter in text]}

    def decode(self, tokens: Sequence[int], **options: Any) -> str:
        return "".join(self.letters[token] for token in tokens)

    def convert_tokens_to_ids(self, token: str) -> None:
        return None


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """A tiny model spends its time waiting for threads where there are several."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module", params=["llama", "gpt2"])
def network(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(1)
    if request.param == "llama":
        config = transformers.LlamaConfig(
            vocab_size=40,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=CONTEXT,
            initializer_range=0.5,
            eos_token_id=0,
        )
        return transformers.LlamaForCausalLM(config).eval()
    config = transformers.GPT2Config(
        vocab_size=40, n_embd=32, n_layer=2, n_head=4, n_positions=CONTEXT, initializer_range=0.5, eos_token_id=0
    )
    return transformers.GPT2LMHeadModel(config).eval()


@pytest.fixture
def endpoint(network: Any, monkeypatch: pytest.MonkeyPatch) -> TransformersEndpoint:
    monkeypatch.setattr(local_model, "_load_model", lambda model: (Letters(), network))
    return TransformersEndpoint("tiny", None, 4)


def asked(prompt: str, seed: int = 0, **fields: Any) -> ChatRequest:
    given = {"temperature": 1.0, "top_p": 0.96, "max_tokens": 12, **fields}
    return ChatRequest(
        model="tiny", messages=(ChatMessage(role="user", content=prompt),), seed=seed, continued=True, **given
    )


def replies(endpoint: TransformersEndpoint, requests: Sequence[ChatRequest]) -> list[ChatReply]:
    async def gathered() -> list[ChatReply]:
        answers = await asyncio.gather(*map(endpoint.complete, requests))
        await endpoint.close()
        return list(answers)

    return asyncio.run(gathered())


def slow_tokens(network: Any, request: ChatRequest) -> list[int]:
    """The same text written without batch and cache, the whole read anew for every token."""
    ids = Letters()(request.continuation_prompt)["input_ids"]
    decoding = Decoding(
        top_p=request.top_p or 1.0,
        temperature=request.temperature or 0.0,
        frequency_penalty=request.frequency_penalty or 0.0,
    )
    sampler = TokenSampler(decoding, np.random.default_rng(request.seed))
    while len(sampler.tokens) < request.max_tokens:
        with torch.inference_mode():
            logits = network(torch.tensor([[*ids, *sampler.tokens]])).logits[0, -1]
        if sampler.draw(logits.float().numpy()) == 0:
            break
    return sampler.tokens


def test_a_batch_writes_what_each_text_would_be_alone(endpoint: TransformersEndpoint, network: Any) -> None:
    requests = [
        asked("a ferry left", 1),
        asked("b", 2, temperature=0.7),
        asked("the council met on a day", 3, top_p=0.4),
        asked("abcabcabc", 4, frequency_penalty=1.0),
        asked("abcabcabc", 5, temperature=0.0, top_p=None, frequency_penalty=1.0),
        asked("xyz", 6, temperature=0.0, top_p=None, max_tokens=30),
    ]
    texts = [reply.text for reply in replies(endpoint, requests)]
    letters = Letters()
    assert texts == [
        letters.decode([token for token in slow_tokens(network, request) if token]) for request in requests
    ]
    assert endpoint.tokens >= sum(map(len, texts))
    assert endpoint.computing > 0


def test_a_prompt_that_does_not_fit_is_left_out_and_the_others_are_written(
    network: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(local_model, "_load_model", lambda model: (Letters(), network))
    rule = LengthRule(least=1, most=15)
    settings = GenerationSettings(
        model=ModelSettings(model="tiny", concurrency=2), runtime="transformers", decodings=(Decoding(),), rule=rule
    )
    prompts = [Document(id="long", text="a " * 40), Document(id="short", text="a ferry")]
    run = generate(plan_generation(settings, prompts), tmp_path)
    assert run.dropped["long/tiny/p0.96-t1-f0"] == "the prompt and the requested tokens exceed the model's context"
    assert "long" not in {text.meta["generation"]["prompt"] for text in run.documents}  # type: ignore[index,call-overload]
    assert run.unwritten == {}


def test_a_text_may_outgrow_the_model_when_it_is_written_to_its_end(endpoint: TransformersEndpoint) -> None:
    (reply,) = replies(endpoint, [asked("a ferry left", 3, max_tokens=CONTEXT * 3)])
    assert reply.finish in ("length", "stop")
    assert reply.completion_tokens == CONTEXT * 3 or reply.finish == "stop"
    (refusal,) = replies(endpoint, [asked("a" * (CONTEXT + 5))])
    assert refusal.finish == FINISH_CONTEXT_OVERFLOW


def test_a_model_without_a_tokenizer_is_refused_in_one_line(tmp_path: Path) -> None:
    config = transformers.LlamaConfig(
        vocab_size=40, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4
    )
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path / "bare")
    with pytest.raises(FinecombError) as error:
        TransformersEndpoint(str(tmp_path / "bare"), None, 1)
    assert "tokenizer" in str(error.value)
    assert "\n" not in str(error.value)
    with pytest.raises(FinecombError, match="cannot load the model"):
        TransformersEndpoint(str(tmp_path / "nothing"), None, 1)


@pytest.mark.skipif(bool(local_model_install_hint("local:smollm2")), reason="the local model is not installed")
def test_the_small_local_model_writes_texts_of_the_right_length(tmp_path: Path) -> None:
    pytest.importorskip("gguf")
    settings = GenerationSettings(
        model=ModelSettings(model="local:smollm2", concurrency=2),
        runtime="transformers",
        decodings=(Decoding(), Decoding(temperature=0.7, frequency_penalty=1)),
        rule=LengthRule(least=8, most=40),
    )
    run = generate(plan_generation(settings, [Document(id="p", text="The ferry left the harbour at noon.")]), tmp_path)
    assert len(run.documents) == 2
    assert all(8 <= len(word_offsets(text.text)) <= 40 for text in run.documents)
    assert (
        generate(
            plan_generation(settings, [Document(id="p", text="The ferry left the harbour at noon.")]), tmp_path
        ).calls
        == 0
    )
