"""GSML, the markup of the accuracy shared task: errors as token IDs in a CSV file, with the texts in separate files.

Tokens are separated by white space and numbered from 1, with inclusive ends. A row gives document IDs, sentence IDs, or
both. A sentence ends after a token that is a full stop, unless `token_lookup.yaml` defines it otherwise. A folder holds
several annotators: `gsml.csv` is the gold standard, and any other CSV file is named after its annotator.
"""

from __future__ import annotations

import csv
import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from finecomb.annotators.detectors.boxscore.game_record import is_game_record
from finecomb.core.errors import FormatError, did_you_mean, param, shorten
from finecomb.core.protocol import Protocol
from finecomb.core.protocol_yaml import load_yaml
from finecomb.core.record_links import get_links, with_links
from finecomb.core.records import Annotation, Annotator, Document, Mark, Note, Settings
from finecomb.core.span import TEXT_PART, Offsets, Span, token_range
from finecomb.core.study import StudyItem
from finecomb.core.tokens import whitespace_token_offsets
from finecomb.formats.atomic_file import sync_to_disk
from finecomb.formats.base import Format, Options
from finecomb.formats.source_files import (
    JsonObject,
    build_record,
    iter_csv_rows,
    open_text,
    read_first_characters,
    read_text,
    report_decoding_errors,
    resolve_label_name,
)
from finecomb.formats.text_evidence import TEXT_ID_FIELD, read_evidence_file
from finecomb.protocols import load_shipped

COLUMNS = (
    *("TEXT_ID", "SENTENCE_ID", "ANNOTATION_ID", "TOKENS", "SENT_TOKEN_START", "SENT_TOKEN_END"),
    *("DOC_TOKEN_START", "DOC_TOKEN_END", "TYPE", "CORRECTION", "COMMENT"),
)
SENTENCE_ID_COLUMNS = ("SENTENCE_ID", "SENT_TOKEN_START", "SENT_TOKEN_END")
DOCUMENT_ID_COLUMNS = ("DOC_TOKEN_START", "DOC_TOKEN_END")
ANSWER_COLUMNS = {"correction": "CORRECTION", "comment": "COMMENT"}
GOLD_ANNOTATOR = "gold"
GOLD_FILE = "gsml.csv"
LOOKUP_FILE = "token_lookup.yaml"
GAMES_FILE = "games.csv"
DATA_FILE = "shared_task.jsonl"
_MAX_ERRORS = 50


