"""JSON log of the server, without personal data and without content of the study."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TextIO

from starlette.types import Scope

LogFormat = Literal["text", "json"]
request_log = logging.getLogger("finecomb.requests")
_SOURCE_ROOT = Path(__file__).parent.parent.parent


class JsonFormatter(logging.Formatter):
    """Formatter that writes one JSON line per log record: time, level, logger, message and request.

    Exceptions are logged by type and location. Their messages are omitted, because they may quote content or a worker
    ID. In log messages, values other than text and numbers are replaced by the names of their types.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Format a log record as one line of JSON."""
        arguments = record.args if isinstance(record.args, tuple) else ()
        redacted = tuple(
            value if isinstance(value, str | int | float) or value is None else type(value).__name__
            for value in arguments
        )
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": (str(record.msg) % redacted if arguments else str(record.msg)),
            **getattr(record, "request", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            line["at"] = []
            for frame in traceback.extract_tb(record.exc_info[2]):
                path = Path(frame.filename)
                shown = path.relative_to(_SOURCE_ROOT) if path.is_relative_to(_SOURCE_ROOT) else path.name
                line["at"].append(f"{shown}:{frame.lineno} {frame.name}")
        return json.dumps(line, ensure_ascii=False)


def configure_logging(format: LogFormat, stream: TextIO | None = None) -> None:
    """Configure the logging of this process. JSON lines are written to `stream`, by default standard error."""
    if format == "text":
        return
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    request_log.setLevel(logging.INFO)


def route_template(scope: Scope) -> str:
    """Return the path of a request with placeholders for IDs and tokens, or an empty string when no route matches.

    >>> route_template({"path": "/api/join/Zm9v/decline", "endpoint": print, "path_params": {"token": "Zm9v"}})
    '/api/join/{token}/decline'
    """
    if "endpoint" not in scope:
        return ""
    path: str = scope["path"]
    names = {str(value): name for name, value in scope.get("path_params", {}).items()}
    for value, name in names.items():
        if "/" in value:
            path = f"{path.removesuffix(value)}{{{name}}}"
    return "/".join(f"{{{names[step]}}}" if step in names else step for step in path.split("/"))


def log_request(scope: Scope, status: int, seconds: float) -> None:
    """Log the method, route, status and duration of a request, without the person or the object it concerns."""
    if request_log.isEnabledFor(logging.INFO):
        fields = {
            "method": scope["method"],
            "path": route_template(scope),
            "status": status,
            "ms": round(1000 * seconds, 1),
        }
        request_log.info("request", extra={"request": fields})
