"""Screening by the rules of Clark et al. (2021): suggested exclusions with their evidence.

Clark et al., section 2.3, excluded annotations whose explanations were copied from the task, did not match the rating,
did not follow the instructions, or were short, vague or otherwise not interpretable: 18.6% of their participants. They
give no thresholds; Finecomb uses the constants below. Nothing is excluded automatically; a researcher decides.

The rules apply to required free-text answers about a whole text. The rules that depend on words (vague, contradicts,
instructions) apply to English only.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from finecomb.collection.task_meta import TaskMeta
from finecomb.core.errors import shorten
from finecomb.core.frames import iter_annotations, iter_documents, parse_json_object
from finecomb.core.question import Question
from finecomb.core.records import Annotation, Answer, Answers, Document
from finecomb.core.scales import is_among
from finecomb.core.study import Study
from finecomb.core.tokens import word_offsets

Rule = Literal["copied", "too-short", "vague", "contradicts", "instructions", "failed-check"]
RULES: tuple[Rule, ...] = ("copied", "too-short", "vague", "contradicts", "instructions", "failed-check")
PASSAGE_NGRAM_SIZE = 4
"""Number of consecutive words that count as a passage. Shorter quotations are allowed."""
MIN_COPIED_SHARE = 0.8
"""Minimum share of an answer's words in copied passages for the answer to count as copied."""
MIN_EXPLANATION_WORDS = 3
"""Minimum number of words in an explanation."""
EXEMPT_QUESTIONS = frozenset({"comment", "correction", "cannot_judge"})
"""Questions whose answers may have any length."""


@dataclass(frozen=True, slots=True)
class ReviewSuggestion:
    """Suggestion to review an annotation before it is counted."""

    annotation: str
    annotator: str
    document: str
    rule: Rule
    question: str
    """Question whose answer led to the suggestion; empty for an attention check."""
    reason: str
    """Reason for the suggestion, as a sentence."""
    evidence: str
    """Answer or attention check result that led to the suggestion."""
    kept: bool = False
    """True when a researcher has decided to keep the annotation."""


@dataclass(frozen=True, slots=True)
class WrittenExplanation:
    """Written explanation, with the task for which it was written."""

    answer: str
    question: Question
    rated: Answer | None
    """Answer to the rating question on which this question depends."""
    scale: Question | None
    """Rating question on which this question depends."""
    sources: tuple[str, ...]
    """Texts from which the answer could be copied: the document, its contexts and the wording of the task."""


# --- words -------------------------------------------------------------------------------------------------------


def split_normalised_words(text: str) -> list[str]:
    """Split a text into lower-case words without punctuation; `don't` becomes `do not`.

    >>> split_normalised_words("It doesn't rhyme, I think.")
    ['it', 'does', 'not', 'rhyme', 'i', 'think']
    """
    plain = re.sub(r"n['’]t\b", " not", text)
    return [plain[start:end].casefold() for start, end in word_offsets(plain) if plain[start].isalnum()]


_FUNCTION_WORDS = frozenset(
    "a an and are as at be because been but by can could did do does for from had has have he her his how i if in "
    "into is it its just me more most my no not of on or our she should so some such than that the their them "
    "there these they this those to too us very was we well were what when where which who why will with would "
    "you your am being really quite rather also only even all any both each other s t re ve ll d m".split()
)
_UNINFORMATIVE_WORDS = frozenset(
    "text texts story stories article articles news recipe recipes passage paragraph writing written write writes "
    "wrote writer author human humans person people machine machines computer computers ai bot robot generated "
    "made created rating rate rated answer answers option choose chose chosen selected select choice definitely "
    "possibly probably maybe sure certain clearly obviously think thought feel feels felt believe guess seem "
    "seems seemed look looks looked sound sounds sounded read reads reading like way something thing things good "
    "nice great fine ok okay best better bad interesting perfect natural normal yes reason opinion know "
    "understand make makes nothing none n na".split()
)
_HUMAN_WORDS = frozenset("human humans person people".split())
_MACHINE_WORDS = frozenset("machine machines computer computers ai bot bots robot robots algorithm gpt chatgpt".split())
_AUTHORSHIP_VERBS = frozenset("written wrote created generated made produced authored".split())
_APPEARANCE_VERBS = frozenset("is was seems looks sounds reads feels".split())
_FILLER_WORDS = frozenset("a an the by some definitely clearly obviously probably certainly possibly like very".split())
_NEGATION_WORDS = frozenset(
    "not no never nothing if could would more as rather instead than unless without nor neither".split()
)
_LOOKUP_PATTERN = re.compile(
    r"https?://|www\.|\b(googled|gptzero|chatgpt (said|says)|ai detector|looked it up)\b", re.I
)
_NO_CHANGE_WORDS = frozenset(
    "nothing none no not any anything change changes changed changing needed needs need to i would do it is the "
    "text story as way leave keep same fine good ok perfect really think at all here n a na".split()
)
_NOTHING_WORDS = frozenset("nothing none no not fine same perfect na keep leave".split())


