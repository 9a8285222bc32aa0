/* The benchmark of mixprec_cuda.cuh: make bench-cuda, on a machine with a GPU. GEMM in TFLOP/s for each dtype and path,
   beside cuBLAS and cuBLASLt in the same run where they were found (BENCH_CUBLAS); A A^T of the CPU benchmark's size,
   all of it and the lower triangle; the training kernels in GB/s beside what a copy reaches. Writes FILE.csv, with the
   columns of the CPU benchmark, and FILE.html, a page in its style.

       bench_cuda [--quick] [--filter TEXT] [--out FILE]

   FILE: build/bench/cuda. TEXT: only the cases whose suite/name contains it, such as memory/ or gemm/4096.

   Numbers are random: a GPU is faster on zeros. Times are the median of five runs of at least 50 ms between events. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIXPREC_CUDA_IMPLEMENTATION
#include "../mixprec_cuda.cuh"
#include "host.h"
#include "bench_page.h"
#ifdef BENCH_CUBLAS
#include <cublasLt.h>
#include <cublas_v2.h>
static cublasHandle_t cublas;
static cublasLtHandle_t cublas_lt;
static void *cublas_workspace;
static const size_t cublas_workspace_size = (size_t)32 << 20;
#endif

static bool quick;
static const char *filter = "";
static struct {
    char suite[16], name[24], dtype[16], impl[16], metric[16];
    double value;
} results[1024];
static int result_count;
static float *random_numbers;
static const size_t random_count = (size_t)1 << 26;

static void die(const char *what, const char *why) {
    fprintf(stderr, "bench_cuda: %s: %s\n", what, why);
    exit(1);
}
#define CUDA(call)                                                                                                     \
    do {                                                                                                               \
        cudaError_t cuda_error = call;                                                                                 \
        if (cuda_error != cudaSuccess)                                                                                 \
            die(#call, cudaGetErrorString(cuda_error));                                                                \
    } while (0)
#define MIXPREC(call)                                                                                                  \
    do {                                                                                                               \
        mixprec_status mixprec_error = call;                                                                           \
        if (mixprec_error != MIXPREC_OK)                                                                               \
            die(#call, mixprec_error >= MIXPREC_ERR_DEVICE ? mixprec_cuda_last_error()                                 \
                                                           : mixprec_status_string(mixprec_error));                    \
    } while (0)

static void report(const char *suite, const char *name, const char *dtype, const char *impl, const char *metric,
                   double value) {
    if (result_count == (int)(sizeof results / sizeof *results))
        die("report", "too many results");
    auto *r = &results[result_count++];
    snprintf(r->suite, sizeof r->suite, "%s", suite);
    snprintf(r->name, sizeof r->name, "%s", name);
    snprintf(r->dtype, sizeof r->dtype, "%s", dtype);
    snprintf(r->impl, sizeof r->impl, "%s", impl);
    snprintf(r->metric, sizeof r->metric, "%s", metric);
    r->value = value;
    printf("%-8s %-18s %-12s %-10s %10.4g %s\n", suite, name, dtype, impl, value, metric);
}
static bool wanted(const char *suite, const char *name) {
    char text[64];
    snprintf(text, sizeof text, "%s/%s", suite, name);
    return strstr(text, filter) != NULL;
}
static bool any_of(const char *suite) {
    for (int i = 0; i < result_count; i++)
        if (!strcmp(results[i].suite, suite))
            return true;
    return false;
}
/* NaN when it was not measured. */
static double figure(const char *suite, const char *name, const char *dtype, const char *impl, const char *metric) {
    for (int i = 0; i < result_count; i++)
        if (!strcmp(results[i].suite, suite) && !strcmp(results[i].name, name) && !strcmp(results[i].dtype, dtype) &&
            !strcmp(results[i].impl, impl) && !strcmp(results[i].metric, metric))
            return results[i].value;
    return (double)NAN;
}

