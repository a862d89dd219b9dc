"""Relations taken from a report by nearest mention and compared with the record: a rule-based relative of RG.

Wiseman et al. (2017) train a model to link numbers of a text with players and teams, and count how many of the tuples
(entity, value, type) the record holds. Thomson and Reiter (2020, section 4.7) tested such a metric against their gold
standard. Here a number belongs to the mention that stands nearest to it in its sentence; there is nothing to fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from finecomb.annotators.detectors.base import Factory, detector_signature
from finecomb.annotators.detectors.boxscore.game import Game, Player, Team, read_game
from finecomb.annotators.detectors.boxscore.report_parser import DAYS, Sentence, compile_pattern, parse_sentences
from finecomb.annotators.detectors.boxscore.stat_claims import format_count, record_field, record_value
from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Exclusion, Mark
from finecomb.core.span import Span

NAME = "relations"
_LABELS = ("number", "name")
_MAX_WORD_DISTANCE = 3  # words between a number and what it counts


@dataclass(frozen=True, slots=True)
class RelationOptions:
    """The relation metric has no options."""


@dataclass(frozen=True, slots=True)
class Relation:
    """Somebody or something, a value that the text gives it, and what the value is of."""

    entity: str
    value: str
    type: str
    start: int
    end: int
    label: str
    truth: str
    """What the record says; empty where it has nothing to compare with."""
    cell: str

    @property
    def is_wrong(self) -> bool:
        """Whether the record says something else."""
        return bool(self.truth) and self.truth != self.value


def extract_relations(text: str, game: Game) -> Iterator[Relation]:
    """The relations of a report, sentence by sentence: counts, wins and losses, days, people that nobody lists."""
    for sentence in parse_sentences(text, game):
        yield from _count_relations(sentence, game)
        yield from _win_loss_relations(sentence)
        yield from _day_relations(sentence, game)
        yield from _unknown_player_relations(sentence, text, game)


def _count_relations(sentence: Sentence, game: Game) -> Iterator[Relation]:
    for number, at in _number_statistic_pairs(sentence):
        entity = nearest_entity(sentence, number)
        word, statistic = sentence.words[number], sentence.words[at].value
        if entity is None or not isinstance(word.value, int):
            continue
        field = record_field(entity, statistic)
        value = record_value(entity, field)
        truth, cell = ("", "") if value is None else (str(value), f"{field} of {entity}")
        yield Relation(str(entity), str(word.value), statistic, word.start, word.end, "number", truth, cell)


def _number_statistic_pairs(sentence: Sentence) -> Iterator[tuple[int, int]]:
    """Numbers of the words that are a count and what is counted: `24 - point` is both."""
    for number in sentence.indices_with_code("N"):
        for at in range(number + 1, min(number + _MAX_WORD_DISTANCE, len(sentence.words))):
            code = sentence.words[at].code
            if code.startswith("S") and sentence.words[at].value:
                yield number, at
            if code != "-":
                break


def nearest_entity(sentence: Sentence, at: int) -> Player | Team | None:
    """The player or team of the game whose name stands nearest to a word; of two as near, the one before it."""
    named = [
        (abs(other - at), other > at, word.value[0])
        for other, word in enumerate(sentence.words)
        if word.code in "PTCH" and word.value and isinstance(word.value[0], Player | Team)
    ]
    return min(named, key=lambda mention: mention[:2])[2] if named else None


def _win_loss_relations(sentence: Sentence) -> Iterator[Relation]:
    """Wins and losses: `Gulls ( 32 - 18 )`."""
    for match in compile_pattern("record").finditer(sentence.view):
        team = sentence.words[sentence.word_index_by_offset[match.start("t")]].value[0]
        for group, field in (("won", "TEAM-WINS"), ("lost", "TEAM-LOSSES")):
            word = sentence.words[sentence.word_index_by_offset[match.start(group)]]
            value = record_value(team, field)
            if value is not None:
                cell = f"{field} of {team}"
                yield Relation(str(team), str(word.value), field, word.start, word.end, "number", str(value), cell)


def _day_relations(sentence: Sentence, game: Game) -> Iterator[Relation]:
    """The day of the game; a sentence about the next game has another's."""
    if game.date is None or compile_pattern("upcoming").search(sentence.view):
        return
    for at in sentence.indices_with_code("D"):
        word, truth = sentence.words[at], DAYS[game.date.weekday()]
        yield Relation("the game", DAYS[word.value], "day", word.start, word.end, "name", truth, "day")


def _unknown_player_relations(sentence: Sentence, text: str, game: Game) -> Iterator[Relation]:
    """People with a first and a last name whom the record does not list, in a sentence that counts something."""
    if not game.players or not any(word.code.startswith("S") for word in sentence.words):
        return
    for word in sentence.words:
        if word.odd and word.code in "PX":
            name = text[word.start : word.end]
            yield Relation(name, name, "player", word.start, word.end, "name", "nobody of that name", "PLAYER_NAME")


class RelationMetric:
    """Marks every relation of a report that the record contradicts."""

    def __init__(self, protocol: Protocol, options: RelationOptions) -> None:
        missing = [label for label in _LABELS if not protocol.has_label(label)]
        if missing:
            raise FinecombError(f"protocol {protocol.id} has no label {missing[0]!r}; {NAME} needs those of `accuracy`")
        self.protocol = protocol
        self.signature = detector_signature(NAME, protocol, options)

    def __call__(self, document: Document) -> Annotation:
        """Marks of one report; an excluded annotation with the reason where there is no record."""
        game = read_game(document.data)
        found = [relation for relation in extract_relations(document.text, game) if relation.is_wrong] if game else []
        by_place = {(relation.start, relation.end): relation for relation in reversed(found)}
        marks = [self._mark(document, number, by_place[place]) for number, place in enumerate(sorted(by_place), 1)]
        excluded = None if game else Exclusion(by=NAME, reason="not checked: no box score in its data")
        return Annotation(
            id=f"{document.id}/{NAME}",
            document=document.id,
            annotator=NAME,
            protocol=self.protocol.id,
            status="excluded" if excluded else "submitted",
            marks=tuple(marks),
            excluded=excluded,
        )

    def _mark(self, document: Document, number: int, relation: Relation) -> Mark:
        what = f"{relation.value} as its {relation.type}"
        if relation.type not in {"day", "player"} and not relation.type.startswith("TEAM"):
            what = format_count(int(relation.value), relation.type)
        comment = f"The text gives {relation.entity} {what}; the record says {relation.truth} (cell: {relation.cell})."
        correction = {} if relation.type == "player" else {"correction": relation.truth}
        return Mark(
            id=f"{document.id}/{NAME}/{number}",
            spans=(Span(relation.start, relation.end),),
            quotes=(document.text[relation.start : relation.end],),
            label=relation.label,
            answers={**correction, "comment": comment},
            basis="record",
        )


RELATION_METRIC = Factory(
    name=NAME,
    title="relations by nearest mention against the box score, after the metric RG",
    needs="a RotoWire-style record in `data`",
    protocol="accuracy",
    kind="checker",
    options=RelationOptions,
    make=RelationMetric,
)
