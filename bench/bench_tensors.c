/* Whole tensors that training goes over outside of matrix products: shared by the rooms REDUCE, OPTIM and QUANT. All of
   it is limited by memory, so each case runs on arrays that no cache holds (some of QUANT's in L1, too, for their
   arithmetic), beside a loop that only loads and stores the same bytes of the same arrays, in turn: in blocks of 256
   elements, of 128 and, with AVX-512, of 256 by 64 bytes at a time, of which the fastest one counts. */
#include "bench.h"

/* ---- loading and storing, and nothing else ---- */

/* In blocks of at least 128 elements: four vectors of bytes. */
#define TOUCH(name, attribute, vector)                                                                                 \
    attribute static void touch_##name(const bench_tensor_run *run) {                                                  \
        static const vector zero;                                                                                      \
        size_t i, j, k;                                                                                                \
        for (i = 0; i < run->n; i += run->block)                                                                       \
            for (k = 0; k < BENCH_TENSORS && run->row->arrays[k].size; k++) {                                          \
                volatile vector *p = (volatile vector *)(void *)(run->arrays[k] + i * run->row->arrays[k].size);       \
                const size_t count = run->block * run->row->arrays[k].size / sizeof(vector);                           \
                if (run->row->arrays[k].access == BENCH_UPDATE)                                                        \
                    for (j = 0; j < count; j += 4) {                                                                   \
                        vector v0 = p[j], v1 = p[j + 1], v2 = p[j + 2], v3 = p[j + 3];                                 \
                        p[j] = v0, p[j + 1] = v1, p[j + 2] = v2, p[j + 3] = v3;                                        \
                    }                                                                                                  \
                else if (run->row->arrays[k].access == BENCH_READ)                                                     \
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
TOUCH(avx512, __attribute__((target("avx512f"))), words_64)
#endif

static void touch(const bench_tensor_run *run) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__TINYC__)
    if (mixprec_isa_available(MIXPREC_ISA_AVX2)) {
        (run->wide ? touch_avx512 : touch_avx2)(run);
        return;
    }
#endif
    touch_plain(run);
}

/* ---- a row ---- */

static bench_tensor_run part_of(const bench_tensor_run *run) {
    bench_tensor_run part = *run;
    size_t k;
    part.n /= (size_t)run->parts;
    for (k = 0; k < BENCH_TENSORS && run->row->arrays[k].size; k++)
        part.arrays[k] += part.n * (size_t)run->part * run->row->arrays[k].size;
    return part;
}

static void run_library(void *context) {
    bench_tensor_run part = part_of(context);
    part.row->call(&part);
}

static void run_touch(void *context) {
    bench_tensor_run part = part_of(context);
    touch(&part);
}

static size_t bytes_of(const char *level) {
    return strcmp(level, "L1") ? bench_parts_bytes() : bench_machine.l1_bytes / 2;
}

static void measure(const char *suite, const char *level, const bench_tensor *row) {
    const int in_l1 = !strcmp(level, "L1"), parts = in_l1 ? 1 : BENCH_PARTS;
    const size_t grain = in_l1 ? 256 : 4096 * BENCH_PARTS;
    size_t per_element = 0, moved = 0, n, k, i;
    const int count = mixprec_isa_available(MIXPREC_ISA_AVX512) ? 4 : 3;
    bench_timing timings[4];
    bench_tensor_run runs[4], *run = runs;
    unsigned char *memory, *next;
    char name[64];
    double share;

    for (k = 0; k < BENCH_TENSORS; k++) {
        per_element += row->arrays[k].size;
        moved += row->arrays[k].size * (row->arrays[k].access == BENCH_UPDATE ? 2 : 1);
    }
    n = bytes_of(level) / per_element / grain * grain;
    memory = next = bench_alloc(n * per_element);
    run->row = row;
    run->n = n;
    run->part = 0;
    run->parts = parts;
    run->isa = mixprec_isa_best();
    run->partials = bench_alloc((n / MIXPREC_REDUCE_BLOCK + 1) * sizeof(double));
    run->scales = bench_alloc((n / 32 + 1) * sizeof(float));
    for (i = 0; i <= n / 32; i++)
        run->scales[i] = 0.125f;
    for (k = 0; k < BENCH_TENSORS && row->arrays[k].size; k++) {
        size_t size = row->arrays[k].size;
        run->arrays[k] = next;
        next += n * size;
        /* squares: a second moment is not negative */
        bench_fill(run->arrays[k], size == 4 ? MIXPREC_F32 : size == 2 ? row->dtype : MIXPREC_E4M3, n, BENCH_SQUARES);
    }
    snprintf(name, sizeof(name), "%s/%s", row->name, level);
    memset(timings, 0, sizeof(timings));
    for (i = 0; i < (size_t)count; i++) {
        runs[i] = *run;
        runs[i].block = i == 2 ? 128 : 256;
        runs[i].wide = i == 3;
        timings[i].run = i ? run_touch : run_library;
        timings[i].context = &runs[i];
        timings[i].part = in_l1 ? NULL : &runs[i].part;
        timings[i].parts = parts;
        timings[i].limit = bench_clock_limit();
        timings[i].key = bench_key_of(suite, name, row->dtype, run->isa);
        timings[i].key.threads = 1;
    }
    timings[1].key.impl = "load-store";
    timings[2].key.impl = "load-store-128";
    timings[3].key.impl = "load-store-avx512";
    bench_measure(timings, count);
    for (i = 0; i < (size_t)count; i++) {
        bench_record(&timings[i].key, "gb_per_s", 1e-9 * (double)(n * moved) / timings[i].best);
        bench_record(&timings[i].key, "elements_per_s", (double)n / timings[i].best);
        bench_record(&timings[i].key, "cycles_per_element", timings[i].limit_work / (double)n);
    }
    share = fmin(timings[1].best, timings[2].best);
    share = (count > 3 ? fmin(share, timings[3].best) : share) / timings[0].best;
    bench_record(&timings[0].key, "share_of_load_store", share);
    printf("  %-19s %-5s %6d B %9.3f %7.0f %% %9.2f %8.1f\n", row->name, mixprec_dtype_name(row->dtype), (int)moved,
           timings[0].limit_work / (double)n, 100 * share, 1e-9 * (double)n / timings[0].best,
           1e-9 * (double)(n * moved) / timings[0].best);
    free(run->scales);
    free(run->partials);
    free(memory);
}

void bench_tensors(const char *suite, const char *level, const bench_tensor *rows, int count) {
    static const char *begun = "";
    const int in_l1 = !strcmp(level, "L1");
    int i;
    for (i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s/%s", rows[i].name, level);
        if (!bench_wanted(suite, name, mixprec_dtype_name(rows[i].dtype)))
            continue;
        if (strcmp(begun, level))
            printf("\n%s: %.0f %s, one thread, best path. Share: of a loop that only loads\nand stores the same bytes\n"
                   "  %-19s %-5s %8s %9s %9s %9s %8s\n",
                   in_l1 ? "Quantisation in L1" : "Training: reductions, optimisers, quantisation",
                   (double)bytes_of(level) / (in_l1 ? 1 << 10 : 1 << 20), in_l1 ? "KiB" : "MiB", "", "", "element",
                   "cycles", "share", "G/s", "GB/s");
        begun = level;
        measure(suite, level, &rows[i]);
    }
}
