/* The room GEMM: speed beside error. Square sizes, small products, an awkward size, a vector and small batches against
   a matrix of weights, and dot(A, A^T) as published; every format, beside other libraries where the build found them.
   All implementations and formats of a case are timed in the same rounds (of the last case: those of one format). What
   is timed is the call: the descriptor is filled in before.

   Error: max |c - r| / sum |a b| over a sample of C, with r summed in long double, once from the original f64 data
   ("error": what the format loses in storage and in the sum), once from the operands as stored ("of sum": arithmetic
   alone). */
#include "bench.h"

typedef struct gemm_case {
    const char *suite, *name;
    mixprec_transpose tb;
    size_t m, n, k;
    int all_paths; /* not the best one only */
    int streams;   /* the larger operand is read from DRAM: several copies take turns */
    int is_gram;   /* B is A; one format at a time, to save memory */
    size_t past;   /* bytes from a line of the cache to the beginning of B */
    size_t batch;  /* products in one call, one behind the other; 0: one */
} gemm_case;

/* Ways to use the library. Each but the first is a row of its own, in the cases and for the formats it is meant for. */
typedef enum gemm_variant {
    PLAIN,
    PACKED,
    BLOCK_SCALES,
    CHANNEL_SCALES,
    NATIVE,
    TWO_THREADS,
    NARROW, /* C has the operands' format */
    GELU,   /* likewise, with bias and activation */
    RANDOM  /* likewise, rounded stochastically */
} gemm_variant;
static const char *const variant_names[] = {"mixprec",          "mixprec packed", "mixprec scaled",
                                            "mixprec channels", "mixprec native", "mixprec 2 cores",
                                            "mixprec narrow",   "mixprec gelu",   "mixprec random"};

typedef struct gemm_run {
    const gemm_case *shape;
    mixprec_dtype dtype;
    gemm_variant variant;
    mixprec_isa isa;        /* of the library */
    const bench_peer *peer; /* NULL: the library, or the triple loop */
    int is_triple_loop;
    const double *original_a, *original_b;
    const unsigned char *a, *b, *packed;
    size_t a_step, b_step, packed_bytes, copies, turn; /* steps: from one copy to the next; 0: there is one */
    void *c;
    mixprec_gemm_desc desc; /* of the library, filled in before the clock runs */
    double error, error_of_sum;
    int refused; /* by the peer */
} gemm_run;

/* One format's operands, shared by the implementations. */
typedef struct gemm_operands {
    unsigned char *a, *b, *c, *packed, *b_memory;
    size_t a_step, b_step, packed_bytes, copies;
} gemm_operands;

#define MAX_RUNS 48

static size_t products_of(const gemm_case *shape) {
    return shape->batch ? shape->batch : 1;
}

static double flops_of(const gemm_case *shape) {
    return 2.0 * (double)shape->m * (double)shape->n * (double)shape->k * (double)products_of(shape);
}

/* Whether the table tells microseconds: milliseconds would be zeros. */
static int is_small(const gemm_case *shape) {
    return flops_of(shape) < 2e6;
}

static mixprec_dtype accumulator_of(mixprec_dtype dtype) {
    return dtype == MIXPREC_F64 ? MIXPREC_F64 : MIXPREC_F32;
}

/* Elements of all products. */
static size_t a_count_of(const gemm_case *shape) {
    return shape->m * shape->k * products_of(shape);
}
static size_t b_count_of(const gemm_case *shape) {
    return shape->n * shape->k * products_of(shape);
}
static size_t c_count_of(const gemm_case *shape) {
    return shape->m * shape->n * products_of(shape);
}

static mixprec_dtype c_type_of(mixprec_dtype dtype, gemm_variant variant) {
    return variant >= NARROW ? dtype : accumulator_of(dtype);
}

/* ---- one product ---- */

