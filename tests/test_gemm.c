/* Tests of mixprec_gemm, mixprec_gemm_ex and mixprec_gemm_workspace, on every instruction set that this CPU has.

       cc -O2 -std=gnu11 tests/test_gemm.c -lm -pthread && ./a.out [--quick] [--filter TEXT]

   The first oracle is the documented order as a scalar loop: tests/dot.h over chunks of 512, then the epilogue, one
   rounding each. Every element must have its bits. The second is a sum in higher precision with an error bound.

   prepare() lays out the matrices of a problem between unmapped pages, with NaN in the padding and in a C that must not
   be read, and computes the expected result; check_paths() runs it on every path and looks at every byte around C. */
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>

#include "library.h"
#include "test.h"

#include "codes.h"
#include "dot.h"
#include "environment.h"
#include "guard.h"

/* ---- random numbers ---- */

static uint64_t random_state;

static uint64_t random_bits(void) { /* an LCG modulo 2^64 whose upper half is used twice */
    uint64_t high;
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    high = random_state >> 32;
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return high << 32 | random_state >> 32;
}

static size_t random_below(size_t n) {
    return (size_t)(random_bits() >> 8) % n;
}

/* ---- codes ---- */

static uint64_t f64_code(double x) {
    uint64_t code;
    memcpy(&code, &x, sizeof code);
    return code;
}

static double f64_value(uint64_t code) {
    double x;
    memcpy(&x, &code, sizeof x);
    return x;
}

static uint64_t encode(double x, mixprec_dtype dtype) {
    if (dtype == MIXPREC_F64)
        return f64_code(x);
    return mixprec_encode(x, dtype, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0);
}

static double rounded_to_f32(double x) {
    volatile float y = (float)x; /* volatile: gcc 12.2 drops a vectorised (double)(float) */
    return (double)y;
}

static double decode(uint64_t code, mixprec_dtype dtype) {
    return dtype == MIXPREC_F64 ? f64_value(code) : mixprec_decode((uint32_t)code, dtype);
}

/* ---- what fills the matrices ---- */

enum values {
    PLAIN,          /* magnitudes from 1/8 to 8 */
    WIDE,           /* any finite f16, e4m3, e5m2; others from 2^-30 to 2^30: no product of bf16 under- or overflows */
    SPECIAL,        /* WIDE, and now and then 0, Inf, NaN, the largest and the smallest values */
    TINY,           /* subnormals: of the type itself, or of f32 for a f64 that will be rounded to it */
    SMALL_INTEGERS, /* 1 to 8 */
    POSITIVE,       /* PLAIN, but none is negative */
    EXACT,          /* small integers of either sign, now and then 0, Inf, NaN: sums are the same in any order */
    ALL_CODES,      /* 0, 1, 2, ... in storage order; what is not finite becomes 0 */
    IDENTITY,
    /* Of bf16 two numbers for A and two for B, of the exponents in `faint`, now and then larger ones: sums of their
       products often leave no more than the last bit of one. Of other types the two smallest numbers. */
    FAINT_A,
    FAINT_B
};

static struct {
    uint64_t exponent[2];         /* biased: 0 for subnormals */
    size_t row, rows, from, step; /* all is 0 but `row`, row + rows ... of A, and from, from + step ... of k, */
    size_t end, columns;          /* and in B what comes before this of k, in so many columns */
} faint = {{0, 0}, 0, 1, 0, 1, 0, 0};

static double random_value(int exponent_range) {
    uint64_t mantissa = random_bits() >> 12;
    int exponent = (int)random_below((size_t)(2 * exponent_range)) - exponent_range;
    return f64_value(random_bits() >> 63 << 63 | (uint64_t)(1023 + exponent) << 52 | mantissa);
}

static uint64_t random_finite_code(mixprec_dtype dtype) {
    for (;;) {
        uint64_t code = random_bits() >> (64 - 8 * mixprec_dtype_size(dtype));
        if (isfinite(decode(code, dtype)))
            return code;
    }
}

static uint64_t special_code(mixprec_dtype dtype) {
    mixprec_format_info info = {0};
    double value = 0;
    mixprec_format(dtype, &info);
    switch (random_below(6)) {
    case 0: value = 0; break;
    case 1: value = HUGE_VAL; break; /* E4M3 has no Inf: NaN */
    case 2: value = (double)NAN; break;
    case 3: value = info.max; break;
    case 4: value = info.min_subnormal; break;
    default: value = info.min_normal; break;
    }
    return encode(random_bits() >> 63 ? -value : value, dtype);
}

static uint64_t random_code(mixprec_dtype dtype, enum values values) {
    int every_finite_code = dtype == MIXPREC_F16 || dtype == MIXPREC_E4M3 || dtype == MIXPREC_E5M2;
    switch (values) {
    case SPECIAL:
        if (random_below(200) == 0)
            return special_code(dtype);
        /* fall through */
    case WIDE: return every_finite_code ? random_finite_code(dtype) : encode(random_value(30), dtype);
    case TINY:
        if (dtype == MIXPREC_F64)
            return encode(ldexp((double)random_below(1 << 20), -149), dtype);
        return random_below((size_t)1 << (dtype == MIXPREC_F32    ? 20
                                          : dtype == MIXPREC_F16  ? 10
                                          : dtype == MIXPREC_BF16 ? 7
                                          : dtype == MIXPREC_E4M3 ? 3
                                                                  : 2));
    case EXACT:
        if (random_below(3000) == 0)
            return encode(random_below(2) ? (double)NAN : random_bits() >> 63 ? HUGE_VAL : -HUGE_VAL, dtype);
        return encode((double)random_below(17) - 8, dtype);
    case SMALL_INTEGERS: return encode((double)(1 + random_below(8)), dtype);
    case FAINT_A:
    case FAINT_B: {
        uint64_t exponent = faint.exponent[values == FAINT_B];
        if (dtype != MIXPREC_BF16)
            return 1 + random_below(2);
        if (random_below(16) == 0)
            return random_below(4) ? (exponent + random_below(40)) << 7 | (random_bits() >> 57) : 0;
        if (values == FAINT_B)
            return exponent << 7 | (1 + random_below(2));
        return random_below(2) ? exponent << 7 | 1 : 0x8000 | exponent << 7;
    }
    case POSITIVE: return encode(fabs(random_value(3)), dtype);
    default: return encode(random_value(3), dtype);
    }
}

/* ---- a problem ---- */

typedef struct problem {
    mixprec_transpose trans_a, trans_b;
    size_t m, n, k;
    mixprec_dtype a_type, b_type, c_type;
    size_t pad_a, pad_b, pad_c; /* elements between the rows */
    double alpha, beta;
    enum values values, values_b; /* values_b == PLAIN: as A */
    mixprec_round round;
    mixprec_overflow overflow;
    uint64_t seed;
    size_t sample; /* check one element in so many; 0: all */
} problem;

static problem now; /* the crash handler and the messages tell of it */

/* ---- memory between unmapped pages ---- */

enum slot { SLOT_A, SLOT_B, SLOT_C, SLOT_WORKSPACE, SLOT_COUNT };
#define SLOT_SIZE ((size_t)1 << 26)
static unsigned char *slots[SLOT_COUNT];

static void make_slots(void) {
    int i;
    for (i = 0; i < SLOT_COUNT; i++)
        slots[i] = guarded(SLOT_SIZE);
}

/* Turns through three places: against the unmapped page behind, against the one before, off alignment by 1 to 64
   elements. */
static unsigned placement;
static unsigned char *place(enum slot slot, size_t bytes, size_t element) {
    if (bytes + 64 * element > SLOT_SIZE) {
        fprintf(stderr, "test_gemm: a slot is too small for %zu bytes\n", bytes);
        exit(2);
    }
    switch (placement++ % 3) {
    case 0: return slots[slot] + SLOT_SIZE - bytes;
    case 1: return slots[slot];
    default: return slots[slot] + element * (1 + placement / 3 % 64);
    }
}

typedef struct matrix {
    unsigned char *data;
    size_t rows, columns, ld, size, bytes; /* as stored; size of an element; bytes from the first to the last element */
    mixprec_dtype dtype;
    unsigned char
        *saved; /* what it held before the call, with MARGIN bytes more before and behind where there is room */
    unsigned char *window;
    size_t window_bytes, saved_capacity;
} matrix;
#define MARGIN 192

static void *grow(void *memory, size_t *capacity, size_t bytes) {
    if (bytes > *capacity) {
        *capacity = bytes + bytes / 2;
        memory = realloc(memory, *capacity);
        if (!memory) {
            perror("test_gemm");
            exit(2);
        }
    }
    return memory;
}

static void make_matrix(matrix *x, enum slot slot, size_t rows, size_t columns, size_t ld, mixprec_dtype dtype,
                        enum values values, int poisoned) {
    size_t i, j, code = 0, before, behind;
    x->rows = rows;
    x->columns = columns;
    x->ld = ld;
    x->dtype = dtype;
    x->size = mixprec_dtype_size(dtype);
    x->bytes = rows && columns ? ((rows - 1) * ld + columns) * x->size : 0;
    x->data = place(slot, x->bytes, x->size);
    before = (size_t)(x->data - slots[slot]);
    behind = SLOT_SIZE - before - x->bytes;
    before = before < MARGIN ? before : MARGIN;
    behind = behind < MARGIN ? behind : MARGIN;
    x->window = x->data - before;
    x->window_bytes = before + x->bytes + behind;
    memset(x->window, random_bits() >> 63 ? 0xFF : 0xA5, x->window_bytes); /* a byte of 0xFF makes NaN of every type */
    for (i = 0; i < rows; i++)
        for (j = 0; j < columns; j++, code++) {
            uint64_t element = ~(uint64_t)0;
            if (values == IDENTITY)
                element = encode(i == j, dtype);
            else if (values == ALL_CODES)
                element = isfinite(decode(code, dtype)) ? code : 0;
            else if (!poisoned)
                element = random_code(dtype, values);
            if (values == FAINT_A || values == FAINT_B) {
                const int trans = (values == FAINT_A ? now.trans_a : now.trans_b) == MIXPREC_TRANS;
                const int k_is_row = trans == (values == FAINT_A);
                if ((k_is_row ? i : j) % faint.step != faint.from ||
                    (values == FAINT_B && ((k_is_row ? i : j) >= faint.end || (k_is_row ? j : i) >= faint.columns)) ||
                    (values == FAINT_A && (k_is_row ? j : i) % faint.rows != faint.row))
                    element = 0;
            }
            store_code(x->data + (i * ld + j) * x->size, element, x->size);
        }
    x->saved = grow(x->saved, &x->saved_capacity, x->window_bytes + 1);
    memcpy(x->saved, x->window, x->window_bytes);
}

static int unchanged(const matrix *x) {
    return !memcmp(x->saved, x->window, x->window_bytes);
}

static void restore(const matrix *x) {
    memcpy(x->window, x->saved, x->window_bytes);
}

/* What an element held before the call. */
static uint64_t saved_code(const matrix *x, size_t i, size_t j) {
    return load_code(x->saved + (x->data - x->window) + (i * x->ld + j) * x->size, x->size);
}

/* ---- its expected result ---- */

static matrix a, b, c;
static double *left, *right; /* op(A) row by row, op(B) column by column, as the accumulator sees them */
static uint64_t *expected_fused, *expected_unfused;
static size_t left_capacity, right_capacity, fused_capacity, unfused_capacity;

static const char *describe(const char *path) {
    static char text[400];
    snprintf(text, sizeof text,
             "%s%s %zux%zux%zu %s x %s -> %s alpha %g beta %g pad %zu %zu %zu values %d round %d/%d on %s",
             now.trans_a ? "T" : "N", now.trans_b ? "T" : "N", now.m, now.n, now.k, mixprec_dtype_name(now.a_type),
             mixprec_dtype_name(now.b_type), mixprec_dtype_name(now.c_type), now.alpha, now.beta, now.pad_a, now.pad_b,
             now.pad_c, (int)now.values, (int)now.round, (int)now.overflow, path);
    return text;
}

static const char *now_path = "";
static const char *describe_now(void) {
    return describe(now_path);
}

static int accumulates_in_f64(void) {
    return now.a_type == MIXPREC_F64 && now.b_type == MIXPREC_F64;
}

/* Only then may multiplying first and adding later give other bits. */
static int products_inexact(void) {
    return now.a_type == MIXPREC_F32 || now.a_type == MIXPREC_F64 || now.b_type == MIXPREC_F32 ||
           now.b_type == MIXPREC_F64 ||
           ((now.a_type == MIXPREC_BF16 || now.b_type == MIXPREC_BF16) &&
            (now.values == SPECIAL || now.values == FAINT_A));
}

