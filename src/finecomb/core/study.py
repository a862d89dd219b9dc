"""Studies: protocols, documents, annotators, annotations and settings, held as data frames and exchanged as records."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, overload

import polars as pl

from finecomb.core import frames
from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Mark, Note, Settings
from finecomb.core.stored_marks import StoredMarks

StudyItem = Settings | Protocol | Document | Annotator | Annotation | Note
"""Record in a stream that makes up a study. Records precede those that refer to them."""


DOCUMENTS_PER_PART = 5_000
"""Documents per part, for studies that are processed in parts because they do not fit into memory."""


class _MarksField:
    """Descriptor for the marks of a study: a frame, or stored marks that are read on first access."""

    @overload
    def __get__(self, study: None, owner: type) -> _MarksField: ...
    @overload
    def __get__(self, study: Study, owner: type) -> pl.DataFrame: ...
    def __get__(self, study: Study | None, owner: type) -> pl.DataFrame | _MarksField:
        if study is None:
            raise AttributeError("marks")  # so that the field has no default
        if isinstance(study.raw_marks, StoredMarks):
            study.__dict__["raw_marks"] = study.raw_marks.read(study.annotations)
        marks: pl.DataFrame = study.__dict__["raw_marks"]
        return marks

    def __set__(self, study: Study, marks: pl.DataFrame | StoredMarks) -> None:
        study.__dict__["raw_marks"] = marks


@dataclass(frozen=True, eq=False)
class Study:
    """Documents with protocols, annotators and annotations. `finecomb.core.frames` lists the columns of the frames."""

    settings: Settings
    protocols: Mapping[str, Protocol]
    """Protocols by name and version, e.g. `snac@2`."""
    documents: pl.DataFrame
    annotators: pl.DataFrame
    annotations: pl.DataFrame
    units: pl.DataFrame
    marks: _MarksField = _MarksField()
    """Marks. Those of a sealed study in Parquet stay on disk until first access; see `iter_parts` and `scan_marks`."""
    raw_marks: ClassVar[pl.DataFrame | StoredMarks]
    """Marks as they are held, without reading them: a frame or stored marks. Each study's value is set by `marks`."""
    notes: tuple[str, ...] = ()
    """Notes of the importer about the source."""
    origin: str = field(default="", compare=False)
    """Path that the study was read from, for messages."""

    @classmethod
    def from_items(cls, items: Iterable[StudyItem], origin: str = "") -> Study:
        """Build a study from records in any order."""
        builder = _StudyBuilder()
        for item in items:
            builder.add_record(item)
        built = {
            name: frames.build_frame(columns, builder.rows[name]) for name, columns in frames.COLUMNS_BY_FRAME.items()
        }
        return Study(builder.settings, builder.protocols, **built, notes=tuple(builder.notes), origin=origin)

    def items(self) -> Iterator[StudyItem]:
        """Iterate over all records: settings, protocols, documents, annotators, annotations."""
        yield self.settings
        yield from self.protocols.values()
        yield from self.iter_documents()
        yield from self.iter_annotators()
        yield from self.iter_annotations()

    def iter_documents(self) -> Iterator[Document]:
        """Iterate over the documents as records."""
        return frames.iter_documents(self.documents)

    def iter_first_documents(self, count: int) -> Iterator[Document]:
        """Iterate over the first `count` documents as records."""
        return frames.iter_documents(self.documents.head(count))

    def iter_annotators(self) -> Iterator[Annotator]:
        """Iterate over the annotators as records."""
        return frames.iter_annotators(self.annotators)

    def iter_annotations(self) -> Iterator[Annotation]:
        """Iterate over the annotations as records, with their marks and units."""
        return frames.iter_annotations(self.annotations, self.marks, self.units)

    def iter_marks(self) -> Iterator[Mark]:
        """Iterate over the marks as records, one at a time and without their annotations."""
        return frames.iter_marks(self.marks)

    def __iter__(self) -> Iterator[StudyItem]:
        return self.items()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Study):
            return NotImplemented
        same = self.settings == other.settings and self.protocols == other.protocols
        return same and all(getattr(self, name).equals(getattr(other, name)) for name in frames.COLUMNS_BY_FRAME)

    __hash__ = None  # type: ignore[assignment]

    def document(self, id: str) -> Document:
        """Return the document with this ID; the error for an unknown ID names the closest one."""
        rows = self.documents.filter(pl.col("id") == id)
        if rows.is_empty():
            raise FinecombError(f"unknown document ID {id!r}{did_you_mean(id, self.documents['id'])}")
        return next(frames.iter_documents(rows))

    def annotations_on(self, document: str) -> list[Annotation]:
        """Return all annotations of one document as records."""
        tables = [table.filter(pl.col("document") == document) for table in (self.annotations, self.marks, self.units)]
        return list(frames.iter_annotations(*tables))

    def protocol(self, name: str = "") -> Protocol:
        """Return the protocol with this name (with or without version); without a name, the study's only protocol."""
        named = [protocol for protocol in self.protocols.values() if name in ("", protocol.name, protocol.id)]
        if len(named) == 1:
            (protocol,) = named
            return protocol.with_mode(self.settings.mode if protocol.has_mode(self.settings.mode) else "")
        if not named:
            called = f" {name!r}{did_you_mean(name, self.protocols)}" if name else "; add one"
            raise FinecombError(f"the study has no protocol{called}")
        listed = ", ".join(protocol.id for protocol in named)
        what = f"versions of protocol {name!r}" if name else "protocols"
        raise FinecombError(f"the study has {len(named)} {what} ({listed}); select one with {param('protocol')}")

    def filter_annotations(self, annotations: pl.Expr) -> Study:
        """Return the study with only the selected annotations, their marks and their units; documents are kept."""
        chosen = self.annotations.filter(annotations)
        if len(chosen) == len(self.annotations):
            return self  # all annotations are selected, so all marks and units are kept
        inside = pl.col("annotation").is_in(chosen["id"].implode())
        marks = (
            self.raw_marks.for_partial_study()
            if isinstance(self.raw_marks, StoredMarks)
            else self.raw_marks.filter(inside)
        )
        return replace(self, annotations=chosen, marks=marks, units=self.units.filter(inside))

    def scan_marks(self) -> pl.LazyFrame:
        """Return a lazy frame of the marks, in no particular order."""
        marks = self.raw_marks
        return marks.scan(self.annotations) if isinstance(marks, StoredMarks) else marks.lazy()

    def with_documents(self, documents: pl.DataFrame) -> Study:
        """Return the study with other documents and the same marks."""
        return replace(self, documents=documents, marks=self.raw_marks)

    def with_labels(self, label: pl.Expr) -> Study:
        """Return the study with other labels on the same marks."""
        marks = self.raw_marks
        renamed = marks.with_labels(label) if isinstance(marks, StoredMarks) else marks.with_columns(label=label)
        return replace(self, marks=renamed)

    def with_annotations(self, annotations: Study | Iterable[Annotation | Annotator]) -> Study:
        """Return the study with additional annotations, validated; missing annotators are added.

        Parameters
        ----------
        annotations : Study or iterable of Annotation and Annotator
            A study also contributes its annotators and protocols. An unknown annotator becomes a person.

        Raises
        ------
        StudyError
            If an annotation is invalid, e.g. an unknown text, label or protocol, or a duplicate ID.

        Examples
        --------
        >>> import finecomb as fc
        >>> study = fc.demo()
        >>> study.where('annotator != "truth"').with_annotations(study.where("annotator=truth"))
        Study('Saltby: the demo study': 16 documents, 96 annotations, 307 marks; scarecrow@2)
        """
        from finecomb.core.study_checks import check_items  # imported here because it imports this module

        records: list[StudyItem] = list(annotations.items() if isinstance(annotations, Study) else annotations)
        people = {record.id: record for record in records if isinstance(record, Annotator)}
        added = [record for record in records if isinstance(record, Annotation)]
        used = dict.fromkeys(annotation.annotator for annotation in added)
        annotators = [people.get(id) or Annotator(id=id, kind="human") for id in used]
        new_protocols = [record for record in records if isinstance(record, Protocol)]
        items = check_items(merge_work(self, [*new_protocols, *annotators, *added]))
        return replace(Study.from_items(items, self.origin), notes=self.notes)

    def where(self, *conditions: str) -> Study:
        """Return the part of the study that meets all conditions, without unused documents and annotators.

        Examples
        --------
        >>> import finecomb as fc
        >>> fc.demo().where("model=human")
        Study('Saltby: the demo study': 4 documents, 24 annotations, 10 marks; scarecrow@2)
        """
        subset = importlib.import_module(
            "finecomb.statistics.selection.subset"
        )  # imported here because it is in a higher layer
        condition = subset.join_conditions(conditions)
        part: Study = subset.extract_substudy(self, condition) if condition else self
        return part

    def by(self, field: str) -> dict[str, Study]:
        """Split the study by a field of its texts, annotators, annotations or marks; return one part per value.

        Records without a value of the field are in no part.

        Examples
        --------
        >>> import finecomb as fc
        >>> {model: len(part.documents) for model, part in fc.demo().by("model").items()}
        {'comb-large': 4, 'comb-medium': 4, 'comb-small': 4, 'human': 4}
        """
        subset = importlib.import_module(
            "finecomb.statistics.selection.subset"
        )  # imported here because it is in a higher layer
        parts: dict[str, Study] = subset.split_study(self, field)
        return parts

    def iter_parts(self) -> Iterator[Study]:
        """Split the study into parts of `DOCUMENTS_PER_PART` documents, each with its annotations, marks and units."""
        if len(self.documents) <= DOCUMENTS_PER_PART:
            yield self
            return
        for documents in self.documents.iter_slices(DOCUMENTS_PER_PART):
            inside = pl.col("document").is_in(documents["id"].implode())
            yield self.filter_annotations(inside).with_documents(documents)

    def submitted_work(self) -> Study:
        """Return the work that statistics use: submitted annotations, without excluded annotations and annotators."""
        excluded = self.annotators.filter(pl.col("excluded").is_not_null())["id"]
        return self.filter_annotations(
            (pl.col("status") == "submitted")
            & (pl.col("phase") == "work")
            & pl.col("excluded").is_null()
            & ~pl.col("annotator").is_in(excluded.implode())
        )

    @functools.cached_property
    def spans(self) -> pl.DataFrame:
        """One row per located span: mark, annotation, document, annotator, protocol, label, part, start, end."""
        owner = ["annotation", "document", "annotator", "protocol", "label"]
        located = self.marks.filter(pl.col("spans").list.len() > 0)
        return located.select(pl.col("id").alias("mark"), *owner, "spans").explode("spans").unnest("spans")

    @functools.cached_property
    def answers(self) -> pl.DataFrame:
        """Long frame with one row per answer, or per option of a multiple choice.

        Columns: of (mark, unit or annotation), id, annotation, document, annotator, label, question, number, text.
        """
        rows = [
            *_answer_rows("annotation", self.annotations),
            *_answer_rows("mark", self.marks),
            *_answer_rows("unit", self.units),
        ]
        names = ["of", "id", "annotation", "document", "annotator", "label", "question"]
        kinds = dict.fromkeys(names, pl.String) | {"number": pl.Float64, "text": pl.String}
        return pl.DataFrame(rows, schema=kinds, orient="row")

    def __repr__(self) -> str:
        counts = f"{len(self.documents)} documents, {len(self.annotations)} annotations, {len(self.marks)} marks"
        title = self.settings.title or self.origin
        return f"Study({title!r}: {counts}; {', '.join(self.protocols) or 'no protocol'})"

    def _repr_html_(self) -> str:
        return str(
            importlib.import_module("finecomb.reporting.marked_text").study_html(self)
        )  # imported here because it is in a higher layer