static mixprec_gemm_desc describe(const gemm_case *shape, mixprec_dtype dtype, mixprec_isa isa) {
    mixprec_gemm_desc desc;
    memset(&desc, 0, sizeof(desc));
    desc.trans_b = shape->tb;
    desc.m = shape->m;
    desc.n = shape->n;
    desc.k = shape->k;
    desc.a_type = desc.b_type = dtype;
    desc.c_type = accumulator_of(dtype);
    desc.isa = isa;
    if (shape->batch > 1) {
        desc.batch = shape->batch;
        desc.stride_a = shape->m * shape->k;
        desc.stride_b = shape->n * shape->k;
    }
    return desc;
}

typedef struct parallel_tasks {
    void (*task)(void *data, size_t index);
    void *data;
} parallel_tasks;

static void run_tasks(void *context, size_t begin, size_t end) {
    const parallel_tasks *tasks = context;
    for (; begin < end; begin++)
        tasks->task(tasks->data, begin);
}
static void parallel_for(void *context, size_t count, void (*task)(void *data, size_t index), void *data) {
    parallel_tasks tasks = {task, data};
    (void)context;
    bench_parallel((int)count, count, 1, run_tasks, &tasks);
}

#define SCALED_SIDE 1024 /* m, n and k of the products with scales or more than a sum */
#define ONES_4(x) x, x, x, x
static void prepare_desc(gemm_run *run) {
    static const float ones[SCALED_SIDE] = {ONES_4(ONES_4(ONES_4(ONES_4(ONES_4(1)))))};
    const mixprec_scales blocks = {ones, 128, 128, 0}, of_rows = {ones, 1, SCALED_SIDE, 0};
    const mixprec_scales of_columns = {ones, SCALED_SIDE, 1, 0};
    mixprec_gemm_desc desc = describe(run->shape, run->dtype, run->isa);
    desc.c = run->c;
    if (run->variant == TWO_THREADS ||
        bench_option.threads > 1) { /* without a hook small products have a shorter way */
        desc.parallel_for = parallel_for;
        desc.threads = run->variant == TWO_THREADS ? 2 : (size_t)bench_option.threads;
    }
    if (run->variant == PACKED)
        desc.packed_size = run->packed_bytes;
    desc.native = run->variant == NATIVE;
    if (run->variant == BLOCK_SCALES)
        desc.scale_a = desc.scale_b = blocks;
    if (run->variant == CHANNEL_SCALES) {
        desc.scale_a = of_rows;
        desc.scale_b = of_columns;
    }
    desc.c_type = c_type_of(run->dtype, run->variant);
    if (run->variant == GELU) {
        desc.bias = ones;
        desc.activation = MIXPREC_ACTIVATION_GELU;
    }
    if (run->variant == RANDOM)
        desc.round = MIXPREC_ROUND_STOCHASTIC;
    run->desc = desc;
}

static const unsigned char *current_b(const gemm_run *run) {
    return run->variant == PACKED ? run->packed + run->turn * run->packed_bytes : run->b + run->turn * run->b_step;
}

/* What a programmer writes first, in the order that a compiler can make something of. */
static void triple_loop(const gemm_case *shape, const float *a, const float *b, float *c) {
    size_t i, j, p;
    memset(c, 0, shape->m * shape->n * sizeof(*c));
    for (i = 0; i < shape->m; i++)
        for (p = 0; p < shape->k; p++)
            for (j = 0; j < shape->n; j++)
                c[i * shape->n + j] += a[i * shape->k + p] * b[p * shape->n + j];
}

static void run_gemm(void *context) {
    gemm_run *run = context;
    const gemm_case *shape = run->shape;
    const size_t size = mixprec_dtype_size(run->dtype), c_size = run->dtype == MIXPREC_F64 ? 8 : 4;
    const size_t a_bytes = shape->m * shape->k * size, b_bytes = shape->n * shape->k * size;
    const size_t c_bytes = shape->m * shape->n * c_size;
    const unsigned char *a, *b;
    size_t i;
    run->turn = (run->turn + 1) % run->copies;
    a = run->a + run->turn * run->a_step;
    b = current_b(run);
    if (run->is_triple_loop)
        triple_loop(shape, (const float *)(const void *)a, (const float *)(const void *)b, run->c);
    else if (run->peer)
        for (i = 0; i < products_of(shape); i++)
            run->refused |= run->peer->gemm(shape->tb, shape->m, shape->n, shape->k, a + i * a_bytes, b + i * b_bytes,
                                            (unsigned char *)run->c + i * c_bytes);
    else {
        run->desc.a = a;
        run->desc.b = b;
        bench_check(mixprec_gemm_ex(&run->desc));
    }
    bench_use(run->c);
}

