"""spaCy's DocBin (`.spacy`): one Doc per annotation, with its marks in the span group `sc`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from finecomb.core.errors import FormatError, shorten
from finecomb.core.optional_packages import import_optional_package
from finecomb.core.records import Document
from finecomb.core.study import StudyItem
from finecomb.formats import simple_spans
from finecomb.formats.base import Format, Options
from finecomb.formats.source_files import JsonObject, build_record

SPAN_GROUP = "sc"
"""Span group that spaCy's span categorizer reads; unlike entities, spans of a group may overlap."""
USER_DATA_KEY = "finecomb"
"""Key in `Doc.user_data` for the document's ID and metadata, and for the annotator."""


def read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read documents and annotations; entities become marks if a Doc has no span groups."""

    def passes() -> Iterator[simple_spans.AnnotatorPass]:
        for number, doc in enumerate(_read_docs(path)):
            yield _build_pass(doc, f"{path}: doc {number}", f"{path.stem}-{number}", options.annotator or path.stem)

    return simple_spans.build_records(passes, path, options)


def _import_spacy() -> Any:
    return import_optional_package("a spaCy file requires", "spacy")


def _read_docs(path: Path) -> Iterator[Any]:
    """Read the Docs in a file; any error that the library raises for a damaged file becomes a `FormatError`."""
    spacy = _import_spacy()
    if not path.is_file():
        raise FormatError(f"{path}: {'is a folder; expected a file' if path.is_dir() else 'no such file'}")
    try:
        yield from spacy.tokens.DocBin().from_disk(path).get_docs(spacy.blank("xx").vocab)
    except Exception as error:
        raise FormatError(f"{path}: cannot be read as a spaCy DocBin: {shorten(str(error), 100)}") from None


def _build_pass(doc: Any, where: str, id: str, annotator: str) -> simple_spans.AnnotatorPass:
    fields = JsonObject(doc.user_data.get(USER_DATA_KEY, {}), where)
    document = build_record(
        Document, where, id=fields.get("document", str, id), text=doc.text, meta=fields.get("meta", dict, {})
    )
    groups = {name: list(group) for name, group in doc.spans.items()} or {SPAN_GROUP: list(doc.ents)}
    spans = [
        simple_spans.LabelledSpan(
            span.start_char,
            span.end_char,
            span.label_ or None,
            f"{where}: span {name}[{index}]",
            span.id_,
            {} if name == SPAN_GROUP else {"group": name},
        )
        for name, group in groups.items()
        for index, span in enumerate(group)
    ]
    who = fields.get("annotator", str, "") if fields.value else annotator
    return simple_spans.AnnotatorPass(document, who, where, spans, meta={"cats": dict(doc.cats)} if doc.cats else {})


def write(items: Iterable[StudyItem], path: Path, options: Options) -> None:
    """Write a Doc per annotation, and one per text without annotations."""
    spacy = _import_spacy()
    vocab = spacy.blank("xx").vocab
    docs = spacy.tokens.DocBin(attrs=["ORTH", "SPACY"], store_user_data=True)
    for document, annotation in simple_spans.pair_with_documents(items):
        marks = list(simple_spans.labelled_text_spans(annotation)) if annotation else []
        words, spaces = tokenise_at_spans(
            document.text, {span.start for _, span in marks}, {span.end for _, span in marks}
        )
        doc = spacy.tokens.Doc(vocab, words=words, spaces=spaces)
        doc.user_data[USER_DATA_KEY] = {"document": document.id, "meta": dict(document.meta)} | (
            {"annotator": annotation.annotator} if annotation else {}
        )
        if annotation:
            doc.spans[SPAN_GROUP] = [
                doc.char_span(span.start, span.end, label=mark.label, span_id=mark.id) for mark, span in marks
            ]
        docs.add(doc)
    docs.to_disk(path)


def tokenise_at_spans(text: str, starts: set[int], ends: set[int]) -> tuple[list[str], list[bool]]:
    """Split `text` into words at the edges of spans; the second list tells whether a space follows each word.

    >>> tokenise_at_spans("a cat.", {3}, {5})
    (['a', 'c', 'at', '.'], [True, False, False, False])
    """
    cuts = sorted({*starts, *ends, *(edge for match in re.finditer(r"\w+|\W", text) for edge in match.span())})
    words: list[str] = []
    spaces: list[bool] = []
    for start, end in itertools.pairwise(cuts):
        alone = start in starts or end in ends  # a space at the start or end of a span becomes a word
        if text[start:end] == " " and words and not words[-1].isspace() and not spaces[-1] and not alone:
            spaces[-1] = True
        else:
            words.append(text[start:end])
            spaces.append(False)
    return words, spaces


FORMAT = Format(
    "spacy",
    "a spaCy DocBin",
    read,
    write,
    suffixes=(".spacy",),
    holds=frozenset(["document meta", "annotation without marks", "mark id"]),
    options=frozenset(["protocol", "annotator"]),
)
