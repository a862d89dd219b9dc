"""OpenAPI description for the TypeScript types, printed by `python -m finecomb.server.openapi`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from finecomb.collection.database.location import DATABASE_FILENAME, parse_location
from finecomb.collection.database.store import open_store
from finecomb.core.records import Settings
from finecomb.server.app import create_app


def build_openapi_description() -> dict[str, Any]:
    """Return the OpenAPI description of the study server."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(parse_location(Path(folder) / DATABASE_FILENAME), [Settings()])
        try:
            return create_app(store).openapi()
        finally:
            store.close()


if __name__ == "__main__":
    print(json.dumps(build_openapi_description(), indent=2, ensure_ascii=False))