/* ---- error ---- */

static double element(const void *x, mixprec_dtype dtype, size_t i) {
    switch (dtype) {
    case MIXPREC_F64: return ((const double *)x)[i];
    case MIXPREC_F32: return (double)((const float *)x)[i];
    case MIXPREC_F16: return mixprec_f16_to_f64(((const mixprec_f16 *)x)[i]);
    case MIXPREC_BF16: return mixprec_bf16_to_f64(((const mixprec_bf16 *)x)[i]);
    case MIXPREC_E4M3: return mixprec_e4m3_to_f64(((const mixprec_e4m3 *)x)[i]);
    case MIXPREC_E5M2: return mixprec_e5m2_to_f64(((const mixprec_e5m2 *)x)[i]);
    default: return (double)NAN; /* no other format is measured */
    }
}

static size_t spread(size_t i, size_t count, size_t n) {
    return count > 1 ? i * (n - 1) / (count - 1) : 0;
}

static void poison(const gemm_run *run) { /* with NaN */
    memset(run->c, 0xFF, c_count_of(run->shape) * (run->dtype == MIXPREC_F64 ? 8 : 4));
}

static long double gelu(long double x) {
    return 0.5L * x * (1 + erfl(x * 0.707106781186547524400844L));
}

/* Leaves C poisoned, for the next one that shares it. */
static void find_error(void *context) {
    gemm_run *run = context;
    const gemm_case *shape = run->shape;
    const double *a = run->original_a, *b = run->original_b;
    size_t rows = shape->m < 8 ? shape->m : 8, columns = shape->n < 64 ? shape->n : 64, i, j, p;
    mixprec_dtype c_type = c_type_of(run->dtype, run->variant);
    if (shape->k > 16384)
        rows = 4, columns = 16;
    run->error = run->error_of_sum = 0;
    for (i = 0; i < rows; i++)
        for (j = 0; j < columns; j++) {
            size_t row = spread(i, rows, shape->m), column = spread(j, columns, shape->n);
            long double original = 0, stored = 0, magnitude = 0;
            double c = element(run->c, c_type, row * shape->n + column);
            for (p = 0; p < shape->k; p++) {
                size_t in_a = row * shape->k + p, in_b = shape->tb ? column * shape->k + p : p * shape->n + column;
                long double product = (long double)a[in_a] * (long double)b[in_b];
                original += product;
                magnitude += product < 0 ? -product : product;
                stored +=
                    (long double)element(run->a, run->dtype, in_a) * (long double)element(run->b, run->dtype, in_b);
            }
            if (run->variant == GELU) {
                original = gelu(original + 1);
                stored = gelu(stored + 1);
            }
            run->error = fmax(run->error, (double)fabsl(((long double)c - original) / magnitude));
            run->error_of_sum = fmax(run->error_of_sum, (double)fabsl(((long double)c - stored) / magnitude));
            if (!isfinite(c))
                run->error = run->error_of_sum = (double)INFINITY;
        }
    poison(run);
}

/* ---- a case ---- */