/* Seconds of one call of work(): the median of five. */
template <class Work> static double seconds_of(Work work) {
    cudaEvent_t begin, end;
    double all[5];
    int count = 1, run;
    CUDA(cudaEventCreate(&begin));
    CUDA(cudaEventCreate(&end));
    work();
    CUDA(cudaDeviceSynchronize());
    for (run = 0; run < 5;) {
        float milliseconds = 0;
        int i;
        CUDA(cudaEventRecord(begin));
        for (i = 0; i < count; i++)
            work();
        CUDA(cudaEventRecord(end));
        CUDA(cudaEventSynchronize(end));
        CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
        if (run == 0 && milliseconds < (quick ? 5 : 50)) {
            count *= 2;
            continue;
        }
        all[run++] = milliseconds * 1e-3 / count;
    }
    CUDA(cudaEventDestroy(begin));
    CUDA(cudaEventDestroy(end));
    qsort(all, 5, sizeof *all, [](const void *a, const void *b) {
        return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
    });
    return all[2];
}

static __global__ void fill_random(float *x, size_t n) {
    size_t stride = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        x[i] = (float)(int32_t)mixprec_cuda_random_bits(1, i) * (1.0f / 2147483648.0f);
}
static void *allocate(size_t bytes) {
    void *p = NULL;
    CUDA(cudaMalloc(&p, bytes));
    return p;
}
static void *random_array(mixprec_dtype type, size_t n) {
    void *p = allocate(n * mixprec_dtype_size(type));
    mixprec_convert_options how = {};
    how.scale = type == MIXPREC_I8 ? 127.0f : 1.0f;
    for (size_t i = 0; i < n; i += random_count)
        MIXPREC(mixprec_cuda_convert_ex((char *)p + i * mixprec_dtype_size(type), type, random_numbers, MIXPREC_F32,
                                        n - i < random_count ? n - i : random_count, &how, NULL));
    return p;
}

/* ---- GEMM ---- */

typedef enum gemm_end { END_PLAIN, END_BIAS, END_GELU, END_ADD, END_ROWS, END_STOCHASTIC } gemm_end;
typedef struct gemm_kind {
    const char *name;
    mixprec_dtype type, c_type;
    int native;
    bool trans_b;
    gemm_end end;
} gemm_kind;
/* Of f16 and bf16 A B, with nt A B^T; of the others, as cuBLAS wants them, A B^T, with nn A B. add: to C, as gradients
   are; gelu: with a bias, by tanh, as cuBLASLt has it; stochastic: A B^T rounded so to bf16, rows: a scale for each row
   of A and B, neither asked of cuBLASLt. */
static const gemm_kind gemm_kinds[] = {{"f16", MIXPREC_F16, MIXPREC_F32, 0, false, END_PLAIN},
                                       {"bf16", MIXPREC_BF16, MIXPREC_F32, 0, false, END_PLAIN},
                                       {"bf16-nt", MIXPREC_BF16, MIXPREC_F32, 0, true, END_PLAIN},
                                       {"bf16-nt-add", MIXPREC_BF16, MIXPREC_F32, 0, true, END_ADD},
                                       {"bf16-nt-gelu", MIXPREC_BF16, MIXPREC_BF16, 0, true, END_GELU},
                                       {"bf16-stochastic", MIXPREC_BF16, MIXPREC_BF16, 0, true, END_STOCHASTIC},
                                       {"tf32-nn", MIXPREC_F32, MIXPREC_F32, 1, false, END_PLAIN},
                                       {"tf32", MIXPREC_F32, MIXPREC_F32, 1, true, END_PLAIN},
                                       {"e4m3", MIXPREC_E4M3, MIXPREC_BF16, 0, true, END_PLAIN},
                                       {"e4m3-bias", MIXPREC_E4M3, MIXPREC_BF16, 0, true, END_BIAS},
                                       {"e4m3-native", MIXPREC_E4M3, MIXPREC_BF16, 1, true, END_PLAIN},
                                       {"e4m3-native-nn", MIXPREC_E4M3, MIXPREC_BF16, 1, false, END_PLAIN},
                                       {"e4m3-rows", MIXPREC_E4M3, MIXPREC_BF16, 1, true, END_ROWS},
                                       {"i8-nn", MIXPREC_I8, MIXPREC_F32, 0, false, END_PLAIN},
                                       {"i8", MIXPREC_I8, MIXPREC_F32, 0, true, END_PLAIN}};
static const size_t gemm_sizes[] = {1024, 2048, 4096, 8192, 4097}; /* 4097: nothing is aligned */
static const int gemm_size_count = (int)(sizeof gemm_sizes / sizeof *gemm_sizes);
static const int gemm_kind_count = (int)(sizeof gemm_kinds / sizeof *gemm_kinds);
static bool has_native_fp8;

