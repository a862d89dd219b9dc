"""Potato, another annotation tool, installed from PyPI in its own environment and served with default settings.

Differences from our server: potato stores the work of an annotator in one file that is rewritten and synced on each
save, so a save costs more the more that annotator has marked. It checks neither versions nor repeated changes, and it
closes the connection after each response.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import venv
from collections.abc import Iterator
from pathlib import Path

POTATO_VERSION = "2.12.1"
POTATO_CONFIG = {
    "annotation_task_name": "saves",
    "task_dir": ".",
    "output_annotation_dir": "annotation_output",
    "output_annotation_format": "json",
    "data_files": ["data.json"],
    "item_properties": {"id_key": "id", "text_key": "text"},
    "user_config": {"allow_all_users": True, "users": []},
    "require_password": False,
    "site_dir": "default",
    "annotation_schemes": [
        {"annotation_type": "span", "name": "errors", "description": "errors", "labels": ["incoherent", "grammar"]}
    ],
}


def convert_save_body(body: str) -> str:
    """Convert one of our saves to potato's format: the mark alone, with its answers as the value."""
    mark = json.loads(body)["body"]
    ((start, end),) = mark["spans"]
    value = json.dumps(mark["answers"]) if mark["answers"] else "true"
    span = {
        "schema": "errors",
        "name": mark["label"],
        "title": mark["label"],
        "start": start,
        "end": end,
        "value": value,
    }
    return json.dumps({"instance_id": "text-0", "annotations": {}, "span_annotations": [span]})


@contextlib.contextmanager
def serve_potato(text: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Install and run a server with one text, and yield its port. Requires a package index."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        venv.create(folder / "environment", with_pip=True)
        programs = folder / "environment" / ("Scripts" if sys.platform == "win32" else "bin")
        install = [str(programs / "python"), "-m", "pip", "install", "-q", f"potato-annotation=={POTATO_VERSION}"]
        subprocess.run(install, check=True)
        (folder / "config.yaml").write_text(json.dumps(POTATO_CONFIG), encoding="utf-8")  # JSON is valid YAML
        (folder / "data.json").write_text(json.dumps({"id": "text-0", "text": text}) + "\n", encoding="utf-8")
        port = _free_port()
        words = [str(programs / "potato"), "start", "config.yaml", "-p", str(port), "--host", "127.0.0.1"]
        with (folder / "log").open("wb") as log, subprocess.Popen(words, cwd=folder, stdout=log, stderr=log) as process:
            try:
                _wait_until_ready(port)
                yield process, port
            finally:
                process.terminate()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait_until_ready(port: int, limit: float = 120.0) -> None:
    until = time.monotonic() + limit
    while time.monotonic() < until:
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
            return
        time.sleep(0.2)
    raise TimeoutError(f"potato did not respond within {limit:.0f} s")
