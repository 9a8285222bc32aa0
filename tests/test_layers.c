/* Tests of the layers: activations, softmax, cross-entropy, normalisation, bias, embedding, dropout, convolution; and
   of the elementary functions below them.

       cc -O2 -std=gnu11 tests/test_layers.c -lm && ./a.out [--quick] [--filter TEXT]

   Every forward pass is compared with a reference in double that is written from the textbook's formula; every gradient
   with central differences of that reference. Inputs are random codes of each dtype. As some look at private functions,
   tests/implementation.c holds these tests for programs that are linked to it. */
#if defined(MIXPREC_IMPLEMENTED_) && !defined(TEST_LAYERS_HERE)

int test_layers(int argc, char **argv);
int main(int argc, char **argv) {
    return test_layers(argc, argv);
}

#else
#include <float.h>
#include <math.h>
#include <stdint.h>

#include "library.h"
#include "test.h"
#include "environment.h"
#include "same.h"

/* ---- helpers ---- */

static uint64_t random_state = 1;

static uint32_t random_u32(void) { /* an LCG modulo 2^64, upper half */
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}
static double random_normal(void) { /* near enough: twelve uniforms */
    double sum = -6;
    int i;
    for (i = 0; i < 12; i++)
        sum += random_u32() / 4294967296.0;
    return sum;
}

