"""The accuracy shared task's markup (GSML): mistakes in a CSV file as token ids, the texts in files of their own.

Tokens are what stands between white space and are counted from 1, ends inclusive. A row gives document ids, ids within
a sentence, or both; a sentence ends after a token that is a full stop, unless a `token_lookup.yaml` says otherwise.
A folder holds several annotators: `gsml.csv` is the gold standard, any other CSV file is called by its annotator.
"""

from __future__ import annotations

import csv
import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import yaml

from finecomb.annotators.detectors.boxscore.game_record import is_game
from finecomb.core.errors import FormatError, did_you_mean, param, shorten
from finecomb.core.protocol import Protocol
from finecomb.core.record_links import links_of, with_links
from finecomb.core.records import Annotation, Annotator, AnnotatorKind, Document, Mark, Note, Settings
from finecomb.core.span import TEXT, Offsets, Span, token_range
from finecomb.core.study import StudyItem
from finecomb.core.tokens import whitespace
from finecomb.formats.atomic_file import sync_to_disk
from finecomb.formats.base import Format, Options
from finecomb.formats.source_files import (
    JsonObject,
    build_record,
    csv_rows,
    open_text,
    read_start,
    read_text,
    report_decoding_errors,
    resolve_label,
)
from finecomb.formats.text_evidence import TEXT_ID_FIELD, GameEvidence, read_evidence_file
from finecomb.protocols import load_shipped

COLUMNS = (
    *("TEXT_ID", "SENTENCE_ID", "ANNOTATION_ID", "TOKENS", "SENT_TOKEN_START", "SENT_TOKEN_END"),
    *("DOC_TOKEN_START", "DOC_TOKEN_END", "TYPE", "CORRECTION", "COMMENT"),
)
SENTENCE_IDS = ("SENTENCE_ID", "SENT_TOKEN_START", "SENT_TOKEN_END")
DOCUMENT_IDS = ("DOC_TOKEN_START", "DOC_TOKEN_END")
ANSWER_COLUMNS = {"correction": "CORRECTION", "comment": "COMMENT"}
GOLD = "gold"
GOLD_FILE = "gsml.csv"
LOOKUP_FILE = "token_lookup.yaml"
GAMES_FILE = "games.csv"
DATA_FILE = "shared_task.jsonl"
_MAX_ERRORS = 50


