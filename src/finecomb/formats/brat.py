"""brat standoff: a folder of texts (`.txt`) with annotations (`.ann`) next to them.

Each subfolder belongs to one annotator: `anna/doc.ann` is Anna's work on `doc`, whose text is next to it or in the
folder above. Files directly in the folder belong to one annotator, as do all files if `annotator` is given.

`T` lines are marks. Attributes (`A`, `M`) are answers, as are notes (`#`) whose type is the name of a question, one
note per line; `AnnotatorNotes` are comments. A relation `Antecedent` leads from a mark to its antecedent, a `T` of that
type; an event with such a role has the same meaning. brat splits a span at line breaks, so fragments separated only by
a line break are joined. Other lines are kept in the annotation's `meta`.
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
from finecomb.core.quotes import find_at_offsets_or_unique
from finecomb.core.records import Annotation, Annotator, Answer, Antecedents, Document, Mark, Note
from finecomb.core.scales import parse_number
from finecomb.core.span import TEXT_PART, Span
from finecomb.core.spelling import fold_spelling
from finecomb.core.study import StudyItem
from finecomb.formats.base import Format, Options
from finecomb.formats.features import KNOWN_ANSWERS
from finecomb.formats.folder import is_study_folder as is_study
from finecomb.formats.source_files import (
    build_implied_protocol,
    build_record,
    normalise_question_name,
    read_text,
    resolve_label_name,
)

ANTECEDENT_RELATION = "antecedent"
NO_LABEL_TYPE = "no-type"
DEFAULT_ATTRIBUTE_VALUE = "yes"
COMMENT_NOTE_TYPE = "AnnotatorNotes"
KNOWN_TEXT_ANSWERS = tuple(name for name in KNOWN_ANSWERS if name != "severity")
UNLOCATED_REASON = "its offsets and quote disagree"
_BREAKS = re.compile(r"[\r\n]+")
_PAIR = r"[0-9]{1,15} [0-9]{1,15}"
_TEXT_BOUND_PATTERN = re.compile(rf"(\S+) ({_PAIR}(?:;{_PAIR})*)")


# --- reading a file ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _TextBound:
    """A `T` line with the attributes, notes and relations of other lines."""

    where: str
    type: str
    spans: tuple[Span, ...]
    quotes: tuple[str, ...]
    answers: dict[str, str | None] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    antecedents: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _ParsedFile:
    """A parsed `.ann` file: text-bound annotations by ID, event triggers, and other lines."""

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
                raise FormatError(f"{where}: duplicate ID {id}; IDs must be unique in a file")
            parsed.bound[id] = bound
        elif line.strip():
            later.append((where, line))
    for where, line in sorted(
        later, key=lambda numbered_line: not numbered_line[1].startswith("E")
    ):  # attributes may refer to events
        _parse_other_line(where, line, parsed)
    return parsed


def _parse_text_bound(
    where: str, line: str, text: str, shifts: tuple[int, ...], counts: Counter[str]
) -> tuple[str, _TextBound]:
    id, _, fields = line.partition("\t")
    middle, tab, quote = fields.partition("\t")
    match = _TEXT_BOUND_PATTERN.fullmatch(middle.strip())
    if not match or not tab:
        expected = "'T1<tab>Type start end<tab>text'"
        raise FormatError(f"{where}: expected {expected}, found {shorten(line)!r}")
    pairs = [tuple(map(int, pair.split(" "))) for pair in match[2].split(";")]
    spans = _locate_fragments([(start, end) for start, end in pairs], quote, text, shifts)
    if (
        not spans
        and len(pairs) == 1
        and (elsewhere := find_at_offsets_or_unique(_replace_line_breaks(quote), -1, -1, _replace_line_breaks(text)))
    ):
        spans = (Span(*elsewhere),)
        counts["marks were located by their quote, because their offsets do not match"] += 1
    if not spans:
        counts["marks could not be located; they are kept without spans"] += 1
        return id, _TextBound(where, match[1], (), (quote,))
    return id, _TextBound(where, match[1], spans, tuple(span.extract(text) for span in spans))


def _locate_fragments(pairs: list[tuple[int, int]], quote: str, text: str, shifts: tuple[int, ...]) -> tuple[Span, ...]:
    """Return the spans of the fragments, joined across line breaks; empty if the text there is not the quote."""
    flat = _replace_line_breaks(text)
    for shift in shifts:
        moved = sorted((start - shift, end - shift) for start, end in pairs)
        if all(0 <= start <= end <= len(text) for start, end in moved):
            joined = " ".join(flat[start:end] for start, end in moved)
            if _replace_line_breaks(quote) == joined:
                spans: list[Span] = []
                for start, end in moved:
                    if spans and _BREAKS.fullmatch(text, spans[-1].end, start):
                        spans[-1] = Span(spans[-1].start, end)
                    else:
                        spans.append(Span(start, end))
                return tuple(spans)
    return ()


def _replace_line_breaks(text: str) -> str:
    """Replace each line break with a space, because brat writes a quote on one line."""
    return text.replace("\n", " ").replace("\r", " ")


def _parse_other_line(where: str, line: str, parsed: _ParsedFile) -> None:
    """Parse a line with an attribute, note, relation or event; any other line is kept unchanged."""
    id, _, fields = line.partition("\t")
    head, _, tail = fields.partition("\t")
    words = head.split()
    understood = False
    match id[:1]:
        case "A" | "M" if len(words) in (2, 3):
            target = parsed.find_text_bound(words[1])
            if target is not None:
                target.answers[normalise_question_name(words[0])] = words[2] if len(words) == 3 else None
            understood = target is not None
        case "#" if len(words) == 2:
            target = parsed.find_text_bound(words[1])
            if target is not None:
                target.notes.setdefault(words[0], []).append(tail)
            understood = target is not None
        case "R" if len(words) == 3:
            start, end = (parsed.triggers.get(id, id) for id in (role.partition(":")[2] for role in words[1:]))
            fits = (
                fold_spelling(words[0]) == ANTECEDENT_RELATION
                and start in parsed.bound
                and end in parsed.bound
                and start != end
            )
            if fits:
                parsed.bound[start].antecedents.append(end)
            understood = fits
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


def _add_event(id: str, words: list[str], parsed: _ParsedFile) -> bool:
    """Record an event's trigger; if all its other roles are antecedents, record them and return True."""
    trigger = words[0].partition(":")[2]
    if trigger not in parsed.bound:
        return False
    parsed.triggers[id] = trigger
    earlier = [role.partition(":") for role in words[1:]]
    fits = all(fold_spelling(name).startswith(ANTECEDENT_RELATION) and end in parsed.bound for name, _, end in earlier)
    if fits:
        parsed.bound[trigger].antecedents += [end for _, _, end in earlier if end != trigger]
    return fits


