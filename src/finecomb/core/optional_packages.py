"""Optional packages: the extra that installs each, and the error for a missing package."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from finecomb.core.errors import FinecombError

EXTRA_BY_MODULE = {
    "alembic": "server",
    "altair": "altair",
    "datasets": "models",
    "fastapi": "server",
    "httptools": "server",
    "httpx2": "llm",
    "json_repair": "llm",
    "psycopg": "postgres",
    "ray": "ray",
    "sacrebleu": "stress",
    "safetensors": "detect",
    "sentence_transformers": "torch",
    "spacy": "models",
    "sqlalchemy": "server",
    "stamina": "llm",
    "starlette": "server",
    "torch": "detect",
    "transformers": "detect",
    "uvicorn": "server",
    "xllamacpp": "local",
}
"""Extras in `pyproject.toml` that install optional modules, by module name."""


def missing_package_error(user: str, module: str, extra: str = "") -> FinecombError:
    """Return the error for a missing module; the message begins with `user`, a subject and verb.

    >>> print(missing_package_error("serving needs", "sqlalchemy"))
    serving needs the package sqlalchemy; run `pip install 'finecomb[server]'`
    """
    name = module.partition(".")[0]
    command = f"pip install 'finecomb[{extra or EXTRA_BY_MODULE[name]}]'"
    return FinecombError(f"{user} the package {name.replace('_', '-')}; run `{command}`")


def import_optional_package(user: str, module: str, extra: str = "") -> Any:
    """Import a module that the default install lacks, or raise an error with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise missing_package_error(user, module, extra) from None


def require_packages(user: str, *modules: str) -> None:
    """Raise an error for the first of `modules` that is not installed, before any work is done."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise missing_package_error(user, module)
