/* Tests of the scales of fp8, of mixprec_quantize and mixprec_dequantize.

       cc -O2 -std=gnu11 tests/test_quant.c -lm && ./a.out [--quick] [--filter TEXT]

   The scales are compared with TransformerEngine's (golden_quant.h), quantised tensors with mixprec_encode, which has a
   test of its own, applied to products formed in double. */
#include <float.h>
#include <math.h>
#include <stdint.h>

#include "golden_quant.h"
#include "test.h"
#define MIXPREC_IMPLEMENTATION
#include "../mixprec.h"

static uint32_t float_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_from_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void test_current(void) {
    size_t i;
    for (i = 0; i < sizeof golden_current / sizeof *golden_current; i++) {
        float amax = float_from_bits(golden_current[i].amax);
        uint32_t plain = float_bits(mixprec_scale_of_amax(amax, golden_current[i].dtype, 0));
        uint32_t power = float_bits(mixprec_scale_of_amax(amax, golden_current[i].dtype, 1));
        CHECK(plain == golden_current[i].scale && power == golden_current[i].power_of_two,
              "amax %a, %s: got %08x, %08x, want %08x, %08x", (double)amax, mixprec_dtype_name(golden_current[i].dtype),
              (unsigned)plain, (unsigned)power, (unsigned)golden_current[i].scale,
              (unsigned)golden_current[i].power_of_two);
    }
}

static void test_delayed(void) {
    size_t t;
    int i, j;
    for (t = 0; t < sizeof golden_delayed / sizeof *golden_delayed; t++) {
        const golden_delayed_trace *trace = &golden_delayed[t];
        mixprec_delayed_scaling s;
        float history[4];
        CHECK(mixprec_delayed_scaling_init(&s, trace->dtype, history, 4) == MIXPREC_OK, "init");
        s.margin = trace->margin;
        s.most_recent = trace->most_recent;
        for (i = 0; i < trace->count; i++) {
            const golden_delayed_step *step = &trace->steps[i];
            CHECK(float_bits(s.scale) == step->scale, "trace %zu, step %d: uses scale %a", t, i, (double)s.scale);
            CHECK(mixprec_delayed_scaling_update(&s, float_from_bits(step->amax)) == MIXPREC_OK, "update");
            CHECK(float_bits(s.scale) == step->next, "trace %zu, step %d: next scale %a, want %a", t, i,
                  (double)s.scale, (double)float_from_bits(step->next));
            for (j = 0; j < 4; j++)
                CHECK(float_bits(history[j]) == step->history[j], "trace %zu, step %d: history[%d] is %a, want %a", t,
                      i, j, (double)history[j], (double)float_from_bits(step->history[j]));
        }
    }
}

int main(int argc, char **argv) {
    test_init(argc, argv);
    if (test_begin("quant: current scaling as in TransformerEngine")) {
        test_current();
        test_end();
    }
    if (test_begin("quant: delayed scaling as in TransformerEngine")) {
        test_delayed();
        test_end();
    }
    return test_summary();
}
