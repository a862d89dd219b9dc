"""Reader of rows with an import map: documents, annotators and annotations, and a summary of what was read.

Rows are read once. Their annotations are kept in a temporary file until labels and offset conventions are known.
"""

from __future__ import annotations

import pickle
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from finecomb.core.errors import FormatError, ParameterError, ProtocolError, param, shorten
from finecomb.core.protocol import Protocol
from finecomb.core.question import Question
from finecomb.core.quotes import find_closest_occurrence, find_exact_or_respelled
from finecomb.core.records import Annotation, Annotator, Antecedents, Document, Mark, Note
from finecomb.core.span import TEXT_PART, Span
from finecomb.core.study import StudyItem
from finecomb.formats.imports.import_map import ImportMap, LeaveOutRule
from finecomb.formats.imports.offsets import (
    DEFAULT_CONVENTION,
    OffsetConvention,
    OffsetSurvey,
    TextOffsets,
    parse_convention,
)
from finecomb.formats.imports.paths import Indices, Path, RowInfo, to_plain, to_text
from finecomb.formats.imports.sources import BadRow, RowSource
from finecomb.formats.mark_table import parse_cell
from finecomb.formats.mark_table_reader import answer_type, infer_questions
from finecomb.formats.source_files import build_implied_protocol, build_record, resolve_label_name

_ANSWER_ROLES = ("severity", "explanation", "correction", "comment")
_TEXT_ANSWERS = ("explanation", "correction", "comment")
_STATUSES = ("draft", "submitted", "excluded")
_MAX_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    """Choices of the user that an import map does not make."""

    protocol: Protocol | None = None
    annotator: str = ""
    kind: str = ""
    no_row: Literal["", "read", "unread"] = ""
    skip_bad_rows: bool = False
    repeats: Literal["kth", "first"] = "kth"
    documents: Mapping[str, Document] | None = None
    """Documents of the study that the rows are imported into, by ID."""


@dataclass(slots=True)
class RawMark:
    """One mark as the file has it."""

    where: str
    start: int | None
    end: int | None
    quote: str | None
    part: str
    label: str | None
    answers: dict[str, Any]
    second: tuple[int | None, int | None, str | None, str] | None = None
    antecedent: tuple[int | None, int | None, str | None, str] | None = None
    confidence: float | None = None
    item: str | None = None
    unlocated: str = ""
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class RawAnnotation:
    """One annotator's marks and answers on one text, from one row."""

    where: str
    document: str
    annotator: str
    marks: list[RawMark]
    answers: dict[str, Any]
    status: str = "submitted"
    seconds: float | None = None
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass
class ImportSummary:
    """Counts of an import, by reason."""

    rows: int = 0
    texts: int = 0
    known_texts: int = 0
    annotators: int = 0
    annotations: int = 0
    without_marks: int = 0
    marks: int = 0
    placed: int = 0
    convention: str = ""
    moved: int = 0
    searched: int = 0
    unplaced: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    meta_fields: Counter[str] = field(default_factory=Counter)
    several_labels: int = 0
    problems: list[str] = field(default_factory=list)
    bad_rows: int = 0
    map_name: str = ""
    unread_fields: tuple[str, ...] = ()
    """Paths in the first rows that no role uses, inside of fields that are read in part."""

    def table(self) -> list[dict[str, object]]:
        """Return the summary as rows with the columns `what`, `count` and `detail`."""
        rows: list[tuple[str, int, str]] = [
            ("rows", self.rows, f"map: {self.map_name}" if self.map_name else ""),
            ("texts", self.texts, f"{self.known_texts:,} already in the study" if self.known_texts else ""),
            ("annotators", self.annotators, ""),
            ("annotations", self.annotations, f"{self.without_marks:,} without marks" if self.without_marks else ""),
            ("marks", self.marks, f"{self.several_labels:,} with several labels" if self.several_labels else ""),
            ("placed by offsets", self.placed, self.convention),
            ("placed by quote", self.searched, "no offsets in the file"),
            ("moved to their quote", self.moved, "the offsets did not fit"),
        ]
        rows = [row for row in rows if row[1] or row[0] in ("rows", "texts", "annotators", "marks")]
        rows += [("not placed", count, why) for why, count in self.unplaced.most_common()]
        rows += [("left out", count, why) for why, count in self.left_out.most_common()]
        if self.bad_rows:
            rows.append(("bad rows left out", self.bad_rows, self.problems[0]))
        if self.meta_fields:
            rows.append(("fields kept in meta", len(self.meta_fields), ", ".join(sorted(self.meta_fields))))
        if self.unread_fields:
            more = ", ..." if len(self.unread_fields) > 8 else ""
            rows.append(("fields not read", len(self.unread_fields), ", ".join(self.unread_fields[:8]) + more))
        return [{"what": what, "count": count, "detail": detail} for what, count, detail in rows]