static void prepare_operands(const gemm_case *shape, mixprec_dtype dtype, const double *a, const double *b,
                             gemm_operands *operands) {
    const size_t size = mixprec_dtype_size(dtype), a_count = a_count_of(shape), b_count = b_count_of(shape);
    const int streams_a = shape->streams && shape->m > shape->n, streams_b = shape->streams && !streams_a;
    size_t copy;
    operands->a_step = streams_a ? a_count * size : 0;
    operands->b_step = streams_b ? b_count * size : 0;
    if (shape->streams) { /* some twelve times these bytes wait at once, in all formats, packed and not */
        const size_t share = bench_machine.memory_bytes / 32, bytes = bench_dram_bytes();
        operands->copies = (bytes < share ? bytes : share) / (operands->a_step + operands->b_step) + 1;
    } else
        operands->copies = 1;
    operands->a = bench_alloc(a_count * size * (streams_a ? operands->copies : 1));
    for (copy = 0; copy < (streams_a ? operands->copies : 1); copy++)
        bench_check(mixprec_convert(operands->a + copy * operands->a_step, dtype, a, MIXPREC_F64, a_count));
    if (shape->is_gram) {
        operands->b = operands->a;
    } else {
        operands->b_memory = bench_alloc(shape->past + b_count * size * (streams_b ? operands->copies : 1));
        operands->b = operands->b_memory + shape->past;
        for (copy = 0; copy < (streams_b ? operands->copies : 1); copy++)
            bench_check(mixprec_convert(operands->b + copy * operands->b_step, dtype, b, MIXPREC_F64, b_count));
    }
    operands->c = bench_alloc(c_count_of(shape) * (dtype == MIXPREC_F64 ? 8 : 4));
    operands->packed = NULL;
    if (streams_b && mixprec_dtype_size(dtype) < 4 && dtype != MIXPREC_E5M2) { /* which is packed as E4M3 is */
        mixprec_gemm_desc desc = describe(shape, dtype, MIXPREC_ISA_AUTO);
        desc.b = operands->b;
        bench_check(mixprec_gemm_pack_b_size(&desc, &operands->packed_bytes));
        operands->packed = bench_alloc(operands->packed_bytes * operands->copies);
        for (copy = 0; copy < operands->copies; copy++)
            bench_check(
                mixprec_gemm_pack_b(&desc, operands->packed + copy * operands->packed_bytes, operands->packed_bytes));
    }
}

/* Seconds that the run would take, from a small product; infinite when a peer cannot do it. */
static double expected_seconds(const gemm_run *run) {
    static const gemm_case small_shape = {"", "", .m = 128, .n = 128, .k = 128};
    double *zeros, seconds = (double)INFINITY;
    int i;
    gemm_run small = *run;
    if (run->peer && run->peer->kind != BENCH_GEMM) /* as fast as the general form, or faster */
        return 0;
    zeros = bench_alloc(3 * 128 * 128 * sizeof(double));
    small.shape = &small_shape;
    small.a = small.b = (const unsigned char *)zeros;
    small.copies = 1;
    small.variant = PLAIN;
    small.c = zeros + 2 * 128 * 128;
    prepare_desc(&small);
    if (!run->peer || run->peer->gemm(MIXPREC_NO_TRANS, 128, 128, 128, zeros, zeros, small.c) == 0)
        for (i = 0; i < 4; i++) {
            double start = bench_now();
            run_gemm(&small);
            seconds = fmin(seconds, bench_now() - start);
        }
    free(zeros);
    return seconds * flops_of(run->shape) / flops_of(&small_shape);
}

static const char *label_of(const bench_key *key, char text[40]) {
    snprintf(text, 40, strcmp(key->isa, "-") ? "%s %s" : "%s", key->impl, key->isa);
    return text;
}

