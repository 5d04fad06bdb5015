# Every target makes its own virtual environment: nothing but Python 3.11 and a package index is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo complete test test-all lint docs wheel lowest bench reproduce attack planted fuzz clean

demo: $(READY)
	$(BIN)/likewise demo

# The packages that only some tests need, PyTorch among them. Without them these tests are skipped, with a message.
complete: $(READY)
	$(BIN)/python -m pip install --quiet --requirement .ci/packages.txt

# Two workers with one thread each: more would only wait for each other, and OpenMP would spin meanwhile.
test test-all lowest attack planted fuzz: export OMP_NUM_THREADS = 1
test test-all lowest attack planted fuzz: export OMP_WAIT_POLICY = passive
# Both workers, and some thirty processes that tests start, would compile the same modules anew.
test test-all: export PYTHONDONTWRITEBYTECODE =

# By file, since the blocks of a page share names; a class goes to a worker of its own.
test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadscope

# With the tests marked slow: long searches, fuzzing, killed processes, browsers, Spark.
test-all: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadscope -m ""

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, in site/. A warning is an error; nothing is fetched.
docs: $(READY)
	$(BIN)/python -m sphinx -q -W --keep-going -d $(VENV)/doctrees docs site
	@echo "Open site/index.html in a browser."

# The package, in dist/, installed into an empty environment and used there.
wheel: $(READY)
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	PYTHON=$(PYTHON) .ci/wheel dist

# All tests with the lowest versions that pyproject.toml allows, in an environment of their own that needs Python 3.11.
# LOWEST_TESTS="tests/cli -x" runs some of them.
lowest:
	PYTHON=$(or $(OLDEST),python3.11) .ci/lowest $(LOWEST_TESTS)

bench: $(READY)
	$(BIN)/python -m benchmarks

# The paper's experiments, into reproduced/: an hour or more. REPRODUCE="adult --quick" for fewer; an interrupted run continues.
reproduce: $(READY)
	$(BIN)/python -m experiments $(REPRODUCE)

# More than a billion pairs in about ten minutes of one core, with PyTorch installed; a second call continues where the first was stopped.
attack: $(READY)
	PYTHONPATH=tests $(BIN)/python -m attacked

# Bugs planted on purpose, each of which the tests must catch. `make planted PLANTED="cells noises.py"` takes those with one
# of these words in their name or file, --today ten by date, --new those not caught yet; --write keeps the results and
# fills docs/trust.md.
planted: $(READY)
	$(BIN)/python tests/planted $(PLANTED)

# Ten minutes of random cells of tests/catalogue.py, then bad input, in fresh cases each time: a million take two to three hours of one core. Counts of the same code add up over
# runs. FUZZ="--cases 20000" for fewer.
fuzz: $(READY)
	PYTHONPATH=tests $(BIN)/python -m property --seconds 600
	PYTHONPATH=tests $(BIN)/python -m fuzz $(FUZZ)

clean:
	rm -rf $(VENV) .venv-lowest dist site docs/reference/generated docs/gallery/generated docs/live

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@
