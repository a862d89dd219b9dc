"""Our own extensions pass the conformance checks, and extensions that break a rule do not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import finecomb as fc
from finecomb.annotators.detectors import DETECTORS
from finecomb.annotators.llm.providers import PROVIDERS, CompatibleProvider
from finecomb.core.records import Annotation, Annotator, Document, Segment
from finecomb.core.results import Estimate, Finding, Signature
from finecomb.core.span import Span
from finecomb.core.study import Study, StudyItem
from finecomb.corpora.critics.criticism import fit_critic
from finecomb.corpora.critics.storage import CRITICS, save
from finecomb.formats import FORMATS, Options, doccano
from finecomb.statistics.agreement.registry import AGREEMENT_MEASURES
from finecomb.statistics.measures.annotation_measures import ANNOTATION_MEASURES, IntervalOptions
from finecomb.statistics.registry import STATISTICS, RegisteredStatistic
from finecomb.testing import (
    build_sample_study,
    check_coefficient,
    check_critic,
    check_detector,
    check_format,
    check_interval_coverage,
    check_provider,
    check_statistic,
)
from tests.corpora.critics.test_sections import articles


def some_long(names: list[str], quick: set[str]) -> list[Any]:
    """Return parameters of which only the `quick` ones run in `make test`."""
    return [pytest.param(name, marks=[] if name in quick else pytest.mark.long) for name in names]


# --- formats -----------------------------------------------------------------------------------------------------


def wmt_segments(study: Study) -> Study:
    """Return the study with documents that are named as WMT names segments."""
    items: list[StudyItem] = []
    for item in study.items():
        if isinstance(item, Document):
            number = item.id.removeprefix("text-")
            meta = {"model": "sys", "doc": "doc", "doc_id": "1", "seg_id": number}
            update = {"id": f"sys/doc/{number}", "meta": meta, "context": {"source": "Quelle"}}
            item = item.model_copy(update=update)
        elif isinstance(item, Annotation):
            item = item.model_copy(update={"document": f"sys/doc/{item.document.removeprefix('text-')}"})
        items.append(item)
    return Study.from_items(items)


def pooled_crowd(study: Study) -> Study:
    """Return the study with one pooled annotator and one segment per text, as SNaC releases it."""
    items: list[StudyItem] = []
    for item in study.items():
        if isinstance(item, Document):
            items.append(item.model_copy(update={"segments": (Segment(start=0, end=len(item.text)),)}))
        elif isinstance(item, Annotator):
            items += [Annotator(id="crowd", kind="pooled")] if item.id == "anna" else []
        elif not isinstance(item, Annotation):
            items.append(item)
        elif item.annotator == "anna":
            marks = tuple(mark.model_copy(update={"votes": 1}) for mark in item.marks)
            items.append(item.model_copy(update={"annotator": "crowd", "readers": 3, "marks": marks}))
    return Study.from_items(items)


STUDY_CHANGES = {"snac": pooled_crowd, "wmt-mqm": wmt_segments}
OTHER_FORMATS = {"csabstruct", "model-criticism", "gsml", "thomson-reiter"}
"""Formats of sections without marks, of marks without texts, and of a workbook; their own tests check them."""
EXAMPLES = {
    "rows": '[{"text": "One two three.", "spans": [{"start": 4, "end": 7, "label": "odd", "quote": "two"}]}]',
    "frank": json.dumps([{"hash": "1", "model_name": "m", "article": "A.", "summary": "A cat.", "reference": "B."}]),
    "man": ".TH LS 1\n.SH NAME\nls \\- list\n.SH DESCRIPTION\nLists files.\n",
    "text": "One text.\nAnother.\n",
}
QUICK_FORMATS = {
    "folder",
    "csv",
    "doccano",
    "jsonl",
    "label-studio",
    "prodigy",
    "thresh",
    "snac",
    "text",
    "man",
}


@pytest.mark.parametrize("name", some_long([name for name in FORMATS if name not in OTHER_FORMATS], QUICK_FORMATS))
def test_every_format_passes(name: str, tmp_path: Path) -> None:
    if name in EXAMPLES:
        example = tmp_path / f"example.{'1' if name == 'man' else 'txt' if name == 'text' else 'json'}"
        example.write_text(EXAMPLES[name], encoding="utf-8")
        return check_format(name, example=example)
    study = build_sample_study(FORMATS[name].holds - {"document meta" if name == "wmt-mqm" else ""})
    change = STUDY_CHANGES.get(name)
    study = change(study) if change else study
    options = Options(protocol=study.protocol()) if name in STUDY_CHANGES else None
    return check_format(name, study, options=options)


def utf16_read(path: Path, options: Options) -> Iterator[StudyItem]:
    """Read doccano, but shift the last mark of a text as a reader with offsets in UTF-16 units would."""
    for item in doccano.FORMAT.read(path, options) if doccano.FORMAT.read else ():
        if isinstance(item, Annotation) and len(item.marks) > 2:
            marks = sorted(item.marks, key=lambda mark: mark.spans[0].start)
            span = marks[-1].spans[0]
            moved = marks[-1].model_copy(update={"spans": (Span(span.start - 1, span.end - 1),)})
            item = item.model_copy(update={"marks": (*marks[:-1], moved)})
        yield item


def fragile_read(path: Path, options: Options) -> Iterator[StudyItem]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield Document(id="a", text=json.loads(line)["text"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"read": utf16_read}, "the study that was read is invalid: .* differs from the text"),
        ({"read": lambda path, options: iter(())}, "texts changed"),
        ({"holds": frozenset({"document meta", "mark severity"})}, "declares features that are lost: mark severity"),
        ({"holds": frozenset({"colour"})}, r"unknown features \['colour'\]"),
        ({"write": None, "read": fragile_read}, "pass `example`"),
    ],
)
def test_a_format_that_breaks_a_rule_is_refused(
    change: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FORMATS, "bad", replace(doccano.FORMAT, name="bad", **change))
    with pytest.raises(AssertionError, match=f"^format bad: .*{message}"):
        check_format("bad")


def test_a_format_that_fails_on_a_damaged_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "A"}', encoding="utf-8")
    monkeypatch.setitem(FORMATS, "bad", replace(doccano.FORMAT, name="bad", write=None, read=fragile_read))
    with pytest.raises(AssertionError, match="a damaged file must raise a FinecombError, found JSONDecodeError"):
        check_format("bad", example=tmp_path / "a.jsonl")


# --- statistics --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    some_long(
        [name for name in (*ANNOTATION_MEASURES, *STATISTICS) if name != "count-rating"],
        {"coverage", "severity", "crossed"},
    ),
)
def test_every_statistic_passes(name: str) -> None:
    check_statistic(name)


@pytest.mark.parametrize(
    "name",
    some_long([name for name in AGREEMENT_MEASURES if "gamma" not in name], {"alpha", "f1"}),
)
def test_every_coefficient_passes(name: str) -> None:
    if name.startswith("alpha-") and name.removeprefix("alpha-") in ("ordinal", "interval", "ratio", "binarised"):
        study = rated_study()
        return check_coefficient(name, study, question="coherence", level="document")
    return check_coefficient(name)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in AGREEMENT_MEASURES if "gamma" in name])
def test_every_gamma_passes(name: str) -> None:
    texts = fc.demo(readers=2)
    check_coefficient(name, texts.where("model=comb-small"), is_sampled=True, draws=10)


def rated_study() -> Study:
    """Return three people's ratings of ten texts, some of which differ."""
    protocol = fc.protocol("likert")
    question = protocol.document_questions[0]
    documents = [Document(id=f"d{number}", text=f"Text {number}.") for number in range(10)]
    people = [Annotator(id=name, kind="human") for name in ("a", "b", "c")]
    annotations = [
        Annotation(
            id=f"{document.id}-{person.id}",
            document=document.id,
            annotator=person.id,
            protocol=protocol.id,
            answers={question.name: (number + (shift if number % 3 == 0 else 0)) % 5 + 1},
        )
        for number, document in enumerate(documents)
        for shift, person in enumerate(people)
    ]
    return Study.from_items([protocol, *documents, *people, *annotations])


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("coverage", "measure"),
        ("count", "measure"),
        ("rate-1000", "measure"),
        ("alpha", "agree"),
        ("two-agree", "agree"),
    ],
)
def test_intervals_contain_the_value_of_the_population(name: str, command: Any) -> None:
    assert check_interval_coverage(name, command) > 0.88