static void print_header(const gemm_case *shape) {
    static int explained;
    if (!explained++)
        printf(
            "\nColumns of the products below\n"
            "  peak, read     what the cores multiply and add in f32 (f64 for f64) on their best path, what DRAM "
            "gives,\n"
            "                 measured right before and right after each sample of the row; the best\n"
            "  x f32, x peer  speed over the library's f32 (of 2 cores: on one), over the fastest peer in f32 (in f64 "
            "for f64)\n"
            "  error, of sum  max |c - r| / sum |a b|, r from the f64 data, from the operands as stored\n"
            "  narrow         C in the operands' format, not in f32; gelu: so, with bias and GELU; random: so, "
            "rounded\n"
            "                 stochastically\n");
    if (shape->is_gram)
        printf(
            "\ndot(A, A^T), A %.0f x %.0f, counted whole, of which half is computed (published for a T4 GPU, A 1024 x "
            "65536:\nf64 541, f32 34.7, f16 5.58 ms)\n",
            (double)shape->m, (double)shape->k);
    else
        printf("\nGEMM %s, m %.0f, n %.0f, k %.0f%s%s\n", shape->name, (double)shape->m, (double)shape->n,
               (double)shape->k,
               shape->batch > 1 ? ", as a batch in one call (peers: one by one)"
               : shape->tb      ? ", B as n x k rows"
                                : "",
               shape->past ? ", from 16 bytes past a line of the cache on" : "");
    printf("  %-5s %-22s %9s %9s %8s %7s %7s %7s %8s %9s %9s %7s\n", "", "", is_small(shape) ? "us" : "ms", "median",
           shape->streams ? "GB/s" : "GFLOP/s", shape->streams ? "read" : "peak",
           shape->streams ? "of read" : "of peak", "x f32", "A+B MiB", "error", "of sum", "x peer");
}

static void report_run(const gemm_case *shape, const gemm_run *run, bench_timing *timing, double f32_seconds,
                       double peer_seconds) {
    size_t size = mixprec_dtype_size(run->dtype);
    size_t b_bytes = shape->is_gram           ? 0
                     : run->variant == PACKED ? run->packed_bytes /* fp8 is bf16 there */
                                              : b_count_of(shape) * size;
    size_t operand_bytes = a_count_of(shape) * size + b_bytes;
    size_t c_bytes = c_count_of(shape) * mixprec_dtype_size(c_type_of(run->dtype, run->variant));
    double gflops = 1e-9 * flops_of(shape) / timing->best;
    double gb_per_s = 1e-9 * (double)(operand_bytes + c_bytes) / timing->best;
    double share = (shape->streams ? (double)(operand_bytes + c_bytes) : flops_of(shape)) / timing->limit_work;
    double limit = 1e-9 * timing->limit->work / timing->limit_seconds, unit = is_small(shape) ? 1e6 : 1e3;
    char label[40];
    bench_record(&timing->key, "gflops", gflops);
    bench_record(&timing->key, shape->streams ? "share_of_dram_read" : "share_of_peak", share);
    bench_record(&timing->key, shape->streams ? "dram_read_gb_per_s" : "peak_gflops", limit);
    bench_record(&timing->key, "operand_bytes", (double)operand_bytes);
    bench_record(&timing->key, "error", run->error);
    bench_record(&timing->key, "error_of_sum", run->error_of_sum);
    if (shape->streams)
        bench_record(&timing->key, "gb_per_s", gb_per_s);
    printf("  %-5s %-22s %9.3f %9.3f %8.1f %7.1f %5.0f %%", timing->key.dtype, label_of(&timing->key, label),
           unit * timing->best, unit * timing->median, shape->streams ? gb_per_s : gflops, limit, 100 * share);
    if (f32_seconds > 0) {
        bench_record(&timing->key, "speedup_over_f32", f32_seconds / timing->best);
        printf(" %7.2f", f32_seconds / timing->best);
    } else
        printf(" %7s", "");
    printf(" %8.2f %9.1e %9.1e", (double)operand_bytes / 1048576, run->error, run->error_of_sum);
    if (!run->peer && !run->is_triple_loop && run->variant != TWO_THREADS && peer_seconds > 0) {
        bench_record(&timing->key, "ratio_to_best_peer", peer_seconds / timing->best);
        printf(" %7.2f", peer_seconds / timing->best);
    }
    printf("\n");
}

/* The fastest time among the peers' products in f32 or f64, or the library's own; 0 when there is none. */
static double best_seconds(const gemm_run *runs, const bench_timing *timings, int count, mixprec_dtype dtype,
                           int of_peer) {
    double best = 0;
    int i;
    for (i = 0; i < count; i++)
        if (runs[i].dtype == dtype && (runs[i].peer != NULL) == of_peer && !runs[i].is_triple_loop &&
            !runs[i].refused && runs[i].variant == PLAIN && (best <= 0 || timings[i].best < best))
            best = timings[i].best;
    return best;
}

