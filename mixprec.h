/* mixprec.h - mixed-precision arithmetic for C - version 0.1.0 - MIT-0 OR Unlicense, your choice (text at the end)

   Quick start. In ONE C or C++ file of the project, put the implementation:

       #define MIXPREC_IMPLEMENTATION
       #include "mixprec.h"

   Everywhere else just include the header. Then, with no compiler flag and nothing to link:

       mixprec_f16 half = mixprec_f32_to_f16(0.1f);                      one number, inlined
       mixprec_convert(dst, MIXPREC_E4M3, src, MIXPREC_F32, n);          an array, at memory speed
       mixprec_gemm(MIXPREC_NO_TRANS, MIXPREC_NO_TRANS, m, n, k,         C = A B, FP32 accumulation
                    1.0f, a, MIXPREC_F16, k, b, MIXPREC_F16, n, 0.0f, c, MIXPREC_F32, n);
       mixprec_scaler s;  mixprec_scaler_init(&s);                       loss scaling, per step:
       loss = mixprec_scaler_scale(&s, loss);                              backward pass follows
       mixprec_scaler_unscale(&s, grad32, grad16, MIXPREC_F16, n);         once per gradient tensor
       if (mixprec_scaler_update(&s)) optimizer_step();                    0 means: skip this step

   What is guaranteed
     - Conversions are correctly rounded for every input, format, rounding mode and overflow policy: doubles are rounded
       once; subnormals, -0 and NaN are kept where the format has them. The bits do not depend on the CPU, the compiler,
       its options (-ffast-math included), or the caller's floating-point environment (rounding mode, FTZ, DAZ, traps).
       With tcc, and on CPUs other than x86 and AArch64, that environment does act on GEMM, unscaling and .scale.
     - GEMM accumulates in fp32 in one documented order. For f16, bf16, e4m3 and e5m2 operands the result has the same
       bits on every instruction set, for any batch size, leading dimension, blocking and split over threads.
     - No thread, no global state, no printing, no abort, no errno. The floating-point flags and modes of the caller
       come back as they were. A call that returns an error has not written to its outputs.

   What it is not: a tensor library, a thread pool, or a source of integer-quantised kernels. GEMM reads row-major
   matrices.

   Contents (search for the tag in square brackets)
     [TOP]        this page
     [CONFIG]     macros to set before the include
     [TYPES]      formats, enumerations, status codes, structures
     [SCALAR]     one number at a time, inline, integer-only
     [API]        the functions and their contracts; stop reading there if you only use the library
     [PLATFORM]   compiler attributes, memory, the floating-point environment
     [CPU]        which instruction set this machine has
     [VEC-C]      kernels in portable C
     [VEC-AVX2]   kernels for AVX2 + F16C + FMA
     [VEC-AVX512] kernels for AVX-512 F/BW/DQ/VL
     [VEC-NEON]   kernels for AArch64
     [CONVERT]    arrays from any type to any type
     [GEMM]       matrix multiplication
     [SCALER]     the loss scaler
     [DISPATCH]   one table of kernels for each instruction set
     [PUBLIC]     argument checks and entry points
     [HISTORY]    changes and the licence text
*/

#ifndef MIXPREC_H
#define MIXPREC_H

#define MIXPREC_VERSION_MAJOR 0
#define MIXPREC_VERSION_MINOR 1
#define MIXPREC_VERSION_PATCH 0

#include <stddef.h>
#include <stdint.h>

/* ================================================================================================================== */
/* [CONFIG] Macros to set before the include                                                                          */
/* ================================================================================================================== */

/* MIXPREC_IMPLEMENTATION   Define in exactly one file: the functions of [API] are compiled there.
   MIXPREC_STATIC           With MIXPREC_IMPLEMENTATION: every function is static, so several files may each have them.
   MIXPREC_NO_SIMD          Portable C only. Leaves out [VEC-AVX2], [VEC-AVX512], [VEC-NEON] and CPU detection.
   MIXPREC_MAX_ISA          The most that may be compiled in on x86-64: 1 portable C, 2 AVX2, 3 AVX-512 (the default).
   MIXPREC_NO_STDLIB        Include no libc header but stdint.h and stddef.h, and never call malloc. GEMM then works in
                            the workspace it is given, or, more slowly and in portable C, in about 4 KB of stack.
   MIXPREC_NO_CONVERT       Leaves out mixprec_convert, mixprec_convert_ex, mixprec_stats.
   MIXPREC_NO_GEMM          Leaves out mixprec_gemm, mixprec_gemm_ex, mixprec_gemm_workspace.
   MIXPREC_NO_SCALER        Leaves out the mixprec_scaler_ functions.
   MIXPREC_MALLOC(bytes), MIXPREC_FREE(pointer)
                            The allocator for GEMM's workspace: both or neither. Default: malloc and free.
   MIXPREC_GEMM_STACK       Bytes of stack that GEMM may use for small products before it asks the allocator. 32768.
   MIXPREC_ASSERT(x)        Checks of the library's own invariants. Default: nothing. */

#if defined(MIXPREC_MALLOC) != defined(MIXPREC_FREE)
#error "mixprec: define both MIXPREC_MALLOC and MIXPREC_FREE, or neither"
#endif
#ifndef MIXPREC_MAX_ISA
#define MIXPREC_MAX_ISA 3
#endif
#ifndef MIXPREC_GEMM_STACK
#define MIXPREC_GEMM_STACK 32768
#endif
#ifndef MIXPREC_ASSERT
#define MIXPREC_ASSERT(x) ((void)0)
#endif

#ifdef MIXPREC_STATIC
#if defined(__GNUC__) && !defined(__TINYC__)
#define MIXPREC_API static __attribute__((unused))
#else
#define MIXPREC_API static
#endif
#elif defined(__cplusplus)
#define MIXPREC_API extern "C"
#else
#define MIXPREC_API extern
#endif

/* The number of products that GEMM sums before it adds the sum to the total: part of the definition of the result, so
   it is no option. An earlier prototype's AVX-512 kernel on Skylake-SP ran 148.5 GFLOP/s with 512 and 149 with 1024;
   512 keeps the panel of B of an AVX2 kernel in L1. */
#define MIXPREC_GEMM_KBLOCK 512

/* ================================================================================================================== */
/* [TYPES] Formats, enumerations, status codes, structures                                                            */
/* ================================================================================================================== */

/* Storage types: the bits, nothing else. Four distinct structures, so that the compiler refuses to mix formats and
   never promotes one to an integer. Layout-compatible with __half, __nv_bfloat16, __nv_fp8_e4m3, __nv_fp8_e5m2,
   _Float16. */
typedef struct mixprec_f16 {
    uint16_t bits; /* IEEE 754 binary16: 1 sign, 5 exponent, 10 mantissa bits */
} mixprec_f16;
typedef struct mixprec_bf16 {
    uint16_t bits; /* bfloat16: the upper half of a binary32: 1, 8, 7 */
} mixprec_bf16;
typedef struct mixprec_e4m3 {
    uint8_t bits; /* OCP OFP8 revision 1.0, E4M3: 1, 4, 3; no Inf; NaN is 0x7F and 0xFF; max 448 */
} mixprec_e4m3;
typedef struct mixprec_e5m2 {
    uint8_t bits; /* OCP OFP8 revision 1.0, E5M2: 1, 5, 2; Inf and NaN as in IEEE 754; max 57344 */
} mixprec_e5m2;

/* More storage formats, for conversion. FNUZ: Noune et al., arXiv:2206.02915, and AMD CDNA 3. MX: OCP Microscaling
   Formats (MX) specification 1.0. */
typedef struct mixprec_e4m3fnuz {
    uint8_t bits; /* FNUZ: 1, 4, 3, bias 8; no Inf, no -0; NaN is 0x80; max 240 */
} mixprec_e4m3fnuz;
typedef struct mixprec_e5m2fnuz {
    uint8_t bits; /* FNUZ: 1, 5, 2, bias 16; no Inf, no -0; NaN is 0x80; max 57344 */
} mixprec_e5m2fnuz;
typedef struct mixprec_e4m3ieee {
    uint8_t bits; /* 1, 4, 3, bias 7 with Inf and NaN as in IEEE 754; max 240: ml_dtypes' float8_e4m3 */
} mixprec_e4m3ieee;
typedef struct mixprec_e3m4 {
    uint8_t bits; /* 1, 3, 4, bias 3 with Inf and NaN as in IEEE 754; max 15.5: ml_dtypes' float8_e3m4 */
} mixprec_e3m4;
typedef struct mixprec_e2m3 {
    uint8_t bits; /* MX fp6: 1, 2, 3 in the low six bits, the others 0, ignored when read; no Inf, no NaN; max 7.5 */
} mixprec_e2m3;
typedef struct mixprec_e3m2 {
    uint8_t bits; /* MX fp6: 1, 3, 2 likewise; no Inf, no NaN; max 28 */
} mixprec_e3m2;
typedef struct mixprec_e2m1 {
    uint8_t bits; /* MX fp4: 1, 2, 1 in the low four bits; no Inf, no NaN; max 6. In arrays two to a byte */
} mixprec_e2m1;
typedef struct mixprec_e8m0 {
    uint8_t bits; /* MX scale: 2^(bits - 127), unsigned, no zero; NaN is 0xFF */
} mixprec_e8m0;
typedef struct mixprec_i8 {
    int8_t bits; /* an integer from -128 to 127 */
} mixprec_i8;

/* The format table: everything about a binary floating-point format follows from one row. X(name, enumerator, bits,
   mantissa bits, exponent bias, largest finite code, code of an overflow in the IEEE policy, code of NaN, what is
   special) */
#define MIXPREC_FORMATS_(X)                                                                                            \
    X(f32, MIXPREC_F32, 32, 23, 127, 0x7F7FFFFFu, 0x7F800000u, 0x7FC00000u, MIXPREC_IEEE_)                             \
    MIXPREC_NARROW_FORMATS_(X)
#define MIXPREC_NARROW_FORMATS_(X)                                                                                     \
    X(f16, MIXPREC_F16, 16, 10, 15, 0x7BFFu, 0x7C00u, 0x7E00u, MIXPREC_IEEE_)                                          \
    X(bf16, MIXPREC_BF16, 16, 7, 127, 0x7F7Fu, 0x7F80u, 0x7FC0u, MIXPREC_IEEE_)                                        \
    X(e4m3, MIXPREC_E4M3, 8, 3, 7, 0x7Eu, 0x7Fu, 0x7Fu, MIXPREC_NO_INF_)                                               \
    X(e5m2, MIXPREC_E5M2, 8, 2, 15, 0x7Bu, 0x7Cu, 0x7Eu, MIXPREC_IEEE_)                                                \
    MIXPREC_MORE_FORMATS_(X)
/* Those that only conversion knows. */
#define MIXPREC_MORE_FORMATS_(X)                                                                                       \
    X(e4m3fnuz, MIXPREC_E4M3FNUZ, 8, 3, 8, 0x7Fu, 0x80u, 0x80u, MIXPREC_FNUZ_)                                         \
    X(e5m2fnuz, MIXPREC_E5M2FNUZ, 8, 2, 16, 0x7Fu, 0x80u, 0x80u, MIXPREC_FNUZ_)                                        \
    X(e4m3ieee, MIXPREC_E4M3IEEE, 8, 3, 7, 0x77u, 0x78u, 0x7Cu, MIXPREC_IEEE_)                                         \
    X(e3m4, MIXPREC_E3M4, 8, 4, 3, 0x6Fu, 0x70u, 0x78u, MIXPREC_IEEE_)                                                 \
    X(e2m3, MIXPREC_E2M3, 6, 3, 1, 0x1Fu, 0x1Fu, 0x1Fu, MIXPREC_FINITE_)                                               \
    X(e3m2, MIXPREC_E3M2, 6, 2, 3, 0x1Fu, 0x1Fu, 0x1Fu, MIXPREC_FINITE_)                                               \
    X(e2m1, MIXPREC_E2M1, 4, 1, 1, 0x7u, 0x7u, 0x7u, MIXPREC_FINITE_)

/* The limits as constants, named as in float.h: the largest finite number, the smallest normal and the smallest
   positive one, the distance from 1 to the next, the bits of the significand with its leading one. mixprec_format gives
   them as data. */
#define MIXPREC_F16_MAX 65504.0f
#define MIXPREC_F16_MIN 6.103515625e-05f
#define MIXPREC_F16_TRUE_MIN 5.9604644775390625e-08f
#define MIXPREC_F16_EPSILON 9.765625e-04f
#define MIXPREC_F16_MANT_DIG 11
#define MIXPREC_BF16_MAX 3.3895313892515355e+38f
#define MIXPREC_BF16_MIN 1.1754943508222875e-38f
#define MIXPREC_BF16_TRUE_MIN 9.183549615799121e-41f
#define MIXPREC_BF16_EPSILON 7.8125e-03f
#define MIXPREC_BF16_MANT_DIG 8
#define MIXPREC_E4M3_MAX 448.0f
#define MIXPREC_E4M3_MIN 1.5625e-02f
#define MIXPREC_E4M3_TRUE_MIN 1.953125e-03f
#define MIXPREC_E4M3_EPSILON 0.125f
#define MIXPREC_E4M3_MANT_DIG 4
#define MIXPREC_E5M2_MAX 57344.0f
#define MIXPREC_E5M2_MIN 6.103515625e-05f
#define MIXPREC_E5M2_TRUE_MIN 1.52587890625e-05f
#define MIXPREC_E5M2_EPSILON 0.25f
#define MIXPREC_E5M2_MANT_DIG 3
#define MIXPREC_E4M3FNUZ_MAX 240.0f
#define MIXPREC_E4M3FNUZ_MIN 7.8125e-03f
#define MIXPREC_E4M3FNUZ_TRUE_MIN 9.765625e-04f
#define MIXPREC_E4M3FNUZ_EPSILON 0.125f
#define MIXPREC_E4M3FNUZ_MANT_DIG 4
#define MIXPREC_E5M2FNUZ_MAX 57344.0f
#define MIXPREC_E5M2FNUZ_MIN 3.0517578125e-05f
#define MIXPREC_E5M2FNUZ_TRUE_MIN 7.62939453125e-06f
#define MIXPREC_E5M2FNUZ_EPSILON 0.25f
#define MIXPREC_E5M2FNUZ_MANT_DIG 3
#define MIXPREC_E4M3IEEE_MAX 240.0f
#define MIXPREC_E4M3IEEE_MIN 1.5625e-02f
#define MIXPREC_E4M3IEEE_TRUE_MIN 1.953125e-03f
#define MIXPREC_E4M3IEEE_EPSILON 0.125f
#define MIXPREC_E4M3IEEE_MANT_DIG 4
#define MIXPREC_E3M4_MAX 15.5f
#define MIXPREC_E3M4_MIN 0.25f
#define MIXPREC_E3M4_TRUE_MIN 1.5625e-02f
#define MIXPREC_E3M4_EPSILON 0.0625f
#define MIXPREC_E3M4_MANT_DIG 5
#define MIXPREC_E2M3_MAX 7.5f
#define MIXPREC_E2M3_MIN 1.0f
#define MIXPREC_E2M3_TRUE_MIN 0.125f
#define MIXPREC_E2M3_EPSILON 0.125f
#define MIXPREC_E2M3_MANT_DIG 4
#define MIXPREC_E3M2_MAX 28.0f
#define MIXPREC_E3M2_MIN 0.25f
#define MIXPREC_E3M2_TRUE_MIN 0.0625f
#define MIXPREC_E3M2_EPSILON 0.25f
#define MIXPREC_E3M2_MANT_DIG 3
#define MIXPREC_E2M1_MAX 6.0f
#define MIXPREC_E2M1_MIN 1.0f
#define MIXPREC_E2M1_TRUE_MIN 0.5f
#define MIXPREC_E2M1_EPSILON 0.5f
#define MIXPREC_E2M1_MANT_DIG 2
#define MIXPREC_E8M0_MAX 1.7014118346046923e+38f
#define MIXPREC_E8M0_MIN 5.877471754111438e-39f
#define MIXPREC_E8M0_TRUE_MIN 5.877471754111438e-39f
#define MIXPREC_E8M0_EPSILON 1.0f
#define MIXPREC_E8M0_MANT_DIG 1

typedef enum mixprec_dtype {
    MIXPREC_NONE = 0,
    MIXPREC_F32,
    MIXPREC_F64,
    MIXPREC_F16,
    MIXPREC_BF16,
    MIXPREC_E4M3,
    MIXPREC_E5M2,
    /* For conversion only: GEMM and the scaler answer MIXPREC_ERR_DTYPE. */
    MIXPREC_E4M3FNUZ,
    MIXPREC_E5M2FNUZ,
    MIXPREC_E4M3IEEE,
    MIXPREC_E3M4,
    MIXPREC_E2M3,
    MIXPREC_E3M2,
    /* In arrays element i is in byte i / 2, in its low four bits when i is even, in the high four when it is odd. After
       an odd number of elements the last high four bits are written as 0, unless the array is copied as it is. */
    MIXPREC_E2M1,
    MIXPREC_E8M0,
    MIXPREC_I8
} mixprec_dtype;
#define MIXPREC_DTYPE_COUNT 16 /* dtypes are 1 .. MIXPREC_DTYPE_COUNT - 1 */

typedef enum mixprec_round {
    MIXPREC_ROUND_NEAREST_EVEN = 0,
    MIXPREC_ROUND_TOWARD_ZERO,
    MIXPREC_ROUND_UP,           /* toward +Inf */
    MIXPREC_ROUND_DOWN,         /* toward -Inf */
    MIXPREC_ROUND_NEAREST_AWAY, /* ties away from zero */
    MIXPREC_ROUND_STOCHASTIC    /* up with the probability of the discarded fraction: see mixprec_encode */
} mixprec_round;

/* What becomes of a value that is too large after rounding, and of Inf. NaN stays NaN always. */
typedef enum mixprec_overflow {
    /* Inf; NaN where there is no Inf (E4M3, FNUZ, E8M0), +-max where there is neither (fp6, fp4, int8); to +-max where
       IEEE 754 says so for a directed mode */
    MIXPREC_OVERFLOW_IEEE = 0,
    MIXPREC_OVERFLOW_SATURATE,         /* +-max, for Inf too: CUDA's __NV_SATFINITE */
    MIXPREC_OVERFLOW_SATURATE_KEEP_INF /* +-max for finite values; Inf as in the IEEE policy: ml_dtypes' saturation */
} mixprec_overflow;

typedef enum mixprec_transpose { MIXPREC_NO_TRANS = 0, MIXPREC_TRANS } mixprec_transpose;

typedef enum mixprec_isa {
    MIXPREC_ISA_AUTO = 0, /* the best one that this CPU and operating system can run */
    MIXPREC_ISA_C,
    MIXPREC_ISA_AVX2,   /* AVX2, F16C, FMA */
    MIXPREC_ISA_AVX512, /* the former and AVX-512 F, BW, DQ, VL */
    MIXPREC_ISA_NEON    /* AArch64 */
} mixprec_isa;

/* X(enumerator, text of mixprec_status_string) */
#define MIXPREC_STATUSES_(X)                                                                                           \
    X(MIXPREC_OK, "success")                                                                                           \
    X(MIXPREC_ERR_NULL, "a pointer is NULL while its size is not zero")                                                \
    X(MIXPREC_ERR_DTYPE, "unknown dtype")                                                                              \
    X(MIXPREC_ERR_ROUND, "unknown rounding mode")                                                                      \
    X(MIXPREC_ERR_OVERFLOW, "unknown overflow policy")                                                                 \
    X(MIXPREC_ERR_TRANSPOSE, "unknown transpose value")                                                                \
    X(MIXPREC_ERR_ISA, "this instruction set is unknown, not compiled in, or not available on this CPU")               \
    X(MIXPREC_ERR_LEADING_DIMENSION, "a leading dimension is smaller than the row it must hold")                       \
    X(MIXPREC_ERR_SIZE, "the sizes overflow size_t")                                                                   \
    X(MIXPREC_ERR_OVERLAP, "an output overlaps an input in a way that is not supported")                               \
    X(MIXPREC_ERR_SCALE, "a scale is NaN, infinite, zero or negative")                                                 \
    X(MIXPREC_ERR_WORKSPACE, "the workspace is too small")                                                             \
    X(MIXPREC_ERR_ACTIVATION, "unknown activation")                                                                    \
    X(MIXPREC_ERR_TRIANGLE, "unknown triangle, or C is not square, or a row range was asked for too")                  \
    X(MIXPREC_ERR_RANGE, "a range lies outside of what it selects from")                                               \
    X(MIXPREC_ERR_PACKED, "a packed matrix is not one, or of another shape or dtype")                                  \
    X(MIXPREC_ERR_ALLOC, "the workspace could not be allocated")

typedef enum mixprec_status {
#define MIXPREC_STATUS_(name, text) name,
    MIXPREC_STATUSES_(MIXPREC_STATUS_)
#undef MIXPREC_STATUS_
        MIXPREC_STATUS_COUNT
} mixprec_status;

/* Options of mixprec_convert_ex. All zero: round to nearest even, IEEE overflow, no scaling, the best instruction
   set. */
typedef struct mixprec_convert_options {
    mixprec_round round;
    mixprec_overflow overflow;
    float scale;     /* each element is multiplied by this first; 0 means 1. See mixprec_convert_ex. */
    mixprec_isa isa; /* run this path; for tests and benchmarks */
    uint64_t seed;   /* MIXPREC_ROUND_STOCHASTIC: the stream of random numbers ... */
    uint64_t offset; /* ... and the index of element 0 in it: a caller who splits an array tells where a part starts */
} mixprec_convert_options;

/* What the epilogue of mixprec_gemm_ex applies to each element, after the bias. */
typedef enum mixprec_activation {
    MIXPREC_ACTIVATION_NONE = 0,
    MIXPREC_ACTIVATION_RELU,      /* max(x, 0); NaN stays NaN */
    MIXPREC_ACTIVATION_GELU,      /* x/2 (1 + erf(x / sqrt 2)): Hendrycks, Gimpel, arXiv:1606.08415 */
    MIXPREC_ACTIVATION_GELU_TANH, /* its approximation x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
    MIXPREC_ACTIVATION_SILU,      /* x / (1 + exp(-x)) */
    MIXPREC_ACTIVATION_TANH
} mixprec_activation;

/* The part of C that mixprec_gemm_ex computes; the rest is not touched. Diagonal included. */
typedef enum mixprec_triangle { MIXPREC_FULL = 0, MIXPREC_LOWER, MIXPREC_UPPER } mixprec_triangle;

/* Scales of an operand: the number that an element stands for is element * scale. One scale for each block of
   block_rows x block_columns of the matrix as stored (before op), 0 meaning all rows or columns: {&s} is one scale for
   the tensor, {v, 1, 0} one for each row, {v, 0, 1} for each column, {v, 1, 128} for 128 elements of a row,
   {v, 128, 128} for a tile. The scale of element (i, j) is values[(i / block_rows) * ld + j / block_columns]. */
typedef struct mixprec_scales {
    const float *values; /* NULL: none. Each finite and positive. */
    size_t block_rows, block_columns;
    size_t ld; /* 0: rows of scales without gaps */
} mixprec_scales;

/* Runs task(data, i) once for every i < tasks, in any order and on any threads, and returns when all have returned. */
typedef void (*mixprec_parallel_for)(void *context, size_t tasks, void (*task)(void *data, size_t index), void *data);

/* The arguments of mixprec_gemm_ex. A field that is zero means the common case. */
typedef struct mixprec_gemm_desc {
    mixprec_transpose trans_a, trans_b;
    size_t m, n, k;
    const double *alpha; /* NULL: 1. With fp32 accumulation it is first rounded to fp32. */
    const double *beta;  /* NULL: 0, and C is not read. Rounded likewise. */
    const void *a;       /* m x k, or k x m when trans_a */
    mixprec_dtype a_type;
    size_t lda;    /* elements from one row to the next; 0: rows without gaps. ldb and ldc likewise. */
    const void *b; /* k x n, or n x k when trans_b */
    mixprec_dtype b_type;
    size_t ldb;
    void *c; /* m x n */
    mixprec_dtype c_type;
    size_t ldc;

    /* Several products in one call. */
    size_t batch;               /* 0: one */
    size_t stride_a;            /* elements from one matrix to the next; 0: all products have the same A */
    size_t stride_b;            /* likewise */
    size_t stride_c;            /* 0: one after the other, m * ldc */
    const void *const *a_array; /* not NULL: pointers to `batch` matrices, in the place of a and stride_a */
    const void *const *b_array;
    void *const *c_array;

    /* What else happens to a sum; see mixprec_gemm_ex for the order. */
    mixprec_scales scale_a, scale_b; /* the same for all products of a batch */
    const void *bias;                /* NULL: none; n elements, added to every row of C */
    mixprec_dtype bias_type;         /* 0: f32 */
    mixprec_activation activation;
    mixprec_round round; /* how results are narrowed to c_type; no matter where that is not narrower than the sums */
    mixprec_overflow overflow;
    uint64_t seed;   /* MIXPREC_ROUND_STOCHASTIC: element (i, j) of product l draws mixprec_random_bits(seed, ... */
    uint64_t offset; /* ... offset + (l * m + i) * n + j) */

    /* How much of it, and how. */
    size_t row_begin, row_end;         /* the rows of C to compute: for a caller's own threads; 0, 0: all */
    mixprec_triangle triangle;         /* the part of C to compute: m == n, and no row range */
    int native;                        /* 1: dot-product units may be used, which round differently: see below */
    mixprec_isa isa;                   /* run this path; for tests and benchmarks */
    size_t packed_size;                /* not 0: b is what mixprec_gemm_pack_b wrote, of so many bytes */
    mixprec_parallel_for parallel_for; /* NULL: this thread alone */
    void *parallel_context;            /* its first argument */
    size_t threads;                    /* into how many tasks to split for parallel_for; 0: 1 */
    void *workspace;                   /* NULL: stack, or the allocator. Any alignment. */
    size_t workspace_size; /* bytes; mixprec_gemm_workspace tells how many are best and how many are needed */
} mixprec_gemm_desc;

/* The state of a loss scaler: plain data, no pointers. A copy of it, or its bytes, is a checkpoint. The fields may be
   set after mixprec_scaler_init; mixprec_scaler_check tells whether they make sense. */
typedef struct mixprec_scaler {
    float scale;             /* what the loss is multiplied by. 2^16 */
    float min_scale;         /* the scale never falls below this, nor below 2^-126. 2^-14 */
    float max_scale;         /* the scale never grows beyond this. 2^24 */
    int32_t growth_interval; /* updates without overflow before the scale grows. 2000 */
    double growth_factor;    /* 2.0; 1.0 for a static scale */
    double backoff_factor;   /* 0.5; 1.0 for a static scale */
    int32_t hysteresis;      /* overflows before the scale falls. 1 */
    int32_t growth_tracker;  /* updates since the last overflow or growth */
    int32_t hysteresis_used; /* overflows so far that count towards hysteresis; 0 again after a growth interval */
    int32_t found_inf;       /* an Inf or NaN was seen since the last update */
} mixprec_scaler;

/* What narrowing would do to an array; from mixprec_stats. */
typedef struct mixprec_statistics {
    uint64_t count;
    uint64_t nan, inf, zero;       /* elements that are that already */
    uint64_t overflow;             /* finite elements larger in magnitude than the format's largest finite number */
    uint64_t underflow, subnormal; /* nonzero elements that become zero, or a subnormal number */
    double amax, min_nonzero;      /* largest and smallest nonzero magnitude of the finite elements; 0 if none */
    /* Sums over the finite elements of x^2 and (x - q)^2, q saturated: SQNR = 10 log10(signal / noise) dB. An x that
       becomes NaN, as zero and negative ones do in E8M0, counts as x^2. Within 2^-21 of themselves, noise also within
       2^-48 of signal; see mixprec_stats. */
    double signal, noise;
    /* Elements by biased binary32 exponent: [127] for 1 <= |x| < 2; [0] for zero and all below 2^-126, [254] for all
       from 2^127, [255] for Inf and NaN. */
    uint64_t exponents[256];
} mixprec_statistics;

/* What a format can hold; from mixprec_format. */
typedef struct mixprec_format_info {
    const char *name;                             /* "f16": the enumerator's name in lower case */
    int bits, exponent_bits, mantissa_bits, bias; /* i8: 8, 0, 7, 0 */
    int has_inf, has_nan;
    double max, min_normal, min_subnormal;
    double epsilon; /* the distance from 1 to the next larger value */
} mixprec_format_info;

/* ================================================================================================================== */
/* [SCALAR] One number at a time: static inline, integer-only, no implementation needed                               */
/* ================================================================================================================== */

/* Integers only, so that neither -ffast-math, FTZ, DAZ, the rounding mode nor x87's extra precision can change a
   result, and so that a CPU without a floating-point unit needs no software floating point for them. Thread-safe. */

#if defined(__GNUC__) || defined(__TINYC__)
#define MIXPREC_INLINE static inline __attribute__((unused))
#else
#define MIXPREC_INLINE static inline
#endif

/* A union reads the bits without a call to memcpy, which MIXPREC_NO_STDLIB builds may not have; every compiler that
   this header supports defines it, in C++ too. */
MIXPREC_INLINE uint32_t mixprec_f32_bits_(float x) {
    union {
        float value;
        uint32_t bits;
    } u;
    u.value = x;
    return u.bits;
}
MIXPREC_INLINE float mixprec_f32_from_bits_(uint32_t bits) {
    union {
        uint32_t bits;
        float value;
    } u;
    u.bits = bits;
    return u.value;
}
MIXPREC_INLINE uint64_t mixprec_f64_bits_(double x) {
    union {
        double value;
        uint64_t bits;
    } u;
    u.value = x;
    return u.bits;
}
MIXPREC_INLINE double mixprec_f64_from_bits_(uint64_t bits) {
    union {
        uint64_t bits;
        double value;
    } u;
    u.bits = bits;
    return u.value;
}

/* What is special: Inf and NaN as in IEEE 754; NaN but no Inf; one NaN in the place of -0 (finite, NaN, unsigned zero);
   neither, and NaN becomes the largest number, as PTX's cvt.satfinite to e2m1, e2m3 and e3m2 has it. */
enum { MIXPREC_IEEE_, MIXPREC_NO_INF_, MIXPREC_FNUZ_, MIXPREC_FINITE_ };

/* A row of the format table as numbers. */
typedef struct mixprec_layout_ {
    int mantissa_bits, bias;
    uint32_t sign_code, max_code, overflow_code, nan_code;
    int special;
} mixprec_layout_;
#define MIXPREC_LAYOUT_(name, dtype, bits, mantissa, bias, max_code, overflow_code, nan_code, special)                 \
    static const mixprec_layout_ mixprec_layout_##name##_ = {mantissa,      bias,     1u << ((bits)-1), max_code,      \
                                                             overflow_code, nan_code, special};
MIXPREC_FORMATS_(MIXPREC_LAYOUT_)
#undef MIXPREC_LAYOUT_

/* Random bits for stochastic rounding: element `index` of stream `seed`. Threefry-2x32 with 20 rounds (Salmon, Moraes,
   Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011; the generator of JAX), key = seed (low word, high
   word), counter = index / 2 (low, high), output word index % 2. A pure function: any machine and any split of an array
   agree. */
