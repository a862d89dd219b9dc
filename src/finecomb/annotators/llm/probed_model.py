"""A probe of a model's reliability, from what is asked to what it shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from finecomb.annotators.llm.local_models import is_local
from finecomb.annotators.llm.probes import (
    DEFAULT_TEXT_COUNT,
    ProbeVariant,
    find_unread_documents,
    label_as_probe,
    probe_name,
    probe_texts,
    probe_variant,
)
from finecomb.annotators.llm.prompt import PromptTemplate
from finecomb.annotators.llm.run_reports import items_with_runs
from finecomb.annotators.llm.runs import ModelRun, RunPlan, plan_run
from finecomb.core.errors import ParameterError, param
from finecomb.core.estimate import Finding
from finecomb.core.protocol import Protocol
from finecomb.core.records import Document, ModelSettings
from finecomb.core.study import Study
from finecomb.statistics.judges.reliability_probes import (
    OWN_SYSTEM_KEY,
    find_own_system,
    probe_findings,
    self_preference_finding,
)
from finecomb.statistics.judges.text_values import select_people_and_judges


@dataclass(frozen=True)
class ProbedModel:
    """A model of a study that is to be probed."""

    study: Study
    settings: ModelSettings
    protocol: Protocol
    name: str
    template: PromptTemplate | None
    limit: int | None

    @property
    def baseline_variant(self) -> ProbeVariant:
        """What the judge itself is asked."""
        usual = PromptTemplate.for_local_models() if is_local(self.settings.model) else PromptTemplate()
        once = self.settings.model_copy(update={"samples": 1})
        return ProbeVariant(once, self.protocol, self.template or usual)

    def plans(self, probe: str, paraphrase: PromptTemplate | None) -> Iterator[RunPlan]:
        """What is asked: first what the judge has not read yet of the probe's texts, then all of them, changed."""
        texts = probe_texts(self.study.iter_documents(), self.limit or DEFAULT_TEXT_COUNT, self.settings.seed)
        variant = probe_variant(probe, self.baseline_variant, paraphrase)
        if missing := find_unread_documents(texts, self.study.iter_annotations(), self.name, self.protocol.id):
            yield self._plan_variant(self.baseline_variant, missing, self.name)
        if probe != "self":
            yield self._plan_variant(variant, texts, probe_name(self.name, probe))

    def _plan_variant(self, variant: ProbeVariant, texts: Sequence[Document], name: str) -> RunPlan:
        return plan_run(self.study, variant.settings, variant.protocol, texts, name, variant.template)

    def name_clash(self, run_plan: RunPlan) -> str:
        """Why a plan cannot be run under its annotator's name, or nothing."""
        mine = run_plan.annotator(0)
        for annotator in self.study.iter_annotators():
            if annotator.id == mine.id and annotator.kind != "llm":
                return f"annotator {annotator.id!r} is a {annotator.kind} already; name this one with {param('name')}"
            if annotator.id == mine.id and annotator.meta.get("prompt") != mine.meta.get("prompt"):
                return (
                    f"annotator {annotator.id!r} was asked with another prompt before; name this one with"
                    f" {param('name')}"
                )
        return ""

    def record_probe(self, run: ModelRun, probe: str, system: str) -> ModelRun:
        """A run with what its annotators say about the probe."""
        if run.record.name != self.name:
            return label_as_probe(run, self.name, probe)
        if not system:
            return run
        people = tuple(one.model_copy(update={"meta": {**one.meta, OWN_SYSTEM_KEY: system}}) for one in run.annotators)
        return replace(run, annotators=people)

    def effects(self, readings: Sequence[ModelRun], probe: str, named: str) -> list[Finding]:
        """What the probe shows."""
        whole = Study.from_items(items_with_runs(self.study, readings))
        if probe != "self":
            return probe_findings(whole, self.name, only=probe)
        system = named or find_own_system(whole, self.name)
        if not system:
            raise ParameterError(
                f"no text says that {self.name} wrote it; say which system is its own model with"
                f" {param('own', 'NAME')}",
                parameter="own",
            )
        return [self_preference_finding(select_people_and_judges(whole, [self.name]), self.name, system)]
