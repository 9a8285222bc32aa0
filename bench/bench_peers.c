/* Other libraries' matrix products, layers and single numbers, beside the library's own. Each takes part when the build
   defined its macro: BENCH_OPENBLAS, BENCH_BLIS, BENCH_ONEDNN, BENCH_FP16. With BENCH_PROBE this file is a program of
   its own, the build's probe, that ends with 0 when what it was built with works. */
#define _POSIX_C_SOURCE 200809L /* setenv; blis.h wants the barriers of pthread.h */
#include "bench.h"

#include <strings.h>
#include <unistd.h>

#ifdef BENCH_OPENBLAS
#include <cblas.h>

static int openblas_f32(mixprec_transpose tb, size_t m, size_t n, size_t k, const void *a, const void *b, void *c) {
    cblas_sgemm(CblasRowMajor, CblasNoTrans, tb ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, 1, a, (int)k, b,
                (int)(tb ? k : n), 0, c, (int)n);
    return 0;
}

static int openblas_gemv(mixprec_transpose tb, size_t m, size_t n, size_t k, const void *a, const void *b, void *c) {
    if (m != 1 && n != 1)
        return 1;
    if (n == 1)
        cblas_sgemv(CblasRowMajor, CblasNoTrans, (int)m, (int)k, 1, a, (int)k, b, 1, 0, c, 1);
    else
        cblas_sgemv(CblasRowMajor, tb ? CblasNoTrans : CblasTrans, (int)(tb ? n : k), (int)(tb ? k : n), 1, b,
                    (int)(tb ? k : n), a, 1, 0, c, 1);
    return 0;
}

/* They leave the other triangle; the library fills it. */
#define OPENBLAS_SYRK(name, type, syrk)                                                                                \
    static int name(mixprec_transpose tb, size_t m, size_t n, size_t k, const void *a, const void *b, void *c) {       \
        type *x = c;                                                                                                   \
        size_t i, j;                                                                                                   \
        if (a != b || !tb || m != n)                                                                                   \
            return 1;                                                                                                  \
        syrk(CblasRowMajor, CblasLower, CblasNoTrans, (int)n, (int)k, 1, a, (int)k, 0, x, (int)n);                     \
        for (i = 0; i < n; i++)                                                                                        \
            for (j = 0; j < i; j++)                                                                                    \
                x[j * n + i] = x[i * n + j];                                                                           \
        return 0;                                                                                                      \
    }
OPENBLAS_SYRK(openblas_syrk, float, cblas_ssyrk)
OPENBLAS_SYRK(openblas_syrk_f64, double, cblas_dsyrk)

static int openblas_f64(mixprec_transpose tb, size_t m, size_t n, size_t k, const void *a, const void *b, void *c) {
    cblas_dgemm(CblasRowMajor, CblasNoTrans, tb ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, 1, a, (int)k, b,
                (int)(tb ? k : n), 0, c, (int)n);
    return 0;
}
#endif

#ifdef BENCH_BLIS
/* Its typed interface: the names of its CBLAS are those of OpenBLAS. */
#define BLIS_DISABLE_CBLAS
#define BLIS_DISABLE_BLAS
#if defined(__has_include)
#if __has_include(<blis/blis.h>)
#include <blis/blis.h>
#else
#include <blis.h>
#endif
#else
#include <blis.h>
#endif

static int blis_f32(mixprec_transpose tb, size_t m, size_t n, size_t k, const void *a, const void *b, void *c) {
    float one = 1, zero = 0;
    bli_sgemm(BLIS_NO_TRANSPOSE, tb ? BLIS_TRANSPOSE : BLIS_NO_TRANSPOSE, (dim_t)m, (dim_t)n, (dim_t)k, &one,
              (float *)a, (inc_t)k, 1, (float *)b, (inc_t)(tb ? k : n), 1, &zero, c, (inc_t)n, 1);
    return 0;
}

