"""WebAnno TSV 3.x, as exported by WebAnno and INCEpTION: a file, or a project with `annotation/` and `source/`.

Offsets in these files count UTF-16 units. A file has no text outside its sentences; without the source, gaps are filled
with spaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from finecomb.core.errors import FormatError, shorten
from finecomb.core.records import Document
from finecomb.core.study import StudyItem
from finecomb.formats import simple_spans
from finecomb.formats.base import Format, Options
from finecomb.formats.source_files import (
    build_record,
    open_text,
    read_first_characters,
    read_text,
    report_decoding_errors,
)
from finecomb.formats.utf16 import Utf16Offsets

ANNOTATION_FOLDER, SOURCE_FOLDER = "annotation", "source"
MARK_LAYER = "webanno.custom.Mark"
_FILE_HEADER = "#FORMAT=WebAnno TSV 3"
_LINGUISTIC_PREFIX = "de.tudarmstadt.ukp.dkpro.core.api."
_NAMED_ENTITY_PREFIX = f"{_LINGUISTIC_PREFIX}ner"
"""Prefix of WebAnno's named entities, the only built-in layer that is read as marks; others are linguistic."""


# --- reading -------------------------------------------------------------------------------------------------------


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read documents and annotations of a file or project; each file is one person's work on one text."""

    def passes() -> Iterator[simple_spans.AnnotatorPass]:
        if path.is_dir():
            sources = {file.name: file for file in sorted((path / SOURCE_FOLDER).glob("*")) if file.is_file()}
            files = sorted((path / ANNOTATION_FOLDER).glob("*/*.tsv"))
            if not files and not sources:
                raise FormatError(
                    f"{path}: contains neither {ANNOTATION_FOLDER}/TEXT/PERSON.tsv nor {SOURCE_FOLDER}/TEXT"
                )
            for file in files:
                name = file.parent.name
                text = read_text(sources[name]) if name in sources else None
                yield _read_pass(file, _document_id(name), options.annotator or unquote(file.stem), text, options)
            for name in sources.keys() - {file.parent.name for file in files}:
                document = build_record(
                    Document, str(sources[name]), id=_document_id(name), text=read_text(sources[name])
                )
                yield simple_spans.AnnotatorPass(document, "", str(sources[name]))
        else:
            yield _read_pass(path, path.stem, options.annotator or path.stem, None, options)

    return simple_spans.build_records(passes, path, options)


def _document_id(name: str) -> str:
    return unquote(name.removesuffix(".txt"))


@dataclass(slots=True)
class _WebannoToken:
    """One row: offsets (in UTF-16 units until they are checked), the word, and its annotation cells."""

    where: str
    start: int
    end: int
    word: str
    cells: list[str]


@dataclass(slots=True)
class _Layer:
    name: str
    features: list[str]
    first: int
    """First column of the layer."""
    kind: str = "SP"
    """Type of the layer: spans (`SP`), chains (`CH`) or relations (`RL`)."""


@dataclass(slots=True)
class _WebannoFile:
    layers: list[_Layer] = field(default_factory=list)
    sentences: list[tuple[str, list[_WebannoToken]]] = field(default_factory=list)

    @property
    def column_count(self) -> int:
        return self.layers[-1].first + len(self.layers[-1].features) if self.layers else 0

    @property
    def tokens(self) -> Iterator[_WebannoToken]:
        return (token for _, tokens in self.sentences for token in tokens)


