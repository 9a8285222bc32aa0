/* The same program for any machine: prints a hash of conversions from f32 to all formats and back, one of matrix
   products and one of steps of training and of layers that these do without. All must print the same lines; make
   check-targets runs it on this machine and on emulated ones, a Cortex-M4 without an operating system among them.

       cc -O2 tests/same_bits.c && ./a.out */
#define MIXPREC_IMPLEMENTATION
#define MIXPREC_NO_STDLIB
#include "../mixprec.h"

#include "same.h"

#include <stdio.h>
#include <string.h>

static uint64_t hash;

static void fill_floats(float *x, uint32_t first, size_t n) {
    size_t i;
    for (i = 0; i < n; i++) {
        const uint32_t bits = bits_of_number(first + (uint32_t)i);
        memcpy(&x[i], &bits, 4);
    }
}

/* Values of about 1, whose products neither overflow nor are NaN. */
static void fill_codes(void *x, mixprec_dtype dtype, uint32_t stream, size_t n) {
    size_t i;
    for (i = 0; i < n; i++) {
        double value = (double)(int32_t)mixprec_random_bits(stream, i) / 2147483648.0;
        uint32_t code = mixprec_encode(value, dtype, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0);
        if (mixprec_dtype_size(dtype) == 2)
            ((uint16_t *)x)[i] = (uint16_t)code;
        else
            ((uint8_t *)x)[i] = (uint8_t)code;
    }
}

/* ---- a few steps of training, with every piece of a real one ---- */

enum { TOKENS = 12, VOCABULARY = 9, WIDTH = 8, HIDDEN = 20, STEPS = 3 };

/* Weights of fp16 with fp32 masters, and AdamW's moments. */
typedef struct weights {
    size_t n;
    float master[VOCABULARY * HIDDEN], moment1[VOCABULARY * HIDDEN], moment2[VOCABULARY * HIDDEN];
    uint16_t model[VOCABULARY * HIDDEN], grad[VOCABULARY * HIDDEN];
} weights;
static weights table, gain, dense, bias, head;

static void start_weights(weights *w, size_t n, uint32_t stream, float centre) {
    size_t i;
    w->n = n;
    for (i = 0; i < n; i++)
        w->master[i] = centre + (float)(int32_t)mixprec_random_bits(stream, i) / 8589934592.0f; /* +-1/4 */
    mixprec_convert(w->model, MIXPREC_F16, w->master, MIXPREC_F32, n);
}

static mixprec_status multiply(mixprec_transpose ta, const void *a, mixprec_transpose tb, const void *b, void *c,
                               size_t m, size_t n, size_t k) {
    return mixprec_gemm(ta, tb, m, n, k, 1, a, MIXPREC_F16, ta ? m : k, b, MIXPREC_F16, tb ? k : n, 0, c, MIXPREC_F16,
                        n);
}

