# Everything is built into .venv and build/; nothing outside this folder is written but caches.
# Needs: make, a POSIX shell, and Python 3.11 to 3.14 with venv.

.DEFAULT_GOAL := help
SHELL := /bin/sh

PYTHON ?= python3
UPGRADE ?=
PYTEST_ARGS ?=
BENCH_ARGS ?=
SOUNDNESS_ARGS ?=
PAPERS_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
# A user's own pip settings must not reach in.
PIP := PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip
INSTALL := $(PIP) install --quiet --require-hashes --only-binary :all:
WHEEL_VENV := build/wheel-venv

NATIVE := $(wildcard emu/native/*.c emu/native/*.h analyzer/native/*.c analyzer/native/*.h wcet_probe/traces/native/*.c)
# The files that go into the wheel, but no leavings of the interpreter.
PACKAGED := $(shell find wcet_probe allocators analyzer emu examples reports scenarios targets -name __pycache__ -prune -o -type f -print 2>/dev/null)
SCRIPTS := tests bench tools

.PHONY: help demo test soundness papers lint format types contracts docs-check wheel bench lock clean

help: ## say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.package ## create the environment and measure TLSF in its worst state
	@$(BIN)/wcet-probe tlsf --scenario worst-alloc

test: $(VENV)/.dev $(VENV)/.package ## pass the tests (PYTEST_ARGS=… adds options)
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

soundness: $(VENV)/.dev $(VENV)/.package ## run the long campaigns that `make test` leaves out, in slices (SOUNDNESS_ARGS=…)
	@$(BIN)/python tools/soundness.py $(SOUNDNESS_ARGS)

papers: $(VENV)/.package ## reproduce the papers' tables and figures (PAPERS_ARGS=--quick: in minutes)
	@for paper in P02 C06 M06 L11 H11; do $(BIN)/wcet-probe reproduce $$paper $(PAPERS_ARGS) || exit; done

lint: $(VENV)/.dev ## check style and formatting
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .

format: $(VENV)/.dev ## repair formatting and what style can be repaired
	@$(BIN)/ruff check --quiet --fix .
	@$(BIN)/ruff format --quiet .

# From another folder, as it would look at the source tree first.
types: $(WHEEL_VENV)/.installed ## check the types of the package, as it is in the wheel
	@cd $(WHEEL_VENV) && ../../$(BIN)/mypy --config-file ../../pyproject.toml --cache-dir ../../.mypy_cache \
	  --python-executable bin/python --package wcet_probe

# Through the links in wcet_probe/, and without the finder of the editable installation, which knows more folders.
contracts: $(VENV)/.dev $(VENV)/.package ## check who imports whom
	@$(BIN)/python -c 'import sys; sys.meta_path[:] = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]; \
	  from importlinter.cli import lint_imports_command as lint; lint()' --no-cache --no-logo

docs-check: $(VENV)/.dev $(VENV)/.package ## check that paths, commands and options in the docs exist and work
	@$(BIN)/python tools/check_docs.py

wheel: $(VENV)/.dev ## build the wheel into dist/
	@rm -rf dist && mkdir -p dist
	@$(PIP) wheel --quiet --no-build-isolation --no-deps --wheel-dir dist .
	@ls dist/*.whl

bench: $(VENV)/.dev $(VENV)/.package ## measure the speed of the emulator (BENCH_ARGS=… adds options)
	@$(BIN)/python -m bench.emulation $(BENCH_ARGS)

lock: $(VENV)/.created ## write requirements/*.txt anew from pyproject.toml (UPGRADE=1: newest versions)
	@$(INSTALL) -r requirements/lock.txt
	@set -e; \
	compile="$(BIN)/uv --no-config pip compile --quiet --no-header --universal --python-version 3.11 --generate-hashes --only-binary :all:"; \
	compile="$$compile --no-emit-index-url --no-emit-find-links $(if $(UPGRADE),--upgrade)"; \
	$$compile --group build pyproject.toml -o requirements/runtime.txt; \
	$$compile --group build --group dev -c requirements/runtime.txt pyproject.toml -o requirements/dev.txt; \
	$$compile --group lock -o requirements/lock.txt

clean: ## remove the environment and everything built
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The environment, in four steps, each left behind as a file that says when it was done.

$(VENV)/.created:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "$(PYTHON) was not found: install Python 3.11 or newer, or name yours: make demo PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' || { \
	  echo "$(PYTHON) is $$($(PYTHON) --version 2>&1), but Python 3.11 to 3.14 is needed: name one: make demo PYTHON=python3.13" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) lacks the module venv or ensurepip: install it (Debian and Ubuntu: python3-venv), or name another: make demo PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "creating $(VENV) with $$($(PYTHON) --version)" >&2
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.runtime: $(VENV)/.created requirements/runtime.txt
	@echo "installing the locked packages, the cross compiler among them: about 160 MB to download, 630 MB on disk" >&2
	@$(INSTALL) -r requirements/runtime.txt
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements/dev.txt
	@echo "installing what tests and checks need: about 30 MB to download" >&2
	@$(INSTALL) -r requirements/dev.txt
	@touch $@

$(VENV)/.package: $(VENV)/.runtime pyproject.toml CMakeLists.txt $(NATIVE)
	@echo "building the native core and installing wcet-probe into $(VENV)" >&2
	@$(PIP) install --quiet --no-build-isolation --no-deps --editable .
	@touch $@

# An environment that sees the built wheel and the installed packages, but not the source tree:
# the .pth file adds the packages' folder without following the editable install's own .pth file in it.
$(WHEEL_VENV)/.installed: $(VENV)/.dev pyproject.toml CMakeLists.txt $(PACKAGED)
	@rm -rf $(WHEEL_VENV) build/wheel
	@$(BIN)/python -m venv --without-pip $(WHEEL_VENV)
	@$(PIP) wheel --quiet --no-build-isolation --no-deps --wheel-dir build/wheel .
	@$(PIP) --python $(WHEEL_VENV)/bin/python install --quiet --no-index --no-deps build/wheel/*.whl
	@$(WHEEL_VENV)/bin/python -c 'import pathlib, sys, sysconfig; \
	  pathlib.Path(sysconfig.get_path("purelib"), "packages.pth").write_text(sys.argv[1] + "\n")' \
	  "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
	@touch $@
