"""Run the benchmarks named on the command line, or all of them: each module here with a `main`.

Tables are written to the documentation and ratios to `ratios.json`. With `--check`, ratios are compared with the stored
ones instead, and the exit code is 1 if one is more than 50% worse.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Sequence

import benchmarks
from benchmarks._ratios import describe_regressions, measured_ratios, read_stored_ratios, store_ratios


def run_benchmarks(words: Sequence[str]) -> None:
    known = [module.name for module in pkgutil.iter_modules(benchmarks.__path__) if not module.name.startswith("_")]
    names = [word for word in words if word != "--check"]
    for name in names or known:
        if name not in known:
            sys.exit(f"unknown benchmark {name!r}; available: {', '.join(known)}")
    for name in names or known:
        print(f"\n== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()
    if "--check" not in words:
        store_ratios(measured_ratios)
    elif lines := describe_regressions(measured_ratios, read_stored_ratios()):
        sys.exit("\n".join(["worse than the stored ratios:", *lines]))
    else:
        print(f"none of {len(measured_ratios)} ratios is worse than its stored value")


if __name__ == "__main__":
    run_benchmarks(sys.argv[1:])
