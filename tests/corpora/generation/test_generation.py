from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from finecomb.annotators.llm.chat import ChatReply, ChatRequest
from finecomb.annotators.llm.endpoint import CallError
from finecomb.annotators.llm.runner import read_stored_run
from finecomb.core.errors import FinecombError
from finecomb.core.records import Document, ModelSettings
from finecomb.corpora.generation.decoding import Decoding, decoding_grid
from finecomb.corpora.generation.generation import (
    GenerationPlan,
    GenerationSettings,
    GenerationTask,
    attempt_seed,
    cut_reply,
    generate,
    generation_note,
    plan_generation,
)
from finecomb.corpora.generation.lengths import LengthRule
from finecomb.corpora.generation.priming import Priming
from tests.annotators.llm.scripted_server import ScriptedAnswer, ScriptedServer

RULE = LengthRule(least=6, most=12)
GOOD = " It sailed far to the north. Then it"
PROMPTS = [
    Document(id=f"p{number}", text="A human text.", context={"prompt": f"Ferry {number} left."}, meta={"topic": "sea"})
    for number in range(3)
]


class Writer:
    """Answers as a function of the request says, and remembers what it was asked."""

    host = "local"

    def __init__(self, answer: Callable[[ChatRequest], ChatReply]) -> None:
        self.answer, self.requests = answer, []  # type: Callable[[ChatRequest], ChatReply], list[ChatRequest]

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        return self.answer(request)

    async def close(self) -> None:
        pass


def planned(
    prompts: list[Document] = PROMPTS,
    priming: Priming | None = None,
    url: str = "http://127.0.0.1:9/v1",
    **more: object,
) -> GenerationPlan:
    model = ModelSettings.model_validate({"model": "m", "base_url": url, "attempts": 1, **more.pop("model", {})})  # type: ignore[dict-item]
    fields = {"runtime": "http", "decodings": (Decoding(),), "rule": RULE, "tries": 4, **more}
    return plan_generation(GenerationSettings.model_validate({"model": model, **fields}), prompts, priming)


def good(request: ChatRequest) -> ChatReply:
    return ChatReply(text=GOOD, finish="length", prompt_tokens=10, completion_tokens=9)


def test_every_prompt_gets_a_text_for_each_setting_with_all_it_was_written_with() -> None:
    grid = tuple(decoding_grid([0.4, 0.7, 0.9, 0.96], [0, 0.4, 0.7, 1], [0, 1]))
    writer = Writer(good)
    run = generate(planned(decodings=grid, model={"seed": 5}), endpoint=writer)
    assert len(run.documents) == 3 * 14
    text = run.documents[0]
    assert (text.text, text.context, text.references) == (
        "It sailed far to the north.",
        {"prompt": "Ferry 0 left."},
        ("A human text.",),
    )
    assert {key: text.meta[key] for key in ("model", "topic", "top_p", "temperature", "frequency_penalty")} == {
        "model": "m",
        "topic": "sea",
        "top_p": 0.4,
        "temperature": 1.0,
        "frequency_penalty": 0.0,
    }
    note = generation_note(text)
    assert (note.prompt, note.run_seed, note.rule, note.words, note.attempt) == ("p0", 5, "6-12", 7, 1)
    sent = {request.seed: request for request in writer.requests}
    assert len(sent) == 42  # every text has a seed of its own
    assert sent[note.seed].top_p == 0.4
    assert sent[note.seed].continuation_prompt == "Ferry 0 left."
    argmax = [request for request in writer.requests if request.temperature == 0]
    assert all("top_p" not in request.request_body() for request in argmax)


def test_texts_of_the_wrong_length_are_sampled_again_with_another_seed() -> None:
    def answer(request: ChatRequest) -> ChatReply:
        if request.retry < 2:
            return ChatReply(
                text=["Too short.", "on and on " * 20][request.retry], finish=["stop", "length"][request.retry]
            )
        return good(request)

    writer = Writer(answer)
    run = generate(planned(), endpoint=writer)
    assert [generation_note(text).attempt for text in run.documents] == [3, 3, 3]
    assert run.rejected == {"fewer than 6 words": 3, "no sentence ends within 6-12 words": 3}
    assert len({request.seed for request in writer.requests}) == 9


