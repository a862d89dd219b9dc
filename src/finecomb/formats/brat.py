"""brat standoff: a folder of texts (`.txt`) with annotations (`.ann`) beside them.

Each folder inside is one annotator's: `anna/doc.ann` is Anna's work on `doc`, whose text stands beside it or in the
folder above. Files that lie directly in the folder are by one annotator, and with `annotator` given all of them are.

`T` lines are marks; attributes (`A`, `M`) are answers, as are notes (`#`) of a type that is a question's name, one note
for each line; `AnnotatorNotes` are comments. A relation `Antecedent` leads from a mark to its antecedent, a `T` of that
type, and an event with such a role says the same. brat splits a span at line breaks, so fragments with only a line
break between them are joined. Other lines are kept in the annotation's `meta`.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote as escaped
from urllib.parse import unquote

from finecomb.core.errors import FinecombError, FormatError, shorten
from finecomb.core.protocol import Protocol
from finecomb.core.question import Question
from finecomb.core.quotes import find_at_or_only
from finecomb.core.records import Annotation, Annotator, Answer, Antecedents, Document, Mark, Note
from finecomb.core.scales import parse_number
from finecomb.core.span import TEXT, Span
from finecomb.core.spelling import fold_spelling
from finecomb.core.study import StudyItem
from finecomb.formats.base import Format, Options
from finecomb.formats.features import KNOWN_ANSWERS
from finecomb.formats.folder import is_study_folder as is_study
from finecomb.formats.source_files import (
    build_record,
    implied_protocol,
    normalise_question_name,
    read_text,
    resolve_label,
)

ANTECEDENT = "antecedent"
NO_LABEL = "no-type"
DEFAULT_ATTRIBUTE_VALUE = "yes"
COMMENT_NOTE_TYPE = "AnnotatorNotes"
KNOWN_TEXT_ANSWERS = tuple(name for name in KNOWN_ANSWERS if name != "severity")
UNLOCATED_REASON = "its offsets and quote disagree"
_BREAKS = re.compile(r"[\r\n]+")
_PAIR = r"[0-9]{1,15} [0-9]{1,15}"
_TEXT_BOUND_PATTERN = re.compile(rf"(\S+) ({_PAIR}(?:;{_PAIR})*)")


# --- reading: one file -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _TextBound:
    """A `T` line and what other lines say about it."""

    where: str
    type: str
    spans: tuple[Span, ...]
    quotes: tuple[str, ...]
    answers: dict[str, str | None] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    antecedents: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _ParsedFile:
    """One `.ann` file: text-bound annotations by id, event triggers, and lines of other kinds."""

    bound: dict[str, _TextBound] = field(default_factory=dict)
    triggers: dict[str, str] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def find_text_bound(self, id: str) -> _TextBound | None:
        return self.bound.get(self.triggers.get(id, id))


def _parse_file(path: Path, text: str, shifts: tuple[int, ...]) -> _ParsedFile:
    parsed = _ParsedFile()
    lines = [
        (f"{path}:{number}", line.removesuffix("\r")) for number, line in enumerate(read_text(path).split("\n"), 1)
    ]
    later = []
    for where, line in lines:
        if line.startswith("T"):
            id, bound = _parse_text_bound(where, line, text, shifts, parsed.counts)
            if id in parsed.bound:
                raise FormatError(f"{where}: {id} is there twice; ids are unique in a file")
            parsed.bound[id] = bound
        elif line.strip():
            later.append((where, line))
    for where, line in sorted(
        later, key=lambda numbered_line: not numbered_line[1].startswith("E")
    ):  # attributes may name events
        _parse_other_line(where, line, parsed)
    return parsed


def _parse_text_bound(
    where: str, line: str, text: str, shifts: tuple[int, ...], counts: Counter[str]
) -> tuple[str, _TextBound]:
    id, _, rest = line.partition("\t")
    middle, tab, quote = rest.partition("\t")
    match = _TEXT_BOUND_PATTERN.fullmatch(middle.strip())
    if not match or not tab:
        expected = "'T1<tab>Type start end<tab>text'"
        raise FormatError(f"{where}: expected {expected}, found {shorten(line)!r}")
    pairs = [tuple(map(int, pair.split(" "))) for pair in match[2].split(";")]
    spans = _locate_fragments([(start, end) for start, end in pairs], quote, text, shifts)
    if (
        not spans
        and len(pairs) == 1
        and (elsewhere := find_at_or_only(_replace_line_breaks(quote), -1, -1, _replace_line_breaks(text)))
    ):
        spans = (Span(*elsewhere),)
        counts["marks were placed by their quote, not by their offsets"] += 1
    if not spans:
        counts["marks could not be placed; they are kept without a place"] += 1
        return id, _TextBound(where, match[1], (), (quote,))
    return id, _TextBound(where, match[1], spans, tuple(span.extract(text) for span in spans))


def _locate_fragments(pairs: list[tuple[int, int]], quote: str, text: str, shifts: tuple[int, ...]) -> tuple[Span, ...]:
    """Where the fragments are, line breaks between them joined; nowhere when the text there is not the quote."""
    flat = _replace_line_breaks(text)
    for shift in shifts:
        moved = sorted((start - shift, end - shift) for start, end in pairs)
        if all(0 <= start <= end <= len(text) for start, end in moved):
            joined = " ".join(flat[start:end] for start, end in moved)
            if _replace_line_breaks(quote) == joined:
                return _join_fragments(moved, text)
    return ()


def _replace_line_breaks(text: str) -> str:
    """With a space for each line break, as a quote in a line must have."""
    return text.replace("\n", " ").replace("\r", " ")


def _join_fragments(pairs: Iterable[tuple[int, int]], text: str) -> tuple[Span, ...]:
    spans: list[Span] = []
    for start, end in pairs:
        if spans and _BREAKS.fullmatch(text, spans[-1].end, start):
            spans[-1] = Span(spans[-1].start, end)
        else:
            spans.append(Span(start, end))
    return tuple(spans)


def _parse_other_line(where: str, line: str, parsed: _ParsedFile) -> None:
    """Take in an attribute, note, relation or event, or keep the line."""
    id, _, rest = line.partition("\t")
    head, _, tail = rest.partition("\t")
    words = head.split()
    understood = False
    match id[:1]:
        case "A" | "M" if len(words) in (2, 3):
            understood = _add_attribute(words, parsed)
        case "#" if len(words) == 2:
            understood = _add_note(words[0], words[1], tail, parsed)
        case "R" if len(words) == 3:
            understood = _add_relation(words[0], words[1:], parsed)
        case "E" if words:
            understood = _add_event(id, words, parsed)
        case "A" | "M" | "#" | "R" | "E" | "N" | "*":
            pass
        case _:
            raise FormatError(
                f"{where}: expected a line that begins with T, A, M, R, E, N, # or *, found {shorten(line)!r}"
            )
    if not understood:
        parsed.others.append(line)


def _add_attribute(words: list[str], parsed: _ParsedFile) -> bool:
    target = parsed.find_text_bound(words[1])
    if target is not None:
        target.answers[normalise_question_name(words[0])] = words[2] if len(words) == 3 else None
    return target is not None


def _add_note(kind: str, id: str, text: str, parsed: _ParsedFile) -> bool:
    target = parsed.find_text_bound(id)
    if target is not None:
        target.notes.setdefault(kind, []).append(text)
    return target is not None


def _add_relation(kind: str, roles: list[str], parsed: _ParsedFile) -> bool:
    start, end = (parsed.triggers.get(id, id) for id in (role.partition(":")[2] for role in roles))
    fits = fold_spelling(kind) == ANTECEDENT and start in parsed.bound and end in parsed.bound and start != end
    if fits:
        parsed.bound[start].antecedents.append(end)
    return fits


def _add_event(id: str, words: list[str], parsed: _ParsedFile) -> bool:
    """Whether the event says no more than which words trigger it and what their antecedents are."""
    trigger = words[0].partition(":")[2]
    if trigger not in parsed.bound:
        return False
    parsed.triggers[id] = trigger
    earlier = [role.partition(":") for role in words[1:]]
    fits = all(fold_spelling(name).startswith(ANTECEDENT) and end in parsed.bound for name, _, end in earlier)
    if fits:
        parsed.bound[trigger].antecedents += [end for _, _, end in earlier if end != trigger]
    return fits


# --- reading: the folder -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _BratFile:
    """One `.ann` file, whose it is and what it is about."""

    path: Path
    text: Path
    document: str
    annotator: str


_DocumentWithShifts = tuple[
    Document, tuple[int, ...]
]  # a document, and by how much offsets in its text may be too large


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Documents, annotators and annotations of a folder; without a protocol each file is read twice."""
    if not path.is_dir():
        raise FormatError(f"{path}: not a folder; brat has a folder of .txt and .ann files")
    files = list(_find_annotation_files(path, options.annotator))
    texts = _find_text_files(path, files, options.annotator)
    if not texts:
        raise FormatError(f"{path}: has no .txt file; expected texts with .ann files beside them")
    documents = {id: _read_document(id, paths) for id, paths in texts.items()}
    protocol = options.protocol or _infer_protocol(path, files, documents)
    yield protocol
    yield from (document for document, _ in documents.values())
    for id, file in {file.annotator: file for file in files}.items():
        yield build_record(Annotator, str(file.path), id=id, kind="human")
    counts: Counter[str] = Counter()
    for file in files:
        parsed = _parse_file(file.path, documents[file.document][0].text, documents[file.document][1])
        counts += parsed.counts
        yield _build_annotation(file, parsed, protocol)
    yield from (Note(text=f"{count:,} {what}") for what, count in counts.items())


