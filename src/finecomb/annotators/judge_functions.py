"""Judge functions for counterfactual validation: detectors and language models that can be run on changed texts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from finecomb import protocols
from finecomb.annotators.detectors import DETECTORS
from finecomb.annotators.llm.endpoint_consent import require_confirmed_endpoints
from finecomb.annotators.llm.model_options import build_model_settings
from finecomb.annotators.llm.providers import find_provider
from finecomb.annotators.llm.runner import ProgressCallback
from finecomb.annotators.llm.runs import execute_plan, plan_run
from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.records import ModelSettings
from finecomb.core.study import Study
from finecomb.statistics.judges.counterfactual_validation import JudgeFunction, collect_validation_texts


def build_judge_function(
    study: Study,
    name: str,
    gold: str,
    options: Mapping[str, Any],
    seed: int | None = None,
    runs: Path | None = None,
    watch: ProgressCallback = lambda state: None,
) -> JudgeFunction:
    """Return the judge: a detector, or a language model that has already annotated every text that validation needs.

    `options` override the language model's settings in the study. Detectors accept no options.
    """
    if name in DETECTORS:
        for option in options:
            raise ParameterError(
                f"{param(option)} applies only to language models; {name} is a detector", parameter=option
            )
        factory = DETECTORS[name]
        versions = [protocol for protocol in study.protocols.values() if protocol.name == factory.protocol]
        return factory.make(versions[-1] if versions else protocols.load(factory.protocol), factory.options())
    if name in study.settings.models or "base_url" in options or find_provider(name).owns_model(name):
        if options.get("samples", 1) != 1:
            raise ParameterError(
                f"{param('samples')} must be 1 for a judge, found {options['samples']}", parameter="samples"
            )
        given = {**options, **({} if seed is None else {"seed": seed})}
        trust_endpoint = given.pop("trust_endpoint", False)
        settings = build_model_settings(name, given, study.settings.models)
        require_confirmed_endpoints([(settings, given)], study.origin, trust_endpoint)
        return _build_model_function(study, name, gold, settings, runs, watch)
    names = [*DETECTORS, *study.settings.models]
    raise ParameterError(
        f"judge {name!r} is not a detector, a model of the study or a model with {param('base_url')}"
        f"{did_you_mean(name, names)}",
        parameter="judge",
    )


def _build_model_function(
    study: Study, name: str, gold: str, settings: ModelSettings, runs: Path | None, watch: ProgressCallback
) -> JudgeFunction:
    """Annotate all texts with a language model in one run. Replies stored in `runs` are not requested again."""
    wanted = collect_validation_texts(study, gold)
    protocol = study.protocols[wanted.protocol]
    if settings.shots:
        raise ParameterError(
            f"{param('shots')} must be 0 for validation, found {settings.shots}; gold examples would show the model the"
            " corrections",
            parameter="shots",
        )
    settings = settings.model_copy(update={"samples": 1})
    texts = Study.from_items([protocol, *wanted.documents])
    run = execute_plan(plan_run(texts, settings, protocol, name=name), runs, watch=watch)
    annotations = {annotation.document: annotation for annotation in run.annotations if not annotation.excluded}
    missing = [document.id for document in wanted.documents if document.id not in annotations]
    if missing:
        unread = [id for id in missing if id not in run.unasked]
        # Unreadable replies are cached, so a new run would not request them again.
        example, why, fix = (
            (unread[0], "its reply could not be read", f"change {param('seed')} or {param('max_tokens')}")
            if unread
            else (missing[0], run.unasked[missing[0]], "run the judge again")
        )
        raise FinecombError(
            f"{name} did not annotate {len(missing)} of {len(wanted.documents)} texts (for example {example!r}: {why});"
            f" {fix}"
        )
    return lambda document: annotations[document.id]
