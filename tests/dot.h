/* GEMM's order of summation as its contract states it, as scalar loops: fused or not, over chunks that are summed from
   zero; and that of AMX-BF16. The operands are given as the accumulator sees them. */
#ifndef MIXPREC_TEST_DOT_H
#define MIXPREC_TEST_DOT_H

#include "test.h"

#include <float.h>
#include <math.h>

#define CHUNK 512 /* as documented; not the library's macro, which is under test too */

#if defined(__MINGW32__) /* its fma and fmaf round twice: it takes those of the CPU, which AVX2 needs anyway */
#include <immintrin.h>
#define DOT_TARGET_ __attribute__((target("fma")))
#define DOT_FMA_F32_(x, y, sum) _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(x), _mm_set_ss(y), _mm_set_ss(sum)))
#define DOT_FMA_F64_(x, y, sum) _mm_cvtsd_f64(_mm_fmadd_sd(_mm_set_sd(x), _mm_set_sd(y), _mm_set_sd(sum)))
#else
#define DOT_TARGET_
#define DOT_FMA_F32_(x, y, sum) fmaf(x, y, sum)
#define DOT_FMA_F64_(x, y, sum) fma(x, y, sum)
#endif

DOT_TARGET_ static float dot_f32(const double *x, const double *y, size_t k, int fused) {
    float total = 0;
    size_t from, i;
    for (from = 0; from < k; from += CHUNK) {
        float sum = 0;
        for (i = from; i < k && i < from + CHUNK; i++) {
            if (fused)
                sum = DOT_FMA_F32_((float)x[i], (float)y[i], sum);
            else {
                volatile float product = (float)x[i] * (float)y[i]; /* volatile: no contraction */
                sum = sum + product;
            }
        }
        total = from ? total + sum : sum;
    }
    return total;
}

/* Every 32 of k of a chunk are summed from zero, the even ones and the odd ones by themselves, the two sums added, and
   that to the chunk's. What is subnormal, of operands and results, counts as 0. (Intel's Software Developer's Manual,
   volume 2, TDPBF16PS.) */
static float dot_flushed(float x) {
    return fabsf(x) < FLT_MIN ? copysignf(0, x) : x;
}
DOT_TARGET_ static float dot_tiles(const double *x, const double *y, size_t k) {
    float total = 0;
    size_t from, i, j;
    for (from = 0; from < k; from += CHUNK) {
        float sum = 0;
        for (i = from; i < k && i < from + CHUNK; i += 32) {
            float even_odd[2] = {0, 0};
            for (j = i; j < k && j < i + 32; j++)
                even_odd[j % 2] =
                    dot_flushed(DOT_FMA_F32_(dot_flushed((float)x[j]), dot_flushed((float)y[j]), even_odd[j % 2]));
            sum = dot_flushed(sum + dot_flushed(even_odd[0] + even_odd[1]));
        }
        total = from ? total + sum : sum;
    }
    return total;
}

static int by_tiles; /* AMX-BF16's sums are expected, and .native set in test_gemm_ex.c */
static float expected_dot(const double *x, const double *y, size_t k, int fused) {
    return by_tiles ? dot_tiles(x, y, k) : dot_f32(x, y, k, fused);
}

DOT_TARGET_ static double dot_f64(const double *x, const double *y, size_t k, int fused) {
    double total = 0;
    size_t from, i;
    for (from = 0; from < k; from += CHUNK) {
        double sum = 0;
        for (i = from; i < k && i < from + CHUNK; i++) {
            if (fused)
                sum = DOT_FMA_F64_(x[i], y[i], sum);
            else {
                volatile double product = x[i] * y[i];
                sum = sum + product;
            }
        }
        total = from ? total + sum : sum;
    }
    return total;
}

#endif
