"""Runs of language models as the researcher's page shows them: states, failures with their raw reply, quotes, cost."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from finecomb.annotators.llm.budget import Price
from finecomb.annotators.llm.journal import JOURNAL_FILE, JournalContent, read_entries
from finecomb.annotators.llm.local_models import PACKAGES
from finecomb.annotators.llm.prompt import PromptTemplate, prompt_text
from finecomb.annotators.llm.reply_parser import complete_mark_count
from finecomb.annotators.llm.run_folder import (
    RunRecord,
    RunStatus,
    is_locked,
    read_error,
    read_record,
    read_status,
    run_folders,
)
from finecomb.annotators.llm.runs import RunPlan, name_clash
from finecomb.core.model_notes import MarkNote, read_reply_note
from finecomb.core.records import Annotation, Mark
from finecomb.core.study import Study
from finecomb.server.researchers.model_runs import RunManager, protocol_ids_current_first, run_annotator_ids
from finecomb.server.researchers.run_schema import (
    FailedText,
    ModelChoice,
    NewRun,
    OtherPrompt,
    PlacedQuote,
    QuoteCounts,
    RunList,
    RunPage,
    RunPreview,
    RunRow,
    SentMessage,
    SentPiece,
    TextState,
)

READABLE_STATES: tuple[TextState, ...] = ("marked", "no errors", "answered")
"""States that count as having read the text."""
_MAX_QUOTES = 300
_MAX_CHANGES = 12
_MAX_PROMPTS = 5


class JournalCache:
    """What the journals of runs say, read again only when they have grown."""

    def __init__(self) -> None:
        self._contents: dict[Path, tuple[int, JournalContent]] = {}

    def content(self, folder: Path) -> JournalContent:
        """The journal of a run."""
        path = folder / JOURNAL_FILE
        size = path.stat().st_size if path.exists() else 0
        if self._contents.get(path, (-1,))[0] != size:
            self._contents[path] = (size, JournalContent.from_entries(read_entries(path)))
        return self._contents[path][1]


def build_run_list(manager: RunManager, journals: JournalCache, study: Study) -> RunList:
    """All runs, the newest first, and what can be asked."""
    runs = tuple(build_run_row(manager, journals, study, folder) for folder in run_folders(manager.runs_folder))
    return RunList(
        runs=runs,
        models=tuple(_model_choices(manager)),
        protocols=protocol_ids_current_first(manager.store.head.protocol, study),
        texts=len(study.documents),
        cost=sum(run.cost for run in runs),
        keys=tuple(sorted(manager.key_envs)),
    )


def _model_choices(manager: RunManager) -> Iterator[ModelChoice]:
    for name, settings in manager.store.head.settings.models.items():
        endpoint = settings.base_url.partition("://")[2].partition("/")[0].rpartition("@")[2]
        yield ModelChoice(
            name=name,
            model=settings.model,
            endpoint=endpoint or "local",
            priced=settings.price is not None,
            problem=manager.model_problem(settings),
            **settings.model_dump(include={"samples", "max_tokens", "budget"}),
        )
    for name in PACKAGES:
        settings = manager.model_settings(NewRun(model=f"local:{name}"))
        yield ModelChoice(
            name=settings.model,
            model=settings.model,
            endpoint="local",
            priced=False,
            samples=1,
            max_tokens=600,
            budget=None,
            problem=manager.model_problem(settings),
        )


# --- one run -----------------------------------------------------------------------------------------------------


def build_run_row(manager: RunManager, journals: JournalCache, study: Study, folder: Path) -> RunRow:
    """One run's row."""
    record, status = read_record(folder), read_status(folder)
    content = journals.content(folder)
    active = manager.active.get(folder.name)
    work = collect_run_annotations(manager, study, record, content, folder.name)
    running = active is not None or is_locked(folder)
    error = read_error(folder)
    return RunRow(
        id=folder.name,
        name=record.name,
        model=record.settings.model,
        endpoint=record.host,
        choice=_matching_model_name(manager, record),
        protocol=record.protocol,
        prompt=record.prompt,
        temperature=record.settings.temperature,
        state="running" if running else "stopped" if error or status is None else status.state,
        why="" if running else error or (status.why if status else ""),
        created=record.created,
        when=status.when if status else record.created,
        teeth=tuple(_iter_reply_states(record, status, work)),
        look=sum(not failure.settled for failure in _failed_texts(work, status, content)),
        quotes=_quote_counts(work),
        cost=max(content.spent, active.cost if active else 0.0),
        priced=record.settings.price is not None,
        seconds_left=active.seconds_left if active else None,
        **record.settings.model_dump(include={"samples", "max_tokens", "budget"}),
    )


