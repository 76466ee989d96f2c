# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: help demo test check browser bench results clean

help:
	@echo "make demo    set up, learn five tasks one after the other, and see what is forgotten"
	@echo "make test    set up, check style and types, run all tests"
	@echo "make bench   set up, measure speed as ratios (one thread, a quiet machine)"
	@echo "make results set up, run the five-seed table of docs/results.md (over an hour)"
	@echo "make clean   remove the virtual environment and caches (records in runs/ stay)"

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

demo: $(VENV)/ready
	$(BIN)/perdure run permuted-copy fine-tuning --seed 0 --plot accuracy.png
	@echo "The first tasks are forgotten: see accuracy.png. What prevents it: perdure list"

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

results: $(VENV)/ready
	$(BIN)/python -m performance.results

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
