/* The room LAYERS: cycles for an element of each layer, in L2, and, for those that should wait for memory alone, on
   arrays that no cache holds. Rows of 1,024 elements, one dtype for all tensors. */
#include "bench.h"

#define COLUMNS ((size_t)1024)
#define ARRAYS 3

typedef struct layer_run {
    unsigned char *arrays[ARRAYS]; /* the result, the input, the gradient */
    unsigned char *gamma, *beta;
    float *mean, *rstd, *sums[2], *losses;
    int32_t *targets;
    mixprec_dtype type;
    size_t rows;
} layer_run;

/* ---- the cases ---- */

#define OUT run->arrays[0], run->type
#define X run->arrays[1], run->type
#define DY run->arrays[2], run->type
#define CASE(name, ...)                                                                                                \
    static void run_##name(void *context) {                                                                            \
        const layer_run *run = context;                                                                                \
        bench_check(__VA_ARGS__);                                                                                      \
    }
#define ACTIVATION(name, activation)                                                                                   \
    CASE(name, mixprec_activate(OUT, X, run->rows *COLUMNS, activation))                                               \
    CASE(name##_backward, mixprec_activate_backward(OUT, DY, X, run->rows *COLUMNS, activation))

ACTIVATION(relu, MIXPREC_ACTIVATION_RELU)
ACTIVATION(gelu, MIXPREC_ACTIVATION_GELU)
ACTIVATION(gelu_tanh, MIXPREC_ACTIVATION_GELU_TANH)
ACTIVATION(silu, MIXPREC_ACTIVATION_SILU)
ACTIVATION(tanh, MIXPREC_ACTIVATION_TANH)
CASE(softmax, mixprec_softmax(OUT, X, run->rows, COLUMNS))
CASE(softmax_64, mixprec_softmax(OUT, X, run->rows *COLUMNS / 64, 64))
CASE(log_softmax, mixprec_log_softmax(OUT, X, run->rows, COLUMNS))
CASE(softmax_backward, mixprec_softmax_backward(OUT, DY, X, run->rows, COLUMNS))
CASE(cross_entropy, mixprec_cross_entropy(OUT, run->losses, X, run->targets, run->rows, COLUMNS, 1.0))
CASE(layer_norm,
     mixprec_layer_norm(OUT, run->mean, run->rstd, X, run->gamma, run->beta, run->type, run->rows, COLUMNS, 1e-5))
CASE(layer_norm_backward, mixprec_layer_norm_backward(OUT, run->sums[0], run->sums[1], DY, X, run->gamma, run->type,
                                                      run->mean, run->rstd, run->rows, COLUMNS))
CASE(rms_norm, mixprec_rms_norm(OUT, run->rstd, X, run->gamma, run->type, run->rows, COLUMNS, 1e-5))
CASE(rms_norm_backward,
     mixprec_rms_norm_backward(OUT, run->sums[0], DY, X, run->gamma, run->type, run->rstd, run->rows, COLUMNS))
CASE(batch_norm, mixprec_batch_norm(OUT, run->mean, run->rstd, X, run->gamma, run->beta, run->type, NULL, NULL, 0, 1,
                                    run->rows, COLUMNS, 1e-5))
CASE(batch_norm_dense, mixprec_batch_norm(OUT, run->mean, run->rstd, X, run->gamma, run->beta, run->type, NULL, NULL, 0,
                                          run->rows, COLUMNS, 1, 1e-5))
CASE(bias, mixprec_bias_add(OUT, X, run->gamma, run->type, run->rows, COLUMNS))
CASE(bias_gradient, mixprec_bias_gradient(run->sums[0], DY, run->rows, COLUMNS, 0))
CASE(embedding, mixprec_embedding(OUT, X, run->targets, run->rows, run->rows, COLUMNS))
CASE(embedding_gradient, mixprec_embedding_gradient((float *)(void *)run->arrays[0], DY, run->targets, run->rows / 2,
                                                    run->rows / 2, COLUMNS))
CASE(dropout, mixprec_dropout(OUT, X, run->rows *COLUMNS, 0.1f, 1, 0))

static const struct {
    const char *name;
    void (*run)(void *context);
    int moved; /* tensors read or written, to tell GB/s by: in DRAM, too; 0: in L2 alone */
} cases[] = {
    {"relu", run_relu, 2},
    {"relu-backward", run_relu_backward, 0},
    {"gelu", run_gelu, 0},
    {"gelu-backward", run_gelu_backward, 0},
    {"gelu-tanh", run_gelu_tanh, 0},
    {"gelu-tanh-backward", run_gelu_tanh_backward, 0},
    {"silu", run_silu, 0},
    {"silu-backward", run_silu_backward, 0},
    {"tanh", run_tanh, 0},
    {"tanh-backward", run_tanh_backward, 0},
    {"softmax", run_softmax, 0},
    {"softmax-64", run_softmax_64, 0},
    {"log-softmax", run_log_softmax, 0},
    {"softmax-backward", run_softmax_backward, 0},
    {"cross-entropy", run_cross_entropy, 0},
    {"layer-norm", run_layer_norm, 2},
    {"layer-norm-backward", run_layer_norm_backward, 3},
    {"rms-norm", run_rms_norm, 0},
    {"rms-norm-backward", run_rms_norm_backward, 0},
    {"batch-norm", run_batch_norm, 0},
    {"batch-norm-dense", run_batch_norm_dense, 0},
    {"bias", run_bias, 2},
    {"bias-gradient", run_bias_gradient, 0},
    {"embedding", run_embedding, 0},
    {"embedding-gradient", run_embedding_gradient, 0},
    {"dropout", run_dropout, 0},
};

/* ---- a row ---- */

/* Cycles for an element, from the L2 cache or from DRAM; also the gigabytes per second there. */
static double measure(int number, mixprec_dtype type, const char *where, size_t bytes, double *rate) {
    const size_t size = mixprec_dtype_size(type), n = bytes / (ARRAYS * size) / (64 * COLUMNS) * (64 * COLUMNS);
    bench_timing timing;
    layer_run run;
    unsigned char *memory = bench_alloc((ARRAYS * n + 2 * COLUMNS) * size);
    double *values = bench_alloc(n * sizeof(*values)), cycles;
    char name[64];
    size_t i;
    int k;
    run.type = type;
    run.rows = n / COLUMNS;
    bench_normals(values, n, 1);
    for (k = 0; k < ARRAYS; k++) {
        run.arrays[k] = memory + (size_t)k * n * size;
        bench_check(mixprec_convert(run.arrays[k], type, values, MIXPREC_F64, n));
    }
    run.gamma = memory + ARRAYS * n * size;
    run.beta = run.gamma + COLUMNS * size;
    bench_check(mixprec_convert(run.gamma, type, values, MIXPREC_F64, 2 * COLUMNS));
    run.mean = bench_alloc((3 * n / COLUMNS + 4 * COLUMNS) * sizeof(float));
    run.rstd = run.mean + n / COLUMNS + COLUMNS;
    run.losses = run.rstd + n / COLUMNS + COLUMNS;
    run.sums[0] = run.losses + n / COLUMNS;
    run.sums[1] = run.sums[0] + COLUMNS;
    memset(run.mean, 0, (3 * n / COLUMNS + 4 * COLUMNS) * sizeof(float));
    run.targets = bench_alloc(run.rows * sizeof(*run.targets));
    for (i = 0; i < run.rows; i++)
        run.targets[i] = (int32_t)(run.rows / 2 - 1 - i % (run.rows / 2));
    snprintf(name, sizeof(name), "%s/%s", cases[number].name, where);
    memset(&timing, 0, sizeof(timing));
    timing.run = cases[number].run;
    timing.context = &run;
    timing.limit = bench_clock_limit();
    timing.key = bench_key_of("layers", name, type, mixprec_isa_best());
    bench_measure(&timing, 1);
    cycles = timing.limit_work / (double)n;
    bench_record(&timing.key, "cycles_per_element", cycles);
    bench_record(&timing.key, "elements_per_s", (double)n / timing.best);
    *rate = 1e-9 * (double)(n * size) * cases[number].moved / timing.best;
    if (cases[number].moved)
        bench_record(&timing.key, "gb_per_s", *rate);
    free(run.targets);
    free(run.mean);
    free(values);
    free(memory);
    return cycles;
}

void bench_layers(void) {
    static const mixprec_dtype types[] = {MIXPREC_F32, MIXPREC_BF16};
    static const char *const places[] = {"L2", "DRAM"};
    int i, t, place, begun = 0;
    for (i = 0; i < COUNT_OF(cases); i++) {
        int row = 0;
        for (place = 0; place < (cases[i].moved ? 2 : 1); place++)
            for (t = 0; t < COUNT_OF(types); t++) {
                char name[64];
                double rate, cycles;
                snprintf(name, sizeof(name), "%s/%s", cases[i].name, places[place]);
                if (!bench_wanted("layers", name, mixprec_dtype_name(types[t])))
                    continue;
                if (!begun++)
                    printf("\nLayers: cycles for an element, rows of 1,024, one thread; in DRAM also GB/s\n");
                if (!row++)
                    printf("  %-20s", cases[i].name);
                cycles = measure(i, types[t], places[place],
                                 place ? bench_dram_bytes() : bench_machine.l2_bytes * 3 / 4, &rate);
                printf("  %s %s %6.2f", places[place], mixprec_dtype_name(types[t]), cycles);
                if (place)
                    printf(" (%.1f GB/s)", rate);
            }
        if (row)
            printf("\n");
    }
}
