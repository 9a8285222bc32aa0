/* The SCALAR room: every float to the formats that GEMM takes, a sample of them to the others; doubles beside every
   value and every middle, all decodes, every rounding mode and overflow policy, classification, comparison, neighbours,
   the random bits; and the small functions that describe formats and instruction sets. The answers come from oracle.h.
   --quick takes a smaller sample of the floats, everything else stays whole. */
#define MIXPREC_IMPLEMENTATION
#include "../mixprec.h"

#include "oracle.h"
#include "test.h"

#include <float.h>

static uint32_t float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}

static const mixprec_overflow policies[] = {MIXPREC_OVERFLOW_IEEE, MIXPREC_OVERFLOW_SATURATE,
                                            MIXPREC_OVERFLOW_SATURATE_KEEP_INF};
static const mixprec_round modes[] = {MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_ROUND_TOWARD_ZERO,  MIXPREC_ROUND_UP,
                                      MIXPREC_ROUND_DOWN,         MIXPREC_ROUND_NEAREST_AWAY, MIXPREC_ROUND_STOCHASTIC};

/* The functions of one format, all on bit patterns. block_differs compares the 2^16 floats whose upper half is `block`
   with what is expected. */
typedef struct scalar_functions {
    mixprec_dtype dtype;
    uint32_t (*from_f32)(uint32_t), (*from_f32_sat)(uint32_t), (*from_f64)(uint64_t), (*from_f64_sat)(uint64_t);
    uint32_t (*to_f32)(uint32_t);
    uint64_t (*to_f64)(uint32_t);
    uint32_t (*block_differs)(uint32_t block, const uint16_t *ieee, const uint16_t *saturated);
} scalar_functions;

#define SCALAR_FUNCTIONS(name, storage, code_type)                                                                     \
    static uint32_t name##_from_f32(uint32_t x) {                                                                      \
        return (code_type)mixprec_f32_to_##name(oracle_float(x)).bits;                                                 \
    }                                                                                                                  \
    static uint32_t name##_from_f32_sat(uint32_t x) {                                                                  \
        return (code_type)mixprec_f32_to_##name##_sat(oracle_float(x)).bits;                                           \
    }                                                                                                                  \
    static uint32_t name##_from_f64(uint64_t x) {                                                                      \
        return (code_type)mixprec_f64_to_##name(oracle_double(x)).bits;                                                \
    }                                                                                                                  \
    static uint32_t name##_from_f64_sat(uint64_t x) {                                                                  \
        return (code_type)mixprec_f64_to_##name##_sat(oracle_double(x)).bits;                                          \
    }                                                                                                                  \
    static uint32_t name##_to_f32(uint32_t code) {                                                                     \
        mixprec_##name x;                                                                                              \
        x.bits = (storage)code;                                                                                        \
        return float_bits(mixprec_##name##_to_f32(x));                                                                 \
    }                                                                                                                  \
    static uint64_t name##_to_f64(uint32_t code) {                                                                     \
        mixprec_##name x;                                                                                              \
        x.bits = (storage)code;                                                                                        \
        return oracle_bits(mixprec_##name##_to_f64(x));                                                                \
    }                                                                                                                  \
    static uint32_t name##_block_differs(uint32_t block, const uint16_t *ieee, const uint16_t *saturated) {            \
        uint32_t i, different = 0;                                                                                     \
        for (i = 0; i < 65536; i++) {                                                                                  \
            different |= name##_from_f32(block * 65536 + i) ^ ieee[i];                                                 \
            different |= name##_from_f32_sat(block * 65536 + i) ^ saturated[i];                                        \
        }                                                                                                              \
        return different;                                                                                              \
    }
SCALAR_FUNCTIONS(f16, uint16_t, uint16_t)
SCALAR_FUNCTIONS(bf16, uint16_t, uint16_t)
SCALAR_FUNCTIONS(e4m3, uint8_t, uint8_t)
SCALAR_FUNCTIONS(e5m2, uint8_t, uint8_t)
SCALAR_FUNCTIONS(e4m3fnuz, uint8_t, uint8_t)
SCALAR_FUNCTIONS(e5m2fnuz, uint8_t, uint8_t)
SCALAR_FUNCTIONS(e4m3ieee, uint8_t, uint8_t)
SCALAR_FUNCTIONS(e3m4, uint8_t, uint8_t)
SCALAR_FUNCTIONS(e2m3, uint8_t, uint8_t)
SCALAR_FUNCTIONS(e3m2, uint8_t, uint8_t)
SCALAR_FUNCTIONS(e2m1, uint8_t, uint8_t)
SCALAR_FUNCTIONS(e8m0, uint8_t, uint8_t)
SCALAR_FUNCTIONS(i8, int8_t, uint8_t)

#define SCALAR_ROW(name, dtype)                                                                                        \
    {                                                                                                                  \
        dtype, name##_from_f32, name##_from_f32_sat, name##_from_f64, name##_from_f64_sat, name##_to_f32,              \
            name##_to_f64, name##_block_differs                                                                        \
    }
static const scalar_functions functions[ORACLE_SMALL_FORMATS] = {SCALAR_ROW(f16, MIXPREC_F16),
                                                                 SCALAR_ROW(bf16, MIXPREC_BF16),
                                                                 SCALAR_ROW(e4m3, MIXPREC_E4M3),
                                                                 SCALAR_ROW(e5m2, MIXPREC_E5M2),
                                                                 SCALAR_ROW(e4m3fnuz, MIXPREC_E4M3FNUZ),
                                                                 SCALAR_ROW(e5m2fnuz, MIXPREC_E5M2FNUZ),
                                                                 SCALAR_ROW(e4m3ieee, MIXPREC_E4M3IEEE),
                                                                 SCALAR_ROW(e3m4, MIXPREC_E3M4),
                                                                 SCALAR_ROW(e2m3, MIXPREC_E2M3),
                                                                 SCALAR_ROW(e3m2, MIXPREC_E3M2),
                                                                 SCALAR_ROW(e2m1, MIXPREC_E2M1),
                                                                 SCALAR_ROW(e8m0, MIXPREC_E8M0),
                                                                 SCALAR_ROW(i8, MIXPREC_I8)};

