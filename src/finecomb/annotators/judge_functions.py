"""Judges that can be run again, for counterfactual validation: detectors and language models as functions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from finecomb import protocols
from finecomb.annotators.detectors import detectors_by_name
from finecomb.annotators.llm.model_options import build_model_settings
from finecomb.annotators.llm.runs import execute_plan, plan_run
from finecomb.core.errors import FinecombError, ParameterError, did_you_mean, param
from finecomb.core.records import ModelSettings
from finecomb.core.study import Study
from finecomb.statistics.judges.counterfactual_validation import JudgeFunction, collect_validation_texts


def build_judge(
    study: Study, name: str, gold: str, options: Mapping[str, Any], seed: int | None = None, runs: Path | None = None
) -> JudgeFunction:
    """Return a detector made for the study, or a language model that has read every text that validation needs.

    `options` are settings of a language model that replace those in the study; a detector takes none of them.
    """
    if name in detectors_by_name():
        for option in options:
            raise ParameterError(f"{param(option)} is for language models; {name} is a detector", parameter=option)
        return _build_detector(study, name)
    if name in study.settings.models or name.startswith("local:") or "base_url" in options:
        if options.get("samples", 1) != 1:
            raise ParameterError(f"{param('samples')} must be 1: a judge reads each text once", parameter="samples")
        given = {**options, **({} if seed is None else {"seed": seed})}
        settings = build_model_settings(name, given, study.settings.models)
        return _build_model_judge(study, name, gold, settings, runs)
    names = [*detectors_by_name(), *study.settings.models]
    way = f"detectors can, and models with {param('base_url')}"
    raise ParameterError(f"{name!r} cannot be run again from here; {way}{did_you_mean(name, names)}", parameter="judge")


def _build_detector(study: Study, name: str) -> JudgeFunction:
    factory = detectors_by_name()[name]
    versions = [protocol for protocol in study.protocols.values() if protocol.name == factory.protocol]
    return factory.make(versions[-1] if versions else protocols.load(factory.protocol), factory.options())


def _build_model_judge(study: Study, name: str, gold: str, settings: ModelSettings, runs: Path | None) -> JudgeFunction:
    """Send all texts to a language model at once; replies in the folder `runs` are not paid for again."""
    wanted = collect_validation_texts(study, gold)
    protocol = study.protocols[wanted.protocol]
    if settings.shots:
        raise ParameterError(
            f"{name} is shown {settings.shots} gold texts, which tell it the corrections; "
            f"ask it without {param('shots')}",
            parameter="shots",
        )
    settings = settings.model_copy(update={"samples": 1})
    texts = Study.from_items([protocol, *wanted.documents])
    run = execute_plan(plan_run(texts, settings, protocol, name=name), runs)
    annotations = {annotation.document: annotation for annotation in run.annotations if not annotation.excluded}
    missing = [document.id for document in wanted.documents if document.id not in annotations]
    if missing:
        why = next(iter(run.unasked.values()), "its reply could not be read")
        raise FinecombError(
            f"{name} did not read {len(missing)} of {len(wanted.documents)} texts ({missing[0]!r}): {why};"
            " the same command goes on from here"
        )
    return lambda document: annotations[document.id]
