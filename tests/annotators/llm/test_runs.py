from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from finecomb.annotators.llm import annotate
from finecomb.annotators.llm.chat import ChatReply
from finecomb.annotators.llm.journal import CallEntry, JournalContent, ReplyEntry, read_entries
from finecomb.annotators.llm.prompt import PromptTemplate
from finecomb.annotators.llm.reply_parser import build_reply_content
from finecomb.annotators.llm.run_folder import (
    RunBusyError,
    TextRetry,
    lock_run_folder,
    read_run_status,
    write_run_status,
)
from finecomb.annotators.llm.run_reports import run_notes
from finecomb.annotators.llm.runs import ModelRun, execute_plan, judge_marks_with_model, plan_run
from finecomb.core.errors import FinecombError
from finecomb.core.model_notes import read_reply_note
from finecomb.core.records import Annotation, Annotator, Document, Mark, ModelSettings, Segment
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check_study
from finecomb.protocols import load
from tests.annotators.llm.scripted_server import Script, ScriptedAnswer, ScriptedServer, extract_text

SCARECROW = load("scarecrow")
TEXTS = [f"The ferry left at {number}:45. The captain said the the word again." for number in range(1, 4)]
AT = (41, 48)
MARK = {
    "quote": "the the",
    "before": "captain said",
    "after": "word again.",
    "label": "grammar-usage",
    "severity": 1,
    "explanation": "Doubled.",
}


def study_of(texts: list[str] = TEXTS, *more: StudyItem, protocol: str = "scarecrow") -> Study:
    documents = [Document(id=f"d{number}", text=text) for number, text in enumerate(texts)]
    return Study.from_items([load(protocol), *documents, *more])


def marked(*marks: dict[str, Any]) -> str:
    return json.dumps({"marks": list(marks)})


def run(
    script: Script, study: Study | None = None, runs: Path | None = None, **settings: Any
) -> tuple[ModelRun, ScriptedServer]:
    with ScriptedServer(script) as server:
        given = ModelSettings(**{"model": "m", "base_url": server.url, "timeout": 5, "attempts": 3, **settings})
        return annotate(study or study_of(), given, runs=runs), server


def one(answer: ScriptedAnswer, **settings: Any) -> Annotation:
    return run(lambda body, number: answer, study_of(TEXTS[:1]), **settings)[0].annotations[0]


def test_a_model_becomes_an_annotator_whose_marks_are_like_anybodys() -> None:
    result, _ = run(lambda body, number: ScriptedAnswer(marked(MARK)), temperature=0.5)
    assert [annotation.document for annotation in result.annotations] == ["d0", "d1", "d2"]
    mark = result.annotations[0].marks[0]
    assert mark.spans == (Span(*AT),)
    assert TEXTS[0][slice(*AT)] == "the the"
    assert (mark.label, mark.answers) == ("grammar-usage", {"severity": 1, "explanation": "Doubled."})
    (annotator,) = result.annotators
    assert (annotator.id, annotator.kind, annotator.meta["model"]) == ("m", "llm", "m")
    assert str(annotator.meta["endpoint"]).startswith("127.0.0.1:")
    assert {"prompt", "date", "settings"} <= annotator.meta.keys()
    assert list(check_study(Study.from_items([*study_of().items(), annotator, *result.annotations]))) == []
    assert result.states == {"marked": 3}


