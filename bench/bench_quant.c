/* The room QUANT: tensors to narrow ones with scales, and back. */
#include "bench.h"

static void quantize(const bench_tensor_run *run, mixprec_dtype to, const float *scale) {
    mixprec_quantize_desc d;
    memset(&d, 0, sizeof(d));
    d.rows = 1;
    d.columns = run->n;
    d.src = run->arrays[0];
    d.src_type = run->row->dtype;
    d.dst = run->arrays[run->row->arrays[2].size ? 2 : 1];
    d.dst_type = to;
    d.scales = run->scales;
    d.block_rows = 1;
    d.block_columns = run->row->block_columns;
    d.scale = scale;
    d.isa = run->isa;
    bench_check(mixprec_quantize(&d));
}

static void run_quantize(const bench_tensor_run *run) {
    quantize(run, MIXPREC_E4M3, NULL);
}

static void run_quantize_i8(const bench_tensor_run *run) {
    quantize(run, MIXPREC_I8, NULL);
}

static void run_quantize_delayed(const bench_tensor_run *run) {
    const float scale = 64.0f;
    quantize(run, MIXPREC_E4M3, &scale);
}

static void dequantize(const bench_tensor_run *run, mixprec_dtype from) {
    mixprec_scales scales;
    memset(&scales, 0, sizeof(scales));
    scales.values = run->scales;
    scales.block_rows = 1;
    scales.block_columns = run->row->block_columns;
    bench_check(mixprec_dequantize(run->arrays[1], run->row->dtype, 0, run->arrays[0], from, 0, 1, run->n, &scales));
}

static void run_dequantize(const bench_tensor_run *run) {
    dequantize(run, MIXPREC_E4M3);
}

static void run_dequantize_i8(const bench_tensor_run *run) {
    dequantize(run, MIXPREC_I8);
}

void bench_quant(void) {
    static const bench_tensor rows[] = {
        {"quantize-delayed", MIXPREC_BF16, run_quantize_delayed, {{2, BENCH_READ}, {1, BENCH_WRITE}}, 0},
        {"quantize-1x128", MIXPREC_BF16, run_quantize, {{2, BENCH_READ}, {1, BENCH_WRITE}}, 128},
        {"quantize-1x128", MIXPREC_F32, run_quantize, {{4, BENCH_READ}, {1, BENCH_WRITE}}, 128},
        {"quantize-1x32", MIXPREC_BF16, run_quantize, {{2, BENCH_READ}, {1, BENCH_WRITE}}, 32},
        {"quantize-i8-1x128", MIXPREC_BF16, run_quantize_i8, {{2, BENCH_READ}, {1, BENCH_WRITE}}, 128},
        {"dequantize-1x128", MIXPREC_BF16, run_dequantize, {{1, BENCH_READ}, {2, BENCH_WRITE}}, 128},
    };
    static const bench_tensor rows_l1[] = {
        {"quantize-delayed", MIXPREC_F32, run_quantize_delayed, {{4, BENCH_READ}, {1, BENCH_WRITE}}, 0},
        {"quantize-tensor", MIXPREC_F32, run_quantize, {{4, BENCH_READ}, {1, BENCH_WRITE}}, 0},
        {"quantize-1x128", MIXPREC_F32, run_quantize, {{4, BENCH_READ}, {1, BENCH_WRITE}}, 128},
        {"quantize-1x128", MIXPREC_BF16, run_quantize, {{2, BENCH_READ}, {1, BENCH_WRITE}}, 128},
        {"quantize-i8-1x128", MIXPREC_BF16, run_quantize_i8, {{2, BENCH_READ}, {1, BENCH_WRITE}}, 128},
        {"dequantize-1x128", MIXPREC_BF16, run_dequantize, {{1, BENCH_READ}, {2, BENCH_WRITE}}, 128},
        {"dequantize-i8-1x128", MIXPREC_BF16, run_dequantize_i8, {{1, BENCH_READ}, {2, BENCH_WRITE}}, 128},
    };
    bench_tensors("quant", "DRAM", rows, COUNT_OF(rows));
    bench_tensors("quant", "L1", rows_l1, COUNT_OF(rows_l1));
}