MIXPREC_INLINE uint32_t mixprec_random_bits(uint64_t seed, uint64_t index) {
    static const uint8_t rotation[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    uint32_t key[3], x0, x1;
    int i;
    key[0] = (uint32_t)seed;
    key[1] = (uint32_t)(seed >> 32);
    key[2] = 0x1BD11BDAu ^ key[0] ^ key[1];
    x0 = (uint32_t)(index >> 1) + key[0];
    x1 = (uint32_t)(index >> 33) + key[1];
    for (i = 0; i < 20; i++) {
        x0 += x1;
        x1 = (x1 << rotation[i & 7] | x1 >> (32 - rotation[i & 7])) ^ x0;
        if ((i & 3) == 3) {
            uint32_t step = (uint32_t)i / 4 + 1;
            x0 += key[step % 3];
            x1 += key[(step + 1) % 3] + step;
        }
    }
    return (index & 1) ? x1 : x0;
}

/* Rounding, one rule for every mode: `fraction` is what lies below the last kept bit, in units of 2^-32 of that bit;
   the magnitude goes up when fraction + threshold carries out of 32 bits. Where the exact fraction is longer than 32
   bits, a lost nonzero part must stand in bit 0 of it, except for stochastic rounding, which is defined on its upper 32
   bits. */
MIXPREC_INLINE uint32_t mixprec_round_threshold_(mixprec_round round, uint32_t sign, uint32_t odd, uint32_t random) {
    switch (round) {
    case MIXPREC_ROUND_TOWARD_ZERO: return 0;
    case MIXPREC_ROUND_UP: return sign ? 0 : 0xFFFFFFFFu;
    case MIXPREC_ROUND_DOWN: return sign ? 0xFFFFFFFFu : 0;
    case MIXPREC_ROUND_NEAREST_AWAY: return 0x80000000u;
    case MIXPREC_ROUND_STOCHASTIC: return random;
    case MIXPREC_ROUND_NEAREST_EVEN: break;
    }
    return 0x7FFFFFFFu + odd;
}

/* Does an overflow stay at the largest finite value in this mode? IEEE 754-2019, 7.4. */
MIXPREC_INLINE int mixprec_overflow_to_max_(mixprec_round round, uint32_t sign) {
    return round == MIXPREC_ROUND_TOWARD_ZERO || (round == MIXPREC_ROUND_UP && sign) ||
           (round == MIXPREC_ROUND_DOWN && !sign);
}

/* The sign bit goes on everything but a NaN without one and FNUZ's zero. */
MIXPREC_INLINE uint32_t mixprec_signed_(const mixprec_layout_ *to, uint32_t sign, uint32_t code) {
    return !sign || (to->special == MIXPREC_FNUZ_ && code == 0) ? code : code | to->sign_code;
}

/* Inf, or NaN with its upper payload bits. */
MIXPREC_INLINE uint32_t mixprec_special_(const mixprec_layout_ *to, uint32_t sign, uint32_t payload, int is_nan,
                                         mixprec_overflow overflow) {
    if (!is_nan)
        return mixprec_signed_(to, sign, overflow == MIXPREC_OVERFLOW_SATURATE ? to->max_code : to->overflow_code);
    if (to->special == MIXPREC_IEEE_)
        return mixprec_signed_(to, sign, to->nan_code | payload);
    return to->special == MIXPREC_NO_INF_ ? mixprec_signed_(to, sign, to->nan_code) : to->nan_code;
}

/* A mantissa shifted right: what is kept, and the fraction below it as mixprec_round_threshold_ wants it. */
typedef struct mixprec_parts_ {
    uint32_t kept, fraction;
} mixprec_parts_;
MIXPREC_INLINE mixprec_parts_ mixprec_shift32_(uint32_t mantissa, int shift, mixprec_round round) {
    mixprec_parts_ parts;
    if (shift < 32) {
        parts.kept = mantissa >> shift;
        parts.fraction = shift ? mantissa << (32 - shift) : 0;
    } else {
        int beyond = shift - 32;
        parts.kept = 0;
        parts.fraction = beyond < 32 ? mantissa >> beyond : 0;
        if (round != MIXPREC_ROUND_STOCHASTIC && mantissa)
            parts.fraction |= 1;
    }
    return parts;
}
MIXPREC_INLINE mixprec_parts_ mixprec_shift64_(uint64_t mantissa, int shift, mixprec_round round) {
    mixprec_parts_ parts;
    parts.kept = shift < 64 ? (uint32_t)(mantissa >> shift) : 0;
    parts.fraction = 0;
    if (shift > 0 && shift < 32)
        parts.fraction = (uint32_t)(mantissa << (32 - shift));
    else if (shift >= 32 && shift < 96)
        parts.fraction = (uint32_t)(mantissa >> (shift - 32));
    if (round != MIXPREC_ROUND_STOCHASTIC && shift > 32 &&
        (shift >= 96 ? mantissa : mantissa & (((uint64_t)1 << (shift - 32)) - 1)))
        parts.fraction |= 1;
    return parts;
}

/* One more in the kept part when the fraction says so. */
MIXPREC_INLINE uint32_t mixprec_rounded_(mixprec_parts_ parts, uint32_t sign, mixprec_round round, uint32_t random) {
    uint32_t threshold = mixprec_round_threshold_(round, sign, parts.kept & 1u, random);
    return parts.kept + (uint32_t)((uint32_t)(parts.fraction + threshold) < threshold);
}

/* Puts a number together: biased target exponent (at least 1) and the mantissa with its leading bit. */
MIXPREC_INLINE uint32_t mixprec_assemble_(const mixprec_layout_ *to, uint32_t sign, int32_t exponent,
                                          mixprec_parts_ parts, mixprec_round round, mixprec_overflow overflow,
                                          uint32_t random) {
    uint32_t code = to->max_code + 1;
    MIXPREC_ASSERT(exponent >= 1);
    /* One exponent above the largest one overflows whatever the mantissa; farther ones would not fit the addition. */
    if (exponent <= (int32_t)(to->max_code >> to->mantissa_bits) + 1)
        code = ((uint32_t)(exponent - 1) << to->mantissa_bits) + mixprec_rounded_(parts, sign, round, random);
    if (code > to->max_code)
        code = overflow != MIXPREC_OVERFLOW_IEEE || mixprec_overflow_to_max_(round, sign) ? to->max_code
                                                                                          : to->overflow_code;
    return mixprec_signed_(to, sign, code);
}

/* From the bits of a binary32 to any format of the table. */
MIXPREC_INLINE uint32_t mixprec_narrow_f32_(uint32_t bits, const mixprec_layout_ *to, mixprec_round round,
                                            mixprec_overflow overflow, uint32_t random) {
    uint32_t sign = bits >> 31, mantissa = bits & 0x7FFFFFu;
    int32_t exponent = (int32_t)(bits >> 23 & 0xFF), target = exponent - 127 + to->bias;
    int shift = 23 - to->mantissa_bits;
    if (exponent == 0xFF)
        return mixprec_special_(to, sign, mantissa >> shift, mantissa != 0, overflow);
    if (exponent)
        mantissa |= 0x800000u;
    else
        target++;
    if (target < 1) {
        shift += 1 - target;
        target = 1;
    }
    return mixprec_assemble_(to, sign, target, mixprec_shift32_(mantissa, shift, round), round, overflow, random);
}

/* From the bits of a binary64 to any format of the table, rounded once. */
MIXPREC_INLINE uint32_t mixprec_narrow_f64_(uint64_t bits, const mixprec_layout_ *to, mixprec_round round,
                                            mixprec_overflow overflow, uint32_t random) {
    uint32_t sign = (uint32_t)(bits >> 63);
    uint64_t mantissa = bits & 0xFFFFFFFFFFFFFu;
    int32_t exponent = (int32_t)(bits >> 52 & 0x7FF), target = exponent - 1023 + to->bias;
    int shift = 52 - to->mantissa_bits;
    if (exponent == 0x7FF)
        return mixprec_special_(to, sign, (uint32_t)(mantissa >> shift), mantissa != 0, overflow);
    if (exponent)
        mantissa |= (uint64_t)1 << 52;
    else
        target++;
    if (target < 1) {
        shift += 1 - target;
        target = 1;
    }
    return mixprec_assemble_(to, sign, target, mixprec_shift64_(mantissa, shift, round), round, overflow, random);
}

/* E8M0 has one significant bit and neither sign, zero nor subnormals: negative numbers and zero become NaN, numbers
   below 2^-127 become 2^-127. Ties go up: with one bit every significand is odd, and IEEE 754-2019, 4.3.1, then takes
   the larger. ml_dtypes 0.6.0 agrees but between 2^-127 and 1.5 * 2^-127, which it rounds up. Saturated: 2^127. */
MIXPREC_INLINE uint32_t mixprec_narrow_e8m0_(uint64_t bits, mixprec_round round, mixprec_overflow overflow,
                                             uint32_t random) {
    int32_t exponent = (int32_t)(bits >> 52), code; /* with the sign, which is 0 here or irrelevant */
    uint64_t mantissa = bits & 0xFFFFFFFFFFFFFu;
    if (bits == 0 || bits > (uint64_t)0x7FF << 52)
        return 0xFF;
    if (exponent == 0x7FF)
        return overflow == MIXPREC_OVERFLOW_SATURATE ? 0xFE : 0xFF;
    code = exponent - 1023 + 127;
    if (code < 0)
        return 0;
    code += (int32_t)mixprec_rounded_(mixprec_shift64_(mantissa | (uint64_t)1 << 52, 52, round), 0, round, random) - 1;
    if (code > 0xFE)
        return overflow != MIXPREC_OVERFLOW_IEEE || mixprec_overflow_to_max_(round, 0) ? 0xFE : 0xFF;
    return (uint32_t)code;
}

/* To an integer, rounded in any mode and always saturated; NaN becomes 0, as in PTX and AArch64. */
MIXPREC_INLINE int mixprec_narrow_i8_(uint64_t bits, mixprec_round round, uint32_t random) {
    uint32_t sign = (uint32_t)(bits >> 63), limit = 127 + sign, magnitude = limit;
    int32_t exponent = (int32_t)(bits >> 52 & 0x7FF);
    uint64_t mantissa = bits & 0xFFFFFFFFFFFFFu;
    if (exponent == 0x7FF && mantissa)
        return 0;
    if (exponent < 1023 + 8)
        magnitude = mixprec_rounded_(mixprec_shift64_(exponent ? mantissa | (uint64_t)1 << 52 : mantissa,
                                                      52 + 1023 - (exponent ? exponent : 1), round),
                                     sign, round, random);
    if (magnitude > limit)
        magnitude = limit;
    return sign ? -(int)magnitude : (int)magnitude;
}

/* From any format of 16 bits or fewer to the bits of a binary32: exact. A NaN gets its quiet bit. */
MIXPREC_INLINE uint32_t mixprec_widen_(uint32_t code, const mixprec_layout_ *from) {
    uint32_t sign = (code & from->sign_code) ? 0x80000000u : 0, magnitude = code & (from->sign_code - 1u);
    int shift = 23 - from->mantissa_bits;
    uint32_t mantissa = (magnitude << shift) & 0x7FFFFFu;
    int32_t exponent = (int32_t)(magnitude >> from->mantissa_bits);
    if (magnitude > from->max_code)
        return sign | 0x7F800000u | (mantissa ? mantissa | 0x400000u : 0);
    if (from->special == MIXPREC_FNUZ_ && sign && !magnitude)
        return 0x7FC00000u;
    if (from->bias == 127)
        return sign | magnitude << shift; /* bfloat16, whose subnormals are subnormals of binary32 */
    if (!exponent) {
        if (!mantissa)
            return sign;
        exponent = 1; /* normalise: at most 10 places */
        if (mantissa < 0x8000u) {
            mantissa <<= 8;
            exponent -= 8;
        }
        if (mantissa < 0x80000u) {
            mantissa <<= 4;
            exponent -= 4;
        }
        if (mantissa < 0x200000u) {
            mantissa <<= 2;
            exponent -= 2;
        }
        if (mantissa < 0x400000u) {
            mantissa <<= 1;
            exponent -= 1;
        }
        mantissa <<= 1; /* the leading bit goes to bit 23, where it counts as one exponent */
        exponent -= 2;
    }
    return sign | (((uint32_t)(exponent + 127 - from->bias) << 23) + mantissa);
}

/* From the bits of a binary32 to those of a binary64: exact. A cast would lose subnormals under DAZ. */
MIXPREC_INLINE uint64_t mixprec_f32_bits_to_f64_bits_(uint32_t bits) {
    uint64_t sign = (uint64_t)(bits >> 31) << 63, mantissa = (uint64_t)(bits & 0x7FFFFFu) << 29;
    uint32_t exponent = bits >> 23 & 0xFF;
    if (exponent == 0xFF)
        return sign | (uint64_t)0x7FF << 52 | mantissa | (mantissa ? (uint64_t)1 << 51 : 0);
    if (exponent == 0) {
        if (!mantissa)
            return sign;
        for (exponent = 1; !(mantissa >> 52); exponent--)
            mantissa <<= 1;
        return sign | (((uint64_t)(exponent + 895) << 52) + mantissa);
    }
    return sign | (uint64_t)(exponent + 896) << 52 | mantissa;
}

MIXPREC_INLINE uint32_t mixprec_widen_e8m0_(uint32_t code) {
    return code == 0xFF ? 0x7FC00000u : code ? code << 23 : 0x00400000u;
}
MIXPREC_INLINE uint32_t mixprec_widen_i8_(int value) {
    uint32_t sign = value < 0 ? 0x80000000u : 0, magnitude = (uint32_t)(value < 0 ? -value : value), exponent = 127 + 7;
    if (!magnitude)
        return 0;
    for (; !(magnitude & 0x80u); exponent--)
        magnitude <<= 1;
    return sign | exponent << 23 | (magnitude & 0x7Fu) << 16;
}

/* For each T of f16, bf16, e4m3, e5m2, e4m3fnuz, e5m2fnuz, e4m3ieee, e3m4, e2m3, e3m2, e2m1, e8m0, i8:
     float     mixprec_T_to_f32(mixprec_T)       exact
     double    mixprec_T_to_f64(mixprec_T)       exact
     mixprec_T mixprec_f32_to_T(float)           to nearest even, MIXPREC_OVERFLOW_IEEE
     mixprec_T mixprec_f64_to_T(double)          the same, rounded once, not by way of float
     mixprec_T mixprec_f32_to_T_sat(float)       to nearest even, MIXPREC_OVERFLOW_SATURATE
     mixprec_T mixprec_f64_to_T_sat(double)      the same */
#define MIXPREC_SCALAR_(name, storage, widen, narrow_f32, narrow_f64)                                                  \
    MIXPREC_INLINE float mixprec_##name##_to_f32(mixprec_##name x) {                                                   \
        return mixprec_f32_from_bits_(widen);                                                                          \
    }                                                                                                                  \
    MIXPREC_INLINE double mixprec_##name##_to_f64(mixprec_##name x) {                                                  \
        return mixprec_f64_from_bits_(mixprec_f32_bits_to_f64_bits_(widen));                                           \
    }                                                                                                                  \
    MIXPREC_SCALAR_NARROW_(name, storage, f32, float, , narrow_f32, MIXPREC_OVERFLOW_IEEE)                             \
    MIXPREC_SCALAR_NARROW_(name, storage, f64, double, , narrow_f64, MIXPREC_OVERFLOW_IEEE)                            \
    MIXPREC_SCALAR_NARROW_(name, storage, f32, float, _sat, narrow_f32, MIXPREC_OVERFLOW_SATURATE)                     \
    MIXPREC_SCALAR_NARROW_(name, storage, f64, double, _sat, narrow_f64, MIXPREC_OVERFLOW_SATURATE)
#define MIXPREC_SCALAR_NARROW_(name, storage, from, type, suffix, narrow, policy)                                      \
    MIXPREC_INLINE mixprec_##name mixprec_##from##_to_##name##suffix(type value) {                                     \
        const mixprec_overflow overflow = policy;                                                                      \
        mixprec_##name y;                                                                                              \
        y.bits = (storage)(narrow);                                                                                    \
        (void)overflow;                                                                                                \
        return y;                                                                                                      \
    }
#define MIXPREC_SCALAR_FLOAT_(name, storage)                                                                           \
    MIXPREC_SCALAR_(name, storage, mixprec_widen_(x.bits, &mixprec_layout_##name##_),                                  \
                    mixprec_narrow_f32_(mixprec_f32_bits_(value), &mixprec_layout_##name##_,                           \
                                        MIXPREC_ROUND_NEAREST_EVEN, overflow, 0),                                      \
                    mixprec_narrow_f64_(mixprec_f64_bits_(value), &mixprec_layout_##name##_,                           \
                                        MIXPREC_ROUND_NEAREST_EVEN, overflow, 0))
MIXPREC_SCALAR_FLOAT_(f16, uint16_t)
MIXPREC_SCALAR_FLOAT_(bf16, uint16_t)
MIXPREC_SCALAR_FLOAT_(e4m3, uint8_t)
MIXPREC_SCALAR_FLOAT_(e5m2, uint8_t)
MIXPREC_SCALAR_FLOAT_(e4m3fnuz, uint8_t)
MIXPREC_SCALAR_FLOAT_(e5m2fnuz, uint8_t)
MIXPREC_SCALAR_FLOAT_(e4m3ieee, uint8_t)
MIXPREC_SCALAR_FLOAT_(e3m4, uint8_t)
MIXPREC_SCALAR_FLOAT_(e2m3, uint8_t)
MIXPREC_SCALAR_FLOAT_(e3m2, uint8_t)
MIXPREC_SCALAR_FLOAT_(e2m1, uint8_t)
MIXPREC_SCALAR_(e8m0, uint8_t, mixprec_widen_e8m0_(x.bits),
                mixprec_narrow_e8m0_(mixprec_f32_bits_to_f64_bits_(mixprec_f32_bits_(value)),
                                     MIXPREC_ROUND_NEAREST_EVEN, overflow, 0),
                mixprec_narrow_e8m0_(mixprec_f64_bits_(value), MIXPREC_ROUND_NEAREST_EVEN, overflow, 0))
MIXPREC_SCALAR_(i8, int8_t, mixprec_widen_i8_(x.bits),
                mixprec_narrow_i8_(mixprec_f32_bits_to_f64_bits_(mixprec_f32_bits_(value)), MIXPREC_ROUND_NEAREST_EVEN,
                                   0),
                mixprec_narrow_i8_(mixprec_f64_bits_(value), MIXPREC_ROUND_NEAREST_EVEN, 0))
#undef MIXPREC_SCALAR_FLOAT_
#undef MIXPREC_SCALAR_NARROW_
#undef MIXPREC_SCALAR_

MIXPREC_INLINE const mixprec_layout_ *mixprec_layout_of_(mixprec_dtype dtype) {
    switch (dtype) {
#define MIXPREC_ROW_(name, dtype, bits, mantissa, bias, max_code, overflow_code, nan_code, special)                    \
    case dtype: return &mixprec_layout_##name##_;
        MIXPREC_FORMATS_(MIXPREC_ROW_)
#undef MIXPREC_ROW_
    case MIXPREC_F64:
    case MIXPREC_E8M0:
    case MIXPREC_I8:
    case MIXPREC_NONE: break;
    }
    return NULL;
}

/* x rounded once to any format of 32 bits or fewer, in any mode; the code is returned in the low bits (i8:
   sign-extended from 8 to 32 bits). `random` is used by MIXPREC_ROUND_STOCHASTIC only: with f = the discarded fraction
   of an ulp, the magnitude is rounded up exactly when floor(f * 2^32) + random >= 2^32, so with uniform random bits the
   probability of rounding up is floor(f * 2^32) / 2^32. Overflow is judged after rounding. For MIXPREC_F64, which does
   not fit, and for an unknown dtype: 0. */
MIXPREC_INLINE uint32_t mixprec_encode(double x, mixprec_dtype dtype, mixprec_round round, mixprec_overflow overflow,
                                       uint32_t random) {
    const mixprec_layout_ *to = mixprec_layout_of_(dtype);
    uint64_t bits = mixprec_f64_bits_(x);
    if (dtype == MIXPREC_E8M0)
        return mixprec_narrow_e8m0_(bits, round, overflow, random);
    if (dtype == MIXPREC_I8)
        return (uint32_t)mixprec_narrow_i8_(bits, round, random);
    return to ? mixprec_narrow_f64_(bits, to, round, overflow, random) : 0;
}

/* The value of a code: exact. Bits above the format's width are ignored. For MIXPREC_F64 and an unknown dtype: NaN. */
MIXPREC_INLINE double mixprec_decode(uint32_t bits, mixprec_dtype dtype) {
    const mixprec_layout_ *from = mixprec_layout_of_(dtype);
    uint32_t single = 0x7FC00000u;
    if (dtype == MIXPREC_F32)
        single = bits;
    else if (dtype == MIXPREC_E8M0)
        single = mixprec_widen_e8m0_(bits & 0xFFu);
    else if (dtype == MIXPREC_I8)
        single = mixprec_widen_i8_((int)(bits & 0xFFu) - (int)(bits << 1 & 0x100u));
    else if (from)
        single = mixprec_widen_(bits, from);
    return mixprec_f64_from_bits_(mixprec_f32_bits_to_f64_bits_(single));
}

/* ---- what a code is ---- */

MIXPREC_INLINE int mixprec_code_is_nan_(uint32_t code, const mixprec_layout_ *format) {
    uint32_t magnitude = code & (format->sign_code - 1u);
    if (format->special == MIXPREC_FNUZ_)
        return code == format->sign_code;
    return format->special == MIXPREC_IEEE_ ? magnitude > format->overflow_code : magnitude > format->max_code;
}
MIXPREC_INLINE int mixprec_code_is_inf_(uint32_t code, const mixprec_layout_ *format) {
    return format->special == MIXPREC_IEEE_ && (code & (format->sign_code - 1u)) == format->overflow_code;
}
MIXPREC_INLINE int mixprec_code_is_subnormal_(uint32_t code, const mixprec_layout_ *format) {
    uint32_t magnitude = code & (format->sign_code - 1u);
    return magnitude != 0 && magnitude >> format->mantissa_bits == 0;
}
MIXPREC_INLINE uint32_t mixprec_code_negate_(uint32_t code, const mixprec_layout_ *format) {
    int unsigned_zero = format->special == MIXPREC_FNUZ_ && !(code & (format->sign_code - 1u));
    return unsigned_zero ? code : code ^ format->sign_code;
}
/* IEEE 754-2019, 5.3.1, nextUp; the largest finite number stays where there is no Inf. */
MIXPREC_INLINE uint32_t mixprec_code_next_up_(uint32_t code, const mixprec_layout_ *format) {
    uint32_t magnitude = code & (format->sign_code - 1u);
    if (mixprec_code_is_nan_(code, format))
        return code;
    if ((code & format->sign_code) && magnitude)
        return mixprec_signed_(format, 1, magnitude - 1);
    return magnitude == (format->special == MIXPREC_IEEE_ ? format->overflow_code : format->max_code) ? code
                                                                                                      : magnitude + 1;
}
/* Integers that order as the numbers do: -0 and +0 are equal. */
MIXPREC_INLINE int32_t mixprec_code_key_(uint32_t code, const mixprec_layout_ *format) {
    int32_t magnitude = (int32_t)(code & (format->sign_code - 1u));
    return (code & format->sign_code) ? -magnitude : magnitude;
}

/* For each T of f16, bf16, e4m3, e5m2, e4m3fnuz, e5m2fnuz, e4m3ieee, e3m4, e2m3, e3m2, e2m1:
     int mixprec_T_isnan(mixprec_T), _isinf, _isfinite, _issubnormal, _signbit     1 or 0; signbit(NaN) is 1 in FNUZ
     int mixprec_T_equal(mixprec_T a, mixprec_T b), _less (a < b), _less_equal     0 when either is NaN; -0 equals 0
     mixprec_T mixprec_T_next_up(mixprec_T), _next_down                            the neighbour toward +Inf, -Inf; NaN
                                                                                   stays; the largest if there is no Inf
   Codes of fp6 and fp4 must have zeros above their width. */
#define MIXPREC_CLASSIFY_(name, dtype, bits_, mantissa, bias, max_code, overflow_code, nan_code, special)              \
    MIXPREC_INLINE int mixprec_##name##_isnan(mixprec_##name x) {                                                      \
        return mixprec_code_is_nan_(x.bits, &mixprec_layout_##name##_);                                                \
    }                                                                                                                  \
    MIXPREC_INLINE int mixprec_##name##_isinf(mixprec_##name x) {                                                      \
        return mixprec_code_is_inf_(x.bits, &mixprec_layout_##name##_);                                                \
    }                                                                                                                  \
    MIXPREC_INLINE int mixprec_##name##_isfinite(mixprec_##name x) {                                                   \
        return !mixprec_##name##_isnan(x) && !mixprec_##name##_isinf(x);                                               \
    }                                                                                                                  \
    MIXPREC_INLINE int mixprec_##name##_issubnormal(mixprec_##name x) {                                                \
        return mixprec_code_is_subnormal_(x.bits, &mixprec_layout_##name##_);                                          \
    }                                                                                                                  \
    MIXPREC_INLINE int mixprec_##name##_signbit(mixprec_##name x) {                                                    \
        return (x.bits & mixprec_layout_##name##_.sign_code) != 0;                                                     \
    }                                                                                                                  \
    MIXPREC_INLINE int mixprec_##name##_less_equal(mixprec_##name a, mixprec_##name b) {                               \
        return !mixprec_##name##_isnan(a) && !mixprec_##name##_isnan(b) &&                                             \
               mixprec_code_key_(a.bits, &mixprec_layout_##name##_) <=                                                 \
                   mixprec_code_key_(b.bits, &mixprec_layout_##name##_);                                               \
    }                                                                                                                  \
    MIXPREC_INLINE int mixprec_##name##_less(mixprec_##name a, mixprec_##name b) {                                     \
        return mixprec_##name##_less_equal(a, b) && !mixprec_##name##_less_equal(b, a);                                \
    }                                                                                                                  \
    MIXPREC_INLINE int mixprec_##name##_equal(mixprec_##name a, mixprec_##name b) {                                    \
        return mixprec_##name##_less_equal(a, b) && mixprec_##name##_less_equal(b, a);                                 \
    }                                                                                                                  \
    MIXPREC_INLINE mixprec_##name mixprec_##name##_next_up(mixprec_##name x) {                                         \
        mixprec_##name y;                                                                                              \
        y.bits = (MIXPREC_STORAGE_(bits_))mixprec_code_next_up_(x.bits, &mixprec_layout_##name##_);                    \
        return y;                                                                                                      \
    }                                                                                                                  \
    MIXPREC_INLINE mixprec_##name mixprec_##name##_next_down(mixprec_##name x) {                                       \
        const mixprec_layout_ *format = &mixprec_layout_##name##_;                                                     \
        mixprec_##name y = x;                                                                                          \
        if (!mixprec_##name##_isnan(x))                                                                                \
            y.bits = (MIXPREC_STORAGE_(bits_))mixprec_code_negate_(                                                    \
                mixprec_code_next_up_(mixprec_code_negate_(x.bits, format), format), format);                          \
        return y;                                                                                                      \
    }
#define MIXPREC_STORAGE_(bits) MIXPREC_STORAGE_##bits##_
#define MIXPREC_STORAGE_16_ uint16_t
#define MIXPREC_STORAGE_8_ uint8_t
#define MIXPREC_STORAGE_6_ uint8_t
#define MIXPREC_STORAGE_4_ uint8_t
MIXPREC_NARROW_FORMATS_(MIXPREC_CLASSIFY_)
#undef MIXPREC_CLASSIFY_
#undef MIXPREC_STORAGE_
#undef MIXPREC_STORAGE_16_
#undef MIXPREC_STORAGE_8_
#undef MIXPREC_STORAGE_6_
#undef MIXPREC_STORAGE_4_

/* ================================================================================================================== */
/* [API] Functions and their contracts                                                                                */
/* ================================================================================================================== */

/* All functions are thread-safe as long as no two calls write to the same memory. A pointer needs no alignment beyond
   that of its element type. On any status but MIXPREC_OK the outputs are untouched. */

/* ---- what there is ---- */

MIXPREC_API const char *mixprec_status_string(mixprec_status status); /* never NULL */
MIXPREC_API const char *mixprec_dtype_name(mixprec_dtype dtype);      /* "f16"; "unknown" for anything else */
MIXPREC_API size_t mixprec_dtype_size(mixprec_dtype dtype); /* bytes of the storage type; 0 for an unknown dtype */
/* Bytes of an array of n elements: n times the size, but half of that, rounded up, for fp4 (MIXPREC_E2M1). 0 for an
   unknown dtype, and for n above SIZE_MAX / 8. */
MIXPREC_API size_t mixprec_dtype_bytes(mixprec_dtype dtype, size_t n);
MIXPREC_API const char *mixprec_isa_name(mixprec_isa isa); /* "avx512"; "unknown" for anything else */
MIXPREC_API int mixprec_isa_available(mixprec_isa isa);    /* 1 when compiled in and runnable here */
MIXPREC_API mixprec_isa mixprec_isa_best(void);            /* what MIXPREC_ISA_AUTO stands for here */

/* Fills *info with the limits of a format. MIXPREC_ERR_DTYPE for an unknown one, MIXPREC_ERR_NULL. */
MIXPREC_API mixprec_status mixprec_format(mixprec_dtype dtype, mixprec_format_info *info);

/* ---- arrays ---- */

#ifndef MIXPREC_NO_CONVERT
/* dst[i] = src[i] for i < n, converted between any two dtypes, each element rounded once, to nearest even, with the
   IEEE overflow policy. Equal types are copied bit for bit. dst may be src itself, for narrowing and widening alike
   (the memory must hold the larger of the two); any other overlap is MIXPREC_ERR_OVERLAP. n may be 0. Also:
   MIXPREC_ERR_NULL, MIXPREC_ERR_DTYPE, MIXPREC_ERR_SIZE. */
MIXPREC_API mixprec_status mixprec_convert(void *dst, mixprec_dtype dst_type, const void *src, mixprec_dtype src_type,
                                           size_t n);

/* The same with options; NULL means none. With .scale, dst[i] = round(src[i] * scale): the product is formed in fp32
   (in f64 when src is f64) with one rounding of its own, which is exact for powers of two within range, then narrowed;
   equal types are then rounded too, not copied (a scale of 1 is no scale); an overflowing product counts as Inf.
   MIXPREC_OVERFLOW_SATURATE replaces Inf by the largest finite number of any other dst type, f64 and f32 included. With
   MIXPREC_ROUND_STOCHASTIC element i uses mixprec_random_bits(seed, offset + i). Also: MIXPREC_ERR_ROUND,
   MIXPREC_ERR_OVERFLOW, MIXPREC_ERR_SCALE (NaN, Inf, negative), MIXPREC_ERR_ISA. */
MIXPREC_API mixprec_status mixprec_convert_ex(void *dst, mixprec_dtype dst_type, const void *src,
                                              mixprec_dtype src_type, size_t n, const mixprec_convert_options *options);

/* Looks at src[0 .. n), after options->scale, as mixprec_convert_ex would narrow it to dtype `to`, and fills *stats:
   how many elements overflow, vanish or become subnormal, and the error. One pass, nothing but *stats is written. The
   sums have the same bits on every path: element i is in lane i % 16 of group i / 64. The squares of a group are formed
   and its four in a lane added, as (0 + 1) + (2 + 3), in fp32 (x - q is rounded to it, too); each lane's f64 sum takes
   those of the groups in order; then lanes i and i + 8 are added, i and i + 4, and so on. A group from f64, or one whose
   largest finite magnitude is neither zero nor in [2^-48, 2^60), stays in f64 instead and adds its elements to the
   lanes one by one. `to` is any dtype but f64. Options as for mixprec_convert_ex, and NULL; the overflow
   policy is ignored. Errors as for mixprec_convert_ex. */
MIXPREC_API mixprec_status mixprec_stats(mixprec_statistics *stats, const void *src, mixprec_dtype src_type, size_t n,
                                         mixprec_dtype to, const mixprec_convert_options *options);
#endif

/* ---- matrices ---- */

#ifndef MIXPREC_NO_GEMM
/* C = alpha op(A) op(B) + beta C, row-major; op(A) is m x k, op(B) is k x n, C is m x n; op(X) is X or its transpose.
   lda is the distance in elements from one row of A as stored to the next: at least k (m when ta is MIXPREC_TRANS); ldb
   at least n (k); ldc at least n; and at least 1. Every combination of dtypes is allowed.

   Numbers. f64 times f64 accumulates in f64; everything else in fp32, to which an f64 operand paired with a narrower
   one is first rounded. The order is part of the contract: k is split into chunks of MIXPREC_GEMM_KBLOCK = 512; within
   a chunk s = 0, then s = fma(a, b, s) for rising k; the chunks' sums are added in rising order, t = s0, t = t + s1,
   ... Then the epilogue, one rounding each: x = alpha * t, y = beta * c, x + y (only where beta is not 0), in the
   accumulator's type, or in f64 when C is f64; then the narrowing to C's type, to nearest even, IEEE overflow. Products
   of f16, e4m3 and e5m2 values are exact in fp32 (of bf16 too unless they under- or overflow), so a CPU without FMA
   gives the same bits. For f32 and f64 the bits agree between paths that have FMA; portable C multiplies, then adds,
   unless the compiler contracts it. A NaN is a NaN, but its payload and sign are not specified. Compiling this header's
   implementation with -ffast-math voids the order in portable C. The caller's rounding mode, FTZ and DAZ have no effect
   on x86-64 and AArch64; subnormals are kept.

   As in the BLAS: beta == 0 never reads C, so NaN in it is overwritten; alpha == 0 or k == 0 never reads A or B, which
   may then be NULL, and gives beta c, or +0 when beta is 0; m, n, k may be 0. C must not overlap A or B:
   MIXPREC_ERR_OVERLAP (blocks of one larger matrix may lie side by side when they have its leading dimension and
   element size; other interleaved layouts are refused, too). Elements of C's rows beyond n are not touched. Workspace
   comes from the stack when small, else from MIXPREC_MALLOC (MIXPREC_ERR_ALLOC when that fails). Also:
   MIXPREC_ERR_NULL, MIXPREC_ERR_DTYPE, MIXPREC_ERR_TRANSPOSE, MIXPREC_ERR_LEADING_DIMENSION, MIXPREC_ERR_SIZE.

   Several threads: let each compute a range of rows of C with a call of its own; the bits are the same (with stochastic
   rounding, when .offset is the first row times n). */
MIXPREC_API mixprec_status mixprec_gemm(mixprec_transpose ta, mixprec_transpose tb, size_t m, size_t n, size_t k,
                                        float alpha, const void *a, mixprec_dtype a_type, size_t lda, const void *b,
                                        mixprec_dtype b_type, size_t ldb, float beta, void *c, mixprec_dtype c_type,
                                        size_t ldc);

/* The same with everything else: see mixprec_gemm_desc. Never allocates when .workspace is given. Also:
   MIXPREC_ERR_ROUND, MIXPREC_ERR_OVERFLOW, MIXPREC_ERR_ISA, MIXPREC_ERR_WORKSPACE. */
MIXPREC_API mixprec_status mixprec_gemm_ex(const mixprec_gemm_desc *desc);

/* Bytes of workspace for a descriptor: *best for full speed, *least below which mixprec_gemm_ex refuses; either pointer
   may be NULL. Fields .workspace and .workspace_size are ignored. Returns what mixprec_gemm_ex would say of the sizes,
   types and modes; on an error nothing is written. */
MIXPREC_API mixprec_status mixprec_gemm_workspace(const mixprec_gemm_desc *desc, size_t *best, size_t *least);
#endif

/* ---- loss scaling ---- */

#ifndef MIXPREC_NO_SCALER
/* Dynamic loss scaling (Micikevicius et al., "Mixed Precision Training", ICLR 2018, 3.2) with the arithmetic and the
   defaults of PyTorch's GradScaler: scale 2^16, growth 2, backoff 0.5, interval 2000; hysteresis after Megatron-LM. The
   scale stays a finite normal number; after an update it is within [min_scale, max_scale], whatever the fields were. */
MIXPREC_API void mixprec_scaler_init(mixprec_scaler *scaler);

/* A scale that never changes; steps with an overflow are still skipped. MIXPREC_ERR_SCALE, and no write, unless scale
   is finite, normal and positive. MIXPREC_ERR_NULL. */
MIXPREC_API mixprec_status mixprec_scaler_init_static(mixprec_scaler *scaler, float scale);

/* MIXPREC_OK when the fields make sense, after they were set by hand or read from a file: scale, min_scale and
   max_scale finite, normal, positive and in order; growth factor finite and >= 1, backoff factor normal and <= 1;
   interval, hysteresis >= 1; trackers not negative. Else MIXPREC_ERR_SCALE. MIXPREC_ERR_NULL. */
MIXPREC_API mixprec_status mixprec_scaler_check(const mixprec_scaler *scaler);

/* loss * scale. Multiply the loss with it, or the gradient that starts the backward pass. */
MIXPREC_API float mixprec_scaler_scale(const mixprec_scaler *scaler, float loss);

/* dst[i] = grad[i] * (float)(1.0 / scale) for i < n, in fp32, to which f64 is first rounded (so it may become Inf,
   which counts). grad is f32, f64, f16, bf16, e4m3 or e5m2; dst may be grad itself when that is f32, and must not
   overlap it otherwise. Returns 1 when an element of grad is Inf or NaN, or became Inf by unscaling, else 0; the scaler
   keeps that until mixprec_scaler_update. All of dst is written in either case. Call it once per gradient tensor; with
   several optimisers, OR the results of each one's tensors to learn which of them to skip. Bad arguments: the negative
   of a status (MIXPREC_ERR_NULL, _DTYPE, _SIZE, _OVERLAP, _SCALE), nothing written or kept. The scaler is written to:
   threads that share one need a copy each, whose found_inf fields are then OR-ed. */
MIXPREC_API int mixprec_scaler_unscale(mixprec_scaler *scaler, float *dst, const void *grad, mixprec_dtype dtype,
                                       size_t n);

/* The same on one instruction set, for tests and benchmarks. Also -MIXPREC_ERR_ISA. */
MIXPREC_API int mixprec_scaler_unscale_ex(mixprec_scaler *scaler, float *dst, const void *grad, mixprec_dtype dtype,
                                          size_t n, mixprec_isa isa);

/* Ends a step: once, after all gradients of all optimisers are unscaled. Returns 1: take the step, 0: skip it
   (found_inf was set). Then adapts the scale. After an overflow the growth tracker restarts and one unit of hysteresis
   is used up; when none is left, scale = max((float)(scale * backoff_factor), min_scale). Otherwise the tracker counts
   up; on reaching growth_interval it restarts, the hysteresis is refilled, and scale = (float)(scale * growth_factor),
   unless that were not finite or above max_scale, when the scale stays. Clears found_inf. */
MIXPREC_API int mixprec_scaler_update(mixprec_scaler *scaler);
#endif

#endif /* MIXPREC_H: stop reading here if you only use the library. */

#ifdef MIXPREC_IMPLEMENTATION
#ifndef MIXPREC_IMPLEMENTED_
#define MIXPREC_IMPLEMENTED_

/* ================================================================================================================== */
/* [PLATFORM] Compiler attributes, memory, the floating-point environment                                             */
/* ================================================================================================================== */

#ifndef MIXPREC_NO_STDLIB
#include <string.h>
#endif
#if !defined(MIXPREC_MALLOC) && !defined(MIXPREC_NO_STDLIB)
#include <stdlib.h>
#define MIXPREC_MALLOC(bytes) malloc(bytes)
#define MIXPREC_FREE(pointer) free(pointer)
#endif

#if defined(__TINYC__)
#define MIXPREC_FORCE_INLINE_ static inline
#define MIXPREC_NOINLINE_ static
#define MIXPREC_FLATTEN_ static
#define MIXPREC_UNROLL_
#elif defined(__GNUC__)
#define MIXPREC_FORCE_INLINE_ static inline __attribute__((always_inline, unused))
#define MIXPREC_NOINLINE_ static __attribute__((noinline, unused))
#define MIXPREC_FLATTEN_ static __attribute__((noinline, flatten, unused))
#if defined(__clang__)
#define MIXPREC_UNROLL_ _Pragma("clang loop unroll(full)")
#else
#define MIXPREC_UNROLL_ _Pragma("GCC unroll 16")
#endif
#elif defined(_MSC_VER)
#define MIXPREC_FORCE_INLINE_ static __forceinline
#define MIXPREC_NOINLINE_ static __declspec(noinline)
#define MIXPREC_FLATTEN_ static
#define MIXPREC_UNROLL_
#else
#define MIXPREC_FORCE_INLINE_ static inline
#define MIXPREC_NOINLINE_ static
#define MIXPREC_FLATTEN_ static
#define MIXPREC_UNROLL_
#endif

/* Which instruction sets are compiled in. 32-bit x86 has too few vector registers for the GEMM kernels: portable C. */
#if !defined(MIXPREC_NO_SIMD) && !defined(__TINYC__)
#if (defined(__x86_64__) && defined(__GNUC__)) || (defined(_MSC_VER) && defined(_M_X64))
#if MIXPREC_MAX_ISA >= 2
#define MIXPREC_HAS_AVX2_ 1
#endif
#if MIXPREC_MAX_ISA >= 3
#define MIXPREC_HAS_AVX512_ 1
#endif
#elif defined(__aarch64__) && defined(__GNUC__) && defined(__ARM_NEON) && defined(__AARCH64EL__)
#define MIXPREC_HAS_NEON_ 1
#endif
#endif
#if defined(MIXPREC_HAS_AVX2_)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push /* gcc 12's AVX-512 intrinsics pass deliberately undefined vectors */
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#if defined(MIXPREC_NO_STDLIB) /* keep gcc's and clang's intrinsics from including stdlib.h for _mm_malloc */
#define _MM_MALLOC_H_INCLUDED
#define __MM_MALLOC_H
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#if defined(_MSC_VER) && !defined(__clang__)
#include <intrin.h>
#define MIXPREC_TARGET_(features)
#else
#include <cpuid.h>
#define MIXPREC_TARGET_(features) __attribute__((target(features)))
#endif
#elif defined(MIXPREC_HAS_NEON_)
#include <arm_neon.h>
#endif

/* The kernels run in the default floating-point environment: nearest even, subnormals kept, no trap. The caller's one,
   flags included, is put back afterwards. The code between begin and end must sit in functions that are not inlined: no
   compiler knows that arithmetic must not move across the switch. */
