"""Clusters of documents: groups that are independent of each other, over which intervals and tests are computed.

Texts that answer the same prompt or have the same source are not independent, so they form one cluster. Without such a
key, each text is its own cluster.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from finecomb.core.errors import ParameterError, did_you_mean
from finecomb.core.frames import json_entry, json_entry_names, meta_entry

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MIN_CLUSTERS = 4
"""Minimum number of clusters for an interval."""
FEW_CLUSTERS = 8
"""Intervals over fewer clusters are labelled `few clusters`; charts show neither the interval nor an order."""
TEXT_CLUSTER = "text"
ANNOTATOR_CLUSTER = "annotator"
CONTEXT_KEYS = ("prompt", "source", "headline")
"""Named contexts that identify the input of a text."""


@dataclass(frozen=True)
class Clusters:
    """Cluster of each document of a study or group."""

    name: str
    """Meaning of the clusters: `text`, `prompt`, `source` or another document field."""
    positions: Ints
    """(documents,): cluster of each document, numbered from 0 without gaps."""
    is_default: bool = True
    """False if the clusters were requested by name."""

    @functools.cached_property
    def count(self) -> int:
        """Number of clusters."""
        return int(self.positions.max(initial=-1)) + 1

    @functools.cached_property
    def is_identity(self) -> bool:
        """True if each document is its own cluster, in the order of documents."""
        return bool(np.array_equal(self.positions, np.arange(len(self.positions))))

    def sum_documents(self, values: Floats) -> Floats:
        """Sum values, (documents, ...), over the documents of each cluster, (clusters, ...)."""
        if self.is_identity:
            return values
        sums = np.zeros((self.count, *values.shape[1:]))
        np.add.at(sums, self.positions, values)
        return sums

    def expand_weights(self, weights: Floats) -> Floats:
        """Return the weight of each document, (draws, documents), from weights of clusters, (draws, clusters)."""
        return weights if self.is_identity else weights[:, self.positions]

    def select(self, documents: Sequence[int] | Ints) -> Clusters:
        """Return the clusters of some of the documents, given by position."""
        _, positions = np.unique(self.positions[np.asarray(documents, dtype=np.int64)], return_inverse=True)
        return Clusters(self.name, positions.astype(np.int64), self.is_default)

    def describe(self) -> str:
        """Return the numbers of texts and clusters in words, e.g. `40 texts from 14 prompts`."""
        texts = len(self.positions)
        words = f"{texts:,} text{'' if texts == 1 else 's'}"
        if self.name == TEXT_CLUSTER:
            return words
        return f"{words} from {self.count:,} {self.name}{'' if self.count == 1 else 's'}"

    @property
    def notes(self) -> list[str]:
        """Note that describes the clusters; empty if each text is its own cluster by default."""
        is_plain = self.name == TEXT_CLUSTER and self.is_default
        return [] if is_plain else [f"clusters for intervals and tests: {self.describe()}"]

    @property
    def signature_fields(self) -> dict[str, object]:
        """Signature fields that name the clusters; empty if each text is its own cluster."""
        return {} if self.name == TEXT_CLUSTER else {"cluster": self.name, "clusters": self.count}


def text_clusters(documents: int) -> Clusters:
    """Return clusters of one text each."""
    return Clusters(TEXT_CLUSTER, np.arange(documents, dtype=np.int64))


def find_clusters(documents: pl.DataFrame, cluster: str = "") -> Clusters:
    """Find the cluster of each document in a table with the columns `id`, `context` and `meta`.

    By default, documents with the same `meta.prompt_id`, the same context `prompt`, `source` or `headline`, or the same
    `meta.source` form a cluster; the first of these keys that a document has counts. If all documents share one value,
    it says nothing about their independence, so texts are the clusters. `cluster` names another key: `text`, one of
    these contexts, or a document meta field such as `topic` or `author`. A document without the key is its own cluster.
    """
    if cluster == TEXT_CLUSTER:
        return Clusters(TEXT_CLUSTER, np.arange(len(documents), dtype=np.int64), is_default=False)
    if cluster:
        keys = documents.select(
            key=pl.coalesce(meta_entry(cluster), json_entry("context", cluster)) if cluster in CONTEXT_KEYS
            else meta_entry(cluster)
        )["key"]  # fmt: skip
        if not len(keys) or keys.null_count() < len(keys):
            return Clusters(cluster, _number_keys(keys), is_default=False)
        near = did_you_mean(cluster, [TEXT_CLUSTER, *CONTEXT_KEYS, *json_entry_names(documents["meta"])])
        raise ParameterError(
            f"no document has the field {cluster!r}{near or '; use text, prompt, source or a document meta field'}",
            parameter="cluster",
        )
    meta, context = documents["meta"], documents["context"]
    inputs = [name for name in CONTEXT_KEYS if context.str.contains(f'"{name}"', literal=True).any()]
    fields = [name for name in ("prompt_id", "source") if meta.str.contains(f'"{name}"', literal=True).any()]
    named = [pl.lit(f"{name}:") + json_entry("context", name) for name in inputs]
    for field in fields:  # prompt_id comes before the contexts, meta.source after them
        named.insert(0 if field == "prompt_id" else len(named), pl.lit(f"{field}:") + meta_entry(field))
    if not named:
        return text_clusters(len(documents))
    keys = documents.select(key=pl.coalesce(named))["key"]
    positions = _number_keys(keys)
    count = int(positions.max(initial=-1)) + 1
    if count in (1, len(documents)):
        return text_clusters(len(documents))
    kind = keys.drop_nulls()[0].partition(":")[0].removesuffix("_id")
    return Clusters(kind, positions)


def _number_keys(keys: pl.Series) -> Ints:
    """Number equal keys from 0 in order of appearance; each missing key has a number of its own."""
    unique = pl.select(
        key=pl.when(keys.is_null()).then(pl.lit("\0") + pl.int_range(len(keys)).cast(pl.String)).otherwise(keys)
    )["key"]
    order = unique.unique(maintain_order=True)
    return unique.replace_strict(order, pl.int_range(len(order), eager=True), return_dtype=pl.Int64).to_numpy()