def _find_annotation_files(root: Path, annotator: str) -> Iterator[_BratFile]:
    for path in sorted(root.rglob("*.ann")):
        inside = path.relative_to(root).with_suffix("")
        folders = inside.parts[:-1]
        by_folder = not annotator and folders
        name = "/".join(unescape_file_name(part) for part in (inside.parts[1:] if by_folder else inside.parts))
        beside = path.with_suffix(".txt")
        above = root.joinpath(*beside.relative_to(root).parts[1:]) if by_folder else beside
        text = beside if beside.exists() else above
        if not text.exists():
            raise FormatError(f"{path}: its text {beside.name} is missing; expected it beside the .ann file")
        yield _BratFile(path, text, name, unescape_file_name(folders[0]) if by_folder else annotator or "annotator")


def _find_text_files(root: Path, files: Iterable[_BratFile], annotator: str) -> dict[str, list[Path]]:
    """The text files of each document; those without an .ann file are documents that nobody annotated."""
    texts: dict[str, list[Path]] = {}
    for file in files:
        texts.setdefault(file.document, []).append(file.text)
    taken = {path for paths in texts.values() for path in paths}
    for path in sorted(root.rglob("*.txt") if annotator else root.glob("*.txt")):
        if path not in taken and path.stem.lower() not in ("readme", "license"):
            parts = path.relative_to(root).with_suffix("").parts
            texts.setdefault("/".join(map(unescape_file_name, parts)), []).append(path)
    return texts


