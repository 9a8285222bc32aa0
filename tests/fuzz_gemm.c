/* mixprec_gemm_ex with descriptors of any kind: fields that fit together, and fields that do not. A descriptor that the
   contract allows must give, bit for bit, what a plain loop in the documented order gives, on whichever instruction
   set, rows, tasks and workspace it asks for, and change no other byte; one that it does not allow must be refused for
   a reason that is there, and change nothing. How to run it: see fuzz.h.

   The loop is written from the comments in [API], on scalars. Activations but the first two are the library's own, in
   portable C, one row at a time: test_gemm_ex.c compares those with long double. */
#include <math.h>
#include "fuzz.h"

enum { CHUNK = 512, MOST_BATCH = 4, MOST_BYTES = 1 << 20 };
#define HUGE_SIZE (SIZE_MAX / 16) /* at least so much overflows when it is multiplied */

/* What a call may be refused with, a bit for each status. `sizes`, `data`: it must be, for one of them; mixprec_gemm_
   workspace looks at the first only. `maybe`: it may be. */
static uint64_t sizes, data_errors, maybe;
#define ERROR(status) ((uint64_t)1 << (status))
static void wrong(uint64_t *set, int condition, mixprec_status status) {
    if (condition)
        *set |= ERROR(status);
}

/* ---- an operand ---- */

typedef struct operand {
    size_t rows, columns, ld, size, stride; /* as stored, zeros filled in */
    size_t bytes;                           /* of one matrix, from its first element to its last */
    unsigned char *at[MOST_BATCH];
} operand;
static operand a, b, c;
static mixprec_gemm_desc d;
static size_t batch;
static int b_transposed, wide, finish_wide, nothing;
static double alpha, beta;

static int is_dtype(int dtype) {
    return dtype >= MIXPREC_F32 && dtype <= MIXPREC_E5M2;
}

/* A leading dimension: any, and what it stands for. */
static size_t draw_ld(operand *x, size_t rows, size_t columns, mixprec_dtype type) {
    size_t ld = fuzz_one_in(2) ? 0 : columns + fuzz_below(4);
    if (fuzz_one_in(40) && rows > 1) /* for one row any is allowed, but then kernels compute addresses that wrap */
        ld = SIZE_MAX / ((size_t)1 << fuzz_below(5));
    else if (fuzz_one_in(40) && columns > 1)
        ld = columns - 1;
    x->rows = rows;
    x->columns = columns;
    x->size = is_dtype((int)type) ? mixprec_dtype_size(type) : 0;
    x->ld = ld ? ld : columns;
    wrong(&sizes, x->ld < columns, MIXPREC_ERR_LEADING_DIMENSION);
    wrong(&sizes, rows && columns && (columns > HUGE_SIZE || (rows > 1 && rows - 1 >= HUGE_SIZE / x->ld)),
          MIXPREC_ERR_SIZE);
    x->bytes = rows && columns && !sizes ? ((rows - 1) * x->ld + columns) * x->size : 0;
    return ld;
}

static size_t draw_stride(operand *x, int is_c) {
    size_t tight = x->rows * x->ld, stride = fuzz_one_in(3) ? 0 : tight + fuzz_below(4);
    if (fuzz_one_in(30))
        stride = SIZE_MAX / (1 + fuzz_below(4));
    else if (fuzz_one_in(8)) /* rows of all matrices in turn, or matrices that overlap */
        stride = fuzz_below(2 * x->columns + 1);
    x->stride = batch == 1 ? 0 : stride ? stride : is_c ? tight : 0;
    wrong(&sizes, x->stride >= HUGE_SIZE / 2, MIXPREC_ERR_SIZE);
    return stride;
}

static void fill(void *array, mixprec_dtype type, size_t bytes) {
    uint64_t seed = fuzz_bits(2);
    size_t i, n = bytes / mixprec_dtype_size(type);
    int plain = !fuzz_one_in(3);
    for (i = 0; i < n; i++)
        fuzz_store(array, type, i,
                   fuzz_any_code(type, fuzz_mix(seed << 20 ^ i), plain || fuzz_mix(seed ^ i << 20) % 16 != 0));
}