static const char *name_of(const char *prefix, const oracle_format *format) {
    static char name[80];
    snprintf(name, sizeof name, "scalar: %s %s", prefix, format->name);
    return name;
}

static uint32_t encode(uint64_t x, mixprec_dtype dtype, mixprec_round round, mixprec_overflow overflow,
                       uint32_t random) {
    return mixprec_encode(oracle_double(x), dtype, round, overflow, random);
}

/* What mixprec_encode makes of a code: it extends the sign of an integer. */
static uint32_t as_encoded(const oracle_format *format, uint32_t code) {
    return format->family == ORACLE_INTEGERS && code > 127 ? code + 0xFFFFFF00u : code;
}

/* ---- narrowing to nearest even ---- */

static void test_every_float(const scalar_functions *f, const oracle_format *format) {
    static uint16_t ieee[65536], saturated[65536];
    int whole = format - oracle_formats < ORACLE_GEMM_FORMATS; /* test_convert.c has all floats to the others */
    /* 93: every exponent, and in fp8 ties of both kinds. */
    uint32_t block, i, step = test_quick ? (whole ? 93 : 601) : (whole ? 1 : 31), differs;
    for (block = 0; block < 65536; block += step) {
        oracle_block(format, MIXPREC_OVERFLOW_IEEE, block, ieee);
        oracle_block(format, MIXPREC_OVERFLOW_SATURATE, block, saturated);
        differs = f->block_differs(block, ieee, saturated);
        CHECK(!differs, "floats from %04x0000 on differ", block);
        for (i = 0; differs && i < 65536; i++) {
            uint32_t x = block * 65536 + i, got = f->from_f32(x), got_saturated = f->from_f32_sat(x);
            CHECK(got == ieee[i], "float %08x: got %04x, want %04x", x, got, ieee[i]);
            CHECK(got_saturated == saturated[i], "float %08x, saturated: got %04x, want %04x", x, got_saturated,
                  saturated[i]);
        }
    }
}

static void check_nearest(const scalar_functions *f, const oracle_format *format, uint64_t x) {
    const oracle_format *f32 = oracle_format_of(MIXPREC_F32);
    oracle_place place = oracle_locate(format, x), single = oracle_locate(f32, x);
    uint32_t want = oracle_round(&place, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0), got = f->from_f64(x);
    uint32_t want_saturated = oracle_round(&place, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_SATURATE, 0);
    uint32_t got_saturated = f->from_f64_sat(x);
    CHECK(got == want, "double %016llx: got %04x, want %04x", (unsigned long long)x, got, want);
    CHECK(got_saturated == want_saturated, "double %016llx, saturated: got %04x, want %04x", (unsigned long long)x,
          got_saturated, want_saturated);
    if (single.exact) { /* a float too */
        uint32_t bits = oracle_round(&single, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0);
        got = f->from_f32(bits);
        got_saturated = f->from_f32_sat(bits);
        CHECK(got == want, "float %08x: got %04x, want %04x", bits, got, want);
        CHECK(got_saturated == want_saturated, "float %08x, saturated: got %04x, want %04x", bits, got_saturated,
              want_saturated);
    }
}

/* Doubles (and floats) at, and one and two units of either type from, each point where rounding turns. */
static void test_beside_points(const scalar_functions *f, const oracle_format *format) {
    uint32_t point;
    for (point = 0; point < oracle_point_count(format); point++) {
        uint64_t x = oracle_bits(oracle_point(format, point)), unit = (uint64_t)1 << 29; /* a float's last place */
        int steps;
        for (steps = -2; steps <= 2; steps++) {
            uint64_t sign = 0;
            do {
                check_nearest(f, format, (x + (uint64_t)steps) ^ sign);
                check_nearest(f, format, (x + (uint64_t)steps * unit) ^ sign);
                sign ^= ORACLE_SIGN;
            } while (sign);
        }
    }
}

static void test_other_doubles(const scalar_functions *f, const oracle_format *format) {
    long i, count = test_quick ? 100000 : 2000000;
    for (i = 0; i < count; i++) {
        uint64_t x = oracle_random(), sign_and_mantissa = x & (ORACLE_SIGN | (2 * ORACLE_QUIET - 1));
        check_nearest(f, format, x);
        check_nearest(f, format, sign_and_mantissa);                                 /* subnormal */
        check_nearest(f, format, sign_and_mantissa | ORACLE_INF);                    /* NaN */
        check_nearest(f, format, sign_and_mantissa | (873 + (x >> 52) % 300) << 52); /* 2^-150 .. 2^149 */
    }
    for (i = 0; i < 52; i++) { /* a payload of one bit: quiet or not */
        check_nearest(f, format, ORACLE_INF | (uint64_t)1 << i);
        check_nearest(f, format, ORACLE_INF | (uint64_t)1 << i | ORACLE_SIGN);
    }
    check_nearest(f, format, ORACLE_INF);
    check_nearest(f, format, ORACLE_INF | ORACLE_SIGN);
    check_nearest(f, format, ORACLE_INF - 1); /* DBL_MAX */
    check_nearest(f, format, (ORACLE_INF - 1) | ORACLE_SIGN);
    check_nearest(f, format, 0);
    check_nearest(f, format, ORACLE_SIGN);
}

/* ---- widening ---- */

