# make run    the main job on a built-in network          make lint   ruff, mypy, import-linter, English
# make test   the fast tier of the tests                  make bench  the published tables
# make test-exhaustive    every case, every seeded fault, large draws
# make docs   the documentation, built strictly into build/site
# make packages    the source package and its wheels, each tried in clean environments
# make sanitize    the native searches' tests under ASan and UBSan
# make relay-test    the tests of the Relay passes, on a TVM of their own (Linux x86-64)
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BOARD ?= mps2-an500
PYTEST ?= -n auto --dist loadfile --no-loadscope-reorder
CORE := $(shell find tvm_serenity/cpp -type f)

RELAY := .venv-relay
RELAY_PACKAGES := 'numpy<2' 'onnx<1.17' networkx psutil typer rich joblib pytest pytest-xdist
ifeq ($(shell uname -sm),Linux x86_64)
RELAY_TEST := relay-test
endif

.PHONY: run test test-exhaustive relay-test lint docs packages sanitize bench clean

run: $(VENV)/.run
	$(BIN)/serenity compile zoo:swiftnet --check
	@if command -v arm-none-eabi-gcc >/dev/null && command -v qemu-system-arm >/dev/null; then \
		$(BIN)/serenity build zoo:swiftnet --board $(BOARD) -o build/swiftnet --force && \
		$(BIN)/serenity run build/swiftnet; \
	else \
		echo "To run it on an emulated $(BOARD):"; \
		echo "    apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm"; \
	fi

test: $(VENV)/.test $(RELAY_TEST)
	scripts/system_packages.sh
	$(BIN)/python -m pytest --ignore=tests/relay $(PYTEST)

test-exhaustive: export SERENITY_EXHAUSTIVE = 1
test-exhaustive: test

relay-test: $(RELAY)/.test
	$(RELAY)/bin/python -m pytest tests/relay $(PYTEST)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy benchmarks scripts
	$(BIN)/python scripts/lint_imports.py
	$(BIN)/python scripts/lint_english.py

docs: $(VENV)/.test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

packages:
	$(PYTHON) scripts/try_packages.py

sanitize: $(VENV)/.test
	scripts/sanitize.sh

bench: $(VENV)/.test $(if $(RELAY_TEST),$(RELAY)/.test)
	for table in $(filter-out benchmarks/relay.py,$(wildcard benchmarks/*.py)); do \
		$(BIN)/python $$table || exit 1; done
	$(if $(RELAY_TEST),$(RELAY)/bin/python benchmarks/relay.py)

clean:
	rm -rf $(VENV) $(RELAY) build dist

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip

$(VENV)/.run: $(BIN)/python pyproject.toml $(CORE)
	$(BIN)/pip install --editable '.[run]'
	touch $@

$(VENV)/.test: $(BIN)/python pyproject.toml $(CORE)
	$(BIN)/pip install --editable '.[all,test,lint]'
	touch $@ $(VENV)/.run

$(RELAY)/.test: scripts/install_relay_tvm.sh pyproject.toml $(CORE)
	scripts/install_relay_tvm.sh $(RELAY) $(PYTHON)
	$(RELAY)/bin/pip install --quiet $(RELAY_PACKAGES)
	$(RELAY)/bin/pip install --quiet --no-deps --editable .
	touch $@
