"""A dress rehearsal: pretended people walk the real server over HTTP, and a pretended researcher rejects bad work."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from finecomb.annotators.simulated.simulated_people import (
    CrowdTraits,
    SimulatedPerson,
    SimulatedResponse,
    ground_truth,
    make_person,
    simulate_response,
)
from finecomb.collection import (
    access_storage,
    annotator_storage,
    design_cells_storage,
    onboarding,
    pay,
    researcher_actions_storage,
    task_storage,
)
from finecomb.collection.database.store import Store
from finecomb.collection.design_cells import CellState
from finecomb.collection.practice_rounds import (
    SIDES,
    annotator_practice_rounds,
    guess_question,
    is_guess_right,
    practised_condition,
)
from finecomb.collection.task_storage import TaskInfo
from finecomb.core.errors import FinecombError
from finecomb.core.practice import Choice, Exercise
from finecomb.core.question import Question
from finecomb.core.records import Annotation, Annotator, Answer, Document, Mark
from finecomb.core.study import Study, StudyItem
from finecomb.engine.seeds import seeded_generator
from finecomb.server.annotators.pair_names import build_pair_text_names
from finecomb.server.local_server import BrowserClient, serve_locally

log = logging.getLogger(__name__)
_PAGE_SECONDS = 45.0
_EXERCISE_SECONDS = 40.0
_MAX_STEPS = 10_000
VisitOutcome = Literal["done", "left", "screened-out", "nothing", "full"]
"""How somebody's visit ended: all handed in, stopped, not passed, no text for them, or no place for them."""


class RehearsalClock:
    """A clock that goes on as fast as pretended people work."""

    def __init__(self, now: float = 1_767_225_600.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Seconds since 1970."""
        return self.now


@dataclass(frozen=True, slots=True)
class SimulatedVisit:
    """One person's visit to the study."""

    number: int
    annotator: str
    outcome: VisitOutcome
    texts: int
    """Handed in."""
    rejected: bool = False


@dataclass(frozen=True, slots=True)
class RehearsalResult:
    """What came out of a rehearsal."""

    visits: Sequence[SimulatedVisit]
    states: Sequence[CellState]
    """How each cell of the design is filled; none without a design."""
    study: Study

    @property
    def is_filled(self) -> bool:
        """Whether every cell has all its people."""
        return all(state.is_full for state in self.states)

    def rows(self) -> list[dict[str, object]]:
        """Return one row per cell of the design, or without one how many people ended how."""
        if not self.states:
            outcomes = Counter(visit.outcome for visit in self.visits)
            return [{"outcome": outcome, "people": count} for outcome, count in outcomes.items()]
        earned = {person.annotator: person.total for person in pay.earnings_from_records(self.study)}
        cost: dict[str, float] = {}
        for person in self.study.iter_annotators():
            cost[person.cell] = cost.get(person.cell, 0.0) + earned.get(person.id, 0.0)
        return [
            {
                "cell": state.cell.name,
                "needed": state.cell.people,
                "accepted": state.accepted,
                "rejected": state.excluded,
                "left": state.gone + state.working,
                "pay": state.cell.pay,
                "cost": round(cost.get(state.cell.name, 0.0), 2),
            }
            for state in self.states
        ]

    def notes(self) -> list[str]:
        """Return in words how many people came, how many of them were rejected or left, and what they cost."""
        money = self.study.settings.effective_currency
        came = [visit for visit in self.visits if visit.annotator]
        rejected = {visit.annotator for visit in came if visit.rejected}
        cost = pay.study_cost(self.study.settings, pay.earnings_from_records(self.study))
        rate = f", {money} {cost.per_hour:.2f} an hour (median)" if cost.per_hour is not None else ""
        left = sum(visit.outcome == "left" for visit in came)
        share = f" ({len(rejected) / len(came):.1%})" if came else ""
        return [
            f"{len(came):,} people came: {len(rejected):,} rejected{share}, {left:,} left before the end",
            f"cost: {money} {cost.total:,.2f} with fees{rate}; rejected people are paid too",
        ]


def items_without_human_work(study: Study) -> Iterator[StudyItem]:
    """A study as it is before anybody has come: settings, protocols, texts and gold."""
    kept = {one.id for one in study.iter_annotators() if one.kind != "human"}
    for item in study.items():
        is_theirs = isinstance(item, Annotator) and item.id not in kept
        if not is_theirs and not (isinstance(item, Annotation) and item.annotator not in kept):
            yield item


def rehearse(
    store: Store,
    clock: RehearsalClock,
    traits: CrowdTraits,
    arrivals: int,
    seed: int,
    watch: Callable[[SimulatedVisit], None] = lambda _: None,
) -> RehearsalResult:
    """Let people come one after another, `arrivals` at most, until there is no place or no text for anybody."""
    gold = _gold_by_document(store)
    visits = []
    with serve_locally(store) as port:
        walker = _VisitSimulator(store, clock, traits, gold, port, seed)
        try:
            for number in range(1, arrivals + 1):
                visit = walker.simulate_reviewed_visit(number)
                visits.append(visit)
                watch(visit)
                if visit.outcome in ("full", "nothing") and not _advance_clock_past_leases(store, clock):
                    break
        except KeyboardInterrupt:
            log.warning("stopped after %d people; the tables are of those who came", len(visits))
    with store.database.read_transaction() as transaction:
        states = design_cells_storage.read_cell_states(store, transaction) if store.assignment_plan().cells else []
    return RehearsalResult(visits, states, store.study())


def simulate_concurrent_visits(
    store: Store,
    clock: RehearsalClock,
    traits: CrowdTraits,
    port: int,
    people: int,
    at_once: int,
    seed: int,
) -> Sequence[SimulatedVisit]:
    """The visits of so many people to a study that is served on a port of this machine, so many of them at once.

    `store` is the same study, to know what is true about its texts; nothing is written through it. A save that the
    server refuses, e.g. since a text went to somebody else, is an error.
    """
    walker = _VisitSimulator(store, clock, traits, _gold_by_document(store), port, seed)
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(walker.simulate_visit, range(1, people + 1)))