#if defined(MIXPREC_HAS_AVX2_)
typedef unsigned int mixprec_fp_;
MIXPREC_INLINE mixprec_fp_ mixprec_fp_begin_(void) {
    mixprec_fp_ saved = _mm_getcsr();
    if (saved != 0x1F80u)
        _mm_setcsr(0x1F80u);
    return saved;
}
MIXPREC_INLINE void mixprec_fp_end_(mixprec_fp_ saved) {
    if (_mm_getcsr() != saved)
        _mm_setcsr(saved);
}
#elif (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__) && !defined(__TINYC__)
typedef struct mixprec_fp_ {
    unsigned char x87[28]; /* what FNSTENV stores: control and status words, tags, pointers */
    unsigned int mxcsr;
} mixprec_fp_;
MIXPREC_INLINE mixprec_fp_ mixprec_fp_begin_(void) {
    mixprec_fp_ saved;
    const unsigned short standard = 0x027F; /* 53 bits: products of doubles are rounded once */
    __asm__ __volatile__("fnstenv %0\n\tfldcw %1" : "=m"(saved.x87) : "m"(standard) : "memory");
#ifdef __SSE__
    saved.mxcsr = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(0x1F80u);
#endif
    return saved;
}
MIXPREC_INLINE void mixprec_fp_end_(mixprec_fp_ saved) {
    __asm__ __volatile__("fldenv %0" : : "m"(saved.x87) : "memory");
#ifdef __SSE__
    __builtin_ia32_ldmxcsr(saved.mxcsr);
#endif
}
#elif defined(__aarch64__) && defined(__GNUC__)
typedef struct mixprec_fp_ {
    uint64_t control, status;
} mixprec_fp_;
MIXPREC_INLINE mixprec_fp_ mixprec_fp_begin_(void) {
    mixprec_fp_ saved;
    uint64_t standard = 0;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(saved.control)::"memory");
    __asm__ __volatile__("mrs %0, fpsr" : "=r"(saved.status)::"memory");
    __asm__ __volatile__("msr fpcr, %0" ::"r"(standard) : "memory");
    return saved;
}
MIXPREC_INLINE void mixprec_fp_end_(mixprec_fp_ saved) {
    __asm__ __volatile__("msr fpcr, %0" ::"r"(saved.control) : "memory");
    __asm__ __volatile__("msr fpsr, %0" ::"r"(saved.status) : "memory");
}
#else
typedef int mixprec_fp_;
MIXPREC_INLINE mixprec_fp_ mixprec_fp_begin_(void) {
    return 0;
}
MIXPREC_INLINE void mixprec_fp_end_(mixprec_fp_ saved) {
    (void)saved;
}
#endif

/* Initialises a structure with zeros, in either language without a warning. */
#ifdef __cplusplus
#define MIXPREC_ZERO_                                                                                                  \
    {}
#else
#define MIXPREC_ZERO_                                                                                                  \
    { 0 }
#endif

/* Where float expressions are kept in wider registers (x87: 2), a store to a volatile rounds them. 16 widens _Float16
   only. */
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16
#define MIXPREC_ROUNDED_ volatile
#else
#define MIXPREC_ROUNDED_
#endif

MIXPREC_INLINE size_t mixprec_min_(size_t a, size_t b) {
    return a < b ? a : b;
}
MIXPREC_INLINE size_t mixprec_round_up_(size_t x, size_t step) {
    return (x + step - 1) / step * step;
}
static void mixprec_copy_(void *dst, const void *src, size_t bytes) {
#ifndef MIXPREC_NO_STDLIB
    memmove(dst, src, bytes);
#else
    unsigned char *to = (unsigned char *)dst;
    const unsigned char *from = (const unsigned char *)src;
    if (to <= from)
        while (bytes--)
            *to++ = *from++;
    else
        while (bytes--)
            to[bytes] = from[bytes];
#endif
}

/* Bytes of the storage type of one element; 0 for an unknown dtype. */
static size_t mixprec_size_of_(mixprec_dtype type) {
    switch (type) {
    case MIXPREC_F64: return 8;
    case MIXPREC_F32: return 4;
    case MIXPREC_F16:
    case MIXPREC_BF16: return 2;
    case MIXPREC_E4M3:
    case MIXPREC_E5M2:
    case MIXPREC_E4M3FNUZ:
    case MIXPREC_E5M2FNUZ:
    case MIXPREC_E4M3IEEE:
    case MIXPREC_E3M4:
    case MIXPREC_E2M3:
    case MIXPREC_E3M2:
    case MIXPREC_E2M1:
    case MIXPREC_E8M0:
    case MIXPREC_I8: return 1;
    case MIXPREC_NONE: break;
    }
    return 0;
}
/* Bytes of n elements in an array: fp4 is packed. */
MIXPREC_INLINE size_t mixprec_bytes_of_(mixprec_dtype type, size_t n) {
    return type == MIXPREC_E2M1 ? n / 2 + n % 2 : n * mixprec_size_of_(type);
}
/* The types that everything knows, not conversion alone: f32, f64, f16, bf16, e4m3, e5m2. */
MIXPREC_INLINE int mixprec_is_compute_type_(mixprec_dtype type) {
    return (unsigned)type >= (unsigned)MIXPREC_F32 && (unsigned)type <= (unsigned)MIXPREC_E5M2;
}

/* How narrowed values are rounded; index is that of the first element in the stochastic stream. */
typedef struct mixprec_how_ {
    mixprec_round round;
    mixprec_overflow overflow;
    uint64_t seed, index;
} mixprec_how_;

/* Elements that pass through a buffer on the stack at a time, and the unit that vector kernels work in. */
#define MIXPREC_UNIT_ 64
#ifdef MIXPREC_NO_STDLIB
#define MIXPREC_BLOCK_ 64
#else
#define MIXPREC_BLOCK_ 256
#endif

#ifndef MIXPREC_NO_CONVERT
/* What mixprec_stats has gathered so far. Element i of the array goes to lane i % 16 of the sums. */
#define MIXPREC_LANES_ 16
typedef struct mixprec_tally_ {
    mixprec_statistics *stats;
    double signal[MIXPREC_LANES_], noise[MIXPREC_LANES_];
    uint64_t amax, min_nonzero; /* as f64 bits; Inf for none */
    /* Exponents in the window of 16 from `window` (modulo 256) as bit planes: of planes[s] elements the distance from
       `window` has all the bits of s. Those outside are in stats->exponents; how many since the window was moved. */
    uint64_t planes[16], missed;
    uint32_t window;
    /* Of the format, as fp32 bits, to nearest even: its largest magnitude, the largest that becomes zero, the least
       that becomes a normal number, the least normal number; and the mantissa bits that a normal number loses. */
    int32_t max, vanishing, normal, min_normal, shift;
    /* Numbers with exponents between these are no extremes, do not overflow and stay normal. */
    uint32_t low, high;
} mixprec_tally_;

/* mixprec_stats squares in fp32 where the largest magnitude of a group of MIXPREC_UNIT_ elements is zero or from 2^-48
   to below 2^60, as fp32 bits: no square overflows, and one that underflows is below 2^-53 of the largest. */
#define MIXPREC_SQUARES_FROM_ 0x27800000
#define MIXPREC_SQUARES_BELOW_ 0x5D800000
#endif

/* What one instruction set provides: one constant table each in [DISPATCH].
   Unless said otherwise n is a multiple of MIXPREC_UNIT_, and source and destination may be the same array where the
   destination's elements are not larger. All run in the default floating-point environment. */
typedef struct mixprec_kernels_ {
    mixprec_isa isa;
    /* fp32 from any dtype but f32; f64 is rounded to nearest even. */
    void (*load)(float *dst, const void *src, mixprec_dtype type, size_t n);
    /* fp32 from f64, rounded to odd: a second rounding to a narrower format is then right in every mode. */
    void (*load_odd)(float *dst, const double *src, size_t n);
    /* Any dtype but f32 from fp32; to f64 exact. */
    void (*store)(void *dst, mixprec_dtype type, const float *src, size_t n, const mixprec_how_ *how);
    /* dst = src * factor; returns whether src or dst has an Inf or NaN. */
    int (*unscale)(float *dst, const float *src, size_t n, float factor);
#ifndef MIXPREC_NO_CONVERT
    /* mixprec_stats to nearest even: whole groups of MIXPREC_UNIT_ up to the first one with Inf, NaN or a size whose
       square needs f64. Returns how many elements that were. May be NULL. */
    size_t (*tally)(mixprec_tally_ *tally, const float *src, size_t n);
#endif

    /* GEMM, fp32 or, where wide is 1, f64 accumulators (both operands are then f64). Panels: rows of A in groups of
       tile_rows, columns of B in groups of tile_columns[wide]; element (i, p) of a panel of width w stands at [p * w +
       i]. */
    size_t tile_rows, tile_columns[2];
    size_t block_rows, block_columns, block_depth; /* how much of A and B to pack at a time; depth: whole chunks */
    /* Packs a panel of `width`, of which `count` are there and the others become zero, `depth` deep. Element (i, p) is
       at src[i + p * ld] when along is 1, else at src[i * ld + p]. */
    void (*pack)(void *dst, size_t width, const void *src, mixprec_dtype type, size_t ld, int along, size_t count,
                 size_t depth, int wide);
    /* t[i * ldt + j] = or += the products of the panels a (tile_rows wide) and b, in the canonical order, for i < rows,
       j < columns. `depth` spans whole chunks but for the end of k. */
    void (*tile)(size_t rows, size_t columns, size_t depth, const void *a, const void *b, void *t, size_t ldt,
                 int first, int wide);
    /* tile for at most direct_rows rows, fp32 accumulators, and a B that is not packed: its columns lie `stride` bytes
       apart, as rows in memory. Packing a B that is used so little would cost more than the products. May be NULL. */
    void (*direct)(size_t rows, size_t columns, size_t depth, const float *a, const char *b, mixprec_dtype type,
                   size_t stride, float *t, size_t ldt, int first);
    size_t direct_rows;
} mixprec_kernels_;

/* ================================================================================================================== */
/* [CPU] Which instruction set this machine has                                                                       */
/* ================================================================================================================== */

#if defined(MIXPREC_HAS_AVX2_)
static void mixprec_cpuid_(unsigned leaf, unsigned r[4]) {
#if defined(_MSC_VER) && !defined(__clang__)
    int registers[4];
    __cpuidex(registers, (int)leaf, 0);
    r[0] = (unsigned)registers[0];
    r[1] = (unsigned)registers[1];
    r[2] = (unsigned)registers[2];
    r[3] = (unsigned)registers[3];
#else
    __cpuid_count(leaf, 0, r[0], r[1], r[2], r[3]);
#endif
}

/* The registers that the operating system saves: XCR0. Only after CPUID has shown OSXSAVE. */
static unsigned mixprec_xcr0_(void) {
#if defined(_MSC_VER) && !defined(__clang__)
    return (unsigned)_xgetbv(0);
#else
    unsigned low, high;
    __asm__ __volatile__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
#endif
}

/* Bits as in Intel's Software Developer's Manual, volume 2A, CPUID. */
static mixprec_isa mixprec_detect_(void) {
    unsigned r[4], leaf1_c, leaf7_b, xcr0;
    const unsigned need1 = 1u << 12 | 1u << 27 | 1u << 28 | 1u << 29;   /* FMA, OSXSAVE, AVX, F16C */
    const unsigned need512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31; /* AVX-512 F, DQ, BW, VL */
    mixprec_cpuid_(0, r);
    if (r[0] < 7)
        return MIXPREC_ISA_C;
    mixprec_cpuid_(1, r);
    leaf1_c = r[2];
    mixprec_cpuid_(7, r);
    leaf7_b = r[1];
    if ((leaf1_c & need1) != need1 || !(leaf7_b & 1u << 5))
        return MIXPREC_ISA_C;
    xcr0 = mixprec_xcr0_();
    if ((xcr0 & 0x06u) != 0x06u) /* XMM, YMM */
        return MIXPREC_ISA_C;
#if defined(MIXPREC_HAS_AVX512_)
    if ((leaf7_b & need512) == need512 && (xcr0 & 0xE6u) == 0xE6u) /* and opmask, ZMM */
        return MIXPREC_ISA_AVX512;
#else
    (void)need512;
#endif
    return MIXPREC_ISA_AVX2;
}

/* CPUID traps to the hypervisor on virtual machines, so it is asked once. Threads that race write the same value. */
static mixprec_isa mixprec_cpu_(void) {
    static int cached;
#if defined(_MSC_VER) && !defined(__clang__)
    int isa = *(volatile int *)&cached;
    if (!isa)
        *(volatile int *)&cached = isa = (int)mixprec_detect_();
#else
    int isa = __atomic_load_n(&cached, __ATOMIC_RELAXED);
    if (!isa)
        __atomic_store_n(&cached, isa = (int)mixprec_detect_(), __ATOMIC_RELAXED);
#endif
    return (mixprec_isa)isa;
}
#elif defined(MIXPREC_HAS_NEON_)
static mixprec_isa mixprec_cpu_(void) {
    return MIXPREC_ISA_NEON; /* part of the base AArch64 architecture */
}
#else
static mixprec_isa mixprec_cpu_(void) {
    return MIXPREC_ISA_C;
}
#endif

/* ================================================================================================================== */
/* [VEC-C] Kernels in portable C: any n, any CPU                                                                      */
/* ================================================================================================================== */

MIXPREC_FLATTEN_ void mixprec_load_c_(float *dst, const void *src, mixprec_dtype type, size_t n) {
    size_t i;
    switch (type) {
#define MIXPREC_ROW_(name, dtype)                                                                                      \
    case dtype:                                                                                                        \
        for (i = 0; i < n; i++)                                                                                        \
            dst[i] = mixprec_##name##_to_f32(((const mixprec_##name *)src)[i]);                                        \
        break;
        MIXPREC_ROW_(f16, MIXPREC_F16)
        MIXPREC_ROW_(bf16, MIXPREC_BF16)
        MIXPREC_ROW_(e4m3, MIXPREC_E4M3)
        MIXPREC_ROW_(e5m2, MIXPREC_E5M2)
        MIXPREC_ROW_(e4m3fnuz, MIXPREC_E4M3FNUZ)
        MIXPREC_ROW_(e5m2fnuz, MIXPREC_E5M2FNUZ)
        MIXPREC_ROW_(e4m3ieee, MIXPREC_E4M3IEEE)
        MIXPREC_ROW_(e3m4, MIXPREC_E3M4)
        MIXPREC_ROW_(e2m3, MIXPREC_E2M3)
        MIXPREC_ROW_(e3m2, MIXPREC_E3M2)
        MIXPREC_ROW_(e8m0, MIXPREC_E8M0)
        MIXPREC_ROW_(i8, MIXPREC_I8)
#undef MIXPREC_ROW_
    case MIXPREC_E2M1:
        for (i = 0; i < n; i++)
            dst[i] = mixprec_f32_from_bits_(
                mixprec_widen_((uint32_t)(((const uint8_t *)src)[i / 2] >> (i % 2 * 4)), &mixprec_layout_e2m1_));
        break;
    case MIXPREC_F64:
        for (i = 0; i < n; i++)
            dst[i] = mixprec_f32_from_bits_(mixprec_narrow_f64_(mixprec_f64_bits_(((const double *)src)[i]),
                                                                &mixprec_layout_f32_, MIXPREC_ROUND_NEAREST_EVEN,
                                                                MIXPREC_OVERFLOW_IEEE, 0));
        break;
    default: break;
    }
}

/* Round toward zero, then set the last bit if anything was lost (S. Boldo, G. Melquiond: "Emulation of a FMA and
   correctly rounded sums: proved algorithms using rounding to odd", IEEE Trans. Computers 57(4), 2008). */
static void mixprec_load_odd_c_(float *dst, const double *src, size_t n) {
    size_t i;
    for (i = 0; i < n; i++) {
        uint64_t bits = mixprec_f64_bits_(src[i]);
        uint32_t code =
            mixprec_narrow_f64_(bits, &mixprec_layout_f32_, MIXPREC_ROUND_TOWARD_ZERO, MIXPREC_OVERFLOW_IEEE, 0);
        dst[i] = mixprec_f32_from_bits_(
            code | (mixprec_f32_bits_to_f64_bits_(code) != bits && (code & 0x7FFFFFFFu) < 0x7F800000u));
    }
}

/* One number to any format but f64, the bits. */
static uint32_t mixprec_encode_f32_(float x, mixprec_dtype type, const mixprec_layout_ *to, const mixprec_how_ *how,
                                    size_t i) {
    uint32_t random = how->round == MIXPREC_ROUND_STOCHASTIC ? mixprec_random_bits(how->seed, how->index + i) : 0;
    uint32_t bits = mixprec_f32_bits_(x);
    if (type == MIXPREC_E8M0)
        return mixprec_narrow_e8m0_(mixprec_f32_bits_to_f64_bits_(bits), how->round, how->overflow, random);
    if (type == MIXPREC_I8)
        return (uint32_t)mixprec_narrow_i8_(mixprec_f32_bits_to_f64_bits_(bits), how->round, random);
    return mixprec_narrow_f32_(bits, to, how->round, how->overflow, random);
}

MIXPREC_FLATTEN_ void mixprec_store_c_(void *dst, mixprec_dtype type, const float *src, size_t n,
                                       const mixprec_how_ *how) {
    int plain = how->round == MIXPREC_ROUND_NEAREST_EVEN && how->overflow == MIXPREC_OVERFLOW_IEEE;
    const mixprec_layout_ *to = mixprec_layout_of_(type);
    size_t size = mixprec_size_of_(type), i;
    if (type == MIXPREC_F64) {
        for (i = 0; i < n; i++)
            ((double *)dst)[i] = mixprec_f64_from_bits_(mixprec_f32_bits_to_f64_bits_(mixprec_f32_bits_(src[i])));
#define MIXPREC_ROW_(name, dtype)                                                                                      \
    }                                                                                                                  \
    else if (plain && type == dtype) {                                                                                 \
        for (i = 0; i < n; i++)                                                                                        \
            ((mixprec_##name *)dst)[i] = mixprec_f32_to_##name(src[i]);
        MIXPREC_ROW_(f16, MIXPREC_F16)
        MIXPREC_ROW_(bf16, MIXPREC_BF16)
        MIXPREC_ROW_(e4m3, MIXPREC_E4M3)
        MIXPREC_ROW_(e5m2, MIXPREC_E5M2)
#undef MIXPREC_ROW_
    } else if (type == MIXPREC_E2M1) {
        for (i = 0; i < n; i += 2)
            ((uint8_t *)dst)[i / 2] =
                (uint8_t)(mixprec_encode_f32_(src[i], type, to, how, i) |
                          (i + 1 < n ? mixprec_encode_f32_(src[i + 1], type, to, how, i + 1) << 4 : 0));
    } else if (size == 2) {
        for (i = 0; i < n; i++)
            ((mixprec_f16 *)dst)[i].bits = (uint16_t)mixprec_encode_f32_(src[i], type, to, how, i);
    } else {
        for (i = 0; i < n; i++)
            ((uint8_t *)dst)[i] = (uint8_t)mixprec_encode_f32_(src[i], type, to, how, i);
    }
}

static int mixprec_unscale_c_(float *dst, const float *src, size_t n, float factor) {
    uint32_t found = 0;
    size_t i;
    for (i = 0; i < n; i++) {
        dst[i] = src[i] * factor; /* an Inf or NaN in src is one in dst: the factor is neither 0 nor Inf */
        found |= (mixprec_f32_bits_(dst[i]) & 0x7FFFFFFFu) >= 0x7F800000u;
    }
    return (int)found;
}

#ifndef MIXPREC_NO_CONVERT
/* Counts from the bit planes, and a new window: two binades above `exponent`, 13 below. */
static void mixprec_tally_window_(mixprec_tally_ *t, uint32_t exponent) {
    uint32_t bit, set;
    for (bit = 1; bit < 16; bit <<= 1)
        for (set = 0; set < 16; set++)
            if (!(set & bit))
                t->planes[set] -= t->planes[set | bit];
    for (set = 0; set < 16; set++) {
        t->stats->exponents[(t->window + set) & 0xFF] += t->planes[set];
        t->planes[set] = 0;
    }
    t->window = (exponent - 13) & 0xFF;
    t->missed = 0;
}
#endif

#ifndef MIXPREC_NO_GEMM
/* The product and the sum: fused wherever the CPU can, as every vector path does. */
#ifdef __FP_FAST_FMAF
#define MIXPREC_FMA_F32_(a, b, c) __builtin_fmaf(a, b, c)
#else
#define MIXPREC_FMA_F32_(a, b, c) ((a) * (b) + (c))
#endif
#ifdef __FP_FAST_FMA
#define MIXPREC_FMA_F64_(a, b, c) __builtin_fma(a, b, c)
#else
#define MIXPREC_FMA_F64_(a, b, c) ((a) * (b) + (c))
#endif

#define MIXPREC_TILE_ROWS_C_ 4
#define MIXPREC_TILE_COLUMNS_C_ 8

/* s += a panel of A times a panel of B, 4 x 8. */
#define MIXPREC_ACCUMULATE_C_(type, fma)                                                                               \
    static void mixprec_accumulate_##type##_c_(MIXPREC_ROUNDED_ type *s, const type *a, const type *b, size_t depth) { \
        MIXPREC_ROUNDED_ type t[MIXPREC_TILE_ROWS_C_][MIXPREC_TILE_COLUMNS_C_];                                        \
        size_t i, j;                                                                                                   \
        for (i = 0; i < MIXPREC_TILE_ROWS_C_; i++)                                                                     \
            for (j = 0; j < MIXPREC_TILE_COLUMNS_C_; j++)                                                              \
                t[i][j] = s[i * MIXPREC_TILE_COLUMNS_C_ + j];                                                          \
        for (; depth; depth--, a += MIXPREC_TILE_ROWS_C_, b += MIXPREC_TILE_COLUMNS_C_) {                              \
            MIXPREC_UNROLL_ for (i = 0; i < MIXPREC_TILE_ROWS_C_; i++)                                                 \
                MIXPREC_UNROLL_ for (j = 0; j < MIXPREC_TILE_COLUMNS_C_; j++) t[i][j] = fma(a[i], b[j], t[i][j]);      \
        }                                                                                                              \
        for (i = 0; i < MIXPREC_TILE_ROWS_C_; i++)                                                                     \
            for (j = 0; j < MIXPREC_TILE_COLUMNS_C_; j++)                                                              \
                s[i * MIXPREC_TILE_COLUMNS_C_ + j] = t[i][j];                                                          \
    }                                                                                                                  \
    static void mixprec_tile_##type##_c_(size_t rows, size_t columns, size_t depth, const type *a, const type *b,      \
                                         type *t, size_t ldt, int first) {                                             \
        for (; depth; first = 0) {                                                                                     \
            MIXPREC_ROUNDED_ type s[MIXPREC_TILE_ROWS_C_ * MIXPREC_TILE_COLUMNS_C_] = {0};                             \
            size_t chunk = mixprec_min_(depth, MIXPREC_GEMM_KBLOCK), i, j;                                             \
            mixprec_accumulate_##type##_c_(s, a, b, chunk);                                                            \
            for (i = 0; i < rows; i++)                                                                                 \
                for (j = 0; j < columns; j++) {                                                                        \
                    MIXPREC_ROUNDED_ type sum = s[i * MIXPREC_TILE_COLUMNS_C_ + j];                                    \
                    t[i * ldt + j] = first ? sum : t[i * ldt + j] + sum;                                               \
                }                                                                                                      \
            a += chunk * MIXPREC_TILE_ROWS_C_;                                                                         \
            b += chunk * MIXPREC_TILE_COLUMNS_C_;                                                                      \
            depth -= chunk;                                                                                            \
        }                                                                                                              \
    }
MIXPREC_ACCUMULATE_C_(float, MIXPREC_FMA_F32_)
MIXPREC_ACCUMULATE_C_(double, MIXPREC_FMA_F64_)
#undef MIXPREC_ACCUMULATE_C_

static void mixprec_tile_c_(size_t rows, size_t columns, size_t depth, const void *a, const void *b, void *t,
                            size_t ldt, int first, int wide) {
    if (wide)
        mixprec_tile_double_c_(rows, columns, depth, (const double *)a, (const double *)b, (double *)t, ldt, first);
    else
        mixprec_tile_float_c_(rows, columns, depth, (const float *)a, (const float *)b, (float *)t, ldt, first);
}

static void mixprec_pack_c_(void *dst, size_t width, const void *src, mixprec_dtype type, size_t ld, int along,
                            size_t count, size_t depth, int wide) {
    const size_t size = mixprec_size_of_(type), to_size = wide ? 8 : 4;
    const char *from = (const char *)src;
    char *to = (char *)dst;
    size_t i, p, q;
    for (p = 0; p < depth && along; p++)
        if (wide || type == MIXPREC_F32)
            mixprec_copy_(to + p * width * to_size, from + p * ld * size, count * size);
        else
            mixprec_load_c_((float *)dst + p * width, from + p * ld * size, type, count);
    for (i = 0; i < count && !along; i++)
        for (p = 0; p < depth; p += 16) {
            double run[16]; /* 16 elements of a row, wide or fp32 */
            size_t n = mixprec_min_(16, depth - p);
            if (wide || type == MIXPREC_F32)
                mixprec_copy_(run, from + (i * ld + p) * size, n * size);
            else
                mixprec_load_c_((float *)run, from + (i * ld + p) * size, type, n);
            for (q = 0; q < n; q++)
                if (wide)
                    ((double *)dst)[(p + q) * width + i] = run[q];
                else
                    ((float *)dst)[(p + q) * width + i] = ((float *)run)[q];
        }
    for (p = 0; p < depth; p++)
        for (i = count; i < width; i++)
            if (wide)
                ((double *)dst)[p * width + i] = 0;
            else
                ((float *)dst)[p * width + i] = 0;
}
#endif

/* ================================================================================================================== */
/* [VEC-AVX2] Kernels for AVX2 + F16C + FMA                                                                           */
/* ================================================================================================================== */

#if defined(MIXPREC_HAS_AVX2_)
#define MIXPREC_AVX2_ MIXPREC_TARGET_("avx2,f16c,fma,popcnt")

/* ---- fp32 from a dtype ---- */

/* 16 bytes of E4M3 as 16 half-precision numbers of 1/256 of their value: the exponent field keeps its place at the
   bottom of the wider one. x + (x & 0x4000) moves the sign from bit 14 to 15; adding 0x80 carries into bit 14 for NaN
   (0x7F) only, which completes an exponent of all ones. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256i mixprec_e4m3_to_half_avx2_(__m128i codes) {
    const __m256i bit14 = _mm256_set1_epi16(0x4000);
    __m256i x = _mm256_slli_epi16(_mm256_cvtepu8_epi16(codes), 7);
    x = _mm256_add_epi16(x, _mm256_and_si256(x, bit14));
    return _mm256_or_si256(x, _mm256_and_si256(_mm256_add_epi16(x, _mm256_set1_epi16(0x80)), bit14));
}

/* 8 elements from p. A NaN may stay signalling. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256 mixprec_load8_avx2_(const void *p, mixprec_dtype type) {
    switch (type) {
    case MIXPREC_F64:
        return _mm256_set_m128(_mm256_cvtpd_ps(_mm256_loadu_pd((const double *)p + 4)),
                               _mm256_cvtpd_ps(_mm256_loadu_pd((const double *)p)));
    case MIXPREC_F16: return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
    case MIXPREC_BF16:
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
    case MIXPREC_E4M3: {
        __m256i half = mixprec_e4m3_to_half_avx2_(_mm_loadl_epi64((const __m128i *)p));
        return _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(half)), _mm256_set1_ps(256.0f));
    }
    case MIXPREC_E5M2:
        return _mm256_cvtph_ps(_mm_unpacklo_epi8(_mm_setzero_si128(), _mm_loadl_epi64((const __m128i *)p)));
    default: break;
    }
    return _mm256_loadu_ps((const float *)p);
}

/* The formats of MIXPREC_MORE_FORMATS_: like E4M3 by way of half precision, with the layout as data. E5M2FNUZ has a
   finite number where that has Inf; it, E8M0 and int8 take the portable path. */
MIXPREC_AVX2_ static void mixprec_load_more_avx2_(float *dst, const void *src, mixprec_dtype type, size_t n) {
    const mixprec_layout_ *from = mixprec_layout_of_(type);
    size_t i;
    __m256i sign_code, max_code, fnuz;
    __m128i shift, sign_shift;
    __m256 scale;
    if (!from || type == MIXPREC_E5M2FNUZ) {
        mixprec_load_c_(dst, src, type, n);
        return;
    }
    sign_code = _mm256_set1_epi16((short)from->sign_code);
    max_code = _mm256_set1_epi16((short)from->max_code);
    fnuz = _mm256_set1_epi16(from->special == MIXPREC_FNUZ_ ? -1 : 0);
    shift = _mm_cvtsi32_si128(10 - from->mantissa_bits);
    sign_shift = _mm_cvtsi32_si128(type == MIXPREC_E2M1 ? 12 : type == MIXPREC_E2M3 || type == MIXPREC_E3M2 ? 10 : 8);
    scale = _mm256_set1_ps(mixprec_f32_from_bits_((uint32_t)(127 + 15 - from->bias) << 23));
    for (i = 0; i < n; i += 16) {
        __m128i bytes;
        __m256i code, magnitude, sign, half, nan;
        if (type == MIXPREC_E2M1) {
            const __m128i low = _mm_set1_epi8(0xF);
            bytes = _mm_loadl_epi64((const __m128i *)(const void *)((const uint8_t *)src + i / 2));
            bytes = _mm_unpacklo_epi8(_mm_and_si128(bytes, low), _mm_and_si128(_mm_srli_epi16(bytes, 4), low));
        } else
            bytes = _mm_loadu_si128((const __m128i *)(const void *)((const uint8_t *)src + i));
        code = _mm256_cvtepu8_epi16(bytes);
        sign = _mm256_and_si256(code, sign_code);
        magnitude = _mm256_and_si256(code, _mm256_sub_epi16(sign_code, _mm256_set1_epi16(1)));
        half = _mm256_or_si256(_mm256_sll_epi16(magnitude, shift), _mm256_sll_epi16(sign, sign_shift));
        half =
            _mm256_or_si256(half, _mm256_and_si256(_mm256_cmpgt_epi16(magnitude, max_code), _mm256_set1_epi16(0x7C00)));
        nan = _mm256_and_si256(_mm256_cmpeq_epi16(code, sign_code), fnuz);
        half = _mm256_blendv_epi8(half, _mm256_set1_epi16(0x7E00), nan);
        _mm256_storeu_ps(dst + i, _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(half)), scale));
        _mm256_storeu_ps(dst + i + 8, _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(half, 1)), scale));
    }
}

MIXPREC_AVX2_ static void mixprec_load_avx2_(float *dst, const void *src, mixprec_dtype type, size_t n) {
    const __m256i zero = _mm256_setzero_si256();
    size_t i;
    switch (type) {
    case MIXPREC_F64:
        for (i = 0; i < n; i += 8)
            _mm256_storeu_ps(dst + i, mixprec_load8_avx2_((const double *)src + i, MIXPREC_F64));
        break;
    case MIXPREC_F16:
        for (i = 0; i < n; i += 32) {
            __m256 x0 = mixprec_load8_avx2_((const mixprec_f16 *)src + i, MIXPREC_F16);
            __m256 x1 = mixprec_load8_avx2_((const mixprec_f16 *)src + i + 8, MIXPREC_F16);
            __m256 x2 = mixprec_load8_avx2_((const mixprec_f16 *)src + i + 16, MIXPREC_F16);
            __m256 x3 = mixprec_load8_avx2_((const mixprec_f16 *)src + i + 24, MIXPREC_F16);
            _mm256_storeu_ps(dst + i, x0);
            _mm256_storeu_ps(dst + i + 8, x1);
            _mm256_storeu_ps(dst + i + 16, x2);
            _mm256_storeu_ps(dst + i + 24, x3);
        }
        break;
    case MIXPREC_BF16:
        for (i = 0; i < n; i += 16) {
            /* Quiet NaNs while there are 16 to a register. */
            __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)((const mixprec_bf16 *)src + i));
            __m256i nan = _mm256_cmpgt_epi16(_mm256_and_si256(x, _mm256_set1_epi16(0x7FFF)), _mm256_set1_epi16(0x7F80));
            x = _mm256_or_si256(x, _mm256_and_si256(nan, _mm256_set1_epi16(0x40)));
            x = _mm256_permute4x64_epi64(x, 0xD8);
            _mm256_storeu_ps(dst + i, _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, x)));
            _mm256_storeu_ps(dst + i + 8, _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, x)));
        }
        break;
    case MIXPREC_E4M3:
        for (i = 0; i < n; i += 16) {
            const __m256 scale = _mm256_set1_ps(256.0f);
            __m256i half = mixprec_e4m3_to_half_avx2_(
                _mm_loadu_si128((const __m128i *)(const void *)((const mixprec_e4m3 *)src + i)));
            _mm256_storeu_ps(dst + i, _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(half)), scale));
            _mm256_storeu_ps(dst + i + 8, _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(half, 1)), scale));
        }
        break;
    case MIXPREC_E5M2:
        for (i = 0; i < n; i += 16) {
            __m128i x = _mm_loadu_si128((const __m128i *)(const void *)((const mixprec_e5m2 *)src + i));
            _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_unpacklo_epi8(_mm256_castsi256_si128(zero), x)));
            _mm256_storeu_ps(dst + i + 8, _mm256_cvtph_ps(_mm_unpackhi_epi8(_mm256_castsi256_si128(zero), x)));
        }
        break;
    default: mixprec_load_more_avx2_(dst, src, type, n); break;
    }
}

/* Four doubles to nearest; then back off where that was away from zero, and mark what was inexact in the last bit. Also
   turns the Inf of an overflow into the largest finite number, which is odd. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m128 mixprec_odd4_avx2_(__m256d x) {
    const __m256i mask = _mm256_set1_epi64x(0x7FFFFFFFFFFFFFFF), infinity = _mm256_set1_epi64x((int64_t)0x7FF << 52);
    const __m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
    __m128 y = _mm256_cvtpd_ps(x);
    __m256i back = _mm256_castpd_si256(_mm256_cvtps_pd(y)), from = _mm256_castpd_si256(x);
    __m256i magnitude = _mm256_and_si256(from, mask);
    __m256i away = _mm256_andnot_si256(_mm256_cmpgt_epi64(magnitude, infinity),
                                       _mm256_cmpgt_epi64(_mm256_and_si256(back, mask), magnitude));
    __m256i exact = _mm256_cmpeq_epi64(back, from);
    __m128i away4 = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(away, even));
    __m128i exact4 = _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(exact, even));
    __m128i bits = _mm_add_epi32(_mm_castps_si128(y), away4);
    return _mm_castsi128_ps(_mm_or_si128(bits, _mm_andnot_si128(exact4, _mm_set1_epi32(1))));
}

MIXPREC_AVX2_ static void mixprec_load_odd_avx2_(float *dst, const double *src, size_t n) {
    size_t i;
    for (i = 0; i < n; i += 4)
        _mm_storeu_ps(dst + i, mixprec_odd4_avx2_(_mm256_loadu_pd(src + i)));
}

/* ---- a dtype from fp32 ---- */

/* Codes in the low half of each 32-bit lane: 16 of them packed to 16 bits. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_pack16_avx2_(void *dst, __m256i c0, __m256i c1) {
    _mm256_storeu_si256((__m256i *)dst, _mm256_permute4x64_epi64(_mm256_packus_epi32(c0, c1), 0xD8));
}

/* Codes without signs in the low byte of each lane, and the numbers they came from: 32 bytes. Packing with signed
   saturation carries the sign bit of a float all the way to bit 7. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_pack8_avx2_(void *dst, const __m256i c[4], const __m256i x[4]) {
    __m256i code = _mm256_packus_epi16(_mm256_packus_epi32(c[0], c[1]), _mm256_packus_epi32(c[2], c[3]));
    __m256i sign = _mm256_packs_epi16(_mm256_packs_epi32(x[0], x[1]), _mm256_packs_epi32(x[2], x[3]));
    code = _mm256_or_si256(code, _mm256_and_si256(sign, _mm256_set1_epi8((char)0x80)));
    _mm256_storeu_si256((__m256i *)dst, _mm256_permutevar8x32_epi32(code, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
}

/* As integers, the magnitudes of floats order as the numbers do, with NaN on top: comparing and limiting them that way,
   -ffast-math cannot assume NaN away. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256i mixprec_magnitude_avx2_(__m256i bits) {
    return _mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFFFF));
}

/* fp8 to nearest even, from a magnitude limited to `limit`: adding 2^(E + 23 - m) to |x| of exponent E leaves |x| in
   units of the last place in the low bits of the sum, rounded by the addition; the exponent's part of the code is added
   as an integer. The low bits of `magic` make the exponent's bias come out as zero modulo 256. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256i mixprec_encode_fp8_avx2_(__m256i magnitude, mixprec_dtype type) {
    const int mantissa = type == MIXPREC_E4M3 ? 3 : 2, least = type == MIXPREC_E4M3 ? 127 - 6 : 127 - 14;
    const __m256i magic = _mm256_set1_epi32(((23 - mantissa) << 23) + (-least * (1 << mantissa) & 0xFF));
    __m256i exponent =
        _mm256_max_epi32(_mm256_and_si256(magnitude, _mm256_set1_epi32(0x7F800000)), _mm256_set1_epi32(least << 23));
    __m256i sum = _mm256_castps_si256(
        _mm256_add_ps(_mm256_castsi256_ps(magnitude), _mm256_castsi256_ps(_mm256_add_epi32(exponent, magic))));
    sum = _mm256_add_epi32(sum, _mm256_srli_epi32(exponent, 23 - mantissa));
    return _mm256_and_si256(sum, _mm256_set1_epi32(0xFF));
}

/* bfloat16 to nearest even, not NaN. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256i mixprec_encode_bf16_avx2_(__m256i x) {
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(x, 16), _mm256_set1_epi32(1));
    return _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(x, _mm256_set1_epi32(0x7FFF)), odd), 16);
}

/* Any format, mode and policy: mixprec_narrow_f32_ eight at a time. */
typedef struct mixprec_encoder_avx2_ {
    __m256i bias, shift, min_shift, mantissa_bits; /* shift: of a normal number */
    __m256i threshold_positive, threshold_negative, odd, sticky;
    __m256i max_code, overflow_positive, overflow_negative, inf_code, nan_code, payload, sign_code;
    int stochastic, special;
} mixprec_encoder_avx2_;