def test_a_text_is_given_up_in_the_end_and_argmax_at_once() -> None:
    writer = Writer(lambda request: ChatReply(text="Short.", finish="stop"))
    run = generate(planned([PROMPTS[0]], decodings=(Decoding(), Decoding(temperature=0))), endpoint=writer)
    assert Counter(request.temperature for request in writer.requests) == {1.0: 4, 0.0: 1}
    assert run.documents == ()
    assert run.dropped == {
        "p0/m/p0.96-t1-f0": "fewer than 6 words",
        "p0/m/argmax-f0": "fewer than 6 words; greedy decoding would give the same text again",
    }


def test_copies_of_priming_texts_are_sampled_again() -> None:
    shot = Document(id="s", text="It sailed far to the north.", context={"prompt": "Ferry 9 left."})
    run = generate(
        planned([PROMPTS[0]], Priming((shot,))),
        endpoint=Writer(
            lambda request: (
                good(request)
                if request.retry == 0
                else ChatReply(text="All the passengers were asleep. Nobody", finish="length")
            )
        ),
    )
    # a copy is a text whose words mostly stand in a priming text
    assert [text.text for text in run.documents] == ["All the passengers were asleep."]
    assert run.rejected == {"copies a priming text": 1}
    assert generation_note(run.documents[0]).priming == ("s",)


def test_priming_comes_before_the_prompt_and_the_delimiter_ends_a_text() -> None:
    shot = Document(id="s", text="Rain fell.", context={"prompt": "Clouds came."})
    writer = Writer(lambda request: ChatReply(text=" It left at six or seven.<E> Another", finish="length"))
    run = generate(planned([PROMPTS[0]], Priming((shot,), "<E>")), endpoint=writer)
    assert writer.requests[0].continuation_prompt == "Clouds came. Rain fell.\n<E>\nFerry 0 left."
    assert run.documents[0].text == "It left at six or seven."


def test_a_conversation_shows_priming_texts_as_turns() -> None:
    shots = (Document(id="s", text="Rain fell. It rained on."),)
    writer = Writer(good)
    generate(planned([PROMPTS[0]], Priming(shots), interface="chat"), endpoint=writer)
    messages = [(message.role, message.content) for message in writer.requests[0].messages[1:]]
    assert messages == [("user", "Rain fell."), ("assistant", "It rained on."), ("user", "Ferry 0 left.")]
    assert "messages" in writer.requests[0].request_body()


def test_samples_differ_and_argmax_has_one() -> None:
    run = generate(
        planned([PROMPTS[0]], decodings=(Decoding(), Decoding(temperature=0)), model={"samples": 3}),
        endpoint=Writer(good),
    )
    assert [text.id for text in run.documents] == [
        "p0/m/p0.96-t1-f0/1",
        "p0/m/p0.96-t1-f0/2",
        "p0/m/p0.96-t1-f0/3",
        "p0/m/argmax-f0/1",
    ]


def test_seeds_depend_on_the_text_and_on_nothing_else() -> None:
    first, second = planned().tasks()[0], planned(PROMPTS[:1]).tasks()[0]
    assert attempt_seed(0, first, 0) == attempt_seed(0, second, 0)
    assert len({attempt_seed(seed, first, attempt) for seed in range(3) for attempt in range(3)}) == 9


def test_to_the_end_means_the_whole_text_or_none() -> None:
    whole = ChatReply(text="<|section|> A\nOne.\n<|section|> B\nTwo.", finish="stop")
    (document,) = generate(
        planned([PROMPTS[0]], rule=None, sections=True), endpoint=Writer(lambda request: whole)
    ).documents
    assert [(part.title, document.text[part.start : part.end]) for part in document.segments] == [
        ("A", "One."),
        ("B", "Two."),
    ]
    assert (
        cut_reply(ChatReply(text="On and on", finish="length"), None, Priming()).why
        == "did not end within the maximum number of tokens"
    )
    assert (
        cut_reply(ChatReply(text="No.", refusal="no"), RULE, Priming()).why
        == "refused by the model or its content filter"
    )


