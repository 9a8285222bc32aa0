/* The room SCALAR: nanoseconds and cycles for one number, in the plain loop of a user over an array that stays in the
   first cache. The bench's own flags apply; the loops do not know how many numbers there are. */
#include "bench.h"

#define NUMBERS 4096

#define CASE(function, to, from) BENCH_LOOP(run_##function, mixprec_##function, to, from)
CASE(f32_to_f16, mixprec_f16, float)
CASE(f32_to_bf16, mixprec_bf16, float)
CASE(f32_to_e4m3, mixprec_e4m3, float)
CASE(f32_to_e5m2, mixprec_e5m2, float)
CASE(f64_to_f16, mixprec_f16, double)
CASE(f16_to_f32, float, mixprec_f16)
CASE(bf16_to_f32, float, mixprec_bf16)
CASE(e4m3_to_f32, float, mixprec_e4m3)
CASE(e5m2_to_f32, float, mixprec_e5m2)

static const struct {
    const char *name;
    void (*run)(void *context);
    mixprec_dtype dtype, from;
} cases[] = {
    {"f32-to-f16", run_f32_to_f16, MIXPREC_F16, MIXPREC_F32},
    {"f32-to-bf16", run_f32_to_bf16, MIXPREC_BF16, MIXPREC_F32},
    {"f32-to-e4m3", run_f32_to_e4m3, MIXPREC_E4M3, MIXPREC_F32},
    {"f32-to-e5m2", run_f32_to_e5m2, MIXPREC_E5M2, MIXPREC_F32},
    {"f64-to-f16", run_f64_to_f16, MIXPREC_F16, MIXPREC_F64},
    {"f16-to-f32", run_f16_to_f32, MIXPREC_F16, MIXPREC_F16},
    {"bf16-to-f32", run_bf16_to_f32, MIXPREC_BF16, MIXPREC_BF16},
    {"e4m3-to-f32", run_e4m3_to_f32, MIXPREC_E4M3, MIXPREC_E4M3},
    {"e5m2-to-f32", run_e5m2_to_f32, MIXPREC_E5M2, MIXPREC_E5M2},
};

static void measure(int number) {
    bench_loop loop = {NUMBERS, bench_alloc(NUMBERS * sizeof(double)), bench_alloc(NUMBERS * sizeof(double))};
    double *values = bench_alloc(NUMBERS * sizeof(*values));
    bench_timing timings[2];
    int count, k;
    bench_normals(values, NUMBERS, 1);
    bench_check(mixprec_convert(loop.x, cases[number].from, values, MIXPREC_F64, NUMBERS));
    memset(timings, 0, sizeof(timings));
    for (k = 0; k < 2; k++) {
        timings[k].key = bench_key_of("scalar", cases[number].name, cases[number].dtype, MIXPREC_ISA_C);
        timings[k].key.threads = 1;
        timings[k].context = &loop;
        timings[k].limit = bench_clock_limit();
    }
    timings[0].run = cases[number].run;
    count = bench_peer_scalar(&timings[1]) == 0 ? 2 : 1;
    bench_measure(timings, count);
    printf("  %-11s", cases[number].name);
    for (k = 0; k < count; k++) {
        double cycles = timings[k].limit_work / NUMBERS;
        bench_record(&timings[k].key, "cycles_per_element", cycles);
        bench_record(&timings[k].key, "elements_per_s", NUMBERS / timings[k].best);
        printf(" %8.2f %8.2f", 1e9 * timings[k].best / NUMBERS, cycles);
    }
    printf("\n");
    free(values);
    free(loop.x);
    free(loop.out);
}

void bench_scalar(void) {
    int i, begun = 0;
    for (i = 0; i < COUNT_OF(cases); i++) {
        if (!bench_wanted("scalar", cases[i].name, mixprec_dtype_name(cases[i].dtype)))
            continue;
        if (!begun++)
            printf("\nOne number at a time, in a loop over %d normal numbers, one thread: nanoseconds and cycles for "
                   "each; beside them\nthose of the library FP16, where the build found it\n  %-11s %8s %8s %8s %8s\n",
                   NUMBERS, "", "ns", "cycles", "FP16 ns", "cycles");
        measure(i);
    }
}
