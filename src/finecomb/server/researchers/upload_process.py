"""Uploaded files are read in a process of its own, with a limit on its time and memory, which can be ended."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Collection, Mapping
from io import BytesIO

from pydantic_core import from_json, to_json

from finecomb.core.errors import FinecombError
from finecomb.core.protocol import Protocol
from finecomb.core.protocol_text import parse_protocol
from finecomb.core.records import Document
from finecomb.server.researchers.upload import parse_uploaded_documents

MAX_SECONDS = 60.0
"""The longest that reading a file may take."""
MAX_MEMORY_BYTES = 2_000_000_000
"""Bytes that reading a file may take, where the system can limit them."""
MAX_UNPACKED_BYTES = 200_000_000
"""Bytes that a workbook may have when it is unpacked."""
MAX_DOCUMENTS = 200_000
"""Texts in one file."""
_MAX_INLINE_BYTES = 16_000  # bytes that are read at once: no file of that size can take long
_MAX_PROTOCOL_BYTES = 8_000_000


def read_protocol_in_subprocess(content: bytes, name: str) -> Protocol:
    """The protocol in an uploaded file called `name`."""
    if len(content) > _MAX_PROTOCOL_BYTES:
        raise FinecombError(f"{name}: has {len(content):,} bytes; a protocol has at most {_MAX_PROTOCOL_BYTES:,}")
    if len(content) <= _MAX_INLINE_BYTES:
        return _decode_protocol(content, name)
    return Protocol.model_validate(_run_in_subprocess({"kind": "protocol", "name": name}, content)["protocol"])


def read_documents_in_subprocess(
    content: bytes, name: str, columns: Mapping[str, str], ids: Collection[str]
) -> tuple[list[Document], list[str]]:
    """The documents in an uploaded file called `name`, and what there is to say about it."""
    _refuse_zip_bomb(content, name)
    if len(content) <= _MAX_INLINE_BYTES and not zipfile.is_zipfile(BytesIO(content)):
        return _check_document_count(*parse_uploaded_documents(content, name, columns, ids), name)
    asked = {"kind": "documents", "name": name, "columns": dict(columns), "ids": list(ids)}
    answer = _run_in_subprocess(asked, content)
    return _check_document_count(
        [Document.model_validate(document) for document in answer["documents"]], answer["notes"], name
    )


def _check_document_count(documents: list[Document], notes: list[str], name: str) -> tuple[list[Document], list[str]]:
    if len(documents) > MAX_DOCUMENTS:
        raise FinecombError(f"{name}: has {len(documents):,} texts; at most {MAX_DOCUMENTS:,} are taken at once")
    return documents, notes


def _refuse_zip_bomb(content: bytes, name: str) -> None:
    """A workbook is a ZIP archive, and a small one can unpack to anything."""
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, NotImplementedError, OSError):
        return
    if size > MAX_UNPACKED_BYTES:
        raise FinecombError(
            f"{name}: unpacks to {size:,} bytes; at most {MAX_UNPACKED_BYTES:,} are read; use several files"
        )


def _decode_protocol(content: bytes, name: str) -> Protocol:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise FinecombError(f"{name}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    return parse_protocol(text, name)


def _run_in_subprocess(asked: Mapping[str, object], content: bytes) -> dict[str, list[str]]:
    """What the other process answers; its end, its time-out and its errors are the user's to know."""
    command = [sys.executable, "-m", "finecomb.server.researchers.upload_process"]
    name = asked["name"]
    try:
        result = subprocess.run(
            command,
            input=json.dumps(asked).encode() + b"\n" + content,
            capture_output=True,
            timeout=MAX_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise FinecombError(f"{name}: takes longer than {MAX_SECONDS:g} s to read; make it smaller") from None
    if result.returncode != 0:
        raise FinecombError(
            f"{name}: cannot be read: it needs more memory than {MAX_MEMORY_BYTES:,} bytes, or is nested too deeply"
        )
    answer: dict[str, list[str]] = from_json(result.stdout)
    if "error" in answer:
        raise FinecombError(str(answer["error"]))
    return answer


def _limit_resources() -> None:
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (int(MAX_SECONDS), int(MAX_SECONDS) + 1))


def _handle_request(head: bytes, content: bytes) -> dict[str, object]:
    asked = from_json(head)
    try:
        if asked["kind"] == "protocol":
            return {"protocol": _decode_protocol(content, asked["name"]).model_dump(mode="json")}
        found, notes = parse_uploaded_documents(content, asked["name"], asked["columns"], asked["ids"])
        return {"documents": [document.model_dump(mode="json") for document in found], "notes": notes}
    except FinecombError as error:
        return {"error": str(error)}


def main() -> None:
    """Read a question and a file from standard input and answer on standard output."""
    _limit_resources()
    head, _, content = sys.stdin.buffer.read().partition(b"\n")
    sys.stdout.buffer.write(to_json(_handle_request(head, content)))


if __name__ == "__main__":
    main()