def document_meta_names(study: Study) -> list[str]:
    """Return the names of document meta fields that `--by` accepts."""
    return frames.json_entry_names(study.documents["meta"])


def annotator_field_names(study: Study) -> list[str]:
    """Return the names of annotator meta and survey answers that `--by` accepts."""
    names = (frames.json_entry_names(study.annotators[column]) for column in ("meta", "survey"))
    return list(dict.fromkeys(name for listed in names for name in listed))


ANNOTATOR_FIELDS = ("kind", "condition", "cell", "platform")
DESIGN_FACTOR_PREFIX = "cell."
"""Prefix of design factors: `cell.model` is the model of the cell that an annotator was assigned to."""


def design_factor_names(study: Study) -> list[str]:
    """Return the names of the design factors of annotators' cells, in the form that `--by` and `--where` accept."""
    return [f"{DESIGN_FACTOR_PREFIX}{name}" for name in frames.json_entry_names(study.annotators["factors"])]


def annotation_rows_with_groups(study: Study, by: Sequence[str]) -> pl.DataFrame:
    """Return one row per annotation with the columns annotation, document, annotator and `by`.

    A `by` column can be a column of annotations, a field of annotators, document meta, or annotators' meta and survey
    answers.
    """
    columns = ("annotator", "document", "protocol", "round", "status", "phase")
    frame = study.annotations.select("id", *columns)
    names = frames.json_entry_names(study.documents["meta"])
    further = [name for name in by if name not in (*names, *columns, *ANNOTATOR_FIELDS)]
    of_cells = [name for name in further if name in design_factor_names(study)]
    traits = [name for name in further if name in annotator_field_names(study) and name not in of_cells]
    kinds = study.annotators.select(
        pl.col("id").alias("annotator"),
        *ANNOTATOR_FIELDS,
        *(frames.json_entry("factors", name.removeprefix(DESIGN_FACTOR_PREFIX)).alias(name) for name in of_cells),
        # an entry of the annotator's meta or, if it is missing there, of the survey
        *(pl.coalesce(frames.meta_entry(name), frames.json_entry("survey", name)).alias(name) for name in traits),
    )
    meta_columns = [name for name in by if name not in (*columns, *ANNOTATOR_FIELDS, *of_cells, *traits)]
    for name in meta_columns:
        if name not in names:
            if study.annotations.is_empty():
                raise ParameterError(f"{param('by', name)}: the study has no annotations to group", parameter="by")
            of_annotators = [*design_factor_names(study), *annotator_field_names(study)]
            near = did_you_mean(name, [*names, *columns, *ANNOTATOR_FIELDS, *of_annotators])
            raise ParameterError(f"{param('by', name)}: unknown column{near}", parameter="by")
    texts = study.documents.select(pl.col("id").alias("document"), *[frames.meta_entry(name) for name in meta_columns])
    joined = frame.join(kinds, on="annotator", how="left").join(texts, on="document", how="left")
    return joined.select(pl.col("id").alias("annotation"), *dict.fromkeys(["document", "annotator", *by]))


