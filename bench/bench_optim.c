/* The rooms REDUCE, QUANT and OPTIM: what training does to whole tensors outside of matrix products. All of it is
   limited by memory, so each case runs on arrays that no cache holds, beside a loop that only loads and stores the same
   bytes of the same arrays, in turn: in blocks of 256 elements and of 128, of which the faster one counts. */
#include "bench.h"

#define ARRAYS 6

enum { READ = 1, WRITE = 2, UPDATE = 3 };

typedef struct tensor_case tensor_case;
typedef struct tensor_run {
    const tensor_case *row;
    unsigned char *arrays[ARRAYS];
    size_t n;
    mixprec_isa isa;
    double *partials;
    float *scales;
    int part;
    size_t block; /* of the loop */
} tensor_run;

struct tensor_case {
    const char *name;
    mixprec_dtype dtype; /* of what is not fp32 */
    void (*call)(const tensor_run *run);
    struct {
        size_t size; /* bytes of an element, 0: no more arrays */
        int access;
    } arrays[ARRAYS];
    size_t block_columns; /* of what is quantised; 0: one scale */
};

/* ---- the cases ---- */

static void run_sum_squares(const tensor_run *run) {
    bench_check(mixprec_reduce(run->partials, MIXPREC_SUM_SQUARES, run->arrays[0], run->row->dtype, NULL, MIXPREC_NONE,
                               0, run->n, run->isa));
}

static void run_dot(const tensor_run *run) {
    bench_check(mixprec_reduce(run->partials, MIXPREC_DOT, run->arrays[0], run->row->dtype, run->arrays[1],
                               run->row->dtype, 0, run->n, run->isa));
}

static void run_amax(const tensor_run *run) {
    float amax;
    bench_check(mixprec_amax_ex(&amax, run->arrays[0], run->row->dtype, run->n, run->isa));
    bench_use(&amax);
}

static void run_accumulate(const tensor_run *run) {
    bench_check(mixprec_accumulate((float *)(void *)run->arrays[0], run->arrays[1], run->row->dtype, run->n, 0.125f));
}

static mixprec_parameter parameter_of(const tensor_run *run) {
    mixprec_parameter p;
    memset(&p, 0, sizeof(p));
    p.n = run->n;
    p.grad = run->arrays[0];
    p.grad_type = p.model_type = run->row->dtype;
    p.master = (float *)(void *)run->arrays[1];
    p.moment1 = (float *)(void *)run->arrays[2];
    p.isa = run->isa;
    return p;
}

static void run_adamw(const tensor_run *run) {
    mixprec_parameter p = parameter_of(run);
    mixprec_adam adam;
    mixprec_adamw_init(&adam);
    adam.step = 10;
    p.moment2 = (float *)(void *)run->arrays[3];
    p.model = run->arrays[4];
    bench_check(mixprec_adam_step(&adam, &p, 0.5f, 0.25f, 0));
}

static void run_sgd(const tensor_run *run) {
    mixprec_parameter p = parameter_of(run);
    mixprec_sgd sgd;
    mixprec_sgd_init(&sgd);
    sgd.momentum = 0.9;
    sgd.weight_decay = 1e-4;
    sgd.step = 10;
    p.model = run->arrays[3];
    bench_check(mixprec_sgd_step(&sgd, &p, 0.5f, 0.25f, 0));
}

