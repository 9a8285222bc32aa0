/* The benchmark of mixprec_cuda.cuh: make bench-cuda, on a machine with a GPU. GEMM in TFLOP/s for each dtype and path,
   beside cuBLAS in the same run where it was found (BENCH_CUBLAS); A A^T, the lower triangle and all; the training
   kernels in GB/s beside what a copy reaches. Writes build/bench/cuda.csv with the columns of the CPU benchmark.

       bench_cuda [--quick] [--csv FILE]

   Numbers are random: a GPU is faster on zeros. Times are the median of five runs of at least 50 ms between events. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIXPREC_CUDA_IMPLEMENTATION
#include "../mixprec_cuda.cuh"
#ifdef BENCH_CUBLAS
#include <cublas_v2.h>
static cublasHandle_t cublas;
#endif

static FILE *csv;
static bool quick;
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
    printf("%-10s %-18s %-10s %-8s %10.1f %s\n", suite, name, dtype, impl, value, metric);
    fprintf(csv, "%s,%s,%s,cuda,1,%s,%s,%.6g\n", suite, name, dtype, impl, metric, value);
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

static void bench_gemm(void) {
    static const struct {
        mixprec_dtype type;
        int native;
        const char *name;
    } kinds[] = {{MIXPREC_F16, 0, "f16"},   {MIXPREC_BF16, 0, "bf16"},        {MIXPREC_F32, 1, "tf32"},
                 {MIXPREC_E4M3, 0, "e4m3"}, {MIXPREC_E4M3, 1, "e4m3-native"}, {MIXPREC_I8, 0, "i8"}};
    size_t size, i;
    for (i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (size = 1024; size <= (quick ? 2048u : 8192u); size *= 2) {
            void *a = random_array(kinds[i].type, size * size), *b = random_array(kinds[i].type, size * size);
            void *c = allocate(size * size * 4), *workspace = NULL;
            double flop = 2.0 * (double)size * (double)size * (double)size;
            mixprec_gemm_desc d;
            mixprec_cuda_gemm_options options;
            size_t bytes = 0;
            char name[32];
            int path;
            memset(&d, 0, sizeof d);
            memset(&options, 0, sizeof options);
            d.m = d.n = d.k = size, d.a = a, d.b = b, d.c = c;
            d.a_type = d.b_type = kinds[i].type, d.c_type = MIXPREC_F32, d.native = kinds[i].native;
            d.trans_b = mixprec_dtype_size(kinds[i].type) != 2 ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
            MIXPREC(mixprec_cuda_gemm_workspace(&d, &options, &bytes));
            if (bytes)
                workspace = allocate(bytes);
            d.workspace = workspace, d.workspace_size = bytes;
            snprintf(name, sizeof name, "%zu", size);
            for (path = MIXPREC_CUDA_PATH_MMA; path >= MIXPREC_CUDA_PATH_WMMA; path--) {
                mixprec_status status;
                if (path == MIXPREC_CUDA_PATH_WMMA &&
                    (size > 4096 || (kinds[i].native && kinds[i].type != MIXPREC_F32)))
                    continue;
                options.path = (mixprec_cuda_path)path;
                status = mixprec_cuda_gemm_ex(&d, &options, NULL);
                if (status == MIXPREC_ERR_DEVICE)
                    continue;
                MIXPREC(status);
                report("gemm", name, kinds[i].name, path == MIXPREC_CUDA_PATH_MMA ? "mma" : "wmma", "TFLOP/s",
                       flop / seconds_of([&]() { MIXPREC(mixprec_cuda_gemm_ex(&d, &options, NULL)); }) * 1e-12);
            }
#ifdef BENCH_CUBLAS
            if (kinds[i].type == MIXPREC_F16 || kinds[i].type == MIXPREC_BF16 || kinds[i].type == MIXPREC_F32) {
                cudaDataType_t type = kinds[i].type == MIXPREC_F16    ? CUDA_R_16F
                                      : kinds[i].type == MIXPREC_BF16 ? CUDA_R_16BF
                                                                      : CUDA_R_32F;
                float one = 1, zero = 0;
                int n = (int)size;
                report("gemm", name, kinds[i].name, "cublas", "TFLOP/s",
                       flop / seconds_of([&]() { /* column-major: C' = B' A' */
                                                 if (cublasGemmEx(cublas, d.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                                                                  CUBLAS_OP_N, n, n, n, &one, b, type, n, a, type, n,
                                                                  &zero, c, CUDA_R_32F, n,
                                                                  type == CUDA_R_32F ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                                     : CUBLAS_COMPUTE_32F,
                                                                  CUBLAS_GEMM_DEFAULT) != CUBLAS_STATUS_SUCCESS)
                                                     die("cublasGemmEx", "refused");
                       }) * 1e-12);
            }
