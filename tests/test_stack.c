/* How much stack the functions use, in bytes below their caller, against what README.md and mixprec.h say.

       cc -O2 -std=gnu11 tests/test_stack.c -lm -pthread && ./a.out [--quick] [--filter TEXT]

   All calls run in a thread whose stack is an array of this file. Before a call what is below its caller is painted,
   afterwards the deepest byte that has changed tells how far it went. A little is counted that belongs to the caller
   (arguments), and nothing is seen of an array's deep end that was not written, unless a function was called below it.
   The figures are those of optimised code; for each family of functions the highest is shown. */
#include "test.h"

#if !defined(__GNUC__) || defined(__TINYC__) || !defined(__OPTIMIZE__)
#define CANNOT_MEASURE "needs gcc or clang, with optimisation"
#elif defined(_WIN32) || defined(__wasm__)
#define CANNOT_MEASURE "needs threads with a stack of the caller's"
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CANNOT_MEASURE "sanitizers have frames of their own"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer)
#define CANNOT_MEASURE "sanitizers have frames of their own"
#endif
#endif

#ifdef CANNOT_MEASURE
int main(int argc, char **argv) {
    test_init(argc, argv);
    test_skip("stack", CANNOT_MEASURE);
    return test_summary();
}
#else
#include <pthread.h>
#include <stdint.h>

#include "library.h"

/* What README.md promises, in KB: in the usual build, with MIXPREC_NO_STDLIB, and with that in portable C. */
#if !defined(MIXPREC_NO_STDLIB)
#define MOST(usual, freestanding, portable) ((size_t)(usual) << 10)
#define UNALLOCATED MIXPREC_GEMM_STACK
#else
#if defined(MIXPREC_NO_SIMD) || !(defined(__x86_64__) || defined(__aarch64__))
#define MOST(usual, freestanding, portable) ((size_t)(portable) << 10)
#else
#define MOST(usual, freestanding, portable) ((size_t)(freestanding) << 10)
#endif
#define UNALLOCATED 0
#endif
/* Kernels of AVX-512 that turn strips of fp8 beside a product take more: 33 KB. */
#define PRODUCTS_BY(isa)                                                                                               \
    (((isa) == MIXPREC_ISA_AUTO || (isa) == MIXPREC_ISA_AVX512) && mixprec_isa_available(MIXPREC_ISA_AVX512)           \
         ? (size_t)40 << 10                                                                                            \
         : MOST(14, 14, 8))
#define PRODUCTS PRODUCTS_BY(MIXPREC_ISA_AUTO)

enum { STACK = 1 << 18, PAINTED = MIXPREC_GEMM_STACK + (1 << 16), PAINT = 0xA5, BESIDE = 256 };
static unsigned char stack[STACK] __attribute__((aligned(1 << 16))); /* the largest page */

static unsigned char *caller;
static const char *family_name;
static size_t family_most, family_limit, call_limit; /* of all calls, and of the next one */
static char family_call[200], about[120];

/* The frames of paint, changed and of what they call begin where those of a measured call do. They are not painted, so
   less than BESIDE bytes are not told apart. */
static void __attribute__((noinline)) paint(void) {
    caller = (unsigned char *)__builtin_frame_address(0);
    memset(caller - PAINTED, PAINT, PAINTED - BESIDE);
}
static size_t __attribute__((noinline)) changed(void) {
    const unsigned char *at = caller - PAINTED;
    uint64_t word;
    for (; at < caller; at += sizeof word) {
        memcpy(&word, at, sizeof word);
        if (word != 0xA5A5A5A5A5A5A5A5u)
            break;
    }
    return (size_t)(caller - at);
}

