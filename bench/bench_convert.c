/* The room CONVERT: bulk conversions between f32 and each other format, both ways; narrowing also with saturation (fp8)
   and with stochastic rounding. */
#include "bench.h"

static void convert(const bench_stream *row, void *dst, const void *src, size_t n, mixprec_isa isa) {
    mixprec_convert_options options;
    memset(&options, 0, sizeof(options));
    options.round = row->round;
    options.overflow = row->overflow;
    options.seed = 1;
    options.isa = isa;
    bench_check(mixprec_convert_ex(dst, row->dst, src, row->src, n, &options));
}

#define ROW(name, dtype, dst, src, round, overflow)                                                                    \
    { name, MIXPREC_##dtype, MIXPREC_##dst, MIXPREC_##src, MIXPREC_ROUND_##round, MIXPREC_OVERFLOW_##overflow }
#define FROM_F32(name, dtype, round, overflow) ROW(name, dtype, dtype, F32, round, overflow)
#define TO_F32(dtype) ROW("to-f32", dtype, F32, dtype, NEAREST_EVEN, IEEE)

void bench_convert(void) {
    static const bench_stream rows[] = {
        FROM_F32("from-f32", F16, NEAREST_EVEN, IEEE),
        FROM_F32("from-f32", BF16, NEAREST_EVEN, IEEE),
        FROM_F32("from-f32", E4M3, NEAREST_EVEN, IEEE),
        FROM_F32("from-f32", E5M2, NEAREST_EVEN, IEEE),
        FROM_F32("from-f32", F64, NEAREST_EVEN, IEEE),
        FROM_F32("from-f32-saturating", E4M3, NEAREST_EVEN, SATURATE),
        FROM_F32("from-f32-saturating", E5M2, NEAREST_EVEN, SATURATE),
        FROM_F32("from-f32-stochastic", F16, STOCHASTIC, IEEE),
        FROM_F32("from-f32-stochastic", BF16, STOCHASTIC, IEEE),
        FROM_F32("from-f32-stochastic", E4M3, STOCHASTIC, IEEE),
        TO_F32(F16),
        TO_F32(BF16),
        TO_F32(E4M3),
        TO_F32(E5M2),
        TO_F32(F64),
    };
    bench_streams("convert", "Conversion", rows, COUNT_OF(rows), convert);
}
