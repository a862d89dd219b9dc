from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.annotators.coreference.chains import (
    Chains,
    TokenChains,
    b_cubed,
    build_chains,
    load_passages,
    muc,
    parse_passage,
    read_chains,
)
from finecomb.core.errors import FormatError

mentions = st.integers(0, 9).map(lambda at: (at, at + 1))


@st.composite
def partitions(draw: st.DrawFn) -> Chains:
    people = draw(st.lists(st.integers(0, 3), min_size=10, max_size=10))
    return build_chains([(at, at + 1) for at, who in enumerate(people) if who == person] for person in range(3))


def test_muc_reproduces_vilain_1995() -> None:
    """Their example is {A B C D} against {A B} {C D}, which keeps two of three links."""
    gold = [[(1, 2), (2, 3), (3, 4), (4, 5)]]
    score = muc([(gold, [[(1, 2), (2, 3)], [(3, 4), (4, 5)]])])
    assert score.recall == pytest.approx(2 / 3)
    assert score.precision == 1


def test_b_cubed_reproduces_bagga_and_baldwin_1998() -> None:
    """The truth is {1-5} {6 7} {8-12}; one response joins the first two chains, the other the first and last."""
    truth: Chains = [[(n, n + 1) for n in group] for group in ([1, 2, 3, 4, 5], [6, 7], [8, 9, 10, 11, 12])]
    second = [truth[0], truth[1] + truth[2]]
    first = [truth[0] + truth[2], truth[1]]
    assert b_cubed([(truth, second)]).precision == pytest.approx(0.762, abs=1e-3)
    assert b_cubed([(truth, first)]).precision == pytest.approx(0.583, abs=1e-3)
    assert b_cubed([(truth, first)]).recall == b_cubed([(truth, second)]).recall == 1
    assert muc([(truth, first)]).precision == muc([(truth, second)]).precision == pytest.approx(0.9)


@given(partitions(), partitions())
def test_scores_lie_between_0_and_1_and_swap(gold: Chains, predicted: Chains) -> None:
    for score in (muc, b_cubed):
        one, other = score([(gold, predicted)]), score([(predicted, gold)])
        assert 0 <= one.recall <= 1
        assert (one.recall, one.precision) == (other.precision, other.recall)
        if gold:
            assert score([(gold, gold)]).f1 == pytest.approx(1)


def test_the_shipped_passages_are_sound() -> None:
    labelled_texts = load_passages()
    assert sum(passage.id.startswith("held-out") for passage in labelled_texts) >= 20
    for passage in labelled_texts:
        assert passage.chains, passage.id
        assert "[" not in passage.text
        assert "|" not in passage.text
        assert all(
            passage.text[start:end].strip() == passage.text[start:end]
            for chain in passage.chains
            for start, end in chain
        )


def test_json_chains_are_read(tmp_path: Path) -> None:
    path = tmp_path / "chains.json"
    path.write_text(json.dumps({"a": [[[0, 3], [10, 13]], [[4, 5]]]}))
    assert read_chains(path) == {"a": [[(0, 3), (10, 13)]]}


CONLL = """#begin document (plot); part 000
plot 0 0 Ann NNP (1)
plot 0 1 saw VBD -
plot 0 2 her PRP$ (2|(1)
plot 0 3 mother NN 2)
plot 0 4 . . -

plot 0 0 She PRP (2)
plot 0 1 left VBD -
plot 0 2 . . -
#end document
"""


def test_conll_chains_are_laid_over_the_text(tmp_path: Path) -> None:
    path = tmp_path / "chains.conll"
    path.write_text(CONLL)
    chains = read_chains(path)["plot"]
    assert isinstance(chains, TokenChains)
    text = "Ann saw her mother.\nShe left."
    mentions = [[text[start:end] for start, end in chain] for chain in chains.align_to_text(text, "x")]
    assert mentions == [["Ann", "her"], ["her mother", "She"]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", '{"a": [[[0, "x"]]]}', r"a\.0\.0\.1: expected \{ID: \[\[\[start, end\]"),
        ("a.json", "{", "line 1"),
        ("a.conll", "x 0 0 Ann NNP (1)\n", "a.conll:1: the line is outside a document; add `#begin document"),
        (
            "a.conll",
            "#begin document (x)\nx 0 0 Ann NNP 1)\n#end document\n",
            "a.conll:2: a mention of entity '1' ends but does not begin",
        ),
        (
            "a.conll",
            "#begin document (x)\nx 0 0 Ann NNP (1\n#end document\n",
            "a mention of entity '1' begins but does not end",
        ),
        ("a.conll", "#begin document (x)\nx 0 0\n#end document\n", "a.conll:2: the line has 3 columns"),
        ("a.conll", "#begin document (x)\nx 0 0 Ann NNP -\n", "'x' has no `#end document`"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(FormatError, match=message):
        read_chains(path)


def test_words_that_are_not_in_the_text_are_refused() -> None:
    with pytest.raises(FormatError, match=r"expected word 'saw' in the document, found 'met Bo\."):
        TokenChains(("Ann", "saw"), ()).align_to_text("Ann met Bo.", "chains.conll: plot")


def test_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot read the coreference chains"):
        read_chains(tmp_path / "none.json")


def test_labels_become_offsets() -> None:
    passage = parse_passage("a", "[Ann|0]'s [mother|1] called. [She|1] wept.")
    assert [[passage.text[start:end] for start, end in chain] for chain in passage.chains] == [["mother", "She"]]
