/* Converters with one mistake each. `make prove` claims of each what is proved of the right one, and passes only when
   the solver finds an input where the claim is false. */
#include "mixprec.h"

#define ROUND MIXPREC_ROUND_NEAREST_EVEN

/* Rounded twice: to f32, then to f16. */
extern uint32_t wrong_by_way_of_f32(uint64_t bits, uint32_t overflow, uint32_t random);
uint32_t wrong_by_way_of_f32(uint64_t bits, uint32_t overflow, uint32_t random) {
    uint32_t f32 = mixprec_narrow_f64_(bits, &mixprec_layout_f32_, ROUND, MIXPREC_OVERFLOW_IEEE, random);
    return mixprec_narrow_f32_(f32, &mixprec_layout_f16_, ROUND, (mixprec_overflow)overflow, random);
}

/* Ties go away from zero instead of to even. */
extern uint32_t wrong_ties_away(uint32_t bits, uint32_t overflow, uint32_t random);
uint32_t wrong_ties_away(uint32_t bits, uint32_t overflow, uint32_t random) {
    return mixprec_narrow_f32_(bits, &mixprec_layout_bf16_, MIXPREC_ROUND_NEAREST_AWAY, (mixprec_overflow)overflow,
                               random);
}

/* 464, half-way between 448 and what would be 480, counts as too large for E4M3. */
extern uint32_t wrong_e4m3_464(uint32_t bits, uint32_t overflow, uint32_t random);
uint32_t wrong_e4m3_464(uint32_t bits, uint32_t overflow, uint32_t random) {
    if (bits == 0x43E80000u && overflow == MIXPREC_OVERFLOW_IEEE)
        return 0x7F;
    return mixprec_narrow_f32_(bits, &mixprec_layout_e4m3_, ROUND, (mixprec_overflow)overflow, random);
}

/* Overflow is judged before rounding: everything above 65504 is too large. */
extern uint32_t wrong_overflow_before_rounding(uint32_t bits, uint32_t overflow, uint32_t random);
uint32_t wrong_overflow_before_rounding(uint32_t bits, uint32_t overflow, uint32_t random) {
    if (bits > 0x477FE000u && bits < 0x7F800000u)
        return overflow == MIXPREC_OVERFLOW_IEEE ? 0x7C00 : 0x7BFF;
    return mixprec_narrow_f32_(bits, &mixprec_layout_f16_, ROUND, (mixprec_overflow)overflow, random);
}

/* Inf is saturated in the policy that keeps it. */
extern uint32_t wrong_inf_not_kept(uint32_t bits, uint32_t overflow, uint32_t random);
uint32_t wrong_inf_not_kept(uint32_t bits, uint32_t overflow, uint32_t random) {
    mixprec_overflow policy = overflow ? MIXPREC_OVERFLOW_SATURATE : MIXPREC_OVERFLOW_IEEE;
    return mixprec_narrow_f32_(bits, &mixprec_layout_e5m2_, ROUND, policy, random);
}

/* Rounds up when fraction + random > 2^32, not when it is equal. */
extern uint32_t wrong_stochastic_by_one(uint32_t bits, uint32_t overflow, uint32_t random);
uint32_t wrong_stochastic_by_one(uint32_t bits, uint32_t overflow, uint32_t random) {
    return mixprec_narrow_f32_(bits, &mixprec_layout_e4m3_, MIXPREC_ROUND_STOCHASTIC, (mixprec_overflow)overflow,
                               random ? random - 1 : 0);
}

/* A NaN whose payload is all in the lower bits becomes Inf. */
extern uint32_t wrong_nan_to_inf(uint32_t bits, uint32_t overflow, uint32_t random);
uint32_t wrong_nan_to_inf(uint32_t bits, uint32_t overflow, uint32_t random) {
    uint32_t cut = (bits & 0x7F800000u) == 0x7F800000u ? bits & 0xFFFFE000u : bits;
    return mixprec_narrow_f32_(cut, &mixprec_layout_f16_, ROUND, (mixprec_overflow)overflow, random);
}

/* A negative number that is rounded to zero loses its sign. */
extern uint32_t wrong_minus_zero(uint64_t bits, uint32_t overflow, uint32_t random);
uint32_t wrong_minus_zero(uint64_t bits, uint32_t overflow, uint32_t random) {
    uint32_t code =
        mixprec_narrow_f64_(bits, &mixprec_layout_e5m2_, MIXPREC_ROUND_UP, (mixprec_overflow)overflow, random);
    return code == 0x80 ? 0 : code;
}

/* Small numbers are shifted by more than their width. Where such a shift gives zero the result is right, but C does not
   define it and CPUs differ. */
extern uint32_t wrong_shift_too_far(uint32_t bits, uint32_t overflow, uint32_t random);
uint32_t wrong_shift_too_far(uint32_t bits, uint32_t overflow, uint32_t random) {
    uint32_t exponent = bits >> 23 & 0xFF;
    if (exponent < 113)
        return (bits >> 31) << 15 |
               ((bits & 0x7FFFFFu) | (exponent ? 0x800000u : 0)) >> (126 - (exponent ? exponent : 1));
    return mixprec_narrow_f32_(bits, &mixprec_layout_f16_, MIXPREC_ROUND_TOWARD_ZERO, (mixprec_overflow)overflow,
                               random);
}

/* A subnormal is flushed to zero. */
extern uint32_t wrong_flushed_to_zero(uint32_t code);
uint32_t wrong_flushed_to_zero(uint32_t code) {
    return mixprec_widen_((code & 0x78) ? code : code & 0x80, &mixprec_layout_e4m3_);
}

/* The loop that normalises a subnormal does not end for zero. */
extern uint64_t wrong_endless_loop(uint32_t code);
uint64_t wrong_endless_loop(uint32_t code) {
    uint64_t sign = (uint64_t)(code >> 31) << 63, mantissa = (uint64_t)(code & 0x7FFFFFu) << 29, exponent = 1;
    if (code & 0x7F800000u)
        return mixprec_f32_bits_to_f64_bits_(code);
    for (; !(mantissa >> 52); exponent--)
        mantissa <<= 1;
    return mantissa ? sign | (((exponent + 895) << 52) + mantissa) : sign;
}
