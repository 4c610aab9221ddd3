# The same verbs at the desk and in CI. Needs make, git and Python 3.11 or newer with venv; the rest installs itself.

PYTHON ?= python3
# Test processes: one more than the two processors of CI, because many tests wait for a server, a browser or Spark.
JOBS ?= 3
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
# pip and uv would compile modules on one processor; COMPILED does it on all of them.
PIP = DIST_EXTRA_CONFIG='$(CURDIR)/requirements/build.cfg' $(1)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile
UV = DIST_EXTRA_CONFIG='$(CURDIR)/requirements/build.cfg' $(1)/bin/uv pip install --quiet --python $(1)/bin/python
LOCKED = --require-hashes --no-build-isolation --no-deps -r
# Where the environment forbids Python to keep what it compiled, as containers do, every command would otherwise compile
# all that it imports, each time. Some packages ship templates that are no Python: those do not count.
COMPILED = $(1)/bin/python -m compileall -q -j 0 -x '/(tests|pip)/' $(1)/lib src >/dev/null || true
# The lock of a target: its prerequisite that is neither of the two that all environments begin with.
lock = $(filter-out %/uv.txt %/build.txt,$(filter requirements/%,$^))
LOCK = $(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header

# Compiled kernels are kept between runs and shared by the test processes.
export NUMBA_CACHE_DIR ?= $(CURDIR)/.numba_cache
# Python may keep what it compiled even where the environment forbids it: tests start hundreds of processes, and each
# would spend more time on compiling what it imports than on anything else.
export PYTHONDONTWRITEBYTECODE :=
# Test processes keep all processors busy between them; threads of linear algebra would only spin beside each other.
test accuracy-channel accuracy-rest accuracy-families accuracy-joint: export OPENBLAS_NUM_THREADS := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test check check-style check-types check-layers check-device format accuracy accuracy-channel \
	accuracy-rest accuracy-families accuracy-joint bench docs mutants test-spark35 lock clean packages python

help:  ## list these verbs
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

run: $(VENV)/.run  ## start crowdveil in the foreground (ARGS="--port 9000" to change its options)
	@if $(BIN)/crowdveil serve --help >/dev/null 2>&1; then exec $(BIN)/crowdveil serve --demo $(ARGS); \
	else exec $(BIN)/crowdveil demo $(ARGS); fi

# A file is tested by one process, because its tests share what is dear to start; tests/conftest.py puts those marked slow first.
test: $(VENV)/.dev node_modules/.stamp packages  ## install what the tests need and run them all (ARGS for pytest)
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder --durations=40 $(ARGS)

check: check-types check-style check-layers check-device  ## ruff, mypy, import layers, types of the device code

check-style: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

check-types: $(VENV)/.dev
	$(BIN)/mypy

check-layers: $(VENV)/.dev
	$(BIN)/lint-imports --no-logo

check-device: node_modules/.stamp
	node_modules/.bin/tsc --project tsconfig.json

format: $(VENV)/.dev  ## lay out the code you changed the way ruff does
	$(BIN)/ruff check --fix . && $(BIN)/ruff format $(ARGS)

# Two halves, because CI runs them side by side.
accuracy: accuracy-channel accuracy-rest  ## accuracy on real crowds, read from the directory CROWDVEIL_DATA

accuracy-channel: $(VENV)/.dev
	$(call needs-data)
	$(BIN)/python -m pytest tests/accuracy/test_channel_methods.py -s $(ARGS)

accuracy-rest: $(VENV)/.dev
	$(call needs-data)
	$(BIN)/python -m pytest tests/accuracy --ignore=tests/accuracy/test_channel_methods.py -s $(ARGS)

accuracy-families: $(VENV)/.dev  ## compare the methods for choices on the simulated families (ARGS="--seeds 5")
	$(BIN)/python tests/accuracy/compare_methods.py $(ARGS)

# Simulated crowds: how often the intervals of cross-tabulations and agreement hold; about fifteen minutes.
accuracy-joint: $(VENV)/.dev  ## coverage of cross-tabulations and agreement
	$(BIN)/python tools/joint_coverage.py --crowds 1500
	$(BIN)/python tools/agreement_coverage.py --crowds 2000

define needs-data
@test -d "$$CROWDVEIL_DATA" || { echo "CROWDVEIL_DATA must name the directory of datasets; got '$$CROWDVEIL_DATA'" >&2; exit 2; }
endef

bench: .venv-bench/.bench  ## speed on this machine beside the peers (in .venv-bench)
	.venv-bench/bin/crowdveil bench $(ARGS)

docs: $(VENV)/.dev  ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

mutants: $(VENV)/.dev  ## plant known mistakes and expect red
	PYTHONPATH=tests $(BIN)/python tests/mutants/run.py $(ARGS)

test-spark35: .venv-spark35/.spark35  ## the Spark tests on the oldest Spark we support
	@tools/system-packages default-jre-headless
	.venv-spark35/bin/python -m pytest tests/engines $(ARGS)

lock: $(VENV)/.dev  ## resolve every lock anew (ARGS=--upgrade for newer versions)
	$(LOCK) $(ARGS) requirements/uv.in -o requirements/uv.txt
	$(LOCK) $(ARGS) requirements/build.in -o requirements/build.txt
	$(LOCK) $(ARGS) pyproject.toml --extra broker --extra plot --extra dev -c requirements/uv.txt -c requirements/build.txt -o requirements/dev.txt
	$(LOCK) $(ARGS) pyproject.toml --extra broker --extra plot -c requirements/dev.txt -o requirements/run.txt
	$(LOCK) $(ARGS) pyproject.toml requirements/bench.in --extra broker --extra plot -c requirements/run.txt -o requirements/bench.txt
	$(LOCK) $(ARGS) pyproject.toml requirements/spark35.in -o requirements/spark35.txt
	npm install --package-lock-only --ignore-scripts

clean:  ## remove what these verbs created
	rm -rf .venv .venv-bench .venv-spark35 node_modules site dist build .numba_cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

# The program that drives the browser brings its own Node, which a bare Debian lacks a library for: libatomic1.
packages:
	@tools/system-packages postgresql chromium libatomic1 default-jre-headless nodejs npm caddy

python:
	@tools/check-python $(PYTHON)

# An environment is: uv, the build backends, the lock, then the package itself. An editable install cannot be hashed,
# hence two steps; no build isolation, so that nothing unlocked is fetched behind our back. uv installs a lock in a
# fraction of pip's time; where it has no wheel, or does not reach a registry that pip reaches, pip installs the same.
$(VENV)/.run: requirements/run.txt
$(VENV)/.dev: requirements/dev.txt
.venv-bench/.bench: requirements/bench.txt
.venv-spark35/.spark35: requirements/spark35.txt

$(VENV)/.run $(VENV)/.dev .venv-bench/.bench .venv-spark35/.spark35: requirements/uv.txt requirements/build.txt pyproject.toml | python
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@echo "installing $(lock) into $(@D)"
	@$(call PIP,$(@D)) --require-hashes --only-binary :all: -r requirements/uv.txt || echo "uv is not to be had here; pip installs instead"
	@$(call PIP,$(@D)) --require-hashes -r requirements/build.txt
	@$(call UV,$(@D)) $(LOCKED) $(lock) || $(call PIP,$(@D)) $(LOCKED) $(lock)
	@$(call PIP,$(@D)) --no-deps --no-build-isolation -e .
	@$(@D)/bin/python -m pip check --quiet --disable-pip-version-check
	@$(call COMPILED,$(@D))
	@touch $@

node_modules/.stamp: package.json package-lock.json
	@tools/system-packages nodejs npm
	npm ci --ignore-scripts --no-fund --no-audit --loglevel=error
	@touch $@
