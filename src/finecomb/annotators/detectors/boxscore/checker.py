"""The box-score checker, which marks factual errors in a report and explains them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from finecomb.annotators.detectors.base import detector_signature
from finecomb.annotators.detectors.boxscore import game_claims, offrecord_claims, player_claims, stat_claims
from finecomb.annotators.detectors.boxscore.claims import Claim, ErrorCandidate, interpret_claims
from finecomb.annotators.detectors.boxscore.discourse import DiscourseState, SentenceContext, next_discourse_state
from finecomb.annotators.detectors.boxscore.game import Game, parse_game
from finecomb.annotators.detectors.boxscore.ranker import (
    Ranker,
    RatedCandidate,
    load_shipped_ranker,
    rate_candidates,
    read_ranker,
)
from finecomb.annotators.detectors.boxscore.report_parser import parse_sentences
from finecomb.core.errors import FinecombError, ParameterError, param
from finecomb.core.options import option_field
from finecomb.core.protocol import Protocol
from finecomb.core.records import AlternativeMark, Annotation, Document, Exclusion, Mark
from finecomb.core.span import Span

NAME = "boxscore"
LABELS = ("number", "name", "word", "context", "not-checkable")
BasisFilter = Literal["record", "all"]
ClaimFinder = Callable[[SentenceContext], Iterable[Claim | ErrorCandidate]]
CLAIM_FINDERS: tuple[ClaimFinder, ...] = (
    *stat_claims.CLAIM_FINDERS,
    *player_claims.CLAIM_FINDERS,
    *game_claims.CLAIM_FINDERS,
    *offrecord_claims.CLAIM_FINDERS,
)

# Kinds of number and name errors whose correction cannot replace the marked words, and kinds of word errors whose
# correction can. A correction that cannot replace the words appears only in the comment.
_KINDS_WITHOUT_REPLACEMENT = {
    "arena",
    "city",
    "name.unknown",
    "figures.included",
    "next.self",
    "season.city",
    "season.row",
    "double.ordinal",
    "triple.ordinal",
}
_REPLACEABLE_WORD_KINDS = {"result", "side", "at_home", "on_road"}
MAX_CAREFUL_CONTRADICTION_RATE = 0.2  # contradictions per sentence; human reports have fewer, generated reports more


def find_error_candidates(text: str, game: Game) -> list[ErrorCandidate]:
    """Find all possible errors in a report, sentence by sentence. The ranker rates them later.

    Candidates that do not contradict the record are flagged by how often the rest of the report does, because a report
    with many wrong facts is less reliable in general.
    """
    parsed = parse_sentences(text, game)
    candidates: list[ErrorCandidate] = []
    story = DiscourseState()
    for number, sentence in enumerate(parsed):
        scene = SentenceContext(game, sentence, story, text, first=number == 0)
        statements = [statement for family in CLAIM_FINDERS for statement in family(scene)]
        wrong, meant = interpret_claims([statement for statement in statements if isinstance(statement, Claim)], game)
        candidates += wrong
        candidates += [statement for statement in statements if isinstance(statement, ErrorCandidate)]
        team_pairs = list(player_claims.find_team_players(scene))
        paired = scene.mentions_by_word[team_pairs[-1].team] if team_pairs else None
        story = next_discourse_state(scene, meant, paired)
    proved = {(candidate.start, candidate.end) for candidate in candidates if candidate.contradicts_record}
    share = len(proved) / max(len(parsed), 1)
    care = "few contradictions" if share < MAX_CAREFUL_CONTRADICTION_RATE else "many contradictions"
    care = care if proved else "no contradiction"
    return [
        candidate if candidate.contradicts_record else replace(candidate, flags=candidate.flags | {care})
        for candidate in candidates
    ]


@dataclass(frozen=True, slots=True)
class BoxScoreOptions:
    """Options of the box-score checker."""

    basis: BasisFilter = option_field("record")
    threshold: float | None = option_field(None)
    weights: Path | None = option_field(None)

    def __post_init__(self) -> None:
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise ParameterError(
                f"{param('threshold')} must be from 0 to 1, found {self.threshold:g}",
                parameter="threshold",
            )


class BoxScoreChecker:
    """A detector that marks statements that contradict the record or are of a kind that is often wrong."""

    def __init__(
        self, protocol: Protocol, ranker: Ranker, threshold: float | None = None, basis: BasisFilter = "record"
    ) -> None:
        missing = [label for label in LABELS if not protocol.has_label(label)]
        if missing:
            raise FinecombError(
                f"{NAME} requires the labels of protocol accuracy; label {missing[0]!r} is missing from protocol "
                f"{protocol.id}"
            )
        self.protocol, self.ranker, self.basis = protocol, ranker, basis
        self.fitted_texts = tuple(ranker.fitted_texts)
        self.threshold = ranker.threshold if threshold is None else threshold
        options = BoxScoreOptions(basis, round(self.threshold, 4))
        self.signature = detector_signature(NAME, protocol, options, games=ranker.games)

    @classmethod
    def from_options(cls, protocol: Protocol, options: BoxScoreOptions) -> BoxScoreChecker:
        """Build the checker with the shipped weights or those in a file."""
        ranker = read_ranker(options.weights) if options.weights else load_shipped_ranker()
        return cls(protocol, ranker, options.threshold, options.basis)

    def __call__(self, document: Document) -> Annotation:
        """Annotate one report. Without a record, the annotation is excluded with the reason."""
        game = parse_game(document.data)
        if game is None:
            why = "the document has no data" if document.data is None else "the data does not name both teams"
            return self._build_annotation(document, excluded=Exclusion(by=NAME, reason=f"not checked: {why}"))
        candidates = [
            candidate
            for candidate in find_error_candidates(document.text, game)
            if self.basis == "all" or candidate.basis == "record"
        ]
        errors = [rated for rated in rate_candidates(candidates, self.ranker) if rated.confidence >= self.threshold]
        marks = tuple(self._build_mark(document, number, rated) for number, rated in enumerate(errors, 1))
        return self._build_annotation(document, marks, problems=game.problems)

    def _build_annotation(
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

    def _build_mark(self, document: Document, number: int, rated: RatedCandidate) -> Mark:
        candidate = rated.candidate
        # An alternative to one wrong name is, for example, two wrong numbers.
        alternative = tuple(
            AlternativeMark(
                spans=(Span(other.start, other.end),),
                quotes=(document.text[other.start : other.end],),
                label=other.label,
            )
            for other in candidate.otherwise
        )
        return Mark(
            id=f"{document.id}/{NAME}/{number}",
            spans=(Span(candidate.start, candidate.end),),
            quotes=(document.text[candidate.start : candidate.end],),
            label=candidate.label,
            answers=_build_mark_answers(candidate, self.ranker),
            confidence=round(rated.confidence, 3),
            basis=candidate.basis,
            alternatives=(alternative,) if alternative else (),
        )


def _build_mark_answers(candidate: ErrorCandidate, ranker: Ranker) -> dict[str, str]:
    """Build the comment of a mark, and the correction if it can replace the marked words."""
    if candidate.basis == "base-rate":
        wrong, total = ranker.counts.get(candidate.kind, (0, 0))
        rate = f"annotators found {wrong} of {total} such statements wrong"
        return {"comment": f"The text says: {candidate.claim}. The record does not cover this; {rate}."}
    replaced = _is_literal_replacement(candidate)
    if candidate.kind.startswith("rename."):
        finding = f"With {candidate.correction} instead of {candidate.claim}, the sentence has fewer errors"
    elif not candidate.correction:
        finding = f"The text says that {candidate.claim}, but the record lists no such name"
    else:
        source = "the record says" if replaced else "according to the record"
        finding = f"The text says that {candidate.claim}, but {source} {candidate.correction}"
    comment = f"{finding} (cell: {candidate.where})."
    if truths := [other.correction for other in candidate.otherwise if _is_literal_replacement(other)]:
        comment += f" Alternatively, the correct values are: {', '.join(truths)}."
    return {"correction": candidate.correction, "comment": comment} if replaced else {"comment": comment}


def _is_literal_replacement(candidate: ErrorCandidate) -> bool:
    """Return whether the correction can replace the marked words."""
    if candidate.label == "word":
        return candidate.kind in _REPLACEABLE_WORD_KINDS
    return candidate.label in {"number", "name"} and candidate.kind not in _KINDS_WITHOUT_REPLACEMENT
