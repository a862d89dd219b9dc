"""Services of providers for requests in batches: upload, creation, search, state and results of a batch."""

from __future__ import annotations

import json
import typing
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from finecomb.annotators.llm.endpoint import CallError, EndpointError
from finecomb.annotators.llm.failures import classify_failure
from finecomb.core.errors import param, shorten
from finecomb.core.guarded_json import load_json

if TYPE_CHECKING:
    from finecomb.annotators.llm.http_endpoint import HttpEndpoint

BatchState = Literal["waiting", "ended", "failed"]
_CLOCK_TOLERANCE = timedelta(minutes=5)
_MAX_FILE_BYTES = 1_000_000_000


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A request of a batch: the hash that identifies it, its path and its body."""

    id: str
    path: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The result of a request: the status and body that a direct call would have had."""

    id: str
    status: int
    body: str


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """The state of a batch at the provider. `why` is the provider's name for it, or the reason of a failure."""

    state: BatchState
    why: str = ""


class BatchService(typing.Protocol):
    """A provider's service for requests in batches."""

    max_requests: int
    max_bytes: int

    async def upload(self, requests: Sequence[BatchRequest], tag: str) -> str:
        """Upload the requests and return the ID of their file, or an empty string if they are sent on creation."""

    async def create(self, requests: Sequence[BatchRequest], file: str, tag: str) -> str:
        """Create a batch and return its ID."""

    async def find(self, tag: str, requests: Sequence[str], since: datetime) -> list[str]:
        """Return the IDs of batches that may have been created for the tag, also if no reply to `create` arrived."""

    async def look_up(self, batch: str) -> BatchProgress:
        """Return the state of a batch."""

    async def fetch(self, batch: str) -> bytes:
        """Return the results of a batch as lines of JSON. Batches that were cut short have some results too."""

    def parse_results(self, lines: bytes) -> Iterator[BatchResult]:
        """Yield the results in a file, in any order. Lines that cannot be read are skipped."""


class _JsonService:
    """Requests of JSON with the errors of direct calls."""

    max_requests, max_bytes = 50_000, 190_000_000

    def __init__(self, endpoint: HttpEndpoint) -> None:
        self.endpoint = endpoint

    async def _request(
        self, method: str, path: str, body: Any = None, content: bytes = b"", content_type: str = "application/json"
    ) -> dict[str, Any]:
        data = content or (json.dumps(body).encode() if body is not None else b"")
        response = await self.endpoint.send_request(method, path, data, content_type)
        text = self.endpoint.redact_key(response.text)
        if response.status >= 300:
            error = self.endpoint.failure_error(
                classify_failure(response.status, response.headers, text), response.status
            )
            raise error if isinstance(error, EndpointError) or error.again else EndpointError(str(error))
        try:
            answer = load_json(text)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise CallError(f"{self.endpoint.host} returned {shorten(text, 80)!r} about a batch", again=True)
        return answer

    async def _download(self, path: str) -> bytes:
        response = await self.endpoint.send_request("GET", path, max_bytes=_MAX_FILE_BYTES)
        if response.status >= 300 or not response.is_complete:
            text = self.endpoint.redact_key(response.text[:4000])
            raise CallError(f"{self.endpoint.host} returned {response.status} for a result file: {shorten(text, 120)}")
        return response.content

    def _file_body(self, lines: Iterable[Any]) -> bytes:
        return b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    async def _upload_file(self, path: str, data: bytes, tag: str) -> str:
        boundary = uuid.uuid4().hex
        parts = [
            f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'.encode(),
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{tag}.jsonl"\r\n'.encode(),
            b"Content-Type: application/jsonl\r\n\r\n" + data + b"\r\n",
            f"--{boundary}--\r\n".encode(),
        ]
        content_type = f"multipart/form-data; boundary={boundary}"
        answer = await self._request("POST", path, content=b"".join(parts), content_type=content_type)
        return str(answer["id"])