def unescape_file_name(name: str) -> str:
    """The id that a file's name stands for."""
    id = unquote(name)
    return id if _escape_file_name(id) == name else name


def _escape_file_name(id: str) -> str:
    name = escaped(id, safe=" !#$&'()+,;=@[]^_`{}~", errors="surrogateescape")
    return name.replace(".", "%2E", 1) if name.startswith(".") else name


def _read_document(id: str, paths: list[Path]) -> _DocumentWithShifts:
    """The document with that id; for brat a byte-order mark counts as a character, so offsets are one too large."""
    text = read_text(paths[0])
    for path in dict.fromkeys(paths[1:]):
        if read_text(path) != text:
            raise FormatError(f"{path}: differs from {paths[0]}, though both are the text of {id!r}")
    with paths[0].open("rb") as file:
        shifts = (1, 0) if file.read(3) == b"\xef\xbb\xbf" else (0,)
    return build_record(Document, str(paths[0]), id=id, text=text), shifts


def _build_annotation(file: _BratFile, parsed: _ParsedFile, protocol: Protocol) -> Annotation:
    id = f"{file.document}/{file.annotator}"
    earlier = {antecedent for bound in parsed.bound.values() for antecedent in bound.antecedents}
    swallowed = {antecedent for antecedent in earlier if fold_spelling(parsed.bound[antecedent].type) == ANTECEDENT}
    marks = [
        _build_mark(f"{id}/{key}", bound, parsed, protocol)
        for key, bound in parsed.bound.items()
        if key not in swallowed
    ]
    meta = {"brat": parsed.others} if parsed.others else {}
    whose = {"document": file.document, "annotator": file.annotator, "protocol": protocol.id}
    return build_record(Annotation, str(file.path), id=id, **whose, marks=marks, meta=meta)


def _build_mark(id: str, bound: _TextBound, parsed: _ParsedFile, protocol: Protocol) -> Mark:
    label = (
        None
        if fold_spelling(bound.type) in (NO_LABEL, ANTECEDENT)
        else _resolve_label(bound.type, protocol, bound.where)
    )
    questions = {question.name: question for question in protocol.questions_of(label)}
    answers: dict[str, Answer] = {
        name: _parse_answer(value, questions.get(name)) for name, value in bound.answers.items()
    }
    meta: dict[str, Any] = {}
    for kind, lines in bound.notes.items():
        name = _question_for_note(kind, questions)
        if name:
            several = name in questions and questions[name].scale_type.many
            answers[name] = tuple(lines) if several else "\n".join(lines)
        else:
            meta[kind] = "\n".join(lines)
    why = "" if bound.spans else UNLOCATED_REASON
    place = {"spans": bound.spans, "quotes": bound.quotes, "unlocated": why}
    antecedents = _build_antecedents([parsed.bound[antecedent] for antecedent in bound.antecedents], bound.where)
    return build_record(
        Mark, bound.where, id=id, **place, label=label, answers=answers, antecedents=antecedents, meta=meta
    )