static void test_every_code(const scalar_functions *f, const oracle_format *format) {
    uint32_t code;
    for (code = 0; code < 2 * oracle_sign_code(format); code++) {
        uint64_t want = oracle_decode(format, code), got = f->to_f64(code);
        oracle_place single = oracle_locate(oracle_format_of(MIXPREC_F32), want);
        uint32_t want_single = oracle_round(&single, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0);
        uint32_t got_single = f->to_f32(code);
        uint64_t decoded = oracle_bits(mixprec_decode(code, format->dtype));
        uint32_t garbage = 0xABCDEF55u & ~(2 * oracle_sign_code(format) - 1); /* above the code */
        uint64_t with_garbage = oracle_bits(mixprec_decode(code | garbage, format->dtype));
        CHECK(single.exact || single.is_inf || single.is_nan, "code %04x is not a float", code);
        CHECK(got == want, "code %04x to double: got %016llx, want %016llx", code, (unsigned long long)got,
              (unsigned long long)want);
        CHECK(got_single == want_single, "code %04x to float: got %08x, want %08x", code, got_single, want_single);
        CHECK(decoded == want && with_garbage == want, "mixprec_decode(%04x): got %016llx and %016llx, want %016llx",
              code, (unsigned long long)decoded, (unsigned long long)with_garbage, (unsigned long long)want);
        if (format->dtype == MIXPREC_E4M3 && code % 128 == 127)
            CHECK(got_single == (0x7FF00000u | (code / 128) << 31), "E4M3's NaN %02x: got %08x", code, got_single);
    }
}

static void test_decode_f32(void) {
    const oracle_format *f32 = oracle_format_of(MIXPREC_F32);
    uint32_t i, count = test_quick ? 1u << 16 : 1u << 22;
    for (i = 0; i < count; i++) {
        uint32_t bits = i % 4 ? (uint32_t)oracle_random() : (i << 23) | (uint32_t)oracle_random() >> (i / 4 % 23 + 9);
        uint64_t want = oracle_decode(f32, bits), got = oracle_bits(mixprec_decode(bits, MIXPREC_F32));
        CHECK(got == want, "mixprec_decode(%08x, F32): got %016llx, want %016llx", bits, (unsigned long long)got,
              (unsigned long long)want);
    }
}

/* ---- every mode, every policy ---- */

static void check_encode(const oracle_format *format, uint64_t x) {
    oracle_place place = oracle_locate(format, x);
    /* Random numbers on both sides of the stochastic decision, and any. */
    uint32_t randoms[4];
    size_t mode, policy, draw;
    randoms[0] = (uint32_t)oracle_random();
    randoms[1] = 0xFFFFFFFFu - place.fraction; /* the largest that does not carry */
    randoms[2] = 0u - place.fraction;          /* the smallest that does, unless the fraction is zero */
    randoms[3] = 0xFFFFFFFFu;
    for (mode = 0; mode < 6; mode++)
        for (policy = 0; policy < 3; policy++)
            for (draw = 0; draw < (modes[mode] == MIXPREC_ROUND_STOCHASTIC ? 4u : 1u); draw++) {
                uint32_t want = as_encoded(format, oracle_round(&place, modes[mode], policies[policy], randoms[draw]));
                uint32_t got = encode(x, format->dtype, modes[mode], policies[policy], randoms[draw]);
                CHECK(got == want, "double %016llx, mode %u, policy %u, random %08x: got %08x, want %08x",
                      (unsigned long long)x, (unsigned)mode, (unsigned)policy, randoms[draw], got, want);
            }
}

static void test_encode(const oracle_format *format) {
    uint32_t i, points = oracle_point_count(format), count = format->bits == 32 ? (test_quick ? 3000 : 200000) : points;
    uint32_t step = test_quick && format->bits == 16 ? 13 : 1;
    for (i = 0; i < count; i += step) {
        uint32_t point = format->bits == 32 ? (i < 64    ? i
                                               : i < 128 ? points - 1 - (i - 64)
                                                         : (uint32_t)oracle_random())
                                            : i;
        uint64_t x = oracle_bits(oracle_point(format, point % points));
        int steps;
        for (steps = -2; steps <= 2; steps++) {
            check_encode(format, x + (uint64_t)steps);
            check_encode(format, (x + (uint64_t)steps) ^ ORACLE_SIGN);
        }
    }
    for (i = 0; i < count / step; i++) {
        uint64_t x = oracle_random();
        uint32_t point = (uint32_t)(x >> 32) % (points - 1);
        check_encode(format, x);
        /* Between two points, with all the mantissa's bits at work: between 0 and the first are tiny doubles. */
        x = oracle_bits(oracle_point(format, point)) + (x & 0xFFFFFFFFFFu) * (1u << i % 8);
        check_encode(format, x);
        check_encode(format, x | ORACLE_SIGN);
    }
    check_encode(format, 0);
    check_encode(format, ORACLE_SIGN);
    check_encode(format, ORACLE_INF);
    check_encode(format, ORACLE_INF | ORACLE_SIGN);
    check_encode(format, ORACLE_INF - 1);
    check_encode(format, (ORACLE_INF - 1) | ORACLE_SIGN);
    check_encode(format, ORACLE_INF + 1);
    check_encode(format, ORACLE_INF | ORACLE_QUIET | ORACLE_SIGN | 0x123456789ABCDu);
}