# --- reading -----------------------------------------------------------------------------------------------------


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read protocol, documents, annotators and annotations; a file of games or box scores has only documents."""
    if path.is_dir():
        files = [file for file in sorted(path.glob("*.csv")) if _has_markup_columns(read_header(file))]
        if not files:
            raise FormatError(f"{path}: contains no CSV file with the columns TEXT_ID, TYPE and token IDs")
        return _read_markup(files, options)
    if path.suffix.lower() != ".csv":
        return _read_box_scores(path)
    names = read_header(path)
    if "GENERATED_TEXT" in names:
        return iter(_add_box_scores(_read_games(path), _find_box_scores(path, options)))
    for name in ("TEXT_ID", "TYPE"):
        if name not in names:
            raise FormatError(f"{path}:1: column {name!r} is missing{did_you_mean(name, names)}")
    if not _has_markup_columns(names):
        wanted = f"{', '.join(DOCUMENT_ID_COLUMNS)} or {', '.join(SENTENCE_ID_COLUMNS)}"
        raise FormatError(f"{path}:1: columns with token IDs are missing; expected {wanted}")
    return _read_markup([path], options)


def read_header(path: Path) -> list[str]:
    """Return the column names in the first line of a table."""
    with open_text(path) as file, report_decoding_errors(path):
        try:
            return next(csv.reader(file, strict=True), [])
        except csv.Error as error:
            raise FormatError(f"{path}:1: not a comma-separated table: {error}") from None


def _has_markup_columns(names: Iterable[str]) -> bool:
    names = set(names)
    return {"TEXT_ID", "TYPE"} <= names and (names >= set(DOCUMENT_ID_COLUMNS) or names >= set(SENTENCE_ID_COLUMNS))


def _read_markup(files: list[Path], options: Options) -> Iterator[StudyItem]:
    if options.annotator and len(files) > 1:
        raise FormatError(
            f"{files[0].parent}: contains marks of {len(files)} annotators, one per file, but {param('annotator')} "
            "names only one; omit it or pass a single file"
        )
    protocol = options.protocol or load_shipped("accuracy")
    yield Settings(protocols=(protocol.id,))
    yield protocol
    source = options.texts or _find_texts_path(files[0])
    data = _find_box_scores(files[0], options)
    documents = {document.id: document for document in _add_box_scores(_read_texts(source), data)}
    yield from documents.values()
    if data and (bare := sum(not is_game_record(document.data) for document in documents.values())):
        yield Note(text=f"{data} has no record for {bare:,} of {len(documents):,} texts")
    layouts = {id: TokenLayout.from_text(document.text) for id, document in documents.items()}
    lookup = TokenLookup.from_nearby_file(files[0], source)
    for file in files:
        name = options.annotator or (GOLD_ANNOTATOR if file.stem.lower().startswith("gsml") else file.stem)
        yield build_record(
            Annotator,
            str(file),
            id=name,
            kind="gold" if name == GOLD_ANNOTATOR or file.stem.lower().startswith("gsml") else "detector",
        )
        marks = MarkRowReader(file, name, protocol, documents, layouts, lookup).read_marks()
        for id in documents:
            text_marks = tuple(marks.get(id, ()))
            yield Annotation(id=f"{id}/{name}", document=id, annotator=name, protocol=protocol.id, marks=text_marks)
        if unmarked := len(documents) - len(marks):
            meaning = "they count as annotated without errors"
            yield Note(text=f"{file.name} has no errors in {unmarked:,} of {len(documents):,} texts; {meaning}")


# --- texts, box scores and links ---------------------------------------------------------------------------------


def _find_texts_path(path: Path) -> Path:
    """Return the path of the texts for a file of marks, using the file names of the shared task."""
    places = [folder / name for folder in (path.parent, path.parent.parent) for name in ("texts", GAMES_FILE)]
    for place in places:
        if place.exists():
            return place
    looked = ", ".join(str(place) for place in places)
    raise FormatError(f"{path}: no texts next to it (searched for {looked}); name them with {param('texts')}")


def _read_texts(source: Path) -> Iterator[Document]:
    """Read documents from a folder of text files or from `games.csv`."""
    if not source.is_dir():
        yield from _read_games(source)
        return
    files = sorted(source.glob("*.txt"))
    if not files:
        raise FormatError(f"{source}: contains no text files (*.txt)")
    table = source.parent / GAMES_FILE
    links = {document.id: document.data for document in _read_games(table)} if table.is_file() else {}
    for document in (build_record(Document, str(file), id=file.stem, text=read_text(file)) for file in files):
        yield document.model_copy(update={"data": links[document.id]}) if links.get(document.id) else document


def _read_games(path: Path) -> Iterator[Document]:
    names = read_header(path)
    for name in ("TEXT_ID", "GENERATED_TEXT"):
        if name not in names:
            raise FormatError(f"{path}:1: column {name!r} is missing{did_you_mean(name, names)}")
    games: set[str] = set()
    for line, row in iter_csv_rows(path):
        meta = {name.lower(): row[name] for name in names if name not in ("TEXT_ID", "GENERATED_TEXT") and row[name]}
        where, id = f"{path}:{line}", _text_id(row["TEXT_ID"])
        if id in games:
            raise FormatError(f"{where}: TEXT_ID: duplicate ID {id!r}")
        games.add(id)
        titles = {
            "BREF_BOX": "Box score",
            "BREF_HOME": f"{row.get('HOME_NAME', 'Home')} season",
            "BREF_VIS": f"{row.get('VIS_NAME', 'Visitors')} season",
            "CALENDAR": "Calendar",
        }
        addresses = {name: value.strip() for name, value in row.items() if value and re.match(r"https?://\S+$", value)}
        data = with_links(
            None,
            {titles.get(name, name.replace("_", " ").capitalize()): address for name, address in addresses.items()},
        )
        yield build_record(Document, where, id=id, text=row["GENERATED_TEXT"], data=data, meta=meta)


def _text_id(value: str) -> str:
    return value.strip().removesuffix(".txt")


def _find_box_scores(path: Path, options: Options) -> Path | None:
    """Return the path of the box scores: the one the user gave, or `shared_task.jsonl` next to the texts or marks."""
    places = (folder / DATA_FILE for folder in (path.parent, path.parent.parent))
    return options.data or next((place for place in places if place.is_file()), None)


def _add_box_scores(documents: Iterable[Document], path: Path | None) -> Iterator[Document]:
    """Add box scores to documents as data; the human summary becomes a reference, which checkers do not use."""
    games = {game.id: game for game in read_evidence_file(path) if game.id} if path else {}
    for document in documents:
        if document.id not in games:
            yield document
            continue
        game = games[document.id]
        values = {name: getattr(document, name) for name in Document.model_fields}
        yield build_record(
            Document,
            game.where,
            **(values | {"data": with_links(game.data, get_links(document.data)), "references": game.references}),
        )


def _read_box_scores(path: Path) -> Iterator[StudyItem]:
    """Read documents from box scores; RotoWire's own files include a human summary, which becomes the text."""
    games = read_evidence_file(path)
    width = len(str(len(games)))
    has_text_ids = TEXT_ID_FIELD in read_first_characters(path, 1 << 20)
    for number, game in enumerate(games, 1):
        id = game.id or f"{path.stem}-{number:0{width}}"
        if has_text_ids:
            yield build_record(Document, game.where, id=id, text="", data=game.data, references=game.references)
        else:
            yield build_record(Document, game.where, id=id, text="".join(game.references), data=game.data)


