/* Four threads at once, on the same inputs, with outputs of their own: the same bits as one thread alone, in all that
   the library has. And no call sets errno, whether it succeeds or not.

       cc -O2 -std=gnu11 tests/test_threads.c -lm -pthread && ./a.out [--quick] [--filter TEXT]

   The first calls of the threads are the first of the process: they find out about the CPU in a race. Nothing may call
   the library before. ThreadSanitizer, in check_builds.sh, sees what luck with the timing hides. The allocator of tests
   is for one thread, so products get a workspace, or are small enough for the stack. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>

#include "library.h"
#include "test.h"

enum { THREADS = 4, N = 777, ROWS = 7, COLUMNS = N / ROWS, UNTOUCHED = 77 };
enum { SIDE = 20, VOCABULARY = 37, SPARE = 1 << 16 };

/* What all threads read: two sets, since memory that threads share by mistake shows when it holds different numbers. */
typedef struct inputs {
    float x[N], y[N];
    mixprec_f16 halves[N];
    mixprec_bf16 brains[N];
    mixprec_e4m3 eights[N];
    int32_t counts[ROWS];
} inputs;
static inputs sets[2];

/* What a thread writes in one round; zeros before, so that its bytes can be compared. */
typedef struct results {
    mixprec_e4m3 narrow[N], quantized[N];
    mixprec_bf16 stochastic[N], model[N], kept[ROWS * (N / VOCABULARY)];
    mixprec_f16 gelu[N], gradient[N];
    float wide[N], dequantized[N], scales[ROWS], history[4], unscaled[N], master[N], moment1[N], moment2[N], sum[N];
    float softmax[N], attention[N], masked[N], log_softmax[N], losses[ROWS], logits[N], norm[N], mean[ROWS], rstd[ROWS],
        rms[N];
    float dgamma[COLUMNS], dbeta[COLUMNS], dx[N], batch[N], images[N], dropped[N], loaded[N];
    float product[SIDE * SIDE], epilogue[SIDE * SIDE], packed_product[SIDE * SIDE], native[SIDE * SIDE];
    double sums[8], rates[4];
    float amax, factor, loss;
    int integers[16];
    mixprec_statistics stats;
    mixprec_scaler scaler;
    mixprec_policy policy;
    char text[64];
    unsigned char saved[8192];
} results;

typedef struct thread {
    int index;
    inputs *in;
    results first[2], again, *now;
    double workspace[SPARE / 8];
    double packed[SPARE / 8];
    /* CHECK is for one thread: what was wrong waits here. */
    const char *wrong_status, *wrong_errno;
    int status, error, calls, different, meetings;
} thread;
static thread threads[THREADS], alone;

