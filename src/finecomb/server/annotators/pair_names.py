"""The two texts of a pair under names that say where they stand, never which is which.

In a study's records the texts are called `a` and `b`. A browser knows them as `first` and `second`, by their place on
the screen: in what it is sent, and in the answers and marks that it sends back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from finecomb.core.protocol import Protocol
from finecomb.core.question import Question
from finecomb.core.records import Answer, Answers, Antecedents, Document, Mark
from finecomb.core.span import Span
from finecomb.server.error_responses import ProblemError

STORED_NAMES = ("a", "b")
PAGE_NAMES = ("first", "second")


@dataclass(frozen=True, slots=True)
class PairTextNames:
    """The places of the texts of one pair by their own names, as they stand, and the questions that name a text."""

    places: Mapping[str, str]
    questions: frozenset[str]

    @property
    def stored_names(self) -> Mapping[str, str]:
        """The texts' own names by their places."""
        return {place: name for name, place in self.places.items()}

    def document_on_page(self, document: Document) -> Document:
        """A document as a browser gets it: the other contexts first, then the pair from left to right."""
        others = {
            f"{name}_" if name in PAGE_NAMES else name: text
            for name, text in document.context.items()
            if name not in self.places
        }
        pair = {place: document.context[name] for name, place in self.places.items() if name in document.context}
        return document.model_copy(update={"context": others | pair})

    def answers_on_page(self, answers: Mapping[str, Any]) -> dict[str, Any]:
        """Stored answers as a browser gets them."""
        return {
            name: _rename_texts_in_answer(value, self._names_for_question(name, self.places))
            for name, value in answers.items()
        }

    def stored_answers(self, answers: Answers) -> Answers:
        """A browser's answers as they are kept; refused where they name a text by what a browser cannot know."""
        for name in self.questions & answers.keys():
            value = answers[name]
            if value in STORED_NAMES or (isinstance(value, tuple) and set(value) & set(STORED_NAMES)):
                raise ProblemError("refused", "This answer was not accepted: the page is out of date. Reload it.")
        return {
            name: _rename_texts_in_answer(value, self._names_for_question(name, self.stored_names))
            for name, value in answers.items()
        }

    def _names_for_question(self, question: str, names: Mapping[str, str]) -> Mapping[str, str]:
        return names if question in self.questions else {}

    def spans_on_page(self, spans: tuple[Span, ...]) -> tuple[Span, ...]:
        """Stored spans as a browser gets them."""
        return _rename_span_parts(spans, self.places)

    def stored_mark(self, mark: Mark) -> Mark:
        """A browser's mark as it is kept."""
        before = mark.antecedents
        antecedents = before and Antecedents(
            spans=_rename_span_parts(before.spans, self.stored_names), quotes=before.quotes
        )
        return mark.model_copy(
            update={"spans": _rename_span_parts(mark.spans, self.stored_names), "antecedents": antecedents}
        )


def build_pair_text_names(protocol: Protocol, first: str) -> PairTextNames | None:
    """The names of a pair whose text `first` stands first; None where no pairs are compared.

    Where what is asked tells the two apart, as by a question after one answer only, they go by their own names.
    """
    if protocol.work.unit != "pair":
        return None
    names = STORED_NAMES[::-1] if first == STORED_NAMES[1] else STORED_NAMES
    if not are_question_conditions_symmetric(protocol.document_questions):
        return PairTextNames(dict(zip(names, names, strict=True)), frozenset())
    asked = [question.name for question in protocol.document_questions if set(STORED_NAMES) & set(question.values)]
    return PairTextNames(dict(zip(names, PAGE_NAMES, strict=True)), frozenset(asked))


def are_question_conditions_symmetric(questions: tuple[Question, ...]) -> bool:
    """Whether what is asked never tells one text of a pair from the other."""
    conditions = (question.when.among for question in questions if question.when is not None)
    return all((STORED_NAMES[0] in among) == (STORED_NAMES[1] in among) for among in conditions)


def _rename_texts_in_answer(value: Answer, names: Mapping[str, str]) -> Answer:
    if isinstance(value, tuple | list):
        return tuple(names.get(member, member) for member in value)
    return names.get(value, value) if isinstance(value, str) else value


def _rename_span_parts(spans: tuple[Span, ...], names: Mapping[str, str]) -> tuple[Span, ...]:
    return tuple(Span(span.start, span.end, names.get(span.part, span.part)) for span in spans)