@dataclass(frozen=True, slots=True)
class TokenLayout:
    """Offsets of the tokens of a text, and their numbering within sentences."""

    offsets: Offsets
    numbers: list[tuple[int, int]]
    """Sentence ID and ID within the sentence of each token."""
    ids: dict[tuple[int, int], int] = field(repr=False)
    """Document token ID by sentence ID and ID within the sentence."""

    @classmethod
    def from_text(cls, text: str) -> TokenLayout:
        """Split a text by the task's rule: a sentence ends after a token that is a full stop."""
        offsets = whitespace_token_offsets(text)
        numbers, sentence, token = [], 1, 0
        for start, end in offsets:
            token += 1
            numbers.append((sentence, token))
            if text[start:end] == ".":
                sentence, token = sentence + 1, 0
        return cls(offsets, numbers, {pair: at for at, pair in enumerate(numbers, 1)})


class TokenLookup:
    """Token IDs from `token_lookup.yaml`, if it exists, read on first use; they override the rule for sentences."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    @classmethod
    def from_nearby_file(cls, *paths: Path) -> TokenLookup:
        """Return the lookup from a `token_lookup.yaml` next to the marks or the texts."""
        folders = [folder for path in paths for folder in (path.parent, path.parent.parent)]
        files = (folder / LOOKUP_FILE for folder in folders if (folder / LOOKUP_FILE).is_file())
        return cls(next(files, None))

    @functools.cached_property
    def table(self) -> Mapping[Any, Any]:
        """Document token IDs by text, sentence and token."""
        if self.path is None:
            return {}
        value = load_yaml(read_text(self.path), str(self.path))
        return JsonObject(JsonObject(value, str(self.path)).get("sent_to_doc", dict), str(self.path)).value

    def document_token_id(self, text: str, layout: TokenLayout, sentence: int, token: int) -> int | None:
        """Return the document token ID of a token given by its sentence and its ID there; None if it does not exist."""
        tokens_of_text = self.table.get(text)
        if tokens_of_text is None:
            return layout.ids.get((sentence, token))
        tokens = tokens_of_text.get(sentence) if isinstance(tokens_of_text, dict) else None
        number = tokens.get(token) if isinstance(tokens, dict) else None
        return number if type(number) is int and 1 <= number <= len(layout.numbers) else None


# --- rows --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class MarkRowReader:
    """Reader for the rows of one file of marks; one exception reports all errors."""

    path: Path
    annotator: str
    protocol: Protocol
    documents: Mapping[str, Document]
    layouts: Mapping[str, TokenLayout]
    lookup: TokenLookup
    used: dict[tuple[str, int], int] = field(default_factory=dict)
    """Line of the row that marked each token."""
    style: set[str] = field(default_factory=lambda: {"sentence", "document"})
    """Types of token IDs, sentence or document, that all rows so far have."""

    def read_marks(self) -> dict[str, list[Mark]]:
        """Read the marks by text, in file order."""
        marks: dict[str, list[Mark]] = defaultdict(list)
        slips: list[str] = []
        for line, row in iter_csv_rows(self.path):
            try:
                where = f"{self.path}:{line}"
                id = _text_id(row["TEXT_ID"])
                if id not in self.documents:
                    raise FormatError(f"{where}: TEXT_ID: unknown text {id!r}{did_you_mean(id, self.documents)}")
                marks[id].append(self._build_mark(id, row, line, {mark.id for mark in marks[id]}))
            except FormatError as error:
                slips.append(str(error))
                if len(slips) >= _MAX_ERRORS:
                    break
        if slips:
            raise FormatError("\n".join(slips))
        return marks

    def _build_mark(self, document: str, row: Mapping[str, str], line: int, taken: set[str]) -> Mark:
        where = f"{self.path}:{line}"
        first, last = self._token_range(document, row, where)
        for token in range(first, last + 1):
            before = self.used.setdefault((document, token), line)
            if before != line:
                what = f"token {token} of {document} is already used by line {before}"
                raise FormatError(f"{self.path}:{line}: {what}; a token can belong to only one error")
        offsets, text = self.layouts[document].offsets, self.documents[document].text
        start, end = int(offsets[first - 1, 0]), int(offsets[last - 1, 1])
        quote, words = text[start:end], row.get("TOKENS", "")
        if words.split() and words.split() != quote.split():
            place = f"tokens {first} to {last} of {document}"
            raise FormatError(f"{where}: TOKENS: found {shorten(words)!r}, but {place} are {shorten(quote)!r}")
        spelling = row["TYPE"].strip()
        id = f"{document}/{self.annotator}/{row.get('ANNOTATION_ID', '').strip() or len(taken) + 1}"
        number, candidate = 1, id
        while candidate in taken:
            number += 1
            candidate = f"{id}.{number}"
        return build_record(
            Mark,
            where,
            id=candidate,
            spans=(Span(start, end),),
            quotes=(quote,),
            label=resolve_label_name(self.protocol, spelling, f"{where}: TYPE") if spelling else None,
            answers={name: row[column] for name, column in ANSWER_COLUMNS.items() if row.get(column)},
        )

    def _token_range(self, document: str, row: Mapping[str, str], where: str) -> tuple[int, int]:
        """Return the first and last token of a mark from the IDs in its row."""
        given = {
            "document": _parse_ids(row, DOCUMENT_ID_COLUMNS, where),
            "sentence": _parse_ids(row, SENTENCE_ID_COLUMNS, where),
        }
        kinds = {kind for kind, numbers in given.items() if numbers}
        if not kinds:
            raise FormatError(f"{where}: token IDs are missing; add {' and '.join(DOCUMENT_ID_COLUMNS)}")
        if not kinds & self.style:
            (before,), (now,) = self.style, kinds
            raise FormatError(
                f"{where}: this row has only {now} IDs, but previous rows have only {before} IDs; "
                "use the same type of ID in all rows"
            )
        self.style &= kinds
        if not given["document"]:
            return self._range_from_sentence_ids(document, given["sentence"], where)
        first, last = given["document"]
        count = len(self.layouts[document].numbers)
        if not 1 <= first <= last <= count:
            expected = f"expected 1 <= start <= end <= {count}, the number of tokens of {document}"
            raise FormatError(f"{where}: {DOCUMENT_ID_COLUMNS[0]} {first}, {DOCUMENT_ID_COLUMNS[1]} {last}: {expected}")
        if given["sentence"]:
            # Reject sentence IDs that name other tokens; the rule is tried first, since the lookup is slow to read
            tokens = (first, last)
            sentence, start, end = given["sentence"]
            sentence_ids = self.layouts[document].ids
            if (sentence_ids.get((sentence, start)), sentence_ids.get((sentence, end))) != tokens and (
                by_sentence := self._range_from_sentence_ids(document, given["sentence"], where)
            ) != tokens:
                claim = f"sentence IDs name tokens {by_sentence[0]} to {by_sentence[1]}"
                raise FormatError(
                    f"{where}: {claim}, but document IDs name tokens {tokens[0]} to {tokens[1]}; they must be equal"
                )
        return first, last

    def _range_from_sentence_ids(self, document: str, ids: tuple[int, ...], where: str) -> tuple[int, int]:
        sentence, *ends = ids
        layout = self.layouts[document]
        first, last = (self.lookup.document_token_id(document, layout, sentence, token) for token in ends)
        if first is None or last is None or last < first:
            named = ", ".join(f"{name} {value}" for name, value in zip(SENTENCE_ID_COLUMNS, ids, strict=True))
            raise FormatError(f"{where}: {named}: {document} has no such tokens")
        return first, last


def _parse_ids(row: Mapping[str, str], names: tuple[str, ...], where: str) -> tuple[int, ...]:
    """Parse the token IDs in these columns; None if the columns are empty."""
    values = [row.get(name, "").strip() for name in names]
    if not any(values[-2:]):
        return ()
    for name, value in zip(names, values, strict=True):
        if not re.fullmatch(r"[0-9]{1,9}(\.0)?", value):  # a spreadsheet may have changed 18 to 18.0
            raise FormatError(f"{where}: {name}: expected an integer, found {value[:20]!r}")
    return tuple(int(value.removesuffix(".0")) for value in values)


# --- writing -----------------------------------------------------------------------------------------------------


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write a folder with `texts/` and a CSV file per annotator, or one annotator's marks to a .csv path."""
    alone = path.suffix.lower() == ".csv"
    if not alone:
        (path / "texts").mkdir(parents=True)
    with GsmlWriter(path, alone) as writer:
        for item in items:
            if isinstance(item, Document):
                writer.texts[item.id] = item.text
                if not writer.alone:
                    _reject_invalid_file_name("document", item.id)
                    mark = (
                        "\ufeff" if item.text.startswith("\ufeff") else ""
                    )  # otherwise the first character would be dropped
                    file = writer.path / "texts" / f"{item.id}.txt"
                    file.write_text(mark + item.text, encoding="utf-8", newline="")
            elif isinstance(item, Annotation) and (item.phase, item.status, item.round, item.about) == (
                "work",
                "submitted",
                0,
                None,
            ):
                writer.write_annotation(item)
        # Require that every annotator has annotated every text, because that is what a folder implies
        if not writer.alone:
            for annotator, read in writer.read.items():
                if missing := [id for id in writer.texts if id not in read]:
                    what = f"annotator {annotator!r} has not annotated {len(missing):,} documents, e.g. {missing[0]!r}"
                    raise FormatError(
                        f"{what}, which GSML would treat as annotated without errors; "
                        "write only documents that all annotators have annotated, or one annotator to a .csv path"
                    )


