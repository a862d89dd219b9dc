"""Data for the runs pages: states, failures with raw replies, quotes and cost."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from finecomb.annotators.llm.budget import Price
from finecomb.annotators.llm.journal import JOURNAL_FILE, JournalContent, read_entries
from finecomb.annotators.llm.local_models import PACKAGE_BY_MODEL
from finecomb.annotators.llm.prompt import PromptTemplate, system_prompt_text
from finecomb.annotators.llm.reply_parser import complete_mark_count
from finecomb.annotators.llm.run_folder import (
    ERROR_FILE,
    RunRecord,
    RunStatus,
    is_run_locked,
    list_run_folders,
    read_run_record,
    read_run_status,
)
from finecomb.annotators.llm.run_identity import annotator_name_clash
from finecomb.annotators.llm.runs import RunPlan
from finecomb.core.model_notes import MarkNote, read_reply_note
from finecomb.core.records import Annotation, Mark
from finecomb.core.study import Study
from finecomb.server.researchers.model_runs import RunManager, run_annotator_ids
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
"""States of texts whose reply was valid."""
_MAX_QUOTES = 300
_MAX_CHANGES = 12
_MAX_PROMPTS = 5


class JournalCache:
    """Cache of run journals. A journal is read again only when it has grown."""

    def __init__(self) -> None:
        self._contents: dict[Path, tuple[int, JournalContent]] = {}

    def get_journal(self, folder: Path) -> JournalContent:
        """Return the journal of a run."""
        path = folder / JOURNAL_FILE
        size = path.stat().st_size if path.exists() else 0
        if self._contents.get(path, (-1,))[0] != size:
            self._contents[path] = (size, JournalContent.from_entries(read_entries(path)))
        return self._contents[path][1]


def build_run_list(manager: RunManager, journals: JournalCache, study: Study) -> RunList:
    """Build the list of all runs, newest first, and the list of available models."""
    runs = tuple(build_run_row(manager, journals, study, folder) for folder in list_run_folders(manager.runs_folder))
    models = []
    for name, settings in manager.store.head.settings.models.items():
        endpoint = settings.base_url.partition("://")[2].partition("/")[0].rpartition("@")[2]
        models.append(
            ModelChoice(
                name=name,
                model=settings.model,
                endpoint=endpoint or "local",
                priced=settings.price is not None,
                problem=manager.find_model_problem(settings),
                **settings.model_dump(include={"samples", "max_tokens", "budget"}),
            )
        )
    for name in PACKAGE_BY_MODEL:
        settings = manager.find_model_settings(NewRun(model=f"local:{name}"))
        models.append(
            ModelChoice(
                name=settings.model,
                model=settings.model,
                endpoint="local",
                priced=False,
                samples=1,
                max_tokens=600,
                budget=None,
                problem=manager.find_model_problem(settings),
            )
        )
    return RunList(
        runs=runs,
        models=tuple(models),
        protocols=tuple(dict.fromkeys([manager.store.head.protocol.id, *study.protocols])),  # current protocol first
        texts=len(study.documents),
        cost=sum(run.cost for run in runs),
        keys=tuple(sorted(manager.key_envs)),
    )


# --- runs --------------------------------------------------------------------------------------------------------


def build_run_row(manager: RunManager, journals: JournalCache, study: Study, folder: Path) -> RunRow:
    """Build the row of one run."""
    record, status = read_run_record(folder), read_run_status(folder)
    content = journals.get_journal(folder)
    active = manager.active.get(folder.name)
    work = collect_run_annotations(manager, study, record, content, folder.name)
    running = active is not None or is_run_locked(folder)
    error_file = folder / ERROR_FILE
    error = error_file.read_text(encoding="utf-8") if error_file.exists() else ""
    quotes = [_placement_kind(mark) for annotation in work for mark in annotation.marks]
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
        quotes=QuoteCounts(exact=quotes.count("exact"), near=quotes.count("near"), missing=quotes.count("missing")),
        cost=max(float(content.spent), active.cost if active else 0.0),
        priced=record.settings.price is not None,
        seconds_left=active.seconds_left if active else None,
        **record.settings.model_dump(include={"samples", "max_tokens", "budget"}),
    )


def _matching_model_name(manager: RunManager, record: RunRecord) -> str:
    """Return the name of the model in the study with which a run can be resumed, or an empty string."""
    models = manager.store.head.settings.models
    same = [name for name, settings in models.items() if settings.model == record.settings.model]
    if record.settings.model.removeprefix("local:") in PACKAGE_BY_MODEL:
        same.append(record.settings.model)
    return record.name if record.name in same else same[0] if same else ""


def collect_run_annotations(
    manager: RunManager, study: Study, record: RunRecord, content: JournalContent, id: str
) -> list[Annotation]:
    """Return the annotations from a run's replies, including replies that have just arrived."""
    work = {annotation.id: annotation for annotation in manager.get_run_annotations(study, record)}
    active = manager.active.get(id)
    if active:
        for key, value in active.annotations.items():
            if key not in work or read_reply_note(value).calls != read_reply_note(work[key]).calls:
                work[key] = value
    return [
        annotation
        for annotation in work.values()
        if (active and annotation.id in active.annotations)
        or all(call in content.replies for call in read_reply_note(annotation).calls)
    ]


