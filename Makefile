# `make` alone prints what can be made.
PYTHON ?=
HOST ?= 127.0.0.1
PORT ?= 8501
ARGS ?=
LOCKED ?=
GPU ?=
MODEL ?=

VENV_PYTHON := .venv/bin/python
FETCH := $(VENV_PYTHON) -m pipelines.models.fetch $(or $(MODEL),default)

# Nothing reports home: neither the interface libraries nor the model library.
export GRADIO_ANALYTICS_ENABLED := False
export HF_HUB_DISABLE_TELEMETRY := 1
export PYTHON LOCKED GPU

.DEFAULT_GOAL := help
.PHONY: help run space index install models test pytest lint format verify bench bench-gpu samples screenshots lock audit install-dev install-research browser postgresql clean

help: ## Print this list
	@echo "Targets:"
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' Makefile
	@echo
	@echo "Variables: PYTHON=python3.12   the Python to build .venv with (3.11 or newer)"
	@echo "           HOST=127.0.0.1 PORT=8501   where \`make run\` serves"
	@echo "           MODEL=small|large   fetch fewer or more weights than the default's (README.md)"
	@echo "           LOCKED=1   install the very versions of the locks, by their checksums"
	@echo "           GPU=1      on Linux, PyTorch with CUDA (4.5 GB more); GPU=0 goes back"
	@echo "           ARGS=\"-k drad -x\"   passed on to pytest by \`make test\` and \`make verify\`"

run: install ## Install what is missing, then serve the workbench
	@$(FETCH) --optional
	@exec $(VENV_PYTHON) -m streamlit run app/workbench.py --server.address "$(HOST)" \
		--server.port "$(PORT)" --server.headless true --browser.gatherUsageStats false

space: install ## Install what is missing, then serve the public page with its API and MCP server
	@$(FETCH) --optional
	@GRADIO_SERVER_NAME="$(HOST)" GRADIO_SERVER_PORT="$(PORT)" exec $(VENV_PYTHON) app/space.py

index: install ## Build the search indexes of the sample library
	@$(FETCH) --optional
	$(VENV_PYTHON) -m pipelines index

install: ## Create .venv and install what the app needs, with uv or pip; at once when nothing changed
	@python=$$(sh scripts/find_python.sh) && "$$python" scripts/environment.py

models: install ## Fetch the weights of the default models, or what MODEL names
	@$(FETCH)

test: install-dev browser models ## Install what is missing, then run every check of a change
	@# Types are checked while the tests begin: neither keeps two cores busy all the time.
	@$(MAKE) --no-print-directory --jobs=2 lint pytest

pytest: install-dev browser models ## Run the tests alone
	@# Compiled files are kept, whatever the machine says: each process would compile every test anew.
	PYTHONDONTWRITEBYTECODE= $(VENV_PYTHON) -m pytest -m "not verify" --numprocesses 2 --dist loadfile \
		--no-loadscope-reorder $(ARGS)

lint: install-dev ## Check style, formatting and types
	$(VENV_PYTHON) -m ruff check
	$(VENV_PYTHON) -m ruff format --check
	$(VENV_PYTHON) -m basedpyright

format: install-dev ## Format the code and correct what can be corrected automatically
	$(VENV_PYTHON) -m ruff check --fix
	$(VENV_PYTHON) -m ruff format

verify: install-dev browser postgresql models ## Run everything, long tests too; result in verify-results/
	$(VENV_PYTHON) -m scripts.verify $(ARGS)

bench: install-dev models ## Measure the engine against its longest chain of calls, and how stores grow
	$(VENV_PYTHON) -m scripts.bench
	$(VENV_PYTHON) -m scripts.bench_growth

bench-gpu: install-dev models ## Measure local models on the graphics card; ARGS="--shape small" for the processor
	$(VENV_PYTHON) -m scripts.bench_gpu $(ARGS)

samples: install models ## Record sample questions anew with the embedded model, and choose what is shipped
	$(VENV_PYTHON) -m pipelines.samples.record

screenshots: install-dev browser models ## Picture every page of both front ends into screenshots/; ARGS="--readme"
	$(VENV_PYTHON) -m scripts.screenshots $(ARGS)

lock: install-dev ## Choose the newest versions; writes requirements*.lock and docs/licences.md
	$(VENV_PYTHON) -m scripts.dependencies lock

audit: install-dev ## Ask, over the network, which locked packages have known vulnerabilities
	$(VENV_PYTHON) -m scripts.dependencies audit

install-dev: ## As install, with the tools that check and test
	@python=$$(sh scripts/find_python.sh) && "$$python" scripts/environment.py --dev

install-research: ## As install, with what the research commands need
	@python=$$(sh scripts/find_python.sh) && "$$python" scripts/environment.py --research

browser: install-dev ## Find or install the Chromium that browser tests drive
	@$(VENV_PYTHON) -m scripts.programs browser

postgresql: install-dev ## Find or install the PostgreSQL that database tests start
	@$(VENV_PYTHON) -m scripts.programs postgresql

clean: ## Delete caches; .venv and your data in .veriscope stay
	rm -rf .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -not -path "./.venv/*" -prune -exec rm -rf {} +
