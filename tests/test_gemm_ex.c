/* Tests of all that mixprec_gemm_ex does beyond mixprec_gemm: batches, scales, bias, activations, rounding, rows,
   triangles, threads, packed B, workspaces. test_gemm.c tests the plain product.

       cc -O2 -std=gnu11 tests/test_gemm_ex.c -lm -pthread && ./a.out [--quick] [--filter TEXT]

   The oracle is the contract of mixprec_gemm_ex as a scalar loop; numbers are read and narrowed by oracle.h. A problem
   is drawn at random, its matrices lie between unmapped pages with NaN in all gaps, and every byte of C, in and between
   its matrices, is compared after each call. The same problem is run on each instruction set several times, in ways
   that must not matter: workspaces, tasks, ranges of rows, a packed B, the floating-point environment.

   Activations but ReLU are promised within 6 ulp and with the same bits everywhere. So the oracle asks portable C for
   them, element by element apart from any product, and checks what it gets against long double. */
#include <math.h>
#include <pthread.h>
#include <stdint.h>

#include "library.h"
#include "test.h"

#include "codes.h"
#include "dot.h"
#include "environment.h"
#include "guard.h"
#include "oracle.h"

/* ---- a thread pool, as a user of .parallel_for may have one ---- */

/* `mixprec_gemm_desc.parallel_for = pool_run, .parallel_context = &pool, .threads = 4` uses it. Workers sleep until
   there is work; the caller works, too. One call at a time. */
typedef struct pool {
    pthread_mutex_t lock; /* protects all that follows */
    pthread_cond_t work, done;
    void (*task)(void *data, size_t index);
    void *data;
    size_t tasks, started, finished;
    int quit;
} pool;

static void pool_work(pool *p) { /* with the lock held */
    while (p->started < p->tasks) {
        size_t index = p->started++;
        pthread_mutex_unlock(&p->lock);
        p->task(p->data, index);
        pthread_mutex_lock(&p->lock);
        if (++p->finished == p->tasks)
            pthread_cond_signal(&p->done);
    }
}

