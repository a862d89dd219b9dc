"""Somebody who goes the whole way over HTTP and knows the solutions, or some of them."""

from __future__ import annotations

import typing
import uuid
from collections.abc import Callable
from typing import Any

from finecomb.collection import onboarding
from finecomb.collection.database import tables
from finecomb.core.practice import Choice, Exercise
from finecomb.core.protocol import Protocol
from finecomb.core.question import Question
from finecomb.core.records import Answer
from tests.databases import Client

KnowsSolution = Callable[[str, int], bool]
"""Whether the nth solution of the exercise with that name is found, or the question with that name answered rightly."""


class Worker(typing.Protocol):
    """Somebody signed in who works over HTTP."""

    def post(self, url: str, /) -> Any: ...

    def put(self, url: str, /, *, json: Any) -> Any: ...

    def save(self, task: str, entry: str, body: Any, /) -> Any: ...

    def finish(self, task: str, /) -> Any: ...


def knows_everything(name: str, nth: int) -> bool:
    return True


def knows_nothing(name: str, nth: int) -> bool:
    return False


def valid_answer(question: Question) -> Answer:
    """An answer that fits a question."""
    match question.scale:
        case "text" | "rewrite":
            return "Some words of my own about this."
        case "yes-no":
            return True
        case "number":
            return question.low or 1
        case "several":
            return (str(question.values[0]),)
        case _:
            return question.values[0]


def next_step(client: Worker) -> Any:
    """What comes now."""
    answer = client.post("/api/next")
    assert answer.status_code == 200, answer.text
    return answer.json()


def submit_step(client: Worker, step: str, answers: Any = None, active: float = 0) -> Any:
    """PUT a step; returns status code and answer."""
    sent = {"change": uuid.uuid4().hex, "answers": answers or {}, "active": active}
    answer = client.put(f"/api/steps/{step}", json=sent)
    return answer.status_code, answer.json()


def valid_survey_answers(page: Any) -> dict[str, Any]:
    """Answers to a survey."""
    asked = [Question.model_validate(each) for each in page["questions"]]
    return {question.name: valid_answer(question) for question in asked if question.when is None}


def submit_guess(client: Worker, page: Any, value: Any = None) -> Any:
    """Guess in a practice round; returns the status code and the page with its answer."""
    guessed = value or ("a" if len(page["examples"]) > 1 else 4)
    sent = {"change": uuid.uuid4().hex, "guess": guessed, "active": 1.0}
    answer = client.put(f"/api/steps/{page['step']}/guess", json=sent)
    return answer.status_code, answer.json()


def complete_page(client: Worker, page: Any) -> None:
    """Read a page, or answer it, and go on."""
    if page["number"] and not page["is_open"]:
        code, answer = submit_guess(client, page)
        assert code == 200, answer
    code, answer = submit_step(client, page["step"], valid_survey_answers(page))
    assert code == 200, answer


def find_exercise(client: Client, protocol: Protocol, task: Any) -> Exercise | Choice:
    """The exercise or question that a task is."""
    (found,) = client.store.read_annotations(tables.annotation.c.id == task["id"])
    return onboarding.practice_items_by_document(protocol)[found.document].given


def solve_exercise(client: Client, protocol: Protocol, task: Any, knows: KnowsSolution = knows_everything) -> None:
    """Do an exercise as far as it is known, and hand it in."""
    submit_exercise(client, protocol, task, find_exercise(client, protocol, task), knows)


def submit_exercise(
    client: Worker, protocol: Protocol, task: Any, item: Exercise | Choice, knows: KnowsSolution = knows_everything
) -> None:
    """Do the exercise that a task is known to be, and hand it in."""
    if isinstance(item, Choice):
        wrong = next(option.value for option in item.options if option.value != item.answer)
        answer = item.answer if knows(item.name, 0) else wrong
        assert client.save(task["id"], "answers", {"answers": {"answer": answer}})[0] == 200
    else:
        _save_solutions(client, protocol, task, item, knows)
    code, answer = client.finish(task["id"])
    assert code == 200, answer


def _save_solutions(client: Worker, protocol: Protocol, task: Any, exercise: Exercise, knows: KnowsSolution) -> None:
    found = [n for n in range(len(exercise.solutions)) if knows(exercise.name, n)]
    for part, right in zip(task["parts"], exercise.units or [{}] * len(task["parts"]), strict=True):
        code, answer = client.save(task["id"], f"units/{part['start']}-{part['end']}", {"answers": dict(right)})
        assert code == 200, answer
    for n in found:
        solution, span = exercise.solutions[n], exercise.solution_spans()[n]
        asked = protocol.questions_for_label(solution.label)
        body = {
            "spans": [span.to_wire()],
            "quotes": [solution.quote],
            "label": solution.label,
            "answers": {each.name: valid_answer(each) for each in asked if each.when is None} | dict(solution.answers),
            "antecedent": _required_antecedent(protocol, task, solution.label),
        }
        code, answer = client.save(task["id"], f"marks/{task['id']}-{n}", body)
        assert code == 200, answer
    answers = {
        each.name: valid_answer(each) for each in protocol.document_questions if each.when is None and each.required
    }
    client.save(task["id"], "answers", {"answers": answers | dict(exercise.answers), "no_errors": not found})


def _required_antecedent(protocol: Protocol, task: Any, label: str | None) -> Any:
    known = protocol.find_label(label)
    needed = known is not None and known.antecedent == "required"
    return {"spans": [[0, 3]], "quotes": [task["text"][:3]]} if needed else None


def complete_onboarding(client: Client, protocol: Protocol, knows: KnowsSolution = knows_everything) -> Any:
    """Go on until the first text, or until there is nothing; returns what comes then, and the pages and tasks met."""
    met: list[Any] = []
    for _ in range(200):
        now = next_step(client)
        if now["page"]:
            met.append(now["page"])
            complete_page(client, now["page"])
        elif now["task"] and now["task"]["phase"] != "work":
            met.append(now["task"])
            solve_exercise(client, protocol, now["task"], knows)
        else:
            return now, met
    raise AssertionError("the way has no end")