@pytest.mark.parametrize(
    ("answer", "state", "reason"),
    [
        (ScriptedAnswer(""), "empty", "the reply is empty"),
        (ScriptedAnswer("I'm sorry, but I can't help with that."), "refused", "the model declined in prose"),
        (ScriptedAnswer("", refusal="No."), "refused", "No."),
        (ScriptedAnswer("{}", finish="content_filter"), "refused", "content filter"),
        (
            ScriptedAnswer('{"marks": [{"quote": "the', finish="length"),
            "truncated",
            "reached the maximum number of tokens",
        ),
        (ScriptedAnswer('{"marks": [{"quote": "the'), "truncated", "the JSON is incomplete"),
        (ScriptedAnswer("There are no errors here."), "unreadable", "no JSON found"),
        (ScriptedAnswer('{"errors": []}'), "unreadable", "`marks` is missing or not a list"),
        (ScriptedAnswer('{"marks": null}'), "unreadable", "`marks` is missing or not a list"),
    ],
)
def test_a_reply_that_cannot_be_read_is_never_no_errors(answer: ScriptedAnswer, state: str, reason: str) -> None:
    annotation = one(answer)
    assert annotation.status == "excluded"
    assert annotation.excluded
    assert annotation.excluded.reason.startswith(f"reply {state}")
    assert reason in annotation.excluded.reason
    assert read_reply_note(annotation).state == state
    assert read_reply_note(annotation).reply == answer.text


def test_no_errors_is_a_reading() -> None:
    annotation = one(ScriptedAnswer('{"marks": []}'))
    assert (annotation.status, read_reply_note(annotation).state) == ("submitted", "no errors")


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        (f"Here you are:\n```json\n{marked(MARK)}\n```", "the JSON was surrounded by other text"),
        (f"Sure! {marked(MARK)} Anything else?", "the JSON was surrounded by other text"),
        (marked(MARK).replace('"label"', "label").replace("}]}", "},]}"), "the JSON was repaired"),
        (f"<think>I think {{so}}</think>{marked(MARK)}", None),
        (json.dumps([MARK]), None),
    ],
)
def test_sloppy_json_is_read_and_flagged(text: str, flag: str | None) -> None:
    annotation = one(ScriptedAnswer(text))
    assert len(annotation.marks) == 1
    assert read_reply_note(annotation).flags == ((flag,) if flag else ())


def test_wrong_offsets_invented_labels_and_impossible_answers_lose_nothing() -> None:
    strange = {**MARK, "start": 900, "end": 3, "label": "made-up", "severity": 99}
    annotation = one(ScriptedAnswer(marked(strange, {**MARK, "quote": "is not there"}, "no mark")))  # type: ignore[arg-type]
    first, second = annotation.marks
    assert (first.label, first.spans, first.answers) == (None, (Span(*AT),), {"explanation": "Doubled."})
    note: Any = first.meta["llm"]
    assert note["label"] == "made-up"
    assert (second.spans, second.quotes, second.unlocated) == ((), ("is not there",), "is not in the text")
    assert read_reply_note(annotation).malformed == 1


def test_a_changed_number_is_kept_without_a_place() -> None:
    mark = one(
        ScriptedAnswer(marked({**MARK, "quote": "The ferry left at 2:45", "before": "", "after": "The captain"}))
    ).marks[0]
    assert mark.spans == ()
    assert "a different number" in mark.unlocated


# --- endpoints that misbehave ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "first",
    [
        ScriptedAnswer("slow down", 429, headers={"Retry-After": "0"}),
        ScriptedAnswer("oops", 500),
        ScriptedAnswer(cut=True),
        ScriptedAnswer(wait=1.5),
        ScriptedAnswer(drip=0.05),
    ],
    ids=["429", "500", "cut", "time-out", "slow drip"],
)
def test_a_call_that_failed_is_tried_again(first: ScriptedAnswer) -> None:
    result, server = run(
        lambda body, number: ScriptedAnswer(marked(MARK)) if number else first, study_of(TEXTS[:1]), timeout=1
    )
    assert result.states == {"marked": 1}
    assert len(server.requests) == 2


def test_the_endpoint_says_how_long_to_wait() -> None:
    busy = ScriptedAnswer("busy", 429, headers={"Retry-After": "1.2"})
    started = time.monotonic()
    run(lambda body, number: ScriptedAnswer() if number else busy, study_of(TEXTS[:1]))
    assert time.monotonic() - started >= 1.2


