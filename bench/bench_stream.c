/* Arrays that stream through the library: in L1, in L2 and in DRAM, on every path, beside memcpy of as many bytes.
   Shared by conversion and by unscaling, whose figures mean the same. */
#include "bench.h"

typedef struct stream_run {
    bench_stream_fn *call; /* NULL: memcpy */
    bench_stream row;
    mixprec_isa isa;
    unsigned char *dst, *src;
    size_t n;      /* elements (memcpy: bytes) in all threads together */
    size_t passes; /* over the array in one run: a pass over L1 is too short to hand to threads */
} stream_run;

static void stream_range(void *context, size_t begin, size_t end) {
    const stream_run *run = context;
    size_t pass;
    for (pass = 0; pass < run->passes; pass++) {
        if (run->call)
            run->call(run->dst + begin * mixprec_dtype_size(run->row.dst), run->row.dst,
                      run->src + begin * mixprec_dtype_size(run->row.src), run->row.src, end - begin, run->isa);
        else
            memcpy(run->dst + begin, run->src + begin, end - begin);
        bench_use(run->dst);
    }
}

static void run_stream(void *context) {
    stream_run *run = context;
    bench_parallel(bench_option.threads, run->n, 64, stream_range, run);
}

static void measure_row(const char *suite, const bench_stream *row, const char *level, size_t bytes,
                        bench_stream_fn *call) {
    stream_run runs[5];
    bench_timing timings[5];
    mixprec_isa paths[4];
    size_t dst_size = mixprec_dtype_size(row->dst), src_size = mixprec_dtype_size(row->src);
    size_t n = bytes / (dst_size + src_size) / 64 * 64, i;
    size_t passes = ((size_t)16 << 20) / bytes + 1;
    int path, path_count = bench_paths(paths);
    char name[64];
    unsigned char *memory = bench_alloc(n * (dst_size + src_size));
    double *values = bench_alloc(4096 * sizeof(*values)), copy_seconds;

    snprintf(name, sizeof(name), "%s/%s", row->name, level);
    bench_normals(values, 4096, 1);
    for (i = 0; i < n; i += 4096)
        bench_check(mixprec_convert(memory + n * dst_size + i * src_size, row->src, values, MIXPREC_F64,
                                    n - i < 4096 ? n - i : 4096));
    for (path = 0; path <= path_count; path++) {
        stream_run *run = &runs[path];
        run->row = *row;
        run->isa = path < path_count ? paths[path] : MIXPREC_ISA_AUTO;
        run->dst = memory;
        run->src = memory + n * dst_size;
        run->n = n;
        run->call = call;
        run->passes = passes;
        timings[path].run = run_stream;
        timings[path].check = NULL;
        timings[path].context = run;
        timings[path].key = bench_key_of(suite, name, row->dtype, run->isa);
        if (path == path_count) {
            run->call = NULL;
            run->n = n * (dst_size + src_size) / 2;
            run->src = memory + run->n;
            timings[path].key.isa = "-";
            timings[path].key.impl = "memcpy";
        }
    }
    bench_measure(timings, path_count + 1);

    printf("  %-4s -> %-4s", mixprec_dtype_name(row->src), mixprec_dtype_name(row->dst));
    copy_seconds = timings[path_count].best;
    for (path = 0; path <= path_count; path++) {
        double seconds = timings[path].best / (double)passes;
        double gb_per_s = 1e-9 * (double)(n * (dst_size + src_size)) / seconds;
        bench_record(&timings[path].key, "gb_per_s", gb_per_s);
        if (path < path_count) {
            bench_record(&timings[path].key, "elements_per_s", (double)n / seconds);
            bench_record(&timings[path].key, "share_of_memcpy", copy_seconds / timings[path].best);
        }
        printf(" %9.1f", gb_per_s);
    }
    path = path_count - 1;
    printf(" %13.2f %12.0f %%", 1e-9 * (double)n * (double)passes / timings[path].best,
           100 * copy_seconds / timings[path].best);
    if (!strcmp(level, "DRAM")) {
        double share = 1e-9 * (double)(n * (dst_size + src_size)) * (double)passes / timings[path].best /
                       bench_bandwidth("copy", bench_option.threads);
        bench_record(&timings[path].key, "share_of_dram_copy", share);
        printf(" %12.0f %%", 100 * share);
    }
    printf("\n");
    free(values);
    free(memory);
}

void bench_streams(const char *suite, const char *title, const bench_stream *rows, int count, bench_stream_fn *call) {
    static const char *const levels[3] = {"L1", "L2", "DRAM"};
    size_t threads = (size_t)bench_option.threads, sizes[3];
    mixprec_isa paths[4];
    int level, row, path, path_count = bench_paths(paths);
    sizes[0] = bench_machine.l1_bytes / 2 * threads; /* half a cache: the rest is for the stack and the code */
    sizes[1] = bench_machine.l2_bytes / 2 * threads;
    sizes[2] = bench_dram_bytes();
    for (level = 0; level < 3; level++) {
        int begun = 0;
        for (row = 0; row < count; row++) {
            char name[64];
            snprintf(name, sizeof(name), "%s/%s", rows[row].name, levels[level]);
            if (!bench_wanted(suite, name, mixprec_dtype_name(rows[row].dtype)))
                continue;
            if (!begun++) {
                printf("\n%s, %s: %.0f KiB read and written; GB/s\n  %-12s", title, levels[level],
                       (double)sizes[level] / 1024, "");
                for (path = 0; path < path_count; path++)
                    printf(" %9s", mixprec_isa_name(paths[path]));
                printf(" %9s %13s %14s", "memcpy", "G elements/s", "of memcpy");
                printf(level == 2 ? " %14s\n" : "\n", "of DRAM copy");
            }
            measure_row(suite, &rows[row], levels[level], sizes[level], call);
        }
    }
}