/* Memory for the matrices of an operand: one block, or one for each in `array`. */
static void place(operand *x, mixprec_dtype type, const void **array) {
    size_t l, total = (batch - 1) * x->stride * x->size + x->bytes;
    if (array) {
        for (l = 0; l < batch; l++) {
            x->at[l] = l && fuzz_one_in(4) ? x->at[l - 1] : NULL;
            if (!x->at[l]) {
                x->at[l] = fuzz_memory(x->bytes, 0xFF);
                fill(x->at[l], type, x->bytes);
            }
            array[l] = x->at[l];
        }
        return;
    }
    if (!x->bytes)
        total = 0;
    x->at[0] = fuzz_memory(total, 0xFF);
    fill(x->at[0], type, total);
    for (l = 1; l < batch; l++)
        x->at[l] = x->at[0] + (x->bytes ? l * x->stride * x->size : 0);
}

/* Do two matrices share a byte of an element? 2: they do, 1: they only lie within each other, 0: they do not. */
static int share(const operand *x, size_t k, const operand *y, size_t l) {
    size_t i, j;
    if (!fuzz_overlap(x->at[k], x->bytes, y->at[l], y->bytes))
        return 0;
    for (i = 0; i < x->rows; i++)
        for (j = 0; j < y->rows; j++)
            if (fuzz_overlap(x->at[k] + i * x->ld * x->size, x->columns * x->size, y->at[l] + j * y->ld * y->size,
                             y->columns * y->size))
                return 2;
    return 1;
}
static void check_shared(const operand *x) {
    size_t k, l;
    for (k = 0; k < batch; k++)
        for (l = 0; l < (x == &c ? k : batch); l++) {
            int shared = share(&c, k, x, l);
            wrong(&data_errors, shared == 2, MIXPREC_ERR_OVERLAP);
            /* Blocks of a larger matrix may lie side by side: the same leading dimension and element size. */
            wrong(&maybe, shared == 1 && (x->ld != c.ld || x->size != c.size || x->rows < 2 || c.rows < 2),
                  MIXPREC_ERR_OVERLAP);
        }
}

/* ---- scales ---- */

typedef struct scale_view {
    const float *values;
    size_t block_rows, block_columns, ld;
} scale_view;
static scale_view scales_a, scales_b;

static void draw_scales(mixprec_scales *s, scale_view *view, const operand *x) {
    size_t rows, columns, i, j, ld;
    float *values;
    memset(s, 0, sizeof *s);
    memset(view, 0, sizeof *view);
    if (!fuzz_one_in(4) || x->rows > 5000 || x->columns > 5000)
        return;
    s->block_rows = fuzz_one_in(20) ? SIZE_MAX : fuzz_below(6) * (fuzz_one_in(2) ? 1 : 16);
    s->block_columns = fuzz_one_in(20) ? SIZE_MAX : fuzz_below(6) * (fuzz_one_in(2) ? 1 : 16);
    view->block_rows = s->block_rows && s->block_rows < x->rows ? s->block_rows : x->rows ? x->rows : 1;
    view->block_columns = s->block_columns && s->block_columns < x->columns ? s->block_columns
                          : x->columns                                      ? x->columns
                                                                            : 1;
    rows = (x->rows + view->block_rows - 1) / view->block_rows;
    columns = (x->columns + view->block_columns - 1) / view->block_columns;
    s->ld = fuzz_one_in(2) ? 0 : fuzz_one_in(20) && columns > 1 ? columns - 1 : columns + fuzz_below(3);
    ld = s->ld ? s->ld : columns;
    wrong(&sizes, ld < columns, MIXPREC_ERR_LEADING_DIMENSION);
    view->ld = ld;
    values = (float *)(void *)fuzz_memory(rows && columns && !sizes ? ((rows - 1) * ld + columns) * 4 : 0, 0xFF);
    for (i = 0; i < rows && !sizes; i++)
        for (j = 0; j < columns; j++) {
            static const float few[] = {1, 2, 0.5f, 0.3f, 7};
            values[i * ld + j] = few[(i * 7 + j * 3 + fuzz_left) % 5];
        }
    if (fuzz_one_in(20) && rows && columns && !sizes) {
        static const uint32_t bad[] = {0, 0x80000000u, 0xBF800000u, 0x7F800000u, 0x7FC00000u, 0xFFFFFFFFu};
        uint32_t bits = FUZZ_PICK(bad);
        memcpy(&values[fuzz_below(rows) * ld + fuzz_below(columns)], &bits, 4);
        wrong(&data_errors, !nothing, MIXPREC_ERR_SCALE);
    }
    s->values = view->values = values;
}
static double scale_of(const scale_view *s, size_t i, size_t j) {
    return (double)s->values[i / s->block_rows * s->ld + j / s->block_columns];
}

