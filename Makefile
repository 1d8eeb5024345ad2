# make demo: train, save and verify a small model. make test: everything that CI checks.
# make docs: the documentation site, in docs-site. make dist: sdist and wheel, built twice and checked.
# make release-notes VERSION=0.2.0: the version, the changelog and the files of a release, to be committed.
# make bench-history: benchmarks of several commits, COMMITS="v0.2.0 HEAD" or those measured before.
# Nothing is written outside this folder; PYTHON names the interpreter (3.11 or later).

PYTHON ?= python3
# where an environment has its programs
BIN := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

CACHE := $(CURDIR)/.cache
export PIP_CACHE_DIR := $(CACHE)/pip
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export MPLCONFIGDIR := $(CACHE)/matplotlib
export MPLBACKEND := Agg
export GRADTAPE_CACHE_DIR := $(CACHE)/loops
# the root is the package, so a stray import of its folders must not pass for the installed ones
export PYTHONSAFEPATH := 1

PYTEST = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 .venv-test/$(BIN)/python -m pytest -q \
	--numprocesses 2 --dist worksteal -o cache_dir=$(CACHE)/pytest --basetemp $(CACHE)/tests

.PHONY: help demo test test-oldest docs dist release-notes bench-history test-gpu coverage environment clean

help:
	@head -5 Makefile | cut -c3-

demo:
	$(PYTHON) -m venv .venv-demo
	rm -rf build
	.venv-demo/$(BIN)/python -m pip install --quiet '.[plot]'
	.venv-demo/$(BIN)/gradtape demo

test: environment
	.venv-test/$(BIN)/ruff check .
	.venv-test/$(BIN)/ruff format --check .
	.venv-test/$(BIN)/lint-imports --config .importlinter --cache-dir $(CACHE)/import-linter
	.venv-test/$(BIN)/python -m mypy --cache-dir $(CACHE)/mypy -p gradtape
	.venv-test/$(BIN)/python -c 'import gradtape; print("testing", gradtape.__file__); \
		assert "site-packages" in gradtape.__file__'
	$(PYTEST) --durations 10

# the oldest libraries that pyproject.toml allows: they read, compute and train what a release has kept
test-oldest:
	$(PYTHON) -m venv --clear .venv-oldest
	rm -rf build $(CACHE)/oldest
	.venv-oldest/$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir $(CACHE)/oldest .
	rm -rf build
	.venv-oldest/$(BIN)/python -c 'import tomllib; \
		told = tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]; \
		print("\n".join(x.replace(">=", "==") + ".*" for x in told))' > $(CACHE)/oldest/constraints.txt
	.venv-oldest/$(BIN)/python -m pip install --quiet --constraint $(CACHE)/oldest/constraints.txt \
		$(CACHE)/oldest/gradtape-*.whl pytest hypothesis setuptools
	OMP_NUM_THREADS=1 .venv-oldest/$(BIN)/python -m pytest -q -o cache_dir=$(CACHE)/pytest \
		--basetemp $(CACHE)/tests-oldest tests/saving/test_files_of_releases.py

# warnings are errors, and so is a link that leads nowhere. The installation takes one minute of a processor,
# the site another, and its links a third of one
docs:
	$(PYTHON) -m venv --clear .venv-docs
	rm -rf build docs-site $(CACHE)/site
	.venv-docs/$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir $(CACHE)/site .
	.venv-docs/$(BIN)/python -m pip install --quiet "$$(echo $(CACHE)/site/gradtape-*.whl)[docs,browser]"
	rm -rf build
	NO_MKDOCS_2_WARNING=1 .venv-docs/$(BIN)/python -m mkdocs build --quiet
	.venv-docs/$(BIN)/python docs/site/check_links.py docs-site
	@echo 'to read it: $(PYTHON) -m http.server --directory docs-site'

dist:
	$(PYTHON) -m venv --clear .venv-dist
	.venv-dist/$(BIN)/python -m pip install --quiet build twine
	.venv-dist/$(BIN)/python .ci/dist.py dist

# docs/releases.md says what comes before and after; DATE is today unless it is given
DATE ?=

release-notes:
	$(PYTHON) -m venv --clear .venv-release
	.venv-release/$(BIN)/python -m pip install --quiet -e '.[release]'
	OMP_NUM_THREADS=1 .venv-release/$(BIN)/python .ci/release_notes.py $(VERSION) $(DATE)

# each commit is built in .cache/asv; the results and the page that shows them are in docs/benchmarks
COMMITS ?=

bench-history:
	$(PYTHON) -m venv --clear .venv-history
	rm -rf build
	.venv-history/$(BIN)/python -m pip install --quiet '.[history]'
	rm -rf build
	.venv-history/$(BIN)/python docs/benchmarks/asv/history.py $(COMMITS)

# which lines the tests run; it takes them twice the time
coverage: environment
	$(PYTEST) --cov --cov-report term

environment:
	$(PYTHON) -m venv --clear .venv-test
	rm -rf build dist
	.venv-test/$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	.venv-test/$(BIN)/python -m pip install --quiet "$$(echo dist/gradtape-*.whl)[test]"

# on a machine with an NVIDIA GPU: all that needs one, and a report of it. GPU_PACKAGES are CuPy for the
# driver's CUDA (cupy-cuda13x[ctk] for 13); GPU_OTHERS is what gradtape is compared with
GPU_PACKAGES ?= cupy-cuda12x[ctk]
GPU_OTHERS ?= torch jax[cuda12]

test-gpu:
	$(PYTHON) -m venv .venv-gpu
	rm -rf build dist
	.venv-gpu/$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	.venv-gpu/$(BIN)/python -m pip install --quiet "$$(echo dist/gradtape-*.whl)[test]" $(GPU_PACKAGES)
	.venv-gpu/$(BIN)/python -m pip install --quiet $(GPU_OTHERS) || echo "compared with less: see above"
	env -u PYTHONSAFEPATH .venv-gpu/$(BIN)/python docs/benchmarks/gpu.py --out gpu-report.md

clean:
	rm -rf .cache .coverage .hypothesis .venv-demo .venv-dist .venv-docs .venv-gpu .venv-history .venv-oldest .venv-release .venv-test build demo-out dist \
		docs-site gradtape.egg-info
