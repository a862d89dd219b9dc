"""Work that one might not want to count, by the rules of Clark et al. (2021): suggestions with their evidence.

Clark et al., section 2.3, set work aside whose explanations were copied from the task, did not match the rating, did
not follow the instructions, or were short, vague or otherwise not to be interpreted: 18.6% of their participants. They
give no thresholds; ours are the constants below. Nothing here excludes anything: a person decides.

What is looked at are the answers in free text that a protocol requires about a whole text. The rules that go by words
(vague, contradicts, instructions) are for English only.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from finecomb.collection.task_meta import TaskMeta
from finecomb.core.errors import shorten
from finecomb.core.frames import iter_annotations, iter_documents, parse_json_object
from finecomb.core.protocol import Protocol
from finecomb.core.question import Question
from finecomb.core.records import Annotation, Answer, Answers, Document, Mark
from finecomb.core.scales import is_among
from finecomb.core.study import Study
from finecomb.core.tokens import words

Rule = Literal["copied", "too-short", "vague", "contradicts", "instructions", "failed-check"]
RULES: tuple[Rule, ...] = ("copied", "too-short", "vague", "contradicts", "instructions", "failed-check")
PASSAGE_WORD_COUNT = 4
"""Words in a row that make a passage; fewer may be quoted freely."""
MIN_COPIED_SHARE = 0.8
"""Share of an answer's words in such passages from which on it is copied."""
MIN_EXPLANATION_WORDS = 3
"""Words that an explanation needs."""
EXEMPT_QUESTIONS = frozenset({"comment", "correction", "cannot_judge"})
"""Questions whose answers may be as short as they like."""


@dataclass(frozen=True, slots=True)
class ReviewSuggestion:
    """One reason to look at an annotation before it is counted."""

    annotation: str
    annotator: str
    document: str
    rule: Rule
    question: str
    """Whose answer it is about; empty for a check."""
    reason: str
    """In words."""
    evidence: str
    """The words that it is about."""
    kept: bool = False
    """Whether somebody has decided to keep the work in spite of it."""


@dataclass(frozen=True, slots=True)
class WrittenExplanation:
    """One explanation with what it was written about."""

    answer: str
    question: Question
    rated: Answer | None
    """The answer to the question on which this one depends."""
    scale: Question | None
    """That question."""
    sources: tuple[str, ...]
    """What could have been copied: the text, what stands beside it, and what the task says."""


# --- words -------------------------------------------------------------------------------------------------------


def split_normalised_words(text: str) -> list[str]:
    """The words of a text without case and punctuation; `don't` becomes `do not`.

    >>> split_normalised_words("It doesn't rhyme, I think.")
    ['it', 'does', 'not', 'rhyme', 'i', 'think']
    """
    plain = re.sub(r"n['’]t\b", " not", text)
    return [plain[start:end].casefold() for start, end in words(plain) if plain[start].isalnum()]


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


# --- the rules ---------------------------------------------------------------------------------------------------

Objection = tuple[Rule, str, str]
"""Which rule, why, and the words."""


def find_explanation_objections(explanation: WrittenExplanation, english: bool = True) -> Iterator[Objection]:
    """What speaks against one explanation."""
    answer_words = split_normalised_words(explanation.answer)
    if len(answer_words) < MIN_EXPLANATION_WORDS:
        yield "too-short", f"has {_format_count(len(answer_words), 'word')}", explanation.answer
    copied = list(_copied_objections(explanation, answer_words))
    yield from copied
    if english:
        if len(answer_words) >= MIN_EXPLANATION_WORDS and not copied:
            yield from _vague_objections(explanation, answer_words)
        yield from _contradiction_objections(explanation, answer_words)
        yield from _instruction_objections(explanation, answer_words)


def _copied_objections(explanation: WrittenExplanation, answer_words: Sequence[str]) -> Iterator[Objection]:
    for source in explanation.sources:
        inside = copied_word_flags(answer_words, passage_ngrams(source))
        if inside and sum(inside) >= MIN_COPIED_SHARE * len(answer_words):
            yield (
                "copied",
                f"{sum(inside)} of {_format_count(len(answer_words), 'word')} stand so in the task",
                explanation.answer,
            )
            return


@functools.lru_cache(maxsize=10_000)
def passage_ngrams(source: str) -> frozenset[tuple[str, ...]]:
    """Every run of `RUN` words of a text."""
    every = split_normalised_words(source)
    return frozenset(tuple(every[at : at + PASSAGE_WORD_COUNT]) for at in range(len(every) - PASSAGE_WORD_COUNT + 1))


def copied_word_flags(answer_words: Sequence[str], runs: Collection[tuple[str, ...]]) -> list[bool]:
    """For each word of an answer, whether it is in a run of `RUN` words that is among `runs`.

    >>> copied_word_flags("he said the cat sat on it".split(), passage_ngrams("The cat sat on the mat."))
    [False, False, True, True, True, True, False]
    """
    inside = [False] * len(answer_words)
    for at in range(len(answer_words) - PASSAGE_WORD_COUNT + 1):
        if tuple(answer_words[at : at + PASSAGE_WORD_COUNT]) in runs:
            inside[at : at + PASSAGE_WORD_COUNT] = [True] * PASSAGE_WORD_COUNT
    return inside


