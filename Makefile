# make run    the main job on a built-in network          make lint   ruff, ruff format, mypy
# make test   the tests, with every optional part         make bench  the published tables
# make docs   the documentation, built strictly into build/site
# make sanitize    the native searches' tests under ASan and UBSan
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BOARD ?= mps2-an500
CORE := $(shell find tvm_serenity/cpp -type f)

.PHONY: run test lint docs sanitize bench clean

run: $(VENV)/.run
	$(BIN)/serenity compile zoo:swiftnet --check
	@if command -v arm-none-eabi-gcc >/dev/null && command -v qemu-system-arm >/dev/null; then \
		$(BIN)/serenity build zoo:swiftnet --board $(BOARD) -o build/swiftnet --force && \
		$(BIN)/serenity run build/swiftnet; \
	else \
		echo "To run it on an emulated $(BOARD):"; \
		echo "    apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm"; \
	fi

test: $(VENV)/.test
	$(BIN)/python -m pytest $(PYTEST)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

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
