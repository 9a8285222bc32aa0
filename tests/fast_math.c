/* What must hold, too, where the implementation is compiled with -ffast-math, though not in the bits (those of partial
   sums excepted): an overflow is found, NaN and Inf go through, and sums and elementary functions keep their accuracy.
   Compilers that were promised finite numbers fold tests for others, of bits, too, and distribute products over
   differences.

       clang -O2 -ffast-math -c tests/implementation.c && cc tests/fast_math.c implementation.o -lm && ./a.out */
#include <math.h>

#include "test.h"
#include "../mixprec.h"

enum { N = 200 };
static const mixprec_dtype dtypes[] = {MIXPREC_F32, MIXPREC_F64, MIXPREC_F16, MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
static const mixprec_isa isas[] = {MIXPREC_ISA_C, MIXPREC_ISA_AVX2, MIXPREC_ISA_AVX512, MIXPREC_ISA_NEON};

/* The loss scaler: one Inf or NaN anywhere, of any dtype, on any path; and one that unscaling makes. */
static void test_scaler(void) {
    double values[N], bad[] = {(double)NAN, HUGE_VAL, -HUGE_VAL};
    float out[N];
    size_t d, i, j, k;
    for (d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (i = 0; i < sizeof isas / sizeof *isas; i++)
            for (j = 0; j < N && mixprec_isa_available(isas[i]); j += 7)
                for (k = 0; k < 4; k++) {
                    unsigned char grad[8 * N];
                    mixprec_scaler s;
                    int found;
                    memset(values, 0, sizeof values);
                    values[j] = k < 3 ? bad[k] : 0;
                    mixprec_convert(grad, dtypes[d], values, MIXPREC_F64, N);
                    mixprec_scaler_init(&s);
                    found = mixprec_scaler_unscale_ex(&s, out, grad, dtypes[d], N, isas[i]);
                    CHECK(found == (k < 3) && s.found_inf == found, "%s %s element %d, %g: found %d",
                          mixprec_dtype_name(dtypes[d]), mixprec_isa_name(isas[i]), (int)j, values[j], found);
                    if (k < 3 && dtypes[d] == MIXPREC_F32)
                        continue;
                    values[j] = 1e30;
                    mixprec_convert(grad, MIXPREC_F32, values, MIXPREC_F64, N);
                    s.scale = 1e-30f;
                    found = mixprec_scaler_unscale_ex(&s, out, grad, MIXPREC_F32, N, isas[i]);
                    CHECK(found == 1, "%s element %d overflows: found %d", mixprec_isa_name(isas[i]), (int)j, found);
                }
    for (k = 0; k < 3; k++)
        CHECK(mixprec_found_inf(bad[k]) == 1, "mixprec_found_inf(%g)", bad[k]);
    CHECK(mixprec_found_inf(1.0) == 0, "mixprec_found_inf(1)");
}

static void test_delayed_scaling(void) {
    mixprec_delayed_scaling s;
    float history[3];
    mixprec_delayed_scaling_init(&s, MIXPREC_E4M3, history, 3);
    mixprec_delayed_scaling_update(&s, NAN);
    CHECK(isnan(history[2]) && s.scale == 1, "NaN: history %g, scale %g", (double)history[2], (double)s.scale);
    mixprec_delayed_scaling_update(&s, HUGE_VALF);
    CHECK(isnan(history[1]) && isinf(history[2]) && s.scale == 1, "Inf: history %g %g, scale %g", (double)history[1],
          (double)history[2], (double)s.scale);
}

/* The sum of parts is a sum in their order. */
static void test_combine(void) {
    double parts[N], want = 0, got = 0;
    int i;
    for (i = 0; i < N; i++)
        want += parts[i] = sin(i) * exp2(i % 40);
    CHECK(mixprec_combine(&got, parts, N) == MIXPREC_OK && got == want, "%.17g, not %.17g", got, want);
}

static void test_layers(void) {
    float x[N], y[N], loss, rstd;
    int32_t target = 3;
    int i, j;
    for (i = 0; i < N; i++)
        x[i] = (float)(i % 13) - 4;
    x[77] = NAN;
    CHECK(mixprec_softmax(y, MIXPREC_F32, x, MIXPREC_F32, 1, N) == MIXPREC_OK && isnan(y[0]) && isnan(y[N - 1]),
          "softmax of a row with NaN: %g", (double)y[0]);
    CHECK(mixprec_cross_entropy(y, MIXPREC_F32, &loss, x, MIXPREC_F32, &target, 1, N, 1) == MIXPREC_OK && isnan(y[0]) &&
              isnan(loss),
          "cross-entropy of a row with NaN: %g, loss %g", (double)y[0], (double)loss);
    for (i = 0; i < N; i++)
        x[i] = 3e38f;
    mixprec_cross_entropy(y, MIXPREC_F32, &loss, x, MIXPREC_F32, &target, 1, N, 1);
    CHECK(fabs((double)loss - log(N)) < 1e-5, "loss %.9g of a constant row, not log %d", (double)loss, N);
    mixprec_log_softmax(y, MIXPREC_F32, x, MIXPREC_F32, 1, N);
    CHECK(fabs((double)y[0] + log(N)) < 1e-5, "log-softmax %.9g of a constant row, not -log %d", (double)y[0], N);
    for (i = 0; i < N; i++) /* squares are more than f32 can hold */
        x[i] = i % 2 ? 1.1e38f : 1e38f;
    mixprec_layer_norm(y, MIXPREC_F32, NULL, &rstd, x, MIXPREC_F32, NULL, NULL, MIXPREC_F32, 1, N / 2 * 2, 1e-5);
    CHECK(fabs((double)y[0] + 1) < 1e-5 && fabs((double)y[1] - 1) < 1e-5, "layer norm of large numbers: %g, %g",
          (double)y[0], (double)y[1]);
    for (i = 0; i < 2; i++) {
        x[5] = i ? NAN : HUGE_VALF;
        mixprec_layer_norm(y, MIXPREC_F32, NULL, &rstd, x, MIXPREC_F32, NULL, NULL, MIXPREC_F32, 1, N, 1e-5);
        CHECK(isnan(rstd) && isnan(y[0]), "layer norm of a row with %g: %g, rstd %g", (double)x[5], (double)y[0],
              (double)rstd);
    }
    for (i = -60; i < 60; i++) { /* a row of +-2^i/2 */
        double size = exp2(i / 2.0);
        for (j = 0; j < N; j++)
            x[j] = (float)(j % 2 ? size : -size);
        mixprec_layer_norm(y, MIXPREC_F32, NULL, &rstd, x, MIXPREC_F32, NULL, NULL, MIXPREC_F32, 1, N, 0);
        CHECK(fabs((double)rstd * size - 1) < 1e-6 && fabs((double)y[1] - 1) < 1e-6, "layer norm of +-%g: %g, rstd %g",
              size, (double)y[1], (double)rstd);
    }
}

static void test_clipping(void) {
    CHECK(isnan(mixprec_clip_coefficient(NAN, 1)) && isnan(mixprec_clip_coefficient(1, NAN)) &&
              isnan(mixprec_clip_coefficient(HUGE_VAL, HUGE_VAL)),
          "a NaN is lost");
    CHECK(mixprec_clip_coefficient(HUGE_VAL, 1) == 0 && mixprec_clip_coefficient(NAN, -1) == 1 &&
              mixprec_clip_coefficient(1, HUGE_VAL) == 1,
          "not 0, 1, 1");
}

int main(int argc, char **argv) {
    test_init(argc, argv);
    if (test_begin("fast math: the scaler finds Inf and NaN")) {
        test_scaler();
        test_end();
    }
    if (test_begin("fast math: delayed scaling passes over Inf and NaN")) {
        test_delayed_scaling();
        test_end();
    }
    if (test_begin("fast math: clipping passes NaN on")) {
        test_clipping();
        test_end();
    }
    if (test_begin("fast math: partial sums")) {
        test_combine();
        test_end();
    }
    if (test_begin("fast math: layers")) {
        test_layers();
        test_end();
    }
    return test_summary();
}