static mixprec_status train(void) {
    static weights *const all[] = {&table, &gain, &dense, &bias, &head};
    static uint16_t x[TOKENS * WIDTH], normal[TOKENS * WIDTH], linear[TOKENS * HIDDEN], active[TOKENS * HIDDEN],
        logits[TOKENS * VOCABULARY], gradient[TOKENS * HIDDEN], back[TOKENS * HIDDEN];
    static float mean[TOKENS], rstd[TOKENS], losses[TOKENS], sums[VOCABULARY * WIDTH];
    int32_t tokens[TOKENS], targets[TOKENS];
    mixprec_status status = MIXPREC_OK;
    mixprec_scaler scaler;
    mixprec_adam adam;
    int step;
    size_t i;
    start_weights(&table, VOCABULARY * WIDTH, 21, 0);
    start_weights(&gain, WIDTH, 22, 1);
    start_weights(&dense, WIDTH * HIDDEN, 23, 0);
    start_weights(&bias, HIDDEN, 24, 0);
    start_weights(&head, HIDDEN * VOCABULARY, 25, 0);
    mixprec_scaler_init(&scaler);
    mixprec_adamw_init(&adam);
    for (step = 0; step < STEPS; step++) {
        double squares, total = 0, norm;
        float inverse;
        for (i = 0; i < TOKENS; i++) {
            tokens[i] = (int32_t)(mixprec_random_bits(26, (uint64_t)step * TOKENS + i) % VOCABULARY);
            targets[i] = (tokens[i] * 2 + 1) % VOCABULARY;
        }
        /* forward */
        status |= mixprec_embedding(x, MIXPREC_F16, table.model, MIXPREC_F16, tokens, TOKENS, VOCABULARY, WIDTH);
        status |= mixprec_layer_norm(normal, MIXPREC_F16, mean, rstd, x, MIXPREC_F16, gain.model, NULL, MIXPREC_F16,
                                     TOKENS, WIDTH, 1e-5);
        status |= multiply(MIXPREC_NO_TRANS, normal, MIXPREC_NO_TRANS, dense.model, linear, TOKENS, HIDDEN, WIDTH);
        status |= mixprec_bias_add(linear, MIXPREC_F16, linear, MIXPREC_F16, bias.model, MIXPREC_F16, TOKENS, HIDDEN);
        status |= mixprec_activate(active, MIXPREC_F16, linear, MIXPREC_F16, TOKENS * HIDDEN, MIXPREC_ACTIVATION_GELU);
        status |= mixprec_dropout(active, MIXPREC_F16, active, MIXPREC_F16, TOKENS * HIDDEN, 0.1f, 27,
                                  (uint64_t)step * TOKENS * HIDDEN);
        status |= multiply(MIXPREC_NO_TRANS, active, MIXPREC_NO_TRANS, head.model, logits, TOKENS, VOCABULARY, HIDDEN);
        /* loss and backward */
        status |= mixprec_cross_entropy(logits, MIXPREC_F16, losses, logits, MIXPREC_F16, targets, TOKENS, VOCABULARY,
                                        (double)mixprec_scaler_scale(&scaler, 1) / TOKENS);
        hash = hash_numbers(hash, losses, TOKENS, 4);
        status |= multiply(MIXPREC_TRANS, active, MIXPREC_NO_TRANS, logits, head.grad, HIDDEN, VOCABULARY, TOKENS);
        status |= multiply(MIXPREC_NO_TRANS, logits, MIXPREC_TRANS, head.model, gradient, TOKENS, HIDDEN, VOCABULARY);
        status |= mixprec_dropout(gradient, MIXPREC_F16, gradient, MIXPREC_F16, TOKENS * HIDDEN, 0.1f, 27,
                                  (uint64_t)step * TOKENS * HIDDEN);
        status |= mixprec_activate_backward(gradient, MIXPREC_F16, gradient, MIXPREC_F16, linear, MIXPREC_F16,
                                            TOKENS * HIDDEN, MIXPREC_ACTIVATION_GELU);
        status |= multiply(MIXPREC_TRANS, normal, MIXPREC_NO_TRANS, gradient, dense.grad, WIDTH, HIDDEN, TOKENS);
        memset(sums, 0, sizeof sums);
        status |= mixprec_bias_gradient(sums, gradient, MIXPREC_F16, TOKENS, HIDDEN, 0);
        status |= mixprec_convert(bias.grad, MIXPREC_F16, sums, MIXPREC_F32, HIDDEN);
        status |= multiply(MIXPREC_NO_TRANS, gradient, MIXPREC_TRANS, dense.model, back, TOKENS, WIDTH, HIDDEN);
        memset(sums, 0, sizeof sums);
        status |= mixprec_layer_norm_backward(back, MIXPREC_F16, sums, NULL, back, MIXPREC_F16, x, MIXPREC_F16,
                                              gain.model, MIXPREC_F16, mean, rstd, TOKENS, WIDTH);
        status |= mixprec_convert(gain.grad, MIXPREC_F16, sums, MIXPREC_F32, WIDTH);
        memset(sums, 0, sizeof sums);
        status |= mixprec_embedding_gradient(sums, back, MIXPREC_F16, tokens, TOKENS, VOCABULARY, WIDTH);
        status |= mixprec_convert(table.grad, MIXPREC_F16, sums, MIXPREC_F32, VOCABULARY * WIDTH);
        /* clip, unscale and update, unless a gradient overflowed */
        for (i = 0; i < 5; i++) {
            status |= mixprec_sum_squares(&squares, all[i]->grad, MIXPREC_F16, all[i]->n);
            total += squares;
        }
        inverse = mixprec_inverse_scale(scaler.scale);
        norm = mixprec_gradient_norm(total, inverse);
        scaler.found_inf |= mixprec_found_inf(norm);
        if (mixprec_scaler_update(&scaler)) {
            const float clip = mixprec_clip_coefficient(norm, 0.5);
            adam.step++;
            adam.learning_rate = mixprec_warmup_cosine(0.01, 0.001, 1, STEPS, (uint64_t)step + 1);
            for (i = 0; i < 5; i++) {
                static const mixprec_parameter none = {0};
                mixprec_parameter p = none;
                p.n = all[i]->n;
                p.grad = all[i]->grad;
                p.grad_type = MIXPREC_F16;
                p.master = all[i]->master;
                p.model = all[i]->model;
                p.model_type = MIXPREC_F16;
                p.moment1 = all[i]->moment1;
                p.moment2 = all[i]->moment2;
                status |= mixprec_adam_step(&adam, &p, inverse, clip, 0);
            }
        }
    }
    for (i = 0; i < 5; i++) {
        hash = hash_numbers(hash, all[i]->master, all[i]->n, 4);
        hash = hash_numbers(hash, all[i]->model, all[i]->n, 2);
        hash = hash_numbers(hash, all[i]->moment2, all[i]->n, 4);
    }
    return adam.step == STEPS ? status : MIXPREC_ERR_SCALE;
}