class GsmlWriter:
    """Writer of GSML files; it rejects marks that the format would change."""

    def __init__(self, path: Path, alone: bool) -> None:
        self.path, self.alone = path, alone
        self.texts: dict[str, str] = {}
        self.layouts: dict[str, TokenLayout] = {}
        self.files: dict[str, IO[str]] = {}
        self.read: dict[str, set[str]] = defaultdict(set)
        self.used: dict[tuple[str, str], set[int]] = defaultdict(set)

    def __enter__(self) -> GsmlWriter:
        if self.alone:
            self._open_table("", self.path)
        return self

    def __exit__(self, *_: object) -> None:
        for file in self.files.values():
            sync_to_disk(file)
            file.close()

    def write_annotation(self, annotation: Annotation) -> None:
        """Write a row per mark."""
        if self.alone:
            if self.read and annotation.annotator not in self.read:
                raise FormatError(
                    f"a CSV file can store one annotator, but there are {next(iter(self.read))!r} "
                    f"and {annotation.annotator!r}; write to a path without .csv to create a folder "
                    "with a file per annotator"
                )
            file = self.files[""]
        else:
            if annotation.annotator not in self.files:
                _reject_invalid_file_name("annotator", annotation.annotator)
                name = GOLD_FILE if annotation.annotator == GOLD_ANNOTATOR else f"{annotation.annotator}.csv"
                if annotation.annotator != GOLD_ANNOTATOR and (
                    annotation.annotator.lower().startswith("gsml") or annotation.annotator.lower() == "games"
                ):
                    raise FormatError(
                        f"annotator {annotation.annotator!r}: the file name {name} is reserved in GSML; use another ID"
                    )
                self._open_table(annotation.annotator, self.path / name)
            file = self.files[annotation.annotator]
        id = annotation.document
        self.read[annotation.annotator].add(id)
        if id not in self.layouts:
            self.layouts = {id: TokenLayout.from_text(self.texts.get(id, ""))}  # most streams are ordered by document
        layout, used = self.layouts[id], self.used[annotation.annotator, id]
        for number, mark in enumerate(annotation.marks, 1):
            if len(mark.spans) != 1 or not len(mark.spans[0]) or mark.spans[0].part != TEXT_PART:
                continue
            tokens = _tokens_covered_by_mark(mark, layout, self.texts.get(id, ""))
            if shared := used.intersection(tokens):
                what = f"mark {mark.id!r} shares token {min(shared)} of {id} with another mark of the same annotator"
                raise FormatError(f"{what}; GSML allows a token in only one error, so merge the marks or remove one")
            used.update(tokens)
            # Write a row as in the task's files, but quote carriage returns in fields, which Python's csv does not
            row = _build_row(mark, annotation, number, tokens, layout)
            values = [row[name] for name in COLUMNS]
            if any("\r" in str(value) for value in values):
                csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL).writerow(values)
            else:
                csv.writer(file, lineterminator="\n").writerow(values)

    def _open_table(self, key: str, path: Path) -> None:
        file = path.open("w", encoding="utf-8", newline="")
        csv.writer(file, lineterminator="\n").writerow(COLUMNS)
        self.files[key] = file


