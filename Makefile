# Plumbline. `make` lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help

# Options of `make pipeline`, see `make help`.
CORPUS ?=
BENCHMARKS ?=
MODEL ?=
CONF ?=
OUT ?= out
Q ?=

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
VLLM := .venv-vllm
VLLM_STAMP := $(VLLM)/.installed
# Another interpreter: make setup PYTHON=/path/to/python
PYTHON ?=
# Released benchmarks, and reference data for tests, if they are next to the checkout.
PLUMBLINE_DATA ?= $(wildcard ../shared/data)
export PLUMBLINE_DATA CORPUS BENCHMARKS MODEL OUT CONF Q

.PHONY: help setup setup-vllm pipeline test test-slow test-all test-vllm lint mutants docs site report sql bench dist clean

help: ## list the targets
	@echo "Plumbline measures gender preferences of language models and traces them to their training text."
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  make pipeline                      a made-up text; needs no data and no network"
	@echo "  make pipeline CORPUS=my-texts.jsonl.zst MODEL=train:small   your own text, no other data"
	@echo "  make pipeline CORPUS='shards/*.jsonl.zst' BENCHMARKS=winobias,use-5 MODEL=train:small"
	@echo "  PLUMBLINE_MASTER=spark://host:7077 make pipeline ...        on Spark, see docs/cluster.md"
	@echo "  make sql Q=\"SELECT * FROM word_delta ORDER BY delta_nats LIMIT 10\""

setup: $(STAMP) ## create .venv with the pinned versions (once)
	@echo 'Done. Next: make pipeline (a first report in minutes; it downloads nothing)'
	@echo 'For the command plumbline: export PATH="$(CURDIR)/$(BIN):$$PATH"'

$(STAMP): requirements.lock pyproject.toml tools/setup.sh
	@tools/setup.sh $(VENV) $(PYTHON)
	@touch $@

setup-vllm: $(VLLM_STAMP) ## create .venv-vllm for `--backend vllm` (once)

$(VLLM_STAMP): requirements-vllm.lock tools/setup_vllm.sh
	@tools/setup_vllm.sh $(VLLM) $(PYTHON)
	@touch $@

# Without OUT= the settings say where to write.
pipeline: export GIVEN = $(if $(filter file,$(origin OUT)),,$(OUT))
pipeline: $(STAMP) ## count, associate, constrain, score, measure, report
	@$(BIN)/plumbline pipeline $${CORPUS:+--corpus "$$CORPUS"} $${BENCHMARKS:+--benchmarks "$$BENCHMARKS"} \
		$${MODEL:+--model "$$MODEL"} $${GIVEN:+--out "$$GIVEN"} $${CONF:+--config "$$CONF"}

# Each test process runs whole files, one after the other. Three processes make sense even on two
# cores, because tests wait for servers and for other processes.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

test: $(STAMP) ## run the tests that take seconds (real Spark, DuckDB, Prefect and models)
	$(PYTEST) -m "not slow"

test-slow: $(STAMP) ## run the tests that take longer: kills, full disks, schedules
	$(PYTEST) -m slow

test-all: $(STAMP) ## run every test
	$(PYTEST)

test-vllm: $(STAMP) $(VLLM_STAMP) ## run the tests that need vLLM
	$(BIN)/python -m pytest -m vllm

lint: $(STAMP) ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

mutants: $(STAMP) ## seed faults in folders of the last commit, for 8 minutes; a test must notice each
	$(BIN)/python -m tools.mutants --changed --minutes 8

docs: $(STAMP) ## write the pages of docs/ as a site, build/docs/index.html
	@$(BIN)/python -m sphinx -E -W --keep-going -q -d build/doctrees docs build/docs
	@echo "wrote build/docs/index.html"

site: $(STAMP) ## write the pages and, next to them, the report of the released models, build/site
	@test -n "$$PLUMBLINE_DATA" || { echo "error: set PLUMBLINE_DATA, see docs/reproduce.md"; exit 2; }
	@$(BIN)/python -m sphinx -E -W --keep-going -q -t released -d build/doctrees docs build/site
	@$(BIN)/plumbline reproduce unstereoeval --data "$$PLUMBLINE_DATA/unstereo-eval" \
		--warehouse build/released --format csv >build/released.csv
	@$(BIN)/plumbline report --warehouse build/released --out build/site/released >/dev/null
	@echo "wrote build/site/index.html"

report: $(STAMP) ## write the report again from the warehouse
	@$(BIN)/plumbline report --warehouse "$$OUT/warehouse" --out "$$OUT/report"

sql: $(STAMP) ## a SQL shell on the warehouse, or one query with Q="..."
	@$(BIN)/plumbline sql $${Q:+"$$Q"} --warehouse "$$OUT/warehouse"

bench: $(VENV)/.bench ## time Plumbline and comparable libraries
	$(BIN)/python -m benchmarks

$(VENV)/.bench: $(STAMP) requirements-bench.lock
	$(BIN)/python -m pip install --quiet --requirement requirements-bench.lock
	@touch $@

dist: $(STAMP) ## write dist/: the archive and application for spark-submit (docs/cluster.md)
	@$(BIN)/python -m plumbline.pipelines.deployment dist

clean: ## remove what was built and written (not the environments)
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis $(OUT)
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +
