/* Conversions, statistics and quantisation with arguments of any kind, against mixprec_encode and mixprec_decode
   element by element. What must be refused is, with a status that fits, and then nothing is written. How to run it: see
   fuzz.h. */
#include "fuzz.h"

enum { MOST = 700 };

static const mixprec_isa isas[] = {MIXPREC_ISA_AUTO, MIXPREC_ISA_C, MIXPREC_ISA_AVX2, MIXPREC_ISA_AVX512,
                                   MIXPREC_ISA_NEON};

/* The errors that a call may be refused with, a bit for each; none: it must succeed. */
typedef uint64_t errors;
#define ERROR(status) ((errors)1 << (status))

static void check_status(mixprec_status status, errors wrong, const char *what) {
    FUZZ_CHECK((unsigned)status < MIXPREC_STATUS_COUNT && (wrong ? wrong >> status & 1 : status == MIXPREC_OK),
               "%s: status %d, expected one of %llx", what, (int)status, (unsigned long long)wrong);
}

static int is_dtype(mixprec_dtype dtype) {
    return (int)dtype > 0 && (int)dtype < MIXPREC_DTYPE_COUNT;
}
static int is_tensor_dtype(mixprec_dtype dtype) {
    return is_dtype(dtype) && dtype <= MIXPREC_E5M2 && dtype != MIXPREC_F64;
}
static int is_quant_dtype(mixprec_dtype dtype) {
    return is_dtype(dtype) && dtype != MIXPREC_F32 && dtype != MIXPREC_F64 && dtype != MIXPREC_E8M0;
}
static int is_isa(mixprec_isa isa) {
    return isa == MIXPREC_ISA_AUTO || ((int)isa > 0 && (int)isa <= MIXPREC_ISA_NEON && mixprec_isa_available(isa));
}

static float draw_scale(void) {
    static const float some[] = {0, 1, 2, 1024, 0.3f, 1e-6f, 1e-38f, 1e-44f, 3e38f};
    union {
        uint32_t bits;
        float value;
    } any;
    if (!fuzz_one_in(8))
        return FUZZ_PICK(some);
    any.bits = (uint32_t)fuzz_bits(4);
    return any.value;
}
static int is_scale(float scale) { /* finite and not negative: told from the value, since nothing here is -ffast-math */
    return scale >= 0 && scale <= 3.4028234663852886e38f;
}

static mixprec_convert_options draw_options(void) {
    mixprec_convert_options o;
    memset(&o, 0, sizeof o);
    o.round = (mixprec_round)fuzz_enum(0, MIXPREC_ROUND_STOCHASTIC);
    o.overflow = (mixprec_overflow)fuzz_enum(0, MIXPREC_OVERFLOW_SATURATE_KEEP_INF);
    o.scale = fuzz_one_in(2) ? draw_scale() : 0;
    o.isa = (mixprec_isa)fuzz_enum(0, MIXPREC_ISA_NEON);
    o.seed = fuzz_bits(1);
    o.offset = fuzz_one_in(3) ? (uint64_t)0 - fuzz_below(700) : fuzz_bits(1);
    return o;
}
static errors errors_of_options(const mixprec_convert_options *o) {
    return ((unsigned)o->round > MIXPREC_ROUND_STOCHASTIC ? ERROR(MIXPREC_ERR_ROUND) : 0) |
           ((unsigned)o->overflow > MIXPREC_OVERFLOW_SATURATE_KEEP_INF ? ERROR(MIXPREC_ERR_OVERFLOW) : 0) |
           (!is_scale(o->scale) ? ERROR(MIXPREC_ERR_SCALE) : 0) | (!is_isa(o->isa) ? ERROR(MIXPREC_ERR_ISA) : 0);
}

/* Numbers for an array, half of them moderate. */
static void fill(void *array, mixprec_dtype type, size_t n) {
    uint64_t seed = fuzz_bits(2);
    size_t i, plain = fuzz_below(4);
    for (i = 0; i < n; i++)
        fuzz_store(array, type, i, fuzz_any_code(type, fuzz_mix(seed ^ (uint64_t)i << 16), i / 64 % 4 < plain));
}

