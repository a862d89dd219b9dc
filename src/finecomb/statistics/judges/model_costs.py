"""Costs of language models, computed from stored token counts and the prices in the annotators' settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from finecomb.core.frames import parse_json_object
from finecomb.core.model_notes import META_KEY, token_cost
from finecomb.core.study import Study


@dataclass(frozen=True, slots=True)
class ModelCost:
    """Tokens and cost of one language model in a study."""

    annotator: str
    texts: int
    """Number of annotations, including those whose reply could not be parsed, which also cost money."""
    sent: int
    received: int
    cost: float | None
    """Total cost, or None if the cost of any annotation is unknown."""


def model_costs(study: Study) -> list[ModelCost]:
    """Return the cost of each language model whose tokens or costs are known, in the order of the study.

    The cost of an annotation is its `meta.cost` if given, else its tokens at the price in the annotator's settings.
    Repeated calls and replies reused from another run are not included.
    """
    models = []
    for name, price in _token_prices_by_model(study).items():
        metas = [parse_json_object(meta) for meta in study.annotations.filter(annotator=name)["meta"]]
        if any(_token_counts(meta) or "cost" in meta for meta in metas):
            costs = [_annotation_cost(meta, price) for meta in metas]
            paid = [cost for cost in costs if cost is not None]
            sent, received = (sum((_token_counts(meta) or (0, 0))[place] for meta in metas) for place in (0, 1))
            total = sum(paid) if len(paid) == len(metas) else None
            models.append(ModelCost(name, len(metas), sent, received, total))
    return models


def cost_by_annotation(study: Study) -> dict[str, float]:
    """Return the cost of each machine annotation by its ID, omitting unknown costs."""
    prices = _token_prices_by_model(study)
    rows = study.annotations.select("id", "annotator", "meta").iter_rows()
    costs = {id: _annotation_cost(parse_json_object(meta), prices.get(annotator)) for id, annotator, meta in rows}
    return {id: cost for id, cost in costs.items() if cost is not None}


def _token_prices_by_model(study: Study) -> dict[str, tuple[float, float] | None]:
    """Return each language model's prices per million tokens sent and received, or None if no prices are given."""
    prices: dict[str, tuple[float, float] | None] = {}
    for id, meta in study.annotators.filter(kind="llm").select("id", "meta").iter_rows():
        settings = parse_json_object(meta).get("settings")
        pair = settings.get("price") if isinstance(settings, Mapping) else None
        is_given = isinstance(pair, list | tuple) and len(pair) == 2
        prices[id] = (float(pair[0]), float(pair[1])) if pair and is_given else None
    return prices


def _token_counts(meta: Mapping[str, object]) -> tuple[int, int] | None:
    note = meta.get(META_KEY)
    if not isinstance(note, Mapping):
        return None
    sent, received = int(note.get("prompt_tokens") or 0), int(note.get("completion_tokens") or 0)
    return (sent, received) if sent or received else None


def _annotation_cost(meta: Mapping[str, object], price: tuple[float, float] | None) -> float | None:
    cost = meta.get("cost")
    if isinstance(cost, int | float):
        return float(cost)
    tokens = _token_counts(meta)
    return token_cost(price, *tokens) if price and tokens else None