def _build_antecedents(bounds: list[_TextBound], where: str) -> Antecedents | None:
    pairs = sorted(pair for bound in bounds for pair in zip(bound.spans, bound.quotes, strict=False))
    if pairs:
        return Antecedents(spans=tuple(span for span, _ in pairs), quotes=tuple(quote for _, quote in pairs))
    quotes = tuple(quote for bound in bounds for quote in bound.quotes)
    return build_record(Antecedents, where, spans=(), quotes=quotes, unlocated=UNLOCATED_REASON) if bounds else None


def _resolve_label(type: str, protocol: Protocol, where: str) -> str:
    return resolve_label(protocol, type.replace("__", "/"), where)


def _question_for_note(kind: str, questions: Mapping[str, Question]) -> str:
    if kind == COMMENT_NOTE_TYPE:
        return "explanation" if "explanation" in questions and "comment" not in questions else "comment"
    name = normalise_question_name(kind)
    return name if name in questions or name in KNOWN_ANSWERS or name == kind else ""


def _parse_answer(value: str | None, question: Question | None) -> Answer:
    """An attribute's value in the form that its question asks for, as far as it fits; without a value it is a yes."""
    if value is None and not (question and question.options):
        return True
    text = value or DEFAULT_ATTRIBUTE_VALUE
    answer = question.scale_type.parse(question, text) if question else text
    return text if answer is None else answer


# --- reading: the protocol ---------------------------------------------------------------------------------------


def _infer_protocol(
    root: Path, files: Iterable[_BratFile], documents: Mapping[str, tuple[Document, tuple[int, ...]]]
) -> Protocol:
    """A protocol made of the types and attributes that the files use."""
    labels: set[str] = set()
    attributes: dict[str, set[str | None]] = {}
    notes: set[str] = set()
    antecedents = False
    for file in files:
        document, shifts = documents[file.document]
        for bound in _parse_file(file.path, document.text, shifts).bound.values():
            labels |= (
                {bound.type.replace("__", "/")} if fold_spelling(bound.type) not in (ANTECEDENT, NO_LABEL) else set()
            )
            notes |= {_question_for_note(kind, {}) for kind in bound.notes}
            antecedents = antecedents or bool(bound.antecedents)
            for name, value in bound.answers.items():
                attributes.setdefault(name, set()).add(value)
    questions = [_infer_question(name, values) for name, values in attributes.items()]
    questions += [
        Question(name=name, ask=name.capitalize(), required=False) for name in sorted(notes - {"", *attributes})
    ]
    return implied_protocol(f"brat-{root.name}", labels, antecedents=antecedents, questions=tuple(questions))


def _infer_question(name: str, values: set[str | None]) -> Question:
    """The question that such attributes answer."""
    given = sorted({value or DEFAULT_ATTRIBUTE_VALUE for value in values})
    more: dict[str, Any] = {"scale": "text"}
    if all(value is None or value.lower() in ("true", "false") for value in values):
        more = {"scale": "yes-no"}
    elif all(parse_number(value) is not None for value in given):
        more = {"scale": "number"}
    elif len(given) > 1:
        more = {"scale": "nominal", "options": given}
    return build_record(Question, name, name=name, ask=name.replace("_", " ").capitalize(), required=False, **more)