# --- reading -----------------------------------------------------------------------------------------------------


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Protocol, documents, annotators, annotations; a table of games or of box scores gives documents only."""
    if path.is_dir():
        files = [file for file in sorted(path.glob("*.csv")) if _has_markup_columns(read_header(file))]
        if not files:
            raise FormatError(f"{path}: has no CSV file with the columns TEXT_ID, TYPE and token ids")
        return _read_markup(files, options)
    if path.suffix.lower() != ".csv":
        return _read_box_scores(path)
    names = read_header(path)
    if "GENERATED_TEXT" in names:
        return iter(_add_box_scores(_read_games(path), _find_box_scores(path, options)))
    for name in ("TEXT_ID", "TYPE"):
        if name not in names:
            raise FormatError(f"{path}:1: no column {name!r}{did_you_mean(name, names)}")
    if not _has_markup_columns(names):
        wanted = f"{', '.join(DOCUMENT_IDS)} or {', '.join(SENTENCE_IDS)}"
        raise FormatError(f"{path}:1: no columns with token ids; expected {wanted}")
    return _read_markup([path], options)


def read_header(path: Path) -> list[str]:
    """The names in the first line of a table."""
    with open_text(path) as file, report_decoding_errors(path):
        try:
            return next(csv.reader(file, strict=True), [])
        except csv.Error as error:
            raise FormatError(f"{path}:1: not a table with ',' between fields: {error}") from None


def _has_markup_columns(names: Iterable[str]) -> bool:
    names = set(names)
    return {"TEXT_ID", "TYPE"} <= names and (names >= set(DOCUMENT_IDS) or names >= set(SENTENCE_IDS))


def _read_markup(files: list[Path], options: Options) -> Iterator[StudyItem]:
    if options.annotator and len(files) > 1:
        raise FormatError(
            f"{files[0].parent}: has {len(files)} files of marks, but {param('annotator')} names the maker of one"
        )
    protocol = options.protocol or load_shipped("accuracy")
    yield Settings(protocols=(protocol.id,))
    yield protocol
    source = options.texts or _find_texts(files[0])
    data = _find_box_scores(files[0], options)
    documents = {document.id: document for document in _add_box_scores(_read_texts(source), data)}
    yield from documents.values()
    if data and (bare := sum(not is_game(document.data) for document in documents.values())):
        yield Note(text=f"{data} has no record for {bare:,} of {len(documents):,} texts")
    layouts = {id: TokenLayout.from_text(document.text) for id, document in documents.items()}
    lookup = TokenLookup.from_nearby_file(files[0], source)
    for file in files:
        name = options.annotator or _annotator_name(file)
        yield build_record(Annotator, str(file), id=name, kind=_annotator_kind(file, name))
        marks = MarkRowReader(file, name, protocol, documents, layouts, lookup).read_marks()
        for id in documents:
            text_marks = tuple(marks.get(id, ()))
            yield Annotation(id=f"{id}/{name}", document=id, annotator=name, protocol=protocol.id, marks=text_marks)
        if unmarked := len(documents) - len(marks):
            meaning = "they count as read and found without mistakes"
            yield Note(text=f"{file.name} has no mistake in {unmarked:,} of {len(documents):,} texts; {meaning}")


def _annotator_name(path: Path) -> str:
    return GOLD if path.stem.lower().startswith("gsml") else path.stem


def _annotator_kind(path: Path, name: str) -> AnnotatorKind:
    return "gold" if name == GOLD or path.stem.lower().startswith("gsml") else "detector"


# --- texts, box scores and what lies beside ----------------------------------------------------------------------


def _find_texts(path: Path) -> Path:
    """The texts that belong to a file of marks, by the names the task gives them."""
    places = [folder / name for folder in (path.parent, path.parent.parent) for name in ("texts", GAMES_FILE)]
    for place in places:
        if place.exists():
            return place
    looked = ", ".join(str(place) for place in places)
    raise FormatError(
        f"{path}: its texts are not beside it (looked for {looked}); say where they are with {param('texts')}"
    )


def _read_texts(source: Path) -> Iterator[Document]:
    """Documents from a folder of text files or from `games.csv`."""
    if not source.is_dir():
        yield from _read_games(source)
        return
    files = sorted(source.glob("*.txt"))
    if not files:
        raise FormatError(f"{source}: has no text files (*.txt)")
    yield from _add_links(
        (build_record(Document, str(file), id=file.stem, text=read_text(file)) for file in files), source
    )


def _read_games(path: Path) -> Iterator[Document]:
    names = read_header(path)
    for name in ("TEXT_ID", "GENERATED_TEXT"):
        if name not in names:
            raise FormatError(f"{path}:1: no column {name!r}{did_you_mean(name, names)}")
    games: set[str] = set()
    for line, row in csv_rows(path):
        meta = {name.lower(): row[name] for name in names if name not in ("TEXT_ID", "GENERATED_TEXT") and row[name]}
        where, id = f"{path}:{line}", _text_id(row["TEXT_ID"])
        if id in games:
            raise FormatError(f"{where}: TEXT_ID: {id!r} is there twice")
        games.add(id)
        data = with_links(None, _game_links(row))
        yield build_record(Document, where, id=id, text=row["GENERATED_TEXT"], data=data, meta=meta)


def _text_id(value: str) -> str:
    return value.strip().removesuffix(".txt")


def _read_evidence(path: Path) -> list[GameEvidence]:
    """The records in a file, each with a text id of its own or called by its place in the file."""
    games = read_evidence_file(path)
    width = len(str(len(games)))
    return [
        game if game.id else replace(game, id=f"{path.stem}-{number:0{width}}") for number, game in enumerate(games, 1)
    ]


def _find_box_scores(path: Path, options: Options) -> Path | None:
    """The box scores that belong to texts or marks: those that were named, else `shared_task.jsonl` beside them."""
    places = (folder / DATA_FILE for folder in (path.parent, path.parent.parent))
    return options.data or next((place for place in places if place.is_file()), None)


def _add_box_scores(documents: Iterable[Document], path: Path | None) -> Iterator[Document]:
    """Documents with their box score as data; the human summary becomes a reference, which no checker reads."""
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
            **(values | {"data": with_links(game.data, links_of(document.data)), "references": game.references}),
        )


def _add_links(documents: Iterable[Document], beside: Path) -> Iterator[Document]:
    """Texts of a folder with the addresses that `games.csv` has for them, where it lies beside."""
    table = beside.parent / GAMES_FILE
    links = {document.id: document.data for document in _read_games(table)} if table.is_file() else {}
    for document in documents:
        yield document.model_copy(update={"data": links[document.id]}) if links.get(document.id) else document


def _game_links(row: Mapping[str, str]) -> dict[str, str]:
    """The addresses in a row of `games.csv`, by what they lead to."""
    titles = {
        "BREF_BOX": "Box score",
        "BREF_HOME": f"{row.get('HOME_NAME', 'Home')} season",
        "BREF_VIS": f"{row.get('VIS_NAME', 'Visitors')} season",
        "CALENDAR": "Calendar",
    }
    addresses = {name: value.strip() for name, value in row.items() if value and re.match(r"https?://\S+$", value)}
    return {titles.get(name, name.replace("_", " ").capitalize()): address for name, address in addresses.items()}


def _read_box_scores(path: Path) -> Iterator[StudyItem]:
    """Box scores of texts that are not there; those of RotoWire itself have what a person wrote as their text."""
    for game in _read_evidence(path):
        if TEXT_ID_FIELD in read_start(path, 1 << 20):
            yield build_record(Document, game.where, id=game.id, text="", data=game.data, references=game.references)
        else:
            yield build_record(Document, game.where, id=game.id, text="".join(game.references), data=game.data)


@dataclass(frozen=True, slots=True)
class TokenLayout:
    """Where the tokens of a text are, and how sentences number them."""

    offsets: Offsets
    numbers: list[tuple[int, int]]
    """Sentence id and id within it of each token."""
    ids: dict[tuple[int, int], int] = field(repr=False)
    """The way back, to document ids."""

    @classmethod
    def from_text(cls, text: str) -> TokenLayout:
        """By the task's rule: a sentence ends after a token that is a full stop."""
        offsets = whitespace(text)
        numbers, sentence, token = [], 1, 0
        for start, end in offsets:
            token += 1
            numbers.append((sentence, token))
            if text[start:end] == ".":
                sentence, token = sentence + 1, 0
        return cls(offsets, numbers, {pair: at for at, pair in enumerate(numbers, 1)})


