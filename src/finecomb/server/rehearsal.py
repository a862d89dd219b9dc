"""Trial run of a study: simulated participants use the real server over HTTP, and bad work is rejected."""

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
    build_ground_truth,
    make_simulated_person,
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
    PAIR_SIDES,
    annotator_practice_rounds,
    find_guess_question,
    is_guess_right,
    practised_condition,
)
from finecomb.collection.task_storage import TaskInfo
from finecomb.core.duplicate_marks import merge_marks
from finecomb.core.errors import FinecombError
from finecomb.core.practice import Choice
from finecomb.core.question import Question
from finecomb.core.records import Annotation, Annotator, Answer, Document
from finecomb.core.study import Study, StudyItem
from finecomb.engine.seeds import seeded_generator
from finecomb.server.annotators.pair_names import build_pair_text_names
from finecomb.server.local_server import BrowserClient, serve_locally

log = logging.getLogger(__name__)
_PAGE_SECONDS = 45.0
_EXERCISE_SECONDS = 40.0
_MAX_STEPS = 10_000
VisitOutcome = Literal["done", "left", "screened-out", "nothing", "full"]
"""Outcome of a visit: completed, left early, failed the qualification, no text available, or no place available."""


class RehearsalClock:
    """Clock that advances as fast as simulated participants work."""

    def __init__(self, now: float = 1_767_225_600.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """Return the time in seconds since 1970."""
        return self.now


@dataclass(frozen=True, slots=True)
class SimulatedVisit:
    """Visit of one simulated participant."""

    number: int
    annotator: str
    outcome: VisitOutcome
    texts: int
    """Number of submitted texts."""
    rejected: bool = False


@dataclass(frozen=True, slots=True)
class RehearsalResult:
    """Results of a trial run."""

    visits: Sequence[SimulatedVisit]
    states: Sequence[CellState]
    """State of each cell of the design; empty without a design."""
    study: Study

    @property
    def is_filled(self) -> bool:
        """True when every cell is full."""
        return all(state.is_full for state in self.states)

    def rows(self) -> list[dict[str, object]]:
        """Return one row per cell of the design. Without a design, return the number of people by outcome."""
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
        """Return notes on the number of people, how many of them were rejected or left, and the cost."""
        money = self.study.settings.effective_currency
        came = [visit for visit in self.visits if visit.annotator]
        rejected = {visit.annotator for visit in came if visit.rejected}
        cost = pay.study_cost_so_far(self.study.settings, pay.earnings_from_records(self.study))
        rate = f", {money} {cost.per_hour:.2f} per hour (median)" if cost.per_hour is not None else ""
        left = sum(visit.outcome == "left" for visit in came)
        share = f" ({len(rejected) / len(came):.1%})" if came else ""
        return [
            f"{len(came):,} people: {len(rejected):,} rejected{share}, {left:,} left early",
            f"cost: {money} {cost.total:,.2f} including fees{rate}; rejected people are paid as well",
        ]


def items_without_human_work(study: Study) -> Iterator[StudyItem]:
    """Yield the records of a study without human work: settings, protocols, texts, and machine and gold annotations."""
    kept = {annotator.id for annotator in study.iter_annotators() if annotator.kind != "human"}
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
    """Simulate up to `arrivals` visits one after another, until no place or no text is left."""
    gold = _gold_by_document(store)
    visits = []
    with serve_locally(store) as port:
        walker = _VisitSimulator(store, clock, traits, gold, port, seed)
        try:
            for number in range(1, arrivals + 1):
                visit = walker.simulate_reviewed_visit(number)
                visits.append(visit)
                watch(visit)
                if visit.outcome in ("full", "nothing"):
                    if not store.assignment_plan().cells:
                        break
                    # The places of people who left become free when their leases expire.
                    clock.now += 60 * store.head.settings.lease + 1
                    if not store.read(design_cells_storage.has_open_place):
                        break
        except KeyboardInterrupt:
            log.warning("stopped after %d people; the tables cover only these", len(visits))
    states = store.read(design_cells_storage.read_cell_states) if store.assignment_plan().cells else []
    return RehearsalResult(visits, states, store.read_study())


def simulate_concurrent_visits(
    store: Store,
    clock: RehearsalClock,
    traits: CrowdTraits,
    port: int,
    people: int,
    at_once: int,
    seed: int,
) -> Sequence[SimulatedVisit]:
    """Simulate the visits of `people` participants, `at_once` at a time, to a study served on a local port.

    `store` holds the same study. It is used only to look up the truth about its texts. A save that the server
    rejects, e.g. because a text was reassigned, is an error.
    """
    walker = _VisitSimulator(store, clock, traits, _gold_by_document(store), port, seed)
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(walker.simulate_visit, range(1, people + 1)))


def _gold_by_document(store: Store) -> dict[str, Annotation]:
    study = store.read_study()
    golden = {annotator.id for annotator in study.iter_annotators() if annotator.kind == "gold"}
    return {
        annotation.document: annotation for annotation in study.iter_annotations() if annotation.annotator in golden
    }


