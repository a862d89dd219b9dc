"""Reader for tables with one mark per row. The first pass collects texts and labels; the second, annotations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from finecomb import protocols
from finecomb.core.errors import FormatError, ProtocolError, did_you_mean, param, shorten
from finecomb.core.protocol import Protocol
from finecomb.core.question import Question
from finecomb.core.quotes import find_nth_occurrence
from finecomb.core.records import Annotation, Annotator, Antecedents, Document, Mark, Note, check_storable
from finecomb.core.span import TEXT_PART, Span
from finecomb.core.study import StudyItem
from finecomb.core.study_checks import span_problem
from finecomb.formats.base import Options
from finecomb.formats.mark_table import (
    ANNOTATION_COLUMNS,
    ANNOTATOR_COLUMNS,
    ANSWER_COLUMNS,
    ANTECEDENT_COLUMNS,
    MARK_COLUMNS,
    OTHER_PREFIX,
    TEXT_ANSWER_COLUMNS,
    map_column_names,
    parse_cell,
)
from finecomb.formats.source_files import build_implied_protocol, build_record, resolve_label_name

NumberedRow = tuple[int, dict[str, str]]
"""Line or row number in the file, and cells by column name."""
Cells = dict[str, str]
"""Non-empty cells of a row, by standard column name."""

TABLE_OPTIONS = frozenset(["columns", "protocol", "repeats", "annotator"])

_MARK_ROW_COLUMNS = ("mark", "label", "start", "end", "quote", "unlocated")
"""Columns that make a row a mark; a row without them is an annotation or a document."""


def read_records(rows: Callable[[], Iterator[NumberedRow]], path: Path, options: Options) -> Iterator[StudyItem]:
    """Read the protocols, documents, annotators, annotations and notes of a table; `rows` is called twice."""
    table = _MarkTable(rows, path, options)
    survey = _TableSummary(path, options.annotator)
    for line, cells in table.iter_rows():
        survey.add_row(line, cells)
    protocols_by_name = {name: _choose_protocol(name, used, path, options) for name, used in survey.used.items()}
    yield from {protocol.id: protocol for protocol in protocols_by_name.values()}.values()
    documents = {document.id: document for document in survey.build_documents()}
    yield from documents.values()
    for id, facts in survey._annotators.items():
        yield build_record(Annotator, f"{survey.path}: annotator {id!r}", id=id, **({"kind": "human"} | facts.values))
    placer = _QuotePlacer(options.repeats)
    open_: dict[_AnnotationKey, _AnnotationRows] = {}
    for line, cells in table.iter_rows():
        key = survey.annotation_key(cells, line)
        if key is None:
            continue
        work = open_.setdefault(key, _AnnotationRows(f"{path}:{line}", survey))
        work.add_row(cells, f"{path}:{line}")
        if survey.last[key] == line:
            del open_[key]
            protocol = protocols_by_name[cells.get("protocol", "")]
            yield work.build_annotation(
                protocol, documents[cells["document"]], placer, several=len(protocols_by_name) > 1
            )
    yield from placer.notes()


@dataclass(frozen=True)
class _MarkTable:
    """Rows of a file under standard column names."""

    source: Callable[[], Iterator[NumberedRow]]
    path: Path
    options: Options

    def iter_rows(self) -> Iterator[tuple[int, Cells]]:
        """Yield the line and non-empty cells of every row; if there is no column `document`, documents are numbered."""
        ours: dict[str, str] | None = None
        for line, row in self.source():
            if ours is None:
                header = list(row)
                ours = map_column_names(header, self.options.columns, self.path)
                if "document" not in ours.values() and "annotator" in ours.values():
                    raise FormatError(
                        f"{self.path}:1: column 'document' is missing, but required with 'annotator'"
                        f"{did_you_mean('document', header)}; name it with {param('map', 'document=NAME')}"
                    )
            cells = {ours[name]: cell for name, cell in row.items() if cell and name in ours}
            for name, cell in cells.items():
                where = f"{self.path}:{line}"
                try:
                    check_storable(cell)
                except ValueError as error:
                    raise FormatError(f"{where}: column {name.removeprefix(OTHER_PREFIX)!r}: {error}") from None
            for name in _TRIMMED_COLUMNS & cells.keys():
                cells[name] = cells[name].strip()
            cells = {name: cell for name, cell in cells.items() if cell}
            if "document" not in ours.values():
                cells["document"] = f"{self.path.stem.strip() or 'row'}-{line - 1}"
            if cells:
                yield line, cells
        if ours is None:
            raise FormatError(f"{self.path}: the file has no rows; expected a header and at least one row below it")


_TRIMMED_COLUMNS = frozenset(
    [
        *ANNOTATOR_COLUMNS,
        *ANNOTATION_COLUMNS,
        "document",
        *MARK_COLUMNS,
        "start",
        "end",
        "part",
        "antecedent_start",
        "antecedent_end",
    ]
) - {*TEXT_ANSWER_COLUMNS, "severity", "unlocated", "item", "condition", "platform"}


_AnnotationKey = tuple[str, ...]


class _ConsistentValues:
    """Values of one record, collected from rows that must not contradict each other; empty cells are ignored."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.values: dict[str, str] = {}
        self._where: dict[str, str] = {}

    def add_value(self, name: str, value: str, where: str) -> None:
        earlier = self.values.setdefault(name, value)
        first = self._where.setdefault(name, where)
        if earlier != value:
            raise FormatError(
                f"{where}: column {name!r}: {self.what} has {shorten(value, 40)!r} here, "
                f"but {shorten(earlier, 40)!r} at {first}; use the same value in all its rows"
            )