static int blis_f64(mixprec_transpose tb, size_t m, size_t n, size_t k, const void *a, const void *b, void *c) {
    double one = 1, zero = 0;
    bli_dgemm(BLIS_NO_TRANSPOSE, tb ? BLIS_TRANSPOSE : BLIS_NO_TRANSPOSE, (dim_t)m, (dim_t)n, (dim_t)k, &one,
              (double *)a, (inc_t)k, 1, (double *)b, (inc_t)(tb ? k : n), 1, &zero, c, (inc_t)n, 1);
    return 0;
}
#endif

#ifdef BENCH_ONEDNN
#include <dnnl.h>

void omp_set_num_threads(int threads); /* of libgomp: oneDNN has no function for it */

/* A product is a "primitive" made for one shape; the last one of each type is kept, so that the clock sees none being
   made. */
typedef struct onednn_matmul {
    mixprec_transpose tb;
    size_t m, n, k;
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[3];
} onednn_matmul;

static dnnl_engine_t onednn_engine;
static dnnl_stream_t onednn_stream;

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t onednn_shape;
#define ONEDNN_SHAPE(shape, count, sizes, type, tag) dnnl_memory_desc_create_with_tag(&(shape), count, sizes, type, tag)
#else
typedef dnnl_memory_desc_t onednn_shape[1]; /* a pointer where it is an argument, as with version 3 */
#define ONEDNN_SHAPE(shape, count, sizes, type, tag) dnnl_memory_desc_init_by_tag(shape, count, sizes, type, tag)
#endif

static int onednn_begin(void) {
    return !onednn_engine &&
           (dnnl_engine_create(&onednn_engine, dnnl_cpu, 0) != dnnl_success ||
            dnnl_stream_create(&onednn_stream, onednn_engine, dnnl_stream_default_flags) != dnnl_success);
}

/* What a former shape had is not freed: a handful in a run. */
static int onednn_prepare(onednn_matmul *matmul, dnnl_data_type_t type) {
    dnnl_dim_t m = (dnnl_dim_t)matmul->m, n = (dnnl_dim_t)matmul->n, k = (dnnl_dim_t)matmul->k;
    dnnl_dims_t a_dims, b_dims, c_dims, a_strides, b_strides, c_strides;
    dnnl_primitive_desc_t description = NULL;
    int i;
    a_dims[0] = m, a_dims[1] = k, a_strides[0] = k, a_strides[1] = 1;
    b_dims[0] = k, b_dims[1] = n, b_strides[0] = matmul->tb ? 1 : n, b_strides[1] = matmul->tb ? k : 1;
    c_dims[0] = m, c_dims[1] = n, c_strides[0] = n, c_strides[1] = 1;
    if (onednn_begin())
        return 1;
    {
        onednn_shape x[3];
#if DNNL_VERSION_MAJOR >= 3
        if (dnnl_memory_desc_create_with_strides(&x[0], 2, a_dims, type, a_strides) != dnnl_success ||
            dnnl_memory_desc_create_with_strides(&x[1], 2, b_dims, type, b_strides) != dnnl_success ||
            dnnl_memory_desc_create_with_strides(&x[2], 2, c_dims, dnnl_f32, c_strides) != dnnl_success ||
            dnnl_matmul_primitive_desc_create(&description, onednn_engine, x[0], x[1], NULL, x[2], NULL) !=
                dnnl_success)
            return 1;
#else
        dnnl_matmul_desc_t operation;
        if (dnnl_memory_desc_init_by_strides(x[0], 2, a_dims, type, a_strides) != dnnl_success ||
            dnnl_memory_desc_init_by_strides(x[1], 2, b_dims, type, b_strides) != dnnl_success ||
            dnnl_memory_desc_init_by_strides(x[2], 2, c_dims, dnnl_f32, c_strides) != dnnl_success ||
            dnnl_matmul_desc_init(&operation, x[0], x[1], NULL, x[2]) != dnnl_success ||
            dnnl_primitive_desc_create(&description, &operation, NULL, onednn_engine, NULL) != dnnl_success)
            return 1;
#endif
        if (dnnl_primitive_create(&matmul->primitive, description) != dnnl_success)
            return 1;
        for (i = 0; i < 3; i++)
            if (dnnl_memory_create(&matmul->memory[i], x[i], onednn_engine, DNNL_MEMORY_NONE) != dnnl_success)
                return 1;
    }
    return 0;
}