def _iter_json_lines(lines: bytes) -> Iterator[dict[str, Any]]:
    """Yield the objects in lines of JSON, without lines that cannot be read, such as one that was cut off."""
    for line in lines.splitlines():
        try:
            value = load_json(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield value


def _object_field(line: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a field that is an object, or an empty object if it is missing or something else."""
    value = line.get(name)
    return value if isinstance(value, dict) else {}


class FileBatches(_JsonService):
    """Batches of OpenAI and Azure: files of requests, found again by their metadata."""

    files_path, batches_path = "/files", "/batches"

    async def upload(self, requests: Sequence[BatchRequest], tag: str) -> str:
        """Upload the requests as a file."""
        lines = (
            {"custom_id": request.id, "method": "POST", "url": f"/v1{request.path}", "body": request.body}
            for request in requests
        )
        return await self._upload_file(self._path("/files"), self._file_body(lines), tag)

    async def create(self, requests: Sequence[BatchRequest], file: str, tag: str) -> str:
        """Create a batch with the tag in its metadata."""
        body = {
            "input_file_id": file,
            "endpoint": f"/v1{requests[0].path}",
            "completion_window": "24h",
            "metadata": {"finecomb": tag},
        }
        return str((await self._request("POST", self._path("/batches"), body))["id"])

    async def find(self, tag: str, requests: Sequence[str], since: datetime) -> list[str]:
        """Return the batches with the tag in their metadata."""
        batches, after = [], ""
        while True:
            answer = await self._request("GET", self._path(f"/batches?limit=100{after}"))
            page = [entry for entry in answer.get("data") or () if isinstance(entry, dict)]
            batches += [str(entry["id"]) for entry in page if (entry.get("metadata") or {}).get("finecomb") == tag]
            if batches or not answer.get("has_more") or not page:
                return batches
            after = f"&after={page[-1]['id']}"

    async def look_up(self, batch: str) -> BatchProgress:
        """Return the state of a batch."""
        answer = await self._request("GET", self._path(f"/batches/{batch}"))
        status = str(answer.get("status"))
        if status == "failed":
            errors = (answer.get("errors") or {}).get("data") or []
            first = errors[0] if errors and isinstance(errors[0], dict) else {}
            line = f"line {first['line']}: " if first.get("line") else ""
            return BatchProgress("failed", f"{line}{first.get('message') or 'no reason given'}")
        is_ended = status in ("completed", "expired", "cancelled")
        return BatchProgress("ended" if is_ended else "waiting", status)

    async def fetch(self, batch: str) -> bytes:
        """Return the output file and the error file, either of which may be missing."""
        answer = await self._request("GET", self._path(f"/batches/{batch}"))
        files = [answer.get(name) for name in ("output_file_id", "error_file_id")]
        contents = [await self._download(self._path(f"/files/{file}/content")) for file in files if file]
        return b"\n".join(contents)

    def parse_results(self, lines: bytes) -> Iterator[BatchResult]:
        """Yield the results. A line with an error or without a response failed."""
        for line in _iter_json_lines(lines):
            response = _object_field(line, "response")
            error, status = line.get("error"), response.get("status_code")
            if error or not isinstance(status, int):
                yield BatchResult(str(line.get("custom_id")), 500, json.dumps({"error": error or "no response"}))
            else:
                yield BatchResult(str(line.get("custom_id")), status, json.dumps(response.get("body")))

    def _path(self, path: str) -> str:
        """Return the address of a path. In the dated API of Azure, it is outside of the deployment."""
        settings = self.endpoint.settings
        if not settings.api_version:
            return path
        root = self.endpoint.provider.address(settings).partition("/deployments/")[0]
        query = self.endpoint.provider.query(settings)
        return f"{root}{path}{'&' if '?' in path else '?'}{query}"


class MistralBatches(FileBatches):
    """Batch jobs of Mistral: files of requests without the model, found again by their metadata."""

    async def upload(self, requests: Sequence[BatchRequest], tag: str) -> str:
        """Upload the requests as a file."""
        lines = (
            {"custom_id": request.id, "body": {name: value for name, value in request.body.items() if name != "model"}}
            for request in requests
        )
        return await self._upload_file("/files", self._file_body(lines), tag)

    async def create(self, requests: Sequence[BatchRequest], file: str, tag: str) -> str:
        """Create a job with the tag in its metadata."""
        body = {
            "input_files": [file],
            "endpoint": f"/v1{requests[0].path}",
            "model": requests[0].body["model"],
            "metadata": {"finecomb": tag},
            "timeout_hours": 24,
        }
        return str((await self._request("POST", "/batch/jobs", body))["id"])

    async def find(self, tag: str, requests: Sequence[str], since: datetime) -> list[str]:
        """Return the jobs with the tag in their metadata."""
        answer = await self._request("GET", "/batch/jobs?page_size=100")
        entries = [entry for entry in answer.get("data") or () if isinstance(entry, dict)]
        return [str(entry["id"]) for entry in entries if (entry.get("metadata") or {}).get("finecomb") == tag]

    async def look_up(self, batch: str) -> BatchProgress:
        """Return the state of a job. Unknown states count as ended, since the results are read in any case."""
        answer = await self._request("GET", f"/batch/jobs/{batch}")
        status = str(answer.get("status"))
        if status in ("QUEUED", "RUNNING", "CANCELLATION_REQUESTED"):
            return BatchProgress("waiting", status)
        if status == "FAILED" and not answer.get("output_file"):
            errors = answer.get("errors") or []
            message = str(errors[0].get("message")) if errors and isinstance(errors[0], dict) else "no reason given"
            return BatchProgress("failed", message)
        return BatchProgress("ended", status)

    async def fetch(self, batch: str) -> bytes:
        """Return the output file and the error file, either of which may be missing."""
        answer = await self._request("GET", f"/batch/jobs/{batch}")
        files = [answer.get(name) for name in ("output_file", "error_file")]
        return b"\n".join([await self._download(f"/files/{file}/content") for file in files if file])


class AnthropicBatches(_JsonService):
    """Message batches of Anthropic. They have no tags, and so are found again by time, size and content."""

    max_requests, max_bytes = 100_000, 240_000_000

    async def upload(self, requests: Sequence[BatchRequest], tag: str) -> str:
        """Return an empty string, because the requests are part of the creation."""
        return ""

    async def create(self, requests: Sequence[BatchRequest], file: str, tag: str) -> str:
        """Create a batch."""
        body = {"requests": [{"custom_id": request.id, "params": request.body} for request in requests]}
        return str((await self._request("POST", "/messages/batches", body))["id"])

    async def find(self, tag: str, requests: Sequence[str], since: datetime) -> list[str]:
        """Return the batches of the same size that were created since then and do not belong to another run."""
        batches, after = [], ""
        while True:
            answer = await self._request("GET", f"/messages/batches?limit=100{after}")
            page = [entry for entry in answer.get("data") or () if isinstance(entry, dict)]
            for entry in page:
                created = datetime.fromisoformat(str(entry["created_at"]))
                counts = sum(value for value in (entry.get("request_counts") or {}).values() if isinstance(value, int))
                if created < since - _CLOCK_TOLERANCE or counts != len(requests):
                    continue
                if entry.get("processing_status") == "ended":
                    results = self.parse_results(await self.fetch(str(entry["id"])))
                    first = next((result.id for result in results), "")
                    if first not in requests:
                        continue
                batches.append(str(entry["id"]))
            if not answer.get("has_more") or not page:
                return batches
            after = f"&after_id={page[-1]['id']}"

    async def look_up(self, batch: str) -> BatchProgress:
        """Return the state of a batch."""
        status = str((await self._request("GET", f"/messages/batches/{batch}")).get("processing_status"))
        return BatchProgress("ended" if status == "ended" else "waiting", status)

    async def fetch(self, batch: str) -> bytes:
        """Return the results."""
        return await self._download(f"/messages/batches/{batch}/results")

    def parse_results(self, lines: bytes) -> Iterator[BatchResult]:
        """Yield the results: succeeded, errored, canceled or expired."""
        for line in _iter_json_lines(lines):
            result = _object_field(line, "result")
            kind, id = result.get("type"), str(line.get("custom_id"))
            if kind == "succeeded":
                yield BatchResult(id, 200, json.dumps(result.get("message")))
            elif kind == "errored":
                text = json.dumps(result.get("error"))
                yield BatchResult(id, 400 if "invalid_request_error" in text else 500, text)
            else:
                yield BatchResult(id, 503, json.dumps({"error": {"message": f"the request was {kind} in the batch"}}))


class GeminiBatches(_JsonService):
    """Batches of Gemini: files of requests, found again by their display names."""

    max_bytes = 1_900_000_000

    async def upload(self, requests: Sequence[BatchRequest], tag: str) -> str:
        """Upload the requests as a file with the resumable protocol of Google."""
        data = self._file_body({"key": request.id, "request": request.body} for request in requests)
        root = self.endpoint.provider.address(self.endpoint.settings)
        base, _, version = root.rpartition("/")
        start = {
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(len(data)),
            "X-Goog-Upload-Header-Content-Type": "application/jsonl",
        }
        meta = json.dumps({"file": {"displayName": tag, "mimeType": "application/jsonl"}}).encode()
        response = await self.endpoint.send_request("POST", f"{base}/upload/{version}/files", meta, headers=start)
        address = response.headers.get("x-goog-upload-url", "")
        if response.status >= 300 or not address.startswith(f"{base}/"):
            text = self.endpoint.redact_key(response.text)
            raise CallError(f"{self.endpoint.host} did not accept a file: {shorten(text, 120)}", again=True)
        send = {"X-Goog-Upload-Offset": "0", "X-Goog-Upload-Command": "upload, finalize"}
        response = await self.endpoint.send_request("POST", address, data, "application/jsonl", headers=send)
        try:
            return str(load_json(response.text)["file"]["name"])
        except (ValueError, LookupError, TypeError):
            text = self.endpoint.redact_key(response.text)
            raise CallError(f"{self.endpoint.host} did not accept a file: {shorten(text, 120)}", again=True) from None

    async def create(self, requests: Sequence[BatchRequest], file: str, tag: str) -> str:
        """Create a batch with the tag as its display name."""
        path = requests[0].path.replace(":generateContent", ":batchGenerateContent")
        body = {"batch": {"displayName": tag, "inputConfig": {"fileName": file}}}
        return str((await self._request("POST", path, body))["name"])

    async def find(self, tag: str, requests: Sequence[str], since: datetime) -> list[str]:
        """Return the batches with the tag as display name."""
        batches, token = [], ""
        while True:
            answer = await self._request("GET", f"/batches?pageSize=100{token}")
            for entry in answer.get("operations") or answer.get("batches") or ():
                if isinstance(entry, dict) and (entry.get("metadata") or entry).get("displayName") == tag:
                    batches.append(str(entry["name"]))
            if batches or not answer.get("nextPageToken"):
                return batches
            token = f"&pageToken={answer['nextPageToken']}"

    async def look_up(self, batch: str) -> BatchProgress:
        """Return the state of a batch. Unknown states count as waiting."""
        answer = await self._request("GET", f"/{batch}")
        state = str((answer.get("metadata") or {}).get("state") or "").removeprefix("BATCH_STATE_")
        state = state.removeprefix("JOB_STATE_")
        if state == "FAILED":
            return BatchProgress("failed", str((answer.get("error") or {}).get("message") or "no reason given"))
        is_ended = state in ("SUCCEEDED", "PARTIALLY_SUCCEEDED", "CANCELLED", "EXPIRED")
        return BatchProgress("ended" if is_ended else "waiting", state)

    async def fetch(self, batch: str) -> bytes:
        """Return the result file, or nothing if a batch was cut short before there was one."""
        answer = await self._request("GET", f"/{batch}")
        meta, response = answer.get("metadata") or {}, answer.get("response") or {}
        file = (meta.get("output") or {}).get("responsesFile") or response.get("responsesFile")
        if not file:
            return b""
        root = self.endpoint.provider.address(self.endpoint.settings)
        base, _, version = root.rpartition("/")
        return await self._download(f"{base}/download/{version}/{file}:download?alt=media")

    def parse_results(self, lines: bytes) -> Iterator[BatchResult]:
        """Yield the results by their keys."""
        for line in _iter_json_lines(lines):
            if "response" in line:
                yield BatchResult(str(line.get("key")), 200, json.dumps(line["response"]))
            else:
                error = _object_field(line, "error")
                code = error.get("code")
                status = code if isinstance(code, int) and 400 <= code < 600 else 400 if code == 3 else 500
                yield BatchResult(str(line.get("key")), status, json.dumps({"error": error}))


def ambiguous_batch_error(host: str, batches: Sequence[str]) -> EndpointError:
    """Return the error for a batch that cannot be identified. Another batch could be paid for twice."""
    return EndpointError(
        f"{host} has {len(batches)} batches that may belong to this run ({', '.join(batches[:5])}); pass the right one"
        f" with {param('batch_id', 'ID')}, or {param('batch_id', 'new')} if none of them does"
    )