MIXPREC_AVX2_ static mixprec_encoder_avx2_ mixprec_encoder_of_avx2_(mixprec_dtype type, const mixprec_how_ *how) {
    const mixprec_layout_ *to = mixprec_layout_of_(type);
    mixprec_encoder_avx2_ e;
    int keep = how->overflow != MIXPREC_OVERFLOW_IEEE;
    e.stochastic = how->round == MIXPREC_ROUND_STOCHASTIC;
    e.bias = _mm256_set1_epi32(to->bias - 127);
    e.shift = _mm256_set1_epi32(23 - to->mantissa_bits);
    e.min_shift = _mm256_set1_epi32(24 - to->mantissa_bits);
    e.mantissa_bits = _mm256_set1_epi32(to->mantissa_bits);
    e.threshold_positive = _mm256_set1_epi32((int)mixprec_round_threshold_(how->round, 0, 0, 0));
    e.threshold_negative = _mm256_set1_epi32((int)mixprec_round_threshold_(how->round, 1, 0, 0));
    e.odd = _mm256_set1_epi32(how->round == MIXPREC_ROUND_NEAREST_EVEN);
    e.sticky = _mm256_set1_epi32(!e.stochastic);
    e.max_code = _mm256_set1_epi32((int)to->max_code);
    e.overflow_positive =
        _mm256_set1_epi32((int)(keep || mixprec_overflow_to_max_(how->round, 0) ? to->max_code : to->overflow_code));
    e.overflow_negative =
        _mm256_set1_epi32((int)(keep || mixprec_overflow_to_max_(how->round, 1) ? to->max_code : to->overflow_code));
    e.inf_code =
        _mm256_set1_epi32((int)(how->overflow == MIXPREC_OVERFLOW_SATURATE ? to->max_code : to->overflow_code));
    e.nan_code = _mm256_set1_epi32((int)to->nan_code);
    e.payload = _mm256_set1_epi32(to->special == MIXPREC_IEEE_ ? (1 << to->mantissa_bits) - 1 : 0);
    e.special = to->special;
    e.sign_code = _mm256_set1_epi32((int)to->sign_code);
    return e;
}

/* The codes with their signs. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256i mixprec_encode_any_avx2_(const mixprec_encoder_avx2_ *e, __m256i bits,
                                                                     __m256i random) {
    const __m256i one = _mm256_set1_epi32(1), top = _mm256_set1_epi32((int)0x80000000u);
    __m256i negative = _mm256_srai_epi32(bits, 31), magnitude = _mm256_andnot_si256(top, bits);
    __m256i exponent = _mm256_srli_epi32(magnitude, 23),
            field = _mm256_and_si256(magnitude, _mm256_set1_epi32(0x7FFFFF));
    __m256i subnormal = _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256());
    __m256i mantissa = _mm256_or_si256(field, _mm256_andnot_si256(subnormal, _mm256_set1_epi32(0x800000)));
    __m256i target = _mm256_add_epi32(_mm256_sub_epi32(exponent, subnormal), e->bias);
    __m256i shift = _mm256_max_epi32(e->shift, _mm256_sub_epi32(e->min_shift, target));
    __m256i kept = _mm256_srlv_epi32(mantissa, shift), fraction, threshold, code, lost, special;
    target = _mm256_max_epi32(target, one);
    /* A shift by 32 or more, or by a negative count, gives 0. */
    fraction = _mm256_or_si256(_mm256_sllv_epi32(mantissa, _mm256_sub_epi32(_mm256_set1_epi32(32), shift)),
                               _mm256_srlv_epi32(mantissa, _mm256_sub_epi32(shift, _mm256_set1_epi32(32))));
    lost = _mm256_and_si256(_mm256_cmpgt_epi32(shift, _mm256_set1_epi32(31)),
                            _mm256_cmpgt_epi32(mantissa, _mm256_setzero_si256()));
    fraction = _mm256_or_si256(fraction, _mm256_and_si256(lost, e->sticky));
    threshold = _mm256_blendv_epi8(e->threshold_positive, e->threshold_negative, negative);
    threshold = _mm256_add_epi32(threshold, _mm256_and_si256(kept, e->odd));
    if (e->stochastic)
        threshold = random;
    /* Unsigned comparison: the sum is below the threshold when it carried out. */
    kept = _mm256_sub_epi32(kept, _mm256_cmpgt_epi32(_mm256_xor_si256(threshold, top),
                                                     _mm256_xor_si256(_mm256_add_epi32(fraction, threshold), top)));
    code = _mm256_add_epi32(_mm256_sllv_epi32(_mm256_sub_epi32(target, one), e->mantissa_bits), kept);
    code = _mm256_blendv_epi8(code, _mm256_blendv_epi8(e->overflow_positive, e->overflow_negative, negative),
                              _mm256_cmpgt_epi32(code, e->max_code));
    special = _mm256_and_si256(_mm256_srlv_epi32(field, e->shift), e->payload);
    special = _mm256_blendv_epi8(_mm256_or_si256(e->nan_code, special), e->inf_code,
                                 _mm256_cmpeq_epi32(field, _mm256_setzero_si256()));
    code = _mm256_blendv_epi8(code, special, _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7F7FFFFF)));
    if (e->special == MIXPREC_FNUZ_) /* no -0 */
        negative = _mm256_andnot_si256(_mm256_cmpeq_epi32(code, _mm256_setzero_si256()), negative);
    else if (e->special == MIXPREC_FINITE_) /* a NaN becomes +max */
        negative = _mm256_andnot_si256(_mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7F800000)), negative);
    return _mm256_or_si256(code, _mm256_and_si256(negative, e->sign_code));
}

/* mixprec_random_bits of the 64 indices from an even one: both words of 32 blocks. Four vectors of blocks at a time, for
   each round waits for the one before it. */
typedef struct mixprec_random_avx2_ {
    __m256i key[12]; /* what is added to the two words before the first round and after every fourth */
} mixprec_random_avx2_;

MIXPREC_AVX2_ static mixprec_random_avx2_ mixprec_random_of_avx2_(uint64_t seed) {
    mixprec_random_avx2_ random;
    uint32_t key[3], step;
    key[0] = (uint32_t)seed;
    key[1] = (uint32_t)(seed >> 32);
    key[2] = 0x1BD11BDAu ^ key[0] ^ key[1];
    for (step = 0; step <= 5; step++) {
        random.key[2 * step] = _mm256_set1_epi32((int)key[step % 3]);
        random.key[2 * step + 1] = _mm256_set1_epi32((int)(key[(step + 1) % 3] + step));
    }
    return random;
}

MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256i mixprec_rotate_avx2_(__m256i x, const int left) {
    if (left == 16)
        return _mm256_shufflehi_epi16(_mm256_shufflelo_epi16(x, 0xB1), 0xB1);
    return _mm256_or_si256(_mm256_slli_epi32(x, left), _mm256_srli_epi32(x, 32 - left));
}

MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_random64_avx2_(__m256i words[8], const mixprec_random_avx2_ *random,
                                                                uint64_t index) {
    const __m256i top = _mm256_set1_epi32((int)0x80000000u);
    const uint64_t counter = index >> 1;
    const __m256i from = _mm256_set1_epi32((int)(uint32_t)counter);
    __m256i x0[4], x1[4];
    int j;
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
        __m256i low = _mm256_add_epi32(
            from, _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(8 * j)));
        __m256i carry = _mm256_cmpgt_epi32(_mm256_xor_si256(from, top), _mm256_xor_si256(low, top));
        __m256i high = _mm256_sub_epi32(_mm256_set1_epi32((int)(uint32_t)(counter >> 32)), carry);
        high = _mm256_andnot_si256(top, high); /* half an index has 63 bits */
        x0[j] = _mm256_add_epi32(low, random->key[0]);
        x1[j] = _mm256_add_epi32(high, random->key[1]);
    }
#define MIXPREC_MIX_(rotation)                                                                                         \
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {                                                                          \
        x0[j] = _mm256_add_epi32(x0[j], x1[j]);                                                                        \
        x1[j] = _mm256_xor_si256(mixprec_rotate_avx2_(x1[j], rotation), x0[j]);                                        \
    }
#define MIXPREC_INJECT_(step)                                                                                          \
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {                                                                          \
        x0[j] = _mm256_add_epi32(x0[j], random->key[2 * (step)]);                                                      \
        x1[j] = _mm256_add_epi32(x1[j], random->key[2 * (step) + 1]);                                                  \
    }
#define MIXPREC_ODD_ROUNDS_(step)                                                                                      \
    MIXPREC_MIX_(13) MIXPREC_MIX_(15) MIXPREC_MIX_(26) MIXPREC_MIX_(6) MIXPREC_INJECT_(step)
#define MIXPREC_EVEN_ROUNDS_(step)                                                                                     \
    MIXPREC_MIX_(17) MIXPREC_MIX_(29) MIXPREC_MIX_(16) MIXPREC_MIX_(24) MIXPREC_INJECT_(step)
    MIXPREC_ODD_ROUNDS_(1)
    MIXPREC_EVEN_ROUNDS_(2)
    MIXPREC_ODD_ROUNDS_(3)
    MIXPREC_EVEN_ROUNDS_(4)
    MIXPREC_ODD_ROUNDS_(5)
#undef MIXPREC_MIX_
#undef MIXPREC_INJECT_
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
        __m256i low = _mm256_unpacklo_epi32(x0[j], x1[j]), high = _mm256_unpackhi_epi32(x0[j], x1[j]);
        words[2 * j] = _mm256_permute2x128_si256(low, high, 0x20);
        words[2 * j + 1] = _mm256_permute2x128_si256(low, high, 0x31);
    }
}

/* 32 elements, any way. */
MIXPREC_AVX2_ static void mixprec_store32_any_avx2_(void *dst, mixprec_dtype type, const float *src,
                                                    const mixprec_encoder_avx2_ *encoder, const uint32_t *random) {
    __m256i c[4];
    int j;
    for (j = 0; j < 4; j++)
        c[j] = mixprec_encode_any_avx2_(encoder, _mm256_castps_si256(_mm256_loadu_ps(src + 8 * j)),
                                        _mm256_loadu_si256((const __m256i *)(const void *)(random + 8 * j)));
    if (mixprec_size_of_(type) == 2) {
        mixprec_pack16_avx2_(dst, c[0], c[1]);
        mixprec_pack16_avx2_((mixprec_f16 *)dst + 16, c[2], c[3]);
    } else {
        const __m256i none[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                                 _mm256_setzero_si256()};
        if (type == MIXPREC_E2M1) {
            __m256i codes;
            mixprec_pack8_avx2_(&codes, c, none);
            codes = _mm256_maddubs_epi16(codes, _mm256_set1_epi16(0x1001)); /* low + 16 high */
            codes = _mm256_permute4x64_epi64(_mm256_packus_epi16(codes, codes), 0x08);
            _mm_storeu_si128((__m128i *)dst, _mm256_castsi256_si128(codes));
        } else
            mixprec_pack8_avx2_(dst, c, none);
    }
}

/* Integers to nearest even: limited first, so that the conversion cannot overflow; NaN becomes 0. */
MIXPREC_AVX2_ static void mixprec_store_i8_avx2_(int8_t *dst, const float *src, size_t n) {
    size_t i;
    int j;
    for (i = 0; i < n; i += 32) {
        __m256i c[4], bytes;
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
            __m256 x = _mm256_loadu_ps(src + i + 8 * j);
            __m256i nan =
                _mm256_cmpgt_epi32(mixprec_magnitude_avx2_(_mm256_castps_si256(x)), _mm256_set1_epi32(0x7F800000));
            x = _mm256_castsi256_ps(_mm256_andnot_si256(nan, _mm256_castps_si256(x)));
            x = _mm256_max_ps(_mm256_min_ps(x, _mm256_set1_ps(127.0f)), _mm256_set1_ps(-128.0f));
            c[j] = _mm256_cvtps_epi32(x);
        }
        bytes = _mm256_packs_epi16(_mm256_packs_epi32(c[0], c[1]), _mm256_packs_epi32(c[2], c[3]));
        bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        _mm256_storeu_si256((__m256i *)(void *)(dst + i), bytes);
    }
}

/* The bits of the largest number that may enter the short sequences: the largest finite one to saturate, else the first
   whose code is that of an overflow; 480 has E4M3's code of NaN. */
MIXPREC_FORCE_INLINE_ int mixprec_limit_(mixprec_dtype type, int saturate) {
    switch (type) {
    case MIXPREC_F16: return 0x477FE000;                          /* 65504 */
    case MIXPREC_BF16: return 0x7F7F0000;                         /* 0x1.FEp127 */
    case MIXPREC_E4M3: return saturate ? 0x43E00000 : 0x43F00000; /* 448, 480 */
    default: return saturate ? 0x47600000 : 0x47800000;           /* 57344, 65536 */
    }
}

/* To nearest even, IEEE or saturating. 32 elements with a NaN go to the general encoder, unless the short sequence
   handles it: f16's conversion does, and E4M3's limit. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_store_nearest_avx2_(void *dst, mixprec_dtype type, const float *src,
                                                                     size_t n, int saturate, const mixprec_how_ *how) {
    const __m256i limit = _mm256_set1_epi32(mixprec_limit_(type, saturate));
    mixprec_encoder_avx2_ encoder = mixprec_encoder_of_avx2_(type, how);
    size_t i;
    int j;
    for (i = 0; i < n; i += 32) {
        __m256i x[4], magnitude[4], c[4];
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] =
            _mm256_loadu_si256((const __m256i *)(const void *)(src + i + 8 * j));
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) magnitude[j] = mixprec_magnitude_avx2_(x[j]);
        if (saturate || type == MIXPREC_BF16 || type == MIXPREC_E5M2) {
            __m256i largest = _mm256_max_epi32(_mm256_max_epi32(magnitude[0], magnitude[1]),
                                               _mm256_max_epi32(magnitude[2], magnitude[3]));
            if (_mm256_movemask_epi8(_mm256_cmpgt_epi32(largest, _mm256_set1_epi32(0x7F800000)))) {
                mixprec_store32_any_avx2_((char *)dst + i * mixprec_size_of_(type), type, src + i, &encoder,
                                          (const uint32_t *)(const void *)(src + i));
                continue;
            }
        }
        if (saturate || type == MIXPREC_E4M3 || type == MIXPREC_E5M2)
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) magnitude[j] = _mm256_min_epi32(magnitude[j], limit);
        if (type == MIXPREC_F16 || type == MIXPREC_BF16) {
            if (saturate)
                MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] =
                    _mm256_or_si256(_mm256_andnot_si256(_mm256_set1_epi32(0x7FFFFFFF), x[j]), magnitude[j]);
            if (type == MIXPREC_F16) {
                MIXPREC_UNROLL_ for (j = 0; j < 4; j++)
                    _mm_storeu_si128((__m128i *)(void *)((mixprec_f16 *)dst + i + 8 * j),
                                     _mm256_cvtps_ph(_mm256_castsi256_ps(x[j]), _MM_FROUND_TO_NEAREST_INT));
                continue;
            }
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) c[j] = mixprec_encode_bf16_avx2_(x[j]);
            mixprec_pack16_avx2_((mixprec_bf16 *)dst + i, c[0], c[1]);
            mixprec_pack16_avx2_((mixprec_bf16 *)dst + i + 16, c[2], c[3]);
            continue;
        }
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) c[j] = mixprec_encode_fp8_avx2_(magnitude[j], type);
        mixprec_pack8_avx2_((mixprec_e4m3 *)dst + i, c, x);
    }
}

/* What stochastic rounding needs for the numbers that a format holds, without its general encoder: the limits between
   which |x|, as bits, must lie, and the places. */
typedef struct mixprec_places_ {
    int direct;                  /* 0: the general encoder for all */
    int32_t largest;             /* finite number of the format */
    int32_t least;               /* normal number; 0 where rounding is the same below */
    int32_t tiny;                /* nonzero numbers below lie wholly beyond the 32 bits that the random ones meet */
    int32_t shift, min_exponent; /* of a normal number: the bits that go; biased fp32 exponent */
} mixprec_places_;

static mixprec_places_ mixprec_places_of_(mixprec_dtype type) {
    const mixprec_layout_ *to = mixprec_layout_of_(type);
    mixprec_places_ p;
    p.direct = to->special != MIXPREC_FNUZ_ && (to->sign_code == 0x80u || to->sign_code == 0x8000u);
    p.largest = (int32_t)mixprec_widen_(to->max_code, to);
    p.shift = 23 - to->mantissa_bits;
    p.min_exponent = 128 - to->bias;
    p.least = to->bias == 127 ? 0 : p.min_exponent << 23;
    p.tiny = to->bias == 127 ? 0 : (p.min_exponent + p.shift - 31) << 23;
    return p;
}

/* Stochastic rounding of 32 numbers, or nothing and 0 when one of them is Inf, NaN, too large or tiny. Of a normal
   number with s bits to lose, |x| as an integer plus the upper s random bits carries into the code when fraction and
   random bits carry out of 32 bits in mixprec_rounded_; the same holds for a subnormal one once the leading bit is set
   and s grows by the distance of the exponents. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ int mixprec_store32_stochastic_avx2_(void *dst, int wide, const float *src,
                                                                         const mixprec_places_ *p,
                                                                         const __m256i random[4]) {
    const __m256i shift = _mm256_set1_epi32(p->shift), rest = _mm256_set1_epi32(32 - p->shift);
    __m256i x[4], magnitude[4], c[4], largest, smallest;
    int j;
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] = _mm256_loadu_si256((const __m256i *)(const void *)(src + 8 * j));
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) magnitude[j] = mixprec_magnitude_avx2_(x[j]);
    largest =
        _mm256_max_epi32(_mm256_max_epi32(magnitude[0], magnitude[1]), _mm256_max_epi32(magnitude[2], magnitude[3]));
    if (_mm256_movemask_epi8(_mm256_cmpgt_epi32(largest, _mm256_set1_epi32(p->largest))))
        return 0;
    smallest =
        _mm256_min_epi32(_mm256_min_epi32(magnitude[0], magnitude[1]), _mm256_min_epi32(magnitude[2], magnitude[3]));
    if (!_mm256_movemask_epi8(_mm256_cmpgt_epi32(_mm256_set1_epi32(p->least), smallest))) {
        const __m256i bias = _mm256_set1_epi32(p->least ? (p->min_exponent - 1) << (23 - p->shift) : 0);
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
            c[j] = _mm256_add_epi32(magnitude[j], _mm256_srlv_epi32(random[j], rest));
            c[j] = _mm256_sub_epi32(_mm256_srlv_epi32(c[j], shift), bias);
        }
    } else {
        const __m256i tiny = _mm256_set1_epi32(p->tiny), zero = _mm256_setzero_si256();
        const __m256i min_exponent = _mm256_set1_epi32(p->min_exponent), width = _mm256_set1_epi32(32);
        if (_mm256_movemask_epi8(_mm256_cmpgt_epi32(tiny, smallest))) {
            __m256i lost = zero;
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) lost =
                _mm256_or_si256(lost, _mm256_and_si256(_mm256_cmpgt_epi32(tiny, magnitude[j]), magnitude[j]));
            if (!_mm256_testz_si256(lost, lost))
                return 0;
        }
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
            __m256i exponent = _mm256_srli_epi32(magnitude[j], 23), target = _mm256_max_epi32(exponent, min_exponent);
            __m256i count = _mm256_add_epi32(_mm256_sub_epi32(target, exponent), shift);
            __m256i mantissa = _mm256_or_si256(_mm256_and_si256(magnitude[j], _mm256_set1_epi32(0x7FFFFF)),
                                               _mm256_set1_epi32(0x800000));
            mantissa = _mm256_add_epi32(mantissa, _mm256_srlv_epi32(random[j], _mm256_sub_epi32(width, count)));
            mantissa = _mm256_andnot_si256(_mm256_cmpeq_epi32(magnitude[j], zero), _mm256_srlv_epi32(mantissa, count));
            target = _mm256_sllv_epi32(_mm256_sub_epi32(target, min_exponent),
                                       _mm256_sub_epi32(_mm256_set1_epi32(23), shift));
            c[j] = _mm256_add_epi32(mantissa, target);
        }
    }
    if (wide) {
        const __m256i top = _mm256_set1_epi16((short)0x8000);
        __m256i sign = _mm256_and_si256(_mm256_packs_epi32(x[0], x[1]), top);
        __m256i code = _mm256_or_si256(_mm256_packus_epi32(c[0], c[1]), sign);
        _mm256_storeu_si256((__m256i *)dst, _mm256_permute4x64_epi64(code, 0xD8));
        sign = _mm256_and_si256(_mm256_packs_epi32(x[2], x[3]), top);
        code = _mm256_or_si256(_mm256_packus_epi32(c[2], c[3]), sign);
        _mm256_storeu_si256((__m256i *)dst + 1, _mm256_permute4x64_epi64(code, 0xD8));
    } else
        mixprec_pack8_avx2_(dst, c, x);
    return 1;
}

/* Each block of the generator is computed once, though an odd index begins with the second word of one. */
MIXPREC_AVX2_ static void mixprec_store_stochastic_avx2_(void *dst, mixprec_dtype type, const float *src, size_t n,
                                                         const mixprec_how_ *how) {
    const mixprec_encoder_avx2_ encoder = mixprec_encoder_of_avx2_(type, how);
    const mixprec_random_avx2_ generator = mixprec_random_of_avx2_(how->seed);
    const mixprec_places_ places = mixprec_places_of_(type);
    const uint64_t odd = how->index & 1;
    __m256i last = _mm256_set1_epi32((int)mixprec_random_bits(how->seed, how->index));
    size_t i, k;
    int j;
    for (i = 0; i < n; i += 64) {
        __m256i random[8];
        mixprec_random64_avx2_(random, &generator, how->index + i + odd);
        if (odd)
            MIXPREC_UNROLL_ for (j = 0; j < 8; j++) {
                __m256i words = random[j];
                random[j] = _mm256_permutevar8x32_epi32(_mm256_blend_epi32(words, last, 0x80),
                                                        _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6));
                last = words;
            }
        for (k = 0; k < 64 && i + k < n; k += 32) {
            char *to = (char *)dst + mixprec_bytes_of_(type, i + k);
            if (!places.direct || !mixprec_store32_stochastic_avx2_(to, mixprec_size_of_(type) == 2, src + i + k,
                                                                    &places, random + k / 8)) {
                uint32_t words[32];
                MIXPREC_UNROLL_ for (j = 0; j < 4; j++)
                    _mm256_storeu_si256((__m256i *)(void *)(words + 8 * j), random[k / 8 + (size_t)j]);
                mixprec_store32_any_avx2_(to, type, src + i + k, &encoder, words);
            }
        }
    }
}

MIXPREC_AVX2_ static void mixprec_store_avx2_(void *dst, mixprec_dtype type, const float *src, size_t n,
                                              const mixprec_how_ *how) {
    int nearest = how->round == MIXPREC_ROUND_NEAREST_EVEN, saturate = how->overflow == MIXPREC_OVERFLOW_SATURATE;
    size_t i;
    if (type == MIXPREC_F64) {
        for (i = 0; i < n; i += 4)
            _mm256_storeu_pd((double *)dst + i, _mm256_cvtps_pd(_mm_loadu_ps(src + i)));
        return;
    }
    if (type == MIXPREC_I8 && nearest) {
        mixprec_store_i8_avx2_((int8_t *)dst, src, n);
        return;
    }
    if (nearest && how->overflow != MIXPREC_OVERFLOW_SATURATE_KEEP_INF) {
        switch (type) {
#define MIXPREC_ROW_(dtype)                                                                                            \
    case dtype:                                                                                                        \
        if (saturate)                                                                                                  \
            mixprec_store_nearest_avx2_(dst, dtype, src, n, 1, how);                                                   \
        else                                                                                                           \
            mixprec_store_nearest_avx2_(dst, dtype, src, n, 0, how);                                                   \
        return;
            MIXPREC_ROW_(MIXPREC_F16)
            MIXPREC_ROW_(MIXPREC_BF16)
            MIXPREC_ROW_(MIXPREC_E4M3)
            MIXPREC_ROW_(MIXPREC_E5M2)
#undef MIXPREC_ROW_
        default: break;
        }
    }
    if (mixprec_layout_of_(type) && how->round == MIXPREC_ROUND_STOCHASTIC) {
        mixprec_store_stochastic_avx2_(dst, type, src, n, how);
    } else if (mixprec_layout_of_(type)) {
        mixprec_encoder_avx2_ encoder = mixprec_encoder_of_avx2_(type, how);
        for (i = 0; i < n; i += 32)
            mixprec_store32_any_avx2_((char *)dst + mixprec_bytes_of_(type, i), type, src + i, &encoder,
                                      (const uint32_t *)(const void *)(src + i));
    } else
        mixprec_store_c_(dst, type, src, n, how);
}

MIXPREC_AVX2_ static int mixprec_unscale_avx2_(float *dst, const float *src, size_t n, float factor) {
    const __m256i exponent = _mm256_set1_epi32(0x7F800000);
    __m256i found = _mm256_setzero_si256();
    size_t i;
    for (i = 0; i < n; i += 8) {
        __m256 x = _mm256_mul_ps(_mm256_loadu_ps(src + i), _mm256_set1_ps(factor));
        _mm256_storeu_ps(dst + i, x);
        found =
            _mm256_or_si256(found, _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_castps_si256(x), exponent), exponent));
    }
    return !_mm256_testz_si256(found, found);
}

#ifndef MIXPREC_NO_CONVERT
/* ---- statistics ---- */

/* The exponents of a group that are not in the window. The window moves when there are many. */
MIXPREC_NOINLINE_ void mixprec_tally_others_(mixprec_tally_ *t, const uint8_t *exponents, uint64_t others) {
    uint32_t largest = 0;
    size_t i;
    for (i = 0; i < MIXPREC_UNIT_; i++) {
        uint64_t other = others >> i & 1;
        t->stats->exponents[exponents[i]] += other;
        t->missed += other;
        largest = exponents[i] > largest ? exponents[i] : largest;
    }
    if (t->missed > 256)
        mixprec_tally_window_(t, largest);
}

/* New extremes as fp32 bits; min_nonzero may be 0 for none. */
static void mixprec_tally_range_(mixprec_tally_ *t, uint32_t amax, uint32_t min_nonzero) {
    uint32_t high = (uint32_t)t->max >> 23, low = (uint32_t)(t->min_normal >> 23) - 1;
    uint64_t bits = mixprec_f32_bits_to_f64_bits_(amax);
    t->amax = bits > t->amax ? bits : t->amax;
    bits = mixprec_f32_bits_to_f64_bits_(min_nonzero);
    t->min_nonzero = min_nonzero && bits < t->min_nonzero ? bits : t->min_nonzero;
    high = high < MIXPREC_SQUARES_BELOW_ >> 23 ? high : MIXPREC_SQUARES_BELOW_ >> 23;
    low = low > (MIXPREC_SQUARES_FROM_ >> 23) - 1 ? low : (MIXPREC_SQUARES_FROM_ >> 23) - 1;
    t->high = amax >> 23 < high ? amax >> 23 : high;
    t->low = min_nonzero >> 23 > low ? min_nonzero >> 23 : low;
}

/* Keeps compilers from contracting or reassociating what was computed so far with what follows. */
#if defined(__GNUC__)
#define MIXPREC_KEEP_(x) __asm__("" : "+v"(x))
#else
#define MIXPREC_KEEP_(x) ((void)0)
#endif

/* The same for a number in memory. gcc would gather counters into vectors, which takes longer than to add each. */
#if defined(__GNUC__)
#define MIXPREC_KEEP_STORED_(x) __asm__("" : "+m"(x))
#else
#define MIXPREC_KEEP_STORED_(x) ((void)0)
#endif

/* 64 distances from the window's first exponent as four bit planes, those in the window alone. Counting sets of planes
   instead of the 16 distances takes a third of the operations. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_tally_planes_(uint64_t *planes, uint64_t in, uint64_t a, uint64_t b,
                                                               uint64_t c, uint64_t d) {
    uint64_t ab = a & b, ac = a & c, ad = a & d, bc = b & c, bd = b & d, cd = c & d;
#define MIXPREC_COUNT_(set, mask)                                                                                      \
    planes[set] += (uint64_t)_mm_popcnt_u64(mask);                                                                     \
    MIXPREC_KEEP_STORED_(planes[set]);
    MIXPREC_COUNT_(0, in)
    MIXPREC_COUNT_(1, a)
    MIXPREC_COUNT_(2, b)
    MIXPREC_COUNT_(3, ab)
    MIXPREC_COUNT_(4, c)
    MIXPREC_COUNT_(5, ac)
    MIXPREC_COUNT_(6, bc)
    MIXPREC_COUNT_(7, ab & c) MIXPREC_COUNT_(8, d) MIXPREC_COUNT_(9, ad) MIXPREC_COUNT_(10, bd)
        MIXPREC_COUNT_(11, ab & d) MIXPREC_COUNT_(12, cd) MIXPREC_COUNT_(13, ac & d) MIXPREC_COUNT_(14, bc & d)
            MIXPREC_COUNT_(15, ab & cd)
#undef MIXPREC_COUNT_
}

/* Squares of 64 numbers, four of a lane in fp32, to the lanes' sums in f64. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_add_squares_avx2_(__m256d sum[4], const __m256 x[8]) {
    __m256 s[8];
    int j;
    MIXPREC_UNROLL_ for (j = 0; j < 8; j++) {
        s[j] = _mm256_mul_ps(x[j], x[j]);
        MIXPREC_KEEP_(s[j]);
    }
    MIXPREC_UNROLL_ for (j = 0; j < 2; j++) {
        s[j] = _mm256_add_ps(s[j], s[j + 2]);
        s[j + 4] = _mm256_add_ps(s[j + 4], s[j + 6]);
        MIXPREC_KEEP_(s[j]);
        MIXPREC_KEEP_(s[j + 4]);
        s[j] = _mm256_add_ps(s[j], s[j + 4]);
        sum[2 * j] = _mm256_add_pd(sum[2 * j], _mm256_cvtps_pd(_mm256_castps256_ps128(s[j])));
        sum[2 * j + 1] = _mm256_add_pd(sum[2 * j + 1], _mm256_cvtps_pd(_mm256_extractf128_ps(s[j], 1)));
    }
}

/* Most groups have no number that is a new extreme, overflows or does not become a normal number, as their exponents
   tell. There |x| to the nearest of the format is found by adding half of a last place as an integer and dropping the
   bits below: ties go away from zero, which the size of the error does not show. The others are looked at whole, and so
   are MIXPREC_WHOLE_ groups after each: where they are frequent, the question costs more than it saves. There |x| of
   exponent E is rounded by adding and subtracting 2^(E + shift), whose last place is that of the format's number beside
   |x|; below the least normal number by adding that number's anchor. */
#define MIXPREC_WHOLE_ 8

MIXPREC_AVX2_ static uint32_t mixprec_largest_avx2_(__m256i x) {
    __m128i y = _mm_max_epu32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    y = _mm_max_epu32(y, _mm_shuffle_epi32(y, 0x4E));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epu32(y, _mm_shuffle_epi32(y, 0xB1)));
}

MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ uint64_t mixprec_mask64_avx2_(__m256i a, __m256i b) {
    return (uint64_t)(uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
}

/* Constants of the format. Kept, so that they are not made from general registers again and again. */
typedef struct mixprec_format_avx2_ {
    __m256i lift, least_anchor, max, normal, vanishing;
} mixprec_format_avx2_;

MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ mixprec_format_avx2_ mixprec_format_of_avx2_(const mixprec_tally_ *t) {
    mixprec_format_avx2_ f;
    f.lift = _mm256_set1_epi32(t->shift << 23);
    f.least_anchor = _mm256_set1_epi32(t->min_normal + (t->shift << 23));
    f.max = _mm256_set1_epi32(t->max);
    f.normal = _mm256_set1_epi32(t->normal);
    f.vanishing = _mm256_set1_epi32(t->vanishing);
    MIXPREC_KEEP_(f.lift);
    MIXPREC_KEEP_(f.least_anchor);
    MIXPREC_KEEP_(f.max);
    MIXPREC_KEEP_(f.normal);
    MIXPREC_KEEP_(f.vanishing);
    return f;
}

/* The errors of a group that is looked at whole; 0 when that is not for this function. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ int mixprec_tally_whole_avx2_(mixprec_tally_ *t, const mixprec_format_avx2_ *f,
                                                                  __m256 error[8], const float *src, __m256i *amax,
                                                                  __m256i *least) {
    const __m256i one = _mm256_set1_epi32(1), zero = _mm256_setzero_si256();
    __m256i largest = zero, smallest = _mm256_set1_epi32(-1), gone = zero, small = zero, zeros = zero, over = zero;
    int j;
    /* Less 1, so that zero is not the smallest. */
    MIXPREC_UNROLL_ for (j = 0; j < 8; j++) {
        __m256i magnitude = mixprec_magnitude_avx2_(_mm256_loadu_si256((const __m256i *)(const void *)(src + 8 * j)));
        largest = _mm256_max_epi32(largest, magnitude);
        smallest = _mm256_min_epu32(smallest, _mm256_sub_epi32(magnitude, one));
    }
    if (_mm256_movemask_epi8(_mm256_cmpgt_epi32(largest, _mm256_set1_epi32(MIXPREC_SQUARES_BELOW_ - 1))) ||
        (!_mm256_movemask_epi8(_mm256_cmpgt_epi32(largest, _mm256_set1_epi32(MIXPREC_SQUARES_FROM_ - 1))) &&
         !_mm256_testz_si256(largest, largest)))
        return 0;
    *amax = _mm256_max_epi32(*amax, largest);
    *least = _mm256_min_epu32(*least, smallest);
    MIXPREC_UNROLL_ for (j = 0; j < 8; j++) {
        __m256i magnitude = mixprec_magnitude_avx2_(_mm256_loadu_si256((const __m256i *)(const void *)(src + 8 * j)));
        __m256 size = _mm256_castsi256_ps(magnitude), sum, anchor;
        anchor = _mm256_castsi256_ps(_mm256_max_epi32(
            _mm256_add_epi32(_mm256_and_si256(magnitude, _mm256_set1_epi32(0x7F800000)), f->lift), f->least_anchor));
        sum = _mm256_add_ps(size, anchor);
        MIXPREC_KEEP_(sum);
        sum = _mm256_sub_ps(sum, anchor);
        MIXPREC_KEEP_(sum);
        error[j] = _mm256_sub_ps(size, sum);
        gone = _mm256_add_epi32(gone, _mm256_cmpgt_epi32(magnitude, f->vanishing)); /* 64 less those */
        small = _mm256_add_epi32(small, _mm256_cmpgt_epi32(f->normal, magnitude));
        zeros = _mm256_add_epi32(zeros, _mm256_cmpeq_epi32(magnitude, zero));
    }
    if (_mm256_movemask_epi8(_mm256_cmpgt_epi32(largest, f->max)))
        MIXPREC_UNROLL_ for (j = 0; j < 8; j++) {
            __m256i magnitude =
                mixprec_magnitude_avx2_(_mm256_loadu_si256((const __m256i *)(const void *)(src + 8 * j)));
            __m256i above = _mm256_cmpgt_epi32(magnitude, f->max);
            error[j] =
                _mm256_blendv_ps(error[j], _mm256_sub_ps(_mm256_castsi256_ps(magnitude), _mm256_castsi256_ps(f->max)),
                                 _mm256_castsi256_ps(above));
            over = _mm256_add_epi32(over, above);
        }
    {
        /* Four counts of at most 64: bytes of one vector, negated above. */
        uint32_t counts[4], k;
        __m256i sums = _mm256_hadd_epi32(_mm256_hadd_epi32(gone, small), _mm256_hadd_epi32(zeros, over));
        _mm_storeu_si128((__m128i *)(void *)counts,
                         _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1)));
        for (k = 0; k < 4; k++)
            counts[k] = 0 - counts[k];
        counts[0] = 64 - counts[0];
        t->stats->underflow += counts[0] - counts[2];
        t->stats->subnormal += counts[1] - counts[0];
        t->stats->zero += counts[2];
        t->stats->overflow += counts[3];
    }
    return 1;
}