@dataclass
class _ProtocolUsage:
    """Labels used under one protocol, and the types of answers per question about marks and documents."""

    labels: set[str] = field(default_factory=set)
    antecedents: bool = False
    of_marks: dict[str, set[str]] = field(default_factory=dict)
    of_documents: dict[str, set[str]] = field(default_factory=dict)


class _TableSummary:
    """Summary of the first pass: documents, annotators, labels, and the last row of each annotation."""

    def __init__(self, path: Path, annotator: str) -> None:
        self.path, self.annotator = path, annotator
        self.used: dict[str, _ProtocolUsage] = {}
        self.last: dict[_AnnotationKey, int] = {}
        self.varying: set[str] = set()
        self._documents: dict[str, _ConsistentValues] = {}
        self._annotators: dict[str, _ConsistentValues] = {}
        self._others: dict[str, dict[str, str]] = {}

    def add_row(self, line: int, cells: Cells) -> None:
        where = f"{self.path}:{line}"
        who = cells.get("annotator", self.annotator)
        if who:
            facts = self._annotators.setdefault(who, _ConsistentValues(f"annotator {who!r}"))
            for name in ("kind", "condition", "platform"):
                if name in cells:
                    facts.add_value(name, cells[name], where)
        if "document" in cells:
            self._add_document(cells, where)
        elif len(cells.keys() - {"annotator", "kind", "condition", "platform"}) or not who:
            raise FormatError(f"{where}: column 'document' is empty; every row must name its document")
        key = self.annotation_key(cells, line)
        if key is not None:
            self.last[key] = line
            used = self.used.setdefault(cells.get("protocol", ""), _ProtocolUsage())
            if "label" in cells:
                used.labels.add(cells["label"])
            used.antecedents |= any(name in cells for name in ANTECEDENT_COLUMNS)
            of = used.of_marks if _is_mark_row(cells) else used.of_documents
            for question, cell in _answer_cells(cells):
                of.setdefault(question, set()).add(
                    "text" if question in TEXT_ANSWER_COLUMNS else answer_type(parse_cell(cell))
                )

    def _add_document(self, cells: Cells, where: str) -> None:
        id = cells["document"]
        facts = self._documents.setdefault(id, _ConsistentValues(f"document {id!r}"))
        others = self._others.setdefault(id, {})
        for name, cell in cells.items():
            if name == "text" or name.startswith(("context.", "meta.")):
                facts.add_value(name, cell, where)
            elif name.startswith(OTHER_PREFIX) and others.setdefault(name, cell) != cell:
                self.varying.add(name)

    def annotation_key(self, cells: Cells, line: int) -> _AnnotationKey | None:
        """Return the key that the rows of one annotation share; None for a row with only a document or an annotator."""
        who = cells.get("annotator", self.annotator)
        if not who:
            if column := next((name for name in _MARK_ROW_COLUMNS if name in cells), None):
                raise FormatError(
                    f"{self.path}:{line}: this row has {column} {shorten(cells[column], 40)!r} but no annotator; "
                    f"add a column 'annotator' or name the annotator with {param('annotator', 'NAME')}"
                )
            return None
        if "document" not in cells:
            return None
        if "annotation" in cells:
            return (cells["annotation"],)
        return (cells["document"], who, cells.get("protocol", ""), cells.get("round", "0"), cells.get("about", ""))

    def build_documents(self) -> Iterator[Document]:
        """Build the documents; an unknown column becomes meta, unless a document has several values in it."""
        for id, facts in self._documents.items():
            others = {name: cell for name, cell in self._others[id].items() if name not in self.varying}
            meta = {name.removeprefix(OTHER_PREFIX): parse_cell(cell) for name, cell in others.items()}
            meta |= {
                name.removeprefix("meta."): parse_cell(cell) for name, cell in _cells_with_prefix(facts.values, "meta.")
            }
            context = {
                name.removeprefix("context."): cell for name, cell in _cells_with_prefix(facts.values, "context.")
            }
            where = f"{self.path}: document {id!r}"
            yield build_record(Document, where, id=id, text=facts.values.get("text", ""), context=context, meta=meta)


