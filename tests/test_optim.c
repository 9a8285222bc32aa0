/* Tests of the optimisers, of mixprec_accumulate, mixprec_warmup_cosine and of what prepares a step.

       cc -O2 -std=gnu11 tests/test_optim.c -lm && ./a.out [--quick] [--filter TEXT]

   The oracle is the documented arithmetic one element at a time, every operation stored to a volatile float, square
   roots from libm, constants in long double; narrowing by mixprec_encode, which has a test of its own. A second one
   works in double, and tells whether the formulas train. */
#include <float.h>
#include <math.h>
#include <stdint.h>

#include "library.h"
#include "test.h"
#include "codes.h"
#include "environment.h"

#ifdef __TINYC__ /* its long double functions are not those of libm */
typedef double wide;
#define powl pow
#define sqrtl sqrt
#define cosl cos
#define acosl acos
#else
typedef long double wide;
#endif

/* ---- helpers ---- */

static const mixprec_dtype grad_dtypes[] = {MIXPREC_F32,  MIXPREC_F64,  MIXPREC_F16,
                                            MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
static const mixprec_dtype model_dtypes[] = {MIXPREC_NONE, MIXPREC_F32,  MIXPREC_F16,
                                             MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
static const mixprec_isa all_isas[] = {MIXPREC_ISA_AUTO, MIXPREC_ISA_C, MIXPREC_ISA_AVX2, MIXPREC_ISA_AVX512,
                                       MIXPREC_ISA_NEON};
#define ISA_COUNT 5
#define MOST 1200
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* The value of element i, as fp32. */
static float value_at(const void *x, mixprec_dtype type, size_t i) {
    const char *from = (const char *)x + i * mixprec_dtype_size(type);
    double big;
    uint32_t code = 0;
    uint16_t half;
    if (type == MIXPREC_F64)
        return memcpy(&big, from, 8), (float)big;
    if (mixprec_dtype_size(type) == 4)
        memcpy(&code, from, 4);
    else if (mixprec_dtype_size(type) == 2)
        memcpy(&half, from, 2), code = half;
    else
        code = *(const unsigned char *)from;
    return (float)mixprec_decode(code, type);
}

static void set_value(void *x, mixprec_dtype type, size_t i, float value, mixprec_round round,
                      mixprec_overflow overflow, uint32_t random) {
    double big = (double)value;
    if (type == MIXPREC_F64)
        memcpy((char *)x + i * 8, &big, 8);
    else
        set_code(x, type, i, mixprec_encode(big, type, round, overflow, random));
}

/* ---- one tensor, and what a step makes of it ---- */

typedef struct tensor {
    /* Room for any dtype, and for a shift that misaligns. */
    double grad[MOST + 8], model[MOST + 8], compensation[MOST + 8];
    float master[MOST + 8], moment1[MOST + 8], moment2[MOST + 8];
} tensor;

typedef struct step_case {
    const mixprec_adam *adam; /* or */
    const mixprec_sgd *sgd;
    mixprec_dtype grad_type, model_type;
    int has_master, has_compensation;
    int bare; /* weights of 0, second moments of any bits but a sign, some Inf: the last bit of each quotient shows */
    mixprec_round round;
    mixprec_overflow overflow;
    size_t n, shift;
    float inverse_scale, clip;
    uint64_t seed, offset;
} step_case;

static void fill(tensor *t, const step_case *c) {
    static const float magnitudes[] = {1, 0, 1e-3f, 1e-8f, 1e-20f, 1e-38f, 30, 1e4f};
    size_t i;
    memset(t, 0x3C, sizeof *t);
    for (i = 0; i < c->n; i++) {
        float random[4];
        int j;
        for (j = 0; j < 4; j++)
            random[j] = (float)((double)mixprec_random_bits(7 + c->n, 4 * i + (unsigned)j) * 0x1p-31 - 1);
        set_value(t->grad, c->grad_type, c->shift + i, random[0] * magnitudes[i % 8], MIXPREC_ROUND_NEAREST_EVEN,
                  MIXPREC_OVERFLOW_SATURATE, 0);
        t->master[c->shift + i] = random[1] * 3;
        t->moment1[c->shift + i] = random[2] * magnitudes[i / 8 % 6];
        t->moment2[c->shift + i] = random[3] * random[3] * magnitudes[i / 8 % 6];
        if (c->bare) {
            t->master[c->shift + i] = 0;
            t->moment2[c->shift + i] =
                i % 64 ? float_from_bits(mixprec_random_bits(8 + c->seed, i) & 0x7FFFFFFF) : HUGE_VALF;
        }
        if (c->model_type != MIXPREC_NONE) {
            set_value(t->model, c->model_type, c->shift + i, random[1], MIXPREC_ROUND_NEAREST_EVEN,
                      MIXPREC_OVERFLOW_SATURATE, 0);
            set_value(t->compensation, c->model_type, c->shift + i, random[2] * 1e-3f, MIXPREC_ROUND_NEAREST_EVEN,
                      MIXPREC_OVERFLOW_SATURATE, 0);
        }
    }
}

static mixprec_parameter parameter_of(tensor *t, const step_case *c) {
    mixprec_parameter p;
    size_t model_shift = c->shift * mixprec_dtype_size(c->model_type);
    memset(&p, 0, sizeof p);
    p.n = c->n;
    p.grad = (char *)t->grad + c->shift * mixprec_dtype_size(c->grad_type);
    p.grad_type = c->grad_type;
    if (c->has_master)
        p.master = t->master + c->shift;
    if (c->model_type != MIXPREC_NONE)
        p.model = (char *)t->model + model_shift;
    p.model_type = c->model_type;
    if (c->has_compensation)
        p.compensation = (char *)t->compensation + model_shift;
    if (c->adam || c->sgd->momentum != 0)
        p.moment1 = t->moment1 + c->shift;
    if (c->adam)
        p.moment2 = t->moment2 + c->shift;
    p.round = c->round;
    p.overflow = c->overflow;
    p.seed = c->seed;
    p.offset = c->offset;
    return p;
}

static mixprec_status library_step(const step_case *c, const mixprec_parameter *p) {
    return c->adam ? mixprec_adam_step(c->adam, p, c->inverse_scale, c->clip, 0)
                   : mixprec_sgd_step(c->sgd, p, c->inverse_scale, c->clip, 0);
}

/* fp32 arithmetic, one rounding for each operation. */
static float times(float a, float b) {
    volatile float x = a, y = b, z = x * y;
    return z;
}
static float plus(float a, float b) {
    volatile float x = a, y = b, z = x + y;
    return z;
}
static float over(float a, float b) {
    volatile float x = a, y = b, z = x / y;
    return z;
}

static float adam_element(const mixprec_adam *a, float w, float *m, float *v, float g) {
    wide step = (wide)a->step;
    float wd = (float)a->weight_decay, b1 = (float)a->beta1, r1 = (float)(1 - a->beta1), b2 = (float)a->beta2,
          r2 = (float)(1 - a->beta2);
    float rate = (float)((wide)a->learning_rate / (1 - powl((wide)a->beta1, step)));
    float correction = (float)sqrtl(1 - powl((wide)a->beta2, step)), denominator;
    if (a->decoupled)
        w = times(w, (float)(1 - a->learning_rate * a->weight_decay));
    else if (a->weight_decay != 0)
        g = plus(g, times(wd, w));
    *m = plus(times(b1, *m), times(r1, g));
    *v = plus(times(b2, *v), times(times(r2, g), g));
    denominator = plus(over(sqrtf(*v), correction), (float)a->epsilon);
    return plus(w, -over(times(rate, *m), denominator));
}

static float sgd_element(const mixprec_sgd *s, float w, float *m, float g) {
    float momentum = (float)s->momentum;
    if (s->weight_decay != 0)
        g = plus(g, times((float)s->weight_decay, w));
    if (s->momentum != 0) {
        *m = s->step == 1 ? g : plus(times(momentum, *m), times((float)(1 - s->dampening), g));
        g = s->nesterov ? plus(g, times(momentum, *m)) : *m;
    }
    return plus(w, -times((float)s->learning_rate, g));
}

static void oracle_step(tensor *t, const step_case *c) {
    size_t i, k;
    for (i = 0; i < c->n; i++) {
        float g, w, *m = &t->moment1[c->shift + i];
        uint32_t random = mixprec_random_bits(c->seed, c->offset + i);
        k = c->shift + i;
        g = times(times(value_at(t->grad, c->grad_type, k), c->inverse_scale), c->clip);
        w = c->has_master ? t->master[k] : value_at(t->model, c->model_type, k);
        if (c->has_compensation)
            w = plus(w, value_at(t->compensation, c->model_type, k));
        w = c->adam ? adam_element(c->adam, w, m, &t->moment2[k], g) : sgd_element(c->sgd, w, m, g);
        if (c->has_master)
            t->master[k] = w;
        if (c->model_type != MIXPREC_NONE)
            set_value(t->model, c->model_type, k, w, c->round, c->overflow, random);
        if (c->has_compensation)
            set_value(t->compensation, c->model_type, k, plus(w, -value_at(t->model, c->model_type, k)), c->round,
                      c->overflow, random);
    }
}

/* Where two tensors differ, or -1. NaN is NaN. */
static const char *difference(const tensor *a, const tensor *b, const step_case *c, size_t *where) {
    size_t i;
    for (i = 0; i < c->n + 8; i++) {
        *where = i;
        if (float_bits(a->master[i]) != float_bits(b->master[i]) && !(isnan(a->master[i]) && isnan(b->master[i])))
            return "master";
        if (float_bits(a->moment1[i]) != float_bits(b->moment1[i]) && !(isnan(a->moment1[i]) && isnan(b->moment1[i])))
            return "moment1";
        if (float_bits(a->moment2[i]) != float_bits(b->moment2[i]) && !(isnan(a->moment2[i]) && isnan(b->moment2[i])))
            return "moment2";
    }
    for (i = 0; i < c->n + 8 && c->model_type != MIXPREC_NONE; i++) {
        float p = value_at(a->model, c->model_type, i), q = value_at(b->model, c->model_type, i);
        *where = i;
        if (float_bits(p) != float_bits(q) && !(isnan(p) && isnan(q)))
            return "model";
        p = value_at(a->compensation, c->model_type, i), q = value_at(b->compensation, c->model_type, i);
        if (float_bits(p) != float_bits(q) && !(isnan(p) && isnan(q)))
            return "compensation";
    }
    return memcmp(a->grad, b->grad, sizeof a->grad) ? "grad" : NULL;
}

static void check_step(const step_case *c) {
    static tensor before, want, got;
    mixprec_parameter p;
    const char *wrong;
    size_t i, where, part;
    fill(&before, c);
    want = before;
    oracle_step(&want, c);
    for (i = 0; i < ISA_COUNT; i++) {
        if (!runs_here(all_isas[i]))
            continue;
        got = before;
        p = parameter_of(&got, c);
        p.isa = all_isas[i];
        CHECK(library_step(c, &p) == MIXPREC_OK, "refused: %d", (int)library_step(c, &p));
        wrong = difference(&got, &want, c, &where);
        CHECK(!wrong, "%s, %s, %s -> %s, n %zu: %s, at %zu: master %a, want %a", c->adam ? "adam" : "sgd",
              mixprec_isa_name(all_isas[i]), mixprec_dtype_name(c->grad_type), mixprec_dtype_name(c->model_type), c->n,
              wrong, where, (double)got.master[where], (double)want.master[where]);
    }
    /* In two parts, and skipped. */
    part = c->n / 3;
    got = before;
    p = parameter_of(&got, c);
    p.n = part;
    CHECK(library_step(c, &p) == MIXPREC_OK, "the first part is refused");
    p = parameter_of(&got, c);
    p.n -= part;
    p.offset += part;
    p.grad = (const char *)p.grad + part * mixprec_dtype_size(c->grad_type);
    p.model = p.model ? (char *)p.model + part * mixprec_dtype_size(c->model_type) : NULL;
    p.compensation = p.compensation ? (char *)p.compensation + part * mixprec_dtype_size(c->model_type) : NULL;
    p.master = p.master ? p.master + part : NULL;
    p.moment1 = p.moment1 ? p.moment1 + part : NULL;
    p.moment2 = p.moment2 ? p.moment2 + part : NULL;
    CHECK(library_step(c, &p) == MIXPREC_OK, "the second part is refused");
    wrong = difference(&got, &want, c, &where);
    CHECK(!wrong, "in two parts, n %zu: %s differs", c->n, wrong);
    got = before;
    p = parameter_of(&got, c);
    CHECK((c->adam ? mixprec_adam_step(c->adam, &p, NAN, NAN, 1) : mixprec_sgd_step(c->sgd, &p, 0, INFINITY, 1)) ==
              MIXPREC_OK,
          "a step that is to be skipped is refused");
    CHECK(!memcmp(&got, &before, sizeof got), "a skipped step wrote something");
}

/* Ways to hold the weights. */
static void check_ways(step_case c) {
    size_t g, m;
    for (g = 0; g < COUNT_OF(grad_dtypes); g++)
        for (m = 0; m < COUNT_OF(model_dtypes); m++) {
            c.grad_type = grad_dtypes[g];
            c.model_type = model_dtypes[m];
            c.has_compensation = 0;
            c.has_master = 1;
            c.round = m % 2 ? MIXPREC_ROUND_NEAREST_EVEN : MIXPREC_ROUND_STOCHASTIC;
            c.overflow = (mixprec_overflow)(g % 3);
            check_step(&c);
            if (c.model_type == MIXPREC_NONE)
                continue;
            c.has_master = 0;
            c.round = m % 2 ? MIXPREC_ROUND_STOCHASTIC : MIXPREC_ROUND_NEAREST_EVEN;
            check_step(&c);
            c.round = MIXPREC_ROUND_NEAREST_EVEN;
            c.has_compensation = 1;
            check_step(&c);
        }
}

static step_case plain_case(void) {
    step_case c;
    memset(&c, 0, sizeof c);
    c.grad_type = MIXPREC_F32;
    c.has_master = 1;
    c.inverse_scale = 1;
    c.clip = 1;
    c.seed = 12345678901u;
    c.offset = 1000;
    return c;
}

static void test_adam(void) {
    static const size_t sizes[] = {1, 8, 255, 256, 257, 512, 513, 600, 1100};
    mixprec_adam adam;
    step_case c = plain_case();
    size_t n;
    uint64_t step;
    c.adam = &adam;
    mixprec_adamw_init(&adam);
    adam.step = 3;
    for (n = 0; n < COUNT_OF(sizes); n++) {
        c.n = sizes[n];
        c.shift = n % 4;
        c.inverse_scale = n % 2 ? 1.0f / 65536 : 0.3f;
        c.clip = n % 3 ? 0.7f : 1;
        if (n % 2)
            mixprec_adam_init(&adam);
        else
            mixprec_adamw_init(&adam);
        adam.weight_decay = n % 3 ? 0.05 : 0;
        adam.step = n + 1;
        check_ways(c);
    }
    c.shift = 1;
    for (c.n = 0; c.n < 40; c.n++)
        check_step(&c);
    for (step = 1; step < 200000; step = step * 5 / 4 + 1) {
        mixprec_adamw_init(&adam);
        adam.beta1 = step % 3 ? 0.9 : 0.95;
        adam.beta2 = step % 2 ? 0.999 : 0.95;
        adam.learning_rate = 0.00317;
        adam.step = step;
        check_step(&c);
    }
    c.bare = 1;
    c.n = MOST;
    adam.epsilon = 0;
    for (step = 1; step < 100000; step = step * 3 / 2 + 1, c.seed++) {
        adam.beta2 = step % 2 ? 0.999 : 1 - 0x1p-53;
        adam.step = step;
        check_step(&c);
    }
    c.bare = 0;
    c.n = 40;
    adam.beta1 = adam.beta2 = 0; /* 0 / 0 where gradient and moments vanish: NaN, as in PyTorch */
    adam.step = UINT64_MAX;
    check_step(&c);
}

static void test_sgd(void) {
    static const size_t sizes[] = {1, 256, 300, 1100};
    mixprec_sgd sgd;
    step_case c = plain_case();
    size_t n;
    int kind;
    c.sgd = &sgd;
    for (n = 0; n < COUNT_OF(sizes); n++)
        for (kind = 0; kind < 8; kind++) {
            mixprec_sgd_init(&sgd);
            sgd.learning_rate = 0.13;
            sgd.momentum = kind % 4 ? 0.9 : 0;
            sgd.nesterov = kind % 4 == 2;
            sgd.dampening = kind % 4 == 3 ? 0.25 : 0;
            sgd.weight_decay = kind & 1 ? 0.01 : 0;
            sgd.step = kind < 4 ? 1 : 2;
            c.n = sizes[n];
            c.shift = (size_t)kind % 3;
            c.inverse_scale = kind & 2 ? 1 : 0x1p-10f;
            c.clip = kind & 4 ? 0.31f : 1;
            if (kind == 2 || kind == 7)
                check_ways(c);
            else
                check_step(&c);
        }
}

static void test_defaults(void) {
    mixprec_adam adam;
    mixprec_sgd sgd;
    memset(&adam, 0xFF, sizeof adam);
    memset(&sgd, 0xFF, sizeof sgd);
    mixprec_adam_init(&adam);
    CHECK(adam.learning_rate == 1e-3 && adam.beta1 == 0.9 && adam.beta2 == 0.999 && adam.epsilon == 1e-8 &&
              adam.weight_decay == 0 && adam.decoupled == 0 && adam.step == 0,
          "Adam");
    mixprec_adamw_init(&adam);
    CHECK(adam.learning_rate == 1e-3 && adam.beta1 == 0.9 && adam.beta2 == 0.999 && adam.epsilon == 1e-8 &&
              adam.weight_decay == 1e-2 && adam.decoupled == 1 && adam.step == 0,
          "AdamW");
    mixprec_sgd_init(&sgd);
    CHECK(sgd.learning_rate == 1e-3 && sgd.momentum == 0 && sgd.dampening == 0 && sgd.weight_decay == 0 &&
              sgd.nesterov == 0 && sgd.step == 0,
          "SGD");
    mixprec_adam_init(NULL);
    mixprec_adamw_init(NULL);
    mixprec_sgd_init(NULL);
}

/* ---- training ---- */

/* 1000 steps on a noisy quadratic, as a textbook has them, in double; fp32 stays close. */
static void test_textbook(void) {
    double w64 = 2, m64 = 0, v64 = 0, sgd64 = 2, velocity64 = 0;
    float w = 2, m = 0, v = 0, sw = 2, velocity = 0, g;
    mixprec_parameter p;
    mixprec_adam adam;
    mixprec_sgd sgd;
    int i;
    memset(&p, 0, sizeof p);
    mixprec_adamw_init(&adam);
    mixprec_sgd_init(&sgd);
    sgd.momentum = 0.9;
    sgd.nesterov = 1;
    sgd.weight_decay = 1e-3;
    p.n = 1;
    p.grad = &g;
    p.grad_type = MIXPREC_F32;
    for (i = 1; i <= 1000; i++) {
        double noise = (double)mixprec_random_bits(5, (uint64_t)i) * 0x1p-32 - 0.5, g64 = w64 - 1 + noise;
        w64 -= 1e-3 * 1e-2 * w64;
        m64 += (1 - 0.9) * (g64 - m64);
        v64 += (1 - 0.999) * (g64 * g64 - v64);
        w64 -= 1e-3 * (m64 / (1 - pow(0.9, i))) / (sqrt(v64 / (1 - pow(0.999, i))) + 1e-8);
        adam.step++;
        g = w - 1 + (float)noise;
        p.master = &w;
        p.moment1 = &m;
        p.moment2 = &v;
        CHECK(mixprec_adam_step(&adam, &p, 1, 1, 0) == MIXPREC_OK, "adam");
        g64 = sgd64 - 1 + noise + 1e-3 * sgd64;
        velocity64 = i == 1 ? g64 : 0.9 * velocity64 + g64;
        sgd64 -= 1e-3 * (g64 + 0.9 * velocity64);
        sgd.step++;
        g = sw - 1 + (float)noise;
        p.master = &sw;
        p.moment1 = &velocity;
        CHECK(mixprec_sgd_step(&sgd, &p, 1, 1, 0) == MIXPREC_OK, "sgd");
    }
    CHECK(fabs(w64 - 2) > 0.3 && fabs((double)w - w64) < 1e-4, "AdamW: %.8f, in double %.8f", (double)w, w64);
    CHECK(fabs(sgd64 - 2) > 0.3 && fabs((double)sw - sgd64) < 1e-5, "SGD: %.8f, in double %.8f", (double)sw, sgd64);
}

/* A weight of 1 loses 1e-3 in each of 1000 steps: to nearest, bf16 never moves; the other ways arrive at 0. */
static void test_small_updates(void) {
    static const mixprec_dtype types[] = {MIXPREC_BF16, MIXPREC_F16, MIXPREC_E4M3, MIXPREC_E5M2};
    size_t t;
    int way, i;
    for (t = 0; t < COUNT_OF(types); t++)
        for (way = 0; way < 3; way++) {
            float grad[64], mean = 0;
            double model[64], compensation[64];
            mixprec_parameter p;
            mixprec_sgd sgd;
            memset(&p, 0, sizeof p);
            memset(compensation, 0, sizeof compensation);
            mixprec_sgd_init(&sgd);
            p.n = 64;
            p.grad = grad;
            p.grad_type = MIXPREC_F32;
            p.model = model;
            p.model_type = types[t];
            p.compensation = way == 2 ? compensation : NULL;
            p.round = way == 1 ? MIXPREC_ROUND_STOCHASTIC : MIXPREC_ROUND_NEAREST_EVEN;
            for (i = 0; i < 64; i++) {
                grad[i] = 1;
                set_value(model, types[t], (size_t)i, 1, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0);
            }
            for (i = 0; i < 1000; i++) {
                sgd.step++;
                p.seed = sgd.step;
                CHECK(mixprec_sgd_step(&sgd, &p, 1, 1, 0) == MIXPREC_OK, "step");
            }
            for (i = 0; i < 64; i++)
                mean += value_at(model, types[t], (size_t)i) / 64;
            if (way == 0 && types[t] != MIXPREC_F16)
                CHECK(mean == 1, "%s to nearest: %g", mixprec_dtype_name(types[t]), (double)mean);
            if (way == 1)
                CHECK(fabsf(mean) < 0.06f, "%s, stochastic: %g", mixprec_dtype_name(types[t]), (double)mean);
            if (way == 2 && mixprec_dtype_size(types[t]) == 2)
                CHECK(fabsf(mean) < 0.02f, "%s, compensated: %g", mixprec_dtype_name(types[t]), (double)mean);
        }
}

/* ---- what prepares a step ---- */

static void test_preparation(void) {
    static const float scales[] = {1, 65536, 3, 1e-30f, 0x1p-126f, FLT_MAX, 0.7f};
    size_t i;
    for (i = 0; i < COUNT_OF(scales); i++)
        CHECK(float_bits(mixprec_inverse_scale(scales[i])) == float_bits((float)(1.0 / (double)scales[i])),
              "1 / %g: %a", (double)scales[i], (double)mixprec_inverse_scale(scales[i]));
    CHECK(mixprec_gradient_norm(9, 0.25f) == 0.75, "norm");
    for (i = 0; i < 3; i++) { /* just what fp32 holds, more, and what the scale makes of it */
        const float most = i == 2 ? 0x1p127f : FLT_MAX, inverse = i == 2 ? 2 : 1;
        const double square = (double)most * (double)most * (i == 1 ? 1 + 0x1p-20 : 1);
        const double norm = mixprec_gradient_norm(square, inverse);
        CHECK(i ? norm == HUGE_VAL : norm == (double)FLT_MAX, "norm %zu: %a", i, norm);
    }
    CHECK(isnan(mixprec_gradient_norm((double)NAN, 1)) && isnan(mixprec_gradient_norm(-1, 1)), "norm NaN");
    CHECK(mixprec_clip_coefficient(0.5, 1) == 1 && mixprec_clip_coefficient(2, 1) == (float)(1 / (2 + 1e-6)) &&
              mixprec_clip_coefficient(1e9, 0.3) == (float)(0.3 / (1e9 + 1e-6)) && mixprec_clip_coefficient(0, 1) == 1,
          "coefficients");
    CHECK(mixprec_clip_coefficient(5, 0) == 1 && mixprec_clip_coefficient(5, -1) == 1 &&
              mixprec_clip_coefficient(5, -0.0) == 1 && mixprec_clip_coefficient(5, -HUGE_VAL) == 1 &&
              mixprec_clip_coefficient(5, HUGE_VAL) == 1 && mixprec_clip_coefficient((double)NAN, 0) == 1 &&
              mixprec_clip_coefficient((double)NAN, -1) == 1,
          "no clipping");
    CHECK(isnan(mixprec_clip_coefficient(5, (double)NAN)) && isnan(mixprec_clip_coefficient(5, -(double)NAN)) &&
              isnan(mixprec_clip_coefficient((double)NAN, 1)),
          "NaN");
    CHECK(mixprec_clip_coefficient(HUGE_VAL, 1) == 0, "norm Inf: %g", (double)mixprec_clip_coefficient(HUGE_VAL, 1));
    CHECK(mixprec_found_inf(HUGE_VAL) == 1 && mixprec_found_inf((double)NAN) == 1 && mixprec_found_inf(DBL_MAX) == 0 &&
              mixprec_found_inf(0) == 0,
          "found_inf");
}

static void test_schedule(void) {
    const double peak = 6e-4, least = 6e-5;
    uint64_t step;
    double worst = 0;
    for (step = 0; step < 100; step++)
        CHECK(mixprec_warmup_cosine(peak, least, 100, 1000, step) == peak * (double)step / 100, "step %d", (int)step);
    for (step = 100; step < 1000; step++) {
        wide angle = acosl(-1) * (wide)(step - 100) / 900;
        wide want = (wide)least + (wide)(peak - least) * (1 + cosl(angle)) / 2;
        double error = fabs((double)((wide)mixprec_warmup_cosine(peak, least, 100, 1000, step) - want));
        worst = error > worst ? error : worst;
    }
    CHECK(worst < 1e-18, "worst error %g", worst); /* a few ulps of 6e-4 */
    CHECK(mixprec_warmup_cosine(peak, least, 100, 1000, 100) == peak, "after the warm-up");
    CHECK(mixprec_warmup_cosine(peak, least, 100, 1000, 1000) == least &&
              mixprec_warmup_cosine(peak, least, 100, 1000, UINT64_MAX) == least,
          "at the end");
    CHECK(mixprec_warmup_cosine(peak, least, 0, 1000, 0) == peak &&
              mixprec_warmup_cosine(peak, least, 0, 0, 0) == least,
          "without a warm-up");
}

/* ---- accumulation ---- */

static void test_accumulate(void) {
    static double x[MOST];
    float sum[MOST + 1], want[MOST + 1];
    size_t t, n, i;
    for (t = 0; t < COUNT_OF(grad_dtypes); t++)
        for (n = 0; n < MOST; n = n < 70 ? n + 1 : n + 211) {
            float factor = n % 2 ? 1.0f / 3 : 1;
            for (i = 0; i <= n; i++) {
                want[i] = sum[i] = (float)i * 0.37f - 11;
                if (i < n)
                    set_value(x, grad_dtypes[t], i, (float)((double)mixprec_random_bits(n, i) * 0x1p-30 - 2),
                              MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_SATURATE, 0);
            }
            for (i = 0; i < n; i++)
                want[i] = plus(want[i], times(value_at(x, grad_dtypes[t], i), factor));
            CHECK(mixprec_accumulate(sum, x, grad_dtypes[t], n, factor) == MIXPREC_OK, "refused");
            CHECK(!memcmp(sum, want, (n + 1) * sizeof *sum), "%s, n %zu", mixprec_dtype_name(grad_dtypes[t]), n);
        }
#define REFUSED(call, status)                                                                                          \
    do {                                                                                                               \
        CHECK_STATUS(#call, call, status);                                                                             \
        CHECK(sum[0] == 5, "%s: wrote", #call);                                                                        \
    } while (0)
    sum[0] = 5;
    REFUSED(mixprec_accumulate(sum, x, MIXPREC_NONE, 3, 1), MIXPREC_ERR_DTYPE);
    REFUSED(mixprec_accumulate(sum, x, MIXPREC_I8, 3, 1), MIXPREC_ERR_DTYPE);
    REFUSED(mixprec_accumulate(NULL, x, MIXPREC_F32, 3, 1), MIXPREC_ERR_NULL);
    REFUSED(mixprec_accumulate(sum, NULL, MIXPREC_F32, 3, 1), MIXPREC_ERR_NULL);
    REFUSED(mixprec_accumulate(sum, x, MIXPREC_F32, SIZE_MAX / 8 + 1, 1), MIXPREC_ERR_SIZE);
    REFUSED(mixprec_accumulate(sum, sum, MIXPREC_F32, 3, 1), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_accumulate(sum, (char *)sum + 11, MIXPREC_E4M3, 3, 1), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_accumulate(NULL, NULL, MIXPREC_F32, 0, 1), MIXPREC_OK);
#undef REFUSED
}

/* ---- larger than the caches ---- */

/* In one call, which prefetches and writes the model around the caches, and in parts, which do not. */
static void far_step(mixprec_isa isa, mixprec_dtype grad_type, mixprec_dtype model_type, int is_adam) {
    const size_t n = ((size_t)64 << 20) / (is_adam ? 28 : 12) + 77, part = 65536 + 77,
                 grad_size = mixprec_dtype_size(grad_type);
    const size_t model_size = mixprec_dtype_size(model_type), sizes[5] = {4, 4, 4, model_size, grad_size};
    const mixprec_round round = grad_type == MIXPREC_F16 ? MIXPREC_ROUND_STOCHASTIC : MIXPREC_ROUND_NEAREST_EVEN;
    unsigned char *memory[2][5] = {{NULL}};
    size_t i, j, k, count;
    mixprec_sgd sgd;
    mixprec_adam adam;
    mixprec_sgd_init(&sgd);
    mixprec_adamw_init(&adam);
    sgd.step = adam.step = 10;
    sgd.momentum = 0.9;
    for (i = 0; i < 2; i++)
        for (j = 0; j < 5; j++) {
            memory[i][j] = calloc(n + 16, sizes[j]);
            if (!memory[i][j]) {
                CHECK(0, "no memory");
                return;
            }
            for (k = 0; j < 3 && k < n; k++)
                ((float *)(void *)memory[i][j])[k] = (float)(k % 8191) * 0x1p-13f;
            for (k = 0; j == 4 && k < n; k++)
                set_value(memory[i][j], grad_type, k, (float)(k % 511) * 0x1p-9f - 0.5f, MIXPREC_ROUND_NEAREST_EVEN,
                          MIXPREC_OVERFLOW_SATURATE, 0);
            for (k = 0; j == 3 && k < 16; k++)
                memory[i][j][n * model_size + k] = 0x5A;
        }
    for (i = 0; i < 2; i++)
        for (k = 0; k < n; k += count) {
            mixprec_parameter p;
            memset(&p, 0, sizeof p);
            count = i && part < n - k ? part : n - k;
            p.n = count;
            p.master = (float *)(void *)memory[i][0] + k;
            p.moment1 = (float *)(void *)memory[i][1] + k;
            p.moment2 = is_adam ? (float *)(void *)memory[i][2] + k : NULL;
            p.model = memory[i][3] + k * model_size;
            p.model_type = model_type;
            p.grad = memory[i][4] + k * grad_size;
            p.grad_type = grad_type;
            p.round = round;
            p.seed = 3;
            p.offset = k;
            p.isa = isa;
            CHECK((is_adam ? mixprec_adam_step(&adam, &p, 0.5f, 1, 0) : mixprec_sgd_step(&sgd, &p, 0.5f, 1, 0)) ==
                      MIXPREC_OK,
                  "refused");
        }
    for (j = 0; j < 5; j++) {
        CHECK(!memcmp(memory[0][j], memory[1][j], n * sizes[j] + (j == 3 ? 16 : 0)),
              "%s, gradients %s, model %s, %s: array %zu is other than in parts", mixprec_isa_name(isa),
              mixprec_dtype_name(grad_type), mixprec_dtype_name(model_type), is_adam ? "AdamW" : "SGD", j);
        free(memory[0][j]);
        free(memory[1][j]);
    }
}

static void far_accumulate(mixprec_dtype type) {
    const size_t n = ((size_t)64 << 20) / 8 + 77, part = 65536 + 77, size = mixprec_dtype_size(type);
    float *whole = calloc(n, sizeof *whole), *parts = calloc(n, sizeof *parts);
    unsigned char *x = malloc(n * size);
    size_t i;
    if (!whole || !parts || !x) {
        CHECK(0, "no memory");
        return;
    }
    for (i = 0; i < n; i++)
        set_value(x, type, i, (float)(i % 511) * 0x1p-9f - 0.5f, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_SATURATE,
                  0);
    CHECK(mixprec_accumulate(whole, x, type, n, 3) == MIXPREC_OK, "refused");
    for (i = 0; i < n; i += part)
        CHECK(mixprec_accumulate(parts + i, x + i * size, type, part < n - i ? part : n - i, 3) == MIXPREC_OK,
              "refused");
    CHECK(!memcmp(whole, parts, n * sizeof *whole), "%s: other than in parts", mixprec_dtype_name(type));
    free(whole);
    free(parts);
    free(x);
}

static void test_far(void) {
    size_t i;
    library_write_around();
    library_take_for_amd(0);
    for (i = 0; i < ISA_COUNT; i++)
        if ((all_isas[i] == MIXPREC_ISA_AVX2 || all_isas[i] == MIXPREC_ISA_AVX512) && runs_here(all_isas[i])) {
            far_step(all_isas[i], MIXPREC_BF16, MIXPREC_BF16, 1);
            far_step(all_isas[i], MIXPREC_F16, MIXPREC_E4M3, 0);
            far_step(all_isas[i], MIXPREC_F32, MIXPREC_F32, 0);
        }
    far_accumulate(MIXPREC_BF16);
    far_accumulate(MIXPREC_F32);
    library_hide_units(0);
}

/* ---- environment, statuses ---- */

#if HAVE_ENVIRONMENT
static void test_environment(void) {
    static tensor before, want, got, want_sgd, got_sgd;
    mixprec_adam adam;
    mixprec_sgd sgd;
    mixprec_parameter p;
    step_case c = plain_case();
    size_t e;
    mixprec_adamw_init(&adam);
    adam.step = 7;
    mixprec_sgd_init(&sgd);
    sgd.momentum = 0.9;
    sgd.weight_decay = 1e-3;
    sgd.step = 7;
    c.adam = &adam;
    c.n = 300;
    c.grad_type = MIXPREC_BF16;
    c.model_type = MIXPREC_F16;
    fill(&before, &c);
    for (e = 0; e < sizeof environments / sizeof *environments; e++) {
        environment saved = get_environment(), after;
        float sums[2][40] = {{0}}, inverse[2], clip[2];
        double rate[2], norm[2];
        int i, refused;
        for (i = 0; i < 2; i++) {
            tensor *t = i ? &got : &want, *t_sgd = i ? &got_sgd : &want_sgd;
            mixprec_parameter p_sgd;
            *t = *t_sgd = before;
            p = parameter_of(t, &c);
            p_sgd = parameter_of(t_sgd, &c);
            if (i)
                set_environment(environments[e]);
            refused = mixprec_adam_step(&adam, &p, 0x1p-16f, 0.9f, 0) != MIXPREC_OK;
            refused += mixprec_sgd_step(&sgd, &p_sgd, 0x1p-16f, 0.9f, 0) != MIXPREC_OK;
            mixprec_accumulate(sums[i], before.grad, MIXPREC_BF16, 40, 1.0f / 3);
            inverse[i] = mixprec_inverse_scale(3);
            clip[i] = mixprec_clip_coefficient(3, 1);
            rate[i] = mixprec_warmup_cosine(0.1, 0.01, 3, 100, 50);
            norm[i] = mixprec_gradient_norm(2, 1.0f / 3);
            after = get_environment();
            if (i)
                set_environment(saved);
            CHECK(!refused, "refused");
            CHECK(!i || after == environments[e], "environment %llx is %llx afterwards",
                  (unsigned long long)environments[e], (unsigned long long)after);
        }
        CHECK(!memcmp(&want, &got, sizeof want) && !memcmp(&want_sgd, &got_sgd, sizeof want_sgd) &&
                  !memcmp(sums[0], sums[1], sizeof sums[0]) && inverse[0] == inverse[1] && clip[0] == clip[1] &&
                  rate[0] == rate[1] && norm[0] == norm[1],
              "environment %llx changes the bits", (unsigned long long)environments[e]);
    }
}
#endif

static void test_statuses(void) {
    static tensor before, now, plain;
    step_case c = plain_case();
    mixprec_adam adam, good_adam;
    mixprec_sgd sgd, good_sgd;
    mixprec_parameter p, good;
    int i;
    c.n = 20;
    c.model_type = MIXPREC_BF16;
    mixprec_adamw_init(&good_adam);
    mixprec_sgd_init(&good_sgd);
    good_sgd.momentum = 0.5;
    good_adam.step = good_sgd.step = 1;
    c.adam = &good_adam;
    fill(&before, &c);
    now = before;
    good = parameter_of(&now, &c);
#define BAD(change, status)                                                                                            \
    adam = good_adam, sgd = good_sgd, p = good;                                                                        \
    change;                                                                                                            \
    CHECK_STATUS("Adam: " #change, mixprec_adam_step(&adam, &p, 1, 1, 0), status);                                     \
    CHECK_STATUS("SGD: " #change, mixprec_sgd_step(&sgd, &p, 1, 1, 0), status);                                        \
    CHECK_STATUS("Adam, skipped: " #change, mixprec_adam_step(&adam, &p, 1, 1, 1), status);                            \
    CHECK(!memcmp(&now, &before, sizeof now), "%s: something was written", #change)
    BAD(p.grad_type = MIXPREC_NONE, MIXPREC_ERR_DTYPE);
    BAD(p.grad_type = MIXPREC_I8, MIXPREC_ERR_DTYPE);
    BAD(p.model_type = MIXPREC_F64, MIXPREC_ERR_DTYPE);
    BAD(p.model_type = MIXPREC_NONE, MIXPREC_ERR_DTYPE);
    BAD(p.grad = NULL, MIXPREC_ERR_NULL);
    BAD(p.master = NULL; p.model = NULL, MIXPREC_ERR_NULL);
    BAD(p.moment1 = NULL, MIXPREC_ERR_NULL);
    BAD(p.round = (mixprec_round)9, MIXPREC_ERR_ROUND);
    BAD(p.overflow = (mixprec_overflow)9, MIXPREC_ERR_OVERFLOW);
    BAD(p.isa = (mixprec_isa)77, MIXPREC_ERR_ISA);
    BAD(p.n = SIZE_MAX / 8 + 1, MIXPREC_ERR_SIZE);
    BAD(p.grad = p.master, MIXPREC_ERR_OVERLAP);
    BAD(p.model = p.master + 19, MIXPREC_ERR_OVERLAP);
    BAD(p.moment1 = p.master + 19, MIXPREC_ERR_OVERLAP);
    BAD(p.compensation = now.compensation, MIXPREC_ERR_OPTIMIZER);
    BAD(p.master = NULL; p.compensation = now.compensation; p.round = MIXPREC_ROUND_STOCHASTIC, MIXPREC_ERR_OPTIMIZER);
    BAD(p.master = NULL; p.compensation = p.model, MIXPREC_ERR_OVERLAP);
    adam = good_adam, sgd = good_sgd, p = good;
    adam.step = sgd.step = 0;
    CHECK(mixprec_adam_step(&adam, &p, 1, 1, 0) == MIXPREC_ERR_OPTIMIZER &&
              mixprec_sgd_step(&sgd, &p, 1, 1, 0) == MIXPREC_ERR_OPTIMIZER,
          "step 0");
    CHECK(mixprec_adam_step(&adam, &p, 1, 1, 1) == MIXPREC_OK && mixprec_sgd_step(&sgd, &p, 1, 1, 1) == MIXPREC_OK,
          "the first step is skipped");
    CHECK(!memcmp(&now, &before, sizeof now), "step 0: something was written");
    for (i = 0; i < 4; i++) {
        /* the last is the first number that fp32 rounds to Inf */
        const double bad = i == 0 ? -1.0 : i == 1 ? (double)NAN : i == 2 ? HUGE_VAL : 0x1.ffffffp127;
        BAD(adam.learning_rate = sgd.learning_rate = bad, MIXPREC_ERR_OPTIMIZER);
        BAD(adam.weight_decay = sgd.weight_decay = bad, MIXPREC_ERR_OPTIMIZER);
        BAD(adam.beta1 = sgd.momentum = bad, MIXPREC_ERR_OPTIMIZER);
        BAD(adam.beta2 = sgd.dampening = bad, MIXPREC_ERR_OPTIMIZER);
        BAD(adam.epsilon = sgd.dampening = bad, MIXPREC_ERR_OPTIMIZER);
    }
    BAD(adam.beta1 = 1; sgd.nesterov = 1; sgd.momentum = 0, MIXPREC_ERR_OPTIMIZER);
    BAD(adam.beta2 = 1; sgd.nesterov = 1; sgd.dampening = 0.5, MIXPREC_ERR_OPTIMIZER);
    adam = good_adam, sgd = good_sgd, p = good;
    p.moment2 = NULL;
    CHECK(mixprec_adam_step(&adam, &p, 1, 1, 0) == MIXPREC_ERR_NULL, "moment2 NULL");
    p.moment2 = p.moment1;
    CHECK(mixprec_adam_step(&adam, &p, 1, 1, 0) == MIXPREC_ERR_OVERLAP, "moment2 overlaps moment1");
    p = good;
    CHECK(mixprec_adam_step(NULL, &p, 1, 1, 0) == MIXPREC_ERR_NULL &&
              mixprec_adam_step(&adam, NULL, 1, 1, 0) == MIXPREC_ERR_NULL &&
              mixprec_sgd_step(NULL, &p, 1, 1, 0) == MIXPREC_ERR_NULL &&
              mixprec_sgd_step(&sgd, NULL, 1, 1, 0) == MIXPREC_ERR_NULL,
          "NULL");
    for (i = 0; i < 4; i++) {
        const float bad_scale = i == 0 ? 0 : i == 1 ? -1 : i == 2 ? NAN : HUGE_VALF;
        const float bad_clip = i == 0 ? -0.5f : i == 1 ? HUGE_VALF : i == 2 ? NAN : -HUGE_VALF;
        CHECK(mixprec_adam_step(&adam, &p, bad_scale, 1, 0) == MIXPREC_ERR_SCALE &&
                  mixprec_sgd_step(&sgd, &p, bad_scale, 1, 0) == MIXPREC_ERR_SCALE &&
                  mixprec_adam_step(&adam, &p, 1, bad_clip, 0) == MIXPREC_ERR_SCALE &&
                  mixprec_sgd_step(&sgd, &p, 1, bad_clip, 0) == MIXPREC_ERR_SCALE,
              "bad scale or coefficient %d", i);
    }
    CHECK(!memcmp(&now, &before, sizeof now), "something was written");
    memset(&p, 0, sizeof p);
    p.grad_type = MIXPREC_F32;
    CHECK(mixprec_adam_step(&adam, &p, 1, 1, 0) == MIXPREC_OK && mixprec_sgd_step(&sgd, &p, 1, 1, 0) == MIXPREC_OK,
          "n 0");
    p = good;
    adam.weight_decay = sgd.weight_decay = adam.beta1 = sgd.dampening = -0.0;
    CHECK(mixprec_adam_step(&adam, &p, 1, -0.0f, 0) == MIXPREC_OK &&
              mixprec_sgd_step(&sgd, &p, 1, -0.0f, 0) == MIXPREC_OK,
          "-0");
    adam.learning_rate = sgd.learning_rate = 0x1.fffffefffffffp127;
    CHECK(mixprec_adam_step(&adam, &p, 1, 1, 1) == MIXPREC_OK && mixprec_sgd_step(&sgd, &p, 1, 1, 1) == MIXPREC_OK,
          "a rate that fp32 just holds");
    adam.learning_rate = good_adam.learning_rate, sgd.learning_rate = good_sgd.learning_rate;
    sgd.momentum = sgd.dampening = -0.0;
    p.moment1 = NULL;
    now = before;
    CHECK(mixprec_sgd_step(&sgd, &p, 1, 1, 0) == MIXPREC_OK, "momentum -0 is none");
    plain = now, now = before;
    p.moment1 = p.master;
    CHECK(mixprec_sgd_step(&sgd, &p, 1, 1, 0) == MIXPREC_OK && !memcmp(&now, &plain, sizeof now),
          "without momentum moment1 is used");
    sgd.nesterov = 1;
    CHECK(mixprec_sgd_step(&sgd, &p, 1, 1, 0) == MIXPREC_ERR_OPTIMIZER, "Nesterov with a momentum of -0");
    sgd.momentum = 0.5;
    p.moment1 = good.moment1;
    CHECK(mixprec_sgd_step(&sgd, &p, 1, 1, 0) == MIXPREC_OK, "Nesterov with a dampening of -0");
    p = good;
    now = before;
    CHECK(mixprec_adam_step(&adam, &p, 1, 1, 0) == MIXPREC_OK && memcmp(&now, &before, sizeof now),
          "what is not bad is refused, or does nothing");
}

/* Each array before and behind each other one, touching it or with one element in it; and what a skipped step still
   looks at. */
static void test_overlap(void) {
    enum { N = 8, SLOT = 64, ARRAYS = 6 }; /* grad, master or compensation, model, moments; each in the middle of one */
    static float memory[ARRAYS * SLOT], before[ARRAYS * SLOT];
    mixprec_adam adam;
    mixprec_sgd sgd;
    size_t i, j;
    int inside, has_master, is_adam, skip, s;
    mixprec_adamw_init(&adam);
    mixprec_sgd_init(&sgd);
    sgd.momentum = 0.5;
    adam.step = sgd.step = 1;
    for (i = 0; i < ARRAYS * SLOT; i++)
        before[i] = (float)(i % 13) * 0.25f;
    for (has_master = 0; has_master < 2; has_master++)
        for (is_adam = 0; is_adam < 2; is_adam++)
            for (i = 0; i < (is_adam ? 5u : 4u); i++)
                for (j = 0; j < (is_adam ? 5u : 4u); j++)
                    for (inside = 0; inside < 2; inside++)
                        for (skip = 0; skip < 2; skip++) {
                            const size_t sizes[5] = {4, has_master ? 4 : 2, 2, 4, 4};
                            const mixprec_status want = inside ? MIXPREC_ERR_OVERLAP : MIXPREC_OK;
                            mixprec_status got;
                            mixprec_parameter p;
                            char *at[5];
                            if (i == j)
                                continue;
                            for (s = 0; s < 5; s++)
                                at[s] = (char *)(memory + s * SLOT + SLOT / 2);
                            at[i] = at[j] - (N - (size_t)inside) * sizes[i];
                            memcpy(memory, before, sizeof memory);
                            memset(&p, 0, sizeof p);
                            p.n = N;
                            p.grad = at[0];
                            p.grad_type = MIXPREC_F32;
                            if (has_master)
                                p.master = (float *)(void *)at[1];
                            else
                                p.compensation = at[1];
                            p.model = at[2];
                            p.model_type = MIXPREC_BF16;
                            p.moment1 = (float *)(void *)at[3];
                            if (is_adam)
                                p.moment2 = (float *)(void *)at[4];
                            got = is_adam ? mixprec_adam_step(&adam, &p, 1, 1, skip)
                                          : mixprec_sgd_step(&sgd, &p, 1, 1, skip);
                            CHECK(got == want, "%s, %s, array %zu before %zu, %s: %d", is_adam ? "Adam" : "SGD",
                                  has_master ? "master" : "compensation", i, j, inside ? "in it" : "touching",
                                  (int)got);
                            CHECK((memcmp(memory, before, sizeof memory) == 0) == (skip || inside),
                                  "%s, array %zu before %zu: %s", is_adam ? "Adam" : "SGD", i, j,
                                  skip || inside ? "something was written" : "nothing was written");
                        }
}

/* A skipped step needs no scale and no coefficient, but all the rest. */
static void test_skipped_steps(void) {
    static const float bad[] = {0, -1, NAN, HUGE_VALF};
    static tensor before, now;
    step_case c = plain_case();
    mixprec_adam adam;
    mixprec_sgd sgd;
    mixprec_parameter p;
    size_t i;
    int type;
    mixprec_adamw_init(&adam);
    mixprec_sgd_init(&sgd);
    sgd.momentum = 0.5;
    adam.step = sgd.step = 1;
    c.n = 20;
    c.model_type = MIXPREC_BF16;
    c.adam = &adam;
    fill(&before, &c);
    now = before;
    p = parameter_of(&now, &c);
    for (i = 0; i < COUNT_OF(bad); i++)
        CHECK(mixprec_adam_step(&adam, &p, bad[i], -bad[i] - 1, 1) == MIXPREC_OK &&
                  mixprec_sgd_step(&sgd, &p, bad[i], -bad[i] - 1, 1) == MIXPREC_OK,
              "scale and coefficient %zu of a skipped step", i);
    for (type = -1; type <= MIXPREC_DTYPE_COUNT; type++) {
        mixprec_status of_grad = MIXPREC_ERR_DTYPE, of_model = MIXPREC_ERR_DTYPE;
        for (i = 0; i < COUNT_OF(grad_dtypes); i++)
            if (grad_dtypes[i] == (mixprec_dtype)type)
                of_grad = MIXPREC_OK;
        for (i = 1; i < COUNT_OF(model_dtypes); i++)
            if (model_dtypes[i] == (mixprec_dtype)type)
                of_model = MIXPREC_OK;
        p.grad_type = (mixprec_dtype)type;
        CHECK(mixprec_adam_step(&adam, &p, 1, 1, 1) == of_grad && mixprec_sgd_step(&sgd, &p, 1, 1, 1) == of_grad,
              "gradients of dtype %d", type);
        CHECK(mixprec_accumulate(now.master, before.grad, p.grad_type, 0, 1) == of_grad, "sum of dtype %d", type);
        p.grad_type = c.grad_type;
        p.model_type = (mixprec_dtype)type;
        CHECK(mixprec_adam_step(&adam, &p, 1, 1, 1) == of_model && mixprec_sgd_step(&sgd, &p, 1, 1, 1) == of_model,
              "a model of dtype %d", type);
        p.model_type = c.model_type;
    }
    p.round = (mixprec_round)6;
    CHECK(mixprec_sgd_step(&sgd, &p, 1, 1, 1) == MIXPREC_ERR_ROUND, "SGD, skipped, unknown mode");
    p.round = MIXPREC_ROUND_NEAREST_EVEN;
    p.grad = NULL;
    CHECK(mixprec_sgd_step(&sgd, &p, 1, 1, 1) == MIXPREC_ERR_NULL, "SGD, skipped, grad NULL");
    for (i = 1; i < ISA_COUNT; i++)
        if (!runs_here(all_isas[i])) {
            p = parameter_of(&now, &c);
            p.isa = all_isas[i];
            CHECK(mixprec_adam_step(&adam, &p, 1, 1, 0) == MIXPREC_ERR_ISA &&
                      mixprec_sgd_step(&sgd, &p, 1, 1, 0) == MIXPREC_ERR_ISA,
                  "%s, which is not here", mixprec_isa_name(all_isas[i]));
        }
    CHECK(!memcmp(&now, &before, sizeof now), "something was written");
    /* x before and behind the sum, touching it or with a byte in it */
    for (i = 0; i < 4; i++) {
        const char *x = (const char *)(now.master + 100) + (i == 0 ? -40 : i == 1 ? -39 : i == 2 ? 159 : 160);
        const mixprec_status want = i % 3 ? MIXPREC_ERR_OVERLAP : MIXPREC_OK;
        CHECK(mixprec_accumulate(now.master + 100, x, MIXPREC_E4M3, 40, 0.5f) == want, "accumulate, side %zu", i);
        CHECK(want == MIXPREC_OK || !memcmp(&now, &before, sizeof now), "refused, but written");
        now = before;
    }
}

int main(int argc, char **argv) {
    test_init(argc, argv);
#define TEST(name, function)                                                                                           \
    if (test_begin(name)) {                                                                                            \
        function();                                                                                                    \
        test_end();                                                                                                    \
    }
    TEST("optim: defaults", test_defaults)
    TEST("optim: Adam and AdamW, every dtype, path and way to hold weights", test_adam)
    TEST("optim: SGD, every dtype, path and way to hold weights", test_sgd)
    TEST("optim: training as in a textbook", test_textbook)
    TEST("optim: small updates to narrow weights", test_small_updates)
    TEST("optim: norm, coefficient, inverse scale", test_preparation)
    TEST("optim: warm-up and cosine", test_schedule)
    TEST("optim: accumulation", test_accumulate)
#if HAVE_ENVIRONMENT
    TEST("optim: the caller's floating-point environment does not matter", test_environment)
#endif
    if (!runs_here(MIXPREC_ISA_AVX2))
        test_skip("optim: in memory larger than the caches", "AVX2 and AVX-512 alone prefetch and write around them");
    else
        TEST("optim: in memory larger than the caches", test_far)
    TEST("optim: statuses, and outputs untouched", test_statuses)
    TEST("optim: arrays that touch or overlap", test_overlap)
    TEST("optim: what a skipped step is asked, every dtype", test_skipped_steps)
    return test_summary();
}
