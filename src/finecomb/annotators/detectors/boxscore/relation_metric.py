"""The relation metric, a rule-based variant of RG that checks each number against its nearest mention's record.

Wiseman et al. (2017) train a model to link numbers of a text to players and teams, and count how many (entity, value,
type) tuples the record contains. Thomson and Reiter (2020, section 4.7) tested such a metric against their gold
standard. This version links each number to the nearest mention in its sentence and needs no training.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from finecomb.annotators.detectors.base import DetectorFactory, detector_signature
from finecomb.annotators.detectors.boxscore.game import Game, Player, Team, parse_game
from finecomb.annotators.detectors.boxscore.report_parser import (
    WEEKDAYS,
    CodedSentence,
    compile_pattern,
    parse_sentences,
)
from finecomb.annotators.detectors.boxscore.stat_claims import format_count, record_field, record_value
from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Document, Exclusion, Mark
from finecomb.core.span import Span

NAME = "relations"
_LABELS = ("number", "name")
_MAX_WORD_DISTANCE = 3  # maximum distance in words between a number and its statistic


@dataclass(frozen=True, slots=True)
class RelationOptions:
    """Options of the relation metric, which has none."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A value that the text assigns to an entity, with the type of the value."""

    entity: str
    value: str
    type: str
    start: int
    end: int
    label: str
    truth: str
    """Value in the record, empty if the record has none."""
    cell: str

    @property
    def is_wrong(self) -> bool:
        """True if the record has a different value."""
        return bool(self.truth) and self.truth != self.value


def extract_relations(text: str, game: Game) -> Iterator[Relation]:
    """Yield the relations of a report: statistics, wins and losses, days, and people missing from the record."""
    for sentence in parse_sentences(text, game):
        yield from _statistic_relations(sentence)
        for match in compile_pattern("record").finditer(sentence.view):  # `Gulls ( 32 - 18 )`
            team = sentence.words[sentence.word_index_by_offset[match.start("t")]].value[0]
            for group, field in (("won", "TEAM-WINS"), ("lost", "TEAM-LOSSES")):
                word = sentence.words[sentence.word_index_by_offset[match.start(group)]]
                value = record_value(team, field)
                if value is not None:
                    truth, cell = str(value), f"{field} of {team}"
                    yield Relation(str(team), str(word.value), field, word.start, word.end, "number", truth, cell)
        if game.date is not None and not compile_pattern("upcoming").search(sentence.view):
            for index in sentence.indices_with_code("D"):
                word, truth = sentence.words[index], WEEKDAYS[game.date.weekday()]
                yield Relation("the game", WEEKDAYS[word.value], "day", word.start, word.end, "name", truth, "day")
        # People with a first and last name, in sentences with a statistic
        if game.players and any(word.code.startswith("S") for word in sentence.words):
            for word in sentence.words:
                if word.odd and word.code in "PX":
                    name = text[word.start : word.end]
                    yield Relation(name, name, "player", word.start, word.end, "name", "no such player", "PLAYER_NAME")


def _statistic_relations(sentence: CodedSentence) -> Iterator[Relation]:
    """Yield the numbers followed by a statistic, as in `24 - point`, linked to the nearest mention."""
    for number in sentence.indices_with_code("N"):
        named = [
            (abs(index - number), index > number, word.value[0])
            for index, word in enumerate(sentence.words)
            if word.code in "PTCH" and word.value and isinstance(word.value[0], Player | Team)
        ]
        entity = min(named, key=lambda mention: mention[:2])[2] if named else None
        word = sentence.words[number]
        for statistic in sentence.words[number + 1 : number + _MAX_WORD_DISTANCE]:
            is_statistic = statistic.code.startswith("S") and statistic.value
            if is_statistic and entity is not None and isinstance(word.value, int):
                field = record_field(entity, statistic.value)
                value = record_value(entity, field)
                truth, cell = ("", "") if value is None else (str(value), f"{field} of {entity}")
                yield Relation(
                    str(entity), str(word.value), statistic.value, word.start, word.end, "number", truth, cell
                )
            if statistic.code != "-":
                break


class RelationMetric:
    """A detector that marks all relations that contradict the record."""

    def __init__(self, protocol: Protocol, options: RelationOptions) -> None:
        missing = [label for label in _LABELS if not protocol.has_label(label)]
        if missing:
            raise FinecombError(
                f"{NAME} requires the labels of protocol accuracy; label {missing[0]!r} is missing from protocol "
                f"{protocol.id}"
            )
        self.protocol = protocol
        self.signature = detector_signature(NAME, protocol, options)

    def __call__(self, document: Document) -> Annotation:
        """Annotate one report. Without a record, the annotation is excluded with the reason."""
        game = parse_game(document.data)
        wrong_relations = (
            [relation for relation in extract_relations(document.text, game) if relation.is_wrong] if game else []
        )
        by_place = {(relation.start, relation.end): relation for relation in reversed(wrong_relations)}
        marks = [
            self._build_mark(document, number, by_place[place]) for number, place in enumerate(sorted(by_place), 1)
        ]
        excluded = None if game else Exclusion(by=NAME, reason="not checked: the data does not name both teams")
        return Annotation(
            id=f"{document.id}/{NAME}",
            document=document.id,
            annotator=NAME,
            protocol=self.protocol.id,
            status="excluded" if excluded else "submitted",
            marks=tuple(marks),
            excluded=excluded,
        )

    def _build_mark(self, document: Document, number: int, relation: Relation) -> Mark:
        if relation.type == "player":
            comment = f"The record lists no player called {relation.entity} (cell: {relation.cell})."
        else:
            what = f"{relation.value} as {relation.type}"
            if relation.type != "day" and not relation.type.startswith("TEAM"):
                what = format_count(int(relation.value), relation.type)
            comment = (
                f"The text gives {relation.entity} {what}; the record says {relation.truth} (cell: {relation.cell})."
            )
        correction = {} if relation.type == "player" else {"correction": relation.truth}
        return Mark(
            id=f"{document.id}/{NAME}/{number}",
            spans=(Span(relation.start, relation.end),),
            quotes=(document.text[relation.start : relation.end],),
            label=relation.label,
            answers={**correction, "comment": comment},
            basis="record",
        )


RELATION_METRIC = DetectorFactory(
    name=NAME,
    title="relations to the nearest mention, compared with the box score, after the RG metric",
    needs="a RotoWire-style record in `data`",
    protocol="accuracy",
    kind="checker",
    options=RelationOptions,
    make=RelationMetric,
)