def _cells_with_prefix(cells: Mapping[str, str], prefix: str) -> Iterator[tuple[str, str]]:
    return ((name, cell) for name, cell in cells.items() if name.startswith(prefix))


def _is_mark_row(cells: Cells) -> bool:
    return any(name in cells for name in _MARK_ROW_COLUMNS)


def _answer_cells(cells: Cells) -> Iterator[tuple[str, str]]:
    yield from ((name, cells[name]) for name in ANSWER_COLUMNS if name in cells)
    yield from ((name.removeprefix("answer."), cell) for name, cell in _cells_with_prefix(cells, "answer."))


# --- protocol ------------------------------------------------------------------------------------------------------


def _choose_protocol(name: str, used: _ProtocolUsage, path: Path, options: Options) -> Protocol:
    """Return the user's protocol, a shipped one of that name, or one inferred from labels and answers."""
    given = options.protocol
    if given is not None and name in ("", given.name, given.id):
        return given
    if name.partition("@")[0] in protocols.names():
        try:
            return protocols.load_shipped(name)
        except ProtocolError as error:
            raise FormatError(
                f"{path}: column 'protocol': {error}; name your protocol file with {param('protocol')}"
            ) from None
    bare, _, version = name.partition("@")
    if version and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", version):
        raise FormatError(f"{path}: column 'protocol': {name!r} has an invalid version; expected e.g. 'snac@2'")
    implied = build_implied_protocol(
        bare or path.stem,
        used.labels,
        antecedents=used.antecedents,
        questions=infer_questions(used.of_marks),
        document_questions=infer_questions(used.of_documents),
    )
    return implied.model_copy(update={"version": version or "1"})


_SCALE_BY_ANSWER_TYPE: Mapping[str, Literal["text", "number", "yes-no"]] = {
    "text": "text",
    "number": "number",
    "truth": "yes-no",
}


def infer_questions(kinds: Mapping[str, set[str]]) -> tuple[Question, ...]:
    """Infer a question for each answer name if all its values have the same type and that type has a scale."""
    sure = {
        name: _SCALE_BY_ANSWER_TYPE[next(iter(types))]
        for name, types in kinds.items()
        if len(types) == 1 and types <= {*_SCALE_BY_ANSWER_TYPE}
    }
    named = {name: scale for name, scale in sure.items() if re.fullmatch(r"[a-z][a-z0-9_]*", name)}
    return tuple(Question(name=name, ask=name, scale=scale, required=False) for name, scale in sorted(named.items()))


def answer_type(value: Any) -> str:
    """Return the type of an answer: `truth`, `number`, `text` or `other`."""
    match value:
        case bool():
            return "truth"
        case int() | float():
            return "number"
        case str():
            return "text"
        case _:
            return "other"


def _parse_answers(cells: Cells, questions: Iterable[Question], where: str) -> dict[str, Any]:
    by_name = {question.name: question for question in questions}
    return {name: _parse_answer(name, cell, by_name.get(name), where) for name, cell in _answer_cells(cells)}


