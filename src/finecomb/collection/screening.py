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

from finecomb.collection.task_meta import Circumstances
from finecomb.core.errors import shorten
from finecomb.core.frames import annotations_of, documents_of, entries
from finecomb.core.protocol import Protocol
from finecomb.core.question import Question
from finecomb.core.records import Annotation, Answer, Answers, Document, Mark
from finecomb.core.scales import among
from finecomb.core.study import Study
from finecomb.core.tokens import words

Rule = Literal["copied", "too-short", "vague", "contradicts", "instructions", "failed-check"]
RULES: tuple[Rule, ...] = ("copied", "too-short", "vague", "contradicts", "instructions", "failed-check")
RUN = 4
"""Words in a row that make a passage; fewer may be quoted freely."""
SHARE = 0.8
"""Share of an answer's words in such passages from which on it is copied."""
LEAST = 3
"""Words that an explanation needs."""
NOT_EXPLANATIONS = frozenset({"comment", "correction", "cannot_judge"})
"""Questions whose answers may be as short as they like."""


@dataclass(frozen=True, slots=True)
class Suggestion:
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
class Explanation:
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


def folded(text: str) -> list[str]:
    """The words of a text without case and punctuation; `don't` becomes `do not`.

    >>> folded("It doesn't rhyme, I think.")
    ['it', 'does', 'not', 'rhyme', 'i', 'think']
    """
    plain = re.sub(r"n['’]t\b", " not", text)
    return [plain[start:end].casefold() for start, end in words(plain) if plain[start].isalnum()]


_FUNCTION = frozenset(
    "a an and are as at be because been but by can could did do does for from had has have he her his how i if in "
    "into is it its just me more most my no not of on or our she should so some such than that the their them "
    "there these they this those to too us very was we well were what when where which who why will with would "
    "you your am being really quite rather also only even all any both each other s t re ve ll d m".split()
)
_SAYS_NOTHING = frozenset(
    "text texts story stories article articles news recipe recipes passage paragraph writing written write writes "
    "wrote writer author human humans person people machine machines computer computers ai bot robot generated "
    "made created rating rate rated answer answers option choose chose chosen selected select choice definitely "
    "possibly probably maybe sure certain clearly obviously think thought feel feels felt believe guess seem "
    "seems seemed look looks looked sound sounds sounded read reads reading like way something thing things good "
    "nice great fine ok okay best better bad interesting perfect natural normal yes reason opinion know "
    "understand make makes nothing none n na".split()
)
_HUMAN = frozenset("human humans person people".split())
_MACHINE = frozenset("machine machines computer computers ai bot bots robot robots algorithm gpt chatgpt".split())
_MADE = frozenset("written wrote created generated made produced authored".split())
_SEEMS = frozenset("is was seems looks sounds reads feels".split())
_FILLERS = frozenset("a an the by some definitely clearly obviously probably certainly possibly like very".split())
_TURNS = frozenset("not no never nothing if could would more as rather instead than unless without nor neither".split())
_LOOKED_UP = re.compile(r"https?://|www\.|\b(googled|gptzero|chatgpt (said|says)|ai detector|looked it up)\b", re.I)
_NO_CHANGE = frozenset(
    "nothing none no not any anything change changes changed changing needed needs need to i would do it is the "
    "text story as way leave keep same fine good ok perfect really think at all here n a na".split()
)
_NOTHING = frozenset("nothing none no not fine same perfect na keep leave".split())


# --- the rules ---------------------------------------------------------------------------------------------------

Objection = tuple[Rule, str, str]
"""Which rule, why, and the words."""


def explained(explanation: Explanation, english: bool = True) -> Iterator[Objection]:
    """What speaks against one explanation."""
    answer_words = folded(explanation.answer)
    if len(answer_words) < LEAST:
        yield "too-short", f"has {_counted(len(answer_words), 'word')}", explanation.answer
    copied = list(_copied(explanation, answer_words))
    yield from copied
    if english:
        if len(answer_words) >= LEAST and not copied:
            yield from _vague(explanation, answer_words)
        yield from _contradicts(explanation, answer_words)
        yield from _instructions(explanation, answer_words)


def _copied(explanation: Explanation, answer_words: Sequence[str]) -> Iterator[Objection]:
    for source in explanation.sources:
        inside = in_passages(answer_words, passages(source))
        if inside and sum(inside) >= SHARE * len(answer_words):
            yield (
                "copied",
                f"{sum(inside)} of {_counted(len(answer_words), 'word')} stand so in the task",
                explanation.answer,
            )
            return


@functools.lru_cache(maxsize=10_000)
def passages(source: str) -> frozenset[tuple[str, ...]]:
    """Every run of `RUN` words of a text."""
    every = folded(source)
    return frozenset(tuple(every[at : at + RUN]) for at in range(len(every) - RUN + 1))