class TokenLookup:
    """`token_lookup.yaml` where there is one, read when first needed; it overrules the rule for sentences."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    @classmethod
    def from_nearby_file(cls, *paths: Path) -> TokenLookup:
        """The one that lies beside the marks or the texts."""
        folders = [folder for path in paths for folder in (path.parent, path.parent.parent)]
        files = (folder / LOOKUP_FILE for folder in folders if (folder / LOOKUP_FILE).is_file())
        return cls(next(files, None))

    @functools.cached_property
    def table(self) -> Mapping[Any, Any]:
        """Document ids by text, sentence and token."""
        if self.path is None:
            return {}
        text = read_text(self.path)
        try:
            value = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise FormatError(f"{self.path}: not YAML: {shorten(str(error), 120)}") from None
        return JsonObject(JsonObject(value, str(self.path)).get("sent_to_doc", dict), str(self.path)).value

    def document_token_id(self, text: str, layout: TokenLayout, sentence: int, token: int) -> int | None:
        """The document id of a token given by its sentence; None when there is no such token."""
        tokens_of_text = self.table.get(text)
        if tokens_of_text is None:
            return layout.ids.get((sentence, token))
        tokens = tokens_of_text.get(sentence) if isinstance(tokens_of_text, dict) else None
        number = tokens.get(token) if isinstance(tokens, dict) else None
        return number if type(number) is int and 1 <= number <= len(layout.numbers) else None


# --- rows --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class MarkRowReader:
    """Reads the rows of one file of marks; all that is wrong is raised together."""

    path: Path
    annotator: str
    protocol: Protocol
    documents: Mapping[str, Document]
    layouts: Mapping[str, TokenLayout]
    lookup: TokenLookup
    used: dict[tuple[str, int], int] = field(default_factory=dict)
    """Line that has marked a token."""
    style: set[str] = field(default_factory=lambda: {"sentence", "document"})
    """Kinds of ids that all rows so far have given."""

    def read_marks(self) -> dict[str, list[Mark]]:
        """Marks by text, in the order of the file."""
        marks: dict[str, list[Mark]] = defaultdict(list)
        slips: list[str] = []
        for line, row in csv_rows(self.path):
            try:
                id = self._resolve_document(row, f"{self.path}:{line}")
                marks[id].append(self._build_mark(id, row, line, {mark.id for mark in marks[id]}))
            except FormatError as error:
                slips.append(str(error))
                if len(slips) >= _MAX_ERRORS:
                    break
        if slips:
            raise FormatError("\n".join(slips))
        return marks

    def _resolve_document(self, row: Mapping[str, str], where: str) -> str:
        id = _text_id(row["TEXT_ID"])
        if id not in self.documents:
            raise FormatError(f"{where}: TEXT_ID: no text is called {id!r}{did_you_mean(id, self.documents)}")
        return id

    def _build_mark(self, document: str, row: Mapping[str, str], line: int, taken: set[str]) -> Mark:
        where = f"{self.path}:{line}"
        first, last = self._token_range(document, row, where)
        self._claim_tokens(document, first, last, line)
        offsets, text = self.layouts[document].offsets, self.documents[document].text
        start, end = int(offsets[first - 1, 0]), int(offsets[last - 1, 1])
        quote, words = text[start:end], row.get("TOKENS", "")
        if words.split() and words.split() != quote.split():
            place = f"tokens {first} to {last} of {document}"
            raise FormatError(f"{where}: TOKENS: {shorten(words)!r}, but {place} are {shorten(quote)!r}")
        spelling = row["TYPE"].strip()
        return build_record(
            Mark,
            where,
            id=_unique_id(
                f"{document}/{self.annotator}/{row.get('ANNOTATION_ID', '').strip() or len(taken) + 1}", taken
            ),
            spans=(Span(start, end),),
            quotes=(quote,),
            label=resolve_label(self.protocol, spelling, f"{where}: TYPE") if spelling else None,
            answers={name: row[column] for name, column in ANSWER_COLUMNS.items() if row.get(column)},
        )

    def _token_range(self, document: str, row: Mapping[str, str], where: str) -> tuple[int, int]:
        """First and last token, from whichever ids the row gives."""
        given = {"document": _parse_ids(row, DOCUMENT_IDS, where), "sentence": _parse_ids(row, SENTENCE_IDS, where)}
        kinds = {kind for kind, numbers in given.items() if numbers}
        if not kinds:
            raise FormatError(f"{where}: has no token ids; fill {' and '.join(DOCUMENT_IDS)}")
        if not kinds & self.style:
            (before,), (now,) = self.style, kinds
            raise FormatError(f"{where}: gives {now} ids only, but rows before it {before} ids only; use one of them")
        self.style &= kinds
        if not given["document"]:
            return self._range_from_sentence_ids(document, given["sentence"], where)
        first, last = given["document"]
        count = len(self.layouts[document].numbers)
        if not 1 <= first <= last <= count:
            expected = f"expected 1 <= start <= end <= {count}, the number of tokens of {document}"
            raise FormatError(f"{where}: {DOCUMENT_IDS[0]} {first}, {DOCUMENT_IDS[1]} {last}: {expected}")
        if given["sentence"]:
            self._check_sentence_ids(document, given["sentence"], (first, last), where)
        return first, last

    def _range_from_sentence_ids(self, document: str, ids: tuple[int, ...], where: str) -> tuple[int, int]:
        sentence, *ends = ids
        layout = self.layouts[document]
        first, last = (self.lookup.document_token_id(document, layout, sentence, token) for token in ends)
        if first is None or last is None or last < first:
            named = ", ".join(f"{name} {value}" for name, value in zip(SENTENCE_IDS, ids, strict=True))
            raise FormatError(f"{where}: {named}: {document} has no such tokens")
        return first, last

    def _check_sentence_ids(self, document: str, ids: tuple[int, ...], tokens: tuple[int, int], where: str) -> None:
        """Refuse sentence ids that name other tokens; the rule comes first, since the look-up takes seconds to read."""
        sentence, start, end = ids
        sentence_ids = self.layouts[document].ids
        if (sentence_ids.get((sentence, start)), sentence_ids.get((sentence, end))) == tokens:
            return
        if (by_sentence := self._range_from_sentence_ids(document, ids, where)) != tokens:
            claim = f"sentence ids name tokens {by_sentence[0]} to {by_sentence[1]}"
            raise FormatError(f"{where}: {claim}, document ids {tokens[0]} to {tokens[1]}; they must be the same")

    def _claim_tokens(self, document: str, first: int, last: int, line: int) -> None:
        """Each token belongs to one mistake only, as in the task's own script."""
        for token in range(first, last + 1):
            before = self.used.setdefault((document, token), line)
            if before != line:
                what = f"token {token} of {document} is already used by line {before}"
                raise FormatError(f"{self.path}:{line}: {what}; a token belongs to one mistake only")


