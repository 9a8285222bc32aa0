/* Arrays that stream through the library: in L1, in L2 and in DRAM, on every path, beside loops that only load and
   store as many bytes. The fastest of those with vectors of up to the path's width counts: on Zen 4 in DRAM that is
   often the one of 32 bytes, not of 64. Shared by conversion and by unscaling, whose figures mean the same. Cycles are
   those of the core, whose clock a chain of additions finds around each sample. */
#include "bench.h"

/* ---- loading and storing, and nothing else ---- */

/* For ratios of bytes read and written from 8:1 (fp4) to 1:8. `volatile` keeps loads whose values nobody uses. */
#define LOAD_STORE_LOOP(vector, loads, stores)                                                                         \
    if ((loads)*dst_bytes == (stores)*src_bytes)                                                                       \
        for (; x < end; x += (loads), y += (stores)) {                                                                 \
            vector v[8];                                                                                               \
            v[0] = x[0];                                                                                               \
            if ((loads) > 1)                                                                                           \
                v[1] = x[1];                                                                                           \
            if ((loads) > 2)                                                                                           \
                v[2] = x[2], v[3] = x[3];                                                                              \
            if ((loads) > 4)                                                                                           \
                v[4] = x[4], v[5] = x[5], v[6] = x[6], v[7] = x[7];                                                    \
            y[0] = v[0];                                                                                               \
            if ((stores) > 1)                                                                                          \
                y[1] = v[1 % (loads)];                                                                                 \
            if ((stores) > 2)                                                                                          \
                y[2] = v[2 % (loads)], y[3] = v[3 % (loads)];                                                          \
            if ((stores) > 4)                                                                                          \
                y[4] = v[0], y[5] = v[0], y[6] = v[0], y[7] = v[0];                                                    \
        }

#define LOAD_STORE_KERNEL(name, attribute, vector)                                                                     \
    attribute static void load_store_##name(unsigned char *dst, size_t dst_bytes, const unsigned char *src,            \
                                            size_t src_bytes) {                                                        \
        volatile vector *y = (volatile vector *)(void *)dst;                                                           \
        const volatile vector *x = (const volatile vector *)(const void *)src, *end = x + src_bytes / sizeof(vector);  \
        LOAD_STORE_LOOP(vector, 8, 1);                                                                                 \
        LOAD_STORE_LOOP(vector, 4, 1);                                                                                 \
        LOAD_STORE_LOOP(vector, 4, 2);                                                                                 \
        LOAD_STORE_LOOP(vector, 4, 4);                                                                                 \
        LOAD_STORE_LOOP(vector, 2, 4);                                                                                 \
        LOAD_STORE_LOOP(vector, 1, 4);                                                                                 \
        LOAD_STORE_LOOP(vector, 1, 8);                                                                                 \
    }

LOAD_STORE_KERNEL(plain, , words_16)
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__TINYC__)
LOAD_STORE_KERNEL(avx2, __attribute__((target("avx2"))), words_32)
LOAD_STORE_KERNEL(avx512, __attribute__((target("avx512f"))), words_64)
#endif

static void load_store(mixprec_isa isa, unsigned char *dst, size_t dst_bytes, const unsigned char *src,
                       size_t src_bytes) {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__TINYC__)
    if (isa == MIXPREC_ISA_AVX512) {
        load_store_avx512(dst, dst_bytes, src, src_bytes);
        return;
    }
    if (isa == MIXPREC_ISA_AVX2) {
        load_store_avx2(dst, dst_bytes, src, src_bytes);
        return;
    }
#else
    (void)isa;
#endif
    load_store_plain(dst, dst_bytes, src, src_bytes);
}

/* ---- a row ---- */

typedef struct stream_run {
    bench_stream_fn *call; /* NULL: load and store */
    const bench_stream *row;
    mixprec_isa isa;
    unsigned char *dst, *src;
    size_t n;      /* elements in all threads together, of a part */
    size_t passes; /* over the array in one run: a pass over L1 is too short to hand to threads */
    int part;      /* of DRAM */
} stream_run;

static void stream_range(void *context, size_t begin, size_t end) {
    const stream_run *run = context;
    const mixprec_dtype to = run->row->dst, from = run->row->src;
    const size_t first = begin + run->n * (size_t)run->part, n = end - begin;
    unsigned char *dst = run->dst + mixprec_dtype_bytes(to, first), *src = run->src + mixprec_dtype_bytes(from, first);
    size_t pass;
    for (pass = 0; pass < run->passes; pass++) {
        if (run->call)
            run->call(run->row, dst, src, n, run->isa);
        else
            load_store(run->isa, dst, mixprec_dtype_bytes(to, n), src, mixprec_dtype_bytes(from, n));
        bench_use(run->dst);
    }
}

#define GRAIN 128 /* elements: whole steps of load_store for each pair of types */

static void run_stream(void *context) {
    stream_run *run = context;
    bench_parallel(bench_option.threads, run->n, GRAIN, stream_range, run);
}

static const char *label_of(const bench_stream *row, char text[40]) {
    static const char *const rounds[] = {"", ", toward 0", ", upward", ", downward", ", ties away", ", stochastic"};
    static const char *const overflows[] = {"", ", saturating", ", keeping Inf"};
    snprintf(text, 40, "%s -> %s%s%s%s", mixprec_dtype_name(row->src), mixprec_dtype_name(row->dst),
             overflows[row->overflow], rounds[row->round], row->scale > 0 ? ", scale" : "");
    return text;
}