static void *pool_worker(void *context) {
    pool *p = context;
    pthread_mutex_lock(&p->lock);
    while (!p->quit) {
        pool_work(p);
        if (!p->quit)
            pthread_cond_wait(&p->work, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void pool_run(void *context, size_t tasks, void (*task)(void *data, size_t index), void *data) {
    pool *p = context;
    pthread_mutex_lock(&p->lock);
    p->task = task;
    p->data = data;
    p->tasks = tasks;
    p->started = p->finished = 0;
    pthread_cond_broadcast(&p->work);
    pool_work(p);
    while (p->finished < tasks)
        pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

static pool the_pool = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, NULL, 0, 0, 0, 0};
#define POOL_WORKERS 2

/* ---- random numbers ---- */

static size_t random_below(size_t n) {
    return (size_t)(oracle_random() >> 8) % n;
}

static int one_in(size_t n) {
    return random_below(n) == 0;
}

#define PICK(list) ((list)[random_below(sizeof(list) / sizeof *(list))])

/* ---- codes ---- */

static double decode(uint64_t code, mixprec_dtype dtype) {
    return oracle_double(dtype == MIXPREC_F64 ? code : oracle_decode(oracle_format_of(dtype), (uint32_t)code));
}

static uint64_t encode(double x, mixprec_dtype dtype, mixprec_round round, mixprec_overflow overflow, uint32_t random) {
    oracle_place place;
    if (dtype == MIXPREC_F64)
        return oracle_bits(x);
    place = oracle_locate(oracle_format_of(dtype), oracle_bits(x));
    return oracle_round(&place, round, overflow, random);
}

static uint64_t nearest(double x, mixprec_dtype dtype) {
    return encode(x, dtype, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0);
}

static int is_nan(double x) {
    return (oracle_bits(x) & ~ORACLE_SIGN) > ORACLE_INF;
}

static double f32(double x) {
    volatile float y = (float)x; /* volatile: gcc 12.2 drops a vectorised (double)(float) */
    return (double)y;
}

static size_t size_of(mixprec_dtype dtype) {
    return dtype == MIXPREC_F64 ? 8 : (size_t)oracle_format_of(dtype)->bits / 8;
}

/* ---- memory between unmapped pages ---- */

enum slot { SLOT_A, SLOT_B, SLOT_C, SLOT_BIAS, SLOT_SCALES_A, SLOT_SCALES_B, SLOT_PACKED, SLOT_WORKSPACE, SLOT_COUNT };
#define SLOT_SIZE ((size_t)1 << 26)
#define MARGIN 192
static unsigned char *slots[SLOT_COUNT];

/* What a part of a slot held before the call, with up to MARGIN bytes before and behind. */
typedef struct region {
    unsigned char *data, *window, *saved;
    size_t bytes, window_bytes, capacity;
} region;
static region a_memory, b_memory, c_memory, bias_memory, scales_a_memory, scales_b_memory;

static void fail(const char *what) {
    perror(what);
    exit(2);
}

static void make_slots(void) {
    int i;
    for (i = 0; i < SLOT_COUNT; i++)
        slots[i] = guarded(SLOT_SIZE);
}

static void *grow(void *memory, size_t *capacity, size_t bytes) {
    if (bytes > *capacity) {
        *capacity = bytes + bytes / 2;
        memory = realloc(memory, *capacity);
        if (!memory)
            fail("test_gemm_ex");
    }
    return memory;
}

/* Against the unmapped page behind, against the one before, or off alignment by an element. */
static unsigned char *place(enum slot slot, size_t bytes, size_t element) {
    if (bytes + element > SLOT_SIZE) {
        fprintf(stderr, "test_gemm_ex: a slot is too small for %zu bytes\n", bytes);
        exit(2);
    }
    switch (random_below(3)) {
    case 0: return slots[slot] + SLOT_SIZE - bytes;
    case 1: return slots[slot];
    default: return slots[slot] + element;
    }
}

static void make_region(region *r, enum slot slot, size_t bytes, size_t element, int fill) {
    size_t before, behind;
    r->data = place(slot, bytes, element);
    r->bytes = bytes;
    before = (size_t)(r->data - slots[slot]);
    behind = SLOT_SIZE - before - bytes;
    before = before < MARGIN ? before : MARGIN;
    behind = behind < MARGIN ? behind : MARGIN;
    r->window = r->data - before;
    r->window_bytes = before + bytes + behind;
    memset(r->window, fill, r->window_bytes);
}

static void save(region *r) {
    r->saved = grow(r->saved, &r->capacity, r->window_bytes + 1);
    memcpy(r->saved, r->window, r->window_bytes);
}

static int unchanged(const region *r) {
    return !r->window || !memcmp(r->saved, r->window, r->window_bytes);
}

static void restore(const region *r) {
    memcpy(r->window, r->saved, r->window_bytes);
}

/* ---- a problem ---- */

#define MAX_BATCH 9
enum layout {
    ONE_BEHIND_ANOTHER,
    INTERLEAVED, /* rows of all matrices in turn: rows x batch x columns, as attention heads are */
    SHARED,      /* the same for all products */
    ARRAY        /* through pointers, in any order; A and B several times */
};

typedef struct operand {
    mixprec_dtype type;
    size_t size;              /* of an element */
    size_t rows, columns, ld; /* as stored */
    enum layout layout;
    size_t stride;
    size_t at[MAX_BATCH]; /* where the matrices begin, in elements */
    void *pointers[MAX_BATCH];
    region *memory;
} operand;

enum values { PLAIN, /* magnitudes from 1/8 to 8 */ SPECIAL /* now and then 0, Inf, NaN, the largest and smallest */ };

typedef struct problem {
    mixprec_transpose trans_a, trans_b;
    size_t m, n, k, batch;
    double alpha, beta;
    int alone; /* alpha and beta are not given */
    mixprec_dtype bias_type;
    int has_bias, a_is_b;
    mixprec_activation activation;
    mixprec_round round;
    mixprec_overflow overflow;
    uint64_t seed, offset;
    mixprec_triangle triangle;
    enum values values;
    mixprec_scales scale_a, scale_b;
} problem;

static problem now;
static operand a, b, c;
static const char *now_how = "";

static int accumulates_in_f64(void) {
    return a.type == MIXPREC_F64 && b.type == MIXPREC_F64;
}
static int finishes_in_f64(void) {
    return accumulates_in_f64() || c.type == MIXPREC_F64;
}

static const char *layout_name(enum layout layout) {
    static const char *const names[] = {"", " interleaved", " shared", " array"};
    return names[layout];
}

static const char *describe(void) {
    static char text[900];
    snprintf(text, sizeof text,
             "%s%s %zux%zux%zu batch %zu, %s ld %zu stride %zu%s x %s ld %zu stride %zu%s%s -> %s ld %zu stride %zu%s, "
             "alpha %g beta %g, scales A %s %zux%zu ld %zu, B %s %zux%zu ld %zu, bias %s, activation %d, round %d/%d, "
             "triangle %d, values %d, %s",
             now.trans_a ? "T" : "N", now.trans_b ? "T" : "N", now.m, now.n, now.k, now.batch,
             mixprec_dtype_name(a.type), a.ld, a.stride, layout_name(a.layout), mixprec_dtype_name(b.type), b.ld,
             b.stride, layout_name(b.layout), now.a_is_b ? " is A" : "", mixprec_dtype_name(c.type), c.ld, c.stride,
             layout_name(c.layout), now.alpha, now.beta, now.scale_a.values ? "" : "no", now.scale_a.block_rows,
             now.scale_a.block_columns, now.scale_a.ld, now.scale_b.values ? "" : "no", now.scale_b.block_rows,
             now.scale_b.block_columns, now.scale_b.ld, now.has_bias ? mixprec_dtype_name(now.bias_type) : "no",
             (int)now.activation, (int)now.round, (int)now.overflow, (int)now.triangle, (int)now.values, now_how);
    return text;
}

/* ---- drawing a problem ---- */

static const mixprec_dtype all_dtypes[] = {MIXPREC_F32,  MIXPREC_F64,  MIXPREC_F16,
                                           MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};

static double random_magnitude(int exponent_range) {
    uint64_t mantissa = oracle_random() >> 12;
    return oracle_double((uint64_t)(1023 + (int)random_below((size_t)(2 * exponent_range)) - exponent_range) << 52 |
                         mantissa);
}

static uint64_t random_code(mixprec_dtype dtype, enum values values) {
    static const double specials[] = {0, HUGE_VAL, (double)NAN, 1e38, 60000, 448, 1e-40, 1e-7, 0.002};
    double magnitude = values == SPECIAL && one_in(60) ? PICK(specials) : random_magnitude(3);
    return nearest(one_in(2) ? -magnitude : magnitude, dtype);
}

/* A matrix for each product somewhere in x->memory. C must not overlap itself; it keeps NaN where it is not read. */
static void make_operand(operand *x, region *memory, enum slot slot, size_t rows, size_t columns, int is_c, int read) {
    size_t l, i, j, batch = now.batch, pad = random_below(2) * random_below(20), order[MAX_BATCH], extent = 0;
    x->size = size_of(x->type);
    x->rows = rows;
    x->columns = columns;
    x->memory = memory;
    x->ld = columns + pad;
    x->stride = rows * x->ld + random_below(2) * random_below(30);
    if (x->layout == INTERLEAVED) {
        x->stride = columns + random_below(2) * random_below(4);
        x->ld = batch * x->stride + pad;
    } else if (x->layout == SHARED)
        x->stride = 0;
    for (l = 0; l < batch; l++)
        order[l] = l;
    for (l = 0; x->layout == ARRAY && l < batch; l++) {
        size_t other = l + random_below(batch - l), kept = order[l];
        order[l] = order[other];
        order[other] = kept;
        if (!is_c && one_in(3))
            order[l] = order[random_below(batch)];
    }
    for (l = 0; l < batch; l++) {
        x->at[l] = order[l] * x->stride;
        if (rows && columns && extent < x->at[l] + (rows - 1) * x->ld + columns)
            extent = x->at[l] + (rows - 1) * x->ld + columns;
    }
    make_region(memory, slot, extent * x->size, x->size, is_c && one_in(2) ? 0xA5 : 0xFF);
    for (l = 0; l < batch; l++) {
        x->pointers[l] = memory->data + x->at[l] * x->size;
        for (i = 0; i < rows && read; i++)
            for (j = 0; j < columns; j++)
                store_code(memory->data + (x->at[l] + i * x->ld + j) * x->size, random_code(x->type, now.values),
                           x->size);
    }
    save(memory);
}

/* What an element was before the call. */
static const unsigned char *saved_element(const operand *x, size_t l, size_t i, size_t j) {
    const region *r = x->memory;
    return r->saved + (r->data - r->window) + (x->at[l] + i * x->ld + j) * x->size;
}
static double saved_value(const operand *x, size_t l, size_t i, size_t j) {
    return decode(load_code(saved_element(x, l, i, j), x->size), x->type);
}

static size_t blocks(size_t length, size_t block) {
    return length == 0 ? 0 : block == 0 ? 1 : (length + block - 1) / block;
}

/* Scales of a rows x columns matrix, with NaN between their rows. */
static void make_scales(mixprec_scales *s, region *memory, enum slot slot, const operand *x, int along_rows) {
    static const size_t along_k[] = {0, 0, 1, 3, 32, 128, 128, 512, 700}, across[] = {0, 0, 1, 1, 2, 16, 128};
    size_t rows, columns, i, j;
    s->block_rows = along_rows ? PICK(along_k) : PICK(across);
    s->block_columns = along_rows ? PICK(across) : PICK(along_k);
    rows = blocks(x->rows, s->block_rows);
    columns = blocks(x->columns, s->block_columns);
    s->ld = columns + random_below(2) * random_below(5);
    make_region(memory, slot, rows && columns ? ((rows - 1) * s->ld + columns) * 4 : 0, 4, 0xFF);
    for (i = 0; i < rows; i++)
        for (j = 0; j < columns; j++)
            store_code(memory->data + (i * s->ld + j) * 4, nearest(random_magnitude(4), MIXPREC_F32), 4);
    s->values = (const float *)(const void *)memory->data;
    save(memory);
}

static double scale_of(const mixprec_scales *s, const region *memory, size_t i, size_t j) {
    size_t row = s->block_rows ? i / s->block_rows : 0, column = s->block_columns ? j / s->block_columns : 0;
    return decode(load_code(memory->saved + (memory->data - memory->window) + (row * s->ld + column) * 4, 4),
                  MIXPREC_F32);
}

/* What a test is about; the rest is then left out more often than not. */
enum { BATCHES = 1, SCALES = 2, BIAS = 4, ROUNDING = 8, TRIANGLES = 16, A_IS_B = 32, EVERYTHING = 63, ALONE = 64 };

static int wanted(int focus, int feature) {
    if (focus & ALONE)
        return focus & feature;
    return focus & feature ? !one_in(4) : one_in(12);
}

static const size_t *draw_large; /* not NULL: m, n, k */
static void draw_problem(int focus) {
    static const size_t long_ks[] = {511, 512, 513, 640, 1024, 1025, 1300, 1537, 2100};
    static const double factors[] = {1, -1, 0.5, 1.7};
    int narrow = one_in(3); /* types whose products are exact */
    memset(&now, 0, sizeof now);
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    memset(&c, 0, sizeof c);
    now.m = random_below(one_in(2) ? 12 : 71);
    now.n = random_below(one_in(2) ? 12 : 71);
    now.k = random_below(71);
    if (one_in(3)) {
        now.k = PICK(long_ks);
        now.m %= 24;
        now.n %= 40;
    }
    if (one_in(20))
        *(one_in(2) ? &now.m : &now.n) += 100 + random_below(200);
    a.type = all_dtypes[narrow ? 2 + random_below(4) : random_below(6)];
    b.type = all_dtypes[narrow ? 2 + random_below(4) : random_below(6)];
    c.type = PICK(all_dtypes);
    now.trans_a = one_in(2) ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
    now.trans_b = one_in(2) ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
    now.batch = wanted(focus, BATCHES) ? 1 + random_below(one_in(4) ? MAX_BATCH : 4) : 1;
    if (now.batch > 3) {
        now.m %= 40;
        now.n %= 40;
    }
    if (now.batch > 1) {
        a.layout = (enum layout)random_below(4);
        b.layout = (enum layout)random_below(4);
        c.layout = PICK(((const enum layout[]){ONE_BEHIND_ANOTHER, INTERLEAVED, ARRAY}));
    } else if (focus == (ALONE | BATCHES))
        *(one_in(3) ? &a.layout : one_in(2) ? &b.layout : &c.layout) = ARRAY;
    else if (one_in(10))
        a.layout = b.layout = c.layout = ARRAY;
    if (draw_large) {
        now.m = draw_large[0];
        now.n = draw_large[1];
        now.k = draw_large[2];
        now.batch = 1;
        if (now.m * now.n * now.k > 3000000) { /* not both oracles */
            a.type = all_dtypes[2 + random_below(4)];
            b.type = all_dtypes[2 + random_below(4)];
        }
    }
    now.alpha = one_in(2) ? 1 : one_in(15) ? 0 : PICK(factors);
    now.beta = one_in(2) ? 0 : PICK(factors);
    if (focus & ALONE) {
        now.alpha = 1;
        now.beta = 0;
        now.alone = 1;
    }
    now.values = one_in(4) ? SPECIAL : PLAIN;
    if (wanted(focus, A_IS_B)) {
        now.a_is_b = 1;
        b.type = a.type;
        now.trans_b = now.trans_a ? MIXPREC_NO_TRANS : MIXPREC_TRANS;
        now.n = now.m;
        now.beta = one_in(4) ? 0.5 : 0; /* 0: where half the work is enough */
        if (one_in(8)) {                /* A A and A^T A^T, which are not symmetric */
            now.k = now.m;
            now.trans_b = now.trans_a;
        }
    }
    if (wanted(focus, TRIANGLES)) {
        now.triangle = one_in(2) ? MIXPREC_LOWER : MIXPREC_UPPER;
        now.n = now.m;
    }
    if (wanted(focus, ROUNDING)) {
        now.round = (mixprec_round)random_below(6);
        now.overflow = (mixprec_overflow)random_below(3);
        now.seed = oracle_random();
        now.offset = one_in(2) ? 0 : oracle_random();
    }
    if (wanted(focus, BIAS)) {
        now.has_bias = !one_in(4);
        now.bias_type = PICK(all_dtypes);
        now.activation = finishes_in_f64() ? (mixprec_activation)random_below(2) : (mixprec_activation)random_below(6);
        if (now.alone && one_in(2)) {
            now.bias_type = MIXPREC_F32;
            now.activation = MIXPREC_ACTIVATION_NONE;
        }
    }
    make_operand(&a, &a_memory, SLOT_A, now.trans_a ? now.k : now.m, now.trans_a ? now.m : now.k, 0, 1);
    if (now.a_is_b) {
        b = a;
        if (b.layout != ARRAY && one_in(4)) { /* nor is A_l A_0^T */
            size_t l;
            b.layout = SHARED;
            b.stride = 0;
            for (l = 0; l < now.batch; l++)
                b.at[l] = 0;
        }
    } else
        make_operand(&b, &b_memory, SLOT_B, now.trans_b ? now.n : now.k, now.trans_b ? now.k : now.n, 0, 1);
    make_operand(&c, &c_memory, SLOT_C, now.m, now.n, 1, now.beta != 0);
    bias_memory.window = scales_a_memory.window = scales_b_memory.window = NULL;
    if (now.has_bias) {
        size_t j, size = size_of(now.bias_type);
        make_region(&bias_memory, SLOT_BIAS, now.n * size, size, 0xFF);
        for (j = 0; j < now.n; j++)
            store_code(bias_memory.data + j * size, random_code(now.bias_type, now.values), size);
        save(&bias_memory);
    }
    if (wanted(focus, SCALES))
        make_scales(&now.scale_a, &scales_a_memory, SLOT_SCALES_A, &a, now.trans_a != MIXPREC_NO_TRANS);
    if (wanted(focus, SCALES))
        make_scales(&now.scale_b, &scales_b_memory, SLOT_SCALES_B, &b, now.trans_b == MIXPREC_NO_TRANS);
}

/* ---- the oracle ---- */

static double *left, *right, *results; /* op(A) row by row, op(B) column by column, as the accumulator sees them */
static uint64_t *expected[2];          /* [fused] */
static size_t left_capacity, right_capacity, results_capacity, expected_capacity[2];

/* One operation. Sums and products of two floats, rounded to double first, come out as if they had been rounded to
   float at once: 53 >= 2 * 24 + 2 (Figueroa, "When is double rounding innocuous?", SIGNUM 30(3), 1995). */
static double rounded_to(int in_f64, double x) {
    volatile double y = x; /* volatile: no contraction */
    return in_f64 ? y : f32(y);
}
static double accumulated(double x) {
    return rounded_to(accumulates_in_f64(), x);
}
static double finished(double x) {
    return rounded_to(finishes_in_f64(), x);
}

static size_t next_cut(size_t p, size_t block) {
    return block ? (p / block + 1) * block : SIZE_MAX;
}

static double scaled_sum(size_t i, size_t j, int fused) {
    const double *x = left + i * now.k, *y = right + j * now.k;
    size_t block_a = !now.scale_a.values ? 0 : now.trans_a ? now.scale_a.block_rows : now.scale_a.block_columns;
    size_t block_b = !now.scale_b.values ? 0 : now.trans_b ? now.scale_b.block_columns : now.scale_b.block_rows;
    size_t from, to;
    double total = 0;
    for (from = 0; from < now.k; from = to) {
        double sum;
        to = next_cut(from, block_a);
        to = to < next_cut(from, block_b) ? to : next_cut(from, block_b);
        to = to < now.k ? to : now.k;
        sum = accumulates_in_f64() ? dot_f64(x + from, y + from, to - from, fused)
                                   : (double)expected_dot(x + from, y + from, to - from, fused);
        if (now.scale_a.values)
            sum = accumulated(sum *
                              scale_of(&now.scale_a, &scales_a_memory, now.trans_a ? from : i, now.trans_a ? i : from));
        if (now.scale_b.values)
            sum = accumulated(sum *
                              scale_of(&now.scale_b, &scales_b_memory, now.trans_b ? j : from, now.trans_b ? from : j));
        total = from ? accumulated(total + sum) : sum;
    }
    return total;
}

static double before_activation(size_t l, size_t i, size_t j, int fused) {
    double alpha = accumulates_in_f64() ? now.alpha : f32(now.alpha);
    double beta = accumulates_in_f64() ? now.beta : f32(now.beta), x = 0;
    int sums = now.k && now.alpha != 0;
    if (sums)
        x = finished(alpha * scaled_sum(i, j, fused));
    if (beta != 0) {
        double y = finished(beta * saved_value(&c, l, i, j));
        x = sums ? finished(x + y) : y;
    }
    if (now.has_bias) {
        size_t size = size_of(now.bias_type);
        double bias = decode(load_code(bias_memory.data + j * size, size), now.bias_type);
        x = finished(x + (finishes_in_f64() ? bias : f32(bias)));
    }
    return x;
}

static long double exact_activation(mixprec_activation activation, long double x) {
    const long double sqrt_2_over_pi = 0.797884560802865355879892119868763737L;
    switch (activation) {
    case MIXPREC_ACTIVATION_RELU: return x > 0 ? x : 0;
    case MIXPREC_ACTIVATION_GELU:
        return x / 2 * erfcl(-x * sqrtl(0.5L)); /* 1 + erf x = erfc -x, without cancellation */
    case MIXPREC_ACTIVATION_GELU_TANH:          /* (1 + tanh u) / 2 = 1 / (1 + exp(-2u)) likewise */
        return x / (1 + expl(-2 * sqrt_2_over_pi * (x + 0.044715L * x * x * x)));
    case MIXPREC_ACTIVATION_SILU: return x / (1 + expl(-x));
    case MIXPREC_ACTIVATION_TANH: return tanhl(x);
    default: return x;
    }
}

static double ulp_f32(long double x) {
    int exponent = 0;
    frexpl(x, &exponent);
    return ldexp(1, exponent - 24 < -149 || x == 0 ? -149 : exponent - 24);
}

/* Is y what an activation may make of x? At +-Inf that is the limit. */
static int activation_is_right(mixprec_activation activation, double x, double y) {
    long double exact;
    if (is_nan(x))
        return is_nan(y);
    if (isinf(x)) {
        if (activation == MIXPREC_ACTIVATION_TANH)
            return y == (x > 0 ? 1 : -1);
        return y == (x > 0 || activation == MIXPREC_ACTIVATION_NONE ? x : 0);
    }
    exact = exact_activation(activation, (long double)x);
    if (activation == MIXPREC_ACTIVATION_RELU)
        return (long double)y == exact;
    return fabsl((long double)y - exact) <= 6 * (long double)ulp_f32(exact);
}

/* values[i] = activation(values[i]), in fp32 or f64, on one path: C = 1 C + 0 with C of one row. */
static void activate(double *values, size_t count, mixprec_activation activation, int in_f64, mixprec_isa isa) {
    static const double one = 1;
    static double wide[256];
    static float narrow[256];
    mixprec_gemm_desc d;
    size_t i, part, done;
    memset(&d, 0, sizeof d);
    d.m = 1;
    d.beta = &one;
    d.a_type = d.b_type = d.c_type = in_f64 ? MIXPREC_F64 : MIXPREC_F32;
    d.c = in_f64 ? (void *)wide : narrow;
    d.activation = activation;
    d.isa = isa;
    for (done = 0; done < count; done += part) {
        mixprec_status status;
        part = count - done < 256 ? count - done : 256;
        d.n = part;
        for (i = 0; i < part; i++) {
            wide[i] = values[done + i];
            narrow[i] = (float)values[done + i]; /* exact */
        }
        status = mixprec_gemm_ex(&d);
        CHECK(status == MIXPREC_OK, "activation %d: status %d", (int)activation, (int)status);
        for (i = 0; i < part; i++) {
            double x = values[done + i], y = in_f64 ? wide[i] : (double)narrow[i];
            CHECK(activation_is_right(activation, x, y), "activation %d of %a on %s: got %a, want %La", (int)activation,
                  x, mixprec_isa_name(isa), y, exact_activation(activation, (long double)x));
            values[done + i] = y;
        }
    }
}

static void read_operand(double *to, const operand *x, size_t l, int by_rows, size_t count) {
    size_t i, p;
    for (i = 0; i < count; i++)
        for (p = 0; p < now.k; p++) {
            double value = saved_value(x, l, by_rows ? i : p, by_rows ? p : i);
            to[i * now.k + p] = accumulates_in_f64() ? value : f32(value);
        }
}

static int selected(size_t i, size_t j) {
    return now.triangle == MIXPREC_FULL || (now.triangle == MIXPREC_LOWER ? j <= i : j >= i);
}

/* Only then may multiplying first and adding later give other bits. */
static int products_inexact(void) {
    return a.type == MIXPREC_F32 || a.type == MIXPREC_F64 || b.type == MIXPREC_F32 || b.type == MIXPREC_F64 ||
           ((a.type == MIXPREC_BF16 || b.type == MIXPREC_BF16) && now.values == SPECIAL);
}

static void expect(void) {
    size_t l, i, j, elements = now.m * now.n, e;
    int fused;
    left = grow(left, &left_capacity, (now.m * now.k + 1) * sizeof *left);
    right = grow(right, &right_capacity, (now.n * now.k + 1) * sizeof *right);
    results = grow(results, &results_capacity, (elements + 1) * sizeof *results);
    for (fused = 0; fused < 2; fused++)
        expected[fused] =
            grow(expected[fused], &expected_capacity[fused], (now.batch * elements + 1) * sizeof *expected[fused]);
    for (l = 0; l < now.batch; l++) {
        read_operand(left, &a, l, !now.trans_a, now.m);
        read_operand(right, &b, l, now.trans_b != MIXPREC_NO_TRANS, now.n);
        for (fused = 1; fused >= 0; fused--) {
            uint64_t *codes = expected[fused] + l * elements;
            if (!fused && !products_inexact()) {
                memcpy(codes, expected[1] + l * elements, elements * sizeof *codes);
                continue;
            }
            for (e = 0; e < elements; e++)
                results[e] = selected(e / now.n, e % now.n) ? before_activation(l, e / now.n, e % now.n, fused) : 0;
            if (now.activation)
                activate(results, elements, now.activation, finishes_in_f64(), MIXPREC_ISA_C);
            for (i = 0; i < now.m; i++)
                for (j = 0; j < now.n; j++) {
                    double x = results[i * now.n + j];
                    uint64_t index = now.offset + (l * now.m + i) * now.n + j;
                    codes[i * now.n + j] =
                        c.type == MIXPREC_F32 && !accumulates_in_f64()
                            ? nearest(x, MIXPREC_F32) /* nothing is narrowed: no rounding, no saturation */
                            : encode(x, c.type, now.round, now.overflow, mixprec_random_bits(now.seed, index));
                }
        }
    }
}

/* ---- running it ---- */

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

static mixprec_gemm_desc describe_call(mixprec_isa isa) {
    mixprec_gemm_desc d;
    memset(&d, 0, sizeof d);
    d.trans_a = now.trans_a;
    d.trans_b = now.trans_b;
    d.m = now.m;
    d.n = now.n;
    d.k = now.k;
    d.alpha = now.alpha == 1 && (now.alone || one_in(2)) ? NULL : &now.alpha;
    d.beta = now.beta == 0 && (now.alone || one_in(2)) ? NULL : &now.beta;
    d.a_type = a.type;
    d.b_type = b.type;
    d.c_type = c.type;
    d.lda = a.ld == a.columns && one_in(2) ? 0 : a.ld;
    d.ldb = b.ld == b.columns && !now.a_is_b && one_in(2) ? 0 : b.ld;
    d.ldc = c.ld == c.columns && one_in(2) ? 0 : c.ld;
    d.batch = now.batch == 1 && one_in(2) ? 0 : now.batch;
    d.stride_a = a.stride;
    d.stride_b = b.stride;
    d.stride_c = c.stride == now.m * c.ld && one_in(2) ? 0 : c.stride;
    if (now.alone || one_in(2)) { /* of no matter where there is an array */
        d.a = d.b = d.c = slots[SLOT_WORKSPACE];
        d.stride_a = a.layout == ARRAY ? SIZE_MAX : d.stride_a;
        d.stride_b = b.layout == ARRAY ? SIZE_MAX : d.stride_b;
        d.stride_c = c.layout == ARRAY ? SIZE_MAX : d.stride_c;
    }
    if (a.layout == ARRAY)
        d.a_array = (const void *const *)a.pointers;
    else
        d.a = a.pointers[0];
    if (b.layout == ARRAY)
        d.b_array = now.a_is_b ? d.a_array : (const void *const *)b.pointers;
    else
        d.b = b.pointers[0];
    if (c.layout == ARRAY)
        d.c_array = c.pointers;
    else
        d.c = c.pointers[0];
    d.scale_a = now.scale_a;
    d.scale_b = now.scale_b;
    if (now.has_bias) {
        d.bias = bias_memory.data;
        d.bias_type = now.bias_type == MIXPREC_F32 && one_in(2) ? MIXPREC_NONE : now.bias_type;
    }
    d.activation = now.activation;
    d.round = now.round;
    d.overflow = now.overflow;
    d.seed = now.seed;
    d.offset = now.offset;
    d.triangle = now.triangle;
    d.isa = isa;
    d.native = by_tiles;
    return d;
}

static int same_code(uint64_t got, uint64_t want) { /* equal bits, or both NaN */
    return got == want || (is_nan(decode(got, c.type)) && is_nan(decode(want, c.type)));
}

/* Rows row_begin .. row_end of C are as expected; not one other byte has changed. Leaves C as it was before the
   call. */
static void check_c(int fused, size_t row_begin, size_t row_end) {
    size_t l, i, j;
    int wrong = 0;
    for (l = 0; l < now.batch; l++)
        for (i = row_begin; i < row_end; i++)
            for (j = 0; j < now.n; j++)
                if (selected(i, j)) {
                    size_t e = (l * now.m + i) * now.n + j;
                    unsigned char *at = c.memory->data + (c.at[l] + i * c.ld + j) * c.size;
                    uint64_t got = load_code(at, c.size), want = expected[fused != 0][e];
                    memcpy(at, saved_element(&c, l, i, j), c.size);
                    if (wrong || same_code(got, want) || (fused < 0 && same_code(got, expected[0][e])))
                        continue;
                    wrong = 1;
                    CHECK(0, "element (%zu, %zu) of product %zu: got %llx (%g), want %llx (%g): %s", i, j, l,
                          (unsigned long long)got, decode(got, c.type), (unsigned long long)want, decode(want, c.type),
                          describe());
                }
    CHECK(unchanged(&c_memory), "bytes of C that are not its elements, or not asked for, changed: %s", describe());
    restore(&c_memory);
}

static void check_inputs(void) {
    CHECK(unchanged(&a_memory) && unchanged(&b_memory), "A or B changed: %s", describe());
    CHECK(unchanged(&bias_memory), "the bias changed: %s", describe());
    CHECK(unchanged(&scales_a_memory) && unchanged(&scales_b_memory), "scales changed: %s", describe());
    CHECK(allocations_live == 0, "%d blocks not freed: %s", allocations_live, describe());
}

/* A parallel_for on one thread: tasks in falling order, each in an environment of its own that must not matter. */
static size_t tasks_seen;
static void backwards(void *context, size_t tasks, void (*task)(void *data, size_t index), void *data) {
    size_t i;
    *(size_t *)context = tasks;
    for (i = tasks; i-- > 0;) {
#if HAVE_ENVIRONMENT
        environment before = get_environment(), mine = environments[i % (sizeof environments / sizeof *environments)],
                    after;
        set_environment(mine);
        task(data, i);
        after = get_environment();
        set_environment(before);
        CHECK(after == mine, "task %zu changed the floating-point environment: %s", i, describe());
#else
        task(data, i);
#endif
    }
}

static void choose_tasks(mixprec_gemm_desc *d) {
    d->threads = random_below(6);
    switch (random_below(3)) {
    case 0:
        d->parallel_for = backwards;
        d->parallel_context = &tasks_seen;
        break;
    case 1:
        d->parallel_for = pool_run;
        d->parallel_context = &the_pool;
        break;
    default:
#ifdef _OPENMP
        d->parallel_for = mixprec_parallel_openmp;
#else
        d->parallel_for = NULL; /* .threads is then without effect */
#endif
        break;
    }
}

/* A packed B: of a blank descriptor with nothing but what is to be read. */
static int can_pack(void) {
    return (b.layout == SHARED || now.batch == 1) && (b.type != MIXPREC_F64 || a.type == MIXPREC_F64);
}
static void choose_packed(mixprec_gemm_desc *d) {
    mixprec_gemm_desc pack;
    mixprec_status status;
    size_t size = 1;
    unsigned char *packed;
    memset(&pack, 0x5A, sizeof pack);
    pack.n = now.n;
    pack.k = now.k;
    pack.b_type = b.type;
    pack.isa = d->isa;
    status = mixprec_gemm_pack_b_size(&pack, &size);
    CHECK(status == MIXPREC_OK, "mixprec_gemm_pack_b_size: status %d: %s", (int)status, describe());
    if (status != MIXPREC_OK)
        return;
    pack.b = b.pointers[0];
    pack.trans_b = now.trans_b;
    pack.ldb = d->ldb;
    packed = place(SLOT_PACKED, size, 8);
    memset(packed, 0xFF, size);
    status = mixprec_gemm_pack_b(&pack, packed, size);
    CHECK(status == MIXPREC_OK, "mixprec_gemm_pack_b: status %d: %s", (int)status, describe());
    d->b = packed;
    d->packed_size = size;
    d->b_array = NULL;
    d->stride_b = 0;
    d->ldb = random_below(3);
    if (!now.scale_b.values)
        d->trans_b = (mixprec_transpose)random_below(2);
}

static void run_rows(mixprec_gemm_desc d, size_t row_begin, size_t row_end) {
    size_t best = 1, least = 1, size = 0;
    unsigned char *workspace = NULL;
    int allocations_before = allocations, needs_workspace = 0;
    mixprec_status status;
    d.row_begin = row_begin;
    d.row_end = row_end;
#ifdef MIXPREC_NO_STDLIB
    needs_workspace = d.packed_size != 0; /* portable C on the stack cannot read panels */
#endif
    if (needs_workspace || one_in(now.alone ? 5 : 2)) {
        status = mixprec_gemm_workspace(&d, &best, &least);
        CHECK(status == MIXPREC_OK && least <= best, "workspace: status %d, best %zu, least %zu: %s", (int)status, best,
              least, describe());
        size = one_in(3) ? best : one_in(2) ? least : least + random_below(best - least + 1);
        workspace = slots[SLOT_WORKSPACE] + SLOT_SIZE - size - random_below(2) * random_below(64);
        memset(workspace - 64, 0xA5, 64);
        memset(workspace, 0xFF, size); /* NaN, should anything be used before it is written */
        d.workspace = workspace;
        d.workspace_size = size;
    }
    tasks_seen = 0;
    {
#if HAVE_ENVIRONMENT
        environment before = get_environment(), mine = one_in(4) ? PICK(environments) : before, after;
        set_environment(mine);
        status = mixprec_gemm_ex(&d);
        after = get_environment();
        set_environment(before);
        CHECK(after == mine, "the floating-point environment changed: %s", describe());
#else
        status = mixprec_gemm_ex(&d);
#endif
    }
    CHECK(status == MIXPREC_OK, "status %d (%s): %s", (int)status, mixprec_status_string(status), describe());
    CHECK(tasks_seen <= (d.threads ? d.threads : 1), "%zu tasks for .threads = %zu: %s", tasks_seen, d.threads,
          describe());
    if (workspace) {
        int i, touched = 0;
        for (i = 0; i < 64; i++)
            touched |= workspace[i - 64] ^ 0xA5;
        CHECK(!touched, "wrote before the workspace: %s", describe());
        CHECK(allocations == allocations_before, "allocated although it had a workspace: %s", describe());
    }
    if (status == MIXPREC_OK)
        check_c(fuses(d.isa, workspace != NULL), row_end ? row_begin : 0, row_end ? row_end : now.m);
    check_inputs();
}

/* The problem once on one path, in a random one of the ways that must not matter. */
static void run_somehow(mixprec_isa isa) {
    static char how[100];
    mixprec_gemm_desc d = describe_call(isa);
    const unsigned few = now.alone ? 5 : 2;
    int packed = can_pack() && one_in(few), tasks = one_in(few), ranges = !now.triangle && now.m && one_in(3);
    size_t from, to;
    snprintf(how, sizeof how, "on %s%s%s%s", path_name(isa), packed ? ", packed" : "", tasks ? ", tasks" : "",
             ranges ? ", row ranges" : "");
    now_how = how;
    if (packed)
        choose_packed(&d);
    if (tasks)
        choose_tasks(&d);
    if (!ranges)
        run_rows(d, 0, 0);
    for (from = 0; ranges && from < now.m; from = to) {
        to = from + 1 + random_below(now.m - from);
        run_rows(d, from, to);
    }
    if (ranges && one_in(4))
        run_rows(d, now.m, now.m); /* no row at all */
}

static void run_everywhere(void) {
    int i, way;
    expect();
    for (i = 0; i < ISA_COUNT; i++)
        for (way = 0; way < (all_isas[i] == MIXPREC_ISA_AUTO ? 1 : 2) && runs_here(all_isas[i]); way++)
            run_somehow(all_isas[i]);
}

static void run_random(int focus, uint64_t seed, int count) {
    int i;
    oracle_random_state = seed;
    for (i = 0; i < (test_quick ? count / 10 : count); i++) {
        draw_problem(focus);
        run_everywhere();
    }
}

static void test_nothing_special(void) {
    run_random(0, 1, 400);
}
/* A small product alone takes a short way, any single thing more must keep it from that. */
static void test_one_thing(void) {
    int feature;
    for (feature = 0; feature <= EVERYTHING; feature = feature ? 2 * feature : 1)
        run_random(ALONE | feature, 30 + (uint64_t)feature, 150);
}
static void test_batches(void) {
    run_random(BATCHES, 2, 500);
}
static void test_scales(void) {
    run_random(SCALES, 3, 600);
}
static void test_bias(void) {
    run_random(BIAS, 4, 400);
}
static void test_rounding(void) {
    run_random(ROUNDING | BATCHES, 5, 400);
}
static void test_triangles(void) {
    run_random(TRIANGLES, 6, 400);
}
static void test_a_is_b(void) {
    run_random(A_IS_B | ROUNDING | BATCHES, 15, 600);
}
static void test_everything(void) {
    run_random(EVERYTHING, 7, 500);
}

/* Everything at once by AMX-BF16. */
static void test_tiles(void) {
    size_t size[3];
    int i;
    oracle_random_state = 61;
    by_tiles = 1;
    for (i = 0; i < (test_quick ? 40 : 300); i++) {
        size[0] = 17 + random_below(i % 8 ? 60 : 300);
        size[1] = 17 + random_below(i % 8 ? 60 : 300);
        size[2] = 1 + random_below(i % 8 ? 100 : 1200);
        draw_large = size;
        do
            draw_problem(EVERYTHING);
        while (!mixprec_native_available(a.type, b.type));
        draw_large = NULL;
        expect();
        run_somehow(MIXPREC_ISA_AVX512);
        run_somehow(MIXPREC_ISA_AUTO);
    }
    by_tiles = 0;
}

/* Blocks of several tiles in each direction, several of them. */
static void test_large(void) {
    static const size_t sizes[][3] = {{450, 300, 1100}, {300, 700, 600}, {700, 700, 130}, {40, 1100, 1700}};
    static const size_t quick_sizes[][3] = {{150, 40, 1100}, {40, 1300, 70}, {150, 150, 600}};
    int i;
    oracle_random_state = 8;
    for (i = 0; i < (test_quick ? 3 : 9); i++) {
        draw_large = test_quick ? quick_sizes[i] : sizes[i % 4];
        draw_problem(i % 3 == 0 ? SCALES : i % 3 == 1 ? TRIANGLES : A_IS_B);
        draw_large = NULL;
        run_everywhere();
    }
}

/* Tasks that divide rows into tiles: the last one has one to three rows. */
static void test_short_tasks(void) {
    size_t size[3];
    int i;
    oracle_random_state = 16;
    for (i = 0; i < 800; i++) {
        size[0] = 57 + random_below(3);
        size[1] = 1 + random_below(20);
        size[2] = 1 + random_below(20);
        draw_large = size;
        draw_problem(0);
        draw_large = NULL;
        run_everywhere();
    }
}

/* Few rows, or few columns, which are rows of the transposed product. */
static void test_few(void) {
    static const int focus[] = {0, BIAS, SCALES, EVERYTHING & ~TRIANGLES};
    size_t size[3];
    int i;
    oracle_random_state = 17;
    for (i = 0; i < (test_quick ? 60 : 240); i++) {
        const int few_columns = i % 3 != 0;
        size[few_columns] = 1 + random_below(34);
        size[!few_columns] = one_in(8) ? 500 + random_below(100) : 40 + random_below(160);
        size[2] = one_in(8) ? 500 + random_below(60) : 60 + random_below(240);
        if (i % 8 == 7) { /* so few rows that tasks divide the columns */
            size[0] = i % 16 == 7 ? 24 : 50;
            size[1] = i % 16 == 7 ? 18 : 40;
            size[2] = i % 16 == 7 ? 700 : 340;
        }
        draw_large = size;
        draw_problem(focus[i % 4]);
        draw_large = NULL;
        run_everywhere();
    }
}

/* ---- activations ---- */

static double activation_argument(size_t i, size_t count) {
    static const double specials[] = {0, 1, HUGE_VAL, (double)NAN, 0x1p-126, 0x1p-149, 0x1.fffffep127, 5.5, 88.8, 104};
    uint32_t bits = (uint32_t)((uint64_t)i * 0x9E3779B97F4A7C15u >> 32);
    if (i < 20)
        return f32(i % 2 ? -specials[i / 2] : specials[i / 2]);
    if (i < count / 2) /* all magnitudes */
        return decode(bits, MIXPREC_F32);
    return f32(40.0 * bits / 4294967296.0 - 20); /* where they bend */
}

static void test_activations(void) {
    size_t count = test_quick ? 4000 : 200000, i;
    double *first = malloc(count * sizeof *first), *values = malloc(count * sizeof *values);
    int activation, isa, in_f64;
    if (!first || !values)
        fail("test_gemm_ex");
    for (in_f64 = 0; in_f64 < 2; in_f64++)
        for (activation = 0; activation <= (in_f64 ? MIXPREC_ACTIVATION_RELU : MIXPREC_ACTIVATION_TANH); activation++)
            for (isa = 1; isa < ISA_COUNT; isa++) {
                if (!runs_here(all_isas[isa]))
                    continue;
                for (i = 0; i < count; i++)
                    values[i] = activation_argument(i, count);
                activate(values, count, (mixprec_activation)activation, in_f64, all_isas[isa]);
                if (isa == 1)
                    memcpy(first, values, count * sizeof *first);
                for (i = 0; i < count; i++)
                    CHECK(oracle_bits(values[i]) == oracle_bits(first[i]) || is_nan(first[i]),
                          "activation %d of %a: %a on %s, %a on C", activation, activation_argument(i, count),
                          values[i], path_name(all_isas[isa]), first[i]);
            }
    free(first);
    free(values);
}

/* ---- A A^T and A^T A ---- */

/* The very bytes of the product with a copy of A. */
static void test_symmetric(void) {
    int t, i;
    oracle_random_state = 9;
    for (t = 0; t < (test_quick ? 40 : 300); t++) {
        draw_problem(A_IS_B);
        if (!now.a_is_b || now.values == SPECIAL || a.layout == ARRAY)
            continue;
        for (i = 0; i < ISA_COUNT; i++) {
            mixprec_gemm_desc d = describe_call(all_isas[i]);
            unsigned char *product;
            size_t copied = a_memory.bytes;
            if (!runs_here(all_isas[i]))
                continue;
            now_how = path_name(all_isas[i]);
            if (one_in(2))
                choose_tasks(&d);
            d.lda = d.ldb = a.ld;
            CHECK(mixprec_gemm_ex(&d) == MIXPREC_OK, "%s", describe());
            product = malloc(c_memory.window_bytes + 1);
            if (!product)
                fail("test_gemm_ex");
            memcpy(product, c_memory.window, c_memory.window_bytes);
            restore(&c_memory);
            memcpy(slots[SLOT_B], a_memory.data, copied);
            d.b = slots[SLOT_B];
            CHECK(mixprec_gemm_ex(&d) == MIXPREC_OK, "%s", describe());
            CHECK(!memcmp(product, c_memory.window, c_memory.window_bytes), "not the product with a copy of A: %s",
                  describe());
            restore(&c_memory);
            free(product);
        }
    }
}

/* The bytes that are enough where .b is not known yet, or another matrix, are enough where .b is .a; C is the same. */
static void check_mirror_in_little(mixprec_gemm_desc d, size_t bytes) {
    const void *const known[] = {NULL, &d, d.a};
    unsigned char *product = malloc(bytes);
    const void *want = d.c;
    size_t least, best, best_unknown = 0, i;
    if (!product)
        fail("test_gemm_ex");
#ifdef MIXPREC_NO_STDLIB /* which has no FMA without a workspace */
    if (d.a_type == MIXPREC_F32 || d.a_type == MIXPREC_F64)
        want = NULL;
#endif
    for (i = 0; i < 3; i++) {
        mixprec_gemm_desc asked = d, called = d;
        asked.b = known[i];
        CHECK(mixprec_gemm_workspace(&asked, &best, &least) == MIXPREC_OK, "workspace");
        best_unknown = i ? best_unknown : best;
        CHECK(best <= best_unknown, "%zu bytes are best in way %zu, more than %zu", best, i, best_unknown);
        called.workspace_size = i ? least : best;
        called.workspace = malloc(called.workspace_size);
        memset(product, 0x5A, bytes);
        called.c = product;
        CHECK(mixprec_gemm_ex(&called) == MIXPREC_OK, "%s, A A^T in %zu bytes, workspace asked for in way %zu",
              mixprec_isa_name(d.isa), called.workspace_size, i);
        CHECK(!want || !memcmp(product, want, bytes), "%s, A A^T in %zu bytes", mixprec_isa_name(d.isa),
              called.workspace_size);
        free(called.workspace);
    }
    free(product);
}

/* The same where half of it is computed, and copied: see mixprec_gemm_plan_.mirror. */
static void test_mirror(void) {
    static const size_t sizes[][2] = {{65, 505}, {200, 170}, {131, 300}, {370, 128}};
    static const mixprec_dtype types[][2] = {{MIXPREC_F16, MIXPREC_E4M3},
                                             {MIXPREC_BF16, MIXPREC_F16},
                                             {MIXPREC_F32, MIXPREC_F32},
                                             {MIXPREC_F64, MIXPREC_F64}};
    int s, t, i, trans;
    for (s = 0; s < (test_quick ? 1 : 4); s++)
        for (t = 0; t < 4; t++)
            for (trans = 0; trans < 2; trans++) {
                const size_t m = sizes[s][0], k = sizes[s][1], ldc = m + 3, batch = 1 + (size_t)trans;
                const size_t bytes = batch * m * ldc * mixprec_dtype_size(types[t][1]), count = batch * m * k;
                unsigned char *products = malloc(2 * bytes);
                double *values = malloc(count * sizeof *values), *matrix = malloc(count * sizeof *matrix),
                       *copy = malloc(count * sizeof *copy);
                size_t j;
                if (!products || !values || !matrix || !copy)
                    fail("test_gemm_ex");
                for (j = 0; j < count; j++)
                    values[j] = (double)mixprec_random_bits(11, j) * 0x1p-31 - 1;
                CHECK(mixprec_convert(matrix, types[t][0], values, MIXPREC_F64, count) == MIXPREC_OK, "convert");
                memcpy(copy, matrix, count * sizeof *copy);
                for (i = 0; i < ISA_COUNT; i++) {
                    mixprec_gemm_desc d;
                    if (!runs_here(all_isas[i]))
                        continue;
                    memset(&d, 0, sizeof d);
                    memset(products, 0x5A, 2 * bytes);
                    d.m = d.n = m;
                    d.k = k;
                    d.a = d.b = matrix;
                    d.a_type = d.b_type = types[t][0];
                    d.trans_a = trans ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
                    d.trans_b = trans ? MIXPREC_NO_TRANS : MIXPREC_TRANS;
                    d.c = products;
                    d.c_type = types[t][1];
                    d.ldc = ldc;
                    d.batch = batch;
                    d.stride_a = d.stride_b = m * k;
                    d.stride_c = m * ldc;
                    if (t % 2)
                        choose_tasks(&d);
                    d.isa = all_isas[i];
                    CHECK(mixprec_gemm_ex(&d) == MIXPREC_OK, "A A^T");
                    check_mirror_in_little(d, bytes);
                    d.b = copy;
                    d.c = products + bytes;
                    CHECK(mixprec_gemm_ex(&d) == MIXPREC_OK, "A B");
                    CHECK(!memcmp(products, d.c, bytes), "%s, %s to %s, %zu x %zu: not the product with a copy of A",
                          mixprec_isa_name(d.isa), mixprec_dtype_name(d.a_type), mixprec_dtype_name(d.c_type), m, k);
                }
                free(products);
                free(values);
                free(matrix);
                free(copy);
            }
}

/* ---- what is not read ---- */

static void test_unread(void) {
    int t, i;
    oracle_random_state = 10;
    for (t = 0; t < (test_quick ? 60 : 600); t++) {
        draw_problem(EVERYTHING & ~A_IS_B);
        now.alpha = t % 3 ? 0 : -0.0;
        expect();
        for (i = 0; i < ISA_COUNT; i++) {
            mixprec_gemm_desc d = describe_call(all_isas[i]);
            int null = one_in(2);
            void *nowhere = slots[SLOT_A] + SLOT_SIZE;
            if (!runs_here(all_isas[i]))
                continue;
            now_how = path_name(all_isas[i]);
            d.alpha = &now.alpha;
            d.a = null ? NULL : nowhere;
            d.b = null ? NULL : nowhere;
            d.a_array = d.b_array = NULL;
            d.stride_a = a.stride;
            d.stride_b = b.stride;
            if (d.scale_a.values)
                d.scale_a.values = nowhere;
            if (d.scale_b.values)
                d.scale_b.values = nowhere;
            run_rows(d, 0, 0);
            if (one_in(2) && (a.type == MIXPREC_F64 || b.type != MIXPREC_F64)) {
                d.packed_size = 1 + random_below(100);
                d.stride_b = 0;
                d.trans_b = MIXPREC_NO_TRANS;
                d.ldb = 0;
                if (!now.trans_b || !now.scale_b.values)
                    run_rows(d, 0, 0);
            }
        }
    }
}

/* ---- packed matrices ---- */

/* Packed once, used for many products, from a copy as if read from a file. */
static void test_packed_reuse(void) {
    static const size_t ms[] = {1, 2, 5, 17, 40, 150}, several_blocks[] = {30, 70, 1300};
    int t, i, x;
    oracle_random_state = 11;
    for (t = 0; t < (test_quick ? 12 : 60); t++) {
        draw_large = t % 3 ? NULL : several_blocks;
        draw_problem(0);
        draw_large = NULL;
        if (now.values == SPECIAL) /* the bits of a NaN are not promised */
            continue;
        for (i = 0; i < ISA_COUNT; i++) {
            size_t size = 0, again = 0;
            unsigned char *packed;
            mixprec_gemm_desc d;
            if (!runs_here(all_isas[i]))
                continue;
            memset(&d, 0, sizeof d);
            d.n = now.n;
            d.k = now.k;
            d.b = b.pointers[0];
            d.b_type = b.type;
            d.ldb = b.ld;
            d.trans_b = now.trans_b;
            d.isa = all_isas[i];
            CHECK(mixprec_gemm_pack_b_size(&d, &size) == MIXPREC_OK, "pack_b_size");
            memset(slots[SLOT_PACKED], 0, size);
            CHECK(mixprec_gemm_pack_b(&d, slots[SLOT_PACKED], size) == MIXPREC_OK, "pack_b");
            packed = slots[SLOT_PACKED] + (SLOT_SIZE - size) / 8 * 8 - 8 * random_below(9);
            memset(packed, 0xFF, size);
            CHECK(mixprec_gemm_pack_b(&d, packed, size) == MIXPREC_OK, "pack_b");
            CHECK(!memcmp(packed, slots[SLOT_PACKED], size), "a packed matrix holds what was in memory before");
            memset(slots[SLOT_PACKED], 0xFF, size);
            CHECK(mixprec_gemm_pack_b_size(&d, &again) == MIXPREC_OK && again == size, "pack_b_size");
            for (x = 0; x < 6; x++) {
                static double as[150 * 2100], c1[150 * 400], c2[150 * 400];
                size_t m = PICK(ms), e, ld = now.n + 1, c_size;
                mixprec_dtype a_type = all_dtypes[x], c_type = PICK(all_dtypes);
                mixprec_gemm_desc product = d;
                if (b.type == MIXPREC_F64 && a_type != MIXPREC_F64)
                    continue;
                for (e = 0; e < m * now.k; e++)
                    store_code((unsigned char *)as + e * size_of(a_type), random_code(a_type, PLAIN), size_of(a_type));
                product.m = m;
                product.a = as;
                product.a_type = a_type;
                product.c_type = c_type;
                product.ldc = ld;
                c_size = m * ld * size_of(c_type);
                memset(c1, 0, c_size);
                memset(c2, 0, c_size);
                product.c = c1;
                CHECK(mixprec_gemm_ex(&product) == MIXPREC_OK, "%s", describe());
                product.c = c2;
                product.b = packed;
                product.packed_size = size;
                product.workspace = slots[SLOT_WORKSPACE];
                product.workspace_size = SLOT_SIZE;
                CHECK(mixprec_gemm_ex(&product) == MIXPREC_OK, "%s", describe());
#ifndef MIXPREC_NO_STDLIB /* whose products without a workspace are portable C */
                CHECK(!memcmp(c1, c2, c_size), "%zu rows of %s times a packed matrix: not the same bits: %s", m,
                      mixprec_dtype_name(a_type), describe());
#endif
            }
        }
    }
}

/* ---- errors ---- */

static mixprec_gemm_desc good; /* with every option; A and B can be transposed where they lie */

static void check_untouched(const char *what) {
    CHECK(unchanged(&c_memory), "%s: C changed", what);
    CHECK(unchanged(&a_memory) && unchanged(&b_memory), "%s: A or B changed", what);
    CHECK(unchanged(&bias_memory) && unchanged(&scales_a_memory) && unchanged(&scales_b_memory),
          "%s: bias or scales changed", what);
    CHECK(allocations_live == 0, "%s: %d blocks not freed", what, allocations_live);
    restore(&c_memory);
}

static void check_error(const mixprec_gemm_desc *d, mixprec_status want, const char *what, int of_workspace_too) {
    size_t best = 77, least = 78;
    mixprec_status got = mixprec_gemm_ex(d);
    CHECK(got == want, "%s: got %d (%s), want %d", what, (int)got, mixprec_status_string(got), (int)want);
    if (want != MIXPREC_OK)
        check_untouched(what);
    restore(&c_memory);
    if (!of_workspace_too)
        return;
    got = mixprec_gemm_workspace(d, &best, &least);
    CHECK(got == want, "mixprec_gemm_workspace: %s: got %d, want %d", what, (int)got, (int)want);
    if (want != MIXPREC_OK)
        CHECK(best == 77 && least == 78, "mixprec_gemm_workspace: %s: wrote although it failed", what);
}

/* One field of a good descriptor is made bad. */
#define BAD(field, value, status, of_workspace_too)                                                                    \
    do {                                                                                                               \
        mixprec_gemm_desc bad = good;                                                                                  \
        bad.field = value;                                                                                             \
        check_error(&bad, status, "." #field " = " #value, of_workspace_too);                                          \
    } while (0)

/* f16 x f16 -> f32, 13 x 40 x 30, three products, scales that vary along k. */
static void make_good(enum layout layout) {
    oracle_random_state = 12;
    memset(&now, 0, sizeof now);
    memset(&a, 0, sizeof a);
    memset(&b, 0, sizeof b);
    memset(&c, 0, sizeof c);
    now.m = 13;
    now.n = 40;
    now.k = 30;
    now.batch = 3;
    now.alpha = 1.7;
    now.beta = 0.5;
    now.has_bias = 1;
    now.bias_type = MIXPREC_F32;
    a.type = b.type = MIXPREC_F16;
    c.type = MIXPREC_F32;
    a.layout = b.layout = layout;
    c.layout = layout == SHARED ? ONE_BEHIND_ANOTHER : layout;
    now.activation = MIXPREC_ACTIVATION_SILU;
    make_operand(&a, &a_memory, SLOT_A, 13, 30, 0, 1);
    make_operand(&b, &b_memory, SLOT_B, 30, 40, 0, 1);
    make_operand(&c, &c_memory, SLOT_C, 13, 40, 1, 1);
    make_region(&bias_memory, SLOT_BIAS, 40 * 4, 4, 0);
    save(&bias_memory);
    do
        make_scales(&now.scale_a, &scales_a_memory, SLOT_SCALES_A, &a, 0);
    while (now.scale_a.block_rows != 2 || now.scale_a.block_columns != 3);
    do
        make_scales(&now.scale_b, &scales_b_memory, SLOT_SCALES_B, &b, 1);
    while (now.scale_b.block_rows != 3 || now.scale_b.block_columns != 16);
    good = describe_call(MIXPREC_ISA_AUTO);
    good.lda = a.ld;
    good.ldb = b.ld;
    good.ldc = c.ld;
    good.stride_c = c.stride;
    now_how = "statuses";
}

static void test_statuses(void) {
    static const mixprec_dtype no_dtypes[] = {
        MIXPREC_E4M3FNUZ,          MIXPREC_E2M1, MIXPREC_E8M0, MIXPREC_I8, (mixprec_dtype)MIXPREC_DTYPE_COUNT,
        (mixprec_dtype)0x80000000u};
    size_t i, best = 1, least = 1;
    make_good(ONE_BEHIND_ANOTHER);
    check_error(&good, MIXPREC_OK, "the good descriptor", 1);
    CHECK(mixprec_gemm_ex(NULL) == MIXPREC_ERR_NULL, "NULL descriptor");
    CHECK(mixprec_gemm_workspace(NULL, &best, &least) == MIXPREC_ERR_NULL && best == 1 && least == 1, "NULL");
    BAD(a, NULL, MIXPREC_ERR_NULL, 0);
    BAD(b, NULL, MIXPREC_ERR_NULL, 0);
    BAD(c, NULL, MIXPREC_ERR_NULL, 0);
    for (i = 0; i < sizeof no_dtypes / sizeof *no_dtypes; i++) {
        BAD(a_type, no_dtypes[i], MIXPREC_ERR_DTYPE, 1);
        BAD(b_type, no_dtypes[i], MIXPREC_ERR_DTYPE, 1);
        BAD(c_type, no_dtypes[i], MIXPREC_ERR_DTYPE, 1);
        BAD(bias_type, no_dtypes[i], MIXPREC_ERR_DTYPE, 1);
    }
    BAD(a_type, MIXPREC_NONE, MIXPREC_ERR_DTYPE, 1);
    BAD(c_type, MIXPREC_NONE, MIXPREC_ERR_DTYPE, 1);
    BAD(trans_a, (mixprec_transpose)2, MIXPREC_ERR_TRANSPOSE, 1);
    BAD(trans_b, (mixprec_transpose)0xFFFFFFFFu, MIXPREC_ERR_TRANSPOSE, 1);
    BAD(round, (mixprec_round)6, MIXPREC_ERR_ROUND, 1);
    BAD(overflow, (mixprec_overflow)3, MIXPREC_ERR_OVERFLOW, 1);
    BAD(isa, (mixprec_isa)(MIXPREC_ISA_NEON + 1), MIXPREC_ERR_ISA, 1);
    for (i = 0; i < (size_t)ISA_COUNT; i++)
        if (!runs_here(all_isas[i]))
            BAD(isa, all_isas[i], MIXPREC_ERR_ISA, 1);
    BAD(activation, (mixprec_activation)6, MIXPREC_ERR_ACTIVATION, 1);
    BAD(activation, (mixprec_activation)0xFFFFFFFFu, MIXPREC_ERR_ACTIVATION, 1);
    for (i = 0; i <= MIXPREC_ACTIVATION_TANH; i++) {
        mixprec_gemm_desc wide = good;
        mixprec_status want = i > MIXPREC_ACTIVATION_RELU ? MIXPREC_ERR_ACTIVATION : MIXPREC_OK;
        wide.activation = (mixprec_activation)i;
        wide.c_type = MIXPREC_F64;
        CHECK(mixprec_gemm_workspace(&wide, NULL, NULL) == want, "activation %zu with C of f64", i);
        if (want != MIXPREC_OK)
            check_error(&wide, want, "activation with C of f64", 1);
        wide.c_type = MIXPREC_F32;
        wide.a_type = wide.b_type = MIXPREC_F64;
        CHECK(mixprec_gemm_workspace(&wide, NULL, NULL) == want, "activation %zu with f64 accumulators", i);
        if (want != MIXPREC_OK)
            check_error(&wide, want, "activation with f64 accumulators", 1);
    }
    BAD(triangle, (mixprec_triangle)3, MIXPREC_ERR_TRIANGLE, 1);
    BAD(triangle, (mixprec_triangle)0xFFFFFFFFu, MIXPREC_ERR_TRIANGLE, 1);
    BAD(triangle, MIXPREC_LOWER, MIXPREC_ERR_TRIANGLE, 1); /* C is not square */
    BAD(triangle, MIXPREC_UPPER, MIXPREC_ERR_TRIANGLE, 1);
    {
        mixprec_gemm_desc square = good;
        square.n = 13;
        square.triangle = MIXPREC_LOWER;
        check_error(&square, MIXPREC_OK, "a square", 1);
        square.row_end = 13;
        check_error(&square, MIXPREC_ERR_TRIANGLE, "a triangle with rows 0 .. 13", 1);
        square.row_begin = 3;
        square.row_end = 5;
        check_error(&square, MIXPREC_ERR_TRIANGLE, "a triangle with rows 3 .. 5", 1);
    }
    BAD(row_end, 14, MIXPREC_ERR_RANGE, 1);
    BAD(row_end, SIZE_MAX, MIXPREC_ERR_RANGE, 1);
    BAD(row_begin, 1, MIXPREC_ERR_RANGE, 1);
    BAD(row_begin, SIZE_MAX, MIXPREC_ERR_RANGE, 1);
    good.row_begin = 5;
    BAD(row_end, 4, MIXPREC_ERR_RANGE, 1);
    good.row_begin = 0;

    BAD(lda, 29, MIXPREC_ERR_LEADING_DIMENSION, 1);
    BAD(ldb, 39, MIXPREC_ERR_LEADING_DIMENSION, 1);
    BAD(ldc, 39, MIXPREC_ERR_LEADING_DIMENSION, 1);
    BAD(scale_a.ld, 9, MIXPREC_ERR_LEADING_DIMENSION, 1); /* 30 / 3 */
    BAD(scale_b.ld, 2, MIXPREC_ERR_LEADING_DIMENSION, 1); /* 40 / 16, rounded up */
    BAD(lda, SIZE_MAX / 2, MIXPREC_ERR_SIZE, 1);
    BAD(ldb, SIZE_MAX / 4, MIXPREC_ERR_SIZE, 1);
    BAD(ldc, SIZE_MAX, MIXPREC_ERR_SIZE, 1);
    BAD(scale_a.ld, SIZE_MAX / 4, MIXPREC_ERR_SIZE, 1);
    BAD(scale_b.ld, SIZE_MAX, MIXPREC_ERR_SIZE, 1);
    BAD(stride_a, SIZE_MAX / 4, MIXPREC_ERR_SIZE, 1);
    BAD(stride_b, SIZE_MAX, MIXPREC_ERR_SIZE, 1);
    BAD(stride_c, SIZE_MAX / 4, MIXPREC_ERR_SIZE, 1);
    BAD(batch, SIZE_MAX, MIXPREC_ERR_SIZE, 1);
    BAD(batch, SIZE_MAX / 256, MIXPREC_ERR_SIZE, 1);
    {
        mixprec_gemm_desc huge = good;
        huge.stride_c = 0;
        huge.ldc = SIZE_MAX / 64;
        check_error(&huge, MIXPREC_ERR_SIZE, ".ldc = SIZE_MAX / 64, in a batch", 1);
        huge = good;
        huge.stride_a = huge.stride_b = huge.stride_c = 0;
        huge.batch = SIZE_MAX / 64;
        check_error(&huge, MIXPREC_ERR_SIZE, "a batch of SIZE_MAX / 64", 1);
        huge = good;
        huge.m = SIZE_MAX / 2;
        huge.n = huge.k = huge.lda = huge.ldb = huge.ldc = huge.row_begin = huge.row_end = 0;
        huge.batch = 2;
        CHECK(mixprec_gemm_ex(&huge) == MIXPREC_OK, "rows of nothing, in a batch");
        huge = good;
        huge.c_type = MIXPREC_E4M3;
        huge.stride_c = SIZE_MAX / 4 / good.batch;
        CHECK(mixprec_gemm_workspace(&huge, &best, NULL) == MIXPREC_OK, "a batch of C over a quarter of all addresses");
    }

    CHECK(mixprec_gemm_workspace(&good, &best, &least) == MIXPREC_OK && least > 0 && best >= least, "workspace");
    good.workspace = slots[SLOT_WORKSPACE] + 1;
    BAD(workspace_size, 0, MIXPREC_ERR_WORKSPACE, 0);
    BAD(workspace_size, least - 1, MIXPREC_ERR_WORKSPACE, 0);
    BAD(workspace_size, least, MIXPREC_OK, 0);
    good.parallel_for = backwards;
    good.parallel_context = &tasks_seen;
    for (i = 2; i < 6; i++) {
        good.threads = i;
        tasks_seen = 0;
        CHECK(mixprec_gemm_workspace(&good, &best, &least) == MIXPREC_OK && least > 0, "workspace, %zu tasks", i);
        BAD(workspace_size, least - 1, MIXPREC_ERR_WORKSPACE, 0);
        CHECK(tasks_seen == 0, "%zu tasks in a call that was refused", tasks_seen);
        BAD(workspace_size, least, MIXPREC_OK, 0);
    }
    good.workspace = NULL;
    BAD(threads, SIZE_MAX, MIXPREC_OK, 1); /* as many as there is something to do for */
#ifndef MIXPREC_NO_STDLIB
    {
        mixprec_gemm_desc large = good;
        static unsigned char zeros[300 * 300 * 4];
        int asked;
        large.batch = 1;
        large.m = large.n = large.k = 300;
        large.lda = large.ldb = large.ldc = 0;
        large.scale_a.values = large.scale_b.values = NULL;
        large.bias = NULL;
        large.a = large.b = memset(slots[SLOT_A], 0, 300 * 300 * 2);
        large.c = slots[SLOT_C];
        memset(slots[SLOT_C], 0, sizeof zeros);
        for (i = 0; i < 4; i++) {
            large.threads = i;
            allocator_fails = 1;
            asked = allocations;
            CHECK(mixprec_gemm_ex(&large) == MIXPREC_ERR_ALLOC, "a failing allocator, %zu tasks", i);
            allocator_fails = 0;
            CHECK(allocations == asked + 1, "%d allocations", allocations - asked);
            CHECK(!memcmp(slots[SLOT_C], zeros, sizeof zeros), "C changed when the allocator failed");
            CHECK(mixprec_gemm_ex(&large) == MIXPREC_OK && allocations_live == 0, "and a working one");
            memset(slots[SLOT_C], 0, sizeof zeros);
        }
    }
#endif
}

static void test_bad_scales(void) {
    static const uint32_t not_scales[] = {0,           0x80000000u, 0x7F800000u, 0xFF800000u, 0x7FC00000u,
                                          0xFFC00000u, 0xBF800000u, 0x80000001u, 0x7F800001u, 0xFFFFFFFFu};
    size_t i, side;
    make_good(ONE_BEHIND_ANOTHER);
    for (side = 0; side < 2; side++) {
        region *r = side ? &scales_b_memory : &scales_a_memory;
        const mixprec_scales *s = side ? &good.scale_b : &good.scale_a;
        size_t rows = blocks(side ? 30 : 13, s->block_rows), columns = blocks(side ? 40 : 30, s->block_columns), at;
        for (at = 0; at < rows * columns; at++)
            for (i = 0; i < sizeof not_scales / sizeof *not_scales; i++) {
                unsigned char *to = r->data + (at / columns * s->ld + at % columns) * 4;
                uint64_t code = load_code(to, 4);
                store_code(to, not_scales[i], 4);
                save(r);
                CHECK(mixprec_gemm_ex(&good) == MIXPREC_ERR_SCALE, "scale %zu of %s is %08x", at, side ? "B" : "A",
                      (unsigned)not_scales[i]);
                check_untouched("a bad scale");
                BAD(threads, 2, MIXPREC_ERR_SCALE, 0);
                store_code(to, code, 4);
                save(r);
            }
        store_code(r->data, 1, 4); /* the smallest subnormal is positive */
        save(r);
        check_error(&good, MIXPREC_OK, "a subnormal scale", 0);
        store_code(r->data, 0x7F7FFFFFu, 4);
        save(r);
        check_error(&good, MIXPREC_OK, "the largest scale", 0);
    }
}

static void test_bad_pointers(void) {
    size_t l;
    make_good(ARRAY);
    check_error(&good, MIXPREC_OK, "arrays of pointers", 1);
    for (l = 0; l < 3; l++) {
        void *kept = a.pointers[l];
        a.pointers[l] = NULL;
        check_error(&good, MIXPREC_ERR_NULL, "a NULL among the A", 0);
        a.pointers[l] = kept;
        kept = b.pointers[l];
        b.pointers[l] = NULL;
        check_error(&good, MIXPREC_ERR_NULL, "a NULL among the B", 0);
        b.pointers[l] = kept;
        kept = c.pointers[l];
        c.pointers[l] = NULL;
        check_error(&good, MIXPREC_ERR_NULL, "a NULL among the C", 0);
        c.pointers[l] = c.pointers[(l + 1) % 3];
        check_error(&good, MIXPREC_ERR_OVERLAP, "the same C twice", 0);
        c.pointers[l] = (unsigned char *)c.pointers[(l + 1) % 3] + 4 * (12 * c.ld + 39);
        check_error(&good, MIXPREC_ERR_OVERLAP, "one C begins where another one ends", 0);
        c.pointers[l] = kept;
    }
}

/* Everything small and in one buffer: C of a batch and either itself or one of the others. Sharing a byte is an error;
   without one, C may lie among itself in any way; extents that are apart are no error; for the rest the library may
   decide. */
static void test_overlap(void) {
    static unsigned char buffer[8192], others[4][2048], owner[8192];
    enum { C_ITSELF, WITH_A, WITH_B, WITH_BIAS, WITH_SCALES_A, WITH_SCALES_B };
    long t, refused[6] = {0}, allowed[6] = {0}, interleaved = 0;
    int i;
    oracle_random_state = 13;
    memset(others, 0x3F, sizeof others); /* fit to be scales, too */
    for (t = 0; t < (test_quick ? 40000 : 400000); t++) {
        size_t m = 1 + random_below(5), n = 1 + random_below(5), k = 1 + random_below(5), batch = 1 + random_below(4);
        size_t size_c, size_x = 4, at_c = 4096, at_x, l, r, q, rows = 1, columns = 1, ld = 1, count = 1, stride = 0;
        size_t low_x = SIZE_MAX, high_x = 0, low_c = SIZE_MAX, high_c = 0;
        int with = (int)random_below(6), shares = 0;
        void *c_array[4];
        mixprec_status got;
        mixprec_gemm_desc d;
        memset(&d, 0, sizeof d);
        d.m = m;
        d.n = n;
        d.k = k;
        d.batch = batch;
        d.a_type = PICK(all_dtypes);
        d.b_type = PICK(all_dtypes);
        d.c_type = PICK(all_dtypes);
        d.bias_type = PICK(all_dtypes);
        d.trans_a = one_in(2) ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
        d.trans_b = one_in(2) ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
        d.a = others[0];
        d.b = others[1];
        size_c = size_of(d.c_type);
        d.ldc = n + random_below(12);
        d.stride_c = one_in(2) ? m * d.ldc : n + random_below(with == C_ITSELF ? 30 : 2);
        if (with != C_ITSELF && d.stride_c < m * d.ldc)
            d.ldc = batch * d.stride_c + random_below(3);
        memset(owner, 0, sizeof owner);
        for (l = 0; l < batch; l++) {
            size_t at = at_c + l * d.stride_c * size_c;
            if (with == C_ITSELF && t % 3 == 0)
                at = at_c + random_below(60) * size_c;
            c_array[l] = buffer + at;
            for (r = 0; r < m; r++)
                for (q = 0; q < n * size_c; q++) {
                    size_t byte = at + r * d.ldc * size_c + q;
                    shares |= owner[byte];
                    owner[byte] = 1;
                    low_c = byte < low_c ? byte : low_c;
                    high_c = byte > high_c ? byte : high_c;
                }
        }
        d.c = buffer + at_c;
        if (with == C_ITSELF && t % 3 == 0)
            d.c_array = c_array;
        memset(buffer, 0x3F, sizeof buffer);
        if (with != C_ITSELF) {
            size_t span;
            switch (with) {
            case WITH_A:
                rows = d.trans_a ? k : m;
                columns = d.trans_a ? m : k;
                size_x = size_of(d.a_type);
                break;
            case WITH_B:
                rows = d.trans_b ? n : k;
                columns = d.trans_b ? k : n;
                size_x = size_of(d.b_type);
                break;
            case WITH_BIAS:
                columns = n;
                size_x = size_of(d.bias_type);
                break;
            case WITH_SCALES_A:
                d.scale_a.block_rows = random_below(3);
                d.scale_a.block_columns = random_below(3);
                rows = blocks(d.trans_a ? k : m, d.scale_a.block_rows);
                columns = blocks(d.trans_a ? m : k, d.scale_a.block_columns);
                break;
            default:
                d.scale_b.block_rows = random_below(3);
                d.scale_b.block_columns = random_below(3);
                rows = blocks(d.trans_b ? n : k, d.scale_b.block_rows);
                columns = blocks(d.trans_b ? k : n, d.scale_b.block_columns);
                break;
            }
            ld = columns + (with == WITH_BIAS ? 0 : random_below(6));
            if (with <= WITH_B && batch > 1) {
                stride = random_below(rows * ld + 4);
                count = stride ? batch : 1;
            }
            span = ((rows - 1) * ld + columns + (count - 1) * stride) * size_x;
            at_x = at_c - (span / 8 + 8) * 8 + random_below((span + high_c - low_c + 120) / size_x) * size_x;
            for (l = 0; l < count; l++)
                for (r = 0; r < rows; r++)
                    for (q = 0; q < columns * size_x; q++) {
                        size_t byte = at_x + (l * stride + r * ld) * size_x + q;
                        shares |= owner[byte];
                        low_x = byte < low_x ? byte : low_x;
                        high_x = byte > high_x ? byte : high_x;
                    }
            if (with == WITH_A)
                d.a = buffer + at_x, d.lda = ld, d.stride_a = stride;
            else if (with == WITH_B)
                d.b = buffer + at_x, d.ldb = ld, d.stride_b = stride;
            else if (with == WITH_BIAS)
                d.bias = buffer + at_x;
            else if (with == WITH_SCALES_A)
                d.scale_a.values = (const float *)(const void *)(buffer + at_x), d.scale_a.ld = ld;
            else
                d.scale_b.values = (const float *)(const void *)(buffer + at_x), d.scale_b.ld = ld;
        }
        got = mixprec_gemm_ex(&d);
        if (shares) {
            CHECK(got == MIXPREC_ERR_OVERLAP, "C %zux%zu of %zu, ld %zu, stride %zu, batch %zu, with %d: got %d", m, n,
                  size_c, d.ldc, d.stride_c, batch, with, (int)got);
            for (i = 0; i < (int)sizeof buffer && buffer[i] == 0x3F;)
                i++;
            CHECK(i == (int)sizeof buffer, "an overlap was refused, but C written");
            refused[with]++;
        } else if (with == C_ITSELF || high_x < low_c || high_c < low_x) {
            CHECK(got == MIXPREC_OK, "C %zux%zu of %zu, ld %zu, stride %zu, batch %zu, apart from %d: got %d", m, n,
                  size_c, d.ldc, d.stride_c, batch, with, (int)got);
            allowed[with]++;
            interleaved += with == C_ITSELF && batch > 1 && m > 1 && d.stride_c < d.ldc;
        }
    }
    for (i = 0; i < 6; i++)
        CHECK(refused[i] > 500 && allowed[i] > 500, "with %d: %ld refused, %ld allowed", i, refused[i], allowed[i]);
    CHECK(interleaved > 100, "%ld interleaved", interleaved);
}

/* Matrices of four floats in a row, or of two in a column with a gap of two, in any order: C between A, or C alone. One
   of them may lie across two others, or hide in a gap. Or both lie a stride apart. */
static void test_overlap_of_many(void) {
    enum { MOST = 700, CELLS = 2 * MOST + 2, FLOATS = 9 * MOST + 16 };
    static float buffer[FLOATS], elsewhere[16];
    static unsigned char owner[FLOATS];
    void *arrays[2][MOST]; /* of C and of A */
    long t, count[3][2] = {{0}};
    oracle_random_state = 14;
    for (t = 0; t < (test_quick ? 3000 : 15000); t++) {
        enum { ROWS, COLUMNS, STRIDES } const kind = (int)random_below(3);
        const size_t batch = 1 + random_below(t % 4 ? MOST : 4), with_a = kind == STRIDES || one_in(2);
        const size_t used = batch * (1 + with_a), step = kind == COLUMNS ? 3 : 1;
        size_t cells[CELLS], i, l;
        int shares = 0;
        mixprec_status got;
        mixprec_gemm_desc d;
        memset(&d, 0, sizeof d);
        d.m = kind == COLUMNS ? 2 : 1;
        d.n = d.k = kind == COLUMNS ? 1 : 4;
        d.lda = d.ldc = kind == COLUMNS ? 3 : 4;
        d.batch = batch;
        d.a_type = d.b_type = d.c_type = MIXPREC_F32;
        d.a = d.b = elsewhere;
        for (i = 0; i < CELLS; i++)
            cells[i] = i;
        for (i = 0; i < used && t % 3; i++) { /* else in rising order */
            const size_t other = i + random_below(CELLS - 1 - i), cell = cells[i];
            cells[i] = cells[other];
            cells[other] = cell;
        }
        if (kind == STRIDES) {
            float *c_first = buffer + random_below(8), *a_first = buffer + random_below(8);
            d.stride_c = 4 + random_below(6);
            d.stride_a = one_in(2) ? d.stride_c : random_below(10);
            if (one_in(3)) /* behind C, or nearly so */
                a_first = buffer + FLOATS - 4 - (batch - 1) * d.stride_a;
            d.c = c_first;
            d.a = a_first;
            for (i = 0; i < used; i++)
                arrays[i / batch][i % batch] =
                    i < batch ? c_first + i * d.stride_c : a_first + (i - batch) * d.stride_a;
        } else {
            for (i = 0; i < used; i++)
                arrays[i / batch][i % batch] = buffer + 4 * cells[i];
            if (one_in(2))
                arrays[random_below(1 + with_a)][random_below(batch)] = buffer + random_below(4 * CELLS - 4);
            d.c_array = arrays[0];
            if (with_a)
                d.a_array = (const void *const *)arrays[1];
        }
        memset(owner, 0, sizeof owner);
        for (i = used; i-- > 0;) /* A, which may share with A, then C */
            for (l = 0; l < 4; l += step) {
                unsigned char *o = owner + ((float *)arrays[i / batch][i % batch] - buffer) + l;
                shares |= i < batch && *o;
                *o = 1;
            }
        got = mixprec_gemm_ex(&d);
        CHECK(got == (shares ? MIXPREC_ERR_OVERLAP : MIXPREC_OK),
              "kind %d, batch %zu, strides %zu and %zu, %s A, %s: %d", (int)kind, batch, d.stride_c, d.stride_a,
              with_a ? "with" : "without", shares ? "overlap" : "apart", (int)got);
        count[kind][shares]++;
    }
    for (t = 0; t < 3; t++)
        CHECK(count[t][0] > 50 && count[t][1] > 50, "kind %ld: %ld apart, %ld overlap", t, count[t][0], count[t][1]);
}

/* An operand that has a byte in the workspace is an error, whichever; one that is apart from it is none. */
static void test_workspace_overlap(void) {
    enum { WITH_A, WITH_B, WITH_C, WITH_BIAS, WITH_SCALES_A, WITH_SCALES_B, WITH_PACKED, WITH_COUNT };
    static uint64_t memory[20000], others[WITH_COUNT][512];
    long t, refused[WITH_COUNT] = {0}, allowed[WITH_COUNT] = {0};
    int with;
    oracle_random_state = 14;
    for (t = 0; t < (test_quick ? 4000 : 40000); t++) {
        const size_t m = 1 + random_below(5), n = 1 + random_below(5), k = 1 + random_below(5);
        const size_t rows[] = {m, k, m, 1, 1, 1, 1}, columns[] = {k, n, n, n, 1, 1, 1};
        unsigned char *const workspace = (unsigned char *)memory + 8192 + random_below(64), *at;
        const size_t workspace_size = 65536 + random_below(64);
        size_t size, bytes, packed_size, count = 1, gap = 0, stride = 0, l, r;
        int shares = 0;
        mixprec_status got;
        mixprec_gemm_desc d;
        memset(&d, 0, sizeof d);
        memset(others, 0x3F, sizeof others); /* fit to be scales, too */
        with = (int)random_below(WITH_COUNT);
        d.m = m;
        d.n = n;
        d.k = k;
        d.a_type = PICK(all_dtypes);
        d.b_type = PICK(all_dtypes);
        d.c_type = PICK(all_dtypes);
        d.bias_type = PICK(all_dtypes);
        d.a = others[WITH_A];
        d.b = others[WITH_B];
        d.c = others[WITH_C];
        d.batch = 1 + random_below(3);
        size = with == WITH_A      ? size_of(d.a_type)
               : with == WITH_B    ? size_of(d.b_type)
               : with == WITH_C    ? size_of(d.c_type)
               : with == WITH_BIAS ? size_of(d.bias_type)
                                   : 4;
        if (with <= WITH_C) {
            gap = random_below(4);
            count = d.batch;
            stride = rows[with] * (columns[with] + gap) + random_below(9);
        }
        bytes = ((count - 1) * stride + (rows[with] - 1) * (columns[with] + gap) + columns[with]) * size;
        CHECK(mixprec_gemm_pack_b_size(&d, &packed_size) == MIXPREC_OK, "size of the packed B");
        if (with == WITH_PACKED) {
            d.a_type = d.b_type; /* f64 goes with f64 only */
            bytes = packed_size;
            size = 8;
        }
        at = workspace + (one_in(2) ? workspace_size : 0);
        at = (unsigned char *)memory +
             ((size_t)(at - (unsigned char *)memory) - bytes + random_below(2 * bytes)) / 8 * 8;
        for (l = 0; l < count; l++)
            for (r = 0; r < rows[with]; r++) {
                const unsigned char *row = at + (l * stride + r * (columns[with] + gap)) * size;
                const size_t width = with == WITH_PACKED ? bytes : columns[with] * size;
                shares |= row < workspace + workspace_size && row + width > workspace;
            }
        memset(at, 0x3F, bytes);
        if (with == WITH_A)
            d.a = at, d.lda = columns[with] + gap, d.stride_a = stride;
        else if (with == WITH_B)
            d.b = at, d.ldb = columns[with] + gap, d.stride_b = stride;
        else if (with == WITH_C)
            d.c = at, d.ldc = columns[with] + gap, d.stride_c = stride;
        else if (with == WITH_BIAS)
            d.bias = at;
        else if (with == WITH_SCALES_A)
            d.scale_a.values = (const float *)(const void *)at;
        else if (with == WITH_SCALES_B)
            d.scale_b.values = (const float *)(const void *)at;
        else {
            CHECK(mixprec_gemm_pack_b(&d, at, packed_size) == MIXPREC_OK, "pack_b");
            d.b = at;
            d.packed_size = packed_size;
        }
        d.workspace = workspace;
        d.workspace_size = workspace_size;
        got = mixprec_gemm_ex(&d);
        if (shares)
            CHECK(got == MIXPREC_ERR_OVERLAP, "workspace, with %d: got %d", with, (int)got);
        else if (at >= workspace + workspace_size || at + bytes <= workspace)
            CHECK(got == MIXPREC_OK, "workspace, apart from %d: got %d", with, (int)got);
        (shares ? refused : allowed)[with]++;
    }
    for (with = 0; with < WITH_COUNT; with++)
        CHECK(refused[with] > 50 && allowed[with] > 50, "with %d: %ld refused, %ld not", with, refused[with],
              allowed[with]);
}

/* A query may leave A and B out, and *least is enough for any. Several tasks; squares, which might be A A^T, and
   others. */
static void test_query_without_pointers(void) {
    enum { MOST = 200, DEPTH = 300 };
    static const size_t sizes[][2] = {{72, 72}, {100, 100}, {200, 200}, {60, 200}, {200, 60}, {72, 100}};
    static double of_a[MOST * DEPTH], of_b[MOST * DEPTH], of_c[MOST * MOST];
    size_t i, least, best, threads, tasks;
    int t, path;
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (t = 0; t < 4; t++)
            for (threads = 2; threads <= 32; threads *= 4)
                for (path = 0; path < ISA_COUNT; path++) {
                    mixprec_gemm_desc d;
                    void *workspace;
                    mixprec_status got;
                    memset(&d, 0, sizeof d);
                    d.isa = all_isas[path];
                    if (d.isa == MIXPREC_ISA_AUTO || !mixprec_isa_available(d.isa))
                        continue;
                    d.m = sizes[i][0], d.n = sizes[i][1], d.k = DEPTH;
                    d.trans_b = MIXPREC_TRANS;
                    d.a_type = d.b_type = t == 0   ? MIXPREC_F64
                                          : t == 1 ? MIXPREC_F32
                                          : t == 2 ? MIXPREC_BF16
                                                   : MIXPREC_E4M3;
                    d.c_type = t == 0 ? MIXPREC_F64 : MIXPREC_F32;
                    d.parallel_for = backwards;
                    d.parallel_context = &tasks;
                    d.threads = threads;
                    CHECK_STATUS("query", mixprec_gemm_workspace(&d, &best, &least), MIXPREC_OK);
                    d.a = of_a, d.b = of_b, d.c = of_c;
                    d.workspace = workspace = malloc(least ? least : 1);
                    d.workspace_size = least;
                    got = mixprec_gemm_ex(&d);
                    CHECK(got == MIXPREC_OK, "%zu x %zu, %s, %zu threads, %s: %s", d.m, d.n,
                          mixprec_dtype_name(d.a_type), threads, mixprec_isa_name(d.isa), mixprec_status_string(got));
                    free(workspace);
                }
}

/* The same where arrays of pointers tell where the matrices are: any one of them, from before the workspace or from
   within it, touches it or has one element in it. */
static void test_workspace_pointers(void) {
    enum { SIDE = 4, CELLS = SIDE * SIDE, BATCH = 3, MOST = 1 << 16, ROOM = 2 * CELLS };
    static float memory[ROOM + MOST + ROOM], before[ROOM + MOST + ROOM], blocks_of[3][BATCH][CELLS];
    const void *arrays[3][BATCH];
    size_t best = 0, size, x, l, i, r, q;
    int side;
    mixprec_gemm_desc d;
    memset(&d, 0, sizeof d);
    d.m = d.n = d.k = SIDE;
    d.batch = BATCH;
    d.a_type = d.b_type = d.c_type = MIXPREC_F32;
    CHECK(mixprec_gemm_workspace(&d, &best, NULL) == MIXPREC_OK && best < sizeof(float) * MOST, "%zu bytes", best);
    size = best / sizeof(float) + CELLS; /* in floats */
    for (i = 0; i < sizeof memory / sizeof *memory; i++)
        before[i] = (float)(i % 7) - 3;
    for (x = 0; x < 3; x++)
        for (l = 0; l < BATCH; l++)
            for (side = 0; side < 4; side++) {
                const mixprec_status want = side % 3 ? MIXPREC_ERR_OVERLAP : MIXPREC_OK;
                float *const workspace = memory + ROOM, *at = side == 0   ? workspace - CELLS
                                                              : side == 1 ? workspace - CELLS + 1
                                                              : side == 2 ? workspace + size - 1
                                                                          : workspace + size;
                mixprec_status got;
                memcpy(memory, before, sizeof memory);
                for (i = 0; i < 3; i++)
                    for (r = 0; r < BATCH; r++) {
                        for (q = 0; q < CELLS; q++)
                            blocks_of[i][r][q] = (float)((i + 2 * r + 3 * q) % 5) - 2;
                        arrays[i][BATCH - 1 - r] = blocks_of[i][r]; /* none of them rises */
                    }
                arrays[x][l] = at;
                d.a_array = arrays[0];
                d.b_array = arrays[1];
                d.c_array = (void *const *)(void *)arrays[2];
                d.workspace = workspace;
                d.workspace_size = size * sizeof(float);
                got = mixprec_gemm_ex(&d);
                CHECK(got == want, "matrix %zu of %c, side %d: got %d, want %d", l, "ABC"[x], side, (int)got,
                      (int)want);
                if (want != MIXPREC_OK) {
                    CHECK(!memcmp(memory, before, sizeof memory), "matrix %zu of %c, side %d: written", l, "ABC"[x],
                          side);
                    continue;
                }
                for (r = 0; r < CELLS && x < 2; r++)
                    CHECK(float_bits(at[r]) == float_bits(before[at - memory + (ptrdiff_t)r]), "an operand changed");
                for (r = 0; r < BATCH; r++)
                    for (q = 0; q < CELLS; q++) {
                        float sum = 0;
                        for (i = 0; i < SIDE; i++)
                            sum += ((const float *)arrays[0][r])[q / SIDE * SIDE + i] *
                                   ((const float *)arrays[1][r])[i * SIDE + q % SIDE];
                        CHECK(((const float *)arrays[2][r])[q] == sum, "product %zu, element %zu: got %g, want %g", r,
                              q, (double)((const float *)arrays[2][r])[q], (double)sum);
                    }
            }
}

/* A, B and C are blocks of one larger matrix of small integers, which touch: one beside the other, or one below the
   other, in any order. All sums are exact, and nothing but C changes. */
static void test_side_by_side(void) {
    enum { LD = 112, ROWS = 96 };
    static const mixprec_dtype dtypes[] = {MIXPREC_F32, MIXPREC_F64, MIXPREC_F16, MIXPREC_BF16};
    static const size_t sizes[][3] = {{1, 1, 1}, {5, 7, 6}, {13, 40, 30}, {30, 16, 33}}; /* m, n, k */
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static double values[ROWS * LD];
    static unsigned char memory[ROWS * LD * 8], start[sizeof memory], want[sizeof memory];
    size_t t, z, i, j, p, x;
    int order, below, isa;
    for (i = 0; i < ROWS * LD; i++)
        values[i] = (double)((i * 7 + i / LD) % 5) - 2;
    for (t = 0; t < sizeof dtypes / sizeof *dtypes; t++) {
        for (i = 0; i < ROWS * LD; i++)
            store_code(start + i * size_of(dtypes[t]), nearest(values[i], dtypes[t]), size_of(dtypes[t]));
        for (z = 0; z < sizeof sizes / sizeof *sizes; z++)
            for (order = 0; order < 6; order++)
                for (below = 0; below < 2; below++)
                    for (isa = -1; isa < (int)ISA_COUNT; isa++) { /* -1: mixprec_gemm */
                        const size_t size = size_of(dtypes[t]), m = sizes[z][0], n = sizes[z][1], k = sizes[z][2];
                        const size_t rows[3] = {m, k, m}, columns[3] = {k, n, n};
                        const double alpha = order % 2 ? 2 : 1, beta = order % 2 ? 1 : 0;
                        size_t at[3], next = 0;
                        mixprec_status got;
                        mixprec_gemm_desc d;
                        if (isa >= 0 && !runs_here(all_isas[isa]))
                            continue;
                        for (x = 0; x < 3; x++) {
                            const int block = orders[order][x];
                            at[block] = below ? next * LD : next;
                            next += below ? rows[block] : columns[block];
                        }
                        memcpy(memory, start, sizeof memory);
                        memcpy(want, start, sizeof memory);
                        memset(&d, 0, sizeof d);
                        d.m = m, d.n = n, d.k = k;
                        d.alpha = &alpha, d.beta = &beta;
                        d.a = memory + at[0] * size, d.b = memory + at[1] * size, d.c = memory + at[2] * size;
                        d.a_type = d.b_type = d.c_type = dtypes[t];
                        d.lda = d.ldb = d.ldc = LD;
                        if (isa >= 0)
                            d.isa = all_isas[isa];
                        got = isa < 0 ? mixprec_gemm(MIXPREC_NO_TRANS, MIXPREC_NO_TRANS, m, n, k, (float)alpha, d.a,
                                                     d.a_type, LD, d.b, d.b_type, LD, (float)beta, d.c, d.c_type, LD)
                                      : mixprec_gemm_ex(&d);
                        CHECK(got == MIXPREC_OK, "%s, %zu x %zu x %zu, order %d, below %d: got %d",
                              mixprec_dtype_name(dtypes[t]), m, n, k, order, below, (int)got);
                        for (i = 0; i < m; i++)
                            for (j = 0; j < n; j++) {
                                double sum = 0;
                                for (p = 0; p < k; p++)
                                    sum += values[at[0] + i * LD + p] * values[at[1] + p * LD + j];
                                sum = alpha * sum + beta * values[at[2] + i * LD + j];
                                store_code(want + (at[2] + i * LD + j) * size, nearest(sum, dtypes[t]), size);
                            }
                        CHECK(!memcmp(memory, want, sizeof memory),
                              "%s, isa %d, %zu x %zu x %zu, order %d, below %d: wrong sums, or other elements changed",
                              mixprec_dtype_name(dtypes[t]), isa, m, n, k, order, below);
                    }
    }
}

/* mixprec_gemm, one argument bad at a time; with the short way (alpha 1, beta 0) and without. */
static void test_plain_statuses(void) {
    enum { M = 3, N = 5, K = 4, C_AT = 64 };
    typedef struct call {
        mixprec_transpose ta, tb;
        size_t m, n, k;
        const void *a;
        mixprec_dtype a_type;
        size_t lda;
        const void *b;
        mixprec_dtype b_type;
        size_t ldb;
        void *c;
        mixprec_dtype c_type;
        size_t ldc;
    } call;
    static float memory[2 * C_AT], before[2 * C_AT], other[64];
    float *const c_at = memory + C_AT;
    size_t i;
    int type, general, zero;
    for (i = 0; i < 2 * C_AT; i++)
        before[i] = (float)(i % 5) - 2;
    for (i = 0; i < 64; i++)
        other[i] = (float)(i % 3);
    for (general = 0; general < 3; general++) {
        const float alpha = general == 1 ? 0.5f : 1, beta = general == 2 ? 1 : 0;
        const call plain = {MIXPREC_NO_TRANS,
                            MIXPREC_NO_TRANS,
                            M,
                            N,
                            K,
                            other,
                            MIXPREC_F32,
                            K,
                            other,
                            MIXPREC_F32,
                            N,
                            c_at,
                            MIXPREC_F32,
                            N};
#define PLAIN(change, status)                                                                                          \
    do {                                                                                                               \
        call x = plain;                                                                                                \
        mixprec_status got;                                                                                            \
        memcpy(memory, before, sizeof memory);                                                                         \
        change;                                                                                                        \
        got = mixprec_gemm(x.ta, x.tb, x.m, x.n, x.k, alpha, x.a, x.a_type, x.lda, x.b, x.b_type, x.ldb, beta, x.c,    \
                           x.c_type, x.ldc);                                                                           \
        CHECK(got == (status), "alpha %g, beta %g, %s: got %d", (double)alpha, (double)beta, #change, (int)got);       \
        CHECK(got == MIXPREC_OK || !memcmp(memory, before, sizeof memory), "%s: C was written", #change);              \
    } while (0)
        PLAIN((void)0, MIXPREC_OK);
        PLAIN(x.a = NULL, MIXPREC_ERR_NULL);
        PLAIN(x.b = NULL, MIXPREC_ERR_NULL);
        PLAIN(x.c = NULL, MIXPREC_ERR_NULL);
        for (type = -1; type <= MIXPREC_DTYPE_COUNT; type++)
            if (type < MIXPREC_F32 || type > MIXPREC_E5M2) {
                PLAIN(x.a_type = (mixprec_dtype)type, MIXPREC_ERR_DTYPE);
                PLAIN(x.b_type = (mixprec_dtype)type, MIXPREC_ERR_DTYPE);
                PLAIN(x.c_type = (mixprec_dtype)type, MIXPREC_ERR_DTYPE);
            }
        PLAIN(x.ta = (mixprec_transpose)2, MIXPREC_ERR_TRANSPOSE);
        PLAIN(x.tb = (mixprec_transpose)2, MIXPREC_ERR_TRANSPOSE);
        PLAIN(x.tb = (mixprec_transpose)0xFFFFFFFFu, MIXPREC_ERR_TRANSPOSE);
        PLAIN(x.lda = K - 1, MIXPREC_ERR_LEADING_DIMENSION);
        PLAIN(x.ldb = N - 1, MIXPREC_ERR_LEADING_DIMENSION);
        PLAIN(x.ldc = N - 1, MIXPREC_ERR_LEADING_DIMENSION);
        PLAIN(x.ta = MIXPREC_TRANS; x.lda = M - 1, MIXPREC_ERR_LEADING_DIMENSION);
        PLAIN(x.tb = MIXPREC_TRANS; x.ldb = K - 1, MIXPREC_ERR_LEADING_DIMENSION);
        PLAIN(x.ta = MIXPREC_TRANS; x.lda = M, MIXPREC_OK);
        PLAIN(x.tb = MIXPREC_TRANS; x.ldb = K, MIXPREC_OK);
        PLAIN(x.lda = SIZE_MAX / 2, MIXPREC_ERR_SIZE);
        PLAIN(x.ldb = SIZE_MAX / 2, MIXPREC_ERR_SIZE);
        PLAIN(x.ldc = SIZE_MAX / 2, MIXPREC_ERR_SIZE);
        PLAIN(x.m = SIZE_MAX / 4, MIXPREC_ERR_SIZE);
        PLAIN(x.n = x.ldb = x.ldc = SIZE_MAX / 8, MIXPREC_ERR_SIZE);
        PLAIN(x.k = x.lda = SIZE_MAX / 8, MIXPREC_ERR_SIZE);
        PLAIN(x.a = c_at - M * K, MIXPREC_OK); /* they touch */
        PLAIN(x.a = c_at + M * N, MIXPREC_OK);
        PLAIN(x.b = c_at - K * N, MIXPREC_OK);
        PLAIN(x.b = c_at + M * N, MIXPREC_OK);
        PLAIN(x.a = c_at - M * K + 1, MIXPREC_ERR_OVERLAP);
        PLAIN(x.a = c_at + M * N - 1, MIXPREC_ERR_OVERLAP);
        PLAIN(x.b = c_at - K * N + 1, MIXPREC_ERR_OVERLAP);
        PLAIN(x.b = c_at + M * N - 1, MIXPREC_ERR_OVERLAP);
        PLAIN(x.a = x.b = NULL; x.k = 0, MIXPREC_OK); /* not read, so it may lie in C, too */
        PLAIN(x.a = x.b = c_at; x.k = 0, MIXPREC_OK);
        PLAIN(x.a = x.b = NULL; x.c = NULL; x.m = 0, MIXPREC_OK);
        PLAIN(x.a = x.b = NULL; x.c = NULL; x.n = 0, MIXPREC_OK);
        PLAIN(x.m = 0; x.c_type = MIXPREC_NONE, MIXPREC_ERR_DTYPE);
        PLAIN(x.k = 0; x.tb = (mixprec_transpose)2, MIXPREC_ERR_TRANSPOSE);
#undef PLAIN
    }
    for (zero = 0; zero < 2; zero++) { /* alpha 0 */
        memcpy(memory, before, sizeof memory);
        CHECK(mixprec_gemm(MIXPREC_NO_TRANS, MIXPREC_NO_TRANS, M, N, K, 0, zero ? NULL : c_at, MIXPREC_F32, K,
                           zero ? NULL : c_at, MIXPREC_F32, N, 2, c_at, MIXPREC_F32, N) == MIXPREC_OK,
              "alpha 0");
        for (i = 0; i < 2 * C_AT; i++)
            CHECK(memory[i] == before[i] * (i >= C_AT && i < C_AT + M * N ? 2 : 1), "alpha 0, element %zu", i);
    }
}

/* A packed B may lie between matrices of C, as blocks from an allocator do; within one, it is refused. */
static void test_packed_between(void) {
    static uint64_t block[64]; /* C in the first 16 words and in the last, B between */
    static float ones[16];
    static unsigned char workspace[1 << 16];
    mixprec_gemm_desc d;
    void *c_array[2];
    size_t size = 0, i, j;
    mixprec_status status;
    memset(&d, 0, sizeof d);
    for (i = 0; i < 16; i++)
        ones[i] = 1;
    d.m = d.n = d.k = 4;
    d.a = d.b = ones;
    d.a_type = d.b_type = d.c_type = MIXPREC_F32;
    d.isa = MIXPREC_ISA_C;
    status = mixprec_gemm_pack_b_size(&d, &size);
    CHECK(status == MIXPREC_OK && size <= 32 * sizeof *block, "%zu bytes, status %d", size, (int)status);
    status = mixprec_gemm_pack_b(&d, block + 16, size);
    CHECK(status == MIXPREC_OK, "pack_b: status %d", (int)status);
    d.b = block + 16;
    d.packed_size = size;
    d.batch = 2;
    d.c_array = c_array;
    d.workspace = workspace;
    d.workspace_size = sizeof workspace;
    for (i = 0; i < 2; i++) {
        c_array[i] = block;
        c_array[1 - i] = block + 48;
        memset(block, 0, 16 * sizeof *block);
        memset(block + 48, 0, 16 * sizeof *block);
        status = mixprec_gemm_ex(&d);
        CHECK(status == MIXPREC_OK, "B between matrices of C: status %d", (int)status);
        for (j = 0; j < 16; j++)
            CHECK(((float *)c_array[0])[j] == 4 && ((float *)c_array[1])[j] == 4, "wrong sums");
    }
    c_array[1] = block + 16 + size / 8 - 1;
    status = mixprec_gemm_ex(&d);
    CHECK(status == MIXPREC_ERR_OVERLAP, "C on the end of B: status %d", (int)status);
}

#define NOT_PACKED 0x77 /* what lies where B is not to be packed */

static void check_not_packed(const unsigned char *packed, size_t size, const char *what) {
    size_t i;
    for (i = 0; i < size && packed[i] == NOT_PACKED; i++)
        ;
    CHECK(i == size, "pack_b: %s: wrote", what);
}

/* B is refused, and nothing written; its size, too, where that depends on what is bad. */
static void check_pack_error(const mixprec_gemm_desc *bad, unsigned char *packed, size_t size, mixprec_status want,
                             const char *what, int of_size_too) {
    size_t wrong = 55;
    memset(packed, NOT_PACKED, size);
    CHECK_STATUS(what, mixprec_gemm_pack_b(bad, packed, size), want);
    check_not_packed(packed, size, what);
    if (of_size_too)
        CHECK(mixprec_gemm_pack_b_size(bad, &wrong) == want && wrong == 55, "pack_b_size: %s", what);
}

/* One field of the descriptor `pack` is made bad. */
#define BAD_PACK(field, value, status, of_size_too)                                                                    \
    do {                                                                                                               \
        mixprec_gemm_desc bad = pack;                                                                                  \
        bad.field = value;                                                                                             \
        check_pack_error(&bad, packed, size, status, "." #field " = " #value, of_size_too);                            \
    } while (0)

static void test_packed_errors(void) {
    static const mixprec_dtype no_dtypes[] = {MIXPREC_NONE, MIXPREC_E2M1, (mixprec_dtype)MIXPREC_DTYPE_COUNT};
    mixprec_gemm_desc pack, plain;
    size_t size = 0, i, wrong = 55, best = 0, least = 0;
    unsigned char *packed, *over;
    make_good(SHARED);
    good.b_type = MIXPREC_BF16; /* of as many bytes */
    pack = good;
    CHECK(mixprec_gemm_pack_b_size(&pack, &size) == MIXPREC_OK, "pack_b_size");
    packed = slots[SLOT_PACKED] + (SLOT_SIZE - size) / 8 * 8;

    CHECK(mixprec_gemm_pack_b_size(NULL, &wrong) == MIXPREC_ERR_NULL && wrong == 55, "pack_b_size(NULL)");
    CHECK(mixprec_gemm_pack_b_size(&pack, NULL) == MIXPREC_ERR_NULL, "pack_b_size(.., NULL)");
    CHECK(mixprec_gemm_pack_b(NULL, packed, size) == MIXPREC_ERR_NULL, "pack_b(NULL)");
    CHECK(mixprec_gemm_pack_b(&pack, NULL, size) == MIXPREC_ERR_NULL, "pack_b to NULL");
    BAD_PACK(b, NULL, MIXPREC_ERR_NULL, 0);
    for (i = 0; i < 3; i++)
        BAD_PACK(b_type, no_dtypes[i], MIXPREC_ERR_DTYPE, 1);
    BAD_PACK(isa, (mixprec_isa)(MIXPREC_ISA_NEON + 1), MIXPREC_ERR_ISA, 1);
    BAD_PACK(trans_b, (mixprec_transpose)2, MIXPREC_ERR_TRANSPOSE, 0);
    BAD_PACK(ldb, 39, MIXPREC_ERR_LEADING_DIMENSION, 0);
    BAD_PACK(n, SIZE_MAX / 8, MIXPREC_ERR_SIZE, 1);
    BAD_PACK(n, SIZE_MAX, MIXPREC_ERR_SIZE, 1);
    BAD_PACK(k, SIZE_MAX / 16, MIXPREC_ERR_SIZE, 1);
    BAD_PACK(ldb, SIZE_MAX / 4, MIXPREC_ERR_SIZE, 0);
    memset(packed, NOT_PACKED, size);
    CHECK(mixprec_gemm_pack_b(&pack, packed, size - 1) == MIXPREC_ERR_WORKSPACE, "pack_b into too little");
    CHECK(mixprec_gemm_pack_b(&pack, packed, 0) == MIXPREC_ERR_WORKSPACE, "pack_b into nothing");
    check_not_packed(packed, size, "into too little");
    over = b_memory.data + (8 - (uintptr_t)b_memory.data % 8) % 8;
    CHECK(mixprec_gemm_pack_b(&pack, over, size) == MIXPREC_ERR_OVERLAP, "pack_b over B");
    CHECK(mixprec_gemm_pack_b(&pack, over + (b_memory.bytes - 8) / 8 * 8, size) == MIXPREC_ERR_OVERLAP, "over its end");
    CHECK(mixprec_gemm_pack_b(&pack, over - size / 8 * 8 + 8, size) == MIXPREC_ERR_OVERLAP, "over its beginning");
    check_untouched("pack_b");

    CHECK(mixprec_gemm_pack_b(&pack, packed, size) == MIXPREC_OK, "pack_b");
    plain = good;
    plain.b_array = NULL;
    plain.stride_b = 0;
    plain.b = packed;
    plain.packed_size = size;
    plain.workspace = slots[SLOT_WORKSPACE];
    plain.workspace_size = SLOT_SIZE;
    good = plain;
    check_error(&good, MIXPREC_OK, "a packed B", 1);
    BAD(ldb, 1, MIXPREC_OK, 1);
    BAD(packed_size, size - 1, MIXPREC_ERR_PACKED, 0);
    BAD(packed_size, size + 1, MIXPREC_ERR_PACKED, 0);
    BAD(stride_b, 1, MIXPREC_ERR_PACKED, 1);
    BAD(b_array, good.a_array ? good.a_array : (const void *const *)b.pointers, MIXPREC_ERR_PACKED, 1);
    BAD(n, 39, MIXPREC_ERR_PACKED, 0);
    BAD(k, 29, MIXPREC_ERR_PACKED, 0);
    BAD(b_type, MIXPREC_F16, MIXPREC_ERR_PACKED, 0);
    BAD(b_type, MIXPREC_E4M3, MIXPREC_ERR_PACKED, 0); /* packed as bf16, too */
    BAD(b_type, MIXPREC_F32, MIXPREC_ERR_PACKED, 0);
    for (i = 1; i < (size_t)ISA_COUNT; i++)
        if (runs_here(all_isas[i]))
            BAD(isa, all_isas[i], all_isas[i] == mixprec_isa_best() ? MIXPREC_OK : MIXPREC_ERR_PACKED, 0);
    { /* f64 panels are of another width than those for fp32 accumulators */
        mixprec_gemm_desc wide = good;
        wide.b_type = MIXPREC_F64;
        check_error(&wide, MIXPREC_ERR_PACKED, "f16 x packed f64", 1);
    }
    for (i = 1; i < 10; i++) { /* truncated, just before memory that cannot be read */
        mixprec_gemm_desc truncated = good;
        truncated.packed_size = 8 * i;
        truncated.b = memcpy(slots[SLOT_PACKED] + SLOT_SIZE - 8 * i, packed, 8 * i);
        check_error(&truncated, MIXPREC_ERR_PACKED, "a truncated packed B", 0);
    }
    CHECK(mixprec_gemm_pack_b(&pack, packed, size) == MIXPREC_OK, "pack_b");
    for (i = 1; i < 8; i++) { /* where elements are not aligned */
        CHECK(mixprec_gemm_pack_b(&pack, slots[SLOT_PACKED] + i, size) == MIXPREC_ERR_PACKED, "pack_b to byte %zu", i);
        memcpy(slots[SLOT_PACKED] + i, packed, size);
        BAD(b, slots[SLOT_PACKED] + i, MIXPREC_ERR_PACKED, 0);
    }
    packed[0] ^= 1;
    check_error(&good, MIXPREC_ERR_PACKED, "another first byte", 0);
    packed[0] ^= 1;
    for (i = 1; i < (size_t)ISA_COUNT; i++) { /* of the same size, for another instruction set */
        mixprec_gemm_desc other;
        size_t j;
        memset(&other, 0, sizeof other);
        other.m = 1;
        other.n = 96;
        other.k = 1;
        other.a_type = other.b_type = other.c_type = MIXPREC_F16;
        other.isa = all_isas[i];
        other.b = a_memory.data;
        if (!runs_here(all_isas[i]))
            continue;
        CHECK(mixprec_gemm_pack_b(&other, slots[SLOT_PACKED], SLOT_SIZE) == MIXPREC_OK, "pack_b");
        CHECK(mixprec_gemm_pack_b_size(&other, &other.packed_size) == MIXPREC_OK, "pack_b_size");
        other.workspace = slots[SLOT_WORKSPACE];
        other.workspace_size = SLOT_SIZE;
        other.a = a_memory.data;
        other.b = slots[SLOT_PACKED];
        other.c = slots[SLOT_C];
        for (j = 1; j < (size_t)ISA_COUNT; j++)
            if (runs_here(all_isas[j])) {
                other.isa = all_isas[j];
                CHECK(mixprec_gemm_ex(&other) == (i == j ? MIXPREC_OK : MIXPREC_ERR_PACKED), "packed for %s, on %s",
                      path_name(all_isas[i]), path_name(all_isas[j]));
            }
    }
    save(&c_memory);
    memset(slots[SLOT_PACKED], 0, size);
    BAD(b, slots[SLOT_PACKED], MIXPREC_ERR_PACKED, 0);
    BAD(b, NULL, MIXPREC_ERR_NULL, 0);
    BAD(c, packed, MIXPREC_ERR_OVERLAP, 0);
    BAD(c, packed - 4 * (2 * c.stride + 12 * c.ld + 39), MIXPREC_ERR_OVERLAP, 0);
    CHECK(mixprec_gemm_workspace(&good, &best, &least) == MIXPREC_OK && least > 0, "workspace with a packed B");
    BAD(workspace_size, least - 1, MIXPREC_ERR_WORKSPACE, 0);
    BAD(workspace_size, least, MIXPREC_OK, 0);
}

/* Nothing to compute: no pointer is needed. */
static void test_empty(void) {
    int t;
    oracle_random_state = 14;
    for (t = 0; t < 60; t++) {
        mixprec_gemm_desc d;
        mixprec_status status;
        draw_problem(EVERYTHING);
        d = describe_call(MIXPREC_ISA_AUTO);
        d.a = d.b = NULL;
        d.c = NULL;
        d.a_array = d.b_array = NULL;
        d.c_array = NULL;
        d.stride_a = a.stride;
        d.stride_b = b.stride;
        d.stride_c = c.stride;
        d.bias = NULL;
        d.scale_a.values = d.scale_b.values = NULL;
        d.lda = d.ldb = d.ldc = 0;
        *(t % 2 || now.triangle ? &d.m : &d.n) = 0;
        if (now.triangle)
            d.n = 0;
        status = mixprec_gemm_ex(&d);
        CHECK(status == MIXPREC_OK, "status %d: %s", (int)status, describe());
    }
}

/* More threads than there are tasks at most: times the number of products they would overflow 32 bits. */
static void test_many_tasks(void) {
    enum { BATCH = 150000 };
    static float numbers[BATCH], products[BATCH];
    mixprec_gemm_desc d;
    size_t i;
    memset(&d, 0, sizeof d);
    for (i = 0; i < BATCH; i++)
        numbers[i] = (float)(i % 4093);
    d.m = d.n = d.k = 1;
    d.a = d.b = numbers;
    d.c = products;
    d.a_type = d.b_type = d.c_type = MIXPREC_F32;
    d.batch = BATCH;
    d.stride_a = d.stride_b = 1;
    d.threads = 100000;
    d.parallel_for = backwards;
    d.parallel_context = &tasks_seen;
    tasks_seen = 0;
    CHECK(mixprec_gemm_ex(&d) == MIXPREC_OK, "status");
    for (i = 0; i < BATCH; i++)
        CHECK(products[i] == numbers[i] * numbers[i], "product %zu: %g", i, (double)products[i]);
    CHECK(tasks_seen == 4096, "%zu tasks", tasks_seen);
    d.threads = SIZE_MAX;
    memset(products, 0, sizeof products);
    CHECK(mixprec_gemm_ex(&d) == MIXPREC_OK, "status");
    for (i = 0; i < BATCH; i++)
        CHECK(products[i] == numbers[i] * numbers[i], "product %zu of as many tasks as there are: %g", i,
              (double)products[i]);
}

/* A product that is large enough has as many tasks as it may; a single task needs no parallel_for. */
static void test_task_counts(void) {
    static const size_t counts[] = {0, 1, 2, 3, 5};
    static float numbers[400 * 8], sums[400 * 400];
    size_t i, j;
    for (i = 0; i < 400 * 8; i++)
        numbers[i] = (float)(i % 7);
    for (i = 0; i < sizeof counts / sizeof *counts; i++)
        for (j = 0; j < 3; j++) { /* many rows, few, a batch */
            mixprec_gemm_desc d;
            memset(&d, 0, sizeof d);
            d.m = j ? 8 : 400, d.n = j == 2 ? 50 : 400, d.k = 8;
            d.batch = j == 2 ? 8 : 1;
            d.a = d.b = numbers, d.c = sums;
            d.a_type = d.b_type = d.c_type = MIXPREC_F32;
            d.threads = counts[i];
            d.parallel_for = backwards;
            d.parallel_context = &tasks_seen;
            tasks_seen = 0;
            CHECK(mixprec_gemm_ex(&d) == MIXPREC_OK, "status");
            CHECK(tasks_seen == (counts[i] > 1 ? counts[i] : 0), "%zu tasks for %zu threads, case %zu", tasks_seen,
                  counts[i], j);
        }
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
        {"gemm_ex: few options", test_nothing_special},
        {"gemm_ex: one option, or none", test_one_thing},
        {"gemm_ex: batches", test_batches},
        {"gemm_ex: scales", test_scales},
        {"gemm_ex: bias and activations", test_bias},
        {"gemm_ex: rounding modes, overflow policies, random indices", test_rounding},
        {"gemm_ex: triangles", test_triangles},
        {"gemm_ex: B is A", test_a_is_b},
        {"gemm_ex: all at once", test_everything},
        {"gemm_ex: many blocks", test_large},
        {"gemm_ex: tasks of one to three rows", test_short_tasks},
        {"gemm_ex: very many tasks", test_many_tasks},
        {"gemm_ex: as many tasks as threads", test_task_counts},
        {"gemm_ex: few rows, few columns", test_few},
        {"gemm_ex: activations", test_activations},
        {"gemm_ex: A A^T and A^T A have the bits of the general product", test_symmetric},
        {"gemm_ex: the same of large A", test_mirror},
        {"gemm_ex: what alpha = 0 must not read", test_unread},
        {"gemm_ex: a packed matrix serves many products", test_packed_reuse},
        {"gemm_ex: nothing to compute", test_empty},
        {"gemm_ex: every error status", test_statuses},
        {"gemm_ex: scales that are none", test_bad_scales},
        {"gemm_ex: arrays of pointers", test_bad_pointers},
        {"gemm_ex: overlap", test_overlap},
        {"gemm_ex: overlap in large batches", test_overlap_of_many},
        {"gemm_ex: a query without pointers", test_query_without_pointers},
        {"gemm_ex: overlap with the workspace", test_workspace_overlap},
        {"gemm_ex: overlap with the workspace, arrays of pointers", test_workspace_pointers},
        {"gemm_ex: blocks of one matrix, side by side", test_side_by_side},
        {"gemm_ex: every error status of mixprec_gemm", test_plain_statuses},
        {"gemm_ex: a packed matrix between those of C", test_packed_between},
        {"gemm_ex: wrong packed matrices", test_packed_errors},
    };
    pthread_t workers[POOL_WORKERS];
    size_t i;
    test_init(argc, argv);
    make_slots();
    guard_crashes(describe);
    for (i = 0; i < POOL_WORKERS; i++)
        if (pthread_create(&workers[i], NULL, pool_worker, &the_pool))
            fail("test_gemm_ex: pthread_create");
    for (i = 0; i < sizeof tests / sizeof *tests; i++)
        if (test_begin(tests[i].name)) {
            tests[i].run();
            test_end();
        }
    if (!mixprec_native_available(MIXPREC_E4M3, MIXPREC_BF16))
        test_skip("gemm_ex: all at once, by AMX-BF16", "not compiled in, or not available on this CPU");
    else if (test_begin("gemm_ex: all at once, by AMX-BF16")) {
        test_tiles();
        test_end();
    }
    pthread_mutex_lock(&the_pool.lock);
    the_pool.quit = 1;
    pthread_cond_broadcast(&the_pool.work);
    pthread_mutex_unlock(&the_pool.lock);
    for (i = 0; i < POOL_WORKERS; i++)
        pthread_join(workers[i], NULL);
    for (i = 0; i < (size_t)ISA_COUNT; i++)
        if (!runs_here(all_isas[i])) {
            char name[40];
            snprintf(name, sizeof name, "gemm_ex: the %s path", mixprec_isa_name(all_isas[i]));
            test_skip(name, "not compiled in, or not available on this CPU");
        }
    return test_summary();
}
