/* The room REDUCE: sums and largest magnitudes of whole tensors. */
#include "bench.h"

static void run_sum_squares(const bench_tensor_run *run) {
    bench_check(mixprec_reduce(run->partials, MIXPREC_SUM_SQUARES, run->arrays[0], run->row->dtype, NULL, MIXPREC_NONE,
                               0, run->n, run->isa));
}

static void run_dot(const bench_tensor_run *run) {
    bench_check(mixprec_reduce(run->partials, MIXPREC_DOT, run->arrays[0], run->row->dtype, run->arrays[1],
                               run->row->dtype, 0, run->n, run->isa));
}

static void run_amax(const bench_tensor_run *run) {
    float amax;
    bench_check(mixprec_amax_ex(&amax, run->arrays[0], run->row->dtype, run->n, run->isa));
    bench_use(&amax);
}

void bench_reduce(void) {
    static const bench_tensor rows[] = {
        {"sum-squares", MIXPREC_F32, run_sum_squares, {{4, BENCH_READ}}, 0},
        {"sum-squares", MIXPREC_BF16, run_sum_squares, {{2, BENCH_READ}}, 0},
        {"sum-squares", MIXPREC_F16, run_sum_squares, {{2, BENCH_READ}}, 0},
        {"dot", MIXPREC_F32, run_dot, {{4, BENCH_READ}, {4, BENCH_READ}}, 0},
        {"amax", MIXPREC_F32, run_amax, {{4, BENCH_READ}}, 0},
        {"amax", MIXPREC_BF16, run_amax, {{2, BENCH_READ}}, 0},
    };
    bench_tensors("reduce", "DRAM", rows, COUNT_OF(rows));
}