def _parse_ids(row: Mapping[str, str], names: tuple[str, ...], where: str) -> tuple[int, ...]:
    """The ids in these columns; none when the token columns are empty."""
    values = [row.get(name, "").strip() for name in names]
    if not any(values[-2:]):
        return ()
    for name, value in zip(names, values, strict=True):
        if not re.fullmatch(r"[0-9]{1,9}(\.0)?", value):  # a spreadsheet may have made 18.0 of 18
            raise FormatError(f"{where}: {name}: expected a whole number, found {value[:20]!r}")
    return tuple(int(value.removesuffix(".0")) for value in values)


def _unique_id(id: str, taken: set[str]) -> str:
    """`id`, or with a number after it where an id is there twice."""
    number, candidate = 1, id
    while candidate in taken:
        number += 1
        candidate = f"{id}.{number}"
    return candidate


# --- writing -----------------------------------------------------------------------------------------------------


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """A folder with `texts/` and a CSV file per annotator; or, for a path that ends in .csv, one annotator's marks."""
    alone = path.suffix.lower() == ".csv"
    if not alone:
        (path / "texts").mkdir(parents=True)
    with GsmlWriter(path, alone) as writer:
        for item in items:
            if isinstance(item, Document):
                writer.write_document(item)
            elif isinstance(item, Annotation) and _is_submitted_first_round(item):
                writer.write_annotation(item)
        writer.check_all_read()


def _is_submitted_first_round(annotation: Annotation) -> bool:
    work = annotation.phase == "work" and annotation.status == "submitted"
    return work and not annotation.round and annotation.about is None


class GsmlWriter:
    """Files being written; refuses what the format would turn into something else."""

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

    def write_document(self, document: Document) -> None:
        """Write the text, under a name that gives the id back."""
        self.texts[document.id] = document.text
        if self.alone:
            return
        _reject_invalid_file_name("document", document.id)
        mark = "\ufeff" if document.text.startswith("\ufeff") else ""  # else the first character would be dropped
        file = self.path / "texts" / f"{document.id}.txt"
        file.write_text(mark + document.text, encoding="utf-8", newline="")

    def write_annotation(self, annotation: Annotation) -> None:
        """Write a row for each mark."""
        file = self._file_for_annotator(annotation.annotator)
        id = annotation.document
        self.read[annotation.annotator].add(id)
        if id not in self.layouts:
            self.layouts = {id: TokenLayout.from_text(self.texts.get(id, ""))}  # most streams go document by document
        layout, used = self.layouts[id], self.used[annotation.annotator, id]
        for number, mark in enumerate(annotation.marks, 1):
            if len(mark.spans) != 1 or not len(mark.spans[0]) or mark.spans[0].part != TEXT:
                continue
            tokens = _whole_tokens(mark, layout, self.texts.get(id, ""))
            if shared := used.intersection(tokens):
                what = f"mark {mark.id!r} shares token {min(shared)} of {id} with another mark of the same annotator"
                raise FormatError(f"{what}; GSML allows a token in one mistake only, so merge the two or drop one")
            used.update(tokens)
            _write_row(file, _build_row(mark, annotation, number, tokens, layout))

    def _file_for_annotator(self, annotator: str) -> IO[str]:
        if self.alone:
            if self.read and annotator not in self.read:
                what = f"a CSV file holds one annotator, but there are {next(iter(self.read))!r} and {annotator!r}"
                raise FormatError(f"{what}; write to a path without .csv, which makes a folder with a file for each")
            return self.files[""]
        if annotator not in self.files:
            _reject_invalid_file_name("annotator", annotator)
            name = GOLD_FILE if annotator == GOLD else f"{annotator}.csv"
            if annotator != GOLD and (annotator.lower().startswith("gsml") or annotator.lower() == "games"):
                raise FormatError(f"annotator {annotator!r}: {name} has another meaning in GSML; give another id")
            self._open_table(annotator, self.path / name)
        return self.files[annotator]

    def _open_table(self, key: str, path: Path) -> None:
        file = path.open("w", encoding="utf-8", newline="")
        csv.writer(file, lineterminator="\n").writerow(COLUMNS)
        self.files[key] = file

    def check_all_read(self) -> None:
        """In a folder every text counts as read by everyone, so all must have read all."""
        if self.alone:
            return
        for annotator, read in self.read.items():
            if missing := [id for id in self.texts if id not in read]:
                what = f"annotator {annotator!r} has not read {len(missing):,} documents, e.g. {missing[0]!r}"
                raise FormatError(
                    f"{what}, which GSML would take as read and found without mistakes; "
                    "write only the documents that everyone has read, or one annotator to a path that ends in .csv"
                )