def test_a_second_run_asks_nothing_and_another_grid_only_what_is_new(tmp_path: Path) -> None:
    first = generate(planned(), tmp_path, Writer(good))
    idle = Writer(good)
    again = generate(planned(), tmp_path, idle)
    assert (idle.requests, again.calls, again.cached) == ([], 0, 3)
    assert again.documents == first.documents
    wider = Writer(good)
    more = generate(planned(decodings=(Decoding(), Decoding(top_p=0.4))), tmp_path, wider)
    assert (len(wider.requests), more.cached, len(more.documents)) == (3, 3, 6)


def test_a_failing_endpoint_leaves_the_others_and_says_why(tmp_path: Path) -> None:
    def answer(request: ChatRequest) -> ChatReply:
        if "Ferry 1" in request.continuation_prompt:
            raise CallError("it is broken")
        return good(request)

    run = generate(planned(), tmp_path, Writer(answer))
    assert len(run.documents) == 2
    assert run.unwritten == {"p1/m/p0.96-t1-f0": "it is broken"}
    assert len(generate(planned(), tmp_path, Writer(good)).documents) == 3


def test_a_budget_is_never_passed_and_the_rest_comes_later(tmp_path: Path) -> None:
    limits = {"price": (1, 1), "budget": 0.00008, "concurrency": 1}
    run = generate(planned(model=limits), tmp_path, Writer(good))
    assert run.stopped == "stopped because the budget was reached"
    assert 0 < len(run.documents) < 3
    assert run.cost <= 0.00008
    assert set(run.unwritten.values()) == {"stopped because the budget was reached"}
    assert read_stored_run(GenerationTask(planned(model=limits)), tmp_path).documents == run.documents
    richer = generate(planned(model=limits | {"budget": 1.0}), tmp_path, Writer(good))
    assert len(richer.documents) == 3
    with pytest.raises(FinecombError, match="budget requires price=IN,OUT"):
        planned(model={"budget": 1.0})


def test_an_endpoint_is_sent_the_settings_and_completions_are_read() -> None:
    answer = {"choices": [{"text": GOOD, "finish_reason": "length"}], "model": "m-2"}
    with ScriptedServer(lambda body, number: ScriptedAnswer(raw=json.dumps(answer).encode())) as server:
        run = generate(planned(url=server.url, decodings=(Decoding(top_p=0.4, frequency_penalty=1),)))
    assert len(run.documents) == 3
    body = server.requests[0]
    assert (body["top_p"], body["temperature"], body["frequency_penalty"]) == (0.4, 1.0, 1.0)
    assert body["prompt"].startswith("Ferry")
    assert body["max_tokens"] == RULE.token_budget()