/* The edges that the manual and OFP8 name, as plain numbers: they bind the oracle too. */
static void test_named_values(void) {
    static const struct {
        double x;
        mixprec_dtype dtype;
        mixprec_round round;
        mixprec_overflow overflow;
        uint32_t want;
    } cases[] = {
        {448, MIXPREC_E4M3, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0x7E},
        {464, MIXPREC_E4M3, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0x7E},
        {464.0000001, MIXPREC_E4M3, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0x7F},
        {464, MIXPREC_E4M3, MIXPREC_ROUND_NEAREST_AWAY, MIXPREC_OVERFLOW_IEEE, 0x7F},
        {1e9, MIXPREC_E4M3, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_SATURATE, 0x7E},
        {1e300, MIXPREC_E4M3, MIXPREC_ROUND_TOWARD_ZERO, MIXPREC_OVERFLOW_IEEE, 0x7E},
        {-449, MIXPREC_E4M3, MIXPREC_ROUND_DOWN, MIXPREC_OVERFLOW_IEEE, 0xFF},
        {-449, MIXPREC_E4M3, MIXPREC_ROUND_UP, MIXPREC_OVERFLOW_IEEE, 0xFE},
        {0.001953125, MIXPREC_E4M3, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0x01},
        {57344, MIXPREC_E5M2, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0x7B},
        {61439, MIXPREC_E5M2, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0x7B},
        {61440, MIXPREC_E5M2, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0x7C},
        {61440, MIXPREC_E5M2, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_SATURATE_KEEP_INF, 0x7B},
        {65519.99, MIXPREC_F16, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0x7BFF},
        {65520, MIXPREC_F16, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0x7C00},
        {1, MIXPREC_F16, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0x3C00},
        {-2, MIXPREC_BF16, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0xC000},
        {1e-300, MIXPREC_F16, MIXPREC_ROUND_UP, MIXPREC_OVERFLOW_IEEE, 0x0001},
        {-1e-300, MIXPREC_F16, MIXPREC_ROUND_UP, MIXPREC_OVERFLOW_IEEE, 0x8000},
        {1, MIXPREC_F32, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0x3F800000},
        {1e39, MIXPREC_F32, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_SATURATE, 0x7F7FFFFF},
        {248, MIXPREC_E4M3FNUZ, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0x80},
        {-247, MIXPREC_E4M3FNUZ, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0xFF},
        {1, MIXPREC_E4M3FNUZ, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0x40},
        {-0.0, MIXPREC_E4M3FNUZ, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0},
        {-1e-9, MIXPREC_E5M2FNUZ, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0},
        {-1e-9, MIXPREC_E5M2FNUZ, MIXPREC_ROUND_DOWN, MIXPREC_OVERFLOW_IEEE, 0x81},
        {1e9, MIXPREC_E5M2FNUZ, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_SATURATE, 0x7F},
        {247.9, MIXPREC_E4M3IEEE, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0x77},
        {248, MIXPREC_E4M3IEEE, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0x78},
        {15.75, MIXPREC_E3M4, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0x70},
        {-1, MIXPREC_E3M4, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0xB0},
        {-9, MIXPREC_E2M3, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0x3F},
        {1, MIXPREC_E3M2, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0x0C},
        {1e9, MIXPREC_E3M2, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0x1F},
        {2.5, MIXPREC_E2M1, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0x4},
        {-5, MIXPREC_E2M1, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0xE},
        {-5, MIXPREC_E2M1, MIXPREC_ROUND_NEAREST_AWAY, MIXPREC_OVERFLOW_IEEE, 0xF},
        {1, MIXPREC_E8M0, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 127},
        {1.5, MIXPREC_E8M0, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 128},
        {3, MIXPREC_E8M0, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 129},
        {3, MIXPREC_E8M0, MIXPREC_ROUND_DOWN, MIXPREC_OVERFLOW_IEEE, 128},
        {1e-300, MIXPREC_E8M0, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0},
        {0, MIXPREC_E8M0, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_SATURATE, 0xFF},
        {-2, MIXPREC_E8M0, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_SATURATE, 0xFF},
        {1e39, MIXPREC_E8M0, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0xFF},
        {1e39, MIXPREC_E8M0, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_SATURATE, 0xFE},
        {2.5, MIXPREC_I8, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 2},
        {-2.5, MIXPREC_I8, MIXPREC_ROUND_NEAREST_AWAY, MIXPREC_OVERFLOW_IEEE, 0xFFFFFFFDu},
        {-0.4, MIXPREC_I8, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0},
        {127.5, MIXPREC_I8, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 127},
        {-1e300, MIXPREC_I8, MIXPREC_ROUND_UP, MIXPREC_OVERFLOW_IEEE, 0xFFFFFF80u},
        {1, MIXPREC_F64, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0},
        {1, MIXPREC_NONE, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0},
        {1, (mixprec_dtype)77, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0},
    };
    static const struct {
        mixprec_dtype dtype;
        uint32_t want;
    } nans[] = {{MIXPREC_E4M3FNUZ, 0x80}, {MIXPREC_E5M2FNUZ, 0x80}, {MIXPREC_E4M3IEEE, 0xFC},
                {MIXPREC_E3M4, 0xF8},     {MIXPREC_E2M3, 0x1F},     {MIXPREC_E3M2, 0x1F},
                {MIXPREC_E2M1, 0x7},      {MIXPREC_E8M0, 0xFF},     {MIXPREC_I8, 0}};
    static const mixprec_dtype not_decoded[] = {MIXPREC_F64, MIXPREC_NONE, (mixprec_dtype)77};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t got = mixprec_encode(cases[i].x, cases[i].dtype, cases[i].round, cases[i].overflow, 0);
        CHECK(got == cases[i].want, "case %u: got %04x, want %04x", (unsigned)i, got, cases[i].want);
    }
    for (i = 0; i < sizeof nans / sizeof nans[0]; i++) {
        uint32_t got = encode(ORACLE_INF | ORACLE_QUIET | ORACLE_SIGN, nans[i].dtype, MIXPREC_ROUND_NEAREST_EVEN,
                              MIXPREC_OVERFLOW_SATURATE, 0);
        CHECK(got == nans[i].want, "-NaN to %s: got %02x, want %02x", mixprec_dtype_name(nans[i].dtype), got,
              nans[i].want);
    }
    for (i = 0; i < 3; i++)
        CHECK(oracle_bits(mixprec_decode(0x3C00, not_decoded[i])) % ORACLE_SIGN > ORACLE_INF,
              "dtype %d decodes to a number", (int)not_decoded[i]);
}

/* ---- classification, comparison, neighbours ---- */

typedef struct classify_functions {
    mixprec_dtype dtype;
    void (*classify)(uint32_t, int[5]), (*order)(uint32_t, uint32_t, int[3]);
    uint32_t (*up)(uint32_t), (*down)(uint32_t);
} classify_functions;

