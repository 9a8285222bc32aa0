/* Tests of the scales of fp8, of mixprec_quantize and mixprec_dequantize.

       cc -O2 -std=gnu11 tests/test_quant.c -lm && ./a.out [--quick] [--filter TEXT]

   The scales are compared with TransformerEngine's (golden_quant.h), quantised tensors with mixprec_encode, which has a
   test of its own, applied to products formed in double. */
#include <float.h>
#include <math.h>
#include <stdint.h>

#include "golden_quant.h"
#include "test.h"
#include "library.h"
#include "codes.h"
#include "environment.h"

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

/* NaN gives way to any number, wherever it stands in the history. */
static void test_history(void) {
    const float amaxes[][3] = {{1, NAN, 2}, {NAN, 1, 2}, {2, NAN, 1}, {2, 1, NAN}, {NAN, NAN, 2}};
    size_t i, j;
    for (i = 0; i < 5; i++) {
        mixprec_delayed_scaling s = {0};
        float history[4];
        CHECK(mixprec_delayed_scaling_init(&s, MIXPREC_E4M3, history, 4) == MIXPREC_OK, "init");
        for (j = 0; j < 3; j++)
            CHECK(mixprec_delayed_scaling_update(&s, amaxes[i][j]) == MIXPREC_OK, "update");
        CHECK(s.scale == 224, "case %zu: scale %g", i, (double)s.scale);
        CHECK(mixprec_delayed_scaling_update(&s, -7) == MIXPREC_OK && s.scale == 64, "-7: scale %g", (double)s.scale);
        CHECK(history[3] == 7, "-7: history %g", (double)history[3]);
    }
}

static void test_scale_edges(void) {
    const float none[] = {0, -0.0f, -1, NAN, HUGE_VALF, -HUGE_VALF};
    static const mixprec_dtype others[] = {MIXPREC_NONE, MIXPREC_F32, MIXPREC_F64, MIXPREC_E8M0};
    size_t i;
    int d;
    for (d = 1; d < MIXPREC_DTYPE_COUNT; d++)
        for (i = 0; i < sizeof none / sizeof *none; i++)
            CHECK(mixprec_scale_of_amax(none[i], (mixprec_dtype)d, (int)(i & 1)) == 1, "amax %g, %s", (double)none[i],
                  mixprec_dtype_name((mixprec_dtype)d));
    for (i = 0; i < sizeof others / sizeof *others; i++)
        CHECK(mixprec_scale_of_amax(0.1f, others[i], 0) == 1, "%s", mixprec_dtype_name(others[i]));
    CHECK(mixprec_scale_of_amax(12.7f, MIXPREC_I8, 0) == 127 / 12.7f, "i8");
    CHECK(mixprec_scale_of_amax(2, MIXPREC_F16, 0) == 32752, "f16");
    CHECK(mixprec_scale_of_amax(2, MIXPREC_E2M1, 0) == 3 && mixprec_scale_of_amax(2, MIXPREC_E2M1, 1) == 2, "fp4");
}

/* ---- whole matrices ---- */