#endif
            CUDA(cudaFree(a));
            CUDA(cudaFree(b));
            CUDA(cudaFree(c));
            CUDA(cudaFree(workspace));
        }
}

/* A A^T, of which the lower triangle is enough; the useful operations are counted: all 2 n n k, or half. */
static void bench_symmetric(void) {
    const size_t n = quick ? 1024 : 4096, k = n;
    void *a = random_array(MIXPREC_BF16, n * k), *c = allocate(n * n * 4);
    int triangle;
    for (triangle = 0; triangle < 2; triangle++) {
        mixprec_gemm_desc d;
        memset(&d, 0, sizeof d);
        d.m = d.n = n, d.k = k, d.a = d.b = a, d.c = c, d.trans_b = MIXPREC_TRANS;
        d.a_type = d.b_type = MIXPREC_BF16, d.c_type = MIXPREC_F32;
        d.triangle = triangle ? MIXPREC_LOWER : MIXPREC_FULL;
        report("aat", triangle ? "lower" : "full", "bf16", "mma", "TFLOP/s",
               (triangle ? 1.0 : 2.0) * (double)n * (double)n * (double)k /
                   seconds_of([&]() { MIXPREC(mixprec_cuda_gemm_ex(&d, NULL, NULL)); }) * 1e-12);
    }
    CUDA(cudaFree(a));
    CUDA(cudaFree(c));
}

/* ---- kernels bound by memory ---- */

