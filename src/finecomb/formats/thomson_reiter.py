"""Workbooks of Thomson and Reiter (2020): the error lists of three annotators, and the gold standard made from them.

Read only. Errors are quotes with their sentence, copied by hand, so both are searched for in the text of the story. If
a quote occurs several times, its context ("second occurrence", "a paltry 63%") or words repeated in its correction
("zero assists" for "five") select the occurrence. Rows about one sentence are in text order, and remaining ambiguities
are resolved to keep that order; such a mark has `meta.ambiguous`. The row number becomes the `item` of its marks, since
a row is one error, regardless of the annotators who marked it.
"""

from __future__ import annotations

import re
import warnings
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from finecomb.core.errors import FinecombError, FormatError, did_you_mean, param, shorten
from finecomb.core.protocol import Protocol
from finecomb.core.quotes import find_exact_or_respelled, find_most_similar_words
from finecomb.core.records import Annotation, Annotator, Document, Mark, Note, QualificationRecord, Settings
from finecomb.core.span import Span
from finecomb.core.study import StudyItem
from finecomb.core.text_folding import FoldedText, Range, text_similarity
from finecomb.engine.guarded_files import load_workbook, open_archive
from finecomb.formats.base import Format, Options
from finecomb.formats.source_files import build_record, resolve_label_name
from finecomb.protocols import load_shipped

TEXTS_SHEET, PEOPLE_SHEET, ERRORS_SHEET, GOLD_SHEET = "generated_text_info", "participant_info", "annotations", "GSML"
WORKBOOK = "participants_and_annotations.xlsx"
UNTYPED_LABELS = frozenset(["#", "no type"])
_GENDER_NAMES = {"male": "man", "female": "woman"}
_TEXT_RUN = re.compile(r"\S+(?:\s\S+)*")  # the stories have more than one space between sentences
_MIN_SENTENCE_LIKENESS = 0.75


# --- sheets ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SheetRow:
    """One row of a sheet by column name, with its location for messages."""

    number: int
    cells: Mapping[str, str]
    where: str

    def __getitem__(self, name: str) -> str:
        return self.cells.get(name, "")

    def require_value(self, name: str) -> str:
        """Return the value of a column that must not be empty."""
        if not self[name]:
            raise FormatError(f"{self.where}: {name!r} is empty")
        return self[name]


