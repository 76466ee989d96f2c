# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: help demo test check browser bench fuzz peers results screens docs strokes clean

help:
	@echo "make demo    set up, run Table 1 of the paper in small, write a report (3 minutes on 2 fast cores)"
	@echo "make test    set up, check style and types, run all tests"
	@echo "make bench   set up, measure speed as ratios (one thread, a quiet machine)"
	@echo "make fuzz    set up, hostile inputs by the ten thousand, runs killed at random moments (an hour)"
	@echo "make screens set up, take the screens of docs/screens.md again (needs tmux)"
	@echo "make peers   the same tasks through Perdure and avalanche-lib, where that is installed (PEERS=its Python)"
	@echo "make results set up, run what is missing at laptop scale (many hours), collect it, write docs/results.md"
	@echo "make docs    set up, build the documentation site into docs/_build/html; warnings are errors"
	@echo "make strokes MNIST=DIR   set up, make the pen strokes from MNIST's files and compare them with ours"
	@echo "make clean   remove the virtual environment and caches (records in runs/ stay)"

$(VENV)/ready: pyproject.toml constraints.txt hatch_build.py $(wildcard src/perdure/networks/native/*.[ch] src/perdure/networks/cells/*.h)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(VENV)/ready
	@echo "Table 1 of the paper in small: ten methods, one seed instead of ten."
	$(BIN)/perdure reproduce table-1 --scale demo --seeds 1

check: $(VENV)/ready
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy

test: check browser
	$(BIN)/python -m pytest -n 2

# The report is tested in a real browser. Without one those tests are skipped; this step never fails.
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
	  if command -v $$name >/dev/null; then exit 0; fi; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	then :; else echo "No Chromium, and none can be installed here: the browser tests will be skipped."; fi

# TIMES as many cases as `make test` tries of each kind of hostile input, then 100 SIGKILLs and 50 SIGTERM or SIGINT.
TIMES ?= 10
fuzz: $(VENV)/ready
	PERDURE_FUZZ=$(TIMES) $(BIN)/python -m pytest -n 2 tests/test_trust_records.py tests/test_trust_data.py tests/test_trust_options.py
	PYTHONPATH=tools $(BIN)/python -m fuzz

screens: $(VENV)/ready
	PYTHONPATH=tools $(BIN)/python -m screens docs/screens.md

bench: $(VENV)/ready
	$(BIN)/python -m performance

# With the Python that has avalanche-lib, which need not be ours: make peers PEERS=/path/to/python
PEERS ?= $(BIN)/python
peers: $(VENV)/ready
	PYTHONPATH=src $(PEERS) -m performance.peers

results: $(VENV)/ready
	$(BIN)/perdure reproduce all --scale laptop
	$(BIN)/perdure results collect runs
	$(BIN)/perdure results write
	$(BIN)/python docs/figures/table_1.py

docs: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python -m pytest tests/test_site.py
	@echo "docs/_build/html/index.html"

# A tool outside the package: creates the file of pen strokes again from the four files of MNIST.
strokes: $(VENV)/ready
	@test -n "$(MNIST)" || { echo "Name the folder of MNIST's four files: make strokes MNIST=DIR"; exit 2; }
	PYTHONPATH=tools $(BIN)/python -m strokes "$(MNIST)"

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
