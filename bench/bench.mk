# The benchmark: `make bench`, or `make bench BENCH_ARGS='--quick --filter gemm'`. Included by the top Makefile, which
# defines CC, CFLAGS, WARNINGS and BUILD. A peer (OpenBLAS, BLIS, oneDNN, FP16) takes part when bench_peers.c, as a
# program of its own, builds with its flags and runs: flags from pkg-config where it knows the library, else the usual
# name.

BENCH_SOURCES = $(addprefix bench/bench,.c _machine.c _scalar.c _stream.c _convert.c _gemm.c _scaler.c _tensors.c _reduce.c \
	_optim.c _quant.c _layers.c _peers.c _report.c)
BENCH_ARGS ?=

# $(call bench_probe,macro,name of the pkg-config package,flags otherwise,flags in any case)
bench_probe = flags="-DBENCH_$(1) $$(pkg-config --cflags --libs $(2) 2>/dev/null || echo $(3)) $(4)"; \
	flags=$$(echo "$$flags" | sed 's/-I/-isystem /g'); \
	if $(CC) -std=c99 -DBENCH_PROBE -o $(BUILD)/bench/probe bench/bench_peers.c $$flags -lm 2>/dev/null && \
	$(BUILD)/bench/probe >/dev/null 2>&1; then echo "$$flags"; fi

.PHONY: bench
bench: $(BUILD)/bench/bench ## conversions, GEMM, optimisers, layers against the machine's limits and other libraries: BENCH_ARGS=--help
	@$(BUILD)/bench/bench $(BENCH_ARGS)

$(BUILD)/bench/bench: $(BENCH_SOURCES) bench/bench.h bench/bench_page.h bench/host.h bench/bench.mk mixprec.h $(BUILD)/bench/peers
	$(CC) -std=c99 $(WARNINGS) $(CFLAGS) -pthread -o $@ $(BENCH_SOURCES) $$(cat $(BUILD)/bench/peers) -lm

$(BUILD)/bench/peers: FORCE
	@mkdir -p $(BUILD)/bench
	@{ $(call bench_probe,OPENBLAS,openblas,-lopenblas,); $(call bench_probe,BLIS,blis,-lblis,); \
	$(call bench_probe,ONEDNN,dnnl,-ldnnl,-lgomp); $(call bench_probe,FP16,fp16,,); } > $@.new; rm -f $(BUILD)/bench/probe
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
