/* Training in fp16 with fp32 master weights: is a point inside the circle? Two layers; read this one first.

       cc -O2 -I. tests/example_train.c -o example && ./example */
#define MIXPREC_IMPLEMENTATION
#include "mixprec.h"
#include <stdio.h>

enum { BATCH = 64, IN = 3, HIDDEN = 32, CLASSES = 2, STEPS = 300 };
#define F16 MIXPREC_F16

typedef struct layer { /* weights in fp32 and their fp16 copy; the gradient; Adam's moments */
    float master[IN * HIDDEN], moment1[IN * HIDDEN], moment2[IN * HIDDEN];
    mixprec_f16 weight[IN * HIDDEN], grad[IN * HIDDEN];
    mixprec_parameter p;
} layer;
static layer first, second;
static mixprec_f16 x[BATCH * IN], z[BATCH * HIDDEN], h[BATCH * HIDDEN], logits[BATCH * CLASSES];

static void start(layer *l, size_t n, unsigned seed) {
    for (size_t i = 0; i < n; i++)
        l->master[i] = (float)mixprec_random_bits(seed, i) / 2147483648.0f - 1; /* -1 to 1 */
    mixprec_convert(l->weight, F16, l->master, MIXPREC_F32, n);
    l->p = (mixprec_parameter){.n = n, .grad = l->grad, .grad_type = F16, .master = l->master, .model = l->weight};
    l->p.model_type = F16, l->p.moment1 = l->moment1, l->p.moment2 = l->moment2;
}

/* c = op(a) op(b), m x n, k deep: fp16 in, fp16 out, summed in fp32. */
static void multiply(mixprec_transpose ta, const void *a, mixprec_transpose tb, const void *b, void *c, size_t m,
                     size_t n, size_t k) {
    mixprec_gemm(ta, tb, m, n, k, 1, a, F16, ta ? m : k, b, F16, tb ? k : n, 0, c, F16, n);
}

int main(void) {
    const mixprec_transpose no = MIXPREC_NO_TRANS, yes = MIXPREC_TRANS;
    float losses[BATCH];
    double loss, squares1, squares2;
    mixprec_scaler scaler;
    mixprec_adam adam;
    start(&first, IN * HIDDEN, 1);
    start(&second, HIDDEN * CLASSES, 2);
    mixprec_scaler_init(&scaler);
    mixprec_adamw_init(&adam);
    adam.learning_rate = 0.02;
    for (int step = 0; step <= STEPS; step++) {
        int32_t inside[BATCH];
        for (size_t i = 0; i < BATCH; i++) { /* random points of a square; the third number stands for a bias */
            double u = mixprec_random_bits(3, (size_t)step * BATCH + i) / 2147483648.0 - 1;
            double v = mixprec_random_bits(4, (size_t)step * BATCH + i) / 2147483648.0 - 1;
            x[i * IN] = mixprec_f64_to_f16(u), x[i * IN + 1] = mixprec_f64_to_f16(v);
            x[i * IN + 2] = mixprec_f64_to_f16(1);
            inside[i] = u * u + v * v < 0.5;
        }
        /* 1. Forward. */
        multiply(no, x, no, first.weight, z, BATCH, HIDDEN, IN);
        mixprec_activate(h, F16, z, F16, BATCH * HIDDEN, MIXPREC_ACTIVATION_GELU);
        multiply(no, h, no, second.weight, logits, BATCH, CLASSES, HIDDEN);
        /* 2. The losses; their gradient, times the loss scale, takes the place of the logits. */
        mixprec_cross_entropy(logits, F16, losses, logits, F16, inside, BATCH, CLASSES, (double)scaler.scale / BATCH);
        /* 3. Backward. */
        multiply(yes, h, no, logits, second.grad, HIDDEN, CLASSES, BATCH);
        multiply(no, logits, yes, second.weight, h, BATCH, HIDDEN, CLASSES);
        mixprec_activate_backward(h, F16, h, F16, z, F16, BATCH * HIDDEN, MIXPREC_ACTIVATION_GELU);
        multiply(yes, x, no, h, first.grad, IN, HIDDEN, BATCH);
        /* 4. Did a gradient overflow? Then the loss scale falls, and this step is skipped. */
        mixprec_sum_squares(&squares1, first.grad, F16, first.p.n);
        mixprec_sum_squares(&squares2, second.grad, F16, second.p.n);
        scaler.found_inf = mixprec_found_inf(squares1 + squares2);
        float inverse = mixprec_inverse_scale(scaler.scale);
        if (mixprec_scaler_update(&scaler)) { /* 5. Unscale and update in fp32, write the fp16 copy: one pass. */
            adam.step++;
            mixprec_adam_step(&adam, &first.p, inverse, 1, 0);
            mixprec_adam_step(&adam, &second.p, inverse, 1, 0);
        }
        mixprec_sum(&loss, losses, MIXPREC_F32, BATCH);
        if (step % 100 == 0)
            printf("step %3d: loss %.3f\n", step, loss / BATCH);
    }
    return 0;
}