MIXPREC_AVX2_ static size_t mixprec_tally_avx2_(mixprec_tally_ *t, const float *src, size_t n) {
    const __m256i half = _mm256_set1_epi32(1 << (t->shift - 1)), keep = _mm256_set1_epi32(-(1 << t->shift));
    const mixprec_format_avx2_ format = mixprec_format_of_avx2_(t);
    __m256i amax = _mm256_setzero_si256(), least = _mm256_set1_epi32(-1);
    __m256i window = _mm256_set1_epi8((char)t->window);
    __m256i high = _mm256_set1_epi8((char)t->high), low = _mm256_set1_epi8((char)t->low);
    __m256d signal[4], noise[4];
    size_t i;
    int j, whole = 0;
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
        signal[j] = _mm256_loadu_pd(t->signal + 4 * j);
        noise[j] = _mm256_loadu_pd(t->noise + 4 * j);
    }
    for (i = 0; i < n; i += 64) {
        const float *from = src + i;
        __m256i exponents[2], distance[2], outside = _mm256_setzero_si256();
        __m256 x[8];
        uint64_t in, plane[4];
        MIXPREC_UNROLL_ for (j = 0; j < 2; j++) {
            /* Upper halves of two vectors in one, without the signs; then the upper bytes of two, in some order. */
            const __m256i *p = (const __m256i *)(const void *)(from + 32 * j);
            __m256i a =
                _mm256_blend_epi16(_mm256_srli_epi32(_mm256_loadu_si256(p), 16), _mm256_loadu_si256(p + 1), 0xAA);
            __m256i b =
                _mm256_blend_epi16(_mm256_srli_epi32(_mm256_loadu_si256(p + 2), 16), _mm256_loadu_si256(p + 3), 0xAA);
            a = _mm256_srli_epi16(_mm256_slli_epi16(a, 1), 8);
            b = _mm256_srli_epi16(_mm256_slli_epi16(b, 1), 8);
            exponents[j] = _mm256_packus_epi16(a, b);
            distance[j] = _mm256_sub_epi8(exponents[j], window);
            outside = _mm256_or_si256(
                outside, _mm256_or_si256(_mm256_cmpeq_epi8(_mm256_max_epu8(exponents[j], high), exponents[j]),
                                         _mm256_cmpeq_epi8(_mm256_min_epu8(exponents[j], low), exponents[j])));
        }
        if (!whole && !_mm256_testz_si256(outside, outside))
            whole = MIXPREC_WHOLE_;
        if (!whole) {
            MIXPREC_UNROLL_ for (j = 0; j < 8; j++) {
                __m256i bits = _mm256_loadu_si256((const __m256i *)(const void *)(from + 8 * j));
                bits = _mm256_and_si256(_mm256_add_epi32(bits, half), keep);
                x[j] = _mm256_sub_ps(_mm256_loadu_ps(from + 8 * j), _mm256_castsi256_ps(bits));
            }
        } else {
            if (!mixprec_tally_whole_avx2_(t, &format, x, from, &amax, &least))
                break;
            if (--whole == 0) {
                mixprec_tally_range_(t, mixprec_largest_avx2_(amax),
                                     0 - mixprec_largest_avx2_(_mm256_xor_si256(least, _mm256_set1_epi32(-1))));
                high = _mm256_set1_epi8((char)t->high);
                low = _mm256_set1_epi8((char)t->low);
            }
        }
        mixprec_add_squares_avx2_(noise, x);
        MIXPREC_UNROLL_ for (j = 0; j < 8; j++) x[j] = _mm256_loadu_ps(from + 8 * j);
        mixprec_add_squares_avx2_(signal, x);
        in = mixprec_mask64_avx2_(_mm256_cmpeq_epi8(_mm256_min_epu8(distance[0], _mm256_set1_epi8(15)), distance[0]),
                                  _mm256_cmpeq_epi8(_mm256_min_epu8(distance[1], _mm256_set1_epi8(15)), distance[1]));
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) plane[j] =
            in & mixprec_mask64_avx2_(_mm256_slli_epi16(distance[0], 7 - j), _mm256_slli_epi16(distance[1], 7 - j));
        mixprec_tally_planes_(t->planes, in, plane[0], plane[1], plane[2], plane[3]);
        if (~in) {
            const __m256i zero = _mm256_setzero_si256();
            uint64_t zeros = ~in & mixprec_mask64_avx2_(_mm256_cmpeq_epi8(exponents[0], zero),
                                                        _mm256_cmpeq_epi8(exponents[1], zero));
            t->stats->exponents[0] += (uint64_t)_mm_popcnt_u64(zeros);
            if (~in & ~zeros) {
                uint8_t bytes[64];
                _mm256_storeu_si256((__m256i *)(void *)bytes, exponents[0]);
                _mm256_storeu_si256((__m256i *)(void *)(bytes + 32), exponents[1]);
                mixprec_tally_others_(t, bytes, ~in & ~zeros);
                window = _mm256_set1_epi8((char)t->window);
            }
        }
    }
    mixprec_tally_range_(t, mixprec_largest_avx2_(amax),
                         0 - mixprec_largest_avx2_(_mm256_xor_si256(least, _mm256_set1_epi32(-1))));
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
        _mm256_storeu_pd(t->signal + 4 * j, signal[j]);
        _mm256_storeu_pd(t->noise + 4 * j, noise[j]);
    }
    return i;
}
#endif

/* ---- GEMM ---- */

#ifndef MIXPREC_NO_GEMM
/* Lanes of either width travel as __m256; `wide`, a constant wherever these are inlined, says that they are f64. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256 mixprec_add_avx2_(__m256 a, __m256 b, int wide) {
    return wide ? _mm256_castpd_ps(_mm256_add_pd(_mm256_castps_pd(a), _mm256_castps_pd(b))) : _mm256_add_ps(a, b);
}

/* Packing reads many rows at once: bytes ahead to prefetch in each. */
#define MIXPREC_PREFETCH_ 512

/* 6 x 16 (f64: 6 x 8): 12 accumulators, 2 vectors of B, 1 broadcast of A. */
#define MIXPREC_TILE_ROWS_AVX2_ 6
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_tile_body_avx2_(const int rows, const int vectors, const int wide,
                                                                 size_t depth, const char *a, const char *b, char *t,
                                                                 size_t ldt, int first) {
    const size_t size = wide ? 8 : 4;
    int i, j;
    for (; depth; first = 0) {
        size_t chunk = mixprec_min_(depth, MIXPREC_GEMM_KBLOCK), p;
        /* One of the two is used. A cast of an accumulator inside the loop would make gcc 12 spill: 25 instead of 50
           GFLOP/s on Zen 5. */
        __m256 s[MIXPREC_TILE_ROWS_AVX2_][2];
        __m256d w[MIXPREC_TILE_ROWS_AVX2_][2];
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
            s[i][j] = _mm256_setzero_ps();
            w[i][j] = _mm256_setzero_pd();
        }
        for (p = 0; p < chunk; p++) {
            const float *x = (const float *)(const void *)b, *y = (const float *)(const void *)a;
            const double *x_wide = (const double *)(const void *)b, *y_wide = (const double *)(const void *)a;
            MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) if (wide) w[i][j] =
                _mm256_fmadd_pd(_mm256_broadcast_sd(y_wide + i), _mm256_loadu_pd(x_wide + 4 * j), w[i][j]);
            else s[i][j] = _mm256_fmadd_ps(_mm256_broadcast_ss(y + i), _mm256_loadu_ps(x + 8 * j), s[i][j]);
            a += MIXPREC_TILE_ROWS_AVX2_ * size;
            b += 64;
        }
        if (wide)
            MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) s[i][j] =
                _mm256_castpd_ps(w[i][j]);
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
            float *to = (float *)(void *)(t + (size_t)i * ldt * size + (size_t)j * 32);
            if (!first)
                s[i][j] = mixprec_add_avx2_(_mm256_loadu_ps(to), s[i][j], wide);
            _mm256_storeu_ps(to, s[i][j]);
        }
        depth -= chunk;
    }
}

/* One function for each count of rows and of vectors, so that an edge costs what it computes. */
#define MIXPREC_TILE_AVX2_(rows, vectors, wide)                                                                        \
    MIXPREC_AVX2_ static void mixprec_tile_##rows##_##vectors##_##wide##_avx2_(                                        \
        size_t depth, const char *a, const char *b, char *t, size_t ldt, int first) {                                  \
        mixprec_tile_body_avx2_(rows, vectors, wide, depth, a, b, t, ldt, first);                                      \
    }
#define MIXPREC_TILES_AVX2_(X, rows) X(rows, 1, 0) X(rows, 2, 0) X(rows, 2, 1)
#define MIXPREC_ALL_TILES_AVX2_(X)                                                                                     \
    MIXPREC_TILES_AVX2_(X, 1)                                                                                          \
    MIXPREC_TILES_AVX2_(X, 2)                                                                                          \
    MIXPREC_TILES_AVX2_(X, 3) MIXPREC_TILES_AVX2_(X, 4) MIXPREC_TILES_AVX2_(X, 5) MIXPREC_TILES_AVX2_(X, 6)
MIXPREC_ALL_TILES_AVX2_(MIXPREC_TILE_AVX2_)
#undef MIXPREC_TILE_AVX2_

MIXPREC_AVX2_ static void mixprec_tile_avx2_(size_t rows, size_t columns, size_t depth, const void *a, const void *b,
                                             void *t, size_t ldt, int first, int wide) {
    const size_t vectors = wide || columns > 8 ? 2 : 1, size = wide ? 8 : 4, whole = vectors * 32 / size;
    double edge[MIXPREC_TILE_ROWS_AVX2_ * 8];
    char *to = (char *)t;
    size_t ld_to = ldt, i;
    if (columns != whole) { /* vectors that are not whole: by way of a buffer */
        to = (char *)edge;
        ld_to = whole;
        for (i = 0; i < rows && !first; i++)
            mixprec_copy_(to + i * whole * size, (char *)t + i * ldt * size, columns * size);
    }
    switch (rows * 4 + (vectors - 1) * 2 + (size_t)wide) {
#define MIXPREC_TILE_AVX2_(rows, vectors, wide)                                                                        \
    case rows * 4 + (vectors - 1) * 2 + wide:                                                                          \
        mixprec_tile_##rows##_##vectors##_##wide##_avx2_(depth, (const char *)a, (const char *)b, to, ld_to, first);   \
        break;
        MIXPREC_ALL_TILES_AVX2_(MIXPREC_TILE_AVX2_)
#undef MIXPREC_TILE_AVX2_
    default: break;
    }
    for (i = 0; i < rows && to != (char *)t; i++)
        mixprec_copy_((char *)t + i * ldt * size, to + i * whole * size, columns * size);
}

/* 32 bytes, or the first `bytes` of them, of each of 8 rows (zeros for those that are not there), transposed in units
   of 4 bytes, or, wide, of 8 bytes in two blocks of 4 rows. The type does not matter yet: narrow elements are cheaper
   to transpose than the fp32 that they become. */
MIXPREC_AVX2_ static void mixprec_transpose_avx2_(__m256i r[8], const char *src, size_t stride, size_t rows,
                                                  size_t bytes, int wide) {
    __m256i t[8];
    int i;
    size_t q;
    for (q = 0; q < 8; q++) {
        r[q] = _mm256_setzero_si256();
        if (q < rows && bytes >= 32)
            r[q] = _mm256_loadu_si256((const __m256i *)(const void *)(src + q * stride));
        else if (q < rows)
            mixprec_copy_(&r[q], src + q * stride, bytes);
    }
    if (wide) {
        MIXPREC_UNROLL_ for (i = 0; i < 8; i += 2) {
            t[i] = _mm256_unpacklo_epi64(r[i], r[i + 1]);
            t[i + 1] = _mm256_unpackhi_epi64(r[i], r[i + 1]);
        }
        MIXPREC_UNROLL_ for (i = 0; i < 8; i += 4) {
            r[i] = _mm256_permute2x128_si256(t[i], t[i + 2], 0x20);
            r[i + 1] = _mm256_permute2x128_si256(t[i + 1], t[i + 3], 0x20);
            r[i + 2] = _mm256_permute2x128_si256(t[i], t[i + 2], 0x31);
            r[i + 3] = _mm256_permute2x128_si256(t[i + 1], t[i + 3], 0x31);
        }
        return;
    }
    MIXPREC_UNROLL_ for (i = 0; i < 8; i += 2) {
        t[i] = _mm256_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_epi32(r[i], r[i + 1]);
    }
    MIXPREC_UNROLL_ for (i = 0; i < 8; i += 4) {
        r[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    MIXPREC_UNROLL_ for (i = 0; i < 4; i++) {
        t[i] = _mm256_permute2x128_si256(r[i], r[i + 4], 0x20);
        t[i + 4] = _mm256_permute2x128_si256(r[i], r[i + 4], 0x31);
    }
    MIXPREC_UNROLL_ for (i = 0; i < 8; i++) r[i] = t[i];
}

/* 8 pairs of half-precision numbers: the first of each, then the second. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_split_half_avx2_(__m256 x[2], __m256i pairs, int e4m3) {
    const __m256i firsts_then_seconds = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15, 0, 1, 4,
                                                         5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
    pairs = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(pairs, firsts_then_seconds), 0xD8);
    x[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(pairs));
    x[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(pairs, 1));
    if (e4m3) {
        x[0] = _mm256_mul_ps(x[0], _mm256_set1_ps(256.0f));
        x[1] = _mm256_mul_ps(x[1], _mm256_set1_ps(256.0f));
    }
}

/* The numbers in 4 bytes of each of 8 rows, in order: 1 of fp32, 2 of 16 bits, 4 of 8 bits. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_expand_avx2_(__m256 x[4], __m256i word, mixprec_dtype type) {
    const __m256i upper_bytes = _mm256_set1_epi32((int)0xFF00FF00u), bit14 = _mm256_set1_epi16(0x4000);
    const __m256i order = /* bytes 0, 2, 1, 3: so that the pairs are (0, 1) and (2, 3) */
        _mm256_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15, 0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12,
                         14, 13, 15);
    __m256i half[2];
    int i;
    switch (type) {
    case MIXPREC_F16: mixprec_split_half_avx2_(x, word, 0); break;
    case MIXPREC_BF16:
        x[0] = _mm256_castsi256_ps(_mm256_slli_epi32(word, 16));
        x[1] = _mm256_castsi256_ps(_mm256_and_si256(word, _mm256_set1_epi32((int)0xFFFF0000u)));
        break;
    case MIXPREC_E4M3:
    case MIXPREC_E5M2:
        word = _mm256_shuffle_epi8(word, order);
        half[0] = _mm256_slli_epi16(word, 8);
        half[1] = _mm256_and_si256(word, upper_bytes);
        MIXPREC_UNROLL_ for (i = 0; i < 2; i++) {
            if (type == MIXPREC_E4M3) { /* see mixprec_e4m3_to_half_avx2_ */
                half[i] = _mm256_srli_epi16(half[i], 1);
                half[i] = _mm256_add_epi16(half[i], _mm256_and_si256(half[i], bit14));
                half[i] = _mm256_or_si256(half[i],
                                          _mm256_and_si256(_mm256_add_epi16(half[i], _mm256_set1_epi16(0x80)), bit14));
            }
            mixprec_split_half_avx2_(x + 2 * i, half[i], type == MIXPREC_E4M3);
        }
        break;
    default: x[0] = _mm256_castsi256_ps(word); break;
    }
}

/* Writes transposed lines to a panel, at most n rows of it. All 8 columns are written: those beyond the panel's width
   spill into its next row, which is written later, or past its end, where the workspace has room. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_pack_lines_avx2_(float *dst, size_t width, const __m256i r[8],
                                                                  size_t n, mixprec_dtype type, size_t per_word) {
    size_t q, i;
    for (q = 0; q * per_word < n; q++) {
        __m256 x[4];
        mixprec_expand_avx2_(x, r[q], type);
        for (i = 0; i < per_word && q * per_word + i < n; i++, dst += width)
            _mm256_storeu_ps(dst, x[i]);
    }
}

MIXPREC_AVX2_ static void mixprec_pack_across_avx2_(char *dst, size_t width, const char *src, mixprec_dtype type,
                                                    size_t stride, size_t count, size_t depth, int wide) {
    const size_t size = mixprec_size_of_(type), to_size = wide ? 8 : 4;
    size_t i, q, bytes;
    for (bytes = 0; bytes < depth * size; bytes += 32, dst += 32 / size * width * to_size) {
        /* A cache line of each of 8 rows before the next 8: with a power of two between rows they share one set. */
        for (i = 0; i < width; i += 8) {
            size_t left = mixprec_min_(32, depth * size - bytes), rows = mixprec_min_(8, count > i ? count - i : 0);
            const char *from = src + i * stride + bytes;
            float *to = (float *)(void *)(dst + i * to_size);
            __m256i r[8];
            for (q = 0; q < rows && bytes % 64 == 0; q++)
                _mm_prefetch(from + q * stride + MIXPREC_PREFETCH_, _MM_HINT_T1);
            mixprec_transpose_avx2_(r, from, stride, rows, left, wide);
            switch (type) {
            case MIXPREC_F32: mixprec_pack_lines_avx2_(to, width, r, left / 4, MIXPREC_F32, 1); break;
            case MIXPREC_F16: mixprec_pack_lines_avx2_(to, width, r, left / 2, MIXPREC_F16, 2); break;
            case MIXPREC_BF16: mixprec_pack_lines_avx2_(to, width, r, left / 2, MIXPREC_BF16, 2); break;
            case MIXPREC_E4M3: mixprec_pack_lines_avx2_(to, width, r, left, MIXPREC_E4M3, 4); break;
            case MIXPREC_E5M2: mixprec_pack_lines_avx2_(to, width, r, left, MIXPREC_E5M2, 4); break;
            default: /* f64: 8 columns, or 6 */
                for (q = 0; q < left / 8; q++, to += width * 2) {
                    _mm256_storeu_si256((__m256i *)(void *)to, r[q]);
                    if (width - i >= 8)
                        _mm256_storeu_si256((__m256i *)(void *)(to + 8), r[4 + q]);
                    else
                        _mm_storeu_si128((__m128i *)(void *)(to + 8), _mm256_castsi256_si128(r[4 + q]));
                }
                break;
            }
        }
    }
}

/* Elements that lie side by side in src as in the panel. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_pack_along_avx2_(float *dst, size_t width, const char *src,
                                                                  mixprec_dtype type, size_t stride, size_t count,
                                                                  size_t depth) {
    const size_t size = mixprec_size_of_(type);
    size_t i, p;
    for (p = 0; p < depth; p++, src += stride, dst += width)
        for (i = 0; i < width; i += 8) {
            double edge[8] = {0};
            const void *from = src + i * size;
            if (i + 8 > count) { /* not all there */
                mixprec_copy_(edge, from, (count > i ? count - i : 0) * size);
                from = edge;
            }
            _mm256_storeu_ps(dst + i, mixprec_load8_avx2_(from, type)); /* may spill as above */
        }
}

MIXPREC_AVX2_ static void mixprec_pack_avx2_(void *dst, size_t width, const void *src, mixprec_dtype type, size_t ld,
                                             int along, size_t count, size_t depth, int wide) {
    const char *from = (const char *)src;
    size_t stride = ld * mixprec_size_of_(type);
    if (type == MIXPREC_F64 && along == wide) /* rare, or a plain copy */
        mixprec_pack_c_(dst, width, src, type, ld, along, count, depth, wide);
    else if (!along)
        mixprec_pack_across_avx2_((char *)dst, width, from, type, stride, count, depth, wide);
    else
        switch (type) {
#define MIXPREC_ROW_(dtype)                                                                                            \
    case dtype: mixprec_pack_along_avx2_((float *)dst, width, from, dtype, stride, count, depth); break;
            MIXPREC_ROW_(MIXPREC_F32)
            MIXPREC_ROW_(MIXPREC_F64)
            MIXPREC_ROW_(MIXPREC_F16)
            MIXPREC_ROW_(MIXPREC_BF16)
            MIXPREC_ROW_(MIXPREC_E4M3)
            MIXPREC_ROW_(MIXPREC_E5M2)
#undef MIXPREC_ROW_
        default: break;
        }
}
#endif /* MIXPREC_NO_GEMM */
#endif /* MIXPREC_HAS_AVX2_ */

/* ================================================================================================================== */
/* [VEC-AVX512] Kernels for AVX-512 F/BW/DQ/VL                                                                        */
/* ================================================================================================================== */

#if defined(MIXPREC_HAS_AVX512_)
#define MIXPREC_AVX512_ MIXPREC_TARGET_("avx2,f16c,fma,popcnt,avx512f,avx512bw,avx512dq,avx512vl")

/* ---- fp32 from a dtype ---- */

/* As mixprec_e4m3_to_half_avx2_, 32 at a time. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512i mixprec_e4m3_to_half_avx512_(__m256i codes) {
    const __m512i bit14 = _mm512_set1_epi16(0x4000);
    __m512i x = _mm512_slli_epi16(_mm512_cvtepu8_epi16(codes), 7);
    x = _mm512_add_epi16(x, _mm512_and_si512(x, bit14));
    return _mm512_or_si512(x, _mm512_and_si512(_mm512_add_epi16(x, _mm512_set1_epi16(0x80)), bit14));
}

/* The elements of p whose bit is set, 0 for the others. A NaN may stay signalling. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512 mixprec_load16_avx512_(const void *p, mixprec_dtype type,
                                                                    __mmask16 lanes) {
    switch (type) {
    case MIXPREC_F64:
        return _mm512_insertf32x8(
            _mm512_castps256_ps512(_mm512_cvtpd_ps(_mm512_maskz_loadu_pd((__mmask8)lanes, (const double *)p))),
            _mm512_cvtpd_ps(_mm512_maskz_loadu_pd((__mmask8)((unsigned)lanes >> 8), (const double *)p + 8)), 1);
    case MIXPREC_F16: return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes, p));
    case MIXPREC_BF16:
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, p)), 16));
    case MIXPREC_E4M3: {
        __m256i half = mixprec_e4m3_to_half_avx2_(_mm_maskz_loadu_epi8(lanes, p));
        return _mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(256.0f));
    }
    case MIXPREC_E5M2:
        return _mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm_maskz_loadu_epi8(lanes, p)), 8));
    default: break;
    }
    return _mm512_maskz_loadu_ps(lanes, p);
}

MIXPREC_AVX512_ static void mixprec_load_avx512_(float *dst, const void *src, mixprec_dtype type, size_t n) {
    size_t i;
    switch (type) {
    case MIXPREC_F64:
        for (i = 0; i < n; i += 16)
            _mm512_storeu_ps(dst + i, mixprec_load16_avx512_((const double *)src + i, MIXPREC_F64, 0xFFFF));
        break;
    case MIXPREC_F16:
        for (i = 0; i < n; i += 64) {
            const mixprec_f16 *from = (const mixprec_f16 *)src + i;
            _mm512_storeu_ps(dst + i, mixprec_load16_avx512_(from, MIXPREC_F16, 0xFFFF));
            _mm512_storeu_ps(dst + i + 16, mixprec_load16_avx512_(from + 16, MIXPREC_F16, 0xFFFF));
            _mm512_storeu_ps(dst + i + 32, mixprec_load16_avx512_(from + 32, MIXPREC_F16, 0xFFFF));
            _mm512_storeu_ps(dst + i + 48, mixprec_load16_avx512_(from + 48, MIXPREC_F16, 0xFFFF));
        }
        break;
    case MIXPREC_BF16:
        for (i = 0; i < n; i += 32) {
            const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
            __m512i x = _mm512_loadu_si512((const mixprec_bf16 *)src + i);
            __mmask32 nan =
                _mm512_cmpgt_epi16_mask(_mm512_and_si512(x, _mm512_set1_epi16(0x7FFF)), _mm512_set1_epi16(0x7F80));
            x = _mm512_mask_blend_epi16(nan, x, _mm512_or_si512(x, _mm512_set1_epi16(0x40)));
            x = _mm512_permutexvar_epi64(order, x);
            _mm512_storeu_si512(dst + i, _mm512_unpacklo_epi16(_mm512_setzero_si512(), x));
            _mm512_storeu_si512(dst + i + 16, _mm512_unpackhi_epi16(_mm512_setzero_si512(), x));
        }
        break;
    case MIXPREC_E4M3:
        for (i = 0; i < n; i += 32) {
            const __m512 scale = _mm512_set1_ps(256.0f);
            __m512i half = mixprec_e4m3_to_half_avx512_(
                _mm256_loadu_si256((const __m256i *)(const void *)((const mixprec_e4m3 *)src + i)));
            _mm512_storeu_ps(dst + i, _mm512_mul_ps(_mm512_cvtph_ps(_mm512_castsi512_si256(half)), scale));
            _mm512_storeu_ps(dst + i + 16, _mm512_mul_ps(_mm512_cvtph_ps(_mm512_extracti64x4_epi64(half, 1)), scale));
        }
        break;
    case MIXPREC_E5M2:
        for (i = 0; i < n; i += 32) {
            __m512i half = _mm512_slli_epi16(_mm512_cvtepu8_epi16(_mm256_loadu_si256(
                                                 (const __m256i *)(const void *)((const mixprec_e5m2 *)src + i))),
                                             8);
            _mm512_storeu_ps(dst + i, _mm512_cvtph_ps(_mm512_castsi512_si256(half)));
            _mm512_storeu_ps(dst + i + 16, _mm512_cvtph_ps(_mm512_extracti64x4_epi64(half, 1)));
        }
        break;
    default: mixprec_load_more_avx2_(dst, src, type, n); break;
    }
}

MIXPREC_AVX512_ static void mixprec_load_odd_avx512_(float *dst, const double *src, size_t n) {
    size_t i;
    for (i = 0; i < n; i += 8) {
        __m512d x = _mm512_loadu_pd(src + i);
        __m256 y = _mm512_cvt_roundpd_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
        __mmask8 inexact = _mm512_cmp_pd_mask(_mm512_cvtps_pd(y), x, _CMP_NEQ_OQ);
        __m256i bits = _mm256_castps_si256(y);
        bits = _mm256_mask_blend_epi32(inexact, bits, _mm256_or_si256(bits, _mm256_set1_epi32(1)));
        _mm256_storeu_si256((__m256i *)(void *)(dst + i), bits);
    }
}

/* ---- a dtype from fp32 ---- */

/* The methods are those of [VEC-AVX2], twice as wide. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_pack8_avx512_(void *dst, const __m512i c[4], const __m512i x[4]) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512i code = _mm512_packus_epi16(_mm512_packus_epi32(c[0], c[1]), _mm512_packus_epi32(c[2], c[3]));
    __m512i sign = _mm512_packs_epi16(_mm512_packs_epi32(x[0], x[1]), _mm512_packs_epi32(x[2], x[3]));
    code = _mm512_ternarylogic_epi32(code, sign, _mm512_set1_epi8((char)0x80), 0xF8); /* code | (sign & 0x80) */
    _mm512_storeu_si512(dst, _mm512_permutexvar_epi32(order, code));
}

MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512i mixprec_encode_fp8_avx512_(__m512i magnitude, mixprec_dtype type) {
    const int mantissa = type == MIXPREC_E4M3 ? 3 : 2, least = type == MIXPREC_E4M3 ? 127 - 6 : 127 - 14;
    const __m512i magic = _mm512_set1_epi32(((23 - mantissa) << 23) + (-least * (1 << mantissa) & 0xFF));
    __m512i exponent =
        _mm512_max_epi32(_mm512_and_si512(magnitude, _mm512_set1_epi32(0x7F800000)), _mm512_set1_epi32(least << 23));
    __m512i sum = _mm512_castps_si512(
        _mm512_add_ps(_mm512_castsi512_ps(magnitude), _mm512_castsi512_ps(_mm512_add_epi32(exponent, magic))));
    sum = _mm512_add_epi32(sum, _mm512_srli_epi32(exponent, (unsigned)(23 - mantissa)));
    return _mm512_and_si512(sum, _mm512_set1_epi32(0xFF));
}

/* bfloat16 to nearest even, not NaN, in the upper half of each lane. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512i mixprec_encode_bf16_avx512_(__m512i x) {
    __mmask16 odd = _mm512_test_epi32_mask(x, _mm512_set1_epi32(0x10000));
    __m512i sum = _mm512_add_epi32(x, _mm512_set1_epi32(0x7FFF));
    return _mm512_mask_add_epi32(sum, odd, sum, _mm512_set1_epi32(1));
}

/* mixprec_narrow_f32_ sixteen at a time: f16, bf16, e4m3 and e5m2 in any mode and policy. */
typedef struct mixprec_encoder_avx512_ {
    __m512i bias, shift, min_shift, mantissa_bits;
    __m512i threshold_positive, threshold_negative, odd;
    __m512i max_code, overflow_positive, overflow_negative, inf_code, nan_code, payload, sign_code;
    int stochastic;
} mixprec_encoder_avx512_;

MIXPREC_AVX512_ static mixprec_encoder_avx512_ mixprec_encoder_of_avx512_(mixprec_dtype type, const mixprec_how_ *how) {
    const mixprec_layout_ *to = mixprec_layout_of_(type);
    mixprec_encoder_avx512_ e;
    int keep = how->overflow != MIXPREC_OVERFLOW_IEEE;
    e.stochastic = how->round == MIXPREC_ROUND_STOCHASTIC;
    e.bias = _mm512_set1_epi32(to->bias - 127);
    e.shift = _mm512_set1_epi32(23 - to->mantissa_bits);
    e.min_shift = _mm512_set1_epi32(24 - to->mantissa_bits);
    e.mantissa_bits = _mm512_set1_epi32(to->mantissa_bits);
    e.threshold_positive = _mm512_set1_epi32((int)mixprec_round_threshold_(how->round, 0, 0, 0));
    e.threshold_negative = _mm512_set1_epi32((int)mixprec_round_threshold_(how->round, 1, 0, 0));
    e.odd = _mm512_set1_epi32(how->round == MIXPREC_ROUND_NEAREST_EVEN);
    e.max_code = _mm512_set1_epi32((int)to->max_code);
    e.overflow_positive =
        _mm512_set1_epi32((int)(keep || mixprec_overflow_to_max_(how->round, 0) ? to->max_code : to->overflow_code));
    e.overflow_negative =
        _mm512_set1_epi32((int)(keep || mixprec_overflow_to_max_(how->round, 1) ? to->max_code : to->overflow_code));
    e.inf_code =
        _mm512_set1_epi32((int)(how->overflow == MIXPREC_OVERFLOW_SATURATE ? to->max_code : to->overflow_code));
    e.nan_code = _mm512_set1_epi32((int)to->nan_code);
    e.payload = _mm512_set1_epi32(to->special == MIXPREC_IEEE_ ? (1 << to->mantissa_bits) - 1 : 0);
    e.sign_code = _mm512_set1_epi32((int)to->sign_code);
    return e;
}

MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512i mixprec_encode_any_avx512_(const mixprec_encoder_avx512_ *e, __m512i bits,
                                                                         __m512i random) {
    const __m512i one = _mm512_set1_epi32(1), width = _mm512_set1_epi32(32);
    __mmask16 negative = _mm512_movepi32_mask(bits);
    __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7FFFFFFF));
    __m512i exponent = _mm512_srli_epi32(magnitude, 23),
            field = _mm512_and_si512(magnitude, _mm512_set1_epi32(0x7FFFFF));
    __mmask16 normal = _mm512_test_epi32_mask(exponent, exponent), up, infinite;
    __m512i mantissa = _mm512_mask_or_epi32(field, normal, field, _mm512_set1_epi32(0x800000));
    __m512i target = _mm512_add_epi32(_mm512_max_epi32(exponent, one), e->bias);
    __m512i shift = _mm512_max_epi32(e->shift, _mm512_sub_epi32(e->min_shift, target));
    __m512i kept = _mm512_srlv_epi32(mantissa, shift), fraction, threshold, code, special;
    target = _mm512_max_epi32(target, one);
    fraction = _mm512_or_si512(_mm512_sllv_epi32(mantissa, _mm512_sub_epi32(width, shift)),
                               _mm512_srlv_epi32(mantissa, _mm512_sub_epi32(shift, width)));
    if (e->stochastic) {
        threshold = random;
    } else {
        __mmask16 lost = _mm512_mask_cmpge_epi32_mask(_mm512_test_epi32_mask(mantissa, mantissa), shift, width);
        fraction = _mm512_mask_or_epi32(fraction, lost, fraction, one);
        threshold = _mm512_mask_blend_epi32(negative, e->threshold_positive, e->threshold_negative);
        threshold = _mm512_add_epi32(threshold, _mm512_and_si512(kept, e->odd));
    }
    up = _mm512_cmplt_epu32_mask(_mm512_add_epi32(fraction, threshold), threshold);
    kept = _mm512_mask_add_epi32(kept, up, kept, one);
    code = _mm512_add_epi32(_mm512_sllv_epi32(_mm512_sub_epi32(target, one), e->mantissa_bits), kept);
    code = _mm512_mask_blend_epi32(_mm512_cmpgt_epi32_mask(code, e->max_code), code,
                                   _mm512_mask_blend_epi32(negative, e->overflow_positive, e->overflow_negative));
    infinite = _mm512_testn_epi32_mask(field, field);
    special = _mm512_or_si512(e->nan_code, _mm512_and_si512(_mm512_srlv_epi32(field, e->shift), e->payload));
    special = _mm512_mask_blend_epi32(infinite, special, e->inf_code);
    code = _mm512_mask_blend_epi32(_mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7F7FFFFF)), code, special);
    return _mm512_mask_or_epi32(code, negative, code, e->sign_code);
}

/* mixprec_random_bits of the 128 indices from an even one. */
typedef struct mixprec_random_avx512_ {
    __m512i key[12];
} mixprec_random_avx512_;

MIXPREC_AVX512_ static mixprec_random_avx512_ mixprec_random_of_avx512_(uint64_t seed) {
    mixprec_random_avx512_ random;
    uint32_t key[3], step;
    key[0] = (uint32_t)seed;
    key[1] = (uint32_t)(seed >> 32);
    key[2] = 0x1BD11BDAu ^ key[0] ^ key[1];
    for (step = 0; step <= 5; step++) {
        random.key[2 * step] = _mm512_set1_epi32((int)key[step % 3]);
        random.key[2 * step + 1] = _mm512_set1_epi32((int)(key[(step + 1) % 3] + step));
    }
    return random;
}

MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void
mixprec_random128_avx512_(__m512i words[8], const mixprec_random_avx512_ *random, uint64_t index) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i low_half = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high_half = _mm512_add_epi32(low_half, _mm512_set1_epi32(8));
    const uint64_t counter = index >> 1;
    const __m512i from = _mm512_set1_epi32((int)(uint32_t)counter);
    __m512i x0[4], x1[4];
    int j;
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
        __m512i low = _mm512_add_epi32(from, _mm512_add_epi32(lanes, _mm512_set1_epi32(16 * j)));
        __m512i high = _mm512_set1_epi32((int)(uint32_t)(counter >> 32));
        high = _mm512_mask_add_epi32(high, _mm512_cmplt_epu32_mask(low, from), high, _mm512_set1_epi32(1));
        high = _mm512_and_si512(high, _mm512_set1_epi32(0x7FFFFFFF));
        x0[j] = _mm512_add_epi32(low, random->key[0]);
        x1[j] = _mm512_add_epi32(high, random->key[1]);
    }
#define MIXPREC_MIX_(rotation)                                                                                         \
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {                                                                          \
        x0[j] = _mm512_add_epi32(x0[j], x1[j]);                                                                        \
        x1[j] = _mm512_xor_si512(_mm512_rol_epi32(x1[j], rotation), x0[j]);                                            \
    }
#define MIXPREC_INJECT_(step)                                                                                          \
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {                                                                          \
        x0[j] = _mm512_add_epi32(x0[j], random->key[2 * (step)]);                                                      \
        x1[j] = _mm512_add_epi32(x1[j], random->key[2 * (step) + 1]);                                                  \
    }
    MIXPREC_ODD_ROUNDS_(1)
    MIXPREC_EVEN_ROUNDS_(2)
    MIXPREC_ODD_ROUNDS_(3)
    MIXPREC_EVEN_ROUNDS_(4)
    MIXPREC_ODD_ROUNDS_(5)
#undef MIXPREC_MIX_
#undef MIXPREC_INJECT_
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
        words[2 * j] = _mm512_permutex2var_epi32(x0[j], low_half, x1[j]);
        words[2 * j + 1] = _mm512_permutex2var_epi32(x0[j], high_half, x1[j]);
    }
}

/* 64 elements, any way. */
MIXPREC_AVX512_ static void mixprec_store64_any_avx512_(void *dst, mixprec_dtype type, const float *src,
                                                        const mixprec_encoder_avx512_ *encoder,
                                                        const uint32_t *random) {
    size_t size = mixprec_size_of_(type), i;
    for (i = 0; i < 64; i += 16) {
        __m512i code = mixprec_encode_any_avx512_(encoder, _mm512_loadu_si512(src + i), _mm512_loadu_si512(random + i));
        if (size == 2)
            _mm256_storeu_si256((__m256i *)(void *)((mixprec_f16 *)dst + i), _mm512_cvtepi32_epi16(code));
        else
            _mm_storeu_si128((__m128i *)(void *)((mixprec_e4m3 *)dst + i), _mm512_cvtepi32_epi8(code));
    }
}

MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_store_nearest_avx512_(void *dst, mixprec_dtype type,
                                                                         const float *src, size_t n, int saturate,
                                                                         const mixprec_how_ *how) {
    /* 1, 3, 5 ... 63 as 16-bit numbers */
    const __m512i upper_halves =
        _mm512_add_epi32(_mm512_set1_epi32(0x00030001),
                         _mm512_mullo_epi32(_mm512_set1_epi32(0x00040004),
                                            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)));
    const __m512i limit = _mm512_set1_epi32(mixprec_limit_(type, saturate)), mask = _mm512_set1_epi32(0x7FFFFFFF);
    mixprec_encoder_avx512_ encoder = mixprec_encoder_of_avx512_(type, how);
    size_t i;
    int j;
    for (i = 0; i < n; i += 64) {
        __m512i x[4], magnitude[4], c[4];
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] = _mm512_loadu_si512(src + i + 16 * j);
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) magnitude[j] = _mm512_and_si512(x[j], mask);
        if (saturate || type == MIXPREC_BF16 || type == MIXPREC_E5M2) {
            __m512i largest = _mm512_max_epi32(_mm512_max_epi32(magnitude[0], magnitude[1]),
                                               _mm512_max_epi32(magnitude[2], magnitude[3]));
            if (_mm512_cmpgt_epi32_mask(largest, _mm512_set1_epi32(0x7F800000))) {
                mixprec_store64_any_avx512_((char *)dst + i * mixprec_size_of_(type), type, src + i, &encoder,
                                            (const uint32_t *)(const void *)(src + i));
                continue;
            }
        }
        if (saturate || type == MIXPREC_E4M3 || type == MIXPREC_E5M2)
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) magnitude[j] = _mm512_min_epi32(magnitude[j], limit);
        if (type == MIXPREC_F16 || type == MIXPREC_BF16) {
            if (saturate) /* mask ? magnitude : x */
                MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] =
                    _mm512_ternarylogic_epi32(mask, magnitude[j], x[j], 0xCA);
            if (type == MIXPREC_F16) {
                MIXPREC_UNROLL_ for (j = 0; j < 4; j++) _mm256_storeu_si256(
                    (__m256i *)(void *)((mixprec_f16 *)dst + i + 16 * j),
                    _mm512_maskz_cvtps_ph(0xFFFF, _mm512_castsi512_ps(x[j]), _MM_FROUND_TO_NEAREST_INT));
                continue;
            }
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) c[j] = mixprec_encode_bf16_avx512_(x[j]);
            _mm512_storeu_si512((mixprec_bf16 *)dst + i, _mm512_permutex2var_epi16(c[0], upper_halves, c[1]));
            _mm512_storeu_si512((mixprec_bf16 *)dst + i + 32, _mm512_permutex2var_epi16(c[2], upper_halves, c[3]));
            continue;
        }
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) c[j] = mixprec_encode_fp8_avx512_(magnitude[j], type);
        mixprec_pack8_avx512_((mixprec_e4m3 *)dst + i, c, x);
    }
}

