"""What language models cost: the tokens of their replies at the price that their run was given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from finecomb.core.frames import parse_json_object
from finecomb.core.model_notes import META_KEY, token_cost
from finecomb.core.study import Study


@dataclass(frozen=True, slots=True)
class ModelCost:
    """What one language model read and wrote in a study, and what that cost."""

    annotator: str
    texts: int
    """Annotations, also those whose reply could not be read: they were paid."""
    sent: int
    received: int
    cost: float | None
    """None where no price is known."""


def model_costs(study: Study) -> list[ModelCost]:
    """Every language model whose tokens or costs are known, in the order of the study.

    The cost of a text is `meta.cost` of its annotation where somebody wrote it down, else its tokens at the price in
    the annotator's settings. Calls that were repeated or taken over from another run are not known here.
    """
    prices = _token_prices_by_model(study)
    return [cost for name in prices if (cost := _model_cost(study, name, prices[name])) is not None]


def cost_by_annotation(study: Study) -> dict[str, float]:
    """What each annotation of a machine cost, by its id; those of which nothing is known are absent."""
    prices = _token_prices_by_model(study)
    rows = study.annotations.select("id", "annotator", "meta").iter_rows()
    costs = {id: _annotation_cost(parse_json_object(meta), prices.get(annotator)) for id, annotator, meta in rows}
    return {id: cost for id, cost in costs.items() if cost is not None}


def _model_cost(study: Study, name: str, price: tuple[float, float] | None) -> ModelCost | None:
    metas = [parse_json_object(meta) for meta in study.annotations.filter(annotator=name)["meta"]]
    known = [meta for meta in metas if _token_counts(meta) or "cost" in meta]
    if not known:
        return None
    costs = [_annotation_cost(meta, price) for meta in metas]
    paid = [cost for cost in costs if cost is not None]
    sent, received = (sum((_token_counts(meta) or (0, 0))[place] for meta in metas) for place in (0, 1))
    return ModelCost(name, len(metas), sent, received, sum(paid) if len(paid) == len(metas) else None)


def _token_prices_by_model(study: Study) -> dict[str, tuple[float, float] | None]:
    """The price of a million tokens of each language model, sent and received; None where none was named."""
    models = study.annotators.filter(kind="llm").select("id", "meta").iter_rows()
    return {id: _parse_token_price(parse_json_object(meta).get("settings")) for id, meta in models}


def _parse_token_price(settings: object) -> tuple[float, float] | None:
    price = settings.get("price") if isinstance(settings, Mapping) else None
    return (float(price[0]), float(price[1])) if isinstance(price, list | tuple) and len(price) == 2 else None


def _token_counts(meta: Mapping[str, object]) -> tuple[int, int] | None:
    note = meta.get(META_KEY)
    if not isinstance(note, Mapping):
        return None
    sent, received = int(note.get("prompt_tokens") or 0), int(note.get("completion_tokens") or 0)
    return (sent, received) if sent or received else None


def _annotation_cost(meta: Mapping[str, object], price: tuple[float, float] | None) -> float | None:
    written_down = meta.get("cost")
    if isinstance(written_down, int | float):
        return float(written_down)
    tokens = _token_counts(meta)
    return token_cost(price, *tokens) if price and tokens else None