static uint64_t expected_element(size_t i, size_t j, int fused) {
    const double *x = left + i * now.k, *y = right + j * now.k;
    double old = now.beta != 0 ? decode(saved_code(&c, i, j), now.c_type) : 0, result;
    int sums = now.k && now.alpha != 0; /* else beta C alone, so that -0 in it survives, or +0 */
    if (accumulates_in_f64() || now.c_type == MIXPREC_F64) {
        double alpha = accumulates_in_f64() ? now.alpha : rounded_to_f32(now.alpha);
        double beta = accumulates_in_f64() ? now.beta : rounded_to_f32(now.beta);
        double sum = !sums                  ? 0
                     : accumulates_in_f64() ? dot_f64(x, y, now.k, fused)
                                            : (double)expected_dot(x, y, now.k, fused);
        volatile double scaled = alpha * sum, scaled_old = beta * old;
        result = beta == 0 ? (sums ? scaled : 0) : sums ? scaled + scaled_old : scaled_old;
    } else {
        float alpha = (float)now.alpha, beta = (float)now.beta, sum = sums ? expected_dot(x, y, now.k, fused) : 0;
        volatile float scaled = alpha * sum, scaled_old = beta * (float)old;
        volatile float both = scaled + scaled_old;
        result = (double)(beta == 0 ? (sums ? scaled : 0) : sums ? both : scaled_old);
    }
    if (now.c_type == MIXPREC_F64 || (now.c_type == MIXPREC_F32 && !accumulates_in_f64()))
        return encode(result, now.c_type); /* nothing is narrowed: no rounding, no saturation */
    return mixprec_encode(result, now.c_type, now.round, now.overflow, mixprec_random_bits(now.seed, i * now.n + j));
}

static int is_sampled(size_t i, size_t j) {
    return now.sample < 2 || ((uint64_t)(i * now.n + j) * 0x9E3779B97F4A7C15u >> 40) % now.sample == 0;
}

static void read_operand(double *to, const matrix *x, int by_rows, size_t count, size_t length) {
    size_t i, j;
    for (i = 0; i < count; i++)
        for (j = 0; j < length; j++) {
            double value = decode(saved_code(x, by_rows ? i : j, by_rows ? j : i), x->dtype);
            to[i * length + j] = accumulates_in_f64() ? value : rounded_to_f32(value);
        }
}

static void prepare(const problem *p) {
    size_t i, j, elements = p->m * p->n;
    int ta = p->trans_a == MIXPREC_TRANS, tb = p->trans_b == MIXPREC_TRANS;
    size_t columns_a = ta ? p->m : p->k, columns_b = tb ? p->k : p->n;
    now = *p;
    make_matrix(&a, SLOT_A, ta ? p->k : p->m, columns_a, columns_a + p->pad_a, p->a_type, p->values, 0);
    make_matrix(&b, SLOT_B, tb ? p->n : p->k, columns_b, columns_b + p->pad_b, p->b_type,
                p->values_b ? p->values_b : p->values, 0);
    make_matrix(&c, SLOT_C, p->m, p->n, p->n + p->pad_c, p->c_type, p->values == TINY ? TINY : PLAIN, p->beta == 0);
    left = grow(left, &left_capacity, (p->m * p->k + 1) * sizeof *left);
    right = grow(right, &right_capacity, (p->n * p->k + 1) * sizeof *right);
    expected_fused = grow(expected_fused, &fused_capacity, (elements + 1) * sizeof *expected_fused);
    expected_unfused = grow(expected_unfused, &unfused_capacity, (elements + 1) * sizeof *expected_unfused);
    if (p->k && p->alpha != 0) {
        read_operand(left, &a, !ta, p->m, p->k);
        read_operand(right, &b, tb, p->n, p->k);
    }
    for (i = 0; i < p->m; i++)
        for (j = 0; j < p->n; j++)
            if (is_sampled(i, j)) {
                uint64_t fused = expected_element(i, j, 1);
                expected_fused[i * p->n + j] = fused;
                expected_unfused[i * p->n + j] = products_inexact() ? expected_element(i, j, 0) : fused;
            }
}

/* ---- running a problem ---- */

static const mixprec_isa all_isas[] = {MIXPREC_ISA_AUTO, MIXPREC_ISA_C, MIXPREC_ISA_AVX2, MIXPREC_ISA_AVX512,
                                       MIXPREC_ISA_NEON};
#define ISA_COUNT ((int)(sizeof all_isas / sizeof *all_isas))

static const char *path_name(mixprec_isa isa) {
    return isa == MIXPREC_ISA_AUTO ? "auto" : mixprec_isa_name(isa);
}

/* 1: the path must agree with the fused reference, 0: with the unfused one, -1: the compiler chooses. Without a
   workspace and without an allocator, portable C runs on the stack. */
static int fuses(mixprec_isa isa, int has_workspace) {
#ifdef MIXPREC_NO_STDLIB
    if (!has_workspace)
        isa = MIXPREC_ISA_C;
#endif
    (void)has_workspace;
    if (isa == MIXPREC_ISA_AUTO)
        isa = mixprec_isa_best();
    if (isa == MIXPREC_ISA_AVX2 || isa == MIXPREC_ISA_AVX512 || isa == MIXPREC_ISA_NEON)
        return 1;
#if defined(__x86_64__) && !defined(__FMA__)
    return 0;
#else
    return -1;
#endif
}

static int ask_native; /* .native of the next calls */

static mixprec_gemm_desc describe_call(mixprec_isa isa) {
    mixprec_gemm_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.trans_a = now.trans_a;
    desc.trans_b = now.trans_b;
    desc.m = now.m;
    desc.n = now.n;
    desc.k = now.k;
    desc.alpha = now.alpha == 1 ? NULL : &now.alpha;
    desc.beta = now.beta == 0 ? NULL : &now.beta;
    desc.a = a.bytes ? a.data : NULL;
    desc.b = b.bytes ? b.data : NULL;
    desc.c = c.bytes ? c.data : NULL;
    desc.a_type = now.a_type;
    desc.b_type = now.b_type;
    desc.c_type = now.c_type;
    desc.lda = now.pad_a ? a.ld : 0;
    desc.ldb = now.pad_b ? b.ld : 0;
    desc.ldc = now.pad_c ? c.ld : 0;
    desc.round = now.round;
    desc.overflow = now.overflow;
    desc.seed = now.seed;
    desc.isa = isa;
    desc.native = ask_native;
    return desc;
}

static int same_code(uint64_t got, uint64_t want) { /* equal bits, or both NaN */
    return got == want || (isnan(decode(got, now.c_type)) && isnan(decode(want, now.c_type)));
}

static void check_around_c(const char *path) {
    size_t i, gap = (size_t)(c.data - c.window), tail = c.window_bytes - gap - c.bytes;
    CHECK(!memcmp(c.window, c.saved, gap), "%s: bytes before C changed", describe(path));
    CHECK(!memcmp(c.data + c.bytes, c.saved + gap + c.bytes, tail), "%s: bytes behind C changed", describe(path));
    for (i = 0; c.bytes && i + 1 < now.m; i++) {
        size_t at = (i * c.ld + now.n) * c.size;
        CHECK(!memcmp(c.data + at, c.saved + gap + at, now.pad_c * c.size), "%s: the padding of row %zu of C changed",
              describe(path), i);
    }
}

static void check_c(const char *path, int fused) {
    size_t i, j;
    for (i = 0; i < now.m; i++)
        for (j = 0; j < now.n; j++)
            if (is_sampled(i, j)) {
                uint64_t got = load_code(c.data + (i * c.ld + j) * c.size, c.size);
                uint64_t want = fused ? expected_fused[i * now.n + j] : expected_unfused[i * now.n + j];
                if (same_code(got, want) || (fused < 0 && same_code(got, expected_unfused[i * now.n + j])))
                    continue;
                CHECK(0, "%s: element (%zu, %zu) got %llx (%g), want %llx (%g)", describe(path), i, j,
                      (unsigned long long)got, decode(got, now.c_type), (unsigned long long)want,
                      decode(want, now.c_type));
                return;
            }
    check_around_c(path);
}

static void check_operands(const char *path) {
    CHECK(unchanged(&a), "%s: A changed", describe(path));
    CHECK(unchanged(&b), "%s: B changed", describe(path));
    CHECK(allocations_live == 0, "%s: %d blocks not freed", describe(path), allocations_live);
}

static void run_path(mixprec_isa isa, void *workspace, size_t workspace_size) {
    mixprec_gemm_desc desc = describe_call(isa);
    mixprec_status status;
    int allocations_before = allocations;
    now_path = path_name(isa);
    desc.workspace = workspace;
    desc.workspace_size = workspace_size;
    restore(&c);
    status = mixprec_gemm_ex(&desc);
    CHECK(status == MIXPREC_OK, "%s: status %d (%s)", describe(now_path), (int)status, mixprec_status_string(status));
    if (workspace)
        CHECK(allocations == allocations_before, "%s: allocated although it had a workspace", describe(now_path));
    check_c(now_path, fuses(isa, workspace != NULL));
    check_operands(now_path);
}

static mixprec_status simple_call(float alpha, float beta) {
    return mixprec_gemm(now.trans_a, now.trans_b, now.m, now.n, now.k, alpha, a.data, now.a_type, a.ld ? a.ld : 1,
                        b.data, now.b_type, b.ld ? b.ld : 1, beta, c.data, now.c_type, c.ld ? c.ld : 1);
}

static void check_simple_call(void) {
    mixprec_status status;
    now_path = "mixprec_gemm";
    restore(&c);
    status = simple_call((float)now.alpha, (float)now.beta);
    CHECK(status == MIXPREC_OK, "%s: status %d (%s)", describe(now_path), (int)status, mixprec_status_string(status));
    check_c(now_path, fuses(MIXPREC_ISA_AUTO, 0));
    check_operands(now_path);
}

static int is_simple(void) {
    return now.round == MIXPREC_ROUND_NEAREST_EVEN && now.overflow == MIXPREC_OVERFLOW_IEEE &&
           rounded_to_f32(now.alpha) == now.alpha && rounded_to_f32(now.beta) == now.beta;
}

/* The problem on every path; one in four calls with the least workspace. */
static void check_paths(const problem *p) {
    int i;
    prepare(p);
    for (i = 0; i < ISA_COUNT; i++)
        if (runs_here(all_isas[i])) {
            mixprec_gemm_desc desc = describe_call(all_isas[i]);
            size_t least = 0;
            CHECK(mixprec_gemm_workspace(&desc, NULL, &least) == MIXPREC_OK, "%s", describe("workspace"));
            if (random_below(4))
                run_path(all_isas[i], NULL, 0);
            else
                run_path(all_isas[i], place(SLOT_WORKSPACE, least, 1), least);
        }
    if (is_simple())
        check_simple_call();
}