# --- reading a folder --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _BratFile:
    """An `.ann` file with its annotator and document."""

    path: Path
    text: Path
    document: str
    annotator: str


_DocumentWithShifts = tuple[
    Document, tuple[int, ...]
]  # a document, and the amounts by which offsets in its text may be too large


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read the documents, annotators and annotations in a folder; without a protocol, each file is read twice."""
    if not path.is_dir():
        raise FormatError(f"{path}: not a folder; expected a folder of .txt and .ann files")
    files = list(_find_annotation_files(path, options.annotator))
    texts = _find_text_files(path, files, options.annotator)
    if not texts:
        raise FormatError(f"{path}: contains no .txt file; expected texts with .ann files next to them")
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
            raise FormatError(f"{path}: the text {beside.name} is missing; expected it next to the .ann file")
        yield _BratFile(path, text, name, unescape_file_name(folders[0]) if by_folder else annotator or "annotator")


def _find_text_files(root: Path, files: Iterable[_BratFile], annotator: str) -> dict[str, list[Path]]:
    """Return the text files of each document, including documents without an .ann file."""
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
    """Return the ID that a file name encodes."""
    id = unquote(name)
    return id if _escape_file_name(id) == name else name


def _escape_file_name(id: str) -> str:
    name = escaped(id, safe=" !#$&'()+,;=@[]^_`{}~", errors="surrogateescape")
    return name.replace(".", "%2E", 1) if name.startswith(".") else name


def _read_document(id: str, paths: list[Path]) -> _DocumentWithShifts:
    """Read a document; brat counts a byte-order mark as a character, so offsets may be too large by one."""
    text = read_text(paths[0])
    for path in dict.fromkeys(paths[1:]):
        if read_text(path) != text:
            raise FormatError(
                f"{path}: differs from {paths[0]}, but both contain the text of document {id!r}; make them identical"
            )
    with paths[0].open("rb") as file:
        shifts = (1, 0) if file.read(3) == b"\xef\xbb\xbf" else (0,)
    return build_record(Document, str(paths[0]), id=id, text=text), shifts


def _build_annotation(file: _BratFile, parsed: _ParsedFile, protocol: Protocol) -> Annotation:
    id = f"{file.document}/{file.annotator}"
    earlier = {antecedent for bound in parsed.bound.values() for antecedent in bound.antecedents}
    swallowed = {
        antecedent for antecedent in earlier if fold_spelling(parsed.bound[antecedent].type) == ANTECEDENT_RELATION
    }
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
        if fold_spelling(bound.type) in (NO_LABEL_TYPE, ANTECEDENT_RELATION)
        else _resolve_label(bound.type, protocol, bound.where)
    )
    questions = {question.name: question for question in protocol.questions_for_label(label)}
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
    return resolve_label_name(protocol, type.replace("__", "/"), where)


def _question_for_note(kind: str, questions: Mapping[str, Question]) -> str:
    if kind == COMMENT_NOTE_TYPE:
        return "explanation" if "explanation" in questions and "comment" not in questions else "comment"
    name = normalise_question_name(kind)
    return name if name in questions or name in KNOWN_ANSWERS or name == kind else ""


def _parse_answer(value: str | None, question: Question | None) -> Answer:
    """Convert an attribute's value to the scale of its question if possible; an attribute without a value means yes."""
    if value is None and not (question and question.options):
        return True
    text = value or DEFAULT_ATTRIBUTE_VALUE
    answer = question.scale_type.parse(question, text) if question else text
    return text if answer is None else answer