static int onednn_product(onednn_matmul *matmul, dnnl_data_type_t type, mixprec_transpose tb, size_t m, size_t n,
                          size_t k, const void *a, const void *b, void *c) {
    dnnl_exec_arg_t arguments[3];
    if (!matmul->primitive || matmul->tb != tb || matmul->m != m || matmul->n != n || matmul->k != k) {
        matmul->tb = tb, matmul->m = m, matmul->n = n, matmul->k = k;
        if (onednn_prepare(matmul, type)) {
            matmul->primitive = NULL;
            return 1;
        }
    }
    dnnl_memory_set_data_handle(matmul->memory[0], (void *)a);
    dnnl_memory_set_data_handle(matmul->memory[1], (void *)b);
    dnnl_memory_set_data_handle(matmul->memory[2], c);
    arguments[0].arg = DNNL_ARG_SRC, arguments[0].memory = matmul->memory[0];
    arguments[1].arg = DNNL_ARG_WEIGHTS, arguments[1].memory = matmul->memory[1];
    arguments[2].arg = DNNL_ARG_DST, arguments[2].memory = matmul->memory[2];
    return dnnl_primitive_execute(matmul->primitive, onednn_stream, 3, arguments) != dnnl_success ||
           dnnl_stream_wait(onednn_stream) != dnnl_success;
}

static int onednn_f32(mixprec_transpose tb, size_t m, size_t n, size_t k, const void *a, const void *b, void *c) {
    static onednn_matmul matmul;
    return onednn_product(&matmul, dnnl_f32, tb, m, n, k, a, b, c);
}

static int onednn_bf16(mixprec_transpose tb, size_t m, size_t n, size_t k, const void *a, const void *b, void *c) {
    static onednn_matmul matmul;
    return onednn_product(&matmul, dnnl_bf16, tb, m, n, k, a, b, c);
}

static int onednn_f16(mixprec_transpose tb, size_t m, size_t n, size_t k, const void *a, const void *b, void *c) {
    static onednn_matmul matmul;
    return onednn_product(&matmul, dnnl_f16, tb, m, n, k, a, b, c);
}

/* ---- its layers ---- */

static const struct {
    const char *name;
    enum { ELTWISE, SOFTMAX, LAYER_NORM } kind;
    int backward;
    dnnl_alg_kind_t algorithm;
} onednn_layers[] = {
    {"relu", ELTWISE, 0, dnnl_eltwise_relu},
    {"relu-backward", ELTWISE, 1, dnnl_eltwise_relu},
    {"gelu", ELTWISE, 0, dnnl_eltwise_gelu_erf},
    {"gelu-backward", ELTWISE, 1, dnnl_eltwise_gelu_erf},
    {"gelu-tanh", ELTWISE, 0, dnnl_eltwise_gelu_tanh},
    {"gelu-tanh-backward", ELTWISE, 1, dnnl_eltwise_gelu_tanh},
    {"silu", ELTWISE, 0, dnnl_eltwise_swish},
    {"silu-backward", ELTWISE, 1, dnnl_eltwise_swish},
    {"tanh", ELTWISE, 0, dnnl_eltwise_tanh},
    {"tanh-backward", ELTWISE, 1, dnnl_eltwise_tanh},
    {"softmax", SOFTMAX, 0, dnnl_softmax_accurate},
    {"softmax-64", SOFTMAX, 0, dnnl_softmax_accurate},
    {"softmax-backward", SOFTMAX, 1, dnnl_softmax_accurate},
    {"log-softmax", SOFTMAX, 0, dnnl_softmax_log},
    {"layer-norm", LAYER_NORM, 0, dnnl_alg_kind_undef},
    {"layer-norm-backward", LAYER_NORM, 1, dnnl_alg_kind_undef},
};