def _read_sheets(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Read the cells of every sheet; any error that the parser raises for a damaged file becomes a `FormatError`."""
    if not path.is_file():
        raise FormatError(f"{path}: {'is a folder; expected a workbook' if path.is_dir() else 'no such file'}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            book = load_workbook(path, data_only=True)
        return {sheet.title: list(sheet.iter_rows(values_only=True)) for sheet in book.worksheets}
    except Exception as error:
        raise FormatError(f"{path}: cannot be read as an Excel workbook: {shorten(str(error), 100)}") from None


def _sheet_rows(sheets: Mapping[str, list[tuple[Any, ...]]], name: str, first: str, path: Path) -> list[SheetRow]:
    """Return the rows below the header row, which begins with `first`; if a column is repeated, the first is used."""
    if name not in sheets:
        raise FormatError(f"{path}: the workbook has no sheet {name!r}{did_you_mean(name, sheets)}")
    cells = [tuple(map(_cell_text, row)) for row in sheets[name]]
    header = next((number for number, row in enumerate(cells) if row and row[0] == first), None)
    if header is None:
        raise FormatError(f"{path}: sheet {name!r}: no row begins with {first!r}, the name of its first column")
    numbered = list(enumerate(cells, 1))[header + 1 :]
    names = cells[header]
    return [
        SheetRow(number, dict(reversed(list(zip(names, row, strict=False)))), f"{path}: {name} row {number}")
        for number, row in numbered
        if any(row)
    ]


def _cell_text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == datetime.min.time() else value.isoformat()
    return "" if value is None else str(value)


# --- texts and annotators ----------------------------------------------------------------------------------------


def _read_documents(sheets: Mapping[str, list[tuple[Any, ...]]], path: Path) -> dict[str, Document]:
    documents = {}
    for row in _sheet_rows(sheets, TEXTS_SHEET, "ID", path):
        if not row["text"].strip():
            continue
        links = {name: row[name] for name in ("bref url", "home_season", "visiting_season") if row[name]}
        meta = {"model": row["System"], "stage": row["Stage"], "line": row["Line"], "date": row["Game Date"]}
        facts: dict[str, object] = {name: value for name, value in meta.items() if value}
        id = row.require_value("ID").strip()
        if id in documents:
            raise FormatError(f"{row.where}: duplicate ID {id!r}")
        documents[id] = build_record(
            Document, row.where, id=id, text=row["text"], meta=facts | ({"links": links} if links else {})
        )
    return documents


def _build_annotator(row: SheetRow, protocol: Protocol) -> Annotator:
    """Build an annotator with survey answers and the number of errors found in the qualification text."""
    gender = row["Answer.Q1Answer"]
    survey = {
        "gender": _GENDER_NAMES.get(gender, gender),
        "age_group": row["Answer.Q2Answer"],
        "basketball": row["Q3 Text"],
    }
    score = row["Bonus Score (% vs ours)"]
    qualification = None
    if row["Passed"] and re.fullmatch(r"-?\d{1,6}(\.\d{1,6})?", score):
        qualification = QualificationRecord(protocol=protocol.id, score=float(score), passed=row["Passed"] == "Y")
    meta = {"notes": row["Notes"], "errors_submitted": row["Experiment Errors Found"]}
    return build_record(
        Annotator,
        row.where,
        id=row.require_value("WorkerId"),
        kind="human",
        survey={name: value for name, value in survey.items() if value},
        qualification=qualification,
        meta={name: value for name, value in meta.items() if value},
    )


# --- locating errors ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QuoteLocation:
    """Location of an error in its text, or the reason why it was not located."""

    span: Range | None
    why: str = ""
    alike: int = 1
    """Number of equally good locations; more than one means that the location is a guess."""


def choose_ordered_locations(quotes: Sequence[tuple[str, Sequence[Range]]]) -> list[QuoteLocation]:
    """Select one location per quote so that backward steps in the text are as few as possible; in a tie, the earliest.

    Two equal consecutive quotes at the same location also count as a backward step.

    >>> quotes = [("b", [(2, 3)]), ("a", [(0, 1), (4, 5)]), ("a", [(0, 1), (4, 5)])]
    >>> [place.span for place in choose_ordered_locations(quotes)]
    [(2, 3), (0, 1), (4, 5)]
    >>> [place.alike for place in choose_ordered_locations([("a", [(0, 1), (4, 5)]), ("b", [(6, 7)])])]
    [2, 1]
    """
    ahead = _min_backward_steps(quotes)
    behind = _min_backward_steps([*reversed(quotes)], backwards=True)[::-1]
    places: list[QuoteLocation] = []
    before: tuple[str, Range] | None = None
    for (quote, ranges), steps, rest in zip(quotes, ahead, behind, strict=True):
        totals = [one + other for one, other in zip(steps, rest, strict=True)]
        alike = totals.count(min(totals))
        onwards = [
            back + (_is_backward_step(before, (quote, span)) if before else 0)
            for span, back in zip(ranges, rest, strict=True)
        ]
        before = (quote, ranges[onwards.index(min(onwards))])
        places.append(QuoteLocation(before[1], alike=alike))
    return places


def _min_backward_steps(quotes: Sequence[tuple[str, Sequence[Range]]], backwards: bool = False) -> list[list[int]]:
    """Return, for each candidate location of each quote, the minimum number of backward steps up to it."""
    table: list[list[int]] = []
    for index, (quote, ranges) in enumerate(quotes):
        if not index:
            table.append([0] * len(ranges))
            continue
        other, others = quotes[index - 1]
        row = []
        for span in ranges:
            pairs = [((other, one), (quote, span)) for one in others]
            steps = [_is_backward_step(*(pair[::-1] if backwards else pair)) for pair in pairs]
            row.append(min(step + earlier for step, earlier in zip(steps, table[-1], strict=True)))
        table.append(row)
    return table


def _is_backward_step(one: tuple[str, Range], other: tuple[str, Range]) -> int:
    return int(other[1][0] < one[1][0] or other == one)


class QuoteFinder:
    """Locator of the errors in one story, row by row."""

    def __init__(self, text: str, repeats: str) -> None:
        self.text, self.repeats = text, repeats
        self.folded = FoldedText.from_text(text)
        self.pieces = [match.span() for match in _TEXT_RUN.finditer(text)]

    def locate_rows(self, rows: Sequence[SheetRow]) -> list[QuoteLocation]:
        """Locate all rows about one sentence, which are expected in text order."""
        # Locate a sentence regardless of spaces and quotes, otherwise return the most similar piece of the text.
        # Generated stories repeat themselves. Of several matches, the one whose number in the story is closest is
        # used.
        wanted, number = rows[0]["sentence_text"], rows[0]["sentence_id"]
        sentence: Range | None
        if matches := self.folded.find_ranges(wanted):
            wanted_index = int(number) - 1 if re.fullmatch(r"\d{1,6}", number) else 0
            sentence = min(
                matches, key=lambda match: abs(sum(end <= match[0] for _, end in self.pieces) - wanted_index)
            )
        else:
            rated = [(text_similarity(wanted, self.text[start:end]), start, end) for start, end in self.pieces]
            best, start, end = max(rated, default=(0.0, 0, 0)) if wanted.strip() else (0.0, 0, 0)
            sentence = (start, end) if best >= _MIN_SENTENCE_LIKENESS else None
        if sentence is None:
            return [QuoteLocation(None, "its sentence is not in the text") for _ in rows]
        choices = [self._candidate_ranges(sentence, row) for row in rows]
        located = [index for index, ranges in enumerate(choices) if ranges]
        places = [QuoteLocation(None, "the quote is not in its sentence") for _ in rows]
        if self.repeats == "first":
            chosen = [QuoteLocation(choices[index][0], alike=len(choices[index])) for index in located]
        else:
            chosen = choose_ordered_locations(
                [(rows[index].require_value("error").strip(), choices[index]) for index in located]
            )
        for index, place in zip(located, chosen, strict=True):
            places[index] = place
        return places

    def _candidate_ranges(self, sentence: Range, row: SheetRow) -> list[Range]:
        """Return the candidate ranges, in text order, that the row's context or correction supports."""
        start, end = sentence
        text, quote, context = self.text[start:end], row.require_value("error").strip(), row["context"].strip()
        if quote.lower() == "whole sentence" and not find_exact_or_respelled(quote, text):
            return [sentence]
        places = find_exact_or_respelled(quote, text)
        if not places and (near := find_most_similar_words(quote, text)):
            places = [near]
        if len(places) < 2 or not context:
            pass  # only one candidate, or no information to choose by
        elif (ordinal := _ORDINAL_PHRASE.fullmatch(context)) and _ORDINALS[ordinal[1].lower()] <= len(places):
            places = [places[_ORDINALS[ordinal[1].lower()] - 1]]
        elif inside := [
            (a + x, a + y)
            for a, b in find_exact_or_respelled(context, text)
            for x, y in find_exact_or_respelled(quote, context)
        ]:
            places = [place for place in places if place in inside] or places
        else:
            quote_range = next(iter(find_exact_or_respelled(quote, context)), None)
            sides = (context[: quote_range[0]], context[quote_range[1] :]) if quote_range else ("", "")
            places = _keep_highest_scores(places, [_shared_word_count(text, place, *sides) for place in places])
        # Ranges next to a word of the correction that is not in the quote
        if len(places) > 1:
            new = set(_WORD.findall(row["correction"].lower())) - set(_WORD.findall(quote.lower()))
            beside = [{*_WORD.findall(text[:a].lower())[-1:], *_WORD.findall(text[b:].lower())[:1]} for a, b in places]
            places = _keep_highest_scores(places, [len(words & new) for words in beside])
        return [(start + a, start + b) for a, b in places]


_ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4}
_ORDINAL_PHRASE = re.compile(rf"({'|'.join(_ORDINALS)}) (?:occurrence|instance)", re.IGNORECASE)
_WORD = re.compile(r"\w+")