# --- visits ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _VisitSimulator:
    """Simulator of visits. Each participant has a number and makes one visit."""

    store: Store
    clock: RehearsalClock
    traits: CrowdTraits
    gold: Mapping[str, Annotation]
    port: int
    seed: int
    documents: dict[str, Document] = field(default_factory=dict)

    def simulated_person(self, number: int) -> SimulatedPerson:
        """Return the simulated person with the given number."""
        place = max((place.texts_per_person for place in self.store.assignment_plan().cells.values()), default=0)
        texts = place or self.store.head.protocol.work.texts or len(self.store.assignment_plan().documents)
        return make_simulated_person(number, self.traits, texts, self.seed)

    def simulate_reviewed_visit(self, number: int) -> SimulatedVisit:
        """Simulate a visit, and the researcher's review of the submitted work."""
        visit, person = self.simulate_visit(number), self.simulated_person(number)
        if visit.outcome != "done" or person.is_careful:
            return visit
        # New session of the researcher, because an old one would expire during the simulated days
        researcher = BrowserClient(self.port)
        link = self.store.run_job_sync(
            researcher_actions_storage.invite_researcher, "finecomb rehearse", "owner", "owner"
        )
        researcher.send_request("POST", f"/sign-in/{link}")
        _, session = researcher.send_request("GET", "/api/admin/session")
        researcher.token = session["csrf"]
        reason = (
            "the explanations are copied from the texts"
            if person.habit == "copies"
            else "the explanations are too vague"
        )
        status, answer = researcher.send_request(
            "PUT", f"/api/admin/annotator/excluded?id={visit.annotator}", {"reason": reason}
        )
        researcher.close()
        if status != 200:
            raise FinecombError(f"the server did not exclude {visit.annotator}: {answer}")
        return replace(visit, rejected=True)

    def simulate_visit(self, number: int) -> SimulatedVisit:
        """Simulate a visit, from opening the open link to the end."""
        browser = BrowserClient(self.port)
        try:
            if self.store.head.settings.recruitment.platform == "prolific":
                parameters = f"?PROLIFIC_PID=rehearsal{number}&STUDY_ID=rehearsal&SESSION_ID=rehearsal{number}"
            elif self.store.head.settings.recruitment.platform == "mturk":
                parameters = f"?workerId=REHEARSAL{number}&hitId=REHEARSAL&assignmentId=REHEARSAL{number}"
            else:
                parameters = ""
            status, answer = browser.send_request(
                "POST", f"/api/join/{access_storage.get_open_link_token(self.store)}{parameters}"
            )
            if status != 200:
                return SimulatedVisit(number, "", "full", 0)
            browser.token = answer["csrf"]
            annotator = str(answer["annotator"])
            who, texts = self.simulated_person(number), 0
            for _ in range(_MAX_STEPS):
                _, following = browser.send_request("POST", "/api/next")
                if following["page"]:
                    self._complete_page(browser, following["page"], who, annotator)
                elif not following["task"]:
                    why = following["why"]
                    done: VisitOutcome = "done" if why == "all-done" or texts else "nothing"
                    outcome = "screened-out" if why == "screened-out" else done
                    return SimulatedVisit(number, annotator, outcome, texts)
                elif following["task"]["phase"] != "work":
                    self._complete_exercise(browser, following["task"], who)
                elif who.leaves_after is not None and texts >= who.leaves_after:
                    return SimulatedVisit(number, annotator, "left", texts)
                else:
                    self._annotate_task(browser, following["task"], who, annotator)
                    texts += 1
            raise FinecombError(f"simulated participant {number} did not finish within {_MAX_STEPS:,} steps")
        finally:
            browser.close()

    def _task_info(self, task: str) -> TaskInfo:
        facts = self.store.read(task_storage.read_task_info, task)
        assert facts is not None
        return facts

    # --- onboarding --------

    def _complete_page(self, browser: BrowserClient, page: Any, who: SimulatedPerson, annotator: str) -> None:
        """Complete a page, answering the survey like an eligible person."""
        rng = seeded_generator(self.seed, "page", who.number, page["step"])
        if page["number"] and not page["is_open"]:
            # The probability of a right guess is the person's skill.
            protocol, settings = self.store.head.protocol, self.store.head.settings
            person = self.store.read(annotator_storage.get_annotator, annotator)
            rounds = annotator_practice_rounds(practised_condition(protocol, settings, person), person)
            examples, asked = rounds[page["number"] - 1], find_guess_question(protocol)
            values: Sequence[Answer] = PAIR_SIDES if len(examples) > 1 or asked is None else asked.values
            skill = 0.5 if who.habit == "careless" else self.traits.condition_skill(person.condition)
            is_right = bool(rng.random() < skill)
            fitting = [value for value in values if is_guess_right(protocol, examples, value) in (is_right, None)]
            seconds = float(rng.gamma(4, _PAGE_SECONDS / 4))
            self.clock.now += seconds
            guess = fitting[int(rng.integers(len(fitting)))]
            browser.put_change(f"/api/steps/{page['step']}/guess", guess=guess, active=round(seconds, 1))
        wanted = {
            name: answers[0]
            for place in self.store.assignment_plan().cells.values()
            for group in place.cell.eligible
            for name, answers in group.items()
        }
        questions = [Question.model_validate(question) for question in page["questions"]]
        answers = {
            question.name: wanted.get(question.name, question.scale_type.example(question, rng))
            for question in questions
            if question.when is None
        }
        seconds = float(rng.gamma(4, _PAGE_SECONDS / 4))
        self.clock.now += seconds
        browser.put_change(f"/api/steps/{page['step']}", answers=answers, active=round(seconds, 1))

    def _complete_exercise(self, browser: BrowserClient, task: Any, who: SimulatedPerson) -> None:
        """Complete an exercise or a question according to the person's habits."""
        facts, protocol = self._task_info(task["id"]), self.store.head.protocol
        item = onboarding.practice_items_by_document(protocol, facts.round)[facts.document].given
        rng = seeded_generator(self.seed, "practice", who.number, facts.document, facts.round)
        skill = 0.95 if who.habit != "careless" else 0.2
        if isinstance(item, Choice):
            others = [option.value for option in item.options if option.value != item.answer]
            answer = item.answer if rng.random() < skill else others[int(rng.integers(len(others)))]
            browser.put_change(f"/api/tasks/{task['id']}/answers", body={"answers": {"answer": answer}})
        else:
            known = [number for number in range(len(item.solutions)) if rng.random() < skill]
            for part, right in zip(task["parts"], item.units or [{}] * len(task["parts"]), strict=False):
                unit = {"answers": _example_answers(protocol.unit_questions, rng) | dict(right)}
                browser.put_change(f"/api/tasks/{task['id']}/units/{part['start']}-{part['end']}", body=unit)
            for number in known:
                solution, span = item.solutions[number], item.solution_spans()[number]
                answers = _example_answers(protocol.questions_for_label(solution.label), rng) | dict(solution.answers)
                label = protocol.find_label(solution.label)
                needed = label is not None and label.antecedent == "required"
                body = {
                    "spans": [span.to_wire()],
                    "quotes": [solution.quote],
                    "label": solution.label,
                    "answers": answers,
                    "antecedent": {"spans": [[0, 3]], "quotes": [task["text"][:3]]} if needed else None,
                }
                browser.put_change(f"/api/tasks/{task['id']}/marks/{task['id']}-{number}", body=body)
            answers = _example_answers(protocol.document_questions, rng) | dict(item.answers)
            body = {"answers": answers, "no_errors": bool(protocol.labels) and not known}
            browser.put_change(f"/api/tasks/{task['id']}/answers", body=body)
        self._finish_task(browser, task["id"], float(rng.gamma(4, _EXERCISE_SECONDS / 4)))

    # --- work -------

    def _annotate_task(self, browser: BrowserClient, task: Any, who: SimulatedPerson, annotator: str) -> None:
        facts, protocol = self._task_info(task["id"]), self.store.head.protocol
        document = self.documents.setdefault(facts.document, self.store.get_document(facts.document))
        parts = [f"{part['start']}-{part['end']}" for part in task["parts"]]
        truth = build_ground_truth(document, protocol, parts, self.gold.get(document.id), self.seed, facts.about)
        condition = self.store.read(annotator_storage.get_annotator, annotator).condition
        reading = simulate_response(who, self.traits, condition, document, protocol, truth)
        pair = build_pair_text_names(protocol, facts.first)
        answers = pair.answers_on_page(reading.answers) if pair else reading.answers
        id = task["id"]
        # Judge parts before marking, because a part can be marked only after the earlier ones are judged
        for key in parts:
            body = {"answers": _json_answers(reading.units.get(key, {})), "seconds": 0}
            browser.put_change(f"/api/tasks/{id}/units/{key}", body=body)
        marks, _ = merge_marks(reading.marks)  # a person can mark the same words with the same label only once
        for number, mark in enumerate(marks):
            before = mark.antecedents
            earlier = (
                {"spans": [span.to_wire() for span in before.spans], "quotes": list(before.quotes)} if before else None
            )
            browser.put_change(
                f"/api/tasks/{id}/marks/{id}-{number}",
                body={
                    "spans": [span.to_wire() for span in mark.spans],
                    "quotes": list(mark.quotes),
                    "label": mark.label,
                    "answers": _json_answers(mark.answers),
                    "antecedent": earlier,
                },
            )
        body = {"answers": _json_answers(answers), "no_errors": bool(protocol.labels) and not reading.marks}
        browser.put_change(f"/api/tasks/{id}/answers", body=body)
        self._finish_task(browser, id, reading.seconds)

    def _finish_task(self, browser: BrowserClient, task: str, seconds: float) -> None:
        self.clock.now += seconds
        browser.put_change(f"/api/tasks/{task}/finish", active=round(seconds, 1))


def _example_answers(questions: Sequence[Question], rng: np.random.Generator) -> dict[str, Answer]:
    required = (question for question in questions if question.required and question.when is None)
    return {question.name: question.scale_type.example(question, rng) for question in required}


def _json_answers(answers: Mapping[str, Answer]) -> dict[str, Any]:
    return {name: list(answer) if isinstance(answer, tuple) else answer for name, answer in answers.items()}