def test_a_reply_of_ten_megabytes_is_unreadable_and_not_bought_again(tmp_path: Path) -> None:
    for _ in range(2):
        result, server = run(lambda body, number: ScriptedAnswer("x" * 10_000_000), study_of(TEXTS[:1]), tmp_path)
        assert result.states == {"unreadable": 1}
        excluded = result.annotations[0].excluded
        assert excluded
        assert "larger than 4,000,000 bytes" in excluded.reason
        assert len(server.requests) == 1  # the servers differ in port, so nothing is cached between them


def test_an_endpoint_without_schemas_is_asked_without() -> None:
    def script(body: dict[str, Any], number: int) -> ScriptedAnswer:
        return (
            ScriptedAnswer("unknown field response_format", 400)
            if "response_format" in body
            else ScriptedAnswer(marked(MARK))
        )

    result, server = run(script, concurrency=1)
    assert result.states == {"marked": 3}
    assert ["response_format" in body for body in server.requests] == [True, True, False, False, False]


def test_a_dead_endpoint_ends_the_run_and_says_why() -> None:
    texts = [f"Text {number}." for number in range(30)]
    result, server = run(lambda body, number: ScriptedAnswer("no", 500), study_of(texts), attempts=1, concurrency=1)
    assert result.stopped.startswith("stopped after 8 consecutive calls without a reply")
    assert len(server.requests) == 8
    assert len(result.unasked) == 30


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            ScriptedAnswer("bad key", 401),
            "returned 401: bad key; name the environment variable with the key in key_env",
        ),
        (ScriptedAnswer("no such model", 404), "the endpoint has no model 'm'"),
    ],
)
def test_what_will_never_work_is_one_line(answer: ScriptedAnswer, message: str) -> None:
    with pytest.raises(FinecombError, match=message):
        run(lambda body, number: answer)