def _iter_reply_states(record: RunRecord, status: RunStatus | None, work: Sequence[Annotation]) -> Iterator[TextState]:
    """Yield the state of each text and sample."""
    states: dict[tuple[str, str], TextState] = {}
    for annotation in work:
        key = (annotation.document, annotation.annotator)
        state = _reply_state(annotation)
        # When several marks of a text are judged, the worst state counts.
        states[key] = states.get(key, state) if state in READABLE_STATES else state
    documents = status.documents if status else tuple(dict.fromkeys(document for document, _ in states))
    failures = status.failures if status else {}
    for document in documents:
        for annotator in run_annotator_ids(record):
            without: TextState = "no reply" if _is_reply_failure(failures.get(document, "")) else ""
            yield states.get((document, annotator), without)


def _is_reply_failure(why: str) -> bool:
    """Return whether a text was sent but got no reply. A text that was not sent is not a failure."""
    return bool(why) and why not in ("not asked yet", "interrupted") and not why.startswith("stopped")


def _reply_state(annotation: Annotation) -> TextState:
    state = read_reply_note(annotation).state
    states: dict[str, TextState] = {name: name for name in TextState.__args__}  # type: ignore[attr-defined]
    return states.get(state, "unreadable")


def _placement_kind(mark: Mark) -> str:
    note = MarkNote.from_mark(mark)
    if not mark.spans:
        return "missing"
    accepted = note.decision == "accepted"
    return "exact" if accepted or (note.placed == "exact" and not note.flags) else "near"


def build_run_page(manager: RunManager, journals: JournalCache, study: Study, id: str) -> RunPage:
    """Build the page of one run, with its failures and its quotes that are not exact matches."""
    record = manager.read_run_record(id)
    folder = manager.runs_folder / id
    content = journals.get_journal(folder)
    work = collect_run_annotations(manager, study, record, content, id)
    how = {"spelling": "different spelling", "elided": "omitted words", "near": "approximate match"}
    quotes = []
    for annotation in work:
        for mark in annotation.marks:
            note = MarkNote.from_mark(mark)
            if _placement_kind(mark) == "exact" and not note.decision:
                continue
            quotes.append(
                PlacedQuote(
                    mark=mark.id,
                    annotation=annotation.id,
                    document=annotation.document,
                    label=mark.label,
                    quoted=note.quoted or " ".join(mark.quotes),
                    words=" ... ".join(mark.quotes) if mark.spans else "",
                    why=mark.unlocated or "; ".join([*filter(None, [how.get(note.placed, "")]), *note.flags]),
                    decision=note.decision,
                )
            )
    return RunPage(
        run=build_run_row(manager, journals, study, folder),
        failures=tuple(_failed_texts(work, read_run_status(folder), content)),
        quotes=tuple(quotes[:_MAX_QUOTES]),
    )


