/* mixprec_cuda.cuh - the CUDA companion of mixprec.h: conversions, GEMM on Tensor Cores, training kernels

   Quick start. In ONE .cu file of the project, put the implementation, compiled by nvcc (or clang -x cuda; clang 19
   does not read the headers of CUDA 13, but those of CUDA 12):

       #define MIXPREC_CUDA_IMPLEMENTATION
       #include "mixprec_cuda.cuh"

   Other .cu files just include the header; C and C++ files define MIXPREC_CUDA_API_ONLY before it. Nothing to link but
   the CUDA runtime. For Hopper (H100, H200) compile with -arch=sm_90a: code for sm_90 lacks the warpgroup products (f16
   products of 8192 on an H200: 637 TFLOP/s with them, 372 without). Then, with device pointers, and a stream as the
   last argument:

       mixprec_cuda_convert(dst, MIXPREC_E4M3, src, MIXPREC_F32, n, stream);
       mixprec_cuda_gemm(MIXPREC_NO_TRANS, MIXPREC_NO_TRANS, m, n, k, 1.0f, a, MIXPREC_F16, k, b, MIXPREC_F16, n, 0.0f,
                         c, MIXPREC_F32, n, stream);
       mixprec_cuda_norm2(norm, grads, count, MIXPREC_BF16, workspace, bytes, stream);
       mixprec_cuda_clip_coefficient(clip, inverse, norm, 1.0, scaler, stream);            sets found_inf
       mixprec_cuda_adam_step(&adam, parameters, count, 1, 1, 0, state, &device, stream);  nothing, after Inf
       mixprec_cuda_scaler_update(scaler, NULL, stream);

   What is guaranteed
     - Conversions, unscaling, the scaler's update, the optimisers' arithmetic and stochastic rounding have the bits of
       mixprec.h. nvcc's -use_fast_math, -ftz, -prec-div, -fmad do not change them.
     - GEMM: Tensor Cores sum in fp32 in an order of their own, so the bits are not those of the CPU; they are the same
       in every run on the same device with the same arguments (no float atomics). MIXPREC_CUDA_PATH_EXACT has the CPU's
       order and the CPU's bits (but for activations other than ReLU), slowly, on any device and for any dtypes.
     - No call waits for the device, allocates, or keeps state beyond the text of the last error; all may be captured
       into a CUDA graph. The first kernel of a call begins when all that was queued before it has ended; those after it
       may begin early and wait themselves (programmatic dependent launches: sm_90 and later, CUDA 12.3). A kernel of
       yours that is launched so behind a product begins early, too: each of its blocks must wait (griddepcontrol.wait)
       before it touches what the product reads or writes, and in any case before it ends. A device that cannot run a
       kernel gets a status, never an empty launch.

   State of 0.1.0: compiled for sm_75 to sm_120, its machine code read, and every kernel run in an emulation of the CUDA
   execution model on the CPU. On an H200 all tests passed, conversions of all floats and compute-sanitizer among them
   (but racecheck reports arrivals of one lane for a warp, after a barrier, as races where cp.async brings f32; for the
   newest lines of GEMM see README), and README has its speed. It has run on no other GPU.

   Contents (search for the tag in square brackets)
     [CUDA-CONFIG]   macros to set before the include
     [CUDA-API]      the functions and their contracts; stop reading there if you only use the library
     [CUDA-SCALAR]   one number at a time, on host and device
     [CUDA-PTX]      the instructions that C++ has no name for
     [CUDA-ARRAY]    kernels over arrays and lists of tensors
     [CUDA-GEMM]     GEMM kernels and their epilogue
     [CUDA-LAUNCH]   argument checks and launchers

   Licence: that of mixprec.h. */

#ifndef MIXPREC_CUDA_CUH
#define MIXPREC_CUDA_CUH

/* ================================================================================================================== */
/* [CUDA-CONFIG] Macros to set before the include                                                                     */
/* ================================================================================================================== */

/* MIXPREC_CUDA_IMPLEMENTATION   Define in exactly one .cu file: kernels and launchers are compiled there.
   MIXPREC_CUDA_API_ONLY         Define in files that a C or C++ compiler without CUDA compiles: declarations only, no
                                 header of CUDA.
   MIXPREC_CUDA_EMULATION        Internal: the name of a header that stands for the CUDA Toolkit and for [CUDA-PTX],
                                 with which a C++ compiler builds the kernels as they are. The tests run them so. */

#if !defined(__CUDACC__) && !defined(MIXPREC_CUDA_EMULATION) && !defined(MIXPREC_CUDA_API_ONLY)
#error "mixprec_cuda.cuh needs nvcc or clang -x cuda; other compilers take the declarations: MIXPREC_CUDA_API_ONLY"
#else

#include "mixprec.h"
#if defined(MIXPREC_CUDA_API_ONLY)
#elif defined(MIXPREC_CUDA_EMULATION)
#include MIXPREC_CUDA_EMULATION
#else
#include <cuda_runtime.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ================================================================================================================== */
/* [CUDA-API] Functions and their contracts                                                                           */
/* ================================================================================================================== */

/* Unless said otherwise pointers are to memory that the device can read, the arrays and structures that describe the
   work (lists, descriptors, options) are in host memory and are read before the call returns, and work is queued on
   `stream` (NULL: the default one) and not waited for. All functions are thread-safe as long as no piece of work writes
   to memory that another reads or writes at the same time. Errors are those of the CPU function of the same name, and
     MIXPREC_ERR_DEVICE   no device, or below compute capability 7.5 (for a path: below what it needs), or the program
                          holds no code for it
     MIXPREC_ERR_CUDA     anything else that CUDA says; mixprec_cuda_last_error has its words, "misaligned address" for
                          a pointer that is not aligned to its elements: a GPU, unlike most CPUs, cannot read it
     MIXPREC_ERR_OVERLAP  also where a workspace, or a single value that is written (scaler, norm, amax, inverse,
                          state), lies in what is read or written for the same tensor, or is two at once, or where one
                          that is read lies in what is written. Not looked at: other tensors of a list, and what a
                          mixprec_cuda_step points to.
   Of values in device memory nothing is checked but by the kernels.
   On an error found by the checks nothing was queued. */

typedef struct CUstream_st *mixprec_cuda_stream; /* cudaStream_t */

/* What CUDA said to the last call of this thread that returned MIXPREC_ERR_CUDA or MIXPREC_ERR_DEVICE; never NULL. */
const char *mixprec_cuda_last_error(void);

/* MIXPREC_OK when the current device can run this library, else MIXPREC_ERR_DEVICE or MIXPREC_ERR_CUDA. */
mixprec_status mixprec_cuda_check(void);

/* ---- arrays ---- */

/* As mixprec_convert and mixprec_convert_ex, bit for bit. In place only between dtypes of one size. .isa must be 0. */
mixprec_status mixprec_cuda_convert(void *dst, mixprec_dtype dst_type, const void *src, mixprec_dtype src_type,
                                    size_t n, mixprec_cuda_stream stream);
mixprec_status mixprec_cuda_convert_ex(void *dst, mixprec_dtype dst_type, const void *src, mixprec_dtype src_type,
                                       size_t n, const mixprec_convert_options *options, mixprec_cuda_stream stream);

/* One tensor of a list: n elements read from src, n written to dst. Where a function has dst_type and src_type these
   are f32, f16, bf16, e4m3 or e5m2, the same for the whole list. dst may be src itself where the dtypes have one size,
   any other overlap is MIXPREC_ERR_OVERLAP. Lists may be of any length, with empty tensors, and are not kept; a launch
   takes 46 tensors. The whole list is checked before the first launch. Fastest where pointers are 16-byte aligned. */
typedef struct mixprec_cuda_tensor {
    void *dst;
    const void *src;
    size_t n;
} mixprec_cuda_tensor;

/* Converts every tensor of the list, to nearest even. Equal dtypes are not copied but narrowed, too: NaN become quiet,
   and the policy holds for Inf. MIXPREC_ERR_OVERFLOW for an unknown policy. */
mixprec_status mixprec_cuda_convert_list(const mixprec_cuda_tensor *list, size_t count, mixprec_dtype dst_type,
                                         mixprec_dtype src_type, mixprec_overflow overflow, mixprec_cuda_stream stream);

/* One matrix of a list, to be converted and transposed: rows x columns, row-major without gaps. */
typedef struct mixprec_cuda_transposed {
    void *dst; /* rows x columns; NULL: not wanted */
    const void *src;
    size_t rows, columns;
    void *transposed;   /* columns x rows */
    const float *scale; /* NULL: 1 */
} mixprec_cuda_transposed;

/* dst and transposed = narrow(src * *scale) of every matrix of the list, one rounding in fp32 for the product, then to
   nearest even. dst, transposed and src must not overlap: MIXPREC_ERR_OVERLAP. MIXPREC_ERR_OVERFLOW as above. */
mixprec_status mixprec_cuda_convert_transpose(const mixprec_cuda_transposed *list, size_t count, mixprec_dtype dst_type,
                                              mixprec_dtype src_type, mixprec_overflow overflow,
                                              mixprec_cuda_stream stream);

/* ---- matrices ---- */

typedef enum mixprec_cuda_path {
    MIXPREC_CUDA_PATH_AUTO = 0, /* WGMMA where it can, then MMA, then WMMA, then EXACT */
    MIXPREC_CUDA_PATH_EXACT,    /* fused multiply-adds in the CPU's order, any dtypes: the CPU's bits */
    MIXPREC_CUDA_PATH_WMMA,     /* nvcuda::wmma: the reference for MMA */
    MIXPREC_CUDA_PATH_MMA,      /* mma.sync, ldmatrix, cp.async: compute capability 8.0 and higher */
    MIXPREC_CUDA_PATH_WGMMA     /* wgmma, the copy engine: code for sm_90a; TF32 and i8 want a workspace unless A B^T */
} mixprec_cuda_path;

/* Options of mixprec_cuda_gemm_ex beyond the descriptor. All zero: the default. */
typedef struct mixprec_cuda_gemm_options {
    const float *alpha,
        *beta;              /* not NULL: device pointers, read when the work runs, in the place of the descriptor's */
    mixprec_cuda_path path; /* MIXPREC_ERR_ISA for an unknown one, or one that the dtypes, the scales, the layout or the
                               workspace do not allow */
    size_t split_k; /* into how many parts to split k; 1: not at all; 0: chosen, as far as the workspace reaches;
                       two parts may need none on sm_90a, where half of the multiprocessors would be idle. Parts are of
                       128 bytes of a row at least; i8 and what takes EXACT is not split */
} mixprec_cuda_gemm_options;

/* As mixprec_gemm, for f32, f16, bf16, e4m3, e5m2 and i8 operands and any of these but i8 as C. f64 is
   MIXPREC_ERR_DTYPE. Two operands of f16, of bf16, of 8-bit floats (mixed as you like) or of i8 run on Tensor Cores,
   on sm_75 all but bf16; fp8 is decoded to fp16, exactly. i8 is summed in int32, which is exact for k < 131072, then
   rounded once to fp32; i8 with any other dtype is MIXPREC_ERR_DTYPE. Everything else, f32 above all, takes
   MIXPREC_CUDA_PATH_EXACT, i8 of larger k, too. 16-byte aligned matrices, with leading dimensions that are multiples of
   16 bytes, are far faster; of i8 and 8-bit floats A^T B^T on mma.sync is slower than the other layouts, of i8 on
   sm_90a A B^T the fastest: with a workspace mixprec_cuda_gemm_ex makes up for all of this. */
mixprec_status mixprec_cuda_gemm(mixprec_transpose ta, mixprec_transpose tb, size_t m, size_t n, size_t k, float alpha,
                                 const void *a, mixprec_dtype a_type, size_t lda, const void *b, mixprec_dtype b_type,
                                 size_t ldb, float beta, void *c, mixprec_dtype c_type, size_t ldc,
                                 mixprec_cuda_stream stream);

/* As mixprec_gemm_ex; options may be NULL. Of the descriptor
     a, b, c, bias, scales' values and the arrays a_array, b_array, c_array with the pointers in them are device memory;
     native = 1 lets f32 run as TF32, and fp8 on the fp8 units, which sum in less than fp32: of sm_89 and sm_120 where A
       is not transposed, of sm_90a for A B^T, and for other layouts where copies in the workspace make them so and pay;
       else products are exact. On sm_90a sums of 128 products are added in fp32; on an H200 sums of positive numbers
       were wrong by up to 2^-10 so, without native by 2^-20 (k 4096; Tensor Cores cut, not round);
     activation: GELU, SiLU and tanh are right to 2^-20 of the result, GELU_TANH to 2^-15, or to 2^-119 if that is more;
       not with nvcc's -use_fast_math;
     workspace is device memory, needed only for a split_k that is asked for (MIXPREC_ERR_WORKSPACE) and for a path (see
       there). MIXPREC_ERR_WORKSPACE, too, where it would be used, but is not 16-byte aligned;
     isa must be 0 (MIXPREC_ERR_ISA), packed_size too (MIXPREC_ERR_PACKED); parallel_for and threads are ignored.
   A scale that the host knows, one for all of A or B, is a factor of alpha, which is narrowed to fp32 once: pass it so.
   Scales that vary along k take MIXPREC_CUDA_PATH_EXACT. The products of a batch must not overlap each other. */
mixprec_status mixprec_cuda_gemm_ex(const mixprec_gemm_desc *desc, const mixprec_cuda_gemm_options *options,
                                    mixprec_cuda_stream stream);

/* Bytes of workspace with which mixprec_cuda_gemm_ex splits k as far as is useful (or as options->split_k asks), and
   copies A and B, for mma.sync and warpgroup products,
     - where the address, the leading dimension or the stride of a batch is no multiple of 16 bytes;
     - on sm_90a for TF32, i8 and native fp8, whose warpgroup products want A B^T: transposed, where that pays, or where
       MIXPREC_CUDA_PATH_WGMMA asks for it;
     - on sm_90a rounded to TF32, where that pays;
   but not matrices of which it gets pointers, nor A with a row_begin other than 0. 0 when it would do nothing of this.
   With less it does what it has room for. Copies leave the result as it is on the path that they lead to, with split_k
   1; else k may be split in another way there. Of the descriptor's pointers it matters how they are aligned, and
   whether A is B. Nothing is queued. Errors as mixprec_cuda_gemm_ex, but for pointers. MIXPREC_ERR_NULL. */
mixprec_status mixprec_cuda_gemm_workspace(const mixprec_gemm_desc *desc, const mixprec_cuda_gemm_options *options,
                                           size_t *bytes);

/* ---- loss scaling: the mixprec_scaler is in device memory, copied there after mixprec_scaler_init ---- */

/* dst = src * (float)(1 / scale), in fp32, then narrowed to nearest even; found_inf of the scaler is set when an
   element of src is Inf or NaN or becomes Inf in fp32. dst NULL for all tensors, with dst_type MIXPREC_NONE: check
   only. */
mixprec_status mixprec_cuda_scaler_unscale(mixprec_scaler *scaler, const mixprec_cuda_tensor *list, size_t count,
                                           mixprec_dtype dst_type, mixprec_dtype src_type, mixprec_cuda_stream stream);

/* mixprec_scaler_update on the device; *take_step = its result, unless NULL. After the optimisers, which read
   found_inf. */
mixprec_status mixprec_cuda_scaler_update(mixprec_scaler *scaler, int32_t *take_step, mixprec_cuda_stream stream);

/* ---- norms and fp8 ---- */

/* *norm = the square root of the sum of the squares of all elements of all tensors (dst is ignored). Squares and sums
   of eight of them are in fp32: Inf from eight numbers of 6.6e18, or one of 1.9e19, on, inexact where they are below
   1e-19, 0 below 2.6e-23. The rest of the sum is in f64, in an order that depends on the sizes and on the architecture
   compiled for alone. workspace: mixprec_cuda_norm2_workspace(list, count) bytes, 8-byte aligned, else
   MIXPREC_ERR_WORKSPACE. */
size_t mixprec_cuda_norm2_workspace(const mixprec_cuda_tensor *list, size_t count);
mixprec_status mixprec_cuda_norm2(float *norm, const mixprec_cuda_tensor *list, size_t count, mixprec_dtype type,
                                  void *workspace, size_t workspace_size, mixprec_cuda_stream stream);

/* For an optimiser that reads gradients still multiplied by the scaler's scale, *norm being their norm:
   *inverse_scale = mixprec_inverse_scale(scale), 1 without a scaler; *clip = mixprec_clip_coefficient(*norm *
   *inverse_scale, max_norm); found_inf of the scaler is set when *norm is Inf or NaN, or *norm * *inverse_scale more
   than fp32 holds. clip, inverse_scale and scaler may be NULL. */
mixprec_status mixprec_cuda_clip_coefficient(float *clip, float *inverse_scale, const float *norm, double max_norm,
                                             mixprec_scaler *scaler, mixprec_cuda_stream stream);

/* dst = src * mixprec_clip_coefficient(*norm, max_norm). MIXPREC_ERR_SCALE unless max_norm is finite and positive. */
mixprec_status mixprec_cuda_clip(const mixprec_cuda_tensor *list, size_t count, mixprec_dtype type, const float *norm,
                                 float max_norm, mixprec_cuda_stream stream);

/* *amax = the largest magnitude in all tensors (dst is ignored), NaN if there is one; 0 for none. */
mixprec_status mixprec_cuda_amax(float *amax, const mixprec_cuda_tensor *list, size_t count, mixprec_dtype type,
                                 mixprec_cuda_stream stream);

/* scale[i] = mixprec_scale_of_amax(amax[i], dtype, power_of_two), dtype being e4m3 or e5m2; inverse[i] = 1 / scale[i],
   which mixprec_scales takes; inverse may be NULL. */
mixprec_status mixprec_cuda_scale_of_amax(float *scale, float *inverse, const float *amax, size_t count,
                                          mixprec_dtype dtype, int power_of_two, mixprec_cuda_stream stream);

/* One tensor of a list, to be quantised with a given scale. Zero and NULL mean the common case. */
typedef struct mixprec_cuda_quantized {
    void *dst;
    const void *src;
    size_t n;
    const float *scale;
    float *amax;         /* not NULL: raised to the largest magnitude of src (NaN wins). Set it to 0 before. */
    float *inverse;      /* not NULL: receives 1 / *scale, which mixprec_scales takes */
    mixprec_round round; /* MIXPREC_ROUND_STOCHASTIC: element i draws mixprec_random_bits(seed + *step, offset + i), */
    uint64_t seed;       /* ... which a captured graph, too, changes from run to run when *step does */
    uint64_t offset;
    const uint64_t *step; /* NULL: 0 */
} mixprec_cuda_quantized;

/* As mixprec_quantize of every tensor of the list with .scale, in one pass: dst = narrow(src * *scale) to e4m3 or e5m2,
   saturated. *scale is taken as it is. */
mixprec_status mixprec_cuda_quantize(const mixprec_cuda_quantized *list, size_t count, mixprec_dtype dst_type,
                                     mixprec_dtype src_type, mixprec_cuda_stream stream);

/* mixprec_delayed_scaling_update for `count` tensors: scaling[i] and amax[i], and the histories, are in device memory.
   amax[i] is entered and then set to 0, for the mixprec_cuda_quantize that comes next; that takes &scaling[i].scale, an
   address that may be computed on the host. Where fields make no sense, or a history has 2^31 entries, scaling[i] is
   left as it is. */
mixprec_status mixprec_cuda_delayed_scaling_update(mixprec_delayed_scaling *scaling, float *amax, size_t count,
                                                   mixprec_cuda_stream stream);

/* One matrix of a list, to be quantised with a scale for each block: rows x columns, row-major without gaps. */
typedef struct mixprec_cuda_quantized_blocks {
    void *dst;
    const void *src;
    size_t rows, columns;
    float *inverse; /* ceil(rows / block_rows) rows of ceil(columns / 128) */
} mixprec_cuda_quantized_blocks;

/* As mixprec_quantize of every matrix of the list, to nearest even, with blocks of block_rows (1 or 128) x 128
   elements: each has the scale that mixprec_scale_of_amax has for its own amax, and leaves 1 / scale in inverse: the
   values of a mixprec_scales {inverse, block_rows, 128}. dst is e4m3 or e5m2. dst, inverse and src must not overlap:
   MIXPREC_ERR_OVERLAP. MIXPREC_ERR_RANGE for other block_rows. */
mixprec_status mixprec_cuda_quantize_blocks(const mixprec_cuda_quantized_blocks *list, size_t count,
                                            mixprec_dtype dst_type, mixprec_dtype src_type, size_t block_rows,
                                            int power_of_two, mixprec_cuda_stream stream);

/* ---- optimisers ---- */

/* What an optimiser remembers on the device besides its tensors: in device memory, zeroed at the start. */
typedef struct mixprec_cuda_optimizer_state {
    uint64_t step; /* steps taken, skipped ones not counted: part of the checkpoint */
    struct {
        float inverse_scale, clip, weight_decay, keep, beta1, rest1, beta2, rest2, correction, epsilon, rate;
        int32_t decay, first, nesterov, skip;
    } now_; /* of the step under way */
} mixprec_cuda_optimizer_state;

/* Values that are on the device when the work runs, so that nobody waits and a captured graph serves every step. */
typedef struct mixprec_cuda_step {
    const float *inverse_scale, *clip; /* not NULL: in the place of the arguments of these names */
    const int32_t *found_inf;          /* likewise; a scaler's: &scaler->found_inf, before mixprec_cuda_scaler_update */
    const double *learning_rate;       /* not NULL: in the place of the optimiser's */
} mixprec_cuda_step;

/* mixprec_sgd_step and mixprec_adam_step (Adam and AdamW) for a list of tensors, bit for bit: unscaling, clipping, the
   update, and the weights as fp32 master with a narrowed copy, as low precision with any rounding, or with
   compensation, in one pass. The step is that of `state`, which each call counts up unless it is skipped: tensors with
   other hyperparameters need a state of their own. That of sgd or adam is ignored. Stochastic rounding draws
   mixprec_random_bits(seed + step, offset + i) with this step. `device` may be NULL; what it points to and the CPU
   would refuse (MIXPREC_ERR_SCALE, MIXPREC_ERR_OPTIMIZER) skips the step. grad and model may not be f64
   (MIXPREC_ERR_DTYPE); .isa must be 0. */
mixprec_status mixprec_cuda_sgd_step(const mixprec_sgd *sgd, const mixprec_parameter *list, size_t count,
                                     float inverse_scale, float clip, int found_inf,
                                     mixprec_cuda_optimizer_state *state, const mixprec_cuda_step *device,
                                     mixprec_cuda_stream stream);
mixprec_status mixprec_cuda_adam_step(const mixprec_adam *adam, const mixprec_parameter *list, size_t count,
                                      float inverse_scale, float clip, int found_inf,
                                      mixprec_cuda_optimizer_state *state, const mixprec_cuda_step *device,
                                      mixprec_cuda_stream stream);

#ifdef __cplusplus
}
#endif

#if !defined(MIXPREC_CUDA_API_ONLY)

/* ================================================================================================================== */
/* [CUDA-SCALAR] One number at a time, on host and device                                                             */
/* ================================================================================================================== */

/* The bits of [SCALAR] in mixprec.h, whose functions are the host's alone. Integer arithmetic but for one addition that
   is exact by construction or rounds as wanted. */

#define MIXPREC_CUDA_FN_ static __host__ __device__ __forceinline__

MIXPREC_CUDA_FN_ uint32_t mixprec_cuda_bits_(float x) {
#ifdef __CUDA_ARCH__
    return __float_as_uint(x);
#else
    return mixprec_f32_bits_(x);
#endif
}
MIXPREC_CUDA_FN_ float mixprec_cuda_float_(uint32_t bits) {
#ifdef __CUDA_ARCH__
    return __uint_as_float(bits);
#else
    return mixprec_f32_from_bits_(bits);
#endif
}
MIXPREC_CUDA_FN_ uint64_t mixprec_cuda_bits64_(double x) {
#ifdef __CUDA_ARCH__
    return (uint64_t)__double_as_longlong(x);
#else
    return mixprec_f64_bits_(x);
#endif
}
MIXPREC_CUDA_FN_ double mixprec_cuda_double_(uint64_t bits) {
#ifdef __CUDA_ARCH__
    return __longlong_as_double((long long)bits);
#else
    return mixprec_f64_from_bits_(bits);
#endif
}

/* The row of the format table: all its numbers fold where dtype is constant. Only for the formats of that table. */
MIXPREC_CUDA_FN_ mixprec_layout_ mixprec_cuda_layout_(mixprec_dtype dtype) {
    mixprec_layout_ layout = {0, 0, 0, 0, 0, 0, 0};
#define MIXPREC_CUDA_ROW_(name, type, bits, mantissa, bias, max_code, overflow_code, nan_code, special)                \
    if (dtype == type) {                                                                                               \
        mixprec_layout_ row = {mantissa, bias, 1u << ((bits)-1), max_code, overflow_code, nan_code, special};          \
        layout = row;                                                                                                  \
    }
    MIXPREC_FORMATS_(MIXPREC_CUDA_ROW_)
#undef MIXPREC_CUDA_ROW_
    return layout;
}

MIXPREC_CUDA_FN_ size_t mixprec_cuda_size_(mixprec_dtype dtype) {
    return dtype == MIXPREC_F64                            ? 8
           : dtype == MIXPREC_F32                          ? 4
           : dtype == MIXPREC_F16 || dtype == MIXPREC_BF16 ? 2
           : dtype >= MIXPREC_E4M3 && dtype <= MIXPREC_I8  ? 1
                                                           : 0;
}

/* mixprec_random_bits of 2 pair and 2 pair + 1: Threefry-2x32-20. */
MIXPREC_CUDA_FN_ void mixprec_cuda_random_pair_(uint32_t &even, uint32_t &odd, uint64_t seed, uint64_t pair) {
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32), key2 = 0x1BD11BDAu ^ key0 ^ key1;
    uint32_t x0 = (uint32_t)pair + key0, x1 = (uint32_t)(pair >> 32) + key1;
#define MIXPREC_CUDA_MIX_(r) (x0 += x1, x1 = (x1 << (r) | x1 >> (32 - (r))) ^ x0)
#define MIXPREC_CUDA_FOUR_(a, b, c, d, k0, k1, step)                                                                   \
    (MIXPREC_CUDA_MIX_(a), MIXPREC_CUDA_MIX_(b), MIXPREC_CUDA_MIX_(c), MIXPREC_CUDA_MIX_(d), x0 += (k0),               \
     x1 += (k1) + (step))
    MIXPREC_CUDA_FOUR_(13, 15, 26, 6, key1, key2, 1u);
    MIXPREC_CUDA_FOUR_(17, 29, 16, 24, key2, key0, 2u);
    MIXPREC_CUDA_FOUR_(13, 15, 26, 6, key0, key1, 3u);
    MIXPREC_CUDA_FOUR_(17, 29, 16, 24, key1, key2, 4u);
    MIXPREC_CUDA_FOUR_(13, 15, 26, 6, key2, key0, 5u);
#undef MIXPREC_CUDA_FOUR_
#undef MIXPREC_CUDA_MIX_
    even = x0, odd = x1;
}
MIXPREC_CUDA_FN_ uint32_t mixprec_cuda_random_bits(uint64_t seed, uint64_t index) {
    uint32_t even, odd;
    mixprec_cuda_random_pair_(even, odd, seed, index >> 1);
    return (index & 1) ? odd : even;
}

/* Exact: binary32 to binary64, without a cast, which -ftz would spoil. */
MIXPREC_CUDA_FN_ uint64_t mixprec_cuda_widen64_(uint32_t bits) {
    uint64_t sign = (uint64_t)(bits >> 31) << 63, mantissa = (uint64_t)(bits & 0x7FFFFFu) << 29;
    uint32_t exponent = bits >> 23 & 0xFF;
    if (exponent == 0xFF)
        return sign | (uint64_t)0x7FF << 52 | mantissa | (mantissa ? (uint64_t)1 << 51 : 0);
    if (exponent == 0) { /* (value * 2^149) is an integer: its binary64, 149 lower */
        if (!mantissa)
            return sign;
        return sign | (mixprec_cuda_bits64_((double)(int32_t)(bits & 0x7FFFFFu)) - ((uint64_t)149 << 52));
    }
    return sign | (uint64_t)(exponent + 896) << 52 | mantissa;
}

/* +0 or -0, whether subnormal numbers are flushed or not. */
MIXPREC_CUDA_FN_ bool mixprec_cuda_is_zero_(float x) {
    return mixprec_cuda_bits_(x) << 1 == 0;
}
MIXPREC_CUDA_FN_ double mixprec_cuda_f64_(float x) {
    return mixprec_cuda_double_(mixprec_cuda_widen64_(mixprec_cuda_bits_(x)));
}

/* Any code of 16 bits or fewer to the bits of a binary32. Subnormals: an integer, exact in fp32, times a power of two
   that is taken off the exponent; bfloat16's are those of binary32. */
MIXPREC_CUDA_FN_ uint32_t mixprec_cuda_widen_(uint32_t code, const mixprec_layout_ &from) {
    uint32_t sign = (code & from.sign_code) ? 0x80000000u : 0, magnitude = code & (from.sign_code - 1u);
    uint32_t wide = magnitude << (23 - from.mantissa_bits);
    if (magnitude > from.max_code)
        return sign | 0x7F800000u | ((wide & 0x7FFFFFu) ? (wide & 0x7FFFFFu) | 0x400000u : 0);
    if (from.special == MIXPREC_FNUZ_ && sign && !magnitude)
        return 0x7FC00000u;
    if (from.bias == 127 || !magnitude)
        return sign | wide;
    if (magnitude >> from.mantissa_bits)
        return sign | (wide + ((uint32_t)(127 - from.bias) << 23));
    return sign |
           (mixprec_cuda_bits_((float)(int32_t)magnitude) - ((uint32_t)(from.bias - 1 + from.mantissa_bits) << 23));
}

/* How far the discarded fraction must be to carry: see mixprec_round_threshold_. */
MIXPREC_CUDA_FN_ uint32_t mixprec_cuda_carry_(uint32_t kept, uint32_t fraction, mixprec_round round, uint32_t sign,
                                              uint32_t random) {
    uint32_t threshold = round == MIXPREC_ROUND_NEAREST_EVEN   ? 0x7FFFFFFFu + (kept & 1u)
                         : round == MIXPREC_ROUND_STOCHASTIC   ? random
                         : round == MIXPREC_ROUND_NEAREST_AWAY ? 0x80000000u
                         : round == MIXPREC_ROUND_UP           ? (sign ? 0u : 0xFFFFFFFFu)
                         : round == MIXPREC_ROUND_DOWN         ? (sign ? 0xFFFFFFFFu : 0u)
                                                               : 0u;
    return kept + (uint32_t)((uint32_t)(fraction + threshold) < threshold);
}

/* A 53-bit mantissa shifted right by 0 or more, and rounded. */
MIXPREC_CUDA_FN_ uint32_t mixprec_cuda_shift_(uint64_t mantissa, int shift, mixprec_round round, uint32_t sign,
                                              uint32_t random) {
    uint32_t kept = shift < 64 ? (uint32_t)(mantissa >> shift) : 0, fraction = 0;
    if (shift > 0 && shift < 32)
        fraction = (uint32_t)(mantissa << (32 - shift));
    else if (shift >= 32 && shift < 96)
        fraction = (uint32_t)(mantissa >> (shift - 32));
    if (round != MIXPREC_ROUND_STOCHASTIC && shift > 32 &&
        (shift >= 96 ? mantissa : mantissa & (((uint64_t)1 << (shift - 32)) - 1)))
        fraction |= 1;
    return mixprec_cuda_carry_(kept, fraction, round, sign, random);
}

MIXPREC_CUDA_FN_ int mixprec_cuda_overflow_to_max_(mixprec_round round, mixprec_overflow overflow, uint32_t sign) {
    return overflow != MIXPREC_OVERFLOW_IEEE || round == MIXPREC_ROUND_TOWARD_ZERO ||
           (round == MIXPREC_ROUND_UP && sign) || (round == MIXPREC_ROUND_DOWN && !sign);
}

/* The bits of a binary64 to any format of the table, any mode. */
MIXPREC_CUDA_FN_ uint32_t mixprec_cuda_narrow64_(uint64_t bits, const mixprec_layout_ &to, mixprec_round round,
                                                 mixprec_overflow overflow, uint32_t random) {
    uint32_t sign = (uint32_t)(bits >> 63), code;
    uint64_t mantissa = bits & 0xFFFFFFFFFFFFFu;
    int exponent = (int)(bits >> 52 & 0x7FF), target = exponent - 1023 + to.bias, shift = 52 - to.mantissa_bits;
    if (exponent == 0x7FF && mantissa) {
        if (to.special == MIXPREC_IEEE_)
            return (sign ? to.sign_code : 0) | to.nan_code | (uint32_t)(mantissa >> shift);
        return to.special == MIXPREC_NO_INF_ && sign ? to.nan_code | to.sign_code : to.nan_code;
    }
    if (exponent == 0x7FF)
        code = overflow == MIXPREC_OVERFLOW_SATURATE ? to.max_code : to.overflow_code;
    else {
        if (exponent)
            mantissa |= (uint64_t)1 << 52;
        else
            target++;
        if (target < 1) {
            shift += 1 - target;
            target = 1;
        }
        code = to.max_code + 1;
        if (target <= (int)(to.max_code >> to.mantissa_bits) + 1)
            code = ((uint32_t)(target - 1) << to.mantissa_bits) +
                   mixprec_cuda_shift_(mantissa, shift, round, sign, random);
        if (code > to.max_code)
            code = mixprec_cuda_overflow_to_max_(round, overflow, sign) ? to.max_code : to.overflow_code;
    }
    return sign && !(to.special == MIXPREC_FNUZ_ && !code) ? code | to.sign_code : code;
}

MIXPREC_CUDA_FN_ uint32_t mixprec_cuda_narrow_e8m0_(uint64_t bits, mixprec_round round, mixprec_overflow overflow,
                                                    uint32_t random) {
    int exponent = (int)(bits >> 52), code = exponent - 1023 + 127;
    if (bits == 0 || bits > (uint64_t)0x7FF << 52)
        return 0xFF;
    if (exponent == 0x7FF)
        return overflow == MIXPREC_OVERFLOW_SATURATE ? 0xFE : 0xFF;
    if (code < 0)
        return 0;
    code += (int)mixprec_cuda_shift_((bits & 0xFFFFFFFFFFFFFu) | (uint64_t)1 << 52, 52, round, 0, random) - 1;
    return code <= 0xFE ? (uint32_t)code : mixprec_cuda_overflow_to_max_(round, overflow, 0) ? 0xFE : 0xFF;
}

MIXPREC_CUDA_FN_ int mixprec_cuda_narrow_i8_(uint64_t bits, mixprec_round round, uint32_t random) {
    uint32_t sign = (uint32_t)(bits >> 63), limit = 127 + sign, magnitude = limit;
    int exponent = (int)(bits >> 52 & 0x7FF);
    uint64_t mantissa = bits & 0xFFFFFFFFFFFFFu;
    if (exponent == 0x7FF && mantissa)
        return 0;
    if (exponent < 1023 + 8)
        magnitude = mixprec_cuda_shift_(exponent ? mantissa | (uint64_t)1 << 52 : mantissa,
                                        52 + 1023 - (exponent ? exponent : 1), round, sign, random);
    magnitude = magnitude > limit ? limit : magnitude;
    return sign ? -(int)magnitude : (int)magnitude;
}

/* Rounded to nearest even whatever the rounding mode of the host and nvcc's -ftz. */
MIXPREC_CUDA_FN_ float mixprec_cuda_to_f32_(double x) {
    return mixprec_cuda_float_(mixprec_cuda_narrow64_(mixprec_cuda_bits64_(x), mixprec_cuda_layout_(MIXPREC_F32),
                                                      MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0));
}

/* mixprec_encode and mixprec_decode. */
MIXPREC_CUDA_FN_ uint32_t mixprec_cuda_encode(double x, mixprec_dtype dtype, mixprec_round round,
                                              mixprec_overflow overflow, uint32_t random) {
    uint64_t bits = mixprec_cuda_bits64_(x);
    if (dtype == MIXPREC_E8M0)
        return mixprec_cuda_narrow_e8m0_(bits, round, overflow, random);
    if (dtype == MIXPREC_I8)
        return (uint32_t)mixprec_cuda_narrow_i8_(bits, round, random);
    if (dtype == MIXPREC_F64 || !mixprec_cuda_size_(dtype))
        return 0;
    return mixprec_cuda_narrow64_(bits, mixprec_cuda_layout_(dtype), round, overflow, random);
}
MIXPREC_CUDA_FN_ double mixprec_cuda_decode(uint32_t code, mixprec_dtype dtype) {
    uint32_t bits = 0x7FC00000u;
    if (dtype == MIXPREC_F32)
        bits = code;
    else if (dtype == MIXPREC_E8M0)
        bits = (code & 0xFF) == 0xFF ? 0x7FC00000u : (code & 0xFF) ? (code & 0xFF) << 23 : 0x00400000u;
    else if (dtype == MIXPREC_I8)
        bits = mixprec_cuda_bits_((float)(int8_t)(uint8_t)code);
    else if (dtype != MIXPREC_F64 && mixprec_cuda_size_(dtype))
        bits = mixprec_cuda_widen_(code, mixprec_cuda_layout_(dtype));
    return mixprec_cuda_double_(mixprec_cuda_widen64_(bits));
}

/* binary32 to f16, bf16, e4m3 or e5m2, to nearest even: no branch on the data. Below the smallest normal number the sum
   |x| + 2^e, whose last bit is the format's, rounds as wanted, also where |x| is subnormal and flushed. */
MIXPREC_CUDA_FN_ uint32_t mixprec_cuda_narrow_(uint32_t bits, const mixprec_layout_ &to, mixprec_overflow overflow) {
#if !defined(__CUDA_ARCH__) && !defined(MIXPREC_CUDA_EMULATION) /* the host's sums round as the program says */
    return mixprec_cuda_narrow64_(mixprec_cuda_widen64_(bits), to, MIXPREC_ROUND_NEAREST_EVEN, overflow, 0);
#else
    const int shift = 23 - to.mantissa_bits;
    const uint32_t offset = (uint32_t)(127 - to.bias) << 23;
    uint32_t magnitude = bits & 0x7FFFFFFFu, sign = (bits >> 31) ? to.sign_code : 0;
    uint32_t code = (magnitude - offset + (1u << (shift - 1)) - 1 + (magnitude >> shift & 1)) >> shift;
    if (to.bias != 127 && magnitude < offset + (1u << 23)) {
        const uint32_t step = offset + ((uint32_t)shift << 23) + (1u << 23);
        code = mixprec_cuda_bits_(mixprec_cuda_float_(magnitude) + mixprec_cuda_float_(step)) - step;
    }
    if (magnitude > 0x7F800000u)
        code = to.nan_code | (to.special == MIXPREC_IEEE_ ? (magnitude & 0x7FFFFFu) >> shift : 0);
    else if (magnitude == 0x7F800000u)
        code = overflow == MIXPREC_OVERFLOW_SATURATE ? to.max_code : to.overflow_code;
    else if (code > to.max_code)
        code = overflow != MIXPREC_OVERFLOW_IEEE ? to.max_code : to.overflow_code;
    return code | sign;
#endif
}

/* For each T of f16, bf16, e4m3, e5m2 and the others: mixprec_cuda_T_to_f32, mixprec_cuda_f32_to_T, _to_T_sat, as
   mixprec_T_to_f32, mixprec_f32_to_T and mixprec_f32_to_T_sat. */
#define MIXPREC_CUDA_SCALAR_(name, dtype)                                                                              \
    MIXPREC_CUDA_FN_ float mixprec_cuda_##name##_to_f32(mixprec_##name x) {                                            \
        return mixprec_cuda_float_(mixprec_cuda_widen_(x.bits, mixprec_cuda_layout_(dtype)));                          \
    }                                                                                                                  \
    MIXPREC_CUDA_SCALAR_NARROW_(name, dtype, , MIXPREC_OVERFLOW_IEEE)                                                  \
    MIXPREC_CUDA_SCALAR_NARROW_(name, dtype, _sat, MIXPREC_OVERFLOW_SATURATE)
#define MIXPREC_CUDA_SCALAR_NARROW_(name, dtype, suffix, policy)                                                       \
    MIXPREC_CUDA_FN_ mixprec_##name mixprec_cuda_f32_to_##name##suffix(float x) {                                      \
        mixprec_##name y;                                                                                              \
        uint32_t bits = mixprec_cuda_bits_(x);                                                                         \
        if (dtype <= MIXPREC_E5M2)                                                                                     \
            bits = mixprec_cuda_narrow_(bits, mixprec_cuda_layout_(dtype), policy);                                    \
        else                                                                                                           \
            bits = mixprec_cuda_narrow64_(mixprec_cuda_widen64_(bits), mixprec_cuda_layout_(dtype),                    \
                                          MIXPREC_ROUND_NEAREST_EVEN, policy, 0);                                      \
        y.bits = (decltype(y.bits))bits;                                                                               \
        return y;                                                                                                      \
    }
MIXPREC_CUDA_SCALAR_(f16, MIXPREC_F16)
MIXPREC_CUDA_SCALAR_(bf16, MIXPREC_BF16)
MIXPREC_CUDA_SCALAR_(e4m3, MIXPREC_E4M3)
MIXPREC_CUDA_SCALAR_(e5m2, MIXPREC_E5M2)
MIXPREC_CUDA_SCALAR_(e4m3fnuz, MIXPREC_E4M3FNUZ)
MIXPREC_CUDA_SCALAR_(e5m2fnuz, MIXPREC_E5M2FNUZ)
MIXPREC_CUDA_SCALAR_(e4m3ieee, MIXPREC_E4M3IEEE)
MIXPREC_CUDA_SCALAR_(e3m4, MIXPREC_E3M4)
MIXPREC_CUDA_SCALAR_(e2m3, MIXPREC_E2M3)
MIXPREC_CUDA_SCALAR_(e3m2, MIXPREC_E3M2)
MIXPREC_CUDA_SCALAR_(e2m1, MIXPREC_E2M1)
#undef MIXPREC_CUDA_SCALAR_NARROW_
#undef MIXPREC_CUDA_SCALAR_
#undef MIXPREC_CUDA_FN_

#endif /* MIXPREC_CUDA_API_ONLY */
#endif /* a CUDA compiler */
#endif /* MIXPREC_CUDA_CUH: stop reading here if you only use the library */

#if defined(MIXPREC_CUDA_IMPLEMENTATION) && !defined(MIXPREC_CUDA_IMPLEMENTED_)
#define MIXPREC_CUDA_IMPLEMENTED_

#if defined(MIXPREC_CUDA_API_ONLY)
#error "mixprec_cuda.cuh: MIXPREC_CUDA_IMPLEMENTATION and MIXPREC_CUDA_API_ONLY exclude each other"
#endif
#ifndef MIXPREC_CUDA_EMULATION
#include <cuda.h> /* types alone: the one function of the driver that is called is asked for by its name */
#include <mma.h>
#endif

/* ================================================================================================================== */
/* [CUDA-PTX] The instructions that C++ has no name for                                                               */
/* ================================================================================================================== */

#define MIXPREC_CUDA_DEV_ static __device__ __forceinline__

/* Kernels read their large parameters where they are, and the copy engine its maps. clang before 20 does not know the
   attribute. */
#if defined(__clang__) && defined(__CUDA__) && __clang_major__ < 20
#define MIXPREC_CUDA_PARAMETER_
#define MIXPREC_CUDA_HAS_MAPS_ 0
#else
#define MIXPREC_CUDA_PARAMETER_ __grid_constant__
#define MIXPREC_CUDA_HAS_MAPS_ (CUDART_VERSION >= 12010) /* with which st.async came, too */
#endif
/* The architecture being compiled for. */
#if defined(__CUDA_ARCH__)
#define MIXPREC_CUDA_ARCH_ __CUDA_ARCH__
#elif defined(MIXPREC_CUDA_EMULATION)
#define MIXPREC_CUDA_ARCH_ MIXPREC_CUDA_EMULATED_ARCH
#else
#define MIXPREC_CUDA_ARCH_ 0
#endif
/* FP8 Tensor Core instructions: elsewhere ptxas emulates them (sm_90, sm_100) or refuses. */
#define MIXPREC_CUDA_HAS_FP8_(arch) ((arch) == 890 || (arch) == 1200 || (arch) == 1210)
/* 160 KB of shared memory for a block, with which the 128 x 256 tile fits. */
#define MIXPREC_CUDA_HAS_LARGE_TILE_(arch)                                                                             \
    ((arch) >= 800 && (arch) != 860 && (arch) != 890 && (arch) != 1200 && (arch) != 1210)

/* Warpgroup matrix products: code for sm_90a has them, and no other. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(MIXPREC_CUDA_EMULATION)
#define MIXPREC_CUDA_HAS_WGMMA_ 1
#else
#define MIXPREC_CUDA_HAS_WGMMA_ 0
#endif

#ifndef MIXPREC_CUDA_EMULATION

/* Rounded on their own whatever nvcc's -fmad, -ftz, -prec-div, -prec-sqrt say: inline PTX is left alone. */
MIXPREC_CUDA_DEV_ float mixprec_cuda_mul_(float a, float b) {
    float y;
    asm("mul.rn.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}
MIXPREC_CUDA_DEV_ float mixprec_cuda_add_(float a, float b) {
    float y;
    asm("add.rn.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}
MIXPREC_CUDA_DEV_ float mixprec_cuda_sub_(float a, float b) {
    float y;
    asm("sub.rn.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}
MIXPREC_CUDA_DEV_ float mixprec_cuda_fma_(float a, float b, float c) {
    float y;
    asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(y) : "f"(a), "f"(b), "f"(c));
    return y;
}
MIXPREC_CUDA_DEV_ float mixprec_cuda_div_(float a, float b) {
    float y;
    asm("div.rn.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}
MIXPREC_CUDA_DEV_ float mixprec_cuda_sqrt_(float a) {
    float y;
    asm("sqrt.rn.f32 %0, %1;" : "=f"(y) : "f"(a));
    return y;
}

/* fp16 to fp32; what becomes of a NaN's payload is not said. */
MIXPREC_CUDA_DEV_ float mixprec_cuda_cvt_f16_(uint32_t bits) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"((unsigned short)bits));
    return y;
}

/* Is one of them larger in magnitude than the limit, or NaN? */
template <int count> MIXPREC_CUDA_DEV_ bool mixprec_cuda_any_above_(const float (&v)[count], float limit) {
    int any = 0;
#pragma unroll
    for (int e = 0; e < count; e++)
        asm("{\n\t.reg .pred p, q;\n\t.reg .f32 x;\n\tabs.f32 x, %1;\n\tsetp.ne.s32 q, %0, 0;\n\t"
            "setp.gtu.or.f32 p, x, %2, q;\n\tselp.s32 %0, 1, 0, p;\n\t}"
            : "+r"(any)
            : "f"(v[e]), "f"(limit));
    return any;
}

/* Two floats to two codes, the first in the lower half, to nearest even: f16 and bf16 with IEEE overflow, fp8
   saturated. Of a NaN the instruction makes its own. */
MIXPREC_CUDA_DEV_ bool mixprec_cuda_has_cvt_(mixprec_dtype type) {
    return MIXPREC_CUDA_ARCH_ >= (type == MIXPREC_F16 || type == MIXPREC_BF16 ? 800 : 890);
}
MIXPREC_CUDA_DEV_ uint32_t mixprec_cuda_cvt_pair_(float low, float high, mixprec_dtype type) {
    uint32_t y = 0;
    unsigned short narrow = 0;
#if MIXPREC_CUDA_ARCH_ >= 800
    if (type == MIXPREC_F16)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    if (type == MIXPREC_BF16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
#endif
#if MIXPREC_CUDA_ARCH_ >= 890
    if (type == MIXPREC_E4M3)
        asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(narrow) : "f"(high), "f"(low));
    if (type == MIXPREC_E5M2)
        asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(narrow) : "f"(high), "f"(low));
#endif
    return type == MIXPREC_E4M3 || type == MIXPREC_E5M2 ? narrow : y;
}

/* PTX ISA 9.0, griddepcontrol. The kernel launched after this one may begin, where the launcher allows it (see
   mixprec_cuda_launch_ex_): once all blocks of this one have said so, or have ended. */
MIXPREC_CUDA_DEV_ void mixprec_cuda_let_next_begin_(void) {
#if MIXPREC_CUDA_ARCH_ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
/* Until the kernel before this one, if this one began early, has ended, and what it wrote can be read. */
MIXPREC_CUDA_DEV_ void mixprec_cuda_wait_for_last_(void) {
#if MIXPREC_CUDA_ARCH_ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Vectors from global memory that nothing writes while this kernel runs, or nothing once it has waited for the last
   one. */
template <class T> MIXPREC_CUDA_DEV_ T mixprec_cuda_read_(const void *p) {
    return __ldg((const T *)p);
}

/* Tells the compiler that a pointer that was itself read from memory leads to global memory: else its accesses are
   generic, which are slower. */
template <class T> MIXPREC_CUDA_DEV_ T *mixprec_cuda_global_(T *p) {
    __builtin_assume(__isGlobal(p));
    return p;
}

/* All of a block's shared memory is one array, so that nothing of it escapes the emulation's poison. */
MIXPREC_CUDA_DEV_ unsigned char *mixprec_cuda_shared_(void) {
    extern __shared__ __align__(1024) unsigned char mixprec_cuda_shared_memory_[];
    return mixprec_cuda_shared_memory_;
}
MIXPREC_CUDA_DEV_ uint32_t mixprec_cuda_shared_address_(const void *p) {
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* Four 8 x 8 matrices of 16-bit elements: lane 8 i + j gives the address of row j of matrix i; lane 4 r + c gets
   elements 2 c, 2 c + 1 of row r (transposed: of column r). */
template <bool transposed> MIXPREC_CUDA_DEV_ void mixprec_cuda_ldmatrix_(uint32_t (&x)[4], uint32_t address) {
#if MIXPREC_CUDA_ARCH_ >= 750
    if (transposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(address)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                     : "r"(address)
                     : "memory");
#endif
}

/* Four words of shared memory, at a multiple of 16 bytes. */
MIXPREC_CUDA_DEV_ uint4 mixprec_cuda_load_four_(uint32_t address) {
    uint4 x;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(address)
                 : "memory");
    return x;
}
/* Two words of shared memory, at a multiple of 8 bytes. */
MIXPREC_CUDA_DEV_ void mixprec_cuda_load_pair_(uint32_t &low, uint32_t &high, uint32_t address) {
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(low), "=r"(high) : "r"(address) : "memory");
}

/* 16 or 4 bytes to shared memory, zeros instead where not `wanted`; done after commit and wait. */
template <int bytes> MIXPREC_CUDA_DEV_ void mixprec_cuda_copy_async_(uint32_t address, const void *src, bool wanted) {
#if MIXPREC_CUDA_ARCH_ >= 800
    if (bytes == 16)
        asm volatile("{\n\t.reg .pred ignored;\n\tsetp.eq.s32 ignored, %2, 0;\n\t"
                     "cp.async.cg.shared.global [%0], [%1], 16, ignored;\n\t}" ::"r"(address),
                     "l"(__cvta_generic_to_global(src)), "r"((int)wanted)
                     : "memory");
    else
        asm volatile("{\n\t.reg .pred ignored;\n\tsetp.eq.s32 ignored, %2, 0;\n\t"
                     "cp.async.ca.shared.global [%0], [%1], 4, ignored;\n\t}" ::"r"(address),
                     "l"(__cvta_generic_to_global(src)), "r"((int)wanted)
                     : "memory");
#endif
}
MIXPREC_CUDA_DEV_ void mixprec_cuda_copy_commit_(void) {
#if MIXPREC_CUDA_ARCH_ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/* Until at most `pending` of this thread's groups are under way. */
template <int pending> MIXPREC_CUDA_DEV_ void mixprec_cuda_copy_wait_(void) {
#if MIXPREC_CUDA_ARCH_ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
#endif
}

/* D += A B for one warp. A: 16 rows x 32 bytes of k, B: 8 columns x 32 bytes of k. */
#define MIXPREC_CUDA_MMA_(name, shape, constraint, type, minimum)                                                      \
    MIXPREC_CUDA_DEV_ void mixprec_cuda_mma_##name##_(type(&d)[4], const uint32_t *a, const uint32_t *b) {             \
        if (minimum)                                                                                                   \
            asm("mma.sync.aligned." shape " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"           \
                : "+" constraint(d[0]), "+" constraint(d[1]), "+" constraint(d[2]), "+" constraint(d[3])               \
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                                   \
    }
MIXPREC_CUDA_MMA_(f16, "m16n8k16.row.col.f32.f16.f16.f32", "f", float, MIXPREC_CUDA_ARCH_ >= 800)
MIXPREC_CUDA_MMA_(bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", "f", float, MIXPREC_CUDA_ARCH_ >= 800)
MIXPREC_CUDA_MMA_(tf32, "m16n8k8.row.col.f32.tf32.tf32.f32", "f", float, MIXPREC_CUDA_ARCH_ >= 800)
MIXPREC_CUDA_MMA_(s8, "m16n8k32.row.col.s32.s8.s8.s32", "r", int, MIXPREC_CUDA_ARCH_ >= 800)
MIXPREC_CUDA_MMA_(e4m3_e4m3, "m16n8k32.row.col.f32.e4m3.e4m3.f32", "f", float,
                  MIXPREC_CUDA_HAS_FP8_(MIXPREC_CUDA_ARCH_))
MIXPREC_CUDA_MMA_(e4m3_e5m2, "m16n8k32.row.col.f32.e4m3.e5m2.f32", "f", float,
                  MIXPREC_CUDA_HAS_FP8_(MIXPREC_CUDA_ARCH_))
MIXPREC_CUDA_MMA_(e5m2_e4m3, "m16n8k32.row.col.f32.e5m2.e4m3.f32", "f", float,
                  MIXPREC_CUDA_HAS_FP8_(MIXPREC_CUDA_ARCH_))
MIXPREC_CUDA_MMA_(e5m2_e5m2, "m16n8k32.row.col.f32.e5m2.e5m2.f32", "f", float,
                  MIXPREC_CUDA_HAS_FP8_(MIXPREC_CUDA_ARCH_))
#undef MIXPREC_CUDA_MMA_

/* Warpgroup matrix products, which read their operands from shared memory while the threads go on. */
#if MIXPREC_CUDA_HAS_WGMMA_
#define MIXPREC_CUDA_ASM_90A_(...) asm volatile(__VA_ARGS__)
#else
#define MIXPREC_CUDA_ASM_90A_(...) (void)0
#endif
/* What this thread has written to shared memory, before a barrier: its products see it. */
MIXPREC_CUDA_DEV_ void mixprec_cuda_wgmma_publish_(void) {
    MIXPREC_CUDA_ASM_90A_("fence.proxy.async.shared::cta;" ::: "memory");
}
/* 16 bytes to shared memory, to be published. */
MIXPREC_CUDA_DEV_ void mixprec_cuda_wgmma_put_(uint32_t address, const uint4 &x) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
                 : "memory");
}
MIXPREC_CUDA_DEV_ void mixprec_cuda_wgmma_begin_(void) {
    MIXPREC_CUDA_ASM_90A_("wgmma.fence.sync.aligned;" ::: "memory");
}
MIXPREC_CUDA_DEV_ void mixprec_cuda_wgmma_commit_(void) {
    MIXPREC_CUDA_ASM_90A_("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/* Until at most `pending` of the warpgroup's groups are under way. */
template <int pending> MIXPREC_CUDA_DEV_ void mixprec_cuda_wgmma_wait_(void) {
    MIXPREC_CUDA_ASM_90A_("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

/* The same, and `d` holds the sums of those that are done: the compiler knows nothing of products under way, and would
   read them before. */
MIXPREC_CUDA_DEV_ void mixprec_cuda_wgmma_hold_(float &x) {
    asm volatile("" : "+f"(x)::"memory");
}
MIXPREC_CUDA_DEV_ void mixprec_cuda_wgmma_hold_(int &x) {
    asm volatile("" : "+r"(x)::"memory");
}
template <int pending, class Sum, int count> MIXPREC_CUDA_DEV_ void mixprec_cuda_wgmma_finish_(Sum (&d)[count]) {
    mixprec_cuda_wgmma_wait_<pending>();
#pragma unroll
    for (int i = 0; i < count; i++)
        mixprec_cuda_wgmma_hold_(d[i]);
}

/* D = A B, or D += A B where `add`, for a warpgroup: A of 64 rows, B of twice as many columns as a thread has sums, and
   32 bytes of k. Thread 32 w + 4 r + c has the sums of rows 16 w + r and 16 w + r + 8 and, of each 8 columns, 2 c and
   2 c + 1, in the order column, row, 8 columns. `trans`: a line holds one k of all rows. */
#define MIXPREC_CUDA_REGISTERS_32_                                                                                     \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                           \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define MIXPREC_CUDA_REGISTERS_64_                                                                                     \
    MIXPREC_CUDA_REGISTERS_32_ ", "                                                                                    \
                               "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "      \
                               "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define MIXPREC_CUDA_REGISTERS_128_                                                                                    \
    MIXPREC_CUDA_REGISTERS_64_                                                                                         \
    ", "                                                                                                               \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "                                 \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "                                 \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "                     \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define MIXPREC_CUDA_SUMS_8_(constraint, i)                                                                            \
    constraint(d[i]), constraint(d[i + 1]), constraint(d[i + 2]), constraint(d[i + 3]), constraint(d[i + 4]),          \
        constraint(d[i + 5]), constraint(d[i + 6]), constraint(d[i + 7])
#define MIXPREC_CUDA_SUMS_32_(constraint, i)                                                                           \
    MIXPREC_CUDA_SUMS_8_(constraint, i), MIXPREC_CUDA_SUMS_8_(constraint, i + 8),                                      \
        MIXPREC_CUDA_SUMS_8_(constraint, i + 16), MIXPREC_CUDA_SUMS_8_(constraint, i + 24)
#define MIXPREC_CUDA_SUMS_64_(constraint, i)                                                                           \
    MIXPREC_CUDA_SUMS_32_(constraint, i), MIXPREC_CUDA_SUMS_32_(constraint, i + 32)
#define MIXPREC_CUDA_SUMS_128_(constraint, i)                                                                          \
    MIXPREC_CUDA_SUMS_64_(constraint, i), MIXPREC_CUDA_SUMS_64_(constraint, i + 64)
/* a to tb: the numbers of these operands, which follow the sums. */
#define MIXPREC_CUDA_WGMMA_OF_(name, types, type, constraint, coefficients, trans, count, columns, a, b, add, ta, tb)  \
    template <bool a_trans, bool b_trans>                                                                              \
    MIXPREC_CUDA_DEV_ void mixprec_cuda_wgmma_##name##_(type(&d)[count], uint64_t a_matrix, uint64_t b_matrix,         \
                                                        bool added) {                                                  \
        MIXPREC_CUDA_ASM_90A_("{\n\t.reg .pred added;\n\tsetp.ne.s32 added, %" #add ", 0;\n\t"                         \
                              "wgmma.mma_async.sync.aligned.m64n" #columns types                                       \
                              " {" MIXPREC_CUDA_REGISTERS_##count##_ "}, %" #a ", %" #b                                \
                                                                     ", added" coefficients trans(ta, tb) ";\n\t}"     \
                              : MIXPREC_CUDA_SUMS_##count##_(constraint, 0)                                            \
                              : "l"(a_matrix), "l"(b_matrix), "r"((int)added), "n"(a_trans), "n"(b_trans));            \
    }
#define MIXPREC_CUDA_WGMMA_(name, types, type, constraint, coefficients, trans)                                        \
    MIXPREC_CUDA_WGMMA_OF_(name, types, type, constraint, coefficients, trans, 64, 128, 64, 65, 66, 67, 68)            \
    MIXPREC_CUDA_WGMMA_OF_(name, types, type, constraint, coefficients, trans, 128, 256, 128, 129, 130, 131, 132)
#define MIXPREC_CUDA_TRANS_(a, b) ", %" #a ", %" #b
#define MIXPREC_CUDA_NO_TRANS_(a, b)
MIXPREC_CUDA_WGMMA_(f16, "k16.f32.f16.f16", float, "+f", ", 1, 1", MIXPREC_CUDA_TRANS_)
MIXPREC_CUDA_WGMMA_(bf16, "k16.f32.bf16.bf16", float, "+f", ", 1, 1", MIXPREC_CUDA_TRANS_)
MIXPREC_CUDA_WGMMA_(tf32, "k8.f32.tf32.tf32", float, "+f", ", 1, 1", MIXPREC_CUDA_NO_TRANS_)
MIXPREC_CUDA_WGMMA_(s8, "k32.s32.s8.s8", int, "+r", "", MIXPREC_CUDA_NO_TRANS_)
MIXPREC_CUDA_WGMMA_(e4m3_e4m3, "k32.f32.e4m3.e4m3", float, "+f", ", 1, 1", MIXPREC_CUDA_NO_TRANS_)
MIXPREC_CUDA_WGMMA_(e4m3_e5m2, "k32.f32.e4m3.e5m2", float, "+f", ", 1, 1", MIXPREC_CUDA_NO_TRANS_)
MIXPREC_CUDA_WGMMA_(e5m2_e4m3, "k32.f32.e5m2.e4m3", float, "+f", ", 1, 1", MIXPREC_CUDA_NO_TRANS_)
MIXPREC_CUDA_WGMMA_(e5m2_e5m2, "k32.f32.e5m2.e5m2", float, "+f", ", 1, 1", MIXPREC_CUDA_NO_TRANS_)
#undef MIXPREC_CUDA_REGISTERS_32_
#undef MIXPREC_CUDA_REGISTERS_64_
#undef MIXPREC_CUDA_REGISTERS_128_
#undef MIXPREC_CUDA_SUMS_8_
#undef MIXPREC_CUDA_SUMS_32_
#undef MIXPREC_CUDA_SUMS_64_
#undef MIXPREC_CUDA_SUMS_128_
#undef MIXPREC_CUDA_WGMMA_OF_
#undef MIXPREC_CUDA_WGMMA_
#undef MIXPREC_CUDA_TRANS_
#undef MIXPREC_CUDA_NO_TRANS_

/* A barrier of `count` threads of a block, number 1 to 15, whole warps. */
MIXPREC_CUDA_DEV_ void mixprec_cuda_sync_(int number, int count) {
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(count) : "memory");
}

/* Registers of each thread of a warpgroup from here on. */
template <int count, bool more> MIXPREC_CUDA_DEV_ void mixprec_cuda_take_registers_(void) {
    if (more)
        MIXPREC_CUDA_ASM_90A_("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
    else
        MIXPREC_CUDA_ASM_90A_("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

/* Barriers in shared memory, of 8 bytes, PTX ISA 9.0, 9.7.13.15: a phase ends when `count` threads have arrived and all
   bytes have come that these said to expect. */
MIXPREC_CUDA_DEV_ void mixprec_cuda_barrier_begin_(uint32_t barrier, uint32_t count) {
    MIXPREC_CUDA_ASM_90A_("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
/* All threads of the cluster; what they have begun is seen by all. */
MIXPREC_CUDA_DEV_ void mixprec_cuda_cluster_sync_(void) {
    MIXPREC_CUDA_ASM_90A_("fence.mbarrier_init.release.cluster;\n\tbarrier.cluster.arrive.release;\n\t"
                          "barrier.cluster.wait.acquire;" ::
                              : "memory");
}
MIXPREC_CUDA_DEV_ uint32_t mixprec_cuda_cluster_rank_(void) {
    uint32_t rank = 0;
    MIXPREC_CUDA_ASM_90A_("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
MIXPREC_CUDA_DEV_ void mixprec_cuda_barrier_expect_(uint32_t barrier, uint32_t bytes) {
    MIXPREC_CUDA_ASM_90A_("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                          : "memory");
}
/* Arrives at this barrier in block `rank` of the cluster. */
MIXPREC_CUDA_DEV_ void mixprec_cuda_barrier_arrive_(uint32_t barrier, uint32_t rank) {
    MIXPREC_CUDA_ASM_90A_("{\n\t.reg .b32 there;\n\tmapa.shared::cluster.u32 there, %0, %1;\n\t"
                          "mbarrier.arrive.shared::cluster.b64 _, [there];\n\t}" ::"r"(barrier),
                          "r"(rank)
                          : "memory");
}
/* Sends four words to this address in block `rank` of the cluster, whose barrier counts their bytes as they come. */
MIXPREC_CUDA_DEV_ void mixprec_cuda_send_(uint32_t to, uint32_t rank, uint32_t barrier, const uint4 &x) {
#if MIXPREC_CUDA_HAS_MAPS_
    MIXPREC_CUDA_ASM_90A_(
        "{\n\t.reg .b32 there, its;\n\tmapa.shared::cluster.u32 there, %0, %1;\n\t"
        "mapa.shared::cluster.u32 its, %2, %1;\n\t"
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [there], {%3, %4, %5, %6}, "
        "[its];\n\t}" ::"r"(to),
        "r"(rank), "r"(barrier), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
        : "memory");
#else
    (void)to, (void)rank, (void)barrier, (void)x;
#endif
}
/* Until the phase of this parity has ended; that before the first has parity 1. */
MIXPREC_CUDA_DEV_ void mixprec_cuda_barrier_wait_(uint32_t barrier, uint32_t parity) {
    uint32_t done = 1;
    do
        MIXPREC_CUDA_ASM_90A_("{\n\t.reg .pred done;\n\t"
                              "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n\t"
                              "selp.u32 %0, 1, 0, done;\n\t}"
                              : "=r"(done)
                              : "r"(barrier), "r"(parity)
                              : "memory");
    while (!done);
}

/* The copy engine. It takes boxes of 128 bytes x `lines` from an array of three dimensions, whose sizes and whose
   distances from line to line and from matrix to matrix are in bytes, lines and matrices, and lays them down swizzled
   as wgmma wants them. What is outside of the array becomes 0. */
#if MIXPREC_CUDA_HAS_MAPS_
typedef CUtensorMap mixprec_cuda_map_;
#else
typedef struct mixprec_cuda_map_ {
    uint64_t none;
} mixprec_cuda_map_;
#endif
static bool mixprec_cuda_map_of_(mixprec_cuda_map_ *map, const void *data, const uint64_t (&size)[3],
                                 const uint64_t (&stride)[2], uint32_t lines) {
#if MIXPREC_CUDA_HAS_MAPS_
    typedef CUresult (*encode_function)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                                        const cuuint64_t *, const cuuint32_t *, const cuuint32_t *,
                                        CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                                        CUtensorMapFloatOOBfill);
    static const encode_function encode = []() -> encode_function {
        void *found = NULL;
        cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
        if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result) !=
            cudaSuccess)
#else
        if (cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &result) != cudaSuccess)
#endif
        {
            (void)cudaGetLastError(); /* see mixprec_cuda_error_ */
            return NULL;
        }
        return result == cudaDriverEntryPointSuccess ? (encode_function)found : NULL;
    }();
    const cuuint64_t sizes[3] = {size[0], size[1], size[2]}, strides[2] = {stride[0], stride[1]};
    const cuuint32_t box[3] = {128, lines, 1}, ones[3] = {1, 1, 1};
    return encode && encode(map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, (void *)data, sizes, strides, box, ones,
                            CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                            CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
#else
    (void)map, (void)data, (void)size, (void)stride, (void)lines;
    return false;
#endif
}
/* A box to a multiple of 1024, in this block or, at the same place, in both of the cluster, whose barriers there count
   its bytes. */
MIXPREC_CUDA_DEV_ void mixprec_cuda_map_copy_(uint32_t to, const mixprec_cuda_map_ *map, uint32_t barrier, int byte,
                                              int line, int matrix, bool both) {
    if (both)
        MIXPREC_CUDA_ASM_90A_("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes."
                              "multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
                              "l"(map), "r"(barrier), "r"(byte), "r"(line), "r"(matrix), "h"((uint16_t)3)
                              : "memory");
    else
        MIXPREC_CUDA_ASM_90A_("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                              "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(to),
                              "l"(map), "r"(barrier), "r"(byte), "r"(line), "r"(matrix)
                              : "memory");
}
#undef MIXPREC_CUDA_ASM_90A_

/* binary32 bits to TF32, rounded to nearest, ties away. */
MIXPREC_CUDA_DEV_ uint32_t mixprec_cuda_tf32_(uint32_t bits) {
#if MIXPREC_CUDA_ARCH_ >= 800
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(__uint_as_float(bits)));
#endif
    return bits;
}

/* 1 / x, wrong by at most 1 ulp (PTX ISA 9.0, 9.7.3.13); Inf where x, and 0 where the result is subnormal. */
MIXPREC_CUDA_DEV_ float mixprec_cuda_reciprocal_(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* The larger of each of two pairs of 16 bits without a sign. */
MIXPREC_CUDA_DEV_ uint32_t mixprec_cuda_max_u16x2_(uint32_t a, uint32_t b) {
    return __vmaxu2(a, b);
}
/* The product of two pairs of fp16. */
MIXPREC_CUDA_DEV_ uint32_t mixprec_cuda_mul_f16x2_(uint32_t a, uint32_t b) {
    uint32_t y;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(y) : "r"(a), "r"(b));
    return y;
}
/* Two e4m3 codes in the low 16 bits to two fp16. */
MIXPREC_CUDA_DEV_ uint32_t mixprec_cuda_cvt_e4m3x2_(uint32_t codes) {
    uint32_t y = 0;
#if MIXPREC_CUDA_ARCH_ >= 890
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(y) : "h"((unsigned short)codes));
#endif
    return y;
}

/* Fragments of bfloat16 and TF32: load_matrix_sync makes generic loads of these (CUDA 13.0); named .shared they are
   LDSM and LDS. */
#define MIXPREC_CUDA_WMMA_LOAD_(name, operand, shape)                                                                  \
    template <class Fragment>                                                                                          \
    MIXPREC_CUDA_DEV_ void mixprec_cuda_load_##name##_##operand##_(Fragment &f, const void *p, unsigned ld) {          \
        uint32_t *x = (uint32_t *)&f.x[0];                                                                             \
        asm volatile("wmma.load." #operand ".sync.aligned." shape " {%0, %1, %2, %3}, [%4], %5;"                       \
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])                                                  \
                     : "r"(mixprec_cuda_shared_address_(p)), "r"(ld)                                                   \
                     : "memory");                                                                                      \
    }
MIXPREC_CUDA_WMMA_LOAD_(bf16, a, "row.m16n16k16.shared.bf16")
MIXPREC_CUDA_WMMA_LOAD_(bf16, b, "col.m16n16k16.shared.bf16")
MIXPREC_CUDA_WMMA_LOAD_(tf32, a, "row.m16n16k8.shared.tf32")
MIXPREC_CUDA_WMMA_LOAD_(tf32, b, "col.m16n16k8.shared.tf32")
#undef MIXPREC_CUDA_WMMA_LOAD_

#endif /* MIXPREC_CUDA_EMULATION */

/* ================================================================================================================== */
/* [CUDA-ARRAY] Kernels over arrays and lists of tensors                                                              */
/* ================================================================================================================== */

/* f32, f16, bf16, e4m3 and e5m2 from here on; mixprec_cuda_convert_any_ has the others. */

MIXPREC_CUDA_DEV_ float mixprec_cuda_decode_(uint32_t code, mixprec_dtype type) {
    if (type == MIXPREC_F32)
        return mixprec_cuda_float_(code);
    if (type == MIXPREC_BF16)
        return mixprec_cuda_float_(code << 16 | ((code & 0x7FFF) > 0x7F80 ? 0x400000u : 0));
    /* the others by way of fp16: E4M3 is fp16's with an exponent 8 lower, E5M2 its upper half */
    uint32_t half = type == MIXPREC_E4M3   ? (code & 0x80) << 8 | (code & 0x7F) << 7
                    : type == MIXPREC_E5M2 ? code << 8
                                           : code;
    if ((half & 0x7FFF) > 0x7C00 || (type == MIXPREC_E4M3 && (half & 0x7FFF) == 0x3F80))
        return mixprec_cuda_float_((half & 0x8000) << 16 |
                                   (type == MIXPREC_E4M3 ? 0x7FF00000u : 0x7FC00000u | (half & 0x3FF) << 13));
    float value = mixprec_cuda_cvt_f16_(half);
    return type == MIXPREC_E4M3 ? mixprec_cuda_mul_(value, 256.0f) : value;
}

/* Two e4m3 codes (low 16 bits of x) to two fp16 without the conversion instruction: see mixprec_cuda_decode_. The
   smallest ones are subnormal before the multiplication, which fp16 arithmetic keeps. */
MIXPREC_CUDA_DEV_ uint32_t mixprec_cuda_e4m3x2_by_bits_(uint32_t x) {
    uint32_t v = (x & 0xFF) << 8 | (x & 0xFF00) << 16, magnitude = v & 0x7F007F00u;
    uint32_t nan = (magnitude + 0x01000100u) & 0x80008000u;
    return mixprec_cuda_mul_f16x2_((v & 0x80008000u) | magnitude >> 1, 0x5C005C00u) | (nan >> 15) * 0x7FFFu;
}
MIXPREC_CUDA_DEV_ uint32_t mixprec_cuda_fp8x2_(uint32_t x, bool e5m2) {
    if (e5m2)
        return (x & 0xFF) << 8 | (x & 0xFF00) << 16;
    return MIXPREC_CUDA_ARCH_ >= 890 ? mixprec_cuda_cvt_e4m3x2_(x & 0xFFFF) : mixprec_cuda_e4m3x2_by_bits_(x);
}

MIXPREC_CUDA_DEV_ uint32_t mixprec_cuda_element_(const void *base, size_t size, size_t i) {
    return size == 4   ? mixprec_cuda_read_<uint32_t>((const uint32_t *)base + i)
           : size == 2 ? mixprec_cuda_read_<uint16_t>((const uint16_t *)base + i)
                       : mixprec_cuda_read_<uint8_t>((const uint8_t *)base + i);
}
/* Unlike mixprec_cuda_element_ of memory that the same kernel writes. */
MIXPREC_CUDA_DEV_ uint32_t mixprec_cuda_element_plain_(const void *base, size_t size, size_t i) {
    return size == 4   ? ((const uint32_t *)base)[i]
           : size == 2 ? ((const uint16_t *)base)[i]
                       : ((const uint8_t *)base)[i];
}

MIXPREC_CUDA_DEV_ void mixprec_cuda_put_(void *base, size_t size, size_t i, uint32_t code) {
    if (size == 4)
        ((uint32_t *)base)[i] = code;
    else if (size == 2)
        ((uint16_t *)base)[i] = (uint16_t)code;
    else
        ((uint8_t *)base)[i] = (uint8_t)code;
}

/* A thread's part of an array is units of eight elements, four from i on and four from i + gap on. Where all of them
   are there and aligned for vectors, a kernel reads all of its units first, with nothing between the loads that would
   wait for one, and works on them in registers. A thread that then meets what the instructions get wrong, NaN above
   all, has not written yet, and takes its elements again, one after the other, as those that are ragged or not aligned:
   exactly, and slowly. Codes are packed: a unit is 8 words of f32, 4 of 16-bit or 2 of 8-bit elements. */

/* Of an array, where the lanes of a warp are four elements apart: neighbours meet, whatever the size of an element. */
#define MIXPREC_CUDA_GAP_ 128

template <int size, int gap>
MIXPREC_CUDA_DEV_ void mixprec_cuda_read8_(uint32_t (&raw)[8], const void *base, size_t i) {
    if (size == 4) {
        uint4 low = *(const uint4 *)((const uint32_t *)base + i);
        uint4 high = *(const uint4 *)((const uint32_t *)base + i + gap);
        raw[0] = low.x, raw[1] = low.y, raw[2] = low.z, raw[3] = low.w;
        raw[4] = high.x, raw[5] = high.y, raw[6] = high.z, raw[7] = high.w;
    } else if (size == 2 && gap == 4) {
        uint4 x = *(const uint4 *)((const uint16_t *)base + i);
        raw[0] = x.x, raw[1] = x.y, raw[2] = x.z, raw[3] = x.w;
    } else if (size == 2) {
        uint2 low = *(const uint2 *)((const uint16_t *)base + i);
        uint2 high = *(const uint2 *)((const uint16_t *)base + i + gap);
        raw[0] = low.x, raw[1] = low.y, raw[2] = high.x, raw[3] = high.y;
    } else if (gap == 4) {
        uint2 x = *(const uint2 *)((const uint8_t *)base + i);
        raw[0] = x.x, raw[1] = x.y;
    } else {
        raw[0] = *(const uint32_t *)(const void *)((const uint8_t *)base + i);
        raw[1] = *(const uint32_t *)(const void *)((const uint8_t *)base + i + gap);
    }
}
template <int size, int gap>
MIXPREC_CUDA_DEV_ void mixprec_cuda_write8_(void *base, size_t i, const uint32_t (&raw)[8]) {
    if (size == 4) {
        *(uint4 *)((uint32_t *)base + i) = make_uint4(raw[0], raw[1], raw[2], raw[3]);
        *(uint4 *)((uint32_t *)base + i + gap) = make_uint4(raw[4], raw[5], raw[6], raw[7]);
    } else if (size == 2 && gap == 4) {
        *(uint4 *)((uint16_t *)base + i) = make_uint4(raw[0], raw[1], raw[2], raw[3]);
    } else if (size == 2) {
        *(uint2 *)((uint16_t *)base + i) = make_uint2(raw[0], raw[1]);
        *(uint2 *)((uint16_t *)base + i + gap) = make_uint2(raw[2], raw[3]);
    } else if (gap == 4) {
        *(uint2 *)((uint8_t *)base + i) = make_uint2(raw[0], raw[1]);
    } else {
        *(uint32_t *)(void *)((uint8_t *)base + i) = raw[0];
        *(uint32_t *)(void *)((uint8_t *)base + i + gap) = raw[1];
    }
}

/* A unit by instructions, f16 and fp8 without a NaN. A NaN of bf16 and f32 keeps its bits, and becomes quiet where it
   is encoded. */
MIXPREC_CUDA_DEV_ void mixprec_cuda_widen8_(float (&v)[8], const uint32_t (&raw)[8], mixprec_dtype type) {
#pragma unroll
    for (int w = 0; w < 4; w++) {
        uint32_t pair = raw[w];
        if (mixprec_cuda_size_(type) == 1)
            pair = mixprec_cuda_fp8x2_(raw[w / 2] >> (w % 2 * 16), type == MIXPREC_E5M2);
        v[2 * w] = type == MIXPREC_F32    ? mixprec_cuda_float_(raw[2 * w])
                   : type == MIXPREC_BF16 ? mixprec_cuda_float_(pair << 16)
                                          : mixprec_cuda_cvt_f16_(pair & 0xFFFF);
        v[2 * w + 1] = type == MIXPREC_F32    ? mixprec_cuda_float_(raw[2 * w + 1])
                       : type == MIXPREC_BF16 ? mixprec_cuda_float_(pair & 0xFFFF0000u)
                                              : mixprec_cuda_cvt_f16_(pair >> 16);
    }
}
/* mixprec_random_bits of index .. index + 3. */
MIXPREC_CUDA_DEV_ void mixprec_cuda_random4_(uint32_t *random, uint64_t seed, uint64_t index) {
    uint32_t pair[6];
    mixprec_cuda_random_pair_(pair[0], pair[1], seed, index >> 1);
    mixprec_cuda_random_pair_(pair[2], pair[3], seed, (index + 2) >> 1); /* the index wraps, not the pair's number */
    if (index & 1)
        mixprec_cuda_random_pair_(pair[4], pair[5], seed, (index + 4) >> 1);
    else
        pair[4] = 0;
#pragma unroll
    for (int e = 0; e < 4; e++)
        random[e] = (index & 1) ? pair[e + 1] : pair[e];
}

/* x times factor; a NaN as it is, where the instruction would give its own. */
MIXPREC_CUDA_DEV_ float mixprec_cuda_scaled_(float x, float factor) {
    return (mixprec_cuda_bits_(x) & 0x7FFFFFFFu) > 0x7F800000u ? x : mixprec_cuda_mul_(x, factor);
}
/* f32 to f32: a NaN becomes quiet, and saturating replaces Inf. */
MIXPREC_CUDA_DEV_ uint32_t mixprec_cuda_code_f32_(uint32_t bits, mixprec_overflow overflow) {
    uint32_t magnitude = bits & 0x7FFFFFFFu;
    return magnitude > 0x7F800000u                                             ? bits | 0x400000u
           : overflow == MIXPREC_OVERFLOW_SATURATE && magnitude == 0x7F800000u ? bits - 1
                                                                               : bits;
}

/* How floats become the codes of an array: see mixprec_convert_options. Element i draws the random bits offset + i. */
typedef struct mixprec_cuda_rounding_ {
    mixprec_round round;
    mixprec_overflow overflow;
    uint64_t seed, offset;
} mixprec_cuda_rounding_;

/* The statement, in which `constant` is the type: one copy for each, and nothing of the formats' table at run time. */
#define MIXPREC_CUDA_BY_TYPE_(type, statement)                                                                         \
    do {                                                                                                               \
        MIXPREC_CUDA_CASE_(type, MIXPREC_F32, statement)                                                               \
        MIXPREC_CUDA_CASE_(type, MIXPREC_F16, statement)                                                               \
        MIXPREC_CUDA_CASE_(type, MIXPREC_BF16, statement)                                                              \
        MIXPREC_CUDA_CASE_(type, MIXPREC_E4M3, statement)                                                              \
        MIXPREC_CUDA_CASE_(type, MIXPREC_E5M2, statement)                                                              \
    } while (0)
#define MIXPREC_CUDA_CASE_(type, dtype, statement)                                                                     \
    if (type == dtype) {                                                                                               \
        const mixprec_dtype constant = dtype;                                                                          \
        statement;                                                                                                     \
    }

/* Element i of an array, in any mode; f32 stays what it is but to nearest even. */
MIXPREC_CUDA_DEV_ uint32_t mixprec_cuda_code_(float x, mixprec_dtype type, const mixprec_cuda_rounding_ &how,
                                              size_t i) {
    uint32_t bits = mixprec_cuda_bits_(x), random = 0;
    if (type == MIXPREC_F32)
        return how.round == MIXPREC_ROUND_NEAREST_EVEN ? mixprec_cuda_code_f32_(bits, how.overflow) : bits;
    if (how.round == MIXPREC_ROUND_NEAREST_EVEN)
        MIXPREC_CUDA_BY_TYPE_(type, return mixprec_cuda_narrow_(bits, mixprec_cuda_layout_(constant), how.overflow));
    if (how.round == MIXPREC_ROUND_STOCHASTIC)
        random = mixprec_cuda_random_bits(how.seed, how.offset + i);
    return mixprec_cuda_narrow64_(mixprec_cuda_widen64_(bits), mixprec_cuda_layout_(type), how.round, how.overflow,
                                  random);
}
MIXPREC_CUDA_DEV_ float mixprec_cuda_load_(const void *base, mixprec_dtype type, size_t i) {
    return mixprec_cuda_decode_(mixprec_cuda_element_plain_(base, mixprec_cuda_size_(type), i), type);
}

/* A unit to nearest even, by instructions where there are such: see mixprec_cuda_limit_. */
MIXPREC_CUDA_DEV_ uint32_t mixprec_cuda_narrow_pair_(float low, float high, mixprec_dtype type,
                                                     mixprec_overflow overflow) {
    if (mixprec_cuda_has_cvt_(type))
        return mixprec_cuda_cvt_pair_(low, high, type);
    return mixprec_cuda_narrow_(mixprec_cuda_bits_(low), mixprec_cuda_layout_(type), overflow) |
           mixprec_cuda_narrow_(mixprec_cuda_bits_(high), mixprec_cuda_layout_(type), overflow)
               << mixprec_cuda_size_(type) * 8;
}
MIXPREC_CUDA_DEV_ void mixprec_cuda_narrow8_(uint32_t (&raw)[8], const float (&v)[8], mixprec_dtype type,
                                             mixprec_overflow overflow) {
#pragma unroll
    for (int w = 0; w < 8; w++)
        if (type == MIXPREC_F32)
            raw[w] = mixprec_cuda_bits_(v[w]);
        else if (mixprec_cuda_size_(type) == 2 && w < 4)
            raw[w] = mixprec_cuda_narrow_pair_(v[2 * w], v[2 * w + 1], type, overflow);
        else if (mixprec_cuda_size_(type) == 1 && w < 2)
            raw[w] = mixprec_cuda_narrow_pair_(v[4 * w], v[4 * w + 1], type, overflow) |
                     mixprec_cuda_narrow_pair_(v[4 * w + 2], v[4 * w + 3], type, overflow) << 16;
}
/* The largest finite magnitude of a type. */
MIXPREC_CUDA_DEV_ float mixprec_cuda_finite_(mixprec_dtype type) {
    return mixprec_cuda_float_(type == MIXPREC_F32    ? 0x7F7FFFFFu
                               : type == MIXPREC_F16  ? 0x477FE000u
                               : type == MIXPREC_BF16 ? 0x7F7F0000u
                               : type == MIXPREC_E4M3 ? 0x43E00000u
                                                      : 0x47600000u);
}
/* The largest magnitude that mixprec_cuda_narrow8_ takes: instructions saturate in fp8, and give Inf in the others.
   -1: none, as the rounding is another. */
MIXPREC_CUDA_DEV_ float mixprec_cuda_limit_(mixprec_dtype type, const mixprec_cuda_rounding_ &how) {
    const size_t size = mixprec_cuda_size_(type);
    bool any = size == 1   ? how.overflow == MIXPREC_OVERFLOW_SATURATE || !mixprec_cuda_has_cvt_(type)
               : size == 2 ? how.overflow == MIXPREC_OVERFLOW_IEEE || !mixprec_cuda_has_cvt_(type)
                           : how.overflow != MIXPREC_OVERFLOW_SATURATE;
    if (how.round != MIXPREC_ROUND_NEAREST_EVEN)
        return -1;
    return any ? mixprec_cuda_float_(0x7F800000u) : mixprec_cuda_finite_(type);
}
/* The magnitude of a finite float in a type of at most 16 bits, as if exponents went on: mixprec_cuda_narrow64_'s, in
   32 bits. */
MIXPREC_CUDA_DEV_ uint32_t mixprec_cuda_narrow_magnitude_(float x, mixprec_dtype type, mixprec_round round,
                                                          uint32_t random) {
    const mixprec_layout_ layout = mixprec_cuda_layout_(type);
    const uint32_t bits = mixprec_cuda_bits_(x), exponent = bits >> 23 & 0xFF;
    const uint32_t mantissa = (bits & 0x7FFFFFu) | (exponent ? 0x800000u : 0);
    int target = (int)(exponent ? exponent : 1) - 127 + layout.bias, shift = 23 - layout.mantissa_bits;
    if (target < 1)
        shift += 1 - target, target = 1;
    uint32_t kept = shift < 32 ? mantissa >> shift : 0, fraction = mantissa << ((32 - shift) & 31);
    if (shift > 32)
        fraction = (shift < 64 ? mantissa >> (shift - 32) : 0) | (round != MIXPREC_ROUND_STOCHASTIC && mantissa);
    return ((uint32_t)(target - 1) << layout.mantissa_bits) +
           mixprec_cuda_carry_(kept, fraction, round, bits >> 31, random);
}
MIXPREC_CUDA_DEV_ void mixprec_cuda_pack8_(uint32_t (&raw)[8], const uint32_t (&code)[8], size_t size) {
#pragma unroll
    for (int e = 0; e < 8; e++)
        if (size == 4)
            raw[e] = code[e];
        else if (size == 2 && e < 4)
            raw[e] = code[2 * e] | code[2 * e + 1] << 16;
        else if (size == 1 && e < 2)
            raw[e] = code[4 * e] | code[4 * e + 1] << 8 | code[4 * e + 2] << 16 | code[4 * e + 3] << 24;
}
/* A unit of an array, elements i and i + gap and three after each, in any mode; false: something of it is not finite in
   the type. */
MIXPREC_CUDA_DEV_ bool mixprec_cuda_narrow8_any_(uint32_t (&raw)[8], const float (&v)[8], mixprec_dtype type,
                                                 const mixprec_cuda_rounding_ &how, size_t i) {
    uint32_t code[8] = {};
    float left[8];
    if (!mixprec_cuda_any_above_(v, mixprec_cuda_limit_(type, how))) {
        MIXPREC_CUDA_BY_TYPE_(type, mixprec_cuda_narrow8_(raw, v, constant, how.overflow));
        return true;
    }
    if (type == MIXPREC_F32 || mixprec_cuda_any_above_(v, mixprec_cuda_finite_(type)))
        return false;
    if (type == MIXPREC_BF16 && how.round == MIXPREC_ROUND_STOCHASTIC) { /* weights without a master: the common case */
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint32_t random[4];
            mixprec_cuda_random4_(random, how.seed, how.offset + i + (size_t)(half * MIXPREC_CUDA_GAP_));
#pragma unroll
            for (int e = 0; e < 4; e += 2)
                raw[half * 2 + e / 2] =
                    (mixprec_cuda_bits_(v[half * 4 + e]) + (random[e] >> 16)) >> 16 |
                    ((mixprec_cuda_bits_(v[half * 4 + e + 1]) + (random[e + 1] >> 16)) & 0xFFFF0000u);
        }
        return true;
    }
#pragma unroll
    for (int e = 0; e < 8; e++)
        left[e] = v[e];
#pragma unroll 1 /* one copy of what is long, past which the halves go */
    for (int half = 0; half < 2; half++) {
        uint32_t random[4] = {};
        if (how.round == MIXPREC_ROUND_STOCHASTIC)
            mixprec_cuda_random4_(random, how.seed, how.offset + i + (size_t)(half * MIXPREC_CUDA_GAP_));
#pragma unroll
        for (int e = 0; e < 4; e++) {
            MIXPREC_CUDA_BY_TYPE_(
                type, random[e] = mixprec_cuda_narrow_magnitude_(left[e], constant, how.round, random[e]) |
                                  (mixprec_cuda_bits_(left[e]) >> 31) * mixprec_cuda_layout_(constant).sign_code);
            left[e] = left[e + 4], code[e] = code[e + 4], code[e + 4] = random[e];
        }
    }
    mixprec_cuda_pack8_(raw, code, mixprec_cuda_size_(type));
    return true;
}
template <mixprec_dtype type> struct mixprec_cuda_size_of_ {
    enum { bytes = type == MIXPREC_F32 ? 4 : type == MIXPREC_F16 || type == MIXPREC_BF16 ? 2 : 1 };
};
template <mixprec_dtype type, int units>
MIXPREC_CUDA_DEV_ void mixprec_cuda_load_units_of_(float (&v)[units][8], const void *base, size_t i) {
    const int size = mixprec_cuda_size_of_<type>::bytes;
    uint32_t raw[units][8];
#pragma unroll
    for (int u = 0; u < units; u++)
        mixprec_cuda_read8_<size, MIXPREC_CUDA_GAP_>(raw[u], base, i + u * 256);
#pragma unroll
    for (int u = 0; u < units; u++)
        mixprec_cuda_widen8_(v[u], raw[u], type);
}
template <mixprec_dtype type, int units>
MIXPREC_CUDA_DEV_ void mixprec_cuda_store_units_of_(void *base, size_t i, const float (&v)[units][8],
                                                    mixprec_overflow overflow) {
    const int size = mixprec_cuda_size_of_<type>::bytes;
#pragma unroll
    for (int u = 0; u < units; u++) {
        uint32_t raw[8];
        mixprec_cuda_narrow8_(raw, v[u], type, overflow);
        mixprec_cuda_write8_<size, MIXPREC_CUDA_GAP_>(base, i + u * 256, raw);
    }
}
template <int units> MIXPREC_CUDA_DEV_ bool mixprec_cuda_units_above_(const float (&v)[units][8], float limit) {
    bool any = false;
#pragma unroll
    for (int u = 0; u < units; u++)
        any |= mixprec_cuda_any_above_(v[u], limit);
    return any;
}
/* Several units, all there and aligned. false: there is a NaN. */
template <int units>
MIXPREC_CUDA_DEV_ bool mixprec_cuda_load_units_(float (&v)[units][8], const void *base, mixprec_dtype type, size_t i) {
    MIXPREC_CUDA_BY_TYPE_(type, (mixprec_cuda_load_units_of_<constant, units>(v, base, i)));
    return !mixprec_cuda_units_above_(v, mixprec_cuda_float_(0x7F800000u));
}
/* false: not to be had by instructions, and nothing was written. */
template <int units>
MIXPREC_CUDA_DEV_ bool mixprec_cuda_store_units_(void *base, mixprec_dtype type, size_t i, const float (&v)[units][8],
                                                 const mixprec_cuda_rounding_ &how) {
    if (units == 1 && how.round != MIXPREC_ROUND_NEAREST_EVEN) {
        uint32_t raw[8];
        if (!mixprec_cuda_narrow8_any_(raw, v[0], type, how, i))
            return false;
        MIXPREC_CUDA_BY_TYPE_(
            type, (mixprec_cuda_write8_<mixprec_cuda_size_of_<constant>::bytes, MIXPREC_CUDA_GAP_>(base, i, raw)));
        return true;
    }
    if (mixprec_cuda_units_above_(v, mixprec_cuda_limit_(type, how)))
        return false;
    MIXPREC_CUDA_BY_TYPE_(type, (mixprec_cuda_store_units_of_<constant, units>(base, i, v, how.overflow)));
    return true;
}

/* The larger of `largest` and the bits of x's magnitude: they order as the magnitudes do, NaN above all. */
MIXPREC_CUDA_DEV_ uint32_t mixprec_cuda_larger_(uint32_t largest, float x) {
    uint32_t magnitude = mixprec_cuda_bits_(x) & 0x7FFFFFFFu;
    return magnitude > largest ? magnitude : largest;
}

/* A list of tensors as a kernel parameter (4 KB at most): tensor t holds chunks first[t] .. first[t + 1] - 1. */
#define MIXPREC_CUDA_LIST_ 46
#define MIXPREC_CUDA_POINTERS_ 6
#define MIXPREC_CUDA_CHUNK_ 8192
#define MIXPREC_CUDA_THREADS_ 256
/* What the registers allow; conversions to fp8 without instructions need more of them. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
#define MIXPREC_CUDA_UNITS_ 2
#define MIXPREC_CUDA_TRANSPOSE_BLOCKS_ 2
#else
#define MIXPREC_CUDA_UNITS_ 4
#define MIXPREC_CUDA_TRANSPOSE_BLOCKS_ 3
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
#define MIXPREC_CUDA_OPTIMIZER_BLOCKS_ 3 /* SGD 95 % of a copy on an H200, AdamW of bf16 alone 91, with 2 82 and 77 */
#else
#define MIXPREC_CUDA_OPTIMIZER_BLOCKS_ 2
#endif
typedef struct mixprec_cuda_item_ {
    void *p[MIXPREC_CUDA_POINTERS_];
    size_t n;
    union { /* a matrix has the second of each, and n is their product */
        uint64_t seed;
        size_t rows;
    };
    union {
        uint64_t offset;
        size_t columns;
    };
    uint8_t src_type, dst_type, round, overflow; /* where each tensor has its own */
    uint8_t whole;                               /* the bits of those p that are aligned for vectors */
} mixprec_cuda_item_;
typedef struct mixprec_cuda_list_ {
    mixprec_cuda_item_ items[MIXPREC_CUDA_LIST_];
    uint32_t first[MIXPREC_CUDA_LIST_ + 1];
    int count;
} mixprec_cuda_list_;

/* Blocks of a multiprocessor at the same time: what the registers allow, with bytes enough under way. */
template <class Op> struct mixprec_cuda_blocks_of_ {
    enum { least = 3 };
};
struct mixprec_cuda_transpose_op_;
template <bool adam> struct mixprec_cuda_optimizer_op_;
template <bool square> struct mixprec_cuda_quantize_blocks_op_;
template <> struct mixprec_cuda_blocks_of_<mixprec_cuda_transpose_op_> {
    enum { least = MIXPREC_CUDA_TRANSPOSE_BLOCKS_ };
};
template <bool adam> struct mixprec_cuda_blocks_of_<mixprec_cuda_optimizer_op_<adam>> {
    enum { least = MIXPREC_CUDA_OPTIMIZER_BLOCKS_ };
};
template <bool square> struct mixprec_cuda_blocks_of_<mixprec_cuda_quantize_blocks_op_<square>> {
    enum { least = 2 };
};

/* enter: before each chunk; leave: when a block goes on to another tensor, and after its last chunk. */
template <class Op> MIXPREC_CUDA_DEV_ void mixprec_cuda_enter_(Op &, const mixprec_cuda_item_ &) {
}
template <class Op> MIXPREC_CUDA_DEV_ void mixprec_cuda_leave_(Op &, const mixprec_cuda_item_ &) {
}
template <bool any_round_> struct mixprec_cuda_quantize_op_;
template <bool any_round_>
MIXPREC_CUDA_DEV_ void mixprec_cuda_enter_(mixprec_cuda_quantize_op_<any_round_> &op, const mixprec_cuda_item_ &item);
template <bool any_round_>
MIXPREC_CUDA_DEV_ void mixprec_cuda_leave_(mixprec_cuda_quantize_op_<any_round_> &op, const mixprec_cuda_item_ &item);

/* An operation on arrays reads p[1] and writes p[0], unless dst_type is MIXPREC_NONE. one() is given all elements,
   those of a unit in order, and then unit() is called; `exact`: x may be a NaN, which is to stay what it is. */
template <int units, class Op>
MIXPREC_CUDA_DEV_ bool mixprec_cuda_step_fast_(Op &op, const mixprec_cuda_item_ &item, size_t i) {
    float v[units][8];
    if (!mixprec_cuda_load_units_<units>(v, item.p[1], op.src_type, i))
        return false;
#pragma unroll
    for (int u = 0; u < units; u++) {
#pragma unroll
        for (int e = 0; e < 8; e++)
            v[u][e] = op.template one<false>(v[u][e], item);
        op.unit();
    }
    return op.dst_type == MIXPREC_NONE ||
           mixprec_cuda_store_units_<units>(item.p[0], op.dst_type, i, v, op.rounding(item));
}
/* All units at once or, where the rounding may be any, one after the other. */
template <class Op>
MIXPREC_CUDA_DEV_ void mixprec_cuda_step_(Op &op, const mixprec_cuda_item_ &item, size_t i, size_t end) {
    const int units = MIXPREC_CUDA_UNITS_, gap = MIXPREC_CUDA_GAP_;
    const bool aligned = (item.whole >> 1 & 1) && (op.dst_type == MIXPREC_NONE || (item.whole & 1));
    if (!Op::any_round && aligned && i + (units - 1) * 256 + gap + 4 <= end &&
        mixprec_cuda_step_fast_<units>(op, item, i))
        return;
#pragma unroll 1
    for (int u = 0; u < units; u++, i += 256) {
        if (Op::any_round && aligned && i + gap + 4 <= end && mixprec_cuda_step_fast_<1>(op, item, i))
            continue;
#pragma unroll 1
        for (int e = 0; e < 8; e++) {
            size_t at = i + e / 4 * gap + e % 4;
            if (at >= end)
                continue;
            float x = op.template one<true>(mixprec_cuda_load_(item.p[1], op.src_type, at), item);
            if (op.dst_type != MIXPREC_NONE)
                mixprec_cuda_put_(item.p[0], mixprec_cuda_size_(op.dst_type), at,
                                  mixprec_cuda_code_(x, op.dst_type, op.rounding(item), at));
        }
        op.unit();
    }
}

/* A chunk of a tensor: 8192 elements in a row, of which a warp takes 256 for each of its units. Operations on matrices
   have tiles instead. */
template <class Op> MIXPREC_CUDA_DEV_ void mixprec_cuda_chunk_(Op &op, const mixprec_cuda_item_ &item, uint32_t chunk) {
    size_t begin = (size_t)chunk * MIXPREC_CUDA_CHUNK_, n = item.n;
    size_t end = n - begin > MIXPREC_CUDA_CHUNK_ ? begin + MIXPREC_CUDA_CHUNK_ : n;
    size_t i = begin + threadIdx.x / 32 * (MIXPREC_CUDA_UNITS_ * 256) + threadIdx.x % 32 * 4;
    for (; i < end; i += MIXPREC_CUDA_THREADS_ * MIXPREC_CUDA_UNITS_ * 8)
        mixprec_cuda_step_(op, item, i, end);
}

/* Runs op on every chunk. Which thread of which block has which elements is fixed by the sizes and the grid. */
template <class Op>
static __global__ void __launch_bounds__(MIXPREC_CUDA_THREADS_, mixprec_cuda_blocks_of_<Op>::least)
    mixprec_cuda_for_each_(Op op, const MIXPREC_CUDA_PARAMETER_ mixprec_cuda_list_ list) {
    int t = 0, last = -1; /* last: the tensor of the chunk before */
    if (op.begin())
        for (uint32_t chunk = blockIdx.x; chunk < list.first[list.count]; chunk += gridDim.x) {
            while (chunk >= list.first[t + 1])
                t++;
            if (last >= 0 && last != t)
                mixprec_cuda_leave_(op, list.items[last]);
            last = t;
            mixprec_cuda_enter_(op, list.items[t]);
            mixprec_cuda_chunk_(op, list.items[t], chunk - list.first[t]);
        }
    if (last >= 0)
        mixprec_cuda_leave_(op, list.items[last]);
    op.end();
}

/* The largest x of a block, or the sum, for thread 0, in a fixed order. All threads must come, and meet at another
   barrier before they come again. */
template <bool sum, class T> MIXPREC_CUDA_DEV_ T mixprec_cuda_reduce_(T x) {
    T *shared = (T *)(void *)mixprec_cuda_shared_();
    for (int distance = 16; distance; distance /= 2) {
        T other = __shfl_xor_sync(0xFFFFFFFFu, x, distance);
        x = sum ? x + other : x > other ? x : other;
    }
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x == 0)
        for (unsigned w = 1; w < blockDim.x / 32; w++)
            x = sum ? x + shared[w] : x > shared[w] ? x : shared[w];
    return x;
}
#define MIXPREC_CUDA_REDUCE_BYTES_ (32 * 8)

struct mixprec_cuda_convert_op_ { /* p: dst, src */
    static const bool any_round = false;
    mixprec_dtype dst_type, src_type;
    mixprec_overflow overflow;
    __device__ bool begin() {
        return true;
    }
    __device__ mixprec_cuda_rounding_ rounding(const mixprec_cuda_item_ &) {
        return {MIXPREC_ROUND_NEAREST_EVEN, overflow, 0, 0};
    }
    template <bool exact> __device__ float one(float x, const mixprec_cuda_item_ &) {
        return x;
    }
    __device__ void unit() {
    }
    __device__ void end() {
    }
};

struct mixprec_cuda_unscale_op_ { /* p: dst, src */
    static const bool any_round = false;
    mixprec_scaler *scaler;
    mixprec_dtype dst_type, src_type;
    float factor;
    uint32_t largest;
    __device__ bool begin() {
        factor = mixprec_cuda_div_(1.0f, scaler->scale); /* as through f64: no quotient is that close to a tie */
        largest = 0;
        return true;
    }
    __device__ mixprec_cuda_rounding_ rounding(const mixprec_cuda_item_ &) {
        return {MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0, 0};
    }
    template <bool exact> __device__ float one(float x, const mixprec_cuda_item_ &) {
        x = exact ? mixprec_cuda_scaled_(x, factor) : mixprec_cuda_mul_(x, factor);
        largest = mixprec_cuda_larger_(largest, x); /* Inf and NaN have stayed what they are */
        return x;
    }
    __device__ void unit() {
    }
    __device__ void end() {
        if (largest >= 0x7F800000u)
            *(volatile int32_t *)&scaler->found_inf = 1; /* all who write write the same */
    }
};

struct mixprec_cuda_amax_op_ { /* p: -, src */
    static const bool any_round = false;
    static const mixprec_dtype dst_type = MIXPREC_NONE;
    mixprec_dtype src_type;
    float *amax;
    uint32_t largest;
    __device__ bool begin() {
        largest = 0;
        return true;
    }
    __device__ mixprec_cuda_rounding_ rounding(const mixprec_cuda_item_ &) {
        return {MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0, 0};
    }
    template <bool exact> __device__ float one(float x, const mixprec_cuda_item_ &) {
        largest = mixprec_cuda_larger_(largest, x);
        return x;
    }
    __device__ void unit() {
    }
    __device__ void end() { /* no order of atomics matters */
        uint32_t all = mixprec_cuda_reduce_<false>(largest);
        if (threadIdx.x == 0 && all)
            atomicMax((unsigned int *)amax, all);
    }
};

struct mixprec_cuda_norm_op_ { /* p: -, src */
    static const bool any_round = false;
    static const mixprec_dtype dst_type = MIXPREC_NONE;
    mixprec_dtype src_type;
    double *partial;
    double total;
    float sum;
    __device__ bool begin() {
        total = 0, sum = 0;
        return true;
    }
    __device__ mixprec_cuda_rounding_ rounding(const mixprec_cuda_item_ &) {
        return {MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0, 0};
    }
    template <bool exact> __device__ float one(float x, const mixprec_cuda_item_ &) {
        sum = mixprec_cuda_fma_(x, x, sum);
        return x;
    }
    __device__ void unit() {
        total += (double)sum;
        sum = 0;
    }
    __device__ void end() {
        double all = mixprec_cuda_reduce_<true>(total);
        if (threadIdx.x == 0)
            partial[blockIdx.x] = all;
    }
};
static __global__ void __launch_bounds__(MIXPREC_CUDA_THREADS_)
    mixprec_cuda_norm_end_(float *norm, const double *partial, size_t count) {
    double total = 0;
    for (size_t i = threadIdx.x; i < count; i += MIXPREC_CUDA_THREADS_)
        total += partial[i];
    total = mixprec_cuda_reduce_<true>(total);
    if (threadIdx.x == 0)
        *norm = (float)sqrt(total);
}

/* mixprec_clip_coefficient; NaN stays, as in PyTorch. */
MIXPREC_CUDA_DEV_ float mixprec_cuda_clip_of_(double norm, double max_norm) {
    uint64_t bits = mixprec_cuda_bits64_(max_norm);
    double ratio = max_norm / (norm + 1e-6);
    const bool unlimited = (bits >> 63 && bits <= (uint64_t)0xFFF << 52) || bits == 0;
    return unlimited || ratio > 1 ? 1.0f : mixprec_cuda_to_f32_(ratio);
}
static __global__ void mixprec_cuda_clip_coefficient_(float *clip, float *inverse_scale, const float *norm,
                                                      double max_norm, mixprec_scaler *scaler) {
    const float inverse = scaler ? mixprec_cuda_div_(1.0f, scaler->scale) : 1.0f;
    const double unscaled = __dmul_rn(mixprec_cuda_f64_(*norm), mixprec_cuda_f64_(inverse));
    const uint64_t most = 0x47EFFFFFE0000000u; /* of fp32 */
    if (inverse_scale)
        *inverse_scale = inverse;
    if (clip)
        *clip = mixprec_cuda_clip_of_(unscaled, max_norm);
    if (scaler && (mixprec_cuda_bits64_(unscaled) & ~((uint64_t)1 << 63)) > most)
        scaler->found_inf = 1;
}

struct mixprec_cuda_clip_op_ { /* p: dst, src */
    static const bool any_round = false;
    mixprec_dtype dst_type, src_type;
    const float *norm;
    float max_norm, factor;
    __device__ bool begin() {
        factor = mixprec_cuda_clip_of_(mixprec_cuda_f64_(*norm), mixprec_cuda_f64_(max_norm));
        return true;
    }
    __device__ mixprec_cuda_rounding_ rounding(const mixprec_cuda_item_ &) {
        return {MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0, 0};
    }
    template <bool exact> __device__ float one(float x, const mixprec_cuda_item_ &) {
        return exact ? mixprec_cuda_scaled_(x, factor) : mixprec_cuda_mul_(x, factor);
    }
    __device__ void unit() {
    }
    __device__ void end() {
    }
};

/* p: dst, src, scale, amax, inverse, step. any_round: a tensor has another rounding than to nearest even */
template <bool any_round_> struct mixprec_cuda_quantize_op_ {
    static const bool any_round = any_round_;
    mixprec_dtype dst_type, src_type;
    uint32_t largest; /* of the chunks that this block has had of a tensor */
    float scale;
    uint64_t seed;
    __device__ bool begin() {
        largest = 0;
        dst_type = dst_type == MIXPREC_E5M2 ? MIXPREC_E5M2 : MIXPREC_E4M3; /* no other: the compiler is to know */
        return true;
    }
    /* Not for each element: what is written to p[0] might change it, for all the compiler knows. */
    __device__ void enter(const mixprec_cuda_item_ &item) {
        scale = *(const float *)item.p[2];
        seed = item.seed + (item.p[5] ? *(const uint64_t *)item.p[5] : 0);
    }
    __device__ mixprec_cuda_rounding_ rounding(const mixprec_cuda_item_ &item) {
        return {any_round ? (mixprec_round)item.round : MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_SATURATE, seed,
                item.offset};
    }
    template <bool exact> __device__ float one(float x, const mixprec_cuda_item_ &) {
        largest = mixprec_cuda_larger_(largest, x);
        return exact ? mixprec_cuda_scaled_(x, scale) : mixprec_cuda_mul_(x, scale);
    }
    __device__ void unit() {
    }
    __device__ void leave(const mixprec_cuda_item_ &item) {
        const uint32_t own = largest;
        largest = 0;                       /* of the next tensor */
        if (item.p[4] && threadIdx.x == 0) /* all blocks write the same */
            *(float *)item.p[4] = mixprec_cuda_div_(1.0f, *(const float *)item.p[2]);
        if (!item.p[3])
            return;
        uint32_t all = mixprec_cuda_reduce_<false>(own);
        if (threadIdx.x == 0 && all)
            atomicMax((unsigned int *)item.p[3], all);
        __syncthreads();
    }
    __device__ void end() {
    }
};
template <bool any_round_>
MIXPREC_CUDA_DEV_ void mixprec_cuda_enter_(mixprec_cuda_quantize_op_<any_round_> &op, const mixprec_cuda_item_ &item) {
    op.enter(item);
}
template <bool any_round_>
MIXPREC_CUDA_DEV_ void mixprec_cuda_leave_(mixprec_cuda_quantize_op_<any_round_> &op, const mixprec_cuda_item_ &item) {
    op.leave(item);
}

/* ---- optimisers ---- */

/* x^n by squaring, as the CPU has it. */
MIXPREC_CUDA_DEV_ double mixprec_cuda_power_(double x, uint64_t n) {
    double power = 1;
    for (; n; n >>= 1) {
        if (n & 1)
            power = __dmul_rn(power, x);
        x = __dmul_rn(x, x);
    }
    return power;
}

/* Neither negative, but -0 is, nor NaN or Inf. */
static __host__ __device__ __forceinline__ bool mixprec_cuda_is_clip_(float clip) {
    const uint32_t bits = mixprec_cuda_bits_(clip);
    return bits < 0x7F800000u || bits == 0x80000000u;
}
static __host__ __device__ __forceinline__ bool mixprec_cuda_is_hyperparameter_(double x) {
    const uint64_t bits = mixprec_cuda_bits64_(x);
    return bits < 0x47EFFFFFF0000000 || bits == (uint64_t)1 << 63;
}
/* Counts the step, unless it is skipped, and leaves its constants. */
MIXPREC_CUDA_DEV_ bool mixprec_cuda_begin_step_(mixprec_cuda_optimizer_state *state, float inverse_scale, float clip,
                                                double *rate, const mixprec_cuda_step &device) {
    if (device.inverse_scale)
        inverse_scale = *device.inverse_scale;
    if (device.clip)
        clip = *device.clip;
    if (device.learning_rate)
        *rate = *device.learning_rate;
    state->now_.skip = (device.found_inf && *device.found_inf) ||
                       mixprec_cuda_bits_(inverse_scale) - 1u >= 0x7F7FFFFFu || !mixprec_cuda_is_clip_(clip) ||
                       !mixprec_cuda_is_hyperparameter_(*rate);
    state->now_.inverse_scale = inverse_scale;
    state->now_.clip = clip;
    if (!state->now_.skip)
        state->step++;
    return !state->now_.skip;
}
static __global__ void mixprec_cuda_begin_adam_(mixprec_cuda_optimizer_state *state, mixprec_adam adam,
                                                float inverse_scale, float clip, mixprec_cuda_step device) {
    if (!mixprec_cuda_begin_step_(state, inverse_scale, clip, &adam.learning_rate, device))
        return;
    auto *now = &state->now_;
    double correction1 = 1 - mixprec_cuda_power_(adam.beta1, state->step);
    double correction2 = 1 - mixprec_cuda_power_(adam.beta2, state->step);
    now->decay = !adam.decoupled && adam.weight_decay > 0;
    now->weight_decay = mixprec_cuda_to_f32_(adam.weight_decay);
    now->keep = adam.decoupled ? mixprec_cuda_to_f32_(1 - __dmul_rn(adam.learning_rate, adam.weight_decay)) : 1.0f;
    now->beta1 = mixprec_cuda_to_f32_(adam.beta1);
    now->rest1 = mixprec_cuda_to_f32_(1 - adam.beta1);
    now->beta2 = mixprec_cuda_to_f32_(adam.beta2);
    now->rest2 = mixprec_cuda_to_f32_(1 - adam.beta2);
    now->correction = mixprec_cuda_to_f32_(sqrt(correction2));
    now->epsilon = mixprec_cuda_to_f32_(adam.epsilon);
    now->rate = mixprec_cuda_to_f32_(adam.learning_rate / correction1);
}
static __global__ void mixprec_cuda_begin_sgd_(mixprec_cuda_optimizer_state *state, mixprec_sgd sgd,
                                               float inverse_scale, float clip, mixprec_cuda_step device) {
    if (!mixprec_cuda_begin_step_(state, inverse_scale, clip, &sgd.learning_rate, device))
        return;
    auto *now = &state->now_;
    now->decay = sgd.weight_decay > 0;
    now->weight_decay = mixprec_cuda_to_f32_(sgd.weight_decay);
    now->beta1 = mixprec_cuda_to_f32_(sgd.momentum);
    now->rest1 = mixprec_cuda_to_f32_(1 - sgd.dampening);
    now->rate = mixprec_cuda_to_f32_(sgd.learning_rate);
    now->first = state->step == 1;
    now->nesterov = sgd.nesterov != 0;
}

/* p: gradient, master, model, compensation, moment1, moment2. Item: src_type the gradient's, dst_type the model's. The
   order of mixprec_adam_c_ and mixprec_sgd_c_, each operation rounded. */
template <bool adam> struct mixprec_cuda_optimizer_op_ {
    const mixprec_cuda_optimizer_state *state;
    int moments;
    /* Of state, in registers: what is written might change it, for all the compiler knows. */
    decltype(mixprec_cuda_optimizer_state::now_) now;
    uint64_t count;
    __device__ bool begin() {
        now = state->now_;
        count = state->step;
        return !now.skip;
    }
    /* One element. */
    __device__ void update(float &w, float g, float &m, float &v) {
        g = mixprec_cuda_mul_(mixprec_cuda_mul_(g, now.inverse_scale), now.clip);
        if (adam)
            w = mixprec_cuda_mul_(w, now.keep);
        if (now.decay)
            g = mixprec_cuda_add_(g, mixprec_cuda_mul_(now.weight_decay, w));
        if (adam) {
            m = mixprec_cuda_add_(mixprec_cuda_mul_(now.beta1, m), mixprec_cuda_mul_(now.rest1, g));
            v = mixprec_cuda_add_(mixprec_cuda_mul_(now.beta2, v),
                                  mixprec_cuda_mul_(mixprec_cuda_mul_(now.rest2, g), g));
            float d = mixprec_cuda_add_(mixprec_cuda_div_(mixprec_cuda_sqrt_(v), now.correction), now.epsilon);
            w = mixprec_cuda_sub_(w, mixprec_cuda_div_(mixprec_cuda_mul_(now.rate, m), d));
            return;
        }
        if (moments) {
            m = now.first ? g : mixprec_cuda_add_(mixprec_cuda_mul_(now.beta1, m), mixprec_cuda_mul_(now.rest1, g));
            g = now.nesterov ? mixprec_cuda_add_(g, mixprec_cuda_mul_(now.beta1, m)) : m;
        }
        w = mixprec_cuda_sub_(w, mixprec_cuda_mul_(now.rate, g));
    }
    __device__ mixprec_cuda_rounding_ rounding(const mixprec_cuda_item_ &item) {
        return {(mixprec_round)item.round, (mixprec_overflow)item.overflow, item.seed + count, item.offset};
    }
    __device__ static void read(uint32_t (&raw)[8], const void *base, size_t size, size_t i) {
        if (size == 4)
            mixprec_cuda_read8_<4, MIXPREC_CUDA_GAP_>(raw, base, i);
        else if (size == 2)
            mixprec_cuda_read8_<2, MIXPREC_CUDA_GAP_>(raw, base, i);
        else
            mixprec_cuda_read8_<1, MIXPREC_CUDA_GAP_>(raw, base, i);
    }
    __device__ static void write(void *base, size_t size, size_t i, const uint32_t (&raw)[8]) {
        if (size == 4)
            mixprec_cuda_write8_<4, MIXPREC_CUDA_GAP_>(base, i, raw);
        else if (size == 2)
            mixprec_cuda_write8_<2, MIXPREC_CUDA_GAP_>(base, i, raw);
        else
            mixprec_cuda_write8_<1, MIXPREC_CUDA_GAP_>(base, i, raw);
    }
    __device__ static void narrow(uint32_t (&raw)[8], const float (&w)[8], mixprec_dtype type,
                                  const mixprec_cuda_rounding_ &how, size_t i) {
        float left[8];
        uint32_t code[8] = {};
        if (mixprec_cuda_narrow8_any_(raw, w, type, how, i))
            return;
#pragma unroll
        for (int e = 0; e < 8; e++)
            left[e] = w[e];
#pragma unroll 1 /* one copy of what is long and rare, past which the eight go round */
        for (int e = 0; e < 8; e++) {
            uint32_t last = mixprec_cuda_code_(left[0], type, how, i + (size_t)(e / 4 * MIXPREC_CUDA_GAP_ + e % 4));
#pragma unroll
            for (int next = 1; next < 8; next++)
                left[next - 1] = left[next], code[next - 1] = code[next];
            code[7] = last;
        }
        mixprec_cuda_pack8_(raw, code, mixprec_cuda_size_(type));
    }
    /* A unit, all there and aligned: all is read first. Results are no signalling NaNs, so f32 is written as it is. */
    __device__ void whole(const mixprec_cuda_item_ &item, size_t i) {
        const mixprec_dtype model_type = (mixprec_dtype)item.dst_type, grad_type = (mixprec_dtype)item.src_type;
        const mixprec_dtype weight_type = item.p[1] ? MIXPREC_F32 : model_type;
        const size_t model_size = mixprec_cuda_size_(model_type);
        const mixprec_cuda_rounding_ nearest = {MIXPREC_ROUND_NEAREST_EVEN, (mixprec_overflow)item.overflow, 0, 0};
        uint32_t g_raw[8], w_raw[8], m_raw[8] = {}, v_raw[8] = {}, rest_raw[8] = {};
        float w[8], g[8], rest[8], m[8], v[8];
        read(g_raw, item.p[0], mixprec_cuda_size_(grad_type), i);
        read(w_raw, item.p[1] ? item.p[1] : item.p[2], mixprec_cuda_size_(weight_type), i);
        if (moments)
            read(m_raw, item.p[4], 4, i);
        if (adam)
            read(v_raw, item.p[5], 4, i);
        if (item.p[3])
            read(rest_raw, item.p[3], model_size, i);
        MIXPREC_CUDA_BY_TYPE_(grad_type, mixprec_cuda_widen8_(g, g_raw, constant));
        MIXPREC_CUDA_BY_TYPE_(weight_type, mixprec_cuda_widen8_(w, w_raw, constant));
        if (item.p[3]) {
            MIXPREC_CUDA_BY_TYPE_(model_type, mixprec_cuda_widen8_(rest, rest_raw, constant));
#pragma unroll
            for (int e = 0; e < 8; e++)
                w[e] = mixprec_cuda_add_(w[e], rest[e]);
        }
        mixprec_cuda_widen8_(m, m_raw, MIXPREC_F32);
        mixprec_cuda_widen8_(v, v_raw, MIXPREC_F32);
#pragma unroll
        for (int e = 0; e < 8; e++)
            update(w[e], g[e], m[e], v[e]);
        if (adam) {
            mixprec_cuda_narrow8_(v_raw, v, MIXPREC_F32, MIXPREC_OVERFLOW_IEEE);
            write(item.p[5], 4, i, v_raw);
        }
        if (moments) {
            mixprec_cuda_narrow8_(m_raw, m, MIXPREC_F32, MIXPREC_OVERFLOW_IEEE);
            write(item.p[4], 4, i, m_raw);
        }
        if (item.p[1]) {
            mixprec_cuda_narrow8_(w_raw, w, MIXPREC_F32, MIXPREC_OVERFLOW_IEEE);
            write(item.p[1], 4, i, w_raw);
        }
        if (item.p[2]) {
            narrow(w_raw, w, model_type, rounding(item), i);
            write(item.p[2], model_size, i, w_raw);
            if (item.p[3]) {
                MIXPREC_CUDA_BY_TYPE_(model_type, mixprec_cuda_widen8_(rest, w_raw, constant));
#pragma unroll
                for (int e = 0; e < 8; e++) /* what the rounding lost: exact */
                    rest[e] = mixprec_cuda_sub_(w[e], rest[e]);
                narrow(g_raw, rest, model_type, nearest, i);
                write(item.p[3], model_size, i, g_raw);
            }
        }
    }
    /* An element, wherever it is. */
    __device__ void one(const mixprec_cuda_item_ &item, size_t i) {
        const mixprec_dtype model_type = (mixprec_dtype)item.dst_type;
        const size_t model_size = mixprec_cuda_size_(model_type);
        const mixprec_cuda_rounding_ nearest = {MIXPREC_ROUND_NEAREST_EVEN, (mixprec_overflow)item.overflow, 0, 0};
        float g = mixprec_cuda_load_(item.p[0], (mixprec_dtype)item.src_type, i), m = 0, v = 0;
        float w = item.p[1] ? ((const float *)item.p[1])[i] : mixprec_cuda_load_(item.p[2], model_type, i);
        if (item.p[3])
            w = mixprec_cuda_add_(w, mixprec_cuda_load_(item.p[3], model_type, i));
        if (moments)
            m = ((const float *)item.p[4])[i];
        if (adam)
            v = ((const float *)item.p[5])[i];
        update(w, g, m, v);
        if (adam)
            ((float *)item.p[5])[i] = v;
        if (moments)
            ((float *)item.p[4])[i] = m;
        if (item.p[1])
            ((float *)item.p[1])[i] = w;
        if (item.p[2]) {
            uint32_t code = mixprec_cuda_code_(w, model_type, rounding(item), i);
            mixprec_cuda_put_(item.p[2], model_size, i, code);
            if (item.p[3]) /* what the rounding lost: exact */
                mixprec_cuda_put_(item.p[3], model_size, i,
                                  mixprec_cuda_code_(mixprec_cuda_sub_(w, mixprec_cuda_decode_(code, model_type)),
                                                     model_type, nearest, i));
        }
    }
    __device__ void step(const mixprec_cuda_item_ &item, size_t i, size_t end) {
        if (item.whole == 63 && i + MIXPREC_CUDA_GAP_ + 4 <= end) {
            whole(item, i);
            return;
        }
#pragma unroll 1
        for (int e = 0; e < 8; e++) {
            size_t at = i + e / 4 * MIXPREC_CUDA_GAP_ + e % 4;
            if (at < end)
                one(item, at);
        }
    }
    __device__ void end() {
    }
};
template <bool adam>
MIXPREC_CUDA_DEV_ void mixprec_cuda_chunk_(mixprec_cuda_optimizer_op_<adam> &op, const mixprec_cuda_item_ &item,
                                           uint32_t chunk) {
    size_t begin = (size_t)chunk * MIXPREC_CUDA_CHUNK_, n = item.n;
    size_t end = n - begin > MIXPREC_CUDA_CHUNK_ ? begin + MIXPREC_CUDA_CHUNK_ : n;
    size_t i = begin + threadIdx.x / 32 * 256 + threadIdx.x % 32 * 4;
    for (; i < end; i += MIXPREC_CUDA_THREADS_ * 8)
        op.step(item, i, end);
}

/* ---- one thread, or few ---- */

/* mixprec_scaler_update, statement by statement. */
static __global__ void mixprec_cuda_scaler_update_(mixprec_scaler *s, int32_t *take_step) {
    int found = s->found_inf != 0;
    float scale = s->scale, least = s->min_scale, most = s->max_scale;
#define MIXPREC_CUDA_IS_SCALE_(x) (mixprec_cuda_bits_(x) >= 0x00800000u && mixprec_cuda_bits_(x) < 0x7F800000u)
    least = MIXPREC_CUDA_IS_SCALE_(least) ? least : mixprec_cuda_float_(0x00800000u);
    most = MIXPREC_CUDA_IS_SCALE_(most) ? most : mixprec_cuda_float_(0x7F7FFFFFu);
    s->found_inf = 0;
    if (found) {
        s->growth_tracker = 0;
        if (s->hysteresis_used < s->hysteresis)
            s->hysteresis_used++;
        if (s->hysteresis_used >= s->hysteresis)
            scale = (float)((double)scale * s->backoff_factor);
    } else {
        if (s->growth_tracker < INT32_MAX)
            s->growth_tracker++;
        if (s->growth_tracker >= s->growth_interval) {
            float grown = (float)((double)scale * s->growth_factor);
            s->growth_tracker = 0;
            s->hysteresis_used = 0;
            if (MIXPREC_CUDA_IS_SCALE_(grown) && grown <= most)
                scale = grown;
        }
    }
    if (!MIXPREC_CUDA_IS_SCALE_(scale) || scale < least || most < least)
        scale = least;
    s->scale = scale < most || most < least ? scale : most;
#undef MIXPREC_CUDA_IS_SCALE_
    if (take_step)
        *take_step = !found;
}

/* TransformerEngine's compute_scale_from_amax. */
MIXPREC_CUDA_DEV_ float mixprec_cuda_scale_of_(float amax, mixprec_dtype dtype, int power_of_two) {
    uint32_t bits = mixprec_cuda_bits_(amax);
    float scale;
    if (bits == 0 || bits >= 0x7F800000u)
        return 1.0f;
    scale = mixprec_cuda_div_(dtype == MIXPREC_E4M3 ? MIXPREC_E4M3_MAX : MIXPREC_E5M2_MAX, amax);
    bits = mixprec_cuda_bits_(scale);
    if (bits == 0x7F800000u)
        bits = 0x7F7FFFFFu;
    return mixprec_cuda_float_(power_of_two ? bits & 0x7F800000u : bits);
}
static __global__ void mixprec_cuda_scale_of_amax_(float *scale, float *inverse, const float *amax, size_t count,
                                                   mixprec_dtype dtype, int power_of_two) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        float s = mixprec_cuda_scale_of_(amax[i], dtype, power_of_two);
        scale[i] = s;
        if (inverse)
            inverse[i] = mixprec_cuda_div_(1.0f, s);
    }
}

/* mixprec_delayed_scaling_update, a block for each. */
static __global__ void __launch_bounds__(MIXPREC_CUDA_THREADS_)
    mixprec_cuda_delayed_scaling_(mixprec_delayed_scaling *scaling, float *amaxes) {
    mixprec_delayed_scaling *s = scaling + blockIdx.x;
    mixprec_dtype dtype = s->dtype;
    const uint32_t length = (uint32_t)s->history_length, last = length - 1;
    const float amax = mixprec_cuda_float_(mixprec_cuda_bits_(amaxes[blockIdx.x]) & 0x7FFFFFFFu);
    float *history = s->history, max;
    uint32_t largest = 0; /* of the magnitudes that are no NaN */
    max = dtype == MIXPREC_I8 ? 127.0f
                              : mixprec_cuda_float_(mixprec_cuda_widen_(mixprec_cuda_layout_(dtype).max_code,
                                                                        mixprec_cuda_layout_(dtype)));
    if (!history || s->history_length - 1 >= 0x7FFFFFFFu || s->margin < -64 || s->margin > 64 || dtype == MIXPREC_F32 ||
        max == 0)
        return;
    for (uint32_t i = threadIdx.x; i < (s->most_recent ? 1 : length); i += MIXPREC_CUDA_THREADS_) {
        uint32_t bits = mixprec_cuda_bits_(i ? history[i] : amax) & 0x7FFFFFFFu;
        largest = bits <= 0x7F800000u && bits > largest ? bits : largest;
    }
    largest = mixprec_cuda_reduce_<false>(largest); /* a barrier, too: all have read amax, history and the fields */
    if (threadIdx.x == 0) {
        if (largest && largest < 0x7F800000u) { /* the quotient fits in fp32 exactly or rounds once */
            double two = mixprec_cuda_double_((uint64_t)(1023 - s->margin) << 52);
            double most = mixprec_cuda_f64_(mixprec_cuda_float_(largest));
            uint32_t bits = mixprec_cuda_bits_(mixprec_cuda_to_f32_(__dmul_rn(mixprec_cuda_f64_(max), two) / most));
            bits = bits < 0x7F800000u ? bits : 0x7F7FFFFFu;
            s->scale = mixprec_cuda_float_(bits > 0x00800000u ? bits : 0x00800000u);
        }
        amaxes[blockIdx.x] = 0;
    }
    if (mixprec_cuda_bits_(amax) << 1)
        for (uint32_t begin = 1; begin <= last; begin += MIXPREC_CUDA_THREADS_) {
            uint32_t i = begin + threadIdx.x;
            float next = i < last ? history[i + 1] : amax;
            __syncthreads(); /* all have read what comes next */
            if (i <= last)
                history[i] = next;
        }
    if (threadIdx.x == 0)
        history[0] = 0;
}

/* ---- conversion between any two dtypes, in any mode ---- */

/* E2M1 is packed: a thread has two elements, one byte of it. */
static __global__ void __launch_bounds__(MIXPREC_CUDA_THREADS_)
    mixprec_cuda_convert_any_(void *dst, mixprec_dtype dst_type, const void *src, mixprec_dtype src_type, size_t n,
                              mixprec_convert_options how, mixprec_layout_ to, mixprec_layout_ from) {
    size_t stride = (size_t)gridDim.x * blockDim.x * 2, size = mixprec_cuda_size_(src_type);
    for (size_t i = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * 2; i < n; i += stride) {
        uint32_t byte = 0;
        for (int e = 0; e < 2 && i + e < n; e++) {
            uint32_t code = 0, random = 0;
            uint64_t wide;
            if (src_type == MIXPREC_F64)
                wide = ((const uint64_t *)src)[i + e];
            else {
                code = src_type == MIXPREC_E2M1 ? (uint32_t)((const uint8_t *)src)[i / 2] >> (e * 4) & 0xF
                                                : mixprec_cuda_element_plain_(src, size, i + e);
                if (src_type == MIXPREC_E8M0 || src_type == MIXPREC_I8)
                    code = mixprec_cuda_bits_(mixprec_cuda_to_f32_(mixprec_cuda_decode(code, src_type)));
                else if (src_type != MIXPREC_F32)
                    code = mixprec_cuda_widen_(code, from);
                if (how.scale != 1.0f)
                    code = mixprec_cuda_bits_(mixprec_cuda_scaled_(mixprec_cuda_float_(code), how.scale));
                wide = mixprec_cuda_widen64_(code);
            }
            if (src_type == MIXPREC_F64 && how.scale != 1.0f && (wide & 0x7FFFFFFFFFFFFFFFu) <= (uint64_t)0x7FF << 52)
                wide = mixprec_cuda_bits64_(
                    __dmul_rn(mixprec_cuda_double_(wide),
                              mixprec_cuda_double_(mixprec_cuda_widen64_(mixprec_cuda_bits_(how.scale)))));
            if (how.round == MIXPREC_ROUND_STOCHASTIC)
                random = mixprec_cuda_random_bits(how.seed, how.offset + i + e);
            if (dst_type == MIXPREC_F64) {
                uint64_t magnitude = wide & 0x7FFFFFFFFFFFFFFFu;
                if (magnitude > (uint64_t)0x7FF << 52)
                    wide |= (uint64_t)1 << 51;
                ((uint64_t *)dst)[i + e] =
                    how.overflow == MIXPREC_OVERFLOW_SATURATE && magnitude == (uint64_t)0x7FF << 52 ? wide - 1 : wide;
                continue;
            }
            code = dst_type == MIXPREC_E8M0 ? mixprec_cuda_narrow_e8m0_(wide, how.round, how.overflow, random)
                   : dst_type == MIXPREC_I8 ? (uint32_t)mixprec_cuda_narrow_i8_(wide, how.round, random)
                                            : mixprec_cuda_narrow64_(wide, to, how.round, how.overflow, random);
            if (dst_type == MIXPREC_E2M1)
                byte |= code << (e * 4);
            else
                mixprec_cuda_put_(dst, mixprec_cuda_size_(dst_type), i + e, code);
        }
        if (dst_type == MIXPREC_E2M1)
            ((uint8_t *)dst)[i / 2] = (uint8_t)byte;
    }
}

/* ---- tiles of matrices ---- */

/* Four rows of eight columns from row i, column j on: the units of a thread. Rows begin anywhere in memory. */
#define MIXPREC_CUDA_ROWS_ 4
typedef struct mixprec_cuda_rows_ {
    size_t at;        /* of the first element */
    uint32_t present; /* rows */
    uint32_t across;  /* elements of a row: 8 or, at the edge, fewer */
} mixprec_cuda_rows_;
MIXPREC_CUDA_DEV_ mixprec_cuda_rows_ mixprec_cuda_rows_at_(const mixprec_cuda_item_ &item, size_t i, size_t j) {
    size_t rows = item.rows, columns = item.columns;
    mixprec_cuda_rows_ x;
    x.at = i * columns + j;
    x.present = i >= rows ? 0 : rows - i < MIXPREC_CUDA_ROWS_ ? (uint32_t)(rows - i) : MIXPREC_CUDA_ROWS_;
    x.across = j >= columns ? 0 : columns - j < 8 ? (uint32_t)(columns - j) : 8;
    return x;
}
/* May all four be read or written as vectors? */
MIXPREC_CUDA_DEV_ bool mixprec_cuda_whole_rows_(const mixprec_cuda_rows_ &x, size_t columns, const void *base,
                                                size_t size) {
    return x.present == MIXPREC_CUDA_ROWS_ && x.across == 8 &&
           (((uintptr_t)base + x.at * size) | columns * size) % (size == 1 ? 8 : 16) == 0;
}
/* 128 rows of 64 columns, of which a thread has 4 x 8. Columns lie in shared memory one after another, in pieces of 16
   bytes that are exchanged so that neither the writing of four rows nor the reading of a piece meets a bank twice.
   p: dst, src, transposed, scale */
#define MIXPREC_CUDA_TILE_ROWS_ 128
#define MIXPREC_CUDA_TILE_COLUMNS_ 64
struct mixprec_cuda_transpose_op_ {
    mixprec_dtype dst_type, src_type;
    mixprec_overflow overflow;
    __device__ bool begin() {
        return true;
    }
    __device__ static void *at_shared(uint32_t column, uint32_t byte, size_t size) {
        return mixprec_cuda_shared_() + column * (MIXPREC_CUDA_TILE_ROWS_ * (uint32_t)size) +
               ((byte / 16 ^ column / 8) * 16 + byte % 16);
    }
    /* Rows r to r + 3 of columns c to c + 7 of the tile; false: not to be had by instructions. In one piece for each
       pair of types, so that the words as they were read wait for their turn, not twice as many floats. */
    template <mixprec_dtype from, mixprec_dtype type>
    __device__ static bool four(const mixprec_cuda_item_ &item, size_t at, uint32_t r, uint32_t c, float scale,
                                const mixprec_cuda_rounding_ &how) {
        const int size = mixprec_cuda_size_of_<type>::bytes;
        const float limit = mixprec_cuda_limit_(type, how);
        uint32_t raw[MIXPREC_CUDA_ROWS_][8];
        bool above = false;
#pragma unroll
        for (int u = 0; u < MIXPREC_CUDA_ROWS_; u++)
            mixprec_cuda_read8_<mixprec_cuda_size_of_<from>::bytes, 4>(raw[u], item.p[1], at + u * item.columns);
#pragma unroll
        for (int u = 0; u < MIXPREC_CUDA_ROWS_; u++) {
            float v[8];
            mixprec_cuda_widen8_(v, raw[u], from);
#pragma unroll
            for (int e = 0; e < 8; e++)
                v[e] = mixprec_cuda_mul_(v[e], scale);
            above |= mixprec_cuda_any_above_(v, limit);
            mixprec_cuda_narrow8_(raw[u], v, type, how.overflow);
        }
        if (above)
            return false;
#pragma unroll
        for (int u = 0; u < MIXPREC_CUDA_ROWS_; u++)
            if (item.p[0])
                mixprec_cuda_write8_<size, 4>(item.p[0], at + u * item.columns, raw[u]);
#pragma unroll
        for (uint32_t e = 0; e < 8; e++) { /* a column of four rows */
            void *to = (unsigned char *)at_shared(c, r * size, size) + e * (MIXPREC_CUDA_TILE_ROWS_ * size);
            if (size == 4) {
                *(uint4 *)to = make_uint4(raw[0][e], raw[1][e], raw[2][e], raw[3][e]);
            } else if (size == 2) {
                const uint32_t w = e / 2, half = e % 2 ? 0x7632 : 0x5410;
                *(uint2 *)to =
                    make_uint2(__byte_perm(raw[0][w], raw[1][w], half), __byte_perm(raw[2][w], raw[3][w], half));
            } else {
                const uint32_t w = e / 4, pairs = e % 4 < 2 ? 0x5140 : 0x7362, half = e % 2 ? 0x7632 : 0x5410;
                *(uint32_t *)to = __byte_perm(__byte_perm(raw[0][w], raw[1][w], pairs),
                                              __byte_perm(raw[2][w], raw[3][w], pairs), half);
            }
        }
        return true;
    }
    template <mixprec_dtype from>
    __device__ static bool four(const mixprec_cuda_item_ &item, size_t at, uint32_t r, uint32_t c, float scale,
                                mixprec_dtype type, const mixprec_cuda_rounding_ &how) {
        MIXPREC_CUDA_BY_TYPE_(type, return (four<from, constant>(item, at, r, c, scale, how)));
        return false;
    }
    __device__ bool fast(const mixprec_cuda_item_ &item, size_t at, uint32_t r, uint32_t c, float scale,
                         const mixprec_cuda_rounding_ &how) {
        MIXPREC_CUDA_BY_TYPE_(src_type, return four<constant>(item, at, r, c, scale, dst_type, how));
        return false;
    }
    __device__ void tile(const mixprec_cuda_item_ &item, uint32_t index) {
        const size_t dst_size = mixprec_cuda_size_(dst_type), src_size = mixprec_cuda_size_(src_type);
        const mixprec_cuda_rounding_ how = {MIXPREC_ROUND_NEAREST_EVEN, overflow, 0, 0};
        const float scale = item.p[3] ? *(const float *)item.p[3] : 1.0f;
        void *dst = item.p[0], *transposed = item.p[2];
        size_t rows = item.rows, columns = item.columns;
        uint32_t tiles = (uint32_t)((columns + MIXPREC_CUDA_TILE_COLUMNS_ - 1) / MIXPREC_CUDA_TILE_COLUMNS_);
        size_t i0 = (size_t)(index / tiles) * MIXPREC_CUDA_TILE_ROWS_;
        size_t j0 = (size_t)(index % tiles) * MIXPREC_CUDA_TILE_COLUMNS_;
        uint32_t r = threadIdx.x / 8 * MIXPREC_CUDA_ROWS_, c = threadIdx.x % 8 * 8;
        const mixprec_cuda_rows_ x = mixprec_cuda_rows_at_(item, i0 + r, j0 + c);
        if (!(mixprec_cuda_whole_rows_(x, columns, item.p[1], src_size) &&
              (!dst || mixprec_cuda_whole_rows_(x, columns, dst, dst_size)) && fast(item, x.at, r, c, scale, how)))
#pragma unroll 1
            for (uint32_t e = 0; e < x.present * 8; e++) {
                size_t at = x.at + e / 8 * columns + e % 8;
                if (e % 8 >= x.across)
                    continue;
                uint32_t code = mixprec_cuda_code_(
                    mixprec_cuda_scaled_(mixprec_cuda_load_(item.p[1], src_type, at), scale), dst_type, how, 0);
                if (dst)
                    mixprec_cuda_put_(dst, dst_size, at, code);
                mixprec_cuda_put_(at_shared(c + e % 8, (r + e / 8) * (uint32_t)dst_size, dst_size), dst_size, 0, code);
            }
        __syncthreads();
        const uint32_t pieces = MIXPREC_CUDA_TILE_ROWS_ * (uint32_t)dst_size / 16, piece_rows = 16 / (uint32_t)dst_size;
        const bool aligned = ((uintptr_t)transposed | rows * dst_size) % 16 == 0;
#pragma unroll 1
        for (uint32_t p = threadIdx.x; p < MIXPREC_CUDA_TILE_COLUMNS_ * pieces; p += MIXPREC_CUDA_THREADS_) {
            uint32_t column = p / pieces;
            size_t i = i0 + p % pieces * piece_rows, at = (j0 + column) * rows + i;
            const void *from = at_shared(column, p % pieces * 16, dst_size);
            if (j0 + column >= columns)
                break;
            if (aligned && i + piece_rows <= rows)
                *(uint4 *)(void *)((unsigned char *)transposed + at * dst_size) = *(const uint4 *)from;
            else
#pragma unroll 1
                for (uint32_t e = 0; e < piece_rows && i + e < rows; e++)
                    mixprec_cuda_put_(transposed, dst_size, at + e, mixprec_cuda_element_plain_(from, dst_size, e));
        }
        __syncthreads(); /* before the next tile */
    }
    __device__ void end() {
    }
};
MIXPREC_CUDA_DEV_ void mixprec_cuda_chunk_(mixprec_cuda_transpose_op_ &op, const mixprec_cuda_item_ &item,
                                           uint32_t chunk) {
    op.tile(item, chunk);
}

/* The bits of the largest magnitude of a unit, as f32; of codes, too, the order is that of the magnitudes. */
template <mixprec_dtype type> MIXPREC_CUDA_DEV_ uint32_t mixprec_cuda_largest8_(const uint32_t (&raw)[8]) {
    const int size = mixprec_cuda_size_of_<type>::bytes;
    uint32_t largest = 0;
#pragma unroll
    for (int w = 0; w < 2 * size; w++)
        if (size == 4) {
            largest = mixprec_cuda_larger_(largest, mixprec_cuda_float_(raw[w]));
        } else if (size == 2) {
            largest = mixprec_cuda_max_u16x2_(largest, raw[w] & 0x7FFF7FFFu);
        } else {
            largest = mixprec_cuda_max_u16x2_(largest, raw[w] & 0x7F007F00u);
            largest = mixprec_cuda_max_u16x2_(largest, raw[w] << 8 & 0x7F007F00u);
        }
    if (size == 4)
        return largest;
    largest = largest >> 16 > (largest & 0xFFFF) ? largest >> 16 : largest & 0xFFFF;
    return mixprec_cuda_bits_(mixprec_cuda_decode_(size == 2 ? largest : largest >> 8, type));
}
/* A tile has 128 rows of 128 columns; a thread has eight of these columns in eight rows: four from its first row on,
   four from the 64th after it on. What is read waits in registers for the scale. p: dst, src, inverse */
#define MIXPREC_CUDA_BLOCK_ 128
template <bool square> struct mixprec_cuda_quantize_blocks_op_ {
    enum { apart = MIXPREC_CUDA_BLOCK_ / 2, most = 2 * MIXPREC_CUDA_ROWS_ };
    mixprec_dtype dst_type, src_type;
    int power_of_two;
    __device__ bool begin() {
        return true;
    }
    /* Where row u of a thread is, its first one being at `at`. */
    __device__ static size_t row_at(size_t at, int u, size_t columns) {
        return at + (size_t)(u / MIXPREC_CUDA_ROWS_ * apart + u % MIXPREC_CUDA_ROWS_) * columns;
    }
    /* Where element e of a thread is; false: there is none. */
    __device__ static bool element_at(size_t &at, const mixprec_cuda_rows_ (&x)[2], uint32_t e, size_t columns) {
        const mixprec_cuda_rows_ four = e < MIXPREC_CUDA_ROWS_ * 8 ? x[0] : x[1];
        const uint32_t row = e / 8 % MIXPREC_CUDA_ROWS_;
        at = four.at + row * columns + e % 8;
        return row < four.present && e % 8 < four.across;
    }
    template <mixprec_dtype type>
    __device__ static void read(uint32_t (&raw)[most][8], uint32_t (&largest)[most], const void *src, size_t at,
                                size_t columns) {
#pragma unroll
        for (int u = 0; u < most; u++)
            mixprec_cuda_read8_<mixprec_cuda_size_of_<type>::bytes, 4>(raw[u], src, row_at(at, u, columns));
#pragma unroll
        for (int u = 0; u < most; u++)
            largest[u] = mixprec_cuda_largest8_<type>(raw[u]);
    }
    /* No product is a NaN: no x is, and scales are positive and finite. */
    template <mixprec_dtype type>
    __device__ void write(void *dst, size_t at, size_t columns, const uint32_t (&raw)[most][8],
                          const float (&scale)[most]) {
#pragma unroll
        for (int u = 0; u < most; u++) {
            uint32_t codes[8];
            float v[8];
            mixprec_cuda_widen8_(v, raw[u], type);
#pragma unroll
            for (int e = 0; e < 8; e++)
                v[e] = mixprec_cuda_mul_(v[e], scale[u]);
            if (dst_type == MIXPREC_E4M3)
                mixprec_cuda_narrow8_(codes, v, MIXPREC_E4M3, MIXPREC_OVERFLOW_SATURATE);
            else
                mixprec_cuda_narrow8_(codes, v, MIXPREC_E5M2, MIXPREC_OVERFLOW_SATURATE);
            mixprec_cuda_write8_<1, 4>(dst, row_at(at, u, columns), codes);
        }
    }
    /* Of all rows of the tile. */
    __device__ void scale_of_tile(float (&scale)[most], const uint32_t (&largest)[most], float *inverse) {
        float *shared = (float *)(void *)(mixprec_cuda_shared_() + MIXPREC_CUDA_REDUCE_BYTES_);
        uint32_t all = largest[0];
#pragma unroll
        for (int u = 1; u < most; u++)
            all = largest[u] > all ? largest[u] : all;
        all = mixprec_cuda_reduce_<false>(all);
        if (threadIdx.x == 0) {
            *shared = mixprec_cuda_scale_of_(mixprec_cuda_float_(all), dst_type, power_of_two);
            *inverse = mixprec_cuda_div_(1.0f, *shared);
        }
        __syncthreads();
#pragma unroll
        for (int u = 0; u < most; u++)
            scale[u] = *shared;
    }
    /* Of each of the rows that the 16 threads of half a warp share: these halve how many rows a thread cares for until
       every other one has one, for which alone it divides. */
    __device__ void scales_of_rows(float (&scale)[most], uint32_t (&largest)[most], const mixprec_cuda_rows_ (&x)[2],
                                   float *inverse, size_t bands) {
        const uint32_t thread = threadIdx.x % 16, own = thread / 2;
#pragma unroll
        for (uint32_t rows = most / 2; rows; rows /= 2)
#pragma unroll
            for (uint32_t u = 0; u < rows; u++) {
                const bool upper = thread & 2 * rows;
                uint32_t one = upper ? largest[u + rows] : largest[u];
                uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, upper ? largest[u] : largest[u + rows], 2 * rows);
                largest[u] = other > one ? other : one;
            }
        uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, largest[0], 1), all = other > largest[0] ? other : largest[0];
        float of_own = mixprec_cuda_scale_of_(mixprec_cuda_float_(all), dst_type, power_of_two);
        if (thread % 2 == 0 && own % MIXPREC_CUDA_ROWS_ < (own < MIXPREC_CUDA_ROWS_ ? x[0] : x[1]).present)
            inverse[row_at(0, (int)own, bands)] = mixprec_cuda_div_(1.0f, of_own);
#pragma unroll
        for (int u = 0; u < most; u++)
            scale[u] = __shfl_sync(0xFFFFFFFFu, of_own, (int)(threadIdx.x & 16) + 2 * u);
    }
    __device__ void tile(const mixprec_cuda_item_ &item, uint32_t index) {
        const mixprec_cuda_rounding_ how = {MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_SATURATE, 0, 0};
        const size_t size = mixprec_cuda_size_(src_type), columns = item.columns;
        void *dst = item.p[0];
        const void *src = item.p[1];
        float *inverse = (float *)item.p[2];
        const uint32_t bands = (uint32_t)((columns + MIXPREC_CUDA_BLOCK_ - 1) / MIXPREC_CUDA_BLOCK_);
        const uint32_t band = index % bands;
        const size_t i = (size_t)(index / bands) * MIXPREC_CUDA_BLOCK_ + threadIdx.x / 16 * MIXPREC_CUDA_ROWS_;
        size_t at;
        mixprec_cuda_rows_ x[2];
        uint32_t raw[most][8], largest[most] = {};
        float scale[most];
        bool fast = true;
#pragma unroll
        for (int f = 0; f < 2; f++) {
            x[f] =
                mixprec_cuda_rows_at_(item, i + f * apart, (size_t)band * MIXPREC_CUDA_BLOCK_ + threadIdx.x % 16 * 8);
            fast = fast && mixprec_cuda_whole_rows_(x[f], columns, src, size) &&
                   mixprec_cuda_whole_rows_(x[f], columns, dst, 1);
        }
        if (fast)
            MIXPREC_CUDA_BY_TYPE_(src_type, read<constant>(raw, largest, src, x[0].at, columns));
#pragma unroll 1
        for (uint32_t e = 0; !fast && e < most * 8; e++)
            if (element_at(at, x, e, columns)) {
                float one = mixprec_cuda_load_(src, src_type, at);
#pragma unroll
                for (uint32_t u = 0; u < most; u++)
                    if (u == e / 8)
                        largest[u] = mixprec_cuda_larger_(largest[u], one);
            }
#pragma unroll
        for (int u = 0; u < most; u++)
            fast = fast && largest[u] <= 0x7F800000u;
        if (square)
            scale_of_tile(scale, largest, inverse + index);
        else
            scales_of_rows(scale, largest, x, inverse + i * bands + band, bands);
        if (fast)
            MIXPREC_CUDA_BY_TYPE_(src_type, write<constant>(dst, x[0].at, columns, raw, scale));
#pragma unroll 1
        for (uint32_t e = 0; !fast && e < most * 8; e++)
            if (element_at(at, x, e, columns)) {
                float factor = scale[0], one = mixprec_cuda_load_(src, src_type, at);
#pragma unroll
                for (uint32_t u = 1; u < most; u++)
                    factor = u == e / 8 ? scale[u] : factor;
                mixprec_cuda_put_(dst, 1, at, mixprec_cuda_code_(mixprec_cuda_scaled_(one, factor), dst_type, how, 0));
            }
    }
    __device__ void end() {
    }
};
template <bool square>
MIXPREC_CUDA_DEV_ void mixprec_cuda_chunk_(mixprec_cuda_quantize_blocks_op_<square> &op, const mixprec_cuda_item_ &item,
                                           uint32_t chunk) {
    op.tile(item, chunk);
}

/* ================================================================================================================== */
/* [CUDA-GEMM] GEMM kernels and their epilogue                                                                        */
/* ================================================================================================================== */

/* An operand as the kernels see it: `rows` rows (of op(A), or columns of op(B)) of k elements, element (row, k) at
   row * row_step + k * k_step, one of the steps being 1. */
typedef struct mixprec_cuda_operand_ {
    const void *data;
    const void *const *array;
    size_t stride, rows, row_step, k_step;
    mixprec_dtype type;
    const float *scale; /* NULL: none; of (row, k): scale[row / row_block * row_scale + k / k_block * k_scale] */
    size_t row_block, k_block, row_scale, k_scale, scale_bytes;
    int k_varies;
    bool rounded; /* to TF32 */
} mixprec_cuda_operand_;

typedef struct mixprec_cuda_gemm_args_ {
    mixprec_cuda_operand_ a, b; /* a begins at row_begin */
    size_t n, k, m, row_begin;
    void *c;
    void *const *c_array;
    size_t stride_c, ldc;
    mixprec_dtype c_type;
    float alpha, beta;
    const float *device_alpha, *device_beta;
    const void *bias;
    mixprec_dtype bias_type;
    mixprec_activation activation;
    mixprec_round round;
    mixprec_overflow overflow;
    bool narrows; /* the instructions that narrow, where there are such, do it as asked */
    uint64_t seed, offset;
    mixprec_triangle triangle;
    size_t batch_begin;
    uint32_t tiles_m, tiles_n, splits; /* splits: parts of k */
    size_t split_depth;                /* their length */
    float *partial;                    /* their sums, one part after the other, in rows of n rounded up to fours */
    uint32_t parts;                    /* products and parts of k in this launch */
    uint32_t cluster;                  /* blocks of a cluster; tiles_m counts their tiles as one */
    bool halves;                       /* the two blocks of a cluster have one tile instead, and half of k each */
    bool mapped;                       /* the copy engine brings A and B */
    bool in_place, simple;             /* every tile ends while the next one is brought; and in the simple way */
    mixprec_cuda_map_ a_map, b_map;
} mixprec_cuda_gemm_args_;

MIXPREC_CUDA_DEV_ float mixprec_cuda_alpha_(const mixprec_cuda_gemm_args_ &g) {
    return g.device_alpha ? *mixprec_cuda_global_(g.device_alpha) : g.alpha;
}
MIXPREC_CUDA_DEV_ float mixprec_cuda_beta_(const mixprec_cuda_gemm_args_ &g) {
    return g.device_beta ? *mixprec_cuda_global_(g.device_beta) : g.beta;
}
/* How a kernel of a product begins. A launch after it waits for it to end, and so for all before it. */
MIXPREC_CUDA_DEV_ void mixprec_cuda_begin_after_last_(void) {
    mixprec_cuda_let_next_begin_();
    mixprec_cuda_wait_for_last_();
}
/* Four partial sums of part z of the launch. */
MIXPREC_CUDA_DEV_ float4 *mixprec_cuda_partial_(const mixprec_cuda_gemm_args_ &g, size_t z, size_t row, size_t column) {
    return (float4 *)(void *)(mixprec_cuda_global_(g.partial) + (z * g.a.rows + row) * ((g.n + 3) / 4 * 4) + column);
}
MIXPREC_CUDA_DEV_ float mixprec_cuda_scale_at_(const mixprec_cuda_operand_ &x, size_t row, size_t k) {
    return mixprec_cuda_global_(
        x.scale)[(x.row_block ? row / x.row_block * x.row_scale : 0) + (x.k_block ? k / x.k_block * x.k_scale : 0)];
}
MIXPREC_CUDA_DEV_ const char *mixprec_cuda_base_(const mixprec_cuda_operand_ &x, size_t batch, size_t size) {
    return (const char *)mixprec_cuda_global_(x.array ? x.array[batch] : x.data) +
           (x.array ? 0 : batch * x.stride * size);
}

MIXPREC_CUDA_DEV_ float mixprec_cuda_relu_(float x) {
    return mixprec_cuda_bits_(x) - 0x80000000u <= 0x7F800000u ? 0.0f : x; /* -0 to -Inf */
}
/* x / 2 (1 + erf(x / sqrt 2)) as the CPU's (mixprec_gelu_ in mixprec.h): with a = |x|, (1 - erf(a / sqrt 2)) / 2 =
   exp(-a^2 / 2) p(t) / (4 + a), t = 4 / (4 + a). From a = 16 on exp is 0; Inf * 0 would be NaN. */
MIXPREC_CUDA_DEV_ float mixprec_cuda_gelu_(float x) {
    const float c[] = {0.067569904f, -0.258147985f, 0.223511353f, 0.0904590487f, 0.0709205717f,
                       0.335417241f, 0.292046279f,  0.3811526f,   0.398085684f,  0.398985326f};
    const float a = fminf(fabsf(x), 16.0f), square = mixprec_cuda_mul_(a, a),
                u = a * mixprec_cuda_reciprocal_(4.0f + a);
    float y = c[0];
#pragma unroll
    for (int i = 1; i < 10; i++)
        y = fmaf(y, 1.0f - u, c[i]);
    y *= u * expf(-0.5f * square);
    y = fmaf(y, -0.5f * fmaf(a, a, -square), y); /* exp of the square's rounding error */
    return (x < 0 ? -0.0f : x) - y;
}
/* x / (1 + exp(-u)): SiLU with u = x; GELU by tanh with u = 2 sqrt(2 / pi) (x + 0.044715 x^3). -0 below -87: of larger
   divisors there is no reciprocal, and -Inf * 0 would be NaN. */
MIXPREC_CUDA_DEV_ float mixprec_cuda_times_sigmoid_(float x, float u) {
    const float y = x * mixprec_cuda_reciprocal_(1.0f + expf(-u));
    return u < -87.0f ? -0.0f : y;
}

/* Long and seldom run, so one copy of each is enough. */
static __device__ __attribute__((noinline, unused)) float4 mixprec_cuda_activate_(float4 v,
                                                                                  mixprec_activation activation) {
    float x[4] = {v.x, v.y, v.z, v.w};
#define MIXPREC_CUDA_EACH_(expression) _Pragma("unroll") for (int e = 0; e < 4; e++) x[e] = expression
    if (activation == MIXPREC_ACTIVATION_GELU)
        MIXPREC_CUDA_EACH_(mixprec_cuda_gelu_(x[e]));
    else if (activation == MIXPREC_ACTIVATION_GELU_TANH)
        MIXPREC_CUDA_EACH_(mixprec_cuda_times_sigmoid_(x[e], 1.5957691f * fmaf(0.044715f * x[e] * x[e], x[e], x[e])));
    else if (activation == MIXPREC_ACTIVATION_SILU)
        MIXPREC_CUDA_EACH_(mixprec_cuda_times_sigmoid_(x[e], x[e]));
    else if (activation == MIXPREC_ACTIVATION_TANH)
        MIXPREC_CUDA_EACH_(tanhf(x[e]));
    else
        MIXPREC_CUDA_EACH_(mixprec_cuda_relu_(x[e]));
#undef MIXPREC_CUDA_EACH_
    return make_float4(x[0], x[1], x[2], x[3]);
}
static __device__ __attribute__((noinline, unused)) float mixprec_cuda_decode_rare_(uint32_t code, mixprec_dtype type) {
    return mixprec_cuda_decode_(code, type);
}
static __device__ __attribute__((noinline, unused)) float mixprec_cuda_value_rare_(const void *base, size_t i,
                                                                                   mixprec_dtype type) {
    return mixprec_cuda_decode_(mixprec_cuda_element_(base, mixprec_cuda_size_(type), i), type);
}
/* mixprec_cuda_code_ for a type of at most 16 bits, of an element that draws these random bits. */
MIXPREC_CUDA_DEV_ uint32_t mixprec_cuda_code32_(float x, mixprec_dtype type, mixprec_round round,
                                                mixprec_overflow overflow, uint32_t random) {
    const mixprec_layout_ to = mixprec_cuda_layout_(type);
    const uint32_t bits = mixprec_cuda_bits_(x), magnitude = bits & 0x7FFFFFFFu, sign = bits >> 31;
    uint32_t code;
    if (magnitude > 0x7F800000u)
        code = to.nan_code | (to.special == MIXPREC_IEEE_ ? (bits & 0x7FFFFFu) >> (23 - to.mantissa_bits) : 0);
    else if (magnitude == 0x7F800000u)
        code = overflow == MIXPREC_OVERFLOW_SATURATE ? to.max_code : to.overflow_code;
    else {
        code = mixprec_cuda_narrow_magnitude_(x, type, round, random);
        if (code > to.max_code)
            code = mixprec_cuda_overflow_to_max_(round, overflow, sign) ? to.max_code : to.overflow_code;
    }
    return code | sign * to.sign_code;
}
/* Four floats to codes of at most 16 bits in any mode, two in the lower bits of each word; the first one draws the
   random bits of `index`, the others the next. The loop goes round so that few registers are needed: a kernel that
   calls this keeps a tile's sums in most of them. */
static __device__ __attribute__((noinline, unused)) uint2 mixprec_cuda_narrow_four_(float4 v, mixprec_dtype type,
                                                                                    mixprec_round round,
                                                                                    mixprec_overflow overflow,
                                                                                    uint64_t seed, uint64_t index) {
    const bool wide = mixprec_cuda_size_(type) == 2;
    const float all[4] = {v.x, v.y, v.z, v.w};
    const bool finite = !mixprec_cuda_any_above_(all, mixprec_cuda_finite_(type));
    uint32_t random[4] = {}, low = 0, high = 0;
    if (finite && round == MIXPREC_ROUND_NEAREST_EVEN && mixprec_cuda_has_cvt_(type)) {
        MIXPREC_CUDA_BY_TYPE_(type, (low = mixprec_cuda_cvt_pair_(v.x, v.y, constant),
                                     high = mixprec_cuda_cvt_pair_(v.z, v.w, constant)));
        return make_uint2(low, high);
    }
    if (round == MIXPREC_ROUND_STOCHASTIC)
        mixprec_cuda_random4_(random, seed, index);
    if (finite && round == MIXPREC_ROUND_STOCHASTIC && type == MIXPREC_BF16) { /* the common case */
#pragma unroll
        for (int e = 0; e < 4; e++)
            random[e] = mixprec_cuda_bits_(all[e]) + (random[e] >> 16);
        return make_uint2(random[0] >> 16 | (random[1] & 0xFFFF0000u), random[2] >> 16 | (random[3] & 0xFFFF0000u));
    }
#pragma unroll 1
    for (int e = 0; e < 4; e++) {
        uint32_t code = 0;
        MIXPREC_CUDA_BY_TYPE_(type, code = mixprec_cuda_code32_(v.x, constant, round, overflow, random[0]));
        v.x = v.y, v.y = v.z, v.z = v.w;
        random[0] = random[1], random[1] = random[2], random[2] = random[3];
        if (wide)
            low = low >> 16 | high << 16, high = high >> 16 | code << 16;
        else
            low = low >> 8 | code << 24;
    }
    return wide ? make_uint2(low, high) : make_uint2(low & 0xFFFF, low >> 16);
}

/* Sums of four neighbouring columns become elements of C, in the order of mixprec_gemm_ex, each operation rounded. What
   does not change from row to row is in registers: the arguments lie in memory that, for all the compiler knows, every
   store to C changes. */
struct mixprec_cuda_columns_ {
    size_t column, pitch, batch_row; /* pitch: bytes from row to row; batch_row: where rows of the product begin */
    char *c;                         /* the first of the four, in row 0 */
    float alpha, beta, row_scale, scale[4], bias[4]; /* 1 and -0 where there are none: these change nothing */
    int count, size;
    bool nothing, rows_scaled; /* rows_scaled: each by its own */
    bool narrows;              /* mixprec_cuda_cvt_pair_ narrows as asked */
    mixprec_dtype type;
    mixprec_activation activation;
    mixprec_triangle triangle;

    __device__ __forceinline__ void begin(const mixprec_cuda_gemm_args_ &g, size_t column_, size_t batch) {
        const bool once = !g.a.k_varies && !g.b.k_varies; /* else the sums are scaled already */
        alpha = mixprec_cuda_alpha_(g), beta = mixprec_cuda_beta_(g);
        nothing = mixprec_cuda_is_zero_(alpha) || g.k == 0;
        rows_scaled = once && !nothing && g.a.scale && g.a.row_block;
        row_scale = once && !nothing && g.a.scale ? mixprec_cuda_scale_at_(g.a, 0, 0) : 1.0f;
        type = g.c_type, size = (int)mixprec_cuda_size_(type);
        activation = g.activation, triangle = g.triangle;
        column = column_, count = g.n - column < 4 ? (int)(g.n - column) : 4;
        pitch = g.ldc * size, batch_row = batch * g.m;
        c = (char *)mixprec_cuda_global_(g.c_array ? mixprec_cuda_global_(g.c_array)[batch] : g.c) +
            ((g.c_array ? 0 : batch * g.stride_c) + column) * size;
        narrows = mixprec_cuda_has_cvt_(type) && g.narrows;
#pragma unroll
        for (int e = 0; e < 4; e++) {
            scale[e] = once && !nothing && g.b.scale && e < count ? mixprec_cuda_scale_at_(g.b, column + e, 0) : 1.0f;
            bias[e] = g.bias && e < count ? mixprec_cuda_value_rare_(g.bias, column + e, g.bias_type) : -0.0f;
        }
    }
    /* Sum e of the four but for what beta and the activation do. */
    __device__ __forceinline__ float scaled(float x, int e, float of_row) const {
        return mixprec_cuda_mul_(alpha, mixprec_cuda_mul_(mixprec_cuda_mul_(x, of_row), scale[e]));
    }
    __device__ __forceinline__ float biased(float x, int e, bool relu) const {
        x = mixprec_cuda_add_(x, bias[e]);
        return relu ? mixprec_cuda_relu_(x) : x;
    }
    /* What comes after alpha; `to` is where the four go. */
    __device__ __forceinline__ void adjust(float (&v)[4], const char *to, bool whole) const {
        uint32_t code[4] = {0, 0, 0, 0};
        if (nothing)
#pragma unroll
            for (int e = 0; e < 4; e++)
                v[e] = 0;
        if (!mixprec_cuda_is_zero_(beta)) {
            if (whole && size == 4) {
                uint4 old = *(const uint4 *)to;
                code[0] = old.x, code[1] = old.y, code[2] = old.z, code[3] = old.w;
            } else if (whole && size == 2) {
                uint2 old = *(const uint2 *)to;
                code[0] = old.x & 0xFFFF, code[1] = old.x >> 16, code[2] = old.y & 0xFFFF, code[3] = old.y >> 16;
            } else
#pragma unroll
                for (int e = 0; e < 4; e++)
                    code[e] = e < count ? mixprec_cuda_element_plain_(to, size, e) : 0;
#pragma unroll
            for (int e = 0; e < 4; e++) {
                float y = mixprec_cuda_mul_(beta, type == MIXPREC_F32 ? mixprec_cuda_float_(code[e])
                                                                      : mixprec_cuda_decode_rare_(code[e], type));
                v[e] = nothing ? y : mixprec_cuda_add_(v[e], y);
            }
        }
#pragma unroll
        for (int e = 0; e < 4; e++)
            v[e] = mixprec_cuda_add_(v[e], bias[e]);
        activate(v);
    }
    __device__ __forceinline__ void activate(float (&v)[4]) const {
        if (activation == MIXPREC_ACTIVATION_NONE)
            return;
        const float4 y = mixprec_cuda_activate_(make_float4(v[0], v[1], v[2], v[3]), activation);
        v[0] = y.x, v[1] = y.y, v[2] = y.z, v[3] = y.w;
    }
    /* Codes of at most 16 bits, two in the lower bits of each word, where there are rows and columns; `aligned`: all
       four, at a multiple of their size. */
    __device__ __forceinline__ void store(char *to, uint32_t low, uint32_t high, bool aligned) const {
        if (aligned && size == 2)
            *(uint2 *)(void *)to = make_uint2(low, high);
        else if (aligned)
            *(uint32_t *)(void *)to = (low & 0xFFFF) | high << 16;
        else
#pragma unroll
            for (int e = 0; e < 4; e++)
                if (e < count)
                    mixprec_cuda_put_(to, size, e, (e < 2 ? low : high) >> e % 2 * 8 * size);
    }
    __device__ __forceinline__ void put(const mixprec_cuda_gemm_args_ &g, const float4 &sums, size_t row) const {
        char *to = c + row * pitch;
        const bool whole = count == 4 && triangle == MIXPREC_FULL && (uintptr_t)to % (4 * size) == 0;
        float v[4] = {sums.x, sums.y, sums.z, sums.w};
        uint32_t code[4];
        const float of_row = rows_scaled ? mixprec_cuda_scale_at_(g.a, row, 0) : row_scale;
#pragma unroll
        for (int e = 0; e < 4; e++)
            v[e] = scaled(v[e], e, of_row);
        adjust(v, to, whole);
        if (size == 4)
#pragma unroll
            for (int e = 0; e < 4; e++)
                code[e] = mixprec_cuda_bits_(v[e]);
        else {
            uint2 y = make_uint2(0, 0);
            if (narrows)
                MIXPREC_CUDA_BY_TYPE_(type, (y.x = mixprec_cuda_cvt_pair_(v[0], v[1], constant),
                                             y.y = mixprec_cuda_cvt_pair_(v[2], v[3], constant)));
            else
                y = mixprec_cuda_narrow_four_(make_float4(v[0], v[1], v[2], v[3]), type, g.round, g.overflow, g.seed,
                                              g.offset + (batch_row + row) * g.n + column);
            if (triangle == MIXPREC_FULL)
                return store(to, y.x, y.y, whole);
            code[0] = y.x, code[1] = y.x >> 8 * size, code[2] = y.y, code[3] = y.y >> 8 * size;
        }
        if (whole)
            *(uint4 *)to = make_uint4(code[0], code[1], code[2], code[3]);
        else
#pragma unroll
            for (int e = 0; e < 4; e++)
                if (e < count && !(triangle == MIXPREC_LOWER && column + e > row) &&
                    !(triangle == MIXPREC_UPPER && column + e < row))
                    mixprec_cuda_put_(to, size, e, code[e]);
    }
};

/* What is common: whole rows of f32, f16 or bf16 without beta. */
MIXPREC_CUDA_DEV_ bool mixprec_cuda_is_simple_(const mixprec_cuda_columns_ &four) {
    return !four.nothing && !four.rows_scaled && mixprec_cuda_is_zero_(four.beta) && four.count == 4 &&
           four.triangle == MIXPREC_FULL && ((uintptr_t)four.c | four.pitch) % (4 * four.size) == 0 &&
           (four.type == MIXPREC_F32 || (four.size == 2 && four.narrows));
}
/* What is common, without a branch: four rows of a tile's sums, r, r + step and so on, as far as they are below `last`;
   the tile's rows are `pitch` floats. `plain`: nothing is to be done with the sums. Through put() f16 products of 4096
   ran at 473 TFLOP/s on an H200, so at 561. */
template <int type, bool plain>
MIXPREC_CUDA_DEV_ void mixprec_cuda_finish_simple_(const mixprec_cuda_columns_ &four, const float *tile, int pitch,
                                                   size_t row0, int r, int last, int step, const float (&of_row)[4]) {
    const size_t stride = step * four.pitch;
    const bool relu = four.activation == MIXPREC_ACTIVATION_RELU;
    char *to = four.c + (row0 + r) * four.pitch;
#pragma unroll
    for (int i = 0; i < 4; i++, r += step, to += stride) {
        if (r >= last)
            break;
        const float4 x = *(const float4 *)(const void *)(tile + r * pitch);
        float v[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
        for (int e = 0; e < 4 && !plain; e++)
            v[e] = four.biased(four.scaled(v[e], e, of_row[i]), e, relu);
        if (type == MIXPREC_F32)
            *(uint4 *)(void *)to = make_uint4(mixprec_cuda_bits_(v[0]), mixprec_cuda_bits_(v[1]),
                                              mixprec_cuda_bits_(v[2]), mixprec_cuda_bits_(v[3]));
        else
            *(uint2 *)(void *)to = make_uint2(mixprec_cuda_cvt_pair_(v[0], v[1], (mixprec_dtype)type),
                                              mixprec_cuda_cvt_pair_(v[2], v[3], (mixprec_dtype)type));
    }
}
template <bool plain>
MIXPREC_CUDA_DEV_ void mixprec_cuda_finish_simple_as_(const mixprec_cuda_columns_ &four, mixprec_dtype type,
                                                      const float *tile, int pitch, size_t row0, int r, int last,
                                                      int step, const float (&of_row)[4]) {
    if (type == MIXPREC_F32)
        mixprec_cuda_finish_simple_<MIXPREC_F32, plain>(four, tile, pitch, row0, r, last, step, of_row);
    else if (type == MIXPREC_F16)
        mixprec_cuda_finish_simple_<MIXPREC_F16, plain>(four, tile, pitch, row0, r, last, step, of_row);
    else
        mixprec_cuda_finish_simple_<MIXPREC_BF16, plain>(four, tile, pitch, row0, r, last, step, of_row);
}
/* As finish_simple_; an activation other than ReLU is applied to the tile in shared memory first, so that there is one
   copy of its code, not one for each type of C. */
MIXPREC_CUDA_DEV_ void mixprec_cuda_finish_activated_(const mixprec_cuda_columns_ &four, float *tile, int pitch,
                                                      size_t row0, int r, int last, int step,
                                                      const float (&of_row)[4]) {
    if (__builtin_expect(four.activation > MIXPREC_ACTIVATION_RELU, 0)) {
#pragma unroll
        for (int i = 0; i < 4 && r + i * step < last; i++) {
            float4 *at = (float4 *)(void *)(tile + (r + i * step) * pitch);
            float v[4] = {at->x, at->y, at->z, at->w};
#pragma unroll
            for (int e = 0; e < 4; e++)
                v[e] = four.biased(four.scaled(v[e], e, of_row[i]), e, false);
            four.activate(v);
            *at = make_float4(v[0], v[1], v[2], v[3]);
        }
        mixprec_cuda_finish_simple_as_<true>(four, four.type, tile, pitch, row0, r, last, step, of_row);
    } else
        mixprec_cuda_finish_simple_as_<false>(four, four.type, tile, pitch, row0, r, last, step, of_row);
}
/* The same in any other way that a tile ends in place: to e4m3 and e5m2, too, in any mode, and to a C that is not
   aligned. An old C (beta is not 0) must be aligned, of f32 or 16 bits, and n a multiple of 4:
   mixprec_cuda_ends_in_place_ sees to it. */
MIXPREC_CUDA_DEV_ void mixprec_cuda_finish_any_(const mixprec_cuda_columns_ &four, const mixprec_cuda_gemm_args_ &g,
                                                float *tile, int pitch, size_t row0, int r, int last, int step,
                                                const float (&of_row)[4], bool aligned) {
    const size_t stride = step * four.pitch;
    const bool relu = four.activation == MIXPREC_ACTIVATION_RELU;
    char *to = four.c + (row0 + r) * four.pitch;
    uint32_t old[4][4] = {};
    if (!mixprec_cuda_is_zero_(four.beta))
#pragma unroll
        for (int i = 0; i < 4; i++) { /* all at once: each may take as long as memory does */
            const char *from = mixprec_cuda_global_(to + i * stride);
            if (r + i * step < last && four.size == 4) {
                const uint4 x = *(const uint4 *)(const void *)from;
                old[i][0] = x.x, old[i][1] = x.y, old[i][2] = x.z, old[i][3] = x.w;
            } else if (r + i * step < last) {
                const uint2 x = *(const uint2 *)(const void *)from;
                old[i][0] = x.x, old[i][1] = x.y;
            }
        }
#pragma unroll
    for (int i = 0; i < 4; i++, r += step, to += stride) {
        if (r >= last)
            break;
        float4 *at = (float4 *)(void *)(tile + r * pitch);
        float v[4] = {at->x, at->y, at->z, at->w};
        uint32_t low, high;
#pragma unroll
        for (int e = 0; e < 4; e++)
            v[e] = four.scaled(v[e], e, of_row[i]);
        if (!mixprec_cuda_is_zero_(four.beta)) {
            float y[4];
            if (four.size == 4)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    y[e] = mixprec_cuda_float_(old[i][e]);
            else if (four.type == MIXPREC_BF16)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    y[e] = mixprec_cuda_float_(e % 2 ? old[i][e / 2] & 0xFFFF0000u : old[i][e / 2] << 16);
            else
#pragma unroll
                for (int e = 0; e < 4; e++)
                    y[e] = mixprec_cuda_cvt_f16_(old[i][e / 2] >> e % 2 * 16 & 0xFFFF);
#pragma unroll
            for (int e = 0; e < 4; e++) {
                y[e] = mixprec_cuda_mul_(four.beta, y[e]);
                v[e] = four.nothing ? y[e] : mixprec_cuda_add_(v[e], y[e]);
            }
        }
#pragma unroll
        for (int e = 0; e < 4; e++)
            v[e] = four.biased(v[e], e, relu);
        if (!relu)
            four.activate(v);
        if (four.size == 4) {
            if (aligned)
                *(uint4 *)(void *)to = make_uint4(mixprec_cuda_bits_(v[0]), mixprec_cuda_bits_(v[1]),
                                                  mixprec_cuda_bits_(v[2]), mixprec_cuda_bits_(v[3]));
            else
#pragma unroll
                for (int e = 0; e < 4; e++)
                    if (e < four.count)
                        ((float *)(void *)to)[e] = v[e];
            continue;
        }
        if (!g.narrows) {
            *at = make_float4(v[0], v[1], v[2], v[3]);
            continue;
        }
        if (four.type == MIXPREC_BF16)
            low = mixprec_cuda_cvt_pair_(v[0], v[1], MIXPREC_BF16),
            high = mixprec_cuda_cvt_pair_(v[2], v[3], MIXPREC_BF16);
        else if (four.type == MIXPREC_F16)
            low = mixprec_cuda_cvt_pair_(v[0], v[1], MIXPREC_F16),
            high = mixprec_cuda_cvt_pair_(v[2], v[3], MIXPREC_F16);
        else if (four.type == MIXPREC_E4M3)
            low = mixprec_cuda_cvt_pair_(v[0], v[1], MIXPREC_E4M3),
            high = mixprec_cuda_cvt_pair_(v[2], v[3], MIXPREC_E4M3);
        else
            low = mixprec_cuda_cvt_pair_(v[0], v[1], MIXPREC_E5M2),
            high = mixprec_cuda_cvt_pair_(v[2], v[3], MIXPREC_E5M2);
        four.store(to, low, high, aligned);
    }
}
/* What mixprec_cuda_finish_any_ leaves in the tile where instructions do not narrow as asked: a turn of its own, past
   what is in registers in the first one. The first of the four in row r draws the random bits `index`. */
MIXPREC_CUDA_DEV_ void mixprec_cuda_finish_rounded_(const mixprec_cuda_columns_ &four, const mixprec_cuda_gemm_args_ &g,
                                                    uint64_t index, const float *tile, int pitch, size_t row0, int r,
                                                    int last, int step, bool aligned) {
    char *to = four.c + (row0 + r) * four.pitch;
#pragma unroll 1
    for (; r < last; r += step, to += step * four.pitch, index += step * g.n) {
        const uint2 y = mixprec_cuda_narrow_four_(*(const float4 *)(const void *)(tile + r * pitch), four.type, g.round,
                                                  g.overflow, g.seed, index);
        four.store(to, y.x, y.y, aligned);
    }
}

/* Which tile, product and part of k a block has: tile `tile` of part z of the launch. */
typedef struct mixprec_cuda_place_ {
    size_t row, column, k_begin, k_end;
    uint32_t z;
    bool any;
} mixprec_cuda_place_;
MIXPREC_CUDA_DEV_ size_t mixprec_cuda_batch_of_(const mixprec_cuda_gemm_args_ &g, uint32_t z) {
    return g.batch_begin + z / g.splits;
}
MIXPREC_CUDA_DEV_ mixprec_cuda_place_ mixprec_cuda_place_of_(const mixprec_cuda_gemm_args_ &g, int rows, int columns,
                                                             uint32_t tile, uint32_t z) {
    mixprec_cuda_place_ p;
    /* eight tiles down, then one to the right: their operands stay in L2. There are fewer than 2^31 tiles. */
    uint32_t group = (g.tiles_m < 8 ? g.tiles_m : 8) * g.tiles_n, first = tile / group * 8;
    uint32_t within = tile % group, height = g.tiles_m - first < 8 ? g.tiles_m - first : 8;
    size_t top;
    p.row = (size_t)(first + within % height) * rows;
    p.column = (size_t)(within / height) * columns;
    p.z = z;
    p.k_begin = z % g.splits * g.split_depth;
    p.k_end = g.k - p.k_begin < g.split_depth ? g.k : p.k_begin + g.split_depth;
    if (mixprec_cuda_is_zero_(mixprec_cuda_alpha_(g)))
        p.k_end = p.k_begin;
    top = p.row + g.row_begin;
    p.any = !(g.triangle == MIXPREC_LOWER && top + rows <= p.column) &&
            !(g.triangle == MIXPREC_UPPER && p.column + columns <= top);
    return p;
}

/* A tile of sums in shared memory, 8 floats between its rows and the kernel's arguments behind it, goes to C or to the
   partial sums. One function for all kernels, to which the arguments come by way of shared memory: inlined it took a
   fifth of the time to compile them; and a pointer to a kernel's parameters makes generic loads. */
#define MIXPREC_CUDA_TILE_BYTES_(rows, columns) ((rows) * ((columns) + 8) * 4)
static __device__ __attribute__((noinline, unused)) void mixprec_cuda_epilogue_(size_t row0, size_t column0, uint32_t z,
                                                                                int rows, int columns, int threads) {
    const mixprec_cuda_gemm_args_ &g =
        *(const mixprec_cuda_gemm_args_ *)(const void *)(mixprec_cuda_shared_() +
                                                         MIXPREC_CUDA_TILE_BYTES_(rows, columns));
    const int fours = columns / 4, c = (int)threadIdx.x % fours * 4, step = threads / fours;
    const size_t column = column0 + c, left = g.a.rows - row0;
    const int last = left < (size_t)rows ? (int)left : rows;
    float *tile = (float *)(void *)mixprec_cuda_shared_() + c;
    mixprec_cuda_columns_ four;
    if (column >= g.n)
        return;
    if (g.partial) {
#pragma unroll 4
        for (int r = (int)threadIdx.x / fours; r < last; r += step)
            *mixprec_cuda_partial_(g, z, row0 + r, column) = *(const float4 *)(const void *)(tile + r * (columns + 8));
        return;
    }
    four.begin(g, column, mixprec_cuda_batch_of_(g, z));
    row0 += g.row_begin;
    if (mixprec_cuda_is_simple_(four)) {
        const float of_row[4] = {four.row_scale, four.row_scale, four.row_scale, four.row_scale};
#pragma unroll 2
        for (int r = (int)threadIdx.x / fours; r < last; r += 4 * step)
            mixprec_cuda_finish_activated_(four, tile, columns + 8, row0, r, last, step, of_row);
        return;
    }
#pragma unroll 1
    for (int r = (int)threadIdx.x / fours; r < last; r += step)
        four.put(g, *(const float4 *)(const void *)(tile + r * (columns + 8)), row0 + r);
}
/* The same for a kernel that was launched with `bytes` of shared memory, and whose first `threads` threads have written
   the tile. */
template <int rows, int columns, int threads, int bytes>
MIXPREC_CUDA_DEV_ void mixprec_cuda_end_(const mixprec_cuda_gemm_args_ &g, const mixprec_cuda_place_ &place) {
    static_assert(MIXPREC_CUDA_TILE_BYTES_(rows, columns) + (int)sizeof g <= bytes, "the arguments do not fit");
    uint32_t *to = (uint32_t *)(void *)(mixprec_cuda_shared_() + MIXPREC_CUDA_TILE_BYTES_(rows, columns));
    const uint32_t *from = (const uint32_t *)(const void *)&g;
    for (int i = (int)threadIdx.x; i < (int)(sizeof g / 4); i += threads)
        to[i] = from[i];
    mixprec_cuda_sync_(1, threads);
    mixprec_cuda_epilogue_(place.row, place.column, place.z, rows, columns, threads);
}

/* The parts of a product, added in rising order. */
static __global__ void __launch_bounds__(MIXPREC_CUDA_THREADS_, 2)
    mixprec_cuda_gemm_reduce_(const MIXPREC_CUDA_PARAMETER_ mixprec_cuda_gemm_args_ g) {
    mixprec_cuda_begin_after_last_();
    size_t width = (g.n + 3) / 4, stride = (size_t)gridDim.x * blockDim.x;
    for (size_t q = (size_t)blockIdx.x * blockDim.x + threadIdx.x; q < g.a.rows * width; q += stride) {
        size_t row = q / width, column = q % width * 4;
        float4 sums = *mixprec_cuda_partial_(g, blockIdx.z * g.splits, row, column);
        for (uint32_t s = 1; s < g.splits; s++) {
            const float4 x = *mixprec_cuda_partial_(g, blockIdx.z * g.splits + s, row, column);
            sums.x = mixprec_cuda_add_(sums.x, x.x), sums.y = mixprec_cuda_add_(sums.y, x.y);
            sums.z = mixprec_cuda_add_(sums.z, x.z), sums.w = mixprec_cuda_add_(sums.w, x.w);
        }
        mixprec_cuda_columns_ four;
        four.begin(g, column, g.batch_begin + blockIdx.z);
        four.put(g, sums, row + g.row_begin);
    }
}

/* A copy of an operand in the workspace: `count` matrices of `lines` lines of `width` elements, which begin every
   `pitch` bytes, a multiple of 16, and end in zeros. The operand's lines are `ld` elements apart, matrices `stride`. */
typedef struct mixprec_cuda_copy_ {
    size_t width, lines, pitch, count, bytes; /* bytes in all; 0: there is no copy */
    size_t ld, stride;
    bool transposed; /* the operand's lines are the copy's columns */
    bool round;      /* f32 to TF32 */
} mixprec_cuda_copy_;

/* A warp takes 512 words of a line at a time. */
template <int size>
static __global__ void __launch_bounds__(MIXPREC_CUDA_THREADS_)
    mixprec_cuda_copy_lines_(void *to, const void *from, mixprec_cuda_copy_ x) {
    mixprec_cuda_let_next_begin_();
    const int per_word = 4 / size, at_once = 8;
    const size_t pitch = x.pitch / 4, parts = (pitch + 511) / 512,
                 step = (size_t)gridDim.x * (MIXPREC_CUDA_THREADS_ / 32);
    for (size_t task = (size_t)blockIdx.x * (MIXPREC_CUDA_THREADS_ / 32) + threadIdx.x / 32;
         task < parts * x.lines * x.count; task += step) {
        const size_t line = task / parts, first = line / x.lines * x.stride + line % x.lines * x.ld;
        const size_t end = task % parts * 512 + 512 < pitch ? task % parts * 512 + 512 : pitch;
#pragma unroll 1
        for (size_t w = task % parts * 512 + threadIdx.x % 32; w < end; w += at_once * 32) {
            uint32_t words[at_once] = {};
#pragma unroll
            for (int u = 0; u < at_once * per_word; u++) {
                size_t i = (w + u / per_word * 32) * per_word + u % per_word;
                if (i < x.width)
                    words[u / per_word] |= mixprec_cuda_element_(from, size, first + i) << u % per_word * size * 8;
            }
#pragma unroll
            for (int u = 0; u < at_once; u++)
                if (w + u * 32 < end)
                    ((uint32_t *)to)[line * pitch + w + u * 32] = x.round ? mixprec_cuda_tf32_(words[u]) : words[u];
        }
    }
    mixprec_cuda_wait_for_last_(); /* which may be the other copy: the product waits for this kernel alone */
}

/* The first `count` of the elements in 16 bytes that need not be aligned. */
template <int size>
static __device__ __attribute__((noinline)) uint4 mixprec_cuda_gather_(const void *from, size_t first, size_t count) {
    uint32_t words[4] = {};
#pragma unroll
    for (int e = 0; e < 16 / size; e++)
        if ((size_t)e < count)
            words[e * size / 4] |= mixprec_cuda_element_(from, size, first + e) << e * size % 4 * 8;
    return make_uint4(words[0], words[1], words[2], words[3]);
}
/* A thread transposes a square of 16 bytes a line, in registers; a warp reads 64 bytes a line and writes 128. */
template <int size>
static __global__ void __launch_bounds__(MIXPREC_CUDA_THREADS_, 2)
    mixprec_cuda_copy_transposed_(void *to, const void *from, mixprec_cuda_copy_ x) {
    mixprec_cuda_let_next_begin_();
    const int side = 16 / size, lane = (int)threadIdx.x % 32;
    const bool aligned = ((uintptr_t)from | x.ld * size | x.stride * size) % 16 == 0;
    const size_t down = (x.lines + 4 * side - 1) / (4 * side), parts = (x.pitch + 127) / 128 * down,
                 step = (size_t)gridDim.x * (MIXPREC_CUDA_THREADS_ / 32);
    for (size_t task = (size_t)blockIdx.x * (MIXPREC_CUDA_THREADS_ / 32) + threadIdx.x / 32; task < parts * x.count;
         task += step) {
        const size_t matrix = task / parts, line = task % down * (4 * side) + lane / 8 * side,
                     column = task % parts / down * (8 * side) + lane % 8 * side;
        const size_t first = matrix * x.stride + column * x.ld + line;
        uint32_t words[side][4] = {};
        if (aligned && line + side <= x.lines) {
            const char *at = (const char *)mixprec_cuda_global_(from) + first * size;
#pragma unroll
            for (int i = 0; i < side; i++)
                if (column + i < x.width) {
                    const uint4 four = mixprec_cuda_read_<uint4>(at + i * x.ld * size);
                    words[i][0] = four.x, words[i][1] = four.y, words[i][2] = four.z, words[i][3] = four.w;
                }
        } else if (line < x.lines) {
#pragma unroll
            for (int i = 0; i < side; i++)
                if (column + i < x.width) {
                    const uint4 four = mixprec_cuda_gather_<size>(from, first + i * x.ld, x.lines - line);
                    words[i][0] = four.x, words[i][1] = four.y, words[i][2] = four.z, words[i][3] = four.w;
                }
        }
        if (size == 1)
#pragma unroll
            for (int i = 0; i < side; i++) { /* 4 x 4 codes at a time */
                uint32_t &a = words[i / 4 * 4][i % 4], &b = words[i / 4 * 4 + 1][i % 4],
                         &c = words[i / 4 * 4 + 2][i % 4], &d = words[i / 4 * 4 + 3][i % 4];
                const uint32_t ab = __byte_perm(a, b, 0x5140), ab_high = __byte_perm(a, b, 0x7362),
                               cd = __byte_perm(c, d, 0x5140), cd_high = __byte_perm(c, d, 0x7362);
                a = __byte_perm(ab, cd, 0x5410), b = __byte_perm(ab, cd, 0x7632);
                c = __byte_perm(ab_high, cd_high, 0x5410), d = __byte_perm(ab_high, cd_high, 0x7632);
            }
#pragma unroll
        for (int i = 0; i < side; i++) {
            uint32_t y[4];
#pragma unroll
            for (int q = 0; q < 4; q++) {
                y[q] = size == 1 ? words[q * 4 + i % 4][i / 4] : words[q][i];
                y[q] = x.round ? mixprec_cuda_tf32_(y[q]) : y[q];
            }
            if (line + i < x.lines && column * size < x.pitch)
                *(uint4 *)(void *)((char *)to + (matrix * x.lines + line + i) * x.pitch + column * size) =
                    make_uint4(y[0], y[1], y[2], y[3]);
        }
    }
    mixprec_cuda_wait_for_last_(); /* as above */
}

/* put(row, k, i, exists) for every place in a tile of an operand: its element is i of the array, if there is one;
   neighbouring threads have neighbouring elements. A thread stays in its column of what is contiguous: rows and depth
   divide `threads`, or are a multiple. These are all of the block or, `part`, a warpgroup of it. */
template <int rows, int depth, int threads, bool part = false, class Put>
MIXPREC_CUDA_DEV_ void mixprec_cuda_for_each_element_(const mixprec_cuda_operand_ &x, size_t row0, size_t k0,
                                                      size_t k_end, Put put) {
    const bool along_k = x.k_step == 1;
    const int width = rows < threads ? rows : threads; /* of what is contiguous along rows, at a time */
    const int t = part ? (int)threadIdx.x % threads : (int)threadIdx.x;
    const int r_step = along_k ? threads / depth : 0, p_step = along_k ? 0 : threads / width;
    const int r_end = x.rows - row0 < (size_t)rows ? (int)(x.rows - row0) : rows;
    const int p_end = k_end - k0 < (size_t)depth ? (int)(k_end - k0) : depth;
    const size_t step = r_step * x.row_step + p_step * x.k_step;
#pragma unroll 1
    for (int first = 0; first < (along_k || rows == width ? 1 : rows); first += width) {
        int r = along_k ? t / depth : first + t % width, p = along_k ? t % depth : t / width;
        size_t i = (row0 + r) * x.row_step + (k0 + p) * x.k_step;
#pragma unroll(part ? 16 : 4)
        for (int n = 0; n < (along_k ? rows : width) * depth / threads; n++, r += r_step, p += p_step, i += step)
            put(r, p, i, r < r_end && p < p_end);
    }
}

/* ---- EXACT: fused multiply-adds in the canonical order ---- */

#define MIXPREC_CUDA_EXACT_DEPTH_ 16
#define MIXPREC_CUDA_EXACT_PITCH_ 68
#define MIXPREC_CUDA_EXACT_BYTES_ (MIXPREC_CUDA_TILE_BYTES_(64, 64) + (int)sizeof(mixprec_cuda_gemm_args_))
MIXPREC_CUDA_DEV_ void mixprec_cuda_exact_load_(float *tile, const mixprec_cuda_operand_ &x, const char *base,
                                                size_t row0, size_t k0, size_t k_end) {
    mixprec_cuda_for_each_element_<64, MIXPREC_CUDA_EXACT_DEPTH_, MIXPREC_CUDA_THREADS_>(
        x, row0, k0, k_end, [&](int r, int p, size_t i, bool exists) {
            uint32_t code = exists ? mixprec_cuda_element_(base, mixprec_cuda_size_(x.type), i) : 0;
            tile[p * MIXPREC_CUDA_EXACT_PITCH_ + r] =
                x.type == MIXPREC_I8 ? (float)(int8_t)(uint8_t)code : mixprec_cuda_decode_(code, x.type);
        });
}
static __global__ void __launch_bounds__(MIXPREC_CUDA_THREADS_, 2)
    mixprec_cuda_gemm_exact_(const MIXPREC_CUDA_PARAMETER_ mixprec_cuda_gemm_args_ g) {
    mixprec_cuda_begin_after_last_();
    mixprec_cuda_place_ place = mixprec_cuda_place_of_(g, 64, 64, blockIdx.x, blockIdx.z);
    float *a = (float *)(void *)mixprec_cuda_shared_(), *b = a + MIXPREC_CUDA_EXACT_DEPTH_ * MIXPREC_CUDA_EXACT_PITCH_;
    const char *a_base, *b_base;
    float s[4][4], u[4][4], t[4][4]; /* of a chunk, of a piece, of all */
    bool pieces = g.a.k_varies || g.b.k_varies;
    int ty = (int)threadIdx.x / 16, tx = (int)threadIdx.x % 16;
    if (!place.any)
        return;
    a_base = mixprec_cuda_base_(g.a, mixprec_cuda_batch_of_(g, place.z), mixprec_cuda_size_(g.a.type)) +
             g.row_begin * g.a.row_step * mixprec_cuda_size_(g.a.type);
    b_base = mixprec_cuda_base_(g.b, mixprec_cuda_batch_of_(g, place.z), mixprec_cuda_size_(g.b.type));
#pragma unroll
    for (int i = 0; i < 16; i++)
        s[i / 4][i % 4] = u[i / 4][i % 4] = t[i / 4][i % 4] = 0;
    for (size_t k0 = 0, start = 0; k0 < place.k_end; k0 += MIXPREC_CUDA_EXACT_DEPTH_) {
        mixprec_cuda_exact_load_(a, g.a, a_base, place.row, k0, place.k_end);
        mixprec_cuda_exact_load_(b, g.b, b_base, place.column, k0, place.k_end);
        __syncthreads();
        for (int p = 0; p < MIXPREC_CUDA_EXACT_DEPTH_ && k0 + p < place.k_end; p++) {
            size_t next = k0 + p + 1;
#pragma unroll
            for (int i = 0; i < 16; i++)
                s[i / 4][i % 4] =
                    mixprec_cuda_fma_(a[p * MIXPREC_CUDA_EXACT_PITCH_ + ty + 16 * (i / 4)],
                                      b[p * MIXPREC_CUDA_EXACT_PITCH_ + tx + 16 * (i % 4)], s[i / 4][i % 4]);
            /* a piece ends with the block of a scale, or all; a chunk of the definition, or the piece */
            bool piece = (g.a.k_varies && next % g.a.k_block == 0) || (g.b.k_varies && next % g.b.k_block == 0) ||
                         next == place.k_end;
            if (!piece && (next - start) % MIXPREC_GEMM_KBLOCK)
                continue;
#pragma unroll
            for (int i = 0; i < 16; i++) {
                size_t row = place.row + ty + 16 * (i / 4), column = place.column + tx + 16 * (i % 4);
                float sum = s[i / 4][i % 4];
                s[i / 4][i % 4] = 0;
                if (next - start > MIXPREC_GEMM_KBLOCK)
                    sum = mixprec_cuda_add_(u[i / 4][i % 4], sum);
                u[i / 4][i % 4] = sum;
                if (!piece)
                    continue;
                if (pieces && g.a.scale && row < g.a.rows)
                    sum = mixprec_cuda_mul_(sum, mixprec_cuda_scale_at_(g.a, row + g.row_begin, start));
                if (pieces && g.b.scale && column < g.n)
                    sum = mixprec_cuda_mul_(sum, mixprec_cuda_scale_at_(g.b, column, start));
                t[i / 4][i % 4] = start ? mixprec_cuda_add_(t[i / 4][i % 4], sum) : sum;
            }
            if (piece)
                start = next;
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 16; i++)
        a[(ty + 16 * (i / 4)) * 72 + tx + 16 * (i % 4)] = t[i / 4][i % 4];
    mixprec_cuda_end_<64, 64, MIXPREC_CUDA_THREADS_, MIXPREC_CUDA_EXACT_BYTES_>(g, place);
}

/* What Tensor Cores multiply. */
enum {
    MIXPREC_CUDA_F16_,
    MIXPREC_CUDA_BF16_,
    MIXPREC_CUDA_TF32_,
    MIXPREC_CUDA_S8_,
    MIXPREC_CUDA_FP8_, /* decoded to fp16 */
    MIXPREC_CUDA_E4M3_E4M3_,
    MIXPREC_CUDA_E4M3_E5M2_,
    MIXPREC_CUDA_E5M2_E4M3_,
    MIXPREC_CUDA_E5M2_E5M2_
};

/* ---- WMMA: 64 x 64 tiles, 4 warps of 32 x 32, staged element by element ---- */

template <int kind> struct mixprec_cuda_wmma_kind_;
template <> struct mixprec_cuda_wmma_kind_<MIXPREC_CUDA_F16_> {
    typedef __half element;
    typedef __half fragment;
    typedef float sum;
    enum { depth = 16 };
};
template <> struct mixprec_cuda_wmma_kind_<MIXPREC_CUDA_BF16_> {
    typedef __nv_bfloat16 element;
    typedef __nv_bfloat16 fragment;
    typedef float sum;
    enum { depth = 16 };
};
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
template <> struct mixprec_cuda_wmma_kind_<MIXPREC_CUDA_TF32_> {
    typedef float element;
    typedef nvcuda::wmma::precision::tf32 fragment;
    typedef float sum;
    enum { depth = 8 };
};
#endif
template <> struct mixprec_cuda_wmma_kind_<MIXPREC_CUDA_S8_> {
    typedef signed char element;
    typedef signed char fragment;
    typedef int sum;
    enum { depth = 16 };
};

template <class F, class E> MIXPREC_CUDA_DEV_ void mixprec_cuda_wmma_a_(F &f, const E *p, unsigned ld) {
    nvcuda::wmma::load_matrix_sync(f, p, ld);
}
template <class F, class E> MIXPREC_CUDA_DEV_ void mixprec_cuda_wmma_b_(F &f, const E *p, unsigned ld) {
    nvcuda::wmma::load_matrix_sync(f, p, ld);
}
template <class F> MIXPREC_CUDA_DEV_ void mixprec_cuda_wmma_a_(F &f, const __nv_bfloat16 *p, unsigned ld) {
    mixprec_cuda_load_bf16_a_(f, p, ld);
}
template <class F> MIXPREC_CUDA_DEV_ void mixprec_cuda_wmma_b_(F &f, const __nv_bfloat16 *p, unsigned ld) {
    mixprec_cuda_load_bf16_b_(f, p, ld);
}
template <class F> MIXPREC_CUDA_DEV_ void mixprec_cuda_wmma_a_(F &f, const float *p, unsigned ld) {
    mixprec_cuda_load_tf32_a_(f, p, ld);
}
template <class F> MIXPREC_CUDA_DEV_ void mixprec_cuda_wmma_b_(F &f, const float *p, unsigned ld) {
    mixprec_cuda_load_tf32_b_(f, p, ld);
}

#define MIXPREC_CUDA_WMMA_STEPS_ 4
/* Layout: step of k, row, element, so that every fragment begins at a multiple of 32 bytes; 16 bytes of padding a
   row. */
template <int kind>
MIXPREC_CUDA_DEV_ void mixprec_cuda_wmma_load_(typename mixprec_cuda_wmma_kind_<kind>::element *tile,
                                               const mixprec_cuda_operand_ &x, const char *base, size_t row0, size_t k0,
                                               size_t k_end) {
    typedef typename mixprec_cuda_wmma_kind_<kind>::element element;
    const int depth = mixprec_cuda_wmma_kind_<kind>::depth, all = depth * MIXPREC_CUDA_WMMA_STEPS_;
    const int pitch = depth + 16 / (int)sizeof(element);
    const size_t size = mixprec_cuda_size_(x.type);
    mixprec_cuda_for_each_element_<64, all, 128>(x, row0, k0, k_end, [=, &x](int r, int p, size_t i, bool exists) {
        uint32_t code = exists ? mixprec_cuda_element_(base, size, i) : 0;
        if (kind == MIXPREC_CUDA_TF32_)
            code = mixprec_cuda_tf32_(code);
        else if (kind == MIXPREC_CUDA_F16_ && size == 1)
            code = mixprec_cuda_fp8x2_(code, x.type == MIXPREC_E5M2);
        mixprec_cuda_put_(tile, sizeof(element), (p / depth * 64 + r) * pitch + p % depth, code);
    });
}

#define MIXPREC_CUDA_WMMA_BYTES_ (2 * MIXPREC_CUDA_WMMA_STEPS_ * 64 * 48)
/* The second parameter leaves out the body where the fragments do not exist: bf16 and TF32 before sm_80. */
template <int kind, bool exists> struct mixprec_cuda_wmma_body_ {
    static __device__ void run(const mixprec_cuda_gemm_args_ &) {
    }
};
template <int kind> struct mixprec_cuda_wmma_body_<kind, true> {
    static __device__ __forceinline__ void run(const mixprec_cuda_gemm_args_ &g) {
        typedef mixprec_cuda_wmma_kind_<kind> traits;
        typedef typename traits::element element;
        typedef typename traits::sum sum;
        const int depth = traits::depth, pitch = depth + 16 / (int)sizeof(element),
                  all = depth * MIXPREC_CUDA_WMMA_STEPS_;
        mixprec_cuda_place_ place = mixprec_cuda_place_of_(g, 64, 64, blockIdx.x, blockIdx.z);
        element *a_tile = (element *)(void *)mixprec_cuda_shared_(),
                *b_tile = a_tile + MIXPREC_CUDA_WMMA_STEPS_ * 64 * pitch;
        sum *out = (sum *)(void *)a_tile;
        int warp = (int)threadIdx.x / 32, warp_row = warp % 2 * 32, warp_column = warp / 2 * 32;
        nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, depth, sum> sums[2][2];
        if (!place.any)
            return;
        const char *a = mixprec_cuda_base_(g.a, mixprec_cuda_batch_of_(g, place.z), mixprec_cuda_size_(g.a.type));
        const char *b = mixprec_cuda_base_(g.b, mixprec_cuda_batch_of_(g, place.z), mixprec_cuda_size_(g.b.type));
        a += g.row_begin * g.a.row_step * mixprec_cuda_size_(g.a.type);
#pragma unroll
        for (int i = 0; i < 4; i++)
            nvcuda::wmma::fill_fragment(sums[i / 2][i % 2], (sum)0);
        for (size_t k0 = place.k_begin; k0 < place.k_end; k0 += all) {
            mixprec_cuda_wmma_load_<kind>(a_tile, g.a, a, place.row, k0, place.k_end);
            mixprec_cuda_wmma_load_<kind>(b_tile, g.b, b, place.column, k0, place.k_end);
            __syncthreads();
#pragma unroll
            for (int p = 0; p < MIXPREC_CUDA_WMMA_STEPS_; p++) {
                nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, depth, typename traits::fragment,
                                       nvcuda::wmma::row_major>
                    fa[2];
                nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, depth, typename traits::fragment,
                                       nvcuda::wmma::col_major>
                    fb[2];
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    mixprec_cuda_wmma_a_(fa[i], a_tile + (p * 64 + warp_row + i * 16) * pitch, (unsigned)pitch);
                    mixprec_cuda_wmma_b_(fb[i], b_tile + (p * 64 + warp_column + i * 16) * pitch, (unsigned)pitch);
                }
#pragma unroll
                for (int i = 0; i < 4; i++)
                    nvcuda::wmma::mma_sync(sums[i / 2][i % 2], fa[i / 2], fb[i % 2], sums[i / 2][i % 2]);
            }
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            nvcuda::wmma::store_matrix_sync(out + (warp_row + i / 2 * 16) * 72 + warp_column + i % 2 * 16,
                                            sums[i / 2][i % 2], 72, nvcuda::wmma::mem_row_major);
        if (kind == MIXPREC_CUDA_S8_) { /* int32 to fp32, in place */
            __syncthreads();
            for (int q = (int)threadIdx.x; q < 64 * 72; q += 128)
                ((float *)(void *)out)[q] = (float)out[q];
        }
        mixprec_cuda_end_<64, 64, 128, MIXPREC_CUDA_WMMA_BYTES_>(g, place);
    }
};
template <int kind>
static __global__ void __launch_bounds__(128, 4)
    mixprec_cuda_gemm_wmma_(const MIXPREC_CUDA_PARAMETER_ mixprec_cuda_gemm_args_ g) {
    mixprec_cuda_begin_after_last_();
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    mixprec_cuda_wmma_body_<kind, kind == MIXPREC_CUDA_F16_ || kind == MIXPREC_CUDA_S8_>::run(g);
#else
    mixprec_cuda_wmma_body_<kind, true>::run(g);
#endif
}

/* ---- MMA: 128 x 128 or 128 x 256 tiles, 128 bytes of k in each of 3 stages, warps of 64 x 64 ---- */

/* The rows of a tile are lines of 128 bytes of k, read by ldmatrix. `lines_are_k`, where an operand is not contiguous
   along k: a tile is copied as it lies, in lines of one k and all rows, and a fragment gathers neighbouring k from
   them: of 16 bits by ldmatrix.trans, of 8 by ldmatrix.trans of pairs of rows, which byte permutes take apart, of 32 by
   loads of pairs of rows. A pair makes rows r and r + 8 of the instruction: see mixprec_cuda_mma_way_. */
template <int kind> struct mixprec_cuda_mma_kind_;
#define MIXPREC_CUDA_KIND_(kind, instruction, type, size)                                                              \
    template <> struct mixprec_cuda_mma_kind_<kind> {                                                                  \
        typedef type sum;                                                                                              \
        enum { bytes = size, steps = 1 };                                                                              \
        static __device__ __forceinline__ void mma(type (&d)[4], const uint32_t *a, const uint32_t *b) {               \
            mixprec_cuda_mma_##instruction##_(d, a, b);                                                                \
        }                                                                                                              \
    };
MIXPREC_CUDA_KIND_(MIXPREC_CUDA_F16_, f16, float, 2)
MIXPREC_CUDA_KIND_(MIXPREC_CUDA_BF16_, bf16, float, 2)
MIXPREC_CUDA_KIND_(MIXPREC_CUDA_TF32_, tf32, float, 4)
MIXPREC_CUDA_KIND_(MIXPREC_CUDA_S8_, s8, int, 1)
MIXPREC_CUDA_KIND_(MIXPREC_CUDA_E4M3_E4M3_, e4m3_e4m3, float, 1)
MIXPREC_CUDA_KIND_(MIXPREC_CUDA_E4M3_E5M2_, e4m3_e5m2, float, 1)
MIXPREC_CUDA_KIND_(MIXPREC_CUDA_E5M2_E4M3_, e5m2_e4m3, float, 1)
MIXPREC_CUDA_KIND_(MIXPREC_CUDA_E5M2_E5M2_, e5m2_e5m2, float, 1)
#undef MIXPREC_CUDA_KIND_
template <> struct mixprec_cuda_mma_kind_<MIXPREC_CUDA_FP8_> {
    typedef float sum;
    enum { bytes = 1, steps = 2 };
    static __device__ __forceinline__ void mma(float (&d)[4], const uint32_t *a, const uint32_t *b) {
        mixprec_cuda_mma_f16_(d, a, b);
        mixprec_cuda_mma_f16_(d, a + 4, b + 2);
    }
};

/* Rows q of the instruction's 8 in fragment t of these are rows t / way * 8 way + way q + t % way of the tile. */
MIXPREC_CUDA_DEV_ constexpr int mixprec_cuda_mma_way_(int bytes, bool lines_are_k) {
    return lines_are_k && bytes != 2 ? 2 : 1;
}

/* 16-byte chunk c of a line is stored at c ^ this, so that neither the copies nor the fragments meet a bank twice: of
   lines that a fragment reads together it differs in as many values as it takes. Of a + b without a carry it is the
   exclusive or of those of a and b. */
template <int bytes, bool lines_are_k> MIXPREC_CUDA_DEV_ int mixprec_cuda_mma_swizzle_(int line) {
    return !lines_are_k || bytes == 2 ? line & 7 : bytes == 1 ? (line >> 1 & 6) | (line & 1) : (line & 3) << 1;
}

/* The registers of a fragment, of 16 rows and 32 bytes of k, as the instruction wants them: 4 of A, or 2 of B and 2 of
   its next one. 8 bits from lines of k: registers 2 h, 2 h + 1 hold the bytes (k, row), (k, row + 1), (k + 1, row), ...
   for k = 4 t and 4 t + 2 of half h. Decoded FP8: a register holds k = 4 t .. 4 t + 3 of its row. The order of k within
   an instruction is free if it is that of the other operand: 4 t, 4 t + 1 take the place of 2 t, 2 t + 1, the next two
   that of 2 t + 8, 2 t + 9. */
template <int kind, bool lines_are_k, bool is_b, int steps>
MIXPREC_CUDA_DEV_ void mixprec_cuda_mma_prepare_(uint32_t (&to)[4 * steps], const uint32_t (&from)[4], bool e5m2) {
    const int words = is_b ? 2 : 4, half = words / 2; /* half: registers of one 16-byte chunk of k */
#pragma unroll
    for (int f = 0; f < 4; f += words)
#pragma unroll
        for (int w = 0; w < words; w++) {
            const bool apart = lines_are_k && mixprec_cuda_mma_kind_<kind>::bytes == 1;
            const int h = w / half * 2, row = is_b ? f / 2 : w % half; /* which of a pair of rows it is */
            uint32_t x = from[f + w], y = x >> 16;
            if (apart && kind == MIXPREC_CUDA_FP8_) {
                x = __byte_perm(from[h], 0, row ? 0x31 : 0x20);
                y = __byte_perm(from[h + 1], 0, row ? 0x31 : 0x20);
            } else if (apart)
                x = __byte_perm(from[h], from[h + 1], row ? 0x7531 : 0x6420);
            if (kind == MIXPREC_CUDA_FP8_) {
                to[f * 2 + w / half * words + w % half] = mixprec_cuda_fp8x2_(x, e5m2);
                to[f * 2 + w / half * words + w % half + half] = mixprec_cuda_fp8x2_(y, e5m2);
            } else
                to[f + w] = kind == MIXPREC_CUDA_TF32_ ? mixprec_cuda_tf32_(x) : x;
        }
}

/* How a thread copies its part of one operand, 128 bytes of k at a time: 16 bytes in each of `count` lines, where base
   and leading dimension allow and no chunk ends within them; else element by element. What lies outside becomes
   zero. `panels`: lines of k are cut into panels of 128 bytes, which follow each other. */
template <int bytes, bool lines_are_k, int rows, int threads, bool panels = false, bool part = false>
struct mixprec_cuda_mma_copy_ {
    enum {
        depth = 128 / bytes,
        per_chunk = 16 / bytes,
        chunks = lines_are_k ? rows / per_chunk : 8,
        line_bytes = panels ? 128 : chunks * 16,
        apart = threads / chunks, /* lines: a power of two, and the first line is below it */
        count = (lines_are_k ? depth : rows) / apart
    };
    const char *from; /* of this thread's first chunk, of the next 128 bytes of k */
    size_t stride;
    uint32_t to;
    int line, lines_left; /* lines_are_k: lines_left is 1 where the chunk exists, else 0 */
    bool fast;
    static __device__ __forceinline__ int swizzle(int l) {
        return panels ? l & 7 : mixprec_cuda_mma_swizzle_<bytes, lines_are_k>(l);
    }
    /* Where a chunk of a line is in the tile. */
    static __device__ __forceinline__ uint32_t place(int l, int chunk) {
        chunk ^= swizzle(l);
        return (uint32_t)(l * line_bytes + chunk * 16 + (panels ? chunk / 8 * (depth - 1) * 128 : 0));
    }
    __device__ __forceinline__ void begin(const mixprec_cuda_operand_ &x, const char *base, size_t row0, size_t k0) {
        const int t = part ? (int)threadIdx.x % threads : (int)threadIdx.x, chunk = t % chunks;
        size_t step = (lines_are_k ? x.k_step : x.row_step) * bytes, left = x.rows - row0;
        line = t / chunks;
        fast = ((uintptr_t)base | step) % 16 == 0 && (lines_are_k ? x.row_step : x.k_step) == 1 &&
               (!lines_are_k || x.rows % per_chunk == 0 || left >= (size_t)rows);
        from = base + ((lines_are_k ? k0 : row0) + line) * step +
               ((lines_are_k ? row0 : k0) + (size_t)(chunk * per_chunk)) * bytes;
        stride = apart * step;
        to = place(line, chunk);
        lines_left = lines_are_k ? (size_t)(chunk * per_chunk) < left : left < (size_t)rows ? (int)left : rows;
    }
    /* The tile at k_end - k_left; the caller's barriers cover the stores too. */
    __device__ __forceinline__ void start(uint32_t tile, const mixprec_cuda_operand_ &x, const char *base, size_t row0,
                                          size_t k_left, size_t k_end) {
        int k = k_left < depth ? (int)k_left : depth, last;
        if (fast && (lines_are_k || k == depth || k_end % per_chunk == 0)) {
            last = lines_are_k ? (lines_left ? k : 0) : (int)threadIdx.x % chunks * per_chunk < k ? lines_left : 0;
            const char *p = from;
#pragma unroll 4 /* all at once their addresses take registers that sm_120's ptxas then lacks */
            for (int i = 0; i < count; i++, p += stride)
                mixprec_cuda_copy_async_<16>(tile + (to ^ swizzle(i * apart) << 4) + i * apart * line_bytes, p,
                                             line + i * apart < last);
            from = lines_are_k ? p : from + 128;
            return;
        }
        unsigned char *target = mixprec_cuda_shared_() + (tile - mixprec_cuda_shared_address_(mixprec_cuda_shared_()));
        mixprec_cuda_for_each_element_<rows, depth, threads, part>(
            x, row0, k_end - k_left, k_end, [=](int r, int p, size_t i, bool exists) {
                int l = lines_are_k ? p : r, element = lines_are_k ? r : p;
                uint32_t at = place(l, element / per_chunk) + element % per_chunk * bytes;
                if (bytes == 4)
                    mixprec_cuda_copy_async_<4>(tile + at, base + i * bytes, exists);
                else
                    mixprec_cuda_put_(target + at, bytes, 0, exists ? mixprec_cuda_element_(base, bytes, i) : 0);
            });
        __syncwarp(); /* what comes next is for whole warps */
    }
};

/* Where this lane's part of the first fragment is in a tile, for the 64 rows of an operand from row0, a multiple of 64.
   A wants its matrices in the order (rows, k), (rows + 8, k), (rows, k + 16 bytes), ...; B with the middle two
   exchanged. */
template <int bytes, bool lines_are_k, int rows>
MIXPREC_CUDA_DEV_ uint32_t mixprec_cuda_mma_lane_(int row0, bool is_b) {
    int lane = (int)threadIdx.x % 32, within = lane & 7, low = lane >> 3 & 1, high = lane >> 4;
    int row_half = is_b ? high : low, k_half = is_b ? low : high;
    int line, at; /* at: bytes within the line */
    if (!lines_are_k)
        line = row0 + row_half * 8 + within, at = k_half * 16;
    else if (bytes == 2)
        line = k_half * 8 + within, at = (row0 + row_half * 8) * 2;
    else if (bytes == 1) /* both halves of k, see mixprec_cuda_mma_prepare_ */
        line = high * 16 + within / 2 * 4 + low * 2 + within % 2, at = row0;
    else /* the second half of k is 4 lines further on */
        line = lane % 4, at = (row0 + lane / 4 * 2) * 4;
    return (uint32_t)(line * (lines_are_k ? rows * bytes : 128) +
                      (at ^ mixprec_cuda_mma_swizzle_<bytes, lines_are_k>(line) << 4));
}
/* The fragment of rows 16 i of the 64 and 32 bytes of k from 32 kk on; `from` is the tile, a multiple of 256, and what
   mixprec_cuda_mma_lane_ has found, so that an exclusive or moves along a line. */
template <int bytes, bool lines_are_k, int rows>
MIXPREC_CUDA_DEV_ void mixprec_cuda_mma_fragment_(uint32_t (&x)[4], uint32_t from, int i, int kk, bool is_b) {
    from = lines_are_k ? (from ^ i * 16 * bytes) + kk * 32 * rows : (from ^ kk * 32) + i * 2048;
    if (lines_are_k && bytes == 4) {
        mixprec_cuda_load_pair_(x[0], x[is_b ? 2 : 1], from);
        mixprec_cuda_load_pair_(x[is_b ? 1 : 2], x[3], from + 16 * rows);
    } else
        mixprec_cuda_ldmatrix_<lines_are_k>(x, from);
}

#define MIXPREC_CUDA_MMA_ROWS_ 128
#define MIXPREC_CUDA_MMA_STAGES_ 3
#define MIXPREC_CUDA_MMA_BYTES_(columns) (MIXPREC_CUDA_MMA_STAGES_ * (MIXPREC_CUDA_MMA_ROWS_ + (columns)) * 128)
template <int kind, bool a_lines_are_k, bool b_lines_are_k, int columns>
MIXPREC_CUDA_DEV_ void mixprec_cuda_gemm_mma_body_(const mixprec_cuda_gemm_args_ &g) {
    typedef mixprec_cuda_mma_kind_<kind> mma;
    const int rows = MIXPREC_CUDA_MMA_ROWS_, stages = MIXPREC_CUDA_MMA_STAGES_, threads = columns;
    const size_t depth = 128 / mma::bytes;
    const uint32_t stage_bytes = (rows + columns) * 128;
    /* decoding has no registers left for A's next fragments, nor, from lines of k, for B's */
    const bool ahead = mma::steps == 1, b_ahead = ahead || !b_lines_are_k;
    unsigned char *shared = mixprec_cuda_shared_();
    mixprec_cuda_place_ place = mixprec_cuda_place_of_(g, rows, columns, blockIdx.x, blockIdx.z);
    typename mma::sum sums[4][8][4];
    int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    int warp_row = warp % 2 * 64, warp_column = warp / 2 * 64;
    if (!place.any)
        return;
    const char *a = mixprec_cuda_base_(g.a, mixprec_cuda_batch_of_(g, place.z), mma::bytes),
               *b = mixprec_cuda_base_(g.b, mixprec_cuda_batch_of_(g, place.z), mma::bytes);
    a += g.row_begin * g.a.row_step * mma::bytes;
    bool a_e5m2 = g.a.type == MIXPREC_E5M2, b_e5m2 = g.b.type == MIXPREC_E5M2;
    uint32_t tiles = (uint32_t)((place.k_end - place.k_begin + depth - 1) / depth);
    mixprec_cuda_mma_copy_<mma::bytes, a_lines_are_k, rows, threads> copy_a;
    mixprec_cuda_mma_copy_<mma::bytes, b_lines_are_k, columns, threads> copy_b;
    copy_a.begin(g.a, a, place.row, place.k_begin);
    copy_b.begin(g.b, b, place.column, place.k_begin);
    size_t k_left = place.k_end - place.k_begin; /* not yet copied */
    const uint32_t first = mixprec_cuda_shared_address_(shared);
    uint32_t filled = first, read = first; /* stages */
    const uint32_t a_at = mixprec_cuda_mma_lane_<mma::bytes, a_lines_are_k, rows>(warp_row, false);
    const uint32_t b_at = mixprec_cuda_mma_lane_<mma::bytes, b_lines_are_k, columns>(warp_column, true) + rows * 128;
    uint32_t raw_a[2][4][4], raw_b[2][4];

#pragma unroll
    for (int i = 0; i < 128; i++)
        sums[i / 32][i / 4 % 8][i % 4] = 0;
#define MIXPREC_CUDA_NEXT_(stage) ((stage) == first + (stages - 1) * stage_bytes ? first : (stage) + stage_bytes)
#define MIXPREC_CUDA_COPY_()                                                                                           \
    do {                                                                                                               \
        if (k_left) {                                                                                                  \
            copy_a.start(filled, g.a, a, place.row, k_left, place.k_end);                                              \
            copy_b.start(filled + rows * 128, g.b, b, place.column, k_left, place.k_end);                              \
            k_left = k_left < depth ? 0 : k_left - depth;                                                              \
        }                                                                                                              \
        mixprec_cuda_copy_commit_();                                                                                   \
        filled = MIXPREC_CUDA_NEXT_(filled);                                                                           \
    } while (0)
#define MIXPREC_CUDA_LOAD_A_(kk)                                                                                       \
    _Pragma("unroll") for (int i = 0; i < 4; i++)                                                                      \
        mixprec_cuda_mma_fragment_<mma::bytes, a_lines_are_k, rows>(raw_a[(kk) % 2][i], read + a_at, i, kk, false)
#define MIXPREC_CUDA_LOAD_B_(kk, j)                                                                                    \
    mixprec_cuda_mma_fragment_<mma::bytes, b_lines_are_k, columns>(raw_b[b_ahead ? (j) % 2 : 0], read + b_at, j, kk,   \
                                                                   true)
#pragma unroll 1
    for (int i = 0; i < stages - 1; i++)
        MIXPREC_CUDA_COPY_();
    mixprec_cuda_copy_wait_<stages - 2>();
    __syncthreads();
    if (ahead)
        MIXPREC_CUDA_LOAD_A_(0);
    if (b_ahead)
        MIXPREC_CUDA_LOAD_B_(0, 0);
        /* While one fragment of B is multiplied the next one is loaded, and A's of the next step of k; across tiles
           too, so
       that after a barrier there is something to multiply. */
#pragma unroll 1
    for (uint32_t tile = 0; tile < tiles; tile++)
#pragma unroll
        for (int kk = 0; kk < 4; kk++) {
            uint32_t fa[4][4 * mma::steps], fb[4 * mma::steps];
            if (kk == 1)
                MIXPREC_CUDA_COPY_(); /* into the stage that the barrier before has freed */
            if (!ahead)
                MIXPREC_CUDA_LOAD_A_(kk);
#pragma unroll
            for (int i = 0; i < 4; i++)
                mixprec_cuda_mma_prepare_<kind, a_lines_are_k, false, mma::steps>(fa[i], raw_a[kk % 2][i], a_e5m2);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                if (!b_ahead)
                    MIXPREC_CUDA_LOAD_B_(kk, j);
                if (kk == 3 && j == 3) {
                    read = MIXPREC_CUDA_NEXT_(read);
                    mixprec_cuda_copy_wait_<stages - 2>();
                    __syncthreads(); /* the next tile has arrived for all, and all have done with this one's stage */
                }
                if (j == 3 && ahead)
                    MIXPREC_CUDA_LOAD_A_((kk + 1) % 4);
                if (b_ahead)
                    MIXPREC_CUDA_LOAD_B_((j == 3 ? kk + 1 : kk) % 4, (j + 1) % 4);
                mixprec_cuda_mma_prepare_<kind, b_lines_are_k, true, mma::steps>(fb, raw_b[b_ahead ? j % 2 : 0],
                                                                                 b_e5m2);
#pragma unroll
                for (int i = 0; i < 8; i++)
                    mma::mma(sums[i / 2][2 * j + i % 2], fa[i / 2], fb + i % 2 * 2 * mma::steps);
            }
        }
#undef MIXPREC_CUDA_LOAD_A_
#undef MIXPREC_CUDA_LOAD_B_
#undef MIXPREC_CUDA_COPY_
#undef MIXPREC_CUDA_NEXT_
    __syncthreads(); /* the fragments that were loaded ahead of the last products were read there, though in vain */
    float *out = (float *)(void *)shared;
    const int pitch = columns + 8;
    const int a_way = mixprec_cuda_mma_way_(mma::bytes, a_lines_are_k),
              b_way = mixprec_cuda_mma_way_(mma::bytes, b_lines_are_k);
#pragma unroll
    for (int t = 0; t < 8; t++)
#pragma unroll
        for (int j = 0; j < 8; j++) { /* two neighbours in the tile: of one fragment, or of two */
            int e = b_way == 1 ? 0 : j % 2, first = j / b_way * b_way;
            float *to = out + (warp_row + t / a_way * 8 * a_way + lane / 4 * a_way + t % a_way) * pitch + warp_column +
                        first * 8 + (lane % 4 * 2 + e) * b_way;
            *(float2 *)to = make_float2((float)sums[t / 2][first][t % 2 * 2 + e],
                                        (float)sums[t / 2][first + b_way - 1][t % 2 * 2 + (b_way == 1 ? 1 : e)]);
        }
    /* the place once more: kept in registers it makes sm_120's ptxas spill */
    mixprec_cuda_end_<rows, columns, threads, MIXPREC_CUDA_MMA_BYTES_(columns)>(
        g, mixprec_cuda_place_of_(g, rows, columns, blockIdx.x, blockIdx.z));
}
template <int kind, bool a_lines_are_k, bool b_lines_are_k, int columns>
static __global__ void __launch_bounds__(columns, 1)
    mixprec_cuda_gemm_mma_(const MIXPREC_CUDA_PARAMETER_ mixprec_cuda_gemm_args_ g) {
    mixprec_cuda_begin_after_last_();
    /* the launcher never starts what is left out here: see mixprec_cuda_device_of_ */
    if (MIXPREC_CUDA_ARCH_ >= 800 && (columns == 128 || MIXPREC_CUDA_HAS_LARGE_TILE_(MIXPREC_CUDA_ARCH_)) &&
        (kind <= MIXPREC_CUDA_FP8_ || MIXPREC_CUDA_HAS_FP8_(MIXPREC_CUDA_ARCH_)))
        mixprec_cuda_gemm_mma_body_<kind, a_lines_are_k, b_lines_are_k, columns>(g);
}

/* ---- WGMMA: 128 x 128 or 128 x 256 tiles; a warpgroup brings A and B, two multiply 64 rows each ---- */

/* A ring of stages in shared memory holds 128 bytes of k each. Its producer waits until a stage is empty, fills it and
   says so; consumers wait until it is full, multiply and say that it is empty. A block goes from tile to tile, so that
   while one ends the ring fills for the next. Full stages come
     - from the copy engine, one thread starting it. Two blocks with tiles one above the other are a cluster then: each
       brings half of their B to both; or, where there are few tiles, two with one tile, which take half of k each;
     - where that cannot be used (addresses, pointers to matrices), by cp.async, or element by element.
   The consumers round f32 to TF32 where it lies, as the instruction would cut, and decode fp8 with exact products to
   fp16, half of a stage at a time, while the half before is multiplied. */

/* A matrix in shared memory as the instruction wants to know it, PTX ISA 9.0, 9.7.15.5.1: 16-byte chunks exclusive-ored
   with the line's number modulo 8, eight lines of 128 bytes, then 1024 bytes further on the next eight, and
   `panel_bytes` apart the panels of lines of k (of others that number is not looked at). Chunk and line are bits of the
   address itself: these kernels have no static shared memory, so that theirs begins at 1024. */
MIXPREC_CUDA_DEV_ uint64_t mixprec_cuda_wgmma_matrix_(uint32_t address, int panel_bytes) {
    return (uint64_t)1 << 62 | (uint64_t)(1024 / 16) << 32 | (uint64_t)(uint32_t)(panel_bytes / 16) << 16 |
           (address & 0x3FFFF) / 16; /* in a cluster addresses begin with the rank of the block */
}

template <int kind> struct mixprec_cuda_wgmma_kind_;
#define MIXPREC_CUDA_KIND_(kind, instruction)                                                                          \
    template <> struct mixprec_cuda_wgmma_kind_<kind> {                                                                \
        template <bool a_trans, bool b_trans, class Sums>                                                              \
        static __device__ __forceinline__ void multiply(Sums &d, uint64_t a, uint64_t b, bool add) {                   \
            mixprec_cuda_wgmma_##instruction##_<a_trans, b_trans>(d, a, b, add);                                       \
        }                                                                                                              \
    };
MIXPREC_CUDA_KIND_(MIXPREC_CUDA_F16_, f16)
MIXPREC_CUDA_KIND_(MIXPREC_CUDA_BF16_, bf16)
MIXPREC_CUDA_KIND_(MIXPREC_CUDA_TF32_, tf32)
MIXPREC_CUDA_KIND_(MIXPREC_CUDA_S8_, s8)
MIXPREC_CUDA_KIND_(MIXPREC_CUDA_FP8_, f16)
MIXPREC_CUDA_KIND_(MIXPREC_CUDA_E4M3_E4M3_, e4m3_e4m3)
MIXPREC_CUDA_KIND_(MIXPREC_CUDA_E4M3_E5M2_, e4m3_e5m2)
MIXPREC_CUDA_KIND_(MIXPREC_CUDA_E5M2_E4M3_, e5m2_e4m3)
MIXPREC_CUDA_KIND_(MIXPREC_CUDA_E5M2_E5M2_, e5m2_e5m2)
#undef MIXPREC_CUDA_KIND_

/* Decodes half a tile of fp8, 64 of its 128 k, to a tile of fp16. Of the layouts only the size of elements differs. A
   thread waits once for all that it loads at once. */
template <bool lines_are_k, int rows>
MIXPREC_CUDA_DEV_ void mixprec_cuda_wgmma_decode_(uint32_t to, uint32_t from, int half, bool e5m2) {
    typedef mixprec_cuda_mma_copy_<1, lines_are_k, rows, 256, lines_are_k> narrow;
    typedef mixprec_cuda_mma_copy_<2, lines_are_k, rows, 256, lines_are_k> wide;
    const int chunks = lines_are_k ? rows / 16 : 4, t = (int)threadIdx.x, at_once = 2;
#pragma unroll
    for (int i0 = 0; i0 < rows * 4 / 256; i0 += at_once) {
        uint4 x[at_once];
        int line[at_once], chunk = t % chunks;
#pragma unroll
        for (int i = 0; i < at_once; i++) {
            /* eight threads have chunks of two lines whose numbers differ in bits 0 and 2: no bank is met twice */
            line[i] = t / chunks + (i0 + i) * (256 / chunks);
            if (!lines_are_k)
                line[i] = line[i] / 8 * 8 + (line[i] / 2 % 4 ^ line[i] % 2 * 5);
            x[i] = mixprec_cuda_load_four_(from + (lines_are_k ? narrow::place(half * 64 + line[i], chunk)
                                                               : narrow::place(line[i], half * 4 + chunk)));
        }
#pragma unroll
        for (int i = 0; i < at_once; i++) {
            const uint32_t words[4] = {x[i].x, x[i].y, x[i].z, x[i].w};
            uint32_t y[8];
#pragma unroll
            for (int w = 0; w < 8; w++)
                y[w] = mixprec_cuda_fp8x2_(words[w / 2] >> w % 2 * 16, e5m2);
            mixprec_cuda_wgmma_put_(to + wide::place(line[i], 2 * chunk), make_uint4(y[0], y[1], y[2], y[3]));
            mixprec_cuda_wgmma_put_(to + wide::place(line[i], 2 * chunk + 1), make_uint4(y[4], y[5], y[6], y[7]));
        }
    }
}

/* Rounds `bytes` of a stage to TF32, where they lie. */
template <int bytes> MIXPREC_CUDA_DEV_ void mixprec_cuda_wgmma_tf32_(uint32_t stage) {
    const int at_once = 4;
    stage += threadIdx.x * 16;
#pragma unroll
    for (int i0 = 0; i0 < bytes; i0 += at_once * 256 * 16) {
        uint4 x[at_once];
#pragma unroll
        for (int i = 0; i < at_once; i++)
            x[i] = mixprec_cuda_load_four_(stage + i0 + i * 256 * 16);
#pragma unroll
        for (int i = 0; i < at_once; i++)
            mixprec_cuda_wgmma_put_(stage + i0 + i * 256 * 16,
                                    make_uint4(mixprec_cuda_tf32_(x[i].x), mixprec_cuda_tf32_(x[i].y),
                                               mixprec_cuda_tf32_(x[i].z), mixprec_cuda_tf32_(x[i].w)));
    }
}

MIXPREC_CUDA_DEV_ uint32_t mixprec_cuda_sum_bits_(float x) {
    return mixprec_cuda_bits_(x);
}
MIXPREC_CUDA_DEV_ uint32_t mixprec_cuda_sum_bits_(int x) {
    return (uint32_t)x;
}
MIXPREC_CUDA_DEV_ void mixprec_cuda_add_bits_(float &x, uint32_t bits) {
    x = mixprec_cuda_add_(x, mixprec_cuda_float_(bits));
}
MIXPREC_CUDA_DEV_ void mixprec_cuda_add_bits_(int &x, uint32_t bits) {
    x += (int)bits;
}

/* Shared memory: the ring; for each warp of the consumers 16 x 32 sums, 8 floats between their rows; scales and bias of
   the columns of two tiles; the barriers. */
#define MIXPREC_CUDA_WGMMA_RING_ (192 * 1024)
#define MIXPREC_CUDA_WGMMA_ENDS_ (8 * 16 * 40 * 4)
#define MIXPREC_CUDA_WGMMA_TABLE_ (2 * 256 * 8)
#define MIXPREC_CUDA_WGMMA_BYTES_                                                                                      \
    (MIXPREC_CUDA_WGMMA_RING_ + MIXPREC_CUDA_WGMMA_ENDS_ + MIXPREC_CUDA_WGMMA_TABLE_ + 128)
template <int kind, bool a_lines_are_k, bool b_lines_are_k, int columns> struct mixprec_cuda_wgmma_body_ {
    typedef mixprec_cuda_mma_kind_<kind> mma;
    enum {
        rows = MIXPREC_CUDA_MMA_ROWS_,
        stage_bytes = (rows + columns) * 128,
        decode = kind == MIXPREC_CUDA_FP8_,
        apart = kind >= MIXPREC_CUDA_E4M3_E4M3_, /* sums of 128 are added in fp32: the units' own lose too much */
        tf32 = kind == MIXPREC_CUDA_TF32_,
        wide = decode ? 2 : 0, /* stages before the ring's, for what is decoded */
        stages = MIXPREC_CUDA_WGMMA_RING_ / stage_bytes - wide,
        multiplier_registers = apart ? 224 : 208,               /* of 504 for a thread of each warpgroup */
        depth = 128 / mma::bytes,                               /* of k in a stage that is copied */
        step = decode || mma::bytes == 2 ? 16 : 32 / mma::bytes /* of k in an instruction */
    };
    const mixprec_cuda_gemm_args_ &g;
    const uint32_t ring, full, empty, table, passed; /* barriers: full and empty one for each stage */
    uint32_t rank;                                   /* in the cluster */
    uint32_t stage, parity;                          /* the next stage and its phase */

    __device__ __forceinline__ mixprec_cuda_wgmma_body_(const mixprec_cuda_gemm_args_ &args)
        : g(args), ring(mixprec_cuda_shared_address_(mixprec_cuda_shared_())),
          full(ring + MIXPREC_CUDA_WGMMA_RING_ + MIXPREC_CUDA_WGMMA_ENDS_ + MIXPREC_CUDA_WGMMA_TABLE_),
          empty(full + stages * 8), table(empty + stages * 8), passed(table + 8), rank(mixprec_cuda_cluster_rank_()),
          stage(0), parity(0) {
        if (threadIdx.x == 0) {
            for (int i = 0; i < stages; i++) {
                mixprec_cuda_barrier_begin_(full + i * 8, g.mapped ? 1 : 128);
                mixprec_cuda_barrier_begin_(empty + i * 8, 8 * sharers());
            }
            mixprec_cuda_barrier_begin_(table, 256);
            mixprec_cuda_barrier_begin_(passed, 1);
            if (halves())
                mixprec_cuda_barrier_expect_(passed, rows * columns / 2 * 4);
        }
        mixprec_cuda_cluster_sync_();
    }
    /* The narrow tile's kernels alone: the others have no registers left for it, nor do they run few tiles. */
    __device__ __forceinline__ bool halves() const {
        return columns == 128 && g.halves;
    }
    __device__ __forceinline__ uint32_t sharers() const { /* blocks of the cluster, which share tiles of B */
        return halves() ? 1 : g.cluster;
    }
    /* for_each_tile(work(place)): the tiles of this block, in order; `place` is that of its rows. */
    template <class Work> __device__ __forceinline__ void for_each_tile(Work work) {
        const uint32_t tiles = g.tiles_m * g.tiles_n;
#pragma unroll 1
        for (uint32_t i = blockIdx.x / g.cluster; i < tiles * g.parts; i += gridDim.x / g.cluster) {
            mixprec_cuda_place_ place = mixprec_cuda_place_of_(g, rows * (int)sharers(), columns, i % tiles, i / tiles);
            if (halves()) {
                const size_t middle =
                    place.k_begin + (place.k_end - place.k_begin + 2 * depth - 1) / (2 * depth) * depth;
                (rank ? place.k_begin : place.k_end) = middle < place.k_end ? middle : place.k_end;
            } else
                place.row += rank * rows;
            if (place.any)
                work(place);
        }
    }
    __device__ __forceinline__ static uint32_t copies_of(const mixprec_cuda_place_ &place) {
        return (uint32_t)((place.k_end - place.k_begin + depth - 1) / depth);
    }
    __device__ __forceinline__ uint32_t at(uint32_t s) const {
        return ring + (wide + s) * stage_bytes;
    }
    __device__ __forceinline__ void advance() {
        stage = stage + 1 == (uint32_t)stages - halves() ? 0 : stage + 1;
        parity ^= stage == 0;
    }

    /* One operand's part of a stage, of `count` rows from `row` on, by the copy engine. */
    template <bool lines_are_k, int count>
    __device__ __forceinline__ void bring(uint32_t to, const mixprec_cuda_map_ &map, size_t row, size_t k, size_t batch,
                                          bool both) const {
        if (lines_are_k)
#pragma unroll
            for (int i = 0; i < count * mma::bytes / 128; i++)
                mixprec_cuda_map_copy_(to + i * 128 * depth, &map, full + stage * 8, (int)(row * mma::bytes) + i * 128,
                                       (int)k, (int)batch, both);
        else
            mixprec_cuda_map_copy_(to, &map, full + stage * 8, (int)(k * mma::bytes), (int)row, (int)batch, both);
    }
    __device__ __forceinline__ void produce_mapped() {
        for_each_tile([&](const mixprec_cuda_place_ &place) {
            const size_t a_batch = g.a.stride ? mixprec_cuda_batch_of_(g, place.z) : 0,
                         b_batch = g.b.stride ? mixprec_cuda_batch_of_(g, place.z) : 0;
            size_t k = place.k_begin;
#pragma unroll 1
            for (uint32_t i = copies_of(place); i > 0; i--, k += depth) {
                const uint32_t to = at(stage), b_to = to + rows * 128;
                mixprec_cuda_barrier_wait_(empty + stage * 8, parity ^ 1);
                mixprec_cuda_barrier_expect_(full + stage * 8, stage_bytes);
                bring<a_lines_are_k, rows>(to, g.a_map, g.row_begin + place.row, k, a_batch, false);
                if (sharers() == 2)
                    bring<b_lines_are_k, columns / 2>(b_to + rank * (columns / 2 * 128), g.b_map,
                                                      place.column + rank * (columns / 2), k, b_batch, true);
                else
                    bring<b_lines_are_k, columns>(b_to, g.b_map, place.column, k, b_batch, false);
                advance();
            }
        });
    }
    __device__ __forceinline__ void produce() {
        const uint32_t lag = stages / 2;        /* copies under way */
        uint32_t filled = 0, filled_parity = 0; /* the stage to copy to: `lag` before `stage`, which is published */
        for_each_tile([&](const mixprec_cuda_place_ &place) {
            mixprec_cuda_mma_copy_<mma::bytes, a_lines_are_k, rows, 128, a_lines_are_k, true> copy_a;
            mixprec_cuda_mma_copy_<mma::bytes, b_lines_are_k, columns, 128, b_lines_are_k, true> copy_b;
            const size_t batch = mixprec_cuda_batch_of_(g, place.z);
            const char *a = mixprec_cuda_base_(g.a, batch, mma::bytes), *b = mixprec_cuda_base_(g.b, batch, mma::bytes);
            const uint32_t copies = copies_of(place);
            size_t k_left = place.k_end - place.k_begin;
            a += g.row_begin * g.a.row_step * mma::bytes;
            copy_a.begin(g.a, a, place.row, place.k_begin);
            copy_b.begin(g.b, b, place.column, place.k_begin);
#pragma unroll 1
            for (uint32_t i = 0; i < copies + lag; i++) {
                if (i < copies) {
                    mixprec_cuda_barrier_wait_(empty + filled * 8, filled_parity ^ 1);
                    copy_a.start(at(filled), g.a, a, place.row, k_left, place.k_end);
                    copy_b.start(at(filled) + rows * 128, g.b, b, place.column, k_left, place.k_end);
                    k_left -= k_left < (size_t)depth ? k_left : (size_t)depth;
                    filled = filled + 1 == stages ? 0 : filled + 1;
                    filled_parity ^= filled == 0;
                }
                mixprec_cuda_copy_commit_();
                mixprec_cuda_copy_wait_<stages / 2>();
                if (i >= lag) {
                    mixprec_cuda_wgmma_publish_();
                    mixprec_cuda_barrier_arrive_(full + stage * 8, rank);
                    advance();
                }
            }
        });
    }

    /* Adds 128 bytes of k from a stage to the sums of half the tile's rows and columns from `first` on. */
    template <class Sum, int count>
    __device__ __forceinline__ void multiply(Sum (&sums)[count], uint32_t from, int first, bool add) const {
        const uint64_t a = mixprec_cuda_wgmma_matrix_(from + threadIdx.x / 128 * 64 * 128, 64 * 128),
                       b = mixprec_cuda_wgmma_matrix_(from + (rows + first) * 128, 64 * 128);
        mixprec_cuda_wgmma_begin_();
#pragma unroll
        for (int kk = 0; kk < 4; kk++)
            mixprec_cuda_wgmma_kind_<kind>::template multiply<a_lines_are_k, b_lines_are_k>(
                sums, a + kk * (a_lines_are_k ? step * 128 : 32) / 16, b + kk * (b_lines_are_k ? step * 128 : 32) / 16,
                add || kk > 0);
        mixprec_cuda_wgmma_commit_();
    }
    /* This warp has read a stage. */
    __device__ __forceinline__ void leave(uint32_t s) const {
        if (threadIdx.x % 32 < sharers())
            mixprec_cuda_barrier_arrive_(empty + s * 8, halves() ? rank : threadIdx.x % 32);
    }
    __device__ __forceinline__ void consume() {
        const bool plain = is_plain();
        uint32_t number = 0; /* of the tile */
        for_each_tile([&](const mixprec_cuda_place_ &place) {
            typename mma::sum sums[columns / 2], part[64];
            const uint32_t count = copies_of(place);
            uint32_t before = 0;
            if (g.in_place && !plain)
                prepare_columns(place.column, number % 2);
#pragma unroll
            for (int i = 0; i < columns / 2; i++)
                sums[i] = 0;
#pragma unroll 1
            for (uint32_t i = 0; i < count; i++) {
                mixprec_cuda_barrier_wait_(full + stage * 8, parity);
                if (decode) {
#pragma unroll 1
                    for (int half = 0; half < 2; half++) {
                        const uint32_t to = ring + half * stage_bytes;
                        mixprec_cuda_wgmma_wait_<1>();
                        mixprec_cuda_sync_(1, 256); /* all have done with what was there */
                        mixprec_cuda_wgmma_decode_<a_lines_are_k, rows>(to, at(stage), half, g.a.type == MIXPREC_E5M2);
                        mixprec_cuda_wgmma_decode_<b_lines_are_k, columns>(to + rows * 128, at(stage) + rows * 128,
                                                                           half, g.b.type == MIXPREC_E5M2);
                        mixprec_cuda_wgmma_publish_();
                        mixprec_cuda_sync_(1, 256);
                        multiply(sums, to, 0, true);
                    }
                    leave(stage);
                } else if (apart) { /* while one warpgroup adds, the other one multiplies */
#pragma unroll
                    for (int q = 0; q < columns / 128; q++) {
                        multiply(part, at(stage), q * 128, false);
                        mixprec_cuda_wgmma_finish_<0>(part);
#pragma unroll
                        for (int e = 0; e < 64; e++)
                            sums[q * 64 + e] = mixprec_cuda_add_(sums[q * 64 + e], part[e]);
                    }
                    leave(stage);
                } else {
                    if (tf32 && !(g.a.rounded && g.b.rounded)) {
                        if (!g.a.rounded)
                            mixprec_cuda_wgmma_tf32_<rows * 128>(at(stage));
                        if (!g.b.rounded)
                            mixprec_cuda_wgmma_tf32_<columns * 128>(at(stage) + rows * 128);
                        mixprec_cuda_wgmma_publish_();
                        mixprec_cuda_sync_(1, 256);
                    }
                    multiply(sums, at(stage), 0, true);
                    mixprec_cuda_wgmma_wait_<1>();
                    if (i > 0)
                        leave(before);
                    before = stage;
                }
                advance();
            }
            mixprec_cuda_wgmma_finish_<0>(sums);
            if (!decode && !apart && count)
                leave(before);
            if (halves())
                add_halves(sums);
            if (g.in_place)
                end(sums, place, plain, number % 2);
            else if (place.row < g.a.rows) /* the lower tile of a cluster need not exist */
                end_whole(sums, place);
            number++;
        });
    }
    /* Each of the two blocks ends half of the columns: it sends the sums of the other half to the other block, to the
       stage that the ring does without, and adds what comes from there. Once: the launcher sees to it that a cluster
       which halves k has one tile. */
    template <class Sum> __device__ __forceinline__ void add_halves(Sum (&sums)[columns / 2]) const {
        const int half = columns / 4;
        const uint32_t place = at(stages - 1) + threadIdx.x * 16;
#pragma unroll
        for (int i = 0; i < half; i += 4) {
            uint32_t x[4];
#pragma unroll
            for (int e = 0; e < 4; e++)
                x[e] = mixprec_cuda_sum_bits_(rank ? sums[i + e] : sums[half + i + e]);
            mixprec_cuda_send_(place + i / 4 * 256 * 16, rank ^ 1, passed, make_uint4(x[0], x[1], x[2], x[3]));
        }
        mixprec_cuda_barrier_wait_(passed, 0);
#pragma unroll
        for (int i = 0; i < half; i += 4) {
            const uint4 x = mixprec_cuda_load_four_(place + i / 4 * 256 * 16);
            const uint32_t bits[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
            for (int e = 0; e < 4; e++)
                if (rank)
                    mixprec_cuda_add_bits_(sums[half + i + e], bits[e]);
                else
                    mixprec_cuda_add_bits_(sums[i + e], bits[e]);
        }
    }
    /* Nothing is to be done with the sums. */
    __device__ __forceinline__ bool is_plain() const {
        return g.partial ||
               (g.simple && mixprec_cuda_alpha_(g) == 1 && g.k && !g.a.scale && !g.b.scale && !g.bias && !g.activation);
    }
    /* Neither A and B nor their scales are looked at. */
    __device__ __forceinline__ bool is_nothing() const {
        return mixprec_cuda_is_zero_(mixprec_cuda_alpha_(g)) || g.k == 0;
    }
    __device__ __forceinline__ float *column_table(uint32_t which) const {
        return (float *)(void *)(mixprec_cuda_shared_() + MIXPREC_CUDA_WGMMA_RING_ + MIXPREC_CUDA_WGMMA_ENDS_) +
               which * 512;
    }
    /* The scales and the bias of a tile's columns, while it is multiplied. The table was that of the tile before the
       last one, which all have ended: in the last one's end this thread has waited until all had begun it. */
    __device__ __forceinline__ void prepare_columns(size_t column, uint32_t which) const {
        const int t = (int)threadIdx.x;
        float scale = 1.0f, bias = -0.0f;
        column += t;
        if (t < columns && column < g.n) {
            if (g.b.scale && !is_nothing())
                scale = mixprec_cuda_global_(g.b.scale)[g.b.row_block ? column * g.b.row_scale : 0];
            if (g.bias) {
                const uint32_t bytes = mixprec_cuda_size_(g.bias_type),
                               code = mixprec_cuda_element_(g.bias, bytes, column);
                bias = bytes == 4                    ? mixprec_cuda_float_(code)
                       : g.bias_type == MIXPREC_BF16 ? mixprec_cuda_float_(code << 16)
                                                     : mixprec_cuda_cvt_f16_(code);
            }
            column_table(which)[t] = scale;
            column_table(which)[256 + t] = bias;
        }
        mixprec_cuda_barrier_arrive_(table, rank);
    }
    /* A tile of sums goes to C, or to the partial sums: 32 columns of a warp's 16 rows at a time. The loop must not be
       unrolled: code that a tile runs but once comes from memory more slowly than it runs. */
    template <class Sum>
    __device__ __forceinline__ void end(Sum (&sums)[columns / 2], const mixprec_cuda_place_ &place, bool plain,
                                        uint32_t which) {
        const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, r = lane / 8, c = lane % 8 * 4;
        const int count = columns / 32 / (halves() ? 2 : 1), first = halves() ? (int)rank * count : 0;
        float *tile = (float *)(void *)(mixprec_cuda_shared_() + MIXPREC_CUDA_WGMMA_RING_) + warp * 16 * 40;
        float *to = tile + lane / 4 * 40 + lane % 4 * 2;
        size_t row0 = place.row + warp * 16, left = g.a.rows > row0 ? g.a.rows - row0 : 0;
        const int last = left < 16 ? (int)left : 16;
        const mixprec_dtype type = g.partial ? MIXPREC_F32 : g.c_type;
        const uint32_t size = mixprec_cuda_size_(type);
        float of_row[4];
        mixprec_cuda_columns_ four;
        if (g.partial) {
            four.c = (char *)mixprec_cuda_partial_(g, place.z, 0, place.column);
            four.pitch = (g.n + 3) / 4 * 16;
        } else {
            four.c = (char *)mixprec_cuda_global_(g.c) +
                     (mixprec_cuda_batch_of_(g, place.z) * g.stride_c + place.column) * size;
            four.pitch = g.ldc * size;
            row0 += g.row_begin;
        }
        four.c += (first * 32 + c) * size;
        four.type = type, four.size = (int)size, four.beta = mixprec_cuda_beta_(g);
        const bool aligned = ((uintptr_t)four.c | four.pitch) % (4 * size) == 0;
        if (!plain) {
            four.nothing = is_nothing();
            four.alpha = four.nothing ? 0.0f : mixprec_cuda_alpha_(g);
            four.activation = g.activation;
#pragma unroll
            for (int i = 0; i < 4; i++)
                of_row[i] = !four.nothing && g.a.scale && r + 4 * i < last
                                ? mixprec_cuda_scale_at_(g.a, row0 + r + 4 * i, 0)
                                : 1.0f;
            mixprec_cuda_barrier_wait_(table, which);
        }
#pragma unroll 1
        for (int q = first; q < first + count; q++) {
            const size_t column = place.column + q * 32 + c;
            __syncwarp();
#pragma unroll
            for (int part = 0; part < columns / 32; part++)
                if (part == q)
#pragma unroll
                    for (int i = 0; i < 16; i += 2)
                        *(float2 *)(void *)(to + i / 2 % 2 * 8 * 40 + i / 4 * 8) =
                            make_float2((float)sums[part * 16 + i], (float)sums[part * 16 + i + 1]);
            __syncwarp();
            if (column < g.n && plain)
                mixprec_cuda_finish_simple_as_<true>(four, type, tile + c, 40, row0, r, last, 4, of_row);
            else if (column < g.n) {
                const float *at = column_table(which) + q * 32 + c;
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    four.scale[e] = at[e];
                    four.bias[e] = at[256 + e];
                }
                four.count = g.n - column < 4 ? (int)(g.n - column) : 4;
                if (g.simple) {
                    mixprec_cuda_finish_activated_(four, tile + c, 40, row0, r, last, 4, of_row);
                } else {
                    const bool whole = aligned && four.count == 4;
                    mixprec_cuda_finish_any_(four, g, tile + c, 40, row0, r, last, 4, of_row, whole);
                    if (!decode && !g.narrows) /* decoding has no registers left for it: end_whole */
                        mixprec_cuda_finish_rounded_(
                            four, g, g.offset + (mixprec_cuda_batch_of_(g, place.z) * g.m + row0 + r) * g.n + column,
                            tile + c, 40, row0, r, last, 4, whole);
                }
            }
            four.c += 32 * size;
        }
    }
    /* The same, in any way, over the ring: the block has no other tile. */
    template <class Sum>
    __device__ __forceinline__ void end_whole(Sum (&sums)[columns / 2], const mixprec_cuda_place_ &place) {
        const int lane = (int)threadIdx.x % 32;
        float *out = (float *)(void *)mixprec_cuda_shared_() + ((int)threadIdx.x / 32 * 16 + lane / 4) * (columns + 8) +
                     lane % 4 * 2;
        mixprec_cuda_sync_(1, 256); /* all have read the ring */
#pragma unroll
        for (int i = 0; i < columns / 2; i += 2)
            *(float2 *)(void *)(out + i / 2 % 2 * 8 * (columns + 8) + i / 4 * 8) =
                make_float2((float)sums[i], (float)sums[i + 1]);
        mixprec_cuda_end_<rows, columns, 256, MIXPREC_CUDA_WGMMA_RING_>(g, place);
    }

    __device__ __forceinline__ void run() {
        mixprec_cuda_begin_after_last_();
        if (threadIdx.x < 256) {
            mixprec_cuda_take_registers_<multiplier_registers, true>();
            consume();
        } else {
            mixprec_cuda_take_registers_<504 - 2 * multiplier_registers, false>();
            if (!g.mapped)
                produce();
            else if (threadIdx.x == 256)
                produce_mapped();
        }
        mixprec_cuda_cluster_sync_(); /* the other block may still arrive here, or send */
    }
};
template <int kind, bool a_lines_are_k, bool b_lines_are_k, int columns>
static __global__ void __launch_bounds__(384, 1)
    mixprec_cuda_gemm_wgmma_(const MIXPREC_CUDA_PARAMETER_ mixprec_cuda_gemm_args_ g) {
#if MIXPREC_CUDA_HAS_WGMMA_
    mixprec_cuda_wgmma_body_<kind, a_lines_are_k, b_lines_are_k, columns>(g).run();
#endif
}
/* Never launched: by its shared memory the launcher knows whether the kernels above have a body, as nothing else tells
   code for sm_90a from code for sm_90. */
static __global__ void mixprec_cuda_has_wgmma_(void) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    __shared__ volatile int here;
    here = 1;
#endif
}

/* ================================================================================================================== */
/* [CUDA-LAUNCH] Argument checks and launchers                                                                        */
/* ================================================================================================================== */

static thread_local cudaError_t mixprec_cuda_error_value_ = cudaSuccess;

const char *mixprec_cuda_last_error(void) {
    return cudaGetErrorString(mixprec_cuda_error_value_);
}

static mixprec_status mixprec_cuda_error_(cudaError_t error) {
    if (error == cudaSuccess)
        return MIXPREC_OK;
    mixprec_cuda_error_value_ = error;
    if (cudaPeekAtLastError() == error) /* the caller's own check after a launch must not find it */
        (void)cudaGetLastError();
    return error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver ||
                   error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction ||
                   error == cudaErrorUnsupportedPtxVersion || error == cudaErrorJitCompilationDisabled
               ? MIXPREC_ERR_DEVICE
               : MIXPREC_ERR_CUDA;
}
#define MIXPREC_CUDA_TRY_(call)                                                                                        \
    do {                                                                                                               \
        mixprec_status try_status = (call);                                                                            \
        if (try_status != MIXPREC_OK)                                                                                  \
            return try_status;                                                                                         \
    } while (0)

/* The current device, and the architecture that the program's code for it was compiled for: an sm_90 device may run
   code made for compute_75, in which kernels for later ones are empty. Both as major * 100 + minor * 10. */
typedef struct mixprec_cuda_device_ {
    int capability, compiled, multiprocessors, shared_bytes;
    bool early; /* kernels may begin before the one before them has ended, also when they are captured into a graph */
} mixprec_cuda_device_;

static mixprec_status mixprec_cuda_device_of_(mixprec_cuda_device_ *device) {
    int index = 0, major = 0, minor = 0, driver = 0;
    cudaFuncAttributes attributes;
    MIXPREC_CUDA_TRY_(mixprec_cuda_error_(cudaGetDevice(&index)));
    MIXPREC_CUDA_TRY_(mixprec_cuda_error_(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index)));
    MIXPREC_CUDA_TRY_(mixprec_cuda_error_(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index)));
    MIXPREC_CUDA_TRY_(
        mixprec_cuda_error_(cudaDeviceGetAttribute(&device->multiprocessors, cudaDevAttrMultiProcessorCount, index)));
    MIXPREC_CUDA_TRY_(mixprec_cuda_error_(
        cudaDeviceGetAttribute(&device->shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, index)));
    device->capability = major * 100 + minor * 10;
    if (device->capability < 750)
        return mixprec_cuda_error_(cudaErrorNoKernelImageForDevice);
    MIXPREC_CUDA_TRY_(
        mixprec_cuda_error_(cudaFuncGetAttributes(&attributes, (const void *)mixprec_cuda_scaler_update_)));
    device->compiled = attributes.ptxVersion * 10;
    if (device->compiled < 750)
        return mixprec_cuda_error_(cudaErrorNoKernelImageForDevice);
    MIXPREC_CUDA_TRY_(mixprec_cuda_error_(cudaDriverGetVersion(&driver)));
    device->early = device->compiled >= 900 && CUDART_VERSION >= 12030 && driver >= 12030;
    return MIXPREC_OK;
}

mixprec_status mixprec_cuda_check(void) {
    mixprec_cuda_device_ device;
    return mixprec_cuda_device_of_(&device);
}

/* In clusters of blocks; `early`: the kernel waits itself for the one launched before it. */
template <class... Parameters, class... Arguments>
static mixprec_status mixprec_cuda_launch_ex_(bool early, void (*kernel)(Parameters...), size_t blocks, size_t depth,
                                              uint32_t cluster, int threads, size_t shared, mixprec_cuda_stream stream,
                                              Arguments... arguments) {
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attributes[2] = {};
    if (shared > 48 * 1024)
        MIXPREC_CUDA_TRY_(mixprec_cuda_error_(
            cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared)));
    config.gridDim = dim3((unsigned)blocks, 1, (unsigned)depth);
    config.blockDim = dim3((unsigned)threads);
    config.dynamicSmemBytes = shared;
    config.stream = (cudaStream_t)stream;
    config.attrs = attributes;
    if (cluster > 1) {
        cudaLaunchAttribute *clusters = &attributes[config.numAttrs++];
        clusters->id = cudaLaunchAttributeClusterDimension;
        clusters->val.clusterDim.x = cluster, clusters->val.clusterDim.y = clusters->val.clusterDim.z = 1;
    }
    if (early) {
        cudaLaunchAttribute *overlap = &attributes[config.numAttrs++];
        overlap->id = cudaLaunchAttributeProgrammaticStreamSerialization;
        overlap->val.programmaticStreamSerializationAllowed = 1;
    }
    return mixprec_cuda_error_(cudaLaunchKernelEx(&config, kernel, arguments...));
}
template <class... Parameters, class... Arguments>
static mixprec_status mixprec_cuda_launch_(void (*kernel)(Parameters...), size_t blocks, size_t depth, int threads,
                                           size_t shared, mixprec_cuda_stream stream, Arguments... arguments) {
    return mixprec_cuda_launch_ex_(false, kernel, blocks, depth, 1, threads, shared, stream, arguments...);
}

static bool mixprec_cuda_is_compute_type_(mixprec_dtype type) {
    return type == MIXPREC_F32 || ((unsigned)type >= MIXPREC_F16 && (unsigned)type <= MIXPREC_E5M2);
}
static bool mixprec_cuda_is_fp8_(mixprec_dtype type) {
    return type == MIXPREC_E4M3 || type == MIXPREC_E5M2;
}
static bool mixprec_cuda_overlap_(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
    uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return a_bytes && b_bytes && (x <= y ? y - x < a_bytes : x - y < b_bytes);
}
/* An access that is not aligned would end all of the process's work on the device: it is refused in CUDA's own
   words. */
static mixprec_status mixprec_cuda_check_aligned_(const void *p, size_t size) {
    return mixprec_cuda_error_(size && (uintptr_t)p % size ? cudaErrorMisalignedAddress : cudaSuccess);
}
static size_t mixprec_cuda_bytes_(mixprec_dtype type, size_t n) {
    return type == MIXPREC_E2M1 ? n / 2 + n % 2 : n * mixprec_cuda_size_(type);
}

/* ---- lists ---- */

static void mixprec_cuda_fill_(mixprec_cuda_item_ *item, const mixprec_cuda_tensor &x) {
    item->p[0] = x.dst;
    item->p[1] = (void *)x.src;
    item->n = x.n;
}
static void mixprec_cuda_fill_(mixprec_cuda_item_ *item, const mixprec_cuda_quantized &x) {
    item->p[0] = x.dst;
    item->p[1] = (void *)x.src;
    item->p[2] = (void *)x.scale;
    item->p[3] = x.amax;
    item->p[4] = x.inverse;
    item->p[5] = (void *)x.step;
    item->n = x.n;
    item->round = (uint8_t)x.round;
    item->seed = x.seed, item->offset = x.offset;
}
static void mixprec_cuda_fill_matrix_(mixprec_cuda_item_ *item, size_t rows, size_t columns) {
    item->rows = rows, item->columns = columns;
    item->n = columns && rows > SIZE_MAX / columns ? SIZE_MAX : rows * columns;
}
static void mixprec_cuda_fill_(mixprec_cuda_item_ *item, const mixprec_cuda_transposed &x) {
    item->p[0] = x.dst;
    item->p[1] = (void *)x.src;
    item->p[2] = x.transposed;
    item->p[3] = (void *)x.scale;
    mixprec_cuda_fill_matrix_(item, x.rows, x.columns);
}
static void mixprec_cuda_fill_(mixprec_cuda_item_ *item, const mixprec_cuda_quantized_blocks &x) {
    item->p[0] = x.dst;
    item->p[1] = (void *)x.src;
    item->p[2] = x.inverse;
    mixprec_cuda_fill_matrix_(item, x.rows, x.columns);
}
static void mixprec_cuda_fill_(mixprec_cuda_item_ *item, const mixprec_parameter &x) {
    item->p[0] = (void *)x.grad;
    item->p[1] = x.master;
    item->p[2] = x.model;
    item->p[3] = x.compensation;
    item->p[4] = x.moment1;
    item->p[5] = x.moment2;
    item->n = x.n;
    item->src_type = (uint8_t)x.grad_type, item->dst_type = (uint8_t)x.model_type;
    item->round = (uint8_t)x.round; /* f32 does not saturate */
    item->overflow = (uint8_t)(x.model_type == MIXPREC_F32 ? MIXPREC_OVERFLOW_IEEE : x.overflow);
    item->seed = x.seed, item->offset = x.offset;
}

static size_t mixprec_cuda_chunks_(size_t n) {
    return (n + MIXPREC_CUDA_CHUNK_ - 1) / MIXPREC_CUDA_CHUNK_;
}
static size_t mixprec_cuda_tiles_(const mixprec_cuda_item_ &item, size_t rows, size_t columns) {
    return (item.rows + rows - 1) / rows * ((item.columns + columns - 1) / columns);
}
template <class Op> static size_t mixprec_cuda_chunks_of_(const Op &, const mixprec_cuda_item_ &item) {
    return mixprec_cuda_chunks_(item.n);
}
static size_t mixprec_cuda_chunks_of_(const mixprec_cuda_transpose_op_ &, const mixprec_cuda_item_ &item) {
    return mixprec_cuda_tiles_(item, MIXPREC_CUDA_TILE_ROWS_, MIXPREC_CUDA_TILE_COLUMNS_);
}
template <bool square>
static size_t mixprec_cuda_chunks_of_(const mixprec_cuda_quantize_blocks_op_<square> &,
                                      const mixprec_cuda_item_ &item) {
    return mixprec_cuda_tiles_(item, MIXPREC_CUDA_BLOCK_, MIXPREC_CUDA_BLOCK_);
}

/* What an operation does with the pointers of an item, for the checks: bits of those that must not be NULL, of those
   that are written, and of those that lead to one value, not to n; the bytes of a value. p[0] may be p[1] where the
   sizes are the same and `in_place`. `block_rows`: p[2] has a value for each block of that many rows and 128 columns.
   Of matrices: the tiles that the operation takes them in. */
typedef struct mixprec_cuda_access_ {
    unsigned needed, written, single;
    size_t size[MIXPREC_CUDA_POINTERS_];
    bool in_place;
    size_t block_rows, tile_rows, tile_columns;
} mixprec_cuda_access_;
/* The checks that all lists share. `other`: of the call, not of a tensor, and apart from all of them. */
template <class Record>
static mixprec_status mixprec_cuda_check_list_(const Record *list, size_t count, const mixprec_cuda_access_ &access,
                                               const void *other, size_t other_bytes) {
    if (count && !list)
        return MIXPREC_ERR_NULL;
    for (size_t i = 0; i < count; i++) {
        mixprec_cuda_item_ item = {};
        size_t bytes[MIXPREC_CUDA_POINTERS_];
        mixprec_cuda_fill_(&item, list[i]);
        if (!item.n)
            continue;
        for (int p = 0; p < MIXPREC_CUDA_POINTERS_; p++)
            if ((access.needed >> p & 1) && !item.p[p])
                return MIXPREC_ERR_NULL;
        if (item.n > SIZE_MAX / 16 ||
            (access.tile_rows ? mixprec_cuda_tiles_(item, access.tile_rows, access.tile_columns)
                              : mixprec_cuda_chunks_(item.n)) > 1u << 30)
            return MIXPREC_ERR_SIZE;
        for (int p = 0; p < MIXPREC_CUDA_POINTERS_; p++) {
            bytes[p] =
                access.size[p] * (access.single >> p & 1        ? 1
                                  : p == 2 && access.block_rows ? mixprec_cuda_tiles_(item, access.block_rows, 128)
                                                                : item.n);
            if (!item.p[p])
                bytes[p] = 0;
            if (mixprec_cuda_overlap_(item.p[p], bytes[p], other, other_bytes))
                return MIXPREC_ERR_OVERLAP;
            for (int q = 0; q < p; q++)
                if (((access.written >> p | access.written >> q) & 1) &&
                    !(p == 1 && access.in_place && item.p[0] == item.p[1] && bytes[0] == bytes[1]) &&
                    mixprec_cuda_overlap_(item.p[p], bytes[p], item.p[q], bytes[q]))
                    return MIXPREC_ERR_OVERLAP;
        }
        for (int p = 0; p < MIXPREC_CUDA_POINTERS_; p++)
            MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(item.p[p], access.size[p]));
    }
    return MIXPREC_OK;
}
/* dst and src; src alone where dst_type is MIXPREC_NONE, and dst is then ignored. */
static mixprec_status mixprec_cuda_check_tensors_(const mixprec_cuda_tensor *list, size_t count, mixprec_dtype dst_type,
                                                  mixprec_dtype src_type, const void *other, size_t other_bytes) {
    const unsigned dst = dst_type != MIXPREC_NONE;
    const mixprec_cuda_access_ access = {2 | dst, dst, 0, {mixprec_cuda_size_(dst_type), mixprec_cuda_size_(src_type)},
                                         true,    0,   0, 0};
    return mixprec_cuda_check_list_(list, count, access, other, other_bytes);
}

static size_t mixprec_cuda_blocks_(const mixprec_cuda_device_ &device) {
    return (size_t)device.multiprocessors * 32;
}
/* Gives the list to op, in as many launches as it takes. `blocks`: the most blocks of a launch, 0: what fills the
   device; where op leaves a result for each block, `advance` tells it how many blocks came before. */
template <class Op> static void mixprec_cuda_advance_(Op &, size_t) {
}
static void mixprec_cuda_advance_(mixprec_cuda_norm_op_ &op, size_t blocks) {
    op.partial += blocks;
}
template <class Op, class Record>
static mixprec_status mixprec_cuda_run_list_(Op &op, const Record *list, size_t count, size_t blocks, size_t shared,
                                             mixprec_cuda_stream stream) {
    static_assert(sizeof(Op) + sizeof(mixprec_cuda_list_) <= 4096, "more than a kernel's parameters may be");
    mixprec_cuda_device_ device;
    size_t i = 0;
    MIXPREC_CUDA_TRY_(mixprec_cuda_device_of_(&device));
    blocks = blocks ? blocks : mixprec_cuda_blocks_(device);
    while (i < count) {
        mixprec_cuda_list_ part = {};
        size_t chunks = 0, used;
        while (i < count && part.count < MIXPREC_CUDA_LIST_ && chunks <= 1u << 30) {
            mixprec_cuda_item_ *item = &part.items[part.count];
            mixprec_cuda_fill_(item, list[i++]);
            if (!item->n)
                continue;
            for (int p = 0; p < MIXPREC_CUDA_POINTERS_; p++)
                if ((uintptr_t)item->p[p] % 16 == 0)
                    item->whole |= (uint8_t)(1 << p);
            chunks += mixprec_cuda_chunks_of_(op, *item);
            part.first[++part.count] = (uint32_t)chunks;
        }
        if (!part.count)
            break;
        used = chunks < blocks ? chunks : blocks;
        MIXPREC_CUDA_TRY_(
            mixprec_cuda_launch_(mixprec_cuda_for_each_<Op>, used, 1, MIXPREC_CUDA_THREADS_, shared, stream, op, part));
        mixprec_cuda_advance_(op, used);
    }
    return MIXPREC_OK;
}

/* ---- conversion ---- */

mixprec_status mixprec_cuda_convert_ex(void *dst, mixprec_dtype dst_type, const void *src, mixprec_dtype src_type,
                                       size_t n, const mixprec_convert_options *options, mixprec_cuda_stream stream) {
    mixprec_convert_options how = {};
    mixprec_cuda_device_ device;
    size_t dst_bytes, src_bytes, blocks;
    uint32_t bits;
    if (!mixprec_cuda_size_(dst_type) || !mixprec_cuda_size_(src_type))
        return MIXPREC_ERR_DTYPE;
    if (options)
        how = *options;
    if ((unsigned)how.round > MIXPREC_ROUND_STOCHASTIC)
        return MIXPREC_ERR_ROUND;
    if ((unsigned)how.overflow > MIXPREC_OVERFLOW_SATURATE_KEEP_INF)
        return MIXPREC_ERR_OVERFLOW;
    bits = mixprec_f32_bits_(how.scale);
    if (bits << 1 == 0)
        how.scale = 1.0f;
    else if (bits >= 0x7F800000u)
        return MIXPREC_ERR_SCALE;
    if (how.isa != MIXPREC_ISA_AUTO)
        return MIXPREC_ERR_ISA;
    if (n == 0)
        return MIXPREC_OK;
    if (!dst || !src)
        return MIXPREC_ERR_NULL;
    if (n > SIZE_MAX / 16 || mixprec_cuda_chunks_(n) > 1u << 30)
        return MIXPREC_ERR_SIZE;
    dst_bytes = mixprec_cuda_bytes_(dst_type, n);
    src_bytes = mixprec_cuda_bytes_(src_type, n);
    if (!(dst == src && dst_bytes == src_bytes) && mixprec_cuda_overlap_(dst, dst_bytes, src, src_bytes))
        return MIXPREC_ERR_OVERLAP;
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(dst, mixprec_cuda_size_(dst_type)));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(src, mixprec_cuda_size_(src_type)));
    MIXPREC_CUDA_TRY_(mixprec_cuda_device_of_(&device));
    blocks = mixprec_cuda_blocks_(device);
    if (dst_type == src_type && how.scale == 1.0f)
        return dst == src
                   ? MIXPREC_OK
                   : mixprec_cuda_error_(cudaMemcpyAsync(dst, src, dst_bytes, cudaMemcpyDefault, (cudaStream_t)stream));
    if (mixprec_cuda_is_compute_type_(dst_type) && mixprec_cuda_is_compute_type_(src_type) && how.scale == 1.0f &&
        how.round == MIXPREC_ROUND_NEAREST_EVEN) {
        mixprec_cuda_convert_op_ op = {dst_type, src_type, how.overflow};
        mixprec_cuda_tensor one = {dst, src, n};
        return mixprec_cuda_run_list_(op, &one, 1, blocks, 0, stream);
    }
    return mixprec_cuda_launch_(mixprec_cuda_convert_any_, n / 512 + 1 < blocks ? n / 512 + 1 : blocks, 1,
                                MIXPREC_CUDA_THREADS_, 0, stream, dst, dst_type, src, src_type, n, how,
                                mixprec_cuda_layout_(dst_type), mixprec_cuda_layout_(src_type));
}

mixprec_status mixprec_cuda_convert(void *dst, mixprec_dtype dst_type, const void *src, mixprec_dtype src_type,
                                    size_t n, mixprec_cuda_stream stream) {
    return mixprec_cuda_convert_ex(dst, dst_type, src, src_type, n, NULL, stream);
}

mixprec_status mixprec_cuda_convert_list(const mixprec_cuda_tensor *list, size_t count, mixprec_dtype dst_type,
                                         mixprec_dtype src_type, mixprec_overflow overflow,
                                         mixprec_cuda_stream stream) {
    mixprec_cuda_convert_op_ op = {dst_type, src_type, overflow};
    if (!mixprec_cuda_is_compute_type_(dst_type) || !mixprec_cuda_is_compute_type_(src_type))
        return MIXPREC_ERR_DTYPE;
    if ((unsigned)overflow > MIXPREC_OVERFLOW_SATURATE_KEEP_INF)
        return MIXPREC_ERR_OVERFLOW;
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_tensors_(list, count, dst_type, src_type, NULL, 0));
    return mixprec_cuda_run_list_(op, list, count, 0, 0, stream);
}

mixprec_status mixprec_cuda_convert_transpose(const mixprec_cuda_transposed *list, size_t count, mixprec_dtype dst_type,
                                              mixprec_dtype src_type, mixprec_overflow overflow,
                                              mixprec_cuda_stream stream) {
    mixprec_cuda_transpose_op_ op = {dst_type, src_type, overflow};
    const size_t dst_size = mixprec_cuda_size_(dst_type);
    const mixprec_cuda_access_ access = {6,
                                         5,
                                         8,
                                         {dst_size, mixprec_cuda_size_(src_type), dst_size, sizeof(float)},
                                         false,
                                         0,
                                         MIXPREC_CUDA_TILE_ROWS_,
                                         MIXPREC_CUDA_TILE_COLUMNS_};
    if (!mixprec_cuda_is_compute_type_(dst_type) || !mixprec_cuda_is_compute_type_(src_type))
        return MIXPREC_ERR_DTYPE;
    if ((unsigned)overflow > MIXPREC_OVERFLOW_SATURATE_KEEP_INF)
        return MIXPREC_ERR_OVERFLOW;
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_list_(list, count, access, NULL, 0));
    return mixprec_cuda_run_list_(op, list, count, 0, MIXPREC_CUDA_TILE_ROWS_ * MIXPREC_CUDA_TILE_COLUMNS_ * dst_size,
                                  stream);
}

/* ---- loss scaling, norms, fp8 ---- */

mixprec_status mixprec_cuda_scaler_unscale(mixprec_scaler *scaler, const mixprec_cuda_tensor *list, size_t count,
                                           mixprec_dtype dst_type, mixprec_dtype src_type, mixprec_cuda_stream stream) {
    mixprec_cuda_unscale_op_ op = {scaler, dst_type, src_type, 0, 0};
    if (!scaler)
        return MIXPREC_ERR_NULL;
    if ((dst_type != MIXPREC_NONE && !mixprec_cuda_is_compute_type_(dst_type)) ||
        !mixprec_cuda_is_compute_type_(src_type))
        return MIXPREC_ERR_DTYPE;
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_tensors_(list, count, dst_type, src_type, scaler, sizeof *scaler));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(scaler, sizeof(double)));
    return mixprec_cuda_run_list_(op, list, count, 0, 0, stream);
}

mixprec_status mixprec_cuda_scaler_update(mixprec_scaler *scaler, int32_t *take_step, mixprec_cuda_stream stream) {
    if (!scaler)
        return MIXPREC_ERR_NULL;
    if (mixprec_cuda_overlap_(scaler, sizeof *scaler, take_step, take_step ? sizeof *take_step : 0))
        return MIXPREC_ERR_OVERLAP;
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(scaler, sizeof(double)));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(take_step, sizeof *take_step));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check());
    return mixprec_cuda_launch_(mixprec_cuda_scaler_update_, 1, 1, 1, 0, stream, scaler, take_step);
}

/* A partial sum for every block: 4096 of each launch at most, whatever the device. */
#define MIXPREC_CUDA_NORM_BLOCKS_ 4096
size_t mixprec_cuda_norm2_workspace(const mixprec_cuda_tensor *list, size_t count) {
    size_t chunks = 0, launches = count / MIXPREC_CUDA_LIST_ + 1;
    for (size_t i = 0; list && i < count; i++)
        chunks += mixprec_cuda_chunks_(list[i].n);
    return (chunks < launches * MIXPREC_CUDA_NORM_BLOCKS_ ? chunks : launches * MIXPREC_CUDA_NORM_BLOCKS_) *
           sizeof(double);
}
mixprec_status mixprec_cuda_norm2(float *norm, const mixprec_cuda_tensor *list, size_t count, mixprec_dtype type,
                                  void *workspace, size_t workspace_size, mixprec_cuda_stream stream) {
    mixprec_cuda_norm_op_ op = {type, (double *)workspace, 0, 0};
    size_t bytes = mixprec_cuda_norm2_workspace(list, count);
    if (!mixprec_cuda_is_compute_type_(type))
        return MIXPREC_ERR_DTYPE;
    if (!norm)
        return MIXPREC_ERR_NULL;
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_tensors_(list, count, MIXPREC_NONE, type, norm, sizeof *norm));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_tensors_(list, count, MIXPREC_NONE, type, workspace, bytes));
    if (mixprec_cuda_overlap_(norm, sizeof *norm, workspace, bytes))
        return MIXPREC_ERR_OVERLAP;
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(norm, sizeof *norm));
    if (bytes > workspace_size || (bytes && (!workspace || (uintptr_t)workspace % sizeof(double))))
        return MIXPREC_ERR_WORKSPACE;
    MIXPREC_CUDA_TRY_(mixprec_cuda_check());
    MIXPREC_CUDA_TRY_(
        mixprec_cuda_run_list_(op, list, count, MIXPREC_CUDA_NORM_BLOCKS_, MIXPREC_CUDA_REDUCE_BYTES_, stream));
    return mixprec_cuda_launch_(mixprec_cuda_norm_end_, 1, 1, MIXPREC_CUDA_THREADS_, MIXPREC_CUDA_REDUCE_BYTES_, stream,
                                norm, (const double *)workspace, (size_t)(op.partial - (double *)workspace));
}

mixprec_status mixprec_cuda_clip_coefficient(float *clip, float *inverse_scale, const float *norm, double max_norm,
                                             mixprec_scaler *scaler, mixprec_cuda_stream stream) {
    const struct {
        const void *p;
        size_t bytes;
    } values[4] = {{norm, sizeof *norm},
                   {clip, clip ? sizeof *clip : 0},
                   {inverse_scale, inverse_scale ? sizeof *inverse_scale : 0},
                   {scaler, scaler ? sizeof *scaler : 0}};
    if (!norm)
        return MIXPREC_ERR_NULL;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++)
            if (mixprec_cuda_overlap_(values[i].p, values[i].bytes, values[j].p, values[j].bytes))
                return MIXPREC_ERR_OVERLAP;
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(norm, sizeof *norm));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(clip, sizeof *clip));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(inverse_scale, sizeof *inverse_scale));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(scaler, sizeof(double)));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check());
    return mixprec_cuda_launch_(mixprec_cuda_clip_coefficient_, 1, 1, 1, 0, stream, clip, inverse_scale, norm, max_norm,
                                scaler);
}

mixprec_status mixprec_cuda_clip(const mixprec_cuda_tensor *list, size_t count, mixprec_dtype type, const float *norm,
                                 float max_norm, mixprec_cuda_stream stream) {
    mixprec_cuda_clip_op_ op = {type, type, norm, max_norm, 0};
    if (!mixprec_cuda_is_compute_type_(type))
        return MIXPREC_ERR_DTYPE;
    if (!norm)
        return MIXPREC_ERR_NULL;
    if (mixprec_f32_bits_(max_norm) - 1 >= 0x7F7FFFFFu)
        return MIXPREC_ERR_SCALE;
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_tensors_(list, count, type, type, NULL, 0));
    for (size_t i = 0; i < count; i++) /* norm is only read, and may lie in what is only read */
        if (mixprec_cuda_overlap_(list[i].dst, list[i].n * mixprec_cuda_size_(type), norm, sizeof *norm))
            return MIXPREC_ERR_OVERLAP;
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(norm, sizeof *norm));
    return mixprec_cuda_run_list_(op, list, count, 0, 0, stream);
}

mixprec_status mixprec_cuda_amax(float *amax, const mixprec_cuda_tensor *list, size_t count, mixprec_dtype type,
                                 mixprec_cuda_stream stream) {
    mixprec_cuda_amax_op_ op = {type, amax, 0};
    if (!mixprec_cuda_is_compute_type_(type))
        return MIXPREC_ERR_DTYPE;
    if (!amax)
        return MIXPREC_ERR_NULL;
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_tensors_(list, count, MIXPREC_NONE, type, amax, sizeof *amax));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(amax, sizeof *amax));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check());
    MIXPREC_CUDA_TRY_(mixprec_cuda_error_(cudaMemsetAsync(amax, 0, sizeof(float), (cudaStream_t)stream)));
    return mixprec_cuda_run_list_(op, list, count, 0, MIXPREC_CUDA_REDUCE_BYTES_, stream);
}

mixprec_status mixprec_cuda_scale_of_amax(float *scale, float *inverse, const float *amax, size_t count,
                                          mixprec_dtype dtype, int power_of_two, mixprec_cuda_stream stream) {
    if (!mixprec_cuda_is_fp8_(dtype))
        return MIXPREC_ERR_DTYPE;
    if (!count)
        return MIXPREC_OK;
    if (!scale || !amax)
        return MIXPREC_ERR_NULL;
    if (count > INT32_MAX)
        return MIXPREC_ERR_SIZE;
    if (mixprec_cuda_overlap_(scale, count * sizeof *scale, amax, count * sizeof *amax) ||
        (inverse && (mixprec_cuda_overlap_(inverse, count * sizeof *inverse, amax, count * sizeof *amax) ||
                     mixprec_cuda_overlap_(inverse, count * sizeof *inverse, scale, count * sizeof *scale))))
        return MIXPREC_ERR_OVERLAP;
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(scale, sizeof *scale));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(inverse, sizeof *inverse));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(amax, sizeof *amax));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check());
    return mixprec_cuda_launch_(mixprec_cuda_scale_of_amax_, (count + 255) / 256, 1, 256, 0, stream, scale, inverse,
                                amax, count, dtype, power_of_two);
}

mixprec_status mixprec_cuda_quantize(const mixprec_cuda_quantized *list, size_t count, mixprec_dtype dst_type,
                                     mixprec_dtype src_type, mixprec_cuda_stream stream) {
    mixprec_cuda_quantize_op_<false> nearest = {dst_type, src_type, 0, 0, 0};
    mixprec_cuda_quantize_op_<true> any = {dst_type, src_type, 0, 0, 0};
    bool all_nearest = true;
    const mixprec_cuda_access_ access = {
        7, 1 | 8 | 16, 4 | 8 | 16 | 32, {1, mixprec_cuda_size_(src_type), 4, 4, 4, 8}, true, 0, 0, 0};
    if (!mixprec_cuda_is_fp8_(dst_type) || !mixprec_cuda_is_compute_type_(src_type))
        return MIXPREC_ERR_DTYPE;
    for (size_t i = 0; list && i < count; i++)
        if ((unsigned)list[i].round > MIXPREC_ROUND_STOCHASTIC)
            return MIXPREC_ERR_ROUND;
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_list_(list, count, access, NULL, 0));
    for (size_t i = 0; i < count; i++)
        all_nearest = all_nearest && list[i].round == MIXPREC_ROUND_NEAREST_EVEN;
    return all_nearest ? mixprec_cuda_run_list_(nearest, list, count, 0, MIXPREC_CUDA_REDUCE_BYTES_, stream)
                       : mixprec_cuda_run_list_(any, list, count, 0, MIXPREC_CUDA_REDUCE_BYTES_, stream);
}

mixprec_status mixprec_cuda_delayed_scaling_update(mixprec_delayed_scaling *scaling, float *amax, size_t count,
                                                   mixprec_cuda_stream stream) {
    if (!count)
        return MIXPREC_OK;
    if (!scaling || !amax)
        return MIXPREC_ERR_NULL;
    if (count > INT32_MAX)
        return MIXPREC_ERR_SIZE;
    if (mixprec_cuda_overlap_(scaling, count * sizeof *scaling, amax, count * sizeof *amax))
        return MIXPREC_ERR_OVERLAP;
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(scaling, sizeof(void *)));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(amax, sizeof *amax));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check());
    return mixprec_cuda_launch_(mixprec_cuda_delayed_scaling_, count, 1, MIXPREC_CUDA_THREADS_,
                                MIXPREC_CUDA_REDUCE_BYTES_, stream, scaling, amax);
}

mixprec_status mixprec_cuda_quantize_blocks(const mixprec_cuda_quantized_blocks *list, size_t count,
                                            mixprec_dtype dst_type, mixprec_dtype src_type, size_t block_rows,
                                            int power_of_two, mixprec_cuda_stream stream) {
    mixprec_cuda_quantize_blocks_op_<false> flat = {dst_type, src_type, power_of_two};
    mixprec_cuda_quantize_blocks_op_<true> square = {dst_type, src_type, power_of_two};
    const mixprec_cuda_access_ access = {
        7, 5, 0, {1, mixprec_cuda_size_(src_type), 4}, false, block_rows, MIXPREC_CUDA_BLOCK_, MIXPREC_CUDA_BLOCK_};
    const size_t shared = MIXPREC_CUDA_REDUCE_BYTES_ + 16;
    if (!mixprec_cuda_is_fp8_(dst_type) || !mixprec_cuda_is_compute_type_(src_type))
        return MIXPREC_ERR_DTYPE;
    if (block_rows != 1 && block_rows != MIXPREC_CUDA_BLOCK_)
        return MIXPREC_ERR_RANGE;
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_list_(list, count, access, NULL, 0));
    return block_rows == 1 ? mixprec_cuda_run_list_(flat, list, count, 0, shared, stream)
                           : mixprec_cuda_run_list_(square, list, count, 0, shared, stream);
}

/* ---- optimisers ---- */

static bool mixprec_cuda_is_beta_(double x) {
    return mixprec_cuda_is_hyperparameter_(x) && x < 1;
}

/* The checks of mixprec_sgd_step and mixprec_adam_step but for the hyperparameters and, before those, a list that is
   NULL; `moments` being how many arrays of them are needed. */
static mixprec_status mixprec_cuda_check_parameters_(const mixprec_parameter *list, size_t count, int moments,
                                                     float inverse_scale, float clip, int found_inf,
                                                     const mixprec_cuda_optimizer_state *state,
                                                     const mixprec_cuda_step &device) {
    const bool scales = found_inf || ((device.inverse_scale || mixprec_f32_bits_(inverse_scale) - 1u < 0x7F7FFFFFu) &&
                                      (device.clip || mixprec_cuda_is_clip_(clip)));
    if (!state)
        return MIXPREC_ERR_NULL;
    for (size_t t = 0; t < count; t++) {
        const mixprec_parameter &x = list[t];
        const size_t model_size = mixprec_cuda_size_(x.model_type);
        const void *arrays[MIXPREC_CUDA_POINTERS_] = {
            x.grad, x.master, x.model, x.compensation, moments > 0 ? x.moment1 : NULL, moments > 1 ? x.moment2 : NULL};
        size_t bytes[MIXPREC_CUDA_POINTERS_];
        if (!mixprec_cuda_is_compute_type_(x.grad_type) || (x.model && !mixprec_cuda_is_compute_type_(x.model_type)))
            return MIXPREC_ERR_DTYPE;
        if ((unsigned)x.round > MIXPREC_ROUND_STOCHASTIC)
            return MIXPREC_ERR_ROUND;
        if ((unsigned)x.overflow > MIXPREC_OVERFLOW_SATURATE_KEEP_INF)
            return MIXPREC_ERR_OVERFLOW;
        if (x.isa != MIXPREC_ISA_AUTO)
            return MIXPREC_ERR_ISA;
        if (x.compensation && (x.master || x.round != MIXPREC_ROUND_NEAREST_EVEN))
            return MIXPREC_ERR_OPTIMIZER;
        if (x.n && (!x.grad || (!x.master && !x.model) || (moments > 0 && !x.moment1) || (moments > 1 && !x.moment2)))
            return MIXPREC_ERR_NULL;
        if (!scales)
            return MIXPREC_ERR_SCALE;
        if (x.n > SIZE_MAX / 16 || mixprec_cuda_chunks_(x.n) > 1u << 30)
            return MIXPREC_ERR_SIZE;
        for (int i = 0; i < MIXPREC_CUDA_POINTERS_; i++) {
            size_t size = i == 0 ? mixprec_cuda_size_(x.grad_type) : i == 2 || i == 3 ? model_size : 4;
            bytes[i] = arrays[i] ? x.n * size : 0;
            if (mixprec_cuda_overlap_(arrays[i], bytes[i], state, sizeof *state))
                return MIXPREC_ERR_OVERLAP;
            for (int j = 0; j < i; j++)
                if (mixprec_cuda_overlap_(arrays[i], bytes[i], arrays[j], bytes[j]))
                    return MIXPREC_ERR_OVERLAP;
            if (x.n)
                MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(arrays[i], size));
        }
    }
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(state, sizeof(uint64_t)));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(device.inverse_scale, sizeof(float)));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(device.clip, sizeof(float)));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(device.found_inf, sizeof(int32_t)));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(device.learning_rate, sizeof(double)));
    return scales ? MIXPREC_OK : MIXPREC_ERR_SCALE;
}

template <bool adam, class Optimizer>
static mixprec_status
mixprec_cuda_step_(void (*begin)(mixprec_cuda_optimizer_state *, Optimizer, float, float, mixprec_cuda_step),
                   const Optimizer &optimizer, const mixprec_parameter *list, size_t count, int moments,
                   float inverse_scale, float clip, int found_inf, mixprec_cuda_optimizer_state *state,
                   const mixprec_cuda_step *device, mixprec_cuda_stream stream) {
    mixprec_cuda_optimizer_op_<adam> op = {state, moments, {}, 0};
    mixprec_cuda_step none = {}, values = device ? *device : none;
    MIXPREC_CUDA_TRY_(
        mixprec_cuda_check_parameters_(list, count, moments, inverse_scale, clip, found_inf, state, values));
    if (found_inf)
        return MIXPREC_OK;
    MIXPREC_CUDA_TRY_(mixprec_cuda_check());
    MIXPREC_CUDA_TRY_(mixprec_cuda_launch_(begin, 1, 1, 1, 0, stream, state, optimizer, inverse_scale, clip, values));
    return mixprec_cuda_run_list_(op, list, count, 0, 0, stream);
}

mixprec_status mixprec_cuda_sgd_step(const mixprec_sgd *sgd, const mixprec_parameter *list, size_t count,
                                     float inverse_scale, float clip, int found_inf,
                                     mixprec_cuda_optimizer_state *state, const mixprec_cuda_step *device,
                                     mixprec_cuda_stream stream) {
    bool momentum;
    if (!sgd || (count && !list))
        return MIXPREC_ERR_NULL;
    momentum = mixprec_f64_bits_(sgd->momentum) << 1 != 0;
    if (!mixprec_cuda_is_hyperparameter_(sgd->learning_rate) || !mixprec_cuda_is_hyperparameter_(sgd->momentum) ||
        !mixprec_cuda_is_hyperparameter_(sgd->dampening) || !mixprec_cuda_is_hyperparameter_(sgd->weight_decay) ||
        (sgd->nesterov && (!momentum || mixprec_f64_bits_(sgd->dampening) << 1 != 0)))
        return MIXPREC_ERR_OPTIMIZER;
    return mixprec_cuda_step_<false>(mixprec_cuda_begin_sgd_, *sgd, list, count, momentum, inverse_scale, clip,
                                     found_inf, state, device, stream);
}

mixprec_status mixprec_cuda_adam_step(const mixprec_adam *adam, const mixprec_parameter *list, size_t count,
                                      float inverse_scale, float clip, int found_inf,
                                      mixprec_cuda_optimizer_state *state, const mixprec_cuda_step *device,
                                      mixprec_cuda_stream stream) {
    if (!adam || (count && !list))
        return MIXPREC_ERR_NULL;
    if (!mixprec_cuda_is_hyperparameter_(adam->learning_rate) || !mixprec_cuda_is_hyperparameter_(adam->epsilon) ||
        !mixprec_cuda_is_hyperparameter_(adam->weight_decay) || !mixprec_cuda_is_beta_(adam->beta1) ||
        !mixprec_cuda_is_beta_(adam->beta2))
        return MIXPREC_ERR_OPTIMIZER;
    return mixprec_cuda_step_<true>(mixprec_cuda_begin_adam_, *adam, list, count, 2, inverse_scale, clip, found_inf,
                                    state, device, stream);
}

/* ---- GEMM ---- */

typedef void (*mixprec_cuda_gemm_kernel_)(mixprec_cuda_gemm_args_);

/* A matrix as stored, in bytes. */
typedef struct mixprec_cuda_extent_ {
    size_t rows, width, stride, bytes;
} mixprec_cuda_extent_;
static mixprec_status mixprec_cuda_extent_of_(size_t rows, size_t columns, size_t *ld, mixprec_dtype type,
                                              mixprec_cuda_extent_ *extent) {
    size_t size = mixprec_cuda_size_(type);
    extent->rows = rows, extent->width = columns * size, extent->bytes = extent->stride = 0;
    if (*ld == 0)
        *ld = columns ? columns : 1;
    if (*ld < columns)
        return MIXPREC_ERR_LEADING_DIMENSION;
    if (!rows || !columns)
        return MIXPREC_OK;
    if (columns > SIZE_MAX / 16 || (rows > 1 && *ld > (SIZE_MAX / 16 - columns) / (rows - 1)))
        return MIXPREC_ERR_SIZE;
    extent->stride = rows > 1 ? *ld * size : 0;
    extent->bytes = (rows - 1) * *ld * size + extent->width;
    return MIXPREC_OK;
}
/* Exact for equal strides, so that blocks of one matrix may lie side by side; else by whole extents. */
static bool mixprec_cuda_matrices_overlap_(const void *a, const mixprec_cuda_extent_ &x, const void *b,
                                           const mixprec_cuda_extent_ &y) {
    size_t distance = (size_t)((uintptr_t)b - (uintptr_t)a), row, offset;
    if ((uintptr_t)a > (uintptr_t)b)
        return mixprec_cuda_matrices_overlap_(b, y, a, x);
    if (!mixprec_cuda_overlap_(a, x.bytes, b, y.bytes))
        return false;
    if (x.stride == 0 || (y.stride != x.stride && y.stride != 0)) /* 0: a single row */
        return true;
    row = distance / x.stride;
    offset = distance % x.stride;
    return (row < x.rows && offset < x.width) || (row + 1 < x.rows && offset + y.width > x.stride);
}
static mixprec_cuda_extent_ mixprec_cuda_row_(size_t bytes) {
    mixprec_cuda_extent_ extent = {1, bytes, 0, bytes};
    return extent;
}
/* Of each of `count` products' matrix C with each one's X; an X with stride 0 is the same for all. */
static bool mixprec_cuda_batches_overlap_(size_t count, const void *c, const mixprec_cuda_extent_ &c_extent,
                                          size_t c_stride, const void *x, const mixprec_cuda_extent_ &x_extent,
                                          size_t x_stride) {
    if (!mixprec_cuda_overlap_(c, c_extent.bytes ? c_extent.bytes + (count - 1) * c_stride : 0, x,
                               x_extent.bytes ? x_extent.bytes + (count - 1) * x_stride : 0))
        return false;
    for (size_t i = 0; i < count; i++) {
        const uintptr_t at = (uintptr_t)c + i * c_stride, first = (uintptr_t)x;
        /* those that begin before this C ends, from the last on that may end before it begins */
        size_t j = x_stride && at > first + x_extent.bytes ? (at - first - x_extent.bytes) / x_stride : 0;
        for (; j < (x_stride ? count : 1) && first + j * x_stride < at + c_extent.bytes; j++)
            if (mixprec_cuda_matrices_overlap_((const void *)at, c_extent, (const char *)x + j * x_stride, x_extent))
                return true;
    }
    return false;
}

/* Where an operand's stored rows are its k, k_first. */
static mixprec_status mixprec_cuda_operand_of_(mixprec_cuda_operand_ *x, const mixprec_scales *scales,
                                               size_t stored_rows, size_t stored_columns, size_t ld, bool k_first,
                                               size_t k) {
    size_t row_blocks = scales->block_rows, column_blocks = scales->block_columns;
    size_t scale_ld = scales->ld,
           width = column_blocks && stored_columns ? (stored_columns - 1) / column_blocks + 1 : 1;
    size_t height = row_blocks && stored_rows ? (stored_rows - 1) / row_blocks + 1 : 1;
    if (scale_ld == 0)
        scale_ld = width;
    if (scales->values && scale_ld < width)
        return MIXPREC_ERR_LEADING_DIMENSION;
    if (scales->values && height > 1 && scale_ld > (SIZE_MAX / 16 - width) / (height - 1))
        return MIXPREC_ERR_SIZE;
    if (stored_rows == 1) /* nothing is a leading dimension away: let it be one that vectors allow */
        ld = (ld + 15) / 16 * 16;
    x->scale_bytes =
        scales->values && stored_rows && stored_columns ? ((height - 1) * scale_ld + width) * sizeof(float) : 0;
    x->row_step = k_first ? 1 : ld;
    x->k_step = k_first ? ld : 1;
    x->scale = scales->values;
    x->row_block = k_first ? column_blocks : row_blocks;
    x->k_block = k_first ? row_blocks : column_blocks;
    x->row_scale = k_first ? 1 : scale_ld;
    x->k_scale = k_first ? scale_ld : 1;
    x->k_varies = x->scale && x->k_block && x->k_block < k;
    return MIXPREC_OK;
}

typedef struct mixprec_cuda_gemm_plan_ {
    mixprec_cuda_gemm_kernel_ kernel;
    int threads, rows, columns, multiprocessors;
    bool wgmma, early, decodes;   /* early: see mixprec_cuda_device_ */
    bool may_halve;               /* k, by a cluster */
    size_t shared, batch, chunk;  /* products in all, and in a launch */
    mixprec_cuda_copy_ copies[2]; /* of A and B */
    /* bytes of workspace: for the sums of parts of k; for copies that the kernel cannot do without; in all */
    size_t partial, needed, bytes;
} mixprec_cuda_gemm_plan_;

/* A A^T or A^T A: a copy of A is one of B. */
static bool mixprec_cuda_is_gram_(const mixprec_cuda_gemm_args_ &g) {
    return g.a.data && g.a.data == g.b.data && !g.a.array && !g.b.array && !g.row_begin && g.a.rows == g.b.rows &&
           g.a.row_step == g.b.row_step && g.a.k_step == g.b.k_step && g.a.stride == g.b.stride && g.a.type == g.b.type;
}
/* wgmma reads fp16 and bf16 (what fp8 is decoded to, too) in any layout, other kinds only with k contiguous. */
static bool mixprec_cuda_wgmma_takes_all_layouts_(int kind) {
    return kind == MIXPREC_CUDA_F16_ || kind == MIXPREC_CUDA_BF16_ || kind == MIXPREC_CUDA_FP8_;
}
/* Does it pay to make `copies` copies of `bytes` in all where that saves `saved` femtoseconds a multiply-add? On an
   H200 a copy took 4 us and .7 ps a byte. */
static bool mixprec_cuda_pays_(const mixprec_cuda_gemm_args_ &g, size_t batch, size_t copies, size_t bytes,
                               double saved) {
    return saved * (double)g.a.rows * (double)g.n * (double)g.k * (double)batch >
           4e9 * (double)copies + 700.0 * (double)bytes;
}
/* The copy of A or B (`which` 1) for wgmma of this kind, or, kind -1, for mma.sync: of what does not begin at multiples
   of 16 bytes, must be transposed, or is better rounded to TF32 once. There is none of matrices of which only pointers
   are known, nor of an A that begins at a row. */
static mixprec_cuda_copy_ mixprec_cuda_copy_of_(const mixprec_cuda_gemm_args_ &g, int which, size_t batch, int kind) {
    const mixprec_cuda_operand_ &x = which ? g.b : g.a;
    const size_t size = mixprec_cuda_size_(x.type), ld = x.k_step == 1 ? x.row_step : x.k_step;
    const bool transposed = x.k_step != 1 && kind >= 0 && !mixprec_cuda_wgmma_takes_all_layouts_(kind);
    const bool along_k = x.k_step == 1 || transposed, round = kind == MIXPREC_CUDA_TF32_;
    mixprec_cuda_copy_ c = {
        along_k ? g.k : x.rows, along_k ? x.rows : g.k, 0, x.stride ? batch : 1, 0, ld, x.stride, transposed, round};
    size_t bytes;
    double saved;
    c.pitch = (c.width * size + 15) / 16 * 16;
    if (x.array || (!which && g.row_begin) || !c.pitch || !c.lines || c.lines > SIZE_MAX / 32 / c.pitch / c.count)
        return c;
    bytes = c.pitch * c.lines * c.count;
    /* femtoseconds a multiply-add, measured on an H200; a stage has up to twice as much of B as of A */
    saved = mixprec_cuda_is_gram_(g) ? 4.65 : which ? 2.9 : 1.75;
    if (transposed || ((uintptr_t)x.data | ld * size | x.stride * size) % 16 ||
        (round && mixprec_cuda_pays_(g, batch, 1, bytes, saved)))
        c.bytes = bytes;
    return c;
}
/* Can those of A and B in which k is not contiguous be transposed, with so much room for them, and does that pay? */
static bool mixprec_cuda_transposing_pays_(const mixprec_cuda_gemm_args_ &g, size_t batch, int kind, bool wants_wgmma,
                                           size_t room) {
    /* femtoseconds a multiply-add, measured on an H200; A^T B^T gains most: the kernels of mma.sync read A element by
       element there, unless it is fp8 */
    const bool gathers = g.a.k_step != 1 && g.b.k_step == 1;
    const double saved = kind == MIXPREC_CUDA_TF32_ ? (gathers ? 14 : 6)
                         : kind == MIXPREC_CUDA_S8_ ? (gathers ? 20 : 1.3)
                                                    : 2.5;
    size_t copies = 0, bytes = 0;
    for (int i = 0; i < 2; i++)
        if ((i ? g.b : g.a).k_step != 1) {
            const mixprec_cuda_copy_ c = mixprec_cuda_copy_of_(g, i, batch, kind);
            if (!c.bytes)
                return false;
            copies++, bytes += c.bytes;
            if (mixprec_cuda_is_gram_(g))
                break;
        }
    return bytes <= room && (wants_wgmma || mixprec_cuda_pays_(g, batch, copies, bytes, saved));
}
static mixprec_status mixprec_cuda_copy_to_(void *to, const mixprec_cuda_operand_ &x, const mixprec_cuda_copy_ &c,
                                            int multiprocessors, bool early, mixprec_cuda_stream stream) {
    const size_t size = mixprec_cuda_size_(x.type);
    const size_t warps = c.transposed ? c.bytes / (8192 / size) : (c.pitch + 2047) / 2048 * c.lines * c.count;
    const size_t most = (size_t)multiprocessors * 16, blocks = warps / 8 < most ? warps / 8 + 1 : most;
    void (*kernel)(void *, const void *, mixprec_cuda_copy_) = size == 4   ? mixprec_cuda_copy_lines_<4>
                                                               : size == 2 ? mixprec_cuda_copy_lines_<2>
                                                                           : mixprec_cuda_copy_lines_<1>;
    if (c.transposed)
        kernel = size == 4 ? mixprec_cuda_copy_transposed_<4> : mixprec_cuda_copy_transposed_<1>;
    return mixprec_cuda_launch_ex_(early, kernel, blocks, 1, 1, MIXPREC_CUDA_THREADS_, 0, stream, to, x.data, c);
}
static void mixprec_cuda_use_copy_(mixprec_cuda_operand_ *x, const void *copy, const mixprec_cuda_copy_ &c) {
    const size_t pitch = c.pitch / mixprec_cuda_size_(x->type);
    const bool along_k = x->k_step == 1 || c.transposed;
    x->data = copy;
    x->stride = x->stride ? pitch * c.lines : 0;
    x->row_step = along_k ? pitch : 1;
    x->k_step = along_k ? 1 : pitch;
    x->rounded = c.round;
}

/* Of the four layouts f16 and bf16 have all; the others lack A from lines of k with a B that is not, C = A^T B^T, for
   which A is gathered, and the fp8 units' kernels any such A, which is decoded: each layout costs half a second of
   compile time a kind. */
template <int kind, int columns, bool a_alone = false, bool both = true>
static mixprec_cuda_gemm_kernel_ mixprec_cuda_mma_kernel_of_(bool a_lines_are_k, bool b_lines_are_k) {
    if (a_lines_are_k && !b_lines_are_k && a_alone)
        return mixprec_cuda_gemm_mma_<kind, a_alone, false, columns>;
    if (a_lines_are_k && b_lines_are_k && both)
        return mixprec_cuda_gemm_mma_<kind, both, true, columns>;
    return b_lines_are_k ? mixprec_cuda_gemm_mma_<kind, false, true, columns>
                         : mixprec_cuda_gemm_mma_<kind, false, false, columns>;
}
static mixprec_cuda_gemm_kernel_ mixprec_cuda_mma_kernel_(int kind, bool a, bool b, bool large) {
    switch (kind) {
    case MIXPREC_CUDA_F16_:
        return large ? mixprec_cuda_mma_kernel_of_<MIXPREC_CUDA_F16_, 256, true>(a, b)
                     : mixprec_cuda_mma_kernel_of_<MIXPREC_CUDA_F16_, 128, true>(a, b);
    case MIXPREC_CUDA_BF16_:
        return large ? mixprec_cuda_mma_kernel_of_<MIXPREC_CUDA_BF16_, 256, true>(a, b)
                     : mixprec_cuda_mma_kernel_of_<MIXPREC_CUDA_BF16_, 128, true>(a, b);
    case MIXPREC_CUDA_TF32_: return mixprec_cuda_mma_kernel_of_<MIXPREC_CUDA_TF32_, 128>(a, b);
    case MIXPREC_CUDA_S8_: return mixprec_cuda_mma_kernel_of_<MIXPREC_CUDA_S8_, 128>(a, b);
    case MIXPREC_CUDA_E4M3_E4M3_: return mixprec_cuda_mma_kernel_of_<MIXPREC_CUDA_E4M3_E4M3_, 128, false, false>(a, b);
    case MIXPREC_CUDA_E4M3_E5M2_: return mixprec_cuda_mma_kernel_of_<MIXPREC_CUDA_E4M3_E5M2_, 128, false, false>(a, b);
    case MIXPREC_CUDA_E5M2_E4M3_: return mixprec_cuda_mma_kernel_of_<MIXPREC_CUDA_E5M2_E4M3_, 128, false, false>(a, b);
    case MIXPREC_CUDA_E5M2_E5M2_: return mixprec_cuda_mma_kernel_of_<MIXPREC_CUDA_E5M2_E5M2_, 128, false, false>(a, b);
    default: return mixprec_cuda_mma_kernel_of_<MIXPREC_CUDA_FP8_, 128>(a, b);
    }
}

template <int kind, int columns> static mixprec_cuda_gemm_kernel_ mixprec_cuda_wgmma_kernel_of_(bool a, bool b) {
    if (a)
        return b ? mixprec_cuda_gemm_wgmma_<kind, true, true, columns>
                 : mixprec_cuda_gemm_wgmma_<kind, true, false, columns>;
    return b ? mixprec_cuda_gemm_wgmma_<kind, false, true, columns>
             : mixprec_cuda_gemm_wgmma_<kind, false, false, columns>;
}
template <int columns> static mixprec_cuda_gemm_kernel_ mixprec_cuda_wgmma_kernel_(int kind, bool a, bool b) {
    switch (kind) {
    case MIXPREC_CUDA_F16_: return mixprec_cuda_wgmma_kernel_of_<MIXPREC_CUDA_F16_, columns>(a, b);
    case MIXPREC_CUDA_BF16_: return mixprec_cuda_wgmma_kernel_of_<MIXPREC_CUDA_BF16_, columns>(a, b);
    case MIXPREC_CUDA_TF32_: return mixprec_cuda_gemm_wgmma_<MIXPREC_CUDA_TF32_, false, false, columns>;
    case MIXPREC_CUDA_S8_: return mixprec_cuda_gemm_wgmma_<MIXPREC_CUDA_S8_, false, false, columns>;
    case MIXPREC_CUDA_E4M3_E4M3_: return mixprec_cuda_gemm_wgmma_<MIXPREC_CUDA_E4M3_E4M3_, false, false, columns>;
    case MIXPREC_CUDA_E4M3_E5M2_: return mixprec_cuda_gemm_wgmma_<MIXPREC_CUDA_E4M3_E5M2_, false, false, columns>;
    case MIXPREC_CUDA_E5M2_E4M3_: return mixprec_cuda_gemm_wgmma_<MIXPREC_CUDA_E5M2_E4M3_, false, false, columns>;
    case MIXPREC_CUDA_E5M2_E5M2_: return mixprec_cuda_gemm_wgmma_<MIXPREC_CUDA_E5M2_E5M2_, false, false, columns>;
    default: return mixprec_cuda_wgmma_kernel_of_<MIXPREC_CUDA_FP8_, columns>(a, b);
    }
}

static bool mixprec_cuda_are_gemm_types_(mixprec_dtype a, mixprec_dtype b, mixprec_dtype c) {
    return mixprec_cuda_is_compute_type_(c) && ((a == MIXPREC_I8 && b == MIXPREC_I8) ||
                                                (mixprec_cuda_is_compute_type_(a) && mixprec_cuda_is_compute_type_(b)));
}

/* How many products of a batch a launch takes: the grid's third dimension and the number of all tiles are limited. */
static size_t mixprec_cuda_chunk_of_(size_t batch, size_t tiles, size_t splits) {
    size_t most = 65535 / splits;
    if (tiles && most > INT32_MAX / 2 / tiles / splits)
        most = INT32_MAX / 2 / tiles / splits;
    return batch < most ? batch : most;
}

/* Is an operand laid out as the copy engine wants it? Boxes begin at multiples of 16 bytes, too: else an H200 reported
   an illegal instruction. */
static bool mixprec_cuda_is_boxed_(const mixprec_cuda_operand_ &x, size_t row_begin) {
    const bool along_k = x.k_step == 1;
    const size_t elements = (along_k ? x.row_step : x.k_step) | x.stride | (along_k ? 0 : row_begin);
    return !x.array && ((uintptr_t)x.data | elements * mixprec_cuda_size_(x.type)) % 16 == 0;
}
/* Can a tile of C end while the next one is brought? And in the simple way? */
static bool mixprec_cuda_ends_in_place_(const mixprec_cuda_gemm_args_ &g, bool decodes, bool *simple) {
    const size_t size = mixprec_cuda_size_(g.c_type);
    const bool old = !mixprec_cuda_is_zero_(g.beta) || g.device_beta;
    const bool aligned = g.n % 4 == 0 && ((uintptr_t)g.c | g.ldc * size | g.stride_c * size) % (4 * size) == 0;
    const bool in_place = !g.c_array && g.triangle == MIXPREC_FULL && (g.narrows || !decodes) &&
                          (!old || (aligned && size > 1)) && (!g.bias || g.bias_type <= MIXPREC_BF16) &&
                          !(g.b.scale && g.b.row_block > 1);
    *simple = in_place && g.narrows && aligned && !old && size > 1;
    return in_place;
}

/* Checks all but the pointers, in the CPU's order; fills in the kernel's arguments and how to launch it. Asks the
   device last. `room`: bytes of workspace. */
static mixprec_status mixprec_cuda_gemm_plan_of_(const mixprec_gemm_desc *desc,
                                                 const mixprec_cuda_gemm_options *options, size_t room,
                                                 mixprec_cuda_gemm_args_ *g, mixprec_cuda_gemm_plan_ *plan,
                                                 mixprec_cuda_extent_ extents[3]) {
    mixprec_cuda_gemm_options none = {};
    mixprec_gemm_desc d = *desc;
    mixprec_cuda_device_ device;
    int kind = -1;
    cudaFuncAttributes attributes;
    bool along_k, wmma, wgmma, has_wgmma, reads_operands, may_wgmma, wants_wgmma, large = false, simple;
    size_t tiles_m, tiles_n, tiles, work, depth, splits = 1, rows, most;
    if (!options)
        options = &none;
    if (!mixprec_cuda_are_gemm_types_(d.a_type, d.b_type, d.c_type))
        return MIXPREC_ERR_DTYPE;
    if (d.bias_type == MIXPREC_NONE)
        d.bias_type = MIXPREC_F32;
    if (!mixprec_cuda_is_compute_type_(d.bias_type))
        return MIXPREC_ERR_DTYPE;
    if ((unsigned)d.trans_a > 1 || (unsigned)d.trans_b > 1)
        return MIXPREC_ERR_TRANSPOSE;
    if ((unsigned)d.round > MIXPREC_ROUND_STOCHASTIC)
        return MIXPREC_ERR_ROUND;
    if ((unsigned)d.overflow > MIXPREC_OVERFLOW_SATURATE_KEEP_INF)
        return MIXPREC_ERR_OVERFLOW;
    if ((unsigned)d.activation > MIXPREC_ACTIVATION_TANH)
        return MIXPREC_ERR_ACTIVATION;
    if (d.row_begin > d.row_end || d.row_end > d.m)
        return MIXPREC_ERR_RANGE;
    if ((unsigned)d.triangle > MIXPREC_UPPER || (d.triangle && (d.m != d.n || d.row_end)))
        return MIXPREC_ERR_TRIANGLE;
    if (d.isa != MIXPREC_ISA_AUTO || (unsigned)options->path > MIXPREC_CUDA_PATH_WGMMA)
        return MIXPREC_ERR_ISA;
    if (d.packed_size)
        return MIXPREC_ERR_PACKED;
    if (!d.row_begin && !d.row_end)
        d.row_end = d.m;
    MIXPREC_CUDA_TRY_(d.trans_a ? mixprec_cuda_extent_of_(d.k, d.m, &d.lda, d.a_type, &extents[0])
                                : mixprec_cuda_extent_of_(d.m, d.k, &d.lda, d.a_type, &extents[0]));
    MIXPREC_CUDA_TRY_(d.trans_b ? mixprec_cuda_extent_of_(d.n, d.k, &d.ldb, d.b_type, &extents[1])
                                : mixprec_cuda_extent_of_(d.k, d.n, &d.ldb, d.b_type, &extents[1]));
    MIXPREC_CUDA_TRY_(mixprec_cuda_extent_of_(d.m, d.n, &d.ldc, d.c_type, &extents[2]));
    MIXPREC_CUDA_TRY_(mixprec_cuda_operand_of_(&g->a, &d.scale_a, d.trans_a ? d.k : d.m, d.trans_a ? d.m : d.k, d.lda,
                                               d.trans_a == MIXPREC_TRANS, d.k));
    MIXPREC_CUDA_TRY_(mixprec_cuda_operand_of_(&g->b, &d.scale_b, d.trans_b ? d.n : d.k, d.trans_b ? d.k : d.n, d.ldb,
                                               d.trans_b == MIXPREC_NO_TRANS, d.k));
    plan->batch = d.batch ? d.batch : 1;
    if (plan->batch == 1)
        d.stride_a = d.stride_b = d.stride_c = 0;
    else if (!d.stride_c)
        d.stride_c = d.n ? d.m * d.ldc : 0; /* no overflow: C's extent is known to be far below SIZE_MAX */
    d.stride_a = d.a_array ? 0 : d.stride_a;
    d.stride_b = d.b_array ? 0 : d.stride_b;
    d.stride_c = d.c_array ? 0 : d.stride_c;
    most = d.stride_a > d.stride_b ? d.stride_a : d.stride_b;
    most = most > d.stride_c ? most : d.stride_c;
    if (most > SIZE_MAX / 32 / plan->batch || plan->batch > SIZE_MAX / 32 / sizeof(void *))
        return MIXPREC_ERR_SIZE;
    for (int i = 0; i < 3; i++)
        if (extents[i].bytes > SIZE_MAX / 2 - most * plan->batch * 8)
            return MIXPREC_ERR_SIZE;

    g->a.data = d.a, g->a.array = d.a_array, g->a.stride = d.stride_a, g->a.type = d.a_type;
    g->b.data = d.b, g->b.array = d.b_array, g->b.stride = d.stride_b, g->b.type = d.b_type;
    g->a.rows = d.row_end - d.row_begin, g->b.rows = d.n;
    g->m = d.m, g->n = d.n, g->k = d.k, g->row_begin = d.row_begin;
    g->c = d.c, g->c_array = d.c_array, g->stride_c = d.stride_c, g->ldc = d.ldc, g->c_type = d.c_type;
    g->alpha = d.alpha ? mixprec_cuda_to_f32_(*d.alpha) : 1.0f;
    g->beta = d.beta ? mixprec_cuda_to_f32_(*d.beta) : 0.0f;
    g->device_alpha = options->alpha, g->device_beta = options->beta;
    g->bias = d.bias, g->bias_type = d.bias_type, g->activation = d.activation;
    g->round = d.round, g->overflow = d.overflow, g->seed = d.seed, g->offset = d.offset, g->triangle = d.triangle;
    g->narrows =
        d.c_type == MIXPREC_F32 ||
        (d.round == MIXPREC_ROUND_NEAREST_EVEN &&
         d.overflow == (mixprec_cuda_size_(d.c_type) == 2 ? MIXPREC_OVERFLOW_IEEE : MIXPREC_OVERFLOW_SATURATE));
    rows = g->a.rows;
    reads_operands = rows && d.n && d.k && (!mixprec_cuda_is_zero_(g->alpha) || g->device_alpha); /* A and B */

    MIXPREC_CUDA_TRY_(mixprec_cuda_device_of_(&device));
    MIXPREC_CUDA_TRY_(mixprec_cuda_error_(cudaFuncGetAttributes(&attributes, (const void *)mixprec_cuda_has_wgmma_)));
    has_wgmma = attributes.sharedSizeBytes != 0;
    wants_wgmma = options->path == MIXPREC_CUDA_PATH_WGMMA;
    may_wgmma = has_wgmma && (wants_wgmma || options->path == MIXPREC_CUDA_PATH_AUTO);
    along_k = g->a.k_step == 1 && g->b.k_step == 1;
    if (d.a_type == d.b_type)
        kind = d.a_type == MIXPREC_F16                  ? MIXPREC_CUDA_F16_
               : d.a_type == MIXPREC_BF16               ? MIXPREC_CUDA_BF16_
               : d.a_type == MIXPREC_F32 && d.native    ? MIXPREC_CUDA_TF32_
               : d.a_type == MIXPREC_I8 && d.k < 131072 ? MIXPREC_CUDA_S8_ /* what int32 holds */
                                                        : -1;
    if (mixprec_cuda_is_fp8_(d.a_type) && mixprec_cuda_is_fp8_(d.b_type)) {
        const int units =
            MIXPREC_CUDA_E4M3_E4M3_ + (d.a_type == MIXPREC_E5M2 ? 2 : 0) + (d.b_type == MIXPREC_E5M2 ? 1 : 0);
        kind = MIXPREC_CUDA_FP8_;
        if (d.native && options->path != MIXPREC_CUDA_PATH_WMMA &&
            (MIXPREC_CUDA_HAS_FP8_(device.compiled)
                 ? g->a.k_step == 1
                 : may_wgmma && (along_k || !reads_operands ||
                                 (mixprec_cuda_transposing_pays_(*g, plan->batch, units, wants_wgmma, room)))))
            kind = units;
    }
    if (g->a.k_varies || g->b.k_varies)
        kind = -1;
    if (kind < 0 && options->path > MIXPREC_CUDA_PATH_EXACT)
        return MIXPREC_ERR_ISA;
    wmma = options->path == MIXPREC_CUDA_PATH_WMMA;
    wgmma = may_wgmma && kind >= 0 &&
            (mixprec_cuda_wgmma_takes_all_layouts_(kind) || along_k || !reads_operands ||
             (mixprec_cuda_transposing_pays_(*g, plan->batch, kind, wants_wgmma, room)));
    if (wants_wgmma && !wgmma)
        return has_wgmma ? MIXPREC_ERR_ISA : mixprec_cuda_error_(cudaErrorNoKernelImageForDevice);
    if (options->path == MIXPREC_CUDA_PATH_AUTO && device.compiled < 800) {
        wmma = kind == MIXPREC_CUDA_F16_ || kind == MIXPREC_CUDA_S8_ || kind == MIXPREC_CUDA_FP8_;
        kind = wmma ? kind : -1;
    }
    if (options->path == MIXPREC_CUDA_PATH_AUTO && d.k == 0)
        kind = -1;
    if (options->path == MIXPREC_CUDA_PATH_EXACT)
        kind = -1;
    if (device.compiled < 800 && (options->path == MIXPREC_CUDA_PATH_MMA ||
                                  (wmma && (kind == MIXPREC_CUDA_BF16_ || kind == MIXPREC_CUDA_TF32_))))
        return mixprec_cuda_error_(cudaErrorNoKernelImageForDevice);

    plan->rows = plan->columns = 64;
    plan->multiprocessors = device.multiprocessors;
    plan->early = device.early;
    plan->decodes = kind == MIXPREC_CUDA_FP8_;
    plan->wgmma = false;
    depth = 64;
    if (kind < 0) {
        plan->kernel = mixprec_cuda_gemm_exact_;
        plan->threads = MIXPREC_CUDA_THREADS_;
        plan->shared = MIXPREC_CUDA_EXACT_BYTES_;
    } else if (wmma) {
        plan->kernel = kind == MIXPREC_CUDA_BF16_   ? mixprec_cuda_gemm_wmma_<MIXPREC_CUDA_BF16_>
                       : kind == MIXPREC_CUDA_TF32_ ? mixprec_cuda_gemm_wmma_<MIXPREC_CUDA_TF32_>
                       : kind == MIXPREC_CUDA_S8_   ? mixprec_cuda_gemm_wmma_<MIXPREC_CUDA_S8_>
                                                    : mixprec_cuda_gemm_wmma_<MIXPREC_CUDA_F16_>;
        plan->threads = 128;
        plan->shared = MIXPREC_CUDA_WMMA_BYTES_;
    } else if (wgmma) {
        /* a tile of half the columns is taken to need 5 / 8 of the time: not measured */
        size_t row_tiles = (rows + 127) / 128, count = (size_t)device.multiprocessors;
        most = SIZE_MAX / 16 / (row_tiles * ((d.n + 127) / 128) + 1); /* of which nothing wraps */
        row_tiles *= plan->batch < most ? plan->batch : most;
        large = (row_tiles * ((d.n + 255) / 256) + count - 1) / count * 8 <=
                (row_tiles * ((d.n + 127) / 128) + count - 1) / count * 5;
        plan->kernel = large ? mixprec_cuda_wgmma_kernel_<256>(kind, g->a.k_step != 1, g->b.k_step != 1)
                             : mixprec_cuda_wgmma_kernel_<128>(kind, g->a.k_step != 1, g->b.k_step != 1);
        plan->rows = 128;
        plan->columns = large ? 256 : 128;
        plan->threads = 384;
        plan->shared = MIXPREC_CUDA_WGMMA_BYTES_;
        plan->wgmma = true;
        depth = 128 / mixprec_cuda_size_(d.a_type);
    } else {
        bool words = kind == MIXPREC_CUDA_F16_ || kind == MIXPREC_CUDA_BF16_;
        size_t large_tiles = ((rows + 127) / 128) * ((d.n + 255) / 256);
        large = words && MIXPREC_CUDA_HAS_LARGE_TILE_(device.compiled) &&
                device.shared_bytes >= MIXPREC_CUDA_MMA_BYTES_(256) &&
                large_tiles >= ((size_t)device.multiprocessors + plan->batch - 1) / plan->batch;
        plan->kernel = mixprec_cuda_mma_kernel_(kind, g->a.k_step != 1, g->b.k_step != 1, large);
        plan->rows = 128;
        plan->columns = plan->threads = large ? 256 : 128;
        plan->shared = large ? MIXPREC_CUDA_MMA_BYTES_(256) : MIXPREC_CUDA_MMA_BYTES_(128);
        depth = 128 / mixprec_cuda_size_(d.a_type);
    }
    tiles_m = (rows + plan->rows - 1) / plan->rows;
    tiles_n = (d.n + plan->columns - 1) / plan->columns;
    if (tiles_n && tiles_m > INT32_MAX / 2 / tiles_n) /* 2: clusters round up */
        return MIXPREC_ERR_SIZE;
    tiles = tiles_m * tiles_n;
    /* more products than multiprocessors are as good as that many, and the number of tiles does not wrap */
    work = tiles * (plan->batch < (size_t)device.multiprocessors ? plan->batch : (size_t)device.multiprocessors);
    g->tiles_m = (uint32_t)tiles_m, g->tiles_n = (uint32_t)tiles_n;

    plan->needed = 0;
    bool boxed = true, as_they_are = true; /* the copy engine brings A and B, if need be copies; and no copies */
    for (int i = 0; i < 2; i++) {
        mixprec_cuda_copy_ *c = &plan->copies[i];
        const bool gram = i && mixprec_cuda_is_gram_(*g);
        *c = mixprec_cuda_copy_of_(*g, i, plan->batch, wgmma ? kind : -1);
        if (kind < 0 || wmma || !reads_operands || gram)
            c->bytes = 0;
        plan->needed += c->transposed ? c->bytes : 0;
        if (!gram && (c->transposed || !mixprec_cuda_is_boxed_(i ? g->b : g->a, i ? 0 : g->row_begin)))
            boxed = boxed && c->bytes, as_they_are = false;
    }
    /* Half the multiprocessors have no tile: a cluster of two halves k, without a workspace or a second kernel. From so
       many steps on it was faster on an H200: what is decoded, rounded or added apart takes longer for a step. */
    const size_t least = kind == MIXPREC_CUDA_FP8_ || kind == MIXPREC_CUDA_TF32_ ? 4
                         : kind >= MIXPREC_CUDA_E4M3_E4M3_                       ? 8
                                                                                 : 12;
    plan->may_halve = wgmma && !large && !options->split_k && d.k / depth >= least && MIXPREC_CUDA_HAS_MAPS_ &&
                      work <= (size_t)device.multiprocessors / 2 && boxed &&
                      (as_they_are || plan->copies[0].bytes + plan->copies[1].bytes <= room) &&
                      mixprec_cuda_ends_in_place_(*g, plan->decodes, &simple);
    /* k is split to give every multiprocessor a tile, in parts that are worth it. int32 sums cannot be. */
    if (kind >= 0 && kind != MIXPREC_CUDA_S8_ && tiles && d.k) {
        size_t parts = options->split_k;
        if (!parts && work < (size_t)device.multiprocessors) {
            parts = (size_t)device.multiprocessors / work;
            parts = parts < d.k / (8 * depth) ? parts : d.k / (8 * depth);
            parts = parts < 32 ? parts : 32;
            /* the second kernel is taken to need as long as 16 steps of k: not measured by itself */
            if ((parts && d.k / depth - d.k / depth / parts < 16) || (parts == 2 && plan->may_halve))
                parts = 1;
        }
        if (parts > 65535)
            parts = 65535;
        if (parts > INT32_MAX / 2 / tiles)
            parts = INT32_MAX / 2 / tiles;
        if (parts > 1) {
            g->split_depth = ((d.k + parts - 1) / parts + depth - 1) / depth * depth;
            splits = (d.k + g->split_depth - 1) / g->split_depth;
        }
    }
    plan->chunk = mixprec_cuda_chunk_of_(plan->batch, tiles, splits);
    plan->partial = 0;
    if (splits > 1) {
        if (d.n > SIZE_MAX / 16 / rows / splits / plan->chunk - 3)
            return MIXPREC_ERR_SIZE;
        plan->partial = splits * plan->chunk * rows * ((d.n + 3) / 4 * 4) * sizeof(float);
    }
    g->splits = (uint32_t)splits;
    if (splits == 1)
        g->split_depth = d.k;
    /* rather the sums that are asked for than transposed copies */
    if (plan->needed && options->split_k > 1 && !wants_wgmma && plan->needed + plan->partial > room) {
        *g = {};
        return mixprec_cuda_gemm_plan_of_(desc, options, 0, g, plan, extents);
    }
    plan->bytes = plan->partial + plan->copies[0].bytes + plan->copies[1].bytes;
    return MIXPREC_OK;
}

/* Describes an operand to the copy engine, which takes boxes of 128 bytes from `lines` of its rows, or k. False: it
   cannot. */
static bool mixprec_cuda_map_operand_(mixprec_cuda_map_ *map, const mixprec_cuda_operand_ &x, size_t row_begin,
                                      size_t k, size_t batch, uint32_t lines) {
    const bool along_k = x.k_step == 1;
    const size_t bytes = mixprec_cuda_size_(x.type), rows = row_begin + x.rows, width = (along_k ? k : rows) * bytes,
                 height = along_k ? rows : k, pitch = (along_k ? x.row_step : x.k_step) * bytes,
                 matrix = x.stride * bytes;
    const uint64_t sizes[3] = {width, height, x.stride ? batch : 1}, strides[2] = {pitch, matrix ? matrix : pitch};
    const size_t most = (size_t)1 << 30; /* coordinates are int, and go beyond the end by less than this */
    return mixprec_cuda_is_boxed_(x, row_begin) && width < most && height < most && batch < most && width && height &&
           (pitch | matrix) >> 40 == 0 && mixprec_cuda_map_of_(map, x.data, sizes, strides, lines);
}
/* How the wgmma kernels are launched: a block, or a cluster of two, for each multiprocessor, if every tile ends in
   place, else for each tile; a cluster that halves k for each tile. */
static void mixprec_cuda_gemm_place_(const mixprec_cuda_gemm_plan_ &plan, mixprec_cuda_gemm_args_ *g) {
    const size_t count = (size_t)plan.multiprocessors;
    const size_t parts = plan.chunk * g->splits, tiles = (size_t)g->tiles_m * g->tiles_n * parts,
                 pairs = (size_t)((g->tiles_m + 1) / 2) * g->tiles_n * parts;
    const uint32_t depth = (uint32_t)(128 / mixprec_cuda_size_(g->a.type));
    g->in_place = g->partial || mixprec_cuda_ends_in_place_(*g, plan.decodes, &g->simple);
    g->simple = g->partial || g->simple;
    /* Two blocks to a cluster: to halve k, where half of the multiprocessors would be idle; or for two tiles, unless
       half of B's tile is no box, or a tile more in a column of tiles makes a round more. */
    g->halves = plan.may_halve && !g->partial;
    g->cluster =
        g->halves || (g->tiles_m > 1 && count > 1 && (g->b.k_step == 1 || (uint32_t)plan.columns / 2 >= depth) &&
                      (pairs + count / 2 - 1) / (count / 2) <= (tiles + count - 1) / count)
            ? 2
            : 1;
    const uint32_t b_rows = (uint32_t)plan.columns / (g->halves ? 1 : g->cluster);
    g->mapped = mixprec_cuda_map_operand_(&g->a_map, g->a, g->row_begin, g->k, plan.batch,
                                          g->a.k_step == 1 ? (uint32_t)plan.rows : depth) &&
                mixprec_cuda_map_operand_(&g->b_map, g->b, 0, g->k, plan.batch, g->b.k_step == 1 ? b_rows : depth);
    if (!g->mapped)
        g->cluster = 1, g->halves = false;
    if (!g->halves)
        g->tiles_m = (g->tiles_m + g->cluster - 1) / g->cluster;
}

mixprec_status mixprec_cuda_gemm_workspace(const mixprec_gemm_desc *desc, const mixprec_cuda_gemm_options *options,
                                           size_t *bytes) {
    mixprec_cuda_gemm_args_ g = {};
    mixprec_cuda_gemm_plan_ plan;
    mixprec_cuda_extent_ extents[3];
    if (!desc || !bytes)
        return MIXPREC_ERR_NULL;
    MIXPREC_CUDA_TRY_(mixprec_cuda_gemm_plan_of_(desc, options, SIZE_MAX, &g, &plan, extents));
    *bytes = plan.bytes;
    return MIXPREC_OK;
}

mixprec_status mixprec_cuda_gemm_ex(const mixprec_gemm_desc *desc, const mixprec_cuda_gemm_options *options,
                                    mixprec_cuda_stream stream) {
    mixprec_cuda_gemm_args_ g = {};
    mixprec_cuda_gemm_plan_ plan;
    mixprec_cuda_extent_ extents[3];
    char *workspace;
    size_t left, most;
    bool nothing, splits, early = false; /* early: there is a kernel of this call's to wait for */
    if (!desc)
        return MIXPREC_ERR_NULL;
    left = desc->workspace ? desc->workspace_size : 0;
    MIXPREC_CUDA_TRY_(mixprec_cuda_gemm_plan_of_(desc, options, left, &g, &plan, extents));
    if (!g.m || !g.n)
        return MIXPREC_OK;
    nothing = !g.k || (mixprec_cuda_is_zero_(g.alpha) && !g.device_alpha);
    if ((!g.c && !g.c_array) || (!nothing && ((!g.a.data && !g.a.array) || (!g.b.data && !g.b.array))))
        return MIXPREC_ERR_NULL;
    const size_t c_stride = g.stride_c * mixprec_cuda_size_(g.c_type);
    const struct {
        const void *data; /* NULL: of pointers in device memory nothing is known */
        mixprec_cuda_extent_ extent;
        size_t stride;
    } used[] = {{g.c_array ? NULL : g.c, extents[2], c_stride},
                {nothing || g.a.array ? NULL : g.a.data, extents[0], g.a.stride * mixprec_cuda_size_(g.a.type)},
                {nothing || g.b.array ? NULL : g.b.data, extents[1], g.b.stride * mixprec_cuda_size_(g.b.type)},
                {g.bias, mixprec_cuda_row_(g.n * mixprec_cuda_size_(g.bias_type)), 0},
                {g.a.scale, mixprec_cuda_row_(g.a.scale_bytes), 0},
                {g.b.scale, mixprec_cuda_row_(g.b.scale_bytes), 0},
                {g.device_alpha, mixprec_cuda_row_(sizeof(float)), 0},
                {g.device_beta, mixprec_cuda_row_(sizeof(float)), 0},
                {g.a.array, mixprec_cuda_row_(plan.batch * sizeof(void *)), 0},
                {g.b.array, mixprec_cuda_row_(plan.batch * sizeof(void *)), 0},
                {g.c_array, mixprec_cuda_row_(plan.batch * sizeof(void *)), 0}};
    const int used_count = (int)(sizeof used / sizeof *used);
    for (int i = 1; i < used_count && !g.c_array; i++)
        if (used[i].data && mixprec_cuda_batches_overlap_(plan.batch, g.c, extents[2], c_stride, used[i].data,
                                                          used[i].extent, used[i].stride))
            return MIXPREC_ERR_OVERLAP;
    /* all strides are one: with the first */
    for (size_t i = 1; i < plan.batch && !g.c_array && c_stride < extents[2].bytes; i++)
        if (mixprec_cuda_matrices_overlap_(g.c, extents[2], (const char *)g.c + i * c_stride, extents[2]))
            return MIXPREC_ERR_OVERLAP;
    if (!nothing) {
        MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(g.a.array ? NULL : g.a.data, mixprec_cuda_size_(g.a.type)));
        MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(g.b.array ? NULL : g.b.data, mixprec_cuda_size_(g.b.type)));
    }
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(g.c_array ? NULL : g.c, mixprec_cuda_size_(g.c_type)));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(g.bias, mixprec_cuda_size_(g.bias_type)));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(g.a.scale, sizeof(float)));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(g.b.scale, sizeof(float)));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(g.a.array, sizeof(void *)));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(g.b.array, sizeof(void *)));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(g.c_array, sizeof(void *)));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(g.device_alpha, sizeof(float)));
    MIXPREC_CUDA_TRY_(mixprec_cuda_check_aligned_(g.device_beta, sizeof(float)));
    if (!g.a.rows)
        return MIXPREC_OK;
    workspace = (char *)desc->workspace;
    splits = g.splits > 1 && left >= plan.needed + plan.partial;
    most = splits ? plan.partial : 0;
    /* what the kernel needs has room beside the sums; then what only makes it faster, if there is room for it */
    for (int pass = 0; pass < 2; pass++)
        for (mixprec_cuda_copy_ &copy : plan.copies)
            if (copy.transposed == (pass == 0)) {
                copy.bytes = left - most < copy.bytes ? 0 : copy.bytes;
                most += copy.bytes;
            }
    if (most && (uintptr_t)workspace % 16)
        return MIXPREC_ERR_WORKSPACE;
    /* with every matrix, not with their span: it may lie in a gap */
    for (int i = 0; i < used_count && most; i++)
        if (used[i].data && mixprec_cuda_batches_overlap_(used[i].stride ? plan.batch : 1, used[i].data, used[i].extent,
                                                          used[i].stride, workspace, mixprec_cuda_row_(most), 0))
            return MIXPREC_ERR_OVERLAP;
    if (g.splits > 1 && !splits) {
        if (options && options->split_k > 1)
            return MIXPREC_ERR_WORKSPACE;
        g.splits = 1;
        g.split_depth = g.k;
        plan.chunk = mixprec_cuda_chunk_of_(plan.batch, (size_t)g.tiles_m * g.tiles_n, 1);
    }
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < 2; i++) {
            const mixprec_cuda_copy_ &copy = plan.copies[i];
            const mixprec_cuda_operand_ x = i ? g.b : g.a;
            if (!copy.bytes || copy.transposed != (pass == 0))
                continue;
            MIXPREC_CUDA_TRY_(mixprec_cuda_copy_to_(workspace, x, copy, plan.multiprocessors, early, stream));
            early = plan.early;
            if (i || mixprec_cuda_is_gram_(g))
                mixprec_cuda_use_copy_(&g.b, workspace, copy);
            if (!i)
                mixprec_cuda_use_copy_(&g.a, workspace, copy);
            workspace += copy.bytes;
        }
        if (pass == 0 && splits) {
            g.partial = (float *)(void *)workspace;
            workspace += plan.partial;
        }
    }
    g.cluster = 1;
    if (plan.wgmma)
        mixprec_cuda_gemm_place_(plan, &g);
    for (g.batch_begin = 0; g.batch_begin < plan.batch; g.batch_begin += plan.chunk) {
        const size_t rest = plan.batch - g.batch_begin, chunk = rest < plan.chunk ? rest : plan.chunk;
        size_t blocks = (size_t)g.tiles_m * g.tiles_n;
        g.parts = (uint32_t)(chunk * g.splits);
        if (plan.wgmma) {
            const size_t at_once = (size_t)plan.multiprocessors / g.cluster;
            blocks *= g.parts;
            if (g.in_place && blocks > at_once)
                blocks = at_once;
        }
        MIXPREC_CUDA_TRY_(mixprec_cuda_launch_ex_(early, plan.kernel, blocks * g.cluster, plan.wgmma ? 1 : g.parts,
                                                  g.cluster, plan.threads, plan.shared, stream, g));
        early = plan.early;
        if (g.partial) {
            size_t blocks = (g.a.rows * ((g.n + 3) / 4) + 255) / 256;
            MIXPREC_CUDA_TRY_(mixprec_cuda_launch_ex_(early, mixprec_cuda_gemm_reduce_, blocks < 65536 ? blocks : 65536,
                                                      chunk, 1, MIXPREC_CUDA_THREADS_, 0, stream, g));
        }
    }
    return MIXPREC_OK;
}

mixprec_status mixprec_cuda_gemm(mixprec_transpose ta, mixprec_transpose tb, size_t m, size_t n, size_t k, float alpha,
                                 const void *a, mixprec_dtype a_type, size_t lda, const void *b, mixprec_dtype b_type,
                                 size_t ldb, float beta, void *c, mixprec_dtype c_type, size_t ldc,
                                 mixprec_cuda_stream stream) {
    double wide_alpha = mixprec_cuda_f64_(alpha), wide_beta = mixprec_cuda_f64_(beta);
    mixprec_gemm_desc d = {};
    if (lda == 0 || ldb == 0 || ldc == 0)
        return mixprec_cuda_are_gemm_types_(a_type, b_type, c_type) ? MIXPREC_ERR_LEADING_DIMENSION : MIXPREC_ERR_DTYPE;
    d.trans_a = ta, d.trans_b = tb;
    d.m = m, d.n = n, d.k = k;
    d.alpha = &wide_alpha, d.beta = &wide_beta;
    d.a = a, d.a_type = a_type, d.lda = lda;
    d.b = b, d.b_type = b_type, d.ldb = ldb;
    d.c = c, d.c_type = c_type, d.ldc = ldc;
    return mixprec_cuda_gemm_ex(&d, NULL, stream);
}

#undef MIXPREC_CUDA_DEV_
#undef MIXPREC_CUDA_PARAMETER_
#undef MIXPREC_CUDA_HAS_MAPS_
#undef MIXPREC_CUDA_ARCH_
#undef MIXPREC_CUDA_HAS_FP8_
#undef MIXPREC_CUDA_HAS_LARGE_TILE_
#undef MIXPREC_CUDA_HAS_WGMMA_
#undef MIXPREC_CUDA_LIST_
#undef MIXPREC_CUDA_CHUNK_
#undef MIXPREC_CUDA_POINTERS_
#undef MIXPREC_CUDA_THREADS_
#undef MIXPREC_CUDA_BY_TYPE_
#undef MIXPREC_CUDA_CASE_
#undef MIXPREC_CUDA_REDUCE_BYTES_
#undef MIXPREC_CUDA_TILE_ROWS_
#undef MIXPREC_CUDA_TILE_COLUMNS_
#undef MIXPREC_CUDA_ROWS_
#undef MIXPREC_CUDA_UNITS_
#undef MIXPREC_CUDA_TRANSPOSE_BLOCKS_
#undef MIXPREC_CUDA_OPTIMIZER_BLOCKS_
#undef MIXPREC_CUDA_BLOCK_
#undef MIXPREC_CUDA_GAP_
#undef MIXPREC_CUDA_TILE_BYTES_
#undef MIXPREC_CUDA_EXACT_DEPTH_
#undef MIXPREC_CUDA_EXACT_PITCH_
#undef MIXPREC_CUDA_EXACT_BYTES_
#undef MIXPREC_CUDA_WMMA_STEPS_
#undef MIXPREC_CUDA_WMMA_BYTES_
#undef MIXPREC_CUDA_MMA_ROWS_
#undef MIXPREC_CUDA_MMA_STAGES_
#undef MIXPREC_CUDA_MMA_BYTES_
#undef MIXPREC_CUDA_WGMMA_RING_
#undef MIXPREC_CUDA_WGMMA_ENDS_
#undef MIXPREC_CUDA_WGMMA_TABLE_
#undef MIXPREC_CUDA_WGMMA_BYTES_
#undef MIXPREC_CUDA_TRY_
#undef MIXPREC_CUDA_NORM_BLOCKS_
#endif /* MIXPREC_CUDA_IMPLEMENTATION */