/* The halves of the 32-bit lanes of a, then of b, as 16-bit numbers: the low ones, or the high ones. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512i mixprec_halves_avx512_(__m512i a, __m512i b, const int high) {
    const __m512i even = _mm512_mullo_epi32(_mm512_set1_epi32(0x00040004),
                                            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    return _mm512_permutex2var_epi16(a, _mm512_add_epi32(even, _mm512_set1_epi32(high ? 0x00030001 : 0x00020000)), b);
}

MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ int mixprec_store64_stochastic_avx512_(void *dst, int wide, const float *src,
                                                                             const mixprec_places_ *p,
                                                                             const __m512i random[4]) {
    const __m512i shift = _mm512_set1_epi32(p->shift), mask = _mm512_set1_epi32(0x7FFFFFFF);
    __m512i x[4], magnitude[4], c[4], largest, smallest;
    int j;
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] = _mm512_loadu_si512(src + 16 * j);
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) magnitude[j] = _mm512_and_si512(x[j], mask);
    largest =
        _mm512_max_epi32(_mm512_max_epi32(magnitude[0], magnitude[1]), _mm512_max_epi32(magnitude[2], magnitude[3]));
    if (_mm512_cmpgt_epi32_mask(largest, _mm512_set1_epi32(p->largest)))
        return 0;
    smallest =
        _mm512_min_epi32(_mm512_min_epi32(magnitude[0], magnitude[1]), _mm512_min_epi32(magnitude[2], magnitude[3]));
    if (!_mm512_cmplt_epi32_mask(smallest, _mm512_set1_epi32(p->least))) {
        const __m512i bias = _mm512_set1_epi32(p->least ? (p->min_exponent - 1) << (23 - p->shift) : 0);
        const __m512i rest = _mm512_set1_epi32(32 - p->shift);
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
            c[j] = _mm512_add_epi32(magnitude[j], _mm512_srlv_epi32(random[j], rest));
            c[j] = _mm512_sub_epi32(_mm512_srlv_epi32(c[j], shift), bias);
        }
    } else {
        const __m512i min_exponent = _mm512_set1_epi32(p->min_exponent), width = _mm512_set1_epi32(32);
        const __m512i tiny = _mm512_set1_epi32(p->tiny);
        if (_mm512_cmplt_epi32_mask(smallest, tiny)) {
            unsigned lost = 0;
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) lost |=
                _mm512_mask_cmplt_epi32_mask(_mm512_test_epi32_mask(magnitude[j], magnitude[j]), magnitude[j], tiny);
            if (lost)
                return 0;
        }
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
            __m512i exponent = _mm512_srli_epi32(magnitude[j], 23), target = _mm512_max_epi32(exponent, min_exponent);
            __m512i count = _mm512_add_epi32(_mm512_sub_epi32(target, exponent), shift), mantissa;
            /* (magnitude & 0x7FFFFF) | 0x800000 */
            mantissa =
                _mm512_ternarylogic_epi32(magnitude[j], _mm512_set1_epi32(0x7FFFFF), _mm512_set1_epi32(0x800000), 0xEA);
            mantissa = _mm512_add_epi32(mantissa, _mm512_srlv_epi32(random[j], _mm512_sub_epi32(width, count)));
            mantissa = _mm512_maskz_srlv_epi32(_mm512_test_epi32_mask(magnitude[j], magnitude[j]), mantissa, count);
            target = _mm512_sllv_epi32(_mm512_sub_epi32(target, min_exponent),
                                       _mm512_sub_epi32(_mm512_set1_epi32(23), shift));
            c[j] = _mm512_add_epi32(mantissa, target);
        }
    }
    if (wide) {
        const __m512i top = _mm512_set1_epi16((short)0x8000);
        MIXPREC_UNROLL_ for (j = 0; j < 4; j += 2) {
            __m512i code = mixprec_halves_avx512_(c[j], c[j + 1], 0);
            code = _mm512_ternarylogic_epi32(code, mixprec_halves_avx512_(x[j], x[j + 1], 1), top, 0xF8);
            _mm512_storeu_si512((mixprec_f16 *)dst + 16 * j, code);
        }
    } else
        mixprec_pack8_avx512_(dst, c, x);
    return 1;
}

MIXPREC_AVX512_ static void mixprec_store_stochastic_avx512_(void *dst, mixprec_dtype type, const float *src, size_t n,
                                                             const mixprec_how_ *how) {
    const mixprec_encoder_avx512_ encoder = mixprec_encoder_of_avx512_(type, how);
    const mixprec_random_avx512_ generator = mixprec_random_of_avx512_(how->seed);
    const mixprec_places_ places = mixprec_places_of_(type);
    const uint64_t odd = how->index & 1;
    __m512i last = _mm512_set1_epi32((int)mixprec_random_bits(how->seed, how->index));
    size_t i, k;
    int j;
    for (i = 0; i < n; i += 128) {
        __m512i random[8];
        mixprec_random128_avx512_(random, &generator, how->index + i + odd);
        if (odd)
            MIXPREC_UNROLL_ for (j = 0; j < 8; j++) {
                __m512i words = random[j];
                random[j] = _mm512_alignr_epi32(words, last, 15);
                last = words;
            }
        for (k = 0; k < 128 && i + k < n; k += 64) {
            char *to = (char *)dst + mixprec_bytes_of_(type, i + k);
            if (!mixprec_store64_stochastic_avx512_(to, mixprec_size_of_(type) == 2, src + i + k, &places,
                                                    random + k / 16)) {
                uint32_t words[64];
                MIXPREC_UNROLL_ for (j = 0; j < 4; j++) _mm512_storeu_si512(words + 16 * j, random[k / 16 + (size_t)j]);
                mixprec_store64_any_avx512_(to, type, src + i + k, &encoder, words);
            }
        }
    }
}

MIXPREC_AVX512_ static void mixprec_store_avx512_(void *dst, mixprec_dtype type, const float *src, size_t n,
                                                  const mixprec_how_ *how) {
    int nearest = how->round == MIXPREC_ROUND_NEAREST_EVEN, saturate = how->overflow == MIXPREC_OVERFLOW_SATURATE;
    mixprec_encoder_avx512_ encoder;
    size_t i;
    if (type == MIXPREC_F64) {
        for (i = 0; i < n; i += 8)
            _mm512_storeu_pd((double *)dst + i, _mm512_cvtps_pd(_mm256_loadu_ps(src + i)));
        return;
    }
    if (!mixprec_is_compute_type_(type)) {
        mixprec_store_avx2_(dst, type, src, n, how);
        return;
    }
    if (nearest && how->overflow != MIXPREC_OVERFLOW_SATURATE_KEEP_INF) {
        switch (type) {
#define MIXPREC_ROW_(dtype)                                                                                            \
    case dtype:                                                                                                        \
        if (saturate)                                                                                                  \
            mixprec_store_nearest_avx512_(dst, dtype, src, n, 1, how);                                                 \
        else                                                                                                           \
            mixprec_store_nearest_avx512_(dst, dtype, src, n, 0, how);                                                 \
        return;
            MIXPREC_ROW_(MIXPREC_F16)
            MIXPREC_ROW_(MIXPREC_BF16)
            MIXPREC_ROW_(MIXPREC_E4M3)
            MIXPREC_ROW_(MIXPREC_E5M2)
#undef MIXPREC_ROW_
        default: return;
        }
    }
    if (how->round == MIXPREC_ROUND_STOCHASTIC) {
        mixprec_store_stochastic_avx512_(dst, type, src, n, how);
        return;
    }
    encoder = mixprec_encoder_of_avx512_(type, how);
    for (i = 0; i < n; i += 64)
        mixprec_store64_any_avx512_((char *)dst + mixprec_bytes_of_(type, i), type, src + i, &encoder,
                                    (const uint32_t *)(const void *)(src + i));
}

MIXPREC_AVX512_ static int mixprec_unscale_avx512_(float *dst, const float *src, size_t n, float factor) {
    const __m512i exponent = _mm512_set1_epi32(0x7F800000);
    __mmask16 found = 0;
    size_t i;
    for (i = 0; i < n; i += 16) {
        __m512 x = _mm512_mul_ps(_mm512_loadu_ps(src + i), _mm512_set1_ps(factor));
        _mm512_storeu_ps(dst + i, x);
        found =
            (__mmask16)(found | _mm512_cmpeq_epi32_mask(_mm512_and_si512(_mm512_castps_si512(x), exponent), exponent));
    }
    return found != 0;
}

#ifndef MIXPREC_NO_CONVERT
/* ---- statistics, as in [VEC-AVX2] ---- */

MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_add_squares_avx512_(__m512d sum[2], const __m512 x[4]) {
    __m512 s[4];
    int j;
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
        s[j] = _mm512_mul_ps(x[j], x[j]);
        MIXPREC_KEEP_(s[j]);
    }
    s[0] = _mm512_add_ps(s[0], s[1]);
    s[2] = _mm512_add_ps(s[2], s[3]);
    MIXPREC_KEEP_(s[0]);
    MIXPREC_KEEP_(s[2]);
    s[0] = _mm512_add_ps(s[0], s[2]);
    sum[0] = _mm512_add_pd(sum[0], _mm512_cvtps_pd(_mm512_castps512_ps256(s[0])));
    sum[1] = _mm512_add_pd(sum[1], _mm512_cvtps_pd(_mm512_extractf32x8_ps(s[0], 1)));
}

/* Constants of the format. Kept, so that they are not made from general registers again and again. */
typedef struct mixprec_format_avx512_ {
    __m512i lift, least_anchor, max, normal, vanishing;
} mixprec_format_avx512_;

MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ mixprec_format_avx512_ mixprec_format_of_avx512_(const mixprec_tally_ *t) {
    mixprec_format_avx512_ f;
    f.lift = _mm512_set1_epi32(t->shift << 23);
    f.least_anchor = _mm512_set1_epi32(t->min_normal + (t->shift << 23));
    f.max = _mm512_set1_epi32(t->max);
    f.normal = _mm512_set1_epi32(t->normal);
    f.vanishing = _mm512_set1_epi32(t->vanishing);
    MIXPREC_KEEP_(f.lift);
    MIXPREC_KEEP_(f.least_anchor);
    MIXPREC_KEEP_(f.max);
    MIXPREC_KEEP_(f.normal);
    MIXPREC_KEEP_(f.vanishing);
    return f;
}

/* The errors of a group that is looked at whole; 0 when that is not for this function. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ int mixprec_tally_whole_avx512_(mixprec_tally_ *t,
                                                                      const mixprec_format_avx512_ *f, __m512 error[4],
                                                                      const __m512 x[4], __m512i *amax,
                                                                      __m512i *least) {
    __m512i magnitude[4], largest, smallest;
    uint64_t gone = 0, small = 0;
    int j;
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) magnitude[j] =
        _mm512_and_si512(_mm512_castps_si512(x[j]), _mm512_set1_epi32(0x7FFFFFFF));
    largest =
        _mm512_max_epi32(_mm512_max_epi32(magnitude[0], magnitude[1]), _mm512_max_epi32(magnitude[2], magnitude[3]));
    smallest =
        _mm512_min_epi32(_mm512_min_epi32(magnitude[0], magnitude[1]), _mm512_min_epi32(magnitude[2], magnitude[3]));
    if (_mm512_cmpge_epi32_mask(largest, _mm512_set1_epi32(MIXPREC_SQUARES_BELOW_)) ||
        (!_mm512_cmpge_epi32_mask(largest, _mm512_set1_epi32(MIXPREC_SQUARES_FROM_)) &&
         _mm512_test_epi32_mask(largest, largest)))
        return 0;
    *amax = _mm512_max_epi32(*amax, largest);
    if (_mm512_testn_epi32_mask(smallest, smallest)) {
        uint64_t zeros = 0;
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
            *least = _mm512_min_epu32(*least, _mm512_sub_epi32(magnitude[j], _mm512_set1_epi32(1)));
            zeros += (uint64_t)_mm_popcnt_u64(_mm512_testn_epi32_mask(magnitude[j], magnitude[j]));
        }
        t->stats->zero += zeros;
        t->stats->underflow -= zeros;
    } else
        *least = _mm512_min_epu32(*least, _mm512_sub_epi32(smallest, _mm512_set1_epi32(1)));
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
        __m512 size = _mm512_castsi512_ps(magnitude[j]), sum, anchor;
        anchor = _mm512_castsi512_ps(_mm512_max_epi32(
            _mm512_add_epi32(_mm512_and_si512(magnitude[j], _mm512_set1_epi32(0x7F800000)), f->lift), f->least_anchor));
        sum = _mm512_add_ps(size, anchor);
        MIXPREC_KEEP_(sum);
        sum = _mm512_sub_ps(sum, anchor);
        MIXPREC_KEEP_(sum);
        error[j] = _mm512_sub_ps(size, sum);
        gone += (uint64_t)_mm_popcnt_u64(_mm512_cmple_epi32_mask(magnitude[j], f->vanishing));
        small += (uint64_t)_mm_popcnt_u64(_mm512_cmplt_epi32_mask(magnitude[j], f->normal));
    }
    t->stats->underflow += gone;
    t->stats->subnormal += small - gone;
    if (_mm512_cmpgt_epi32_mask(largest, f->max))
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
            __mmask16 over = _mm512_cmpgt_epi32_mask(magnitude[j], f->max);
            error[j] =
                _mm512_mask_sub_ps(error[j], over, _mm512_castsi512_ps(magnitude[j]), _mm512_castsi512_ps(f->max));
            t->stats->overflow += (uint64_t)_mm_popcnt_u64(over);
        }
    return 1;
}

MIXPREC_AVX512_ static size_t mixprec_tally_avx512_(mixprec_tally_ *t, const float *src, size_t n) {
    const __m512i half = _mm512_set1_epi32(1 << (t->shift - 1)), keep = _mm512_set1_epi32(-(1 << t->shift));
    const mixprec_format_avx512_ format = mixprec_format_of_avx512_(t);
    __m512i amax = _mm512_setzero_si512(), least = _mm512_set1_epi32(-1); /* least: less 1, so that zero is not it */
    __m512i window = _mm512_set1_epi8((char)t->window);
    __m512i high = _mm512_set1_epi8((char)t->high), low = _mm512_set1_epi8((char)t->low);
    __m512d signal[2], noise[2];
    __m512i bit[5]; /* of a distance: the four planes, and those outside of the window */
    size_t i;
    int j, whole = 0;
    MIXPREC_UNROLL_ for (j = 0; j < 5; j++) {
        bit[j] = _mm512_set1_epi8((char)(j < 4 ? 1 << j : 0xF0));
        MIXPREC_KEEP_(bit[j]);
    }
    MIXPREC_UNROLL_ for (j = 0; j < 2; j++) {
        signal[j] = _mm512_loadu_pd(t->signal + 8 * j);
        noise[j] = _mm512_loadu_pd(t->noise + 8 * j);
    }
    for (i = 0; i < n; i += 64) {
        __m512i bits[4], exponents, distance;
        __m512 x[4], error[4];
        uint64_t in, a, b, c, d;
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
            x[j] = _mm512_loadu_ps(src + i + 16 * j);
            bits[j] = _mm512_castps_si512(x[j]);
        }
        /* Upper halves, without their signs; then their upper bytes, in some order. */
        exponents = _mm512_slli_epi16(mixprec_halves_avx512_(bits[0], bits[1], 1), 1);
        distance = _mm512_slli_epi16(mixprec_halves_avx512_(bits[2], bits[3], 1), 1);
        exponents = _mm512_packus_epi16(_mm512_srli_epi16(exponents, 8), _mm512_srli_epi16(distance, 8));
        if (!whole &&
            !_kortestz_mask64_u8(_mm512_cmpge_epu8_mask(exponents, high), _mm512_cmple_epu8_mask(exponents, low)))
            whole = MIXPREC_WHOLE_;
        if (!whole) {
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) error[j] =
                _mm512_sub_ps(x[j], _mm512_castsi512_ps(_mm512_and_si512(_mm512_add_epi32(bits[j], half), keep)));
        } else {
            if (!mixprec_tally_whole_avx512_(t, &format, error, x, &amax, &least))
                break;
            if (--whole == 0) {
                mixprec_tally_range_(t, (uint32_t)_mm512_reduce_max_epi32(amax),
                                     (uint32_t)_mm512_reduce_min_epu32(least) + 1);
                high = _mm512_set1_epi8((char)t->high);
                low = _mm512_set1_epi8((char)t->low);
            }
        }
        mixprec_add_squares_avx512_(signal, x);
        mixprec_add_squares_avx512_(noise, error);
        distance = _mm512_sub_epi8(exponents, window);
        in = _mm512_testn_epi8_mask(distance, bit[4]);
        a = _mm512_mask_test_epi8_mask(in, distance, bit[0]);
        b = _mm512_mask_test_epi8_mask(in, distance, bit[1]);
        c = _mm512_mask_test_epi8_mask(in, distance, bit[2]);
        d = _mm512_mask_test_epi8_mask(in, distance, bit[3]);
        mixprec_tally_planes_(t->planes, in, a, b, c, d);
        if (~in) {
            uint64_t zeros = _mm512_mask_testn_epi8_mask(~in, exponents, exponents);
            t->stats->exponents[0] += (uint64_t)_mm_popcnt_u64(zeros);
            if (~in & ~zeros) {
                uint8_t bytes[64];
                _mm512_storeu_si512(bytes, exponents);
                mixprec_tally_others_(t, bytes, ~in & ~zeros);
                window = _mm512_set1_epi8((char)t->window);
            }
        }
    }
    mixprec_tally_range_(t, (uint32_t)_mm512_reduce_max_epi32(amax), (uint32_t)_mm512_reduce_min_epu32(least) + 1);
    MIXPREC_UNROLL_ for (j = 0; j < 2; j++) {
        _mm512_storeu_pd(t->signal + 8 * j, signal[j]);
        _mm512_storeu_pd(t->noise + 8 * j, noise[j]);
    }
    return i;
}
#endif

/* ---- GEMM ---- */

#ifndef MIXPREC_NO_GEMM
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512 mixprec_add_avx512_(__m512 a, __m512 b, int wide) {
    return wide ? _mm512_castpd_ps(_mm512_add_pd(_mm512_castps_pd(a), _mm512_castps_pd(b))) : _mm512_add_ps(a, b);
}

/* The first `n` lanes; all of them when there are no more. */
MIXPREC_FORCE_INLINE_ __mmask16 mixprec_first_lanes_(size_t n) {
    return (__mmask16)(n >= 16 ? 0xFFFFu : (1u << n) - 1u);
}

/* 14 x 32 (f64: 14 x 16): 28 accumulators, 2 vectors of B, 1 broadcast of A. */
#define MIXPREC_TILE_ROWS_AVX512_ 14
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_tile_body_avx512_(const int rows, const int vectors, const int wide,
                                                                     size_t rows_there, size_t columns, size_t depth,
                                                                     const char *a, const char *b, char *t, size_t ldt,
                                                                     int first) {
    const size_t size = wide ? 8 : 4;
    const size_t words = columns * size / 4; /* masks count lanes of 4 bytes, whatever the width */
    int i, j;
    for (; depth; first = 0) {
        size_t chunk = mixprec_min_(depth, MIXPREC_GEMM_KBLOCK), p;
        /* One of the two is used: see mixprec_tile_body_avx2_. */
        __m512 s[MIXPREC_TILE_ROWS_AVX512_][2];
        __m512d w[MIXPREC_TILE_ROWS_AVX512_][2];
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
            s[i][j] = _mm512_setzero_ps();
            w[i][j] = _mm512_setzero_pd();
        }
        for (p = 0; p < chunk; p++) {
            const float *x = (const float *)(const void *)b, *y = (const float *)(const void *)a;
            const double *x_wide = (const double *)(const void *)b, *y_wide = (const double *)(const void *)a;
            MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) if (wide) w[i][j] =
                _mm512_fmadd_pd(_mm512_set1_pd(y_wide[i]), _mm512_loadu_pd(x_wide + 8 * j), w[i][j]);
            else s[i][j] = _mm512_fmadd_ps(_mm512_set1_ps(y[i]), _mm512_loadu_ps(x + 16 * j), s[i][j]);
            a += MIXPREC_TILE_ROWS_AVX512_ * size;
            b += 128;
        }
        if (wide)
            MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) s[i][j] =
                _mm512_castpd_ps(w[i][j]);
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) {
            MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
                char *to = t + (size_t)i * ldt * size + (size_t)j * 64;
                __mmask16 lanes = mixprec_first_lanes_(words > (size_t)j * 16 ? words - (size_t)j * 16 : 0);
                if ((size_t)i < rows_there) {
                    if (!first)
                        s[i][j] = mixprec_add_avx512_(_mm512_maskz_loadu_ps(lanes, to), s[i][j], wide);
                    _mm512_mask_storeu_ps(to, lanes, s[i][j]);
                }
            }
        }
        depth -= chunk;
    }
}

/* One function for each even count of rows, so that an edge costs little more than what it computes; the rows that are
   not there are zeros of the panel. Every count would double the time to compile. */
#define MIXPREC_TILE_AVX512_(rows, vectors, wide)                                                                      \
    MIXPREC_AVX512_ static void mixprec_tile_##rows##_##vectors##_##wide##_avx512_(                                    \
        size_t rows_there, size_t columns, size_t depth, const char *a, const char *b, char *t, size_t ldt,            \
        int first) {                                                                                                   \
        mixprec_tile_body_avx512_(rows, vectors, wide, rows_there, columns, depth, a, b, t, ldt, first);               \
    }
#define MIXPREC_TILES_AVX512_(X, rows) X(rows, 1, 0) X(rows, 2, 0) X(rows, 2, 1)
#define MIXPREC_ALL_TILES_AVX512_(X)                                                                                   \
    MIXPREC_TILES_AVX512_(X, 1)                                                                                        \
    MIXPREC_TILES_AVX512_(X, 2)                                                                                        \
    MIXPREC_TILES_AVX512_(X, 4)                                                                                        \
    MIXPREC_TILES_AVX512_(X, 6)                                                                                        \
    MIXPREC_TILES_AVX512_(X, 8)                                                                                        \
    MIXPREC_TILES_AVX512_(X, 10) MIXPREC_TILES_AVX512_(X, 12) MIXPREC_TILES_AVX512_(X, 14)
MIXPREC_ALL_TILES_AVX512_(MIXPREC_TILE_AVX512_)
#undef MIXPREC_TILE_AVX512_

MIXPREC_AVX512_ static void mixprec_tile_avx512_(size_t rows, size_t columns, size_t depth, const void *a,
                                                 const void *b, void *t, size_t ldt, int first, int wide) {
    size_t vectors = wide || columns > 16 ? 2 : 1, kernel_rows = rows == 1 ? 1 : mixprec_round_up_(rows, 2);
    switch (kernel_rows * 4 + (vectors - 1) * 2 + (size_t)wide) {
#define MIXPREC_TILE_AVX512_(kernel_rows, vectors, wide)                                                               \
    case kernel_rows * 4 + (vectors - 1) * 2 + wide:                                                                   \
        mixprec_tile_##kernel_rows##_##vectors##_##wide##_avx512_(rows, columns, depth, (const char *)a,               \
                                                                  (const char *)b, (char *)t, ldt, first);             \
        break;
        MIXPREC_ALL_TILES_AVX512_(MIXPREC_TILE_AVX512_)
#undef MIXPREC_TILE_AVX512_
    default: break;
    }
}

/* 64 bytes, or the first `bytes` of them, of each of 16 rows (zeros for those that are not there), transposed in units
   of 4 bytes, or, wide, of 8 bytes in two blocks of 8 rows. The type does not matter yet: narrow elements are cheaper
   to transpose than the fp32 that they become. */
MIXPREC_AVX512_ static void mixprec_transpose_avx512_(__m512i r[16], const char *src, size_t stride, size_t rows,
                                                      size_t bytes, int wide) {
    const __mmask64 there = bytes >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << bytes) - 1;
    __m512i t[16];
    int i;
    size_t q;
    /* By way of memory: 16 row pointers at once would not fit the registers. */
    for (q = 0; q < 16; q++)
        r[q] = q < rows ? _mm512_maskz_loadu_epi8(there, src + q * stride) : _mm512_setzero_si512();
    if (wide) {
        MIXPREC_UNROLL_ for (i = 0; i < 16; i += 2) {
            t[i] = _mm512_unpacklo_epi64(r[i], r[i + 1]);
            t[i + 1] = _mm512_unpackhi_epi64(r[i], r[i + 1]);
        }
        MIXPREC_UNROLL_ for (i = 0; i < 4; i++) {
            int k = i / 2 * 8 + i % 2;
            __m512i x = _mm512_shuffle_i32x4(t[k], t[k + 2], 0x88), y = _mm512_shuffle_i32x4(t[k], t[k + 2], 0xDD);
            __m512i z = _mm512_shuffle_i32x4(t[k + 4], t[k + 6], 0x88),
                    u = _mm512_shuffle_i32x4(t[k + 4], t[k + 6], 0xDD);
            r[k] = _mm512_shuffle_i32x4(x, z, 0x88);
            r[k + 4] = _mm512_shuffle_i32x4(x, z, 0xDD);
            r[k + 2] = _mm512_shuffle_i32x4(y, u, 0x88);
            r[k + 6] = _mm512_shuffle_i32x4(y, u, 0xDD);
        }
        return;
    }
    MIXPREC_UNROLL_ for (i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    MIXPREC_UNROLL_ for (i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    MIXPREC_UNROLL_ for (i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xDD);
        t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xDD);
    }
    MIXPREC_UNROLL_ for (i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xDD);
        r[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xDD);
    }
}

/* 16 pairs of half-precision numbers: the first of each, then the second. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_split_half_avx512_(__m512 x[2], __m512i pairs, int e4m3) {
    const __m512i order =
        _mm512_add_epi32(/* 0, 2 ... 30, 1, 3 ... 31 as 16-bit numbers */
                         _mm512_mullo_epi32(_mm512_set1_epi32(0x00040004),
                                            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7)),
                         _mm512_setr_epi32(0x20000, 0x20000, 0x20000, 0x20000, 0x20000, 0x20000, 0x20000, 0x20000,
                                           0x30001, 0x30001, 0x30001, 0x30001, 0x30001, 0x30001, 0x30001, 0x30001));
    pairs = _mm512_permutexvar_epi16(order, pairs);
    x[0] = _mm512_cvtph_ps(_mm512_castsi512_si256(pairs));
    x[1] = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(pairs, 1));
    if (e4m3) {
        x[0] = _mm512_mul_ps(x[0], _mm512_set1_ps(256.0f));
        x[1] = _mm512_mul_ps(x[1], _mm512_set1_ps(256.0f));
    }
}

/* The numbers in 4 bytes of each of 16 rows, in order: 1 of fp32, 2 of 16 bits, 4 of 8 bits. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_expand_avx512_(__m512 x[4], __m512i word, mixprec_dtype type) {
    const __m512i upper_bytes = _mm512_set1_epi32((int)0xFF00FF00u), bit14 = _mm512_set1_epi16(0x4000);
    __m512i half[2], order;
    int i;
    switch (type) {
    case MIXPREC_F16: mixprec_split_half_avx512_(x, word, 0); break;
    case MIXPREC_BF16:
        x[0] = _mm512_castsi512_ps(_mm512_slli_epi32(word, 16));
        x[1] = _mm512_castsi512_ps(_mm512_and_si512(word, _mm512_set1_epi32((int)0xFFFF0000u)));
        break;
    case MIXPREC_E4M3:
    case MIXPREC_E5M2:
        order = _mm512_set1_epi32(0x03010200); /* bytes 0, 2, 1, 3: so that the pairs below are (0, 1) and (2, 3) */
        word = _mm512_shuffle_epi8(
            word,
            _mm512_add_epi32(order, _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0C0C0C0C))));
        half[0] = _mm512_and_si512(_mm512_slli_epi16(word, 8), upper_bytes);
        half[1] = _mm512_and_si512(word, upper_bytes);
        MIXPREC_UNROLL_ for (i = 0; i < 2; i++) {
            if (type == MIXPREC_E4M3) { /* see mixprec_e4m3_to_half_avx2_ */
                half[i] = _mm512_srli_epi16(half[i], 1);
                half[i] = _mm512_add_epi16(half[i], _mm512_and_si512(half[i], bit14));
                half[i] = _mm512_or_si512(half[i],
                                          _mm512_and_si512(_mm512_add_epi16(half[i], _mm512_set1_epi16(0x80)), bit14));
            }
            mixprec_split_half_avx512_(x + 2 * i, half[i], type == MIXPREC_E4M3);
        }
        break;
    default: x[0] = _mm512_castsi512_ps(word); break;
    }
}

/* Writes transposed lines to a panel, at most n rows of it. All 16 columns are written: those beyond the panel's width
   spill into its next row, which is written later, or past its end, where the workspace has room. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_pack_lines_avx512_(float *dst, size_t width, const __m512i r[16],
                                                                      size_t n, mixprec_dtype type, size_t per_word) {
    size_t q, i;
    for (q = 0; q * per_word < n; q++) {
        __m512 x[4];
        mixprec_expand_avx512_(x, r[q], type);
        for (i = 0; i < per_word && q * per_word + i < n; i++, dst += width)
            _mm512_storeu_ps(dst, x[i]);
    }
}

MIXPREC_AVX512_ static void mixprec_pack_across_avx512_(char *dst, size_t width, const char *src, mixprec_dtype type,
                                                        size_t stride, size_t count, size_t depth, int wide) {
    const size_t size = mixprec_size_of_(type), to_size = wide ? 8 : 4;
    size_t i, q, bytes;
    for (bytes = 0; bytes < depth * size; bytes += 64, dst += 64 / size * width * to_size) {
        /* A cache line of each of 16 rows before the next 16: with a power of two between rows they share one set. */
        for (i = 0; i < width; i += 16) {
            size_t left = mixprec_min_(64, depth * size - bytes), rows = mixprec_min_(16, count > i ? count - i : 0);
            const char *from = src + i * stride + bytes;
            float *to = (float *)(void *)(dst + i * to_size);
            __m512i r[16];
            for (q = 0; q < rows; q++)
                _mm_prefetch(from + q * stride + MIXPREC_PREFETCH_, _MM_HINT_T1);
            mixprec_transpose_avx512_(r, from, stride, rows, left, wide);
            switch (type) {
            case MIXPREC_F32: mixprec_pack_lines_avx512_(to, width, r, left / 4, MIXPREC_F32, 1); break;
            case MIXPREC_F16: mixprec_pack_lines_avx512_(to, width, r, left / 2, MIXPREC_F16, 2); break;
            case MIXPREC_BF16: mixprec_pack_lines_avx512_(to, width, r, left / 2, MIXPREC_BF16, 2); break;
            case MIXPREC_E4M3: mixprec_pack_lines_avx512_(to, width, r, left, MIXPREC_E4M3, 4); break;
            case MIXPREC_E5M2: mixprec_pack_lines_avx512_(to, width, r, left, MIXPREC_E5M2, 4); break;
            default: /* f64 */
                for (q = 0; q < left / 8; q++, to += width * 2) {
                    _mm512_storeu_si512(to, r[q]);
                    _mm512_mask_storeu_epi32(to + 16, mixprec_first_lanes_((width - i) * 2 - 16), r[8 + q]);
                }
                break;
            }
        }
    }
}

/* Lanes are columns of C, that is rows of B in memory, 32 at a time: each word of a transposed line is widened and
   multiplied in registers. With the panel written and read instead, a 4096 x 4096 matrix times a vector took 1.3 to 1.8
   times as long on Zen 5. */
#define MIXPREC_DIRECT_ROWS_AVX512_ 4
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_direct_body_avx512_(const int rows, const mixprec_dtype type,
                                                                       size_t rows_there, size_t columns, size_t depth,
                                                                       const float *a, const char *b, size_t stride,
                                                                       float *t, size_t ldt, int first) {
    const size_t size = type == MIXPREC_F32                           ? 4
                        : type == MIXPREC_F16 || type == MIXPREC_BF16 ? 2
                                                                      : 1,
                 per_word = 4 / size;
    const size_t low = mixprec_min_(columns, 16), high = columns - low;
    int i, j;
    for (; depth; first = 0) {
        size_t chunk = mixprec_min_(depth, MIXPREC_GEMM_KBLOCK), p, q;
        __m512 s[MIXPREC_DIRECT_ROWS_AVX512_][2];
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < 2; j++) s[i][j] =
            _mm512_setzero_ps();
        for (p = 0; p < chunk; p += 64 / size, b += 64) {
            size_t left = mixprec_min_(64 / size, chunk - p), k;
            __m512i r[2][16];
            for (q = 0; q < columns; q++)
                _mm_prefetch(b + q * stride + MIXPREC_PREFETCH_, _MM_HINT_T1);
            mixprec_transpose_avx512_(r[0], b, stride, low, left * size, 0);
            mixprec_transpose_avx512_(r[1], b + 16 * stride, stride, high, left * size, 0);
            for (q = 0; q * per_word < left; q++) {
                __m512 x[2][4];
                mixprec_expand_avx512_(x[0], r[0][q], type);
                mixprec_expand_avx512_(x[1], r[1][q], type);
                MIXPREC_UNROLL_ for (k = 0; k < per_word; k++) {
                    if (q * per_word + k < left) {
                        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < 2; j++) s[i][j] =
                            _mm512_fmadd_ps(_mm512_set1_ps(a[i]), x[j][k], s[i][j]);
                        a += MIXPREC_TILE_ROWS_AVX512_;
                    }
                }
            }
        }
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < 2; j++) {
            __mmask16 lanes = mixprec_first_lanes_(j ? high : low);
            float *to = t + (size_t)i * ldt + j * 16;
            if ((size_t)i < rows_there) {
                if (!first)
                    s[i][j] = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, to), s[i][j]);
                _mm512_mask_storeu_ps(to, lanes, s[i][j]);
            }
        }
        depth -= chunk;
    }
}

MIXPREC_AVX512_ static void mixprec_direct_avx512_(size_t rows, size_t columns, size_t depth, const float *a,
                                                   const char *b, mixprec_dtype type, size_t stride, float *t,
                                                   size_t ldt, int first) {
    switch (type) {
#define MIXPREC_ROW_(dtype)                                                                                            \
    case dtype:                                                                                                        \
        if (rows == 1)                                                                                                 \
            mixprec_direct_body_avx512_(1, dtype, rows, columns, depth, a, b, stride, t, ldt, first);                  \
        else                                                                                                           \
            mixprec_direct_body_avx512_(4, dtype, rows, columns, depth, a, b, stride, t, ldt, first);                  \
        break;
        MIXPREC_ROW_(MIXPREC_F32)
        MIXPREC_ROW_(MIXPREC_F16)
        MIXPREC_ROW_(MIXPREC_BF16)
        MIXPREC_ROW_(MIXPREC_E4M3)
        MIXPREC_ROW_(MIXPREC_E5M2)
#undef MIXPREC_ROW_
    default: break;
    }
}

/* Elements that lie side by side in src as in the panel, which is at most two vectors wide. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_pack_along_avx512_(char *dst, size_t width, const char *src,
                                                                      mixprec_dtype type, size_t stride, size_t count,
                                                                      size_t depth, const int wide) {
    const size_t lanes = wide ? 8 : 16, words = wide ? 2 : 1, to_size = wide ? 8 : 4, size = mixprec_size_of_(type);
    __mmask16 there[2], room[2];
    size_t i, p;
    for (i = 0; i < 2; i++) {
        there[i] = mixprec_first_lanes_(count > i * lanes ? (count - i * lanes) * words : 0);
        room[i] = mixprec_first_lanes_(width > i * lanes ? (width - i * lanes) * words : 0);
    }
    for (p = 0; p < depth; p++, src += stride, dst += width * to_size)
        for (i = 0; i * lanes < width; i++)
            _mm512_mask_storeu_ps(dst + i * 64, room[i],
                                  mixprec_load16_avx512_(src + i * lanes * size, wide ? MIXPREC_F32 : type, there[i]));
}

MIXPREC_AVX512_ static void mixprec_pack_avx512_(void *dst, size_t width, const void *src, mixprec_dtype type,
                                                 size_t ld, int along, size_t count, size_t depth, int wide) {
    const char *from = (const char *)src;
    size_t stride = ld * mixprec_size_of_(type);
    char *to = (char *)dst;
    if (!along && type == MIXPREC_F64 && !wide)
        mixprec_pack_c_(dst, width, src, type, ld, along, count, depth, wide);
    else if (!along)
        mixprec_pack_across_avx512_(to, width, from, type, stride, count, depth, wide);
    else if (wide)
        mixprec_pack_along_avx512_(to, width, from, MIXPREC_F64, stride, count, depth, 1);
    else
        switch (type) {
#define MIXPREC_ROW_(dtype)                                                                                            \
    case dtype: mixprec_pack_along_avx512_(to, width, from, dtype, stride, count, depth, 0); break;
            MIXPREC_ROW_(MIXPREC_F32)
            MIXPREC_ROW_(MIXPREC_F64)
            MIXPREC_ROW_(MIXPREC_F16)
            MIXPREC_ROW_(MIXPREC_BF16)
            MIXPREC_ROW_(MIXPREC_E4M3)
            MIXPREC_ROW_(MIXPREC_E5M2)
#undef MIXPREC_ROW_
        default: break;
        }
}
#endif /* MIXPREC_NO_GEMM */
#endif /* MIXPREC_HAS_AVX512_ */