/* ---- the contract as a loop ---- */

static double f32(double x) {
    volatile float y = (float)x;
    return (double)y;
}
static double rounded(int in_f64, double x) { /* an operation on floats, rounded twice, is as good as rounded once */
    volatile double y = x;
    return in_f64 ? y : f32(y);
}
static double element(const operand *x, mixprec_dtype type, size_t l, size_t i, size_t j) {
    double value = fuzz_value(x->at[l], type, i * x->ld + j);
    return wide ? value : f32(value);
}

static double sum(size_t l, size_t i, size_t j, size_t from, size_t to, int fused) {
    double total = 0;
    size_t start, p;
    for (start = from; start < to; start += CHUNK) {
        double s = 0;
        float narrow = 0;
        for (p = start; p < to && p < start + CHUNK; p++) {
            double x = d.trans_a ? element(&a, d.a_type, l, p, i) : element(&a, d.a_type, l, i, p);
            double y = b_transposed ? element(&b, d.b_type, l, j, p) : element(&b, d.b_type, l, p, j);
            if (wide)
                s = fused ? fma(x, y, s) : s + rounded(1, x * y);
            else
                narrow = fused ? fmaf((float)x, (float)y, narrow) : narrow + (float)rounded(0, x * y);
        }
        s = wide ? s : (double)narrow;
        total = start == from ? s : rounded(wide, total + s);
    }
    return total;
}

static double scaled_sum(size_t l, size_t i, size_t j, int fused) {
    size_t block_a = !scales_a.values ? d.k : d.trans_a ? scales_a.block_rows : scales_a.block_columns;
    size_t block_b = !scales_b.values ? d.k : d.trans_b ? scales_b.block_columns : scales_b.block_rows;
    double total = 0, s;
    size_t from, to, other;
    for (from = 0; from < d.k; from = to) {
        to = (from / block_a + 1) * block_a;
        other = (from / block_b + 1) * block_b;
        to = to < other ? to : other;
        to = to < d.k ? to : d.k;
        s = sum(l, i, j, from, to, fused);
        if (scales_a.values)
            s = rounded(wide, s * (d.trans_a ? scale_of(&scales_a, from, i) : scale_of(&scales_a, i, from)));
        if (scales_b.values)
            s = rounded(wide, s * (d.trans_b ? scale_of(&scales_b, j, from) : scale_of(&scales_b, from, j)));
        total = from ? rounded(wide, total + s) : s;
    }
    return total;
}

static double activated(double x) {
    mixprec_gemm_desc one;
    static const double unit = 1;
    float narrow = (float)x;
    if (d.activation == MIXPREC_ACTIVATION_NONE || x != x)
        return x;
    if (d.activation == MIXPREC_ACTIVATION_RELU)
        return x > 0 ? x : 0;
    memset(&one, 0, sizeof one);
    one.m = one.n = 1;
    one.beta = &unit;
    one.a_type = one.b_type = one.c_type = MIXPREC_F32;
    one.c = &narrow;
    one.activation = d.activation;
    one.isa = MIXPREC_ISA_C;
    FUZZ_CHECK(mixprec_gemm_ex(&one) == MIXPREC_OK, "an activation by itself");
    return (double)narrow;
}