def _reject_invalid_file_name(what: str, id: str) -> None:
    if not re.fullmatch(r"[^/\\:*?\"<>|\x00-\x1f.][^/\\:*?\"<>|\x00-\x1f]{0,150}", id):
        raise FormatError(
            f'{what} ID {id!r} cannot be a file name, as GSML requires; use IDs without / \\ : * ? " < > |'
        )


def _tokens_covered_by_mark(mark: Mark, layout: TokenLayout, text: str) -> range:
    """Return the tokens that a mark covers, numbered from 1; a mark that splits a token is rejected."""
    span = mark.spans[0]
    first, last = token_range(span, layout.offsets)
    if first < last:
        start, end = int(layout.offsets[first, 0]), int(layout.offsets[last - 1, 1])
        if (start, end) == (span.start, span.end):
            return range(first + 1, last + 1)
        coverage = f"the complete tokens are {shorten(text[start:end])!r} at [{start}, {end})"
    else:
        coverage = "it covers no token"
    place = f"mark {mark.id!r}: {shorten(span.extract(text))!r} at [{span.start}, {span.end})"
    raise FormatError(
        f"{place} does not consist of complete tokens, as GSML requires; {coverage}. "
        "Extend the mark, or add spaces around punctuation in the texts before annotation"
    )


