# Two commands for everyone: `make demo` and `make test`. Both need Python 3.11+ and make, nothing else.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
STATE := .dtef
DEMO_SUITES := --suites data/questions/suites.yaml
export DAGSTER_HOME := $(CURDIR)/$(STATE)/dagster
export DTEF_WAREHOUSE := $(CURDIR)/$(STATE)/warehouse
export DTEF_RESPONSES := $(CURDIR)/$(STATE)/responses.sqlite
# install.py compiles nothing: where no bytecode may be kept, every process that a command or a test starts compiles all of Dagster again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test test-thorough format ui docs lock figures wheel clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

setup: $(BIN)/.installed ## create .venv with the locked packages

$(BIN)/.runs: requirements.lock pyproject.toml install.py
	@test -n "$(PYTHON)" || { echo "DTEF needs Python 3.11 or newer, which was not found. Set its path: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) install.py
	touch $@

$(BIN)/.installed: $(BIN)/.runs
	$(PYTHON) install.py --all
	touch $@

demo: $(BIN)/.runs ## run the pipeline offline on the shipped samples, print the boards of surveys, rubrics, questions, games and votes, and write the report
	$(BIN)/dtef add data/rounds/S1 data/rounds/S2
	$(BIN)/dtef run --round S1 --round S2 --context 0 --context 5 \
		--model baselines --model local/smollm2-135m --limit local/smollm2-135m=12
	@echo
	@echo "Rubrics: two blueprints on stored, invented responses. Functions and similarity are computed now; the judges' verdicts are invented, too."
	$(BIN)/dtef import responses data/stored_responses.jsonl
	$(BIN)/dtef rubric add data/blueprints
	$(BIN)/dtef rubric run --blueprint 'demo-*'
	$(BIN)/dtef rubric board --by blueprint --blueprint 'demo-*'
	@echo
	@echo "Human preference: a page with pairs of these responses to vote on, and 128 votes from eight reviewers. Votes, reviewers and"
	@echo "models are invented. The report shows the scores on a separate page."
	$(BIN)/dtef preference pairs --family rubric --pattern 'demo-*' --per-item 3
	$(BIN)/dtef preference vote --family rubric --reviewer you --pairs 10 --out $(STATE)/votes_page
	$(BIN)/dtef import votes data/stored_votes.jsonl
	$(BIN)/dtef preference board --refresh
	@echo
	@echo "Questions: 80 invented items in the layouts of MMLU, GSM8K, HumanEval and Socioscope. The small local model answers six of them now;"
	@echo "its answers to the others are stored. Code that it wrote runs in a sandbox; without a sandbox it gets no score."
	$(BIN)/dtef import responses data/stored_answers.jsonl
	$(BIN)/dtef qa add demo-mmlu data/questions/mmlu $(DEMO_SUITES)
	$(BIN)/dtef qa add demo-gsm8k data/questions/gsm8k $(DEMO_SUITES)
	$(BIN)/dtef qa add demo-humaneval data/questions/humaneval $(DEMO_SUITES)
	$(BIN)/dtef qa add demo-socioscope data/questions/socioscope/questions.json --corpus data/questions/socioscope $(DEMO_SUITES)
	$(BIN)/dtef qa run --suite 'demo-*' --model local/smollm2-135m --judge none
	$(BIN)/dtef qa board --suite 'demo-*'
	@echo
	@echo "Games: baselines, which are simple rules, play five scenarios in all seats, with ten seeds each. The small local model plays two seeds of"
	@echo "Kuhn poker against perfect play, which takes three responses. That is too few episodes to judge it, so it has no interval."
	$(BIN)/dtef games run --player baselines --seeds 1-10 --no-roll-ups
	$(BIN)/dtef games run --scenario poker/kuhn --player local/smollm2-135m --opponent nash --seeds 7-8
	$(BIN)/dtef games board
	$(BIN)/dtef report --out $(STATE)/report
	@echo
	@echo "Report on all of these: $(STATE)/report/index.html; voting page: $(STATE)/votes_page/votes.html"
	@echo "Dagster UI on the same state: make ui"

test: setup ## run all checks: formatting, lint, types and tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@mkdir -p $(STATE); $(BIN)/mypy > $(STATE)/mypy.log 2>&1 & types=$$!; \
	$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal $(THOROUGH); tests=$$?; \
	wait $$types; types=$$?; cat $(STATE)/mypy.log; \
	exit $$((tests | types))

test-thorough: THOROUGH := -m "" --hypothesis-profile thorough
test-thorough: test ## run all checks with the long simulations and eight times as many examples per property

format: setup ## format the code and fix lint errors where possible
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

ui: $(BIN)/.runs ## open Dagster's UI on the state of `make demo`
	$(BIN)/dtef ui

docs: setup ## build the documentation as a searchable site in build/docs, and write the reference and data/panel.yaml again
	$(BIN)/python -m docs.panel
	$(BIN)/python -m docs.reference
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

lock: ## compile requirements.lock again (needs uv)
	uv pip compile --universal --generate-hashes --no-emit-index-url --no-header --all-extras --python-version 3.11 \
		pyproject.toml --output-file requirements.lock

figures: setup ## measure the numbers and take the pictures of the docs on the state of `make demo` (some minutes; needs Chromium)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.figures

wheel: setup ## build the wheel into dist/
	$(BIN)/python -m hatchling build -t wheel

clean: ## remove the environment and all state
	rm -rf .venv $(STATE) dist