def _write_row(file: IO[str], row: Mapping[str, object]) -> None:
    """Like the task's files, but a carriage return inside a field is quoted, which Python's csv forgets."""
    values = [row[name] for name in COLUMNS]
    if any("\r" in str(value) for value in values):
        csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL).writerow(values)
    else:
        csv.writer(file, lineterminator="\n").writerow(values)


def _reject_invalid_file_name(what: str, id: str) -> None:
    if not re.fullmatch(r"[^/\\:*?\"<>|\x00-\x1f.][^/\\:*?\"<>|\x00-\x1f]{0,150}", id):
        raise FormatError(f'{what} id {id!r} cannot be a file name, as GSML asks; give ids without / \\ : * ? " < > |')


def _whole_tokens(mark: Mark, layout: TokenLayout, text: str) -> range:
    """The tokens that a mark covers, from 1; refused when it cuts one."""
    span = mark.spans[0]
    first, last = token_range(span, layout.offsets)
    if first < last:
        start, end = int(layout.offsets[first, 0]), int(layout.offsets[last - 1, 1])
        if (start, end) == (span.start, span.end):
            return range(first + 1, last + 1)
        whole = f"the whole tokens are {shorten(text[start:end])!r} at [{start}, {end})"
    else:
        whole = "it covers no token"
    place = f"mark {mark.id!r}: {shorten(span.extract(text))!r} at [{span.start}, {span.end})"
    raise FormatError(
        f"{place} does not begin and end with a token between white space, as GSML asks; {whole}. "
        "Widen the mark, or put white space around punctuation in the texts before they are marked"
    )


def _build_row(
    mark: Mark, annotation: Annotation, number: int, tokens: range, layout: TokenLayout
) -> dict[str, object]:
    first, last = tokens[0], tokens[-1]
    (sentence, start), (last_sentence, end) = layout.numbers[first - 1], layout.numbers[last - 1]
    within = (sentence, start, end) if sentence == last_sentence else ("", "", "")  # ids cannot cross sentences
    prefix = f"{annotation.document}/{annotation.annotator}/"
    values: dict[str, object] = {
        "TEXT_ID": f"{annotation.document}.txt",
        "ANNOTATION_ID": mark.id.removeprefix(prefix) if mark.id.startswith(prefix) else number,
        "TOKENS": " ".join(mark.quotes[0].split()),
        "TYPE": (mark.label or "").upper().replace("-", "_"),
        **dict(zip(SENTENCE_IDS, within, strict=True)),
        **dict(zip(DOCUMENT_IDS, (first, last), strict=True)),
    }
    return values | {column: mark.answers.get(name, "") for name, column in ANSWER_COLUMNS.items()}


# --- the format --------------------------------------------------------------------------------------------------


def sniff(path: Path) -> bool:
    """A folder with `gsml.csv`, or a file whose first line names what the task's files have."""
    if path.is_dir():
        return (path / GOLD_FILE).is_file() or (
            (path / "texts").is_dir() and any("DOC_TOKEN_START" in read_start(file) for file in path.glob("*.csv"))
        )
    start = read_start(path)
    names = {name.strip('"') for name in start.partition("\n")[0].strip().split(",")}
    before = start.partition('"home_name"')[0]
    box_score = start.lstrip()[:1] in ("{", "[") and before != start and '"box_score"' in start
    box_score &= '"data"' not in before  # else it is the data of one of our documents
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