def merge_work(study: Study, records: Iterable[StudyItem], *, replace: bool = False) -> list[StudyItem]:
    """Return a study's records together with the protocols, annotators and annotations in `records`.

    With `replace`, they replace the study's records with the same ID, e.g. after another run of a model, and documents
    and settings count as well. Otherwise the study keeps its own protocols and annotators, and every annotation is
    added; `check_items` finds duplicate IDs.
    """
    settings, protocols = study.settings, dict(study.protocols)
    documents = {document.id: document for document in study.iter_documents()}
    annotators = {annotator.id: annotator for annotator in study.iter_annotators()}
    annotations = list(study.iter_annotations())
    rows = {annotation.id: row for row, annotation in enumerate(annotations)}
    for record in records:
        match record:
            case Protocol() if replace or record.id not in protocols:
                protocols[record.id] = record
            case Annotator() if replace or record.id not in annotators:
                annotators[record.id] = record
            case Settings() if replace:
                settings = record
            case Document() if replace:
                documents[record.id] = record
            case Annotation() if replace and record.id in rows:
                annotations[rows[record.id]] = record
            case Annotation():
                rows[record.id] = len(annotations)
                annotations.append(record)
    listed = tuple(dict.fromkeys([*settings.protocols, *protocols]))
    settings = settings.model_copy(update={"protocols": listed})
    return [settings, *protocols.values(), *documents.values(), *annotators.values(), *annotations]


