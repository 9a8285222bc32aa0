# mixprec: make test, make bench; make help for the rest.
# CC, CFLAGS and BUILD may be set: make test CC=clang CFLAGS=-O3 BUILD=build-clang

ifeq ($(origin CC),default)
CC := $(firstword $(foreach compiler,gcc clang cc,$(if $(shell command -v $(compiler)),$(compiler))))
endif
ifeq ($(origin CXX),default)
CXX := $(firstword $(foreach compiler,g++ clang++ c++,$(if $(shell command -v $(compiler) 2>/dev/null),$(compiler))) g++)
endif
CFLAGS ?= -O2
BUILD ?= build
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
WARNINGS = -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wdouble-promotion -Werror
export BUILD CC CFLAGS
MAKEFLAGS += --no-print-directory

# The longest first.
TESTS = convert scalar gemm gemm_ex layers scaler stack reduce quant optim policy checkpoint bounds threads
TEST_PROGRAMS = $(TESTS:%=$(BUILD)/test_%)
COUNT = sh tests/count.sh
SUBMAKE = @$(MAKE) -s -k -j$(JOBS)

.PHONY: help all test test-quick test-cuda check fuzz $(addprefix check-,toc compile symbols readme train builds targets size floats neon bench cuda) format clean
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  variables: CC CFLAGS BUILD JOBS FUZZ_SECONDS BENCH_ARGS TRAIN_ARGS CUDA_ARCH"

all: $(TEST_PROGRAMS) ## build the test programs

# The steps count their results into $(BUILD)/<run>/<step>.log; the last line of a run is the sum of them.

TEST_STEPS = $(TESTS:%=test_%) test_cuda check_compile check_symbols check_readme check_train check_toc
test: ## all tests on this machine, ten minutes or more; ends with the number passed, failed and skipped
	@rm -rf $(BUILD)/test
	$(SUBMAKE) $(TEST_STEPS:%=$(BUILD)/test/%.log); $(COUNT) total $(TEST_STEPS:%=$(BUILD)/test/%.log)

QUICK_STEPS = $(TESTS:%=test_%) test_cuda check_toc
test-quick: ## the tests with samples instead of exhaustive loops
	@rm -rf $(BUILD)/test-quick
	$(SUBMAKE) $(QUICK_STEPS:%=$(BUILD)/test-quick/%.log); $(COUNT) total $(QUICK_STEPS:%=$(BUILD)/test-quick/%.log)

# The longest first.
CHECK_STEPS = check_targets check_builds check_cuda check_compile check_bench check_prove check_fuzz
check: ## what `test` does not: every compiler, configuration and emulated CPU installed; proofs, fuzzers, CUDA, bench
	@rm -rf $(BUILD)/check
	$(SUBMAKE) $(CHECK_STEPS:%=$(BUILD)/check/%.log); $(COUNT) total $(CHECK_STEPS:%=$(BUILD)/check/%.log)

check-toc: ## contents, banners and test files of mixprec.h agree
	@sh tests/check_toc.sh
check-compile: ## compilers x language standards x options, without a warning
	@sh tests/check_compile.sh
check-symbols: ## names and globals of the object, freestanding builds, several units, size
	@sh tests/check_symbols.sh
check-readme: ## the README's programs compile and print what it says
	@sh tests/check_readme.sh
check-train: ## the example of training, and the training benchmark in short
	@sh tests/check_train.sh
check-builds: ## the quick tests in other configurations, with sanitizers, 32-bit
	@sh tests/check_builds.sh
check-targets: ## the quick tests, all or some, on emulated CPUs and Windows; microcontrollers
	@sh tests/check_targets.sh
check-size: ## bytes on Cortex-M0+
	@sh tests/check_targets.sh --size
check-floats: $(BUILD)/whole_convert ## all 2^32 floats in every mode but stochastic on every path: half an hour or more
	@$(BUILD)/whole_convert
check-neon: ## as check-floats, on NEON in an emulator: hours
	@sh tests/check_targets.sh --neon
fuzz: ## looks for inputs that break the library, FUZZ_SECONDS (20) for each fuzzer, with libFuzzer where it is
	@sh tests/check_fuzz.sh
check-bench: ## the benchmark in short: it runs, writes its files and refuses wrong options
	@sh tests/check_bench.sh
check-cuda: ## mixprec_cuda.cuh for every GPU architecture: spills, machine code; needs nvcc
	@sh tests/check_cuda.sh
test-cuda: ## the tests of mixprec_cuda.cuh on this machine's GPU, and under compute-sanitizer
	@sh tests/check_cuda.sh --device