class _RoleGroup:
    """Compiled paths of one group of annotations."""

    def __init__(self, roles: Mapping[str, str], columns: Sequence[str]) -> None:
        def compile_role(role: str) -> Path | None:
            return Path(roles[role], columns) if role in roles else None

        self.get = {role: Path(path, columns) for role, path in roles.items()}
        self.annotator = compile_role("annotator")
        candidates = [self.get[role] for role in ("marks", "start", "quote", "label", "end") if role in self.get]
        self.has_marks = bool(candidates)
        self.marks = max(candidates, key=lambda path: path.depth) if candidates else None
        self.answers = {
            role.removeprefix("answer."): path for role, path in self.get.items() if role.startswith("answer.")
        }
        self.scores = {
            role.removeprefix("score."): path for role, path in self.get.items() if role.startswith("score.")
        }
        if "score" in self.get:
            self.scores["score"] = self.get["score"]
        self.mark_answers = {role: self.get[role] for role in _ANSWER_ROLES if role in self.get}


class ImportReader:
    """Reader of rows with an import map. Call `read` once; then `items` yields the records."""

    def __init__(
        self,
        sources: Sequence[RowSource],
        mapping: ImportMap,
        columns: Sequence[str],
        options: ReaderOptions,
        name: str,
    ) -> None:
        self.sources, self.mapping, self.options, self.name = sources, mapping, options, name
        roles = dict(mapping.map)
        self.document = {
            role: [Path(part, columns) for part in path.split(" + ")]
            for role, path in roles.items()
            if role in ("id", "text", "prompt", "system", "reference", "data", "tokens")
            or role.startswith(("context.", "meta."))
        }
        self.groups = [_RoleGroup(roles, columns)] + [_RoleGroup(dict(more), columns) for more in mapping.also]
        self.groups = [
            group
            for group in self.groups
            if group.has_marks or group.answers or group.scores or group.annotator or "question" in group.get
        ]
        self.used_fields = {
            name
            for path in [*(path for paths in self.document.values() for path in paths)]
            + [path for group in self.groups for path in group.get.values()]
            + [Path(rule.path, columns) for rule in mapping.leave_out]
            + [Path(each, columns) for each in mapping.ignore]
            + [Path(path, columns) for role, path in roles.items() if role.startswith("ignore.")]
            for name in path.top_fields
        } | {rule.name for rule in mapping.join}
        self.rules = [(Path(rule.path, columns), rule) for rule in mapping.leave_out]
        depths = [path for role in ("text", "id") for path in self.document.get(role, ())]
        self.scope = max(depths, key=lambda path: path.depth, default=None)
        self.is_sheet = any(
            group.marks is not None
            and (group.marks.depth == 0 or (group.annotator and group.annotator.depth >= group.marks.depth > 0))
            for group in self.groups
        )
        self.again = mapping.again or ("merge" if self.is_sheet or any(g.scores for g in self.groups) else "round")
        self.summary = ImportSummary(map_name=mapping.name)
        self.notes: list[str] = []
        self.documents: dict[str, tuple[int, str]] = {}
        self.known: dict[str, None] = {}
        self.texts: dict[str, str] = {}
        self.contexts: dict[str, dict[str, str]] = {}
        self.needs_contexts = any("part" in role for group in self.groups for role in group.get)
        self.annotators: dict[str, dict[str, Any]] = {}
        self.labels: Counter[str] = Counter()
        self.mark_answer_types: dict[str, set[str]] = {}
        self.document_answer_types: dict[str, set[str]] = {}
        self.surveys: dict[str, OffsetSurvey] = {}
        self.keys: dict[tuple[str, str], int] = {}
        self.spool = tempfile.SpooledTemporaryFile(max_size=1 << 24)  # noqa: SIM115
        self.spooled = 0
        self.has_antecedents = False
        self._by_text: dict[str, str] | None = None

    # --- first pass ------------------------------------------------------------------------------------------------

    def read(self, rows: Iterable[tuple[RowSource, RowInfo, Mapping[str, Any] | BadRow]]) -> None:
        """Read all rows and keep their annotations in a temporary file; all bad rows are reported together."""
        seen: set[int] = set()
        for source, info, row in rows:
            self.summary.rows += 1
            where = source.where(info)
            if isinstance(row, BadRow):
                self._add_problem(f"{where}: {row.message}")
                continue
            if "id" in self.document:
                mark = hash(repr(row)) if source.is_table else 0
                if mark and mark in seen:
                    self.summary.left_out["exact duplicates of an earlier row"] += 1
                    continue
                seen.add(mark)
            if reason := next(
                (rule.reason for path, rule in self.rules if _applies(rule, path.get(row, (), info))), ""
            ):
                self.summary.left_out[reason] += 1
                continue
            if source.label_names:
                row = {
                    **row,
                    **{
                        name: names[row[name]]
                        for name, names in source.label_names.items()
                        if isinstance(row.get(name), int) and 0 <= row[name] < len(names)
                    },
                }
            try:
                self._read_row(row, info, where, source)
            except FormatError as error:
                self._add_problem(str(error))
        if self.summary.problems and not self.options.skip_bad_rows:
            self.spool.close()
            more = self.summary.bad_rows - len(self.summary.problems)
            listed = "\n".join(self.summary.problems) + (f"\n... and {more:,} more" if more > 0 else "")
            raise FormatError(f"{listed}\nnothing was written; {param('bad_rows', 'skip')} keeps the other rows")

    def _add_problem(self, message: str) -> None:
        self.summary.bad_rows += 1
        if len(self.summary.problems) < _MAX_PROBLEMS:
            self.summary.problems.append(message)

    def _read_row(self, row: Mapping[str, Any], info: RowInfo, where: str, source: RowSource) -> None:
        positions: list[Indices] | None = [()]
        if self.scope is not None and self.scope.depth:
            positions = self.scope.iterate(row, (), info)
            if not positions:
                self.summary.left_out[f"rows without {self.scope.text!r}"] += 1
                return
        entries: list[tuple[dict[str, Any] | None, list[RawAnnotation]]] = []
        for position in positions or ():
            document = self._read_document(row, position, info, where, source)
            if document is None:
                continue
            id, fields = document
            found = [
                annotation
                for group in self.groups
                for annotation in self._read_annotations(group, row, position, info, where, id, source)
            ]
            for annotation in found:
                self._survey_annotation(annotation, self.texts.get(id, ""), row)
            entries.append((fields, found))
        if entries:
            pickle.dump(entries, self.spool, protocol=pickle.HIGHEST_PROTOCOL)
            self.spooled += 1

    def _value(self, role: str, row: Mapping[str, Any], position: Indices, info: RowInfo) -> Any:
        paths = self.document.get(role, ())
        values = [path.get(row, position, info) for path in paths]
        if len(values) == 1:
            return values[0]
        return "/".join(str(value) for value in values if value is not None) or None

    def _read_document(
        self, row: Mapping[str, Any], position: Indices, info: RowInfo, where: str, source: RowSource
    ) -> tuple[str, dict[str, Any] | None] | None:
        """Return the ID of a row's document, and its fields if it is new."""
        value = self._value("id", row, position, info)
        text = to_text(self._value("text", row, position, info)) if "text" in self.document else None
        suffix = (
            "".join(f"-{index}" for index in position)
            if self.document.get("id")
            and self.scope
            and (max(path.depth for path in self.document["id"]) < self.scope.depth)
            and len(self.scope.iterate(row, (), info) or ()) > 1
            else ""
        )
        number = f"{info.number:,}".replace(",", "")
        id = f"{info.file}-{number}" + "".join(f"-{index}" for index in position)
        if value is not None and str(value).strip() and value == value:
            id = f"{int(value) if isinstance(value, float) and value.is_integer() else value}".strip() + suffix
        study = self.options.documents
        if study is not None:
            match = self._match_study(id, text)
            if match is not None:
                if text and text != study[match].text and match == id:
                    raise FormatError(f"{where}: the text of document {id!r} differs from the one in the study")
                self.known[match] = None
                self.texts[match] = study[match].text
                return match, None
        if text is None and "text" in self.document and (value is None or study is None):
            if id in self.documents:
                return id, None  # further rows of a text need not repeat it
            self.summary.left_out["rows without a text"] += 1
            return None
        if text is None:
            self.summary.left_out[
                "the document is not in the study" if study is not None else "rows without a text"
            ] += 1
            return None
        if id in self.documents:
            if self.documents[id][0] != hash(text):
                first = self.documents[id][1]
                raise FormatError(
                    f"{where}: document {id!r} has another text at {first}; use the same text or another ID"
                )
            return id, None
        self.documents[id] = hash(text), where
        self.texts[id] = text
        context = {
            role.removeprefix("context."): to_text(self._value(role, row, position, info))
            for role in self.document
            if role.startswith("context.")
        }
        if (prompt := to_text(self._value("prompt", row, position, info))) is not None and "prompt" in self.document:
            context["prompt"] = prompt
        meta = {
            role.removeprefix("meta."): self._value(role, row, position, info)
            for role in self.document
            if role.startswith("meta.")
        }
        if (system := self._value("system", row, position, info)) is not None:
            meta["model"] = system
        for name, item in row.items():
            if name not in self.used_fields and item is not None and item != "":
                meta[name] = parse_cell(item) if source.is_table and isinstance(item, str) else item
                self.summary.meta_fields[name] += 1
        fields: dict[str, Any] = {
            "id": id,
            "text": text,
            "context": {name: item for name, item in context.items() if item is not None},
            "meta": to_plain({name: item for name, item in meta.items() if item is not None}),
        }
        if self.needs_contexts:
            self.contexts[id] = fields["context"]
        if (data := self._value("data", row, position, info)) is not None:
            fields["data"] = to_plain(data)
        if (reference := self._value("reference", row, position, info)) is not None:
            fields["references"] = tuple(
                filter(None, map(to_text, reference if isinstance(reference, list) else [reference]))
            )
        return id, fields

    def _match_study(self, id: str, text: str | None) -> str | None:
        study = self.options.documents or {}
        if id in study:
            return id
        if id.endswith(".0") and id[:-2] in study:
            return id[:-2]
        if text is None:
            return None
        if self._by_text is None:
            counts = Counter(document.text for document in study.values())
            self._by_text = {document.text: key for key, document in study.items() if counts[document.text] == 1}
        return self._by_text.get(text)

    # --- annotations of a row --------------------------------------------------------------------------------------

    def _read_annotations(
        self,
        group: _RoleGroup,
        row: Mapping[str, Any],
        position: Indices,
        info: RowInfo,
        where: str,
        id: str,
        source: RowSource,
    ) -> Iterator[RawAnnotation]:
        for name, path in group.scores.items():
            number = as_number(path.get(row, position, info))
            if number is not None:
                self._add_annotator(name, "detector", {"direction": self.mapping.directions.get(name, "")})
                yield RawAnnotation(where, id, name, [], {"score": number})
        if group.scores and not group.has_marks and not group.answers:
            return
        outer: list[Indices] = [position]
        if group.annotator is not None and group.annotator.depth > len(position):
            outer = group.annotator.iterate(row, position, info) or []
        for place in outer:
            yield from self._read_annotation(group, row, place, info, where, id, source)

    def _read_annotation(
        self,
        group: _RoleGroup,
        row: Mapping[str, Any],
        place: Indices,
        info: RowInfo,
        where: str,
        id: str,
        source: RowSource,
    ) -> Iterator[RawAnnotation]:
        def value(role: str, at: Indices = place) -> Any:
            path = group.get.get(role)
            return self._replace(role, path.get(row, at, info)) if path is not None else None

        name = value("annotator")
        has_own_name = group.annotator is not None and group.annotator.constant is None
        annotator = str(name).strip() if name not in (None, "") else (self.options.annotator or "")
        marks: list[RawMark] = []
        positions: list[Indices] | None = None
        if group.marks is not None:
            positions = group.marks.iterate(row, place, info) if group.marks.depth > len(place) else [place]
            for at in positions or ():
                if (mark := self._read_mark(group, row, at, info, where)) is not None:
                    marks.append(mark)
        answers: dict[str, Any] = {}
        for question, path in group.answers.items():
            if path.depth <= len(place) and not (marks and group.marks is not None and group.marks.depth == 0):
                value_there = path.get(row, place, info)
                replaced = self._replace(f"answer.{question}", value_there)
                if isinstance(value_there, dict):
                    parts = {f"{question}.{name}": _as_answer(item, False) for name, item in value_there.items()}
                    answers |= {name: item for name, item in parts.items() if item is not None}
                elif (answer := _as_answer(replaced, source.is_table or replaced is not value_there)) is not None:
                    answers[question] = answer
        if (pairs := group.get.get("question")) is not None and "answer" in group.get:
            for at in pairs.iterate(row, place, info) or [] if pairs.depth > len(place) else [place]:
                question = pairs.get(row, at, info)
                answer = _as_answer(self._replace("answer", group.get["answer"].get(row, at, info)), source.is_table)
                if question is not None and answer is not None:
                    answers[str(question)] = answer
        if not annotator:
            if not marks and not answers and (has_own_name or (not positions and positions != [])):
                return
            annotator = self.mapping.name or self.name
            self.notes.append(f"the file does not name annotators; {annotator!r} is used")
        elif positions is None and group.has_marks and not answers and not has_own_name:
            return  # the list of marks is missing, so the text was not annotated
        kind = str(value("kind") or self.options.kind or "human")
        self._add_annotator(annotator, kind, {})
        status = str(value("status") or "submitted")
        if status not in _STATUSES:
            raise FormatError(f"{where}: status must be one of {', '.join(_STATUSES)}, found {shorten(status, 40)!r}")
        yield RawAnnotation(where, id, annotator, marks, answers, status, as_number(value("seconds")))

    def _add_annotator(self, name: str, kind: str, meta: dict[str, Any]) -> None:
        self.annotators.setdefault(name, {"kind": kind, "meta": {key: item for key, item in meta.items() if item}})

    def _replace(self, role: str, value: Any) -> Any:
        table = self.mapping.values.get(role)
        return table.get(str(value), value) if table and not isinstance(value, list | dict) else value

    def _read_mark(
        self, group: _RoleGroup, row: Mapping[str, Any], at: Indices, info: RowInfo, where: str
    ) -> RawMark | None:
        def value(role: str) -> Any:
            path = group.get.get(role)
            return path.get(row, at, info) if path is not None else None

        label = self._replace("label", value("label"))
        answers: dict[str, Any] = {}
        if isinstance(label, str) and "label" in self.mapping.split:
            label = [word.strip() for word in label.split(self.mapping.split["label"]) if word.strip()]
        if isinstance(label, list):
            names = [str(item) for item in label if item is not None]
            if len(names) > 1:
                answers["labels"] = names
                self.summary.several_labels += 1
            label = names[0] if names else None
        if "label" in self.mapping.needs and label in (None, ""):
            return None
        raw_start, raw_end = value("start"), value("end")
        unlocated = ""
        if isinstance(raw_start, str) and raw_start.strip() and as_number(raw_start) is None:
            unlocated, raw_start, raw_end = f"the file has {raw_start!r} instead of offsets", None, None
        start, end = _as_offset(raw_start, where, "start"), _as_offset(raw_end, where, "end")
        quote = value("quote")
        quote = None if quote is None else to_text(quote)
        constant = group.get["label"].constant if "label" in group.get else None
        if (
            start is None
            and not quote
            and not unlocated
            and (
                label in (None, "")
                or constant is not None
                or (group.marks and group.marks.depth == 0 and "quote" not in group.get and "start" in group.get)
            )
        ):
            return None
        for question, path in group.mark_answers.items():
            answer = path.get(row, at, info)
            if answer is not None and answer != "":
                answers[question] = to_text(answer) if question in _TEXT_ANSWERS else _as_answer(answer, True)
        for question, path in group.answers.items():
            if (path.depth > 0 and group.marks is not None and path.depth == group.marks.depth) or (
                group.marks is not None and group.marks.depth == 0
            ):
                answer = _as_answer(path.get(row, at, info), True)
                if answer is not None:
                    answers[question] = answer

        def other_span(prefix: str, suffix: str) -> tuple[int | None, int | None, str | None, str] | None:
            first = _as_offset(value(f"{prefix}start{suffix}"), where, "start")
            words = value(f"{prefix}quote{suffix}")
            if first is None and not words:
                return None
            last = _as_offset(value(f"{prefix}end{suffix}"), where, "end")
            return first, last, words, str(value(f"{prefix}part{suffix}") or TEXT_PART)

        confidence = as_number(value("confidence"))
        item = value("item")
        return RawMark(
            where,
            start,
            end,
            quote,
            str(value("part") or TEXT_PART),
            None if label in (None, "") else str(label),
            {name: answer for name, answer in answers.items() if answer is not None},
            other_span("", "2"),
            other_span("antecedent_", ""),
            confidence if confidence is not None and 0 <= confidence <= 1 else None,
            None if item is None else str(item),
            unlocated,
        )

    def _survey_annotation(self, annotation: RawAnnotation, text: str, row: Mapping[str, Any]) -> None:
        if self.again != "round" or self.is_sheet:
            self.keys[annotation.document, annotation.annotator] = self.spooled
        for question, answer in annotation.answers.items():
            self.document_answer_types.setdefault(question, set()).add(answer_type(answer))
        tokens = self._value("tokens", row, (), RowInfo()) if "tokens" in self.document else None
        offsets = TextOffsets(text, tokens)
        for mark in annotation.marks:
            if mark.label is not None:
                self.labels[mark.label] += 1
            self.has_antecedents |= mark.antecedent is not None
            for question, answer in mark.answers.items():
                self.mark_answer_types.setdefault(question, set()).add(answer_type(answer))
            if mark.start is not None and mark.part == TEXT_PART and not self.mapping.offsets:
                kind = self.annotators[annotation.annotator]["kind"]
                if (survey := self.surveys.get(kind)) is None:
                    survey = self.surveys[kind] = OffsetSurvey()
                survey.add(mark.start, mark.end, mark.quote, offsets)

    # --- second pass -----------------------------------------------------------------------------------------------

    def items(self, name: str) -> Iterator[StudyItem]:
        """Yield the protocol, annotators, documents and annotations; `name` is that of the source."""
        with self.spool:
            yield from self._build_items(name)

    def _build_items(self, name: str) -> Iterator[StudyItem]:
        self._require_directions()
        missing = self._unread_pairs(name)
        conventions = self._choose_conventions(name)
        protocol = self._choose_protocol(name)
        if self.annotators or self.options.protocol is not None:  # texts alone need no protocol
            yield protocol
        for id, facts in self.annotators.items():
            yield build_record(Annotator, name, id=id, kind=facts["kind"], meta=facts["meta"])
        self.summary.annotators = len(self.annotators)
        self.spool.seek(0)
        rounds: Counter[tuple[str, str]] = Counter()
        open_: dict[tuple[str, str], list[RawAnnotation]] = {}
        for number in range(self.spooled):
            for fields, found in pickle.load(self.spool):
                if fields is not None:
                    self.summary.texts += 1
                    fields["text"] = self.texts[fields["id"]]  # one copy of the text in memory
                    yield build_record(Document, name, **fields)
                for annotation in found:
                    key = annotation.document, annotation.annotator
                    if self.again == "round":
                        yield self._build(annotation, rounds[key], protocol, conventions)
                        rounds[key] += 1
                        continue
                    pending = open_.setdefault(key, [])
                    if self.again == "last":
                        if pending:
                            self.summary.left_out["replaced by a later row"] += 1
                        pending[:] = [annotation]
                    else:
                        pending.append(annotation)
            for key in [key for key in open_ if self.keys[key] == number]:
                yield self._build(_merge(open_.pop(key)), 0, protocol, conventions)
        for document, annotator in missing:
            self.summary.without_marks += 1
            self.summary.annotations += 1
            yield Annotation(id=f"{document}/{annotator}", document=document, annotator=annotator, protocol=protocol.id)
        self.summary.known_texts = len(self.known)
        self.summary.texts += len(self.known)
        for note in dict.fromkeys([*self.notes, *(note for source in self.sources for note in source.notes)]):
            yield Note(text=note)

    def _require_directions(self) -> None:
        names = {name for group in self.groups for name in group.scores}
        if unknown := sorted(name for name in names if name not in self.mapping.directions):
            listed = ",".join(unknown)
            raise ParameterError(
                f"state whether higher scores of {', '.join(unknown)} are better: pass "
                f"{param('higher_is_better', listed)} or {param('lower_is_better', listed)}",
                parameter="higher_is_better",
            )

    def _unread_pairs(self, name: str) -> list[tuple[str, str]]:
        """Return the pairs of text and annotator without rows that count as read; an error if this is undecided."""
        choice = self.options.no_row or self.mapping.no_row
        if not self.is_sheet or choice == "unread":
            return []
        texts = list(self.options.documents) if self.options.documents is not None else list(self.documents)
        scored = {name for group in self.groups for name in group.scores}
        people = [annotator for annotator in self.annotators if annotator not in scored]
        missing = [(text, who) for text in texts for who in people if (text, who) not in self.keys]
        if not missing or choice == "read":
            return missing if choice == "read" else []
        marks, pairs = sum(self.labels.values()) or len(self.keys), len(self.keys)
        raise ParameterError(
            f"{name}: {len(missing):,} of {len(missing) + pairs:,} pairs of text and annotator have no row; state "
            f"whether these texts were read without finding an error ({param('no_row', 'read')}: "
            f"{marks / (pairs + len(missing)):.2f} marks per text) or not read ({param('no_row', 'unread')}: "
            f"{marks / max(pairs, 1):.2f})",
            parameter="no_row",
        )

    def _choose_conventions(self, name: str) -> dict[str, OffsetConvention]:
        if self.mapping.offsets and self.mapping.offsets != "quotes":
            convention = parse_convention(self.mapping.offsets)
            self.summary.convention = str(convention)
            return dict.fromkeys([facts["kind"] for facts in self.annotators.values()], convention)
        chosen, words = {}, []
        for kind, survey in self.surveys.items():
            chosen[kind], description = survey.choose(name)
            words += [description] if description else []
        self.summary.convention = "; ".join(dict.fromkeys(words))
        return chosen

    def _choose_protocol(self, name: str) -> Protocol:
        if self.options.protocol is not None:
            protocol = self.options.protocol
            unknown = {
                label: count
                for label, count in self.labels.items()
                if not _has_label(protocol, self.mapping.labels.get(label, label))
            }
            if unknown:
                listed = ", ".join(f"{label!r} ({count:,} marks)" for label, count in sorted(unknown.items()))
                names = ", ".join(label.name for label in protocol.labels)
                raise ParameterError(
                    f"{name}: labels that {protocol.id} does not have: {listed}; pass "
                    f"{param('labels', 'THEIRS=OURS')} for each, with one of {names}",
                    parameter="labels",
                )
            return protocol
        labels = {self.mapping.labels.get(label, label) for label in self.labels}
        return build_implied_protocol(
            self.mapping.name or name,
            labels,
            antecedents=self.has_antecedents,
            questions=infer_questions(self.mark_answer_types),
            document_questions=infer_questions(self.document_answer_types),
        )

    def _build(
        self, annotation: RawAnnotation, round: int, protocol: Protocol, conventions: Mapping[str, OffsetConvention]
    ) -> Annotation:
        id = f"{annotation.document}/{annotation.annotator}" + (f"/{round}" if round else "")
        study = self.options.documents or {}
        document = study.get(annotation.document)
        text = document.text if document else self.texts[annotation.document]
        convention = conventions.get(self.annotators[annotation.annotator]["kind"], DEFAULT_CONVENTION)
        placer = _Placer(
            self.summary,
            self.options.repeats,
            self.mapping.offsets == "quotes",
            convention,
            text,
            document.context if document else self.contexts.get(annotation.document, {}),
        )
        marks = tuple(
            self._build_mark(mark, f"{id}/{number}", protocol, placer) for number, mark in enumerate(annotation.marks)
        )
        self.summary.annotations += 1
        self.summary.without_marks += not marks
        self.summary.marks += len(marks)
        return build_record(
            Annotation,
            annotation.where,
            id=id,
            document=annotation.document,
            annotator=annotation.annotator,
            protocol=protocol.id,
            round=round,
            status=annotation.status,
            marks=marks,
            answers=_fit_answers(annotation.answers, protocol.document_questions),
            seconds=annotation.seconds,
            meta=annotation.meta,
        )

    def _build_mark(self, mark: RawMark, id: str, protocol: Protocol, placer: _Placer) -> Mark:
        label = None
        if mark.label is not None:
            label = resolve_label_name(protocol, self.mapping.labels.get(mark.label, mark.label), mark.where)
        placed = [placer.place(mark.start, mark.end, mark.quote, mark.part)]
        if mark.second is not None:
            placed.append(placer.place(*mark.second))
        why = mark.unlocated or next((why for _, _, why in placed if why), "")
        if why:
            self.summary.unplaced[why] += 1
            place: dict[str, Any] = {
                "spans": (),
                "quotes": tuple(quote for _, quote, _ in placed if quote),
                "unlocated": why,
            }
        else:
            pairs = sorted((span, quote) for span, quote, _ in placed if span is not None)
            place = {"spans": tuple(span for span, _ in pairs), "quotes": tuple(quote for _, quote in pairs)}
        antecedents = None
        if mark.antecedent is not None:
            span, quote, lost = placer.place(*mark.antecedent, count=False)
            antecedents = Antecedents(spans=(span,) if span else (), quotes=(quote,), unlocated=lost)
        return build_record(
            Mark,
            mark.where,
            id=id,
            label=label,
            answers=_fit_answers(mark.answers, protocol.questions_for_label(label)),
            antecedents=antecedents,
            confidence=mark.confidence,
            item=mark.item,
            meta=mark.meta,
            **place,
        )


