"""Practice rounds of a condition: a text or a pair, a guess, and the answer, which is shown only afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from finecomb.collection.annotator_meta import AnnotatorMeta
from finecomb.core.design import design_cells
from finecomb.core.practice import Example
from finecomb.core.protocol import Condition, Protocol
from finecomb.core.question import Question
from finecomb.core.records import Annotator, Answer, Settings
from finecomb.core.scales import is_among

PracticeRound: TypeAlias = tuple[Example, ...]
"""One text, or two side by side."""
SIDES = ("a", "b")
"""What can be guessed of a pair: that the first or that the second is the machine's."""


def practised_condition(protocol: Protocol, settings: Settings, annotator: Annotator) -> Condition | None:
    """The condition whose material somebody reads: the one that their cell names, else their own."""
    name, design = annotator.condition, settings.design
    if design is not None and any(block.training for block in design.blocks):
        trainings = {cell.name: cell.training for cell in design_cells(design, protocol)}
        name = trainings.get(annotator.cell, name)
    return next((condition for condition in protocol.conditions if condition.name == name), None)


def annotator_practice_rounds(condition: Condition | None, annotator: Annotator) -> Sequence[PracticeRound]:
    """The rounds that somebody practises: those meant for the texts they will read.

    Where none is meant for them, as in a domain without material of its own, one of each kind.
    """
    if condition is None:
        return ()
    rounds: list[PracticeRound] = [*((example,) for example in condition.examples), *condition.pairs]
    facts = {**AnnotatorMeta.from_annotator(annotator).setting, **annotator.factors}
    fitting = [examples for examples in rounds if _is_round_meant_for(examples, facts)]
    return (
        fitting
        or list({str(_audience_values_by_fact(examples)): examples for examples in reversed(rounds)}.values())[::-1]
    )


def _audience_values_by_fact(examples: PracticeRound) -> dict[str, tuple[str, ...]]:
    """For whom a round is meant: what any of its texts says."""
    return {name: values for example in examples for name, values in example.only.items()}


def _is_round_meant_for(examples: PracticeRound, facts: Mapping[str, str]) -> bool:
    return all(facts.get(name) in values for name, values in _audience_values_by_fact(examples).items())


def is_practice_chosen_by_setting(condition: Condition | None) -> bool:
    """Whether what somebody practises depends on the texts that they will read."""
    rounds = [*((example,) for example in condition.examples), *condition.pairs] if condition else []
    return any(_audience_values_by_fact(examples) for examples in rounds)


def example_without_answer(example: Example) -> Example:
    """An example as it is shown before the guess: nothing that gives the answer away."""
    return Example(text=example.text, context=example.context, data=example.data)


# --- the guess ---------------------------------------------------------------------------------------------------


def guess_question(protocol: Protocol) -> Question | None:
    """The question about the text whose answer is guessed: the first with answers to choose one from."""
    questions = protocol.document_questions
    return next((one for one in questions if not one.scale_type.many and (one.values or one.scale_type.values)), None)


def guess_problem(protocol: Protocol, examples: PracticeRound, guess: Answer | None) -> str:
    """Why a guess cannot be taken; empty when it can."""
    if len(examples) > 1:
        return "" if guess in SIDES else f"it names one of the two texts, {' or '.join(SIDES)}"
    question = guess_question(protocol)
    if question is None:
        return ""
    return "it is missing" if guess is None else question.problem(guess) or ""


def is_guess_right(protocol: Protocol, examples: PracticeRound, guess: Answer | None) -> bool | None:
    """Whether a guess was right; None where nothing was to be guessed.

    Of a question about who wrote a text, any answer on the right side of the scale is right.
    """
    question = guess_question(protocol)
    if question is None or guess is None or any(question.name not in example.answers for example in examples):
        return None
    answers = [example.answers[question.name] for example in examples]
    if len(examples) > 1:
        return guess == SIDES[_machine_text_index(protocol, question, answers)]
    return _answer_author_side(protocol, question, guess) == _answer_author_side(protocol, question, answers[0])


def _answer_author_side(protocol: Protocol, question: Question, answer: Answer) -> object:
    """`human` or `machine` where the protocol says which answers mean which, else the answer itself."""
    truth = protocol.meta.get("truth")
    if not isinstance(truth, Mapping) or truth.get("question") != question.name:
        return answer
    return next(
        (side for side in ("human", "machine") if _is_in_answer_list(answer, truth.get(f"{side}_answers"))), answer
    )


def _is_in_answer_list(answer: Answer, listed: object) -> bool:
    return isinstance(listed, list) and is_among(answer, listed)


def _machine_text_index(protocol: Protocol, question: Question, answers: Sequence[Answer]) -> int:
    """Which text of a pair is the machine's: by what the protocol says, else the one higher on the scale."""
    sides = [_answer_author_side(protocol, question, answer) for answer in answers]
    if "machine" in sides:
        return sides.index("machine")
    values: Sequence[Answer] = question.values or question.scale_type.values
    return max(range(len(answers)), key=lambda index: list(values).index(answers[index]))
