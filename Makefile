# For developers. `python run.py demo` and `python run.py test` do without make what their targets do.
PYTHON ?= python3
BIN = .venv/bin
OUT ?= out
# Parallel test workers each keep to one BLAS thread.
TEST_ENV = OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: kernels demo test coverage test-cpus test-everywhere test-lowest fuzz faults lint bench bench-compare mutants evidence clean docs package sanitize check-compilers

# Installing compiles the kernels, and so does every target here once their sources have changed.
coverage test-cpus test-everywhere test-lowest fuzz faults bench bench-compare mutants: kernels

kernels:
	@test ! -x $(BIN)/python || $(BIN)/python hatch_build.py >/dev/null

.venv/%.stamp: pyproject.toml .ci/constraints.txt
	$(PYTHON) run.py install $*

demo:
	$(PYTHON) run.py demo --output $(OUT)

test:
	$(PYTHON) run.py test $(ARGS)

# Which lines no test runs; Python 3.12 and newer trace them at little cost.
coverage: .venv/dev.stamp
	$(TEST_ENV) COVERAGE_CORE=$$($(BIN)/python -c "import sys; print('sysmon' if sys.version_info >= (3, 12) else 'ctrace')") \
	  $(BIN)/python -m pytest -n auto -q --cov --cov-report=term $(ARGS)

# The numerical tests as on other processors; test-everywhere is the whole suite on each (docs/evidence/machines.md).
test-cpus: .venv/dev.stamp
	$(BIN)/python -m benchmarks.machines

test-everywhere: .venv/dev.stamp
	$(BIN)/python -m benchmarks.machines --everything

# The tests of the kernels under AddressSanitizer and UBSan.
sanitize: .venv/dev.stamp
	PYTHON=$(BIN)/python bash packaging/sanitize $(ARGS)

# The same files, labels and speed where there is a compiler and where there is none; needs a clean commit.
check-compilers:
	bash packaging/check-compilers

# The lowest versions that pyproject.toml allows, in an environment of their own.
.venv-lowest/stamp: pyproject.toml .ci/lowest.txt
	rm -rf .venv-lowest
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install -q --disable-pip-version-check -c .ci/lowest.txt -e ".[all]" hypothesis joblib pytest pytest-xdist
	touch $@

test-lowest: .venv-lowest/stamp
	$(TEST_ENV) .venv-lowest/bin/python -m pytest -n auto --dist worksteal -q $(ARGS)

# Damaged files for every reader: SECONDS in all, shared by the readers. ENGINE=atheris needs pip install atheris.
SECONDS ?= 60
ENGINE ?= mutator
fuzz: .venv/dev.stamp
	$(BIN)/python -m fuzz --seconds $(SECONDS) --engine $(ENGINE)

# Writers, sync and reproduce killed at random moments; full disks, vanished folders, two writers, a live database.
faults: .venv/dev.stamp
	$(TEST_ENV) $(BIN)/python -m fuzz.faults $(ARGS)

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell src tests benchmarks fuzz docs examples *.md

# Ratios to baselines measured in the same run; AREAS="presets product" for some of them only (docs/evidence/speed.md).
bench: .venv/dev.stamp
	mkdir -p $(OUT)
	$(TEST_ENV) $(BIN)/python -m benchmarks.solver
	$(TEST_ENV) $(BIN)/python -m benchmarks.bench --output $(OUT)/bench.json $(if $(AREAS),--areas $(AREAS))

# BASE is the JSON file of an earlier run, or a commit, which is then measured first.
bench-compare: .venv/dev.stamp
	$(TEST_ENV) PYTHON=$(BIN)/python bash benchmarks/compare $(BASE) $(AREAS)

# Would the tests notice a small change of the numerical core? Goes on where it was interrupted (docs/evidence/mutants.md).
mutants: .venv/dev.stamp
	$(TEST_ENV) $(BIN)/python -m benchmarks.mutants --record $(OUT)/mutants.jsonl $(ARGS)

# PAGE names pages of docs/evidence to measure and write; without it all are written from what is recorded.
evidence: .venv/dev.stamp
	$(BIN)/python -m benchmarks.evidence $(or $(PAGE),--recorded) $(ARGS)

clean:
	rm -rf .venv .venv-lowest $(OUT) .pytest_cache .mypy_cache .ruff_cache

# Warnings are errors, links are checked; GALLERY=False leaves the examples unexecuted (tests/test_gallery.py runs them).
docs: .venv/docs.stamp
	rm -rf docs/_build docs/reference/generated
	$(TEST_ENV) $(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python docs/check_site.py docs/_build/html

package: .venv/dev.stamp
	PYTHON=$(BIN)/python bash packaging/check