class _Placer:
    """Locator of the marks of one annotation; it counts how they were placed."""

    def __init__(
        self,
        summary: ImportSummary,
        repeats: str,
        ignores_offsets: bool,
        convention: OffsetConvention,
        text: str,
        contexts: Mapping[str, str],
    ) -> None:
        self.summary, self.repeats, self.ignores_offsets = summary, repeats, ignores_offsets
        self.convention, self.contexts = convention, contexts
        self.offsets = {TEXT_PART: TextOffsets(text)}
        self.uses: Counter[tuple[str, str]] = Counter()

    def place(
        self, start: int | None, end: int | None, quote: str | None, part: str = TEXT_PART, count: bool = True
    ) -> tuple[Span | None, str, str]:
        """Return the span and its quote, or the reason why there is none."""
        if part not in self.offsets:
            if part not in self.contexts:
                return None, quote or "", f"the document has no part {part!r}"
            self.offsets[part] = TextOffsets(self.contexts[part])
        offsets = self.offsets[part]
        text = offsets.text
        if start is not None and not self.ignores_offsets:
            place = self._locate(start, end, quote, offsets)
            if place is not None and (quote is None or text[place[0] : place[1]] == quote):
                self.summary.placed += count
                return Span(*place, part), text[place[0] : place[1]], ""
            if not quote:
                return None, "", "the offsets are not within the text"
            near = find_closest_occurrence(quote, text, place[0] if place else start)
            near = near or _closest(find_exact_or_respelled(quote, text), start)
            if near is not None:
                self.summary.moved += count
                return Span(*near, part), text[near[0] : near[1]], ""
            return None, quote, "the quote is not in the text"
        if not quote:
            return None, "", "the file gives no offsets and no quote"
        places = find_exact_or_respelled(quote, text)
        if not places:
            return None, quote, "the quote is not in the text"
        number = self.uses[part, quote] if self.repeats == "kth" else 0
        self.uses[part, quote] += 1
        chosen = places[min(number, len(places) - 1)]
        self.summary.searched += count
        return Span(*chosen, part), text[chosen[0] : chosen[1]], ""

    def _locate(self, start: int, end: int | None, quote: str | None, offsets: TextOffsets) -> tuple[int, int] | None:
        if end is not None:
            return offsets.locate(start, end, self.convention)
        first = offsets.locate(start, start, OffsetConvention(self.convention.unit, self.convention.first))
        return (first[0], first[0] + len(quote or "")) if first else None


