/* The SCALAR room: every float to every format, doubles beside every value and every middle, all decodes, every
   rounding mode and overflow policy, the random bits; and the small functions that describe formats and instruction
   sets. The answers come from oracle.h. --quick takes a sample of the floats, everything else stays whole. */
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

/* The functions of one format, all on bit patterns. block_differs compares both signs of the 2^16 floats whose upper
   half is `block` with what is expected for the positive ones. */
typedef struct scalar_functions {
    mixprec_dtype dtype;
    uint32_t (*from_f32)(uint32_t), (*from_f32_sat)(uint32_t), (*from_f64)(uint64_t), (*from_f64_sat)(uint64_t);
    uint32_t (*to_f32)(uint32_t);
    uint64_t (*to_f64)(uint32_t);
    uint32_t (*block_differs)(uint32_t block, const uint16_t *ieee, const uint16_t *saturated, uint32_t sign_code);
} scalar_functions;

#define SCALAR_FUNCTIONS(name, storage)                                                                                \
    static uint32_t name##_from_f32(uint32_t x) {                                                                      \
        return mixprec_f32_to_##name(oracle_float(x)).bits;                                                            \
    }                                                                                                                  \
    static uint32_t name##_from_f32_sat(uint32_t x) {                                                                  \
        return mixprec_f32_to_##name##_sat(oracle_float(x)).bits;                                                      \
    }                                                                                                                  \
    static uint32_t name##_from_f64(uint64_t x) {                                                                      \
        return mixprec_f64_to_##name(oracle_double(x)).bits;                                                           \
    }                                                                                                                  \
    static uint32_t name##_from_f64_sat(uint64_t x) {                                                                  \
        return mixprec_f64_to_##name##_sat(oracle_double(x)).bits;                                                     \
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
    static uint32_t name##_block_differs(uint32_t block, const uint16_t *ieee, const uint16_t *saturated,              \
                                         uint32_t sign_code) {                                                         \
        uint32_t i, different = 0;                                                                                     \
        for (i = 0; i < 65536; i++) {                                                                                  \
            uint32_t x = block * 65536 + i;                                                                            \
            different |= name##_from_f32(x) ^ ieee[i];                                                                 \
            different |= name##_from_f32_sat(x) ^ saturated[i];                                                        \
            different |= name##_from_f32(x | 0x80000000u) ^ (ieee[i] | sign_code);                                     \
            different |= name##_from_f32_sat(x | 0x80000000u) ^ (saturated[i] | sign_code);                            \
        }                                                                                                              \
        return different;                                                                                              \
    }
SCALAR_FUNCTIONS(f16, uint16_t)
SCALAR_FUNCTIONS(bf16, uint16_t)
SCALAR_FUNCTIONS(e4m3, uint8_t)
SCALAR_FUNCTIONS(e5m2, uint8_t)

#define SCALAR_ROW(name, dtype)                                                                                        \
    {                                                                                                                  \
        dtype, name##_from_f32, name##_from_f32_sat, name##_from_f64, name##_from_f64_sat, name##_to_f32,              \
            name##_to_f64, name##_block_differs                                                                        \
    }
static const scalar_functions functions[ORACLE_SMALL_FORMATS] = {
    SCALAR_ROW(f16, MIXPREC_F16), SCALAR_ROW(bf16, MIXPREC_BF16), SCALAR_ROW(e4m3, MIXPREC_E4M3),
    SCALAR_ROW(e5m2, MIXPREC_E5M2)};

static const char *name_of(const char *prefix, const oracle_format *format) {
    static char name[80];
    snprintf(name, sizeof name, "scalar: %s %s", prefix, format->name);
    return name;
}

static uint32_t encode(uint64_t x, mixprec_dtype dtype, mixprec_round round, mixprec_overflow overflow,
                       uint32_t random) {
    return mixprec_encode(oracle_double(x), dtype, round, overflow, random);
}

/* ---- narrowing to nearest even ---- */