static void measure_row(const char *suite, const bench_stream *row, const char *level, size_t bytes,
                        bench_stream_fn *call) {
    stream_run runs[7]; /* the library's on each path, then the loop's on each but portable C, which comes first */
    bench_timing timings[7];
    mixprec_isa paths[4];
    const double element_bytes = 0.5 * (double)(mixprec_dtype_bytes(row->dst, 2) + mixprec_dtype_bytes(row->src, 2));
    const int parts = bytes >= bench_parts_bytes() ? BENCH_PARTS : 0;
    const size_t grain = GRAIN * (parts ? BENCH_PARTS : 1);
    const size_t n = (size_t)((double)bytes / element_bytes) / grain * grain;
    const size_t dst_bytes = mixprec_dtype_bytes(row->dst, n), src_bytes = mixprec_dtype_bytes(row->src, n);
    size_t passes = ((size_t)16 << 20) / bytes + 1;
    double elements = (double)n * (double)passes, seconds = 0;
    double fastest_loop = (double)INFINITY;
    int path_count = bench_paths(paths), count = 2 * path_count - 1, j;
    char name[64], label[40];
    unsigned char *memory = bench_alloc(dst_bytes + src_bytes);

    snprintf(name, sizeof(name), "%s/%s", row->name, level);
    bench_fill(memory + dst_bytes, row->src, n, BENCH_SAME);
    memset(timings, 0, sizeof(timings));
    for (j = 0; j < count; j++) {
        stream_run *run = &runs[j];
        run->row = row;
        run->isa = paths[j < path_count ? j : j - path_count + 1];
        run->dst = memory;
        run->src = memory + dst_bytes;
        run->n = parts ? n / (size_t)parts : n;
        run->passes = passes;
        run->part = 0;
        run->call = j < path_count ? call : NULL;
        timings[j].run = run_stream;
        timings[j].context = run;
        timings[j].limit = bench_clock_limit();
        timings[j].part = parts ? &run->part : NULL;
        timings[j].parts = parts;
        timings[j].key = bench_key_of(suite, name, row->dtype, run->isa);
        if (!run->call)
            timings[j].key.impl = "load-store";
    }
    bench_measure(timings, count);

    printf("  %-25s", label_of(row, label));
    for (j = 0; j < count; j++) {
        const bench_timing *timing = &timings[j];
        double cycles = timing->limit_work * bench_option.threads / elements;
        bench_record(&timing->key, "gb_per_s", 1e-9 * elements * element_bytes / timing->best);
        bench_record(&timing->key, "elements_per_s", elements / timing->best);
        bench_record(&timing->key, "cycles_per_element", cycles);
        if (j >= path_count)
            continue;
        printf(" %8.3f", cycles);
        if (j > 0) {
            double share;
            fastest_loop = fmin(fastest_loop, timings[path_count + j - 1].best);
            share = fastest_loop / timing->best;
            bench_record(&timing->key, "share_of_load_store", share);
            bench_record(&timing->key, "load_store_gb_per_s", 1e-9 * elements * element_bytes / fastest_loop);
            printf(" %4.0f %%", 100 * share);
        }
        seconds = timing->best;
    }
    printf(" %9.2f %8.1f\n", 1e-9 * elements / seconds, 1e-9 * elements * element_bytes / seconds);
    free(memory);
}

void bench_streams(const char *suite, const char *title, const bench_stream *rows, int count, bench_stream_fn *call) {
    static const char *const levels[3] = {"L1", "L2", "DRAM"};
    size_t threads = (size_t)bench_option.threads, sizes[3];
    mixprec_isa paths[4];
    int level, row, path, path_count = bench_paths(paths);
    double seconds_before = bench_option.seconds;
    bench_option.seconds /= 2;                       /* many figures, steady ones */
    sizes[0] = bench_machine.l1_bytes / 2 * threads; /* half a cache: the rest is for the stack and the code */
    sizes[1] = bench_machine.l2_bytes / 2 * threads;
    sizes[2] = bench_parts_bytes();
    for (level = 0; level < 3; level++) {
        int begun = 0;
        for (row = 0; row < count; row++) {
            char name[64];
            snprintf(name, sizeof(name), "%s/%s", rows[row].name, levels[level]);
            if (!bench_wanted(suite, name, mixprec_dtype_name(rows[row].dtype)))
                continue;
            if (!begun++) {
                printf("\n%s, %s: %.0f KiB read and written. Cycles for an element; share: of a loop that only loads "
                       "and\nstores as many bytes in vectors of up to the path's width%s; G elements/s and GB/s of the "
                       "last path\n  %-25s",
                       title, levels[level], (double)sizes[level] / 1024,
                       level < 2 ? "" : " (above 100 %: what is written around the\ncaches is not read first)", "");
                for (path = 0; path < path_count; path++)
                    printf(path ? " %8s  share" : " %8s", mixprec_isa_name(paths[path]));
                printf(" %9s %8s\n", "G/s", "GB/s");
            }
            measure_row(suite, &rows[row], levels[level], sizes[level], call);
        }
    }
    bench_option.seconds = seconds_before;
}
