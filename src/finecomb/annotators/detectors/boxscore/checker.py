"""The box-score checker: a report in, an annotation with what is wrong and why out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from finecomb.annotators.detectors.base import detector_signature
from finecomb.annotators.detectors.boxscore import game_claims, offrecord_claims, player_claims, stat_claims
from finecomb.annotators.detectors.boxscore.claims import Claim, Slip, solve
from finecomb.annotators.detectors.boxscore.discourse import Scene, Story, next_story
from finecomb.annotators.detectors.boxscore.ranker import Ranker, RatedSlip, rated, read_ranker, shipped_ranker
from finecomb.annotators.detectors.boxscore.record import Game, read_game
from finecomb.annotators.detectors.boxscore.report_parser import Sentence, sentences
from finecomb.core.errors import FinecombError
from finecomb.core.options import option
from finecomb.core.protocol import Protocol
from finecomb.core.records import AlternativeMark, Annotation, Document, Exclusion, Mark
from finecomb.core.span import Span

NAME = "boxscore"
LABELS = ("number", "name", "word", "context", "not-checkable")
Basis = Literal["record", "all"]
Family = Callable[[Scene], Iterable[Claim | Slip]]
FAMILIES: tuple[Family, ...] = (
    *stat_claims.FAMILY,
    *player_claims.FAMILY,
    *game_claims.FAMILY,
    *offrecord_claims.FAMILY,
)

# Kinds whose correction can stand in place of the words; what is said about others goes into the comment only.
_NO_REPLACEMENT = {
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
_REPLACED_WORDS = {"result", "side", "at_home", "on_road"}


FEW = 0.2  # contradictions for each sentence: people's reports have fewer, generated ones more


def slips(text: str, game: Game) -> list[Slip]:
    """Everything that may be wrong in a report, sentence by sentence; the ranker says how surely.

    What a record cannot decide, and words, are judged with an eye to how often the report contradicts the record where
    that can be checked: who is careless there is careless elsewhere, too.
    """
    parsed = sentences(text, game)
    found = list(_slips(text, game, parsed))
    proved = {(slip.start, slip.end) for slip in found if slip.is_hard}
    share = len(proved) / max(len(parsed), 1)
    care = "no contradiction" if not proved else "few contradictions" if share < FEW else "many contradictions"
    return [slip if slip.is_hard else replace(slip, flags=slip.flags | {care}) for slip in found]


def _slips(text: str, game: Game, parsed: Sequence[Sentence]) -> Iterator[Slip]:
    story = Story()
    for number, sentence in enumerate(parsed):
        scene = Scene(game, sentence, story, text, first=number == 0)
        statements = [statement for family in FAMILIES for statement in family(scene)]
        wrong, meant = solve([statement for statement in statements if isinstance(statement, Claim)], game)
        yield from wrong
        yield from (statement for statement in statements if isinstance(statement, Slip))
        story = next_story(scene, meant, player_claims.paired(scene))


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
            raise FinecombError(f"--threshold {self.threshold:g}: how sure to be is a number from 0 to 1")


class BoxScore:
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
    def made_for(cls, protocol: Protocol, options: BoxScoreOptions) -> BoxScore:
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
            for number, rated_slip in enumerate(self._chosen(document, game), 1)
        ]
        return self._annotation(document, tuple(marks), problems=game.problems)

    def _chosen(self, document: Document, game: Game) -> list[RatedSlip]:
        candidates = [slip for slip in slips(document.text, game) if self.basis == "all" or slip.basis == "record"]
        return [rated_slip for rated_slip in rated(candidates, self.ranker) if rated_slip.confidence >= self.threshold]

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

    def _mark(self, document: Document, number: int, rated_slip: RatedSlip) -> Mark:
        slip = rated_slip.slip
        return Mark(
            id=f"{document.id}/{NAME}/{number}",
            spans=(Span(slip.start, slip.end),),
            quotes=(document.text[slip.start : slip.end],),
            label=slip.label,
            answers=_answers(slip, self.ranker),
            confidence=round(rated_slip.confidence, 3),
            basis=slip.basis,
            alternatives=(_reading(document, slip.otherwise),) if slip.otherwise else (),
        )


def _reading(document: Document, slips: Iterable[Slip]) -> tuple[AlternativeMark, ...]:
    """Slips as another reading of one mistake: two wrong numbers in place of one wrong name."""
    return tuple(
        AlternativeMark(
            spans=(Span(slip.start, slip.end),), quotes=(document.text[slip.start : slip.end],), label=slip.label
        )
        for slip in slips
    )


def _answers(slip: Slip, ranker: Ranker) -> dict[str, str]:
    """The correction, where there is one, and the explanation: what the text says, what the record says, and where."""
    if slip.basis == "base-rate":
        wrong, total = ranker.counts.get(slip.kind, (0, 0))
        rate = f"people found {wrong} of {total} such statements wrong"
        return {"comment": f"The text says: {slip.claim}. The record does not tell; {rate}."}
    replaced = _is_replacement(slip)
    comment = f"{_explanation(slip, replaced)}{_other_reading(slip)}"
    return {"correction": slip.correction, "comment": comment} if replaced else {"comment": comment}


def _is_replacement(slip: Slip) -> bool:
    """Whether the correction can stand in place of the words."""
    if slip.label == "word":
        return slip.kind in _REPLACED_WORDS
    return slip.label in {"number", "name"} and slip.kind not in _NO_REPLACEMENT


def _explanation(slip: Slip, replaced: bool) -> str:
    if slip.kind.startswith("rename."):
        return f"What is said of {slip.claim} is true of {slip.correction} with fewer mistakes (cell: {slip.where})."
    if not slip.correction:
        return f"The text says that {slip.claim}, but the record has nobody of that name (cell: {slip.where})."
    truth = f"the record says {slip.correction}" if replaced else f"by the record {slip.correction}"
    return f"The text says that {slip.claim}, but {truth} (cell: {slip.where})."


def _other_reading(slip: Slip) -> str:
    """The reading that was not taken, in a sentence; empty where there is one reading only."""
    truths = [other.correction for other in slip.otherwise if _is_replacement(other)]
    return f" Or else it should be: {', '.join(truths)}." if truths else ""