def _answer_rows(of: str, frame: pl.DataFrame) -> Iterator[tuple[object, ...]]:
    for row in frame.filter(pl.col("answers").is_not_null()).iter_rows(named=True):
        id = row.get("id") or f"{row['annotation']}:{row['start']}-{row['end']}"
        owner = (
            of,
            id,
            row.get("annotation", row["id"] if of == "annotation" else None),
            row["document"],
            row["annotator"],
            row.get("label"),
        )
        for question, answer in frames.parse_json_object(row["answers"]).items():
            values = answer if isinstance(answer, list) else [answer]
            for value in values:
                number = float(value) if isinstance(value, int | float) else None
                text = value if isinstance(value, str) else None
                yield (*owner, question, number, text)


class _StudyBuilder:
    """Mutable collector of the rows of a new study, because `Study` is immutable."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.protocols: dict[str, Protocol] = {}
        self.notes: list[str] = []
        self.rows: dict[str, list[tuple[object, ...]]] = {name: [] for name in frames.COLUMNS_BY_FRAME}

    def add_record(self, item: StudyItem) -> None:
        match item:
            case Annotation():
                self.rows["annotations"].append(frames.annotation_row(item))
                self.rows["marks"] += [frames.mark_row(mark, item) for mark in item.marks]
                self.rows["units"] += [frames.unit_row(unit, item) for unit in item.units]
            case Document():
                self.rows["documents"].append(frames.document_row(item))
            case Annotator():
                self.rows["annotators"].append(frames.annotator_row(item))
            case Protocol():
                self.protocols[item.id] = item
            case Settings():
                self.settings = item
            case Note():
                self.notes.append(item.text)