def _advance_clock_past_leases(store: Store, clock: RehearsalClock) -> bool:
    """Wait until places of those who left are given back; says whether there is one then."""
    if not store.assignment_plan().cells:
        return False
    clock.now += 60 * store.head.settings.lease + 1
    with store.database.read_transaction() as transaction:
        return design_cells_storage.has_open_place(store, transaction)


def _gold_by_document(store: Store) -> dict[str, Annotation]:
    study = store.study()
    golden = {one.id for one in study.iter_annotators() if one.kind == "gold"}
    return {
        annotation.document: annotation for annotation in study.iter_annotations() if annotation.annotator in golden
    }


def _sign_in_researcher(store: Store, port: int) -> BrowserClient:
    """A researcher who has just signed in: sessions end after days, and a rehearsal's days are short."""
    browser = BrowserClient(port)
    link = store.run_job_sync(researcher_actions_storage.invite_researcher, "finecomb rehearse", "owner", "owner")
    browser.send_request("POST", f"/sign-in/{link}")
    _, session = browser.send_request("GET", "/api/admin/session")
    browser.token = session["csrf"]
    return browser


def _exclude_annotator(store: Store, port: int, annotator: str, person: SimulatedPerson) -> None:
    researcher = _sign_in_researcher(store, port)
    reason = (
        "the explanations are copied from the texts" if person.habit == "copies" else "the explanations say nothing"
    )
    status, answer = researcher.send_request("PUT", f"/api/admin/annotator/excluded?id={annotator}", {"reason": reason})
    researcher.close()
    if status != 200:
        raise FinecombError(f"the server did not let {annotator} be excluded: {answer}")


