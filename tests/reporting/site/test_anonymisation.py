from __future__ import annotations

from datetime import UTC, datetime

from finecomb.core.records import Annotation, Annotator, Document, Exclusion, Mark
from finecomb.core.span import Span
from finecomb.core.study import Study
from finecomb.protocols import load
from finecomb.reporting.site.anonymisation import anonymise_study


def study() -> Study:
    protocol = load("scarecrow")

    def annotation(name: str, **more: object) -> Annotation:
        mark = Mark(id=f"d/{name}/1", spans=(Span(0, 3),), quotes=("Old",), label="redundant")
        return Annotation(
            id=f"d/{name}", document="d", annotator=name, protocol=protocol.id, marks=(mark,),
            **more,
        )  # fmt: skip

    return Study.from_items(
        [
            protocol,
            Document(id="d", text="Old words."),
            Annotator(id="reader-1", kind="detector"),
            Annotator(id="Juniper", kind="human", survey={"age": 40}, platform="prolific", meta={"place": "y"}),
            Annotator(id="Ash", kind="human", condition="trained"),
            annotation("Ash", excluded=Exclusion(by="Maple", reason="asked to")),
            annotation(
                "Juniper",
                made_from=("d/Ash",),
                submitted=datetime(2026, 5, 1, tzinfo=UTC),
                meta={"browser": "x", "chance": 0.5},
            ),
            annotation("reader-1"),
        ]
    )


def test_no_name_of_a_person_is_left_and_references_still_fit() -> None:
    made = anonymise_study(study())
    text = "".join(item.model_dump_json() for item in made.items())
    for name in ("Ash", "Juniper", "Maple", "prolific", "browser", "2026-05"):
        assert name not in text.replace(load("scarecrow").model_dump_json(), ""), name
    first, second, machine = made.iter_annotations()
    assert (first.id, second.annotator, second.made_from) == ("d/reader-2", "reader-3", ("d/reader-2",))
    assert first.marks[0].id == "d/reader-2/1"
    assert second.meta == {"chance": 0.5}
    assert (machine.id, machine.annotator) == ("d/reader-1", "reader-1")
    assert [each.condition for each in made.iter_annotators() if each.id == "reader-2"] == ["trained"]
