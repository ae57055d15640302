# make run    the main job on a built-in network          make lint   ruff, ruff format, mypy
# make test   the tests, with every optional part         make bench  the published tables
# make sanitize    the native searches' tests under ASan and UBSan
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(shell find tvm_serenity/cpp -type f)

.PHONY: run test lint sanitize bench clean

run: $(VENV)/.run
	$(BIN)/serenity compile zoo:swiftnet --check

test: $(VENV)/.test
	$(BIN)/python -m pytest $(PYTEST)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

sanitize: $(VENV)/.test
	scripts/sanitize.sh

bench: $(VENV)/.test
	for table in benchmarks/*.py; do $(BIN)/python $$table || exit 1; done

clean:
	rm -rf $(VENV) build dist

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip

$(VENV)/.run: $(BIN)/python pyproject.toml $(CORE)
	$(BIN)/pip install --editable .
	touch $@

$(VENV)/.test: $(BIN)/python pyproject.toml $(CORE)
	$(BIN)/pip install --editable '.[all,test,lint]'
	touch $@ $(VENV)/.run