def _read_pass(
    file: Path, document: str, annotator: str, text: str | None, options: Options
) -> simple_spans.AnnotatorPass:
    parsed = _parse_file(file)
    text = _rebuild_text(parsed, str(file)) if text is None else text
    record_of_text = build_record(Document, str(file), id=document, text=text)
    units = Utf16Offsets(text)
    for token in parsed.tokens:
        start, end = units.to_code_point(token.start), units.to_code_point(token.end)
        if start is None or end is None:
            raise FormatError(
                f"{token.where}: token {token.start}-{token.end} is not within the text or splits a character"
            )
        if token.word not in (text[start:end], _escape(text[start:end])):
            words = f"found {shorten(token.word)!r}"
            raise FormatError(f"{token.where}: {words}, but the text has {shorten(text[start:end])!r} at these offsets")
        token.start, token.end = start, end
    spans: list[simple_spans.LabelledSpan] = []
    for layer in parsed.layers:
        if layer.kind == "CH":
            spans += _parse_chain(layer, parsed)
        elif layer.kind == "SP":
            spans += _parse_spans(layer, parsed, options.columns.get("label"))
    relations = [
        relation for layer in parsed.layers if layer.kind == "RL" for relation in _parse_relations(layer, parsed)
    ]
    meta = {"relations": relations} if relations else {}
    return simple_spans.AnnotatorPass(record_of_text, annotator, str(file), spans, meta=meta)


def _parse_file(file: Path) -> _WebannoFile:
    parsed = _WebannoFile()
    with open_text(file) as lines, report_decoding_errors(file):
        for number, line in enumerate(lines, 1):
            _parse_line(line.rstrip("\r\n"), number, f"{file}:{number}", parsed)
    if not parsed.sentences and not parsed.layers:
        raise FormatError(f"{file}: contains no layers and no sentences; expected a WebAnno TSV file")
    return parsed


def _parse_line(line: str, number: int, where: str, parsed: _WebannoFile) -> None:
    """Parse one line, given the lines before it."""
    if number == 1 and not line.startswith(_FILE_HEADER):
        raise FormatError(f"{where}: expected '{_FILE_HEADER}...', found {shorten(line, 40)!r}")
    if kind := re.match(r"#T_(SP|CH|RL)=", line):
        name, *features = line[kind.end() :].split("|")
        layer = _Layer(name, features or [""], parsed.column_count, kind[1])
        parsed.layers.append(layer)
    elif line.startswith("#Text="):
        text = _unescape(line.removeprefix("#Text="))
        if parsed.sentences and not parsed.sentences[-1][1]:  # a sentence with line breaks in files before 3.3
            parsed.sentences[-1] = (parsed.sentences[-1][0] + "\n" + text, [])
        else:
            parsed.sentences.append((text, []))
    elif line and not line.startswith("#"):
        if not parsed.sentences:
            raise FormatError(f"{where}: found a token before the first '#Text=' line; add the line")
        id, *cells = line.split("\t")
        offsets = re.fullmatch(r"([0-9]{1,9})-([0-9]{1,9})", cells[0], re.ASCII) if cells else None
        if (
            not re.fullmatch(r"\d+-\d+(\.\d+)*", id, re.ASCII)
            or offsets is None
            or len(cells) < 2 + parsed.column_count
        ):
            raise FormatError(
                f"{where}: expected a token: number, start-end, word and {parsed.column_count} tab-separated cells, "
                f"found {shorten(line, 40)!r}"
            )
        parsed.sentences[-1][1].append(
            _WebannoToken(where, int(offsets[1]), int(offsets[2]), cells[1], cells[2 : 2 + parsed.column_count])
        )


