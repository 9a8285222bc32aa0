/* The room CONVERT: bulk conversions between f32 and each other format, both ways. */
#include "bench.h"

static void convert(void *dst, mixprec_dtype dst_type, const void *src, mixprec_dtype src_type, size_t n,
                    mixprec_isa isa) {
    mixprec_convert_options options;
    memset(&options, 0, sizeof(options));
    options.isa = isa;
    bench_check(mixprec_convert_ex(dst, dst_type, src, src_type, n, &options));
}

void bench_convert(void) {
    static const bench_stream rows[] = {
        {"from-f32", MIXPREC_F16, MIXPREC_F16, MIXPREC_F32},   {"from-f32", MIXPREC_BF16, MIXPREC_BF16, MIXPREC_F32},
        {"from-f32", MIXPREC_E4M3, MIXPREC_E4M3, MIXPREC_F32}, {"from-f32", MIXPREC_E5M2, MIXPREC_E5M2, MIXPREC_F32},
        {"from-f32", MIXPREC_F64, MIXPREC_F64, MIXPREC_F32},   {"to-f32", MIXPREC_F16, MIXPREC_F32, MIXPREC_F16},
        {"to-f32", MIXPREC_BF16, MIXPREC_F32, MIXPREC_BF16},   {"to-f32", MIXPREC_E4M3, MIXPREC_F32, MIXPREC_E4M3},
        {"to-f32", MIXPREC_E5M2, MIXPREC_F32, MIXPREC_E5M2},   {"to-f32", MIXPREC_F64, MIXPREC_F32, MIXPREC_F64},
    };
    bench_streams("convert", "Conversion", rows, COUNT_OF(rows), convert);
}