def _matching_model_name(manager: RunManager, record: RunRecord) -> str:
    """The name under the study's models by which a run can go on."""
    models = manager.store.head.settings.models
    same = [name for name, settings in models.items() if settings.model == record.settings.model]
    if record.settings.model.removeprefix("local:") in PACKAGES:
        same.append(record.settings.model)
    return record.name if record.name in same else same[0] if same else ""


def collect_run_annotations(
    manager: RunManager, study: Study, record: RunRecord, content: JournalContent, id: str
) -> list[Annotation]:
    """The annotations that were made of a run's replies, those just come in among them."""
    work = {annotation.id: annotation for annotation in manager.cached_annotations(study, record)}
    active = manager.active.get(id)
    if active:
        work |= {key: value for key, value in active.annotations.items() if key not in work}
        work |= {key: value for key, value in active.annotations.items() if _has_different_calls(value, work[key])}
    return [
        annotation
        for annotation in work.values()
        if (active and annotation.id in active.annotations)
        or all(call in content.replies for call in read_reply_note(annotation).calls)
    ]


def _has_different_calls(one: Annotation, other: Annotation) -> bool:
    return read_reply_note(one).calls != read_reply_note(other).calls


def _iter_reply_states(record: RunRecord, status: RunStatus | None, work: Sequence[Annotation]) -> Iterator[TextState]:
    """What came back for each text and sample."""
    states: dict[tuple[str, str], TextState] = {}
    for annotation in work:
        key = (annotation.document, annotation.annotator)
        state = _reply_state(annotation)
        states[key] = (
            states.get(key, state) if state in READABLE_STATES else state
        )  # of several marks judged, the worst counts
    documents = status.documents if status else tuple(dict.fromkeys(document for document, _ in states))
    failures = status.failures if status else {}
    for document in documents:
        for annotator in run_annotator_ids(record):
            without: TextState = "no reply" if _is_reply_failure(failures.get(document, "")) else ""
            yield states.get((document, annotator), without)


def _is_reply_failure(why: str) -> bool:
    """Whether a text was asked and got no reply, other than one that was never asked."""
    return bool(why) and why not in ("not asked yet", "interrupted") and not why.startswith("stopped")


def _reply_state(annotation: Annotation) -> TextState:
    state = read_reply_note(annotation).state
    states: dict[str, TextState] = {name: name for name in TextState.__args__}  # type: ignore[attr-defined]
    return states.get(state, "unreadable")


def _quote_counts(work: Iterable[Annotation]) -> QuoteCounts:
    kinds = [_placement_kind(mark) for annotation in work for mark in annotation.marks]
    return QuoteCounts(exact=kinds.count("exact"), near=kinds.count("near"), missing=kinds.count("missing"))


def _placement_kind(mark: Mark) -> str:
    note = MarkNote.from_mark(mark)
    if not mark.spans:
        return "missing"
    accepted = note.decision == "accepted"
    return "exact" if accepted or (note.placed == "exact" and not note.flags) else "near"


def build_run_page(manager: RunManager, journals: JournalCache, study: Study, id: str) -> RunPage:
    """One run with its failures and doubtful quotes."""
    record = manager.run_record(id)
    folder = manager.runs_folder / id
    content = journals.content(folder)
    work = collect_run_annotations(manager, study, record, content, id)
    return RunPage(
        run=build_run_row(manager, journals, study, folder),
        failures=tuple(_failed_texts(work, read_status(folder), content)),
        quotes=tuple(_doubtful_quotes(work))[:_MAX_QUOTES],
    )


def _failed_texts(
    work: Iterable[Annotation], status: RunStatus | None, content: JournalContent
) -> Iterator[FailedText]:
    """Texts without a reading, those with a reply first."""
    for annotation in work:
        if _reply_state(annotation) not in READABLE_STATES:
            yield _failed_text(annotation, content)
    for document, why in (status.failures if status else {}).items():
        if _is_reply_failure(why):
            yield FailedText(
                document=document,
                annotation="",
                state="no reply",
                why=why,
                reply="",
                marks_read=0,
                when=None,
                seconds=None,
                tokens=None,
                settled="",
            )