static uint64_t result(size_t l, size_t i, size_t j, int fused) {
    double x = nothing ? 0 : rounded(finish_wide, alpha * scaled_sum(l, i, j, fused));
    if (beta != 0) {
        double y = rounded(finish_wide, beta * fuzz_value(c.at[l], d.c_type, i * c.ld + j));
        x = nothing ? y : rounded(finish_wide, x + y);
    }
    if (d.bias) {
        double y = fuzz_value(d.bias, d.bias_type ? d.bias_type : MIXPREC_F32, j);
        x = rounded(finish_wide, x + (finish_wide ? y : f32(y)));
    }
    x = activated(x);
    if (d.c_type == MIXPREC_F32 && !wide) /* not narrowed */
        return fuzz_code(x, MIXPREC_F32, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0);
    return fuzz_code(x, d.c_type, d.round, d.overflow, mixprec_random_bits(d.seed, d.offset + (l * d.m + i) * d.n + j));
}

static int selected(size_t i, size_t j) {
    return i >= d.row_begin && (d.row_end == 0 || i < d.row_end) &&
           (d.triangle == MIXPREC_FULL || (d.triangle == MIXPREC_LOWER ? j <= i : j >= i));
}

/* What the path is to give: products and sums fused, 1, not fused, 0, or either, where the compiler chooses, 2. */
static int fuses(void) {
    mixprec_isa isa = d.isa ? d.isa : mixprec_isa_best();
    return isa == MIXPREC_ISA_AVX2 || isa == MIXPREC_ISA_AVX512 || isa == MIXPREC_ISA_NEON ? 1 : 2;
}

/* ---- a descriptor ---- */

static void task_order(void *context, size_t tasks, void (*task)(void *data, size_t index), void *data) {
    size_t i;
    FUZZ_CHECK(tasks <= d.threads, "%zu tasks for .threads = %zu", tasks, d.threads);
    for (i = 0; i < tasks; i++)
        task(data, context ? tasks - 1 - i : i);
}

static const void *a_array[MOST_BATCH], *b_array[MOST_BATCH];
static void *c_array[MOST_BATCH];

static void draw_sizes(void) {
    static const size_t shapes[][3] = {{9, 9, 9},   {20, 40, 20},  {70, 70, 8},   {4, 5, 1100},
                                       {3, 90, 90}, {33, 20, 140}, {1, 200, 300}, {16, 16, 600},
                                       {90, 3, 90}, {200, 1, 300}, {60, 8, 140},  {8, 150, 150}};
    const size_t *most = shapes[fuzz_below(12)];
    d.m = fuzz_below(most[0] + 1);
    d.n = fuzz_one_in(4) ? d.m : fuzz_below(most[1] + 1);
    d.k = fuzz_below(most[2] + 1);
    d.batch = fuzz_one_in(3) ? fuzz_below(MOST_BATCH + 1) : 0;
    batch = d.batch ? d.batch : 1;
    if (fuzz_one_in(80)) /* more than memory: refused, or nothing to do */
        *(fuzz_one_in(3) ? &d.m : fuzz_one_in(2) ? &d.n : &d.k) = SIZE_MAX / (1 + fuzz_below(3));
}