# --- rules -------------------------------------------------------------------------------------------------------

Objection = tuple[Rule, str, str]
"""Screening rule, the reason for an objection, and the evidence."""


def find_explanation_objections(explanation: WrittenExplanation, english: bool = True) -> Iterator[Objection]:
    """Yield the objections to one explanation."""
    answer_words = split_normalised_words(explanation.answer)
    if len(answer_words) < MIN_EXPLANATION_WORDS:
        yield "too-short", f"has {_format_count(len(answer_words), 'word')}", explanation.answer
    copied = list(_copied_objections(explanation, answer_words))
    yield from copied
    if english:
        if len(answer_words) >= MIN_EXPLANATION_WORDS and not copied:
            question_words = {
                *split_normalised_words(explanation.question.ask),
                *(
                    word
                    for title in ([option.title for option in explanation.scale.options] if explanation.scale else [])
                    for word in split_normalised_words(title)
                ),
            }
            if all(
                word in _FUNCTION_WORDS or word in _UNINFORMATIVE_WORDS or word in question_words
                for word in answer_words
            ):
                yield "vague", "does not mention anything specific to the text", explanation.answer
        yield from _contradiction_objections(explanation, answer_words)
        if _is_no_change_answer(explanation, answer_words):
            yield "instructions", "does not say what to change", explanation.answer
        if _LOOKUP_PATTERN.search(explanation.answer):
            yield (
                "instructions",
                "suggests that the annotator searched for the text or used a detector",
                explanation.answer,
            )
        if (
            explanation.answer.strip()
            and explanation.answer.isascii()
            and not any(
                (word.isdigit() or (bool(re.search("[aeiouy]", word)) and len(set(word)) > 1) or word in ("a", "i"))
                for word in answer_words
            )
        ):
            yield "instructions", "is not readable", explanation.answer


def _copied_objections(explanation: WrittenExplanation, answer_words: Sequence[str]) -> Iterator[Objection]:
    for source in explanation.sources:
        inside = copied_word_flags(answer_words, passage_ngrams(source))
        if inside and sum(inside) >= MIN_COPIED_SHARE * len(answer_words):
            yield (
                "copied",
                f"{sum(inside)} of {_format_count(len(answer_words), 'word')} are copied from the task",
                explanation.answer,
            )
            return


@functools.lru_cache(maxsize=10_000)
def passage_ngrams(source: str) -> frozenset[tuple[str, ...]]:
    """Return all passages of `PASSAGE_NGRAM_SIZE` consecutive words in a text."""
    words_of_source = split_normalised_words(source)
    return frozenset(
        tuple(words_of_source[start : start + PASSAGE_NGRAM_SIZE])
        for start in range(len(words_of_source) - PASSAGE_NGRAM_SIZE + 1)
    )


def copied_word_flags(answer_words: Sequence[str], runs: Collection[tuple[str, ...]]) -> list[bool]:
    """Return, for each word of an answer, whether it is part of a copied passage.

    >>> copied_word_flags("he said the cat sat on it".split(), passage_ngrams("The cat sat on the mat."))
    [False, False, True, True, True, True, False]
    """
    inside = [False] * len(answer_words)
    for start in range(len(answer_words) - PASSAGE_NGRAM_SIZE + 1):
        if tuple(answer_words[start : start + PASSAGE_NGRAM_SIZE]) in runs:
            inside[start : start + PASSAGE_NGRAM_SIZE] = [True] * PASSAGE_NGRAM_SIZE
    return inside