#ifdef BENCH_CUBLAS
static cudaDataType_t cuda_type(mixprec_dtype type) {
    return type == MIXPREC_F16    ? CUDA_R_16F
           : type == MIXPREC_BF16 ? CUDA_R_16BF
           : type == MIXPREC_E4M3 ? CUDA_R_8F_E4M3
           : type == MIXPREC_I8   ? CUDA_R_8I
                                  : CUDA_R_32F;
}

/* Column-major, so C' = op(B)' op(A)'. Seconds, or NaN where the library refuses. */
static double cublas_seconds(const mixprec_gemm_desc *d) {
    float one = 1, beta = d->beta ? (float)*d->beta : 0;
    int32_t int_one = 1, int_zero = 0;
    bool integers = d->a_type == MIXPREC_I8;
    int m = (int)d->m, n = (int)d->n, k = (int)d->k;
    auto run = [&]() {
        return cublasGemmEx(cublas, d->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, n, m, k,
                            integers ? (void *)&int_one : &one, d->b, cuda_type(d->b_type), d->trans_b ? k : n, d->a,
                            cuda_type(d->a_type), k, integers ? (void *)&int_zero : &beta, d->c,
                            integers ? CUDA_R_32I : cuda_type(d->c_type), n,
                            integers                   ? CUBLAS_COMPUTE_32I
                            : d->a_type == MIXPREC_F32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                       : CUBLAS_COMPUTE_32F,
                            CUBLAS_GEMM_DEFAULT);
    };
    return run() == CUBLAS_STATUS_SUCCESS ? seconds_of(run) : (double)NAN;
}

static double cublas_lt_seconds(const mixprec_gemm_desc *d) {
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t found;
    cublasOperation_t transposed = d->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = d->activation ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
    cudaDataType_t bias_type = CUDA_R_16BF;
    float one = 1, zero = 0;
    int count = 0;
    double seconds = (double)NAN;
    cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
    cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
    if (d->bias) {
        cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
        cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &d->bias, sizeof d->bias);
        cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias_type, sizeof bias_type);
    }
    cublasLtMatrixLayoutCreate(&b, cuda_type(d->b_type), d->trans_b ? d->k : d->n, d->trans_b ? d->n : d->k,
                               (int64_t)(d->trans_b ? d->k : d->n));
    cublasLtMatrixLayoutCreate(&a, cuda_type(d->a_type), d->k, d->m, (int64_t)d->k);
    cublasLtMatrixLayoutCreate(&c, cuda_type(d->c_type), d->n, d->m, (int64_t)d->n);
    cublasLtMatmulPreferenceCreate(&preference);
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &cublas_workspace_size,
                                         sizeof cublas_workspace_size);
    if (cublasLtMatmulAlgoGetHeuristic(cublas_lt, operation, b, a, c, c, preference, 1, &found, &count) ==
            CUBLAS_STATUS_SUCCESS &&
        count > 0) {
        auto run = [&]() {
            return cublasLtMatmul(cublas_lt, operation, &one, d->b, b, d->a, a, &zero, d->c, c, d->c, c, &found.algo,
                                  cublas_workspace, cublas_workspace_size, NULL);
        };
        if (run() == CUBLAS_STATUS_SUCCESS)
            seconds = seconds_of(run);
    }
    cublasLtMatmulPreferenceDestroy(preference);
    cublasLtMatrixLayoutDestroy(a);
    cublasLtMatrixLayoutDestroy(b);
    cublasLtMatrixLayoutDestroy(c);
    cublasLtMatmulDescDestroy(operation);
    return seconds;
}
#endif

