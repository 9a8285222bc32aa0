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
       With tcc, and on CPUs other than x86, ARM and RISC-V, that environment does act on GEMM, unscaling and .scale.
       Where the x87 unit computes, products of f64 that are subnormal may be rounded twice (.scale between f64 and
       f64), and clang may keep GEMM's sums too wide.
     - GEMM accumulates in fp32 in one documented order. For f16, bf16, e4m3 and e5m2 operands the result has the same
       bits on every instruction set, for any batch size, leading dimension, blocking and split over threads.
     - No thread, no printing, no abort, no errno; of global state only what was found out about the CPU. The
       floating-point flags and modes of the caller come back as they were. A call that returns an error has not
       written to its outputs; only what a caller's `read` and `write` for checkpoints fail at in the middle may be
       there in part.

   What it is not: a tensor library, a thread pool, or a source of integer-quantised kernels. GEMM reads row-major
   matrices. For NVIDIA GPUs there is mixprec_cuda.cuh.

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
     [REDUCE]     sums, norms, the largest magnitude
     [GEMM]       matrix multiplication
     [QUANT]      scaled narrow tensors
     [SCALER]     the loss scaler
     [OPTIM]      optimisers
     [POLICY]     which dtype where
     [CHECKPOINT] the state of a training run as a stream of bytes
     [LAYERS]     forward and backward passes of neural networks
     [DISPATCH]   one table of kernels for each instruction set
     [PUBLIC]     argument checks and entry points
     [HISTORY]    changes and the licence text
*/

/* Warnings that the including file may want of its own code; C knows one kind of cast and of null pointer, and a switch
   over an enumeration without `default` lets the compiler name a missing case. gcc takes for possible what a check of
   the dtype has excluded: that there is no layout. clang names the loops that it does not unroll under -Oz and
   -fno-inline. */
#if defined(__GNUC__) && !defined(__TINYC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wswitch-default"
#if __GNUC__ >= 6 || defined(__clang__)
#pragma GCC diagnostic ignored "-Wnull-dereference"
#endif
#if defined(__clang__) && (defined(__OPTIMIZE_SIZE__) || defined(__NO_INLINE__))
#pragma GCC diagnostic ignored "-Wpass-failed"
#endif
#ifdef __cplusplus
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wuseless-cast"
#endif
#endif
#endif

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

/* All but the first belong before the first include in a file, the MIXPREC_NO_ ones in every file.

   MIXPREC_IMPLEMENTATION   Define in exactly one file: the functions of [API] are compiled there.
   MIXPREC_STATIC           With MIXPREC_IMPLEMENTATION: every function is static, so several files may each have them.
   MIXPREC_EXPORT           What a shared library wants before its functions: __declspec(dllexport), say, or
                            __attribute__((visibility("default"))). Default: nothing.
   MIXPREC_NO_SIMD          Portable C only. Leaves out [VEC-AVX2], [VEC-AVX512], [VEC-NEON] and CPU detection.
   MIXPREC_MAX_ISA          The most that may be compiled in on x86-64: 1 portable C, 2 AVX2, 3 AVX-512 (the default).
   MIXPREC_NO_STDLIB        Include no libc header but stdint.h and stddef.h, and never call malloc. GEMM then works in
                            the workspace it is given, or, more slowly and in portable C, in about 4 KB of stack.
   MIXPREC_NO_CONVERT       Leaves out mixprec_convert, mixprec_convert_ex, mixprec_stats.
   MIXPREC_NO_GEMM          Leaves out the mixprec_gemm functions and mixprec_conv2d.
   MIXPREC_NO_SCALER        Leaves out the mixprec_scaler_ functions.
   MIXPREC_NO_REDUCE        Leaves out the sums, norms, mixprec_amax and mixprec_all_finite.
   MIXPREC_NO_QUANT         Leaves out mixprec_quantize, mixprec_dequantize, the scales of fp8.
   MIXPREC_NO_OPTIM         Leaves out the optimisers, mixprec_accumulate, mixprec_warmup_cosine.
   MIXPREC_NO_POLICY        Leaves out the mixprec_policy_ functions, mixprec_autocast_of.
   MIXPREC_NO_CHECKPOINT    Leaves out the mixprec_checkpoint_ and mixprec_buffer_ functions.
   MIXPREC_NO_LAYERS        Leaves out softmax, normalisation, convolution and the other layers.
   MIXPREC_MALLOC(bytes), MIXPREC_FREE(pointer)
                            The allocator for GEMM's workspace: both or neither. Default: malloc and free.
   MIXPREC_GEMM_STACK       Bytes of stack that GEMM may use for small products before it asks the allocator. 32768.
   MIXPREC_ASSERT(x)        Checks of the library's own invariants. Default: nothing. */

#if defined(__STRICT_ANSI__) && !defined(__cplusplus) && __STDC_VERSION__ + 0 < 199901L
#error "mixprec: needs C99: -std=c99 or later, or -std=gnu89"
#endif
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

#ifndef MIXPREC_EXPORT
#define MIXPREC_EXPORT
#endif

#ifdef MIXPREC_STATIC
#define MIXPREC_STATIC_ /* as the declarations say */
#if defined(__GNUC__) && !defined(__TINYC__)
#define MIXPREC_API static __attribute__((unused))
#else
#define MIXPREC_API static
#endif
#elif defined(__cplusplus)
#define MIXPREC_API extern "C" MIXPREC_EXPORT
#else
#define MIXPREC_API extern MIXPREC_EXPORT
#endif

/* The number of products that GEMM sums before it adds the sum to the total: part of the definition of the result, so
   it is no option. An earlier prototype's AVX-512 kernel on Skylake-SP ran 148.5 GFLOP/s with 512 and 149 with 1024;
   512 keeps the panel of B of an AVX2 kernel in L1. */
#define MIXPREC_GEMM_KBLOCK 512

/* Sums start anew after so many elements: part of the definition of the result, too. */
#define MIXPREC_REDUCE_BLOCK 65536

/* ================================================================================================================== */
/* [TYPES] Formats, enumerations, status codes, structures                                                            */
/* ================================================================================================================== */

/* Storage types: the bits, nothing else. A structure for each, so that the compiler refuses to mix formats and never
   promotes one to an integer. Layout-compatible with __half, __nv_bfloat16, __nv_fp8_e4m3, __nv_fp8_e5m2,
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

/* What becomes of a value that is too large after rounding, and of Inf. And, whatever the policy:
     f16, bf16, e5m2, e4m3ieee, e3m4   NaN keeps its sign and what fits of its payload; -0 stays
     e4m3                              NaN keeps its sign; -0 stays
     FNUZ                              NaN becomes the only one there is, -0 becomes 0
     fp6, fp4                          NaN becomes the largest number; -0 stays
     int8                              NaN and -0 become 0
     E8M0                              zeros and negative numbers become NaN, what is below 2^-127 becomes 2^-127 */
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
    X(MIXPREC_ERR_DTYPE, "unknown dtype, or one that this function does not take")                                     \
    X(MIXPREC_ERR_ROUND, "unknown rounding mode")                                                                      \
    X(MIXPREC_ERR_OVERFLOW, "unknown overflow policy")                                                                 \
    X(MIXPREC_ERR_TRANSPOSE, "unknown transpose value")                                                                \
    X(MIXPREC_ERR_ISA, "this instruction set is unknown, not compiled in, or not available on this CPU")               \
    X(MIXPREC_ERR_LEADING_DIMENSION, "a leading dimension is smaller than the row it must hold")                       \
    X(MIXPREC_ERR_SIZE, "the sizes overflow size_t")                                                                   \
    X(MIXPREC_ERR_OVERLAP, "an output overlaps an input in a way that is not supported")                               \
    X(MIXPREC_ERR_SCALE, "a scale, or what a scaler has, is NaN, infinite, zero, negative or out of order")            \
    X(MIXPREC_ERR_WORKSPACE, "the workspace is too small")                                                             \
    X(MIXPREC_ERR_ACTIVATION, "unknown activation, or one that is not computed in f64")                                \
    X(MIXPREC_ERR_TRIANGLE, "unknown triangle, or C is not square, or a row range was asked for too")                  \
    X(MIXPREC_ERR_RANGE, "a range lies outside of what it selects from")                                               \
    X(MIXPREC_ERR_PACKED, "a packed matrix is not one, or of another shape, dtype or instruction set")                 \
    X(MIXPREC_ERR_ALLOC, "the workspace could not be allocated")                                                       \
    X(MIXPREC_ERR_REDUCTION, "unknown reduction")                                                                      \
    X(MIXPREC_ERR_OPTIMIZER, "a hyperparameter of the optimiser makes no sense")                                       \
    X(MIXPREC_ERR_POLICY, "not a policy")                                                                              \
    X(MIXPREC_ERR_STREAM, "the stream took fewer bytes than were written to it")                                       \
    X(MIXPREC_ERR_FORMAT, "not a checkpoint")                                                                          \
    X(MIXPREC_ERR_VERSION, "a checkpoint of an unknown version")                                                       \
    X(MIXPREC_ERR_TRUNCATED, "the checkpoint ends too early")                                                          \
    X(MIXPREC_ERR_CHECKSUM, "the checkpoint is damaged")                                                               \
    X(MIXPREC_ERR_MISMATCH, "the checkpoint holds other items than these")                                             \
    X(MIXPREC_ERR_INDEX, "an index, of a class or a token, is too large")                                              \
    X(MIXPREC_ERR_PARAMETER, "a parameter of a layer lies outside of its range")                                       \
    X(MIXPREC_ERR_DEVICE, "no CUDA device, or it lacks the compute capability, or the program has no code for it")     \
    X(MIXPREC_ERR_CUDA, "CUDA reported an error: mixprec_cuda_last_error tells which")

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
    int native;                        /* 1: other bits will do: see mixprec_native_available */
    mixprec_isa isa;                   /* run this path; for tests and benchmarks */
    size_t packed_size;                /* not 0: b is what mixprec_gemm_pack_b wrote, of so many bytes */
    mixprec_parallel_for parallel_for; /* NULL: this thread alone */
    void *parallel_context;            /* its first argument */
    size_t threads;                    /* into how many tasks to split at most; for one, parallel_for is not called */
    void *workspace;                   /* NULL: stack, or the allocator. Any alignment; apart from all else here. */
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

/* The shape of a 2-D convolution. Strides and dilations of 0 mean 1. Height comes before width. */
typedef struct mixprec_conv2d {
    size_t batch, channels, height, width; /* of the input */
    size_t filters, kernel_height, kernel_width;
    size_t stride_y, stride_x, dilation_y, dilation_x;
    size_t padding_y, padding_x; /* zeros on each side */
} mixprec_conv2d;

/* What narrowing would do to an array; from mixprec_stats. */
typedef struct mixprec_statistics {
    uint64_t count;
    uint64_t nan, inf, zero;       /* elements that are that already, after .scale */
    uint64_t overflow;             /* finite elements beyond the format's largest and least finite number; among them */
                                   /* those that round to it, at most half a step away */
    uint64_t underflow, subnormal; /* nonzero elements that become zero, or a subnormal number */
    double amax, min_nonzero;      /* largest and smallest nonzero magnitude of the finite elements; 0 if none */
    /* Sums over the finite elements of x^2 and (x - q)^2, q saturated: SQNR = 10 log10(signal / noise) dB. An x that
       becomes NaN, as zero and negative ones do in E8M0, counts as x^2. Within 2^-20 of themselves, noise also within
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

/* What mixprec_reduce sums. */
typedef enum mixprec_reduction {
    MIXPREC_SUM = 0,     /* x */
    MIXPREC_SUM_ABS,     /* |x| */
    MIXPREC_SUM_SQUARES, /* (x - center)^2 */
    MIXPREC_DOT          /* x y */
} mixprec_reduction;

/* Delayed scaling of a tensor that is stored in fp8: the scale of a step follows from the largest magnitudes (amax) of
   the steps before. Fields may be set after mixprec_delayed_scaling_init. */
typedef struct mixprec_delayed_scaling {
    float scale;           /* what the tensor is multiplied by before it is narrowed. 1 */
    int32_t margin;        /* the largest magnitude is aimed at the format's maximum times 2^-margin; -64 to 64. 0 */
    int32_t most_recent;   /* 0: the scale follows the maximum of the history; 1: the amax of the last step. 0 */
    mixprec_dtype dtype;   /* the format */
    float *history;        /* the caller's: [0] is 0, [1 .. length - 1] are the last amaxes, oldest first */
    size_t history_length; /* at least 1. TransformerEngine has 1024. */
} mixprec_delayed_scaling;

/* The arguments of mixprec_quantize. A field that is zero means the common case. */
typedef struct mixprec_quantize_desc {
    size_t rows, columns; /* a vector: one row */
    const void *src;      /* rows x columns */
    mixprec_dtype src_type;
    size_t src_ld; /* elements from one row to the next; 0: rows without gaps */
    void *dst;     /* rows x columns */
    mixprec_dtype dst_type;
    size_t dst_ld; /* likewise; of fp4, whose rows begin with a byte, even, and 0: `columns` or one more */

    float *scales;                    /* written, in the layout of mixprec_scales: an element of src is about an ... */
    size_t block_rows, block_columns; /* ... element of dst times the scale of its block; 0: all rows, all columns */
    size_t scales_ld;                 /* 0: rows of scales without gaps */
    const float *scale;  /* not NULL: multiply by this one, of delayed scaling, not by what fits; one block */
    int power_of_two;    /* 1: scales are powers of two, which E8M0 holds exactly */
    float *amax;         /* not NULL: the largest magnitude of src is written here */
    mixprec_round round; /* to the nearest by default; stochastic for gradients, for example. Overflow ... */
    uint64_t seed;       /* ... saturates. MIXPREC_ROUND_STOCHASTIC: element (i, j) draws ... */
    uint64_t offset;     /* ... mixprec_random_bits(seed, offset + i * columns + j) */
    mixprec_isa isa;     /* run this path; for tests and benchmarks */
} mixprec_quantize_desc;

/* Stochastic gradient descent as torch.optim.SGD has it. Set the fields after mixprec_sgd_init. */
typedef struct mixprec_sgd {
    double learning_rate; /* 1e-3 */
    double momentum;      /* 0: none, and no array of moments */
    double dampening;     /* 0 */
    double weight_decay;  /* 0 */
    int32_t nesterov;     /* 0. 1 needs momentum, and no dampening. */
    uint64_t step;        /* add 1 before each step that is taken: the first is 1 */
} mixprec_sgd;

/* Adam and AdamW as torch.optim has them. Set the fields after mixprec_adam_init or mixprec_adamw_init. */
typedef struct mixprec_adam {
    double learning_rate; /* 1e-3 */
    double beta1, beta2;  /* 0.9, 0.999 */
    double epsilon;       /* 1e-8 */
    double weight_decay;  /* 0; AdamW: 1e-2 */
    int32_t decoupled;    /* 0: Adam adds weight_decay * weight to the gradient. 1: AdamW shrinks the weight. */
    uint64_t step;        /* add 1 before each step that is taken: the first is 1 */
} mixprec_adam;

/* One tensor of weights and what belongs to it, for a step of an optimiser. A field that is zero means the common case.
   Three ways to hold weights:
     master                  fp32, and `model`, where not NULL, receives the narrowed copy
     model                   low precision alone; .round = MIXPREC_ROUND_STOCHASTIC lets small updates count on average
     model and compensation  low precision and what its rounding lost, in the same dtype (Kahan summation, as in Zamirai
                             et al., "Revisiting BFloat16 Training", arXiv:2010.06192); .round must be the nearest */
typedef struct mixprec_parameter {
    size_t n;
    const void *grad;
    mixprec_dtype grad_type;
    float *master; /* n elements each, none overlapping another */
    void *model;
    mixprec_dtype model_type;
    void *compensation;
    float *moment1; /* Adam: of the gradient; SGD: the momentum, NULL without. Zeros before the first step. */
    float *moment2; /* Adam: of its square; SGD: NULL */
    mixprec_round round;
    mixprec_overflow overflow; /* of a model that is not f32 */
    uint64_t
        seed; /* MIXPREC_ROUND_STOCHASTIC: element i draws mixprec_random_bits(seed, offset + i): take another ... */
    uint64_t offset; /* ... seed for each step and tensor */
    mixprec_isa isa; /* run this path; for tests and benchmarks */
} mixprec_parameter;

/* Which dtypes a model uses. */
typedef struct mixprec_policy {
    mixprec_dtype param;    /* the weights that the optimiser updates */
    mixprec_dtype compute;  /* matrix products, forward */
    mixprec_dtype output;   /* what a layer hands on */
    mixprec_dtype gradient; /* matrix products, backward: what they read */
    int32_t
        per_operation;    /* 1: mixprec_policy_operation goes by PyTorch's lists; 0: everything runs in `compute` ... */
    int32_t f32_norms;    /* ... but in fp32 batch normalisation, when this is 1, or every normalisation, when 2 */
    int32_t loss_scaling; /* 1: gradients need a loss scaler */
} mixprec_policy;

/* What PyTorch's autocast does with an operation. */
typedef enum mixprec_autocast {
    MIXPREC_AUTOCAST_UNLISTED = 0, /* runs in the widest type of its inputs */
    MIXPREC_AUTOCAST_LOW,          /* low precision */
    MIXPREC_AUTOCAST_F32,          /* fp32 */
    MIXPREC_AUTOCAST_PROMOTE       /* the widest type of its inputs, low precision at least */
} mixprec_autocast;

/* What an item of a checkpoint is. */
typedef enum mixprec_checkpoint_kind {
    MIXPREC_CHECKPOINT_ARRAY = 0,      /* data: n elements of dtype (any) */
    MIXPREC_CHECKPOINT_U64,            /* data: n uint64_t: counters, seeds, the state of a random generator */
    MIXPREC_CHECKPOINT_SCALER,         /* data: n mixprec_scaler */
    MIXPREC_CHECKPOINT_DELAYED_SCALING /* data: n mixprec_delayed_scaling, with their histories */
} mixprec_checkpoint_kind;
typedef struct mixprec_checkpoint_item {
    const char *name; /* at most 255 bytes; "" will do, since the order counts, too */
    mixprec_checkpoint_kind kind;
    mixprec_dtype dtype; /* of an array; MIXPREC_NONE for the others */
    void *data;          /* read when saving, written when loading */
    size_t n;
} mixprec_checkpoint_item;

/* Where a checkpoint goes, and comes from. Each returns how many bytes it took or gave: fewer than n is an error, or
   the end. `offset` counts from the checkpoint's first byte; reading comes back to earlier ones. */
typedef size_t (*mixprec_write)(void *context, const void *bytes, size_t n);
typedef size_t (*mixprec_read)(void *context, uint64_t offset, void *bytes, size_t n);

/* Memory to save to and load from: the context of mixprec_buffer_write and mixprec_buffer_read. */
typedef struct mixprec_buffer {
    unsigned char *bytes;
    size_t size; /* how many there are */
    size_t used; /* how many were written: 0 before saving */
} mixprec_buffer;

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

/* clang turns tests of the bits of a number into tests of the number, in which DAZ takes subnormals for 0; and where
   the command line has promised that there is no Inf and no NaN (-ffast-math), it folds those tests of arguments and of
   results of arithmetic. So it must not know where the bits come from. `x` is an integer, or a vector of integers: of a
   float the promise holds even after this. */
#if defined(__clang__)
#define MIXPREC_UNKNOWN_(constraint, x) __asm__("" : constraint(x))
#else
#define MIXPREC_UNKNOWN_(constraint, x) ((void)0)
#endif
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#define MIXPREC_UNKNOWN_CLASS_(constraint, x) MIXPREC_UNKNOWN_(constraint, x)
#else
#define MIXPREC_UNKNOWN_CLASS_(constraint, x) ((void)0)
#endif

/* A union reads the bits without a call to memcpy, which MIXPREC_NO_STDLIB builds may not have; every compiler that
   this header supports defines it, in C++ too. */
MIXPREC_INLINE uint32_t mixprec_f32_bits_(float x) {
    union {
        float value;
        uint32_t bits;
    } u;
    u.value = x;
    MIXPREC_UNKNOWN_CLASS_("+r", u.bits);
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
#if defined(__SIZEOF_DOUBLE__) && __SIZEOF_DOUBLE__ != 8 && defined(__GNUC__)
uint64_t mixprec_f64_bits_(double x) __attribute__((error("mixprec: f64 has 64 bits, double here has not")));
double mixprec_f64_from_bits_(uint64_t bits) __attribute__((error("mixprec: f64 has 64 bits, double here has not")));
#else
MIXPREC_INLINE uint64_t mixprec_f64_bits_(double x) {
    union {
        double value;
        uint64_t bits;
    } u;
    u.value = x;
    MIXPREC_UNKNOWN_CLASS_("+m", u.bits);
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
#endif

/* What is special: Inf and NaN as in IEEE 754; NaN but no Inf; one NaN in the place of -0 (finite, NaN, unsigned zero);
   neither, and NaN becomes the largest number, as PTX's cvt.satfinite to e2m1, e2m3 and e3m2 has it. */
enum { MIXPREC_IEEE_, MIXPREC_NO_INF_, MIXPREC_FNUZ_, MIXPREC_FINITE_, MIXPREC_INTEGER_ };

/* A row of the format table as numbers. */
typedef struct mixprec_layout_ {
    int mantissa_bits, bias;
    uint32_t sign_code, max_code, overflow_code, nan_code;
    int special;
} mixprec_layout_;
#define MIXPREC_LAYOUT_(name, dtype, bits, mantissa, bias, max_code, overflow_code, nan_code, special)                 \
    static const mixprec_layout_ mixprec_layout_##name##_ = {                                                          \
        mantissa, bias, (uint32_t)1 << ((bits)-1), max_code, overflow_code, nan_code, special};
MIXPREC_FORMATS_(MIXPREC_LAYOUT_)
#undef MIXPREC_LAYOUT_

/* mixprec_random_bits of the indices 2 * counter and 2 * counter + 1. */
MIXPREC_INLINE void mixprec_random_words_(uint64_t seed, uint64_t counter, uint32_t *word0, uint32_t *word1) {
    static const uint8_t rotation[8] = {13, 15, 26, 6, 17, 29, 16, 24};
    uint32_t key[3], x0, x1;
    int i;
    key[0] = (uint32_t)seed;
    key[1] = (uint32_t)(seed >> 32);
    key[2] = 0x1BD11BDAu ^ key[0] ^ key[1];
    x0 = (uint32_t)counter + key[0];
    x1 = (uint32_t)(counter >> 32) + key[1];
    for (i = 0; i < 20; i++) {
        x0 += x1;
        x1 = (x1 << rotation[i & 7] | x1 >> (32 - rotation[i & 7])) ^ x0;
        if ((i & 3) == 3) {
            uint32_t step = (uint32_t)i / 4 + 1;
            x0 += key[step % 3];
            x1 += key[(step + 1) % 3] + step;
        }
    }
    *word0 = x0;
    *word1 = x1;
}
/* Random bits for stochastic rounding: element `index` of stream `seed`. Threefry-2x32 with 20 rounds (Salmon, Moraes,
   Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011; the generator of JAX), key = seed (low word, high
   word), counter = index / 2 (low, high), output word index % 2. A pure function: any machine and any split of an array
   agree. */
MIXPREC_INLINE uint32_t mixprec_random_bits(uint64_t seed, uint64_t index) {
    uint32_t word[2];
    mixprec_random_words_(seed, index >> 1, &word[0], &word[1]);
    return word[index & 1];
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
        shift += (int)(1 - target);
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
        shift += (int)(1 - target);
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
                                                      52 + 1023 - (int)(exponent ? exponent : 1), round),
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
   that of its element type. On any status but MIXPREC_OK the outputs are untouched (but see mixprec_checkpoint_load).
   An array that may be NULL needs a valid dtype all the same, unless a comment says what 0 means. */

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
   (the memory must hold the larger of the two); any other overlap is MIXPREC_ERR_OVERLAP. n may be 0. From 64 MB on,
   src and dst together, AMD's CPUs and Intel's with AVX512_FP16 (Xeons since Sapphire Rapids) write dst around the
   caches, in mixprec_scaler_unscale and mixprec_dequantize, too; only these of Intel's so write the model in a step and
   fp8 in mixprec_quantize, that with AVX-512 where it begins at a multiple of 4 bytes.
   Also: MIXPREC_ERR_NULL, MIXPREC_ERR_DTYPE, MIXPREC_ERR_SIZE. */
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
   how many elements are too large, vanish or become subnormal, and the error. One pass, nothing but *stats is written.
   The sums have the same bits on every path: element i is in lane i % 32 of group i / 256. A lane's squares of a
   group are added in order in fp32, each with one rounding, fma(x, x, sum) (x - q is rounded to fp32, too); then
   lanes i and i + 16 are, which are added to 16 sums in f64, group by group; then sums i and i + 8 are added, i and
   i + 4, and so on. From f64, and in a group whose largest finite magnitude is neither zero nor in [2^-48, 2^60),
   elements are squared in f64 instead and added one by one to sum i % 16. `to` is any dtype but f64. Options as for
   mixprec_convert_ex, and NULL; the overflow policy is ignored. Errors as for mixprec_convert_ex. */
MIXPREC_API mixprec_status mixprec_stats(mixprec_statistics *stats, const void *src, mixprec_dtype src_type, size_t n,
                                         mixprec_dtype to, const mixprec_convert_options *options);
#endif

/* ---- reductions ---- */

#ifndef MIXPREC_NO_REDUCE
/* Sums over x[0 .. n), of f32, f16, bf16, e4m3 or e5m2, in f64. The order is part of the contract: x is split into
   blocks of MIXPREC_REDUCE_BLOCK = 65536; element i of a block goes to lane i % 32; each lane starts at +0 and adds its
   terms for rising i; the 32 lanes are added as a tree, lane l + lane l + 16, then + 8, + 4, + 2, + 1; the blocks' sums
   are added in rising order to +0. Terms of sum, dot and norms are exact in f64, so the bits are the same on every
   instruction set and compiler. The error is at most (2052 + n / 65536) 2^-53 times the sum of the terms' magnitudes.
   NaN and Inf propagate as in any sum; a NaN's payload is not specified. n may be 0: the sum is +0. x may overlap y.
   *result is written on success only. MIXPREC_ERR_NULL, MIXPREC_ERR_DTYPE, MIXPREC_ERR_SIZE.

   Thus sqrt(sum of squares) of scaled gradients is finite exactly when all of them are: one pass finds the norm to clip
   by, and overflow. */
MIXPREC_API mixprec_status mixprec_sum(double *result, const void *x, mixprec_dtype x_type, size_t n);
MIXPREC_API mixprec_status mixprec_dot(double *result, const void *x, mixprec_dtype x_type, const void *y,
                                       mixprec_dtype y_type, size_t n);
MIXPREC_API mixprec_status mixprec_sum_squares(double *result, const void *x, mixprec_dtype x_type, size_t n);
MIXPREC_API mixprec_status mixprec_norm1(double *result, const void *x, mixprec_dtype x_type, size_t n); /* sum |x| */
MIXPREC_API mixprec_status mixprec_norm2(double *result, const void *x, mixprec_dtype x_type, size_t n); /* Euclidean */

/* The largest |x[i]|, exact; 0 when n is 0. NaN if any element is NaN, else Inf if any is. Errors as above. */
MIXPREC_API mixprec_status mixprec_amax(float *result, const void *x, mixprec_dtype x_type, size_t n);

/* *result = 1 when no element is Inf or NaN, else 0. Errors as above. */
MIXPREC_API mixprec_status mixprec_all_finite(int *result, const void *x, mixprec_dtype x_type, size_t n);

/* The mean, sum / n, and the variance, the sum of (x[i] - mean)^2, over n: two passes, each in the order above, the
   differences and their squares rounded to f64. Multiply by n / (n - 1) for the sample variance. Either pointer may be
   NULL. NaN when n is 0. Errors as above. */
MIXPREC_API mixprec_status mixprec_mean_variance(double *mean, double *variance, const void *x, mixprec_dtype x_type,
                                                 size_t n);

/* For several threads: the sum of each block, partials[0 .. (n + MIXPREC_REDUCE_BLOCK - 1) / MIXPREC_REDUCE_BLOCK).
   Split x at multiples of MIXPREC_REDUCE_BLOCK; mixprec_combine adds all partials, in their order, and gives the bits
   of one call. y is read for MIXPREC_DOT only, center for MIXPREC_SUM_SQUARES only: 0, or the mean. Errors as above,
   and MIXPREC_ERR_REDUCTION, MIXPREC_ERR_ISA, MIXPREC_ERR_OVERLAP (partials with x or y). */
MIXPREC_API mixprec_status mixprec_reduce(double *partials, mixprec_reduction reduction, const void *x,
                                          mixprec_dtype x_type, const void *y, mixprec_dtype y_type, double center,
                                          size_t n, mixprec_isa isa);
MIXPREC_API mixprec_status mixprec_combine(double *result, const double *partials, size_t count);

/* mixprec_amax on one instruction set, for tests and benchmarks. */
MIXPREC_API mixprec_status mixprec_amax_ex(float *result, const void *x, mixprec_dtype x_type, size_t n,
                                           mixprec_isa isa);
#endif

/* ---- matrices ---- */

#ifndef MIXPREC_NO_GEMM
/* C = alpha op(A) op(B) + beta C, row-major; op(A) is m x k, op(B) is k x n, C is m x n; op(X) is X or its transpose.
   lda is the distance in elements from one row of A as stored to the next: at least k (m when ta is MIXPREC_TRANS); ldb
   at least n (k); ldc at least n; and at least 1. Every combination of f32, f64, f16, bf16, e4m3 and e5m2 is allowed.

   Numbers. f64 times f64 accumulates in f64; everything else in fp32, to which an f64 operand paired with a narrower
   one is first rounded. The order is part of the contract: k is split into chunks of MIXPREC_GEMM_KBLOCK = 512; within
   a chunk s = 0, then s = fma(a, b, s) for rising k; the chunks' sums are added in rising order, t = s0, t = t + s1,
   ... Then the epilogue, one rounding each: x = alpha * t, y = beta * c, x + y (only where beta is not 0), in the
   accumulator's type, or in f64 when C is f64; then the narrowing to C's type, to nearest even, IEEE overflow. Products
   of f16, e4m3 and e5m2 values are exact in fp32 (of bf16 too unless they under- or overflow), so a CPU without FMA
   gives the same bits. For f32 and f64 the bits agree between paths that have FMA; portable C multiplies, then adds,
   unless the compiler contracts it. A NaN is a NaN, but its payload and sign are not specified. Compiling this header's
   implementation with -ffast-math voids the order in portable C. The caller's rounding mode, FTZ and DAZ have no effect
   on x86, ARM and RISC-V; subnormals are kept.

   As in the BLAS: beta == 0 never reads C, so NaN in it is overwritten; alpha == 0 or k == 0 never reads A or B, which
   may then be NULL, and gives beta c, or +0 when beta is 0; m, n, k may be 0. C must not overlap A or B:
   MIXPREC_ERR_OVERLAP (blocks of one larger matrix may lie side by side when they have its leading dimension and
   element size; other interleaved layouts are refused, too). Elements of C's rows beyond n are not touched. Workspace
   comes from the stack when small, else from MIXPREC_MALLOC (MIXPREC_ERR_ALLOC when that fails). Also:
   MIXPREC_ERR_NULL, MIXPREC_ERR_DTYPE, MIXPREC_ERR_TRANSPOSE, MIXPREC_ERR_LEADING_DIMENSION, MIXPREC_ERR_SIZE.

   Column-major matrices are the transposed ones in rows: swap A with B and m with n, and call mixprec_gemm(tb, ta, n,
   m, k, alpha, b, b_type, ldb, a, a_type, lda, beta, c, c_type, ldc), with the BLAS's leading dimensions.

   Several threads: let each compute a range of rows of C with a call of its own; the bits are the same (with stochastic
   rounding, when .offset is the first row times n). */
MIXPREC_API mixprec_status mixprec_gemm(mixprec_transpose ta, mixprec_transpose tb, size_t m, size_t n, size_t k,
                                        float alpha, const void *a, mixprec_dtype a_type, size_t lda, const void *b,
                                        mixprec_dtype b_type, size_t ldb, float beta, void *c, mixprec_dtype c_type,
                                        size_t ldc);

/* The same with everything else: see mixprec_gemm_desc. Never allocates when .workspace is given. Each sum t becomes an
   element of C so, each operation rounded on its own: the first line in the type of the accumulator, the second in that
   type, too, or in f64 when C is f64:

     t = (t * scale of A) * scale of B      where there are scales that do not vary along k
     x = alpha * t;  x = x + beta * c (where beta is not 0);  x = x + bias[j];  x = activation(x);  narrowing

   When a scale varies along k, k is cut where a scale changes; each piece is summed as described above from its own
   beginning, and t is the sum of (piece * scale of A) * scale of B, added in rising order. Activations but ReLU are
   computed in fp32, as by mixprec_activate; they are refused where C or the accumulator is f64
   (MIXPREC_ERR_ACTIVATION). Where alpha or k is 0 no scale is read, and x starts as beta * c, or as +0 where beta is 0.

   Half the work: with a triangle, and for a full C when B is A (same pointer, dtype, leading dimension and stride, the
   other transpose), beta is 0 and there are neither scales, bias nor stochastic rounding; not of matrices so small that
   all of it takes less time. The bits do not change.

   Threads: with .parallel_for the call is split into at most .threads tasks. The bits do not change. -fopenmp provides
   mixprec_parallel_openmp as a ready hook. Or call for ranges of rows from threads of your own, but not for an empty
   one at row 0: 0, 0 means all.

   Also: MIXPREC_ERR_ROUND, MIXPREC_ERR_OVERFLOW, MIXPREC_ERR_ISA, MIXPREC_ERR_WORKSPACE, MIXPREC_ERR_ACTIVATION,
   MIXPREC_ERR_TRIANGLE, MIXPREC_ERR_RANGE, MIXPREC_ERR_SCALE (a value), MIXPREC_ERR_LEADING_DIMENSION (also of the
   scales), MIXPREC_ERR_OVERLAP (also between the matrices of C, C with bias or scales, and the workspace with
   any of them), MIXPREC_ERR_PACKED. */
MIXPREC_API mixprec_status mixprec_gemm_ex(const mixprec_gemm_desc *desc);

/* Bytes of workspace for a descriptor: *best for full speed, *least that mixprec_gemm_ex takes in any case (at times a
   little less may do); either pointer may be NULL. Data, .workspace and .workspace_size are ignored, and .a or .b may
   be left NULL; only the numbers at .alpha and .beta are read. Ask for each descriptor that differs in anything else:
   even a smaller product may need more. Returns what mixprec_gemm_ex would say of the sizes, types and modes; on an
   error nothing is written. */
MIXPREC_API mixprec_status mixprec_gemm_workspace(const mixprec_gemm_desc *desc, size_t *best, size_t *least);

/* With .native = 1 those of the CPU's dot-product units may be used that do not give the canonical bits: they sum the
   same products in another order with other roundings, and may take subnormal operands and results for 0. The result
   does not depend on threads, workspace or packing, but on the unit. 1 when this CPU and this build have a unit for
   these two types that waits for that:
   - bf16 and fp8, with each other, on x86-64 Linux with AMX-BF16: up to 7 times as fast as without. Within a chunk of
     512, each 32 of k are summed from 0 by fused multiply-adds, the even and the odd ones by themselves; then these two
     sums are added, and that to the chunk's sum. Subnormal elements, and sums that are subnormal within a chunk, are 0;
     where there are none, the bound on errors is that of canonical sums. The first such call, or this function, asks
     Linux for AMX's registers, for the process (arch_prctl, ARCH_REQ_XCOMP_PERM): from then on sigaltstack refuses
     stacks too small to save them. If Linux refuses, because there is such a stack, there is no unit, nor is Linux
     asked again. Tested on a Xeon; not in builds for MemorySanitizer.
   - On AArch64 Linux bf16 with bf16 with BF16 (BFMMLA), and f16 with f16 with FHM (FMLAL, which gives the canonical
     bits, too), tested in an emulator.
   Where there is none, as with MIXPREC_NO_STDLIB, .native has no effect and is no error; nor has it any with up to 16
   rows of A or columns of B, whose bits are the canonical ones.
   AVX512_BF16 needs no such leave: its VDPBF16PS, which multiplies bf16 and fp8 in pairs, twice as many at a time,
   gives the canonical bits, and is used by itself where it is faster. That is on AMD's CPUs (tested on Zen 4; a CPU on
   which it rounded otherwise would be found out and do without; fp8 needs AVX512_VBMI, too). On Emerald Rapids it gives
   the same bits at half the speed of FMA. AVX512_FP16 is not used: there it takes .23 ns to make f16 of an f64, AVX-512
   .21, and .24 and .14 back. */
MIXPREC_API int mixprec_native_available(mixprec_dtype a_type, mixprec_dtype b_type);

/* Weights that are used again and again can be packed once: then .b = packed and .packed_size = its bytes; .ldb is
   ignored, .trans_b only tells how .scale_b lies, there is no .stride_b or .b_array, and the result has the same bits.
   16-bit elements stay 16 bits wide, fp8 becomes bf16, f32 and f64 stay. A packed matrix serves any m, alpha, epilogue
   and dtype of A (f64: f64), on the instruction set it was packed for (.isa; for a file that goes to other machines do
   not leave that to MIXPREC_ISA_AUTO), in this process or after a trip through a file; it holds no pointers. Its head
   is checked (MIXPREC_ERR_PACKED), the elements are not. With MIXPREC_NO_STDLIB it needs a workspace
   (MIXPREC_ERR_WORKSPACE).

   mixprec_gemm_pack_b_size: bytes of the packed form of B, from n, k, b_type and isa. mixprec_gemm_pack_b: writes it,
   from b, trans_b and ldb. `packed` must be aligned to 8 bytes, here and in use (else MIXPREC_ERR_PACKED), and must not
   overlap B. Of the descriptor nothing else is read. MIXPREC_ERR_NULL, MIXPREC_ERR_DTYPE, MIXPREC_ERR_ISA,
   MIXPREC_ERR_SIZE, MIXPREC_ERR_TRANSPOSE, MIXPREC_ERR_LEADING_DIMENSION, MIXPREC_ERR_WORKSPACE (size too small),
   MIXPREC_ERR_OVERLAP. */
MIXPREC_API mixprec_status mixprec_gemm_pack_b_size(const mixprec_gemm_desc *desc, size_t *size);
MIXPREC_API mixprec_status mixprec_gemm_pack_b(const mixprec_gemm_desc *desc, void *packed, size_t size);

#ifdef _OPENMP
/* A mixprec_parallel_for: the context is ignored. Compile the implementation, too, with -fopenmp. */
MIXPREC_API void mixprec_parallel_openmp(void *context, size_t tasks, void (*task)(void *data, size_t index),
                                         void *data);
#endif
#endif

/* ---- scaled narrow tensors ---- */

#ifndef MIXPREC_NO_QUANT
/* The factor that takes magnitudes up to amax to the range of a dtype: fp32(max / amax), where max is the largest
   finite number of the dtype (any but f32, f64, e8m0); the largest fp32 number when that overflows; 1 when amax is
   0, Inf, NaN or negative. With power_of_two the fraction is then cut off. The arithmetic of TransformerEngine's
   current scaling. 1 for other dtypes. */
MIXPREC_API float mixprec_scale_of_amax(float amax, mixprec_dtype dtype, int power_of_two);

/* Delayed scaling as in TransformerEngine's recipe of that name: the defaults given at mixprec_delayed_scaling, and
   zeros in history[0 .. length). dtype as above, else MIXPREC_ERR_DTYPE; length 0: MIXPREC_ERR_RANGE;
   MIXPREC_ERR_NULL. */
MIXPREC_API mixprec_status mixprec_delayed_scaling_init(mixprec_delayed_scaling *scaling, mixprec_dtype dtype,
                                                        float *history, size_t length);

/* Once a step, after the tensor was quantised with scaling->scale and its amax is known (for a tensor held in parts:
   the largest of their amaxes): enters amax in the history, and computes the scale for the next step: max / a *
   2^-margin, where a is the maximum of the history, this amax included (NaN in it is passed over unless all is NaN), or
   this amax. The largest fp32 number when that overflows, 2^-126 when it underflows; the scale stays when a is 0, Inf
   or NaN. The history moves on unless amax is 0. An Inf thus keeps the scale until it has left the history: do not call
   this after a step that was skipped. MIXPREC_ERR_NULL; MIXPREC_ERR_DTYPE, MIXPREC_ERR_RANGE when a field makes no
   sense. */
MIXPREC_API mixprec_status mixprec_delayed_scaling_update(mixprec_delayed_scaling *scaling, float amax);

/* Narrows a matrix (f32, f16, bf16, e4m3 or e5m2) to a dtype of mixprec_scale_of_amax with one scale for each block:
   per tensor ({0, 0}), per row ({1, 0}), per column ({0, 1}), 1 x 128, 128 x 128, or any other. For each block amax is
   its largest magnitude, s = mixprec_scale_of_amax(amax, dst_type, power_of_two), or *scale when that is not NULL;
   dst = narrow(fp32(src * s)), saturating; and scales = fp32(1 / s), which is what mixprec_scales and mixprec_gemm_ex
   take. NaN stays NaN where dst_type has it. Inf saturates. With either in a block, s is 1; *amax then is NaN or Inf.
   What GEMM does not read (int8, FNUZ, fp6, fp4 ...) it takes, with the same scales, after mixprec_convert to f16 or
   bf16, which is exact. The MX formats have blocks of 1 x 32 and powers of two, which mixprec_convert makes E8M0,
   exactly; these never saturate, as those of the OCP specification's conversion (MX v1.0, 6.3) may.

   Several threads: give each a range of rows that begins at a multiple of block_rows, with .offset moved by rows times
   columns; for one scale over more than that, find amax first, and pass .scale.
   *desc is not kept. dst, scales and amax must not overlap src nor each other: MIXPREC_ERR_OVERLAP. Also:
   MIXPREC_ERR_NULL, MIXPREC_ERR_DTYPE, MIXPREC_ERR_LEADING_DIMENSION, MIXPREC_ERR_SIZE, MIXPREC_ERR_ROUND,
   MIXPREC_ERR_ISA, MIXPREC_ERR_SCALE (*scale not finite, normal and positive), MIXPREC_ERR_RANGE (.scale with more
   than one block). */
MIXPREC_API mixprec_status mixprec_quantize(const mixprec_quantize_desc *desc);

/* The way back: dst = fp32(src * scale of its block), narrowed to dst_type (f32, f16, bf16, e4m3, e5m2) to nearest
   even. src is of a dtype that mixprec_quantize writes, as it writes it; scales as in mixprec_scales, NULL values
   meaning 1. Leading dimensions may be 0. Errors: MIXPREC_ERR_NULL, _DTYPE, _LEADING_DIMENSION, _SIZE, _OVERLAP;
   MIXPREC_ERR_SCALE when a scale is not finite and positive. */
MIXPREC_API mixprec_status mixprec_dequantize(void *dst, mixprec_dtype dst_type, size_t dst_ld, const void *src,
                                              mixprec_dtype src_type, size_t src_ld, size_t rows, size_t columns,
                                              const mixprec_scales *scales);
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

/* loss * scale. Multiply the loss with it, or the gradient that starts the backward pass. NULL: the loss. */
MIXPREC_API float mixprec_scaler_scale(const mixprec_scaler *scaler, float loss);

/* dst[i] = grad[i] * (float)(1.0 / scale) for i < n, in fp32, to which f64 is first rounded (so it may become Inf,
   which counts). grad is f32, f64, f16, bf16, e4m3 or e5m2; dst may be grad itself when that is f32, and must not
   overlap it otherwise. Returns 1 when an element of grad is Inf or NaN, or became Inf by unscaling, else 0; the scaler
   keeps that until mixprec_scaler_update. All of dst is written in either case. Call it once per gradient tensor; with
   several optimisers, OR the results of each one's tensors to learn which of them to skip. Bad arguments: the negative
   of a status (MIXPREC_ERR_NULL, _DTYPE, _SIZE, _OVERLAP, _SCALE), nothing written or kept. The scaler is written to:
   threads that share one need a copy each, whose found_inf fields are then OR-ed.
   An optimiser's step that gets inverse_scale unscales, too: it takes gradients as they are, or these with 1. */
MIXPREC_API int mixprec_scaler_unscale(mixprec_scaler *scaler, float *dst, const void *grad, mixprec_dtype dtype,
                                       size_t n);

/* The same on one instruction set, for tests and benchmarks. Also -MIXPREC_ERR_ISA. */
MIXPREC_API int mixprec_scaler_unscale_ex(mixprec_scaler *scaler, float *dst, const void *grad, mixprec_dtype dtype,
                                          size_t n, mixprec_isa isa);

/* Ends a step: once, after all gradients of all optimisers are unscaled. Returns 1: take the step, 0: skip it
   (found_inf was set). Then adapts the scale. After an overflow the growth tracker restarts and one unit of hysteresis
   is used up; when none is left, scale = max((float)(scale * backoff_factor), min_scale). Otherwise the tracker counts
   up; on reaching growth_interval it restarts, the hysteresis is refilled, and scale = (float)(scale * growth_factor),
   unless that were not finite or above max_scale, when the scale stays. Clears found_inf. NULL: 0, and nothing else. */
MIXPREC_API int mixprec_scaler_update(mixprec_scaler *scaler);
#endif

/* ---- optimisers ---- */

#ifndef MIXPREC_NO_OPTIM
/* A step of training with fp32 master weights; the inverse is taken before the update, which changes the scale:

       mixprec_sum_squares(&squares, grad16, MIXPREC_F16, n);         for each tensor; add them up
       inverse = mixprec_inverse_scale(scaler.scale);
       norm = mixprec_gradient_norm(squares, inverse);
       scaler.found_inf |= mixprec_found_inf(squares);
       if (mixprec_scaler_update(&scaler)) {
           adam.step++;
           mixprec_adam_step(&adam, &parameter, inverse, mixprec_clip_coefficient(norm, 1.0), 0);    for each tensor
       }

   The defaults of PyTorch: see mixprec_sgd and mixprec_adam. */
MIXPREC_API void mixprec_sgd_init(mixprec_sgd *sgd);
MIXPREC_API void mixprec_adam_init(mixprec_adam *adam);
MIXPREC_API void mixprec_adamw_init(mixprec_adam *adam);

/* (float)(1.0 / scale), as mixprec_scaler_unscale has it. */
MIXPREC_API float mixprec_inverse_scale(float scale);
/* Is a sum of squares, hence an element of what was summed, Inf or NaN? 1 or 0. */
MIXPREC_API int mixprec_found_inf(double sum_squares);
/* sqrt(sum_squares) * inverse_scale: the norm of gradients after unscaling. */
MIXPREC_API double mixprec_gradient_norm(double sum_squares, float inverse_scale);
/* (float)min(1, max_norm / (norm + 1e-6)): torch.nn.utils.clip_grad_norm_. 1 when max_norm is 0 or negative: no
   clipping. */
MIXPREC_API float mixprec_clip_coefficient(double norm, double max_norm);

/* One step for one tensor, in one pass. In fp32, one rounding for each operation, g the gradient, w the weight, m and v
   the moments, constants computed in f64 and then rounded to fp32:
       g = (g * inverse_scale) * clip
     Adam:
       g = g + weight_decay * w     unless it is 0; or, decoupled, w = w * (1 - learning_rate * weight_decay)
       m = beta1 * m + (1 - beta1) * g,   v = beta2 * v + ((1 - beta2) * g) * g
       w = w - ((learning_rate / (1 - beta1^step)) * m) / (sqrt(v) / sqrt(1 - beta2^step) + epsilon)
     SGD:
       g = g + weight_decay * w     unless it is 0
       m = g in step 1, then m = momentum * m + (1 - dampening) * g;   g = m, or, Nesterov, g = g + momentum * m
       w = w - learning_rate * g
   1 - learning_rate * weight_decay is rounded to fp32, so nothing decays where that product is below 2^-25.
   Then the weight is stored as the parameter says: narrowed by .round and .overflow. With compensation, w begins as
   model + compensation, model = narrow(w), compensation = narrow(w - model).

   The bits are the same on every machine and for any split of the tensor (.offset moved along), but for the payload and
   sign of a NaN; -ffast-math voids that. grad is f32, f64, f16, bf16, e4m3 or e5m2, model f32, f16, bf16, e4m3 or e5m2.
   With found_inf not 0 the call checks its arguments but inverse_scale and clip, and changes nothing: a skipped step. A
   NaN in a gradient gets into the weights otherwise.
   MIXPREC_ERR_NULL (an array that is needed, also when n is 0 the structures), MIXPREC_ERR_DTYPE, MIXPREC_ERR_SIZE,
   MIXPREC_ERR_OVERLAP, MIXPREC_ERR_ROUND, MIXPREC_ERR_OVERFLOW, MIXPREC_ERR_ISA; MIXPREC_ERR_SCALE: inverse_scale not
   finite and positive, or clip not finite and at least 0; MIXPREC_ERR_OPTIMIZER: step 0, a hyperparameter that is not
   finite, negative, or, beta1, beta2, not below 1, Nesterov without momentum or with dampening, compensation with
   master or with another mode of rounding than to nearest even. */
MIXPREC_API mixprec_status mixprec_sgd_step(const mixprec_sgd *sgd, const mixprec_parameter *parameter,
                                            float inverse_scale, float clip, int found_inf);
MIXPREC_API mixprec_status mixprec_adam_step(const mixprec_adam *adam, const mixprec_parameter *parameter,
                                             float inverse_scale, float clip, int found_inf);

/* sum[i] = sum[i] + x[i] * factor for i < n, in fp32, the product rounded first: gradients over micro-batches. x is
   f32, f64, f16, bf16, e4m3 or e5m2; it must not overlap sum. MIXPREC_ERR_NULL, MIXPREC_ERR_DTYPE, MIXPREC_ERR_SIZE,
   MIXPREC_ERR_OVERLAP. */
MIXPREC_API mixprec_status mixprec_accumulate(float *sum, const void *x, mixprec_dtype x_type, size_t n, float factor);

/* The learning rate of a step, counted from 0: rises as peak * step / warmup_steps, then falls as least + (peak -
   least) (1 + cos(pi (step - warmup_steps) / (total_steps - warmup_steps))) / 2 (Loshchilov, Hutter, "SGDR",
   arXiv:1608.03983); after warm-up, least from total_steps on. The same bits everywhere. */
MIXPREC_API double mixprec_warmup_cosine(double peak, double least, uint64_t warmup_steps, uint64_t total_steps,
                                         uint64_t step);
#endif

/* ---- policies ---- */

#ifndef MIXPREC_NO_POLICY
/* Reads a policy: the grammar of jmp, "params=float32,compute=bfloat16,output=float32", or short "p=f32,c=bf16,o=f32",
   in any order, and "gradient" or "g"; what is missing follows from the one before (param f32, compute = param, output
   = compute, gradient = compute); or one dtype for all four, "bfloat16". Then per_operation is 1, f32_norms 0, and
   loss_scaling 1 where compute or gradient is f16. dtypes: float32 f32 full, float16 f16 half, bfloat16 bf16, float64
   f64, float8_e4m3fn e4m3, float8_e5m2 e5m2. Or a name:
     "O0" .. "O3"                       NVIDIA apex: fp32; f16 per operation, by PyTorch's lists; f16 with fp32 weights
                                        and batch norm; f16
     "mixed_float16", "mixed_bfloat16"  Keras: everything in 16 bits but the weights and normalisation
     "fp8_hybrid"                       e4m3 forward, e5m2 gradients, bf16 between, fp32 weights
   MIXPREC_ERR_POLICY for anything else, MIXPREC_ERR_NULL. */
MIXPREC_API mixprec_status mixprec_policy_parse(mixprec_policy *policy, const char *text);

/* Writes "p=full,c=bf16,o=bf16" (",g=e5m2" where the gradient differs from compute) and a 0 to text[0 .. size):
   64 bytes hold any. The dtypes alone: what presets set beside them is not in it. MIXPREC_ERR_RANGE when too small,
   MIXPREC_ERR_DTYPE, MIXPREC_ERR_NULL. */
MIXPREC_API mixprec_status mixprec_policy_print(char *text, size_t size, const mixprec_policy *policy);

/* What torch.autocast does with an operation on a GPU, by its name in PyTorch's documentation or in ATen: "linear",
   "softmax", "LSTMCell", "lstm_cell". The suffix of an overload, as in "pow.Tensor_Scalar", is ignored. Operations that
   autocast does not touch are unlisted: in-place ones ("addmm_"), too, and binary_cross_entropy, which it refuses. Its
   lists for CPUs differ in grid_sampler, which is in fp32 there, and in operations that only one of the two has. */
MIXPREC_API mixprec_autocast mixprec_autocast_of(const char *operation);

/* The dtype in which an operation runs, whose widest input has the dtype `widest` (where f16 meets bf16: f32). By the
   lists, f64 stays f64. A layer may have a policy of its own. MIXPREC_NONE for NULL and for dtypes that a policy cannot
   have. */
MIXPREC_API mixprec_dtype mixprec_policy_operation(const mixprec_policy *policy, const char *operation,
                                                   mixprec_dtype widest);
#endif

/* ---- checkpoints ---- */

#ifndef MIXPREC_NO_CHECKPOINT
/* Bytes that saving these items takes; 0 when an item is not sound. */
MIXPREC_API uint64_t mixprec_checkpoint_size(const mixprec_checkpoint_item *items, size_t count);

/* Writes the items in their order: one stream, little-endian whatever the machine, versioned, with a 64-bit checksum. A
   run that is resumed from it gives the bits of one that never stopped. MIXPREC_ERR_STREAM when `write` took fewer
   bytes than it was given: what it has then is no checkpoint. MIXPREC_ERR_NULL (items, data, name, write),
   MIXPREC_ERR_DTYPE, MIXPREC_ERR_RANGE (a kind, a name that is too long), MIXPREC_ERR_SIZE: nothing was written. */
MIXPREC_API mixprec_status mixprec_checkpoint_save(const mixprec_checkpoint_item *items, size_t count,
                                                   mixprec_write write, void *context);

/* Reads what was saved into the items, which must have the same names, kinds, dtypes and lengths in the same order, and
   delayed scaling the same history lengths. The whole stream is read and checked before any data is written, and then
   read again: nothing is half loaded, unless `read` fails only then, or gives other bytes. Bytes that follow the
   checkpoint are ignored. MIXPREC_ERR_FORMAT: not a checkpoint; MIXPREC_ERR_VERSION: of a later version;
   MIXPREC_ERR_TRUNCATED; MIXPREC_ERR_CHECKSUM; MIXPREC_ERR_MISMATCH: other items than these. Also those of saving. */
MIXPREC_API mixprec_status mixprec_checkpoint_load(const mixprec_checkpoint_item *items, size_t count,
                                                   mixprec_read read, void *context);

/* For memory: context is a mixprec_buffer. */
MIXPREC_API size_t mixprec_buffer_write(void *buffer, const void *bytes, size_t n);
MIXPREC_API size_t mixprec_buffer_read(void *buffer, uint64_t offset, void *bytes, size_t n);
#endif

/* ---- layers ---- */

#ifndef MIXPREC_NO_LAYERS
/* Forward and backward passes for training. Every tensor has its dtype: f32, f16, bf16, e4m3 or e5m2
   (MIXPREC_ERR_DTYPE). Arithmetic is in f32; results are narrowed to nearest even with the IEEE overflow policy, so
   that an overflow of a gradient reaches the scaler as Inf or NaN. In sums, element i of a row, or of what one image
   has of a channel, goes to lane i % 8. The lanes of softmax and of losses are in f64; those of normalisation, and of
   the gradient of softmax, add runs of eight terms in f32, from +0 on, and the sums of runs in f64. Lanes l and l + 4
   are added, then l + 2, l + 1. Images of one pixel share one lane. A gradient is Inf or NaN, too, where a run is more
   than f32 can hold. The bits are the same on every instruction set and compiler (a NaN is a NaN: its sign and payload
   are not promised), but not with -ffast-math. Nothing is allocated; blocks wait on the stack, about 22 KB at most
   (softmax, the backward passes of norms; 8 KB with MIXPREC_NO_STDLIB). Matrices are rows x columns, without gaps.

   Rows (samples, elements) do not depend on each other: a caller's threads may each take a range of them, and the bits
   stay. Gradients of parameters are arrays of f32 to which a call adds, element by element in the order of the rows:
   set them to zero when a step begins. One call for all rows, and calls for parts of them one after the other, give the
   same bits.

   A first argument may be the same memory as an input of the same shape where the element size is the same, unless a
   comment excludes it; any other overlap of an output is MIXPREC_ERR_OVERLAP. Also, everywhere: MIXPREC_ERR_NULL,
   MIXPREC_ERR_SIZE. A dimension of 0 is no error, and nothing is done; what has no element then may be NULL. */

/* y = activation(x). In f32 the error is below 3 ulp, of MIXPREC_ACTIVATION_GELU below 6, where the result is tiny,
   too; the tests try every float from 2^-14 to 256 in magnitude, and some of the others. ReLU is exact. */
MIXPREC_API mixprec_status mixprec_activate(void *y, mixprec_dtype y_type, const void *x, mixprec_dtype x_type,
                                            size_t n, mixprec_activation activation);

/* dx = dy * activation'(x); x is what the activation was applied to. The slope of ReLU at 0 is 0. The error of the
   slope in f32 is below 6 ulp; for -2 < x < 0, where slopes cross 0, below 2.5e-7. dy times that is rounded once more.
   MIXPREC_ERR_ACTIVATION. */
MIXPREC_API mixprec_status mixprec_activate_backward(void *dx, mixprec_dtype dx_type, const void *dy,
                                                     mixprec_dtype dy_type, const void *x, mixprec_dtype x_type,
                                                     size_t n, mixprec_activation activation);

/* y[i][j] = exp(x[i][j]) / sum_k exp(x[i][k]), computed from x - max, within 4 ulp of f32; log_softmax is the
   logarithm of that, with an absolute error below 2^-23 (that of the exps) and the last rounding. A row that contains
   NaN or +Inf, or nothing but -Inf, becomes NaN. */
MIXPREC_API mixprec_status mixprec_softmax(void *y, mixprec_dtype y_type, const void *x, mixprec_dtype x_type,
                                           size_t rows, size_t columns);
MIXPREC_API mixprec_status mixprec_log_softmax(void *y, mixprec_dtype y_type, const void *x, mixprec_dtype x_type,
                                               size_t rows, size_t columns);

/* dx = y (dy - sum_k dy[k] y[k]) for each row; y is what mixprec_softmax gave. */
MIXPREC_API mixprec_status mixprec_softmax_backward(void *dx, mixprec_dtype dx_type, const void *dy,
                                                    mixprec_dtype dy_type, const void *y, mixprec_dtype y_type,
                                                    size_t rows, size_t columns);

/* The same for rows of which only the first valid[i] columns count: in causal attention query i sees the keys 0 .. i,
   so valid[i] is i + 1; a padded sequence ends early. The other columns are not read; y and dx become 0 there, and
   everywhere in a row whose count is 0. valid has `rows` elements. MIXPREC_ERR_RANGE when one is negative or above
   columns. */
MIXPREC_API mixprec_status mixprec_softmax_masked(void *y, mixprec_dtype y_type, const void *x, mixprec_dtype x_type,
                                                  const int32_t *valid, size_t rows, size_t columns);
MIXPREC_API mixprec_status mixprec_softmax_masked_backward(void *dx, mixprec_dtype dx_type, const void *dy,
                                                           mixprec_dtype dy_type, const void *y, mixprec_dtype y_type,
                                                           const int32_t *valid, size_t rows, size_t columns);

/* Softmax and cross-entropy in one: losses[i] = -log softmax(logits[i])[targets[i]], and dlogits[i][j] = scale *
   (softmax(logits[i])[j] - (j == targets[i])), the gradient of scale * sum_i losses[i]. For the mean over n rows pass
   1/n, times the scaler's scale for loss scaling. Losses are as accurate as mixprec_log_softmax. Rows with a negative
   target are left out: their loss and gradients are 0. dlogits may be NULL (evaluation), and so may losses.
   MIXPREC_ERR_INDEX when a target is not below columns. */
MIXPREC_API mixprec_status mixprec_cross_entropy(void *dlogits, mixprec_dtype dlogits_type, float *losses,
                                                 const void *logits, mixprec_dtype logits_type, const int32_t *targets,
                                                 size_t rows, size_t columns, double scale);

/* Layer normalisation (Ba, Kiros, Hinton, arXiv:1607.06450) of each row: y = (x - mean) rstd gamma + beta with rstd =
   1 / sqrt(variance + epsilon). m is the mean of the first 16 elements, or of all that there are; with d and q, the
   means of x - m and (x - m)^2, the mean is fp32(m + d), and the variance q - d^2, or 0 where that is negative. Where
   the variance is less than d^2, since the first elements are unlike the others, d and q are formed once more, with
   that mean as m; so equal numbers have no variance. Where variance + epsilon comes out below 2^-100, or the variance
   not below 2^127, mean and variance are computed again in f64, element by element. y is infinite where x - mean
   is more than f32 can hold. gamma and beta have `columns` elements of parameter_type; NULL means 1 and 0. mean and
   rstd, an element for each row, are kept for the backward pass; each may be NULL. MIXPREC_ERR_PARAMETER unless epsilon
   is finite and not negative. */
MIXPREC_API mixprec_status mixprec_layer_norm(void *y, mixprec_dtype y_type, float *mean, float *rstd, const void *x,
                                              mixprec_dtype x_type, const void *gamma, const void *beta,
                                              mixprec_dtype parameter_type, size_t rows, size_t columns,
                                              double epsilon);

/* From the same x, gamma, mean and rstd: dx, and dgamma += sum dy (x - mean) rstd, dbeta += sum dy over the rows, in
   f32. Each of dx, dgamma and dbeta may be NULL (dx_type is looked at all the same): threads that share the rows pass
   NULL for the sums, which one call adds. */
MIXPREC_API mixprec_status mixprec_layer_norm_backward(void *dx, mixprec_dtype dx_type, float *dgamma, float *dbeta,
                                                       const void *dy, mixprec_dtype dy_type, const void *x,
                                                       mixprec_dtype x_type, const void *gamma,
                                                       mixprec_dtype parameter_type, const float *mean,
                                                       const float *rstd, size_t rows, size_t columns);

/* The same without mean and beta: y = x rstd gamma, rstd = 1 / sqrt(mean of x^2 + epsilon). Zhang, Sennrich,
   arXiv:1910.07467. */
MIXPREC_API mixprec_status mixprec_rms_norm(void *y, mixprec_dtype y_type, float *rstd, const void *x,
                                            mixprec_dtype x_type, const void *gamma, mixprec_dtype parameter_type,
                                            size_t rows, size_t columns, double epsilon);
MIXPREC_API mixprec_status mixprec_rms_norm_backward(void *dx, mixprec_dtype dx_type, float *dgamma, const void *dy,
                                                     mixprec_dtype dy_type, const void *x, mixprec_dtype x_type,
                                                     const void *gamma, mixprec_dtype parameter_type, const float *rstd,
                                                     size_t rows, size_t columns);

/* Batch normalisation (Ioffe, Szegedy, arXiv:1502.03167) of a tensor of samples x channels x pixels (NCHW; pixels is 1
   after a dense layer): each channel is normalised over samples and pixels as a row is, with gamma and beta of
   `channels` elements; its first 16 elements are those of the first sample, or all if fewer, and where pixels is 1
   those of the first 16 samples. mean and rstd, of `channels` elements, are what the backward pass needs; each may be
   NULL. running_mean and running_variance, when not NULL, become (1 - momentum) times themselves plus momentum times
   the batch's mean and unbiased variance (of a single element: 0), as PyTorch's do. Channels do not depend on each
   other, samples do. MIXPREC_ERR_PARAMETER for epsilon, and unless 0 <= momentum <= 1. */
MIXPREC_API mixprec_status mixprec_batch_norm(void *y, mixprec_dtype y_type, float *mean, float *rstd, const void *x,
                                              mixprec_dtype x_type, const void *gamma, const void *beta,
                                              mixprec_dtype parameter_type, float *running_mean,
                                              float *running_variance, double momentum, size_t samples, size_t channels,
                                              size_t pixels, double epsilon);
/* y = (x - running_mean) / sqrt(running_variance + epsilon) gamma + beta. */
MIXPREC_API mixprec_status mixprec_batch_norm_inference(void *y, mixprec_dtype y_type, const void *x,
                                                        mixprec_dtype x_type, const void *gamma, const void *beta,
                                                        mixprec_dtype parameter_type, const float *running_mean,
                                                        const float *running_variance, size_t samples, size_t channels,
                                                        size_t pixels, double epsilon);
/* As mixprec_layer_norm_backward. */
MIXPREC_API mixprec_status mixprec_batch_norm_backward(void *dx, mixprec_dtype dx_type, float *dgamma, float *dbeta,
                                                       const void *dy, mixprec_dtype dy_type, const void *x,
                                                       mixprec_dtype x_type, const void *gamma,
                                                       mixprec_dtype parameter_type, const float *mean,
                                                       const float *rstd, size_t samples, size_t channels,
                                                       size_t pixels);

/* y[i][j] = x[i][j] + bias[j] (GEMM's descriptor adds a bias, too), and dbias[j] += sum_i dy[i][j]. ld is the distance
   in elements between rows of dy, 0 meaning columns: threads may share the columns. MIXPREC_ERR_LEADING_DIMENSION. */
MIXPREC_API mixprec_status mixprec_bias_add(void *y, mixprec_dtype y_type, const void *x, mixprec_dtype x_type,
                                            const void *bias, mixprec_dtype bias_type, size_t rows, size_t columns);
MIXPREC_API mixprec_status mixprec_bias_gradient(float *dbias, const void *dy, mixprec_dtype dy_type, size_t rows,
                                                 size_t columns, size_t ld);

/* y[i] = table[tokens[i]] for i < count; a row has `width` elements, the table `vocabulary` rows. A negative token
   gives a row of zeros, and no gradient. MIXPREC_ERR_INDEX when a token is not below vocabulary. Not in place. */
MIXPREC_API mixprec_status mixprec_embedding(void *y, mixprec_dtype y_type, const void *table, mixprec_dtype table_type,
                                             const int32_t *tokens, size_t count, size_t vocabulary, size_t width);
/* dtable[tokens[i]] += dy[i], in the order of i. */
MIXPREC_API mixprec_status mixprec_embedding_gradient(float *dtable, const void *dy, mixprec_dtype dy_type,
                                                      const int32_t *tokens, size_t count, size_t vocabulary,
                                                      size_t width);

/* Dropout: y[i] = x[i] * fp32(1 / (1 - probability)), or 0 where mixprec_random_bits(seed, offset + i) < 2^32
   probability. The same call on dy is the backward pass: the mask is not stored. MIXPREC_ERR_PARAMETER unless 0 <=
   probability <= 1. */
MIXPREC_API mixprec_status mixprec_dropout(void *y, mixprec_dtype y_type, const void *x, mixprec_dtype x_type, size_t n,
                                           float probability, uint64_t seed, uint64_t offset);

#ifndef MIXPREC_NO_GEMM
/* 2-D convolution (cross-correlation, as in all frameworks) of NCHW tensors by way of im2col and mixprec_gemm_ex: x is
   batch x channels x height x width, weight is filters x channels x kernel_height x kernel_width, y is batch x filters
   x output height x output width; mixprec_conv2d_output tells the latter two. bias has `filters` elements and may be
   NULL. backward_weight adds to dweight and dbias, image by image (the sums of dbias are in f64, as mixprec_sum's);
   dbias may be NULL. In the other two the images of a batch do not depend on each other. workspace: any memory of as
   many bytes as mixprec_conv2d_workspace tells, the same for all three and all dtypes (MIXPREC_ERR_WORKSPACE).
   MIXPREC_ERR_PARAMETER when a size other than batch is 0, or the kernel is larger than the padded image, or that
   beyond SIZE_MAX. Not in place. */
MIXPREC_API mixprec_status mixprec_conv2d_output(const mixprec_conv2d *layer, size_t *height, size_t *width);
MIXPREC_API mixprec_status mixprec_conv2d_workspace(const mixprec_conv2d *layer, size_t *bytes);
MIXPREC_API mixprec_status mixprec_conv2d_forward(const mixprec_conv2d *layer, void *y, mixprec_dtype y_type,
                                                  const void *x, mixprec_dtype x_type, const void *weight,
                                                  mixprec_dtype weight_type, const void *bias, mixprec_dtype bias_type,
                                                  void *workspace, size_t workspace_size);
MIXPREC_API mixprec_status mixprec_conv2d_backward_input(const mixprec_conv2d *layer, void *dx, mixprec_dtype dx_type,
                                                         const void *dy, mixprec_dtype dy_type, const void *weight,
                                                         mixprec_dtype weight_type, void *workspace,
                                                         size_t workspace_size);
MIXPREC_API mixprec_status mixprec_conv2d_backward_weight(const mixprec_conv2d *layer, float *dweight, float *dbias,
                                                          const void *dy, mixprec_dtype dy_type, const void *x,
                                                          mixprec_dtype x_type, void *workspace, size_t workspace_size);
#endif
#endif

#endif /* MIXPREC_H: stop reading here if you only use the library. */

#ifdef MIXPREC_IMPLEMENTATION
#ifndef MIXPREC_IMPLEMENTED_
#define MIXPREC_IMPLEMENTED_

#if defined(MIXPREC_STATIC) && !defined(MIXPREC_STATIC_)
#error "mixprec: define MIXPREC_STATIC before the first include of mixprec.h in this file"
#endif

/* ================================================================================================================== */
/* [PLATFORM] Compiler attributes, memory, the floating-point environment                                             */
/* ================================================================================================================== */

#if SIZE_MAX < 0xFFFFFFFFu || (defined(__SIZEOF_DOUBLE__) && __SIZEOF_DOUBLE__ != 8)
#error "mixprec: the implementation needs 32 bits of size_t and 64 of double; scalar conversions of f32 do without"
#endif
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
#elif defined(__CUDACC__) /* nvcc does not know gcc's pragmas, and says so a thousand times */
#define MIXPREC_UNROLL_
#else
#define MIXPREC_UNROLL_ _Pragma("GCC unroll 16")
#define MIXPREC_INDEPENDENT_ _Pragma("GCC ivdep") /* no iteration needs what an earlier one has written */
#endif
#elif defined(_MSC_VER)
#define MIXPREC_FORCE_INLINE_ static __forceinline
#define MIXPREC_NOINLINE_ static __declspec(noinline)
#define MIXPREC_FLATTEN_ static __declspec(noinline)
#define MIXPREC_UNROLL_
#else
#define MIXPREC_FORCE_INLINE_ static inline
#define MIXPREC_NOINLINE_ static
#define MIXPREC_FLATTEN_ static
#define MIXPREC_UNROLL_
#endif

/* Not inlined, and called with the upper halves of AVX's registers clean: gcc would keep vectors there across a call
   that leaves them alone, and SSE code that finds them in use takes 220 ns longer on Emerald Rapids. */
#if defined(__GNUC__) && __GNUC__ >= 8 && !defined(__clang__)
#define MIXPREC_APART_ static __attribute__((noipa, unused))
#else
#define MIXPREC_APART_ MIXPREC_NOINLINE_
#endif

#ifndef MIXPREC_INDEPENDENT_
#define MIXPREC_INDEPENDENT_
#endif

/* Which instruction sets are compiled in. 32-bit x86 has too few vector registers for the GEMM kernels: portable C. */
#if !defined(MIXPREC_NO_SIMD) && !defined(__TINYC__)
/* clang before 19, imitating MSVC, has intrinsics only for what the command line enables. */
#if (defined(__x86_64__) && defined(__GNUC__)) ||                                                                      \
    (defined(_MSC_VER) && defined(_M_X64) && (!defined(__clang__) || __clang_major__ >= 19))
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
/* Kernels for few rows come with them. */
#if defined(MIXPREC_HAS_AVX2_) || defined(MIXPREC_HAS_NEON_)
#define MIXPREC_HAS_FEW_ 1
#endif
/* And which units for bf16 and f16: those that the compiler has intrinsics for. */
#if defined(MIXPREC_HAS_AVX512_) && defined(__GNUC__)
#if (defined(__clang__) && __clang_major__ >= 9) || (!defined(__clang__) && __GNUC__ >= 10)
#define MIXPREC_HAS_AVX512_BF16_ 1
#endif
/* In assembly: MemorySanitizer would not see what AMX writes. And only where there is a system to ask for it. */
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define MIXPREC_UNSEEN_ 1
#endif
#endif
#if defined(MIXPREC_HAS_AVX512_BF16_) && !defined(MIXPREC_NO_GEMM) && !defined(MIXPREC_NO_STDLIB) &&                   \
    !defined(MIXPREC_UNSEEN_) && defined(__linux__) && !defined(__ILP32__) &&                                          \
    (defined(__clang__) ? __clang_major__ >= 12 : __GNUC__ >= 11)
#define MIXPREC_HAS_AMX_ 1
#endif
#elif defined(MIXPREC_HAS_NEON_) && !defined(MIXPREC_NO_GEMM) && !defined(MIXPREC_NO_STDLIB) && defined(__linux__)
#if (defined(__clang__) && __clang_major__ >= 16) || (!defined(__clang__) && __GNUC__ >= 10)
#define MIXPREC_HAS_NEON_NATIVE_ 1
#include <errno.h>
#include <sys/auxv.h>
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
    if ((saved & ~0x3Fu) != 0x1F80u) /* but for the flags */
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
/* Not the whole of it: how deep the register stack is has changed where the compiler moved a number across the switch.
   Byte 0 is the control word, byte 4 the exception flags of the status word. */
MIXPREC_INLINE void mixprec_fp_end_(mixprec_fp_ saved) {
    unsigned char now[28];
    __asm__ __volatile__("fnstenv %0" : "=m"(now)::"memory");
    now[0] = saved.x87[0];
    now[1] = saved.x87[1];
    now[4] = saved.x87[4];
    __asm__ __volatile__("fldenv %0" : : "m"(now) : "memory");
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
#elif defined(__arm__) && defined(__ARM_FP) && defined(__GNUC__) && (!defined(__thumb__) || defined(__thumb2__))
typedef unsigned int mixprec_fp_;
MIXPREC_INLINE mixprec_fp_ mixprec_fp_begin_(void) {
    mixprec_fp_ saved, standard;
    __asm__ __volatile__("vmrs %0, fpscr" : "=r"(saved)::"memory");
    standard = saved & 7u << 16; /* LTPSIZE of Cortex-M55 and M85, by which compilers let loops end */
    __asm__ __volatile__("vmsr fpscr, %0" ::"r"(standard) : "memory");
    return saved;
}
MIXPREC_INLINE void mixprec_fp_end_(mixprec_fp_ saved) {
    __asm__ __volatile__("vmsr fpscr, %0" ::"r"(saved) : "memory");
}
#elif (defined(__riscv_flen) || defined(__riscv_zfinx)) && defined(__GNUC__)
typedef unsigned long mixprec_fp_;
MIXPREC_INLINE mixprec_fp_ mixprec_fp_begin_(void) {
    mixprec_fp_ saved;
    __asm__ __volatile__("csrrw %0, 3, zero" : "=r"(saved)::"memory"); /* fcsr. With Zfinx compiled, not run. */
    return saved;
}
MIXPREC_INLINE void mixprec_fp_end_(mixprec_fp_ saved) {
    __asm__ __volatile__("csrw 3, %0" ::"r"(saved) : "memory");
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

/* x * factor. A NaN becomes quiet and is x else: RISC-V's product would have neither its sign nor its payload. */
MIXPREC_INLINE float mixprec_times_f32_(float x, float factor) {
    const uint32_t bits = mixprec_f32_bits_(x);
    return bits << 1 > 0xFF000000u ? mixprec_f32_from_bits_(bits | 0x00400000u) : x * factor;
}
MIXPREC_INLINE double mixprec_times_f64_(double x, double factor) {
    const uint64_t bits = mixprec_f64_bits_(x);
    return bits << 1 > (uint64_t)0x7FF << 53 ? mixprec_f64_from_bits_(bits | (uint64_t)1 << 51) : x * factor;
}

/* +0 or -0, even under DAZ. */
MIXPREC_INLINE int mixprec_is_zero_(double x) {
    uint64_t bits = mixprec_f64_bits_(x);
    MIXPREC_UNKNOWN_("+m", bits);
    return bits << 1 == 0;
}

MIXPREC_INLINE size_t mixprec_min_(size_t a, size_t b) {
    return a < b ? a : b;
}
MIXPREC_INLINE size_t mixprec_round_up_(size_t x, size_t step) {
    return (x + step - 1) / step * step;
}
/* A line of the cache. Where one begins, in memory with MIXPREC_ALIGN_ - 1 bytes to spare: */
#define MIXPREC_ALIGN_ 64
MIXPREC_INLINE char *mixprec_line_(void *memory) {
    return (char *)memory + (0 - (uintptr_t)memory) % MIXPREC_ALIGN_;
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

static void mixprec_clear_(void *dst, size_t bytes) {
#ifndef MIXPREC_NO_STDLIB
    memset(dst, 0, bytes);
#else
    unsigned char *to = (unsigned char *)dst;
    while (bytes--)
        *to++ = 0;
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

MIXPREC_INLINE int mixprec_is_f32_or_16_bits_(mixprec_dtype type) {
    return type == MIXPREC_F32 || type == MIXPREC_F16 || type == MIXPREC_BF16;
}

/* How narrowed values are rounded; index is that of the first element in the stochastic stream. */
typedef struct mixprec_how_ {
    mixprec_round round;
    mixprec_overflow overflow;
    uint64_t seed, index;
    int around; /* may the values be written around the caches? They begin a line; `fence` is called afterwards. */
} mixprec_how_;

/* The unit that vector kernels work in, and elements that pass through a buffer on the stack at a time: where there is
   little to do for each, more of them, for the calls themselves take some 50 cycles. */
#define MIXPREC_UNIT_ 64
#ifdef MIXPREC_NO_STDLIB
#define MIXPREC_BLOCK_ 64
#define MIXPREC_STEP_BLOCK_ 64 /* of an optimiser's step */
#define MIXPREC_LONG_BLOCK_ 64
#else
#define MIXPREC_BLOCK_ 256
#define MIXPREC_STEP_BLOCK_ 512
#define MIXPREC_LONG_BLOCK_ 1024
#endif

/* Random words come in groups of so many: what a vector kernel makes at a time, or a multiple of it. */
#if defined(MIXPREC_HAS_AVX2_)
#define MIXPREC_RANDOMS_ 128
#elif defined(MIXPREC_HAS_NEON_)
#define MIXPREC_RANDOMS_ 32
#else
#define MIXPREC_RANDOMS_ 2
#endif

/* The lanes of a sum: eight vectors of four doubles, as many as it takes to hide the latency of their additions. */
#define MIXPREC_LANES_ 32

/* An optimiser's step in fp32: see mixprec_adam_step. rest1 is 1 - beta1, or 1 - dampening; keep what is left of a
   weight when it decays on its own. */
typedef struct mixprec_step_ {
    float inverse_scale, clip, weight_decay, keep, beta1, rest1, beta2, rest2, correction, epsilon, rate;
    int decay; /* is weight_decay * weight added to the gradient? */
    int first, nesterov;
    int in_dram; /* are the arrays there? mixprec_in_dram_ */
} mixprec_step_;

#ifndef MIXPREC_NO_CONVERT
/* What mixprec_stats has gathered so far. Element i of the array goes to lane i % 16 of the sums. */
#define MIXPREC_TALLY_LANES_ 16
#define MIXPREC_TALLY_GROUP_ 256                      /* elements whose squares are added in fp32 */
#define MIXPREC_TALLY_EXPONENTS_ (16 * MIXPREC_UNIT_) /* that are counted at a time */
typedef struct mixprec_tally_ {
    mixprec_statistics *stats;
    double signal[MIXPREC_TALLY_LANES_], noise[MIXPREC_TALLY_LANES_];
    uint64_t amax, min_nonzero; /* as f64 bits; Inf for none */
#if defined(MIXPREC_HAS_AVX2_)
    /* At `exponents`, aligned, up to MIXPREC_TALLY_EXPONENTS_ not yet counted, then 2 x 8 planes of MIXPREC_UNIT_
       bytes. Those counted that are in the window of 16 from `window` (modulo 256) are numbers of 8 bits there: bit b
       of byte i of plane [h][k] is bit k of how many exponents at place i are 8 h + b above `window`. Others are in
       stats->exponents: `missed` since the window was moved, `largest` among the last 64 with such. `counted`: how
       often exponents were counted since the planes were empty. */
    uint8_t *exponents, room[MIXPREC_TALLY_EXPONENTS_ + 16 * MIXPREC_UNIT_ + 63];
    uint32_t pending, counted, missed, window, largest;
#elif defined(MIXPREC_HAS_NEON_)
    uint64_t exponents[3][256]; /* with stats->exponents four counters, so that none waits for the one before */
#endif
    /* Of the format, as fp32 bits, to nearest even: its largest magnitude, the largest that becomes zero, the least
       that becomes a normal number, the least normal number; and the mantissa bits that a normal number loses. */
    int32_t max, vanishing, normal, min_normal, shift;
    double wide_vanishing, wide_normal; /* the second and third, also of f32 */
    int wide;                           /* do the kernels from f64 know the format? */
    /* Numbers between these are no extremes, do not overflow, and their squares fit fp32; those above `usual`, too,
       stay normal. All three as the upper 16 bits of twice the bits of fp32: 8 bits of exponent, 7 of mantissa, a
       zero. */
    uint16_t low, high, usual;
} mixprec_tally_;

/* mixprec_stats squares in fp32 where the largest magnitude of a group is zero or from 2^-48 to below 2^60, as fp32
   bits: no sum overflows, and a square that underflows is below 2^-53 of the largest. */
#define MIXPREC_SQUARES_FROM_ 0x27800000
#define MIXPREC_SQUARES_BELOW_ 0x5D800000
#endif

/* What one instruction set provides: one constant table each in [DISPATCH].
   Unless said otherwise n is a multiple of MIXPREC_UNIT_, and source and destination may be the same array where the
   destination's elements are not larger. All run in the default floating-point environment. */
typedef struct mixprec_kernels_ {
    mixprec_isa isa;
    /* fp32 from any dtype but f32; f64 is rounded to nearest even. `around`: see mixprec_how_. */
    void (*load)(float *dst, const void *src, mixprec_dtype type, size_t n, int around);
    /* fp32 from f64, rounded to odd: a second rounding to a narrower format is then right in every mode. */
    void (*load_odd)(float *dst, const double *src, size_t n);
    /* Any dtype but f32 from fp32; to f64 exact. */
    void (*store)(void *dst, mixprec_dtype type, const float *src, size_t n, const mixprec_how_ *how);
    /* dst = src * factor; returns whether src or dst has an Inf or NaN. `around`: see mixprec_how_. */
    int (*unscale)(float *dst, const float *src, size_t n, float factor, int around);
    /* Copies any `bytes`, also 0, around the caches, before what is written after a call of `fence`, faster where src
       begins a line of the cache; and prefetches `next_bytes` from `next` on into L2, perhaps outside of all arrays.
       May be NULL. */
    void (*stream)(void *dst, const void *src, size_t bytes, const void *next, size_t next_bytes);
    void (*fence)(void); /* NULL where `stream` is */
#ifndef MIXPREC_NO_CONVERT
    /* mixprec_stats to nearest even, from f32, f16 or bf16: whole groups of MIXPREC_TALLY_GROUP_ up to the first one
       with Inf, NaN or a size whose square needs f64. Returns how many elements that were. Last, with n of 0, ends the
       counting of exponents. May be NULL. */
    size_t (*tally)(mixprec_tally_ *tally, const void *src, mixprec_dtype type, size_t n);
    /* The same from f64, groups of MIXPREC_UNIT_, up to the first one with Inf or NaN. */
    size_t (*tally_wide)(mixprec_tally_ *tally, const double *src, size_t n);
#endif

    /* lanes[i % MIXPREC_LANES_] += term of element i: see mixprec_reduce. x, and for MIXPREC_DOT y, of f32, f16
       or bf16, both of one; center is read for f32 only. Any n. */
    void (*reduce)(double *lanes, const void *x, const void *y, mixprec_dtype type, size_t n,
                   mixprec_reduction reduction, double center);
    /* amax[j] = the larger of it and the fp32 bits of the largest magnitude in block j of x, of a dtype of tensors:
       there codes order as magnitudes do, with NaN on top. Any n, any block but 0. */
    void (*amax)(uint32_t *amax, const void *x, mixprec_dtype type, size_t n, size_t block);
    /* dst = narrow(fp32(src * factors[block of the element])), saturating, to nearest even: from f32, f16 or bf16 to
       the dtypes whose bits (1 << dtype) `narrows` has. `block` is 16, 32, a multiple of MIXPREC_UNIT_, or not below n.
       Factors are positive; a product above 33 / 32 of the largest number of dst_type, or a NaN, spoils the codes
       beside it. *amax becomes as by `amax` with one block, unless amax is NULL. With `around`, for which dst is a
       multiple of 4, the codes may be written around the caches: `fence` is called afterwards. May be NULL. */
    void (*narrow)(void *dst, mixprec_dtype dst_type, const void *src, mixprec_dtype src_type, size_t n, size_t block,
                   const float *factors, uint32_t *amax, int around);
    unsigned narrows;
    /* The way back, to nearest even, from the dtypes of `widens` to f32, f16 or bf16. */
    void (*widen)(void *dst, mixprec_dtype dst_type, const void *src, mixprec_dtype src_type, size_t n, size_t block,
                  const float *factors);
    unsigned widens;
    /* dst[i] = src[i] * factors[(first + i) / block], which may be in place; first is below block. Any n. */
    void (*scale_blocks)(float *dst, const float *src, size_t n, size_t block, size_t first, const float *factors);
    /* mixprec_block_scale_ of each of n numbers, a multiple of 8, given as bits; and its inverse. May be NULL. */
    void (*block_scales)(float *factors, float *inverses, const uint32_t *amax, size_t n, float max, int power_of_two);
    /* One step; any n. m may be NULL for sgd, v is not used there. */
    void (*adam)(float *w, float *m, float *v, const float *grad, size_t n, const mixprec_step_ *step);
    void (*sgd)(float *w, float *m, float *v, const float *grad, size_t n, const mixprec_step_ *step);
    /* sum += x * factor, any n. in_dram: 1 where sum is there, 2 where x is, too. */
    void (*accumulate)(float *sum, const float *x, size_t n, float factor, int in_dram);
#ifndef MIXPREC_NO_LAYERS
    /* words[i] = mixprec_random_bits(seed, index + i); index is even, n a multiple of MIXPREC_RANDOMS_. */
    void (*random)(uint32_t *words, uint64_t seed, uint64_t index, size_t n);
#endif

    /* GEMM, fp32 or, where wide is 1, f64 accumulators (both operands are then f64). Panels: rows of A in groups of
       tile_rows, columns of B in groups of tile_columns[wide]; element (i, p) of a panel of width w stands at [p * w +
       i]; with a dot-product unit as pack and tile (and `direct`) agree on, in as many bytes or fewer. */
    size_t tile_rows, tile_columns[2];
    /* Up to so many columns `tiny` reads no others; nor, where this is not 0, with up to MIXPREC_SMALL_ROWS_ rows,
       which may have twice tile_columns. */
    size_t exact_columns[2];
    size_t block_rows, block_columns, block_depth; /* how much of A and B to pack at a time; depth: whole chunks */
    /* Packs a panel of `width`, of which `count` are there and the others become zero, `depth` deep. Element (i, p) is
       at src[i + p * ld] when along is 1, else at src[i * ld + p]. */
    void (*pack)(void *dst, size_t width, const void *src, mixprec_dtype type, size_t ld, int along, size_t count,
                 size_t depth, int wide);
    void (*pack_b)(void *dst, size_t width, const void *src, mixprec_dtype type, size_t ld, int along, size_t count,
                   size_t depth, int wide); /* the same of B; NULL: as of A */
    /* t[i * ldt + j] = or += the products of the panels a (tile_rows wide) and b, in the canonical order, for i < rows,
       j < columns. `depth` spans whole chunks but for the end of k. `first` is 0 for +=, and for =, one chunk, t and
       ldt multiples of 64 bytes, may be MIXPREC_TILE_STREAM_: memory is then better written around the caches, as by
       `stream`. From `ahead` on, perhaps outside of all arrays, depth * MIXPREC_TILE_AHEAD_ bytes may be prefetched. */
    void (*tile)(size_t rows, size_t columns, size_t depth, const void *a, const void *b, const void *ahead, void *t,
                 size_t ldt, int first, int wide);
    /* A product of an A that is not in panels and of up to tile_columns[wide] columns: t[i * ldt + j] = the sum, for
       all of k, of element (i, p) of A, a_row bytes from row to row and a_step along k, times that of B, b_step bytes
       along k. As many columns of B are read as the next of tile_columns, its half and MIXPREC_SMALL_COLUMNS_; no more
       than `columns` where `exact`, for which these are less than MIXPREC_SMALL_COLUMNS_. May be NULL. */
    void (*tiny)(size_t rows, size_t columns, size_t depth, const void *a, size_t a_row, size_t a_step, const void *b,
                 size_t b_step, int exact, void *t, size_t ldt, int wide);
    /* The same for few sums, with steps in bytes for rows and columns everywhere; = or, where not `first`, +=. `depth`
       as for tile. NULL where `tiny` is. */
    void (*dots)(size_t rows, size_t columns, size_t depth, const char *a, size_t a_row, size_t a_step, const char *b,
                 size_t b_column, size_t b_step, char *t, size_t t_row, size_t t_column, int first, int wide);
    /* The whole block for at most direct_rows rows, fp32 accumulators, and a B that is not packed: packing a B that is
       used so little would cost more than the products. Panels of A are `width` wide, a power of two, direct_width
       where there are several. Rows of B in memory lie `stride` bytes apart; along: they are rows of op(B), or, 2, of
       a packed panel of it, and at most MIXPREC_DIRECT_GROUP_ columns. `scratch` has direct_bytes and
       direct_bytes_per_row for each row, aligned to 64; without pairs, up to 8 rows that run across those of B need
       none. May be NULL. */
    void (*direct)(size_t rows, size_t columns, size_t depth, const float *a, size_t width, const char *b,
                   mixprec_dtype type, size_t stride, int along, float *t, size_t ldt, int first, char *scratch);
    size_t direct_rows, direct_width, direct_bytes, direct_bytes_per_row;
/* Columns that take turns while a chunk of k goes by: the fewer the rows, the longer the pieces of B's rows. With 512
   bytes of each of 4096 rows most were in pages new to the TLB: 1 x 4096 x 4096 of f16 took 2.7 ms on Zen 4, now 1.6,
   f32 3.7 and 2.7. */
#define MIXPREC_DIRECT_GROUP_(rows) ((size_t)((rows) == 1 ? 2048 : (rows) == 2 ? 1024 : (rows) <= 4 ? 512 : 256))
    /* For mixprec_gemm_few_: sums = or, unless it `starts`, += the products of up to as many rows as a panel of A may
       have, a_step bytes from one k to the next, and panels of 64 bytes of columns of B, b_panel bytes apart and b_step
       from one k to the next. Rows of sums are ld bytes apart. A chunk may come in parts. */
    void (*few)(size_t rows, size_t panels, size_t depth, const char *a, size_t a_step, const char *b, size_t b_step,
                size_t b_panel, char *sums, size_t ld, int starts, int wide);
    /* The same for a panel of A of 1, 2 or 4 rows, whole chunks but for the end of k, and a B whose rows, `stride`
       bytes apart, run along k: the first MIXPREC_ACROSS_VECTORS_ vectors of 32 bytes of `columns`, as many for each
       row of sums. */
    void (*across)(size_t rows, mixprec_dtype type, size_t columns, size_t depth, const char *a, const char *b,
                   size_t stride, char *sums, int starts);
    size_t few_rows[2];                /* by `wide`: up to so many rows, where not `direct`, these two may be used */
    size_t panel_depth;                /* panels of 16-bit elements, this or a multiple deep; 0: as above */
    void (*begin)(void), (*end)(void); /* before and after calls of `tile`; NULL: nothing to do */
} mixprec_kernels_;

/* `across`: vectors of columns at a time, to hide the latency of the sums. With elements of 4 and 8 bytes memory is the
   limit, and Zen 4 reads 16 and 8 rows at a time faster than 32 and 16. */
#define MIXPREC_ACROSS_VECTORS_(rows, size) ((rows) == 1 && (size) < 4 ? 4 : 2)
#define MIXPREC_ACROSS_ROWS_ 4
#define MIXPREC_ACROSS_LEAD_ 1024 /* bytes to prefetch ahead in a row of B */

/* ---- elementary functions ---- */

/* Their results are part of what the library promises: the same bits from every compiler, at every level of
   optimisation. So none comes from libm, and MIXPREC_KEEP_ after each product keeps compilers from contracting it with
   the sum that follows, or from reassociating. The argument is a variable of any type. */
#if defined(__GNUC__) && !defined(__TINYC__) && defined(__SSE2__)
#define MIXPREC_KEEP_(variable) __asm__("" : "+v"(variable))
#elif defined(__GNUC__) && !defined(__TINYC__) && defined(__aarch64__)
#define MIXPREC_KEEP_(variable) __asm__("" : "+w"(variable))
#elif defined(__GNUC__) && !defined(__TINYC__)
#define MIXPREC_KEEP_(variable) __asm__("" : "+m"(variable))
#else
#define MIXPREC_KEEP_(variable) ((void)(*(volatile char *)&(variable) = *(volatile char *)&(variable)))
#endif

/* Functions of one number work in f64, with a relative error of a few 1e-11 at most, which is rounded once to fp32: the
   error is below 0.51 ulp. They run between mixprec_fp_begin_ and mixprec_fp_end_. */
MIXPREC_INLINE double mixprec_times_(double a, double b) {
    double product = a * b;
    MIXPREC_KEEP_(product);
    return product;
}
MIXPREC_INLINE float mixprec_to_f32_(double x) {
    MIXPREC_ROUNDED_ float y = (float)x;
    return y;
}

/* Horner's rule; the coefficient of the highest power comes first. */
MIXPREC_INLINE double mixprec_polynomial_(const double *coefficients, int count, double x) {
    double sum = coefficients[0];
    int i;
    MIXPREC_UNROLL_ for (i = 1; i < count; i++) sum = mixprec_times_(sum, x) + coefficients[i];
    return sum;
}

/* ---- several numbers at a time ---- */

/* Loops are written once, for MIXPREC_WIDTH_ numbers of f64 or MIXPREC_FLOATS_ of f32 at a time: vectors, as gcc and
   clang know them in C, where the CPU has registers for them; else single numbers. On x86-64 MIXPREC_BOTH_ compiles a
   body twice: for AVX2, and for any CPU. Functions take vectors by address: by value, the ABI would depend on the
   instruction set. */
#if defined(MIXPREC_HAS_AVX2_) && defined(__GNUC__) && (defined(__clang__) || __GNUC__ >= 9)
#define MIXPREC_WIDTH_ 4
#define MIXPREC_FLOATS_ 8
#elif defined(MIXPREC_HAS_NEON_) && (defined(__clang__) || __GNUC__ >= 9)
#define MIXPREC_WIDTH_ 2
#define MIXPREC_FLOATS_ 4
#else
#define MIXPREC_WIDTH_ 1
#define MIXPREC_FLOATS_ 1
#endif
#if MIXPREC_WIDTH_ > 1
typedef double mixprec_f64s_ __attribute__((vector_size(8 * MIXPREC_WIDTH_)));
typedef float mixprec_f32s_ __attribute__((vector_size(4 * MIXPREC_WIDTH_))); /* that become f64s */
typedef float mixprec_floats_ __attribute__((vector_size(4 * MIXPREC_FLOATS_)));
typedef int32_t mixprec_ints_ __attribute__((vector_size(4 * MIXPREC_FLOATS_)));
typedef uint32_t mixprec_codes_ __attribute__((vector_size(4 * MIXPREC_FLOATS_)));
/* Those in arrays. */
typedef double mixprec_f64s_at_ __attribute__((vector_size(8 * MIXPREC_WIDTH_), aligned(8), may_alias));
typedef float mixprec_f32s_at_ __attribute__((vector_size(4 * MIXPREC_WIDTH_), aligned(4), may_alias));
typedef float mixprec_floats_at_ __attribute__((vector_size(4 * MIXPREC_FLOATS_), aligned(4), may_alias));
typedef uint32_t mixprec_codes_at_ __attribute__((vector_size(4 * MIXPREC_FLOATS_), aligned(4), may_alias));
#if MIXPREC_WIDTH_ == 4 /* gcc 12 makes four instructions of that, and one of this; each argument is a variable */
#define MIXPREC_TO_F64S_(x)                                                                                            \
    (__extension__(mixprec_f64s_){(double)(x)[0], (double)(x)[1], (double)(x)[2], (double)(x)[3]})
#else
#define MIXPREC_TO_F64S_(x) __builtin_convertvector(x, mixprec_f64s_)
#endif
#define MIXPREC_TO_F32S_(x) __builtin_convertvector(x, mixprec_f32s_)
#define MIXPREC_BITS_(x) ((mixprec_ints_)(x))
#define MIXPREC_FLOATS_OF_(bits) ((mixprec_floats_)(bits))
#define MIXPREC_WHERE_(comparison) ((mixprec_ints_)(comparison)) /* all bits, where it is true */
#define MIXPREC_CODES_(x) ((mixprec_codes_)(x))
#else
typedef double mixprec_f64s_, mixprec_f64s_at_;
typedef float mixprec_f32s_, mixprec_f32s_at_, mixprec_floats_, mixprec_floats_at_;
typedef int32_t mixprec_ints_;
typedef uint32_t mixprec_codes_, mixprec_codes_at_;
#define MIXPREC_TO_F64S_(x) ((double)(x))
#define MIXPREC_TO_F32S_(x) mixprec_to_f32_(x)
#define MIXPREC_BITS_(x) ((int32_t)mixprec_f32_bits_(x))
#define MIXPREC_FLOATS_OF_(bits) mixprec_f32_from_bits_((uint32_t)(bits))
#define MIXPREC_WHERE_(comparison) (-(int32_t)(comparison))
#define MIXPREC_CODES_(x) mixprec_f32_bits_(x)
#endif
#define MIXPREC_SELECT_(where, a, b) MIXPREC_FLOATS_OF_((MIXPREC_BITS_(a) & (where)) | (MIXPREC_BITS_(b) & ~(where)))
/* Where a command line without AVX leaves no FMA in any function, nothing can be contracted: the AVX2 functions are
   compiled without it. -ffast-math would reassociate; there, not every function has registers for such a vector. */
#if defined(__FAST_MATH__) && MIXPREC_WIDTH_ == 4
#define MIXPREC_KEEP_SEVERAL_(x) __asm__("" : "+m"(x))
#elif MIXPREC_WIDTH_ != 4 || defined(__AVX__)
#define MIXPREC_KEEP_SEVERAL_(x) MIXPREC_KEEP_(x)
#else
#define MIXPREC_KEEP_SEVERAL_(x) ((void)0)
#endif
#define MIXPREC_PRODUCT_(product, a, b)                                                                                \
    do {                                                                                                               \
        product = (a) * (b);                                                                                           \
        MIXPREC_KEEP_SEVERAL_(product);                                                                                \
    } while (0)
/* Of floats; wider registers would keep more of it, -ffast-math would fold x + y - x. */
#if defined(__FAST_MATH__) || (defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16)
#define MIXPREC_SUM_(sum, a, b) MIXPREC_PRODUCT_(sum, 1.0f, (a) + (b))
#else
#define MIXPREC_SUM_(sum, a, b) ((void)(sum = (a) + (b)))
#endif
/* Defines name, which runs name_as_, force-inlined, on the path of `kernels`, its first argument. Beside AVX2, portable
   C is for CPUs from before 2013, and few others: better small, 40 KB of code instead of 50, which takes them 0 to 30 %
   longer (GELU 7 %, softmax 2 %, layer norm 23 %, its gradient 26 %). */
#if MIXPREC_WIDTH_ == 4
#define MIXPREC_BOTH_(name, parameters, arguments)                                                                     \
    __attribute__((cold)) MIXPREC_NOINLINE_ void name##c_ parameters {                                                 \
        name##as_ arguments;                                                                                           \
    }                                                                                                                  \
    MIXPREC_TARGET_("avx2") MIXPREC_NOINLINE_ void name##avx2_ parameters {                                            \
        name##as_ arguments;                                                                                           \
    }                                                                                                                  \
    MIXPREC_NOINLINE_ void name parameters {                                                                           \
        if (kernels->isa == MIXPREC_ISA_C)                                                                             \
            name##c_ arguments;                                                                                        \
        else                                                                                                           \
            name##avx2_ arguments;                                                                                     \
    }
#else
#define MIXPREC_BOTH_(name, parameters, arguments)                                                                     \
    MIXPREC_NOINLINE_ void name parameters {                                                                           \
        name##as_ arguments;                                                                                           \
    }
#endif

/* Into L2; the address, an integer, may lie anywhere. */
#if defined(MIXPREC_HAS_AVX2_)
#define MIXPREC_FETCH_(address) _mm_prefetch((const char *)(address), _MM_HINT_T1)
#elif defined(MIXPREC_HAS_NEON_)
#define MIXPREC_FETCH_(address) __builtin_prefetch((const void *)(address), 0, 2)
#else
#define MIXPREC_FETCH_(address) ((void)(address))
#endif

/* Arrays of floats that such loops read or write end with whole vectors: mixprec_view_ and mixprec_place_ see to it. */
#define MIXPREC_LOAD_(x) (*(const mixprec_floats_at_ *)(x))
#define MIXPREC_STORE_(x, floats) ((void)(*(mixprec_floats_at_ *)(x) = (floats)))
#define MIXPREC_LOAD_F32S_(x) (*(const mixprec_f32s_at_ *)(x))
#define MIXPREC_STORE_F32S_(x, f32s) ((void)(*(mixprec_f32s_at_ *)(x) = (f32s)))

/* ---- elementary functions of several numbers ---- */

/* sum = the polynomial in x, y = x^2, whose coefficient of the highest power comes first: Horner's rule for its even
   and its odd powers, which do not wait for each other. count >= 4. */
MIXPREC_FORCE_INLINE_ void mixprec_polynomial_of_several_(mixprec_floats_ *sum, const float *coefficients, int count,
                                                          const mixprec_floats_ *x, const mixprec_floats_ *y) {
    mixprec_floats_ high, low; /* that with the highest power, and the other */
    int i;
    MIXPREC_PRODUCT_(high, *y, coefficients[0]);
    MIXPREC_PRODUCT_(low, *y, coefficients[1]);
    MIXPREC_SUM_(high, high, coefficients[2]);
    MIXPREC_SUM_(low, low, coefficients[3]);
    MIXPREC_UNROLL_ for (i = 4; i < count; i++) {
        mixprec_floats_ *part = i % 2 ? &low : &high;
        MIXPREC_PRODUCT_(*part, *part, *y);
        MIXPREC_SUM_(*part, *part, coefficients[i]);
    }
    if (count % 2) {
        MIXPREC_PRODUCT_(low, low, *x);
    } else {
        MIXPREC_PRODUCT_(high, high, *x);
    }
    MIXPREC_SUM_(*sum, high, low);
}

/* For n <= MIXPREC_BLOCK_ pairs, exp(hi + lo) = 2^k (1 + rest), k the integer next to hi / ln 2, |hi| < 120,
   |lo| < 0.06, lo taken for 0 unless `paired`: hi becomes rest, and lo becomes power, of which MIXPREC_POWER_(power, i)
   makes 2^(k + i), from 0, standing for 2^-127, to 2^127. rest is r + r^2 times a polynomial of minimax error (Remez),
   2^-33 of exp(r), but is rounded itself. With ln 2 = C1 + C2, C1 short, k C1 is exact, and so is hi - k C1 (Cody,
   Waite: Software Manual for the Elementary Functions, 1980). Two loops, since CPUs do not look far enough ahead to
   fill the long chain of operations of one: 1.04 cycles a number, with one loop 1.3 (Zen 4, AVX2). */
#define MIXPREC_POWER_(power, i) MIXPREC_FLOATS_OF_((MIXPREC_CODES_(power) + (127 + (i))) << 23)
MIXPREC_FORCE_INLINE_ void mixprec_exps_as_(const mixprec_kernels_ *kernels, float *hi, float *lo, size_t n,
                                            int paired) {
    static const float c[] = {1.97656176e-4f, 1.39362249e-3f, 8.33354425e-3f, 4.16664518e-2f, 0.166666657f, 0.5f};
    const float shift = 12582912; /* 1.5 * 2^23: a sum with it has k in its low bits */
    float hidden = shift;         /* -ffast-math would fold k + shift - shift */
    float low[MIXPREC_BLOCK_];    /* what is to be added to hi - k C1 */
    mixprec_floats_ power, rest, x, r, y, p;
    size_t j;
    (void)kernels;
    MIXPREC_KEEP_(hidden);
    for (j = 0; j < n; j += MIXPREC_FLOATS_) {
        rest = MIXPREC_LOAD_(hi + j);
        MIXPREC_PRODUCT_(power, rest, 1.44269502f);
        MIXPREC_SUM_(power, power, hidden);
        MIXPREC_SUM_(x, power, -shift);
        MIXPREC_PRODUCT_(r, x, -0.693359375f);
        MIXPREC_PRODUCT_(x, x, 2.12194440e-4f);
        MIXPREC_SUM_(rest, rest, r);
        if (paired)
            MIXPREC_SUM_(x, x, MIXPREC_LOAD_(lo + j));
        MIXPREC_STORE_(low + j, x);
        MIXPREC_STORE_(lo + j, power);
        MIXPREC_STORE_(hi + j, rest);
    }
    for (j = 0; j < n; j += MIXPREC_FLOATS_) {
        rest = MIXPREC_LOAD_(hi + j);
        x = MIXPREC_LOAD_(low + j);
        MIXPREC_SUM_(r, rest, x);
        MIXPREC_PRODUCT_(y, r, r);
        mixprec_polynomial_of_several_(&p, c, 6, &r, &y);
        MIXPREC_PRODUCT_(p, p, y);
        MIXPREC_SUM_(p, p, x);
        MIXPREC_SUM_(rest, rest, p);
        MIXPREC_STORE_(hi + j, rest);
    }
}
MIXPREC_BOTH_(mixprec_exps_, (const mixprec_kernels_ *kernels, float *hi, float *lo, size_t n, int paired),
              (kernels, hi, lo, n, paired))
/* y *= 2^n for -190 <= n < 64: rounded once where the product is subnormal. */
MIXPREC_FORCE_INLINE_ void mixprec_scale_several_(mixprec_floats_ *y, const mixprec_floats_ *power) {
    MIXPREC_PRODUCT_(*y, *y, MIXPREC_POWER_(*power, 64));
    MIXPREC_PRODUCT_(*y, *y, 5.42101086e-20f);
}

/* ---- elementary functions of one number ---- */

/* The logarithm of a positive, finite, normal x: log(2^e m) = e ln 2 + log m, sqrt(1/2) < m < sqrt 2; log m = 2 atanh
   s, s = (m - 1) / (m + 1), by its series. */
MIXPREC_APART_ double mixprec_log_f64_(double x) {
    static const double series[] = {2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3, 2.0};
    uint64_t bits = mixprec_f64_bits_(x);
    int e = (int)((bits - 0x3FE6A09E667F3BCDu) >> 52); /* modulo 2^12; the constant is sqrt(1/2) */
    double m, s;
    e = e >= 0x800 ? e - 0x1000 : e;
    m = mixprec_f64_from_bits_(bits - ((uint64_t)(int64_t)e << 52));
    s = (m - 1) / (m + 1);
    MIXPREC_KEEP_(s);
    m = mixprec_times_(s, mixprec_polynomial_(series, 9, mixprec_times_(s, s)));
    return mixprec_times_((double)e, 0.69314718055994531) + m;
}

/* ---- activations ---- */

/* The part of x that 12 bits hold: products of two such parts are exact. */
#define MIXPREC_SHORT_(x) MIXPREC_FLOATS_OF_(MIXPREC_BITS_(x) & -0x1000)

/* *hi + *lo = what the activation needs exp of; *lo only where this returns 1. An error of it is a relative one of the
   exp, so that squares have to be exact. */
MIXPREC_FORCE_INLINE_ int mixprec_activation_argument_(mixprec_floats_ *hi, mixprec_floats_ *lo,
                                                       const mixprec_floats_ *x, mixprec_activation activation) {
    mixprec_floats_ top = MIXPREC_SHORT_(*x), low, z, w, part;
    if (activation == MIXPREC_ACTIVATION_SILU || activation == MIXPREC_ACTIVATION_TANH) {
        *hi = activation == MIXPREC_ACTIVATION_TANH ? 2.0f * MIXPREC_FLOATS_OF_(MIXPREC_BITS_(*x) & 0x7FFFFFFF) : -*x;
        return 0;
    }
    MIXPREC_SUM_(low, *x, -top);
    MIXPREC_SUM_(z, *x, top);
    MIXPREC_PRODUCT_(*lo, low, z);
    MIXPREC_PRODUCT_(*hi, top, top);
    if (activation == MIXPREC_ACTIVATION_GELU) { /* -x^2/2 */
        *hi *= -0.5f;
        *lo *= -0.5f;
        return 1;
    }
    /* x w, w = -2 sqrt(2/pi) (1 + 0.044715 x^2), both constants in two parts, as x^2, w and x are */
    MIXPREC_PRODUCT_(z, *x, *x);
    part = MIXPREC_SHORT_(z);
    MIXPREC_SUM_(w, *hi, -part);
    MIXPREC_SUM_(w, w, *lo);
    MIXPREC_PRODUCT_(w, w, -0.0713500977f);
    MIXPREC_PRODUCT_(z, z, -4.71861631e-06f);
    MIXPREC_SUM_(z, z, -6.59966026e-05f);
    MIXPREC_SUM_(*lo, w, z);
    MIXPREC_PRODUCT_(part, part, -0.0713500977f);
    MIXPREC_SUM_(w, part, -1.59570312f);
    MIXPREC_SUM_(z, w, 1.59570312f); /* exact, and so is the next */
    MIXPREC_SUM_(part, part, -z);
    MIXPREC_SUM_(*lo, *lo, part);
    part = MIXPREC_SHORT_(w);
    MIXPREC_SUM_(z, w, -part);
    MIXPREC_SUM_(z, z, *lo);
    MIXPREC_SUM_(w, part, z);
    MIXPREC_PRODUCT_(*hi, top, part);
    MIXPREC_PRODUCT_(w, w, low);
    MIXPREC_PRODUCT_(z, z, top);
    MIXPREC_SUM_(*lo, z, w);
    return 1;
}

/* The activations are computed in loops over blocks, each for one activation alone: CPUs do not look far enough ahead
   to fill the long chain of operations of one loop. */

/* hi and lo, what the activation of x needs exp of. */
MIXPREC_FORCE_INLINE_ void mixprec_arguments_(float *hi, float *lo, const float *x, size_t n,
                                              mixprec_activation activation) {
    size_t j;
    for (j = 0; j < n; j += MIXPREC_FLOATS_) {
        mixprec_floats_ in = MIXPREC_LOAD_(x + j), high, low;
        if (mixprec_activation_argument_(&high, &low, &in, activation))
            MIXPREC_STORE_(lo + j, low);
        MIXPREC_STORE_(hi + j, high);
    }
}

/* What the function is in f32, as at +-Inf, where |x| is above a limit: of x > 0, x itself where `identity` is all
   bits, and `plus`, a code; of others `minus`. */
typedef struct mixprec_beyond_ {
    int32_t limit, less; /* |x| as a code; less so for x > 0 */
    int32_t identity, plus, minus, sign /* is it odd? */;
} mixprec_beyond_;
enum { MIXPREC_ALL_ = -1, MIXPREC_MINUS_ = -0x7FFFFFFF - 1, MIXPREC_ONE_ = 0x3F800000 };

/* One vector of y: the function of x, computed where it is no limit (never where that is NULL); or, slope, the
   derivative times dy; or x where x is NaN, quiet. */
MIXPREC_FORCE_INLINE_ void mixprec_finish_(float *y, const mixprec_floats_ *computed, const float *x, const float *dy,
                                           const mixprec_activation activation, const int slope) {
    /* ReLU; GELU 15; GELU_TANH -11 and 6; SiLU -112 and 24; tanh 10, its slope 53 */
    static const mixprec_beyond_ table[][2] = {
        {{0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}},
        {{0, 0, MIXPREC_ALL_, 0, 0, 0}, {0, 0, 0, MIXPREC_ONE_, 0, 0}},
        {{0x41700000, 0, MIXPREC_ALL_, 0, MIXPREC_MINUS_, 0}, {0x41700000, 0, 0, MIXPREC_ONE_, 0, 0}},
        {{0x41300000, 0x41300000 - 0x40C00000, MIXPREC_ALL_, 0, MIXPREC_MINUS_, 0},
         {0x41300000, 0x41300000 - 0x40C00000, 0, MIXPREC_ONE_, 0, 0}},
        {{0x42E00000, 0x42E00000 - 0x41C00000, MIXPREC_ALL_, 0, MIXPREC_MINUS_, 0},
         {0x42E00000, 0x42E00000 - 0x41C00000, 0, MIXPREC_ONE_, 0, 0}},
        {{0x41200000, 0, 0, MIXPREC_ONE_, MIXPREC_ONE_, MIXPREC_MINUS_}, {0x42540000, 0, 0, 0, 0, 0}}};
    const mixprec_beyond_ *b = &table[activation][slope];
    mixprec_floats_ in = MIXPREC_LOAD_(x), out;
    mixprec_ints_ bits = MIXPREC_BITS_(in), positive = MIXPREC_WHERE_(bits > 0), magnitude = bits & 0x7FFFFFFF;
    mixprec_ints_ outside, is_nan = MIXPREC_WHERE_(magnitude > 0x7F800000);
    out = MIXPREC_FLOATS_OF_((positive & ((bits & b->identity) | b->plus)) | (~positive & b->minus));
    if (computed) {
        outside = MIXPREC_WHERE_(magnitude > b->limit - (positive & b->less));
        out = MIXPREC_SELECT_(outside, out, *computed);
    }
    if (slope) {
        MIXPREC_PRODUCT_(out, out, MIXPREC_LOAD_(dy));
    } else if (computed)
        out = MIXPREC_FLOATS_OF_(MIXPREC_BITS_(out) | (bits & b->sign));
    in = MIXPREC_FLOATS_OF_(bits | 0x00400000);
    out = MIXPREC_SELECT_(is_nan, in, out);
    MIXPREC_STORE_(y, out);
}

/* GELU, or its slope: with a = |x|, (1 - erf(a / sqrt 2)) / 2 = exp(-a^2/2) p(t) / (4 + a), t = 4 / (4 + a); p has
   minimax error for a <= 15 (Remez), 1.3e-8. So GELU keeps its accuracy where it vanishes. exp is power, rest. */
MIXPREC_FORCE_INLINE_ void mixprec_gelu_(float *to, const float *rest, const float *power, const float *x,
                                         const float *dy, size_t n, const mixprec_activation activation,
                                         const int slope) {
    static const float c[] = {0.067569904f, -0.258147985f, 0.223511353f, 0.0904590487f, 0.0709205717f,
                              0.335417241f, 0.292046279f,  0.3811526f,   0.398085684f,  0.398985326f};
    float tail[MIXPREC_BLOCK_]; /* before the exp */
    mixprec_floats_ a, t, u, y;
    mixprec_ints_ bits, negative;
    size_t j;
    for (j = 0; j < n; j += MIXPREC_FLOATS_) {
        a = MIXPREC_FLOATS_OF_(MIXPREC_BITS_(MIXPREC_LOAD_(x + j)) & 0x7FFFFFFF);
        MIXPREC_SUM_(t, a, 4.0f);
        u = slope ? 1.0f / t : a / t;
        MIXPREC_KEEP_SEVERAL_(u);
        MIXPREC_STORE_(tail + j, u);
    }
    for (j = 0; j < n; j += MIXPREC_FLOATS_) {
        u = MIXPREC_LOAD_(tail + j);
        if (slope)
            t = u * 4.0f;
        else
            MIXPREC_SUM_(t, 1.0f, -u);
        MIXPREC_PRODUCT_(y, t, t);
        mixprec_polynomial_of_several_(&y, c, 10, &t, &y);
        MIXPREC_PRODUCT_(y, y, u);
        MIXPREC_STORE_(tail + j, y);
    }
    for (j = 0; j < n; j += MIXPREC_FLOATS_) {
        mixprec_floats_ scale = MIXPREC_LOAD_(power + j);
        bits = MIXPREC_BITS_(MIXPREC_LOAD_(x + j));
        negative = MIXPREC_WHERE_(bits < 0);
        y = MIXPREC_LOAD_(tail + j);
        if (slope) { /* and its derivative, the density */
            a = MIXPREC_FLOATS_OF_(bits & 0x7FFFFFFF);
            MIXPREC_PRODUCT_(t, a, 0.39894228f);
            MIXPREC_SUM_(y, y, -t);
        }
        MIXPREC_PRODUCT_(t, y, MIXPREC_LOAD_(rest + j));
        MIXPREC_SUM_(y, y, t);
        mixprec_scale_several_(&y, &scale);
        if (slope) {
            MIXPREC_SUM_(a, 1.0f, -y);
            y = MIXPREC_SELECT_(negative, y, a);
        } else {
            a = MIXPREC_FLOATS_OF_(bits & ~(negative & 0x7FFFFFFF)); /* x or -0 */
            MIXPREC_SUM_(y, a, -y);
        }
        mixprec_finish_(to + j, &y, x + j, slope ? dy + j : NULL, activation, slope);
    }
}

/* The others, by e = exp(-u): SiLU is x / (1 + e) with u = x. GELU_TANH, x/2 (1 + tanh(u/2)), is so, too, with u = 2
   sqrt(2/pi) (x + 0.044715 x^3). For the slopes: s = 1 / (1 + e), c = 1 - s = e s. e may be as large as 2^162, so that
   all of this is divided by 2^40. |tanh| is (e - 1) / (e + 1), with u = -2|x|: e - 1 loses nothing near 0. */
MIXPREC_FORCE_INLINE_ void mixprec_sigmoid_(float *to, const float *rest, const float *power, const float *x,
                                            const float *dy, size_t n, const mixprec_activation activation,
                                            const int slope) {
    const float tiny = 9.09494702e-13f; /* 2^-40 */
    mixprec_floats_ z, scale, e, d, y;
    size_t j;
    for (j = 0; j < n; j += MIXPREC_FLOATS_) {
        z = MIXPREC_LOAD_(x + j);
        scale = MIXPREC_LOAD_(power + j);
        if (activation == MIXPREC_ACTIVATION_TANH && !slope)
            scale = MIXPREC_POWER_(scale, 0);
        else
            scale = MIXPREC_POWER_(scale, -40);
        MIXPREC_PRODUCT_(e, scale, MIXPREC_LOAD_(rest + j));
        if (activation == MIXPREC_ACTIVATION_TANH && !slope) {
            MIXPREC_SUM_(scale, scale, -1.0f);
            MIXPREC_SUM_(e, e, scale);
            MIXPREC_SUM_(d, e, 2.0f);
            z = e / d;
            MIXPREC_KEEP_SEVERAL_(z);
        } else if (!slope) {
            MIXPREC_SUM_(d, scale, tiny);
            MIXPREC_SUM_(d, d, e);
            z = z / d;
            MIXPREC_KEEP_SEVERAL_(z);
            MIXPREC_PRODUCT_(z, z, tiny);
        } else {
            MIXPREC_SUM_(d, scale, tiny);
            MIXPREC_SUM_(d, d, e);
            MIXPREC_SUM_(e, e, scale);
            d = 1.0f / d;
            MIXPREC_KEEP_SEVERAL_(d);
            MIXPREC_PRODUCT_(e, e, d);
            if (activation == MIXPREC_ACTIVATION_TANH) {
                MIXPREC_PRODUCT_(d, d, e);
                MIXPREC_PRODUCT_(z, d, 4.0f * tiny);
            } else {
                if (activation == MIXPREC_ACTIVATION_GELU_TANH) { /* times the derivative of u */
                    MIXPREC_PRODUCT_(y, z, z);
                    MIXPREC_PRODUCT_(y, y, 0.214064449f);
                    MIXPREC_SUM_(y, y, 1.59576912f);
                    MIXPREC_PRODUCT_(z, z, y);
                }
                MIXPREC_PRODUCT_(z, z, e);
                MIXPREC_SUM_(z, z, 1.0f);
                MIXPREC_PRODUCT_(d, d, z);
                MIXPREC_PRODUCT_(z, d, tiny);
            }
        }
        mixprec_finish_(to + j, &z, x + j, slope ? dy + j : NULL, activation, slope);
    }
}

/* y = activation(x), or, where dy is not NULL, its derivative at x times dy, for n <= MIXPREC_BLOCK_. */
MIXPREC_FORCE_INLINE_ void mixprec_activate_as_(const mixprec_kernels_ *kernels, float *y, const float *x,
                                                const float *dy, size_t n, mixprec_activation activation) {
    float power[MIXPREC_BLOCK_], rest[MIXPREC_BLOCK_];
    size_t j;
    MIXPREC_ASSERT(n <= MIXPREC_BLOCK_);
    switch (activation) {
    case MIXPREC_ACTIVATION_NONE: mixprec_copy_(y, dy ? dy : x, n * sizeof *y); return;
    case MIXPREC_ACTIVATION_RELU:
        for (j = 0; j < n && !dy; j += MIXPREC_FLOATS_)
            mixprec_finish_(y + j, NULL, x + j, NULL, MIXPREC_ACTIVATION_RELU, 0);
        for (j = 0; j < n && dy; j += MIXPREC_FLOATS_)
            mixprec_finish_(y + j, NULL, x + j, dy + j, MIXPREC_ACTIVATION_RELU, 1);
        return;
    case MIXPREC_ACTIVATION_GELU: mixprec_arguments_(rest, power, x, n, MIXPREC_ACTIVATION_GELU); break;
    case MIXPREC_ACTIVATION_GELU_TANH: mixprec_arguments_(rest, power, x, n, MIXPREC_ACTIVATION_GELU_TANH); break;
    case MIXPREC_ACTIVATION_SILU: mixprec_arguments_(rest, power, x, n, MIXPREC_ACTIVATION_SILU); break;
    case MIXPREC_ACTIVATION_TANH: mixprec_arguments_(rest, power, x, n, MIXPREC_ACTIVATION_TANH); break;
    }
    mixprec_exps_(kernels, rest, power, n,
                  activation == MIXPREC_ACTIVATION_GELU || activation == MIXPREC_ACTIVATION_GELU_TANH);
#define MIXPREC_CASE_(name, function)                                                                                  \
    case name:                                                                                                         \
        if (dy)                                                                                                        \
            function(y, rest, power, x, dy, n, name, 1);                                                               \
        else                                                                                                           \
            function(y, rest, power, x, NULL, n, name, 0);                                                             \
        break;
    switch (activation) {
        MIXPREC_CASE_(MIXPREC_ACTIVATION_GELU, mixprec_gelu_)
        MIXPREC_CASE_(MIXPREC_ACTIVATION_GELU_TANH, mixprec_sigmoid_)
        MIXPREC_CASE_(MIXPREC_ACTIVATION_SILU, mixprec_sigmoid_)
        MIXPREC_CASE_(MIXPREC_ACTIVATION_TANH, mixprec_sigmoid_)
    default: break;
    }
#undef MIXPREC_CASE_
}
MIXPREC_BOTH_(mixprec_activate_,
              (const mixprec_kernels_ *kernels, float *y, const float *x, const float *dy, size_t n,
               mixprec_activation activation),
              (kernels, y, x, dy, n, activation))

/* ---- arithmetic whose every operation is rounded ---- */

MIXPREC_INLINE float mixprec_sum_f32_(float a, float b) {
    float sum = a + b;
    MIXPREC_KEEP_(sum);
    return sum;
}
MIXPREC_INLINE float mixprec_product_f32_(float a, float b) {
    float product = a * b;
    MIXPREC_KEEP_(product);
    return product;
}
MIXPREC_INLINE float mixprec_quotient_f32_(float a, float b) {
    float quotient = a / b;
    MIXPREC_KEEP_(quotient);
    return quotient;
}

/* sqrt(x) rounded to nearest with digits - 1 bits, digits <= 54: digit by digit, as on paper. x and the root are the
   bits of an f64. A root is never halfway between two numbers: the square of such a number has more bits than x. */
MIXPREC_NOINLINE_ uint64_t mixprec_sqrt_bits_(uint64_t x, int digits) {
    const uint64_t infinity = (uint64_t)0x7FF << 52, one = (uint64_t)1 << 52;
    uint64_t radicand = x & (one - 1), rest = 0, root = 0;
    int exponent = (int)(x >> 52), i;
    if (x << 1 == 0 || x == infinity)
        return x;
    if (x > infinity) /* negative, NaN */
        return (uint64_t)0xFFF << 51;
    if (exponent)
        radicand |= one;
    else
        for (exponent = 1; radicand < one; exponent--)
            radicand <<= 1;
    /* x = f 2^(2k) with f in [1/4, 1), which radicand holds in units of 2^-64 */
    radicand <<= exponent & 1 ? 10 : 11;
    for (i = 0; i < digits; i++) {
        rest = rest << 2 | radicand >> 62;
        radicand <<= 2;
        root <<= 1;
        if (rest > root << 1) {
            rest -= root << 1 | 1;
            root |= 1;
        }
    }
    root = (root + 1) >> 1 << (54 - digits); /* from 2^52, standing for 1/2, to 2^53 */
    return ((uint64_t)(exponent + 1021) >> 1 << 52) + root;
}

/* Users link no libm, which compilers call for negative numbers: the instruction by hand, or integers. */
MIXPREC_INLINE float mixprec_sqrt_f32_(float x) {
#if defined(__GNUC__) && !defined(__TINYC__) && defined(__SSE2__)
    __asm__("sqrtss %0, %0" : "+x"(x));
    return x;
#elif defined(__GNUC__) && defined(__aarch64__) && !defined(__TINYC__)
    __asm__("fsqrt %s0, %s0" : "+w"(x));
    return x;
#elif defined(__GNUC__) && defined(__arm__) && defined(__ARM_FP) && !defined(__SOFTFP__)
    __asm__("vsqrt.f32 %0, %0" : "+t"(x));
    return x;
#elif defined(MIXPREC_HAS_AVX2_)
    return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x)));
#else
    return (float)mixprec_f64_from_bits_(mixprec_sqrt_bits_(mixprec_f32_bits_to_f64_bits_(mixprec_f32_bits_(x)), 25));
#endif
}
MIXPREC_INLINE double mixprec_sqrt_f64_(double x) {
#if defined(__GNUC__) && !defined(__TINYC__) && defined(__SSE2__)
    __asm__("sqrtsd %0, %0" : "+x"(x));
    return x;
#elif defined(__GNUC__) && defined(__aarch64__) && !defined(__TINYC__)
    __asm__("fsqrt %d0, %d0" : "+w"(x));
    return x;
#elif defined(MIXPREC_HAS_AVX2_)
    return _mm_cvtsd_f64(_mm_sqrt_pd(_mm_set_sd(x)));
#else
    return mixprec_f64_from_bits_(mixprec_sqrt_bits_(mixprec_f64_bits_(x), 54));
#endif
}

/* ================================================================================================================== */
/* [CPU] Which instruction set this machine has                                                                       */
/* ================================================================================================================== */

/* What some CPUs have besides, above the bits of a mixprec_isa. */
#define MIXPREC_UNIT_BF16_ 0x100   /* AVX512_BF16; BFMMLA */
#define MIXPREC_UNIT_F16_ 0x200    /* FMLAL */
#define MIXPREC_UNIT_VBMI_ 0x400   /* AVX512_VBMI */
#define MIXPREC_UNIT_AROUND_ 0x800 /* one core writes more around its caches than through them */
#define MIXPREC_UNIT_PAIRS_ 0x1000 /* AVX512_BF16's products of pairs are mixprec_is_fused_, and twice as fast as FMA */
#define MIXPREC_UNIT_AMD_ 0x2000   /* what is read once is better prefetched past L2, to L1 alone */
#define MIXPREC_UNIT_AMX_ 0x4000   /* AMX-BF16, its registers saved by the system; not once it has refused them */
#define MIXPREC_UNIT_AMX_ALLOWED_ 0x8000 /* and this process may use them */
#define MIXPREC_UNIT_NEAR_ 0x10000       /* what is only read is better prefetched a few lines ahead than a page */

#if defined(MIXPREC_HAS_AVX2_)
static void mixprec_cpuid_(unsigned leaf, unsigned subleaf, unsigned r[4]) {
#if defined(_MSC_VER) && !defined(__clang__)
    int registers[4];
    __cpuidex(registers, (int)leaf, (int)subleaf);
    r[0] = (unsigned)registers[0];
    r[1] = (unsigned)registers[1];
    r[2] = (unsigned)registers[2];
    r[3] = (unsigned)registers[3];
#else
    __cpuid_count(leaf, subleaf, r[0], r[1], r[2], r[3]);
#endif
}

/* The registers that the operating system saves: XCR0. Only after CPUID has shown OSXSAVE. */
static unsigned mixprec_xcr0_(void) {
#if defined(_MSC_VER) && !defined(__clang__)
    return (unsigned)_xgetbv(0);
#else
    unsigned low;
    __asm__ __volatile__("xgetbv" : "=a"(low) : "c"(0) : "edx");
    return low;
#endif
}

#if defined(MIXPREC_HAS_AVX512_BF16_)
#define MIXPREC_AVX512_BF16_ MIXPREC_TARGET_("avx2,f16c,fma,popcnt,avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")
/* Does VDPBF16PS round as two fused multiply-adds do, of the upper numbers, then of the lower? So it is documented
   (Intel's Software Developer's Manual, volume 2C), and so Zen 4 does. Each lane tells it from another order, from one
   rounding for both products, or from a sum that is cut off where the numbers are far apart. */
static MIXPREC_AVX512_BF16_ int mixprec_is_fused_(void) {
    static const uint32_t sum[4] = {0x3F800000, 0x4B800000, 0x4B800001, 0xF1800000}; /* 1, 2^24, 2^24 + 2, -2^100 */
    /* Upper and lower: 2^-24 + 2^-31 and 2^-24; 1 and 1; 1 and -1; 2^50 and 2^-60. */
    static const uint32_t a[4] = {0x33813380, 0x3F803F80, 0x3F80BF80, 0x58802180};
    static const uint32_t b[4] = {0x3F803F80, 0x3F803F80, 0x3F803F80, 0x58805880};        /* 1; 2^50 */
    static const uint32_t expected[4] = {0x3F800002, 0x4B800000, 0x4B800002, 0x3A800000}; /* the last: 2^-10 */
    const __m128i pairs_a = _mm_loadu_si128((const __m128i *)(const void *)a);
    const __m128i pairs_b = _mm_loadu_si128((const __m128i *)(const void *)b);
    __m512i sums = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)sum));
    sums = _mm512_castps_si512(_mm512_dpbf16_ps(_mm512_castsi512_ps(sums), (__m512bh)_mm512_broadcast_i32x4(pairs_a),
                                                (__m512bh)_mm512_broadcast_i32x4(pairs_b)));
    return _mm512_cmpeq_epi32_mask(
               sums, _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)expected))) == 0xFFFF;
}
#endif

/* Bits as in Intel's Software Developer's Manual, volume 2A, CPUID. */
static int mixprec_detect_(void) {
    unsigned r[4], leaf1_c, leaf7_b, leaf7_c, leaf7_d, subleaves, xcr0;
    int amd, around, units;
    const unsigned need1 = 1u << 12 | 1u << 27 | 1u << 28 | 1u << 29;   /* FMA, OSXSAVE, AVX, F16C */
    const unsigned need512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31; /* AVX-512 F, DQ, BW, VL */
    mixprec_cpuid_(0, 0, r);
    if (r[0] < 7)
        return MIXPREC_ISA_C;
    amd = r[1] == 0x68747541 && r[3] == 0x69746E65 && r[2] == 0x444D4163 ? MIXPREC_UNIT_AMD_ : 0; /* AuthenticAMD */
    mixprec_cpuid_(1, 0, r);
    leaf1_c = r[2];
    if (amd && (r[0] >> 20 & 0xFF) < 26 - 15) /* before family 26: Zen 4, where it was measured, is 25, Zen 5 is 26 */
        amd |= MIXPREC_UNIT_NEAR_;
    mixprec_cpuid_(7, 0, r);
    subleaves = r[0];
    leaf7_b = r[1];
    leaf7_c = r[2];
    leaf7_d = r[3];
    /* See mixprec_streams_. Of Intel's, those with AVX512_FP16: on Skylake-SP such stores lost at every size. */
    around = amd || leaf7_d & 1u << 23 ? MIXPREC_UNIT_AROUND_ : 0;
    if ((leaf1_c & need1) != need1 || !(leaf7_b & 1u << 5))
        return MIXPREC_ISA_C;
    xcr0 = mixprec_xcr0_();
    if ((xcr0 & 0x06u) != 0x06u) /* XMM, YMM */
        return MIXPREC_ISA_C;
#if defined(MIXPREC_HAS_AVX512_)
    if ((leaf7_b & need512) == need512 && (xcr0 & 0xE6u) == 0xE6u) { /* and opmask, ZMM */
        r[0] = 0;
        if (subleaves >= 1)
            mixprec_cpuid_(7, 1, r);
        units = amd | around | (leaf7_c & 1u << 1 ? MIXPREC_UNIT_VBMI_ : 0);
#if defined(MIXPREC_HAS_AVX512_BF16_)
        /* Emerald Rapids takes two cycles for a VDPBF16PS, in which it does four FMAs: 1024^3 ran at 84 GFLOP/s by the
           one, 155 by the other. Zen 4 does as many of either. */
        if (r[0] & 1u << 5)
            units |= MIXPREC_UNIT_BF16_ | (amd && mixprec_is_fused_() ? MIXPREC_UNIT_PAIRS_ : 0);
#endif
#if defined(MIXPREC_HAS_AMX_)
        if ((leaf7_d & 0x1400000u) == 0x1400000u && (xcr0 & 0x60000u) == 0x60000u) /* AMX-BF16, AMX-TILE; both parts */
            units |= MIXPREC_UNIT_AMX_;
#endif
        return MIXPREC_ISA_AVX512 | units;
    }
#else
    (void)need512;
    (void)leaf7_c;
    (void)subleaves;
    (void)leaf7_d;
    (void)units;
#endif
    return MIXPREC_ISA_AVX2 | amd | around;
}

/* CPUID traps to the hypervisor on virtual machines, so it is asked once. Threads that race find the same value, and
   what mixprec_may_use_amx_ has made of it by then stays. */
static int mixprec_features_found_;
MIXPREC_INLINE int mixprec_known_features_(void) {
#if defined(_MSC_VER) && !defined(__clang__)
    return *(volatile int *)&mixprec_features_found_;
#else
    return __atomic_load_n(&mixprec_features_found_, __ATOMIC_RELAXED);
#endif
}
static int mixprec_features_(void) {
    int features = mixprec_known_features_();
    if (!features) {
#if defined(_MSC_VER) && !defined(__clang__)
        *(volatile int *)&mixprec_features_found_ = features = mixprec_detect_();
#else
        const int found = mixprec_detect_();
        if (__atomic_compare_exchange_n(&mixprec_features_found_, &features, found, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            features = found;
#endif
    }
    return features;
}
static mixprec_isa mixprec_cpu_(void) {
    return (mixprec_isa)(mixprec_features_() & 0xFF);
}
#if defined(MIXPREC_HAS_AMX_)
/* Asks Linux, once, for AMX's registers, which all threads and children of the process may then use: arch_prctl, number
   158, with ARCH_REQ_XCOMP_PERM and XFEATURE_XTILEDATA (Linux's Documentation/arch/x86/xstate.rst). By hand, for the C
   library's would set errno. */
static int mixprec_may_use_amx_(void) {
    int features = mixprec_features_();
    if (features & MIXPREC_UNIT_AMX_ && !(features & MIXPREC_UNIT_AMX_ALLOWED_)) {
        long result = 158;
        __asm__ __volatile__("syscall" : "+a"(result) : "D"(0x1023l), "S"(18l) : "rcx", "r11", "memory");
        features = result ? features & ~MIXPREC_UNIT_AMX_ : features | MIXPREC_UNIT_AMX_ALLOWED_;
        __atomic_store_n(&mixprec_features_found_, features, __ATOMIC_RELAXED);
    }
    return features & MIXPREC_UNIT_AMX_;
}
#endif
/* For the loops of kernels, which run only after all that has been asked: nothing to call. */
MIXPREC_INLINE int mixprec_is_amd_(void) {
    return mixprec_known_features_() & MIXPREC_UNIT_AMD_;
}
#elif defined(MIXPREC_HAS_NEON_)
static mixprec_isa mixprec_cpu_(void) {
    return MIXPREC_ISA_NEON; /* part of the base AArch64 architecture */
}
#if defined(MIXPREC_HAS_NEON_NATIVE_)
/* Bits as in Linux's arch/arm64/include/uapi/asm/hwcap.h: HWCAP_ASIMDFHM, HWCAP2_BF16. */
static int mixprec_features_(void) {
    int saved = errno, features = 0; /* a kernel that does not know AT_HWCAP2 sets errno */
    if (getauxval(AT_HWCAP) & 1ul << 23)
        features |= MIXPREC_UNIT_F16_;
    if (getauxval(AT_HWCAP2) & 1ul << 14)
        features |= MIXPREC_UNIT_BF16_;
    errno = saved;
    return features;
}
#endif
#else
static mixprec_isa mixprec_cpu_(void) {
    return MIXPREC_ISA_C;
}
#endif

#ifndef MIXPREC_NO_QUANT
/* Bytes of a row that mixprec_quantize looks at together, where a block has no more: few enough to stay in L1, and for
   the CPU to fetch the next ones meanwhile. In DRAM Zen 4 takes 12 % longer with twice as many as here, 5 % with half;
   Emerald Rapids 2 to 8 % longer with half. One and a half strips ahead are prefetched: on Zen 4 blocks of 128 take
   10 % (bf16) and 25 % (f32) less so than two strips ahead and in all caches, which took up to 15 % less than no
   prefetch on Zen 5. */
MIXPREC_INLINE size_t mixprec_strip_(void) {
#if defined(MIXPREC_HAS_AVX2_)
    if (!mixprec_is_amd_())
        return 8192;
#endif
    return 4096;
}
#endif

/* ================================================================================================================== */
/* [VEC-C] Kernels in portable C: any n, any CPU                                                                      */
/* ================================================================================================================== */

MIXPREC_FLATTEN_ void mixprec_load_c_(float *dst, const void *src, mixprec_dtype type, size_t n, int around) {
    size_t i;
    (void)around;
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
#undef MIXPREC_ROW_
    case MIXPREC_I8:
        for (i = 0; i < n; i++)
            dst[i] = (float)((const mixprec_i8 *)src)[i].bits;
        break;
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

#ifndef MIXPREC_NO_LAYERS
static void mixprec_randoms_c_(uint32_t *words, uint64_t seed, uint64_t index, size_t n) {
    size_t i;
    for (i = 0; i < n; i += 2)
        mixprec_random_words_(seed, (index + i) >> 1, &words[i], &words[i + 1]);
}
#endif

/* Threefry's 20 rounds, for vectors of any width: MIXPREC_MIX_ and MIXPREC_INJECT_ are the function's own. */
#define MIXPREC_ROUNDS_(step)                                                                                          \
    for (step = 1;; step++) {                                                                                          \
        MIXPREC_MIX_(13);                                                                                              \
        MIXPREC_MIX_(15);                                                                                              \
        MIXPREC_MIX_(26);                                                                                              \
        MIXPREC_MIX_(6);                                                                                               \
        MIXPREC_INJECT_;                                                                                               \
        if (++step > 5)                                                                                                \
            break;                                                                                                     \
        MIXPREC_MIX_(17);                                                                                              \
        MIXPREC_MIX_(29);                                                                                              \
        MIXPREC_MIX_(16);                                                                                              \
        MIXPREC_MIX_(24);                                                                                              \
        MIXPREC_INJECT_;                                                                                               \
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

/* The bits of the largest magnitude that the vector paths round to nearest even by themselves, other than NaN: Inf
   saturates with finite numbers, but for MIXPREC_OVERFLOW_SATURATE_KEEP_INF. */
MIXPREC_INLINE int32_t mixprec_ordinary_(const mixprec_how_ *how) {
    return how->overflow == MIXPREC_OVERFLOW_SATURATE_KEEP_INF ? 0x7F7FFFFF : 0x7F800000;
}

/* What element i = 0, 1, 2 ... from `index` is rounded with: random bits or nothing. Both words of a block at once. */
MIXPREC_INLINE uint32_t mixprec_bits_for_(uint32_t words[2], const mixprec_how_ *how, uint64_t index, size_t i) {
    if (how->round != MIXPREC_ROUND_STOCHASTIC)
        return 0;
    index += i;
    if (i == 0 || index % 2 == 0)
        mixprec_random_words_(how->seed, index / 2, &words[0], &words[1]);
    return words[index % 2];
}

/* The codes of any format but f64. */
MIXPREC_FLATTEN_ void mixprec_encode_c_(uint32_t *codes, mixprec_dtype type, const float *src, size_t n,
                                        const mixprec_how_ *how, uint64_t index) {
    const mixprec_layout_ *to = mixprec_layout_of_(type);
    uint32_t words[2];
    size_t i;
    for (i = 0; i < n; i++) {
        const uint32_t bits = mixprec_f32_bits_(src[i]), random = mixprec_bits_for_(words, how, index, i);
        if (to)
            codes[i] = mixprec_narrow_f32_(bits, to, how->round, how->overflow, random);
        else if (type == MIXPREC_E8M0)
            codes[i] = mixprec_narrow_e8m0_(mixprec_f32_bits_to_f64_bits_(bits), how->round, how->overflow, random);
        else
            codes[i] = (uint32_t)mixprec_narrow_i8_(mixprec_f32_bits_to_f64_bits_(bits), how->round, random);
    }
}

/* Codes to where they belong; codes[n] may be written. */
MIXPREC_NOINLINE_ void mixprec_put_codes_(void *dst, mixprec_dtype type, uint32_t *codes, size_t n) {
    size_t i;
    codes[n] = 0;
    if (type == MIXPREC_E2M1)
        for (i = 0; i < n; i += 2)
            ((uint8_t *)dst)[i / 2] = (uint8_t)(codes[i] | codes[i + 1] << 4);
    else if (mixprec_size_of_(type) == 2)
        for (i = 0; i < n; i++)
            ((mixprec_f16 *)dst)[i].bits = (uint16_t)codes[i];
    else
        for (i = 0; i < n; i++)
            ((uint8_t *)dst)[i] = (uint8_t)codes[i];
}

MIXPREC_FLATTEN_ void mixprec_store_c_(void *dst, mixprec_dtype type, const float *src, size_t n,
                                       const mixprec_how_ *how) {
    const int plain = how->round == MIXPREC_ROUND_NEAREST_EVEN && how->overflow != MIXPREC_OVERFLOW_SATURATE_KEEP_INF;
    size_t i, count;
    if (type == MIXPREC_F64) {
        for (i = 0; i < n; i++)
            ((double *)dst)[i] = mixprec_f64_from_bits_(mixprec_f32_bits_to_f64_bits_(mixprec_f32_bits_(src[i])));
#define MIXPREC_ROW_(name, dtype)                                                                                      \
    }                                                                                                                  \
    else if (plain && type == dtype) {                                                                                 \
        if (how->overflow == MIXPREC_OVERFLOW_IEEE)                                                                    \
            for (i = 0; i < n; i++)                                                                                    \
                ((mixprec_##name *)dst)[i] = mixprec_f32_to_##name(src[i]);                                            \
        else                                                                                                           \
            for (i = 0; i < n; i++)                                                                                    \
                ((mixprec_##name *)dst)[i] = mixprec_f32_to_##name##_sat(src[i]);
        MIXPREC_ROW_(f16, MIXPREC_F16)
        MIXPREC_ROW_(bf16, MIXPREC_BF16)
        MIXPREC_ROW_(e4m3, MIXPREC_E4M3)
        MIXPREC_ROW_(e5m2, MIXPREC_E5M2)
#undef MIXPREC_ROW_
    } else
        for (i = 0; i < n; i += count) {
            uint32_t codes[MIXPREC_UNIT_ + 1];
            count = mixprec_min_(n - i, MIXPREC_UNIT_);
            mixprec_encode_c_(codes, type, src + i, count, how, how->index + i);
            mixprec_put_codes_((uint8_t *)dst + mixprec_bytes_of_(type, i), type, codes, count);
        }
}

#if defined(MIXPREC_HAS_AVX2_) || defined(MIXPREC_HAS_NEON_)
/* What the general encoders of vectors know, but for E8M0: int8, too, as a format whose subnormals are the integers up
   to 127, and its first normal numbers those up to 255. */
static const mixprec_layout_ *mixprec_encoded_layout_of_(mixprec_dtype type) {
    static const mixprec_layout_ integers = {7, -6, 0x80, 127, 127, 0, MIXPREC_INTEGER_};
    return type == MIXPREC_I8 ? &integers : mixprec_layout_of_(type);
}
#endif

static int mixprec_unscale_c_(float *dst, const float *src, size_t n, float factor, int around) {
    uint32_t found = 0;
    size_t i;
    (void)around;
    for (i = 0; i < n; i++) {
        dst[i] = mixprec_times_f32_(src[i], factor); /* Inf stays Inf: the factor is neither 0 nor Inf */
        found |= (mixprec_f32_bits_(dst[i]) & 0x7FFFFFFFu) >= 0x7F800000u;
    }
    return (int)found;
}

#ifndef MIXPREC_NO_GEMM
#define MIXPREC_TILE_STREAM_ 2                        /* what mixprec_kernels_.tile's `first` may be, */
#define MIXPREC_TILE_STREAM_BYTES_ ((size_t)16 << 20) /* where C has as many bytes */
#define MIXPREC_TILE_AHEAD_ 16                        /* bytes that it prefetches with each of k */
#define MIXPREC_SMALL_ROWS_ 3 /* of a product with kernels of its own: see mixprec_kernels_.exact_columns */

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

static void mixprec_tile_c_(size_t rows, size_t columns, size_t depth, const void *a, const void *b, const void *ahead,
                            void *t, size_t ldt, int first, int wide) {
    (void)ahead;
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
            mixprec_load_c_((float *)dst + p * width, from + p * ld * size, type, count, 0);
    for (i = 0; i < count && !along; i++)
        for (p = 0; p < depth; p += 16) {
            union {
                double wide[16];
                float narrow[16];
            } run; /* 16 elements of a row */
            size_t n = mixprec_min_(16, depth - p);
            if (wide || type == MIXPREC_F32)
                mixprec_copy_(&run, from + (i * ld + p) * size, n * size);
            else
                mixprec_load_c_(run.narrow, from + (i * ld + p) * size, type, n, 0);
            for (q = 0; q < n; q++)
                if (wide)
                    ((double *)dst)[(p + q) * width + i] = run.wide[q];
                else
                    ((float *)dst)[(p + q) * width + i] = run.narrow[q];
        }
    for (p = 0; p < depth; p++)
        for (i = count; i < width; i++)
            if (wide)
                ((double *)dst)[p * width + i] = 0;
            else
                ((float *)dst)[p * width + i] = 0;
}

#if defined(MIXPREC_HAS_FEW_)
/* What `across` needs at edges: at most 64 bytes of each of `height` rows of B, `columns` of which are there, in lines
   of 64, with zeros for rows and bytes that are not there; */
static void mixprec_across_fill_part_(char *line, size_t height, const char *b, size_t stride, size_t columns,
                                      size_t bytes) {
    size_t i, k;
    for (i = 0; i < height; i++, line += 64)
        if (i < columns && bytes == 64) /* a constant size becomes a few moves */
            mixprec_copy_(line, b + i * stride, 64);
        else {
            for (k = 0; k < 64; k++)
                line[k] = 0;
            mixprec_copy_(line, b + i * stride, i < columns ? bytes : 0);
        }
}
/* and `bytes` of the numbers of A, followed by -0: times the zeros of B that changes no sum, not even -0. */
static const char *mixprec_across_edge_(double *edge, const char *a, size_t bytes, size_t room, int wide) {
    float *const narrow = (float *)(void *)edge;
    size_t i;
    for (i = 0; i < room / 8 && wide; i++)
        edge[i] = -0.0;
    for (i = 0; i < room / 4 && !wide; i++)
        narrow[i] = -0.0f;
    mixprec_copy_(edge, a, bytes);
    return (const char *)edge;
}
#endif
#endif

#ifndef MIXPREC_NO_CONVERT
/* Statistics from f64, by the steps from fp32; but what overflows becomes the largest number on its way to being
   rounded. */
typedef struct mixprec_tally_wide_ {
    double power, split, least_unit, max, vanishing, normal;
} mixprec_tally_wide_;

MIXPREC_INLINE mixprec_tally_wide_ mixprec_tally_wide_of_(const mixprec_tally_ *t) {
    const uint64_t min_normal = mixprec_f32_bits_to_f64_bits_((uint32_t)t->min_normal);
    mixprec_tally_wide_ p;
    p.power = (double)((int64_t)1 << (t->shift + 29));
    p.split = p.power - 1;
    p.least_unit = mixprec_f64_from_bits_(min_normal | (uint64_t)1 << 51);
    p.max = mixprec_f64_from_bits_(mixprec_f32_bits_to_f64_bits_((uint32_t)t->max));
    p.vanishing = t->wide_vanishing;
    p.normal = t->wide_normal;
    return p;
}
#endif

/* ---- reductions and optimisers: any n ---- */

#if !defined(MIXPREC_NO_REDUCE) || !defined(MIXPREC_NO_LAYERS)
static void mixprec_reduce_c_(double *lanes, const void *x, const void *y, mixprec_dtype type, size_t n,
                              mixprec_reduction reduction, double center) {
    const size_t size = mixprec_size_of_(type);
    size_t i, j, count;
    for (i = 0; i < n; i += count) {
        float block_x[MIXPREC_LANES_], block_y[MIXPREC_LANES_];
        const float *p = (const float *)x + i, *q = y ? (const float *)y + i : NULL;
        count = mixprec_min_(n - i, MIXPREC_LANES_);
        if (type != MIXPREC_F32) {
            mixprec_load_c_(block_x, (const char *)x + i * size, type, count, 0);
            p = block_x;
            if (reduction == MIXPREC_DOT)
                mixprec_load_c_(block_y, (const char *)y + i * size, type, count, 0);
            q = block_y;
        }
        for (j = 0; j < count; j++) {
            double term = (double)p[j];
            if (reduction == MIXPREC_SUM_ABS)
                term = (double)mixprec_f32_from_bits_(mixprec_f32_bits_(p[j]) & 0x7FFFFFFFu);
            else if (reduction == MIXPREC_DOT)
                term = mixprec_times_(term, (double)q[j]);
            else if (reduction == MIXPREC_SUM_SQUARES) {
                term -= center;
                MIXPREC_KEEP_(term);
                term = mixprec_times_(term, term);
            }
            lanes[j] += term;
        }
    }
}

/* The sum of the lanes: the tree of mixprec_reduce. Over memory, whose sums -ffast-math does not reorder; of loops of
   constant length gcc -O2 makes vectors. */
MIXPREC_NOINLINE_ double mixprec_lanes_sum_(double *lanes) {
    int i;
    for (i = 0; i < 16; i++)
        lanes[i] += lanes[i + 16];
    for (i = 0; i < 8; i++)
        lanes[i] += lanes[i + 8];
    for (i = 0; i < 4; i++)
        lanes[i] += lanes[i + 4];
    for (i = 0; i < 2; i++)
        lanes[i] += lanes[i + 2];
    return lanes[0] + lanes[1];
}

/* Fewer elements than there are lanes: but for a few, with zeros after them by a kernel for whole groups. For the
   sum of 31 the portable one takes 40 ns longer (Zen 4). A lane is never -0, so that zeros change nothing, unless they
   lie off center. */
MIXPREC_NOINLINE_ void mixprec_reduce_rest_(void (*groups)(double *lanes, const void *x, const void *y,
                                                           mixprec_dtype type, size_t n, mixprec_reduction reduction,
                                                           double center),
                                            double *lanes, const char *x, const char *y, mixprec_dtype type, size_t n,
                                            mixprec_reduction reduction, double center) {
    const size_t bytes = n * mixprec_size_of_(type);
    float p[MIXPREC_LANES_], q[MIXPREC_LANES_];
    double kept[MIXPREC_LANES_];
    if (n < 8) {
        mixprec_reduce_c_(lanes, x, y, type, n, reduction, center);
        return;
    }
    mixprec_clear_(p, sizeof p);
    mixprec_copy_(p, x, bytes);
    if (reduction == MIXPREC_DOT) {
        mixprec_clear_(q, sizeof q);
        mixprec_copy_(q, y, bytes);
    }
    if (reduction != MIXPREC_SUM_SQUARES) {
        groups(lanes, p, reduction == MIXPREC_DOT ? q : NULL, type, MIXPREC_LANES_, reduction, center);
        return;
    }
    mixprec_copy_(kept, lanes, sizeof kept);
    groups(kept, p, NULL, type, MIXPREC_LANES_, reduction, center);
    mixprec_copy_(lanes, kept, n * sizeof *lanes);
}

/* mixprec_reduce_<isa>_ by mixprec_reduce_as_<isa>_, which reads whole groups of lanes of one dtype. */
#define MIXPREC_REDUCE_ROW_(isa, dtype)                                                                                \
    case dtype:                                                                                                        \
        if (reduction == MIXPREC_DOT)                                                                                  \
            mixprec_reduce_as_##isa##_(lanes, p, q, dtype, n, MIXPREC_DOT, magnitude, 0, center);                      \
        else if (reduction == MIXPREC_SUM_SQUARES)                                                                     \
            mixprec_reduce_as_##isa##_(lanes, p, q, dtype, n, MIXPREC_SUM_SQUARES, magnitude, 0, center);              \
        else                                                                                                           \
            mixprec_reduce_as_##isa##_(lanes, p, q, dtype, n, MIXPREC_SUM, magnitude, 0, center);                      \
        break;
#define MIXPREC_REDUCE_(isa, target)                                                                                   \
    target static void mixprec_reduce_groups_##isa##_(double *lanes, const void *x, const void *y, mixprec_dtype type, \
                                                      size_t n, mixprec_reduction reduction, double center) {          \
        const int centered = reduction == MIXPREC_SUM_SQUARES && !mixprec_is_zero_(center);                            \
        const uint32_t magnitude = reduction == MIXPREC_SUM_ABS ? 0x7FFFFFFFu : 0xFFFFFFFFu;                           \
        const char *p = (const char *)x, *q = (const char *)y;                                                         \
        if (centered)                                                                                                  \
            mixprec_reduce_as_##isa##_(lanes, p, q, MIXPREC_F32, n, MIXPREC_SUM_SQUARES, magnitude, 1, center);        \
        else                                                                                                           \
            switch (type) {                                                                                            \
                MIXPREC_REDUCE_ROW_(isa, MIXPREC_F32)                                                                  \
                MIXPREC_REDUCE_ROW_(isa, MIXPREC_F16)                                                                  \
                MIXPREC_REDUCE_ROW_(isa, MIXPREC_BF16)                                                                 \
            default: break;                                                                                            \
            }                                                                                                          \
    }                                                                                                                  \
    static void mixprec_reduce_##isa##_(double *lanes, const void *x, const void *y, mixprec_dtype type, size_t n,     \
                                        mixprec_reduction reduction, double center) {                                  \
        const size_t whole = n / MIXPREC_LANES_ * MIXPREC_LANES_, bytes = whole * mixprec_size_of_(type);              \
        if (whole)                                                                                                     \
            mixprec_reduce_groups_##isa##_(lanes, x, y, type, whole, reduction, center);                               \
        if (n != whole)                                                                                                \
            mixprec_reduce_rest_(mixprec_reduce_groups_##isa##_, lanes, (const char *)x + bytes,                       \
                                 y ? (const char *)y + bytes : NULL, type, n - whole, reduction, center);              \
    }
#endif

#if !defined(MIXPREC_NO_REDUCE) || !defined(MIXPREC_NO_QUANT)
/* *amax = the larger of it and the fp32 bits of a code without its sign. */
static void mixprec_larger_amax_(uint32_t *amax, uint32_t code, mixprec_dtype type) {
    const uint32_t bits = type == MIXPREC_F32 ? code : mixprec_widen_(code, mixprec_layout_of_(type));
    *amax = bits > *amax ? bits : *amax;
}

static void mixprec_amax_c_(uint32_t *amax, const void *x, mixprec_dtype type, size_t n, size_t block) {
    const size_t size = mixprec_size_of_(type);
    size_t i, end;
    for (i = 0; i < n; amax++) {
        uint32_t largest = 0;
        for (end = i + mixprec_min_(n - i, block); i < end; i++) {
            uint32_t code = size == 4   ? mixprec_f32_bits_(((const float *)x)[i]) & 0x7FFFFFFFu
                            : size == 2 ? ((const mixprec_f16 *)x)[i].bits & 0x7FFFu
                                        : ((const uint8_t *)x)[i] & 0x7Fu;
            largest = code > largest ? code : largest;
        }
        mixprec_larger_amax_(amax, largest, type);
    }
}

/* The kernel `amax` from mixprec_amax_as_<isa>_, a loop for each size of codes. */
#define MIXPREC_AMAX_(isa, target)                                                                                     \
    target static void mixprec_amax_##isa##_(uint32_t *amax, const void *x, mixprec_dtype type, size_t n,              \
                                             size_t block) {                                                           \
        const size_t size = mixprec_size_of_(type);                                                                    \
        if (size == 4)                                                                                                 \
            mixprec_amax_as_##isa##_(amax, (const char *)x, MIXPREC_F32, 4, n, block);                                 \
        else if (size == 2)                                                                                            \
            mixprec_amax_as_##isa##_(amax, (const char *)x, type, 2, n, block);                                        \
        else                                                                                                           \
            mixprec_amax_as_##isa##_(amax, (const char *)x, type, 1, n, block);                                        \
    }
#endif

#ifndef MIXPREC_NO_QUANT
static void mixprec_scale_blocks_c_(float *dst, const float *src, size_t n, size_t block, size_t first,
                                    const float *factors) {
    size_t i, end;
    for (i = 0; i < n; first = 0, factors++)
        for (end = i + mixprec_min_(n - i, block - first); i < end; i++)
            dst[i] = mixprec_times_f32_(src[i], *factors);
}
#endif

#ifndef MIXPREC_NO_OPTIM
static void mixprec_adam_c_(float *w, float *m, float *v, const float *grad, size_t n, const mixprec_step_ *s) {
    size_t i;
    for (i = 0; i < n; i++) {
        float g = mixprec_product_f32_(mixprec_product_f32_(grad[i], s->inverse_scale), s->clip), denominator;
        float weight = mixprec_product_f32_(w[i], s->keep);
        if (s->decay)
            g = mixprec_sum_f32_(g, mixprec_product_f32_(s->weight_decay, weight));
        m[i] = mixprec_sum_f32_(mixprec_product_f32_(s->beta1, m[i]), mixprec_product_f32_(s->rest1, g));
        v[i] = mixprec_sum_f32_(mixprec_product_f32_(s->beta2, v[i]),
                                mixprec_product_f32_(mixprec_product_f32_(s->rest2, g), g));
        denominator = mixprec_sum_f32_(mixprec_quotient_f32_(mixprec_sqrt_f32_(v[i]), s->correction), s->epsilon);
        w[i] = mixprec_sum_f32_(weight, -mixprec_quotient_f32_(mixprec_product_f32_(s->rate, m[i]), denominator));
    }
}

static void mixprec_sgd_c_(float *w, float *m, float *v, const float *grad, size_t n, const mixprec_step_ *s) {
    size_t i;
    (void)v;
    for (i = 0; i < n; i++) {
        float g = mixprec_product_f32_(mixprec_product_f32_(grad[i], s->inverse_scale), s->clip);
        if (s->decay)
            g = mixprec_sum_f32_(g, mixprec_product_f32_(s->weight_decay, w[i]));
        if (m) {
            m[i] = s->first ? g
                            : mixprec_sum_f32_(mixprec_product_f32_(s->beta1, m[i]), mixprec_product_f32_(s->rest1, g));
            g = s->nesterov ? mixprec_sum_f32_(g, mixprec_product_f32_(s->beta1, m[i])) : m[i];
        }
        w[i] = mixprec_sum_f32_(w[i], -mixprec_product_f32_(s->rate, g));
    }
}

static void mixprec_accumulate_c_(float *sum, const float *x, size_t n, float factor, int in_dram) {
    size_t i;
    (void)in_dram;
    for (i = 0; i < n; i++)
        sum[i] = mixprec_sum_f32_(sum[i], mixprec_product_f32_(x[i], factor));
}
#endif

/* ================================================================================================================== */
/* [VEC-AVX2] Kernels for AVX2 + F16C + FMA                                                                           */
/* ================================================================================================================== */

#if defined(MIXPREC_HAS_AVX2_)
#define MIXPREC_AVX2_ MIXPREC_TARGET_("avx2,f16c,fma,popcnt")

/* Prefetches `bytes` that are read once, perhaps outside of all arrays: on AMD to L1 alone, with which norms and
   statistics in DRAM take 5 to 15 % less on Zen 4 than with all caches. On Emerald Rapids they take 10 to 25 % more. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_fetch_avx2_(uintptr_t address, const size_t bytes) {
    size_t line;
    if (mixprec_is_amd_())
        MIXPREC_UNROLL_ for (line = 0; line < bytes; line += 64)
            _mm_prefetch((const char *)(address + line), _MM_HINT_NTA);
    else
        MIXPREC_UNROLL_ for (line = 0; line < bytes; line += 64)
            _mm_prefetch((const char *)(address + line), _MM_HINT_T1);
}

/* For the `step` numbers of `size` bytes from src[i] on, of n, prefetches as many that come `lead` bytes later; not in
   arrays of less than a page. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_ahead_by_(size_t lead, const void *src, size_t i, size_t n,
                                                           const size_t step, const size_t size) {
    if (n * size > 4096)
        mixprec_fetch_avx2_((uintptr_t)src + i * size + lead, step * size);
}

/* A page ahead: where the hardware prefetches, it stops at the end of one. Two pages ahead, on Zen 5, narrowing to fp8
   in DRAM took 17 % less, to bf16 6 %, norms of 16 bits 15 %; narrowing to f16, whose loop is short, and norms of f32
   nothing. On Emerald Rapids fp8 takes 20 % less, norms of f32 20 %, of 16 bits 25 %, statistics 20 to 25 %. What goes
   around the caches by way of a buffer comes a page at most at a time and is prefetched already. */
#define MIXPREC_AHEAD_ 4096
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_ahead_(const void *src, size_t i, size_t n, const size_t step,
                                                        const size_t size) {
    mixprec_ahead_by_(MIXPREC_AHEAD_, src, i, n, step, size);
}

/* The lead where nothing is written. On Zen 4 six lines are best: with them norms, statistics and amax in DRAM take 5
   to 20 % less than a page ahead, dot products 25 %. */
MIXPREC_INLINE size_t mixprec_lead_(void) {
    return mixprec_known_features_() & MIXPREC_UNIT_NEAR_ ? 384 : MIXPREC_AHEAD_;
}

/* A vector, and four of floats, to memory. `around`: see mixprec_how_. In short loops a branch for each vector takes up
   to a third of the time. */
#define MIXPREC_PUT_(isa, target, words, floats, bits)                                                                 \
    MIXPREC_FORCE_INLINE_ target void mixprec_put_##isa(void *dst, words x, int around) {                              \
        if (around)                                                                                                    \
            _mm##bits##_stream_si##bits((words *)dst, x);                                                              \
        else                                                                                                           \
            _mm##bits##_storeu_si##bits((words *)dst, x);                                                              \
    }                                                                                                                  \
    MIXPREC_FORCE_INLINE_ target void mixprec_put_ps_##isa(float *dst, floats x, int around) {                         \
        mixprec_put_##isa(dst, _mm##bits##_castps_si##bits(x), around);                                                \
    }                                                                                                                  \
    MIXPREC_FORCE_INLINE_ target void mixprec_put4_##isa(void *dst, const floats x[4], int around) {                   \
        float *to = (float *)dst;                                                                                      \
        int j;                                                                                                         \
        if (around)                                                                                                    \
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) _mm##bits##_stream_ps(to + bits / 32 * j, x[j]);                   \
        else                                                                                                           \
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) _mm##bits##_storeu_ps(to + bits / 32 * j, x[j]);                   \
    }
MIXPREC_PUT_(avx2_, MIXPREC_AVX2_, __m256i, __m256, 256)

/* ---- fp32 from a dtype ---- */

/* b where the bytes of `where` are 0xFF, a where they are 0. gcc 12 makes of the instruction a test for negative bytes,
   and, where they have no sign (-funsigned-char), of that test nothing. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256i mixprec_blend_avx2_(__m256i a, __m256i b, __m256i where) {
#ifdef __CHAR_UNSIGNED__
    return _mm256_or_si256(_mm256_andnot_si256(where, a), _mm256_and_si256(where, b));
#else
    return _mm256_blendv_epi8(a, b, where);
#endif
}

/* Codes of E4M3, shifted left by 7 behind two signs, as half-precision numbers of 1/256 of their value: the exponent
   field keeps its place at the bottom of the wider one. The second sign goes; adding 0x80 carries into bit 14 for NaN
   (0x7F) only, which completes an exponent of all ones. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256i mixprec_e4m3_shifted_avx2_(__m256i x) {
    x = _mm256_and_si256(x, _mm256_set1_epi16((short)0xBF80));
    return _mm256_or_si256(x,
                           _mm256_and_si256(_mm256_add_epi16(x, _mm256_set1_epi16(0x80)), _mm256_set1_epi16(0x4000)));
}
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256i mixprec_e4m3_to_half_avx2_(__m128i codes) {
    return mixprec_e4m3_shifted_avx2_(_mm256_slli_epi16(_mm256_cvtepi8_epi16(codes), 7));
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

/* 8 elements of E5M2FNUZ, which has finite numbers where half precision has Inf; of E8M0; of int8. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256 mixprec_load8_more_avx2_(const uint8_t *p, mixprec_dtype type) {
    const __m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)p);
    const __m256i code = _mm256_cvtepu8_epi32(bytes), magnitude = _mm256_and_si256(code, _mm256_set1_epi32(0x7F));
    if (type == MIXPREC_I8)
        return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
    if (type == MIXPREC_E8M0) {
        const __m256i nan = _mm256_cmpeq_epi32(code, _mm256_set1_epi32(0xFF));
        const __m256i quiet = _mm256_and_si256(nan, _mm256_set1_epi32(0x400000));
        /* 0 is 2^-127, a subnormal number. */
        const __m256i power = _mm256_max_epi32(_mm256_slli_epi32(code, 23), _mm256_set1_epi32(0x400000));
        return _mm256_castsi256_ps(_mm256_or_si256(power, quiet));
    } else {
        const __m256 subnormal = _mm256_mul_ps(_mm256_cvtepi32_ps(magnitude), _mm256_set1_ps(1.0f / 131072));
        const __m256i normal = _mm256_add_epi32(_mm256_slli_epi32(magnitude, 21), _mm256_set1_epi32((127 - 16) << 23));
        const __m256i sign = _mm256_slli_epi32(_mm256_sub_epi32(code, magnitude), 24);
        const __m256i tiny = _mm256_cmpgt_epi32(_mm256_set1_epi32(4), magnitude);
        const __m256i x = _mm256_or_si256(mixprec_blend_avx2_(normal, _mm256_castps_si256(subnormal), tiny), sign);
        const __m256i nan = _mm256_cmpeq_epi32(code, _mm256_set1_epi32(0x80));
        return _mm256_castsi256_ps(mixprec_blend_avx2_(x, _mm256_set1_epi32(0x7FC00000), nan));
    }
}

/* 32 numbers of fp4 as the upper bytes of half precision, whose lower ones are zero. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_e2m1_to_e5m2_avx2_(__m128i x[2], const uint8_t *src) {
    const __m128i table = _mm_setr_epi8(0, 0x38, 0x3C, 0x3E, 0x40, 0x42, 0x44, 0x46, (char)0x80, (char)0xB8, (char)0xBC,
                                        (char)0xBE, (char)0xC0, (char)0xC2, (char)0xC4, (char)0xC6);
    const __m128i pairs = _mm_loadu_si128((const __m128i *)(const void *)src), nibble = _mm_set1_epi8(0xF);
    const __m128i even = _mm_shuffle_epi8(table, _mm_and_si128(pairs, nibble));
    const __m128i odd = _mm_shuffle_epi8(table, _mm_and_si128(_mm_srli_epi16(pairs, 4), nibble));
    x[0] = _mm_unpacklo_epi8(even, odd);
    x[1] = _mm_unpackhi_epi8(even, odd);
}
MIXPREC_AVX2_ static void mixprec_load_e2m1_avx2_(float *dst, const uint8_t *src, size_t n, int around) {
    const __m128i zero = _mm_setzero_si128();
    size_t i;
    int j;
    for (i = 0; i < n; i += 32) {
        __m128i x[2];
        mixprec_e2m1_to_e5m2_avx2_(x, src + i / 2);
        MIXPREC_UNROLL_ for (j = 0; j < 2; j++) {
            mixprec_put_ps_avx2_(dst + i + 16 * j, _mm256_cvtph_ps(_mm_unpacklo_epi8(zero, x[j])), around);
            mixprec_put_ps_avx2_(dst + i + 16 * j + 8, _mm256_cvtph_ps(_mm_unpackhi_epi8(zero, x[j])), around);
        }
    }
}

/* The formats of MIXPREC_MORE_FORMATS_: most like E4M3 by way of half precision, with the layout as data. */
MIXPREC_AVX2_ static void mixprec_load_more_avx2_(float *dst, const void *src, mixprec_dtype type, size_t n,
                                                  int around) {
    const mixprec_layout_ *from = mixprec_layout_of_(type);
    size_t i, j;
    __m256i sign_code, max_code, fnuz;
    __m128i shift, sign_shift;
    __m256 scale;
    switch (type) {
#define MIXPREC_ROW_(dtype)                                                                                            \
    case dtype:                                                                                                        \
        for (i = 0; i < n; i += 8)                                                                                     \
            mixprec_put_ps_avx2_(dst + i, mixprec_load8_more_avx2_((const uint8_t *)src + i, dtype), around);          \
        return;
        MIXPREC_ROW_(MIXPREC_E5M2FNUZ)
        MIXPREC_ROW_(MIXPREC_E8M0)
#undef MIXPREC_ROW_
    case MIXPREC_I8:
        for (i = 0; i < n; i += 32) {
            const uint8_t *codes = (const uint8_t *)src + i;
            __m256 x[4];
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] = mixprec_load8_more_avx2_(codes + 8 * j, MIXPREC_I8);
            mixprec_put4_avx2_(dst + i, x, around);
        }
        return;
    case MIXPREC_E2M1: mixprec_load_e2m1_avx2_(dst, (const uint8_t *)src, n, around); return;
    default: break;
    }
    sign_code = _mm256_set1_epi16((short)from->sign_code);
    max_code = _mm256_set1_epi16((short)from->max_code);
    fnuz = _mm256_set1_epi16(from->special == MIXPREC_FNUZ_ ? -1 : 0);
    shift = _mm_cvtsi32_si128(10 - from->mantissa_bits);
    sign_shift = _mm_cvtsi32_si128(from->sign_code == 0x20u ? 10 : 8);
    scale = _mm256_set1_ps(mixprec_f32_from_bits_((uint32_t)(127 + 15 - from->bias) << 23));
    for (i = 0; i < n; i += 16) {
        __m256i code, magnitude, sign, half, nan;
        code = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)((const uint8_t *)src + i)));
        sign = _mm256_and_si256(code, sign_code);
        magnitude = _mm256_and_si256(code, _mm256_sub_epi16(sign_code, _mm256_set1_epi16(1)));
        half = _mm256_or_si256(_mm256_sll_epi16(magnitude, shift), _mm256_sll_epi16(sign, sign_shift));
        half =
            _mm256_or_si256(half, _mm256_and_si256(_mm256_cmpgt_epi16(magnitude, max_code), _mm256_set1_epi16(0x7C00)));
        nan = _mm256_and_si256(_mm256_cmpeq_epi16(code, sign_code), fnuz);
        half = mixprec_blend_avx2_(half, _mm256_set1_epi16(0x7E00), nan);
        mixprec_put_ps_avx2_(dst + i, _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(half)), scale), around);
        mixprec_put_ps_avx2_(dst + i + 8, _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(half, 1)), scale),
                             around);
    }
}

MIXPREC_AVX2_ static void mixprec_load_avx2_(float *dst, const void *src, mixprec_dtype type, size_t n, int around) {
    const __m256i zero = _mm256_setzero_si256();
    size_t i, j;
    switch (type) {
    case MIXPREC_F64:
        for (i = 0; i < n; i += 32) {
            const double *from = (const double *)src + i;
            __m256 x[4];
            if (around)
                mixprec_ahead_(src, i, n, 32, sizeof *from);
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] = mixprec_load8_avx2_(from + 8 * j, MIXPREC_F64);
            mixprec_put4_avx2_(dst + i, x, around);
        }
        break;
    case MIXPREC_F16:
        for (i = 0; i < n; i += 32) {
            const mixprec_f16 *from = (const mixprec_f16 *)src + i;
            __m256 x[4];
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] = mixprec_load8_avx2_(from + 8 * j, MIXPREC_F16);
            mixprec_put4_avx2_(dst + i, x, around);
        }
        break;
    case MIXPREC_BF16:
        for (i = 0; i < n; i += 64)
            MIXPREC_UNROLL_ for (j = 0; j < 64; j += 16) {
                /* Quiet NaNs while there are 16 to a register. */
                __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)((const mixprec_bf16 *)src + i + j));
                __m256i nan =
                    _mm256_cmpgt_epi16(_mm256_and_si256(x, _mm256_set1_epi16(0x7FFF)), _mm256_set1_epi16(0x7F80));
                x = _mm256_or_si256(x, _mm256_and_si256(nan, _mm256_set1_epi16(0x40)));
                x = _mm256_permute4x64_epi64(x, 0xD8);
                mixprec_put_ps_avx2_(dst + i + j, _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, x)), around);
                mixprec_put_ps_avx2_(dst + i + j + 8, _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, x)), around);
            }
        break;
    case MIXPREC_E4M3:
        for (i = 0; i < n; i += 16) {
            const __m256 scale = _mm256_set1_ps(256.0f);
            __m256i half = mixprec_e4m3_to_half_avx2_(
                _mm_loadu_si128((const __m128i *)(const void *)((const mixprec_e4m3 *)src + i)));
            mixprec_put_ps_avx2_(dst + i, _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(half)), scale), around);
            mixprec_put_ps_avx2_(dst + i + 8, _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(half, 1)), scale),
                                 around);
        }
        break;
    case MIXPREC_E5M2:
        for (i = 0; i < n; i += 16) {
            __m128i x = _mm_loadu_si128((const __m128i *)(const void *)((const mixprec_e5m2 *)src + i));
            mixprec_put_ps_avx2_(dst + i, _mm256_cvtph_ps(_mm_unpacklo_epi8(_mm256_castsi256_si128(zero), x)), around);
            mixprec_put_ps_avx2_(dst + i + 8, _mm256_cvtph_ps(_mm_unpackhi_epi8(_mm256_castsi256_si128(zero), x)),
                                 around);
        }
        break;
    default: mixprec_load_more_avx2_(dst, src, type, n, around); break;
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
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_pack16_avx2_(void *dst, __m256i c0, __m256i c1, int around) {
    mixprec_put_avx2_(dst, _mm256_permute4x64_epi64(_mm256_packus_epi32(c0, c1), 0xD8), around);
}

/* Codes without signs in the low byte of each lane, and the numbers they came from: 32 bytes. Packing with signed
   saturation carries the sign bit of a float all the way to bit 7. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256i mixprec_pack8_avx2_(const __m256i c[4], const __m256i x[4]) {
    __m256i code = _mm256_packus_epi16(_mm256_packus_epi32(c[0], c[1]), _mm256_packus_epi32(c[2], c[3]));
    __m256i sign = _mm256_packs_epi16(_mm256_packs_epi32(x[0], x[1]), _mm256_packs_epi32(x[2], x[3]));
    code = _mm256_or_si256(code, _mm256_and_si256(sign, _mm256_set1_epi8((char)0x80)));
    return _mm256_permutevar8x32_epi32(code, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* As integers, the magnitudes of floats order as the numbers do, with NaN on top: comparing and limiting them that way,
   -ffast-math cannot assume NaN away. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256i mixprec_magnitude_avx2_(__m256i bits) {
    return _mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFFFF));
}

/* fp8 to nearest even by one fused multiply-add, whose sum holds exponent and rounded mantissa of the code (AVX-512:
   the sign, too) at once. To |x| of exponent E, or `least`, the format's least one, if that is larger, it adds 2^(E +
   23 - m) and an even constant, so that the low 16 bits of the sum are the number of units in the last place, |x| /
   2^(E - m), to nearest even, and that constant; the high 16 bits are the sign and E's biased exponent in front of
   zeros. Multiplied with `weights` and added they give 2^(7 - m) times the code, as the constant is meant to, less 2^15
   with a sign. This code goes on beyond the format's range, up to that of Inf, so that it can be limited at last, as a
   byte: to the largest finite number, or to the code of an overflow, which is the next one (fp6 and fp4 have none). The
   sign is the top bit of the byte, but for `odd` formats: in fp6 and fp4 it is lower, and zero of FNUZ has none. */
typedef struct mixprec_narrow_ {
    float least, multiplier;
    int32_t weights, shift, sign_shift;
    uint8_t max_code;
    int odd, unsigned_zero;
} mixprec_narrow_;

MIXPREC_APART_ mixprec_narrow_ mixprec_narrow_of_(mixprec_dtype type, mixprec_overflow overflow) {
    const mixprec_layout_ *to = mixprec_layout_of_(type);
    const uint32_t exponent = (uint32_t)(128 - to->bias), lost = (uint32_t)(23 - to->mantissa_bits);
    mixprec_narrow_ p;
    p.least = mixprec_f32_from_bits_(exponent << 23);
    p.multiplier =
        mixprec_f32_from_bits_((127 + lost) << 23 | ((0u - ((exponent + lost) << to->mantissa_bits)) & 0xFFFF));
    p.weights = 1 << 16 | 1 << (7 - to->mantissa_bits);
    p.shift = 7 - to->mantissa_bits;
    p.max_code = (uint8_t)(overflow == MIXPREC_OVERFLOW_IEEE ? to->overflow_code : to->max_code);
    p.sign_shift = to->sign_code == 0x80u ? 0 : to->sign_code == 0x20u ? 2 : 4;
    p.unsigned_zero = to->special == MIXPREC_FNUZ_;
    p.odd = p.sign_shift || p.unsigned_zero;
    return p;
}

/* 32 bytes of codes to an array; fp4 as pairs, low + 16 high. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_put32_avx2_(void *dst, __m256i codes, int pairs, int around) {
    if (pairs) {
        codes = _mm256_maddubs_epi16(codes, _mm256_set1_epi16(0x1001));
        codes = _mm256_permute4x64_epi64(_mm256_packus_epi16(codes, codes), 0x08);
        if (around)
            _mm_stream_si128((__m128i *)dst, _mm256_castsi256_si128(codes));
        else
            _mm_storeu_si128((__m128i *)dst, _mm256_castsi256_si128(codes));
    } else
        mixprec_put_avx2_(dst, codes, around);
}

/* 32 numbers, none of them NaN. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256i mixprec_narrow32_avx2_(const __m256i x[4], const mixprec_narrow_ *p,
                                                                   const int odd) {
    const __m256i least = _mm256_castps_si256(_mm256_set1_ps(p->least)), weights = _mm256_set1_epi32(p->weights);
    const __m128i shift = _mm_cvtsi32_si128(p->shift);
    __m256i c[4], code, sign;
    int j;
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
        __m256i magnitude = mixprec_magnitude_avx2_(x[j]);
        __m256i unit = _mm256_max_epi32(_mm256_and_si256(magnitude, _mm256_set1_epi32(0x7F800000)), least);
        __m256 sum =
            _mm256_fmadd_ps(_mm256_castsi256_ps(unit), _mm256_set1_ps(p->multiplier), _mm256_castsi256_ps(magnitude));
        c[j] = _mm256_madd_epi16(_mm256_castps_si256(sum), weights);
    }
    code = _mm256_packus_epi16(_mm256_srl_epi16(_mm256_packs_epi32(c[0], c[1]), shift),
                               _mm256_srl_epi16(_mm256_packs_epi32(c[2], c[3]), shift));
    code = _mm256_min_epu8(code, _mm256_set1_epi8((char)p->max_code));
    sign = _mm256_packs_epi16(_mm256_packs_epi32(x[0], x[1]), _mm256_packs_epi32(x[2], x[3]));
    sign = _mm256_and_si256(sign, _mm256_set1_epi8((char)0x80));
    if (odd) {
        const __m256i zero = _mm256_cmpeq_epi8(code, _mm256_setzero_si256());
        sign = _mm256_andnot_si256(_mm256_and_si256(zero, _mm256_set1_epi8((char)-p->unsigned_zero)), sign);
        sign = _mm256_srl_epi16(sign, _mm_cvtsi32_si128(p->sign_shift));
    }
    code = _mm256_or_si256(code, sign);
    return _mm256_permutevar8x32_epi32(code, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* What rounding to bf16 adds to the bits of a positive, or negative, number before the lower half is cut off; to
   nearest even 1 more where the last bit that stays is odd. */
MIXPREC_INLINE int32_t mixprec_bf16_bias_(mixprec_round round, uint32_t sign) {
    return (int32_t)(mixprec_round_threshold_(round, sign, 0, 0) >> 16);
}

/* bfloat16, not NaN. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256i mixprec_encode_bf16_avx2_(__m256i x, const int even, mixprec_round round) {
    const __m256i bias = _mm256_set1_epi32(mixprec_bf16_bias_(round, 0));
    const __m256i negative_bias = _mm256_set1_epi32(mixprec_bf16_bias_(round, 1));
    if (even) {
        const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(x, 16), _mm256_set1_epi32(1));
        x = _mm256_add_epi32(_mm256_add_epi32(x, bias), odd);
    } else
        x = _mm256_add_epi32(x, mixprec_blend_avx2_(bias, negative_bias, _mm256_srai_epi32(x, 31)));
    return _mm256_srli_epi32(x, 16);
}

/* Any format, mode and policy: mixprec_narrow_f32_ eight at a time. */
typedef struct mixprec_encoder_avx2_ {
    __m256i bias, shift, min_shift, mantissa_bits; /* shift: of a normal number */
    __m256i threshold_positive, threshold_negative, odd, sticky;
    __m256i max_code, overflow_positive, overflow_negative, inf_code, nan_code, payload, sign_code;
    int stochastic, special;
} mixprec_encoder_avx2_;

MIXPREC_AVX2_ static mixprec_encoder_avx2_ mixprec_encoder_of_avx2_(mixprec_dtype type, const mixprec_how_ *how) {
    const mixprec_layout_ *to = mixprec_encoded_layout_of_(type);
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
    if (e.special == MIXPREC_INTEGER_)
        e.overflow_negative = _mm256_set1_epi32(128);
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
    __m256i kept = _mm256_srlv_epi32(mantissa, shift), fraction, threshold, code, lost, special, too_large;
    target = _mm256_max_epi32(target, one);
    /* A shift by 32 or more, or by a negative count, gives 0. */
    fraction = _mm256_or_si256(_mm256_sllv_epi32(mantissa, _mm256_sub_epi32(_mm256_set1_epi32(32), shift)),
                               _mm256_srlv_epi32(mantissa, _mm256_sub_epi32(shift, _mm256_set1_epi32(32))));
    lost = _mm256_and_si256(_mm256_cmpgt_epi32(shift, _mm256_set1_epi32(31)),
                            _mm256_cmpgt_epi32(mantissa, _mm256_setzero_si256()));
    fraction = _mm256_or_si256(fraction, _mm256_and_si256(lost, e->sticky));
    threshold = mixprec_blend_avx2_(e->threshold_positive, e->threshold_negative, negative);
    threshold = _mm256_add_epi32(threshold, _mm256_and_si256(kept, e->odd));
    if (e->stochastic)
        threshold = random;
    /* Unsigned comparison: the sum is below the threshold when it carried out. */
    kept = _mm256_sub_epi32(kept, _mm256_cmpgt_epi32(_mm256_xor_si256(threshold, top),
                                                     _mm256_xor_si256(_mm256_add_epi32(fraction, threshold), top)));
    code = _mm256_add_epi32(_mm256_sllv_epi32(_mm256_sub_epi32(target, one), e->mantissa_bits), kept);
    too_large = mixprec_blend_avx2_(e->overflow_positive, e->overflow_negative, negative);
    code = mixprec_blend_avx2_(code, too_large, _mm256_cmpgt_epi32(code, e->max_code));
    special = _mm256_and_si256(_mm256_srlv_epi32(field, e->shift), e->payload);
    special = mixprec_blend_avx2_(_mm256_or_si256(e->nan_code, special),
                                  e->special == MIXPREC_INTEGER_ ? too_large : e->inf_code,
                                  _mm256_cmpeq_epi32(field, _mm256_setzero_si256()));
    code = mixprec_blend_avx2_(code, special, _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7F7FFFFF)));
    if (e->special == MIXPREC_FNUZ_) /* no -0 */
        negative = _mm256_andnot_si256(_mm256_cmpeq_epi32(code, _mm256_setzero_si256()), negative);
    else if (e->special == MIXPREC_FINITE_) /* a NaN becomes +max */
        negative = _mm256_andnot_si256(_mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7F800000)), negative);
    else if (e->special == MIXPREC_INTEGER_)
        return _mm256_and_si256(_mm256_sub_epi32(_mm256_xor_si256(code, negative), negative), _mm256_set1_epi32(0xFF));
    return _mm256_or_si256(code, _mm256_and_si256(negative, e->sign_code));
}

/* mixprec_random_bits of the 64 indices from an even one: both words of 32 blocks. Four vectors of blocks at a time,
   for each round waits for the one before it. */
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
    int step, j;
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
#define MIXPREC_INJECT_                                                                                                \
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {                                                                          \
        x0[j] = _mm256_add_epi32(x0[j], random->key[2 * step]);                                                        \
        x1[j] = _mm256_add_epi32(x1[j], random->key[2 * step + 1]);                                                    \
    }
    MIXPREC_ROUNDS_(step);
#undef MIXPREC_MIX_
#undef MIXPREC_INJECT_
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
        __m256i low = _mm256_unpacklo_epi32(x0[j], x1[j]), high = _mm256_unpackhi_epi32(x0[j], x1[j]);
        words[2 * j] = _mm256_permute2x128_si256(low, high, 0x20);
        words[2 * j + 1] = _mm256_permute2x128_si256(low, high, 0x31);
    }
}

#ifndef MIXPREC_NO_LAYERS
MIXPREC_AVX2_ static void mixprec_randoms_avx2_(uint32_t *words, uint64_t seed, uint64_t index, size_t n) {
    const mixprec_random_avx2_ generator = mixprec_random_of_avx2_(seed);
    __m256i random[8];
    size_t i;
    int j;
    for (i = 0; i < n; i += 64) {
        mixprec_random64_avx2_(random, &generator, index + i);
        MIXPREC_UNROLL_ for (j = 0; j < 8; j++) _mm256_storeu_si256((__m256i *)(void *)(words + i + 8 * j), random[j]);
    }
}
#endif

/* 32 elements, any way. */
MIXPREC_AVX2_ static void mixprec_store32_any_avx2_(void *dst, mixprec_dtype type, const float *src,
                                                    const mixprec_encoder_avx2_ *encoder, const uint32_t *random) {
    __m256i c[4];
    int j;
    for (j = 0; j < 4; j++)
        c[j] = mixprec_encode_any_avx2_(encoder, _mm256_castps_si256(_mm256_loadu_ps(src + 8 * j)),
                                        _mm256_loadu_si256((const __m256i *)(const void *)(random + 8 * j)));
    if (mixprec_size_of_(type) == 2) {
        mixprec_pack16_avx2_(dst, c[0], c[1], 0);
        mixprec_pack16_avx2_((mixprec_f16 *)dst + 16, c[2], c[3], 0);
    } else {
        const __m256i none[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                                 _mm256_setzero_si256()};
        mixprec_put32_avx2_(dst, mixprec_pack8_avx2_(c, none), type == MIXPREC_E2M1, 0);
    }
}

/* The same where that is rare. */
MIXPREC_NOINLINE_ MIXPREC_AVX2_ void mixprec_store32_special_avx2_(void *dst, mixprec_dtype type, const float *src,
                                                                   const mixprec_how_ *how) {
    const mixprec_encoder_avx2_ encoder = mixprec_encoder_of_avx2_(type, how);
    mixprec_store32_any_avx2_(dst, type, src, &encoder, (const uint32_t *)(const void *)src);
}

/* 32 numbers that integers hold, to nearest even; what 8 bits do not hold saturates. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256i mixprec_integers32_avx2_(const __m256i x[4]) {
    __m256i c[4];
    int j;
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) c[j] = _mm256_cvtps_epi32(_mm256_castsi256_ps(x[j]));
    c[0] = _mm256_packs_epi16(_mm256_packs_epi32(c[0], c[1]), _mm256_packs_epi32(c[2], c[3]));
    return _mm256_permutevar8x32_epi32(c[0], _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* Integers to nearest even: limited first, so that the conversion cannot overflow; NaN becomes 0. */
MIXPREC_NOINLINE_ MIXPREC_AVX2_ void mixprec_store_i8_avx2_(int8_t *dst, const float *src, size_t n, int around) {
    size_t i;
    int j;
    for (i = 0; i < n; i += 32) {
        __m256i c[4];
        if (around)
            mixprec_ahead_(src, i, n, 32, sizeof *src);
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
            __m256 x = _mm256_loadu_ps(src + i + 8 * j);
            __m256i nan =
                _mm256_cmpgt_epi32(mixprec_magnitude_avx2_(_mm256_castps_si256(x)), _mm256_set1_epi32(0x7F800000));
            x = _mm256_castsi256_ps(_mm256_andnot_si256(nan, _mm256_castps_si256(x)));
            x = _mm256_max_ps(_mm256_min_ps(x, _mm256_set1_ps(127.0f)), _mm256_set1_ps(-128.0f));
            c[j] = _mm256_castps_si256(x);
        }
        mixprec_put_avx2_(dst + i, mixprec_integers32_avx2_(c), around);
    }
}

/* In any mode but the stochastic one: see mixprec_narrow_e8m0_. A number of two or more bits goes up where what follows
   the first one is above `limit`. */
MIXPREC_NOINLINE_ MIXPREC_AVX2_ void mixprec_store_e8m0_avx2_(uint8_t *dst, const float *src, size_t n,
                                                              const mixprec_how_ *how) {
    const int to_max = how->overflow != MIXPREC_OVERFLOW_IEEE || mixprec_overflow_to_max_(how->round, 0);
    const __m256i limit = _mm256_set1_epi32((int)(~mixprec_round_threshold_(how->round, 0, 1, 0) >> 9));
    const __m256i largest = _mm256_set1_epi32(to_max ? 0xFE : 0xFF), nan = _mm256_set1_epi32(0xFF);
    const __m256i infinity = _mm256_set1_epi32(0x7F800000), zero = _mm256_setzero_si256();
    const __m256i saturate = _mm256_set1_epi32(how->overflow == MIXPREC_OVERFLOW_SATURATE ? -1 : 0);
    const __m256i none[4] = {zero, zero, zero, zero};
    size_t i;
    int j;
    for (i = 0; i < n; i += 32) {
        __m256i c[4];
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
            const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)(src + i + 8 * j));
            const __m256i exponent = _mm256_srli_epi32(x, 23), subnormal = _mm256_cmpeq_epi32(exponent, zero);
            const __m256i least = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x400000), x); /* becomes 2^-127, as it is */
            const __m256i number = _mm256_and_si256(_mm256_cmpgt_epi32(x, zero), _mm256_cmpgt_epi32(infinity, x));
            const __m256i inf = _mm256_cmpeq_epi32(x, infinity);
            __m256i rest = _mm256_add_epi32(x, _mm256_and_si256(x, subnormal)); /* a subnormal's begins a bit later */
            rest = _mm256_andnot_si256(least, _mm256_and_si256(rest, _mm256_set1_epi32(0x7FFFFF)));
            c[j] = _mm256_min_epi32(_mm256_sub_epi32(exponent, _mm256_cmpgt_epi32(rest, limit)), largest);
            c[j] = mixprec_blend_avx2_(_mm256_add_epi32(nan, _mm256_and_si256(inf, saturate)), c[j], number);
        }
        mixprec_put_avx2_(dst + i, mixprec_pack8_avx2_(c, none), 0);
    }
}

/* Formats of 8 bits and fewer to nearest even; 32 elements with a NaN go to the general encoder. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_store_bytes_body_avx2_(char *dst, mixprec_dtype type, const float *src,
                                                                        size_t n, const mixprec_how_ *how,
                                                                        const mixprec_narrow_ *p, const int odd) {
    const int pairs = odd && type == MIXPREC_E2M1;
    const __m256i ordinary = _mm256_set1_epi32(mixprec_ordinary_(how));
    const int around = how->around;
    size_t i;
    int j;
    for (i = 0; i < n; i += 32, dst += pairs ? 16 : 32) {
        __m256i x[4], magnitude[4], largest;
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] =
            _mm256_loadu_si256((const __m256i *)(const void *)(src + i + 8 * j));
        mixprec_ahead_(src, i, n, 32, sizeof *src);
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) magnitude[j] = mixprec_magnitude_avx2_(x[j]);
        largest = _mm256_max_epi32(_mm256_max_epi32(magnitude[0], magnitude[1]),
                                   _mm256_max_epi32(magnitude[2], magnitude[3]));
        if (_mm256_movemask_epi8(_mm256_cmpgt_epi32(largest, ordinary))) {
            mixprec_store32_special_avx2_(dst, type, src + i, how);
        } else
            mixprec_put32_avx2_(dst, mixprec_narrow32_avx2_(x, p, odd), pairs, around);
    }
}
MIXPREC_NOINLINE_ MIXPREC_AVX2_ void mixprec_store_bytes_avx2_(char *dst, mixprec_dtype type, const float *src,
                                                               size_t n, const mixprec_how_ *how) {
    const mixprec_narrow_ p = mixprec_narrow_of_(type, how->overflow);
    if (p.odd)
        mixprec_store_bytes_body_avx2_(dst, type, src, n, how, &p, 1);
    else
        mixprec_store_bytes_body_avx2_(dst, type, src, n, how, &p, 0);
}

/* F16C rounds to nearest even, toward zero, up and down. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m128i mixprec_encode_f16_avx2_(__m256 x, const mixprec_round round) {
    return round == MIXPREC_ROUND_TOWARD_ZERO ? _mm256_cvtps_ph(x, _MM_FROUND_TO_ZERO)
           : round == MIXPREC_ROUND_UP        ? _mm256_cvtps_ph(x, _MM_FROUND_TO_POS_INF)
           : round == MIXPREC_ROUND_DOWN      ? _mm256_cvtps_ph(x, _MM_FROUND_TO_NEG_INF)
                                              : _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
}

/* f16, but for ties away from zero, or bf16. 32 elements with a NaN go to the general encoder, unless f16's conversion
   handles it. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_store_16_bits_avx2_(void *dst, mixprec_dtype type,
                                                                     const mixprec_round round, const float *src,
                                                                     size_t n, int saturate, const mixprec_how_ *how) {
    const __m256i limit = _mm256_set1_epi32(type == MIXPREC_F16 ? 0x477FE000 : 0x7F7F0000); /* the largest */
    const __m256i ordinary = _mm256_set1_epi32(mixprec_ordinary_(how));
    const int around = round == MIXPREC_ROUND_NEAREST_EVEN && how->around;
    size_t i;
    int j;
    for (i = 0; i < n; i += 32) {
        __m256i x[4], magnitude[4], c[4];
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] =
            _mm256_loadu_si256((const __m256i *)(const void *)(src + i + 8 * j));
        if (around) /* else bf16 takes .48 cycles in L1 on Zen 4, not .36, and as long from DRAM */
            mixprec_ahead_(src, i, n, 32, sizeof *src);
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) magnitude[j] = mixprec_magnitude_avx2_(x[j]);
        if (saturate || type == MIXPREC_BF16) {
            __m256i largest = _mm256_max_epi32(_mm256_max_epi32(magnitude[0], magnitude[1]),
                                               _mm256_max_epi32(magnitude[2], magnitude[3]));
            if (_mm256_movemask_epi8(_mm256_cmpgt_epi32(largest, ordinary))) {
                mixprec_store32_special_avx2_((char *)dst + 2 * i, type, src + i, how);
                continue;
            }
        }
        if (saturate)
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] = _mm256_or_si256(
                _mm256_andnot_si256(_mm256_set1_epi32(0x7FFFFFFF), x[j]), _mm256_min_epi32(magnitude[j], limit));
        if (type == MIXPREC_F16) {
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
                __m128i *to = (__m128i *)(void *)((mixprec_f16 *)dst + i + 8 * j);
                const __m128i half = mixprec_encode_f16_avx2_(_mm256_castsi256_ps(x[j]), round);
                if (around)
                    _mm_stream_si128(to, half);
                else
                    _mm_storeu_si128(to, half);
            }
            continue;
        }
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) c[j] =
            mixprec_encode_bf16_avx2_(x[j], round == MIXPREC_ROUND_NEAREST_EVEN, how->round);
        mixprec_pack16_avx2_((mixprec_bf16 *)dst + i, c[0], c[1], around);
        mixprec_pack16_avx2_((mixprec_bf16 *)dst + i + 16, c[2], c[3], around);
    }
}
/* f16 and bf16 in every mode but stochastic and, for f16, ties away from zero; 0 where that is not done. To nearest
   even there is a loop for each policy; bf16 has one for all other modes. */
#define MIXPREC_STORE_ROUNDED_(target, isa)                                                                            \
    MIXPREC_NOINLINE_ target int mixprec_store_rounded_##isa(void *dst, mixprec_dtype type, const float *src,          \
                                                             size_t n, const mixprec_how_ *how) {                      \
        const int saturate = how->overflow != MIXPREC_OVERFLOW_IEEE;                                                   \
        const mixprec_round round = how->round;                                                                        \
        if (type == MIXPREC_BF16 && round != MIXPREC_ROUND_NEAREST_EVEN && round != MIXPREC_ROUND_STOCHASTIC) {        \
            mixprec_store_16_bits_##isa(dst, MIXPREC_BF16, MIXPREC_ROUND_NEAREST_AWAY, src, n, saturate, how);         \
            return 1;                                                                                                  \
        }                                                                                                              \
        if (type != MIXPREC_F16 && type != MIXPREC_BF16)                                                               \
            return 0;                                                                                                  \
        switch (round) {                                                                                               \
        case MIXPREC_ROUND_NEAREST_EVEN:                                                                               \
            if (type == MIXPREC_F16 && saturate)                                                                       \
                mixprec_store_16_bits_##isa(dst, MIXPREC_F16, MIXPREC_ROUND_NEAREST_EVEN, src, n, 1, how);             \
            else if (type == MIXPREC_F16)                                                                              \
                mixprec_store_16_bits_##isa(dst, MIXPREC_F16, MIXPREC_ROUND_NEAREST_EVEN, src, n, 0, how);             \
            else if (saturate)                                                                                         \
                mixprec_store_16_bits_##isa(dst, MIXPREC_BF16, MIXPREC_ROUND_NEAREST_EVEN, src, n, 1, how);            \
            else                                                                                                       \
                mixprec_store_16_bits_##isa(dst, MIXPREC_BF16, MIXPREC_ROUND_NEAREST_EVEN, src, n, 0, how);            \
            return 1;                                                                                                  \
        case MIXPREC_ROUND_TOWARD_ZERO:                                                                                \
            mixprec_store_16_bits_##isa(dst, MIXPREC_F16, MIXPREC_ROUND_TOWARD_ZERO, src, n, saturate, how);           \
            return 1;                                                                                                  \
        case MIXPREC_ROUND_UP:                                                                                         \
            mixprec_store_16_bits_##isa(dst, MIXPREC_F16, MIXPREC_ROUND_UP, src, n, saturate, how);                    \
            return 1;                                                                                                  \
        case MIXPREC_ROUND_DOWN:                                                                                       \
            mixprec_store_16_bits_##isa(dst, MIXPREC_F16, MIXPREC_ROUND_DOWN, src, n, saturate, how);                  \
            return 1;                                                                                                  \
        default: return 0;                                                                                             \
        }                                                                                                              \
    }
MIXPREC_STORE_ROUNDED_(MIXPREC_AVX2_, avx2_)

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
    const mixprec_layout_ *to = mixprec_encoded_layout_of_(type);
    mixprec_places_ p;
    p.direct = to->special != MIXPREC_FNUZ_ && to->special != MIXPREC_INTEGER_ &&
               (to->sign_code == 0x80u || to->sign_code == 0x8000u);
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
        _mm256_storeu_si256((__m256i *)dst, mixprec_pack8_avx2_(c, x));
    return 1;
}

/* Each block of the generator is computed once, though an odd index begins with the second word of one. */
MIXPREC_NOINLINE_ MIXPREC_AVX2_ void mixprec_store_stochastic_avx2_(void *dst, mixprec_dtype type, const float *src,
                                                                    size_t n, const mixprec_how_ *how) {
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
    const int nearest = how->round == MIXPREC_ROUND_NEAREST_EVEN;
    size_t i;
    if (type == MIXPREC_F64) {
        const int around = how->around;
        for (i = 0; i < n; i += 16) {
            __m256 x[4];
            int j;
            if (around)
                mixprec_ahead_(src, i, n, 16, sizeof *src);
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] =
                _mm256_castpd_ps(_mm256_cvtps_pd(_mm_loadu_ps(src + i + 4 * j)));
            mixprec_put4_avx2_((double *)dst + i, x, around);
        }
        return;
    }
    if (type == MIXPREC_I8 && nearest) {
        mixprec_store_i8_avx2_((int8_t *)dst, src, n, how->around);
        return;
    }
    if (type == MIXPREC_E8M0 && how->round == MIXPREC_ROUND_STOCHASTIC)
        mixprec_store_c_(dst, type, src, n, how);
    else if (type == MIXPREC_E8M0)
        mixprec_store_e8m0_avx2_((uint8_t *)dst, src, n, how);
    else if (mixprec_store_rounded_avx2_(dst, type, src, n, how))
        return;
    else if (nearest)
        mixprec_store_bytes_avx2_((char *)dst, type, src, n, how);
    else if (how->round == MIXPREC_ROUND_STOCHASTIC)
        mixprec_store_stochastic_avx2_(dst, type, src, n, how);
    else {
        mixprec_encoder_avx2_ encoder = mixprec_encoder_of_avx2_(type, how);
        for (i = 0; i < n; i += 32)
            mixprec_store32_any_avx2_((char *)dst + mixprec_bytes_of_(type, i), type, src + i, &encoder,
                                      (const uint32_t *)(const void *)(src + i));
    }
}

MIXPREC_AVX2_ static int mixprec_unscale_avx2_(float *dst, const float *src, size_t n, float factor, int around) {
    const __m256i exponent = _mm256_set1_epi32(0x7F800000);
    __m256i found = _mm256_setzero_si256();
    size_t i;
    int j;
    for (i = 0; i < n; i += 32) {
        __m256 x[4];
        if (around)
            mixprec_ahead_(src, i, n, 32, sizeof *src);
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
            __m256i bits;
            x[j] = _mm256_mul_ps(_mm256_loadu_ps(src + i + 8 * j), _mm256_set1_ps(factor));
            bits = _mm256_castps_si256(x[j]);
            MIXPREC_UNKNOWN_CLASS_("+x", bits);
            found = _mm256_or_si256(found, _mm256_cmpeq_epi32(_mm256_and_si256(bits, exponent), exponent));
        }
        mixprec_put4_avx2_(dst + i, x, around);
    }
    return !_mm256_testz_si256(found, found);
}

/* Lines that are not whole go through the caches. */
MIXPREC_AVX2_ static void mixprec_stream_avx2_(void *dst, const void *src, size_t bytes, const void *next,
                                               size_t next_bytes) {
    const size_t head = mixprec_min_((0 - (uintptr_t)dst) % 64, bytes), whole = (bytes - head) / 64 * 64;
    const char *from = (const char *)src + head;
    char *to = (char *)dst + head;
    size_t i;
    for (i = mixprec_is_amd_() ? 0 : MIXPREC_AHEAD_, next_bytes += i; i < next_bytes; i += 64)
        _mm_prefetch((const char *)((uintptr_t)next + i), _MM_HINT_T1);
    if (head)
        mixprec_copy_(dst, src, head);
    for (i = 0; i < whole; i += 64) {
        const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)(from + i));
        const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(from + i + 32));
        _mm256_stream_si256((__m256i *)(void *)(to + i), low);
        _mm256_stream_si256((__m256i *)(void *)(to + i + 32), high);
    }
    if (bytes - head != whole)
        mixprec_copy_(to + whole, from + whole, bytes - head - whole);
}
MIXPREC_AVX2_ static void mixprec_fence_avx2_(void) {
    _mm_sfence();
}

#ifndef MIXPREC_NO_CONVERT
/* ---- statistics ---- */

MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ uint64_t mixprec_total_avx2_(__m256i x) {
    __m128i y = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    y = _mm_add_epi32(y, _mm_shuffle_epi32(y, 0x4E));
    return (uint32_t)_mm_cvtsi128_si32(_mm_add_epi32(y, _mm_shuffle_epi32(y, 0xB1)));
}

MIXPREC_INLINE uint8_t *mixprec_tally_plane_(const mixprec_tally_ *t, int half, int plane) {
    return t->exponents + MIXPREC_TALLY_EXPONENTS_ + MIXPREC_UNIT_ * (8 * half + plane);
}

/* Distances from the window of 32 exponents; where they are above 15, with the top bit set. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256i mixprec_tally_distances_avx2_(__m256i exponents, __m256i window) {
    return _mm256_adds_epu8(_mm256_sub_epi8(exponents, window), _mm256_set1_epi8(0x70));
}

/* Counts those exponents of four times MIXPREC_UNIT_ that are not in the window. */
MIXPREC_NOINLINE_ MIXPREC_AVX2_ void mixprec_tally_others_(mixprec_tally_ *t, const uint8_t *exponents) {
    const __m256i window = _mm256_set1_epi8((char)t->window), zero = _mm256_setzero_si256();
    int i, j;
    for (i = 0; i < 4 * MIXPREC_UNIT_; i += 32, exponents += 32) {
        const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)exponents);
        uint32_t others = (uint32_t)_mm256_movemask_epi8(mixprec_tally_distances_avx2_(x, window));
        uint32_t zeros = others & (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(x, zero));
        t->stats->exponents[0] += (uint64_t)_mm_popcnt_u32(zeros);
        others -= zeros;
        if (others) {
            t->missed += (uint32_t)_mm_popcnt_u32(others);
            t->largest = 0;
            for (j = 0; j < 32; j++) {
                t->stats->exponents[exponents[j]] += others >> j & 1;
                t->largest = exponents[j] > t->largest ? exponents[j] : t->largest;
            }
        }
    }
}

/* Exchanges the upper 8 - step bits of bytes in x[j] with the lower ones in x[j + step]; bits of `mask` in each 8. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_exchange_avx2_(__m256i x[8], const int step, const int mask) {
    int j;
    MIXPREC_UNROLL_ for (j = 0; j < 8; j++) if (!(j & step)) {
        __m256i changed = _mm256_xor_si256(_mm256_srli_epi16(x[j], step), x[j + step]);
        changed = _mm256_and_si256(changed, _mm256_set1_epi8((char)mask));
        x[j + step] = _mm256_xor_si256(x[j + step], changed);
        x[j] = _mm256_xor_si256(x[j], _mm256_slli_epi16(changed, step));
    }
}

/* The planes' numbers to the counts of exponents: eight planes of bits become eight of the numbers' bytes. */
MIXPREC_NOINLINE_ MIXPREC_AVX2_ void mixprec_tally_planes_(mixprec_tally_ *t) {
    const __m256i zero = _mm256_setzero_si256();
    int half, part, j;
    for (half = 0; half < 2; half++)
        for (part = 0; part < 2; part++) {
            __m256i *planes = (__m256i *)(void *)mixprec_tally_plane_(t, half, 0) + part, x[8];
            MIXPREC_UNROLL_ for (j = 0; j < 8; j++) {
                x[j] = _mm256_loadu_si256(planes + 2 * j);
                _mm256_storeu_si256(planes + 2 * j, zero);
            }
            mixprec_exchange_avx2_(x, 4, 0x0F);
            mixprec_exchange_avx2_(x, 2, 0x33);
            mixprec_exchange_avx2_(x, 1, 0x55);
            MIXPREC_UNROLL_ for (j = 0; j < 8; j++)
                t->stats->exponents[(t->window + 8 * (uint32_t)half + (uint32_t)j) & 0xFF] +=
                mixprec_total_avx2_(_mm256_sad_epu8(x[j], zero));
        }
    t->counted = 0;
}

/* After the exponents in the buffer have been counted. The planes have room for 15 times 16 groups. The window moves
   when many have missed it: to two binades above the largest of the last group with such, and 13 below. For AVX2
   without a vector of its own: on Windows a function keeps the lower halves of ymm6 to ymm15 only, and gcc 12 forgets
   (-fipa-ra) what a function without AVX lets the ones that it calls do to the upper halves. */
MIXPREC_AVX2_ static void mixprec_tally_counted_(mixprec_tally_ *t, int others) {
    int k;
    for (k = 0; others >> k; k++)
        if (others >> k & 1)
            mixprec_tally_others_(t, t->exponents + 4 * MIXPREC_UNIT_ * k);
    t->pending = 0;
    if (++t->counted == 15 || t->missed > 256)
        mixprec_tally_planes_(t);
    if (t->missed > 256) {
        t->window = (t->largest - 13) & 0xFF;
        t->missed = 0;
    }
}

/* Adds three bits of each place: *sum becomes the lower bit of their sum, the upper one is returned. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256i mixprec_carry_avx2_(__m256i *sum, __m256i a, __m256i b) {
    __m256i either = _mm256_xor_si256(*sum, a);
    __m256i carry = _mm256_or_si256(_mm256_and_si256(*sum, a), _mm256_and_si256(either, b));
    *sum = _mm256_xor_si256(either, b);
    return carry;
}

MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256i mixprec_carry4_avx2_(__m256i sum[2], __m256i table, const __m256i x[4]) {
    __m256i a = mixprec_carry_avx2_(sum, _mm256_shuffle_epi8(table, x[0]), _mm256_shuffle_epi8(table, x[1]));
    __m256i b = mixprec_carry_avx2_(sum, _mm256_shuffle_epi8(table, x[2]), _mm256_shuffle_epi8(table, x[3]));
    return mixprec_carry_avx2_(sum + 1, a, b);
}

/* Counts the exponents in the buffer, which is full, in two halves of each 64. A shuffle makes bytes with one bit set
   of distances, or none where the top bit is set. */
MIXPREC_NOINLINE_ MIXPREC_AVX2_ void mixprec_tally_count_avx2_(mixprec_tally_ *t) {
    const __m256i window = _mm256_set1_epi8((char)t->window);
    const __m256i low = _mm256_broadcastsi128_si256(_mm_set_epi64x(0, (int64_t)0x8040201008040201u));
    const __m256i high = _mm256_slli_si256(low, 8);
    int part, half, j, k, others = 0;
    for (part = 0; part < 2; part++) {
        __m256i *planes = (__m256i *)(void *)mixprec_tally_plane_(t, 0, 0) + part;
        __m256i lows[2], highs[2], fours[2][4];
        MIXPREC_UNROLL_ for (j = 0; j < 2; j++) {
            lows[j] = _mm256_loadu_si256(planes + 2 * j);
            highs[j] = _mm256_loadu_si256(planes + 16 + 2 * j);
        }
        for (k = 0; k < 4; k++) {
            const uint8_t *at = t->exponents + 4 * MIXPREC_UNIT_ * k;
            __m256i x[4];
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] = mixprec_tally_distances_avx2_(
                _mm256_loadu_si256((const __m256i *)(const void *)(at + MIXPREC_UNIT_ * j) + part), window);
            if (_mm256_movemask_epi8(_mm256_or_si256(_mm256_or_si256(x[0], x[1]), _mm256_or_si256(x[2], x[3]))))
                others |= 1 << k;
            fours[0][k] = mixprec_carry4_avx2_(lows, low, x);
            fours[1][k] = mixprec_carry4_avx2_(highs, high, x);
        }
        MIXPREC_UNROLL_ for (j = 0; j < 2; j++) {
            _mm256_storeu_si256(planes + 2 * j, lows[j]);
            _mm256_storeu_si256(planes + 16 + 2 * j, highs[j]);
        }
        for (half = 0; half < 2; half++, planes += 16) {
            __m256i four = _mm256_loadu_si256(planes + 4), eight = _mm256_loadu_si256(planes + 6), a, b;
            a = mixprec_carry_avx2_(&four, fours[half][0], fours[half][1]);
            b = mixprec_carry_avx2_(&four, fours[half][2], fours[half][3]);
            a = mixprec_carry_avx2_(&eight, a, b);
            _mm256_storeu_si256(planes + 4, four);
            _mm256_storeu_si256(planes + 6, eight);
            for (j = 4; j < 8; j++) {
                const __m256i x = _mm256_loadu_si256(planes + 2 * j);
                _mm256_storeu_si256(planes + 2 * j, _mm256_xor_si256(x, a));
                a = _mm256_and_si256(x, a);
            }
        }
    }
    mixprec_tally_counted_(t, others);
}

/* Counts what is left, with distances of 0 after it. */
MIXPREC_AVX2_ static size_t mixprec_tally_rest_(mixprec_tally_ *t) {
    const __m256i window = _mm256_set1_epi8((char)t->window);
    t->stats->exponents[t->window] -= MIXPREC_TALLY_EXPONENTS_ - t->pending;
    for (; t->pending < MIXPREC_TALLY_EXPONENTS_; t->pending += 32)
        _mm256_storeu_si256((__m256i *)(void *)(t->exponents + t->pending), window);
    mixprec_tally_count_avx2_(t);
    mixprec_tally_planes_(t);
    return 0;
}

/* Thresholds that the extremes so far imply; new ones as f64 bits, min_nonzero may be 0 or Inf for none. */
MIXPREC_INLINE int64_t mixprec_tally_threshold_(uint64_t bits) {
    return (int64_t)(bits >> 45) - ((1023 - 127) << 7);
}
MIXPREC_APART_ void mixprec_tally_range_(mixprec_tally_ *t, uint64_t amax, uint64_t min_nonzero) {
    const int64_t max = t->max < MIXPREC_SQUARES_BELOW_ ? t->max >> 16 : MIXPREC_SQUARES_BELOW_ >> 16;
    const int64_t min = (MIXPREC_SQUARES_FROM_ >> 16) - 1, subnormal = (t->min_normal >> 16) - 1;
    int64_t threshold;
    t->amax = amax > t->amax ? amax : t->amax;
    t->min_nonzero = min_nonzero && min_nonzero < t->min_nonzero ? min_nonzero : t->min_nonzero;
    threshold = mixprec_tally_threshold_(t->amax);
    t->high = (uint16_t)(2 * (threshold < 0 ? 0 : threshold < max ? threshold : max));
    threshold = mixprec_tally_threshold_(t->min_nonzero);
    threshold = threshold > 0x7FFF ? 0x7FFF : threshold > min ? threshold : min;
    t->low = (uint16_t)(2 * threshold);
    t->usual = (uint16_t)(2 * (threshold > subnormal ? threshold : subnormal));
}
static void mixprec_tally_range_f32_(mixprec_tally_ *t, uint32_t amax, uint32_t min_nonzero) {
    mixprec_tally_range_(t, mixprec_f32_bits_to_f64_bits_(amax), mixprec_f32_bits_to_f64_bits_(min_nonzero));
}

/* The sums of a group's squares, 32 lanes in fp32, to the lanes' sums in f64. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_add_lanes_avx2_(double *sums, __m256 lanes[4]) {
    int j;
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) MIXPREC_KEEP_(lanes[j]);
    MIXPREC_UNROLL_ for (j = 0; j < 2; j++) {
        __m256 sum = _mm256_add_ps(lanes[j], lanes[j + 2]);
        double *to = sums + 8 * j;
        MIXPREC_KEEP_(sum);
        _mm256_storeu_pd(to, _mm256_add_pd(_mm256_loadu_pd(to), _mm256_cvtps_pd(_mm256_castps256_ps128(sum))));
        to += 4;
        _mm256_storeu_pd(to, _mm256_add_pd(_mm256_loadu_pd(to), _mm256_cvtps_pd(_mm256_extractf128_ps(sum, 1))));
    }
}

/* Of most 64 elements none is a new extreme, overflows or does not become a normal number, as their exponents tell.
   There the error of x, rounded to the nearest number of the format, is that of x (2^shift - 1), rounded to fp32: as
   2^shift x is a whole number of the units that both are rounded to, and where the product is in the binade below that
   of 2^shift x, in which the unit is half as large, x is within a quarter of a unit of a power of two. Elsewhere and in
   the next MIXPREC_GENERAL_ - 1 times 64 elements (where they are frequent, to change costs more than it saves) not x
   but 1.5 of the least normal number, if that is larger, is multiplied by 2^shift. Those that may have extremes are
   looked at once more; every MIXPREC_FRESH_ groups with such the extremes so far are made known. */
#define MIXPREC_GENERAL_ 7
#define MIXPREC_FRESH_ 4

/* Keeps compilers from making two jumps of `x = ...; if (x)`: the first would depend on the data, unpredictably. */
#if defined(__GNUC__) && !defined(__TINYC__)
#define MIXPREC_NO_BRANCH_(x) __asm__("" : "+r"(x))
#else
#define MIXPREC_NO_BRANCH_(x) ((void)0)
#endif

/* What these find in one group. */
typedef struct mixprec_found_ {
    uint64_t zero, overflow, underflow, subnormal; /* underflow and subnormal: also zero and what becomes zero */
} mixprec_found_;

static void mixprec_tally_found_(mixprec_statistics *stats, const mixprec_found_ *found) {
    stats->zero += found->zero;
    stats->overflow += found->overflow;
    stats->underflow += found->underflow - found->zero;
    stats->subnormal += found->subnormal - found->underflow;
}

MIXPREC_AVX2_ static uint32_t mixprec_largest_avx2_(__m256i x) {
    __m128i y = _mm_max_epu32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    y = _mm_max_epu32(y, _mm_shuffle_epi32(y, 0x4E));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epu32(y, _mm_shuffle_epi32(y, 0xB1)));
}

/* How many of 8 lanes are set. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ uint64_t mixprec_count_avx2_(__m256i lanes) {
    return (uint64_t)_mm_popcnt_u32((uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(lanes)));
}

/* Extremes, zeros and overflow of 64 elements. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_tally_extremes_avx2_(const mixprec_tally_ *t, mixprec_found_ *found,
                                                                      const float *src, __m256i *largest,
                                                                      __m256i *least) {
    const __m256i one = _mm256_set1_epi32(1), zero = _mm256_setzero_si256(), max = _mm256_set1_epi32(t->max);
    int j;
    MIXPREC_UNROLL_ for (j = 0; j < 8; j++) {
        __m256i magnitude = mixprec_magnitude_avx2_(_mm256_loadu_si256((const __m256i *)(const void *)(src + 8 * j)));
        *largest = _mm256_max_epi32(*largest, magnitude);
        *least = _mm256_min_epu32(*least, _mm256_sub_epi32(magnitude, one)); /* less 1, so that zero is not the least */
        found->zero += mixprec_count_avx2_(_mm256_cmpeq_epi32(magnitude, zero));
        found->overflow += mixprec_count_avx2_(_mm256_cmpgt_epi32(magnitude, max));
    }
}

/* Is one of 64 words at most `low`, or at least `high`? */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ int mixprec_beyond_avx2_(const __m256i x[4], __m256i low, __m256i high) {
    __m256i largest = _mm256_max_epu16(_mm256_max_epu16(x[0], x[1]), _mm256_max_epu16(x[2], x[3]));
    __m256i least = _mm256_min_epu16(_mm256_min_epu16(x[0], x[1]), _mm256_min_epu16(x[2], x[3]));
    largest = _mm256_cmpeq_epi16(_mm256_max_epu16(largest, high), largest);
    return _mm256_movemask_epi8(_mm256_or_si256(largest, _mm256_cmpeq_epi16(_mm256_min_epu16(least, low), least))) != 0;
}

MIXPREC_AVX2_ static size_t mixprec_tally_avx2_(mixprec_tally_ *t, const void *src, mixprec_dtype type, size_t n) {
    const size_t lead = mixprec_lead_();
    const __m256 power = _mm256_set1_ps((float)(1 << t->shift)), split = _mm256_set1_ps((float)((1 << t->shift) - 1));
    const __m256 least_unit = _mm256_castsi256_ps(_mm256_set1_epi32(t->min_normal | 1 << 22));
    const __m256i normal = _mm256_set1_epi32(t->normal), vanishing = _mm256_set1_epi32(t->vanishing + 1);
    const __m256i second = _mm256_set1_epi16((short)0xFF00), max = _mm256_set1_epi32(t->max);
    __m256i amax = _mm256_setzero_si256(), min = _mm256_set1_epi32(-1); /* min: less 1, so that zero is not it */
    __m256i high, low, usual;
    size_t i, k;
    int j, general = 0, fresh = 1;
    if (!n)
        return mixprec_tally_rest_(t);
    mixprec_tally_range_f32_(t, 0, 0);
    high = _mm256_set1_epi16((short)t->high);
    low = _mm256_set1_epi16((short)t->low);
    usual = _mm256_set1_epi16((short)t->usual);
    for (i = 0; i < n; i += MIXPREC_TALLY_GROUP_) {
        __m256i largest = _mm256_setzero_si256(), least = _mm256_set1_epi32(-1);
        mixprec_found_ found = MIXPREC_ZERO_;
        __m256 signal[4], noise[4];
        int large = 0;
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) signal[j] = noise[j] = _mm256_setzero_ps();
        for (k = 0; k < MIXPREC_TALLY_GROUP_; k += MIXPREC_UNIT_) {
            float buffer[MIXPREC_UNIT_];
            const float *from = buffer;
            __m256i upper[4], *at = (__m256i *)(void *)(t->exponents + t->pending + k);
            if (type == MIXPREC_F32)
                mixprec_ahead_by_(lead, src, i + k, n, MIXPREC_UNIT_, 4);
            else
                mixprec_ahead_by_(lead, src, i + k, n, MIXPREC_UNIT_, 2);
            if (type == MIXPREC_F32)
                from = (const float *)src + i + k;
            else if (type == MIXPREC_F16)
                MIXPREC_UNROLL_ for (j = 0; j < 8; j++) _mm256_storeu_ps(
                    buffer + 8 * j, mixprec_load8_avx2_((const mixprec_f16 *)src + i + k + 8 * j, MIXPREC_F16));
            else
                MIXPREC_UNROLL_ for (j = 0; j < 8; j++) _mm256_storeu_ps(
                    buffer + 8 * j, mixprec_load8_avx2_((const mixprec_bf16 *)src + i + k + 8 * j, MIXPREC_BF16));
            MIXPREC_UNROLL_ for (j = 0; j < 2; j++) {
                /* Upper halves of two vectors in one, without their signs; then the exponents of two of those, in some
                   order. */
                const __m256i *p = (const __m256i *)(const void *)(from + 32 * j);
                __m256i a =
                    _mm256_blend_epi16(_mm256_srli_epi32(_mm256_loadu_si256(p), 16), _mm256_loadu_si256(p + 1), 0xAA);
                __m256i b = _mm256_blend_epi16(_mm256_srli_epi32(_mm256_loadu_si256(p + 2), 16),
                                               _mm256_loadu_si256(p + 3), 0xAA);
                a = upper[2 * j] = _mm256_add_epi16(a, a);
                b = upper[2 * j + 1] = _mm256_add_epi16(b, b);
                _mm256_storeu_si256(at + j, mixprec_blend_avx2_(_mm256_srli_epi16(a, 8), b, second));
            }
            general = general >> 1 | mixprec_beyond_avx2_(upper, usual, high) << MIXPREC_GENERAL_;
            MIXPREC_NO_BRANCH_(general);
            /* What overflows is limited on its way to being rounded: mended later, all errors would need registers. */
            if (general && mixprec_beyond_avx2_(upper, low, high))
                mixprec_tally_extremes_avx2_(t, &found, from, &largest, &least);
            else
                large = 1;
            MIXPREC_UNROLL_ for (j = 0; j < 8; j++) {
                const __m256 x = _mm256_loadu_ps(from + 8 * j);
                __m256 error, rounded;
                if (!general) {
                    rounded = _mm256_mul_ps(x, split);
                    MIXPREC_KEEP_(rounded);
                    error = _mm256_fmsub_ps(x, split, rounded);
                } else {
                    const __m256i magnitude = mixprec_magnitude_avx2_(_mm256_castps_si256(x));
                    const __m256 y = _mm256_castsi256_ps(_mm256_min_epi32(magnitude, max));
                    const __m256 unit = _mm256_max_ps(y, least_unit);
                    rounded = _mm256_fmsub_ps(unit, power, y);
                    MIXPREC_KEEP_(rounded);
                    rounded = _mm256_fmsub_ps(unit, power, rounded);
                    MIXPREC_KEEP_(rounded);
                    error = _mm256_sub_ps(rounded, _mm256_castsi256_ps(magnitude));
                    found.underflow += mixprec_count_avx2_(_mm256_cmpgt_epi32(vanishing, magnitude));
                    found.subnormal += mixprec_count_avx2_(_mm256_cmpgt_epi32(normal, magnitude));
                }
                signal[j % 4] = _mm256_fmadd_ps(x, x, signal[j % 4]);
                noise[j % 4] = _mm256_fmadd_ps(error, error, noise[j % 4]);
            }
        }
        if (!_mm256_testz_si256(largest, largest)) {
            uint32_t most = mixprec_largest_avx2_(largest);
            if (most >= MIXPREC_SQUARES_BELOW_ || (!large && most < MIXPREC_SQUARES_FROM_))
                break;
            amax = _mm256_max_epi32(amax, largest);
            min = _mm256_min_epu32(min, least);
            if (--fresh == 0) {
                mixprec_tally_range_f32_(t, mixprec_largest_avx2_(amax),
                                         0 - mixprec_largest_avx2_(_mm256_xor_si256(min, _mm256_set1_epi32(-1))));
                high = _mm256_set1_epi16((short)t->high);
                low = _mm256_set1_epi16((short)t->low);
                usual = _mm256_set1_epi16((short)t->usual);
                fresh = MIXPREC_FRESH_;
            }
        }
        mixprec_tally_found_(t->stats, &found);
        mixprec_add_lanes_avx2_(t->signal, signal);
        mixprec_add_lanes_avx2_(t->noise, noise);
        t->pending += MIXPREC_TALLY_GROUP_;
        if (t->pending == MIXPREC_TALLY_EXPONENTS_)
            mixprec_tally_count_avx2_(t);
    }
    mixprec_tally_range_f32_(t, mixprec_largest_avx2_(amax),
                             0 - mixprec_largest_avx2_(_mm256_xor_si256(min, _mm256_set1_epi32(-1))));
    return i;
}

/* The upper quarter of a number, less its sign and the difference of the biases of f64 and fp32, is a word of 8 bits of
   exponent, up to 254, 4 of mantissa and a zero. A threshold for those: */
#define MIXPREC_WORD_BIAS_ ((1023 - 127) << 5)
#define MIXPREC_WORD_LARGEST_ (254 << 5 | 31)
MIXPREC_INLINE short mixprec_tally_word_(uint16_t threshold) {
    return (short)(threshold >> 4 << 1);
}

MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ uint64_t mixprec_count_wide_avx2_(__m256d lanes) {
    return (uint64_t)_mm_popcnt_u32((uint32_t)_mm256_movemask_pd(lanes));
}

/* Extremes, zeros and overflow of 64 elements. Returns 0 for Inf or NaN. */
MIXPREC_NOINLINE_ MIXPREC_AVX2_ int mixprec_tally_extremes_wide_(mixprec_tally_ *t, mixprec_found_ *found,
                                                                 const double *src, double max) {
    const __m256i infinity = _mm256_set1_epi64x((int64_t)0x7FF << 52), magnitude_of = _mm256_set1_epi64x(INT64_MAX);
    __m256i special = _mm256_setzero_si256(), new_ones;
    __m256d amax = _mm256_setzero_pd(), least = _mm256_castsi256_pd(infinity);
    uint64_t zero = 0, overflow = 0, bits[8];
    int i;
    for (i = 0; i < MIXPREC_UNIT_; i += 4) {
        const __m256i magnitude =
            _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(const void *)(src + i)), magnitude_of);
        const __m256d x = _mm256_castsi256_pd(magnitude);
        const __m256d none = _mm256_castsi256_pd(_mm256_cmpeq_epi64(magnitude, _mm256_setzero_si256()));
        special =
            _mm256_or_si256(special, _mm256_cmpgt_epi64(magnitude, _mm256_sub_epi64(infinity, _mm256_set1_epi64x(1))));
        amax = _mm256_max_pd(amax, x);
        least = _mm256_min_pd(least, _mm256_blendv_pd(x, _mm256_castsi256_pd(infinity), none));
        zero += mixprec_count_wide_avx2_(none);
        overflow += mixprec_count_wide_avx2_(_mm256_cmp_pd(x, _mm256_set1_pd(max), _CMP_GT_OQ));
    }
    if (!_mm256_testz_si256(special, special))
        return 0;
    found->zero += zero;
    found->overflow += overflow;
    new_ones = _mm256_cmpgt_epi64(_mm256_castpd_si256(amax), _mm256_set1_epi64x((int64_t)t->amax));
    new_ones = _mm256_or_si256(
        new_ones, _mm256_cmpgt_epi64(_mm256_set1_epi64x((int64_t)t->min_nonzero), _mm256_castpd_si256(least)));
    if (!_mm256_testz_si256(new_ones, new_ones)) {
        _mm256_storeu_si256((__m256i *)(void *)bits, _mm256_castpd_si256(amax));
        _mm256_storeu_si256((__m256i *)(void *)(bits + 4), _mm256_castpd_si256(least));
        for (i = 0; i < 4; i++)
            mixprec_tally_range_(t, bits[i], bits[i + 4]);
    }
    return 1;
}

MIXPREC_AVX2_ static size_t mixprec_tally_wide_avx2_(mixprec_tally_ *t, const double *src, size_t n) {
    const mixprec_tally_wide_ p = mixprec_tally_wide_of_(t);
    const __m256d split = _mm256_set1_pd(p.split), magnitude_of = _mm256_castsi256_pd(_mm256_set1_epi64x(INT64_MAX));
    mixprec_found_ found = MIXPREC_ZERO_;
    __m256d signal[4], noise[4];
    size_t i, k;
    int j, general = 0;
    mixprec_tally_range_(t, 0, 0);
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
        signal[j] = _mm256_loadu_pd(t->signal + 4 * j);
        noise[j] = _mm256_loadu_pd(t->noise + 4 * j);
    }
    for (i = 0; i < n; i += MIXPREC_UNIT_) {
        const __m256i high = _mm256_set1_epi16(mixprec_tally_word_(t->high));
        __m256i words[4], *at = (__m256i *)(void *)(t->exponents + t->pending);
        uint64_t underflow = 0, subnormal = 0;
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
            /* Upper quarters of 16 numbers without their signs; with the exponents of fp32, in some order. */
            const float *from = (const float *)(const void *)(src + i + 16 * (size_t)j);
            const __m256 a = _mm256_shuffle_ps(_mm256_loadu_ps(from), _mm256_loadu_ps(from + 8), 0xDD);
            const __m256 b = _mm256_shuffle_ps(_mm256_loadu_ps(from + 16), _mm256_loadu_ps(from + 24), 0xDD);
            words[j] = _mm256_blend_epi16(_mm256_srli_epi32(_mm256_castps_si256(a), 16), _mm256_castps_si256(b), 0xAA);
            words[j] = _mm256_subs_epu16(_mm256_add_epi16(words[j], words[j]), _mm256_set1_epi16(MIXPREC_WORD_BIAS_));
            words[j] = _mm256_min_epu16(words[j], _mm256_set1_epi16(MIXPREC_WORD_LARGEST_));
        }
        MIXPREC_UNROLL_ for (j = 0; j < 2; j++) _mm256_storeu_si256(
            at + j, _mm256_packus_epi16(_mm256_srli_epi16(words[2 * j], 5), _mm256_srli_epi16(words[2 * j + 1], 5)));
        general = general >> 1 | mixprec_beyond_avx2_(words, _mm256_set1_epi16(mixprec_tally_word_(t->usual)), high)
                                     << MIXPREC_GENERAL_;
        MIXPREC_NO_BRANCH_(general);
        if (general && mixprec_beyond_avx2_(words, _mm256_set1_epi16(mixprec_tally_word_(t->low)), high) &&
            !mixprec_tally_extremes_wide_(t, &found, src + i, p.max))
            break;
        for (k = 0; k < MIXPREC_UNIT_; k += 16)
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
                const __m256d x = _mm256_loadu_pd(src + i + k + 4 * (size_t)j);
                __m256d error, rounded, square;
                if (!general) {
                    rounded = _mm256_mul_pd(x, split);
                    MIXPREC_KEEP_(rounded);
                    error = _mm256_fmsub_pd(x, split, rounded);
                } else {
                    const __m256d magnitude = _mm256_and_pd(x, magnitude_of), power = _mm256_set1_pd(p.power);
                    const __m256d limited = _mm256_min_pd(magnitude, _mm256_set1_pd(p.max));
                    const __m256d unit = _mm256_max_pd(limited, _mm256_set1_pd(p.least_unit));
                    rounded = _mm256_fmsub_pd(unit, power, limited);
                    MIXPREC_KEEP_(rounded);
                    rounded = _mm256_fmsub_pd(unit, power, rounded);
                    MIXPREC_KEEP_(rounded);
                    error = _mm256_sub_pd(rounded, magnitude);
                    underflow +=
                        mixprec_count_wide_avx2_(_mm256_cmp_pd(magnitude, _mm256_set1_pd(p.vanishing), _CMP_LE_OQ));
                    subnormal +=
                        mixprec_count_wide_avx2_(_mm256_cmp_pd(magnitude, _mm256_set1_pd(p.normal), _CMP_LT_OQ));
                }
                square = _mm256_mul_pd(x, x);
                MIXPREC_KEEP_(square);
                signal[j] = _mm256_add_pd(signal[j], square);
                MIXPREC_KEEP_(signal[j]);
                square = _mm256_mul_pd(error, error);
                MIXPREC_KEEP_(square);
                noise[j] = _mm256_add_pd(noise[j], square);
                MIXPREC_KEEP_(noise[j]);
            }
        found.underflow += underflow;
        found.subnormal += subnormal;
        t->pending += MIXPREC_UNIT_;
        if (t->pending == MIXPREC_TALLY_EXPONENTS_)
            mixprec_tally_count_avx2_(t);
    }
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
        _mm256_storeu_pd(t->signal + 4 * j, signal[j]);
        _mm256_storeu_pd(t->noise + 4 * j, noise[j]);
    }
    mixprec_tally_found_(t->stats, &found);
    return i;
}
#endif

/* ---- GEMM ---- */

#ifndef MIXPREC_NO_GEMM
/* Lanes of either width travel as __m256; `wide`, a constant wherever these are inlined, says that they are f64. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256 mixprec_add_avx2_(__m256 a, __m256 b, int wide) {
    return wide ? _mm256_castpd_ps(_mm256_add_pd(_mm256_castps_pd(a), _mm256_castps_pd(b))) : _mm256_add_ps(a, b);
}

/* The first n of 8 words, and zeros; nothing else is read. The matrix ends `left` bytes from x, where VMASKMOVPS is not
   used: qemu 7.2 reads all of the vector, from whatever page comes next. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256 mixprec_words_avx2_(const char *x, size_t n, ptrdiff_t left) {
    static const unsigned char down[32] = {0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,
                                           11,   12,   13,   14,   15,   0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                           0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};
    __m128i low = _mm_setzero_si128(), high = low;
    if (left >= 32)
        return _mm256_maskload_ps(
            (const float *)(const void *)x,
            _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
    if (n >= 4) {
        low = _mm_loadu_si128((const __m128i *)(const void *)x);
        if (n > 4) /* the last four, moved down by as many as have been read */
            high = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(x + 4 * n - 16)),
                                    _mm_loadu_si128((const __m128i *)(const void *)(down + 32 - 4 * n)));
    } else if (n >= 2) {
        low = _mm_loadl_epi64((const __m128i *)(const void *)x);
        if (n > 2)
            low = _mm_unpacklo_epi64(low, _mm_castps_si128(_mm_load_ss((const float *)(const void *)(x + 8))));
    } else if (n == 1)
        low = _mm_castps_si128(_mm_load_ss((const float *)(const void *)x));
    return _mm256_castsi256_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1));
}

/* Packing reads many rows at once: bytes ahead to prefetch in each. */
#define MIXPREC_PREFETCH_ 512

/* 6 x 16 (f64: 6 x 8): 12 accumulators, 2 vectors of B, 1 broadcast of A. Rows that are not there are the last one
   again. masked: not more than `columns` of B are read. */
#define MIXPREC_TILE_ROWS_AVX2_ 6
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_tile_body_avx2_(const int rows, const int vectors, const int wide,
                                                                 const int carry, const int masked, size_t rows_there,
                                                                 size_t columns, size_t depth, const char *a,
                                                                 size_t a_row, size_t a_step, const char *b,
                                                                 size_t b_step, size_t b_panel, const char *ahead,
                                                                 char *t, size_t stride, int first) {
    const size_t words = wide ? 2 * columns : columns;
    const char *row[MIXPREC_TILE_ROWS_AVX2_], *const end = masked ? b + (depth - 1) * b_step + 4 * words : NULL;
    size_t at = 0;
    int i, j;
    MIXPREC_UNROLL_ for (i = 0; i < rows; i++) row[i] = a + mixprec_min_((size_t)i, rows_there - 1) * a_row;
    for (; depth; first = 0) {
        size_t chunk = mixprec_min_(depth, MIXPREC_GEMM_KBLOCK), p;
        char *to = t;
        /* One of the two is used. A cast of an accumulator inside the loop would make gcc 12 spill: 25 instead of 50
           GFLOP/s on Zen 5. */
        __m256 s[MIXPREC_TILE_ROWS_AVX2_][8];
        __m256d w[MIXPREC_TILE_ROWS_AVX2_][8];
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
            const float *from = (const float *)(const void *)(t + (size_t)i * stride + (size_t)j * 32);
            s[i][j] = carry && !first ? _mm256_loadu_ps(from) : _mm256_setzero_ps();
            w[i][j] = _mm256_castps_pd(s[i][j]);
        }
        /* The rows of C are far apart, and the sums to add to come from L3 or DRAM. */
        if (!first && !carry)
            MIXPREC_UNROLL_ for (i = 0; i < rows; i++) _mm_prefetch(
                t + mixprec_min_((size_t)i, rows_there - 1) * stride + (size_t)vectors * 32 - 1, _MM_HINT_T0);
        for (p = 0; p < chunk; p++, at += a_step, b += b_step) {
            __m256 part[2];
            if (rows == MIXPREC_TILE_ROWS_AVX2_ && vectors == 2 && !carry && !masked) {
                _mm_prefetch(ahead, _MM_HINT_T1);
                ahead += MIXPREC_TILE_AHEAD_;
            }
            if (masked)
                MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) part[j % 2] =
                    mixprec_words_avx2_(b + 32 * j, words - mixprec_min_(words, 8 * (size_t)j), end - (b + 32 * j));
            MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
                const void *from = b + (size_t)(j / 2) * b_panel + 32 * (j % 2), *y = row[i] + at;
                const __m256 x = masked ? part[j % 2] : _mm256_loadu_ps((const float *)from);
                if (wide)
                    w[i][j] = _mm256_fmadd_pd(_mm256_broadcast_sd((const double *)y), _mm256_castps_pd(x), w[i][j]);
                else
                    s[i][j] = _mm256_fmadd_ps(_mm256_broadcast_ss((const float *)y), x, s[i][j]);
            }
        }
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++, to += stride) {
            if ((size_t)i == rows_there)
                break;
            MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
                __m256 sum = wide ? _mm256_castpd_ps(w[i][j]) : s[i][j];
                if (!first && !carry)
                    sum = mixprec_add_avx2_(_mm256_loadu_ps((const float *)(const void *)(to + 32 * j)), sum, wide);
                if (rows == MIXPREC_TILE_ROWS_AVX2_ && vectors == 2 && !carry && !masked &&
                    first == MIXPREC_TILE_STREAM_)
                    _mm256_stream_ps((float *)(void *)(to + 32 * j), sum);
                else
                    _mm256_storeu_ps((float *)(void *)(to + 32 * j), sum);
            }
        }
        depth -= chunk;
    }
}

MIXPREC_AVX2_ static void mixprec_tile_at_avx2_(size_t rows, size_t columns, size_t depth, const char *a, size_t a_row,
                                                size_t a_step, const char *b, size_t b_step, const char *ahead, char *t,
                                                size_t ldt, int first, int wide) {
    const size_t size = wide ? 8 : 4, whole = (wide || columns > 8 ? 64 : 32) / size;
    double edge[MIXPREC_TILE_ROWS_AVX2_ * 8];
    char *to = t;
    size_t ld_to = ldt, i;
    if (columns != whole) { /* vectors that are not whole: by way of a buffer */
        to = (char *)edge;
        ld_to = whole;
        for (i = 0; i < rows && !first; i++)
            mixprec_copy_(to + i * whole * size, t + i * ldt * size, columns * size);
        first = first != 0;
    }
    /* The latency of the sums makes 1 to 3 rows of two vectors take as long as 4, and 1 to 6 of one vector, too. */
#define MIXPREC_TILE_AVX2_(kernel_rows, vectors, wide)                                                                 \
    mixprec_tile_body_avx2_(kernel_rows, vectors, wide, 0, 0, rows, columns, depth, a, a_row, a_step, b, b_step, 0,    \
                            ahead, to, ld_to *size, first)
    if (wide && rows > 4)
        MIXPREC_TILE_AVX2_(6, 2, 1);
    else if (wide)
        MIXPREC_TILE_AVX2_(4, 2, 1);
    else if (columns <= 8)
        MIXPREC_TILE_AVX2_(6, 1, 0);
    else if (rows > 4)
        MIXPREC_TILE_AVX2_(6, 2, 0);
    else
        MIXPREC_TILE_AVX2_(4, 2, 0);
#undef MIXPREC_TILE_AVX2_
    for (i = 0; i < rows && to != t; i++)
        mixprec_copy_(t + i * ldt * size, to + i * whole * size, columns * size);
}

MIXPREC_AVX2_ static void mixprec_tile_avx2_(size_t rows, size_t columns, size_t depth, const void *a, const void *b,
                                             const void *ahead, void *t, size_t ldt, int first, int wide) {
    const size_t size = wide ? 8 : 4;
    mixprec_tile_at_avx2_(rows, columns, depth, (const char *)a, size, MIXPREC_TILE_ROWS_AVX2_ * size, (const char *)b,
                          64, (const char *)ahead, (char *)t, ldt, first, wide);
}

/* Where less than 8 columns of B are there to be read. By itself: with two bodies more gcc 12 has fewer registers for
   those above. */
MIXPREC_NOINLINE_ MIXPREC_AVX2_ void mixprec_small_narrow_avx2_(size_t rows, size_t columns, size_t depth,
                                                                const char *a, size_t a_row, size_t a_step,
                                                                const char *b, size_t b_step, char *t, size_t ldt,
                                                                int wide) {
    const size_t size = wide ? 8 : 4;
    size_t i, j, there;
    for (i = 0; i < rows; i += there, a += there * a_row) {
        double tile[MIXPREC_TILE_ROWS_AVX2_ * 8];
        there = mixprec_min_(MIXPREC_TILE_ROWS_AVX2_, rows - i);
        if (wide)
            mixprec_tile_body_avx2_(6, 2, 1, 0, 1, there, columns, depth, a, a_row, a_step, b, b_step, 0, NULL,
                                    (char *)tile, 64, 1);
        else
            mixprec_tile_body_avx2_(6, 1, 0, 0, 1, there, columns, depth, a, a_row, a_step, b, b_step, 0, NULL,
                                    (char *)tile, 32, 1);
        for (j = 0; j < there; j++)
            mixprec_copy_(t + (i + j) * ldt * size, (char *)tile + j * 8 * size, columns * size);
    }
}

MIXPREC_AVX2_ static void mixprec_small_avx2_(size_t rows, size_t columns, size_t depth, const void *a, size_t a_row,
                                              size_t a_step, const void *b, size_t b_step, int exact, void *t,
                                              size_t ldt, int wide) {
    const size_t size = wide ? 8 : 4;
    size_t i;
    if (exact) {
        mixprec_small_narrow_avx2_(rows, columns, depth, (const char *)a, a_row, a_step, (const char *)b, b_step,
                                   (char *)t, ldt, wide);
        return;
    }
    for (i = 0; i < rows; i += MIXPREC_TILE_ROWS_AVX2_)
        mixprec_tile_at_avx2_(mixprec_min_(MIXPREC_TILE_ROWS_AVX2_, rows - i), columns, depth,
                              (const char *)a + i * a_row, a_row, a_step, (const char *)b, b_step, (const char *)b,
                              (char *)t + i * ldt * size, ldt, 1, wide);
}

/* 1 x 4 or 2 x 2 sums of 2 chunks: 8 chains of additions. What is not there is the first again. Numbers are in all
   lanes: to broadcast takes no longer than to load. Zen 4 loads two in a cycle: 4 chunks of 2 sums took longer. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_dots_body_avx2_(const int rows, const int wide, size_t columns_there,
                                                                 size_t depth, const char *a, size_t a_row,
                                                                 size_t a_step, const char *b, size_t b_column,
                                                                 size_t b_step, char *t, size_t t_row, size_t t_column,
                                                                 int first) {
    const int columns = 4 / rows;
    int i, j, c;
    while (depth) {
        const size_t chunk = mixprec_min_(depth, MIXPREC_GEMM_KBLOCK), chunks = depth < 2 * chunk ? 1 : 2;
        const char *x[2][2], *y[2][4];
        size_t p;
        __m128 s[2][2][4];
        __m128d w[2][2][4]; /* in the place of s for f64: see mixprec_tile_body_avx2_ */
        MIXPREC_UNROLL_ for (c = 0; c < 2; c++) {
            const size_t from = (size_t)c < chunks ? (size_t)c * chunk : 0;
            MIXPREC_UNROLL_ for (i = 0; i < rows; i++) x[c][i] = a + from * a_step + (size_t)i * a_row;
            MIXPREC_UNROLL_ for (j = 0; j < columns; j++) y[c][j] =
                b + from * b_step + ((size_t)j < columns_there ? (size_t)j * b_column : 0);
            MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < columns; j++) {
                s[c][i][j] = _mm_setzero_ps();
                w[c][i][j] = _mm_setzero_pd();
            }
        }
        a += chunks * chunk * a_step;
        b += chunks * chunk * b_step;
        depth -= chunks * chunk;
        for (p = 0; p < chunk; p++)
            MIXPREC_UNROLL_ for (c = 0; c < 2; c++) {
                MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < columns; j++) {
                    const void *number = x[c][i] + p * a_step, *other = y[c][j] + p * b_step;
                    if (wide)
                        w[c][i][j] = _mm_fmadd_pd(_mm_set1_pd(*(const double *)number),
                                                  _mm_set1_pd(*(const double *)other), w[c][i][j]);
                    else
                        s[c][i][j] = _mm_fmadd_ps(_mm_set1_ps(*(const float *)number),
                                                  _mm_set1_ps(*(const float *)other), s[c][i][j]);
                }
            }
        MIXPREC_UNROLL_ for (c = 0; c < 2; c++) {
            if ((size_t)c == chunks)
                break;
            MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < columns; j++) {
                void *to = t + (size_t)i * t_row + (size_t)j * t_column;
                if ((size_t)j >= columns_there)
                    break;
                if (wide)
                    _mm_store_sd((double *)to,
                                 first ? w[c][i][j] : _mm_add_sd(_mm_load_sd((const double *)to), w[c][i][j]));
                else
                    _mm_store_ss((float *)to,
                                 first ? s[c][i][j] : _mm_add_ss(_mm_load_ss((const float *)to), s[c][i][j]));
            }
            first = 0;
        }
    }
}

MIXPREC_AVX2_ static void mixprec_dots_avx2_(size_t rows, size_t columns, size_t depth, const char *a, size_t a_row,
                                             size_t a_step, const char *b, size_t b_column, size_t b_step, char *t,
                                             size_t t_row, size_t t_column, int first, int wide) {
    size_t i, j;
    if (columns == 1 && rows > 1) { /* as the transposed product: up to 4 at a time */
        mixprec_dots_avx2_(1, rows, depth, b, b_column, b_step, a, a_row, a_step, t, t_column, t_row, first, wide);
        return;
    }
    for (i = 0; i < rows; i += 2)
        for (j = 0; j < columns; j += i + 1 == rows ? 4 : 2) {
#define MIXPREC_DOTS_AVX2_(rows, wide)                                                                                 \
    mixprec_dots_body_avx2_(rows, wide, columns - j, depth, a + i * a_row, a_row, a_step, b + j * b_column, b_column,  \
                            b_step, t + i * t_row + j * t_column, t_row, t_column, first)
            if (i + 1 == rows && wide)
                MIXPREC_DOTS_AVX2_(1, 1);
            else if (i + 1 == rows)
                MIXPREC_DOTS_AVX2_(1, 0);
            else if (wide)
                MIXPREC_DOTS_AVX2_(2, 1);
            else
                MIXPREC_DOTS_AVX2_(2, 0);
#undef MIXPREC_DOTS_AVX2_
        }
}

/* For few rows a part of a chunk at a time: the sums go on from what is there. */
#define MIXPREC_FEW_AVX2_(rows, vectors, wide)                                                                         \
    MIXPREC_AVX2_ static void mixprec_few_##rows##_##vectors##_##wide##_avx2_(                                         \
        size_t depth, const char *a, size_t a_step, const char *b, size_t b_step, size_t b_panel, char *sums,          \
        size_t ld, int starts) {                                                                                       \
        mixprec_tile_body_avx2_(rows, vectors, wide, 1, 0, rows, 0, depth, a, wide ? 8 : 4, a_step, b, b_step,         \
                                b_panel, NULL, sums, ld, starts);                                                      \
    }
#define MIXPREC_ALL_FEW_AVX2_(X, wide)                                                                                 \
    X(1, 2, wide) X(1, 8, wide) X(2, 2, wide) X(2, 4, wide) X(4, 2, wide) X(6, 2, wide)
MIXPREC_ALL_FEW_AVX2_(MIXPREC_FEW_AVX2_, 0)
MIXPREC_ALL_FEW_AVX2_(MIXPREC_FEW_AVX2_, 1)
#undef MIXPREC_FEW_AVX2_

/* With 3 and 5 rows, one more of each is used. One or two rows take several panels together, to have sums enough under
   way. */
MIXPREC_AVX2_ static void mixprec_few_avx2_(size_t rows, size_t panels, size_t depth, const char *a, size_t a_step,
                                            const char *b, size_t b_step, size_t b_panel, char *sums, size_t ld,
                                            int starts, int wide) {
    size_t count;
    rows = rows > 2 ? rows + rows % 2 : rows;
    for (; panels; panels -= count, b += count * b_panel, sums += count * 64) {
        count = rows == 1 && panels >= 4 ? 4 : rows == 2 && panels >= 2 ? 2 : 1;
        switch ((rows * 8 + count) * 2 + (size_t)wide) {
#define MIXPREC_FEW_AVX2_(rows, vectors, wide)                                                                         \
    case (rows * 8 + vectors / 2) * 2 + wide:                                                                          \
        mixprec_few_##rows##_##vectors##_##wide##_avx2_(depth, a, a_step, b, b_step, b_panel, sums, ld, starts);       \
        break;
            MIXPREC_ALL_FEW_AVX2_(MIXPREC_FEW_AVX2_, 0)
            MIXPREC_ALL_FEW_AVX2_(MIXPREC_FEW_AVX2_, 1)
#undef MIXPREC_FEW_AVX2_
        default: break;
        }
    }
}

/* Up to 4 rows times a B whose rows run along k. The vectors' lanes are columns: 16 bytes of each of 8 rows of B (f64:
   4) are transposed in registers and multiplied at once. A line of 64 bytes of each row goes by way of a buffer: with a
   power of two between rows they share one set of L1, which has room for 8.

   The halves of a vector come from rows 0 to 3 and 4 to 7, so that only what is within 16 bytes must be shuffled;
   narrow elements are cheaper to shuffle than the fp32 that they become. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_across_load_avx2_(__m256i x[4], const char *b,
                                                                   const mixprec_dtype type) {
    const int count = type == MIXPREC_F64 ? 2 : 4;
    __m256i t[4];
    int i;
    MIXPREC_UNROLL_ for (i = 0; i < count; i++) x[i] =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)(b + 64 * i))),
                                _mm_loadu_si128((const __m128i *)(const void *)(b + 64 * (count + i))), 1);
    if (type == MIXPREC_F64) {
        t[0] = _mm256_unpacklo_epi64(x[0], x[1]);
        x[1] = _mm256_unpackhi_epi64(x[0], x[1]);
        x[0] = t[0];
    } else if (type == MIXPREC_F32 || type == MIXPREC_BF16) { /* words: pairs of bf16 */
        MIXPREC_UNROLL_ for (i = 0; i < 4; i += 2) {
            t[i] = _mm256_unpacklo_epi32(x[i], x[i + 1]);
            t[i + 1] = _mm256_unpackhi_epi32(x[i], x[i + 1]);
        }
        MIXPREC_UNROLL_ for (i = 0; i < 2; i++) {
            x[2 * i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
            x[2 * i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
        }
    } else { /* two k of f16, four of fp8, in each half */
        const int narrow = type != MIXPREC_F16;
        MIXPREC_UNROLL_ for (i = 0; i < 2; i++) {
            t[i] = narrow ? _mm256_unpacklo_epi8(x[i], x[i + 2]) : _mm256_unpacklo_epi16(x[i], x[i + 2]);
            t[i + 2] = narrow ? _mm256_unpackhi_epi8(x[i], x[i + 2]) : _mm256_unpackhi_epi16(x[i], x[i + 2]);
        }
        MIXPREC_UNROLL_ for (i = 0; i < 4; i += 2) {
            x[i] = narrow ? _mm256_unpacklo_epi8(t[i], t[i + 1]) : _mm256_unpacklo_epi16(t[i], t[i + 1]);
            x[i + 1] = narrow ? _mm256_unpackhi_epi8(t[i], t[i + 1]) : _mm256_unpackhi_epi16(t[i], t[i + 1]);
        }
    }
}

/* The columns of k in such a vector: 1 of f64 and f32, 2 of 16 bits, 4 of 8 bits. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_across_expand_avx2_(__m256 y[4], __m256i x, const mixprec_dtype type) {
    const int narrow = type == MIXPREC_E4M3 || type == MIXPREC_E5M2;
    int i;
    if (type == MIXPREC_BF16) {
        y[0] = _mm256_castsi256_ps(_mm256_slli_epi32(x, 16));
        y[1] = _mm256_castsi256_ps(_mm256_and_si256(x, _mm256_set1_epi32((int)0xFFFF0000u)));
    } else if (narrow || type == MIXPREC_F16)
        MIXPREC_UNROLL_ for (i = 0; i < 1 + narrow; i++) {
            __m256i half = x;
            if (narrow)
                half = i ? _mm256_unpackhi_epi8(_mm256_setzero_si256(), x)
                         : _mm256_unpacklo_epi8(_mm256_setzero_si256(), x);
            if (type == MIXPREC_E4M3)
                half = mixprec_e4m3_shifted_avx2_(_mm256_srai_epi16(half, 1));
            half = _mm256_permute4x64_epi64(half, 0xD8);
            y[2 * i] = _mm256_cvtph_ps(_mm256_castsi256_si128(half));
            y[2 * i + 1] = _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1));
            if (type == MIXPREC_E4M3) {
                y[2 * i] = _mm256_mul_ps(y[2 * i], _mm256_set1_ps(256.0f));
                y[2 * i + 1] = _mm256_mul_ps(y[2 * i + 1], _mm256_set1_ps(256.0f));
            }
        }
    else
        y[0] = _mm256_castsi256_ps(x);
}

/* Prefetches the line `lead` bytes after `at` of each of `rows` rows of `bytes` bytes; beyond their end, of as many
   rows after them. It may lie outside of the matrix. By itself, for between the loads of other lines it would hold up
   those; and one line every two cycles, as the compiler does not know `nothing` for zero, for more at once hold up the
   loads that follow. On Zen 5, 1 x 4096 x 4096 of f32 with AVX2: 3.2 ms between loads, 3.3 at once, 2.1 so. */
MIXPREC_NOINLINE_ void mixprec_prefetch_rows_(const char *b, size_t at, size_t bytes, size_t stride, size_t rows,
                                              size_t lead) {
    const volatile uintptr_t zero = 0;
    const uintptr_t nothing = zero;
    uintptr_t line = (uintptr_t)b + at + lead + (at + lead < bytes ? 0 : rows * stride - bytes);
    for (; rows; rows--, line = (line ^ nothing) + stride)
        _mm_prefetch((const char *)line, _MM_HINT_T1);
}

MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_across_fill_line_avx2_(char *line, const char *b) {
    const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)b);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(b + 32));
    _mm256_store_si256((__m256i *)(void *)line, low);
    _mm256_store_si256((__m256i *)(void *)(line + 32), high);
}
/* As mixprec_across_fill_part_. */
MIXPREC_NOINLINE_ MIXPREC_AVX2_ void mixprec_across_fill_edge_avx2_(char *line, size_t height, const char *b,
                                                                    size_t stride, size_t columns, size_t bytes) {
    size_t i;
    if (bytes < 64)
        mixprec_across_fill_part_(line, height, b, stride, columns, bytes);
    else /* the last row again for those that are not there */
        for (i = 0; i < height; i++, b += i < columns ? stride : 0, line += 64)
            mixprec_across_fill_line_avx2_(line, b);
}
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_across_fill_avx2_(char *line, size_t height, const char *b,
                                                                   size_t stride, size_t columns, size_t bytes) {
    size_t i;
    if (bytes < 64 || columns < height)
        mixprec_across_fill_edge_avx2_(line, height, b, stride, columns, bytes);
    else
        for (i = 0; i < height; i++, b += stride, line += 64)
            mixprec_across_fill_line_avx2_(line, b);
}

/* sums = or += the products for all of k with the first columns of `columns`: as many vectors for each row. Lines are
   those of the cache where rows allow it: see mixprec_direct_thin_body_avx512_. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_across_body_avx2_(const int rows, const mixprec_dtype type,
                                                                   size_t columns, size_t depth, const char *a,
                                                                   const char *b, size_t stride, char *sums,
                                                                   int starts) {
    const int wide = type == MIXPREC_F64, words = wide ? 2 : 4;
    const size_t size = wide ? 8 : type == MIXPREC_F32 ? 4 : type == MIXPREC_F16 || type == MIXPREC_BF16 ? 2 : 1;
    const int vectors = MIXPREC_ACROSS_VECTORS_(rows, size);
    const size_t to_size = wide ? 8 : 4, lanes = 32 / to_size, height = (size_t)vectors * lanes, step = 16 / size;
    const int per_word = size >= 4 ? 1 : size == 2 ? 2 : 4;
    const size_t a_step = (size_t)rows * to_size, bytes = depth * size;
    const size_t phase = stride % 64 || (uintptr_t)b % 16 ? 0 : (uintptr_t)b % 64;
    __m256i lines[4 * 8 * 2];
    double a_edge[16 * MIXPREC_ACROSS_ROWS_ / 2];
    size_t at = 0, line = 0, line_end = 0;
    int i, j, k, q;
    for (; at < bytes; starts = 0) {
        const size_t end = mixprec_min_(at + MIXPREC_GEMM_KBLOCK * size, bytes);
        __m256 s[MIXPREC_ACROSS_ROWS_][4];
        __m256d w[MIXPREC_ACROSS_ROWS_][4]; /* in the place of s for f64: see mixprec_tile_body_avx2_ */
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
            s[i][j] = _mm256_setzero_ps();
            w[i][j] = _mm256_setzero_pd();
        }
        while (at < end) {
            const char *x = a;
            size_t stop, left;
            if (at == line_end) {
                line = at;
                line_end = at + mixprec_min_(64 - (phase + at) % 64, bytes - at);
                mixprec_across_fill_avx2_((char *)lines, height, b + at, stride, columns, line_end - at);
                mixprec_prefetch_rows_(b, at, bytes, stride, mixprec_min_(height, columns), MIXPREC_ACROSS_LEAD_);
            }
            stop = mixprec_min_(line_end, end);
            left = (stop - at) / size;
            a += left * a_step;
            for (; at < stop; at += 16, left -= step, x += step * a_step) {
                const char *from = (const char *)lines + (at - line);
                __m256i v[4][4];
                if (left < step) {
                    x = mixprec_across_edge_(a_edge, x, left * a_step, step * a_step, wide);
                    left = step;
                }
                MIXPREC_UNROLL_ for (j = 0; j < vectors; j++)
                    mixprec_across_load_avx2_(v[j], from + (size_t)j * lanes * 64, type);
                MIXPREC_UNROLL_ for (q = 0; q < words; q++) {
                    __m256 y[4][4];
                    MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) mixprec_across_expand_avx2_(y[j], v[j][q], type);
                    MIXPREC_UNROLL_ for (k = 0; k < per_word; k++) MIXPREC_UNROLL_ for (i = 0; i < rows; i++) {
                        const char *number = x + (size_t)(q * per_word + k) * a_step + (size_t)i * to_size;
                        MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) if (wide) w[i][j] =
                            _mm256_fmadd_pd(_mm256_broadcast_sd((const double *)(const void *)number),
                                            _mm256_castps_pd(y[j][k]), w[i][j]);
                        else s[i][j] =
                            _mm256_fmadd_ps(_mm256_broadcast_ss((const float *)(const void *)number), y[j][k], s[i][j]);
                    }
                }
            }
        }
        at = end;
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
            float *const to = (float *)(void *)(sums + 32 * (i * vectors + j));
            const __m256 sum = wide ? _mm256_castpd_ps(w[i][j]) : s[i][j];
            _mm256_storeu_ps(to, starts ? sum : mixprec_add_avx2_(_mm256_loadu_ps(to), sum, wide));
        }
    }
}

#define MIXPREC_ACROSS_AVX2_(rows)                                                                                     \
    MIXPREC_AVX2_ static void mixprec_across_##rows##_avx2_(mixprec_dtype type, size_t columns, size_t depth,          \
                                                            const char *a, const char *b, size_t stride, char *sums,   \
                                                            int starts) {                                              \
        switch (type) {                                                                                                \
            MIXPREC_ACROSS_ROW_(rows, MIXPREC_F64)                                                                     \
            MIXPREC_ACROSS_ROW_(rows, MIXPREC_F32)                                                                     \
            MIXPREC_ACROSS_ROW_(rows, MIXPREC_F16)                                                                     \
            MIXPREC_ACROSS_ROW_(rows, MIXPREC_BF16)                                                                    \
            MIXPREC_ACROSS_ROW_(rows, MIXPREC_E4M3)                                                                    \
            MIXPREC_ACROSS_ROW_(rows, MIXPREC_E5M2)                                                                    \
        default: break;                                                                                                \
        }                                                                                                              \
    }
#define MIXPREC_ACROSS_ROW_(rows, dtype)                                                                               \
    case dtype: mixprec_across_body_avx2_(rows, dtype, columns, depth, a, b, stride, sums, starts); break;
MIXPREC_ACROSS_AVX2_(1)
MIXPREC_ACROSS_AVX2_(2)
MIXPREC_ACROSS_AVX2_(4)
#undef MIXPREC_ACROSS_ROW_
#undef MIXPREC_ACROSS_AVX2_

MIXPREC_AVX2_ static void mixprec_across_avx2_(size_t rows, mixprec_dtype type, size_t columns, size_t depth,
                                               const char *a, const char *b, size_t stride, char *sums, int starts) {
    (rows == 1   ? mixprec_across_1_avx2_
     : rows == 2 ? mixprec_across_2_avx2_
                 : mixprec_across_4_avx2_)(type, columns, depth, a, b, stride, sums, starts);
}

/* 32 bytes of each of 8 rows, the last two at `last`, as lines of a panel, `line` bytes apart: 8 numbers for each k.
   Narrow elements are cheaper to transpose than the fp32 that they become. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_pack_lines_body_avx2_(char *dst, size_t line, const char *src,
                                                                       size_t stride, const char *last,
                                                                       const mixprec_dtype type) {
    const char *const rows[3] = {src, src + 3 * stride, last}; /* x86 adds once or twice the stride by itself */
    __m256i r[8], t[8];
    int i, k;
    MIXPREC_UNROLL_ for (i = 0; i < 8; i++) r[i] =
        _mm256_loadu_si256((const __m256i *)(const void *)(rows[i / 3] + (size_t)(i % 3) * stride));
    if (type == MIXPREC_F16 || type == MIXPREC_E4M3 || type == MIXPREC_E5M2) {
        const int narrow = type != MIXPREC_F16;
        char *upper = dst + (narrow ? 16 : 8) * line; /* the lines of the upper 16 bytes */
        /* Each step moves one bit of the row behind those of k, within 16 bytes. */
        MIXPREC_UNROLL_ for (k = 0; k < 3; k++) {
            MIXPREC_UNROLL_ for (i = 0; i < 4; i++) {
                t[2 * i] = narrow ? _mm256_unpacklo_epi8(r[i], r[i + 4]) : _mm256_unpacklo_epi16(r[i], r[i + 4]);
                t[2 * i + 1] = narrow ? _mm256_unpackhi_epi8(r[i], r[i + 4]) : _mm256_unpackhi_epi16(r[i], r[i + 4]);
            }
            MIXPREC_UNROLL_ for (i = 0; i < 8; i++) r[i] = t[i];
        }
        MIXPREC_UNROLL_ for (i = 0; i < 8; i++) {
            const __m256i zero = _mm256_setzero_si256();
            t[0] = narrow ? _mm256_unpacklo_epi8(zero, r[i]) : r[i];
            t[1] = _mm256_unpackhi_epi8(zero, r[i]);
            MIXPREC_UNROLL_ for (k = 0; k < 2; k++) {
                if (k == 0 || narrow) {
                    __m256i half = t[k];
                    __m256 x, y;
                    if (type == MIXPREC_E4M3)
                        half = mixprec_e4m3_shifted_avx2_(_mm256_srai_epi16(half, 1));
                    x = _mm256_cvtph_ps(_mm256_castsi256_si128(half));
                    y = _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1));
                    if (type == MIXPREC_E4M3) {
                        x = _mm256_mul_ps(x, _mm256_set1_ps(256.0f));
                        y = _mm256_mul_ps(y, _mm256_set1_ps(256.0f));
                    }
                    _mm256_storeu_ps((float *)(void *)dst, x);
                    _mm256_storeu_ps((float *)(void *)upper, y);
                    dst += line;
                    upper += line;
                }
            }
        }
        return;
    }
    if (type == MIXPREC_F64) {
        MIXPREC_UNROLL_ for (i = 0; i < 8; i += 2) {
            t[i] = _mm256_unpacklo_epi64(r[i], r[i + 1]);
            t[i + 1] = _mm256_unpackhi_epi64(r[i], r[i + 1]);
        }
        MIXPREC_UNROLL_ for (i = 0; i < 4; i++) MIXPREC_UNROLL_ for (k = 0; k < 8; k += 4) {
            const __m256i x = t[k + i % 2], y = t[k + i % 2 + 2];
            _mm256_storeu_si256((__m256i *)(void *)(dst + (size_t)i * line + k * 8),
                                i < 2 ? _mm256_permute2x128_si256(x, y, 0x20) : _mm256_permute2x128_si256(x, y, 0x31));
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
    MIXPREC_UNROLL_ for (i = 0; i < 8; i++) { /* 4 bytes of each row */
        const __m256i word = i < 4 ? _mm256_permute2x128_si256(r[i % 4], r[i % 4 + 4], 0x20)
                                   : _mm256_permute2x128_si256(r[i % 4], r[i % 4 + 4], 0x31);
        if (type == MIXPREC_F32)
            _mm256_storeu_si256((__m256i *)(void *)dst, word);
        else {
            _mm256_storeu_si256((__m256i *)(void *)dst, _mm256_slli_epi32(word, 16));
            dst += line;
            _mm256_storeu_si256((__m256i *)(void *)dst, _mm256_and_si256(word, _mm256_set1_epi32((int)0xFFFF0000u)));
        }
        dst += line;
    }
}

/* Not inlined: gcc 12 would keep all addresses for the next time, and have no registers left. */
MIXPREC_NOINLINE_ MIXPREC_AVX2_ void mixprec_pack_lines_avx2_(char *dst, size_t line, const char *src, size_t stride,
                                                              const char *last, mixprec_dtype type) {
    switch (type) {
    case MIXPREC_F32: mixprec_pack_lines_body_avx2_(dst, line, src, stride, last, MIXPREC_F32); break;
    case MIXPREC_F64: mixprec_pack_lines_body_avx2_(dst, line, src, stride, last, MIXPREC_F64); break;
    case MIXPREC_F16: mixprec_pack_lines_body_avx2_(dst, line, src, stride, last, MIXPREC_F16); break;
    case MIXPREC_BF16: mixprec_pack_lines_body_avx2_(dst, line, src, stride, last, MIXPREC_BF16); break;
    case MIXPREC_E4M3: mixprec_pack_lines_body_avx2_(dst, line, src, stride, last, MIXPREC_E4M3); break;
    default: mixprec_pack_lines_body_avx2_(dst, line, src, stride, last, MIXPREC_E5M2); break;
    }
}

/* All 8 columns are written: those beyond the panel's width spill into its next line, which is written later, or past
   its end, where the workspace has room. */
MIXPREC_AVX2_ static void mixprec_pack_across_avx2_(char *dst, size_t width, const char *src, mixprec_dtype type,
                                                    size_t stride, size_t count, size_t depth) {
    const size_t size = mixprec_size_of_(type), to_size = size == 8 ? 8 : 4, line = width * to_size;
    const size_t lines = 32 / size;
    size_t i, p, q, k, end;
    /* A cache line of each of 8 rows before the next 8: with a power of two between rows they share one set. */
    for (p = 0; p < depth; p = end) {
        end = mixprec_min_(p + 2 * lines, depth);
        mixprec_prefetch_rows_(src, p * size, depth * size, stride, mixprec_min_(width, count), MIXPREC_PREFETCH_);
        for (i = 0; i < width; i += 8) {
            const size_t rows = mixprec_min_(8, count > i ? count - i : 0);
            const char *const from = src + i * stride;
            for (q = p; q < end; q += lines) {
                char *const to = dst + q * line + i * to_size;
                const char *const at = from + q * size;
                const size_t there = mixprec_min_(lines, end - q);
                double panel[32 * 4];
                if (rows == 8 && there == lines) {
                    mixprec_pack_lines_avx2_(to, line, at, stride, at + 6 * stride, type);
                    continue;
                }
                if (width - i >= 8 && there == lines) { /* zeros in the place of the rows that are not there */
                    __m256i edge[8];
                    MIXPREC_UNROLL_ for (k = 0; k < 8; k++) edge[k] =
                        k < rows ? _mm256_loadu_si256((const __m256i *)(const void *)(at + k * stride))
                                 : _mm256_setzero_si256();
                    mixprec_pack_lines_avx2_(to, line, (const char *)edge, 32, (const char *)(edge + 6), type);
                    continue;
                }
                if (rows == 6 && width - i == 6 && there == lines) /* the first two rows again, for what spills */
                    mixprec_pack_lines_avx2_((char *)panel, 8 * to_size, at, stride, at, type);
                else { /* not all there: zeros in their place */
                    double edge[8][4] = {{0}};
                    for (k = 0; k < rows; k++)
                        mixprec_copy_(edge[k], at + k * stride, there * size);
                    mixprec_pack_lines_avx2_((char *)panel, 8 * to_size, (const char *)edge, 32, (const char *)edge[6],
                                             type);
                }
                for (k = 0; k < there; k++) { /* as a loop gcc 12 would make it a slow memcpy */
                    const float *part = (const float *)(const void *)panel + k * to_size * 2;
                    _mm256_storeu_ps((float *)(void *)(to + k * line), _mm256_loadu_ps(part));
                    if (to_size == 8)
                        _mm256_storeu_ps((float *)(void *)(to + k * line + 32), _mm256_loadu_ps(part + 8));
                }
            }
        }
    }
}

/* Elements that lie side by side in src as in the panel. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_pack_along_avx2_(float *dst, size_t width, const char *src,
                                                                  const mixprec_dtype type, size_t stride, size_t count,
                                                                  size_t depth) {
    const size_t size = mixprec_size_of_(type);
    const char *const end = src + (depth ? depth - 1 : 0) * stride + count * size;
    size_t i, p;
    for (p = 0; p < depth; p++, src += stride, dst += width) {
        for (i = 0; i + 16 <= count; i += 16) {
            _mm256_storeu_ps(dst + i, mixprec_load8_avx2_(src + i * size, type));
            _mm256_storeu_ps(dst + i + 8, mixprec_load8_avx2_(src + (i + 8) * size, type));
        }
        for (; i + 8 <= count; i += 8)
            _mm256_storeu_ps(dst + i, mixprec_load8_avx2_(src + i * size, type)); /* may spill as above */
        for (; i < width; i += 8) {                                               /* not all there */
            const size_t there = count > i ? count - i : 0;
            double edge[8] = {0};
            if (there == 0)
                _mm256_storeu_ps(dst + i, _mm256_setzero_ps());
            else if (type == MIXPREC_F32)
                _mm256_storeu_ps(dst + i, mixprec_words_avx2_(src + i * size, there, end - (src + i * size)));
            else {
                mixprec_copy_(edge, src + i * size, there * size);
                _mm256_storeu_ps(dst + i, mixprec_load8_avx2_(edge, type));
            }
        }
    }
}

MIXPREC_AVX2_ static void mixprec_pack_avx2_(void *dst, size_t width, const void *src, mixprec_dtype type, size_t ld,
                                             int along, size_t count, size_t depth, int wide) {
    const char *from = (const char *)src;
    size_t stride = ld * mixprec_size_of_(type);
    if (type == MIXPREC_F64 && along && wide)
        mixprec_pack_along_avx2_((float *)dst, 2 * width, from, MIXPREC_F32, stride, 2 * count, depth);
    else if (type == MIXPREC_F64 && !along && !wide) /* rare */
        mixprec_pack_c_(dst, width, src, type, ld, along, count, depth, wide);
    else if (!along)
        mixprec_pack_across_avx2_((char *)dst, width, from, type, stride, count, depth);
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

/* ---- reductions and quantisation: any n, the rest of a vector in portable C. AVX-512 machines run these, too: memory
   and division limit them; but sums of f32, f16 and bf16, and what narrows, have kernels of their own. ---- */

#if !defined(MIXPREC_NO_REDUCE) || !defined(MIXPREC_NO_LAYERS)
/* Eight vectors of four lanes. Conversion to f64 takes most of the time; a product that is exact may be fused, or not.
   `magnitude` is what to keep of the bits of a term that is not squared. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_reduce_as_avx2_(double *lanes, const char *x, const char *y,
                                                                 mixprec_dtype type, size_t n,
                                                                 mixprec_reduction reduction, uint32_t magnitude,
                                                                 int centered, double center) {
    const __m256 keep = _mm256_castsi256_ps(_mm256_set1_epi32((int)magnitude));
    const __m256d shift = _mm256_set1_pd(center);
    const size_t size = mixprec_size_of_(type);
    __m256d sum[8];
    size_t i;
    int j, k;
    MIXPREC_UNROLL_ for (j = 0; j < 8; j++) sum[j] = _mm256_loadu_pd(lanes + 4 * j);
    for (i = 0; i < n; i += MIXPREC_LANES_)
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
            __m256 p = mixprec_load8_avx2_(x + (i + 8 * (size_t)j) * size, type), q = p;
            if (reduction == MIXPREC_SUM)
                p = _mm256_and_ps(p, keep);
            if (reduction == MIXPREC_DOT)
                q = mixprec_load8_avx2_(y + (i + 8 * (size_t)j) * size, type);
            MIXPREC_UNROLL_ for (k = 0; k < 2; k++) {
                __m256d term = _mm256_cvtps_pd(k ? _mm256_extractf128_ps(p, 1) : _mm256_castps256_ps128(p));
                __m256d *to = &sum[2 * j + k];
                if (reduction == MIXPREC_DOT)
                    *to = _mm256_fmadd_pd(
                        term, _mm256_cvtps_pd(k ? _mm256_extractf128_ps(q, 1) : _mm256_castps256_ps128(q)), *to);
                else if (reduction == MIXPREC_SUM_SQUARES && !centered)
                    *to = _mm256_fmadd_pd(term, term, *to);
                else if (reduction == MIXPREC_SUM_SQUARES) {
                    term = _mm256_sub_pd(term, shift);
                    term = _mm256_mul_pd(term, term);
                    MIXPREC_KEEP_(term);
                    *to = _mm256_add_pd(*to, term);
                } else
                    *to = _mm256_add_pd(*to, term);
            }
        }
    MIXPREC_UNROLL_ for (j = 0; j < 8; j++) _mm256_storeu_pd(lanes + 4 * j, sum[j]);
}

MIXPREC_REDUCE_(avx2, MIXPREC_AVX2_)
#endif

#if !defined(MIXPREC_NO_REDUCE) || !defined(MIXPREC_NO_QUANT)
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256i mixprec_larger_avx2_(__m256i a, __m256i b, size_t size) {
    return size == 4 ? _mm256_max_epu32(a, b) : size == 2 ? _mm256_max_epu16(a, b) : _mm256_max_epu8(a, b);
}

/* The codes of 32 bytes without their signs. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256i mixprec_magnitudes_avx2_(const char *x, size_t size) {
    const __m256i magnitude = size == 4   ? _mm256_set1_epi32(0x7FFFFFFF)
                              : size == 2 ? _mm256_set1_epi16(0x7FFF)
                                          : _mm256_set1_epi8(0x7F);
    return _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(const void *)x), magnitude);
}

/* The largest of 16; one instruction finds the least of 8. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ uint32_t mixprec_most16_avx2_(__m256i x) {
    __m128i most = _mm_max_epu16(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    return ~(uint32_t)_mm_cvtsi128_si32(_mm_minpos_epu16(_mm_xor_si128(most, _mm_set1_epi16(-1)))) & 0xFFFF;
}

/* As mixprec_larger_amax_, 8 at a time. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_larger_amaxes_avx2_(uint32_t *amax, __m256i codes, mixprec_dtype type,
                                                                     const size_t size) {
    __m256i *to = (__m256i *)(void *)amax, bits = codes;
    if (size == 2 && type == MIXPREC_BF16)
        bits = _mm256_slli_epi32(codes, 16);
    else if (size < 4) {
        const int is_e4m3 = size == 1 && type == MIXPREC_E4M3;
        __m256i half = size == 2 ? codes
                       : is_e4m3 ? mixprec_e4m3_shifted_avx2_(_mm256_slli_epi32(codes, 7))
                                 : _mm256_slli_epi32(codes, 8);
        __m256 x = _mm256_cvtph_ps(_mm_packus_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
        bits = _mm256_castps_si256(is_e4m3 ? _mm256_mul_ps(x, _mm256_set1_ps(256.0f)) : x);
    }
    _mm256_storeu_si256(to, _mm256_max_epu32(bits, _mm256_loadu_si256(to)));
}

/* Eight blocks of whole lines, or of one vector, at a time: their vectors of largest codes become one vector of eight
   codes. Quantising bf16 on Zen 5 takes 38 cycles for 64 elements in blocks of 32, 47 in blocks of 16, where one block
   by itself made that 54, 77. The last vectors of other blocks may look at elements for the second time. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_amax_as_avx2_(uint32_t *amax, const char *x, mixprec_dtype type,
                                                               const size_t size, size_t n, size_t block) {
    const size_t lead = mixprec_lead_(), whole = block * size;
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    size_t count, i;
    int j;
    for (; block == 1 && n >= 8; n -= 8, x += 8 * size, amax += 8) { /* no largest one to be found in a vector */
        __m256i codes = size == 4   ? _mm256_loadu_si256((const __m256i *)(const void *)x)
                        : size == 2 ? _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)x))
                                    : _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)x));
        codes = _mm256_and_si256(codes, _mm256_set1_epi32(size == 4 ? 0x7FFFFFFF : size == 2 ? 0x7FFF : 0x7F));
        mixprec_larger_amaxes_avx2_(amax, codes, type, size);
    }
    for (; (whole % 64 == 0 || whole == 32) && n / 8 >= block; n -= 8 * block, x += 8 * whole, amax += 8) {
        __m256i v[8];
        __m256 pair[2];
        MIXPREC_UNROLL_ for (j = 0; j < 8; j++) {
            const char *from = x + (size_t)j * whole;
            v[j] = mixprec_magnitudes_avx2_(from, size);
            if (whole != 32) {
                __m256i other = mixprec_magnitudes_avx2_(from + 32, size);
                for (i = 64; i < whole; i += 64) {
                    v[j] = mixprec_larger_avx2_(v[j], mixprec_magnitudes_avx2_(from + i, size), size);
                    other = mixprec_larger_avx2_(other, mixprec_magnitudes_avx2_(from + i + 32, size), size);
                }
                v[j] = mixprec_larger_avx2_(v[j], other, size);
            }
        }
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) v[j] =
            mixprec_larger_avx2_(_mm256_permute2x128_si256(v[2 * j], v[2 * j + 1], 0x20),
                                 _mm256_permute2x128_si256(v[2 * j], v[2 * j + 1], 0x31), size);
        MIXPREC_UNROLL_ for (j = 0; j < 2; j++) v[j] = mixprec_larger_avx2_(
            _mm256_unpacklo_epi64(v[2 * j], v[2 * j + 1]), _mm256_unpackhi_epi64(v[2 * j], v[2 * j + 1]), size);
        pair[0] = _mm256_castsi256_ps(v[0]);
        pair[1] = _mm256_castsi256_ps(v[1]);
        v[0] = mixprec_larger_avx2_(_mm256_castps_si256(_mm256_shuffle_ps(pair[0], pair[1], 0x88)),
                                    _mm256_castps_si256(_mm256_shuffle_ps(pair[0], pair[1], 0xDD)), size);
        v[0] = size < 4 ? mixprec_larger_avx2_(v[0], _mm256_srli_epi32(v[0], 16), size) : v[0];
        v[0] = size < 2 ? mixprec_larger_avx2_(v[0], _mm256_srli_epi32(v[0], 8), size) : v[0];
        v[0] = size < 4 ? _mm256_and_si256(v[0], _mm256_set1_epi32(size == 2 ? 0xFFFF : 0xFF)) : v[0];
        mixprec_larger_amaxes_avx2_(amax, _mm256_permutevar8x32_epi32(v[0], order), type, size);
    }
    for (; n; n -= count, x += count * size, amax++) {
        const size_t bytes = (count = mixprec_min_(n, block)) * size;
        __m256i largest[4];
        __m128i last;
        if (bytes < 32) {
            mixprec_amax_c_(amax, x, type, n, block);
            return;
        }
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) largest[j] =
            mixprec_magnitudes_avx2_(x + mixprec_min_(32 * (size_t)j, bytes - 32), size);
        for (i = 128; i < bytes; i += 128) {
            const char *from = x + mixprec_min_(i, bytes - 128);
            mixprec_ahead_by_(lead, x, mixprec_min_(i, bytes - 128), bytes, 128, 1);
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) largest[j] =
                mixprec_larger_avx2_(largest[j], mixprec_magnitudes_avx2_(from + 32 * (size_t)j, size), size);
        }
        largest[0] = mixprec_larger_avx2_(mixprec_larger_avx2_(largest[0], largest[1], size),
                                          mixprec_larger_avx2_(largest[2], largest[3], size), size);
        if (size == 1)
            largest[0] = _mm256_and_si256(_mm256_max_epu8(largest[0], _mm256_srli_epi16(largest[0], 8)),
                                          _mm256_set1_epi16(0xFF));
        if (size == 4) {
            last = _mm_max_epu32(_mm256_castsi256_si128(largest[0]), _mm256_extracti128_si256(largest[0], 1));
            last = _mm_max_epu32(last, _mm_shuffle_epi32(last, 0x4E));
            last = _mm_max_epu32(last, _mm_shuffle_epi32(last, 0xB1));
            mixprec_larger_amax_(amax, (uint32_t)_mm_cvtsi128_si32(last), type);
        } else
            mixprec_larger_amax_(amax, mixprec_most16_avx2_(largest[0]), type);
    }
}
MIXPREC_AMAX_(avx2, MIXPREC_AVX2_)
#endif

#ifndef MIXPREC_NO_QUANT
MIXPREC_AVX2_ static void mixprec_scale_blocks_avx2_(float *dst, const float *src, size_t n, size_t block, size_t first,
                                                     const float *factors) {
    size_t i, end;
    for (i = 0; block == 1 && i + 8 <= n; i += 8, factors += 8)
        _mm256_storeu_ps(dst + i, _mm256_mul_ps(_mm256_loadu_ps(src + i), _mm256_loadu_ps(factors)));
    for (; i < n; first = 0, factors++) {
        const __m256 factor = _mm256_set1_ps(*factors);
        for (end = i + mixprec_min_(n - i, block - first); i + 8 <= end; i += 8)
            _mm256_storeu_ps(dst + i, _mm256_mul_ps(_mm256_loadu_ps(src + i), factor));
        for (; i < end; i++)
            _mm_store_ss(dst + i, _mm_mul_ss(_mm_load_ss(src + i), _mm256_castps256_ps128(factor)));
    }
}

/* int8, and what mixprec_narrow_of_ calls odd. */
static int mixprec_is_odd_(mixprec_dtype type) {
    return type != MIXPREC_E4M3 && type != MIXPREC_E5M2 && type != MIXPREC_E4M3IEEE && type != MIXPREC_E3M4;
}
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_narrow_as_avx2_(uint8_t *dst, mixprec_dtype dst_type, const char *src,
                                                                 mixprec_dtype src_type, size_t n, size_t block,
                                                                 const float *factors, const int odd) {
    const int integers = odd && dst_type == MIXPREC_I8, pairs = odd && dst_type == MIXPREC_E2M1;
    const mixprec_narrow_ p = mixprec_narrow_of_(integers ? MIXPREC_E4M3 : dst_type, MIXPREC_OVERFLOW_SATURATE);
    const size_t lead = mixprec_strip_() * 3 / 2;
    const size_t size = mixprec_size_of_(src_type);
    const size_t some = block < 32 ? 32 / block : 1; /* factors of 32 elements */
    size_t i, end;
    int j;
    for (i = 0; i < n; factors += some) {
        __m256 factor[4];
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) factor[j] = _mm256_set1_ps(factors[(size_t)j * some / 4]);
        for (end = i + mixprec_min_(n - i, some * block); i < end; i += 32) {
            __m256i x[4];
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] = _mm256_castps_si256(
                _mm256_mul_ps(mixprec_load8_avx2_(src + (i + 8 * (size_t)j) * size, src_type), factor[j]));
            mixprec_fetch_avx2_((uintptr_t)(src + i * size) + lead, 32 * size);
            x[0] = integers ? mixprec_integers32_avx2_(x) : mixprec_narrow32_avx2_(x, &p, odd);
            mixprec_put32_avx2_(dst + (pairs ? i / 2 : i), x[0], pairs, 0);
        }
    }
}
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_narrow_to_avx2_(uint8_t *dst, mixprec_dtype dst_type, const char *src,
                                                                 mixprec_dtype src_type, size_t n, size_t block,
                                                                 const float *factors, const int odd) {
    if (src_type == MIXPREC_F32)
        mixprec_narrow_as_avx2_(dst, dst_type, src, MIXPREC_F32, n, block, factors, odd);
    else if (src_type == MIXPREC_F16)
        mixprec_narrow_as_avx2_(dst, dst_type, src, MIXPREC_F16, n, block, factors, odd);
    else
        mixprec_narrow_as_avx2_(dst, dst_type, src, MIXPREC_BF16, n, block, factors, odd);
}
MIXPREC_AVX2_ static void mixprec_narrow_avx2_(void *dst, mixprec_dtype dst_type, const void *src,
                                               mixprec_dtype src_type, size_t n, size_t block, const float *factors,
                                               uint32_t *amax, int around) {
    uint8_t *to = (uint8_t *)dst;
    const char *from = (const char *)src;
    (void)around;
    if (amax)
        mixprec_amax_avx2_(amax, src, src_type, n, n);
    if (mixprec_is_odd_(dst_type))
        mixprec_narrow_to_avx2_(to, dst_type, from, src_type, n, block, factors, 1);
    else
        mixprec_narrow_to_avx2_(to, dst_type, from, src_type, n, block, factors, 0);
}

/* 32 elements of e4m3, e5m2, fp4 or int8. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_load32_avx2_(__m256 x[4], const uint8_t *src, mixprec_dtype type) {
    const __m128i zero = _mm_setzero_si128();
    __m128i codes[2];
    int j;
    if (type == MIXPREC_I8) {
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] = mixprec_load8_more_avx2_(src + 8 * j, MIXPREC_I8);
        return;
    }
    if (type == MIXPREC_E2M1)
        mixprec_e2m1_to_e5m2_avx2_(codes, src);
    else
        MIXPREC_UNROLL_ for (j = 0; j < 2; j++) codes[j] =
            _mm_loadu_si128((const __m128i *)(const void *)(src + 16 * j));
    MIXPREC_UNROLL_ for (j = 0; j < 2; j++) if (type == MIXPREC_E4M3) {
        const __m256i half = mixprec_e4m3_to_half_avx2_(codes[j]);
        const __m256 scale = _mm256_set1_ps(256.0f);
        x[2 * j] = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(half)), scale);
        x[2 * j + 1] = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(half, 1)), scale);
    }
    else {
        x[2 * j] = _mm256_cvtph_ps(_mm_unpacklo_epi8(zero, codes[j]));
        x[2 * j + 1] = _mm256_cvtph_ps(_mm_unpackhi_epi8(zero, codes[j]));
    }
}

/* Of the narrow types' NaNs no rounding to bf16 makes anything else: their lower bits are zero. A branch for each 32
   elements takes less than three times the code. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ void mixprec_widen_as_avx2_(char *dst, mixprec_dtype dst_type, const uint8_t *src,
                                                                mixprec_dtype src_type, size_t n, size_t block,
                                                                const float *factors) {
    const size_t size = mixprec_size_of_(dst_type), some = block < 32 ? 32 / block : 1; /* factors of 32 elements */
    size_t i, end;
    int j;
    for (i = 0; i < n; factors += some) {
        __m256 factor[4];
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) factor[j] = _mm256_set1_ps(factors[(size_t)j * some / 4]);
        for (end = i + mixprec_min_(n - i, some * block); i < end; i += 32, dst += 32 * size) {
            __m256 x[4];
            mixprec_load32_avx2_(x, src + mixprec_bytes_of_(src_type, i), src_type);
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] = _mm256_mul_ps(x[j], factor[j]);
            if (dst_type == MIXPREC_F32)
                mixprec_put4_avx2_(dst, x, 0);
            else if (dst_type == MIXPREC_F16)
                MIXPREC_UNROLL_ for (j = 0; j < 4; j++) _mm_storeu_si128(
                    (__m128i *)(void *)dst + j, mixprec_encode_f16_avx2_(x[j], MIXPREC_ROUND_NEAREST_EVEN));
            else {
                __m256i c[4];
                MIXPREC_UNROLL_ for (j = 0; j < 4; j++) c[j] =
                    mixprec_encode_bf16_avx2_(_mm256_castps_si256(x[j]), 1, MIXPREC_ROUND_NEAREST_EVEN);
                mixprec_pack16_avx2_(dst, c[0], c[1], 0);
                mixprec_pack16_avx2_(dst + 32, c[2], c[3], 0);
            }
        }
    }
}
MIXPREC_AVX2_ static void mixprec_widen_avx2_(void *dst, mixprec_dtype dst_type, const void *src,
                                              mixprec_dtype src_type, size_t n, size_t block, const float *factors) {
    char *to = (char *)dst;
    const uint8_t *from = (const uint8_t *)src;
    if (src_type == MIXPREC_E4M3)
        mixprec_widen_as_avx2_(to, dst_type, from, MIXPREC_E4M3, n, block, factors);
    else if (src_type == MIXPREC_E5M2)
        mixprec_widen_as_avx2_(to, dst_type, from, MIXPREC_E5M2, n, block, factors);
    else if (src_type == MIXPREC_E2M1)
        mixprec_widen_as_avx2_(to, dst_type, from, MIXPREC_E2M1, n, block, factors);
    else
        mixprec_widen_as_avx2_(to, dst_type, from, MIXPREC_I8, n, block, factors);
}

/* Through f64, which changes nothing and which -ffast-math does not approximate. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX2_ __m256 mixprec_quotients_avx2_(__m256d a, __m256 b) {
    __m128 low = _mm256_cvtpd_ps(_mm256_div_pd(a, _mm256_cvtps_pd(_mm256_castps256_ps128(b))));
    __m128 high = _mm256_cvtpd_ps(_mm256_div_pd(a, _mm256_cvtps_pd(_mm256_extractf128_ps(b, 1))));
    return _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
}
MIXPREC_AVX2_ static void mixprec_block_scales_avx2_(float *factors, float *inverses, const uint32_t *amax, size_t n,
                                                     float max, int power_of_two) {
    const __m256i largest = _mm256_set1_epi32(0x7F7FFFFF);
    const __m256i keep = _mm256_set1_epi32(power_of_two ? 0x7F800000 : -1), one = _mm256_set1_epi32(0x3F800000);
    size_t i;
    for (i = 0; i < n; i += 8) {
        __m256i bits = _mm256_loadu_si256((const __m256i *)(const void *)(amax + i)), factor;
        __m256i positive = _mm256_cmpgt_epi32(bits, _mm256_setzero_si256());
        __m256i finite = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x7F800000), bits);
        factor = _mm256_castps_si256(mixprec_quotients_avx2_(_mm256_set1_pd((double)max), _mm256_castsi256_ps(bits)));
        factor = _mm256_min_epu32(factor, largest); /* not below 2^-126: `max` is at least 6 */
        factor = mixprec_blend_avx2_(one, factor, _mm256_and_si256(positive, finite));
        factor = _mm256_and_si256(factor, keep);
        _mm256_storeu_si256((__m256i *)(void *)(factors + i), factor);
        _mm256_storeu_ps(inverses + i, mixprec_quotients_avx2_(_mm256_set1_pd(1.0), _mm256_castsi256_ps(factor)));
    }
}
#endif

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

/* The values of 8-bit floats fit bf16: AVX512_VBMI looks up both bytes, for 64 codes without their signs at a time.
   Lower bytes of codes 0 to 127, upper bytes of those; E4M3, E5M2. */
static const uint64_t mixprec_fp8_bytes_[2][32] = {
    {0x60402000C0800000, 0xF0E0D0C0B0A09080, 0x7060504030201000, 0xF0E0D0C0B0A09080, 0x7060504030201000,
     0xF0E0D0C0B0A09080, 0x7060504030201000, 0xF0E0D0C0B0A09080, 0x7060504030201000, 0xF0E0D0C0B0A09080,
     0x7060504030201000, 0xF0E0D0C0B0A09080, 0x7060504030201000, 0xF0E0D0C0B0A09080, 0x7060504030201000,
     0xF0E0D0C0B0A09080, 0x3C3C3C3C3B3B3B00, 0x3C3C3C3C3C3C3C3C, 0x3D3D3D3D3D3D3D3D, 0x3D3D3D3D3D3D3D3D,
     0x3E3E3E3E3E3E3E3E, 0x3E3E3E3E3E3E3E3E, 0x3F3F3F3F3F3F3F3F, 0x3F3F3F3F3F3F3F3F, 0x4040404040404040,
     0x4040404040404040, 0x4141414141414141, 0x4141414141414141, 0x4242424242424242, 0x4242424242424242,
     0x4343434343434343, 0x7F43434343434343},
    {0xE0C0A08040008000, 0xE0C0A08060402000, 0xE0C0A08060402000, 0xE0C0A08060402000, 0xE0C0A08060402000,
     0xE0C0A08060402000, 0xE0C0A08060402000, 0xE0C0A08060402000, 0xE0C0A08060402000, 0xE0C0A08060402000,
     0xE0C0A08060402000, 0xE0C0A08060402000, 0xE0C0A08060402000, 0xE0C0A08060402000, 0xE0C0A08060402000,
     0xE0C0E08060402000, 0x3838383838383700, 0x3939393939393939, 0x3A3A3A3A3A3A3A3A, 0x3B3B3B3B3B3B3B3B,
     0x3C3C3C3C3C3C3C3C, 0x3D3D3D3D3D3D3D3D, 0x3E3E3E3E3E3E3E3E, 0x3F3F3F3F3F3F3F3F, 0x4040404040404040,
     0x4141414141414141, 0x4242424242424242, 0x4343434343434343, 0x4444444444444444, 0x4545454545454545,
     0x4646464646464646, 0x7F7F7F7F47474747}};
static const uint64_t *mixprec_fp8_table_(mixprec_dtype type) {
#if defined(_MSC_VER) && !defined(__clang__)
    (void)type;
    return NULL;
#else
    if ((type != MIXPREC_E4M3 && type != MIXPREC_E5M2) || !(mixprec_features_() & MIXPREC_UNIT_VBMI_))
        return NULL;
    return mixprec_fp8_bytes_[type == MIXPREC_E5M2];
#endif
}

/* By name, for its intrinsic is not to be had without compiling whole functions for AVX512_VBMI. MSVC knows no
   names. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512i mixprec_lookup_avx512_(__m512i codes, __m512i low, __m512i high) {
#if defined(_MSC_VER) && !defined(__clang__)
    (void)low;
    (void)high;
#else
    __asm__("vpermi2b {%2, %1, %0|%0, %1, %2}" : "+v"(codes) : "v"(low), "v"(high));
#endif
    return codes;
}
/* A table in registers: a compiler must take what is stored for a change of it in memory. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_fp8_registers_avx512_(__m512i registers[4], const uint64_t *table) {
    int i;
    MIXPREC_UNROLL_ for (i = 0; i < 4; i++) registers[i] = _mm512_loadu_si512(table + 8 * i);
}
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_fp8_to_bf16_avx512_(__m512i *low, __m512i *high, __m512i codes,
                                                                       const __m512i table[4]) {
    *low = mixprec_lookup_avx512_(codes, table[0], table[1]);
    *high = _mm512_ternarylogic_epi32(mixprec_lookup_avx512_(codes, table[2], table[3]), codes,
                                      _mm512_set1_epi8((char)0x80), 0xF8); /* | (codes & 0x80) */
}
MIXPREC_PUT_(avx512_, MIXPREC_AVX512_, __m512i, __m512, 512)
#undef MIXPREC_PUT_

/* 64 elements. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_fp8_to_f32_avx512_(__m512 x[4], const void *src,
                                                                      const __m512i table[4]) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i zero = _mm512_setzero_si512();
    __m512i low, high;
    int j;
    mixprec_fp8_to_bf16_avx512_(&low, &high, _mm512_permutexvar_epi32(order, _mm512_loadu_si512(src)), table);
    MIXPREC_UNROLL_ for (j = 0; j < 4; j += 2) {
        const __m512i half = j ? _mm512_unpackhi_epi8(low, high) : _mm512_unpacklo_epi8(low, high);
        x[j] = _mm512_castsi512_ps(_mm512_unpacklo_epi16(zero, half));
        x[j + 1] = _mm512_castsi512_ps(_mm512_unpackhi_epi16(zero, half));
    }
}
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_fp8_load64_avx512_(float *dst, const void *src,
                                                                      const __m512i table[4], int around) {
    __m512 x[4];
    mixprec_fp8_to_f32_avx512_(x, src, table);
    mixprec_put4_avx512_(dst, x, around);
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

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic                                                                                                 \
    push /* gcc 12's _mm512_range_ps, a macro where nothing is optimised, passes its mask as signed */
#pragma GCC diagnostic ignored "-Wsign-conversion"
#endif
/* The larger magnitude, with the sign of x, of numbers; where both are NaN, x, made quiet. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512 mixprec_range_avx512_(__m512 x, __m512 y) {
    return _mm512_range_ps(x, y, 3);
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

MIXPREC_AVX512_ static void mixprec_load_avx512_(float *dst, const void *src, mixprec_dtype type, size_t n,
                                                 int around) {
    /* e5m2 goes by way of half precision: in L1 .12 cycles on Emerald Rapids, .15 on Zen 4; by its table .17, .16. */
    const uint64_t *table = type == MIXPREC_E4M3 ? mixprec_fp8_table_(type) : NULL;
    size_t i, j;
    if (table) {
        __m512i registers[4];
        mixprec_fp8_registers_avx512_(registers, table);
        for (i = 0; i < n; i += 64)
            mixprec_fp8_load64_avx512_(dst + i, (const char *)src + i, registers, around);
        return;
    }
    switch (type) {
    case MIXPREC_F64:
        for (i = 0; i < n; i += 64) {
            const double *from = (const double *)src + i;
            __m512 x[4];
            if (around)
                mixprec_ahead_(src, i, n, 64, sizeof *from);
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] = mixprec_load16_avx512_(from + 16 * j, MIXPREC_F64, 0xFFFF);
            mixprec_put4_avx512_(dst + i, x, around);
        }
        break;
    case MIXPREC_F16:
        for (i = 0; i < n; i += 64) {
            const mixprec_f16 *from = (const mixprec_f16 *)src + i;
            __m512 x[4];
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] = mixprec_load16_avx512_(from + 16 * j, MIXPREC_F16, 0xFFFF);
            mixprec_put4_avx512_(dst + i, x, around);
        }
        break;
    case MIXPREC_BF16:
        for (i = 0; i < n; i += 64) {
            const mixprec_bf16 *from = (const mixprec_bf16 *)src + i;
            __m512 x[4];
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] = mixprec_load16_avx512_(from + 16 * j, MIXPREC_BF16, 0xFFFF);
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] = mixprec_range_avx512_(x[j], x[j]);
            mixprec_put4_avx512_(dst + i, x, around);
        }
        break;
    case MIXPREC_E4M3:
        for (i = 0; i < n; i += 32) {
            const __m512 scale = _mm512_set1_ps(256.0f);
            __m512i half = mixprec_e4m3_to_half_avx512_(
                _mm256_loadu_si256((const __m256i *)(const void *)((const mixprec_e4m3 *)src + i)));
            mixprec_put_ps_avx512_(dst + i, _mm512_mul_ps(_mm512_cvtph_ps(_mm512_castsi512_si256(half)), scale),
                                   around);
            mixprec_put_ps_avx512_(dst + i + 16,
                                   _mm512_mul_ps(_mm512_cvtph_ps(_mm512_extracti64x4_epi64(half, 1)), scale), around);
        }
        break;
    case MIXPREC_E5M2:
        for (i = 0; i < n; i += 64) {
            /* 16 bytes in both halves; 8 of each in the upper bytes of 16-bit numbers, zeros (0x80) in the lower
               ones */
            const __m256i upper = _mm256_setr_epi64x((int64_t)0x0380028001800080, (int64_t)0x0780068005800480,
                                                     (int64_t)0x0B800A8009800880, (int64_t)0x0F800E800D800C80);
            __m512 x[4];
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
                const mixprec_e5m2 *from = (const mixprec_e5m2 *)src + i + 16 * j;
                const __m256i codes = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)from));
                x[j] = _mm512_cvtph_ps(_mm256_shuffle_epi8(codes, upper));
            }
            mixprec_put4_avx512_(dst + i, x, around);
        }
        break;
    default: mixprec_load_more_avx2_(dst, src, type, n, around); break;
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

/* The numbers of mixprec_narrow_ in all lanes. gcc would broadcast them again for each vector in a loop that may call a
   function. */
typedef struct mixprec_narrow_lanes_ {
    __m512 least, multiplier;
    __m512i weights;
} mixprec_narrow_lanes_;
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ mixprec_narrow_lanes_ mixprec_narrow_lanes_of_(const mixprec_narrow_ *p) {
    mixprec_narrow_lanes_ lanes;
    lanes.least = _mm512_set1_ps(p->least);
    lanes.multiplier = _mm512_set1_ps(p->multiplier);
    lanes.weights = _mm512_set1_epi32(p->weights);
#if defined(__GNUC__)
    __asm__("" : "+v"(lanes.least), "+v"(lanes.multiplier), "+v"(lanes.weights));
#endif
    return lanes;
}

/* The codes of mixprec_narrow_ in the low half of each lane. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512i mixprec_narrow16_avx512_(__m512 x, const mixprec_narrow_lanes_ *p) {
    const __m512 signed_exponent = _mm512_castsi512_ps(_mm512_set1_epi32((int)0xFF800000u));
    __m512 unit = mixprec_range_avx512_(_mm512_and_ps(x, signed_exponent), p->least);
    return _mm512_madd_epi16(_mm512_castps_si512(_mm512_fmadd_ps(unit, p->multiplier, x)), p->weights);
}

/* 64 bytes from the same as 16-bit numbers, whose blocks of 4 stand in `order`. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512i mixprec_narrow64_avx512_(__m512i c0, __m512i c1, __m512i order,
                                                                       const mixprec_narrow_ *p, const int odd) {
    const __m512i shift = _mm512_set1_epi16((short)(p->shift + 1));
    __m512i code = _mm512_packus_epi16(_mm512_srlv_epi16(_mm512_slli_epi16(c0, 1), shift),
                                       _mm512_srlv_epi16(_mm512_slli_epi16(c1, 1), shift));
    code = _mm512_min_epu8(code, _mm512_set1_epi8((char)p->max_code));
    if (odd) {
        const __mmask64 zero = _mm512_testn_epi8_mask(code, code), plain = p->unsigned_zero ? zero : 0;
        __m512i sign = _mm512_and_si512(_mm512_packs_epi16(c0, c1), _mm512_set1_epi8((char)0x80));
        sign = _mm512_srl_epi16(sign, _mm_cvtsi32_si128(p->sign_shift));
        code = _mm512_or_si512(code, _mm512_maskz_mov_epi8(~plain, sign));
    } else
        code = _mm512_ternarylogic_epi32(code, _mm512_packs_epi16(c0, c1), _mm512_set1_epi8((char)0x80), 0xF8);
    return _mm512_permutexvar_epi32(order, code);
}

/* 64 bytes of codes to an array; fp4 as pairs, low + 16 high. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_put64_avx512_(void *dst, __m512i codes, int pairs, int around) {
    if (pairs)
        mixprec_put_avx2_(dst, _mm512_cvtepi16_epi8(_mm512_maddubs_epi16(codes, _mm512_set1_epi16(0x1001))), around);
    else
        mixprec_put_avx512_(dst, codes, around);
}

/* bfloat16, not NaN, in the upper half of each lane. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512i mixprec_encode_bf16_avx512_(__m512i x, const int even,
                                                                          mixprec_round round) {
    const __m512i bias = _mm512_set1_epi32(mixprec_bf16_bias_(round, 0));
    if (even) {
        const __mmask16 odd = _mm512_test_epi32_mask(x, _mm512_set1_epi32(0x10000));
        x = _mm512_add_epi32(x, bias);
        return _mm512_mask_add_epi32(x, odd, x, _mm512_set1_epi32(1));
    }
    return _mm512_add_epi32(
        x, _mm512_mask_mov_epi32(bias, _mm512_movepi32_mask(x), _mm512_set1_epi32(mixprec_bf16_bias_(round, 1))));
}

/* mixprec_narrow_f32_ sixteen at a time: any format, mode and policy. */
typedef struct mixprec_encoder_avx512_ {
    __m512i bias, shift, min_shift, mantissa_bits;
    __m512i threshold_positive, threshold_negative, odd;
    __m512i max_code, overflow_positive, overflow_negative, inf_code, nan_code, payload, sign_code;
    int stochastic, special;
} mixprec_encoder_avx512_;

MIXPREC_AVX512_ static mixprec_encoder_avx512_ mixprec_encoder_of_avx512_(mixprec_dtype type, const mixprec_how_ *how) {
    const mixprec_layout_ *to = mixprec_encoded_layout_of_(type);
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
    e.special = to->special;
    if (e.special == MIXPREC_INTEGER_)
        e.overflow_negative = _mm512_set1_epi32(128);
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
    __m512i kept = _mm512_srlv_epi32(mantissa, shift), fraction, threshold, code, special, too_large;
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
    too_large = _mm512_mask_blend_epi32(negative, e->overflow_positive, e->overflow_negative);
    code = _mm512_mask_blend_epi32(_mm512_cmpgt_epi32_mask(code, e->max_code), code, too_large);
    infinite = _mm512_testn_epi32_mask(field, field);
    special = _mm512_or_si512(e->nan_code, _mm512_and_si512(_mm512_srlv_epi32(field, e->shift), e->payload));
    special = _mm512_mask_blend_epi32(infinite, special, e->special == MIXPREC_INTEGER_ ? too_large : e->inf_code);
    code = _mm512_mask_blend_epi32(_mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7F7FFFFF)), code, special);
    if (e->special == MIXPREC_FNUZ_) /* no -0 */
        negative = _mm512_mask_test_epi32_mask(negative, code, code);
    else if (e->special == MIXPREC_FINITE_) /* a NaN becomes +max */
        negative = _mm512_mask_cmple_epi32_mask(negative, magnitude, _mm512_set1_epi32(0x7F800000));
    else if (e->special == MIXPREC_INTEGER_)
        return _mm512_mask_sub_epi32(code, negative, _mm512_setzero_si512(), code);
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
    int step, j;
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
#define MIXPREC_INJECT_                                                                                                \
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {                                                                          \
        x0[j] = _mm512_add_epi32(x0[j], random->key[2 * step]);                                                        \
        x1[j] = _mm512_add_epi32(x1[j], random->key[2 * step + 1]);                                                    \
    }
    MIXPREC_ROUNDS_(step);
#undef MIXPREC_MIX_
#undef MIXPREC_INJECT_
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
        words[2 * j] = _mm512_permutex2var_epi32(x0[j], low_half, x1[j]);
        words[2 * j + 1] = _mm512_permutex2var_epi32(x0[j], high_half, x1[j]);
    }
}

#ifndef MIXPREC_NO_LAYERS
MIXPREC_AVX512_ static void mixprec_randoms_avx512_(uint32_t *words, uint64_t seed, uint64_t index, size_t n) {
    const mixprec_random_avx512_ generator = mixprec_random_of_avx512_(seed);
    __m512i random[8];
    size_t i;
    int j;
    for (i = 0; i < n; i += 128) {
        mixprec_random128_avx512_(random, &generator, index + i);
        MIXPREC_UNROLL_ for (j = 0; j < 8; j++) _mm512_storeu_si512(words + i + 16 * j, random[j]);
    }
}
#endif

/* 64 elements, any way. */
MIXPREC_AVX512_ static void mixprec_store64_any_avx512_(void *dst, mixprec_dtype type, const float *src,
                                                        const mixprec_encoder_avx512_ *encoder,
                                                        const uint32_t *random) {
    size_t size = mixprec_size_of_(type), i;
    for (i = 0; i < 64; i += 16) {
        __m512i code = mixprec_encode_any_avx512_(encoder, _mm512_loadu_si512(src + i), _mm512_loadu_si512(random + i));
        if (size == 2)
            _mm256_storeu_si256((__m256i *)(void *)((mixprec_f16 *)dst + i), _mm512_cvtepi32_epi16(code));
        else if (type == MIXPREC_E2M1)
            _mm_storel_epi64((__m128i *)(void *)((uint8_t *)dst + i / 2),
                             _mm512_cvtepi64_epi8(_mm512_or_si512(code, _mm512_srli_epi64(code, 28))));
        else
            _mm_storeu_si128((__m128i *)(void *)((mixprec_e4m3 *)dst + i), _mm512_cvtepi32_epi8(code));
    }
}

/* The same where that is rare. */
MIXPREC_NOINLINE_ MIXPREC_AVX512_ void mixprec_store64_special_avx512_(void *dst, mixprec_dtype type, const float *src,
                                                                       const mixprec_how_ *how) {
    const mixprec_encoder_avx512_ encoder = mixprec_encoder_of_avx512_(type, how);
    mixprec_store64_any_avx512_(dst, type, src, &encoder, (const uint32_t *)(const void *)src);
}

MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_store_bytes_body_avx512_(char *dst, mixprec_dtype type,
                                                                            const float *src, size_t n,
                                                                            const mixprec_how_ *how,
                                                                            const mixprec_narrow_ *p, const int odd) {
    const int pairs = odd && type == MIXPREC_E2M1;
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i ordinary = _mm512_set1_epi32(mixprec_ordinary_(how));
    const int around = how->around;
    const mixprec_narrow_lanes_ lanes = mixprec_narrow_lanes_of_(p);
    size_t i;
    int j;
    for (i = 0; i < n; i += 64, dst += pairs ? 32 : 64) {
        __m512i x[4], magnitude[4], c[4], largest;
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] = _mm512_loadu_si512(src + i + 16 * j);
        mixprec_ahead_(src, i, n, 64, sizeof *src);
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) magnitude[j] = _mm512_and_si512(x[j], _mm512_set1_epi32(0x7FFFFFFF));
        largest = _mm512_max_epi32(_mm512_max_epi32(magnitude[0], magnitude[1]),
                                   _mm512_max_epi32(magnitude[2], magnitude[3]));
        if (_mm512_cmpgt_epi32_mask(largest, ordinary)) {
            mixprec_store64_special_avx512_(dst, type, src + i, how);
            continue;
        }
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) c[j] = mixprec_narrow16_avx512_(_mm512_castsi512_ps(x[j]), &lanes);
        c[0] = mixprec_narrow64_avx512_(_mm512_packs_epi32(c[0], c[1]), _mm512_packs_epi32(c[2], c[3]), order, p, odd);
        mixprec_put64_avx512_(dst, c[0], pairs, around);
    }
}
MIXPREC_NOINLINE_ MIXPREC_AVX512_ void mixprec_store_bytes_avx512_(char *dst, mixprec_dtype type, const float *src,
                                                                   size_t n, const mixprec_how_ *how) {
    const mixprec_narrow_ p = mixprec_narrow_of_(type, how->overflow);
    if (p.odd)
        mixprec_store_bytes_body_avx512_(dst, type, src, n, how, &p, 1);
    else
        mixprec_store_bytes_body_avx512_(dst, type, src, n, how, &p, 0);
}

MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m256i mixprec_encode_f16_avx512_(__m512 x, const mixprec_round round) {
    return round == MIXPREC_ROUND_TOWARD_ZERO ? _mm512_maskz_cvtps_ph(0xFFFF, x, _MM_FROUND_TO_ZERO)
           : round == MIXPREC_ROUND_UP        ? _mm512_maskz_cvtps_ph(0xFFFF, x, _MM_FROUND_TO_POS_INF)
           : round == MIXPREC_ROUND_DOWN      ? _mm512_maskz_cvtps_ph(0xFFFF, x, _MM_FROUND_TO_NEG_INF)
                                              : _mm512_maskz_cvtps_ph(0xFFFF, x, _MM_FROUND_TO_NEAREST_INT);
}

/* The halves of the 32-bit lanes of a, then of b, as 16-bit numbers: the low ones, or the high ones. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512i mixprec_halves_avx512_(__m512i a, __m512i b, const int high) {
    const __m512i even = _mm512_mullo_epi32(_mm512_set1_epi32(0x00040004),
                                            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    return _mm512_permutex2var_epi16(a, _mm512_add_epi32(even, _mm512_set1_epi32(high ? 0x00030001 : 0x00020000)), b);
}

MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_store_16_bits_avx512_(void *dst, mixprec_dtype type,
                                                                         const mixprec_round round, const float *src,
                                                                         size_t n, int saturate,
                                                                         const mixprec_how_ *how) {
    const __m512i limit = _mm512_set1_epi32(type == MIXPREC_F16 ? 0x477FE000 : 0x7F7F0000),
                  mask = _mm512_set1_epi32(0x7FFFFFFF), ordinary = _mm512_set1_epi32(mixprec_ordinary_(how));
    const int around = round == MIXPREC_ROUND_NEAREST_EVEN && how->around;
    size_t i;
    int j;
    for (i = 0; i < n; i += 64) {
        __m512i x[4], magnitude[4], c[4];
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] = _mm512_loadu_si512(src + i + 16 * j);
        if (type == MIXPREC_BF16 || around)
            mixprec_ahead_(src, i, n, 64, sizeof *src);
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) magnitude[j] = _mm512_and_si512(x[j], mask);
        if (saturate || type == MIXPREC_BF16) {
            __m512i largest = _mm512_max_epi32(_mm512_max_epi32(magnitude[0], magnitude[1]),
                                               _mm512_max_epi32(magnitude[2], magnitude[3]));
            if (_mm512_cmpgt_epi32_mask(largest, ordinary)) {
                mixprec_store64_special_avx512_((char *)dst + 2 * i, type, src + i, how);
                continue;
            }
        }
        if (saturate) /* mask ? magnitude : x */
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] =
                _mm512_ternarylogic_epi32(mask, _mm512_min_epi32(magnitude[j], limit), x[j], 0xCA);
        if (type == MIXPREC_F16) {
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) mixprec_put_avx2_(
                (mixprec_f16 *)dst + i + 16 * j, mixprec_encode_f16_avx512_(_mm512_castsi512_ps(x[j]), round), around);
            continue;
        }
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) c[j] =
            mixprec_encode_bf16_avx512_(x[j], round == MIXPREC_ROUND_NEAREST_EVEN, how->round);
        mixprec_put_avx512_((mixprec_bf16 *)dst + i, mixprec_halves_avx512_(c[0], c[1], 1), around);
        mixprec_put_avx512_((mixprec_bf16 *)dst + i + 32, mixprec_halves_avx512_(c[2], c[3], 1), around);
    }
}
MIXPREC_STORE_ROUNDED_(MIXPREC_AVX512_, avx512_)
#undef MIXPREC_STORE_ROUNDED_

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

MIXPREC_NOINLINE_ MIXPREC_AVX512_ void mixprec_store_stochastic_avx512_(void *dst, mixprec_dtype type, const float *src,
                                                                        size_t n, const mixprec_how_ *how) {
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
            if (!places.direct || !mixprec_store64_stochastic_avx512_(to, mixprec_size_of_(type) == 2, src + i + k,
                                                                      &places, random + k / 16)) {
                uint32_t words[64];
                MIXPREC_UNROLL_ for (j = 0; j < 4; j++) _mm512_storeu_si512(words + 16 * j, random[k / 16 + (size_t)j]);
                mixprec_store64_any_avx512_(to, type, src + i + k, &encoder, words);
            }
        }
    }
}

#if defined(MIXPREC_HAS_AVX512_BF16_)
MIXPREC_NOINLINE_ MIXPREC_AVX512_ void mixprec_store64_bf16_avx512_(mixprec_bf16 *dst, const float *src,
                                                                    const mixprec_how_ *how) {
    mixprec_store_16_bits_avx512_(dst, MIXPREC_BF16, MIXPREC_ROUND_NEAREST_EVEN, src, 64, 0, how);
}
/* bf16 to nearest even. The unit makes zeros of subnormals, always, and is right for all else, NaN too (Intel's
   Software Developer's Manual, volume 2C, VCVTNE2PS2BF16); 64 elements with a subnormal, which DAZ would hide, go the
   way of other CPUs. On Zen 4 in L1 .14 cycles for an element, .35 with one subnormal in 64, .25 without the unit. */
MIXPREC_NOINLINE_ MIXPREC_AVX512_BF16_ void mixprec_store_bf16_by_unit_(mixprec_bf16 *dst, const float *src, size_t n,
                                                                        const mixprec_how_ *how) {
    const int around = how->around;
    size_t i;
    int j;
    for (i = 0; i < n; i += 64) {
        unsigned subnormal = 0;
        __m512 x[4];
        if (around)
            mixprec_ahead_(src, i, n, 64, sizeof *src);
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] = _mm512_loadu_ps(src + i + 16 * j);
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) subnormal |= _mm512_fpclass_ps_mask(x[j], 0x20);
        if (subnormal) {
            mixprec_store64_bf16_avx512_(dst + i, src + i, how);
            continue;
        }
        mixprec_put_avx512_(dst + i, (__m512i)_mm512_cvtne2ps_pbh(x[1], x[0]), around);
        mixprec_put_avx512_(dst + i + 32, (__m512i)_mm512_cvtne2ps_pbh(x[3], x[2]), around);
    }
}
#endif

MIXPREC_AVX512_ static void mixprec_store_avx512_(void *dst, mixprec_dtype type, const float *src, size_t n,
                                                  const mixprec_how_ *how) {
    const int nearest = how->round == MIXPREC_ROUND_NEAREST_EVEN;
    size_t i;
    if (type == MIXPREC_F64) {
        const int around = how->around;
        for (i = 0; i < n; i += 32) {
            __m512 x[4];
            int j;
            if (around)
                mixprec_ahead_(src, i, n, 32, sizeof *src);
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] =
                _mm512_castpd_ps(_mm512_cvtps_pd(_mm256_loadu_ps(src + i + 8 * j)));
            mixprec_put4_avx512_((double *)dst + i, x, around);
        }
        return;
    }
#if defined(MIXPREC_HAS_AVX512_BF16_)
    if (type == MIXPREC_BF16 && nearest && how->overflow == MIXPREC_OVERFLOW_IEEE &&
        mixprec_features_() & MIXPREC_UNIT_BF16_) {
        mixprec_store_bf16_by_unit_((mixprec_bf16 *)dst, src, n, how);
        return;
    }
#endif
    if (type == MIXPREC_E8M0 || (type == MIXPREC_I8 && nearest))
        mixprec_store_avx2_(dst, type, src, n, how);
    else if (mixprec_store_rounded_avx512_(dst, type, src, n, how))
        return;
    else if (nearest)
        mixprec_store_bytes_avx512_((char *)dst, type, src, n, how);
    else if (how->round == MIXPREC_ROUND_STOCHASTIC)
        mixprec_store_stochastic_avx512_(dst, type, src, n, how);
    else {
        mixprec_encoder_avx512_ encoder = mixprec_encoder_of_avx512_(type, how);
        for (i = 0; i < n; i += 64)
            mixprec_store64_any_avx512_((char *)dst + mixprec_bytes_of_(type, i), type, src + i, &encoder,
                                        (const uint32_t *)(const void *)(src + i));
    }
}

MIXPREC_AVX512_ static int mixprec_unscale_avx512_(float *dst, const float *src, size_t n, float factor, int around) {
    const __m512i exponent = _mm512_set1_epi32(0x7F800000);
    __mmask16 found = 0;
    size_t i;
    int j;
    for (i = 0; i < n; i += 64) {
        __m512 x[4];
        if (around)
            mixprec_ahead_(src, i, n, 64, sizeof *src);
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
            __m512i bits;
            x[j] = _mm512_mul_ps(_mm512_loadu_ps(src + i + 16 * j), _mm512_set1_ps(factor));
            bits = _mm512_castps_si512(x[j]);
            MIXPREC_UNKNOWN_CLASS_("+v", bits);
            found = (__mmask16)(found | _mm512_cmpeq_epi32_mask(_mm512_and_si512(bits, exponent), exponent));
        }
        mixprec_put4_avx512_(dst + i, x, around);
    }
    return found != 0;
}

#if !defined(MIXPREC_NO_REDUCE) || !defined(MIXPREC_NO_LAYERS)
/* 16 elements in two vectors: of bf16 those with even and those with odd places, which takes an operation for each. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_load_two_avx512_(__m256 x[2], const char *p, mixprec_dtype type) {
    if (type == MIXPREC_BF16) {
        __m256i both = _mm256_loadu_si256((const __m256i *)(const void *)p);
        x[0] = _mm256_castsi256_ps(_mm256_slli_epi32(both, 16));
        x[1] = _mm256_castsi256_ps(_mm256_and_si256(both, _mm256_set1_epi32((int)0xFFFF0000u)));
    } else {
        x[0] = mixprec_load8_avx2_(p, type);
        x[1] = mixprec_load8_avx2_(p + 8 * mixprec_size_of_(type), type);
    }
}

/* As mixprec_reduce_as_avx2_. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_reduce_as_avx512_(double *lanes, const char *x, const char *y,
                                                                     mixprec_dtype type, size_t n,
                                                                     mixprec_reduction reduction, uint32_t magnitude,
                                                                     int centered, double center) {
    const size_t lead = mixprec_lead_();
    const __m256 keep = _mm256_castsi256_ps(_mm256_set1_epi32((int)magnitude));
    const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), odd = _mm512_set1_epi64(1);
    const __m512i low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), high = _mm512_set1_epi64(4);
    const size_t size = mixprec_size_of_(type);
    __m512d sum[4];
    size_t i;
    int j, k;
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) sum[j] = _mm512_loadu_pd(lanes + 8 * j);
    if (type == MIXPREC_BF16)
        MIXPREC_UNROLL_ for (j = 0; j < 4; j += 2) {
            const __m512d first = sum[j];
            sum[j] = _mm512_permutex2var_pd(first, even, sum[j + 1]);
            sum[j + 1] = _mm512_permutex2var_pd(first, _mm512_add_epi64(even, odd), sum[j + 1]);
        }
    for (i = 0; i < n; i += MIXPREC_LANES_) {
        mixprec_ahead_by_(lead, x, i, n, MIXPREC_LANES_, size);
        if (reduction == MIXPREC_DOT)
            mixprec_ahead_by_(lead, y, i, n, MIXPREC_LANES_, size);
        MIXPREC_UNROLL_ for (j = 0; j < 4; j += 2) {
            __m256 p[2], q[2];
            mixprec_load_two_avx512_(p, x + (i + 8 * (size_t)j) * size, type);
            if (reduction == MIXPREC_DOT)
                mixprec_load_two_avx512_(q, y + (i + 8 * (size_t)j) * size, type);
            MIXPREC_UNROLL_ for (k = 0; k < 2; k++) {
                __m512d term = _mm512_cvtps_pd(reduction == MIXPREC_SUM ? _mm256_and_ps(p[k], keep) : p[k]);
                __m512d *to = &sum[j + k];
                if (reduction == MIXPREC_DOT)
                    *to = _mm512_fmadd_pd(term, _mm512_cvtps_pd(q[k]), *to);
                else if (reduction == MIXPREC_SUM_SQUARES && !centered)
                    *to = _mm512_fmadd_pd(term, term, *to);
                else if (reduction == MIXPREC_SUM_SQUARES) {
                    term = _mm512_sub_pd(term, _mm512_set1_pd(center));
                    term = _mm512_mul_pd(term, term);
                    MIXPREC_KEEP_(term);
                    *to = _mm512_add_pd(*to, term);
                } else
                    *to = _mm512_add_pd(*to, term);
            }
        }
    }
    if (type == MIXPREC_BF16)
        MIXPREC_UNROLL_ for (j = 0; j < 4; j += 2) {
            const __m512d first = sum[j];
            sum[j] = _mm512_permutex2var_pd(first, low, sum[j + 1]);
            sum[j + 1] = _mm512_permutex2var_pd(first, _mm512_add_epi64(low, high), sum[j + 1]);
        }
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) _mm512_storeu_pd(lanes + 8 * j, sum[j]);
}

MIXPREC_REDUCE_(avx512, MIXPREC_AVX512_)
#endif

#if !defined(MIXPREC_NO_REDUCE) || !defined(MIXPREC_NO_QUANT)
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512i mixprec_larger_avx512_(__m512i a, __m512i b, size_t size) {
    return size == 4 ? _mm512_max_epu32(a, b) : size == 2 ? _mm512_max_epu16(a, b) : _mm512_max_epu8(a, b);
}

/* Eight blocks at a time, as by AVX2, which does the rest. Quantising bf16 on Zen 5 takes 15.4 cycles for 64 elements
   in blocks of 128, 18 in blocks of 32 or 16, where one block by itself made that 18.5, 37, 59. Block after block: from
   DRAM f32 in blocks of 128 takes 10 to 20 % more when lines of all eight are read in turn. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_amax_as_avx512_(uint32_t *amax, const char *x, mixprec_dtype type,
                                                                   const size_t size, size_t n, size_t block) {
    const size_t whole = block * size;
    const __m512i magnitude = size == 4   ? _mm512_set1_epi32(0x7FFFFFFF)
                              : size == 2 ? _mm512_set1_epi16(0x7FFF)
                                          : _mm512_set1_epi8(0x7F);
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 0, 0, 0, 0, 0, 0, 0, 0);
    size_t i;
    int j;
    for (; (whole % 64 == 0 || whole == 32) && n / 8 >= block; n -= 8 * block, x += 8 * whole, amax += 8) {
        __m512i v[8];
        if (whole == 32)
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) v[j] =
                _mm512_and_si512(_mm512_loadu_si512(x + 64 * (size_t)j), magnitude);
        else {
            MIXPREC_UNROLL_ for (j = 0; j < 8; j++) {
                const char *from = x + (size_t)j * whole;
                v[j] = _mm512_and_si512(_mm512_loadu_si512(from), magnitude);
                for (i = 64; i < whole; i += 64)
                    v[j] =
                        mixprec_larger_avx512_(v[j], _mm512_and_si512(_mm512_loadu_si512(from + i), magnitude), size);
            }
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) v[j] =
                mixprec_larger_avx512_(_mm512_shuffle_i64x2(v[2 * j], v[2 * j + 1], 0x44),
                                       _mm512_shuffle_i64x2(v[2 * j], v[2 * j + 1], 0xEE), size);
        }
        MIXPREC_UNROLL_ for (j = 0; j < 2; j++) v[j] =
            mixprec_larger_avx512_(_mm512_shuffle_i64x2(v[2 * j], v[2 * j + 1], 0x88),
                                   _mm512_shuffle_i64x2(v[2 * j], v[2 * j + 1], 0xDD), size);
        v[0] = mixprec_larger_avx512_(_mm512_unpacklo_epi64(v[0], v[1]), _mm512_unpackhi_epi64(v[0], v[1]), size);
        v[0] = mixprec_larger_avx512_(v[0], _mm512_srli_epi64(v[0], 32), size);
        v[0] = size < 4 ? mixprec_larger_avx512_(v[0], _mm512_srli_epi32(v[0], 16), size) : v[0];
        v[0] = size < 2 ? mixprec_larger_avx512_(v[0], _mm512_srli_epi32(v[0], 8), size) : v[0];
        v[0] = size < 4 ? _mm512_and_si512(v[0], _mm512_set1_epi32(size == 2 ? 0xFFFF : 0xFF)) : v[0];
        mixprec_larger_amaxes_avx2_(amax, _mm512_castsi512_si256(_mm512_permutexvar_epi32(order, v[0])), type, size);
    }
    if (n)
        mixprec_amax_avx2_(amax, x, type, n, block);
}
MIXPREC_AMAX_(avx512, MIXPREC_AVX512_)
#endif

#ifndef MIXPREC_NO_QUANT
/* Where vectors of bytes go one after the other: as they come, or, when dst is a multiple of 4, around the caches line
   by line, of which the first and the last may not be whole. On Emerald Rapids, from DRAM, quantising so takes 10 to
   18 % less; by way of a buffer it did only where its lines were those of dst. */
typedef struct mixprec_lines_avx512_ {
    uint8_t *dst;
    __m512i last, rotated;
    __mmask16 first;
    int around;
} mixprec_lines_avx512_;
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ mixprec_lines_avx512_ mixprec_begin_lines_avx512_(uint8_t *dst, int around) {
    const int shift = around ? (int)((uintptr_t)dst % 64 / 4) : 0;
    const __m512i places = _mm512_setr_epi32(16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
    mixprec_lines_avx512_ lines;
    lines.dst = dst - 4 * shift;
    lines.last = _mm512_setzero_si512();
    lines.rotated = _mm512_sub_epi32(places, _mm512_set1_epi32(shift));
    lines.first = (__mmask16)(0xFFFFu << shift);
    lines.around = around;
    return lines;
}
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_put_lines_avx512_(mixprec_lines_avx512_ *lines, __m512i x) {
    const __m512i line = _mm512_permutex2var_epi32(lines->last, lines->rotated, x);
    if (!lines->around)
        _mm512_storeu_si512(lines->dst, x);
    else if (lines->first != 0xFFFF)
        _mm512_mask_storeu_epi32(lines->dst, lines->first, line);
    else
        _mm512_stream_si512((__m512i *)(void *)lines->dst, line);
    lines->first = 0xFFFF;
    lines->last = x;
    lines->dst += 64;
}
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_end_lines_avx512_(const mixprec_lines_avx512_ *lines) {
    const __mmask16 rest = _mm512_cmplt_epi32_mask(lines->rotated, _mm512_set1_epi32(16));
    if (rest)
        _mm512_mask_storeu_epi32(lines->dst, rest, _mm512_permutex2var_epi32(lines->last, lines->rotated, lines->last));
}

/* As mixprec_narrow_as_avx2_. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_narrow_as_avx512_(uint8_t *dst, mixprec_dtype dst_type,
                                                                     const char *src, mixprec_dtype src_type, size_t n,
                                                                     size_t block, const float *factors, int around,
                                                                     const int odd) {
    const int integers = odd && dst_type == MIXPREC_I8, pairs = odd && dst_type == MIXPREC_E2M1;
    const mixprec_narrow_ p = mixprec_narrow_of_(integers ? MIXPREC_E4M3 : dst_type, MIXPREC_OVERFLOW_SATURATE);
    const size_t lead = mixprec_strip_() * 3 / 2;
    mixprec_lines_avx512_ to = mixprec_begin_lines_avx512_(dst, around && !pairs);
    const mixprec_narrow_lanes_ lanes = mixprec_narrow_lanes_of_(&p);
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const size_t size = mixprec_size_of_(src_type), some = block < 64 ? 64 / block : 1;
    size_t i, end;
    int j;
    for (i = 0; i < n; factors += some) {
        __m512 factor[4];
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) factor[j] = _mm512_set1_ps(factors[(size_t)j * some / 4]);
        for (end = i + mixprec_min_(n - i, some * block); i < end; i += 64) {
            __m512i c[4], low, high;
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
                const char *from = src + (i + 16 * (size_t)j) * size;
                const __m512 x = _mm512_mul_ps(mixprec_load16_avx512_(from, src_type, 0xFFFF), factor[j]);
                c[j] = integers ? _mm512_cvtps_epi32(x) : mixprec_narrow16_avx512_(x, &lanes);
            }
            mixprec_fetch_avx2_((uintptr_t)(src + i * size) + lead, 64 * size);
            low = _mm512_packs_epi32(c[0], c[1]);
            high = _mm512_packs_epi32(c[2], c[3]);
            c[0] = integers ? _mm512_permutexvar_epi32(order, _mm512_packs_epi16(low, high))
                            : mixprec_narrow64_avx512_(low, high, order, &p, odd);
            if (pairs)
                mixprec_put64_avx512_(dst + i / 2, c[0], 1, 0);
            else
                mixprec_put_lines_avx512_(&to, c[0]);
        }
    }
    mixprec_end_lines_avx512_(&to);
}

/* From bf16, by 36 operations for 64 elements, of which a cycle of Zen 4 takes two: the magnitudes at even and odd
   places by one each, the odd codes shifted beside the even ones by weights of their own, and nothing that limits
   them. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_narrow_bf16_avx512_(uint8_t *dst, mixprec_dtype dst_type,
                                                                       const char *src, size_t n, size_t block,
                                                                       const float *factors, uint32_t *amax,
                                                                       int around) {
    const mixprec_narrow_ p = mixprec_narrow_of_(dst_type, MIXPREC_OVERFLOW_SATURATE);
    const size_t lead = mixprec_strip_() * 3 / 2;
    mixprec_lines_avx512_ to = mixprec_begin_lines_avx512_(dst, around);
    const __m512i even = _mm512_set1_epi32(p.weights), odd = _mm512_set1_epi32(p.weights << 8);
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), shift = _mm512_set1_epi32(p.shift);
    const __m512i exponent = _mm512_set1_epi32(0x7F800000), least = _mm512_castps_si512(_mm512_set1_ps(p.least));
    const size_t some = block < 64 ? 64 / block : 1;
    __m512i largest = _mm512_setzero_si512();
    size_t i, end, q;
    int j;
    for (i = 0; i < n; factors += some) {
        __m512 factor[2];
        MIXPREC_UNROLL_ for (q = 0; q < 2; q++) factor[q] = _mm512_insertf32x8(
            _mm512_set1_ps(factors[2 * q * some / 4]), _mm256_set1_ps(factors[(2 * q + 1) * some / 4]), 1);
        for (end = i + mixprec_min_(n - i, some * block); i < end; i += 64) {
            __m512i x[2], c[4], code;
            MIXPREC_UNROLL_ for (j = 0; j < 2; j++) {
                __m512i magnitude;
                x[j] = _mm512_loadu_si512(src + (i + 32 * (size_t)j) * 2);
                magnitude = _mm512_and_si512(x[j], _mm512_set1_epi16(0x7FFF));
                if (amax)
                    largest = _mm512_max_epu16(largest, magnitude);
                c[2 * j] = _mm512_slli_epi32(magnitude, 16);
                c[2 * j + 1] = _mm512_and_si512(x[j], _mm512_set1_epi32(0x7FFF0000));
            }
            mixprec_fetch_avx2_((uintptr_t)(src + i * 2) + lead, 64 * 2);
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
                const __m512 y = _mm512_mul_ps(_mm512_castsi512_ps(c[j]), factor[j / 2]);
                __m512i unit = _mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(y), exponent), least);
                __m512 sum = _mm512_fmadd_ps(_mm512_castsi512_ps(unit), _mm512_set1_ps(p.multiplier), y);
                c[j] = _mm512_madd_epi16(_mm512_castps_si512(sum), j & 1 ? odd : even);
            }
            code = _mm512_packus_epi32(_mm512_srlv_epi32(_mm512_or_si512(c[0], c[1]), shift),
                                       _mm512_srlv_epi32(_mm512_or_si512(c[2], c[3]), shift));
            code = _mm512_ternarylogic_epi32(code, _mm512_packs_epi16(x[0], x[1]), _mm512_set1_epi8((char)0x80), 0xF8);
            mixprec_put_lines_avx512_(&to, _mm512_permutexvar_epi64(order, code));
        }
    }
    mixprec_end_lines_avx512_(&to);
    if (amax) {
        const uint32_t most = mixprec_most16_avx2_(
            _mm256_max_epu16(_mm512_castsi512_si256(largest), _mm512_extracti64x4_epi64(largest, 1)));
        mixprec_larger_amax_(amax, most, MIXPREC_BF16);
    }
}

MIXPREC_AVX512_ static void mixprec_narrow_avx512_(void *dst, mixprec_dtype dst_type, const void *src,
                                                   mixprec_dtype src_type, size_t n, size_t block, const float *factors,
                                                   uint32_t *amax, int around) {
    uint8_t *to = (uint8_t *)dst;
    const char *from = (const char *)src;
    const int odd = mixprec_is_odd_(dst_type);
    if (src_type == MIXPREC_BF16 && !odd) {
        mixprec_narrow_bf16_avx512_(to, dst_type, from, n, block, factors, amax, around);
        return;
    }
    if (amax)
        mixprec_amax_avx2_(amax, src, src_type, n, n);
    if (src_type == MIXPREC_BF16)
        mixprec_narrow_as_avx512_(to, dst_type, from, MIXPREC_BF16, n, block, factors, around, 1);
    else if (src_type == MIXPREC_F32 && odd)
        mixprec_narrow_as_avx512_(to, dst_type, from, MIXPREC_F32, n, block, factors, around, 1);
    else if (src_type == MIXPREC_F32)
        mixprec_narrow_as_avx512_(to, dst_type, from, MIXPREC_F32, n, block, factors, around, 0);
    else if (odd)
        mixprec_narrow_as_avx512_(to, dst_type, from, MIXPREC_F16, n, block, factors, around, 1);
    else
        mixprec_narrow_as_avx512_(to, dst_type, from, MIXPREC_F16, n, block, factors, around, 0);
}

/* 64 elements of e4m3, e5m2, fp4 or int8; `table`: mixprec_fp8_table_ in registers, or NULL. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_load64_avx512_(__m512 x[4], const uint8_t *src, mixprec_dtype type,
                                                                  const __m512i *table) {
    __m128i upper[4];
    int j;
    if (table)
        mixprec_fp8_to_f32_avx512_(x, src, table);
    else if (type == MIXPREC_E2M1) {
        MIXPREC_UNROLL_ for (j = 0; j < 4; j += 2) mixprec_e2m1_to_e5m2_avx2_(upper + j, src + 8 * j);
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] =
            _mm512_cvtph_ps(_mm256_slli_epi16(_mm256_cvtepu8_epi16(upper[j]), 8));
    } else
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] =
            type == MIXPREC_I8 ? _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(
                                     _mm_loadu_si128((const __m128i *)(const void *)(src + 16 * j))))
                               : mixprec_load16_avx512_(src + 16 * j, type, 0xFFFF);
}

/* 32 numbers to bf16 by AVX512_BF16, with which compilers do not inline into functions without; 0 for subnormals. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512i mixprec_bf16_by_unit_avx512_(__m512 low, __m512 high) {
    __m512i codes = _mm512_setzero_si512();
#if defined(MIXPREC_HAS_AVX512_BF16_)
    __asm__("vcvtne2ps2bf16 {%1, %2, %0|%0, %2, %1}" : "=v"(codes) : "v"(low), "v"(high));
#else
    (void)low;
    (void)high;
#endif
    return codes;
}

/* As mixprec_widen_as_avx2_. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_widen_as_avx512_(char *dst, mixprec_dtype dst_type,
                                                                    const uint8_t *src, mixprec_dtype src_type,
                                                                    size_t n, size_t block, const float *factors) {
    const uint64_t *table = src_type == MIXPREC_E4M3 ? mixprec_fp8_table_(src_type) : NULL;
    const unsigned without_unit = !(mixprec_features_() & MIXPREC_UNIT_BF16_);
    const size_t size = mixprec_size_of_(dst_type), some = block < 64 ? 64 / block : 1;
    __m512i registers[4];
    size_t i, end;
    int j;
    if (table)
        mixprec_fp8_registers_avx512_(registers, table);
    for (i = 0; i < n; factors += some) {
        __m512 factor[4];
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) factor[j] = _mm512_set1_ps(factors[(size_t)j * some / 4]);
        for (end = i + mixprec_min_(n - i, some * block); i < end; i += 64, dst += 64 * size) {
            __m512 x[4];
            mixprec_load64_avx512_(x, src + mixprec_bytes_of_(src_type, i), src_type, table ? registers : NULL);
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] = _mm512_mul_ps(x[j], factor[j]);
            if (dst_type == MIXPREC_F32)
                mixprec_put4_avx512_(dst, x, 0);
            else if (dst_type == MIXPREC_F16)
                MIXPREC_UNROLL_ for (j = 0; j < 4; j++)
                    mixprec_put_avx2_(dst + 32 * j, mixprec_encode_f16_avx512_(x[j], MIXPREC_ROUND_NEAREST_EVEN), 0);
            else {
                unsigned others = without_unit; /* or a subnormal number */
                MIXPREC_UNROLL_ for (j = 0; j < 4; j++) others |= _mm512_fpclass_ps_mask(x[j], 0x20);
                MIXPREC_UNROLL_ for (j = 0; j < 4; j += 2) {
                    __m512i code;
                    if (others)
                        code = mixprec_halves_avx512_(
                            mixprec_encode_bf16_avx512_(_mm512_castps_si512(x[j]), 1, MIXPREC_ROUND_NEAREST_EVEN),
                            mixprec_encode_bf16_avx512_(_mm512_castps_si512(x[j + 1]), 1, MIXPREC_ROUND_NEAREST_EVEN),
                            1);
                    else
                        code = mixprec_bf16_by_unit_avx512_(x[j], x[j + 1]);
                    mixprec_put_avx512_(dst + 32 * (size_t)j, code, 0);
                }
            }
        }
    }
}
MIXPREC_AVX512_ static void mixprec_widen_avx512_(void *dst, mixprec_dtype dst_type, const void *src,
                                                  mixprec_dtype src_type, size_t n, size_t block,
                                                  const float *factors) {
    char *to = (char *)dst;
    const uint8_t *from = (const uint8_t *)src;
    if (src_type == MIXPREC_E2M1)
        mixprec_widen_as_avx512_(to, dst_type, from, MIXPREC_E2M1, n, block, factors);
    else if (src_type == MIXPREC_E4M3)
        mixprec_widen_as_avx512_(to, dst_type, from, MIXPREC_E4M3, n, block, factors);
    else if (src_type == MIXPREC_E5M2)
        mixprec_widen_as_avx512_(to, dst_type, from, MIXPREC_E5M2, n, block, factors);
    else
        mixprec_widen_as_avx512_(to, dst_type, from, MIXPREC_I8, n, block, factors);
}

/* A division that names its rounding is not approximated under -ffast-math. */
MIXPREC_AVX512_ static void mixprec_block_scales_avx512_(float *factors, float *inverses, const uint32_t *amax,
                                                         size_t n, float max, int power_of_two) {
    const __m512i largest = _mm512_set1_epi32(0x7F7FFFFF), keep = _mm512_set1_epi32(power_of_two ? 0x7F800000 : -1);
    const __m512 one = _mm512_set1_ps(1.0f);
    size_t i;
    for (i = 0; i < n; i += 16) {
        const __mmask16 some = n - i < 16 ? 0xFF : 0xFFFF;
        const __m512i bits = _mm512_maskz_loadu_epi32(some, amax + i);
        const __mmask16 usual = _mm512_cmplt_epu32_mask(_mm512_sub_epi32(bits, _mm512_set1_epi32(1)), largest);
        __m512 factor = _mm512_div_round_ps(_mm512_set1_ps(max), _mm512_castsi512_ps(bits),
                                            _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        factor = _mm512_mask_blend_ps(usual, one, factor);
        factor = _mm512_castsi512_ps(_mm512_and_si512(_mm512_min_epu32(_mm512_castps_si512(factor), largest), keep));
        _mm512_mask_storeu_ps(factors + i, some, factor);
        _mm512_mask_storeu_ps(inverses + i, some,
                              _mm512_div_round_ps(one, factor, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
}
#endif

#ifndef MIXPREC_NO_CONVERT
/* ---- statistics, as in [VEC-AVX2] ---- */

MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_add_lanes_avx512_(__m512d sums[2], __m512 a, __m512 b) {
    __m512 sum;
    MIXPREC_KEEP_(a);
    MIXPREC_KEEP_(b);
    sum = _mm512_add_ps(a, b);
    MIXPREC_KEEP_(sum);
    sums[0] = _mm512_add_pd(sums[0], _mm512_cvtps_pd(_mm512_castps512_ps256(sum)));
    sums[1] = _mm512_add_pd(sums[1], _mm512_cvtps_pd(_mm512_extractf32x8_ps(sum, 1)));
}

MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512i mixprec_carry_avx512_(__m512i *sum, __m512i a, __m512i b) {
    __m512i carry = _mm512_ternarylogic_epi32(*sum, a, b, 0xE8);
    *sum = _mm512_ternarylogic_epi32(*sum, a, b, 0x96);
    return carry;
}

MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512i mixprec_carry4_avx512_(__m512i sum[2], __m512i table,
                                                                     const __m512i x[4]) {
    __m512i a = mixprec_carry_avx512_(sum, _mm512_shuffle_epi8(table, x[0]), _mm512_shuffle_epi8(table, x[1]));
    __m512i b = mixprec_carry_avx512_(sum, _mm512_shuffle_epi8(table, x[2]), _mm512_shuffle_epi8(table, x[3]));
    return mixprec_carry_avx512_(sum + 1, a, b);
}

MIXPREC_NOINLINE_ MIXPREC_AVX512_ void mixprec_tally_count_avx512_(mixprec_tally_ *t) {
    const __m512i window = _mm512_set1_epi8((char)t->window), beyond = _mm512_set1_epi8(0x70);
    const __m512i low = _mm512_broadcast_i32x4(_mm_set_epi64x(0, (int64_t)0x8040201008040201u));
    const __m512i high = _mm512_bslli_epi128(low, 8);
    __m512i *planes = (__m512i *)(void *)mixprec_tally_plane_(t, 0, 0), lows[2], highs[2], fours[2][4];
    int half, j, k, others = 0;
    MIXPREC_UNROLL_ for (j = 0; j < 2; j++) {
        lows[j] = _mm512_loadu_si512(planes + j);
        highs[j] = _mm512_loadu_si512(planes + 8 + j);
    }
    for (k = 0; k < 4; k++) {
        const uint8_t *at = t->exponents + 4 * MIXPREC_UNIT_ * k;
        __m512i x[4];
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
            x[j] = _mm512_loadu_si512(at + MIXPREC_UNIT_ * j);
            x[j] = _mm512_adds_epu8(_mm512_sub_epi8(x[j], window), beyond);
        }
        if (_mm512_movepi8_mask(_mm512_or_si512(_mm512_ternarylogic_epi32(x[0], x[1], x[2], 0xFE), x[3])))
            others |= 1 << k;
        fours[0][k] = mixprec_carry4_avx512_(lows, low, x);
        fours[1][k] = mixprec_carry4_avx512_(highs, high, x);
    }
    MIXPREC_UNROLL_ for (j = 0; j < 2; j++) {
        _mm512_storeu_si512(planes + j, lows[j]);
        _mm512_storeu_si512(planes + 8 + j, highs[j]);
    }
    for (half = 0; half < 2; half++, planes += 8) {
        __m512i four = _mm512_loadu_si512(planes + 2), eight = _mm512_loadu_si512(planes + 3), a, b;
        a = mixprec_carry_avx512_(&four, fours[half][0], fours[half][1]);
        b = mixprec_carry_avx512_(&four, fours[half][2], fours[half][3]);
        a = mixprec_carry_avx512_(&eight, a, b);
        _mm512_storeu_si512(planes + 2, four);
        _mm512_storeu_si512(planes + 3, eight);
        for (j = 4; j < 8; j++) {
            const __m512i x = _mm512_loadu_si512(planes + j);
            _mm512_storeu_si512(planes + j, _mm512_xor_si512(x, a));
            a = _mm512_and_si512(x, a);
        }
    }
    mixprec_tally_counted_(t, others);
}

MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_tally_extremes_avx512_(const mixprec_tally_ *t,
                                                                          mixprec_found_ *found, __m512 error[4],
                                                                          const __m512i magnitude[4], __m512i *largest,
                                                                          __m512i *least) {
    const __m512i max = _mm512_set1_epi32(t->max);
    int j;
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
        __mmask16 over = _mm512_cmpgt_epi32_mask(magnitude[j], max);
        *largest = _mm512_max_epi32(*largest, magnitude[j]);
        *least = _mm512_min_epu32(*least, _mm512_sub_epi32(magnitude[j], _mm512_set1_epi32(1)));
        error[j] = _mm512_mask_sub_ps(error[j], over, _mm512_castsi512_ps(magnitude[j]), _mm512_castsi512_ps(max));
        found->zero += (uint64_t)_mm_popcnt_u32(_mm512_testn_epi32_mask(magnitude[j], magnitude[j]));
        found->overflow += (uint64_t)_mm_popcnt_u32(over);
    }
}

MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ int mixprec_beyond_avx512_(const __m512i x[2], __m512i low, __m512i high) {
    return !_kortestz_mask32_u8(_mm512_cmpge_epu16_mask(_mm512_max_epu16(x[0], x[1]), high),
                                _mm512_cmple_epu16_mask(_mm512_min_epu16(x[0], x[1]), low));
}

MIXPREC_AVX512_ static size_t mixprec_tally_avx512_(mixprec_tally_ *t, const void *src, mixprec_dtype type, size_t n) {
    const size_t lead = mixprec_lead_();
    const __m512 power = _mm512_set1_ps((float)(1 << t->shift)), split = _mm512_set1_ps((float)((1 << t->shift) - 1));
    const __m512 least_unit = _mm512_castsi512_ps(_mm512_set1_epi32(t->min_normal | 1 << 22));
    const __m512i normal = _mm512_set1_epi32(t->normal), vanishing = _mm512_set1_epi32(t->vanishing);
    /* Upper halves to lower ones. */
    const __m512i order = _mm512_set4_epi32(0x0F0E, 0x0B0A, 0x0706, 0x0302);
    const __mmask64 halves = 0x3333333333333333;
    __m512i amax = _mm512_setzero_si512(), min = _mm512_set1_epi32(-1);
    __m512i high, low, usual;
    __m512d sums[4];
    size_t i, k;
    int j, general = 0, fresh = 1;
    if (!n)
        return mixprec_tally_rest_(t);
    mixprec_tally_range_f32_(t, 0, 0);
    high = _mm512_set1_epi16((short)t->high);
    low = _mm512_set1_epi16((short)t->low);
    usual = _mm512_set1_epi16((short)t->usual);
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) sums[j] = _mm512_loadu_pd((j < 2 ? t->signal : t->noise) + 8 * (j % 2));
    for (i = 0; i < n; i += MIXPREC_TALLY_GROUP_) {
        __m512i largest = _mm512_setzero_si512(), least = _mm512_set1_epi32(-1);
        mixprec_found_ found = MIXPREC_ZERO_;
        __m512 signal[2], noise[2];
        int large = 0;
        signal[0] = signal[1] = noise[0] = noise[1] = _mm512_setzero_ps();
        for (k = 0; k < MIXPREC_TALLY_GROUP_; k += MIXPREC_UNIT_) {
            __m512i bits[4], upper[2];
            __m512 x[4], error[4];
            if (type == MIXPREC_F32)
                mixprec_ahead_by_(lead, src, i + k, n, 64, 4);
            else
                mixprec_ahead_by_(lead, src, i + k, n, 64, 2);
            if (type == MIXPREC_F32)
                MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] =
                    mixprec_load16_avx512_((const float *)src + i + k + 16 * j, MIXPREC_F32, 0xFFFF);
            else if (type == MIXPREC_F16)
                MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] =
                    mixprec_load16_avx512_((const mixprec_f16 *)src + i + k + 16 * j, MIXPREC_F16, 0xFFFF);
            else
                MIXPREC_UNROLL_ for (j = 0; j < 4; j++) x[j] =
                    mixprec_load16_avx512_((const mixprec_bf16 *)src + i + k + 16 * j, MIXPREC_BF16, 0xFFFF);
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) bits[j] = _mm512_castps_si512(x[j]);
            MIXPREC_UNROLL_ for (j = 0; j < 2; j++) {
                upper[j] = _mm512_mask_shuffle_epi8(bits[2 * j + 1], halves, bits[2 * j], order);
                upper[j] = _mm512_add_epi16(upper[j], upper[j]);
            }
            _mm512_storeu_si512(t->exponents + t->pending + k,
                                _mm512_ternarylogic_epi32(_mm512_set1_epi16((short)0xFF00), upper[1],
                                                          _mm512_srli_epi16(upper[0], 8), 0xCA));
            general = general >> 1 | mixprec_beyond_avx512_(upper, usual, high) << MIXPREC_GENERAL_;
            MIXPREC_NO_BRANCH_(general);
            if (!general) {
                large = 1;
                MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
                    __m512 product = _mm512_mul_ps(x[j], split);
                    MIXPREC_KEEP_(product);
                    error[j] = _mm512_fmsub_ps(x[j], split, product);
                }
            } else {
                MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
                    __m512 unit, rounded, magnitude;
                    bits[j] = _mm512_and_si512(bits[j], _mm512_set1_epi32(0x7FFFFFFF));
                    magnitude = _mm512_castsi512_ps(bits[j]);
                    unit = _mm512_max_ps(magnitude, least_unit);
                    rounded = _mm512_fmsub_ps(unit, power, magnitude);
                    MIXPREC_KEEP_(rounded);
                    rounded = _mm512_fmsub_ps(unit, power, rounded);
                    MIXPREC_KEEP_(rounded);
                    error[j] = _mm512_sub_ps(rounded, magnitude);
                    found.underflow += (uint64_t)_mm_popcnt_u32(_mm512_cmple_epi32_mask(bits[j], vanishing));
                    found.subnormal += (uint64_t)_mm_popcnt_u32(_mm512_cmplt_epi32_mask(bits[j], normal));
                }
                if (mixprec_beyond_avx512_(upper, low, high))
                    mixprec_tally_extremes_avx512_(t, &found, error, bits, &largest, &least);
                else
                    large = 1;
            }
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
                signal[j % 2] = _mm512_fmadd_ps(x[j], x[j], signal[j % 2]);
                noise[j % 2] = _mm512_fmadd_ps(error[j], error[j], noise[j % 2]);
            }
        }
        if (_mm512_test_epi32_mask(largest, largest)) {
            uint32_t most = (uint32_t)_mm512_reduce_max_epi32(largest);
            if (most >= MIXPREC_SQUARES_BELOW_ || (!large && most < MIXPREC_SQUARES_FROM_))
                break;
            amax = _mm512_max_epi32(amax, largest);
            min = _mm512_min_epu32(min, least);
            if (--fresh == 0) {
                mixprec_tally_range_f32_(t, (uint32_t)_mm512_reduce_max_epi32(amax),
                                         (uint32_t)_mm512_reduce_min_epu32(min) + 1);
                high = _mm512_set1_epi16((short)t->high);
                low = _mm512_set1_epi16((short)t->low);
                usual = _mm512_set1_epi16((short)t->usual);
                fresh = MIXPREC_FRESH_;
            }
        }
        mixprec_tally_found_(t->stats, &found);
        mixprec_add_lanes_avx512_(sums, signal[0], signal[1]);
        mixprec_add_lanes_avx512_(sums + 2, noise[0], noise[1]);
        t->pending += MIXPREC_TALLY_GROUP_;
        if (t->pending == MIXPREC_TALLY_EXPONENTS_)
            mixprec_tally_count_avx512_(t);
    }
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) _mm512_storeu_pd((j < 2 ? t->signal : t->noise) + 8 * (j % 2), sums[j]);
    mixprec_tally_range_f32_(t, (uint32_t)_mm512_reduce_max_epi32(amax), (uint32_t)_mm512_reduce_min_epu32(min) + 1);
    return i;
}

MIXPREC_AVX512_ static size_t mixprec_tally_wide_avx512_(mixprec_tally_ *t, const double *src, size_t n) {
    const size_t lead = mixprec_lead_();
    const mixprec_tally_wide_ p = mixprec_tally_wide_of_(t);
    const __m512d split = _mm512_set1_pd(p.split), power = _mm512_set1_pd(p.power);
    const __m512d vanishing = _mm512_set1_pd(p.vanishing), normal = _mm512_set1_pd(p.normal);
    const __m512d least_unit = _mm512_set1_pd(p.least_unit), max = _mm512_set1_pd(p.max);
    mixprec_found_ found = MIXPREC_ZERO_;
    __m512d sums[4];
    size_t i;
    int j, general = 0;
    mixprec_tally_range_(t, 0, 0);
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) sums[j] = _mm512_loadu_pd((j < 2 ? t->signal : t->noise) + 8 * (j % 2));
    for (i = 0; i < n; i += MIXPREC_UNIT_) {
        const __m512i high = _mm512_set1_epi16(mixprec_tally_word_(t->high));
        __m512i words[2];
        __m512d x[8], error[8];
        mixprec_ahead_by_(lead, src, i, n, 64, sizeof *src);
        MIXPREC_UNROLL_ for (j = 0; j < 8; j++) x[j] = _mm512_loadu_pd(src + i + 8 * (size_t)j);
        MIXPREC_UNROLL_ for (j = 0; j < 2; j++) {
            const __m512 a = _mm512_shuffle_ps(_mm512_castpd_ps(x[4 * j]), _mm512_castpd_ps(x[4 * j + 1]), 0xDD);
            const __m512 b = _mm512_shuffle_ps(_mm512_castpd_ps(x[4 * j + 2]), _mm512_castpd_ps(x[4 * j + 3]), 0xDD);
            words[j] = _mm512_mask_blend_epi16(0xAAAAAAAA, _mm512_srli_epi32(_mm512_castps_si512(a), 16),
                                               _mm512_castps_si512(b));
            words[j] = _mm512_subs_epu16(_mm512_add_epi16(words[j], words[j]), _mm512_set1_epi16(MIXPREC_WORD_BIAS_));
            words[j] = _mm512_min_epu16(words[j], _mm512_set1_epi16(MIXPREC_WORD_LARGEST_));
        }
        _mm512_storeu_si512(t->exponents + t->pending,
                            _mm512_packus_epi16(_mm512_srli_epi16(words[0], 5), _mm512_srli_epi16(words[1], 5)));
        general = general >> 1 | mixprec_beyond_avx512_(words, _mm512_set1_epi16(mixprec_tally_word_(t->usual)), high)
                                     << MIXPREC_GENERAL_;
        MIXPREC_NO_BRANCH_(general);
        if (!general)
            MIXPREC_UNROLL_ for (j = 0; j < 8; j++) {
                __m512d product = _mm512_mul_pd(x[j], split);
                MIXPREC_KEEP_(product);
                error[j] = _mm512_fmsub_pd(x[j], split, product);
            }
        else {
            if (mixprec_beyond_avx512_(words, _mm512_set1_epi16(mixprec_tally_word_(t->low)), high) &&
                !mixprec_tally_extremes_wide_(t, &found, src + i, p.max))
                break;
            MIXPREC_UNROLL_ for (j = 0; j < 8; j++) {
                const __m512d magnitude = _mm512_abs_pd(x[j]), limited = _mm512_min_pd(magnitude, max);
                const __m512d unit = _mm512_max_pd(limited, least_unit);
                __m512d rounded = _mm512_fmsub_pd(unit, power, limited);
                MIXPREC_KEEP_(rounded);
                rounded = _mm512_fmsub_pd(unit, power, rounded);
                MIXPREC_KEEP_(rounded);
                error[j] = _mm512_sub_pd(rounded, magnitude);
                found.underflow += (uint64_t)_mm_popcnt_u32(_mm512_cmp_pd_mask(magnitude, vanishing, _CMP_LE_OQ));
                found.subnormal += (uint64_t)_mm_popcnt_u32(_mm512_cmp_pd_mask(magnitude, normal, _CMP_LT_OQ));
            }
        }
        MIXPREC_UNROLL_ for (j = 0; j < 8; j++) {
            __m512d square = _mm512_mul_pd(x[j], x[j]);
            MIXPREC_KEEP_(square);
            sums[j % 2] = _mm512_add_pd(sums[j % 2], square);
            MIXPREC_KEEP_(sums[j % 2]);
            square = _mm512_mul_pd(error[j], error[j]);
            MIXPREC_KEEP_(square);
            sums[2 + j % 2] = _mm512_add_pd(sums[2 + j % 2], square);
            MIXPREC_KEEP_(sums[2 + j % 2]);
        }
        t->pending += MIXPREC_UNIT_;
        if (t->pending == MIXPREC_TALLY_EXPONENTS_)
            mixprec_tally_count_avx512_(t);
    }
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) _mm512_storeu_pd((j < 2 ? t->signal : t->noise) + 8 * (j % 2), sums[j]);
    mixprec_tally_found_(t->stats, &found);
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

/* t = or += s, `stride` bytes from row to row. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_put_tile_avx512_(char *t, size_t stride, __m512 s[][2],
                                                                    const int rows, const int vectors, const int wide,
                                                                    size_t rows_there, const __mmask16 lanes[2],
                                                                    int first) {
    int i, j;
    if (rows == MIXPREC_TILE_ROWS_AVX512_ && vectors == 2 && first == MIXPREC_TILE_STREAM_ && lanes[1] == 0xFFFF) {
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++, t += stride) {
            if ((size_t)i == rows_there)
                break;
            _mm512_stream_ps((float *)(void *)t, s[i][0]);
            _mm512_stream_ps((float *)(void *)(t + 64), s[i][1]);
        }
        return;
    }
    MIXPREC_UNROLL_ for (i = 0; i < rows; i++, t += stride) {
        if ((size_t)i == rows_there)
            break;
        MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
            __m512 sum = s[i][j];
            if (!first)
                sum = mixprec_add_avx512_(_mm512_maskz_loadu_ps(lanes[j], t + 64 * j), sum, wide);
            _mm512_mask_storeu_ps(t + 64 * j, lanes[j], sum);
        }
    }
}

MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_tile_body_avx512_(const int rows, const int vectors, const int wide,
                                                                     size_t rows_there, size_t columns, size_t depth,
                                                                     const char *a, size_t a_row, size_t a_step,
                                                                     const char *b, size_t b_step, const char *ahead,
                                                                     char *t, size_t ldt, int first) {
    const size_t size = wide ? 8 : 4;
    const size_t words = columns * size / 4; /* masks count lanes of 4 bytes, whatever the width */
    const __mmask16 lanes[2] = {mixprec_first_lanes_(words), mixprec_first_lanes_(words > 16 ? words - 16 : 0)};
    const char *row[(MIXPREC_TILE_ROWS_AVX512_ + 2) / 3]; /* every third: x86 adds once or twice a_row by itself */
    int i, j;
    MIXPREC_UNROLL_ for (i = 0; i < rows; i += 3) row[i / 3] = a + (size_t)i * a_row;
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
            MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
                const void *y = row[i / 3] + (size_t)(i % 3) * a_row;
                if (wide)
                    w[i][j] = _mm512_fmadd_pd(_mm512_set1_pd(*(const double *)y), _mm512_loadu_pd(b + 64 * j), w[i][j]);
                else
                    s[i][j] = _mm512_fmadd_ps(_mm512_set1_ps(*(const float *)y), _mm512_loadu_ps(b + 64 * j), s[i][j]);
            }
            MIXPREC_UNROLL_ for (i = 0; i < rows; i += 3) row[i / 3] += a_step;
            MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) _mm_prefetch(b + 512 + 64 * j, _MM_HINT_T0);
            _mm_prefetch(ahead, _MM_HINT_T1);
            ahead += MIXPREC_TILE_AHEAD_;
            b += b_step;
        }
        if (wide)
            MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) s[i][j] =
                _mm512_castpd_ps(w[i][j]);
        mixprec_put_tile_avx512_(t, ldt * size, s, rows, vectors, wide, rows_there, lanes, first);
        depth -= chunk;
    }
}

/* Functions for three counts of rows, so that an edge costs little more than what it computes; the rows that are not
   there are zeros of the panel. Every even count would add a second to the time to compile, and gain little: large
   products of up to 32 rows have kernels of their own below. */
#define MIXPREC_TILE_AVX512_(rows, vectors, wide)                                                                      \
    MIXPREC_AVX512_ static void mixprec_tile_##rows##_##vectors##_##wide##_avx512_(                                    \
        size_t rows_there, size_t columns, size_t depth, const char *a, size_t a_row, size_t a_step, const char *b,    \
        size_t b_step, const char *ahead, char *t, size_t ldt, int first) {                                            \
        mixprec_tile_body_avx512_(rows, vectors, wide, rows_there, columns, depth, a, a_row, a_step, b, b_step, ahead, \
                                  t, ldt, first);                                                                      \
    }
#define MIXPREC_TILES_AVX512_(X, rows) X(rows, 1, 0) X(rows, 2, 0) X(rows, 2, 1)
#define MIXPREC_ALL_TILES_AVX512_(X)                                                                                   \
    MIXPREC_TILES_AVX512_(X, 4) MIXPREC_TILES_AVX512_(X, 8) MIXPREC_TILES_AVX512_(X, 14)
MIXPREC_ALL_TILES_AVX512_(MIXPREC_TILE_AVX512_)
#undef MIXPREC_TILE_AVX512_

MIXPREC_AVX512_ static void mixprec_tile_at_avx512_(size_t rows, size_t columns, size_t depth, const char *a,
                                                    size_t a_row, size_t a_step, const char *b, size_t b_step,
                                                    const char *ahead, char *t, size_t ldt, int first, int wide) {
    size_t vectors = wide || columns > 16 ? 2 : 1, kernel_rows = rows <= 4 ? 4 : rows <= 8 ? 8 : 14;
    switch (kernel_rows * 4 + (vectors - 1) * 2 + (size_t)wide) {
#define MIXPREC_TILE_AVX512_(kernel_rows, vectors, wide)                                                               \
    case kernel_rows * 4 + (vectors - 1) * 2 + wide:                                                                   \
        mixprec_tile_##kernel_rows##_##vectors##_##wide##_avx512_(rows, columns, depth, a, a_row, a_step, b, b_step,   \
                                                                  ahead, t, ldt, first);                               \
        break;
        MIXPREC_ALL_TILES_AVX512_(MIXPREC_TILE_AVX512_)
#undef MIXPREC_TILE_AVX512_
    default: break;
    }
}

MIXPREC_AVX512_ static void mixprec_tile_avx512_(size_t rows, size_t columns, size_t depth, const void *a,
                                                 const void *b, const void *ahead, void *t, size_t ldt, int first,
                                                 int wide) {
    const size_t size = wide ? 8 : 4;
    mixprec_tile_at_avx512_(rows, columns, depth, (const char *)a, size, MIXPREC_TILE_ROWS_AVX512_ * size,
                            (const char *)b, 128, (const char *)ahead, (char *)t, ldt, first, wide);
}

/* 64 bytes of columns or less, in vectors of half the size where those do. 8 sums under way keep two units busy. Rows
   that are not there are the last one again. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_small_tile_body_avx512_(const int most, const int half,
                                                                           const int wide, size_t rows, size_t columns,
                                                                           size_t depth, const char *a, size_t a_row,
                                                                           size_t a_step, const char *b, size_t b_step,
                                                                           char *t, size_t t_row) {
    const __mmask16 lanes = mixprec_first_lanes_(wide ? 2 * columns : columns); /* of 4 bytes, whatever the width */
    size_t count, p;
    int i;
    for (; rows; rows -= count, a += count * a_row) {
        const char *row[8], *from = b;
        __m256 s[8]; /* one of the four is used: see mixprec_tile_body_avx2_ */
        __m256d w[8];
        __m512 s2[8];
        __m512d w2[8];
        count = mixprec_min_(rows, (size_t)most);
        MIXPREC_UNROLL_ for (i = 0; i < most; i++) {
            row[i] = a + mixprec_min_((size_t)i, count - 1) * a_row;
            s[i] = _mm256_setzero_ps();
            w[i] = _mm256_setzero_pd();
            s2[i] = _mm512_setzero_ps();
            w2[i] = _mm512_setzero_pd();
        }
        for (p = 0; p < depth; p++, from += b_step) {
            const __m256 x = _mm256_maskz_loadu_ps((__mmask8)lanes, from);
            const __m512 x2 = _mm512_maskz_loadu_ps(lanes, from);
            MIXPREC_UNROLL_ for (i = 0; i < most; i++) {
                const void *y = row[i] + p * a_step;
                if (wide && half)
                    w[i] = _mm256_fmadd_pd(_mm256_set1_pd(*(const double *)y), _mm256_castps_pd(x), w[i]);
                else if (wide)
                    w2[i] = _mm512_fmadd_pd(_mm512_set1_pd(*(const double *)y), _mm512_castps_pd(x2), w2[i]);
                else if (half)
                    s[i] = _mm256_fmadd_ps(_mm256_set1_ps(*(const float *)y), x, s[i]);
                else
                    s2[i] = _mm512_fmadd_ps(_mm512_set1_ps(*(const float *)y), x2, s2[i]);
            }
        }
        MIXPREC_UNROLL_ for (i = 0; i < most; i++, t += t_row) {
            if ((size_t)i == count)
                break;
            if (half)
                _mm256_mask_storeu_ps(t, (__mmask8)lanes, wide ? _mm256_castpd_ps(w[i]) : s[i]);
            else
                _mm512_mask_storeu_ps(t, lanes, wide ? _mm512_castpd_ps(w2[i]) : s2[i]);
        }
    }
}

MIXPREC_AVX512_ static void mixprec_small_tile_avx512_(size_t rows, size_t columns, size_t depth, const char *a,
                                                       size_t a_row, size_t a_step, const char *b, size_t b_step,
                                                       char *t, size_t t_row, int wide) {
    const int half = columns <= (wide ? 4 : 8);
    const int most = rows <= 4 ? 4 : rows <= 6 ? 6 : 8;
    switch (most * 4 + half * 2 + wide) {
#define MIXPREC_CASE_(most, half, wide)                                                                                \
    case most * 4 + half * 2 + wide:                                                                                   \
        mixprec_small_tile_body_avx512_(most, half, wide, rows, columns, depth, a, a_row, a_step, b, b_step, t,        \
                                        t_row);                                                                        \
        break;
#define MIXPREC_CASES_(most)                                                                                           \
    MIXPREC_CASE_(most, 0, 0) MIXPREC_CASE_(most, 1, 0) MIXPREC_CASE_(most, 0, 1) MIXPREC_CASE_(most, 1, 1)
        MIXPREC_CASES_(4)
        MIXPREC_CASES_(6)
        MIXPREC_CASES_(8)
#undef MIXPREC_CASES_
#undef MIXPREC_CASE_
    default: break;
    }
}

/* Up to 3 rows of up to 256 bytes of columns: 4 sums of a row under way. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_small_row_body_avx512_(const int rows, const int wide,
                                                                          size_t columns, size_t depth, const char *a,
                                                                          size_t a_row, size_t a_step, const char *b,
                                                                          size_t b_step, char *t, size_t t_row) {
    __mmask16 lanes[4]; /* of 4 bytes, whatever the width */
    size_t at[4], p;
    __m512 s[MIXPREC_SMALL_ROWS_][4]; /* one of the two is used: see mixprec_tile_body_avx2_ */
    __m512d w[MIXPREC_SMALL_ROWS_][4];
    int i, j;
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
        const size_t words = wide ? 2 * columns : columns, from = (size_t)j * 16;
        lanes[j] = mixprec_first_lanes_(words > from ? words - from : 0);
        at[j] = words > from ? 64 * (size_t)j : 0;
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) {
            s[i][j] = _mm512_setzero_ps();
            w[i][j] = _mm512_setzero_pd();
        }
    }
    for (p = 0; p < depth; p++, a += a_step, b += b_step)
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
            const __m512 x = _mm512_maskz_loadu_ps(lanes[j], b + at[j]);
            MIXPREC_UNROLL_ for (i = 0; i < rows; i++) {
                const void *y = a + (size_t)i * a_row;
                if (wide)
                    w[i][j] = _mm512_fmadd_pd(_mm512_set1_pd(*(const double *)y), _mm512_castps_pd(x), w[i][j]);
                else
                    s[i][j] = _mm512_fmadd_ps(_mm512_set1_ps(*(const float *)y), x, s[i][j]);
            }
        }
    MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < 4; j++)
        _mm512_mask_storeu_ps(t + (size_t)i * t_row + at[j], lanes[j], wide ? _mm512_castpd_ps(w[i][j]) : s[i][j]);
}

MIXPREC_AVX512_ static void mixprec_small_row_avx512_(size_t rows, size_t columns, size_t depth, const char *a,
                                                      size_t a_row, size_t a_step, const char *b, size_t b_step,
                                                      char *t, size_t t_row, int wide) {
    switch (rows * 2 + (size_t)wide) {
#define MIXPREC_CASE_(rows, wide)                                                                                      \
    case rows * 2 + wide:                                                                                              \
        mixprec_small_row_body_avx512_(rows, wide, columns, depth, a, a_row, a_step, b, b_step, t, t_row);             \
        break;
        MIXPREC_CASE_(1, 0)
        MIXPREC_CASE_(2, 0)
        MIXPREC_CASE_(3, 0)
        MIXPREC_CASE_(1, 1)
        MIXPREC_CASE_(2, 1)
        MIXPREC_CASE_(3, 1)
#undef MIXPREC_CASE_
    default: break;
    }
}

/* Tiles compute 4, 8 or 14 rows. The last ones lie over rows that are done, where they write the same again. */
MIXPREC_AVX512_ static void mixprec_small_avx512_(size_t rows, size_t columns, size_t depth, const void *a,
                                                  size_t a_row, size_t a_step, const void *b, size_t b_step, int exact,
                                                  void *t, size_t ldt, int wide) {
    const size_t size = wide ? 8 : 4;
    size_t i, count;
    (void)exact; /* nothing else is read, anyway */
    if (columns * size <= 64) {
        mixprec_small_tile_avx512_(rows, columns, depth, (const char *)a, a_row, a_step, (const char *)b, b_step,
                                   (char *)t, ldt * size, wide);
        return;
    }
    if (rows <= MIXPREC_SMALL_ROWS_) {
        mixprec_small_row_avx512_(rows, columns, depth, (const char *)a, a_row, a_step, (const char *)b, b_step,
                                  (char *)t, ldt * size, wide);
        return;
    }
    for (i = 0; i < rows; i += count) {
        size_t row = i, left = rows - i;
        count = left >= 14 && (left > 24 || left % 4) ? 14 : left >= 8 ? 8 : 4;
        if (count > left)
            row = rows - count;
        mixprec_tile_at_avx512_(count, columns, depth, (const char *)a + row * a_row, a_row, a_step, (const char *)b,
                                b_step, (const char *)b, (char *)t + row * ldt * size, ldt, 1, wide);
    }
}

enum { MIXPREC_AS_IT_IS_, MIXPREC_BY_HALVES_, MIXPREC_SWAPPED_ };

/* 64 bytes, or the first `bytes` of them, of each of 16 rows (zeros for those that are not there), transposed in units
   of 4 bytes, or, wide, of 8 bytes in two blocks of 8 rows; in r[0], r[2] ... r[30]. In a vector BY_HALVES the lower
   two bytes of all rows come before the upper two; SWAPPED, the upper two of each row before its lower two. The type
   does not matter otherwise: narrow elements are cheaper to transpose than the fp32 that they become. Loads of 32 bytes
   into either half of a vector save a quarter of the shuffles. Rows are `stride` bytes apart, and each four of them
   `fours`. `fetch`: prefetches as much from `ahead`
   on. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_transpose_body_avx512_(__m512i *r, const char *src,
                                                                          const char *ahead, size_t stride,
                                                                          size_t fours, size_t rows, size_t bytes,
                                                                          int wide, const int order, const int fetch) {
    __m512i edge[16], x[16], t[16];
    const char *row[4], *later[4];
    int i, k;
    if (rows < 16 || bytes < 64) {
        const __mmask64 there = bytes >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << bytes) - 1;
        size_t q;
        for (q = 0; q < 16; q++)
            edge[q] = q < rows ? _mm512_maskz_loadu_epi8(there, src + q / 4 * fours + q % 4 * stride)
                               : _mm512_setzero_si512();
        src = (const char *)edge;
        stride = 64;
        fours = 4 * stride;
    }
    row[0] = src;
    row[1] = row[0] + fours;
    row[2] = row[1] + fours;
    row[3] = row[2] + fours;
    later[0] = ahead;
    later[1] = later[0] + fours;
    later[2] = later[1] + fours;
    later[3] = later[2] + fours;
    if (wide) {
        for (k = 0; k < 4; k += 2) {
            MIXPREC_UNROLL_ for (i = 0; i < 8; i++) x[i] =
                _mm512_loadu_si512(row[k + i / 4] + (size_t)(i % 4) * stride);
            MIXPREC_UNROLL_ for (i = 0; i < 8; i += 2) {
                t[i] = _mm512_unpacklo_epi64(x[i], x[i + 1]);
                t[i + 1] = _mm512_unpackhi_epi64(x[i], x[i + 1]);
            }
            MIXPREC_UNROLL_ for (i = 0; i < 2; i++) {
                __m512i y = _mm512_shuffle_i32x4(t[i], t[i + 2], 0x88), z = _mm512_shuffle_i32x4(t[i], t[i + 2], 0xDD);
                __m512i u = _mm512_shuffle_i32x4(t[i + 4], t[i + 6], 0x88),
                        v = _mm512_shuffle_i32x4(t[i + 4], t[i + 6], 0xDD);
                r[8 * k + 2 * i] = _mm512_shuffle_i32x4(y, u, 0x88);
                r[8 * k + 2 * i + 8] = _mm512_shuffle_i32x4(y, u, 0xDD);
                r[8 * k + 2 * i + 4] = _mm512_shuffle_i32x4(z, v, 0x88);
                r[8 * k + 2 * i + 12] = _mm512_shuffle_i32x4(z, v, 0xDD);
            }
        }
        return;
    }
    /* Both halves of a line at once: with a power of two between rows they share few sets of the L1 cache. */
    MIXPREC_UNROLL_ for (i = 0; i < 8; i++) MIXPREC_UNROLL_ for (k = 0; k < 2; k++) {
        const char *low = row[i / 4 * 2] + (size_t)(i % 4) * stride + 32 * k;
        const char *high = row[i / 4 * 2 + 1] + (size_t)(i % 4) * stride + 32 * k;
        if (fetch)
            _mm_prefetch(later[i / 4 * 2 + k] + (size_t)(i % 4) * stride, _MM_HINT_T1);
        x[i + 8 * k] =
            _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)low)),
                               _mm256_loadu_si256((const __m256i *)(const void *)high), 1);
    }
    MIXPREC_UNROLL_ for (i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    }
    MIXPREC_UNROLL_ for (i = 0; i < 16; i += 4) {
        x[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        x[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        x[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        x[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    if (order) {
        /* The words that 0x88 below would choose; those of 0xDD are 8 further on. */
        const __m512i even = order == MIXPREC_BY_HALVES_
                                 ? _mm512_set_epi16(55, 53, 51, 49, 39, 37, 35, 33, 23, 21, 19, 17, 7, 5, 3, 1, 54, 52,
                                                    50, 48, 38, 36, 34, 32, 22, 20, 18, 16, 6, 4, 2, 0)
                                 : _mm512_set_epi16(54, 55, 52, 53, 50, 51, 48, 49, 38, 39, 36, 37, 34, 35, 32, 33, 22,
                                                    23, 20, 21, 18, 19, 16, 17, 6, 7, 4, 5, 2, 3, 0, 1);
        const __m512i odd = _mm512_add_epi16(even, _mm512_set1_epi16(8));
        MIXPREC_UNROLL_ for (i = 0; i < 4; i++) MIXPREC_UNROLL_ for (k = 0; k < 16; k += 8) {
            r[2 * (k + i)] = _mm512_permutex2var_epi16(x[k + i], even, x[k + i + 4]);
            r[2 * (k + i + 4)] = _mm512_permutex2var_epi16(x[k + i], odd, x[k + i + 4]);
        }
        return;
    }
    MIXPREC_UNROLL_ for (i = 0; i < 4; i++) MIXPREC_UNROLL_ for (k = 0; k < 16; k += 8) {
        r[2 * (k + i)] = _mm512_shuffle_i32x4(x[k + i], x[k + i + 4], 0x88);
        r[2 * (k + i + 4)] = _mm512_shuffle_i32x4(x[k + i], x[k + i + 4], 0xDD);
    }
}

MIXPREC_AVX512_ static void mixprec_transpose_avx512_(__m512i *r, const char *src, size_t stride, size_t rows,
                                                      size_t bytes, int wide) {
    mixprec_transpose_body_avx512_(r, src, src, stride, 4 * stride, rows, bytes, wide, MIXPREC_AS_IT_IS_, 0);
}
/* By itself: gcc 12 would run out of registers for all three together. */
MIXPREC_AVX512_ static void mixprec_transpose_halves_avx512_(__m512i *r, const char *src, size_t stride, size_t rows,
                                                             size_t bytes) {
    mixprec_transpose_body_avx512_(r, src, src, stride, 4 * stride, rows, bytes, 0, MIXPREC_BY_HALVES_, 0);
}
/* All 64 bytes of 4 x 4 rows. */
MIXPREC_NOINLINE_ MIXPREC_AVX512_ void mixprec_transpose_fours_avx512_(__m512i *r, const char *src, size_t stride,
                                                                       size_t fours, int halves) {
    if (halves)
        mixprec_transpose_body_avx512_(r, src, src, stride, fours, 16, 64, 0, MIXPREC_BY_HALVES_, 0);
    else
        mixprec_transpose_body_avx512_(r, src, src, stride, fours, 16, 64, 0, MIXPREC_AS_IT_IS_, 0);
}

/* As mixprec_fp8_to_bf16_avx512_, e4m3 without a table: byte by byte 16 times the code without its sign, plus 120 for
   the exponent, but for subnormals and NaN. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_e4m3_to_bf16_avx512_(__m512i *low, __m512i *high, __m512i codes) {
    const __m512i low_subnormals = _mm512_set1_epi64(0x60402000C0800000);
    const __m512i high_subnormals = _mm512_set1_epi64(0x3C3C3C3C3B3B3B00); /* k * 2^-9 */
    const __m512i magnitude = _mm512_and_si512(codes, _mm512_set1_epi8(0x7F));
    const __mmask64 subnormal = _mm512_cmplt_epu8_mask(magnitude, _mm512_set1_epi8(8));
    const __mmask64 nan = _mm512_cmpeq_epi8_mask(magnitude, _mm512_set1_epi8(0x7F));
    __m512i x = _mm512_and_si512(_mm512_slli_epi16(codes, 4), _mm512_set1_epi8((char)0xF0));
    *low = _mm512_mask_shuffle_epi8(x, subnormal, low_subnormals, magnitude);
    x = _mm512_and_si512(_mm512_srli_epi16(magnitude, 4), _mm512_set1_epi8(0x07));
    x = _mm512_add_epi8(x, _mm512_set1_epi8(0x3C));
    x = _mm512_mask_shuffle_epi8(x, subnormal, high_subnormals, magnitude);
    x = _mm512_mask_mov_epi8(x, nan, _mm512_set1_epi8(0x7F));
    *high = _mm512_ternarylogic_epi32(x, codes, _mm512_set1_epi8((char)0x80), 0xF8); /* x | (codes & 0x80) */
}

/* The fp8 codes in 4 bytes of each of 16 rows as 16 bits in the order of k, two in each word of `first`, then of
   `second`; `swapped`: the upper one of each word before the lower. E5M2 without a table becomes f16, by way of memory
   for mixprec_half_avx512_: Zen 4 widens numbers from memory twice as fast as from a register. The rest becomes
   bf16. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_split_fp8_avx512_(__m512i *first, __m512i *second, __m512i codes,
                                                                     const mixprec_dtype type, const __m512i *table,
                                                                     const int swapped) {
    const __m512i order = swapped ? _mm512_set4_epi32(0x0E0C0F0D, 0x0A080B09, 0x06040705, 0x02000301)
                                  : _mm512_set4_epi32(0x0F0D0E0C, 0x0B090A08, 0x07050604, 0x03010200);
    const __m512i evens_then_odds = _mm512_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1, 30, 28,
                                                     26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i low_byte = _mm512_set1_epi16(0xFF), high_byte = _mm512_set1_epi16((short)0xFF00);
    __m512i low, high;
    codes = _mm512_shuffle_epi8(codes, order);
    if (!table && type == MIXPREC_E5M2) {
        *first = _mm512_permutexvar_epi16(evens_then_odds, _mm512_slli_epi16(codes, 8));
        *second = _mm512_permutexvar_epi16(evens_then_odds, _mm512_and_si512(codes, high_byte));
        return;
    }
    if (table)
        mixprec_fp8_to_bf16_avx512_(&low, &high, codes, table);
    else
        mixprec_e4m3_to_bf16_avx512_(&low, &high, codes);
    *first = _mm512_ternarylogic_epi32(_mm512_slli_epi16(high, 8), low, low_byte, 0xF8);
    *second = _mm512_ternarylogic_epi32(_mm512_srli_epi16(low, 8), high, high_byte, 0xF8);
}

/* Number k of each row: of such f16, or of a line of f16 transposed in units of 2. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512 mixprec_half_avx512_(const __m512i *halves, size_t k) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)halves + k));
}
/* Number k, 0 or 1, of each word of bf16. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512 mixprec_brain_avx512_(__m512i words, size_t k) {
    return _mm512_castsi512_ps(k ? _mm512_and_si512(words, _mm512_set1_epi32((int)0xFFFF0000u))
                                 : _mm512_slli_epi32(words, 16));
}

/* Writes transposed lines to a panel, at most n rows of it. All 16 columns are written: those beyond the panel's width
   spill into its next row, which is written later, or past its end, where the workspace has room. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_pack_lines_avx512_(float *dst, size_t width, const __m512i r[16],
                                                                      size_t n, const mixprec_dtype type,
                                                                      const size_t per_word) {
    size_t q, i;
    for (q = 0; q * per_word < n; q++) {
        __m512i word[2];
        __m512 x[4];
        word[0] = r[2 * q];
        if (per_word == 4)
            mixprec_split_fp8_avx512_(&word[0], &word[1], word[0], type, NULL, 0);
        MIXPREC_UNROLL_ for (i = 0; i < per_word; i++) {
            if (type == MIXPREC_F32)
                x[i] = _mm512_castsi512_ps(word[0]);
            else if (type == MIXPREC_F16)
                x[i] = mixprec_half_avx512_(&r[2 * q], i);
            else if (type == MIXPREC_E5M2)
                x[i] = mixprec_half_avx512_(word, i);
            else
                x[i] = mixprec_brain_avx512_(word[i / 2], i % 2);
        }
        for (i = 0; i < per_word && q * per_word + i < n; i++, dst += width)
            _mm512_storeu_ps(dst, x[i]);
    }
}

/* 16 of k of fp32, from registers: of a small product whose B is transposed, 4 (64^3) to 28 % less time (4 x 16 x 256,
   Zen 4). Not inlined: gcc 12 would keep all addresses for the next time. */
MIXPREC_NOINLINE_ MIXPREC_AVX512_ void mixprec_pack_words_avx512_(float *dst, size_t width, const char *src,
                                                                  size_t stride, size_t rows) {
    __m512i r[32];
    int i;
    mixprec_transpose_body_avx512_(r, src, src, stride, 4 * stride, rows, 64, 0, MIXPREC_AS_IT_IS_, 0);
    MIXPREC_UNROLL_ for (i = 0; i < 16; i++, dst += width) _mm512_storeu_si512(dst, r[2 * i]);
}

MIXPREC_AVX512_ static void mixprec_pack_across_avx512_(char *dst, size_t width, const char *src, mixprec_dtype type,
                                                        size_t stride, size_t count, size_t depth, int wide) {
    const size_t size = mixprec_size_of_(type), to_size = wide ? 8 : 4;
    const size_t phase = stride % 64 || (uintptr_t)src % size ? 0 : (uintptr_t)src % 64;
    size_t i, q, bytes, left;
    for (bytes = 0; bytes < depth * size; bytes += left, dst += left / size * width * to_size) {
        /* A cache line of each of 16 rows before the next 16: with a power of two between rows they share one set. */
        left = mixprec_min_(64 - (phase + bytes) % 64, depth * size - bytes);
        mixprec_prefetch_rows_(src, bytes, depth * size, stride, mixprec_min_(width, count), MIXPREC_PREFETCH_);
        for (i = 0; i < width; i += 16) {
            const size_t rows = mixprec_min_(16, count > i ? count - i : 0);
            const char *from = src + i * stride + bytes;
            float *to = (float *)(void *)(dst + i * to_size);
            __m512i r[32];
            if (type == MIXPREC_F32 && left == 64) {
                mixprec_pack_words_avx512_(to, width, from, stride, rows);
                continue;
            }
            if (type == MIXPREC_F16)
                mixprec_transpose_halves_avx512_(r, from, stride, rows, left);
            else
                mixprec_transpose_avx512_(r, from, stride, rows, left, wide);
            switch (type) {
            case MIXPREC_F32: mixprec_pack_lines_avx512_(to, width, r, left / 4, MIXPREC_F32, 1); break;
            case MIXPREC_F16: mixprec_pack_lines_avx512_(to, width, r, left / 2, MIXPREC_F16, 2); break;
            case MIXPREC_BF16: mixprec_pack_lines_avx512_(to, width, r, left / 2, MIXPREC_BF16, 2); break;
            case MIXPREC_E4M3: mixprec_pack_lines_avx512_(to, width, r, left, MIXPREC_E4M3, 4); break;
            case MIXPREC_E5M2: mixprec_pack_lines_avx512_(to, width, r, left, MIXPREC_E5M2, 4); break;
            default: /* f64 */
                for (q = 0; q < left / 8; q++, to += width * 2) {
                    _mm512_storeu_si512(to, r[2 * q]);
                    if (width - i > 8)
                        _mm512_mask_storeu_epi32(to + 16, mixprec_first_lanes_((width - i) * 2 - 16), r[16 + 2 * q]);
                }
                break;
            }
        }
    }
}

/* ---- few rows ---- */

/* Where a product has few rows, packing B as panels of fp32 would take longer than the products.
   Where k runs along the rows of B (N x K) the rows of A are the lanes of a vector, with 16 columns of B at a time: B
   needs no transposition, only to become fp32, 64 of k at a time in one of two buffers in L1, while the numbers in the
   other are broadcast from there. Up to eight rows use lanes for columns instead, and so do all where columns lie side
   by side (K x N, and packed). */
#define MIXPREC_DIRECT_ROWS_AVX512_ 32
#define MIXPREC_DIRECT_WIDTH_ 16 /* of a panel of A */
#define MIXPREC_DIRECT_THIN_ROWS_ 8
#define MIXPREC_DIRECT_DEPTH_ 64 /* of a buffer of 16 columns */
#define MIXPREC_DIRECT_BUFFER_ (16 * MIXPREC_DIRECT_DEPTH_)
#define MIXPREC_DIRECT_LEAD_ 512        /* bytes to prefetch ahead in a row of B */
#define MIXPREC_DIRECT_PANEL_LEAD_ 6144 /* and in a panel read once; on Zen 4, 8 rows of f32 took 10 % more with 4096 */
#define MIXPREC_DIRECT_ALONG_ 32        /* depth of what is multiplied at a time where columns lie side by side */
#define MIXPREC_DIRECT_BYTES_ (2 * 4 * MIXPREC_DIRECT_BUFFER_) /* two buffers; for each row the sums of a chunk */
#define MIXPREC_DIRECT_BYTES_PER_ROW_ (4 * MIXPREC_DIRECT_GROUP_(MIXPREC_DIRECT_ROWS_AVX512_))

/* With at most 8 rows even a panel in L1 costs more than the products: lines of 64 bytes of B are transposed and
   multiplied. */

/* Sums of rows, `vectors` of 16 columns each, to t, as many rows and columns as there are. Not inlined: once in a chunk
   the call costs nothing, and the kernels are shorter. */
MIXPREC_NOINLINE_ MIXPREC_AVX512_ void mixprec_direct_thin_put_avx512_(float *t, size_t ldt, const __m512 *sums,
                                                                       size_t rows, size_t columns, size_t vectors,
                                                                       int first) {
    size_t i, j;
    for (i = 0; i < rows; i++, t += ldt, sums += vectors)
        for (j = 0; j < vectors && j * 16 < columns; j++) {
            const __mmask16 lanes = mixprec_first_lanes_(columns - j * 16);
            const __m512 sum = first ? sums[j] : _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, t + j * 16), sums[j]);
            _mm512_mask_storeu_ps(t + j * 16, lanes, sum);
        }
}

/* Of fp32, in registers: sums[0], sums[2] ... of the rows of A += their numbers times a line of each of 16 columns. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_direct_line_body_avx512_(const int rows, __m512 *sums, const char *b,
                                                                            const char *ahead, size_t stride,
                                                                            const float *a, size_t width) {
    __m512i words[32];
    __m512 s[MIXPREC_DIRECT_THIN_ROWS_];
    int i, q;
    mixprec_transpose_body_avx512_(words, b, ahead, stride, 4 * stride, 16, 64, 0, MIXPREC_AS_IT_IS_, 1);
    MIXPREC_UNROLL_ for (i = 0; i < rows; i++) s[i] = sums[2 * i];
    MIXPREC_UNROLL_ for (q = 0; q < 16; q++, a += width) {
        const __m512 x = _mm512_castsi512_ps(words[2 * q]);
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) s[i] = _mm512_fmadd_ps(_mm512_set1_ps(a[i]), x, s[i]);
    }
    MIXPREC_UNROLL_ for (i = 0; i < rows; i++) sums[2 * i] = s[i];
}
/* The same of fewer bytes or columns. */
MIXPREC_AVX512_ static void mixprec_direct_line_part_avx512_(size_t rows, __m512 *sums, const char *b, size_t stride,
                                                             size_t columns, size_t bytes, const float *a,
                                                             size_t width) {
    __m512i words[32];
    size_t q, i;
    mixprec_transpose_avx512_(words, b, stride, columns, bytes, 0);
    for (q = 0; q < bytes / 4; q++, a += width)
        for (i = 0; i < rows; i++)
            sums[2 * i] = _mm512_fmadd_ps(_mm512_set1_ps(a[i]), _mm512_castsi512_ps(words[2 * q]), sums[2 * i]);
}
typedef void (*mixprec_direct_line_avx512_)(__m512 *sums, const char *b, const char *ahead, size_t stride,
                                            const float *a, size_t width);
#define MIXPREC_LINE_(rows)                                                                                            \
    MIXPREC_AVX512_ static void mixprec_direct_line_##rows##_avx512_(__m512 *sums, const char *b, const char *ahead,   \
                                                                     size_t stride, const float *a, size_t width) {    \
        mixprec_direct_line_body_avx512_(rows, sums, b, ahead, stride, a, width);                                      \
    }
MIXPREC_LINE_(1)
MIXPREC_LINE_(2)
MIXPREC_LINE_(4)
MIXPREC_LINE_(8)
#undef MIXPREC_LINE_

MIXPREC_AVX512_ static void mixprec_direct_floats_avx512_(size_t rows, size_t columns, size_t depth, const float *a,
                                                          size_t width, const char *b, size_t stride, float *t,
                                                          size_t ldt, int first) {
    static const mixprec_direct_line_avx512_ lines[4] = {mixprec_direct_line_1_avx512_, mixprec_direct_line_2_avx512_,
                                                         mixprec_direct_line_4_avx512_, mixprec_direct_line_8_avx512_};
    const mixprec_direct_line_avx512_ line = lines[rows == 1 ? 0 : rows == 2 ? 1 : rows <= 4 ? 2 : 3];
    const size_t row_bytes = depth * 4, lead = 768;
    const size_t phase = stride % 64 || (uintptr_t)b % 4 ? 0 : (uintptr_t)b % 64;
    /* More sums of a row are under way with 32 columns. But streams are fewer with 16, and lines that share a set of
       the caches: one row of 4096 x 4096 in DRAM took 2.1 ms on Zen 5, and 3.0 with 32. */
    const size_t step = columns * stride <= (size_t)1 << 20 ? 32 : 16;
    size_t j, q, i, at;
    for (j = 0; j < columns; j += step, b += step * stride, t += step) {
        const size_t there = mixprec_min_(step, columns - j);
        const float *from = a;
        int begins = first;
        for (at = 0; at < row_bytes; begins = 0) {
            const size_t end = mixprec_min_(at + MIXPREC_GEMM_KBLOCK * 4, row_bytes);
            __m512 sums[MIXPREC_DIRECT_THIN_ROWS_ * 2];
            for (i = 0; i < MIXPREC_DIRECT_THIN_ROWS_ * 2; i++)
                sums[i] = _mm512_setzero_ps();
            while (at < end) {
                const size_t bytes = mixprec_min_(64 - (phase + at) % 64, end - at);
                /* At the end of the rows, the next columns. The address is only prefetched, and may lie outside of
                   B. */
                const size_t ahead = at + lead + (at + lead < row_bytes ? 0 : step * stride - row_bytes);
                for (q = 0; q < there; q += 16)
                    if (bytes == 64 && there - q >= 16)
                        line(sums + q / 16, b + at + q * stride, (const char *)((uintptr_t)b + ahead + q * stride),
                             stride, from, width);
                    else
                        mixprec_direct_line_part_avx512_(rows, sums + q / 16, b + at + q * stride, stride,
                                                         mixprec_min_(16, there - q), bytes, from, width);
                from += bytes / 4 * width;
                at += bytes;
            }
            mixprec_direct_thin_put_avx512_(t, ldt, sums, rows, there, 2, begins);
        }
    }
}

/* A line of 64 bytes of fp8 of each of 32 or 64 columns, `words` as mixprec_direct_thin_body_avx512_ transposes them,
   as 16 bits in the order that they have there. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_direct_widen_body_avx512_(__m512i *to, const __m512i *words,
                                                                             size_t count, const mixprec_dtype type,
                                                                             const __m512i *table, const int swapped) {
    size_t i, j;
    for (i = 0; i < count; i += 2, to += 4)
        MIXPREC_UNROLL_ for (j = 0; j < 2; j++)
            mixprec_split_fp8_avx512_(&to[j], &to[j + 2], words[i + j], type, table, swapped);
}
MIXPREC_NOINLINE_ MIXPREC_AVX512_ void mixprec_direct_widen_avx512_(__m512i *to, const __m512i *words, size_t count,
                                                                    mixprec_dtype type, const uint64_t *table) {
    if (table) {
        __m512i registers[4];
        mixprec_fp8_registers_avx512_(registers, table);
        mixprec_direct_widen_body_avx512_(to, words, count, MIXPREC_NONE, registers, 0);
    } else if (type == MIXPREC_E4M3)
        mixprec_direct_widen_body_avx512_(to, words, count, MIXPREC_E4M3, NULL, 0);
    else
        mixprec_direct_widen_body_avx512_(to, words, count, MIXPREC_E5M2, NULL, 0);
}

/* Of 16 and 8 bits, by way of a buffer of 16 bits, bf16 or f16 as `form` says, for sums of several vectors of columns
   to be under way and not wait for each other. Lines are those of the cache, wherever B begins (malloc likes 16 modulo
   64), and the end of a chunk may lie within one: with a power of two between rows they share few sets of the L1 cache,
   and of two halves the second would have to come again (1 x 4096 x 4096 of fp8 on Zen 5: 1.41 ms, not 1.06). The next
   lines are requested after the transposition, whose loads they would hold up: 0.86 ms there, not 1.03. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void
mixprec_direct_thin_body_avx512_(const int rows, const int vectors, const mixprec_dtype form, const int fp8,
                                 mixprec_dtype type, const uint64_t *table, size_t rows_there, size_t columns,
                                 size_t depth, const float *a, size_t width, const char *b, size_t stride, float *t,
                                 size_t ldt, int first) {
    const size_t size = fp8 ? 1 : 2, bytes = depth * size, step = (size_t)vectors * 16;
    const size_t phase = stride % 64 || (uintptr_t)b % 4 ? 0 : (uintptr_t)b % 64;
    /* Two vectors of columns side by side, then the next two. No larger than they must be, for loads wait for stores a
       multiple of 4 KB away (8 x 4096 x 4128 of f16: 1.55 ms, not 1.72). */
    __m512i words_of_2[32], words_of_4[64], wide_of_2[64], wide_of_4[128];
    __m512i *words = vectors > 2 ? words_of_4 : words_of_2, *wide = vectors > 2 ? wide_of_4 : wide_of_2;
    __m512 sums[16];
    const __m512i *word = words;
    size_t at = 0, line_end = 0;
    int i, j;
    for (; at < bytes; first = 0) {
        const size_t end = mixprec_min_(at + MIXPREC_GEMM_KBLOCK * size, bytes);
        __m512 s[MIXPREC_DIRECT_THIN_ROWS_][4];
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) s[i][j] =
            _mm512_setzero_ps();
        while (at < end) {
            size_t stop, k;
            if (at == line_end) {
                const size_t length = mixprec_min_(64 - (phase + at) % 64, bytes - at);
                line_end = at + length;
                for (k = 0; k < step; k += 16) {
                    __m512i *to = words + k / 32 * 32 + k / 16 % 2;
                    const char *from = b + at + k * stride;
                    const size_t there = columns > k ? mixprec_min_(16, columns - k) : 0;
                    if (!fp8 && form == MIXPREC_F16)
                        mixprec_transpose_halves_avx512_(to, from, stride, there, length);
                    else
                        mixprec_transpose_avx512_(to, from, stride, there, length, 0);
                }
                if (fp8)
                    mixprec_direct_widen_avx512_(wide, words, step, type, table);
                word = fp8 ? wide : words;
                mixprec_prefetch_rows_(b, at, bytes, stride, columns, MIXPREC_DIRECT_LEAD_);
            }
            stop = mixprec_min_(end, line_end);
            for (; at < stop; at += 2 * size, word += 2, a += 2 * width)
                MIXPREC_UNROLL_ for (k = 0; k < 2; k++) {
                    const float *const row = a + k * width;
                    __m512 x[4];
                    if (k == 1 && stop - at == size) /* the last of an odd number */
                        break;
                    MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
                        const __m512i *from = word + j / 2 * (fp8 ? 64 : 32) + j % 2;
                        x[j] = form == MIXPREC_F16 ? mixprec_half_avx512_(from, k) : mixprec_brain_avx512_(*from, k);
                    }
                    MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) s[i][j] =
                        _mm512_fmadd_ps(_mm512_set1_ps(row[i]), x[j], s[i][j]);
                }
            at = stop;
        }
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) sums[i * vectors + j] =
            s[i][j];
        mixprec_direct_thin_put_avx512_(t, ldt, sums, rows_there, columns, (size_t)vectors, first);
    }
}

/* Each is a function of its own, for its frame to be small, too. */
typedef void (*mixprec_direct_thin_avx512_)(mixprec_dtype type, const uint64_t *table, size_t rows, size_t columns,
                                            size_t depth, const float *a, size_t width, const char *b, size_t stride,
                                            float *t, size_t ldt, int first);
#define MIXPREC_THIN_(some, vectors, name, form, fp8)                                                                  \
    MIXPREC_NOINLINE_ MIXPREC_AVX512_ void mixprec_direct_thin_##some##x##vectors##_##name##_avx512_(                  \
        mixprec_dtype type, const uint64_t *table, size_t rows, size_t columns, size_t depth, const float *a,          \
        size_t width, const char *b, size_t stride, float *t, size_t ldt, int first) {                                 \
        mixprec_direct_thin_body_avx512_(some, vectors, form, fp8, type, table, rows, columns, depth, a, width, b,     \
                                         stride, t, ldt, first);                                                       \
    }
#define MIXPREC_THINS_(few, many, name, form, fp8)                                                                     \
    MIXPREC_THIN_(1, few, name, form, fp8)                                                                             \
    MIXPREC_THIN_(1, many, name, form, fp8)                                                                            \
    MIXPREC_THIN_(2, few, name, form, fp8)                                                                             \
    MIXPREC_THIN_(2, many, name, form, fp8)                                                                            \
    MIXPREC_THIN_(4, few, name, form, fp8)                                                                             \
    MIXPREC_THIN_(4, many, name, form, fp8)                                                                            \
    MIXPREC_THIN_(8, few, name, form, fp8)
MIXPREC_THINS_(1, 2, f16, MIXPREC_F16, 0)
MIXPREC_THIN_(8, 2, f16, MIXPREC_F16, 0)
MIXPREC_THINS_(1, 2, bf16, MIXPREC_BF16, 0)
MIXPREC_THIN_(8, 2, bf16, MIXPREC_BF16, 0)
MIXPREC_THINS_(2, 4, fp8_as_f16, MIXPREC_F16, 1)
MIXPREC_THINS_(2, 4, fp8_as_bf16, MIXPREC_BF16, 1)
#undef MIXPREC_THINS_
#undef MIXPREC_THIN_

/* One row, of 16 columns four chunks of k at once, each in a lane of its own: fewer columns are read at a time for as
   many sums under way. With a power of two between rows, 16 lines at the same depth are in one set of the L1 cache,
   which on Zen 4 takes 63 cycles to load them from L2, not 29; a chunk apart they are in several. What comes next is
   requested in the order in which it lies in B, a little with each k: all at once it would hold up the loads from L2.
   1 x 4096 x 4096 from DRAM, that of 16 or 32 columns at once before it: f16 1.27 to 1.54 ms, not 1.73 to 1.80; e4m3
   1.15 to 1.21, not 1.44 to 1.46. a[4 * k + c] is number k of chunk c. */
#define MIXPREC_DIRECT_STRIP_ (4 * MIXPREC_GEMM_KBLOCK)
/* Prefetches some lines, a power of two, from *ahead on, and goes on to the next, at *row_end to those of the next
   column. */
MIXPREC_FORCE_INLINE_ void mixprec_strip_ahead_(uintptr_t *ahead, uintptr_t *row_end, size_t phase, size_t stride,
                                                size_t row_bytes, const size_t lines) {
    size_t line;
    if (*ahead == *row_end) {
        _mm_prefetch((const char *)(*row_end + phase - 1), _MM_HINT_T1); /* the line that it ends in */
        *ahead += stride - row_bytes;
        *row_end += stride;
    }
    MIXPREC_UNROLL_ for (line = 0; line < lines; line++) _mm_prefetch((const char *)(*ahead + 64 * line), _MM_HINT_T1);
    *ahead += 64 * lines;
}
/* t = or += the sums, 4 x 4 in each 128 bits: from four chunks of a column to all columns of a chunk. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_direct_strip_put_avx512_(float *t, const __m512 s[4], int first) {
    const __m512 low01 = _mm512_unpacklo_ps(s[0], s[1]), low23 = _mm512_unpacklo_ps(s[2], s[3]);
    const __m512 high01 = _mm512_unpackhi_ps(s[0], s[1]), high23 = _mm512_unpackhi_ps(s[2], s[3]);
    __m512 sum = _mm512_shuffle_ps(low01, low23, 0x44);
    sum = first ? sum : _mm512_add_ps(_mm512_loadu_ps(t), sum);
    sum = _mm512_add_ps(sum, _mm512_shuffle_ps(low01, low23, 0xEE));
    sum = _mm512_add_ps(sum, _mm512_shuffle_ps(high01, high23, 0x44));
    _mm512_storeu_ps(t, _mm512_add_ps(sum, _mm512_shuffle_ps(high01, high23, 0xEE)));
}
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void
mixprec_direct_strip_body_avx512_(const mixprec_dtype form, const int fp8, mixprec_dtype type, const uint64_t *table,
                                  size_t columns, const float *a, const char *b, size_t stride, float *t, int first) {
    const size_t size = fp8 ? 1 : 2, chunk = MIXPREC_GEMM_KBLOCK * size, row_bytes = 4 * chunk;
    const size_t phase = (uintptr_t)b % 4 ? 0 : (uintptr_t)b % 64;
    __m512i words[64], wide[128];
    int j, k;
    for (; columns; columns -= 16, b += 16 * stride, t += 16) {
        const float *from = a;
        uintptr_t ahead = (uintptr_t)b + 16 * stride - phase, row_end = ahead + row_bytes;
        __m512 s[4];
        size_t at, end;
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) s[j] = _mm512_setzero_ps();
        for (at = 0; at < chunk; at = end) {
            /* To the end of a line of the cache, among 64 bytes of the chunk. */
            const size_t from_64 = mixprec_min_(at, chunk - 64);
            const __m512i *word = (fp8 ? wide : words) + (at - from_64) / size;
            end = mixprec_min_(at + 64 - (phase + at) % 64, chunk);
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) /* columns j, j + 4, j + 8, j + 12 */
                mixprec_transpose_fours_avx512_(words + j / 2 * 32 + j % 2, b + from_64 + (size_t)j * stride, chunk,
                                                4 * stride, form == MIXPREC_F16 && !fp8);
            if (fp8)
                mixprec_direct_widen_avx512_(wide, words, 64, type, table);
            for (; at < end; at += 2 * size, word += 2) {
                mixprec_strip_ahead_(&ahead, &row_end, phase, stride, row_bytes, fp8 ? 2 : 4);
                MIXPREC_UNROLL_ for (k = 0; k < 2; k++, from += 4) {
                    const __m512 y = _mm512_broadcast_f32x4(_mm_loadu_ps(from));
                    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
                        const __m512i *of_j = word + j / 2 * (fp8 ? 64 : 32) + j % 2;
                        s[j] = _mm512_fmadd_ps(y,
                                               form == MIXPREC_F16 ? mixprec_half_avx512_(of_j, (size_t)k)
                                                                   : mixprec_brain_avx512_(*of_j, (size_t)k),
                                               s[j]);
                    }
                }
            }
        }
        mixprec_direct_strip_put_avx512_(t, s, first);
    }
}

typedef void (*mixprec_direct_strip_avx512_)(mixprec_dtype type, const uint64_t *table, size_t columns, const float *a,
                                             const char *b, size_t stride, float *t, int first);
#define MIXPREC_STRIP_OF_(name, form, fp8)                                                                             \
    MIXPREC_NOINLINE_ MIXPREC_AVX512_ void mixprec_direct_strip_##name##_avx512_(                                      \
        mixprec_dtype type, const uint64_t *table, size_t columns, const float *a, const char *b, size_t stride,       \
        float *t, int first) {                                                                                         \
        mixprec_direct_strip_body_avx512_(form, fp8, type, table, columns, a, b, stride, t, first);                    \
    }
MIXPREC_STRIP_OF_(f16, MIXPREC_F16, 0)
MIXPREC_STRIP_OF_(bf16, MIXPREC_BF16, 0)
MIXPREC_STRIP_OF_(fp8_as_f16, MIXPREC_F16, 1)
MIXPREC_STRIP_OF_(fp8_as_bf16, MIXPREC_BF16, 1)
#undef MIXPREC_STRIP_OF_

MIXPREC_NOINLINE_ MIXPREC_AVX512_ void mixprec_direct_strips_avx512_(int form, mixprec_dtype type,
                                                                     const uint64_t *table, size_t columns,
                                                                     size_t depth, const float *a, const char *b,
                                                                     size_t stride, float *t, int first) {
    static const mixprec_direct_strip_avx512_ kernels[4] = {
        mixprec_direct_strip_f16_avx512_, mixprec_direct_strip_bf16_avx512_, mixprec_direct_strip_fp8_as_f16_avx512_,
        mixprec_direct_strip_fp8_as_bf16_avx512_};
    float strip[MIXPREC_DIRECT_STRIP_], *to;
    size_t p, k, c;
    for (p = 0; p < depth; p += MIXPREC_DIRECT_STRIP_) {
        for (to = strip, k = p; k < p + MIXPREC_GEMM_KBLOCK; k++)
            for (c = 0; c < MIXPREC_DIRECT_STRIP_; c += MIXPREC_GEMM_KBLOCK)
                *to++ = a[c + k];
        kernels[form](type, table, columns, strip, b + p * mixprec_size_of_(type), stride, t, first && p == 0);
    }
}

MIXPREC_AVX512_ static void mixprec_direct_narrow_avx512_(size_t rows, size_t columns, size_t depth, const float *a,
                                                          size_t width, const char *b, mixprec_dtype type,
                                                          size_t stride, float *t, size_t ldt, int first) {
    /* For 1, 2, 4 and 8 rows, with few columns and with twice as many. */
#define MIXPREC_THIN_(some, vectors, name) mixprec_direct_thin_##some##x##vectors##_##name##_avx512_
#define MIXPREC_THINS_(few, many, name)                                                                                \
    MIXPREC_THIN_(1, few, name), MIXPREC_THIN_(1, many, name), MIXPREC_THIN_(2, few, name),                            \
        MIXPREC_THIN_(2, many, name), MIXPREC_THIN_(4, few, name), MIXPREC_THIN_(4, many, name),                       \
        MIXPREC_THIN_(8, few, name), MIXPREC_THIN_(8, 2, name)
    static const mixprec_direct_thin_avx512_ kernels[4][8] = {{MIXPREC_THINS_(1, 2, f16)},
                                                              {MIXPREC_THINS_(1, 2, bf16)},
                                                              {MIXPREC_THINS_(2, 4, fp8_as_f16)},
                                                              {MIXPREC_THINS_(2, 4, fp8_as_bf16)}};
#undef MIXPREC_THINS_
#undef MIXPREC_THIN_
    const int fp8 = mixprec_size_of_(type) == 1, cached = columns * stride <= (size_t)1 << 20;
    const int amd = mixprec_is_amd_();
    const uint64_t *table = fp8 ? mixprec_fp8_table_(type) : NULL;
    const int form = type == MIXPREC_F16 ? 0 : type == MIXPREC_BF16 ? 1 : type == MIXPREC_E4M3 || table ? 3 : 2;
    const mixprec_direct_thin_avx512_ *const pair = kernels[form] + (rows == 1 ? 0 : rows == 2 ? 2 : rows <= 4 ? 4 : 6);
    /* In DRAM fewer streams count for more than more sums: 4 x 4096 x 4096 of fp8 took 1.01 ms on Zen 5 with 32
       columns, 1.24 with 64. So do they for 16 bits with a power of two between rows: f16 took 1.20 ms with 16
       columns, 1.41 with 32; but 1.17 and 1.02 with 128 bytes more from row to row. Not on Emerald Rapids: f16 takes 4
       to 7 % less with 32. */
    const size_t few = fp8 ? 32 : 16;
    const size_t step = (fp8 ? cached && rows <= 4 : cached || !amd || stride % 1024) ? 2 * few : few;
    size_t strip_columns = 0, strip_depth = 0, j, there;
    /* With other strides, or a few columns left over, that takes as long or longer, and on Emerald Rapids anyway (8 %
       or more). */
    if (amd && rows == 1 && width == 1 && depth >= MIXPREC_DIRECT_STRIP_ && stride % 2048 == 0 &&
        (columns % 16 == 0 || columns > 64)) {
        strip_columns = columns - columns % 16;
        strip_depth = depth - depth % MIXPREC_DIRECT_STRIP_;
        mixprec_direct_strips_avx512_(form, type, table, strip_columns, strip_depth, a, b, stride, t, first);
    }
    for (j = 0; j < columns; j += there) {
        const size_t done = j < strip_columns ? strip_depth : 0;
        there = mixprec_min_(step, (j < strip_columns ? strip_columns : columns) - j);
        if (done < depth)
            pair[there > few](type, table, rows, there, depth - done, a + done * width, width,
                              b + j * stride + done * mixprec_size_of_(type), stride, t + j, ldt, first && done == 0);
    }
}

typedef struct mixprec_direct_ {
    size_t rows, columns, depth;
    const float *a;
    size_t width;
    const char *b;
    mixprec_dtype type;
    size_t stride;
    int along;
    float *t;
    size_t ldt;
    int first;
    float *scratch;
} mixprec_direct_;

/* Where k runs along the rows of B: what multiplies up to 16 rows and 16 columns in one chunk of k. */
typedef struct mixprec_direct_across_ {
    const float *a;
    size_t width, depth, columns, stride;
    const char *b;
    const char *next; /* what comes after this chunk; NULL: not 16 columns and 64 of k */
    const char *last; /* from here on prefetching goes on `jump` bytes further, in the next 16 columns */
    size_t jump;
    float *buffers[2]; /* fp32, 64 of k of column 0, of column 1 ...; the first holds what is next, if it is `filled` */
    int filled, first;
    float *sums;           /* 16 rows of column 0, of column 1 ... */
    const uint64_t *table; /* mixprec_fp8_table_ */
} mixprec_direct_across_;

/* rows x columns of fp32, `columns` a multiple of 16, from B's rows, `stride` bytes apart; zeros beyond what is
   there. */
MIXPREC_AVX512_ static void mixprec_direct_fill_avx512_(float *to, size_t rows, size_t columns, const char *b,
                                                        mixprec_dtype type, size_t stride, size_t rows_there,
                                                        size_t columns_there) {
    size_t i, j;
    for (i = 0; i < rows; i++)
        for (j = 0; j < columns; j += 16, to += 16) {
            const __mmask16 lanes = mixprec_first_lanes_(i < rows_there && j < columns_there ? columns_there - j : 0);
            const char *from = lanes ? b + i * stride + j * mixprec_size_of_(type) : b;
            __m512 x = _mm512_setzero_ps();
            switch (type) {
#define MIXPREC_ROW_(dtype)                                                                                            \
    case dtype: x = mixprec_load16_avx512_(from, dtype, lanes); break;
                MIXPREC_ROW_(MIXPREC_F32)
                MIXPREC_ROW_(MIXPREC_F16)
                MIXPREC_ROW_(MIXPREC_BF16)
                MIXPREC_ROW_(MIXPREC_E4M3)
                MIXPREC_ROW_(MIXPREC_E5M2)
#undef MIXPREC_ROW_
            default: break;
            }
            _mm512_store_ps(to, x);
        }
}

/* 64 numbers of fp32 from a row of B. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_direct_fill64_avx512_(float *to, const char *from, const char *ahead,
                                                                         const mixprec_dtype type) {
    const int size = type == MIXPREC_F32 ? 4 : type == MIXPREC_F16 || type == MIXPREC_BF16 ? 2 : 1;
    int i;
    MIXPREC_UNROLL_ for (i = 0; i < 4; i++) {
        if (i * size % 4 == 0)
            _mm_prefetch(ahead + i * size * 16, _MM_HINT_T1);
        _mm512_store_ps(to + i * 16, mixprec_load16_avx512_(from + i * size * 16, type, 0xFFFF));
    }
}

/* Number i of each 4, four times. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m256 mixprec_direct_spread_avx512_(__m256 x, const int i) {
    return i == 0   ? _mm256_permute_ps(x, 0x00)
           : i == 1 ? _mm256_permute_ps(x, 0x55)
           : i == 2 ? _mm256_permute_ps(x, 0xAA)
                    : _mm256_permute_ps(x, 0xFF);
}

MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_direct_across_body_avx512_(const int lanes, mixprec_dtype type,
                                                                              mixprec_direct_across_ *d) {
    const size_t size = mixprec_size_of_(type), stride = d->stride;
    const float *a = d->a;
    const char *from = d->b;
    size_t depth = d->depth, left, width = d->width;
    float edge[4 * 16];
    __m512i table[4];
    __m512 s[16];
    __m256 h[16]; /* in the place of s for 8 lanes */
    int c, q;
    MIXPREC_UNROLL_ for (c = 0; c < 16; c++) {
        s[c] = _mm512_setzero_ps();
        h[c] = _mm256_setzero_ps();
    }
    while (depth) {
        float *b = d->buffers[0], *to = d->buffers[1];
        const char *ahead, *next;
        int fill;
        left = mixprec_min_(depth, MIXPREC_DIRECT_DEPTH_);
        if (!d->filled)
            mixprec_direct_fill_avx512_(b, 16, MIXPREC_DIRECT_DEPTH_, from, type, stride, d->columns, left);
        depth -= left;
        from = depth ? from + MIXPREC_DIRECT_DEPTH_ * size : d->next;
        fill =
            left == MIXPREC_DIRECT_DEPTH_ && from && (!depth || (depth >= MIXPREC_DIRECT_DEPTH_ && d->columns >= 16));
        d->filled = fill;
        d->buffers[0] = to;
        d->buffers[1] = b;
        next = from;
        ahead = fill ? (const char *)((uintptr_t)from + MIXPREC_DIRECT_LEAD_ + (from < d->last ? 0 : d->jump)) : NULL;
        while (left) {
            __m256 r[4];
            if (left < 4) {
                /* -0 times the zeros of the buffer changes no sum, not even -0. */
                for (q = 0; q < 4; q++)
                    _mm512_storeu_ps(edge + q * 16,
                                     (size_t)q < left ? _mm512_loadu_ps(a + (size_t)q * width) : _mm512_set1_ps(-0.0f));
                a = edge;
                width = 16;
                left = 4;
            }
            /* Zen 4 loads two numbers in a cycle and multiplies two vectors of 8: to keep pace with A's, too, every
               fourth column is broadcast from a register. */
            if (lanes == 8)
                MIXPREC_UNROLL_ for (c = 0; c < 16; c += 4) r[c / 4] =
                    _mm256_broadcast_ps((const __m128 *)(const void *)(b + c * MIXPREC_DIRECT_DEPTH_));
            MIXPREC_UNROLL_ for (q = 0; q < 4; q++) {
                const __m512 x = lanes == 16 ? _mm512_loadu_ps(a + (size_t)q * width) : _mm512_setzero_ps();
                const __m256 y = lanes == 8 ? _mm256_loadu_ps(a + (size_t)q * width) : _mm256_setzero_ps();
                MIXPREC_UNROLL_ for (c = 0; c < 16; c++) {
                    const float *number = b + c * MIXPREC_DIRECT_DEPTH_ + q;
                    if (lanes == 16)
                        s[c] = _mm512_fmadd_ps(_mm512_set1_ps(*number), x, s[c]);
                    else
                        h[c] = _mm256_fmadd_ps(
                            c % 4 ? _mm256_set1_ps(*number) : mixprec_direct_spread_avx512_(r[c / 4], q), y, h[c]);
                }
            }
            if (fill)
                switch (d->table ? MIXPREC_NONE : type) {
                case MIXPREC_NONE:
                    _mm_prefetch(ahead, _MM_HINT_T1);
                    mixprec_fp8_registers_avx512_(table, d->table);
                    mixprec_fp8_load64_avx512_(to, next, table, 0);
                    break;
                case MIXPREC_F32: mixprec_direct_fill64_avx512_(to, next, ahead, MIXPREC_F32); break;
                case MIXPREC_F16: mixprec_direct_fill64_avx512_(to, next, ahead, MIXPREC_F16); break;
                case MIXPREC_BF16: mixprec_direct_fill64_avx512_(to, next, ahead, MIXPREC_BF16); break;
                case MIXPREC_E4M3: mixprec_direct_fill64_avx512_(to, next, ahead, MIXPREC_E4M3); break;
                default: mixprec_direct_fill64_avx512_(to, next, ahead, MIXPREC_E5M2); break;
                }
            left -= 4;
            a += 4 * width;
            b += 4;
            to += MIXPREC_DIRECT_DEPTH_;
            if (fill) {
                next += stride;
                ahead += stride;
            }
        }
    }
    MIXPREC_UNROLL_ for (c = 0; c < 16; c++) {
        float *sum = d->sums + c * 16;
        if (lanes == 16)
            _mm512_store_ps(sum, d->first ? s[c] : _mm512_add_ps(_mm512_load_ps(sum), s[c]));
        else
            _mm256_store_ps(sum, d->first ? h[c] : _mm256_add_ps(_mm256_load_ps(sum), h[c]));
    }
}

MIXPREC_AVX512_ static void mixprec_direct_across_8_avx512_(mixprec_dtype type, mixprec_direct_across_ *d) {
    mixprec_direct_across_body_avx512_(8, type, d);
}
MIXPREC_AVX512_ static void mixprec_direct_across_16_avx512_(mixprec_dtype type, mixprec_direct_across_ *d) {
    mixprec_direct_across_body_avx512_(16, type, d);
}

MIXPREC_AVX512_ static void mixprec_direct_across_avx512_(const mixprec_direct_ *call) {
    const size_t size = mixprec_size_of_(call->type), row_bytes = call->depth * size;
    const size_t rows = call->rows, columns = call->columns, depth = call->depth, ldt = call->ldt;
    float *const sums = call->scratch + 2 * MIXPREC_DIRECT_BUFFER_;
    size_t i, j, p;
    __m512i r[32];
    mixprec_direct_across_ d;
    d.width = call->width;
    d.stride = call->stride;
    d.buffers[0] = call->scratch;
    d.buffers[1] = call->scratch + MIXPREC_DIRECT_BUFFER_;
    d.filled = 0;
    d.table = mixprec_fp8_table_(call->type);
    d.jump = 16 * d.stride - row_bytes;
    for (j = 0; j < columns; j += 16) {
        const char *const b = call->b + j * d.stride;
        float *const t = call->t + j;
        d.columns = mixprec_min_(16, columns - j);
        d.last = b + (row_bytes > MIXPREC_DIRECT_LEAD_ ? row_bytes - MIXPREC_DIRECT_LEAD_ : 0);
        for (i = 0; i < rows && !call->first; i += 16) {
            const char *from = (const char *)(t + i * ldt);
            mixprec_transpose_avx512_(r, from, ldt * 4, mixprec_min_(16, rows - i), d.columns * 4, 0);
            for (p = 0; p < 16; p++)
                _mm512_store_si512(sums + (i + p) * 16, r[2 * p]);
        }
        for (p = 0; p < depth; p += MIXPREC_GEMM_KBLOCK)
            for (i = 0; i < rows; i += 16) {
                size_t next = p; /* where what comes next begins; depth: in the next columns */
                d.a = call->a + i * depth + p * d.width;
                d.depth = mixprec_min_(MIXPREC_GEMM_KBLOCK, depth - p);
                d.b = b + p * size;
                d.first = call->first && p == 0;
                d.sums = sums + i * 16;
                if (i + 16 >= rows)
                    next += d.depth;
                d.next = next == depth ? d.b + 16 * d.stride - p * size : b + next * size;
                if (j + (next == depth ? 32 : 16) > columns || depth - next % depth < MIXPREC_DIRECT_DEPTH_)
                    d.next = NULL;
                (rows - i > 8 ? mixprec_direct_across_16_avx512_ : mixprec_direct_across_8_avx512_)(call->type, &d);
            }
        for (i = 0; i < rows; i += 16) {
            const char *from = (const char *)(sums + i * 16);
            mixprec_transpose_avx512_(r, from, 64, 16, 64, 0);
            for (p = i; p < mixprec_min_(i + 16, rows); p++)
                _mm512_mask_storeu_epi32(t + p * ldt, mixprec_first_lanes_(d.columns), r[2 * (p - i)]);
        }
    }
}

/* Where columns lie side by side: what multiplies up to 16 rows and 32 columns. */
typedef struct mixprec_direct_along_ {
    const float *a;
    size_t width, depth;
    const char *b;
    size_t stride;     /* bytes */
    const char *ahead; /* what is prefetched, `others` + 1 of k for a line; by the second half `second` bytes on */
    size_t others, second;
    int starts;  /* from 0, not from `sums` */
    float *sums; /* of a chunk, those of the rows `group` apart */
    size_t group;
} mixprec_direct_along_;

/* 32 columns, of 16 rows one half after the other: what widens an element, on Zen 4 with the units that multiply, then
   serves 16 products, not 8 (16 or 32 rows of 16 bits take 12 to 14 % less, of e4m3 25 to 27 %). Prefetching by the
   first pass alone would make that wait for memory, and the others not: 12 to 32 packed rows of f16 take 2 to 13 %
   longer on Emerald Rapids. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_direct_along_body_avx512_(const int rows, const mixprec_dtype type,
                                                                             const mixprec_direct_along_ *d) {
    const size_t size = type == MIXPREC_F32 ? 4 : type == MIXPREC_F16 || type == MIXPREC_BF16 ? 2 : 1;
    const size_t stride = d->stride, width = d->width, group = d->group;
    const size_t others = rows < 8 ? 0 : d->others; /* with few rows memory is what takes time */
    const int vectors = rows == 16 ? 1 : 2;
    int half, i, j;
    for (half = 0; half < 2; half += vectors) {
        const float *a = d->a;
        const char *b = d->b + (size_t)half * 16 * size, *ahead = d->ahead + (size_t)half * d->second;
        float *sums = d->sums + half * 16;
        size_t depth;
        __m512 s[16][2];
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) s[i][j] =
            d->starts ? _mm512_setzero_ps() : _mm512_load_ps(sums + (size_t)i * group + (size_t)j * 16);
        for (depth = d->depth; depth; depth--, a += width, b += stride, ahead += depth & others ? 0 : stride) {
            __m512 x[2];
            MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
                if ((size_t)j * 16 * size % 64 == 0)
                    _mm_prefetch(ahead + (size_t)j * 16 * size, _MM_HINT_T1);
                x[j] = mixprec_load16_avx512_(b + (size_t)j * 16 * size, type, 0xFFFF);
            }
            MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) s[i][j] =
                _mm512_fmadd_ps(_mm512_set1_ps(a[i]), x[j], s[i][j]);
        }
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++)
            _mm512_store_ps(sums + (size_t)i * group + (size_t)j * 16, s[i][j]);
    }
}

#define MIXPREC_DIRECT_KERNEL_AVX512_(rows)                                                                            \
    MIXPREC_AVX512_ static void mixprec_direct_along_##rows##_avx512_(mixprec_dtype type,                              \
                                                                      const mixprec_direct_along_ *d) {                \
        switch (type) {                                                                                                \
        case MIXPREC_F32: mixprec_direct_along_body_avx512_(rows, MIXPREC_F32, d); break;                              \
        case MIXPREC_F16: mixprec_direct_along_body_avx512_(rows, MIXPREC_F16, d); break;                              \
        case MIXPREC_BF16: mixprec_direct_along_body_avx512_(rows, MIXPREC_BF16, d); break;                            \
        case MIXPREC_E4M3: mixprec_direct_along_body_avx512_(rows, MIXPREC_E4M3, d); break;                            \
        default: mixprec_direct_along_body_avx512_(rows, MIXPREC_E5M2, d); break;                                      \
        }                                                                                                              \
    }
MIXPREC_DIRECT_KERNEL_AVX512_(1)
MIXPREC_DIRECT_KERNEL_AVX512_(2)
MIXPREC_DIRECT_KERNEL_AVX512_(4)
MIXPREC_DIRECT_KERNEL_AVX512_(8)
MIXPREC_DIRECT_KERNEL_AVX512_(16)
#undef MIXPREC_DIRECT_KERNEL_AVX512_

MIXPREC_AVX512_ static void mixprec_direct_along_avx512_(const mixprec_direct_ *call) {
    static void (*const kernels[])(mixprec_dtype, const mixprec_direct_along_ *) = {
        mixprec_direct_along_1_avx512_, mixprec_direct_along_2_avx512_, mixprec_direct_along_4_avx512_,
        mixprec_direct_along_8_avx512_, mixprec_direct_along_16_avx512_};
    const size_t size = mixprec_size_of_(call->type), rows = call->rows, columns = call->columns, depth = call->depth;
    const size_t along = rows <= 2 ? MIXPREC_DIRECT_ALONG_ / 4 : MIXPREC_DIRECT_ALONG_;
    /* Of a panel, what stays in L1 together with as much of A: 16 rows take 5 % less than with whole chunks, 32 9 %. */
    const size_t step = call->along == 2 ? (rows > 8 ? MIXPREC_GEMM_KBLOCK / 2 : MIXPREC_GEMM_KBLOCK) : along;
    /* How many of the kernels, or halves of kernels, that read a line prefetch: a power of two. */
    const size_t passes = size == 4   ? (rows > 16 || (rows > 8 && rows <= 12) ? 2 : 1)
                          : rows > 24 ? 4
                          : rows > 8  ? 2
                                      : 1;
    float *const sums = call->scratch + along * 32; /* behind the last columns, where they are less than 32 */
    size_t chunk, end, p, i, j;
    mixprec_direct_along_ d;
    MIXPREC_ASSERT(columns <= MIXPREC_DIRECT_GROUP_(rows));
    d.others = passes - 1;
    d.width = call->width;
    d.group = MIXPREC_DIRECT_GROUP_(rows);
    for (chunk = 0; chunk < depth; chunk = end) {
        end = mixprec_min_(chunk + MIXPREC_GEMM_KBLOCK, depth);
        for (p = chunk; p < end; p += d.depth)
            for (j = 0, d.depth = mixprec_min_(step, end - p); j < columns; j += 32) {
                const size_t part = d.depth / passes * call->stride;
                mixprec_dtype type = call->type;
                size_t pass = 0, lead;
                d.starts = p == chunk;
                d.b = call->b + p * call->stride + j * size;
                d.stride = call->stride;
                d.second = size == 4 ? 64 : part;
                lead = call->along == 2 && passes == 1 ? MIXPREC_DIRECT_PANEL_LEAD_ : step * d.stride;
                if (columns - j < 32 && call->along != 2) { /* a panel has zeros beyond the last column */
                    for (i = 0; i < d.depth; i++) {
                        _mm_prefetch(d.b + (step + i) * d.stride, _MM_HINT_T1);
                        _mm_prefetch(d.b + (step + i) * d.stride + (columns - j) * size - 1, _MM_HINT_T1);
                    }
                    mixprec_direct_fill_avx512_(call->scratch, d.depth, 32, d.b, type, d.stride, d.depth, columns - j);
                    d.b = (const char *)call->scratch;
                    d.stride = 128;
                    lead = 0;
                    type = MIXPREC_F32;
                }
                for (i = 0; i<rows; i += rows - i> 12 ? 16 : 8) {
                    const size_t count = rows - i;
                    d.a = call->a + i / 16 * 16 * depth + i % 16 + p * d.width;
                    d.sums = sums + i * d.group + j;
                    d.ahead = d.b + lead + mixprec_min_(pass, passes - 1) * part;
                    kernels[count < 3 ? count - 1 : count < 5 ? 2 : count < 13 ? 3 : 4](type, &d);
                    pass += size < 4 && count > 12 ? 2 : 1;
                }
            }
        for (i = 0; i < rows; i++)
            for (j = 0; j < columns; j += 16) {
                const __mmask16 lanes = mixprec_first_lanes_(columns - j);
                __m512 sum = _mm512_load_ps(sums + i * d.group + j);
                if (chunk || !call->first)
                    sum = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, call->t + i * call->ldt + j), sum);
                _mm512_mask_storeu_ps(call->t + i * call->ldt + j, lanes, sum);
            }
    }
}

MIXPREC_AVX512_ static void mixprec_direct_avx512_(size_t rows, size_t columns, size_t depth, const float *a,
                                                   size_t width, const char *b, mixprec_dtype type, size_t stride,
                                                   int along, float *t, size_t ldt, int first, char *scratch) {
    mixprec_direct_ call;
    call.rows = rows;
    call.columns = columns;
    call.depth = depth;
    call.a = a;
    call.width = width;
    call.b = b;
    call.type = type;
    call.stride = stride;
    call.along = along;
    call.t = t;
    call.ldt = ldt;
    call.first = first;
    call.scratch = (float *)(void *)scratch;
    if (along)
        mixprec_direct_along_avx512_(&call);
    else if (rows > MIXPREC_DIRECT_THIN_ROWS_)
        mixprec_direct_across_avx512_(&call);
    else if (type == MIXPREC_F32)
        mixprec_direct_floats_avx512_(rows, columns, depth, a, width, b, stride, t, ldt, first);
    else
        mixprec_direct_narrow_avx512_(rows, columns, depth, a, width, b, type, stride, t, ldt, first);
}

/* Elements that lie side by side in src as in the panel. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_pack_along_avx512_(char *dst, size_t width, const char *src,
                                                                      mixprec_dtype type, size_t stride, size_t count,
                                                                      size_t depth, const int wide) {
    const size_t lanes = wide ? 8 : 16, words = wide ? 2 : 1, to_size = wide ? 8 : 4, size = mixprec_size_of_(type);
    const size_t whole = count / lanes * lanes; /* the vectors that are all there */
    size_t i, p;
    for (p = 0; p < depth; p++, src += stride, dst += width * to_size) {
        for (i = 0; i < whole; i += lanes)
            _mm512_storeu_ps(dst + i * to_size,
                             mixprec_load16_avx512_(src + i * size, wide ? MIXPREC_F32 : type, 0xFFFF));
        for (; i < width; i += lanes)
            _mm512_mask_storeu_ps(dst + i * to_size, mixprec_first_lanes_((width - i) * words),
                                  mixprec_load16_avx512_(src + i * size, wide ? MIXPREC_F32 : type,
                                                         mixprec_first_lanes_(count > i ? (count - i) * words : 0)));
    }
}

MIXPREC_AVX512_ static void mixprec_pack_avx512_(void *dst, size_t width, const void *src, mixprec_dtype type,
                                                 size_t ld, int along, size_t count, size_t depth, int wide) {
    const char *from = (const char *)src;
    size_t stride = ld * mixprec_size_of_(type);
    char *to = (char *)dst;
    if (!along && type == MIXPREC_F64 && !wide)
        mixprec_pack_c_(dst, width, src, type, ld, along, count, depth, wide);
    else if (!along && width == 8 && depth >= 64)
        mixprec_pack_across_avx2_(to, width, from, type, stride, count, depth);
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

/* ---- GEMM of pairs of bf16, with AVX512_BF16 ---- */

#if defined(MIXPREC_HAS_AVX512_BF16_) && !defined(MIXPREC_NO_GEMM)

/* Where both operands fit bf16 (bf16 and fp8 do), VDPBF16PS multiplies and adds two of k at once, and as it is
   mixprec_is_fused_, the sums have the bits that FMA gives them one by one: the first of each two of k is the upper
   number of a pair. It differs where there are subnormals, which it takes for 0, operands and sums alike. None come up
   where no operand is one, and the smallest biased exponents of A and B add up to MIXPREC_PAIRS_LEAST_: a number of
   exponent e is a multiple of 2^(e - 134), so that all products are multiples of 2^-126, and so are all sums of a
   chunk, before rounding and after. Hence a panel ends with its smallest exponent, and tiles for which that does not
   hold are computed from the same panels by FMA. */
#define MIXPREC_PAIRS_LEAST_ (2 * (127 + 7) - 126)
#define MIXPREC_FP8_EXPONENT_ (127 - 16) /* of the smallest number of E5M2; that of E4M3 is larger */

/* Panels hold element (i, p) at 16-bit place [(p / 2 * width + i) * 2 + 1 - p % 2], with a zero below the last of an
   odd depth. They have room for numbers of 32 bits: the last of it, unless the depth is 1, is the smallest biased
   exponent of all that is not 0, at least 0xFF where there is no such number, 0 for subnormals. */
MIXPREC_INLINE uint32_t mixprec_pairs_exponent_(const char *panel, size_t width, size_t depth) {
    uint32_t exponent;
    mixprec_copy_(&exponent, panel + (width * depth - 1) * 4, sizeof exponent);
    return exponent;
}
/* The smallest exponent of B that fits that of A, `least`; 256: none does. */
MIXPREC_INLINE uint32_t mixprec_pairs_limit_(uint32_t least) {
    return least == 0 ? 256 : least < MIXPREC_PAIRS_LEAST_ ? MIXPREC_PAIRS_LEAST_ - least : 1;
}

/* 14 x 32: see mixprec_tile_body_avx512_. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_BF16_ void
mixprec_tile_pairs_body_avx512_(const int rows, const int fit, size_t rows_there, size_t columns, size_t depth,
                                const char *a, const char *b, float *t, size_t ldt, int first) {
    const __mmask16 lanes[2] = {mixprec_first_lanes_(columns), mixprec_first_lanes_(columns > 16 ? columns - 16 : 0)};
    int i, j, k;
    for (; depth; first = 0) {
        size_t chunk = mixprec_min_(depth, MIXPREC_GEMM_KBLOCK), p;
        __m512 s[MIXPREC_TILE_ROWS_AVX512_][2];
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < 2; j++) s[i][j] =
            _mm512_setzero_ps();
        for (p = 0; p < chunk; p += 2) {
            const int32_t *y = (const int32_t *)(const void *)a;
            if (fit)
                MIXPREC_UNROLL_ for (i = 0; i < rows; i++) {
                    __m512i pair = _mm512_set1_epi32(y[i]);
                    MIXPREC_UNKNOWN_("+v", pair); /* clang 16 crashes where it sees numbers of a bf16 vector repeated */
                    MIXPREC_UNROLL_ for (j = 0; j < 2; j++) s[i][j] =
                        _mm512_dpbf16_ps(s[i][j], (__m512bh)pair, (__m512bh)_mm512_loadu_si512(b + 64 * j));
                }
            /* No more than there are: a sum of -0, of products that underflow, would become +0. */
            for (k = fit ? -1 : 1; k >= 0 && p + 1 - (size_t)k < chunk; k--) {
                __m512 x[2];
                MIXPREC_UNROLL_ for (j = 0; j < 2; j++) x[j] =
                    mixprec_brain_avx512_(_mm512_loadu_si512(b + 64 * j), (size_t)k);
                MIXPREC_UNROLL_ for (i = 0; i < rows; i++) {
                    const __m512 number = mixprec_brain_avx512_(_mm512_set1_epi32(y[i]), (size_t)k);
                    MIXPREC_UNROLL_ for (j = 0; j < 2; j++) s[i][j] = _mm512_fmadd_ps(number, x[j], s[i][j]);
                }
            }
            a += MIXPREC_TILE_ROWS_AVX512_ * 4;
            b += 128;
        }
        mixprec_put_tile_avx512_((char *)t, ldt * sizeof *t, s, rows, 2, 0, rows_there, lanes, first);
        depth -= chunk;
    }
}

MIXPREC_NOINLINE_ MIXPREC_AVX512_BF16_ void mixprec_tile_tiny_pairs_avx512_(size_t rows, size_t columns, size_t depth,
                                                                            const char *a, const char *b, float *t,
                                                                            size_t ldt, int first) {
    size_t i; /* all 14 at once would spill registers: 1024^3 19 ms so, not 31 */
    for (i = 0; i < rows; i += 7)
        mixprec_tile_pairs_body_avx512_(7, 0, rows - i, columns, depth, a + 4 * i, b, t + i * ldt, ldt, first);
}

MIXPREC_AVX512_BF16_ static void mixprec_tile_pairs_avx512_(size_t rows, size_t columns, size_t depth, const void *a,
                                                            const void *b, const void *ahead, void *t, size_t ldt,
                                                            int first, int wide) {
    const char *x = (const char *)a, *y = (const char *)b;
    (void)ahead;
    (void)wide;
    if (depth == 1 || mixprec_pairs_exponent_(y, 32, depth) <
                          mixprec_pairs_limit_(mixprec_pairs_exponent_(x, MIXPREC_TILE_ROWS_AVX512_, depth)))
        mixprec_tile_tiny_pairs_avx512_(rows, columns, depth, x, y, (float *)t, ldt, first);
    else if (rows > 8)
        mixprec_tile_pairs_body_avx512_(14, 1, rows, columns, depth, x, y, (float *)t, ldt, first);
    else if (rows > 4)
        mixprec_tile_pairs_body_avx512_(8, 1, rows, columns, depth, x, y, (float *)t, ldt, first);
    else
        mixprec_tile_pairs_body_avx512_(4, 1, rows, columns, depth, x, y, (float *)t, ldt, first);
}

/* *least = the smaller of it and one less than the codes without their signs, so that 0 counts as the largest. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_least_pairs_avx512_(__m512i *least, __m512i codes) {
    const __m512i ones = _mm512_set1_epi16(-1);
    *least = _mm512_min_epu16(*least, _mm512_add_epi16(_mm512_and_si512(codes, _mm512_set1_epi16(0x7FFF)), ones));
}

/* 32 numbers side by side as bf16; 0 for those whose bit is not set. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512i mixprec_brains_avx512_(const char *src, mixprec_dtype type,
                                                                     const __m512i table[4], __mmask32 lanes) {
    __m512i codes, low, high;
    if (type == MIXPREC_BF16)
        return _mm512_maskz_loadu_epi16(lanes, src);
    codes = _mm512_cvtepu8_epi16(_mm256_maskz_loadu_epi8(lanes, src));
    mixprec_fp8_to_bf16_avx512_(&low, &high, codes, table);
    return _mm512_or_si512(low, _mm512_slli_epi16(high, 8)); /* code 0, in the upper bytes, is 0 */
}

/* This and the next two return the least of mixprec_least_pairs_avx512_. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512i mixprec_pack_pairs_along_avx512_(uint32_t *to, size_t width,
                                                                               const char *src,
                                                                               const mixprec_dtype type,
                                                                               const __m512i table[4], size_t stride,
                                                                               size_t count, size_t depth) {
    const __m512i even = _mm512_mullo_epi32(_mm512_set1_epi32(0x00010001),
                                            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    const __m512i low_half = _mm512_add_epi16(even, _mm512_set1_epi32(32 << 16));
    const __m512i high_half = _mm512_add_epi16(low_half, _mm512_set1_epi16(16));
    const __mmask32 there = count >= 32 ? ~(__mmask32)0 : ((__mmask32)1 << count) - 1;
    const __mmask16 room = mixprec_first_lanes_(width);
    __m512i least = _mm512_set1_epi16(-1);
    size_t p;
    for (p = 0; p < depth; p += 2, src += 2 * stride, to += width) {
        const __m512i x = mixprec_brains_avx512_(src, type, table, there);
        const __m512i y =
            p + 1 < depth ? mixprec_brains_avx512_(src + stride, type, table, there) : _mm512_setzero_si512();
        if (type == MIXPREC_BF16) {
            mixprec_least_pairs_avx512_(&least, x);
            mixprec_least_pairs_avx512_(&least, y);
        }
        /* Masked stores of whole vectors are slow on Zen 4: 8 x 512 x 512 33 us with them, 28 without. */
        if (width == 32) {
            _mm512_storeu_si512(to, _mm512_permutex2var_epi16(y, low_half, x));
            _mm512_storeu_si512(to + 16, _mm512_permutex2var_epi16(y, high_half, x));
        } else
            _mm512_mask_storeu_epi32(to, room, _mm512_permutex2var_epi16(y, low_half, x));
    }
    return least;
}

/* Lines are those of the cache: see mixprec_pack_across_avx512_. Columns beyond the panel's width spill as there. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512i mixprec_pack_pairs_across_avx512_(uint32_t *to, size_t width,
                                                                                const char *src,
                                                                                const mixprec_dtype type,
                                                                                const __m512i table[4], size_t stride,
                                                                                size_t count, size_t depth) {
    const size_t size = type == MIXPREC_BF16 ? 2 : 1, row_bytes = depth * size;
    const size_t phase = stride % 64 || (uintptr_t)src % 4 ? 0 : (uintptr_t)src % 64;
    __m512i least = _mm512_set1_epi16(-1), r[32];
    size_t i, q, bytes, left;
    for (bytes = 0; bytes < row_bytes; bytes += left) {
        left = mixprec_min_(64 - (phase + bytes) % 64, row_bytes - bytes);
        mixprec_prefetch_rows_(src, bytes, row_bytes, stride, mixprec_min_(width, count), MIXPREC_PREFETCH_);
        for (i = 0; i < width; i += 16) {
            const size_t rows = mixprec_min_(16, count > i ? count - i : 0);
            mixprec_transpose_avx512_(r, src + i * stride + bytes, stride, rows, left, 0);
            for (q = 0; q < left; q += 4) {
                uint32_t *const row = to + q / size / 2 * width + i;
                __m512i pairs = r[q / 2], next;
                if (type == MIXPREC_BF16) {
                    mixprec_least_pairs_avx512_(&least, pairs);
                    _mm512_storeu_si512(row, _mm512_rol_epi32(pairs, 16));
                    continue;
                }
                mixprec_split_fp8_avx512_(&pairs, &next, pairs, MIXPREC_NONE, table, 1);
                _mm512_storeu_si512(row, pairs);
                if (left - q > 2)
                    _mm512_storeu_si512(row + width, next);
            }
        }
        to += (left / size + 1) / 2 * width;
    }
    return least;
}

/* One row, which lies as its panel does, but for the order of two. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512i mixprec_pack_pairs_row_avx512_(uint32_t *to, const char *src,
                                                                             const mixprec_dtype type,
                                                                             const __m512i table[4], size_t depth) {
    const size_t size = type == MIXPREC_BF16 ? 2 : 1;
    __m512i least = _mm512_set1_epi16(-1);
    size_t p;
    for (p = 0; p < depth; p += 32) {
        const __mmask32 there = depth - p >= 32 ? ~(__mmask32)0 : ((__mmask32)1 << (depth - p)) - 1;
        const __m512i x = mixprec_brains_avx512_(src + p * size, type, table, there);
        if (type == MIXPREC_BF16)
            mixprec_least_pairs_avx512_(&least, x);
        _mm512_mask_storeu_epi32(to + p / 2, mixprec_first_lanes_((depth - p + 1) / 2), _mm512_rol_epi32(x, 16));
    }
    return least;
}

MIXPREC_AVX512_ static void mixprec_pack_pairs_avx512_(void *dst, size_t width, const void *src, mixprec_dtype type,
                                                       size_t ld, int along, size_t count, size_t depth, int wide) {
    const size_t stride = ld * mixprec_size_of_(type);
    const char *from = (const char *)src;
    uint32_t *to = (uint32_t *)dst, exponent = MIXPREC_FP8_EXPONENT_;
    __m512i table[4], least;
    (void)wide;
    if (type == MIXPREC_BF16) {
        __m256i half;
        least = along ? mixprec_pack_pairs_along_avx512_(to, width, from, MIXPREC_BF16, NULL, stride, count, depth)
                : width == 1
                    ? mixprec_pack_pairs_row_avx512_(to, from, MIXPREC_BF16, NULL, depth)
                    : mixprec_pack_pairs_across_avx512_(to, width, from, MIXPREC_BF16, NULL, stride, count, depth);
        half = _mm256_min_epu16(_mm512_castsi512_si256(least), _mm512_extracti64x4_epi64(least, 1));
        exponent = (uint32_t)_mm_extract_epi16(
            _mm_minpos_epu16(_mm_min_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1))), 0);
        exponent = (exponent + 1) >> 7;
    } else {
        mixprec_fp8_registers_avx512_(table, mixprec_fp8_table_(type));
        if (along)
            mixprec_pack_pairs_along_avx512_(to, width, from, MIXPREC_NONE, table, stride, count, depth);
        else if (width == 1)
            mixprec_pack_pairs_row_avx512_(to, from, MIXPREC_NONE, table, depth);
        else
            mixprec_pack_pairs_across_avx512_(to, width, from, MIXPREC_NONE, table, stride, count, depth);
    }
    if (depth > 1)
        to[width * depth - 1] = exponent;
}

/* ---- few rows of such pairs ---- */

/* 32 columns, some of k at a time, become pairs in a buffer in L1, which then serves up to 8 rows of A in turn, 16 sums
   under way. Where columns lie side by side all those of a call take turns, for B to be read along its rows. */
#define MIXPREC_PAIRS_WIDTH_ 8
#define MIXPREC_PAIRS_DEPTH_ 128
/* Where columns lie side by side; 8 x 4096 x 4096 of bf16 takes 2.3 ms on Zen 4, with 32 2.9, with 128 2.5. */
#define MIXPREC_PAIRS_ALONG_ 64
#define MIXPREC_PAIRS_PANEL_LEAD_ 32768 /* bytes to prefetch ahead in a packed panel: 1.8 ms, not 2.8 with 6144 */

/* A line of each of 16 columns of bf16 as pairs, the first of two above, in r[0], r[2] ... Are all that are not 0 at
   least `limit`? */
MIXPREC_NOINLINE_ MIXPREC_AVX512_ int mixprec_transpose_pairs_avx512_(__m512i *r, const char *src, size_t stride,
                                                                      size_t fours, size_t rows, size_t bytes,
                                                                      uint32_t limit) {
    __m512i least = _mm512_set1_epi16(-1);
    int q;
    mixprec_transpose_body_avx512_(r, src, src, stride, fours, rows, bytes, 0, MIXPREC_SWAPPED_, 0);
    MIXPREC_UNROLL_ for (q = 0; q < 16; q++) mixprec_least_pairs_avx512_(&least, r[2 * q]);
    return !_mm512_cmplt_epu16_mask(least, _mm512_set1_epi16((short)((limit << 7) - 1)));
}

/* A call: see `direct` of mixprec_kernels_. */
typedef struct mixprec_pairs_ {
    size_t rows, depth, width, ld, ldt; /* width: of a panel of A, perhaps more than there are rows */
    mixprec_dtype type;
    int along;
    const float *a;        /* panels of pairs */
    uint32_t limit;        /* mixprec_pairs_limit_ of them all */
    const uint64_t *table; /* of fp8; NULL: bf16 */
    __m512 *sums;          /* of a chunk: for 32 columns after another two vectors of each row */
} mixprec_pairs_;

/* `depth` of up to 32 columns as pairs, two vectors for each two of k; an end of a line may spill. Do they fit A? */
MIXPREC_AVX512_ static int mixprec_pairs_fill_avx512_(const mixprec_pairs_ *d, __m512i *pairs, const char *b,
                                                      size_t columns, size_t depth) {
    const size_t bytes = d->table ? depth : 2 * depth, stride = d->table ? d->ld : 2 * d->ld;
    const size_t phase = stride % 64 || (uintptr_t)b % 4 ? 0 : (uintptr_t)b % 64;
    int fit = !d->table || d->limit <= MIXPREC_FP8_EXPONENT_, q;
    size_t at, left;
    if (d->along) {
        mixprec_pack_pairs_avx512_(pairs, 32, b, d->type, d->ld, 1, columns, depth, 0);
        return depth > 1 && mixprec_pairs_exponent_((const char *)pairs, 32, depth) >= d->limit;
    }
    for (at = 0; at < bytes; at += left) {
        __m512i words[32], table[4];
        left = mixprec_min_(64 - (phase + at) % 64, bytes - at);
        for (q = 0; q < 2; q++) {
            const size_t there = columns > 16 * (size_t)q ? mixprec_min_(16, columns - 16 * (size_t)q) : 0;
            const char *from = b + at + (there ? 16 * (size_t)q * stride : 0);
            if (d->table)
                mixprec_transpose_avx512_(words + q, from, stride, there, left, 0);
            else
                fit &= mixprec_transpose_pairs_avx512_(pairs + at / 2 + (size_t)q, from, stride, 4 * stride, there,
                                                       left, d->limit);
        }
        if (d->table) {
            mixprec_fp8_registers_avx512_(table, d->table);
            mixprec_direct_widen_body_avx512_(pairs + at, words, 32, MIXPREC_NONE, table, 1);
        }
    }
    return fit;
}

/* What to prefetch while pairs are multiplied: for each two of k a line, and one `second` bytes behind it. */
typedef struct mixprec_pairs_ahead_ {
    uintptr_t at;
    size_t second, steps[2]; /* 0: no second; steps to the next, in turn */
} mixprec_pairs_ahead_;

/* For what is multiplied after column j and element p of k, at b, of `depth`, `run` of which go at a time. */
MIXPREC_INLINE mixprec_pairs_ahead_ mixprec_pairs_ahead_of_(const mixprec_pairs_ *d, const char *b, size_t p,
                                                            size_t depth, size_t run, size_t j) {
    const size_t size = d->table ? 1 : 2, stride = d->ld * size, lead = MIXPREC_DIRECT_LEAD_;
    mixprec_pairs_ahead_ ahead;
    ahead.second = d->table ? 0 : 128;
    ahead.steps[0] = 64;
    ahead.steps[1] = stride - 64;
    if (d->along == 1) { /* lines of fp8 hold two such blocks of columns: one has the even rows, one the odd */
        ahead.at = (uintptr_t)b + (d->table ? run + j / 32 % 2 : run) * stride;
        ahead.second = d->table ? 0 : stride;
        ahead.steps[0] = ahead.steps[1] = 2 * stride;
    } else if (d->along) {
        ahead.at = (uintptr_t)b + MIXPREC_PAIRS_PANEL_LEAD_;
        ahead.steps[1] = 256 - 64;
    } else /* past the end of the rows, the next columns, perhaps beyond the last */
        ahead.at = (uintptr_t)b + lead + (p * size + lead < depth * size ? 0 : 32 * stride - depth * size);
    return ahead;
}

/* sums = or, unless it `starts`, += the products with rows of a panel of A, `depth` of k; by FMA where they do not
   fit. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_BF16_ void
mixprec_pairs_multiply_body_avx512_(const int rows, const int fit, size_t depth, const char *panel, size_t width,
                                    const __m512i *pairs, __m512 *sums, int starts, const mixprec_pairs_ahead_ *ahead) {
    const int32_t *a = (const int32_t *)(const void *)panel;
    uintptr_t at = ahead ? ahead->at : 0;
    __m512 s[MIXPREC_PAIRS_WIDTH_][2];
    size_t p;
    int i, j, k;
    MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < 2; j++) s[i][j] =
        starts ? _mm512_setzero_ps() : sums[2 * i + j];
    for (p = 0; p < depth; p += 2, a += width, pairs += 2) {
        if (ahead) {
            _mm_prefetch((const char *)at, _MM_HINT_T1);
            if (ahead->second)
                _mm_prefetch((const char *)(at + ahead->second), _MM_HINT_T1);
            at += ahead->steps[p / 2 % 2];
        }
        if (fit)
            MIXPREC_UNROLL_ for (i = 0; i < rows; i++) {
                __m512i pair = _mm512_set1_epi32(a[i]);
                MIXPREC_UNKNOWN_("+v", pair); /* as above */
                MIXPREC_UNROLL_ for (j = 0; j < 2; j++) s[i][j] =
                    _mm512_dpbf16_ps(s[i][j], (__m512bh)pair, (__m512bh)pairs[j]);
            }
        for (k = fit ? -1 : 1; k >= 0 && p + 1 - (size_t)k < depth; k--)
            MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < 2; j++) s[i][j] =
                _mm512_fmadd_ps(mixprec_brain_avx512_(_mm512_set1_epi32(a[i]), (size_t)k),
                                mixprec_brain_avx512_(pairs[j], (size_t)k), s[i][j]);
    }
    MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < 2; j++) sums[2 * i + j] = s[i][j];
}
typedef void (*mixprec_pairs_multiply_avx512_)(size_t depth, const char *panel, size_t width, const __m512i *pairs,
                                               __m512 *sums, int starts, const mixprec_pairs_ahead_ *ahead);
#define MIXPREC_MULTIPLY_(rows, fit)                                                                                   \
    MIXPREC_NOINLINE_ MIXPREC_AVX512_BF16_ void mixprec_pairs_multiply_##rows##_##fit##_avx512_(                       \
        size_t depth, const char *panel, size_t width, const __m512i *pairs, __m512 *sums, int starts,                 \
        const mixprec_pairs_ahead_ *ahead) {                                                                           \
        mixprec_pairs_multiply_body_avx512_(rows, fit, depth, panel, width, pairs, sums, starts, ahead);               \
    }
#define MIXPREC_MULTIPLIES_(rows) MIXPREC_MULTIPLY_(rows, 0) MIXPREC_MULTIPLY_(rows, 1)
MIXPREC_MULTIPLIES_(1)
MIXPREC_MULTIPLIES_(2)
MIXPREC_MULTIPLIES_(4)
MIXPREC_MULTIPLIES_(8)
#undef MIXPREC_MULTIPLIES_
#undef MIXPREC_MULTIPLY_

/* `columns` of B, which begin at b, times the rows of A, `depth` of k from `from` on, where a chunk begins. */
MIXPREC_NOINLINE_ MIXPREC_AVX512_ void mixprec_pairs_some_avx512_(const mixprec_pairs_ *d, size_t columns, size_t from,
                                                                  size_t depth, const char *b, float *t, int first) {
#define MIXPREC_MULTIPLIES_(rows)                                                                                      \
    { mixprec_pairs_multiply_##rows##_0_avx512_, mixprec_pairs_multiply_##rows##_1_avx512_ }
    static const mixprec_pairs_multiply_avx512_ kernels[4][2] = {MIXPREC_MULTIPLIES_(1), MIXPREC_MULTIPLIES_(2),
                                                                 MIXPREC_MULTIPLIES_(4), MIXPREC_MULTIPLIES_(8)};
#undef MIXPREC_MULTIPLIES_
    const size_t size = d->table ? 1 : 2, stride = d->ld * size;
    const size_t k_step = d->along ? stride : size, column_step = d->along ? size : stride;
    const size_t group = d->along ? columns : 32, run = d->along == 1 ? MIXPREC_PAIRS_ALONG_ : MIXPREC_PAIRS_DEPTH_;
    const size_t line = d->along || stride % 64 || (uintptr_t)b % 4 ? 1 : 64 / size; /* of k, where lines matter */
    const size_t phase = (uintptr_t)b % 64 / size;
    /* Sums of 32 columns, of as many rows as the kernels have: a part of a larger product may have less than panels. */
    const size_t block = 2 * (d->rows <= 2 ? d->rows : d->rows <= 4 ? 4 : mixprec_round_up_(d->rows, 8));
    __m512i pairs[MIXPREC_PAIRS_DEPTH_ * 32 / 16];
    char fits[MIXPREC_DIRECT_GROUP_(1) / 32]; /* the sums of a chunk, as far as it has come */
    size_t i, j, p, stop, part, end, there;
    for (; columns; columns -= mixprec_min_(group, columns), b += group * column_step, t += group)
        for (p = 0; p < depth; p = stop) {
            stop = mixprec_min_(p + run - (phase + p) % line, depth);
            for (j = 0; j < mixprec_min_(group, columns); j += 32) {
                const char *from_b = b + p * k_step + j * column_step;
                char *const fit = fits + j / 32;
                const mixprec_pairs_ahead_ ahead = mixprec_pairs_ahead_of_(d, from_b, p, depth, run, j);
                int all;
                there = mixprec_min_(32, columns - j);
                all = mixprec_pairs_fill_avx512_(d, pairs, from_b, there, stop - p);
                for (part = p; part < stop; part = end) { /* the end of a chunk may lie within */
                    const int starts = part % MIXPREC_GEMM_KBLOCK == 0;
                    /* Once some did not fit, the sums of the chunk may be subnormal. */
                    *fit = (char)(all && (starts || *fit));
                    end = mixprec_min_(stop, part - part % MIXPREC_GEMM_KBLOCK + MIXPREC_GEMM_KBLOCK);
                    for (i = 0; i < d->rows; i += MIXPREC_PAIRS_WIDTH_) {
                        const size_t rows = mixprec_min_(d->rows - i, MIXPREC_PAIRS_WIDTH_);
                        const char *panel = (const char *)(d->a + i * d->depth + (from + part) / 2 * d->width);
                        const int kind = rows == 1 ? 0 : rows == 2 ? 1 : rows <= 4 ? 2 : 3;
                        __m512 *const sums = d->sums + j / 32 * block + 2 * i;
                        kernels[kind][*fit != 0](end - part, panel, d->width, pairs + (part - p), sums, starts,
                                                 i || part > p ? NULL : &ahead);
                        if (end % MIXPREC_GEMM_KBLOCK == 0 || end == depth)
                            mixprec_direct_thin_put_avx512_(t + i * d->ldt + j, d->ldt, sums, rows, there, 2,
                                                            first && end <= MIXPREC_GEMM_KBLOCK);
                    }
                }
            }
        }
}

/* Up to 4 rows, four chunks of k at once: see mixprec_direct_strip_body_avx512_. `a` are pairs of A, four words for the
   chunks of the first row, four of the second ... Columns of which some do not fit are computed again. What comes next
   is requested between the products; where these are too quickly done for so many requests, after a transposition: 2 x
   16384 x 4096 of bf16 takes 6.7 ms so on Zen 4, 9.2 the other way, but with 4 rows 6.9 and 5.9. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_BF16_ void
mixprec_pairs_strip_body_avx512_(const int rows, const int fp8, const mixprec_pairs_ *d, size_t columns, size_t k_from,
                                 const int32_t *a, const char *b, float *t, int first) {
    const size_t size = fp8 ? 1 : 2, chunk = MIXPREC_GEMM_KBLOCK * size, row_bytes = 4 * chunk, stride = d->ld * size;
    const size_t phase = (uintptr_t)b % 4 ? 0 : (uintptr_t)b % 64;
    const int burst = !fp8 && rows < 4;
    __m512i words[64], wide[128];
    int i, j;
    for (; columns; columns -= 16, b += 16 * stride, t += 16) {
        const int32_t *from = a;
        uintptr_t ahead = (uintptr_t)b + 16 * stride - phase, row_end = ahead + row_bytes;
        __m512 s[4][4];
        size_t at, end;
        int fit = 1;
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < 4; j++) s[i][j] =
            _mm512_setzero_ps();
        for (at = 0; at < chunk; at = end) {
            /* To the end of a line of the cache, among 64 bytes of the chunk. */
            const size_t from_64 = mixprec_min_(at, chunk - 64);
            const __m512i *word = (fp8 ? wide : words) + (at - from_64) / size;
            end = mixprec_min_(at + 64 - (phase + at) % 64, chunk);
            for (j = 0; j < 4; j++) { /* columns j, j + 4, j + 8, j + 12 */
                __m512i *to = words + j / 2 * 32 + j % 2;
                const char *x = b + from_64 + (size_t)j * stride;
                if (fp8)
                    mixprec_transpose_fours_avx512_(to, x, chunk, 4 * stride, 0);
                else
                    fit &= mixprec_transpose_pairs_avx512_(to, x, chunk, 4 * stride, 16, 64, d->limit);
                if (burst)
                    mixprec_strip_ahead_(&ahead, &row_end, phase, stride, row_bytes, 16);
            }
            if (fp8) {
                __m512i table[4];
                mixprec_fp8_registers_avx512_(table, d->table);
                mixprec_direct_widen_body_avx512_(wide, words, 64, MIXPREC_NONE, table, 1);
            }
            for (; at < end; at += 2 * size, word += 2) {
                if (!burst)
                    mixprec_strip_ahead_(&ahead, &row_end, phase, stride, row_bytes, fp8 ? 2 : 4);
                MIXPREC_UNROLL_ for (i = 0; i < rows; i++, from += 4) {
                    const __m512i y = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)from));
                    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) s[i][j] =
                        _mm512_dpbf16_ps(s[i][j], (__m512bh)y, (__m512bh)word[j / 2 * (fp8 ? 64 : 32) + j % 2]);
                }
            }
        }
        if (fit)
            for (i = 0; i < rows && (size_t)i < d->rows; i++)
                mixprec_direct_strip_put_avx512_(t + (size_t)i * d->ldt, s[i], first);
        else
            mixprec_pairs_some_avx512_(d, 16, k_from, MIXPREC_DIRECT_STRIP_, b, t, first);
    }
}
#define MIXPREC_STRIP_OF_(rows, name, fp8)                                                                             \
    MIXPREC_NOINLINE_ MIXPREC_AVX512_BF16_ void mixprec_pairs_strip_##rows##_##name##_avx512_(                         \
        const mixprec_pairs_ *d, size_t columns, size_t k_from, const int32_t *a, const char *b, float *t,             \
        int first) {                                                                                                   \
        mixprec_pairs_strip_body_avx512_(rows, fp8, d, columns, k_from, a, b, t, first);                               \
    }
MIXPREC_STRIP_OF_(2, bf16, 0)
MIXPREC_STRIP_OF_(4, bf16, 0)
MIXPREC_STRIP_OF_(1, fp8, 1)
MIXPREC_STRIP_OF_(2, fp8, 1)
MIXPREC_STRIP_OF_(4, fp8, 1)
#undef MIXPREC_STRIP_OF_

MIXPREC_NOINLINE_ MIXPREC_AVX512_ void mixprec_pairs_strips_avx512_(const mixprec_pairs_ *d, size_t columns,
                                                                    size_t depth, const char *b, float *t, int first) {
    int32_t strip[MIXPREC_DIRECT_STRIP_ / 2 * 4], *to;
    size_t from, p, c, i;
    for (from = 0; from < depth; from += MIXPREC_DIRECT_STRIP_) {
        const int32_t *words = (const int32_t *)(const void *)(d->a + from / 2 * d->width);
        for (to = strip, p = 0; p < MIXPREC_GEMM_KBLOCK / 2; p++, words += d->width)
            for (i = 0; i < d->width; i++)
                for (c = 0; c < 4; c++)
                    *to++ = words[c * (MIXPREC_GEMM_KBLOCK / 2) * d->width + i];
        (d->table        ? d->width == 1   ? mixprec_pairs_strip_1_fp8_avx512_
                           : d->width == 2 ? mixprec_pairs_strip_2_fp8_avx512_
                                           : mixprec_pairs_strip_4_fp8_avx512_
         : d->width == 2 ? mixprec_pairs_strip_2_bf16_avx512_
                         : mixprec_pairs_strip_4_bf16_avx512_)(d, columns, from, strip, b + from * (d->table ? 1 : 2),
                                                               t, first && from == 0);
    }
}

MIXPREC_AVX512_ static void mixprec_direct_pairs_avx512_(size_t rows, size_t columns, size_t depth, const float *a,
                                                         size_t width, const char *b, mixprec_dtype type, size_t stride,
                                                         int along, float *t, size_t ldt, int first, char *scratch) {
    const size_t size = mixprec_size_of_(type);
    size_t strip_columns = 0, strip_depth = 0, i;
    uint32_t least = depth == 1 ? 0 : 0xFF;
    mixprec_pairs_ d;
    for (i = 0; i < rows && depth > 1; i += MIXPREC_PAIRS_WIDTH_) {
        const uint32_t exponent = mixprec_pairs_exponent_((const char *)(a + i * depth), width, depth);
        least = exponent < least ? exponent : least;
    }
    d.rows = rows;
    d.depth = depth;
    d.a = a;
    d.width = width;
    d.limit = mixprec_pairs_limit_(least);
    d.table = mixprec_fp8_table_(type);
    d.type = type;
    d.ld = stride / size;
    d.along = along;
    d.ldt = ldt;
    d.sums = (__m512 *)(void *)scratch;
    /* With other strides that takes as long or longer, and one row of bf16 takes longer than by FMA. */
    if (width <= 4 && !along && stride % 2048 == 0 &&
        (d.table ? d.limit <= MIXPREC_FP8_EXPONENT_ : rows > 1 && d.limit < 256)) {
        strip_columns = columns - columns % 16;
        strip_depth = depth - depth % MIXPREC_DIRECT_STRIP_;
    }
    if (strip_columns && strip_depth)
        mixprec_pairs_strips_avx512_(&d, strip_columns, strip_depth, b, t, first);
    else
        strip_columns = 0;
    if (strip_columns && strip_depth < depth)
        mixprec_pairs_some_avx512_(&d, strip_columns, strip_depth, depth - strip_depth, b + strip_depth * size, t, 0);
    if (strip_columns < columns)
        mixprec_pairs_some_avx512_(&d, columns - strip_columns, 0, depth, b + strip_columns * stride, t + strip_columns,
                                   first);
}
#endif

/* ---- GEMM of bf16 with AMX ---- */

#if defined(MIXPREC_HAS_AMX_)
/* TDPBF16PS multiplies two tiles, 16 rows of 32 of k by 16 columns of as many, in 16 cycles: 16 times as many products
   as FMA. Sums are in tiles 0 to 3, A in 4 and 5, B in 6 and 7. Panels are of such tiles, 16 lines of 64 bytes: a line
   of A is 32 of k of a row, one of B are two of k of 16 columns. For each 32 of k, the last filled up with zeros, there
   are two tiles, for 32 rows or columns. */
#define MIXPREC_TILE_ROWS_AMX_ 32
#define MIXPREC_TILE_COLUMNS_AMX_ 32
#define MIXPREC_TILE_DEPTH_AMX_ 32
#define MIXPREC_TILE_BYTES_AMX_ 1024
#define MIXPREC_PREFETCH_AMX_ 256 /* bytes ahead in rows of more than a chunk; shorter ones are slower with it */

static void mixprec_begin_amx_(void) {
    /* Palette 1: 8 tiles of 16 rows of 64 bytes. Intel's Software Developer's Manual, volume 1, "Programming with Intel
       Advanced Matrix Extensions". */
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
    __asm__ __volatile__("ldtilecfg %0" : : "m"(config));
}
static void mixprec_end_amx_(void) {
    __asm__ __volatile__("tilerelease" : :);
}

/* `from` a panel; from one that is not used again soon, "t1". */
#define MIXPREC_LOAD_TILE_(tile, from, again)                                                                          \
    __asm__ __volatile__("{tileloadd" again " (%0,%1,1), %%tmm" #tile "|tileloadd" again " tmm" #tile ", [%0+%1*1]}"   \
                         :                                                                                             \
                         : "r"(from), "r"((size_t)64)                                                                  \
                         : "memory")
#define MIXPREC_STORE_TILE_(tile, to, stride)                                                                          \
    __asm__ __volatile__("{tilestored %%tmm" #tile ", (%0,%1,1)|tilestored [%0+%1*1], tmm" #tile "}"                   \
                         :                                                                                             \
                         : "r"(to), "r"(stride)                                                                        \
                         : "memory")
#define MIXPREC_MULTIPLY_TILES_(sums, a, b)                                                                            \
    __asm__ __volatile__("{tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sums "|tdpbf16ps tmm" #sums ", tmm" #a          \
                         ", tmm" #b "}"                                                                                \
                         :                                                                                             \
                         :)
#define MIXPREC_CLEAR_TILE_(tile) __asm__ __volatile__("{tilezero %%tmm" #tile "|tilezero tmm" #tile "}" : :)

/* A panel of A, 32 KB of a chunk of k, is to stay in the L1 cache while those of B go by: without the hint they would
   drive it out, and the products of tiles take 2.2 TFLOP/s from L2, not 2.8 (a Xeon). */
MIXPREC_AVX512_ static void mixprec_tile_amx_(size_t rows, size_t columns, size_t depth, const void *a, const void *b,
                                              const void *ahead, void *t, size_t ldt, int first, int wide) {
    const __mmask16 lanes[2] = {mixprec_first_lanes_(columns), mixprec_first_lanes_(columns > 16 ? columns - 16 : 0)};
    const int two_rows = rows > 16, two_columns = columns > 16;
    const size_t tile = MIXPREC_TILE_BYTES_AMX_;
    const char *x = (const char *)a, *y = (const char *)b;
    float *to = (float *)t;
    size_t chunk, p, i;
    (void)ahead;
    (void)wide;
    for (; depth; depth -= chunk, first = 0) {
        const int whole = first && rows == 32 && columns == 32;
        float sums[32 * 32];
        float *const put = whole ? to : sums;
        const size_t stride = whole ? ldt * 4 : 128;
        chunk = mixprec_min_(depth, MIXPREC_GEMM_KBLOCK);
        MIXPREC_CLEAR_TILE_(0);
        MIXPREC_CLEAR_TILE_(1);
        MIXPREC_CLEAR_TILE_(2);
        MIXPREC_CLEAR_TILE_(3);
        for (p = 0; p < chunk; p += MIXPREC_TILE_DEPTH_AMX_, x += 2 * tile, y += 2 * tile) {
            MIXPREC_LOAD_TILE_(4, x, "");
            MIXPREC_LOAD_TILE_(6, y, "t1");
            MIXPREC_MULTIPLY_TILES_(0, 4, 6);
            if (two_columns) {
                MIXPREC_LOAD_TILE_(7, y + tile, "t1");
                MIXPREC_MULTIPLY_TILES_(1, 4, 7);
            }
            if (two_rows) {
                MIXPREC_LOAD_TILE_(5, x + tile, "");
                MIXPREC_MULTIPLY_TILES_(2, 5, 6);
                if (two_columns)
                    MIXPREC_MULTIPLY_TILES_(3, 5, 7);
            }
        }
        MIXPREC_STORE_TILE_(0, put, stride);
        MIXPREC_STORE_TILE_(1, put + 16, stride);
        MIXPREC_STORE_TILE_(2, (char *)put + 16 * stride, stride);
        MIXPREC_STORE_TILE_(3, (char *)put + 16 * stride + 64, stride);
        for (i = 0; i < rows && !whole; i++) {
            float *row = to + i * ldt;
            int k;
            MIXPREC_UNROLL_ for (k = 0; k < 2; k++) {
                __m512 sum = _mm512_loadu_ps(sums + 32 * i + 16 * k);
                if (!first)
                    sum = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes[k], row + 16 * k), sum);
                _mm512_mask_storeu_ps(row + 16 * k, lanes[k], sum);
            }
        }
    }
}

/* A panel, 32 of k at a time. Lines of 32 of k of one row of op(X) are A's order, those of two of k B's: what lies in
   memory the other way is transposed, in words of two of k. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ void mixprec_pack_body_amx_(char *dst, const int of_b, const char *src,
                                                                  const mixprec_dtype type, const __m512i table[4],
                                                                  size_t stride, int along, size_t count,
                                                                  size_t depth) {
    const __m512i even = _mm512_mullo_epi32(_mm512_set1_epi32(0x00010001),
                                            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    const __m512i low_half = _mm512_add_epi16(even, _mm512_set1_epi32(32 << 16));
    const __m512i high_half = _mm512_add_epi16(low_half, _mm512_set1_epi16(16));
    const size_t size = type == MIXPREC_BF16 ? 2 : 1, tile = MIXPREC_TILE_BYTES_AMX_;
    size_t p, q, k;
    for (p = 0; p < depth; p += MIXPREC_TILE_DEPTH_AMX_, dst += 2 * tile) {
        const size_t deep = mixprec_min_(MIXPREC_TILE_DEPTH_AMX_, depth - p);
        const size_t lines = along ? deep : count, length = along ? count : deep;
        const __mmask32 lanes = length == 32 ? ~(__mmask32)0 : ((__mmask32)1 << length) - 1;
        const char *const from = along ? src + p * stride : src + p * size;
        char turned[2 * MIXPREC_TILE_BYTES_AMX_];
        char *put = of_b == along ? dst : turned;
        if (!along && depth > MIXPREC_GEMM_KBLOCK && p * size % 64 == 0)
            mixprec_prefetch_rows_(src, p * size, depth * size, stride, count, MIXPREC_PREFETCH_AMX_);
        for (q = 0; q < 32; q += 2) {
            const __m512i x =
                q < lines ? mixprec_brains_avx512_(from + q * stride, type, table, lanes) : _mm512_setzero_si512();
            const __m512i y = q + 1 < lines ? mixprec_brains_avx512_(from + (q + 1) * stride, type, table, lanes)
                                            : _mm512_setzero_si512();
            _mm512_storeu_si512(put + (along ? 32 : 64) * q, along ? _mm512_permutex2var_epi16(x, low_half, y) : x);
            _mm512_storeu_si512(put + (along ? 32 * q + tile : 64 * (q + 1)),
                                along ? _mm512_permutex2var_epi16(x, high_half, y) : y);
        }
        for (k = 0; k < 2 && put == turned; k++) {
            __m512i r[32];
            mixprec_transpose_avx512_(r, turned + k * tile, 64, 16, 64, 0);
            for (q = 0; q < 16; q++)
                _mm512_storeu_si512(dst + k * tile + 64 * q, r[2 * q]);
        }
    }
}

MIXPREC_NOINLINE_ MIXPREC_AVX512_ void mixprec_pack_amx_(void *dst, int of_b, const void *src, mixprec_dtype type,
                                                         size_t ld, int along, size_t count, size_t depth) {
    const size_t stride = ld * mixprec_size_of_(type);
    if (type == MIXPREC_BF16)
        mixprec_pack_body_amx_((char *)dst, of_b, (const char *)src, MIXPREC_BF16, NULL, stride, along, count, depth);
    else {
        __m512i table[4];
        mixprec_fp8_registers_avx512_(table, mixprec_fp8_table_(type));
        mixprec_pack_body_amx_((char *)dst, of_b, (const char *)src, MIXPREC_NONE, table, stride, along, count, depth);
    }
}
static void mixprec_pack_a_amx_(void *dst, size_t width, const void *src, mixprec_dtype type, size_t ld, int along,
                                size_t count, size_t depth, int wide) {
    (void)width;
    (void)wide;
    mixprec_pack_amx_(dst, 0, src, type, ld, along, count, depth);
}
static void mixprec_pack_b_amx_(void *dst, size_t width, const void *src, mixprec_dtype type, size_t ld, int along,
                                size_t count, size_t depth, int wide) {
    (void)width;
    (void)wide;
    mixprec_pack_amx_(dst, 1, src, type, ld, along, count, depth);
}
#endif
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

/* 4 elements from p as fp32. A NaN may stay signalling. */
MIXPREC_FORCE_INLINE_ float32x4_t mixprec_load4_neon_(const void *p, mixprec_dtype type) {
    uint16x8_t half;
    uint32_t codes;
    switch (type) {
    case MIXPREC_F64:
        return vcvt_high_f32_f64(vcvt_f32_f64(vld1q_f64((const double *)p)), vld1q_f64((const double *)p + 2));
    case MIXPREC_F16: return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t *)p)));
    case MIXPREC_BF16: return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16((const uint16_t *)p), 16));
    case MIXPREC_E4M3:
        mixprec_copy_(&codes, p, 4);
        half = mixprec_e4m3_to_half_neon_(vreinterpret_u8_u32(vdup_n_u32(codes)));
        return vmulq_n_f32(vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(half))), 256.0f);
    case MIXPREC_E5M2:
        mixprec_copy_(&codes, p, 4);
        half = vshll_n_u8(vreinterpret_u8_u32(vdup_n_u32(codes)), 8);
        return vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(half)));
    default: break;
    }
    return vld1q_f32((const float *)p);
}

/* 4 elements, as mixprec_load8_more_avx2_ has them. */
MIXPREC_FORCE_INLINE_ float32x4_t mixprec_load4_more_neon_(uint16x4_t half, mixprec_dtype type) {
    const uint32x4_t code = vmovl_u16(half), magnitude = vandq_u32(code, vdupq_n_u32(0x7F));
    if (type == MIXPREC_E8M0) {
        const uint32x4_t nan = vceqq_u32(code, vdupq_n_u32(0xFF)), quiet = vandq_u32(nan, vdupq_n_u32(0x400000));
        const uint32x4_t power = vmaxq_u32(vshlq_n_u32(code, 23), vdupq_n_u32(0x400000));
        return vreinterpretq_f32_u32(vorrq_u32(power, quiet));
    } else {
        const uint32x4_t subnormal = vreinterpretq_u32_f32(vcvtq_n_f32_u32(magnitude, 17));
        const uint32x4_t normal = vaddq_u32(vshlq_n_u32(magnitude, 21), vdupq_n_u32((127 - 16) << 23));
        const uint32x4_t sign = vshlq_n_u32(vsubq_u32(code, magnitude), 24);
        const uint32x4_t x = vorrq_u32(vbslq_u32(vcltq_u32(magnitude, vdupq_n_u32(4)), subnormal, normal), sign);
        const uint32x4_t nan = vceqq_u32(code, vdupq_n_u32(0x80));
        return vreinterpretq_f32_u32(vbslq_u32(nan, vdupq_n_u32(0x7FC00000), x));
    }
}

/* As mixprec_load_more_avx2_. */
static void mixprec_load_more_neon_(float *dst, const void *src, mixprec_dtype type, size_t n) {
    const mixprec_layout_ *from = mixprec_layout_of_(type);
    uint16x8_t sign_code, max_code, fnuz;
    int16x8_t shift, sign_shift;
    float scale;
    size_t i;
    if (type == MIXPREC_I8) {
        for (i = 0; i < n; i += 8) {
            const int16x8_t x = vmovl_s8(vld1_s8((const int8_t *)src + i));
            vst1q_f32(dst + i, vcvtq_f32_s32(vmovl_s16(vget_low_s16(x))));
            vst1q_f32(dst + i + 4, vcvtq_f32_s32(vmovl_high_s16(x)));
        }
        return;
    }
    if (type == MIXPREC_E8M0 || type == MIXPREC_E5M2FNUZ) {
        for (i = 0; i < n; i += 8) {
            const uint16x8_t code = vmovl_u8(vld1_u8((const uint8_t *)src + i));
            vst1q_f32(dst + i, mixprec_load4_more_neon_(vget_low_u16(code), type));
            vst1q_f32(dst + i + 4, mixprec_load4_more_neon_(vget_high_u16(code), type));
        }
        return;
    }
    sign_code = vdupq_n_u16((uint16_t)from->sign_code);
    max_code = vdupq_n_u16((uint16_t)from->max_code);
    fnuz = vdupq_n_u16(from->special == MIXPREC_FNUZ_ ? 0xFFFF : 0);
    shift = vdupq_n_s16((int16_t)(10 - from->mantissa_bits));
    sign_shift = vdupq_n_s16(type == MIXPREC_E2M1 ? 12 : type == MIXPREC_E2M3 || type == MIXPREC_E3M2 ? 10 : 8);
    scale = mixprec_f32_from_bits_((uint32_t)(127 + 15 - from->bias) << 23);
    for (i = 0; i < n; i += 8) {
        uint16x8_t code, magnitude, half, nan;
        if (type == MIXPREC_E2M1) {
            uint32_t pairs;
            uint8x8_t bytes;
            mixprec_copy_(&pairs, (const uint8_t *)src + i / 2, 4);
            bytes = vreinterpret_u8_u32(vdup_n_u32(pairs));
            code = vmovl_u8(vzip1_u8(vand_u8(bytes, vdup_n_u8(0xF)), vshr_n_u8(bytes, 4)));
        } else
            code = vmovl_u8(vld1_u8((const uint8_t *)src + i));
        magnitude = vandq_u16(code, vsubq_u16(sign_code, vdupq_n_u16(1)));
        half = vorrq_u16(vshlq_u16(magnitude, shift), vshlq_u16(vandq_u16(code, sign_code), sign_shift));
        half = vorrq_u16(half, vandq_u16(vcgtq_u16(magnitude, max_code), vdupq_n_u16(0x7C00)));
        nan = vandq_u16(vceqq_u16(code, sign_code), fnuz);
        mixprec_half_to_f32_neon_(dst + i, vbslq_u16(nan, vdupq_n_u16(0x7E00), half), scale);
    }
}

static void mixprec_load_neon_(float *dst, const void *src, mixprec_dtype type, size_t n, int around) {
    size_t i;
    (void)around;
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
    default: mixprec_load_more_neon_(dst, src, type, n); break;
    }
}

/* FCVTXN rounds to odd. */
static void mixprec_load_odd_neon_(float *dst, const double *src, size_t n) {
    size_t i;
    for (i = 0; i < n; i += 4)
        vst1q_f32(dst + i, vcvtx_high_f32_f64(vcvtx_f32_f64(vld1q_f64(src + i)), vld1q_f64(src + i + 2)));
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

/* fp8 to nearest even, in the low byte of each lane, from magnitudes that do not go beyond it: adding 2^(E + 23 - m) to
   |x| of exponent E leaves |x| in units of the last place in the low bits of the sum, rounded by the addition; the
   exponent's part of the code is added as an integer. The low bits of `multiplier` make the exponent's bias come out as
   zero modulo 256. */
MIXPREC_FORCE_INLINE_ uint32x4_t mixprec_round_fp8_neon_(uint32x4_t magnitude, mixprec_dtype type) {
    const int mantissa = type == MIXPREC_E4M3 ? 3 : 2, least = type == MIXPREC_E4M3 ? 127 - 6 : 127 - 14;
    const uint32x4_t multiplier =
        vdupq_n_u32((uint32_t)(((127 + 23 - mantissa) << 23) + (-least * (1 << mantissa) & 0xFF)));
    uint32x4_t unit = vandq_u32(magnitude, vdupq_n_u32(0x7F800000));
    float32x4_t sum;
    unit = vmaxq_u32(unit, vdupq_n_u32((uint32_t)least << 23));
    sum = vfmaq_f32(vreinterpretq_f32_u32(magnitude), vreinterpretq_f32_u32(unit), vreinterpretq_f32_u32(multiplier));
    if (type == MIXPREC_E4M3)
        return vsraq_n_u32(vreinterpretq_u32_f32(sum), unit, 23 - 3);
    return vsraq_n_u32(vreinterpretq_u32_f32(sum), unit, 23 - 2);
}

/* Bytes of 16 lanes: the least or the most significant ones. */
MIXPREC_FORCE_INLINE_ uint8x16_t mixprec_low_bytes_neon_(const uint32x4_t x[4]) {
    uint16x8_t low = vuzp1q_u16(vreinterpretq_u16_u32(x[0]), vreinterpretq_u16_u32(x[1]));
    uint16x8_t high = vuzp1q_u16(vreinterpretq_u16_u32(x[2]), vreinterpretq_u16_u32(x[3]));
    return vuzp1q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high));
}
MIXPREC_FORCE_INLINE_ uint8x16_t mixprec_high_bytes_neon_(const uint32x4_t x[4]) {
    uint16x8_t low = vuzp2q_u16(vreinterpretq_u16_u32(x[0]), vreinterpretq_u16_u32(x[1]));
    uint16x8_t high = vuzp2q_u16(vreinterpretq_u16_u32(x[2]), vreinterpretq_u16_u32(x[3]));
    return vuzp2q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high));
}

/* 16 codes with their signs; finite: none is a NaN or goes beyond the format. As integers, magnitudes order as the
   numbers do, with NaN on top. */
MIXPREC_FORCE_INLINE_ uint8x16_t mixprec_encode_fp8_neon_(const uint32x4_t bits[4], mixprec_dtype type, int saturate,
                                                          int finite) {
    float limit = type == MIXPREC_E4M3 ? (saturate ? 448.0f : 480.0f) : (saturate ? 57344.0f : 65536.0f);
    uint32x4_t c[4], nan[4], payload[4];
    uint8x16_t codes;
    int j;
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
        uint32x4_t magnitude = vbicq_u32(bits[j], vdupq_n_u32(0x80000000u));
        nan[j] = vcgtq_u32(magnitude, vdupq_n_u32(0x7F800000));
        payload[j] = vshrq_n_u32(bits[j], 21);
        if (!finite)
            magnitude = vminq_u32(magnitude, vreinterpretq_u32_f32(vdupq_n_f32(limit)));
        c[j] = mixprec_round_fp8_neon_(magnitude, type);
    }
    codes = mixprec_low_bytes_neon_(c);
    if (!finite && type == MIXPREC_E4M3)
        codes = vorrq_u8(codes, mixprec_low_bytes_neon_(nan));
    else if (!finite) /* what is left of a NaN's exponent, and two bits of it */
        codes =
            vbslq_u8(mixprec_low_bytes_neon_(nan), vorrq_u8(mixprec_low_bytes_neon_(payload), vdupq_n_u8(2)), codes);
    return vbslq_u8(vdupq_n_u8(0x80), mixprec_high_bytes_neon_(bits), codes);
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
    int j;
    for (i = 0; i < n; i += 16) {
        uint32x4_t bits[4];
        uint16x4_t halves[4];
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) bits[j] = vreinterpretq_u32_f32(vld1q_f32(src + i + 4 * j));
        if (type == MIXPREC_E4M3 || type == MIXPREC_E5M2) {
            vst1q_u8((uint8_t *)dst + i, mixprec_encode_fp8_neon_(bits, type, saturate, 0));
            continue;
        }
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) halves[j] =
            type == MIXPREC_F16 ? mixprec_encode_f16_neon_(vreinterpretq_f32_u32(bits[j]), saturate)
                                : vshrn_n_u32(mixprec_encode_bf16_neon_(bits[j], saturate), 16);
        vst1q_u16((uint16_t *)dst + i, vcombine_u16(halves[0], halves[1]));
        vst1q_u16((uint16_t *)dst + i + 8, vcombine_u16(halves[2], halves[3]));
    }
}

/* mixprec_random_bits of n indices from an even one, n a multiple of 32: four vectors of blocks at a time, for each
   round waits for the one before it. */
static void mixprec_randoms_neon_(uint32_t *words, uint64_t seed, uint64_t index, size_t n) {
    static const uint32_t first[4] = {0, 1, 2, 3};
    uint32_t key[3];
    uint32x4_t keys[12]; /* what is added to the two words before the first round and after every fourth */
    uint32_t step;
    size_t i;
    int j;
    key[0] = (uint32_t)seed;
    key[1] = (uint32_t)(seed >> 32);
    key[2] = 0x1BD11BDAu ^ key[0] ^ key[1];
    for (step = 0; step <= 5; step++) {
        keys[2 * step] = vdupq_n_u32(key[step % 3]);
        keys[2 * step + 1] = vdupq_n_u32(key[(step + 1) % 3] + step);
    }
    for (i = 0; i < n; i += 32) {
        const uint64_t counter = (index + i) >> 1;
        const uint32x4_t from = vdupq_n_u32((uint32_t)counter), upper = vdupq_n_u32((uint32_t)(counter >> 32));
        uint32x4_t x0[4], x1[4];
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
            uint32x4_t low = vaddq_u32(from, vaddq_u32(vld1q_u32(first), vdupq_n_u32(4 * (uint32_t)j)));
            uint32x4_t high = vsubq_u32(upper, vcltq_u32(low, from));
            high = vbicq_u32(high, vdupq_n_u32(0x80000000u)); /* half an index has 63 bits */
            x0[j] = vaddq_u32(low, keys[0]);
            x1[j] = vaddq_u32(high, keys[1]);
        }
#define MIXPREC_MIX_(left)                                                                                             \
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {                                                                          \
        x0[j] = vaddq_u32(x0[j], x1[j]);                                                                               \
        x1[j] = veorq_u32(vsriq_n_u32(vshlq_n_u32(x1[j], left), x1[j], 32 - left), x0[j]);                             \
    }
#define MIXPREC_INJECT_                                                                                                \
    MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {                                                                          \
        x0[j] = vaddq_u32(x0[j], keys[2 * step]);                                                                      \
        x1[j] = vaddq_u32(x1[j], keys[2 * step + 1]);                                                                  \
    }
        MIXPREC_ROUNDS_(step);
#undef MIXPREC_MIX_
#undef MIXPREC_INJECT_
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
            vst1q_u32(words + i + 8 * j, vzip1q_u32(x0[j], x1[j]));
            vst1q_u32(words + i + 8 * j + 4, vzip2q_u32(x0[j], x1[j]));
        }
    }
}

/* Any format, mode and policy: mixprec_narrow_f32_ four at a time. See mixprec_encoder_avx2_. */
typedef struct mixprec_encoder_neon_ {
    int32x4_t bias, shift, min_shift, mantissa_bits;
    uint32x4_t threshold_positive, threshold_negative, odd, sticky;
    uint32x4_t max_code, overflow_positive, overflow_negative, inf_code, nan_code, payload, sign_code;
    int stochastic, special;
} mixprec_encoder_neon_;

static mixprec_encoder_neon_ mixprec_encoder_of_neon_(mixprec_dtype type, const mixprec_how_ *how) {
    const mixprec_layout_ *to = mixprec_encoded_layout_of_(type);
    mixprec_encoder_neon_ e;
    int keep = how->overflow != MIXPREC_OVERFLOW_IEEE;
    e.stochastic = how->round == MIXPREC_ROUND_STOCHASTIC;
    e.bias = vdupq_n_s32(to->bias - 127);
    e.shift = vdupq_n_s32(23 - to->mantissa_bits);
    e.min_shift = vdupq_n_s32(24 - to->mantissa_bits);
    e.mantissa_bits = vdupq_n_s32(to->mantissa_bits);
    e.threshold_positive = vdupq_n_u32(mixprec_round_threshold_(how->round, 0, 0, 0));
    e.threshold_negative = vdupq_n_u32(mixprec_round_threshold_(how->round, 1, 0, 0));
    e.odd = vdupq_n_u32(how->round == MIXPREC_ROUND_NEAREST_EVEN);
    e.sticky = vdupq_n_u32(!e.stochastic);
    e.max_code = vdupq_n_u32(to->max_code);
    e.overflow_positive =
        vdupq_n_u32(keep || mixprec_overflow_to_max_(how->round, 0) ? to->max_code : to->overflow_code);
    e.overflow_negative =
        vdupq_n_u32(keep || mixprec_overflow_to_max_(how->round, 1) ? to->max_code : to->overflow_code);
    e.inf_code = vdupq_n_u32(how->overflow == MIXPREC_OVERFLOW_SATURATE ? to->max_code : to->overflow_code);
    e.nan_code = vdupq_n_u32(to->nan_code);
    e.payload = vdupq_n_u32(to->special == MIXPREC_IEEE_ ? (1u << to->mantissa_bits) - 1 : 0);
    e.special = to->special;
    if (e.special == MIXPREC_INTEGER_)
        e.overflow_negative = vdupq_n_u32(128);
    e.sign_code = vdupq_n_u32(to->sign_code);
    return e;
}

/* The codes with their signs. */
MIXPREC_FORCE_INLINE_ uint32x4_t mixprec_encode_any_neon_(const mixprec_encoder_neon_ *e, uint32x4_t bits,
                                                          uint32x4_t random) {
    const int32x4_t one = vdupq_n_s32(1);
    uint32x4_t negative = vcltq_s32(vreinterpretq_s32_u32(bits), vdupq_n_s32(0));
    uint32x4_t magnitude = vandq_u32(bits, vdupq_n_u32(0x7FFFFFFF)), exponent = vshrq_n_u32(magnitude, 23);
    uint32x4_t field = vandq_u32(magnitude, vdupq_n_u32(0x7FFFFF)), subnormal = vceqq_u32(exponent, vdupq_n_u32(0));
    uint32x4_t mantissa = vorrq_u32(field, vbicq_u32(vdupq_n_u32(0x800000), subnormal));
    int32x4_t target = vaddq_s32(vreinterpretq_s32_u32(vsubq_u32(exponent, subnormal)), e->bias);
    int32x4_t shift = vmaxq_s32(e->shift, vsubq_s32(e->min_shift, target));
    uint32x4_t kept, fraction, threshold, code, lost, special, too_large;
    target = vmaxq_s32(target, one);
    /* Negative counts shift to the right; by 32 or more, either way, gives 0. A count is its low byte, signed: these
       shifts stay below 224. */
    kept = vshlq_u32(mantissa, vnegq_s32(shift));
    fraction = vshlq_u32(mantissa, vsubq_s32(vdupq_n_s32(32), shift));
    lost = vandq_u32(vcgtq_s32(shift, vdupq_n_s32(31)), vtstq_u32(mantissa, mantissa));
    fraction = vorrq_u32(fraction, vandq_u32(lost, e->sticky));
    threshold = vbslq_u32(negative, e->threshold_negative, e->threshold_positive);
    threshold = vaddq_u32(threshold, vandq_u32(kept, e->odd));
    if (e->stochastic)
        threshold = random;
    /* The sum is below the threshold when it carried out. */
    kept = vsubq_u32(kept, vcltq_u32(vaddq_u32(fraction, threshold), threshold));
    code = vaddq_u32(vshlq_u32(vreinterpretq_u32_s32(vsubq_s32(target, one)), e->mantissa_bits), kept);
    too_large = vbslq_u32(negative, e->overflow_negative, e->overflow_positive);
    code = vbslq_u32(vcgtq_u32(code, e->max_code), too_large, code);
    special = vandq_u32(vshlq_u32(field, vnegq_s32(e->shift)), e->payload);
    special = vbslq_u32(vceqq_u32(field, vdupq_n_u32(0)), e->special == MIXPREC_INTEGER_ ? too_large : e->inf_code,
                        vorrq_u32(e->nan_code, special));
    code = vbslq_u32(vcgtq_u32(magnitude, vdupq_n_u32(0x7F7FFFFF)), special, code);
    if (e->special == MIXPREC_FNUZ_) /* no -0 */
        negative = vandq_u32(negative, vtstq_u32(code, code));
    else if (e->special == MIXPREC_FINITE_) /* a NaN becomes +max */
        negative = vandq_u32(negative, vcleq_u32(magnitude, vdupq_n_u32(0x7F800000)));
    else if (e->special == MIXPREC_INTEGER_)
        return vsubq_u32(veorq_u32(code, negative), negative);
    return vorrq_u32(code, vandq_u32(negative, e->sign_code));
}

/* 16 bytes of codes to elements i ... of an array; fp4 as pairs, low + 16 high. */
MIXPREC_FORCE_INLINE_ void mixprec_put16_neon_(void *dst, mixprec_dtype type, size_t i, uint8x16_t codes) {
    if (type == MIXPREC_E2M1) {
        const uint16x8_t pairs = vreinterpretq_u16_u8(codes);
        vst1_u8((uint8_t *)dst + i / 2, vmovn_u16(vorrq_u16(pairs, vshrq_n_u16(pairs, 4))));
    } else
        vst1q_u8((uint8_t *)dst + i, codes);
}

static void mixprec_store_any_neon_(void *dst, mixprec_dtype type, const float *src, size_t n,
                                    const mixprec_how_ *how) {
    const mixprec_encoder_neon_ encoder = mixprec_encoder_of_neon_(type, how);
    const size_t odd = (size_t)how->index & 1;
    uint32_t words[MIXPREC_UNIT_ + 1] = {0};
    size_t i, j;
    if (encoder.stochastic && odd)
        words[MIXPREC_UNIT_] = mixprec_random_bits(how->seed, how->index);
    for (i = 0; i < n; i += 16) {
        uint16x8_t low, high;
        uint32x4_t c[4];
        if (encoder.stochastic && i % MIXPREC_UNIT_ == 0) {
            words[0] = words[MIXPREC_UNIT_]; /* the first one, where their indices begin at an odd one */
            mixprec_randoms_neon_(words + odd, how->seed, how->index + i + odd, MIXPREC_UNIT_);
        }
        for (j = 0; j < 4; j++)
            c[j] = mixprec_encode_any_neon_(&encoder, vreinterpretq_u32_f32(vld1q_f32(src + i + 4 * j)),
                                            vld1q_u32(words + i % MIXPREC_UNIT_ + 4 * j));
        low = vcombine_u16(vmovn_u32(c[0]), vmovn_u32(c[1]));
        high = vcombine_u16(vmovn_u32(c[2]), vmovn_u32(c[3]));
        if (mixprec_size_of_(type) == 2) {
            vst1q_u16((uint16_t *)dst + i, low);
            vst1q_u16((uint16_t *)dst + i + 8, high);
        } else
            mixprec_put16_neon_(dst, type, i, vcombine_u8(vmovn_u16(low), vmovn_u16(high)));
    }
}

/* Formats of 8 bits and fewer to nearest even, with the layout as data: see mixprec_round_fp8_neon_. 16 elements with a
   NaN go to the general encoder. */
static void mixprec_store_bytes_neon_(void *dst, mixprec_dtype type, const float *src, size_t n,
                                      const mixprec_how_ *how) {
    const mixprec_layout_ *to = mixprec_layout_of_(type);
    const uint32_t code = how->overflow == MIXPREC_OVERFLOW_IEEE ? to->overflow_code : to->max_code;
    const uint32_t mantissa = (uint32_t)to->mantissa_bits, least = (uint32_t)(128 - to->bias);
    /* The number that the code of an overflow would be. */
    const uint32x4_t limit = vdupq_n_u32(((least - 1) << 23) + (code << (23 - mantissa)));
    const uint32x4_t multiplier = vdupq_n_u32(((127 + 23 - mantissa) << 23) + ((0u - (least << mantissa)) & 0xFF));
    const int32x4_t shift = vdupq_n_s32((int)mantissa - 23);
    const int8x16_t sign_shift = vdupq_n_s8(to->sign_code == 0x80u ? 0 : to->sign_code == 0x20u ? -2 : -4);
    const uint8x16_t signed_zero = vdupq_n_u8(to->special == MIXPREC_FNUZ_ ? 0 : 0x80);
    size_t i;
    int j;
    for (i = 0; i < n; i += 16) {
        uint32x4_t bits[4], c[4], largest = vdupq_n_u32(0);
        uint8x16_t codes, sign;
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
            uint32x4_t magnitude, unit;
            float32x4_t sum;
            bits[j] = vreinterpretq_u32_f32(vld1q_f32(src + i + 4 * j));
            magnitude = vbicq_u32(bits[j], vdupq_n_u32(0x80000000u));
            largest = vmaxq_u32(largest, magnitude);
            magnitude = vminq_u32(magnitude, limit);
            unit = vmaxq_u32(vandq_u32(magnitude, vdupq_n_u32(0x7F800000)), vdupq_n_u32(least << 23));
            sum = vfmaq_f32(vreinterpretq_f32_u32(magnitude), vreinterpretq_f32_u32(unit),
                            vreinterpretq_f32_u32(multiplier));
            c[j] = vaddq_u32(vreinterpretq_u32_f32(sum), vshlq_u32(unit, shift));
        }
        if (vmaxvq_u32(largest) > (uint32_t)mixprec_ordinary_(how)) {
            mixprec_store_any_neon_((char *)dst + mixprec_bytes_of_(type, i), type, src + i, 16, how);
            continue;
        }
        codes = mixprec_low_bytes_neon_(c);
        sign = vandq_u8(mixprec_high_bytes_neon_(bits), vorrq_u8(vtstq_u8(codes, codes), signed_zero));
        sign = vshlq_u8(vandq_u8(sign, vdupq_n_u8(0x80)), sign_shift);
        mixprec_put16_neon_(dst, type, i, vorrq_u8(codes, sign));
    }
}

/* FCVTNS rounds to nearest even; NaN becomes 0. */
static void mixprec_store_i8_neon_(int8_t *dst, const float *src, size_t n) {
    size_t i;
    int j;
    for (i = 0; i < n; i += 16) {
        int16x4_t c[4];
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) c[j] = vqmovn_s32(vcvtnq_s32_f32(vld1q_f32(src + i + 4 * j)));
        vst1_s8(dst + i, vqmovn_s16(vcombine_s16(c[0], c[1])));
        vst1_s8(dst + i + 8, vqmovn_s16(vcombine_s16(c[2], c[3])));
    }
}

/* As mixprec_store_e8m0_avx2_. */
static void mixprec_store_e8m0_neon_(uint8_t *dst, const float *src, size_t n, const mixprec_how_ *how) {
    const int to_max = how->overflow != MIXPREC_OVERFLOW_IEEE || mixprec_overflow_to_max_(how->round, 0);
    const uint32x4_t limit = vdupq_n_u32(~mixprec_round_threshold_(how->round, 0, 1, 0) >> 9);
    const uint32x4_t largest = vdupq_n_u32(to_max ? 0xFE : 0xFF), nan = vdupq_n_u32(0xFF);
    const uint32x4_t infinity = vdupq_n_u32(0x7F800000), zero = vdupq_n_u32(0);
    const uint32x4_t saturate = vdupq_n_u32(how->overflow == MIXPREC_OVERFLOW_SATURATE ? 0xFFFFFFFF : 0);
    size_t i;
    int j;
    for (i = 0; i < n; i += 16) {
        uint32x4_t c[4];
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) {
            const uint32x4_t x = vreinterpretq_u32_f32(vld1q_f32(src + i + 4 * j));
            const uint32x4_t exponent = vshrq_n_u32(x, 23), subnormal = vceqq_u32(exponent, zero);
            const uint32x4_t least = vcltq_u32(x, vdupq_n_u32(0x400000));
            const uint32x4_t number = vandq_u32(vtstq_u32(x, x), vcltq_u32(x, infinity));
            uint32x4_t rest = vaddq_u32(x, vandq_u32(x, subnormal));
            rest = vbicq_u32(vandq_u32(rest, vdupq_n_u32(0x7FFFFF)), least);
            c[j] = vminq_u32(vsubq_u32(exponent, vcgtq_u32(rest, limit)), largest);
            c[j] = vbslq_u32(number, c[j], vaddq_u32(nan, vandq_u32(vceqq_u32(x, infinity), saturate)));
        }
        vst1q_u8(dst + i, mixprec_low_bytes_neon_(c));
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
    if (type == MIXPREC_I8 && how->round == MIXPREC_ROUND_NEAREST_EVEN) {
        mixprec_store_i8_neon_((int8_t *)dst, src, n);
        return;
    }
    if (type == MIXPREC_E8M0) {
        if (how->round == MIXPREC_ROUND_STOCHASTIC)
            mixprec_store_c_(dst, type, src, n, how);
        else
            mixprec_store_e8m0_neon_((uint8_t *)dst, src, n, how);
        return;
    }
    if (how->round != MIXPREC_ROUND_NEAREST_EVEN ||
        (how->overflow == MIXPREC_OVERFLOW_SATURATE_KEEP_INF && mixprec_size_of_(type) == 2)) {
        mixprec_store_any_neon_(dst, type, src, n, how);
        return;
    }
    if (how->overflow == MIXPREC_OVERFLOW_SATURATE_KEEP_INF || !mixprec_is_compute_type_(type)) {
        mixprec_store_bytes_neon_(dst, type, src, n, how);
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

static int mixprec_unscale_neon_(float *dst, const float *src, size_t n, float factor, int around) {
    const uint32x4_t exponent = vdupq_n_u32(0x7F800000);
    uint32x4_t found = vdupq_n_u32(0);
    size_t i;
    (void)around;
    for (i = 0; i < n; i += 4) {
        float32x4_t x = vmulq_n_f32(vld1q_f32(src + i), factor);
        uint32x4_t bits = vreinterpretq_u32_f32(x);
        MIXPREC_UNKNOWN_CLASS_("+w", bits);
        vst1q_f32(dst + i, x);
        found = vorrq_u32(found, vceqq_u32(vandq_u32(bits, exponent), exponent));
    }
    return vmaxvq_u32(found) != 0;
}

/* ---- statistics ---- */

#ifndef MIXPREC_NO_CONVERT
/* Four lanes of fp32 to those of f64. */
MIXPREC_FORCE_INLINE_ void mixprec_add_lanes_neon_(double *to, float32x4_t sums) {
    vst1q_f64(to, vaddq_f64(vld1q_f64(to), vcvt_f64_f32(vget_low_f32(sums))));
    vst1q_f64(to + 2, vaddq_f64(vld1q_f64(to + 2), vcvt_high_f64_f32(sums)));
}

/* As mixprec_tally_avx2_, but that all elements are treated as those that may not become normal numbers. */
static size_t mixprec_tally_neon_(mixprec_tally_ *t, const void *src, mixprec_dtype type, size_t n) {
    const float32x4_t power = vdupq_n_f32((float)(1 << t->shift));
    const float32x4_t least_unit = vreinterpretq_f32_u32(vdupq_n_u32((uint32_t)t->min_normal | 1 << 22));
    const uint32x4_t normal = vdupq_n_u32((uint32_t)t->normal), vanishing = vdupq_n_u32((uint32_t)t->vanishing);
    const uint32x4_t max = vdupq_n_u32((uint32_t)t->max), zero = vdupq_n_u32(0);
    mixprec_statistics *stats = t->stats;
    uint32_t amax = 0, min = 0xFFFFFFFFu; /* min: less 1, so that zero is not it */
    size_t i, k;
    int j;
    for (i = 0; i < 256 && !n; i++)
        stats->exponents[i] += t->exponents[0][i] + t->exponents[1][i] + t->exponents[2][i];
    for (i = 0; i < n; i += MIXPREC_TALLY_GROUP_) {
        uint32x4_t largest = zero, least = vdupq_n_u32(min);
        uint32x4_t zeros = zero, overflow = zero, underflow = zero, subnormal = zero; /* counted downward */
        float32x4_t signal[8], noise[8];
        float buffer[MIXPREC_TALLY_GROUP_];
        const float *from = (const float *)src + i;
        uint32_t most;
        if (type != MIXPREC_F32) {
            mixprec_load_neon_(buffer, (const uint16_t *)src + i, type, MIXPREC_TALLY_GROUP_, 0);
            from = buffer;
        }
        for (j = 0; j < 8; j++) {
            signal[j] = noise[j] = vdupq_n_f32(0);
            for (k = 4 * (size_t)j; k < MIXPREC_TALLY_GROUP_; k += 32) {
                const float32x4_t x = vld1q_f32(from + k);
                const uint32x4_t magnitude = vbicq_u32(vreinterpretq_u32_f32(x), vdupq_n_u32(0x80000000u));
                const float32x4_t y = vreinterpretq_f32_u32(vminq_u32(magnitude, max));
                const float32x4_t unit = vmaxq_f32(y, least_unit);
                float32x4_t rounded = vfmsq_f32(y, unit, power), error;
                MIXPREC_KEEP_(rounded);
                rounded = vfmaq_f32(rounded, unit, power);
                MIXPREC_KEEP_(rounded);
                error = vsubq_f32(rounded, vreinterpretq_f32_u32(magnitude));
                signal[j] = vfmaq_f32(signal[j], x, x);
                noise[j] = vfmaq_f32(noise[j], error, error);
                largest = vmaxq_u32(largest, magnitude);
                least = vminq_u32(least, vsubq_u32(magnitude, vdupq_n_u32(1)));
                zeros = vaddq_u32(zeros, vceqq_u32(magnitude, zero));
                overflow = vaddq_u32(overflow, vcgtq_u32(magnitude, max));
                underflow = vaddq_u32(underflow, vcleq_u32(magnitude, vanishing));
                subnormal = vaddq_u32(subnormal, vcltq_u32(magnitude, normal));
            }
        }
        most = vmaxvq_u32(largest);
        if (most >= MIXPREC_SQUARES_BELOW_ || (most && most < MIXPREC_SQUARES_FROM_))
            break;
        amax = most > amax ? most : amax;
        min = vminvq_u32(least);
        stats->zero -= (uint64_t)(int64_t)vaddvq_s32(vreinterpretq_s32_u32(zeros));
        stats->overflow -= (uint64_t)(int64_t)vaddvq_s32(vreinterpretq_s32_u32(overflow));
        stats->underflow -= (uint64_t)(int64_t)vaddvq_s32(vreinterpretq_s32_u32(vsubq_u32(underflow, zeros)));
        stats->subnormal -= (uint64_t)(int64_t)vaddvq_s32(vreinterpretq_s32_u32(vsubq_u32(subnormal, underflow)));
        for (j = 0; j < 4; j++) {
            mixprec_add_lanes_neon_(t->signal + 4 * j, vaddq_f32(signal[j], signal[j + 4]));
            mixprec_add_lanes_neon_(t->noise + 4 * j, vaddq_f32(noise[j], noise[j + 4]));
        }
        for (k = 0; k < MIXPREC_TALLY_GROUP_; k += 4) {
            stats->exponents[mixprec_f32_bits_(from[k]) << 1 >> 24]++;
            MIXPREC_UNROLL_ for (j = 0; j < 3; j++)
                t->exponents[j][mixprec_f32_bits_(from[k + 1 + (size_t)j]) << 1 >> 24]++;
        }
    }
    if (i) {
        const uint64_t least = mixprec_f32_bits_to_f64_bits_(min + 1);
        const uint64_t largest = mixprec_f32_bits_to_f64_bits_(amax);
        t->amax = largest > t->amax ? largest : t->amax;
        t->min_nonzero = least && least < t->min_nonzero ? least : t->min_nonzero;
    }
    return i;
}

/* The same from f64. */
static size_t mixprec_tally_wide_neon_(mixprec_tally_ *t, const double *src, size_t n) {
    const mixprec_tally_wide_ p = mixprec_tally_wide_of_(t);
    const float64x2_t infinity = vdupq_n_f64(mixprec_f64_from_bits_((uint64_t)0x7FF << 52));
    const float64x2_t max = vdupq_n_f64(p.max), power = vdupq_n_f64(p.power);
    const uint64x2_t none = vdupq_n_u64(0);
    mixprec_statistics *stats = t->stats;
    size_t i, k;
    int j;
    for (i = 0; i < n; i += MIXPREC_UNIT_) {
        float64x2_t largest = vdupq_n_f64(0), least = infinity, signal[8], noise[8];
        uint64x2_t zeros = none, overflow = none, underflow = none, subnormal = none; /* counted downward */
        uint64_t bits;
        for (j = 0; j < 8; j++) {
            signal[j] = vld1q_f64(t->signal + 2 * j);
            noise[j] = vld1q_f64(t->noise + 2 * j);
            for (k = 2 * (size_t)j; k < MIXPREC_UNIT_; k += MIXPREC_TALLY_LANES_) {
                const float64x2_t x = vld1q_f64(src + i + k), magnitude = vabsq_f64(x);
                const float64x2_t y = vminq_f64(magnitude, max);
                const float64x2_t unit = vmaxq_f64(y, vdupq_n_f64(p.least_unit));
                const uint64x2_t zero = vceqzq_f64(x);
                float64x2_t rounded = vfmsq_f64(y, unit, power), error, square;
                MIXPREC_KEEP_(rounded);
                rounded = vfmaq_f64(rounded, unit, power);
                MIXPREC_KEEP_(rounded);
                error = vsubq_f64(rounded, magnitude);
                square = vmulq_f64(x, x);
                MIXPREC_KEEP_(square);
                signal[j] = vaddq_f64(signal[j], square);
                MIXPREC_KEEP_(signal[j]);
                square = vmulq_f64(error, error);
                MIXPREC_KEEP_(square);
                noise[j] = vaddq_f64(noise[j], square);
                MIXPREC_KEEP_(noise[j]);
                largest = vmaxq_f64(largest, magnitude); /* a NaN stays */
                least = vminq_f64(least, vbslq_f64(zero, infinity, magnitude));
                zeros = vaddq_u64(zeros, zero);
                overflow = vaddq_u64(overflow, vcgtq_f64(magnitude, max));
                underflow = vaddq_u64(underflow, vcleq_f64(magnitude, vdupq_n_f64(p.vanishing)));
                subnormal = vaddq_u64(subnormal, vcltq_f64(magnitude, vdupq_n_f64(p.normal)));
            }
        }
        bits = mixprec_f64_bits_(vmaxvq_f64(largest));
        if (bits >= (uint64_t)0x7FF << 52)
            break;
        t->amax = bits > t->amax ? bits : t->amax;
        bits = mixprec_f64_bits_(vminvq_f64(least));
        t->min_nonzero = bits < t->min_nonzero ? bits : t->min_nonzero;
        stats->zero -= vaddvq_u64(zeros);
        stats->overflow -= vaddvq_u64(overflow);
        stats->underflow -= vaddvq_u64(vsubq_u64(underflow, zeros));
        stats->subnormal -= vaddvq_u64(vsubq_u64(subnormal, underflow));
        for (j = 0; j < 8; j++) {
            vst1q_f64(t->signal + 2 * j, signal[j]);
            vst1q_f64(t->noise + 2 * j, noise[j]);
        }
        for (k = 0; k < MIXPREC_UNIT_; k += 4)
            for (j = 0; j < 4; j++) {
                const int32_t exponent = (int32_t)(mixprec_f64_bits_(src[i + k + (size_t)j]) << 1 >> 53) - 1023 + 127;
                uint64_t *exponents = j ? t->exponents[j - 1] : stats->exponents;
                exponents[exponent < 0 ? 0 : exponent > 254 ? 254 : exponent]++;
            }
    }
    return i;
}
#endif

/* ---- GEMM ---- */

#ifndef MIXPREC_NO_GEMM
/* 8 x 12 (f64: 8 x 6): 24 accumulators, 3 vectors of B, and A by lanes of what is left. Rows and columns that are not
   there are zeros of the panels. */
#define MIXPREC_TILE_ROWS_NEON_ 8
#define MIXPREC_TILE_VECTORS_NEON_ 3
MIXPREC_FORCE_INLINE_ void mixprec_tile_body_neon_(const int rows, const int vectors, const int wide, size_t rows_there,
                                                   size_t depth, const char *a, const char *b, char *t, size_t ldt,
                                                   int first) {
    const size_t size = wide ? 8 : 4;
    int i, j;
    for (; depth; first = 0) {
        size_t chunk = mixprec_min_(depth, MIXPREC_GEMM_KBLOCK), p;
        /* One of the two is used: see mixprec_tile_body_avx2_. */
        float32x4_t s[MIXPREC_TILE_ROWS_NEON_][MIXPREC_TILE_VECTORS_NEON_];
        float64x2_t w[MIXPREC_TILE_ROWS_NEON_][MIXPREC_TILE_VECTORS_NEON_];
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
            s[i][j] = vdupq_n_f32(0);
            w[i][j] = vdupq_n_f64(0);
        }
        for (p = 0; p < chunk; p++) {
            const float *x = (const float *)(const void *)b, *y = (const float *)(const void *)a;
            const double *x_wide = (const double *)(const void *)b, *y_wide = (const double *)(const void *)a;
            if (wide)
                MIXPREC_UNROLL_ for (i = 0; i < rows; i += 2) {
                    const float64x2_t row = vld1q_f64(y_wide + i);
                    MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
                        w[i][j] = vfmaq_laneq_f64(w[i][j], vld1q_f64(x_wide + 2 * j), row, 0);
                        w[i + 1][j] = vfmaq_laneq_f64(w[i + 1][j], vld1q_f64(x_wide + 2 * j), row, 1);
                    }
                }
            else
                MIXPREC_UNROLL_ for (i = 0; i < rows; i += 4) {
                    const float32x4_t row = vld1q_f32(y + i);
                    MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
                        s[i][j] = vfmaq_laneq_f32(s[i][j], vld1q_f32(x + 4 * j), row, 0);
                        s[i + 1][j] = vfmaq_laneq_f32(s[i + 1][j], vld1q_f32(x + 4 * j), row, 1);
                        s[i + 2][j] = vfmaq_laneq_f32(s[i + 2][j], vld1q_f32(x + 4 * j), row, 2);
                        s[i + 3][j] = vfmaq_laneq_f32(s[i + 3][j], vld1q_f32(x + 4 * j), row, 3);
                    }
                }
            a += MIXPREC_TILE_ROWS_NEON_ * size;
            b += MIXPREC_TILE_VECTORS_NEON_ * 16;
        }
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) {
            float *to = (float *)(void *)(t + (size_t)i * ldt * size);
            double *to_wide = (double *)(void *)to;
            if ((size_t)i < rows_there)
                MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
                    if (wide)
                        vst1q_f64(to_wide + 2 * j, first ? w[i][j] : vaddq_f64(vld1q_f64(to_wide + 2 * j), w[i][j]));
                    else
                        vst1q_f32(to + 4 * j, first ? s[i][j] : vaddq_f32(vld1q_f32(to + 4 * j), s[i][j]));
                }
        }
        depth -= chunk;
    }
}

/* Half a tile of rows and a third of its columns are enough of a choice for edges. */
#define MIXPREC_TILES_NEON_(X) X(4, 1, 0) X(4, 3, 0) X(8, 1, 0) X(8, 3, 0) X(4, 3, 1) X(8, 3, 1)
#define MIXPREC_TILE_NEON_(rows, vectors, wide)                                                                        \
    static void mixprec_tile_##rows##_##vectors##_##wide##_neon_(size_t rows_there, size_t depth, const char *a,       \
                                                                 const char *b, char *t, size_t ldt, int first) {      \
        mixprec_tile_body_neon_(rows, vectors, wide, rows_there, depth, a, b, t, ldt, first);                          \
    }
MIXPREC_TILES_NEON_(MIXPREC_TILE_NEON_)
#undef MIXPREC_TILE_NEON_

static void mixprec_tile_neon_(size_t rows, size_t columns, size_t depth, const void *a, const void *b,
                               const void *ahead, void *t, size_t ldt, int first, int wide) {
    const size_t vectors = wide || columns > 4 ? 3 : 1, size = wide ? 8 : 4, whole = vectors * 16 / size;
    const size_t kernel_rows = rows > 4 ? 8 : 4;
    double edge[MIXPREC_TILE_ROWS_NEON_ * MIXPREC_TILE_VECTORS_NEON_ * 2];
    char *to = (char *)t;
    size_t ld_to = ldt, i;
    (void)ahead;
    if (columns != whole) { /* vectors that are not whole: by way of a buffer */
        to = (char *)edge;
        ld_to = whole;
        for (i = 0; i < rows && !first; i++)
            mixprec_copy_(to + i * whole * size, (char *)t + i * ldt * size, columns * size);
    }
    switch (kernel_rows * 8 + vectors * 2 + (size_t)wide) {
#define MIXPREC_TILE_NEON_(kernel_rows, vectors, wide)                                                                 \
    case kernel_rows * 8 + vectors * 2 + wide:                                                                         \
        mixprec_tile_##kernel_rows##_##vectors##_##wide##_neon_(rows, depth, (const char *)a, (const char *)b, to,     \
                                                                ld_to, first);                                         \
        break;
        MIXPREC_TILES_NEON_(MIXPREC_TILE_NEON_)
#undef MIXPREC_TILE_NEON_
    default: break;
    }
    for (i = 0; i < rows && to != (char *)t; i++)
        mixprec_copy_((char *)t + i * ldt * size, to + i * whole * size, columns * size);
}

/* 16 bytes of a panel: 4 elements as fp32, or 2 of f64 as they are. The first `there` lie at p, the others are
   zeros. */
MIXPREC_FORCE_INLINE_ float32x4_t mixprec_load_edge_neon_(const void *p, mixprec_dtype type, size_t there,
                                                          const int wide) {
    const size_t lanes = wide ? 2 : 4;
    double edge[4] = {0};
    if (there < lanes) {
        mixprec_copy_(edge, p, there * mixprec_size_of_(type));
        p = edge;
    }
    return wide ? vreinterpretq_f32_f64(vld1q_f64((const double *)p)) : mixprec_load4_neon_(p, type);
}

/* Elements that lie side by side along k: squares of 4 x 4 (f64: 2 x 2), transposed in registers, a cache line of each
   row before the next row: with a power of two between rows they share one set. Where the panel is no wider than that,
   what spills out of a line of it is in the next one, which is written later, or past its end, where there is room. */
MIXPREC_FORCE_INLINE_ void mixprec_pack_across_neon_(char *dst, size_t width, const char *src, mixprec_dtype type,
                                                     size_t stride, size_t count, size_t depth, const int wide) {
    const size_t size = mixprec_size_of_(type), to_size = wide ? 8 : 4, lanes = wide ? 2 : 4, line = 64 / size;
    size_t from, i, p, q;
    for (from = 0; from < depth; from += line)
        for (i = 0; i < width; i += lanes)
            for (p = from; p < depth && p < from + line; p += lanes) {
                float32x4_t r[4], t[4];
                for (q = 0; q < lanes; q++)
                    r[q] = i + q < count ? mixprec_load_edge_neon_(src + (i + q) * stride + p * size, type,
                                                                   mixprec_min_(lanes, depth - p), wide)
                                         : vdupq_n_f32(0);
                if (wide) {
                    const float64x2_t x = vreinterpretq_f64_f32(r[0]), y = vreinterpretq_f64_f32(r[1]);
                    r[0] = vreinterpretq_f32_f64(vzip1q_f64(x, y));
                    r[1] = vreinterpretq_f32_f64(vzip2q_f64(x, y));
                } else {
                    t[0] = vzip1q_f32(r[0], r[2]);
                    t[1] = vzip2q_f32(r[0], r[2]);
                    t[2] = vzip1q_f32(r[1], r[3]);
                    t[3] = vzip2q_f32(r[1], r[3]);
                    r[0] = vzip1q_f32(t[0], t[2]);
                    r[1] = vzip2q_f32(t[0], t[2]);
                    r[2] = vzip1q_f32(t[1], t[3]);
                    r[3] = vzip2q_f32(t[1], t[3]);
                }
                for (q = 0; q < lanes && p + q < depth; q++)
                    vst1q_f32((float *)(void *)(dst + ((p + q) * width + i) * to_size), r[q]);
            }
}

/* Elements that lie side by side in src as in the panel. */
MIXPREC_FORCE_INLINE_ void mixprec_pack_along_neon_(char *dst, size_t width, const char *src, mixprec_dtype type,
                                                    size_t stride, size_t count, size_t depth, const int wide) {
    const size_t size = mixprec_size_of_(type), lanes = wide ? 2 : 4;
    size_t i, p;
    for (p = 0; p < depth; p++, src += stride, dst += width * (16 / lanes))
        for (i = 0; i < width; i += lanes)
            vst1q_f32((float *)(void *)(dst + i * (16 / lanes)),
                      i < count ? mixprec_load_edge_neon_(src + i * size, type, mixprec_min_(lanes, count - i), wide)
                                : vdupq_n_f32(0));
}

static void mixprec_pack_neon_(void *dst, size_t width, const void *src, mixprec_dtype type, size_t ld, int along,
                               size_t count, size_t depth, int wide) {
    const char *from = (const char *)src;
    const size_t stride = ld * mixprec_size_of_(type);
    char *to = (char *)dst;
    switch ((int)type * 2 + wide) {
#define MIXPREC_ROW_(dtype, wide)                                                                                      \
    case dtype * 2 + wide:                                                                                             \
        if (along)                                                                                                     \
            mixprec_pack_along_neon_(to, width, from, dtype, stride, count, depth, wide);                              \
        else                                                                                                           \
            mixprec_pack_across_neon_(to, width, from, dtype, stride, count, depth, wide);                             \
        break;
        MIXPREC_ROW_(MIXPREC_F64, 1)
        MIXPREC_ROW_(MIXPREC_F32, 0)
        MIXPREC_ROW_(MIXPREC_F64, 0)
        MIXPREC_ROW_(MIXPREC_F16, 0)
        MIXPREC_ROW_(MIXPREC_BF16, 0)
        MIXPREC_ROW_(MIXPREC_E4M3, 0)
        MIXPREC_ROW_(MIXPREC_E5M2, 0)
#undef MIXPREC_ROW_
    default: break;
    }
}

/* ---- few rows: up to 4 ---- */

/* `vectors` of 16 bytes of columns. */
MIXPREC_FORCE_INLINE_ void mixprec_few_body_neon_(const int rows, const int vectors, const int wide, size_t depth,
                                                  const char *a, size_t a_step, const char *b, size_t b_step,
                                                  size_t b_panel, char *sums, size_t ld, int starts) {
    /* One of the two is used: see mixprec_tile_body_avx2_. */
    float32x4_t s[4][16];
    float64x2_t w[4][16];
    size_t p;
    int i, j;
    MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
        const char *from = sums + (size_t)i * ld + 16 * j;
        if (wide)
            w[i][j] = starts ? vdupq_n_f64(0) : vld1q_f64((const double *)(const void *)from);
        else
            s[i][j] = starts ? vdupq_n_f32(0) : vld1q_f32((const float *)(const void *)from);
    }
    for (p = 0; p < depth; p++, a += a_step, b += b_step)
        MIXPREC_UNROLL_ for (i = 0; i < rows; i += 2) { /* a pair of rows, or the only one */
            const float *const y = (const float *)(const void *)a + i;
            const double *const y_wide = (const double *)(const void *)a + i;
            if (wide) {
                const float64x2_t pair = rows == 1 ? vld1q_dup_f64(y_wide) : vld1q_f64(y_wide);
                MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
                    const char *from = b + (size_t)(j / 4) * b_panel + 16 * (j % 4);
                    const float64x2_t x = vld1q_f64((const double *)(const void *)from);
                    w[i][j] = vfmaq_laneq_f64(w[i][j], x, pair, 0);
                    if (rows > 1)
                        w[i + 1][j] = vfmaq_laneq_f64(w[i + 1][j], x, pair, 1);
                }
            } else {
                const float32x2_t pair = rows == 1 ? vld1_dup_f32(y) : vld1_f32(y);
                MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
                    const char *from = b + (size_t)(j / 4) * b_panel + 16 * (j % 4);
                    const float32x4_t x = vld1q_f32((const float *)(const void *)from);
                    s[i][j] = vfmaq_lane_f32(s[i][j], x, pair, 0);
                    if (rows > 1)
                        s[i + 1][j] = vfmaq_lane_f32(s[i + 1][j], x, pair, 1);
                }
            }
        }
    MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
        char *to = sums + (size_t)i * ld + 16 * j;
        if (wide)
            vst1q_f64((double *)(void *)to, w[i][j]);
        else
            vst1q_f32((float *)(void *)to, s[i][j]);
    }
}

/* As mixprec_few_avx2_. */
#define MIXPREC_ALL_FEW_NEON_(X, wide) X(1, 4, wide) X(1, 16, wide) X(2, 4, wide) X(2, 8, wide) X(4, 4, wide)
#define MIXPREC_FEW_NEON_(rows, vectors, wide)                                                                         \
    static void mixprec_few_##rows##_##vectors##_##wide##_neon_(size_t depth, const char *a, size_t a_step,            \
                                                                const char *b, size_t b_step, size_t b_panel,          \
                                                                char *sums, size_t ld, int starts) {                   \
        mixprec_few_body_neon_(rows, vectors, wide, depth, a, a_step, b, b_step, b_panel, sums, ld, starts);           \
    }
MIXPREC_ALL_FEW_NEON_(MIXPREC_FEW_NEON_, 0)
MIXPREC_ALL_FEW_NEON_(MIXPREC_FEW_NEON_, 1)
#undef MIXPREC_FEW_NEON_
static void mixprec_few_neon_(size_t rows, size_t panels, size_t depth, const char *a, size_t a_step, const char *b,
                              size_t b_step, size_t b_panel, char *sums, size_t ld, int starts, int wide) {
    size_t count;
    rows = rows > 2 ? 4 : rows;
    for (; panels; panels -= count, b += count * b_panel, sums += count * 64) {
        count = rows == 1 && panels >= 4 ? 4 : rows == 2 && panels >= 2 ? 2 : 1;
        switch ((rows * 8 + count) * 2 + (size_t)wide) {
#define MIXPREC_FEW_NEON_(rows, vectors, wide)                                                                         \
    case (rows * 8 + vectors / 4) * 2 + wide:                                                                          \
        mixprec_few_##rows##_##vectors##_##wide##_neon_(depth, a, a_step, b, b_step, b_panel, sums, ld, starts);       \
        break;
            MIXPREC_ALL_FEW_NEON_(MIXPREC_FEW_NEON_, 0)
            MIXPREC_ALL_FEW_NEON_(MIXPREC_FEW_NEON_, 1)
#undef MIXPREC_FEW_NEON_
        default: break;
        }
    }
}

/* The lower or upper halves of p and q, interleaved in units of `size` bytes. */
MIXPREC_FORCE_INLINE_ uint8x16_t mixprec_zip_neon_(uint8x16_t p, uint8x16_t q, const size_t size, const int upper) {
#define MIXPREC_ZIP_(zip, bits)                                                                                        \
    vreinterpretq_u8_u##bits(zip##_u##bits(vreinterpretq_u##bits##_u8(p), vreinterpretq_u##bits##_u8(q)))
    switch (size) {
    case 8: return upper ? MIXPREC_ZIP_(vzip2q, 64) : MIXPREC_ZIP_(vzip1q, 64);
    case 4: return upper ? MIXPREC_ZIP_(vzip2q, 32) : MIXPREC_ZIP_(vzip1q, 32);
    case 2: return upper ? MIXPREC_ZIP_(vzip2q, 16) : MIXPREC_ZIP_(vzip1q, 16);
    default: return upper ? vzip2q_u8(p, q) : vzip1q_u8(p, q);
    }
#undef MIXPREC_ZIP_
}

/* 16 bytes of each of 4 rows of B (f64: 2), 64 bytes apart, transposed: for each k, the numbers of all rows; of bf16
   pairs, which are cheap to take apart. */
MIXPREC_FORCE_INLINE_ void mixprec_across_load_neon_(uint8x16_t x[4], const char *b, const mixprec_dtype type) {
    const size_t unit = type == MIXPREC_F64                           ? 8
                        : type == MIXPREC_F32 || type == MIXPREC_BF16 ? 4
                        : type == MIXPREC_F16                         ? 2
                                                                      : 1;
    const int count = type == MIXPREC_F64 ? 2 : 4;
    uint8x16_t r[4], t[4];
    int i;
    MIXPREC_UNROLL_ for (i = 0; i < count; i++) r[i] = vld1q_u8((const uint8_t *)b + 64 * i);
    if (type == MIXPREC_F64) {
        x[0] = mixprec_zip_neon_(r[0], r[1], unit, 0);
        x[1] = mixprec_zip_neon_(r[0], r[1], unit, 1);
        return;
    }
    MIXPREC_UNROLL_ for (i = 0; i < 4; i++) t[i] = mixprec_zip_neon_(r[i / 2], r[i / 2 + 2], unit, i % 2);
    MIXPREC_UNROLL_ for (i = 0; i < 4; i++) x[i] = mixprec_zip_neon_(t[i / 2], t[i / 2 + 2], unit, i % 2);
}

/* The columns of k in such a vector: 1 of f64 and f32, 2 of 16 bits, 4 of 8 bits. */
MIXPREC_FORCE_INLINE_ void mixprec_across_expand_neon_(float32x4_t y[4], uint8x16_t x, const mixprec_dtype type) {
    const int narrow = type == MIXPREC_E4M3 || type == MIXPREC_E5M2;
    int i;
    if (type == MIXPREC_BF16) {
        y[0] = vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_u8(x), 16));
        y[1] = vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_u8(x), vdupq_n_u32(0xFFFF0000u)));
    } else if (narrow || type == MIXPREC_F16)
        MIXPREC_UNROLL_ for (i = 0; i < 1 + narrow; i++) {
            const uint8x8_t codes = i ? vget_high_u8(x) : vget_low_u8(x);
            const uint16x8_t half = type == MIXPREC_F16    ? vreinterpretq_u16_u8(x)
                                    : type == MIXPREC_E4M3 ? mixprec_e4m3_to_half_neon_(codes)
                                                           : vshll_n_u8(codes, 8);
            y[2 * i] = vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(half)));
            y[2 * i + 1] = vcvt_high_f32_f16(vreinterpretq_f16_u16(half));
            if (type == MIXPREC_E4M3) {
                y[2 * i] = vmulq_n_f32(y[2 * i], 256.0f);
                y[2 * i + 1] = vmulq_n_f32(y[2 * i + 1], 256.0f);
            }
        }
    else
        y[0] = vreinterpretq_f32_u8(x);
}

/* s + x * number `index` of those at p. */
MIXPREC_FORCE_INLINE_ float32x4_t mixprec_fma_neon_(float32x4_t s, float32x4_t x, const char *p, const int index) {
    const float32x4_t y = vld1q_f32((const float *)(const void *)p + index / 4 * 4);
    switch (index % 4) {
    case 0: return vfmaq_laneq_f32(s, x, y, 0);
    case 1: return vfmaq_laneq_f32(s, x, y, 1);
    case 2: return vfmaq_laneq_f32(s, x, y, 2);
    default: return vfmaq_laneq_f32(s, x, y, 3);
    }
}
MIXPREC_FORCE_INLINE_ float64x2_t mixprec_fma_f64_neon_(float64x2_t s, float64x2_t x, const char *p, const int index) {
    const float64x2_t y = vld1q_f64((const double *)(const void *)p + index / 2 * 2);
    return index % 2 ? vfmaq_laneq_f64(s, x, y, 1) : vfmaq_laneq_f64(s, x, y, 0);
}

/* As mixprec_across_fill_avx2_. */
MIXPREC_FORCE_INLINE_ void mixprec_across_fill_neon_(char *line, size_t height, const char *b, size_t stride,
                                                     size_t columns, size_t bytes, size_t lead) {
    size_t i;
    if (columns < height || bytes < 64) {
        mixprec_across_fill_part_(line, height, b, stride, columns, bytes);
        return;
    }
    for (i = 0; i < height; i++, b += stride, line += 64) {
        const uint8x16_t x = vld1q_u8((const uint8_t *)b), y = vld1q_u8((const uint8_t *)b + 16);
        const uint8x16_t z = vld1q_u8((const uint8_t *)b + 32), w = vld1q_u8((const uint8_t *)b + 48);
        __builtin_prefetch((const char *)((uintptr_t)b + lead), 0, 2); /* may lie outside of B */
        vst1q_u8((uint8_t *)line, x);
        vst1q_u8((uint8_t *)line + 16, y);
        vst1q_u8((uint8_t *)line + 32, z);
        vst1q_u8((uint8_t *)line + 48, w);
    }
}

/* As mixprec_across_body_avx2_: the vectors' lanes are columns, and a line of 64 bytes of each row of B goes by way of
   a buffer. For an element of B and one row of A llvm-mca counts, on a Neoverse N1, .38 cycles in f32 and bf16, .53 in
   f16 and e5m2, .94 in e4m3. */
MIXPREC_FORCE_INLINE_ void mixprec_across_body_neon_(const int rows, const mixprec_dtype type, size_t columns,
                                                     size_t depth, const char *a, const char *b, size_t stride,
                                                     char *sums, int starts) {
    const int wide = type == MIXPREC_F64, words = wide ? 2 : 4;
    const size_t size = wide ? 8 : type == MIXPREC_F32 ? 4 : type == MIXPREC_F16 || type == MIXPREC_BF16 ? 2 : 1;
    const size_t to_size = wide ? 8 : 4, lanes = 16 / to_size, step = 16 / size;
    const int vectors = 2 * MIXPREC_ACROSS_VECTORS_(rows, size), per_word = size >= 4 ? 1 : size == 2 ? 2 : 4;
    const size_t height = (size_t)vectors * lanes, a_step = (size_t)rows * to_size, bytes = depth * size;
    const size_t phase = stride % 64 || (uintptr_t)b % 16 ? 0 : (uintptr_t)b % 64;
    uint8x16_t lines[32 * 4];
    double a_edge[16 * MIXPREC_ACROSS_ROWS_ / 2];
    size_t at = 0, line = 0, line_end = 0;
    int i, j, k, q;
    for (; at < bytes; starts = 0) {
        const size_t end = mixprec_min_(at + MIXPREC_GEMM_KBLOCK * size, bytes);
        float32x4_t s[MIXPREC_ACROSS_ROWS_][8];
        float64x2_t w[MIXPREC_ACROSS_ROWS_][8]; /* in the place of s for f64: see mixprec_tile_body_avx2_ */
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
            s[i][j] = vdupq_n_f32(0);
            w[i][j] = vdupq_n_f64(0);
        }
        while (at < end) {
            const char *x = a;
            size_t stop, left;
            if (at == line_end) {
                line = at;
                line_end = at + mixprec_min_(64 - (phase + at) % 64, bytes - at);
                mixprec_across_fill_neon_((char *)lines, height, b + at, stride, columns, line_end - at,
                                          MIXPREC_ACROSS_LEAD_ +
                                              (at + MIXPREC_ACROSS_LEAD_ < bytes ? 0 : height * stride - bytes));
            }
            stop = mixprec_min_(line_end, end);
            left = (stop - at) / size;
            a += left * a_step;
            for (; at < stop; at += 16, left -= step, x += step * a_step) {
                const char *from = (const char *)lines + (at - line);
                if (left < step) {
                    x = mixprec_across_edge_(a_edge, x, left * a_step, step * a_step, wide);
                    left = step;
                }
                MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
                    uint8x16_t v[4];
#ifndef __clang__
                    __asm__("" ::: "memory"); /* gcc 12 would keep all numbers of A for the next j, and spill */
#endif
                    mixprec_across_load_neon_(v, from + (size_t)j * lanes * 64, type);
                    MIXPREC_UNROLL_ for (q = 0; q < words; q++) {
                        float32x4_t y[4];
                        mixprec_across_expand_neon_(y, v[q], type);
                        MIXPREC_UNROLL_ for (k = 0; k < per_word; k++) MIXPREC_UNROLL_ for (i = 0; i < rows; i++) {
                            const int number = (q * per_word + k) * rows + i;
                            if (wide)
                                w[i][j] = mixprec_fma_f64_neon_(w[i][j], vreinterpretq_f64_f32(y[k]), x, number);
                            else
                                s[i][j] = mixprec_fma_neon_(s[i][j], y[k], x, number);
                        }
                    }
                }
            }
        }
        at = end;
        MIXPREC_UNROLL_ for (i = 0; i < rows; i++) MIXPREC_UNROLL_ for (j = 0; j < vectors; j++) {
            char *const to = sums + 16 * (i * vectors + j);
            float *const narrow = (float *)(void *)to;
            double *const wider = (double *)(void *)to;
            if (wide)
                vst1q_f64(wider, starts ? w[i][j] : vaddq_f64(vld1q_f64(wider), w[i][j]));
            else
                vst1q_f32(narrow, starts ? s[i][j] : vaddq_f32(vld1q_f32(narrow), s[i][j]));
        }
    }
}

#define MIXPREC_ACROSS_NEON_(rows)                                                                                     \
    static void mixprec_across_##rows##_neon_(mixprec_dtype type, size_t columns, size_t depth, const char *a,         \
                                              const char *b, size_t stride, char *sums, int starts) {                  \
        switch (type) {                                                                                                \
            MIXPREC_ACROSS_ROW_(rows, MIXPREC_F64)                                                                     \
            MIXPREC_ACROSS_ROW_(rows, MIXPREC_F32)                                                                     \
            MIXPREC_ACROSS_ROW_(rows, MIXPREC_F16)                                                                     \
            MIXPREC_ACROSS_ROW_(rows, MIXPREC_BF16)                                                                    \
            MIXPREC_ACROSS_ROW_(rows, MIXPREC_E4M3)                                                                    \
            MIXPREC_ACROSS_ROW_(rows, MIXPREC_E5M2)                                                                    \
        default: break;                                                                                                \
        }                                                                                                              \
    }
#define MIXPREC_ACROSS_ROW_(rows, dtype)                                                                               \
    case dtype: mixprec_across_body_neon_(rows, dtype, columns, depth, a, b, stride, sums, starts); break;
MIXPREC_ACROSS_NEON_(1)
MIXPREC_ACROSS_NEON_(2)
MIXPREC_ACROSS_NEON_(4)
#undef MIXPREC_ACROSS_ROW_
#undef MIXPREC_ACROSS_NEON_

static void mixprec_across_neon_(size_t rows, mixprec_dtype type, size_t columns, size_t depth, const char *a,
                                 const char *b, size_t stride, char *sums, int starts) {
    (rows == 1   ? mixprec_across_1_neon_
     : rows == 2 ? mixprec_across_2_neon_
                 : mixprec_across_4_neon_)(type, columns, depth, a, b, stride, sums, starts);
}

/* ---- GEMM of bf16 with BFMMLA, of f16 with FMLAL ---- */

#if defined(MIXPREC_HAS_NEON_NATIVE_)
/* The intrinsics want this architecture at least. Nothing that must be inlined may be called where it is less than what
   the compiler was told. */
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#define MIXPREC_NEON_BF16_
#else
#define MIXPREC_NEON_BF16_ __attribute__((target("arch=armv8.2-a+bf16")))
#endif
#if defined(__ARM_FEATURE_FP16_FML)
#define MIXPREC_NEON_F16_
#else
#define MIXPREC_NEON_F16_ __attribute__((target("arch=armv8.2-a+fp16fml")))
#endif
#define MIXPREC_TILE_COLUMNS_NEON_ 12

/* t = or += the sums of a chunk. */
static void mixprec_add_sums_neon_(size_t rows, size_t columns, const float *sums, float *t, size_t ldt, int first) {
    size_t i, j;
    for (i = 0; i < rows; i++)
        for (j = 0; j < columns; j++) {
            float sum = sums[i * MIXPREC_TILE_COLUMNS_NEON_ + j];
            t[i * ldt + j] = first ? sum : t[i * ldt + j] + sum;
        }
}

/* Panels of 16-bit elements in groups of `group` along k: (i, p) stands at [(p / group * w + i) * group + p % group],
   with zeros to the end of the last group. Squares of 4 x 4, of which one side lies in lines in src, one in dst. */
MIXPREC_FORCE_INLINE_ void mixprec_pack_16_neon_(uint16_t *dst, size_t width, const uint16_t *src, size_t ld, int along,
                                                 size_t count, size_t depth, const size_t group) {
    const size_t line = 32; /* elements in a cache line: see mixprec_pack_across_neon_ */
    size_t from, i, p, q;
    for (from = 0; from < depth; from += line)
        for (i = 0; i < width; i += 4)
            for (p = from; p < depth && p < from + line; p += 4) {
                const size_t across = mixprec_min_(4, count > i ? count - i : 0), deep = mixprec_min_(4, depth - p);
                const size_t lines = along ? deep : across, there = along ? across : deep;
                uint16x4_t r[4], t[4];
                for (q = 0; q < 4; q++) {
                    uint16_t edge[4] = {0};
                    if (q < lines)
                        mixprec_copy_(edge, src + (along ? (p + q) * ld + i : (i + q) * ld + p), there * 2);
                    r[q] = vld1_u16(edge);
                }
                if (along == (group == 4)) {
                    t[0] = vzip1_u16(r[0], r[2]);
                    t[1] = vzip2_u16(r[0], r[2]);
                    t[2] = vzip1_u16(r[1], r[3]);
                    t[3] = vzip2_u16(r[1], r[3]);
                    r[0] = vzip1_u16(t[0], t[2]);
                    r[1] = vzip2_u16(t[0], t[2]);
                    r[2] = vzip1_u16(t[1], t[3]);
                    r[3] = vzip2_u16(t[1], t[3]);
                }
                for (q = 0; q < (group == 4 ? 4 : deep); q++)
                    vst1_u16(dst + (group == 4 ? p * width + (i + q) * 4 : (p + q) * width + i), r[q]);
            }
}

/* A group of bf16 has no room where there is one number of k: that panel holds fp32. */
static void mixprec_pack_bf16_neon_(void *dst, size_t width, const void *src, mixprec_dtype type, size_t ld, int along,
                                    size_t count, size_t depth, int wide) {
    if (depth == 1)
        mixprec_pack_neon_(dst, width, src, type, ld, along, count, depth, wide);
    else
        mixprec_pack_16_neon_((uint16_t *)dst, width, (const uint16_t *)src, ld, along, count, depth, 4);
}

static void mixprec_pack_f16_neon_(void *dst, size_t width, const void *src, mixprec_dtype type, size_t ld, int along,
                                   size_t count, size_t depth, int wide) {
    (void)type;
    (void)wide;
    mixprec_pack_16_neon_((uint16_t *)dst, width, (const uint16_t *)src, ld, along, count, depth, 1);
}

/* 8 x 12: an accumulator has 2 x 2 elements of C, and takes 2 rows of A and 2 columns of B, 4 deep. */
MIXPREC_NEON_BF16_ static void mixprec_tile_bf16_neon_(size_t rows, size_t columns, size_t depth, const void *a,
                                                       const void *b, const void *ahead, void *t, size_t ldt, int first,
                                                       int wide) {
    const uint16_t *x = (const uint16_t *)b, *y = (const uint16_t *)a;
    if (depth == 1) {
        mixprec_tile_neon_(rows, columns, depth, a, b, ahead, t, ldt, first, wide);
        return;
    }
    for (; depth; first = 0) {
        size_t chunk = depth < MIXPREC_GEMM_KBLOCK ? depth : MIXPREC_GEMM_KBLOCK, p;
        float sums[MIXPREC_TILE_ROWS_NEON_ * MIXPREC_TILE_COLUMNS_NEON_];
        float32x4_t s[4][6];
        int i, j;
        MIXPREC_UNROLL_ for (i = 0; i < 4; i++) MIXPREC_UNROLL_ for (j = 0; j < 6; j++) s[i][j] = vdupq_n_f32(0);
        for (p = 0; p < chunk; p += 4, x += 48, y += 32) {
            bfloat16x8_t row[4];
            MIXPREC_UNROLL_ for (i = 0; i < 4; i++) row[i] = vreinterpretq_bf16_u16(vld1q_u16(y + 8 * i));
            MIXPREC_UNROLL_ for (j = 0; j < 6; j++) {
                const bfloat16x8_t column = vreinterpretq_bf16_u16(vld1q_u16(x + 8 * j));
                MIXPREC_UNROLL_ for (i = 0; i < 4; i++) s[i][j] = vbfmmlaq_f32(s[i][j], row[i], column);
                __asm__("" ::: "memory"); /* gcc 12 would load all columns first, and spill */
            }
        }
        MIXPREC_UNROLL_ for (i = 0; i < 4; i++) MIXPREC_UNROLL_ for (j = 0; j < 6; j++) {
            vst1_f32(sums + 2 * i * MIXPREC_TILE_COLUMNS_NEON_ + 2 * j, vget_low_f32(s[i][j]));
            vst1_f32(sums + (2 * i + 1) * MIXPREC_TILE_COLUMNS_NEON_ + 2 * j, vget_high_f32(s[i][j]));
        }
        mixprec_add_sums_neon_(rows, columns, sums, (float *)t, ldt, first);
        depth -= chunk;
    }
}

/* 8 x 12. FMLAL rounds once, as FMA does: these are the canonical bits. */
MIXPREC_NEON_F16_ static void mixprec_tile_f16_neon_(size_t rows, size_t columns, size_t depth, const void *a,
                                                     const void *b, const void *ahead, void *t, size_t ldt, int first,
                                                     int wide) {
    const uint16_t *x = (const uint16_t *)b, *y = (const uint16_t *)a;
    (void)ahead;
    (void)wide;
    for (; depth; first = 0) {
        size_t chunk = depth < MIXPREC_GEMM_KBLOCK ? depth : MIXPREC_GEMM_KBLOCK, p;
        float sums[MIXPREC_TILE_ROWS_NEON_ * MIXPREC_TILE_COLUMNS_NEON_];
        float32x4_t s[MIXPREC_TILE_ROWS_NEON_][3];
        int i, j;
        MIXPREC_UNROLL_ for (i = 0; i < 8; i++) MIXPREC_UNROLL_ for (j = 0; j < 3; j++) s[i][j] = vdupq_n_f32(0);
        for (p = 0; p < chunk; p++, x += 12, y += 8) {
            const float16x8_t column = vreinterpretq_f16_u16(vld1q_u16(x)), row = vreinterpretq_f16_u16(vld1q_u16(y));
            const float16x8_t last = vreinterpretq_f16_u16(vcombine_u16(vld1_u16(x + 8), vdup_n_u16(0)));
#define MIXPREC_ROW_(i)                                                                                                \
    s[i][0] = vfmlalq_laneq_low_f16(s[i][0], column, row, i);                                                          \
    s[i][1] = vfmlalq_laneq_high_f16(s[i][1], column, row, i);                                                         \
    s[i][2] = vfmlalq_laneq_low_f16(s[i][2], last, row, i);
            MIXPREC_ROW_(0)
            MIXPREC_ROW_(1)
            MIXPREC_ROW_(2)
            MIXPREC_ROW_(3)
            MIXPREC_ROW_(4)
            MIXPREC_ROW_(5)
            MIXPREC_ROW_(6)
            MIXPREC_ROW_(7)
#undef MIXPREC_ROW_
        }
        MIXPREC_UNROLL_ for (i = 0; i < 8; i++) MIXPREC_UNROLL_ for (j = 0; j < 3; j++)
            vst1q_f32(sums + i * MIXPREC_TILE_COLUMNS_NEON_ + 4 * j, s[i][j]);
        mixprec_add_sums_neon_(rows, columns, sums, (float *)t, ldt, first);
        depth -= chunk;
    }
}
#endif
#endif /* MIXPREC_NO_GEMM */

/* ---- reductions and quantisation: see the section of AVX2. By llvm-mca's estimate a Neoverse N1 takes 0.6 cycles for
   an element of a sum of f32, where portable C takes 2.6. ---- */

#if !defined(MIXPREC_NO_REDUCE) || !defined(MIXPREC_NO_LAYERS)
/* Sixteen vectors of two lanes; otherwise as mixprec_reduce_as_avx2_. */
MIXPREC_FORCE_INLINE_ void mixprec_reduce_as_neon_(double *lanes, const char *x, const char *y, mixprec_dtype type,
                                                   size_t n, mixprec_reduction reduction, uint32_t magnitude,
                                                   int centered, double center) {
    const size_t size = mixprec_size_of_(type);
    float64x2_t sum[16];
    size_t i;
    int j, k;
    MIXPREC_UNROLL_ for (j = 0; j < 16; j++) sum[j] = vld1q_f64(lanes + 2 * j);
    for (i = 0; i < n; i += MIXPREC_LANES_)
        MIXPREC_UNROLL_ for (j = 0; j < 8; j++) {
            float32x4_t p = mixprec_load4_neon_(x + (i + 4 * (size_t)j) * size, type), q = p;
            if (reduction == MIXPREC_SUM)
                p = vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(p), vdupq_n_u32(magnitude)));
            if (reduction == MIXPREC_DOT)
                q = mixprec_load4_neon_(y + (i + 4 * (size_t)j) * size, type);
            MIXPREC_UNROLL_ for (k = 0; k < 2; k++) {
                float64x2_t term = k ? vcvt_high_f64_f32(p) : vcvt_f64_f32(vget_low_f32(p));
                float64x2_t *to = &sum[2 * j + k];
                if (reduction == MIXPREC_DOT)
                    *to = vfmaq_f64(*to, term, k ? vcvt_high_f64_f32(q) : vcvt_f64_f32(vget_low_f32(q)));
                else if (reduction == MIXPREC_SUM_SQUARES && !centered)
                    *to = vfmaq_f64(*to, term, term);
                else if (reduction == MIXPREC_SUM_SQUARES) {
                    term = vsubq_f64(term, vdupq_n_f64(center));
                    term = vmulq_f64(term, term);
                    MIXPREC_KEEP_(term);
                    *to = vaddq_f64(*to, term);
                } else
                    *to = vaddq_f64(*to, term);
            }
        }
    MIXPREC_UNROLL_ for (j = 0; j < 16; j++) vst1q_f64(lanes + 2 * j, sum[j]);
}

MIXPREC_REDUCE_(neon, )
#endif

#if !defined(MIXPREC_NO_REDUCE) || !defined(MIXPREC_NO_QUANT)
MIXPREC_FORCE_INLINE_ uint32x4_t mixprec_larger_neon_(uint32x4_t a, uint32x4_t b, size_t size) {
    if (size == 4)
        return vmaxq_u32(a, b);
    if (size == 2)
        return vreinterpretq_u32_u16(vmaxq_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b)));
    return vreinterpretq_u32_u8(vmaxq_u8(vreinterpretq_u8_u32(a), vreinterpretq_u8_u32(b)));
}

/* The last vectors of a block may look at elements for the second time. */
MIXPREC_FORCE_INLINE_ void mixprec_amax_as_neon_(uint32_t *amax, const char *x, mixprec_dtype type, const size_t size,
                                                 size_t n, size_t block) {
    const uint32x4_t sign = vdupq_n_u32(size == 4 ? 0x80000000u : size == 2 ? 0x80008000u : 0x80808080u);
    size_t count, i;
    int j;
    for (; block == 1 && n >= 4; n -= 4, x += 4 * size, amax += 4)
        vst1q_u32(amax, vmaxq_u32(vreinterpretq_u32_f32(vabsq_f32(mixprec_load4_neon_(x, type))), vld1q_u32(amax)));
    for (; n; n -= count, x += count * size, amax++) {
        const size_t bytes = (count = mixprec_min_(n, block)) * size;
        uint32x4_t largest[4];
        uint32_t result;
        if (bytes < 64) {
            mixprec_amax_c_(amax, x, type, n, block);
            return;
        }
        MIXPREC_UNROLL_ for (j = 0; j < 4; j++) largest[j] = vdupq_n_u32(0);
        for (i = 0; i < bytes; i += 64) {
            const uint8_t *from = (const uint8_t *)x + mixprec_min_(i, bytes - 64);
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) largest[j] =
                mixprec_larger_neon_(largest[j], vbicq_u32(vreinterpretq_u32_u8(vld1q_u8(from + 16 * j)), sign), size);
        }
        largest[0] = mixprec_larger_neon_(mixprec_larger_neon_(largest[0], largest[1], size),
                                          mixprec_larger_neon_(largest[2], largest[3], size), size);
        result = size == 4   ? vmaxvq_u32(largest[0])
                 : size == 2 ? vmaxvq_u16(vreinterpretq_u16_u32(largest[0]))
                             : vmaxvq_u8(vreinterpretq_u8_u32(largest[0]));
        mixprec_larger_amax_(amax, result, type);
    }
}
MIXPREC_AMAX_(neon, )
#endif

#ifndef MIXPREC_NO_QUANT
static void mixprec_scale_blocks_neon_(float *dst, const float *src, size_t n, size_t block, size_t first,
                                       const float *factors) {
    size_t i, end;
    for (i = 0; block == 1 && i + 4 <= n; i += 4, factors += 4)
        vst1q_f32(dst + i, vmulq_f32(vld1q_f32(src + i), vld1q_f32(factors)));
    for (; i < n; first = 0, factors++) {
        for (end = i + mixprec_min_(n - i, block - first); i + 4 <= end; i += 4)
            vst1q_f32(dst + i, vmulq_n_f32(vld1q_f32(src + i), *factors));
        for (; i < end; i++)
            dst[i] = mixprec_times_f32_(src[i], *factors);
    }
}

MIXPREC_FORCE_INLINE_ void mixprec_narrow_as_neon_(uint8_t *dst, mixprec_dtype dst_type, const char *src,
                                                   mixprec_dtype src_type, size_t n, size_t block,
                                                   const float *factors) {
    const size_t size = mixprec_size_of_(src_type);
    size_t i, end;
    int j;
    for (i = 0; i < n; factors++) {
        const float32x4_t factor = vdupq_n_f32(*factors);
        for (end = i + mixprec_min_(n - i, block); i < end; i += 16) {
            uint32x4_t bits[4];
            MIXPREC_UNROLL_ for (j = 0; j < 4; j++) bits[j] = vreinterpretq_u32_f32(
                vmulq_f32(mixprec_load4_neon_(src + (i + 4 * (size_t)j) * size, src_type), factor));
            vst1q_u8(dst + i, mixprec_encode_fp8_neon_(bits, dst_type, 1, 1));
        }
    }
}

/* For one dtype of destinations. */
MIXPREC_FORCE_INLINE_ void mixprec_narrow_to_neon_(void *dst, mixprec_dtype dst_type, const void *src,
                                                   mixprec_dtype src_type, size_t n, size_t block,
                                                   const float *factors) {
    uint8_t *to = (uint8_t *)dst;
    const char *from = (const char *)src;
    if (src_type == MIXPREC_F32)
        mixprec_narrow_as_neon_(to, dst_type, from, MIXPREC_F32, n, block, factors);
    else if (src_type == MIXPREC_F16)
        mixprec_narrow_as_neon_(to, dst_type, from, MIXPREC_F16, n, block, factors);
    else
        mixprec_narrow_as_neon_(to, dst_type, from, MIXPREC_BF16, n, block, factors);
}
static void mixprec_narrow_neon_(void *dst, mixprec_dtype dst_type, const void *src, mixprec_dtype src_type, size_t n,
                                 size_t block, const float *factors, uint32_t *amax, int around) {
    (void)around;
    if (amax)
        mixprec_amax_neon_(amax, src, src_type, n, n);
    if (dst_type == MIXPREC_E4M3)
        mixprec_narrow_to_neon_(dst, MIXPREC_E4M3, src, src_type, n, block, factors);
    else
        mixprec_narrow_to_neon_(dst, MIXPREC_E5M2, src, src_type, n, block, factors);
}

/* A quotient of fp32 numbers is rounded as by way of f64. */
static void mixprec_block_scales_neon_(float *factors, float *inverses, const uint32_t *amax, size_t n, float max,
                                       int power_of_two) {
    const uint32x4_t largest = vdupq_n_u32(0x7F7FFFFF), one = vdupq_n_u32(0x3F800000);
    const uint32x4_t keep = vdupq_n_u32(power_of_two ? 0x7F800000 : 0xFFFFFFFF);
    size_t i;
    for (i = 0; i < n; i += 4) {
        uint32x4_t bits = vld1q_u32(amax + i), factor;
        uint32x4_t usable = vcltq_u32(vsubq_u32(bits, vdupq_n_u32(1)), largest); /* finite and positive */
        factor = vreinterpretq_u32_f32(vdivq_f32(vdupq_n_f32(max), vreinterpretq_f32_u32(bits)));
        factor = vminq_u32(factor, largest); /* not below 2^-126: `max` is at least 6 */
        factor = vandq_u32(vbslq_u32(usable, factor, one), keep);
        vst1q_f32(factors + i, vreinterpretq_f32_u32(factor));
        vst1q_f32(inverses + i, vdivq_f32(vdupq_n_f32(1.0f), vreinterpretq_f32_u32(factor)));
    }
}
#endif

#endif /* MIXPREC_HAS_NEON_ */

/* ================================================================================================================== */
/* [CONVERT] Arrays from any type to any type                                                                         */
/* ================================================================================================================== */

/* load and store for any n: kernels never read or write beyond the arrays. Where nothing is overwritten that is read
   again, what is left of a unit is done with as many elements before it as fill one; else it goes through a buffer, but
   for so few elements that portable C is faster. */
#define MIXPREC_SINGLES_ 8
static int mixprec_reaches_back_(const void *dst, const void *src, mixprec_dtype type, size_t n) {
    return n > MIXPREC_UNIT_ && dst != src && type != MIXPREC_E2M1; /* half bytes */
}
static void mixprec_load_(const mixprec_kernels_ *kernels, float *dst, const void *src, mixprec_dtype type, size_t n) {
    size_t whole = n / MIXPREC_UNIT_ * MIXPREC_UNIT_;
    if (type == MIXPREC_F32) {
        if (dst != src)
            mixprec_copy_(dst, src, n * sizeof *dst);
        return;
    }
    if (whole)
        kernels->load(dst, src, type, whole, 0);
    if (n != whole && mixprec_reaches_back_(dst, src, type, n)) {
        whole = n - MIXPREC_UNIT_;
        kernels->load(dst + whole, (const char *)src + mixprec_bytes_of_(type, whole), type, MIXPREC_UNIT_, 0);
    } else if (n - whole < MIXPREC_SINGLES_) {
        mixprec_load_c_(dst + whole, (const char *)src + mixprec_bytes_of_(type, whole), type, n - whole, 0);
    } else {
        double in[MIXPREC_UNIT_]; /* as wide as the widest type */
        float out[MIXPREC_UNIT_];
        mixprec_clear_(in, mixprec_bytes_of_(type, MIXPREC_UNIT_));
        mixprec_copy_(in, (const char *)src + mixprec_bytes_of_(type, whole), mixprec_bytes_of_(type, n - whole));
        kernels->load(out, in, type, MIXPREC_UNIT_, 0);
        mixprec_copy_(dst + whole, out, (n - whole) * sizeof *out);
    }
}

static void mixprec_store_(const mixprec_kernels_ *kernels, void *dst, mixprec_dtype type, const float *src, size_t n,
                           const mixprec_how_ *how) {
    size_t whole = n / MIXPREC_UNIT_ * MIXPREC_UNIT_;
    mixprec_how_ rest;
    char *to;
    if (type == MIXPREC_F32) {
        if (dst != src)
            mixprec_copy_(dst, src, n * sizeof *src);
        return;
    }
    if (whole)
        kernels->store(dst, type, src, whole, how);
    if (n == whole)
        return;
    if (mixprec_reaches_back_(dst, src, type, n))
        whole = n - MIXPREC_UNIT_;
    /* Not before it is needed: loads of several members that have just been written one by one wait until all stores
       before have reached L1 (in cache, SGD took 2.4 times as long on Emerald Rapids). */
    rest = *how;
    rest.index += whole;
    to = (char *)dst + mixprec_bytes_of_(type, whole);
    if (n - whole == MIXPREC_UNIT_) {
        kernels->store(to, type, src + whole, MIXPREC_UNIT_, &rest);
    } else if (n - whole < MIXPREC_SINGLES_ && how->round != MIXPREC_ROUND_STOCHASTIC) {
        mixprec_store_c_(to, type, src + whole, n - whole, &rest);
    } else if (n != whole) {
        float in[MIXPREC_UNIT_];
        double out[MIXPREC_UNIT_];
        mixprec_clear_(in, sizeof in);
        mixprec_copy_(in, src + whole, (n - whole) * sizeof *in);
        kernels->store(out, type, in, MIXPREC_UNIT_, &rest);
        mixprec_copy_(to, out, mixprec_bytes_of_(type, n - whole));
    }
}

static void mixprec_load_f64_odd_(const mixprec_kernels_ *kernels, float *dst, const double *src, size_t n) {
    size_t whole = n / MIXPREC_UNIT_ * MIXPREC_UNIT_;
    if (whole)
        kernels->load_odd(dst, src, whole);
    if (n != whole)
        mixprec_load_odd_c_(dst + whole, src + whole, n - whole);
}

/* Inf in what was widened, or rounded to fp32, by the largest number: MIXPREC_OVERFLOW_SATURATE. */
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

/* At most MIXPREC_BLOCK_ doubles to a narrower type, rounded once. */
static void mixprec_store_f64_(const mixprec_kernels_ *kernels, void *dst, mixprec_dtype type, const double *src,
                               size_t n, const mixprec_how_ *how) {
    MIXPREC_ASSERT(n <= MIXPREC_BLOCK_);
    if (type == MIXPREC_F32 && how->round == MIXPREC_ROUND_NEAREST_EVEN &&
        how->overflow != MIXPREC_OVERFLOW_SATURATE_KEEP_INF) {
        mixprec_load_(kernels, (float *)dst, src, MIXPREC_F64, n);
        if (how->overflow == MIXPREC_OVERFLOW_SATURATE)
            mixprec_saturate_inf_(dst, type, n);
    } else if (type == MIXPREC_F32 || how->round == MIXPREC_ROUND_STOCHASTIC) {
        /* Rounding to odd keeps too few bits for these. */
        uint32_t codes[MIXPREC_BLOCK_ + 1], words[2];
        size_t i;
        for (i = 0; i < n; i++)
            codes[i] =
                mixprec_encode(src[i], type, how->round, how->overflow, mixprec_bits_for_(words, how, how->index, i));
        if (type == MIXPREC_F32)
            mixprec_copy_(dst, codes, n * sizeof *codes);
        else
            mixprec_put_codes_(dst, type, codes, n);
    } else {
        float odd[MIXPREC_BLOCK_];
        mixprec_load_f64_odd_(kernels, odd, src, n);
        mixprec_store_(kernels, dst, type, odd, n, how);
    }
}

static void mixprec_scale_f32_(float *dst, const float *src, size_t n, float factor) {
    size_t i;
    for (i = 0; i < n; i++)
        dst[i] = mixprec_times_f32_(src[i], factor);
}
static void mixprec_scale_(const mixprec_kernels_ *kernels, float *dst, const float *src, size_t n, float factor) {
    size_t whole = n / MIXPREC_UNIT_ * MIXPREC_UNIT_;
    if (whole)
        kernels->unscale(dst, src, whole, factor, 0);
    mixprec_scale_f32_(dst + whole, src + whole, n - whole, factor);
}
static void mixprec_scale_f64_(double *dst, const double *src, size_t n, double factor) {
    size_t i;
    for (i = 0; i < n; i++)
        dst[i] = mixprec_times_f64_(src[i], factor);
}

static double mixprec_largest_of_(mixprec_dtype type) {
    const mixprec_layout_ *layout = mixprec_layout_of_(type);
    return mixprec_decode(layout ? layout->max_code : type == MIXPREC_I8 ? 127 : 0xFE, type);
}

/* The whole units by one kernel, if one has the pair and, of narrowing, no element is NaN or overflows; else 0. Returns
   how many. */
static size_t mixprec_convert_fused_(const mixprec_kernels_ *kernels, void *dst, mixprec_dtype dst_type,
                                     const void *src, mixprec_dtype src_type, size_t n, const mixprec_how_ *how,
                                     float scale) {
    const size_t whole = n / MIXPREC_UNIT_ * MIXPREC_UNIT_;
    uint32_t amax = 0;
    if (!whole || dst == src || how->round != MIXPREC_ROUND_NEAREST_EVEN)
        return 0;
    if (kernels->widens >> src_type & 1 && mixprec_is_f32_or_16_bits_(dst_type) &&
        how->overflow == MIXPREC_OVERFLOW_IEEE) {
        kernels->widen(dst, dst_type, src, src_type, whole, whole, &scale);
        return whole;
    }
    if (!(kernels->narrows >> dst_type & 1) || !mixprec_is_f32_or_16_bits_(src_type))
        return 0;
    kernels->narrow(dst, dst_type, src, src_type, whole, whole, &scale, &amax, 0);
    if (amax >= 0x7F800000u || (double)mixprec_f32_from_bits_(amax) * (double)scale > mixprec_largest_of_(dst_type))
        return 0;
    return whole;
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
    if (!scaled && how.overflow == MIXPREC_OVERFLOW_IEEE && dst_type == MIXPREC_F32 &&
        (src_type != MIXPREC_F64 || how.round == MIXPREC_ROUND_NEAREST_EVEN)) {
        mixprec_load_(kernels, (float *)dst, src, src_type, n);
        return;
    }
    if (!scaled && src_type == MIXPREC_F32 && (dst_type != MIXPREC_F64 || how.overflow != MIXPREC_OVERFLOW_SATURATE)) {
        mixprec_store_(kernels, dst, dst_type, (const float *)src, n, &how);
        return;
    }
    for (i = 0; i < n; i += count) {
        const char *from = (const char *)src + mixprec_bytes_of_(src_type, i);
        char *to = (char *)dst + mixprec_bytes_of_(dst_type, i);
        how.index = options->index + i;
        if (src_type == MIXPREC_F64) {
            double product[MIXPREC_BLOCK_];
            const double *wide = (const double *)(const void *)from;
            count = mixprec_min_(n - i, MIXPREC_BLOCK_);
            if (scaled) {
                mixprec_scale_f64_(product, wide, count, (double)scale);
                wide = product;
            }
            if (dst_type == MIXPREC_F64)
                mixprec_copy_(to, wide, count * sizeof *wide);
            else
                mixprec_store_f64_(kernels, to, dst_type, wide, count, &how);
        } else {
            float block[MIXPREC_LONG_BLOCK_], *room = dst_type == MIXPREC_F32 ? (float *)(void *)to : block;
            const float *x = (const float *)(const void *)from;
            count = mixprec_convert_fused_(kernels, to, dst_type, from, src_type,
                                           mixprec_min_(n - i, MIXPREC_LONG_BLOCK_), &how, scale);
            if (count)
                continue;
            count = mixprec_min_(n - i, MIXPREC_LONG_BLOCK_);
            if (src_type != MIXPREC_F32) {
                mixprec_load_(kernels, room, from, src_type, count);
                x = room;
            }
            if (scaled) {
                mixprec_scale_(kernels, room, x, count, scale);
                x = room;
            }
            mixprec_store_(kernels, to, dst_type, x, count, &how);
        }
        if ((dst_type == MIXPREC_F32 || dst_type == MIXPREC_F64) && how.overflow == MIXPREC_OVERFLOW_SATURATE)
            mixprec_saturate_inf_(to, dst_type, count);
    }
}

/* Is what a call writes, of `bytes` that it reads and writes, better written around the caches? What is larger than
   they are would leave them anyway, and its lines are not read first. On Zen 5 with 32 MB of L3 that takes 7 to 20 %
   less from 64 MB on; it breaks even at 32 MB; in L3 it takes twice as long. On Emerald Rapids, from DRAM, 25 % less to
   16 bits and 40 to 55 % to f32. */
#define MIXPREC_AROUND_BYTES_ ((size_t)64 << 20)
MIXPREC_INLINE int mixprec_streams_(const mixprec_kernels_ *kernels, size_t bytes) {
#if defined(MIXPREC_HAS_AVX2_)
    return kernels->stream && bytes >= MIXPREC_AROUND_BYTES_ && mixprec_features_() & MIXPREC_UNIT_AROUND_;
#else
    (void)kernels;
    (void)bytes;
    return 0;
#endif
}

/* Are arrays that a call of `bytes` updates better prefetched? Where that is known, and they may well be in DRAM: on
   Emerald Rapids steps and accumulation take 12 to 17 % less there, in L3 8 to 16 % more. On Zen 4 nothing changes. */
#define MIXPREC_DRAM_BYTES_ ((size_t)16 << 20)
MIXPREC_INLINE int mixprec_in_dram_(size_t bytes) {
#if defined(MIXPREC_HAS_AVX2_)
    return bytes >= MIXPREC_DRAM_BYTES_ &&
           (mixprec_features_() & (MIXPREC_UNIT_AROUND_ | MIXPREC_UNIT_AMD_)) == MIXPREC_UNIT_AROUND_;
#else
    (void)bytes;
    return 0;
#endif
}

/* Sums and products over memory, each a loop of its own, so that no compiler can contract them. */
MIXPREC_INLINE void mixprec_sums_f32_(float *sum, const float *x, const float *y, size_t n) {
    size_t i, j;
    for (i = 0; i + 16 <= n; i += 16) {
        /* gcc -O2 makes vectors of what has a constant length and needs no check for overlap */
        MIXPREC_INDEPENDENT_
        for (j = i; j < i + 16; j++)
            sum[j] = x[j] + y[j];
    }
    for (; i < n; i++)
        sum[i] = x[i] + y[i];
}
MIXPREC_INLINE void mixprec_add_f32_(float *x, const float *y, size_t n) {
    mixprec_sums_f32_(x, x, y, n);
}
MIXPREC_INLINE void mixprec_add_f64_(double *x, const double *y, size_t n) {
    size_t i;
    for (i = 0; i < n; i++)
        x[i] += y[i];
}

#ifndef MIXPREC_NO_CONVERT
/* As mixprec_convert_run_, of different arrays, the elements up to the last whole MIXPREC_UNIT_, if one kernel does it
   all and may write around the caches itself: returns how many, else 0. Line by line, for bursts from a buffer keep
   loads waiting: from DRAM Emerald Rapids takes 20 to 25 % less to 16 and 8 bits and 5 to 25 % less to f32 and f64,
   Zen 4 10 to 35 % less with AVX-512 and up to 25 % less with AVX2, where some pairs gain nothing. */
static size_t mixprec_convert_lines_(const mixprec_kernels_ *kernels, char *dst, mixprec_dtype dst_type,
                                     const char *src, mixprec_dtype src_type, size_t n, const mixprec_how_ *options,
                                     float scale) {
    const size_t bytes = (0 - (uintptr_t)dst) % MIXPREC_ALIGN_;
    const size_t head = bytes * MIXPREC_UNIT_ / mixprec_bytes_of_(dst_type, MIXPREC_UNIT_);
    const size_t whole = (n - head) / MIXPREC_UNIT_ * MIXPREC_UNIT_;
    const char *from = src + mixprec_bytes_of_(src_type, head);
    mixprec_how_ how = *options;
    if (mixprec_f32_bits_(scale) != 0x3F800000u || how.round != MIXPREC_ROUND_NEAREST_EVEN ||
        mixprec_bytes_of_(dst_type, head) != bytes || (src_type == MIXPREC_E2M1 && head % 2))
        return 0;
    if (dst_type == MIXPREC_F32 && how.overflow == MIXPREC_OVERFLOW_IEEE) {
        mixprec_convert_run_(kernels, dst, dst_type, src, src_type, head, &how, scale);
        kernels->load((float *)(void *)(dst + bytes), from, src_type, whole, 1);
    } else if (src_type == MIXPREC_F32 && dst_type != MIXPREC_E8M0 &&
               (dst_type != MIXPREC_F64 || how.overflow == MIXPREC_OVERFLOW_IEEE)) {
        mixprec_convert_run_(kernels, dst, dst_type, src, src_type, head, &how, scale);
        how.around = 1;
        kernels->store(dst + bytes, dst_type, (const float *)(const void *)from, whole, &how);
    } else
        return 0;
    return head + whole;
}

/* As mixprec_convert_run_, of different arrays; what mixprec_convert_lines_ leaves goes by way of a buffer. After its
   own work each block asks for the next one's source, no more: on Zen 4 fp8 from f32 took 1.6 to 1.7 times as long
   where the request was a quarter of a block further ahead, perhaps as L2 was then not asked for lines in the order of
   their addresses; 1.1 times where it reached L1. On Emerald Rapids a page further ahead is better (to 16 bits 10 to
   15 %, fp8 5 %), but no request at all where stochastic rounding takes longer than memory: it delays that (10 to
   25 %). Blocks of 512 bytes take 10 to 25 % longer to f32, those of 2048 10 to 35 % to fp8. */
#define MIXPREC_AROUND_BLOCK_ 1024
static void mixprec_convert_around_(const mixprec_kernels_ *kernels, char *dst, mixprec_dtype dst_type, const char *src,
                                    mixprec_dtype src_type, size_t n, const mixprec_how_ *options, float scale) {
    const size_t most = mixprec_min_(MIXPREC_AROUND_BLOCK_ / mixprec_bytes_of_(dst_type, MIXPREC_UNIT_),
                                     4 * MIXPREC_AROUND_BLOCK_ / mixprec_bytes_of_(src_type, MIXPREC_UNIT_)) *
                        MIXPREC_UNIT_;
    double room[(MIXPREC_AROUND_BLOCK_ + MIXPREC_ALIGN_) / sizeof(double)];
    char *block = mixprec_line_(room);
    mixprec_how_ how = *options;
    const int stochastic = how.round == MIXPREC_ROUND_STOCHASTIC;
    size_t i = mixprec_convert_lines_(kernels, dst, dst_type, src, src_type, n, options, scale), count;
    for (; i < n; i += count) {
        const char *from = src + mixprec_bytes_of_(src_type, i);
        count = mixprec_min_(n - i, most);
        how.index = options->index + i;
        mixprec_convert_run_(kernels, block, dst_type, from, src_type, count, &how, scale);
        kernels->stream(dst + mixprec_bytes_of_(dst_type, i), block, mixprec_bytes_of_(dst_type, count),
                        from + mixprec_bytes_of_(src_type, count), stochastic ? 0 : mixprec_bytes_of_(src_type, count));
    }
    kernels->fence();
}

/* x^2 + sum with one rounding: the sum in f64, where the square is exact, rounded to odd, then to fp32. Both are at
   least zero. */
static float mixprec_add_square_(float x, float sum) {
    double square = (double)x * (double)x, large, less, result, lost;
    large = square > (double)sum ? square : (double)sum;
    less = square > (double)sum ? (double)sum : square;
    result = large + less;
    MIXPREC_KEEP_(result);
    lost = result - large;
    MIXPREC_KEEP_(lost);
    lost = less - lost;
    if (mixprec_f64_bits_(lost) << 1) /* of the two beside the sum, that with an odd last bit */
        result = mixprec_f64_from_bits_((mixprec_f64_bits_(result) - (mixprec_f64_bits_(lost) >> 63)) | 1);
    return (float)result;
}

/* Squares apart from sums, through memory: no compiler contracts or reorders them. */
MIXPREC_NOINLINE_ void mixprec_square_f64_(double *x, size_t n) {
    size_t i;
    for (i = 0; i < n; i++)
        x[i] *= x[i];
}

/* Squares of MIXPREC_UNIT_ elements to the sums of their lanes: in f64, or, where single is not NULL, to that. */
static void mixprec_tally_squares_(double *lanes, float *single, double *x) {
    size_t i;
    if (single)
        for (i = 0; i < MIXPREC_UNIT_; i++) {
            MIXPREC_ROUNDED_ float value = (float)x[i];
            float *sum = single + i % (2 * MIXPREC_TALLY_LANES_);
            MIXPREC_ROUNDED_ float next = mixprec_add_square_(value, *sum);
            *sum = next;
        }
    else {
        mixprec_square_f64_(x, MIXPREC_UNIT_);
        for (i = 0; i < MIXPREC_UNIT_; i += MIXPREC_TALLY_LANES_)
            mixprec_add_f64_(lanes, x + i, MIXPREC_TALLY_LANES_);
    }
}

/* At most MIXPREC_UNIT_ elements, from f64 or, where single is not NULL, fp32, in any mode. `sums`: NULL, or the lanes'
   sums of signal, then noise, in fp32. */
static void mixprec_tally_unit_(const mixprec_kernels_ *kernels, mixprec_tally_ *t, const double *wide,
                                const float *single, size_t count, mixprec_dtype to, const mixprec_how_ *how,
                                float *sums) {
    static const mixprec_how_ exact = {MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0, 0, 0};
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
    mixprec_tally_squares_(t->signal, sums, x);
    mixprec_tally_squares_(t->noise, sums ? sums + 2 * MIXPREC_TALLY_LANES_ : NULL, q);
}

/* At most one group. */
static void mixprec_tally_group_(const mixprec_kernels_ *kernels, mixprec_tally_ *t, const float *x, size_t n,
                                 mixprec_dtype to, mixprec_how_ how) {
    float sums[4 * MIXPREC_TALLY_LANES_] = {0};
    uint32_t amax = 0;
    int narrow;
    size_t i;
    for (i = 0; i < n; i++) {
        uint32_t bits = mixprec_f32_bits_(x[i]) & 0x7FFFFFFFu;
        amax = bits < 0x7F800000u && bits > amax ? bits : amax;
    }
    narrow = amax == 0 || (amax >= MIXPREC_SQUARES_FROM_ && amax < MIXPREC_SQUARES_BELOW_);
    for (i = 0; i < n; i += MIXPREC_UNIT_) {
        mixprec_tally_unit_(kernels, t, NULL, x + i, mixprec_min_(n - i, MIXPREC_UNIT_), to, &how,
                            narrow ? sums : NULL);
        how.index += MIXPREC_UNIT_;
    }
    for (i = 0; narrow && i < MIXPREC_TALLY_LANES_; i++) {
        MIXPREC_ROUNDED_ float signal = sums[i] + sums[i + 16], noise = sums[i + 32] + sums[i + 48];
        t->signal[i] += (double)signal;
        t->noise[i] += (double)noise;
    }
}

/* From f32, f16 or bf16, n a multiple of MIXPREC_TALLY_GROUP_ or up to the array's end. */
static void mixprec_tally_floats_(const mixprec_kernels_ *kernels, mixprec_tally_ *t, const void *src,
                                  mixprec_dtype type, size_t n, mixprec_dtype to, mixprec_how_ how) {
    const int fast = how.round == MIXPREC_ROUND_NEAREST_EVEN && kernels->tally && t->shift;
    const char *from = (const char *)src;
    while (n) {
        size_t count = 0;
        if (fast && n >= MIXPREC_TALLY_GROUP_)
            count = kernels->tally(t, from, type, n / MIXPREC_TALLY_GROUP_ * MIXPREC_TALLY_GROUP_);
        if (!count) {
            float group[MIXPREC_TALLY_GROUP_] = {0};
            count = mixprec_min_(n, MIXPREC_TALLY_GROUP_);
            mixprec_load_(kernels, group, from, type, count);
            /* A last group has zeros after it. */
            if (fast && n < MIXPREC_TALLY_GROUP_ && kernels->tally(t, group, MIXPREC_F32, MIXPREC_TALLY_GROUP_)) {
                t->stats->zero -= MIXPREC_TALLY_GROUP_ - n;
                t->stats->exponents[0] -= MIXPREC_TALLY_GROUP_ - n;
            } else
                mixprec_tally_group_(kernels, t, group, count, to, how);
        }
        from += mixprec_bytes_of_(type, count);
        n -= count;
        how.index += count;
    }
}

static void mixprec_tally_doubles_(const mixprec_kernels_ *kernels, mixprec_tally_ *t, const double *x, size_t n,
                                   mixprec_dtype to, mixprec_how_ how) {
    const int fast = how.round == MIXPREC_ROUND_NEAREST_EVEN && kernels->tally_wide && t->wide;
    while (n) {
        size_t count = 0;
        if (fast && n >= MIXPREC_UNIT_)
            count = kernels->tally_wide(t, x, n / MIXPREC_UNIT_ * MIXPREC_UNIT_);
        if (!count) {
            count = mixprec_min_(n, MIXPREC_UNIT_);
            mixprec_tally_unit_(kernels, t, x, NULL, count, to, &how, NULL);
        }
        x += count;
        n -= count;
        how.index += count;
    }
}

/* The thresholds of a format. Shift is 0 where the kernels from fp32 do not know it: f32, E8M0, int8. */
static void mixprec_tally_format_(mixprec_tally_ *t, mixprec_dtype to) {
    const mixprec_layout_ *layout = mixprec_layout_of_(to);
    double max = mixprec_largest_of_(to);
    double min_normal = layout ? mixprec_decode(1u << layout->mantissa_bits, to) : 0;
    double half_step = layout ? mixprec_decode(1, to) * 0.5 : 0;
    t->max = (int32_t)mixprec_f32_bits_((float)max);
    t->min_normal = (int32_t)mixprec_f32_bits_((float)min_normal);
    t->shift = layout ? 23 - layout->mantissa_bits : 0;
    t->wide = layout != NULL;
    t->wide_vanishing = half_step;
    t->wide_normal = min_normal - half_step;
    if (t->shift) {
        t->vanishing = (int32_t)mixprec_f32_bits_((float)half_step);             /* ties to zero */
        t->normal = (int32_t)mixprec_f32_bits_((float)(min_normal - half_step)); /* ties to the normal number */
    }
}

/* Elements at a time from types that the kernels do not read. */
#ifdef MIXPREC_NO_STDLIB
#define MIXPREC_TALLY_BUFFER_ MIXPREC_TALLY_GROUP_
#else
#define MIXPREC_TALLY_BUFFER_ 1024
#endif

MIXPREC_NOINLINE_ void mixprec_stats_run_(const mixprec_kernels_ *kernels, mixprec_statistics *stats, const void *src,
                                          mixprec_dtype src_type, size_t n, mixprec_dtype to,
                                          const mixprec_how_ *options, float scale) {
    const uint64_t infinity = (uint64_t)0x7FF << 52;
    const int unscaled = mixprec_f32_bits_(scale) == 0x3F800000u;
    mixprec_tally_ t = MIXPREC_ZERO_;
    mixprec_how_ how = *options;
    size_t i, count;
    t.stats = stats;
    t.min_nonzero = infinity;
    mixprec_tally_format_(&t, to);
#if defined(MIXPREC_HAS_AVX2_)
    t.exponents = (uint8_t *)mixprec_line_(t.room);
    t.window = 127 - 13;
#endif
    how.overflow = MIXPREC_OVERFLOW_SATURATE;
    if (unscaled && mixprec_is_f32_or_16_bits_(src_type))
        mixprec_tally_floats_(kernels, &t, src, src_type, n, to, how);
    else if (unscaled && src_type == MIXPREC_F64)
        mixprec_tally_doubles_(kernels, &t, (const double *)src, n, to, how);
    else
        for (i = 0; i < n; i += count) {
            const char *from = (const char *)src + mixprec_bytes_of_(src_type, i);
            how.index = options->index + i;
            if (src_type == MIXPREC_F64) {
                double product[MIXPREC_BLOCK_];
                count = mixprec_min_(n - i, MIXPREC_BLOCK_);
                mixprec_scale_f64_(product, (const double *)(const void *)from, count, (double)scale);
                mixprec_tally_doubles_(kernels, &t, product, count, to, how);
            } else {
                float x[MIXPREC_TALLY_BUFFER_];
                count = mixprec_min_(n - i, MIXPREC_TALLY_BUFFER_);
                mixprec_load_(kernels, x, from, src_type, count);
                if (!unscaled)
                    mixprec_scale_(kernels, x, x, count, scale);
                mixprec_tally_floats_(kernels, &t, x, MIXPREC_F32, count, to, how);
            }
        }
    if (kernels->tally)
        kernels->tally(&t, NULL, MIXPREC_F32, 0);
    for (count = MIXPREC_TALLY_LANES_ / 2; count; count /= 2) {
        mixprec_add_f64_(t.signal, t.signal + count, count);
        mixprec_add_f64_(t.noise, t.noise + count, count);
    }
    stats->signal = t.signal[0];
    stats->noise = t.noise[0];
    stats->amax = mixprec_f64_from_bits_(t.amax);
    stats->min_nonzero = mixprec_f64_from_bits_(t.min_nonzero == infinity ? 0 : t.min_nonzero);
    stats->count = n;
}
#endif

/* ================================================================================================================== */
/* [REDUCE] Sums, norms, the largest magnitude                                                                        */
/* ================================================================================================================== */

#if !defined(MIXPREC_NO_REDUCE) || !defined(MIXPREC_NO_QUANT)
/* The fp32 bits of the largest magnitude. */
MIXPREC_NOINLINE_ uint32_t mixprec_amax_run_(const mixprec_kernels_ *kernels, const void *x, mixprec_dtype type,
                                             size_t n) {
    uint32_t amax = 0;
    if (n)
        kernels->amax(&amax, x, type, n, n);
    return amax;
}
#endif

#if !defined(MIXPREC_NO_REDUCE) || !defined(MIXPREC_NO_LAYERS)
/* The sum of one block of at most MIXPREC_REDUCE_BLOCK elements. */
MIXPREC_NOINLINE_ double mixprec_reduce_block_(const mixprec_kernels_ *kernels, mixprec_reduction reduction,
                                               const void *x, mixprec_dtype x_type, const void *y, mixprec_dtype y_type,
                                               double center, size_t n) {
    double lanes[MIXPREC_LANES_] = {0};
    /* The kernels read f32, f16 and bf16; they are faster on fp8 that has become fp32 many numbers at a time. */
    const int plain = mixprec_size_of_(x_type) >= 2;
    size_t i, step;
    if (plain && (reduction == MIXPREC_DOT ? x_type == y_type : x_type == MIXPREC_F32 || mixprec_is_zero_(center)))
        kernels->reduce(lanes, x, y, x_type, n, reduction, center);
    else
        for (i = 0; i < n; i += step) {
            float block_x[MIXPREC_BLOCK_], block_y[MIXPREC_BLOCK_];
            step = mixprec_min_(n - i, MIXPREC_BLOCK_);
            mixprec_load_(kernels, block_x, (const char *)x + i * mixprec_size_of_(x_type), x_type, step);
            if (reduction == MIXPREC_DOT)
                mixprec_load_(kernels, block_y, (const char *)y + i * mixprec_size_of_(y_type), y_type, step);
            kernels->reduce(lanes, block_x, reduction == MIXPREC_DOT ? block_y : NULL, MIXPREC_F32, step, reduction,
                            center);
        }
    return mixprec_lanes_sum_(lanes);
}

/* Each block's sum to partials, or, where that is NULL, their sum as the result. */
MIXPREC_NOINLINE_ double mixprec_reduce_run_(const mixprec_kernels_ *kernels, double *partials,
                                             mixprec_reduction reduction, const void *x, mixprec_dtype x_type,
                                             const void *y, mixprec_dtype y_type, double center, size_t n) {
    size_t x_size = mixprec_size_of_(x_type), y_size = reduction == MIXPREC_DOT ? mixprec_size_of_(y_type) : 0, i;
    double sum = 0;
    for (i = 0; i < n; i += MIXPREC_REDUCE_BLOCK) {
        double block = mixprec_reduce_block_(kernels, reduction, (const char *)x + i * x_size, x_type,
                                             y ? (const char *)y + i * y_size : NULL, y_type, center,
                                             mixprec_min_(n - i, MIXPREC_REDUCE_BLOCK));
        if (partials)
            partials[i / MIXPREC_REDUCE_BLOCK] = block;
        else
            sum += block;
    }
    return sum;
}

#endif

#ifndef MIXPREC_NO_REDUCE
MIXPREC_NOINLINE_ double mixprec_root_run_(double x) {
    return mixprec_sqrt_f64_(x);
}

MIXPREC_NOINLINE_ double mixprec_combine_run_(const double *partials, size_t count) {
    double sum = 0;
    size_t i;
    for (i = 0; i < count; i++)
        sum += partials[i];
    return sum;
}

/* Either may be NULL. */
MIXPREC_NOINLINE_ void mixprec_mean_variance_run_(const mixprec_kernels_ *kernels, double *mean, double *variance,
                                                  const void *x, mixprec_dtype type, size_t n) {
    double center = mixprec_reduce_run_(kernels, NULL, MIXPREC_SUM, x, type, x, type, 0, n) / (double)n;
    if (variance)
        *variance = mixprec_reduce_run_(kernels, NULL, MIXPREC_SUM_SQUARES, x, type, x, type, center, n) / (double)n;
    if (mean)
        *mean = center;
}
#endif

/* ================================================================================================================== */
/* [GEMM] Matrix multiplication                                                                                       */
/* ================================================================================================================== */

#ifndef MIXPREC_NO_GEMM

static const mixprec_kernels_ *mixprec_gemm_kernels_(const mixprec_kernels_ *kernels, const mixprec_gemm_desc *d);

/* The scales of an operand, seen as those of op(A) (m x k) or op(B)^T (n x k): the scale of (i, p) is
   values[i / block * step + p / block_k * step_k]. */
typedef struct mixprec_scale_view_ {
    const float *values; /* NULL: none */
    size_t block, step, block_k, step_k;
} mixprec_scale_view_;

/* A part of a batch: products [first, last), of each some rows and columns of C. */
typedef struct mixprec_gemm_range_ {
    size_t first, last, row, row_end, column, column_end;
} mixprec_gemm_range_;

/* What the tasks of a call divide among them. */
enum { MIXPREC_SPLIT_BATCH_, MIXPREC_SPLIT_ROWS_, MIXPREC_SPLIT_COLUMNS_ };

/* Blocked as in K. Goto, R. van de Geijn: "Anatomy of high-performance matrix multiplication", ACM TOMS 34(3), 2008: a
   block of B and one of A are packed into panels of fp32 (or f64) that the tile kernel runs along. The sums of the rows
   at hand live in C itself where C has the accumulator's type and needs no epilogue, else in a block t of the
   workspace. */
typedef struct mixprec_gemm_plan_ {
    const mixprec_kernels_ *kernels;
    int wide;    /* f64 accumulators */
    int bare;    /* the sums are the result, but for its type */
    int direct;  /* accumulate in C */
    int nothing; /* alpha or k is 0 */
    int add_c;   /* beta is not 0 */
    int mirror;  /* C is symmetric: the lower triangle is computed, then copied */
    int pieces;  /* a scale varies along k */
    double alpha, beta;
    mixprec_scale_view_ scale_a, scale_b;
    size_t size;                      /* bytes of an accumulator */
    size_t rows, columns, depth;      /* of a packed block */
    size_t most_depth;                /* of the last along k, which has what little would be left, too */
    size_t outer_rows;                /* rows of t */
    int whole_a;                      /* A is packed once, for all of k */
    int direct_b;                     /* B is not packed */
    int few;                          /* nor here, but unpacked a little at a time */
    int tiny;                         /* all at once, and A in rows, not in panels */
    int dots;                         /* so few sums that not even B is: mixprec_is_dots_ */
    int across;                       /* so few rows that not B is: mixprec_is_across_ */
    int thin;                         /* few columns: as the transposed product, some rows of C at a time */
    size_t width;                     /* of a panel of A */
    size_t a_bytes, b_bytes, t_bytes; /* of the workspace; what is followed by another, a multiple of 64 */
    const char *panels;               /* a B that the caller has packed; NULL: none */
    mixprec_dtype panels_type;        /* its elements */
    size_t tasks;                     /* for threads */
    int split;
    mixprec_gemm_range_ whole; /* of all tasks */
} mixprec_gemm_plan_;

#define MIXPREC_WHOLE_A_ ((size_t)336 << 10) /* how many elements of A are packed at once, for all of k */
#define MIXPREC_FEW_WIDTH_ 6                 /* rows of a panel of A where there are few; */
#define MIXPREC_FEW_DEPTH_ 32                /* how much of k of B is unpacked at a time, */
#define MIXPREC_FEW_PANELS_ 4                /* how many panels of 64 bytes of columns, */
#define MIXPREC_FEW_GROUP_ 1024              /* and in how many bytes of columns the sums of a chunk wait */
#define MIXPREC_FEW_BYTES_ (64 * MIXPREC_FEW_DEPTH_ * MIXPREC_FEW_PANELS_)
#define MIXPREC_THIN_ROWS_ 512   /* how many rows of C are computed at a time where it has few columns */
#define MIXPREC_GEMM_SMALL_ 512  /* m, n and k of a product that needs no blocks, */
#define MIXPREC_LONG_SIDE_ 256   /* m and n where k is longer, */
#define MIXPREC_LONG_SUMS_ 16384 /* m * n there, */
#define MIXPREC_SMALL_COLUMNS_ 8 /* and how many columns of its B are read at least, unless they are not there */
#define MIXPREC_DOTS_CHUNKS_ 12  /* for `dots`: how many chunks of rows and columns become fp32 at a time */
#define MIXPREC_DOTS_BYTES_ (4 * MIXPREC_DOTS_CHUNKS_ * MIXPREC_GEMM_KBLOCK + 2 * MIXPREC_ALIGN_)

/* What the tasks share, in units of a product or a tile: *begin, *unit; returns how many. */
static size_t mixprec_gemm_units_(const mixprec_gemm_plan_ *plan, size_t *begin, size_t *unit) {
    const mixprec_gemm_range_ *whole = &plan->whole;
    size_t end = whole->last;
    *begin = whole->first;
    *unit = 1;
    if (plan->split == MIXPREC_SPLIT_ROWS_) {
        *begin = whole->row;
        end = whole->row_end;
        *unit = plan->kernels->tile_rows;
    } else if (plan->split == MIXPREC_SPLIT_COLUMNS_) {
        *begin = whole->column;
        end = whole->column_end;
        *unit = plan->kernels->tile_columns[plan->wide];
    }
    return end == *begin ? 1 : (end - *begin - 1) / *unit + 1;
}

/* Where the part of task `index` begins, in units; at index = tasks the end. A triangle is cut by its area: the first x
   of n rows hold x^2 / n^2 of the lower one, the last x of the upper one. Integers only: every thread must find the
   same, whatever its rounding mode. */
static size_t mixprec_gemm_cut_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d, size_t units,
                                size_t index) {
    size_t cut = units / plan->tasks * index + (size_t)((uint64_t)(units % plan->tasks) * index / plan->tasks);
    if (plan->split == MIXPREC_SPLIT_ROWS_ && d->triangle != MIXPREC_FULL && units < (size_t)1 << 20) {
        size_t parts = d->triangle == MIXPREC_LOWER ? index : plan->tasks - index;
        for (cut = 0; (uint64_t)cut * cut * plan->tasks < (uint64_t)units * units * parts; cut++)
            ;
        cut = d->triangle == MIXPREC_UPPER ? units - cut : cut;
    }
    return cut;
}

static mixprec_gemm_range_ mixprec_gemm_part_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d,
                                              size_t index) {
    mixprec_gemm_range_ part = plan->whole;
    size_t first, unit, units, begin, end;
    if (plan->tasks == 1)
        return part;
    units = mixprec_gemm_units_(plan, &first, &unit);
    begin = first + mixprec_gemm_cut_(plan, d, units, index) * unit;
    end = first + mixprec_gemm_cut_(plan, d, units, index + 1) * unit;
    if (plan->split == MIXPREC_SPLIT_ROWS_) {
        part.row = mixprec_min_(begin, part.row_end); /* cuts are whole tiles: the last may lie beyond */
        part.row_end = mixprec_min_(end, part.row_end);
    } else if (plan->split == MIXPREC_SPLIT_COLUMNS_) {
        part.column = begin;
        part.column_end = mixprec_min_(end, part.column_end);
    } else {
        part.first = begin;
        part.last = end;
    }
    return part;
}

/* A product of at most MIXPREC_GEMM_SMALL_ rows, columns and k, all at once: packing would take a quarter of the time
   of 64 x 64 x 64. The operands are read where they lie, or first made a matrix of numbers like the sums. Few rows and
   columns of a long k the same, chunk by chunk. */
typedef struct mixprec_small_ {
    const mixprec_kernels_ *kernels;
    int wide, dots, trans_a, trans_b; /* dots: mixprec_is_dots_ */
    int across;                       /* B is multiplied where it lies: mixprec_is_across_ */
    size_t m, n, k;
    const void *a, *b;
    mixprec_dtype a_type, b_type;
    size_t lda, ldb;
    size_t b_panel;          /* bytes from one group of tile_columns columns to the next */
    size_t a_bytes, b_bytes; /* for such a matrix, a chunk of k at a time; 0: none */
    size_t chunk_bytes;      /* for the sums of a chunk that is not the first */
    void *t;
    size_t ldt;
} mixprec_small_;

/* Sums so few that most lanes of vectors would be idle, and that transposing for these would take most of the time: on
   Zen 4 1 x 2 of a k of 2414 takes 2 instead of 13 to 46 microseconds. */
static int mixprec_is_dots_(const mixprec_kernels_ *kernels, size_t m, size_t n, size_t k) {
    const size_t most = k > MIXPREC_GEMM_SMALL_ ? 8 : 4;
    return kernels->dots && m <= most && n <= most && m * n <= most;
}

/* Where k is long, packing a block of few rows and columns would take up to 20 times as long as their product. */
static int mixprec_is_long_(const mixprec_kernels_ *kernels, size_t m, size_t n, size_t k) {
    return kernels->tiny && k > MIXPREC_GEMM_SMALL_ && m <= MIXPREC_LONG_SIDE_ && n <= MIXPREC_LONG_SIDE_ &&
           m * n <= MIXPREC_LONG_SUMS_ && (m >= 4 || n <= 128);
}

/* Without AVX-512 less than 4 rows of a B that is large and not transposed have kernels of their own, which are faster
   but begin when up to 4096 multiplications are done. */
static int mixprec_is_small_(const mixprec_kernels_ *kernels, size_t m, size_t n, size_t k, mixprec_transpose trans_b) {
    const size_t most = MIXPREC_GEMM_SMALL_;
    if (m <= most && n <= most && k <= most)
        return m >= 4 || m * n * k <= 4096 || trans_b || kernels->exact_columns[0] || n * k <= 65536;
    return mixprec_is_long_(kernels, m, n, k);
}

/* Up to 4 rows times a B whose rows run along k: it may be multiplied where it lies. */
static int mixprec_can_across_(const mixprec_small_ *s) {
    return s->trans_b && s->m <= 4 && !s->dots && (s->b_type == MIXPREC_F64) == s->wide;
}

/* Is that better than to transpose B first? Where this says so, it takes 0.4 to 0.95 of the time, mostly (Zen 4). It
   goes in steps, of the columns of a kernel and of 64 bytes of k; and AVX2 transposes 32 bytes of each row at once. */
static int mixprec_is_across_(const mixprec_small_ *s) {
    const size_t size = mixprec_size_of_(s->b_type), bytes = s->k * size;
    const int one = s->m == 1;
    if (!mixprec_can_across_(s))
        return 0;
    if (!s->kernels->direct)
        return s->n > (one ? 8 : s->m == 2 ? 32 : 64) && bytes != 32;
    if (s->wide)
        return s->n > (one ? 8 : 16) && bytes >= (one || s->n > 128 ? 256 : 768);
    if (one)
        return s->n > 16 && bytes >= 16 && (size < 4 || s->n <= 32 || s->n > 48);
    return s->n > (size == 4 ? 128 : size == 2 ? 48 : 16) && s->k >= (s->n > 256 ? 16 : 64);
}

/* Is A one row, its elements side by side? */
static int mixprec_is_row_(const mixprec_small_ *s) {
    return s->m == 1 && (!s->trans_a || s->lda == 1);
}

/* Whole chunks of k at a time, for a copy of A on the stack; of one row as many as AVX-512 multiplies together. */
#define MIXPREC_ACROSS_DEPTH_(width) ((width) == 1 ? 4 * MIXPREC_GEMM_KBLOCK : 2 * MIXPREC_GEMM_KBLOCK)
/* Of a panel of A. */
static size_t mixprec_across_width_(const mixprec_small_ *s) {
    return s->m > 2 ? 4 : s->m;
}

/* Rows that share few sets of the L1 cache are better copied, unless they are no more than a tile's; and rows of B that
   are shorter than a vector, unless few rows of A use them: to load a part of a vector takes time (with AVX-512
   none; and its kernels for up to MIXPREC_SMALL_ROWS_ rows read B once, so that it may lie anywhere). */
static void mixprec_small_bytes_(mixprec_small_ *s) {
    const mixprec_dtype type = s->wide ? MIXPREC_F64 : MIXPREC_F32;
    const size_t size = s->wide ? 8 : 4, depth = mixprec_min_(s->k, MIXPREC_GEMM_KBLOCK);
    const int near_a = s->lda * size <= 2048 || (s->m <= 6 && !s->trans_a);
    const int exact = s->kernels->exact_columns[s->wide] != 0;
    const int near_b =
        !s->trans_b && ((exact && s->m <= MIXPREC_SMALL_ROWS_) ||
                        (s->ldb * size <= 1024 && (exact || s->n >= MIXPREC_SMALL_COLUMNS_ || s->m <= 24)));
    s->b_panel = s->kernels->tile_columns[s->wide] * size;
    s->a_bytes = s->a_type == type && near_a ? 0 : s->m * depth * size;
    s->b_bytes = s->b_type == type && near_b ? 0 : mixprec_round_up_(s->n, 16) * depth * size;
    s->chunk_bytes = depth < s->k ? s->m * s->n * size : 0;
    if (s->across) { /* what a later part of A spills must not reach the sums of the first */
        const size_t width = mixprec_across_width_(s);
        s->a_bytes = mixprec_is_row_(s) && s->a_type == type
                         ? 0
                         : width * mixprec_min_(s->k, MIXPREC_ACROSS_DEPTH_(width)) * size + MIXPREC_ALIGN_;
        s->b_bytes = s->chunk_bytes = 0;
    }
    if (s->dots) { /* of any size, a part of k at a time */
        s->a_bytes = s->chunk_bytes = 0;
        s->b_bytes = s->a_type == type && s->b_type == type ? 0 : MIXPREC_DOTS_BYTES_;
    }
}

/* m x n of d's product, from its beginning. No returned value: gcc's copy waited 7 ns for the members. */
static void mixprec_small_of_(mixprec_small_ *s, const mixprec_kernels_ *kernels, const mixprec_gemm_desc *d, size_t m,
                              size_t n, int dots) {
    s->kernels = kernels;
    s->wide = d->a_type == MIXPREC_F64 && d->b_type == MIXPREC_F64;
    s->dots = dots;
    s->trans_a = d->trans_a == MIXPREC_TRANS;
    s->trans_b = d->trans_b == MIXPREC_TRANS;
    s->m = m;
    s->n = n;
    s->k = d->k;
    s->a = d->a;
    s->b = d->b;
    s->a_type = d->a_type;
    s->b_type = d->b_type;
    s->lda = d->lda ? d->lda : s->trans_a ? m : s->k;
    s->ldb = d->ldb ? d->ldb : s->trans_b ? s->k : n;
    s->t = d->c;
    s->ldt = d->ldc ? d->ldc : n;
    s->across = s->trans_b && mixprec_is_across_(s); /* most need no call: 1 ns of the 43 of 4^3 */
    mixprec_small_bytes_(s);
}

/* Where a B that must be copied serves few rows, other kernels are faster: on Zen 4, with AVX-512, 4 to 32 rows of f32
   times 128 x 128 up to 512 x 512 take 0.45 to 0.96 of the time, up to 8 of 16 bits 0.55 to 0.91, up to 4 of f64 0.65
   to 1.1, but up to 12 of fp8 longer. Where B is transposed, up to 32 rows of more than 128 columns take 0.6 to 1 of
   it, of fewer columns 1 to 1.8. `direct`, which computes 8, 16 or 32 rows and 64 of k at a time, then takes 0.5 to 1,
   but where a quarter of these is not there 1 to 1.6. `rows` are those of the product, of which *s may be the
   transposed one. */
static int mixprec_small_pays_(const mixprec_small_ *s, size_t rows) {
    const int direct = s->kernels->direct && !s->wide;
    const size_t m = s->m, n = s->n, k = s->k;
    size_t most = s->wide ? 4 : 0; /* rows for which they are faster */
    if (s->dots || !s->b_bytes || (s->trans_b && m <= 4))
        return 1;
    if (rows < (direct ? 4 : 2) && k <= MIXPREC_GEMM_SMALL_ && m * n * k > 4096)
        return 0;
    if (n * k < 8192)
        return 1;
    if (s->trans_b && !direct)
        return m > 32 || n <= 128;
    if (s->trans_b && m <= 32)
        return n <= 16 || (k < 192 && k % 64) || (n <= 256 && (m > 16 ? m <= 28 : m > 8 && m <= 12));
    if (k > MIXPREC_GEMM_SMALL_)
        return !s->trans_b || n <= 16;
    if (direct && !s->trans_b)
        most = s->b_type == MIXPREC_F32 ? 32 : mixprec_size_of_(s->b_type) == 2 ? 8 : 0;
    return m > most;
}

/* Is a part of m x n small enough? */
static int mixprec_gemm_small_(mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d, size_t m, size_t n, size_t limit) {
    mixprec_small_ s;
    plan->dots = !plan->panels && mixprec_is_dots_(plan->kernels, m, n, d->k);
    if (!plan->kernels->tiny || plan->pieces ||
        (!plan->dots && !mixprec_is_small_(plan->kernels, m, n, d->k, d->trans_b)) ||
        (plan->panels && (m < 4 || d->k > MIXPREC_GEMM_KBLOCK)))
        return 0;
    mixprec_small_of_(&s, plan->kernels, d, m, n, plan->dots);
    if (!plan->panels && !mixprec_small_pays_(&s, m))
        return 0;
    if (plan->panels) {
        s.across = 0;
        mixprec_small_bytes_(&s);
        s.b_bytes = mixprec_size_of_(plan->panels_type) == plan->size
                        ? 0
                        : mixprec_round_up_(n, plan->kernels->tile_columns[plan->wide]) * d->k * plan->size;
    }
    plan->rows = m;
    plan->columns = n;
    plan->depth = d->k;
    plan->direct_b = 0;
    plan->t_bytes = plan->direct ? 0 : m * n * plan->size;
    for (;;) {
        plan->across = s.across;
        plan->a_bytes = s.a_bytes + s.chunk_bytes
                            ? mixprec_round_up_(s.a_bytes + s.chunk_bytes, MIXPREC_ALIGN_) + MIXPREC_ALIGN_
                            : 0;
        plan->b_bytes = s.b_bytes;
        if (plan->a_bytes + plan->b_bytes + plan->t_bytes + MIXPREC_ALIGN_ <= limit)
            return 1;
        if (s.across || plan->panels || !mixprec_can_across_(&s))
            return 0;
        s.across = 1; /* which needs the least */
        mixprec_small_bytes_(&s);
    }
}

/* Bytes of panels of `width` rows of A or columns of B together. */
static size_t mixprec_gemm_panel_bytes_(const mixprec_gemm_plan_ *plan, size_t width, size_t depth) {
    const size_t unit = plan->kernels->panel_depth;
    return width * (unit ? 2 * mixprec_round_up_(depth, unit) : plan->size * depth);
}

/* Chooses the blocks for a part of m x n and a workspace of at most `limit` bytes; with the smallest blocks it may need
   more than that. */
static void mixprec_gemm_own_blocks_(mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d, size_t m, size_t n,
                                     size_t limit) {
    const mixprec_kernels_ *kernels = plan->kernels;
    size_t tile_rows = kernels->tile_rows, tile_columns = kernels->tile_columns[plan->wide];
    size_t smallest = mixprec_min_(d->k, MIXPREC_GEMM_KBLOCK), few_rows;
    size_t columns = 512; /* the most of a block of few rows */
    size_t blocks, most_columns, most_a;
    plan->tiny = !plan->mirror && mixprec_gemm_small_(plan, d, m, n, limit);
    if (plan->tiny)
        return;
    plan->depth = mixprec_min_(d->k, kernels->block_depth);
    plan->rows = mixprec_min_(kernels->block_rows, mixprec_round_up_(m, tile_rows));
    /* A is packed again for each block of columns: a few columns more make the blocks larger, not one more. */
    most_columns = kernels->block_columns + kernels->block_columns / 4;
    blocks = n ? (n - 1) / most_columns + 1 : 1;
    plan->columns = mixprec_round_up_((n + blocks - 1) / blocks, tile_columns);
    /* Else A would be packed again for each block of columns, or panel: 32 rows of f64 by 4096 x 4096 took 46 ms, not
       27 (Emerald Rapids); what AMX multiplies 16 times as fast is packed as fast as by others, in half the bytes.
       Portable C, which may have little memory, keeps to its blocks. */
    most_a = kernels->isa == MIXPREC_ISA_C ? kernels->block_rows * kernels->block_depth
             : kernels->begin              ? 4 * MIXPREC_WHOLE_A_
                                           : MIXPREC_WHOLE_A_;
    if (m <= 4 * tile_rows) {
        /* B is used a few times only: a few panels at a time, small enough for the innermost caches. Where columns lie
           side by side, one panel would take few bytes from each of many pages: f64 32 x 4096 x 4096 takes 40 ms so on
           Emerald Rapids, 31 with 8, AVX2's f16 20 rows 23 and 17. Portable C may have little memory. */
        const size_t panels = kernels->begin                 ? 4
                              : !kernels->tiny               ? 1
                              : !d->trans_b && !plan->panels ? 8
                              : kernels->direct              ? 4
                                                             : 1;
        plan->depth = smallest;
        plan->columns = mixprec_min_(plan->columns, panels * tile_columns);
        if (kernels->begin && m <= 2 * tile_rows && d->k <= most_a / (2 * tile_rows) && d->trans_b && !plan->panels &&
            !plan->pieces) {
            /* Rows of B, whole, at the speed of memory: 32 x 4096 x 4096 from DRAM takes 4.1 ms so, not 5.9; 128 rows
               would take longer. */
            plan->depth = mixprec_min_(d->k, 8 * MIXPREC_GEMM_KBLOCK);
            plan->columns = tile_columns;
        }
    }
    plan->whole_a = m && m <= plan->rows && d->k <= most_a / plan->rows && !(plan->pieces && kernels->panel_depth);
    plan->width = tile_rows;
    few_rows = kernels->few_rows[plan->wide];
    if (!d->trans_b && !plan->panels && plan->whole_a) /* else A would be packed for each block */
        columns = MIXPREC_FEW_GROUP_ / plan->size;
    if (plan->panels) /* those of another width are for the tile kernel */
        few_rows = tile_columns * plan->size == 64 ? mixprec_min_(few_rows, 8) : 0;
    else if (d->trans_b) /* f64 that is to become fp32 is packed */
        few_rows = d->b_type == MIXPREC_F64 && !plan->wide ? 0 : mixprec_min_(few_rows, 4);
    else if (mixprec_size_of_(d->b_type) < 4)
        few_rows = mixprec_min_(few_rows, 16);
    plan->few = m && m <= few_rows;
    if (plan->few) {
        plan->width = m > 4 ? MIXPREC_FEW_WIDTH_ : m > 2 ? 4 : m > 1 ? 2 : 1;
        plan->rows = mixprec_round_up_(m, plan->width);
        plan->columns = mixprec_min_(columns, mixprec_round_up_(n, tile_columns));
        plan->depth = plan->whole_a ? d->k : mixprec_min_(d->k, kernels->block_depth);
    }
    plan->direct_b = kernels->direct && m <= kernels->direct_rows && !plan->wide && d->b_type != MIXPREC_F64;
    if (plan->direct_b) {
        if (!d->trans_b && !plan->panels && m <= 4)
            columns = MIXPREC_DIRECT_GROUP_(m);
        /* Narrow panels of A, and many columns in one call, for the kernel to prefetch from one to the next. */
        for (plan->width = 1; plan->width < mixprec_min_(m, kernels->direct_width);)
            plan->width *= 2;
        plan->rows = mixprec_round_up_(m, plan->width);
        plan->columns = mixprec_min_(columns, mixprec_round_up_(n, tile_columns));
        plan->depth = plan->whole_a ? d->k : mixprec_min_(d->k, kernels->block_depth);
    }
    plan->most_depth = mixprec_min_(d->k, plan->depth + plan->depth / 4);
    for (;;) {
        size_t a_depth = plan->whole_a ? d->k : plan->most_depth;
        int unpack = !plan->direct_b && (!plan->panels || mixprec_size_of_(plan->panels_type) != plan->size);
        /* With several blocks along k, sums wait in t while a block of B goes by: more rows repay packing it. */
        plan->outer_rows =
            d->k <= plan->most_depth ? plan->rows : mixprec_min_(4 * plan->rows, mixprec_round_up_(m, plan->width));
        plan->a_bytes = mixprec_round_up_(mixprec_gemm_panel_bytes_(plan, plan->rows, a_depth) + 64, MIXPREC_ALIGN_);
        plan->b_bytes =
            unpack ? mixprec_round_up_(mixprec_gemm_panel_bytes_(plan, plan->columns, plan->most_depth), MIXPREC_ALIGN_)
                   : 0;
        if (plan->direct_b)
            plan->b_bytes = kernels->direct_bytes + plan->rows * kernels->direct_bytes_per_row;
        if (plan->few)
            plan->b_bytes = MIXPREC_FEW_BYTES_ + plan->rows * MIXPREC_FEW_GROUP_;
        plan->t_bytes =
            plan->direct ? 0 : mixprec_round_up_(plan->outer_rows * plan->columns * plan->size, MIXPREC_ALIGN_);
        if (plan->a_bytes + plan->b_bytes + plan->t_bytes * (plan->pieces ? 2 : 1) + MIXPREC_ALIGN_ <= limit)
            break;
        if (plan->whole_a) {
            plan->whole_a = 0;
            plan->depth = plan->most_depth = mixprec_min_(plan->depth, kernels->block_depth);
        } else if (plan->most_depth > plan->depth)
            plan->most_depth = plan->depth;
        else if (plan->columns > tile_columns && plan->columns >= plan->rows)
            plan->columns = mixprec_round_up_(plan->columns / 2, tile_columns);
        else if (plan->rows > plan->width)
            plan->rows = mixprec_round_up_(plan->rows / 2, plan->width);
        else if (plan->depth > smallest)
            plan->depth = plan->most_depth = smallest;
        else
            break;
    }
}

/* Bytes of workspace for one task. */
static size_t mixprec_gemm_bytes_(const mixprec_gemm_plan_ *plan) {
    return plan->nothing ? 0 : plan->a_bytes + plan->b_bytes + plan->t_bytes * (plan->pieces ? 2 : 1) + MIXPREC_ALIGN_;
}

/* Where the piece of k that p is in ends. */
static size_t mixprec_scale_end_(const mixprec_scale_view_ *view, size_t p, size_t end) {
    size_t rest = view->values ? view->block_k - p % view->block_k : end - p;
    return p + mixprec_min_(rest, end - p);
}
static size_t mixprec_gemm_piece_end_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d, size_t p) {
    return plan->pieces ? mixprec_scale_end_(&plan->scale_b, p, mixprec_scale_end_(&plan->scale_a, p, d->k)) : d->k;
}

/* Is m x n of C better computed as its transpose, which has few rows? An A that serves few columns is then read once
   where it lies, not packed: on Zen 4 one column times 2048 x 2048 takes 0.07 to 0.33 of the time, 24 columns 0.24 to
   0.93; of 256 x 256 one 0.17 to 0.70, and 12 with AVX-512 0.41 to 0.69; 29 columns of 33 rows 1.5. A transposed A
   takes longer to pack, but is used where it lies for one column of a small product; two columns of 2199 rows of a k of
   24 take 0.3 to 0.5. With a long k up to 6 columns are the rows of one tile. */
static int mixprec_is_thin_(const mixprec_kernels_ *kernels, const mixprec_gemm_desc *d, int wide, size_t m, size_t n) {
    const int direct = kernels->direct && !wide;
    size_t most = d->trans_a ? 48 : direct ? 32 : 24;
    if (n == 0 || n > most || m * d->k < 4096 || !kernels->few || (d->a_type == MIXPREC_F64 && !wide) ||
        mixprec_is_dots_(kernels, m, n, d->k))
        return 0;
    if (n <= 6 && m > 6 && mixprec_is_long_(kernels, m, n, d->k))
        return 1;
    if (m / 8 < n || d->k < (d->trans_a && n > 1 ? 8 : 32))
        return 0;
    if (m <= MIXPREC_GEMM_SMALL_ && d->k <= MIXPREC_GEMM_SMALL_)
        most = direct && (d->trans_a || d->a_type != MIXPREC_F32) ? 12 : 4;
    if (d->k < 128)
        most = mixprec_min_(most, 8);
    return n <= most && m * d->k >= (wide || n > 4 || (n == 1 && d->trans_a) ? 16384 : 4096);
}

/* The sums of a thin product as those of another, of n rows and plan->rows columns: its operands, which the caller
   moves to where they begin, and its plan for a workspace of at most plan->a_bytes. A limit of no more than that plan
   needs gives the same one again. */
static void mixprec_gemm_turn_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d, mixprec_gemm_plan_ *turned,
                               mixprec_gemm_desc *t) {
    static const mixprec_gemm_desc none = MIXPREC_ZERO_;
    *t = none;
    t->trans_a = d->trans_b ? MIXPREC_NO_TRANS : MIXPREC_TRANS;
    t->trans_b = d->trans_a ? MIXPREC_NO_TRANS : MIXPREC_TRANS;
    t->m = plan->columns;
    t->n = plan->rows;
    t->k = mixprec_gemm_piece_end_(plan, d, 0); /* the longest */
    t->a_type = d->b_type;
    t->lda = d->ldb;
    t->b_type = d->a_type;
    t->ldb = d->lda;
    t->c_type = plan->wide ? MIXPREC_F64 : MIXPREC_F32;
    t->ldc = plan->rows;
    *turned = *plan;
    turned->kernels = mixprec_gemm_kernels_(plan->kernels, t);
    turned->pieces = 0;
    turned->direct = turned->bare = 1;
    mixprec_gemm_own_blocks_(turned, t, t->m, t->n, plan->a_bytes);
}

static void mixprec_gemm_blocks_(mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d, size_t m, size_t n,
                                 size_t limit) {
    plan->thin = !plan->panels && mixprec_is_thin_(plan->kernels, d, plan->wide, m, n);
    if (plan->thin) {
        mixprec_gemm_plan_ turned;
        mixprec_gemm_desc t;
        plan->tiny = 0;
        plan->rows = mixprec_min_(m, MIXPREC_THIN_ROWS_);
        plan->columns = n;
        plan->a_bytes = 0;
        plan->b_bytes = mixprec_round_up_(plan->rows * n * plan->size, MIXPREC_ALIGN_);
        plan->t_bytes = plan->direct ? 0 : plan->b_bytes;
        plan->a_bytes = limit - mixprec_min_(limit, mixprec_gemm_bytes_(plan));
        mixprec_gemm_turn_(plan, d, &turned, &t);
        plan->a_bytes = mixprec_gemm_bytes_(&turned);
        plan->thin = mixprec_gemm_bytes_(plan) <= limit;
    }
    if (!plan->thin)
        mixprec_gemm_own_blocks_(plan, d, m, n, limit);
}

/* The descriptor of product i of a batch. */
static void mixprec_gemm_product_(const mixprec_gemm_desc *d, size_t i, mixprec_gemm_desc *product) {
    size_t a = i * d->stride_a * mixprec_size_of_(d->a_type), b = i * d->stride_b * mixprec_size_of_(d->b_type);
    product->a = d->a_array ? d->a_array[i] : a && d->a ? (const char *)d->a + a : d->a;
    product->b = d->b_array ? d->b_array[i] : b && d->b ? (const char *)d->b + b : d->b;
    product->c = d->c_array ? d->c_array[i] : (char *)d->c + i * d->stride_c * mixprec_size_of_(d->c_type);
    product->offset = d->offset + (uint64_t)i * d->m * d->n;
}

static const char *mixprec_element_(const void *base, mixprec_dtype type, size_t ld, size_t row, size_t column) {
    return (const char *)base + (row * ld + column) * mixprec_size_of_(type);
}

/* The depth of the block that begins at p: sums are added to those in C once more for each. */
static size_t mixprec_gemm_depth_(const mixprec_gemm_plan_ *plan, size_t p, size_t piece_end) {
    return piece_end - p <= plan->most_depth ? piece_end - p : plan->depth;
}

/* x[i] *= scale for from <= i < from + n. */
static void mixprec_gemm_scale_(const mixprec_gemm_plan_ *plan, void *x, size_t from, size_t n, float scale) {
    if (plan->wide)
        mixprec_scale_f64_((double *)x + from, (double *)x + from, n, (double)scale);
    else
        mixprec_scale_(plan->kernels, (float *)x + from, (float *)x + from, n, scale);
}

/* x[i] = (x[i] * scale of A's row) * scale of B's column + i, at position p of k. */
static void mixprec_gemm_rescale_(const mixprec_gemm_plan_ *plan, void *x, size_t row, size_t column, size_t n,
                                  size_t p) {
    const mixprec_scale_view_ *view = &plan->scale_a;
    size_t i, run;
    if (view->values)
        mixprec_gemm_scale_(plan, x, 0, n,
                            view->values[row / view->block * view->step + p / view->block_k * view->step_k]);
    view = &plan->scale_b;
    for (i = 0; i < n && view->values; i += run) {
        const float *scale = view->values + (column + i) / view->block * view->step + p / view->block_k * view->step_k;
        run = mixprec_min_(n - i, view->block - (column + i) % view->block);
        mixprec_gemm_scale_(plan, x, i, run, *scale);
    }
}

/* Of n elements of C from (row, column), the first that is wanted, or n; *n becomes the end of those that are. */
static size_t mixprec_gemm_wanted_from_(const mixprec_gemm_desc *d, size_t row, size_t column, size_t *n) {
    if (d->triangle == MIXPREC_LOWER)
        *n = row < column ? 0 : mixprec_min_(*n, row + 1 - column);
    return d->triangle == MIXPREC_UPPER && column < row ? mixprec_min_(*n, row - column) : 0;
}

/* total[i] += the piece of k that begins at p, scaled; or = where it is the first. */
static void mixprec_gemm_add_piece_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d, char *total,
                                    const char *piece, size_t row, size_t column, size_t n, size_t p) {
    size_t i, count;
    for (i = mixprec_gemm_wanted_from_(d, row, column, &n); i < n; i += count) {
        union {
            double wide[MIXPREC_UNIT_];
            float narrow[MIXPREC_UNIT_];
        } x;
        count = mixprec_min_(n - i, MIXPREC_UNIT_);
        mixprec_copy_(&x, piece + i * plan->size, count * plan->size);
        mixprec_gemm_rescale_(plan, &x, row, column + i, count, p);
        if (p == 0)
            mixprec_copy_(total + i * plan->size, &x, count * plan->size);
        else if (plan->wide)
            mixprec_add_f64_((double *)(void *)total + i, x.wide, count);
        else
            mixprec_add_f32_((float *)(void *)total + i, x.narrow, count);
    }
}

static void mixprec_load_f64_(const mixprec_kernels_ *kernels, double *dst, const void *src, mixprec_dtype type,
                              size_t n) {
    float narrow[MIXPREC_UNIT_];
    size_t i;
    if (type == MIXPREC_F64)
        mixprec_copy_(dst, src, n * sizeof *dst);
    else {
        mixprec_load_(kernels, narrow, src, type, n);
        for (i = 0; i < n; i++)
            dst[i] = (double)narrow[i];
    }
}

/* One row of the result: C[row][column ...] from n accumulators; t is NULL where alpha or k is 0. */
static void mixprec_gemm_finish_row_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d, const void *t,
                                     size_t row, size_t column, size_t n) {
    const mixprec_kernels_ *kernels = plan->kernels;
    size_t i, j, count;
    for (i = mixprec_gemm_wanted_from_(d, row, column, &n); i < n; i += count) {
        size_t at = column + i;
        char *c = (char *)d->c + (row * d->ldc + at) * mixprec_size_of_(d->c_type);
        const char *bias = d->bias ? (const char *)d->bias + at * mixprec_size_of_(d->bias_type) : NULL;
        mixprec_how_ how;
        count = mixprec_min_(n - i, MIXPREC_UNIT_);
        how.round = d->round;
        how.overflow = d->overflow;
        how.seed = d->seed;
        how.index = d->offset + (uint64_t)row * d->n + at;
        how.around = 0;
        if (plan->bare && !plan->wide && d->c_type != MIXPREC_F64) {
            count = n - i;
            mixprec_store_(kernels, c, d->c_type, (const float *)t + i, count, &how);
        } else if (plan->wide || d->c_type == MIXPREC_F64) {
            double x[MIXPREC_UNIT_] = {0}, y[MIXPREC_UNIT_];
            if (t) {
                if (plan->wide)
                    mixprec_copy_(x, (const double *)t + i, count * sizeof *x);
                else {
                    float narrow[MIXPREC_UNIT_];
                    mixprec_copy_(narrow, (const float *)t + i, count * sizeof *narrow);
                    if (!plan->pieces)
                        mixprec_gemm_rescale_(plan, narrow, row, at, count, 0);
                    for (j = 0; j < count; j++)
                        x[j] = (double)narrow[j];
                }
                if (plan->wide && !plan->pieces)
                    mixprec_gemm_rescale_(plan, x, row, at, count, 0);
                mixprec_scale_f64_(x, x, count, plan->alpha);
            }
            if (plan->add_c) {
                mixprec_load_f64_(kernels, y, c, d->c_type, count);
                mixprec_scale_f64_(y, y, count, plan->beta);
                if (t)
                    mixprec_add_f64_(x, y, count);
                else
                    mixprec_copy_(x, y, count * sizeof *x);
            }
            if (d->bias) {
                mixprec_load_f64_(kernels, y, bias, d->bias_type, count);
                mixprec_add_f64_(x, y, count);
            }
            for (j = 0; j < count && d->activation == MIXPREC_ACTIVATION_RELU; j++)
                x[j] = mixprec_f64_bits_(x[j]) > (uint64_t)0xFFF << 52 || !(mixprec_f64_bits_(x[j]) >> 63) ? x[j] : 0;
            if (d->c_type == MIXPREC_F64)
                mixprec_copy_(c, x, count * sizeof *x);
            else
                mixprec_store_f64_(kernels, c, d->c_type, x, count, &how);
        } else {
            float x[MIXPREC_UNIT_], y[MIXPREC_UNIT_];
            const float *from = t ? (const float *)t + i : NULL;
            if (t && !plan->pieces && (plan->scale_a.values || plan->scale_b.values)) {
                mixprec_copy_(x, from, count * sizeof *x);
                mixprec_gemm_rescale_(plan, x, row, at, count, 0);
                from = x;
            }
            if (t && mixprec_f64_bits_(plan->alpha) != (uint64_t)1023 << 52) { /* not 1 */
                mixprec_scale_(kernels, x, from, count, (float)plan->alpha);
                from = x;
            }
            if (plan->add_c) {
                mixprec_load_(kernels, y, c, d->c_type, count);
                mixprec_scale_(kernels, y, y, count, (float)plan->beta);
                if (t)
                    mixprec_sums_f32_(x, from, y, count);
                else
                    mixprec_copy_(x, y, count * sizeof *x);
                from = x;
            } else if (!t) {
                mixprec_clear_(x, count * sizeof *x);
                from = x;
            }
            if (d->bias) {
                const float *add = (const float *)(const void *)bias;
                if (d->bias_type != MIXPREC_F32) {
                    mixprec_load_(kernels, y, bias, d->bias_type, count);
                    add = y;
                }
                mixprec_sums_f32_(x, from, add, count);
                from = x;
            }
            if (d->activation != MIXPREC_ACTIVATION_NONE) {
                if (from != x)
                    mixprec_copy_(x, from, count * sizeof *x);
                mixprec_activate_(kernels, x, x, NULL, count, d->activation);
                from = x;
            }
            mixprec_store_(kernels, c, d->c_type, from, count, &how);
        }
    }
}

/* Copies what is below the diagonal in a block of C to its other side. 16 x 16 elements at a time by way of a buffer: a
   line of the cache is read once and written once, whatever lies a power of two away. fp32 takes 1.5 cycles an element
   on Zen 5; one by one as many with 1000 columns, but 2.7, 4.3 and 10 with 256, 512 and 1024. */
MIXPREC_FORCE_INLINE_ void mixprec_gemm_mirror_as_(const mixprec_gemm_desc *d, size_t row, size_t row_end,
                                                   size_t column, size_t column_end, const size_t size) {
    size_t outer, inner, i, j;
    for (outer = row; outer < row_end; outer += 16) {
        const size_t rows = mixprec_min_(row_end - outer, 16);
        /* What lies beyond these rows' part of the diagonal is another thread's to write. */
        const size_t inner_end = mixprec_min_(column_end, outer + rows);
        for (inner = column; inner < inner_end; inner += 16) {
            double block[16 * 16]; /* of the widest type */
            const size_t columns = mixprec_min_(inner_end - inner, 16);
            for (i = 0; i < rows; i++) {
                const char *from = (const char *)d->c + ((outer + i) * d->ldc + inner) * size;
                if (columns == 16) /* a constant size becomes a few moves, as below */
                    mixprec_copy_((char *)block + i * 16 * size, from, 16 * size);
                else
                    mixprec_copy_((char *)block + i * 16 * size, from, columns * size);
            }
            for (j = 0; j < columns; j++) {
                char *to = (char *)d->c + ((inner + j) * d->ldc + outer) * size;
                for (i = outer > inner + j ? 0 : inner + j + 1 - outer; i < rows; i++)
                    mixprec_copy_(to + i * size, (const char *)block + (i * 16 + j) * size, size);
            }
        }
    }
}
static void mixprec_gemm_mirror_(const mixprec_gemm_desc *d, size_t row, size_t rows, size_t column, size_t columns) {
    switch (mixprec_size_of_(d->c_type)) {
    case 1: mixprec_gemm_mirror_as_(d, row, row + rows, column, column + columns, 1); break;
    case 2: mixprec_gemm_mirror_as_(d, row, row + rows, column, column + columns, 2); break;
    case 4: mixprec_gemm_mirror_as_(d, row, row + rows, column, column + columns, 4); break;
    default: mixprec_gemm_mirror_as_(d, row, row + rows, column, column + columns, 8); break;
    }
}

/* Is any element of this block of C wanted? */
static int mixprec_gemm_wanted_(const mixprec_gemm_desc *d, size_t row, size_t rows, size_t column, size_t columns) {
    return d->triangle == MIXPREC_FULL || (d->triangle == MIXPREC_LOWER ? column < row + rows : row < column + columns);
}

/* Is C better written around the caches? What is larger than they are would leave them anyway, and takes less time when
   its lines are not read first: on Zen 4 with 32 MB of L3, C of 16 and 64 MB and k of 16 to 512, 5 to 25 % less with
   AVX-512, up to 8 % with AVX2. Even with what then reads all of C it takes no longer from 16 MB on. */
static int mixprec_gemm_streams_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d) {
    return plan->direct && plan->kernels->fence && !plan->few && !plan->direct_b && d->k <= MIXPREC_GEMM_KBLOCK &&
           d->ldc * plan->size % 64 == 0 && d->n >= (MIXPREC_TILE_STREAM_BYTES_ / plan->size + d->m - 1) / d->m;
}

/* The products of a block: panels of A `depth` deep one after the other, panels of B b_stride bytes apart. row and
   column tell where in C it is. With a short depth the panels of B all stay in the L2 cache, and what matters most
   is to write C: along its rows that takes 0.75 to 0.9 of the time of down its columns (f32; f64 0.47 to 0.9; Zen 4,
   C of 2000 x 2000, depths of 1 to 128). While a panel of B is used, a little more with each tile of A, the next one is
   prefetched: the first tile would wait for L3, which delivers a third of what it consumes (Emerald Rapids; 2048^3 took
   6 % longer). */
static void mixprec_gemm_block_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d, const char *a, size_t row,
                                size_t rows, const char *b, size_t b_stride, size_t column, size_t columns,
                                size_t depth, char *t, size_t ldt, int first) {
    const mixprec_kernels_ *kernels = plan->kernels;
    const size_t tile_rows = kernels->tile_rows, tile_columns = kernels->tile_columns[plan->wide];
    const size_t band = kernels->begin || (plan->direct && depth <= 128) ? tile_rows : rows;
    size_t begin, end, i, j;
    if (mixprec_gemm_streams_(plan, d) && (uintptr_t)t % 64 == 0)
        first = MIXPREC_TILE_STREAM_;
    for (begin = 0; begin < rows; begin = end) {
        end = mixprec_min_(begin + band, rows);
        for (j = 0; j < columns; j += tile_columns) {
            const char *panel = b + j / tile_columns * b_stride, *ahead = (const char *)((uintptr_t)panel + b_stride);
            for (i = begin; i < end; i += tile_rows, ahead += depth * MIXPREC_TILE_AHEAD_)
                if (mixprec_gemm_wanted_(d, row + i, tile_rows, column + j, tile_columns))
                    kernels->tile(mixprec_min_(tile_rows, rows - i), mixprec_min_(tile_columns, columns - j), depth,
                                  a + mixprec_gemm_panel_bytes_(plan, i, depth), panel, ahead,
                                  t + (i * ldt + j) * plan->size, ldt, first, plan->wide);
        }
    }
}

/* Panels of A, or of B. */
static void mixprec_gemm_pack_(const mixprec_gemm_plan_ *plan, int of_b, char *dst, size_t width, const void *src,
                               mixprec_dtype type, size_t ld, int along, size_t from, size_t count, size_t depth_from,
                               size_t depth) {
    const mixprec_kernels_ *kernels = plan->kernels;
    size_t i;
    if (width == 1 && !along &&
        kernels->tile_columns[1]) /* a single row: as columns side by side, which needs no transposition */
        kernels->pack(dst, depth, mixprec_element_(src, type, ld, from, depth_from), type, ld, 1, depth, 1, plan->wide);
    else
        for (i = 0; i < count; i += width)
            (of_b && kernels->pack_b ? kernels->pack_b : kernels->pack)(
                dst + mixprec_gemm_panel_bytes_(plan, i, depth), width,
                along ? mixprec_element_(src, type, ld, depth_from, from + i)
                      : mixprec_element_(src, type, ld, from + i, depth_from),
                type, ld, along, mixprec_min_(width, count - i), depth, plan->wide);
}

/* Where the caller's packed B has panel column / width at depth p. */
static const char *mixprec_gemm_panel_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d, size_t column,
                                       size_t p) {
    size_t width = plan->kernels->tile_columns[plan->wide];
    return plan->panels + (column / width * d->k + p) * width * mixprec_size_of_(plan->panels_type);
}

static void mixprec_gemm_unpack_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d, char *dst, size_t column,
                                 size_t columns, size_t p, size_t depth) {
    size_t width = plan->kernels->tile_columns[plan->wide], i;
    for (i = 0; i < columns; i += width) {
        const char *from = mixprec_gemm_panel_(plan, d, column + i, p);
        char *to = dst + mixprec_gemm_panel_bytes_(plan, i, depth);
        if (plan->kernels->tile_columns[1]) /* not those for pairs */
            mixprec_load_(plan->kernels, (float *)(void *)to, from, plan->panels_type, width * depth);
        else
            mixprec_gemm_pack_(plan, 1, to, width, from, plan->panels_type, width, 1, 0, width, 0, depth);
    }
}

/* Few rows times columns of a B that is not packed here. A panel of the caller's is a matrix of tile_columns
   columns. */
static void mixprec_gemm_direct_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d, const float *a,
                                 size_t rows, size_t column, size_t columns, size_t p, size_t depth, float *t,
                                 size_t ldt, int first, char *scratch) {
    const mixprec_kernels_ *kernels = plan->kernels;
    const mixprec_dtype type = plan->panels ? plan->panels_type : d->b_type;
    const int along = plan->panels ? 2 : !d->trans_b;
    const size_t width = plan->panels ? kernels->tile_columns[0] : along ? MIXPREC_DIRECT_GROUP_(rows) : columns;
    const size_t stride = (plan->panels ? width : d->ldb) * mixprec_size_of_(type);
    size_t j;
    for (j = 0; j < columns; j += width)
        kernels->direct(rows, mixprec_min_(width, columns - j), depth, a, plan->width,
                        plan->panels ? mixprec_gemm_panel_(plan, d, column + j, p)
                        : along      ? mixprec_element_(d->b, type, d->ldb, p, column + j)
                                     : mixprec_element_(d->b, type, d->ldb, column + j, p),
                        type, stride, along, t + j, ldt, first, scratch);
}

#if defined(MIXPREC_HAS_FEW_)
/* Up to 4 rows, a panel `width` wide, times columns of a B whose rows, `stride` bytes apart, run along k. AVX-512
   machines run this for f64. */
static void mixprec_across_run_(const mixprec_kernels_ *kernels, size_t rows, size_t columns, size_t depth,
                                const char *a, size_t width, const char *b, mixprec_dtype type, size_t stride, char *t,
                                size_t ldt, int first) {
    const size_t size = type == MIXPREC_F64 ? 8 : 4;
    const size_t ld = 32 * MIXPREC_ACROSS_VECTORS_(width, mixprec_size_of_(type)), group = ld / size;
    double sums[MIXPREC_ACROSS_ROWS_ * 32 * 4 / 8];
    size_t i, j;
    for (j = 0; j < columns; j += group) {
        const size_t count = mixprec_min_(group, columns - j) * size;
        for (i = 0; i < rows && !first; i++)
            mixprec_copy_((char *)sums + i * ld, t + (i * ldt + j) * size, count);
        kernels->across(width, type, columns - j, depth, a, b + j * stride, stride, (char *)sums, first);
        for (i = 0; i < rows; i++)
            mixprec_copy_(t + (i * ldt + j) * size, (const char *)sums + i * ld, count);
    }
}

/* Few rows times columns of a B that is unpacked into the L1 cache a little at a time, or used where it lies. AVX-512
   machines run this for f64: memory limits them. */
static void mixprec_gemm_few_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d, const char *a, size_t rows,
                              size_t column, size_t columns, size_t from, size_t depth, char *t, size_t ldt, int first,
                              char *scratch) {
    const size_t size = plan->size, tile = 64 / size, a_step = plan->width * size;
    const size_t group = (plan->panels ? MIXPREC_FEW_PANELS_ * 64 : MIXPREC_FEW_GROUP_) / size;
    const size_t ld = group * size, b_size = mixprec_size_of_(plan->panels ? plan->panels_type : d->b_type);
    const int in_place = plan->panels ? b_size == size : d->b_type == (plan->wide ? MIXPREC_F64 : MIXPREC_F32);
    char *const sums = scratch + MIXPREC_FEW_BYTES_;
    size_t j, q, p, i, width, end, chunk, count, n, line;
    for (j = 0; j < columns; j += group)
        for (chunk = 0, width = mixprec_min_(group, columns - j); chunk < depth; chunk = end) {
            end = mixprec_min_(chunk + MIXPREC_GEMM_KBLOCK, depth);
            for (p = chunk; p < end; p += count)
                for (q = 0, count = mixprec_min_(MIXPREC_FEW_DEPTH_, end - p); q < width; q += n) {
                    const size_t at = column + j + q, k = from + p;
                    const char *b = scratch;
                    size_t b_step = 64, b_panel = count * 64;
                    n = mixprec_min_(MIXPREC_FEW_PANELS_ * tile, width - q);
                    if (plan->panels && in_place) {
                        b = mixprec_gemm_panel_(plan, d, at, k);
                        b_panel = d->k * 64;
                    } else if (plan->panels)
                        mixprec_gemm_unpack_(plan, d, scratch, at, n, k, count);
                    else if (in_place && n % tile == 0) {
                        b = mixprec_element_(d->b, d->b_type, d->ldb, k, at);
                        b_step = d->ldb * size;
                        b_panel = 64;
                    } else
                        for (i = 0; i < n; i += tile)
                            plan->kernels->pack(scratch + i * size * count, tile,
                                                mixprec_element_(d->b, d->b_type, d->ldb, k, at + i), d->b_type, d->ldb,
                                                1, mixprec_min_(tile, n - i), count, plan->wide);
                    for (i = 0; i < count && !plan->panels; i++) { /* what comes next of these columns */
                        const char *next = mixprec_element_(d->b, d->b_type, d->ldb, k + count + i, at);
                        for (line = 0; line < n * b_size; line += 64)
                            MIXPREC_FETCH_((uintptr_t)next + line);
                    }
                    for (i = 0; i < rows; i += plan->width)
                        plan->kernels->few(mixprec_min_(plan->width, rows - i), (n + tile - 1) / tile, count,
                                           a + i * depth * size + p * a_step, a_step, b, b_step, b_panel,
                                           sums + i * ld + q * size, ld, p == chunk, plan->wide);
                }
            for (i = 0; i < rows; i++) {
                char *to = t + (i * ldt + j) * size;
                if (first && chunk == 0)
                    mixprec_copy_(to, sums + i * ld, width * size);
                else if (plan->wide)
                    mixprec_add_f64_((double *)(void *)to, (double *)(void *)(sums + i * ld), width);
                else
                    mixprec_add_f32_((float *)(void *)to, (float *)(void *)(sums + i * ld), width);
            }
        }
}
#endif

/* C = beta C, where alpha or k is 0. */
MIXPREC_NOINLINE_ void mixprec_gemm_run_nothing_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d,
                                                 const mixprec_gemm_range_ *part) {
    size_t i;
    for (i = part->row; i < part->row_end; i++)
        mixprec_gemm_finish_row_(plan, d, NULL, i, part->column, part->column_end - part->column);
}

/* An operand as stored becomes a matrix of rows of `width`; transposed where along is 0. */
static void mixprec_small_widen_(const mixprec_small_ *s, char *to, size_t width, const void *src, mixprec_dtype type,
                                 size_t ld, int along, size_t count, size_t depth) {
    if (along && ld == count && width == count) { /* no gaps: as one row */
        width = count *= depth;
        depth = 1;
    }
    s->kernels->pack(to, width, src, type, ld, along, count, depth, s->wide);
}

/* `count` rows or columns of an operand for `dots`, as they are stored, but of numbers like the sums. */
static const char *mixprec_dots_operand_(const mixprec_small_ *s, char *buffer, const char *x, mixprec_dtype type,
                                         size_t *ld, int along, size_t count, size_t depth) {
    const size_t width = along ? count : depth;
    if (type == (s->wide ? MIXPREC_F64 : MIXPREC_F32))
        return x;
    mixprec_small_widen_(s, buffer, width, x, type, *ld, 1, width, along ? depth : count);
    *ld = width;
    return buffer;
}

static void mixprec_small_dots_(const mixprec_small_ *s, char *buffer) {
    const size_t size = s->wide ? 8 : 4;
    const size_t most = s->b_bytes ? MIXPREC_DOTS_CHUNKS_ / (s->m + s->n) * MIXPREC_GEMM_KBLOCK : s->k;
    size_t p, depth;
    for (p = 0; p < s->k; p += depth) {
        const char *a = mixprec_element_(s->a, s->a_type, s->trans_a ? s->lda : 1, p, 0);
        const char *b = mixprec_element_(s->b, s->b_type, s->trans_b ? 1 : s->ldb, p, 0);
        size_t lda = s->lda, ldb = s->ldb;
        char *a_buffer;
        depth = mixprec_min_(most, s->k - p);
        a_buffer = s->b_bytes ? buffer + s->n * depth * size + MIXPREC_ALIGN_ : NULL;
        b = mixprec_dots_operand_(s, buffer, b, s->b_type, &ldb, !s->trans_b, s->n, depth);
        a = mixprec_dots_operand_(s, a_buffer, a, s->a_type, &lda, s->trans_a, s->m, depth);
        s->kernels->dots(s->m, s->n, depth, a, (s->trans_a ? 1 : lda) * size, (s->trans_a ? lda : 1) * size, b,
                         (s->trans_b ? ldb : 1) * size, (s->trans_b ? 1 : ldb) * size, (char *)s->t, s->ldt * size,
                         size, p == 0, s->wide);
    }
}

#if defined(MIXPREC_HAS_FEW_)
/* A as a panel, a part of k at a time where it must be copied, and B where it lies. */
static void mixprec_small_across_(const mixprec_small_ *s, char *buffer) {
    const size_t width = mixprec_across_width_(s), stride = s->ldb * mixprec_size_of_(s->b_type);
    const size_t most = s->a_bytes ? MIXPREC_ACROSS_DEPTH_(width) : s->k;
    size_t p, depth;
    for (p = 0; p < s->k; p += depth) {
        const char *a = mixprec_element_(s->a, s->a_type, s->trans_a ? s->lda : 1, p, 0);
        const char *b = mixprec_element_(s->b, s->b_type, 1, p, 0);
        depth = mixprec_min_(most, s->k - p);
        if (s->a_bytes) {
            if (mixprec_is_row_(s))
                mixprec_small_widen_(s, buffer, depth, a, s->a_type, depth, 1, depth, 1);
            else
                s->kernels->pack(buffer, width, a, s->a_type, s->lda, s->trans_a, s->m, depth, s->wide);
            a = buffer;
        }
        if (s->kernels->direct && !s->wide)
            s->kernels->direct(s->m, s->n, depth, (const float *)(const void *)a, width, b, s->b_type, stride, 0,
                               (float *)s->t, s->ldt, p == 0, NULL);
        else
            mixprec_across_run_(s->kernels, s->m, s->n, depth, a, width, b, s->b_type, stride, (char *)s->t, s->ldt,
                                p == 0);
    }
}
#endif

MIXPREC_NOINLINE_ void mixprec_small_run_(const mixprec_small_ *s, char *buffer);

static void mixprec_small_chunks_(const mixprec_small_ *s, char *buffer) {
    mixprec_small_ chunk = *s;
    char *const sums = buffer + s->b_bytes + s->a_bytes;
    size_t p, i;
    for (p = 0; p < s->k; p += chunk.k) {
        chunk.k = mixprec_min_(s->k - p, MIXPREC_GEMM_KBLOCK);
        chunk.a = mixprec_element_(s->a, s->a_type, s->trans_a ? s->lda : 1, p, 0);
        chunk.b = mixprec_element_(s->b, s->b_type, s->trans_b ? 1 : s->ldb, p, 0);
        mixprec_small_run_(&chunk, buffer);
        for (i = 0; i < s->m && p; i++)
            if (s->wide)
                mixprec_add_f64_((double *)s->t + i * s->ldt, (const double *)(void *)sums + i * s->n, s->n);
            else
                mixprec_add_f32_((float *)s->t + i * s->ldt, (const float *)(void *)sums + i * s->n, s->n);
        chunk.t = sums; /* of the chunks that follow */
        chunk.ldt = s->n;
    }
}

/* The buffer has room for b_bytes, a_bytes and chunk_bytes and, where A is copied, a vector more: its last row may
   spill. */
MIXPREC_NOINLINE_ void mixprec_small_run_(const mixprec_small_ *s, char *buffer) {
    const size_t size = s->wide ? 8 : 4, tile = s->kernels->tile_columns[s->wide];
    const size_t exact = s->kernels->exact_columns[s->wide];
    const char *a = (const char *)s->a, *b = (const char *)s->b;
    size_t lda = s->lda, ldb = s->ldb, j, step;
    if (s->dots) {
        mixprec_small_dots_(s, buffer);
        return;
    }
#if defined(MIXPREC_HAS_FEW_)
    if (s->across) {
        mixprec_small_across_(s, buffer);
        return;
    }
#endif
    if (s->k > MIXPREC_GEMM_KBLOCK) {
        mixprec_small_chunks_(s, buffer);
        return;
    }
    if (s->b_bytes) {
        ldb = s->n <= MIXPREC_SMALL_COLUMNS_ ? MIXPREC_SMALL_COLUMNS_ : s->trans_b ? mixprec_round_up_(s->n, 16) : s->n;
        mixprec_small_widen_(s, buffer, ldb, s->b, s->b_type, s->ldb, !s->trans_b, s->n, s->k);
        b = buffer;
        buffer += s->b_bytes;
    }
    if (s->a_bytes) {
        lda = s->trans_a ? s->m : s->k;
        mixprec_small_widen_(s, buffer, lda, s->a, s->a_type, s->lda, 1, lda, s->trans_a ? s->k : s->m);
        a = buffer;
    }
    for (j = 0; j < s->n; j += step) {
        const size_t left = s->n - j;
        size_t at = j;
        if (s->m <= MIXPREC_SMALL_ROWS_ && exact && s->b_panel == tile * size)
            step = mixprec_min_(left, 2 * tile);
        else if (left <= exact)
            step = left;
        else
            for (step = tile; step > MIXPREC_SMALL_COLUMNS_ && (left <= step / 2 || s->n < step);)
                step /= 2;
        if (left < step && s->n >= step && s->b_panel == tile * size)
            at = s->n - step; /* over columns that are done, where it writes the same again */
        s->kernels->tiny(s->m, mixprec_min_(step, s->n - at), s->k, a, (s->trans_a ? 1 : lda) * size,
                         (s->trans_a ? lda : 1) * size, b + at / tile * s->b_panel + at % tile * size, ldb * size,
                         !s->b_bytes && s->n < MIXPREC_SMALL_COLUMNS_, (char *)s->t + at * size, s->ldt, s->wide);
    }
}

/* The part of a product as a small one, but for where its matrices begin: the same for all of a batch. */
static void mixprec_gemm_small_part_(mixprec_small_ *s, const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d,
                                     const mixprec_gemm_range_ *part) {
    mixprec_small_of_(s, plan->kernels, d, part->row_end - part->row, part->column_end - part->column, plan->dots);
    s->across = plan->across; /* not what would be best for a smaller part: the workspace is for this */
    mixprec_small_bytes_(s);
    s->b_bytes = plan->b_bytes;
    s->ldt = plan->direct ? d->ldc : s->n;
    if (plan->panels) {
        s->ldb = plan->kernels->tile_columns[plan->wide];
        s->b_panel = s->ldb * d->k * plan->size;
        s->b_bytes = 0;
    }
}

MIXPREC_NOINLINE_ void mixprec_gemm_run_small_(mixprec_small_ *s, const mixprec_gemm_plan_ *plan,
                                               const mixprec_gemm_desc *d, const mixprec_gemm_range_ *part,
                                               char *workspace) {
    size_t rows = s->m, columns = s->n, i;
    char *t = workspace + plan->b_bytes + plan->a_bytes;
    s->a = s->trans_a ? mixprec_element_(d->a, d->a_type, d->lda, 0, part->row)
                      : mixprec_element_(d->a, d->a_type, d->lda, part->row, 0);
    s->b = s->trans_b ? mixprec_element_(d->b, d->b_type, d->ldb, part->column, 0)
                      : mixprec_element_(d->b, d->b_type, d->ldb, 0, part->column);
    s->t = plan->direct ? (char *)d->c + (part->row * d->ldc + part->column) * plan->size : t;
    if (plan->panels) {
        s->b = plan->b_bytes ? workspace : mixprec_gemm_panel_(plan, d, part->column, 0);
        if (plan->b_bytes)
            mixprec_gemm_unpack_(plan, d, workspace, part->column, columns, 0, d->k);
        workspace += plan->b_bytes;
    }
    mixprec_small_run_(s, workspace);
    if (d->ldc == columns && d->triangle == MIXPREC_FULL && !d->bias && !d->scale_a.values && !d->scale_b.values) {
        columns *= rows; /* as one row: short ones would take most of the time */
        rows = 1;
    }
    for (i = 0; i < rows && !plan->direct; i++)
        mixprec_gemm_finish_row_(plan, d, t + i * columns * plan->size, part->row + i, part->column, columns);
    if (plan->mirror)
        mixprec_gemm_mirror_(d, part->row, rows, part->column, columns);
}

MIXPREC_NOINLINE_ void mixprec_gemm_run_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d,
                                         const mixprec_gemm_range_ *part, char *workspace) {
    const mixprec_kernels_ *kernels = plan->kernels;
    size_t tile_columns = kernels->tile_columns[plan->wide], outer, i, j, p, depth, row;
    char *a = workspace, *b = a + plan->a_bytes, *t = b + plan->b_bytes, *total = t + plan->t_bytes;
    size_t outer_rows = plan->direct ? part->row_end - part->row : plan->outer_rows, columns, skew = 0, lead = 0;
    const int streams = mixprec_gemm_streams_(plan, d);
    if ((plan->direct_b || plan->few) && !plan->panels && !d->trans_b && d->ldb * mixprec_size_of_(d->b_type) % 64 == 0)
        /* malloc likes 16 modulo 64. A shorter first block makes the others begin with a line of the cache. */
        skew = (uintptr_t)mixprec_element_(d->b, d->b_type, d->ldb, 0, part->column) % 64 / mixprec_size_of_(d->b_type);
    skew = skew < plan->columns / 2 ? skew : 0;
    if (streams && !plan->panels) /* to the first line of C's rows that is whole */
        lead = (64 - (uintptr_t)mixprec_element_(d->c, d->c_type, d->ldc, 0, part->column) % 64) % 64 / plan->size;
    MIXPREC_ASSERT(plan->depth >= d->k || plan->depth % MIXPREC_GEMM_KBLOCK == 0);
    MIXPREC_ASSERT(!plan->whole_a || part->row_end - part->row <= plan->rows);
    if (kernels->begin)
        kernels->begin();
    for (p = 0; p < d->k && plan->whole_a; p += depth) {
        depth = mixprec_gemm_depth_(plan, p, mixprec_gemm_piece_end_(plan, d, p));
        mixprec_gemm_pack_(plan, 0, a + mixprec_gemm_panel_bytes_(plan, plan->rows, p), plan->width, d->a, d->a_type,
                           d->lda, d->trans_a == MIXPREC_TRANS, part->row, part->row_end - part->row, p, depth);
    }
    for (outer = part->row; outer < part->row_end; outer += outer_rows)
        for (j = part->column; j < part->column_end; j += columns) {
            size_t outer_end = mixprec_min_(outer + outer_rows, part->row_end), piece = 0;
            columns = mixprec_min_(plan->columns - (j == part->column ? skew : 0), part->column_end - j);
            if (part->column_end - j - columns - 1 < skew) /* 1 to skew columns by themselves; none left is SIZE_MAX */
                columns -= plan->columns / 2;
            if (lead && j == part->column)
                columns = mixprec_min_(columns, lead);
            if (!mixprec_gemm_wanted_(d, outer, outer_end - outer, j, columns))
                continue;
            for (p = 0; p < d->k; p += depth) {
                size_t piece_end = mixprec_gemm_piece_end_(plan, d, p), b_stride;
                const char *b_panels = b;
                depth = mixprec_gemm_depth_(plan, p, piece_end);
                b_stride = mixprec_gemm_panel_bytes_(plan, tile_columns, depth);
                if (plan->direct_b || plan->few) {
                    /* nothing to prepare */
                } else if (plan->panels && !plan->b_bytes) {
                    b_panels = mixprec_gemm_panel_(plan, d, j, p);
                    b_stride = tile_columns * d->k * plan->size;
                } else if (plan->panels)
                    mixprec_gemm_unpack_(plan, d, b, j, columns, p, depth);
                else
                    mixprec_gemm_pack_(plan, 1, b, tile_columns, d->b, d->b_type, d->ldb,
                                       d->trans_b == MIXPREC_NO_TRANS, j, columns, p, depth);
                for (i = outer; i < outer_end; i += plan->rows) {
                    size_t rows = mixprec_min_(plan->rows, outer_end - i);
                    size_t ldt = plan->direct ? d->ldc : plan->columns, at = (i - outer) * ldt * plan->size;
                    char *sums = plan->direct ? (char *)d->c + (i * d->ldc + j) * plan->size : t + at;
                    const char *panels = a + (plan->whole_a ? mixprec_gemm_panel_bytes_(plan, plan->rows, p) : 0);
                    if (!mixprec_gemm_wanted_(d, i, rows, j, columns))
                        continue;
                    if (!plan->whole_a)
                        mixprec_gemm_pack_(plan, 0, a, plan->width, d->a, d->a_type, d->lda,
                                           d->trans_a == MIXPREC_TRANS, i, rows, p, depth);
#if defined(MIXPREC_HAS_FEW_)
                    if (plan->few && d->trans_b && !plan->panels)
                        mixprec_across_run_(plan->kernels, rows, columns, depth, panels, plan->width,
                                            mixprec_element_(d->b, d->b_type, d->ldb, j, p), d->b_type,
                                            d->ldb * mixprec_size_of_(d->b_type), sums, ldt, p == piece);
                    else if (plan->few)
                        mixprec_gemm_few_(plan, d, panels, rows, j, columns, p, depth, sums, ldt, p == piece, b);
                    else
#endif
                        if (plan->direct_b)
                        mixprec_gemm_direct_(plan, d, (const float *)(const void *)panels, rows, j, columns, p, depth,
                                             (float *)(void *)sums, ldt, p == piece, b);
                    else
                        mixprec_gemm_block_(plan, d, panels, i, rows, b_panels, b_stride, j, columns, depth, sums, ldt,
                                            p == piece);
                    for (row = 0; row < rows && plan->pieces && p + depth == piece_end; row++)
                        mixprec_gemm_add_piece_(plan, d, total + at + row * ldt * plan->size,
                                                sums + row * ldt * plan->size, i + row, j, columns, piece);
                    if (plan->direct || p + depth != d->k)
                        continue;
                    for (row = 0; row < rows; row++)
                        mixprec_gemm_finish_row_(plan, d, (plan->pieces ? total + at : sums) + row * ldt * plan->size,
                                                 i + row, j, columns);
                    if (plan->mirror)
                        mixprec_gemm_mirror_(d, i, rows, j, columns);
                }
                if (p + depth == piece_end)
                    piece = piece_end;
            }
        }
    if (streams)
        kernels->fence();
    if (kernels->end)
        kernels->end();
}

#if defined(MIXPREC_HAS_FEW_)
MIXPREC_NOINLINE_ void mixprec_gemm_run_thin_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d,
                                              const mixprec_gemm_range_ *part, char *workspace) {
    const size_t size = plan->size, columns = part->column_end - part->column;
    char *sums = workspace + plan->a_bytes, *t = sums + plan->b_bytes, *total = t + plan->t_bytes;
    mixprec_gemm_plan_ turned;
    mixprec_gemm_desc product;
    mixprec_gemm_range_ turned_part = {0, 1, 0, 0, 0, 0};
    size_t row, rows, p, i, j, ldt = columns;
    mixprec_gemm_turn_(plan, d, &turned, &product);
    MIXPREC_ASSERT(mixprec_gemm_bytes_(&turned) == plan->a_bytes);
    product.c = sums;
    turned_part.row_end = columns;
    for (row = part->row; row < part->row_end; row += rows) {
        size_t lines, width;
        turned_part.column_end = rows = mixprec_min_(plan->rows, part->row_end - row);
        if (plan->direct) {
            t = (char *)d->c + (row * d->ldc + part->column) * size;
            ldt = d->ldc;
        }
        for (p = 0; p < d->k; p += product.k) {
            product.k = mixprec_gemm_piece_end_(plan, d, p) - p;
            product.a = d->trans_b ? mixprec_element_(d->b, d->b_type, d->ldb, part->column, p)
                                   : mixprec_element_(d->b, d->b_type, d->ldb, p, part->column);
            product.b = d->trans_a ? mixprec_element_(d->a, d->a_type, d->lda, p, row)
                                   : mixprec_element_(d->a, d->a_type, d->lda, row, p);
            if (turned.tiny) {
                mixprec_small_ call;
                mixprec_gemm_small_part_(&call, &turned, &product, &turned_part);
                mixprec_gemm_run_small_(&call, &turned, &product, &turned_part, workspace);
            } else
                mixprec_gemm_run_(&turned, &product, &turned_part, workspace);
            for (j = 0; j < columns; j++)
                for (i = 0; i < rows; i++)
                    if (plan->wide)
                        ((double *)(void *)t)[i * ldt + j] = ((double *)(void *)sums)[j * plan->rows + i];
                    else
                        ((float *)(void *)t)[i * ldt + j] = ((float *)(void *)sums)[j * plan->rows + i];
            for (i = 0; i < rows && plan->pieces; i++)
                mixprec_gemm_add_piece_(plan, d, total + i * ldt * size, t + i * ldt * size, row + i, part->column,
                                        columns, p);
        }
        lines = rows;
        width = columns;
        if (d->ldc == columns && !d->bias && !d->scale_a.values && !d->scale_b.values) {
            width *= rows; /* as one row: short ones would take most of the time */
            lines = 1;
        }
        for (i = 0; i < lines && !plan->direct; i++)
            mixprec_gemm_finish_row_(plan, d, (plan->pieces ? total : t) + i * ldt * size, row + i, part->column,
                                     width);
    }
}
#endif

#ifndef MIXPREC_MALLOC
/* Without an allocator and without a workspace: portable C, tile by tile, unpacking 8 values of k at a time. */
typedef union mixprec_tiny_tile_ {
    double wide[MIXPREC_TILE_ROWS_C_ * MIXPREC_TILE_COLUMNS_C_];
    float narrow[MIXPREC_TILE_ROWS_C_ * MIXPREC_TILE_COLUMNS_C_];
} mixprec_tiny_tile_;

static void mixprec_tiny_add_(const mixprec_gemm_plan_ *plan, mixprec_tiny_tile_ *x, const mixprec_tiny_tile_ *y,
                              int first) {
    enum { elements = MIXPREC_TILE_ROWS_C_ * MIXPREC_TILE_COLUMNS_C_ };
    if (first)
        *x = *y;
    else if (plan->wide)
        mixprec_add_f64_(x->wide, y->wide, elements);
    else
        mixprec_add_f32_(x->narrow, y->narrow, elements);
}

MIXPREC_NOINLINE_ void mixprec_gemm_run_tiny_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d,
                                              const mixprec_gemm_range_ *part) {
    enum { depth = 8 };
    static const mixprec_tiny_tile_ zero = {{0}};
    size_t i, j, p, row;
    for (i = part->row; i < part->row_end; i += MIXPREC_TILE_ROWS_C_)
        for (j = part->column; j < part->column_end; j += MIXPREC_TILE_COLUMNS_C_) {
            double a[depth * MIXPREC_TILE_ROWS_C_], b[depth * MIXPREC_TILE_COLUMNS_C_];
            mixprec_tiny_tile_ chunk = zero, piece = zero, total = zero;
            size_t rows = mixprec_min_(MIXPREC_TILE_ROWS_C_, part->row_end - i), begin = 0, count;
            size_t columns = mixprec_min_(MIXPREC_TILE_COLUMNS_C_, part->column_end - j);
            if (!mixprec_gemm_wanted_(d, i, rows, j, columns))
                continue;
            for (p = 0; p < d->k; p += count) {
                size_t end = mixprec_gemm_piece_end_(plan, d, p), chunk_begin;
                chunk_begin = p - (p - begin) % MIXPREC_GEMM_KBLOCK;
                count = mixprec_min_(depth, mixprec_min_(end, chunk_begin + MIXPREC_GEMM_KBLOCK) - p);
                mixprec_gemm_pack_(plan, 0, (char *)a, MIXPREC_TILE_ROWS_C_, d->a, d->a_type, d->lda,
                                   d->trans_a == MIXPREC_TRANS, i, rows, p, count);
                mixprec_gemm_pack_(plan, 1, (char *)b, MIXPREC_TILE_COLUMNS_C_, d->b, d->b_type, d->ldb,
                                   d->trans_b == MIXPREC_NO_TRANS, j, columns, p, count);
                if (p == chunk_begin)
                    chunk = zero;
                if (plan->wide)
                    mixprec_accumulate_double_c_(chunk.wide, a, b, count);
                else
                    mixprec_accumulate_float_c_(chunk.narrow, (float *)a, (float *)b, count);
                if (p + count != end && p + count != chunk_begin + MIXPREC_GEMM_KBLOCK)
                    continue;
                mixprec_tiny_add_(plan, &piece, &chunk, chunk_begin == begin);
                if (p + count != end)
                    continue;
                for (row = 0; row < rows && plan->pieces; row++)
                    mixprec_gemm_rescale_(plan, (char *)&piece + row * MIXPREC_TILE_COLUMNS_C_ * plan->size, i + row, j,
                                          columns, begin);
                mixprec_tiny_add_(plan, &total, &piece, begin == 0);
                begin = end;
            }
            for (row = 0; row < rows; row++)
                mixprec_gemm_finish_row_(plan, d, (char *)&total + row * MIXPREC_TILE_COLUMNS_C_ * plan->size, i + row,
                                         j, columns);
            if (plan->mirror)
                mixprec_gemm_mirror_(d, i, rows, j, columns);
        }
}
#endif

/* What the tasks of a call share. */
typedef struct mixprec_gemm_job_ {
    const mixprec_gemm_plan_ *plan;
    const mixprec_gemm_desc *desc;
    char *workspace; /* NULL: none */
    size_t bytes;    /* of it for each task */
} mixprec_gemm_job_;

/* One task, on any thread. */
static void mixprec_gemm_task_(void *data, size_t index) {
    const mixprec_gemm_job_ *job = (const mixprec_gemm_job_ *)data;
    const mixprec_gemm_plan_ *plan = job->plan;
    const mixprec_gemm_desc *d = job->desc;
    const mixprec_gemm_range_ part = mixprec_gemm_part_(plan, d, index);
    const int several = d->batch > 1 || d->a_array || d->b_array || d->c_array;
    mixprec_gemm_desc product;
    mixprec_small_ call;
    mixprec_fp_ environment;
    size_t i;
    if (part.row == part.row_end || part.column == part.column_end)
        return;
    if (several)
        product = *d;
    if (plan->tiny)
        mixprec_gemm_small_part_(&call, plan, d, &part);
    environment = mixprec_fp_begin_();
    for (i = part.first; i < part.last; i++) {
        if (several) {
            mixprec_gemm_product_(job->desc, i, &product);
            d = &product;
        }
        if (plan->nothing)
            mixprec_gemm_run_nothing_(plan, d, &part);
#ifndef MIXPREC_MALLOC
        else if (!job->workspace)
            mixprec_gemm_run_tiny_(plan, d, &part);
#endif
        else {
            char *workspace = mixprec_line_(job->workspace + index * job->bytes);
            if (plan->tiny)
                mixprec_gemm_run_small_(&call, plan, d, &part, workspace);
#if defined(MIXPREC_HAS_FEW_)
            else if (plan->thin)
                mixprec_gemm_run_thin_(plan, d, &part, workspace);
#endif
            else
                mixprec_gemm_run_(plan, d, &part, workspace);
        }
    }
    mixprec_fp_end_(environment);
}

#endif /* MIXPREC_NO_GEMM */

/* ================================================================================================================== */
/* [QUANT] Scaled narrow tensors                                                                                      */
/* ================================================================================================================== */

#ifndef MIXPREC_NO_QUANT

/* The largest finite number of a dtype that tensors may be quantised to; 0 for others. */
static float mixprec_quant_max_(mixprec_dtype type) {
    const mixprec_layout_ *layout = mixprec_layout_of_(type);
    if (type == MIXPREC_I8)
        return 127.0f;
    if (!layout || type == MIXPREC_F32)
        return 0.0f;
    return mixprec_f32_from_bits_(mixprec_widen_(layout->max_code, layout));
}

/* max / amax rounded to fp32 (once more, which for a quotient of fp32 numbers changes nothing), at least 2^-126; Inf
   becomes the largest number. amax is finite and positive. */
MIXPREC_INLINE float mixprec_quant_ratio_(double max, float amax) {
    uint32_t bits = mixprec_f32_bits_(mixprec_to_f32_(max / (double)amax));
    bits = bits < 0x7F800000u ? bits : 0x7F7FFFFFu;
    return mixprec_f32_from_bits_(bits > 0x00800000u ? bits : 0x00800000u);
}

static int mixprec_is_amax_(float amax) {
    return mixprec_f32_bits_(amax) - 1u < 0x7F7FFFFFu; /* finite and positive */
}

MIXPREC_INLINE float mixprec_block_scale_(float amax, float max, int power_of_two) {
    float scale = mixprec_is_amax_(amax) ? mixprec_quant_ratio_((double)max, amax) : 1.0f;
    return power_of_two ? mixprec_f32_from_bits_(mixprec_f32_bits_(scale) & 0x7F800000u) : scale;
}
MIXPREC_NOINLINE_ float mixprec_scale_of_amax_run_(float amax, float max, int power_of_two) {
    return mixprec_block_scale_(amax, max, power_of_two);
}

MIXPREC_NOINLINE_ void mixprec_delayed_scaling_run_(mixprec_delayed_scaling *s, float amax) {
    const float two = mixprec_f32_from_bits_((uint32_t)(127 - s->margin) << 23); /* 2^-margin */
    float *history = s->history, largest = amax;
    uint32_t bits;
    size_t i;
    for (i = 1; i < s->history_length && !s->most_recent; i++) {
        /* NaN never is the larger one, and gives way to any number. */
        uint32_t kept = mixprec_f32_bits_(largest) & 0x7FFFFFFFu, other = mixprec_f32_bits_(history[i]) & 0x7FFFFFFFu;
        if (kept > 0x7F800000u || (other <= 0x7F800000u && other > kept))
            largest = history[i];
    }
    bits = mixprec_f32_bits_(amax) & 0x7FFFFFFFu;
    if (mixprec_is_amax_(largest))
        s->scale = mixprec_quant_ratio_((double)mixprec_quant_max_(s->dtype) * (double)two, largest);
    if (bits && s->history_length > 1) {
        for (i = 1; i + 1 < s->history_length; i++)
            history[i] = history[i + 1];
        history[s->history_length - 1] = amax;
    }
    history[0] = 0;
}

/* A strip of columns, and in it the rows of a row of blocks: columns [first, first + width). Either several blocks of
   columns, at most MIXPREC_BLOCK_ of them, or one. */
typedef struct mixprec_quant_strip_ {
    const mixprec_quantize_desc *d;
    const mixprec_kernels_ *kernels;
    size_t row, rows, first, width, block;
    int around;
    uint32_t amax[MIXPREC_BLOCK_]; /* of each block, as fp32 bits */
    float factors[MIXPREC_BLOCK_];
} mixprec_quant_strip_;

/* The whole units of each row; `amax` as for the kernel. */
static void mixprec_quant_fused_(const mixprec_quant_strip_ *s, size_t width, uint32_t *amax) {
    const size_t size = mixprec_size_of_(s->d->src_type);
    size_t i;
    for (i = s->row; i < s->row + s->rows; i++) {
        char *to = (char *)s->d->dst + mixprec_bytes_of_(s->d->dst_type, i * s->d->dst_ld + s->first);
        s->kernels->narrow(to, s->d->dst_type, (const char *)s->d->src + (i * s->d->src_ld + s->first) * size,
                           s->d->src_type, width, s->block, s->factors, amax, s->around && (uintptr_t)to % 4 == 0);
    }
}

/* Columns [done, s->width), any rounding. */
static void mixprec_quant_rest_(const mixprec_quant_strip_ *s, size_t done) {
    const mixprec_dtype src_type = s->d->src_type, dst_type = s->d->dst_type;
    const size_t size = mixprec_size_of_(src_type);
    size_t i, j, count;
    for (i = s->row; i < s->row + s->rows; i++) {
        const char *from = (const char *)s->d->src + (i * s->d->src_ld + s->first) * size;
        char *to = (char *)s->d->dst + mixprec_bytes_of_(dst_type, i * s->d->dst_ld + s->first);
        for (j = done; j < s->width; j += count) {
            float block[MIXPREC_LONG_BLOCK_];
            mixprec_how_ how;
            const float *x = (const float *)(const void *)(from + j * size);
            count = mixprec_min_(s->width - j, MIXPREC_LONG_BLOCK_);
            if (src_type != MIXPREC_F32) {
                mixprec_load_(s->kernels, block, from + j * size, src_type, count);
                x = block;
            }
            s->kernels->scale_blocks(block, x, count, s->block, j % s->block, s->factors + j / s->block);
            how.round = s->d->round;
            how.overflow = MIXPREC_OVERFLOW_SATURATE;
            how.seed = s->d->seed;
            how.index = s->d->offset + i * s->d->columns + s->first + j;
            how.around = 0;
            mixprec_store_(s->kernels, to + mixprec_bytes_of_(dst_type, j), dst_type, block, count, &how);
        }
    }
}

/* Columns [first, s->width) of each row. */
static void mixprec_quant_amax_(mixprec_quant_strip_ *s, size_t first) {
    const size_t size = mixprec_size_of_(s->d->src_type);
    size_t i;
    for (i = s->row; i < s->row + s->rows && first < s->width; i++)
        s->kernels->amax(s->amax, (const char *)s->d->src + (i * s->d->src_ld + s->first + first) * size,
                         s->d->src_type, s->width - first, s->block);
}

MIXPREC_NOINLINE_ void mixprec_quantize_run_(const mixprec_kernels_ *kernels, const mixprec_quantize_desc *d) {
    const mixprec_dtype src_type = d->src_type;
    const float max = mixprec_quant_max_(d->dst_type);
    /* With a scale that is given, strips that stay in L1, should a NaN or an overflow ask for a second look. */
    const size_t block_rows = d->scale ? 1 : d->block_rows;
    const size_t strip = mixprec_strip_() / mixprec_size_of_(src_type);
    const size_t block_columns = d->scale ? strip : d->block_columns;
    const size_t most = mixprec_min_((strip - 1) / block_columns + 1, MIXPREC_BLOCK_);
    /* Strips of fp4 begin with a byte. */
    const size_t blocks_wide = d->dst_type == MIXPREC_E2M1 && most * block_columns % 2 ? most + 1 : most;
    const int narrows = kernels->narrows >> d->dst_type & 1 && d->round == MIXPREC_ROUND_NEAREST_EVEN &&
                        mixprec_is_f32_or_16_bits_(src_type) &&
                        (block_columns % MIXPREC_UNIT_ == 0 || block_columns == d->columns || block_columns == 16 ||
                         block_columns == 32);
    const size_t bytes =
        d->rows * (d->columns * mixprec_size_of_(src_type) + mixprec_bytes_of_(d->dst_type, d->columns));
    uint32_t largest = 0;
    mixprec_quant_strip_ s;
    s.d = d;
    s.kernels = kernels;
    s.block = block_columns;
    /* mixprec_in_dram_: not on AMD. On Zen 4 f32 in blocks of 128 takes 10 to 35 % longer around the caches, bf16 up to
       10 %. */
    s.around = narrows && mixprec_in_dram_(bytes) && mixprec_streams_(kernels, bytes);
    for (s.row = 0; s.row < d->rows; s.row += block_rows) {
        s.rows = mixprec_min_(d->rows - s.row, block_rows);
        for (s.first = 0; s.first < d->columns; s.first += s.width) {
            float *scales =
                d->scale ? d->scales : d->scales + s.row / block_rows * d->scales_ld + s.first / block_columns;
            uint32_t strip_largest = 0;
            size_t blocks, i, fused = 0, done = 0;
            s.width = d->columns - s.first;
            if ((s.width - 1) / block_columns >= blocks_wide)
                s.width = blocks_wide * block_columns;
            blocks = (s.width - 1) / block_columns + 1;
            for (i = 0; i < blocks; i++)
                s.amax[i] = 0;
            if (narrows)
                fused = s.width / MIXPREC_UNIT_ * MIXPREC_UNIT_;
            if (d->scale) {
                s.factors[0] = *d->scale;
                if (fused)
                    mixprec_quant_fused_(&s, fused, s.amax);
            }
            if (!d->scale || d->amax)
                mixprec_quant_amax_(&s, d->scale ? fused : 0);
            if (kernels->block_scales && !d->scale && blocks >= 8) {
                done = blocks / 8 * 8;
                kernels->amax(&strip_largest, s.amax, MIXPREC_F32, done, done);
                kernels->block_scales(s.factors, scales, s.amax, done, max, d->power_of_two);
            }
            for (i = done; i < blocks; i++) {
                strip_largest = s.amax[i] > strip_largest ? s.amax[i] : strip_largest;
                if (!d->scale)
                    s.factors[i] = mixprec_block_scale_(mixprec_f32_from_bits_(s.amax[i]), max, d->power_of_two);
                scales[i] = mixprec_quotient_f32_(1, s.factors[i]); /* a loop of 1 / x -ffast-math only estimates */
            }
            largest = strip_largest > largest ? strip_largest : largest;
            /* What the kernel promises; a scale found here gives it to numbers. */
            if (strip_largest >= 0x7F800000u ||
                (d->scale &&
                 (double)mixprec_f32_from_bits_(strip_largest) * (double)*d->scale > (double)max * (33.0 / 32)))
                fused = 0;
            else if (fused && !d->scale)
                mixprec_quant_fused_(&s, fused, NULL);
            mixprec_quant_rest_(&s, fused);
        }
    }
    if (s.around)
        kernels->fence();
    if (d->amax)
        *d->amax = mixprec_f32_from_bits_(largest);
}

MIXPREC_NOINLINE_ void mixprec_dequantize_run_(const mixprec_kernels_ *kernels, void *dst, mixprec_dtype dst_type,
                                               size_t dst_ld, const void *src, mixprec_dtype src_type, size_t src_ld,
                                               size_t rows, size_t columns, const mixprec_scales *scales) {
    static const mixprec_how_ how = {MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0, 0, 0};
    const size_t size = mixprec_size_of_(dst_type);
    const int around = mixprec_streams_(kernels, rows * (mixprec_bytes_of_(src_type, columns) + columns * size));
    const size_t most = around ? MIXPREC_BLOCK_ : MIXPREC_LONG_BLOCK_;
    const size_t step = scales->values ? scales->block_columns : columns;
    const int widens = kernels->widens >> src_type & 1 && mixprec_is_f32_or_16_bits_(dst_type) &&
                       (step % MIXPREC_UNIT_ == 0 || step >= columns || step == 16 || step == 32);
    const float one = 1;
    float block[MIXPREC_LONG_BLOCK_];
    double room[MIXPREC_BLOCK_ * sizeof(float) / sizeof(double) + MIXPREC_ALIGN_ / sizeof(double)];
    char *narrow = mixprec_line_(room);
    size_t i, j, count;
    for (i = 0; i < rows; i++) {
        const float *factors = scales->values ? scales->values + i / scales->block_rows * scales->ld : &one;
        for (j = 0; j < columns; j += count) {
            const char *from = (const char *)src + mixprec_bytes_of_(src_type, i * src_ld + j);
            char *end = (char *)dst + (i * dst_ld + j) * size, *to = around ? narrow : end;
            count = mixprec_min_(columns - j, most);
            if (widens && count >= MIXPREC_UNIT_) {
                count = count / MIXPREC_UNIT_ * MIXPREC_UNIT_;
                count = step < count && j % step == 0 ? count / step * step : mixprec_min_(count, step - j % step);
                kernels->widen(to, dst_type, from, src_type, count, mixprec_min_(step, count), factors + j / step);
            } else {
                float *x = dst_type == MIXPREC_F32 ? (float *)(void *)to : block;
                mixprec_load_(kernels, x, from, src_type, count);
                if (scales->values)
                    kernels->scale_blocks(x, x, count, step, j % step, factors + j / step);
                mixprec_store_(kernels, to, dst_type, x, count, &how);
            }
            if (around)
                kernels->stream(end, narrow, count * size, from + mixprec_bytes_of_(src_type, count),
                                mixprec_bytes_of_(src_type, count));
        }
    }
    if (around)
        kernels->fence();
}

#endif /* MIXPREC_NO_QUANT */

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

/* Any n of f32, else at most MIXPREC_LONG_BLOCK_. */
MIXPREC_FORCE_INLINE_ int mixprec_unscale_some_(const mixprec_kernels_ *kernels, float *dst, const char *grad,
                                                mixprec_dtype type, size_t n, float factor, int around) {
    const size_t whole = n / MIXPREC_UNIT_ * MIXPREC_UNIT_;
    const float *from = (const float *)(const void *)grad;
    float room[MIXPREC_LONG_BLOCK_ + MIXPREC_ALIGN_ / sizeof(float)], *block = (float *)(void *)mixprec_line_(room);
    int found = 0;
    if (type != MIXPREC_F32) {
        mixprec_load_(kernels, block, grad, type, n);
        from = block;
    }
    if (whole)
        found = kernels->unscale(dst, from, whole, factor, around);
    return found | mixprec_unscale_c_(dst + whole, from + whole, n - whole, factor, 0);
}
MIXPREC_NOINLINE_ int mixprec_unscale_run_(const mixprec_kernels_ *kernels, float *dst, const char *grad,
                                           mixprec_dtype type, size_t n, float scale) {
    const float factor = mixprec_to_f32_(1.0 / (double)scale);
    const size_t size = mixprec_size_of_(type);
    const int around = (const char *)dst != grad && mixprec_streams_(kernels, n * (size + sizeof *dst));
    const size_t most = type == MIXPREC_F32 ? n : around ? MIXPREC_BLOCK_ : MIXPREC_LONG_BLOCK_;
    size_t i = 0, count;
    int found = 0;
    if (around) { /* what comes before dst's first whole line */
        i = (0 - (uintptr_t)dst) % MIXPREC_ALIGN_ / sizeof *dst;
        found = mixprec_unscale_some_(kernels, dst, grad, type, i, factor, 0);
    }
    for (; i < n; i += count) {
        const char *from = grad + i * size;
        count = mixprec_min_(n - i, most);
        found |= mixprec_unscale_some_(kernels, dst + i, from, type, count, factor, around);
        if (around && type != MIXPREC_F32) /* writes nothing, only asks for what comes next */
            kernels->stream(dst, dst, 0, from + count * size, count * size);
    }
    if (around)
        kernels->fence();
    return found;
}

MIXPREC_NOINLINE_ float mixprec_scale_run_(float loss, float scale) {
    return loss * scale;
}

MIXPREC_NOINLINE_ float mixprec_rescale_(float scale, double factor) {
    return (float)((double)scale * factor);
}

/* Comparisons, too, raise flags: compilers may make one of NaN that the source makes of numbers only. */
MIXPREC_NOINLINE_ int mixprec_scaler_is_sound_(const mixprec_scaler *s) {
    return mixprec_is_scale_(s->scale) && mixprec_is_scale_(s->min_scale) && mixprec_is_scale_(s->max_scale) &&
           s->min_scale <= s->scale && s->scale <= s->max_scale && mixprec_is_factor_(s->growth_factor) &&
           s->growth_factor >= 1 && mixprec_is_factor_(s->backoff_factor) && s->backoff_factor <= 1 &&
           s->growth_interval >= 1 && s->hysteresis >= 1 && s->growth_tracker >= 0 && s->hysteresis_used >= 0;
}

/* The nearest scale within the limits, which hold even when the fields were set to nonsense; NaN becomes the least. */
static float mixprec_limit_scale_(const mixprec_scaler *s, float scale) {
    float least = mixprec_is_scale_(s->min_scale) ? s->min_scale : mixprec_f32_from_bits_(0x00800000u);
    float most = mixprec_is_scale_(s->max_scale) ? s->max_scale : mixprec_f32_from_bits_(0x7F7FFFFFu);
    if (!mixprec_is_scale_(scale) || scale < least || most < least)
        return least;
    return scale < most ? scale : most;
}

MIXPREC_NOINLINE_ int mixprec_scaler_update_run_(mixprec_scaler *s) {
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
    return !found;
}

#endif /* MIXPREC_NO_SCALER */

/* ================================================================================================================== */
/* [OPTIM] Optimisers                                                                                                 */
/* ================================================================================================================== */

#ifndef MIXPREC_NO_OPTIM

#if defined(MIXPREC_HAS_AVX2_) || defined(MIXPREC_HAS_NEON_)
/* ---- steps of several weights at a time, any n. AVX-512 machines run these, too, but for Adam's: memory, division and
   square root limit them. By llvm-mca's estimate a Neoverse N1 takes 5 cycles for an element of Adam's step, where
   portable C takes 22. ---- */

#if defined(MIXPREC_HAS_AVX2_)
#define MIXPREC_STEP_ MIXPREC_AVX2_
#define MIXPREC_STEP_WIDTH_ 8
typedef __m256 mixprec_weights_;
#define MIXPREC_ALL_(x) _mm256_set1_ps(x)
#define MIXPREC_READ_(p) _mm256_loadu_ps(p)
#define MIXPREC_WRITE_(p, x) _mm256_storeu_ps(p, x)
#define MIXPREC_PLUS_(a, b) _mm256_add_ps(a, b)
#define MIXPREC_MINUS_(a, b) _mm256_sub_ps(a, b)
#define MIXPREC_TIMES_(a, b) _mm256_mul_ps(a, b)
#define MIXPREC_DIVIDED_(a, b) _mm256_div_ps(a, b)
#define MIXPREC_ROOT_(x) _mm256_sqrt_ps(x)
#define MIXPREC_LARGER_(x, y) _mm256_max_ps(x, y) /* y where x is a NaN */
#define MIXPREC_FUSED_(a, b, c) _mm256_fmadd_ps(a, b, c)
#define MIXPREC_FUSED_MINUS_(a, b, c) _mm256_fnmadd_ps(a, b, c) /* c - a b */
#define MIXPREC_STEP_AHEAD_(p) mixprec_fetch_avx2_((uintptr_t)(p) + MIXPREC_AHEAD_, 4 * MIXPREC_STEP_WIDTH_)
#else
#define MIXPREC_STEP_
#define MIXPREC_STEP_WIDTH_ 4
typedef float32x4_t mixprec_weights_;
#define MIXPREC_ALL_(x) vdupq_n_f32(x)
#define MIXPREC_READ_(p) vld1q_f32(p)
#define MIXPREC_WRITE_(p, x) vst1q_f32(p, x)
#define MIXPREC_PLUS_(a, b) vaddq_f32(a, b)
#define MIXPREC_MINUS_(a, b) vsubq_f32(a, b)
#define MIXPREC_TIMES_(a, b) vmulq_f32(a, b)
#define MIXPREC_DIVIDED_(a, b) vdivq_f32(a, b)
#define MIXPREC_ROOT_(x) vsqrtq_f32(x)
#define MIXPREC_LARGER_(x, y) vmaxnmq_f32(x, y)
#define MIXPREC_FUSED_(a, b, c) vfmaq_f32(c, a, b)
#define MIXPREC_FUSED_MINUS_(a, b, c) vfmsq_f32(c, a, b)
#define MIXPREC_STEP_AHEAD_(p) (void)(p)
#endif

/* A product that no compiler fuses with the sum it goes into. */
MIXPREC_FORCE_INLINE_ MIXPREC_STEP_ mixprec_weights_ mixprec_product_of_several_(mixprec_weights_ a,
                                                                                 mixprec_weights_ b) {
    mixprec_weights_ product = MIXPREC_TIMES_(a, b);
    MIXPREC_KEEP_(product);
    return product;
}

/* x / c, rounded once, by the inverse of c rounded to nearest: N. Brisebarre, J.-M. Muller, S. K. Raina, Accelerating
   correctly rounded floating-point division when the divisor is known in advance, 2004. Division and square root have
   one unit, which keeps step with memory only so. x is a square root, and c lies in [2^-27, 1]: nothing underflows.
   Of Inf a NaN remains, in whose place a number leaves Inf as the quotient. */
MIXPREC_FORCE_INLINE_ MIXPREC_STEP_ mixprec_weights_ mixprec_over_(mixprec_weights_ x, mixprec_weights_ c,
                                                                   mixprec_weights_ inverse) {
    mixprec_weights_ quotient = MIXPREC_TIMES_(x, inverse);
    mixprec_weights_ rest = MIXPREC_LARGER_(MIXPREC_FUSED_MINUS_(quotient, c, x), MIXPREC_ALL_(-3.402823466e38f));
    return MIXPREC_FUSED_(rest, inverse, quotient);
}

MIXPREC_STEP_ static void mixprec_adam_several_(float *w, float *m, float *v, const float *grad, size_t n,
                                                const mixprec_step_ *s) {
    const mixprec_weights_ inverse_scale = MIXPREC_ALL_(s->inverse_scale), clip = MIXPREC_ALL_(s->clip);
    const mixprec_weights_ weight_decay = MIXPREC_ALL_(s->weight_decay), keep = MIXPREC_ALL_(s->keep);
    const mixprec_weights_ beta1 = MIXPREC_ALL_(s->beta1), rest1 = MIXPREC_ALL_(s->rest1);
    const mixprec_weights_ beta2 = MIXPREC_ALL_(s->beta2), rest2 = MIXPREC_ALL_(s->rest2);
    const mixprec_weights_ correction = MIXPREC_ALL_(s->correction), epsilon = MIXPREC_ALL_(s->epsilon);
    const mixprec_weights_ inverse = MIXPREC_ALL_((float)(1.0 / (double)s->correction)), rate = MIXPREC_ALL_(s->rate);
    const int decay = s->decay, in_dram = s->in_dram;
    size_t i, whole = n / MIXPREC_STEP_WIDTH_ * MIXPREC_STEP_WIDTH_;
    for (i = 0; i < whole; i += MIXPREC_STEP_WIDTH_) {
        mixprec_weights_ g = mixprec_product_of_several_(MIXPREC_TIMES_(MIXPREC_READ_(grad + i), inverse_scale), clip);
        mixprec_weights_ weight = mixprec_product_of_several_(MIXPREC_READ_(w + i), keep), first, second, denominator;
        if (in_dram) {
            MIXPREC_STEP_AHEAD_(w + i);
            MIXPREC_STEP_AHEAD_(m + i);
            MIXPREC_STEP_AHEAD_(v + i);
        }
        if (decay)
            g = MIXPREC_PLUS_(g, mixprec_product_of_several_(weight_decay, weight));
        first = MIXPREC_PLUS_(mixprec_product_of_several_(beta1, MIXPREC_READ_(m + i)),
                              mixprec_product_of_several_(rest1, g));
        second = MIXPREC_PLUS_(mixprec_product_of_several_(beta2, MIXPREC_READ_(v + i)),
                               mixprec_product_of_several_(MIXPREC_TIMES_(rest2, g), g));
        denominator = MIXPREC_PLUS_(mixprec_over_(MIXPREC_ROOT_(second), correction, inverse), epsilon);
        MIXPREC_WRITE_(m + i, first);
        MIXPREC_WRITE_(v + i, second);
        MIXPREC_WRITE_(w + i, MIXPREC_MINUS_(weight, MIXPREC_DIVIDED_(MIXPREC_TIMES_(rate, first), denominator)));
    }
    if (n != whole) { /* with zeros after it: division and square root take as long for one as for all */
        const size_t bytes = (n - whole) * sizeof *w;
        float rest[4][MIXPREC_STEP_WIDTH_] = {{0}};
        mixprec_copy_(rest[0], w + whole, bytes);
        mixprec_copy_(rest[1], m + whole, bytes);
        mixprec_copy_(rest[2], v + whole, bytes);
        mixprec_copy_(rest[3], grad + whole, bytes);
        mixprec_adam_several_(rest[0], rest[1], rest[2], rest[3], MIXPREC_STEP_WIDTH_, s);
        mixprec_copy_(w + whole, rest[0], bytes);
        mixprec_copy_(m + whole, rest[1], bytes);
        mixprec_copy_(v + whole, rest[2], bytes);
    }
}

#if defined(MIXPREC_HAS_AVX512_)
/* mixprec_adam_several_, 16 at a time. Waiting for roots and quotients, a CPU holds twice as many weights so: on Zen 4,
   which has one unit of 256 bits for both, 1.12 cycles for a weight instead of 1.32, 6 % less time from DRAM. */
MIXPREC_FORCE_INLINE_ MIXPREC_AVX512_ __m512 mixprec_product_avx512_(__m512 a, __m512 b) {
    __m512 product = _mm512_mul_ps(a, b);
    MIXPREC_KEEP_(product);
    return product;
}
MIXPREC_AVX512_ static void mixprec_adam_avx512_(float *w, float *m, float *v, const float *grad, size_t n,
                                                 const mixprec_step_ *s) {
    const __m512 inverse_scale = _mm512_set1_ps(s->inverse_scale), clip = _mm512_set1_ps(s->clip);
    const __m512 weight_decay = _mm512_set1_ps(s->weight_decay), keep = _mm512_set1_ps(s->keep);
    const __m512 beta1 = _mm512_set1_ps(s->beta1), rest1 = _mm512_set1_ps(s->rest1);
    const __m512 beta2 = _mm512_set1_ps(s->beta2), rest2 = _mm512_set1_ps(s->rest2);
    const __m512 correction = _mm512_set1_ps(s->correction), epsilon = _mm512_set1_ps(s->epsilon);
    const __m512 inverse = _mm512_set1_ps((float)(1.0 / (double)s->correction)), rate = _mm512_set1_ps(s->rate);
    const int decay = s->decay, in_dram = s->in_dram;
    size_t i, whole = n / 16 * 16;
    for (i = 0; i < whole; i += 16) {
        __m512 g = mixprec_product_avx512_(_mm512_mul_ps(_mm512_loadu_ps(grad + i), inverse_scale), clip);
        __m512 weight = mixprec_product_avx512_(_mm512_loadu_ps(w + i), keep), first, second, root, quotient, rest;
        if (in_dram) {
            mixprec_fetch_avx2_((uintptr_t)(w + i) + MIXPREC_AHEAD_, 64);
            mixprec_fetch_avx2_((uintptr_t)(m + i) + MIXPREC_AHEAD_, 64);
            mixprec_fetch_avx2_((uintptr_t)(v + i) + MIXPREC_AHEAD_, 64);
        }
        if (decay)
            g = _mm512_add_ps(g, mixprec_product_avx512_(weight_decay, weight));
        first =
            _mm512_add_ps(mixprec_product_avx512_(beta1, _mm512_loadu_ps(m + i)), mixprec_product_avx512_(rest1, g));
        second = _mm512_add_ps(mixprec_product_avx512_(beta2, _mm512_loadu_ps(v + i)),
                               mixprec_product_avx512_(_mm512_mul_ps(rest2, g), g));
        root = _mm512_sqrt_ps(second); /* over correction: mixprec_over_ */
        quotient = _mm512_mul_ps(root, inverse);
        rest = _mm512_max_ps(_mm512_fnmadd_ps(quotient, correction, root), _mm512_set1_ps(-3.402823466e38f));
        quotient = _mm512_add_ps(_mm512_fmadd_ps(rest, inverse, quotient), epsilon);
        _mm512_storeu_ps(m + i, first);
        _mm512_storeu_ps(v + i, second);
        _mm512_storeu_ps(w + i, _mm512_sub_ps(weight, _mm512_div_ps(_mm512_mul_ps(rate, first), quotient)));
    }
    mixprec_adam_several_(w + whole, m + whole, v + whole, grad + whole, n - whole, s);
}
#endif

MIXPREC_STEP_ static void mixprec_sgd_several_(float *w, float *m, float *v, const float *grad, size_t n,
                                               const mixprec_step_ *s) {
    const mixprec_weights_ inverse_scale = MIXPREC_ALL_(s->inverse_scale), clip = MIXPREC_ALL_(s->clip);
    const mixprec_weights_ weight_decay = MIXPREC_ALL_(s->weight_decay), rate = MIXPREC_ALL_(s->rate);
    const mixprec_weights_ momentum = MIXPREC_ALL_(s->beta1), rest1 = MIXPREC_ALL_(s->rest1);
    const int decay = s->decay, first = s->first, nesterov = s->nesterov, in_dram = s->in_dram;
    size_t i, whole = n / MIXPREC_STEP_WIDTH_ * MIXPREC_STEP_WIDTH_;
    for (i = 0; i < whole; i += MIXPREC_STEP_WIDTH_) {
        mixprec_weights_ g = mixprec_product_of_several_(MIXPREC_TIMES_(MIXPREC_READ_(grad + i), inverse_scale), clip);
        mixprec_weights_ weight = MIXPREC_READ_(w + i);
        if (in_dram) {
            MIXPREC_STEP_AHEAD_(w + i);
            MIXPREC_STEP_AHEAD_(m ? m + i : w + i);
        }
        if (decay)
            g = MIXPREC_PLUS_(g, mixprec_product_of_several_(weight_decay, weight));
        if (m) {
            mixprec_weights_ moment = g;
            if (!first)
                moment = MIXPREC_PLUS_(mixprec_product_of_several_(momentum, MIXPREC_READ_(m + i)),
                                       mixprec_product_of_several_(rest1, g));
            MIXPREC_WRITE_(m + i, moment);
            g = nesterov ? MIXPREC_PLUS_(g, mixprec_product_of_several_(momentum, moment)) : moment;
        }
        MIXPREC_WRITE_(w + i, MIXPREC_MINUS_(weight, mixprec_product_of_several_(rate, g)));
    }
    mixprec_sgd_c_(w + whole, m ? m + whole : NULL, v, grad + whole, n - whole, s);
}

MIXPREC_STEP_ static void mixprec_accumulate_several_(float *sum, const float *x, size_t n, float factor, int in_dram) {
    size_t i, whole = n / MIXPREC_STEP_WIDTH_ * MIXPREC_STEP_WIDTH_;
    for (i = 0; i < whole; i += MIXPREC_STEP_WIDTH_) {
        if (in_dram)
            MIXPREC_STEP_AHEAD_(sum + i);
        if (in_dram > 1)
            MIXPREC_STEP_AHEAD_(x + i);
        MIXPREC_WRITE_(sum + i, MIXPREC_PLUS_(MIXPREC_READ_(sum + i),
                                              mixprec_product_of_several_(MIXPREC_READ_(x + i), MIXPREC_ALL_(factor))));
    }
    mixprec_accumulate_c_(sum + whole, x + whole, n - whole, factor, in_dram);
}

#undef MIXPREC_STEP_
#undef MIXPREC_STEP_WIDTH_
#undef MIXPREC_ALL_
#undef MIXPREC_READ_
#undef MIXPREC_WRITE_
#undef MIXPREC_PLUS_
#undef MIXPREC_MINUS_
#undef MIXPREC_TIMES_
#undef MIXPREC_DIVIDED_
#undef MIXPREC_ROOT_
#undef MIXPREC_LARGER_
#undef MIXPREC_FUSED_
#undef MIXPREC_FUSED_MINUS_
#undef MIXPREC_STEP_AHEAD_
#endif

/* ---- a tensor ---- */

typedef void mixprec_optimizer_(float *w, float *m, float *v, const float *grad, size_t n, const mixprec_step_ *step);

/* Loads what is not fp32, steps, and stores, a block at a time: one pass over memory. On Zen 4 blocks of 512 take 5 to
   15 % less in caches than those of 256, those of 1024 up to 10 % more from DRAM. Where in_dram may be set 256 was
   measured, and no other. */
MIXPREC_NOINLINE_ void mixprec_step_run_(const mixprec_kernels_ *kernels, mixprec_optimizer_ *optimizer,
                                         const mixprec_parameter *p, mixprec_step_ *step) {
    const size_t grad_size = mixprec_size_of_(p->grad_type), model_size = mixprec_size_of_(p->model_type);
    const size_t bytes =
        p->n * (grad_size + model_size + (p->master ? 8 : 0) + (p->moment1 ? 8 : 0) + (p->moment2 ? 8 : 0));
    const int in_dram = mixprec_in_dram_(bytes);
    /* a model that is not read */
    const int around = in_dram && p->master && p->model && mixprec_streams_(kernels, bytes);
    const size_t most = in_dram ? MIXPREC_BLOCK_ : MIXPREC_STEP_BLOCK_;
    size_t i, j, count;
    step->in_dram = in_dram;
    for (i = 0; i < p->n; i += count) {
        float weights[MIXPREC_STEP_BLOCK_], gradients[MIXPREC_STEP_BLOCK_], *w = weights;
        const char *grad = (const char *)p->grad + i * grad_size;
        const float *g = (const float *)(const void *)grad;
        char *model = p->model ? (char *)p->model + i * model_size : NULL;
        char *compensation = p->compensation ? (char *)p->compensation + i * model_size : NULL;
        mixprec_how_ how;
        count = mixprec_min_(p->n - i, most);
        how.round = p->round;
        how.overflow = p->overflow;
        how.seed = p->seed;
        how.index = p->offset + i;
        how.around = 0;
        if (p->grad_type != MIXPREC_F32) {
            mixprec_load_(kernels, gradients, grad, p->grad_type, count);
            g = gradients;
        }
        if (p->master)
            w = p->master + i;
        else
            mixprec_load_(kernels, w, model, p->model_type, count);
        if (compensation) {
            float lost[MIXPREC_STEP_BLOCK_];
            mixprec_load_(kernels, lost, compensation, p->model_type, count);
            for (j = 0; j < count; j++)
                w[j] += lost[j];
        }
        optimizer(w, p->moment1 ? p->moment1 + i : NULL, p->moment2 ? p->moment2 + i : NULL, g, count, step);
        if (around) {
            float narrow[MIXPREC_BLOCK_];
            mixprec_store_(kernels, narrow, p->model_type, w, count, &how);
            kernels->stream(model, narrow, count * model_size, grad + count * grad_size, count * grad_size);
        } else if (model)
            mixprec_store_(kernels, model, p->model_type, w, count, &how);
        if (compensation) {
            float kept[MIXPREC_STEP_BLOCK_];
            mixprec_load_(kernels, kept, model, p->model_type, count);
            for (j = 0; j < count; j++)
                w[j] -= kept[j]; /* exact */
            mixprec_store_(kernels, compensation, p->model_type, w, count, &how);
        }
    }
    if (around)
        kernels->fence();
}

/* x^n for n >= 1 by squaring: the error is about n |log x| 2^-53 of it. */
static double mixprec_power_(double x, uint64_t n) {
    double power = 1;
    for (; n; n >>= 1) {
        if (n & 1)
            power = mixprec_times_(power, x);
        x = mixprec_times_(x, x);
    }
    return power;
}

static float mixprec_rounded_f32_(double x) {
    MIXPREC_ROUNDED_ float y = (float)x;
    return y;
}

MIXPREC_NOINLINE_ void mixprec_adam_constants_(mixprec_step_ *s, const mixprec_adam *adam) {
    double correction1 = 1 - mixprec_power_(adam->beta1, adam->step);
    double correction2 = 1 - mixprec_power_(adam->beta2, adam->step);
    s->decay = !adam->decoupled && adam->weight_decay > 0;
    s->weight_decay = mixprec_rounded_f32_(adam->weight_decay);
    s->keep = adam->decoupled ? mixprec_rounded_f32_(1 - mixprec_times_(adam->learning_rate, adam->weight_decay)) : 1;
    s->beta1 = mixprec_rounded_f32_(adam->beta1);
    s->rest1 = mixprec_rounded_f32_(1 - adam->beta1);
    s->beta2 = mixprec_rounded_f32_(adam->beta2);
    s->rest2 = mixprec_rounded_f32_(1 - adam->beta2);
    s->correction = mixprec_rounded_f32_(mixprec_sqrt_f64_(correction2));
    s->epsilon = mixprec_rounded_f32_(adam->epsilon);
    s->rate = mixprec_rounded_f32_(adam->learning_rate / correction1);
}

MIXPREC_NOINLINE_ void mixprec_sgd_constants_(mixprec_step_ *s, const mixprec_sgd *sgd) {
    s->decay = sgd->weight_decay > 0;
    s->weight_decay = mixprec_rounded_f32_(sgd->weight_decay);
    s->beta1 = mixprec_rounded_f32_(sgd->momentum);
    s->rest1 = mixprec_rounded_f32_(1 - sgd->dampening);
    s->rate = mixprec_rounded_f32_(sgd->learning_rate);
    s->first = sgd->step == 1;
    s->nesterov = sgd->nesterov != 0;
}

MIXPREC_NOINLINE_ void mixprec_accumulate_run_(const mixprec_kernels_ *kernels, float *sum, const void *x,
                                               mixprec_dtype type, size_t n, float factor) {
    size_t size = mixprec_size_of_(type), i, count;
    const int in_dram = kernels->stream && mixprec_in_dram_(n * (2 * sizeof *sum + size));
    if (type == MIXPREC_F32 && n) { /* of nothing, the pointers may be NULL */
        kernels->accumulate(sum, (const float *)x, n, factor, 2 * in_dram);
        return;
    }
    for (i = 0; i < n; i += count) {
        const char *from = (const char *)x + i * size;
        float block[MIXPREC_LONG_BLOCK_];
        count = mixprec_min_(n - i, in_dram ? MIXPREC_BLOCK_ : MIXPREC_LONG_BLOCK_);
        if (in_dram) /* writes nothing, only asks for what lies ahead of x */
            kernels->stream(block, block, 0, from, count * size);
        mixprec_load_(kernels, block, from, type, count);
        kernels->accumulate(sum + i, block, count, factor, in_dram);
    }
}

/* cos(pi x) for 0 <= x <= 1: as -cos(pi (1 - x)), and from 1/4 on as a sine, by their series. The error is below
   1e-16. */
MIXPREC_NOINLINE_ double mixprec_cos_pi_(double x) {
    static const double cosine[] = {1.0 / 20922789888000.0,
                                    -1.0 / 87178291200.0,
                                    1.0 / 479001600.0,
                                    -1.0 / 3628800.0,
                                    1.0 / 40320.0,
                                    -1.0 / 720.0,
                                    1.0 / 24.0,
                                    -1.0 / 2.0,
                                    1.0};
    static const double sine[] = {-1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0, 1.0 / 362880.0,
                                  -1.0 / 5040.0,          1.0 / 120.0,        -1.0 / 6.0,        1.0};
    const double pi = 3.14159265358979323846;
    double y;
    if (x > 0.5)
        return -mixprec_cos_pi_(1 - x);
    if (x > 0.25) {
        y = mixprec_times_(pi, 0.5 - x);
        return mixprec_times_(y, mixprec_polynomial_(sine, 8, mixprec_times_(y, y)));
    }
    y = mixprec_times_(pi, x);
    return mixprec_polynomial_(cosine, 9, mixprec_times_(y, y));
}

MIXPREC_NOINLINE_ double mixprec_warmup_cosine_run_(double peak, double least, uint64_t warmup, uint64_t total,
                                                    uint64_t step) {
    double part;
    if (step < warmup)
        return mixprec_times_(peak, (double)step) / (double)warmup;
    if (step >= total)
        return least;
    part = mixprec_cos_pi_((double)(step - warmup) / (double)(total - warmup));
    return least + mixprec_times_(mixprec_times_(peak - least, 1 + part), 0.5);
}

MIXPREC_NOINLINE_ double mixprec_gradient_norm_run_(double sum_squares, float inverse_scale) {
    return mixprec_times_(mixprec_sqrt_f64_(sum_squares), (double)inverse_scale);
}

MIXPREC_NOINLINE_ float mixprec_clip_run_(double norm, double max_norm) {
    double ratio = max_norm / (norm + 1e-6);
    return ratio > 1 ? 1.0f : mixprec_rounded_f32_(ratio);
}

MIXPREC_NOINLINE_ float mixprec_inverse_run_(float scale) {
    return mixprec_rounded_f32_(1.0 / (double)scale);
}

#endif /* MIXPREC_NO_OPTIM */

/* ================================================================================================================== */
/* [POLICY] Which dtype where                                                                                         */
/* ================================================================================================================== */

#ifndef MIXPREC_NO_POLICY

/* Is text[0 .. length) one of the words of a list that has a space before and after each? */
static int mixprec_in_list_(const char *list, const char *text, size_t length) {
    const char *word = list + 1;
    while (*word) {
        size_t i = 0;
        while (i < length && word[i] == text[i] && word[i] != ' ')
            i++;
        if (i == length && length && word[i] == ' ')
            return 1;
        while (*word++ != ' ')
            ;
    }
    return 0;
}

static mixprec_dtype mixprec_policy_dtype_(const char *text, size_t length) {
    return mixprec_in_list_(" full f32 float32 ", text, length)     ? MIXPREC_F32
           : mixprec_in_list_(" half f16 float16 ", text, length)   ? MIXPREC_F16
           : mixprec_in_list_(" bf16 bfloat16 ", text, length)      ? MIXPREC_BF16
           : mixprec_in_list_(" f64 float64 ", text, length)        ? MIXPREC_F64
           : mixprec_in_list_(" e4m3 float8_e4m3fn ", text, length) ? MIXPREC_E4M3
           : mixprec_in_list_(" e5m2 float8_e5m2 ", text, length)   ? MIXPREC_E5M2
                                                                    : MIXPREC_NONE;
}

/* The first of the names above: what jmp prints. */
static const char *mixprec_policy_name_(mixprec_dtype dtype) {
    switch (dtype) {
    case MIXPREC_F32: return "full";
    case MIXPREC_F16: return "f16";
    case MIXPREC_BF16: return "bf16";
    case MIXPREC_F64: return "f64";
    case MIXPREC_E4M3: return "e4m3";
    case MIXPREC_E5M2: return "e5m2";
    default: return NULL;
    }
}

static int mixprec_policy_is_sound_(const mixprec_policy *p) {
    return mixprec_is_compute_type_(p->param) && mixprec_is_compute_type_(p->compute) &&
           mixprec_is_compute_type_(p->output) && mixprec_is_compute_type_(p->gradient);
}

#endif /* MIXPREC_NO_POLICY */

/* ================================================================================================================== */
/* [CHECKPOINT] The state of a training run as a stream of bytes                                                      */
/* ================================================================================================================== */

#ifndef MIXPREC_NO_CHECKPOINT

/* The stream, little-endian:
     8 bytes   0x89 "MIXP" 0x0D 0x0A 0x1A: not text, and damaged by whatever changes line ends
     u32       version, 1
     u32       number of items
     u64       bytes in all
     items:    u32 length of the name, the name, u32 kind, u32 dtype, u64 n, the data
     u64       checksum of all bytes before
   Data: arrays as they are; u64; the fields of mixprec_scaler and mixprec_delayed_scaling in their order, the latter
   with u64 history_length before its history. */

/* One walk over the items serves everything. */
enum { MIXPREC_COUNT_, MIXPREC_SAVE_, MIXPREC_COMPARE_, MIXPREC_LOAD_ };

#define MIXPREC_STREAM_BYTES_ (16 * MIXPREC_BLOCK_)
typedef struct mixprec_stream_ {
    int mode;
    mixprec_write write;
    mixprec_read read;
    void *context;
    uint64_t offset, hash;
    size_t fill;
    mixprec_status status;
    unsigned char bytes[MIXPREC_STREAM_BYTES_]; /* saving: what waits to be written */
} mixprec_stream_;

/* For each step, the hash is a bijection of the word, and of the hash before: a change within one word is always found,
   any other all but once in 2^64. n may leave a part of a word, only at the end; zeros fill it up. */
static uint64_t mixprec_hash_(uint64_t hash, const unsigned char *bytes, size_t n) {
    size_t i, j;
    for (i = 0; i < n; i += 8) {
        uint64_t word = 0;
        for (j = 0; j < 8 && i + j < n; j++)
            word |= (uint64_t)bytes[i + j] << 8 * j;
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u; /* odd */
        hash ^= hash >> 32;
    }
    return hash;
}

static void mixprec_flush_(mixprec_stream_ *s) {
    if (s->status == MIXPREC_OK && s->fill && s->write(s->context, s->bytes, s->fill) != s->fill)
        s->status = MIXPREC_ERR_STREAM;
    s->fill = 0;
}

/* Bytes to the stream, through the buffer: the checksum is computed on whole buffers. */
static void mixprec_put_(mixprec_stream_ *s, const unsigned char *bytes, size_t n) {
    while (n) {
        size_t count = mixprec_min_(n, MIXPREC_STREAM_BYTES_ - s->fill);
        mixprec_copy_(s->bytes + s->fill, bytes, count);
        s->fill += count;
        bytes += count;
        n -= count;
        if (s->fill == MIXPREC_STREAM_BYTES_) {
            s->hash = mixprec_hash_(s->hash, s->bytes, s->fill);
            mixprec_flush_(s);
        }
    }
}

static void mixprec_get_(mixprec_stream_ *s, void *bytes, size_t n) {
    if (s->status == MIXPREC_OK && n && s->read(s->context, s->offset, bytes, n) != n)
        s->status = MIXPREC_ERR_TRUNCATED;
}

static int mixprec_is_big_endian_(void) {
    union {
        uint16_t word;
        unsigned char bytes[2];
    } u;
    u.word = 1;
    return u.bytes[1];
}

static void mixprec_swap_(unsigned char *bytes, size_t n, size_t size) {
    size_t i, j;
    for (i = 0; i < n; i += size)
        for (j = 0; j < size / 2; j++) {
            unsigned char byte = bytes[i + j];
            bytes[i + j] = bytes[i + size - 1 - j];
            bytes[i + size - 1 - j] = byte;
        }
}

/* count elements of `size` bytes, the caller's data: counted, saved, passed over, or loaded. */
static void mixprec_data_(mixprec_stream_ *s, void *data, size_t count, size_t size) {
    unsigned char *bytes = (unsigned char *)data;
    size_t n = count * size, i, part;
    if (s->mode == MIXPREC_SAVE_ && mixprec_is_big_endian_() && size > 1)
        for (i = 0; i < n; i += part) {
            unsigned char block[256];
            part = mixprec_min_(n - i, sizeof block);
            mixprec_copy_(block, bytes + i, part);
            mixprec_swap_(block, part, size);
            mixprec_put_(s, block, part);
        }
    else if (s->mode == MIXPREC_SAVE_)
        mixprec_put_(s, bytes, n);
    if (s->mode == MIXPREC_LOAD_) {
        mixprec_get_(s, bytes, n);
        if (s->status == MIXPREC_OK && mixprec_is_big_endian_())
            mixprec_swap_(bytes, n, size);
    }
    s->offset += n;
}

/* What says how the data is laid out: must be the same when loading. */
static void mixprec_expect_bytes_(mixprec_stream_ *s, const void *bytes, size_t n) {
    if (s->mode == MIXPREC_SAVE_)
        mixprec_put_(s, (const unsigned char *)bytes, n);
    if (s->mode == MIXPREC_COMPARE_ && s->status == MIXPREC_OK) {
        unsigned char found[256];
        size_t i;
        mixprec_get_(s, found, n);
        for (i = 0; i < n && s->status == MIXPREC_OK; i++)
            if (found[i] != ((const unsigned char *)bytes)[i])
                s->status = MIXPREC_ERR_MISMATCH;
    }
    s->offset += n;
}
static void mixprec_expect_(mixprec_stream_ *s, uint64_t value, size_t size) {
    unsigned char bytes[8];
    size_t i;
    for (i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
    mixprec_expect_bytes_(s, bytes, size);
}

static size_t mixprec_name_length_(const char *name) {
    size_t length = 0;
    while (length < 256 && name[length])
        length++;
    return length;
}

static void mixprec_item_(mixprec_stream_ *s, const mixprec_checkpoint_item *item) {
    size_t length = mixprec_name_length_(item->name), i;
    mixprec_expect_(s, length, 4);
    mixprec_expect_bytes_(s, item->name, length);
    mixprec_expect_(s, (uint64_t)item->kind, 4);
    mixprec_expect_(s, (uint64_t)item->dtype, 4);
    mixprec_expect_(s, item->n, 8);
    if (item->kind == MIXPREC_CHECKPOINT_ARRAY && item->dtype == MIXPREC_E2M1)
        mixprec_data_(s, item->data, mixprec_bytes_of_(item->dtype, item->n), 1);
    else if (item->kind == MIXPREC_CHECKPOINT_ARRAY)
        mixprec_data_(s, item->data, item->n, mixprec_size_of_(item->dtype));
    else if (item->kind == MIXPREC_CHECKPOINT_U64)
        mixprec_data_(s, item->data, item->n, 8);
    else if (item->kind == MIXPREC_CHECKPOINT_SCALER)
        for (i = 0; i < item->n; i++) {
            mixprec_scaler *scaler = (mixprec_scaler *)item->data + i;
            mixprec_data_(s, &scaler->scale, 1, 4);
            mixprec_data_(s, &scaler->min_scale, 1, 4);
            mixprec_data_(s, &scaler->max_scale, 1, 4);
            mixprec_data_(s, &scaler->growth_interval, 1, 4);
            mixprec_data_(s, &scaler->growth_factor, 1, 8);
            mixprec_data_(s, &scaler->backoff_factor, 1, 8);
            mixprec_data_(s, &scaler->hysteresis, 1, 4);
            mixprec_data_(s, &scaler->growth_tracker, 1, 4);
            mixprec_data_(s, &scaler->hysteresis_used, 1, 4);
            mixprec_data_(s, &scaler->found_inf, 1, 4);
        }
    else
        for (i = 0; i < item->n; i++) {
            mixprec_delayed_scaling *scaling = (mixprec_delayed_scaling *)item->data + i;
            mixprec_data_(s, &scaling->scale, 1, 4);
            mixprec_data_(s, &scaling->margin, 1, 4);
            mixprec_data_(s, &scaling->most_recent, 1, 4);
            mixprec_expect_(s, (uint64_t)scaling->dtype, 4);
            mixprec_expect_(s, scaling->history_length, 8);
            mixprec_data_(s, scaling->history, scaling->history_length, 4);
        }
}

#define MIXPREC_HEADER_BYTES_ 24
static const unsigned char mixprec_magic_[8] = {0x89, 'M', 'I', 'X', 'P', 0x0D, 0x0A, 0x1A};

static void mixprec_walk_(mixprec_stream_ *s, const mixprec_checkpoint_item *items, size_t count) {
    size_t i;
    for (i = 0; i < count && s->status == MIXPREC_OK; i++)
        mixprec_item_(s, &items[i]);
}

static uint64_t mixprec_checkpoint_bytes_(const mixprec_checkpoint_item *items, size_t count) {
    static const mixprec_stream_ none = MIXPREC_ZERO_;
    mixprec_stream_ s = none;
    s.mode = MIXPREC_COUNT_;
    mixprec_walk_(&s, items, count);
    return MIXPREC_HEADER_BYTES_ + s.offset + 8;
}

static mixprec_status mixprec_checkpoint_check_(const mixprec_checkpoint_item *items, size_t count) {
    size_t i, j;
    if (count && !items)
        return MIXPREC_ERR_NULL;
    if (count > 0xFFFFFFFFu)
        return MIXPREC_ERR_SIZE;
    for (i = 0; i < count; i++) {
        const mixprec_checkpoint_item *item = &items[i];
        if (!item->name || (item->n && !item->data))
            return MIXPREC_ERR_NULL;
        if ((unsigned)item->kind > (unsigned)MIXPREC_CHECKPOINT_DELAYED_SCALING ||
            mixprec_name_length_(item->name) > 255)
            return MIXPREC_ERR_RANGE;
        if (item->kind == MIXPREC_CHECKPOINT_ARRAY ? !mixprec_size_of_(item->dtype) : item->dtype != MIXPREC_NONE)
            return MIXPREC_ERR_DTYPE;
        if (item->n > SIZE_MAX / 8)
            return MIXPREC_ERR_SIZE;
        for (j = 0; item->kind == MIXPREC_CHECKPOINT_DELAYED_SCALING && j < item->n; j++) {
            const mixprec_delayed_scaling *scaling = (const mixprec_delayed_scaling *)item->data + j;
            if (!scaling->history)
                return MIXPREC_ERR_NULL;
            if (scaling->history_length > SIZE_MAX / 8)
                return MIXPREC_ERR_SIZE;
        }
    }
    return MIXPREC_OK;
}

static uint64_t mixprec_little_(const unsigned char *bytes, size_t n) {
    uint64_t value = 0;
    while (n--)
        value = value << 8 | bytes[n];
    return value;
}

/* The header, and the checksum of all. */
static mixprec_status mixprec_checkpoint_verify_(mixprec_stream_ *s, size_t count, uint64_t bytes) {
    unsigned char header[MIXPREC_HEADER_BYTES_], sum[8];
    size_t got = s->read(s->context, 0, header, sizeof header), i, part;
    uint64_t total, position;
    for (i = 0; i < mixprec_min_(got, sizeof mixprec_magic_); i++)
        if (header[i] != mixprec_magic_[i])
            return MIXPREC_ERR_FORMAT;
    if (got != sizeof header)
        return MIXPREC_ERR_TRUNCATED;
    if (mixprec_little_(header + 8, 4) != 1)
        return MIXPREC_ERR_VERSION;
    total = mixprec_little_(header + 16, 8);
    if (total < MIXPREC_HEADER_BYTES_ + 8)
        return MIXPREC_ERR_CHECKSUM;
    for (position = 0; position < total - 8 && s->status == MIXPREC_OK; position += part) {
        uint64_t left = total - 8 - position;
        part = left < MIXPREC_STREAM_BYTES_ ? (size_t)left : MIXPREC_STREAM_BYTES_;
        s->offset = position;
        mixprec_get_(s, s->bytes, part);
        if (s->status == MIXPREC_OK)
            s->hash = mixprec_hash_(s->hash, s->bytes, part);
    }
    s->offset = total - 8;
    mixprec_get_(s, sum, 8);
    if (s->status != MIXPREC_OK)
        return s->status;
    if (mixprec_little_(sum, 8) != s->hash)
        return MIXPREC_ERR_CHECKSUM;
    return mixprec_little_(header + 12, 4) == count && total == bytes ? MIXPREC_OK : MIXPREC_ERR_MISMATCH;
}

#endif /* MIXPREC_NO_CHECKPOINT */

/* ================================================================================================================== */
/* [LAYERS] Forward and backward passes of neural networks                                                            */
/* ================================================================================================================== */

#ifndef MIXPREC_NO_LAYERS

/* Bits do not depend on contraction: wherever a product meets a sum, both factors are floats in f64, so that the
   product is exact, or MIXPREC_PRODUCT_ and mixprec_times_ keep them apart. */

/* How results are narrowed: nearest even, IEEE overflow. */
static const mixprec_how_ mixprec_nearest_ = {MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0, 0, 0};

/* A tensor as a layer reads or writes it, block by block. */
typedef struct mixprec_tensor_ {
    const mixprec_kernels_ *kernels;
    char *data;
    mixprec_dtype type;
} mixprec_tensor_;

MIXPREC_NOINLINE_ void mixprec_read_(float *dst, const mixprec_tensor_ *t, size_t index, size_t n) {
    mixprec_load_(t->kernels, dst, t->data + index * mixprec_size_of_(t->type), t->type, n);
}
/* Do n elements of a tensor end with a whole vector, and are they floats? */
MIXPREC_INLINE int mixprec_is_direct_(const mixprec_tensor_ *t, size_t n) {
    return t->type == MIXPREC_F32 && n % MIXPREC_FLOATS_ == 0;
}
/* The same where they are only read, as MIXPREC_LOAD_ wants them: followed by `rest`, f32 not copied where there is no
   need to. */
MIXPREC_NOINLINE_ const float *mixprec_view_(float *block, const mixprec_tensor_ *t, size_t index, size_t n,
                                             float rest) {
    if (mixprec_is_direct_(t, n))
        return (const float *)(const void *)t->data + index;
    mixprec_read_(block, t, index, n);
    for (; n % MIXPREC_FLOATS_; n++)
        block[n] = rest;
    return block;
}
/* Where to compute what mixprec_write_ then stores: f32 in its place. */
static float *mixprec_place_(float *block, const mixprec_tensor_ *t, size_t index, size_t n) {
    return mixprec_is_direct_(t, n) ? (float *)(void *)t->data + index : block;
}
MIXPREC_NOINLINE_ void mixprec_write_(const mixprec_tensor_ *t, size_t index, const float *src, size_t n) {
    char *to = t->data + index * mixprec_size_of_(t->type);
    if ((const char *)src != to)
        mixprec_store_(t->kernels, to, t->type, src, n, &mixprec_nearest_);
}

/* Asks for n elements of a tensor, which may lie anywhere. */
MIXPREC_NOINLINE_ void mixprec_fetch_(const mixprec_tensor_ *t, size_t index, size_t n) {
    const size_t size = mixprec_size_of_(t->type);
    size_t i;
    for (i = 0; i < n * size; i += 64)
        MIXPREC_FETCH_((uintptr_t)t->data + index * size + i);
}

/* Elements of a row that stay on the stack between its passes; what is needed of longer ones is computed twice. */
enum { MIXPREC_KEPT_ = 4 * MIXPREC_BLOCK_ };

/* n elements at `index` of a tensor; or what an earlier pass left in `block`, if anything: f32 stays in its place. */
MIXPREC_INLINE const float *mixprec_kept_view_(float *block, const mixprec_tensor_ *t, size_t index, size_t n,
                                               int kept) {
    return kept && !mixprec_is_direct_(t, n) ? block : mixprec_view_(block, t, index, n, 0);
}
/* sum = x + y, n numbers, and nothing beyond them. */
MIXPREC_FORCE_INLINE_ void mixprec_add_floats_(float *sum, const float *x, const float *y, size_t n) {
    const size_t whole = n / MIXPREC_FLOATS_ * MIXPREC_FLOATS_;
    size_t i, j;
    for (i = 0; i + 32 <= n; i += 32) /* a loop of one vector takes 60 % longer where it lies in two lines (Zen 4) */
        MIXPREC_UNROLL_ for (j = i; j < i + 32; j += MIXPREC_FLOATS_)
            MIXPREC_STORE_(sum + j, MIXPREC_LOAD_(x + j) + MIXPREC_LOAD_(y + j));
    for (j = i; j < whole; j += MIXPREC_FLOATS_)
        MIXPREC_STORE_(sum + j, MIXPREC_LOAD_(x + j) + MIXPREC_LOAD_(y + j));
    for (; j < n; j++)
        sum[j] = x[j] + y[j];
}
/* For such loops, mixprec_view_ and mixprec_place_ that leave f32 where it is. */
MIXPREC_INLINE const float *mixprec_exact_view_(float *block, const mixprec_tensor_ *t, size_t index, size_t n) {
    if (t->type == MIXPREC_F32)
        return (const float *)(const void *)t->data + index;
    mixprec_read_(block, t, index, n);
    return block;
}
MIXPREC_INLINE float *mixprec_exact_place_(float *block, const mixprec_tensor_ *t, size_t index) {
    return t->type == MIXPREC_F32 ? (float *)(void *)t->data + index : block;
}

/* 1 / sqrt(x): right to the last bit of an fp32 but for rare cases. +Inf where x is -0, too. */
MIXPREC_NOINLINE_ float mixprec_inverse_root_(double x) {
    return mixprec_to_f32_(1 / mixprec_sqrt_f64_(mixprec_is_zero_(x) ? 0 : x));
}

/* ---- sums ---- */

/* The elements of a row go to MIXPREC_ROW_LANES_ lanes in turn. A lane adds a run of MIXPREC_RUN_TERMS_ terms in f32,
   from +0 on, then the sums of runs in f64: so little of the work is in f64, and the error is at most
   MIXPREC_RUN_TERMS_ 2^-24 of the terms' magnitudes. */
enum {
    MIXPREC_ROW_LANES_ = 8,
    MIXPREC_ROW_VECTORS_ = MIXPREC_ROW_LANES_ / MIXPREC_FLOATS_,
    MIXPREC_RUN_TERMS_ = 8,
    MIXPREC_RUNS_ = MIXPREC_ROW_LANES_ * MIXPREC_RUN_TERMS_,
    MIXPREC_FIRST_ = 16 /* numbers whose mean deviations are from; of 8 normal ones it is too far off in .5 % of rows */
};

/* The normalised x: (x - mean) rstd. */
MIXPREC_FORCE_INLINE_ void mixprec_normalise_(mixprec_floats_ *h, const float *x, const mixprec_floats_ *mean,
                                              const mixprec_floats_ *rstd) {
    MIXPREC_SUM_(*h, MIXPREC_LOAD_(x), -*mean);
    MIXPREC_PRODUCT_(*h, *h, *rstd);
}

/* What is summed: x; x y; x - centre, and in another sum its square; dy, and in another sum dy h, h the normalised x;
   or, where gamma has an element for each x, g = dy gamma, and g h, while dy and dy h are added to dbeta and dgamma. */
enum { MIXPREC_NUMBERS_, MIXPREC_PRODUCTS_, MIXPREC_DEVIATIONS_, MIXPREC_GRADIENTS_, MIXPREC_ROW_GRADIENTS_ };
typedef struct mixprec_addends_ {
    const float *x, *y, *gamma; /* y is dy, too */
    float *dbeta, *dgamma;      /* nothing is written beyond the last element */
    mixprec_floats_ centre, scale;
} mixprec_addends_;

MIXPREC_FORCE_INLINE_ void mixprec_add_to_(float *sum, const mixprec_floats_ *term) {
    mixprec_floats_ t;
    MIXPREC_SUM_(t, MIXPREC_LOAD_(sum), *term);
    MIXPREC_STORE_(sum, t);
}
/* From element i on, of which n are left. */
MIXPREC_FORCE_INLINE_ void mixprec_terms_(mixprec_floats_ term[2], const int kind, const mixprec_addends_ *a, size_t i,
                                          size_t n) {
    mixprec_floats_ h;
    size_t j;
    term[0] = MIXPREC_LOAD_(a->x + i);
    switch (kind) {
    case MIXPREC_NUMBERS_: break;
    case MIXPREC_PRODUCTS_: MIXPREC_PRODUCT_(term[0], term[0], MIXPREC_LOAD_(a->y + i)); break;
    case MIXPREC_DEVIATIONS_:
        MIXPREC_SUM_(term[0], term[0], -a->centre);
        MIXPREC_PRODUCT_(term[1], term[0], term[0]);
        break;
    default:
        mixprec_normalise_(&h, a->x + i, &a->centre, &a->scale);
        term[0] = MIXPREC_LOAD_(a->y + i);
        MIXPREC_PRODUCT_(term[1], term[0], h);
        if (kind == MIXPREC_ROW_GRADIENTS_) {
            if (n >= MIXPREC_FLOATS_) {
                mixprec_add_to_(a->dbeta + i, &term[0]);
                mixprec_add_to_(a->dgamma + i, &term[1]);
            } else {
                float last[2][MIXPREC_FLOATS_];
                MIXPREC_STORE_(last[0], term[0]);
                MIXPREC_STORE_(last[1], term[1]);
                for (j = 0; j < n; j++) {
                    a->dbeta[i + j] = mixprec_sum_f32_(a->dbeta[i + j], last[0][j]);
                    a->dgamma[i + j] = mixprec_sum_f32_(a->dgamma[i + j], last[1][j]);
                }
            }
            MIXPREC_PRODUCT_(term[0], term[0], MIXPREC_LOAD_(a->gamma + i));
            MIXPREC_PRODUCT_(term[1], term[0], h);
        }
    }
}
/* lanes += the sums of a run. */
MIXPREC_FORCE_INLINE_ void mixprec_add_run_(mixprec_f64s_ *lanes, const float *run) {
    size_t j;
    MIXPREC_UNROLL_ for (j = 0; j < MIXPREC_ROW_LANES_; j += MIXPREC_WIDTH_) {
        const mixprec_f32s_ part = MIXPREC_LOAD_F32S_(run + j);
        lanes[j / MIXPREC_WIDTH_] += MIXPREC_TO_F64S_(part);
    }
}
/* lanes[0] += such terms, and lanes[1] those of the other sum, of a block of a row, or of all that an image has of a
   channel. */
MIXPREC_FORCE_INLINE_ void mixprec_add_terms_(double (*lanes)[MIXPREC_ROW_LANES_], const int kind,
                                              const mixprec_addends_ *a, size_t n) {
    static const float zeros[MIXPREC_ROW_LANES_] = {0};
    const int sums = kind >= MIXPREC_DEVIATIONS_ ? 2 : 1;
    mixprec_floats_ sum[2][MIXPREC_ROW_VECTORS_], term[2];
    mixprec_f64s_ wide[2][MIXPREC_ROW_LANES_ / MIXPREC_WIDTH_];
    float run[2][MIXPREC_ROW_LANES_];
    size_t i, j;
    int k;
    MIXPREC_UNROLL_ for (k = 0; k < sums; k++) {
        MIXPREC_UNROLL_ for (j = 0; j < MIXPREC_ROW_LANES_; j += MIXPREC_WIDTH_) wide[k][j / MIXPREC_WIDTH_] =
            *(const mixprec_f64s_at_ *)(lanes[k] + j);
    }
    for (i = 0; n - i >= MIXPREC_RUNS_; i += MIXPREC_RUNS_) {
        MIXPREC_UNROLL_ for (j = 0; j < MIXPREC_ROW_VECTORS_; j++) sum[0][j] = sum[1][j] = MIXPREC_LOAD_(zeros);
        MIXPREC_UNROLL_ for (j = 0; j < MIXPREC_RUNS_; j += MIXPREC_FLOATS_) {
            mixprec_terms_(term, kind, a, i + j, MIXPREC_FLOATS_);
            MIXPREC_UNROLL_ for (k = 0; k < sums; k++) {
                mixprec_floats_ *to = &sum[k][j / MIXPREC_FLOATS_ % MIXPREC_ROW_VECTORS_];
                MIXPREC_SUM_(*to, *to, term[k]);
            }
        }
        MIXPREC_UNROLL_ for (k = 0; k < sums; k++) {
            MIXPREC_UNROLL_ for (j = 0; j < MIXPREC_ROW_VECTORS_; j++)
                MIXPREC_STORE_(run[k] + j * MIXPREC_FLOATS_, sum[k][j]);
            mixprec_add_run_(wide[k], run[k]);
        }
    }
    if (i < n) {
        mixprec_clear_(run, sizeof run);
        for (j = 0; i < n; i += MIXPREC_FLOATS_, j = (j + MIXPREC_FLOATS_) % MIXPREC_ROW_LANES_) {
            mixprec_terms_(term, kind, a, i, n - i);
            MIXPREC_UNROLL_ for (k = 0; k < sums; k++) {
                if (n - i < MIXPREC_FLOATS_) {
                    float last[MIXPREC_FLOATS_] = {0};
                    mixprec_copy_(last, &term[k], (n - i) * sizeof *last);
                    term[k] = MIXPREC_LOAD_(last);
                }
                MIXPREC_SUM_(term[k], MIXPREC_LOAD_(run[k] + j), term[k]);
                MIXPREC_STORE_(run[k] + j, term[k]);
            }
        }
        MIXPREC_UNROLL_ for (k = 0; k < sums; k++) mixprec_add_run_(wide[k], run[k]);
    }
    MIXPREC_UNROLL_ for (k = 0; k < sums; k++) {
        MIXPREC_UNROLL_ for (j = 0; j < MIXPREC_ROW_LANES_; j += MIXPREC_WIDTH_) * (mixprec_f64s_at_ *)(lanes[k] + j) =
            wide[k][j / MIXPREC_WIDTH_];
    }
}
MIXPREC_INLINE double mixprec_terms_sum_(const double lanes[MIXPREC_ROW_LANES_]) {
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

/* ---- activations ---- */

/* ReLU of f16 or bf16 as codes, y, x and dy of one type: y = x where x > 0, else 0; dx = dy where x > 0, else dy * 0. A
   NaN stays one, quiet. */
#if MIXPREC_WIDTH_ > 1
enum { MIXPREC_HALVES_ = 2 * MIXPREC_FLOATS_ };
typedef int16_t mixprec_halves_ __attribute__((vector_size(2 * MIXPREC_HALVES_)));
typedef int16_t mixprec_halves_at_ __attribute__((vector_size(2 * MIXPREC_HALVES_), aligned(2), may_alias));
#define MIXPREC_ABOVE_(x, y) ((mixprec_halves_)((x) > (y))) /* all bits, where it is true */
#else
enum { MIXPREC_HALVES_ = 1 };
typedef int16_t mixprec_halves_, mixprec_halves_at_;
#define MIXPREC_ABOVE_(x, y) ((int16_t) - ((x) > (y)))
#endif
MIXPREC_FORCE_INLINE_ void mixprec_relu_some_(int16_t *y, const int16_t *x, const int16_t *dy, int16_t infinity,
                                              int16_t quiet) {
    const int16_t quiet_nan = (int16_t)(infinity | quiet);
    const mixprec_halves_ code = *(const mixprec_halves_at_ *)x;
    const mixprec_halves_ positive = MIXPREC_ABOVE_(code, 0), nan = MIXPREC_ABOVE_(code & 0x7FFF, infinity);
    mixprec_halves_ result = code & positive;
    if (dy) { /* Inf * 0 is NaN, and finite numbers become 0 of their sign */
        const mixprec_halves_ d = *(const mixprec_halves_at_ *)dy, size = d & 0x7FFF;
        const mixprec_halves_ is_nan = MIXPREC_ABOVE_(size, infinity), is_finite = MIXPREC_ABOVE_(infinity, size);
        result = (d & (positive | is_nan | -0x8000)) | (~(positive | is_finite) & quiet_nan) | (is_nan & quiet);
    }
    *(mixprec_halves_at_ *)y = (result & ~nan) | ((code | quiet) & nan);
}
/* Whole vectors. Beside AVX2, portable C does without: by way of f32 all is the same but the sign of Inf * 0. */
#if MIXPREC_WIDTH_ == 4
#define MIXPREC_HAS_RELU_(kernels) ((kernels)->isa != MIXPREC_ISA_C)
MIXPREC_TARGET_("avx2")
#else
#define MIXPREC_HAS_RELU_(kernels) 1
#endif
MIXPREC_NOINLINE_ void mixprec_relu_halves_(int16_t *y, const int16_t *x, const int16_t *dy, size_t n,
                                            int16_t infinity) {
    const int16_t quiet = infinity == 0x7C00 ? 0x0200 : 0x0040;
    size_t i;
    for (i = 0; i < n && !dy; i += MIXPREC_HALVES_)
        mixprec_relu_some_(y + i, x + i, NULL, infinity, quiet);
    for (i = 0; i < n && dy; i += MIXPREC_HALVES_)
        mixprec_relu_some_(y + i, x + i, dy + i, infinity, quiet);
}
MIXPREC_NOINLINE_ void mixprec_relu_any_(int16_t *y, const int16_t *x, const int16_t *dy, size_t n, int16_t infinity) {
    const size_t whole = n / MIXPREC_HALVES_ * MIXPREC_HALVES_, rest = (n - whole) * sizeof *x;
    int16_t code[MIXPREC_HALVES_] = {0}, gradient[MIXPREC_HALVES_] = {0};
    mixprec_relu_halves_(y, x, dy, whole, infinity);
    if (!rest)
        return;
    mixprec_copy_(code, x + whole, rest);
    if (dy)
        mixprec_copy_(gradient, dy + whole, rest);
    mixprec_relu_halves_(code, code, dy ? gradient : NULL, MIXPREC_HALVES_, infinity);
    mixprec_copy_(y + whole, code, rest);
}

/* dy == NULL: forward. */
MIXPREC_NOINLINE_ void mixprec_activate_run_(mixprec_tensor_ y, const mixprec_tensor_ *dy, mixprec_tensor_ x, size_t n,
                                             mixprec_activation activation) {
    float in[MIXPREC_BLOCK_], out[MIXPREC_BLOCK_], *to;
    const float *from, *gradient;
    size_t i, count;
    if (activation == MIXPREC_ACTIVATION_RELU && mixprec_size_of_(x.type) == 2 && y.type == x.type &&
        (!dy || dy->type == x.type) && MIXPREC_HAS_RELU_(y.kernels)) {
        mixprec_relu_any_((int16_t *)(void *)y.data, (const int16_t *)(const void *)x.data,
                          dy ? (const int16_t *)(const void *)dy->data : NULL, n,
                          x.type == MIXPREC_F16 ? 0x7C00 : 0x7F80);
        return;
    }
    for (i = 0; i < n; i += count) {
        count = mixprec_min_(n - i, MIXPREC_BLOCK_);
        from = mixprec_view_(in, &x, i, count, 0);
        gradient = dy ? mixprec_view_(out, dy, i, count, 0) : NULL;
        to = mixprec_place_(out, &y, i, count);
        mixprec_activate_(y.kernels, to, from, gradient, count, activation);
        mixprec_write_(&y, i, to, count);
    }
}

/* ---- softmax ---- */

/* log of a sum of at least one exp(0), or NaN. */
static double mixprec_log_sum_(double sum) {
    return mixprec_f64_bits_(sum) >= (uint64_t)0x7FF << 52 ? sum : mixprec_log_f64_(sum);
}

/* Elements [from, to) of a tensor become 0: what a mask hides. */
MIXPREC_APART_ void mixprec_write_zeros_(const mixprec_tensor_ *t, size_t from, size_t to) {
    const size_t size = mixprec_size_of_(t->type);
    size_t i;
    for (i = from * size; i < to * size; i++)
        t->data[i] = 0; /* +0 is all bits 0 in every type */
}

/* Everything that begins with softmax. Of each row, valid[row] columns count, or all where that is NULL. Without
   targets y becomes softmax, or its logarithm; with them, the gradient of the cross-entropy times scale, and losses the
   cross-entropy; either may be absent. */
typedef struct mixprec_softmax_ {
    mixprec_tensor_ y, x;
    const int32_t *valid, *targets;
    float *losses;
    size_t rows, columns;
    int logarithm;
    double scale;
} mixprec_softmax_;

/* max = the larger of max and x's number; max where that is NaN. */
MIXPREC_FORCE_INLINE_ void mixprec_larger_(mixprec_floats_ *max, const float *x) {
    const mixprec_floats_ in = MIXPREC_LOAD_(x);
    *max = MIXPREC_SELECT_(MIXPREC_WHERE_(in > *max), in, *max);
}
/* The maximum of a row, NaN aside; in so many chains, since a comparison waits for the one before. What had to be
   converted stays in `kept`, followed by -Inf, unless that is NULL. */
enum { MIXPREC_CHAINS_ = 4 };
MIXPREC_FORCE_INLINE_ float mixprec_row_max_(const mixprec_tensor_ *x, size_t first, size_t n, float *kept) {
    const float lowest = mixprec_f32_from_bits_(0xFF800000u);
    float buffer[MIXPREC_BLOCK_], most[MIXPREC_CHAINS_ * MIXPREC_FLOATS_];
    const float *block;
    mixprec_floats_ max[MIXPREC_CHAINS_];
    size_t i, j, k, count;
    for (i = 0; i < MIXPREC_CHAINS_ * MIXPREC_FLOATS_; i++)
        most[i] = lowest;
    MIXPREC_UNROLL_ for (k = 0; k < MIXPREC_CHAINS_; k++) max[k] = MIXPREC_LOAD_(most);
    for (i = 0; i < n; i += count) {
        count = mixprec_min_(n - i, MIXPREC_BLOCK_);
        block = mixprec_view_(kept ? kept + i : buffer, x, first + i, count, lowest);
        for (j = 0; j + MIXPREC_CHAINS_ * MIXPREC_FLOATS_ <= count; j += MIXPREC_CHAINS_ * MIXPREC_FLOATS_)
            MIXPREC_UNROLL_ for (k = 0; k < MIXPREC_CHAINS_; k++)
                mixprec_larger_(&max[k], block + j + k * MIXPREC_FLOATS_);
        for (; j < count; j += MIXPREC_FLOATS_)
            mixprec_larger_(&max[0], block + j);
    }
    MIXPREC_UNROLL_ for (k = 0; k < MIXPREC_CHAINS_; k++) MIXPREC_STORE_(most + k * MIXPREC_FLOATS_, max[k]);
    for (k = 1; k < MIXPREC_CHAINS_; k++)
        mixprec_larger_(&max[0], most + k * MIXPREC_FLOATS_);
    MIXPREC_STORE_(most, max[0]);
    MIXPREC_UNROLL_ for (count = MIXPREC_FLOATS_ / 2; count; count /= 2) MIXPREC_UNROLL_ for (i = 0; i < count; i++)
        most[i] = most[i + count] > most[i] ? most[i + count] : most[i];
    return most[0];
}

/* y = exp(x - max), where x - max is not positive, or NaN, within 1 ulp, and 0 where that vanishes; lanes += y. n <=
   MIXPREC_BLOCK_. The difference is exact as a sum of two floats (Knuth, The Art of Computer Programming, 2, 4.2.2),
   and, where exp vanishes, -104. x is followed by -Inf up to a whole vector, y by 0. */
MIXPREC_FORCE_INLINE_ void mixprec_exp_each_(const mixprec_kernels_ *kernels, float *y,
                                             double lanes[MIXPREC_ROW_LANES_], const float *x, size_t n, float max) {
    const int32_t lowest = -0x3D300000, infinity = -0x800000; /* the bits of -104 and -Inf */
    const mixprec_floats_ none = {0}, least = none - 104;
    float power[MIXPREC_BLOCK_];
    mixprec_floats_ in, hi, lo, part;
    mixprec_f64s_ sums[MIXPREC_ROW_LANES_ / MIXPREC_WIDTH_];
    mixprec_ints_ vanishes;
    size_t j, k, i;
    for (j = 0; j < n; j += MIXPREC_FLOATS_) {
        in = MIXPREC_LOAD_(x + j);
        MIXPREC_SUM_(hi, in, -max);
        MIXPREC_SUM_(part, hi, -in);
        MIXPREC_SUM_(lo, hi, -part);
        MIXPREC_SUM_(lo, in, -lo);
        MIXPREC_SUM_(part, part, max);
        MIXPREC_SUM_(lo, lo, -part);
        /* From -104 to -Inf, whose bits go up as integers. A comparison of floats becomes, with -ffast-math, "not above
           or equal", which is true of NaN. */
        vanishes = MIXPREC_WHERE_(MIXPREC_BITS_(hi) >= lowest) & MIXPREC_WHERE_(MIXPREC_BITS_(hi) <= infinity);
        MIXPREC_STORE_(y + j, MIXPREC_SELECT_(vanishes, least, hi));
        MIXPREC_STORE_(power + j, MIXPREC_FLOATS_OF_(MIXPREC_BITS_(lo) & ~vanishes));
    }
    mixprec_exps_(kernels, y, power, n, 1);
    MIXPREC_UNROLL_ for (k = 0; k < MIXPREC_ROW_LANES_; k += MIXPREC_WIDTH_) sums[k / MIXPREC_WIDTH_] =
        *(const mixprec_f64s_at_ *)(lanes + k);
    for (j = 0; j < n; j += MIXPREC_ROW_LANES_) {
#if MIXPREC_WIDTH_ > 1 /* else clang 19 warns that it cannot */
        MIXPREC_UNROLL_
#endif
        for (k = 0; k < MIXPREC_ROW_LANES_; k += MIXPREC_FLOATS_) {
            if (j + k >= n)
                break;
            lo = MIXPREC_LOAD_(power + j + k);
            MIXPREC_SUM_(part, MIXPREC_LOAD_(y + j + k), 1.0f);
            mixprec_scale_several_(&part, &lo);
            MIXPREC_STORE_(y + j + k, part);
            MIXPREC_UNROLL_ for (i = k; i < k + MIXPREC_FLOATS_; i += MIXPREC_WIDTH_) {
                const mixprec_f32s_ few = MIXPREC_LOAD_F32S_(y + j + i);
                sums[i / MIXPREC_WIDTH_] += MIXPREC_TO_F64S_(few);
            }
        }
    }
    MIXPREC_UNROLL_ for (k = 0; k < MIXPREC_ROW_LANES_; k += MIXPREC_WIDTH_) * (mixprec_f64s_at_ *)(lanes + k) =
        sums[k / MIXPREC_WIDTH_];
}

/* Exps of a row that stay on the stack. Those of a longer one wait in y, where that is f32 (its last block, unless it
   ends with a whole vector, in exps, which nothing else uses then); else they are computed once more. */
enum { MIXPREC_EXPS_ = 16 * MIXPREC_BLOCK_ };

/* Short rows go through each phase a few at a time: what ends a phase of a row, its maximum or its sum, takes long to
   come, and the next row need not wait for it. Rows of 64 take 3.4 cycles for an element so, one by one 3.75 (Zen 4). */
enum { MIXPREC_SOFTMAX_ROWS_ = 4, MIXPREC_SOFTMAX_SHORT_ = MIXPREC_EXPS_ / MIXPREC_SOFTMAX_ROWS_ };
typedef struct mixprec_softmax_row_ {
    size_t n, first;
    int32_t target;
    float *exps, max; /* exps: of all of a short row, or of a block */
    double difference, lanes[MIXPREC_ROW_LANES_];
    int is_short, in_place;
} mixprec_softmax_row_;

MIXPREC_FORCE_INLINE_ void mixprec_softmax_begin_(mixprec_softmax_row_ *r, const mixprec_softmax_ *s, size_t row,
                                                  float *exps) {
    float x[MIXPREC_FLOATS_];
    size_t i;
    r->n = s->valid ? (size_t)s->valid[row] : s->columns;
    r->first = row * s->columns;
    r->target = s->targets ? s->targets[row] : -1;
    r->exps = exps;
    r->is_short = r->n <= MIXPREC_EXPS_;
    r->in_place = !r->is_short && !s->logarithm && s->y.data && s->y.type == MIXPREC_F32;
    r->max = mixprec_row_max_(&s->x, r->first, r->n, r->is_short ? exps : NULL);
    r->difference = 0;
    if (r->target >= 0)
        r->difference = (double)*mixprec_view_(x, &s->x, r->first + (size_t)r->target, 1, 0) - (double)r->max;
    MIXPREC_KEEP_(r->difference);
    for (i = 0; i < MIXPREC_ROW_LANES_; i++)
        r->lanes[i] = 0;
}
/* Where the exps of a block from element i on are, or go. */
MIXPREC_FORCE_INLINE_ float *mixprec_softmax_place_(const mixprec_softmax_row_ *r, const mixprec_softmax_ *s, size_t i,
                                                    size_t count) {
    return r->in_place ? mixprec_place_(r->exps, &s->y, r->first + i, count) : r->exps + (r->is_short ? i : 0);
}
MIXPREC_FORCE_INLINE_ void mixprec_softmax_exps_(const mixprec_kernels_ *kernels, mixprec_softmax_row_ *r,
                                                 const mixprec_softmax_ *s, float *buffer) {
    const float lowest = mixprec_f32_from_bits_(0xFF800000u);
    size_t i, count;
    for (i = 0; i < r->n; i += count) {
        float *e;
        count = mixprec_min_(r->n - i, MIXPREC_BLOCK_);
        e = mixprec_softmax_place_(r, s, i, count);
        mixprec_exp_each_(kernels, e, r->lanes,
                          r->is_short ? mixprec_kept_view_(e, &s->x, r->first + i, count, 1)
                                      : mixprec_view_(buffer, &s->x, r->first + i, count, lowest),
                          count, r->max);
    }
}
MIXPREC_FORCE_INLINE_ void mixprec_softmax_end_(const mixprec_kernels_ *kernels, mixprec_softmax_row_ *r,
                                                const mixprec_softmax_ *s, size_t row, float *buffer) {
    const float lowest = mixprec_f32_from_bits_(0xFF800000u), *from;
    const double sum = mixprec_terms_sum_(r->lanes), inverse = 1 / sum, factor = inverse * s->scale;
    const double log_sum = s->logarithm || s->losses ? mixprec_log_sum_(sum) : 0;
    const int wide = !s->logarithm && (factor > 3.4e38 || factor < -3.4e38); /* more than f32 can hold? */
    size_t i, j, count;
    if (s->losses)
        s->losses[row] = r->target >= 0 ? mixprec_to_f32_(log_sum - r->difference) : 0;
    for (i = 0; i < r->n && s->y.data; i += count) {
        float *e, *to, picked;
        count = mixprec_min_(r->n - i, MIXPREC_BLOCK_);
        e = mixprec_softmax_place_(r, s, i, count);
        if (s->logarithm || (!r->is_short && !r->in_place)) {
            from = mixprec_view_(buffer, &s->x, r->first + i, count, lowest);
            if (s->logarithm)
                e = (float *)(uintptr_t)from; /* only read */
            else
                mixprec_exp_each_(kernels, e, r->lanes, from, count, r->max);
        }
        picked = r->target >= 0 && (size_t)r->target - i < count ? e[(size_t)r->target - i] : 0;
        to = mixprec_place_(buffer, &s->y, r->first + i, count);
        for (j = 0; j < count && (s->logarithm || wide); j += MIXPREC_WIDTH_) {
            const mixprec_f32s_ in = MIXPREC_LOAD_F32S_(e + j);
            mixprec_f64s_ z = MIXPREC_TO_F64S_(in);
            if (wide)
                z *= factor;
            else {
                z -= (double)r->max;
                MIXPREC_KEEP_SEVERAL_(z);
                z -= log_sum;
            }
            MIXPREC_STORE_F32S_(to + j, MIXPREC_TO_F32S_(z));
        }
        for (j = 0; j < count && !s->logarithm && !wide; j += MIXPREC_FLOATS_) {
            mixprec_floats_ y;
            MIXPREC_PRODUCT_(y, MIXPREC_LOAD_(e + j), (float)factor);
            MIXPREC_STORE_(to + j, y);
        }
        if (r->target >= 0 && (size_t)r->target - i < count)
            to[(size_t)r->target - i] = mixprec_to_f32_((mixprec_times_((double)picked, inverse) - 1) * s->scale);
        mixprec_write_(&s->y, r->first + i, to, count);
    }
    if (s->y.data)
        mixprec_write_zeros_(&s->y, s->targets && r->target < 0 ? r->first : r->first + r->n, r->first + s->columns);
}

MIXPREC_FORCE_INLINE_ void mixprec_softmax_run_as_(const mixprec_kernels_ *kernels, const mixprec_softmax_ *s) {
    float buffer[MIXPREC_BLOCK_], exps[MIXPREC_EXPS_];
    mixprec_softmax_row_ rows[MIXPREC_SOFTMAX_ROWS_];
    size_t row, count, r;
    for (row = 0; row < s->rows; row += count) {
        count = s->columns <= MIXPREC_SOFTMAX_SHORT_ ? mixprec_min_(s->rows - row, MIXPREC_SOFTMAX_ROWS_) : 1;
        for (r = 0; r < count; r++)
            mixprec_softmax_begin_(&rows[r], s, row + r, exps + r * MIXPREC_SOFTMAX_SHORT_);
        for (r = 0; r < count; r++)
            mixprec_softmax_exps_(kernels, &rows[r], s, buffer);
        for (r = 0; r < count; r++)
            mixprec_softmax_end_(kernels, &rows[r], s, row + r, buffer);
    }
}
MIXPREC_BOTH_(mixprec_softmax_run_, (const mixprec_kernels_ *kernels, const mixprec_softmax_ *s), (kernels, s))

/* dx = (dy - along) y */
MIXPREC_FORCE_INLINE_ void mixprec_softmax_gradient_(float *dx, const float *dy, const float *y, float along) {
    mixprec_floats_ z;
    MIXPREC_SUM_(z, MIXPREC_LOAD_(dy), -along);
    MIXPREC_PRODUCT_(z, z, MIXPREC_LOAD_(y));
    MIXPREC_STORE_(dx, z);
}
MIXPREC_FORCE_INLINE_ void mixprec_softmax_backward_run_as_(const mixprec_kernels_ *kernels, mixprec_tensor_ dx,
                                                            mixprec_tensor_ dy, mixprec_tensor_ y, const int32_t *valid,
                                                            size_t rows, size_t columns) {
    float dy_buffer[MIXPREC_KEPT_], y_buffer[MIXPREC_KEPT_], *to;
    mixprec_addends_ a;
    size_t row, i, j, k, count;
    int pass;
    (void)kernels;
    for (row = 0; row < rows; row++) {
        const size_t n = valid ? (size_t)valid[row] : columns, first = row * columns;
        const int keeps = n <= MIXPREC_KEPT_;
        double lanes[1][MIXPREC_ROW_LANES_] = {{0}};
        float along = 0;
        for (pass = 0; pass < 2; pass++) {
            for (i = 0; i < n; i += count) {
                count = mixprec_min_(n - i, MIXPREC_KEPT_);
                a.x = mixprec_kept_view_(dy_buffer, &dy, first + i, count, keeps && pass);
                a.y = mixprec_kept_view_(y_buffer, &y, first + i, count, keeps && pass);
                to = mixprec_place_(dy_buffer, &dx, first + i, count);
                if (!pass) {
                    mixprec_add_terms_(lanes, MIXPREC_PRODUCTS_, &a, count);
                    continue;
                }
                for (j = 0; j + 32 <= count; j += 32)
                    MIXPREC_UNROLL_ for (k = j; k < j + 32; k += MIXPREC_FLOATS_)
                        mixprec_softmax_gradient_(to + k, a.x + k, a.y + k, along);
                for (; j < count; j += MIXPREC_FLOATS_)
                    mixprec_softmax_gradient_(to + j, a.x + j, a.y + j, along);
                mixprec_write_(&dx, first + i, to, count);
            }
            along = mixprec_to_f32_(mixprec_terms_sum_(lanes[0]));
        }
        mixprec_write_zeros_(&dx, first + n, first + columns);
    }
}
MIXPREC_BOTH_(mixprec_softmax_backward_run_,
              (const mixprec_kernels_ *kernels, mixprec_tensor_ dx, mixprec_tensor_ dy, mixprec_tensor_ y,
               const int32_t *valid, size_t rows, size_t columns),
              (kernels, dx, dy, y, valid, rows, columns))

/* ---- normalisation ---- */

/* The elements that are normalised together: a row of a matrix, or a channel of an NCHW tensor. Segments of contiguous
   elements lie stride apart. */
typedef struct mixprec_group_ {
    size_t first, segments, length, stride;
} mixprec_group_;

/* The block of elements at `position` of the group: where it is in the tensor, and how many they are. */
static size_t mixprec_group_block_(const mixprec_group_ *g, size_t position, size_t *index) {
    size_t segment = position < g->length ? 0 : position / g->length, inside = position - segment * g->length;
    *index = g->first + segment * g->stride + inside;
    return mixprec_min_(g->length - inside, MIXPREC_KEPT_);
}

typedef struct mixprec_norm_ {
    mixprec_tensor_ y, x, dy, dx, gamma, beta; /* absent: data is NULL */
    size_t groups;
    mixprec_group_ group; /* of the first; its others start `step` later each */
    size_t step;
    int by_group;       /* gamma and beta have an element for each group, else for each element of a segment */
    int centred;        /* 0: RMS norm */
    float *mean, *rstd; /* an element for each group */
    int given;          /* mean and variance are given, not computed */
    const float *variance;
    float *dgamma, *dbeta;
    float *running_mean, *running_variance;
    double momentum, epsilon;
} mixprec_norm_;

/* gamma and beta of a channel of several pixels: one number each, for all of a group. */
MIXPREC_INLINE int mixprec_of_channel_(const mixprec_norm_ *norm) {
    return norm->by_group && norm->group.length > 1;
}
/* n elements of gamma or beta at position i of a group, of a channel a vector; `absent` where there are none. `block`
   keeps what does not change from group to group, or from image to image. */
MIXPREC_NOINLINE_ const float *mixprec_norm_parameters_(const mixprec_norm_ *norm, const mixprec_tensor_ *t,
                                                        float absent, size_t group, size_t i, float *block, size_t n) {
    size_t j;
    if (mixprec_of_channel_(norm)) {
        if (i)
            return block;
        n = MIXPREC_FLOATS_;
        if (t->data)
            mixprec_read_(&absent, t, group, 1);
    } else if (t->data)
        return mixprec_kept_view_(block, t, norm->by_group ? group : i, n,
                                  !norm->by_group && group && norm->group.length <= MIXPREC_KEPT_);
    else if (group || i) /* still there: the first block is the longest */
        return block;
    for (j = 0; j < mixprec_round_up_(n, MIXPREC_FLOATS_); j++)
        block[j] = absent;
    return block;
}

/* Is x likely in no cache but the last, in segments too short and too far apart for a CPU to see them coming? */
enum { MIXPREC_SEGMENTS_AHEAD_ = 4, MIXPREC_SEGMENT_BYTES_ = 16384 };
MIXPREC_INLINE int mixprec_is_scattered_(const mixprec_norm_ *norm) {
    const mixprec_group_ *g = &norm->group;
    const size_t size = mixprec_size_of_(norm->x.type);
    return g->segments > 1 && g->segments * g->stride >= ((size_t)1 << 20) / size &&
           g->length <= MIXPREC_SEGMENT_BYTES_ / size;
}
/* Then, asks for n elements as far in the segment four after that of `position` and `index`, perhaps of the next group.
   From DRAM batch norm of 32 images of 196 pixels takes 2.7 cycles for an element, without that 5.5, its gradients 4.4
   for 10; of 12,544 pixels these would take about 20 % longer with it (f32, Zen 4). */
MIXPREC_NOINLINE_ void mixprec_fetch_segment_(const mixprec_tensor_ *t, const mixprec_norm_ *norm, size_t position,
                                              size_t index, size_t n) {
    const mixprec_group_ *g = &norm->group;
    const size_t ahead = mixprec_min_(MIXPREC_SEGMENTS_AHEAD_, g->segments);
    index += ahead * g->stride;
    if (position / g->length + ahead >= g->segments)
        index -= g->segments * g->stride - norm->step;
    mixprec_fetch_(t, index, n);
}

/* The variance of a group and, unless this is RMS norm, its mean in f64 throughout: where f32 has no range for them. */
MIXPREC_NOINLINE_ void mixprec_norm_wide_(const mixprec_norm_ *norm, const mixprec_group_ *g, float *mean,
                                          double *variance) {
    const size_t n = g->segments * g->length;
    float buffer[MIXPREC_KEPT_];
    double moment = 0;
    size_t i, j, count, index;
    int pass;
    for (pass = !norm->centred; pass < 2; pass++) {
        double sum = 0;
        for (i = 0; i < n; i += count) {
            const float *x;
            count = mixprec_group_block_(g, i, &index);
            x = mixprec_view_(buffer, &norm->x, index, count, 0);
            for (j = 0; j < count; j++) {
                double term = (double)x[j];
                if (pass) {
                    term -= moment;
                    MIXPREC_KEEP_(term);
                    term = mixprec_times_(term, term);
                }
                sum += term;
            }
        }
        if (pass)
            *variance = sum / (double)n;
        else {
            moment = sum / (double)n;
            *mean = mixprec_to_f32_(moment);
        }
    }
}
/* Of a mean that may be off, and the means of x - mean (off) and of its square (*variance), makes the mean and the
   variance: Chan, Golub, LeVeque, The American Statistician 37, 1983. Returns whether that mean was so far off that the
   variance has lost bits, and sums around the new one are needed: of equal numbers these are 0. */
MIXPREC_INLINE int mixprec_norm_variance_(float *mean, double *variance, double off) {
    const double square = mixprec_times_(off, off), difference = *variance - square;
    const uint64_t bits = mixprec_f64_bits_(difference); /* a comparison would, with -ffast-math, make 0 of NaN, too */
    *mean = mixprec_to_f32_((double)*mean + off);
    *variance = bits >> 63 && bits <= (uint64_t)0xFFF << 52 ? 0 : difference;
    return square > difference;
}
MIXPREC_NOINLINE_ void mixprec_norm_running_(float *running, double value, double momentum) {
    *running = mixprec_to_f32_(mixprec_times_(1 - momentum, (double)*running) + mixprec_times_(momentum, value));
}

/* What a group leaves behind; returns its rstd. A variance from squares in f32 lacks those that underflow, and is not
   finite where they overflow: below 2^-100 with epsilon, and from 2^127 on, it is computed again. */
MIXPREC_NOINLINE_ float mixprec_norm_statistics_(const mixprec_norm_ *norm, size_t group, float *mean,
                                                 double variance) {
    mixprec_group_ g = norm->group;
    const double n = (double)(g.segments * g.length);
    float rstd;
    g.first += group * norm->step;
    if (!norm->given && !(variance + norm->epsilon >= 7.888609052210118e-31 && variance < 1.7014118346046923e38))
        mixprec_norm_wide_(norm, &g, mean, &variance);
    rstd = mixprec_inverse_root_(variance + norm->epsilon);
    if (norm->mean && !norm->given)
        norm->mean[group] = *mean;
    if (norm->running_mean)
        mixprec_norm_running_(&norm->running_mean[group], (double)*mean, norm->momentum);
    if (norm->running_variance) /* unbiased; a single element has none */
        mixprec_norm_running_(&norm->running_variance[group], mixprec_times_(variance, n) / (n - (n > 1)),
                              norm->momentum);
    if (norm->rstd)
        norm->rstd[group] = rstd;
    return rstd;
}

/* y = gamma h + beta, h the normalised x */
MIXPREC_FORCE_INLINE_ void mixprec_affine_(float *y, const float *x, const mixprec_floats_ *mean,
                                           const mixprec_floats_ *rstd, const float *gamma, const float *beta) {
    mixprec_floats_ h;
    mixprec_normalise_(&h, x, mean, rstd);
    MIXPREC_PRODUCT_(h, h, MIXPREC_LOAD_(gamma));
    MIXPREC_SUM_(h, h, MIXPREC_LOAD_(beta));
    MIXPREC_STORE_(y, h);
}
MIXPREC_FORCE_INLINE_ void mixprec_spread_(mixprec_floats_ *x, float value) {
    float all[MIXPREC_FLOATS_];
    size_t i;
    for (i = 0; i < MIXPREC_FLOATS_; i++)
        all[i] = value;
    *x = MIXPREC_LOAD_(all);
}

/* Channels of one pixel are the columns of a matrix. So many are computed at a time, along its rows; each is a lane. */
typedef struct mixprec_columns_ {
    float run[MIXPREC_BLOCK_];
    double sum[MIXPREC_BLOCK_];
} mixprec_columns_;

/* After a row of so many columns; of the last one too. */
MIXPREC_FORCE_INLINE_ void mixprec_end_row_(mixprec_columns_ *sums, size_t columns, size_t row, size_t rows) {
    size_t j;
    if ((row + 1) % MIXPREC_RUN_TERMS_ && row + 1 < rows)
        return;
    for (j = 0; j < columns; j += MIXPREC_WIDTH_) {
        const mixprec_f32s_ run = MIXPREC_LOAD_F32S_(sums->run + j);
        *(mixprec_f64s_at_ *)(sums->sum + j) += MIXPREC_TO_F64S_(run);
    }
    mixprec_clear_(sums->run, mixprec_round_up_(columns, MIXPREC_FLOATS_) * sizeof *sums->run);
}

/* The means of the first `rows` elements of columns of x; or, unless centre is NULL, of x - centre, and of its square
   in sums[1]. */
MIXPREC_FORCE_INLINE_ void mixprec_column_moments_(mixprec_columns_ *sums, const mixprec_norm_ *norm, size_t first,
                                                   size_t count, size_t rows, const float *centre) {
    float buffer[MIXPREC_BLOCK_];
    const size_t moments = centre ? 2 : 1;
    mixprec_addends_ a;
    size_t row, j, k;
    mixprec_clear_(sums, moments * sizeof *sums);
    for (row = 0; row < rows; row++) {
        a.x = mixprec_view_(buffer, &norm->x, row * norm->groups + first, count, 0);
        for (j = 0; j < count; j += MIXPREC_FLOATS_) {
            mixprec_floats_ term[2];
            if (centre) {
                a.centre = MIXPREC_LOAD_(centre + j);
                mixprec_terms_(term, MIXPREC_DEVIATIONS_, &a, j, count - j);
            } else
                mixprec_terms_(term, MIXPREC_NUMBERS_, &a, j, count - j);
            MIXPREC_UNROLL_ for (k = 0; k < moments; k++) mixprec_add_to_(sums[k].run + j, &term[k]);
        }
        MIXPREC_UNROLL_ for (k = 0; k < moments; k++) mixprec_end_row_(&sums[k], count, row, rows);
    }
    MIXPREC_UNROLL_ for (k = 0; k < moments; k++) for (j = 0; j < count; j++) sums[k].sum[j] /= (double)rows;
}

MIXPREC_FORCE_INLINE_ void mixprec_norm_columns_as_(const mixprec_kernels_ *kernels, const mixprec_norm_ *norm) {
    float buffer[MIXPREC_BLOCK_], gamma_buffer[MIXPREC_BLOCK_], beta_buffer[MIXPREC_BLOCK_], *to;
    float mean[MIXPREC_BLOCK_] = {0}, centre[MIXPREC_BLOCK_] = {0}, rstd[MIXPREC_BLOCK_] = {0};
    mixprec_columns_ sums[2];
    const float *gamma, *beta;
    const size_t rows = norm->group.segments;
    size_t first, count, row, j;
    int again, round;
    (void)kernels;
    for (first = 0; first < norm->groups; first += count) {
        count = mixprec_min_(norm->groups - first, MIXPREC_BLOCK_);
        if (!norm->given) {
            mixprec_column_moments_(sums, norm, first, count, mixprec_min_(rows, MIXPREC_FIRST_), NULL);
            for (j = 0; j < count; j++)
                centre[j] = mixprec_to_f32_(sums[0].sum[j]);
        }
        for (again = !norm->given, round = 0; again && round < 2; round++) {
            mixprec_column_moments_(sums, norm, first, count, rows, centre);
            for (again = 0, j = 0; j < count; j++) {
                mean[j] = centre[j];
                if (mixprec_norm_variance_(&mean[j], &sums[1].sum[j], sums[0].sum[j])) {
                    centre[j] = mean[j]; /* the others keep theirs, and so their bits */
                    again = 1;
                }
            }
        }
        for (j = 0; j < count; j++) {
            double variance = norm->given ? (double)norm->variance[first + j] : sums[1].sum[j];
            if (norm->given)
                mean[j] = norm->mean[first + j];
            rstd[j] = mixprec_norm_statistics_(norm, first + j, &mean[j], variance);
        }
        gamma = mixprec_norm_parameters_(norm, &norm->gamma, 1.0f, first, 0, gamma_buffer, count);
        beta = mixprec_norm_parameters_(norm, &norm->beta, 0.0f, first, 0, beta_buffer, count);
        for (row = 0; row < rows; row++) {
            const size_t index = row * norm->groups + first;
            const float *x = mixprec_view_(buffer, &norm->x, index, count, 0);
            to = mixprec_place_(buffer, &norm->y, index, count);
            for (j = 0; j < count; j += MIXPREC_FLOATS_) {
                const mixprec_floats_ middle = MIXPREC_LOAD_(mean + j), scale = MIXPREC_LOAD_(rstd + j);
                mixprec_affine_(to + j, x + j, &middle, &scale, gamma + j, beta + j);
            }
            mixprec_write_(&norm->y, index, to, count);
        }
    }
}
MIXPREC_BOTH_(mixprec_norm_columns_, (const mixprec_kernels_ *kernels, const mixprec_norm_ *norm), (kernels, norm))

/* Does a group fit what is kept, block after block in whole vectors? */
MIXPREC_INLINE int mixprec_is_kept_(const mixprec_group_ *g) {
    return g->segments * g->length <= MIXPREC_KEPT_ && (g->segments == 1 || g->length % MIXPREC_FLOATS_ == 0);
}

/* That for n numbers, with gamma and beta one vector each where `step` is 0. The next row begins at `next`, of
   elements of so many bytes: no CPU sees it coming after several passes over one. From DRAM layer norm of f32 takes 1.3
   cycles for an element, without these requests 1.8 (Zen 4). */
MIXPREC_FORCE_INLINE_ void mixprec_affine_row_(float *y, const float *x, const mixprec_floats_ *mean,
                                               const mixprec_floats_ *rstd, const float *gamma, const float *beta,
                                               const size_t step, size_t n, uintptr_t next, size_t size) {
    size_t i, j;
    for (i = 0; i + 32 <= n; i += 32)
        MIXPREC_UNROLL_ for (j = i; j < i + 32; j += MIXPREC_FLOATS_) {
            if (j % 16 == 0)
                MIXPREC_FETCH_(next + j * size);
            mixprec_affine_(y + j, x + j, mean, rstd, gamma + j * step, beta + j * step);
        }
    for (; i < n; i += MIXPREC_FLOATS_)
        mixprec_affine_(y + i, x + i, mean, rstd, gamma + i * step, beta + i * step);
}

/* The mean of the first numbers: what is about that of all. */
MIXPREC_FORCE_INLINE_ float mixprec_first_mean_(const mixprec_addends_ *a, size_t n) {
    double lanes[1][MIXPREC_ROW_LANES_] = {{0}};
    n = mixprec_min_(n, MIXPREC_FIRST_);
    mixprec_add_terms_(lanes, MIXPREC_NUMBERS_, a, n);
    return mixprec_to_f32_(mixprec_terms_sum_(lanes[0]) / (double)n);
}

MIXPREC_FORCE_INLINE_ void mixprec_norm_groups_as_(const mixprec_kernels_ *kernels, const mixprec_norm_ *norm) {
    float x_buffer[MIXPREC_KEPT_], gamma_buffer[MIXPREC_KEPT_], beta_buffer[MIXPREC_KEPT_], *to;
    const float *x, *gamma, *beta;
    mixprec_group_ g = norm->group;
    const int keeps = mixprec_is_kept_(&g), scattered = mixprec_is_scattered_(norm);
    const size_t size = mixprec_size_of_(norm->x.type);
    size_t group, n = g.segments * g.length, i, j, count, part, index;
    (void)kernels;
    for (group = 0; group < norm->groups; group++, g.first += norm->step) {
        mixprec_floats_ centre, scale;
        float mean = 0;
        double variance = 0;
        int again = !norm->given, round;
        if (norm->given) {
            mean = norm->mean[group];
            variance = (double)norm->variance[group];
        }
        for (round = 0; again && round < 2; round++) {
            double lanes[2][MIXPREC_ROW_LANES_];
            mixprec_addends_ a;
            mixprec_clear_(lanes[0], sizeof lanes[0]); /* of both at once gcc makes a slow loop */
            mixprec_clear_(lanes[1], sizeof lanes[1]);
            mixprec_spread_(&a.centre, mean);
            for (i = 0; i < n; i += count) {
                count = mixprec_group_block_(&g, i, &index);
                a.x = a.y = mixprec_kept_view_(keeps ? x_buffer + i : x_buffer, &norm->x, index, count, keeps && round);
                if (norm->centred && !round && !i) {
                    mean = mixprec_first_mean_(&a, count);
                    mixprec_spread_(&a.centre, mean);
                }
                for (j = 0; j < count; j += part, a.x += part, a.y += part) {
                    part = mixprec_min_(count - j, MIXPREC_BLOCK_);
                    if (!round) {
                        mixprec_fetch_(&norm->y, index + j, part);
                        if (scattered)
                            mixprec_fetch_segment_(&norm->x, norm, i, index + j, part);
                    }
                    if (norm->centred)
                        mixprec_add_terms_(lanes, MIXPREC_DEVIATIONS_, &a, part);
                    else
                        mixprec_add_terms_(lanes, MIXPREC_PRODUCTS_, &a, part);
                }
            }
            again = 0;
            variance = mixprec_terms_sum_(lanes[norm->centred]) / (double)n;
            if (norm->centred)
                again = mixprec_norm_variance_(&mean, &variance, mixprec_terms_sum_(lanes[0]) / (double)n);
        }
        mixprec_spread_(&scale, mixprec_norm_statistics_(norm, group, &mean, variance));
        mixprec_spread_(&centre, mean);
        for (i = 0; i < n; i += count) {
            float *block = keeps ? x_buffer + i : x_buffer;
            uintptr_t next;
            count = mixprec_group_block_(&g, i, &index);
            x = mixprec_kept_view_(block, &norm->x, index, count, keeps && round);
            gamma = mixprec_norm_parameters_(norm, &norm->gamma, 1.0f, group, i, gamma_buffer, count);
            beta = mixprec_norm_parameters_(norm, &norm->beta, 0.0f, group, i, beta_buffer, count);
            to = mixprec_place_(block, &norm->y, index, count);
            next = (uintptr_t)norm->x.data + (index + norm->step) * size;
            if (mixprec_of_channel_(norm))
                mixprec_affine_row_(to, x, &centre, &scale, gamma, beta, 0, count, next, size);
            else
                mixprec_affine_row_(to, x, &centre, &scale, gamma, beta, 1, count, next, size);
            mixprec_write_(&norm->y, index, to, count);
        }
    }
}
MIXPREC_BOTH_(mixprec_norm_groups_, (const mixprec_kernels_ *kernels, const mixprec_norm_ *norm), (kernels, norm))
static void mixprec_norm_run_(const mixprec_kernels_ *kernels, const mixprec_norm_ *norm) {
    if (norm->by_group && norm->group.length == 1)
        mixprec_norm_columns_(kernels, norm);
    else
        mixprec_norm_groups_(kernels, norm);
}

/* With h, the normalised x, and g, the gradient of gamma h + beta with respect to h, dy gamma: dx = rstd (g - mean g -
   h mean(g h)), without mean g for RMS norm. gamma is one vector where gamma_step is 0. */
MIXPREC_FORCE_INLINE_ void mixprec_norm_gradient_(float *dx, const mixprec_addends_ *a, size_t i,
                                                  const size_t gamma_step, const mixprec_floats_ *mean_g,
                                                  const mixprec_floats_ *along) {
    mixprec_floats_ h, z;
    mixprec_normalise_(&h, a->x + i, &a->centre, &a->scale);
    MIXPREC_PRODUCT_(z, MIXPREC_LOAD_(a->y + i), MIXPREC_LOAD_(a->gamma + i * gamma_step));
    MIXPREC_SUM_(z, z, -*mean_g);
    MIXPREC_PRODUCT_(h, h, *along);
    MIXPREC_SUM_(z, z, -h);
    MIXPREC_PRODUCT_(z, z, a->scale);
    MIXPREC_STORE_(dx + i, z);
}
MIXPREC_APART_ void mixprec_norm_add_to_(float *sums, size_t group, double sum) {
    if (sums)
        sums[group] = mixprec_to_f32_((double)sums[group] + sum);
}

/* The gradients need two means, of g and of g h. Where gamma is one number for all of a group, the sums are of dy and
   dy h, which are the gradients of beta and gamma, too; else gamma is 1 here. */
MIXPREC_INLINE float mixprec_norm_mean_(double gamma, double sum, size_t n) {
    return mixprec_to_f32_(gamma * sum / (double)n);
}

MIXPREC_FORCE_INLINE_ void mixprec_norm_backward_columns_as_(const mixprec_kernels_ *kernels,
                                                             const mixprec_norm_ *norm) {
    float x_buffer[MIXPREC_BLOCK_], dy_buffer[MIXPREC_BLOCK_], gamma_buffer[MIXPREC_BLOCK_], *to;
    float mean[MIXPREC_BLOCK_] = {0}, rstd[MIXPREC_BLOCK_] = {0}, mean_g[MIXPREC_BLOCK_] = {0};
    float along[MIXPREC_BLOCK_] = {0};
    mixprec_columns_ sums[2];
    const size_t rows = norm->group.segments;
    size_t first, count, row, j, k;
    int pass;
    (void)kernels;
    for (first = 0; first < norm->groups; first += count) {
        const float *gamma;
        count = mixprec_min_(norm->groups - first, MIXPREC_BLOCK_);
        gamma = mixprec_norm_parameters_(norm, &norm->gamma, 1.0f, first, 0, gamma_buffer, count);
        mixprec_copy_(mean, norm->mean + first, count * sizeof *mean);
        mixprec_copy_(rstd, norm->rstd + first, count * sizeof *rstd);
        mixprec_clear_(sums, sizeof sums);
        for (pass = 0; pass < (norm->dx.data ? 2 : 1); pass++) {
            for (row = 0; row < rows; row++) {
                const size_t index = row * norm->groups + first;
                mixprec_addends_ a;
                a.x = mixprec_view_(x_buffer, &norm->x, index, count, 0);
                a.y = mixprec_view_(dy_buffer, &norm->dy, index, count, 0);
                a.gamma = gamma;
                to = pass ? mixprec_place_(dy_buffer, &norm->dx, index, count) : NULL;
                for (j = 0; j < count; j += MIXPREC_FLOATS_) {
                    mixprec_floats_ term[2];
                    a.centre = MIXPREC_LOAD_(mean + j);
                    a.scale = MIXPREC_LOAD_(rstd + j);
                    if (pass) {
                        const mixprec_floats_ off = MIXPREC_LOAD_(mean_g + j), slope = MIXPREC_LOAD_(along + j);
                        mixprec_norm_gradient_(to, &a, j, 1, &off, &slope);
                        continue;
                    }
                    mixprec_terms_(term, MIXPREC_GRADIENTS_, &a, j, count - j);
                    MIXPREC_UNROLL_ for (k = 0; k < 2; k++) mixprec_add_to_(sums[k].run + j, &term[k]);
                }
                if (pass)
                    mixprec_write_(&norm->dx, index, to, count);
                for (k = 0; k < 2 && !pass; k++)
                    mixprec_end_row_(&sums[k], count, row, rows);
            }
            for (j = 0; j < count && !pass; j++) {
                mean_g[j] = mixprec_norm_mean_((double)gamma[j], sums[0].sum[j], rows);
                along[j] = mixprec_norm_mean_((double)gamma[j], sums[1].sum[j], rows);
            }
        }
        for (j = 0; j < count; j++) {
            mixprec_norm_add_to_(norm->dbeta, first + j, sums[0].sum[j]);
            mixprec_norm_add_to_(norm->dgamma, first + j, sums[1].sum[j]);
        }
    }
}
MIXPREC_BOTH_(mixprec_norm_backward_columns_, (const mixprec_kernels_ *kernels, const mixprec_norm_ *norm),
              (kernels, norm))

MIXPREC_FORCE_INLINE_ void mixprec_norm_backward_groups_as_(const mixprec_kernels_ *kernels,
                                                            const mixprec_norm_ *norm) {
    float x_buffer[MIXPREC_KEPT_], dy_buffer[MIXPREC_KEPT_], gamma_buffer[MIXPREC_KEPT_], *to;
    float unwanted[MIXPREC_KEPT_]; /* sums */
    mixprec_group_ layout = norm->group;
    const int keeps = mixprec_is_kept_(&layout), scattered = mixprec_is_scattered_(norm);
    size_t group, n = layout.segments * layout.length, i, j, count, index;
    int pass;
    (void)kernels;
    if (!norm->by_group)
        mixprec_clear_(unwanted, mixprec_min_(layout.length, MIXPREC_KEPT_) * sizeof *unwanted);
    for (group = 0; group < norm->groups; group++, layout.first += norm->step) {
        double lanes[2][MIXPREC_ROW_LANES_] = {{0}}, sums[2] = {0, 0};
        mixprec_floats_ mean_g, along;
        mixprec_addends_ a;
        float gamma = 1;
        if (norm->by_group && norm->gamma.data)
            mixprec_read_(&gamma, &norm->gamma, group, 1);
        mixprec_spread_(&a.centre, norm->centred ? norm->mean[group] : 0);
        mixprec_spread_(&a.scale, norm->rstd[group]);
        for (pass = 0; pass < (norm->dx.data ? 2 : 1); pass++) {
            mixprec_spread_(&mean_g, norm->centred ? mixprec_norm_mean_((double)gamma, sums[0], n) : 0);
            mixprec_spread_(&along, mixprec_norm_mean_((double)gamma, sums[1], n));
            for (i = 0; i < n; i += count) {
                float *dy_block = keeps ? dy_buffer + i : dy_buffer;
                count = mixprec_group_block_(&layout, i, &index);
                a.x = mixprec_kept_view_(keeps ? x_buffer + i : x_buffer, &norm->x, index, count, keeps && pass);
                a.y = mixprec_kept_view_(dy_block, &norm->dy, index, count, keeps && pass);
                if (!pass && norm->dx.data && (norm->dx.type != MIXPREC_F32 || scattered))
                    mixprec_fetch_(&norm->dx, index, count);
                if (!pass && scattered) {
                    mixprec_fetch_segment_(&norm->x, norm, i, index, count);
                    mixprec_fetch_segment_(&norm->dy, norm, i, index, count);
                }
                if (!pass && norm->by_group) {
                    mixprec_add_terms_(lanes, MIXPREC_GRADIENTS_, &a, count);
                    continue;
                }
                a.gamma = mixprec_norm_parameters_(norm, &norm->gamma, 1.0f, group, i, gamma_buffer, count);
                if (!pass) {
                    a.dbeta = norm->dbeta ? norm->dbeta + i : unwanted;
                    a.dgamma = norm->dgamma ? norm->dgamma + i : unwanted;
                    mixprec_add_terms_(lanes, MIXPREC_ROW_GRADIENTS_, &a, count);
                    continue;
                }
                /* What is converted is read and written in bursts: from DRAM bf16 takes 2.0 cycles for an element,
                   without these requests 2.9. f32 would take 15 % longer with them (Zen 4). */
                if (norm->x.type != MIXPREC_F32)
                    mixprec_fetch_(&norm->x, index + norm->step, count);
                if (norm->dy.type != MIXPREC_F32)
                    mixprec_fetch_(&norm->dy, index + norm->step, count);
                to = mixprec_place_(dy_block, &norm->dx, index, count);
                if (norm->by_group)
                    for (j = 0; j < count; j += MIXPREC_FLOATS_)
                        mixprec_norm_gradient_(to, &a, j, 0, &mean_g, &along);
                else
                    for (j = 0; j < count; j += MIXPREC_FLOATS_)
                        mixprec_norm_gradient_(to, &a, j, 1, &mean_g, &along);
                mixprec_write_(&norm->dx, index, to, count);
            }
            sums[0] = mixprec_terms_sum_(lanes[0]);
            sums[1] = mixprec_terms_sum_(lanes[1]);
        }
        if (norm->by_group) {
            mixprec_norm_add_to_(norm->dbeta, group, sums[0]);
            mixprec_norm_add_to_(norm->dgamma, group, sums[1]);
        }
    }
}
MIXPREC_BOTH_(mixprec_norm_backward_groups_, (const mixprec_kernels_ *kernels, const mixprec_norm_ *norm),
              (kernels, norm))
static void mixprec_norm_backward_run_(const mixprec_kernels_ *kernels, const mixprec_norm_ *norm) {
    if (norm->by_group && norm->group.length == 1)
        mixprec_norm_backward_columns_(kernels, norm);
    else
        mixprec_norm_backward_groups_(kernels, norm);
}

/* ---- bias, embedding, dropout ---- */

MIXPREC_FORCE_INLINE_ void mixprec_bias_run_as_(const mixprec_kernels_ *kernels, mixprec_tensor_ y, mixprec_tensor_ x,
                                                mixprec_tensor_ bias, size_t rows, size_t columns) {
    float x_buffer[MIXPREC_KEPT_], add_buffer[MIXPREC_KEPT_], *to;
    const float *from, *add = add_buffer;
    size_t row, i, count;
    (void)kernels;
    for (row = 0; row < rows; row++)
        for (i = 0; i < columns; i += count) {
            count = mixprec_min_(columns - i, MIXPREC_KEPT_);
            if (row == 0 || columns > MIXPREC_KEPT_) /* else it is still there */
                add = mixprec_exact_view_(add_buffer, &bias, i, count);
            from = mixprec_exact_view_(x_buffer, &x, row * columns + i, count);
            to = mixprec_exact_place_(x_buffer, &y, row * columns + i);
            mixprec_add_floats_(to, from, add, count);
            mixprec_write_(&y, row * columns + i, to, count);
        }
}
MIXPREC_BOTH_(mixprec_bias_run_,
              (const mixprec_kernels_ *kernels, mixprec_tensor_ y, mixprec_tensor_ x, mixprec_tensor_ bias, size_t rows,
               size_t columns),
              (kernels, y, x, bias, rows, columns))

/* sums[to[row]] += x[row], rows of `width` elements ld apart; to == NULL: all rows to sums[0]; a negative one: none. */
MIXPREC_FORCE_INLINE_ void mixprec_add_rows_run_as_(const mixprec_kernels_ *kernels, float *sums, mixprec_tensor_ x,
                                                    const int32_t *to, size_t rows, size_t width, size_t ld) {
    float buffer[MIXPREC_BLOCK_], *sum;
    size_t row, i, count;
    (void)kernels;
    for (row = 0; row < rows; row++) {
        const size_t first = to ? (size_t)to[row] * width : 0;
        if (to && to[row] < 0)
            continue;
        for (i = 0; i < width; i += count) {
            count = mixprec_min_(width - i, MIXPREC_BLOCK_);
            sum = sums + first + i;
            mixprec_add_floats_(sum, sum, mixprec_exact_view_(buffer, &x, row * ld + i, count), count);
        }
    }
}
MIXPREC_BOTH_(mixprec_add_rows_run_,
              (const mixprec_kernels_ *kernels, float *sums, mixprec_tensor_ x, const int32_t *to, size_t rows,
               size_t width, size_t ld),
              (kernels, sums, x, to, rows, width, ld))

MIXPREC_NOINLINE_ void mixprec_embedding_run_(mixprec_tensor_ y, mixprec_tensor_ table, const int32_t *tokens,
                                              size_t rows, size_t width) {
    float block[MIXPREC_BLOCK_];
    size_t row, i, count;
    for (row = 0; row < rows; row++) {
        if (tokens[row] < 0)
            mixprec_write_zeros_(&y, row * width, (row + 1) * width);
        for (i = 0; i < width && tokens[row] >= 0; i += count) {
            const size_t index = (size_t)tokens[row] * width + i;
            count = mixprec_min_(width - i, MIXPREC_BLOCK_);
            mixprec_write_(&y, row * width + i, mixprec_exact_view_(block, &table, index, count), count);
        }
    }
}

MIXPREC_FORCE_INLINE_ void mixprec_dropout_run_as_(const mixprec_kernels_ *kernels, mixprec_tensor_ y,
                                                   mixprec_tensor_ x, size_t n, float probability, uint64_t seed,
                                                   uint64_t offset) {
    const double limit = (double)probability * 4294967296.0;
    const uint64_t threshold = (uint64_t)limit + ((double)(uint64_t)limit < limit); /* rounded up */
    const uint32_t last = (uint32_t)(threshold - (threshold > 0)); /* of the words that drop, if any do */
    const int32_t drops = -(int32_t)(threshold > 0);
    const float factor = mixprec_to_f32_(1 / (1 - (double)probability));
    uint32_t words[MIXPREC_BLOCK_ + MIXPREC_RANDOMS_];
    float block[MIXPREC_BLOCK_], *to;
    const float *from;
    size_t i, j, count;
    for (i = 0; i < n; i += count) {
        const size_t odd = (size_t)(offset + i) & 1;
        count = mixprec_min_(n - i, MIXPREC_BLOCK_ - odd);
        from = mixprec_view_(block, &x, i, count, 0);
        to = mixprec_place_(block, &y, i, count);
        kernels->random(words, seed, offset + i - odd, mixprec_round_up_(count + odd, MIXPREC_RANDOMS_));
        for (j = 0; j < count; j += MIXPREC_FLOATS_) {
            const mixprec_codes_ word = *(const mixprec_codes_at_ *)(words + odd + j);
            mixprec_floats_ kept = MIXPREC_LOAD_(from + j) * factor;
            MIXPREC_STORE_(to + j, MIXPREC_FLOATS_OF_(MIXPREC_BITS_(kept) & ~(MIXPREC_WHERE_(word <= last) & drops)));
        }
        mixprec_write_(&y, i, to, count);
    }
}
MIXPREC_BOTH_(mixprec_dropout_run_,
              (const mixprec_kernels_ *kernels, mixprec_tensor_ y, mixprec_tensor_ x, size_t n, float probability,
               uint64_t seed, uint64_t offset),
              (kernels, y, x, n, probability, seed, offset))

/* ---- convolution ---- */

#ifndef MIXPREC_NO_GEMM

/* The outputs o, of n, whose input o * stride + shift - padding is in [begin, end). */
static void mixprec_conv_range_(size_t begin, size_t end, size_t shift, size_t padding, size_t stride, size_t n,
                                size_t *from, size_t *to) {
    size_t low = begin + padding, high = end + padding;
    *from = low > shift ? mixprec_min_((low - shift - 1) / stride + 1, n) : 0;
    *to = high > shift ? mixprec_min_((high - shift - 1) / stride + 1, n) : 0;
}

/* The matrix whose column (oy, ox) holds the inputs that output sees: its row (c, ky, kx) is channel c shifted. Copied
   as bytes: zero is all bits 0 in every type. `size` is a constant where this is inlined. */
MIXPREC_FORCE_INLINE_ void mixprec_im2col_as_(const mixprec_conv2d *l, char *columns, const char *image,
                                              const size_t size, size_t out_height, size_t out_width) {
    size_t rows = l->channels * l->kernel_height * l->kernel_width, row, oy, ox;
    for (row = 0; row < rows; row++) {
        size_t kx = row % l->kernel_width * l->dilation_x;
        size_t ky = row / l->kernel_width % l->kernel_height * l->dilation_y;
        const char *channel = image + row / (l->kernel_width * l->kernel_height) * l->height * l->width * size;
        size_t top, bottom, left, right;
        mixprec_conv_range_(0, l->height, ky, l->padding_y, l->stride_y, out_height, &top, &bottom);
        mixprec_conv_range_(0, l->width, kx, l->padding_x, l->stride_x, out_width, &left, &right);
        for (oy = 0; oy < out_height; oy++, columns += out_width * size) {
            const char *from;
            if (oy < top || oy >= bottom || left >= right) {
                mixprec_clear_(columns, out_width * size);
                continue;
            }
            from = channel +
                   ((oy * l->stride_y + ky - l->padding_y) * l->width + left * l->stride_x + kx - l->padding_x) * size;
            if (left)
                mixprec_clear_(columns, left * size);
            if (l->stride_x == 1)
                mixprec_copy_(columns + left * size, from, (right - left) * size);
            else
                for (ox = left; ox < right; ox++)
                    mixprec_copy_(columns + ox * size, from + (ox - left) * l->stride_x * size, size);
            if (right < out_width)
                mixprec_clear_(columns + right * size, (out_width - right) * size);
        }
    }
}
static void mixprec_im2col_(const mixprec_conv2d *l, char *columns, const char *image, size_t size, size_t out_height,
                            size_t out_width) {
    if (size == 4)
        mixprec_im2col_as_(l, columns, image, 4, out_height, out_width);
    else if (size == 2)
        mixprec_im2col_as_(l, columns, image, 2, out_height, out_width);
    else
        mixprec_im2col_as_(l, columns, image, 1, out_height, out_width);
}

/* The reverse: each input's gradient is the sum over the elements of `columns` that were copied from it. */
MIXPREC_FORCE_INLINE_ void mixprec_col2im_run_as_(const mixprec_kernels_ *kernels, const mixprec_conv2d *l,
                                                  mixprec_tensor_ dx, size_t image, const float *columns,
                                                  size_t out_height, size_t out_width) {
    const int wide = l->stride_x == 1 && out_width >= 32;
    size_t line, ky, kx, x, ox, count;
    (void)kernels;
    for (line = 0; line < l->channels * l->height; line++)
        for (x = 0; x < l->width; x += count) {
            double sum[MIXPREC_BLOCK_];
            float block[MIXPREC_BLOCK_];
            size_t channel = line / l->height, y = line % l->height, i;
            count = mixprec_min_(l->width - x, MIXPREC_BLOCK_);
            mixprec_clear_(sum, mixprec_round_up_(count, MIXPREC_WIDTH_) * sizeof *sum);
            for (ky = 0; ky < l->kernel_height; ky++) {
                size_t shift_y = ky * l->dilation_y, oy, end_y;
                mixprec_conv_range_(y, y + 1, shift_y, l->padding_y, l->stride_y, out_height, &oy, &end_y);
                for (kx = 0; oy < end_y && kx < l->kernel_width; kx++) {
                    size_t shift = kx * l->dilation_x, from, to;
                    const float *row =
                        columns +
                        (((channel * l->kernel_height + ky) * l->kernel_width + kx) * out_height + oy) * out_width;
                    double *at = sum;
                    mixprec_conv_range_(x, x + count, shift, l->padding_x, l->stride_x, out_width, &from, &to);
                    if (from < to)
                        at += from * l->stride_x + shift - l->padding_x - x;
                    ox = from;
                    /* Short rows one by one: a vector waits for the two that the one before left across it. */
                    for (; wide && ox + MIXPREC_WIDTH_ <= to; ox += MIXPREC_WIDTH_, at += MIXPREC_WIDTH_) {
                        const mixprec_f32s_ in = MIXPREC_LOAD_F32S_(row + ox);
                        *(mixprec_f64s_at_ *)at += MIXPREC_TO_F64S_(in);
                    }
                    for (i = 0; ox < to; ox++, i += l->stride_x)
                        at[i] += (double)row[ox];
                }
            }
            for (i = 0; i < count; i += MIXPREC_WIDTH_) {
                const mixprec_f64s_ z = *(const mixprec_f64s_at_ *)(sum + i);
                MIXPREC_STORE_F32S_(block + i, MIXPREC_TO_F32S_(z));
            }
            mixprec_write_(&dx, (image * l->channels * l->height + line) * l->width + x, block, count);
        }
}
MIXPREC_BOTH_(mixprec_col2im_run_,
              (const mixprec_kernels_ *kernels, const mixprec_conv2d *l, mixprec_tensor_ dx, size_t image,
               const float *columns, size_t out_height, size_t out_width),
              (kernels, l, dx, image, columns, out_height, out_width))

/* y = t + bias, row by row, of one image. */
MIXPREC_FORCE_INLINE_ void mixprec_conv_bias_run_as_(const mixprec_kernels_ *kernels, mixprec_tensor_ y, size_t first,
                                                     const float *t, mixprec_tensor_ bias, size_t rows,
                                                     size_t columns) {
    float block[MIXPREC_BLOCK_], add, *to;
    const float *from;
    size_t row, i, j, count;
    (void)kernels;
    for (row = 0; row < rows; row++) {
        mixprec_read_(&add, &bias, row, 1);
        for (i = 0; i < columns; i += count) {
            count = mixprec_min_(columns - i, MIXPREC_BLOCK_);
            from = t + row * columns + i;
            to = mixprec_exact_place_(block, &y, first + row * columns + i);
            for (j = 0; j + MIXPREC_FLOATS_ <= count; j += MIXPREC_FLOATS_)
                MIXPREC_STORE_(to + j, MIXPREC_LOAD_(from + j) + add);
            for (; j < count; j++)
                to[j] = from[j] + add;
            mixprec_write_(&y, first + row * columns + i, to, count);
        }
    }
}
MIXPREC_BOTH_(mixprec_conv_bias_run_,
              (const mixprec_kernels_ *kernels, mixprec_tensor_ y, size_t first, const float *t, mixprec_tensor_ bias,
               size_t rows, size_t columns),
              (kernels, y, first, t, bias, rows, columns))

/* sums[row] += the sum of the row of one image. */
MIXPREC_NOINLINE_ void mixprec_conv_bias_gradient_run_(float *sums, mixprec_tensor_ dy, size_t first, size_t rows,
                                                       size_t columns) {
    size_t row;
    for (row = 0; row < rows; row++) {
        const double sum = mixprec_reduce_run_(dy.kernels, NULL, MIXPREC_SUM,
                                               dy.data + (first + row * columns) * mixprec_size_of_(dy.type), dy.type,
                                               NULL, MIXPREC_NONE, 0, columns);
        sums[row] = mixprec_to_f32_((double)sums[row] + sum);
    }
}
#endif /* MIXPREC_NO_GEMM */

#endif /* MIXPREC_NO_LAYERS */

/* ================================================================================================================== */
/* [DISPATCH] One table of kernels for each instruction set                                                           */
/* ================================================================================================================== */

#if defined(MIXPREC_NO_REDUCE) && defined(MIXPREC_NO_LAYERS)
#define MIXPREC_REDUCE_KERNEL_(kernel) NULL
#else
#define MIXPREC_REDUCE_KERNEL_(kernel) kernel
#endif
#if defined(MIXPREC_NO_REDUCE) && defined(MIXPREC_NO_QUANT)
#define MIXPREC_AMAX_KERNEL_(kernel) NULL
#else
#define MIXPREC_AMAX_KERNEL_(kernel) kernel
#endif
#ifdef MIXPREC_NO_QUANT
#define MIXPREC_QUANT_KERNELS_(...) NULL, 0, NULL, 0, NULL, NULL
#else
#define MIXPREC_QUANT_KERNELS_(...) __VA_ARGS__
#define MIXPREC_NARROWS_FP8_ (1u << MIXPREC_E4M3 | 1u << MIXPREC_E5M2)
#define MIXPREC_WIDENS_ (MIXPREC_NARROWS_FP8_ | 1u << MIXPREC_E2M1 | 1u << MIXPREC_I8)
#define MIXPREC_NARROWS_BYTES_ ((1u << MIXPREC_E8M0) - (1u << MIXPREC_E4M3) + (1u << MIXPREC_I8)) /* but E8M0 */
#endif
#ifdef MIXPREC_NO_OPTIM
#define MIXPREC_OPTIM_KERNELS_(...) NULL, NULL, NULL
#else
#define MIXPREC_OPTIM_KERNELS_(...) __VA_ARGS__
#endif
#ifdef MIXPREC_NO_GEMM
#define MIXPREC_GEMM_KERNELS_(...) 0, {0, 0}, {0, 0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0, 0}, 0, 0, 0
#else
#define MIXPREC_GEMM_KERNELS_(...) __VA_ARGS__
#endif

#ifdef MIXPREC_NO_CONVERT
#define MIXPREC_TALLY_KERNELS_(tally, tally_wide)
#else
#define MIXPREC_TALLY_KERNELS_(tally, tally_wide) tally, tally_wide,
#endif

#ifndef MIXPREC_NO_LAYERS
#define MIXPREC_RANDOM_KERNEL_(random) , random
#else
#define MIXPREC_RANDOM_KERNEL_(random)
#endif
/* What does not depend on the unit that multiplies matrices. */
#define MIXPREC_COMMON_C_                                                                                              \
    MIXPREC_ISA_C, mixprec_load_c_, mixprec_load_odd_c_, mixprec_store_c_, mixprec_unscale_c_, NULL, NULL,             \
        MIXPREC_TALLY_KERNELS_(NULL, NULL) MIXPREC_REDUCE_KERNEL_(mixprec_reduce_c_),                                  \
        MIXPREC_AMAX_KERNEL_(mixprec_amax_c_),                                                                         \
        MIXPREC_QUANT_KERNELS_(NULL, 0, NULL, 0, mixprec_scale_blocks_c_, NULL),                                       \
        MIXPREC_OPTIM_KERNELS_(mixprec_adam_c_, mixprec_sgd_c_, mixprec_accumulate_c_)                                 \
            MIXPREC_RANDOM_KERNEL_(mixprec_randoms_c_)
#define MIXPREC_COMMON_AVX2_                                                                                           \
    MIXPREC_ISA_AVX2, mixprec_load_avx2_, mixprec_load_odd_avx2_, mixprec_store_avx2_, mixprec_unscale_avx2_,          \
        mixprec_stream_avx2_, mixprec_fence_avx2_,                                                                     \
        MIXPREC_TALLY_KERNELS_(mixprec_tally_avx2_, mixprec_tally_wide_avx2_)                                          \
            MIXPREC_REDUCE_KERNEL_(mixprec_reduce_avx2_),                                                              \
        MIXPREC_AMAX_KERNEL_(mixprec_amax_avx2_),                                                                      \
        MIXPREC_QUANT_KERNELS_(mixprec_narrow_avx2_, MIXPREC_NARROWS_BYTES_, mixprec_widen_avx2_, MIXPREC_WIDENS_,     \
                               mixprec_scale_blocks_avx2_, mixprec_block_scales_avx2_),                                \
        MIXPREC_OPTIM_KERNELS_(mixprec_adam_several_, mixprec_sgd_several_, mixprec_accumulate_several_)               \
            MIXPREC_RANDOM_KERNEL_(mixprec_randoms_avx2_)
#define MIXPREC_COMMON_AVX512_                                                                                         \
    MIXPREC_ISA_AVX512, mixprec_load_avx512_, mixprec_load_odd_avx512_, mixprec_store_avx512_,                         \
        mixprec_unscale_avx512_, mixprec_stream_avx2_, mixprec_fence_avx2_,                                            \
        MIXPREC_TALLY_KERNELS_(mixprec_tally_avx512_, mixprec_tally_wide_avx512_)                                      \
            MIXPREC_REDUCE_KERNEL_(mixprec_reduce_avx512_),                                                            \
        MIXPREC_AMAX_KERNEL_(mixprec_amax_avx512_),                                                                    \
        MIXPREC_QUANT_KERNELS_(mixprec_narrow_avx512_, MIXPREC_NARROWS_BYTES_, mixprec_widen_avx512_, MIXPREC_WIDENS_, \
                               mixprec_scale_blocks_avx2_, mixprec_block_scales_avx512_),                              \
        MIXPREC_OPTIM_KERNELS_(mixprec_adam_avx512_, mixprec_sgd_several_, mixprec_accumulate_several_)                \
            MIXPREC_RANDOM_KERNEL_(mixprec_randoms_avx512_)
#define MIXPREC_COMMON_NEON_                                                                                           \
    MIXPREC_ISA_NEON, mixprec_load_neon_, mixprec_load_odd_neon_, mixprec_store_neon_, mixprec_unscale_neon_, NULL,    \
        NULL,                                                                                                          \
        MIXPREC_TALLY_KERNELS_(mixprec_tally_neon_, mixprec_tally_wide_neon_)                                          \
            MIXPREC_REDUCE_KERNEL_(mixprec_reduce_neon_),                                                              \
        MIXPREC_AMAX_KERNEL_(mixprec_amax_neon_),                                                                      \
        MIXPREC_QUANT_KERNELS_(mixprec_narrow_neon_, MIXPREC_NARROWS_FP8_, NULL, 0, mixprec_scale_blocks_neon_,        \
                               mixprec_block_scales_neon_),                                                            \
        MIXPREC_OPTIM_KERNELS_(mixprec_adam_several_, mixprec_sgd_several_, mixprec_accumulate_several_)               \
            MIXPREC_RANDOM_KERNEL_(mixprec_randoms_neon_)

static const mixprec_kernels_ mixprec_kernels_c_ = {
    MIXPREC_COMMON_C_, MIXPREC_GEMM_KERNELS_(MIXPREC_TILE_ROWS_C_, {MIXPREC_TILE_COLUMNS_C_, MIXPREC_TILE_COLUMNS_C_},
                                             {0, 0}, 64, 512, 512, mixprec_pack_c_, NULL, mixprec_tile_c_, NULL, NULL,
                                             NULL, 0, 0, 0, 0, NULL, NULL, {0, 0}, 0, NULL, NULL)};

#if defined(MIXPREC_HAS_AVX2_)
static const mixprec_kernels_ mixprec_kernels_avx2_ = {
    MIXPREC_COMMON_AVX2_,
    MIXPREC_GEMM_KERNELS_(MIXPREC_TILE_ROWS_AVX2_, {16, 8}, {0, 0}, 144, 1024, 512, mixprec_pack_avx2_, NULL,
                          mixprec_tile_avx2_, mixprec_small_avx2_, mixprec_dots_avx2_, NULL, 0, 0, 0, 0,
                          mixprec_few_avx2_, mixprec_across_avx2_, {32, 32}, 0, NULL, NULL)};
#endif

#if defined(MIXPREC_HAS_AVX512_)
static const mixprec_kernels_ mixprec_kernels_avx512_ = {
    MIXPREC_COMMON_AVX512_,
    MIXPREC_GEMM_KERNELS_(MIXPREC_TILE_ROWS_AVX512_, {32, 16}, {16, 8}, 140, 2048, 1024, mixprec_pack_avx512_, NULL,
                          mixprec_tile_avx512_, mixprec_small_avx512_, mixprec_dots_avx2_, mixprec_direct_avx512_,
                          MIXPREC_DIRECT_ROWS_AVX512_, MIXPREC_DIRECT_WIDTH_, MIXPREC_DIRECT_BYTES_,
                          MIXPREC_DIRECT_BYTES_PER_ROW_, mixprec_few_avx2_, mixprec_across_avx2_, {0, 8}, 0, NULL,
                          NULL)};
#endif

#if defined(MIXPREC_HAS_NEON_)
static const mixprec_kernels_ mixprec_kernels_neon_ = {
    MIXPREC_COMMON_NEON_, MIXPREC_GEMM_KERNELS_(MIXPREC_TILE_ROWS_NEON_, {12, 6}, {0, 0}, 128, 1020, 512,
                                                mixprec_pack_neon_, NULL, mixprec_tile_neon_, NULL, NULL, NULL, 0, 0, 0,
                                                0, mixprec_few_neon_, mixprec_across_neon_, {4, 4}, 0, NULL, NULL)};
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
    return isa == MIXPREC_ISA_C || isa == best ? &mixprec_kernels_c_ : NULL; /* the best there is never is NULL */
}

#ifndef MIXPREC_NO_GEMM
#if defined(MIXPREC_HAS_AVX512_BF16_)
static const mixprec_kernels_ mixprec_kernels_pairs_ = {
    MIXPREC_COMMON_AVX512_,
    MIXPREC_GEMM_KERNELS_(MIXPREC_TILE_ROWS_AVX512_, {32, 0}, {0, 0}, 168, 1024, 2048, mixprec_pack_pairs_avx512_, NULL,
                          mixprec_tile_pairs_avx512_, NULL, NULL, mixprec_direct_pairs_avx512_,
                          MIXPREC_DIRECT_ROWS_AVX512_, MIXPREC_PAIRS_WIDTH_, MIXPREC_DIRECT_BYTES_,
                          MIXPREC_DIRECT_BYTES_PER_ROW_, NULL, NULL, {0, 0}, 0, NULL, NULL)};
#endif
#if defined(MIXPREC_HAS_AMX_)
static const mixprec_kernels_ mixprec_kernels_amx_ = {
    MIXPREC_COMMON_AVX512_,
    MIXPREC_GEMM_KERNELS_(MIXPREC_TILE_ROWS_AMX_, {MIXPREC_TILE_COLUMNS_AMX_, 0}, {0, 0}, 256, 1024, 512,
                          mixprec_pack_a_amx_, mixprec_pack_b_amx_, mixprec_tile_amx_, NULL, NULL, NULL, 0, 0, 0, 0,
                          NULL, NULL, {0, 0}, MIXPREC_TILE_DEPTH_AMX_, mixprec_begin_amx_, mixprec_end_amx_)};
#endif
#if defined(MIXPREC_HAS_NEON_NATIVE_)
static const mixprec_kernels_ mixprec_kernels_neon_bf16_ = {
    MIXPREC_COMMON_NEON_, MIXPREC_GEMM_KERNELS_(MIXPREC_TILE_ROWS_NEON_, {MIXPREC_TILE_COLUMNS_NEON_, 0}, {0, 0}, 128,
                                                1020, 512, mixprec_pack_bf16_neon_, NULL, mixprec_tile_bf16_neon_, NULL,
                                                NULL, NULL, 0, 0, 0, 0, NULL, NULL, {0, 0}, 0, NULL, NULL)};
static const mixprec_kernels_ mixprec_kernels_neon_f16_ = {
    MIXPREC_COMMON_NEON_, MIXPREC_GEMM_KERNELS_(MIXPREC_TILE_ROWS_NEON_, {MIXPREC_TILE_COLUMNS_NEON_, 0}, {0, 0}, 128,
                                                1020, 512, mixprec_pack_f16_neon_, NULL, mixprec_tile_f16_neon_, NULL,
                                                NULL, NULL, 0, 0, 0, 0, NULL, NULL, {0, 0}, 0, NULL, NULL)};
#endif

/* Those for pairs, which give the same bits, where they may be used, and are faster; else those given. */
static const mixprec_kernels_ *mixprec_pairs_kernels_(const mixprec_kernels_ *kernels, mixprec_dtype a_type,
                                                      mixprec_dtype b_type, mixprec_transpose trans_b, int packed,
                                                      size_t m, size_t n, size_t k) {
#if defined(MIXPREC_HAS_AVX512_BF16_)
    /* From DRAM one row of bf16 (two where columns lie side by side) and two of what is packed take less time by FMA
       (packed 2 x 4096 x 4096: 1.17 ms, not 1.42). Times on Zen 4, relative to those without: 64^3 .66 to .73, 17 x 256
       x 64 .53 to .57, 128^3 and more .5 to .57, 32 x 32 x 32 above 1; of few rows, k along those of B, 8 x 256 x 256
       .62 to .67, 16 x 64 x 256 .90, 4 x 256 x 1024 1.0 to 1.1, 4 x 4096 x 4096 .62 to .82; columns side by side .35 to
       .85 from 8192 elements of B on, 32 x 64 above 1; packed 4 x 512 x 512 .45. */
    const size_t too_few = packed ? 2 : b_type == MIXPREC_BF16 ? 1 + (size_t)!trans_b : 0;
    const size_t least = m > 16     ? ((size_t)1 << 17) / m
                         : packed   ? (size_t)1 << 16
                         : !trans_b ? (size_t)1 << 13
                         : m > 4    ? (size_t)1 << 16
                                    : (size_t)1 << 20;
    if (kernels->isa == MIXPREC_ISA_AVX512 && n > 16 && m > too_few && n * k >= least &&
        mixprec_features_() & MIXPREC_UNIT_PAIRS_ && (a_type == MIXPREC_BF16 || mixprec_fp8_table_(a_type)) &&
        (b_type == MIXPREC_BF16 || mixprec_fp8_table_(b_type)))
        return &mixprec_kernels_pairs_;
#endif
    (void)a_type;
    (void)b_type;
    (void)trans_b;
    (void)packed;
    (void)m;
    (void)n;
    (void)k;
    return kernels;
}

/* The kernels of a dot-product unit that may be used where the caller allows other bits; NULL where there is none. */
static const mixprec_kernels_ *mixprec_native_kernels_(const mixprec_kernels_ *kernels, mixprec_dtype a,
                                                       mixprec_dtype b) {
#if defined(MIXPREC_HAS_NEON_NATIVE_)
    if (kernels->isa == MIXPREC_ISA_NEON && a == MIXPREC_BF16 && b == a && mixprec_features_() & MIXPREC_UNIT_BF16_)
        return &mixprec_kernels_neon_bf16_;
    if (kernels->isa == MIXPREC_ISA_NEON && a == MIXPREC_F16 && b == a && mixprec_features_() & MIXPREC_UNIT_F16_)
        return &mixprec_kernels_neon_f16_;
#endif
#if defined(MIXPREC_HAS_AMX_)
    if (kernels->isa == MIXPREC_ISA_AVX512 && (a == MIXPREC_BF16 || mixprec_fp8_table_(a)) &&
        (b == MIXPREC_BF16 || mixprec_fp8_table_(b)) && mixprec_may_use_amx_())
        return &mixprec_kernels_amx_;
#endif
    (void)kernels;
    (void)a;
    (void)b;
    return NULL;
}
#endif

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
    MIXPREC_UNKNOWN_("+r", bits);
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
    how->around = 0;
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
    if (dst != src && mixprec_streams_(kernels, dst_bytes + src_bytes)) {
        mixprec_convert_around_(kernels, (char *)dst, dst_type, (const char *)src, src_type, n, &how, scale);
    } else if (dst != src || dst_bytes <= src_bytes) {
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
    if (stride == 0 || (high->stride != stride && high->stride != 0)) /* 0: a single row */
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

MIXPREC_API int mixprec_native_available(mixprec_dtype a_type, mixprec_dtype b_type) {
    return mixprec_native_kernels_(mixprec_kernels_of_(MIXPREC_ISA_AUTO), a_type, b_type) != NULL;
}

/* The kernels for a descriptor, in the place of those of its instruction set. */
static const mixprec_kernels_ *mixprec_gemm_kernels_(const mixprec_kernels_ *kernels, const mixprec_gemm_desc *d) {
    const mixprec_kernels_ *native = NULL;
    if (d->native && d->m > 16 && d->n > 16)
        native = mixprec_native_kernels_(kernels, d->a_type, d->b_type);
    return native ? native
                  : mixprec_pairs_kernels_(kernels, d->a_type, d->b_type, d->trans_b, d->packed_size != 0, d->m, d->n,
                                           d->k);
}

/* The scales of a matrix of rows x columns as stored, whose k runs along the rows (across: 0) or down the columns. */
static mixprec_status mixprec_check_scales_(mixprec_scales *scales, size_t rows, size_t columns, int across,
                                            mixprec_scale_view_ *view, mixprec_extent_ *extent) {
    size_t block_rows = scales->block_rows && scales->block_rows < rows ? scales->block_rows : rows ? rows : 1;
    size_t block_columns = scales->block_columns && scales->block_columns < columns ? scales->block_columns
                           : columns                                                ? columns
                                                                                    : 1;
    mixprec_status status;
    extent->bytes = 0;
    view->values = scales->values;
    view->block = across ? block_columns : block_rows;
    view->block_k = across ? block_rows : block_columns;
    if (!scales->values)
        return MIXPREC_OK;
    status = mixprec_check_matrix_(rows ? (rows - 1) / block_rows + 1 : 0,
                                   columns ? (columns - 1) / block_columns + 1 : 0, &scales->ld, sizeof(float), extent);
    view->step = across ? 1 : scales->ld;
    view->step_k = across ? scales->ld : 1;
    return status;
}

/* Is every scale finite and positive? */
static int mixprec_are_scales_(const float *values, const mixprec_extent_ *extent) {
    size_t i, j;
    for (i = 0; extent->bytes && i < extent->rows; i++)
        for (j = 0; j < extent->width / sizeof(float); j++)
            if (mixprec_f32_bits_(values[i * (extent->stride / sizeof(float)) + j]) - 1u >= 0x7F7FFFFFu)
                return 0;
    return 1;
}

/* What a descriptor's pointers point to: the matrices of one product, the scales, the bias, the workspace. */
enum {
    MIXPREC_A_,
    MIXPREC_B_,
    MIXPREC_C_,
    MIXPREC_SCALE_A_,
    MIXPREC_SCALE_B_,
    MIXPREC_BIAS_,
    MIXPREC_WORKSPACE_,
    MIXPREC_EXTENTS_
};

/* The head of a packed B. */
typedef struct mixprec_packed_ {
    uint64_t magic;
    uint32_t version, type, stored_type, width;
    uint64_t n, k;
    uint64_t reserved[3]; /* 64 bytes in all */
} mixprec_packed_;
static const uint64_t mixprec_packed_magic_ = (uint64_t)0x6B636150u << 32 | 0x7872696Du; /* "mixrPack" */

static mixprec_dtype mixprec_packed_type_(mixprec_dtype type) {
    return type == MIXPREC_E4M3 || type == MIXPREC_E5M2 ? MIXPREC_BF16 : type;
}
static size_t mixprec_packed_width_(const mixprec_kernels_ *kernels, mixprec_dtype type) {
    return kernels->tile_columns[type == MIXPREC_F64];
}

/* Is d's B a packed matrix that fits? */
static mixprec_status mixprec_check_packed_(const mixprec_gemm_desc *d, const mixprec_kernels_ *kernels) {
    mixprec_packed_ head;
    size_t size;
    if ((uintptr_t)d->b % 8 || d->packed_size < sizeof head || mixprec_gemm_pack_b_size(d, &size) != MIXPREC_OK ||
        d->packed_size != size)
        return MIXPREC_ERR_PACKED;
    mixprec_copy_(&head, d->b, sizeof head);
    return head.magic == mixprec_packed_magic_ && head.version == 2 && head.type == (uint32_t)d->b_type &&
                   head.stored_type == (uint32_t)mixprec_packed_type_(d->b_type) &&
                   head.width == mixprec_packed_width_(kernels, d->b_type) && head.n == d->n && head.k == d->k
               ? MIXPREC_OK
               : MIXPREC_ERR_PACKED;
}

static int mixprec_is_in_place_(const mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d) {
    return plan->bare && d->c_type == (plan->wide ? MIXPREC_F64 : MIXPREC_F32) && d->triangle == MIXPREC_FULL;
}

/* Checks everything but data, pointers and workspace; fills in what zero stands for, and the plan. */
static mixprec_status mixprec_gemm_check_(mixprec_gemm_desc *d, mixprec_gemm_plan_ *plan,
                                          mixprec_extent_ extents[MIXPREC_EXTENTS_]) {
    static const mixprec_gemm_plan_ none = MIXPREC_ZERO_;
    size_t a_size = mixprec_size_of_(d->a_type), b_size = mixprec_size_of_(d->b_type),
           c_size = mixprec_size_of_(d->c_type), a_rows, a_columns, b_rows, b_columns, batch, strides[3], sizes[3];
    mixprec_status status;
    int i, same;
    *plan = none;
    if (!mixprec_is_compute_type_(d->a_type) || !mixprec_is_compute_type_(d->b_type) ||
        !mixprec_is_compute_type_(d->c_type))
        return MIXPREC_ERR_DTYPE;
    if (d->bias_type == MIXPREC_NONE)
        d->bias_type = MIXPREC_F32;
    if (!mixprec_is_compute_type_(d->bias_type))
        return MIXPREC_ERR_DTYPE;
    if ((unsigned)d->trans_a > 1u || (unsigned)d->trans_b > 1u)
        return MIXPREC_ERR_TRANSPOSE;
    if (!mixprec_is_round_(d->round))
        return MIXPREC_ERR_ROUND;
    if (!mixprec_is_overflow_(d->overflow))
        return MIXPREC_ERR_OVERFLOW;
    plan->wide = d->a_type == MIXPREC_F64 && d->b_type == MIXPREC_F64;
    if ((unsigned)d->activation > (unsigned)MIXPREC_ACTIVATION_TANH ||
        ((plan->wide || d->c_type == MIXPREC_F64) && (unsigned)d->activation > (unsigned)MIXPREC_ACTIVATION_RELU))
        return MIXPREC_ERR_ACTIVATION;
    if (d->row_begin > d->row_end || d->row_end > d->m)
        return MIXPREC_ERR_RANGE;
    if ((unsigned)d->triangle > (unsigned)MIXPREC_UPPER ||
        (d->triangle != MIXPREC_FULL && (d->m != d->n || d->row_end)))
        return MIXPREC_ERR_TRIANGLE;
    plan->kernels = mixprec_kernels_of_(d->isa);
    if (!plan->kernels)
        return MIXPREC_ERR_ISA;
    plan->kernels = mixprec_gemm_kernels_(plan->kernels, d);
    if (d->packed_size) {
        if (d->stride_b || d->b_array || (d->b_type == MIXPREC_F64 && !plan->wide))
            return MIXPREC_ERR_PACKED;
        d->ldb = 0;
    }
    batch = d->batch = d->batch ? d->batch : 1;
    a_rows = d->trans_a ? d->k : d->m;
    a_columns = d->trans_a ? d->m : d->k;
    b_rows = d->trans_b ? d->n : d->k;
    b_columns = d->trans_b ? d->k : d->n;
    status = mixprec_check_matrix_(a_rows, a_columns, &d->lda, a_size, &extents[MIXPREC_A_]);
    if (status == MIXPREC_OK)
        status = mixprec_check_matrix_(b_rows, b_columns, &d->ldb, b_size, &extents[MIXPREC_B_]);
    if (status == MIXPREC_OK)
        status = mixprec_check_matrix_(d->m, d->n, &d->ldc, c_size, &extents[MIXPREC_C_]);
    if (status == MIXPREC_OK)
        status = mixprec_check_scales_(&d->scale_a, a_rows, a_columns, d->trans_a == MIXPREC_TRANS, &plan->scale_a,
                                       &extents[MIXPREC_SCALE_A_]);
    if (status == MIXPREC_OK)
        status = mixprec_check_scales_(&d->scale_b, b_rows, b_columns, d->trans_b == MIXPREC_NO_TRANS, &plan->scale_b,
                                       &extents[MIXPREC_SCALE_B_]);
    if (status != MIXPREC_OK)
        return status;
    extents[MIXPREC_BIAS_] = extents[MIXPREC_C_];
    extents[MIXPREC_BIAS_].rows = 1;
    extents[MIXPREC_BIAS_].stride = 0;
    extents[MIXPREC_WORKSPACE_] = extents[MIXPREC_BIAS_];
    extents[MIXPREC_BIAS_].bytes = extents[MIXPREC_BIAS_].width = d->n * mixprec_size_of_(d->bias_type);
    extents[MIXPREC_WORKSPACE_].bytes = extents[MIXPREC_WORKSPACE_].width = d->workspace_size;
    if (batch == 1)
        d->stride_a = d->stride_b = d->stride_c = 0;
    else if (!d->stride_c)
        d->stride_c = d->m * d->ldc; /* no overflow that matters: C's extent is known to be far below SIZE_MAX */
    d->stride_a = d->a_array ? 0 : d->stride_a;
    d->stride_b = d->b_array ? 0 : d->stride_b;
    d->stride_c = d->c_array ? 0 : d->stride_c;
    strides[MIXPREC_A_] = d->stride_a;
    strides[MIXPREC_B_] = d->stride_b;
    strides[MIXPREC_C_] = d->stride_c;
    sizes[MIXPREC_A_] = a_size;
    sizes[MIXPREC_B_] = b_size;
    sizes[MIXPREC_C_] = c_size;
    if (batch > SIZE_MAX / 32 / sizeof(void *))
        return MIXPREC_ERR_SIZE;
    for (i = MIXPREC_A_; i <= MIXPREC_C_; i++)
        if (strides[i] > SIZE_MAX / 2 / sizes[i] / batch ||
            extents[i].bytes > SIZE_MAX / 2 - strides[i] * sizes[i] * batch)
            return MIXPREC_ERR_SIZE;

    plan->size = plan->wide ? 8 : 4;
    plan->alpha = mixprec_coefficient_(d->alpha, 1, plan->wide);
    plan->beta = mixprec_coefficient_(d->beta, 0, plan->wide);
    plan->nothing = d->k == 0 || mixprec_is_zero_(plan->alpha);
    plan->add_c = !mixprec_is_zero_(plan->beta);
    plan->pieces = (plan->scale_a.values && plan->scale_a.block_k < d->k) ||
                   (plan->scale_b.values && plan->scale_b.block_k < d->k);
    same = d->a_array ? d->a_array == d->b_array : d->a == d->b && !d->b_array && d->stride_a == d->stride_b;
    /* Half the products in blocks, and C's other half copied, in exchange for all of them in one go: that would take as
       long for 64 x 64 x 1024, 2 to 6 % longer for 128 x 128 x 128 and 256 x 256 x 64; 256 x 256 x 256 takes .77 of the
       time (fp32, Zen 5). */
    if (same && d->m > 64 && d->k >= 128 && d->m * d->k >= 32768 && d->a_type == d->b_type && d->lda == d->ldb &&
        d->trans_a != d->trans_b && d->m == d->n && !d->row_end && !d->packed_size && d->triangle == MIXPREC_FULL &&
        !plan->add_c && !d->bias && !d->scale_a.values && !d->scale_b.values && d->round != MIXPREC_ROUND_STOCHASTIC &&
        !plan->nothing) {
        d->triangle = MIXPREC_LOWER;
        plan->mirror = 1;
    }
    plan->bare = !plan->nothing && !plan->add_c && mixprec_f64_bits_(plan->alpha) == (uint64_t)1023 << 52 && !d->bias &&
                 !d->scale_a.values && !d->scale_b.values && d->activation == MIXPREC_ACTIVATION_NONE;
    plan->direct = mixprec_is_in_place_(plan, d);
    if (d->packed_size) {
        plan->panels = (const char *)((uintptr_t)d->b + sizeof(mixprec_packed_));
        plan->panels_type = mixprec_packed_type_(d->b_type);
        extents[MIXPREC_B_].rows = 1;
        extents[MIXPREC_B_].stride = 0;
        extents[MIXPREC_B_].bytes = extents[MIXPREC_B_].width = d->packed_size;
    }
    plan->whole.last = batch;
    plan->whole.row = d->row_begin;
    plan->whole.row_end = d->row_end ? d->row_end : d->m;
    plan->whole.column_end = d->n;
    plan->tasks = d->parallel_for && d->threads ? d->threads : 1;
    if (batch >= plan->tasks)
        plan->split = MIXPREC_SPLIT_BATCH_;
    else if (plan->whole.row_end - plan->whole.row <= 4 * plan->kernels->tile_rows)
        plan->split = MIXPREC_SPLIT_COLUMNS_;
    else
        plan->split = MIXPREC_SPLIT_ROWS_;
    plan->tasks = mixprec_min_(plan->tasks, mixprec_gemm_units_(plan, &a_rows, &b_rows));
    return MIXPREC_OK;
}

/* Leaves nothing out where half of C could be copied. */
MIXPREC_NOINLINE_ void mixprec_gemm_do_all_(mixprec_gemm_plan_ *plan, mixprec_gemm_desc *d) {
    plan->mirror = 0;
    d->triangle = MIXPREC_FULL;
    plan->direct = mixprec_is_in_place_(plan, d);
}

/* Chooses the blocks for the largest task, and returns the bytes that each task needs. */
static size_t mixprec_gemm_plan_tasks_(mixprec_gemm_plan_ *plan, const mixprec_gemm_desc *d, size_t limit) {
    size_t m = 0, n = 0, i;
    for (i = 0; i < plan->tasks; i++) {
        mixprec_gemm_range_ part = mixprec_gemm_part_(plan, d, i);
        if (part.row_end - part.row > m)
            m = part.row_end - part.row;
        if (part.column_end - part.column > n)
            n = part.column_end - part.column;
        if (plan->split == MIXPREC_SPLIT_BATCH_)
            break;
    }
    mixprec_gemm_blocks_(plan, d, m, n, limit);
    return mixprec_gemm_bytes_(plan);
}

MIXPREC_API mixprec_status mixprec_gemm_workspace(const mixprec_gemm_desc *desc, size_t *best, size_t *least) {
    mixprec_gemm_desc d;
    mixprec_gemm_plan_ plan;
    mixprec_extent_ extents[MIXPREC_EXTENTS_];
    size_t best_bytes, all_bytes, least_bytes;
    mixprec_status status;
    if (!desc)
        return MIXPREC_ERR_NULL;
    d = *desc;
    if (!d.a || !d.b)
        d.a = d.b = NULL; /* they may be one */
    status = mixprec_gemm_check_(&d, &plan, extents);
    if (status != MIXPREC_OK)
        return status;
    best_bytes = all_bytes = mixprec_gemm_plan_tasks_(&plan, &d, SIZE_MAX);
    if (plan.mirror) {
        mixprec_gemm_do_all_(&plan, &d);
        all_bytes = mixprec_gemm_plan_tasks_(&plan, &d, SIZE_MAX);
        best_bytes = best_bytes > all_bytes ? best_bytes : all_bytes;
    }
    least_bytes = least ? mixprec_min_(all_bytes, mixprec_gemm_plan_tasks_(&plan, &d, 0)) : 0;
    if (best_bytes > SIZE_MAX / plan.tasks)
        return MIXPREC_ERR_SIZE;
    if (best)
        *best = best_bytes * plan.tasks;
    if (least)
        *least = least_bytes * plan.tasks;
    return MIXPREC_OK;
}

/* The bytes from the lowest to the highest that the matrices x of a batch occupy. */
static size_t mixprec_gemm_span_(const mixprec_gemm_desc *d, int x, size_t bytes, const char **lowest) {
    uintptr_t low = UINTPTR_MAX, high = 0;
    size_t i;
    for (i = 0; i < d->batch; i++) {
        mixprec_gemm_desc product;
        uintptr_t at;
        mixprec_gemm_product_(d, i, &product);
        at = (uintptr_t)(x == MIXPREC_A_ ? product.a : x == MIXPREC_B_ ? product.b : product.c);
        low = at < low ? at : low;
        high = at > high ? at : high;
    }
    *lowest = (const char *)low;
    return (size_t)(high - low) + bytes;
}

/* Does a matrix x of the batch share memory with `other`? */
static int mixprec_gemm_meets_(const mixprec_gemm_desc *d, int x, const mixprec_extent_ *extent, const void *other,
                               const mixprec_extent_ *other_extent) {
    const char *low;
    const size_t span = mixprec_gemm_span_(d, x, extent->bytes, &low);
    size_t i;
    for (i = 0; i < d->batch && mixprec_overlap_(low, span, other, other_extent->bytes); i++) {
        mixprec_gemm_desc product;
        mixprec_gemm_product_(d, i, &product);
        if (mixprec_matrices_overlap_(x == MIXPREC_A_   ? product.a
                                      : x == MIXPREC_B_ ? product.b
                                                        : product.c,
                                      extent, other, other_extent))
            return 1;
    }
    return 0;
}

/* Are all pointers there, and is C apart from all that is read and from itself, and the workspace from everything? */
static mixprec_status mixprec_gemm_check_pointers_(const mixprec_gemm_desc *d, const mixprec_gemm_plan_ *plan,
                                                   const mixprec_extent_ extents[MIXPREC_EXTENTS_]) {
    const void *single[MIXPREC_EXTENTS_];
    const char *c_low, *low;
    size_t c_span, span, i, j;
    mixprec_gemm_desc left, right;
    int x, ascending = 1;
    for (i = 0; i < d->batch; i++)
        if ((d->c_array ? !d->c_array[i] : !d->c) ||
            (!plan->nothing && ((d->a_array ? !d->a_array[i] : !d->a) || (d->b_array ? !d->b_array[i] : !d->b))))
            return MIXPREC_ERR_NULL;
    c_span = mixprec_gemm_span_(d, MIXPREC_C_, extents[MIXPREC_C_].bytes, &c_low);
    for (x = MIXPREC_A_; x <= (d->packed_size ? MIXPREC_A_ : MIXPREC_B_) && !plan->nothing; x++) {
        span = mixprec_gemm_span_(d, x, extents[x].bytes, &low);
        if (!mixprec_overlap_(c_low, c_span, low, span))
            continue;
        for (i = 0; i < d->batch; i++)
            for (j = 0; j < d->batch; j++) {
                mixprec_gemm_product_(d, i, &left);
                mixprec_gemm_product_(d, j, &right);
                if (mixprec_matrices_overlap_(left.c, &extents[MIXPREC_C_], x == MIXPREC_A_ ? right.a : right.b,
                                              &extents[x]))
                    return MIXPREC_ERR_OVERLAP;
            }
    }
    single[MIXPREC_B_] = d->packed_size && !plan->nothing ? d->b : NULL;
    single[MIXPREC_C_] = NULL;
    single[MIXPREC_SCALE_A_] = d->scale_a.values;
    single[MIXPREC_SCALE_B_] = d->scale_b.values;
    single[MIXPREC_BIAS_] = d->bias;
    single[MIXPREC_WORKSPACE_] = d->workspace;
    for (x = MIXPREC_B_; x <= MIXPREC_WORKSPACE_; x++)
        if (single[x] && mixprec_gemm_meets_(d, MIXPREC_C_, &extents[MIXPREC_C_], single[x], &extents[x]))
            return MIXPREC_ERR_OVERLAP;
    for (x = MIXPREC_A_; x <= MIXPREC_B_ && d->workspace && !plan->nothing; x++)
        if (mixprec_gemm_meets_(d, x, &extents[x], d->workspace, &extents[MIXPREC_WORKSPACE_]))
            return MIXPREC_ERR_OVERLAP;
    for (x = MIXPREC_SCALE_A_; x <= MIXPREC_BIAS_ && d->workspace; x++)
        if (single[x] && mixprec_overlap_(single[x], extents[x].bytes, d->workspace, d->workspace_size))
            return MIXPREC_ERR_OVERLAP;
    /* The matrices of C among themselves: nothing to do where each begins after the one before has ended. */
    for (i = 1; i < d->batch && ascending; i++) {
        mixprec_gemm_product_(d, i - 1, &left);
        mixprec_gemm_product_(d, i, &right);
        ascending = (uintptr_t)left.c < (uintptr_t)right.c &&
                    (uintptr_t)right.c - (uintptr_t)left.c >= extents[MIXPREC_C_].bytes;
    }
    for (i = 1; i < d->batch && !ascending; i++)
        for (j = 0; j < (d->c_array ? i : 1); j++) { /* with a stride it is enough to compare with the first */
            mixprec_gemm_product_(d, j, &left);
            mixprec_gemm_product_(d, i, &right);
            if (mixprec_matrices_overlap_(left.c, &extents[MIXPREC_C_], right.c, &extents[MIXPREC_C_]))
                return MIXPREC_ERR_OVERLAP;
        }
    return MIXPREC_OK;
}

static void mixprec_gemm_run_tasks_(mixprec_gemm_job_ *job) {
    if (job->plan->tasks > 1)
        job->desc->parallel_for(job->desc->parallel_context, job->plan->tasks, mixprec_gemm_task_, job);
    else
        mixprec_gemm_task_(job, 0);
}

#if defined(MIXPREC_MALLOC) && MIXPREC_GEMM_STACK > 0
MIXPREC_NOINLINE_ void mixprec_gemm_run_on_stack_(mixprec_gemm_job_ *job) {
    double workspace[(MIXPREC_GEMM_STACK + 7) / 8];
    job->workspace = (char *)workspace;
    mixprec_gemm_run_tasks_(job);
}
#endif

#if defined(MIXPREC_HAS_AVX2_) && defined(MIXPREC_MALLOC) && MIXPREC_GEMM_STACK > 0
#define MIXPREC_HAS_AT_ONCE_ 1
/* Where s->t is NULL, the sums wait on the stack to become c_type. */
MIXPREC_NOINLINE_ void mixprec_small_run_on_stack_(mixprec_small_ *s, void *c, mixprec_dtype c_type) {
    static const mixprec_how_ how = {MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0, 0, 0};
    double buffer[MIXPREC_GEMM_STACK / 8 + 2 * MIXPREC_ALIGN_ / 8];
    char *at = mixprec_line_(buffer);
    float *const sums = (float *)(void *)(at + s->b_bytes + s->a_bytes + s->chunk_bytes);
    size_t ldc = s->ldt, rows = s->m, columns = s->n, i;
    if (!s->t) {
        s->t = sums;
        s->ldt = columns;
    }
    mixprec_small_run_(s, at);
    if (s->t != sums)
        return;
    if (ldc == columns) {
        columns *= rows;
        rows = 1;
    }
    for (i = 0; i < rows; i++)
        mixprec_store_(s->kernels, (char *)c + i * ldc * mixprec_size_of_(c_type), c_type, sums + i * columns, columns,
                       &how);
}

/* The product of *s, of numbers of c_type that begin at c; 0, and nothing done, where it does not fit the stack. */
MIXPREC_FORCE_INLINE_ int mixprec_small_at_once_(mixprec_small_ *s, void *c, mixprec_dtype c_type) {
    const int narrow = !s->wide && c_type != MIXPREC_F32;
    const size_t bytes = s->a_bytes + s->b_bytes + s->chunk_bytes + (narrow ? s->m * s->n * sizeof(float) : 0);
    mixprec_fp_ environment;
    if (bytes > MIXPREC_GEMM_STACK)
        return 0;
    s->t = narrow ? NULL : c;
    environment = mixprec_fp_begin_();
    if (bytes)
        mixprec_small_run_on_stack_(s, c, c_type);
    else
        mixprec_small_run_(s, NULL);
    mixprec_fp_end_(environment);
    return 1;
}

/* The same for many rows or columns, as many at a time as fit. */
MIXPREC_NOINLINE_ int mixprec_small_in_blocks_(const mixprec_small_ *s, void *c, mixprec_dtype c_type) {
    const int narrow = !s->wide && c_type != MIXPREC_F32, tall = s->m > s->n;
    const size_t size = s->wide ? 8 : 4, other_bytes = tall ? s->b_bytes : s->a_bytes;
    const size_t fixed = other_bytes + 16 * s->k * size; /* that operand, and columns of B up to a multiple of 16 */
    /* And for each row of many, or each column: */
    const size_t each =
        ((tall ? s->a_bytes : s->b_bytes) ? s->k * size : 0) + (narrow ? mixprec_min_(s->m, s->n) * size : 0);
    size_t rows = s->m, columns = s->n, row, column;
    if (each) {
        const size_t most = (MIXPREC_GEMM_STACK - mixprec_min_(MIXPREC_GEMM_STACK, fixed)) / each;
        if (most < (other_bytes ? 64 : 8))
            return 0; /* to copy the other operand again for each block would take too long */
        rows = tall ? mixprec_min_(rows, most) : rows;
        columns = tall ? columns : mixprec_min_(columns, most);
    }
    for (row = 0; row < s->m; row += rows)
        for (column = 0; column < s->n; column += columns) {
            mixprec_small_ block = *s;
            block.m = mixprec_min_(rows, s->m - row);
            block.n = mixprec_min_(columns, s->n - column);
            block.a = mixprec_element_(s->a, s->a_type, s->trans_a ? 1 : s->lda, row, 0);
            block.b = mixprec_element_(s->b, s->b_type, s->trans_b ? s->ldb : 1, column, 0);
            mixprec_small_bytes_(&block);
            if (!mixprec_small_at_once_(&block, (char *)c + (row * s->ldt + column) * mixprec_size_of_(c_type), c_type))
                return 0; /* the first one; later ones are not larger */
        }
    return 1;
}

/* A column as a row of the transposed product. */
MIXPREC_NOINLINE_ void mixprec_small_turn_(mixprec_small_ *s) {
    const mixprec_small_ whole = *s;
    s->trans_a = !whole.trans_b;
    s->trans_b = !whole.trans_a;
    s->m = 1;
    s->n = whole.m;
    s->a = whole.b;
    s->a_type = whole.b_type;
    s->lda = whole.ldb;
    s->b = whole.a;
    s->b_type = whole.a_type;
    s->ldb = whole.lda;
    s->ldt = whole.m;
    s->across = s->trans_b && mixprec_is_across_(s);
    mixprec_small_bytes_(s);
}

/* Does *d ask for nothing but a product? A beta of -0 goes the general way: clang makes a comparison of doubles of a
   test for both zeros, which would raise the caller's flags. */
static int mixprec_is_plain_(const mixprec_gemm_desc *d) {
    return !(d->alpha && mixprec_f64_bits_(*d->alpha) != (uint64_t)1023 << 52) &&
           !(d->beta && mixprec_f64_bits_(*d->beta) != 0) && d->batch <= 1 && !d->a_array && !d->b_array &&
           !d->c_array && !d->scale_a.values && !d->scale_b.values && !d->bias && !d->bias_type && !d->activation &&
           !d->round && !d->overflow && !d->row_begin && !d->row_end && !d->triangle && !d->native && !d->packed_size &&
           !d->parallel_for && !d->workspace;
}

/* What most small products are, without the general way's plan: those of matrices that fit the stack, or where a block
   of many rows or columns at a time does. Of *d, only what mixprec_gemm has parameters for is read, but alpha and beta,
   which are 1 and 0. Returns 0, having done nothing, for any other, and for all that is wrong. */
MIXPREC_NOINLINE_ int mixprec_gemm_at_once_(const mixprec_gemm_desc *d, mixprec_isa isa) {
    const mixprec_kernels_ *kernels = mixprec_kernels_of_(isa);
    const size_t m = d->m, n = d->n, k = d->k, most = (size_t)1 << 16; /* from row to row: no size overflows */
    const size_t larger = m > n ? m : n, smaller = mixprec_min_(m, n);
    mixprec_small_ s;
    size_t c_bytes;
    int dots, column;
    if (larger - 1 >= most || k - 1 >= most || !smaller || !kernels || !kernels->tiny ||
        mixprec_pairs_kernels_(kernels, d->a_type, d->b_type, d->trans_b, 0, m, n, k) != kernels)
        return 0;
    dots = mixprec_is_dots_(kernels, m, n, k);
    if (!dots && !mixprec_is_small_(kernels, m, n, k, d->trans_b) &&
        (larger <= MIXPREC_GEMM_SMALL_ || smaller > 64 || k > 64 || m < 4))
        return 0;
    column = n == 1 && d->ldc <= 1 && !d->trans_a && larger <= MIXPREC_GEMM_SMALL_ && k <= MIXPREC_GEMM_SMALL_ &&
             (d->a_type != MIXPREC_F64 || d->b_type == MIXPREC_F64);
    if ((!column && mixprec_is_thin_(kernels, d, d->a_type == MIXPREC_F64 && d->b_type == MIXPREC_F64, m, n)) ||
        (unsigned)d->trans_a > 1u || (unsigned)d->trans_b > 1u || !mixprec_is_compute_type_(d->a_type) ||
        !mixprec_is_compute_type_(d->b_type) || !mixprec_is_compute_type_(d->c_type) || !d->a || !d->b || !d->c)
        return 0;
    mixprec_small_of_(&s, kernels, d, m, n, dots);
    if (s.lda < (s.trans_a ? m : k) || s.ldb < (s.trans_b ? k : n) || s.ldt < n || s.lda > most || s.ldb > most ||
        s.ldt > most || (d->c_type == MIXPREC_F64) != s.wide)
        return 0;
    c_bytes = s.ldt * m * mixprec_size_of_(d->c_type);
    if (mixprec_overlap_(d->c, c_bytes, d->a, s.lda * (s.trans_a ? k : m) * mixprec_size_of_(d->a_type)) ||
        mixprec_overlap_(d->c, c_bytes, d->b, s.ldb * (s.trans_b ? n : k) * mixprec_size_of_(d->b_type)))
        return 0;
    if (n == 1 && s.ldt == 1)
        mixprec_small_turn_(&s);
    if (!mixprec_small_pays_(&s, m))
        return 0;
    if (larger > MIXPREC_GEMM_SMALL_)
        return mixprec_small_in_blocks_(&s, d->c, d->c_type);
    return mixprec_small_at_once_(&s, d->c, d->c_type);
}
#endif

/* Fills in what zero stands for in *d. */
static mixprec_status mixprec_gemm_do_(mixprec_gemm_desc *d) {
    mixprec_gemm_plan_ plan;
    mixprec_extent_ extents[MIXPREC_EXTENTS_];
    mixprec_gemm_job_ job;
    size_t limit;
    mixprec_status status = mixprec_gemm_check_(d, &plan, extents);
    if (status != MIXPREC_OK)
        return status;
    if (d->m == 0 || d->n == 0)
        return MIXPREC_OK;
    status = mixprec_gemm_check_pointers_(d, &plan, extents);
    if (status != MIXPREC_OK)
        return status;
    if (!plan.nothing && d->packed_size && mixprec_check_packed_(d, plan.kernels) != MIXPREC_OK)
        return MIXPREC_ERR_PACKED;
    if (!plan.nothing && (!mixprec_are_scales_(d->scale_a.values, &extents[MIXPREC_SCALE_A_]) ||
                          !mixprec_are_scales_(d->scale_b.values, &extents[MIXPREC_SCALE_B_])))
        return MIXPREC_ERR_SCALE;
    job.plan = &plan;
    job.desc = d;
    job.workspace = (char *)d->workspace;
    limit = d->workspace ? d->workspace_size / plan.tasks : SIZE_MAX;
    job.bytes = mixprec_gemm_plan_tasks_(&plan, d, limit);
    if (plan.mirror && job.bytes > limit) {
        mixprec_gemm_do_all_(&plan, d);
        job.bytes = mixprec_gemm_plan_tasks_(&plan, d, limit);
    }
    if (job.bytes > SIZE_MAX / plan.tasks)
        return MIXPREC_ERR_SIZE;
    if (d->workspace && job.bytes * plan.tasks > d->workspace_size)
        return MIXPREC_ERR_WORKSPACE;
    if (d->workspace || plan.nothing) {
        mixprec_gemm_run_tasks_(&job);
        return MIXPREC_OK;
    }
#ifdef MIXPREC_MALLOC
#if MIXPREC_GEMM_STACK > 0
    if (job.bytes * plan.tasks <= MIXPREC_GEMM_STACK) {
        mixprec_gemm_run_on_stack_(&job);
        return MIXPREC_OK;
    }
#endif
    job.workspace = (char *)MIXPREC_MALLOC(job.bytes * plan.tasks);
    if (!job.workspace)
        return MIXPREC_ERR_ALLOC;
    mixprec_gemm_run_tasks_(&job);
    MIXPREC_FREE(job.workspace);
#else
    if (plan.panels)
        return MIXPREC_ERR_WORKSPACE;
    plan.kernels = &mixprec_kernels_c_;
    mixprec_gemm_run_tasks_(&job);
#endif
    return MIXPREC_OK;
}

MIXPREC_API mixprec_status mixprec_gemm_ex(const mixprec_gemm_desc *desc) {
    mixprec_gemm_desc d;
    if (!desc)
        return MIXPREC_ERR_NULL;
#ifdef MIXPREC_HAS_AT_ONCE_
    if (mixprec_is_plain_(desc) && mixprec_gemm_at_once_(desc, desc->isa))
        return MIXPREC_OK;
#endif
    d = *desc;
    return mixprec_gemm_do_(&d);
}

MIXPREC_API mixprec_status mixprec_gemm_pack_b_size(const mixprec_gemm_desc *desc, size_t *size) {
    const mixprec_kernels_ *kernels;
    size_t width, element;
    if (!desc || !size)
        return MIXPREC_ERR_NULL;
    if (!mixprec_is_compute_type_(desc->b_type))
        return MIXPREC_ERR_DTYPE;
    kernels = mixprec_kernels_of_(desc->isa);
    if (!kernels)
        return MIXPREC_ERR_ISA;
    width = mixprec_packed_width_(kernels, desc->b_type);
    element = mixprec_size_of_(mixprec_packed_type_(desc->b_type));
    if (desc->n > SIZE_MAX / 4 || (desc->n && desc->k > (SIZE_MAX / 4 / element) / mixprec_round_up_(desc->n, width)))
        return MIXPREC_ERR_SIZE;
    *size = sizeof(mixprec_packed_) + mixprec_round_up_(desc->n, width) * desc->k * element;
    return MIXPREC_OK;
}

MIXPREC_NOINLINE_ void mixprec_gemm_pack_b_run_(const mixprec_kernels_ *kernels, const mixprec_gemm_desc *d,
                                                char *panels) {
    mixprec_dtype stored = mixprec_packed_type_(d->b_type);
    int along = d->trans_b == MIXPREC_NO_TRANS, wide = d->b_type == MIXPREC_F64;
    size_t width = mixprec_packed_width_(kernels, d->b_type), bytes = mixprec_size_of_(stored), j, p, depth;
    const mixprec_how_ how = {MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0, 0, 0}; /* of exact conversions */
    for (j = 0; j < d->n; j += width)
        for (p = 0; p < d->k; p += depth) {
            union {
                double wide[MIXPREC_BLOCK_];
                float narrow[MIXPREC_BLOCK_];
            } block;
            char *to = panels + (j * d->k + p * width) * bytes;
            depth = mixprec_min_(d->k - p, MIXPREC_BLOCK_ / width);
            kernels->pack(&block, width,
                          along ? mixprec_element_(d->b, d->b_type, d->ldb, p, j)
                                : mixprec_element_(d->b, d->b_type, d->ldb, j, p),
                          d->b_type, d->ldb, along, mixprec_min_(width, d->n - j), depth, wide);
            if (wide)
                mixprec_copy_(to, &block, width * depth * bytes);
            else
                mixprec_store_(kernels, to, stored, block.narrow, width * depth, &how);
        }
}

MIXPREC_API mixprec_status mixprec_gemm_pack_b(const mixprec_gemm_desc *desc, void *packed, size_t size) {
    mixprec_gemm_desc d;
    mixprec_extent_ extent;
    mixprec_packed_ head = MIXPREC_ZERO_;
    const mixprec_kernels_ *kernels;
    size_t bytes;
    mixprec_status status = mixprec_gemm_pack_b_size(desc, &bytes);
    mixprec_fp_ environment;
    if (status != MIXPREC_OK)
        return status;
    d = *desc;
    if ((unsigned)d.trans_b > 1u)
        return MIXPREC_ERR_TRANSPOSE;
    status = mixprec_check_matrix_(d.trans_b ? d.n : d.k, d.trans_b ? d.k : d.n, &d.ldb, mixprec_size_of_(d.b_type),
                                   &extent);
    if (status != MIXPREC_OK)
        return status;
    if (!packed || (!d.b && extent.bytes))
        return MIXPREC_ERR_NULL;
    if ((uintptr_t)packed % 8)
        return MIXPREC_ERR_PACKED;
    if (size < bytes)
        return MIXPREC_ERR_WORKSPACE;
    if (mixprec_overlap_(packed, bytes, d.b, extent.bytes))
        return MIXPREC_ERR_OVERLAP;
    kernels = mixprec_kernels_of_(d.isa);
    head.magic = mixprec_packed_magic_;
    head.version = 2;
    head.type = (uint32_t)d.b_type;
    head.stored_type = (uint32_t)mixprec_packed_type_(d.b_type);
    head.width = (uint32_t)mixprec_packed_width_(kernels, d.b_type);
    head.n = d.n;
    head.k = d.k;
    mixprec_copy_(packed, &head, sizeof head);
    environment = mixprec_fp_begin_();
    mixprec_gemm_pack_b_run_(kernels, &d, (char *)packed + sizeof head);
    mixprec_fp_end_(environment);
    return MIXPREC_OK;
}

#ifdef _OPENMP
MIXPREC_API void mixprec_parallel_openmp(void *context, size_t tasks, void (*task)(void *data, size_t index),
                                         void *data) {
    int i, count = (int)tasks; /* OpenMP 2's loops, which MSVC has, are of signed integers */
    (void)context;
#pragma omp parallel for schedule(static, 1)
    for (i = 0; i < count; i++)
        task(data, (size_t)i);
}
#endif

MIXPREC_API mixprec_status mixprec_gemm(mixprec_transpose ta, mixprec_transpose tb, size_t m, size_t n, size_t k,
                                        float alpha, const void *a, mixprec_dtype a_type, size_t lda, const void *b,
                                        mixprec_dtype b_type, size_t ldb, float beta, void *c, mixprec_dtype c_type,
                                        size_t ldc) {
    double wide_alpha = mixprec_f64_from_bits_(mixprec_f32_bits_to_f64_bits_(mixprec_f32_bits_(alpha)));
    double wide_beta = mixprec_f64_from_bits_(mixprec_f32_bits_to_f64_bits_(mixprec_f32_bits_(beta)));
    const size_t given = offsetof(mixprec_gemm_desc, ldc) + sizeof(size_t); /* bytes of the descriptor */
    mixprec_gemm_desc d;
    if (lda == 0 || ldb == 0 || ldc == 0)
        return mixprec_is_compute_type_(a_type) && mixprec_is_compute_type_(b_type) && mixprec_is_compute_type_(c_type)
                   ? MIXPREC_ERR_LEADING_DIMENSION
                   : MIXPREC_ERR_DTYPE;
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
#ifdef MIXPREC_HAS_AT_ONCE_ /* first: to clear the rest takes 15 ns */
    if (mixprec_f32_bits_(alpha) == 0x3F800000 && mixprec_f32_bits_(beta) == 0 &&
        mixprec_gemm_at_once_(&d, MIXPREC_ISA_AUTO))
        return MIXPREC_OK;
#endif
    mixprec_clear_((char *)&d + given, sizeof d - given);
    return mixprec_gemm_do_(&d);
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

MIXPREC_API mixprec_status mixprec_scaler_check(const mixprec_scaler *scaler) {
    mixprec_fp_ environment;
    int sound;
    if (!scaler)
        return MIXPREC_ERR_NULL;
    environment = mixprec_fp_begin_();
    sound = mixprec_scaler_is_sound_(scaler);
    mixprec_fp_end_(environment);
    return sound ? MIXPREC_OK : MIXPREC_ERR_SCALE;
}

MIXPREC_API float mixprec_scaler_scale(const mixprec_scaler *scaler, float loss) {
    volatile float scaled = loss;
    mixprec_fp_ environment;
    if (!scaler)
        return loss;
    environment = mixprec_fp_begin_();
    scaled = mixprec_scale_run_(scaled, scaler->scale);
    mixprec_fp_end_(environment);
    return scaled;
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
    found = mixprec_unscale_run_(kernels, dst, (const char *)grad, dtype, n, scaler->scale);
    mixprec_fp_end_(environment);
    scaler->found_inf |= found;
    return found;
}

MIXPREC_API int mixprec_scaler_unscale(mixprec_scaler *scaler, float *dst, const void *grad, mixprec_dtype dtype,
                                       size_t n) {
    return mixprec_scaler_unscale_ex(scaler, dst, grad, dtype, n, MIXPREC_ISA_AUTO);
}

MIXPREC_API int mixprec_scaler_update(mixprec_scaler *scaler) {
    mixprec_fp_ environment;
    int step;
    if (!scaler)
        return 0;
    environment = mixprec_fp_begin_();
    step = mixprec_scaler_update_run_(scaler);
    mixprec_fp_end_(environment);
    return step;
}
#endif

/* ---- reductions ---- */

/* Those of tensors: f32, f16, bf16, e4m3, e5m2. */
MIXPREC_INLINE int mixprec_is_tensor_type_(mixprec_dtype type) {
    return mixprec_is_compute_type_(type) && type != MIXPREC_F64;
}

#ifndef MIXPREC_NO_REDUCE
static mixprec_status mixprec_check_vector_(const void *x, mixprec_dtype type, size_t n) {
    if (!mixprec_is_tensor_type_(type))
        return MIXPREC_ERR_DTYPE;
    if (n && !x)
        return MIXPREC_ERR_NULL;
    return n > SIZE_MAX / 8 ? MIXPREC_ERR_SIZE : MIXPREC_OK;
}

/* root: the square root of the sum. */
static mixprec_status mixprec_reduce_all_(double *result, mixprec_reduction reduction, const void *x,
                                          mixprec_dtype x_type, const void *y, mixprec_dtype y_type, size_t n,
                                          int root) {
    mixprec_status status = mixprec_check_vector_(x, x_type, n);
    mixprec_fp_ environment;
    if (status == MIXPREC_OK)
        status = mixprec_check_vector_(y, y_type, n);
    if (status == MIXPREC_OK && !result)
        status = MIXPREC_ERR_NULL;
    if (status != MIXPREC_OK)
        return status;
    environment = mixprec_fp_begin_();
    *result = mixprec_reduce_run_(mixprec_kernels_of_(MIXPREC_ISA_AUTO), NULL, reduction, x, x_type, y, y_type, 0, n);
    if (root)
        *result = mixprec_root_run_(*result);
    mixprec_fp_end_(environment);
    return MIXPREC_OK;
}

MIXPREC_API mixprec_status mixprec_sum(double *result, const void *x, mixprec_dtype x_type, size_t n) {
    return mixprec_reduce_all_(result, MIXPREC_SUM, x, x_type, x, x_type, n, 0);
}
MIXPREC_API mixprec_status mixprec_dot(double *result, const void *x, mixprec_dtype x_type, const void *y,
                                       mixprec_dtype y_type, size_t n) {
    return mixprec_reduce_all_(result, MIXPREC_DOT, x, x_type, y, y_type, n, 0);
}
MIXPREC_API mixprec_status mixprec_sum_squares(double *result, const void *x, mixprec_dtype x_type, size_t n) {
    return mixprec_reduce_all_(result, MIXPREC_SUM_SQUARES, x, x_type, x, x_type, n, 0);
}
MIXPREC_API mixprec_status mixprec_norm1(double *result, const void *x, mixprec_dtype x_type, size_t n) {
    return mixprec_reduce_all_(result, MIXPREC_SUM_ABS, x, x_type, x, x_type, n, 0);
}
MIXPREC_API mixprec_status mixprec_norm2(double *result, const void *x, mixprec_dtype x_type, size_t n) {
    return mixprec_reduce_all_(result, MIXPREC_SUM_SQUARES, x, x_type, x, x_type, n, 1);
}

MIXPREC_API mixprec_status mixprec_amax_ex(float *result, const void *x, mixprec_dtype x_type, size_t n,
                                           mixprec_isa isa) {
    const mixprec_kernels_ *kernels = mixprec_kernels_of_(isa);
    mixprec_status status = mixprec_check_vector_(x, x_type, n);
    mixprec_fp_ environment;
    if (status == MIXPREC_OK && !result)
        status = MIXPREC_ERR_NULL;
    if (status == MIXPREC_OK && !kernels)
        status = MIXPREC_ERR_ISA;
    if (status != MIXPREC_OK)
        return status;
    environment = mixprec_fp_begin_();
    *result = mixprec_f32_from_bits_(mixprec_amax_run_(kernels, x, x_type, n));
    mixprec_fp_end_(environment);
    return MIXPREC_OK;
}

MIXPREC_API mixprec_status mixprec_amax(float *result, const void *x, mixprec_dtype x_type, size_t n) {
    return mixprec_amax_ex(result, x, x_type, n, MIXPREC_ISA_AUTO);
}

MIXPREC_API mixprec_status mixprec_all_finite(int *result, const void *x, mixprec_dtype x_type, size_t n) {
    float amax;
    mixprec_status status = result ? mixprec_amax(&amax, x, x_type, n) : MIXPREC_ERR_NULL;
    if (status == MIXPREC_OK)
        *result = mixprec_f32_bits_(amax) < 0x7F800000u;
    return status;
}

MIXPREC_API mixprec_status mixprec_mean_variance(double *mean, double *variance, const void *x, mixprec_dtype x_type,
                                                 size_t n) {
    const mixprec_kernels_ *kernels = mixprec_kernels_of_(MIXPREC_ISA_AUTO);
    mixprec_status status = mixprec_check_vector_(x, x_type, n);
    mixprec_fp_ environment;
    if (status != MIXPREC_OK)
        return status;
    environment = mixprec_fp_begin_();
    mixprec_mean_variance_run_(kernels, mean, variance, x, x_type, n);
    mixprec_fp_end_(environment);
    return MIXPREC_OK;
}

MIXPREC_API mixprec_status mixprec_reduce(double *partials, mixprec_reduction reduction, const void *x,
                                          mixprec_dtype x_type, const void *y, mixprec_dtype y_type, double center,
                                          size_t n, mixprec_isa isa) {
    const mixprec_kernels_ *kernels = mixprec_kernels_of_(isa);
    size_t blocks = n / MIXPREC_REDUCE_BLOCK + (n % MIXPREC_REDUCE_BLOCK != 0);
    mixprec_status status = mixprec_check_vector_(x, x_type, n);
    mixprec_fp_ environment;
    if ((unsigned)reduction > (unsigned)MIXPREC_DOT)
        return MIXPREC_ERR_REDUCTION;
    if (status == MIXPREC_OK && reduction == MIXPREC_DOT)
        status = mixprec_check_vector_(y, y_type, n);
    if (status == MIXPREC_OK && n && !partials)
        status = MIXPREC_ERR_NULL;
    if (status == MIXPREC_OK && !kernels)
        status = MIXPREC_ERR_ISA;
    if (status == MIXPREC_OK &&
        (mixprec_overlap_(partials, blocks * sizeof *partials, x, n * mixprec_size_of_(x_type)) ||
         (reduction == MIXPREC_DOT &&
          mixprec_overlap_(partials, blocks * sizeof *partials, y, n * mixprec_size_of_(y_type)))))
        status = MIXPREC_ERR_OVERLAP;
    if (status != MIXPREC_OK)
        return status;
    environment = mixprec_fp_begin_();
    mixprec_reduce_run_(kernels, partials, reduction, x, x_type, y, y_type, center, n);
    mixprec_fp_end_(environment);
    return MIXPREC_OK;
}

MIXPREC_API mixprec_status mixprec_combine(double *result, const double *partials, size_t count) {
    mixprec_fp_ environment;
    if (!result || (count && !partials))
        return MIXPREC_ERR_NULL;
    environment = mixprec_fp_begin_();
    *result = mixprec_combine_run_(partials, count);
    mixprec_fp_end_(environment);
    return MIXPREC_OK;
}
#endif

/* ---- scaled narrow tensors ---- */

#ifndef MIXPREC_NO_QUANT
MIXPREC_API float mixprec_scale_of_amax(float amax, mixprec_dtype dtype, int power_of_two) {
    float max = mixprec_quant_max_(dtype);
    volatile float x = amax; /* keeps the call where it stands: see mixprec_inverse_scale */
    mixprec_fp_ environment;
    if (!mixprec_f32_bits_(max))
        return 1.0f;
    environment = mixprec_fp_begin_();
    x = mixprec_scale_of_amax_run_(x, max, power_of_two);
    mixprec_fp_end_(environment);
    return x;
}

MIXPREC_API mixprec_status mixprec_delayed_scaling_init(mixprec_delayed_scaling *scaling, mixprec_dtype dtype,
                                                        float *history, size_t length) {
    size_t i;
    if (!mixprec_f32_bits_(mixprec_quant_max_(dtype)))
        return MIXPREC_ERR_DTYPE;
    if (!scaling || !history)
        return MIXPREC_ERR_NULL;
    if (!length)
        return MIXPREC_ERR_RANGE;
    scaling->scale = 1.0f;
    scaling->margin = 0;
    scaling->most_recent = 0;
    scaling->dtype = dtype;
    scaling->history = history;
    scaling->history_length = length;
    for (i = 0; i < length; i++)
        history[i] = 0;
    return MIXPREC_OK;
}

MIXPREC_API mixprec_status mixprec_delayed_scaling_update(mixprec_delayed_scaling *s, float amax) {
    mixprec_fp_ environment;
    if (!s || !s->history)
        return MIXPREC_ERR_NULL;
    if (!mixprec_f32_bits_(mixprec_quant_max_(s->dtype)))
        return MIXPREC_ERR_DTYPE;
    if (s->history_length == 0 || s->margin < -64 || s->margin > 64)
        return MIXPREC_ERR_RANGE;
    environment = mixprec_fp_begin_();
    mixprec_delayed_scaling_run_(s, amax);
    mixprec_fp_end_(environment);
    return MIXPREC_OK;
}

/* Bytes from the first element of a matrix to its last; fills in the leading dimension. */
static mixprec_status mixprec_check_rows_(size_t rows, size_t columns, size_t *ld, mixprec_dtype type, size_t *bytes) {
    const size_t grain = type == MIXPREC_E2M1 ? 2 : 1; /* elements that rows begin at multiples of */
    if (*ld == 0)
        *ld = columns + columns % grain;
    if (*ld < columns || *ld % grain)
        return MIXPREC_ERR_LEADING_DIMENSION;
    *bytes = 0;
    if (!rows || !columns)
        return MIXPREC_OK;
    if (columns > SIZE_MAX / 16 || (rows > 1 && *ld > (SIZE_MAX / 16 - columns) / (rows - 1)))
        return MIXPREC_ERR_SIZE;
    *bytes = mixprec_bytes_of_(type, (rows - 1) * *ld + columns);
    return MIXPREC_OK;
}

/* Fills in the zeros of a layout of scales. */
static mixprec_status mixprec_check_blocks_(size_t rows, size_t columns, size_t *block_rows, size_t *block_columns,
                                            size_t *ld, size_t *bytes) {
    if (*block_rows == 0 || *block_rows > rows)
        *block_rows = rows ? rows : 1;
    if (*block_columns == 0 || *block_columns > columns)
        *block_columns = columns ? columns : 1;
    return mixprec_check_rows_(rows ? (rows - 1) / *block_rows + 1 : 0,
                               columns ? (columns - 1) / *block_columns + 1 : 0, ld, MIXPREC_F32, bytes);
}

MIXPREC_API mixprec_status mixprec_quantize(const mixprec_quantize_desc *desc) {
    const mixprec_kernels_ *kernels;
    mixprec_quantize_desc d;
    size_t src_bytes, dst_bytes, scale_bytes, amax_bytes;
    mixprec_status status;
    mixprec_fp_ environment;
    float scale;
    if (!desc)
        return MIXPREC_ERR_NULL;
    d = *desc;
    if (!mixprec_is_tensor_type_(d.src_type) || !mixprec_f32_bits_(mixprec_quant_max_(d.dst_type)))
        return MIXPREC_ERR_DTYPE;
    if (!mixprec_is_round_(d.round))
        return MIXPREC_ERR_ROUND;
    kernels = mixprec_kernels_of_(d.isa);
    if (!kernels)
        return MIXPREC_ERR_ISA;
    status = mixprec_check_rows_(d.rows, d.columns, &d.src_ld, d.src_type, &src_bytes);
    if (status == MIXPREC_OK)
        status = mixprec_check_rows_(d.rows, d.columns, &d.dst_ld, d.dst_type, &dst_bytes);
    if (status == MIXPREC_OK)
        status = mixprec_check_blocks_(d.rows, d.columns, &d.block_rows, &d.block_columns, &d.scales_ld, &scale_bytes);
    if (status != MIXPREC_OK)
        return status;
    if (d.scale && (d.block_rows < d.rows || d.block_columns < d.columns))
        return MIXPREC_ERR_RANGE;
    if (d.scale && mixprec_f32_bits_(*d.scale) - 0x00800000u >= 0x7F000000u)
        return MIXPREC_ERR_SCALE;
    if (d.rows && d.columns && (!d.src || !d.dst || !d.scales))
        return MIXPREC_ERR_NULL;
    amax_bytes = d.amax ? sizeof *d.amax : 0;
    if (mixprec_overlap_(d.dst, dst_bytes, d.src, src_bytes) ||
        mixprec_overlap_(d.scales, scale_bytes, d.src, src_bytes) ||
        mixprec_overlap_(d.scales, scale_bytes, d.dst, dst_bytes) ||
        mixprec_overlap_(d.amax, amax_bytes, d.src, src_bytes) ||
        mixprec_overlap_(d.amax, amax_bytes, d.dst, dst_bytes) ||
        mixprec_overlap_(d.amax, amax_bytes, d.scales, scale_bytes))
        return MIXPREC_ERR_OVERLAP;
    if (d.scale) { /* it may be one of the outputs */
        scale = *d.scale;
        d.scale = &scale;
    }
    environment = mixprec_fp_begin_();
    mixprec_quantize_run_(kernels, &d);
    mixprec_fp_end_(environment);
    return MIXPREC_OK;
}

MIXPREC_API mixprec_status mixprec_dequantize(void *dst, mixprec_dtype dst_type, size_t dst_ld, const void *src,
                                              mixprec_dtype src_type, size_t src_ld, size_t rows, size_t columns,
                                              const mixprec_scales *scales) {
    mixprec_scales s = MIXPREC_ZERO_;
    size_t src_bytes, dst_bytes, scale_bytes, i, j;
    mixprec_status status;
    mixprec_fp_ environment;
    if (scales)
        s = *scales;
    if (!mixprec_is_tensor_type_(dst_type) || !mixprec_f32_bits_(mixprec_quant_max_(src_type)))
        return MIXPREC_ERR_DTYPE;
    status = mixprec_check_rows_(rows, columns, &src_ld, src_type, &src_bytes);
    if (status == MIXPREC_OK)
        status = mixprec_check_rows_(rows, columns, &dst_ld, dst_type, &dst_bytes);
    if (status == MIXPREC_OK)
        status = mixprec_check_blocks_(rows, columns, &s.block_rows, &s.block_columns, &s.ld, &scale_bytes);
    if (status != MIXPREC_OK || !rows || !columns)
        return status;
    if (!src || !dst)
        return MIXPREC_ERR_NULL;
    if (mixprec_overlap_(dst, dst_bytes, src, src_bytes) ||
        (s.values && mixprec_overlap_(dst, dst_bytes, s.values, scale_bytes)))
        return MIXPREC_ERR_OVERLAP;
    for (i = 0; i <= (rows - 1) / s.block_rows && s.values; i++)
        for (j = 0; j <= (columns - 1) / s.block_columns; j++)
            if (mixprec_f32_bits_(s.values[i * s.ld + j]) - 1u >= 0x7F7FFFFFu)
                return MIXPREC_ERR_SCALE;
    environment = mixprec_fp_begin_();
    mixprec_dequantize_run_(mixprec_kernels_of_(MIXPREC_ISA_AUTO), dst, dst_type, dst_ld, src, src_type, src_ld, rows,
                            columns, &s);
    mixprec_fp_end_(environment);
    return MIXPREC_OK;
}
#endif

/* ---- optimisers ---- */

#ifndef MIXPREC_NO_OPTIM
MIXPREC_API void mixprec_sgd_init(mixprec_sgd *sgd) {
    static const mixprec_sgd defaults = {1e-3, 0, 0, 0, 0, 0};
    if (sgd)
        *sgd = defaults;
}

MIXPREC_API void mixprec_adam_init(mixprec_adam *adam) {
    static const mixprec_adam defaults = {1e-3, 0.9, 0.999, 1e-8, 0, 0, 0};
    if (adam)
        *adam = defaults;
}

MIXPREC_API void mixprec_adamw_init(mixprec_adam *adam) {
    static const mixprec_adam defaults = {1e-3, 0.9, 0.999, 1e-8, 1e-2, 1, 0};
    if (adam)
        *adam = defaults;
}

/* Functions of numbers alone, which a compiler may call at any time: a volatile keeps the call where it stands. */
MIXPREC_API float mixprec_inverse_scale(float scale) {
    volatile float x = scale;
    mixprec_fp_ environment = mixprec_fp_begin_();
    x = mixprec_inverse_run_(x);
    mixprec_fp_end_(environment);
    return x;
}

MIXPREC_API int mixprec_found_inf(double sum_squares) {
    return (mixprec_f64_bits_(sum_squares) >> 52 & 0x7FFu) == 0x7FFu;
}

MIXPREC_API double mixprec_gradient_norm(double sum_squares, float inverse_scale) {
    volatile double x = sum_squares;
    mixprec_fp_ environment = mixprec_fp_begin_();
    x = mixprec_gradient_norm_run_(x, inverse_scale);
    mixprec_fp_end_(environment);
    return x;
}

MIXPREC_API float mixprec_clip_coefficient(double norm, double max_norm) {
    uint64_t bits = mixprec_f64_bits_(max_norm);
    volatile double x = norm;
    volatile float clip;
    mixprec_fp_ environment;
    if (bits >> 63 || bits == 0)
        return 1.0f;
    environment = mixprec_fp_begin_();
    clip = mixprec_clip_run_(x, max_norm);
    mixprec_fp_end_(environment);
    return clip;
}

/* Finite and at least 0, by the bits. */
static int mixprec_is_hyperparameter_(double x) {
    return mixprec_f64_bits_(x) < (uint64_t)0x7FF << 52 || mixprec_is_zero_(x);
}
static int mixprec_is_beta_(double x) {
    return mixprec_f64_bits_(x) < (uint64_t)1023 << 52 || mixprec_is_zero_(x);
}

static mixprec_status mixprec_check_parameter_(const mixprec_parameter *p, int moments, int skip, mixprec_step_ *step,
                                               const mixprec_kernels_ **kernels) {
    const void *arrays[6];
    size_t bytes[6], model_size = mixprec_size_of_(p->model_type), i, j;
    if (!mixprec_is_compute_type_(p->grad_type) || (p->model && !mixprec_is_tensor_type_(p->model_type)))
        return MIXPREC_ERR_DTYPE;
    if (!mixprec_is_round_(p->round))
        return MIXPREC_ERR_ROUND;
    if (!mixprec_is_overflow_(p->overflow))
        return MIXPREC_ERR_OVERFLOW;
    *kernels = mixprec_kernels_of_(p->isa);
    if (!*kernels)
        return MIXPREC_ERR_ISA;
    if (p->compensation && (p->master || p->round != MIXPREC_ROUND_NEAREST_EVEN))
        return MIXPREC_ERR_OPTIMIZER;
    if (p->n && (!p->grad || (!p->master && !p->model) || (moments > 0 && !p->moment1) || (moments > 1 && !p->moment2)))
        return MIXPREC_ERR_NULL;
    if (!skip && (mixprec_f32_bits_(step->inverse_scale) - 1u >= 0x7F7FFFFFu ||
                  (mixprec_f32_bits_(step->clip) >= 0x7F800000u && mixprec_f32_bits_(step->clip) != 0x80000000u)))
        return MIXPREC_ERR_SCALE;
    if (p->n > SIZE_MAX / 8)
        return MIXPREC_ERR_SIZE;
    arrays[0] = p->grad;
    arrays[1] = p->master;
    arrays[2] = p->model;
    arrays[3] = p->compensation;
    arrays[4] = moments > 0 ? p->moment1 : NULL;
    arrays[5] = moments > 1 ? p->moment2 : NULL;
    for (i = 0; i < 6; i++) {
        bytes[i] = arrays[i] ? p->n * (i == 0 ? mixprec_size_of_(p->grad_type) : i == 2 || i == 3 ? model_size : 4) : 0;
        for (j = 0; j < i; j++)
            if (mixprec_overlap_(arrays[i], bytes[i], arrays[j], bytes[j]))
                return MIXPREC_ERR_OVERLAP;
    }
    return MIXPREC_OK;
}

MIXPREC_API mixprec_status mixprec_sgd_step(const mixprec_sgd *sgd, const mixprec_parameter *parameter,
                                            float inverse_scale, float clip, int found_inf) {
    mixprec_step_ step = MIXPREC_ZERO_;
    const mixprec_kernels_ *kernels;
    mixprec_parameter p;
    mixprec_status status;
    mixprec_fp_ environment;
    int momentum;
    if (!sgd || !parameter)
        return MIXPREC_ERR_NULL;
    momentum = !mixprec_is_zero_(sgd->momentum);
    if (!mixprec_is_hyperparameter_(sgd->learning_rate) || !mixprec_is_hyperparameter_(sgd->momentum) ||
        !mixprec_is_hyperparameter_(sgd->dampening) || !mixprec_is_hyperparameter_(sgd->weight_decay) ||
        sgd->step == 0 || (sgd->nesterov && (!momentum || !mixprec_is_zero_(sgd->dampening))))
        return MIXPREC_ERR_OPTIMIZER;
    step.inverse_scale = inverse_scale;
    step.clip = clip;
    p = *parameter;
    status = mixprec_check_parameter_(&p, momentum, found_inf, &step, &kernels);
    if (status != MIXPREC_OK || found_inf)
        return status;
    if (!momentum)
        p.moment1 = NULL;
    p.moment2 = NULL;
    environment = mixprec_fp_begin_();
    mixprec_sgd_constants_(&step, sgd);
    mixprec_step_run_(kernels, kernels->sgd, &p, &step);
    mixprec_fp_end_(environment);
    return MIXPREC_OK;
}

MIXPREC_API mixprec_status mixprec_adam_step(const mixprec_adam *adam, const mixprec_parameter *parameter,
                                             float inverse_scale, float clip, int found_inf) {
    mixprec_step_ step = MIXPREC_ZERO_;
    const mixprec_kernels_ *kernels;
    mixprec_status status;
    mixprec_fp_ environment;
    if (!adam || !parameter)
        return MIXPREC_ERR_NULL;
    if (!mixprec_is_hyperparameter_(adam->learning_rate) || !mixprec_is_hyperparameter_(adam->epsilon) ||
        !mixprec_is_hyperparameter_(adam->weight_decay) || !mixprec_is_beta_(adam->beta1) ||
        !mixprec_is_beta_(adam->beta2) || adam->step == 0)
        return MIXPREC_ERR_OPTIMIZER;
    step.inverse_scale = inverse_scale;
    step.clip = clip;
    status = mixprec_check_parameter_(parameter, 2, found_inf, &step, &kernels);
    if (status != MIXPREC_OK || found_inf)
        return status;
    environment = mixprec_fp_begin_();
    mixprec_adam_constants_(&step, adam);
    mixprec_step_run_(kernels, kernels->adam, parameter, &step);
    mixprec_fp_end_(environment);
    return MIXPREC_OK;
}

MIXPREC_API mixprec_status mixprec_accumulate(float *sum, const void *x, mixprec_dtype x_type, size_t n, float factor) {
    mixprec_fp_ environment;
    if (!mixprec_is_compute_type_(x_type))
        return MIXPREC_ERR_DTYPE;
    if (n && (!sum || !x))
        return MIXPREC_ERR_NULL;
    if (n > SIZE_MAX / 8)
        return MIXPREC_ERR_SIZE;
    if (mixprec_overlap_(sum, n * sizeof *sum, x, n * mixprec_size_of_(x_type)))
        return MIXPREC_ERR_OVERLAP;
    environment = mixprec_fp_begin_();
    mixprec_accumulate_run_(mixprec_kernels_of_(MIXPREC_ISA_AUTO), sum, x, x_type, n, factor);
    mixprec_fp_end_(environment);
    return MIXPREC_OK;
}

MIXPREC_API double mixprec_warmup_cosine(double peak, double least, uint64_t warmup_steps, uint64_t total_steps,
                                         uint64_t step) {
    volatile double x = peak;
    mixprec_fp_ environment = mixprec_fp_begin_();
    x = mixprec_warmup_cosine_run_(x, least, warmup_steps, total_steps, step);
    mixprec_fp_end_(environment);
    return x;
}
#endif

/* ---- policies ---- */

#ifndef MIXPREC_NO_POLICY
MIXPREC_API mixprec_status mixprec_policy_parse(mixprec_policy *policy, const char *text) {
    static const struct {
        const char *name; /* between spaces */
        mixprec_policy policy;
    } presets[] = {
        {" O0 ", {MIXPREC_F32, MIXPREC_F32, MIXPREC_F32, MIXPREC_F32, 0, 0, 0}},
        {" O1 ", {MIXPREC_F32, MIXPREC_F16, MIXPREC_F16, MIXPREC_F16, 1, 0, 1}},
        {" O2 ", {MIXPREC_F32, MIXPREC_F16, MIXPREC_F16, MIXPREC_F16, 0, 1, 1}},
        {" O3 ", {MIXPREC_F16, MIXPREC_F16, MIXPREC_F16, MIXPREC_F16, 0, 0, 0}},
        {" mixed_float16 ", {MIXPREC_F32, MIXPREC_F16, MIXPREC_F16, MIXPREC_F16, 0, 2, 1}},
        {" mixed_bfloat16 ", {MIXPREC_F32, MIXPREC_BF16, MIXPREC_BF16, MIXPREC_BF16, 0, 2, 0}},
        {" fp8_hybrid ", {MIXPREC_F32, MIXPREC_E4M3, MIXPREC_BF16, MIXPREC_E5M2, 1, 0, 0}},
    };
    mixprec_policy p = MIXPREC_ZERO_;
    size_t length = 0, i;
    int keys = 0;
    if (!policy || !text)
        return MIXPREC_ERR_NULL;
    for (; text[length]; length++)
        keys |= text[length] == '=';
    for (i = 0; i < sizeof presets / sizeof *presets; i++)
        if (mixprec_in_list_(presets[i].name, text, length)) {
            *policy = presets[i].policy;
            return MIXPREC_OK;
        }
    if (!keys)
        p.param = p.compute = p.output = p.gradient = mixprec_policy_dtype_(text, length);
    for (i = 0; keys && i <= length; i++) {
        mixprec_dtype dtype, *field;
        const char *key = text + i;
        size_t key_length = 0, value_length = 0;
        while (key[key_length] && key[key_length] != '=' && key[key_length] != ',')
            key_length++;
        if (key[key_length] != '=')
            return MIXPREC_ERR_POLICY;
        while (key[key_length + 1 + value_length] && key[key_length + 1 + value_length] != ',')
            value_length++;
        field = mixprec_in_list_(" p params ", key, key_length)     ? &p.param
                : mixprec_in_list_(" c compute ", key, key_length)  ? &p.compute
                : mixprec_in_list_(" o output ", key, key_length)   ? &p.output
                : mixprec_in_list_(" g gradient ", key, key_length) ? &p.gradient
                                                                    : NULL;
        dtype = mixprec_policy_dtype_(key + key_length + 1, value_length);
        if (!field || *field != MIXPREC_NONE || dtype == MIXPREC_NONE)
            return MIXPREC_ERR_POLICY;
        *field = dtype;
        i += key_length + 1 + value_length;
    }
    if (keys && p.param == MIXPREC_NONE)
        p.param = MIXPREC_F32;
    if (p.compute == MIXPREC_NONE)
        p.compute = p.param;
    if (p.output == MIXPREC_NONE)
        p.output = p.compute;
    if (p.gradient == MIXPREC_NONE)
        p.gradient = p.compute;
    if (!mixprec_policy_is_sound_(&p))
        return MIXPREC_ERR_POLICY;
    p.per_operation = 1;
    p.loss_scaling = p.compute == MIXPREC_F16 || p.gradient == MIXPREC_F16;
    *policy = p;
    return MIXPREC_OK;
}

MIXPREC_API mixprec_status mixprec_policy_print(char *text, size_t size, const mixprec_policy *policy) {
    static const char keys[4][4] = {"p=", ",c=", ",o=", ",g="};
    mixprec_dtype dtypes[4];
    char line[64];
    size_t length = 0, i, j;
    if (!text || !policy)
        return MIXPREC_ERR_NULL;
    if (!mixprec_policy_is_sound_(policy))
        return MIXPREC_ERR_DTYPE;
    dtypes[0] = policy->param;
    dtypes[1] = policy->compute;
    dtypes[2] = policy->output;
    dtypes[3] = policy->gradient;
    for (i = 0; i < (policy->gradient == policy->compute ? 3u : 4u); i++) {
        const char *name = mixprec_policy_name_(dtypes[i]);
        for (j = 0; keys[i][j]; j++)
            line[length++] = keys[i][j];
        for (j = 0; name[j]; j++)
            line[length++] = name[j];
    }
    line[length++] = 0;
    if (length > size)
        return MIXPREC_ERR_RANGE;
    mixprec_copy_(text, line, length);
    return MIXPREC_OK;
}

/* The lists of PyTorch's documentation (docs/source/amp.md, "CUDA Op-Specific Behavior") and of what it registers
   (aten/src/ATen/autocast_mode.h), which has names of its own. */
MIXPREC_API mixprec_autocast mixprec_autocast_of(const char *operation) {
    static const char low[] =
        " GRUCell LSTMCell RNNCell __matmul__ _convolution _scaled_dot_product_flash_attention "
        "_thnn_fused_gru_cell _thnn_fused_lstm_cell addbmm addmm addmv addr baddbmm bmm chain_matmul conv1d "
        "conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution cudnn_convolution "
        "cudnn_convolution_transpose einsum gru_cell linalg_multi_dot linalg_vecdot linear lstm_cell matmul mm "
        "multi_dot mv prelu rnn_relu_cell rnn_tanh_cell scaled_dot_product_attention ";
    static const char f32[] =
        " __pow__ __rdiv__ __rpow__ __rtruediv__ _upsample_bicubic2d_aa _upsample_bilinear2d_aa "
        "_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d acos asin "
        "binary_cross_entropy_with_logits cdist cosh cosine_embedding_loss cosine_similarity cross_entropy "
        "cumprod cumsum dist erfinv exp expm1 frobenius_norm group_norm hinge_embedding_loss huber_loss kl_div "
        "l1_loss layer_norm linalg_matrix_norm linalg_vector_norm log log10 log1p log2 log_softmax logsumexp "
        "margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss native_layer_norm nll_loss "
        "nll_loss2d norm normalize nuclear_norm pdist poisson_nll_loss pow prod reciprocal renorm rsqrt sinh "
        "smooth_l1_loss soft_margin_loss softmax softmin softplus sum tan triplet_margin_loss upsample_bicubic2d "
        "upsample_bilinear2d upsample_linear1d upsample_nearest1d upsample_nearest2d upsample_nearest3d "
        "upsample_trilinear3d ";
    static const char promote[] =
        " addcdiv addcmul atan2 bilinear cross dot grid_sample grid_sampler index_put scatter_add tensordot vdot ";
    size_t length = 0;
    while (operation && operation[length] && operation[length] != '.')
        length++;
    return mixprec_in_list_(low, operation, length)       ? MIXPREC_AUTOCAST_LOW
           : mixprec_in_list_(f32, operation, length)     ? MIXPREC_AUTOCAST_F32
           : mixprec_in_list_(promote, operation, length) ? MIXPREC_AUTOCAST_PROMOTE
                                                          : MIXPREC_AUTOCAST_UNLISTED;
}

MIXPREC_API mixprec_dtype mixprec_policy_operation(const mixprec_policy *policy, const char *operation,
                                                   mixprec_dtype widest) {
    static const char norms[] = " batch_norm native_batch_norm cudnn_batch_norm group_norm native_group_norm"
                                " instance_norm layer_norm native_layer_norm rms_norm ";
    static const char batch_norm[] = " batch_norm native_batch_norm cudnn_batch_norm ";
    size_t length = 0;
    if (!policy || !operation || !mixprec_policy_is_sound_(policy) || !mixprec_is_compute_type_(widest))
        return MIXPREC_NONE;
    while (operation[length] && operation[length] != '.') /* the suffix of an overload */
        length++;
    if (!policy->per_operation)
        return policy->f32_norms && mixprec_in_list_(policy->f32_norms == 1 ? batch_norm : norms, operation, length)
                   ? MIXPREC_F32
                   : policy->compute;
    if (widest == MIXPREC_F64)
        return widest;
    switch (mixprec_autocast_of(operation)) {
    case MIXPREC_AUTOCAST_LOW: return policy->compute;
    case MIXPREC_AUTOCAST_F32: return MIXPREC_F32;
    case MIXPREC_AUTOCAST_PROMOTE:
        return mixprec_size_of_(widest) < mixprec_size_of_(policy->output) ? policy->output : widest;
    case MIXPREC_AUTOCAST_UNLISTED: break;
    }
    return widest;
}
#endif

/* ---- checkpoints ---- */

#ifndef MIXPREC_NO_CHECKPOINT
MIXPREC_API uint64_t mixprec_checkpoint_size(const mixprec_checkpoint_item *items, size_t count) {
    return mixprec_checkpoint_check_(items, count) == MIXPREC_OK ? mixprec_checkpoint_bytes_(items, count) : 0;
}

MIXPREC_API mixprec_status mixprec_checkpoint_save(const mixprec_checkpoint_item *items, size_t count,
                                                   mixprec_write write, void *context) {
    mixprec_stream_ s;
    mixprec_status status = mixprec_checkpoint_check_(items, count);
    if (status == MIXPREC_OK && !write)
        status = MIXPREC_ERR_NULL;
    if (status != MIXPREC_OK)
        return status;
    s.mode = MIXPREC_SAVE_;
    s.write = write;
    s.context = context;
    s.offset = s.hash = 0;
    s.fill = 0;
    s.status = MIXPREC_OK;
    mixprec_expect_bytes_(&s, mixprec_magic_, sizeof mixprec_magic_);
    mixprec_expect_(&s, 1, 4);
    mixprec_expect_(&s, count, 4);
    mixprec_expect_(&s, mixprec_checkpoint_bytes_(items, count), 8);
    mixprec_walk_(&s, items, count);
    s.hash = mixprec_hash_(s.hash, s.bytes, s.fill);
    mixprec_flush_(&s);
    mixprec_expect_(&s, s.hash, 8);
    mixprec_flush_(&s);
    return s.status;
}

MIXPREC_API mixprec_status mixprec_checkpoint_load(const mixprec_checkpoint_item *items, size_t count,
                                                   mixprec_read read, void *context) {
    mixprec_stream_ s;
    mixprec_status status = mixprec_checkpoint_check_(items, count);
    if (status == MIXPREC_OK && !read)
        status = MIXPREC_ERR_NULL;
    if (status != MIXPREC_OK)
        return status;
    s.read = read;
    s.context = context;
    s.hash = 0;
    s.status = MIXPREC_OK;
    status = mixprec_checkpoint_verify_(&s, count, mixprec_checkpoint_bytes_(items, count));
    for (s.mode = MIXPREC_COMPARE_; s.mode <= MIXPREC_LOAD_ && status == MIXPREC_OK; s.mode++) {
        s.offset = MIXPREC_HEADER_BYTES_;
        mixprec_walk_(&s, items, count);
        status = s.status;
    }
    return status;
}

MIXPREC_API size_t mixprec_buffer_write(void *buffer, const void *bytes, size_t n) {
    mixprec_buffer *b = (mixprec_buffer *)buffer;
    if (n > b->size - b->used)
        return 0;
    mixprec_copy_(b->bytes + b->used, bytes, n);
    b->used += n;
    return n;
}

MIXPREC_API size_t mixprec_buffer_read(void *buffer, uint64_t offset, void *bytes, size_t n) {
    const mixprec_buffer *b = (const mixprec_buffer *)buffer;
    if (offset >= b->size)
        return 0;
    n = mixprec_min_(n, b->size - (size_t)offset);
    mixprec_copy_(bytes, b->bytes + (size_t)offset, n);
    return n;
}
#endif

/* ---- layers ---- */

#ifndef MIXPREC_NO_LAYERS
/* An argument of a layer: an array of `count` elements of a type. */
enum { MIXPREC_IN_ = 0, MIXPREC_OUT_ = 1, MIXPREC_OPTIONAL_ = 2, MIXPREC_SAME_ = 4 /* may be the first argument */ };
typedef struct mixprec_argument_ {
    const void *data;
    mixprec_dtype type; /* f32 for targets, too: four bytes */
    size_t count;
    int role;
} mixprec_argument_;

static mixprec_argument_ mixprec_argument_of_(const void *data, mixprec_dtype type, size_t count, int role) {
    mixprec_argument_ a;
    a.data = data;
    a.type = type;
    a.count = count;
    a.role = role;
    return a;
}

/* a * b, or SIZE_MAX. */
static size_t mixprec_count_(size_t a, size_t b) {
    return b && a > SIZE_MAX / b ? SIZE_MAX : a * b;
}

static mixprec_status mixprec_check_arguments_(const mixprec_argument_ *a, int count) {
    int i, j;
    for (i = 0; i < count; i++)
        if (!mixprec_is_compute_type_(a[i].type) || a[i].type == MIXPREC_F64)
            return MIXPREC_ERR_DTYPE;
    for (i = 0; i < count; i++)
        if (a[i].count > SIZE_MAX / 16)
            return MIXPREC_ERR_SIZE;
    for (i = 0; i < count; i++)
        if (a[i].count && !a[i].data && !(a[i].role & MIXPREC_OPTIONAL_))
            return MIXPREC_ERR_NULL;
    for (i = 0; i < count; i++)
        for (j = 0; (a[i].role & MIXPREC_OUT_) && a[i].data && j < count; j++) {
            size_t size = mixprec_size_of_(a[i].type), other = mixprec_size_of_(a[j].type);
            int same = i == 0 && (a[j].role & MIXPREC_SAME_) && a[i].data == a[j].data && size == other;
            if (i != j && a[j].data && !same &&
                mixprec_overlap_(a[i].data, a[i].count * size, a[j].data, a[j].count * other))
                return MIXPREC_ERR_OVERLAP;
        }
    return MIXPREC_OK;
}

static mixprec_tensor_ mixprec_tensor_of_(const void *data, mixprec_dtype type) {
    mixprec_tensor_ t;
    t.kernels = mixprec_kernels_of_(MIXPREC_ISA_AUTO);
    t.data = (char *)(uintptr_t)data; /* only outputs are written */
    t.type = type;
    return t;
}

/* Finite and from 0 to `most`, told from the bits. */
static int mixprec_is_parameter_(double x, double most) {
    return mixprec_is_zero_(x) || mixprec_f64_bits_(x) <= mixprec_f64_bits_(most);
}
#define MIXPREC_F64_MAX_ 1.7976931348623157e308

static mixprec_status mixprec_check_indices_(const int32_t *indices, size_t n, size_t limit) {
    size_t i;
    for (i = 0; i < n; i++)
        if (indices[i] >= 0 && (size_t)indices[i] >= limit)
            return MIXPREC_ERR_INDEX;
    return MIXPREC_OK;
}

/* What follows the checks: nothing for an error, or where there is nothing to do; else the call, in the default
   floating-point environment. */
#define MIXPREC_RUN_(status, something, call)                                                                          \
    do {                                                                                                               \
        if ((status) == MIXPREC_OK && (something)) {                                                                   \
            mixprec_fp_ environment_ = mixprec_fp_begin_();                                                            \
            call;                                                                                                      \
            mixprec_fp_end_(environment_);                                                                             \
        }                                                                                                              \
        return status;                                                                                                 \
    } while (0)

MIXPREC_API mixprec_status mixprec_activate(void *y, mixprec_dtype y_type, const void *x, mixprec_dtype x_type,
                                            size_t n, mixprec_activation activation) {
    mixprec_argument_ a[2];
    mixprec_status status;
    a[0] = mixprec_argument_of_(y, y_type, n, MIXPREC_OUT_);
    a[1] = mixprec_argument_of_(x, x_type, n, MIXPREC_SAME_);
    status = mixprec_check_arguments_(a, 2);
    if (status == MIXPREC_OK && (unsigned)activation > (unsigned)MIXPREC_ACTIVATION_TANH)
        status = MIXPREC_ERR_ACTIVATION;
    MIXPREC_RUN_(
        status, n,
        mixprec_activate_run_(mixprec_tensor_of_(y, y_type), NULL, mixprec_tensor_of_(x, x_type), n, activation));
}

MIXPREC_API mixprec_status mixprec_activate_backward(void *dx, mixprec_dtype dx_type, const void *dy,
                                                     mixprec_dtype dy_type, const void *x, mixprec_dtype x_type,
                                                     size_t n, mixprec_activation activation) {
    mixprec_argument_ a[3];
    mixprec_tensor_ gradient;
    mixprec_status status;
    a[0] = mixprec_argument_of_(dx, dx_type, n, MIXPREC_OUT_);
    a[1] = mixprec_argument_of_(dy, dy_type, n, MIXPREC_SAME_);
    a[2] = mixprec_argument_of_(x, x_type, n, MIXPREC_SAME_);
    status = mixprec_check_arguments_(a, 3);
    if (status == MIXPREC_OK && (unsigned)activation > (unsigned)MIXPREC_ACTIVATION_TANH)
        status = MIXPREC_ERR_ACTIVATION;
    gradient = mixprec_tensor_of_(dy, dy_type);
    MIXPREC_RUN_(status, n,
                 mixprec_activate_run_(mixprec_tensor_of_(dx, dx_type), &gradient, mixprec_tensor_of_(x, x_type), n,
                                       activation));
}

/* Is each count from 0 to `most`? */
static mixprec_status mixprec_check_valid_(const int32_t *valid, size_t rows, size_t most) {
    size_t i;
    for (i = 0; i < rows; i++)
        if (valid[i] < 0 || (size_t)valid[i] > most)
            return MIXPREC_ERR_RANGE;
    return MIXPREC_OK;
}

static mixprec_status mixprec_softmax_any_(void *y, mixprec_dtype y_type, const void *x, mixprec_dtype x_type,
                                           const int32_t *valid, int masked, size_t rows, size_t columns,
                                           int logarithm) {
    size_t n = mixprec_count_(rows, columns);
    mixprec_softmax_ s = MIXPREC_ZERO_;
    mixprec_argument_ a[3];
    mixprec_status status;
    a[0] = mixprec_argument_of_(y, y_type, n, MIXPREC_OUT_);
    a[1] = mixprec_argument_of_(x, x_type, n, MIXPREC_SAME_);
    a[2] = mixprec_argument_of_(valid, MIXPREC_F32, n ? rows : 0, MIXPREC_IN_);
    status = mixprec_check_arguments_(a, masked ? 3 : 2);
    if (status == MIXPREC_OK && masked && n)
        status = mixprec_check_valid_(valid, rows, columns);
    s.y = mixprec_tensor_of_(y, y_type);
    s.x = mixprec_tensor_of_(x, x_type);
    s.valid = valid;
    s.rows = rows;
    s.columns = columns;
    s.logarithm = logarithm;
    s.scale = 1;
    MIXPREC_RUN_(status, n, mixprec_softmax_run_(s.y.kernels, &s));
}
MIXPREC_API mixprec_status mixprec_softmax(void *y, mixprec_dtype y_type, const void *x, mixprec_dtype x_type,
                                           size_t rows, size_t columns) {
    return mixprec_softmax_any_(y, y_type, x, x_type, NULL, 0, rows, columns, 0);
}
MIXPREC_API mixprec_status mixprec_log_softmax(void *y, mixprec_dtype y_type, const void *x, mixprec_dtype x_type,
                                               size_t rows, size_t columns) {
    return mixprec_softmax_any_(y, y_type, x, x_type, NULL, 0, rows, columns, 1);
}
MIXPREC_API mixprec_status mixprec_softmax_masked(void *y, mixprec_dtype y_type, const void *x, mixprec_dtype x_type,
                                                  const int32_t *valid, size_t rows, size_t columns) {
    return mixprec_softmax_any_(y, y_type, x, x_type, valid, 1, rows, columns, 0);
}

static mixprec_status mixprec_softmax_backward_any_(void *dx, mixprec_dtype dx_type, const void *dy,
                                                    mixprec_dtype dy_type, const void *y, mixprec_dtype y_type,
                                                    const int32_t *valid, int masked, size_t rows, size_t columns) {
    size_t n = mixprec_count_(rows, columns);
    mixprec_argument_ a[4];
    mixprec_status status;
    a[0] = mixprec_argument_of_(dx, dx_type, n, MIXPREC_OUT_);
    a[1] = mixprec_argument_of_(dy, dy_type, n, MIXPREC_SAME_);
    a[2] = mixprec_argument_of_(y, y_type, n, MIXPREC_SAME_);
    a[3] = mixprec_argument_of_(valid, MIXPREC_F32, n ? rows : 0, MIXPREC_IN_);
    status = mixprec_check_arguments_(a, masked ? 4 : 3);
    if (status == MIXPREC_OK && masked && n)
        status = mixprec_check_valid_(valid, rows, columns);
    MIXPREC_RUN_(status, n,
                 mixprec_softmax_backward_run_(mixprec_kernels_of_(MIXPREC_ISA_AUTO), mixprec_tensor_of_(dx, dx_type),
                                               mixprec_tensor_of_(dy, dy_type), mixprec_tensor_of_(y, y_type), valid,
                                               rows, columns));
}
MIXPREC_API mixprec_status mixprec_softmax_backward(void *dx, mixprec_dtype dx_type, const void *dy,
                                                    mixprec_dtype dy_type, const void *y, mixprec_dtype y_type,
                                                    size_t rows, size_t columns) {
    return mixprec_softmax_backward_any_(dx, dx_type, dy, dy_type, y, y_type, NULL, 0, rows, columns);
}
MIXPREC_API mixprec_status mixprec_softmax_masked_backward(void *dx, mixprec_dtype dx_type, const void *dy,
                                                           mixprec_dtype dy_type, const void *y, mixprec_dtype y_type,
                                                           const int32_t *valid, size_t rows, size_t columns) {
    return mixprec_softmax_backward_any_(dx, dx_type, dy, dy_type, y, y_type, valid, 1, rows, columns);
}

MIXPREC_API mixprec_status mixprec_cross_entropy(void *dlogits, mixprec_dtype dlogits_type, float *losses,
                                                 const void *logits, mixprec_dtype logits_type, const int32_t *targets,
                                                 size_t rows, size_t columns, double scale) {
    size_t n = mixprec_count_(rows, columns);
    mixprec_softmax_ s = MIXPREC_ZERO_;
    mixprec_argument_ a[4];
    mixprec_status status;
    a[0] = mixprec_argument_of_(dlogits, dlogits_type, n, MIXPREC_OUT_ | MIXPREC_OPTIONAL_);
    a[1] = mixprec_argument_of_(losses, MIXPREC_F32, rows, MIXPREC_OUT_ | MIXPREC_OPTIONAL_);
    a[2] = mixprec_argument_of_(logits, logits_type, n, MIXPREC_SAME_);
    a[3] = mixprec_argument_of_(targets, MIXPREC_F32, rows, MIXPREC_IN_);
    status = mixprec_check_arguments_(a, 4);
    if (status == MIXPREC_OK && n)
        status = mixprec_check_indices_(targets, rows, columns);
    s.y = mixprec_tensor_of_(dlogits, dlogits_type);
    s.x = mixprec_tensor_of_(logits, logits_type);
    s.targets = targets;
    s.losses = losses;
    s.rows = rows;
    s.columns = columns;
    s.scale = scale;
    MIXPREC_RUN_(status, n, mixprec_softmax_run_(s.y.kernels, &s));
}

/* The layout of a normalisation, and its arguments that all have: rows of a matrix, or the channels of a tensor. */
static void mixprec_norm_rows_(mixprec_norm_ *norm, size_t rows, size_t columns) {
    static const mixprec_norm_ none = MIXPREC_ZERO_;
    *norm = none;
    norm->groups = rows;
    norm->group.segments = 1;
    norm->group.length = norm->step = columns;
    norm->centred = 1;
}
static void mixprec_norm_channels_(mixprec_norm_ *norm, size_t samples, size_t channels, size_t pixels) {
    mixprec_norm_rows_(norm, channels, pixels);
    norm->group.segments = samples;
    norm->group.stride = channels * pixels;
    norm->by_group = 1;
}

/* Forward: y, mean, rstd, running_mean, running_variance (outputs) and x, gamma, beta, variance (inputs), of which
   those set in *norm are given. */
static mixprec_status mixprec_norm_forward_(mixprec_norm_ *norm, void *y, mixprec_dtype y_type, const void *x,
                                            mixprec_dtype x_type, const void *gamma, const void *beta,
                                            mixprec_dtype parameter_type, size_t n) {
    size_t parameters = norm->by_group ? norm->groups : norm->group.length;
    int out = MIXPREC_OUT_ | MIXPREC_OPTIONAL_;
    mixprec_argument_ a[9];
    mixprec_status status;
    a[0] = mixprec_argument_of_(y, y_type, n, MIXPREC_OUT_);
    a[1] = mixprec_argument_of_(x, x_type, n, MIXPREC_SAME_);
    a[2] = mixprec_argument_of_(gamma, parameter_type, parameters, MIXPREC_OPTIONAL_);
    a[3] = mixprec_argument_of_(beta, parameter_type, parameters, MIXPREC_OPTIONAL_);
    a[4] = mixprec_argument_of_(norm->mean, MIXPREC_F32, norm->groups, norm->given ? MIXPREC_IN_ : out);
    a[5] = mixprec_argument_of_(norm->rstd, MIXPREC_F32, norm->groups, out);
    a[6] = mixprec_argument_of_(norm->running_mean, MIXPREC_F32, norm->groups, out);
    a[7] = mixprec_argument_of_(norm->running_variance, MIXPREC_F32, norm->groups, out);
    a[8] =
        mixprec_argument_of_(norm->variance, MIXPREC_F32, norm->groups, norm->given ? MIXPREC_IN_ : MIXPREC_OPTIONAL_);
    status = mixprec_check_arguments_(a, 9);
    if (status == MIXPREC_OK &&
        (!mixprec_is_parameter_(norm->epsilon, MIXPREC_F64_MAX_) || !mixprec_is_parameter_(norm->momentum, 1)))
        status = MIXPREC_ERR_PARAMETER;
    norm->y = mixprec_tensor_of_(y, y_type);
    norm->x = mixprec_tensor_of_(x, x_type);
    norm->gamma = mixprec_tensor_of_(gamma, parameter_type);
    norm->beta = mixprec_tensor_of_(beta, parameter_type);
    MIXPREC_RUN_(status, n, mixprec_norm_run_(norm->x.kernels, norm));
}

static mixprec_status mixprec_norm_backward_(mixprec_norm_ *norm, void *dx, mixprec_dtype dx_type, float *dgamma,
                                             float *dbeta, const void *dy, mixprec_dtype dy_type, const void *x,
                                             mixprec_dtype x_type, const void *gamma, mixprec_dtype parameter_type,
                                             const float *mean, const float *rstd, size_t n) {
    size_t parameters = norm->by_group ? norm->groups : norm->group.length;
    int out = MIXPREC_OUT_ | MIXPREC_OPTIONAL_;
    mixprec_argument_ a[8];
    mixprec_status status;
    a[0] = mixprec_argument_of_(dx, dx_type, n, out);
    a[1] = mixprec_argument_of_(dgamma, MIXPREC_F32, parameters, out);
    a[2] = mixprec_argument_of_(dbeta, MIXPREC_F32, parameters, out);
    a[3] = mixprec_argument_of_(dy, dy_type, n, MIXPREC_SAME_);
    a[4] = mixprec_argument_of_(x, x_type, n, MIXPREC_SAME_);
    a[5] = mixprec_argument_of_(gamma, parameter_type, parameters, MIXPREC_OPTIONAL_);
    a[6] = mixprec_argument_of_(mean, MIXPREC_F32, norm->groups, norm->centred ? MIXPREC_IN_ : MIXPREC_OPTIONAL_);
    a[7] = mixprec_argument_of_(rstd, MIXPREC_F32, norm->groups, MIXPREC_IN_);
    status = mixprec_check_arguments_(a, 8);
    norm->dx = mixprec_tensor_of_(dx, dx_type);
    norm->dy = mixprec_tensor_of_(dy, dy_type);
    norm->x = mixprec_tensor_of_(x, x_type);
    norm->gamma = mixprec_tensor_of_(gamma, parameter_type);
    norm->mean = (float *)(uintptr_t)mean; /* the backward pass only reads them */
    norm->rstd = (float *)(uintptr_t)rstd;
    norm->dgamma = dgamma;
    norm->dbeta = dbeta;
    MIXPREC_RUN_(status, n, mixprec_norm_backward_run_(norm->x.kernels, norm));
}

MIXPREC_API mixprec_status mixprec_layer_norm(void *y, mixprec_dtype y_type, float *mean, float *rstd, const void *x,
                                              mixprec_dtype x_type, const void *gamma, const void *beta,
                                              mixprec_dtype parameter_type, size_t rows, size_t columns,
                                              double epsilon) {
    mixprec_norm_ norm;
    mixprec_norm_rows_(&norm, rows, columns);
    norm.mean = mean;
    norm.rstd = rstd;
    norm.epsilon = epsilon;
    return mixprec_norm_forward_(&norm, y, y_type, x, x_type, gamma, beta, parameter_type,
                                 mixprec_count_(rows, columns));
}

MIXPREC_API mixprec_status mixprec_layer_norm_backward(void *dx, mixprec_dtype dx_type, float *dgamma, float *dbeta,
                                                       const void *dy, mixprec_dtype dy_type, const void *x,
                                                       mixprec_dtype x_type, const void *gamma,
                                                       mixprec_dtype parameter_type, const float *mean,
                                                       const float *rstd, size_t rows, size_t columns) {
    mixprec_norm_ norm;
    mixprec_norm_rows_(&norm, rows, columns);
    return mixprec_norm_backward_(&norm, dx, dx_type, dgamma, dbeta, dy, dy_type, x, x_type, gamma, parameter_type,
                                  mean, rstd, mixprec_count_(rows, columns));
}

MIXPREC_API mixprec_status mixprec_rms_norm(void *y, mixprec_dtype y_type, float *rstd, const void *x,
                                            mixprec_dtype x_type, const void *gamma, mixprec_dtype parameter_type,
                                            size_t rows, size_t columns, double epsilon) {
    mixprec_norm_ norm;
    mixprec_norm_rows_(&norm, rows, columns);
    norm.centred = 0;
    norm.rstd = rstd;
    norm.epsilon = epsilon;
    return mixprec_norm_forward_(&norm, y, y_type, x, x_type, gamma, NULL, parameter_type,
                                 mixprec_count_(rows, columns));
}

MIXPREC_API mixprec_status mixprec_rms_norm_backward(void *dx, mixprec_dtype dx_type, float *dgamma, const void *dy,
                                                     mixprec_dtype dy_type, const void *x, mixprec_dtype x_type,
                                                     const void *gamma, mixprec_dtype parameter_type, const float *rstd,
                                                     size_t rows, size_t columns) {
    mixprec_norm_ norm;
    mixprec_norm_rows_(&norm, rows, columns);
    norm.centred = 0;
    return mixprec_norm_backward_(&norm, dx, dx_type, dgamma, NULL, dy, dy_type, x, x_type, gamma, parameter_type, NULL,
                                  rstd, mixprec_count_(rows, columns));
}

MIXPREC_API mixprec_status mixprec_batch_norm(void *y, mixprec_dtype y_type, float *mean, float *rstd, const void *x,
                                              mixprec_dtype x_type, const void *gamma, const void *beta,
                                              mixprec_dtype parameter_type, float *running_mean,
                                              float *running_variance, double momentum, size_t samples, size_t channels,
                                              size_t pixels, double epsilon) {
    mixprec_norm_ norm;
    mixprec_norm_channels_(&norm, samples, channels, pixels);
    norm.mean = mean;
    norm.rstd = rstd;
    norm.running_mean = running_mean;
    norm.running_variance = running_variance;
    norm.momentum = momentum;
    norm.epsilon = epsilon;
    return mixprec_norm_forward_(&norm, y, y_type, x, x_type, gamma, beta, parameter_type,
                                 mixprec_count_(mixprec_count_(samples, channels), pixels));
}

MIXPREC_API mixprec_status mixprec_batch_norm_inference(void *y, mixprec_dtype y_type, const void *x,
                                                        mixprec_dtype x_type, const void *gamma, const void *beta,
                                                        mixprec_dtype parameter_type, const float *running_mean,
                                                        const float *running_variance, size_t samples, size_t channels,
                                                        size_t pixels, double epsilon) {
    mixprec_norm_ norm;
    mixprec_norm_channels_(&norm, samples, channels, pixels);
    norm.given = 1;
    norm.mean = (float *)(uintptr_t)running_mean; /* only read */
    norm.variance = running_variance;
    norm.epsilon = epsilon;
    return mixprec_norm_forward_(&norm, y, y_type, x, x_type, gamma, beta, parameter_type,
                                 mixprec_count_(mixprec_count_(samples, channels), pixels));
}

MIXPREC_API mixprec_status mixprec_batch_norm_backward(void *dx, mixprec_dtype dx_type, float *dgamma, float *dbeta,
                                                       const void *dy, mixprec_dtype dy_type, const void *x,
                                                       mixprec_dtype x_type, const void *gamma,
                                                       mixprec_dtype parameter_type, const float *mean,
                                                       const float *rstd, size_t samples, size_t channels,
                                                       size_t pixels) {
    mixprec_norm_ norm;
    mixprec_norm_channels_(&norm, samples, channels, pixels);
    return mixprec_norm_backward_(&norm, dx, dx_type, dgamma, dbeta, dy, dy_type, x, x_type, gamma, parameter_type,
                                  mean, rstd, mixprec_count_(mixprec_count_(samples, channels), pixels));
}

MIXPREC_API mixprec_status mixprec_bias_add(void *y, mixprec_dtype y_type, const void *x, mixprec_dtype x_type,
                                            const void *bias, mixprec_dtype bias_type, size_t rows, size_t columns) {
    size_t n = mixprec_count_(rows, columns);
    mixprec_argument_ a[3];
    mixprec_status status;
    a[0] = mixprec_argument_of_(y, y_type, n, MIXPREC_OUT_);
    a[1] = mixprec_argument_of_(x, x_type, n, MIXPREC_SAME_);
    a[2] = mixprec_argument_of_(bias, bias_type, columns, MIXPREC_IN_);
    status = mixprec_check_arguments_(a, 3);
    MIXPREC_RUN_(status, n,
                 mixprec_bias_run_(mixprec_kernels_of_(MIXPREC_ISA_AUTO), mixprec_tensor_of_(y, y_type),
                                   mixprec_tensor_of_(x, x_type), mixprec_tensor_of_(bias, bias_type), rows, columns));
}

MIXPREC_API mixprec_status mixprec_bias_gradient(float *dbias, const void *dy, mixprec_dtype dy_type, size_t rows,
                                                 size_t columns, size_t ld) {
    size_t n;
    mixprec_argument_ a[2];
    mixprec_status status;
    if (ld == 0)
        ld = columns;
    n = rows && columns ? mixprec_count_(rows - 1, ld) : 0;
    n = rows && columns && n < SIZE_MAX / 16 && columns < SIZE_MAX / 16 ? n + columns : n;
    a[0] = mixprec_argument_of_(dbias, MIXPREC_F32, columns, MIXPREC_OUT_);
    a[1] = mixprec_argument_of_(dy, dy_type, n, MIXPREC_IN_);
    status = mixprec_check_arguments_(a, 2);
    if (status == MIXPREC_OK && ld < columns)
        status = MIXPREC_ERR_LEADING_DIMENSION;
    MIXPREC_RUN_(status, n,
                 mixprec_add_rows_run_(mixprec_kernels_of_(MIXPREC_ISA_AUTO), dbias, mixprec_tensor_of_(dy, dy_type),
                                       NULL, rows, columns, ld));
}

MIXPREC_API mixprec_status mixprec_embedding(void *y, mixprec_dtype y_type, const void *table, mixprec_dtype table_type,
                                             const int32_t *tokens, size_t count, size_t vocabulary, size_t width) {
    size_t n = mixprec_count_(count, width);
    mixprec_argument_ a[3];
    mixprec_status status;
    a[0] = mixprec_argument_of_(y, y_type, n, MIXPREC_OUT_);
    a[1] = mixprec_argument_of_(table, table_type, mixprec_count_(vocabulary, width), MIXPREC_IN_);
    a[2] = mixprec_argument_of_(tokens, MIXPREC_F32, count, MIXPREC_IN_);
    status = mixprec_check_arguments_(a, 3);
    if (status == MIXPREC_OK)
        status = mixprec_check_indices_(tokens, count, vocabulary);
    MIXPREC_RUN_(status, n,
                 mixprec_embedding_run_(mixprec_tensor_of_(y, y_type), mixprec_tensor_of_(table, table_type), tokens,
                                        count, width));
}

MIXPREC_API mixprec_status mixprec_embedding_gradient(float *dtable, const void *dy, mixprec_dtype dy_type,
                                                      const int32_t *tokens, size_t count, size_t vocabulary,
                                                      size_t width) {
    size_t n = mixprec_count_(count, width);
    mixprec_argument_ a[3];
    mixprec_status status;
    a[0] = mixprec_argument_of_(dtable, MIXPREC_F32, mixprec_count_(vocabulary, width), MIXPREC_OUT_);
    a[1] = mixprec_argument_of_(dy, dy_type, n, MIXPREC_IN_);
    a[2] = mixprec_argument_of_(tokens, MIXPREC_F32, count, MIXPREC_IN_);
    status = mixprec_check_arguments_(a, 3);
    if (status == MIXPREC_OK)
        status = mixprec_check_indices_(tokens, count, vocabulary);
    MIXPREC_RUN_(status, n,
                 mixprec_add_rows_run_(mixprec_kernels_of_(MIXPREC_ISA_AUTO), dtable, mixprec_tensor_of_(dy, dy_type),
                                       tokens, count, width, width));
}

MIXPREC_API mixprec_status mixprec_dropout(void *y, mixprec_dtype y_type, const void *x, mixprec_dtype x_type, size_t n,
                                           float probability, uint64_t seed, uint64_t offset) {
    mixprec_argument_ a[2];
    mixprec_status status;
    a[0] = mixprec_argument_of_(y, y_type, n, MIXPREC_OUT_);
    a[1] = mixprec_argument_of_(x, x_type, n, MIXPREC_SAME_);
    status = mixprec_check_arguments_(a, 2);
    if (status == MIXPREC_OK && mixprec_f32_bits_(probability) != 0x80000000u &&
        mixprec_f32_bits_(probability) > 0x3F800000u)
        status = MIXPREC_ERR_PARAMETER;
    MIXPREC_RUN_(status, n,
                 mixprec_dropout_run_(mixprec_kernels_of_(MIXPREC_ISA_AUTO), mixprec_tensor_of_(y, y_type),
                                      mixprec_tensor_of_(x, x_type), n, probability, seed, offset));
}

#ifndef MIXPREC_NO_GEMM
/* A convolution's sizes in elements, for one image, and its matrices: `depth` = channels x kernel, `points` = output
   pixels. */
typedef struct mixprec_conv_plan_ {
    mixprec_conv2d layer; /* with strides and dilations that are not 0 */
    size_t out_height, out_width, depth, points, image, output, weights;
    size_t columns_bytes, sums_bytes, bytes; /* workspace: im2col's matrix, sums before the bias, and with GEMM's */
    int direct;                              /* an output sees one input, that of its place: im2col's matrix is x */
} mixprec_conv_plan_;

/* The outputs along one axis; 0 when there is none. */
static size_t mixprec_conv_outputs_(size_t size, size_t kernel, size_t stride, size_t dilation, size_t padding) {
    size_t reach = mixprec_count_(dilation, kernel - 1), padded = size + 2 * padding;
    if (!size || !kernel || padding > SIZE_MAX / 4 || size > SIZE_MAX / 4 || reach >= padded)
        return 0;
    return (padded - 1 - reach) / stride + 1;
}

/* One product of the three passes. Where only the workspace is asked for, the operands are f16 or f32: either may need
   more, and the others get by with what is best for these two. */
static mixprec_gemm_desc mixprec_conv_gemm_(size_t m, size_t n, size_t k, mixprec_transpose trans_a, const void *a,
                                            mixprec_dtype a_type, mixprec_transpose trans_b, const void *b,
                                            mixprec_dtype b_type, void *c, mixprec_dtype c_type) {
    static const mixprec_gemm_desc none = MIXPREC_ZERO_;
    mixprec_gemm_desc d = none;
    d.m = m;
    d.n = n;
    d.k = k;
    d.trans_a = trans_a;
    d.a = a;
    d.a_type = a_type;
    d.trans_b = trans_b;
    d.b = b;
    d.b_type = b_type;
    d.c = c;
    d.c_type = c_type;
    return d;
}

static mixprec_status mixprec_conv_plan_of_(const mixprec_conv2d *layer, mixprec_conv_plan_ *plan) {
    static const double one = 1;
    mixprec_conv2d *l = &plan->layer;
    size_t i, best;
    if (!layer)
        return MIXPREC_ERR_NULL;
    *l = *layer;
    l->stride_y += l->stride_y == 0;
    l->stride_x += l->stride_x == 0;
    l->dilation_y += l->dilation_y == 0;
    l->dilation_x += l->dilation_x == 0;
    plan->out_height = mixprec_conv_outputs_(l->height, l->kernel_height, l->stride_y, l->dilation_y, l->padding_y);
    plan->out_width = mixprec_conv_outputs_(l->width, l->kernel_width, l->stride_x, l->dilation_x, l->padding_x);
    if (!plan->out_height || !plan->out_width || !l->channels || !l->filters)
        return MIXPREC_ERR_PARAMETER;
    plan->depth = mixprec_count_(l->channels, mixprec_count_(l->kernel_height, l->kernel_width));
    plan->points = mixprec_count_(plan->out_height, plan->out_width);
    plan->image = mixprec_count_(l->channels, mixprec_count_(l->height, l->width));
    plan->output = mixprec_count_(l->filters, plan->points);
    plan->weights = mixprec_count_(l->filters, plan->depth);
    if (mixprec_count_(plan->depth, plan->points) > SIZE_MAX / 64 || plan->output > SIZE_MAX / 64)
        return MIXPREC_ERR_SIZE;
    plan->columns_bytes = plan->depth * plan->points * 4;
    plan->sums_bytes = plan->output * 4;
    plan->direct = l->kernel_height == 1 && l->kernel_width == 1 && l->stride_y == 1 && l->stride_x == 1 &&
                   !l->padding_y && !l->padding_x;
    plan->bytes = 0;
    for (i = 0; i < 6; i++) {
        const mixprec_dtype type = i < 3 ? MIXPREC_F16 : MIXPREC_F32;
        mixprec_gemm_desc d =
            i % 3 == 0   ? mixprec_conv_gemm_(l->filters, plan->points, plan->depth, MIXPREC_NO_TRANS, NULL, type,
                                              MIXPREC_NO_TRANS, NULL, type, NULL, MIXPREC_F16)
            : i % 3 == 1 ? mixprec_conv_gemm_(plan->depth, plan->points, l->filters, MIXPREC_TRANS, NULL, type,
                                              MIXPREC_NO_TRANS, NULL, type, NULL, MIXPREC_F32)
                         : mixprec_conv_gemm_(l->filters, plan->depth, plan->points, MIXPREC_NO_TRANS, NULL, type,
                                              MIXPREC_TRANS, NULL, type, NULL, MIXPREC_F32);
        mixprec_status status;
        if (i % 3 == 2)
            d.beta = &one;
        status = mixprec_gemm_workspace(&d, &best, NULL);
        if (status != MIXPREC_OK)
            return status;
        plan->bytes = best > plan->bytes ? best : plan->bytes;
    }
    plan->bytes += plan->columns_bytes + plan->sums_bytes + 16; /* 16: to align */
    return MIXPREC_OK;
}

MIXPREC_API mixprec_status mixprec_conv2d_output(const mixprec_conv2d *layer, size_t *height, size_t *width) {
    mixprec_conv_plan_ plan;
    mixprec_status status = mixprec_conv_plan_of_(layer, &plan);
    if (status == MIXPREC_OK && (!height || !width))
        return MIXPREC_ERR_NULL;
    if (status == MIXPREC_OK) {
        *height = plan.out_height;
        *width = plan.out_width;
    }
    return status;
}

MIXPREC_API mixprec_status mixprec_conv2d_workspace(const mixprec_conv2d *layer, size_t *bytes) {
    mixprec_conv_plan_ plan;
    mixprec_status status = mixprec_conv_plan_of_(layer, &plan);
    if (status == MIXPREC_OK && !bytes)
        return MIXPREC_ERR_NULL;
    if (status == MIXPREC_OK)
        *bytes = plan.bytes;
    return status;
}

/* Checks the arguments with the workspace as the last; its parts are aligned for f32. */
static mixprec_status mixprec_conv_check_(const mixprec_conv_plan_ *plan, mixprec_argument_ *a, int count,
                                          void *workspace, size_t workspace_size, char **columns, float **sums,
                                          mixprec_gemm_desc *d) {
    mixprec_status status;
    a[count] = mixprec_argument_of_(workspace, MIXPREC_E4M3, plan->layer.batch ? workspace_size : 0, MIXPREC_OUT_);
    status = mixprec_check_arguments_(a, count + 1);
    if (status != MIXPREC_OK)
        return status;
    *columns = NULL;
    *sums = NULL;
    if (!plan->layer.batch)
        return MIXPREC_OK;
    if (!workspace || workspace_size < plan->bytes)
        return MIXPREC_ERR_WORKSPACE;
    *columns = (char *)workspace + (16 - (uintptr_t)workspace % 16) % 16;
    *sums = (float *)(void *)(*columns + plan->columns_bytes);
    d->workspace = *columns + plan->columns_bytes + plan->sums_bytes;
    d->workspace_size = plan->bytes - plan->columns_bytes - plan->sums_bytes - 16;
    return MIXPREC_OK;
}

/* im2col's matrix of an image of x: at `columns`, or x itself. */
static const char *mixprec_conv_columns_(const mixprec_conv_plan_ *plan, char *columns, const char *x, size_t size) {
    if (plan->direct)
        return x;
    mixprec_im2col_(&plan->layer, columns, x, size, plan->out_height, plan->out_width);
    return columns;
}

MIXPREC_API mixprec_status mixprec_conv2d_forward(const mixprec_conv2d *layer, void *y, mixprec_dtype y_type,
                                                  const void *x, mixprec_dtype x_type, const void *weight,
                                                  mixprec_dtype weight_type, const void *bias, mixprec_dtype bias_type,
                                                  void *workspace, size_t workspace_size) {
    mixprec_conv_plan_ plan;
    mixprec_status status = mixprec_conv_plan_of_(layer, &plan);
    const mixprec_conv2d *l = &plan.layer;
    size_t x_size = mixprec_size_of_(x_type), y_size = mixprec_size_of_(y_type), i;
    mixprec_argument_ a[5];
    mixprec_gemm_desc d;
    char *columns;
    float *sums;
    if (status != MIXPREC_OK)
        return status;
    d = mixprec_conv_gemm_(l->filters, plan.points, plan.depth, MIXPREC_NO_TRANS, weight, weight_type, MIXPREC_NO_TRANS,
                           NULL, x_type, NULL, y_type);
    a[0] = mixprec_argument_of_(y, y_type, mixprec_count_(l->batch, plan.output), MIXPREC_OUT_);
    a[1] = mixprec_argument_of_(x, x_type, mixprec_count_(l->batch, plan.image), MIXPREC_IN_);
    a[2] = mixprec_argument_of_(weight, weight_type, plan.weights, MIXPREC_IN_);
    a[3] = mixprec_argument_of_(bias, bias_type, l->filters, MIXPREC_OPTIONAL_);
    status = mixprec_conv_check_(&plan, a, 4, workspace, workspace_size, &columns, &sums, &d);
    for (i = 0; status == MIXPREC_OK && i < l->batch; i++) {
        d.b = mixprec_conv_columns_(&plan, columns, (const char *)x + i * plan.image * x_size, x_size);
        d.c = bias ? (char *)sums : (char *)y + i * plan.output * y_size;
        d.c_type = bias ? MIXPREC_F32 : y_type;
        status = mixprec_gemm_ex(&d);
        if (bias) {
            mixprec_fp_ environment = mixprec_fp_begin_();
            const mixprec_tensor_ to = mixprec_tensor_of_(y, y_type);
            mixprec_conv_bias_run_(to.kernels, to, i * plan.output, sums, mixprec_tensor_of_(bias, bias_type),
                                   l->filters, plan.points);
            mixprec_fp_end_(environment);
        }
    }
    return status;
}

MIXPREC_API mixprec_status mixprec_conv2d_backward_input(const mixprec_conv2d *layer, void *dx, mixprec_dtype dx_type,
                                                         const void *dy, mixprec_dtype dy_type, const void *weight,
                                                         mixprec_dtype weight_type, void *workspace,
                                                         size_t workspace_size) {
    mixprec_conv_plan_ plan;
    mixprec_status status = mixprec_conv_plan_of_(layer, &plan);
    const mixprec_conv2d *l = &plan.layer;
    mixprec_argument_ a[4];
    mixprec_tensor_ dx_tensor;
    mixprec_gemm_desc d;
    mixprec_fp_ environment;
    char *columns;
    float *sums;
    size_t i;
    if (status != MIXPREC_OK)
        return status;
    d = mixprec_conv_gemm_(plan.depth, plan.points, l->filters, MIXPREC_TRANS, weight, weight_type, MIXPREC_NO_TRANS,
                           NULL, dy_type, NULL, MIXPREC_F32);
    a[0] = mixprec_argument_of_(dx, dx_type, mixprec_count_(l->batch, plan.image), MIXPREC_OUT_);
    a[1] = mixprec_argument_of_(dy, dy_type, mixprec_count_(l->batch, plan.output), MIXPREC_IN_);
    a[2] = mixprec_argument_of_(weight, weight_type, plan.weights, MIXPREC_IN_);
    status = mixprec_conv_check_(&plan, a, 3, workspace, workspace_size, &columns, &sums, &d);
    d.c = columns;
    if (plan.direct) { /* the image as one line */
        plan.layer.channels = plan.layer.height = plan.out_height = 1;
        plan.layer.width = plan.out_width = plan.image;
    }
    for (i = 0; status == MIXPREC_OK && i < l->batch; i++) {
        d.b = (const char *)dy + i * plan.output * mixprec_size_of_(dy_type);
        status = mixprec_gemm_ex(&d);
        environment = mixprec_fp_begin_();
        dx_tensor = mixprec_tensor_of_(dx, dx_type);
        mixprec_col2im_run_(dx_tensor.kernels, l, dx_tensor, i, (const float *)(const void *)columns, plan.out_height,
                            plan.out_width);
        mixprec_fp_end_(environment);
    }
    return status;
}

MIXPREC_API mixprec_status mixprec_conv2d_backward_weight(const mixprec_conv2d *layer, float *dweight, float *dbias,
                                                          const void *dy, mixprec_dtype dy_type, const void *x,
                                                          mixprec_dtype x_type, void *workspace,
                                                          size_t workspace_size) {
    static const double one = 1;
    mixprec_conv_plan_ plan;
    mixprec_status status = mixprec_conv_plan_of_(layer, &plan);
    const mixprec_conv2d *l = &plan.layer;
    size_t x_size = mixprec_size_of_(x_type), i;
    mixprec_argument_ a[5];
    mixprec_gemm_desc d;
    char *columns;
    float *sums;
    if (status != MIXPREC_OK)
        return status;
    d = mixprec_conv_gemm_(l->filters, plan.depth, plan.points, MIXPREC_NO_TRANS, NULL, dy_type, MIXPREC_TRANS, NULL,
                           x_type, dweight, MIXPREC_F32);
    d.beta = &one;
    a[0] = mixprec_argument_of_(dweight, MIXPREC_F32, plan.weights, MIXPREC_OUT_);
    a[1] = mixprec_argument_of_(dbias, MIXPREC_F32, l->filters, MIXPREC_OUT_ | MIXPREC_OPTIONAL_);
    a[2] = mixprec_argument_of_(dy, dy_type, mixprec_count_(l->batch, plan.output), MIXPREC_IN_);
    a[3] = mixprec_argument_of_(x, x_type, mixprec_count_(l->batch, plan.image), MIXPREC_IN_);
    status = mixprec_conv_check_(&plan, a, 4, workspace, workspace_size, &columns, &sums, &d);
    for (i = 0; status == MIXPREC_OK && i < l->batch; i++) {
        d.a = (const char *)dy + i * plan.output * mixprec_size_of_(dy_type);
        d.b = mixprec_conv_columns_(&plan, columns, (const char *)x + i * plan.image * x_size, x_size);
        status = mixprec_gemm_ex(&d);
        if (dbias) {
            mixprec_fp_ environment = mixprec_fp_begin_();
            mixprec_conv_bias_gradient_run_(dbias, mixprec_tensor_of_(dy, dy_type), i * plan.output, l->filters,
                                            plan.points);
            mixprec_fp_end_(environment);
        }
    }
    return status;
}
#endif
#endif

#endif /* MIXPREC_IMPLEMENTED_ */
#endif /* MIXPREC_IMPLEMENTATION */

#if defined(__GNUC__) && !defined(__TINYC__)
#pragma GCC diagnostic pop
#endif

/* ================================================================================================================== */
/* [HISTORY] Changes and the licence text                                                                             */
/* ================================================================================================================== */

/* 0.1.0  Conversions for fifteen formats, GEMM, reductions, quantisation, the loss scaler, optimisers, policies,
          checkpoints and layers, in portable C, AVX2, AVX-512 and NEON.

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
