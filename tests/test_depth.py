"""Common calls pass through few functions, and few functions have only one caller."""

from __future__ import annotations

import pytest

from tests.depth import MAX_HOPS, MAX_SINGLE_USE, count_hops, single_use_per_1000


@pytest.mark.parametrize("call", MAX_HOPS)
def test_a_common_call_passes_through_few_functions_and_files(call: str) -> None:
    functions, files = count_hops(call)
    assert (functions <= MAX_HOPS[call][0], files <= MAX_HOPS[call][1]) == (True, True), (functions, files)


def test_few_functions_have_only_one_caller() -> None:
    assert single_use_per_1000() <= MAX_SINGLE_USE