# --- reading the protocol ----------------------------------------------------------------------------------------


def _infer_protocol(
    root: Path, files: Iterable[_BratFile], documents: Mapping[str, tuple[Document, tuple[int, ...]]]
) -> Protocol:
    """Infer a protocol from the types and attributes in the files."""
    labels: set[str] = set()
    attributes: dict[str, set[str | None]] = {}
    notes: set[str] = set()
    antecedents = False
    for file in files:
        document, shifts = documents[file.document]
        for bound in _parse_file(file.path, document.text, shifts).bound.values():
            labels |= (
                {bound.type.replace("__", "/")}
                if fold_spelling(bound.type) not in (ANTECEDENT_RELATION, NO_LABEL_TYPE)
                else set()
            )
            notes |= {_question_for_note(kind, {}) for kind in bound.notes}
            antecedents = antecedents or bool(bound.antecedents)
            for name, value in bound.answers.items():
                attributes.setdefault(name, set()).add(value)
    questions = [_infer_question(name, values) for name, values in attributes.items()]
    questions += [
        Question(name=name, ask=name.capitalize(), required=False) for name in sorted(notes - {"", *attributes})
    ]
    return build_implied_protocol(f"brat-{root.name}", labels, antecedents=antecedents, questions=tuple(questions))


def _infer_question(name: str, values: set[str | None]) -> Question:
    """Infer a question from the values of an attribute."""
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
    """Write a folder per annotator, with the texts and an `annotation.conf` for brat."""
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
            folder = path / _escape_file_name(item.annotator)
            folder.mkdir(exist_ok=True)
            name = _escape_file_name(documents[item.document].id)
            if (folder / f"{name}.ann").exists():
                raise FinecombError(
                    f"brat supports one annotation per text and annotator, but {item.annotator!r} has two of "
                    f"{documents[item.document].id!r}; write one protocol at a time"
                )
            shutil.copyfile(path / f"{name}.txt", folder / f"{name}.txt")
            lines = _AnnotationFileBuilder(documents[item.document].text)
            for mark in item.marks:
                if mark.spans and all(span.part == TEXT_PART and len(span) for span in mark.spans):
                    lines.add_mark(mark)
            _write_text(folder / f"{name}.ann", "".join(f"{line}\n" for line in lines.lines))
            annotated.add(item.document)
    for id in annotated:  # brat needs a copy of the text in each annotator's folder
        (path / f"{_escape_file_name(id)}.txt").unlink()
    _write_text(path / "annotation.conf", _format_configuration(protocols.values()))