def test_requests_of_annotators_keep_their_hashes() -> None:
    # the hash of a request as it was before texts were generated, so that no cache is lost
    request = ChatRequest(model="m", messages=(), temperature=0.0, seed=1)
    assert request.hash_at_endpoint("host") == "73d0290caad5d0b4bf4b31e0c631189e"
    assert request.model_copy(update={"top_p": 0.5}).hash_at_endpoint("host") != request.hash_at_endpoint("host")
    assert request.model_copy(update={"continued": True}).hash_at_endpoint("host") != request.hash_at_endpoint("host")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"runtime": "gguf", "decodings": (Decoding(frequency_penalty=1),)}, "also counts the words of the prompt"),
        ({"runtime": "transformers", "interface": "chat"}, "cannot be used with"),
        ({"runtime": "gguf"}, "is not a GGUF file"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_asked(more: dict[str, Any], message: str) -> None:
    with pytest.raises(FinecombError, match=message):
        planned(**more)


def test_no_prompts_are_refused() -> None:
    with pytest.raises(FinecombError, match="no prompts"):
        planned([Document(id="e", text=" ")])


@pytest.mark.long
def test_the_studys_1308_texts_over_14_settings_can_be_stopped_and_resumed(tmp_path: Path) -> None:
    grid = tuple(decoding_grid([0.4, 0.7, 0.9, 0.96], [0, 0.4, 0.7, 1], [0, 1]))
    prompts = [Document(id=f"p{number}", text=f"Ferry {number} left.") for number in range(94)]
    limits = {"price": (1, 1), "budget": 0.02, "concurrency": 32}
    writer = Writer(lambda request: good(request) if (request.seed or 0) % 5 else ChatReply(text="No.", finish="stop"))
    most = stops = 0
    while (run := generate(planned(prompts, decodings=grid, tries=9, model=limits), tmp_path, writer)).unwritten != {}:
        assert run.stopped == "stopped because the budget was reached"
        assert len(run.documents) > most  # it comes nearer every time
        most, stops = len(run.documents), stops + 1
        limits["budget"] = limits["budget"] + 0.02  # type: ignore[operator]
    assert stops >= 2
    assert len(run.documents) + len(run.dropped) == 94 * 14 >= 1308
    assert len({request.hash_at_endpoint("") for request in writer.requests}) == len(
        writer.requests
    )  # nothing was asked twice


PROGRAM = """
import sys
from pathlib import Path
from finecomb.core.records import Document, ModelSettings
from finecomb.corpora.generation.decoding import decoding_grid
from finecomb.corpora.generation.generation import GenerationSettings, generate, plan_generation
from finecomb.corpora.generation.lengths import LengthRule
prompts = [Document(id=f"p{number}", text=f"Ferry {number} left.") for number in range(12)]
model = ModelSettings(model="m", base_url=sys.argv[1], concurrency=2)
grid = decoding_grid([0.4, 0.96], [0, 1], [0])
settings = GenerationSettings(model=model, runtime="http", decodings=grid, rule=LengthRule(least=6, most=12), tries=9)
run = generate(plan_generation(settings, prompts), Path(sys.argv[2]))
print(*(document.model_dump_json() for document in run.documents), sep="\\n")
"""


def killed(program: list[str], enough: Callable[[], bool]) -> None:
    process = subprocess.Popen(program, stdout=subprocess.DEVNULL, env=os.environ)
    try:
        until = time.monotonic() + 60
        while not enough() and time.monotonic() < until:
            time.sleep(0.005)
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.wait()


@pytest.mark.long
def test_a_killed_run_goes_on_with_nothing_lost_or_doubled(tmp_path: Path) -> None:
    def script(body: dict[str, object], number: int) -> ScriptedAnswer:
        again = int(str(body["seed"])) % 3 == 0 and body["temperature"] != 0  # some texts are sampled again
        return ScriptedAnswer(
            "Short." if again else f" It sailed far with {body['seed']} sheep. Then", wait=0.02, finish="length"
        )

    with ScriptedServer(script) as server:
        program = [sys.executable, "-c", PROGRAM, server.url, str(tmp_path / "runs")]
        killed(program, lambda: len(server.requests) >= 10)
        killed(program, lambda: len(server.requests) >= 25)
        lines = subprocess.run(program, capture_output=True, text=True, check=True).stdout.splitlines()
        interrupted = Counter(json.dumps(body, sort_keys=True) for body in server.requests)
        whole = [sys.executable, "-c", PROGRAM, server.url, str(tmp_path / "other")]
        assert subprocess.run(whole, capture_output=True, text=True, check=True).stdout.splitlines() == lines
    assert len(lines) == len({json.loads(line)["id"] for line in lines}) == 36
    doubled = sum(count - 1 for count in interrupted.values())
    assert doubled <= 4  # only calls that were under way when it was killed: two at a time, twice
