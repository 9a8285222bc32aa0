/* GEMM's order of summation as its contract states it, as scalar loops: fused or not, over chunks that are summed from
   zero. The operands are given as the accumulator sees them. */
#ifndef MIXPREC_TEST_DOT_H
#define MIXPREC_TEST_DOT_H

#include "test.h"

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

DOT_TARGET_ static TEST_UNUSED_ float dot_f32(const double *x, const double *y, size_t k, int fused) {
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

DOT_TARGET_ static TEST_UNUSED_ double dot_f64(const double *x, const double *y, size_t k, int fused) {
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
