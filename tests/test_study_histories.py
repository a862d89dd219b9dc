"""Random sequences of commands on one study, compared with a plain dictionary after every command.

The dictionary holds what each command reported as done: texts, and marks by annotator and text. Whatever the study is
stored in, files or a database, reading it must give the same.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import finecomb as fc
from finecomb.annotators.llm.run_identity import build_run_records, plan_replacement
from finecomb.annotators.llm.runs import ModelRun, RunPlan, plan_run, run_folder_name
from finecomb.collection import researcher_actions_storage
from finecomb.collection.database.location import parse_location
from finecomb.collection.database.store import open_store
from finecomb.core.model_notes import ReplyNote
from finecomb.core.protocol import Protocol
from finecomb.core.records import Annotation, Annotator, Document, Mark, ModelSettings, Settings
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.formats.study_writes import change_study, ensure_database

PROTOCOL = Protocol.model_validate(
    {
        "name": "small",
        "version": "1",
        "title": "Small",
        "summary": "One label.",
        "labels": [{"name": "redundant", "title": "Redundant", "gloss": "Said twice."}],
    }
)
Marks = dict[tuple[str, str], int]
"""Number of counted marks by annotator and text."""


class History:
    """A study on disk, and a dictionary of what it must contain."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.random, self.folder = random.Random(seed), folder
        self.path = folder / "study"
        self.texts = {f"d{number}": f"Text {number} has some words to mark." for number in range(3)}
        self.marks: Marks = {}
        self.excluded: set[str] = set()
        self.identity: dict[str, int] = {}
        self.saved: list[tuple[Path, Any]] = []
        self.number = 0
        documents = [Document(id=id, text=text) for id, text in self.texts.items()]
        settings = Settings(protocols=(PROTOCOL.id,))
        fc.write(Study.from_items([settings, PROTOCOL, *documents]), self.path)

    # --- commands ------------------------------------------------------------------------------------------------

    def serve(self) -> None:
        ensure_database(self.path)

    def annotate(self) -> None:
        """Run a model that marks as many words as its seed says."""
        name, seed = self.random.choice(["j", "k"]), self.random.randrange(3)
        replaces = self.random.random() < 0.5
        study = fc.read(self.path)
        plan = plan_run(study, ModelSettings(model="m", base_url="http://h/v1", seed=seed), PROTOCOL, name=name)
        if replaces:
            plan = plan_replacement(study, plan)
        run = self.fake_run(plan, seed)
        is_other = name in self.identity and self.identity[name] != seed
        try:
            change_study(self.path, lambda study: build_run_records(study, plan, [run], replaces), "test")
        except fc.FinecombError:
            assert (is_other, replaces) == (True, False)
            return
        assert not is_other or replaces
        if is_other:  # a replaced run starts without exclusion
            self.excluded.discard(name)
            self.marks = {key: count for key, count in self.marks.items() if key[0] != name}
        self.identity[name] = seed
        self.marks |= {(name, annotation.document): len(annotation.marks) for annotation in run.annotations}

    def fake_run(self, plan: RunPlan, seed: int) -> ModelRun:
        annotations = []
        suffix = "" if plan.record.generation == 1 else f"~{plan.record.generation}"
        for task in plan.tasks:
            id = f"{plan.record.name}{suffix}/{PROTOCOL.id}/{task.document.id}"
            note = ReplyNote(state="marked", calls=(f"{plan.record.name}-{seed}-{task.document.id}",))
            meta = {"llm": note.model_copy(update={"run": run_folder_name(plan.record)}).model_dump(mode="json")}
            annotations.append(self.annotation(id, task.document, plan.record.name, seed, meta))
        return ModelRun(record=plan.record, annotators=plan.build_annotators(), annotations=tuple(annotations))

    def annotation(self, id: str, document: Document, annotator: str, count: int, meta: Any = None) -> Annotation:
        marks = tuple(
            Mark(
                id=f"{id}/{number}",
                spans=(Span(number, number + 1),),
                quotes=(document.text[number],),
                label="redundant",
            )
            for number in range(count)
        )
        whose = {"annotator": annotator, "protocol": PROTOCOL.id, "status": "submitted", "meta": meta or {}}
        return Annotation(id=id, document=document.id, marks=marks, **whose)

    def merge(self) -> None:
        self.number += 1
        annotator = self.random.choice(["ann", "ben"])
        study = fc.read(self.path)
        document = self.random.choice(list(study.iter_documents()))
        count, replaces = self.random.randrange(1, 3), self.random.random() < 0.5
        work: list[Annotator | Annotation] = [
            Annotator(id=annotator, kind="human"),
            self.annotation(f"m{self.number}", document, annotator, count),
        ]
        other = Study.from_items([PROTOCOL, document, *work])
        key = (annotator, document.id)
        try:
            fc.merge(self.path, other, into=self.path, replace=replaces)
        except fc.FinecombError:
            assert (key in self.marks, replaces) == (True, False)
            return
        assert key not in self.marks or replaces
        self.marks[key] = count

    def edit(self) -> None:
        self.number += 1
        id = self.random.choice([*self.texts, f"new{self.number}"])
        base = id.partition("~")[0]
        latest = max((name for name in self.texts if name.partition("~")[0] == base), default="", key=_version)
        text = f"Edited {self.number} has some words to mark."
        fc.edit(self.path, documents=[{"id": base, "text": text}])
        if not latest:
            self.texts[base] = text
        elif any(document == latest for _, document in self.all_marks):
            self.texts[f"{base}~{_version(latest) + 1}"] = text
        else:
            self.texts[latest] = text

    @property
    def all_marks(self) -> set[tuple[str, str]]:
        """Annotated texts, including by runs that were replaced."""
        frame = fc.read(self.path).annotations
        return set(frame.select("annotator", "document").iter_rows())

    def exclude(self) -> None:
        study = fc.read(self.path)
        if not (self.path / "study.db").exists() or not len(study.annotators):
            return
        id = self.random.choice([id for id in study.annotators["id"] if "~" not in id])
        store = open_store(parse_location(self.path / "study.db"))
        try:
            store.run_study_change_sync(researcher_actions_storage.exclude_annotator, "me", id, "test")
        finally:
            store.close()
        self.excluded.add(id)

    def gold(self) -> None:
        people = [id for id in ("ann", "ben") if id not in self.excluded and any(key[0] == id for key in self.marks)]
        if not people:
            return
        result = fc.gold(self.path, annotator=people, min_votes=1, into=self.path, draws=0)
        counts = {(row.annotator, row.document): len(row.marks) for row in result.study.iter_annotations()}
        self.marks |= counts

    def convert(self) -> None:
        self.number += 1
        target = self.folder / f"copy-{self.number}"
        fc.convert(self.path, target)
        assert list(fc.read(target).items()) == list(fc.read(self.path).items())
        if self.random.random() < 0.3:  # go on with the files
            self.path, self.saved = target, []

    def backup(self) -> None:
        if (self.path / "study.db").exists():
            self.number += 1
            file = fc.backup(self.path, output=self.folder / f"backup-{self.number}.db")
            self.saved.append((file, self.state()))

    def restore(self) -> None:
        if self.saved:
            file, state = self.random.choice(self.saved)
            for old in self.path.glob("study.replaced-*.db"):  # named after the second
                old.unlink()
            fc.restore(file, self.path, force=True)
            self.texts, self.marks, self.excluded, self.identity = (type(part)(part) for part in state)

    def state(self) -> Any:
        return dict(self.texts), dict(self.marks), set(self.excluded), dict(self.identity)

    # --- comparison ----------------------------------------------------------------------------------------------

    def check(self, step: str) -> None:
        study = fc.read(self.path)
        texts = dict(study.documents.select("id", "text").iter_rows())
        assert texts == self.texts, step
        counted = study.submitted_work()
        found: Marks = dict.fromkeys(counted.annotations.select("annotator", "document").iter_rows(), 0)
        for row in counted.marks.select("annotator", "document").iter_rows():
            found[row] += 1
        expected = {key: count for key, count in self.marks.items() if key[0] not in self.excluded}
        assert found == expected, step
        totals = fc.stats(self.path).totals
        assert totals["marks"] == sum(expected.values()), step


def _version(id: str) -> int:
    return int(id.partition("~")[2] or 1)


STEPS = ("serve", "annotate", "annotate", "edit", "merge", "merge", "exclude", "gold", "convert", "backup", "restore")


def run_history(folder: Path, seed: int) -> None:
    history = History(folder, seed)
    steps = []
    for _ in range(8):
        steps.append(history.random.choice(STEPS))
        getattr(history, steps[-1])()
        history.check(f"seed {seed}: {' '.join(steps)}")
    assert fc.check(history.path).errors == []
    shutil.rmtree(folder)


@pytest.mark.parametrize("part", range(5))
def test_every_command_reads_what_commands_wrote(part: int, tmp_path: Path) -> None:
    for seed in range(part * 10, part * 10 + 10):
        run_history_in(tmp_path, seed)


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_every_command_reads_what_commands_wrote_in_long_runs(part: int, tmp_path: Path) -> None:
    for seed in range(50 + part * 45, 50 + part * 45 + 45):
        run_history_in(tmp_path, seed)


def run_history_in(folder: Path, seed: int) -> None:
    place = folder / str(seed)
    place.mkdir()
    run_history(place, seed)