static void note(thread *t, const char *call, int status, int expected, int error) {
    t->calls++;
    if (status != expected && !t->wrong_status)
        t->wrong_status = call, t->status = status;
    if (error != UNTOUCHED && !t->wrong_errno)
        t->wrong_errno = call, t->error = error;
}
/* The call is evaluated before errno is looked at: not so among the arguments of one function. */
#define CALL(expected, ...)                                                                                            \
    do {                                                                                                               \
        int status_;                                                                                                   \
        errno = UNTOUCHED;                                                                                             \
        status_ = (int)(__VA_ARGS__);                                                                                  \
        note(t, #__VA_ARGS__, status_, (int)(expected), errno);                                                        \
    } while (0)
#define OK(...) CALL(MIXPREC_OK, __VA_ARGS__)
/* What returns no status. */
#define DO(...) CALL(0, ((__VA_ARGS__), 0))
#define NO_DTYPE ((mixprec_dtype)99)

static void conversions(thread *t) {
    inputs *in = t->in;
    results *r = t->now;
    mixprec_convert_options options;
    memset(&options, 0, sizeof options);
    options.round = MIXPREC_ROUND_STOCHASTIC, options.seed = 5;
    OK(mixprec_convert(r->narrow, MIXPREC_E4M3, in->x, MIXPREC_F32, N));
    OK(mixprec_convert(r->wide, MIXPREC_F32, in->halves, MIXPREC_F16, N));
    OK(mixprec_convert_ex(r->stochastic, MIXPREC_BF16, in->x, MIXPREC_F32, N, &options));
    OK(mixprec_stats(&r->stats, in->x, MIXPREC_F32, N, MIXPREC_E4M3, NULL));
    CALL(MIXPREC_ERR_NULL, mixprec_convert(NULL, MIXPREC_F16, in->x, MIXPREC_F32, N));
    CALL(MIXPREC_ERR_DTYPE, mixprec_convert_ex(r->wide, MIXPREC_F32, in->halves, NO_DTYPE, N, &options));
}

static void reductions(thread *t) {
    inputs *in = t->in;
    results *r = t->now;
    OK(mixprec_sum(&r->sums[0], in->x, MIXPREC_F32, N));
    OK(mixprec_dot(&r->sums[1], in->halves, MIXPREC_F16, in->eights, MIXPREC_E4M3, N));
    OK(mixprec_norm2(&r->sums[2], in->brains, MIXPREC_BF16, N));
    OK(mixprec_mean_variance(&r->sums[3], &r->sums[4], in->x, MIXPREC_F32, N));
    OK(mixprec_reduce(&r->sums[5], MIXPREC_SUM_SQUARES, in->x, MIXPREC_F32, NULL, MIXPREC_NONE, 0.5, N,
                      MIXPREC_ISA_AUTO));
    OK(mixprec_combine(&r->sums[6], &r->sums[5], 1));
    OK(mixprec_amax(&r->amax, in->halves, MIXPREC_F16, N));
    OK(mixprec_all_finite(&r->integers[0], in->eights, MIXPREC_E4M3, N));
    CALL(MIXPREC_ERR_NULL, mixprec_sum(NULL, in->x, MIXPREC_F32, N));
    CALL(MIXPREC_ERR_DTYPE, mixprec_amax(&r->amax, in->x, NO_DTYPE, N));
}

static void quantisation(thread *t) {
    inputs *in = t->in;
    results *r = t->now;
    mixprec_quantize_desc d;
    mixprec_scales layout;
    mixprec_delayed_scaling delayed;
    memset(&d, 0, sizeof d);
    memset(&layout, 0, sizeof layout);
    d.rows = ROWS, d.columns = COLUMNS, d.block_rows = layout.block_rows = 1;
    d.src = in->x, d.src_type = MIXPREC_F32, d.dst = r->quantized, d.dst_type = MIXPREC_E4M3, d.scales = r->scales;
    layout.values = r->scales;
    OK(mixprec_quantize(&d));
    OK(mixprec_dequantize(r->dequantized, MIXPREC_F32, 0, r->quantized, MIXPREC_E4M3, 0, ROWS, COLUMNS, &layout));
    DO(r->factor = mixprec_scale_of_amax(3.0f, MIXPREC_E5M2, 1));
    OK(mixprec_delayed_scaling_init(&delayed, MIXPREC_E4M3, r->history, 4));
    OK(mixprec_delayed_scaling_update(&delayed, 5.0f));
    d.src = NULL;
    CALL(MIXPREC_ERR_NULL, mixprec_quantize(&d));
    CALL(MIXPREC_ERR_DTYPE,
         mixprec_dequantize(r->dequantized, MIXPREC_F32, 0, r->quantized, NO_DTYPE, 0, ROWS, COLUMNS, NULL));
    CALL(MIXPREC_ERR_RANGE, mixprec_delayed_scaling_init(&delayed, MIXPREC_E4M3, r->history, 0));
}

static void scaling(thread *t) {
    inputs *in = t->in;
    results *r = t->now;
    DO(mixprec_scaler_init(&r->scaler));
    DO(r->loss = mixprec_scaler_scale(&r->scaler, 0.25f));
    CALL(0, mixprec_scaler_unscale(&r->scaler, r->unscaled, in->halves, MIXPREC_F16, N));
    CALL(1, mixprec_scaler_update(&r->scaler));
    OK(mixprec_scaler_check(&r->scaler));
    CALL(-(int)MIXPREC_ERR_NULL, mixprec_scaler_unscale(&r->scaler, NULL, in->halves, MIXPREC_F16, N));
    CALL(-(int)MIXPREC_ERR_DTYPE, mixprec_scaler_unscale(&r->scaler, r->unscaled, in->halves, NO_DTYPE, N));
    CALL(MIXPREC_ERR_SCALE, mixprec_scaler_init_static(&r->scaler, 0.0f));
}

static void optimisers(thread *t) {
    inputs *in = t->in;
    results *r = t->now;
    mixprec_parameter p;
    mixprec_adam adam;
    mixprec_sgd sgd;
    int i;
    memset(&p, 0, sizeof p);
    memcpy(r->master, in->y, sizeof r->master);
    p.n = N, p.grad = in->brains, p.grad_type = MIXPREC_BF16, p.master = r->master;
    p.model = r->model, p.model_type = MIXPREC_BF16, p.moment1 = r->moment1, p.moment2 = r->moment2;
    p.round = MIXPREC_ROUND_STOCHASTIC, p.seed = 9;
    DO(mixprec_adamw_init(&adam));
    DO(mixprec_sgd_init(&sgd));
    sgd.momentum = 0.9;
    adam.step = sgd.step = 1;
    OK(mixprec_adam_step(&adam, &p, 1, 0.5f, 0));
    OK(mixprec_sgd_step(&sgd, &p, 0.25f, 1, 0));
    OK(mixprec_accumulate(r->sum, in->halves, MIXPREC_F16, N, 0.5f));
    for (i = 0; i < 4; i++)
        DO(r->rates[i] = mixprec_warmup_cosine(1e-3, 1e-300, 10, 1000, 333u * (unsigned)i));
    /* where functions of math.h set errno */
    CALL(1, mixprec_gradient_norm(-1, 1) != 1);
    CALL(1, mixprec_gradient_norm(HUGE_VAL, 1) == HUGE_VAL);
    CALL(0, mixprec_clip_coefficient(HUGE_VAL, 1) != 0);
    CALL(MIXPREC_ERR_NULL, mixprec_adam_step(&adam, NULL, 1, 1, 0));
    CALL(MIXPREC_ERR_SCALE, mixprec_sgd_step(&sgd, &p, 0, 1, 0));
    CALL(MIXPREC_ERR_DTYPE, mixprec_accumulate(r->sum, in->halves, NO_DTYPE, N, 0.5f));
}

static void policies(thread *t) {
    results *r = t->now;
    OK(mixprec_policy_parse(&r->policy, "p=f32,c=bf16,g=e5m2"));
    OK(mixprec_policy_print(r->text, sizeof r->text, &r->policy));
    DO(r->integers[1] = (int)mixprec_autocast_of("softmax"));
    DO(r->integers[2] = (int)mixprec_policy_operation(&r->policy, "linear", MIXPREC_F32));
    CALL(MIXPREC_ERR_POLICY, mixprec_policy_parse(&r->policy, "none"));
    CALL(MIXPREC_ERR_RANGE, mixprec_policy_print(r->text, 3, &r->policy));
}

/* The same item for saving and for loading, but for where it lies. */
static mixprec_checkpoint_item item(void *data) {
    mixprec_checkpoint_item it;
    memset(&it, 0, sizeof it);
    it.name = "x", it.kind = MIXPREC_CHECKPOINT_ARRAY, it.dtype = MIXPREC_F32, it.data = data, it.n = N;
    return it;
}
static void checkpoints(thread *t) {
    inputs *in = t->in;
    results *r = t->now;
    mixprec_checkpoint_item from = item(in->x), to = item(r->loaded);
    mixprec_buffer buffer = {0}, small = {0};
    buffer.bytes = small.bytes = r->saved;
    buffer.size = sizeof r->saved;
    small.size = 100;
    DO(r->integers[3] = (int)mixprec_checkpoint_size(&from, 1));
    OK(mixprec_checkpoint_save(&from, 1, mixprec_buffer_write, &buffer));
    OK(mixprec_checkpoint_load(&to, 1, mixprec_buffer_read, &buffer));
    CALL(MIXPREC_ERR_TRUNCATED, mixprec_checkpoint_load(&to, 1, mixprec_buffer_read, &small));
    CALL(MIXPREC_ERR_NULL, mixprec_checkpoint_save(NULL, 1, mixprec_buffer_write, &buffer));
    CALL(MIXPREC_ERR_STREAM, mixprec_checkpoint_save(&from, 1, mixprec_buffer_write, &small));
}

static void products(thread *t) {
    inputs *in = t->in;
    results *r = t->now;
    mixprec_gemm_desc d;
    size_t size, least;
    OK(mixprec_gemm(MIXPREC_NO_TRANS, MIXPREC_TRANS, SIDE, SIDE, SIDE, 1.5f, in->halves, MIXPREC_F16, SIDE, in->eights,
                    MIXPREC_E4M3, SIDE, 0, r->product, MIXPREC_F32, SIDE));
    memset(&d, 0, sizeof d);
    d.m = d.n = d.k = SIDE;
    d.a = in->brains, d.b = in->brains + SIDE * SIDE / 2;
    d.a_type = d.b_type = MIXPREC_BF16;
    d.c = r->epilogue, d.c_type = MIXPREC_F32;
    d.bias = in->y, d.activation = MIXPREC_ACTIVATION_GELU;
    d.workspace = t->workspace, d.workspace_size = sizeof t->workspace;
    OK(mixprec_gemm_workspace(&d, &size, &least));
    OK(mixprec_gemm_ex(&d));
    d.c = r->native, d.native = 1; /* the only state of the library besides the CPU's: whether it may use AMX */
    OK(mixprec_gemm_ex(&d));
    DO(r->integers[4] = mixprec_native_available(MIXPREC_BF16, MIXPREC_BF16));
    d.native = 0;
    OK(mixprec_gemm_pack_b_size(&d, &size));
    OK(size > sizeof t->packed ? MIXPREC_ERR_SIZE : mixprec_gemm_pack_b(&d, t->packed, size));
    d.b = t->packed, d.packed_size = size, d.c = r->packed_product;
    OK(mixprec_gemm_ex(&d));
    d.a = NULL;
    CALL(MIXPREC_ERR_NULL, mixprec_gemm_ex(&d));
    CALL(MIXPREC_ERR_DTYPE, mixprec_gemm(MIXPREC_NO_TRANS, MIXPREC_TRANS, SIDE, SIDE, SIDE, 1, in->halves, NO_DTYPE,
                                         SIDE, in->halves, MIXPREC_F16, SIDE, 0, r->product, MIXPREC_F32, SIDE));
}

static void layers(thread *t) {
    static const mixprec_conv2d layer = {1, 3, 11, 11, 2, 3, 3, 0, 0, 0, 0, 1, 1};
    inputs *in = t->in;
    results *r = t->now;
    OK(mixprec_activate(r->gelu, MIXPREC_F16, in->x, MIXPREC_F32, N, MIXPREC_ACTIVATION_GELU));
    OK(mixprec_activate_backward(r->gradient, MIXPREC_F16, in->halves, MIXPREC_F16, in->x, MIXPREC_F32, N,
                                 MIXPREC_ACTIVATION_SILU));
    OK(mixprec_softmax(r->softmax, MIXPREC_F32, in->x, MIXPREC_F32, ROWS, COLUMNS));
    OK(mixprec_softmax_masked(r->masked, MIXPREC_F32, in->x, MIXPREC_F32, in->counts, ROWS, COLUMNS));
    OK(mixprec_softmax_backward(r->attention, MIXPREC_F32, in->y, MIXPREC_F32, r->softmax, MIXPREC_F32, ROWS, COLUMNS));
    OK(mixprec_log_softmax(r->log_softmax, MIXPREC_F32, in->halves, MIXPREC_F16, ROWS, COLUMNS));
    OK(mixprec_cross_entropy(r->logits, MIXPREC_F32, r->losses, in->x, MIXPREC_F32, in->counts, ROWS, COLUMNS, 0.5));
    OK(mixprec_layer_norm(r->norm, MIXPREC_F32, r->mean, r->rstd, in->x, MIXPREC_F32, in->halves, in->y, MIXPREC_F32,
                          ROWS, COLUMNS, 1e-5));
    OK(mixprec_layer_norm_backward(r->dx, MIXPREC_F32, r->dgamma, r->dbeta, in->y, MIXPREC_F32, in->x, MIXPREC_F32,
                                   in->y, MIXPREC_F32, r->mean, r->rstd, ROWS, COLUMNS));
    OK(mixprec_rms_norm(r->rms, MIXPREC_F32, NULL, in->brains, MIXPREC_BF16, NULL, MIXPREC_F32, ROWS, COLUMNS, 1e-5));
    OK(mixprec_batch_norm(r->batch, MIXPREC_F32, NULL, NULL, in->x, MIXPREC_F32, NULL, NULL, MIXPREC_F32, NULL, NULL,
                          0.1, ROWS, COLUMNS, 1, 1e-5));
    OK(mixprec_embedding(r->kept, MIXPREC_BF16, in->brains, MIXPREC_BF16, in->counts, ROWS, VOCABULARY,
                         N / VOCABULARY));
    OK(mixprec_dropout(r->dropped, MIXPREC_F32, in->x, MIXPREC_F32, N, 0.25f, 3, 0));
    OK(mixprec_conv2d_forward(&layer, r->images, MIXPREC_F32, in->x, MIXPREC_F32, in->y, MIXPREC_F32, NULL, MIXPREC_F32,
                              t->workspace, sizeof t->workspace));
    CALL(MIXPREC_ERR_NULL, mixprec_softmax(NULL, MIXPREC_F32, in->x, MIXPREC_F32, ROWS, COLUMNS));
    CALL(MIXPREC_ERR_DTYPE, mixprec_activate(r->gelu, MIXPREC_F16, in->x, NO_DTYPE, N, MIXPREC_ACTIVATION_GELU));
    CALL(MIXPREC_ERR_PARAMETER, mixprec_dropout(r->dropped, MIXPREC_F32, in->x, MIXPREC_F32, N, 2, 3, 0));
}

static void properties(thread *t) {
    results *r = t->now;
    mixprec_format_info format;
    DO(r->integers[5] = (int)mixprec_isa_best());
    DO(r->integers[6] = mixprec_isa_available(MIXPREC_ISA_AVX2));
    OK(mixprec_format(MIXPREC_E4M3, &format));
    r->sums[7] = format.max;
    CALL(0, strcmp(mixprec_dtype_name(NO_DTYPE), "unknown"));
    CALL(0, strcmp(mixprec_status_string(MIXPREC_OK), "success"));
    CALL(MIXPREC_ERR_DTYPE, mixprec_format(NO_DTYPE, &format));
}

static void (*const rooms[])(thread *) = {conversions, reductions,  quantisation, scaling, optimisers,
                                          policies,    checkpoints, products,     layers,  properties};
enum { ROOMS = sizeof rooms / sizeof *rooms };

/* Waits for the other threads: macOS has no pthread_barrier_t. Two gates take turns, or ThreadSanitizer would see no
   race: who wakes late would lock the mutex after what another one has done since. */
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t all_here;
    int arrivals;
} gate;
static gate gates[2] = {{PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0},
                        {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0}};
