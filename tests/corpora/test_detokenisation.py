from __future__ import annotations

import pytest

from finecomb.corpora.detokenisation import detokenise


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ("Hello , world !", "Hello, world!"),
        ("They 've said it is n't Ann 's .", "They've said it isn't Ann's."),
        ("( see [ 3 ] ) ; then", "(see [3]); then"),
        ('He said : " Go on . " Then he left .', 'He said: "Go on." Then he left.'),
        ("`` Well , '' she said .", '"Well," she said.'),
        ("a well @-@ known 3 @.@ 5 km", "a well-known 3.5 km"),
        ("50 % of $ 20", "50% of $20"),
        ("One .\n\nTwo .", "One.\n\nTwo."),
    ],
)
def test_signs_go_back_to_their_words(tokens: str, text: str) -> None:
    assert detokenise(tokens) == text


@pytest.mark.parametrize(
    "text", ['She said "yes" and left. (It\'s 3.5%.)', "Fish & chips - 5 €", "l'été, c'est ça : oui", ""]
)
def test_a_text_as_people_write_it_stays(text: str) -> None:
    assert detokenise(text) == text.replace(" : ", ": ")