/* Describes the layer, forward where `forward` is NULL, else backward. */
static int onednn_describe(dnnl_primitive_desc_t *description, int layer, const onednn_shape data,
                           const onednn_shape statistics, const dnnl_primitive_desc_t *forward) {
    const dnnl_alg_kind_t algorithm = onednn_layers[layer].algorithm;
    const float alpha = algorithm == dnnl_eltwise_swish; /* x sigmoid(alpha x); of ReLU the slope below 0 */
    const unsigned flags = dnnl_use_scale | dnnl_use_shift;
    dnnl_status_t status;
#if DNNL_VERSION_MAJOR >= 3
    if (onednn_layers[layer].kind == ELTWISE)
        status = forward ? dnnl_eltwise_backward_primitive_desc_create(description, onednn_engine, algorithm, data,
                                                                       data, data, alpha, 0, *forward, NULL)
                         : dnnl_eltwise_forward_primitive_desc_create(description, onednn_engine, dnnl_forward_training,
                                                                      algorithm, data, data, alpha, 0, NULL);
    else if (onednn_layers[layer].kind == SOFTMAX)
        status = forward ? dnnl_softmax_backward_primitive_desc_create(description, onednn_engine, algorithm, data,
                                                                       data, data, 1, *forward, NULL)
                         : dnnl_softmax_forward_primitive_desc_create(description, onednn_engine, dnnl_forward_training,
                                                                      algorithm, data, data, 1, NULL);
    else
        status = forward
                     ? dnnl_layer_normalization_backward_primitive_desc_create(description, onednn_engine,
                                                                               dnnl_backward, data, data, data,
                                                                               statistics, 1e-5f, flags, *forward, NULL)
                     : dnnl_layer_normalization_forward_primitive_desc_create(description, onednn_engine,
                                                                              dnnl_forward_training, data, data,
                                                                              statistics, 1e-5f, flags, NULL);
    return status != dnnl_success;
#else
    union {
        dnnl_eltwise_desc_t eltwise;
        dnnl_softmax_v2_desc_t softmax;
        dnnl_layer_normalization_desc_t norm;
    } u;
    if (onednn_layers[layer].kind == ELTWISE)
        status = forward ? dnnl_eltwise_backward_desc_init(&u.eltwise, algorithm, data, data, alpha, 0)
                         : dnnl_eltwise_forward_desc_init(&u.eltwise, dnnl_forward_training, algorithm, data, alpha, 0);
    else if (onednn_layers[layer].kind == SOFTMAX)
        status = forward
                     ? dnnl_softmax_v2_backward_desc_init(&u.softmax, algorithm, data, data, data, 1)
                     : dnnl_softmax_v2_forward_desc_init(&u.softmax, dnnl_forward_training, algorithm, data, data, 1);
    else
        status = forward ? dnnl_layer_normalization_backward_desc_init(&u.norm, dnnl_backward, data, data, statistics,
                                                                       1e-5f, flags)
                         : dnnl_layer_normalization_forward_desc_init(&u.norm, dnnl_forward_training, data, statistics,
                                                                      1e-5f, flags);
    return status != dnnl_success ||
           dnnl_primitive_desc_create(description, &u, NULL, onednn_engine, forward ? *forward : NULL) != dnnl_success;
#endif
}

enum { ONEDNN_ARGUMENTS = 10 };
static struct {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[ONEDNN_ARGUMENTS];
} onednn_layer;

static void onednn_run_layer(void *context) {
    (void)context;
    if (dnnl_primitive_execute(onednn_layer.primitive, onednn_stream, ONEDNN_ARGUMENTS, onednn_layer.arguments) !=
            dnnl_success ||
        dnnl_stream_wait(onednn_stream) != dnnl_success) {
        fprintf(stderr, "bench: oneDNN could not run a layer that it had made\n");
        exit(1);
    }
}