/* What one format, or all of them, are measured with. */
typedef struct gemm_plan {
    gemm_run runs[MAX_RUNS];
    bench_timing timings[MAX_RUNS];
    int count;
    char left_out[400];
} gemm_plan;

static void add_run(gemm_plan *plan, const gemm_run *run, double limit) {
    bench_timing *timing = &plan->timings[plan->count];
    char label[40];
    double seconds;
    timing->run = run_gemm;
    timing->check = find_error;
    timing->context = &plan->runs[plan->count];
    timing->refused = &plan->runs[plan->count].refused;
    timing->key = bench_key_of(run->shape->suite, run->shape->name, run->dtype, run->isa);
    if (run->variant != PLAIN)
        timing->key.impl = variant_names[run->variant];
    if (run->variant == TWO_THREADS)
        timing->key.threads = 2;
    if (run->is_triple_loop) {
        timing->key.threads = 1;
        timing->key.impl = "triple-loop";
    }
    if (run->peer) {
        timing->key.isa = run->peer->core;
        timing->key.impl = run->peer->name;
    }
    timing->limit = run->shape->streams ? bench_read_limit(timing->key.threads)
                                        : bench_multiply_add_limit(accumulator_of(run->dtype), timing->key.threads);
    seconds = expected_seconds(run);
    if (seconds > limit) {
        size_t used = strlen(plan->left_out);
        snprintf(plan->left_out + used, sizeof(plan->left_out) - used,
                 isfinite(seconds) ? "%s%s %s (%.1f s)" : "%s%s %s", used ? ", " : "", timing->key.dtype,
                 label_of(&timing->key, label), seconds);
        return;
    }
    plan->runs[plan->count] = *run;
    prepare_desc(&plan->runs[plan->count++]);
}

static int is_meant_for(const bench_peer *peer, const gemm_case *shape) {
    switch (peer->kind) {
    case BENCH_GEMV: return shape->m == 1 || shape->n == 1;
    case BENCH_SYRK: return shape->is_gram;
    default: return 1;
    }
}

static void add_runs(gemm_plan *plan, const gemm_case *shape, mixprec_dtype dtype, const gemm_operands *operands) {
    const bench_peer *peers;
    mixprec_isa paths[4];
    int path, path_count = bench_paths(paths), variant, peer, peer_count = bench_peers(&peers);
    double limit = (shape->is_gram ? 3 : 0.5) * (bench_option.quick ? 0.3 : 1); /* seconds for one call */
    gemm_run run;
    memset(&run, 0, sizeof(run));
    run.shape = shape;
    run.dtype = dtype;
    run.a = operands->a;
    run.b = operands->b;
    run.a_step = operands->a_step;
    run.b_step = operands->b_step;
    run.copies = operands->copies;
    run.c = operands->c;
    for (path = shape->all_paths ? 0 : path_count - 1; path < path_count; path++) {
        run.isa = paths[path];
        add_run(plan, &run, path == path_count - 1 ? 8 : limit);
    }
    run.isa = paths[path_count - 1];
    if (shape->all_paths && shape->m >= 1024) {
        for (variant = BLOCK_SCALES; variant <= CHANNEL_SCALES; variant++) {
            run.variant = (gemm_variant)variant;
            if (dtype == MIXPREC_E4M3 && shape->m == SCALED_SIDE)
                add_run(plan, &run, limit);
        }
        for (variant = NARROW; variant <= RANDOM; variant++) {
            run.variant = (gemm_variant)variant;
            if (shape->m == SCALED_SIDE && (dtype == MIXPREC_BF16 || (dtype == MIXPREC_F16 && variant != RANDOM)))
                add_run(plan, &run, limit);
        }
        run.variant = TWO_THREADS;
        if ((dtype == MIXPREC_F32 || dtype == MIXPREC_F16) && bench_option.threads == 1 && bench_machine.cores > 1)
            add_run(plan, &run, limit);
    }
    run.variant = NATIVE;
    if (mixprec_native_available(dtype, dtype) && shape->m > 16 && shape->n > 16) /* fewer do without */
        add_run(plan, &run, limit);
    if (operands->packed) {
        run.variant = PACKED;
        run.packed = operands->packed;
        run.packed_bytes = operands->packed_bytes;
        add_run(plan, &run, limit);
    }
    run.variant = PLAIN;
    run.isa = MIXPREC_ISA_C;
    if (dtype == MIXPREC_F32 && shape->m == 256) {
        run.is_triple_loop = 1;
        add_run(plan, &run, limit);
        run.is_triple_loop = 0;
    }
    for (peer = 0; peer < peer_count; peer++)
        if (peers[peer].dtype == dtype && is_meant_for(&peers[peer], shape)) {
            run.peer = &peers[peer];
            add_run(plan, &run, limit);
        }
}