def _failed_texts(
    work: Iterable[Annotation], status: RunStatus | None, content: JournalContent
) -> Iterator[FailedText]:
    """Yield the failed texts; those with a reply come first."""
    for annotation in work:
        state = _reply_state(annotation)
        if state in READABLE_STATES:
            continue
        note, excluded = read_reply_note(annotation), annotation.excluded
        entries = [content.replies[call] for call in note.calls if call in content.replies]
        yield FailedText(
            document=annotation.document,
            annotation=annotation.id,
            state=state,
            why=(excluded.reason if excluded and excluded.by == "finecomb" else "").partition(": ")[2],
            reply=note.reply,
            marks_read=complete_mark_count(note.reply) if note.state == "truncated" else 0,
            when=entries[-1].when if entries else annotation.submitted,
            seconds=annotation.seconds,
            tokens=note.completion_tokens or None,
            settled=excluded.by if excluded and excluded.by != "finecomb" else "",
        )
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


# --- preview -----------------------------------------------------------------------------------------------------


def build_run_preview(manager: RunManager, study: Study, new: NewRun) -> RunPreview:
    """Build the exact request for one text, and the cost of the whole run."""
    run_plan = manager.plan_run(study, new.model_copy(update={"document": None}))
    ids = [task.document.id for task in run_plan.tasks]
    chosen = new.document if new.document in ids else ids[0]
    number = ids.index(chosen)
    task = run_plan.tasks[number]
    others = [shot for shot in run_plan.shots if shot[0].id != chosen][: run_plan.record.settings.shots]
    request = run_plan.build_requests(task, 0)[0]
    price = Price.from_settings(run_plan.record.settings) if run_plan.record.settings.price else None
    requests = [call.request for call in run_plan.iter_calls()]
    records = [read_run_record(folder) for folder in list_run_folders(manager.runs_folder)]
    return RunPreview(
        document=chosen,
        number=number + 1,
        texts=len(set(ids)),
        calls=len(requests),
        messages=tuple(
            SentMessage(role=role, pieces=tuple(SentPiece(variable=name, text=text) for name, text in pieces))
            for role, pieces in run_plan.writer.prompt_pieces(task, others)
        ),
        tokens=request.estimated_prompt_tokens(),
        prompt=run_plan.record.prompt,
        likely=float(sum(map(price.estimated_cost, requests))) if price else None,
        most=float(sum(map(price.max_cost, requests))) if price else None,
        same_as=next((record.name for record in records if record.prompt == run_plan.record.prompt), ""),
        clash=manager.find_model_problem(run_plan.record.settings) or annotator_name_clash(study, run_plan),
        others=tuple(_other_prompts(records, study, run_plan)),
    )


def _other_prompts(records: Sequence[RunRecord], study: Study, run_plan: RunPlan) -> Iterator[OtherPrompt]:
    """Yield earlier prompts that differ: first that of the last run with the same name, then the newest first."""
    namesake = next((record for record in records if record.name == run_plan.record.name), None)
    now = system_prompt_text(run_plan.protocol, run_plan.writer.template)
    shown_prompts = {run_plan.record.prompt}
    for record in [namesake, *records] if namesake else records:
        if len(shown_prompts) > _MAX_PROMPTS:
            return
        if record.prompt not in shown_prompts and record.protocol in study.protocols:
            shown_prompts.add(record.prompt)
            before = system_prompt_text(
                study.protocols[record.protocol], PromptTemplate.parse(record.template, "run.json")
            )
            yield OtherPrompt(
                run=record.name,
                prompt=record.prompt,
                is_same_name=record is namesake,
                changes=tuple(describe_word_changes(before, now)),
            )


def describe_word_changes(before: str, now: str) -> list[str]:
    """Return the words that were removed from a text and those that were added to it.

    >>> describe_word_changes("Mark every error.", "Mark each error now.")
    ['- every error.', '+ each error now.']
    """
    old, new = before.split(), now.split()
    changes: list[str] = []
    for kind, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            changes += [f"- {' '.join(old[i:j])}"] * (j > i) + [f"+ {' '.join(new[k:m])}"] * (m > k)
    return [change[:200] for change in changes[:_MAX_CHANGES]]