/* As with products, what a former layer had is not freed. */
static int onednn_prepare_layer(const bench_layer *x) {
    const dnnl_data_type_t type = x->dtype == MIXPREC_F32 ? dnnl_f32 : dnnl_bf16;
    const dnnl_dims_t sizes = {(dnnl_dim_t)x->rows, (dnnl_dim_t)x->columns}, columns = {(dnnl_dim_t)x->columns};
    enum { TENSOR, ROWS, COLUMNS };
    onednn_shape shapes[3];
    dnnl_primitive_desc_t forward = NULL, backward = NULL;
    int layer, i;
    for (layer = 0; layer < COUNT_OF(onednn_layers) && strcmp(onednn_layers[layer].name, x->name); layer++)
        ;
    if (layer == COUNT_OF(onednn_layers) || (x->dtype != MIXPREC_F32 && x->dtype != MIXPREC_BF16) || onednn_begin() ||
        ONEDNN_SHAPE(shapes[TENSOR], 2, sizes, type, dnnl_ab) != dnnl_success ||
        ONEDNN_SHAPE(shapes[ROWS], 1, sizes, dnnl_f32, dnnl_a) != dnnl_success ||
        ONEDNN_SHAPE(shapes[COLUMNS], 1, columns, dnnl_f32, dnnl_a) != dnnl_success ||
        onednn_describe(&forward, layer, shapes[TENSOR], shapes[ROWS], NULL) ||
        (onednn_layers[layer].backward && onednn_describe(&backward, layer, shapes[TENSOR], shapes[ROWS], &forward)) ||
        dnnl_primitive_create(&onednn_layer.primitive, backward ? backward : forward) != dnnl_success)
        return 1;
    {
        /* a layer ignores what it does not know; the gradient of softmax is computed from its result */
        const struct {
            int name, shape;
            const void *memory;
        } arguments[ONEDNN_ARGUMENTS] = {
            {DNNL_ARG_SRC, TENSOR, x->x},
            {DNNL_ARG_DST, TENSOR, backward ? x->x : x->out},
            {DNNL_ARG_DIFF_DST, TENSOR, x->gradient},
            {DNNL_ARG_DIFF_SRC, TENSOR, x->out},
            {DNNL_ARG_SCALE, COLUMNS, x->gamma},
            {DNNL_ARG_SHIFT, COLUMNS, x->beta},
            {DNNL_ARG_MEAN, ROWS, x->mean},
            {DNNL_ARG_VARIANCE, ROWS, x->variance},
            {DNNL_ARG_DIFF_SCALE, COLUMNS, x->sums[0]},
            {DNNL_ARG_DIFF_SHIFT, COLUMNS, x->sums[1]},
        };
        for (i = 0; i < ONEDNN_ARGUMENTS; i++) {
            onednn_layer.arguments[i].arg = arguments[i].name;
            if (dnnl_memory_create(&onednn_layer.arguments[i].memory, shapes[arguments[i].shape], onednn_engine,
                                   (void *)arguments[i].memory) != dnnl_success)
                return 1;
        }
    }
    return 0;
}

static const char *onednn_core(void) {
    static char text[24];
    const dnnl_version_t *version = dnnl_version();
    snprintf(text, sizeof(text), "%d.%d.%d", version->major, version->minor, version->patch);
    return text;
}
#endif

#ifdef BENCH_FP16 /* which is a header; it counts on the caller's rounding to nearest */
#include <fp16.h>

BENCH_LOOP(fp16_from_f32, fp16_ieee_from_fp32_value, uint16_t, float)
BENCH_LOOP(fp16_to_f32, fp16_ieee_to_fp32_value, float, uint16_t)
#endif

int bench_peers(const bench_peer **peers) {
    static bench_peer list[16];
    static int count;
    if (!count) {
#ifdef BENCH_OPENBLAS
        openblas_set_num_threads(bench_option.threads);
        list[count++] = (bench_peer){"OpenBLAS", openblas_get_corename(), BENCH_GEMM, MIXPREC_F32, openblas_f32};
        list[count++] = (bench_peer){"OpenBLAS", openblas_get_corename(), BENCH_GEMM, MIXPREC_F64, openblas_f64};
        list[count++] = (bench_peer){"OpenBLAS gemv", openblas_get_corename(), BENCH_GEMV, MIXPREC_F32, openblas_gemv};
        list[count++] = (bench_peer){"OpenBLAS syrk", openblas_get_corename(), BENCH_SYRK, MIXPREC_F32, openblas_syrk};
        list[count++] =
            (bench_peer){"OpenBLAS syrk", openblas_get_corename(), BENCH_SYRK, MIXPREC_F64, openblas_syrk_f64};
#endif
#ifdef BENCH_BLIS
        bli_thread_set_num_threads(bench_option.threads);
        list[count++] = (bench_peer){"BLIS", bli_arch_string(bli_arch_query_id()), BENCH_GEMM, MIXPREC_F32, blis_f32};
        list[count++] = (bench_peer){"BLIS", bli_arch_string(bli_arch_query_id()), BENCH_GEMM, MIXPREC_F64, blis_f64};
#endif
#ifdef BENCH_ONEDNN
        omp_set_num_threads(bench_option.threads);
        list[count++] = (bench_peer){"oneDNN", onednn_core(), BENCH_GEMM, MIXPREC_F32, onednn_f32};
        list[count++] = (bench_peer){"oneDNN", onednn_core(), BENCH_GEMM, MIXPREC_F16, onednn_f16};
        list[count++] = (bench_peer){"oneDNN", onednn_core(), BENCH_GEMM, MIXPREC_BF16, onednn_bf16};
#endif
    }
    *peers = list;
    return count;
}