static void draw_enums(void) {
    d.trans_a = (mixprec_transpose)fuzz_enum(0, 1);
    d.trans_b = (mixprec_transpose)fuzz_enum(0, 1);
    d.a_type = (mixprec_dtype)fuzz_enum(MIXPREC_F32, MIXPREC_E5M2);
    d.b_type = fuzz_one_in(3) ? d.a_type : (mixprec_dtype)fuzz_enum(MIXPREC_F32, MIXPREC_E5M2);
    d.c_type = (mixprec_dtype)fuzz_enum(MIXPREC_F32, MIXPREC_E5M2);
    d.bias_type = (mixprec_dtype)fuzz_enum(MIXPREC_NONE, MIXPREC_E5M2);
    d.activation = fuzz_one_in(4) ? (mixprec_activation)fuzz_enum(0, MIXPREC_ACTIVATION_TANH) : MIXPREC_ACTIVATION_NONE;
    d.round = (mixprec_round)fuzz_enum(0, MIXPREC_ROUND_STOCHASTIC);
    d.overflow = (mixprec_overflow)fuzz_enum(0, MIXPREC_OVERFLOW_SATURATE_KEEP_INF);
    d.triangle = fuzz_one_in(5) ? (mixprec_triangle)fuzz_enum(0, MIXPREC_UPPER) : MIXPREC_FULL;
    d.isa = (mixprec_isa)fuzz_enum(0, MIXPREC_ISA_NEON);
    b_transposed = d.trans_b != MIXPREC_NO_TRANS;
    wide = d.a_type == MIXPREC_F64 && d.b_type == MIXPREC_F64;
    finish_wide = wide || d.c_type == MIXPREC_F64;
    wrong(&sizes, !is_dtype((int)d.a_type) || !is_dtype((int)d.b_type) || !is_dtype((int)d.c_type), MIXPREC_ERR_DTYPE);
    wrong(&sizes, d.bias_type && !is_dtype((int)d.bias_type), MIXPREC_ERR_DTYPE);
    wrong(&sizes, (unsigned)d.trans_a > 1 || (unsigned)d.trans_b > 1, MIXPREC_ERR_TRANSPOSE);
    wrong(&sizes, (unsigned)d.round > MIXPREC_ROUND_STOCHASTIC, MIXPREC_ERR_ROUND);
    wrong(&sizes, (unsigned)d.overflow > MIXPREC_OVERFLOW_SATURATE_KEEP_INF, MIXPREC_ERR_OVERFLOW);
    wrong(&sizes, (unsigned)d.activation > (finish_wide ? MIXPREC_ACTIVATION_RELU : MIXPREC_ACTIVATION_TANH),
          MIXPREC_ERR_ACTIVATION);
    wrong(&sizes, (unsigned)d.isa > MIXPREC_ISA_NEON || (d.isa && !mixprec_isa_available(d.isa)), MIXPREC_ERR_ISA);
}

/* Everything but the data; returns 0 where that would be too much work or memory. */
static int draw_descriptor(void) {
    static const double factors[] = {1, 0, 2, 0.3, -1, 1e-42, 1e300, -0.0, (double)NAN};
    static double alpha_value, beta_value;
    memset(&d, 0, sizeof d);
    sizes = data_errors = maybe = 0;
    draw_enums();
    draw_sizes();
    if (fuzz_one_in(3)) {
        alpha_value = FUZZ_PICK(factors);
        d.alpha = &alpha_value;
    }
    if (fuzz_one_in(3)) {
        beta_value = FUZZ_PICK(factors);
        d.beta = &beta_value;
    }
    alpha = d.alpha ? wide ? *d.alpha : f32(*d.alpha) : 1;
    beta = d.beta ? wide ? *d.beta : f32(*d.beta) : 0;
    nothing = d.k == 0 || alpha == 0;
    if (fuzz_one_in(3)) {
        d.row_begin = fuzz_below(d.m < 100 ? d.m + 1 : 100);
        d.row_end = fuzz_one_in(20) ? fuzz_below(100)
                    : d.m < 100     ? d.row_begin + fuzz_below(d.m - d.row_begin + 1)
                                    : 100;
    }
    wrong(&sizes, d.row_begin > d.row_end || d.row_end > d.m, MIXPREC_ERR_RANGE);
    wrong(&sizes, (unsigned)d.triangle > MIXPREC_UPPER || (d.triangle && (d.m != d.n || d.row_end)),
          MIXPREC_ERR_TRIANGLE);
    d.lda = draw_ld(&a, d.trans_a ? d.k : d.m, d.trans_a ? d.m : d.k, d.a_type);
    d.ldb = draw_ld(&b, d.trans_b ? d.n : d.k, d.trans_b ? d.k : d.n, d.b_type);
    d.ldc = draw_ld(&c, d.m, d.n, d.c_type);
    d.stride_a = draw_stride(&a, 0);
    d.stride_b = draw_stride(&b, 0);
    d.stride_c = draw_stride(&c, 1);
    if (d.m > 1000 || d.n > 1000 || d.k > 2000) { /* of such sizes, products overflow or other things are refused */
        maybe |= ERROR(MIXPREC_ERR_SIZE);
        if (d.m && d.n && !sizes)
            return 0;
    }
    return sizes || (batch - 1) * a.stride * a.size + a.bytes + (batch - 1) * b.stride * b.size + b.bytes +
                            (batch - 1) * c.stride * c.size + c.bytes <
                        MOST_BYTES;
}

