"""Names of the two texts of a pair, which tell annotators the position of each text but not its identity.

Records call the texts `a` and `b`. The browser gets and sends `first` and `second`, by position on the screen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from finecomb.core.protocol import Protocol
from finecomb.core.records import Answer, Answers, Antecedents, Document, Mark
from finecomb.core.span import Span
from finecomb.server.error_responses import ProblemError

STORED_NAMES = ("a", "b")
PAGE_NAMES = ("first", "second")


@dataclass(frozen=True, slots=True)
class PairTextNames:
    """Page name of each text of a pair, by stored name, and the questions whose answers name a text."""

    places: Mapping[str, str]
    questions: frozenset[str]

    @property
    def stored_names(self) -> Mapping[str, str]:
        """Stored name of each text, by page name."""
        return {place: name for name, place in self.places.items()}

    def document_on_page(self, document: Document) -> Document:
        """Return a document for the browser, with the pair from left to right after all other contexts."""
        others = {
            f"{name}_" if name in PAGE_NAMES else name: text
            for name, text in document.context.items()
            if name not in self.places
        }
        pair = {place: document.context[name] for name, place in self.places.items() if name in document.context}
        return document.model_copy(update={"context": others | pair})

    def answers_on_page(self, answers: Mapping[str, Any]) -> dict[str, Any]:
        """Return stored answers, with the texts renamed to their page names."""
        return {
            name: _rename_texts_in_answer(value, self._names_for_question(name, self.places))
            for name, value in answers.items()
        }

    def stored_answers(self, answers: Answers) -> Answers:
        """Convert a browser's answers to stored names. Raise an error for names that a browser cannot know."""
        for name in self.questions & answers.keys():
            value = answers[name]
            if value in STORED_NAMES or (isinstance(value, tuple) and set(value) & set(STORED_NAMES)):
                raise ProblemError(
                    "refused", "This answer was not accepted because the page is out of date. Reload the page."
                )
        return {
            name: _rename_texts_in_answer(value, self._names_for_question(name, self.stored_names))
            for name, value in answers.items()
        }

    def _names_for_question(self, question: str, names: Mapping[str, str]) -> Mapping[str, str]:
        return names if question in self.questions else {}

    def spans_on_page(self, spans: tuple[Span, ...]) -> tuple[Span, ...]:
        """Return stored spans, with the texts renamed to their page names."""
        return _rename_span_parts(spans, self.places)

    def stored_mark(self, mark: Mark) -> Mark:
        """Return a mark from a browser, with the texts renamed to their stored names."""
        before = mark.antecedents
        antecedents = before and Antecedents(
            spans=_rename_span_parts(before.spans, self.stored_names), quotes=before.quotes
        )
        return mark.model_copy(
            update={"spans": _rename_span_parts(mark.spans, self.stored_names), "antecedents": antecedents}
        )


def build_pair_text_names(protocol: Protocol, first: str) -> PairTextNames | None:
    """Build the names for a pair in which the text `first` is shown first. Return None when no pairs are shown.

    When questions treat the two texts differently, e.g. a follow-up to only one answer, the stored names are used.
    """
    if protocol.work.unit != "pair":
        return None
    names = STORED_NAMES[::-1] if first == STORED_NAMES[1] else STORED_NAMES
    conditions = (question.when.among for question in protocol.document_questions if question.when is not None)
    if any((STORED_NAMES[0] in among) != (STORED_NAMES[1] in among) for among in conditions):
        return PairTextNames(dict(zip(names, names, strict=True)), frozenset())
    text_questions = [
        question.name for question in protocol.document_questions if set(STORED_NAMES) & set(question.values)
    ]
    return PairTextNames(dict(zip(names, PAGE_NAMES, strict=True)), frozenset(text_questions))


def _rename_texts_in_answer(value: Answer, names: Mapping[str, str]) -> Answer:
    if isinstance(value, tuple | list):
        return tuple(names.get(member, member) for member in value)
    return names.get(value, value) if isinstance(value, str) else value


def _rename_span_parts(spans: tuple[Span, ...], names: Mapping[str, str]) -> tuple[Span, ...]:
    return tuple(Span(span.start, span.end, names.get(span.part, span.part)) for span in spans)