def _parse_answer(name: str, cell: str, question: Question | None, where: str) -> Any:
    """Parse a cell according to the scale of its question."""
    if name in TEXT_ANSWER_COLUMNS:
        return cell
    value = parse_cell(cell)
    if question is not None and question.answer_problem(tuple(value) if isinstance(value, list) else value):
        parsed = question.scale_type.parse(question, cell)
        value = value if parsed is None else parsed
    if isinstance(value, list) and all(isinstance(member, str) for member in value):
        return value
    if value is None or isinstance(value, list | dict):
        raise FormatError(
            f"{where}: column {name!r}: expected text, a number, true, false or a list of texts, "
            f"found {shorten(cell, 40)!r}"
        )
    return value


# --- annotations and marks -----------------------------------------------------------------------------------------


class _AnnotationRows:
    """Rows of one annotation."""

    def __init__(self, where: str, survey: _TableSummary) -> None:
        self.where, self.survey = where, survey
        self.facts = _ConsistentValues("the annotation")
        self.plain: list[tuple[Cells, str]] = []
        self.marks: dict[str | int, list[tuple[Cells, str]]] = {}

    def add_row(self, cells: Cells, where: str) -> None:
        self.facts.add_value("annotator", cells.get("annotator", self.survey.annotator), where)
        for name in ("document", *ANNOTATION_COLUMNS):
            if name in cells:
                self.facts.add_value(name, cells[name], where)
        if _is_mark_row(cells):
            self.marks.setdefault(cells.get("mark", len(self.marks)), []).append((cells, where))
        else:
            self.plain.append((cells, where))

    def build_annotation(
        self, protocol: Protocol, document: Document, placer: _QuotePlacer, several: bool
    ) -> Annotation:
        values: dict[str, Any] = dict(self.facts.values) | {"protocol": protocol.id}
        values["id"] = values.pop("annotation", None)
        if not values["id"]:
            round_ = values.get("round", "0")
            parts = (values["document"], values["annotator"], protocol.id if several else "", values.get("about", ""))
            values["id"] = "/".join([*filter(None, parts), *([round_] if round_ != "0" else [])])
        meta: dict[str, Any] = {}
        answers: dict[str, Any] = {}
        for cells, where in self.plain:
            answers |= _parse_answers(cells, protocol.document_questions, where)
            meta |= self._varying_meta(cells)
        placer.seen.clear()
        marks = tuple(
            self._build_mark(
                f"{values['id']}/{number}" if isinstance(name, int) else name, rows, protocol, document, placer
            )
            for number, (name, rows) in enumerate(self.marks.items())
        )
        return build_record(Annotation, self.where, **values, answers=answers, meta=meta, marks=marks)

    def _varying_meta(self, cells: Cells) -> dict[str, Any]:
        others = {name: cell for name, cell in cells.items() if name in self.survey.varying}
        return {name.removeprefix(OTHER_PREFIX): parse_cell(cell) for name, cell in others.items()}

    def _build_mark(
        self, id: str, rows: list[tuple[Cells, str]], protocol: Protocol, document: Document, placer: _QuotePlacer
    ) -> Mark:
        facts, meta = _ConsistentValues(f"mark {id!r}"), dict[str, Any]()
        for cells, where in rows:
            meta |= self._varying_meta(cells)
            for name, cell in cells.items():
                if name in (*MARK_COLUMNS, "antecedent_unlocated") or name.startswith("answer."):
                    facts.add_value(name, cell, where)
        facts_of_mark, where = facts.values, rows[0][1]
        label = (
            resolve_label_name(protocol, facts_of_mark["label"], f"{where}: column 'label'")
            if "label" in facts_of_mark
            else None
        )
        place = _locate_spans(rows, "", facts_of_mark.get("unlocated", ""), document, placer)
        before = _locate_spans(rows, "antecedent_", facts_of_mark.get("antecedent_unlocated", ""), document, placer)
        return build_record(
            Mark,
            where,
            id=id,
            label=label,
            answers=_parse_answers(facts_of_mark, protocol.questions_for_label(label), where),
            antecedents=Antecedents(**before) if before else None,
            **(place or {"spans": (), "quotes": (), "unlocated": placer.count_missing_location()}),
            **{name: facts_of_mark[name] for name in ("confidence", "votes", "item", "basis") if name in facts_of_mark},
            meta=meta,
        )