static void bench_memory(void) {
    const size_t n = (size_t)1 << (quick ? 22 : 27);
    float *w = (float *)random_array(MIXPREC_F32, n), *m = (float *)random_array(MIXPREC_F32, n), *v, *scalars;
    void *g = random_array(MIXPREC_BF16, n), *copy = allocate(n * 2), *workspace;
    mixprec_scaler host, *scaler = (mixprec_scaler *)allocate(sizeof *scaler);
    mixprec_cuda_optimizer_state *state = (mixprec_cuda_optimizer_state *)allocate(sizeof *state);
    mixprec_adam adam;
    mixprec_sgd sgd;
    mixprec_parameter parameter;
    mixprec_cuda_tensor gradient = {g, g, n};
    mixprec_cuda_quantized quantized;
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
    bytes = mixprec_cuda_norm_workspace(&gradient, 1);
    workspace = allocate(bytes);
    report("memory", "copy", "f32", "cuda", "GB/s", limit);
#define MEMORY(name, type, bytes_each, call)                                                                           \
    do {                                                                                                               \
        double rate = (double)(bytes_each) * (double)n / seconds_of([&]() { MIXPREC(call); }) * 1e-9;                  \
        report("memory", name, type, "mixprec", "GB/s", rate);                                                         \
        report("memory", name, type, "mixprec", "of-copy-percent", 100 * rate / limit);                                \
    } while (0)
    MEMORY("convert", "f32-bf16", 6, mixprec_cuda_convert(copy, MIXPREC_BF16, w, MIXPREC_F32, n, NULL));
    MEMORY("convert", "f32-f16", 6, mixprec_cuda_convert(copy, MIXPREC_F16, w, MIXPREC_F32, n, NULL));
    MEMORY("convert", "f32-e4m3", 5, mixprec_cuda_convert(copy, MIXPREC_E4M3, w, MIXPREC_F32, n, NULL));
    MEMORY("convert", "bf16-f32", 6, mixprec_cuda_convert(m, MIXPREC_F32, g, MIXPREC_BF16, n, NULL));
    MEMORY("transpose", "bf16-e4m3", 4,
           mixprec_cuda_convert_transpose(copy, (char *)copy + n, MIXPREC_E4M3, g, MIXPREC_BF16, n >> 11, 2048, scalars,
                                          MIXPREC_OVERFLOW_SATURATE, NULL));
    MEMORY("unscale", "bf16", 4, mixprec_cuda_scaler_unscale(scaler, &gradient, 1, MIXPREC_BF16, MIXPREC_BF16, NULL));
    MEMORY("check", "bf16", 2, mixprec_cuda_scaler_unscale(scaler, &gradient, 1, MIXPREC_NONE, MIXPREC_BF16, NULL));
    MEMORY("norm", "bf16", 2, mixprec_cuda_norm(scalars + 2, &gradient, 1, MIXPREC_BF16, workspace, bytes, NULL));
    MEMORY("amax", "bf16", 2, mixprec_cuda_amax(scalars + 3, &gradient, 1, MIXPREC_BF16, NULL));
    MEMORY("clip", "bf16", 4, mixprec_cuda_clip(&gradient, 1, MIXPREC_BF16, scalars + 2, 1e9f, NULL));
    MEMORY("quantize", "bf16-e4m3", 3, mixprec_cuda_quantize(&quantized, 1, MIXPREC_E4M3, MIXPREC_BF16, NULL));
    MEMORY("quantize-1x128", "bf16-e4m3", 3 + 4.0 / 128,
           mixprec_cuda_quantize_blocks(copy, MIXPREC_E4M3, v, g, MIXPREC_BF16, n >> 11, 2048, 1, 0, NULL));
    MEMORY("quantize-128x128", "bf16-e4m3", 3,
           mixprec_cuda_quantize_blocks(copy, MIXPREC_E4M3, v, g, MIXPREC_BF16, n >> 11, 2048, 128, 0, NULL));
    MEMORY("adamw", "bf16", 28, mixprec_cuda_adam_step(&adam, &parameter, 1, 1, 1, 0, state, NULL, NULL));
    MEMORY("sgd", "bf16", 20, mixprec_cuda_sgd_step(&sgd, &parameter, 1, 1, 1, 0, state, NULL, NULL));
    parameter.round = MIXPREC_ROUND_STOCHASTIC;
    MEMORY("adamw-stochastic", "bf16", 28, mixprec_cuda_adam_step(&adam, &parameter, 1, 1, 1, 0, state, NULL, NULL));
    parameter.master = NULL;
    MEMORY("adamw-bf16", "bf16", 22, mixprec_cuda_adam_step(&adam, &parameter, 1, 1, 1, 0, state, NULL, NULL));
    parameter.round = MIXPREC_ROUND_NEAREST_EVEN, parameter.compensation = w;
    MEMORY("adamw-kahan", "bf16", 26, mixprec_cuda_adam_step(&adam, &parameter, 1, 1, 1, 0, state, NULL, NULL));
}

int main(int argc, char **argv) {
    const char *path = "build/bench/cuda.csv";
    cudaDeviceProp properties;
    int i;
    for (i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--quick"))
            quick = true;
        else if (!strcmp(argv[i], "--csv") && i + 1 < argc)
            path = argv[++i];
        else {
            fprintf(stderr, "usage: %s [--quick] [--csv FILE]\n", argv[0]);
            return 2;
        }
    if (mixprec_cuda_check() != MIXPREC_OK) {
        printf("SKIP  bench-cuda: NOTHING WAS MEASURED: %s\n", mixprec_cuda_last_error());
        return 0;
    }
    csv = fopen(path, "w");
    if (!csv)
        die(path, "cannot be written");
    fprintf(csv, "suite,case,dtype,isa,threads,impl,metric,value\n");
    CUDA(cudaGetDeviceProperties(&properties, 0));
    printf("%s, compute capability %d.%d, %d multiprocessors\n", properties.name, properties.major, properties.minor,
           properties.multiProcessorCount);
#ifdef BENCH_CUBLAS
    if (cublasCreate(&cublas) != CUBLAS_STATUS_SUCCESS)
        die("cublasCreate", "failed");
#endif
    random_numbers = (float *)allocate(random_count * sizeof(float));
    fill_random<<<1024, 256>>>(random_numbers, random_count);
    bench_gemm();
    bench_symmetric();
    bench_memory();
    fclose(csv);
    printf("wrote %s\n", path);
    return 0;
}
