"""Creation of a study from texts: settings, design, source data of the texts, and handling of empty texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from finecomb.annotators.detectors.boxscore.game_record import game_record_problem
from finecomb.core.design import design_cells
from finecomb.core.errors import FinecombError, ParameterError, param
from finecomb.core.notes import ParameterNote
from finecomb.core.protocol import Protocol
from finecomb.core.protocol_yaml import parse_yaml
from finecomb.core.records import Annotation, Design, Document, Settings
from finecomb.core.study import Study, StudyItem
from finecomb.core.study_checks import check_items
from finecomb.formats.study_problems import describe_empty_texts, is_empty_document
from finecomb.formats.text_evidence import attach_evidence, read_evidence
from finecomb.statistics.measures.numeric_answers import unusable_severity_warnings

EmptyTexts = Literal["keep", "drop", "refuse"]


@dataclass(frozen=True, slots=True)
class NewStudySources:
    """Sources of a new study."""

    documents: str
    """Name of the source of the texts, for messages."""
    data: Sequence[Path] = ()
    """Files with the source data of the texts."""
    settings: Path | None = None
    """YAML file with additional settings."""
    empty: EmptyTexts = "keep"
    """Handling of texts without words."""


def create_study(
    items: Sequence[StudyItem], protocol: Protocol, given: Mapping[str, object], sources: NewStudySources
) -> tuple[Study, list[str]]:
    """Create a study from the texts among `items` and return it with notes; `given` settings take precedence."""
    notes: list[str] = []
    read_texts = [item for item in items if isinstance(item, Document)]
    texts = _handle_empty_texts(_attach_data(read_texts, sources.data, protocol, notes), sources, notes)
    if not texts:
        raise FinecombError(f"{sources.documents}: contains no texts; a study requires at least one")
    base = read_settings_file(sources.settings) if sources.settings else Settings()
    annotators = {"annotators": base.annotators or protocol.work.annotators}
    settings = base.model_copy(update={**annotators, **given, "protocols": (protocol.id,)})
    notes += unusable_severity_warnings(protocol)
    pays = bool(settings.price or settings.base_pay)
    is_named = "currency" in settings.model_fields_set or bool(settings.design and settings.design.currency)
    if pays and not is_named:
        missing = "the pay currency is missing"
        notes.append(f"{sources.settings}: {missing}; {settings.effective_currency} is used")
    if annotations := sum(isinstance(item, Annotation) for item in items):
        kept = "use `finecomb convert` to keep them"
        notes.append(f"{annotations:,} annotations in {sources.documents} were not copied; {kept}")
    return Study.from_items(check_items([settings, protocol, *texts])), notes


def _attach_data(
    texts: Sequence[Document], paths: Sequence[Path], protocol: Protocol, notes: list[str]
) -> list[Document]:
    """Return texts with their data; an invalid record is rejected before anyone annotates the text."""
    if paths and not protocol.work.data:
        problem = (
            f"{protocol.id} does not show data next to the text; omit {param('data')}, or set work.data in the protocol"
        )
        raise ParameterError(f"{param('data')}: {problem}", parameter="data")
    match = attach_evidence(texts, read_evidence(paths))
    if paths:
        notes += match.notes
    for text in match.documents if protocol.work.data else ():
        if problem := game_record_problem(text.data):
            raise FinecombError(f"the data of {text.id} is not a box score: {problem}")
    return list(match.documents)


def _handle_empty_texts(texts: list[Document], sources: NewStudySources, notes: list[str]) -> list[Document]:
    """Return the texts for the study; texts without words are noted, and kept, dropped or rejected as requested."""
    empty = [text.id for text in texts if is_empty_document(text)]
    if not empty:
        return texts
    words, cure = describe_empty_texts(empty), f"drop them with {param('empty', 'drop')}"
    if sources.empty == "refuse":
        raise ParameterError(f"{sources.documents}: {words}; {cure}", parameter="empty")
    if sources.empty == "keep":
        notes.append(ParameterNote(f"{words}: kept; {cure}"))
        return texts
    notes.append(f"{words}: dropped")
    return [text for text in texts if not is_empty_document(text)]


def read_settings_file(path: Path) -> Settings:
    """Read settings from a YAML file like `study.yaml`."""
    try:
        return parse_yaml(Settings, path.read_text(encoding="utf-8-sig"), str(path))
    except OSError as error:
        raise FinecombError(f"{path}: cannot be read: {error.strerror}") from None


def read_design_file(path: Path) -> Design:
    """Read a design from its YAML file."""
    if not path.is_file():
        raise ParameterError(f"{param('design', path)}: no such file", parameter="design")
    return parse_yaml(Design, path.read_text(encoding="utf-8"), str(path))


def describe_planned_annotators(settings: Settings, protocol: Protocol) -> str:
    """Describe the planned annotators: the number of people in each cell of the design, or the number per text."""
    if settings.design is None:
        count = settings.annotators or protocol.work.annotators
        return f"{count:,} annotator{'' if count == 1 else 's'} per text"
    cells = design_cells(settings.design, protocol)
    people = sum(cell.people for cell in cells)
    noun = "person" if people == 1 else "people"
    return f"{people:,} accepted {noun} in {len(cells):,} cell{'' if len(cells) == 1 else 's'}"