/* ---- what those steps leave out: batch normalisation, softmax of some columns, convolution ---- */

enum { IMAGES = 2, CHANNELS = 3, HEIGHT = 5, IMAGE_WIDTH = 6, PIXELS = HEIGHT * IMAGE_WIDTH, FILTERS = 2, KERNEL = 3 };

static mixprec_status normalise(mixprec_dtype dtype) {
    enum { COUNT = IMAGES * CHANNELS * PIXELS };
    static uint16_t x[COUNT], dy[COUNT], y[COUNT], gamma[CHANNELS], beta[CHANNELS];
    static float sums[6][CHANNELS]; /* mean, rstd, running mean and variance, the gradients of gamma and beta */
    const size_t size = mixprec_dtype_size(dtype);
    mixprec_status status = MIXPREC_OK;
    size_t i;
    fill_codes(x, dtype, 31, COUNT);
    fill_codes(dy, dtype, 32, COUNT);
    fill_codes(gamma, dtype, 33, CHANNELS);
    fill_codes(beta, dtype, 34, CHANNELS);
    memset(sums, 0, sizeof sums);
    for (i = 0; i < CHANNELS; i++)
        sums[3][i] = 1;
    status |= mixprec_batch_norm(y, dtype, sums[0], sums[1], x, dtype, gamma, beta, dtype, sums[2], sums[3], 0.1,
                                 IMAGES, CHANNELS, PIXELS, 1e-5);
    hash = hash_numbers(hash, y, COUNT, size);
    status |= mixprec_batch_norm_inference(y, dtype, x, dtype, gamma, beta, dtype, sums[2], sums[3], IMAGES, CHANNELS,
                                           PIXELS, 1e-5);
    hash = hash_numbers(hash, y, COUNT, size);
    status |= mixprec_batch_norm_backward(y, dtype, sums[4], sums[5], dy, dtype, x, dtype, gamma, dtype, sums[0],
                                          sums[1], IMAGES, CHANNELS, PIXELS);
    hash = hash_numbers(hash, y, COUNT, size);
    hash = hash_numbers(hash, sums, 6 * CHANNELS, 4);
    return status;
}

static mixprec_status attend(mixprec_dtype dtype) {
    static const int32_t valid[5] = {1, 0, 19, 7, 12};
    static uint16_t x[5 * 19], dy[5 * 19], y[5 * 19];
    const size_t size = mixprec_dtype_size(dtype);
    mixprec_status status = MIXPREC_OK;
    fill_codes(x, dtype, 35, 5 * 19);
    fill_codes(dy, dtype, 36, 5 * 19);
    status |= mixprec_softmax_masked(y, dtype, x, dtype, valid, 5, 19);
    hash = hash_numbers(hash, y, 5 * 19, size);
    status |= mixprec_softmax_masked_backward(dy, dtype, dy, dtype, y, dtype, valid, 5, 19);
    hash = hash_numbers(hash, dy, 5 * 19, size);
    return status;
}

