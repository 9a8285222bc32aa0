/* The room CONVERT: bulk conversions between f32 and each other format, both ways, from f64 and between some narrow
   ones; narrowing also with saturation (fp8), a directed and stochastic rounding and a scale; and the statistics, which
   only read. */
#include "bench.h"

static void convert(const bench_stream *row, void *dst, const void *src, size_t n, mixprec_isa isa) {
    mixprec_convert_options options;
    memset(&options, 0, sizeof(options));
    options.round = row->round;
    options.overflow = row->overflow;
    options.scale = row->scale;
    options.seed = 1;
    options.isa = isa;
    bench_check(mixprec_convert_ex(dst, row->dst, src, row->src, n, &options));
}

/* ---- statistics ---- */

typedef struct stats_run {
    mixprec_dtype src, to;
    mixprec_isa isa;
    const void *values;
    size_t n;
} stats_run;

static void run_stats(void *context) {
    const stats_run *run = context;
    mixprec_convert_options options;
    mixprec_statistics statistics;
    memset(&options, 0, sizeof(options));
    options.isa = run->isa;
    bench_check(mixprec_stats(&statistics, run->values, run->src, run->n, run->to, &options));
    bench_use(&statistics);
}

/* In L2, where the call itself does not count, cycles; in DRAM the share of a loop that only reads. */
static void measure_stats(mixprec_dtype src, mixprec_dtype to, int dram) {
    stats_run runs[4];
    bench_timing timings[4];
    mixprec_isa paths[4];
    size_t bytes = dram ? bench_dram_bytes() : bench_machine.l2_bytes / 2, size = mixprec_dtype_size(src);
    size_t n = bytes / size / 4096 * 4096;
    int count = bench_paths(paths), j;
    char name[64];
    unsigned char *memory = bench_alloc(n * size);
    snprintf(name, sizeof(name), "stats-%s/%s", mixprec_dtype_name(src), dram ? "DRAM" : "L2");
    bench_fill(memory, src, n, BENCH_OTHERS);
    memset(timings, 0, sizeof(timings));
    for (j = 0; j < count; j++) {
        runs[j].src = src;
        runs[j].to = to;
        runs[j].isa = paths[j];
        runs[j].values = memory;
        runs[j].n = n;
        timings[j].run = run_stats;
        timings[j].context = &runs[j];
        timings[j].limit = dram ? bench_read_limit(1) : bench_clock_limit();
        timings[j].key = bench_key_of("convert", name, to, paths[j]);
        timings[j].key.threads = 1; /* one array is one thread's work */
    }
    bench_measure(timings, count);
    printf("  %4s -> %-5s %-5s", mixprec_dtype_name(src), mixprec_dtype_name(to), dram ? "DRAM" : "L2");
    for (j = 0; j < count; j++) {
        double value = dram ? (double)(n * size) / timings[j].limit_work : timings[j].limit_work / (double)n;
        bench_record(&timings[j].key, dram ? "share_of_read" : "cycles_per_element", value);
        bench_record(&timings[j].key, "elements_per_s", (double)n / timings[j].best);
        printf(dram ? " %8.0f %%" : " %8.3f  ", dram ? 100 * value : value);
    }
    printf(" %9.2f\n", 1e-9 * (double)n / timings[count - 1].best);
    free(memory);
}