/* B as a packed matrix, sound or not. */
static void draw_packed(void) {
    mixprec_gemm_desc pack = d;
    unsigned char *packed;
    size_t size = 0, shift, i;
    if (sizes || data_errors || !fuzz_one_in(4) || (b.stride && batch > 1) || d.n > 1000 || d.k > 2000)
        return;
    pack.a = pack.c = NULL;
    FUZZ_CHECK(mixprec_gemm_pack_b_size(&pack, &size) == MIXPREC_OK, "pack_b_size");
    shift = fuzz_one_in(20) ? 4 : 0;
    packed = fuzz_memory(size + shift, 0xFF);
    FUZZ_CHECK(mixprec_gemm_pack_b(&pack, packed, size - 1) == MIXPREC_ERR_WORKSPACE, "too small for a packed B");
    FUZZ_CHECK(mixprec_gemm_pack_b(&pack, packed, size) == MIXPREC_OK, "pack_b");
    memmove(packed + shift, packed, size);
    d.b = packed + shift;
    d.packed_size = size;
    d.stride_b = 0;
    d.ldb = fuzz_below(3); /* ignored */
    d.trans_b = d.scale_b.values ? d.trans_b : (mixprec_transpose)fuzz_below(2);
    wrong(&data_errors, shift != 0 && !nothing, MIXPREC_ERR_PACKED);
    wrong(&sizes, d.b_type == MIXPREC_F64 && !wide, MIXPREC_ERR_PACKED);
    if (fuzz_one_in(20)) {
        i = fuzz_below(40);
        packed[shift + i] ^= (unsigned char)(1 + fuzz_below(255));
        wrong(&data_errors, !nothing, MIXPREC_ERR_PACKED);
    } else if (fuzz_one_in(20)) {
        d.packed_size = fuzz_one_in(2) ? size - 1 : 1 + fuzz_below(size);
        wrong(&data_errors, !nothing && d.packed_size != size, MIXPREC_ERR_PACKED);
    }
}