def _write_text(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(text)


class _AnnotationFileBuilder:
    """Lines of an `.ann` file, numbered by type."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines: list[str] = []
        self.last: Counter[str] = Counter()

    def add_line(self, kind: str, rest: str) -> str:
        self.last[kind] += 1
        self.lines.append(f"{kind}{self.last[kind]}\t{rest}")
        return f"{kind}{self.last[kind]}"

    def add_text_bound(self, type: str, spans: Iterable[Span]) -> str:
        pieces: list[tuple[int, int]] = []
        for span in spans:  # split at line breaks, as brat requires; a span of only line breaks is not split
            breaks = [match.span() for match in _BREAKS.finditer(self.text, span.start, span.end)]
            starts, ends = [span.start, *(end for _, end in breaks)], [*(start for start, _ in breaks), span.end]
            lines = [(start, end) for start, end in zip(starts, ends, strict=True) if start < end]
            pieces += lines or [(span.start, span.end)]
        listed = ";".join(f"{start} {end}" for start, end in pieces)
        quote = " ".join(_replace_line_breaks(self.text[start:end]) for start, end in pieces)
        return self.add_line("T", f"{type} {listed}\t{quote}")

    def add_mark(self, mark: Mark) -> None:
        id = self.add_text_bound((mark.label or NO_LABEL_TYPE).replace("/", "__"), mark.spans)
        for name, answer in mark.answers.items():
            word = str(answer).lower() if isinstance(answer, bool | int | float) else answer
            if isinstance(word, str) and name not in KNOWN_TEXT_ANSWERS and re.fullmatch(r"\S+", word):
                self.add_line("A", f"{name} {id} {word}")
                continue
            for line in word.split("\n") if isinstance(word, str) else word:
                self.add_line("#", f"{COMMENT_NOTE_TYPE if name == 'comment' else name} {id}\t{line}")
        for span in mark.antecedents.spans if mark.antecedents else ():
            if span.part == TEXT_PART and len(span):
                self.add_line("R", f"Antecedent Arg1:{id} Arg2:{self.add_text_bound('Antecedent', [span])}")


def _format_configuration(protocols: Iterable[Protocol]) -> str:
    """Format brat's `annotation.conf` with the labels, and the answers that can be stored as attributes."""
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
        "entities": [*labels, NO_LABEL_TYPE, "Antecedent"],
        "relations": [relation],
        "events": [],
        "attributes": list(attributes),
    }
    return "\n".join("\n".join([f"[{name}]", *lines, ""]) for name, lines in blocks.items())


def sniff(path: Path) -> bool:
    """Return True for a folder with brat's configuration, or with `.ann` files in it or one level below."""
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