/* What an element is worth after .scale. */
static double scaled(const void *src, mixprec_dtype type, size_t i, const mixprec_convert_options *o) {
    volatile double x = fuzz_value(src, type, i);
    volatile float narrow;
    if (!(o->scale > 0) || o->scale == 1)
        return x;
    x = x * (double)o->scale;
    if (type == MIXPREC_F64)
        return x;
    narrow = (float)x; /* products of floats are exact in f64 */
    return (double)narrow;
}
static uint64_t quiet(uint64_t bits) {
    return bits << 1 > (uint64_t)0x7FF << 53 ? bits | (uint64_t)1 << 51 : bits;
}
static uint64_t converted(const void *src, mixprec_dtype from, mixprec_dtype to, size_t i,
                          const mixprec_convert_options *o) {
    uint64_t code = fuzz_load(src, from, i), bits;
    if (from == to && (!(o->scale > 0) || o->scale == 1))
        return code;
    bits = oracle_bits(scaled(src, from, i, o));
    if (to == MIXPREC_F64) {
        bits = quiet(bits);
        return bits << 1 == (uint64_t)0x7FF << 53 && o->overflow == MIXPREC_OVERFLOW_SATURATE ? bits - 1 : bits;
    }
    return fuzz_code(oracle_double(bits), to, o->round, o->overflow, mixprec_random_bits(o->seed, o->offset + i));
}

/* A NaN that was multiplied may come out with another payload; bits above those of fp6 are 0. */
static int same_code(uint64_t got, uint64_t want, mixprec_dtype type, int multiplied) {
    if (type == MIXPREC_I8 || type == MIXPREC_E8M0)
        want &= 0xFF;
    return multiplied ? fuzz_same(got, want, type) : got == want;
}

static void fuzz_conversion(void) {
    mixprec_dtype to = (mixprec_dtype)fuzz_enum(1, MIXPREC_DTYPE_COUNT - 1);
    mixprec_dtype from = (mixprec_dtype)fuzz_enum(1, MIXPREC_DTYPE_COUNT - 1);
    mixprec_convert_options o = draw_options();
    size_t n = fuzz_below(fuzz_one_in(2) ? MOST : 9), asked = fuzz_one_in(60) ? SIZE_MAX / (1 + fuzz_below(7)) : n, i;
    size_t dst_bytes = mixprec_dtype_bytes(to, n), src_bytes = mixprec_dtype_bytes(from, n), both, shift = 0;
    unsigned char *src, *dst, *before, *memory = NULL, *memory_before = NULL;
    errors wrong = errors_of_options(&o);
    mixprec_status status;
    if (!is_dtype(to) || !is_dtype(from))
        wrong |= ERROR(MIXPREC_ERR_DTYPE);
    both = dst_bytes + src_bytes;
    if (fuzz_one_in(2) && both) { /* in one block: at the same place, or one after the other, or across each other */
        size_t size = is_dtype(to) ? mixprec_dtype_size(to) : 1, other = is_dtype(from) ? mixprec_dtype_size(from) : 1;
        size = size > other ? size : other;
        shift = fuzz_one_in(2) ? fuzz_below(both / size + 1) * size : 0;
        memory = fuzz_memory(both + shift + 16, 0x5A);
        src = memory;
        dst = memory + shift;
        if (fuzz_one_in(2)) {
            dst = memory;
            src = memory + shift;
        }
    } else {
        dst = fuzz_memory(dst_bytes, 0x5A);
        src = fuzz_memory(src_bytes, 0);
    }
    if (is_dtype(from))
        fill(src, from, n);
    before = fuzz_memory(src_bytes, 0);
    memcpy(before, src, src_bytes);
    if (memory) {
        memory_before = fuzz_memory(both + shift + 16, 0);
        memcpy(memory_before, memory, both + shift + 16);
    }
    if (asked > SIZE_MAX / 8)
        wrong |= ERROR(MIXPREC_ERR_SIZE);
    else if (dst != src && fuzz_overlap(dst, dst_bytes, src, src_bytes))
        wrong |= ERROR(MIXPREC_ERR_OVERLAP);
    if (asked && fuzz_one_in(60)) {
        wrong |= ERROR(MIXPREC_ERR_NULL);
        status = fuzz_one_in(2) ? mixprec_convert_ex(NULL, to, src, from, asked, &o)
                                : mixprec_convert_ex(dst, to, NULL, from, asked, &o);
    } else
        status = mixprec_convert_ex(dst, to, src, from, asked, &o);
    check_status(status, wrong, "convert");
    if (status != MIXPREC_OK) {
        FUZZ_CHECK(!memory || !memcmp(memory, memory_before, both + shift + 16), "written to although refused");
        for (i = 0; i < dst_bytes && !memory; i++)
            FUZZ_CHECK(dst[i] == 0x5A, "written to although refused");
        return;
    }
    for (i = 0; i < n; i++) {
        uint64_t got = fuzz_load(dst, to, i), want = converted(before, from, to, i, &o);
        FUZZ_CHECK(same_code(got, want, to, o.scale > 0 && o.scale != 1),
                   "%s to %s, element %zu of %zu, %llx: got %llx, want %llx (round %d, overflow %d, scale %a, %s)",
                   mixprec_dtype_name(from), mixprec_dtype_name(to), i, n,
                   (unsigned long long)fuzz_load(before, from, i), (unsigned long long)got, (unsigned long long)want,
                   (int)o.round, (int)o.overflow, (double)o.scale, mixprec_isa_name(o.isa));
    }
    for (i = 0; memory && i < both + shift + 16; i++)
        FUZZ_CHECK((size_t)(memory + i - dst) < dst_bytes || memory[i] == memory_before[i], "written beyond dst");
    if (!memory)
        FUZZ_CHECK(!memcmp(src, before, src_bytes), "src changed");
}