def _rebuild_text(parsed: _WebannoFile, where: str) -> str:
    """Rebuild the text from the sentences of a file, with spaces between them."""
    units = b""
    for text, tokens in parsed.sentences:
        start = 2 * min((token.start for token in tokens), default=len(units) // 2)
        encoded = text.encode("utf-16-le", "surrogatepass")
        if start > len(units) + len(b"  ") * 1_000_000:
            raise FormatError(
                f"{where}: a token starts at {start // 2}, more than 1,000,000 characters after the "
                "end of the text before it"
            )
        units = units[:start] + " ".encode("utf-16-le") * ((start - len(units)) // 2) + encoded
    return units.decode("utf-16-le", "replace")


def _parse_spans(layer: _Layer, parsed: _WebannoFile, wanted: str | None) -> Iterator[simple_spans.LabelledSpan]:
    """Yield the annotations of a layer; cells with the same number in brackets belong together."""
    if not layer.name or (
        layer.name.startswith(_LINGUISTIC_PREFIX) and not layer.name.startswith(_NAMED_ENTITY_PREFIX)
    ):
        return
    spans: dict[Any, simple_spans.LabelledSpan] = {}
    for token in parsed.tokens:
        cells = token.cells[layer.first : layer.first + len(layer.features)]
        for index, (number, values) in enumerate(_split_stacked_cells(cells)):
            key = number or (token.start, token.end, index)
            if key in spans:
                spans[key].start, spans[key].end = min(spans[key].start, token.start), max(spans[key].end, token.end)
            else:
                answers = {
                    name: value for name, value in zip(layer.features, values, strict=False) if value is not None
                }
                label = answers.pop(wanted or next(iter(answers), ""), None)
                meta = answers | ({"layer": layer.name} if layer.name != MARK_LAYER else {})
                spans[key] = simple_spans.LabelledSpan(token.start, token.end, label, token.where, meta=meta)
    yield from spans.values()


def _parse_chain(layer: _Layer, parsed: _WebannoFile) -> Iterator[simple_spans.LabelledSpan]:
    """Yield the links of chains: tokens with the same chain and link, as in `*->1-2`, are one mark."""
    spans: dict[tuple[str, str], simple_spans.LabelledSpan] = {}
    for token in parsed.tokens:
        cells = token.cells[layer.first : layer.first + len(layer.features)]
        for _, values in _split_stacked_cells(cells):
            relation, _, link = (values[0] or "").rpartition("->")
            place = re.fullmatch(r"([0-9]+)-([0-9]+)", link)
            if place is None:
                continue
            key = place[1], place[2]
            if key in spans:
                spans[key].end = max(spans[key].end, token.end)
                continue
            label = values[1] if len(values) > 1 else None
            meta = {"layer": layer.name, "chain": place[1], "link": place[2]}
            meta |= {"relation": relation} if relation not in ("", "*") else {}
            spans[key] = simple_spans.LabelledSpan(token.start, token.end, label, token.where, meta=meta)
    yield from spans.values()


def _parse_relations(layer: _Layer, parsed: _WebannoFile) -> Iterator[dict[str, Any]]:
    """Yield the relations of a layer for the annotation's meta: offsets of the end token, and the features."""
    for token in parsed.tokens:
        cells = token.cells[layer.first : layer.first + len(layer.features)]
        for _, values in _split_stacked_cells(cells):
            features = {name: value for name, value in zip(layer.features, values, strict=False) if value is not None}
            if features:
                yield {"layer": layer.name, "start": token.start, "end": token.end, **features}


_STACKED_VALUE = re.compile(r"((?:\\.|[^\\|])*)(?:\||$)", re.DOTALL)
_NUMBERED_VALUE = re.compile(r"((?:\\.|[^\\])*?)(?:\[([0-9]+)\])?", re.DOTALL)


def _split_stacked_cells(cells: list[str]) -> Iterator[tuple[str, list[str | None]]]:
    """Yield the annotations on one token: the number in brackets (or nothing) and the value of each feature."""
    columns = [
        [piece[1] for piece in _STACKED_VALUE.finditer(cell)][: cell.count("|") + 1] if cell else ["_"]
        for cell in cells
    ]
    for index in range(max(map(len, columns), default=0)):
        parts = [column[index] if index < len(column) else "_" for column in columns]
        matches = [_NUMBERED_VALUE.fullmatch(part) for part in parts]
        values = [match[1] if match else part for match, part in zip(matches, parts, strict=True)]
        if any(value not in ("_", "") for value in values):
            number = next((match[2] for match in matches if match and match[2]), "")
            yield number, [None if value in ("_", "*", "") else _unescape(value) for value in values]


_ESCAPED_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda match: _ESCAPED_LETTERS.get(match[1], match[1]), text, flags=re.DOTALL)


def _escape(text: str, reserved: str = r"\\") -> str:
    text = re.sub(f"[{reserved}]", lambda match: "\\" + match[0], text)
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


# --- writing -------------------------------------------------------------------------------------------------------


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write a project: texts in `source/`, and `annotation/TEXT/PERSON.tsv`. Marks are reduced to complete words."""
    (path / SOURCE_FOLDER).mkdir(parents=True)
    (path / ANNOTATION_FOLDER).mkdir()
    for document, annotation in simple_spans.pair_with_documents(items):
        name = f"{_escape_file_name(document.id)}.txt"
        (path / SOURCE_FOLDER / name).write_bytes(document.text.encode())
        if annotation is not None:
            folder = path / ANNOTATION_FOLDER / name
            folder.mkdir(exist_ok=True)
            file = folder / f"{_escape_file_name(annotation.annotator)}.tsv"
            if not file.exists():  # a project cannot store a second round
                marks = [
                    (span.start, span.end, mark.label or "")
                    for mark, span in simple_spans.labelled_text_spans(annotation)
                ]
                words = list(_split_words(document.text, {edge for start, end, _ in marks for edge in (start, end)}))
                lines = [f"{_FILE_HEADER}.3", f"#T_SP={MARK_LAYER}|label", "", ""]
                if words:
                    sentence = document.text[words[0][0] : words[-1][1]]
                    lines.append(f"#Text={_escape(sentence)}")
                units = Utf16Offsets(document.text)
                # Cell of each word: its labels, numbered if a mark has several words or a word several marks
                inside: list[list[int]] = [
                    [n for n, (start, end, _) in enumerate(marks) if start <= a and b <= end] for a, b in words
                ]
                sizes = {n: sum(n in numbers for numbers in inside) for n in range(len(marks))}
                crowded = {n for numbers in inside if len(numbers) > 1 for n in numbers}
                cells = []
                for numbers in inside:
                    labels = [
                        _escape(marks[n][2], r"\\\[\]|_;*") + (f"[{n + 1}]" if sizes[n] > 1 or n in crowded else "")
                        for n in numbers
                    ]
                    cells.append("|".join(labels) or "_")
                for number, ((start, end), cell) in enumerate(zip(words, cells, strict=True), 1):
                    lines.append(
                        f"1-{number}\t{units.to_utf16(start)}-{units.to_utf16(end)}\t{_escape(document.text[start:end])}\t{cell}\t"
                    )
                file.write_bytes(("\n".join(lines) + "\n").encode())


def _escape_file_name(id: str) -> str:
    """Encode an ID as a file name that is valid on any operating system."""
    return quote(id, safe=" ").replace(".", "%2E") if id.startswith(".") else quote(id, safe=" ")


def _split_words(text: str, edges: set[int]) -> Iterator[tuple[int, int]]:
    """Split a text into words and punctuation, also at the edges of marks, so that marks consist of complete words."""
    for match in re.finditer(r"\w+|[^\w\s]", text):
        start, last = match.span()
        for cut in sorted(edge for edge in edges if start < edge < last):
            yield start, cut
            start = cut
        yield start, last


def sniff(path: Path) -> bool:
    """Return True if `path` is a WebAnno TSV file or an exported project."""
    if path.is_dir():
        return (path / ANNOTATION_FOLDER).is_dir() and (path / SOURCE_FOLDER).is_dir()
    return read_first_characters(path, 64).startswith(_FILE_HEADER)


FORMAT = Format(
    "webanno",
    "WebAnno TSV",
    read,
    write,
    sniff=sniff,
    holds=frozenset(["annotation without marks"]),
    options=frozenset(["protocol", "annotator", "columns"]),
)