def _keep_highest_scores(places: list[Range], points: list[int]) -> list[Range]:
    """Return the ranges with the highest score, in text order."""
    return [place for place, point in zip(places, points, strict=True) if point == max(points)]


def _shared_word_count(text: str, place: Range, before: str, after: str) -> int:
    """Count the words on both sides of a range that match a phrase, outwards up to the first mismatch."""
    sides = (text[: place[0]], before, -1), (text[place[1] :], after, 1)
    return sum(
        _common_prefix_length(*(_WORD.findall(words.lower())[::step] for words in pair)) for *pair, step in sides
    )


def _common_prefix_length(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of words that two lists share from the start."""
    pairs = zip(one, other, strict=False)
    return next((index for index, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _locate_errors(
    rows: Iterable[SheetRow], documents: Mapping[str, Document], options: Options
) -> Iterator[tuple[SheetRow, QuoteLocation]]:
    finders = {id: QuoteFinder(document.text, options.repeats) for id, document in documents.items()}
    sentences: dict[tuple[str, ...], list[SheetRow]] = {}
    every = list(rows)
    for row in every:
        id = row.require_value("sheet")
        row.require_value("error")
        if id not in finders:
            raise FormatError(f"{row.where}: unknown text {id!r}{did_you_mean(id, documents)}")
        sentences.setdefault((id, row["sentence_id"], row["sentence_text"]), []).append(row)
    places = {
        row.number: place
        for (id, *_), group in sentences.items()
        for row, place in zip(group, finders[id].locate_rows(group), strict=True)
    }
    return ((row, places[row.number]) for row in every)


def _build_mark(
    id: str, row: SheetRow, place: QuoteLocation, label: str, protocol: Protocol, text: str, item: str | None
) -> Mark:
    quote = row.require_value("error").strip()
    spans = (Span(*place.span),) if place.span else ()
    words = spans[0].extract(text) if spans else quote
    meta: dict[str, Any] = {"sentence": row["sentence_id"], "context": row["context"]}
    meta |= {"quoted": quote if words != quote else "", "ambiguous": place.alike if place.alike > 1 else ""}
    return build_record(
        Mark,
        row.where,
        id=id,
        spans=spans,
        quotes=(words,),
        label=None if label in UNTYPED_LABELS else resolve_label_name(protocol, label, row.where),
        answers={"correction": row["correction"]} if row["correction"] else {},
        item=item,
        unlocated=place.why,
        meta={name: value for name, value in meta.items() if value},
    )


def _build_notes(placed: list[tuple[SheetRow, QuoteLocation]], documents: Mapping[str, Document]) -> Iterator[Note]:
    lost = [row.number for row, place in placed if place.span is None]
    near = [
        row.number
        for row, place in placed
        if place.span and documents[row["sheet"]].text[slice(*place.span)] != row["error"].strip()
    ]
    doubtful = [row.number for row, place in placed if place.alike > 1]
    if doubtful:
        sure = len(placed) - len(doubtful) - len(lost)
        listed = ", ".join(map(str, doubtful[:10])) + (", ..." if len(doubtful) > 10 else "")
        what = f"{sure} of {len(placed)} quotes were located with certainty ({sure / len(placed):.1%})"
        yield Note(text=f"{what}; {len(doubtful)} occur several times in their sentence (rows {listed})")
    if near:
        what = f"{len(near)} of {len(placed)} quotes are not verbatim in their text"
        yield Note(text=f"{what}; they were matched to the most similar words")
    if lost:
        listed = ", ".join(map(str, lost[:10])) + (", ..." if len(lost) > 10 else "")
        yield Note(text=f"{len(lost)} of {len(placed)} quotes could not be located in their text (rows {listed})")


# --- workbooks ---------------------------------------------------------------------------------------------------


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read the protocol, texts, annotators and annotations of the study, or its gold standard."""
    protocol = options.protocol or load_shipped("accuracy")
    sheets = _read_sheets(path)
    yield Settings(protocols=(protocol.id,))
    yield protocol
    yield from (_read_gold if GOLD_SHEET in sheets else _read_study)(sheets, path, protocol, options)


def _read_study(
    sheets: Mapping[str, list[tuple[Any, ...]]], path: Path, protocol: Protocol, options: Options
) -> Iterator[StudyItem]:
    documents = _read_documents(sheets, path)
    yield from documents.values()
    rows = _sheet_rows(sheets, ERRORS_SHEET, "sheet", path)
    people = _sheet_rows(sheets, PEOPLE_SHEET, "WorkerId", path)
    columns = rows[0].cells if rows else {}
    at_work = sorted((row for row in people if row["WorkerId"] in columns), key=lambda row: row["WorkerId"])
    yield from (_build_annotator(row, protocol) for row in at_work)
    if left := len(people) - len(at_work):
        yield Note(text=f"{left} people who only took the qualification test are omitted")
    placed = list(_locate_errors(rows, documents, options))
    yield from _build_notes(placed, documents)
    read = [id for id, document in documents.items() if document.meta.get("stage") != "Qualifying"]
    for annotator in (row["WorkerId"] for row in at_work):
        yield from _build_annotations(annotator, read, placed, protocol, documents)


def _build_annotations(
    annotator: str,
    read: Iterable[str],
    placed: list[tuple[SheetRow, QuoteLocation]],
    protocol: Protocol,
    documents: Mapping[str, Document],
) -> Iterator[Annotation]:
    """Build an annotation per annotated text, including texts without marks; an empty cell means "not marked"."""
    marks: dict[str, list[Mark]] = defaultdict(list)
    for row, place in placed:
        if label := row[annotator]:
            story, item = row["sheet"], str(row.number)
            text = documents[story].text
            marks[story].append(_build_mark(f"{story}/{annotator}/{item}", row, place, label, protocol, text, item))
    for id in dict.fromkeys([*read, *marks]):
        text_marks = tuple(marks[id])
        yield Annotation(
            id=f"{id}/{annotator}", document=id, annotator=annotator, protocol=protocol.id, marks=text_marks
        )


def _read_gold(
    sheets: Mapping[str, list[tuple[Any, ...]]], path: Path, protocol: Protocol, options: Options
) -> Iterator[StudyItem]:
    """Read the gold standard; its texts and the errors it was merged from are in the other workbook."""
    other = options.texts or path.with_name(WORKBOOK)
    if not other.is_file():
        raise FormatError(
            f"{path}: its texts are in {WORKBOOK}, which is not in the same folder; name it with {param('texts')}"
        )
    beside = _read_sheets(other)
    documents = {
        id: text_record
        for id, text_record in _read_documents(beside, other).items()
        if text_record.meta.get("stage") != "Qualifying"
    }
    yield from documents.values()
    yield Annotator(id="gold", kind="gold")
    sources = list(_locate_errors(_sheet_rows(beside, ERRORS_SHEET, "sheet", other), documents, options))
    unused = defaultdict(list)
    for row, place in sources:
        unused[_error_key(row)].append((row, place))
    marks: dict[str, list[Mark]] = defaultdict(list)
    golds = _sheet_rows(sheets, GOLD_SHEET, "sheet", path)
    by_themselves = {row.number: place for row, place in _locate_errors(golds, documents, options)}
    placed = []
    for row in golds:
        story = row.require_value("sheet")
        candidates = unused[_error_key(row)]
        source, place = candidates.pop(0) if candidates else (None, by_themselves[row.number])
        placed.append((row, place))
        id, item = f"{story}/gold/{row.number}", str(source.number) if source else None
        text = documents[story].text
        marks[story].append(_build_mark(id, row, place, row.require_value("category"), protocol, text, item))
    yield from _build_notes(placed, documents)
    for id in documents:
        text_marks = tuple(marks[id])
        yield Annotation(id=f"{id}/gold", document=id, annotator="gold", protocol=protocol.id, marks=text_marks)


def _error_key(row: SheetRow) -> tuple[str, ...]:
    return tuple(row[name] for name in ("sheet", "sentence_id", "error", "correction"))


def sniff(path: Path) -> bool:
    """Return True for a workbook with the sheets of either file."""
    try:
        with open_archive(path) as archive, archive.open("xl/workbook.xml") as file:
            names = set(re.findall(r'<sheet\b[^>]*?\bname="([^"]*)"', file.read(1 << 16).decode(errors="ignore")))
    except (
        FinecombError,
        OSError,
        zipfile.BadZipFile,
        zlib.error,
        KeyError,
        RuntimeError,
        NotImplementedError,
        ValueError,
        EOFError,
    ):
        return False
    return {TEXTS_SHEET, PEOPLE_SHEET, ERRORS_SHEET} <= names or names == {GOLD_SHEET}


FORMAT = Format(
    "thomson-reiter",
    "a workbook of Thomson and Reiter (2020)",
    read,
    sniff=sniff,
    options=frozenset(["protocol", "texts", "repeats"]),
)