static void draw_data(void) {
    int in_array[3], one = fuzz_one_in(12);
    in_array[0] = fuzz_one_in(5);
    in_array[1] = fuzz_one_in(5);
    in_array[2] = fuzz_one_in(5);
    if (in_array[2]) /* each in memory of its own; in one block, they overlap by their distances */
        c.stride = 0;
    place(&a, d.a_type, in_array[0] ? a_array : NULL);
    place(&b, d.b_type, in_array[1] ? b_array : NULL);
    if (in_array[2]) {
        size_t l;
        for (l = 0; l < batch; l++) {
            c.at[l] = l && fuzz_one_in(20) ? c.at[l - 1] : fuzz_memory(c.bytes, 0xFF);
            fill(c.at[l], d.c_type, c.bytes);
            c_array[l] = c.at[l];
        }
    } else if (one && !in_array[0]) { /* C somewhere near A */
        size_t span = (batch - 1) * a.stride * a.size + a.bytes, own = (batch - 1) * c.stride * c.size + c.bytes, l;
        size_t shift = fuzz_below(span / a.size + 3) * (a.size > c.size ? a.size : c.size);
        unsigned char *block = fuzz_memory(span + shift + own, 0xFF);
        fill(block, d.a_type, span + shift + own);
        for (l = 0; l < batch; l++) {
            a.at[l] = block + l * a.stride * a.size;
            c.at[l] = block + shift + l * c.stride * c.size;
        }
    } else
        place(&c, d.c_type, NULL);
    d.a = a.at[0];
    d.b = b.at[0];
    d.c = c.at[0];
    if (fuzz_one_in(6) && !in_array[0] && !in_array[1] && d.a_type == d.b_type && a.rows == b.rows &&
        a.columns == b.columns && a.ld == b.ld && a.stride == b.stride) { /* A A^T */
        size_t l;
        d.b = d.a;
        d.ldb = d.lda;
        d.stride_b = d.stride_a;
        for (l = 0; l < batch; l++)
            b.at[l] = a.at[l];
    }
    if (!sizes && d.m && d.n) {
        if (!nothing) {
            check_shared(&a);
            check_shared(&b);
        }
        check_shared(&c);
    }
    draw_scales(&d.scale_a, &scales_a, &a);
    draw_scales(&d.scale_b, &scales_b, &b);
    if (!sizes && d.n < 1000 && fuzz_one_in(4)) {
        mixprec_dtype type = d.bias_type ? d.bias_type : MIXPREC_F32;
        unsigned char *bias = fuzz_memory(d.n * mixprec_dtype_size(type), 0);
        fill(bias, type, d.n * mixprec_dtype_size(type));
        d.bias = bias;
    }
    if (!in_array[1])
        draw_packed();
    if (in_array[0])
        d.a_array = a_array;
    if (in_array[1])
        d.b_array = b_array;
    if (in_array[2])
        d.c_array = c_array;
    if (fuzz_one_in(40)) { /* a pointer that is missing */
        int which = (int)fuzz_below(3);
        size_t l = fuzz_below(batch);
        const void **pointers = which == 0 ? a_array : b_array;
        if (which == 2 && in_array[2])
            c_array[l] = NULL;
        else if (which == 2)
            d.c = NULL;
        else if (in_array[which])
            pointers[l] = NULL;
        else
            *(which == 0 ? &d.a : &d.b) = NULL;
        wrong(&data_errors, which == 2 || !nothing, MIXPREC_ERR_NULL);
    }
}

/* ---- running it ---- */

static void check_status(mixprec_status status, uint64_t must, const char *what) {
    FUZZ_CHECK((unsigned)status < MIXPREC_STATUS_COUNT && ((must | maybe) >> status & 1),
               "%s: status %d, must be one of %llx or may be of %llx", what, (int)status, (unsigned long long)must,
               (unsigned long long)maybe);
}

static unsigned char *kept[64];
static void keep(size_t count) {
    size_t i;
    for (i = 0; i < count; i++) {
        kept[i] = (unsigned char *)malloc(fuzz_sizes[i] + 1);
        FUZZ_CHECK(kept[i] != NULL, "the fuzzer lacks memory");
        memcpy(kept[i], fuzz_blocks[i], fuzz_sizes[i]);
    }
}

/* The block in which C's element lies, and there. */
static unsigned char *kept_at(const unsigned char *at, size_t count) {
    size_t i;
    for (i = 0; i < count; i++)
        if ((uintptr_t)at - (uintptr_t)fuzz_blocks[i] < fuzz_sizes[i])
            return kept[i] + (at - (const unsigned char *)fuzz_blocks[i]);
    FUZZ_CHECK(0, "C lies nowhere");
    return NULL;
}

