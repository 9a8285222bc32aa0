/* An oracle for conversions. It shares no code and no method with mixprec.h: a format is the sorted list of its
   values, each computed from the definition with ldexp. A number is rounded by finding its two neighbours in that
   list by bisection and comparing it with the middle between them, which a double holds exactly.

       const oracle_format *f16 = oracle_format_of(MIXPREC_F16);
       oracle_place place = oracle_locate(f16, oracle_bits(0.1));
       uint32_t code = oracle_round(&place, MIXPREC_ROUND_UP, MIXPREC_OVERFLOW_IEEE, 0);

   Numbers travel as the bit patterns of doubles. Patterns of non-negative doubles are ordered like their values, so
   that comparisons are integer ones; all arithmetic is exact and on normal numbers. Hence -ffast-math, FTZ, DAZ and
   x87 do not matter. Include mixprec.h first: the names of dtypes, modes and policies are its. */
#ifndef MIXPREC_ORACLE_H
#define MIXPREC_ORACLE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
#define ORACLE_FUNCTION static __attribute__((unused))
#else
#define ORACLE_FUNCTION static
#endif

/* What a format has beside its finite values. */
typedef enum oracle_family {
    ORACLE_IEEE,    /* -0, Inf, NaNs with a payload */
    ORACLE_ONE_NAN, /* -0, a NaN of either sign, no Inf */
    ORACLE_FNUZ,    /* one NaN, in the place of -0; no Inf */
    ORACLE_FINITE,  /* -0; neither NaN nor Inf: NaN becomes the largest number */
    ORACLE_POWERS,  /* powers of two and a NaN; no sign, no zero */
    ORACLE_INTEGERS /* two's complement; NaN becomes 0 */
} oracle_family;

typedef struct oracle_format {
    const char *name;
    mixprec_dtype dtype;
    int bits, mantissa_bits, bias;
    oracle_family family;
    uint32_t finite; /* the number of finite values >= 0 */
} oracle_format;

/* IEEE 754-2019 table 3.5 for binary32 and binary16; OFP8 revision 1.0 table 1; OCP MX 1.0 tables 2 to 6; ml_dtypes for
   FNUZ, e4m3ieee and e3m4. F32 comes last: the others can be listed. */
static const oracle_format oracle_formats[] = {
    {"f16", MIXPREC_F16, 16, 10, 15, ORACLE_IEEE, 31 * 1024},
    {"bf16", MIXPREC_BF16, 16, 7, 127, ORACLE_IEEE, 255 * 128},
    {"e4m3", MIXPREC_E4M3, 8, 3, 7, ORACLE_ONE_NAN, 16 * 8 - 1},
    {"e5m2", MIXPREC_E5M2, 8, 2, 15, ORACLE_IEEE, 31 * 4},
    {"e4m3fnuz", MIXPREC_E4M3FNUZ, 8, 3, 8, ORACLE_FNUZ, 16 * 8},
    {"e5m2fnuz", MIXPREC_E5M2FNUZ, 8, 2, 16, ORACLE_FNUZ, 32 * 4},
    {"e4m3ieee", MIXPREC_E4M3IEEE, 8, 3, 7, ORACLE_IEEE, 15 * 8},
    {"e3m4", MIXPREC_E3M4, 8, 4, 3, ORACLE_IEEE, 7 * 16},
    {"e2m3", MIXPREC_E2M3, 6, 3, 1, ORACLE_FINITE, 4 * 8},
    {"e3m2", MIXPREC_E3M2, 6, 2, 3, ORACLE_FINITE, 8 * 4},
    {"e2m1", MIXPREC_E2M1, 4, 1, 1, ORACLE_FINITE, 4 * 2},
    {"e8m0", MIXPREC_E8M0, 8, 0, 127, ORACLE_POWERS, 255},
    {"i8", MIXPREC_I8, 8, 7, 0, ORACLE_INTEGERS, 128},
    {"f32", MIXPREC_F32, 32, 23, 127, ORACLE_IEEE, 255u * 8388608u},
};
#define ORACLE_GEMM_FORMATS 4 /* the first ones: those that GEMM takes too */
#define ORACLE_SMALL_FORMATS 13
#define ORACLE_FORMATS 14