static void measured(const char *call, int status, int expected, size_t bytes) {
    const char *name = strstr(call, "mixprec_");
    const int length = (int)strcspn(name, "(");
    CHECK(status == expected, "status %d from %.*s, %s", status, length, name, about);
    CHECK(bytes <= call_limit, "%lu bytes, not %lu, by %.*s, %s", (unsigned long)bytes, (unsigned long)call_limit,
          length, name, about);
    if (bytes > family_most) {
        family_most = bytes;
        snprintf(family_call, sizeof family_call, "%.*s, %s", length, name, about);
    }
}
/* The first call may have the dynamic linker find a function of the C library, on the same stack. */
#define CALL(expected, ...)                                                                                            \
    do {                                                                                                               \
        int status_;                                                                                                   \
        size_t bytes_;                                                                                                 \
        (void)(__VA_ARGS__);                                                                                           \
        paint();                                                                                                       \
        status_ = (int)(__VA_ARGS__);                                                                                  \
        bytes_ = changed();                                                                                            \
        measured(#__VA_ARGS__, status_, (int)(expected), bytes_);                                                      \
    } while (0)
#define OK(...) CALL(MIXPREC_OK, __VA_ARGS__)
/* What returns no status. */
#define DO(...) CALL(0, ((__VA_ARGS__), 0))
/* What the messages say of the calls that follow. */
#define ABOUT(...) ((void)snprintf(about, sizeof about, __VA_ARGS__))

static int family(const char *name, size_t limit) {
    family_name = name;
    family_limit = call_limit = limit;
    family_most = 0;
    ABOUT("-");
    return test_begin(name);
}
static void family_end(void) {
    printf("      %s: %lu of %lu bytes: %s\n", family_name, (unsigned long)family_most, (unsigned long)family_limit,
           family_call);
    test_end();
}

/* ---- what the calls work on ---- */

enum { N = 1 << 16, TYPES = 5 + 1, LARGE = 64 << 20 };
static const mixprec_dtype types[TYPES] = {MIXPREC_F32,  MIXPREC_F16,  MIXPREC_BF16,
                                           MIXPREC_E4M3, MIXPREC_E5M2, MIXPREC_F64}; /* layers take all but the last */
/* As any dtype: positive numbers; then anything, for ways that few numbers take. out is zero as any dtype. */
static union {
    unsigned char bytes[24 * N];
    float floats[6 * N];
    double align;
} plain, wild, out, more[4];
static float ones[N], positive[N];
static int32_t indices[N];
static double space[1 << 18];
static mixprec_isa paths[5];
static int path_count;

static const char *name_of(mixprec_dtype type) {
    return mixprec_dtype_name(type);
}

static void make_inputs(void) {
    size_t i;
    for (i = 0; i < sizeof plain; i++) {
        plain.bytes[i] = (unsigned char)(0x38 + i % 7);
        wild.bytes[i] = (unsigned char)(mixprec_random_bits(1, i) >> 24);
    }
    for (i = 0; i < N; i++) {
        ones[i] = 1;
        positive[i] = 0.5f + (float)(i % 16);
        indices[i] = (int32_t)(i % 5);
    }
    for (i = MIXPREC_ISA_AUTO; i <= MIXPREC_ISA_NEON; i++)
        if (i == MIXPREC_ISA_AUTO ? !test_quick : mixprec_isa_available((mixprec_isa)i))
            paths[path_count++] = (mixprec_isa)i;
}

/* ---- the families ---- */

static void conversions(void) {
    const float scales[] = {0, 1.5f};
    mixprec_convert_options options = {0};
    int path, x, y, round, overflow, s;
    for (x = 1; x < MIXPREC_DTYPE_COUNT; x++)
        for (y = 1; y < MIXPREC_DTYPE_COUNT; y++) {
            const mixprec_dtype from = (mixprec_dtype)x, to = (mixprec_dtype)y;
            ABOUT("%s to %s", name_of(from), name_of(to));
            OK(mixprec_convert(out.bytes, to, wild.bytes, from, 1001));
            for (path = 0; path < path_count; path++)
                for (round = 0; round <= MIXPREC_ROUND_STOCHASTIC; round++)
                    for (overflow = 0; overflow <= (test_quick ? 1 : 2); overflow++)
                        for (s = 0; s < 2; s++) {
                            if (test_quick && (x + 2 * y + 3 * round + 5 * s) % 8)
                                continue;
                            ABOUT("%s to %s, %s, rounding %d, overflow %d, scale %g", name_of(from), name_of(to),
                                  mixprec_isa_name(paths[path]), round, overflow, (double)scales[s]);
                            options.isa = paths[path], options.round = (mixprec_round)round;
                            options.overflow = (mixprec_overflow)overflow, options.scale = scales[s];
                            options.offset = 3;
                            OK(mixprec_convert_ex(out.bytes, to, wild.bytes, from, 999, &options));
                        }
        }
}

/* More than the caches hold, which is written around them. */
static void large_conversions(unsigned char *from, unsigned char *to) {
    const mixprec_dtype pairs[][2] = {{MIXPREC_F32, MIXPREC_F16},  {MIXPREC_F16, MIXPREC_F32},
                                      {MIXPREC_F64, MIXPREC_BF16}, {MIXPREC_F32, MIXPREC_E4M3},
                                      {MIXPREC_F64, MIXPREC_F32},  {MIXPREC_BF16, MIXPREC_E2M1}};
    mixprec_convert_options options = {0};
    size_t i;
    for (i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        /* LARGE bytes, source and result together, whatever they are */
        const size_t n = LARGE / mixprec_dtype_size(pairs[i][pairs[i][1] == MIXPREC_F32]) / 8 * 8 + 1;
        ABOUT("%s to %s, large", name_of(pairs[i][0]), name_of(pairs[i][1]));
        options.scale = i % 2 ? 1.5f : 0;
        options.round = i % 3 == 2 ? MIXPREC_ROUND_STOCHASTIC : MIXPREC_ROUND_NEAREST_EVEN;
        OK(mixprec_convert(to, pairs[i][1], from, pairs[i][0], n));
        OK(mixprec_convert_ex(to, pairs[i][1], from, pairs[i][0], n, &options));
    }
}

static void statistics(void) {
    static mixprec_statistics stats;
    mixprec_convert_options options = {0};
    int path, x, y, round;
    for (x = 1; x < MIXPREC_DTYPE_COUNT; x++)
        for (y = 1; y < MIXPREC_DTYPE_COUNT; y++) {
            if (y == MIXPREC_F64)
                continue;
            OK(mixprec_stats(&stats, plain.bytes, (mixprec_dtype)x, 3000, (mixprec_dtype)y, NULL));
            for (path = 0; path < path_count; path++)
                for (round = 0; round <= MIXPREC_ROUND_STOCHASTIC; round += test_quick ? 5 : 1) {
                    ABOUT("%s to %s, %s, rounding %d", name_of((mixprec_dtype)x), name_of((mixprec_dtype)y),
                          mixprec_isa_name(paths[path]), round);
                    options.isa = paths[path], options.round = (mixprec_round)round;
                    options.scale = round % 2 ? 0 : 3;
                    OK(mixprec_stats(&stats, wild.bytes, (mixprec_dtype)x, 1001, (mixprec_dtype)y, &options));
                }
        }
}

static void reductions(void) {
    static double partials[4], result;
    double mean, variance;
    float amax;
    int path, x, y, finite, what;
    for (x = 0; x < TYPES - 1; x++) {
        const mixprec_dtype type = types[x];
        const size_t n = type == MIXPREC_F32 ? N + 77 : 3 * N; /* with the blocks of a sum */
        ABOUT("%s", name_of(type));
        OK(mixprec_sum(&result, plain.bytes, type, n));
        OK(mixprec_sum_squares(&result, wild.bytes, type, n));
        OK(mixprec_norm1(&result, plain.bytes, type, n));
        OK(mixprec_norm2(&result, plain.bytes, type, n));
        OK(mixprec_mean_variance(&mean, &variance, plain.bytes, type, n));
        OK(mixprec_amax(&amax, wild.bytes, type, n));
        OK(mixprec_all_finite(&finite, plain.bytes, type, n));
        for (path = 0; path < path_count; path++) {
            ABOUT("%s, %s", name_of(type), mixprec_isa_name(paths[path]));
            OK(mixprec_amax_ex(&amax, plain.bytes, type, n, paths[path]));
            for (y = 0; y < TYPES - 1; y++)
                for (what = 0; what <= MIXPREC_DOT; what++) {
                    ABOUT("%d of %s, %s, %s", what, name_of(type), name_of(types[y]), mixprec_isa_name(paths[path]));
                    OK(mixprec_reduce(partials, (mixprec_reduction)what, plain.bytes, type, plain.bytes, types[y], 0.25,
                                      N + 77, paths[path]));
                }
        }
        for (y = 0; y < TYPES - 1; y++)
            OK(mixprec_dot(&result, plain.bytes, type, wild.bytes, types[y], N + 77));
    }
    OK(mixprec_combine(&result, partials, 4));
}

static void quantisation(void) {
    const size_t blocks[][2] = {{0, 0}, {1, 0}, {0, 1}, {1, 32}, {1, 128}, {16, 16}};
    mixprec_delayed_scaling delayed;
    mixprec_quantize_desc d = {0};
    mixprec_scales layout = {0};
    float history[8], factor = 0;
    int path, x, y, b, round;
    for (x = 0; x < TYPES - 1; x++)
        for (y = MIXPREC_F16; y < MIXPREC_DTYPE_COUNT; y++) {
            if (y == MIXPREC_E8M0)
                continue;
            for (b = 0; b < 6; b++) {
                d.rows = 35, d.columns = 300, d.src = plain.bytes, d.src_type = types[x];
                d.dst = out.bytes, d.dst_type = (mixprec_dtype)y, d.scales = more[0].floats;
                d.block_rows = layout.block_rows = blocks[b][0];
                d.block_columns = layout.block_columns = blocks[b][1];
                d.amax = &factor;
                for (path = 0; path < path_count; path++)
                    for (round = 0; round <= MIXPREC_ROUND_STOCHASTIC; round++) {
                        if (round % 5 && (x + y + b) % (test_quick ? 7 : 3))
                            continue;
                        ABOUT("%s to %s, blocks %lu x %lu, %s, rounding %d", name_of(types[x]),
                              name_of((mixprec_dtype)y), (unsigned long)blocks[b][0], (unsigned long)blocks[b][1],
                              mixprec_isa_name(paths[path]), round);
                        d.isa = paths[path], d.round = (mixprec_round)round, d.power_of_two = round % 2;
                        OK(mixprec_quantize(&d));
                        if (!b) {
                            d.scale = ones;
                            OK(mixprec_quantize(&d));
                            d.scale = NULL;
                        }
                    }
                layout.values = positive;
                ABOUT("%s from %s, blocks %lu x %lu", name_of(types[x]), name_of((mixprec_dtype)y),
                      (unsigned long)blocks[b][0], (unsigned long)blocks[b][1]);
                OK(mixprec_dequantize(out.bytes, types[x], 0, wild.bytes, (mixprec_dtype)y, 0, 35, 300, &layout));
            }
            OK(mixprec_dequantize(out.bytes, types[x], 0, wild.bytes, (mixprec_dtype)y, 0, 35, 300, NULL));
        }
    ABOUT("delayed scaling");
    DO(factor = mixprec_scale_of_amax(3.0f, MIXPREC_E5M2, 1));
    OK(mixprec_delayed_scaling_init(&delayed, MIXPREC_E4M3, history, 8));
    OK(mixprec_delayed_scaling_update(&delayed, 5.0f));
}

static void large_quantisation(unsigned char *from, unsigned char *to) {
    mixprec_quantize_desc d = {0};
    mixprec_scales layout = {0};
    mixprec_scaler scaler;
    ABOUT("large");
    d.rows = 4, d.columns = LARGE / 16, d.src = from, d.src_type = MIXPREC_F32;
    d.dst = to, d.dst_type = MIXPREC_E4M3, d.scales = more[0].floats, d.block_rows = 1;
    OK(mixprec_quantize(&d));
    layout.values = positive, layout.block_rows = 1;
    OK(mixprec_dequantize(to, MIXPREC_F32, 0, from, MIXPREC_E4M3, 0, 4, LARGE / 16, &layout));
    mixprec_scaler_init(&scaler);
    CALL(0, mixprec_scaler_unscale(&scaler, (float *)(void *)to, from, MIXPREC_F16, LARGE / 4));
}

static void scaling(void) {
    mixprec_scaler scaler;
    float loss = 0;
    int path, x;
    DO(mixprec_scaler_init(&scaler));
    DO(loss = mixprec_scaler_scale(&scaler, loss));
    OK(mixprec_scaler_check(&scaler));
    for (x = 0; x < TYPES; x++) {
        ABOUT("%s", name_of(types[x]));
        CALL(0, mixprec_scaler_unscale(&scaler, out.floats, plain.bytes, types[x], 5001));
        for (path = 0; path < path_count; path++) {
            ABOUT("%s, %s", name_of(types[x]), mixprec_isa_name(paths[path]));
            CALL(1, mixprec_scaler_unscale_ex(&scaler, out.floats, wild.bytes, types[x], N, paths[path]));
        }
    }
    CALL(1, (scaler.found_inf = 0, mixprec_scaler_update(&scaler)));
    OK(mixprec_scaler_init_static(&scaler, 4));
}

/* Each way to hold weights. The moments of `wild` gradients are no sound numbers: their way may be another. */
static void optimisers(void) {
    mixprec_parameter p = {0};
    mixprec_adam adam;
    mixprec_sgd sgd;
    double rate = 0;
    int path, x, y, way, round, kind, flag = 0;
    float factor = 0;
    DO(mixprec_adam_init(&adam));
    DO(mixprec_adamw_init(&adam));
    DO(mixprec_sgd_init(&sgd));
    adam.step = sgd.step = 1;
    p.n = 3001;
    p.moment2 = more[2].floats;
    for (x = 0; x < TYPES; x++)
        for (y = 0; y < TYPES - 1; y++)
            for (way = 0; way < 4; way++) /* master; master and model; model; model and compensation */
                for (path = 0; path < path_count; path++)
                    for (round = 0; round <= MIXPREC_ROUND_STOCHASTIC; round += test_quick ? 5 : 1) {
                        if (way == 3 && round)
                            continue;
                        p.grad = (x + y) % 2 ? plain.bytes : wild.bytes, p.grad_type = types[x];
                        p.master = way < 2 ? more[0].floats : NULL;
                        p.model = way ? out.bytes : NULL, p.model_type = types[y];
                        p.compensation = way == 3 ? more[3].bytes : NULL;
                        p.round = (mixprec_round)round, p.overflow = (mixprec_overflow)(round % 3);
                        p.isa = paths[path];
                        p.moment1 = more[1].floats;
                        ABOUT("%s, model %s, way %d, %s, rounding %d", name_of(types[x]), name_of(types[y]), way,
                              mixprec_isa_name(paths[path]), round);
                        for (kind = 0; kind < 2; kind++) {
                            adam.decoupled = kind, adam.weight_decay = 0.01;
                            OK(mixprec_adam_step(&adam, &p, 0.5f, 1, 0));
                        }
                        for (kind = 0; kind < 3; kind++) {
                            sgd.momentum = kind ? 0.9 : 0, sgd.nesterov = kind == 2, sgd.weight_decay = 0.01 * kind;
                            OK(mixprec_sgd_step(&sgd, &p, 1, 0.5f, 0));
                        }
                    }
    for (x = 0; x < TYPES; x++)
        OK(mixprec_accumulate(out.floats, plain.bytes, types[x], 3001, 0.5f));
    ABOUT("-");
    DO(factor = mixprec_inverse_scale(3));
    DO(flag = mixprec_found_inf(2));
    DO(rate = mixprec_gradient_norm(2, factor));
    DO(factor = mixprec_clip_coefficient(rate, 1));
    DO(rate = mixprec_warmup_cosine(1e-3, 1e-5, 10, 1000, 333));
    (void)flag, (void)factor, (void)rate;
}

static void policies(void) {
    static const char *const texts[] = {"params=float32,compute=bfloat16,output=float32", "O2", "mixed_bfloat16",
                                        "fp8_hybrid", "p=f32,c=bf16,g=e5m2"};
    static mixprec_policy policy;
    char text[64];
    size_t i;
    for (i = 0; i < sizeof texts / sizeof *texts; i++) {
        ABOUT("%s", texts[i]);
        OK(mixprec_policy_parse(&policy, texts[i]));
        OK(mixprec_policy_print(text, sizeof text, &policy));
        CALL(MIXPREC_AUTOCAST_F32, mixprec_autocast_of("softmax"));
        CALL(MIXPREC_AUTOCAST_UNLISTED, mixprec_autocast_of("no_such_operation"));
        DO(mixprec_policy_operation(&policy, "linear", MIXPREC_F32));
        DO(mixprec_policy_operation(&policy, "grid_sampler", MIXPREC_F16));
    }
}

/* The callbacks, which are the caller's, go to a buffer: their frames are counted. */
static void checkpoints(void) {
    static mixprec_checkpoint_item items[4], scaler_alone[1];
    static uint64_t counters[3];
    static mixprec_scaler scaler;
    static mixprec_delayed_scaling delayed;
    static mixprec_buffer buffer;
    float history[8];
    int x;
    mixprec_scaler_init(&scaler);
    mixprec_delayed_scaling_init(&delayed, MIXPREC_E4M3, history, 8);
    items[0].name = "weights", items[0].n = 5001;
    items[1].name = "counters", items[1].kind = MIXPREC_CHECKPOINT_U64, items[1].data = counters, items[1].n = 3;
    items[2].name = "scaler", items[2].kind = MIXPREC_CHECKPOINT_SCALER, items[2].data = &scaler, items[2].n = 1;
    items[3].name = "delayed", items[3].kind = MIXPREC_CHECKPOINT_DELAYED_SCALING, items[3].data = &delayed;
    items[3].n = 1;
    scaler_alone[0] = items[2];
    buffer.bytes = more[3].bytes, buffer.size = sizeof more[3];
    for (x = 1; x < MIXPREC_DTYPE_COUNT; x++) {
        items[0].dtype = (mixprec_dtype)x, items[0].data = more[0].bytes;
        ABOUT("%s", name_of(items[0].dtype));
        CALL(1, mixprec_checkpoint_size(items, 4) > 0);
        OK((buffer.used = 0, mixprec_checkpoint_save(items, 4, mixprec_buffer_write, &buffer)));
        OK(mixprec_checkpoint_load(items, 4, mixprec_buffer_read, &buffer));
        CALL(MIXPREC_ERR_MISMATCH, mixprec_checkpoint_load(scaler_alone, 1, mixprec_buffer_read, &buffer));
    }
}

static void in_turn(void *context, size_t tasks, void (*task)(void *data, size_t index), void *data) {
    size_t i;
    (void)context;
    for (i = 0; i < tasks; i++)
        task(data, i);
}

/* One product in many ways: `given` is whether it gets a workspace. */
static void product(mixprec_gemm_desc *d, int given) {
    size_t best, least;
    call_limit = family_limit - PRODUCTS + PRODUCTS_BY(d->isa);
    OK(mixprec_gemm_workspace(d, &best, &least));
    d->workspace = NULL, d->workspace_size = 0;
    if (given) {
        if (best > sizeof space)
            best = sizeof space;
        d->workspace = space, d->workspace_size = best;
        OK(mixprec_gemm_ex(d));
        d->workspace_size = least;
    }
    OK(mixprec_gemm_ex(d));
    call_limit = family_limit;
}
static void products(int given) {
    /* one tile, several, edges; few rows or columns; more than a chunk of k */
    static const size_t shapes[][3] = {{1, 1, 1},    {1, 64, 64},  {1, 200, 600}, {2, 64, 64},
                                       {4, 65, 130}, {7, 33, 520}, {16, 16, 16},  {17, 33, 65},
                                       {64, 64, 64}, {65, 3, 100}, {100, 1, 70},  {40, 72, 600}};
    const double alpha = 1.5, beta = 0.5;
    mixprec_gemm_desc d;
    int path, x, y, z, shape, variant;
    for (shape = 0; shape < (int)(sizeof shapes / sizeof *shapes); shape++)
        for (x = 0; x < TYPES; x++)
            for (y = 0; y < TYPES; y++)
                for (path = 0; path < path_count; path++)
                    for (variant = 0; variant < 16; variant++) {
                        const size_t m = shapes[shape][0], n = shapes[shape][1], k = shapes[shape][2];
                        if ((shape + x + 5 * y + 3 * variant) % (test_quick ? 24 : 5))
                            continue;
                        z = (x + y + variant) % TYPES;
                        memset(&d, 0, sizeof d);
                        d.trans_a = (mixprec_transpose)(variant & 1), d.trans_b = (mixprec_transpose)(variant >> 1 & 1);
                        d.m = m, d.n = n, d.k = k;
                        d.a = plain.bytes, d.a_type = types[x], d.b = plain.bytes, d.b_type = types[y];
                        d.c = out.bytes, d.c_type = types[z], d.isa = paths[path];
                        if (variant & 4)
                            d.alpha = &alpha, d.beta = &beta, d.bias = plain.bytes, d.bias_type = types[z];
                        if (variant & 4 && types[z] != MIXPREC_F64 && types[x] != MIXPREC_F64)
                            d.activation = (mixprec_activation)(1 + (x + variant) % 5);
                        if (variant & 8) {
                            d.scale_a.values = d.scale_b.values = positive;
                            d.scale_a.block_rows = 1;
                            d.scale_a.block_columns = variant & 1 ? 0 : 32, d.scale_b.block_rows = variant & 4 ? 16 : 0;
                            d.round = MIXPREC_ROUND_STOCHASTIC;
                        }
                        d.native = (x + y + shape) % 2;
                        if (m > 16 && variant % 4 == 3)
                            d.parallel_for = in_turn, d.threads = 3;
                        if (m == n)
                            d.triangle = (mixprec_triangle)(variant % 3);
                        if (variant == 5)
                            d.batch = 2;
                        ABOUT("%lu x %lu x %lu, %s x %s to %s, %s, variant %d", (unsigned long)m, (unsigned long)n,
                              (unsigned long)k, name_of(types[x]), name_of(types[y]), name_of(types[z]),
                              mixprec_isa_name(paths[path]), variant);
                        product(&d, given);
                        if (!given && paths[path] == mixprec_isa_best() && !(variant & 12))
                            OK(mixprec_gemm(d.trans_a, d.trans_b, m, n, k, 1, d.a, d.a_type, variant & 1 ? m : k, d.b,
                                            d.b_type, variant & 2 ? k : n, 0.5f, d.c, d.c_type, n));
                    }
}

/* Few rows, and a B whose rows run along a long k: AVX-512 turns strips of it. One number is too small for pairs. */
static void strips(unsigned char *b) {
    mixprec_gemm_desc d;
    int x;
    memset(b, 0x38, 512 * 2048 * sizeof(double));
    b[10] = 1, b[11] = 0;
    for (x = 0; x < TYPES; x++)
        for (memset(&d, 0, sizeof d), d.m = 1; d.m <= 4; d.m *= 2) {
            d.n = 512, d.k = 2048, d.trans_b = MIXPREC_TRANS;
            d.a = plain.bytes, d.b = b, d.a_type = d.b_type = types[x];
            d.c = out.bytes, d.c_type = types[x] == MIXPREC_F64 ? MIXPREC_F64 : MIXPREC_F32;
            ABOUT("%lu x 512 x 2048, %s", (unsigned long)d.m, name_of(types[x]));
            product(&d, 1);
        }
}

/* B packed, and multiplied so, with a workspace. */
static void packed(void) {
    static const size_t rows[] = {1, 3, 40};
    mixprec_gemm_desc d;
    size_t size, best;
    int path, x, y, variant;
    for (x = 0; x < TYPES; x++)
        for (y = 0; y < TYPES; y++)
            for (path = 0; path < path_count; path++)
                for (variant = 0; variant < 6; variant++) {
                    if ((types[x] == MIXPREC_F64) != (types[y] == MIXPREC_F64))
                        continue;
                    memset(&d, 0, sizeof d);
                    d.m = rows[variant / 2], d.n = 50, d.k = 600, d.trans_b = (mixprec_transpose)(variant & 1);
                    d.a = plain.bytes, d.a_type = types[x], d.b = plain.bytes, d.b_type = types[y];
                    d.c = out.bytes, d.c_type = MIXPREC_F32, d.isa = paths[path];
                    ABOUT("%lu x %s x %s, %s", (unsigned long)d.m, name_of(types[x]), name_of(types[y]),
                          mixprec_isa_name(paths[path]));
                    OK(mixprec_gemm_pack_b_size(&d, &size));
                    OK(mixprec_gemm_pack_b(&d, more[0].bytes, size));
                    d.b = more[0].bytes, d.packed_size = size;
                    OK(mixprec_gemm_workspace(&d, &best, NULL));
                    d.workspace = space, d.workspace_size = sizeof space;
                    OK(mixprec_gemm_ex(&d));
                }
    DO(mixprec_native_available(MIXPREC_BF16, MIXPREC_BF16));
}

/* Softmax of rows, and norms of rows and channels: those whose blocks wait on the stack. */
#define P plain.bytes
static void softmax_and_norms(void) {
    static const size_t columns[] = {1, 5, 100, 1000, 3000};
    int x, y, c, wildly;
    for (x = 0; x < TYPES - 1; x++)
        for (y = 0; y < TYPES - 1; y++)
            for (c = 0; c < 5; c++)
                for (wildly = 0; wildly < 2; wildly++) {
                    const mixprec_dtype s = types[x], t = types[y];
                    const size_t n = columns[c], rows = 5;
                    const unsigned char *in = wildly ? wild.bytes : plain.bytes;
                    float *const sums = more[0].floats, *const kept = more[1].floats;
                    ABOUT("%s, %s, %lu columns", name_of(s), name_of(t), (unsigned long)n);
                    OK(mixprec_softmax(out.bytes, t, in, s, rows, n));
                    OK(mixprec_log_softmax(out.bytes, t, in, s, rows, n));
                    OK(mixprec_softmax_backward(out.bytes, t, in, s, P, t, rows, n));
                    if (n > 4) {
                        OK(mixprec_softmax_masked(out.bytes, t, in, s, indices, rows, n));
                        OK(mixprec_softmax_masked_backward(out.bytes, t, in, s, P, t, indices, rows, n));
                        OK(mixprec_cross_entropy(out.bytes, t, sums, in, s, indices, rows, n, 0.5));
                    }
                    OK(mixprec_layer_norm(out.bytes, t, sums, kept, in, s, P, P, t, rows, n, 1e-5));
                    OK(mixprec_layer_norm_backward(out.bytes, t, sums, kept, in, s, in, t, P, s, ones, positive, rows,
                                                   n));
                    OK(mixprec_rms_norm(out.bytes, t, kept, in, s, P, t, rows, n, 1e-5));
                    OK(mixprec_rms_norm_backward(out.bytes, t, sums, in, s, in, t, P, s, positive, rows, n));
                    /* rows as samples, and columns as channels of one or more pixels */
                    OK(mixprec_batch_norm(out.bytes, t, sums, kept, in, s, P, P, t, more[2].floats, more[3].floats, 0.1,
                                          rows, n, 1, 1e-5));
                    OK(mixprec_batch_norm(out.bytes, t, sums, kept, in, s, NULL, NULL, t, NULL, NULL, 0.1, rows, 3,
                                          n + 2, 1e-5));
                    OK(mixprec_batch_norm_inference(out.bytes, t, in, s, P, P, t, ones, positive, rows, n, 1, 1e-5));
                    OK(mixprec_batch_norm_inference(out.bytes, t, in, s, P, P, t, ones, positive, rows, 3, n, 1e-5));
                    OK(mixprec_batch_norm_backward(out.bytes, t, sums, kept, in, s, in, t, P, s, ones, positive, rows,
                                                   n, 1));
                    OK(mixprec_batch_norm_backward(out.bytes, t, sums, kept, in, s, in, t, P, s, ones, positive, rows,
                                                   3, n));
                }
}

static void other_layers(void) {
    int x, y, activation;
    for (x = 0; x < TYPES - 1; x++)
        for (y = 0; y < TYPES - 1; y++) {
            const mixprec_dtype s = types[x], t = types[y];
            ABOUT("%s, %s", name_of(s), name_of(t));
            for (activation = 0; activation <= MIXPREC_ACTIVATION_TANH; activation++) {
                OK(mixprec_activate(out.bytes, t, wild.bytes, s, 3001, (mixprec_activation)activation));
                OK(mixprec_activate_backward(out.bytes, t, P, s, wild.bytes, t, 3001, (mixprec_activation)activation));
            }
            OK(mixprec_bias_add(out.bytes, t, P, s, P, t, 7, 300));
            OK(mixprec_bias_gradient(more[0].floats, P, s, 7, 300, 0));
            OK(mixprec_embedding(out.bytes, t, P, s, indices, 9, 5, 300));
            OK(mixprec_embedding_gradient(more[0].floats, P, s, indices, 9, 5, 300));
            OK(mixprec_dropout(out.bytes, t, P, s, 3001, 0.25f, 3, 0));
        }
}

static void convolution(void) {
    static const mixprec_conv2d shapes[] = {{2, 3, 11, 11, 4, 3, 3, 0, 0, 0, 0, 1, 1},
                                            {1, 16, 9, 13, 20, 1, 1, 0, 0, 0, 0, 0, 0},
                                            {3, 4, 20, 20, 5, 5, 3, 2, 2, 1, 2, 2, 1}};
    size_t size, height, width;
    int x, y, i;
    for (i = 0; i < 3; i++)
        for (x = 0; x < TYPES - 1; x++)
            for (y = 0; y < TYPES - 1; y++) {
                const mixprec_conv2d *l = &shapes[i];
                const mixprec_dtype s = types[x], t = types[y];
                ABOUT("%s, %s, shape %d", name_of(s), name_of(t), i);
                OK(mixprec_conv2d_output(l, &height, &width));
                OK(mixprec_conv2d_workspace(l, &size));
                OK(mixprec_conv2d_forward(l, out.bytes, t, P, s, P, t, x ? P : NULL, s, space, size));
                OK(mixprec_conv2d_backward_input(l, out.bytes, t, P, s, P, t, space, size));
                OK(mixprec_conv2d_backward_weight(l, more[0].floats, more[1].floats, P, s, P, t, space, size));
            }
}

/* The rest: properties, which are the first to look at the CPU. */
static void properties(void) {
    mixprec_format_info info;
    int x;
    DO(mixprec_isa_best());
    DO(mixprec_isa_available(MIXPREC_ISA_AVX2));
    for (x = 1; x < MIXPREC_DTYPE_COUNT; x++) {
        OK(mixprec_format((mixprec_dtype)x, &info));
        DO(mixprec_dtype_bytes((mixprec_dtype)x, 77));
        DO(mixprec_dtype_name((mixprec_dtype)x));
    }
    DO(mixprec_status_string(MIXPREC_OK));
}

static void measure(const char *name, size_t most, void (*calls)(void)) {
    if (family(name, most)) {
        calls();
        family_end();
    }
}

static void *all_families(void *unused) {
    unsigned char *from, *to;
    (void)unused;
    measure("stack: properties", MOST(1, 1, 1), properties);
    make_inputs();
    measure("stack: conversions", MOST(14, 9, 4), conversions);
    measure("stack: statistics", MOST(20, 13, 8), statistics);
    measure("stack: reductions", MOST(5, 3, 3), reductions);
    measure("stack: quantisation", MOST(14, 9, 4), quantisation);
    measure("stack: loss scaling", MOST(6, 2, 2), scaling);
    measure("stack: optimisers", MOST(14, 9, 4), optimisers);
    measure("stack: policies", MOST(1, 1, 1), policies);
    measure("stack: checkpoints", MOST(10, 4, 4), checkpoints);
    if (family("stack: products, workspace given", PRODUCTS)) {
        products(1);
        if (mixprec_isa_available(MIXPREC_ISA_AVX512)) { /* as AMD's CPUs do by themselves */
            library_multiply_pairs(), products(1);
            library_hide_units(0);
        }
        family_end();
    }
    if (family("stack: products, no workspace", PRODUCTS + UNALLOCATED))
        products(0), family_end();
    measure("stack: packed matrices", PRODUCTS, packed);
    measure("stack: softmax and norms", MOST(26, 12, 8), softmax_and_norms);
    measure("stack: other layers", MOST(14, 9, 5), other_layers);
    measure("stack: convolution", PRODUCTS, convolution);
    if ((from = malloc(512 * 2048 * sizeof(double))) != NULL) {
        if (family("stack: products, few rows and a long k", PRODUCTS)) {
            strips(from);
            if (mixprec_isa_available(MIXPREC_ISA_AVX512)) {
                library_multiply_pairs(), strips(from);
                library_hide_units(0);
            }
            family_end();
        }
        free(from);
    }
    if (!mixprec_isa_available(MIXPREC_ISA_AVX2))
        test_skip("stack: more than the caches hold", "written around them only with AVX2");
    else if ((from = calloc(2, LARGE)) != NULL && (to = calloc(2, LARGE)) != NULL) {
        library_write_around();
        if (family("stack: more than the caches hold", MOST(14, 9, 4)))
            large_conversions(from, to), large_quantisation(from, to), family_end();
        library_hide_units(0);
        free(from), free(to);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_attr_t attributes;
    pthread_t thread;
    test_init(argc, argv);
    if (pthread_attr_init(&attributes) || pthread_attr_setstack(&attributes, stack, STACK) ||
        pthread_create(&thread, &attributes, all_families, NULL) || pthread_join(thread, NULL)) {
        printf("FAIL  stack: no thread with a stack of the caller's\n");
        return 2;
    }
    return test_summary();
}
#endif