static void quantize(const tensor_run *run, mixprec_dtype to, const float *scale) {
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

static void run_quantize(const tensor_run *run) {
    quantize(run, MIXPREC_E4M3, NULL);
}

static void run_quantize_i8(const tensor_run *run) {
    quantize(run, MIXPREC_I8, NULL);
}

static void run_quantize_delayed(const tensor_run *run) {
    const float scale = 64.0f;
    quantize(run, MIXPREC_E4M3, &scale);
}

static void run_dequantize(const tensor_run *run) {
    mixprec_scales scales;
    memset(&scales, 0, sizeof(scales));
    scales.values = run->scales;
    scales.block_rows = 1;
    scales.block_columns = run->row->block_columns;
    bench_check(
        mixprec_dequantize(run->arrays[1], run->row->dtype, 0, run->arrays[0], MIXPREC_E4M3, 0, 1, run->n, &scales));
}

static const tensor_case cases[] = {
    {"sum-squares", MIXPREC_F32, run_sum_squares, {{4, READ}}, 0},
    {"sum-squares", MIXPREC_BF16, run_sum_squares, {{2, READ}}, 0},
    {"sum-squares", MIXPREC_F16, run_sum_squares, {{2, READ}}, 0},
    {"dot", MIXPREC_F32, run_dot, {{4, READ}, {4, READ}}, 0},
    {"amax", MIXPREC_F32, run_amax, {{4, READ}}, 0},
    {"amax", MIXPREC_BF16, run_amax, {{2, READ}}, 0},
    {"accumulate", MIXPREC_F32, run_accumulate, {{4, UPDATE}, {4, READ}}, 0},
    {"accumulate", MIXPREC_BF16, run_accumulate, {{4, UPDATE}, {2, READ}}, 0},
    {"sgd", MIXPREC_BF16, run_sgd, {{2, READ}, {4, UPDATE}, {4, UPDATE}, {2, WRITE}}, 0},
    {"adamw", MIXPREC_BF16, run_adamw, {{2, READ}, {4, UPDATE}, {4, UPDATE}, {4, UPDATE}, {2, WRITE}}, 0},
    {"adamw", MIXPREC_F16, run_adamw, {{2, READ}, {4, UPDATE}, {4, UPDATE}, {4, UPDATE}, {2, WRITE}}, 0},
    {"quantize-delayed", MIXPREC_BF16, run_quantize_delayed, {{2, READ}, {1, WRITE}}, 0},
    {"quantize-1x128", MIXPREC_BF16, run_quantize, {{2, READ}, {1, WRITE}}, 128},
    {"quantize-1x128", MIXPREC_F32, run_quantize, {{4, READ}, {1, WRITE}}, 128},
    {"quantize-1x32", MIXPREC_BF16, run_quantize, {{2, READ}, {1, WRITE}}, 32},
    {"quantize-i8-1x128", MIXPREC_BF16, run_quantize_i8, {{2, READ}, {1, WRITE}}, 128},
    {"dequantize-1x128", MIXPREC_BF16, run_dequantize, {{1, READ}, {2, WRITE}}, 128},
};

/* ---- loading and storing, and nothing else ---- */

/* In blocks of at least 128 elements: four vectors of bytes. */
#define TOUCH(name, attribute, vector)                                                                                 \
    attribute static void touch_##name(const tensor_run *run) {                                                        \
        static const vector zero;                                                                                      \
        size_t i, j, k;                                                                                                \
        for (i = 0; i < run->n; i += run->block)                                                                       \
            for (k = 0; k < ARRAYS && run->row->arrays[k].size; k++) {                                                 \
                volatile vector *p = (volatile vector *)(void *)(run->arrays[k] + i * run->row->arrays[k].size);       \
                const size_t count = run->block * run->row->arrays[k].size / sizeof(vector);                           \
                if (run->row->arrays[k].access == UPDATE)                                                              \
                    for (j = 0; j < count; j += 4) {                                                                   \
                        vector v0 = p[j], v1 = p[j + 1], v2 = p[j + 2], v3 = p[j + 3];                                 \
                        p[j] = v0, p[j + 1] = v1, p[j + 2] = v2, p[j + 3] = v3;                                        \
                    }                                                                                                  \
                else if (run->row->arrays[k].access == READ)                                                           \
                    for (j = 0; j < count; j += 4)                                                                     \
                        (void)p[j], (void)p[j + 1], (void)p[j + 2], (void)p[j + 3];                                    \
                else                                                                                                   \
                    for (j = 0; j < count; j += 4)                                                                     \
                        p[j] = zero, p[j + 1] = zero, p[j + 2] = zero, p[j + 3] = zero;                                \
            }                                                                                                          \
    }

TOUCH(plain, , words_16)
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__TINYC__)
TOUCH(avx2, __attribute__((target("avx2"))), words_32)
#endif

static void touch(const tensor_run *run) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__TINYC__)
    if (mixprec_isa_available(MIXPREC_ISA_AVX2)) {
        touch_avx2(run);
        return;
    }
#endif
    touch_plain(run);
}

/* ---- a row ---- */

static tensor_run part_of(const tensor_run *run) {
    tensor_run part = *run;
    size_t k;
    part.n /= BENCH_PARTS;
    for (k = 0; k < ARRAYS && run->row->arrays[k].size; k++)
        part.arrays[k] += part.n * (size_t)run->part * run->row->arrays[k].size;
    return part;
}