static void meet(thread *t) {
    gate *g = &gates[t->meetings++ % 2];
    int enough;
    if (t == &alone)
        return;
    pthread_mutex_lock(&g->lock);
    enough = g->arrivals - g->arrivals % THREADS + THREADS;
    if (++g->arrivals == enough)
        pthread_cond_broadcast(&g->all_here);
    while (g->arrivals < enough)
        pthread_cond_wait(&g->all_here, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

/* In the first round the threads do the same; then two of them read the other set, and half of the time each does
   something else. What one thread gets in two rounds differs where another one has interfered. They meet once a round,
   and after their first call: ThreadSanitizer is silent about what lies too far back. */
static void work(thread *t) {
    const int rounds = test_quick ? 30 : 1000;
    int round, i, seen[2] = {0, 0};
    t->in = &sets[0];
    t->now = &t->again;
    meet(t);
    properties(t);
    for (round = 0; round < rounds; round++) {
        const int set = round ? (round + t->index) % 2 : 0, shift = round % 4 < 2 ? 0 : 3 * t->index;
        t->in = &sets[set];
        t->now = seen[set] ? &t->again : &t->first[set];
        memset(t->now, 0, sizeof *t->now);
        meet(t);
        for (i = 0; i < ROOMS; i++)
            rooms[(i + shift) % ROOMS](t);
        t->different += seen[set] && memcmp(&t->again, &t->first[set], sizeof t->again) != 0;
        seen[set] = 1;
    }
}

static void *run(void *t) {
    work(t);
    return NULL;
}

/* Numbers by the inline functions alone, which find out nothing about the CPU: some large enough that exponentials
   underflow, none infinite, for the payload of a NaN is not promised. */
static void make_inputs(inputs *in, uint64_t seed) {
    size_t i;
    for (i = 0; i < N; i++) {
        const float unit = (float)mixprec_random_bits(seed, i) / 4294967296.0f - 0.5f;
        in->x[i] = i % 50 == 7 ? unit * 1000 : unit * 4;
        in->y[i] = (float)mixprec_random_bits(seed + 1, i) / 4294967296.0f;
        in->halves[i] = mixprec_f32_to_f16(unit);
        in->brains[i] = mixprec_f32_to_bf16(unit * 3);
        in->eights[i] = mixprec_f32_to_e4m3(unit * 100);
    }
    for (i = 0; i < ROWS; i++)
        in->counts[i] = (int32_t)(seed ? i * i : 5 * i); /* below COLUMNS and VOCABULARY */
}

static void check_calls(const thread *t) {
    CHECK(!t->wrong_status, "thread %d: status %d from %s", t->index, t->status, t->wrong_status);
    CHECK(!t->different, "thread %d: %d rounds differ from its first", t->index, t->different);
    CHECK(t->calls > ROOMS, "thread %d: %d calls", t->index, t->calls);
}

int main(int argc, char **argv) {
    pthread_t ids[THREADS];
    int i, created = 0;
    test_init(argc, argv);
    make_inputs(&sets[0], 0);
    make_inputs(&sets[1], 10);
    for (i = 0; i < THREADS; i++)
        threads[i].index = i;
    alone.index = THREADS;
    for (i = 0; i < THREADS; i++)
        created += !pthread_create(&ids[i], NULL, run, &threads[i]);
    if (created < THREADS) {
        perror("pthread_create");
        return 2; /* with those that wait for the others */
    }
    for (i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
    work(&alone);

    if (test_begin("threads: four at once, as one alone")) {
        check_calls(&alone);
        for (i = 0; i < THREADS; i++) {
            check_calls(&threads[i]);
            const unsigned char *a = (const unsigned char *)threads[i].first, *b = (const unsigned char *)alone.first;
            size_t at = 0;
            while (at < sizeof alone.first && a[at] == b[at])
                at++;
            CHECK(at == sizeof alone.first, "thread %d differs from one alone at byte %lu of its results", i,
                  (unsigned long)at);
        }
        test_end();
    }
    if (test_begin("threads: errno stays, whatever a call returns")) {
        CHECK(!alone.wrong_errno, "alone: errno %d after %s", alone.error, alone.wrong_errno);
        for (i = 0; i < THREADS; i++)
            CHECK(!threads[i].wrong_errno, "thread %d: errno %d after %s", i, threads[i].error, threads[i].wrong_errno);
        test_end();
    }
    return test_summary();
}