static mixprec_status convolve(mixprec_dtype dtype) {
    enum { IN = IMAGES * CHANNELS * PIXELS, OUT_MOST = IMAGES * FILTERS * PIXELS };
    enum { WEIGHTS = FILTERS * CHANNELS * KERNEL * KERNEL };
    static const mixprec_conv2d layer = {IMAGES, CHANNELS, HEIGHT, IMAGE_WIDTH, FILTERS, KERNEL, KERNEL,
                                         2,      1,        1,      1,           1,       1};
    static uint16_t x[IN], dx[IN], y[OUT_MOST], weight[WEIGHTS], add[FILTERS];
    static float dweight[WEIGHTS], dbias[FILTERS];
    static double workspace[1024];
    const size_t size = mixprec_dtype_size(dtype);
    mixprec_status status = MIXPREC_OK;
    size_t height = 0, width = 0, count, bytes = 0;
    status |= mixprec_conv2d_output(&layer, &height, &width);
    status |= mixprec_conv2d_workspace(&layer, &bytes);
    count = IMAGES * FILTERS * height * width;
    if (status != MIXPREC_OK || count > OUT_MOST || bytes > sizeof workspace)
        return MIXPREC_ERR_WORKSPACE;
    fill_codes(x, dtype, 37, IN);
    fill_codes(weight, dtype, 38, WEIGHTS);
    fill_codes(add, dtype, 39, FILTERS);
    status |= mixprec_conv2d_forward(&layer, y, dtype, x, dtype, weight, dtype, add, dtype, workspace, bytes);
    hash = hash_numbers(hash, y, count, size);
    fill_codes(y, dtype, 40, count);
    status |= mixprec_conv2d_backward_input(&layer, dx, dtype, y, dtype, weight, dtype, workspace, bytes);
    hash = hash_numbers(hash, dx, IN, size);
    memset(dweight, 0, sizeof dweight);
    memset(dbias, 0, sizeof dbias);
    status |= mixprec_conv2d_backward_weight(&layer, dweight, dbias, y, dtype, x, dtype, workspace, bytes);
    hash = hash_numbers(hash, dweight, WEIGHTS, 4);
    hash = hash_numbers(hash, dbias, FILTERS, 4);
    return status;
}

int main(void) {
    static const mixprec_dtype dtypes[] = {MIXPREC_F16, MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
    static float source[256], back[256];
    static uint16_t narrow[256];
    mixprec_convert_options options = {MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0, MIXPREC_ISA_AUTO, 7, 0};
    mixprec_status status = MIXPREC_OK;
    size_t d, i;
    uint32_t block;
    int round, overflow;

    hash = 0xCBF29CE484222325u;
    for (block = 0; block < 8; block++) {
        fill_floats(source, block * 256, 256);
        for (d = MIXPREC_F16; d <= MIXPREC_I8; d++) {
            const size_t size = d <= MIXPREC_BF16 ? 2 : 1;
            for (round = 0; round <= (int)MIXPREC_ROUND_STOCHASTIC; round++)
                for (overflow = 0; overflow <= (int)MIXPREC_OVERFLOW_SATURATE_KEEP_INF; overflow++) {
                    options.round = (mixprec_round)round;
                    options.overflow = (mixprec_overflow)overflow;
                    status |= mixprec_convert_ex(narrow, (mixprec_dtype)d, source, MIXPREC_F32, 256, &options);
                    hash = hash_numbers(hash, narrow, mixprec_dtype_bytes((mixprec_dtype)d, 256) / size, size);
                    status |= mixprec_convert(back, MIXPREC_F32, narrow, (mixprec_dtype)d, 256);
                    hash = hash_numbers(hash, back, 256, 4);
                }
        }
    }
    printf("conversions %08lx%08lx status %d\n", (unsigned long)(hash >> 32), (unsigned long)(hash & 0xFFFFFFFFu),
           (int)status);

    /* k of 700 is more than one chunk of MIXPREC_GEMM_KBLOCK, and a remainder. */
    hash = 0xCBF29CE484222325u;
    for (d = 0; d < 4; d++) {
        static uint16_t a[3 * 700], b[700 * 2];
        static float c[3 * 2];
        for (i = 0; i < 6; i++)
            c[i] = (float)i;
        fill_codes(a, dtypes[d], 2, 3 * 700);
        fill_codes(b, dtypes[(d + 1) % 4], 3, 700 * 2);
        status |= mixprec_gemm(MIXPREC_NO_TRANS, MIXPREC_NO_TRANS, 3, 2, 700, 0.75f, a, dtypes[d], 700, b,
                               dtypes[(d + 1) % 4], 2, 0.1f, c, MIXPREC_F32, 2);
        hash = hash_numbers(hash, c, 6, 4);
    }
    printf("products %08lx%08lx status %d\n", (unsigned long)(hash >> 32), (unsigned long)(hash & 0xFFFFFFFFu),
           (int)status);

    hash = 0xCBF29CE484222325u;
    status |= train();
    for (d = 0; d < 4; d++) {
        status |= normalise(dtypes[d]);
        status |= attend(dtypes[d]);
        status |= convolve(dtypes[d]);
    }
    printf("training %08lx%08lx status %d\n", (unsigned long)(hash >> 32), (unsigned long)(hash & 0xFFFFFFFFu),
           (int)status);
    return status != MIXPREC_OK;
}
