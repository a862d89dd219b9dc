"""Datasheet of a human evaluation, filled from the study.

The questions follow the Human Evaluation Datasheet of Shimorina and Belz (2022) in our own words. A question that the
study cannot answer stays open for an author to answer; nothing is guessed.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import attrgetter
from typing import Literal

import polars as pl

from finecomb.collection.pay import compute_earnings, study_cost_so_far
from finecomb.core.frames import meta_entry, parse_json_object
from finecomb.core.protocol import Protocol
from finecomb.core.results import Estimate
from finecomb.core.study import Study, document_meta_names
from finecomb.core.tokens import count_words
from finecomb.reporting.figures.figure_model import format_count_with_noun
from finecomb.version import signature_version

DatasheetFormat = Literal["markdown", "json", "latex"]
HUMAN_KINDS = ("human", "pooled")
_NO_QUALIFICATION = "No qualification test."
_HUMAN_SYSTEM = "human"  # `meta.model` of texts written by people


@dataclass(frozen=True, slots=True)
class DatasheetField:
    """One question of the datasheet."""

    section: str
    question: str
    answer: str
    """Answer to the question; empty if the study does not contain it."""
    source: str
    """Part of the study that the answer comes from."""


@dataclass(frozen=True, slots=True)
class Datasheet:
    """All questions of a datasheet, answered or open."""

    title: str
    fields: tuple[DatasheetField, ...]

    @property
    def open_fields(self) -> list[DatasheetField]:
        """Questions that an author must answer by hand."""
        return [field for field in self.fields if not field.answer]

    @property
    def filled_share(self) -> float:
        """Share of questions with an answer."""
        return 1 - len(self.open_fields) / len(self.fields)


@dataclass(frozen=True, slots=True)
class DatasheetSource:
    """Inputs of a datasheet."""

    study: Study
    protocol: Protocol | None
    alpha: Estimate | None = None
    """Agreement of people on any mark, if computed."""
    analysis: Sequence[str] = ()
    """Signatures of the reported numbers."""
    licence: str = ""
    """Licence of the texts and annotations."""

    @property
    def work_without_gold(self) -> Study:
        """Submitted work except gold, which is merged from the other annotations."""
        study = self.study.submitted_work()
        judges = study.annotators.filter(pl.col("kind") != "gold")["id"]
        return study.filter_annotations(pl.col("annotator").is_in(judges.implode()))

    @property
    def human_annotators(self) -> pl.DataFrame:
        """Human annotators, including annotators that pool several people."""
        return self.study.annotators.filter(pl.col("kind").is_in(HUMAN_KINDS))


def build_datasheet(evidence: DatasheetSource) -> Datasheet:
    """Answer every question of the datasheet that the study can answer."""
    title = evidence.study.settings.title or "Untitled study"
    sections = (_text_fields, _evaluator_fields, _design_fields, _result_fields)
    return Datasheet(title, tuple(DatasheetField(*row) for rows in sections for row in rows(evidence)))


# --- answers from the study --------------------------------------------------------------------------------------


FieldRow = tuple[str, str, str, str]
"""Section, question, answer and source of a `DatasheetField`."""


def _text_fields(evidence: DatasheetSource) -> list[FieldRow]:
    """Answer the questions on the purpose, the texts and their sampling."""
    protocol, study, section = evidence.protocol, evidence.study, "Texts and systems"
    names = [name for name in document_meta_names(study) if name in _DECODING_PARAMETERS]
    values = {name: sorted(set(study.documents.select(meta_entry(name))[name].drop_nulls())) for name in names}
    inputs = Counter(name for cell in study.documents["context"].drop_nulls() for name in parse_json_object(cell))
    if data := study.documents["data"].drop_nulls().len():
        inputs["structured data"] += data
    lengths = [count_words(text) for text in study.documents["text"]]
    length = f"{min(lengths):,} to {max(lengths):,} words, median {statistics.median(lengths):,.0f}" if lengths else ""
    decoding = "; ".join(f"{name}: {', '.join(present)}" for name, present in values.items() if present)
    annotations = evidence.work_without_gold.annotations
    evaluated = (
        f"{annotations['document'].n_unique():,} of {len(study.documents):,} texts were evaluated, in "
        f"{len(annotations):,} annotations"
    )
    return [
        ("Purpose", "What is the title of the study?", study.settings.title, "settings"),
        ("Purpose", "What does the study measure?", protocol.summary if protocol else "", "protocol"),
        (
            "Purpose",
            "Which method does the study follow?",
            (protocol.source or protocol.title) if protocol else "",
            "protocol",
        ),
        ("Purpose", "Where is the study published, and who is the contact?", "", ""),
        (section, "Which systems were evaluated?", _list_text_counts(_count_texts_by_system(evidence)), "documents"),
        (section, "Which decoding parameters did the systems use?", decoding, "documents"),
        (section, "What input did the systems receive?", _list_text_counts(inputs), "documents"),
        (section, "How long are the texts?", length, "documents"),
        (section, "What language are the texts in?", "", ""),
        ("Sampling", "How many texts were evaluated?", evaluated, "annotations"),
        ("Sampling", "How were the texts selected?", "", ""),
        ("Sampling", "How was the number of texts determined (power, budget)?", "", ""),
    ]


_DECODING_PARAMETERS = ("top_p", "top_k", "temperature", "frequency_penalty", "beam", "seed", "prompt_id", "decoding")


def _list_text_counts(counts: Mapping[str, int]) -> str:
    return "; ".join(f"{name} ({format_count_with_noun(count, 'text')})" for name, count in counts.items())


def _count_texts_by_system(evidence: DatasheetSource) -> dict[str, int]:
    if "model" not in document_meta_names(evidence.study):
        return {}
    counts = Counter(evidence.study.documents.select(meta_entry("model"))["model"].drop_nulls())
    return dict(sorted(counts.items()))


def _evaluator_fields(evidence: DatasheetSource) -> list[FieldRow]:
    study, protocol, people = evidence.study, evidence.protocol, evidence.human_annotators
    active = set(evidence.work_without_gold.annotations["annotator"])
    kinds = Counter(kind for id, kind in study.annotators.select("id", "kind").iter_rows() if id in active)
    platforms = {*people["platform"], study.settings.recruitment.platform} - {"", None}
    pay, hourly = _describe_pay(evidence), ""
    if protocol and pay:
        spent = study_cost_so_far(study.settings, compute_earnings(study, (), protocol))
        hourly = f"Median {study.settings.currency} {spent.per_hour:.2f} per hour" if spent.per_hour else ""
    consent = "Requested before the study starts; the protocol contains the wording."
    answers = [parse_json_object(cell) for cell in people["survey"].drop_nulls()]
    names = ", ".join(sorted({name for survey in answers for name in survey}))
    survey = f"{format_count_with_noun(len(answers), 'person', 'people')} answered a survey on: {names}."
    rows = [
        (
            "How many evaluators of each type took part?",
            "; ".join(f"{count:,} {kind}" for kind, count in kinds.items()),
            "annotators",
        ),
        ("Where were evaluators recruited?", ", ".join(sorted(platforms)), "annotators"),
        ("How were evaluators paid?", pay, "settings"),
        ("What was the hourly pay?", hourly, "annotations"),
        ("How was consent obtained?", consent if protocol and protocol.consent else "", "protocol"),
        ("What is known about the evaluators?", survey if names else "", "annotators"),
        ("Do the evaluators know the authors or the systems?", "", ""),
    ]
    return [("Evaluators", *row) for row in rows]


def _describe_pay(evidence: DatasheetSource) -> str:
    settings = evidence.study.settings
    if settings.price is None and not settings.base_pay:
        return ""
    parts = [f"{settings.currency} {settings.price:.2f} per annotation"] if settings.price is not None else []
    if settings.base_pay:
        parts.append(f"{settings.currency} {settings.base_pay:.2f} base pay")
    if settings.fees:
        parts.append(f"platform fees of {settings.fees:.0%} in addition")
    return "; ".join(parts)


def _design_fields(evidence: DatasheetSource) -> list[FieldRow]:
    """Answer the questions on the training of evaluators and the design."""
    protocol, settings = evidence.protocol, evidence.study.settings
    if protocol is None:
        training = ""
    elif protocol.training is None:
        training = "No training."
    elif "training" in settings.skip:
        training = "No training; the training of the protocol was skipped."
    else:
        count = format_count_with_noun(len(protocol.training.exercises), "exercise")
        training = f"{count} with feedback before the main task."
    qualification = "Was there a qualification test, and how many evaluators passed?"
    balance = f", balanced over {', '.join(settings.strata)}" if settings.strata else ""
    assignment = (
        f"Texts with the fewest annotators first{balance}, ties broken by seed {settings.seed}. "
        "No annotator judges a text twice."
    )
    if settings.offer is None:
        suggestions = "No. Annotators saw no machine annotations."
    else:
        share = f"{settings.offer.blind:.0%} of the texts"
        suggestions = f"Yes. Marks of {settings.offer.annotator} were shown as suggestions, except on {share}."
    times = evidence.study.annotations["submitted"].drop_nulls().to_list()
    dates = f"{min(times):%Y-%m-%d} to {max(times):%Y-%m-%d}" if times else ""
    return [
        ("Training", "How were evaluators trained?", training, "protocol"),
        ("Training", qualification, _describe_qualification(evidence), "annotators"),
        ("Design", "How many evaluators judged each text?", _describe_annotators_per_text(evidence), "annotations"),
        ("Design", "How were texts assigned to evaluators?", assignment, "settings"),
        ("Design", "Did evaluators see machine suggestions?", suggestions, "settings"),
        ("Design", "How long did a text take?", _describe_time_per_text(evidence), "annotations"),
        ("Design", "When were the annotations collected?", dates, "annotations"),
        ("Design", "Which interface was used?", f"Finecomb {signature_version()}", "version"),
    ]


def _describe_qualification(evidence: DatasheetSource) -> str:
    protocol = evidence.protocol
    if protocol is None:
        return ""
    if protocol.qualification is None or "qualification" in evidence.study.settings.skip:
        return _NO_QUALIFICATION
    results = [parse_json_object(cell) for cell in evidence.human_annotators["qualification"].drop_nulls()]
    passed = sum(bool(result.get("passed")) for result in results)
    tried = f"; {passed:,} of {len(results):,} people who took it passed" if results else ""
    return (
        f"A test of {format_count_with_noun(len(protocol.qualification.parts), 'part')} with at most "
        f"{format_count_with_noun(protocol.qualification.attempts, 'attempt')}{tried}."
    )


def _describe_annotators_per_text(evidence: DatasheetSource) -> str:
    annotator_counts = (
        evidence.work_without_gold.annotations.group_by("document")
        .agg(pl.col("annotator").n_unique())["annotator"]
        .to_list()
    )
    if not annotator_counts:
        return ""
    planned = evidence.study.settings.annotators
    aim = f"; {planned} planned" if planned else ""
    fewest, most = min(annotator_counts), max(annotator_counts)
    if fewest == most:
        return f"{format_count_with_noun(most, 'annotator')} per text{aim}"
    return f"{fewest} to {most} annotators per text, median {statistics.median(annotator_counts):g}{aim}"


def _describe_time_per_text(evidence: DatasheetSource) -> str:
    seconds = evidence.work_without_gold.annotations["active_seconds"].drop_nulls().to_list()
    return f"The median active time per text was {statistics.median(seconds):.0f} s." if seconds else ""


def _result_fields(evidence: DatasheetSource) -> list[FieldRow]:
    """Answer the questions on criteria, quality control, analysis, ethics and data."""
    protocol, alpha, checks = evidence.protocol, evidence.alpha, evidence.study.settings.attention_checks
    criteria = scales = instructions = ""
    if protocol:
        labels = ", ".join(label.title or label.name for label in protocol.labels)
        asked = ", ".join(question.name for question in protocol.document_questions)
        named = (("error types", labels), ("questions", asked))
        criteria = "; ".join(f"{name}: {words}" for name, words in named if words)
        questions = [*protocol.questions, *protocol.unit_questions, *protocol.document_questions]
        scales = "; ".join(dict.fromkeys(f"{question.name}: {question.scale}" for question in questions))
        instructions = f"In the protocol {protocol.id}, stored with the study as protocols/{protocol.id}.yaml"
    attention = f"{format_count_with_noun(len(checks), 'hidden text')} with known answers." if checks else "None."
    agreement = f"Krippendorff's alpha on words, all error types together: {alpha.short()}" if alpha else ""
    reported = "Which statistics are reported, with which settings and seeds?"
    content = "the answers to the survey" if protocol and protocol.survey else "no other data about people"
    personal = (
        f"The study contains the annotations and {content}. Platform IDs are stored separately and can be deleted."
    )
    return [
        ("Criteria", "Which criteria were judged?", criteria, "protocol"),
        ("Criteria", "Which response scales were used?", scales, "protocol"),
        ("Criteria", "Where are the full instructions?", instructions, "protocol"),
        ("Quality control", "Which attention checks were used?", attention, "settings"),
        ("Quality control", "What was excluded, and why?", _describe_exclusions(evidence), "annotations"),
        ("Analysis", "What is the inter-annotator agreement?", agreement, "agree"),
        ("Analysis", reported, "; ".join(dict.fromkeys(evidence.analysis)), "signatures"),
        ("Ethics", "Was there an ethics review?", "", ""),
        ("Ethics", "Which personal data are stored?", personal, "study"),
        ("Ethics", "Could the texts harm evaluators?", "", ""),
        ("Data", "What is the licence of the texts and annotations?", evidence.licence, "settings"),
        ("Data", "Where are the texts and annotations published?", "", ""),
    ]


def _describe_exclusions(evidence: DatasheetSource) -> str:
    study = evidence.study
    rows = study.annotations.filter((pl.col("status") == "excluded") | pl.col("excluded").is_not_null())
    people = study.annotators.filter(pl.col("excluded").is_not_null())
    reasons = Counter(
        str(parse_json_object(cell).get("reason", "no reason given"))
        for cell in [*rows["excluded"].drop_nulls(), *people["excluded"].drop_nulls()]
    )
    if rows.is_empty() and people.is_empty():
        return "No annotation or annotator was excluded."
    words = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common(5))
    counts = [
        format_count_with_noun(len(frame), noun)
        for frame, noun in ((rows, "annotation"), (people, "annotator"))
        if len(frame)
    ]
    return " and ".join(counts) + (f": {words}" if words else "")


# --- output formats ----------------------------------------------------------------------------------------------


def render_datasheet_markdown(sheet: Datasheet) -> str:
    """Render a datasheet as Markdown, with the open questions repeated at the end."""
    share = f"{sheet.filled_share:.0%} of the questions are answered from the study."
    lines = [f"# Datasheet: {sheet.title}", "", share, ""]
    for section, fields in groupby(sheet.fields, attrgetter("section")):
        lines += [f"## {section}", ""]
        lines += [f"- **{field.question}** {field.answer or '*open*'}" for field in fields]
        lines.append("")
    lines += ["## Open questions", "", *(f"- {field.question}" for field in sheet.open_fields), ""]
    return "\n".join(lines)


def render_datasheet_latex(sheet: Datasheet) -> str:
    """Render a datasheet as LaTeX for an appendix."""
    lines = [rf"\section*{{Datasheet: {_escape_latex(sheet.title)}}}"]
    for section, fields in groupby(sheet.fields, attrgetter("section")):
        lines += [rf"\subsection*{{{_escape_latex(section)}}}", r"\begin{description}"]
        lines += [
            rf"\item[{_escape_latex(field.question)}] {_escape_latex(field.answer) or _OPEN_ANSWER_LATEX}"
            for field in fields
        ]
        lines.append(r"\end{description}")
    return "\n".join(lines) + "\n"


_OPEN_ANSWER_LATEX = r"\emph{open}"
_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "[": "{[}", "]": "{]}",
}  # fmt: skip


def _escape_latex(text: str) -> str:
    return "".join(_LATEX_ESCAPES.get(character, character) for character in text)


def render_datasheet_json(sheet: Datasheet) -> str:
    """Render a datasheet as one JSON object."""
    return json.dumps(
        {"title": sheet.title, "filled": sheet.filled_share, "fields": [asdict(field) for field in sheet.fields]},
        ensure_ascii=False,
        indent=1,
    )


RENDERER_BY_FORMAT: dict[DatasheetFormat, Callable[[Datasheet], str]] = {
    "markdown": render_datasheet_markdown,
    "json": render_datasheet_json,
    "latex": render_datasheet_latex,
}


def methods_paragraph(evidence: DatasheetSource) -> str:
    """Write a methods paragraph for a paper from the study; unknown facts are omitted."""
    protocol = evidence.protocol
    study = evidence.work_without_gold
    texts, annotators = study.annotations["document"].n_unique(), study.annotations["annotator"].n_unique()
    names = _count_texts_by_system(evidence)
    machines = len(names.keys() - {_HUMAN_SYSTEM})  # human text is not the output of a system
    writers = [format_count_with_noun(machines, "system")] * bool(machines) + ["people"] * (_HUMAN_SYSTEM in names)
    authors = f" by {' and '.join(writers)}" if writers else ""
    method = f" with the {protocol.title} protocol ({protocol.id})" if protocol else ""
    parts = [f"We evaluated {format_count_with_noun(texts, 'text')}{authors}{method}."]
    submitted = f"submitted {format_count_with_noun(len(study.annotations), 'annotation')}"
    per_text = _describe_annotators_per_text(evidence)
    parts.append(
        f"{format_count_with_noun(annotators, 'annotator')} {submitted}{f' ({per_text})' if per_text else ''}."
    )
    if pay := _describe_pay(evidence):
        parts.append(f"The pay was {pay}.")
    answers = (_describe_qualification(evidence), _describe_time_per_text(evidence))
    parts += [answer for answer in answers if answer and answer != _NO_QUALIFICATION]
    exclusions = _describe_exclusions(evidence)
    parts.append(exclusions if exclusions.endswith(".") else f"We excluded {exclusions}.")
    if evidence.alpha and not math.isnan(evidence.alpha.value):
        parts.append(
            f"Inter-annotator agreement on marked words was {evidence.alpha.short(2)} "
            "(Krippendorff's alpha, 95% interval over texts)."
        )
    return " ".join(parts)
