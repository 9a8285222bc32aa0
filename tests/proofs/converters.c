/* What `make prove` proves: the scalar conversions of mixprec.h, each with one format and one rounding mode fixed, the
   bits of numbers as arguments and results, and everything else free. prove.py compiles this file to LLVM IR and finds
   the functions by their names. */
#include "mixprec.h"

/* overflow is free here. mixprec_encode is the f64 converter as users reach it. */
#define ENCODER_OF_MODE(name, dtype, mode_name, mode)                                                                  \
    extern uint32_t encode_f64_to_##name##_##mode_name(uint64_t bits, uint32_t overflow, uint32_t random);             \
    uint32_t encode_f64_to_##name##_##mode_name(uint64_t bits, uint32_t overflow, uint32_t random) {                   \
        return mixprec_encode(mixprec_f64_from_bits_(bits), dtype, mode, (mixprec_overflow)overflow, random);          \
    }
#define NARROWER_OF_MODE(name, dtype, mode_name, mode)                                                                 \
    extern uint32_t narrow_f32_to_##name##_##mode_name(uint32_t bits, uint32_t overflow, uint32_t random);             \
    uint32_t narrow_f32_to_##name##_##mode_name(uint32_t bits, uint32_t overflow, uint32_t random) {                   \
        return mixprec_narrow_f32_(bits, &mixprec_layout_##name##_, mode, (mixprec_overflow)overflow, random);         \
    }
#define IN_EVERY_MODE(X, name, dtype)                                                                                  \
    X(name, dtype, nearest_even, MIXPREC_ROUND_NEAREST_EVEN)                                                           \
    X(name, dtype, toward_zero, MIXPREC_ROUND_TOWARD_ZERO)                                                             \
    X(name, dtype, up, MIXPREC_ROUND_UP)                                                                               \
    X(name, dtype, down, MIXPREC_ROUND_DOWN)                                                                           \
    X(name, dtype, nearest_away, MIXPREC_ROUND_NEAREST_AWAY)                                                           \
    X(name, dtype, stochastic, MIXPREC_ROUND_STOCHASTIC)

#define DECODER(name, dtype)                                                                                           \
    extern uint64_t decode_##name##_to_f64(uint32_t code);                                                             \
    uint64_t decode_##name##_to_f64(uint32_t code) {                                                                   \
        return mixprec_f64_bits_(mixprec_decode(code, dtype));                                                         \
    }

#define CONVERTERS_OF_FORMAT(name, dtype, ...)                                                                         \
    IN_EVERY_MODE(NARROWER_OF_MODE, name, dtype)                                                                       \
    IN_EVERY_MODE(ENCODER_OF_MODE, name, dtype)                                                                        \
    DECODER(name, dtype)
MIXPREC_FORMATS_(CONVERTERS_OF_FORMAT)
IN_EVERY_MODE(ENCODER_OF_MODE, e8m0, MIXPREC_E8M0)
IN_EVERY_MODE(ENCODER_OF_MODE, i8, MIXPREC_I8)
DECODER(e8m0, MIXPREC_E8M0)

/* The functions that users call most; overflow, 0 or 1, picks one of a pair. i8 is left out: the proof for f32 takes a
   minute. */
#define PUBLIC_CONVERTERS(name, storage)                                                                               \
    extern uint32_t public_f32_to_##name(uint32_t bits, uint32_t overflow, uint32_t random);                           \
    uint32_t public_f32_to_##name(uint32_t bits, uint32_t overflow, uint32_t random) {                                 \
        float x = mixprec_f32_from_bits_(bits);                                                                        \
        (void)random;                                                                                                  \
        return overflow ? mixprec_f32_to_##name##_sat(x).bits : mixprec_f32_to_##name(x).bits;                         \
    }                                                                                                                  \
    extern uint32_t public_f64_to_##name(uint64_t bits, uint32_t overflow, uint32_t random);                           \
    uint32_t public_f64_to_##name(uint64_t bits, uint32_t overflow, uint32_t random) {                                 \
        double x = mixprec_f64_from_bits_(bits);                                                                       \
        (void)random;                                                                                                  \
        return overflow ? mixprec_f64_to_##name##_sat(x).bits : mixprec_f64_to_##name(x).bits;                         \
    }                                                                                                                  \
    extern uint32_t public_##name##_to_f32(uint32_t code);                                                             \
    uint32_t public_##name##_to_f32(uint32_t code) {                                                                   \
        mixprec_##name x;                                                                                              \
        x.bits = (storage)code;                                                                                        \
        return mixprec_f32_bits_(mixprec_##name##_to_f32(x));                                                          \
    }                                                                                                                  \
    extern uint64_t public_##name##_to_f64(uint32_t code);                                                             \
    uint64_t public_##name##_to_f64(uint32_t code) {                                                                   \
        mixprec_##name x;                                                                                              \
        x.bits = (storage)code;                                                                                        \
        return mixprec_f64_bits_(mixprec_##name##_to_f64(x));                                                          \
    }
PUBLIC_CONVERTERS(f16, uint16_t)
PUBLIC_CONVERTERS(bf16, uint16_t)
PUBLIC_CONVERTERS(e4m3, uint8_t)
PUBLIC_CONVERTERS(e5m2, uint8_t)
PUBLIC_CONVERTERS(e4m3fnuz, uint8_t)
PUBLIC_CONVERTERS(e5m2fnuz, uint8_t)
PUBLIC_CONVERTERS(e4m3ieee, uint8_t)
PUBLIC_CONVERTERS(e3m4, uint8_t)
PUBLIC_CONVERTERS(e2m3, uint8_t)
PUBLIC_CONVERTERS(e3m2, uint8_t)
PUBLIC_CONVERTERS(e2m1, uint8_t)
PUBLIC_CONVERTERS(e8m0, uint8_t)