/* Measures a product on the paths and in the peers. TFLOP/s count `flop` operations. */
static void measure_gemm(const char *suite, const char *name, const char *dtype, mixprec_gemm_desc d, double flop,
                         bool wmma, bool peers) {
    mixprec_cuda_gemm_options options;
    size_t bytes = 0;
    auto both = [&](const char *impl, double seconds) {
        if (!(seconds > 0))
            return;
        report(suite, name, dtype, impl, "tflops", flop / seconds * 1e-12);
        report(suite, name, dtype, impl, "seconds_median", seconds);
    };
    memset(&options, 0, sizeof options);
    MIXPREC(mixprec_cuda_gemm_workspace(&d, &options, &bytes));
    d.workspace = bytes ? allocate(bytes) : NULL, d.workspace_size = bytes;
    both("mixprec", seconds_of([&]() { MIXPREC(mixprec_cuda_gemm_ex(&d, &options, NULL)); }));
    options.path = MIXPREC_CUDA_PATH_WMMA;
    if (wmma && mixprec_cuda_gemm_ex(&d, &options, NULL) != MIXPREC_ERR_DEVICE)
        both("wmma", seconds_of([&]() { MIXPREC(mixprec_cuda_gemm_ex(&d, &options, NULL)); }));
#ifdef BENCH_CUBLAS
    if (peers && d.a_type != MIXPREC_E4M3 && !d.bias)
        both("cuBLAS", cublas_seconds(&d));
    else if (peers)
        both("cuBLASLt", cublas_lt_seconds(&d));
#else
    (void)peers;
#endif
    CUDA(cudaFree(d.workspace));
}

static bool has_wgmma(void) {
    mixprec_gemm_desc d = {};
    mixprec_cuda_gemm_options options = {};
    size_t bytes;
    d.m = d.n = d.k = 64, d.a_type = d.b_type = MIXPREC_F16, d.c_type = MIXPREC_F32;
    options.path = MIXPREC_CUDA_PATH_WGMMA;
    return mixprec_cuda_gemm_workspace(&d, &options, &bytes) == MIXPREC_OK;
}

static void bench_gemm(void) {
    for (int i = 0; i < gemm_kind_count; i++)
        for (size_t size : gemm_sizes) {
            const gemm_kind *kind = &gemm_kinds[i];
            char name[24];
            mixprec_gemm_desc d;
            void *a, *b, *c, *bias, *scales;
            double one = 1;
            snprintf(name, sizeof name, "%zu", size);
            if (!wanted("gemm", name) || (quick && size > 2048) ||
                (kind->native && kind->type == MIXPREC_E4M3 && !has_native_fp8))
                continue;
            a = random_array(kind->type, size * size), b = random_array(kind->type, size * size);
            c = allocate(size * size * 4), bias = random_array(MIXPREC_BF16, size);
            scales = allocate(size * 4);
            CUDA(cudaMemset(c, 0, size * size * 4));  /* END_ADD reads it */
            CUDA(cudaMemset(scales, 0x3F, size * 4)); /* 0.747 */
            memset(&d, 0, sizeof d);
            d.m = d.n = d.k = size, d.a = a, d.b = b, d.c = c;
            d.a_type = d.b_type = kind->type, d.c_type = kind->c_type, d.native = kind->native;
            d.trans_b = kind->trans_b ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
            if (kind->end == END_BIAS || kind->end == END_GELU)
                d.bias = bias, d.bias_type = MIXPREC_BF16;
            if (kind->end == END_GELU)
                d.activation = MIXPREC_ACTIVATION_GELU_TANH;
            if (kind->end == END_ADD)
                d.beta = &one;
            if (kind->end == END_STOCHASTIC)
                d.round = MIXPREC_ROUND_STOCHASTIC, d.seed = 1;
            if (kind->end == END_ROWS)
                d.scale_a.values = d.scale_b.values = (const float *)scales,
                d.scale_a.block_rows = d.scale_b.block_rows = 1;
            measure_gemm("gemm", name, kind->name, d, 2.0 * (double)size * (double)size * (double)size,
                         size < 4097 && !kind->end && !(kind->native && kind->type == MIXPREC_E4M3),
                         kind->end < END_ROWS);
            CUDA(cudaFree(a));
            CUDA(cudaFree(b));
            CUDA(cudaFree(c));
            CUDA(cudaFree(bias));
            CUDA(cudaFree(scales));
        }
}

/* A A^T for A 1024 x 65536, as the CPU benchmark has it: all of it, and the lower triangle, which is enough. The
   operations of all of it are counted in both cases. */
