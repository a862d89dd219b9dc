"""Packages that only some commands need: which extra brings each, and what is said where it is missing."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from finecomb.core.errors import FinecombError

EXTRA_BY_MODULE = {
    "alembic": "server",
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
"""Modules that the default install does not have, and the extra of `pyproject.toml` that brings them."""


def missing_package_error(user: str, module: str, extra: str = "") -> FinecombError:
    """The error for a module that is not there; `user` says who needs it, with the verb.

    >>> print(missing_package_error("serving needs", "sqlalchemy"))
    serving needs the package sqlalchemy; pip install 'finecomb[server]'
    """
    name = module.partition(".")[0]
    way = f"pip install 'finecomb[{extra or EXTRA_BY_MODULE[name]}]'"
    return FinecombError(f"{user} the package {name.replace('_', '-')}; {way}")


def optional_package(user: str, module: str, extra: str = "") -> Any:
    """A module that the default install does not have; an error that says how to get it where it is not there."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise missing_package_error(user, module, extra) from None


def need_packages(user: str, *modules: str) -> None:
    """An error for the first module that is not there, before any work is done."""
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise missing_package_error(user, module)