static const mixprec_dtype all_dtypes[] = {MIXPREC_F32,  MIXPREC_F64,  MIXPREC_F16,
                                           MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
#define DTYPE_COUNT 6

static problem plain_problem(mixprec_dtype a_type, mixprec_dtype b_type, mixprec_dtype c_type, size_t m, size_t n,
                             size_t k) {
    problem p;
    memset(&p, 0, sizeof p);
    p.m = m;
    p.n = n;
    p.k = k;
    p.a_type = a_type;
    p.b_type = b_type;
    p.c_type = c_type;
    p.alpha = 1;
    return p;
}

static const double factors[] = {0, 1, -1, 0.5, 1.7};

/* Everything that sizes and types leave open. */
static void randomise(problem *p) {
    p->trans_a = random_below(2) ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
    p->trans_b = random_below(2) ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
    p->pad_a = random_below(2) * random_below(20);
    p->pad_b = random_below(2) * random_below(20);
    p->pad_c = random_below(2) * random_below(20);
    p->alpha = factors[1 + random_below(4)];
    p->beta = random_below(2) ? 0 : factors[random_below(5)];
    p->values = random_below(2) ? WIDE : PLAIN;
}

/* ---- sizes and types ---- */

static void test_small_sizes(void) {
    static const size_t sizes[] = {0, 1, 2, 3, 7, 31, 63};
    int i, x, y, trans;
    random_state = 1;
    for (i = 0; i < 343; i++)
        for (trans = 0; trans < 4; trans++) {
            problem p =
                plain_problem(MIXPREC_F16, MIXPREC_F16, MIXPREC_F32, sizes[i / 49], sizes[i / 7 % 7], sizes[i % 7]);
            if (test_quick && random_below(4))
                continue;
            randomise(&p);
            p.trans_a = (mixprec_transpose)(trans & 1);
            p.trans_b = (mixprec_transpose)(trans >> 1);
            check_paths(&p);
        }
    for (x = 0; x < DTYPE_COUNT; x++)
        for (y = 0; y < DTYPE_COUNT; y++)
            for (i = 0; i < 343; i++) {
                problem p = plain_problem(all_dtypes[x], all_dtypes[y], all_dtypes[random_below(DTYPE_COUNT)],
                                          sizes[i / 49], sizes[i / 7 % 7], sizes[i % 7]);
                if (test_quick && random_below(24))
                    continue;
                randomise(&p);
                check_paths(&p);
            }
}

/* Products alone, which take a short way where they are small: all sizes around vectors and tiles. */
static void test_small_products(void) {
    static const size_t sizes[] = {1,  3,  4,  5,  7,  8,  9,  13, 14, 15, 16, 17, 22, 23, 24,
                                   25, 28, 31, 32, 33, 40, 47, 48, 49, 63, 64, 65, 80, 96, 130};
    static const size_t longest[] = {256, 257, 511, 512, 513, 514, 700, 1100};
    int t;
    random_state = 24;
    for (t = 0; t < (test_quick ? 1500 : 20000); t++) {
        mixprec_dtype a_type = all_dtypes[random_below(DTYPE_COUNT)], b_type = all_dtypes[random_below(DTYPE_COUNT)];
        problem p;
        if (random_below(2))
            b_type = a_type;
        p = plain_problem(a_type, b_type, all_dtypes[random_below(DTYPE_COUNT)], sizes[random_below(t % 8 ? 20 : 30)],
                          sizes[random_below(t % 8 ? 25 : 30)], sizes[random_below(t % 8 ? 25 : 30)]);
        if (t % 3) /* the sums' own type */
            p.c_type = a_type == MIXPREC_F64 && b_type == MIXPREC_F64 ? MIXPREC_F64 : MIXPREC_F32;
        if (t % 16 == 1)
            *(t % 3 == 0 ? &p.m : t % 3 == 1 ? &p.n : &p.k) = longest[random_below(8)];
        randomise(&p);
        p.alpha = 1;
        p.beta = 0;
        p.values = t % 4 ? p.values : SPECIAL;
        check_paths(&p);
    }
}

static void test_all_types(void) {
    static const size_t shapes[][3] = {{5, 9, 20}, {29, 67, 70}, {15, 33, 530}, {1, 70, 600}, {33, 1, 1030}};
    int i, s;
    random_state = 2;
    for (i = 0; i < 216; i++)
        for (s = 0; s < 5; s++) {
            problem p = plain_problem(all_dtypes[i / 36], all_dtypes[i / 6 % 6], all_dtypes[i % 6], shapes[s][0],
                                      shapes[s][1], shapes[s][2]);
            if (test_quick && s == 2)
                continue;
            randomise(&p);
            check_paths(&p);
        }
}

static void test_tile_sizes(void) {
    static const size_t ms[] = {5, 6, 7, 13, 14, 15, 27, 28, 29};
    static const size_t ns[] = {7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65};
    static const size_t ks[] = {1, 15, 16, 17, 511, 512, 513, 1023, 1024, 1025, 1537, 2100};
    int i, round;
    random_state = 3;
    for (round = 0; round < 4; round++)
        for (i = 0; i < 9 * 12 * 12; i++) {
            problem p = plain_problem(MIXPREC_F16, MIXPREC_F16, MIXPREC_F32, ms[i / 144], ns[i / 12 % 12], ks[i % 12]);
            if (test_quick ? random_below(64) : round && random_below(8))
                continue;
            randomise(&p);
            if (round) {
                p.a_type = all_dtypes[random_below(DTYPE_COUNT)];
                p.b_type = all_dtypes[random_below(DTYPE_COUNT)];
                p.c_type = all_dtypes[random_below(DTYPE_COUNT)];
            }
            check_paths(&p);
        }
}

/* Most kernels for few rows are AVX-512's: without it, as in emulators, one shape in four does. */
static unsigned few_rows_share(void) {
    return runs_here(MIXPREC_ISA_AVX512) ? 1 : 4;
}

/* Products with few rows have kernels of their own, which take B as it is, and few columns are rows of the transposed
   product. Shapes around their units: 4, 6, 8, 16 and 32 rows, 16, 32 and 256 columns, 4, 32, 64 and 512 of k; values
   that show a wrong widening, and NaN beyond every edge. */
static int only_fp8; /* as B */
static void test_few_rows(void) {
    static const size_t ns[] = {1, 15, 16, 17, 31, 32, 33, 63, 65, 255, 256, 257, 300};
    static const size_t ks[] = {1, 2, 31, 32, 33, 63, 65, 127, 128, 129, 255, 511, 512, 513, 641, 1025};
    unsigned t;
    random_state = 18;
    for (t = (test_quick ? 500u : 8000u) / (only_fp8 ? 4 : few_rows_share()); t; t--) {
        problem p = plain_problem(all_dtypes[random_below(DTYPE_COUNT)], all_dtypes[random_below(DTYPE_COUNT)],
                                  random_below(2) ? MIXPREC_F32 : all_dtypes[random_below(DTYPE_COUNT)],
                                  1 + random_below(40), random_below(2) ? ns[random_below(13)] : 1 + random_below(200),
                                  random_below(2) ? ks[random_below(16)] : 1 + random_below(700));
        randomise(&p);
        if (only_fp8)
            p.b_type = random_below(2) ? MIXPREC_E4M3 : MIXPREC_E5M2;
        else if (random_below(4) == 0) /* f64 with f64 is one pair in 36 */
            p.a_type = p.b_type = random_below(2) ? MIXPREC_F64 : MIXPREC_F32;
        if (random_below(2)) /* no epilogue: the kernels work in C itself */
            p.c_type = MIXPREC_F32, p.alpha = 1, p.beta = 0;
        if (random_below(4) == 0)
            p.values = SPECIAL;
        if (random_below(2)) {
            const size_t m = p.m;
            p.m = random_below(4) ? p.n : 500 + random_below(600);
            p.n = m;
        }
        library_take_for_amd(t % 2);
        check_paths(&p);
    }
    library_hide_units(only_fp8);
}

/* Few sums of a k of several chunks: up to 4 and 8 at a time, up to 8 columns in one vector, chunk by chunk. */
static void test_few_sums(void) {
    unsigned t;
    random_state = 29;
    for (t = test_quick ? 300u : 4000u; t; t--) {
        const size_t most = t % 2 ? 9 : t % 16 ? 40 : 130;
        problem p = plain_problem(all_dtypes[random_below(DTYPE_COUNT)], all_dtypes[random_below(DTYPE_COUNT)],
                                  all_dtypes[random_below(DTYPE_COUNT)], 1 + random_below(most), 1 + random_below(most),
                                  500 + random_below(t % 8 ? 600 : 4200));
        randomise(&p);
        if (random_below(3) == 0) /* f64 with f64 is one pair in 36 */
            p.a_type = p.b_type = random_below(2) ? MIXPREC_F64 : MIXPREC_F32;
        if (random_below(2)) /* no epilogue: the sums are in C itself */
            p.c_type = p.a_type == MIXPREC_F64 ? MIXPREC_F64 : MIXPREC_F32, p.alpha = 1, p.beta = 0;
        if (random_below(4) == 0)
            p.values = SPECIAL;
        check_paths(&p);
    }
}

/* Rows of B begin at every element of a cache line, all at the same (strides of 64 bytes) or each at its own. With k
   along them a chunk ends within a line; with n along them there are several blocks of columns, of which the last might
   be as narrow as a part of a line. */
static void test_few_rows_lines(void) {
    static const size_t ms[] = {1, 2, 4, 6, 9};
    unsigned shift;
    size_t m;
    int t, pad, trans;
    random_state = 23;
    for (t = 0; t < DTYPE_COUNT; t++)
        for (m = 0; m < sizeof ms / sizeof *ms; m++)
            for (trans = 0; trans < 2; trans++)
                for (pad = 0; pad < 2; pad++)
                    for (shift = 0; shift < 64; shift += few_rows_share() * (test_quick ? 7 : trans ? 1 : 5)) {
                        const size_t n = trans ? 37 : shift % 2 ? 700 : 768;
                        problem p = plain_problem(MIXPREC_F32, all_dtypes[t], MIXPREC_F32, ms[m], n, trans ? 576 : 24);
                        p.trans_b = trans ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
                        p.pad_b = pad ? 5 : trans ? 64 : 768 - n;
                        if (p.b_type == MIXPREC_F64)
                            p.a_type = p.c_type = MIXPREC_F64;
                        placement = 3 * shift + 1; /* A comes first */
                        check_paths(&p);
                    }
}

/* One row, and a k of four chunks or more along rows of B that begin a multiple of 1,024 elements, or a little more,
   from each other: B anywhere in a cache line, and columns and k that are left over. */
static void test_one_row_strips(void) {
    static const size_t ns[] = {16, 32, 33, 48, 80, 100, 129, 144, 163}, ks[] = {2047, 2048, 2049, 2560, 4096, 4611};
    static const mixprec_dtype types[] = {MIXPREC_F16, MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
    unsigned t;
    random_state = 37;
    for (t = (test_quick ? 60u : 1000u) / few_rows_share(); t; t--) {
        problem p =
            plain_problem(random_below(2) ? MIXPREC_F32 : MIXPREC_F16, types[t % 4],
                          random_below(2) ? MIXPREC_F32 : MIXPREC_BF16, 1, ns[random_below(9)], ks[random_below(6)]);
        p.trans_b = MIXPREC_TRANS;
        p.pad_b = (1024 - p.k % 1024) % 1024 + (random_below(4) ? 0 : random_below(65));
        p.values = random_below(3) ? WIDE : SPECIAL;
        if (random_below(4) == 0) { /* few columns are rows of the transposed product */
            p.m = p.n;
            p.n = 1;
            p.trans_b = MIXPREC_NO_TRANS;
            p.b_type = p.a_type;
            p.a_type = types[t % 4];
            p.pad_a = p.pad_b;
            p.pad_b = 0;
        }
        placement = (unsigned)random_below(192);
        library_take_for_amd(random_below(3) != 0); /* only there are there strips */
        check_paths(&p);
    }
    library_hide_units(0);
}

static void in_turn(void *context, size_t tasks, void (*task)(void *data, size_t index), void *data) {
    size_t i;
    (void)context;
    for (i = 0; i < tasks; i++)
        task(data, i);
}

/* Two parts of a product that are small each, the second smaller and with rows of A that are a multiple of 512 bytes.
   The workspace ends with a page: what a part needs must not grow where it is smaller. */
static void test_small_parts(void) {
    static const struct {
        size_t m, pad;
        mixprec_dtype type;
    } cases[] = {{268, 0, MIXPREC_F16},   {268, 300, MIXPREC_F32}, {134, 200, MIXPREC_F64}, /* 140 and 128, 70 and 64 */
                 {774, 0, MIXPREC_E4M3},  {774, 0, MIXPREC_F32},   {390, 0, MIXPREC_F64},   /* by sixes 390 and 384 */
                 {1014, 60, MIXPREC_F32}, {516, 0, MIXPREC_BF16},  {262, 0, MIXPREC_F64}};
    size_t i, path;
    random_state = 53;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        const mixprec_dtype type = cases[i].type;
        problem p = plain_problem(type, type, type == MIXPREC_F64 ? MIXPREC_F64 : MIXPREC_F32, cases[i].m, 40, 300);
        p.trans_a = MIXPREC_TRANS;
        p.pad_a = cases[i].pad;
        p.sample = 7;
        prepare(&p);
        for (path = 0; path < (size_t)ISA_COUNT; path++)
            if (runs_here(all_isas[path])) {
                mixprec_gemm_desc desc = describe_call(all_isas[path]);
                size_t bytes = 0;
                now_path = mixprec_isa_name(all_isas[path]);
                desc.parallel_for = in_turn;
                desc.threads = 2;
                CHECK(mixprec_gemm_workspace(&desc, &bytes, NULL) == MIXPREC_OK, "%s", describe(now_path));
                desc.workspace = slots[SLOT_WORKSPACE] + SLOT_SIZE - bytes;
                desc.workspace_size = bytes;
                restore(&c);
                CHECK(mixprec_gemm_ex(&desc) == MIXPREC_OK, "%s", describe(now_path));
                check_c(now_path, fuses(all_isas[path], 1));
            }
    }
}

/* The last problem in parts of one tile's rows, and with a packed B, in the least workspace. */
static void check_tasks_and_packed(void) {
    mixprec_gemm_desc desc = describe_call(MIXPREC_ISA_AUTO), pack = desc;
    size_t size = 0, bytes = 0;
    void *packed;
    now_path = "tasks";
    desc.parallel_for = in_turn;
    desc.threads = 64;
    restore(&c);
    CHECK(mixprec_gemm_ex(&desc) == MIXPREC_OK, "%s", describe(now_path));
    check_c(now_path, fuses(MIXPREC_ISA_AUTO, 0));
    desc = pack;
    now_path = "packed";
    CHECK(mixprec_gemm_pack_b_size(&pack, &size) == MIXPREC_OK, "%s", describe(now_path));
    packed = malloc(size);
    CHECK(packed && mixprec_gemm_pack_b(&pack, packed, size) == MIXPREC_OK, "%s", describe(now_path));
    desc.b = packed;
    desc.packed_size = size;
    CHECK(mixprec_gemm_workspace(&desc, NULL, &bytes) == MIXPREC_OK, "%s", describe(now_path));
    desc.workspace = place(SLOT_WORKSPACE, bytes, 1);
    desc.workspace_size = bytes;
    restore(&c);
    CHECK(mixprec_gemm_ex(&desc) == MIXPREC_OK, "%s", describe(now_path));
    check_c(now_path, fuses(MIXPREC_ISA_AUTO, 1));
    free(packed);
}

/* bf16 and fp8, which x86-64 multiplies in pairs where it can: many rows, few rows of a B that is large, and few
   columns of a large A. Where exponents add up to less than 142, sums may be subnormal, which those pairs do not
   know. */
static void test_pairs(void) {
    static const mixprec_dtype types[] = {MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
    static const size_t more[] = {0, 0, 1, 2, 5, 515, 2112}, steps[] = {1, 1, 1, 2, 3, 17}, rows[] = {1, 1, 9, 13};
    unsigned t;
    random_state = 41;
    library_multiply_pairs();
    for (t = (test_quick ? 180u : 3600u) / few_rows_share(); t; t--) {
        problem p = plain_problem(types[random_below(3)], types[random_below(3)], MIXPREC_F32, 17 + random_below(60),
                                  17 + random_below(60), 60 + random_below(random_below(4) ? 100 : 1100));
        randomise(&p);
        p.values = random_below(3) ? WIDE : SPECIAL;
        if (random_below(3)) {
            if (random_below(3))
                p.a_type = p.b_type = MIXPREC_BF16;
            p.alpha = random_below(2) ? 1 : -1;
            p.beta = 0; /* nothing that would hide what is faint */
            p.values = FAINT_A;
            p.values_b = FAINT_B;
            faint.exponent[0] = 1 + random_below(139);
            faint.exponent[1] = 140 + random_below(3) - faint.exponent[0];
            if (p.a_type != p.b_type) /* the smallest of fp8 has 111 */
                faint.exponent[0] = faint.exponent[1] = 17 + random_below(16);
            else if (random_below(6) == 0) /* all products are 0, of either sign */
                faint.exponent[0] = faint.exponent[1] = 1 + random_below(40);
            else if (random_below(4) == 0) {
                const size_t tiny = random_below(2);
                faint.exponent[tiny] = 0;
                faint.exponent[!tiny] = 143 + random_below(40);
            }
            faint.step = steps[random_below(6)];
            faint.from = random_below(faint.step);
            faint.rows = rows[random_below(4)];
            faint.end = random_below(2) ? SIZE_MAX : 1 + faint.from + random_below(400);
        }
        if (t % 3 == 1) {
            p.m = 1 + random_below(36);
            p.n = 130 + random_below(200);
            p.k = 520 + random_below(600);
            p.trans_b = random_below(2) ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
            p.sample = 11;
        } else if (t % 9 == 2) {
            p.m = 1 + random_below(random_below(2) ? 1 : 5) + (random_below(3) ? 0 : 56);
            p.n = 512 + random_below(40);
            p.k = 2048 + more[random_below(7)];
            p.trans_b = MIXPREC_TRANS;
            p.pad_b = (2048 - p.k % 2048) % 2048;
            p.sample = 53;
        } else if (t % 27 == 8) { /* many columns side by side */
            p.m = 1 + random_below(32);
            p.n = 1 + random_below(2200);
            p.trans_b = MIXPREC_NO_TRANS;
            p.sample = 53;
        } else if (t % 9 == 5) {
            p.m = p.n = 370 + random_below(30);
            p.k = 1 + random_below(3);
            p.sample = 23;
        }
        faint.columns = random_below(2) ? SIZE_MAX : 1 + random_below(p.n);
        faint.rows = p.m < 17 ? 1 : faint.rows;
        faint.row = random_below(faint.rows);
        if (t % 3 && random_below(4) == 0) {
            const size_t n = p.m;
            const mixprec_dtype type = p.a_type;
            p.m = p.n;
            p.n = n;
            p.a_type = p.b_type;
            p.b_type = type;
            p.trans_a = p.trans_b = MIXPREC_NO_TRANS;
            p.pad_a = p.pad_b;
            p.pad_b = 0;
        }
        placement = (unsigned)random_below(192);
        check_paths(&p);
        check_tasks_and_packed();
    }
    library_hide_units(0);
}

/* Rows of B so far apart that few of them are larger than the caches, with a page in between or a little more: the bits
   of rows that lie side by side. */
static void test_few_rows_apart(void) {
    enum { M = 9, N = 70, K = 150, APART = 1 << 15 };
    static const mixprec_dtype types[] = {MIXPREC_F64,  MIXPREC_F32,  MIXPREC_F16,
                                          MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
    static const size_t ms[] = {1, 2, 4, 6, 9};
    static double near_b[N * K], far_b[N * (APART + 64) / 8], rows_a[M * K], results[2][M * N];
    size_t t, m, i, path, more;
    random_state = 31;
    test_needs("a path with fused multiply-add");
    for (t = 0; t < 2 * (sizeof types / sizeof *types); t++)
        for (more = 0; more <= 64; more += 64) {
            const mixprec_dtype type = types[t / 2], sum_type = type == MIXPREC_F64 ? MIXPREC_F64 : MIXPREC_F32;
            const size_t size = mixprec_dtype_size(type), sum_size = mixprec_dtype_size(sum_type);
            for (i = 0; i < N * K; i++) {
                const double x = (double)random_below(2000) / 16 - 60;
                char *element = (char *)near_b + i * size;
                if (i < M * K)
                    mixprec_convert((char *)rows_a + i * sum_size, sum_type, &x, MIXPREC_F64, 1);
                mixprec_convert(element, type, &x, MIXPREC_F64, 1);
                memcpy((char *)far_b + i / K * (APART + more) + i % K * size, element, size);
            }
            library_take_for_amd(t % 2);
            for (path = 0; path < (size_t)ISA_COUNT; path++)
                for (m = 0; m < sizeof ms / sizeof *ms; m++) {
                    mixprec_gemm_desc d;
                    if (!runs_here(all_isas[path]) || fuses(all_isas[path], 0) != 1)
                        continue;
                    memset(&d, 0, sizeof d);
                    d.m = ms[m], d.n = N, d.k = K, d.isa = all_isas[path], d.trans_b = MIXPREC_TRANS;
                    d.a = rows_a, d.b = near_b, d.c = results[0];
                    d.a_type = d.c_type = sum_type;
                    d.b_type = type;
                    memset(results[0], 0x5A, sizeof results[0]);
                    memset(results[1], 0xA5, sizeof results[1]);
                    CHECK(mixprec_gemm_ex(&d) == MIXPREC_OK, "status");
                    d.b = far_b, d.c = results[1];
                    d.ldb = (APART + more) / size;
                    CHECK(mixprec_gemm_ex(&d) == MIXPREC_OK, "status");
                    CHECK(!memcmp(results[0], results[1], d.m * N * sum_size), "%s, %s, m %zu, %zu bytes apart",
                          path_name(d.isa), mixprec_dtype_name(type), d.m, APART + more);
                }
        }
    library_hide_units(0);
}

/* A depth that is no multiple of what a kernel takes at a time must not add zeros of the wrong sign: where every
   product is a negative number too small for the sum's type, the sum is -0 on every path that fuses. */
static void test_few_rows_minus_zero(void) {
    static const mixprec_dtype types[] = {MIXPREC_F64,  MIXPREC_F32,  MIXPREC_F16,
                                          MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
    static double few_a[20 * 259], few_b[259 * 200], few_c[20 * 200];
    size_t m, k, i, path, t;
    int trans;
    test_needs("a path with fused multiply-add");
    for (t = 0; t < sizeof types / sizeof *types; t++) {
        const mixprec_dtype type = types[t], sum_type = type == MIXPREC_F64 ? MIXPREC_F64 : MIXPREC_F32;
        const double least = sum_type == MIXPREC_F64 ? 0x1p-1074 : 0x1p-149, minus_quarter = -0.25, minus_zero = -0.0;
        const size_t size = mixprec_dtype_size(type), sum_size = mixprec_dtype_size(sum_type);
        char want[8];
        mixprec_convert(want, sum_type, &minus_zero, MIXPREC_F64, 1);
        for (i = 0; i < sizeof few_a / sizeof *few_a; i++)
            mixprec_convert((char *)few_a + i * sum_size, sum_type, &least, MIXPREC_F64, 1);
        for (i = 0; i < sizeof few_b / sizeof *few_b; i++)
            mixprec_convert((char *)few_b + i * size, type, &minus_quarter, MIXPREC_F64, 1);
        for (path = 0; path < (size_t)ISA_COUNT; path++)
            for (m = 1; m <= 20; m++)
                for (k = 1; k <= (m % 4 == 1 ? 259 : 9); k = k == 9 ? 257 : k + 1) {
                    const mixprec_isa isa = all_isas[path];
                    mixprec_gemm_desc d;
                    long wrong = 0;
                    if (!runs_here(isa) || fuses(isa, 0) != 1)
                        continue;
                    for (trans = 0; trans < 2; trans++) {
                        memset(&d, 0, sizeof d);
                        d.m = m, d.n = 200, d.k = k, d.isa = isa, d.trans_b = (mixprec_transpose)trans;
                        d.a = few_a, d.b = few_b, d.c = few_c;
                        d.a_type = d.c_type = sum_type;
                        d.b_type = type;
                        memset(few_c, 0x55, sizeof few_c);
                        CHECK(mixprec_gemm_ex(&d) == MIXPREC_OK, "status");
                        for (i = 0; i < m * 200; i++)
                            wrong += memcmp((const char *)few_c + i * sum_size, want, sum_size) != 0;
                        CHECK(!wrong, "%s, m %zu, k %zu, trans %d, %s: %ld are not -0", path_name(isa), m, k, trans,
                              mixprec_dtype_name(type), wrong);
                    }
                }
    }
}

static void test_large_shapes(void) {
    static const size_t shapes[][3] = {{300, 700, 1100}, {1, 4096, 512}, {700, 3, 2050}, {200, 1100, 30},
                                       {3, 2500, 700},   {513, 517, 20}, {4096, 1, 300}, {8, 1030, 1025},
                                       {16, 600, 513},   {2, 33, 9000},  {2, 2100, 600}};
    size_t i, trans;
    random_state = 4;
    for (i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (trans = 0; trans < 4; trans++) {
            int wide = trans == 0 && i % 2 == 0; /* one in eight with any types; the others of 16 and 8 bits */
            size_t products = shapes[i][0] * shapes[i][1] * shapes[i][2];
            problem p = plain_problem(MIXPREC_F16, MIXPREC_F16, MIXPREC_F32, shapes[i][0], shapes[i][1], shapes[i][2]);
            if (test_quick && (products > 10000000 || trans != i % 4))
                continue;
            randomise(&p);
            p.a_type = all_dtypes[wide ? random_below(2) : 2 + random_below(4)];
            p.b_type = all_dtypes[wide ? random_below(2) : 2 + random_below(4)];
            p.c_type = all_dtypes[random_below(3)];
            p.trans_a = (mixprec_transpose)(trans & 1);
            p.trans_b = (mixprec_transpose)(trans >> 1);
            p.sample = products / (test_quick ? 500000 : 30000000);
            check_paths(&p);
        }
}

/* A C larger than the caches may be written in another way, from lines of the cache on. A band of its rows is not, and
   must have the same bits. */
static void test_large_c(void) {
    static const mixprec_dtype types[] = {MIXPREC_F16, MIXPREC_F32, MIXPREC_F64};
    enum { M = 1030, K = 5, BAND = 100, WORKSPACE = 4 << 20 };
    size_t path, t, i;
    for (path = 0; path < (size_t)ISA_COUNT; path++)
        for (t = 0; t < 3; t++) {
            const int x86 =
                all_isas[path] != MIXPREC_ISA_C && all_isas[path] != MIXPREC_ISA_NEON; /* others do not yet */
            const size_t layouts = !test_quick ? 12 : x86 ? 4 : 1;
            for (i = 0; i < layouts; i++) {
                const mixprec_dtype type = types[t], c_type = type == MIXPREC_F64 ? type : MIXPREC_F32;
                const size_t size = mixprec_dtype_size(type), c_size = mixprec_dtype_size(c_type);
                const size_t n = (i % 2 ? 4099u : 4160u) * 4 / c_size, gap = i % 2 ? 4112 * 4 / c_size - n : 0;
                const size_t before = i / 2 % 3 * (20 / c_size), odd = i == 3 || i > 8; /* odd: ldc is no whole lines */
                const size_t ldc = n + gap + odd, bytes = (before + M * ldc) * c_size;
                char *got = (char *)malloc(bytes + 128), *want = (char *)malloc(bytes + 128);
                char *whole = (char *)(((uintptr_t)got + 63) / 64 * 64),
                     *bands = (char *)(((uintptr_t)want + 63) / 64 * 64);
                char *few_a = (char *)malloc(M * K * size), *wide_b = (char *)malloc(K * n * size);
                void *packed = NULL, *workspace = malloc(WORKSPACE);
                size_t row;
                mixprec_gemm_desc d;
                memset(&d, 0, sizeof d);
                d.isa = all_isas[path];
                if (runs_here(d.isa)) {
                    for (row = 0; row < M * K || row < K * n; row++) {
                        double x = ((double)random_below(2001) - 1000) / 1024;
                        if (row < M * K)
                            mixprec_convert(few_a + row * size, type, &x, MIXPREC_F64, 1);
                        if (row < K * n)
                            mixprec_convert(wide_b + row * size, type, &x, MIXPREC_F64, 1);
                    }
                    memset(whole, 0x55, bytes);
                    memset(bands, 0x55, bytes);
                    d.a_type = d.b_type = type, d.c_type = c_type;
                    d.m = M, d.n = n, d.k = K, d.a = few_a, d.b = wide_b, d.ldc = ldc;
                    d.trans_b = i % 2 ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
                    d.c = whole + before * c_size;
                    d.threads = i % 4 == 1 ? 3 : 0;
                    d.parallel_for = in_turn;
                    if (i % 4 == 2) {
                        size_t packed_size = 0;
                        CHECK(mixprec_gemm_pack_b_size(&d, &packed_size) == MIXPREC_OK, "status");
                        packed = malloc(packed_size);
                        CHECK(mixprec_gemm_pack_b(&d, packed, packed_size) == MIXPREC_OK, "status");
                        d.b = packed;
                        d.packed_size = packed_size;
                    }
                    d.workspace_size = WORKSPACE;
                    d.workspace = workspace;
                    CHECK(mixprec_gemm_ex(&d) == MIXPREC_OK, "status");
                    for (row = 0; row < M; row += BAND) {
                        d.m = row + BAND < M ? BAND : M - row;
                        d.a = few_a + row * K * size;
                        d.c = bands + (before + row * ldc) * c_size;
                        CHECK(mixprec_gemm_ex(&d) == MIXPREC_OK, "status");
                    }
                    CHECK(!memcmp(whole, bands, bytes),
                          "%s, %s, n %zu, ldc %zu, %zu bytes behind a line: not as in bands", path_name(d.isa),
                          mixprec_dtype_name(type), n, ldc, before * c_size);
                }
                free(got);
                free(want);
                free(few_a);
                free(wide_b);
                free(packed);
                free(workspace);
            }
        }
}

static void test_alpha_beta(void) {
    static const mixprec_dtype types[][3] = {
        {MIXPREC_F16, MIXPREC_F16, MIXPREC_F16},  {MIXPREC_F32, MIXPREC_F32, MIXPREC_F32},
        {MIXPREC_F64, MIXPREC_F64, MIXPREC_F64},  {MIXPREC_E4M3, MIXPREC_E4M3, MIXPREC_BF16},
        {MIXPREC_BF16, MIXPREC_F16, MIXPREC_F64}, {MIXPREC_F64, MIXPREC_F64, MIXPREC_F16},
        {MIXPREC_E5M2, MIXPREC_F64, MIXPREC_F32}, {MIXPREC_F32, MIXPREC_BF16, MIXPREC_E4M3}};
    size_t i, t;
    random_state = 5;
    for (t = 0; t < 8; t++)
        for (i = 0; i < 25 * 4; i++) {
            problem p = plain_problem(types[t][0], types[t][1], types[t][2], 17, 35, i % 3 ? 40 : 600);
            if (test_quick && random_below(3))
                continue;
            randomise(&p);
            p.alpha = factors[i % 5];
            p.beta = factors[i / 5 % 5];
            p.trans_a = (mixprec_transpose)(i / 25 & 1);
            p.trans_b = (mixprec_transpose)(i / 50);
            check_paths(&p);
        }
}

static void test_every_code(void) {
    int x, trans, side;
    random_state = 6;
    for (x = 2; x < DTYPE_COUNT; x++)
        for (trans = 0; trans < 4; trans++)
            for (side = 0; side < 2; side++) {
                size_t length = mixprec_dtype_size(all_dtypes[x]) == 2 ? 2048 : 8;
                mixprec_dtype one = random_below(2) ? MIXPREC_F16 : MIXPREC_E4M3;
                problem p = plain_problem(side ? one : all_dtypes[x], side ? all_dtypes[x] : one, MIXPREC_F32,
                                          side ? 32 : length, side ? length : 32, 32);
                p.values = side ? IDENTITY : ALL_CODES;
                p.values_b = side ? ALL_CODES : IDENTITY;
                p.trans_a = (mixprec_transpose)(trans & 1);
                p.trans_b = (mixprec_transpose)(trans >> 1);
                check_paths(&p);
            }
}

/* ---- the narrowing ---- */

static void test_rounding(void) {
    static const mixprec_dtype operands[] = {MIXPREC_F16, MIXPREC_F32, MIXPREC_F64};
    int round, overflow, x, y;
    random_state = 7;
    for (round = 0; round <= MIXPREC_ROUND_STOCHASTIC; round++)
        for (overflow = 0; overflow <= MIXPREC_OVERFLOW_SATURATE_KEEP_INF; overflow++)
            for (x = 0; x < DTYPE_COUNT; x++)
                for (y = 0; y < 3; y++) {
                    problem p = plain_problem(operands[y], operands[y], all_dtypes[x], 13, 41, 25);
                    if (test_quick && random_below(3))
                        continue;
                    p.pad_c = random_below(5);
                    p.beta = random_below(2) ? 0.5 : 0;
                    p.values = random_below(3) ? PLAIN : random_below(2) ? WIDE : SPECIAL;
                    p.round = (mixprec_round)round;
                    p.overflow = (mixprec_overflow)overflow;
                    p.seed = random_bits();
                    check_paths(&p);
                }
}

/* ---- NaN, Inf and what must not be read ---- */

static void test_nan_and_inf(void) {
    const double odd_factors[] = {1, HUGE_VAL, -HUGE_VAL, (double)NAN, 1e300, -2};
    int x, y, i, specials = 0;
    random_state = 8;
    for (x = 0; x < DTYPE_COUNT; x++)
        for (y = 0; y < DTYPE_COUNT; y++)
            for (i = 0; i < 12; i++) {
                problem p = plain_problem(all_dtypes[x], all_dtypes[y], all_dtypes[random_below(DTYPE_COUNT)],
                                          1 + random_below(40), 1 + random_below(70), 1 + random_below(90));
                if (test_quick && i >= 3)
                    continue;
                randomise(&p);
                p.values = SPECIAL;
                p.alpha = odd_factors[random_below(2) ? 0 : random_below(6)];
                p.beta = random_below(2) ? 0 : odd_factors[random_below(6)];
                check_paths(&p);
                specials += isnan(decode(expected_fused[0], p.c_type)) != 0;
            }
    CHECK(specials > 0, "the data had no NaN to propagate");
}

static void test_unread_operands(void) {
    int x, i, path;
    random_state = 9;
    for (x = 0; x < DTYPE_COUNT; x++)
        for (i = 0; i < 8; i++)
            for (path = 0; path < ISA_COUNT; path++) {
                problem p = plain_problem(all_dtypes[x], all_dtypes[random_below(DTYPE_COUNT)],
                                          all_dtypes[random_below(DTYPE_COUNT)], 11, 37, i & 1 ? 0 : 33);
                mixprec_gemm_desc desc;
                mixprec_status status;
                if (!runs_here(all_isas[path]))
                    continue;
                p.alpha = i & 1 ? 1 : i & 2 ? -0.0 : 0;
                p.beta = i & 4 ? 0.5 : 0;
                p.pad_c = random_below(3);
                prepare(&p);
                now_path = path_name(all_isas[path]);
                /* Once from NULL, once from pages that cannot be read. */
                desc = describe_call(all_isas[path]);
                desc.a = i & 2 ? NULL : slots[SLOT_A] + SLOT_SIZE;
                desc.b = i & 2 ? NULL : slots[SLOT_B] + SLOT_SIZE;
                status = mixprec_gemm_ex(&desc);
                CHECK(status == MIXPREC_OK, "%s: status %d", describe(now_path), (int)status);
                check_c(now_path, 1);
                restore(&c);
                status = mixprec_gemm(MIXPREC_NO_TRANS, MIXPREC_TRANS, p.m, p.n, p.k, (float)p.alpha, NULL, p.a_type,
                                      50, NULL, p.b_type, 50, (float)p.beta, c.data, p.c_type, c.ld);
                CHECK(status == MIXPREC_OK, "%s: mixprec_gemm: status %d", describe(now_path), (int)status);
                check_c("mixprec_gemm", 1);
            }
}

/* Between the rows of a matrix that has one row lies nothing: its leading dimension may be so large that its bytes
   wrap around to 0. */
static void test_one_stored_row(void) {
    size_t i, path;
    int x;
    random_state = 12;
    for (x = 0; x < DTYPE_COUNT; x++)
        for (i = 0; i < 4; i++)
            for (path = 0; path < ISA_COUNT; path++) {
                const mixprec_dtype type = all_dtypes[x], c_type = type == MIXPREC_F64 ? type : MIXPREC_F32;
                problem p = plain_problem(type, type, c_type, i & 1 ? 12 : 100, i & 2 ? 40 : 5, 1);
                mixprec_gemm_desc desc;
                mixprec_status status;
                if (!runs_here(all_isas[path]))
                    continue;
                p.trans_a = MIXPREC_TRANS;
                prepare(&p);
                now_path = path_name(all_isas[path]);
                desc = describe_call(all_isas[path]);
                desc.lda = desc.ldb = SIZE_MAX / mixprec_dtype_size(type) + 1;
                status = mixprec_gemm_ex(&desc);
                CHECK(status == MIXPREC_OK, "%s: status %d", describe(now_path), (int)status);
                check_c(now_path, 1);
            }
}

/* ---- workspaces ---- */

static void test_workspaces(void) {
    static const size_t shapes[][3] = {{130, 150, 1100}, {1, 900, 700}, {40, 3, 520},
                                       {3, 5, 4},        {64, 64, 64},  {300, 40, 60}};
    int i, s, step, t;
    random_state = 10;
    for (s = 0; s < 6; s++)
        for (t = 0; t < 4; t++) {
            problem p = plain_problem(all_dtypes[random_below(DTYPE_COUNT)], all_dtypes[random_below(DTYPE_COUNT)],
                                      MIXPREC_F32, shapes[s][0], shapes[s][1], shapes[s][2]);
            if (test_quick && t > 1)
                continue;
            randomise(&p);
            p.c_type = all_dtypes[random_below(DTYPE_COUNT)];
            if (t == 0)
                p.a_type = p.b_type = MIXPREC_F16;
            prepare(&p);
            for (i = 0; i < ISA_COUNT; i++) {
                mixprec_gemm_desc desc = describe_call(all_isas[i]);
                size_t least = 99, best = 99, best_alone = 98, least_alone = 98;
                if (!runs_here(all_isas[i]))
                    continue;
                CHECK(mixprec_gemm_workspace(&desc, &best, &least) == MIXPREC_OK, "%s", describe("workspace"));
                mixprec_gemm_workspace(&desc, &best_alone, NULL);
                mixprec_gemm_workspace(&desc, NULL, &least_alone);
                CHECK(least <= best && best == best_alone && least == least_alone, "%s: best %zu %zu, least %zu %zu",
                      describe("workspace"), best, best_alone, least, least_alone);
                for (step = 0; step <= 8; step++) {
                    size_t size = step < 7 ? least + (best - least) / 7 * (size_t)step : best + (step == 8 ? 1000 : 0);
                    unsigned char *workspace = slots[SLOT_WORKSPACE] + SLOT_SIZE - size - (size_t)(step & 1);
                    workspace[-1] = 0x5A;
                    memset(workspace, 0xFF, size); /* NaN, should anything be used before it is written */
                    run_path(all_isas[i], workspace, size);
                    CHECK(workspace[-1] == 0x5A, "%s: wrote before the workspace", describe(path_name(all_isas[i])));
                }
            }
        }
}

static void test_allocation(void) {
    problem small = plain_problem(MIXPREC_F16, MIXPREC_F16, MIXPREC_F32, 8, 8, 8);
    problem large = plain_problem(MIXPREC_F16, MIXPREC_F16, MIXPREC_F32, 200, 300, 600);
    mixprec_gemm_desc desc;
    mixprec_status status;
    int i, asked = 0;
    random_state = 11;
    for (i = 0; i < ISA_COUNT; i++) {
        if (!runs_here(all_isas[i]))
            continue;
        now_path = path_name(all_isas[i]);
        prepare(&small);
        allocations = 0;
        run_path(all_isas[i], NULL, 0);
        CHECK(allocations == 0, "%s: %d allocations", describe(now_path), allocations);
        prepare(&large);
        allocations = 0;
        run_path(all_isas[i], NULL, 0);
        CHECK(allocations <= 1, "%s: %d allocations", describe(now_path), allocations);
        if (!allocations)
            continue;
        asked++;
        restore(&c);
        desc = describe_call(all_isas[i]);
        allocator_fails = 1;
        status = mixprec_gemm_ex(&desc);
        allocator_fails = 0;
        CHECK(status == MIXPREC_ERR_ALLOC, "%s: status %d when the allocator fails", describe(now_path), (int)status);
        CHECK(unchanged(&c), "%s: C changed when the allocator failed", describe(now_path));
        check_operands(now_path);
    }
#ifdef MIXPREC_NO_STDLIB
    CHECK(asked == 0, "allocated without a libc");
#else
    CHECK(asked > 0, "the large product needed no allocator: this test tests nothing");
#endif
}

/* ---- the error bound ---- */

/* Elements of C picked at random are within `bound` of what they should be. */
static void check_bound(const char *path, double bound) {
    size_t i, j, q, checked;
    for (checked = 0; checked < (test_quick ? 40 : 150); checked++) {
        long double exact = 0, magnitude = 0, error;
        i = random_below(now.m);
        j = random_below(now.n);
        for (q = 0; q < now.k; q++) {
            double x = decode(saved_code(&a, now.trans_a ? q : i, now.trans_a ? i : q), now.a_type);
            double y = decode(saved_code(&b, now.trans_b ? j : q, now.trans_b ? q : j), now.b_type);
            exact += (long double)x * (long double)y;
            magnitude += fabsl((long double)x * (long double)y);
        }
        exact *= (long double)now.alpha;
        magnitude *= fabsl((long double)now.alpha);
        if (now.beta != 0) {
            long double old = (long double)decode(saved_code(&c, i, j), now.c_type) * (long double)now.beta;
            exact += old;
            magnitude += fabsl(old);
        }
        error = fabsl((long double)decode(load_code(c.data + (i * c.ld + j) * c.size, c.size), now.c_type) - exact);
        CHECK(error <= (long double)bound * magnitude, "%s: element (%zu, %zu) is off by %Lg of %Lg, allowed %g",
              describe(path), i, j, error, magnitude, bound);
    }
}

static void check_bound_on_paths(double bound) {
    int path;
    for (path = 0; path < ISA_COUNT; path++) {
        mixprec_gemm_desc desc = describe_call(all_isas[path]);
        if (!runs_here(all_isas[path]))
            continue;
        restore(&c);
        now_path = path_name(all_isas[path]);
        CHECK(mixprec_gemm_ex(&desc) == MIXPREC_OK, "%s", describe(now_path));
        check_bound(now_path, bound);
    }
}

/* Each product passes through at most r roundings: its own (unfused), one for each addition in its chunk, one for each
   chunk added, one of each operand that was f64, two of alpha and its product, one of the sum with beta*c, which itself
   passes through fewer. With u the unit roundoff and g = r u / (1 - r u):
   |C - exact| <= g (|alpha| sum |a b| + |beta c|) (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed.,
   lemmas 3.1 and 3.3). C is f32 or, after f64 accumulation, f64, so that no narrowing follows. The long double sum that
   stands for the exact one errs too. */
static void test_error_bound(void) {
    static const size_t shapes[][3] = {{65, 130, 3000}, {33, 17, 9000}, {1, 300, 5000}, {100, 2, 2000}, {140, 90, 513}};
    int s, t;
    random_state = 12;
    for (s = 0; s < 5; s++)
        for (t = 0; t < DTYPE_COUNT + 3; t++) {
            problem p = plain_problem(all_dtypes[t % DTYPE_COUNT], all_dtypes[t < DTYPE_COUNT ? t : t % 3 * 2 + 1],
                                      MIXPREC_F32, shapes[s][0], shapes[s][1], shapes[s][2]);
            double unit, roundings, bound;
            if (test_quick && (t + s) % 4)
                continue;
            randomise(&p);
            p.sample = 1u << 30; /* the first oracle has no part in this */
            if (p.a_type == MIXPREC_F64 && p.b_type == MIXPREC_F64)
                p.c_type = MIXPREC_F64;
            prepare(&p);
            unit = accumulates_in_f64() ? ldexp(1, -53) : ldexp(1, -24);
            roundings = (double)(p.k < CHUNK ? p.k : CHUNK) + (double)(p.k / CHUNK + 1) + 1 + 2 + 2 + 1;
            bound = roundings * unit / (1 - roundings * unit) + (double)p.k * (double)LDBL_EPSILON;
            check_bound_on_paths(bound);
        }
}

/* What the manual says of errors as they usually are: where products have both signs, most of their roundings cancel;
   where all have one, sums grow with every term, and roundings with them. */
static void test_usual_error(void) {
    static const size_t shapes[][3] = {{3, 17, 65536}, {1, 64, 65536}, {20, 40, 20000}};
    int s, t;
    random_state = 26;
    for (s = 0; s < 3; s++)
        for (t = 0; t < 2 * DTYPE_COUNT; t++) {
            problem p = plain_problem(all_dtypes[t / 2], all_dtypes[t / 2], MIXPREC_F32, shapes[s][0], shapes[s][1],
                                      shapes[s][2] / (test_quick ? 8 : 1));
            if (test_quick && (t + s) % 4)
                continue;
            p.trans_b = s % 2 ? MIXPREC_NO_TRANS : MIXPREC_TRANS;
            p.values = t % 2 ? POSITIVE : PLAIN;
            p.sample = 1u << 30; /* the first oracle has no part in this */
            prepare(&p);
            check_bound_on_paths(p.values == POSITIVE ? 8e-7 : 1.5e-7);
        }
}

/* ---- dot-product units ---- */

/* bf16 or fp8, for which there may be units that round otherwise. */
static int fits_bf16(mixprec_dtype type) {
    return type == MIXPREC_BF16 || type == MIXPREC_E4M3 || type == MIXPREC_E5M2;
}

/* With .native every path must give what it gives without: portable C and AVX2 have no units, FMLAL rounds as FMA does,
   and the sums of bf16 and fp8 are exact here. */
static void test_native(void) {
    static const size_t ks[] = {1, 2, 3, 4, 5, 6, 7, 33, 511, 512, 513, 514, 515, 1025, 1027, 1601};
    int t;
    random_state = 18;
    CHECK(!mixprec_native_available(MIXPREC_F32, MIXPREC_F32) && !mixprec_native_available(MIXPREC_BF16, MIXPREC_F16) &&
              !mixprec_native_available(MIXPREC_NONE, MIXPREC_BF16) &&
              !mixprec_native_available((mixprec_dtype)0x7FFFFFFF, (mixprec_dtype)0x7FFFFFFF),
          "a unit for operands that no CPU has one for");
    ask_native = 1;
    for (t = 0; t < (test_quick ? 120 : 1500); t++) {
        mixprec_dtype a_type = random_below(3) ? MIXPREC_BF16 : all_dtypes[random_below(DTYPE_COUNT)];
        mixprec_dtype b_type = random_below(4) ? a_type : all_dtypes[random_below(DTYPE_COUNT)];
        problem p = plain_problem(a_type, b_type, all_dtypes[random_below(3)], 1 + random_below(t % 8 ? 20 : 200),
                                  1 + random_below(t % 8 ? 70 : 200),
                                  t % 16 == 8 ? 96 : ks[random_below(16)]); /* 96: a whole number of cache lines */
        randomise(&p);
        if (fits_bf16(a_type) && fits_bf16(b_type))
            p.values = EXACT;
        check_paths(&p);
    }
    ask_native = 0;
}

/* How far bf16 with bf16 is off, with the unit's documented arithmetic. BFMMLA adds two products with one rounding and
   their sum with another, both to odd, which may err twice as much as FMA (Arm Architecture Reference Manual,
   BFDotAdd); so the bounds are twice those of test_error_bound, and `typical` twice what the library promises of
   canonical results. AMX-BF16 rounds each term fewer times than these do. Subnormals may be flushed: the operands here
   have none. */
static void test_native_error(void) {
    const double unit = ldexp(1, -23), typical = 3e-7;
    static const size_t shapes[][3] = {{65, 130, 3000}, {33, 17, 9000}, {5, 300, 5001}, {100, 2, 2000}, {140, 90, 513}};
    static float first[140 * 300];
    size_t differing = 0;
    int s, t;
    random_state = 19;
    ask_native = 1;
    for (s = 0; s < 5; s++)
        for (t = 0; t < 8; t++) {
            problem p =
                plain_problem(MIXPREC_BF16, MIXPREC_BF16, MIXPREC_F32, shapes[s][0], shapes[s][1], shapes[s][2]);
            double roundings, bound;
            size_t least = 0, size, i, j;
            mixprec_gemm_desc desc;
            int packed;
            if (test_quick && (t + s) % 4)
                continue;
            if (t >= 4)
                randomise(&p);
            p.values = PLAIN;
            p.trans_a = (mixprec_transpose)(t & 1);
            p.trans_b = (mixprec_transpose)(t >> 1 & 1);
            p.sample = t < 4 ? 1000 : 1u << 30;
            prepare(&p);
            roundings = (double)(p.k < CHUNK ? p.k : CHUNK) + (double)(p.k / CHUNK + 1) + 1 + 2 + 1;
            bound = roundings * unit / (1 - roundings * unit) + (double)p.k * (double)LDBL_EPSILON;
            now_path = "native";
            desc = describe_call(MIXPREC_ISA_AUTO);
#ifdef MIXPREC_NO_STDLIB /* without a workspace no unit works */
            mixprec_gemm_workspace(&desc, &desc.workspace_size, NULL);
            desc.workspace = place(SLOT_WORKSPACE, desc.workspace_size, 1);
#endif
            restore(&c);
            CHECK(mixprec_gemm_ex(&desc) == MIXPREC_OK, "%s", describe(now_path));
            check_bound(now_path, t < 4 ? typical : bound);
            check_around_c(now_path);
            check_operands(now_path);
            if (t >= 4)
                continue;
            for (i = 0; i < p.m; i++)
                for (j = 0; j < p.n; j++) {
                    uint64_t got = load_code(c.data + (i * c.ld + j) * c.size, c.size);
                    memcpy(&first[i * p.n + j], c.data + (i * c.ld + j) * c.size, 4);
                    differing += is_sampled(i, j) && got != expected_fused[i * p.n + j];
                }
            /* However it is blocked, and packed, the bits are the same. */
            for (packed = 0; packed < 2; packed++) {
                void *weights = NULL;
                if (packed) {
                    CHECK(mixprec_gemm_pack_b_size(&desc, &size) == MIXPREC_OK, "%s", describe(now_path));
                    weights = malloc(size);
                    CHECK(mixprec_gemm_pack_b(&desc, weights, size) == MIXPREC_OK, "%s", describe(now_path));
                    desc.b = weights;
                    desc.packed_size = size;
                }
                mixprec_gemm_workspace(&desc, NULL, &least);
                desc.workspace = place(SLOT_WORKSPACE, least, 1);
                desc.workspace_size = least;
                restore(&c);
                CHECK(mixprec_gemm_ex(&desc) == MIXPREC_OK, "%s", describe(now_path));
                for (i = 0; i < p.m; i++)
                    CHECK(!memcmp(&first[i * p.n], c.data + i * c.ld * c.size, p.n * sizeof *first),
                          "%s: row %zu has other bits in the least workspace%s", describe(now_path), i,
                          packed ? ", with a packed B" : "");
                free(weights);
            }
        }
    ask_native = 0;
    CHECK(differing > 0, "all bits are the canonical ones: no unit was at work");
}

/* Subnormal operands count as what they are or as 0. */
static void test_native_subnormals(void) {
    static const size_t depths[] = {37, 1, 513, 1025};
    static float first[21 * 45];
    int trans;
    random_state = 20;
    ask_native = 1;
    for (trans = 0; trans < 16; trans++) {
        problem p = plain_problem(MIXPREC_BF16, MIXPREC_BF16, MIXPREC_F32, 21, 45, depths[trans / 4]);
        mixprec_gemm_desc desc;
        size_t least = 0, best = 0, i, j;
        p.values = trans & 1 ? TINY : SMALL_INTEGERS;
        p.values_b = trans & 1 ? SMALL_INTEGERS : TINY;
        p.trans_a = (mixprec_transpose)(trans & 1);
        p.trans_b = (mixprec_transpose)(trans >> 1 & 1);
        prepare(&p);
        desc = describe_call(MIXPREC_ISA_AUTO);
        mixprec_gemm_workspace(&desc, &best, &least);
        desc.workspace = place(SLOT_WORKSPACE, best, 1);
        desc.workspace_size = best;
        restore(&c);
        CHECK(mixprec_gemm_ex(&desc) == MIXPREC_OK, "%s", describe("native"));
        for (i = 0; i < p.m; i++)
            memcpy(&first[i * p.n], c.data + i * c.ld * c.size, p.n * sizeof *first);
        desc.workspace = place(SLOT_WORKSPACE, least, 1);
        desc.workspace_size = least;
        restore(&c);
        CHECK(mixprec_gemm_ex(&desc) == MIXPREC_OK, "%s", describe("native"));
        for (i = 0; i < p.m; i++)
            CHECK(!memcmp(&first[i * p.n], c.data + i * c.ld * c.size, p.n * sizeof *first),
                  "%s: row %zu depends on the workspace", describe("native"), i);
        for (i = 0; i < p.m && p.k == depths[0]; i++)
            for (j = 0; j < p.n; j++) {
                uint64_t got = load_code(c.data + (i * c.ld + j) * c.size, c.size);
                CHECK(got == 0 || got == expected_fused[i * p.n + j], "%s: (%zu, %zu) is %g", describe("native"), i, j,
                      decode(got, MIXPREC_F32));
            }
    }
    ask_native = 0;
}

/* What AMX-BF16 computes, bit for bit. */
static void test_tiles(void) {
    static const size_t ks[] = {1, 2, 15, 16, 17, 31, 32, 33, 63, 65, 500, 511, 512, 513, 544, 1025, 1601};
    static const mixprec_dtype types[] = {MIXPREC_BF16, MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
    size_t differing = 0, i;
    int t;
    random_state = 31;
    ask_native = 1;
    for (t = 0; t < (test_quick ? 60 : 1000); t++) {
        problem p = plain_problem(types[random_below(4)], types[random_below(4)], all_dtypes[random_below(DTYPE_COUNT)],
                                  17 + random_below(t % 8 ? 60 : 500), 17 + random_below(t % 8 ? 60 : 1200),
                                  ks[random_below(17)]);
        mixprec_gemm_desc desc;
        size_t least = 0;
        if (p.m * p.n * p.k > 3000000)
            p.k = 1 + random_below(40);
        randomise(&p);
        if (random_below(2)) /* the sums in C itself */
            p.c_type = MIXPREC_F32, p.alpha = 1, p.beta = 0;
        if (random_below(4) == 0)
            p.values = SPECIAL;
        prepare(&p);
        by_tiles = 1;
        for (i = 0; i < p.m * p.n; i++) {
            const uint64_t canonical = expected_fused[i];
            expected_fused[i] = expected_element(i / p.n, i % p.n, 1);
            differing += expected_fused[i] != canonical;
        }
        by_tiles = 0;
        desc = describe_call(MIXPREC_ISA_AVX512);
        CHECK(mixprec_gemm_workspace(&desc, NULL, &least) == MIXPREC_OK, "%s", describe("workspace"));
        run_path(MIXPREC_ISA_AVX512, NULL, 0);
        run_path(MIXPREC_ISA_AUTO, place(SLOT_WORKSPACE, least, 1), least);
    }
    ask_native = 0;
    CHECK(differing > 0, "all bits are the canonical ones: no unit was at work");
}

/* ---- what must not matter ---- */

/* Rows `from` to `to` of the problem as a call of their own. */
static mixprec_gemm_desc row_range(mixprec_gemm_desc whole, size_t from, size_t to) {
    whole.m = to - from;
    whole.a = a.data + from * (whole.trans_a ? 1 : a.ld) * a.size;
    whole.c = c.data + from * c.ld * c.size;
    whole.lda = a.ld;
    whole.ldc = c.ld;
    return whole;
}

static mixprec_gemm_desc column_range(mixprec_gemm_desc whole, size_t from, size_t to) {
    whole.n = to - from;
    whole.b = b.data + from * (whole.trans_b ? b.ld : 1) * b.size;
    whole.c = c.data + from * c.size;
    whole.ldb = b.ld;
    whole.ldc = c.ld;
    return whole;
}

static void *run_in_thread(void *desc) {
    mixprec_gemm_ex(desc);
    return NULL;
}

/* The split of a product changes no bit of it. The pieces are compared with the oracle, as the whole is. */
static void test_splits(void) {
    int t, path;
    random_state = 13;
    for (t = 0; t < 60; t++) {
        problem p = plain_problem(all_dtypes[random_below(DTYPE_COUNT)], all_dtypes[random_below(DTYPE_COUNT)],
                                  all_dtypes[random_below(DTYPE_COUNT)], 1 + random_below(40), 1 + random_below(90),
                                  1 + random_below(1300));
        if (test_quick && t >= 8)
            break;
        randomise(&p);
        prepare(&p);
        for (path = 0; path < ISA_COUNT; path++) {
            mixprec_gemm_desc whole = describe_call(all_isas[path]), piece, second;
            pthread_t thread;
            size_t i, width, middle = random_below(p.m + 1);
            if (!runs_here(all_isas[path]))
                continue;
            now_path = "rows one by one";
            restore(&c);
            for (i = 0; i < p.m; i++) {
                piece = row_range(whole, i, i + 1);
                mixprec_gemm_ex(&piece);
            }
            check_c(now_path, fuses(all_isas[path], 0));
            now_path = "column ranges";
            restore(&c);
            for (i = 0; i < p.n; i += width) {
                width = 1 + random_below(p.n - i);
                piece = column_range(whole, i, i + width);
                mixprec_gemm_ex(&piece);
            }
            check_c(now_path, fuses(all_isas[path], 0));
            now_path = "two threads";
            restore(&c);
            piece = row_range(whole, 0, middle);
            second = row_range(whole, middle, p.m);
            /* One workspace for each thread: the tests' allocator is not for two at a time. */
            CHECK(mixprec_gemm_workspace(&piece, &piece.workspace_size, NULL) == MIXPREC_OK &&
                      mixprec_gemm_workspace(&second, &second.workspace_size, NULL) == MIXPREC_OK,
                  "%s", describe(now_path));
            piece.workspace = place(SLOT_WORKSPACE, piece.workspace_size + second.workspace_size, 1);
            second.workspace = (char *)piece.workspace + piece.workspace_size;
            if (pthread_create(&thread, NULL, run_in_thread, &second)) {
                CHECK(0, "pthread_create failed");
                return;
            }
            mixprec_gemm_ex(&piece);
            pthread_join(thread, NULL);
            check_c(now_path, fuses(all_isas[path], 1));
            check_operands(now_path);
        }
    }
}

/* Narrow operands: all paths against each other, whatever the layout, with results that are not rounded away. */
static void test_same_bits(void) {
    static float results[64 * 64], first[64 * 64];
    int t, path;
    random_state = 14;
    for (t = 0; t < 64; t++) {
        size_t m = 1 + random_below(63), n = 1 + random_below(63), k = 1 + random_below(1500), i, j, layout;
        uint64_t seed;
        problem p = plain_problem(all_dtypes[2 + t % 4], all_dtypes[2 + t / 4 % 4], MIXPREC_F32, m, n, k);
        int have_first = 0;
        if (test_quick && t % 4)
            continue;
        p.values = WIDE;
        p.sample = 1u << 30;
        seed = random_bits();
        for (layout = 0; layout < 3; layout++) {
            p.pad_a = layout * 3;
            p.pad_b = layout * 16;
            p.pad_c = layout * 5;
            random_state = seed; /* the margins draw one number for each matrix, the elements the same as before */
            prepare(&p);
            for (path = 0; path < ISA_COUNT; path++) {
                mixprec_gemm_desc desc = describe_call(all_isas[path]);
                if (!runs_here(all_isas[path]))
                    continue;
                for (i = 0; i < m; i++)
                    memset((char *)c.data + i * c.ld * c.size, 0x5A, n * c.size);
                CHECK(mixprec_gemm_ex(&desc) == MIXPREC_OK, "status");
                for (i = 0; i < m; i++)
                    for (j = 0; j < n; j++)
                        memcpy(&results[i * n + j], c.data + (i * c.ld + j) * c.size, c.size);
                if (!have_first)
                    memcpy(first, results, m * n * sizeof *first);
                have_first = 1;
                CHECK(!memcmp(first, results, m * n * sizeof *first), "%s: not the bits of the first path and layout",
                      describe(path_name(all_isas[path])));
            }
        }
    }
}

/* ---- the caller's floating-point environment ---- */

#if HAVE_ENVIRONMENT
static void test_environment(void) {
    static const mixprec_dtype types[][3] = {
        {MIXPREC_F16, MIXPREC_F16, MIXPREC_F32},   {MIXPREC_BF16, MIXPREC_BF16, MIXPREC_F32},
        {MIXPREC_F32, MIXPREC_F32, MIXPREC_F32},   {MIXPREC_F64, MIXPREC_F64, MIXPREC_F64},
        {MIXPREC_E4M3, MIXPREC_E5M2, MIXPREC_F16}, {MIXPREC_F32, MIXPREC_BF16, MIXPREC_BF16},
        {MIXPREC_F64, MIXPREC_F16, MIXPREC_F32},   {MIXPREC_F32, MIXPREC_F16, MIXPREC_F16}};
    static const double tiny_factors[] = {1, 0x1p-130, -1, 1.7};
    size_t e, t, i, path;
    random_state = 15;
    for (t = 0; t < 8; t++)
        for (i = 0; i < 6; i++) {
            problem p = plain_problem(types[t][0], types[t][1], types[t][2], i % 3 ? 15 : 1, 37, i % 2 ? 60 : 530);
            randomise(&p);
            p.values = i % 2 ? TINY : PLAIN;
            p.values_b = i % 2 ? SMALL_INTEGERS : PLAIN;
            p.alpha = tiny_factors[random_below(4)];
            p.beta = i >= 2 ? tiny_factors[random_below(4)] : 0;
            prepare(&p);
            for (path = 0; path <= ISA_COUNT; path++)
                for (e = 0; e < sizeof environments / sizeof *environments; e++) {
                    int simple = path == ISA_COUNT;
                    mixprec_isa isa = simple ? MIXPREC_ISA_AUTO : all_isas[path];
                    mixprec_gemm_desc desc = describe_call(isa);
                    environment before = get_environment(), after;
                    volatile float alpha = (float)p.alpha,
                                   beta = (float)p.beta; /* volatile: converted here, not later */
                    mixprec_status status;
                    if (!runs_here(isa) || (simple && !is_simple()) || (test_quick && (e + t + i) % 3))
                        continue;
                    now_path = simple ? "mixprec_gemm" : path_name(isa);
                    restore(&c);
                    set_environment(environments[e]);
                    status = simple ? simple_call(alpha, beta) : mixprec_gemm_ex(&desc);
                    after = get_environment();
                    set_environment(before);
                    CHECK(status == MIXPREC_OK && after == environments[e],
                          "%s: status %d, the environment was %llx and is %llx", describe(now_path), (int)status,
                          (unsigned long long)environments[e], (unsigned long long)after);
                    check_c(now_path, fuses(isa, 0));
                }
        }
}
/* Factors that DAZ takes for 0. */
static void test_subnormal_factors(void) {
    const double tiny = 1e-310, none = 0, x[1] = {1e10};
    size_t e;
    for (e = 0; e < 2 * (sizeof environments / sizeof *environments); e++) {
        environment before = get_environment();
        mixprec_gemm_desc desc = {0};
        double result[1] = {1e20};
        desc.m = desc.n = desc.k = 1;
        desc.a_type = desc.b_type = desc.c_type = MIXPREC_F64;
        desc.a = desc.b = x;
        desc.c = result;
        desc.alpha = e % 2 ? &tiny : &none;
        desc.beta = e % 2 ? &none : &tiny;
        set_environment(environments[e / 2]);
        mixprec_gemm_ex(&desc);
        set_environment(before);
        CHECK(fabs(result[0] / 1e-290 - 1) < 1e-9, "environment %d, %s 1e-310: got %g, want 1e-290", (int)e / 2,
              e % 2 ? "alpha" : "beta", result[0]);
    }
}
#endif

/* ---- errors ---- */

static void check_error(const mixprec_gemm_desc *desc, mixprec_status want, const char *what, int of_workspace_too) {
    size_t best = 77, least = 78;
    mixprec_status got = mixprec_gemm_ex(desc);
    CHECK(got == want, "%s: got %d (%s), want %d", what, (int)got, mixprec_status_string(got), (int)want);
    CHECK(unchanged(&c) && unchanged(&a) && unchanged(&b), "%s: a matrix changed", what);
    if (!of_workspace_too)
        return;
    got = mixprec_gemm_workspace(desc, &best, &least);
    CHECK(got == want, "mixprec_gemm_workspace: %s: got %d, want %d", what, (int)got, (int)want);
    CHECK(best == 77 && least == 78, "mixprec_gemm_workspace: %s: wrote although it failed", what);
}

/* One field of a good descriptor is made bad. */
#define BAD(field, value, status, of_workspace_too)                                                                    \
    do {                                                                                                               \
        mixprec_gemm_desc bad = good;                                                                                  \
        bad.field = value;                                                                                             \
        check_error(&bad, status, "." #field " = " #value, of_workspace_too);                                          \
    } while (0)

static void check_statuses(double beta) {
    problem p = plain_problem(MIXPREC_F16, MIXPREC_F16, MIXPREC_F32, 13, 40, 30);
    mixprec_gemm_desc good;
    size_t i, least = 0;
    random_state = 16;
    p.beta = beta;
    p.pad_a = p.pad_b = p.pad_c = 4;
    placement = 2;
    prepare(&p);
    good = describe_call(MIXPREC_ISA_AUTO);

    CHECK(mixprec_gemm_ex(NULL) == MIXPREC_ERR_NULL, "NULL descriptor");
    CHECK(mixprec_gemm_workspace(NULL, NULL, &least) == MIXPREC_ERR_NULL && least == 0, "NULL descriptor: workspace");
    BAD(a, NULL, MIXPREC_ERR_NULL, 0);
    BAD(b, NULL, MIXPREC_ERR_NULL, 0);
    BAD(c, NULL, MIXPREC_ERR_NULL, 0);
    for (i = 0; i < 4; i++) {
        const mixprec_dtype no_dtypes[] = {MIXPREC_NONE, (mixprec_dtype)MIXPREC_DTYPE_COUNT, (mixprec_dtype)0x7FFFFFFF,
                                           (mixprec_dtype)0x80000000u};
        BAD(a_type, no_dtypes[i], MIXPREC_ERR_DTYPE, 1);
        BAD(b_type, no_dtypes[i], MIXPREC_ERR_DTYPE, 1);
        BAD(c_type, no_dtypes[i], MIXPREC_ERR_DTYPE, 1);
    }
    BAD(trans_a, (mixprec_transpose)2, MIXPREC_ERR_TRANSPOSE, 1);
    BAD(trans_b, (mixprec_transpose)0xFFFFFFFFu, MIXPREC_ERR_TRANSPOSE, 1);
    BAD(round, (mixprec_round)6, MIXPREC_ERR_ROUND, 1);
    BAD(round, (mixprec_round)0xFFFFFFFFu, MIXPREC_ERR_ROUND, 1);
    BAD(overflow, (mixprec_overflow)3, MIXPREC_ERR_OVERFLOW, 1);
    BAD(isa, (mixprec_isa)(MIXPREC_ISA_NEON + 1), MIXPREC_ERR_ISA, 1);
    BAD(isa, (mixprec_isa)0xFFFFFFFFu, MIXPREC_ERR_ISA, 1);
    for (i = 0; i < (size_t)ISA_COUNT; i++)
        if (!runs_here(all_isas[i]))
            BAD(isa, all_isas[i], MIXPREC_ERR_ISA, 1);

    BAD(bias_type, (mixprec_dtype)MIXPREC_DTYPE_COUNT, MIXPREC_ERR_DTYPE, 1);
    BAD(activation, (mixprec_activation)0x7FFFFFFF, MIXPREC_ERR_ACTIVATION, 1);
    BAD(triangle, (mixprec_triangle)0x7FFFFFFF, MIXPREC_ERR_TRIANGLE, 1);
    BAD(row_end, 14, MIXPREC_ERR_RANGE, 1);
    BAD(row_begin, 1, MIXPREC_ERR_RANGE, 1);

    BAD(lda, 29, MIXPREC_ERR_LEADING_DIMENSION, 1);
    BAD(ldb, 39, MIXPREC_ERR_LEADING_DIMENSION, 1);
    BAD(ldc, 39, MIXPREC_ERR_LEADING_DIMENSION, 1);
    good.trans_a = good.trans_b = MIXPREC_TRANS; /* A is now 30 x 13, B 40 x 30: both fit into what is there */
    BAD(lda, 12, MIXPREC_ERR_LEADING_DIMENSION, 1);
    BAD(ldb, 29, MIXPREC_ERR_LEADING_DIMENSION, 1);
    good.trans_a = good.trans_b = MIXPREC_NO_TRANS;
    for (i = 0; i < 6; i++) {
        mixprec_status got =
            mixprec_gemm(i == 5 ? (mixprec_transpose)7 : MIXPREC_NO_TRANS, MIXPREC_NO_TRANS, 13, 40, i == 4 ? 0 : 30, 1,
                         a.data, MIXPREC_F16, i == 0 || i == 4 ? 0 : 30, b.data, MIXPREC_F16, i == 1 ? 0 : 40, 0,
                         i == 3 ? NULL : c.data, MIXPREC_F32, i == 2 ? 0 : 40);
        mixprec_status want = i == 3   ? MIXPREC_ERR_NULL
                              : i == 5 ? MIXPREC_ERR_TRANSPOSE
                                       : MIXPREC_ERR_LEADING_DIMENSION;
        CHECK(got == want, "mixprec_gemm, case %zu: got %d, want %d", i, (int)got, (int)want);
        CHECK(unchanged(&c), "mixprec_gemm, case %zu: C changed", i);
    }

    BAD(lda, SIZE_MAX / 2, MIXPREC_ERR_SIZE, 1);
    BAD(ldb, SIZE_MAX / 4, MIXPREC_ERR_SIZE, 1);
    BAD(ldc, SIZE_MAX, MIXPREC_ERR_SIZE, 1);
    {
        mixprec_gemm_desc huge = good;
        huge.lda = huge.ldb = huge.ldc = 0;
        huge.m = huge.n = SIZE_MAX / 2;
        check_error(&huge, MIXPREC_ERR_SIZE, "m = n = SIZE_MAX / 2", 1);
        huge.m = 1;
        huge.k = SIZE_MAX / 2;
        check_error(&huge, MIXPREC_ERR_SIZE, "n = k = SIZE_MAX / 2", 1);
        huge.n = 1;
        huge.k = SIZE_MAX; /* 2 SIZE_MAX bytes in one row */
        check_error(&huge, MIXPREC_ERR_SIZE, "k = SIZE_MAX", 1);
    }

    BAD(a, c.data, MIXPREC_ERR_OVERLAP, 0);
    BAD(b, c.data, MIXPREC_ERR_OVERLAP, 0);
    BAD(a, c.data + c.bytes - 2, MIXPREC_ERR_OVERLAP, 0);
    BAD(b, c.data + c.bytes - 2, MIXPREC_ERR_OVERLAP, 0);
    BAD(a, c.data + 4 * c.ld, MIXPREC_ERR_OVERLAP, 0);
    BAD(a, c.data - a.bytes + 2, MIXPREC_ERR_OVERLAP, 0);
    BAD(b, c.data - b.bytes + 2, MIXPREC_ERR_OVERLAP, 0);

    CHECK(mixprec_gemm_workspace(&good, NULL, &least) == MIXPREC_OK, "the good descriptor");
    CHECK(least > 0, "no workspace is too small for this product: this test tests nothing");
    if (least > 0) {
        good.workspace = slots[SLOT_WORKSPACE];
        BAD(workspace_size, least - 1, MIXPREC_ERR_WORKSPACE, 0);
        BAD(workspace_size, 0, MIXPREC_ERR_WORKSPACE, 0);
    }
}

/* Without beta, what takes the short way if nothing is wrong. */
static void test_statuses(void) {
    check_statuses(0.5);
    check_statuses(0);
}

/* Random small C and A in one buffer. Sharing a byte is an error; disjoint extents are none, nor are blocks side by
   side in one larger matrix; for the rest the library may decide. */
static void test_overlap(void) {
    static unsigned char buffer[4096], other[64 * 8], shared[4096];
    long t, refused = 0, side_by_side = 0;
    random_state = 17;
    memset(other, 0, sizeof other);
    for (t = 0; t < 100000; t++) {
        size_t m = 1 + random_below(6), n = 1 + random_below(6), k = 1 + random_below(6), i, j, a_bytes, c_bytes, a_at,
               c_at;
        size_t lda, ldc, rows_a, columns_a, a_size, c_size;
        int is_b = (int)random_below(2), trans = (int)random_below(2), shares = 0;
        mixprec_status got;
        mixprec_gemm_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.m = m;
        desc.n = n;
        desc.k = k;
        desc.a_type = desc.b_type = all_dtypes[random_below(DTYPE_COUNT)];
        desc.c_type = all_dtypes[random_below(DTYPE_COUNT)];
        a_size = mixprec_dtype_size(desc.a_type);
        c_size = mixprec_dtype_size(desc.c_type);
        if (is_b)
            desc.trans_b = trans ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
        else
            desc.trans_a = trans ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
        rows_a = is_b ? (trans ? n : k) : (trans ? k : m);
        columns_a = is_b ? (trans ? k : n) : (trans ? m : k);
        lda = columns_a + random_below(8);
        ldc = lda * a_size % c_size == 0 && lda * a_size / c_size >= n && random_below(2) ? lda * a_size / c_size
                                                                                          : n + random_below(8);
        a_bytes = ((rows_a - 1) * lda + columns_a) * a_size;
        c_bytes = ((m - 1) * ldc + n) * c_size;
        a_at = 1024;
        c_at =
            (1024 - c_bytes / 8 * 8) / 8 * 8 - 64 + random_below((a_bytes + c_bytes) / c_size + 128 / c_size) * c_size;
        memset(shared, 0, sizeof shared);
        for (i = 0; i < rows_a; i++)
            memset(shared + a_at + i * lda * a_size, 1, columns_a * a_size);
        for (i = 0; i < m; i++)
            for (j = 0; j < n * c_size; j++)
                shares |= shared[c_at + i * ldc * c_size + j];
        desc.a = is_b ? other : buffer + a_at;
        desc.b = is_b ? buffer + a_at : other;
        desc.c = buffer + c_at;
        desc.lda = is_b ? 0 : lda;
        desc.ldb = is_b ? lda : 0;
        desc.ldc = ldc;
        got = mixprec_gemm_ex(&desc);
        if (shares) {
            CHECK(got == MIXPREC_ERR_OVERLAP,
                  "C %zux%zu of %zu at %zu, ld %zu, and %zux%zu of %zu at %zu, ld %zu: got %d", m, n, c_size, c_at, ldc,
                  rows_a, columns_a, a_size, a_at, lda, (int)got);
            refused++;
        } else if (c_at >= a_at + a_bytes || a_at >= c_at + c_bytes)
            CHECK(got == MIXPREC_OK, "C at %zu, %zu bytes, and %zu bytes at %zu: got %d", c_at, c_bytes, a_bytes, a_at,
                  (int)got);
        else if (lda * a_size == ldc * c_size) { /* exact, a single row included */
            CHECK(got == MIXPREC_OK,
                  "C %zux%zu of %zu at %zu and %zux%zu of %zu at %zu, stride %zu, side by side: got %d", m, n, c_size,
                  c_at, rows_a, columns_a, a_size, a_at, lda * a_size, (int)got);
            side_by_side++;
        }
    }
    CHECK(refused > 1000 && side_by_side > 100, "only %ld overlaps and %ld blocks side by side", refused, side_by_side);
}

/* Two things that look like errors and are none. */
static void test_allowed_aliasing(void) {
    float square[9 * 9], product[9 * 9];
    unsigned char both[2 * sizeof square];
    int i, j, k;
    for (i = 0; i < 81; i++)
        square[i] = (float)(i % 7 - 3);
    /* A is B. */
    CHECK(mixprec_gemm(MIXPREC_NO_TRANS, MIXPREC_TRANS, 9, 9, 9, 1, square, MIXPREC_F32, 9, square, MIXPREC_F32, 9, 0,
                       product, MIXPREC_F32, 9) == MIXPREC_OK,
          "A A^T");
    for (i = 0; i < 9; i++)
        for (j = 0; j < 9; j++) {
            float sum = 0;
            for (k = 0; k < 9; k++)
                sum += square[9 * i + k] * square[9 * j + k]; /* small integers: exact */
            CHECK(product[9 * i + j] == sum, "A A^T (%d, %d): got %g, want %g", i, j, (double)product[9 * i + j],
                  (double)sum);
        }
    /* C begins where A ends. */
    memcpy(both, square, sizeof square);
    CHECK(mixprec_gemm(MIXPREC_NO_TRANS, MIXPREC_TRANS, 9, 9, 9, 1, both, MIXPREC_F32, 9, square, MIXPREC_F32, 9, 0,
                       both + sizeof square, MIXPREC_F32, 9) == MIXPREC_OK,
          "C behind A");
    CHECK(!memcmp(both, square, sizeof square) && !memcmp(both + sizeof square, product, sizeof product), "C behind A");
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
        {"gemm: sizes 0 to 63, every pair of operand types", test_small_sizes},
        {"gemm: small products alone", test_small_products},
        {"gemm: every type of A, B and C", test_all_types},
        {"gemm: sizes around tiles and chunks", test_tile_sizes},
        {"gemm: few rows", test_few_rows},
        {"gemm: few sums of a long k", test_few_sums},
        {"gemm: few rows, B anywhere in a cache line", test_few_rows_lines},
        {"gemm: one row, several chunks at once", test_one_row_strips},
        {"gemm: bf16 and fp8, subnormal sums", test_pairs},
        {"gemm: two small parts", test_small_parts},
        {"gemm: few rows, rows of B far apart", test_few_rows_apart},
        {"gemm: few rows, sums of -0", test_few_rows_minus_zero},
        {"gemm: a C larger than the caches", test_large_c},
        {"gemm: shapes across cache blocks", test_large_shapes},
        {"gemm: transposes, alpha, beta", test_alpha_beta},
        {"gemm: every code of A and B", test_every_code},
        {"gemm: rounding modes and overflow policies", test_rounding},
        {"gemm: NaN and Inf", test_nan_and_inf},
        {"gemm: what alpha = 0 and k = 0 must not read", test_unread_operands},
        {"gemm: a matrix of one row has any leading dimension", test_one_stored_row},
        {"gemm: any workspace gives the same bits", test_workspaces},
        {"gemm: allocation", test_allocation},
        {"gemm: error bound", test_error_bound},
        {"gemm: usual error", test_usual_error},
        {"gemm: .native where the result is exact or there is no unit", test_native},
        {"gemm: single rows, column ranges, threads", test_splits},
        {"gemm: same bits on every path and in every layout", test_same_bits},
#if HAVE_ENVIRONMENT
        {"gemm: the caller's floating-point environment", test_environment},
        {"gemm: subnormal factors in any floating-point environment", test_subnormal_factors},
#endif
        {"gemm: every error status", test_statuses},
        {"gemm: overlap of C", test_overlap},
        {"gemm: allowed aliasing", test_allowed_aliasing}
    };
    size_t i;
    test_init(argc, argv);
    make_slots();
    guard_crashes(describe_now);
    for (i = 0; i < sizeof tests / sizeof *tests; i++)
        if (test_begin(tests[i].name)) {
            tests[i].run();
            test_end();
        }
    if (!library_hide_units(1))
        test_skip("gemm: few rows, without AVX512_VBMI", "this CPU has no such units");
    else if (test_begin("gemm: few rows, without AVX512_VBMI")) {
        only_fp8 = 1;
        test_few_rows();
        only_fp8 = 0;
        test_one_row_strips();
        test_end();
    }
    library_hide_units(0);
    if (!mixprec_native_available(MIXPREC_BF16, MIXPREC_BF16))
        test_skip("gemm: dot-product unit for bf16", "not compiled in, or not available on this CPU");
    else if (test_begin("gemm: error of the dot-product unit for bf16")) {
        test_native_error();
        test_native_subnormals();
        test_end();
    }
    if (!mixprec_native_available(MIXPREC_E4M3, MIXPREC_BF16))
        test_skip("gemm: AMX-BF16", "not compiled in, or not available on this CPU");
    else if (test_begin("gemm: AMX-BF16")) {
        test_tiles();
        test_end();
    }
    for (i = 0; i < (size_t)ISA_COUNT; i++)
        if (!runs_here(all_isas[i])) {
            char name[40];
            snprintf(name, sizeof name, "gemm: the %s path", mixprec_isa_name(all_isas[i]));
            test_skip(name, "not compiled in, or not available on this CPU");
        }
    return test_summary();
}