format: ## clang-format on all C sources
	clang-format -i mixprec.h mixprec_cuda.cuh tests/*.[ch] tests/cuda/*.h tests/cuda/*.cpp $(wildcard bench/*.[ch] bench/*.cu)

clean: ## remove $(BUILD)
	rm -rf $(BUILD)

COMPILE = $(CC) -std=gnu11 $(WARNINGS) $(CFLAGS) -pthread
HEADERS = $(wildcard tests/*.h) mixprec.h
$(BUILD)/%: tests/%.c $(HEADERS)
	@mkdir -p $(BUILD)
	$(COMPILE) -o $@ $< -lm

# Most of the compiler's time goes into the implementation: all tests share one.
$(BUILD)/implementation.o: tests/implementation.c tests/test_layers.c $(HEADERS)
	@mkdir -p $(BUILD)
	$(COMPILE) -DTEST_LAYERS_HERE -c -o $@ $<
$(TESTS:%=$(BUILD)/test_%): $(BUILD)/test_%: tests/test_%.c $(BUILD)/implementation.o
	$(COMPILE) -DMIXPREC_IMPLEMENTED_ -o $@ $< $(BUILD)/implementation.o -lm
$(foreach test,$(TESTS),$(BUILD)/test/test_$(test).log $(BUILD)/test-quick/test_$(test).log): | $(BUILD)/implementation.o

# The kernels of mixprec_cuda.cuh, run on the CPU by tests/cuda/emulation.h.
$(BUILD)/test_cuda: $(wildcard tests/cuda/*) tests/test.h mixprec.h mixprec_cuda.cuh
	@mkdir -p $(BUILD)
	$(CXX) -std=c++17 -Wall -Wextra -Wno-unknown-pragmas -Wno-psabi -Werror $(CFLAGS) -ffp-contract=off \
	-fsanitize=alignment -fno-sanitize-recover=alignment -I. -o $@ tests/cuda/test_cuda.cpp -lm

# The same tests for a GPU; CUDA_ARCH=sm_90, say, where they are to run on another machine than they are built on.
$(BUILD)/test_cuda_device: $(wildcard tests/cuda/*) tests/test.h mixprec.h mixprec_cuda.cuh
	@mkdir -p $(BUILD)
	printf '#define MIXPREC_IMPLEMENTATION\n#include "mixprec.h"\n' | $(CC) -O2 -I. -c -x c -o $(BUILD)/cpu.o -
	$(NVCC) -std=c++17 -O2 -arch=$(CUDA_ARCH) -x cu -DTEST_ON_DEVICE -Xcompiler -ffp-contract=off -c -o $@.o \
	tests/cuda/test_cuda.cpp
	$(NVCC) -arch=$(CUDA_ARCH) -o $@ $@.o $(BUILD)/cpu.o

# A program that does not build is one failure of its step.
$(BUILD)/test/test_%.log: FORCE
	@$(COUNT) run $@ sh -c '$(MAKE) -s $(BUILD)/test_$* && $(BUILD)/test_$*'
$(BUILD)/test-quick/test_%.log: FORCE
	@$(COUNT) run $@ sh -c '$(MAKE) -s $(BUILD)/test_$* && $(BUILD)/test_$* --quick'
ifeq ($(shell command -v $(CXX) 2>/dev/null),)
$(BUILD)/test/test_cuda.log $(BUILD)/test-quick/test_cuda.log: FORCE
	@$(COUNT) run $@ sh -c '. tests/check.sh; missing "cuda: in emulation" "$(CXX)"; summary'
endif
$(BUILD)/test/check_compile.log: FORCE
	@$(COUNT) run $@ sh tests/check_compile.sh --quick
$(BUILD)/check/check_fuzz.log: FORCE
	@FUZZ_SECONDS=$${FUZZ_SECONDS:-8} $(COUNT) run $@ sh tests/check_fuzz.sh
$(BUILD)/check/check_prove.log: FORCE
	@$(COUNT) run $@ $(MAKE) prove
RUN_CHECK = @$(COUNT) run $@ sh tests/check_$*.sh
$(BUILD)/test/check_%.log: FORCE ; $(RUN_CHECK)
$(BUILD)/test-quick/check_%.log: FORCE ; $(RUN_CHECK)
$(BUILD)/check/check_%.log: FORCE ; $(RUN_CHECK)
FORCE:

-include bench/bench.mk bench/train.mk bench/bench_cuda.mk tests/proofs/proofs.mk
