"""A new study from texts: settings, design, the records behind the texts, and what to do with empty texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from finecomb.annotators.detectors.boxscore.game_record import game_problem
from finecomb.core.design import design_cells
from finecomb.core.errors import FinecombError, ParameterError, param
from finecomb.core.notes import ParameterNote
from finecomb.core.protocol import Protocol
from finecomb.core.protocol_text import parse_yaml
from finecomb.core.records import Annotation, Design, Document, Settings
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check_items
from finecomb.formats.study_problems import describe_empty_texts, is_empty
from finecomb.formats.text_evidence import attach_evidence, read_evidence
from finecomb.statistics.measures.numeric_answers import unusable_severity_warnings

EmptyTexts = Literal["keep", "drop", "refuse"]


@dataclass(frozen=True, slots=True)
class NewStudySources:
    """Where the parts of a new study come from."""

    documents: str
    """Name of the source of the texts, for messages."""
    data: Sequence[Path] = ()
    """Files with the records behind the texts."""
    settings: Path | None = None
    """YAML with more settings than those given."""
    empty: EmptyTexts = "keep"
    """What to do with texts without words."""


def create_study(
    items: Sequence[StudyItem], protocol: Protocol, given: Mapping[str, object], sources: NewStudySources
) -> tuple[Study, list[str]]:
    """Return a study of the texts among `items`, and what there is to say; `given` are settings that come first."""
    notes: list[str] = []
    read_texts = [item for item in items if isinstance(item, Document)]
    texts = _handle_empty_texts(_attach_data(read_texts, sources.data, protocol, notes), sources, notes)
    if not texts:
        raise FinecombError(f"{sources.documents}: has no texts; a study needs at least one")
    base = read_settings(sources.settings) if sources.settings else Settings()
    annotators = {"annotators": base.annotators or protocol.work.annotators}
    settings = base.model_copy(update={**annotators, **given, "protocols": (protocol.id,)})
    notes += unusable_severity_warnings(protocol)
    if _lacks_currency(settings):
        missing = "nothing says in which currency people are paid"
        notes.append(f"{sources.settings}: {missing}; {settings.effective_currency} is taken")
    if annotations := sum(isinstance(item, Annotation) for item in items):
        kept = "use `finecomb convert` to keep them"
        notes.append(f"{annotations:,} annotations in {sources.documents} were left behind; {kept}")
    return Study.from_items(check_items([settings, protocol, *texts])), notes


def _attach_data(
    texts: Sequence[Document], paths: Sequence[Path], protocol: Protocol, notes: list[str]
) -> list[Document]:
    """Return texts with the records behind them; a broken record is refused before anybody is asked to read it."""
    if paths and not protocol.work.data:
        problem = f"{protocol.id} shows no data beside the text; leave it out, or set work.data in it"
        raise ParameterError(f"{param('data')}: {problem}", parameter="data")
    match = attach_evidence(texts, read_evidence(paths))
    if paths:
        notes += match.notes
    for text in match.documents if protocol.work.data else ():
        if problem := game_problem(text.data):
            raise FinecombError(f"the record of {text.id} is not a box score: {problem}")
    return list(match.documents)


def _handle_empty_texts(texts: list[Document], sources: NewStudySources, notes: list[str]) -> list[Document]:
    """Return the texts to start with; empty ones are noted, and kept, dropped or refused."""
    empty = [text.id for text in texts if is_empty(text)]
    if not empty:
        return texts
    words, cure = describe_empty_texts(empty), f"{param('empty', 'drop')} leaves them out"
    if sources.empty == "refuse":
        raise ParameterError(f"{sources.documents}: {words}; {cure}", parameter="empty")
    if sources.empty == "keep":
        notes.append(ParameterNote(f"{words}: they are kept; {cure}"))
        return texts
    notes.append(f"{words}: they are left out")
    return [text for text in texts if not is_empty(text)]


def read_settings(path: Path) -> Settings:
    """Return settings from a YAML file like `study.yaml`."""
    try:
        return parse_yaml(Settings, path.read_text(encoding="utf-8-sig"), str(path))
    except OSError as error:
        raise FinecombError(f"{path}: cannot be read: {error.strerror}") from None


def read_design(path: Path) -> Design:
    """Return a design from its YAML file."""
    if not path.is_file():
        raise ParameterError(f"{param('design', path)}: no such file", parameter="design")
    return parse_yaml(Design, path.read_text(encoding="utf-8"), str(path))


def _lacks_currency(settings: Settings) -> bool:
    """Return whether people are paid in a currency that nobody has named."""
    pays = bool(settings.price or settings.base_pay)
    is_named = "currency" in settings.model_fields_set or bool(settings.design and settings.design.currency)
    return pays and not is_named


def describe_annotators(settings: Settings, protocol: Protocol) -> str:
    """Return who is to annotate: the people of a design's cells, else how many per text."""
    if settings.design is None:
        count = settings.annotators or protocol.work.annotators
        return f"{count:,} annotator{'' if count == 1 else 's'} per text"
    cells = design_cells(settings.design, protocol)
    people = sum(cell.people for cell in cells)
    noun = "person" if people == 1 else "people"
    return f"{people:,} accepted {noun} in {len(cells):,} cell{'' if len(cells) == 1 else 's'}"