#define CLASSIFY_FUNCTIONS(name, storage)                                                                              \
    static mixprec_##name name##_of(uint32_t code) {                                                                   \
        mixprec_##name x;                                                                                              \
        x.bits = (storage)code;                                                                                        \
        return x;                                                                                                      \
    }                                                                                                                  \
    static void name##_classify(uint32_t code, int answers[5]) {                                                       \
        answers[0] = mixprec_##name##_isnan(name##_of(code));                                                          \
        answers[1] = mixprec_##name##_isinf(name##_of(code));                                                          \
        answers[2] = mixprec_##name##_isfinite(name##_of(code));                                                       \
        answers[3] = mixprec_##name##_issubnormal(name##_of(code));                                                    \
        answers[4] = mixprec_##name##_signbit(name##_of(code));                                                        \
    }                                                                                                                  \
    static void name##_order(uint32_t a, uint32_t b, int answers[3]) {                                                 \
        answers[0] = mixprec_##name##_equal(name##_of(a), name##_of(b));                                               \
        answers[1] = mixprec_##name##_less(name##_of(a), name##_of(b));                                                \
        answers[2] = mixprec_##name##_less_equal(name##_of(a), name##_of(b));                                          \
    }                                                                                                                  \
    static uint32_t name##_up(uint32_t code) {                                                                         \
        return mixprec_##name##_next_up(name##_of(code)).bits;                                                         \
    }                                                                                                                  \
    static uint32_t name##_down(uint32_t code) {                                                                       \
        return mixprec_##name##_next_down(name##_of(code)).bits;                                                       \
    }
CLASSIFY_FUNCTIONS(f16, uint16_t)
CLASSIFY_FUNCTIONS(bf16, uint16_t)
CLASSIFY_FUNCTIONS(e4m3, uint8_t)
CLASSIFY_FUNCTIONS(e5m2, uint8_t)
CLASSIFY_FUNCTIONS(e4m3fnuz, uint8_t)
CLASSIFY_FUNCTIONS(e5m2fnuz, uint8_t)
CLASSIFY_FUNCTIONS(e4m3ieee, uint8_t)
CLASSIFY_FUNCTIONS(e3m4, uint8_t)
CLASSIFY_FUNCTIONS(e2m3, uint8_t)
CLASSIFY_FUNCTIONS(e3m2, uint8_t)
CLASSIFY_FUNCTIONS(e2m1, uint8_t)
CLASSIFY_FUNCTIONS(e8m0, uint8_t)