def _has_label(protocol: Protocol, spelling: str) -> bool:
    try:
        protocol.resolve_label(spelling)
    except ProtocolError:
        return False
    return True


def _fit_answers(answers: dict[str, Any], questions: Iterable[Question]) -> dict[str, Any]:
    """Return answers with spellings of the file replaced by the options of the questions, e.g. `major` by 2."""
    by_name = {question.name: question for question in questions}
    fitted = dict(answers)
    for name, answer in answers.items():
        question = by_name.get(name)
        if question is None or not question.answer_problem(tuple(answer) if isinstance(answer, list) else answer):
            continue
        parsed = question.scale_type.parse(question, str(answer))
        if parsed is not None:
            fitted[name] = parsed
    return fitted


def _closest(places: Sequence[tuple[int, int]], start: int) -> tuple[int, int] | None:
    return min(places, key=lambda place: abs(place[0] - start), default=None)


def _merge(parts: list[RawAnnotation]) -> RawAnnotation:
    first, *others = parts
    for other in others:
        first.marks += other.marks
        first.answers |= other.answers
    return first


def _applies(rule: LeaveOutRule, value: Any) -> bool:
    spelling = (
        "(missing)"
        if value is None or value == ""
        else str(value).lower()
        if value is True or value is False
        else str(value)
    )
    if rule.contains:
        return value is not None and rule.contains in str(value)
    return spelling not in rule.unless if rule.unless else spelling in rule.equals


def as_number(value: Any) -> float | None:
    """Return a finite number from a number or its text; None otherwise."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if number - number == 0 else None


def _as_offset(value: Any, where: str, role: str) -> int | None:
    if value is None or value == "" or value != value:
        return None
    number = as_number(value)
    if number is None or number != int(number) or number < 0:
        raise FormatError(f"{where}: {role} must be an integer of at least 0, found {shorten(repr(value), 40)}")
    return int(number)


def _as_answer(value: Any, is_cell: bool) -> Any:
    """Convert a value to an answer: a string, number, boolean or list of strings; None if it is missing."""
    if isinstance(value, str):
        parsed = parse_cell(value) if is_cell else value
        return parsed if isinstance(parsed, bool | int | float | str) and value.strip() else (value.strip() or None)
    if isinstance(value, list):
        return [to_text(item) or "" for item in value] if value else None
    if isinstance(value, dict):
        return to_text(value)
    return None if value is None or value != value else value
