"""The box-score checker: a report in, an annotation with what is wrong and why out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from finecomb.annotators.detectors.base import detector_signature
from finecomb.annotators.detectors.boxscore import game_claims, offrecord_claims, player_claims, stat_claims
from finecomb.annotators.detectors.boxscore.claims import Claim, ErrorCandidate, interpret_claims
from finecomb.annotators.detectors.boxscore.discourse import DiscourseState, SentenceContext, update_discourse
from finecomb.annotators.detectors.boxscore.game import Game, read_game
from finecomb.annotators.detectors.boxscore.ranker import (
    Ranker,
    RatedCandidate,
    rate_candidates,
    read_ranker,
    shipped_ranker,
)
from finecomb.annotators.detectors.boxscore.report_parser import Sentence, parse_sentences
from finecomb.core.errors import FinecombError, ParameterError, param
from finecomb.core.options import option
from finecomb.core.protocol import Protocol
from finecomb.core.records import AlternativeMark, Annotation, Document, Exclusion, Mark
from finecomb.core.span import Span

NAME = "boxscore"
LABELS = ("number", "name", "word", "context", "not-checkable")
Basis = Literal["record", "all"]
ClaimFinder = Callable[[SentenceContext], Iterable[Claim | ErrorCandidate]]
CLAIM_FINDERS: tuple[ClaimFinder, ...] = (
    *stat_claims.CLAIM_FINDERS,
    *player_claims.CLAIM_FINDERS,
    *game_claims.CLAIM_FINDERS,
    *offrecord_claims.CLAIM_FINDERS,
)

# Kinds whose correction can stand in place of the words; what is said about others goes into the comment only.
_KINDS_WITHOUT_REPLACEMENT = {
    *(
        "arena",
        "city",
        "name.unknown",
        "figures.included",
        "next.self",
        "season.city",
        "season.row",
        "double.ordinal",
        "triple.ordinal",
    ),
}
_REPLACEABLE_WORD_KINDS = {"result", "side", "at_home", "on_road"}


FEW_CONTRADICTIONS_RATE = 0.2  # contradictions for each sentence: people's reports have fewer, generated ones more


def find_error_candidates(text: str, game: Game) -> list[ErrorCandidate]:
    """Everything that may be wrong in a report, sentence by sentence; the ranker says how surely.

    What a record cannot decide, and words, are judged with an eye to how often the report contradicts the record where
    that can be checked: who is careless there is careless elsewhere, too.
    """
    parsed = parse_sentences(text, game)
    found = list(_check_sentences(text, game, parsed))
    proved = {(slip.start, slip.end) for slip in found if slip.contradicts_record}
    share = len(proved) / max(len(parsed), 1)
    care = (
        "no contradiction"
        if not proved
        else "few contradictions"
        if share < FEW_CONTRADICTIONS_RATE
        else "many contradictions"
    )
    return [slip if slip.contradicts_record else replace(slip, flags=slip.flags | {care}) for slip in found]


def _check_sentences(text: str, game: Game, parsed: Sequence[Sentence]) -> Iterator[ErrorCandidate]:
    story = DiscourseState()
    for number, sentence in enumerate(parsed):
        scene = SentenceContext(game, sentence, story, text, first=number == 0)
        statements = [statement for family in CLAIM_FINDERS for statement in family(scene)]
        wrong, meant = interpret_claims([statement for statement in statements if isinstance(statement, Claim)], game)
        yield from wrong
        yield from (statement for statement in statements if isinstance(statement, ErrorCandidate))
        story = update_discourse(scene, meant, player_claims.last_paired_team(scene))


@dataclass(frozen=True, slots=True)
class BoxScoreOptions:
    """Options of the box-score checker."""

    basis: Basis = option("record", "record: only what the data proves; all: also what people mostly find wrong.")
    threshold: float | None = option(None, "Mark only what is at least this sure, from 0 to 1.")
    weights: Path | None = option(
        None, "What `train` wrote, or `criticize --save`; the box-score checker comes with weights."
    )

    def __post_init__(self) -> None:
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise ParameterError(
                f"{param('threshold', f'{self.threshold:g}')}: how sure to be is a number from 0 to 1",
                parameter="threshold",
            )


class BoxScoreChecker:
    """Marks what contradicts the record, and what people have found wrong often enough."""

    def __init__(
        self, protocol: Protocol, ranker: Ranker, threshold: float | None = None, basis: Basis = "record"
    ) -> None:
        missing = [label for label in LABELS if not protocol.has_label(label)]
        if missing:
            raise FinecombError(f"protocol {protocol.id} has no label {missing[0]!r}; {NAME} needs those of `accuracy`")
        self.protocol, self.ranker, self.basis = protocol, ranker, basis
        self.fitted_texts = tuple(ranker.fitted_texts)
        self.threshold = ranker.threshold if threshold is None else threshold
        options = BoxScoreOptions(basis, round(self.threshold, 4))
        self.signature = detector_signature(NAME, protocol, options, games=ranker.games)

    @classmethod
    def from_options(cls, protocol: Protocol, options: BoxScoreOptions) -> BoxScoreChecker:
        """The checker with the shipped weights, or with those in a file."""
        ranker = read_ranker(options.weights) if options.weights else shipped_ranker()
        return cls(protocol, ranker, options.threshold, options.basis)

    def __call__(self, document: Document) -> Annotation:
        """Marks of one report; an excluded annotation with the reason where there is no record."""
        game = read_game(document.data)
        if game is None:
            why = "no box score in its data" if document.data is None else "its data has no home and visiting team"
            return self._annotation(document, excluded=Exclusion(by=NAME, reason=f"not checked: {why}"))
        marks = [
            self._mark(document, number, rated_slip)
            for number, rated_slip in enumerate(self._select_candidates(document, game), 1)
        ]
        return self._annotation(document, tuple(marks), problems=game.problems)

    def _select_candidates(self, document: Document, game: Game) -> list[RatedCandidate]:
        candidates = [
            slip for slip in find_error_candidates(document.text, game) if self.basis == "all" or slip.basis == "record"
        ]
        return [
            rated_slip
            for rated_slip in rate_candidates(candidates, self.ranker)
            if rated_slip.confidence >= self.threshold
        ]

    def _annotation(
        self,
        document: Document,
        marks: tuple[Mark, ...] = (),
        problems: tuple[str, ...] = (),
        excluded: Exclusion | None = None,
    ) -> Annotation:
        return Annotation(
            id=f"{document.id}/{NAME}",
            document=document.id,
            annotator=NAME,
            protocol=self.protocol.id,
            status="excluded" if excluded else "submitted",
            marks=marks,
            excluded=excluded,
            meta={"problems": list(problems)} if problems else {},
        )

    def _mark(self, document: Document, number: int, rated_slip: RatedCandidate) -> Mark:
        slip = rated_slip.slip
        return Mark(
            id=f"{document.id}/{NAME}/{number}",
            spans=(Span(slip.start, slip.end),),
            quotes=(document.text[slip.start : slip.end],),
            label=slip.label,
            answers=_mark_answers(slip, self.ranker),
            confidence=round(rated_slip.confidence, 3),
            basis=slip.basis,
            alternatives=(_alternative_marks(document, slip.otherwise),) if slip.otherwise else (),
        )


def _alternative_marks(document: Document, slips: Iterable[ErrorCandidate]) -> tuple[AlternativeMark, ...]:
    """Slips as another reading of one mistake: two wrong numbers in place of one wrong name."""
    return tuple(
        AlternativeMark(
            spans=(Span(slip.start, slip.end),), quotes=(document.text[slip.start : slip.end],), label=slip.label
        )
        for slip in slips
    )


def _mark_answers(slip: ErrorCandidate, ranker: Ranker) -> dict[str, str]:
    """The correction, where there is one, and the explanation: what the text says, what the record says, and where."""
    if slip.basis == "base-rate":
        wrong, total = ranker.counts.get(slip.kind, (0, 0))
        rate = f"people found {wrong} of {total} such statements wrong"
        return {"comment": f"The text says: {slip.claim}. The record does not tell; {rate}."}
    replaced = _is_replacement(slip)
    comment = f"{_explanation(slip, replaced)}{_describe_alternative(slip)}"
    return {"correction": slip.correction, "comment": comment} if replaced else {"comment": comment}


def _is_replacement(slip: ErrorCandidate) -> bool:
    """Whether the correction can stand in place of the words."""
    if slip.label == "word":
        return slip.kind in _REPLACEABLE_WORD_KINDS
    return slip.label in {"number", "name"} and slip.kind not in _KINDS_WITHOUT_REPLACEMENT


def _explanation(slip: ErrorCandidate, replaced: bool) -> str:
    if slip.kind.startswith("rename."):
        return f"What is said of {slip.claim} is true of {slip.correction} with fewer mistakes (cell: {slip.where})."
    if not slip.correction:
        return f"The text says that {slip.claim}, but the record has nobody of that name (cell: {slip.where})."
    truth = f"the record says {slip.correction}" if replaced else f"by the record {slip.correction}"
    return f"The text says that {slip.claim}, but {truth} (cell: {slip.where})."


def _describe_alternative(slip: ErrorCandidate) -> str:
    """The reading that was not taken, in a sentence; empty where there is one reading only."""
    truths = [other.correction for other in slip.otherwise if _is_replacement(other)]
    return f" Or else it should be: {', '.join(truths)}." if truths else ""
