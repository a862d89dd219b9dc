"""Reading of uploaded files in a separate process with limits on time and memory."""

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
from finecomb.core.protocol_yaml import parse_protocol
from finecomb.core.records import Document
from finecomb.engine.guarded_files import open_archive
from finecomb.engine.isolation import isolated_python
from finecomb.server.researchers.upload import parse_uploaded_documents

MAX_READ_SECONDS = 60.0
"""Maximum seconds for reading a file."""
MAX_MEMORY_BYTES = 2_000_000_000
"""Maximum memory in bytes for reading a file, if the operating system can limit it."""
MAX_UNPACKED_BYTES = 200_000_000
"""Maximum size in bytes of an unpacked workbook."""
MAX_DOCUMENTS = 200_000
"""Maximum number of texts per uploaded file."""
_MAX_INLINE_BYTES = 16_000  # smaller files are read in the server process, because they cannot take long
_MAX_PROTOCOL_BYTES = 8_000_000


def read_protocol_in_subprocess(content: bytes, name: str) -> Protocol:
    """Read the protocol from an uploaded file called `name`."""
    if len(content) > _MAX_PROTOCOL_BYTES:
        raise FinecombError(
            f"{name}: the file has {len(content):,} bytes; the maximum for a protocol is {_MAX_PROTOCOL_BYTES:,}"
        )
    if len(content) <= _MAX_INLINE_BYTES:
        return _decode_protocol(content, name)
    return Protocol.model_validate(_run_in_subprocess({"kind": "protocol", "name": name}, content)["protocol"])


def read_documents_in_subprocess(
    content: bytes, name: str, columns: Mapping[str, str], ids: Collection[str]
) -> tuple[list[Document], list[str]]:
    """Read the documents from an uploaded file called `name`, and return them with notes."""
    # Workbooks are ZIP archives, which may unpack to an excessive size.
    try:
        with open_archive(BytesIO(content), MAX_UNPACKED_BYTES, name):
            pass
    except (zipfile.BadZipFile, NotImplementedError, OSError):
        pass  # not an archive
    if len(content) <= _MAX_INLINE_BYTES and not zipfile.is_zipfile(BytesIO(content)):
        return _check_document_count(*parse_uploaded_documents(content, name, columns, ids), name)
    request = {"kind": "documents", "name": name, "columns": dict(columns), "ids": list(ids)}
    answer = _run_in_subprocess(request, content)
    return _check_document_count(
        [Document.model_validate(document) for document in answer["documents"]], answer["notes"], name
    )


def _check_document_count(documents: list[Document], notes: list[str], name: str) -> tuple[list[Document], list[str]]:
    if len(documents) > MAX_DOCUMENTS:
        raise FinecombError(
            f"{name}: the file has {len(documents):,} texts; the maximum per upload is {MAX_DOCUMENTS:,}"
        )
    return documents, notes


def _decode_protocol(content: bytes, name: str) -> Protocol:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise FinecombError(f"{name}: byte {error.start} is not UTF-8; save the file as UTF-8") from None
    return parse_protocol(text, name)


def _run_in_subprocess(request: Mapping[str, object], content: bytes) -> dict[str, list[str]]:
    """Send a request to a subprocess. Raise an error when the subprocess fails, times out or reports an error."""
    name = request["name"]
    try:
        result = subprocess.run(
            isolated_python("finecomb.server.researchers.upload_process"),
            input=json.dumps(request).encode() + b"\n" + content,
            capture_output=True,
            timeout=MAX_READ_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise FinecombError(
            f"{name}: reading took longer than {MAX_READ_SECONDS:g} seconds; upload a smaller file"
        ) from None
    if result.returncode != 0:
        raise FinecombError(
            f"{name}: the file cannot be read; it needs more than {MAX_MEMORY_BYTES:,} bytes of memory "
            "or is nested too deeply"
        )
    answer: dict[str, list[str]] = from_json(result.stdout)
    if "error" in answer:
        raise FinecombError(str(answer["error"]))
    return answer


def main() -> None:
    """Read a request and a file from standard input, and write the parsed result to standard output."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        pass
    else:
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (int(MAX_READ_SECONDS), int(MAX_READ_SECONDS) + 1))
    head, _, content = sys.stdin.buffer.read().partition(b"\n")
    request = from_json(head)
    answer: dict[str, object]
    try:
        if request["kind"] == "protocol":
            answer = {"protocol": _decode_protocol(content, request["name"]).model_dump(mode="json")}
        else:
            documents, notes = parse_uploaded_documents(content, request["name"], request["columns"], request["ids"])
            answer = {"documents": [document.model_dump(mode="json") for document in documents], "notes": notes}
    except FinecombError as error:
        answer = {"error": str(error)}
    sys.stdout.buffer.write(to_json(answer))


if __name__ == "__main__":
    main()
