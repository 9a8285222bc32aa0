/* Tests of the sums, norms, mixprec_amax, mixprec_all_finite, mixprec_mean_variance, mixprec_reduce, mixprec_combine.

       cc -O2 -std=gnu11 tests/test_reduce.c -lm && ./a.out [--quick] [--filter TEXT]

   Two oracles: the documented order, written out for f64 elements one at a time with every operation in a volatile, for
   the bits; and sums in long double, for the documented error. */
#include <float.h>
#include <math.h>
#include <stdint.h>

#include "test.h"
#define MIXPREC_IMPLEMENTATION
#include "../mixprec.h"
#include "codes.h"
#include "environment.h"

#ifdef __TINYC__ /* its long double functions are not those of libm */
typedef double wide;
#define fabsl fabs
#undef LDBL_EPSILON
#define LDBL_EPSILON DBL_EPSILON
#else
typedef long double wide;
#endif

/* ---- helpers ---- */

static const mixprec_dtype tensor_dtypes[] = {MIXPREC_F32, MIXPREC_F16, MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
#define DTYPE_COUNT 5
static const mixprec_isa all_isas[] = {MIXPREC_ISA_AUTO, MIXPREC_ISA_C, MIXPREC_ISA_AVX2, MIXPREC_ISA_AVX512,
                                       MIXPREC_ISA_NEON};
#define ISA_COUNT 5
#define MOST 200003

static unsigned char x_memory[MOST * 4 + 64], y_memory[MOST * 4 + 64];
static double x_values[MOST], y_values[MOST];

static int same(double a, double b) { /* bits, but any NaN is like any other */
    return (isnan(a) && isnan(b)) || !memcmp(&a, &b, sizeof a);
}

/* Finite numbers of any sign, of all magnitudes when wild, else about 1; x[i] at memory + shift elements. */
static void *fill(unsigned char *memory, double *values, mixprec_dtype type, size_t n, size_t shift, uint64_t seed,
                  int wild) {
    void *x = memory + shift * mixprec_dtype_size(type);
    size_t i;
    for (i = 0; i < n; i++) {
        uint32_t random = mixprec_random_bits(seed, i);
        double value = ((double)random - 2147483648.0) * 0x1p-30;
        uint32_t code =
            wild ? random : mixprec_encode(value, type, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_SATURATE, 0);
        set_code(x, type, i, code);
        values[i] = mixprec_decode(code_at(x, type, i), type);
        if (!isfinite(values[i])) {
            set_code(x, type, i, 0);
            values[i] = 0;
        }
    }
    return x;
}

static double term_of(mixprec_reduction reduction, double x, double y, double center) {
    volatile double difference = x - center, product = 0;
    switch (reduction) {
    case MIXPREC_SUM: return x;
    case MIXPREC_SUM_ABS: return fabs(x);
    case MIXPREC_SUM_SQUARES: product = difference * difference; break;
    case MIXPREC_DOT: product = x * y; break;
    }
    return product;
}

/* The documented order. */
static double block_sum(mixprec_reduction reduction, const double *x, const double *y, double center, size_t n) {
    volatile double lane[32];
    size_t i, width;
    for (i = 0; i < 32; i++)
        lane[i] = 0;
    for (i = 0; i < n; i++)
        lane[i % 32] = lane[i % 32] + term_of(reduction, x[i], y[i], center);
    for (width = 16; width >= 1; width /= 2)
        for (i = 0; i < width; i++)
            lane[i] = lane[i] + lane[i + width];
    return lane[0];
}
static double whole_sum(mixprec_reduction reduction, const double *x, const double *y, double center, size_t n) {
    volatile double sum = 0;
    size_t i;
    for (i = 0; i < n; i += 65536)
        sum = sum + block_sum(reduction, x + i, y + i, center, n - i < 65536 ? n - i : 65536);
    return sum;
}

/* ---- the order, on every path ---- */

static void check_order(mixprec_dtype type, mixprec_dtype y_type, size_t n, size_t shift, uint64_t seed, int wild) {
    const void *x = fill(x_memory, x_values, type, n, shift, seed, wild);
    const void *y = fill(y_memory, y_values, y_type, n, shift / 2, seed + 1, wild);
    double partials[4 + 1];
    size_t blocks = (n + 65535) / 65536, i, b;
    int r;
    for (r = 0; r < 5; r++) {
        mixprec_reduction reduction = r == 4 ? MIXPREC_SUM_SQUARES : (mixprec_reduction)r;
        /* which only squares look at */
        double center = r == 4 || (r != MIXPREC_SUM_SQUARES && seed % 3 == 1) ? 0.3125 + 0x1p-40 : 0, combined,
               want = whole_sum(reduction, x_values, y_values, center, n);
        for (i = 0; i < ISA_COUNT; i++) {
            if (!runs_here(all_isas[i]))
                continue;
            memset(partials, 0x55, sizeof partials);
            CHECK(mixprec_reduce(partials, reduction, x, type, y, y_type, center, n, all_isas[i]) == MIXPREC_OK, "%s",
                  mixprec_isa_name(all_isas[i]));
            for (b = 0; b < blocks; b++) {
                double part = block_sum(reduction, x_values + b * 65536, y_values + b * 65536, center,
                                        n - b * 65536 < 65536 ? n - b * 65536 : 65536);
                CHECK(same(partials[b], part), "%s, %s, reduction %d, n %zu, block %zu: got %a, want %a",
                      mixprec_isa_name(all_isas[i]), mixprec_dtype_name(type), r, n, b, partials[b], part);
            }
            CHECK(mixprec_combine(&combined, partials, blocks) == MIXPREC_OK && same(combined, want),
                  "%s, %s, reduction %d, n %zu: combined %a, want %a", mixprec_isa_name(all_isas[i]),
                  mixprec_dtype_name(type), r, n, combined, want);
            memset(&combined, 0x55, sizeof combined);
            CHECK(!memcmp(&partials[blocks], &combined, sizeof combined), "wrote beyond the partials");
        }
    }
}

static void test_order(void) {
    static const size_t sizes[] = {255, 256, 257, 4096, 65535, 65536, 65537, 131072, 200001};
    size_t t, n, i;
    for (t = 0; t < DTYPE_COUNT; t++) {
        for (n = 0; n < 140; n++)
            check_order(tensor_dtypes[t], tensor_dtypes[(t + n) % DTYPE_COUNT], n, n % 3, n, (int)(n & 1));
        for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
            if (!test_quick || sizes[i] < 5000 || i == 6)
                check_order(tensor_dtypes[t], tensor_dtypes[(t + i) % DTYPE_COUNT], sizes[i], i % 3, 1000 + i,
                            (int)(i & 1));
    }
}

/* ---- the simple calls: the same order, any dtypes for a dot product, the error that is documented ---- */

static void check_calls(mixprec_dtype x_type, mixprec_dtype y_type, size_t n, int wild) {
    const void *x = fill(x_memory, x_values, x_type, n, 1, n, wild);
    const void *y = fill(y_memory, y_values, y_type, n, 0, n + 1, wild);
    const char *name = mixprec_dtype_name(x_type);
    double got[5] = {0}, bound = (2052 + (double)n / 65536) * 0x1p-53;
    int r;
    CHECK(mixprec_sum(&got[MIXPREC_SUM], x, x_type, n) == MIXPREC_OK, "sum");
    CHECK(mixprec_norm1(&got[MIXPREC_SUM_ABS], x, x_type, n) == MIXPREC_OK, "norm1");
    CHECK(mixprec_sum_squares(&got[MIXPREC_SUM_SQUARES], x, x_type, n) == MIXPREC_OK, "sum_squares");
    CHECK(mixprec_dot(&got[MIXPREC_DOT], x, x_type, y, y_type, n) == MIXPREC_OK, "dot");
    CHECK(mixprec_norm2(&got[4], x, x_type, n) == MIXPREC_OK, "norm2");
    for (r = 0; r < 4; r++) {
        double want = whole_sum((mixprec_reduction)r, x_values, y_values, 0, n);
        wide exact = 0, magnitudes = 0;
        size_t i;
        for (i = 0; i < n; i++) {
            wide term = (wide)x_values[i] * (r == MIXPREC_DOT           ? (wide)y_values[i]
                                             : r == MIXPREC_SUM_SQUARES ? (wide)x_values[i]
                                                                        : 1);
            exact += r == MIXPREC_SUM_ABS ? fabsl(term) : term;
            magnitudes += fabsl(term);
        }
        CHECK(same(got[r], want), "%s, reduction %d, n %zu: got %a, want %a", name, r, n, got[r], want);
        CHECK(fabsl((wide)got[r] - exact) <= ((wide)bound + n * LDBL_EPSILON) * magnitudes,
              "%s, reduction %d, n %zu: %a is too far from %g", name, r, n, got[r], (double)exact);
    }
    CHECK(same(got[4], sqrt(got[MIXPREC_SUM_SQUARES])), "%s, norm2, n %zu: got %a", name, n, got[4]);
}

static void test_calls(void) {
    size_t i, j;
    for (i = 0; i < DTYPE_COUNT; i++)
        for (j = 0; j < DTYPE_COUNT; j++) {
            check_calls(tensor_dtypes[i], tensor_dtypes[j], 0, 0);
            check_calls(tensor_dtypes[i], tensor_dtypes[j], 77, 1);
            check_calls(tensor_dtypes[i], tensor_dtypes[j], 1000, 0);
            if (i == j && !test_quick)
                check_calls(tensor_dtypes[i], tensor_dtypes[j], MOST - 2, 0);
        }
}

static void test_known(void) {
    static const float x[5] = {3, -4, 12, 0, -84};
    static const float minus_zero[3] = {-0.0f, -0.0f, -0.0f};
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
    CHECK(mixprec_sum(&sum, minus_zero, MIXPREC_F32, 3) == MIXPREC_OK && same(sum, 0), "a sum of -0 is %a", sum);
}

/* ---- the largest magnitude, NaN and Inf ---- */

static void check_amax(const void *x, mixprec_dtype type, size_t n) {
    double want = 0;
    float got;
    int finite = -1, all = 1;
    size_t i;
    for (i = 0; i < n; i++) {
        double value = fabs(mixprec_decode(code_at(x, type, i), type));
        all &= isfinite(value) != 0;
        if (isnan(value) || isnan(want))
            want = (double)NAN;
        else if (value > want)
            want = value;
    }
    for (i = 0; i < ISA_COUNT; i++) {
        if (!runs_here(all_isas[i]))
            continue;
        CHECK(mixprec_amax_ex(&got, x, type, n, all_isas[i]) == MIXPREC_OK && same((double)got, want),
              "%s, %s, n %zu: amax %a, want %a", mixprec_isa_name(all_isas[i]), mixprec_dtype_name(type), n,
              (double)got, want);
    }
    CHECK(mixprec_amax(&got, x, type, n) == MIXPREC_OK && same((double)got, want), "amax %a", (double)got);
    CHECK(mixprec_all_finite(&finite, x, type, n) == MIXPREC_OK && finite == all, "%s, n %zu: all_finite %d",
          mixprec_dtype_name(type), n, finite);
}

static uint32_t special(mixprec_dtype type, double value) {
    return mixprec_encode(value, type, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0);
}

static void test_amax(void) {
    size_t t, n, i;
    int r;
    for (t = 0; t < DTYPE_COUNT; t++) {
        mixprec_dtype type = tensor_dtypes[t];
        for (n = 0; n < 300; n++)
            check_amax(fill(x_memory, x_values, type, n, n % 4, n, (int)(n & 1)), type, n);
        for (i = 0; i < 300; i++) {
            void *x = fill(x_memory, x_values, type, 300, 1, 5, 0);
            double sum;
            set_code(x, type, i, special(type, i & 1 ? -HUGE_VAL : HUGE_VAL));
            check_amax(x, type, 300);
            set_code(x, type, i, special(type, (double)NAN));
            check_amax(x, type, 300);
            for (r = 0; r < 4; r++) {
                CHECK(mixprec_reduce(&sum, (mixprec_reduction)r, x, type, x, type, 0, 300, MIXPREC_ISA_AUTO) ==
                              MIXPREC_OK &&
                          isnan(sum),
                      "%s, reduction %d: NaN at %zu is lost", mixprec_dtype_name(type), r, i);
                if (type == MIXPREC_E4M3)
                    continue;
                set_code(x, type, i, special(type, HUGE_VAL));
                CHECK(mixprec_reduce(&sum, (mixprec_reduction)r, x, type, x, type, 0, 300, MIXPREC_ISA_AUTO) ==
                              MIXPREC_OK &&
                          isinf(sum),
                      "%s, reduction %d: Inf at %zu is lost", mixprec_dtype_name(type), r, i);
                set_code(x, type, i, special(type, (double)NAN));
            }
        }
    }
    { /* the promise about overflow: the largest finite numbers do not look like one */
        double squares;
        for (i = 0; i < MOST; i++)
            set_code(x_memory, MIXPREC_F32, i, 0x7F7FFFFF);
        CHECK(mixprec_sum_squares(&squares, x_memory, MIXPREC_F32, MOST) == MIXPREC_OK && isfinite(squares),
              "FLT_MAX squared overflows");
    }
}

/* ---- mean and variance ---- */

static void test_mean_variance(void) {
    static const size_t sizes[] = {1, 2, 31, 1000, 65537};
    size_t t, s, i;
    float big[1000];
    double mean, variance;
    for (t = 0; t < DTYPE_COUNT; t++)
        for (s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            size_t n = sizes[s];
            const void *x = fill(x_memory, x_values, tensor_dtypes[t], n, s, s, 0);
            double want_mean = whole_sum(MIXPREC_SUM, x_values, x_values, 0, n) / (double)n, only;
            double want = whole_sum(MIXPREC_SUM_SQUARES, x_values, x_values, want_mean, n) / (double)n;
            CHECK(mixprec_mean_variance(&mean, &variance, x, tensor_dtypes[t], n) == MIXPREC_OK, "n %zu", n);
            CHECK(same(mean, want_mean) && same(variance, want), "%s, n %zu: %a, %a, want %a, %a",
                  mixprec_dtype_name(tensor_dtypes[t]), n, mean, variance, want_mean, want);
            CHECK(mixprec_mean_variance(&only, NULL, x, tensor_dtypes[t], n) == MIXPREC_OK && same(only, mean), "mean");
            CHECK(mixprec_mean_variance(NULL, &only, x, tensor_dtypes[t], n) == MIXPREC_OK && same(only, variance),
                  "variance");
        }
    for (i = 0; i < 1000; i++) /* E[x^2] - E[x]^2 in fp32 gives nonsense here */
        big[i] = 1e4f + (float)(i % 2);
    CHECK(mixprec_mean_variance(&mean, &variance, big, MIXPREC_F32, 1000) == MIXPREC_OK && mean == 10000.5 &&
              variance == 0.25,
          "mean %a, variance %a", mean, variance);
    CHECK(mixprec_mean_variance(&mean, &variance, NULL, MIXPREC_F32, 0) == MIXPREC_OK && isnan(mean) && isnan(variance),
          "of nothing: %g, %g", mean, variance);
}

/* ---- split, environment, errors ---- */

static void test_split(void) {
    const char *x = fill(x_memory, x_values, MIXPREC_BF16, 200001, 1, 9, 0);
    double partials[4], combined = 0, whole = 1;
    CHECK(mixprec_sum(&whole, x, MIXPREC_BF16, 200001) == MIXPREC_OK, "sum");
    CHECK(mixprec_reduce(partials + 1, MIXPREC_SUM, x + 65536 * 2, MIXPREC_BF16, NULL, MIXPREC_NONE, 0, 200001 - 65536,
                         MIXPREC_ISA_AUTO) == MIXPREC_OK &&
              mixprec_reduce(partials, MIXPREC_SUM, x, MIXPREC_BF16, NULL, MIXPREC_NONE, 0, 65536, MIXPREC_ISA_C) ==
                  MIXPREC_OK &&
              mixprec_combine(&combined, partials, 4) == MIXPREC_OK,
          "reduce");
    CHECK(same(whole, combined), "whole %a, in parts %a", whole, combined);
}

static size_t drawn;
static size_t below(size_t n) {
    return mixprec_random_bits(77, drawn++) % n;
}

/* The same for any types, reductions and sizes, cut in up to five parts, each on any path. */
static void test_random_splits(void) {
    const int trials = test_quick ? 40 : 100;
    int trial;
    for (trial = 0; trial < trials; trial++) {
        const mixprec_dtype type = tensor_dtypes[below(DTYPE_COUNT)], y_type = tensor_dtypes[below(DTYPE_COUNT)];
        const mixprec_reduction reduction = (mixprec_reduction)below(4);
        const double center = below(2) ? 0.3125 + 0x1p-40 : 0;
        const size_t n = 1 + below(MOST - 8), shift = below(4), blocks = (n + 65535) / 65536;
        const size_t x_size = mixprec_dtype_size(type), y_size = mixprec_dtype_size(y_type);
        const int wild = (int)below(2);
        const char *x = fill(x_memory, x_values, type, n, shift, drawn, wild);
        const char *y = fill(y_memory, y_values, y_type, n, shift, drawn + 1, wild);
        double whole[4], parts[4], want, combined = 0;
        size_t begin, end;
        memset(parts, 0, sizeof parts);
        CHECK(mixprec_reduce(whole, reduction, x, type, y, y_type, center, n, MIXPREC_ISA_AUTO) == MIXPREC_OK &&
                  mixprec_combine(&want, whole, blocks) == MIXPREC_OK,
              "trial %d: the whole", trial);
        for (begin = 0; begin < blocks; begin = end) {
            const size_t first = begin * 65536;
            mixprec_isa isa = all_isas[below(ISA_COUNT)];
            end = begin + 1 + below(blocks - begin);
            CHECK(mixprec_reduce(parts + begin, reduction, x + first * x_size, type, y + first * y_size, y_type, center,
                                 (end < blocks ? end * 65536 : n) - first,
                                 runs_here(isa) ? isa : MIXPREC_ISA_AUTO) == MIXPREC_OK,
                  "trial %d: blocks %zu to %zu", trial, begin, end);
        }
        CHECK(!memcmp(parts, whole, blocks * sizeof *parts), "trial %d: %s, %s, reduction %d, n %zu: parts differ",
              trial, mixprec_dtype_name(type), mixprec_dtype_name(y_type), (int)reduction, n);
        if (reduction == MIXPREC_DOT)
            mixprec_dot(&combined, x, type, y, y_type, n);
        else if (reduction == MIXPREC_SUM_ABS)
            mixprec_norm1(&combined, x, type, n);
        else if (reduction == MIXPREC_SUM)
            mixprec_sum(&combined, x, type, n);
        else if (center == 0)
            mixprec_sum_squares(&combined, x, type, n);
        else
            combined = want;
        CHECK(!memcmp(&combined, &want, sizeof want), "trial %d: %s, reduction %d, n %zu: one call %a, combined %a",
              trial, mixprec_dtype_name(type), (int)reduction, n, combined, want);
    }
}

#if HAVE_ENVIRONMENT
typedef struct reductions {
    double sum, dot, squares, norm1, norm2, mean, variance, combined, centered;
    float amax[2];
    int finite;
} reductions;

/* The calls that were refused. */
static int every_reduction(reductions *r, const void *x, mixprec_dtype type, size_t n) {
    static const double thirds[2] = {1.0 / 3, 1e9 / 3};
    static const mixprec_f16 signalling[40] = {{0x7C01}, {0xFC01}};
    int refused = 0;
    refused += MIXPREC_OK != mixprec_sum(&r->sum, x, type, n);
    refused += MIXPREC_OK != mixprec_dot(&r->dot, x, type, y_memory, MIXPREC_BF16, n);
    refused += MIXPREC_OK != mixprec_sum_squares(&r->squares, x, type, n);
    refused += MIXPREC_OK != mixprec_norm1(&r->norm1, x, type, n);
    refused += MIXPREC_OK != mixprec_norm2(&r->norm2, x, type, n);
    refused += MIXPREC_OK != mixprec_mean_variance(&r->mean, &r->variance, x, type, n);
    refused += MIXPREC_OK != mixprec_combine(&r->combined, thirds, 2);
    refused += MIXPREC_OK != mixprec_reduce(&r->centered, MIXPREC_SUM_SQUARES, x, type, NULL, MIXPREC_NONE, 1.0 / 3, n,
                                            MIXPREC_ISA_AUTO);
    refused += MIXPREC_OK != mixprec_amax(&r->amax[0], x, type, n);
    refused += MIXPREC_OK != mixprec_amax(&r->amax[1], signalling, MIXPREC_F16, 40);
    refused += MIXPREC_OK != mixprec_all_finite(&r->finite, x, type, n);
    return refused;
}

static void test_environment(void) {
    size_t e, i;
    for (e = 0; e < sizeof environments / sizeof *environments; e++)
        for (i = 0; i < DTYPE_COUNT; i++) {
            const void *x = fill(x_memory, x_values, tensor_dtypes[i], 333, 1, 3, (int)(i & 1));
            reductions want, got;
            int refused;
            environment before = get_environment(), after;
            fill(y_memory, y_values, MIXPREC_BF16, 333, 1, 3, 0);
            memset(&want, 0, sizeof want);
            memset(&got, 0, sizeof got);
            refused = every_reduction(&want, x, tensor_dtypes[i], 333);
            set_environment(environments[e]);
            refused += every_reduction(&got, x, tensor_dtypes[i], 333);
            after = get_environment();
            set_environment(before);
            CHECK(after == environments[e], "environment %llx is %llx afterwards", (unsigned long long)environments[e],
                  (unsigned long long)after);
            CHECK(!refused, "%d calls were refused", refused);
            CHECK(!memcmp(&want, &got, sizeof want), "environment %llx changes the bits",
                  (unsigned long long)environments[e]);
        }
}
#endif

static void test_statuses(void) {
    static const mixprec_dtype bad[] = {MIXPREC_NONE, MIXPREC_F64, MIXPREC_I8, MIXPREC_E4M3FNUZ, (mixprec_dtype)99};
    const size_t huge = SIZE_MAX / 8 + 1;
    union {
        float x[8];
        double partials[4];
    } u;
    double result = 42, result2 = 43;
    float amax = 42;
    int finite = 42;
    size_t i;
    memset(&u, 0, sizeof u);
#define REFUSED(call, status)                                                                                          \
    do {                                                                                                               \
        CHECK_STATUS(#call, call, status);                                                                             \
        CHECK(result == 42 && result2 == 43 && amax == 42 && finite == 42, "%s: wrote", #call);                        \
    } while (0)
    for (i = 0; i < 5; i++) {
        REFUSED(mixprec_sum(&result, u.x, bad[i], 8), MIXPREC_ERR_DTYPE);
        REFUSED(mixprec_dot(&result, u.x, MIXPREC_F32, u.x, bad[i], 8), MIXPREC_ERR_DTYPE);
        REFUSED(mixprec_dot(&result, u.x, bad[i], u.x, MIXPREC_F32, 8), MIXPREC_ERR_DTYPE);
        REFUSED(mixprec_sum_squares(&result, u.x, bad[i], 8), MIXPREC_ERR_DTYPE);
        REFUSED(mixprec_norm1(&result, u.x, bad[i], 8), MIXPREC_ERR_DTYPE);
        REFUSED(mixprec_norm2(&result, u.x, bad[i], 8), MIXPREC_ERR_DTYPE);
        REFUSED(mixprec_amax(&amax, u.x, bad[i], 8), MIXPREC_ERR_DTYPE);
        REFUSED(mixprec_all_finite(&finite, u.x, bad[i], 8), MIXPREC_ERR_DTYPE);
        REFUSED(mixprec_mean_variance(&result, &result2, u.x, bad[i], 8), MIXPREC_ERR_DTYPE);
        REFUSED(mixprec_reduce(&result, MIXPREC_SUM, u.x, bad[i], NULL, MIXPREC_NONE, 0, 8, MIXPREC_ISA_AUTO),
                MIXPREC_ERR_DTYPE);
    }
    REFUSED(mixprec_sum(&result, NULL, MIXPREC_F32, 8), MIXPREC_ERR_NULL);
    REFUSED(mixprec_sum(NULL, u.x, MIXPREC_F32, 8), MIXPREC_ERR_NULL);
    REFUSED(mixprec_norm2(NULL, u.x, MIXPREC_F32, 8), MIXPREC_ERR_NULL);
    REFUSED(mixprec_dot(&result, u.x, MIXPREC_F32, NULL, MIXPREC_F32, 8), MIXPREC_ERR_NULL);
    REFUSED(mixprec_amax(NULL, u.x, MIXPREC_F32, 8), MIXPREC_ERR_NULL);
    REFUSED(mixprec_amax(&amax, NULL, MIXPREC_F32, 8), MIXPREC_ERR_NULL);
    REFUSED(mixprec_all_finite(NULL, u.x, MIXPREC_F32, 8), MIXPREC_ERR_NULL);
    REFUSED(mixprec_mean_variance(&result, &result2, NULL, MIXPREC_F32, 8), MIXPREC_ERR_NULL);
    REFUSED(mixprec_combine(&result, NULL, 1), MIXPREC_ERR_NULL);
    REFUSED(mixprec_combine(NULL, &result2, 1), MIXPREC_ERR_NULL);
    REFUSED(mixprec_reduce(NULL, MIXPREC_SUM, u.x, MIXPREC_F32, NULL, MIXPREC_NONE, 0, 8, MIXPREC_ISA_AUTO),
            MIXPREC_ERR_NULL);
    REFUSED(mixprec_reduce(&result, MIXPREC_DOT, u.x, MIXPREC_F32, NULL, MIXPREC_F32, 0, 8, MIXPREC_ISA_AUTO),
            MIXPREC_ERR_NULL);
    REFUSED(mixprec_sum(&result, u.x, MIXPREC_F32, huge), MIXPREC_ERR_SIZE);
    REFUSED(mixprec_amax(&amax, u.x, MIXPREC_E4M3, huge), MIXPREC_ERR_SIZE);
    REFUSED(mixprec_mean_variance(&result, &result2, u.x, MIXPREC_F32, huge), MIXPREC_ERR_SIZE);
    REFUSED(mixprec_reduce(&result, (mixprec_reduction)4, u.x, MIXPREC_F32, u.x, MIXPREC_F32, 0, 8, MIXPREC_ISA_AUTO),
            MIXPREC_ERR_REDUCTION);
    REFUSED(mixprec_reduce(&result, MIXPREC_SUM, u.x, MIXPREC_F32, NULL, MIXPREC_NONE, 0, 8, (mixprec_isa)77),
            MIXPREC_ERR_ISA);
    REFUSED(mixprec_amax_ex(&amax, u.x, MIXPREC_F32, 8, (mixprec_isa)77), MIXPREC_ERR_ISA);
    REFUSED(mixprec_reduce(u.partials, MIXPREC_SUM, u.x + 1, MIXPREC_F32, NULL, MIXPREC_NONE, 0, 4, MIXPREC_ISA_AUTO),
            MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_reduce(u.partials, MIXPREC_DOT, x_memory, MIXPREC_F32, u.x, MIXPREC_F32, 0, 4, MIXPREC_ISA_AUTO),
            MIXPREC_ERR_OVERLAP);
    CHECK(mixprec_sum(&result, NULL, MIXPREC_F32, 0) == MIXPREC_OK && result == 0, "n 0");
    CHECK(mixprec_reduce(NULL, MIXPREC_SUM, NULL, MIXPREC_F32, NULL, MIXPREC_NONE, 0, 0, MIXPREC_ISA_AUTO) ==
              MIXPREC_OK,
          "n 0");
    CHECK(mixprec_combine(&result, NULL, 0) == MIXPREC_OK && result == 0, "no partials");
    CHECK(mixprec_amax(&amax, NULL, MIXPREC_F16, 0) == MIXPREC_OK && amax == 0, "n 0");
}

/* What takes one array, as functions of one kind. */
typedef mixprec_status vector_call(void *result, const void *x, mixprec_dtype type, size_t n);
static const float eight[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static mixprec_status call_sum(void *result, const void *x, mixprec_dtype type, size_t n) {
    return mixprec_sum((double *)result, x, type, n);
}
static mixprec_status call_sum_squares(void *result, const void *x, mixprec_dtype type, size_t n) {
    return mixprec_sum_squares((double *)result, x, type, n);
}
static mixprec_status call_norm1(void *result, const void *x, mixprec_dtype type, size_t n) {
    return mixprec_norm1((double *)result, x, type, n);
}
static mixprec_status call_norm2(void *result, const void *x, mixprec_dtype type, size_t n) {
    return mixprec_norm2((double *)result, x, type, n);
}
static mixprec_status call_dot_left(void *result, const void *x, mixprec_dtype type, size_t n) {
    return mixprec_dot((double *)result, x, type, eight, MIXPREC_F32, n);
}
static mixprec_status call_dot_right(void *result, const void *x, mixprec_dtype type, size_t n) {
    return mixprec_dot((double *)result, eight, MIXPREC_F32, x, type, n);
}
static mixprec_status call_amax(void *result, const void *x, mixprec_dtype type, size_t n) {
    return mixprec_amax((float *)result, x, type, n);
}
static mixprec_status call_amax_ex(void *result, const void *x, mixprec_dtype type, size_t n) {
    return mixprec_amax_ex((float *)result, x, type, n, MIXPREC_ISA_C);
}
static mixprec_status call_all_finite(void *result, const void *x, mixprec_dtype type, size_t n) {
    return mixprec_all_finite((int *)result, x, type, n);
}
static mixprec_status call_mean(void *result, const void *x, mixprec_dtype type, size_t n) {
    return mixprec_mean_variance((double *)result, NULL, x, type, n);
}
static mixprec_status call_variance(void *result, const void *x, mixprec_dtype type, size_t n) {
    return mixprec_mean_variance(NULL, (double *)result, x, type, n);
}
static mixprec_status call_reduce(void *result, const void *x, mixprec_dtype type, size_t n) {
    return mixprec_reduce((double *)result, MIXPREC_SUM_SQUARES, x, type, NULL, MIXPREC_NONE, 1, n, MIXPREC_ISA_AUTO);
}
static mixprec_status call_reduce_left(void *result, const void *x, mixprec_dtype type, size_t n) {
    return mixprec_reduce((double *)result, MIXPREC_DOT, x, type, eight, MIXPREC_F32, 0, n, MIXPREC_ISA_AUTO);
}
static mixprec_status call_reduce_right(void *result, const void *x, mixprec_dtype type, size_t n) {
    return mixprec_reduce((double *)result, MIXPREC_DOT, eight, MIXPREC_F32, x, type, 0, n, MIXPREC_ISA_AUTO);
}

/* Every function, every dtype, every bad argument. Its result stays as it was. */
static void test_every_status(void) {
    static const struct {
        const char *name;
        vector_call *call;
        int may_be_null; /* the result */
        double of_eight; /* of eight */
    } rows[] = {{"sum", call_sum, 0, 36},
                {"sum_squares", call_sum_squares, 0, 204},
                {"norm1", call_norm1, 0, 36},
                {"norm2", call_norm2, 0, 0x1.c90d29d2d43cep+3},
                {"dot, x", call_dot_left, 0, 204},
                {"dot, y", call_dot_right, 0, 204},
                {"amax", call_amax, 0, 8},
                {"amax_ex", call_amax_ex, 0, 8},
                {"all_finite", call_all_finite, 0, 1},
                {"mean", call_mean, 1, 4.5},
                {"variance", call_variance, 1, 5.25},
                {"reduce", call_reduce, 0, 140},
                {"reduce, x", call_reduce_left, 0, 204},
                {"reduce, y", call_reduce_right, 0, 204}};
    size_t r;
    int type;
    for (r = 0; r < sizeof rows / sizeof *rows; r++) {
        union {
            double wide;
            float narrow;
            int whole;
        } result, before;
        memset(&before, 0x5A, sizeof before);
        result = before;
#define ROW(result, x, type, n, status)                                                                                \
    do {                                                                                                               \
        mixprec_status got = rows[r].call(result, x, type, n);                                                         \
        CHECK(got == (status), "%s, dtype %d: got %d, want %d, line %d", rows[r].name, (int)(type), (int)got,          \
              (int)(status), __LINE__);                                                                                \
    } while (0)
        for (type = -1; type <= MIXPREC_DTYPE_COUNT; type++) {
            const mixprec_dtype dtype = (mixprec_dtype)type;
            const int good = type == MIXPREC_F32 || type == MIXPREC_F16 || type == MIXPREC_BF16 ||
                             type == MIXPREC_E4M3 || type == MIXPREC_E5M2;
            ROW(&result, NULL, dtype, 8, good ? MIXPREC_ERR_NULL : MIXPREC_ERR_DTYPE);
            if (!good) {
                ROW(&result, eight, dtype, 8, MIXPREC_ERR_DTYPE);
                ROW(&result, NULL, dtype, 0, MIXPREC_ERR_DTYPE);
                continue;
            }
            ROW(&result, eight, dtype, SIZE_MAX / 8 + 1, MIXPREC_ERR_SIZE);
            ROW(&result, eight, dtype, SIZE_MAX, MIXPREC_ERR_SIZE);
            if (!rows[r].may_be_null)
                ROW(NULL, eight, dtype, 8, MIXPREC_ERR_NULL);
        }
        CHECK(!memcmp(&result, &before, sizeof result), "%s: the result was written", rows[r].name);
        ROW(&result, eight, MIXPREC_F32, 8, MIXPREC_OK);
#undef ROW
        CHECK((rows[r].call == call_all_finite                             ? (double)result.whole
               : rows[r].call == call_amax || rows[r].call == call_amax_ex ? (double)result.narrow
                                                                           : result.wide) == rows[r].of_eight,
              "%s of 1 .. 8", rows[r].name);
    }
    CHECK(mixprec_mean_variance(NULL, NULL, eight, MIXPREC_F32, 8) == MIXPREC_OK, "neither mean nor variance");
}

/* Partials that touch x or y, and such as have one byte in them. */
static void test_overlap(void) {
    static double memory[8], many[65536 / 8 + 4];
    unsigned char *partials = (unsigned char *)(memory + 4);
    const unsigned char *x = (const unsigned char *)many;
    double before[8];
    int side, r;
    size_t i;
    for (i = 0; i < 8; i++)
        memory[i] = 1;
    memcpy(before, memory, sizeof before);
    for (r = 0; r < 4; r++)
        for (side = 0; side < 4; side++) { /* x touches them from below, reaches into them, begins in them, touches */
            const unsigned char *near_by = partials + (side == 0 ? -16 : side == 1 ? -15 : side == 2 ? 7 : 8);
            const mixprec_status want = side % 3 ? MIXPREC_ERR_OVERLAP : MIXPREC_OK;
            const mixprec_reduction reduction = (mixprec_reduction)r;
            mixprec_status got;
            memcpy(memory, before, sizeof before);
            got =
                mixprec_reduce(memory + 4, reduction, near_by, MIXPREC_E4M3, x, MIXPREC_E4M3, 0, 16, MIXPREC_ISA_AUTO);
            CHECK(got == want, "reduction %d, x, side %d: got %d", r, side, (int)got);
            CHECK(want == MIXPREC_OK || !memcmp(memory, before, sizeof before), "refused, but written");
            memcpy(memory, before, sizeof before);
            got =
                mixprec_reduce(memory + 4, reduction, x, MIXPREC_E4M3, near_by, MIXPREC_E4M3, 0, 16, MIXPREC_ISA_AUTO);
            CHECK(got == (reduction == MIXPREC_DOT ? want : MIXPREC_OK), "reduction %d, y, side %d: got %d", r, side,
                  (int)got);
        }
    /* the second partial of two */
    CHECK(mixprec_reduce(many, MIXPREC_SUM, x + 8, MIXPREC_E4M3, NULL, MIXPREC_NONE, 0, 65537, MIXPREC_ISA_AUTO) ==
              MIXPREC_ERR_OVERLAP,
          "x begins in the second partial");
    CHECK(mixprec_reduce(many, MIXPREC_SUM, x + 16, MIXPREC_E4M3, NULL, MIXPREC_NONE, 0, 65537, MIXPREC_ISA_AUTO) ==
              MIXPREC_OK,
          "x begins behind the second partial");
    for (i = 0; i < ISA_COUNT; i++)
        if (!runs_here(all_isas[i])) {
            float amax = 42;
            memcpy(memory, before, sizeof before);
            CHECK(mixprec_amax_ex(&amax, x, MIXPREC_F16, 8, all_isas[i]) == MIXPREC_ERR_ISA && amax == 42, "amax_ex");
            CHECK(mixprec_reduce(memory, MIXPREC_SUM, x, MIXPREC_F16, NULL, MIXPREC_NONE, 0, 8, all_isas[i]) ==
                          MIXPREC_ERR_ISA &&
                      !memcmp(memory, before, sizeof before),
                  "reduce");
        }
}

int main(int argc, char **argv) {
    test_init(argc, argv);
#define TEST(name, function)                                                                                           \
    if (test_begin(name)) {                                                                                            \
        function();                                                                                                    \
        test_end();                                                                                                    \
    }
    TEST("reduce: known results", test_known)
    TEST("reduce: the documented order on every path", test_order)
    TEST("reduce: sums, norms, dot products and their error", test_calls)
    TEST("reduce: the largest magnitude, NaN and Inf", test_amax)
    TEST("reduce: mean and variance", test_mean_variance)
    TEST("reduce: parts of an array give the bits of the whole", test_split)
    TEST("reduce: random parts of random arrays do", test_random_splits)
#if HAVE_ENVIRONMENT
    TEST("reduce: the caller's floating-point environment does not matter", test_environment)
#endif
    TEST("reduce: statuses, and outputs untouched", test_statuses)
    TEST("reduce: every status of every function", test_every_status)
    TEST("reduce: partials that touch or overlap what is summed", test_overlap)
    return test_summary();
}