static void check_results(uint64_t *codes[2], size_t blocks, int native) {
    size_t l, i, j, e = 0;
    for (l = 0; l < batch; l++)
        for (i = 0; i < d.m; i++)
            for (j = 0; j < d.n; j++, e++)
                if (selected(i, j)) {
                    unsigned char *at = c.at[l] + (i * c.ld + j) * c.size;
                    uint64_t got = fuzz_load(at, d.c_type, 0);
                    FUZZ_CHECK(native || fuzz_same(got, codes[0][e], d.c_type) ||
                                   (fuses() == 2 && fuzz_same(got, codes[1][e], d.c_type)),
                               "%zu x %zu x %zu, product %zu, element (%zu, %zu): got %llx, want %llx", d.m, d.n, d.k,
                               l, i, j, (unsigned long long)got, (unsigned long long)codes[0][e]);
                    fuzz_store(kept_at(at, blocks), d.c_type, 0, got);
                }
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
    size_t blocks, best = 1, least = 1, asked = 0, elements, i, j, l, e = 0;
    uint64_t *codes[2], must;
    mixprec_status status;
    mixprec_gemm_desc query;
    int empty, native;
    fuzz_begin(input, size);
    if (!draw_descriptor())
        return 0;
    if (sizes) { /* not looked at */
        size_t dummy = fuzz_below(2);
        a.bytes = b.bytes = c.bytes = 0;
        d.a = d.b = d.c = dummy ? fuzz_memory(8, 0xFF) : NULL;
        maybe |= ERROR(MIXPREC_ERR_NULL);
    } else
        draw_data();
    d.seed = fuzz_bits(1);
    d.offset = fuzz_bits(2);
    d.native = fuzz_one_in(30);
    native = d.native && d.m > 16 && !sizes && mixprec_native_available(d.a_type, d.b_type);
    d.threads = fuzz_below(6);
    if (fuzz_one_in(3)) {
        d.parallel_for = d.threads ? task_order : NULL;
        d.parallel_context = fuzz_one_in(2) ? &d : NULL;
    }
    query = d;
    if (fuzz_one_in(2)) /* before there is any memory */
        query.a = query.b = query.c = NULL;
    status = mixprec_gemm_workspace(&query, &best, &least);
    check_status(status, sizes ? sizes : ERROR(MIXPREC_OK), "workspace");
    empty = d.m == 0 || d.n == 0;
    must = sizes | (empty ? 0 : data_errors);
    if (status == MIXPREC_OK && fuzz_one_in(2)) {
        asked = fuzz_one_in(3) ? best : fuzz_one_in(2) ? least : least + fuzz_below(best - least + 1);
        if (fuzz_one_in(20) && least) { /* which may do */
            asked = least - 1;
            wrong(&maybe, 1, MIXPREC_ERR_WORKSPACE);
        }
    }
    if (!must)
        must = ERROR(MIXPREC_OK);
    elements = must == ERROR(MIXPREC_OK) && !empty ? batch * d.m * d.n : 0;
    for (i = 0; i < 2; i++)
        codes[i] = (uint64_t *)malloc((elements + 1) * sizeof **codes);
    for (l = 0; l < batch && elements && !native; l++)
        for (i = 0; i < d.m; i++)
            for (j = 0; j < d.n; j++, e++)
                if (selected(i, j)) {
                    codes[0][e] = result(l, i, j, 1);
                    codes[1][e] = fuses() == 2 ? result(l, i, j, 0) : 0;
                }
    blocks = fuzz_block_count;
    keep(blocks);
    if (asked) {
        d.workspace = fuzz_memory(asked, 0xFF);
        d.workspace_size = asked;
    }
    status = mixprec_gemm_ex(&d);
    check_status(status, must, "gemm_ex");
    if (status == MIXPREC_OK && elements)
        check_results(codes, blocks, native);
    for (i = 0; i < blocks; i++) {
        FUZZ_CHECK(!memcmp(kept[i], fuzz_blocks[i], fuzz_sizes[i]), "status %d, and bytes changed that must not",
                   (int)status);
        free(kept[i]);
    }
    free(codes[0]);
    free(codes[1]);
    fuzz_free(0);
    return 0;
}
