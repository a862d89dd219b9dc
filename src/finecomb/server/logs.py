"""The server's log as lines of JSON, without anything that tells who somebody is or what they did."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TextIO

from starlette.types import Scope

LogFormat = Literal["text", "json"]
request_log = logging.getLogger("finecomb.requests")
_SOURCE_ROOT = Path(__file__).parent.parent.parent


class JsonFormatter(logging.Formatter):
    """A line for each record: time, level, logger, message, and what a request was.

    Of an exception it has the type and where it was raised. Its message is left out, since it may quote what somebody
    wrote or a worker's id; of a message's values only text, numbers and types are kept.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line of JSON."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": _redacted_message(record),
            **getattr(record, "request", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            line["at"] = _traceback_lines(record.exc_info[2])
        return json.dumps(line, ensure_ascii=False)


def _redacted_message(record: logging.LogRecord) -> str:
    arguments = record.args if isinstance(record.args, tuple) else ()
    return str(record.msg) % tuple(map(_redact_value, arguments)) if arguments else str(record.msg)


def _redact_value(value: object) -> object:
    return value if isinstance(value, str | int | float) or value is None else type(value).__name__


def _traceback_lines(trace: TracebackType | None) -> list[str]:
    """Where an exception went through, without the values of any name."""
    frames = traceback.extract_tb(trace)
    return [f"{_short_path(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames]


def _short_path(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(_SOURCE_ROOT)) if path.is_relative_to(_SOURCE_ROOT) else path.name


def configure_logging(format: LogFormat, stream: TextIO | None = None) -> None:
    """Write the log of this process to a stream, standard error when None; as JSON, with a line for each request."""
    if format == "text":
        return
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    request_log.setLevel(logging.INFO)


def route_template(scope: Scope) -> str:
    """The address of a request with names in place of ids and tokens; empty where it leads nowhere.

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
    """A line about an answered request: what was asked for and how it went, not by whom or about whom."""
    if request_log.isEnabledFor(logging.INFO):
        fields = {
            "method": scope["method"],
            "path": route_template(scope),
            "status": status,
            "ms": round(1000 * seconds, 1),
        }
        request_log.info("request", extra={"request": fields})
