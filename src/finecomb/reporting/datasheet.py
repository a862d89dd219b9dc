"""The datasheet of a human evaluation: what a reader must know to judge or repeat it, filled from what the study knows.

What it asks follows the human evaluation datasheet of Shimorina and Belz (2022) in substance, in our own words. A field
that the study cannot answer stays a question, so that it is seen and not guessed.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import polars as pl

from finecomb.collection.pay import compute_earnings, study_cost
from finecomb.core.estimate import Estimate
from finecomb.core.frames import meta_entry, parse_json_object
from finecomb.core.protocol import Protocol
from finecomb.core.study import Study
from finecomb.core.tokens import words
from finecomb.statistics.measures.study_counts import document_meta_names
from finecomb.version import __version__

DatasheetFormat = Literal["markdown", "json", "latex"]
HUMAN_KINDS = ("human", "pooled")


@dataclass(frozen=True, slots=True)
class DatasheetField:
    """One question of the datasheet."""

    section: str
    question: str
    answer: str
    """Empty where the study does not know."""
    source: str
    """Where in the study the answer comes from."""


@dataclass(frozen=True, slots=True)
class Datasheet:
    """All questions of the datasheet, answered or open."""

    title: str
    fields: tuple[DatasheetField, ...]

    @property
    def open_fields(self) -> list[DatasheetField]:
        """What somebody has to answer by hand."""
        return [field for field in self.fields if not field.answer]

    @property
    def filled_share(self) -> float:
        """The share of fields that are filled."""
        return 1 - len(self.open_fields) / len(self.fields)


@dataclass(frozen=True, slots=True)
class DatasheetSource:
    """What the datasheet is written from."""

    study: Study
    protocol: Protocol | None
    alpha: Estimate | None = None
    """Agreement of people on any mark, where it was computed."""
    analysis: Sequence[str] = ()
    """Signatures of the numbers that are reported."""
    licence: str = ""
    """Under which licence texts and annotations are shared."""

    @property
    def work_without_gold(self) -> Study:
        """What was handed in and counts, by whoever judged; gold is made from it and is no judge."""
        study = self.study.submitted_work()
        judges = study.annotators.filter(pl.col("kind") != "gold")["id"]
        return study.filter_annotations(pl.col("annotator").is_in(judges.implode()))

    @property
    def human_annotators(self) -> pl.DataFrame:
        """Annotators who are people."""
        return self.study.annotators.filter(pl.col("kind").is_in(HUMAN_KINDS))


AnswerFunction = Callable[[DatasheetSource], str]


def build_datasheet(evidence: DatasheetSource) -> Datasheet:
    """The datasheet of a study."""
    title = evidence.study.settings.title or "Untitled study"
    fields = [
        DatasheetField(section, question, answer(evidence) if answer else "", source)
        for section, question, source, answer in QUESTIONS
    ]
    return Datasheet(title, tuple(fields))


# --- answers -----------------------------------------------------------------------------------------------------


def _answer_from_protocol(read: Callable[[Protocol], str]) -> AnswerFunction:
    return lambda evidence: read(evidence.protocol) if evidence.protocol else ""


def _describe_systems(evidence: DatasheetSource) -> str:
    if "model" not in document_meta_names(evidence.study):
        return ""
    counted = Counter(evidence.study.documents.select(meta_entry("model"))["model"].drop_nulls())
    return "; ".join(f"{name} ({count:,} texts)" for name, count in sorted(counted.items()))


def _describe_decoding(evidence: DatasheetSource) -> str:
    names = [name for name in document_meta_names(evidence.study) if name in _DECODING_PARAMETERS]
    values = {name: sorted(set(evidence.study.documents.select(meta_entry(name))[name].drop_nulls())) for name in names}
    return "; ".join(f"{name}: {', '.join(present)}" for name, present in values.items() if present)


_DECODING_PARAMETERS = ("top_p", "top_k", "temperature", "frequency_penalty", "beam", "seed", "prompt_id", "decoding")


def _describe_text_lengths(evidence: DatasheetSource) -> str:
    lengths = [len(words(text)) for text in evidence.study.documents["text"]]
    if not lengths:
        return ""
    return f"{min(lengths):,} to {max(lengths):,} words, median {statistics.median(lengths):,.0f}"


def _describe_inputs(evidence: DatasheetSource) -> str:
    names = Counter(
        name for cell in evidence.study.documents["context"].drop_nulls() for name in parse_json_object(cell)
    )
    data = evidence.study.documents["data"].drop_nulls().len()
    parts = [f"{name} ({count:,} texts)" for name, count in names.items()]
    return "; ".join([*parts, *([f"structured data ({data:,} texts)"] if data else [])])


def _describe_judged_texts(evidence: DatasheetSource) -> str:
    read = evidence.work_without_gold.annotations["document"].n_unique()
    total, passes = len(evidence.study.documents), len(evidence.work_without_gold.annotations)
    return f"{read:,} of {total:,} texts were judged, {passes:,} times in all"


def _describe_annotators(evidence: DatasheetSource) -> str:
    active = set(evidence.work_without_gold.annotations["annotator"])
    kinds = Counter(kind for id, kind in evidence.study.annotators.select("id", "kind").iter_rows() if id in active)
    return "; ".join(f"{count:,} {kind}" for kind, count in kinds.items())


def _describe_platform(evidence: DatasheetSource) -> str:
    settings = evidence.study.settings.recruitment
    used = sorted({name for name in evidence.human_annotators["platform"] if name} | ({settings.platform} - {""}))
    return ", ".join(used)


def _describe_pay(evidence: DatasheetSource) -> str:
    settings = evidence.study.settings
    if settings.price is None and not settings.base_pay:
        return ""
    parts = [f"{settings.currency} {settings.price:.2f} for each annotation"] if settings.price is not None else []
    if settings.base_pay:
        parts.append(f"{settings.currency} {settings.base_pay:.2f} for taking part")
    if settings.fees:
        parts.append(f"platform fees of {settings.fees:.0%} on top")
    return "; ".join(parts)


def _describe_hourly_pay(evidence: DatasheetSource) -> str:
    if evidence.protocol is None or not _describe_pay(evidence):
        return ""
    spent = study_cost(evidence.study.settings, compute_earnings(evidence.study, (), evidence.protocol))
    return f"{evidence.study.settings.currency} {spent.per_hour:.2f}, median over people" if spent.per_hour else ""


def _describe_consent(evidence: DatasheetSource) -> str:
    if evidence.protocol is None or not evidence.protocol.consent:
        return ""
    return "Asked before anything else; the wording is in the protocol."


def _describe_training(evidence: DatasheetSource) -> str:
    protocol, skipped = evidence.protocol, evidence.study.settings.skip
    if protocol is None or protocol.training is None:
        return "None." if protocol else ""
    if "training" in skipped:
        return "The protocol's training was left out."
    return f"{len(protocol.training.exercises)} exercises with feedback before the work."


def _describe_qualification(evidence: DatasheetSource) -> str:
    protocol = evidence.protocol
    if protocol is None:
        return ""
    if protocol.qualification is None or "qualification" in evidence.study.settings.skip:
        return "None."
    results = [parse_json_object(cell) for cell in evidence.human_annotators["qualification"].drop_nulls()]
    passed = sum(bool(result.get("passed")) for result in results)
    tried = f"; {passed:,} of {len(results):,} who took it passed" if results else ""
    return f"A test of {len(protocol.qualification.parts)} parts, {protocol.qualification.attempts} attempts{tried}."


def _describe_survey(evidence: DatasheetSource) -> str:
    answers = [parse_json_object(cell) for cell in evidence.human_annotators["survey"].drop_nulls()]
    names = sorted({name for survey in answers for name in survey})
    return f"{len(answers):,} people answered: {', '.join(names)}." if names else ""


def _describe_annotators_per_text(evidence: DatasheetSource) -> str:
    readers = (
        evidence.work_without_gold.annotations.group_by("document")
        .agg(pl.col("annotator").n_unique())["annotator"]
        .to_list()
    )
    if not readers:
        return ""
    planned = evidence.study.settings.annotators
    aim = f"; {planned} were planned" if planned else ""
    return f"{min(readers)} to {max(readers)} annotators for each text, median {statistics.median(readers):g}{aim}"


def _describe_assignment(evidence: DatasheetSource) -> str:
    settings = evidence.study.settings
    balance = f", balanced over {', '.join(settings.strata)}" if settings.strata else ""
    return f"Texts with fewest annotators first{balance}, ties by seed {settings.seed}; nobody judges a text twice."


def _describe_time_per_text(evidence: DatasheetSource) -> str:
    seconds = evidence.work_without_gold.annotations["active_seconds"].drop_nulls().to_list()
    return f"Median {statistics.median(seconds):.0f} s at the keyboard for each text." if seconds else ""


def _describe_dates(evidence: DatasheetSource) -> str:
    times = evidence.study.annotations["submitted"].drop_nulls().to_list()
    return f"{min(times):%Y-%m-%d} to {max(times):%Y-%m-%d}" if times else ""


def _describe_machine_suggestions(evidence: DatasheetSource) -> str:
    offer = evidence.study.settings.offer
    if offer is None:
        return "No: annotators saw no machine's marks."
    return f"Marks of {offer.annotator} were offered; {offer.blind:.0%} of the texts were shown without."


def _describe_criteria(protocol: Protocol) -> str:
    labels = ", ".join(label.title or label.name for label in protocol.labels)
    questions = ", ".join(question.name for question in protocol.document_questions)
    return "; ".join(
        part
        for part in (f"kinds of error: {labels}" if labels else "", f"questions: {questions}" if questions else "")
        if part
    )


def _describe_scales(protocol: Protocol) -> str:
    questions = [*protocol.questions, *protocol.unit_questions, *protocol.document_questions]
    parts = [f"{question.name}: {question.scale}" for question in questions]
    return "; ".join(dict.fromkeys(parts))


def _describe_attention_checks(evidence: DatasheetSource) -> str:
    checks = evidence.study.settings.attention_checks
    return f"{len(checks)} hidden texts whose answers are known." if checks else "None."


def _describe_exclusions(evidence: DatasheetSource) -> str:
    study = evidence.study
    rows = study.annotations.filter((pl.col("status") == "excluded") | pl.col("excluded").is_not_null())
    people = study.annotators.filter(pl.col("excluded").is_not_null())
    reasons = Counter(
        str(parse_json_object(cell).get("reason", "no reason given"))
        for cell in [*rows["excluded"].drop_nulls(), *people["excluded"].drop_nulls()]
    )
    if not len(rows) and not len(people):
        return "Nothing was excluded."
    words = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common(5))
    return f"{len(rows):,} annotations and {len(people):,} people" + (f": {words}" if words else "")


def _describe_agreement(evidence: DatasheetSource) -> str:
    alpha = evidence.alpha
    return f"Krippendorff's alpha on words, any kind of error: {alpha.short()}" if alpha else ""


def _describe_statistics(evidence: DatasheetSource) -> str:
    return "; ".join(dict.fromkeys(evidence.analysis))


def _describe_personal_data(evidence: DatasheetSource) -> str:
    has_survey = bool(evidence.protocol and evidence.protocol.survey)
    content = "answers to the survey" if has_survey else "nothing about people but their work"
    return f"The study's files hold {content}; platform ids are kept apart and can be forgotten."


def _describe_licence(evidence: DatasheetSource) -> str:
    return evidence.licence


def _describe_software(evidence: DatasheetSource) -> str:
    return f"Finecomb {__version__}"


def _describe_protocol_file(protocol: Protocol) -> str:
    return f"{protocol.id}, kept with the study as protocols/{protocol.id}.yaml"


QuestionRow = tuple[str, str, str, AnswerFunction | None]
QUESTIONS: tuple[QuestionRow, ...] = (
    ("Purpose", "What is the study called?", "settings", lambda e: e.study.settings.title),
    ("Purpose", "What does it find out?", "protocol", _answer_from_protocol(lambda p: p.summary)),
    ("Purpose", "Which method does it follow?", "protocol", _answer_from_protocol(lambda p: p.source or p.title)),
    ("Purpose", "Where is it published, and who answers questions about it?", "", None),
    ("Texts and systems", "Which systems were judged?", "documents", _describe_systems),
    ("Texts and systems", "With which settings did they write?", "documents", _describe_decoding),
    ("Texts and systems", "What did they get as input?", "documents", _describe_inputs),
    ("Texts and systems", "How long are the texts?", "documents", _describe_text_lengths),
    ("Texts and systems", "In which language are they?", "", None),
    ("Sampling", "How many texts were judged?", "annotations", _describe_judged_texts),
    ("Sampling", "How were the texts chosen from all that there are?", "", None),
    ("Sampling", "How was the number of texts decided (power, budget)?", "", None),
    ("Evaluators", "How many, and of which kind?", "annotators", _describe_annotators),
    ("Evaluators", "Where were they recruited?", "annotators", _describe_platform),
    ("Evaluators", "What were they paid?", "settings", _describe_pay),
    ("Evaluators", "What does that come to in an hour?", "annotations", _describe_hourly_pay),
    ("Evaluators", "How was consent obtained?", "protocol", _describe_consent),
    ("Evaluators", "What is known about them?", "annotators", _describe_survey),
    ("Evaluators", "Do they know the authors or the systems?", "", None),
    ("Training", "How were they trained?", "protocol", _describe_training),
    ("Training", "Did they have to qualify, and who passed?", "annotators", _describe_qualification),
    ("Design", "How many people judged each text?", "annotations", _describe_annotators_per_text),
    ("Design", "How were texts given out?", "settings", _describe_assignment),
    ("Design", "Did machines help?", "settings", _describe_machine_suggestions),
    ("Design", "How long did it take?", "annotations", _describe_time_per_text),
    ("Design", "When was it done?", "annotations", _describe_dates),
    ("Design", "With which interface?", "version", _describe_software),
    ("Criteria", "What was judged?", "protocol", _answer_from_protocol(_describe_criteria)),
    ("Criteria", "On which scales?", "protocol", _answer_from_protocol(_describe_scales)),
    (
        "Criteria",
        "Where are the instructions, word for word?",
        "protocol",
        _answer_from_protocol(_describe_protocol_file),
    ),
    ("Quality control", "Which attention checks were there?", "settings", _describe_attention_checks),
    ("Quality control", "What was excluded, and why?", "annotations", _describe_exclusions),
    ("Analysis", "How far do evaluators agree?", "agree", _describe_agreement),
    ("Analysis", "Which statistics are reported, with which settings and seeds?", "signatures", _describe_statistics),
    ("Ethics", "Was there an ethics review?", "", None),
    ("Ethics", "Which personal data are kept?", "study", _describe_personal_data),
    ("Ethics", "Could the texts harm those who read them?", "", None),
    ("Data", "Under which licence are texts and annotations shared?", "settings", _describe_licence),
    ("Data", "Where are they shared?", "", None),
)


# --- writing -----------------------------------------------------------------------------------------------------


def _group_by_section(fields: Iterable[DatasheetField]) -> Iterator[tuple[str, list[DatasheetField]]]:
    sections: dict[str, list[DatasheetField]] = {}
    for field in fields:
        sections.setdefault(field.section, []).append(field)
    yield from sections.items()


def render_markdown(sheet: Datasheet) -> str:
    """The datasheet as Markdown, open questions listed at the end."""
    lines = [
        f"# Datasheet: {sheet.title}",
        "",
        f"{sheet.filled_share:.0%} of the fields are filled from the study.",
        "",
    ]
    for section, fields in _group_by_section(sheet.fields):
        lines += [f"## {section}", ""]
        lines += [f"- **{field.question}** {field.answer or '*open*'}" for field in fields]
        lines.append("")
    lines += ["## Open questions", "", *(f"- {field.question}" for field in sheet.open_fields), ""]
    return "\n".join(lines)


def render_latex(sheet: Datasheet) -> str:
    """The datasheet as LaTeX, to be included in an appendix."""
    lines = [rf"\section*{{Datasheet: {_escape_latex(sheet.title)}}}"]
    for section, fields in _group_by_section(sheet.fields):
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


def render_json(sheet: Datasheet) -> str:
    """The datasheet as one JSON object."""
    return json.dumps(
        {"title": sheet.title, "filled": sheet.filled_share, "fields": [asdict(field) for field in sheet.fields]},
        ensure_ascii=False,
        indent=1,
    )


RENDERERS: dict[DatasheetFormat, Callable[[Datasheet], str]] = {
    "markdown": render_markdown,
    "json": render_json,
    "latex": render_latex,
}


def methods_paragraph(evidence: DatasheetSource) -> str:
    """A paragraph for the paper, each number from the study; what is not known is left out."""
    protocol = evidence.protocol
    study = evidence.work_without_gold
    texts, readers = study.annotations["document"].n_unique(), study.annotations["annotator"].n_unique()
    parts = [
        f"We judged {texts:,} texts"
        + (f" of {len(_split_answer(_describe_systems(evidence)))} systems" if _describe_systems(evidence) else "")
    ]
    parts[0] += f" with the {protocol.title} protocol ({protocol.id})." if protocol else "."
    parts.append(
        f"{readers:,} annotators made {len(study.annotations):,} annotations "
        f"({_describe_annotators_per_text(evidence)})."
    )
    if _describe_pay(evidence):
        parts.append(f"Annotators were paid {_describe_pay(evidence)}.")
    for answer in (_describe_qualification(evidence), _describe_time_per_text(evidence)):
        if answer and answer != "None.":
            parts.append(answer)
    exclusions = _describe_exclusions(evidence)
    parts.append(exclusions if exclusions.endswith(".") else f"Excluded were {exclusions}.")
    if evidence.alpha and not evidence.alpha.why:
        parts.append(
            f"Agreement on marked words is {evidence.alpha.short(2)} (Krippendorff's alpha, 95% interval over texts)."
        )
    return " ".join(parts)


def _split_answer(answer: str) -> list[str]:
    return [part for part in answer.split("; ") if part]
