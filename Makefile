# Two commands: `make demo` shows it, `make test` proves it. Each needs only Python >= 3.11 and make.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= auto
# Each process that runs tests would otherwise compile all of them anew, every time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check lint docs clean

demo: .venv/.core
	$(BIN)/tilewright show resnet18
	$(BIN)/tilewright show edge_tpu_like
	$(BIN)/tilewright check edge_tpu_like resnet18
	$(BIN)/tilewright plan resnet18 --on edge_tpu_like --verify -o out/demo

test: lint docs
	$(BIN)/pytest -q -n $(JOBS)

check: lint
	$(BIN)/pytest -q -n $(JOBS) -m "not slow"

lint: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/.dev
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

.venv/.core: .venv/bin/python pyproject.toml setup.py $(wildcard src/tilewright/*/_*.c src/tilewright/*/*.h)
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

.venv/.dev: .venv/bin/python pyproject.toml setup.py $(wildcard src/tilewright/*/_*.c src/tilewright/*/*.h)
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch .venv/.core $@

clean:
	rm -rf .venv docs/_build dist build src/*.egg-info src/tilewright/*/*.so
