# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: help demo test check browser bench peers results strokes clean

help:
	@echo "make demo    set up, run Table 1 of the paper with one seed, write a report (13 minutes on 2 cores)"
	@echo "make test    set up, check style and types, run all tests"
	@echo "make bench   set up, measure speed as ratios (one thread, a quiet machine)"
	@echo "make peers   the same tasks through Perdure and avalanche-lib, where that is installed (PEERS=its Python)"
	@echo "make results set up, create docs/report.html again: Table 1 with five seeds, six items with one (two hours)"
	@echo "make strokes MNIST=DIR   set up, make the pen strokes from MNIST's files and compare them with ours"
	@echo "make clean   remove the virtual environment and caches (records in runs/ stay)"

$(VENV)/ready: pyproject.toml constraints.txt hatch_build.py $(wildcard src/perdure/networks/native/*.[ch])
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(VENV)/ready
	@echo "Table 1 of the paper: ten methods, one seed instead of ten, at most a quarter of its iterations."
	$(BIN)/perdure reproduce table-1 --scale laptop --seeds 1

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

bench: $(VENV)/ready
	$(BIN)/python -m performance

# With the Python that has avalanche-lib, which need not be ours: make peers PEERS=/path/to/python
PEERS ?= $(BIN)/python
peers: $(VENV)/ready
	PYTHONPATH=src $(PEERS) -m performance.peers

results: $(VENV)/ready
	$(BIN)/perdure reproduce table-1 supervised --scale laptop --seeds 5
	$(BIN)/perdure reproduce table-2 transfer single-head flatness intuition theory --scale laptop --seeds 1
	$(BIN)/perdure report --out docs/report.html

# A tool outside the package: creates the file of pen strokes again from the four files of MNIST.
strokes: $(VENV)/ready
	@test -n "$(MNIST)" || { echo "Name the folder of MNIST's four files: make strokes MNIST=DIR"; exit 2; }
	PYTHONPATH=tools $(BIN)/python -m strokes "$(MNIST)"

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