ORACLE_FUNCTION const oracle_format *oracle_format_of(mixprec_dtype dtype) {
    int i = 0;
    while (oracle_formats[i].dtype != dtype)
        i++;
    return &oracle_formats[i];
}

#define ORACLE_SIGN ((uint64_t)1 << 63)
#define ORACLE_INF ((uint64_t)0x7FF << 52)
#define ORACLE_QUIET ((uint64_t)1 << 51)

ORACLE_FUNCTION uint64_t oracle_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, 8);
    return bits;
}
ORACLE_FUNCTION double oracle_double(uint64_t bits) {
    double x;
    memcpy(&x, &bits, 8);
    return x;
}
ORACLE_FUNCTION float oracle_float(uint32_t bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

/* The highest bit of a code; in all families but the last two, the sign. */
ORACLE_FUNCTION uint32_t oracle_sign_code(const oracle_format *format) {
    return 1u << (format->bits - 1);
}

/* A magnitude, which is the code of a value >= 0, with a sign. */
ORACLE_FUNCTION uint32_t oracle_signed(const oracle_format *format, int negative, uint32_t magnitude) {
    if (!negative || (magnitude == 0 && format->family == ORACLE_FNUZ))
        return magnitude;
    return format->family == ORACLE_INTEGERS ? (256 - magnitude) % 256 : magnitude + oracle_sign_code(format);
}

/* The largest magnitude with this sign. */
ORACLE_FUNCTION uint32_t oracle_max(const oracle_format *format, int negative) {
    return format->finite - (format->family == ORACLE_INTEGERS && negative ? 0 : 1);
}

/* What the IEEE policy makes of Inf and of an overflow away from zero. */
ORACLE_FUNCTION uint32_t oracle_beyond(const oracle_format *format, int negative) {
    if (format->family == ORACLE_FINITE || format->family == ORACLE_INTEGERS)
        return oracle_signed(format, negative, oracle_max(format, negative));
    return format->family == ORACLE_FNUZ ? 0x80 : oracle_signed(format, negative, format->finite);
}

/* 2^exponent, -149 to 128. They are kept: ldexp took half the time of many tests. Not for several threads at once. */
ORACLE_FUNCTION double oracle_power_(int exponent) {
    static double powers[149 + 128 + 1];
    double *power = &powers[exponent + 149];
    if (*power == 0)
        *power = ldexp(1, exponent);
    return *power;
}

/* The value of a finite code >= 0; that of format->finite is where the next value would lie if the range did not
   end. */
ORACLE_FUNCTION double oracle_value(const oracle_format *format, uint32_t code) {
    uint32_t binade = 1u << format->mantissa_bits, exponent = code >> format->mantissa_bits, mantissa = code % binade;
    int last_place = (exponent ? (int)exponent : 1) - format->bias - format->mantissa_bits;
    if (format->family == ORACLE_INTEGERS)
        return (double)code;
    if (format->family == ORACLE_POWERS)
        return oracle_power_((int)code - format->bias);
    return (double)(exponent ? binade + mantissa : mantissa) * oracle_power_(last_place);
}

ORACLE_FUNCTION double oracle_middle(const oracle_format *format, uint32_t code) {
    return (oracle_value(format, code) + oracle_value(format, code + 1)) / 2;
}

/* The value of any code, as a double's pattern; NaN comes out quiet with its payload at the top. */
ORACLE_FUNCTION uint64_t oracle_decode(const oracle_format *format, uint32_t code) {
    uint32_t binade = 1u << format->mantissa_bits;
    uint32_t sign_code = oracle_sign_code(format), magnitude = code % sign_code;
    uint64_t sign = code / sign_code ? ORACLE_SIGN : 0;
    if (format->family == ORACLE_POWERS)
        return code < format->finite ? oracle_bits(oracle_value(format, code)) : ORACLE_INF | ORACLE_QUIET;
    if (format->family == ORACLE_INTEGERS)
        return oracle_bits(code < 128 ? (double)code : (double)code - 256);
    if (format->family == ORACLE_FNUZ && code == 0x80)
        return ORACLE_INF | ORACLE_QUIET;
    if (magnitude < format->finite)
        return sign | oracle_bits(oracle_value(format, magnitude));
    if (magnitude == format->finite && format->family == ORACLE_IEEE)
        return sign | ORACLE_INF;
    return sign | ORACLE_INF | ORACLE_QUIET | (uint64_t)(magnitude % binade) * (((uint64_t)1 << 52) / binade);
}

/* What NaN becomes; the payload is that of a double without the quiet bit. */
ORACLE_FUNCTION uint32_t oracle_nan(const oracle_format *format, int negative, uint64_t payload) {
    uint32_t quiet;
    switch (format->family) {
    case ORACLE_IEEE:
        quiet = 1u << (format->mantissa_bits - 1);
        return oracle_signed(format, negative, format->finite + quiet + (uint32_t)(payload / (ORACLE_QUIET / quiet)));
    case ORACLE_ONE_NAN: return oracle_signed(format, negative, format->finite);
    case ORACLE_POWERS: return format->finite;
    case ORACLE_FNUZ: return 0x80;
    case ORACLE_FINITE: return oracle_max(format, 0);
    case ORACLE_INTEGERS: break;
    }
    return 0;
}

/* Where a double lies among the values of a format. */
typedef struct oracle_place {
    const oracle_format *format;
    int negative, is_nan, is_inf;
    uint32_t nan_code; /* what becomes of it when is_nan */
    uint32_t lower;    /* the largest magnitude whose value is not above |x|, or the one after the largest finite one */
    int exact;         /* |x| is that value */
    int half;          /* |x| is -1 below, 0 at, 1 above the middle between that value and the next */
    uint32_t fraction; /* floor(2^32 * (|x| - lower) / (next - lower)) */
} oracle_place;

ORACLE_FUNCTION oracle_place oracle_locate(const oracle_format *format, uint64_t x) {
    oracle_place place;
    uint64_t magnitude = x % ORACLE_SIGN, middle;
    uint32_t low = 0, high, beyond;
    memset(&place, 0, sizeof place);
    place.format = format;
    place.negative = x >= ORACLE_SIGN;
    place.is_nan = magnitude > ORACLE_INF;
    place.is_inf = magnitude == ORACLE_INF;
    if (format->family == ORACLE_POWERS && (place.negative || magnitude == 0))
        place.is_nan = 1;
    place.nan_code = oracle_nan(format, place.negative, magnitude % ORACLE_QUIET);
    if (place.is_nan || place.is_inf)
        return place;
    if (magnitude < oracle_bits(oracle_value(format, 0))) { /* a power too small to have is the smallest */
        place.exact = 1;
        place.half = -1;
        return place;
    }
    beyond = oracle_max(format, place.negative) + 1;
    high = beyond + 1;
    while (high - low > 1) { /* value(low) <= |x| < value(high) */
        uint32_t between = low + (high - low) / 2;
        if (oracle_bits(oracle_value(format, between)) <= magnitude)
            low = between;
        else
            high = between;
    }
    place.lower = low;
    if (low < beyond) {
        double lower = oracle_value(format, low), upper = oracle_value(format, low + 1);
        place.exact = oracle_bits(lower) == magnitude;
        middle = oracle_bits(oracle_middle(format, low));
        place.half = magnitude < middle ? -1 : magnitude > middle;
        place.fraction = (uint32_t)((oracle_double(magnitude) - lower) / (upper - lower) * 4294967296.0);
    }
    return place;
}

ORACLE_FUNCTION uint32_t oracle_round(const oracle_place *place, mixprec_round round, mixprec_overflow overflow,
                                      uint32_t random) {
    const oracle_format *format = place->format;
    uint32_t max = oracle_max(format, place->negative);
    /* With one significant bit, all powers are odd: of two equally near ones, IEEE 754-2019, 4.3.1, takes the
       larger. */
    int odd = place->lower % 2 == 1 || format->family == ORACLE_POWERS;
    int outward = 0; /* to the neighbour farther from zero */
    if (place->is_nan)
        return place->nan_code;
    if (place->is_inf)
        return overflow == MIXPREC_OVERFLOW_SATURATE ? oracle_signed(format, place->negative, max)
                                                     : oracle_beyond(format, place->negative);
    switch (round) {
    case MIXPREC_ROUND_NEAREST_EVEN: outward = place->half > 0 || (place->half == 0 && odd); break;
    case MIXPREC_ROUND_NEAREST_AWAY: outward = place->half >= 0; break;
    case MIXPREC_ROUND_TOWARD_ZERO: break;
    case MIXPREC_ROUND_UP: outward = !place->negative && !place->exact; break;
    case MIXPREC_ROUND_DOWN: outward = place->negative && !place->exact; break;
    case MIXPREC_ROUND_STOCHASTIC: outward = (uint64_t)place->fraction + random >= 4294967296u; break;
    }
    if (place->lower > max)
        outward = round == MIXPREC_ROUND_UP     ? !place->negative
                  : round == MIXPREC_ROUND_DOWN ? place->negative
                                                : round != MIXPREC_ROUND_TOWARD_ZERO;
    if (place->lower > max || (place->lower == max && outward)) /* overflow */
        return outward && overflow == MIXPREC_OVERFLOW_IEEE ? oracle_beyond(format, place->negative)
                                                            : oracle_signed(format, place->negative, max);
    return oracle_signed(format, place->negative, place->lower + (uint32_t)outward);
}

/* Rounded to nearest even, from the pattern of a float. */
ORACLE_FUNCTION uint32_t oracle_nearest(const oracle_format *format, mixprec_overflow overflow, uint32_t float_bits) {
    oracle_place place = oracle_locate(format, oracle_decode(oracle_format_of(MIXPREC_F32), float_bits));
    return oracle_round(&place, MIXPREC_ROUND_NEAREST_EVEN, overflow, 0);
}

/* Fills codes[first .. last] for the floats block * 2^16 + index. Within a block the codes rise in steps (their sign
   aside), or change once, as where NaN follows Inf: so where the two ends agree, all between them do. */
ORACLE_FUNCTION void oracle_fill_(const oracle_format *format, mixprec_overflow overflow, uint32_t block,
                                  uint32_t first, uint32_t last, uint16_t *codes) {
    uint32_t between, i;
    if (codes[first] == codes[last]) {
        for (i = first; i < last; i++)
            codes[i] = codes[first];
    } else if (last - first > 1) {
        between = first + (last - first) / 2;
        codes[between] = (uint16_t)oracle_nearest(format, overflow, block * 65536 + between);
        oracle_fill_(format, overflow, block, first, between, codes);
        oracle_fill_(format, overflow, block, between, last, codes);
    }
}

/* Rounded to nearest even: the 2^16 floats whose upper half is `block`. For formats of 16 bits or fewer. */
ORACLE_FUNCTION void oracle_block(const oracle_format *format, mixprec_overflow overflow, uint32_t block,
                                  uint16_t *codes) {
    codes[0] = (uint16_t)oracle_nearest(format, overflow, block * 65536);
    codes[65535] = (uint16_t)oracle_nearest(format, overflow, block * 65536 + 65535);
    oracle_fill_(format, overflow, block, 0, 65535, codes);
}

/* Random numbers for tests: splitmix64 (Steele, Lea, Flood, OOPSLA 2014). */
static uint64_t oracle_random_state = 1;
ORACLE_FUNCTION uint64_t oracle_random(void) {
    uint64_t x = oracle_random_state += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* Point `index` of the points where rounding to a format turns: all its values >= 0, the first one beyond its range,
   and the middles between them. There are oracle_point_count of them. */
ORACLE_FUNCTION uint32_t oracle_point_count(const oracle_format *format) {
    return 2 * format->finite + 1;
}
ORACLE_FUNCTION double oracle_point(const oracle_format *format, uint32_t index) {
    return index % 2 ? oracle_middle(format, index / 2) : oracle_value(format, index / 2);
}

#endif