def _failed_text(annotation: Annotation, content: JournalContent) -> FailedText:
    note, excluded = read_reply_note(annotation), annotation.excluded
    entries = [content.replies[call] for call in note.calls if call in content.replies]
    return FailedText(
        document=annotation.document,
        annotation=annotation.id,
        state=_reply_state(annotation),
        why=(excluded.reason if excluded and excluded.by == "finecomb" else "").partition(": ")[2],
        reply=note.reply,
        marks_read=complete_mark_count(note.reply) if note.state == "truncated" else 0,
        when=entries[-1].when if entries else annotation.submitted,
        seconds=annotation.seconds,
        tokens=note.completion_tokens or None,
        settled=excluded.by if excluded and excluded.by != "finecomb" else "",
    )


def _doubtful_quotes(work: Iterable[Annotation]) -> Iterator[PlacedQuote]:
    for annotation in work:
        for mark in annotation.marks:
            note = MarkNote.from_mark(mark)
            if _placement_kind(mark) == "exact" and not note.decision:
                continue
            words = " ... ".join(mark.quotes) if mark.spans else ""
            how = {"spelling": "another spelling", "elided": "left words out", "near": "nearly the same words"}
            yield PlacedQuote(
                mark=mark.id,
                annotation=annotation.id,
                document=annotation.document,
                label=mark.label,
                quoted=note.quoted or " ".join(mark.quotes),
                words=words,
                why=mark.unlocated or "; ".join([*filter(None, [how.get(note.placed, "")]), *note.flags]),
                decision=note.decision,
            )


# --- before a run ------------------------------------------------------------------------------------------------


def build_run_preview(manager: RunManager, study: Study, new: NewRun) -> RunPreview:
    """Exactly what would be sent for one text, and what the whole run would cost."""
    whole = manager.plan_run(study, new.model_copy(update={"document": None}))
    ids = [task.document.id for task in whole.tasks]
    chosen = new.document if new.document in ids else ids[0]
    number = ids.index(chosen)
    task = whole.tasks[number]
    others = [shot for shot in whole.shots if shot[0].id != chosen][: whole.record.settings.shots]
    request = whole.requests(task, 0)[0]
    price = Price.from_settings(whole.record.settings) if whole.record.settings.price else None
    requests = [call.request for call in whole.calls()]
    return RunPreview(
        document=chosen,
        number=number + 1,
        texts=len(set(ids)),
        calls=len(requests),
        messages=tuple(
            SentMessage(role=role, pieces=tuple(SentPiece(variable=name, text=text) for name, text in pieces))
            for role, pieces in whole.writer.prompt_pieces(task, others)
        ),
        tokens=request.estimated_prompt_tokens(),
        prompt=whole.record.prompt,
        likely=sum(map(price.estimated_cost, requests)) if price else None,
        most=sum(map(price.max_cost, requests)) if price else None,
        same_as=_run_with_same_prompt(manager, whole),
        clash=manager.model_problem(whole.record.settings) or name_clash(study, whole),
        others=tuple(_other_prompts(manager, study, whole)),
    )


def _run_with_same_prompt(manager: RunManager, run_plan: RunPlan) -> str:
    records = [read_record(folder) for folder in run_folders(manager.runs_folder)]
    return next((record.name for record in records if record.prompt == run_plan.record.prompt), "")


def _other_prompts(manager: RunManager, study: Study, run_plan: RunPlan) -> Iterator[OtherPrompt]:
    """Prompts of earlier runs that differ, each once: the last one under the same name, then from the newest on."""
    records = [read_record(folder) for folder in run_folders(manager.runs_folder)]
    namesake = next((record for record in records if record.name == run_plan.record.name), None)
    now = prompt_text(run_plan.protocol, run_plan.writer.template)
    seen = {run_plan.record.prompt}
    for record in [namesake, *records] if namesake else records:
        if len(seen) > _MAX_PROMPTS:
            return
        if record.prompt not in seen and record.protocol in study.protocols:
            seen.add(record.prompt)
            before = prompt_text(study.protocols[record.protocol], PromptTemplate.parse(record.template, "run.json"))
            yield OtherPrompt(
                run=record.name,
                prompt=record.prompt,
                is_same_name=record is namesake,
                changes=tuple(word_changes(before, now)),
            )


def word_changes(before: str, now: str) -> list[str]:
    """What was taken out of a text and what was put in, in words.

    >>> word_changes("Mark every error.", "Mark each error now.")
    ['- every error.', '+ each error now.']
    """
    old, new = before.split(), now.split()
    changes: list[str] = []
    for kind, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            changes += [f"- {' '.join(old[i:j])}"] * (j > i) + [f"+ {' '.join(new[k:m])}"] * (m > k)
    return [change[:200] for change in changes[:_MAX_CHANGES]]