static const mixprec_dtype dtypes[] = {MIXPREC_F32, MIXPREC_F16, MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
#define DTYPE_COUNT 5
#define MOST 4096 /* elements of the largest tensor */

/* A tensor as codes and as the numbers that they stand for. */
typedef struct tensor {
    mixprec_dtype type;
    size_t n;
    double value[MOST];
    union {
        uint32_t bits32[MOST + 1];
        uint16_t bits16[MOST + 1];
        uint8_t bits8[MOST + 1];
    } code;
} tensor;

static void *memory(tensor *t) { /* off by one element, so that nothing is aligned by chance */
    size_t size = mixprec_dtype_size(t->type);
    return (char *)&t->code + size;
}
static uint32_t code_at(const tensor *t, size_t i) {
    size_t size = mixprec_dtype_size(t->type);
    return size == 4 ? t->code.bits32[i + 1] : size == 2 ? t->code.bits16[i + 1] : t->code.bits8[i + 1];
}
static void set_code(tensor *t, size_t i, uint32_t code) {
    size_t size = mixprec_dtype_size(t->type);
    if (size == 4)
        t->code.bits32[i + 1] = code;
    else if (size == 2)
        t->code.bits16[i + 1] = (uint16_t)code;
    else
        t->code.bits8[i + 1] = (uint8_t)code;
    t->value[i] = mixprec_decode(code, t->type);
}
static void set_tensor(tensor *t, size_t i, double value) {
    set_code(t, i, mixprec_encode(value, t->type, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_SATURATE, 0));
}
static void shape(tensor *t, mixprec_dtype type, size_t n) {
    t->type = type;
    t->n = n;
    memset(&t->code, 0xA5, sizeof t->code);
}
static void fill(tensor *t, mixprec_dtype type, size_t n, double spread) {
    size_t i;
    shape(t, type, n);
    for (i = 0; i < n; i++)
        do
            set_tensor(t, i, spread * random_normal());
        while (fabs(t->value[i]) < 0.01 * spread); /* not on the kink of ReLU */
}
static void read_back(tensor *t) {
    size_t i;
    for (i = 0; i < t->n; i++)
        t->value[i] = mixprec_decode(code_at(t, i), t->type);
}
/* Is got what want rounds to, but for an error of `slack` before the rounding? */
static int near(const tensor *got, size_t i, double want, double slack) {
    mixprec_format_info info;
    double x = got->value[i];
    mixprec_format(got->type, &info);
    if (isnan(want) || isinf(want))
        return isnan(want) ? isnan(x) : x == want;
    return fabs(x - want) <= 0.5001 * fmax(info.epsilon * fabs(want), info.min_subnormal) + slack;
}
static void check_tensor(const char *what, tensor *got, const double *want, double slack) {
    static const unsigned char beyond[] = {0xA5, 0xA5, 0xA5, 0xA5}; /* see shape */
    size_t i, size = mixprec_dtype_size(got->type);
    read_back(got);
    for (i = 0; i < got->n; i++)
        CHECK(near(got, i, want[i], slack), "%s, %s: element %zu of %zu: got %.9g, want %.9g", what,
              mixprec_dtype_name(got->type), i, got->n, got->value[i], want[i]);
    if (got->n < MOST)
        CHECK(!memcmp((char *)memory(got) + got->n * size, beyond, size), "%s, %s: wrote beyond element %zu", what,
              mixprec_dtype_name(got->type), got->n);
}
static void check_floats(const char *what, const float *got, const double *want, size_t n, double slack) {
    size_t i;
    for (i = 0; i < n; i++)
        CHECK(fabs((double)got[i] - want[i]) <= slack + 6e-8 * fabs(want[i]),
              "%s: element %zu of %zu: got %.9g, want %.9g", what, i, n, (double)got[i], want[i]);
}

/* The gradient of sum_i weight[i] f(x)[i] by central differences. */
typedef void (*function)(double *y, const double *x, const void *context);
static void differences(double *gradient, function f, const void *context, const double *x, size_t n,
                        const double *weight, size_t outputs) {
    static double at[MOST], up[MOST], down[MOST];
    size_t i, j;
    memcpy(at, x, n * sizeof *at);
    for (i = 0; i < n; i++) {
        double h = 1e-5 * fmax(1, fabs(x[i]));
        gradient[i] = 0;
        at[i] = x[i] + h;
        f(up, at, context);
        at[i] = x[i] - h;
        f(down, at, context);
        at[i] = x[i];
        for (j = 0; j < outputs; j++)
            gradient[i] += weight[j] * (up[j] - down[j]) / (2 * h);
    }
}

static const size_t shapes[][2] = {{1, 1}, {3, 5}, {2, 300}, {5, 64}, {1, 257}, {65, 2}, {2, 1030}};
#define SHAPE_COUNT 7
#define FOR_ALL(d, s)                                                                                                  \
    for (d = 0; d < DTYPE_COUNT; d++)                                                                                  \
        for (s = 0; s < (test_quick ? 4 : SHAPE_COUNT); s++)

static tensor a, b, c, y, dx;
static double want[MOST];

/* ---- elementary functions ---- */

static const mixprec_activation activations[] = {MIXPREC_ACTIVATION_RELU, MIXPREC_ACTIVATION_GELU,
                                                 MIXPREC_ACTIVATION_GELU_TANH, MIXPREC_ACTIVATION_SILU,
                                                 MIXPREC_ACTIVATION_TANH};
#define ACTIVATION_COUNT 5

/* How far from the exact result they may be, in ulp, and their slopes where x is not between -2 and 0; there, by
   2.5e-7. */
static const double bounds[][ACTIVATION_COUNT] = {{0, 6, 3, 3, 3}, {0, 6, 6, 6, 6}};

/* Below 2^-14 the first two terms of their series are exact enough, and quick. */
static double true_function(mixprec_activation f, double x) {
    const double k = 2 * sqrt(2 / acos(-1));
    if (f == MIXPREC_ACTIVATION_RELU)
        return x < 0 ? 0 : x;
    if (f == MIXPREC_ACTIVATION_TANH)
        return fabs(x) < 0x1p-14 ? x - x * x * x / 3 : tanh(x);
    if (fabs(x) > 200)
        return x < 0 ? -0.0 : x;
    if (f == MIXPREC_ACTIVATION_SILU)
        return fabs(x) < 0x1p-14 ? x * (0.5 + x / 4) : x / (1 + exp(-x));
    if (fabs(x) < 0x1p-14)
        return x * (0.5 + k / 4 * x);
    return f == MIXPREC_ACTIVATION_GELU ? x / 2 * erfc(-x * sqrt(0.5)) : x / (1 + exp(-k * (x + 0.044715 * x * x * x)));
}
static double true_slope(mixprec_activation f, double x) {
    const double k = 2 * sqrt(2 / acos(-1));
    double u, s, rest;
    if (fabs(x) > 200 || f == MIXPREC_ACTIVATION_RELU)
        return x > 0 && f != MIXPREC_ACTIVATION_TANH;
    if (fabs(x) < 0x1p-14)
        return f == MIXPREC_ACTIVATION_TANH ? 1 - x * x : 0.5 + x * (f == MIXPREC_ACTIVATION_SILU ? 0.5 : k / 2);
    if (f == MIXPREC_ACTIVATION_GELU)
        return erfc(-x * sqrt(0.5)) / 2 + x * exp(-x * x / 2) * k / 4;
    u = f == MIXPREC_ACTIVATION_GELU_TANH ? k * (x + 0.044715 * x * x * x) : f == MIXPREC_ACTIVATION_TANH ? 2 * x : x;
    s = 1 / (1 + exp(-u));
    rest = 1 / (1 + exp(u));
    switch (f) {
    case MIXPREC_ACTIVATION_GELU_TANH: return s + x * s * rest * k * (1 + 3 * 0.044715 * x * x);
    case MIXPREC_ACTIVATION_SILU: return s + x * s * rest;
    default: return 4 * s * rest;
    }
}
static float function_of(mixprec_activation f, float x) {
    float out;
    mixprec_activate(&out, MIXPREC_F32, &x, MIXPREC_F32, 1, f);
    return out;
}
static double ulp_of(double x) { /* ilogb is slow */
    uint64_t exponent = mixprec_f64_bits_(x) >> 52 & 0x7FF;
    return mixprec_f64_from_bits_((exponent < 1023 - 126 ? 1023 - 126 - 23 : exponent - 23) << 52);
}

/* A block of floats in rising order. */
enum { BLOCK = MIXPREC_BLOCK_ };
static void check_block(const float *x, size_t n, int f, int slope, int all_paths) {
    static float got[BLOCK], portable[BLOCK];
    size_t i;
    for (i = 0; i < n; i++)
        got[i] = portable[i] = 1; /* dy */
    mixprec_activate_(mixprec_kernels_of_(MIXPREC_ISA_AUTO), got, x, slope ? got : NULL, n, activations[f]);
    if (all_paths) {
        mixprec_activate_(&mixprec_kernels_c_, portable, x, slope ? portable : NULL, n, activations[f]);
        CHECK(!memcmp(got, portable, n * sizeof *got), "function %d, slope %d: paths differ near %a", f, slope,
              (double)x[0]);
    }
    for (i = 0; i < n; i++) {
        double exact = slope ? true_slope(activations[f], (double)x[i]) : true_function(activations[f], (double)x[i]);
        double error = fabs((double)got[i] - exact), most = bounds[slope][f] * ulp_of(exact);
        if (slope && f && x[i] > -2 && x[i] < 0)
            most = 2.5e-7;
        CHECK(error <= most, "function %d, slope %d, of %a: got %a, want %a, %g ulp", f, slope, (double)x[i],
              (double)got[i], exact, error / ulp_of(exact));
    }
}
static void test_elementary(void) {
    const uint32_t step = test_quick ? 40009 : 1;
    static float x[BLOCK];
    int f, slope;
    for (f = 0; f < ACTIVATION_COUNT; f++)
        for (slope = 0; slope < 2; slope++) {
            uint64_t code = 0;
            size_t n, block;
            for (block = 0; code < (uint64_t)1 << 32; block++) {
                for (n = 0; n < BLOCK && code < (uint64_t)1 << 32;) {
                    uint32_t magnitude = (uint32_t)code & 0x7FFFFFFF;
                    int usual = f && magnitude >= 0x38800000 && magnitude < 0x43800000;
                    if (magnitude < 0x7F800000)
                        x[n++] = mixprec_f32_from_bits_((uint32_t)code);
                    code += (uint64_t)step * (usual ? slope ? 7 : 1 : 97);
                }
                check_block(x, n, f, slope, test_quick || block % 16 == 0);
            }
        }
    for (f = 0; f < (test_quick ? 10000 : 1000000); f++) {
        double z = ldexp(1 + random_u32() / 4294967296.0, f % 4 ? (int)(random_u32() % 2000) - 1000 : -(f % 8 / 4));
        CHECK(fabs(mixprec_log_f64_(z) - (double)logl((long double)z)) <= 1e-11 * fabs(log(z)), "log(%a): %a", z,
              mixprec_log_f64_(z));
    }
}

static void test_sqrt(void) {
    uint32_t i, step = test_quick ? 65521 : 257;
    uint64_t k;
    for (i = 0; i < 0x7F800000u - step; i += step) {
        float x = mixprec_f32_from_bits_(i), exact = sqrtf(x);
        float integer =
            (float)mixprec_f64_from_bits_(mixprec_sqrt_bits_(mixprec_f32_bits_to_f64_bits_(mixprec_f32_bits_(x)), 25));
        CHECK(mixprec_f32_bits_(integer) == mixprec_f32_bits_(exact), "sqrt(%a): %a, want %a", (double)x,
              (double)integer, (double)exact);
        CHECK(mixprec_f32_bits_(mixprec_sqrt_f32_(x)) == mixprec_f32_bits_(exact), "sqrt(%a): %a, want %a", (double)x,
              (double)mixprec_sqrt_f32_(x), (double)exact);
    }
    for (k = 0; k < (test_quick ? 20000u : 2000000u); k++) {
        uint64_t bits = ((uint64_t)mixprec_random_bits(1, 2 * k) << 32 | mixprec_random_bits(1, 2 * k + 1)) >> 1, got;
        double x, exact;
        if (k % 4 == 1) /* beside squares, where rounding is hardest to get right */
            x = (double)(bits >> 38) * (double)(bits >> 38) + (double)(k % 3) - 1, memcpy(&bits, &x, 8);
        if (k % 4 == 2)
            bits >>= 11 + k % 50; /* subnormal */
        memcpy(&x, &bits, 8);
        if (!isfinite(x) || sizeof(double_t) > sizeof(double)) /* x87's sqrt rounds twice */
            continue;
        exact = sqrt(x);
        got = mixprec_sqrt_bits_(bits, 54);
        CHECK(!memcmp(&got, &exact, 8), "sqrt(%a): %016llx, want %a", x, (unsigned long long)got, exact);
        x = mixprec_sqrt_f64_(x);
        CHECK(!memcmp(&x, &exact, 8), "%a, want %a", x, exact);
    }
    CHECK(mixprec_sqrt_f64_(0) == 0 && isinf(mixprec_sqrt_f64_(HUGE_VAL)) && isnan(mixprec_sqrt_f64_((double)NAN)) &&
              isnan(mixprec_sqrt_f64_(-1)) && signbit(mixprec_sqrt_f64_(-0.0)),
          "special values");
}

static void test_special_values(void) {
    const float inputs[] = {HUGE_VALF, -HUGE_VALF, 0.0f, -0.0f};
    const float outputs[ACTIVATION_COUNT][4] = {{HUGE_VALF, 0, 0, 0},
                                                {HUGE_VALF, -0.0f, 0, -0.0f},
                                                {HUGE_VALF, -0.0f, 0, -0.0f},
                                                {HUGE_VALF, -0.0f, 0, -0.0f},
                                                {1, -1, 0, -0.0f}};
    int f, i;
    for (f = 0; f < ACTIVATION_COUNT; f++) {
        for (i = 0; i < 4; i++) {
            uint32_t got = mixprec_f32_bits_(function_of(activations[f], inputs[i]));
            CHECK(got == mixprec_f32_bits_(outputs[f][i]), "function %d of %g: got %08x", f, (double)inputs[i], got);
        }
        CHECK(mixprec_f32_bits_(function_of(activations[f], mixprec_f32_from_bits_(0xFF812345u))) == 0xFFC12345u,
              "function %d of a NaN", f);
    }
}

/* ---- activations ---- */

static double activation_of(int activation, double x) {
    switch (activation) {
    case MIXPREC_ACTIVATION_RELU: return x > 0 ? x : 0;
    case MIXPREC_ACTIVATION_GELU: return 0.5 * x * erfc(-x / sqrt(2));
    case MIXPREC_ACTIVATION_GELU_TANH: return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    case MIXPREC_ACTIVATION_SILU: return x / (1 + exp(-x));
    case MIXPREC_ACTIVATION_TANH: return tanh(x);
    }
    return x;
}

/* ReLU of f16 and bf16 as codes: every one, and gradients of every code beside x of each kind; ends of every length. */
static void test_relu_codes(void) {
    static uint16_t x[65536], dy[65536], out[65536];
    unsigned code;
    size_t t, k, i;
    for (t = 0; t < 2; t++) {
        const mixprec_dtype type = t ? MIXPREC_BF16 : MIXPREC_F16;
        const unsigned inf = t ? 0x7F80 : 0x7C00, quiet = t ? 0x40 : 0x200, sign = 0x8000;
        const unsigned kinds[] = {0, sign, 1, sign | 1, inf - 1, inf, sign | inf, inf + 1, sign | (inf + 1), 0x3C00};
        for (i = 0; i < 65536; i++)
            dy[i] = (uint16_t)i;
        CHECK(mixprec_activate(out, type, dy, type, 65536, MIXPREC_ACTIVATION_RELU) == MIXPREC_OK, "status");
        for (code = 0; code < 65536; code++) {
            unsigned expected = (code & 0x7FFF) > inf ? code | quiet : code & sign ? 0 : code;
            CHECK(out[code] == expected, "relu of %04x: %04x", code, out[code]);
        }
        for (k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            const int is_nan = (kinds[k] & 0x7FFF) > inf, positive = kinds[k] && !(kinds[k] & sign);
            for (i = 0; i < 65536; i++)
                x[i] = (uint16_t)kinds[k];
            CHECK(mixprec_activate_backward(out, type, dy, type, x, type, 65536, MIXPREC_ACTIVATION_RELU) == MIXPREC_OK,
                  "status");
            for (code = 0; code < 65536; code++) {
                const unsigned size = code & 0x7FFF;
                unsigned expected = size > inf ? code | quiet : positive ? code : size < inf ? code & sign : inf + 1;
                if (is_nan)
                    expected = kinds[k] | quiet;
                CHECK((expected & 0x7FFF) > inf ? (out[code] & 0x7FFFu) > inf && (out[code] & quiet)
                                                : out[code] == expected,
                      "slope of relu at %04x times %04x: %04x", kinds[k], code, out[code]);
            }
        }
        for (i = 0; i < 70; i++) {
            memset(out, 0xA5, sizeof out);
            for (k = 0; k < i; k++)
                x[k + 1] = (uint16_t)(k % 3 ? k : k | sign);
            CHECK(mixprec_activate(out + 1, type, x + 1, type, i, MIXPREC_ACTIVATION_RELU) == MIXPREC_OK, "status");
            CHECK(out[0] == 0xA5A5 && out[i + 1] == 0xA5A5, "%zu elements: wrote elsewhere", i);
            for (k = 0; k < i; k++)
                CHECK(out[k + 1] == (k % 3 ? k : 0), "%zu elements: %04x at %zu", i, out[k + 1], k);
        }
    }
}

static void test_activations(void) {
    int activation;
    size_t d, s, i;
    FOR_ALL(d, s)
    for (activation = 0; activation <= (int)MIXPREC_ACTIVATION_TANH; activation++) {
        size_t n = shapes[s][0] * shapes[s][1];
        fill(&a, dtypes[d], n, 3);
        fill(&b, dtypes[(d + 1) % DTYPE_COUNT], n, 1);
        shape(&y, dtypes[(d + 2) % DTYPE_COUNT], n);
        shape(&dx, dtypes[(d + 3) % DTYPE_COUNT], n);
        CHECK(mixprec_activate(memory(&y), y.type, memory(&a), a.type, n, (mixprec_activation)activation) == MIXPREC_OK,
              "status");
        for (i = 0; i < n; i++)
            want[i] = activation_of(activation, a.value[i]);
        check_tensor("activation", &y, want, 1e-6);
        CHECK(mixprec_activate_backward(memory(&dx), dx.type, memory(&b), b.type, memory(&a), a.type, n,
                                        (mixprec_activation)activation) == MIXPREC_OK,
              "status");
        for (i = 0; i < n; i++)
            want[i] = b.value[i] *
                      (activation_of(activation, a.value[i] + 1e-5) - activation_of(activation, a.value[i] - 1e-5)) /
                      2e-5;
        check_tensor("gradient of the activation", &dx, want, 1e-6);
    }
}

/* Slopes far out, where formulas cancel or overflow. */
static void test_slopes(void) {
    static const float inputs[] = {0,  1e-30f, 5,      -5,      12,  -12,  30,    -30,
                                   90, -90,    127.5f, -127.5f, 129, -129, 1e30f, -1e30f};
    int activation;
    size_t i;
    for (activation = 1; activation <= (int)MIXPREC_ACTIVATION_TANH; activation++)
        for (i = 0; i < sizeof inputs / sizeof *inputs; i++) {
            double x = (double)inputs[i], h = 1e-4, slope;
            float one = 1, got;
            mixprec_activate_backward(&got, MIXPREC_F32, &one, MIXPREC_F32, &inputs[i], MIXPREC_F32, 1,
                                      (mixprec_activation)activation);
            slope = activation == MIXPREC_ACTIVATION_RELU ? x > 0
                    : fabs(x) > 1e6                       ? (x > 0 && activation != MIXPREC_ACTIVATION_TANH)
                                    : (activation_of(activation, x + h) - activation_of(activation, x - h)) / (2 * h);
            CHECK(fabs((double)got - slope) < 2.5e-7, "slope %d at %g: got %g, want %g", activation, x, (double)got,
                  slope);
        }
    for (activation = 1; activation <= (int)MIXPREC_ACTIVATION_TANH; activation++) {
        float nan = NAN, one = 1, got = 0;
        mixprec_activate_backward(&got, MIXPREC_F32, &one, MIXPREC_F32, &nan, MIXPREC_F32, 1,
                                  (mixprec_activation)activation);
        CHECK(isnan(got), "slope %d at NaN: %g", activation, (double)got);
    }
}

/* ---- softmax ---- */

typedef struct matrix {
    size_t rows, columns;
    int logarithm;
    const int32_t *targets, *valid; /* valid: how many columns of a row count; NULL: all */
} matrix;

static void softmax_of(double *out, const double *x, const void *context) {
    const matrix *m = (const matrix *)context;
    size_t i, j;
    for (i = 0; i < m->rows; i++, x += m->columns, out += m->columns) {
        size_t n = m->valid ? (size_t)m->valid[i] : m->columns;
        double sum = 0, max = x[0];
        for (j = 0; j < n; j++)
            max = fmax(max, x[j]);
        for (j = 0; j < n; j++)
            sum += exp(x[j] - max);
        for (j = 0; j < n; j++)
            out[j] = m->logarithm ? x[j] - max - log(sum) : exp(x[j] - max) / sum;
        for (; j < m->columns; j++)
            out[j] = 0;
    }
}
static void cross_entropy_of(double *out, const double *x, const void *context) {
    static double p[MOST];
    matrix m = *(const matrix *)context;
    size_t i;
    m.logarithm = 1;
    softmax_of(p, x, &m);
    for (i = 0; i < m.rows; i++)
        out[i] = m.targets[i] < 0 ? 0 : -p[i * m.columns + (size_t)m.targets[i]];
}

static void test_softmax(void) {
    size_t d, s;
    FOR_ALL(d, s) {
        matrix m = {shapes[s][0], shapes[s][1], 0, NULL, NULL};
        size_t n = m.rows * m.columns;
        fill(&a, dtypes[d], n, 4);
        for (m.logarithm = 0; m.logarithm < 2; m.logarithm++) {
            shape(&y, dtypes[(d + 1) % DTYPE_COUNT], n);
            CHECK((m.logarithm ? mixprec_log_softmax : mixprec_softmax)(memory(&y), y.type, memory(&a), a.type, m.rows,
                                                                        m.columns) == MIXPREC_OK,
                  "status");
            softmax_of(want, a.value, &m);
            check_tensor("softmax", &y, want, m.logarithm ? 0x1p-23 : 1e-7);
        }
        m.logarithm = 0;
        fill(&b, dtypes[(d + 2) % DTYPE_COUNT], n, 1);
        shape(&y, MIXPREC_F32, n);
        shape(&dx, dtypes[(d + 3) % DTYPE_COUNT], n);
        mixprec_softmax(memory(&y), y.type, memory(&a), a.type, m.rows, m.columns);
        CHECK(mixprec_softmax_backward(memory(&dx), dx.type, memory(&b), b.type, memory(&y), y.type, m.rows,
                                       m.columns) == MIXPREC_OK,
              "status");
        differences(want, softmax_of, &m, a.value, n, b.value, n);
        check_tensor("gradient of softmax", &dx, want, 1e-6);
    }
}

/* The gradient of a narrow softmax in several blocks: that of the same numbers in f32. */
static void test_narrow_softmax_gradient(void) {
    enum { N = 1000 };
    static uint16_t narrow[N];
    static float wide[N], dy[N], got[2][N];
    int i;
    for (i = 0; i < N; i++) {
        wide[i] = (float)random_u32() / 4294967296.0f;
        dy[i] = (float)random_normal();
    }
    mixprec_convert(narrow, MIXPREC_BF16, wide, MIXPREC_F32, N);
    mixprec_convert(wide, MIXPREC_F32, narrow, MIXPREC_BF16, N);
    CHECK(mixprec_softmax_backward(got[0], MIXPREC_F32, dy, MIXPREC_F32, narrow, MIXPREC_BF16, 1, N) == MIXPREC_OK &&
              mixprec_softmax_backward(got[1], MIXPREC_F32, dy, MIXPREC_F32, wide, MIXPREC_F32, 1, N) == MIXPREC_OK &&
              !memcmp(got[0], got[1], sizeof *got),
          "a narrow softmax has another gradient");
}

/* Small probabilities have few ulp of error, too, subnormal ones included; in rows of every length. */
/* Rows of one number many times, and another, whose errors add up; random ones stay below 2.2 ulp. */
static void test_softmax_worst(void) {
    static const struct {
        size_t n;
        float many, last;
    } rows[] = {{3997, -3.78969574f, -7.27362823f}, {1047, -0.3453376f, -5.19780493f}};
    static float x[MOST], p[MOST];
    size_t k, i;
    for (k = 0; k < 2; k++) {
        matrix m = {1, 0, 0, NULL, NULL};
        const size_t n = m.columns = rows[k].n;
        for (i = 0; i < n; i++)
            a.value[i] = (double)(x[i] = i == 0 ? 0 : i < n - 1 ? rows[k].many : rows[k].last);
        mixprec_softmax(p, MIXPREC_F32, x, MIXPREC_F32, 1, n);
        softmax_of(want, a.value, &m);
        for (i = 0; i < n; i++)
            CHECK(fabs((double)p[i] - want[i]) <= 4 * ulp_of(want[i]), "element %zu of %zu: got %a, want %a", i, n,
                  (double)p[i], want[i]);
    }
}

static void test_softmax_accuracy(void) {
    static const size_t lengths[] = {1, 7, 256, 300, 1024, 1031, MOST};
    static float x[MOST], p[MOST];
    size_t l, i, n;
    int trial;
    for (trial = 0; trial < (test_quick ? 20 : 400); trial++)
        for (l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            matrix m = {1, n = lengths[l], 0, NULL, NULL};
            for (i = 0; i < n; i++) {
                x[i] = (float)(30 * random_normal() + trial);
                a.value[i] = (double)x[i];
            }
            mixprec_softmax(p, MIXPREC_F32, x, MIXPREC_F32, 1, n);
            softmax_of(want, a.value, &m);
            for (i = 0; i < n; i++)
                CHECK(fabs((double)p[i] - want[i]) <= 3 * ulp_of(want[i]),
                      "softmax, element %zu of %zu: got %a, want %a", i, n, (double)p[i], want[i]);
        }
}

/* Rows too long to wait on the stack: in f32 their exps wait in the result, which may be x; in bf16 they are computed
   twice. */
static void test_long_softmax(void) {
    enum { ROWS = 4, N = 5003 };
    static const int32_t targets[ROWS] = {0, N - 1, 4500, 1500}, valid[ROWS] = {N, 1500, 4096, 4099};
    static float x[ROWS * N], wide[ROWS * N], same[ROWS * N], losses[2][ROWS];
    static mixprec_bf16 narrow[ROWS * N], rounded[ROWS * N];
    size_t i;
    int kind;
    for (kind = 0; kind < 3; kind++) {
        for (i = 0; i < ROWS * N; i++)
            same[i] = x[i] = (float)(3 * random_normal());
#define EACH(out, type, in, lost)                                                                                      \
    CHECK((kind == 0 ? mixprec_softmax(out, type, in, MIXPREC_F32, ROWS, N)                                            \
           : kind == 1                                                                                                 \
               ? mixprec_softmax_masked(out, type, in, MIXPREC_F32, valid, ROWS, N)                                    \
               : mixprec_cross_entropy(out, type, lost, in, MIXPREC_F32, targets, ROWS, N, 0.3)) == MIXPREC_OK,        \
          "status")
        EACH(wide, MIXPREC_F32, x, losses[0]);
        EACH(narrow, MIXPREC_BF16, x, losses[1]);
        CHECK(!memcmp(losses[0], losses[1], sizeof losses[0]), "losses beside a narrow gradient differ");
        EACH(same, MIXPREC_F32, same, losses[1]);
        CHECK(!memcmp(losses[0], losses[1], sizeof losses[0]), "losses in place differ");
#undef EACH
        CHECK(!memcmp(same, wide, sizeof wide), "long softmax in place, kind %d", kind);
        mixprec_convert(rounded, MIXPREC_BF16, wide, MIXPREC_F32, ROWS * N);
        CHECK(!memcmp(narrow, rounded, sizeof narrow), "long softmax in bf16, kind %d", kind);
    }
}

/* Numbers that vanish beside 1, but not in lanes of their own. */
static void test_softmax_order(void) {
    float x[64], loss;
    const int32_t target = 0;
    int i;
    for (i = 1; i < 64; i++)
        x[i] = -37.42994776f; /* exp = 2^-54 */
    x[0] = 0;
    CHECK(mixprec_cross_entropy(NULL, MIXPREC_F32, &loss, x, MIXPREC_F32, &target, 1, 64, 1) == MIXPREC_OK &&
              fabs((double)loss / 0x7p-51 - 1) < 1e-6,
          "the loss is %a", (double)loss);
}

/* Scales that are no f32, or nearly none, and those of exps that are almost 0. */
static void test_cross_entropy_scales(void) {
    static const double scales[] = {1e-300, 1e-46, 1e-42, 1e-39, -1e-30, 1e-19, 1e-17, 1e17, -1e19,
                                    1e30,   1e36,  3e37,  3e38,  1e39,   -1e45, 1e50,  1e80};
    enum { N = 12 };
    const float x[N] = {0, -1, -40, -70, -86, -87.5f, -95, -100, -103, -103.9f, -104.1f, -500};
    const int32_t target = 1;
    float gradient[N];
    double sum = 0;
    size_t s, i;
    for (i = 0; i < N; i++)
        sum += exp((double)x[i]);
    for (s = 0; s < sizeof scales / sizeof *scales; s++) {
        CHECK(mixprec_cross_entropy(gradient, MIXPREC_F32, NULL, x, MIXPREC_F32, &target, 1, N, scales[s]) ==
                  MIXPREC_OK,
              "status");
        for (i = 0; i < N; i++) {
            /* an exp below 2^-126 is itself rounded to a multiple of 2^-149 */
            const double e = exp((double)x[i]), wrong = e < 0x1p-126 ? 0x1p-149 / sum * fabs(scales[s]) : 0;
            const double exact = scales[s] * (e / sum - (i == 1)), got = (double)gradient[i];
            if (fabs(exact) > 3.4028235e38)
                CHECK(isinf(gradient[i]) && got * exact > 0, "scale %g, element %zu: %g", scales[s], i, got);
            else
                CHECK(fabs(got - exact) <= 3 * ulp_of(exact) + wrong, "scale %g, element %zu: got %a, want %a",
                      scales[s], i, got, exact);
        }
    }
}

/* What the mask hides is NaN here, in the scores and in the gradient: it must not be read. */
static void hide(tensor *t, const matrix *m) {
    size_t i, j;
    for (i = 0; i < m->rows; i++)
        for (j = (size_t)m->valid[i]; j < m->columns; j++) {
            set_tensor(t, i * m->columns + j, (double)NAN);
            t->value[i * m->columns + j] = 0; /* for the reference */
        }
}

static void test_masked_softmax(void) {
    static int32_t valid[MOST];
    size_t d, s, i;
    FOR_ALL(d, s) {
        matrix m = {shapes[s][0], shapes[s][1], 0, NULL, valid};
        size_t n = m.rows * m.columns;
        for (i = 0; i < m.rows; i++) /* causal, or anything from 0 to all */
            valid[i] = (int32_t)(s % 2 ? (i < m.columns ? i + 1 : m.columns) : random_u32() % (m.columns + 1));
        fill(&a, dtypes[d], n, 4);
        hide(&a, &m);
        shape(&y, dtypes[(d + 1) % DTYPE_COUNT], n);
        CHECK(mixprec_softmax_masked(memory(&y), y.type, memory(&a), a.type, valid, m.rows, m.columns) == MIXPREC_OK,
              "status");
        softmax_of(want, a.value, &m);
        check_tensor("masked softmax", &y, want, 1e-7);
        fill(&b, dtypes[(d + 2) % DTYPE_COUNT], n, 1);
        hide(&b, &m);
        shape(&y, MIXPREC_F32, n);
        shape(&dx, dtypes[(d + 3) % DTYPE_COUNT], n);
        mixprec_softmax_masked(memory(&y), y.type, memory(&a), a.type, valid, m.rows, m.columns);
        for (i = 0; i < n; i++) /* hidden results are not read either */
            if (i % m.columns >= (size_t)valid[i / m.columns])
                set_tensor(&y, i, (double)NAN);
        CHECK(mixprec_softmax_masked_backward(memory(&dx), dx.type, memory(&b), b.type, memory(&y), y.type, valid,
                                              m.rows, m.columns) == MIXPREC_OK,
              "status");
        differences(want, softmax_of, &m, a.value, n, b.value, n);
        check_tensor("gradient of masked softmax", &dx, want, 1e-6);
        /* all columns: the bits of the function without a mask */
        for (i = 0; i < m.rows; i++)
            valid[i] = (int32_t)m.columns;
        fill(&a, dtypes[d], n, 4);
        shape(&y, dtypes[d], n);
        shape(&dx, dtypes[d], n);
        mixprec_softmax_masked(memory(&y), y.type, memory(&a), a.type, valid, m.rows, m.columns);
        mixprec_softmax(memory(&dx), dx.type, memory(&a), a.type, m.rows, m.columns);
        CHECK(!memcmp(&y.code, &dx.code, sizeof y.code), "a mask that hides nothing changes bits");
        mixprec_softmax_masked_backward(memory(&a), a.type, memory(&b), b.type, memory(&y), y.type, valid, m.rows,
                                        m.columns);
        mixprec_softmax_backward(memory(&dx), dx.type, memory(&b), b.type, memory(&y), y.type, m.rows, m.columns);
        CHECK(!memcmp(memory(&a), memory(&dx), n * mixprec_dtype_size(a.type)), "nor in the gradient");
    }
}

static void test_cross_entropy(void) {
    static const double scales[] = {1, 1.0 / 512, 65536.0 / 512};
    static int32_t targets[MOST];
    static float losses[MOST];
    size_t d, s, i;
    FOR_ALL(d, s) {
        matrix m = {shapes[s][0], shapes[s][1], 0, targets, NULL};
        double weight[MOST], scale = scales[(d + s) % 3];
        size_t n = m.rows * m.columns;
        fill(&a, dtypes[d], n, 4);
        shape(&dx, dtypes[(d + s) % DTYPE_COUNT], n);
        for (i = 0; i < m.rows; i++) {
            targets[i] = i % 7 == 5 ? -100 : (int32_t)(random_u32() % m.columns);
            weight[i] = scale;
        }
        CHECK(mixprec_cross_entropy(memory(&dx), dx.type, losses, memory(&a), a.type, targets, m.rows, m.columns,
                                    scale) == MIXPREC_OK,
              "status");
        cross_entropy_of(want, a.value, &m);
        check_floats("loss", losses, want, m.rows, 0x1p-23);
        differences(want, cross_entropy_of, &m, a.value, n, weight, m.rows);
        check_tensor("gradient of the loss", &dx, want, 1e-7 * scale);
        /* evaluation: no gradient; gradient alone: no losses */
        memset(losses, 0, sizeof losses);
        CHECK(mixprec_cross_entropy(NULL, dx.type, losses, memory(&a), a.type, targets, m.rows, m.columns, 1) ==
                  MIXPREC_OK,
              "status");
        cross_entropy_of(want, a.value, &m);
        check_floats("loss alone", losses, want, m.rows, 0x1p-23);
        shape(&y, dx.type, n);
        mixprec_cross_entropy(memory(&y), y.type, NULL, memory(&a), a.type, targets, m.rows, m.columns, scale);
        CHECK(!memcmp(memory(&y), memory(&dx), n * mixprec_dtype_size(y.type)), "the gradient alone differs");
    }
}

static void test_softmax_special(void) {
    const float rows[5][3] = {
        {1000, 0, -1000}, {-HUGE_VALF, 1, 1}, {HUGE_VALF, 0, 0}, {NAN, 0, 0}, {-HUGE_VALF, -HUGE_VALF, -HUGE_VALF}};
    static const float is[2][3] = {{1, 0, 0}, {0, 0.5f, 0.5f}};
    static const int32_t targets[5] = {2, 0, 0, 0, 1};
    float out[5][3], losses[5];
    int i, j;
    mixprec_softmax(out, MIXPREC_F32, rows, MIXPREC_F32, 5, 3);
    for (i = 0; i < 5; i++)
        for (j = 0; j < 3; j++)
            CHECK(i < 2 ? out[i][j] == is[i][j] : isnan(out[i][j]), "softmax: row %d, column %d: %g", i, j,
                  (double)out[i][j]);
    mixprec_log_softmax(out, MIXPREC_F32, rows, MIXPREC_F32, 5, 3);
    CHECK(out[0][2] == -2000 && out[1][0] == -HUGE_VALF && isnan(out[3][1]), "log softmax: %g %g %g", (double)out[0][2],
          (double)out[1][0], (double)out[3][1]);
    mixprec_cross_entropy(out, MIXPREC_F32, losses, rows, MIXPREC_F32, targets, 5, 3, 1);
    CHECK(losses[0] == 2000 && losses[1] == HUGE_VALF && isnan(losses[2]) && isnan(losses[3]) && isnan(losses[4]),
          "losses: %g %g %g %g %g", (double)losses[0], (double)losses[1], (double)losses[2], (double)losses[3],
          (double)losses[4]);
    CHECK(out[0][0] == 1 && out[0][1] == 0 && out[0][2] == -1 && isnan(out[3][0]), "gradients: %g %g %g",
          (double)out[0][0], (double)out[0][1], (double)out[0][2]);
}

/* ---- normalisation ---- */

typedef struct norm {
    size_t samples, channels, pixels; /* a matrix of rows x columns: samples = rows, channels = columns, pixels = 1 */
    int batch, centred;
    const double *gamma, *beta, *x;
    int of_parameters; /* differentiate by gamma and beta, not by x */
} norm;

/* The textbook: statistics over the elements that share a group, whatever their order in memory. */
static void norm_of(double *out, const double *in, const void *context) {
    const norm *m = (const norm *)context;
    const double *x = m->of_parameters ? m->x : in;
    const double *gamma = m->of_parameters ? in : m->gamma, *beta = m->of_parameters ? in + m->channels : m->beta;
    size_t n = m->samples * m->channels * m->pixels, groups = m->batch ? m->channels : m->samples, group, i;
    for (group = 0; group < groups; group++) {
        double mean = 0, variance = 0, count = (double)(n / groups);
        for (i = 0; i < n; i++)
            if (group == (m->batch ? i / m->pixels % m->channels : i / m->channels))
                mean += x[i] / count;
        if (!m->centred)
            mean = 0;
        for (i = 0; i < n; i++)
            if (group == (m->batch ? i / m->pixels % m->channels : i / m->channels))
                variance += (x[i] - mean) * (x[i] - mean) / count;
        for (i = 0; i < n; i++)
            if (group == (m->batch ? i / m->pixels % m->channels : i / m->channels)) {
                size_t p = i / m->pixels % m->channels;
                out[i] =
                    (x[i] - mean) / sqrt(variance + 1e-3) * (gamma ? gamma[p] : 1) + (m->centred && beta ? beta[p] : 0);
            }
    }
}

static void check_norm(norm m, mixprec_dtype type, mixprec_dtype other, int parameters) {
    static tensor gamma, beta;
    static float mean[MOST], rstd[MOST], dgamma[MOST], dbeta[MOST], before[MOST];
    static double both[2 * MOST];
    size_t n = m.samples * m.channels * m.pixels, i;
    mixprec_status forward, backward;
    fill(&a, type, n, 2);
    fill(&b, other, n, 1);
    fill(&gamma, other, m.channels, 1);
    fill(&beta, other, m.channels, 1);
    shape(&y, other, n);
    shape(&dx, type, n);
    for (i = 0; i < m.channels; i++)
        dgamma[i] = dbeta[i] = before[i] = (float)random_normal();
    m.gamma = parameters ? gamma.value : NULL;
    m.beta = parameters ? beta.value : NULL;
#define PARAMETERS (parameters ? memory(&gamma) : NULL), (parameters ? memory(&beta) : NULL), other
#define BACKWARD memory(&b), b.type, memory(&a), a.type, (parameters ? memory(&gamma) : NULL), other
    if (m.batch) {
        forward = mixprec_batch_norm(memory(&y), y.type, mean, rstd, memory(&a), a.type, PARAMETERS, NULL, NULL, 0,
                                     m.samples, m.channels, m.pixels, 1e-3);
        backward = mixprec_batch_norm_backward(memory(&dx), dx.type, dgamma, dbeta, BACKWARD, mean, rstd, m.samples,
                                               m.channels, m.pixels);
    } else if (m.centred) {
        forward = mixprec_layer_norm(memory(&y), y.type, mean, rstd, memory(&a), a.type, PARAMETERS, m.samples,
                                     m.channels, 1e-3);
        backward = mixprec_layer_norm_backward(memory(&dx), dx.type, dgamma, dbeta, BACKWARD, mean, rstd, m.samples,
                                               m.channels);
    } else {
        forward = mixprec_rms_norm(memory(&y), y.type, rstd, memory(&a), a.type, parameters ? memory(&gamma) : NULL,
                                   other, m.samples, m.channels, 1e-3);
        backward = mixprec_rms_norm_backward(memory(&dx), dx.type, dgamma, BACKWARD, rstd, m.samples, m.channels);
    }
    CHECK(forward == MIXPREC_OK && backward == MIXPREC_OK, "statuses %d, %d", (int)forward, (int)backward);
    norm_of(want, a.value, &m);
    check_tensor("normalised", &y, want, 5e-6);
    differences(want, norm_of, &m, a.value, n, b.value, n);
    check_tensor("gradient of x", &dx, want, 2e-4); /* rows of a few elements divide by small deviations */
    m.x = a.value;
    m.of_parameters = 1;
    for (i = 0; i < m.channels; i++) {
        both[i] = parameters ? gamma.value[i] : 1;
        both[m.channels + i] = parameters ? beta.value[i] : 0;
    }
    differences(want, norm_of, &m, both, 2 * m.channels, b.value, n);
    for (i = 0; i < m.channels; i++)
        want[i] += (double)before[i], want[m.channels + i] += (double)before[i];
    check_floats("gradient of gamma", dgamma, want, m.channels, 3e-5);
    if (m.centred)
        check_floats("gradient of beta", dbeta, want + m.channels, m.channels, 1e-5);
}

static void test_norms(void) {
    static const size_t images[][3] = {{4, 3, 1}, {2, 2, 30}, {1, 2, 300}, {7, 1, 5}};
    size_t d, s;
    FOR_ALL(d, s) {
        norm m = {shapes[s][0], shapes[s][1], 1, 0, 1, NULL, NULL, NULL, 0};
        check_norm(m, dtypes[d], dtypes[(d + 1) % DTYPE_COUNT], s != 3);
        m.centred = 0;
        check_norm(m, dtypes[d], dtypes[(d + 2) % DTYPE_COUNT], s != 3);
    }
    for (d = 0; d < DTYPE_COUNT; d++)
        for (s = 0; s < 4; s++) {
            norm m = {images[s][0], images[s][1], images[s][2], 1, 1, NULL, NULL, NULL, 0};
            check_norm(m, dtypes[d], dtypes[(d + 3) % DTYPE_COUNT], s != 2);
        }
}

/* As a double, on x87, too. */
static double sum_of(double x, double more) {
    volatile double sum = x + more;
    return sum;
}
/* Each of `lanes` lanes adds every lanes-th of n terms, eight of them in f32, these sums in f64. */
static void add_in_order(double *sums, const float *terms, size_t n, size_t lanes) {
    size_t lane, first, i;
    for (lane = 0; lane < lanes; lane++)
        for (first = lane; first < n; first += 8 * lanes) {
            volatile float sum = 0;
            for (i = first; i < n && i < first + 8 * lanes; i += lanes)
                sum += terms[i];
            sums[lane] = sum_of(sums[lane], (double)sum);
        }
}

/* The mean of a channel's first 16 elements (at most those of an image), or of what all are off *centre, or of its
   squares, in the order of the manual. */
static double moment_in_order(const tensor *t, size_t samples, size_t channels, size_t pixels, size_t channel,
                              const float *centre, int squares) {
    const size_t first = pixels > 1 ? pixels : samples, stride = pixels;
    double sums[8] = {0};
    float terms[MOST];
    size_t i, k, n = 0;
    if (!centre && pixels > 1)
        samples = 1, pixels = first < 16 ? first : 16;
    else if (!centre)
        samples = first < 16 ? first : 16;
    for (i = 0; i < samples; i++) {
        for (k = 0; k < pixels; k++) {
            volatile float term = (float)t->value[(i * channels + channel) * stride + k];
            if (centre)
                term -= *centre;
            if (squares)
                term *= term;
            terms[n++] = term;
        }
        if (pixels > 1)
            add_in_order(sums, terms, n, 8), n = 0;
    }
    add_in_order(sums, terms, n, 1);
    for (i = 4; i; i /= 2)
        for (k = 0; k < i; k++)
            sums[k] = sum_of(sums[k], sums[k + i]);
    return sums[0] / (double)(samples * pixels);
}

static void test_order(void) {
    static const size_t sizes[][3] = {{1, 70, 1}, {2, 3, 1},  {31, 9, 1},  {33, 1, 1},  {13, 300, 1}, {257, 8, 1},
                                      {1, 9, 31}, {4, 3, 65}, {2, 5, 400}, {3, 2, 511}, {1, 3, 1300}, {2, 1, 2000}};
    static tensor x, out, gamma, beta;
    static float mean[MOST], rstd[MOST], running[2][MOST], again[2][MOST];
    size_t s, d, i, k, far[2] = {0, 0};
    for (s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (d = 0; d < DTYPE_COUNT; d++) {
            const size_t samples = sizes[s][0], channels = sizes[s][1], pixels = sizes[s][2];
            const size_t n = samples * channels * pixels;
            fill(&x, dtypes[d], n, 3);
            if (pixels > 1 && x.type == MIXPREC_F32) { /* lanes that are added before what gets lost beside them */
                set_tensor(&x, 0, 1e18);
                set_tensor(&x, 4, -1e18);
            }
            for (i = 0; i < channels && d % 2; i += 2) /* elements that say nothing of the mean */
                for (k = 0; k < 16; k++)
                    if (pixels > 1 ? k < pixels : k < samples)
                        set_tensor(&x, pixels > 1 ? i * pixels + k : i + k * channels, 30);
            fill(&gamma, MIXPREC_F32, channels, 1);
            fill(&beta, MIXPREC_F32, channels, 1);
            shape(&out, dtypes[(d + 2) % DTYPE_COUNT], n);
            for (i = 0; i < channels; i++)
                running[0][i] = running[1][i] = 1;
            CHECK(mixprec_batch_norm(memory(&out), out.type, mean, rstd, memory(&x), x.type, memory(&gamma),
                                     memory(&beta), MIXPREC_F32, running[0], running[1], 0.5, samples, channels, pixels,
                                     1e-5) == MIXPREC_OK,
                  "status");
            for (i = 0; i < channels; i++) {
                const size_t count = samples * pixels;
                float about, centre = (float)moment_in_order(&x, samples, channels, pixels, i, NULL, 0);
                volatile double off_squared;
                double off, square, variance, unbiased;
                int round = 0;
                do {
                    about = centre;
                    off = moment_in_order(&x, samples, channels, pixels, i, &about, 0);
                    square = moment_in_order(&x, samples, channels, pixels, i, &about, 1);
                    off_squared = off * off;
                    centre = (float)((double)about + off);
                    variance = square - off_squared;
                } while (off_squared > variance && !round++);
                far[round > 0]++;
                unbiased = variance * (double)count / (double)(count - (count > 1));
                CHECK(mean[i] == centre && rstd[i] == (float)(1 / sqrt(variance + 1e-5)),
                      "%zu x %zu x %zu, channel %zu: mean %.9g (%.9g), rstd %.9g", samples, channels, pixels, i,
                      (double)mean[i], (double)centre, (double)rstd[i]);
                CHECK(fabs((double)running[0][i] - (0.5 + 0.5 * (double)centre)) <=
                              6e-8 * fabs((double)centre) + 6e-8 &&
                          fabs((double)running[1][i] - (0.5 + 0.5 * unbiased)) <= 6e-8 * unbiased + 6e-8,
                      "%zu x %zu x %zu, channel %zu: running %.9g, %.9g (%.9g)", samples, channels, pixels, i,
                      (double)running[0][i], (double)running[1][i], unbiased);
            }
            if (samples == 1 && pixels > 1) {
                CHECK(mixprec_layer_norm(memory(&out), out.type, again[0], again[1], memory(&x), x.type, NULL, NULL,
                                         MIXPREC_F32, channels, pixels, 1e-5) == MIXPREC_OK &&
                          !memcmp(mean, again[0], channels * sizeof *mean) &&
                          !memcmp(rstd, again[1], channels * sizeof *rstd),
                      "rows of %zu have other statistics", pixels);
            }
            CHECK(mixprec_batch_norm_inference(memory(&out), out.type, memory(&x), x.type, memory(&gamma),
                                               memory(&beta), MIXPREC_F32, running[0], running[1], samples, channels,
                                               pixels, 1e-5) == MIXPREC_OK,
                  "status of inference");
            for (i = 0; i < n; i++) {
                const size_t channel = i / pixels % channels;
                want[i] = (x.value[i] - (double)running[0][channel]) / sqrt((double)running[1][channel] + 1e-5) *
                              gamma.value[channel] +
                          beta.value[channel];
            }
            check_tensor("inference", &out, want, 5e-6);
        }
    CHECK(far[0] > 1000 && far[1] > 20, "sums formed once: %zu, twice: %zu", far[0], far[1]);
}

/* More columns than a block has: those that are the same have the same results. */
static void test_many_columns(void) {
    enum { ROWS = 5, COLUMNS = 700, PERIOD = 100 };
    static float x[ROWS * COLUMNS], dy[ROWS * COLUMNS], out[2][ROWS * COLUMNS], statistics[2][COLUMNS],
        sums[2][COLUMNS];
    size_t i, k;
    for (i = 0; i < ROWS * COLUMNS; i++) {
        const int copied = i % COLUMNS >= PERIOD;
        x[i] = copied ? x[i - PERIOD] : (float)random_normal();
        dy[i] = copied ? dy[i - PERIOD] : (float)random_normal();
    }
    memset(sums, 0, sizeof sums);
    CHECK(mixprec_batch_norm(out[0], MIXPREC_F32, statistics[0], statistics[1], x, MIXPREC_F32, NULL, NULL, MIXPREC_F32,
                             NULL, NULL, 0, ROWS, COLUMNS, 1, 1e-5) == MIXPREC_OK &&
              mixprec_batch_norm_backward(out[1], MIXPREC_F32, sums[0], sums[1], dy, MIXPREC_F32, x, MIXPREC_F32, NULL,
                                          MIXPREC_F32, statistics[0], statistics[1], ROWS, COLUMNS, 1) == MIXPREC_OK,
          "status");
    for (i = PERIOD; i < COLUMNS; i++) {
        CHECK(!memcmp(&statistics[0][i], &statistics[0][i - PERIOD], 4) &&
                  !memcmp(&statistics[1][i], &statistics[1][i - PERIOD], 4) &&
                  !memcmp(&sums[0][i], &sums[0][i - PERIOD], 4) && !memcmp(&sums[1][i], &sums[1][i - PERIOD], 4),
              "column %zu: %g %g %g %g", i, (double)statistics[0][i], (double)statistics[1][i], (double)sums[0][i],
              (double)sums[1][i]);
        for (k = 0; k < 2 * ROWS; k++) {
            const float *row = out[k % 2] + k / 2 * COLUMNS;
            CHECK(!memcmp(&row[i], &row[i - PERIOD], 4), "row %zu, column %zu: %g", k / 2, i, (double)row[i]);
        }
    }
}

/* Gradients of gamma and beta alone are those beside dx, and nothing is written after them. */
static void test_parameter_gradients(void) {
    enum { ROWS = 16, N = 24, BEYOND = 8 };
    static float x[ROWS * N], dy[ROWS * N], out[ROWS * N], statistics[2][ROWS * N], dgamma[2][N + BEYOND],
        dbeta[2][N + BEYOND];
    int i, alone;
    size_t pixels;
    for (i = 0; i < ROWS * N; i++)
        x[i] = (float)random_normal(), dy[i] = (float)random_normal();
    for (pixels = 0; pixels <= 8; pixels = pixels ? pixels * 8 : 1) { /* none: layer norm, its last vector not whole */
        const size_t channels = pixels ? N / pixels : N - 3;
        for (i = 0; i < 2 * (N + BEYOND); i++) /* -0 + 0 would be another 0 */
            dgamma[i % 2][i / 2] = dbeta[i % 2][i / 2] = i / 2 < (int)channels ? 0 : -0.0f;
        for (alone = 0; alone < 2; alone++) {
            mixprec_status status;
            if (pixels) {
                mixprec_batch_norm(out, MIXPREC_F32, statistics[0], statistics[1], x, MIXPREC_F32, NULL, NULL,
                                   MIXPREC_F32, NULL, NULL, 0, ROWS, channels, pixels, 1e-5);
                status = mixprec_batch_norm_backward(alone ? NULL : out, MIXPREC_F32, dgamma[alone], dbeta[alone], dy,
                                                     MIXPREC_F32, x, MIXPREC_F32, NULL, MIXPREC_F32, statistics[0],
                                                     statistics[1], ROWS, channels, pixels);
            } else {
                mixprec_layer_norm(out, MIXPREC_F32, statistics[0], statistics[1], x, MIXPREC_F32, NULL, NULL,
                                   MIXPREC_F32, ROWS, channels, 1e-5);
                status = mixprec_layer_norm_backward(alone ? NULL : out, MIXPREC_F32, dgamma[alone], dbeta[alone], dy,
                                                     MIXPREC_F32, x, MIXPREC_F32, NULL, MIXPREC_F32, statistics[0],
                                                     statistics[1], ROWS, channels);
            }
            CHECK(status == MIXPREC_OK, "status");
        }
        CHECK(!memcmp(dgamma[0], dgamma[1], sizeof *dgamma) && !memcmp(dbeta[0], dbeta[1], sizeof *dbeta) &&
                  dgamma[0][channels - 1] != 0 && dbeta[0][channels - 1] != 0,
              "%zu pixels: gradients alone differ", pixels);
        for (i = (int)channels; i < N + BEYOND; i++)
            CHECK(mixprec_f32_bits_(dgamma[0][i]) == 0x80000000u && mixprec_f32_bits_(dbeta[0][i]) == 0x80000000u,
                  "%zu pixels: element %d of %zu", pixels, i, channels);
    }
}

/* Statistics that E[x^2] - E[x]^2 would lose, kept running statistics, and inference with them. */
static void test_statistics(void) {
    static float x[1000], out[1000];
    float mean, rstd, means[2], rstds[2], running_mean = 3, running_variance = 5, gamma = 2, beta = -1;
    double exact_mean = 0, variance = 0;
    int i, k;
    for (i = 0; i < 1000; i++)
        x[i] = 30000 + (float)(i % 2), exact_mean += (double)x[i] / 1000;
    for (i = 0; i < 1000; i++)
        variance += ((double)x[i] - exact_mean) * ((double)x[i] - exact_mean);
    CHECK(mixprec_layer_norm(out, MIXPREC_F32, &mean, &rstd, x, MIXPREC_F32, NULL, NULL, MIXPREC_F32, 1, 1000, 0) ==
              MIXPREC_OK,
          "status");
    CHECK(mean == 30000.5f && rstd == 2.0f && out[0] == -1 && out[1] == 1, "mean %g, rstd %g", (double)mean,
          (double)rstd);
    CHECK(mixprec_batch_norm(out, MIXPREC_F32, &mean, &rstd, x, MIXPREC_F32, NULL, NULL, MIXPREC_F32, &running_mean,
                             &running_variance, 0.1, 10, 1, 100, 1e-5) == MIXPREC_OK,
          "status");
    CHECK(fabs((double)running_mean - (0.9 * 3 + 0.1 * exact_mean)) < 1e-3 &&
              fabs((double)running_variance - (0.9 * 5 + 0.1 * variance / 999)) < 1e-6,
          "running statistics %g %g", (double)running_mean, (double)running_variance);
    CHECK(mixprec_batch_norm_inference(out, MIXPREC_F32, x, MIXPREC_F32, &gamma, &beta, MIXPREC_F32, &running_mean,
                                       &running_variance, 10, 1, 100, 1e-5) == MIXPREC_OK,
          "status");
    for (i = 0; i < 1000; i++) {
        double exact = ((double)x[i] - (double)running_mean) / sqrt((double)running_variance + 1e-5) * 2 - 1;
        CHECK(fabs((double)out[i] - exact) < 1e-6 * fabs(exact), "inference: got %.9g, want %.9g", (double)out[i],
              exact);
    }
    /* q - d^2 is negative where squares vanish: a variance is not */
    x[0] = mixprec_f32_from_bits_(0x21800000u);
    x[1] = mixprec_f32_from_bits_(0x21800001u);
    running_variance = 0;
    mixprec_batch_norm(out, MIXPREC_F32, &mean, &rstd, x, MIXPREC_F32, NULL, NULL, MIXPREC_F32, NULL, &running_variance,
                       1, 1, 1, 2, 1e-5);
    CHECK(mixprec_f32_bits_(running_variance) == 0, "variance of tiny differences: %g", (double)running_variance);
    /* what f32 has no range for: sums and squares that overflow, squares that vanish */
    for (i = 0; i < 100; i++)
        x[i] = i % 2 ? 3e38f : 1e38f;
    mixprec_layer_norm(out, MIXPREC_F32, &mean, &rstd, x, MIXPREC_F32, NULL, NULL, MIXPREC_F32, 1, 100, 1e-5);
    CHECK(fabsf(mean / 2e38f - 1) < 1e-6f && fabsf(out[0] + 1) < 1e-6f && fabsf(out[1] - 1) < 1e-6f,
          "large: mean %g, %g %g", (double)mean, (double)out[0], (double)out[1]);
    for (i = 0; i < 100; i++) /* two rows */
        x[i] = (i % 2 ? 1.5f : 0.5f) * (i < 50 ? 1 : 1e-30f);
    mixprec_layer_norm(out, MIXPREC_F32, means, rstds, x, MIXPREC_F32, NULL, NULL, MIXPREC_F32, 2, 50, 0);
    for (i = 0; i < 100; i++)
        CHECK(fabsf(out[i] - (i % 2 ? 1 : -1)) < 1e-6f, "tiny: means %g, %g, %g at %d", (double)means[0],
              (double)means[1], (double)out[i], i);
    mixprec_rms_norm(out, MIXPREC_F32, rstds, x, MIXPREC_F32, NULL, MIXPREC_F32, 2, 50, 0);
    for (i = 0; i < 100; i++)
        CHECK(fabs((double)out[i] - (i % 2 ? 1.5 : 0.5) / sqrt(1.25)) < 1e-6, "tiny, RMS: %g at %d", (double)out[i], i);
    for (i = 0; i < 100; i++) /* two columns */
        x[i] = (i / 2 % 2 ? 1.5f : 0.5f) * (i % 2 ? 1e-30f : 1);
    mixprec_batch_norm(out, MIXPREC_F32, means, rstds, x, MIXPREC_F32, NULL, NULL, MIXPREC_F32, NULL, NULL, 0, 50, 2, 1,
                       0);
    for (i = 0; i < 100; i++)
        CHECK(fabsf(out[i] - (i / 2 % 2 ? 1 : -1)) < 1e-6f, "tiny, one pixel: means %g, %g, %g at %d", (double)means[0],
              (double)means[1], (double)out[i], i);
    /* constants, whose sums are rounded: no deviation */
    for (k = 0; k < 400; k++) {
        const float constant = (float)ldexp(1 + random_u32() / 4294967296.0, (int)(random_u32() % 100) - 80);
        const size_t n = 1 + random_u32() % 1000;
        for (i = 0; i < 1000; i++)
            x[i] = constant;
        if (k % 3 == 0)
            mixprec_layer_norm(out, MIXPREC_F32, &mean, &rstd, x, MIXPREC_F32, NULL, NULL, MIXPREC_F32, 1, n, 1e-5);
        else
            mixprec_batch_norm(out, MIXPREC_F32, &mean, &rstd, x, MIXPREC_F32, NULL, NULL, MIXPREC_F32, NULL,
                               &running_variance, 1, k % 3 == 1 ? 1 : n, 1, k % 3 == 1 ? n : 1, 1e-5);
        CHECK(mean == constant && rstd == (float)sqrt(1e5) && (k % 3 == 0 || 1 / running_variance > 0),
              "%zu times %.9g: mean %.9g, rstd %.9g", n, (double)constant, (double)mean, (double)rstd);
        for (i = 0; i < (int)n; i++)
            CHECK(out[i] == 0, "%zu times %.9g becomes %g", n, (double)constant, (double)out[i]);
    }
    for (i = 0; i < 10; i++)
        x[i] = 7;
    x[4] = NAN;
    mixprec_layer_norm(out, MIXPREC_F32, NULL, &rstd, x, MIXPREC_F32, NULL, NULL, MIXPREC_F32, 1, 10, 1e-5);
    CHECK(isnan(out[0]) && isnan(rstd), "NaN in a row: %g", (double)out[0]);
    x[4] = HUGE_VALF;
    mixprec_rms_norm(out, MIXPREC_F32, &rstd, x, MIXPREC_F32, NULL, MIXPREC_F32, 1, 10, 1e-5);
    CHECK(rstd == 0 && out[0] == 0 && isnan(out[4]), "Inf in a row: %g %g", (double)rstd, (double)out[4]);
    memset(x, 0, 10 * sizeof *x);
    mixprec_rms_norm(out, MIXPREC_F32, &rstd, x, MIXPREC_F32, NULL, MIXPREC_F32, 1, 10, 0);
    CHECK(rstd == HUGE_VALF && isnan(out[0]), "0 / 0: %g %g", (double)rstd, (double)out[0]);
    /* constant rows whose mean times rstd is beyond fp32: no deviation, and gradients that are finite */
    for (i = 0; i < 10; i++)
        x[i] = 1e37f;
    for (i = 1; i < 10; i++) {
        float dgamma[10] = {0}, sum = 0;
        static const float dy[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
        int j;
        mixprec_layer_norm(out, MIXPREC_F32, &mean, &rstd, x, MIXPREC_F32, NULL, NULL, MIXPREC_F32, 1, (size_t)i, 1e-5);
        mixprec_layer_norm_backward(out, MIXPREC_F32, dgamma, NULL, dy, MIXPREC_F32, x, MIXPREC_F32, NULL, MIXPREC_F32,
                                    &mean, &rstd, 1, (size_t)i);
        for (j = 0; j < i; j++) {
            double exact = (double)rstd * (j - (i - 1) / 2.0);
            CHECK(dgamma[j] == 0 && fabs((double)out[j] - exact) <= 1e-6 * fabs(exact),
                  "constant row of %d, gradient %d: got %g, want %g", i, j, (double)out[j], exact);
            sum += out[j];
        }
        CHECK(fabs((double)sum) < 1e-3, "constant row of %d: the gradients add up to %g", i, (double)sum);
    }
}

static void test_inverse_root(void) {
    int i;
    for (i = 0; i < 200000; i++) {
        double x = ldexp(1 + random_u32() / 4294967296.0, (int)(random_u32() % 200) - 100), exact = 1 / sqrt(x);
        CHECK(fabs((double)mixprec_inverse_root_(x) - exact) <= 0.501 * ldexp(1, ilogb(exact) - 23), "1/sqrt(%a)", x);
    }
}

/* ---- bias, embedding, dropout ---- */

static void test_bias(void) {
    static float dbias[MOST];
    size_t d, s, i;
    FOR_ALL(d, s) {
        size_t rows = shapes[s][0], columns = shapes[s][1], n = rows * columns;
        fill(&a, dtypes[d], n, 1);
        fill(&b, dtypes[(d + 1) % DTYPE_COUNT], columns, 1);
        shape(&y, dtypes[(d + 2) % DTYPE_COUNT], n);
        CHECK(mixprec_bias_add(memory(&y), y.type, memory(&a), a.type, memory(&b), b.type, rows, columns) == MIXPREC_OK,
              "status");
        for (i = 0; i < n; i++)
            want[i] = a.value[i] + b.value[i % columns];
        check_tensor("bias", &y, want, 5e-7);
        for (i = 0; i < columns; i++)
            dbias[i] = (float)(want[i] = random_normal());
        for (i = 0; i < n; i++)
            want[i % columns] += a.value[i];
        CHECK(mixprec_bias_gradient(dbias, memory(&a), a.type, rows, columns, 0) == MIXPREC_OK, "status");
        check_floats("gradient of the bias", dbias, want, columns, 2e-5);
    }
    /* columns 1 and 2 of five */
    fill(&a, MIXPREC_F16, 20, 1);
    dbias[0] = dbias[1] = dbias[2] = 0;
    mixprec_bias_gradient(dbias, (char *)memory(&a) + 2, MIXPREC_F16, 3, 2, 5);
    for (i = 0; i < 2; i++)
        CHECK(fabs((double)dbias[i] - a.value[1 + i] - a.value[6 + i] - a.value[11 + i]) < 1e-6, "ld: %g",
              (double)dbias[i]);
    CHECK(dbias[2] == 0, "ld: wrote a third, %g", (double)dbias[2]);
    /* more rows than a block has, and more columns than a vector */
    fill(&a, MIXPREC_BF16, 100 * 20, 1);
    for (i = 0; i < 17; i++)
        dbias[i] = (float)(want[i] = random_normal());
    for (i = 0; i < 100 * 17; i++)
        want[i % 17] += a.value[i / 17 * 20 + i % 17];
    CHECK(mixprec_bias_gradient(dbias, memory(&a), MIXPREC_BF16, 100, 17, 20) == MIXPREC_OK, "status");
    check_floats("gradient of the bias, rows with gaps", dbias, want, 17, 2e-5);
}

static void test_embedding(void) {
    static const int32_t tokens[] = {3, 0, -1, 3, 9, 3};
    static float dtable[10 * 300];
    static const size_t widths[] = {1, 7, 300};
    size_t d, w, i, j;
    for (d = 0; d < DTYPE_COUNT; d++)
        for (w = 0; w < 3; w++) {
            size_t width = widths[w];
            fill(&a, dtypes[d], 10 * width, 1);
            fill(&b, dtypes[d], 6 * width, 1);
            shape(&y, dtypes[(d + 1) % DTYPE_COUNT], 6 * width);
            CHECK(mixprec_embedding(memory(&y), y.type, memory(&a), a.type, tokens, 6, 10, width) == MIXPREC_OK,
                  "status");
            for (i = 0; i < 6; i++)
                for (j = 0; j < width; j++)
                    want[i * width + j] = tokens[i] < 0 ? 0 : a.value[(size_t)tokens[i] * width + j];
            check_tensor("embedding", &y, want, 0);
            for (i = 0; i < 10 * width; i++)
                dtable[i] = (float)(want[i] = (double)(float)random_normal());
            for (i = 0; i < 6; i++)
                for (j = 0; j < width && tokens[i] >= 0; j++)
                    want[(size_t)tokens[i] * width + j] += b.value[i * width + j];
            CHECK(mixprec_embedding_gradient(dtable, memory(&b), b.type, tokens, 6, 10, width) == MIXPREC_OK, "status");
            check_floats("gradient of the table", dtable, want, 10 * width, 2e-6);
        }
}

static void test_dropout(void) {
    static const float probabilities[] = {0, 0.1f, 0.5f, 0.9f, 1};
    size_t d, p, i;
    for (d = 0; d < DTYPE_COUNT; d++)
        for (p = 0; p < 5; p++) {
            float probability = probabilities[p];
            size_t n = 3000, zeros = 0;
            double deviation = sqrt(3000 * (double)probability * (1 - (double)probability));
            fill(&a, dtypes[d], n, 1);
            shape(&y, dtypes[(d + 1) % DTYPE_COUNT], n);
            CHECK(mixprec_dropout(memory(&y), y.type, memory(&a), a.type, n, probability, 7, 5) == MIXPREC_OK,
                  "status");
            for (i = 0; i < n; i++) {
                int dropped = mixprec_random_bits(7, 5 + i) / 4294967296.0 < (double)probability;
                want[i] = dropped ? 0 : a.value[i] / (1 - (double)probability);
                zeros += (size_t)dropped;
            }
            check_tensor("dropout", &y, want, 2e-6);
            CHECK(fabs((double)zeros - 3000 * (double)probability) <= 4 * deviation, "%zu zeros for probability %g",
                  zeros, (double)probability);
        }
    for (i = 0, p = 0; p < 4; i++) { /* at the threshold: words below 2^24 are floats, and so are those after them */
        uint32_t word = mixprec_random_bits(7, i);
        float one = 1, kept = 0, dropped = 1;
        if (word >> 24)
            continue;
        p++;
        mixprec_dropout(&kept, MIXPREC_F32, &one, MIXPREC_F32, 1, (float)word * 0x1p-32f, 7, i);
        mixprec_dropout(&dropped, MIXPREC_F32, &one, MIXPREC_F32, 1, (float)(word + 1) * 0x1p-32f, 7, i);
        CHECK(kept >= 1 && dropped == 0, "word %u: %g, %g", word, (double)kept, (double)dropped);
    }
    for (i = 0; mixprec_random_bits(7, i) >> 20; i++)
        ;
    {
        const float probability = ((float)mixprec_random_bits(7, i) + 0.5f) * 0x1p-32f, one = 1;
        float dropped = 1;
        mixprec_dropout(&dropped, MIXPREC_F32, &one, MIXPREC_F32, 1, probability, 7, i);
        CHECK(dropped == 0, "between two words: %g", (double)dropped);
    }
    for (i = 0; i < 12; i++)
        set_tensor(&a, i, 1);
    mixprec_dropout(memory(&y), y.type, memory(&a), a.type, 12, 0.5f, 7, UINT64_MAX - 5); /* indices wrap around */
    read_back(&y);
    for (i = 0; i < 12; i++)
        CHECK((y.value[i] == 0) == (mixprec_random_bits(7, UINT64_MAX - 5 + i) < 0x80000000u), "element %zu", i);
}

/* ---- convolution ---- */

typedef struct convolution {
    mixprec_conv2d l;
    size_t out_height, out_width;
    const double *x, *weight, *bias;
    int by; /* differentiate by 0: x, 1: weight, 2: bias */
} convolution;

static size_t step_of(size_t x) {
    return x ? x : 1;
}
static void convolution_of(double *out, const double *in, const void *context) {
    const convolution *v = (const convolution *)context;
    const mixprec_conv2d *l = &v->l;
    const double *x = v->by == 0 ? in : v->x, *weight = v->by == 1 ? in : v->weight, *bias = v->by == 2 ? in : v->bias;
    size_t b_, f, oy, ox, ch, ky, kx;
    for (b_ = 0; b_ < l->batch; b_++)
        for (f = 0; f < l->filters; f++)
            for (oy = 0; oy < v->out_height; oy++)
                for (ox = 0; ox < v->out_width; ox++) {
                    double sum = bias ? bias[f] : 0;
                    for (ch = 0; ch < l->channels; ch++)
                        for (ky = 0; ky < l->kernel_height; ky++)
                            for (kx = 0; kx < l->kernel_width; kx++) {
                                long iy = (long)(oy * step_of(l->stride_y) + ky * step_of(l->dilation_y)) -
                                          (long)l->padding_y;
                                long ix = (long)(ox * step_of(l->stride_x) + kx * step_of(l->dilation_x)) -
                                          (long)l->padding_x;
                                if (iy >= 0 && iy < (long)l->height && ix >= 0 && ix < (long)l->width)
                                    sum +=
                                        x[((b_ * l->channels + ch) * l->height + (size_t)iy) * l->width + (size_t)ix] *
                                        weight[((f * l->channels + ch) * l->kernel_height + ky) * l->kernel_width + kx];
                            }
                    *out++ = sum;
                }
}

static char conv_workspace[1 << 20];

/* What is behind the bytes that are given. */
enum { BEYOND = 256 };
static void mark_beyond(size_t bytes) {
    memset(conv_workspace + bytes, 0xA5, BEYOND);
}
static int is_marked_beyond(size_t bytes) {
    size_t i;
    for (i = 0; i < BEYOND && conv_workspace[bytes + i] == (char)0xA5; i++)
        ;
    return i == BEYOND;
}

static void test_convolution(void) {
    static const mixprec_conv2d layers[] = {
        /* batch, channels, height, width, filters, kernel, stride, dilation, padding */
        {2, 3, 5, 6, 4, 3, 3, 0, 0, 0, 0, 1, 1}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0},
        {1, 2, 7, 9, 3, 3, 2, 2, 3, 1, 1, 0, 2}, {2, 2, 8, 5, 2, 2, 3, 1, 2, 3, 2, 2, 3},
        {1, 2, 3, 3, 5, 1, 1, 2, 2, 1, 1, 0, 0}, {2, 3, 5, 7, 4, 1, 1, 0, 0, 2, 2, 0, 0},
        {2, 2, 5, 7, 3, 1, 1, 0, 0, 0, 0, 1, 0}, {1, 1, 2, 270, 1, 2, 5, 1, 1, 1, 2, 3, 4}};
    static const size_t heights[] = {5, 1, 3, 9, 2, 5, 7, 7}, widths[] = {6, 1, 4, 4, 2, 7, 7, 270};
    static float dweight[MOST], dbias[16], before[MOST], bias_before[16];
    static double by_weight[MOST];
    size_t d, v, i;
    for (d = 0; d < DTYPE_COUNT; d++)
        for (v = 0; v < (test_quick ? 7u : 8u); v++) {
            convolution k = {layers[v], 0, 0, NULL, NULL, NULL, 0};
            mixprec_conv2d l = layers[v];
            size_t weights = l.filters * l.channels * l.kernel_height * l.kernel_width, inputs, outputs, bytes = 0;
            int has_bias = v % 2 == 0;
            CHECK(mixprec_conv2d_output(&l, &k.out_height, &k.out_width) == MIXPREC_OK && k.out_height == heights[v] &&
                      k.out_width == widths[v],
                  "output of layer %zu: %zu x %zu", v, k.out_height, k.out_width);
            CHECK(mixprec_conv2d_workspace(&l, &bytes) == MIXPREC_OK && bytes && bytes < sizeof conv_workspace - BEYOND,
                  "%zu", bytes);
            mark_beyond(1 + bytes);
            inputs = l.batch * l.channels * l.height * l.width;
            outputs = l.batch * l.filters * k.out_height * k.out_width;
            fill(&a, dtypes[d], inputs, 1);
            fill(&b, dtypes[(d + 1) % DTYPE_COUNT], weights, 1);
            fill(&c, dtypes[(d + 2) % DTYPE_COUNT], has_bias ? l.filters : outputs, 1);
            shape(&y, dtypes[(d + 3) % DTYPE_COUNT], outputs);
            k.x = a.value;
            k.weight = b.value;
            k.bias = has_bias ? c.value : NULL;
            CHECK(mixprec_conv2d_forward(&l, memory(&y), y.type, memory(&a), a.type, memory(&b), b.type,
                                         has_bias ? memory(&c) : NULL, c.type, conv_workspace + 1, bytes) == MIXPREC_OK,
                  "status");
            convolution_of(want, a.value, &k);
            check_tensor("convolution", &y, want, 1e-5);

            fill(&c, dtypes[(d + 2) % DTYPE_COUNT], outputs, 1); /* dy */
            shape(&dx, dtypes[(d + 4) % DTYPE_COUNT], inputs);
            CHECK(mixprec_conv2d_backward_input(&l, memory(&dx), dx.type, memory(&c), c.type, memory(&b), b.type,
                                                conv_workspace + 1, bytes) == MIXPREC_OK,
                  "status");
            k.bias = NULL;
            differences(want, convolution_of, &k, a.value, inputs, c.value, outputs);
            check_tensor("gradient of the input", &dx, want, 1e-5);

            for (i = 0; i < weights; i++)
                dweight[i] = before[i] = (float)random_normal();
            for (i = 0; i < l.filters; i++)
                dbias[i] = bias_before[i] = (float)random_normal();
            CHECK(mixprec_conv2d_backward_weight(&l, dweight, has_bias ? dbias : NULL, memory(&c), c.type, memory(&a),
                                                 a.type, conv_workspace + 1, bytes) == MIXPREC_OK,
                  "status");
            k.by = 1;
            differences(by_weight, convolution_of, &k, b.value, weights, c.value, outputs);
            for (i = 0; i < weights; i++)
                by_weight[i] += (double)before[i];
            check_floats("gradient of the weight", dweight, by_weight, weights, 1e-4);
            if (has_bias) {
                double zeros[16] = {0};
                k.by = 2;
                differences(want, convolution_of, &k, zeros, l.filters, c.value, outputs);
                for (i = 0; i < l.filters; i++)
                    want[i] += (double)bias_before[i];
                check_floats("gradient of the bias", dbias, want, l.filters, 1e-4);
                for (i = 0; i < l.filters; i++) { /* image by image, in the order of mixprec_sum */
                    const size_t points = k.out_height * k.out_width;
                    float exact = bias_before[i];
                    size_t image;
                    for (image = 0; image < l.batch; image++) {
                        double sum = 0;
                        mixprec_sum(&sum,
                                    (const char *)memory(&c) +
                                        (image * l.filters + i) * points * mixprec_dtype_size(c.type),
                                    c.type, points);
                        exact = (float)((double)exact + sum);
                    }
                    CHECK(dbias[i] == exact, "gradient of bias %zu: %a, not %a", i, (double)dbias[i], (double)exact);
                }
            }
            CHECK(is_marked_beyond(1 + bytes), "wrote beyond the workspace");
        }
}

/* The gradient of a bias from more numbers than mixprec_sum adds in one block. */
static void test_large_bias_gradient(void) {
    enum { SIDE = 300 };
    const mixprec_conv2d l = {1, 1, SIDE, SIDE, 1, 1, 1, 1, 1, 1, 1, 0, 0};
    static float x[SIDE * SIDE], dy[SIDE * SIDE];
    float dweight = 0, dbias = 0;
    double sum = 1;
    size_t bytes = 0;
    void *workspace;
    CHECK(mixprec_conv2d_workspace(&l, &bytes) == MIXPREC_OK, "workspace");
    workspace = malloc(bytes);
    dy[0] = 0x1p60f;
    dy[65536] = -0x1p60f;
    dy[65568] = 1;
    CHECK(mixprec_conv2d_backward_weight(&l, &dweight, &dbias, dy, MIXPREC_F32, x, MIXPREC_F32, workspace, bytes) ==
              MIXPREC_OK,
          "status");
    mixprec_sum(&sum, dy, MIXPREC_F32, SIDE * SIDE);
    CHECK((double)dbias == sum, "%g, not %g", (double)dbias, sum);
    free(workspace);
}

/* The workspace that is asked for does for every dtype, whatever kernels GEMM chooses for it. */
static void test_convolution_workspace(void) {
    static const size_t filters[] = {1, 2, 3, 5, 9, 17, 40, 200}, channels[] = {1, 6, 17, 33, 60, 200};
    static const size_t widths[] = {1, 4, 9, 40, 300, 935};
    static float in[60000], out[60000], weight[60000];
    size_t i, j, k, d, bytes = 0;
    for (i = 0; i < sizeof filters / sizeof *filters; i++)
        for (j = 0; j < sizeof channels / sizeof *channels; j++)
            for (k = 0; k < sizeof widths / sizeof *widths; k++) {
                mixprec_conv2d l = {1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0};
                l.channels = channels[j];
                l.width = widths[k];
                l.filters = filters[i];
                if (l.filters * l.channels * l.width > 60000)
                    continue;
                CHECK(mixprec_conv2d_workspace(&l, &bytes) == MIXPREC_OK && bytes < sizeof conv_workspace - BEYOND,
                      "%zu", bytes);
                mark_beyond(bytes);
                for (d = 0; d < DTYPE_COUNT; d++) {
                    const mixprec_dtype type = dtypes[d], other = dtypes[(d + k) % DTYPE_COUNT];
                    CHECK(mixprec_conv2d_forward(&l, out, other, in, type, weight, type, NULL, type, conv_workspace,
                                                 bytes) == MIXPREC_OK &&
                              mixprec_conv2d_backward_input(&l, in, type, out, other, weight, type, conv_workspace,
                                                            bytes) == MIXPREC_OK &&
                              mixprec_conv2d_backward_weight(&l, weight, NULL, out, other, in, type, conv_workspace,
                                                             bytes) == MIXPREC_OK,
                          "%zu filters, %zu channels, %zu points, x %s, y %s", l.filters, l.channels, l.width,
                          mixprec_dtype_name(type), mixprec_dtype_name(other));
                    CHECK(is_marked_beyond(bytes), "wrote beyond the workspace: %zu filters, %zu channels, %zu points",
                          l.filters, l.channels, l.width);
                }
            }
}

/* ---- the same bits ---- */

enum { ROWS = 9, COLUMNS = 270, ELEMENTS = ROWS * COLUMNS };

/* A layer that must succeed, in a floating-point environment that is then as before. */
#if HAVE_ENVIRONMENT
static size_t now_environment; /* 0: as it is */
#define IN_ENVIRONMENT(...)                                                                                            \
    do {                                                                                                               \
        environment before_ = get_environment(), after_;                                                               \
        mixprec_status status_;                                                                                        \
        if (now_environment)                                                                                           \
            set_environment(environments[now_environment]);                                                            \
        status_ = (__VA_ARGS__);                                                                                       \
        after_ = get_environment();                                                                                    \
        set_environment(before_);                                                                                      \
        CHECK(status_ == MIXPREC_OK, "status of " #__VA_ARGS__);                                                       \
        CHECK(!now_environment || after_ == environments[now_environment], "environment %zu came back as %llx",        \
              now_environment, (unsigned long long)after_);                                                            \
    } while (0)
#else
#define IN_ENVIRONMENT(...) CHECK((__VA_ARGS__) == MIXPREC_OK, "status of " #__VA_ARGS__)
#endif

/* Runs every layer on rows [0, split), then on the others, and hashes all outputs. No product of floats is inexact. */
static uint64_t all_layers(size_t split) {
    static tensor x, dy, gamma, out;
    static float mean[ROWS], rstd[ROWS], sums[2][3 * COLUMNS], losses[ROWS];
    static const mixprec_conv2d images = {1, 2, 9, 15, 3, 3, 3, 2, 1, 1, 2, 1, 2};
    int32_t index[ROWS];
    uint64_t hash = 0xCBF29CE484222325u;
    size_t d, part, i;
    random_state = 42;
    memset(losses, 0, sizeof losses);
    for (d = 0; d < DTYPE_COUNT; d++) {
        mixprec_dtype type = dtypes[d], other = dtypes[(d + 3) % DTYPE_COUNT];
        int activation;
        fill(&x, type == MIXPREC_F32 ? MIXPREC_F16 : type, ELEMENTS, 2);
        fill(&dy, type, ELEMENTS, 1);
        fill(&gamma, other == MIXPREC_F32 ? MIXPREC_BF16 : other, COLUMNS, 1);
        for (i = 0; i < ROWS; i++)
            index[i] = (int32_t)(random_u32() % 4) - 1;
        memset(sums, 0, sizeof sums);
        shape(&out, type, ELEMENTS);
#define PART(t) (char *)memory(&t) + first *COLUMNS *mixprec_dtype_size((t).type), (t).type
#define RUN(...)                                                                                                       \
    do {                                                                                                               \
        for (part = 0; part < 2; part++) {                                                                             \
            size_t first = part ? split : 0, rows = part ? ROWS - split : split;                                       \
            IN_ENVIRONMENT(__VA_ARGS__);                                                                               \
        }                                                                                                              \
        hash = hash_numbers(hash, memory(&out), ELEMENTS, mixprec_dtype_size(out.type));                               \
        hash = hash_numbers(hash, sums, sizeof sums / 4, 4);                                                           \
        hash = hash_numbers(hash, losses, ROWS, 4);                                                                    \
    } while (0)
        for (activation = 0; activation <= (int)MIXPREC_ACTIVATION_TANH; activation++) {
            RUN(mixprec_activate(PART(out), PART(x), rows * COLUMNS, (mixprec_activation)activation));
            RUN(mixprec_activate_backward(PART(out), PART(dy), PART(x), rows * COLUMNS,
                                          (mixprec_activation)activation));
        }
        RUN(mixprec_softmax(PART(out), PART(x), rows, COLUMNS));
        RUN(mixprec_log_softmax(PART(out), PART(x), rows, COLUMNS));
        RUN(mixprec_softmax_backward(PART(out), PART(dy), PART(x), rows, COLUMNS));
        RUN(mixprec_cross_entropy(PART(out), losses + first, PART(x), index + first, rows, COLUMNS, 0.3));
        RUN(mixprec_layer_norm(PART(out), mean + first, rstd + first, PART(x), memory(&gamma), NULL, gamma.type, rows,
                               COLUMNS, 1e-5));
        RUN(mixprec_layer_norm_backward(PART(out), sums[0], sums[1], PART(dy), PART(x), memory(&gamma), gamma.type,
                                        mean + first, rstd + first, rows, COLUMNS));
        RUN(mixprec_rms_norm(PART(out), rstd + first, PART(x), memory(&gamma), gamma.type, rows, COLUMNS, 1e-5));
        RUN(mixprec_rms_norm_backward(PART(out), sums[0], PART(dy), PART(x), memory(&gamma), gamma.type, rstd + first,
                                      rows, COLUMNS));
        RUN(mixprec_bias_add(PART(out), PART(x), memory(&gamma), gamma.type, rows, COLUMNS));
        RUN(mixprec_bias_gradient(sums[0], PART(dy), rows, COLUMNS, 0));
        RUN(mixprec_embedding(PART(out), memory(&x), x.type, index + first, rows, ROWS, COLUMNS));
        RUN(mixprec_embedding_gradient(sums[0], PART(dy), index + first, rows, 3, COLUMNS));
        RUN(mixprec_dropout(PART(out), PART(x), rows * COLUMNS, 0.3f, 3, first * COLUMNS));
        IN_ENVIRONMENT(mixprec_batch_norm(memory(&out), type, mean, rstd, memory(&x), x.type, NULL, NULL, type, NULL,
                                          NULL, 0, 3, 3, COLUMNS, 1e-5));
        hash = hash_numbers(hash, memory(&out), ELEMENTS, mixprec_dtype_size(type));
        hash = hash_numbers(hash, mean, ROWS, 4);
        memset(sums, 0, sizeof sums);
        memset(memory(&out), 0, ELEMENTS * mixprec_dtype_size(out.type));
        if (type != MIXPREC_F32) { /* f32 * f32 differs where there is no FMA */
            IN_ENVIRONMENT(mixprec_conv2d_forward(&images, memory(&out), type, memory(&x), x.type, memory(&gamma),
                                                  gamma.type, NULL, MIXPREC_F32, conv_workspace,
                                                  sizeof conv_workspace));
            IN_ENVIRONMENT(mixprec_conv2d_backward_weight(&images, sums[0], sums[1], memory(&dy), dy.type, memory(&x),
                                                          x.type, conv_workspace, sizeof conv_workspace));
            hash = hash_numbers(hash, memory(&out), 200, mixprec_dtype_size(out.type));
            IN_ENVIRONMENT(mixprec_conv2d_backward_input(&images, memory(&out), type, memory(&dy), dy.type,
                                                         memory(&gamma), gamma.type, conv_workspace,
                                                         sizeof conv_workspace));
            hash = hash_numbers(hash, memory(&out), 270, mixprec_dtype_size(out.type));
            hash = hash_numbers(hash, sums, sizeof sums / 4, 4);
        }
    }
    return hash;
}

/* What every compiler, level of optimisation, instruction set and CPU must give. */
static const uint64_t all_layers_hash = 0xAEC3736E9BA40E1Cu;
static void test_bits(void) {
    static const size_t splits[] = {0, 1, 4, 8};
    size_t i;
    for (i = 0; i < 4; i++) {
        uint64_t hash = all_layers(splits[i]);
        CHECK(hash == all_layers_hash, "split at row %zu: %016llx", splits[i], (unsigned long long)hash);
    }
}

/* ---- random parts of random tensors give the bits of the whole ---- */

enum { SPLIT_ROWS = 12, SPLIT_LAYERS = 20 };
static struct {
    tensor x, dy, parameters;
    float mean[MOST], rstd[MOST], rms[MOST];
    int32_t valid[MOST], index[MOST];
    size_t rows, columns;
    mixprec_activation activation;
    double scale;
} given;
typedef struct results {
    tensor y;
    float mean[MOST], rstd[MOST], losses[MOST], sums[2][MOST];
} results;
static results whole, parts;

/* Rows `first` to `first + rows` of a layer; of those without rows, what else does not depend on each other. */
static mixprec_status run_rows(int layer, results *r, size_t first, size_t rows) {
    const size_t n = given.columns, parameter = mixprec_dtype_size(given.parameters.type);
    const mixprec_dtype type = given.parameters.type;
    const void *gamma = memory(&given.parameters), *beta = (const char *)gamma + parameter;
    const char *channel = (const char *)gamma + first * parameter;
    float *mean = r->mean + first, *rstd = r->rstd + first;
#define ROWS_OF(t) (char *)memory(&t) + first *n *mixprec_dtype_size((t).type), (t).type
#define X ROWS_OF(given.x)
#define DY ROWS_OF(given.dy)
#define Y ROWS_OF(r->y)
    switch (layer) {
    case 0: return mixprec_activate(Y, X, rows * n, given.activation);
    case 1: return mixprec_activate_backward(Y, DY, X, rows * n, given.activation);
    case 2: return mixprec_softmax(Y, X, rows, n);
    case 3: return mixprec_log_softmax(Y, X, rows, n);
    case 4: return mixprec_softmax_backward(Y, DY, X, rows, n);
    case 5: return mixprec_softmax_masked(Y, X, given.valid + first, rows, n);
    case 6: return mixprec_softmax_masked_backward(Y, DY, X, given.valid + first, rows, n);
    case 7: return mixprec_cross_entropy(Y, r->losses + first, X, given.index + first, rows, n, given.scale);
    case 8: return mixprec_layer_norm(Y, mean, rstd, X, gamma, beta, type, rows, n, 1e-5);
    case 9:
        return mixprec_layer_norm_backward(Y, r->sums[0], r->sums[1], DY, X, gamma, type, given.mean + first,
                                           given.rstd + first, rows, n);
    case 10: return mixprec_rms_norm(Y, rstd, X, gamma, type, rows, n, 1e-5);
    case 11: return mixprec_rms_norm_backward(Y, r->sums[0], DY, X, gamma, type, given.rms + first, rows, n);
    case 12: return mixprec_bias_add(Y, X, gamma, type, rows, n);
    case 13: return mixprec_bias_gradient(r->sums[0], DY, rows, n, 0);
    case 14: /* columns, of which there are as many as rows elsewhere */
        return mixprec_bias_gradient(r->sums[0] + first,
                                     (char *)memory(&given.dy) + first * mixprec_dtype_size(given.dy.type),
                                     given.dy.type, n, rows, given.rows);
    case 15: return mixprec_embedding(Y, memory(&given.x), given.x.type, given.index + first, rows, given.rows, n);
    case 16: return mixprec_embedding_gradient(r->sums[0], DY, given.index + first, rows, given.rows, n);
    case 17: return mixprec_dropout(Y, X, rows * n, 0.3f, 3, first * n);
    case 18: /* channels of one sample */
        return mixprec_batch_norm(Y, mean, rstd, X, channel, channel + parameter, type, NULL, NULL, 0, 1, rows, n,
                                  1e-5);
    default: /* samples of one pixel */
        return mixprec_batch_norm_inference(Y, X, gamma, beta, type, given.mean, given.rstd, rows, n, 1, 1e-5);
    }
#undef ROWS_OF
#undef X
#undef DY
#undef Y
}

/* From one row to another in up to five parts, some of which may be empty. */
static size_t next_cut(size_t from, size_t rows, int cuts) {
    return cuts ? from + random_u32() % (rows - from + 1) : rows;
}

static void test_random_splits(void) {
    const int trials = test_quick ? 50 : 1000;
    int trial, layer;
    random_state = 7;
    for (trial = 0; trial < trials; trial++) {
        const size_t rows = 1 + random_u32() % SPLIT_ROWS, columns = 1 + random_u32() % (random_u32() % 2 ? 20 : 340);
        const mixprec_dtype type = dtypes[random_u32() % DTYPE_COUNT];
        size_t i, first, end;
        given.rows = rows, given.columns = columns;
        given.activation = (mixprec_activation)(1 + random_u32() % 5);
        given.scale = 0.25 * (1 + random_u32() % 8);
        fill(&given.x, dtypes[random_u32() % DTYPE_COUNT], rows * columns, 2);
        fill(&given.dy, dtypes[random_u32() % DTYPE_COUNT], rows * columns, 1);
        fill(&given.parameters, dtypes[random_u32() % DTYPE_COUNT], rows + columns + 1, 1);
        for (i = 0; i < rows; i++) {
            given.valid[i] = (int32_t)(random_u32() % (columns + 1));
            given.index[i] = (int32_t)(random_u32() % ((rows < columns ? rows : columns) + 1)) - 1;
        }
        for (i = 0; i < columns; i++) /* for inference, where there may be more columns than rows */
            given.mean[i] = 0, given.rstd[i] = 1;
        CHECK(mixprec_layer_norm(memory(&given.x), given.x.type, given.mean, given.rstd, memory(&given.x), given.x.type,
                                 NULL, NULL, MIXPREC_F32, rows, columns, 1e-5) == MIXPREC_OK &&
                  mixprec_rms_norm(memory(&given.x), given.x.type, given.rms, memory(&given.x), given.x.type, NULL,
                                   MIXPREC_F32, rows, columns, 1e-5) == MIXPREC_OK,
              "what the backward passes need");
        for (layer = 0; layer < SPLIT_LAYERS; layer++) {
            int cuts = (int)(random_u32() % 5);
            memset(&whole, 0, sizeof whole);
            memset(&parts, 0, sizeof parts);
            shape(&whole.y, type, rows * columns);
            shape(&parts.y, type, rows * columns);
            CHECK(run_rows(layer, &whole, 0, rows) == MIXPREC_OK, "layer %d: the whole", layer);
            for (first = 0; cuts >= 0; first = end) {
                end = next_cut(first, rows, cuts--);
                CHECK(run_rows(layer, &parts, first, end - first) == MIXPREC_OK, "layer %d: rows %zu to %zu", layer,
                      first, end);
            }
            CHECK(!memcmp(&whole, &parts, sizeof whole), "trial %d, layer %d, %s, %s to %s, %zu x %zu: parts differ",
                  trial, layer, mixprec_dtype_name(given.dy.type), mixprec_dtype_name(given.x.type),
                  mixprec_dtype_name(type), rows, columns);
        }
    }
}

/* The images of a batch likewise, and the gradients of weights, which are added image by image. */
static void test_random_batches(void) {
    const int trials = test_quick ? 100 : 1000;
    int trial;
    random_state = 8;
    for (trial = 0; trial < trials; trial++) {
        const mixprec_dtype type = dtypes[random_u32() % DTYPE_COUNT], weight_type = dtypes[random_u32() % DTYPE_COUNT];
        mixprec_conv2d l = {0}, part;
        size_t height, width, inputs, outputs, weights, x_size, y_size, first, end;
        const size_t parameter = mixprec_dtype_size(weight_type);
        int cuts = (int)(random_u32() % 5), layer;
        l.batch = 1 + random_u32() % 5, l.channels = 1 + random_u32() % 3, l.filters = 1 + random_u32() % 3;
        l.height = 3 + random_u32() % 7, l.width = 3 + random_u32() % 12;
        l.kernel_height = 1 + random_u32() % 3, l.kernel_width = 1 + random_u32() % 3;
        l.stride_y = random_u32() % 3, l.stride_x = random_u32() % 3;
        l.padding_y = random_u32() % 2, l.padding_x = random_u32() % 3;
        if (mixprec_conv2d_output(&l, &height, &width) != MIXPREC_OK) {
            CHECK(0, "the shape of an image");
            continue;
        }
        inputs = l.channels * l.height * l.width, outputs = l.filters * height * width;
        weights = l.filters * l.channels * l.kernel_height * l.kernel_width;
        if (l.batch * inputs > MOST || l.batch * outputs > MOST)
            continue;
        fill(&given.x, type, l.batch * inputs, 2);
        fill(&given.dy, dtypes[random_u32() % DTYPE_COUNT], l.batch * outputs, 1);
        fill(&given.parameters, weight_type, weights + l.filters, 1);
        x_size = mixprec_dtype_size(type), y_size = mixprec_dtype_size(given.dy.type);
        for (layer = 0; layer < 3; layer++) {
            results *r = &whole;
            memset(&whole, 0, sizeof whole);
            memset(&parts, 0, sizeof parts);
            shape(&whole.y, layer ? type : given.dy.type, MOST);
            shape(&parts.y, layer ? type : given.dy.type, MOST);
            part = l;
            for (first = 0, end = l.batch; r; first = end) {
                char *x = (char *)memory(&given.x) + first * inputs * x_size;
                char *dy = (char *)memory(&given.dy) + first * outputs * y_size;
                char *out = (char *)memory(&r->y) + first * (layer ? inputs * x_size : outputs * y_size);
                char *weight = memory(&given.parameters);
                if (r == &parts)
                    end = next_cut(first, l.batch, cuts--);
                part.batch = end - first;
                CHECK((layer == 0 ? mixprec_conv2d_forward(&part, out, r->y.type, x, type, weight, weight_type,
                                                           weight + weights * parameter, weight_type, conv_workspace,
                                                           sizeof conv_workspace)
                       : layer == 1
                           ? mixprec_conv2d_backward_input(&part, out, type, dy, given.dy.type, weight, weight_type,
                                                           conv_workspace, sizeof conv_workspace)
                           : mixprec_conv2d_backward_weight(&part, r->sums[0], r->sums[1], dy, given.dy.type, x, type,
                                                            conv_workspace, sizeof conv_workspace)) == MIXPREC_OK,
                      "images %zu to %zu", first, end);
                if (end == l.batch) {
                    r = r == &whole ? &parts : NULL;
                    end = 0;
                }
            }
            cuts = 2;
            CHECK(!memcmp(&whole, &parts, sizeof whole), "trial %d, pass %d, %s, %s: images of a batch differ", trial,
                  layer, mixprec_dtype_name(type), mixprec_dtype_name(given.dy.type));
        }
    }
}

/* ---- the same bits on each path of this machine ---- */

/* A NaN or an Inf makes all that a norm or a softmax gives of its row NaN, on every path: of eight rows, six have none
   and are of moderate size, zeros and subnormals among them; one has every magnitude; one has any code. */
static void spoil_rows(tensor *t, size_t rows, size_t columns) {
    const uint32_t most = mixprec_dtype_size(t->type) == 4   ? 0xFFFFFFFF
                          : mixprec_dtype_size(t->type) == 2 ? 0xFFFF
                                                             : 0xFF;
    size_t i;
    uint32_t kind = 0;
    for (i = 0; i < rows * columns; i++) {
        if (i % columns == 0)
            kind = random_u32() % 8;
        if (random_u32() % (kind < 2 ? 4 : 32) == 0) {
            uint32_t code = random_u32() & most, sign = code & (most ^ most >> 1);
            if (kind == 0 && t->type == MIXPREC_F32 && code % 64 < 8) /* few codes of f32 are Inf or NaN */
                code = 0x7F800000 | (code & 64 ? code : sign);
            if (kind)
                code = kind == 1 && t->type == MIXPREC_F32 ? code & 0xDFFFFFFF : code % 2 ? sign : sign | code % 8 / 2;
            set_code(t, i, code);
        }
    }
}

/* What the kernels of a path are given, the same on each path, and the hash of all that they give. Loops over single
   elements get `wild`, of which a part is Inf in most rows. */
typedef struct path_run {
    const mixprec_kernels_ *kernels;
    tensor x, wild, dy, gamma, out;
    size_t rows, columns;
    int32_t valid[64], targets[64];
    float sums[2][MOST];
    uint64_t hash;
} path_run;

static mixprec_tensor_ on_path(const path_run *run, tensor *t) {
    mixprec_tensor_ view;
    view.kernels = run->kernels;
    view.data = (char *)memory(t);
    view.type = t->type;
    return view;
}

static void hash_out(path_run *run) {
    size_t i;
    for (i = 0; i < run->out.n; i++) { /* a NaN is a NaN */
        uint32_t code = code_at(&run->out, i);
        code = isnan(mixprec_decode(code, run->out.type)) ? 0 : code;
        run->hash = hash_numbers(run->hash, &code, 1, 4);
    }
}

static void hash_floats(path_run *run, const float *x, size_t n) {
    size_t i;
    for (i = 0; i < n; i++)
        run->hash = isnan(x[i]) ? run->hash : hash_numbers(run->hash, &x[i], 1, 4);
}

static void hash_activations(path_run *run) {
    const mixprec_tensor_ out = on_path(run, &run->out), wild = on_path(run, &run->wild), dy = on_path(run, &run->dy);
    int kind;
    for (kind = 0; kind <= (int)MIXPREC_ACTIVATION_TANH; kind++) {
        mixprec_activate_run_(out, NULL, wild, run->out.n, (mixprec_activation)kind);
        hash_out(run);
        mixprec_activate_run_(out, &dy, wild, run->out.n, (mixprec_activation)kind);
        hash_out(run);
    }
}

static void hash_softmax(path_run *run) {
    mixprec_softmax_ softmax;
    float losses[64];
    int kind;
    for (kind = 0; kind < 4; kind++) { /* softmax, its logarithm, with a mask, cross-entropy */
        memset(&softmax, 0, sizeof softmax);
        softmax.x = on_path(run, &run->x);
        softmax.y = on_path(run, &run->out);
        softmax.rows = run->rows;
        softmax.columns = run->columns;
        softmax.logarithm = kind == 1;
        softmax.valid = kind == 2 ? run->valid : NULL;
        softmax.targets = kind == 3 ? run->targets : NULL;
        softmax.losses = kind == 3 ? losses : NULL;
        softmax.scale = kind == 3 ? 0.3 : 1;
        mixprec_softmax_run_(run->kernels, &softmax);
        hash_out(run);
    }
    hash_floats(run, losses, run->rows);
    mixprec_softmax_backward_run_(run->kernels, softmax.y, on_path(run, &run->dy), softmax.x, run->valid, run->rows,
                                  run->columns);
    hash_out(run);
}

static void hash_norms(path_run *run) {
    const size_t rows = run->rows, columns = run->columns;
    float statistics[2][64];
    mixprec_norm_ norms;
    int kind;
    memset(run->sums, 0, sizeof run->sums);
    for (kind = 0; kind < 4; kind++) { /* of rows, of rows by RMS, of channels, of channels with one pixel */
        size_t parameters = kind == 3 ? columns : kind == 2 ? rows : columns;
        if (kind == 3 && columns > 64)
            continue;
        if (kind < 2)
            mixprec_norm_rows_(&norms, rows, columns);
        else
            mixprec_norm_channels_(&norms, kind == 2 ? 1 : rows, kind == 2 ? rows : columns, kind == 2 ? columns : 1);
        norms.centred = kind != 1;
        norms.epsilon = 1e-5;
        norms.x = on_path(run, &run->x);
        norms.y = norms.dx = on_path(run, &run->out);
        norms.dy = on_path(run, &run->dy);
        norms.gamma = norms.beta = on_path(run, &run->gamma);
        norms.mean = statistics[0];
        norms.rstd = statistics[1];
        mixprec_norm_run_(run->kernels, &norms);
        hash_out(run);
        norms.dgamma = run->sums[0];
        norms.dbeta = run->sums[1];
        mixprec_norm_backward_run_(run->kernels, &norms);
        hash_out(run);
        hash_floats(run, run->sums[0], parameters);
        if (!isnan(run->sums[1][0]))
            run->hash = hash_numbers(run->hash, run->sums[1], parameters, 4);
    }
}

/* Dropout, bias, embedding, convolution. */
static void hash_rest(path_run *run, uint32_t seed) {
    const mixprec_tensor_ out = on_path(run, &run->out), wild = on_path(run, &run->wild), dy = on_path(run, &run->dy);
    const size_t rows = run->rows, columns = run->columns;
    int32_t targets[64];
    size_t i;
    mixprec_dropout_run_(run->kernels, out, dy, rows * columns, 0.3f, seed, ((uint64_t)seed << 32) - (seed & 511));
    hash_out(run);
    mixprec_bias_run_(run->kernels, out, wild, on_path(run, &run->gamma), rows, columns);
    hash_out(run);
    memset(run->sums, 0, sizeof run->sums);
    mixprec_add_rows_run_(run->kernels, run->sums[0], dy, NULL, rows, columns - columns / 2, columns);
    for (i = 0; i < rows; i++)
        targets[i] = (int32_t)(i % 3) - 1;
    mixprec_add_rows_run_(run->kernels, run->sums[0], dy, targets, rows, columns, columns);
    mixprec_conv_bias_gradient_run_(run->sums[1], dy, 0, rows, columns);
    run->hash = hash_numbers(run->hash, run->sums, sizeof run->sums / 4, 4);
    if (run->x.type == MIXPREC_F32 && rows > 1 && columns > 1) {
        const mixprec_conv2d layer = {1, 1, 1, columns, 1, 1, 2, 1, 1, 1, 1, 0, 0};
        mixprec_conv_bias_run_(run->kernels, out, 0, (const float *)memory(&run->wild), dy, rows, columns);
        hash_out(run);
        mixprec_col2im_run_(run->kernels, &layer, out, 0, (const float *)memory(&run->wild), 1, columns - 1);
        hash_out(run);
    }
}

/* Every loop that is compiled more than once, run on `kernels` with the same random shapes, dtypes and codes: Inf and
   NaN too, at odd addresses. */
static uint64_t hash_on(const mixprec_kernels_ *kernels, uint32_t seed) {
    static path_run run;
    size_t n, i;
    random_state = seed;
    run.kernels = kernels;
    run.hash = seed;
    run.rows = 1 + random_u32() % 5;
    run.columns = 1 + random_u32() % (seed % 2 ? 70 : 700);
    n = run.rows * run.columns;
    fill(&run.x, dtypes[random_u32() % DTYPE_COUNT], n, seed % 3 ? 3 : 60);
    fill(&run.dy, dtypes[random_u32() % DTYPE_COUNT], n, 1);
    fill(&run.gamma, dtypes[random_u32() % DTYPE_COUNT], run.columns, 1);
    shape(&run.out, dtypes[random_u32() % DTYPE_COUNT], n);
    for (i = 0; i < run.rows; i++) {
        run.valid[i] = (int32_t)(random_u32() % (run.columns + 1));
        run.targets[i] = (int32_t)(random_u32() % (run.columns + 1)) - 1;
    }
    run.wild = run.x;
    if (run.x.type == MIXPREC_F32)
        for (i = 0; i < n; i++) /* every magnitude */
            if (random_u32() % 4 == 0)
                set_code(&run.wild, i, random_u32() % 8 ? random_u32() & 0xDFFFFFFF : 0x7F800000 | random_u32() << 31);
    spoil_rows(&run.x, run.rows, run.columns);
    hash_activations(&run);
    hash_softmax(&run);
    hash_norms(&run);
    hash_rest(&run, seed);
    return run.hash;
}

static void test_paths(void) {
    static const mixprec_isa paths[] = {MIXPREC_ISA_AVX2, MIXPREC_ISA_AVX512, MIXPREC_ISA_NEON};
    uint32_t seed;
    size_t p;
    test_needs("a path with vectors");
    for (p = 0; p < 3; p++)
        for (seed = 1; mixprec_kernels_of_(paths[p]) && seed <= (test_quick ? 60u : 600u); seed++)
            CHECK(hash_on(&mixprec_kernels_c_, seed) == hash_on(mixprec_kernels_of_(paths[p]), seed),
                  "path %d, seed %u: other bits than portable C", (int)paths[p], seed);
}

#if HAVE_ENVIRONMENT
/* What all_layers leaves out. */
static uint64_t rest_of_layers(void) {
    static tensor x, dy, out;
    float mean[3], rstd[3], running[2][3], sums[2][3];
    const int32_t valid[3] = {0, 41, 90};
    static const float thirds[2] = {1.0f / 3, -1e-3f / 3};
    static const mixprec_conv2d images = {1, 2, 7, 6, 2, 3, 3, 0, 0, 0, 0, 0, 0};
    uint64_t hash = 1;
    random_state = 43;
    fill(&x, MIXPREC_BF16, 3 * 90, 1);
    fill(&dy, MIXPREC_F16, 3 * 90, 1);
    shape(&out, MIXPREC_F32, 3 * 90);
    memset(running, 0, sizeof running);
    memset(sums, 0, sizeof sums);
#define HASH(numbers, n) hash = hash_numbers(hash, numbers, n, 4)
    IN_ENVIRONMENT(mixprec_batch_norm(memory(&out), MIXPREC_F32, mean, rstd, memory(&x), MIXPREC_BF16, NULL, NULL,
                                      MIXPREC_F32, running[0], running[1], 0.1, 3, 3, 30, 1e-5));
    HASH(memory(&out), 3 * 90);
    HASH(running, 6);
    IN_ENVIRONMENT(mixprec_batch_norm_inference(memory(&out), MIXPREC_F32, memory(&x), MIXPREC_BF16, NULL, NULL,
                                                MIXPREC_F32, running[0], running[1], 3, 3, 30, 1e-5));
    HASH(memory(&out), 3 * 90);
    IN_ENVIRONMENT(mixprec_batch_norm_backward(memory(&out), MIXPREC_F32, sums[0], sums[1], memory(&dy), MIXPREC_F16,
                                               memory(&x), MIXPREC_BF16, NULL, MIXPREC_F32, mean, rstd, 3, 3, 30));
    HASH(memory(&out), 3 * 90);
    HASH(sums, 6);
    IN_ENVIRONMENT(mixprec_softmax_masked(memory(&out), MIXPREC_F32, memory(&x), MIXPREC_BF16, valid, 3, 90));
    HASH(memory(&out), 3 * 90);
    IN_ENVIRONMENT(mixprec_softmax_masked_backward(memory(&out), MIXPREC_F32, memory(&dy), MIXPREC_F16, memory(&x),
                                                   MIXPREC_BF16, valid, 3, 90));
    HASH(memory(&out), 3 * 90);
    IN_ENVIRONMENT(mixprec_conv2d_forward(&images, memory(&out), MIXPREC_F32, memory(&x), MIXPREC_BF16, memory(&dy),
                                          MIXPREC_F16, thirds, MIXPREC_F32, conv_workspace, sizeof conv_workspace));
    HASH(memory(&out), 2 * 5 * 4);
    fill(&dy, MIXPREC_F32, 2 * 5 * 4, 1);
    IN_ENVIRONMENT(mixprec_conv2d_backward_weight(&images, memory(&out), running[0], memory(&dy), MIXPREC_F32,
                                                  memory(&x), MIXPREC_BF16, conv_workspace, sizeof conv_workspace));
    HASH(memory(&out), 36);
    HASH(running, 2);
#undef HASH
    return hash;
}

static void test_environment(void) {
    static const double odd[] = {-1e-310, (double)NAN};
    static const float odd_f32[] = {-1e-40f, NAN};
    uint64_t usual = 0, rest = 0;
    size_t i, j;
    int refused;
    fill(&a, MIXPREC_F16, 100, 1);
    shape(&y, MIXPREC_F32, 100);
    for (i = 0; i < sizeof environments / sizeof *environments; i++) {
        environment before = get_environment(), after;
        uint64_t hash;
        set_environment(environments[i]);
        mixprec_softmax(memory(&y), MIXPREC_F32, memory(&a), MIXPREC_F16, 5, 20);
        mixprec_activate(memory(&y), MIXPREC_F32, memory(&y), MIXPREC_F32, 50, MIXPREC_ACTIVATION_GELU);
        mixprec_dropout(memory(&y), MIXPREC_F32, memory(&y), MIXPREC_F32, 50, 0.3f, 1, 0);
        /* subnormal and negative, which DAZ takes for 0; NaN, whose comparison raises a flag */
        refused = 0;
        for (j = 0; j < 2; j++) {
            refused += mixprec_rms_norm(memory(&y), MIXPREC_F32, NULL, memory(&a), MIXPREC_F16, NULL, MIXPREC_F32, 5,
                                        20, odd[j]) == MIXPREC_ERR_PARAMETER;
            refused += mixprec_dropout(memory(&y), MIXPREC_F32, memory(&a), MIXPREC_F16, 50, odd_f32[j], 1, 0) ==
                       MIXPREC_ERR_PARAMETER;
        }
        after = get_environment();
        set_environment(before);
        CHECK(refused == 4, "environment %zu: %d of 4 parameters refused", i, refused);
        hash = hash_numbers(1, memory(&y), 100, 4);
        if (i == 0) /* the default one */
            usual = hash;
        CHECK(hash == usual, "environment %zu changes the bits", i);
        CHECK(after == environments[i], "environment %zu came back as %llx", i, (unsigned long long)after);
        now_environment = i;
        hash = all_layers(4);
        CHECK(hash == all_layers_hash, "environment %zu changes the bits of a layer", i);
        hash = rest_of_layers();
        if (i == 0)
            rest = hash;
        CHECK(hash == rest, "environment %zu changes the bits of the rest of the layers", i);
        now_environment = 0;
    }
}
#endif

/* Of the widths one is more than the backward passes keep of a row, so that they read it twice. */
static void in_place(mixprec_dtype type, mixprec_dtype to, size_t rows, size_t columns) {
    const size_t n = rows * columns, bytes = n * mixprec_dtype_size(type);
    static float mean[1500], rstd[1500];
    const int32_t targets[3] = {1, 89, -1}, valid[3] = {0, 41, 90};
    static tensor x, g, out;
#define SAME(name, with_x, separate, in_place)                                                                         \
    do {                                                                                                               \
        fill(&x, type, n, 1);                                                                                          \
        fill(&g, type, n, 1);                                                                                          \
        shape(&out, type, n);                                                                                          \
        mixprec_layer_norm(memory(&out), type, mean, rstd, memory(&x), type, NULL, NULL, type, rows, columns, 1e-5);   \
        CHECK((separate) == MIXPREC_OK && (in_place) == MIXPREC_OK, name ": status");                                  \
        CHECK(!memcmp(memory(&out), memory((with_x) ? &x : &g), bytes), name " in place differs: %s to %s, %zu x %zu", \
              mixprec_dtype_name(type), mixprec_dtype_name(to), rows, columns);                                        \
    } while (0)
#define Y memory(&out), to
#define X memory(&x), type
#define G memory(&g), type
#define OVER_X memory(&x), to
#define OVER_G memory(&g), to
#define EACH(name, call, ...) SAME(name, 1, call(Y, __VA_ARGS__), call(OVER_X, __VA_ARGS__))
#define EACH_BACK(name, call, ...) /* over either input */                                                             \
    SAME(name " on dy", 0, call(Y, __VA_ARGS__), call(OVER_G, __VA_ARGS__));                                           \
    SAME(name " on the other", 1, call(Y, __VA_ARGS__), call(OVER_X, __VA_ARGS__))
    EACH("activate", mixprec_activate, X, n, MIXPREC_ACTIVATION_SILU);
    EACH("softmax", mixprec_softmax, X, rows, columns);
    EACH("log_softmax", mixprec_log_softmax, X, rows, columns);
    EACH("softmax_masked", mixprec_softmax_masked, X, valid, rows, columns);
    SAME("cross_entropy", 1, mixprec_cross_entropy(Y, NULL, X, targets, rows, columns, 2),
         mixprec_cross_entropy(OVER_X, NULL, X, targets, rows, columns, 2));
    SAME("layer_norm", 1, mixprec_layer_norm(Y, NULL, NULL, X, NULL, NULL, type, rows, columns, 1e-5),
         mixprec_layer_norm(OVER_X, NULL, NULL, X, NULL, NULL, type, rows, columns, 1e-5));
    SAME("rms_norm", 1, mixprec_rms_norm(Y, NULL, X, NULL, type, rows, columns, 1e-5),
         mixprec_rms_norm(OVER_X, NULL, X, NULL, type, rows, columns, 1e-5));
    SAME("batch_norm", 1,
         mixprec_batch_norm(Y, mean, rstd, X, NULL, NULL, type, NULL, NULL, 0, rows, 3, columns / 3, 1e-5),
         mixprec_batch_norm(OVER_X, mean, rstd, X, NULL, NULL, type, NULL, NULL, 0, rows, 3, columns / 3, 1e-5));
    SAME("batch_norm of pixels", 1,
         mixprec_batch_norm(Y, mean, rstd, X, NULL, NULL, type, NULL, NULL, 0, rows, columns, 1, 1e-5),
         mixprec_batch_norm(OVER_X, mean, rstd, X, NULL, NULL, type, NULL, NULL, 0, rows, columns, 1, 1e-5));
    EACH("batch_norm_inference", mixprec_batch_norm_inference, X, NULL, NULL, type, rstd, rstd, rows, 3, columns / 3,
         1e-5);
    EACH("bias_add", mixprec_bias_add, X, G, rows, columns);
    SAME("dropout", 0, mixprec_dropout(Y, G, n, 0.5f, 1, 2), mixprec_dropout(OVER_G, G, n, 0.5f, 1, 2));
    EACH_BACK("activate_backward", mixprec_activate_backward, G, X, n, MIXPREC_ACTIVATION_GELU);
    EACH_BACK("softmax_backward", mixprec_softmax_backward, G, X, rows, columns);
    EACH_BACK("softmax_masked_backward", mixprec_softmax_masked_backward, G, X, valid, rows, columns);
    EACH_BACK("layer_norm_backward", mixprec_layer_norm_backward, NULL, NULL, G, X, NULL, type, mean, rstd, rows,
              columns);
    EACH_BACK("rms_norm_backward", mixprec_rms_norm_backward, NULL, G, X, NULL, type, rstd, rows, columns);
    EACH_BACK("batch_norm_backward", mixprec_batch_norm_backward, NULL, NULL, G, X, NULL, type, mean, rstd, rows, 3,
              columns / 3);
    EACH_BACK("batch_norm_backward of pixels", mixprec_batch_norm_backward, NULL, NULL, G, X, NULL, type, mean, rstd,
              rows, columns, 1);
}

static void test_in_place(void) {
    size_t from, to;
    for (from = 0; from < DTYPE_COUNT; from++)
        for (to = 0; to < DTYPE_COUNT; to++)
            if (mixprec_dtype_size(dtypes[from]) == mixprec_dtype_size(dtypes[to])) {
                in_place(dtypes[from], dtypes[to], 3, 90);
                in_place(dtypes[from], dtypes[to], 2, 1500);
            }
}

/* ---- statuses ---- */

/* The arguments of a layer: arrays with their dtypes, and dimensions, in the order of its declaration. */
typedef struct arguments {
    void *p[8];
    mixprec_dtype t[8];
    size_t n[3];
    mixprec_activation activation;
    double epsilon, momentum;
    float probability;
} arguments;

#define T(i) args->p[i], args->t[i]
#define LAYER(name, ...)                                                                                               \
    static mixprec_status call_##name(const arguments *args) {                                                         \
        return mixprec_##name(__VA_ARGS__);                                                                            \
    }                                                                                                                  \
    static mixprec_status call_##name(const arguments *args)
LAYER(activate, T(0), T(1), args->n[0], args->activation);
LAYER(activate_backward, T(0), T(1), T(2), args->n[0], args->activation);
LAYER(softmax, T(0), T(1), args->n[0], args->n[1]);
LAYER(log_softmax, T(0), T(1), args->n[0], args->n[1]);
LAYER(softmax_backward, T(0), T(1), T(2), args->n[0], args->n[1]);
LAYER(softmax_masked, T(0), T(1), args->p[2], args->n[0], args->n[1]);
LAYER(softmax_masked_backward, T(0), T(1), T(2), args->p[3], args->n[0], args->n[1]);
LAYER(cross_entropy, T(0), args->p[1], T(2), args->p[3], args->n[0], args->n[1], 1);
LAYER(layer_norm, T(0), args->p[1], args->p[2], T(3), args->p[4], T(5), args->n[0], args->n[1], args->epsilon);
LAYER(layer_norm_backward, T(0), args->p[1], args->p[2], T(3), T(4), T(5), args->p[6], args->p[7], args->n[0],
      args->n[1]);
LAYER(rms_norm, T(0), args->p[1], T(2), T(3), args->n[0], args->n[1], args->epsilon);
LAYER(rms_norm_backward, T(0), args->p[1], T(2), T(3), T(4), args->p[5], args->n[0], args->n[1]);
LAYER(batch_norm, T(0), args->p[1], args->p[2], T(3), args->p[4], T(5), args->p[6], args->p[7], args->momentum,
      args->n[0], args->n[1], args->n[2], args->epsilon);
LAYER(batch_norm_inference, T(0), T(1), args->p[2], T(3), args->p[4], args->p[5], args->n[0], args->n[1], args->n[2],
      args->epsilon);
LAYER(batch_norm_backward, T(0), args->p[1], args->p[2], T(3), T(4), T(5), args->p[6], args->p[7], args->n[0],
      args->n[1], args->n[2]);
LAYER(bias_add, T(0), T(1), T(2), args->n[0], args->n[1]);
LAYER(bias_gradient, args->p[0], T(1), args->n[0], args->n[1], 0);
LAYER(embedding, T(0), T(1), args->p[2], args->n[0], args->n[1], args->n[2]);
LAYER(embedding_gradient, args->p[0], T(1), args->p[2], args->n[0], args->n[1], args->n[2]);
LAYER(dropout, T(0), T(1), args->n[0], args->probability, 0, 0);

#define WORKSPACE 90000
static mixprec_conv2d convolution_with(const arguments *args) {
    mixprec_conv2d l = {0, 0, 4, 4, 0, 3, 3, 0, 0, 0, 0, 0, 0};
    l.batch = args->n[0];
    l.filters = args->n[1];
    l.channels = args->n[2];
    return l;
}
static mixprec_status call_conv2d_forward(const arguments *args) {
    const mixprec_conv2d l = convolution_with(args);
    return mixprec_conv2d_forward(&l, T(0), T(1), T(2), T(3), args->p[4], WORKSPACE);
}
static mixprec_status call_conv2d_backward_input(const arguments *args) {
    const mixprec_conv2d l = convolution_with(args);
    return mixprec_conv2d_backward_input(&l, T(0), T(1), T(2), args->p[3], WORKSPACE);
}
static mixprec_status call_conv2d_backward_weight(const arguments *args) {
    const mixprec_conv2d l = convolution_with(args);
    return mixprec_conv2d_backward_weight(&l, args->p[0], args->p[1], T(2), T(3), args->p[4], WORKSPACE);
}
#undef T

/* What each array is: y an output with a dtype, f one of f32, w the workspace; s an input that the first output may
   replace, i another with a dtype, g one of f32 or with the next array's dtype, x indices, v counts. Capitals: it may
   be NULL. Of the parameters, e is epsilon, m momentum, p a probability, a an activation. */
typedef struct layer_case {
    const char *name;
    mixprec_status (*call)(const arguments *args);
    const char *arrays, *parameters;
    size_t dimensions, may_be_0; /* how many of them, from the first */
} layer_case;
#define CASE(name, ...)                                                                                                \
    { #name, call_##name, __VA_ARGS__ }
static const layer_case layer_cases[] = {CASE(activate, "ys", "a", 1, 1),
                                         CASE(activate_backward, "yss", "a", 1, 1),
                                         CASE(softmax, "ys", "", 2, 2),
                                         CASE(log_softmax, "ys", "", 2, 2),
                                         CASE(softmax_backward, "yss", "", 2, 2),
                                         CASE(softmax_masked, "ysv", "", 2, 2),
                                         CASE(softmax_masked_backward, "yssv", "", 2, 2),
                                         CASE(cross_entropy, "YFsx", "", 2, 2),
                                         CASE(layer_norm, "yFFsGI", "e", 2, 2),
                                         CASE(layer_norm_backward, "YFFssIgg", "", 2, 2),
                                         CASE(rms_norm, "yFsI", "e", 2, 2),
                                         CASE(rms_norm_backward, "YFssIg", "", 2, 2),
                                         CASE(batch_norm, "yFFsGIFF", "em", 3, 3),
                                         CASE(batch_norm_inference, "ysGIgg", "e", 3, 3),
                                         CASE(batch_norm_backward, "YFFssIgg", "", 3, 3),
                                         CASE(bias_add, "ysi", "", 2, 2),
                                         CASE(bias_gradient, "fi", "", 2, 2),
                                         CASE(embedding, "yix", "", 3, 3),
                                         CASE(embedding_gradient, "fix", "", 3, 3),
                                         CASE(dropout, "ys", "p", 1, 1),
                                         CASE(conv2d_forward, "yiiIw", "", 3, 1),
                                         CASE(conv2d_backward_input, "yiiw", "", 3, 1),
                                         CASE(conv2d_backward_weight, "fFiiw", "", 3, 1)};
#undef CASE

typedef union kilobyte {
    float f32[256];
    int32_t i32[256];
    char bytes[1024];
} kilobyte;
static kilobyte rooms[100], rooms_before[100]; /* array i is in rooms[i + 1], the workspace from rooms[10] on */

/* May a call that succeeds write? One that fails must not. */
static void expect(const layer_case *layer, const arguments *args, mixprec_status status, int may_write,
                   const char *what, size_t which) {
    const mixprec_status got = layer->call(args);
    CHECK(got == status, "%s, %s %zu: status %d (%s), want %d", layer->name, what, which, (int)got,
          mixprec_status_string(got), (int)status);
    if (may_write)
        memcpy(rooms, rooms_before, sizeof rooms);
    CHECK(!memcmp(rooms, rooms_before, sizeof rooms), "%s, %s %zu: wrote", layer->name, what, which);
    memcpy(rooms, rooms_before, sizeof rooms);
}

static void check_nulls_and_dtypes(const layer_case *layer, const arguments *usual) {
    static const mixprec_dtype bad[] = {MIXPREC_NONE, MIXPREC_F64, MIXPREC_E2M1, MIXPREC_I8, (mixprec_dtype)99};
    size_t i, k;
    for (i = 0; layer->arrays[i]; i++) {
        const int optional = strchr("YFIG", layer->arrays[i]) != NULL;
        int none;
        arguments args = *usual;
        args.p[i] = NULL;
        expect(layer, &args, optional ? MIXPREC_OK : MIXPREC_ERR_NULL, optional, "NULL for array", i);
        for (k = 0; strchr("yYsiI", layer->arrays[i]) && k < sizeof bad / sizeof *bad; k++) {
            args = *usual;
            args.t[i] = bad[k];
            expect(layer, &args, MIXPREC_ERR_DTYPE, 0, "dtype of array", i);
            args.p[i] = optional ? NULL : args.p[i];
            if (i && layer->arrays[i - 1] == 'G') /* of the same dtype */
                args.p[i - 1] = args.p[i];
            none = optional && bad[k] == MIXPREC_NONE;
            expect(layer, &args, none ? MIXPREC_OK : MIXPREC_ERR_DTYPE, none, "dtype without array", i);
        }
    }
}
static void check_overlaps(const layer_case *layer, const arguments *usual) {
    size_t i, k;
    for (i = 0; layer->arrays[i]; i++)
        for (k = 0; strchr("yYfFw", layer->arrays[i]) && layer->arrays[k]; k++) {
            const int same = i == 0 && layer->arrays[k] == 's';
            arguments args = *usual;
            if (k == i)
                continue;
            args.p[k] = (char *)args.p[i] + 4;
            expect(layer, &args, MIXPREC_ERR_OVERLAP, 0, "4 bytes behind the start of another: array", k);
            args.p[k] = (char *)args.p[i] - 4;
            expect(layer, &args, MIXPREC_ERR_OVERLAP, 0, "4 bytes before the start of another: array", k);
            args.p[k] = args.p[i];
            expect(layer, &args, same ? MIXPREC_OK : MIXPREC_ERR_OVERLAP, same, "the place of another: array", k);
            args.t[k] = MIXPREC_F16;
            if (same)
                expect(layer, &args, MIXPREC_ERR_OVERLAP, 0, "in place, of another size: array", k);
        }
}
/* Sizes: one dimension, and two of which the product is 0 modulo SIZE_MAX + 1. */
static void check_dimensions(const layer_case *layer, const arguments *usual) {
    const int vocabulary = layer->dimensions == 3 && strchr(layer->arrays, 'x');
    const size_t root = (size_t)1 << sizeof(size_t) * 4;
    size_t i;
    arguments args;
    for (i = 0; i < layer->dimensions; i++) {
        args = *usual;
        args.n[i] = SIZE_MAX / 16 + 1;
        expect(layer, &args, MIXPREC_ERR_SIZE, 0, "dimension", i);
        args.n[i] = args.n[layer->dimensions - 1] = root;
        if (i < layer->dimensions - 1)
            expect(layer, &args, MIXPREC_ERR_SIZE, 0, "a product with the last, of dimension", i);
    }
    for (i = 0; i < layer->may_be_0; i++) {
        args = *usual;
        args.n[i] = 0;
        expect(layer, &args, vocabulary && i == 1 ? MIXPREC_ERR_INDEX : MIXPREC_OK, 0, "0 for dimension", i);
    }
    if (layer->may_be_0 == layer->dimensions) {
        memset(&args.p, 0, sizeof args.p);
        memset(&args.n, 0, sizeof args.n);
        expect(layer, &args, MIXPREC_OK, 0, "0 for all dimensions, NULL for all arrays", 0);
    }
}
static void check_parameters(const layer_case *layer, const arguments *usual) {
    /* Not static: to tcc HUGE_VAL and NAN are not constant. */
    const double bad[] = {-1, -DBL_MIN, -HUGE_VAL, HUGE_VAL, (double)NAN, 1 + DBL_EPSILON};
    const float bad_f32[] = {-1, -FLT_MIN, -HUGE_VALF, HUGE_VALF, NAN, 1 + FLT_EPSILON};
    static const int bad_activations[] = {-1, (int)MIXPREC_ACTIVATION_TANH + 1, 99};
    static const int32_t bad_indices[] = {3, 4, INT32_MAX}, bad_counts[] = {4, INT32_MAX, -1, INT32_MIN};
    const char *valid = strchr(layer->arrays, 'v'), *index = strchr(layer->arrays, 'x');
    size_t i, k;
    for (i = 0; i < 6; i++) {
        arguments args = *usual;
        args.epsilon = bad[i];
        if (strchr(layer->parameters, 'e') && i < 5) /* 1 + DBL_EPSILON is one */
            expect(layer, &args, MIXPREC_ERR_PARAMETER, 0, "epsilon", i);
        args = *usual;
        args.momentum = bad[i];
        if (strchr(layer->parameters, 'm'))
            expect(layer, &args, MIXPREC_ERR_PARAMETER, 0, "momentum", i);
        args.probability = bad_f32[i];
        if (strchr(layer->parameters, 'p'))
            expect(layer, &args, MIXPREC_ERR_PARAMETER, 0, "probability", i);
        args.activation = (mixprec_activation)bad_activations[i % 3];
        if (strchr(layer->parameters, 'a'))
            expect(layer, &args, MIXPREC_ERR_ACTIVATION, 0, "activation", i);
    }
    for (i = 0; (valid || index) && i < 3; i++)
        for (k = 0; k < (valid ? 4 : 3); k++) {
            const size_t room = 1 + (size_t)((valid ? valid : index) - layer->arrays);
            const int32_t good = rooms[room].i32[i];
            rooms[room].i32[i] = rooms_before[room].i32[i] = valid ? bad_counts[k] : bad_indices[k];
            expect(layer, usual, valid ? MIXPREC_ERR_RANGE : MIXPREC_ERR_INDEX, 0, "count or index", k);
            rooms[room].i32[i] = rooms_before[room].i32[i] = good;
        }
}

/* What the declarations promise, argument by argument. */
static void test_arguments(void) {
    static const int32_t indices[] = {0, 2, -1}, counts[] = {3, 0, 2};
    size_t i, k, each;
    for (each = 0; each < sizeof layer_cases / sizeof *layer_cases; each++) {
        const layer_case *layer = &layer_cases[each];
        arguments args;
        memset(&args, 0, sizeof args);
        for (i = 0; i < sizeof rooms / sizeof *rooms; i++)
            for (k = 0; k < 256; k++)
                rooms[i].f32[k] = (float)((i + k) % 13) + 0.5f;
        for (i = 0; layer->arrays[i]; i++) {
            args.p[i] = layer->arrays[i] == 'w' ? &rooms[10] : &rooms[i + 1];
            args.t[i] = MIXPREC_F32;
            if (layer->arrays[i] == 'x' || layer->arrays[i] == 'v')
                memcpy(rooms[i + 1].i32, layer->arrays[i] == 'x' ? indices : counts, sizeof counts);
        }
        memcpy(rooms_before, rooms, sizeof rooms);
        args.n[0] = args.n[1] = args.n[2] = 3;
        args.activation = MIXPREC_ACTIVATION_SILU;
        args.momentum = 1;
        args.probability = 1;
        expect(layer, &args, MIXPREC_OK, 1, "the usual call", 0);
        check_nulls_and_dtypes(layer, &args);
        check_overlaps(layer, &args);
        check_dimensions(layer, &args);
        check_parameters(layer, &args);
    }
}

/* Each call must return the status and write nothing. All memory lies in one array; p(i) is its i-th kilobyte. */
static void test_statuses(void) {
    static float memory_of[100][256], saved[100][256];
    static const mixprec_dtype bad[] = {MIXPREC_NONE, MIXPREC_F64, MIXPREC_E2M1, MIXPREC_I8, (mixprec_dtype)99};
    const size_t huge = SIZE_MAX / 8;
    mixprec_conv2d l = {2, 2, 4, 4, 2, 3, 3, 0, 0, 0, 0, 0, 0}, wrong;
    int32_t index[4] = {0, 1, 3, -1};
    static const int32_t counts[][2] = {{-1, 1}, {1, -1}, {4, 1}, {3, 4}, {1, INT32_MIN}};
    size_t i, h = 77, w = 77, bytes = 0;
    for (i = 0; i < sizeof memory_of / sizeof **memory_of; i++)
        memory_of[i / 256][i % 256] = (float)(i % 13) + 0.5f;
    memcpy(saved, memory_of, sizeof saved);
#define F MIXPREC_F32
#define p(i) memory_of[i]
#define REFUSED(status, call)                                                                                          \
    do {                                                                                                               \
        CHECK_STATUS(#call, call, status);                                                                             \
        CHECK(!memcmp(saved, memory_of, sizeof saved), "%s: wrote", #call);                                            \
        memcpy(memory_of, saved, sizeof saved);                                                                        \
    } while (0)
#define OVERLAPS(call) REFUSED(MIXPREC_ERR_OVERLAP, call)
#define NULLS(call) REFUSED(MIXPREC_ERR_NULL, call)
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        mixprec_dtype t = bad[i];
#define DTYPE(call) REFUSED(MIXPREC_ERR_DTYPE, call)
        DTYPE(mixprec_activate(p(0), t, p(1), F, 9, MIXPREC_ACTIVATION_RELU));
        DTYPE(mixprec_activate(p(0), F, p(1), t, 9, MIXPREC_ACTIVATION_RELU));
        DTYPE(mixprec_activate_backward(p(0), t, p(1), F, p(2), F, 9, MIXPREC_ACTIVATION_RELU));
        DTYPE(mixprec_activate_backward(p(0), F, p(1), t, p(2), F, 9, MIXPREC_ACTIVATION_RELU));
        DTYPE(mixprec_activate_backward(p(0), F, p(1), F, p(2), t, 9, MIXPREC_ACTIVATION_RELU));
        DTYPE(mixprec_softmax(p(0), t, p(1), F, 3, 3));
        DTYPE(mixprec_log_softmax(p(0), F, p(1), t, 3, 3));
        DTYPE(mixprec_softmax_backward(p(0), F, p(1), t, p(2), F, 3, 3));
        DTYPE(mixprec_softmax_masked(p(0), F, p(1), t, index, 4, 4));
        DTYPE(mixprec_softmax_masked_backward(p(0), F, p(1), F, p(2), t, index, 4, 4));
        DTYPE(mixprec_cross_entropy(p(0), t, p(1), p(2), F, index, 4, 4, 1));
        DTYPE(mixprec_cross_entropy(p(0), F, p(1), p(2), t, index, 4, 4, 1));
        DTYPE(mixprec_layer_norm(p(0), F, p(1), p(2), p(3), F, p(4), p(5), t, 3, 3, 0));
        DTYPE(mixprec_layer_norm(p(0), F, p(1), p(2), p(3), t, p(4), p(5), F, 3, 3, 0));
        DTYPE(mixprec_layer_norm_backward(p(0), t, p(1), p(2), p(3), F, p(4), F, p(5), F, p(6), p(7), 3, 3));
        DTYPE(mixprec_rms_norm(p(0), t, p(2), p(3), F, p(4), F, 3, 3, 0));
        DTYPE(mixprec_rms_norm_backward(p(0), F, p(1), p(3), F, p(4), t, p(5), F, p(7), 3, 3));
        DTYPE(mixprec_batch_norm(p(0), t, p(1), p(2), p(3), F, p(4), p(5), F, p(6), p(7), 0, 3, 3, 3, 0));
        DTYPE(mixprec_batch_norm_inference(p(0), F, p(3), t, p(4), p(5), F, p(6), p(7), 3, 3, 3, 0));
        DTYPE(mixprec_batch_norm_backward(p(0), F, p(1), p(2), p(3), t, p(4), F, p(5), F, p(6), p(7), 3, 3, 3));
        DTYPE(mixprec_bias_add(p(0), F, p(1), F, p(2), t, 3, 3));
        DTYPE(mixprec_bias_gradient(p(0), p(1), t, 3, 3, 0));
        DTYPE(mixprec_embedding(p(0), F, p(1), t, index, 4, 4, 4));
        DTYPE(mixprec_embedding_gradient(p(0), p(1), t, index, 4, 4, 4));
        DTYPE(mixprec_dropout(p(0), t, p(1), F, 9, 0.5f, 0, 0));
        DTYPE(mixprec_conv2d_forward(&l, p(0), t, p(1), F, p(2), F, p(3), F, p(4), 90000));
        DTYPE(mixprec_conv2d_backward_input(&l, p(0), F, p(1), t, p(2), F, p(4), 90000));
        DTYPE(mixprec_conv2d_backward_weight(&l, p(0), p(1), p(2), F, p(3), t, p(4), 90000));
    }
    NULLS(mixprec_activate(NULL, F, p(1), F, 9, MIXPREC_ACTIVATION_RELU));
    NULLS(mixprec_activate(p(0), F, NULL, F, 9, MIXPREC_ACTIVATION_RELU));
    NULLS(mixprec_activate_backward(p(0), F, NULL, F, p(2), F, 9, MIXPREC_ACTIVATION_RELU));
    NULLS(mixprec_softmax(p(0), F, NULL, F, 3, 3));
    NULLS(mixprec_log_softmax(NULL, F, p(0), F, 3, 3));
    NULLS(mixprec_softmax_backward(p(0), F, p(1), F, NULL, F, 3, 3));
    NULLS(mixprec_softmax_masked(p(0), F, p(1), F, NULL, 3, 3));
    NULLS(mixprec_softmax_masked_backward(p(0), F, p(1), F, p(2), F, NULL, 3, 3));
    NULLS(mixprec_cross_entropy(p(0), F, p(1), NULL, F, index, 4, 4, 1));
    NULLS(mixprec_cross_entropy(p(0), F, p(1), p(2), F, NULL, 4, 4, 1));
    NULLS(mixprec_layer_norm(NULL, F, p(1), p(2), p(3), F, p(4), p(5), F, 3, 3, 0));
    NULLS(mixprec_layer_norm_backward(p(0), F, p(1), p(2), p(3), F, p(4), F, p(5), F, NULL, p(7), 3, 3));
    NULLS(mixprec_layer_norm_backward(p(0), F, p(1), p(2), p(3), F, p(4), F, p(5), F, p(6), NULL, 3, 3));
    NULLS(mixprec_rms_norm(p(0), F, p(2), NULL, F, p(4), F, 3, 3, 0));
    NULLS(mixprec_rms_norm_backward(p(0), F, p(1), NULL, F, p(4), F, p(5), F, p(7), 3, 3));
    NULLS(mixprec_batch_norm(p(0), F, p(1), p(2), NULL, F, p(4), p(5), F, p(6), p(7), 0, 3, 3, 3, 0));
    NULLS(mixprec_batch_norm_inference(p(0), F, p(3), F, p(4), p(5), F, NULL, p(7), 3, 3, 3, 0));
    NULLS(mixprec_batch_norm_inference(p(0), F, p(3), F, p(4), p(5), F, p(6), NULL, 3, 3, 3, 0));
    CHECK(mixprec_batch_norm_inference(p(0), F, p(3), F, NULL, NULL, F, NULL, NULL, 3, 0, 3, 0) == MIXPREC_OK,
          "inference without channels");
    NULLS(mixprec_batch_norm_backward(p(0), F, p(1), p(2), NULL, F, p(4), F, p(5), F, p(6), p(7), 3, 3, 3));
    NULLS(mixprec_bias_add(p(0), F, p(1), F, NULL, F, 3, 3));
    NULLS(mixprec_bias_gradient(NULL, p(1), F, 3, 3, 0));
    NULLS(mixprec_embedding(p(0), F, NULL, F, index, 4, 4, 4));
    NULLS(mixprec_embedding(p(0), F, p(1), F, NULL, 4, 4, 4));
    NULLS(mixprec_embedding_gradient(NULL, p(1), F, index, 4, 4, 4));
    NULLS(mixprec_dropout(NULL, F, p(1), F, 9, 0.5f, 0, 0));
    NULLS(mixprec_conv2d_output(NULL, &h, &w));
    NULLS(mixprec_conv2d_output(&l, NULL, &w));
    NULLS(mixprec_conv2d_workspace(NULL, &bytes));
    NULLS(mixprec_conv2d_workspace(&l, NULL));
    NULLS(mixprec_conv2d_forward(&l, p(0), F, NULL, F, p(2), F, p(3), F, p(4), 90000));
    NULLS(mixprec_conv2d_forward(&l, p(0), F, p(1), F, p(2), F, p(3), F, NULL, 90000));
    NULLS(mixprec_conv2d_backward_input(&l, NULL, F, p(1), F, p(2), F, p(4), 90000));
    NULLS(mixprec_conv2d_backward_weight(&l, NULL, p(1), p(2), F, p(3), F, p(4), 90000));

    OVERLAPS(mixprec_activate(p(0) + 1, F, p(0), F, 9, MIXPREC_ACTIVATION_RELU));
    OVERLAPS(mixprec_activate(p(0), MIXPREC_F16, p(0), F, 9, MIXPREC_ACTIVATION_RELU)); /* another size */
    OVERLAPS(mixprec_activate_backward(p(0), F, p(0) + 8, F, p(2), F, 9, MIXPREC_ACTIVATION_RELU));
    OVERLAPS(mixprec_softmax(p(0), F, p(0) + 8, F, 3, 3));
    OVERLAPS(mixprec_softmax_backward(p(0), F, p(1), F, p(0) + 1, F, 3, 3));
    OVERLAPS(mixprec_softmax_masked(p(0), F, p(1), F, (int32_t *)(void *)p(0), 4, 4));
    OVERLAPS(mixprec_softmax_masked_backward(p(0), F, p(1), F, p(2), F, (int32_t *)(void *)p(0), 4, 4));
    OVERLAPS(mixprec_cross_entropy(p(0), F, p(0) + 15, p(2), F, index, 4, 4, 1));
    OVERLAPS(mixprec_cross_entropy(p(0), F, p(2), p(2), F, index, 4, 4, 1));
    OVERLAPS(mixprec_cross_entropy(p(0), F, p(1), p(2), F, (int32_t *)(void *)p(0), 4, 4, 1));
    OVERLAPS(mixprec_layer_norm(p(0), F, p(1), p(1), p(3), F, p(4), p(5), F, 3, 3, 0));
    OVERLAPS(mixprec_layer_norm(p(0), F, p(1), p(2), p(3), F, p(0), p(5), F, 3, 3, 0));
    OVERLAPS(mixprec_layer_norm_backward(p(0), F, p(1), p(1), p(3), F, p(4), F, p(5), F, p(6), p(7), 3, 3));
    OVERLAPS(mixprec_rms_norm_backward(p(0), F, p(4), p(3), F, p(4), F, p(5), F, p(7), 3, 3));
    OVERLAPS(mixprec_batch_norm(p(0), F, p(1), p(2), p(3), F, p(4), p(5), F, p(6), p(6), 0, 3, 3, 3, 0));
    OVERLAPS(mixprec_batch_norm_inference(p(0), F, p(3), F, p(4), p(5), F, p(0), p(7), 3, 3, 3, 0));
    OVERLAPS(mixprec_bias_add(p(0), F, p(1), F, p(0), F, 3, 3));
    OVERLAPS(mixprec_bias_gradient(p(0), p(0), F, 3, 3, 0));
    OVERLAPS(mixprec_embedding(p(0), F, p(0), F, index, 4, 4, 4));
    OVERLAPS(mixprec_embedding_gradient(p(0), p(0) + 4, F, index, 4, 4, 4));
    OVERLAPS(mixprec_dropout(p(0) + 1, F, p(0), F, 9, 0.5f, 0, 0));
    OVERLAPS(mixprec_conv2d_forward(&l, p(1), F, p(1), F, p(2), F, p(3), F, p(4), 90000));
    OVERLAPS(mixprec_conv2d_forward(&l, p(0), F, p(1), F, p(2), F, p(5), F, p(4), 90000));
    OVERLAPS(mixprec_conv2d_backward_input(&l, p(0), F, p(1), F, p(0), F, p(4), 90000));
    OVERLAPS(mixprec_conv2d_backward_weight(&l, p(0), p(0), p(2), F, p(3), F, p(4), 90000));

    REFUSED(MIXPREC_ERR_SIZE, mixprec_activate(p(0), F, p(1), F, huge, MIXPREC_ACTIVATION_RELU));
    REFUSED(MIXPREC_ERR_SIZE, mixprec_softmax(p(0), F, p(1), F, huge, 16));
    REFUSED(MIXPREC_ERR_SIZE,
            mixprec_batch_norm(p(0), F, p(1), p(2), p(3), F, p(4), p(5), F, NULL, NULL, 0, huge, huge, huge, 0));
    REFUSED(MIXPREC_ERR_SIZE, mixprec_bias_gradient(p(0), p(1), F, huge, 3, huge));
    REFUSED(MIXPREC_ERR_SIZE, mixprec_bias_gradient(p(0), p(1), F, 2, SIZE_MAX / 16, 0));
    REFUSED(MIXPREC_ERR_SIZE, mixprec_embedding(p(0), F, p(1), F, index, 4, huge, huge));
    wrong = l;
    wrong.filters = huge;
    REFUSED(MIXPREC_ERR_SIZE, mixprec_conv2d_workspace(&wrong, &bytes));
    REFUSED(MIXPREC_ERR_SIZE, mixprec_conv2d_output(&wrong, &h, &w));
    /* an arena is as good a workspace: only what is used counts */
    CHECK(mixprec_conv2d_forward(&l, p(0), F, p(1), F, p(2), F, NULL, F, conv_workspace, SIZE_MAX / 2) == MIXPREC_OK,
          "a large workspace");
    memcpy(memory_of, saved, sizeof saved);
    index[0] = 12;
    CHECK(mixprec_embedding(NULL, F, NULL, F, index, 4, 4, 0) == MIXPREC_OK &&
              mixprec_embedding_gradient(NULL, NULL, F, index, 4, 4, 0) == MIXPREC_OK,
          "a width of 0");
    index[0] = 0;

    REFUSED(MIXPREC_ERR_ACTIVATION, mixprec_activate(p(0), F, p(1), F, 9, (mixprec_activation)6));
    REFUSED(MIXPREC_ERR_ACTIVATION, mixprec_activate_backward(p(0), F, p(1), F, p(2), F, 9, (mixprec_activation)-1));
    for (i = 0; i < sizeof counts / sizeof *counts; i++) {
        REFUSED(MIXPREC_ERR_RANGE, mixprec_softmax_masked(p(0), F, p(1), F, counts[i], 2, 3));
        REFUSED(MIXPREC_ERR_RANGE, mixprec_softmax_masked_backward(p(0), F, p(1), F, p(2), F, counts[i], 2, 3));
    }
    REFUSED(MIXPREC_ERR_INDEX, mixprec_cross_entropy(p(0), F, p(1), p(2), F, index, 4, 3, 1));
    REFUSED(MIXPREC_ERR_INDEX, mixprec_embedding(p(0), F, p(1), F, index, 4, 3, 4));
    REFUSED(MIXPREC_ERR_INDEX, mixprec_embedding_gradient(p(0), p(1), F, index, 4, 3, 4));
    REFUSED(MIXPREC_ERR_LEADING_DIMENSION, mixprec_bias_gradient(p(0), p(1), F, 3, 3, 2));
    REFUSED(MIXPREC_ERR_PARAMETER, mixprec_layer_norm(p(0), F, p(1), p(2), p(3), F, NULL, NULL, F, 3, 3, -1));
    REFUSED(MIXPREC_ERR_PARAMETER, mixprec_layer_norm(p(0), F, p(1), p(2), p(3), F, NULL, NULL, F, 3, 3, (double)NAN));
    REFUSED(MIXPREC_ERR_PARAMETER, mixprec_rms_norm(p(0), F, p(2), p(3), F, NULL, F, 3, 3, HUGE_VAL));
    REFUSED(MIXPREC_ERR_PARAMETER,
            mixprec_batch_norm(p(0), F, p(1), p(2), p(3), F, NULL, NULL, F, p(6), p(7), 1.01, 3, 3, 3, 0));
    REFUSED(MIXPREC_ERR_PARAMETER,
            mixprec_batch_norm_inference(p(0), F, p(3), F, p(4), p(5), F, p(6), p(7), 3, 3, 3, -1));
    REFUSED(MIXPREC_ERR_PARAMETER, mixprec_dropout(p(0), F, p(1), F, 9, 1.01f, 0, 0));
    REFUSED(MIXPREC_ERR_PARAMETER, mixprec_dropout(p(0), F, p(1), F, 9, -0.1f, 0, 0));
    REFUSED(MIXPREC_ERR_PARAMETER, mixprec_dropout(p(0), F, p(1), F, 9, NAN, 0, 0));
#define WRONG(field, value)                                                                                            \
    wrong = l;                                                                                                         \
    wrong.field = value;                                                                                               \
    REFUSED(MIXPREC_ERR_PARAMETER, mixprec_conv2d_output(&wrong, &h, &w));                                             \
    REFUSED(MIXPREC_ERR_PARAMETER, mixprec_conv2d_workspace(&wrong, &bytes));                                          \
    REFUSED(MIXPREC_ERR_PARAMETER, mixprec_conv2d_forward(&wrong, p(0), F, p(1), F, p(2), F, p(3), F, p(4), 90000));   \
    REFUSED(MIXPREC_ERR_PARAMETER, mixprec_conv2d_backward_input(&wrong, p(0), F, p(1), F, p(2), F, p(4), 90000));     \
    REFUSED(MIXPREC_ERR_PARAMETER, mixprec_conv2d_backward_weight(&wrong, p(0), p(1), p(2), F, p(3), F, p(4), 90000))
    { /* a stride of anything for a single output */
        static const float ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
        static unsigned char workspace[65536];
        mixprec_conv2d far = {1, 1, 4, 4, 1, 3, 3, SIZE_MAX, SIZE_MAX, 1, 1, 0, 0};
        float sum = 0;
        CHECK(mixprec_conv2d_forward(&far, &sum, F, ones, F, ones, F, NULL, F, workspace, sizeof workspace) ==
                      MIXPREC_OK &&
                  sum == 9,
              "stride SIZE_MAX: %g", (double)sum);
    }
    WRONG(channels, 0);
    WRONG(height, 0);
    WRONG(width, 2);
    WRONG(filters, 0);
    WRONG(kernel_height, 0);
    WRONG(kernel_width, 5);
    WRONG(kernel_height, 5);
    WRONG(kernel_width, 0);
    WRONG(height, SIZE_MAX / 4 + 1);
    WRONG(width, SIZE_MAX / 4 + 1);
    WRONG(padding_y, SIZE_MAX / 4 + 1);
    WRONG(dilation_y, 2);
    WRONG(padding_x, SIZE_MAX / 2);
    WRONG(dilation_x, SIZE_MAX / 2);
    CHECK(h == 77 && w == 77 && bytes == 0, "sizes were written");
    mixprec_conv2d_workspace(&l, &bytes);
    CHECK(bytes < 90000, "%zu bytes", bytes);
    REFUSED(MIXPREC_ERR_WORKSPACE, mixprec_conv2d_forward(&l, p(0), F, p(1), F, p(2), F, p(3), F, p(4), bytes - 1));
    REFUSED(MIXPREC_ERR_WORKSPACE, mixprec_conv2d_backward_input(&l, p(0), F, p(1), F, p(2), F, p(4), bytes - 1));
    REFUSED(MIXPREC_ERR_WORKSPACE, mixprec_conv2d_backward_weight(&l, p(0), p(1), p(2), F, p(3), F, NULL, 0));
    REFUSED(MIXPREC_ERR_WORKSPACE, mixprec_conv2d_backward_weight(&l, p(0), p(1), p(2), F, p(3), F, p(4), bytes - 1));

    /* nothing to do */
    REFUSED(MIXPREC_OK, mixprec_activate(NULL, F, NULL, F, 0, MIXPREC_ACTIVATION_RELU));
    REFUSED(MIXPREC_OK, mixprec_softmax(NULL, F, NULL, F, 3, 0));
    REFUSED(MIXPREC_OK, mixprec_softmax_masked(NULL, F, NULL, F, NULL, 3, 0));
    REFUSED(MIXPREC_OK, mixprec_cross_entropy(NULL, F, NULL, NULL, F, NULL, 0, 3, 1));
    REFUSED(MIXPREC_OK, mixprec_layer_norm(NULL, F, NULL, NULL, NULL, F, NULL, NULL, F, 0, 3, 1));
    REFUSED(MIXPREC_OK, mixprec_batch_norm(NULL, F, p(1), p(2), NULL, F, NULL, NULL, F, NULL, NULL, 0, 3, 3, 0, 0));
    REFUSED(MIXPREC_OK, mixprec_bias_gradient(p(0), NULL, F, 0, 3, 0));
    REFUSED(MIXPREC_OK, mixprec_embedding(NULL, F, p(1), F, NULL, 0, 3, 4));
    wrong = l;
    wrong.batch = 0;
    REFUSED(MIXPREC_OK, mixprec_conv2d_forward(&wrong, NULL, F, NULL, F, p(2), F, NULL, F, NULL, 0));
}

/* No pass needs more than mixprec_conv2d_workspace tells, on CPUs that are not here, too: nothing is run but the
   planning. */
static void check_conv_workspace(size_t filters, size_t depth, size_t points) {
    mixprec_conv2d l;
    size_t bytes, least, i;
    memset(&l, 0, sizeof l);
    l.batch = l.kernel_height = l.kernel_width = l.height = 1;
    l.channels = depth;
    l.filters = filters;
    l.width = points;
    CHECK_STATUS("workspace", mixprec_conv2d_workspace(&l, &bytes), MIXPREC_OK);
    bytes -= (depth + filters) * points * 4 + 16; /* im2col's matrix, sums; to align them */
    for (i = 0; i < 125; i++) {
        const double one = 1;
        mixprec_gemm_desc d, none = {0};
        d = none; /* forward */
        d.m = filters, d.n = points, d.k = depth;
        d.a_type = dtypes[i / 25], d.b_type = dtypes[i / 5 % 5], d.c_type = dtypes[i % 5];
        CHECK(mixprec_gemm_workspace(&d, NULL, &least) == MIXPREC_OK && least <= bytes,
              "y, %zu x %zu x %zu, types %zu: %zu of %zu bytes", filters, depth, points, i, least, bytes);
        d.c_type = MIXPREC_F32;
        d.m = depth, d.k = filters, d.trans_a = MIXPREC_TRANS;
        CHECK(mixprec_gemm_workspace(&d, NULL, &least) == MIXPREC_OK && least <= bytes,
              "dx, %zu x %zu x %zu, types %zu: %zu of %zu bytes", filters, depth, points, i, least, bytes);
        d.m = filters, d.n = depth, d.k = points;
        d.trans_a = MIXPREC_NO_TRANS, d.trans_b = MIXPREC_TRANS, d.beta = &one;
        CHECK(mixprec_gemm_workspace(&d, NULL, &least) == MIXPREC_OK && least <= bytes,
              "dweight, %zu x %zu x %zu, types %zu: %zu of %zu bytes", filters, depth, points, i, least, bytes);
    }
}
static void test_conv_workspace(void) {
    static const size_t sizes[][3] = {{35, 1, 129},   {1, 24, 14},    {1, 40, 44},
                                      {47, 1, 50176}, {34, 6, 50176}, {46, 1, 532}};
    size_t i;
#ifdef MIXPREC_HAS_AVX512_
    static const int cpus[] = {0, MIXPREC_ISA_AVX512, MIXPREC_ISA_AVX512 | MIXPREC_UNIT_VBMI_,
                               MIXPREC_ISA_AVX512 | MIXPREC_UNIT_VBMI_ | MIXPREC_UNIT_BF16_ | MIXPREC_UNIT_PAIRS_ |
                                   MIXPREC_UNIT_AMD_};
    size_t cpu;
    for (cpu = 0; cpu < sizeof cpus / sizeof *cpus; cpu++) {
        mixprec_features_found_ = cpus[cpu]; /* 0: not asked yet */
#else
    {
#endif
        for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
            check_conv_workspace(sizes[i][0], sizes[i][1], sizes[i][2]);
        for (i = 0; i < (test_quick ? 20 : 200); i++)
            check_conv_workspace(1 + random_u32() % 64, 1 + random_u32() % (i % 2 ? 64 : 700),
                                 1 + random_u32() % 20000);
    }
    library_hide_units(0);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
        {"layers: activations and their slopes, every float of some binades, log", test_elementary},
        {"layers: activations of Inf, NaN and zeros", test_special_values},
        {"layers: ReLU of every code of f16 and bf16", test_relu_codes},
        {"layers: square roots", test_sqrt},
        {"layers: 1 / sqrt", test_inverse_root},
        {"layers: activations and their gradients", test_activations},
        {"layers: slopes far from zero", test_slopes},
        {"layers: softmax, log-softmax and the gradient", test_softmax},
        {"layers: the gradient of a narrow softmax", test_narrow_softmax_gradient},
        {"layers: softmax within 4 ulp", test_softmax_accuracy},
        {"layers: softmax where errors add up", test_softmax_worst},
        {"layers: softmax of long rows", test_long_softmax},
        {"layers: the order of sums in softmax", test_softmax_order},
        {"layers: gradients of cross-entropy at any scale", test_cross_entropy_scales},
        {"layers: softmax under a mask and the gradient", test_masked_softmax},
        {"layers: cross-entropy and its gradient", test_cross_entropy},
        {"layers: softmax of Inf and NaN", test_softmax_special},
        {"layers: layer norm, RMS norm, batch norm and their gradients", test_norms},
        {"layers: the order of sums in normalisation", test_order},
        {"layers: batch norm of many columns", test_many_columns},
        {"layers: gradients of gamma and beta alone", test_parameter_gradients},
        {"layers: statistics of normalisation", test_statistics},
        {"layers: bias and its gradient", test_bias},
        {"layers: embedding and its gradient", test_embedding},
        {"layers: dropout", test_dropout},
        {"layers: convolution and its gradients", test_convolution},
        {"layers: convolution's workspace on other CPUs", test_conv_workspace},
        {"layers: gradient of a bias, several blocks", test_large_bias_gradient},
        {"layers: a convolution's workspace", test_convolution_workspace},
        {"layers: the same bits everywhere and for any split over rows", test_bits},
        {"layers: the same bits for random splits over rows", test_random_splits},
        {"layers: the same bits for random splits over images", test_random_batches},
        {"layers: the same bits on each instruction set", test_paths},
#if HAVE_ENVIRONMENT
        {"layers: the caller's floating-point environment", test_environment},
#endif
        {"layers: in place", test_in_place},
        {"layers: every error status", test_statuses},
        {"layers: every argument's error statuses", test_arguments}
    };
    size_t i;
    test_init(argc, argv);
    for (i = 0; i < sizeof tests / sizeof *tests; i++)
        if (test_begin(tests[i].name)) {
            tests[i].run();
            test_end();
        }
    return test_summary();
}

#endif /* !MIXPREC_IMPLEMENTED_ || TEST_LAYERS_HERE */