/* ---- statistics ---- */

static void fuzz_statistics(void) {
    mixprec_dtype to = (mixprec_dtype)fuzz_enum(1, MIXPREC_DTYPE_COUNT - 1);
    mixprec_dtype from = (mixprec_dtype)fuzz_enum(1, MIXPREC_DTYPE_COUNT - 1);
    mixprec_convert_options o = draw_options();
    size_t n = fuzz_below(MOST), i, p;
    const double infinity = oracle_double((uint64_t)0x7FF << 52);
    unsigned char *src = fuzz_memory(mixprec_dtype_bytes(from, n), 0);
    errors wrong = errors_of_options(&o);
    mixprec_statistics got, want;
    mixprec_status status;
    if (!is_dtype(to) || !is_dtype(from) || to == MIXPREC_F64)
        wrong |= ERROR(MIXPREC_ERR_DTYPE);
    memset(&want, 0, sizeof want);
    if (!wrong) {
        mixprec_format_info info;
        fill(src, from, n);
        mixprec_format(to, &info);
        want.count = n;
        for (i = 0; i < n; i++) {
            double x = scaled(src, from, i, &o), size = x <= 0 ? 0 - x : x, q;
            uint64_t exponent = oracle_bits(size) >> 52;
            want.nan += x != x;
            want.inf += size == infinity;
            want.exponents[!(size < infinity) ? 255 : exponent <= 896 ? 0 : exponent >= 1150 ? 254 : exponent - 896]++;
            if (!(size < infinity))
                continue;
            q = mixprec_decode((uint32_t)fuzz_code(x, to, o.round, MIXPREC_OVERFLOW_SATURATE,
                                                   mixprec_random_bits(o.seed, o.offset + i)),
                               to);
            q = q < 0 ? -q : q;
            want.zero += size == 0;
            want.overflow += size > info.max + (to == MIXPREC_I8 && x < 0);
            want.underflow += size != 0 && q == 0;
            want.subnormal += q != 0 && q < info.min_normal && to != MIXPREC_I8 && to != MIXPREC_E8M0;
            want.amax = size > want.amax ? size : want.amax;
            if (size != 0 && (want.min_nonzero == 0 || size < want.min_nonzero))
                want.min_nonzero = size;
        }
    }
    for (p = 0; p < sizeof isas / sizeof *isas; p++) { /* the path asked for, then the others: the same sums */
        if (p) {
            o.isa = isas[p - 1];
            if (wrong || !is_isa(o.isa))
                continue;
        }
        memset(&got, 0x5A, sizeof got);
        status = mixprec_stats(&got, src, from, n, to, &o);
        check_status(status, wrong, "stats");
        if (status != MIXPREC_OK) {
            FUZZ_CHECK(got.count == 0x5A5A5A5A5A5A5A5A && got.exponents[255] == got.count, "written although refused");
            break;
        }
        if (p == 0) {
            want.signal = got.signal;
            want.noise = got.noise;
        }
#define SAME(field)                                                                                                    \
    FUZZ_CHECK(!memcmp(&got.field, &want.field, sizeof got.field),                                                     \
               "%s to %s, %zu elements, round %d, scale %a, %s: " #field " is %.17g, want %.17g",                      \
               mixprec_dtype_name(from), mixprec_dtype_name(to), n, (int)o.round, (double)o.scale,                     \
               mixprec_isa_name(o.isa), (double)got.field, (double)want.field)
        SAME(count), SAME(nan), SAME(inf), SAME(zero), SAME(overflow), SAME(underflow), SAME(subnormal);
        SAME(amax), SAME(min_nonzero), SAME(signal), SAME(noise);
        for (i = 0; i < 256; i++)
            SAME(exponents[i]);
#undef SAME
    }
}