# --- one person --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _VisitSimulator:
    """Whoever comes, one after another."""

    store: Store
    clock: RehearsalClock
    traits: CrowdTraits
    gold: Mapping[str, Annotation]
    port: int
    seed: int
    documents: dict[str, Document] = field(default_factory=dict)

    def simulated_person(self, number: int) -> SimulatedPerson:
        """The person who comes as number so and so."""
        place = max((place.texts_per_person for place in self.store.assignment_plan().cells.values()), default=0)
        texts = place or self.store.head.protocol.work.texts or len(self.store.assignment_plan().documents)
        return make_person(number, self.traits, texts, self.seed)

    def simulate_reviewed_visit(self, number: int) -> SimulatedVisit:
        """A visit, and what the researcher makes of the work."""
        visit, person = self.simulate_visit(number), self.simulated_person(number)
        if visit.outcome != "done" or person.is_honest:
            return visit
        _exclude_annotator(self.store, self.port, visit.annotator, person)
        return replace(visit, rejected=True)

    def simulate_visit(self, number: int) -> SimulatedVisit:
        """From the open link to the end, wherever that is."""
        browser = BrowserClient(self.port)
        try:
            parameters = _platform_query_string(self.store.head.settings.recruitment.platform, number)
            status, answer = browser.send_request(
                "POST", f"/api/join/{access_storage.open_link_token(self.store)}{parameters}"
            )
            if status != 200:
                return SimulatedVisit(number, "", "full", 0)
            browser.token = answer["csrf"]
            return self._complete_steps(browser, number, str(answer["annotator"]))
        finally:
            browser.close()

    def _complete_steps(self, browser: BrowserClient, number: int, annotator: str) -> SimulatedVisit:
        who, texts = self.simulated_person(number), 0
        for _ in range(_MAX_STEPS):
            _, following = browser.send_request("POST", "/api/next")
            if following["page"]:
                self._complete_page(browser, following["page"], who, annotator)
            elif not following["task"]:
                return SimulatedVisit(number, annotator, _visit_outcome(following["why"], texts), texts)
            elif following["task"]["phase"] != "work":
                self._complete_exercise(browser, following["task"], who)
            elif who.leaves_after is not None and texts >= who.leaves_after:
                return SimulatedVisit(number, annotator, "left", texts)
            else:
                self._annotate_task(browser, following["task"], who, annotator)
                texts += 1
        raise FinecombError(f"person {number} of the rehearsal came to no end after {_MAX_STEPS:,} steps")

    def _task_info(self, task: str) -> TaskInfo:
        with self.store.database.read_transaction() as transaction:
            facts = task_storage.read_task_info(self.store, transaction, task)
        assert facts is not None
        return facts

    # --- before the work ---

    def _complete_page(self, browser: BrowserClient, page: Any, who: SimulatedPerson, annotator: str) -> None:
        """Read a page, or answer it as somebody would who may take part."""
        rng = seeded_generator(self.seed, "page", who.number, page["step"])
        if page["number"] and not page["is_open"]:
            self._submit_guess(browser, page, who, annotator, rng)
        wanted = {
            name: answers[0]
            for place in self.store.assignment_plan().cells.values()
            for group in place.cell.eligible
            for name, answers in group.items()
        }
        asked = [Question.model_validate(question) for question in page["questions"]]
        answers = {
            question.name: wanted.get(question.name, question.scale_type.example(question, rng))
            for question in asked
            if question.when is None
        }
        seconds = float(rng.gamma(4, _PAGE_SECONDS / 4))
        self.clock.now += seconds
        browser.put_change(f"/api/steps/{page['step']}", answers=answers, active=round(seconds, 1))

    def _submit_guess(
        self, browser: BrowserClient, page: Any, who: SimulatedPerson, annotator: str, rng: np.random.Generator
    ) -> None:
        """Guess in a practice round, rightly as often as the person's skill says."""
        protocol, settings = self.store.head.protocol, self.store.head.settings
        with self.store.database.read_transaction() as transaction:
            person = annotator_storage.get_annotator(self.store, transaction, annotator)
        examples = annotator_practice_rounds(practised_condition(protocol, settings, person), person)[
            page["number"] - 1
        ]
        question = guess_question(protocol)
        values: Sequence[Answer] = SIDES if len(examples) > 1 or question is None else question.values
        skill = 0.5 if who.habit == "careless" else self.traits.condition_skill(person.condition)
        wanted = bool(rng.random() < skill)
        fitting = [value for value in values if is_guess_right(protocol, examples, value) in (wanted, None)]
        seconds = float(rng.gamma(4, _PAGE_SECONDS / 4))
        self.clock.now += seconds
        guess = fitting[int(rng.integers(len(fitting)))]
        browser.put_change(f"/api/steps/{page['step']}/guess", guess=guess, active=round(seconds, 1))

    def _complete_exercise(self, browser: BrowserClient, task: Any, who: SimulatedPerson) -> None:
        """Do an exercise or a question of the test, as well as the person's habits let them."""
        facts, protocol = self._task_info(task["id"]), self.store.head.protocol
        item = onboarding.practice_items_by_document(protocol, facts.round)[facts.document].given
        rng = seeded_generator(self.seed, "practice", who.number, facts.document, facts.round)
        skill = 0.95 if who.habit != "careless" else 0.2
        if isinstance(item, Choice):
            others = [option.value for option in item.options if option.value != item.answer]
            answer = item.answer if rng.random() < skill else others[int(rng.integers(len(others)))]
            browser.put_change(f"/api/tasks/{task['id']}/answers", body={"answers": {"answer": answer}})
        else:
            self._submit_solutions(browser, task, item, rng, skill)
        self._finish_task(browser, task["id"], float(rng.gamma(4, _EXERCISE_SECONDS / 4)))

    def _submit_solutions(
        self, browser: BrowserClient, task: Any, item: Exercise, rng: np.random.Generator, skill: float
    ) -> None:
        protocol = self.store.head.protocol
        known = [number for number in range(len(item.solutions)) if rng.random() < skill]
        for part, right in zip(task["parts"], item.units or [{}] * len(task["parts"]), strict=False):
            unit = {"answers": _example_answers(protocol.unit_questions, rng) | dict(right)}
            browser.put_change(f"/api/tasks/{task['id']}/units/{part['start']}-{part['end']}", body=unit)
        for number in known:
            solution, span = item.solutions[number], item.spans()[number]
            answers = _example_answers(protocol.questions_of(solution.label), rng) | dict(solution.answers)
            label = protocol.find_label(solution.label)
            needed = label is not None and label.antecedent == "required"
            before = {"spans": [[0, 3]], "quotes": [task["text"][:3]]} if needed else None
            body = {"spans": [span.to_wire()], "quotes": [solution.quote], "label": solution.label, "answers": answers}
            body["antecedent"] = before
            browser.put_change(f"/api/tasks/{task['id']}/marks/{task['id']}-{number}", body=body)
        answers = _example_answers(protocol.document_questions, rng) | dict(item.answers)
        body = {"answers": answers, "no_errors": bool(protocol.labels) and not known}
        browser.put_change(f"/api/tasks/{task['id']}/answers", body=body)

    # --- the work ---

    def _annotate_task(self, browser: BrowserClient, task: Any, who: SimulatedPerson, annotator: str) -> None:
        facts, protocol = self._task_info(task["id"]), self.store.head.protocol
        document = self._cached_document(facts.document)
        parts = [f"{part['start']}-{part['end']}" for part in task["parts"]]
        truth = ground_truth(document, protocol, parts, self.gold.get(document.id), self.seed, facts.about)
        condition = self._annotator_condition(annotator)
        reading = simulate_response(who, self.traits, condition, document, protocol, truth)
        pair = build_pair_text_names(protocol, facts.first)
        answers = pair.answers_on_page(reading.answers) if pair else reading.answers
        self._submit_annotation(browser, task, reading, answers)

    def _cached_document(self, id: str) -> Document:
        return self.documents.setdefault(id, self.store.document(id))

    def _annotator_condition(self, annotator: str) -> str:
        with self.store.database.read_transaction() as transaction:
            return annotator_storage.get_annotator(self.store, transaction, annotator).condition

    def _submit_annotation(
        self, browser: BrowserClient, task: Any, reading: SimulatedResponse, answers: Mapping[str, Answer]
    ) -> None:
        id, protocol = task["id"], self.store.head.protocol
        for part in task["parts"]:  # first, since a later part can be marked when those before it were judged
            key = f"{part['start']}-{part['end']}"
            body = {"answers": _json_answers(reading.units.get(key, {})), "seconds": 0}
            browser.put_change(f"/api/tasks/{id}/units/{key}", body=body)
        for number, mark in enumerate(reading.marks):
            browser.put_change(f"/api/tasks/{id}/marks/{id}-{number}", body=_mark_request_body(mark))
        body = {"answers": _json_answers(answers), "no_errors": bool(protocol.labels) and not reading.marks}
        browser.put_change(f"/api/tasks/{id}/answers", body=body)
        self._finish_task(browser, id, reading.seconds)

    def _finish_task(self, browser: BrowserClient, task: str, seconds: float) -> None:
        self.clock.now += seconds
        browser.put_change(f"/api/tasks/{task}/finish", active=round(seconds, 1))


