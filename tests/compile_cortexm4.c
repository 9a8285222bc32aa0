/* The same program for a microcontroller and for this machine: prints a hash of conversions between all formats and
   one of matrix products. Both must print the same two lines (make check-targets runs it on an emulated Cortex-M4).

       cc -O2 -o cortexm4 tests/compile_cortexm4.c && ./cortexm4 */
#define MIXPREC_IMPLEMENTATION
#define MIXPREC_NO_STDLIB
#include "../mixprec.h"

#include <stdio.h>
#include <string.h>

static uint64_t hash;

static void hash_bytes(const void *data, size_t size) { /* FNV-1a */
    const unsigned char *bytes = (const unsigned char *)data;
    while (size--)
        hash = (hash ^ *bytes++) * 0x100000001B3u;
}

/* Every exponent, and mantissas on and beside the ties of every format; NaN and Inf too. */
static void fill_floats(float *x, uint32_t first, size_t n) {
    size_t i;
    for (i = 0; i < n; i++) {
        uint32_t bits = mixprec_random_bits(1, first + i);
        if (bits & 1)
            bits = (bits & 0xFFFF0000u) + (bits >> 1 & 1) * 0x8000u + (bits >> 2 & 3) - 1u;
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
        for (d = 0; d < 4; d++)
            for (round = 0; round <= (int)MIXPREC_ROUND_STOCHASTIC; round++)
                for (overflow = 0; overflow <= (int)MIXPREC_OVERFLOW_SATURATE_KEEP_INF; overflow++) {
                    options.round = (mixprec_round)round;
                    options.overflow = (mixprec_overflow)overflow;
                    status |= mixprec_convert_ex(narrow, dtypes[d], source, MIXPREC_F32, 256, &options);
                    hash_bytes(narrow, 256 * mixprec_dtype_size(dtypes[d]));
                    status |= mixprec_convert(back, MIXPREC_F32, narrow, dtypes[d], 256);
                    hash_bytes(back, sizeof back);
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
        hash_bytes(c, sizeof c);
    }
    printf("products %08lx%08lx status %d\n", (unsigned long)(hash >> 32), (unsigned long)(hash & 0xFFFFFFFFu),
           (int)status);
    return status != MIXPREC_OK;
}