def constant_statistic(value: float, why: str = "", low: float = 0.0, high: float = 1.0) -> RegisteredStatistic:
    def run(view: fc.View, options: IntervalOptions) -> list[Finding]:
        estimate = Estimate(value, low, high, Signature.from_fields(statistic="bad"), why)
        return [Finding({"measure": "bad", "label": "any"}, estimate)]

    return RegisteredStatistic(run, IntervalOptions, "A bad statistic", "coverage")


def seeded_statistic() -> RegisteredStatistic:
    def run(view: fc.View, options: IntervalOptions) -> list[Finding]:
        return constant_statistic(options.seed / 10).run(view, options)

    return RegisteredStatistic(run, IntervalOptions, "A bad statistic", "coverage")


@pytest.mark.parametrize(
    ("statistic", "message"),
    [
        (constant_statistic(float("inf")), "the value is infinite"),
        (constant_statistic(0.5, low=1.0, high=0.0), "is reversed"),
        (constant_statistic(float("nan"), "never defined"), "undefined for the whole study"),
        (seeded_statistic(), "the seed must not change a value"),
    ],
)
def test_a_statistic_that_breaks_a_rule_is_refused(
    statistic: RegisteredStatistic, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(STATISTICS, "bad", statistic)
    with pytest.raises(AssertionError, match=message):
        check_statistic("bad")


def test_intervals_that_are_too_narrow_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(view: fc.View, options: IntervalOptions) -> list[Finding]:
        share = len(view.study.marks) / len(view.study.annotations)
        return constant_statistic(share, low=share, high=share).run(view, options)

    monkeypatch.setitem(STATISTICS, "bad", RegisteredStatistic(run, IntervalOptions, "Marks", "coverage"))
    with pytest.raises(AssertionError, match=r"^bad: \d+% of 95% intervals contain the value"):
        check_interval_coverage("bad", population=fc.demo(), texts=6, samples=20)


# --- detectors, critics and providers ----------------------------------------------------------------------------


def word_lengths(text: str) -> list[str]:
    """Return the states of a text for the critic `own`."""
    return ["long" if len(word) > 5 else "short" for word in text.split()]


OWN_OPTIONS = {"function": f"{__name__}:word_lengths", "kind": "markov"}
WITHOUT_TRAINING = ("boxscore", "relations", "rules")


@pytest.mark.parametrize("name", WITHOUT_TRAINING)
def test_detectors_without_training_pass(name: str) -> None:
    check_detector(name)


def test_the_critic_detector_passes(tmp_path: Path) -> None:
    critic = fit_critic("own", articles(0, 40), 0, OWN_OPTIONS)
    object.__setattr__(critic, "usual_surprises", (0.1, 0.2, 0.3))
    save(critic, tmp_path / "critic")
    code = (OWN_OPTIONS["function"],)
    check_detector("critic", articles(1, 3), weights=tmp_path / "critic", code=code, threshold=0.5)


def test_the_other_detectors_must_be_trained_first() -> None:
    for name in set(DETECTORS) - {*WITHOUT_TRAINING, "critic", "words", "silent"}:
        with pytest.raises(fc.FinecombError, match="must be fitted first"):
            check_detector(name)


def test_a_detector_that_raises_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        signature = "detector:failing"

        def __call__(self, document: Document) -> Annotation:
            raise KeyError("data")

    factory = replace(DETECTORS["rules"], name="failing", make=lambda protocol, options: Failing())
    monkeypatch.setitem(DETECTORS, "failing", factory)
    with pytest.raises(AssertionError, match="a problem with a text must not raise an error, found KeyError"):
        check_detector("failing")


@pytest.mark.parametrize("name", some_long(list(CRITICS), {"own"}))
def test_every_critic_passes(name: str) -> None:
    options = OWN_OPTIONS if name == "own" else {}
    check_critic(name, articles(0, 40) if name in ("sections", "own") else list(fc.demo().iter_documents()), **options)


REPLY = {"choices": [{"message": {"content": "Fine."}, "finish_reason": "stop"}]}


def test_the_compatible_provider_passes() -> None:
    check_provider("openai-compatible", REPLY, "Fine.")


def test_a_provider_that_accepts_any_reply_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Careless(CompatibleProvider):
        name = "careless"

        def parse_reply(self, answer: Any) -> Any:
            text = answer["choices"][0]["message"]["content"] if answer and answer.get("choices") else ""
            return super().parse_reply({"choices": [{"text": text}]})

    monkeypatch.setitem(PROVIDERS, "careless", Careless())
    with pytest.raises(AssertionError, match="must not count as a reply"):
        check_provider("careless", REPLY, "Fine.")
