/* Training in fp16 with fp32 master weights: which points of a square lie in a circle? Read this one first.

       cc -O2 -I. tests/example_train.c -o example && ./example */
#define MIXPREC_IMPLEMENTATION
#include "mixprec.h"
#include <stdio.h>

enum { BATCH = 64, IN = 3, HIDDEN = 32, OUT = 2, FIRST = IN * HIDDEN, WEIGHTS = FIRST + HIDDEN * OUT };
static const mixprec_dtype F16 = MIXPREC_F16, F32 = MIXPREC_F32;
static const mixprec_transpose N = MIXPREC_NO_TRANS, T = MIXPREC_TRANS;
static float master[WEIGHTS], moment1[WEIGHTS], moment2[WEIGHTS], unscaled[WEIGHTS]; /* what the optimiser works on */
static mixprec_f16 weights[WEIGHTS], grad[WEIGHTS];                                  /* what the layers work on */
static mixprec_f16 x[BATCH * IN], z[BATCH * HIDDEN], h[BATCH * HIDDEN], logits[BATCH * OUT];
static float points[BATCH][IN], losses[BATCH];
static int32_t inside[BATCH];

static float uniform(uint64_t seed, uint64_t index) { /* from -1 to 1 */
    return (float)mixprec_random_bits(seed, index) / 2147483648.0f - 1;
}
/* c = op(a) op(b), m x n, k deep: fp16 in, summed in fp32, fp16 out. */
static void multiply(void *c, mixprec_transpose ta, const void *a, mixprec_transpose tb, const void *b, size_t m,
                     size_t n, size_t k) {
    mixprec_gemm(ta, tb, m, n, k, 1, a, F16, ta ? m : k, b, F16, tb ? k : n, 0, c, F16, n);
}
int main(void) {
    mixprec_parameter p = {.n = WEIGHTS, .master = master, .moment1 = moment1, .moment2 = moment2};
    mixprec_scaler scaler;
    mixprec_adam adam;
    double loss;
    mixprec_scaler_init(&scaler);
    mixprec_adamw_init(&adam), adam.learning_rate = 0.02;
    p.grad = unscaled, p.grad_type = F32, p.model = weights, p.model_type = F16;
    for (uint64_t i = 0; i < WEIGHTS; i++)
        master[i] = uniform(1, i);
    mixprec_convert(weights, F16, master, F32, WEIGHTS);
    for (uint64_t step = 0; step <= 300; step++) {
        for (uint64_t i = 0; i < BATCH; i++) { /* the third number stands for a bias */
            float u = points[i][0] = uniform(2, step * BATCH + i), v = points[i][1] = uniform(3, step * BATCH + i);
            points[i][2] = 1, inside[i] = u * u + v * v < 0.5f;
        }
        mixprec_convert(x, F16, points, F32, BATCH * IN); /* forward: logits = gelu(x W1) W2 */
        multiply(z, N, x, N, weights, BATCH, HIDDEN, IN);
        mixprec_activate(h, F16, z, F16, BATCH * HIDDEN, MIXPREC_ACTIVATION_GELU);
        multiply(logits, N, h, N, weights + FIRST, BATCH, OUT, HIDDEN);
        float scale = mixprec_scaler_scale(&scaler, 1.0f / BATCH); /* 1. The mean loss, times the loss scale. */
        mixprec_cross_entropy(logits, F16, losses, logits, F16, inside, BATCH, OUT, (double)scale); /* 2. Gradient. */
        multiply(grad + FIRST, T, h, N, logits, HIDDEN, OUT, BATCH); /* Backward, in fp16. */
        multiply(h, N, logits, T, weights + FIRST, BATCH, HIDDEN, OUT);
        mixprec_activate_backward(h, F16, h, F16, z, F16, BATCH * HIDDEN, MIXPREC_ACTIVATION_GELU);
        multiply(grad, T, x, N, h, IN, HIDDEN, BATCH);
        mixprec_scaler_unscale(&scaler, unscaled, grad, F16, WEIGHTS); /* 3. To fp32, without the scale. */
        if (mixprec_scaler_update(&scaler)) { /* 4. 0 after an overflow: the scale falls; skip this step. */
            adam.step++;
            mixprec_adam_step(&adam, &p, 1, 1, 0); /* 5. Updates the fp32 weights, writes the fp16 ones. */
        }
        mixprec_sum(&loss, losses, F32, BATCH);
        if (step % 100 == 0)
            printf("step %3d: loss %.3f\n", (int)step, loss / BATCH);
    }
}