static void bench_symmetric(void) {
    const size_t n = 1024, k = quick ? 8192 : 65536;
    for (int i = 0; i < gemm_kind_count; i++) {
        const gemm_kind *kind = &gemm_kinds[i];
        mixprec_gemm_desc d;
        void *a, *c;
        if (kind->end || (kind->type == MIXPREC_E4M3 && kind->native) ||
            kind->trans_b == (kind->type == MIXPREC_F16 || kind->type == MIXPREC_BF16) ||
            (!wanted("gram", "full") && !wanted("gram", "lower")))
            continue;
        a = random_array(kind->type, n * k), c = allocate(n * n * 4);
        memset(&d, 0, sizeof d);
        d.m = d.n = n, d.k = k, d.a = d.b = a, d.c = c, d.trans_b = MIXPREC_TRANS, d.native = kind->native;
        d.a_type = d.b_type = kind->type, d.c_type = kind->c_type;
        for (int triangle = 0; triangle < 2; triangle++) {
            if (!wanted("gram", triangle ? "lower" : "full"))
                continue;
            d.triangle = triangle ? MIXPREC_LOWER : MIXPREC_FULL;
            measure_gemm("gram", triangle ? "lower" : "full", kind->name, d, 2.0 * (double)n * (double)n * (double)k,
                         false, !triangle);
        }
        CUDA(cudaFree(a));
        CUDA(cudaFree(c));
    }
}

/* ---- kernels bound by memory ---- */

/* Is any case of bench_memory wanted? Its arrays take gigabytes. */
static bool memory_wanted(void) {
    static const char *const names[] = {
        "convert", "transpose", "unscale",          "check",          "norm",
        "amax",    "clip",      "quantize",         "quantize-1x128", "quantize-128x128",
        "adamw",   "sgd",       "adamw-stochastic", "adamw-bf16",     "adamw-kahan"};
    for (const char *name : names)
        if (wanted("memory", name))
            return true;
    return false;
}