#define MOST 100000
static const mixprec_dtype src_types[] = {MIXPREC_F32, MIXPREC_F16, MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
static const mixprec_dtype dst_types[] = {MIXPREC_E4M3,     MIXPREC_E5M2,     MIXPREC_F16,  MIXPREC_BF16,
                                          MIXPREC_E4M3FNUZ, MIXPREC_E5M2FNUZ, MIXPREC_E3M4, MIXPREC_E2M3,
                                          MIXPREC_E3M2,     MIXPREC_E4M3IEEE, MIXPREC_I8,   MIXPREC_E2M1};
static const mixprec_isa all_isas[] = {MIXPREC_ISA_AUTO, MIXPREC_ISA_C, MIXPREC_ISA_AVX2, MIXPREC_ISA_AVX512,
                                       MIXPREC_ISA_NEON};
#define ISA_COUNT 5
#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static double src[MOST / 2], dst[MOST / 4], want[MOST / 4];
static float scales[MOST], want_scales[MOST];

/* The leading dimension that 0 means. */
static size_t ld_of(mixprec_dtype type, size_t columns) {
    return columns + (type == MIXPREC_E2M1 ? columns % 2 : 0);
}

static mixprec_quantize_desc desc_of(size_t rows, size_t columns, mixprec_dtype src_type, mixprec_dtype dst_type) {
    mixprec_quantize_desc d;
    memset(&d, 0, sizeof d);
    d.rows = rows;
    d.columns = columns;
    d.src = src;
    d.src_type = src_type;
    d.dst = dst;
    d.dst_type = dst_type;
    d.scales = scales;
    return d;
}

/* Numbers of a few magnitudes; with special, zeros for whole stretches, and some NaN and Inf. */
static void fill(const mixprec_quantize_desc *d, uint64_t seed, int special) {
    size_t ld = d->src_ld ? d->src_ld : d->columns, i;
    for (i = 0; i < d->rows * ld; i++) {
        uint32_t random = mixprec_random_bits(seed, i);
        double x = ((double)random - 2147483648.0) * (random & 64 ? 0x1p-31 : random & 128 ? 0x1p-40 : 0x1p-24);
        if (special)
            x = i / 100 % 3 == 1 ? 0 : random % 301 == 0 ? (double)NAN : random % 307 == 0 ? -HUGE_VAL : x;
        set_code((void *)(uintptr_t)d->src, d->src_type, i,
                 mixprec_encode(x, d->src_type, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0));
    }
}

/* The contract, element by element. The scales that are given are in block_scales. */
static float oracle(const mixprec_quantize_desc *d, void *codes, float *block_scales) {
    size_t br = d->block_rows ? d->block_rows : d->rows, bc = d->block_columns ? d->block_columns : d->columns;
    size_t src_ld = d->src_ld ? d->src_ld : d->columns, dst_ld = d->dst_ld ? d->dst_ld : ld_of(d->dst_type, d->columns),
           bi, bj, i, j;
    size_t scales_ld = d->scales_ld ? d->scales_ld : (d->columns + bc - 1) / bc;
    double largest = 0;
    for (bi = 0; bi * br < d->rows; bi++)
        for (bj = 0; bj * bc < d->columns; bj++) {
            double amax = 0;
            float scale;
            for (i = bi * br; i < d->rows && i < (bi + 1) * br; i++)
                for (j = bj * bc; j < d->columns && j < (bj + 1) * bc; j++) {
                    double x = fabs(mixprec_decode(code_at(d->src, d->src_type, i * src_ld + j), d->src_type));
                    if (!(x <= amax)) /* NaN stays */
                        amax = isnan(amax) ? amax : x;
                }
            if (!(amax <= largest))
                largest = isnan(largest) ? largest : amax;
            if (d->scales_given) {
                const float given = block_scales[bi * scales_ld + bj];
                scale = given > 1 / FLT_MAX ? 1.0f / given : FLT_MAX;
            } else {
                scale = d->scale ? *d->scale : mixprec_scale_of_amax((float)amax, d->dst_type, d->power_of_two);
                block_scales[bi * scales_ld + bj] = 1.0f / scale;
            }
            for (i = bi * br; i < d->rows && i < (bi + 1) * br; i++)
                for (j = bj * bc; j < d->columns && j < (bj + 1) * bc; j++) {
                    double x = mixprec_decode(code_at(d->src, d->src_type, i * src_ld + j), d->src_type);
                    volatile float product = (float)(x * (double)scale);
                    set_code(codes, d->dst_type, i * dst_ld + j,
                             mixprec_encode((double)product, d->dst_type, d->round, MIXPREC_OVERFLOW_SATURATE,
                                            d->round == MIXPREC_ROUND_STOCHASTIC
                                                ? mixprec_random_bits(d->seed, d->offset + i * d->columns + j)
                                                : 0));
                }
        }
    return (float)largest;
}

static int is_nan_code(uint32_t code, mixprec_dtype type) {
    return isnan(mixprec_decode(code, type)) != 0;
}

static float given_scales[MOST];

static void check_quantize(const mixprec_quantize_desc *desc) {
    mixprec_quantize_desc d = *desc;
    size_t count = sizeof dst / mixprec_dtype_size(d.dst_type) * (d.dst_type == MIXPREC_E2M1 ? 2 : 1), i, k;
    float amax, want_amax;
    memset(want, 0x5A, sizeof want);
    memset(want_scales, 0x5A, sizeof want_scales);
    if (d.scales_given)
        memcpy(want_scales, given_scales, sizeof scales);
    want_amax = oracle(&d, want, want_scales);
    for (k = 0; k < 2 * ISA_COUNT;
         k++) { /* each path with amax or without, as the shape says; with a given scale both */
        size_t wrong = count;
        d.isa = all_isas[k / 2];
        if (d.isa != MIXPREC_ISA_AUTO && !mixprec_isa_available(d.isa))
            continue;
        if (!d.scale && (k + k / 2 + d.rows + d.columns) % 2)
            continue;
        d.amax = k % 2 ? &amax : NULL;
        amax = -1;
        memset(dst, 0x5A, sizeof dst);
        memset(scales, 0x5A, sizeof scales);
        if (d.scales_given)
            memcpy(scales, given_scales, sizeof scales);
        CHECK_STATUS("quantize", mixprec_quantize(&d), MIXPREC_OK);
        for (i = memcmp(dst, want, sizeof dst) ? 0 : count; i < count && wrong == count; i++) {
            uint32_t a = code_at(dst, d.dst_type, i), b = code_at(want, d.dst_type, i);
            if (a != b && !(is_nan_code(a, d.dst_type) && is_nan_code(b, d.dst_type)))
                wrong = i;
        }
        CHECK(wrong == count, "%s, %s -> %s, %zu x %zu, blocks %zu x %zu: code %zu is %x, want %x",
              mixprec_isa_name(d.isa), mixprec_dtype_name(d.src_type), mixprec_dtype_name(d.dst_type), d.rows,
              d.columns, d.block_rows, d.block_columns, wrong, (unsigned)code_at(dst, d.dst_type, wrong % count),
              (unsigned)code_at(want, d.dst_type, wrong % count));
        CHECK(!memcmp(scales, want_scales, sizeof scales), "%s, %s -> %s, %zu x %zu, blocks %zu x %zu: scales differ",
              mixprec_isa_name(d.isa), mixprec_dtype_name(d.src_type), mixprec_dtype_name(d.dst_type), d.rows,
              d.columns, d.block_rows, d.block_columns);
        if (d.amax)
            CHECK(float_bits(amax) == float_bits(want_amax) || (isnan(amax) && isnan(want_amax)), "amax %a, want %a",
                  (double)amax, (double)want_amax);
    }
}

static void test_quantize(void) {
    static const size_t blocks[][2] = {{0, 0},  {1, 0}, {0, 1},   {1, 128}, {128, 128}, {1, 32},
                                       {1, 16}, {3, 5}, {2, 300}, {1, 1},   {1, 301}};
    static const size_t sizes[][2] = {{1, 1}, {1, 255}, {2, 2115}, {3, 64}, {130, 131}, {7, 613}, {20, 33}};
    size_t b, z, s, t;
    for (b = 0; b < COUNT_OF(blocks); b++)
        for (z = 0; z < COUNT_OF(sizes); z++)
            for (s = 0; s < COUNT_OF(src_types); s++)
                for (t = 0; t < COUNT_OF(dst_types); t++) {
                    mixprec_quantize_desc d = desc_of(sizes[z][0], sizes[z][1], src_types[s], dst_types[t]);
                    if ((test_quick || z == 4) && (b + z + s + t) % 5)
                        continue;
                    d.block_rows = blocks[b][0];
                    d.block_columns = blocks[b][1];
                    d.power_of_two = (int)((b + s) % 2);
                    d.src_ld = z % 2 ? d.columns + 3 : 0;
                    d.dst_ld = z % 3 ? 0 : ld_of(d.dst_type, d.columns + 1);
                    d.scales_ld = z % 3 == 1 ? 700 : 0;
                    d.round = (b + z + t) % 3 ? MIXPREC_ROUND_NEAREST_EVEN : MIXPREC_ROUND_STOCHASTIC;
                    d.seed = b;
                    d.offset = z;
                    fill(&d, b + z + s + t, (int)((b + t) % 2));
                    check_quantize(&d);
                }
}

static void test_given_scale(void) {
    static const float given[] = {1, 64, 0.37f, 0x1p-126f, FLT_MAX};
    size_t i, s, t;
    for (i = 0; i < COUNT_OF(given); i++)
        for (s = 0; s < COUNT_OF(src_types); s++)
            for (t = 0; t < COUNT_OF(dst_types); t++) {
                mixprec_quantize_desc d = desc_of(3, 2001, src_types[s], dst_types[t]);
                d.scale = &given[i];
                d.src_ld = 2003;
                fill(&d, i, (int)((s + t) % 2));
                check_quantize(&d);
            }
}

/* Scales about those that fit, so that some blocks saturate, and the extreme ones. */
static void test_given_scales(void) {
    static const size_t blocks[][2] = {{1, 128}, {1, 32}, {1, 16}, {128, 128}, {3, 5}, {0, 0}, {1, 0}, {1, 192}};
    static const float extreme[] = {0, 0x1p-149f, 0x1p-128f, 0x1p-127f, FLT_MAX, 1};
    static const float about[] = {0.5f, 0.96f, 0.99f, 1, 1.01f, 1.06f};
    size_t b, s, t, i;
    for (b = 0; b < COUNT_OF(blocks); b++)
        for (s = 0; s < COUNT_OF(src_types); s++)
            for (t = 0; t < COUNT_OF(dst_types); t++) {
                mixprec_quantize_desc d = desc_of(b == 3 ? 130 : 4, b == 3 ? 600 : 1600, src_types[s], dst_types[t]);
                if (test_quick && (b + s + t) % 5)
                    continue;
                d.block_rows = blocks[b][0];
                d.block_columns = blocks[b][1];
                d.round = (b + t) % 4 ? MIXPREC_ROUND_NEAREST_EVEN : MIXPREC_ROUND_UP;
                fill(&d, b + t, (int)((s + t) % 3 == 0));
                oracle(&d, want, given_scales);
                for (i = 0; i < MOST; i++)
                    given_scales[i] = (i + t) % 7 == 6
                                          ? extreme[(i / 7 + t) % COUNT_OF(extreme)]
                                          : given_scales[i] * about[(i + s) % (t % 2 ? 6 : 3) + (t % 2 ? 0 : 3)];
                d.scales_given = 1;
                check_quantize(&d);
            }
}

/* NVFP4 as the manual has it: the scales of blocks of 16 are numbers of e4m3 times one of the tensor, and near those
   that fit. */
static void test_nvfp4(void) {
    mixprec_quantize_desc d = desc_of(5, 512, MIXPREC_BF16, MIXPREC_E2M1);
    mixprec_convert_options how = {MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_SATURATE, 0, MIXPREC_ISA_AUTO, 0, 0};
    mixprec_e4m3 codes[5 * 32];
    const size_t count = sizeof codes;
    static float x[5 * 512];
    mixprec_scales layout;
    float amax, tensor;
    size_t i;
    fill(&d, 1, 0);
    d.block_rows = 1;
    d.block_columns = 16;
    d.amax = &amax;
    for (i = 0; i < 16; i++) { /* a block of zeros, and one that is too small for e4m3 */
        set_code(src, d.src_type, 64 + i, 0);
        set_code(src, d.src_type, 128 + i, (uint32_t)(0x3680 + i));
    }
    CHECK(mixprec_quantize(&d) == MIXPREC_OK, "scales");
    tensor = amax / (6 * 448);
    memcpy(want_scales, scales, count * sizeof *scales);
    how.scale = 1 / tensor;
    CHECK(mixprec_convert_ex(codes, MIXPREC_E4M3, scales, MIXPREC_F32, count, &how) == MIXPREC_OK, "to e4m3");
    how.scale = tensor;
    CHECK(mixprec_convert_ex(scales, MIXPREC_F32, codes, MIXPREC_E4M3, count, &how) == MIXPREC_OK, "and back");
    for (i = 0; i < count; i++)
        CHECK(i == 4 ? scales[i] > 0
                     : fabs((double)scales[i] - (double)want_scales[i]) <=
                           fmax((double)want_scales[i] / 16, (double)tensor * 0x1p-10) * 1.001,
              "block %zu: %g, want about %g", i, (double)scales[i], (double)want_scales[i]);
    CHECK(scales[8] == 0, "a block that is too small: %g", (double)scales[8]);
    how.round = MIXPREC_ROUND_UP; /* for products, which take no scale of 0 */
    how.scale = 1 / tensor;
    CHECK(mixprec_convert_ex(codes, MIXPREC_E4M3, want_scales, MIXPREC_F32, count, &how) == MIXPREC_OK, "rounded up");
    for (i = 0; i < count; i++)
        CHECK(code_at(codes, MIXPREC_E4M3, i) - 1 < 0x7E, "scale %zu, rounded up: %02x", i,
              (unsigned)code_at(codes, MIXPREC_E4M3, i));
    memcpy(given_scales, scales, sizeof given_scales);
    d.scales_given = 1;
    check_quantize(&d);
    memset(&layout, 0, sizeof layout);
    layout.values = scales;
    layout.block_rows = 1;
    layout.block_columns = 16;
    CHECK(mixprec_dequantize(x, MIXPREC_F32, 0, dst, MIXPREC_E2M1, 0, 5, 512, &layout) == MIXPREC_OK, "back");
    for (i = 0; i < 5 * 512; i++) { /* half of the largest step, and what saturates */
        const double number = mixprec_decode(code_at(src, d.src_type, i), d.src_type),
                     scale = (double)want_scales[i / 16];
        CHECK(i / 16 == 8 ? x[i] == 0 : fabs((double)x[i] - number) <= scale * 1.07 + (double)tensor * 0x1p-8,
              "element %zu: %g, want about %g", i, (double)x[i], number);
    }
}

/* Strips of the kernels' width, the largest number of each a step further around the largest of the dtype: what is more
   has to saturate, and alone. */
static void test_saturation(void) {
    static const float given[] = {1, 0.37f, 3};
    size_t s, t, g, i;
    for (s = 0; s < 3; s++)
        for (t = 0; t < 2; t++)
            for (g = 0; g < COUNT_OF(given); g++) {
                mixprec_quantize_desc d = desc_of(1, 30 * 2048, src_types[s], dst_types[t]);
                const double max = t ? 57344 : 448;
                d.scale = &given[g];
                fill(&d, g, 0);
                for (i = 0; i < 30; i++)
                    set_code(src, d.src_type, i * 2048 + i * 67,
                             mixprec_encode((i % 2 ? -max : max) * (0.98 + 0.005 * (double)(i * i)) / (double)given[g],
                                            d.src_type, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_SATURATE, 0));
                check_quantize(&d);
            }
}

/* fp8 of all exponents and mantissas: of floats the upper halves, before, on and after whatever is a tie. Several
   strips, one of them with a NaN. */
static void test_fp8_codes(void) {
    static const uint32_t rests[] = {0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF};
    static const float given[] = {1, 0.37f, 0x1p-126f};
    size_t s, t, r, g, i;
    for (s = 0; s < 3; s++)
        for (t = 0; t < 2; t++)
            for (r = 0; r < (s ? 1 : COUNT_OF(rests)); r++)
                for (g = 0; g < 4; g++) {
                    mixprec_quantize_desc d = desc_of(1, 65536, src_types[s], dst_types[t]);
                    for (i = 0; i < d.columns; i++) {
                        uint32_t code = (uint32_t)i << (s ? 0 : 16) | rests[r];
                        if (is_nan_code(code, d.src_type) && i != 0x7FFF)
                            code &= s == 1 ? 0xFC00u : s ? 0xFF80u : 0xFF800000u; /* Inf */
                        set_code(src, d.src_type, i, code);
                    }
                    if (g < COUNT_OF(given))
                        d.scale = &given[g];
                    d.block_columns = g < COUNT_OF(given) ? 0 : 192;
                    check_quantize(&d);
                }
}

/* Every bf16 number that does not overflow, with factors of all sizes. */
static void test_bf16_codes(void) {
    static const uint32_t exponents[] = {1, 2, 100, 127, 139, 234, 235, 236, 241, 242, 243, 254};
    size_t t, e, g, i;
    for (t = 0; t < 2; t++)
        for (e = 0; e < COUNT_OF(exponents); e++)
            for (g = 0; g < (test_quick ? 3u : 12u); g++) {
                const uint32_t random = mixprec_random_bits(e, g) & 0x7FFFFF;
                const float given = float_from_bits(exponents[e] << 23 | (g ? g > 1 ? random : 0x7FFFFF : 0));
                mixprec_quantize_desc d = desc_of(1, 65536, MIXPREC_BF16, dst_types[t]);
                for (i = 0; i < d.columns; i++) {
                    const double product = fabs(mixprec_decode((uint32_t)i, MIXPREC_BF16)) * (double)given;
                    set_code(src, MIXPREC_BF16, i, product < (t ? 59136 : 462) ? (uint32_t)i : i % 2 ? 0x8000 : 0);
                }
                d.scale = &given;
                check_quantize(&d);
            }
}

/* Products just above the largest number, which saturate. */
static void test_just_above(void) {
    static const float given[] = {1, 0x1p-3f};
    size_t s, t, g, k, i;
    for (t = 0; t < COUNT_OF(dst_types); t++)
        for (s = 0; s < 3; s++) /* from f32, f16 and bf16 */
            for (g = 0; g < COUNT_OF(given); g++)
                for (k = 0; k <= 40; k++) {
                    mixprec_quantize_desc d = desc_of(1, 192, src_types[s], dst_types[t]);
                    mixprec_format_info info;
                    double most;
                    mixprec_format(dst_types[t], &info);
                    if (info.bits > 8)
                        continue;
                    most = (double)info.max / (double)given[g] * (1 + (double)k / 1024);
                    for (i = 0; i < d.columns; i++) {
                        const double x = most * (1 - (double)(i % 9) / 64) * (i % 2 ? -1 : 1);
                        set_code(
                            src, src_types[s], i,
                            mixprec_encode(x, src_types[s], MIXPREC_ROUND_TOWARD_ZERO, MIXPREC_OVERFLOW_SATURATE, 0));
                    }
                    d.scale = &given[g];
                    check_quantize(&d);
                }
}

/* Codes times scales. Blocks that kernels know and others; rows with gaps, and short ones without. */
static void test_dequantize(void) {
    static const size_t blocks[][2] = {{0, 0}, {1, 0}, {0, 1}, {1, 7}, {1, 16}, {1, 32}, {3, 64}, {5, 128}};
    static const size_t shapes[][2] = {{11, 299}, {3, 1}, {2, 7}, {5, 33}, {3, 130}};
    size_t s, b, t, u, i, j;
    for (s = 0; s < COUNT_OF(shapes); s++)
        for (b = 0; b < COUNT_OF(blocks); b++)
            for (t = 0; t < COUNT_OF(dst_types); t++)
                for (u = 0; u < COUNT_OF(src_types); u++) {
                    const int gaps = s == 0;
                    size_t rows = shapes[s][0], columns = shapes[s][1], wrong = 0;
                    size_t src_ld = ld_of(dst_types[t], gaps ? 301 : columns), dst_ld = gaps ? 305 : columns;
                    size_t br = blocks[b][0] ? blocks[b][0] : rows, bc = blocks[b][1] ? blocks[b][1] : columns;
                    size_t scales_ld;
                    mixprec_scales layout;
                    memset(&layout, 0, sizeof layout);
                    layout.values = b ? scales : t % 2 ? scales : NULL;
                    layout.block_rows = blocks[b][0];
                    layout.block_columns = blocks[b][1];
                    layout.ld = gaps ? 302 : 0;
                    scales_ld = gaps ? 302 : (columns - 1) / bc + 1;
                    for (i = 0; i < scales_ld * rows; i++)
                        /* Some so small that products are subnormal, some short, so that there are ties. */
                        scales[i] = float_from_bits(
                            ((i % 5 ? 0x3F000000 : 0x00800000) + mixprec_random_bits(3, i) % 0x2000000) &
                            (i % 3 ? 0xFFFFE000 : 0xFFFFFFFF));
                    for (i = 0; i < rows * src_ld; i++)
                        set_code(src, dst_types[t], i,
                                 mixprec_random_bits(4, i) &
                                     (dst_types[t] == MIXPREC_E2M3 || dst_types[t] == MIXPREC_E3M2 ? 63 : 0xFFFF));
                    memset(dst, 0x77, sizeof dst);
                    CHECK(mixprec_dequantize(dst, src_types[u], gaps ? dst_ld : 0, src, dst_types[t], gaps ? src_ld : 0,
                                             rows, columns, layout.values ? &layout : NULL) == MIXPREC_OK,
                          "refused");
                    for (i = 0; i < rows; i++)
                        for (j = 0; j < dst_ld; j++) {
                            uint32_t got = code_at(dst, src_types[u], i * dst_ld + j), expected = 0x77777777;
                            double scale = layout.values ? (double)scales[i / br * scales_ld + j / bc] : 1;
                            if (j < columns) {
                                volatile float product =
                                    (float)(mixprec_decode(code_at(src, dst_types[t], i * src_ld + j), dst_types[t]) *
                                            scale);
                                expected = mixprec_encode((double)product, src_types[u], MIXPREC_ROUND_NEAREST_EVEN,
                                                          MIXPREC_OVERFLOW_IEEE, 0);
                            } else
                                expected >>= 32 - 8 * mixprec_dtype_size(src_types[u]);
                            wrong += got != expected &&
                                     !(is_nan_code(got, src_types[u]) && is_nan_code(expected, src_types[u]));
                        }
                    for (i = rows * dst_ld; i < rows * dst_ld + 64; i++)
                        wrong +=
                            code_at(dst, src_types[u], i) != 0x77777777u >> (32 - 8 * mixprec_dtype_size(src_types[u]));
                    CHECK(!wrong, "%s -> %s, %zu x %zu, blocks %zu x %zu: %zu elements are wrong",
                          mixprec_dtype_name(dst_types[t]), mixprec_dtype_name(src_types[u]), rows, columns, br, bc,
                          wrong);
                }
}

/* More than the caches hold, in one call and row by row. */
static void test_dequantize_large(mixprec_dtype to, size_t block) {
    const size_t rows = 23, columns = 1000003, size = mixprec_dtype_size(to), ld = columns + 5;
    unsigned char *codes = malloc(rows * columns), *got = malloc(rows * ld * size), *row = malloc(columns * size);
    mixprec_scales layout;
    size_t i, j, wrong = 0, beside = 0;
    memset(&layout, 0, sizeof layout);
    layout.values = scales;
    layout.block_rows = 8;
    layout.block_columns = block;
    layout.ld = columns / block + 1;
    if (!codes || !got || !row) {
        CHECK(0, "no memory");
    } else {
        library_write_around();
        for (i = 0; i < rows * columns; i++)
            codes[i] = (unsigned char)(i * i >> 7);
        for (i = 0; i < layout.ld * 3; i++)
            scales[i] = 0.25f + (float)(i % 64) / 16;
        memset(got, 0x77, rows * ld * size);
        CHECK(mixprec_dequantize(got, to, ld, codes, MIXPREC_E4M3, columns, rows, columns, &layout) == MIXPREC_OK,
              "refused");
        for (i = 0; i < rows; i++) {
            mixprec_scales one = layout;
            one.values = scales + i / 8 * layout.ld;
            CHECK(mixprec_dequantize(row, to, columns, codes + i * columns, MIXPREC_E4M3, columns, 1, columns, &one) ==
                      MIXPREC_OK,
                  "a row: refused");
            wrong += memcmp(got + i * ld * size, row, columns * size) != 0;
            for (j = columns * size; j < ld * size; j++)
                beside += got[i * ld * size + j] != 0x77;
        }
        CHECK(!wrong && !beside, "%s: %zu rows are other than by themselves, %zu bytes between rows changed",
              mixprec_dtype_name(to), wrong, beside);
    }
    free(codes);
    free(got);
    free(row);
}
static void test_large(void) {
    test_dequantize_large(MIXPREC_F32, 1000);
    test_dequantize_large(MIXPREC_BF16, 1000);
    test_dequantize_large(MIXPREC_F32, 32);
    test_dequantize_large(MIXPREC_BF16, 192);
    test_dequantize_large(MIXPREC_F16, 1088);
}

/* The same to fp8, from `offset` bytes after the beginning of a line of the cache on: numbers, but for a NaN and a
   large one in a few places, where a given scale takes a second look. */
static void test_quantize_large(mixprec_dtype from, size_t block, size_t offset, size_t gap) {
    const size_t rows = 3, size = mixprec_dtype_size(from), period = 65536;
    const size_t columns = ((size_t)64 << 20) / (size + 1) / rows / 64 * 64 + 64 + 37, ld = columns + gap;
    const size_t blocks = block ? (columns - 1) / block + 1 : 1;
    unsigned char *numbers = malloc(rows * columns * size), *memory = malloc(rows * ld + 256), *row = malloc(columns);
    float *got_scales = malloc(rows * blocks * sizeof(float)), *row_scales = malloc(blocks * sizeof(float));
    const float scale = 448;
    float amax, row_amax, largest = 0;
    size_t i, j, wrong = 0, beside = 0;
    mixprec_quantize_desc d;
    memset(&d, 0, sizeof d);
    if (!numbers || !memory || !row || !got_scales || !row_scales) {
        CHECK(0, "no memory");
    } else {
        unsigned char *got = memory + (0 - (uintptr_t)memory) % 64 + offset;
        library_write_around();
        library_take_for_amd(0);
        for (i = 0; i < period; i++)
            set_code(numbers, from, i,
                     mixprec_encode((double)(mixprec_random_bits(1, i) >> 8) / (1 << 24) - 0.5, from,
                                    MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0));
        for (i = period * size; i < rows * columns * size; i++)
            numbers[i] = numbers[i - period * size];
        for (i = 1; i < rows * columns; i = i * 5 + 1)
            set_code(numbers, from, i,
                     mixprec_encode(i % 2 ? 3.0 : (double)float_from_bits(0x7FC00000), from, MIXPREC_ROUND_NEAREST_EVEN,
                                    MIXPREC_OVERFLOW_IEEE, 0));
        memset(memory, 0x77, rows * ld + 256);
        d.dst_type = MIXPREC_E4M3;
        d.src_type = from;
        d.src = numbers;
        d.dst = got;
        d.dst_ld = ld;
        d.rows = rows;
        d.columns = columns;
        d.block_rows = block ? 1 : 0;
        d.block_columns = block;
        d.scales = got_scales;
        d.scale = block ? NULL : &scale;
        d.amax = &amax;
        CHECK(mixprec_quantize(&d) == MIXPREC_OK, "refused");
        d.dst = row;
        d.dst_ld = columns;
        d.rows = 1;
        d.scales = row_scales;
        d.amax = &row_amax;
        for (i = 0; i < rows; i++) {
            d.src = numbers + i * columns * size;
            CHECK(mixprec_quantize(&d) == MIXPREC_OK, "a row: refused");
            wrong += memcmp(got + i * ld, row, columns) != 0;
            wrong += memcmp(got_scales + (block ? i * blocks : 0), row_scales, blocks * sizeof(float)) != 0;
            largest = row_amax > largest || row_amax != row_amax ? row_amax : largest;
            for (j = columns; j < ld; j++)
                beside += got[i * ld + j] != 0x77;
        }
        for (i = 0; i < offset; i++)
            beside += got[-1 - (ptrdiff_t)i] != 0x77;
        for (i = 0; i < 64; i++)
            beside += got[rows * ld + i] != 0x77;
        CHECK(!wrong && !beside,
              "%s, blocks of %zu: %zu rows are other than by themselves, %zu bytes beside them changed",
              mixprec_dtype_name(from), block, wrong, beside);
        CHECK(!memcmp(&amax, &largest, sizeof amax), "%s, blocks of %zu: amax is %g", mixprec_dtype_name(from), block,
              (double)amax);
        library_hide_units(0);
    }
    free(numbers);
    free(memory);
    free(row);
    free(got_scales);
    free(row_scales);
}
static void test_large_codes(void) {
    test_quantize_large(MIXPREC_F32, 128, 0, 27);
    test_quantize_large(MIXPREC_BF16, 128, 16, 31);
    test_quantize_large(MIXPREC_F16, 32, 60, 27);
    test_quantize_large(MIXPREC_BF16, 0, 4, 3);
    test_quantize_large(MIXPREC_F32, 0, 5, 0);
}

/* Rows in two calls give the bits of one. */
static void test_split(void) {
    mixprec_quantize_desc d = desc_of(40, 100, MIXPREC_BF16, MIXPREC_E5M2), part;
    d.block_rows = 8;
    d.block_columns = 32;
    d.round = MIXPREC_ROUND_STOCHASTIC;
    d.offset = 5;
    fill(&d, 1, 0);
    memset(dst, 0, sizeof dst);
    memset(want, 0, sizeof want);
    CHECK(mixprec_quantize(&d) == MIXPREC_OK, "whole");
    part = d;
    part.dst = want;
    part.scales = want_scales;
    part.rows = 16;
    CHECK(mixprec_quantize(&part) == MIXPREC_OK, "first part");
    part.rows = 24;
    part.src = (const char *)d.src + 16 * 100 * 2;
    part.dst = (char *)want + 16 * 100;
    part.scales = want_scales + 2 * 4;
    part.offset += 16 * 100;
    CHECK(mixprec_quantize(&part) == MIXPREC_OK, "second part");
    CHECK(!memcmp(dst, want, sizeof dst) && !memcmp(scales, want_scales, 20 * sizeof *scales), "parts differ");
}

static size_t drawn;
static size_t below(size_t n) {
    return mixprec_random_bits(78, drawn++) % n;
}

/* The same for any types, blocks and sizes, cut in up to five parts at rows where blocks begin; or anywhere, with a
   scale for all. And back. */
static void test_random_splits(void) {
    static float whole_scales[MOST], amaxes[2];
    static double wide[2][MOST / 4];
    const int trials = test_quick ? 300 : 3000;
    int trial;
    for (trial = 0; trial < trials; trial++) {
        const mixprec_dtype from = src_types[below(COUNT_OF(src_types))], to = dst_types[below(COUNT_OF(dst_types))];
        const float given = (float)(1 + below(1000)) / 64;
        const int scaled = below(3) == 0;
        const size_t rows = 1 + below(30), columns = 1 + below(below(2) ? 20 : 300);
        mixprec_quantize_desc d = desc_of(rows, columns, from, to), part;
        mixprec_scales layout;
        size_t unit, src_ld, dst_ld, scales_ld, begin, end;
        d.block_rows = scaled ? 0 : 1 + below(4);
        d.block_columns = scaled || below(3) == 0 ? 0 : 1 + below(below(2) ? 40 : 8);
        d.scale = scaled ? &given : NULL;
        d.power_of_two = (int)below(2);
        d.src_ld = below(2) ? 0 : d.columns + below(9);
        d.dst_ld = below(2) ? 0 : ld_of(to, d.columns + below(9));
        d.round = below(2) ? MIXPREC_ROUND_STOCHASTIC : (mixprec_round)below(5);
        d.seed = drawn;
        d.offset = below(1000);
        d.amax = &amaxes[0];
        unit = scaled ? 1 : d.block_rows;
        src_ld = d.src_ld ? d.src_ld : d.columns;
        dst_ld = d.dst_ld ? d.dst_ld : ld_of(to, d.columns);
        scales_ld = d.block_columns ? (d.columns + d.block_columns - 1) / d.block_columns : 1;
        fill(&d, drawn, 0);
        memset(dst, 0, sizeof dst);
        memset(want, 0, sizeof want);
        memset(scales, 0, sizeof scales);
        memset(whole_scales, 0, sizeof whole_scales);
        memset(wide, 0, sizeof wide);
        memset(&layout, 0, sizeof layout);
        layout.block_rows = d.block_rows, layout.block_columns = d.block_columns;
        layout.values = whole_scales;
        d.dst = want, d.scales = whole_scales;
        CHECK(mixprec_quantize(&d) == MIXPREC_OK &&
                  mixprec_dequantize(wide[0], from, 0, want, to, dst_ld, d.rows, d.columns, &layout) == MIXPREC_OK,
              "trial %d: the whole", trial);
        amaxes[1] = 0;
        part = d;
        for (begin = 0; begin < d.rows; begin = end) {
            float amax = 0;
            end = begin + unit * (1 + below((d.rows - begin) / unit + 1));
            end = end < d.rows ? end : d.rows;
            part.rows = end - begin;
            part.src = (const char *)d.src + begin * src_ld * mixprec_dtype_size(from);
            part.dst = (char *)dst + mixprec_dtype_bytes(to, begin * dst_ld);
            part.scales = scales + begin / unit * (scaled ? 0 : scales_ld);
            part.offset = d.offset + begin * d.columns;
            part.amax = &amax;
            layout.values = part.scales;
            CHECK(mixprec_quantize(&part) == MIXPREC_OK &&
                      mixprec_dequantize((char *)wide[1] + begin * d.columns * mixprec_dtype_size(from), from, 0,
                                         part.dst, to, dst_ld, part.rows, d.columns, &layout) == MIXPREC_OK,
                  "trial %d: rows %zu to %zu", trial, begin, end);
            amaxes[1] = amax > amaxes[1] ? amax : amaxes[1];
        }
#define WHERE                                                                                                          \
    "trial %d: %s to %s, %zu x %zu, blocks %zu x %zu, power of two %d", trial, mixprec_dtype_name(from),               \
        mixprec_dtype_name(to), d.rows, d.columns, d.block_rows, d.block_columns, d.power_of_two
        CHECK(!memcmp(dst, want, sizeof dst), WHERE);
        CHECK(!memcmp(scales, whole_scales, sizeof scales), WHERE);
        CHECK(!memcmp(&amaxes[0], &amaxes[1], sizeof amaxes[0]), WHERE);
        CHECK(!memcmp(wide[0], wide[1], sizeof wide[0]), WHERE);
#undef WHERE
    }
}

#if HAVE_ENVIRONMENT
static void test_environment(void) {
    size_t e;
    for (e = 0; e < sizeof environments / sizeof *environments; e++) {
        mixprec_quantize_desc d = desc_of(3, 700, MIXPREC_F32, MIXPREC_E4M3);
        mixprec_scales layout;
        mixprec_delayed_scaling s;
        environment before = get_environment(), after;
        float history[4], one[2] = {0}, two[2] = {0}, next[2] = {0}, back[2][700];
        mixprec_status status, back_status, update_status;
        int i;
        d.block_rows = 1;
        d.block_columns = 128;
        memset(&layout, 0, sizeof layout);
        layout.block_rows = 1;
        layout.block_columns = 128;
        fill(&d, 3, 1);
        ((float *)src)[5] = 1e-40f;
        for (i = 0; i < 2; i++) {
            d.dst = i ? dst : want;
            d.scales = i ? scales : want_scales;
            layout.values = d.scales;
            mixprec_delayed_scaling_init(&s, MIXPREC_E4M3, history, 4);
            memset(d.dst, 0x5A + i, 2100);
            memset(d.scales, 0x5A + i, 18 * sizeof *scales);
            memset(back[i], 0x5A + i, sizeof back[i]);
            if (i)
                set_environment(environments[e]);
            status = mixprec_quantize(&d);
            back_status = mixprec_dequantize(back[i], MIXPREC_F32, 0, d.dst, MIXPREC_E4M3, 0, 1, 700, &layout);
            one[i] = mixprec_scale_of_amax(1e-37f, MIXPREC_E4M3, 0);
            two[i] = mixprec_scale_of_amax(1e-40f, MIXPREC_E5M2, 0);
            update_status = mixprec_delayed_scaling_update(&s, 0.3f);
            after = get_environment();
            if (i)
                set_environment(before);
            CHECK(status == MIXPREC_OK && back_status == MIXPREC_OK && update_status == MIXPREC_OK,
                  "environment %llx: status %d, %d, %d", (unsigned long long)environments[e], (int)status,
                  (int)back_status, (int)update_status);
            next[i] = s.scale;
            CHECK(!i || after == environments[e], "environment %llx is %llx afterwards",
                  (unsigned long long)environments[e], (unsigned long long)after);
        }
        CHECK(!memcmp(dst, want, 2100) && !memcmp(scales, want_scales, 18 * sizeof *scales) &&
                  !memcmp(back[0], back[1], sizeof back[0]) && next[0] == next[1] && one[0] == one[1] &&
                  two[0] == two[1],
              "environment %llx changes the bits", (unsigned long long)environments[e]);
    }
}
#endif

static void test_statuses(void) {
    mixprec_quantize_desc good = desc_of(4, 10, MIXPREC_F32, MIXPREC_E4M3), d;
    static const mixprec_dtype bad_src[] = {MIXPREC_NONE, MIXPREC_F64, MIXPREC_I8, MIXPREC_E2M1};
    static const mixprec_dtype bad_dst[] = {MIXPREC_NONE, MIXPREC_F32, MIXPREC_F64, MIXPREC_E8M0};
    const float bad_scales[] = {0, -1, 1e-40f, NAN, HUGE_VALF};
    mixprec_delayed_scaling s, before;
    mixprec_scales layout;
    float history[3] = {9, 9, 9}, amax = 7, one = 2, values[40];
    size_t i;
    fill(&good, 1, 0);
    good.amax = &amax;
    memset(dst, 0x11, sizeof dst);
    memset(want, 0x11, sizeof want);
    memset(scales, 0x11, sizeof scales);
    memset(want_scales, 0x11, sizeof want_scales);
#define UNTOUCHED                                                                                                      \
    (!memcmp(dst, want, sizeof dst) && !memcmp(scales, want_scales, sizeof scales) && amax == 7 && one == 2)
#define BAD(change, status)                                                                                            \
    d = good;                                                                                                          \
    change;                                                                                                            \
    CHECK_STATUS(#change, mixprec_quantize(&d), status);                                                               \
    CHECK(UNTOUCHED, "%s: wrote", #change)
    CHECK(mixprec_quantize(NULL) == MIXPREC_ERR_NULL, "NULL");
    for (i = 0; i < COUNT_OF(bad_src); i++) {
        BAD(d.src_type = bad_src[i], MIXPREC_ERR_DTYPE);
    }
    for (i = 0; i < COUNT_OF(bad_dst); i++) {
        BAD(d.dst_type = bad_dst[i], MIXPREC_ERR_DTYPE);
    }
    for (i = 0; i < COUNT_OF(bad_scales); i++) {
        BAD(d.scale = &bad_scales[i], MIXPREC_ERR_SCALE);
    }
    BAD(d.round = (mixprec_round)6, MIXPREC_ERR_ROUND);
    BAD(d.isa = (mixprec_isa)77, MIXPREC_ERR_ISA);
    BAD(d.src_ld = 9, MIXPREC_ERR_LEADING_DIMENSION);
    BAD(d.dst_ld = 9, MIXPREC_ERR_LEADING_DIMENSION);
    BAD(d.dst_type = MIXPREC_E2M1; d.dst_ld = 11, MIXPREC_ERR_LEADING_DIMENSION);
    BAD(d.block_columns = 3; d.scales_ld = 3, MIXPREC_ERR_LEADING_DIMENSION);
    BAD(d.rows = SIZE_MAX / 16, MIXPREC_ERR_SIZE);
    BAD(d.columns = SIZE_MAX / 2, MIXPREC_ERR_SIZE);
    BAD(d.src = NULL, MIXPREC_ERR_NULL);
    BAD(d.dst = NULL, MIXPREC_ERR_NULL);
    BAD(d.scales = NULL, MIXPREC_ERR_NULL);
    BAD(d.scale = &one; d.block_rows = 2, MIXPREC_ERR_RANGE);
    BAD(d.scale = &one; d.block_columns = 5, MIXPREC_ERR_RANGE);
    BAD(d.scale = &one; d.scales_given = 1, MIXPREC_ERR_RANGE);
    BAD(d.dst = src, MIXPREC_ERR_OVERLAP);
    BAD(d.scales = (float *)src + 39, MIXPREC_ERR_OVERLAP);
    BAD(d.scales = (float *)(void *)dst + 9, MIXPREC_ERR_OVERLAP);
    BAD(d.amax = (float *)src, MIXPREC_ERR_OVERLAP);
    BAD(d.amax = scales, MIXPREC_ERR_OVERLAP);
    BAD(d.amax = (float *)(void *)dst, MIXPREC_ERR_OVERLAP);
    d = good;
    d.rows = 0;
    d.src = d.dst = NULL;
    d.scales = NULL;
    CHECK(mixprec_quantize(&d) == MIXPREC_OK && amax == 0, "no rows: amax %g", (double)amax);
    amax = 7;

    memset(&layout, 0, sizeof layout);
    layout.values = values;
    for (i = 0; i < 40; i++)
        values[i] = 1;
#define BACK(out, out_type, out_ld, in, in_type, in_ld, rows, columns, status)                                         \
    do {                                                                                                               \
        CHECK_STATUS("dequantize",                                                                                     \
                     mixprec_dequantize(out, out_type, out_ld, in, in_type, in_ld, rows, columns, &layout), status);   \
        CHECK(UNTOUCHED, "dequantize: wrote");                                                                         \
    } while (0)
    BACK(dst, MIXPREC_F64, 0, src, MIXPREC_E4M3, 0, 4, 10, MIXPREC_ERR_DTYPE);
    BACK(dst, MIXPREC_I8, 0, src, MIXPREC_E4M3, 0, 4, 10, MIXPREC_ERR_DTYPE);
    BACK(dst, MIXPREC_F32, 0, src, MIXPREC_F32, 0, 4, 10, MIXPREC_ERR_DTYPE);
    BACK(dst, MIXPREC_F32, 0, src, MIXPREC_E8M0, 0, 4, 10, MIXPREC_ERR_DTYPE);
    BACK(dst, MIXPREC_F32, 0, src, MIXPREC_E2M1, 11, 4, 10, MIXPREC_ERR_LEADING_DIMENSION);
    BACK(dst, MIXPREC_F32, 9, src, MIXPREC_E4M3, 0, 4, 10, MIXPREC_ERR_LEADING_DIMENSION);
    BACK(dst, MIXPREC_F32, 0, src, MIXPREC_E4M3, 9, 4, 10, MIXPREC_ERR_LEADING_DIMENSION);
    BACK(dst, MIXPREC_F32, 0, src, MIXPREC_E4M3, 0, SIZE_MAX / 4, 10, MIXPREC_ERR_SIZE);
    BACK(dst, MIXPREC_F32, 0, src, MIXPREC_E2M1, 0, 1, SIZE_MAX, MIXPREC_ERR_SIZE);
    BACK(NULL, MIXPREC_F32, 0, src, MIXPREC_E4M3, 0, 4, 10, MIXPREC_ERR_NULL);
    BACK(dst, MIXPREC_F32, 0, NULL, MIXPREC_E4M3, 0, 4, 10, MIXPREC_ERR_NULL);
    BACK(dst, MIXPREC_F32, 0, (char *)dst + 100, MIXPREC_E4M3, 0, 4, 10, MIXPREC_ERR_OVERLAP);
    BACK(NULL, MIXPREC_F32, 0, NULL, MIXPREC_E4M3, 0, 0, 10, MIXPREC_OK);
    layout.values = (float *)(void *)dst + 30;
    BACK(dst, MIXPREC_F32, 0, src, MIXPREC_E4M3, 0, 4, 10, MIXPREC_ERR_OVERLAP);
    layout.values = values;
    layout.block_rows = 1;
    layout.block_columns = 1;
    for (i = 0; i < 4; i++) {
        values[39] = i == 0 ? -0.0f : i == 1 ? -1.0f : i == 2 ? NAN : HUGE_VALF;
        BACK(dst, MIXPREC_F32, 0, src, MIXPREC_E4M3, 0, 4, 10, MIXPREC_ERR_SCALE);
        BAD(d.scales_given = 1; d.scales = values; d.block_rows = d.block_columns = 1, MIXPREC_ERR_SCALE);
    }
    layout.block_columns = 2;
    layout.ld = 4;
    BACK(dst, MIXPREC_F32, 0, src, MIXPREC_E4M3, 0, 4, 10, MIXPREC_ERR_LEADING_DIMENSION);

    memset(&s, 0x22, sizeof s);
    before = s;
    for (i = 0; i < COUNT_OF(bad_dst); i++)
        CHECK(mixprec_delayed_scaling_init(&s, bad_dst[i], history, 3) == MIXPREC_ERR_DTYPE, "dtype %zu", i);
    {
        const float two_numbers[2] = {3, 5};
        mixprec_e4m3 codes[2];
        float scale = 2; /* and, of one block, what scales are written to */
        mixprec_quantize_desc shared = desc_of(1, 2, MIXPREC_F32, MIXPREC_E4M3);
        shared.src = two_numbers;
        shared.dst = codes;
        shared.scale = shared.scales = &scale;
        CHECK(mixprec_quantize(&shared) == MIXPREC_OK && scale == 0.5f && mixprec_e4m3_to_f32(codes[1]) == 10,
              "a scale where the scales go: %g", (double)scale);
    }
    {
        float largest = 9;
        mixprec_quantize_desc endless = desc_of(SIZE_MAX, 0, MIXPREC_F32, MIXPREC_E4M3); /* rows of nothing */
        mixprec_quantize_desc wide = desc_of(0, SIZE_MAX, MIXPREC_F32, MIXPREC_E2M1);    /* none of them */
        CHECK(mixprec_quantize(&wide) == MIXPREC_OK, "no rows");
        endless.block_rows = 1;
        endless.amax = &largest;
        CHECK(mixprec_quantize(&endless) == MIXPREC_OK && largest == 0, "no columns: amax %g", (double)largest);
        layout.values = NULL; /* then how they would lie does not matter */
        CHECK(mixprec_dequantize(dst, MIXPREC_F32, 0, src, MIXPREC_E4M3, 0, 1, 10, &layout) == MIXPREC_OK, "no scales");
    }
    CHECK(mixprec_delayed_scaling_init(NULL, MIXPREC_E4M3, history, 3) == MIXPREC_ERR_NULL, "scaling NULL");
    CHECK(mixprec_delayed_scaling_init(&s, MIXPREC_E4M3, NULL, 3) == MIXPREC_ERR_NULL, "history NULL");
    CHECK(mixprec_delayed_scaling_init(&s, MIXPREC_E4M3, history, 0) == MIXPREC_ERR_RANGE, "length 0");
    CHECK(!memcmp(&s, &before, sizeof s) && history[0] == 9 && history[2] == 9, "something was written");
    CHECK(mixprec_delayed_scaling_init(&s, MIXPREC_E4M3, history, 3) == MIXPREC_OK && s.scale == 1 && s.margin == 0 &&
              s.most_recent == 0 && history[0] == 0 && history[2] == 0,
          "defaults");
    before = s;
    CHECK(mixprec_delayed_scaling_update(NULL, 1) == MIXPREC_ERR_NULL, "NULL");
    s.margin = 65;
    CHECK(mixprec_delayed_scaling_update(&s, 1) == MIXPREC_ERR_RANGE, "margin 65");
    s.margin = -65;
    CHECK(mixprec_delayed_scaling_update(&s, 1) == MIXPREC_ERR_RANGE, "margin -65");
    s = before; /* 2 * max does not fit fp32, the scale does */
    s.dtype = MIXPREC_BF16;
    s.margin = -1;
    CHECK(mixprec_delayed_scaling_update(&s, 1e38f) == MIXPREC_OK &&
              s.scale == (float)(2 * (double)MIXPREC_BF16_MAX / (double)1e38f),
          "bf16, margin -1: scale %g", (double)s.scale);
    s = before;
    s.margin = 64;
    CHECK(mixprec_delayed_scaling_update(&s, 1e30f) == MIXPREC_OK && s.scale == 0x1p-126f, "margin 64: scale %g",
          (double)s.scale);
    history[0] = history[1] = history[2] = 0;
    s = before;
    s.history_length = 0;
    CHECK(mixprec_delayed_scaling_update(&s, 1) == MIXPREC_ERR_RANGE, "length 0");
    s = before;
    s.dtype = MIXPREC_F32;
    CHECK(mixprec_delayed_scaling_update(&s, 1) == MIXPREC_ERR_DTYPE, "dtype f32");
    s = before;
    s.history = NULL;
    CHECK(mixprec_delayed_scaling_update(&s, 1) == MIXPREC_ERR_NULL, "history NULL");
    CHECK(history[0] == 0 && history[1] == 0 && history[2] == 0, "the history was written");
    s = before;
    s.history_length = 1;
    s.margin = 64;
    CHECK(mixprec_delayed_scaling_update(&s, 448) == MIXPREC_OK && s.scale == 0x1p-64f && history[0] == 0,
          "length 1: scale %a", (double)s.scale);
}

/* Every dtype, and every array before and behind every other one, touching it or with one element in it. */
static void test_every_status(void) {
    enum { SLOT = 64, ARRAYS = 4 }; /* src, dst, scales, amax; each in the middle of one */
    static float memory[ARRAYS * SLOT], before[ARRAYS * SLOT], one_history[2];
    static const size_t sizes[ARRAYS] = {8 * 4, 8, 2 * 4, 4}, steps[ARRAYS] = {4, 1, 4, 4};
    const mixprec_scales layout = {memory + 2 * SLOT + SLOT / 2, 1, 0, 0};
    mixprec_quantize_desc d;
    size_t i, j, s;
    int from, to, inside;
    for (i = 0; i < ARRAYS * SLOT; i++)
        before[i] = (float)(i % 13) * 0.25f + 1;
    for (from = -1; from <= MIXPREC_DTYPE_COUNT; from++)
        for (to = -1; to <= MIXPREC_DTYPE_COUNT; to++) {
            const int tensor = from == MIXPREC_F32 || from == MIXPREC_F16 || from == MIXPREC_BF16 ||
                               from == MIXPREC_E4M3 || from == MIXPREC_E5M2;
            const int narrow =
                mixprec_dtype_size((mixprec_dtype)to) && to != MIXPREC_F32 && to != MIXPREC_F64 && to != MIXPREC_E8M0;
            const mixprec_status wanted = tensor && narrow ? MIXPREC_OK : MIXPREC_ERR_DTYPE;
            mixprec_delayed_scaling scaling, kept;
            mixprec_status got, back, init, update;
            memcpy(memory, before, sizeof memory);
            d = desc_of(2, 4, (mixprec_dtype)from, (mixprec_dtype)to);
            d.src = memory + SLOT / 2;
            d.dst = memory + SLOT + SLOT / 2;
            d.scales = memory + 2 * SLOT + SLOT / 2;
            got = mixprec_quantize(&d);
            CHECK(wanted == MIXPREC_OK || !memcmp(memory, before, sizeof memory), "dtype %d to %d: written", from, to);
            memcpy(memory, before, sizeof memory);
            back = mixprec_dequantize(memory, (mixprec_dtype)from, 0, memory + SLOT, (mixprec_dtype)to, 0, 2, 4, NULL);
            CHECK(wanted == MIXPREC_OK || !memcmp(memory, before, sizeof memory), "dtype %d of %d: written", from, to);
            CHECK(got == wanted && back == wanted, "dtype %d to %d: got %d, and back %d, want %d", from, to, (int)got,
                  (int)back, (int)wanted);
            memset(&scaling, 0x5A, sizeof scaling);
            init = mixprec_delayed_scaling_init(&scaling, (mixprec_dtype)to, one_history, 2);
            CHECK(init == (narrow ? MIXPREC_OK : MIXPREC_ERR_DTYPE), "dtype %d: got %d", to, (int)init);
            mixprec_delayed_scaling_init(&scaling, MIXPREC_E4M3, one_history, 2);
            scaling.dtype = (mixprec_dtype)to;
            kept = scaling;
            update = mixprec_delayed_scaling_update(&scaling, 3);
            CHECK(update == init && (update == MIXPREC_OK || !memcmp(&scaling, &kept, sizeof kept)),
                  "dtype %d: update got %d, or wrote", to, (int)update);
        }
    for (i = 0; i < ARRAYS; i++)
        for (j = 0; j < ARRAYS; j++)
            for (inside = 0; inside < 2; inside++) {
                const mixprec_status wanted = inside ? MIXPREC_ERR_OVERLAP : MIXPREC_OK;
                mixprec_status got;
                char *at[ARRAYS];
                if (i == j)
                    continue;
                for (s = 0; s < ARRAYS; s++)
                    at[s] = (char *)(memory + s * SLOT + SLOT / 2);
                at[i] = at[j] - sizes[i] + (inside ? steps[i] : 0);
                memcpy(memory, before, sizeof memory);
                d = desc_of(2, 4, MIXPREC_F32, MIXPREC_E4M3);
                d.block_rows = 1;
                d.src = at[0];
                d.dst = at[1];
                d.scales = (float *)(void *)at[2];
                d.amax = (float *)(void *)at[3];
                got = mixprec_quantize(&d);
                CHECK(got == wanted, "array %zu before %zu, %s: got %d", i, j, inside ? "in it" : "touching", (int)got);
                CHECK((memcmp(memory, before, sizeof memory) == 0) == inside, "array %zu before %zu: %s", i, j,
                      inside ? "written" : "not written");
                if (i == 3 || j == 3 || (i == 2 && j == 1) || (i == 1 && j == 2))
                    continue;
                /* back: dst is the wide one, and before, behind what it comes from */
                if (i == 0 || j == 0) {
                    mixprec_scales scales_of = layout;
                    scales_of.values = (float *)(void *)at[2];
                    memcpy(memory, before, sizeof memory);
                    got = mixprec_dequantize(at[0], MIXPREC_F32, 0, at[1], MIXPREC_E4M3, 0, 2, 4, &scales_of);
                    CHECK(got == wanted && (memcmp(memory, before, sizeof memory) == 0) == inside,
                          "back, array %zu before %zu, %s: got %d", i, j, inside ? "in it" : "touching", (int)got);
                }
            }
    /* gaps between rows count */
    memcpy(memory, before, sizeof memory);
    d = desc_of(2, 4, MIXPREC_F32, MIXPREC_E4M3);
    d.src = memory;
    d.src_ld = 16;
    d.dst = memory + 8;
    d.scales = memory + SLOT;
    CHECK(mixprec_quantize(&d) == MIXPREC_ERR_OVERLAP, "dst in a gap of src");
    d.dst = memory + SLOT + 8;
    d.scales = memory + 8;
    CHECK(mixprec_quantize(&d) == MIXPREC_ERR_OVERLAP, "scales in a gap of src");
    d.scales = memory + 2 * SLOT;
    d.amax = memory + 8;
    CHECK(mixprec_quantize(&d) == MIXPREC_ERR_OVERLAP, "amax in a gap of src");
    CHECK(mixprec_dequantize(memory, MIXPREC_F32, 16, memory + 8, MIXPREC_E4M3, 0, 2, 4, NULL) == MIXPREC_ERR_OVERLAP,
          "back from a gap of dst");
    CHECK(!memcmp(memory, before, sizeof memory), "refused, but written");
    for (i = 1; i < ISA_COUNT; i++)
        if (!runs_here(all_isas[i])) {
            d = desc_of(2, 4, MIXPREC_F32, MIXPREC_E4M3);
            d.src = memory;
            d.dst = memory + SLOT;
            d.scales = memory + 2 * SLOT;
            d.isa = all_isas[i];
            CHECK(mixprec_quantize(&d) == MIXPREC_ERR_ISA && !memcmp(memory, before, sizeof memory),
                  "%s, which is not here", mixprec_isa_name(all_isas[i]));
        }
    { /* finite and positive is all that a scale needs to be for the way back */
        static const float subnormal[1] = {0x1p-149f};
        const mixprec_scales tiny = {subnormal, 0, 0, 0};
        CHECK(mixprec_dequantize(memory, MIXPREC_F32, 0, memory + SLOT, MIXPREC_E4M3, 0, 2, 4, &tiny) == MIXPREC_OK,
              "a subnormal scale");
    }
}

int main(int argc, char **argv) {
    test_init(argc, argv);
#define TEST(name, function)                                                                                           \
    if (test_begin(name)) {                                                                                            \
        function();                                                                                                    \
        test_end();                                                                                                    \
    }
    TEST("quant: current scaling as in TransformerEngine", test_current)
    TEST("quant: delayed scaling as in TransformerEngine", test_delayed)
    TEST("quant: NaN in the history", test_history)
    TEST("quant: saturation", test_saturation)
    TEST("quant: scales of nothing, of Inf and NaN, of other dtypes", test_scale_edges)
    TEST("quant: every dtype, path and shape of blocks", test_quantize)
    TEST("quant: a given scale", test_given_scale)
    TEST("quant: given scales of blocks", test_given_scales)
    TEST("quant: NVFP4, with scales in e4m3", test_nvfp4)
    TEST("quant: just above the largest number", test_just_above)
    TEST("quant: fp8 of every upper half of a number", test_fp8_codes)
    TEST("quant: fp8 of bf16 with one factor", test_bf16_codes)
    TEST("quant: and back", test_dequantize)
    if (library_hide_units(1)) {
        TEST("quant: and back, without AVX512_VBMI", test_dequantize)
        library_hide_units(0);
    }
    if (mixprec_isa_available(MIXPREC_ISA_AVX2)) /* only it writes around them */
        TEST("quant: back to more than the caches hold", test_large)
    if (mixprec_isa_available(MIXPREC_ISA_AVX512)) /* the same of fp8 */
        TEST("quant: to fp8, more than the caches hold", test_large_codes)
    TEST("quant: parts give the bits of the whole", test_split)
    TEST("quant: random parts of random matrices do", test_random_splits)
#if HAVE_ENVIRONMENT
    TEST("quant: the caller's floating-point environment does not matter", test_environment)
#endif
    TEST("quant: statuses, and outputs untouched", test_statuses)
    TEST("quant: every dtype, arrays that touch or overlap", test_every_status)
    return test_summary();
}
