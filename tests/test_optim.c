/* Tests of the optimisers, of mixprec_accumulate and mixprec_warmup_cosine.

       cc -O2 -std=gnu11 tests/test_optim.c -lm && ./a.out [--quick] [--filter TEXT] */
#include <float.h>
#include <math.h>
#include <stdint.h>

#include "test.h"
#define MIXPREC_IMPLEMENTATION
#include "../mixprec.h"

/* A quadratic with known minimum: 2000 steps come close. */
static void test_minimum(void) {
    float w[3] = {5, -3, 1}, m[3] = {0}, v[3] = {0}, g[3];
    static const float goal[3] = {1, 2, -0.5f};
    mixprec_parameter p;
    mixprec_adam adam;
    int i, j;
    memset(&p, 0, sizeof p);
    mixprec_adamw_init(&adam);
    adam.learning_rate = 0.02;
    adam.weight_decay = 0;
    p.n = 3;
    p.grad = g;
    p.grad_type = MIXPREC_F32;
    p.master = w;
    p.moment1 = m;
    p.moment2 = v;
    for (i = 0; i < 2000; i++) {
        for (j = 0; j < 3; j++)
            g[j] = 8 * (w[j] - goal[j]);
        adam.step++;
        CHECK(mixprec_adam_step(&adam, &p, 0.125f, 1, 0) == MIXPREC_OK, "step %d", i);
    }
    for (j = 0; j < 3; j++)
        CHECK(fabsf(w[j] - goal[j]) < 1e-3f, "weight %d: %g", j, (double)w[j]);
}

int main(int argc, char **argv) {
    test_init(argc, argv);
    if (test_begin("optim: Adam finds a minimum")) {
        test_minimum();
        test_end();
    }
    return test_summary();
}