static void bench_memory(void) {
    const size_t n = (size_t)1 << 27; /* hardly a cache holds an array */
    float *w = (float *)random_array(MIXPREC_F32, n), *m = (float *)random_array(MIXPREC_F32, n), *v, *scalars;
    void *g = random_array(MIXPREC_BF16, n), *copy = allocate(n * 2), *workspace;
    mixprec_scaler host, *scaler = (mixprec_scaler *)allocate(sizeof *scaler);
    mixprec_cuda_optimizer_state *state = (mixprec_cuda_optimizer_state *)allocate(sizeof *state);
    mixprec_adam adam;
    mixprec_sgd sgd;
    mixprec_parameter parameter;
    mixprec_cuda_tensor gradient = {g, g, n}, wide = {w, w, n};
    mixprec_cuda_quantized quantized;
    mixprec_cuda_transposed transposed;
    mixprec_cuda_quantized_blocks blocks;
    size_t bytes;
    double limit = 2.0 * (double)n * 4 /
                   seconds_of([&]() { CUDA(cudaMemcpyAsync(m, w, n * 4, cudaMemcpyDeviceToDevice, NULL)); }) * 1e-9;
    v = (float *)allocate(n * 4);
    scalars = (float *)allocate(256);
    CUDA(cudaMemset(v, 0, n * 4));
    CUDA(cudaMemset(state, 0, sizeof *state));
    CUDA(cudaMemset(scalars, 0x3F, 256)); /* 0.747 */
    mixprec_scaler_init_static(&host, 1);
    CUDA(cudaMemcpy(scaler, &host, sizeof host, cudaMemcpyHostToDevice));
    mixprec_adamw_init(&adam);
    mixprec_sgd_init(&sgd);
    sgd.momentum = 0.9;
    memset(&parameter, 0, sizeof parameter);
    parameter.n = n, parameter.grad = g, parameter.grad_type = MIXPREC_BF16, parameter.master = w;
    parameter.model = copy, parameter.model_type = MIXPREC_BF16, parameter.moment1 = m, parameter.moment2 = v;
    memset(&quantized, 0, sizeof quantized);
    quantized.dst = copy, quantized.src = g, quantized.n = n, quantized.scale = scalars, quantized.amax = scalars + 1;
    transposed = {copy, g, n >> 11, 2048, (char *)copy + n, scalars};
    blocks = {copy, g, n >> 11, 2048, v};
    bytes = mixprec_cuda_norm2_workspace(&gradient, 1);
    workspace = allocate(bytes);
#define MEMORY(name, type, bytes_each, call)                                                                           \
    if (wanted("memory", name)) {                                                                                      \
        double rate = (double)(bytes_each) * (double)n / seconds_of([&]() { MIXPREC(call); }) * 1e-9;                  \
        report("memory", name, type, "mixprec", "gb_per_s", rate);                                                     \
        report("memory", name, type, "mixprec", "share_of_copy", rate / limit);                                        \
    }
    MEMORY("convert", "f32-bf16", 6, mixprec_cuda_convert(copy, MIXPREC_BF16, w, MIXPREC_F32, n, NULL));
    MEMORY("convert", "f32-f16", 6, mixprec_cuda_convert(copy, MIXPREC_F16, w, MIXPREC_F32, n, NULL));
    MEMORY("convert", "f32-e4m3", 5, mixprec_cuda_convert(copy, MIXPREC_E4M3, w, MIXPREC_F32, n, NULL));
    MEMORY("convert", "e4m3-f32", 5, mixprec_cuda_convert(m, MIXPREC_F32, copy, MIXPREC_E4M3, n, NULL));
    MEMORY("convert", "bf16-f32", 6, mixprec_cuda_convert(m, MIXPREC_F32, g, MIXPREC_BF16, n, NULL));
    MEMORY("convert", "f16-bf16", 4, mixprec_cuda_convert(copy, MIXPREC_BF16, g, MIXPREC_F16, n, NULL));
    MEMORY("transpose", "bf16-e4m3", 4,
           mixprec_cuda_convert_transpose(&transposed, 1, MIXPREC_E4M3, MIXPREC_BF16, MIXPREC_OVERFLOW_SATURATE, NULL));
    MEMORY("unscale", "bf16", 4, mixprec_cuda_scaler_unscale(scaler, &gradient, 1, MIXPREC_BF16, MIXPREC_BF16, NULL));
    MEMORY("unscale", "f32", 8, mixprec_cuda_scaler_unscale(scaler, &wide, 1, MIXPREC_F32, MIXPREC_F32, NULL));
    MEMORY("check", "bf16", 2, mixprec_cuda_scaler_unscale(scaler, &gradient, 1, MIXPREC_NONE, MIXPREC_BF16, NULL));
    MEMORY("norm", "bf16", 2, mixprec_cuda_norm2(scalars + 2, &gradient, 1, MIXPREC_BF16, workspace, bytes, NULL));
    MEMORY("norm", "f32", 4, mixprec_cuda_norm2(scalars + 2, &wide, 1, MIXPREC_F32, workspace, bytes, NULL));
    MEMORY("amax", "bf16", 2, mixprec_cuda_amax(scalars + 3, &gradient, 1, MIXPREC_BF16, NULL));
    MEMORY("amax", "f32", 4, mixprec_cuda_amax(scalars + 3, &wide, 1, MIXPREC_F32, NULL));
    MEMORY("clip", "bf16", 4, mixprec_cuda_clip(&gradient, 1, MIXPREC_BF16, scalars + 2, 1e9f, NULL));
    MEMORY("quantize", "bf16-e4m3", 3, mixprec_cuda_quantize(&quantized, 1, MIXPREC_E4M3, MIXPREC_BF16, NULL));
    MEMORY("quantize-1x128", "bf16-e4m3", 3 + 4.0 / 128,
           mixprec_cuda_quantize_blocks(&blocks, 1, MIXPREC_E4M3, MIXPREC_BF16, 1, 0, NULL));
    MEMORY("quantize-128x128", "bf16-e4m3", 3,
           mixprec_cuda_quantize_blocks(&blocks, 1, MIXPREC_E4M3, MIXPREC_BF16, 128, 0, NULL));
    MEMORY("adamw", "bf16", 28, mixprec_cuda_adam_step(&adam, &parameter, 1, 1, 1, 0, state, NULL, NULL));
    MEMORY("sgd", "bf16", 20, mixprec_cuda_sgd_step(&sgd, &parameter, 1, 1, 1, 0, state, NULL, NULL));
    parameter.round = MIXPREC_ROUND_STOCHASTIC;
    MEMORY("adamw-stochastic", "bf16", 28, mixprec_cuda_adam_step(&adam, &parameter, 1, 1, 1, 0, state, NULL, NULL));
    parameter.master = NULL;
    MEMORY("adamw-bf16", "bf16", 22, mixprec_cuda_adam_step(&adam, &parameter, 1, 1, 1, 0, state, NULL, NULL));
    parameter.round = MIXPREC_ROUND_NEAREST_EVEN, parameter.compensation = w;
    CUDA(cudaMemset(w, 0, n * 4));
    MEMORY("adamw-kahan", "bf16", 26, mixprec_cuda_adam_step(&adam, &parameter, 1, 1, 1, 0, state, NULL, NULL));
    if (any_of("memory"))
        report("memory", "copy", "f32", "cudaMemcpy", "gb_per_s", limit);
}

