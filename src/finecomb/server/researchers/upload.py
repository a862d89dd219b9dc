"""Documents from an uploaded file, through every format that can be read."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

from finecomb import formats
from finecomb.core.errors import FinecombError, StudyError
from finecomb.core.records import Annotation, Document, Note
from finecomb.core.study_checks import check_items
from finecomb.formats import Options

DOCUMENT_SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".xlsx", ".spacy")
"""Of files that may hold documents. The rest of a name that somebody sends never reaches the file system."""


def parse_uploaded_documents(
    content: bytes, name: str, columns: Mapping[str, str], ids: Collection[str]
) -> tuple[list[Document], list[str]]:
    """The documents of a file called `name`, and what there is to say; refused when any of them has one of `ids`."""
    ending = Path(name).suffix.lower()
    if ending not in DOCUMENT_SUFFIXES:
        raise FinecombError(
            f"{name}: cannot tell its format; a file of documents ends in {', '.join(DOCUMENT_SUFFIXES)}"
        )
    with tempfile.TemporaryDirectory(prefix="finecomb-") as folder:
        path = Path(folder) / f"upload{ending}"
        path.write_bytes(content)
        try:
            items = list(formats.stream(path, options=Options(columns=columns)))
        except FinecombError as error:
            raise FinecombError(str(error).replace(str(path), name)) from None
    documents = [item for item in items if isinstance(item, Document)]
    _check_documents(documents, name, ids)
    left = sum(isinstance(item, Annotation) for item in items)
    notes = [item.text for item in items if isinstance(item, Note)]
    return documents, [*notes, *([f"{left:,} annotations in {name} were left behind"] if left else [])]


def _check_documents(documents: list[Document], name: str, ids: Collection[str]) -> None:
    if not documents:
        raise FinecombError(f"{name}: has no texts")
    try:
        list(check_items(documents))
    except StudyError as error:
        raise FinecombError(f"{name}: {error}") from None
    there = [document.id for document in documents if document.id in ids]
    if there:
        listed = ", ".join(map(repr, there[:5])) + (", ..." if len(there) > 5 else "")
        raise FinecombError(f"{name}: has ids that are in the study already: {listed}; nothing was added")