def test_a_wrong_path_is_not_blamed_on_a_model_that_the_endpoint_has() -> None:
    with pytest.raises(FinecombError, match="404: no such path; check the model's name, and that base_url is"):
        run(lambda body, number: ScriptedAnswer("no such path", 404), model="model-a")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"base_url": "localhost"}, "is not an HTTP address"),
        ({"base_url": ""}, "base_url=URL is required for model 'm'"),
        ({"base_url": "http://me:sk-1@x/v1"}, "set the key in an environment variable"),
        ({"base_url": "http://x/v1?key=sk-1"}, "set the key in an environment variable"),
        ({"base_url": "http://x/v1", "budget": 1.0}, "budget requires price=IN,OUT"),
        ({"base_url": "http://x/v1", "key_env": "FINECOMB_NO_SUCH"}, "FINECOMB_NO_SUCH is not set"),
        ({"base_url": "http://x/v1", "context_tokens": 100}, "but the model's context has 100; use by_segment"),
        ({"base_url": "http://x/v1", "shots": 1}, "requires at least 2 gold annotations with protocol"),
        ({"model": "local:smolm2"}, "did you mean 'smollm2'"),
        ({"model": "nothing.gguf"}, "file not found"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_sent(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(FinecombError, match=message):
        annotate(study_of(), ModelSettings(**{"model": "m", **settings}))


def test_a_password_in_an_address_is_not_repeated() -> None:
    with pytest.raises(FinecombError) as caught:
        annotate(study_of(), ModelSettings(model="m", base_url="http://me:sk-verysecret@x/v1"))
    assert "verysecret" not in str(caught.value)


def test_a_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with ScriptedServer(lambda body, number: ScriptedAnswer(marked(MARK))) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        settings = ModelSettings(model="m", base_url="http://models.example/v1", attempts=1)
        assert annotate(study_of(TEXTS[:1]), settings).states == {"marked": 1}
        assert len(proxy.requests) == 1


def test_a_compressed_reply_is_read() -> None:
    body = gzip.compress(ScriptedAnswer(marked(MARK)).response_body())
    packed = ScriptedAnswer(raw=body, headers={"Content-Encoding": "gzip"})
    assert run(lambda body, number: packed, study_of(TEXTS[:1]))[0].states == {"marked": 1}


def test_an_address_where_nobody_listens_is_told() -> None:
    settings = ModelSettings(model="m", base_url="http://127.0.0.1:9/v1", attempts=1)
    assert "cannot reach" in annotate(study_of(), settings).unasked["d0"]


def test_the_key_is_sent_and_kept_nowhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    monkeypatch.setenv("FINECOMB_TEST_KEY", "sk-verysecret")
    answers = [
        ScriptedAnswer("echo Bearer sk-verysecret", 500),
        ScriptedAnswer("echo sk-verysecret", 418),
        ScriptedAnswer(),
    ]
    result, server = run(
        lambda body, number: answers[min(number, 2)], runs=tmp_path, key_env="FINECOMB_TEST_KEY", concurrency=1
    )
    assert set(server.keys) == {"Bearer sk-verysecret"}
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert b"[key]" in written
    assert b"verysecret" not in written
    assert "verysecret" not in caplog.text + repr(result)


# --- runs --------------------------------------------------------------------------------------------------------


def test_a_second_run_is_free_and_the_same(tmp_path: Path) -> None:
    with ScriptedServer(lambda body, number: ScriptedAnswer(marked(MARK))) as server:
        settings = ModelSettings(model="m", base_url=server.url, price=(1, 2))
        first = annotate(study_of(), settings, runs=tmp_path)
        second = annotate(study_of(), settings, runs=tmp_path)
        assert len(server.requests) == 3
    assert [each.to_json() for each in first.annotations] == [each.to_json() for each in second.annotations]
    assert first.annotators == second.annotators
    assert (second.calls, second.cached, second.cost) == (0, 3, first.cost)


def test_another_run_takes_over_equal_replies(tmp_path: Path) -> None:
    with ScriptedServer(lambda body, number: ScriptedAnswer(marked(MARK))) as server:
        settings = ModelSettings(model="m", base_url=server.url, price=(1, 2))
        annotate(study_of(), settings, runs=tmp_path)
        other = annotate(study_of(), settings, runs=tmp_path, name="again")
        assert len(server.requests) == 3
    assert (other.cost, other.cached, other.annotators[0].id) == (0, 3, "again")


def test_what_was_answered_twice_counts_once(tmp_path: Path) -> None:
    with ScriptedServer(lambda body, number: ScriptedAnswer(marked(MARK))) as server:
        settings = ModelSettings(model="m", base_url=server.url)
        first = annotate(study_of(), settings, runs=tmp_path)
        (journal,) = tmp_path.glob("*/journal.jsonl")
        journal.write_bytes(journal.read_bytes() * 2 + b'{"kind": "reply", "ha')
        second = annotate(study_of(), settings, runs=tmp_path)
    assert second.annotations == first.annotations


def test_every_request_and_reply_is_in_the_journal(tmp_path: Path) -> None:
    run(lambda body, number: ScriptedAnswer(marked(MARK)), runs=tmp_path)
    (journal,) = tmp_path.glob("*/journal.jsonl")
    entries = list(read_entries(journal))
    calls = [entry for entry in entries if isinstance(entry, CallEntry)]
    assert [entry.kind for entry in entries].count("head") == 1
    assert all(text in "".join(call.message for call in calls) for text in TEXTS)
    assert {entry.hash for entry in entries if isinstance(entry, ReplyEntry)} == {call.hash for call in calls}


def test_the_budget_is_a_hard_stop(tmp_path: Path) -> None:
    study = study_of([f"Text number {number}." for number in range(20)])
    used = ScriptedAnswer(usage=(4000, 500))
    result, server = run(lambda body, number: used, study, runs=tmp_path, price=(1, 1), budget=0.05, max_tokens=500)
    assert result.stopped == "stopped because the budget was reached"
    assert 0 < len(server.requests) < 20
    assert result.cost == pytest.approx(0.0045 * len(server.requests))
    assert result.cost <= 0.05
    assert len(result.annotations) == len(server.requests)
    hint = "stopped because the budget was reached; raise the budget and run the same command again to resume"
    assert list(run_notes(result))[-1] == hint


def test_calls_that_may_have_been_paid_count_against_the_budget() -> None:
    result, server = run(
        lambda body, number: ScriptedAnswer(cut=True), price=(1, 1), budget=0.05, max_tokens=10, attempts=9
    )
    assert result.stopped == "stopped because the budget was reached"
    assert result.cost > 0
    assert len(server.requests) < 9
    assert list(run_notes(result))[-1].endswith("no replies were stored, so the next run starts from the beginning")


def test_samples_are_annotators_of_their_own() -> None:
    result, server = run(lambda body, number: ScriptedAnswer(marked(MARK)), samples=2)
    assert [annotator.id for annotator in result.annotators] == ["m#1", "m#2"]
    assert len(result.annotations) == len(server.requests) == 6
    assert {body["seed"] for body in server.requests} == {0, 1}
    assert list(check_study(Study.from_items([*study_of().items(), *result.annotators, *result.annotations]))) == []


def test_parts_are_asked_one_by_one_and_marks_stay_in_their_part() -> None:
    text = "Ann ran. Ann ran. Ann ran."
    document = Document(
        id="d", text=text, segments=(Segment(start=0, end=8), Segment(start=9, end=17), Segment(start=18, end=26))
    )
    snac = load("snac")

    def script(body: dict[str, Any], number: int) -> ScriptedAnswer:
        assert extract_text(body) == "Ann ran."
        return ScriptedAnswer(marked({"quote": "Ann", "before": "", "after": "ran.", "label": "char"}))

    result, server = run(script, Study.from_items([snac, document]))
    (annotation,) = result.annotations
    assert [mark.spans[0].start for mark in annotation.marks] == [0, 9, 18]
    assert [(unit.start, unit.end) for unit in annotation.units] == [(0, 8), (9, 17), (18, 26)]
    assert sum("EARLIER PART" in body["messages"][-1]["content"] for body in server.requests) == 2


def test_one_unreadable_part_excludes_the_annotation() -> None:
    study = study_of(["Ann ran. Bob sat. Cy hid. Di left. Ed sang. Flo won."], protocol="snac")
    result, _ = run(lambda body, number: ScriptedAnswer("" if number else '{"marks": []}'), study, concurrency=1)
    assert result.annotations[0].excluded
    assert "(part 2 of 2)" in result.annotations[0].excluded.reason


@pytest.mark.parametrize(
    ("protocol", "answers"),
    [
        ("likert", {"coherence": "4"}),
        ("turing", {"rating": 1, "why": "It has a voice."}),
    ],
)
def test_ratings_are_answers_of_the_document(protocol: str, answers: dict[str, Any]) -> None:
    result, _ = run(
        lambda body, number: ScriptedAnswer(json.dumps({"answers": answers})), study_of(TEXTS[:1], protocol=protocol)
    )
    expected = {name: int(value) if str(value).isdigit() else value for name, value in answers.items()}
    assert result.annotations[0].answers == expected
    assert result.states == {"answered": 1}


def test_a_missing_object_is_named_as_the_protocol_needs_it() -> None:
    likert = load("likert")
    by_part = likert.model_copy(update={"document_questions": (), "unit_questions": likert.document_questions})
    reply = ChatReply(text='{"ratings": {}}')
    for protocol, name in ((likert, "answers"), (by_part, "unit")):
        content = build_reply_content(reply, Document(id="d", text="A text."), protocol, "m")
        assert (content.state, content.why) == ("unreadable", f"`{name}` is missing or not an object")


def test_a_rating_that_is_missing_or_impossible_is_unreadable() -> None:
    result, _ = run(
        lambda body, number: ScriptedAnswer('{"answers": {"coherence": 9}}'), study_of(TEXTS[:1], protocol="likert")
    )
    assert result.annotations[0].excluded
    assert "no valid answer to coherence" in result.annotations[0].excluded.reason


def test_pairs_are_shown_in_both_orders_and_the_answer_is_turned_back() -> None:
    pairs = [Document(id=f"p{number}", text="", context={"a": "Text one.", "b": "Text two."}) for number in range(12)]
    study = Study.from_items([load("preference"), *pairs])
    result, server = run(lambda body, number: ScriptedAnswer('{"answers": {"prefer": "a"}}'), study)
    first_shown = {each.document: each.meta["shown_first"] for each in result.annotations}
    assert set(first_shown.values()) == {"a", "b"}
    assert {each.document: each.answers["prefer"] for each in result.annotations} == first_shown
    orders = [
        body["messages"][-1]["content"].find("one.") < body["messages"][-1]["content"].find("two.")
        for body in server.requests
    ]
    assert set(orders) == {True, False}


def test_sections_are_answered_part_by_part_and_the_whole_with_the_last() -> None:
    text = "We asked why. We found this."
    document = Document(id="d", text=text, segments=(Segment(start=0, end=13), Segment(start=14, end=28)))
    sections = load("sections")
    unit, whole = sections.unit_questions[0], sections.document_questions[0]

    def script(body: dict[str, Any], number: int) -> ScriptedAnswer:
        last = "We found" in extract_text(body)
        reply: dict[str, Any] = {"unit": {unit.name: unit.values[int(last)]}}
        return ScriptedAnswer(json.dumps(reply | ({"answers": {whole.name: True}} if last else {})))

    result, server = run(script, Study.from_items([sections, document]))
    (annotation,) = result.annotations
    assert [part.answers[unit.name] for part in annotation.units] == list(unit.values[:2])
    assert annotation.answers == {whole.name: True}
    assert result.states == {"answered": 1}
    asked = [set(body["response_format"]["json_schema"]["schema"]["required"]) for body in server.requests]
    assert sorted(asked, key=len) == [{"unit"}, {"unit", "answers"}]


def test_explanations_of_others_are_coded() -> None:
    turing, comments = load("turing"), load("comments")
    person = Annotator(id="ann", kind="human")
    words = {"rating": 1, "why": "Full of spelling mistakes."}
    judged = Annotation(id="d0/ann", document="d0", annotator="ann", protocol=turing.id, answers=words)
    study = Study.from_items([turing, comments, Document(id="d0", text=TEXTS[0]), person, judged])
    with ScriptedServer(lambda body, number: ScriptedAnswer('{"answers": {"codes": ["grammar"]}}')) as server:
        result = annotate(study, ModelSettings(model="m", base_url=server.url), comments)
        assert "Full of spelling mistakes." in server.requests[0]["messages"][-1]["content"]
    (annotation,) = result.annotations
    assert (annotation.about, annotation.answers) == ("d0/ann", {"codes": ("grammar",)})


def test_shots_are_gold_texts_other_than_the_one_judged() -> None:
    gold = [
        Annotation(
            id=f"g{number}",
            document=f"d{number}",
            annotator="gold",
            protocol="scarecrow@2",
            marks=(Mark(id=f"g{number}/0", spans=(Span(*AT),), quotes=("the the",), label="grammar-usage"),),
        )
        for number in range(3)
    ]
    study = study_of(TEXTS, Annotator(id="gold", kind="gold"), *gold)
    _, server = run(lambda body, number: ScriptedAnswer(), study, shots=2)
    for body in server.requests:
        shots = [message["content"] for message in body["messages"] if message["role"] == "assistant"]
        assert [json.loads(shot)["marks"][0]["quote"] for shot in shots] == ["the the"] * 2
        shown = [message["content"] for message in body["messages"][1:-1] if message["role"] == "user"]
        assert not any(extract_text(body) in content for content in shown)


def test_marks_can_be_verified_by_a_second_opinion() -> None:
    first, _ = run(lambda body, number: ScriptedAnswer(marked(MARK)))
    study = Study.from_items([*study_of().items(), *first.annotators, *first.annotations])
    audit = load("audit")
    question = audit.document_questions[0]
    with ScriptedServer(
        lambda body, number: ScriptedAnswer(json.dumps({"answers": {question.name: question.values[0]}}))
    ) as server:
        settings = ModelSettings(model="m2", base_url=server.url)
        second = judge_marks_with_model(study, first.annotations, settings, audit)
        assert "Doubled." in server.requests[0]["messages"][-1]["content"]
    assert second
    assert [each.about for each in second.annotations] == [each.marks[0].id for each in first.annotations]
    assert all(each.answers[question.name] == question.values[0] for each in second.annotations)


def test_a_template_of_ones_own_is_used() -> None:
    template = PromptTemplate.parse("Find {{labels}}\n=== user ===\nHere: {{text}}", "mine.txt")
    with ScriptedServer(lambda body, number: ScriptedAnswer()) as server:
        annotate(study_of(TEXTS[:1]), ModelSettings(model="m", base_url=server.url), template=template)
        system, user = (message["content"] for message in server.requests[0]["messages"])
    assert system.startswith("Find ## Kinds of error")
    assert user.startswith("Here: <<<")


# --- killed at any moment ----------------------------------------------------------------------------------------

CHILD = """
import sys
from pathlib import Path
from finecomb.core.records import Document, ModelSettings
from finecomb.core.study import Study
from finecomb.annotators.llm import annotate
from finecomb.protocols import load
url, runs, count, budget = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
documents = [Document(id=f"d{n}", text=f"Text number {n} has the the words.") for n in range(count)]
settings = ModelSettings(model="m", base_url=url, price=(1, 2), budget=budget, max_tokens=200, concurrency=8)
run = annotate(Study.from_items([load("likert"), *documents]), settings, runs=runs)
sys.stdout.write("\\n".join(each.to_json() for each in run.annotations))
"""
COST = (900 * 1 + 20 * 2) / 1_000_000  # of one call, by the endpoint's own count


def _child(url: str, runs: Path, count: int, budget: float = 50.0) -> subprocess.Popen[bytes]:
    arguments = [sys.executable, "-c", CHILD, url, str(runs), str(count), str(budget)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1"})


def _kill_after(server: ScriptedServer, requests: int, child: subprocess.Popen[bytes]) -> bool:
    """Kill a run once the endpoint has received `requests` requests. Return False if the run ended before."""
    while len(server.requests) < requests and child.poll() is None:
        time.sleep(0.002)
    was_alive = child.poll() is None
    child.send_signal(signal.SIGKILL)
    child.communicate()
    return was_alive


def _content(runs: Path) -> JournalContent:
    (journal,) = runs.glob("*/journal.jsonl")
    return JournalContent.from_entries(read_entries(journal))


@pytest.mark.long
def test_a_run_killed_twenty_times_loses_nothing_and_pays_nothing_twice(tmp_path: Path) -> None:
    count, kills = 200, 20
    reply = ScriptedAnswer('{"answers": {"coherence": 3}}', wait=0.05, usage=(900, 20))
    with ScriptedServer(lambda body, number: reply) as server:
        for kill in range(1, kills + 1):
            assert _kill_after(server, count * kill // (kills + 1), _child(server.url, tmp_path, count))
            assert _content(tmp_path).spent >= COST * len(
                server.requests
            )  # amounts that may have been charged stay in the total
        first, _ = _child(server.url, tmp_path, count).communicate()
        paid = len(server.requests)
        second, _ = _child(server.url, tmp_path, count).communicate()
        assert len(server.requests) == paid  # free
        asked = [extract_text(body) for body in server.requests]
    assert first == second  # byte by byte
    annotations = [Annotation.model_validate_json(line) for line in first.decode().splitlines()]
    assert [each.document for each in annotations] == [f"d{number}" for number in range(count)]
    assert len(set(asked)) == count
    assert paid <= count + 8 * kills  # no more than those in flight
    (journal,) = tmp_path.glob("*/journal.jsonl")
    replies = [entry.hash for entry in read_entries(journal) if isinstance(entry, ReplyEntry)]
    assert len(replies) == len(set(replies)) == count


@pytest.mark.long
def test_kills_never_let_a_run_pass_its_budget(tmp_path: Path) -> None:
    """A call cut short by a crash was once forgotten after the same request had been answered later."""
    count, budget = 200, 0.1
    reply = ScriptedAnswer('{"answers": {"coherence": 3}}', wait=0.05, usage=(900, 20))
    with ScriptedServer(lambda body, number: reply) as server:
        for kill in range(1, 9):
            alive = _kill_after(server, 9 * kill, _child(server.url, tmp_path, count, budget))
            content = _content(tmp_path)
            assert COST * len(server.requests) <= content.spent <= budget
        assert not alive  # the run had already stopped at its budget
        assert len(server.requests) < count
    assert 0 < len(content.replies) <= len(server.requests)


def test_a_call_cut_short_stays_paid_when_the_question_is_answered_later() -> None:
    when = datetime(2026, 1, 1, tzinfo=UTC)
    call = {"hash": "h", "document": "d", "head": "x", "message": "m", "reserved": Decimal("0.5"), "when": when}
    crashed, again = CallEntry(attempt=1, **call), CallEntry(attempt=1, **call)
    reply = ReplyEntry(hash="h", reply=ChatReply(text="{}"), cost=Decimal("0.1"), when=when)
    assert JournalContent.from_entries([crashed]).spent == Decimal("0.5")
    assert JournalContent.from_entries([crashed, again, reply]).spent == Decimal("0.6")
    cached = reply.model_copy(update={"cached": True, "cost": Decimal(0)})
    assert JournalContent.from_entries([crashed, cached]).spent == Decimal("0.5")


def test_equal_texts_are_asked_once(tmp_path: Path) -> None:
    result, server = run(lambda body, number: ScriptedAnswer(marked(MARK)), study_of([TEXTS[0]] * 3), runs=tmp_path)
    assert len(server.requests) == 1
    assert [each.document for each in result.annotations] == ["d0", "d1", "d2"]


def test_a_second_process_keeps_out_of_a_run(tmp_path: Path) -> None:
    run(lambda body, number: ScriptedAnswer(), runs=tmp_path)
    (folder,) = [file.parent for file in tmp_path.glob("*/run.json")]
    status = read_run_status(folder)
    assert status
    assert (status.state, status.documents) == ("finished", ("d0", "d1", "d2"))
    with (
        lock_run_folder(folder),
        pytest.raises(RunBusyError, match="another process is executing this run"),
        lock_run_folder(folder),
    ):
        pass


def test_a_run_that_was_killed_is_not_running(tmp_path: Path) -> None:
    write_run_status(tmp_path, "running", ("d0",))
    status = read_run_status(tmp_path)
    assert status
    assert (status.state, status.why) == ("stopped", "interrupted")


def test_annotations_are_delivered_as_they_come() -> None:
    names: list[str] = []
    with ScriptedServer(lambda body, number: ScriptedAnswer(marked(MARK))) as server:
        run_plan = plan_run(study_of(), ModelSettings(model="m", base_url=server.url))
        result = execute_plan(run_plan, deliver=lambda annotation: names.append(annotation.document))
    assert sorted(names) == ["d0", "d1", "d2"]
    assert [each.document for each in result.annotations] == ["d0", "d1", "d2"]


def test_a_text_is_asked_again_only_on_purpose(tmp_path: Path) -> None:
    def script(body: dict[str, Any], number: int) -> ScriptedAnswer:
        return (
            ScriptedAnswer(marked(MARK)) if body["max_tokens"] > 100 else ScriptedAnswer('{"marks": [', finish="length")
        )

    with ScriptedServer(script) as server:
        run_plan = plan_run(study_of(TEXTS[:1]), ModelSettings(model="m", base_url=server.url, max_tokens=100))
        assert execute_plan(run_plan, tmp_path).states == {"truncated": 1}
        longer = run_plan.with_retries({"d0": TextRetry(number=1, max_tokens=200)})
        assert execute_plan(longer, tmp_path).states == {"marked": 1}
        assert execute_plan(run_plan, tmp_path).states == {"marked": 1}  # the run remembers
        assert len(server.requests) == 2
    assert len(list(tmp_path.glob("*/run.json"))) == 1