def _locate_spans(
    rows: list[tuple[Cells, str]], prefix: str, unlocated: str, document: Document, placer: _QuotePlacer
) -> dict[str, Any] | None:
    """Return the fields `spans`, `quotes` and `unlocated` of a mark or its antecedents; None if no row has them."""
    places: list[tuple[Span | None, str]] = []
    for cells, where in rows:
        fields = {name.removeprefix(prefix): cell for name, cell in cells.items() if name.startswith(prefix)}
        if any(name in fields for name in ("start", "end", "quote")):
            places.append(_locate_span(fields, where, prefix, bool(unlocated), document, placer))
    lost = unlocated or next(("the quote is not in the text" for span, _ in places if span is None), "")
    if lost:
        return {"spans": (), "quotes": tuple(quote for _, quote in places), "unlocated": lost}
    if not places:
        return None
    pairs = sorted(((span, quote) for span, quote in places if span is not None), key=lambda pair: pair[0])
    return {"spans": tuple(span for span, _ in pairs), "quotes": tuple(quote for _, quote in pairs)}


def _locate_span(
    cells: Cells, where: str, prefix: str, unlocated: bool, document: Document, placer: _QuotePlacer
) -> tuple[Span | None, str]:
    """Return one span and its quote, from offsets if given, otherwise by searching for the quote."""
    part, quote = cells.get("part", TEXT_PART), cells.get("quote")
    text = document.part_text(part)
    if text is None:
        nearest = did_you_mean(part, [TEXT_PART, *document.context])
        raise FormatError(f"{where}: column '{prefix}part': document {document.id!r} has no {part!r}{nearest}")
    if "start" not in cells:
        if "end" in cells:
            raise FormatError(f"{where}: column '{prefix}end': has a value, but '{prefix}start' is empty")
        return None if unlocated else placer.place_quote(quote or "", text, part), quote or ""
    start = _parse_whole_number(cells["start"], where, f"{prefix}start")
    if "end" not in cells and quote is None:
        raise FormatError(
            f"{where}: column '{prefix}start': has a value, but '{prefix}end' and '{prefix}quote' are empty"
        )
    end = _parse_whole_number(cells["end"], where, f"{prefix}end") if "end" in cells else start + len(quote or "")
    if not start <= end:
        raise FormatError(f"{where}: column '{prefix}end': must be at least the start, {start}, found {end}")
    span = Span(start, end, part)
    words = text[start:end] if quote is None else quote
    if problem := span_problem(span, words, document):
        column = "end" if quote is None else "quote"
        raise FormatError(f"{where}: column '{prefix}{column}': {problem}")
    return span, words


def _parse_whole_number(cell: str, where: str, column: str) -> int:
    """Parse an integer of at least 0; spreadsheets and data frames may write 3 as 3.0."""
    if not re.fullmatch(r"[0-9]{1,15}(\.0*)?", cell, re.ASCII):
        raise FormatError(f"{where}: column {column!r}: expected an integer of at least 0, found {shorten(cell, 40)!r}")
    return int(cell.partition(".")[0])


class _QuotePlacer:
    """Locator of quotes; it counts doubtful cases."""

    def __init__(self, repeats: Literal["kth", "first"]) -> None:
        self.repeats = repeats
        self.seen: Counter[tuple[str, str]] = Counter()
        self.lost = self.doubtful = self.empty = 0

    def place_quote(self, quote: str, text: str, part: str) -> Span | None:
        """Return the span of a quote: its k-th repetition is its k-th occurrence in the text, or the last if fewer."""
        number = self.seen[part, quote] if self.repeats == "kth" else 0
        place, places = find_nth_occurrence(quote, text, number)
        if place is None:
            self.lost += 1
            return None
        self.doubtful += places > 1
        self.seen[part, quote] += 1
        return Span(*place, part)

    def count_missing_location(self) -> str:
        """Count a mark that has neither offsets nor a quote, and return the reason why it has no spans."""
        self.empty += 1
        return "the table gives no offsets and no quote"

    def notes(self) -> Iterator[Note]:
        """Yield notes for the user."""
        if self.lost:
            yield Note(text=f"{self.lost:,} quotes are not in their text; their marks were kept without spans")
        if self.doubtful:
            rule = (
                "the k-th repetition was matched to the k-th occurrence"
                if self.repeats == "kth"
                else ("the first occurrence was used")
            )
            yield Note(text=f"{self.doubtful:,} quotes occur more than once in their text; {rule}")
        if self.empty:
            yield Note(text=f"{self.empty:,} marks have neither offsets nor a quote and were kept without spans")