/* ================================================================================================================== */
/* [VEC-NEON] Kernels for AArch64                                                                                     */
/* ================================================================================================================== */

#if defined(MIXPREC_HAS_NEON_)

/* 8 bytes of E4M3 as 8 half-precision numbers of 1/256 of their value: see mixprec_e4m3_to_half_avx2_. */
MIXPREC_FORCE_INLINE_ uint16x8_t mixprec_e4m3_to_half_neon_(uint8x8_t codes) {
    const uint16x8_t bit14 = vdupq_n_u16(0x4000);
    uint16x8_t x = vshll_n_u8(codes, 7);
    x = vaddq_u16(x, vandq_u16(x, bit14));
    return vorrq_u16(x, vandq_u16(vaddq_u16(x, vdupq_n_u16(0x80)), bit14));
}

/* 8 elements from half precision, times scale. */
MIXPREC_FORCE_INLINE_ void mixprec_half_to_f32_neon_(float *dst, uint16x8_t half, float scale) {
    float32x4_t low = vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(half)));
    float32x4_t high = vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(half)));
    vst1q_f32(dst, scale == 1.0f ? low : vmulq_n_f32(low, scale));
    vst1q_f32(dst + 4, scale == 1.0f ? high : vmulq_n_f32(high, scale));
}

static void mixprec_load_neon_(float *dst, const void *src, mixprec_dtype type, size_t n) {
    size_t i;
    switch (type) {
    case MIXPREC_F64:
        for (i = 0; i < n; i += 4) {
            const double *from = (const double *)src + i;
            float32x2_t low = vcvt_f32_f64(vld1q_f64(from));
            vst1q_f32(dst + i, vcvt_high_f32_f64(low, vld1q_f64(from + 2)));
        }
        break;
    case MIXPREC_F16:
        for (i = 0; i < n; i += 8)
            mixprec_half_to_f32_neon_(dst + i, vld1q_u16((const uint16_t *)src + i), 1.0f);
        break;
    case MIXPREC_BF16:
        for (i = 0; i < n; i += 8) {
            uint16x8_t x = vld1q_u16((const uint16_t *)src + i);
            uint16x8_t nan = vcgtq_u16(vandq_u16(x, vdupq_n_u16(0x7FFF)), vdupq_n_u16(0x7F80));
            x = vorrq_u16(x, vandq_u16(nan, vdupq_n_u16(0x40)));
            vst1q_f32(dst + i, vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(x), 16)));
            vst1q_f32(dst + i + 4, vreinterpretq_f32_u32(vshll_n_u16(vget_high_u16(x), 16)));
        }
        break;
    case MIXPREC_E4M3:
        for (i = 0; i < n; i += 8)
            mixprec_half_to_f32_neon_(dst + i, mixprec_e4m3_to_half_neon_(vld1_u8((const uint8_t *)src + i)), 256.0f);
        break;
    case MIXPREC_E5M2:
        for (i = 0; i < n; i += 8)
            mixprec_half_to_f32_neon_(dst + i, vshll_n_u8(vld1_u8((const uint8_t *)src + i), 8), 1.0f);
        break;
    default: mixprec_load_c_(dst, src, type, n); break;
    }
}

/* bfloat16 to nearest even, in the upper half of each lane. */
MIXPREC_FORCE_INLINE_ uint32x4_t mixprec_encode_bf16_neon_(uint32x4_t bits, int saturate) {
    uint32x4_t magnitude = vandq_u32(bits, vdupq_n_u32(0x7FFFFFFF)), infinity = vdupq_n_u32(0x7F800000), sum;
    uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1)), nan = vcgtq_u32(magnitude, infinity);
    if (saturate) {
        uint32x4_t sign = veorq_u32(bits, magnitude);
        bits = vbslq_u32(nan, bits, vorrq_u32(sign, vminq_u32(magnitude, vdupq_n_u32(0x7F7F0000))));
    }
    sum = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7FFF)), odd);
    return vbslq_u32(nan, vorrq_u32(bits, vdupq_n_u32(0x400000)), sum);
}

/* fp8 to nearest even: see mixprec_encode_fp8_avx2_; as integers, magnitudes order as the numbers do, with NaN on
   top. */
MIXPREC_FORCE_INLINE_ uint32x4_t mixprec_encode_fp8_neon_(uint32x4_t bits, mixprec_dtype type, int saturate) {
    const int mantissa = type == MIXPREC_E4M3 ? 3 : 2, least = type == MIXPREC_E4M3 ? 127 - 6 : 127 - 14;
    const uint32x4_t magic = vdupq_n_u32((uint32_t)(((23 - mantissa) << 23) + (-least * (1 << mantissa) & 0xFF)));
    uint32x4_t magnitude = vandq_u32(bits, vdupq_n_u32(0x7FFFFFFF)),
               nan = vcgtq_u32(magnitude, vdupq_n_u32(0x7F800000));
    float limit = type == MIXPREC_E4M3 ? (saturate ? 448.0f : 480.0f) : (saturate ? 57344.0f : 65536.0f);
    uint32x4_t clamped = vminq_u32(magnitude, vreinterpretq_u32_f32(vdupq_n_f32(limit))), exponent, sum, code, nan_code;
    exponent = vmaxq_u32(vandq_u32(clamped, vdupq_n_u32(0x7F800000)), vdupq_n_u32((uint32_t)least << 23));
    sum = vreinterpretq_u32_f32(
        vaddq_f32(vreinterpretq_f32_u32(clamped), vreinterpretq_f32_u32(vaddq_u32(exponent, magic))));
    code = vandq_u32(vaddq_u32(sum, vshlq_u32(exponent, vdupq_n_s32(mantissa - 23))), vdupq_n_u32(0xFF));
    nan_code = type == MIXPREC_E4M3 ? vdupq_n_u32(0x7F)
                                    : vorrq_u32(vdupq_n_u32(0x7E), vandq_u32(vshrq_n_u32(bits, 21), vdupq_n_u32(1)));
    code = vbslq_u32(nan, nan_code, code);
    return vorrq_u32(code, vandq_u32(vshrq_n_u32(bits, 24), vdupq_n_u32(0x80)));
}

/* f16 to nearest even. */
MIXPREC_FORCE_INLINE_ uint16x4_t mixprec_encode_f16_neon_(float32x4_t x, int saturate) {
    uint32x4_t bits = vreinterpretq_u32_f32(x), magnitude = vandq_u32(bits, vdupq_n_u32(0x7FFFFFFF));
    if (saturate) {
        uint32x4_t limited =
            vorrq_u32(veorq_u32(bits, magnitude), vminq_u32(magnitude, vreinterpretq_u32_f32(vdupq_n_f32(65504.0f))));
        x = vreinterpretq_f32_u32(vbslq_u32(vcgtq_u32(magnitude, vdupq_n_u32(0x7F800000)), bits, limited));
    }
    return vreinterpret_u16_f16(vcvt_f16_f32(x));
}

MIXPREC_FORCE_INLINE_ void mixprec_store_nearest_neon_(void *dst, mixprec_dtype type, const float *src, size_t n,
                                                       int saturate) {
    size_t i;
    for (i = 0; i < n; i += 8) {
        float32x4_t x = vld1q_f32(src + i), y = vld1q_f32(src + i + 4);
        uint32x4_t p = vreinterpretq_u32_f32(x), q = vreinterpretq_u32_f32(y);
        if (type == MIXPREC_F16)
            vst1q_u16((uint16_t *)dst + i,
                      vcombine_u16(mixprec_encode_f16_neon_(x, saturate), mixprec_encode_f16_neon_(y, saturate)));
        else if (type == MIXPREC_BF16)
            vst1q_u16((uint16_t *)dst + i, vcombine_u16(vshrn_n_u32(mixprec_encode_bf16_neon_(p, saturate), 16),
                                                        vshrn_n_u32(mixprec_encode_bf16_neon_(q, saturate), 16)));
        else
            vst1_u8((uint8_t *)dst + i,
                    vmovn_u16(vcombine_u16(vmovn_u32(mixprec_encode_fp8_neon_(p, type, saturate)),
                                           vmovn_u32(mixprec_encode_fp8_neon_(q, type, saturate)))));
    }
}

static void mixprec_store_neon_(void *dst, mixprec_dtype type, const float *src, size_t n, const mixprec_how_ *how) {
    int saturate = how->overflow == MIXPREC_OVERFLOW_SATURATE;
    size_t i;
    if (type == MIXPREC_F64) {
        for (i = 0; i < n; i += 2)
            vst1q_f64((double *)dst + i, vcvt_f64_f32(vld1_f32(src + i)));
        return;
    }
    if (how->round != MIXPREC_ROUND_NEAREST_EVEN || how->overflow == MIXPREC_OVERFLOW_SATURATE_KEEP_INF ||
        !mixprec_is_compute_type_(type)) {
        mixprec_store_c_(dst, type, src, n, how);
        return;
    }
    switch (type) {
#define MIXPREC_ROW_(dtype)                                                                                            \
    case dtype:                                                                                                        \
        if (saturate)                                                                                                  \
            mixprec_store_nearest_neon_(dst, dtype, src, n, 1);                                                        \
        else                                                                                                           \
            mixprec_store_nearest_neon_(dst, dtype, src, n, 0);                                                        \
        break;
        MIXPREC_ROW_(MIXPREC_F16)
        MIXPREC_ROW_(MIXPREC_BF16)
        MIXPREC_ROW_(MIXPREC_E4M3)
        MIXPREC_ROW_(MIXPREC_E5M2)
#undef MIXPREC_ROW_
    default: break;
    }
}

static int mixprec_unscale_neon_(float *dst, const float *src, size_t n, float factor) {
    const uint32x4_t exponent = vdupq_n_u32(0x7F800000);
    uint32x4_t found = vdupq_n_u32(0);
    size_t i;
    for (i = 0; i < n; i += 4) {
        float32x4_t x = vmulq_n_f32(vld1q_f32(src + i), factor);
        vst1q_f32(dst + i, x);
        found = vorrq_u32(found, vceqq_u32(vandq_u32(vreinterpretq_u32_f32(x), exponent), exponent));
    }
    return vmaxvq_u32(found) != 0;
}
#endif /* MIXPREC_HAS_NEON_ */

/* ================================================================================================================== */
/* [CONVERT] Arrays from any type to any type                                                                         */
/* ================================================================================================================== */

/* load and store for any n: what is left of a unit goes through a buffer, so that kernels never read or write beyond
   the arrays. */
static void mixprec_load_(const mixprec_kernels_ *kernels, float *dst, const void *src, mixprec_dtype type, size_t n) {
    size_t whole = n / MIXPREC_UNIT_ * MIXPREC_UNIT_;
    if (type == MIXPREC_F32) {
        if (dst != src)
            mixprec_copy_(dst, src, n * sizeof *dst);
        return;
    }
    if (whole)
        kernels->load(dst, src, type, whole);
    if (n != whole) {
        double in[MIXPREC_UNIT_] = {0}; /* as wide as the widest type */
        float out[MIXPREC_UNIT_];
        mixprec_copy_(in, (const char *)src + mixprec_bytes_of_(type, whole), mixprec_bytes_of_(type, n - whole));
        kernels->load(out, in, type, MIXPREC_UNIT_);
        mixprec_copy_(dst + whole, out, (n - whole) * sizeof *out);
    }
}

static void mixprec_store_(const mixprec_kernels_ *kernels, void *dst, mixprec_dtype type, const float *src, size_t n,
                           const mixprec_how_ *how) {
    size_t whole = n / MIXPREC_UNIT_ * MIXPREC_UNIT_;
    if (type == MIXPREC_F32) {
        if (dst != src)
            mixprec_copy_(dst, src, n * sizeof *src);
        return;
    }
    if (whole)
        kernels->store(dst, type, src, whole, how);
    if (n != whole) {
        float in[MIXPREC_UNIT_] = {0};
        double out[MIXPREC_UNIT_];
        mixprec_how_ rest = *how;
        rest.index += whole;
        mixprec_copy_(in, src + whole, (n - whole) * sizeof *in);
        kernels->store(out, type, in, MIXPREC_UNIT_, &rest);
        mixprec_copy_((char *)dst + mixprec_bytes_of_(type, whole), out, mixprec_bytes_of_(type, n - whole));
    }
}

static void mixprec_load_f64_odd_(const mixprec_kernels_ *kernels, float *dst, const double *src, size_t n) {
    size_t whole = n / MIXPREC_UNIT_ * MIXPREC_UNIT_;
    if (whole)
        kernels->load_odd(dst, src, whole);
    if (n != whole)
        mixprec_load_odd_c_(dst + whole, src + whole, n - whole);
}

/* At most MIXPREC_BLOCK_ doubles to a narrower type, rounded once. */
static void mixprec_store_f64_(const mixprec_kernels_ *kernels, void *dst, mixprec_dtype type, const double *src,
                               size_t n, const mixprec_how_ *how) {
    MIXPREC_ASSERT(n <= MIXPREC_BLOCK_);
    if (type == MIXPREC_F32 && how->round == MIXPREC_ROUND_NEAREST_EVEN && how->overflow == MIXPREC_OVERFLOW_IEEE) {
        mixprec_load_(kernels, (float *)dst, src, MIXPREC_F64, n);
    } else if (type == MIXPREC_F32 || how->round == MIXPREC_ROUND_STOCHASTIC) {
        /* Rounding to odd keeps too few bits for these. */
        unsigned char *to = (unsigned char *)dst;
        size_t i;
        for (i = 0; i < n; i++) {
            uint32_t random =
                how->round == MIXPREC_ROUND_STOCHASTIC ? mixprec_random_bits(how->seed, how->index + i) : 0;
            uint32_t code = mixprec_encode(src[i], type, how->round, how->overflow, random);
            if (type == MIXPREC_F32)
                ((float *)dst)[i] = mixprec_f32_from_bits_(code);
            else if (mixprec_size_of_(type) == 2)
                ((mixprec_f16 *)dst)[i].bits = (uint16_t)code;
            else if (type == MIXPREC_E2M1)
                to[i / 2] = (uint8_t)(i % 2 ? to[i / 2] | code << 4 : code);
            else
                to[i] = (uint8_t)code;
        }
    } else {
        float odd[MIXPREC_BLOCK_];
        mixprec_load_f64_odd_(kernels, odd, src, n);
        mixprec_store_(kernels, dst, type, odd, n, how);
    }
}

/* Widening cannot overflow, but MIXPREC_OVERFLOW_SATURATE replaces Inf too. */
static void mixprec_saturate_inf_(void *x, mixprec_dtype type, size_t n) {
    size_t i;
    if (type == MIXPREC_F32) {
        float *f = (float *)x;
        for (i = 0; i < n; i++)
            if ((mixprec_f32_bits_(f[i]) & 0x7FFFFFFFu) == 0x7F800000u)
                f[i] = mixprec_f32_from_bits_(mixprec_f32_bits_(f[i]) - 1);
    } else {
        double *d = (double *)x;
        for (i = 0; i < n; i++)
            if ((mixprec_f64_bits_(d[i]) & ~((uint64_t)1 << 63)) == (uint64_t)0x7FF << 52)
                d[i] = mixprec_f64_from_bits_(mixprec_f64_bits_(d[i]) - 1);
    }
}

static void mixprec_scale_f32_(float *dst, const float *src, size_t n, float factor) {
    size_t i;
    for (i = 0; i < n; i++)
        dst[i] = src[i] * factor;
}
static void mixprec_scale_f64_(double *dst, const double *src, size_t n, double factor) {
    size_t i;
    for (i = 0; i < n; i++)
        dst[i] = src[i] * factor;
}

/* Any type to any type, after a multiplication by scale unless that is 1. dst may be src where its elements are not
   larger. Equal types without a scale are the caller's business. */
MIXPREC_NOINLINE_ void mixprec_convert_run_(const mixprec_kernels_ *kernels, void *dst, mixprec_dtype dst_type,
                                            const void *src, mixprec_dtype src_type, size_t n,
                                            const mixprec_how_ *options, float scale) {
    size_t i, count;
    int scaled = mixprec_f32_bits_(scale) != 0x3F800000u;
    mixprec_how_ how = *options;
    /* One side is fp32: no buffer. */
    if (!scaled && how.overflow == MIXPREC_OVERFLOW_IEEE && dst_type == MIXPREC_F32 && src_type != MIXPREC_F64) {
        mixprec_load_(kernels, (float *)dst, src, src_type, n);
        return;
    }
    if (!scaled && src_type == MIXPREC_F32 && dst_type != MIXPREC_F64) {
        mixprec_store_(kernels, dst, dst_type, (const float *)src, n, &how);
        return;
    }
    for (i = 0; i < n; i += count) {
        const char *from = (const char *)src + mixprec_bytes_of_(src_type, i);
        char *to = (char *)dst + mixprec_bytes_of_(dst_type, i);
        count = mixprec_min_(n - i, MIXPREC_BLOCK_);
        how.index = options->index + i;
        if (src_type == MIXPREC_F64) {
            double product[MIXPREC_BLOCK_];
            const double *wide = (const double *)(const void *)from;
            if (scaled) {
                mixprec_scale_f64_(product, wide, count, (double)scale);
                wide = product;
            }
            if (dst_type == MIXPREC_F64)
                mixprec_copy_(to, wide, count * sizeof *wide);
            else
                mixprec_store_f64_(kernels, to, dst_type, wide, count, &how);
        } else {
            float narrow[MIXPREC_BLOCK_];
            mixprec_load_(kernels, narrow, from, src_type, count);
            if (scaled)
                mixprec_scale_f32_(narrow, narrow, count, scale);
            mixprec_store_(kernels, to, dst_type, narrow, count, &how);
        }
        if ((dst_type == MIXPREC_F32 || dst_type == MIXPREC_F64) && how.overflow == MIXPREC_OVERFLOW_SATURATE)
            mixprec_saturate_inf_(to, dst_type, count);
    }
}

#ifndef MIXPREC_NO_CONVERT
/* Squares and sums apart, through memory: no compiler contracts or reorders them. */
MIXPREC_NOINLINE_ void mixprec_square_f32_(float *x, size_t n) {
    size_t i;
    for (i = 0; i < n; i++)
        x[i] *= x[i];
}
MIXPREC_NOINLINE_ void mixprec_square_f64_(double *x, size_t n) {
    size_t i;
    for (i = 0; i < n; i++)
        x[i] *= x[i];
}
MIXPREC_NOINLINE_ void mixprec_sum_f32_(float *x, const float *y, size_t n) {
    size_t i;
    for (i = 0; i < n; i++)
        x[i] += y[i];
}
MIXPREC_NOINLINE_ void mixprec_sum_f64_(double *x, const double *y, size_t n) {
    size_t i;
    for (i = 0; i < n; i++)
        x[i] += y[i];
}

/* The squares of a group, added to the sums of their lanes. */
static void mixprec_tally_squares_(double *lanes, double *x, int narrow) {
    size_t i;
    if (narrow) {
        float squares[MIXPREC_UNIT_];
        for (i = 0; i < MIXPREC_UNIT_; i++)
            squares[i] = (float)x[i];
        mixprec_square_f32_(squares, MIXPREC_UNIT_);
        mixprec_sum_f32_(squares, squares + 16, 16);
        mixprec_sum_f32_(squares + 32, squares + 48, 16);
        mixprec_sum_f32_(squares, squares + 32, 16);
        for (i = 0; i < MIXPREC_LANES_; i++)
            x[i] = (double)squares[i];
        mixprec_sum_f64_(lanes, x, MIXPREC_LANES_);
    } else {
        mixprec_square_f64_(x, MIXPREC_UNIT_);
        for (i = 0; i < MIXPREC_UNIT_; i += MIXPREC_LANES_)
            mixprec_sum_f64_(lanes, x + i, MIXPREC_LANES_);
    }
}

/* A group of `count` elements, from f64 or, where single is not NULL, fp32, in any mode. */
static void mixprec_tally_group_(const mixprec_kernels_ *kernels, mixprec_tally_ *t, const double *wide,
                                 const float *single, size_t count, mixprec_dtype to, const mixprec_how_ *how) {
    static const mixprec_how_ exact = {MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0, 0};
    /* Magnitudes as bits: -ffast-math cannot assume NaN away. */
    const uint64_t infinity = (uint64_t)0x7FF << 52, magnitude_of = ~((uint64_t)1 << 63);
    const uint64_t max = mixprec_f32_bits_to_f64_bits_((uint32_t)t->max);
    const uint64_t max_below_zero = to == MIXPREC_I8 ? mixprec_f64_bits_(128.0) : max;
    const uint64_t min_normal = mixprec_f32_bits_to_f64_bits_((uint32_t)t->min_normal);
    double x[MIXPREC_UNIT_] = {0}, q[MIXPREC_UNIT_] = {0}; /* q becomes the error */
    float codes[MIXPREC_UNIT_];                            /* of the widest type they may have */
    mixprec_statistics *stats = t->stats;
    uint64_t amax = 0;
    size_t i;
    if (single) {
        mixprec_convert_run_(kernels, x, MIXPREC_F64, single, MIXPREC_F32, count, &exact, 1.0f);
        mixprec_store_(kernels, codes, to, single, count, how);
    } else {
        mixprec_copy_(x, wide, count * sizeof *x);
        mixprec_store_f64_(kernels, codes, to, x, count, how);
    }
    mixprec_convert_run_(kernels, q, MIXPREC_F64, codes, to, count, &exact, 1.0f);
    for (i = 0; i < count; i++) {
        uint64_t bits = mixprec_f64_bits_(x[i]) & magnitude_of, kept = mixprec_f64_bits_(q[i]) & magnitude_of;
        int32_t exponent = (int32_t)(bits >> 52) - 1023 + 127;
        if (bits >= infinity) {
            stats->exponents[255]++;
            if (bits == infinity)
                stats->inf++;
            else
                stats->nan++;
            x[i] = q[i] = 0;
            continue;
        }
        stats->exponents[exponent < 0 ? 0 : exponent > 254 ? 254 : exponent]++;
        stats->zero += bits == 0;
        stats->overflow += bits > (bits == mixprec_f64_bits_(x[i]) ? max : max_below_zero);
        stats->underflow += bits != 0 && kept == 0;
        stats->subnormal += kept != 0 && kept < min_normal;
        amax = bits > amax ? bits : amax;
        if (bits != 0 && bits < t->min_nonzero)
            t->min_nonzero = bits;
        q[i] = kept > infinity ? x[i] : x[i] - q[i];
    }
    t->amax = amax > t->amax ? amax : t->amax;
    {
        int narrow = single && (amax == 0 || (amax >= mixprec_f32_bits_to_f64_bits_(MIXPREC_SQUARES_FROM_) &&
                                              amax < mixprec_f32_bits_to_f64_bits_(MIXPREC_SQUARES_BELOW_)));
        mixprec_tally_squares_(t->signal, x, narrow);
        mixprec_tally_squares_(t->noise, q, narrow);
    }
}

static void mixprec_tally_floats_(const mixprec_kernels_ *kernels, mixprec_tally_ *t, const float *x, size_t n,
                                  mixprec_dtype to, mixprec_how_ how) {
    while (n) {
        size_t count = 0;
        if (how.round == MIXPREC_ROUND_NEAREST_EVEN && kernels->tally && t->shift)
            count = kernels->tally(t, x, n / MIXPREC_UNIT_ * MIXPREC_UNIT_);
        if (!count) {
            count = mixprec_min_(n, MIXPREC_UNIT_);
            mixprec_tally_group_(kernels, t, NULL, x, count, to, &how);
        }
        x += count;
        n -= count;
        how.index += count;
    }
}

/* The thresholds of a format. Shift is 0 where the kernels do not know it: f32, E8M0, int8. */
static void mixprec_tally_format_(mixprec_tally_ *t, mixprec_dtype to) {
    const mixprec_layout_ *layout = mixprec_layout_of_(to);
    double max = mixprec_decode(layout ? layout->max_code : to == MIXPREC_I8 ? 127 : 0xFE, to);
    double min_normal = layout ? mixprec_decode(1u << layout->mantissa_bits, to) : 0;
    double half_step = layout ? mixprec_decode(1, to) * 0.5 : 0;
    t->max = (int32_t)mixprec_f32_bits_((float)max);
    t->min_normal = (int32_t)mixprec_f32_bits_((float)min_normal);
    t->shift = layout ? 23 - layout->mantissa_bits : 0;
    if (t->shift) {
        t->vanishing = (int32_t)mixprec_f32_bits_((float)half_step);             /* ties to zero */
        t->normal = (int32_t)mixprec_f32_bits_((float)(min_normal - half_step)); /* ties to the normal number */
    }
}

MIXPREC_NOINLINE_ void mixprec_stats_run_(const mixprec_kernels_ *kernels, mixprec_statistics *stats, const void *src,
                                          mixprec_dtype src_type, size_t n, mixprec_dtype to,
                                          const mixprec_how_ *options, float scale) {
    const uint64_t infinity = (uint64_t)0x7FF << 52;
    mixprec_tally_ t = MIXPREC_ZERO_;
    mixprec_how_ how = *options;
    size_t i, count;
    t.stats = stats;
    t.min_nonzero = infinity;
    mixprec_tally_format_(&t, to);
    mixprec_tally_window_(&t, 127);
    how.overflow = MIXPREC_OVERFLOW_SATURATE;
    if (src_type == MIXPREC_F32 && mixprec_f32_bits_(scale) == 0x3F800000u)
        mixprec_tally_floats_(kernels, &t, (const float *)src, n, to, how);
    else
        for (i = 0; i < n; i += count) {
            const char *from = (const char *)src + mixprec_bytes_of_(src_type, i);
            how.index = options->index + i;
            if (src_type == MIXPREC_F64) {
                double x[MIXPREC_UNIT_];
                count = mixprec_min_(n - i, MIXPREC_UNIT_);
                mixprec_scale_f64_(x, (const double *)(const void *)from, count, (double)scale);
                mixprec_tally_group_(kernels, &t, x, NULL, count, to, &how);
            } else {
                float x[MIXPREC_BLOCK_];
                count = mixprec_min_(n - i, MIXPREC_BLOCK_);
                mixprec_load_(kernels, x, from, src_type, count);
                mixprec_scale_f32_(x, x, count, scale);
                mixprec_tally_floats_(kernels, &t, x, count, to, how);
            }
        }
    mixprec_tally_window_(&t, 0);
    for (count = MIXPREC_LANES_ / 2; count; count /= 2) {
        mixprec_sum_f64_(t.signal, t.signal + count, count);
        mixprec_sum_f64_(t.noise, t.noise + count, count);
    }
    stats->signal = t.signal[0];
    stats->noise = t.noise[0];
    stats->amax = mixprec_f64_from_bits_(t.amax);
    stats->min_nonzero = mixprec_f64_from_bits_(t.min_nonzero == infinity ? 0 : t.min_nonzero);
    stats->count = n;
}
#endif

/* ================================================================================================================== */
/* [GEMM] Matrix multiplication                                                                                       */
/* ================================================================================================================== */

#ifndef MIXPREC_NO_GEMM

/* Blocked as in K. Goto, R. van de Geijn: "Anatomy of high-performance matrix multiplication", ACM TOMS 34(3), 2008: a
   block of B and one of A are packed into panels of fp32 (or f64) that the tile kernel runs along. The sums of the rows
   at hand live in C itself where C has the accumulator's type and needs no epilogue, else in a block t of the
   workspace. */
typedef struct mixprec_gemm_plan_ {
    const mixprec_kernels_ *kernels;
    int wide;    /* f64 accumulators */
    int direct;  /* accumulate in C */
    int nothing; /* alpha or k is 0 */
    int add_c;   /* beta is not 0 */
    double alpha, beta;
    size_t size;                      /* bytes of an accumulator */
    size_t rows, columns, depth;      /* of a packed block */
    size_t outer_rows;                /* rows of t */
    int whole_a;                      /* A is packed once, for all of k */
    int direct_b;                     /* B is not packed */
    size_t a_bytes, b_bytes, t_bytes; /* of the workspace, each a multiple of 64 */
} mixprec_gemm_plan_;

#define MIXPREC_ALIGN_ 64

/* Chooses the blocks for a workspace of at most `limit` bytes; with the smallest blocks it may need more than that. */
static void mixprec_gemm_blocks_(mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d, size_t limit) {
    const mixprec_kernels_ *kernels = plan->kernels;
    size_t tile_rows = kernels->tile_rows, tile_columns = kernels->tile_columns[plan->wide];
    size_t smallest = mixprec_min_(d->k, MIXPREC_GEMM_KBLOCK);
    plan->depth = mixprec_min_(d->k, kernels->block_depth);
    plan->rows = mixprec_min_(kernels->block_rows, mixprec_round_up_(d->m, tile_rows));
    plan->columns = mixprec_min_(kernels->block_columns, mixprec_round_up_(d->n, tile_columns));
    if (d->m <= 4 * tile_rows) {
        /* B is used a few times only: a panel at a time, small enough for the innermost caches. */
        plan->depth = smallest;
        plan->columns = mixprec_min_(plan->columns, tile_columns);
    }
    plan->whole_a = d->m && d->m <= plan->rows && d->k <= kernels->block_rows * kernels->block_depth / plan->rows;
    plan->direct_b =
        d->m <= kernels->direct_rows && d->trans_b == MIXPREC_TRANS && !plan->wide && d->b_type != MIXPREC_F64;
    for (;;) {
        size_t a_depth = plan->whole_a ? d->k : plan->depth;
        /* With several blocks along k, sums wait in t while a block of B goes by: more rows repay packing it. */
        plan->outer_rows =
            d->k <= plan->depth ? plan->rows : mixprec_min_(4 * plan->rows, mixprec_round_up_(d->m, tile_rows));
        plan->a_bytes = mixprec_round_up_(plan->rows * a_depth * plan->size + 64, MIXPREC_ALIGN_);
        plan->b_bytes =
            plan->direct_b ? 0 : mixprec_round_up_(plan->columns * plan->depth * plan->size, MIXPREC_ALIGN_);
        plan->t_bytes =
            plan->direct ? 0 : mixprec_round_up_(plan->outer_rows * plan->columns * plan->size, MIXPREC_ALIGN_);
        if (plan->a_bytes + plan->b_bytes + plan->t_bytes + MIXPREC_ALIGN_ <= limit)
            break;
        if (plan->whole_a)
            plan->whole_a = 0;
        else if (plan->columns > tile_columns && plan->columns >= plan->rows)
            plan->columns = mixprec_round_up_(plan->columns / 2, tile_columns);
        else if (plan->rows > tile_rows)
            plan->rows = mixprec_round_up_(plan->rows / 2, tile_rows);
        else if (plan->columns > tile_columns)
            plan->columns = mixprec_round_up_(plan->columns / 2, tile_columns);
        else if (plan->depth > smallest)
            plan->depth = smallest;
        else
            break;
    }
}

static size_t mixprec_gemm_bytes_(const mixprec_gemm_plan_ *plan) {
    return plan->nothing ? 0 : plan->a_bytes + plan->b_bytes + plan->t_bytes + MIXPREC_ALIGN_;
}

static const char *mixprec_element_(const void *base, mixprec_dtype type, size_t ld, size_t row, size_t column) {
    return (const char *)base + (row * ld + column) * mixprec_size_of_(type);
}

/* x = alpha t, y = beta c, x + y: three loops over memory, so that no compiler can contract them. */
static void mixprec_add_f32_(float *x, const float *y, size_t n) {
    size_t i;
    for (i = 0; i < n; i++)
        x[i] += y[i];
}
static void mixprec_add_f64_(double *x, const double *y, size_t n) {
    size_t i;
    for (i = 0; i < n; i++)
        x[i] += y[i];
}

/* One row of the result: C[row][column ...] from n accumulators; t is NULL where alpha or k is 0. */
static void mixprec_gemm_finish_row_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d, const void *t,
                                     size_t row, size_t column, size_t n) {
    const mixprec_kernels_ *kernels = plan->kernels;
    size_t i, count;
    for (i = 0; i < n; i += count, column += count) {
        char *c = (char *)d->c + (row * d->ldc + column) * mixprec_size_of_(d->c_type);
        mixprec_how_ how;
        count = mixprec_min_(n - i, MIXPREC_UNIT_);
        how.round = d->round;
        how.overflow = d->overflow;
        how.seed = d->seed;
        how.index = d->offset + (uint64_t)row * d->n + column;
        if (plan->wide || d->c_type == MIXPREC_F64) {
            double x[MIXPREC_UNIT_] = {0}, y[MIXPREC_UNIT_];
            size_t j;
            if (t && plan->wide)
                mixprec_scale_f64_(x, (const double *)t + i, count, plan->alpha);
            else if (t) {
                for (j = 0; j < count; j++)
                    x[j] = (double)((const float *)t)[i + j];
                mixprec_scale_f64_(x, x, count, plan->alpha);
            }
            if (plan->add_c) {
                if (d->c_type == MIXPREC_F64)
                    mixprec_copy_(y, c, count * sizeof *y);
                else {
                    float narrow[MIXPREC_UNIT_];
                    mixprec_load_(kernels, narrow, c, d->c_type, count);
                    for (j = 0; j < count; j++)
                        y[j] = (double)narrow[j];
                }
                mixprec_scale_f64_(y, y, count, plan->beta);
                if (t)
                    mixprec_add_f64_(x, y, count);
                else
                    mixprec_copy_(x, y, count * sizeof *x);
            }
            if (d->c_type == MIXPREC_F64)
                mixprec_copy_(c, x, count * sizeof *x);
            else
                mixprec_store_f64_(kernels, c, d->c_type, x, count, &how);
        } else {
            float x[MIXPREC_UNIT_] = {0}, y[MIXPREC_UNIT_];
            if (t)
                mixprec_scale_f32_(x, (const float *)t + i, count, (float)plan->alpha);
            if (plan->add_c) {
                mixprec_load_(kernels, y, c, d->c_type, count);
                mixprec_scale_f32_(y, y, count, (float)plan->beta);
                if (t)
                    mixprec_add_f32_(x, y, count);
                else
                    mixprec_copy_(x, y, count * sizeof *x);
            }
            mixprec_store_(kernels, c, d->c_type, x, count, &how);
        }
    }
}

static void mixprec_gemm_block_(const mixprec_gemm_plan_ *plan, const char *a, size_t rows, const char *b,
                                size_t columns, size_t depth, char *t, size_t ldt, int first) {
    const mixprec_kernels_ *kernels = plan->kernels;
    size_t tile_rows = kernels->tile_rows, tile_columns = kernels->tile_columns[plan->wide], i, j;
    for (j = 0; j < columns; j += tile_columns)
        for (i = 0; i < rows; i += tile_rows)
            kernels->tile(mixprec_min_(tile_rows, rows - i), mixprec_min_(tile_columns, columns - j), depth,
                          a + i * depth * plan->size, b + j * depth * plan->size, t + (i * ldt + j) * plan->size, ldt,
                          first, plan->wide);
}

static void mixprec_gemm_pack_(const mixprec_gemm_plan_ *plan, char *dst, size_t width, const void *src,
                               mixprec_dtype type, size_t ld, int along, size_t from, size_t count, size_t depth_from,
                               size_t depth) {
    size_t i;
    for (i = 0; i < count; i += width)
        plan->kernels->pack(dst + i * depth * plan->size, width,
                            along ? mixprec_element_(src, type, ld, depth_from, from + i)
                                  : mixprec_element_(src, type, ld, from + i, depth_from),
                            type, ld, along, mixprec_min_(width, count - i), depth, plan->wide);
}

/* C = beta C, where alpha or k is 0. */
MIXPREC_NOINLINE_ void mixprec_gemm_run_nothing_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d) {
    size_t i;
    for (i = 0; i < d->m; i++)
        mixprec_gemm_finish_row_(plan, d, NULL, i, 0, d->n);
}