def _build_row(
    mark: Mark, annotation: Annotation, number: int, tokens: range, layout: TokenLayout
) -> dict[str, object]:
    first, last = tokens[0], tokens[-1]
    (sentence, start), (last_sentence, end) = layout.numbers[first - 1], layout.numbers[last - 1]
    within = (sentence, start, end) if sentence == last_sentence else ("", "", "")  # IDs cannot cross sentences
    prefix = f"{annotation.document}/{annotation.annotator}/"
    values: dict[str, object] = {
        "TEXT_ID": f"{annotation.document}.txt",
        "ANNOTATION_ID": mark.id.removeprefix(prefix) if mark.id.startswith(prefix) else number,
        "TOKENS": " ".join(mark.quotes[0].split()),
        "TYPE": (mark.label or "").upper().replace("-", "_"),
        **dict(zip(SENTENCE_ID_COLUMNS, within, strict=True)),
        **dict(zip(DOCUMENT_ID_COLUMNS, (first, last), strict=True)),
    }
    return values | {column: mark.answers.get(name, "") for name, column in ANSWER_COLUMNS.items()}


# --- format ------------------------------------------------------------------------------------------------------


def sniff(path: Path) -> bool:
    """Return True for a folder with `gsml.csv`, or a file whose first line has the columns of the task's files."""
    if path.is_dir():
        return (path / GOLD_FILE).is_file() or (
            (path / "texts").is_dir()
            and any("DOC_TOKEN_START" in read_first_characters(file) for file in path.glob("*.csv"))
        )
    start = read_first_characters(path)
    names = {name.strip('"') for name in start.partition("\n")[0].strip().split(",")}
    before = start.partition('"home_name"')[0]
    box_score = start.lstrip()[:1] in ("{", "[") and before != start and '"box_score"' in start
    box_score &= '"data"' not in before  # a file with "data" contains documents instead
    return _has_markup_columns(names) or {"TEXT_ID", "GENERATED_TEXT"} <= names or box_score


FORMAT = Format(
    "gsml",
    "the accuracy shared task's GSML",
    read,
    write,
    suffixes=(GOLD_FILE,),
    sniff=sniff,
    holds=frozenset(["annotation without marks", "mark correction", "mark comment", "mark without label"]),
    options=frozenset(["protocol", "texts", "data", "annotator"]),
)