/* ---- the page ---- */

static void add_figure(bar_panel *panel, const char *label, int kind, double value, const char *format, double text) {
    if (isfinite(value))
        snprintf(add_bar(panel, label, kind, value)->text, sizeof panel->bars->text, format, text);
}

static void write_gemm(FILE *file) {
    static const char *const peers[] = {"cuBLAS", "cuBLASLt", "wmma"};
    bar_panel panels[gemm_size_count];
    int count = 0, i;
    start_section(file, "Matrix products");
    fprintf(file, "<p>Square matrices, in TFLOP/s. Blue: the default path; at the right its share of the peer"
                  " below. Grey: cuBLAS, cuBLASLt for fp8, and the library's reference path, WMMA. No matrix of 4097 is"
                  " aligned: the time contains their copies.</p>\n");
    for (size_t size : gemm_sizes) {
        static char titles[gemm_size_count][32];
        char name[24];
        bar_panel *panel = &panels[count];
        snprintf(name, sizeof name, "%zu", size);
        snprintf(titles[count], sizeof titles[count], "%zu x %zu x %zu", size, size, size);
        start_panel(panel, titles[count], "TFLOP/s");
        for (i = 0; i < gemm_kind_count; i++) {
            double own = figure("gemm", name, gemm_kinds[i].name, "mixprec", "tflops"), peer = (double)NAN;
            for (int p = 0; p < 2 && !isfinite(peer); p++)
                peer = figure("gemm", name, gemm_kinds[i].name, peers[p], "tflops");
            add_figure(panel, gemm_kinds[i].name, BAR_LIBRARY, own, isfinite(peer) ? "%.0f %%" : "", 100 * own / peer);
            for (int p = 0; p < 3; p++)
                add_figure(panel, peers[p], BAR_OTHER, figure("gemm", name, gemm_kinds[i].name, peers[p], "tflops"),
                           "%.0f", figure("gemm", name, gemm_kinds[i].name, peers[p], "tflops"));
        }
        count += panel->count > 0;
    }
    write_panels(file, panels, count);
    end_section(file);
}

static void write_symmetric(FILE *file) {
    bar_panel panel;
    int i;
    start_section(file, "dot(A, A<sup>T</sup>)");
    fprintf(file, "<p>The case of the CPU benchmark. On a T4 GPU its authors report 34.7 ms in f32 and 5.58 ms in f16"
                  " for A 1024 x 65536.</p>\n<div class='narrow'>");
    start_panel(&panel, quick ? "A 1024 x 8192 (--quick)" : "A 1024 x 65536", "milliseconds, less is better");
    for (i = 0; i < gemm_kind_count; i++) {
        static const char *const impls[] = {"mixprec", "mixprec", "cuBLAS", "cuBLASLt"};
        for (int p = 0; p < 4; p++) {
            double value =
                figure("gram", p == 1 ? "lower" : "full", gemm_kinds[i].name, impls[p], "seconds_median") * 1e3;
            add_figure(&panel,
                       p == 0   ? gemm_kinds[i].name
                       : p == 1 ? "lower triangle"
                                : impls[p],
                       p < 2 ? BAR_LIBRARY : BAR_OTHER, value, "%.3g ms", value);
        }
    }
    if (panel.count)
        write_panel(file, &panel);
    fprintf(file, "</div>\n");
    end_section(file);
}

static void write_memory(FILE *file) {
    const double copy = figure("memory", "copy", "f32", "cudaMemcpy", "gb_per_s");
    bar_panel panel;
    int i;
    start_section(file, "Training kernels");
    fprintf(file,
            "<p>Bytes that must be read and written, per second; the line is a copy of f32 in the same run. At the"
            " right: of the copy.</p>\n<div class='narrow'>");
    start_panel(&panel, "Arrays in device memory", "GB/s, read + written");
    for (i = 0; i < result_count; i++)
        if (!strcmp(results[i].suite, "memory") && !strcmp(results[i].impl, "mixprec") &&
            !strcmp(results[i].metric, "gb_per_s")) {
            char label[24];
            bool converts = !strcmp(results[i].name, "convert");
            snprintf(label, sizeof label, "%.17s%s", converts ? results[i].dtype : results[i].name,
                     !converts && !strcmp(results[i].dtype, "f32") ? " f32" : "");
            add_figure(&panel, label, BAR_LIBRARY, results[i].value, "%.0f %%", 100 * results[i].value / copy);
        }
    panel.limit = copy;
    panel.limit_label = "copy";
    if (panel.count)
        write_panel(file, &panel);
    fprintf(file, "</div>\n");
    end_section(file);
}