static void bench_stats(void) {
    static const mixprec_dtype sources[3] = {MIXPREC_F32, MIXPREC_F16, MIXPREC_F64};
    static const mixprec_dtype targets[4] = {MIXPREC_F16, MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
    mixprec_isa paths[4];
    int source, to, dram, path, path_count = bench_paths(paths), begun = 0;
    for (dram = 0; dram < 2; dram++)
        for (source = 0; source < 3; source++)
            for (to = 0; to < 4; to++) {
                char name[64];
                snprintf(name, sizeof(name), "stats-%s/%s", mixprec_dtype_name(sources[source]), dram ? "DRAM" : "L2");
                if ((source && targets[to] != MIXPREC_E4M3) ||
                    !bench_wanted("convert", name, mixprec_dtype_name(targets[to])))
                    continue;
                if (!begun++) {
                    printf("\nStatistics of normal numbers, one thread. In L2 cycles for an element, in DRAM the share "
                           "of a loop that "
                           "only\nreads; G elements/s of the last path\n  %-19s",
                           "");
                    for (path = 0; path < path_count; path++)
                        printf(" %8s  ", mixprec_isa_name(paths[path]));
                    printf(" %9s\n", "G/s");
                }
                measure_stats(sources[source], targets[to], dram);
            }
}

/* ---- conversions ---- */

#define ROW(name, dtype, dst, src, round, overflow, scale)                                                             \
    { name, MIXPREC_##dtype, MIXPREC_##dst, MIXPREC_##src, MIXPREC_ROUND_##round, MIXPREC_OVERFLOW_##overflow, scale }
#define FROM_F32(name, dtype, round, overflow) ROW(name, dtype, dtype, F32, round, overflow, 0)
#define TO_F32(dtype) ROW("to-f32", dtype, F32, dtype, NEAREST_EVEN, IEEE, 0)

void bench_convert(void) {
    static const bench_stream rows[] = {
        FROM_F32("from-f32", F16, NEAREST_EVEN, IEEE),
        FROM_F32("from-f32", BF16, NEAREST_EVEN, IEEE),
        FROM_F32("from-f32", E4M3, NEAREST_EVEN, IEEE),
        FROM_F32("from-f32", E5M2, NEAREST_EVEN, IEEE),
        FROM_F32("from-f32", F64, NEAREST_EVEN, IEEE),
        FROM_F32("from-f32", E4M3FNUZ, NEAREST_EVEN, IEEE),
        FROM_F32("from-f32", E5M2FNUZ, NEAREST_EVEN, IEEE),
        FROM_F32("from-f32", E3M2, NEAREST_EVEN, IEEE),
        FROM_F32("from-f32", E2M3, NEAREST_EVEN, IEEE),
        FROM_F32("from-f32", E2M1, NEAREST_EVEN, IEEE),
        FROM_F32("from-f32", I8, NEAREST_EVEN, IEEE),
        FROM_F32("from-f32-saturating", E4M3, NEAREST_EVEN, SATURATE),
        FROM_F32("from-f32-saturating", E5M2, NEAREST_EVEN, SATURATE),
        FROM_F32("from-f32-keep-inf", E5M2, NEAREST_EVEN, SATURATE_KEEP_INF),
        FROM_F32("from-f32-upward", F16, UP, IEEE),
        ROW("from-f32-scaled", E4M3, E4M3, F32, NEAREST_EVEN, IEEE, 0.37f),
        ROW("from-f32-scaled", I8, I8, F32, NEAREST_EVEN, IEEE, 0.37f),
        FROM_F32("from-f32-stochastic", F16, STOCHASTIC, IEEE),
        FROM_F32("from-f32-stochastic", BF16, STOCHASTIC, IEEE),
        FROM_F32("from-f32-stochastic", E4M3, STOCHASTIC, IEEE),
        FROM_F32("from-f32-stochastic", E5M2, STOCHASTIC, IEEE),
        TO_F32(F16),
        TO_F32(BF16),
        TO_F32(E4M3),
        TO_F32(E5M2),
        TO_F32(F64),
        TO_F32(E4M3FNUZ),
        TO_F32(E2M3),
        TO_F32(E2M1),
        TO_F32(I8),
        ROW("from-f64", F16, F16, F64, NEAREST_EVEN, IEEE, 0),
        ROW("from-f64", BF16, BF16, F64, NEAREST_EVEN, IEEE, 0),
        ROW("from-f64", E4M3, E4M3, F64, NEAREST_EVEN, IEEE, 0),
        ROW("from-bf16", E4M3, E4M3, BF16, NEAREST_EVEN, IEEE, 0),
        ROW("from-e4m3", BF16, BF16, E4M3, NEAREST_EVEN, IEEE, 0),
        ROW("from-f16", BF16, BF16, F16, NEAREST_EVEN, IEEE, 0),
    };
    bench_streams("convert", "Conversion", rows, COUNT_OF(rows), convert);
    bench_stats();
}