static void measure_formats(const gemm_case *shape, const mixprec_dtype *dtypes, int dtype_count, const double *a,
                            const double *b, double *f32_seconds, double *peer_f32_seconds, int *header_printed) {
    gemm_operands operands[6];
    static gemm_plan plan;
    gemm_run *runs = plan.runs;
    bench_timing *timings = plan.timings;
    int i, count;
    plan.count = 0;
    plan.left_out[0] = 0;
    for (i = 0; i < dtype_count; i++) {
        prepare_operands(shape, dtypes[i], a, b, &operands[i]);
        add_runs(&plan, shape, dtypes[i], &operands[i]);
    }
    count = plan.count;
    for (i = 0; i < count; i++) {
        runs[i].original_a = a;
        runs[i].original_b = b;
        poison(&runs[i]);
    }
    bench_measure(timings, count);
    if (!(*header_printed)++)
        print_header(shape);
    *f32_seconds = fmax(*f32_seconds, best_seconds(runs, timings, count, MIXPREC_F32, 0));
    *peer_f32_seconds = fmax(*peer_f32_seconds, best_seconds(runs, timings, count, MIXPREC_F32, 1));
    for (i = 0; i < count; i++)
        if (runs[i].refused)
            printf("  %-5s %s: refuses this product\n", timings[i].key.dtype, timings[i].key.impl);
        else
            report_run(shape, &runs[i], &timings[i], *f32_seconds,
                       runs[i].dtype == MIXPREC_F64 ? best_seconds(runs, timings, count, MIXPREC_F64, 1)
                                                    : *peer_f32_seconds);
    if (*plan.left_out)
        printf("  left out, a call would take as many seconds or is refused: %s\n", plan.left_out);
    for (i = 0; i < dtype_count; i++) {
        if (!shape->is_gram)
            free(operands[i].b_memory);
        free(operands[i].a);
        free(operands[i].c);
        free(operands[i].packed);
    }
}