static void write_html(FILE *file, const cudaDeviceProp *device) {
    start_page(file, "mixprec on this GPU");
    fprintf(file, "<h1>Mixed precision on ");
    html_text(file, device->name);
    fprintf(file, "</h1>\n<p>mixprec %d.%d.%d. Compute capability %d.%d, %d multiprocessors.</p>\n",
            MIXPREC_VERSION_MAJOR, MIXPREC_VERSION_MINOR, MIXPREC_VERSION_PATCH, device->major, device->minor,
            device->multiProcessorCount);
    if (any_of("gemm"))
        write_gemm(file);
    if (any_of("gram"))
        write_symmetric(file);
    if (any_of("memory"))
        write_memory(file);
    fprintf(file, "</main></body></html>\n");
}

static FILE *open_output(const char *name) {
    FILE *file = fopen(name, "w");
    if (!file)
        die(name, "cannot be written");
    return file;
}

int main(int argc, char **argv) {
    const char *path = "build/bench/cuda";
    char csv_name[512], html_name[512];
    cudaDeviceProp properties;
    FILE *csv, *html;
    int i;
    for (i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--quick"))
            quick = true;
        else if (!strcmp(argv[i], "--out") && i + 1 < argc)
            path = argv[++i];
        else if (!strcmp(argv[i], "--filter") && i + 1 < argc)
            filter = argv[++i];
        else {
            fprintf(stderr, "usage: %s [--quick] [--filter TEXT] [--out FILE]\n", argv[0]);
            return 2;
        }
    if (mixprec_cuda_check() != MIXPREC_OK) {
        printf("SKIP  bench-cuda: NOTHING WAS MEASURED: %s\n", mixprec_cuda_last_error());
        return 0;
    }
    snprintf(csv_name, sizeof csv_name, "%s.csv", path);
    snprintf(html_name, sizeof html_name, "%s.html", path);
    if (!host_can_write(csv_name) || !host_can_write(html_name))
        die(path, "cannot be written");
    CUDA(cudaGetDeviceProperties(&properties, 0));
    has_native_fp8 = properties.major * 10 + properties.minor == 89 || properties.major == 12 || has_wgmma();
    printf("%s, compute capability %d.%d, %d multiprocessors\n", properties.name, properties.major, properties.minor,
           properties.multiProcessorCount);
#ifdef BENCH_CUBLAS
    if (cublasCreate(&cublas) != CUBLAS_STATUS_SUCCESS || cublasLtCreate(&cublas_lt) != CUBLAS_STATUS_SUCCESS)
        die("cuBLAS", "cannot be started");
    cublas_workspace = allocate(cublas_workspace_size);
#endif
    random_numbers = (float *)allocate(random_count * sizeof(float));
    fill_random<<<1024, 256>>>(random_numbers, random_count);
    CUDA(cudaGetLastError());
    bench_gemm();
    bench_symmetric();
    if (memory_wanted())
        bench_memory();
    if (!result_count) {
        fprintf(stderr, "bench_cuda: no case matches --filter: %s\n", filter);
        return 2;
    }
    csv = open_output(csv_name);
    html = open_output(html_name);
    fprintf(csv, "suite,case,dtype,isa,threads,impl,metric,value\n");
    for (i = 0; i < result_count; i++)
        fprintf(csv, "%s,%s,%s,cuda,1,%s,%s,%.6g\n", results[i].suite, results[i].name, results[i].dtype,
                results[i].impl, results[i].metric, results[i].value);
    write_html(html, &properties);
    if (ferror(csv) || ferror(html) || fclose(csv) || fclose(html))
        die(path, "cannot be written");
    printf("wrote %s and %s\n", csv_name, html_name);
    return 0;
}