def _contradiction_objections(explanation: WrittenExplanation, answer_words: Sequence[str]) -> Iterator[Objection]:
    rated = (
        next((o.title for o in explanation.scale.options if is_among(explanation.rated, [o.value])), "")
        if explanation.scale
        else ""
    )
    side = _author_named_in_title(split_normalised_words(rated))
    claimed = claimed_author(answer_words)
    if side and claimed and side != claimed:
        yield (
            "contradicts",
            f"the rating is {rated.lower()!r}, but the explanation says {claimed!r}",
            explanation.answer,
        )
    elif side == "machine" and _is_no_change_answer(explanation, answer_words):
        yield (
            "contradicts",
            f"the rating is {rated.lower()!r}, but the explanation suggests no change",
            explanation.answer,
        )


def _author_named_in_title(title: Iterable[str]) -> str:
    title_words = set(title)
    return "human" if title_words & _HUMAN_WORDS else "machine" if title_words & _MACHINE_WORDS else ""


def claimed_author(answer_words: Sequence[str]) -> str:
    """Return the author that an answer explicitly names, `human` or `machine`; empty when it names neither or both.

    >>> claimed_author(split_normalised_words("This was clearly written by a machine."))
    'machine'
    >>> claimed_author(split_normalised_words("It sounds more human now."))
    ''
    """
    claims = set()
    for index, word in enumerate(answer_words):
        side = _author_named_in_title([word])
        before = index - 1
        while before >= 0 and answer_words[before] in _FILLER_WORDS:
            before -= 1
        is_claimed = before >= 0 and (
            answer_words[before] in _APPEARANCE_VERBS
            or (answer_words[before] in _AUTHORSHIP_VERBS and "by" in answer_words[before:index])
        )
        if side and is_claimed and not _NEGATION_WORDS & set(answer_words[: before + 1]):
            claims.add(side)
    return claims.pop() if len(claims) == 1 else ""


def _is_no_change_answer(explanation: WrittenExplanation, answer_words: Sequence[str]) -> bool:
    return (
        explanation.question.name == "change"
        and set(answer_words) <= _NO_CHANGE_WORDS
        and bool(set(answer_words) & _NOTHING_WORDS)
    )


def _format_count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}" if number else f"no {thing}s"


# --- suggestions for a study -------------------------------------------------------------------------------------


def screen_annotations(study: Study) -> list[ReviewSuggestion]:
    """Return all suggested exclusions of submitted human work, in the order of the annotations."""
    people = study.annotators.filter(pl.col("kind") == "human")["id"]
    work = study.submitted_work().annotations.filter(pl.col("annotator").is_in(people.implode()))
    suggestions = defaultdict(list)
    for suggestion in _answer_suggestions(study, work):
        suggestions[suggestion.annotation].append(suggestion)
    for annotation, gold in _attention_check_pairs(study):
        if wrong := list(_describe_attention_check_misses(annotation, gold)):
            suggestions[annotation.id].append(
                ReviewSuggestion(
                    annotation.id,
                    annotation.annotator,
                    annotation.document,
                    "failed-check",
                    "",
                    "failed an attention check",
                    "; ".join(wrong),
                    "failed-check" in TaskMeta.from_meta(annotation.meta).kept,
                )
            )
    return [suggestion for id in work["id"] for suggestion in suggestions[id]]


def _answer_suggestions(study: Study, work: pl.DataFrame) -> Iterator[ReviewSuggestion]:
    """Yield suggestions for required free-text answers about a whole text."""
    questions_of = {
        id: [
            question
            for question in protocol.document_questions
            if question.scale_type.prose and question.required and question.name not in EXEMPT_QUESTIONS
        ]
        for id, protocol in study.protocols.items()
    }
    answered = work.filter(pl.col("answers").is_not_null())
    wanted = answered.filter(pl.col("protocol").is_in([id for id, questions in questions_of.items() if questions]))
    if wanted.is_empty():
        return
    texts = study.documents.filter(pl.col("id").is_in(wanted["document"].implode()))
    documents = {document.id: document for document in iter_documents(texts)}
    repeated = _documents_by_repeated_answer(wanted, questions_of)
    for row in wanted.iter_rows(named=True):
        protocol, answers = study.protocols[row["protocol"]], parse_json_object(row["answers"])
        kept = TaskMeta.from_meta(parse_json_object(row["meta"] or "")).kept
        document = documents.get(row["document"], Document(id=row["document"], text=""))
        for question in questions_of[protocol.id]:
            answer = answers.get(question.name)
            if isinstance(answer, str) and _is_question_asked(question, answers):
                on = question.when.question if question.when else ""
                scale = next((other for other in protocol.document_questions if other.name == on), None)
                sources = (
                    document.text,
                    *document.context.values(),
                    protocol.instructions,
                    *protocol.rules,
                    question.ask,
                )
                explanation = WrittenExplanation(answer, question, answers.get(on), scale, sources)
                english = protocol.language.partition("-")[0] == "en"
                objections = list(find_explanation_objections(explanation, english))
                twice = repeated.get((row["annotator"], _normalised_answer(answer)), [])
                others = sorted(set(twice) - {row["document"]})
                if others and len(split_normalised_words(answer)) >= MIN_EXPLANATION_WORDS:
                    reason = f"repeats the answer about {shorten(', '.join(others), 60)}"
                    objections.append(("instructions", reason, answer))
                who = (row["id"], row["annotator"], row["document"])
                for rule, reason, evidence in objections:
                    yield ReviewSuggestion(*who, rule, question.name, reason, evidence, rule in kept)