def in_passages(answer_words: Sequence[str], runs: Collection[tuple[str, ...]]) -> list[bool]:
    """For each word of an answer, whether it is in a run of `RUN` words that is among `runs`.

    >>> in_passages("he said the cat sat on it".split(), passages("The cat sat on the mat."))
    [False, False, True, True, True, True, False]
    """
    inside = [False] * len(answer_words)
    for at in range(len(answer_words) - RUN + 1):
        if tuple(answer_words[at : at + RUN]) in runs:
            inside[at : at + RUN] = [True] * RUN
    return inside


def _vague(explanation: Explanation, answer_words: Sequence[str]) -> Iterator[Objection]:
    question_words = {
        *folded(explanation.question.ask),
        *(word for title in _titles(explanation.scale) for word in folded(title)),
    }
    if all(word in _FUNCTION or word in _SAYS_NOTHING or word in question_words for word in answer_words):
        yield "vague", "names nothing in the text", explanation.answer


def _titles(question: Question | None) -> list[str]:
    return [option.title for option in question.options] if question else []


def _contradicts(explanation: Explanation, answer_words: Sequence[str]) -> Iterator[Objection]:
    rated = (
        next((o.title for o in explanation.scale.options if among(explanation.rated, [o.value])), "")
        if explanation.scale
        else ""
    )
    side = _side(folded(rated))
    claimed = claim(answer_words)
    if side and claimed and side != claimed:
        yield "contradicts", f"the rating says {rated.lower()!r}, the explanation {claimed!r}", explanation.answer
    elif side == "machine" and _changes_nothing(explanation, answer_words):
        yield "contradicts", f"the rating says {rated.lower()!r}, but nothing is to be changed", explanation.answer


def _side(title: Iterable[str]) -> str:
    title_words = set(title)
    return "human" if title_words & _HUMAN else "machine" if title_words & _MACHINE else ""


def claim(answer_words: Sequence[str]) -> str:
    """Whether somebody says in so many words that a human or a machine wrote it; empty when they say neither or both.

    >>> claim(folded("This was clearly written by a machine.")), claim(folded("It sounds more human now."))
    ('machine', '')
    """
    claims = set()
    for at, word in enumerate(answer_words):
        side = _side([word])
        before = at - 1
        while before >= 0 and answer_words[before] in _FILLERS:
            before -= 1
        is_claimed = before >= 0 and (
            answer_words[before] in _SEEMS or (answer_words[before] in _MADE and "by" in answer_words[before:at])
        )
        if side and is_claimed and not _TURNS & set(answer_words[: before + 1]):
            claims.add(side)
    return claims.pop() if len(claims) == 1 else ""


def _changes_nothing(explanation: Explanation, answer_words: Sequence[str]) -> bool:
    return (
        explanation.question.name == "change" and set(answer_words) <= _NO_CHANGE and bool(set(answer_words) & _NOTHING)
    )


def _instructions(explanation: Explanation, answer_words: Sequence[str]) -> Iterator[Objection]:
    if _changes_nothing(explanation, answer_words):
        yield "instructions", "was asked what to change and says nothing", explanation.answer
    if _LOOKED_UP.search(explanation.answer):
        yield "instructions", "seems to have looked the text up or asked a program", explanation.answer
    if (
        explanation.answer.strip()
        and explanation.answer.isascii()
        and not any(_can_be_said(word) for word in answer_words)
    ):
        yield "instructions", "cannot be read", explanation.answer


def _can_be_said(word: str) -> bool:
    return word.isdigit() or (bool(re.search("[aeiouy]", word)) and len(set(word)) > 1) or word in ("a", "i")


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}" if number else f"no {thing}s"


# --- a study -----------------------------------------------------------------------------------------------------


def screen(study: Study) -> list[Suggestion]:
    """Every suggestion about people's work that counts now, in the order of the annotations."""
    people = study.annotators.filter(pl.col("kind") == "human")["id"]
    work = study.work().annotations.filter(pl.col("annotator").is_in(people.implode()))
    suggestions = defaultdict(list)
    for suggestion in (*_of_answers(study, work), *_of_checks(study)):
        suggestions[suggestion.annotation].append(suggestion)
    return [suggestion for id in work["id"] for suggestion in suggestions[id]]


def _of_answers(study: Study, work: pl.DataFrame) -> Iterator[Suggestion]:
    questions_of = {id: tuple(explanations(protocol)) for id, protocol in study.protocols.items()}
    answered = work.filter(pl.col("answers").is_not_null())
    wanted = answered.filter(pl.col("protocol").is_in([id for id, questions in questions_of.items() if questions]))
    if wanted.is_empty():
        return
    texts = study.documents.filter(pl.col("id").is_in(wanted["document"].implode()))
    documents = {document_.id: document_ for document_ in documents_of(texts)}
    repeated = _repeated(wanted, questions_of)
    for row in wanted.iter_rows(named=True):
        protocol, answers = study.protocols[row["protocol"]], entries(row["answers"])
        document = documents.get(row["document"], Document(id=row["document"], text=""))
        for question in questions_of[protocol.id]:
            answer = answers.get(question.name)
            if isinstance(answer, str) and _is_asked(question, answers):
                explanation = _explanation(protocol, question, answer, answers, document)
                english = protocol.language.partition("-")[0] == "en"
                twice = repeated.get((row["annotator"], _key(answer)), [])
                for rule, reason, evidence in (
                    *explained(explanation, english),
                    *_repeats(answer, twice, row["document"]),
                ):
                    yield _suggestion(row, rule, question.name, reason, evidence)


