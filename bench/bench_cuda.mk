# The GPU benchmark: `make bench-cuda`, or `make bench-cuda BENCH_ARGS=--quick`. Without nvcc or a GPU it says so and
# measures nothing. cuBLAS takes part when a program that uses it links.

NVCC ?= $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))

.PHONY: bench-cuda
bench-cuda: ## mixprec_cuda.cuh on this machine's GPU, beside cuBLAS where installed
ifeq ($(NVCC),)
	@echo "SKIP  bench-cuda: NOTHING WAS MEASURED: no nvcc"
else
	@mkdir -p $(BUILD)/bench
	@if printf 'int main() { int count; return cudaGetDeviceCount(&count) || !count; }\n' | \
	$(NVCC) -x cu -o $(BUILD)/bench/probe_gpu - && $(BUILD)/bench/probe_gpu; then $(MAKE) -s $(BUILD)/bench/bench_cuda && \
	$(BUILD)/bench/bench_cuda --out $(BUILD)/bench/cuda $(BENCH_ARGS); \
	else echo "SKIP  bench-cuda: NOTHING WAS MEASURED: no GPU here"; fi
endif

# CUDA_ARCH: an architecture, as nvcc's -arch has it; on Hopper the one whose code has warpgroup products
CUDA_ARCH ?= $(if $(findstring 9.0,$(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null)),sm_90a,native)
$(BUILD)/bench/bench_cuda: bench/bench_cuda.cu bench/bench_page.h bench/host.h bench/bench_cuda.mk mixprec_cuda.cuh mixprec.h
	@mkdir -p $(BUILD)/bench
	printf '#define MIXPREC_IMPLEMENTATION\n#include "mixprec.h"\n' | $(CC) -O2 -I. -c -x c -o $(BUILD)/bench/cpu.o -
	flags=; if printf '#include <cublas_v2.h>\n#include <cublasLt.h>\nint main() { cublasHandle_t h; cublasLtHandle_t l; \
	return cublasCreate(&h) || cublasLtCreate(&l); }\n' | $(NVCC) -x cu -o $(BUILD)/bench/probe_cublas - -lcublas -lcublasLt \
	2>/dev/null; then flags="-DBENCH_CUBLAS -lcublas -lcublasLt"; fi; \
	$(NVCC) -std=c++17 -O2 -arch=$(CUDA_ARCH) -o $@ bench/bench_cuda.cu $(BUILD)/bench/cpu.o $$flags
