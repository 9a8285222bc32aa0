/* Tests of the sums, norms, mixprec_amax, mixprec_all_finite, mixprec_mean_variance.

       cc -O2 -std=gnu11 tests/test_reduce.c -lm && ./a.out [--quick] [--filter TEXT] */
#include <float.h>
#include <math.h>
#include <stdint.h>

#include "test.h"
#define MIXPREC_IMPLEMENTATION
#include "../mixprec.h"

static void test_known(void) {
    static const float x[5] = {3, -4, 12, 0, -84};
    double sum, dot, squares, norm1, norm2, mean, variance;
    float amax;
    CHECK(mixprec_sum(&sum, x, MIXPREC_F32, 5) == MIXPREC_OK && sum == -73, "sum %g", sum);
    CHECK(mixprec_dot(&dot, x, MIXPREC_F32, x, MIXPREC_F32, 5) == MIXPREC_OK && dot == 7225, "dot %g", dot);
    CHECK(mixprec_sum_squares(&squares, x, MIXPREC_F32, 5) == MIXPREC_OK && squares == 7225, "squares %g", squares);
    CHECK(mixprec_norm1(&norm1, x, MIXPREC_F32, 5) == MIXPREC_OK && norm1 == 103, "norm1 %g", norm1);
    CHECK(mixprec_norm2(&norm2, x, MIXPREC_F32, 5) == MIXPREC_OK && norm2 == 85, "norm2 %g", norm2);
    CHECK(mixprec_amax(&amax, x, MIXPREC_F32, 5) == MIXPREC_OK && amax == 84, "amax %g", (double)amax);
    CHECK(mixprec_mean_variance(&mean, &variance, x, MIXPREC_F32, 5) == MIXPREC_OK && mean == -14.6 &&
              fabs(variance - 1231.84) < 1e-9,
          "mean %g, variance %g", mean, variance);
}

int main(int argc, char **argv) {
    test_init(argc, argv);
    if (test_begin("reduce: known results")) {
        test_known();
        test_end();
    }
    return test_summary();
}
