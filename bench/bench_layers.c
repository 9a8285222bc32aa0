/* The room LAYERS: cycles for an element of each layer, in L2, and, for those that should wait for memory alone, on
   arrays that no cache holds. Rows of 1,024 elements, one dtype for all tensors. And a convolution, which is a matrix
   product. */
#include "bench.h"

#define COLUMNS ((size_t)1024)
#define ARRAYS 3

typedef struct layer_run {
    unsigned char *arrays[ARRAYS]; /* the result, the input, the gradient */
    unsigned char *gamma, *beta;
    float *mean, *rstd, *sums[2], *losses;
    int32_t *targets;
    mixprec_dtype type;
    size_t rows, columns; /* rows of COLUMNS; columns that the layer sees */
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
CASE(softmax, mixprec_softmax(OUT, X, run->rows *COLUMNS / run->columns, run->columns))
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
CASE(embedding_gradient,
     mixprec_embedding_gradient((float *)(void *)run->arrays[0], DY, run->targets, run->rows, run->rows / 2, COLUMNS))
CASE(dropout, mixprec_dropout(OUT, X, run->rows *COLUMNS, 0.1f, 1, 0))

static const struct {
    const char *name;
    void (*run)(void *context);
    int moved;      /* tensors read or written, to tell GB/s by: in DRAM, too; 0: in L2 alone */
    size_t columns; /* 0: COLUMNS */
} cases[] = {
    {"relu", run_relu, 2, 0},
    {"relu-backward", run_relu_backward, 0, 0},
    {"gelu", run_gelu, 0, 0},
    {"gelu-backward", run_gelu_backward, 0, 0},
    {"gelu-tanh", run_gelu_tanh, 0, 0},
    {"gelu-tanh-backward", run_gelu_tanh_backward, 0, 0},
    {"silu", run_silu, 0, 0},
    {"silu-backward", run_silu_backward, 0, 0},
    {"tanh", run_tanh, 0, 0},
    {"tanh-backward", run_tanh_backward, 0, 0},
    {"softmax", run_softmax, 0, 0},
    {"softmax-64", run_softmax, 0, 64},
    {"log-softmax", run_log_softmax, 0, 0},
    {"softmax-backward", run_softmax_backward, 0, 0},
    {"cross-entropy", run_cross_entropy, 0, 0},
    {"layer-norm", run_layer_norm, 2, 0},
    {"layer-norm-backward", run_layer_norm_backward, 3, 0},
    {"rms-norm", run_rms_norm, 0, 0},
    {"rms-norm-backward", run_rms_norm_backward, 0, 0},
    {"batch-norm", run_batch_norm, 0, 0},
    {"batch-norm-dense", run_batch_norm_dense, 0, 0},
    {"bias", run_bias, 2, 0},
    {"bias-gradient", run_bias_gradient, 0, 0},
    {"embedding", run_embedding, 0, 0},
    {"embedding-gradient", run_embedding_gradient, 0, 0},
    {"dropout", run_dropout, 0, 0},
};

static const char *const places[] = {"L2", "DRAM"};

/* ---- a row ---- */

/* Runs a layer over nothing but NaN, and returns its result. */
static void result_of(const layer_run *run, const bench_timing *timing, double *result) {
    const size_t n = run->rows * COLUMNS;
    memset(run->arrays[0], 0xFF, n * mixprec_dtype_size(run->type));
    timing->run(timing->context);
    bench_check(mixprec_convert(result, MIXPREC_F64, OUT, n));
}

/* Whether the peer computes the same layer: no result is further from the library's than its polynomials and the format
   of the tensors may put it. */
static int agrees(const layer_run *run, const bench_timing *own, const bench_timing *peer) {
    const size_t n = run->rows * COLUMNS;
    double *values = bench_alloc(2 * n * sizeof(*values)), size = 0;
    size_t i;
    result_of(run, own, values);
    result_of(run, peer, values + n);
    for (i = 0; i < n; i++)
        size += fabs(values[i]) / (double)n;
    for (i = 0; i < n; i++)
        if (!(fabs(values[i] - values[n + i]) <= (run->type == MIXPREC_F32 ? 1e-3 : 2e-2) * (size + fabs(values[i]))))
            break;
    free(values);
    return i == n;
}

/* The next bytes of memory that is handed out piece by piece. */
static void *take(unsigned char **next, size_t bytes) {
    void *piece = *next;
    *next += bytes;
    return piece;
}

/* Prints the cycles for an element, the library's and a peer's, and, for tensors in DRAM, the library's GB/s. */
static void measure(int number, mixprec_dtype type, int place) {
    const size_t bytes = place ? bench_dram_bytes() : bench_machine.l2_bytes * 3 / 4;
    const size_t size = mixprec_dtype_size(type), lines = bytes / (ARRAYS * size * COLUMNS);
    /* in L2 at most as many as there are parameters: batch normalisation has one for each */
    const size_t rows = lines < 16 ? 16 : !place && lines > COLUMNS ? COLUMNS : lines / 16 * 16;
    const size_t n = rows * COLUMNS;
    const size_t of_rows = rows * sizeof(float), of_columns = COLUMNS * sizeof(float); /* bytes: one for each */
    const size_t float_bytes = 4 * of_rows + 6 * of_columns;
    unsigned char *tensors = bench_alloc((ARRAYS * n + 2 * COLUMNS) * size), *next = tensors;
    float *floats = bench_alloc(float_bytes), *parameters;
    double *values = bench_alloc(n * sizeof(*values)), cycles[2], rates[2];
    int32_t *targets = bench_alloc(rows * sizeof(*targets));
    bench_timing timings[2];
    bench_layer layer;
    layer_run run;
    char name[64];
    size_t i;
    int k, count = 1;
    memset(timings, 0, sizeof(timings));
    bench_normals(values, n, 1);
    for (k = 0; k < ARRAYS; k++) {
        run.arrays[k] = take(&next, n * size);
        bench_check(mixprec_convert(run.arrays[k], type, values, MIXPREC_F64, n));
    }
    run.type = type;
    run.rows = rows;
    run.columns = cases[number].columns ? cases[number].columns : COLUMNS;
    run.gamma = take(&next, 2 * COLUMNS * size);
    run.beta = run.gamma + COLUMNS * size;
    bench_check(mixprec_convert(run.gamma, type, values, MIXPREC_F64, 2 * COLUMNS));
    for (i = 0; i < float_bytes / sizeof(*floats); i++)
        floats[i] = 1;
    next = (unsigned char *)floats;
    parameters = take(&next, 2 * of_columns);
    layer.gamma = parameters;
    layer.beta = parameters + COLUMNS;
    bench_check(mixprec_convert(parameters, MIXPREC_F32, run.gamma, type, 2 * COLUMNS));
    for (k = 0; k < 2; k++)
        layer.sums[k] = run.sums[k] = take(&next, of_columns);
    run.losses = take(&next, of_rows);
    layer.variance = take(&next, of_rows);
    layer.mean = run.mean = take(&next, of_rows + of_columns); /* batch normalisation has one for each column */
    run.rstd = take(&next, of_rows + of_columns);
    run.targets = targets;
    for (i = 0; i < rows; i++)
        targets[i] = (int32_t)(rows / 2 - 1 - i % (rows / 2));
    layer.name = cases[number].name;
    layer.dtype = type;
    layer.rows = n / run.columns;
    layer.columns = run.columns;
    layer.out = run.arrays[0];
    layer.x = run.arrays[1];
    layer.gradient = run.arrays[2];
    snprintf(name, sizeof(name), "%s/%s", layer.name, places[place]);
    timings[0].run = cases[number].run;
    timings[0].context = &run;
    timings[0].key = bench_key_of("layers", name, type, mixprec_isa_best());
    timings[0].key.threads = 1;
    if (bench_peer_layer(&timings[1], &layer) == 0) {
        timings[1].key.name = name;
        if (agrees(&run, &timings[0], &timings[1]))
            count = 2;
        else
            fprintf(stderr, "bench: %s computes another %s\n", timings[1].key.impl, layer.name);
    }
    timings[0].limit = timings[1].limit = bench_clock_limit();
    bench_measure(timings, count);
    for (k = 0; k < count; k++) {
        rates[k] = 1e-9 * (double)(n * size) * cases[number].moved / timings[k].best;
        cycles[k] = timings[k].limit_work / (double)n;
        bench_record(&timings[k].key, "cycles_per_element", cycles[k]);
        bench_record(&timings[k].key, "elements_per_s", (double)n / timings[k].best);
        if (cases[number].moved)
            bench_record(&timings[k].key, "gb_per_s", rates[k]);
    }
    printf(place && type == MIXPREC_F32 ? " %8.2f" : " %7.2f", cycles[0]);
    if (place)
        printf(" %5.1f", rates[0]);
    if (count == 2)
        printf(" %7.2f", cycles[1]);
    else
        printf(" %7s", "-");
    free(targets);
    free(floats);
    free(values);
    free(tensors);
}

/* ---- convolution ---- */

#define CONVOLUTION "conv-3x3"

typedef struct conv_run {
    mixprec_conv2d layer;
    mixprec_dtype type;
    void *y, *x, *weight, *workspace;
    size_t workspace_bytes;
} conv_run;

static void run_conv(void *context) {
    const conv_run *run = context;
    bench_check(mixprec_conv2d_forward(&run->layer, run->y, run->type, run->x, run->type, run->weight, run->type, NULL,
                                       run->type, run->workspace, run->workspace_bytes));
}

/* 3 x 3, 64 -> 64 channels, 56 x 56 pixels, one image: a layer of ResNet-50. */
static void measure_conv(mixprec_dtype type) {
    const size_t pixels = 64 * 56 * 56, weights = 64 * 64 * 9, size = mixprec_dtype_size(type);
    const double flops = 2.0 * 56 * 56 * (double)weights;
    conv_run run;
    bench_timing timing;
    double *values = bench_alloc(pixels * sizeof(*values));
    memset(&run, 0, sizeof(run));
    memset(&timing, 0, sizeof(timing));
    run.layer.batch = 1;
    run.layer.channels = run.layer.filters = 64;
    run.layer.height = run.layer.width = 56;
    run.layer.kernel_height = run.layer.kernel_width = 3;
    run.layer.padding_y = run.layer.padding_x = 1;
    run.type = type;
    bench_check(mixprec_conv2d_workspace(&run.layer, &run.workspace_bytes));
    run.workspace = bench_alloc(run.workspace_bytes);
    run.y = bench_alloc(pixels * size);
    run.x = bench_alloc(pixels * size);
    run.weight = bench_alloc(weights * size);
    bench_normals(values, pixels, 1);
    bench_check(mixprec_convert(run.x, type, values, MIXPREC_F64, pixels));
    bench_check(mixprec_convert(run.weight, type, values, MIXPREC_F64, weights));
    timing.run = run_conv;
    timing.context = &run;
    timing.limit = bench_multiply_add_limit(MIXPREC_F32, 1);
    timing.key = bench_key_of("layers", CONVOLUTION, type, mixprec_isa_best());
    timing.key.threads = 1;
    bench_measure(&timing, 1);
    bench_record(&timing.key, "gflops", 1e-9 * flops / timing.best);
    bench_record(&timing.key, "share_of_peak", flops / timing.limit_work);
    printf("  %-20s %9.3f %9.1f %7.0f %%\n", mixprec_dtype_name(type), 1e3 * timing.best, 1e-9 * flops / timing.best,
           100 * flops / timing.limit_work);
    free(run.weight);
    free(run.x);
    free(run.y);
    free(run.workspace);
    free(values);
}

static void bench_conv(void) {
    static const mixprec_dtype types[] = {MIXPREC_F32, MIXPREC_F16, MIXPREC_BF16};
    int i, begun = 0;
    for (i = 0; i < COUNT_OF(types); i++)
        if (bench_wanted("layers", CONVOLUTION, mixprec_dtype_name(types[i]))) {
            if (!begun++)
                printf("\nConvolution 3 x 3, forward, 64 -> 64 channels, 56 x 56 pixels, one image, one thread\n"
                       "  %-20s %9s %9s %9s\n",
                       "", "ms", "GFLOP/s", "of peak");
            measure_conv(types[i]);
        }
}

void bench_layers(void) {
    static const mixprec_dtype types[] = {MIXPREC_F32, MIXPREC_BF16};
    int i, t, place, begun = 0;
    for (i = 0; i < COUNT_OF(cases); i++) {
        int row = 0, blanks = 0; /* of columns that are not wanted */
        for (place = 0; place < (cases[i].moved ? 2 : 1); place++)
            for (t = 0; t < COUNT_OF(types); t++) {
                char name[64];
                snprintf(name, sizeof(name), "%s/%s", cases[i].name, places[place]);
                if (!bench_wanted("layers", name, mixprec_dtype_name(types[t]))) {
                    blanks += place ? t ? 22 : 23 : 16;
                    continue;
                }
                if (!begun++) {
                    printf(
                        "\nLayers: cycles for an element, rows of 1,024, one thread; beside them a peer's for the same "
                        "layer\n");
                    printf("  %-20s %7s %7s %7s %7s %8s %5s %7s %7s %5s %7s\n", "", "L2 f32", "peer", "bf16", "peer",
                           "DRAM f32", "GB/s", "peer", "bf16", "GB/s", "peer");
                }
                if (!row++)
                    printf("  %-20s", cases[i].name);
                printf("%*s", blanks, "");
                blanks = 0;
                measure(i, types[t], place);
            }
        if (row)
            printf("\n");
    }
    bench_conv();
}