/* ---- quantisation ---- */

/* For a size that a matrix can have, or none. */
static size_t draw_ld(size_t columns) {
    return fuzz_one_in(2) ? 0 : fuzz_one_in(40) ? (columns ? columns - 1 : SIZE_MAX) : columns + fuzz_below(5);
}
static size_t span(size_t rows, size_t columns, size_t ld) {
    return rows && columns ? (rows - 1) * (ld ? ld : columns) + columns : 0;
}

static void fuzz_quantisation(void) {
    mixprec_quantize_desc d;
    mixprec_scales view;
    size_t br, bc, block_rows, block_columns, src_count, dst_count, scale_count, i, j;
    size_t src_ld, dst_ld, scales_ld, dst_bytes;
    unsigned char *src, *dst;
    int fp4;
    float *scales, *back, given = draw_scale(), amax = -1, largest = 0;
    errors wrong = 0;
    mixprec_status status;
    memset(&d, 0, sizeof d);
    d.rows = fuzz_below(10);
    d.columns = fuzz_below(fuzz_one_in(2) ? 300 : 20);
    d.src_type = (mixprec_dtype)fuzz_enum(1, MIXPREC_E5M2);
    d.dst_type = (mixprec_dtype)fuzz_enum(1, MIXPREC_DTYPE_COUNT - 1);
    d.src_ld = draw_ld(d.columns);
    d.dst_ld = draw_ld(d.columns);
    d.block_rows = fuzz_below(4);
    d.block_columns = fuzz_one_in(2) ? fuzz_below(140) : 0;
    if (fuzz_one_in(40))
        d.block_columns = SIZE_MAX;
    br = d.block_rows && d.block_rows < d.rows ? d.block_rows : d.rows ? d.rows : 1;
    bc = d.block_columns && d.block_columns < d.columns ? d.block_columns : d.columns ? d.columns : 1;
    block_rows = (d.rows + br - 1) / br;
    block_columns = (d.columns + bc - 1) / bc;
    d.scales_ld = draw_ld(block_columns);
    d.scale = fuzz_one_in(5) ? &given : NULL;
    d.power_of_two = (int)fuzz_below(2);
    d.amax = fuzz_one_in(2) ? &amax : NULL;
    d.round = (mixprec_round)fuzz_enum(0, MIXPREC_ROUND_STOCHASTIC);
    d.seed = fuzz_bits(1);
    d.offset = fuzz_bits(1);
    d.isa = (mixprec_isa)fuzz_enum(0, MIXPREC_ISA_NEON);
    src_ld = d.src_ld ? d.src_ld : d.columns;
    fp4 = d.dst_type == MIXPREC_E2M1;
    dst_ld = d.dst_ld ? d.dst_ld : d.columns + (fp4 ? d.columns % 2 : 0);
    scales_ld = d.scales_ld ? d.scales_ld : block_columns;
    if (src_ld < d.columns || dst_ld < d.columns || (fp4 && dst_ld % 2) || scales_ld < block_columns)
        wrong |= ERROR(MIXPREC_ERR_LEADING_DIMENSION);
    if (!is_tensor_dtype(d.src_type) || !is_quant_dtype(d.dst_type))
        wrong |= ERROR(MIXPREC_ERR_DTYPE);
    if ((unsigned)d.round > MIXPREC_ROUND_STOCHASTIC)
        wrong |= ERROR(MIXPREC_ERR_ROUND);
    if (!is_isa(d.isa))
        wrong |= ERROR(MIXPREC_ERR_ISA);
    if (d.scale && (block_rows > 1 || block_columns > 1))
        wrong |= ERROR(MIXPREC_ERR_RANGE);
    if (d.scale && !(is_scale(given) && given >= 1.1754943508222875e-38f))
        wrong |= ERROR(MIXPREC_ERR_SCALE);
    src_count = wrong & ERROR(MIXPREC_ERR_LEADING_DIMENSION) ? 1 : span(d.rows, d.columns, src_ld);
    dst_count = wrong & ERROR(MIXPREC_ERR_LEADING_DIMENSION) ? 1 : span(d.rows, d.columns, dst_ld);
    scale_count = wrong & ERROR(MIXPREC_ERR_LEADING_DIMENSION) ? 1 : span(block_rows, block_columns, scales_ld);
    src = fuzz_memory(src_count * mixprec_dtype_size(d.src_type), 0);
    dst_bytes = fp4 ? (dst_count + 1) / 2 : dst_count * mixprec_dtype_size(d.dst_type);
    dst = fuzz_memory(dst_bytes, 0x5A);
    scales = (float *)(void *)fuzz_memory(scale_count * sizeof *scales, 0x5A);
    if (!(wrong & ERROR(MIXPREC_ERR_DTYPE)))
        fill(src, d.src_type, src_count);
    d.src = src;
    d.dst = dst;
    d.scales = scales;
    if (d.rows && d.columns && fuzz_one_in(60)) {
        wrong |= ERROR(MIXPREC_ERR_NULL);
        switch (fuzz_below(3)) {
        case 0: d.src = NULL; break;
        case 1: d.dst = NULL; break;
        default: d.scales = NULL; break;
        }
    } else if (d.rows && d.columns && fuzz_one_in(60)) {
        wrong |= ERROR(MIXPREC_ERR_OVERLAP);
        d.dst = src;
    }
    status = mixprec_quantize(&d);
    check_status(status, wrong, "quantize");
    if (status != MIXPREC_OK) {
        for (i = 0; i < dst_bytes; i++)
            FUZZ_CHECK(dst[i] == 0x5A, "quantize: written to although refused");
        FUZZ_CHECK(amax == -1 && (!scale_count || ((unsigned char *)scales)[0] == 0x5A), "quantize: written to");
        return;
    }
    for (i = 0; i < d.rows; i += br)
        for (j = 0; j < d.columns; j += bc) {
            float most = 0, scale;
            size_t x, y;
            volatile float product;
            for (y = i; y < d.rows && y < i + br; y++)
                for (x = j; x < d.columns && x < j + bc; x++) {
                    float value = (float)fuzz_value(src, d.src_type, y * src_ld + x);
                    value = value < 0 ? -value : value;
                    most = most != most || value <= most ? most : value; /* NaN stays */
                }
            largest = largest != largest || most <= largest ? largest : most;
            scale = d.scale ? given : mixprec_scale_of_amax(most, d.dst_type, d.power_of_two);
            FUZZ_CHECK(scales[i / br * scales_ld + j / bc] == 1 / scale, "quantize: a scale");
            for (y = i; y < d.rows && y < i + br; y++)
                for (x = j; x < d.columns && x < j + bc; x++) {
                    uint64_t want, got = fuzz_load(dst, d.dst_type, y * dst_ld + x);
                    product = (float)(fuzz_value(src, d.src_type, y * src_ld + x) * (double)scale);
                    want = fuzz_code((double)product, d.dst_type, d.round, MIXPREC_OVERFLOW_SATURATE,
                                     mixprec_random_bits(d.seed, d.offset + y * d.columns + x));
                    FUZZ_CHECK(same_code(got, want, d.dst_type, 1),
                               "quantize: %s to %s, %zu x %zu, (%zu, %zu): got %llx, want %llx",
                               mixprec_dtype_name(d.src_type), mixprec_dtype_name(d.dst_type), d.rows, d.columns, y, x,
                               (unsigned long long)got, (unsigned long long)want);
                }
        }
    if (d.amax && d.rows && d.columns)
        FUZZ_CHECK(amax == largest || (amax != amax && largest != largest), "quantize: amax %a, want %a", (double)amax,
                   (double)largest);
    /* And back. */
    memset(&view, 0, sizeof view);
    view.values = scales;
    view.block_rows = d.block_rows;
    view.block_columns = d.block_columns;
    view.ld = d.scales_ld;
    back = (float *)(void *)fuzz_memory(d.rows * d.columns * sizeof *back, 0x5A);
    status = mixprec_dequantize(back, MIXPREC_F32, 0, dst, d.dst_type, d.dst_ld, d.rows, d.columns, &view);
    FUZZ_CHECK(status == MIXPREC_OK, "dequantize: status %d", (int)status);
    for (i = 0; i < d.rows; i++)
        for (j = 0; j < d.columns; j++) {
            volatile float want =
                (float)(fuzz_value(dst, d.dst_type, i * dst_ld + j) * (double)scales[i / br * scales_ld + j / bc]);
            float got = back[i * d.columns + j];
            FUZZ_CHECK(got == want || (got != got && want != want), "dequantize: got %a, want %a", (double)got,
                       (double)want);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_begin(data, size);
    switch (fuzz_below(4)) {
    case 0: fuzz_statistics(); break;
    case 1: fuzz_quantisation(); break;
    default: fuzz_conversion(); break;
    }
    fuzz_free(0);
    return 0;
}
