/* The room SCALER: gradients of each format are unscaled to f32 and checked for Inf and NaN. */
#include "bench.h"

static void unscale(const bench_stream *row, void *dst, const void *src, size_t n, mixprec_isa isa) {
    mixprec_scaler scaler;
    mixprec_scaler_init(&scaler);
    if (mixprec_scaler_unscale_ex(&scaler, dst, src, row->src, n, isa) != 0) {
        fprintf(stderr, "bench: unscaling found an overflow, or an error, in sound gradients\n");
        exit(1);
    }
}

void bench_scaler(void) {
    bench_stream rows[6];
    int i;
    memset(rows, 0, sizeof(rows));
    for (i = 0; i < 6; i++) {
        rows[i].name = "unscale";
        rows[i].dtype = rows[i].src = bench_dtypes[i];
        rows[i].dst = MIXPREC_F32;
    }
    bench_streams("scaler", "Unscale and check gradients", rows, 6, unscale);
}
