# Everything a developer runs. Each target prepares its own environment in .venv; ARGS="…" is passed on.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup test test-long test-faults check demo bench docs clean

BIN := .venv/bin
JOBS ?= 2
READY := .venv/.ready

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16

setup: $(READY)  ## make .venv with Windrow and the pinned packages (again only when they change)

$(READY): pyproject.toml constraints.txt scripts/setup
	@scripts/setup .venv
	@touch $@

test: $(READY)  ## run the tests and the examples in the documentation
	@$(BIN)/pytest -n $(JOBS) --dist loadfile $(ARGS)

test-long: $(READY)  ## run the tests that take minutes: processes killed, clusters, whole recordings
	@$(BIN)/pytest -m long $(ARGS)

test-faults: $(READY)  ## run the long tests of bad input and of things going wrong
	@$(BIN)/pytest tests/faults -m long $(ARGS)

check: $(READY)  ## formatting, lint, types, import layers, the repository itself, known weaknesses of packages
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python scripts/check_repository.py
	@$(BIN)/python scripts/audit_dependencies.py

demo: $(READY)  ## join three generated streams on Spark, with a live table
	@$(BIN)/windrow demo $(ARGS)

bench: $(READY)  ## measure against DuckDB, Polars and hand-written loops
	@$(BIN)/windrow bench $(ARGS)

docs: $(READY)  ## build the documentation into site, with its links checked
	@$(BIN)/python scripts/reference.py --check
	@$(BIN)/mkdocs build --strict --quiet
	@echo site/index.html

clean:  ## remove .venv, caches and build products
	@rm -rf .venv build dist site .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache src/*.egg-info
	@find src tests scripts -type d -name __pycache__ -prune -exec rm -rf {} +
