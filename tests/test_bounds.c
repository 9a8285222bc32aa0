/* Nothing outside of the arrays is read or written by what goes over arrays in [REDUCE], [QUANT], [SCALER], [OPTIM] and
   [LAYERS], and by mixprec_stats (conversions and GEMM have such tests of their own): each array ends where a page
   begins that may not be touched, or begins behind one, and the bytes on its other side keep what they held.

       cc -O2 -std=gnu11 tests/test_bounds.c -lm && ./a.out [--quick] [--filter TEXT] */
#include "guard.h"
#define MIXPREC_IMPLEMENTATION
#include "../mixprec.h"

enum { SLOTS = 12, BESIDE = 256, TYPES = 5 };
static const mixprec_dtype types[TYPES] = {MIXPREC_F32, MIXPREC_F16, MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
static unsigned char *pages[SLOTS];
static size_t lengths[SLOTS];
static int used, at_end;
static const char *call_now;
static size_t n_now;
static mixprec_dtype x_type, y_type;

static const char *describe(void) {
    static char text[400];
    snprintf(text, sizeof text, "%.250s, n %lu, %s, %s, the %s", call_now, (unsigned long)n_now,
             mixprec_dtype_name(x_type), mixprec_dtype_name(y_type), at_end ? "end" : "beginning");
    return text;
}

/* An array in a page of its own. */
static unsigned char *array_of(size_t bytes) {
    unsigned char *page = pages[used], *array = at_end ? page + GUARD_PAGE - bytes : page;
    if (bytes > GUARD_PAGE - BESIDE || used == SLOTS)
        exit(2);
    memset(at_end ? array - BESIDE : array + bytes, 0xA5, BESIDE);
    lengths[used++] = bytes;
    return array;
}
/* Numbers from 0.5 to 1.5 for which every function has a use. */
static void *numbers(mixprec_dtype type, size_t n) {
    static uint64_t seed;
    const size_t size = type == MIXPREC_E2M1 ? 1 : mixprec_dtype_size(type);
    const size_t bytes = type == MIXPREC_E2M1 ? (n + 1) / 2 : n * size;
    unsigned char *array = array_of(bytes);
    size_t i;
    seed++;
    for (i = 0; i < bytes / size; i++) {
        const double x = 0.5 + (double)mixprec_random_bits(seed, i) / 4294967296;
        uint32_t code = mixprec_encode(x, type, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_SATURATE, 0);
        uint16_t half = (uint16_t)code;
        uint8_t byte = (uint8_t)code;
        memcpy(array + i * size, size == 4 ? (void *)&code : size == 2 ? (void *)&half : (void *)&byte, size);
    }
    return array;
}
#define X(n) numbers(x_type, n), x_type
#define Y(n) numbers(y_type, n), y_type
#define FLOATS(n) ((float *)numbers(MIXPREC_F32, n))
static int32_t *integers(size_t n, size_t limit) {
    int32_t *array = (int32_t *)(void *)array_of(n * 4);
    size_t i;
    for (i = 0; i < n; i++)
        array[i] = (int32_t)(mixprec_random_bits(99, i) % limit);
    return array;
}

static void check_beside(mixprec_status status) {
    int i, j;
    CHECK(status == MIXPREC_OK, "status %d: %s", (int)status, describe());
    for (i = 0; i < used; i++) {
        const unsigned char *beside = at_end ? pages[i] + GUARD_PAGE - lengths[i] - BESIDE : pages[i] + lengths[i];
        for (j = 0; j < BESIDE && beside[j] == 0xA5; j++)
            ;
        CHECK(j == BESIDE, "wrote beside an array: %s", describe());
    }
}
#define CALL(...) (used = 0, call_now = #__VA_ARGS__, check_beside(__VA_ARGS__))

/* f for arrays of many lengths, at both ends of pages, of each type with another one. */
static void for_all(void (*f)(size_t n)) {
    size_t n, i, j;
    for (n = 0; n <= 300; n += n < 70 ? 1 : n < 126 ? 56 : n < 130 ? 1 : n < 254 ? 124 : n < 258 ? 1 : 42)
        for (i = 0; i < TYPES; i++)
            for (j = 0; j < TYPES; j++)
                for (at_end = 0; at_end < 2; at_end++) {
                    if (j != i && j != (i + 1 + n % 4) % TYPES)
                        continue;
                    n_now = n;
                    x_type = types[i];
                    y_type = types[j];
                    f(n);
                }
}

static void reductions(size_t n) {
    double sum, other;
    float amax;
    int finite, r;
    for (r = 0; r < 4; r++)
        CALL(mixprec_reduce((double *)(void *)array_of(n ? 8 : 0), (mixprec_reduction)r, X(n), Y(n), 0.5, n,
                            MIXPREC_ISA_AUTO));
    CALL(mixprec_sum(&sum, X(n), n));
    CALL(mixprec_dot(&sum, X(n), Y(n), n));
    CALL(mixprec_norm2(&sum, X(n), n));
    CALL(mixprec_amax(&amax, X(n), n));
    CALL(mixprec_all_finite(&finite, X(n), n));
    CALL(mixprec_mean_variance(&sum, &other, X(n), n));
}

static void statistics(size_t n) {
    mixprec_statistics stats;
    CALL(mixprec_stats(&stats, X(n), n, y_type, NULL));
}

static void unscaling(size_t n) {
    mixprec_scaler scaler;
    mixprec_scaler_init(&scaler);
    CALL(mixprec_scaler_unscale(&scaler, FLOATS(n), X(n), n) < 0 ? MIXPREC_ERR_SCALE : MIXPREC_OK);
}

static void optimisers(size_t n) {
    static const mixprec_sgd no_sgd;
    static const mixprec_adam no_adam;
    mixprec_sgd sgd = no_sgd;
    mixprec_adam adam = no_adam;
    int kind;
    sgd.learning_rate = adam.learning_rate = 1e-3;
    adam.beta1 = 0.9, adam.beta2 = 0.999, adam.epsilon = 1e-8, adam.decoupled = 1;
    sgd.step = adam.step = 1;
    for (kind = 0; kind < 3; kind++) { /* master weights and a model, weights alone, with compensation */
        mixprec_parameter p;
        int steps;
        for (steps = 0; steps < 2; steps++) {
            if (kind == 2 && y_type != MIXPREC_BF16)
                continue;
            used = 0;
            memset(&p, 0, sizeof p);
            p.n = n;
            p.grad = numbers(x_type, n), p.grad_type = x_type;
            p.master = kind ? NULL : FLOATS(n);
            p.model = numbers(y_type, n), p.model_type = y_type;
            p.compensation = kind == 2 ? numbers(y_type, n) : NULL;
            p.moment1 = FLOATS(n);
            p.moment2 = steps ? FLOATS(n) : NULL;
            sgd.momentum = 0.9;
            call_now = steps ? "mixprec_adam_step" : "mixprec_sgd_step";
            check_beside(steps ? mixprec_adam_step(&adam, &p, 1, 1, 0) : mixprec_sgd_step(&sgd, &p, 1, 1, 0));
        }
    }
    CALL(mixprec_accumulate(FLOATS(n), X(n), n, 0.5f));
}

static void quantisation(size_t n) {
    static const mixprec_dtype to[] = {MIXPREC_E4M3, MIXPREC_E5M2, MIXPREC_E2M1, MIXPREC_E2M3, MIXPREC_I8, MIXPREC_F16};
    static const size_t blocks[] = {0, 1, 7, 16, 32, 128};
    size_t t, b;
    for (t = 0; t < sizeof to / sizeof *to && x_type != MIXPREC_E4M3 && x_type != MIXPREC_E5M2; t++)
        for (b = 0; b < sizeof blocks / sizeof *blocks && n; b++) {
            const size_t scales = blocks[b] ? (n + blocks[b] - 1) / blocks[b] : 1;
            const size_t narrow_n = to[t] == MIXPREC_E2M1 ? 2 * n + n % 2 : 2 * n; /* in two rows */
            mixprec_quantize_desc d;
            mixprec_scales layout;
            memset(&d, 0, sizeof d);
            memset(&layout, 0, sizeof layout);
            used = 0;
            d.rows = 2, d.columns = n;
            d.block_rows = layout.block_rows = 1;
            d.block_columns = layout.block_columns = blocks[b];
            d.src = numbers(x_type, 2 * n), d.src_type = x_type;
            d.dst = numbers(to[t], narrow_n), d.dst_type = to[t];
            d.scales = FLOATS(2 * scales);
            d.amax = FLOATS(1);
            call_now = mixprec_dtype_name(to[t]);
            check_beside(mixprec_quantize(&d));
            layout.values = (used = 0, FLOATS(2 * scales));
            check_beside(mixprec_dequantize(numbers(x_type, 2 * n), x_type, 0, numbers(to[t], narrow_n), to[t], 0, 2, n,
                                            &layout));
        }
}

static void layers(size_t n) {
    const size_t rows = 3, all = rows * n, channels = 5;
    int activation;
    if (n == 0)
        return; /* nothing to have a mean of, or a target in */
    for (activation = 1; activation <= (int)MIXPREC_ACTIVATION_TANH; activation++) {
        CALL(mixprec_activate(Y(n), X(n), n, (mixprec_activation)activation));
        CALL(mixprec_activate_backward(Y(n), X(n), Y(n), n, (mixprec_activation)activation));
    }
    CALL(mixprec_softmax(Y(all), X(all), rows, n));
    CALL(mixprec_log_softmax(Y(all), X(all), rows, n));
    CALL(mixprec_softmax_backward(Y(all), X(all), Y(all), rows, n));
    CALL(mixprec_softmax_masked(Y(all), X(all), integers(rows, n), rows, n));
    CALL(mixprec_softmax_masked_backward(Y(all), X(all), Y(all), integers(rows, n), rows, n));
    CALL(mixprec_cross_entropy(Y(all), FLOATS(rows), X(all), integers(rows, n), rows, n, 1));
    CALL(mixprec_layer_norm(Y(all), FLOATS(rows), FLOATS(rows), X(all), numbers(y_type, n), numbers(y_type, n), y_type,
                            rows, n, 1e-5));
    CALL(mixprec_layer_norm_backward(Y(all), FLOATS(n), FLOATS(n), X(all), Y(all), numbers(x_type, n), x_type,
                                     FLOATS(rows), FLOATS(rows), rows, n));
    CALL(mixprec_rms_norm(Y(all), FLOATS(rows), X(all), numbers(y_type, n), y_type, rows, n, 1e-5));
    CALL(mixprec_rms_norm_backward(Y(all), FLOATS(n), X(all), Y(all), numbers(x_type, n), x_type, FLOATS(rows), rows,
                                   n));
    CALL(mixprec_batch_norm(Y(all * channels), FLOATS(channels), FLOATS(channels), X(all * channels),
                            numbers(y_type, channels), numbers(y_type, channels), y_type, FLOATS(channels),
                            FLOATS(channels), 0.1, rows, channels, n, 1e-5));
    CALL(mixprec_batch_norm_backward(Y(all * channels), FLOATS(channels), FLOATS(channels), X(all * channels),
                                     Y(all * channels), numbers(x_type, channels), x_type, FLOATS(channels),
                                     FLOATS(channels), rows, channels, n));
    CALL(mixprec_batch_norm(Y(all), FLOATS(n), FLOATS(n), X(all), NULL, NULL, y_type, NULL, NULL, 0.1, rows, n, 1,
                            1e-5));
    CALL(mixprec_batch_norm_inference(Y(all), X(all), numbers(y_type, n), numbers(y_type, n), y_type, FLOATS(n),
                                      FLOATS(n), rows, n, 1, 1e-5));
    CALL(mixprec_bias_add(Y(all), X(all), numbers(y_type, n), y_type, rows, n));
    CALL(mixprec_bias_gradient(FLOATS(n), X(all), rows, n, 0));
    CALL(mixprec_embedding(Y(all), X(4 * n), integers(rows, 4), rows, 4, n));
    CALL(mixprec_embedding_gradient(FLOATS(4 * n), X(all), integers(rows, 4), rows, 4, n));
    CALL(mixprec_dropout(Y(n), X(n), n, 0.25f, 1, 3));
}

static void convolutions(size_t n) {
    const mixprec_conv2d l = {2, 3, 2, n, 4, 1 + n % 2, 1 + n % 3, 0, 0, 0, 0, n % 2, n % 3};
    const size_t weights = 4 * 3 * l.kernel_height * l.kernel_width;
    size_t height, width, bytes, out;
    if (n < 3 || n > 66 || n % 3 == 0 || mixprec_conv2d_output(&l, &height, &width) != MIXPREC_OK ||
        mixprec_conv2d_workspace(&l, &bytes) != MIXPREC_OK)
        return;
    out = 2 * 4 * height * width;
    CALL(mixprec_conv2d_forward(&l, Y(out), X(12 * n), X(weights), Y(4), array_of(bytes), bytes));
    CALL(mixprec_conv2d_backward_input(&l, Y(12 * n), X(out), X(weights), array_of(bytes), bytes));
    CALL(mixprec_conv2d_backward_weight(&l, FLOATS(weights), FLOATS(4), X(out), Y(12 * n), array_of(bytes), bytes));
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(size_t n);
    } tests[] = {{"bounds: sums, norms, amax", reductions},
                 {"bounds: statistics", statistics},
                 {"bounds: unscaling", unscaling},
                 {"bounds: optimisers", optimisers},
                 {"bounds: quantisation", quantisation},
                 {"bounds: layers", layers},
                 {"bounds: convolution layers", convolutions}};
    size_t i;
    test_init(argc, argv);
    guard_crashes(describe);
    for (i = 0; i < SLOTS; i++)
        pages[i] = guarded(GUARD_PAGE);
    for (i = 0; i < sizeof tests / sizeof *tests; i++)
        if (test_begin(tests[i].name))
            for_all(tests[i].run), test_end();
    return test_summary();
}