MIXPREC_NOINLINE_ void mixprec_gemm_run_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d, void *workspace) {
    const mixprec_kernels_ *kernels = plan->kernels;
    size_t tile_columns = kernels->tile_columns[plan->wide], outer, i, j, p, row;
    char *a = (char *)workspace + (MIXPREC_ALIGN_ - (uintptr_t)workspace % MIXPREC_ALIGN_) % MIXPREC_ALIGN_;
    char *b = a + plan->a_bytes, *t = b + plan->b_bytes;
    size_t outer_rows = plan->direct ? d->m : plan->outer_rows;
    MIXPREC_ASSERT(plan->depth == d->k || plan->depth % MIXPREC_GEMM_KBLOCK == 0);
    MIXPREC_ASSERT(!plan->whole_a || d->m <= plan->rows);
    for (p = 0; p < d->k && plan->whole_a; p += plan->depth)
        mixprec_gemm_pack_(plan, a + p * plan->rows * plan->size, kernels->tile_rows, d->a, d->a_type, d->lda,
                           d->trans_a == MIXPREC_TRANS, 0, d->m, p, mixprec_min_(plan->depth, d->k - p));
    for (outer = 0; outer < d->m; outer += outer_rows)
        for (j = 0; j < d->n; j += plan->columns) {
            size_t columns = mixprec_min_(plan->columns, d->n - j), outer_end = mixprec_min_(outer + outer_rows, d->m);
            for (p = 0; p < d->k; p += plan->depth) {
                size_t depth = mixprec_min_(plan->depth, d->k - p);
                if (!plan->direct_b)
                    mixprec_gemm_pack_(plan, b, tile_columns, d->b, d->b_type, d->ldb, d->trans_b == MIXPREC_NO_TRANS,
                                       j, columns, p, depth);
                for (i = outer; i < outer_end; i += plan->rows) {
                    size_t rows = mixprec_min_(plan->rows, outer_end - i);
                    size_t ldt = plan->direct ? d->ldc : plan->columns;
                    char *sums = plan->direct ? (char *)d->c + (i * d->ldc + j) * plan->size
                                              : t + (i - outer) * ldt * plan->size;
                    const char *panels = a + (plan->whole_a ? p * plan->rows * plan->size : 0);
                    if (!plan->whole_a)
                        mixprec_gemm_pack_(plan, a, kernels->tile_rows, d->a, d->a_type, d->lda,
                                           d->trans_a == MIXPREC_TRANS, i, rows, p, depth);
                    if (plan->direct_b)
                        kernels->direct(rows, columns, depth, (const float *)(const void *)panels,
                                        mixprec_element_(d->b, d->b_type, d->ldb, j, p), d->b_type,
                                        d->ldb * mixprec_size_of_(d->b_type), (float *)(void *)sums, ldt, p == 0);
                    else
                        mixprec_gemm_block_(plan, panels, rows, b, columns, depth, sums, ldt, p == 0);
                    if (!plan->direct && p + depth == d->k)
                        for (row = 0; row < rows; row++)
                            mixprec_gemm_finish_row_(plan, d, sums + row * ldt * plan->size, i + row, j, columns);
                }
            }
        }
}

#ifndef MIXPREC_MALLOC
/* Without an allocator and without a workspace: portable C, tile by tile, unpacking 8 values of k at a time. */
MIXPREC_NOINLINE_ void mixprec_gemm_run_small_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d) {
    enum { depth = 8, tile = MIXPREC_TILE_ROWS_C_ * MIXPREC_TILE_COLUMNS_C_ };
    size_t i, j, p, row;
    for (i = 0; i < d->m; i += MIXPREC_TILE_ROWS_C_)
        for (j = 0; j < d->n; j += MIXPREC_TILE_COLUMNS_C_) {
            double a[depth * MIXPREC_TILE_ROWS_C_], b[depth * MIXPREC_TILE_COLUMNS_C_], s[tile], t[tile];
            size_t rows = mixprec_min_(MIXPREC_TILE_ROWS_C_, d->m - i);
            size_t columns = mixprec_min_(MIXPREC_TILE_COLUMNS_C_, d->n - j), count, e;
            for (p = 0; p < d->k; p += count) {
                int starts = p % MIXPREC_GEMM_KBLOCK == 0;
                count = mixprec_min_(depth, d->k - p);
                mixprec_gemm_pack_(plan, (char *)a, MIXPREC_TILE_ROWS_C_, d->a, d->a_type, d->lda,
                                   d->trans_a == MIXPREC_TRANS, i, rows, p, count);
                mixprec_gemm_pack_(plan, (char *)b, MIXPREC_TILE_COLUMNS_C_, d->b, d->b_type, d->ldb,
                                   d->trans_b == MIXPREC_NO_TRANS, j, columns, p, count);
                for (e = 0; e < tile && starts; e++)
                    if (plan->wide)
                        s[e] = 0;
                    else
                        ((float *)s)[e] = 0;
                if (plan->wide)
                    mixprec_accumulate_double_c_(s, a, b, count);
                else
                    mixprec_accumulate_float_c_((float *)s, (float *)a, (float *)b, count);
                if ((p + count) % MIXPREC_GEMM_KBLOCK && p + count != d->k)
                    continue;
                for (e = 0; e < tile; e++)
                    if (plan->wide)
                        t[e] = p < MIXPREC_GEMM_KBLOCK ? s[e] : t[e] + s[e];
                    else
                        ((float *)t)[e] = p < MIXPREC_GEMM_KBLOCK ? ((float *)s)[e] : ((float *)t)[e] + ((float *)s)[e];
            }
            for (row = 0; row < rows; row++)
                mixprec_gemm_finish_row_(plan, d, (char *)t + row * MIXPREC_TILE_COLUMNS_C_ * plan->size, i + row, j,
                                         columns);
        }
}
#endif

#endif /* MIXPREC_NO_GEMM */

/* ================================================================================================================== */
/* [SCALER] The loss scaler                                                                                           */
/* ================================================================================================================== */

#ifndef MIXPREC_NO_SCALER

/* Finite, normal and positive: told from the bits, since -ffast-math may fold comparisons with Inf and NaN. */
static int mixprec_is_scale_(float x) {
    uint32_t bits = mixprec_f32_bits_(x);
    return bits >= 0x00800000u && bits < 0x7F800000u;
}
static int mixprec_is_factor_(double x) {
    uint64_t bits = mixprec_f64_bits_(x);
    return bits >= (uint64_t)1 << 52 && bits < (uint64_t)0x7FF << 52;
}

MIXPREC_NOINLINE_ int mixprec_unscale_run_(const mixprec_kernels_ *kernels, float *dst, const void *grad,
                                           mixprec_dtype type, size_t n, float scale) {
    const float factor = (float)(1.0 / (double)scale);
    size_t size = mixprec_size_of_(type), i, count;
    int found = 0;
    for (i = 0; i < n; i += count) {
        float block[MIXPREC_BLOCK_];
        const float *from = block;
        size_t whole;
        count = mixprec_min_(n - i, MIXPREC_BLOCK_);
        if (type == MIXPREC_F32) {
            count = n - i;
            from = (const float *)grad;
        } else
            mixprec_load_(kernels, block, (const char *)grad + i * size, type, count);
        whole = count / MIXPREC_UNIT_ * MIXPREC_UNIT_;
        if (whole)
            found |= kernels->unscale(dst + i, from, whole, factor);
        found |= mixprec_unscale_c_(dst + i + whole, from + whole, count - whole, factor);
    }
    return found;
}

MIXPREC_NOINLINE_ float mixprec_rescale_(float scale, double factor) {
    return (float)((double)scale * factor);
}

#endif /* MIXPREC_NO_SCALER */

/* ================================================================================================================== */
/* [DISPATCH] One table of kernels for each instruction set                                                           */
/* ================================================================================================================== */

#ifdef MIXPREC_NO_GEMM
#define MIXPREC_GEMM_KERNELS_(...) 0, {0, 0}, 0, 0, 0, 0, 0, 0, 0
#else
#define MIXPREC_GEMM_KERNELS_(...) __VA_ARGS__
#endif

#ifdef MIXPREC_NO_CONVERT
#define MIXPREC_TALLY_KERNEL_(kernel)
#else
#define MIXPREC_TALLY_KERNEL_(kernel) kernel,
#endif

static const mixprec_kernels_ mixprec_kernels_c_ = {
    MIXPREC_ISA_C,
    mixprec_load_c_,
    mixprec_load_odd_c_,
    mixprec_store_c_,
    mixprec_unscale_c_,
    MIXPREC_TALLY_KERNEL_(NULL)
        MIXPREC_GEMM_KERNELS_(MIXPREC_TILE_ROWS_C_, {MIXPREC_TILE_COLUMNS_C_, MIXPREC_TILE_COLUMNS_C_}, 64, 512, 512,
                              mixprec_pack_c_, mixprec_tile_c_, NULL, 0)};

#if defined(MIXPREC_HAS_AVX2_)
static const mixprec_kernels_ mixprec_kernels_avx2_ = {
    MIXPREC_ISA_AVX2,
    mixprec_load_avx2_,
    mixprec_load_odd_avx2_,
    mixprec_store_avx2_,
    mixprec_unscale_avx2_,
    MIXPREC_TALLY_KERNEL_(mixprec_tally_avx2_) MIXPREC_GEMM_KERNELS_(MIXPREC_TILE_ROWS_AVX2_, {16, 8}, 144, 1024, 512,
                                                                     mixprec_pack_avx2_, mixprec_tile_avx2_, NULL, 0)};
#endif

#if defined(MIXPREC_HAS_AVX512_)
static const mixprec_kernels_ mixprec_kernels_avx512_ = {
    MIXPREC_ISA_AVX512,
    mixprec_load_avx512_,
    mixprec_load_odd_avx512_,
    mixprec_store_avx512_,
    mixprec_unscale_avx512_,
    MIXPREC_TALLY_KERNEL_(mixprec_tally_avx512_)
        MIXPREC_GEMM_KERNELS_(MIXPREC_TILE_ROWS_AVX512_, {32, 16}, 168, 1024, 1024, mixprec_pack_avx512_,
                              mixprec_tile_avx512_, mixprec_direct_avx512_, MIXPREC_DIRECT_ROWS_AVX512_)};
#endif

#if defined(MIXPREC_HAS_NEON_)
static const mixprec_kernels_ mixprec_kernels_neon_ = {
    MIXPREC_ISA_NEON,
    mixprec_load_neon_,
    mixprec_load_odd_c_,
    mixprec_store_neon_,
    mixprec_unscale_neon_,
    MIXPREC_TALLY_KERNEL_(NULL)
        MIXPREC_GEMM_KERNELS_(MIXPREC_TILE_ROWS_C_, {MIXPREC_TILE_COLUMNS_C_, MIXPREC_TILE_COLUMNS_C_}, 64, 512, 512,
                              mixprec_pack_c_, mixprec_tile_c_, NULL, 0)};
#endif

/* NULL for an instruction set that is unknown, not compiled in, or not available here. */
static const mixprec_kernels_ *mixprec_kernels_of_(mixprec_isa isa) {
    mixprec_isa best = mixprec_cpu_();
    if (isa == MIXPREC_ISA_AUTO)
        isa = best;
#if defined(MIXPREC_HAS_AVX512_)
    if (isa == MIXPREC_ISA_AVX512 && best == MIXPREC_ISA_AVX512)
        return &mixprec_kernels_avx512_;
#endif
#if defined(MIXPREC_HAS_AVX2_)
    if (isa == MIXPREC_ISA_AVX2 && best >= MIXPREC_ISA_AVX2)
        return &mixprec_kernels_avx2_;
#endif
#if defined(MIXPREC_HAS_NEON_)
    if (isa == MIXPREC_ISA_NEON)
        return &mixprec_kernels_neon_;
#endif
    return isa == MIXPREC_ISA_C ? &mixprec_kernels_c_ : NULL;
}

/* ================================================================================================================== */
/* [PUBLIC] Argument checks and entry points                                                                          */
/* ================================================================================================================== */

MIXPREC_API const char *mixprec_status_string(mixprec_status status) {
    switch (status) {
#define MIXPREC_STATUS_(name, text)                                                                                    \
    case name: return text;
        MIXPREC_STATUSES_(MIXPREC_STATUS_)
#undef MIXPREC_STATUS_
    case MIXPREC_STATUS_COUNT: break;
    }
    return "unknown status";
}

MIXPREC_API size_t mixprec_dtype_size(mixprec_dtype dtype) {
    return mixprec_size_of_(dtype);
}

MIXPREC_API size_t mixprec_dtype_bytes(mixprec_dtype dtype, size_t n) {
    return n <= SIZE_MAX / 8 ? mixprec_bytes_of_(dtype, n) : 0;
}

MIXPREC_API const char *mixprec_dtype_name(mixprec_dtype dtype) {
    switch (dtype) {
#define MIXPREC_ROW_(name, dtype, bits, mantissa, bias, max_code, overflow_code, nan_code, special)                    \
    case dtype: return #name;
        MIXPREC_FORMATS_(MIXPREC_ROW_)
#undef MIXPREC_ROW_
    case MIXPREC_F64: return "f64";
    case MIXPREC_E8M0: return "e8m0";
    case MIXPREC_I8: return "i8";
    case MIXPREC_NONE: break;
    }
    return "unknown";
}

MIXPREC_API const char *mixprec_isa_name(mixprec_isa isa) {
    switch (isa) {
    case MIXPREC_ISA_AUTO: return "auto";
    case MIXPREC_ISA_C: return "c";
    case MIXPREC_ISA_AVX2: return "avx2";
    case MIXPREC_ISA_AVX512: return "avx512";
    case MIXPREC_ISA_NEON: return "neon";
    }
    return "unknown";
}

MIXPREC_API mixprec_isa mixprec_isa_best(void) {
    return mixprec_cpu_();
}

MIXPREC_API int mixprec_isa_available(mixprec_isa isa) {
    return mixprec_kernels_of_(isa) != NULL;
}

MIXPREC_API mixprec_status mixprec_format(mixprec_dtype dtype, mixprec_format_info *info) {
    static const mixprec_format_info f64 = {"f64",
                                            64,
                                            11,
                                            52,
                                            1023,
                                            1,
                                            1,
                                            1.7976931348623157e308,
                                            2.2250738585072014e-308,
                                            4.9406564584124654e-324,
                                            2.220446049250313e-16};
    static const mixprec_format_info e8m0 = {
        "e8m0", 8, 8, 0, 127, 0, 1, 1.7014118346046923e38, 5.877471754111438e-39, 5.877471754111438e-39, 1.0};
    static const mixprec_format_info i8 = {"i8", 8, 0, 7, 0, 0, 0, 127.0, 1.0, 1.0, 1.0};
    const mixprec_layout_ *layout = mixprec_layout_of_(dtype);
    if (!mixprec_size_of_(dtype))
        return MIXPREC_ERR_DTYPE;
    if (!info)
        return MIXPREC_ERR_NULL;
    if (!layout) {
        *info = dtype == MIXPREC_F64 ? f64 : dtype == MIXPREC_E8M0 ? e8m0 : i8;
        return MIXPREC_OK;
    }
    info->name = mixprec_dtype_name(dtype);
    info->mantissa_bits = layout->mantissa_bits;
    info->bias = layout->bias;
    for (info->bits = 1; layout->sign_code >> (info->bits - 1) != 1; info->bits++)
        ;
    info->exponent_bits = info->bits - 1 - info->mantissa_bits;
    info->has_inf = layout->special == MIXPREC_IEEE_;
    info->has_nan = layout->special != MIXPREC_FINITE_;
    info->max = mixprec_decode(layout->max_code, dtype);
    info->min_normal = mixprec_decode(1u << layout->mantissa_bits, dtype);
    info->min_subnormal = mixprec_decode(1, dtype);
    info->epsilon = mixprec_f64_from_bits_((uint64_t)(1023 - info->mantissa_bits) << 52);
    return MIXPREC_OK;
}

/* Do [a, a + a_bytes) and [b, b + b_bytes) share a byte? */
MIXPREC_INLINE int mixprec_overlap_(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return a_bytes && b_bytes && (x <= y ? y - x < a_bytes : x - y < b_bytes);
}

MIXPREC_INLINE int mixprec_is_round_(mixprec_round round) {
    return (unsigned)round <= (unsigned)MIXPREC_ROUND_STOCHASTIC;
}
MIXPREC_INLINE int mixprec_is_overflow_(mixprec_overflow overflow) {
    return (unsigned)overflow <= (unsigned)MIXPREC_OVERFLOW_SATURATE_KEEP_INF;
}

#ifndef MIXPREC_NO_CONVERT
/* Options, or NULL, as kernels, rounding and scale (1 when there is none). */
static mixprec_status mixprec_check_options_(const mixprec_convert_options *options, const mixprec_kernels_ **kernels,
                                             mixprec_how_ *how, float *scale) {
    static const mixprec_convert_options none = {
        MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0, MIXPREC_ISA_AUTO, 0, 0};
    uint32_t bits;
    if (!options)
        options = &none;
    if (!mixprec_is_round_(options->round))
        return MIXPREC_ERR_ROUND;
    if (!mixprec_is_overflow_(options->overflow))
        return MIXPREC_ERR_OVERFLOW;
    bits = mixprec_f32_bits_(options->scale);
    if (bits << 1 == 0)
        bits = 0x3F800000u;
    if (bits >= 0x7F800000u) /* Inf, NaN, negative */
        return MIXPREC_ERR_SCALE;
    *scale = mixprec_f32_from_bits_(bits);
    *kernels = mixprec_kernels_of_(options->isa);
    how->round = options->round;
    how->overflow = options->overflow;
    how->seed = options->seed;
    how->index = options->offset;
    return *kernels ? MIXPREC_OK : MIXPREC_ERR_ISA;
}

MIXPREC_API mixprec_status mixprec_convert_ex(void *dst, mixprec_dtype dst_type, const void *src,
                                              mixprec_dtype src_type, size_t n,
                                              const mixprec_convert_options *options) {
    const mixprec_kernels_ *kernels;
    size_t dst_bytes, src_bytes;
    mixprec_status status;
    mixprec_how_ how;
    mixprec_fp_ environment;
    float scale;
    if (!mixprec_size_of_(dst_type) || !mixprec_size_of_(src_type))
        return MIXPREC_ERR_DTYPE;
    status = mixprec_check_options_(options, &kernels, &how, &scale);
    if (status != MIXPREC_OK)
        return status;
    if (n == 0)
        return MIXPREC_OK;
    if (!dst || !src)
        return MIXPREC_ERR_NULL;
    if (n > SIZE_MAX / 8)
        return MIXPREC_ERR_SIZE;
    dst_bytes = mixprec_bytes_of_(dst_type, n);
    src_bytes = mixprec_bytes_of_(src_type, n);
    if (dst != src && mixprec_overlap_(dst, dst_bytes, src, src_bytes))
        return MIXPREC_ERR_OVERLAP;
    if (dst_type == src_type && mixprec_f32_bits_(scale) == 0x3F800000u) {
        if (dst != src)
            mixprec_copy_(dst, src, dst_bytes);
        return MIXPREC_OK;
    }
    environment = mixprec_fp_begin_();
    if (dst != src || dst_bytes <= src_bytes) {
        mixprec_convert_run_(kernels, dst, dst_type, src, src_type, n, &how, scale);
    } else {
        /* Widening in place: from the end, each block read before it is overwritten. */
        uint64_t offset = how.index;
        size_t i = n;
        while (i) {
            double block[MIXPREC_BLOCK_];
            size_t count = i % MIXPREC_BLOCK_ ? i % MIXPREC_BLOCK_ : MIXPREC_BLOCK_;
            i -= count;
            mixprec_copy_(block, (const char *)src + mixprec_bytes_of_(src_type, i),
                          mixprec_bytes_of_(src_type, count));
            how.index = offset + i;
            mixprec_convert_run_(kernels, (char *)dst + mixprec_bytes_of_(dst_type, i), dst_type, block, src_type,
                                 count, &how, scale);
        }
    }
    mixprec_fp_end_(environment);
    return MIXPREC_OK;
}

MIXPREC_API mixprec_status mixprec_convert(void *dst, mixprec_dtype dst_type, const void *src, mixprec_dtype src_type,
                                           size_t n) {
    return mixprec_convert_ex(dst, dst_type, src, src_type, n, NULL);
}

MIXPREC_API mixprec_status mixprec_stats(mixprec_statistics *stats, const void *src, mixprec_dtype src_type, size_t n,
                                         mixprec_dtype to, const mixprec_convert_options *options) {
    static const mixprec_statistics empty = {0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, {0}};
    const mixprec_kernels_ *kernels;
    mixprec_fp_ environment;
    mixprec_status status;
    mixprec_how_ how;
    float scale;
    if (!mixprec_size_of_(src_type) || !mixprec_size_of_(to) || to == MIXPREC_F64)
        return MIXPREC_ERR_DTYPE;
    status = mixprec_check_options_(options, &kernels, &how, &scale);
    if (status != MIXPREC_OK)
        return status;
    if (!stats || (n && !src))
        return MIXPREC_ERR_NULL;
    if (n > SIZE_MAX / 8)
        return MIXPREC_ERR_SIZE;
    if (mixprec_overlap_(stats, sizeof *stats, src, mixprec_bytes_of_(src_type, n)))
        return MIXPREC_ERR_OVERLAP;
    *stats = empty;
    environment = mixprec_fp_begin_();
    mixprec_stats_run_(kernels, stats, src, src_type, n, to, &how, scale);
    mixprec_fp_end_(environment);
    return MIXPREC_OK;
}
#endif

#ifndef MIXPREC_NO_GEMM
/* A matrix as stored, in bytes. */
typedef struct mixprec_extent_ {
    size_t rows, width, stride, bytes; /* bytes: from the first element to the last; 0 when there is none */
} mixprec_extent_;

static mixprec_status mixprec_check_matrix_(size_t rows, size_t columns, size_t *ld, size_t size,
                                            mixprec_extent_ *extent) {
    if (*ld == 0)
        *ld = columns ? columns : 1;
    if (*ld < columns)
        return MIXPREC_ERR_LEADING_DIMENSION;
    extent->bytes = 0;
    if (!rows || !columns)
        return MIXPREC_OK;
    if (columns > SIZE_MAX / 16 || (rows > 1 && *ld > (SIZE_MAX / 16 - columns) / (rows - 1)))
        return MIXPREC_ERR_SIZE;
    extent->rows = rows;
    extent->width = columns * size;
    extent->stride = rows > 1 ? *ld * size : 0;
    extent->bytes = (rows - 1) * *ld * size + extent->width;
    return MIXPREC_OK;
}

/* Do two matrices share an element? Blocks of one larger matrix may lie side by side: exact for equal strides, else by
   whole extents. */
static int mixprec_matrices_overlap_(const void *a, const mixprec_extent_ *a_extent, const void *b,
                                     const mixprec_extent_ *b_extent) {
    const mixprec_extent_ *low = a_extent, *high = b_extent;
    size_t distance = (size_t)((uintptr_t)b - (uintptr_t)a), stride, row, offset;
    if (!mixprec_overlap_(a, a_extent->bytes, b, b_extent->bytes))
        return 0;
    if ((uintptr_t)a > (uintptr_t)b) {
        low = b_extent;
        high = a_extent;
        distance = (size_t)((uintptr_t)a - (uintptr_t)b);
    }
    stride = low->stride;
    if (stride == 0 || high->stride != stride)
        return 1;
    row = distance / stride;
    offset = distance % stride;
    return (row < low->rows && offset < low->width) || (row + 1 < low->rows && offset + high->width > stride);
}

/* alpha or beta, rounded to fp32 for fp32 accumulators. With integers: it happens in the caller's floating-point
   environment, and gcc 12 at -O2 drops the rounding of a pair of (double)(float) casts. */
static double mixprec_coefficient_(const double *x, double absent, int wide) {
    uint64_t bits = mixprec_f64_bits_(x ? *x : absent);
    if (!wide)
        bits = mixprec_f32_bits_to_f64_bits_(
            mixprec_narrow_f64_(bits, &mixprec_layout_f32_, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0));
    return mixprec_f64_from_bits_(bits);
}

/* Checks everything but pointers and workspace; fills in the leading dimensions and the plan. */
static mixprec_status mixprec_gemm_check_(mixprec_gemm_desc *d, mixprec_gemm_plan_ *plan, mixprec_extent_ extents[3]) {
    size_t a_size = mixprec_size_of_(d->a_type), b_size = mixprec_size_of_(d->b_type),
           c_size = mixprec_size_of_(d->c_type);
    mixprec_status status;
    if (!mixprec_is_compute_type_(d->a_type) || !mixprec_is_compute_type_(d->b_type) ||
        !mixprec_is_compute_type_(d->c_type))
        return MIXPREC_ERR_DTYPE;
    if ((unsigned)d->trans_a > 1u || (unsigned)d->trans_b > 1u)
        return MIXPREC_ERR_TRANSPOSE;
    if (!mixprec_is_round_(d->round))
        return MIXPREC_ERR_ROUND;
    if (!mixprec_is_overflow_(d->overflow))
        return MIXPREC_ERR_OVERFLOW;
    plan->kernels = mixprec_kernels_of_(d->isa);
    if (!plan->kernels)
        return MIXPREC_ERR_ISA;
    status = d->trans_a ? mixprec_check_matrix_(d->k, d->m, &d->lda, a_size, &extents[0])
                        : mixprec_check_matrix_(d->m, d->k, &d->lda, a_size, &extents[0]);
    if (status == MIXPREC_OK)
        status = d->trans_b ? mixprec_check_matrix_(d->n, d->k, &d->ldb, b_size, &extents[1])
                            : mixprec_check_matrix_(d->k, d->n, &d->ldb, b_size, &extents[1]);
    if (status == MIXPREC_OK)
        status = mixprec_check_matrix_(d->m, d->n, &d->ldc, c_size, &extents[2]);
    if (status != MIXPREC_OK)
        return status;
    plan->wide = d->a_type == MIXPREC_F64 && d->b_type == MIXPREC_F64;
    plan->size = plan->wide ? 8 : 4;
    plan->alpha = mixprec_coefficient_(d->alpha, 1, plan->wide);
    plan->beta = mixprec_coefficient_(d->beta, 0, plan->wide);
    plan->nothing = d->k == 0 || mixprec_f64_bits_(plan->alpha) << 1 == 0;
    plan->add_c = mixprec_f64_bits_(plan->beta) << 1 != 0;
    plan->direct = d->c_type == (plan->wide ? MIXPREC_F64 : MIXPREC_F32) && !plan->nothing && !plan->add_c &&
                   mixprec_f64_bits_(plan->alpha) == (uint64_t)1023 << 52;
    return MIXPREC_OK;
}

MIXPREC_API mixprec_status mixprec_gemm_workspace(const mixprec_gemm_desc *desc, size_t *best, size_t *least) {
    mixprec_gemm_desc d;
    mixprec_gemm_plan_ plan;
    mixprec_extent_ extents[3];
    mixprec_status status;
    if (!desc)
        return MIXPREC_ERR_NULL;
    d = *desc;
    status = mixprec_gemm_check_(&d, &plan, extents);
    if (status != MIXPREC_OK)
        return status;
    if (best) {
        mixprec_gemm_blocks_(&plan, &d, SIZE_MAX);
        *best = mixprec_gemm_bytes_(&plan);
    }
    if (least) {
        mixprec_gemm_blocks_(&plan, &d, 0);
        *least = mixprec_gemm_bytes_(&plan);
    }
    return MIXPREC_OK;
}

#if defined(MIXPREC_MALLOC) && MIXPREC_GEMM_STACK > 0
MIXPREC_NOINLINE_ void mixprec_gemm_run_on_stack_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d) {
    double workspace[(MIXPREC_GEMM_STACK + 7) / 8];
    mixprec_gemm_run_(plan, d, workspace);
}
#endif

MIXPREC_API mixprec_status mixprec_gemm_ex(const mixprec_gemm_desc *desc) {
    mixprec_gemm_desc d;
    mixprec_gemm_plan_ plan;
    mixprec_extent_ extents[3];
    mixprec_status status;
    mixprec_fp_ environment;
    if (!desc)
        return MIXPREC_ERR_NULL;
    d = *desc;
    status = mixprec_gemm_check_(&d, &plan, extents);
    if (status != MIXPREC_OK)
        return status;
    if (d.m == 0 || d.n == 0)
        return MIXPREC_OK;
    if (!d.c)
        return MIXPREC_ERR_NULL;
    if (!plan.nothing) {
        if (!d.a || !d.b)
            return MIXPREC_ERR_NULL;
        if (mixprec_matrices_overlap_(d.c, &extents[2], d.a, &extents[0]) ||
            mixprec_matrices_overlap_(d.c, &extents[2], d.b, &extents[1]))
            return MIXPREC_ERR_OVERLAP;
    }
    if (plan.nothing) {
        environment = mixprec_fp_begin_();
        mixprec_gemm_run_nothing_(&plan, &d);
        mixprec_fp_end_(environment);
        return MIXPREC_OK;
    }
    mixprec_gemm_blocks_(&plan, &d, d.workspace ? d.workspace_size : SIZE_MAX);
    if (d.workspace) {
        if (mixprec_gemm_bytes_(&plan) > d.workspace_size)
            return MIXPREC_ERR_WORKSPACE;
        environment = mixprec_fp_begin_();
        mixprec_gemm_run_(&plan, &d, d.workspace);
        mixprec_fp_end_(environment);
        return MIXPREC_OK;
    }
#ifdef MIXPREC_MALLOC
#if MIXPREC_GEMM_STACK > 0
    if (mixprec_gemm_bytes_(&plan) <= MIXPREC_GEMM_STACK) {
        environment = mixprec_fp_begin_();
        mixprec_gemm_run_on_stack_(&plan, &d);
        mixprec_fp_end_(environment);
        return MIXPREC_OK;
    }
#endif
    d.workspace = MIXPREC_MALLOC(mixprec_gemm_bytes_(&plan));
    if (!d.workspace)
        return MIXPREC_ERR_ALLOC;
    environment = mixprec_fp_begin_();
    mixprec_gemm_run_(&plan, &d, d.workspace);
    mixprec_fp_end_(environment);
    MIXPREC_FREE(d.workspace);
#else
    plan.kernels = &mixprec_kernels_c_;
    environment = mixprec_fp_begin_();
    mixprec_gemm_run_small_(&plan, &d);
    mixprec_fp_end_(environment);
#endif
    return MIXPREC_OK;
}

MIXPREC_API mixprec_status mixprec_gemm(mixprec_transpose ta, mixprec_transpose tb, size_t m, size_t n, size_t k,
                                        float alpha, const void *a, mixprec_dtype a_type, size_t lda, const void *b,
                                        mixprec_dtype b_type, size_t ldb, float beta, void *c, mixprec_dtype c_type,
                                        size_t ldc) {
    double wide_alpha = mixprec_f64_from_bits_(mixprec_f32_bits_to_f64_bits_(mixprec_f32_bits_(alpha)));
    double wide_beta = mixprec_f64_from_bits_(mixprec_f32_bits_to_f64_bits_(mixprec_f32_bits_(beta)));
    static const mixprec_gemm_desc none = MIXPREC_ZERO_;
    mixprec_gemm_desc d;
    if (lda == 0 || ldb == 0 || ldc == 0)
        return mixprec_is_compute_type_(a_type) && mixprec_is_compute_type_(b_type) && mixprec_is_compute_type_(c_type)
                   ? MIXPREC_ERR_LEADING_DIMENSION
                   : MIXPREC_ERR_DTYPE;
    d = none;
    d.trans_a = ta;
    d.trans_b = tb;
    d.m = m;
    d.n = n;
    d.k = k;
    d.alpha = &wide_alpha;
    d.beta = &wide_beta;
    d.a = a;
    d.a_type = a_type;
    d.lda = lda;
    d.b = b;
    d.b_type = b_type;
    d.ldb = ldb;
    d.c = c;
    d.c_type = c_type;
    d.ldc = ldc;
    return mixprec_gemm_ex(&d);
}
#endif

#ifndef MIXPREC_NO_SCALER
MIXPREC_API void mixprec_scaler_init(mixprec_scaler *scaler) {
    if (!scaler)
        return;
    scaler->scale = 65536.0f;
    scaler->min_scale = 1.0f / 16384;
    scaler->max_scale = 16777216.0f;
    scaler->growth_interval = 2000;
    scaler->growth_factor = 2.0;
    scaler->backoff_factor = 0.5;
    scaler->hysteresis = 1;
    scaler->growth_tracker = 0;
    scaler->hysteresis_used = 0;
    scaler->found_inf = 0;
}

MIXPREC_API mixprec_status mixprec_scaler_init_static(mixprec_scaler *scaler, float scale) {
    if (!scaler)
        return MIXPREC_ERR_NULL;
    if (!mixprec_is_scale_(scale))
        return MIXPREC_ERR_SCALE;
    mixprec_scaler_init(scaler);
    scaler->scale = scaler->min_scale = scaler->max_scale = scale;
    scaler->growth_factor = scaler->backoff_factor = 1.0;
    return MIXPREC_OK;
}

MIXPREC_API mixprec_status mixprec_scaler_check(const mixprec_scaler *s) {
    if (!s)
        return MIXPREC_ERR_NULL;
    if (!mixprec_is_scale_(s->scale) || !mixprec_is_scale_(s->min_scale) || !mixprec_is_scale_(s->max_scale) ||
        s->min_scale > s->scale || s->scale > s->max_scale || !mixprec_is_factor_(s->growth_factor) ||
        s->growth_factor < 1 || !mixprec_is_factor_(s->backoff_factor) || s->backoff_factor > 1 ||
        s->growth_interval < 1 || s->hysteresis < 1 || s->growth_tracker < 0 || s->hysteresis_used < 0)
        return MIXPREC_ERR_SCALE;
    return MIXPREC_OK;
}

MIXPREC_API float mixprec_scaler_scale(const mixprec_scaler *scaler, float loss) {
    return loss * scaler->scale;
}

MIXPREC_API int mixprec_scaler_unscale_ex(mixprec_scaler *scaler, float *dst, const void *grad, mixprec_dtype dtype,
                                          size_t n, mixprec_isa isa) {
    const mixprec_kernels_ *kernels = mixprec_kernels_of_(isa);
    size_t size = mixprec_size_of_(dtype);
    mixprec_fp_ environment;
    int found;
    if (!scaler)
        return -(int)MIXPREC_ERR_NULL;
    if (!mixprec_is_compute_type_(dtype))
        return -(int)MIXPREC_ERR_DTYPE;
    if (!kernels)
        return -(int)MIXPREC_ERR_ISA;
    if (!mixprec_is_scale_(scaler->scale))
        return -(int)MIXPREC_ERR_SCALE;
    if (n == 0)
        return 0;
    if (!dst || !grad)
        return -(int)MIXPREC_ERR_NULL;
    if (n > SIZE_MAX / 8)
        return -(int)MIXPREC_ERR_SIZE;
    if (!(dst == grad && dtype == MIXPREC_F32) && mixprec_overlap_(dst, n * sizeof *dst, grad, n * size))
        return -(int)MIXPREC_ERR_OVERLAP;
    environment = mixprec_fp_begin_();
    found = mixprec_unscale_run_(kernels, dst, grad, dtype, n, scaler->scale);
    mixprec_fp_end_(environment);
    scaler->found_inf |= found;
    return found;
}

MIXPREC_API int mixprec_scaler_unscale(mixprec_scaler *scaler, float *dst, const void *grad, mixprec_dtype dtype,
                                       size_t n) {
    return mixprec_scaler_unscale_ex(scaler, dst, grad, dtype, n, MIXPREC_ISA_AUTO);
}

/* The nearest scale within the limits, which hold even when the fields were set to nonsense; NaN becomes the least. */
static float mixprec_limit_scale_(const mixprec_scaler *s, float scale) {
    float least = mixprec_is_scale_(s->min_scale) ? s->min_scale : mixprec_f32_from_bits_(0x00800000u);
    float most = mixprec_is_scale_(s->max_scale) ? s->max_scale : mixprec_f32_from_bits_(0x7F7FFFFFu);
    if (!mixprec_is_scale_(scale) || scale < least || most < least)
        return least;
    return scale < most ? scale : most;
}

MIXPREC_API int mixprec_scaler_update(mixprec_scaler *s) {
    mixprec_fp_ environment = mixprec_fp_begin_();
    int found = s->found_inf != 0;
    float scale = s->scale;
    s->found_inf = 0;
    if (found) {
        s->growth_tracker = 0;
        if (s->hysteresis_used < s->hysteresis)
            s->hysteresis_used++;
        if (s->hysteresis_used >= s->hysteresis)
            scale = mixprec_rescale_(scale, s->backoff_factor);
    } else {
        if (s->growth_tracker < INT32_MAX)
            s->growth_tracker++;
        if (s->growth_tracker >= s->growth_interval) {
            float grown = mixprec_rescale_(scale, s->growth_factor);
            s->growth_tracker = 0;
            s->hysteresis_used = 0;
            if (mixprec_is_scale_(grown) && grown <= s->max_scale)
                scale = grown;
        }
    }
    s->scale = mixprec_limit_scale_(s, scale);
    mixprec_fp_end_(environment);
    return !found;
}
#endif

#endif /* MIXPREC_IMPLEMENTED_ */
#endif /* MIXPREC_IMPLEMENTATION */

/* ================================================================================================================== */
/* [HISTORY] Changes and the licence text                                                                             */
/* ================================================================================================================== */

/* 0.1.0  Conversions for fifteen formats, GEMM and the loss scaler, in portable C, AVX2, AVX-512, NEON (conversions).

   This software is available under two licences: choose whichever you prefer.

   MIT No Attribution (MIT-0). Copyright (c) 2026 the mixprec authors. Permission is hereby granted, free of charge, to
   any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the
   Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,
   distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished
   to do so. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT
   LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL
   THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF
   CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
   THE SOFTWARE.

   The Unlicense (unlicense.org). This is free and unencumbered software released into the public domain. Anyone is free
   to copy, modify, publish, use, compile, sell, or distribute this software, either in source code form or as a
   compiled binary, for any purpose, commercial or non-commercial, and by any means. The same disclaimer of warranty
   applies. */