static void run_library(void *context) {
    tensor_run part = part_of(context);
    part.row->call(&part);
}

static void run_touch(void *context) {
    tensor_run part = part_of(context);
    touch(&part);
}

static void measure(const tensor_case *row, size_t bytes) {
    size_t per_element = 0, moved = 0, n, k, i;
    bench_timing timings[3];
    tensor_run runs[3], *run = runs;
    unsigned char *memory, *next;
    double *values = bench_alloc(4096 * sizeof(*values));
    char name[64];
    double share;

    for (k = 0; k < ARRAYS; k++) {
        per_element += row->arrays[k].size;
        moved += row->arrays[k].size * (row->arrays[k].access == UPDATE ? 2 : 1);
    }
    n = bytes / per_element / (4096 * BENCH_PARTS) * (4096 * BENCH_PARTS);
    memory = next = bench_alloc(n * per_element);
    run->row = row;
    run->n = n;
    run->isa = mixprec_isa_best();
    run->partials = bench_alloc((n / MIXPREC_REDUCE_BLOCK + 1) * sizeof(double));
    run->scales = bench_alloc((n / 32 + 1) * sizeof(float));
    for (i = 0; i <= n / 32; i++)
        run->scales[i] = 0.125f;
    bench_normals(values, 4096, 1);
    for (i = 0; i < 4096; i++) /* a second moment is not negative */
        values[i] = values[i] * values[i];
    for (k = 0; k < ARRAYS && row->arrays[k].size; k++) {
        size_t size = row->arrays[k].size;
        run->arrays[k] = next;
        next += n * size;
        for (i = 0; i < n; i += 4096)
            bench_check(mixprec_convert(run->arrays[k] + i * size,
                                        size == 4   ? MIXPREC_F32
                                        : size == 2 ? row->dtype
                                                    : MIXPREC_E4M3,
                                        values, MIXPREC_F64, 4096));
    }
    snprintf(name, sizeof(name), "%s/DRAM", row->name);
    memset(timings, 0, sizeof(timings));
    for (i = 0; i < 3; i++) {
        runs[i] = *run;
        runs[i].block = i < 2 ? 256 : 128;
        timings[i].run = i ? run_touch : run_library;
        timings[i].context = &runs[i];
        timings[i].part = &runs[i].part;
        timings[i].parts = BENCH_PARTS;
        timings[i].limit = bench_clock_limit();
        timings[i].key = bench_key_of("optim", name, row->dtype, run->isa);
        timings[i].key.threads = 1;
    }
    timings[1].key.impl = "load-store";
    timings[2].key.impl = "load-store-128";
    bench_measure(timings, 3);
    for (i = 0; i < 3; i++) {
        bench_record(&timings[i].key, "gb_per_s", 1e-9 * (double)(n * moved) / timings[i].best);
        bench_record(&timings[i].key, "elements_per_s", (double)n / timings[i].best);
        bench_record(&timings[i].key, "cycles_per_element", timings[i].limit_work / (double)n);
    }
    share = fmin(timings[1].best, timings[2].best) / timings[0].best;
    bench_record(&timings[0].key, "share_of_load_store", share);
    printf("  %-17s %-5s %6d B %9.3f %7.0f %% %9.2f %8.1f\n", row->name, mixprec_dtype_name(row->dtype), (int)moved,
           timings[0].limit_work / (double)n, 100 * share, 1e-9 * (double)n / timings[0].best,
           1e-9 * (double)(n * moved) / timings[0].best);
    free(run->scales);
    free(run->partials);
    free(memory);
    free(values);
}

void bench_optim(void) {
    int i, begun = 0;
    for (i = 0; i < COUNT_OF(cases); i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s/DRAM", cases[i].name);
        if (!bench_wanted("optim", name, mixprec_dtype_name(cases[i].dtype)))
            continue;
        if (!begun++)
            printf(
                "\nTraining: reductions, optimisers, quantisation: %.0f MiB, one thread, best path. Share: of a loop "
                "that only loads\nand stores the same bytes\n  %-17s %-5s %8s %9s %9s %9s %8s\n",
                (double)bench_parts_bytes() / (1 << 20), "", "", "element", "cycles", "share", "G/s", "GB/s");
        measure(&cases[i], bench_parts_bytes());
    }
}
