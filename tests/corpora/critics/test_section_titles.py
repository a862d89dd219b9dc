from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from finecomb.corpora.critics.section_titles import normalise_title


@pytest.mark.parametrize(
    ("title", "type"),
    [
        ("Materials and Methods", "material and method"),
        ("MATERIAL AND METHOD", "material and method"),
        ("3. Results", "result"),
        ("3.2.1 Statistical analyses", "statistical analysis"),
        ("Acknowledgements", "acknowledgment"),
        ("Case Studies", "case study"),
        ("Boxes, churches and bushes", "box church and bush"),
        ("SYNOPSIS", "synopsis"),
        ("Processes", "process"),
        ("Status", "status"),
        ("Physics", "physics"),
        ("SEE ALSO", "see also"),
        ("RETURN VALUE", "return value"),
        ("BEZEICHNUNG", "bezeichnung"),
        ("SINOPSIS", "sinopsis"),
        ("Author's note", "author's note"),
        ("2024", ""),
        ("Movies", "movie"),
        ("Viruses and causes", "virus and cause"),
        ("News", "news"),
        ("Bias", "bias"),
        ("Biases", "bias"),
        ("Houses, buses and campuses", "house bus and campus"),
        ("结果", "结果"),
    ],
)
def test_a_title_becomes_a_type(title: str, type: str) -> None:
    assert normalise_title(title) == type


@given(st.text())
def test_upper_case_numbers_and_spaces_make_no_difference(title: str) -> None:
    assert normalise_title(f" 1.2 {title} ") == normalise_title(title)
