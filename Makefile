# Copyright (c) 2026 The tensorrt_llm (independent implementation) contributors.
# SPDX-License-Identifier: Apache-2.0
# Every command a developer needs; `make` lists them. Python 3.10 or later, make, a C++ compiler and
# a package index are enough: cmake, ninja and the rest come as pinned packages into .venv.

VENV := .venv
BIN := $(VENV)/bin
# The site's builder has an environment of its own: its pins are not ours.
DOCS_ENV := build/docs-env
# Groups of tests that run side by side, each in a process with one thread of Torch.
PROCESSES ?= 2
# An environment that exists keeps its Python; naming another one makes it anew.
PYTHON ?= $(or $(wildcard $(BIN)/python),python3)
CPP_SOURCES = $(shell find cpp benchmarks -name '*.h' -o -name '*.cpp')
PYTHON_SOURCES := tensorrt_llm tests examples benchmarks scripts
# The folders of that list that exist, so that a checker never trips over an absent one.
CHECKED = $(wildcard $(PYTHON_SOURCES))
TYPED = $(filter-out tests,$(CHECKED))

.DEFAULT_GOAL := help
# The targets share .venv and build/, and the order of the tests is part of the output.
.NOTPARALLEL:
.PHONY: help setup demo docs test sanitize fuzz mutants peers browser page regression test-cpp test-python lint format clean distclean

help:  ## List the commands
	@grep -hE '^[a-z-]+:.*##' Makefile | awk -F ':.*## ' '{printf "make %-12s %s\n", $$1, $$2}'
	@echo
	@echo 'Variables: PYTHON=python3.12   the Python that .venv is made with'
	@echo '           SYSTEM_SITE=1       use the torch that this Python already has'
	@echo '           TORCH_INDEX=URL     an extra package index to take torch from'
	@echo '           RIVALS_DIR=FOLDER   where make peers puts them (build/rivals)'
	@echo '           PEERS=vllm          which of them make peers makes'
	@echo '           TESTS=tests/unittest/inputs   what make test-python runs, one after the other'
	@echo '           PROCESSES=2         how many groups of tests run side by side, without TESTS'

setup:  ## Make .venv, build the extension module, install (seconds when nothing changed)
	@$(PYTHON) scripts/setup_env.py $(if $(SYSTEM_SITE),--system-site) \
		$(if $(TORCH_INDEX),--torch-index $(TORCH_INDEX))

demo: setup  ## Start the server on the demo model and play the loop of repeated audio requests
	@$(BIN)/python examples/demo.py

test: test-cpp test-python  ## Run the C++ tests, then the Python tests

test-cpp: setup  ## Build and run the C++ tests only
	PYTHON="$(CURDIR)/$(BIN)/python" cpp/run_tests.sh

sanitize: setup  ## Run the C++ tests under ASan and UBSan, then those with threads under TSan
	PYTHON="$(CURDIR)/$(BIN)/python" SANITIZE=address,undefined TRTLLM_FUZZ_STEPS=$(or $(FUZZ_STEPS),500) \
		cpp/run_tests.sh
	PYTHON="$(CURDIR)/$(BIN)/python" SANITIZE=thread CPP_TESTS=kvCacheManagerThreadsTest cpp/run_tests.sh

fuzz: setup  ## Run the libFuzzer target for FUZZ_SECONDS (60); needs clang++
	PYTHON="$(CURDIR)/$(BIN)/python" cpp/run_fuzzer.sh $(or $(FUZZ_SECONDS),60)

mutants: setup  ## Leave out each part of the block key, then each rule of a family, and see that a test fails
	$(BIN)/python scripts/mutate_block_key.py
	$(BIN)/python scripts/mutate_families.py

peers:  ## Make the environments of the rivals that benchmarks run beside ours (minutes; no test needs them)
	@RIVALS_DIR="$(RIVALS_DIR)" $(PYTHON) scripts/setup_peers.py $(PEERS)

browser:  ## Install Debian's Chromium if there is none; without it the tests of the page are skipped
	@command -v chromium >/dev/null || { \
		apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium >/dev/null; } || \
		echo 'browser: no Chromium here, and this user cannot install one: tests of the page will be skipped'

page: setup browser  ## Test the server's page in Chromium, time it and take its pictures
	$(BIN)/python -m pytest tests/integration/test_page.py
	$(BIN)/python benchmarks/page.py --images docs/images --json benchmarks/results/page.json

regression: setup  ## Count the instructions of the core paths and compare them with the baseline
	@command -v valgrind >/dev/null || { \
		apt-get update -qq && apt-get install -qq -y --no-install-recommends valgrind >/dev/null; } || \
		echo 'regression: no valgrind here, and this user cannot install it'
	$(BIN)/python benchmarks/check_regression.py

test-python: setup  ## Run the Python tests only
	$(BIN)/python -m pytest $(if $(TESTS),$(TESTS),--numprocesses $(PROCESSES) --dist loadgroup)

docs: setup  ## Build the documentation as a site, build/docs/index.html
	$(BIN)/python scripts/describe_configuration.py
	@test -x $(DOCS_ENV)/bin/mkdocs || $(BIN)/python -m venv $(DOCS_ENV)
	@$(DOCS_ENV)/bin/python -m pip install --quiet --requirement requirements/docs.txt
	NO_MKDOCS_2_WARNING=1 $(DOCS_ENV)/bin/mkdocs build --strict --quiet
	@! grep -l '<[^>]* src="https\?://' build/docs/*.html || (echo 'pages load scripts from elsewhere'; false)
	@echo 'built: build/docs/index.html'

lint: setup  ## Check formatting, lint and types (changes nothing)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/mypy $(TYPED)
	$(BIN)/clang-format --dry-run -Werror $(CPP_SOURCES)

format: setup  ## Format Python and C++, and apply the lint fixes that are safe
	$(BIN)/ruff check --fix $(CHECKED)
	$(BIN)/ruff format $(CHECKED)
	$(BIN)/clang-format -i $(CPP_SOURCES)

clean:  ## Remove build outputs and caches, keep .venv and the rivals' environments
	find build -mindepth 1 -maxdepth 1 ! -name rivals -exec rm -rf {} + 2>/dev/null || true
	rm -rf dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find $(CHECKED) -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean  ## Remove those as well
	rm -rf $(VENV) build
