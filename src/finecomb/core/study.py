"""A study: protocols, documents, annotators, annotations and settings, as frames; records are the door."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import overload

import polars as pl

from finecomb.core import frames
from finecomb.core.errors import FinecombError, did_you_mean, param
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Mark, Note, Settings
from finecomb.core.stored_marks import StoredMarks

StudyItem = Settings | Protocol | Document | Annotator | Annotation | Note
"""What a study is made of when it is read or written as a stream. Whatever is named comes before what names it."""


DOCUMENTS_PER_PART = 5_000
"""Documents of a study that are worked on at a time where all of them would not fit into memory."""


class _MarksField:
    """The marks of a study: a frame, or where they are stored; those are read when first asked for."""

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
    """Everything known about one set of texts. The columns of its frames are listed in `finecomb.core.frames`."""

    settings: Settings
    protocols: Mapping[str, Protocol]
    """By name and version, e.g. `snac@2`."""
    documents: pl.DataFrame
    annotators: pl.DataFrame
    annotations: pl.DataFrame
    units: pl.DataFrame
    marks: _MarksField = _MarksField()
    """Of a sealed study in Parquet they stay on disk until they are asked for; see `parts` and `scan_marks`."""
    notes: tuple[str, ...] = ()
    """What a reader had to say about the source."""
    origin: str = field(default="", compare=False)
    """The path it was read from, for messages."""

    @classmethod
    def from_items(cls, items: Iterable[StudyItem], origin: str = "") -> Study:
        """Take records in any order and put them into frames."""
        builder = _Builder()
        for item in items:
            builder.add(item)
        return builder.study(origin)

    def items(self) -> Iterator[StudyItem]:
        """Its records: settings, protocols, documents, annotators, annotations."""
        yield self.settings
        yield from self.protocols.values()
        yield from self.iter_documents()
        yield from self.iter_annotators()
        yield from self.iter_annotations()

    def iter_documents(self) -> Iterator[Document]:
        """Its documents as records."""
        return frames.iter_documents(self.documents)

    def iter_documents_head(self, count: int) -> Iterator[Document]:
        """Its first documents as records."""
        return frames.iter_documents(self.documents.head(count))

    def iter_annotators(self) -> Iterator[Annotator]:
        """Its annotators as records."""
        return frames.iter_annotators(self.annotators)

    def iter_annotations(self) -> Iterator[Annotation]:
        """Its annotations as records, marks and units inside."""
        return frames.iter_annotations(self.annotations, self.marks, self.units)

    def iter_marks(self) -> Iterator[Mark]:
        """Its marks as records, one at a time and without their annotations."""
        return frames.iter_marks(self.marks)

    def __iter__(self) -> Iterator[StudyItem]:
        return self.items()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Study):
            return NotImplemented
        same = self.settings == other.settings and self.protocols == other.protocols
        return same and all(getattr(self, name).equals(getattr(other, name)) for name in frames.FRAMES)

    __hash__ = None  # type: ignore[assignment]

    def document(self, id: str) -> Document:
        """The document with that id; an error that names the nearest otherwise."""
        rows = self.documents.filter(pl.col("id") == id)
        if rows.is_empty():
            raise FinecombError(f"no document has the id {id!r}{did_you_mean(id, self.documents['id'])}")
        return next(frames.iter_documents(rows))

    def annotations_on(self, document: str) -> list[Annotation]:
        """All annotations of one document, as records."""
        tables = [table.filter(pl.col("document") == document) for table in (self.annotations, self.marks, self.units)]
        return list(frames.iter_annotations(*tables))

    def protocol(self, name: str = "") -> Protocol:
        """The protocol called `name` (with or without version); without a name, the only one there is."""
        named = [protocol for protocol in self.protocols.values() if name in ("", protocol.name, protocol.id)]
        if len(named) == 1:
            (protocol,) = named
            return protocol.in_mode(self.settings.mode if protocol.has_mode(self.settings.mode) else "")
        if not named:
            called = f" {name!r}{did_you_mean(name, self.protocols)}" if name else ""
            raise FinecombError(f"the study has no protocol{called}")
        listed = ", ".join(protocol.id for protocol in named)
        raise FinecombError(f"the study has {len(named)} protocols ({listed}); say which one with {param('protocol')}")

    def filter_annotations(self, annotations: pl.Expr) -> Study:
        """The study with only those annotations, their marks and their units; documents and annotators stay."""
        chosen = self.annotations.filter(annotations)
        if len(chosen) == len(self.annotations):
            return self  # marks and units name annotations of the study, so all of theirs stay
        inside = pl.col("annotation").is_in(chosen["id"].implode())
        marks = (
            self.raw_marks.as_partial() if isinstance(self.raw_marks, StoredMarks) else self.raw_marks.filter(inside)
        )
        return replace(self, annotations=chosen, marks=marks, units=self.units.filter(inside))

    @property
    def raw_marks(self) -> pl.DataFrame | StoredMarks:
        """The marks as they are: in memory, or where they are stored."""
        marks: pl.DataFrame | StoredMarks = self.__dict__["raw_marks"]
        return marks

    def scan_marks(self) -> pl.LazyFrame:
        """The marks to be counted without holding them; in no particular order."""
        marks = self.raw_marks
        return marks.scan(self.annotations) if isinstance(marks, StoredMarks) else marks.lazy()

    def with_documents(self, documents: pl.DataFrame) -> Study:
        """The study with other documents; marks stay where they are."""
        return replace(self, documents=documents, marks=self.raw_marks)

    def with_labels(self, label: pl.Expr) -> Study:
        """The study with other labels of its marks, which stay where they are."""
        marks = self.raw_marks
        renamed = marks.with_labels(label) if isinstance(marks, StoredMarks) else marks.with_columns(label=label)
        return replace(self, marks=renamed)

    def with_annotations(self, annotations: Study | Iterable[Annotation | Annotator]) -> Study:
        """Return the study with more annotations of its texts, checked; annotators that it lacks are added.

        Parameters
        ----------
        annotations : Study or iterable of Annotation and Annotator
            A study brings its annotators and protocols along. An annotator of whom nothing is known becomes a person.

        Raises
        ------
        StudyError
            If an annotation does not fit: a text, label or protocol that is unknown, or an id that is taken.

        Examples
        --------
        >>> import finecomb as fc
        >>> study = fc.demo()
        >>> study.where('annotator != "truth"').with_annotations(study.where("annotator=truth"))
        Study('Saltby: the demo study': 16 documents, 96 annotations, 307 marks; scarecrow@2)
        """
        from finecomb.core.study_checks import check_items  # which imports this module

        records = list(annotations.items() if isinstance(annotations, Study) else annotations)
        added = [record for record in records if isinstance(record, Annotation)]
        people = {record.id: record for record in records if isinstance(record, Annotator)}
        protocols = {record.id: record for record in records if isinstance(record, Protocol)} | dict(self.protocols)
        present = set(self.annotators["id"])
        missing = [
            people.get(id) or Annotator(id=id, kind="human")
            for id in dict.fromkeys(annotation.annotator for annotation in added)
            if id not in present
        ]
        used = tuple(dict.fromkeys([*self.settings.protocols, *(annotation.protocol for annotation in added)]))
        settings = self.settings.model_copy(update={"protocols": used})
        before: list[StudyItem] = [*self.iter_documents(), *self.iter_annotators(), *missing, *self.iter_annotations()]
        items = check_items([settings, *protocols.values(), *before, *added])
        return replace(Study.from_items(items, self.origin), notes=self.notes)

    def where(self, *conditions: str) -> Study:
        """Return the part of the study for which all conditions hold, without the texts and annotators that fell out.

        Examples
        --------
        >>> import finecomb as fc
        >>> fc.demo().where("model=human")
        Study('Saltby: the demo study': 4 documents, 24 annotations, 10 marks; scarecrow@2)
        """
        subset = importlib.import_module("finecomb.statistics.selection.subset")  # a higher layer
        condition = subset.join_conditions(conditions)
        part: Study = subset.extract_substudy(self, condition) if condition else self
        return part

    def by(self, field: str) -> dict[str, Study]:
        """Return the part of the study for each value of a field of its texts, annotators, annotations or marks.

        What has no value of the field is in no part.

        Examples
        --------
        >>> import finecomb as fc
        >>> {model: len(part.documents) for model, part in fc.demo().by("model").items()}
        {'comb-large': 4, 'comb-medium': 4, 'comb-small': 4, 'human': 4}
        """
        subset = importlib.import_module("finecomb.statistics.selection.subset")  # a higher layer
        parts: dict[str, Study] = subset.split_study(self, field)
        return parts

    def parts(self) -> Iterator[Study]:
        """The study in parts of `PART` documents, in their order, each with its annotations, marks and units."""
        if len(self.documents) <= DOCUMENTS_PER_PART:
            yield self
            return
        for documents in self.documents.iter_slices(DOCUMENTS_PER_PART):
            inside = pl.col("document").is_in(documents["id"].implode())
            yield self.filter_annotations(inside).with_documents(documents)

    def submitted_work(self) -> Study:
        """What statistics read: submitted work, without excluded annotations and annotators."""
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
        """One row per answer (per choice, where several were chosen), long.

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
        return str(importlib.import_module("finecomb.reporting.marked_text").study_html(self))  # a higher layer


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


class _Builder:
    """Collects rows; kept apart so that a Study itself never changes."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.protocols: dict[str, Protocol] = {}
        self.notes: list[str] = []
        self.rows: dict[str, list[tuple[object, ...]]] = {name: [] for name in frames.FRAMES}

    def add(self, item: StudyItem) -> None:
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

    def study(self, origin: str) -> Study:
        built = {name: frames.build_frame(columns, self.rows[name]) for name, columns in frames.FRAMES.items()}
        return Study(self.settings, self.protocols, **built, notes=tuple(self.notes), origin=origin)