def _visit_outcome(why: str, texts: int) -> VisitOutcome:
    if why == "screened-out":
        return "screened-out"
    return "done" if why == "all-done" or texts else "nothing"


def _platform_query_string(platform: str, number: int) -> str:
    """What a platform adds to the link, for a worker of its own for each person."""
    if platform == "prolific":
        return f"?PROLIFIC_PID=rehearsal{number}&STUDY_ID=rehearsal&SESSION_ID=rehearsal{number}"
    if platform == "mturk":
        return f"?workerId=REHEARSAL{number}&hitId=REHEARSAL&assignmentId=REHEARSAL{number}"
    return ""


def _example_answers(questions: Sequence[Question], rng: np.random.Generator) -> dict[str, Answer]:
    required = (question for question in questions if question.required and question.when is None)
    return {question.name: question.scale_type.example(question, rng) for question in required}


def _json_answers(answers: Mapping[str, Answer]) -> dict[str, Any]:
    return {name: list(answer) if isinstance(answer, tuple) else answer for name, answer in answers.items()}


def _mark_request_body(mark: Mark) -> dict[str, Any]:
    before = mark.antecedents
    earlier = {"spans": [span.to_wire() for span in before.spans], "quotes": list(before.quotes)} if before else None
    return {
        "spans": [span.to_wire() for span in mark.spans],
        "quotes": list(mark.quotes),
        "label": mark.label,
        "answers": _json_answers(mark.answers),
        "antecedent": earlier,
    }