def _vague_objections(explanation: WrittenExplanation, answer_words: Sequence[str]) -> Iterator[Objection]:
    question_words = {
        *split_normalised_words(explanation.question.ask),
        *(word for title in _option_titles(explanation.scale) for word in split_normalised_words(title)),
    }
    if all(word in _FUNCTION_WORDS or word in _UNINFORMATIVE_WORDS or word in question_words for word in answer_words):
        yield "vague", "names nothing in the text", explanation.answer


def _option_titles(question: Question | None) -> list[str]:
    return [option.title for option in question.options] if question else []


def _contradiction_objections(explanation: WrittenExplanation, answer_words: Sequence[str]) -> Iterator[Objection]:
    rated = (
        next((o.title for o in explanation.scale.options if is_among(explanation.rated, [o.value])), "")
        if explanation.scale
        else ""
    )
    side = _author_named_in_title(split_normalised_words(rated))
    claimed = claimed_author(answer_words)
    if side and claimed and side != claimed:
        yield "contradicts", f"the rating says {rated.lower()!r}, the explanation {claimed!r}", explanation.answer
    elif side == "machine" and _is_no_change_answer(explanation, answer_words):
        yield "contradicts", f"the rating says {rated.lower()!r}, but nothing is to be changed", explanation.answer


def _author_named_in_title(title: Iterable[str]) -> str:
    title_words = set(title)
    return "human" if title_words & _HUMAN_WORDS else "machine" if title_words & _MACHINE_WORDS else ""


def claimed_author(answer_words: Sequence[str]) -> str:
    """Whether somebody says in so many words that a human or a machine wrote it; empty when they say neither or both.

    >>> claimed_author(split_normalised_words("This was clearly written by a machine."))
    'machine'
    >>> claimed_author(split_normalised_words("It sounds more human now."))
    ''
    """
    claims = set()
    for at, word in enumerate(answer_words):
        side = _author_named_in_title([word])
        before = at - 1
        while before >= 0 and answer_words[before] in _FILLER_WORDS:
            before -= 1
        is_claimed = before >= 0 and (
            answer_words[before] in _APPEARANCE_VERBS
            or (answer_words[before] in _AUTHORSHIP_VERBS and "by" in answer_words[before:at])
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


def _instruction_objections(explanation: WrittenExplanation, answer_words: Sequence[str]) -> Iterator[Objection]:
    if _is_no_change_answer(explanation, answer_words):
        yield "instructions", "was asked what to change and says nothing", explanation.answer
    if _LOOKUP_PATTERN.search(explanation.answer):
        yield "instructions", "seems to have looked the text up or asked a program", explanation.answer
    if (
        explanation.answer.strip()
        and explanation.answer.isascii()
        and not any(_is_pronounceable(word) for word in answer_words)
    ):
        yield "instructions", "cannot be read", explanation.answer


def _is_pronounceable(word: str) -> bool:
    return word.isdigit() or (bool(re.search("[aeiouy]", word)) and len(set(word)) > 1) or word in ("a", "i")


def _format_count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}" if number else f"no {thing}s"


# --- a study -----------------------------------------------------------------------------------------------------


def screen_annotations(study: Study) -> list[ReviewSuggestion]:
    """Every suggestion about people's work that counts now, in the order of the annotations."""
    people = study.annotators.filter(pl.col("kind") == "human")["id"]
    work = study.submitted_work().annotations.filter(pl.col("annotator").is_in(people.implode()))
    suggestions = defaultdict(list)
    for suggestion in (*_answer_suggestions(study, work), *_attention_check_suggestions(study)):
        suggestions[suggestion.annotation].append(suggestion)
    return [suggestion for id in work["id"] for suggestion in suggestions[id]]


def _answer_suggestions(study: Study, work: pl.DataFrame) -> Iterator[ReviewSuggestion]:
    questions_of = {id: tuple(explanation_questions(protocol)) for id, protocol in study.protocols.items()}
    answered = work.filter(pl.col("answers").is_not_null())
    wanted = answered.filter(pl.col("protocol").is_in([id for id, questions in questions_of.items() if questions]))
    if wanted.is_empty():
        return
    texts = study.documents.filter(pl.col("id").is_in(wanted["document"].implode()))
    documents = {document_.id: document_ for document_ in iter_documents(texts)}
    repeated = _documents_by_repeated_answer(wanted, questions_of)
    for row in wanted.iter_rows(named=True):
        protocol, answers = study.protocols[row["protocol"]], parse_json_object(row["answers"])
        document = documents.get(row["document"], Document(id=row["document"], text=""))
        for question in questions_of[protocol.id]:
            answer = answers.get(question.name)
            if isinstance(answer, str) and _is_question_asked(question, answers):
                explanation = _build_explanation(protocol, question, answer, answers, document)
                english = protocol.language.partition("-")[0] == "en"
                twice = repeated.get((row["annotator"], _normalised_answer(answer)), [])
                for rule, reason, evidence in (
                    *find_explanation_objections(explanation, english),
                    *_repeated_answer_objections(answer, twice, row["document"]),
                ):
                    yield _build_suggestion(row, rule, question.name, reason, evidence)