def _is_question_asked(question: Question, answers: Answers) -> bool:
    """Return whether a question applies. A question stops applying when the rating that triggered it is changed."""
    return question.when is None or is_among(answers.get(question.when.question), question.when.among)


def _normalised_answer(answer: str) -> str:
    return " ".join(split_normalised_words(answer))


def _documents_by_repeated_answer(
    work: pl.DataFrame, questions_of: Mapping[str, Sequence[Question]]
) -> dict[tuple[str, str], list[str]]:
    """Return the documents to which an annotator gave identical answers, by annotator and normalised answer."""
    documents_of_words: dict[tuple[str, str], list[str]] = defaultdict(list)
    for annotator, document, protocol, answers in work.select(
        "annotator", "document", "protocol", "answers"
    ).iter_rows():
        given = parse_json_object(answers)
        for question in questions_of[protocol]:
            if isinstance(answer := given.get(question.name), str) and _is_question_asked(question, given):
                documents_of_words[annotator, _normalised_answer(answer)].append(document)
    return {key: documents for key, documents in documents_of_words.items() if len(documents) > 1}


# --- attention checks --------------------------------------------------------------------------------------------


def attention_check_results(study: Study) -> dict[str, bool]:
    """Return whether each annotation of an attention check passed, by its ID. Checks without gold are omitted."""
    return {
        annotation.id: has_passed_attention_check(annotation, gold)
        for annotation, gold in _attention_check_pairs(study)
    }


def _attention_check_pairs(study: Study) -> list[tuple[Annotation, Annotation]]:
    """Return each human annotation of an attention check, paired with the gold annotation."""
    kinds: dict[str, str] = dict(study.annotators.select("id", "kind").iter_rows())
    on_checks = pl.col("document").is_in(list(study.settings.attention_checks))
    only = study.filter_annotations(on_checks & (pl.col("status") != "draft") & (pl.col("phase") == "work"))
    annotations = list(iter_annotations(only.annotations, only.marks, only.units))
    gold = {annotation.document: annotation for annotation in annotations if kinds[annotation.annotator] == "gold"}
    return [
        (annotation, gold[annotation.document])
        for annotation in annotations
        if kinds[annotation.annotator] == "human" and annotation.document in gold
    ]


def has_passed_attention_check(annotation: Annotation, gold: Annotation) -> bool:
    """Return whether an attention check was answered as in its gold annotation.

    Each gold mark needs an overlapping mark with the same label, and each question the same answer as in gold. When
    gold has no marks, the annotation must have none.
    """
    return not list(_describe_attention_check_misses(annotation, gold))


def _describe_attention_check_misses(annotation: Annotation, gold: Annotation) -> Iterator[str]:
    """Yield a description of each difference between an attention check's annotation and gold."""
    for mark in gold.marks:
        if not any(
            (mark.label == other.label and any(a.intersects(b) for a in mark.spans for b in other.spans))
            for other in annotation.marks
        ):
            yield f"{shorten(' … '.join(mark.quotes), 40)!r} was not marked as {mark.label}"
    for name, value in gold.answers.items():
        if annotation.answers.get(name) != value:
            yield f"{name}: expected {value}, found {annotation.answers.get(name, 'no answer')}"
    if annotation.marks and not gold.marks:
        yield f"{_format_count(len(annotation.marks), 'mark')} in a text without errors"
