"""Run the benchmarks named on the command line, or all of them: every module here with a `main`.

Tables go into the documentation and ratios into `ratios.json`. With `--check` ratios are compared with those kept there
instead; the run ends with 1 where one has become worse by more than half.
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
            sys.exit(f"no benchmark is called {name!r}; there are: {', '.join(known)}")
    for name in names or known:
        print(f"\n== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()
    if "--check" not in words:
        store_ratios(measured_ratios)
    elif lines := describe_regressions(measured_ratios, read_stored_ratios()):
        sys.exit("\n".join(["worse than the ratios that are kept:", *lines]))
    else:
        print(f"none of {len(measured_ratios)} ratios is worse than the one that is kept")


if __name__ == "__main__":
    run_benchmarks(sys.argv[1:])