def explanation_questions(protocol: Protocol) -> Iterator[Question]:
    """The questions about a whole text that want an answer in words."""
    for question in protocol.document_questions:
        if question.scale_type.prose and question.required and question.name not in EXEMPT_QUESTIONS:
            yield question


def _is_question_asked(question: Question, answers: Answers) -> bool:
    """Not so when the rating was changed after the answer was written."""
    return question.when is None or is_among(answers.get(question.when.question), question.when.among)


def _build_explanation(
    protocol: Protocol, question: Question, answer: str, answers: Answers, document: Document
) -> WrittenExplanation:
    on = question.when.question if question.when else ""
    scale = next((other for other in protocol.document_questions if other.name == on), None)
    sources = (document.text, *document.context.values(), protocol.instructions, *protocol.rules, question.ask)
    return WrittenExplanation(answer, question, answers.get(on), scale, sources)


def _normalised_answer(answer: str) -> str:
    return " ".join(split_normalised_words(answer))


def _documents_by_repeated_answer(
    work: pl.DataFrame, questions_of: dict[str, tuple[Question, ...]]
) -> dict[tuple[str, str], list[str]]:
    """The documents about which somebody wrote the same words, by annotator and words."""
    documents_of_words: dict[tuple[str, str], list[str]] = defaultdict(list)
    for annotator, document, protocol, answers in work.select(
        "annotator", "document", "protocol", "answers"
    ).iter_rows():
        given = parse_json_object(answers)
        for question in questions_of[protocol]:
            if isinstance(answer := given.get(question.name), str) and _is_question_asked(question, given):
                documents_of_words[annotator, _normalised_answer(answer)].append(document)
    return {key: documents for key, documents in documents_of_words.items() if len(documents) > 1}


def _repeated_answer_objections(answer: str, documents: Sequence[str], document: str) -> Iterator[Objection]:
    others = sorted(set(documents) - {document})
    if others and len(split_normalised_words(answer)) >= MIN_EXPLANATION_WORDS:
        yield "instructions", f"the same words as for {shorten(', '.join(others), 60)}", answer


def _build_suggestion(
    row: dict[str, object], rule: Rule, question: str, reason: str, evidence: str
) -> ReviewSuggestion:
    is_kept = rule in TaskMeta.from_meta(parse_json_object(str(row["meta"] or ""))).kept
    id, annotator, document = (str(row[name]) for name in ("id", "annotator", "document"))
    return ReviewSuggestion(id, annotator, document, rule, question, reason, evidence, is_kept)


# --- attention checks --------------------------------------------------------------------------------------------


def attention_check_results(study: Study) -> dict[str, bool]:
    """Whether each annotation of an attention check passed; those without a known answer are not there."""
    return {
        annotation.id: has_passed_attention_check(annotation, gold)
        for annotation, gold in _attention_check_pairs(study)
    }


def _attention_check_pairs(study: Study) -> list[tuple[Annotation, Annotation]]:
    """Everybody's annotations of attention checks beside the gold ones."""
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
    """Whether an attention check was answered as its gold annotation says.

    Every gold mark needs a mark of the same label that meets it, every gold answer the same answer; where gold has no
    marks, there must be none.
    """
    return not list(_find_attention_check_misses(annotation, gold))


def _find_attention_check_misses(annotation: Annotation, gold: Annotation) -> Iterator[str]:
    """What gold says and somebody does not."""
    for mark in gold.marks:
        if not any(_is_matching_mark(mark, other) for other in annotation.marks):
            yield f"{shorten(' … '.join(mark.quotes), 40)!r} was not marked as {mark.label}"
    for name, value in gold.answers.items():
        if annotation.answers.get(name) != value:
            yield f"{name} is {value}, answered {annotation.answers.get(name, 'nothing')}"
    if annotation.marks and not gold.marks:
        yield f"{_format_count(len(annotation.marks), 'mark')} where there is nothing to mark"


def _is_matching_mark(one: Mark, other: Mark) -> bool:
    return one.label == other.label and any(a.intersects(b) for a in one.spans for b in other.spans)


def _attention_check_suggestions(study: Study) -> Iterator[ReviewSuggestion]:
    for annotation, gold in _attention_check_pairs(study):
        if wrong := list(_find_attention_check_misses(annotation, gold)):
            yield ReviewSuggestion(
                annotation.id,
                annotation.annotator,
                annotation.document,
                "failed-check",
                "",
                "an attention check was not answered as it should be",
                "; ".join(wrong),
                "failed-check" in TaskMeta.from_meta(annotation.meta).kept,
            )
