"""A critic is a detector: its marks are saved, scored, and told apart by critic."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from finecomb import formats, protocols
from finecomb.core.errors import FinecombError, format_as_flag
from finecomb.core.records import ONBOARDING_PHASES, Annotation, Annotator, Document, Mark, Offer, Settings
from finecomb.core.span import Span
from finecomb.core.study import StudyItem
from finecomb.corpora.critics.critic_detector import CriticDetector, CriticDetectorOptions
from finecomb.corpora.critics.criticism import fit_critic
from finecomb.corpora.critics.storage import save
from finecomb.corpora.critics.surprising_spans import calibrate_surprises
from tests.cli.test_criticize import write
from tests.corpora.critics.test_sections import articles
from tests.databases import Client, FakeClock, new_study_location, open_test_store
from tests.test_cli import refused, run

WRONG = ("why", "what", "how", "so")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("critic") / "kept"
    critic = fit_critic("sections", articles(0, 120), 0, {})
    save(calibrate_surprises(critic, articles(3, 60)), folder)
    return folder


def detector(kept: Path, protocol: str = "snac", **options: object) -> CriticDetector:
    return CriticDetector.from_options(protocols.load(protocol), CriticDetectorOptions(weights=kept, **options))  # type: ignore[arg-type]


def test_what_is_unlike_real_texts_is_marked_with_its_reason(kept: Path) -> None:
    (document,) = articles(1, 1, WRONG)
    annotation = detector(kept)(document)
    quotes = [document.text[part.start : part.end] for part in document.segments[1:]]
    assert [mark.quotes for mark in annotation.marks] == [(quote,) for quote in quotes]
    mark = annotation.marks[0]
    assert (mark.label, annotation.annotator) == ("scene", "critic-sections")
    assert str(mark.answers["comment"]).startswith("sections: what has ")
    assert str(mark.answers["comment"]).endswith("; expected how")
    assert mark.confidence is not None
    assert mark.confidence > 0.99
    assert all(unit.scores["any"] > 0.99 for unit in annotation.units[1:])


def test_real_texts_are_hardly_marked(kept: Path) -> None:
    program = detector(kept)
    assert sum(len(program(document).marks) for document in articles(4, 30)) <= 2


def test_labels_come_from_the_protocol_that_is_asked_for(kept: Path) -> None:
    (document,) = articles(1, 1, WRONG)
    assert detector(kept, "scarecrow")(document).marks[0].label == "incoherent"
    assert detector(kept, label="incon")(document).marks[0].label == "incon"
    untyped = detector(kept, "accuracy")(document).marks[0]
    assert (untyped.label, untyped.label_votes) == (None, {"no type": 1})
    with pytest.raises(FinecombError) as error:
        detector(kept, label="scen")
    assert error.value.format_message(format_as_flag) == "--label scen is not in protocol snac@2; did you mean 'scene'?"


def test_a_text_without_structure_is_left_out_with_the_reason(kept: Path) -> None:
    annotation = detector(kept)(Document(id="1", text=""))
    assert annotation.status == "excluded"
    assert annotation.excluded is not None
    assert annotation.excluded.reason


def test_a_text_that_the_critic_was_fitted_on_is_named(kept: Path) -> None:
    assert detector(kept)(articles(0, 1)[0]).meta["problems"] == ["the critic was fitted on this text"]


def test_a_critic_that_does_not_know_what_is_usual_is_refused(tmp_path: Path) -> None:
    save(fit_critic("sections", articles(0, 40), 0, {"min_count": "5"}), tmp_path / "raw")
    with pytest.raises(FinecombError, match="the saved critic has no scores of real texts to compare with"):
        detector(tmp_path / "raw")
    with pytest.raises(FinecombError, match="requires a fitted critic"):
        CriticDetector.from_options(protocols.load("snac"), CriticDetectorOptions())


def test_a_threshold_that_nothing_can_reach_is_refused(tmp_path: Path) -> None:
    save(calibrate_surprises(fit_critic("sections", articles(0, 60), 0, {}), articles(3, 5)), tmp_path / "small")
    with pytest.raises(FinecombError, match=r"must be at most 0.952 for a critic with 20 spans of real texts"):
        detector(tmp_path / "small")
    assert detector(tmp_path / "small", threshold=0.9)(articles(1, 1, WRONG)[0]).marks


def test_from_real_texts_to_scores_on_the_command_line(tmp_path: Path) -> None:
    real, made = (
        write(tmp_path / "real.jsonl", articles(0, 160)),
        write(tmp_path / "made.jsonl", articles(1, 20, WRONG)),
    )
    run("criticize", real, made, "--save", tmp_path / "kept", "--draws", "50")
    run("detect", made, "--detector", "critic", "--weights", tmp_path / "kept", "-o", tmp_path / "marked")
    marked = formats.read(tmp_path / "marked")
    assert [person.id for person in marked.iter_annotators()] == ["critic-sections"]
    documents = list(marked.iter_documents())
    gold = [
        Annotation(id=f"g{document.id}", document=document.id, annotator="gold", protocol="snac@2", marks=(mark,))
        for document in documents
        for part in [document.segments[1]]
        for mark in [
            Mark(
                id=f"g{document.id}/1",
                spans=(Span(part.start, part.end),),
                quotes=(document.text[part.start : part.end],),
                label="scene",
            )
        ]
    ]
    items = [*formats.stream_records(tmp_path / "marked"), Annotator(id="gold", kind="gold"), *gold]
    formats.save_records(items, tmp_path / "judged")
    table = json.loads(run("score", tmp_path / "judged", "--match", "overlap", "--draws", "20", "--json").stdout)[
        "table"
    ]
    row = next(row for row in table if row["label"] == "any")
    assert (row["judge"], row["gold"], row["matched"]) == ("critic-sections", 20, 20)


def test_annotators_confirm_a_critics_marks_on_the_page(kept: Path, tmp_path: Path) -> None:
    asked = protocols.load("scarecrow")
    (document,) = articles(1, 1, WRONG)
    program = detector(kept, "scarecrow")
    items: list[StudyItem] = [
        Settings(protocols=(asked.id,), skip=ONBOARDING_PHASES, offer=Offer(annotator=program.annotator_id, blind=0)),
        *(asked, document, Annotator(id=program.annotator_id, kind="detector"), program(document)),
    ]
    with open_test_store(new_study_location("sqlite", tmp_path), items, FakeClock()) as store:
        client = Client(store).join_study()
        task = client.next_task()
        assert len(task["offered"]) == 3
        offered = task["offered"][0]
        body = {key: offered[key] for key in ("spans", "quotes", "label")} | {"made_from": [offered["id"]]}
        assert client.save(task["id"], "marks/confirmed", body)[0] == 200


def test_mistakes_are_one_line(tmp_path: Path, kept: Path) -> None:
    made = write(tmp_path / "made.jsonl", articles(1, 3, WRONG))
    assert "cannot be read as a saved critic" in refused(
        "detect", made, "--detector", "critic", "--weights", tmp_path / "none"
    )
    other = refused("detect", made, "--detector", "rules", "--label", "scene")
    assert "--label does not apply to rules; it applies to critic" in other
    wide = refused("detect", made, "--detector", "critic", "--weights", kept, "--threshold", "7")
    assert "--threshold must be from 0 to 1, found 7" in wide