static void measure_case(const gemm_case *shape) {
    mixprec_dtype dtypes[6];
    double f32_seconds = 0, peer_f32_seconds = 0, *a, *b;
    int i, count = 0, header_printed = 0;
    /* f32 comes first where each format is measured by itself: the others are compared with it */
    static const mixprec_dtype f32_first[6] = {MIXPREC_F32,  MIXPREC_F64,  MIXPREC_F16,
                                               MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
    const mixprec_dtype *order = shape->is_gram ? f32_first : bench_dtypes;
    for (i = 0; i < 6; i++)
        if (bench_wanted(shape->suite, shape->name, mixprec_dtype_name(order[i])))
            dtypes[count++] = order[i];
    if (!count)
        return;
    /* A and B in f64; where B is A, A again in the format */
    if (bench_machine.memory_bytes / 4 < (a_count_of(shape) + b_count_of(shape)) * sizeof(double)) {
        printf("\n%s %s: left out, for it wants more than a quarter of the memory\n", shape->suite, shape->name);
        return;
    }
    a = bench_alloc(a_count_of(shape) * sizeof(double));
    bench_normals(a, a_count_of(shape), 2);
    b = a;
    if (!shape->is_gram) {
        b = bench_alloc(b_count_of(shape) * sizeof(double));
        bench_normals(b, b_count_of(shape), 3);
    }
    if (shape->is_gram)
        for (i = 0; i < count; i++)
            measure_formats(shape, &dtypes[i], 1, a, b, &f32_seconds, &peer_f32_seconds, &header_printed);
    else
        measure_formats(shape, dtypes, count, a, b, &f32_seconds, &peer_f32_seconds, &header_printed);
    if (b != a)
        free(b);
    free(a);
}

double bench_published(mixprec_dtype dtype) {
    return dtype == MIXPREC_F64 ? 541 : dtype == MIXPREC_F32 ? 34.7 : dtype == MIXPREC_F16 ? 5.58 : (double)NAN;
}

/* The sizes of a case, and the name that says them. */
#define CUBE(side) .name = #side, .m = side, .n = side, .k = side
#define SIZES(of_m, of_n, of_k) .name = #of_m "x" #of_n "x" #of_k, .m = of_m, .n = of_n, .k = of_k
#define GRAM(side, depth) .name = #side "x" #depth, .m = side, .n = side, .k = depth, .tb = MIXPREC_TRANS, .is_gram = 1

void bench_gemm(void) {
    static const gemm_case cases[] = {
        {"gemm", CUBE(4)},
        {"gemm", CUBE(8)},
        {"gemm", CUBE(16)},
        {"gemm", CUBE(32)},
        {"gemm", CUBE(64)},
        {"gemm", "64-of-64", .m = 64, .n = 64, .k = 64, .batch = 64},
        {"gemm", SIZES(1, 64, 64)},
        {"gemm", SIZES(2000, 16, 16)},
        {"gemm", CUBE(256), .all_paths = 1},
        {"gemm", CUBE(512), .all_paths = 1}, /* rows whole pages apart */
        {"gemm", CUBE(1024), .all_paths = 1},
        {"gemm", CUBE(2048), .all_paths = 1},
        {"gemm", SIZES(1023, 1025, 1027)},
        {"gemm", SIZES(2048, 2048, 32)},
        {"batch", SIZES(1, 4096, 4096), .tb = MIXPREC_TRANS, .streams = 1},
        /* as malloc places large arrays */
        {"batch", "1x4096x4096+16", .m = 1, .n = 4096, .k = 4096, .tb = MIXPREC_TRANS, .streams = 1, .past = 16},
        {"batch", "1x4096x4096kn", .m = 1, .n = 4096, .k = 4096, .streams = 1}, /* B as k x n rows */
        {"batch", SIZES(2, 4096, 4096), .tb = MIXPREC_TRANS, .streams = 1},
        {"batch", SIZES(4, 4096, 4096), .tb = MIXPREC_TRANS, .streams = 1},
        {"batch", SIZES(8, 4096, 4096), .tb = MIXPREC_TRANS, .streams = 1},
        {"batch", SIZES(16, 4096, 4096), .tb = MIXPREC_TRANS, .streams = 1},
        {"batch", SIZES(32, 4096, 4096), .tb = MIXPREC_TRANS, .streams = 1},
        {"batch", SIZES(4096, 1, 4096), .streams = 1}, /* a matrix times a vector */
        {"batch", SIZES(4096, 8, 4096), .streams = 1},
        {"gram", GRAM(1024, 65536)},
    };
    static const gemm_case quick_gram = {"gram", GRAM(1024, 8192)};
    const bench_peer *peers;
    int i, count = bench_peers(&peers);
    if (count) {
        printf("\nPeers:");
        for (i = 0; i < count; i++)
            if (i == 0 || strcmp(peers[i].name, peers[i - 1].name))
                printf("%s %s (%s)", i ? "," : "", peers[i].name, peers[i].core);
        printf("\n");
    }
    if (*bench_peers_missing())
        printf("%sNot found, or not to be built with:%s\n", count ? "" : "\n", bench_peers_missing());
    for (i = 0; i < COUNT_OF(cases); i++)
        measure_case(bench_option.quick && cases[i].is_gram ? &quick_gram : &cases[i]);
}
