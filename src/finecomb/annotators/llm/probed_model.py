"""Reliability probes of a model: run plans, annotator names and findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from finecomb.annotators.llm.probes import DEFAULT_TEXT_COUNT, ProbeVariant, build_probe_variant
from finecomb.annotators.llm.prompt import PromptTemplate
from finecomb.annotators.llm.providers import find_provider
from finecomb.annotators.llm.run_reports import merge_runs
from finecomb.annotators.llm.runs import ModelRun, RunPlan, plan_run
from finecomb.core.errors import ParameterError, param
from finecomb.core.protocol import Protocol
from finecomb.core.records import ModelSettings
from finecomb.core.results import Finding
from finecomb.core.study import Study
from finecomb.engine.seeds import seeded_generator
from finecomb.statistics.judges.reliability_probes import (
    OWN_SYSTEM_KEY,
    find_own_system,
    probe_findings,
    self_preference_finding,
)
from finecomb.statistics.judges.text_values import select_people_and_judges


@dataclass(frozen=True)
class ProbedModel:
    """A model to probe, with its study."""

    study: Study
    settings: ModelSettings
    protocol: Protocol
    name: str
    template: PromptTemplate | None
    limit: int | None

    @property
    def baseline_variant(self) -> ProbeVariant:
        """Settings, protocol and prompt of the judge before the probe changes them."""
        template = self.template or PromptTemplate.for_provider(find_provider(self.settings.model))
        return ProbeVariant(self.settings.model_copy(update={"samples": 1}), self.protocol, template)

    def iter_run_plans(self, probe: str, paraphrase: PromptTemplate | None) -> Iterator[RunPlan]:
        """Yield a probe's run plans: first for texts that the judge has not annotated, then for all with the change."""
        every = list(self.study.iter_documents())
        order = seeded_generator(self.settings.seed, "probe", "texts").permutation(len(every))
        texts = [every[row] for row in sorted(order[: self.limit or DEFAULT_TEXT_COUNT])]
        own = (pl.col("annotator") == self.name) & (pl.col("protocol") == self.protocol.id)
        annotated = set(self.study.annotations.filter(own)["document"])
        missing = [document for document in texts if document.id not in annotated]
        baseline = self.baseline_variant
        changed = build_probe_variant(probe, baseline, paraphrase)
        passes = [(baseline, missing, self.name)]
        if probe != "self":
            passes.append((changed, texts, f"{self.name}~{probe}"))
        for variant, documents, name in passes:
            if documents:
                yield plan_run(self.study, variant.settings, variant.protocol, documents, name, variant.template)

    def add_probe_meta(self, run: ModelRun, probe: str, system: str) -> ModelRun:
        """Return a run whose annotators record the probe in their meta."""
        facts = {OWN_SYSTEM_KEY: system} if system else {}
        if run.record.name != self.name:
            facts = {"probe": probe, "probe_of": self.name}
        annotators = (
            annotator.model_copy(update={"meta": {**annotator.meta, **facts}}) for annotator in run.annotators
        )
        return replace(run, annotators=tuple(annotators))

    def probe_findings_of_runs(self, runs: Sequence[ModelRun], probe: str, named: str) -> list[Finding]:
        """Return the findings of the probe."""
        study = Study.from_items(merge_runs(self.study, runs))
        if probe != "self":
            return probe_findings(study, self.name, only=probe)
        system = named or find_own_system(study, self.name)
        if not system:
            raise ParameterError(
                f"cannot tell which texts {self.name} generated; name its system with {param('own', 'NAME')}",
                parameter="own",
            )
        return [self_preference_finding(select_people_and_judges(study, [self.name]), self.name, system)]
