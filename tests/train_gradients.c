/* The models of bench/train.c: the gradient that the backward pass gives for each tensor of weights, along a random
   direction, is the slope of the loss that central differences of the forward pass give. In fp32, after some steps, so
   that no tensor is as it began. Compiled and run by tests/check_train.sh. */
#define main train_main
#include "../bench/train.c"
#undef main
#include "test.h"

static int32_t inputs[BATCH * CONTEXT], targets[BATCH];

static double loss_of(run *r) {
    double sum;
    forward(r, inputs, 0);
    check(mixprec_cross_entropy(NULL, r->dtype, r->losses, r->logits, r->dtype, targets, BATCH, vocabulary, 1));
    check(mixprec_sum(&sum, r->losses, MIXPREC_F32, BATCH));
    return sum / BATCH;
}

/* Component j of the direction of tensor i: from -1 to 1. */
static double direction(int i, size_t j) {
    return mixprec_random_bits(1000 + (uint64_t)i, j) / 2147483648.0 - 1;
}
static double moved_loss(run *r, int i, const float *from, double distance) {
    parameter *p = &r->parameters[i];
    size_t j;
    for (j = 0; j < p->n; j++)
        p->master[j] = (float)((double)from[j] + distance * direction(i, j));
    return loss_of(r);
}

static void test_gradients(const task *t) {
    static run r;
    static float saved[1 << 16];
    train_result result;
    int step, i;
    memset(&result, 0, sizeof result);
    start(&r, &modes[0], t, 1, &result);
    draw(train_text, train_size, 5, 0, BATCH, t->transformer, inputs, targets);
    r.first = 1;
    for (step = 0; step <= 60; step++) {
        forward(&r, inputs, 1);
        backward(&r, inputs, targets);
        if (step < 60)
            update(&r, step);
    }
    for (i = 0; i < r.parameter_count; i++) {
        parameter *p = &r.parameters[i];
        const float *gradient = (const float *)p->grad;
        double slope = 0, norm = 0, distance, want;
        size_t j;
        memcpy(saved, p->master, p->n * sizeof *saved);
        for (j = 0; j < p->n; j++) {
            slope += direction(i, j) * (double)gradient[j];
            norm += direction(i, j) * direction(i, j);
        }
        norm = sqrt(norm);
        distance = 0.02 / norm; /* the best of rounding and curvature */
        want = (moved_loss(&r, i, saved, distance) - moved_loss(&r, i, saved, -distance)) / 0.04;
        memcpy(p->master, saved, p->n * sizeof *saved);
        CHECK(fabs(slope / norm - want) <= 0.01 * fabs(want) + 2e-6, "%s, tensor %d of %zu: got %g, want %g", t->name,
              i, p->n, slope / norm, want);
    }
    finish(&r);
}

int main(int argc, char **argv) {
    test_init(argc, argv);
    prepare_text();
    if (test_begin("train: gradients of the MLP")) {
        test_gradients(&tasks[0]);
        test_end();
    }
    if (test_begin("train: gradients of the transformer")) {
        test_gradients(&tasks[3]);
        test_end();
    }
    return test_summary();
}