#define CLASSIFY_ROW(name, dtype)                                                                                      \
    { dtype, name##_classify, name##_order, name##_up, name##_down }
static const classify_functions classifiers[] = {
    CLASSIFY_ROW(f16, MIXPREC_F16),           CLASSIFY_ROW(bf16, MIXPREC_BF16),
    CLASSIFY_ROW(e4m3, MIXPREC_E4M3),         CLASSIFY_ROW(e5m2, MIXPREC_E5M2),
    CLASSIFY_ROW(e4m3fnuz, MIXPREC_E4M3FNUZ), CLASSIFY_ROW(e5m2fnuz, MIXPREC_E5M2FNUZ),
    CLASSIFY_ROW(e4m3ieee, MIXPREC_E4M3IEEE), CLASSIFY_ROW(e3m4, MIXPREC_E3M4),
    CLASSIFY_ROW(e2m3, MIXPREC_E2M3),         CLASSIFY_ROW(e3m2, MIXPREC_E3M2),
    CLASSIFY_ROW(e2m1, MIXPREC_E2M1),         CLASSIFY_ROW(e8m0, MIXPREC_E8M0)};
#define CLASSIFIERS (sizeof classifiers / sizeof classifiers[0])

/* The codes that are numbers, by value, with a finite stand-in for Inf so that -ffast-math does not matter; -0
   first. */
typedef struct number {
    double value;
    uint32_t code;
} number;

static number number_of(const oracle_format *format, uint32_t code) {
    uint64_t bits = oracle_decode(format, code);
    number x;
    x.code = code;
    x.value = oracle_double(bits % ORACLE_SIGN == ORACLE_INF ? bits - 1 : bits);
    return x;
}
static int is_nan(const oracle_format *format, uint32_t code) {
    return oracle_decode(format, code) % ORACLE_SIGN > ORACLE_INF;
}
static int by_value(const void *a, const void *b) {
    const number *x = (const number *)a, *y = (const number *)b;
    if (x->value < y->value || y->value < x->value)
        return x->value < y->value ? -1 : 1;
    return x->code > y->code ? -1 : x->code < y->code;
}

static void check_order(const classify_functions *f, const oracle_format *format, uint32_t a, uint32_t b) {
    int got[3], comparable = !is_nan(format, a) && !is_nan(format, b), less = 0, greater = 0;
    if (comparable) {
        less = number_of(format, a).value < number_of(format, b).value;
        greater = number_of(format, b).value < number_of(format, a).value;
    }
    f->order(a, b, got);
    CHECK(got[0] == (comparable && !less && !greater) && got[1] == less && got[2] == (comparable && !greater),
          "%04x and %04x: equal %d, less %d, less or equal %d", a, b, got[0], got[1], got[2]);
}

static void test_classify(const classify_functions *f, const oracle_format *format) {
    static number sorted[65536];
    uint32_t codes = 2 * oracle_sign_code(format), code, other, i, count = 0;
    int powers = format->family == ORACLE_POWERS; /* no sign, no subnormals */
    double min_normal = powers ? 0 : oracle_value(format, 1u << format->mantissa_bits);
    for (code = 0; code < codes; code++) {
        uint64_t magnitude = oracle_decode(format, code) % ORACLE_SIGN;
        int got[5], nan = magnitude > ORACLE_INF, inf = magnitude == ORACLE_INF;
        f->classify(code, got);
        CHECK(got[0] == nan && got[1] == inf && got[2] == (!nan && !inf), "%04x: isnan %d, isinf %d, isfinite %d", code,
              got[0], got[1], got[2]);
        CHECK(got[3] == (magnitude > 0 && magnitude < oracle_bits(min_normal)), "%04x: issubnormal %d", code, got[3]);
        CHECK(got[4] == (code >= codes / 2 && !powers), "%04x: signbit %d", code, got[4]);
        if (nan)
            CHECK(f->up(code) == code && f->down(code) == code, "NaN %04x has neighbours %04x and %04x", code,
                  f->up(code), f->down(code));
        else
            sorted[count++] = number_of(format, code);
        for (other = 0; other < (format->bits > 8 ? 16 : codes); other++)
            check_order(f, format, code, format->bits > 8 ? (uint32_t)oracle_random() % codes : other);
    }
    qsort(sorted, count, sizeof sorted[0], by_value);
    for (i = 0; i < count; i++) {
        uint32_t above = i, below = i, up = f->up(sorted[i].code), down = f->down(sorted[i].code);
        while (above < count && !(sorted[i].value < sorted[above].value))
            above++;
        while (below != (uint32_t)-1 && !(sorted[below].value < sorted[i].value))
            below--;
        above = above == count ? sorted[i].code : sorted[above].code; /* the first above: -0 rather than +0 */
        below = below == (uint32_t)-1 ? sorted[i].code : sorted[below].code;
        CHECK(up == above, "%04x: the next up is %04x, want %04x", sorted[i].code, up, above);
        CHECK(down == below, "%04x: the next down is %04x, want %04x", sorted[i].code, down, below);
        check_order(f, format, sorted[i].code, above);
        check_order(f, format, below, sorted[i].code);
    }
}

/* ---- elements of fp4 arrays ---- */

/* As mixprec_convert packs them; of its neighbour nothing changes. */
static void test_e2m1_elements(void) {
    static const float numbers[] = {0.5f, -6, 1.5f, 4, -0.5f, 3, 2};
    unsigned char packed[4], set[4] = {0xFF, 0xFF, 0xFF, 0xFF};
    size_t i, old, code;
    CHECK(mixprec_convert(packed, MIXPREC_E2M1, numbers, MIXPREC_F32, 7) == MIXPREC_OK, "conversion");
    for (i = 0; i < 7; i++) {
        CHECK(mixprec_e2m1_get(packed, i).bits == mixprec_f32_to_e2m1(numbers[i]).bits, "element %u: %x", (unsigned)i,
              mixprec_e2m1_get(packed, i).bits);
        mixprec_e2m1_set(set, i, mixprec_f32_to_e2m1(numbers[i]));
    }
    CHECK(!memcmp(set, packed, 3) && set[3] == (0xF0 | packed[3]), "set one by one: %02x %02x %02x %02x", set[0],
          set[1], set[2], set[3]);
    for (old = 0; old < 256; old++)
        for (code = 0; code < 256; code++) /* the upper four bits do not count */
            for (i = 2; i < 4; i++) {
                unsigned char bytes[3] = {0x5A, 0, 0x5A};
                mixprec_e2m1 x;
                x.bits = (uint8_t)code;
                bytes[1] = (unsigned char)old;
                mixprec_e2m1_set(bytes, i, x);
                CHECK(bytes[0] == 0x5A && bytes[2] == 0x5A && mixprec_e2m1_get(bytes, i).bits == code % 16 &&
                          mixprec_e2m1_get(bytes, 5 - i).bits == (i == 2 ? old / 16 : old % 16),
                      "element %u of %02x set to %02x: %02x %02x %02x", (unsigned)i, (unsigned)old, (unsigned)code,
                      bytes[0], bytes[1], bytes[2]);
            }
}

/* ---- random bits ---- */

/* Threefry-2x32-20 as its paper writes it: round by round, a key injection after every fourth. */
static void threefry(uint32_t key0, uint32_t key1, uint32_t x0, uint32_t x1, uint32_t out[2]) {
    static const unsigned rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    uint32_t keys[7];
    unsigned group, j;
    keys[0] = keys[3] = keys[6] = key0;
    keys[1] = keys[4] = key1;
    keys[2] = keys[5] = key0 ^ key1 ^ 0x1BD11BDA;
    out[0] = x0 + keys[0];
    out[1] = x1 + keys[1];
    for (group = 0; group < 5; group++) {
        for (j = 0; j < 4; j++) {
            uint64_t turned;
            out[0] += out[1];
            turned = (uint64_t)out[1] << rotations[group % 2][j];
            out[1] = ((uint32_t)turned | (uint32_t)(turned >> 32)) ^ out[0];
        }
        out[0] += keys[group + 1];
        out[1] += keys[group + 2] + group + 1;
    }
}

static void test_random_bits(void) {
    /* The known answers that the authors of Threefry publish with their library: counter, key, output. */
    static const uint32_t known[3][6] = {
        {0, 0, 0, 0, 0x6B200159, 0x99BA4EFE},
        {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0x1CB996FC, 0xBB002BE7},
        {0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xC4923A9C, 0x483DF7A0},
    };
    uint32_t out[2], even, odd;
    int i;
    for (i = 0; i < 3; i++) {
        threefry(known[i][2], known[i][3], known[i][0], known[i][1], out);
        CHECK(out[0] == known[i][4] && out[1] == known[i][5], "known answer %d: %08x %08x", i, out[0], out[1]);
    }
    even = mixprec_random_bits(0, 0);
    odd = mixprec_random_bits(0, 1);
    CHECK(even == 0x6B200159 && odd == 0x99BA4EFE, "seed 0: %08x %08x", even, odd);
    for (i = 0; i < 100000; i++) {
        uint64_t seed = oracle_random() >> (i % 64), counter = oracle_random() >> (1 + i / 64 % 63);
        threefry((uint32_t)seed, (uint32_t)(seed >> 32), (uint32_t)counter, (uint32_t)(counter >> 32), out);
        even = mixprec_random_bits(seed, 2 * counter);
        odd = mixprec_random_bits(seed, 2 * counter + 1);
        CHECK(even == out[0] && odd == out[1], "seed %llx, counter %llx: got %08x %08x, want %08x %08x",
              (unsigned long long)seed, (unsigned long long)counter, even, odd, out[0], out[1]);
    }
}

/* ---- what there is ---- */

#define LIMITS(name)                                                                                                   \
    {                                                                                                                  \
        MIXPREC_##name, (double)MIXPREC_##name##_MAX, (double)MIXPREC_##name##_MIN, (double)MIXPREC_##name##_TRUE_MIN, \
            (double)MIXPREC_##name##_EPSILON, MIXPREC_##name##_MANT_DIG                                                \
    }
static const struct {
    mixprec_dtype dtype;
    double max, min, true_min, epsilon;
    int mant_dig;
} limits[] = {LIMITS(F16),      LIMITS(BF16), LIMITS(E4M3), LIMITS(E5M2), LIMITS(E4M3FNUZ), LIMITS(E5M2FNUZ),
              LIMITS(E4M3IEEE), LIMITS(E3M4), LIMITS(E2M3), LIMITS(E3M2), LIMITS(E2M1),     LIMITS(E8M0)};

static void check_format(const oracle_format *f) {
    int integer = f->family == ORACLE_INTEGERS, powers = f->family == ORACLE_POWERS;
    int has_nan = f->family != ORACLE_FINITE && !integer;
    double smallest = oracle_value(f, !powers),
           min_normal = powers || integer ? smallest : oracle_value(f, 1u << f->mantissa_bits);
    double epsilon = integer ? 1.0 : ldexp(1.0, -f->mantissa_bits);
    mixprec_format_info info;
    mixprec_status status = mixprec_format(f->dtype, &info);
    size_t i;
    CHECK(status == MIXPREC_OK, "%s: status %d", f->name, (int)status);
    if (status != MIXPREC_OK)
        return;
    CHECK(!strcmp(info.name, f->name) && !strcmp(mixprec_dtype_name(f->dtype), f->name), "%s: named %s and %s", f->name,
          info.name, mixprec_dtype_name(f->dtype));
    CHECK(info.bits == f->bits && info.mantissa_bits == f->mantissa_bits &&
              info.exponent_bits == f->bits - f->mantissa_bits - !powers,
          "%s: %d bits, %d for the exponent, %d for the mantissa", f->name, info.bits, info.exponent_bits,
          info.mantissa_bits);
    CHECK(info.bias == f->bias, "%s: bias %d", f->name, info.bias);
    CHECK(info.has_inf == (f->family == ORACLE_IEEE) && info.has_nan == has_nan, "%s: has_inf %d, has_nan %d", f->name,
          info.has_inf, info.has_nan);
    CHECK(oracle_bits(info.max) == oracle_bits(oracle_value(f, f->finite - 1)), "%s: max %g", f->name, info.max);
    CHECK(oracle_bits(info.min_normal) == oracle_bits(min_normal), "%s: min_normal %g", f->name, info.min_normal);
    CHECK(oracle_bits(info.min_subnormal) == oracle_bits(smallest), "%s: min_subnormal %g", f->name,
          info.min_subnormal);
    CHECK(oracle_bits(info.epsilon) == oracle_bits(epsilon), "%s: epsilon %g", f->name, info.epsilon);
    for (i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (limits[i].dtype == f->dtype)
            CHECK(oracle_bits(limits[i].max) == oracle_bits(info.max) &&
                      oracle_bits(limits[i].min) == oracle_bits(info.min_normal) &&
                      oracle_bits(limits[i].true_min) == oracle_bits(info.min_subnormal) &&
                      oracle_bits(limits[i].epsilon) == oracle_bits(info.epsilon) &&
                      limits[i].mant_dig == info.mantissa_bits + 1,
                  "%s: the macros differ: %g %g %g %g %d", f->name, limits[i].max, limits[i].min, limits[i].true_min,
                  limits[i].epsilon, limits[i].mant_dig);
}

static void check_size(mixprec_dtype dtype, size_t bytes, size_t elements_per_byte) {
    static const size_t counts[] = {0, 1, 2, 3, 100, 101, SIZE_MAX / 8};
    size_t i;
    CHECK(mixprec_dtype_size(dtype) == bytes, "%s: size %lu", mixprec_dtype_name(dtype),
          (unsigned long)mixprec_dtype_size(dtype));
    for (i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        size_t got = mixprec_dtype_bytes(dtype, counts[i]);
        size_t want = counts[i] / elements_per_byte * bytes + counts[i] % elements_per_byte * bytes;
        CHECK(got == want, "%lu %s: %lu bytes, want %lu", (unsigned long)counts[i], mixprec_dtype_name(dtype),
              (unsigned long)got, (unsigned long)want);
    }
    CHECK(mixprec_dtype_bytes(dtype, SIZE_MAX / 8 + 1) == 0 && mixprec_dtype_bytes(dtype, SIZE_MAX) == 0,
          "%s: too many elements have a size", mixprec_dtype_name(dtype));
}

static void test_formats(void) {
    static const mixprec_dtype unknown[] = {MIXPREC_NONE, (mixprec_dtype)MIXPREC_DTYPE_COUNT, (mixprec_dtype)1000};
    mixprec_format_info info, before;
    size_t i;
    CHECK(ORACLE_FORMATS + 2 == MIXPREC_DTYPE_COUNT, "%d dtypes", MIXPREC_DTYPE_COUNT); /* and f64, and none */
    for (i = 0; i < ORACLE_FORMATS; i++) {
        const oracle_format *f = &oracle_formats[i];
        check_format(f);
        check_size(f->dtype, f->bits < 8 ? 1 : (size_t)f->bits / 8, f->dtype == MIXPREC_E2M1 ? 2 : 1);
    }
    check_size(MIXPREC_F64, 8, 1);
    CHECK(mixprec_format(MIXPREC_F64, &info) == MIXPREC_OK && !strcmp(info.name, "f64") && info.bits == 64 &&
              info.exponent_bits == 11 && info.mantissa_bits == 52 && info.bias == 1023 && info.has_inf && info.has_nan,
          "f64: %s, %d bits, %d for the exponent, %d for the mantissa, bias %d, has_inf %d, has_nan %d", info.name,
          info.bits, info.exponent_bits, info.mantissa_bits, info.bias, info.has_inf, info.has_nan);
    CHECK(oracle_bits(info.max) == oracle_bits(DBL_MAX) && oracle_bits(info.min_normal) == oracle_bits(DBL_MIN) &&
              oracle_bits(info.min_subnormal) == 1 && oracle_bits(info.epsilon) == oracle_bits(DBL_EPSILON),
          "f64: max %g, min_normal %g, min_subnormal %g, epsilon %g", info.max, info.min_normal, info.min_subnormal,
          info.epsilon);
    memset(&info, 0x5A, sizeof info);
    before = info;
    for (i = 0; i < 3; i++) {
        mixprec_status status = mixprec_format(unknown[i], &info);
        CHECK(status == MIXPREC_ERR_DTYPE, "dtype %d: status %d", (int)unknown[i], (int)status);
        CHECK(!memcmp(&info, &before, sizeof info), "dtype %d: info was written", (int)unknown[i]);
        CHECK(mixprec_dtype_size(unknown[i]) == 0 && mixprec_dtype_bytes(unknown[i], 5) == 0, "dtype %d: has a size",
              (int)unknown[i]);
        CHECK(!strcmp(mixprec_dtype_name(unknown[i]), "unknown"), "dtype %d: %s", (int)unknown[i],
              mixprec_dtype_name(unknown[i]));
    }
    CHECK(mixprec_format(MIXPREC_F16, NULL) == MIXPREC_ERR_NULL, "NULL was accepted");
}

static void test_statuses(void) {
    int i, j;
    CHECK(!strcmp(mixprec_status_string(MIXPREC_OK), "success"), "%s", mixprec_status_string(MIXPREC_OK));
    for (i = 0; i < MIXPREC_STATUS_COUNT; i++)
        for (j = 0; j < i; j++)
            CHECK(strcmp(mixprec_status_string((mixprec_status)i), mixprec_status_string((mixprec_status)j)) != 0,
                  "statuses %d and %d have one text", i, j);
    CHECK(mixprec_status_string(MIXPREC_STATUS_COUNT) && mixprec_status_string((mixprec_status)1000),
          "an unknown status has no text");
}

static void test_instruction_sets(void) {
    mixprec_isa best = mixprec_isa_best();
    int i, j, highest = 0;
    for (i = MIXPREC_ISA_C; i <= MIXPREC_ISA_NEON; i++) {
        if (mixprec_isa_available((mixprec_isa)i))
            highest = i;
        CHECK(strcmp(mixprec_isa_name((mixprec_isa)i), "unknown") != 0, "instruction set %d has no name", i);
        for (j = MIXPREC_ISA_AUTO; j < i; j++)
            CHECK(strcmp(mixprec_isa_name((mixprec_isa)i), mixprec_isa_name((mixprec_isa)j)) != 0, "%d and %d: %s", i,
                  j, mixprec_isa_name((mixprec_isa)i));
    }
    CHECK((int)best == highest, "best %d, highest available %d", (int)best, highest);
    CHECK(mixprec_isa_available(MIXPREC_ISA_C), "portable C is not available");
    CHECK(!mixprec_isa_available((mixprec_isa)99), "instruction set 99 is available");
    CHECK(!strcmp(mixprec_isa_name(MIXPREC_ISA_AVX512), "avx512"), "%s", mixprec_isa_name(MIXPREC_ISA_AVX512));
    CHECK(!strcmp(mixprec_isa_name((mixprec_isa)99), "unknown"), "%s", mixprec_isa_name((mixprec_isa)99));
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__TINYC__)
    {
        int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
        int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#if defined(MIXPREC_NO_SIMD) || MIXPREC_MAX_ISA < 2
        avx2 = 0;
#endif
#if defined(MIXPREC_NO_SIMD) || MIXPREC_MAX_ISA < 3
        avx512 = 0;
#endif
        CHECK(!mixprec_isa_available(MIXPREC_ISA_AVX2) == !avx2, "the compiler says AVX2 %d", avx2);
        CHECK(!mixprec_isa_available(MIXPREC_ISA_AVX512) == !avx512, "the compiler says AVX-512 %d", avx512);
        CHECK(!mixprec_isa_available(MIXPREC_ISA_NEON), "NEON on x86-64");
    }
#elif defined(__aarch64__) && !defined(MIXPREC_NO_SIMD)
    CHECK(mixprec_isa_available(MIXPREC_ISA_NEON), "no NEON on AArch64");
#endif
}

int main(int argc, char **argv) {
    size_t i;
    test_init(argc, argv);
    for (i = 0; i < ORACLE_SMALL_FORMATS; i++) {
        const scalar_functions *f = &functions[i];
        const oracle_format *format = oracle_format_of(f->dtype);
        if (test_begin(name_of(test_quick || i >= ORACLE_GEMM_FORMATS ? "a sample of the floats to" : "every float to",
                               format)))
            test_every_float(f, format), test_end();
        if (test_begin(name_of("doubles and floats beside every value and middle of", format)))
            test_beside_points(f, format), test_end();
        if (test_begin(name_of("random, subnormal and NaN doubles to", format)))
            test_other_doubles(f, format), test_end();
        if (test_begin(name_of("every code of", format)))
            test_every_code(f, format), test_end();
    }
    if (test_begin("scalar: decode f32"))
        test_decode_f32(), test_end();
    for (i = 0; i < ORACLE_FORMATS; i++)
        if (test_begin(name_of("every mode and policy to", &oracle_formats[i])))
            test_encode(&oracle_formats[i]), test_end();
    for (i = 0; i < CLASSIFIERS; i++)
        if (test_begin(name_of("classes, order and neighbours of", oracle_format_of(classifiers[i].dtype))))
            test_classify(&classifiers[i], oracle_format_of(classifiers[i].dtype)), test_end();
    if (test_begin("scalar: values named in the manual"))
        test_named_values(), test_end();
    if (test_begin("scalar: elements of fp4 arrays"))
        test_e2m1_elements(), test_end();
    if (test_begin("scalar: random bits"))
        test_random_bits(), test_end();
    if (test_begin("scalar: formats"))
        test_formats(), test_end();
    if (test_begin("scalar: status texts"))
        test_statuses(), test_end();
    if (test_begin("scalar: instruction sets"))
        test_instruction_sets(), test_end();
    return test_summary();
}
