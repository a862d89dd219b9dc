"""The format `lines`: one line per text (T), annotation (A) and mark (M), with cells separated by tabs.

T  harbour  "A cat cat sat."
A  harbour  anna
M  harbour  anna  6  9  redundant
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from finecomb import Annotation, Annotator, Document, Mark, Options, Protocol, Span
from finecomb.core.errors import FormatError
from finecomb.core.study import StudyItem
from finecomb.formats import Format
from finecomb.formats.source_files import build_record, parse_json


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Yield the records of a file; a record comes before those that refer to it."""
    documents: dict[str, Document] = {}
    marks: dict[tuple[str, str], list[Mark]] = {}
    for number, line in enumerate(path.read_bytes().decode(errors="replace").splitlines(), 1):
        where = f"{path}:{number}"
        match line.split("\t"):
            case ["T", id, text] if id and isinstance(content := parse_json(text, where), str):
                documents[id] = build_record(Document, where, id=id, text=content)
            case ["A", id, annotator] if id in documents and annotator:
                marks.setdefault((id, annotator), [])
            case ["M", id, annotator, start, end, label] if (id, annotator) in marks and label:
                if not (start.isdecimal() and end.isdecimal() and int(start) <= int(end) <= len(documents[id].text)):
                    raise FormatError(f"{where}: [{start}, {end}) is not within the text")
                span = Span(int(start), int(end))  # in code points, as Python counts
                own = marks[id, annotator]
                mark_id = f"{id}/{annotator}/{len(own)}"
                own.append(Mark(id=mark_id, spans=(span,), quotes=(span.extract(documents[id].text),), label=label))
            case _:
                raise FormatError(f"{where}: expected a text, annotation or mark, found {line[:60]!r}")
    labels = sorted({mark.label for own in marks.values() for mark in own if mark.label})
    protocol = options.protocol or build_record(
        Protocol,
        str(path),
        name="lines",
        version="1",
        title="Lines",
        summary="The labels of a file.",
        labels=[{"name": label} for label in labels],
    )
    yield protocol
    yield from documents.values()
    yield from (
        build_record(Annotator, str(path), id=name, kind="human")
        for name in sorted({annotator for _, annotator in marks})
    )
    for (id, annotator), own in marks.items():
        yield build_record(
            Annotation,
            str(path),
            id=f"{id}/{annotator}",
            document=id,
            annotator=annotator,
            protocol=protocol.id,
            marks=tuple(own),
        )


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write texts and marks; Finecomb reports what `holds` does not list."""
    with path.open("w", encoding="utf-8") as file:
        for item in items:
            if isinstance(item, Document):
                file.write(f"T\t{item.id}\t{json.dumps(item.text)}\n")
            elif isinstance(item, Annotation):
                file.write(f"A\t{item.document}\t{item.annotator}\n")
                for mark in item.marks:
                    for span in mark.spans[:1]:
                        cells = ["M", item.document, item.annotator, span.start, span.end, mark.label or "unknown"]
                        file.write("\t".join(map(str, cells)) + "\n")


FORMAT = Format(
    "lines",
    "tagged lines",
    read,
    write,
    suffixes=(".lines",),
    holds=frozenset({"annotation without marks"}),
    options=frozenset({"protocol"}),
)