const char *bench_peers_missing(void) {
    return ""
#ifndef BENCH_OPENBLAS
           " OpenBLAS"
#endif
#ifndef BENCH_BLIS
           " BLIS"
#endif
#ifndef BENCH_ONEDNN
           " oneDNN"
#endif
#ifndef BENCH_FP16
           " FP16"
#endif
        ;
}

#ifdef BENCH_PROBE
bench_options bench_option = {1, 1, 0, NULL, ""};

int main(void) {
    const bench_peer *peers;
    double a[2] = {0, 0}, c[2] = {1, 1};
#ifdef BENCH_FP16
    return fp16_ieee_from_fp32_value(1) != 0x3C00;
#endif
    if (!bench_peers(&peers))
        return 1;
    return peers[0].gemm(MIXPREC_NO_TRANS, 1, 1, 1, a, a, c); /* 0 is 0 in every format */
}
#else
int bench_peer_layer(bench_timing *timing, const bench_layer *layer) {
#ifdef BENCH_ONEDNN
    omp_set_num_threads(1);
    timing->key = bench_key_of("layers", layer->name, layer->dtype, MIXPREC_ISA_AUTO);
    timing->key.threads = 1;
    timing->key.isa = onednn_core();
    timing->key.impl = "oneDNN";
    timing->run = onednn_run_layer;
    return onednn_prepare_layer(layer);
#else
    (void)timing;
    (void)layer;
    return 1;
#endif
}

int bench_peer_scalar(bench_timing *timing) {
    timing->key.impl = "FP16";
    timing->run = NULL;
#ifdef BENCH_FP16
    if (!strcmp(timing->key.name, "f32-to-f16"))
        timing->run = fp16_from_f32;
    if (!strcmp(timing->key.name, "f16-to-f32"))
        timing->run = fp16_to_f32;
#endif
    return !timing->run;
}

/* OpenBLAS may run kernels for AVX2 although the CPU has AVX-512: when OPENBLAS_CORETYPE, left in the environment, says
   so, or when it is older than the CPU. It reads the variable when it is loaded, so the program starts over, at first
   without it; if that does not help, with the kernels of the first CPU that had AVX-512. */
void bench_restart_for_peers(char **argv) {
#if defined(BENCH_OPENBLAS) && defined(__linux__) && defined(__x86_64__)
    static const char *const with_avx512[] = {"SkylakeX", "Cooperlake", "SapphireRapids"};
    const char *core = openblas_get_corename(), *asked = getenv("OPENBLAS_CORETYPE");
    int i;
    for (i = 0; i < COUNT_OF(with_avx512); i++)
        if (!strcasecmp(core, with_avx512[i]))
            return;
    if (!mixprec_isa_available(MIXPREC_ISA_AVX512) || (asked && !strcasecmp(asked, with_avx512[0])))
        return;
    printf("OpenBLAS would run its %s kernels although this CPU has AVX-512: started again %s OPENBLAS_CORETYPE=%s\n",
           core, asked ? "without" : "with", asked ? asked : with_avx512[0]);
    fflush(stdout);
    if (asked)
        unsetenv("OPENBLAS_CORETYPE");
    else
        setenv("OPENBLAS_CORETYPE", with_avx512[0], 1);
    execv("/proc/self/exe", argv);
    printf("That failed; going on.\n");
#else
    (void)argv;
#endif
}
#endif
