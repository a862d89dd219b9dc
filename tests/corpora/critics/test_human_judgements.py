"""What readers say beside what critics say: Table 4 and Table 18 of Deng et al. (2022)."""

from __future__ import annotations

import math

import polars as pl
import pytest
from scipy import stats

from finecomb import protocols
from finecomb.core.errors import FinecombError
from finecomb.core.records import Annotation, Annotator, Document, Segment, Unit
from finecomb.core.study import Study
from finecomb.corpora.critics import human_judgements

TABLE_4 = {
    "ppl": {"lm2-without": 11.09, "lm2-with": 10.96, "lm1-without": 11.50, "lm1-with": 11.38},
    "mauve": {"lm2-without": 0.75, "lm2-with": 0.85, "lm1-without": 0.91, "lm1-with": 0.90, "real": 0.96},
    "latent ppl": {"lm2-without": 7.92, "lm2-with": 4.17, "lm1-without": 3.76, "lm1-with": 2.68, "real": 2.58},
}
HUMAN = {"lm2-without": 0.50, "lm2-with": 0.66, "lm1-without": 0.71, "lm1-with": 0.88, "real": 0.87}


def study() -> Study:
    protocol = protocols.load_shipped("sections")
    items: list[object] = [protocol, Annotator(id="r", kind="human")]
    judged = {
        ("a", "x"): (["introduction", "result"], False),
        ("b", "x"): (["introduction", "result"], False),
        ("c", "x"): (["introduction", "discussion"], True),
        ("d", "human"): (["introduction", "discussion"], True),
        ("e", "human"): (["discussion", "discussion"], False),
    }
    for (id, model), (types, coherent) in judged.items():
        text = " ".join("word" for _ in types)
        places = [(5 * at, 5 * at + 4) for at in range(len(types))]
        segments = tuple(Segment(start=start, end=end) for start, end in places)
        units = tuple(
            Unit(start=start, end=end, answers={"section": type})
            for (start, end), type in zip(places, types, strict=True)
        )
        items.append(Document(id=id, text=text, segments=segments, meta={"model": model}))
        items.append(
            Annotation(
                id=f"r-{id}",
                document=id,
                annotator="r",
                protocol=protocol.id,
                units=units,
                answers={"coherent": coherent},
            )
        )
    return Study.from_items(items)  # type: ignore[arg-type]


def test_the_share_called_coherent_by_system() -> None:
    assert human_judgements.coherent_share_by_system(study()) == pytest.approx({"x": 1 / 3, "real": 1 / 2})


def test_a_study_without_the_question_is_one_clear_line() -> None:
    empty = Study.from_items([Document(id="a", text="b", meta={"model": "x"})])
    with pytest.raises(FinecombError, match="no submitted annotation answers question 'coherent'"):
        human_judgements.coherent_share_by_system(empty)


def test_incoherent_organisations_are_counted() -> None:
    assert human_judgements.incoherent_section_sequences(study()).rows() == [
        ("introduction > result", 2),
        ("discussion > discussion", 1),
    ]


def test_latent_ppl_follows_people_better_than_mauve_and_ppl_points_the_wrong_way() -> None:
    """The figures of Table 4; what its text says of them holds as correlations over systems."""
    rows = {str(row["figure"]): row for row in human_judgements.human_correlations(TABLE_4, HUMAN)}
    for name, values in TABLE_4.items():
        x, y = list(values.values()), [HUMAN[system] for system in values]
        assert rows[name]["pearson"] == pytest.approx(stats.pearsonr(x, y).statistic)
        assert rows[name]["spearman"] == pytest.approx(stats.spearmanr(x, y).statistic)
        assert rows[name]["systems"] == len(values)
    assert rows["latent ppl"]["spearman"] == pytest.approx(-0.9)
    assert abs(rows["latent ppl"]["pearson"]) > rows["mauve"]["pearson"] > rows["ppl"]["pearson"] > 0  # type: ignore[arg-type,operator]


def test_too_few_systems_or_no_spread_is_nan_with_a_reason() -> None:
    rows = human_judgements.human_correlations(
        {"few": {"a": 1.0, "b": 2.0}, "flat": {"a": 1.0, "b": 1.0, "c": 1.0}}, {"a": 1.0, "b": 2.0, "c": 3.0}
    )
    assert all(math.isnan(float(str(row["pearson"]))) for row in rows)
    assert [row["why"] for row in rows] == [
        "a correlation needs at least three systems with both values, found 2",
        "the metric or the human judgement is the same for all systems",
    ]


def test_other_figures_come_from_a_table() -> None:
    table = pl.DataFrame({"system": ["a", "b"], "ppl": [11.0, None]})
    figures = human_judgements.metric_values_from_table(table, "m.csv")
    assert figures["ppl"]["a"] == 11
    assert math.isnan(figures["ppl"]["b"])
    with pytest.raises(FinecombError, match=r"m.csv: column 'system' is missing; found x"):
        human_judgements.metric_values_from_table(pl.DataFrame({"x": [1]}), "m.csv")
    with pytest.raises(FinecombError, match=r"m.csv: ppl of a: expected a number, found 'n/a'"):
        human_judgements.metric_values_from_table(pl.DataFrame({"system": ["a"], "ppl": ["n/a"]}), "m.csv")
