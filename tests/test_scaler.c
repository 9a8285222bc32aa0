/* Tests of the loss scaler: mixprec_scaler_init, _init_static, _check, _scale, _unscale, _unscale_ex, _update.

       cc -O2 -std=gnu11 tests/test_scaler.c -lm && ./a.out [--quick] [--filter TEXT]

   The scales are compared with traces of other implementations (golden_scaler.h) and with the documented arithmetic;
   the unscaled gradients with one multiplication in fp32 for each element, found_inf with isfinite in double. */
#include <float.h>
#include <math.h>
#include <stdint.h>

#include "golden_scaler.h"
#include "test.h"
#include "library.h"
#include "codes.h"
#include "environment.h"

/* ---- helpers ---- */

static uint64_t random_state;

static uint32_t random_u32(void) { /* an LCG modulo 2^64, upper half */
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}

static const mixprec_dtype all_dtypes[] = {MIXPREC_F32,  MIXPREC_F64,  MIXPREC_F16,
                                           MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
#define DTYPE_COUNT 6
static const mixprec_isa all_isas[] = {MIXPREC_ISA_AUTO, MIXPREC_ISA_C, MIXPREC_ISA_AVX2, MIXPREC_ISA_AVX512,
                                       MIXPREC_ISA_NEON};
#define ISA_COUNT 5

static mixprec_scaler make_scaler(float scale, int interval, int hysteresis) {
    mixprec_scaler s;
    mixprec_scaler_init(&s);
    s.scale = scale;
    s.growth_interval = interval;
    s.hysteresis = hysteresis;
    return s;
}

/* A step with gradients that overflowed, or not; what mixprec_scaler_update returns. */
static int take_step(mixprec_scaler *s, int overflow) {
    float grads[3] = {1, 0, -2}, out[3];
    if (overflow)
        grads[random_u32() % 3] = random_u32() % 2 ? HUGE_VALF : NAN;
    mixprec_scaler_unscale(s, out, grads, MIXPREC_F32, 3);
    return mixprec_scaler_update(s);
}

static int is_normal_positive(float x) {
    return float_bits(x) >= 0x00800000u && float_bits(x) < 0x7F800000u;
}

/* ---- the scale from step to step ---- */

static void check_trace(mixprec_scaler s, const char *overflows, const float *want) {
    int i;
    for (i = 0; overflows[i]; i++) {
        int overflow = overflows[i] == '1', took = take_step(&s, overflow);
        CHECK(s.scale == want[i] && took == !overflow, "%s: step %d: scale %g, want %g; update returned %d", overflows,
              i, (double)s.scale, (double)want[i], took);
    }
}

static void test_traces(void) {
    static const float plain[] = {65536, 65536, 131072, 65536, 65536, 65536, 131072, 131072, 65536,
                                  32768, 32768, 32768,  65536, 65536, 65536, 131072, 131072};
    static const float patient[] = {1024, 1024, 512,  256,  256, 256, 512, 512, 512,
                                    512,  1024, 1024, 1024, 512, 256, 256, 256, 512};
    check_trace(make_scaler(65536, 3, 1), "00010000110000000", plain);
    check_trace(make_scaler(1024, 3, 2), "101100010000111000", patient);
}

static void test_golden_traces(void) {
    size_t t;
    for (t = 0; t < sizeof golden_traces / sizeof *golden_traces; t++) {
        const golden_trace *trace = &golden_traces[t];
        mixprec_scaler s = make_scaler(trace->scale, trace->interval, trace->hysteresis);
        int step = 0, i;
        s.min_scale = trace->min_scale;
        s.max_scale = trace->max_scale;
        CHECK(mixprec_scaler_check(&s) == MIXPREC_OK, "%s: the fields do not make sense", trace->name);
        for (i = 0; i < trace->count; i++) {
            const golden_step *want = &trace->steps[i];
            for (; step < want->step; step++)
                take_step(&s, 0);
            take_step(&s, want->overflow);
            step++;
            CHECK(float_bits(s.scale) == want->scale_bits, "%s: step %d: scale %a, want %a", trace->name, want->step,
                  (double)s.scale, (double)float_from_bits(want->scale_bits));
        }
    }
}

static void test_defaults(void) {
    mixprec_scaler s;
    memset(&s, 0xFF, sizeof s);
    mixprec_scaler_init(&s);
    CHECK(s.scale == 65536 && s.min_scale == 0x1p-14f && s.max_scale == 0x1p24f && s.growth_interval == 2000 &&
              s.growth_factor == 2 && s.backoff_factor == 0.5 && s.hysteresis == 1 && s.growth_tracker == 0 &&
              s.hysteresis_used == 0 && s.found_inf == 0,
          "not the documented defaults");
    CHECK(mixprec_scaler_check(&s) == MIXPREC_OK, "the defaults do not pass the check");
    CHECK(mixprec_scaler_scale(&s, 1.5f) == 1.5f * 65536, "scale(1.5): got %g", (double)mixprec_scaler_scale(&s, 1.5f));
}

static void test_limits(void) {
    static const struct {
        float scale;
        double factor;
        float max_scale, want;
    } growths[] = {{0x1p23f, 2, 0x1p24f, 0x1p24f},
                   {0x1p24f, 2, 0x1p24f, 0x1p24f},
                   {6e6f, 3, 0x1p24f, 6e6f},
                   {0x1p127f, 2, FLT_MAX, 0x1p127f},
                   {FLT_MAX, 1.5, FLT_MAX, FLT_MAX},
                   {1, 1e300, FLT_MAX, 1},
                   {5, 3, 15, 15},
                   {5, 3, 14.999999f, 5},
                   {5, 3, 0, 15}, /* no limit */
                   {5, 3, NAN, 15}};
    static const float bad_minima[] = {0, 1e-40f, -1, HUGE_VALF, NAN};
    static const double backoffs[] = {0.5, 0.1, 0.999, 1e-30, 1e-300};
    size_t i, j;
    int step;
    for (i = 0; i < sizeof growths / sizeof *growths; i++) {
        mixprec_scaler s = make_scaler(growths[i].scale, 3, 2);
        s.growth_factor = growths[i].factor;
        s.max_scale = growths[i].max_scale;
        take_step(&s, 1);
        CHECK(s.hysteresis_used == 1, "hysteresis_used is %d", (int)s.hysteresis_used);
        for (step = 0; step < 3; step++)
            CHECK(take_step(&s, 0) == 1, "growth case %zu: a step was skipped", i);
        CHECK(s.scale == growths[i].want, "growth case %zu: got %g, want %g", i, (double)s.scale,
              (double)growths[i].want);
        CHECK(s.growth_tracker == 0 && s.hysteresis_used == 0, "growth case %zu: trackers %d %d", i,
              (int)s.growth_tracker, (int)s.hysteresis_used);
    }
    { /* whatever the fields were, the scale is within the limits afterwards */
        static const struct {
            float scale, min_scale, max_scale, want;
        } odd[] = {{0x1p20f, 1, 1000, 1000}, {NAN, 1, 1000, 1}, {-5, 1, 1000, 1},
                   {HUGE_VALF, 1, 1000, 1},  {0, 1, 1000, 1},   {5, 10, 2, 10},
                   {20, 10, 2, 10},          {5, NAN, 2, 2},    {1e-40f, NAN, NAN, FLT_MIN}};
        for (i = 0; i < 2 * sizeof odd / sizeof *odd; i++) {
            mixprec_scaler s;
            mixprec_scaler_init(&s);
            s.scale = odd[i / 2].scale;
            s.min_scale = odd[i / 2].min_scale;
            s.max_scale = odd[i / 2].max_scale;
            s.found_inf = i % 2;
            mixprec_scaler_update(&s);
            CHECK(s.scale == odd[i / 2].want, "scale %g in [%g, %g]: %g", (double)odd[i / 2].scale,
                  (double)odd[i / 2].min_scale, (double)odd[i / 2].max_scale, (double)s.scale);
        }
    }
    {
        mixprec_scaler s = make_scaler(1, 2000, 1);
        s.min_scale = 0.3f;
        take_step(&s, 1);
        CHECK(s.scale == 0.5f, "got %g", (double)s.scale);
        take_step(&s, 1);
        CHECK(s.scale == 0.3f, "min_scale: got %g", (double)s.scale);
    }
    for (i = 0; i < sizeof backoffs / sizeof *backoffs; i++)
        for (j = 0; j <= sizeof bad_minima / sizeof *bad_minima; j++) {
            mixprec_scaler s = make_scaler(65536, 2000, 1);
            s.backoff_factor = backoffs[i];
            if (j)
                s.min_scale = bad_minima[j - 1];
            for (step = 0; step < 10000; step++) {
                take_step(&s, 1);
                if (!is_normal_positive(s.scale) || (j == 0 && s.scale < s.min_scale)) {
                    CHECK(0, "backoff %g, min_scale %g: scale %g after %d overflows", backoffs[i], (double)s.min_scale,
                          (double)s.scale, step + 1);
                    break;
                }
            }
            if (backoffs[i] < 0.9)
                CHECK(s.scale == (j ? FLT_MIN : 0x1p-14f), "backoff %g, min_scale %g: the scale settles at %g",
                      backoffs[i], (double)s.min_scale, (double)s.scale);
            CHECK(s.growth_tracker == 0, "growth_tracker %d", (int)s.growth_tracker);
        }
}

/* The documented rule, on scales that are no powers of two: the product in double, one rounding to float. */
static void test_odd_factors(void) {
    static const double factors[][2] = {{3.3, 0.1}, {1.0001, 0.9}, {2, 0.5}, {1 + 1e-12, 0.7}, {1e6, 1e-6}};
    long step, differs_from_float = 0;
    size_t i;
    random_state = 1;
    for (i = 0; i < sizeof factors / sizeof *factors; i++) {
        mixprec_scaler s = make_scaler(12345.678f, 4, 3);
        s.growth_factor = factors[i][0];
        s.backoff_factor = factors[i][1];
        for (step = 0; step < 20000; step++) {
            float before = s.scale, want = before;
            int overflow = random_u32() % 4 == 0;
            int grows = !overflow && s.growth_tracker + 1 >= 4, falls = overflow && s.hysteresis_used + 1 >= 3;
            if (falls) {
                volatile double product = (double)before * factors[i][1];
                volatile float single = before * (float)factors[i][1];
                want = (float)product > 0x1p-14f ? (float)product : 0x1p-14f;
                differs_from_float += single != (float)product;
            }
            if (grows) {
                volatile double product = (double)before * factors[i][0];
                if ((float)product <= 0x1p24f)
                    want = (float)product;
            }
            take_step(&s, overflow);
            CHECK(s.scale == want, "factors %g %g, step %ld: %a became %a, want %a", factors[i][0], factors[i][1], step,
                  (double)before, (double)s.scale, (double)want);
            if (random_u32() % 64 == 0)
                s.scale = 0x1p-14f + (float)(random_u32() >> 8);
        }
    }
    CHECK(differs_from_float > 100, "the data cannot tell double from float arithmetic");
}

static void test_interval_changes(void) {
    mixprec_scaler s = make_scaler(1024, 2000, 1);
    int i;
    for (i = 0; i < 50; i++)
        take_step(&s, 0);
    CHECK(s.scale == 1024 && s.growth_tracker == 50, "scale %g, tracker %d", (double)s.scale, (int)s.growth_tracker);
    s.growth_interval = 10;
    take_step(&s, 0);
    CHECK(s.scale == 2048 && s.growth_tracker == 0, "lowered: scale %g, tracker %d", (double)s.scale,
          (int)s.growth_tracker);
    s.growth_tracker = INT32_MAX;
    CHECK(mixprec_scaler_check(&s) == MIXPREC_OK, "the largest tracker is a valid one");
    take_step(&s, 0);
    CHECK(s.scale == 4096 && s.growth_tracker == 0, "largest tracker: scale %g, tracker %d", (double)s.scale,
          (int)s.growth_tracker);
    s.hysteresis = 3;
    take_step(&s, 1);
    take_step(&s, 1);
    CHECK(s.scale == 4096, "hysteresis 3: scale %g after 2 overflows", (double)s.scale);
    s.hysteresis = 2;
    take_step(&s, 1);
    CHECK(s.scale == 2048, "hysteresis lowered: scale %g", (double)s.scale);
}

static void test_static_scale(void) {
    static const float scales[] = {1024, 1, 3.7f, FLT_MIN, FLT_MAX};
    const float bad_scales[] = {0, -0.0f, -1, HUGE_VALF, -HUGE_VALF, NAN, 1e-40f};
    mixprec_scaler s, before;
    size_t i;
    int step;
    for (i = 0; i < 5; i++) {
        CHECK(mixprec_scaler_init_static(&s, scales[i]) == MIXPREC_OK, "scale %g was refused", (double)scales[i]);
        CHECK(mixprec_scaler_check(&s) == MIXPREC_OK, "scale %g: the fields do not make sense", (double)scales[i]);
        for (step = 0; step < 5000; step++) {
            int overflow = step % 2100 == 2050;
            CHECK(take_step(&s, overflow) == !overflow && s.scale == scales[i], "scale %g became %g", (double)scales[i],
                  (double)s.scale);
        }
    }
    mixprec_scaler_init(&s);
    before = s;
    for (i = 0; i < 7; i++) {
        CHECK(mixprec_scaler_init_static(&s, bad_scales[i]) == MIXPREC_ERR_SCALE, "scale %g", (double)bad_scales[i]);
        CHECK(!memcmp(&s, &before, sizeof s), "scale %g: the scaler changed", (double)bad_scales[i]);
    }
    CHECK(mixprec_scaler_init_static(NULL, 1) == MIXPREC_ERR_NULL, "NULL");
    mixprec_scaler_init(NULL);
    CHECK(mixprec_scaler_scale(NULL, 1.5f) == 1.5f && mixprec_scaler_update(NULL) == 0, "no scaler");
}

/* A copy and its bytes in a file are checkpoints: both go on exactly as the original does. */
static void test_checkpoint(void) {
    mixprec_scaler s = make_scaler(777, 5, 3), copy, loaded;
    unsigned char file[sizeof s];
    float grad = HUGE_VALF, out;
    int step, i;
    CHECK(sizeof s == 3 * sizeof(float) + 2 * sizeof(double) + 5 * sizeof(int32_t), "the structure has padding");
    random_state = 2;
    s.growth_factor = 1.7;
    for (step = 0; step < 200; step++) {
        if (random_u32() % 2) /* in the middle of a step: found_inf is part of the state */
            mixprec_scaler_unscale(&s, &out, &grad, MIXPREC_F32, 1);
        memcpy(file, &s, sizeof s);
        memcpy(&loaded, file, sizeof s);
        copy = s;
        for (i = 0; i < 20; i++) {
            int overflow = random_u32() % 5 == 0, took = take_step(&s, overflow);
            CHECK(take_step(&copy, overflow) == took && take_step(&loaded, overflow) == took, "another decision at %d",
                  i);
            CHECK(!memcmp(&s, &copy, sizeof s) && !memcmp(&s, &loaded, sizeof s), "another state at %d", i);
        }
    }
}

/* ---- unscaling ---- */

static double decode(uint64_t code, mixprec_dtype dtype) {
    double x;
    if (dtype != MIXPREC_F64)
        return mixprec_decode((uint32_t)code, dtype);
    memcpy(&x, &code, sizeof x);
    return x;
}

/* Bits of the format, finite; f64 within twice the exponents of f32, so that some round to 0 or Inf in fp32. */
static uint64_t random_finite_code(mixprec_dtype dtype) {
    for (;;) {
        uint64_t code = ((uint64_t)random_u32() << 32 | random_u32()) >> (64 - 8 * mixprec_dtype_size(dtype));
        double x = decode(code, dtype);
        if (isfinite(x) && (dtype != MIXPREC_F64 || (fabs(x) < 0x1p130 && fabs(x) > 0x1p-160)))
            return code;
    }
}

#define MAX_COUNT 2200
#define GUARD 64
typedef struct unscale_case {
    mixprec_dtype dtype;
    size_t n;
    float scale;
    unsigned char *grad; /* n codes, somewhere in grad_memory */
    unsigned char grad_memory[8 * MAX_COUNT + 2 * GUARD], grad_saved[8 * MAX_COUNT + 2 * GUARD];
    uint32_t want[MAX_COUNT]; /* bits of the results; 0x7FC00000 for any NaN */
    int want_found;
} unscale_case;
static unscale_case now;

/* The expected results of the gradients in now.grad. */
static void expect(void) {
    size_t i, size = mixprec_dtype_size(now.dtype);
    volatile float factor = (float)(1.0 / (double)now.scale);
    now.want_found = 0;
    for (i = 0; i < now.n; i++) {
        double grad = decode(load_code(now.grad + i * size, size), now.dtype);
        volatile float narrow = (float)grad;
        volatile float product = narrow * factor;
        now.want[i] = product != product ? 0x7FC00000u : float_bits(product);
        now.want_found |= !isfinite(grad) || !isfinite((double)product);
    }
    memcpy(now.grad_saved, now.grad_memory, sizeof now.grad_saved);
}

static void run_unscale(mixprec_isa isa, size_t dst_offset) {
    static unsigned char memory[4 * MAX_COUNT + 2 * GUARD + 64];
    mixprec_scaler s, before;
    float *dst = (float *)(void *)(memory + GUARD + 4 * dst_offset);
    size_t i;
    int found;
    mixprec_scaler_init(&s);
    s.scale = now.scale;
    before = s;
    memset(memory, 0xA5, sizeof memory);
    found = mixprec_scaler_unscale_ex(&s, dst, now.grad, now.dtype, now.n, isa);
    CHECK(found == now.want_found && s.found_inf == found, "%s %s n %zu: returned %d, kept %d, want %d",
          mixprec_dtype_name(now.dtype), mixprec_isa_name(isa), now.n, found, (int)s.found_inf, now.want_found);
    s.found_inf = 0;
    CHECK(!memcmp(&s, &before, sizeof s), "another field of the scaler changed");
    for (i = 0; i < now.n; i++) {
        uint32_t got = float_bits(dst[i]);
        if ((got & 0x7FFFFFFFu) > 0x7F800000u)
            got = 0x7FC00000u;
        if (got != now.want[i]) {
            size_t size = mixprec_dtype_size(now.dtype);
            CHECK(0, "%s %s n %zu scale %a: element %zu, %llx: got %08x, want %08x", mixprec_dtype_name(now.dtype),
                  mixprec_isa_name(isa), now.n, (double)now.scale, i,
                  (unsigned long long)load_code(now.grad + i * size, size), (unsigned)got, (unsigned)now.want[i]);
            break;
        }
    }
    for (i = 0; i < sizeof memory; i++)
        if (memory + i < (unsigned char *)dst || memory + i >= (unsigned char *)(dst + now.n))
            if (memory[i] != 0xA5) {
                CHECK(0, "%s %s n %zu: byte %ld beside dst changed", mixprec_dtype_name(now.dtype),
                      mixprec_isa_name(isa), now.n, (long)i - GUARD - 4 * (long)dst_offset);
                break;
            }
    CHECK(!memcmp(now.grad_saved, now.grad_memory, sizeof now.grad_saved), "%s %s n %zu: grad changed",
          mixprec_dtype_name(now.dtype), mixprec_isa_name(isa), now.n);
}

static void set_case(mixprec_dtype dtype, size_t n, float scale, size_t offset) {
    now.dtype = dtype;
    now.n = n;
    now.scale = scale;
    now.grad = now.grad_memory + GUARD + offset * mixprec_dtype_size(dtype);
}

static void fill_random(void) {
    size_t i, size = mixprec_dtype_size(now.dtype);
    for (i = 0; i < now.n; i++)
        store_code(now.grad + i * size, random_finite_code(now.dtype), size);
}

static const float test_scales[] = {65536, 1, 3, 0x1p-14f, 1000.1f, FLT_MAX, 0x1p127f, FLT_MIN, 0.1f};

static void test_unscale(void) {
    size_t n, t, i, q;
    random_state = 3;
    memset(now.grad_memory, 0xFF, sizeof now.grad_memory); /* NaN beside grad must not be seen */
    for (t = 0; t < DTYPE_COUNT; t++)
        for (n = 0; n < MAX_COUNT; n += n < 132 ? 1 : 37) {
            if (test_quick && n > 70 && n % 3)
                continue;
            for (q = 0; q < 3; q++) {
                size_t offset = random_u32() % 16;
                memset(now.grad_memory, 0xFF, sizeof now.grad_memory);
                set_case(all_dtypes[t], n, test_scales[random_u32() % 9], offset);
                fill_random();
                expect();
                for (i = 0; i < ISA_COUNT; i++)
                    if (runs_here(all_isas[i]))
                        run_unscale(all_isas[i], random_u32() % 16);
            }
        }
}

static void test_unscale_in_place(void) {
    size_t n, i;
    random_state = 4;
    for (n = 0; n < 132; n++)
        for (i = 0; i < ISA_COUNT; i++) {
            mixprec_scaler s;
            float *in_place;
            if (!runs_here(all_isas[i]))
                continue;
            memset(now.grad_memory, 0xFF, sizeof now.grad_memory);
            set_case(MIXPREC_F32, n, 3, n % 5);
            fill_random();
            expect();
            mixprec_scaler_init(&s);
            s.scale = 3;
            in_place = (float *)(void *)now.grad;
            CHECK(mixprec_scaler_unscale_ex(&s, in_place, in_place, MIXPREC_F32, n, all_isas[i]) == 0, "found_inf");
            CHECK(!memcmp(now.grad, now.want, 4 * n), "%s n %zu: in place: other values", mixprec_isa_name(all_isas[i]),
                  n);
            CHECK(!memcmp(now.grad_memory, now.grad_saved, (size_t)(now.grad - now.grad_memory)) &&
                      !memcmp(now.grad + 4 * n, now.grad_saved + (now.grad - now.grad_memory) + 4 * n, GUARD),
                  "%s n %zu: bytes beside it changed", mixprec_isa_name(all_isas[i]), n);
        }
}

/* More than the caches hold, which only AVX2 and AVX-512 write around them, in one call and in parts that they do hold.
   dst begins in the middle of a line; the first or the last gradient is Inf, or none is. */
static void test_unscale_large(mixprec_dtype type, mixprec_isa isa) {
    const size_t size = mixprec_dtype_size(type), n = ((size_t)64 << 20) / (4 + size) + 77, part = 65536 + 77;
    unsigned char *grad = malloc(n * size);
    float *got = malloc((n + 16) * sizeof *got), *want = malloc(part * sizeof *want);
    mixprec_scaler s = make_scaler(3, 1, 1);
    size_t i, wrong = 0;
    int found = 0;
    if (!grad || !got || !want) {
        CHECK(0, "no memory");
    } else {
        for (i = 0; i < n; i++)
            set_code(grad, type, i,
                     (type == MIXPREC_F32 ? 0x30000000u : 0x3000u) +
                         (uint32_t)(i % 4096) * (type == MIXPREC_F32 ? 999 : 1));
        memset(got, 0x77, (n + 16) * sizeof *got);
        CHECK(mixprec_scaler_unscale_ex(&s, got + 5, grad, type, n, isa) == 0, "found_inf");
        for (i = 0; i < n; i += part) {
            const size_t count = n - i < part ? n - i : part;
            found |= mixprec_scaler_unscale_ex(&s, want, grad + i * size, type, count, isa);
            wrong += memcmp(got + 5 + i, want, count * sizeof *want) != 0;
        }
        CHECK(!wrong && !found, "%s, %s: %zu parts are other than in the whole", mixprec_isa_name(isa),
              mixprec_dtype_name(type), wrong);
        CHECK(float_bits(got[4]) == 0x77777777 && float_bits(got[n + 5]) == 0x77777777, "values beside dst changed");
        for (i = 0; i < n; i += n - 1) {
            set_code(grad, type, i, type == MIXPREC_F32 ? 0x7F800000 : 0x7C00);
            CHECK(mixprec_scaler_unscale_ex(&s, got + 5, grad, type, n, isa) == 1, "found_inf not set");
            set_code(grad, type, i, 0);
        }
    }
    free(grad);
    free(got);
    free(want);
}
static void test_large(void) {
    size_t i;
    test_needs("AVX2 or AVX-512, which alone write around the caches");
    library_write_around();
    for (i = 0; i < ISA_COUNT; i++)
        if ((all_isas[i] == MIXPREC_ISA_AVX2 || all_isas[i] == MIXPREC_ISA_AVX512) && runs_here(all_isas[i])) {
            test_unscale_large(MIXPREC_F16, all_isas[i]);
            test_unscale_large(MIXPREC_F32, all_isas[i]);
        }
}

/* Every code of the narrow formats, and every kind of f32 and f64, one at a time at every position of a block. */
static void test_every_non_finite(void) {
    static const uint64_t f32_codes[] = {0x7F800000, 0xFF800000, 0x7F800001, 0xFF800001, 0x7FC00000,
                                         0x7FFFFFFF, 0xFFFFFFFF, 0x7F810000, 0x7FBFFFFF};
    static const uint64_t f64_codes[] = {0x7FF0000000000000u, 0xFFF0000000000000u, 0x7FF0000000000001u,
                                         0x7FF0000010000000u, 0xFFFFFFFFFFFFFFFFu, 0x7FF8000000000000u,
                                         0x47F0000000000000u /* 2^128 becomes Inf in fp32 */};
    size_t t, i, position;
    for (t = 0; t < DTYPE_COUNT; t++) {
        mixprec_dtype dtype = all_dtypes[t];
        size_t size = mixprec_dtype_size(dtype);
        uint64_t count = size == 8 ? 7 : size == 4 ? 9 : (uint64_t)1 << (8 * size), c;
        long non_finite = 0;
        unsigned char *grads = now.grad_memory + GUARD;
        float out[131];
        memset(now.grad_memory, 0, sizeof now.grad_memory);
        for (c = 0; c < count; c++) {
            uint64_t code = size == 8 ? f64_codes[c] : size == 4 ? f32_codes[c] : c;
            int finite = isfinite(decode(code, dtype)) && !(size == 8 && c == 6);
            non_finite += !finite;
            if (finite || (test_quick && size == 2 && c % 64 && c % 1024 != 1))
                continue;
            for (i = 0; i < ISA_COUNT; i++) {
                if (!runs_here(all_isas[i]))
                    continue;
                for (position = 0; position < 131; position++) {
                    mixprec_scaler s;
                    int found;
                    if (test_quick && position % 5)
                        continue;
                    mixprec_scaler_init(&s);
                    store_code(grads + position * size, code, size);
                    found = mixprec_scaler_unscale_ex(&s, out, grads, dtype, 131, all_isas[i]);
                    store_code(grads + position * size, 0, size);
                    CHECK(found == 1 && s.found_inf == 1 && mixprec_scaler_update(&s) == 0,
                          "%s %s: %llx at %zu: returned %d, kept %d", mixprec_dtype_name(dtype),
                          mixprec_isa_name(all_isas[i]), (unsigned long long)code, position, found, (int)s.found_inf);
                    CHECK(!isfinite((double)out[position]), "%s %s: %llx at %zu became %g", mixprec_dtype_name(dtype),
                          mixprec_isa_name(all_isas[i]), (unsigned long long)code, position, (double)out[position]);
                }
            }
        }
        CHECK(non_finite == (dtype == MIXPREC_F32    ? 9
                             : dtype == MIXPREC_F64  ? 7
                             : dtype == MIXPREC_F16  ? 2048
                             : dtype == MIXPREC_BF16 ? 256
                             : dtype == MIXPREC_E4M3 ? 2
                                                     : 8),
              "%s has %ld codes that are not finite", mixprec_dtype_name(dtype), non_finite);
    }
}

/* Every finite code of the narrow formats gives the right value and no found_inf. */
static void test_every_finite(void) {
    size_t t, i;
    for (t = 2; t < DTYPE_COUNT; t++) {
        size_t size = mixprec_dtype_size(all_dtypes[t]);
        uint64_t count = (uint64_t)1 << (8 * size), c;
        set_case(all_dtypes[t], 0, 65536, t % 3);
        memset(now.grad_memory, 0xFF, sizeof now.grad_memory);
        for (c = 0; c < count; c++) {
            if (isfinite(decode(c, all_dtypes[t])))
                store_code(now.grad + now.n++ * size, c, size);
            if (now.n < 256 && c + 1 < count)
                continue;
            expect();
            CHECK(now.want_found == 0, "the data has a non-finite value");
            for (i = 0; i < ISA_COUNT; i++)
                if (runs_here(all_isas[i]))
                    run_unscale(all_isas[i], 0);
            now.n = 0;
        }
    }
}

/* Finite gradients that a scale below 1 turns into Inf. */
static void test_inf_by_unscaling(void) {
    static const struct {
        mixprec_dtype dtype;
        uint64_t code;
        float scale;
        int found;
    } cases[] = {{MIXPREC_F32, 0x7F7FFFFF, 0.5f, 1},
                 {MIXPREC_F32, 0xFF7FFFFF, 0.5f, 1},
                 {MIXPREC_F32, 0x7EFFFFFF, 0.5f, 0},
                 {MIXPREC_F16, 0x7BFF, FLT_MIN, 1},
                 {MIXPREC_F16, 0x4400, FLT_MIN, 1},
                 {MIXPREC_F16, 0x43FF, FLT_MIN, 0},
                 {MIXPREC_BF16, 0x7F7F, 0.9f, 1},
                 {MIXPREC_BF16, 0x7F00, 0.9f, 0},
                 {MIXPREC_E4M3, 0x7E, FLT_MIN, 1},
                 {MIXPREC_E5M2, 0xFB, FLT_MIN, 1},
                 {MIXPREC_F64, 0x47E0000000000000u, 0.5f, 1},
                 {MIXPREC_E4M3, 0x7F, 65536, 1},
                 {MIXPREC_E4M3, 0xFF, 65536, 1},
                 {MIXPREC_E4M3, 0x7E, 65536, 0}};
    size_t q, i, position;
    for (q = 0; q < sizeof cases / sizeof *cases; q++)
        for (position = 0; position < 131; position += 13) {
            size_t size = mixprec_dtype_size(cases[q].dtype);
            memset(now.grad_memory, 0, sizeof now.grad_memory);
            set_case(cases[q].dtype, 131, cases[q].scale, 1);
            store_code(now.grad + position * size, cases[q].code, size);
            expect();
            CHECK(now.want_found == cases[q].found, "case %zu: the table says %d", q, cases[q].found);
            for (i = 0; i < ISA_COUNT; i++)
                if (runs_here(all_isas[i]))
                    run_unscale(all_isas[i], 3);
        }
}

static void test_golden_unscale(void) {
    size_t i, q;
    for (q = 0; q < sizeof golden_unscale / sizeof *golden_unscale; q++)
        for (i = 0; i < ISA_COUNT; i++) {
            size_t n = q % 2 ? 1 : 67, e; /* alone, and in a vector */
            int is_nan = (golden_unscale[q].out_bits & 0x7FFFFFFFu) > 0x7F800000u;
            if (!runs_here(all_isas[i]))
                continue;
            memset(now.grad_memory, 0xFF, sizeof now.grad_memory);
            set_case(MIXPREC_F32, n, float_from_bits(golden_unscale[q].scale_bits), 0);
            for (e = 0; e < n; e++) {
                store_code(now.grad + 4 * e, golden_unscale[q].grad_bits, 4);
                now.want[e] = is_nan ? 0x7FC00000u : golden_unscale[q].out_bits;
            }
            now.want_found = golden_unscale[q].found_inf || (golden_unscale[q].out_bits & 0x7FFFFFFFu) == 0x7F800000u;
            memcpy(now.grad_saved, now.grad_memory, sizeof now.grad_saved);
            run_unscale(all_isas[i], 1);
        }
}

static void test_several_tensors(void) {
    static const float good[4] = {1, 2, 3, 4}, bad[4] = {1, NAN, 3, 4};
    mixprec_scaler s;
    float out[4];
    int first, second;
    mixprec_scaler_init(&s);
    CHECK(mixprec_scaler_unscale(&s, out, good, MIXPREC_F32, 4) == 0 && s.found_inf == 0, "good");
    CHECK(mixprec_scaler_unscale(&s, out, bad, MIXPREC_F32, 4) == 1 && s.found_inf == 1, "bad");
    CHECK(out[0] == 1 / 65536.0f && out[3] == 4 / 65536.0f, "all of dst is written");
    CHECK(mixprec_scaler_unscale(&s, out, good, MIXPREC_F32, 4) == 0, "the result is that of this tensor");
    CHECK(s.found_inf == 1, "found_inf was forgotten before the update");
    CHECK(mixprec_scaler_unscale(&s, out, good, MIXPREC_F32, 0) == 0 && s.found_inf == 1, "an empty tensor");
    CHECK(mixprec_scaler_update(&s) == 0 && s.found_inf == 0 && s.scale == 32768, "the update");
    CHECK(mixprec_scaler_update(&s) == 1 && s.scale == 32768, "the update after it");
    /* Two optimisers: each skips its own step, the scale sees both. */
    first = mixprec_scaler_unscale(&s, out, good, MIXPREC_F32, 4);
    first |= mixprec_scaler_unscale(&s, out, good, MIXPREC_F32, 2);
    second = mixprec_scaler_unscale(&s, out, good, MIXPREC_F32, 4);
    second |= mixprec_scaler_unscale(&s, out, bad, MIXPREC_F32, 4);
    CHECK(first == 0 && second == 1, "optimisers: %d %d", first, second);
    CHECK(mixprec_scaler_update(&s) == 0 && s.scale == 16384, "optimisers: scale %g", (double)s.scale);
}

/* ---- the caller's floating-point environment ---- */

#if HAVE_ENVIRONMENT
/* What compares and multiplies: no flag is raised, no trap taken, and the caller's modes do not act. */
static void test_environment_of_scale(void) {
    static const float fields[] = {NAN, HUGE_VALF, 1e-40f, FLT_MAX, -1, 0};
    static const float losses[] = {FLT_MAX, FLT_MIN / 4, 1.0f / 3, -1e-45f};
    const size_t count = sizeof fields / sizeof *fields;
    size_t e, i;
    for (e = 0; e < sizeof environments / sizeof *environments; e++)
        for (i = 0; i < count * count * count; i++) {
            environment before = get_environment(), after;
            mixprec_scaler s, odd;
            volatile float loss = losses[i % 4], scaled, want;
            mixprec_scaler_init(&s);
            want = mixprec_scaler_scale(&s, loss);
            odd = s;
            odd.scale = fields[i % count];
            odd.min_scale = fields[i / count % count];
            odd.max_scale = fields[i / count / count];
            odd.growth_factor = i % 2 ? (double)NAN : -1e-310;
            set_environment(environments[e]);
            (void)mixprec_scaler_check(&odd);
            scaled = mixprec_scaler_scale(&s, loss);
            (void)mixprec_scaler_update(&odd);
            after = get_environment();
            set_environment(before);
            CHECK(after == environments[e], "the environment was %llx and is %llx", (unsigned long long)environments[e],
                  (unsigned long long)after);
            CHECK(float_bits(scaled) == float_bits(want) && want == loss * s.scale, "%a scaled is %a", (double)loss,
                  (double)scaled);
        }
}

static void test_environment(void) {
    size_t t, e, i, q;
    random_state = 5;
    for (t = 0; t < DTYPE_COUNT; t++)
        for (q = 0; q < 9; q++) {
            memset(now.grad_memory, 0xFF, sizeof now.grad_memory);
            set_case(all_dtypes[t], 150, test_scales[q], q);
            fill_random();
            for (i = 0; i < 20 && mixprec_dtype_size(now.dtype) < 8; i++) /* subnormals */
                store_code(now.grad + i * mixprec_dtype_size(now.dtype), i % 4 + 1, mixprec_dtype_size(now.dtype));
            expect();
            for (i = 0; i < ISA_COUNT; i++)
                for (e = 0; e < sizeof environments / sizeof *environments; e++) {
                    float out[150];
                    mixprec_scaler s, rested;
                    environment before = get_environment(), after;
                    size_t j;
                    int found, wrong = 0;
                    if (!runs_here(all_isas[i]))
                        continue;
                    mixprec_scaler_init(&s);
                    s.scale = test_scales[q];
                    s.backoff_factor = 0.1;
                    s.growth_factor = 1.7;
                    s.growth_interval = 1;
                    s.max_scale = FLT_MAX;
                    s.min_scale = FLT_MIN;
                    rested = s;
                    set_environment(environments[e]);
                    found = mixprec_scaler_unscale_ex(&s, out, now.grad, now.dtype, now.n, all_isas[i]);
                    mixprec_scaler_update(&s);
                    after = get_environment();
                    set_environment(before);
                    CHECK(after == environments[e], "the environment was %llx and is %llx",
                          (unsigned long long)environments[e], (unsigned long long)after);
                    for (j = 0; j < now.n; j++)
                        wrong += float_bits(out[j]) != now.want[j];
                    CHECK(found == now.want_found && !wrong,
                          "%s %s scale %a environment %llx: %d elements wrong, found %d", mixprec_dtype_name(now.dtype),
                          mixprec_isa_name(all_isas[i]), (double)now.scale, (unsigned long long)environments[e], wrong,
                          found);
                    rested.found_inf = found;
                    mixprec_scaler_update(&rested);
                    CHECK(s.scale == rested.scale, "environment %llx: the scale became %a, want %a",
                          (unsigned long long)environments[e], (double)s.scale, (double)rested.scale);
                }
        }
}
#endif

/* ---- errors ---- */

static void test_statuses(void) {
    static const float bad_scales[] = {0, -0.0f, 1e-40f, -65536, HUGE_VALF, NAN};
    static float memory[300], saved[300];
    mixprec_scaler s, before;
    const void *grad = memory + 100;
    size_t i;
    for (i = 0; i < 300; i++)
        memory[i] = saved[i] = i % 2 ? NAN : 1;
    mixprec_scaler_init(&s);
    before = s;
#define REFUSED(call, status)                                                                                          \
    do {                                                                                                               \
        CHECK_STATUS(#call, call, -(int)(status));                                                                     \
        CHECK(!memcmp(&s, &before, sizeof s), "%s: the scaler changed", #call);                                        \
        CHECK(!memcmp(memory, saved, sizeof memory), "%s: dst or grad changed", #call);                                \
    } while (0)
    REFUSED(mixprec_scaler_unscale(NULL, memory, grad, MIXPREC_F32, 50), MIXPREC_ERR_NULL);
    REFUSED(mixprec_scaler_unscale(&s, NULL, grad, MIXPREC_F32, 50), MIXPREC_ERR_NULL);
    REFUSED(mixprec_scaler_unscale(&s, memory, NULL, MIXPREC_F32, 50), MIXPREC_ERR_NULL);
    REFUSED(mixprec_scaler_unscale(&s, memory, grad, MIXPREC_NONE, 50), MIXPREC_ERR_DTYPE);
    REFUSED(mixprec_scaler_unscale(&s, memory, grad, (mixprec_dtype)MIXPREC_DTYPE_COUNT, 50), MIXPREC_ERR_DTYPE);
    REFUSED(mixprec_scaler_unscale(&s, memory, grad, (mixprec_dtype)0xFFFFFFFFu, 50), MIXPREC_ERR_DTYPE);
    REFUSED(mixprec_scaler_unscale(&s, memory, grad, MIXPREC_F32, SIZE_MAX), MIXPREC_ERR_SIZE);
    REFUSED(mixprec_scaler_unscale(&s, memory, grad, MIXPREC_F16, SIZE_MAX / 4 + 1), MIXPREC_ERR_SIZE);
    REFUSED(mixprec_scaler_unscale(&s, memory + 51, grad, MIXPREC_F32, 50), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_scaler_unscale(&s, memory + 149, grad, MIXPREC_F32, 50), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_scaler_unscale(&s, memory + 100, grad, MIXPREC_F16, 50), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_scaler_unscale(&s, memory + 100, grad, MIXPREC_F64, 50), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_scaler_unscale(&s, memory + 124, grad, MIXPREC_F16, 50), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_scaler_unscale(&s, memory + 51, grad, MIXPREC_E4M3, 50), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_scaler_unscale_ex(&s, memory, grad, MIXPREC_F32, 50, (mixprec_isa)99), MIXPREC_ERR_ISA);
    REFUSED(mixprec_scaler_unscale_ex(&s, memory, grad, MIXPREC_F32, 50, (mixprec_isa)0xFFFFFFFFu), MIXPREC_ERR_ISA);
    for (i = 0; i < ISA_COUNT; i++)
        if (!runs_here(all_isas[i]))
            REFUSED(mixprec_scaler_unscale_ex(&s, memory, grad, MIXPREC_F32, 50, all_isas[i]), MIXPREC_ERR_ISA);
    for (i = 0; i < sizeof bad_scales / sizeof *bad_scales; i++) {
        s.scale = bad_scales[i];
        before = s;
        REFUSED(mixprec_scaler_unscale(&s, memory, grad, MIXPREC_F32, 50), MIXPREC_ERR_SCALE);
    }
#undef REFUSED
    mixprec_scaler_init(&s);
    CHECK(mixprec_scaler_unscale(&s, NULL, NULL, MIXPREC_F32, 0) == 0, "NULL is no error for n = 0");
    CHECK(mixprec_scaler_unscale(&s, memory + 50, grad, MIXPREC_F32, 50) == 1, "dst may end where grad begins");
    CHECK(mixprec_scaler_unscale(&s, memory + 150, grad, MIXPREC_F32, 50) == 1, "dst may begin where grad ends");
    CHECK(!memcmp(memory + 100, saved + 100, 50 * sizeof *memory), "grad changed");
}

static void test_check(void) {
    mixprec_scaler s;
    CHECK(mixprec_scaler_check(NULL) == MIXPREC_ERR_NULL, "NULL");
#define WITH(field, value, want)                                                                                       \
    do {                                                                                                               \
        mixprec_scaler_init(&s);                                                                                       \
        s.field = value;                                                                                               \
        CHECK_STATUS("." #field " = " #value, mixprec_scaler_check(&s), want);                                         \
    } while (0)
    WITH(scale, 0, MIXPREC_ERR_SCALE);
    WITH(scale, -1, MIXPREC_ERR_SCALE);
    WITH(scale, NAN, MIXPREC_ERR_SCALE);
    WITH(scale, HUGE_VALF, MIXPREC_ERR_SCALE);
    WITH(scale, 1e-40f, MIXPREC_ERR_SCALE);
    WITH(scale, 0x1p25f, MIXPREC_ERR_SCALE); /* above max_scale */
    WITH(scale, 0x1p-15f, MIXPREC_ERR_SCALE);
    WITH(scale, 0x1p24f, MIXPREC_OK);
    WITH(scale, 0x1p-14f, MIXPREC_OK);
    WITH(min_scale, 0, MIXPREC_ERR_SCALE);
    WITH(min_scale, NAN, MIXPREC_ERR_SCALE);
    WITH(min_scale, 1e-40f, MIXPREC_ERR_SCALE);
    WITH(min_scale, 65537, MIXPREC_ERR_SCALE);
    WITH(min_scale, FLT_MIN, MIXPREC_OK);
    WITH(max_scale, HUGE_VALF, MIXPREC_ERR_SCALE);
    WITH(max_scale, NAN, MIXPREC_ERR_SCALE);
    WITH(max_scale, 65535, MIXPREC_ERR_SCALE);
    WITH(max_scale, FLT_MAX, MIXPREC_OK);
    WITH(growth_factor, 0.999, MIXPREC_ERR_SCALE);
    WITH(growth_factor, (double)NAN, MIXPREC_ERR_SCALE);
    WITH(growth_factor, HUGE_VAL, MIXPREC_ERR_SCALE);
    WITH(growth_factor, -2, MIXPREC_ERR_SCALE);
    WITH(growth_factor, 1, MIXPREC_OK);
    WITH(growth_factor, 1e300, MIXPREC_OK);
    WITH(backoff_factor, 0, MIXPREC_ERR_SCALE);
    WITH(backoff_factor, -0.5, MIXPREC_ERR_SCALE);
    WITH(backoff_factor, 1.001, MIXPREC_ERR_SCALE);
    WITH(backoff_factor, (double)NAN, MIXPREC_ERR_SCALE);
    WITH(backoff_factor, 1e-310, MIXPREC_ERR_SCALE);
    WITH(backoff_factor, 1, MIXPREC_OK);
    WITH(growth_interval, 0, MIXPREC_ERR_SCALE);
    WITH(growth_interval, -1, MIXPREC_ERR_SCALE);
    WITH(growth_interval, 1, MIXPREC_OK);
    WITH(hysteresis, 0, MIXPREC_ERR_SCALE);
    WITH(hysteresis, -5, MIXPREC_ERR_SCALE);
    WITH(growth_tracker, -1, MIXPREC_ERR_SCALE);
    WITH(growth_tracker, 5000, MIXPREC_OK);
    WITH(hysteresis_used, -1, MIXPREC_ERR_SCALE);
#undef WITH
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
        {"scaler: the documented traces", test_traces},
        {"scaler: traces of PyTorch, Megatron-LM and Apex", test_golden_traces},
        {"scaler: defaults", test_defaults},
        {"scaler: limits of growth and backoff", test_limits},
        {"scaler: factors that are no powers of two", test_odd_factors},
        {"scaler: interval and hysteresis changed on the way", test_interval_changes},
        {"scaler: static scale", test_static_scale},
        {"scaler: checkpoints", test_checkpoint},
        {"scaler: unscale, every type, path and length", test_unscale},
        {"scaler: unscale in place", test_unscale_in_place},
        {"scaler: unscale more than the caches hold", test_large},
        {"scaler: every code that is not finite, at every position", test_every_non_finite},
        {"scaler: every finite code", test_every_finite},
        {"scaler: Inf by unscaling", test_inf_by_unscaling},
        {"scaler: unscaled values of PyTorch", test_golden_unscale},
        {"scaler: several tensors and optimisers", test_several_tensors},
#if HAVE_ENVIRONMENT
        {"scaler: the caller's floating-point environment", test_environment},
        {"scaler: the caller's floating-point environment, scaling and checks", test_environment_of_scale},
#endif
        {"scaler: every error status", test_statuses},
        {"scaler: mixprec_scaler_check", test_check}
    };
    size_t i;
    test_init(argc, argv);
    for (i = 0; i < sizeof tests / sizeof *tests; i++)
        if (test_begin(tests[i].name)) {
            tests[i].run();
            test_end();
        }
    for (i = 0; i < ISA_COUNT; i++)
        if (!runs_here(all_isas[i])) {
            char name[40];
            snprintf(name, sizeof name, "scaler: the %s path", mixprec_isa_name(all_isas[i]));
            test_skip(name, "not compiled in, or not available on this CPU");
        }
    return test_summary();
}