# --- writing -----------------------------------------------------------------------------------------------------


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write a folder for each annotator, with the texts and an `annotation.conf` for brat."""
    path.mkdir(parents=True)
    documents: dict[str, Document] = {}
    annotated: set[str] = set()
    protocols: dict[str, Protocol] = {}
    for item in items:
        if isinstance(item, Document):
            documents[item.id] = item
            _write_text(path / f"{_escape_file_name(item.id)}.txt", item.text)
        elif isinstance(item, Protocol):
            protocols[item.id] = item
        elif isinstance(item, Annotation) and item.document in documents and not item.round and item.about is None:
            _write_annotation(item, documents[item.document], path)
            annotated.add(item.document)
    for id in annotated:  # each annotator's folder has its own copy, as brat needs it
        (path / f"{_escape_file_name(id)}.txt").unlink()
    _write_text(path / "annotation.conf", _format_configuration(protocols.values()))


def _write_text(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(text)


def _write_annotation(annotation: Annotation, document: Document, root: Path) -> None:
    folder = root / _escape_file_name(annotation.annotator)
    folder.mkdir(exist_ok=True)
    name = _escape_file_name(document.id)
    if (folder / f"{name}.ann").exists():
        raise FinecombError(
            f"brat holds one annotation of a text by one annotator, but {annotation.annotator!r} has two of "
            f"{document.id!r}; write one protocol at a time"
        )
    shutil.copyfile(root / f"{name}.txt", folder / f"{name}.txt")
    lines = _AnnotationFileBuilder(document.text)
    for mark in annotation.marks:
        if mark.spans and all(span.part == TEXT and len(span) for span in mark.spans):
            lines.add_mark(mark)
    _write_text(folder / f"{name}.ann", "".join(f"{line}\n" for line in lines.lines))


class _AnnotationFileBuilder:
    """The lines of one `.ann` file, numbered by kind."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines: list[str] = []
        self.last: Counter[str] = Counter()

    def add_line(self, kind: str, rest: str) -> str:
        self.last[kind] += 1
        self.lines.append(f"{kind}{self.last[kind]}\t{rest}")
        return f"{kind}{self.last[kind]}"

    def add_text_bound(self, type: str, spans: Iterable[Span]) -> str:
        pieces = [piece for span in spans for piece in _split_at_line_breaks(span, self.text)]
        listed = ";".join(f"{start} {end}" for start, end in pieces)
        quote = " ".join(_replace_line_breaks(self.text[start:end]) for start, end in pieces)
        return self.add_line("T", f"{type} {listed}\t{quote}")

    def add_mark(self, mark: Mark) -> None:
        id = self.add_text_bound((mark.label or NO_LABEL).replace("/", "__"), mark.spans)
        for name, answer in mark.answers.items():
            word = str(answer).lower() if isinstance(answer, bool | int | float) else answer
            if isinstance(word, str) and name not in KNOWN_TEXT_ANSWERS and re.fullmatch(r"\S+", word):
                self.add_line("A", f"{name} {id} {word}")
                continue
            for line in word.split("\n") if isinstance(word, str) else word:
                self.add_line("#", f"{COMMENT_NOTE_TYPE if name == 'comment' else name} {id}\t{line}")
        for span in mark.antecedents.spans if mark.antecedents else ():
            if span.part == TEXT and len(span):
                self.add_line("R", f"Antecedent Arg1:{id} Arg2:{self.add_text_bound('Antecedent', [span])}")


def _split_at_line_breaks(span: Span, text: str) -> list[tuple[int, int]]:
    """The span cut at line breaks, as brat wants it; one that is all line breaks stays whole."""
    edges, at = [], span.start
    for line_break in _BREAKS.finditer(text, span.start, span.end):
        edges.append((at, line_break.start()))
        at = line_break.end()
    edges.append((at, span.end))
    return [(start, end) for start, end in edges if start < end] or [(span.start, span.end)]


def _format_configuration(protocols: Iterable[Protocol]) -> str:
    """brat's `annotation.conf` with the labels and the answers that fit into attributes."""
    protocols = list(protocols)
    labels = dict.fromkeys(label.name.replace("/", "__") for protocol in protocols for label in protocol.labels)
    questions = [
        question
        for protocol in protocols
        for question in (
            *protocol.questions,
            *(label_question for label in protocol.labels for label_question in label.questions),
        )
    ]
    attributes = dict.fromkeys(
        f"{question.name}\tArg:<ENTITY>, Value:{'|'.join(map(str, question.values))}"
        for question in questions
        if question.options
    )
    relation = "Antecedent\tArg1:<ENTITY>, Arg2:<ENTITY>"
    blocks = {
        "entities": [*labels, NO_LABEL, "Antecedent"],
        "relations": [relation],
        "events": [],
        "attributes": list(attributes),
    }
    return "\n".join("\n".join([f"[{name}]", *lines, ""]) for name, lines in blocks.items())


def sniff(path: Path) -> bool:
    """Whether it is a folder with brat's configuration, or with `.ann` files in it or one level below."""
    try:
        if not path.is_dir() or is_study(path):
            return False
        names = ("annotation.conf", "*.ann", "*/*.ann")
        return any(True for name in names for _ in path.glob(name))
    except OSError:
        return False


FORMAT = Format(
    *("brat", "brat standoff", read, write),
    sniff=sniff,
    holds=frozenset(
        [
            *("annotation without marks", "mark antecedents", "mark several spans", "mark without label"),
            *(f"mark {name}" for name in KNOWN_ANSWERS),
            "mark other answers",
        ]
    ),
    options=frozenset(["protocol", "annotator"]),
)