static void test_every_float(const scalar_functions *f, const oracle_format *format) {
    static uint16_t ieee[65536], saturated[65536];
    uint32_t block, i, sign_code = oracle_sign_code(format);
    for (block = 0; block < 32768; block += test_quick ? 61 : 1) {
        oracle_block(format, MIXPREC_OVERFLOW_IEEE, block, ieee);
        oracle_block(format, MIXPREC_OVERFLOW_SATURATE, block, saturated);
        if (!f->block_differs(block, ieee, saturated, sign_code))
            continue;
        for (i = 0; i < 131072; i++) {
            uint32_t negative = i / 65536, j = i % 65536, x = negative * 0x80000000u + block * 65536 + j;
            uint32_t got = f->from_f32(x), got_saturated = f->from_f32_sat(x);
            uint32_t want = ieee[j] + negative * sign_code, want_saturated = saturated[j] + negative * sign_code;
            CHECK(got == want, "float %08x: got %04x, want %04x", x, got, want);
            CHECK(got_saturated == want_saturated, "float %08x, saturated: got %04x, want %04x", x, got_saturated,
                  want_saturated);
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
        uint64_t with_garbage = oracle_bits(mixprec_decode(code | (uint32_t)0xABCD0000u, format->dtype));
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
        uint32_t bits = i % 4 ? (uint32_t)oracle_random() : (i << 23) | (uint32_t)oracle_random() >> (i / 4 % 33 + 9);
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
                uint32_t want = oracle_round(&place, modes[mode], policies[policy], randoms[draw]);
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
        {1, MIXPREC_F64, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0},
        {1, MIXPREC_NONE, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0},
        {1, (mixprec_dtype)77, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0},
    };
    static const mixprec_dtype not_decoded[] = {MIXPREC_F64, MIXPREC_NONE, (mixprec_dtype)77};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t got = mixprec_encode(cases[i].x, cases[i].dtype, cases[i].round, cases[i].overflow, 0);
        CHECK(got == cases[i].want, "case %u: got %04x, want %04x", (unsigned)i, got, cases[i].want);
    }
    for (i = 0; i < 3; i++)
        CHECK(oracle_bits(mixprec_decode(0x3C00, not_decoded[i])) % ORACLE_SIGN > ORACLE_INF,
              "dtype %d decodes to a number", (int)not_decoded[i]);
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

static void check_format(mixprec_dtype dtype, const char *name, int bits, int mantissa_bits, int bias, int has_inf,
                         uint64_t max, uint64_t min_normal, uint64_t min_subnormal) {
    mixprec_format_info info;
    mixprec_status status = mixprec_format(dtype, &info);
    CHECK(status == MIXPREC_OK, "%s: status %d", name, (int)status);
    if (status != MIXPREC_OK)
        return;
    CHECK(!strcmp(info.name, name) && !strcmp(mixprec_dtype_name(dtype), name), "%s: named %s and %s", name, info.name,
          mixprec_dtype_name(dtype));
    CHECK(mixprec_dtype_size(dtype) * 8 == (size_t)bits, "%s: size %u", name, (unsigned)mixprec_dtype_size(dtype));
    CHECK(info.bits == bits && info.mantissa_bits == mantissa_bits && info.exponent_bits == bits - 1 - mantissa_bits,
          "%s: %d bits, %d for the exponent, %d for the mantissa", name, info.bits, info.exponent_bits,
          info.mantissa_bits);
    CHECK(info.bias == bias && info.has_inf == has_inf, "%s: bias %d, has_inf %d", name, info.bias, info.has_inf);
    CHECK(oracle_bits(info.max) == max, "%s: max %g", name, info.max);
    CHECK(oracle_bits(info.min_normal) == min_normal, "%s: min_normal %g", name, info.min_normal);
    CHECK(oracle_bits(info.min_subnormal) == min_subnormal, "%s: min_subnormal %g", name, info.min_subnormal);
    CHECK(oracle_bits(info.epsilon) == oracle_bits(ldexp(1.0, -mantissa_bits)), "%s: epsilon %g", name, info.epsilon);
}

static void test_formats(void) {
    static const mixprec_dtype unknown[] = {MIXPREC_NONE, (mixprec_dtype)MIXPREC_DTYPE_COUNT, (mixprec_dtype)1000};
    mixprec_format_info info, before;
    size_t i;
    for (i = 0; i < ORACLE_FORMATS; i++) {
        const oracle_format *f = &oracle_formats[i];
        check_format(f->dtype, f->name, f->bits, f->mantissa_bits, f->bias, f->has_inf,
                     oracle_bits(oracle_value(f, f->finite - 1)), oracle_bits(oracle_value(f, 1u << f->mantissa_bits)),
                     oracle_bits(oracle_value(f, 1)));
    }
    check_format(MIXPREC_F64, "f64", 64, 52, 1023, 1, oracle_bits(DBL_MAX), oracle_bits(DBL_MIN), 1);
    memset(&info, 0x5A, sizeof info);
    before = info;
    for (i = 0; i < 3; i++) {
        mixprec_status status = mixprec_format(unknown[i], &info);
        CHECK(status == MIXPREC_ERR_DTYPE, "dtype %d: status %d", (int)unknown[i], (int)status);
        CHECK(!memcmp(&info, &before, sizeof info), "dtype %d: info was written", (int)unknown[i]);
        CHECK(mixprec_dtype_size(unknown[i]) == 0, "dtype %d: has a size", (int)unknown[i]);
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
        if (test_begin(name_of(test_quick ? "a sample of the floats to" : "every float to", format)))
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
    if (test_begin("scalar: values named in the manual"))
        test_named_values(), test_end();
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