def explanations(protocol: Protocol) -> Iterator[Question]:
    """The questions about a whole text that want an answer in words."""
    for question in protocol.document_questions:
        if question.kind.prose and question.required and question.name not in NOT_EXPLANATIONS:
            yield question


def _is_asked(question: Question, answers: Answers) -> bool:
    """Not so when the rating was changed after the answer was written."""
    return question.when is None or among(answers.get(question.when.question), question.when.among)


def _explanation(
    protocol: Protocol, question: Question, answer: str, answers: Answers, document: Document
) -> Explanation:
    on = question.when.question if question.when else ""
    scale = next((other for other in protocol.document_questions if other.name == on), None)
    sources = (document.text, *document.context.values(), protocol.instructions, *protocol.rules, question.ask)
    return Explanation(answer, question, answers.get(on), scale, sources)


def _key(answer: str) -> str:
    return " ".join(folded(answer))


def _repeated(work: pl.DataFrame, questions_of: dict[str, tuple[Question, ...]]) -> dict[tuple[str, str], list[str]]:
    """The documents about which somebody wrote the same words, by annotator and words."""
    documents_of_words: dict[tuple[str, str], list[str]] = defaultdict(list)
    for annotator, document, protocol, answers in work.select(
        "annotator", "document", "protocol", "answers"
    ).iter_rows():
        given = entries(answers)
        for question in questions_of[protocol]:
            if isinstance(answer := given.get(question.name), str) and _is_asked(question, given):
                documents_of_words[annotator, _key(answer)].append(document)
    return {key: documents for key, documents in documents_of_words.items() if len(documents) > 1}


def _repeats(answer: str, documents: Sequence[str], document: str) -> Iterator[Objection]:
    others = sorted(set(documents) - {document})
    if others and len(folded(answer)) >= LEAST:
        yield "instructions", f"the same words as for {shorten(', '.join(others), 60)}", answer


def _suggestion(row: dict[str, object], rule: Rule, question: str, reason: str, evidence: str) -> Suggestion:
    is_kept = rule in Circumstances.from_meta(entries(str(row["meta"] or ""))).kept
    id, annotator, document = (str(row[name]) for name in ("id", "annotator", "document"))
    return Suggestion(id, annotator, document, rule, question, reason, evidence, is_kept)


# --- attention checks --------------------------------------------------------------------------------------------


def verdicts(study: Study) -> dict[str, bool]:
    """Whether each annotation of an attention check passed; those without a known answer are not there."""
    return {annotation.id: passed(annotation, gold) for annotation, gold in _checked(study)}


def _checked(study: Study) -> list[tuple[Annotation, Annotation]]:
    """Everybody's annotations of attention checks beside the gold ones."""
    kinds: dict[str, str] = dict(study.annotators.select("id", "kind").iter_rows())
    on_checks = pl.col("document").is_in(list(study.settings.attention_checks))
    only = study.only(on_checks & (pl.col("status") != "draft") & (pl.col("phase") == "work"))
    annotations = list(annotations_of(only.annotations, only.marks, only.units))
    gold = {annotation.document: annotation for annotation in annotations if kinds[annotation.annotator] == "gold"}
    return [
        (annotation, gold[annotation.document])
        for annotation in annotations
        if kinds[annotation.annotator] == "human" and annotation.document in gold
    ]


def passed(annotation: Annotation, gold: Annotation) -> bool:
    """Whether an attention check was answered as its gold annotation says.

    Every gold mark needs a mark of the same label that meets it, every gold answer the same answer; where gold has no
    marks, there must be none.
    """
    return not list(_misses(annotation, gold))


def _misses(annotation: Annotation, gold: Annotation) -> Iterator[str]:
    """What gold says and somebody does not."""
    for mark in gold.marks:
        if not any(_same(mark, other) for other in annotation.marks):
            yield f"{shorten(' … '.join(mark.quotes), 40)!r} was not marked as {mark.label}"
    for name, value in gold.answers.items():
        if annotation.answers.get(name) != value:
            yield f"{name} is {value}, answered {annotation.answers.get(name, 'nothing')}"
    if annotation.marks and not gold.marks:
        yield f"{_counted(len(annotation.marks), 'mark')} where there is nothing to mark"


def _same(one: Mark, other: Mark) -> bool:
    return one.label == other.label and any(a.meets(b) for a in one.spans for b in other.spans)


def _of_checks(study: Study) -> Iterator[Suggestion]:
    for annotation, gold in _checked(study):
        if wrong := list(_misses(annotation, gold)):
            yield Suggestion(
                annotation.id,
                annotation.annotator,
                annotation.document,
                "failed-check",
                "",
                "an attention check was not answered as it should be",
                "; ".join(wrong),
                "failed-check" in Circumstances.from_meta(annotation.meta).kept,
            )
