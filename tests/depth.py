"""Counts of how far a reader has to jump: functions and files behind a call, and functions with one caller.

Run `python -m tests.depth` to print the counts.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import finecomb as fc

MAX_HOPS = {
    "fc.agree(study, measure='alpha')": (65, 15),
    "fc.measure(study)": (71, 15),
    "fc.score(study)": (69, 15),
}
"""Maximum numbers of functions and files behind a call on the demo study, as measured.

The aim is 50 functions in 12 files. Clusters and studentised intervals added the difference.
"""
MAX_SINGLE_USE = 27.0
"""Maximum number of functions with one caller per 1,000 statements."""

ROOT = Path(fc.__file__).parent
COMPREHENSIONS = {"<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>", "<module>"}


def count_hops(expression: str) -> tuple[int, int]:
    """Return the numbers of our functions and of their files that the evaluation of an expression enters."""
    entered: set[tuple[str, str, int]] = set()

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)) and code.co_name not in COMPREHENSIONS:
            entered.add((code.co_filename, code.co_name, code.co_firstlineno))

    eval(expression, {"fc": fc, "study": fc.demo()})  # modules are imported here, not in the count
    study, before = fc.demo(), sys.getprofile()  # a new study, since results may be cached on it
    sys.setprofile(profile)
    try:
        eval(expression, {"fc": fc, "study": study})
    finally:
        sys.setprofile(before)
    return len(entered), len({file for file, _, _ in entered})


def single_use_per_1000(root: Path = ROOT) -> float:
    """Return the number of functions whose name is used once, per 1,000 statements.

    Decorated functions and special methods are not counted, since frameworks and the language call them.
    """
    uses: Counter[str] = Counter()
    functions: list[str] = []
    statements = 0
    for file in root.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            statements += isinstance(node, ast.stmt)
            if isinstance(node, ast.Name):
                uses[node.id] += 1
            elif isinstance(node, ast.Attribute):
                uses[node.attr] += 1
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list:
                functions += [] if node.name.startswith("__") and node.name.endswith("__") else [node.name]
    return 1000 * sum(uses[name] == 1 for name in functions) / statements


if __name__ == "__main__":
    for call in MAX_HOPS:
        print("{:4} functions in {:3} files: {}".format(*count_hops(call), call))
    print(f"{single_use_per_1000():.1f} functions with one caller per 1,000 statements")
