"""Practice rounds of a condition: the annotator sees a text or a pair, makes a guess, and then sees the solution."""

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
"""Example texts of a practice round: one text, or a pair shown side by side."""
PAIR_SIDES = ("a", "b")
"""Possible guesses about which text of a pair a machine wrote: the first or the second."""


def practised_condition(protocol: Protocol, settings: Settings, annotator: Annotator) -> Condition | None:
    """Return the condition whose material an annotator practises with: that of their design cell, or their own."""
    name, design = annotator.condition, settings.design
    if design is not None and any(block.training for block in design.blocks):
        trainings = {cell.name: cell.training for cell in design_cells(design, protocol)}
        name = trainings.get(annotator.cell, name)
    return next((condition for condition in protocol.conditions if condition.name == name), None)


def annotator_practice_rounds(condition: Condition | None, annotator: Annotator) -> Sequence[PracticeRound]:
    """Return the practice rounds that match the texts an annotator will annotate.

    When no round matches, e.g. because the domain has no material of its own, return one round for each audience.
    """
    if condition is None:
        return ()
    rounds: list[PracticeRound] = [*((example,) for example in condition.examples), *condition.pairs]
    facts = {**AnnotatorMeta.from_annotator(annotator).setting, **annotator.factors}
    fitting = [
        examples
        for examples in rounds
        if all(facts.get(name) in values for name, values in _audience_values_by_fact(examples).items())
    ]
    return (
        fitting
        or list({str(_audience_values_by_fact(examples)): examples for examples in reversed(rounds)}.values())[::-1]
    )


def _audience_values_by_fact(examples: PracticeRound) -> dict[str, tuple[str, ...]]:
    """Return the audience of a practice round: the allowed values of each annotator property."""
    return {name: values for example in examples for name, values in example.only.items()}


def example_without_answer(example: Example) -> Example:
    """Return a copy of an example without its solution, as shown before the guess."""
    return Example(text=example.text, context=example.context, data=example.data)


# --- the guess ---------------------------------------------------------------------------------------------------


def find_guess_question(protocol: Protocol) -> Question | None:
    """Return the first single-choice question about the text, whose answer is guessed in practice rounds, or None."""
    questions = protocol.document_questions
    return next(
        (
            question
            for question in questions
            if not question.scale_type.many and (question.values or question.scale_type.values)
        ),
        None,
    )


def find_guess_problem(protocol: Protocol, examples: PracticeRound, guess: Answer | None) -> str:
    """Return the reason why a guess is not valid, or an empty string for a valid guess."""
    if len(examples) > 1:
        return "" if guess in PAIR_SIDES else f"it must name one of the two texts, {' or '.join(PAIR_SIDES)}"
    question = find_guess_question(protocol)
    if question is None:
        return ""
    return "no option was selected" if guess is None else question.answer_problem(guess) or ""


def is_guess_right(protocol: Protocol, examples: PracticeRound, guess: Answer | None) -> bool | None:
    """Return whether a guess was right, or None when there was nothing to guess.

    For a question about authorship, any answer on the correct side of the scale is right.
    """
    question = find_guess_question(protocol)
    if question is None or guess is None or any(question.name not in example.answers for example in examples):
        return None
    answers = [example.answers[question.name] for example in examples]
    sides = [_author_kind_of_answer(protocol, question, answer) for answer in answers]
    if len(examples) == 1:
        return _author_kind_of_answer(protocol, question, guess) == sides[0]
    if "machine" in sides:
        return guess == PAIR_SIDES[sides.index("machine")]
    # If the protocol does not define the truth, the text rated higher on the scale is the machine's.
    values: Sequence[Answer] = question.values or question.scale_type.values
    return guess == PAIR_SIDES[max(range(len(answers)), key=lambda index: list(values).index(answers[index]))]


def _author_kind_of_answer(protocol: Protocol, question: Question, answer: Answer) -> object:
    """Return the author, `human` or `machine`, that an answer stands for in the protocol, or else the answer itself."""
    truth = protocol.meta.get("truth")
    if not isinstance(truth, Mapping) or truth.get("question") != question.name:
        return answer
    for side in ("human", "machine"):
        listed = truth.get(f"{side}_answers")
        if isinstance(listed, list) and is_among(answer, listed):
            return side
    return answer
