"""Parsing of documents from an uploaded file in any readable format."""

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
"""Accepted file suffixes. No other part of an uploaded file's name reaches the file system."""


def parse_uploaded_documents(
    content: bytes, name: str, columns: Mapping[str, str], ids: Collection[str]
) -> tuple[list[Document], list[str]]:
    """Parse the documents of a file called `name`, and return them with notes. IDs that are in `ids` raise an error."""
    ending = Path(name).suffix.lower()
    if ending not in DOCUMENT_SUFFIXES:
        raise FinecombError(
            f"{name}: unknown file type; documents must be in a file ending in {', '.join(DOCUMENT_SUFFIXES)}"
        )
    with tempfile.TemporaryDirectory(prefix="finecomb-") as folder:
        path = Path(folder) / f"upload{ending}"
        path.write_bytes(content)
        try:
            items = list(formats.stream_records(path, options=Options(columns=columns)))
        except FinecombError as error:
            raise FinecombError(str(error).replace(str(path), name)) from None
    documents = [item for item in items if isinstance(item, Document)]
    if not documents:
        raise FinecombError(f"{name}: contains no texts")
    try:
        list(check_items(documents))
    except StudyError as error:
        raise FinecombError(f"{name}: {error}") from None
    existing_ids = [document.id for document in documents if document.id in ids]
    if existing_ids:
        listed = ", ".join(map(repr, existing_ids[:5])) + (", ..." if len(existing_ids) > 5 else "")
        raise FinecombError(f"{name}: IDs already exist in the study: {listed}; nothing was added")
    left = sum(isinstance(item, Annotation) for item in items)
    notes = [item.text for item in items if isinstance(item, Note)]
    return documents, [*notes, *([f"{left:,} annotations in {name} were not imported"] if left else [])]
