/* The eight scalar conversions as external functions: built for Cortex-M0+ at -Os, they must fit in 768 bytes and need
   no symbol from any library (make check-size). */
#define MIXPREC_NO_STDLIB
#include "../mixprec.h"

float size_f16_to_f32(mixprec_f16 x);
float size_bf16_to_f32(mixprec_bf16 x);
float size_e4m3_to_f32(mixprec_e4m3 x);
float size_e5m2_to_f32(mixprec_e5m2 x);
mixprec_f16 size_f32_to_f16(float x);
mixprec_bf16 size_f32_to_bf16(float x);
mixprec_e4m3 size_f32_to_e4m3(float x);
mixprec_e5m2 size_f32_to_e5m2(float x);

float size_f16_to_f32(mixprec_f16 x) {
    return mixprec_f16_to_f32(x);
}
float size_bf16_to_f32(mixprec_bf16 x) {
    return mixprec_bf16_to_f32(x);
}
float size_e4m3_to_f32(mixprec_e4m3 x) {
    return mixprec_e4m3_to_f32(x);
}
float size_e5m2_to_f32(mixprec_e5m2 x) {
    return mixprec_e5m2_to_f32(x);
}
mixprec_f16 size_f32_to_f16(float x) {
    return mixprec_f32_to_f16(x);
}
mixprec_bf16 size_f32_to_bf16(float x) {
    return mixprec_f32_to_bf16(x);
}
mixprec_e4m3 size_f32_to_e4m3(float x) {
    return mixprec_f32_to_e4m3(x);
}
mixprec_e5m2 size_f32_to_e5m2(float x) {
    return mixprec_f32_to_e5m2(x);
}
