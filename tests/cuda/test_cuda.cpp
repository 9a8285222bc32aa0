/* Tests of mixprec_cuda.cuh. With a C++ compiler its kernels run in the emulation of the CUDA execution model:

       g++ -O2 -std=c++17 -ffp-contract=off -I. tests/cuda/test_cuda.cpp && ./a.out [--quick] [--filter TEXT]

   With nvcc (make test-cuda: nvcc -x cu -DTEST_ON_DEVICE) the same tests run on a GPU: memory is then managed memory,
   and every call is followed by a synchronisation. Oracles: mixprec.h's scalar functions for conversions, double
   arithmetic with a bound on the error for GEMM, mixprec_gemm for the bits of the exact path, fp32 arithmetic one
   operation at a time for the training kernels. */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <type_traits>

#include "../environment.h"
#include "../test.h"
#define MIXPREC_CUDA_IMPLEMENTATION
#ifdef TEST_ON_DEVICE
#include "../../mixprec_cuda.cuh"
#else
#define MIXPREC_IMPLEMENTATION
#define MIXPREC_CUDA_EMULATION "tests/cuda/emulation.h"
#include "../../mixprec_cuda.cuh"
#endif

/* ---- helpers ---- */

static uint64_t random_state = 1;
static uint32_t random_u32(void) { /* an LCG modulo 2^64, upper half */
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 32);
}
static double random_unit(void) {
    return (double)random_u32() / 4294967296.0;
}
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
static bool same_bits(float x, float y) { /* a NaN is a NaN */
    return float_bits(x) == float_bits(y) || (x != x && y != y);
}
static float rounded(volatile float x) { /* one operation, one rounding, never contracted */
    return x;
}

/* Memory that host and device see; `shift` bytes past an alignment of 256. */
static void *memory(size_t bytes, size_t shift = 0) {
    char *p;
#ifdef TEST_ON_DEVICE
    if (cudaMallocManaged((void **)&p, bytes + 512) != cudaSuccess) {
        printf("FAIL  out of device memory\n0 passed, 1 failed, 0 skipped\n");
        exit(1);
    }
#else
    p = (char *)aligned_alloc(256, (bytes + 512 + 255) / 256 * 256);
    emulation_arrays.push_back(std::make_pair((uintptr_t)p + shift, (uintptr_t)p + shift + bytes));
#endif
    return p + shift;
}
static void release(const void *p) { /* NULL: nothing */
    void *base = (void *)((uintptr_t)p & ~(uintptr_t)255);
#ifdef TEST_ON_DEVICE
    cudaFree(base);
#else
    for (size_t i = emulation_arrays.size(); i-- > 0;)
        if ((emulation_arrays[i].first & ~(uintptr_t)255) == (uintptr_t)base)
            emulation_arrays.erase(emulation_arrays.begin() + (long)i);
    free(base);
#endif
}
static void finish(void) { /* waits for the device */
#ifdef TEST_ON_DEVICE
    cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess) {
        printf("FAIL  CUDA: %s\n0 passed, 1 failed, 0 skipped\n", cudaGetErrorString(error));
        exit(1);
    }
#endif
}
#define OK(call)                                                                                                       \
    do {                                                                                                               \
        mixprec_status ok_status = call;                                                                               \
        finish();                                                                                                      \
        CHECK(ok_status == MIXPREC_OK, "%s: %d (%s)", #call, (int)ok_status, mixprec_cuda_last_error());               \
    } while (0)

static size_t size_of(mixprec_dtype type) {
    return mixprec_dtype_size(type);
}
static uint32_t code_at(const void *base, mixprec_dtype type, size_t i) {
    uint32_t code = 0;
    memcpy(&code, (const char *)base + i * size_of(type), size_of(type));
    return code;
}
static double value_at(const void *base, mixprec_dtype type, size_t i) {
    return mixprec_decode(code_at(base, type, i), type);
}
static void put(void *base, mixprec_dtype type, size_t i, double x) { /* finite ones saturate */
    uint32_t code = mixprec_encode(x, type, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_SATURATE_KEEP_INF, 0);
    memcpy((char *)base + i * size_of(type), &code, size_of(type));
}

static const mixprec_dtype compute_types[] = {MIXPREC_F32, MIXPREC_F16, MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};

/* ---- scalars ---- */

static void test_scalar_narrow(void) {
    uint32_t step = test_quick ? 65521 : 251, bits = 0;
    int t, policy;
    do {
        float x = float_from_bits(bits);
        for (t = 1; t < 5; t++)
            for (policy = 0; policy < 3; policy++) {
                mixprec_dtype type = compute_types[t];
                uint32_t got = mixprec_cuda_narrow_(bits, mixprec_cuda_layout_(type), (mixprec_overflow)policy);
                uint32_t want =
                    mixprec_encode((double)x, type, MIXPREC_ROUND_NEAREST_EVEN, (mixprec_overflow)policy, 0);
                CHECK(got == want, "%08x to %s, policy %d: got %x, want %x", bits, mixprec_dtype_name(type), policy,
                      got, want);
            }
        bits += step;
    } while (bits >= step);
}

static void test_scalar_encode(void) {
    long i, count = test_quick ? 20000 : 300000;
    int type, round, policy;
    for (i = 0; i < count; i++) {
        uint64_t bits = (uint64_t)random_u32() << 32 | random_u32();
        double x;
        uint32_t random = random_u32();
        if (i % 2) /* exponents where the formats are */
            bits = (bits & 0x800FFFFFFFFFFFFFu) | (uint64_t)(1023 - 160 + random_u32() % 310) << 52;
        if (i % 3 == 0)
            bits &= ~(uint64_t)0 << random_u32() % 53;
        if (i % 97 == 0)
            bits |= (uint64_t)0x7FF << 52;
        memcpy(&x, &bits, sizeof x);
        round = (int)(random_u32() % 6), policy = (int)(random_u32() % 3);
        for (type = 1; type < MIXPREC_DTYPE_COUNT; type++) {
            uint32_t want =
                mixprec_encode(x, (mixprec_dtype)type, (mixprec_round)round, (mixprec_overflow)policy, random);
            uint32_t got =
                mixprec_cuda_encode(x, (mixprec_dtype)type, (mixprec_round)round, (mixprec_overflow)policy, random);
            CHECK(got == want, "%a to %s, mode %d, policy %d: got %x, want %x", x,
                  mixprec_dtype_name((mixprec_dtype)type), round, policy, got, want);
        }
    }
}

static void test_scalar_decode(void) {
    int type;
    uint32_t code;
    for (type = 1; type < MIXPREC_DTYPE_COUNT; type++)
        for (code = 0; code < 65536; code++) {
            uint32_t bits = type == MIXPREC_F32 ? code << 16 | (code * 40503u & 0xFFFF) : code;
            double got = mixprec_cuda_decode(bits, (mixprec_dtype)type),
                   want = mixprec_decode(bits, (mixprec_dtype)type);
            CHECK(!memcmp(&got, &want, sizeof got) || type == MIXPREC_F64, "%s code %x: got %a, want %a",
                  mixprec_dtype_name((mixprec_dtype)type), bits, got, want);
        }
}

static void test_scalar_names(void) {
    uint32_t i;
    for (i = 0; i < 100000; i++) {
        uint32_t bits = random_u32();
        float x = float_from_bits(bits);
#define SAME(name)                                                                                                     \
    CHECK(mixprec_cuda_f32_to_##name(x).bits == mixprec_f32_to_##name(x).bits &&                                       \
              mixprec_cuda_f32_to_##name##_sat(x).bits == mixprec_f32_to_##name##_sat(x).bits &&                       \
              float_bits(mixprec_cuda_##name##_to_f32(mixprec_f32_to_##name(x))) ==                                    \
                  float_bits(mixprec_##name##_to_f32(mixprec_f32_to_##name(x))),                                       \
          #name " of %08x", bits)
        SAME(f16);
        SAME(bf16);
        SAME(e4m3);
        SAME(e5m2);
        SAME(e4m3fnuz);
        SAME(e5m2fnuz);
        SAME(e4m3ieee);
        SAME(e3m4);
        SAME(e2m3);
        SAME(e3m2);
        SAME(e2m1);
#undef SAME
        CHECK(mixprec_cuda_random_bits(bits * (uint64_t)0x9E3779B97F4A7C15u, (uint64_t)bits << 20 | i) ==
                  mixprec_random_bits(bits * (uint64_t)0x9E3779B97F4A7C15u, (uint64_t)bits << 20 | i),
              "random bits of %08x", bits);
    }
}

#ifndef TEST_ON_DEVICE
static void test_fp8_pairs(void) {
    uint32_t code, half;
    for (code = 0; code < 65536; code++)
        for (half = 0; half < 2; half++) {
            double want4 = mixprec_decode(code >> half * 8 & 0xFF, MIXPREC_E4M3);
            double want5 = mixprec_decode(code >> half * 8 & 0xFF, MIXPREC_E5M2);
            double bits4 = mixprec_decode(mixprec_cuda_e4m3x2_by_bits_(code) >> half * 16 & 0xFFFF, MIXPREC_F16);
            double bits5 = mixprec_decode(mixprec_cuda_fp8x2_(code, true) >> half * 16 & 0xFFFF, MIXPREC_F16);
            CHECK(bits4 == want4 || (bits4 != bits4 && want4 != want4), "e4m3 %x: got %g, want %g", code, bits4, want4);
            CHECK(bits5 == want5 || (bits5 != bits5 && want5 != want5), "e5m2 %x: got %g, want %g", code, bits5, want5);
        }
}
#endif

/* ---- instructions ---- */

/* Which lane has which element, from a source that neither the kernels nor the emulation come from: the layouts of CuTe
   in CUTLASS 4.7 (cute/atom/mma_traits_sm80.hpp: SM80_16x8x16_F32F16F16F32_TN and the BF16 one,
   _16x8x8_F32TF32TF32F32_TN, _16x8x32_S32S8S8S32_TN, with SM80_16x8_Row for C; mma_traits_sm89.hpp:
   SM89_16x8x32_F32E4M3E4M3F32_TN and the mixed ones; mma_traits_sm120.hpp has the same for sm_120). Value v of lane t
   is element index % M of the rows, index / M of the columns, index being the sum of the digits of t, base 4 and 8, and
   of v, base values[], times their strides. */
typedef struct {
    int lanes[2], values[3], strides[3];
} fragment_layout;
static int fragment_index(const fragment_layout *layout, int lane, int v) {
    int index = lane % 4 * layout->lanes[0] + lane / 4 * layout->lanes[1], i;
    for (i = 0; i < 3; v /= layout->values[i], i++)
        index += v % layout->values[i] * layout->strides[i];
    return index;
}
static const fragment_layout layout_c = {{32, 1}, {2, 2, 1}, {16, 8, 0}};

#define FRAGMENTS(name, type)                                                                                          \
    static __global__ void fragments_##name(const uint32_t *a, const uint32_t *b, uint32_t *d) {                       \
        type sums[4];                                                                                                  \
        memcpy(sums, d + threadIdx.x * 4, 16);                                                                         \
        mixprec_cuda_mma_##name##_(sums, a + threadIdx.x * 4, b + threadIdx.x * 2);                                    \
        memcpy(d + threadIdx.x * 4, sums, 16);                                                                         \
    }
FRAGMENTS(f16, float)
FRAGMENTS(bf16, float)
FRAGMENTS(tf32, float)
FRAGMENTS(s8, int)
FRAGMENTS(e4m3_e4m3, float)
FRAGMENTS(e4m3_e5m2, float)
FRAGMENTS(e5m2_e4m3, float)
FRAGMENTS(e5m2_e5m2, float)

static void test_fragments(void) {
    static const fragment_layout a16 = {{32, 1}, {2, 2, 2}, {16, 8, 128}}, b16 = {{16, 1}, {2, 2, 1}, {8, 64, 0}},
                                 a32 = {{16, 1}, {2, 2, 1}, {8, 64, 0}}, b32 = {{8, 1}, {2, 1, 1}, {32, 0, 0}},
                                 a8 = {{64, 1}, {4, 2, 2}, {16, 8, 256}}, b8 = {{32, 1}, {4, 2, 1}, {8, 128, 0}};
    static const struct {
        const char *name;
        void (*kernel)(const uint32_t *, const uint32_t *, uint32_t *);
        mixprec_dtype a_type, b_type, c_type;
        const fragment_layout *a, *b;
    } cases[] = {{"f16", fragments_f16, MIXPREC_F16, MIXPREC_F16, MIXPREC_F32, &a16, &b16},
                 {"bf16", fragments_bf16, MIXPREC_BF16, MIXPREC_BF16, MIXPREC_F32, &a16, &b16},
                 {"tf32", fragments_tf32, MIXPREC_F32, MIXPREC_F32, MIXPREC_F32, &a32, &b32},
                 {"s8", fragments_s8, MIXPREC_I8, MIXPREC_I8, MIXPREC_I8, &a8, &b8},
                 {"e4m3 e4m3", fragments_e4m3_e4m3, MIXPREC_E4M3, MIXPREC_E4M3, MIXPREC_F32, &a8, &b8},
                 {"e4m3 e5m2", fragments_e4m3_e5m2, MIXPREC_E4M3, MIXPREC_E5M2, MIXPREC_F32, &a8, &b8},
                 {"e5m2 e4m3", fragments_e5m2_e4m3, MIXPREC_E5M2, MIXPREC_E4M3, MIXPREC_F32, &a8, &b8},
                 {"e5m2 e5m2", fragments_e5m2_e5m2, MIXPREC_E5M2, MIXPREC_E5M2, MIXPREC_F32, &a8, &b8}};
    unsigned char *registers = (unsigned char *)memory(32 * (16 + 8 + 16));
    size_t i;
    int lane, v, row, column, k;
#ifdef TEST_ON_DEVICE
    mixprec_cuda_device_ device;
    test_needs("compute capability 8.0");
    if (mixprec_cuda_device_of_(&device) != MIXPREC_OK || device.compiled < 800)
        return;
#endif
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int size = (int)size_of(cases[i].a_type), depth = 32 / size;
        unsigned char *a = registers, *b = a + 32 * 16, *d = b + 32 * 8;
        int wide_a[16][32], wide_b[8][32], wide_c[16][8];
#ifdef TEST_ON_DEVICE
        if (i >= 4 && device.compiled != 890 && device.compiled < 1200)
            continue; /* the instruction is left out */
#endif
        for (lane = 0; lane < 32; lane++) { /* small integers: exact in every format */
            for (v = 0; v < 16 / size; v++) {
                int at = fragment_index(cases[i].a, lane, v), x = (int)(random_u32() % 9) - 4;
                wide_a[at % 16][at / 16] = x;
                put(a + lane * 16, cases[i].a_type, (size_t)v, x);
            }
            for (v = 0; v < 8 / size; v++) {
                int at = fragment_index(cases[i].b, lane, v), x = (int)(random_u32() % 9) - 4;
                wide_b[at % 8][at / 8] = x;
                put(b + lane * 8, cases[i].b_type, (size_t)v, x);
            }
            for (v = 0; v < 4; v++) {
                int at = fragment_index(&layout_c, lane, v), x = (int)(random_u32() % 1000);
                float y = (float)x;
                wide_c[at % 16][at / 16] = x;
                memcpy(d + (lane * 4 + v) * 4, cases[i].c_type == MIXPREC_F32 ? (void *)&y : (void *)&x, 4);
            }
        }
        OK(mixprec_cuda_launch_(cases[i].kernel, 1, 1, 32, 0, NULL, (const uint32_t *)(void *)a,
                                (const uint32_t *)(void *)b, (uint32_t *)(void *)d));
        for (row = 0; row < 16; row++)
            for (column = 0; column < 8; column++)
                for (k = 0; k < depth; k++)
                    wide_c[row][column] += wide_a[row][k] * wide_b[column][k];
        for (lane = 0; lane < 32; lane++)
            for (v = 0; v < 4; v++) {
                int at = fragment_index(&layout_c, lane, v), sum;
                float y;
                memcpy(&sum, d + (lane * 4 + v) * 4, 4);
                memcpy(&y, &sum, 4);
                sum = cases[i].c_type == MIXPREC_F32 ? (int)y : sum;
                CHECK(sum == wide_c[at % 16][at / 16], "%s: lane %d, sum %d: got %d, want %d", cases[i].name, lane, v,
                      sum, wide_c[at % 16][at / 16]);
            }
    }
    release(registers);
}

/* ldmatrix: CuTe's SM75_U32x4_LDSM_N and SM75_U16x8_LDSM_T (cute/atom/copy_traits_sm75.hpp). Bits 128 t .. of all are
   the row that lane t names; its register r gets bits 32 t + 1024 r .., transposed: its half h of register r bits 256
   (t % 4) + 16 (t / 4) + 128 h + 1024 r .. */
static __global__ void matrices(uint16_t *halves) {
    uint16_t *shared = (uint16_t *)(void *)mixprec_cuda_shared_();
    uint32_t x[4], y[4], lane = threadIdx.x, row = (lane * 5 + 3) % 32; /* rows lie in disorder */
    for (uint32_t e = 0; e < 8; e++)
        shared[row * 8 + e] = (uint16_t)(lane * 8 + e);
    __syncthreads();
    mixprec_cuda_ldmatrix_<false>(x, mixprec_cuda_shared_address_(shared + row * 8));
    mixprec_cuda_ldmatrix_<true>(y, mixprec_cuda_shared_address_(shared + row * 8));
    memcpy(halves + lane * 16, x, 16);
    memcpy(halves + lane * 16 + 8, y, 16);
}
static void test_ldmatrix(void) {
    uint16_t *halves = (uint16_t *)memory(32 * 16 * 2);
    OK(mixprec_cuda_launch_(matrices, 1, 1, 32, 32 * 16, NULL, halves));
    for (int lane = 0; lane < 32; lane++)
        for (int v = 0; v < 8; v++) {
            int plain = (32 * lane + 1024 * (v / 2)) / 16 + v % 2;
            int turned = (256 * (lane % 4) + 16 * (lane / 4) + 128 * (v % 2) + 1024 * (v / 2)) / 16;
            CHECK(halves[lane * 16 + v] == plain, "lane %d, half %d: got %d, want %d", lane, v, halves[lane * 16 + v],
                  plain);
            CHECK(halves[lane * 16 + 8 + v] == turned, "transposed, lane %d, half %d: got %d, want %d", lane, v,
                  halves[lane * 16 + 8 + v], turned);
        }
    release(halves);
}

/* Which half is which: PTX ISA, cvt: "the value converted from input a is stored in the upper half of d"; from e4m3x2
   "the upper 8 bits" become the upper half. TF32 ties go away from zero (.rna). cp.async with ignore-src: zeros. */
static __global__ void halves_of(uint32_t *out, const uint32_t *in) {
    unsigned char *shared = mixprec_cuda_shared_();
    uint32_t address = mixprec_cuda_shared_address_(shared);
    out[0] = mixprec_cuda_has_cvt_(MIXPREC_F16) ? mixprec_cuda_cvt_pair_(1, 2, MIXPREC_F16) : 0x40003C00u;
    out[1] = mixprec_cuda_has_cvt_(MIXPREC_BF16) ? mixprec_cuda_cvt_pair_(1, 2, MIXPREC_BF16) : 0x40003F80u;
    out[2] = mixprec_cuda_has_cvt_(MIXPREC_E4M3) ? mixprec_cuda_cvt_pair_(1, 1e9f, MIXPREC_E4M3) : 0x7E38u;
    out[3] = mixprec_cuda_has_cvt_(MIXPREC_E5M2) ? mixprec_cuda_cvt_pair_(1, 1e9f, MIXPREC_E5M2) : 0x7B3Cu;
    out[4] = mixprec_cuda_has_cvt_(MIXPREC_E4M3) ? mixprec_cuda_cvt_e4m3x2_(0x4038u) : 0x40003C00u;
    out[5] = mixprec_cuda_mul_f16x2_(0x3C004000u, 0x44004200u); /* 1, 2 times 4, 3 */
    out[6] = mixprec_cuda_has_cvt_(MIXPREC_F16) ? mixprec_cuda_tf32_(0x3F801000u) : 0x3F802000u;
    out[7] = 0;
    if (!mixprec_cuda_has_cvt_(MIXPREC_F16))
        return;
    mixprec_cuda_copy_async_<16>(address, in, true);
    mixprec_cuda_copy_async_<16>(address + 16, (const void *)16, false);
    mixprec_cuda_copy_commit_();
    mixprec_cuda_copy_wait_<0>();
    for (int i = 0; i < 8; i++)
        out[7] |= ((const uint32_t *)(const void *)shared)[i] ^ (i < 4 ? in[i] : 0);
}
static void test_halves(void) {
    static const uint32_t want[8] = {0x40003C00u, 0x40003F80u, 0x7E38u,     0x7B3Cu,
                                     0x40003C00u, 0x44004600u, 0x3F802000u, 0};
    uint32_t *x = (uint32_t *)memory(12 * sizeof(uint32_t));
    memset(x, 0x5A, 12 * sizeof(uint32_t));
    OK(mixprec_cuda_launch_(halves_of, 1, 1, 1, 32, NULL, x + 4, (const uint32_t *)x));
    for (int i = 0; i < 8; i++)
        CHECK(x[4 + i] == want[i], "instruction %d: got %08x, want %08x", i, x[4 + i], want[i]);
    release(x);
}

/* ---- arrays ---- */

/* Every pair of dtypes in every mode against mixprec_convert_ex, with guards before and behind. */
static void test_convert(void) {
    static const size_t lengths[] = {1, 7, 8, 63, 1000, 8192 + 11, 20000};
    int src_type, dst_type, trial;
    for (src_type = 1; src_type < MIXPREC_DTYPE_COUNT; src_type++)
        for (dst_type = 1; dst_type < MIXPREC_DTYPE_COUNT; dst_type++)
            for (trial = 0; trial < (test_quick ? 2 : 4); trial++) {
                size_t n = trial ? lengths[random_u32() % (trial == 3 ? 7 : 5)] : 333, i;
                mixprec_dtype from = (mixprec_dtype)src_type, to = (mixprec_dtype)dst_type;
                size_t src_bytes = mixprec_dtype_bytes(from, n), dst_bytes = mixprec_dtype_bytes(to, n);
                size_t shift = trial % 2 ? 0 : 8;
                unsigned char *src = (unsigned char *)memory(src_bytes, shift);
                unsigned char *got = (unsigned char *)memory(dst_bytes + 16, shift), *want;
                mixprec_convert_options how = {
                    MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0, MIXPREC_ISA_AUTO, 0, 0};
                mixprec_status status;
                want = (unsigned char *)malloc(dst_bytes + 16);
                for (i = 0; i < src_bytes; i++)
                    src[i] = (unsigned char)random_u32();
                if (from == MIXPREC_F32 || from == MIXPREC_F64) /* near the narrow formats */
                    for (i = 0; i < n; i++)
                        if (i % 5) {
                            double x = ldexp(random_unit() * 2 - 1, (int)(random_u32() % 50) - 30);
                            float y = (float)x;
                            memcpy(src + i * size_of(from), from == MIXPREC_F64 ? (void *)&x : (void *)&y,
                                   size_of(from));
                        }
                if (trial) {
                    how.round = (mixprec_round)(random_u32() % 6);
                    how.overflow = (mixprec_overflow)(random_u32() % 3);
                    how.scale = trial == 1 ? 0 : trial == 2 ? 1 : 0.37f;
                    how.seed = random_u32();
                    how.offset = random_u32();
                }
                memset(got, 0xA5, dst_bytes + 16);
                memset(want, 0xA5, dst_bytes + 16);
                mixprec_convert_ex(want, to, src, from, n, &how);
                status = mixprec_cuda_convert_ex(got, to, src, from, n, &how, NULL);
                finish();
                CHECK(status == MIXPREC_OK && !memcmp(got, want, dst_bytes + 16),
                      "%s to %s, n = %zu, trial %d: status %d", mixprec_dtype_name(from), mixprec_dtype_name(to), n,
                      trial, (int)status);
                release(src);
                release(got);
                free(want);
            }
}

/* From every code of 16 and 8 bits. */
static void test_convert_every_code(void) {
    const size_t n = 65536;
    void *src = memory(n * 2);
    float *got = (float *)memory(n * 4), *want = (float *)malloc(n * 4);
    size_t i;
    int t;
    for (t = 1; t < 5; t++) {
        for (i = 0; i < n; i++)
            if (size_of(compute_types[t]) == 2)
                ((uint16_t *)src)[i] = (uint16_t)i;
            else
                ((uint8_t *)src)[i] = (uint8_t)i;
        OK(mixprec_cuda_convert(got, MIXPREC_F32, src, compute_types[t], n, NULL));
        mixprec_convert(want, MIXPREC_F32, src, compute_types[t], n);
        for (i = 0; i < n; i++)
            CHECK(float_bits(got[i]) == float_bits(want[i]), "%s %zx: got %08x, want %08x",
                  mixprec_dtype_name(compute_types[t]), i, float_bits(got[i]), float_bits(want[i]));
    }
    release(src);
    release(got);
    free(want);
}

/* From every float, 2^22 at a time: all 2^32 on a device, a sample of them in the emulation. */
static void test_convert_every_float(void) {
#ifdef TEST_ON_DEVICE
    const size_t n = (size_t)1 << 22, chunks = test_quick ? 8 : 1024;
#else
    const size_t n = (size_t)1 << 14, chunks = 2;
#endif
    float *src = (float *)memory(n * 4);
    uint16_t *got = (uint16_t *)memory(n * 2), *want = (uint16_t *)malloc(n * 2);
    size_t chunk, i;
    int t, policy;
    for (chunk = 0; chunk < chunks; chunk++) {
        for (i = 0; i < n; i++)
            src[i] = float_from_bits((uint32_t)((chunk * n + i) * (((uint64_t)1 << 32) / (n * chunks))));
        for (t = 1; t < 5; t++)
            for (policy = 0; policy < 4; policy++) { /* to nearest even, and one of the other modes */
                mixprec_convert_options how = {policy < 3 ? MIXPREC_ROUND_NEAREST_EVEN : (mixprec_round)(1 + chunk % 5),
                                               (mixprec_overflow)(policy < 3 ? policy : (int)(chunk / 5 % 3)),
                                               0,
                                               MIXPREC_ISA_AUTO,
                                               chunk,
                                               0};
                OK(mixprec_cuda_convert_ex(got, compute_types[t], src, MIXPREC_F32, n, &how, NULL));
                mixprec_convert_ex(want, compute_types[t], src, MIXPREC_F32, n, &how);
                CHECK(!memcmp(got, want, n * size_of(compute_types[t])), "f32 to %s, policy %d, chunk %zu",
                      mixprec_dtype_name(compute_types[t]), policy, chunk);
            }
    }
    release(src);
    release(got);
    free(want);
}

static void test_convert_list(void) {
    static const size_t lengths[] = {5, 0, 8192, 8193, 100, 30000, 1};
    int s, d;
    for (s = 0; s < 5; s++)
        for (d = 0; d < 5; d++) {
            mixprec_cuda_tensor list[64];
            size_t count = s == 1 && d == 1 ? 64 : 7, i, j; /* 64: more than one launch takes */
            for (i = 0; i < count; i++) {
                list[i].n = i < 7 ? lengths[i] : i;
                list[i].src = memory(list[i].n * 4, i % 3 * 4);
                list[i].dst = memory(list[i].n * 4, i % 2 * 4);
                for (j = 0; j < list[i].n; j++)
                    put((void *)list[i].src, compute_types[s], j,
                        ldexp(random_unit() - 0.5, (int)(random_u32() % 40) - 20));
            }
            OK(mixprec_cuda_convert_list(list, count, compute_types[d], compute_types[s], MIXPREC_OVERFLOW_SATURATE,
                                         NULL));
            for (i = 0; i < count; i++) {
                for (j = 0; j < list[i].n; j++) {
                    uint32_t want = mixprec_encode(value_at(list[i].src, compute_types[s], j), compute_types[d],
                                                   MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_SATURATE, 0);
                    CHECK(code_at(list[i].dst, compute_types[d], j) == want, "%s to %s: tensor %zu, element %zu",
                          mixprec_dtype_name(compute_types[s]), mixprec_dtype_name(compute_types[d]), i, j);
                }
                release(list[i].src);
                release(list[i].dst);
            }
        }
}

/* Chunks that are whole, or short or long by one; each side aligned or off by an element; values that the fast way
   leaves to the exact one; in place where the sizes are the same. */
static void test_convert_chunks(void) {
    static const size_t lengths[] = {512, 8191, 8192, 8193, 16384};
    const size_t most = 16384;
    for (int s = 0; s < 5; s++)
        for (int d = 0; d < 5; d++)
            for (int form = 0; form < (test_quick ? 4 : 20); form++) {
                const mixprec_dtype from = compute_types[s], to = compute_types[d];
                const bool in_place = size_of(from) == size_of(to) && form % 4 == 3;
                size_t n = lengths[(form + s + d) % 5], i;
                unsigned char *src = (unsigned char *)memory(most * 4, form % 2 * size_of(from));
                unsigned char *other = (unsigned char *)memory(most * 4 + 16, form / 2 % 2 * size_of(to));
                unsigned char *dst = in_place ? src : other, *want = (unsigned char *)malloc(most * 4 + 16);
                mixprec_cuda_tensor one = {dst, src, n};
                for (i = 0; i < n; i++)
                    put(src, from, i, random_unit() * 4 - 2);
                if (form % 3) /* one of a warp, and the last one */
                    put(src, from, 300, form % 3 == 1 ? (double)NAN : 3e38), put(src, from, n - 1, (double)NAN);
                memset(want, 0xA5, most * 4 + 16);
                memset(other, 0xA5, most * 4 + 16);
                for (i = 0; i < n; i++) {
                    uint32_t code = mixprec_encode(value_at(src, from, i), to, MIXPREC_ROUND_NEAREST_EVEN,
                                                   MIXPREC_OVERFLOW_IEEE, 0);
                    memcpy(want + i * size_of(to), &code, size_of(to));
                }
                OK(mixprec_cuda_convert_list(&one, 1, to, from, MIXPREC_OVERFLOW_IEEE, NULL));
                CHECK(!memcmp(dst, want, n * size_of(to) + (in_place ? 0 : 16)), "%s to %s, n = %zu, form %d",
                      mixprec_dtype_name(from), mixprec_dtype_name(to), n, form);
                release(src);
                release(other);
                free(want);
            }
}

/* How many blocks a launch of a list may have is counted in multiprocessors: with one, a block gets several tiles. */
static void pretend_multiprocessors(int count) {
#ifdef TEST_ON_DEVICE
    (void)count;
#else
    emulation_device.multiprocessors = count;
#endif
}

static void test_convert_transpose(void) {
    static const size_t shapes[][2] = {{1, 1}, {128, 64}, {0, 5}, {65, 63}, {3, 193}, {130, 7}, {7, 0}, {272, 144}};
    int t, d;
    pretend_multiprocessors(1);
    for (t = 0; t < 5; t++)
        for (d = 0; d < 5; d++) {
            mixprec_dtype from = compute_types[t], to = compute_types[d];
            mixprec_cuda_transposed list[64];
            size_t count = t == d ? 64 : 8, m, i, j; /* 64: more than one launch takes */
            float *scales = (float *)memory(64 * 4);
            for (m = 0; m < count; m++) { /* every third without dst, every fourth without a scale */
                mixprec_cuda_transposed *x = &list[m];
                size_t n;
                x->rows = m < 8 ? shapes[m][0] : m * 10 % 81, x->columns = m < 8 ? shapes[m][1] : m * 13 % 79;
                n = x->rows * x->columns;
                x->src = n ? memory(n * 4, m % 3 * 4) : NULL;
                x->dst = n && m % 3 != 2 ? memory(n * 4, m % 2 * 4) : NULL;
                x->transposed = n ? memory(n * 4, m % 5 * 4) : NULL;
                x->scale = m % 4 == 3 ? NULL : scales + m;
                scales[m] = 3.7f + (float)m;
                for (i = 0; i < n; i++)
                    put((void *)x->src, from, i, random_unit() * 100 - 50);
            }
            OK(mixprec_cuda_convert_transpose(list, count, to, from, MIXPREC_OVERFLOW_SATURATE, NULL));
            for (m = 0; m < count; m++) {
                const mixprec_cuda_transposed *x = &list[m];
                for (i = 0; i < x->rows; i++)
                    for (j = 0; j < x->columns; j++) {
                        float value = (float)value_at(x->src, from, i * x->columns + j);
                        uint32_t want = mixprec_encode((double)(x->scale ? rounded(value * *x->scale) : value), to,
                                                       MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_SATURATE, 0);
                        CHECK(code_at(x->transposed, to, j * x->rows + i) == want &&
                                  (!x->dst || code_at(x->dst, to, i * x->columns + j) == want),
                              "%zu: %zu x %zu, %s to %s: element %zu, %zu", m, x->rows, x->columns,
                              mixprec_dtype_name(from), mixprec_dtype_name(to), i, j);
                    }
                release(x->src);
                release(x->dst);
                release(x->transposed);
            }
            release(scales);
        }
    pretend_multiprocessors(4);
}

/* ---- GEMM ---- */

#ifndef TEST_ON_DEVICE
static void pretend_device(int arch, int multiprocessors, bool wgmma = false) {
    emulation_device.wgmma = wgmma; /* as compiled for sm_90a */
    emulation_device.major = arch / 10;
    emulation_device.minor = arch % 10;
    emulation_device.compiled = arch;
    emulation_device.multiprocessors = multiprocessors;
    emulation_device.shared_bytes = arch == 75                                ? 65536
                                    : arch == 86 || arch == 89 || arch == 120 ? 101376
                                    : arch == 80                              ? 166912
                                                                              : 232448;
}
#endif

/* A matrix of a batch: `count` of rows x columns elements, ld and stride wider than need be, NaN between. */
typedef struct {
    void *data;
    mixprec_dtype type;
    size_t rows, columns, ld, stride, count, bytes;
} matrix;

static matrix make_matrix(mixprec_dtype type, size_t rows, size_t columns, size_t count, bool aligned, bool values) {
    matrix x = {NULL, type, rows, columns, 0, 0, count, 0};
    size_t b, i, j, unit = 16 / size_of(type);
    x.ld = columns + (random_u32() % 3 ? random_u32() % 20 : 0);
    if (aligned)
        x.ld = (x.ld + unit - 1) / unit * unit;
    if (!x.ld)
        x.ld = 1;
    x.stride = rows * x.ld + (aligned ? unit : random_u32() % 9);
    x.bytes = count * x.stride * size_of(type) + 64;
    x.data = memory(x.bytes, aligned ? 0 : random_u32() % 4 * size_of(type));
    memset(x.data, 0xFF, x.bytes);
#ifndef TEST_ON_DEVICE
    if (rows && columns) /* nothing behind the last element may be read */
        emulation_arrays.back().second =
            (uintptr_t)x.data + ((count - 1) * x.stride + (rows - 1) * x.ld + columns) * size_of(type);
#endif
    for (b = 0; b < count && values; b++)
        for (i = 0; i < rows; i++)
            for (j = 0; j < columns; j++)
                put(x.data, type, b * x.stride + i * x.ld + j,
                    type == MIXPREC_I8 ? (double)(int)(random_u32() % 255) - 127 : random_unit() * 2 - 1);
    return x;
}

static double activate(double x, mixprec_activation activation) {
    switch (activation) {
    case MIXPREC_ACTIVATION_NONE: break;
    case MIXPREC_ACTIVATION_RELU: return x > 0 ? x : 0;
    case MIXPREC_ACTIVATION_GELU: return 0.5 * x * erfc(-x / sqrt(2.0));
    case MIXPREC_ACTIVATION_GELU_TANH:
        return x / (1 + exp(-2 * sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    case MIXPREC_ACTIVATION_SILU: return x / (1 + exp(-x));
    case MIXPREC_ACTIVATION_TANH: return tanh(x);
    }
    return x;
}

static double scale_of(const mixprec_scales *s, size_t i, size_t j, size_t columns) {
    size_t width = s->block_columns ? (columns + s->block_columns - 1) / s->block_columns : 1;
    size_t ld = s->ld ? s->ld : width;
    if (!s->values)
        return 1;
    return (double)
        s->values[(s->block_rows ? i / s->block_rows : 0) * ld + (s->block_columns ? j / s->block_columns : 0)];
}

/* Every element of every C against double arithmetic; what must not be touched is untouched. `operand_error`: of an
   operand rounded to TF32. */
static void check_gemm(const char *what, const mixprec_gemm_desc *d, const matrix *a, const matrix *b, const matrix *c,
                       const void *before, double operand_error) {
    size_t l, i, j, p, size = size_of(c->type);
    double alpha = d->alpha ? (double)(float)*d->alpha : 1, beta = d->beta ? (double)(float)*d->beta : 0;
    long wrong = 0;
    unsigned char *touched = (unsigned char *)calloc(c->bytes, 1);
    double *wide_a = (double *)malloc((d->m * d->k + 1) * sizeof(double)),
           *wide_b = (double *)malloc((d->n * d->k + 1) * sizeof(double));
    for (l = 0; l < c->count; l++) {
        for (i = 0; i < d->m * d->k && alpha != 0; i++) { /* rows of op(A), and columns of op(B), of k numbers */
            size_t row = d->trans_a ? i % d->k : i / d->k, column = d->trans_a ? i / d->k : i % d->k;
            wide_a[i] = value_at(a->data, a->type, (d->stride_a ? l : 0) * a->stride + row * a->ld + column) *
                        scale_of(&d->scale_a, row, column, a->columns);
        }
        for (i = 0; i < d->n * d->k && alpha != 0; i++) {
            size_t row = d->trans_b ? i / d->k : i % d->k, column = d->trans_b ? i % d->k : i / d->k;
            wide_b[i] = value_at(b->data, b->type, (d->stride_b ? l : 0) * b->stride + row * b->ld + column) *
                        scale_of(&d->scale_b, row, column, b->columns);
        }
        for (i = d->row_begin; i < (d->row_end ? d->row_end : d->m); i++)
            for (j = 0; j < d->n; j++) {
                size_t at = l * c->stride + i * c->ld + j;
                double sum = 0, magnitude = 0, y, error, got = value_at(c->data, c->type, at);
                mixprec_format_info info;
                if ((d->triangle == MIXPREC_LOWER && j > i) || (d->triangle == MIXPREC_UPPER && j < i))
                    continue;
                memset(touched + at * size, 1, size);
                for (p = 0; p < d->k && alpha != 0; p++) {
                    double x = wide_a[i * d->k + p] * wide_b[j * d->k + p];
                    sum += x;
                    magnitude += fabs(x);
                }
                y = alpha * sum;
                error = fabs(alpha) * magnitude * ((double)d->k * 0x1p-24 + 0x1p-21 + 2 * operand_error);
                if (beta != 0) {
                    double old = beta * value_at(before, c->type, at);
                    y += old;
                    error += fabs(old) * 0x1p-22;
                }
                if (d->bias) {
                    double bias = value_at(d->bias, d->bias_type ? d->bias_type : MIXPREC_F32, j);
                    y += bias;
                    error += fabs(bias) * 0x1p-22;
                }
                error = 1.2 * error + fabs(y) * 0x1p-21;
                y = activate(y, d->activation);
                mixprec_format(c->type, &info);
                error += fabs(y) * info.epsilon + info.min_subnormal;
                if (y > info.max)
                    y = info.max;
                if (!(fabs(got - y) <= error) && wrong++ < 3)
                    CHECK(0, "%s: %c%c m %zu n %zu k %zu %s %s -> %s product %zu (%zu, %zu): got %g, want %g +- %g",
                          what, d->trans_a ? 'T' : 'N', d->trans_b ? 'T' : 'N', d->m, d->n, d->k,
                          mixprec_dtype_name(a->type), mixprec_dtype_name(b->type), mixprec_dtype_name(c->type), l, i,
                          j, got, y, error);
            }
    }
    for (i = 0; i < c->bytes; i++)
        if (!touched[i] && ((const unsigned char *)c->data)[i] != ((const unsigned char *)before)[i]) {
            CHECK(0, "%s: m %zu n %zu k %zu: byte %zu, which is no element of C, was written", what, d->m, d->n, d->k,
                  i);
            break;
        }
    CHECK(wrong <= 3, "%s: %ld elements wrong", what, wrong);
    free(touched);
    free(wide_a);
    free(wide_b);
}

static mixprec_scales make_scales(size_t rows, size_t columns, int form, float **memory_of) {
    mixprec_scales s = {NULL, 0, 0, 0};
    size_t i, count = rows * columns + rows + columns + 1;
    *memory_of = NULL;
    if (form == 0)
        return s;
    *memory_of = (float *)memory(count * sizeof(float));
    for (i = 0; i < count; i++)
        (*memory_of)[i] = (float)(0.5 + random_unit());
    s.values = *memory_of;
    s.block_rows = form == 1 ? 0 : form == 2 ? 1 : form == 3 ? 0 : form == 4 ? 1 : 24;
    s.block_columns = form == 1 ? 0 : form == 2 ? 0 : form == 3 ? 1 : form == 4 ? 48 : 48;
    return s;
}

typedef struct {
    mixprec_dtype a, b;
    mixprec_cuda_path path;
    int native, arch, multiprocessors;
    int extras;
} gemm_kind;

static void run_gemm(const char *what, gemm_kind kind, size_t m, size_t n, size_t k) {
    static const mixprec_dtype c_types[] = {MIXPREC_F32,  MIXPREC_F32,  MIXPREC_F16,
                                            MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
    static const double alphas[] = {1, 1, -0.75, 0, 0.1}, betas[] = {1, 0, -0.75, 0, 0.1};
    mixprec_gemm_desc d;
    mixprec_cuda_gemm_options options;
    const bool aligned = random_u32() % 3 != 0, given = random_u32() % 3 == 0; /* a workspace */
    const bool units = kind.path == MIXPREC_CUDA_PATH_WGMMA && (kind.native || kind.a == MIXPREC_I8);
    double alpha = alphas[random_u32() % 5], beta = betas[random_u32() % 5], elsewhere = 123;
    float *scale_a, *scale_b, *coefficient = (float *)memory(8);
    matrix a, b, c;
    mixprec_status status;
    void *before, *bias = NULL;
    size_t i;
    memset(&d, 0, sizeof d);
    memset(&options, 0, sizeof options);
#ifndef TEST_ON_DEVICE
    pretend_device(kind.arch, kind.multiprocessors, kind.path == MIXPREC_CUDA_PATH_WGMMA);
#endif
    options.path = kind.path;
    d.trans_a = random_u32() % 2 ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
    d.trans_b = random_u32() % 2 ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
    if (units && !given) /* all that there is without a workspace */
        d.trans_a = MIXPREC_NO_TRANS, d.trans_b = MIXPREC_TRANS;
    d.m = m, d.n = n, d.k = k;
    d.batch = kind.extras && random_u32() % 3 == 0 ? 1 + random_u32() % 3 : 0;
    a = make_matrix(kind.a, d.trans_a ? k : m, d.trans_a ? m : k, d.batch ? d.batch : 1, aligned, true);
    b = make_matrix(kind.b, d.trans_b ? n : k, d.trans_b ? k : n, d.batch ? d.batch : 1, aligned, true);
    c = make_matrix(c_types[random_u32() % 6], m, n, d.batch ? d.batch : 1, aligned, beta != 0);
    if (kind.a == MIXPREC_I8) /* sums of up to k * 2^14 */
        alpha /= 16384;
    d.alpha = &alpha, d.beta = &beta;
    if (random_u32() % 4 == 0) { /* from the device */
        coefficient[0] = (float)alpha, coefficient[1] = (float)beta;
        options.alpha = coefficient, options.beta = coefficient + 1;
    }
    d.a = a.data, d.a_type = a.type, d.lda = a.ld, d.stride_a = d.batch && random_u32() % 4 ? a.stride : 0;
    d.b = b.data, d.b_type = b.type, d.ldb = b.ld, d.stride_b = d.batch && random_u32() % 4 ? b.stride : 0;
    d.c = c.data, d.c_type = c.type, d.ldc = c.ld, d.stride_c = c.stride;
    d.overflow = size_of(c.type) == 1 || random_u32() % 2 ? MIXPREC_OVERFLOW_SATURATE : MIXPREC_OVERFLOW_IEEE;
    d.native = kind.native;
    d.scale_a = make_scales(a.rows, a.columns, kind.extras ? (int)(random_u32() % (unsigned)kind.extras) : 0, &scale_a);
    d.scale_b = make_scales(b.rows, b.columns, kind.extras ? (int)(random_u32() % (unsigned)kind.extras) : 0, &scale_b);
    if (kind.path > MIXPREC_CUDA_PATH_EXACT) { /* a scale that varies along k is not theirs */
        if (d.scale_a.block_columns && !d.trans_a)
            d.scale_a.block_columns = 0, d.scale_a.block_rows = 1;
        if (d.scale_a.block_rows && d.trans_a)
            d.scale_a.block_rows = 0, d.scale_a.block_columns = 1;
        if (d.scale_b.block_rows && !d.trans_b)
            d.scale_b.block_rows = 0, d.scale_b.block_columns = 1;
        if (d.scale_b.block_columns && d.trans_b)
            d.scale_b.block_columns = 0, d.scale_b.block_rows = 1;
    }
    if (kind.extras && random_u32() % 2) {
        d.bias_type = random_u32() % 2 ? MIXPREC_NONE : compute_types[random_u32() % 5];
        bias = memory(n * 4 + 4);
        for (i = 0; i < n; i++)
            put(bias, d.bias_type ? d.bias_type : MIXPREC_F32, i, random_unit() - 0.5);
        d.bias = bias;
        d.activation = (mixprec_activation)(random_u32() % 6);
        d.round = (mixprec_round)(random_u32() % 6);
    }
    if (kind.extras && random_u32() % 3 == 0) {
        if (m == n)
            d.triangle = random_u32() % 2 ? MIXPREC_LOWER : MIXPREC_UPPER;
        else if (m > 2 && !(units && d.trans_a))
            d.row_begin = random_u32() % m, d.row_end = d.row_begin + 1 + random_u32() % (m - d.row_begin);
    }
    if (given) {
        size_t bytes = 0;
        if (kind.path != MIXPREC_CUDA_PATH_EXACT && random_u32() % 2 && k > 100 && kind.a != MIXPREC_I8)
            options.split_k = 2 + random_u32() % 3;
        status = mixprec_cuda_gemm_workspace(&d, &options, &bytes);
#ifdef TEST_ON_DEVICE
        CHECK(status == MIXPREC_OK || status == MIXPREC_ERR_DEVICE, "workspace: status %d", (int)status);
#else
        CHECK(status == MIXPREC_OK, "workspace: status %d", (int)status);
#endif
        d.workspace_size = options.split_k || units || random_u32() % 2 ? bytes : bytes / 2;
        d.workspace = memory(bytes + 1);
        memset(d.workspace, 0xFF, bytes);
    }
    before = malloc(c.bytes);
    memcpy(before, c.data, c.bytes);
    d.alpha = options.alpha ? &elsewhere : &alpha, d.beta = options.alpha ? &elsewhere : &beta;
    status = mixprec_cuda_gemm_ex(&d, &options, NULL);
    finish();
    d.alpha = &alpha, d.beta = &beta;
#ifdef TEST_ON_DEVICE
    if (status == MIXPREC_ERR_DEVICE) /* this device lacks the path: C must be as it was */
        CHECK(!memcmp(before, c.data, c.bytes), "%s: refused, but C was written", what);
    else
#endif
    {
        CHECK(status == MIXPREC_OK, "%s: status %d (%s)", what, (int)status, mixprec_cuda_last_error());
        /* TF32 has 10 mantissa bits; sm_90's fp8 units lost 2^-10.1 of the magnitudes of 128 products, all positive */
#ifdef TEST_ON_DEVICE
        const bool loose = kind.native != 0;
#else
        const bool loose = kind.native && kind.a == MIXPREC_F32;
#endif
        check_gemm(what, &d, &a, &b, &c, before, loose ? 0x1p-11 : 0);
    }
    free(before);
    release(a.data);
    release(b.data);
    release(c.data);
    release(coefficient);
    release(bias);
    release(scale_a);
    release(scale_b);
    release(d.workspace);
#ifndef TEST_ON_DEVICE
    pretend_device(90, 4);
#endif
}

static size_t random_size(size_t most) {
    size_t n = 1 + random_u32() % most;
    return random_u32() % 3 ? n : random_u32() % 2 ? (n + 15) / 16 * 16 : 1 + random_u32() % 9;
}
static void run_gemms(const char *what, const gemm_kind *kinds, size_t kind_count, int shapes, size_t most) {
    static const size_t fixed[][3] = {{1, 1, 1}, {128, 128, 64}, {129, 257, 65}, {64, 64, 64}, {17, 8, 200}};
    size_t i;
    for (i = 0; i < kind_count; i++) {
        int s;
        for (s = 0; s < shapes; s++) {
            size_t m = random_size(most), n = s % 4 == 0 ? m : random_size(most), k = random_size(most + 60);
#ifdef TEST_ON_DEVICE
            if (s % 8 == 7)
                m *= 4, n *= 4, k *= 4;
#endif
            if (s < 5)
                m = fixed[s][0], n = fixed[s][1], k = fixed[s][2];
            else if (s == 5)
                k = 0;
            run_gemm(what, kinds[i], m, n, k);
        }
    }
}
#define RUN_GEMMS(what, kinds, shapes, most)                                                                           \
    run_gemms(what, kinds, sizeof kinds / sizeof *kinds, test_quick ? 6 : shapes, most)

/* Is this device, and the program's code for it, one that has the path? Nothing else tells sm_90a from sm_90. */
static bool has_wgmma(void) {
    mixprec_gemm_desc d = {};
    mixprec_cuda_gemm_options options = {};
    size_t bytes;
    d.m = d.n = d.k = 1, d.a_type = d.b_type = MIXPREC_F16, d.c_type = MIXPREC_F32;
    options.path = MIXPREC_CUDA_PATH_WGMMA;
    return mixprec_cuda_gemm_workspace(&d, &options, &bytes) == MIXPREC_OK;
}

static void test_gemm_exact(void) {
    static const gemm_kind kinds[] = {{MIXPREC_F32, MIXPREC_F32, MIXPREC_CUDA_PATH_AUTO, 0, 75, 4, 6},
                                      {MIXPREC_F16, MIXPREC_E4M3, MIXPREC_CUDA_PATH_AUTO, 0, 90, 4, 6},
                                      {MIXPREC_BF16, MIXPREC_BF16, MIXPREC_CUDA_PATH_AUTO, 0, 75, 4, 4},
                                      {MIXPREC_E4M3, MIXPREC_E5M2, MIXPREC_CUDA_PATH_EXACT, 0, 90, 4, 6},
                                      {MIXPREC_I8, MIXPREC_I8, MIXPREC_CUDA_PATH_EXACT, 0, 90, 4, 1}};
    RUN_GEMMS("exact", kinds, 24, 90);
}

/* The CPU's bits, on what both sides have. */
static void test_gemm_bits(void) {
    int trial;
    for (trial = 0; trial < (test_quick ? 20 : 100); trial++) {
        mixprec_dtype a_type = compute_types[random_u32() % 5], b_type = compute_types[random_u32() % 5];
        size_t m = random_size(70), n = random_size(70), k = trial % 10 ? random_size(100) : 1300, i;
        mixprec_gemm_desc d;
        mixprec_cuda_gemm_options options;
        double alpha = trial % 5 == 0 ? -1 : trial % 3 ? 1 : 0.3, beta = trial % 4 ? 0 : -1.7;
        const bool scaled = trial % 6 >= 3 && trial % 5 != 0;
        matrix a, b, c;
        void *want, *bias = memory(n * 4);
        float *scale_a, *scale_b;
        memset(&d, 0, sizeof d);
        memset(&options, 0, sizeof options);
        options.path = MIXPREC_CUDA_PATH_EXACT;
        d.trans_a = (mixprec_transpose)(trial & 1), d.trans_b = (mixprec_transpose)(trial >> 1 & 1);
        d.m = m, d.n = n, d.k = k, d.alpha = &alpha, d.beta = &beta;
        d.batch = trial % 7 == 0 ? 3 : 1; /* random bits are drawn by the place in the whole batch */
        a = make_matrix(a_type, d.trans_a ? k : m, d.trans_a ? m : k, d.batch, false, true);
        b = make_matrix(b_type, d.trans_b ? n : k, d.trans_b ? k : n, d.batch, false, true);
        c = make_matrix(trial % 7 == 0   ? MIXPREC_BF16
                        : trial % 5 == 0 ? MIXPREC_F32
                                         : compute_types[random_u32() % 5],
                        m, n, d.batch, trial % 2, true);
        for (i = 0; i < k && trial % 5 == 0; i++) /* sums that are 0, and -0 times alpha */
            put(a.data, a.type, d.trans_a ? i * a.ld : i, 0);
        d.a = a.data, d.a_type = a.type, d.lda = a.ld, d.b = b.data, d.b_type = b.type, d.ldb = b.ld;
        d.c_type = c.type, d.ldc = c.ld;
        d.stride_a = a.stride, d.stride_b = b.stride, d.stride_c = c.stride;
        d.round = trial % 7 ? (mixprec_round)(random_u32() % 6) : MIXPREC_ROUND_STOCHASTIC;
        d.overflow = (mixprec_overflow)(random_u32() % 3);
        d.seed = random_u32(), d.offset = random_u32();
        d.scale_a = make_scales(a.rows, a.columns, scaled ? (int)(random_u32() % 6) : 0, &scale_a);
        d.scale_b = make_scales(b.rows, b.columns, scaled ? (int)(random_u32() % 6) : 0, &scale_b);
        if (k > 1000 && d.scale_a.block_columns > 1 && !d.trans_a) /* pieces of several chunks */
            d.scale_a.block_columns = 600;
        if (trial % 5 == 0) {
            for (i = 0; i < n; i++)
                put(bias, MIXPREC_F32, i, random_unit() - 0.5);
            d.bias = trial % 2 ? NULL : bias, d.activation = MIXPREC_ACTIVATION_RELU;
        }
        want = malloc(c.bytes);
        memcpy(want, c.data, c.bytes);
        d.c = want;
        CHECK(mixprec_gemm_ex(&d) == MIXPREC_OK, "the CPU refuses");
        d.c = c.data;
        OK(mixprec_cuda_gemm_ex(&d, &options, NULL));
        for (i = 0; i < c.bytes; i++)
            if (((unsigned char *)want)[i] != ((unsigned char *)c.data)[i]) {
                CHECK(0, "m %zu n %zu k %zu %s %s -> %s: byte %zu differs", m, n, k, mixprec_dtype_name(a_type),
                      mixprec_dtype_name(b_type), mixprec_dtype_name(c.type), i);
                break;
            }
        free(want);
        release(a.data);
        release(b.data);
        release(c.data);
        release(bias);
        release(scale_a);
        release(scale_b);
    }
}

static void test_gemm_wmma(void) {
    static const gemm_kind kinds[] = {{MIXPREC_F16, MIXPREC_F16, MIXPREC_CUDA_PATH_AUTO, 0, 75, 4, 4},
                                      {MIXPREC_BF16, MIXPREC_BF16, MIXPREC_CUDA_PATH_WMMA, 0, 80, 4, 4},
                                      {MIXPREC_F32, MIXPREC_F32, MIXPREC_CUDA_PATH_WMMA, 1, 90, 4, 4},
                                      {MIXPREC_E4M3, MIXPREC_E5M2, MIXPREC_CUDA_PATH_WMMA, 0, 75, 4, 4},
                                      {MIXPREC_E5M2, MIXPREC_E4M3, MIXPREC_CUDA_PATH_AUTO, 0, 75, 9, 4},
                                      {MIXPREC_I8, MIXPREC_I8, MIXPREC_CUDA_PATH_AUTO, 0, 75, 4, 4}};
    RUN_GEMMS("wmma", kinds, 16, 100);
}

static void test_gemm_mma_16(void) {
    static const gemm_kind kinds[] = {{MIXPREC_F16, MIXPREC_F16, MIXPREC_CUDA_PATH_AUTO, 0, 86, 4, 4},
                                      {MIXPREC_BF16, MIXPREC_BF16, MIXPREC_CUDA_PATH_AUTO, 0, 90, 16, 4},
                                      {MIXPREC_BF16, MIXPREC_BF16, MIXPREC_CUDA_PATH_MMA, 0, 80, 1, 4},
                                      {MIXPREC_F16, MIXPREC_F16, MIXPREC_CUDA_PATH_MMA, 0, 90, 1, 4}};
    RUN_GEMMS("mma, 16 bits", kinds, 40, 280);
}
static void test_gemm_mma_8(void) {
    static const gemm_kind kinds[] = {{MIXPREC_E4M3, MIXPREC_E4M3, MIXPREC_CUDA_PATH_AUTO, 0, 80, 4, 4},
                                      {MIXPREC_E5M2, MIXPREC_E4M3, MIXPREC_CUDA_PATH_AUTO, 1, 90, 4, 4},
                                      {MIXPREC_E4M3, MIXPREC_E4M3, MIXPREC_CUDA_PATH_MMA, 1, 89, 4, 4},
                                      {MIXPREC_E4M3, MIXPREC_E5M2, MIXPREC_CUDA_PATH_MMA, 1, 120, 4, 4},
                                      {MIXPREC_E5M2, MIXPREC_E4M3, MIXPREC_CUDA_PATH_MMA, 1, 89, 4, 4},
                                      {MIXPREC_E5M2, MIXPREC_E5M2, MIXPREC_CUDA_PATH_MMA, 1, 89, 4, 4},
                                      {MIXPREC_I8, MIXPREC_I8, MIXPREC_CUDA_PATH_AUTO, 0, 90, 4, 4}};
    RUN_GEMMS("mma, 8 bits", kinds, 12, 200);
}
static void test_gemm_wgmma(void) {
    static const gemm_kind kinds[] = {{MIXPREC_F16, MIXPREC_F16, MIXPREC_CUDA_PATH_WGMMA, 0, 90, 1, 4},
                                      {MIXPREC_BF16, MIXPREC_BF16, MIXPREC_CUDA_PATH_WGMMA, 0, 90, 16, 4},
                                      {MIXPREC_F32, MIXPREC_F32, MIXPREC_CUDA_PATH_WGMMA, 1, 90, 1, 4},
                                      {MIXPREC_F32, MIXPREC_F32, MIXPREC_CUDA_PATH_WGMMA, 1, 90, 16, 4},
                                      {MIXPREC_E4M3, MIXPREC_E5M2, MIXPREC_CUDA_PATH_WGMMA, 0, 90, 1, 4},
                                      {MIXPREC_E5M2, MIXPREC_E4M3, MIXPREC_CUDA_PATH_WGMMA, 0, 90, 16, 4},
                                      {MIXPREC_E4M3, MIXPREC_E4M3, MIXPREC_CUDA_PATH_WGMMA, 1, 90, 1, 4},
                                      {MIXPREC_E4M3, MIXPREC_E5M2, MIXPREC_CUDA_PATH_WGMMA, 1, 90, 16, 4},
                                      {MIXPREC_E5M2, MIXPREC_E4M3, MIXPREC_CUDA_PATH_WGMMA, 1, 90, 1, 4},
                                      {MIXPREC_E5M2, MIXPREC_E5M2, MIXPREC_CUDA_PATH_WGMMA, 1, 90, 16, 4},
                                      {MIXPREC_I8, MIXPREC_I8, MIXPREC_CUDA_PATH_WGMMA, 0, 90, 4, 4}};
    RUN_GEMMS("wgmma", kinds, 24, 280);
}

/* Few multiprocessors for many tiles, which all end in the common way, so that a block goes from one to the next; or in
   one that differs in a single point. */
static void test_gemm_wgmma_tiles(void) {
    static const mixprec_dtype types[] = {MIXPREC_F16, MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_I8, MIXPREC_F32},
                               c_types[] = {MIXPREC_F32, MIXPREC_F16, MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
    for (int trial = 0; trial < (test_quick ? 12 : 100); trial++) {
        const mixprec_dtype type = types[trial % 5],
                            c_type = type == MIXPREC_I8 ? MIXPREC_F32 : c_types[random_u32() % 5];
        const int other = trial < 12 ? trial : (int)(random_u32() % 16); /* 0 to 8: one thing each */
        const size_t m = 300, n = random_u32() % 2 ? 520 : other == 0 ? 1030 : 1028, k = 16 * (1 + random_u32() % 20);
        const bool trans_a = size_of(type) == 2 && random_u32() % 2, narrow = type == MIXPREC_F32 || type == MIXPREC_I8,
                   trans_b = narrow || random_u32() % 2;
        matrix a = make_matrix(type, trans_a ? k : m, trans_a ? m : k, 2, true, true),
               b = make_matrix(type, trans_b ? n : k, trans_b ? k : n, 2, true, true),
               c = make_matrix(c_type, m, n, 2, other != 1 && other != 2 && random_u32() % 4, true);
        mixprec_gemm_desc d;
        mixprec_cuda_gemm_options options;
        float *scale_a, *scale_b, *bias = (float *)memory(n * 4), *coefficient = (float *)memory(8);
        double alpha = random_u32() % 2 ? 1 : -0.5, beta = other == 2 || other == 3 || other == 8 ? 0.75 : 0;
        void *before = malloc(c.bytes);
        memset(&d, 0, sizeof d);
        memset(&options, 0, sizeof options);
#ifndef TEST_ON_DEVICE
        pretend_device(90, 1 + (int)(random_u32() % 7), true);
        emulation_device.no_maps = random_u32() % 3 == 0;
#endif
        options.path = has_wgmma() ? MIXPREC_CUDA_PATH_WGMMA : MIXPREC_CUDA_PATH_AUTO;
        d.m = m, d.n = n, d.k = k, d.batch = 1 + random_u32() % 2, d.alpha = &alpha, d.beta = &beta;
        c.count = d.batch;
        d.trans_a = trans_a ? MIXPREC_TRANS : MIXPREC_NO_TRANS, d.trans_b = trans_b ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
        d.a = a.data, d.a_type = type, d.lda = a.ld, d.stride_a = d.batch == 2 && random_u32() % 2 ? a.stride : 0;
        d.b = b.data, d.b_type = type, d.ldb = b.ld, d.stride_b = d.batch == 2 && random_u32() % 2 ? b.stride : 0;
        d.c = c.data, d.c_type = c_type, d.ldc = c.ld, d.stride_c = c.stride;
        d.native = type == MIXPREC_F32 || (type == MIXPREC_E4M3 && trans_b && random_u32() % 2);
        d.overflow = size_of(c_type) == 1 && random_u32() % 4 ? MIXPREC_OVERFLOW_SATURATE : MIXPREC_OVERFLOW_IEEE;
        d.scale_a = make_scales(a.rows, a.columns, other == 4 ? (trans_a ? 3 : 2) : (int)(random_u32() % 2), &scale_a);
        const int form = (int)(random_u32() % 3);
        d.scale_b = make_scales(b.rows, b.columns, form < 2 ? form : trans_b ? 2 : 3, &scale_b);
        if (random_u32() % 2) {
            d.bias = bias, d.bias_type = other == 6 ? MIXPREC_E4M3 : c_types[random_u32() % 3];
            for (size_t i = 0; i < n; i++)
                put(bias, d.bias_type, i, random_unit() - 0.5);
        }
        if (d.scale_b.block_rows + d.scale_b.block_columns && other == 5)
            (trans_b ? d.scale_b.block_rows : d.scale_b.block_columns) = 24;
        d.activation = (mixprec_activation)(random_u32() % 2);
        if (other == 7 || (other == 8 && trial % 2 == 0)) /* without an old C, and with one */
            d.activation = (mixprec_activation)(MIXPREC_ACTIVATION_GELU + random_u32() % 4);
        coefficient[0] = (float)alpha, coefficient[1] = (float)beta;
        if (other == 3 || random_u32() % 4 == 0)
            options.alpha = coefficient;
        if (other == 3)
            options.beta = coefficient + 1, beta = 0;
        if (random_u32() % 3 == 0)
            d.row_begin = 8 * (random_u32() % 8), d.row_end = d.row_begin + 140 + random_u32() % 90;
        memcpy(before, c.data, c.bytes);
        CHECK(mixprec_cuda_gemm_ex(&d, &options, NULL) == MIXPREC_OK, "tiles: %s", mixprec_cuda_last_error());
        finish();
        beta = (double)coefficient[1];
        check_gemm("tiles", &d, &a, &b, &c, before, d.native ? 0x1p-11 : 0);
        free(before);
        release(a.data);
        release(b.data);
        release(c.data);
        release(bias);
        release(coefficient);
        release(scale_a);
        release(scale_b);
    }
    for (int round = MIXPREC_ROUND_NEAREST_EVEN; round < MIXPREC_ROUND_STOCHASTIC; round++) { /* 1 + 2^-12 to f16 */
        matrix x = make_matrix(MIXPREC_F16, 64, 16, 1, true, false),
               c = make_matrix(MIXPREC_F16, 64, 64, 1, true, false);
        mixprec_gemm_desc d;
        mixprec_cuda_gemm_options options;
        const double alpha = 1 + 0x1p-12;
        int wrong = 0;
        memset(&d, 0, sizeof d);
        memset(&options, 0, sizeof options);
        for (size_t e = 0; e < 64 * 16; e++)
            put(x.data, MIXPREC_F16, e / 16 * x.ld + e % 16, e % 16 == 0);
#ifndef TEST_ON_DEVICE
        pretend_device(90, 4, true);
#endif
        options.path = has_wgmma() ? MIXPREC_CUDA_PATH_WGMMA : MIXPREC_CUDA_PATH_AUTO;
        d.m = d.n = 64, d.k = 16, d.trans_b = MIXPREC_TRANS, d.alpha = &alpha, d.round = (mixprec_round)round;
        d.a = d.b = x.data, d.c = c.data, d.lda = d.ldb = x.ld, d.ldc = c.ld;
        d.a_type = d.b_type = d.c_type = MIXPREC_F16;
        CHECK(mixprec_cuda_gemm_ex(&d, &options, NULL) == MIXPREC_OK, "rounding: %s", mixprec_cuda_last_error());
        finish();
        for (size_t e = 0; e < 64 * 64; e++)
            wrong += value_at(c.data, MIXPREC_F16, e / 64 * c.ld + e % 64) !=
                     mixprec_decode(mixprec_encode(alpha, MIXPREC_F16, (mixprec_round)round, MIXPREC_OVERFLOW_IEEE, 0),
                                    MIXPREC_F16);
        CHECK(!wrong, "rounding mode %d: %d elements wrong", round, wrong);
        release(x.data);
        release(c.data);
    }
    for (int device = 0; device < 2; device++) { /* alpha is 0: no scale is looked at, C is the bias */
        matrix x = make_matrix(MIXPREC_F16, 64, 16, 1, true, true),
               c = make_matrix(MIXPREC_F32, 64, 64, 1, true, false);
        float *values = (float *)memory(130 * sizeof(float)); /* scale of A, alpha, scales of B's columns, bias */
        mixprec_gemm_desc d;
        mixprec_cuda_gemm_options options;
        const double alpha = device;
        int wrong = 0;
        memset(&d, 0, sizeof d);
        memset(&options, 0, sizeof options);
        values[0] = (float)INFINITY, values[1] = 0;
        for (int e = 0; e < 64; e++)
            values[2 + e] = (float)NAN, values[66 + e] = (float)(e + 1);
#ifndef TEST_ON_DEVICE
        pretend_device(90, 4, true);
#endif
        options.path = has_wgmma() ? MIXPREC_CUDA_PATH_WGMMA : MIXPREC_CUDA_PATH_AUTO;
        options.alpha = device ? values + 1 : NULL;
        d.m = d.n = 64, d.k = 16, d.trans_b = MIXPREC_TRANS, d.alpha = &alpha, d.bias = values + 66;
        d.scale_a.values = values, d.scale_b.values = values + 2, d.scale_b.block_rows = 1;
        d.a = d.b = x.data, d.c = c.data, d.lda = d.ldb = x.ld, d.ldc = c.ld;
        d.a_type = d.b_type = MIXPREC_F16, d.c_type = MIXPREC_F32;
        CHECK(mixprec_cuda_gemm_ex(&d, &options, NULL) == MIXPREC_OK, "alpha 0: %s", mixprec_cuda_last_error());
        finish();
        for (size_t e = 0; e < 64 * 64; e++)
            wrong += value_at(c.data, MIXPREC_F32, e / 64 * c.ld + e % 64) != (double)(e % 64 + 1);
        CHECK(!wrong, "alpha 0, from the %s: %d elements wrong", device ? "device" : "host", wrong);
        release(x.data);
        release(c.data);
        release(values);
    }
#ifndef TEST_ON_DEVICE
    pretend_device(90, 4);
    emulation_device.no_maps = false;
#endif
}
#ifndef TEST_ON_DEVICE
/* What narrows C in the modes that no instruction has, of every exponent, at the ends of the random numbers. */
static void test_code32(void) {
    static const mixprec_dtype types[] = {MIXPREC_F16, MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
    static const uint32_t ends[] = {0, 1, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFEu, 0xFFFFFFFFu};
    for (int i = 0; i < (test_quick ? 200000 : 2000000); i++) {
        const mixprec_dtype type = types[random_u32() % 4];
        const mixprec_round round = (mixprec_round)(random_u32() % 6);
        const mixprec_overflow overflow = (mixprec_overflow)(random_u32() % 3);
        const uint32_t bits = random_u32() & (random_u32() % 2 ? 0xFFFFFFFFu : 0xFFF00000u << random_u32() % 8);
        const uint32_t random = random_u32() % 2 ? random_u32() : ends[random_u32() % 6];
        const float x = float_from_bits(bits);
        const uint32_t got = mixprec_cuda_code32_(x, type, round, overflow, random),
                       want = mixprec_encode((double)x, type, round, overflow, random);
        CHECK(got == want, "%s, mode %d, policy %d, random %08x: %08x is %x, not %x", mixprec_dtype_name(type),
              (int)round, (int)overflow, random, bits, got, want);
    }
}
#endif

/* C in every mode: products of one element of A with one of B, exact in fp32, so that every code is known; on tiles
   that end while the next one is brought, by clusters that halve k, and otherwise. Some are NaN, Inf, beyond C's type
   or subnormal in it. */
static void test_gemm_rounded(void) {
    static const mixprec_dtype c_types[] = {MIXPREC_F16, MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2};
    static const double amplitudes[] = {1, 300, 40000, 0x1p-15, 0x1p-20}, alphas[] = {1, 1, 4, 0x1p-110, 0x1.2p112};
    for (int trial = 0; trial < (test_quick ? 24 : 200); trial++) {
        const bool decoded = trial % 8 == 7, triangle = trial % 8 == 6; /* these have a block for each tile */
        const bool halves = trial % 8 == 5;
        const mixprec_dtype type = decoded ? MIXPREC_E5M2 : MIXPREC_F16, c_type = c_types[random_u32() % 4];
        const size_t m = triangle ? 200 : 130 + random_u32() % 200, n = triangle ? m : 60 + random_u32() % 300,
                     k = halves ? 800 : 16;
        const double amplitude = amplitudes[random_u32() % 5], alpha = alphas[random_u32() % 5];
        const double beta = random_u32() % 3 == 0;
        matrix a = make_matrix(type, m, k, 2, true, false), b = make_matrix(type, n, k, 2, true, false),
               c = make_matrix(c_type, m, n, 2, random_u32() % 2, true);
        mixprec_gemm_desc d;
        mixprec_cuda_gemm_options options;
        void *before = malloc(c.bytes);
        int wrong = 0;
        memcpy(before, c.data, c.bytes);
        memset(&d, 0, sizeof d);
        memset(&options, 0, sizeof options);
        for (size_t i = 0; i < 2 * m; i++)
            for (size_t p = 0; p < k; p++) {
                const uint32_t special = random_u32() % 64;
                put(a.data, type, i / m * a.stride + i % m * a.ld + p,
                    p != i % m % k ? 0
                    : special == 0 ? (double)NAN
                    : special == 1 ? (double)INFINITY
                                   : (random_unit() * 2 - 1) * amplitude);
            }
        for (size_t j = 0; j < 2 * n; j++)
            for (size_t p = 0; p < k; p++)
                put(b.data, type, j / n * b.stride + j % n * b.ld + p, random_unit() + 0.5);
#ifndef TEST_ON_DEVICE
        const bool old = trial / 8 % 3 == 2;
        pretend_device(old ? 80 : 90, halves ? 72 : 1 + (int)(random_u32() % 7), !old);
        const long sent = emulation.sent;
#endif
        d.m = m, d.n = n, d.k = k, d.batch = 2, d.trans_b = MIXPREC_TRANS, d.alpha = &alpha, d.beta = &beta;
        d.a = a.data, d.a_type = type, d.lda = a.ld, d.stride_a = a.stride;
        d.b = b.data, d.b_type = type, d.ldb = b.ld, d.stride_b = b.stride;
        d.c = c.data, d.c_type = c_type, d.ldc = c.ld, d.stride_c = c.stride;
        d.round = (mixprec_round)(random_u32() % 2 ? MIXPREC_ROUND_STOCHASTIC : (int)(random_u32() % 6));
        d.overflow = (mixprec_overflow)(random_u32() % 3);
        d.seed = (uint64_t)random_u32() << 32 | random_u32(), d.offset = random_u32();
        d.triangle = triangle ? MIXPREC_LOWER : MIXPREC_FULL;
        if (!triangle && random_u32() % 3 == 0)
            d.row_begin = 8 * (random_u32() % 8), d.row_end = d.row_begin + 20 + random_u32() % 40;
        CHECK(mixprec_cuda_gemm_ex(&d, &options, NULL) == MIXPREC_OK, "rounded: %s", mixprec_cuda_last_error());
        finish();
#ifndef TEST_ON_DEVICE
        const size_t unit = 4 * size_of(c_type); /* an old C ends in place where it is aligned */
        const bool in_place =
            beta == 0 || (unit > 4 && n % 4 == 0 &&
                          ((uintptr_t)c.data | c.ld * size_of(c_type) | c.stride * size_of(c_type)) % unit == 0);
        CHECK((emulation.sent != sent) == (halves && !old && in_place), "rounded: trial %d: halved %d", trial,
              (int)(emulation.sent != sent));
#endif
        for (size_t l = 0; l < 2; l++)
            for (size_t i = d.row_begin; i < (d.row_end ? d.row_end : m); i++)
                for (size_t j = 0; j < (triangle ? i + 1 : n); j++) {
                    const size_t at = l * c.stride + i * c.ld + j, p = i % k;
                    const uint64_t index = d.offset + (l * m + i) * n + j;
                    const double x = value_at(a.data, type, l * a.stride + i * a.ld + p) *
                                         value_at(b.data, type, l * b.stride + j * b.ld + p) +
                                     0;
                    const float product = rounded((float)x * (float)alpha);
                    const double y =
                        (double)(beta != 0 ? rounded(product + (float)value_at(before, c_type, at)) : product);
                    const uint32_t got = code_at(c.data, c_type, at),
                                   want = mixprec_encode(y, c_type, d.round, d.overflow,
                                                         mixprec_random_bits(d.seed, index));
                    const double value = value_at(c.data, c_type, at);
                    if (y != y ? value == value : got != want)
                        CHECK(wrong++ > 2,
                              "%s, mode %d, policy %d, product %zu (%zu, %zu) of %zu x %zu: %g is %x, not %x",
                              mixprec_dtype_name(c_type), (int)d.round, (int)d.overflow, l, i, j, m, n, y, got, want);
                }
        free(before);
        release(a.data);
        release(b.data);
        release(c.data);
    }
#ifndef TEST_ON_DEVICE
    pretend_device(90, 4);
#endif
}

#ifndef TEST_ON_DEVICE
/* A product A B^T of f16, no row of which is aligned: A and B begin with the second column of theirs. */
static mixprec_gemm_desc make_unaligned(size_t m, size_t n, size_t k, matrix *a, matrix *b, matrix *c) {
    mixprec_gemm_desc d;
    *a = make_matrix(MIXPREC_F16, m, k + 1, 1, true, true), *b = make_matrix(MIXPREC_F16, n, k + 1, 1, true, true);
    *c = make_matrix(MIXPREC_F32, m, n, 1, true, false);
    a->data = (char *)a->data + 2, b->data = (char *)b->data + 2;
    memset(&d, 0, sizeof d);
    d.m = m, d.n = n, d.k = k, d.trans_b = MIXPREC_TRANS;
    d.a = a->data, d.b = b->data, d.c = c->data, d.lda = a->ld, d.ldb = b->ld, d.ldc = c->ld;
    d.a_type = d.b_type = MIXPREC_F16, d.c_type = MIXPREC_F32;
    return d;
}
#endif

/* Where half of the multiprocessors would have no tile, the two blocks of a cluster halve k, unless split_k is asked
   for. */
static void test_gemm_halves(void) {
    static const struct {
        mixprec_dtype a, b;
        int native;
        size_t least; /* steps of 128 bytes */
    } kinds[] = {{MIXPREC_F16, MIXPREC_F16, 0, 12},  {MIXPREC_BF16, MIXPREC_BF16, 0, 12},
                 {MIXPREC_E4M3, MIXPREC_E5M2, 0, 4}, {MIXPREC_E4M3, MIXPREC_E4M3, 1, 8},
                 {MIXPREC_E5M2, MIXPREC_E4M3, 1, 8}, {MIXPREC_F32, MIXPREC_F32, 1, 4},
                 {MIXPREC_I8, MIXPREC_I8, 0, 12}};
    static const mixprec_dtype c_types[] = {MIXPREC_F32, MIXPREC_F16, MIXPREC_BF16, MIXPREC_E4M3};
    const int count = (int)(sizeof kinds / sizeof *kinds);
    for (int trial = 0; trial < count * (test_quick ? 3 : 12); trial++) {
        const mixprec_dtype type = kinds[trial % count].a, c_type = c_types[random_u32() % 4];
        const size_t least = kinds[trial % count].least * (128 / size_of(type));
        const size_t k = least - (trial / count % 3 == 2) + (trial / count % 3 == 0) * (random_u32() % least);
        const size_t m = 1 + random_u32() % 256, n = 1 + random_u32() % 300;
        const bool narrow = size_of(type) != 2 && (kinds[trial % count].native || type == MIXPREC_I8);
        const bool trans_a = !narrow && random_u32() % 2, trans_b = narrow || random_u32() % 2,
                   aligned = random_u32() % 3;
        matrix a = make_matrix(type, trans_a ? k : m, trans_a ? m : k, 2, true, true),
               b = make_matrix(kinds[trial % count].b, trans_b ? n : k, trans_b ? k : n, 2, true, true),
               c = make_matrix(c_type, m, n, 2, aligned, true);
        const double alpha = type == MIXPREC_I8 ? 1.0 / 16384
                             : random_u32() % 2 ? 1
                                                : -0.5,
                     beta = c_type == MIXPREC_F32 && n % 4 == 0 && aligned && random_u32() % 2 ? 0.75 : 0;
        mixprec_gemm_desc d;
        mixprec_cuda_gemm_options options;
        float *scale_a, *scale_b, *bias = (float *)memory(n * 4);
        void *before = malloc(c.bytes);
        memset(&d, 0, sizeof d);
        memset(&options, 0, sizeof options);
#ifndef TEST_ON_DEVICE
        pretend_device(90, 24, true); /* 6 tiles, of 2 products */
        const long sent = emulation.sent;
#endif
        d.m = m, d.n = n, d.k = k, d.batch = c.count = 1 + random_u32() % 2, d.alpha = &alpha, d.beta = &beta;
        d.trans_a = trans_a ? MIXPREC_TRANS : MIXPREC_NO_TRANS, d.trans_b = trans_b ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
        d.a = a.data, d.a_type = a.type, d.lda = a.ld, d.stride_a = a.stride;
        d.b = b.data, d.b_type = b.type, d.ldb = b.ld, d.stride_b = random_u32() % 2 ? b.stride : 0;
        d.c = c.data, d.c_type = c_type, d.ldc = c.ld, d.stride_c = c.stride;
        d.native = kinds[trial % count].native;
        d.overflow = size_of(c_type) == 1 ? MIXPREC_OVERFLOW_SATURATE : MIXPREC_OVERFLOW_IEEE;
        d.scale_a = make_scales(a.rows, a.columns, random_u32() % 2 ? (trans_a ? 3 : 2) : 0, &scale_a);
        d.scale_b = make_scales(b.rows, b.columns, random_u32() % 2 ? (trans_b ? 2 : 3) : 0, &scale_b);
        if (random_u32() % 2) {
            d.bias = bias;
            for (size_t i = 0; i < n; i++)
                bias[i] = (float)random_unit();
        }
        d.activation = (mixprec_activation)(random_u32() % 3);
        if (m > 32 && random_u32() % 3 == 0)
            d.row_begin = 16 * (random_u32() % 2), d.row_end = m - random_u32() % 8;
        options.split_k = trial / count % 3 == 1; /* 1: not at all */
        memcpy(before, c.data, c.bytes);
        CHECK(mixprec_cuda_gemm_ex(&d, &options, NULL) == MIXPREC_OK, "halves: %s", mixprec_cuda_last_error());
        finish();
        check_gemm("halves", &d, &a, &b, &c, before, d.native ? 0x1p-11 : 0);
#ifndef TEST_ON_DEVICE
        const bool halved = emulation.sent != sent, want = !options.split_k && k >= least;
        CHECK(halved == want, "%s, m %zu n %zu k %zu, split_k %zu: halved %d, not %d", mixprec_dtype_name(type), m, n,
              k, options.split_k, (int)halved, (int)want);
#endif
        free(before);
        release(a.data);
        release(b.data);
        release(c.data);
        release(bias);
        release(scale_a);
        release(scale_b);
    }
#ifndef TEST_ON_DEVICE
    /* What is not aligned is copied first; where there is room for the sums of two parts alone, these are made instead,
       and added by another kernel. */
    for (int form = 0; form < 4; form++) { /* all that is asked for, the sums, nothing; all, but A is not copied */
        const size_t m = 100, n = 100, k = 2048, rows = form == 3 ? m - 4 : m, sums = 2 * rows * n * 4;
        matrix a, b, c;
        mixprec_gemm_desc d = make_unaligned(m, n, k, &a, &b, &c);
        void *before = malloc(c.bytes);
        size_t bytes = 0;
        memcpy(before, c.data, c.bytes);
        pretend_device(90, 2, true);
        if (form == 3)
            d.row_begin = m - rows, d.row_end = m;
        OK(mixprec_cuda_gemm_workspace(&d, NULL, &bytes));
        CHECK(bytes == (form == 3 ? n * k * 2 + sums : (m + n) * k * 2), "halves: a workspace of %zu bytes", bytes);
        d.workspace = memory(bytes), d.workspace_size = form == 1 ? sums : form == 2 ? 0 : bytes;
        const long launches = emulation.launches, sent = emulation.sent;
        OK(mixprec_cuda_gemm_ex(&d, NULL, NULL));
        CHECK((emulation.sent != sent) == (form == 0) && emulation.launches - launches == (form == 3 ? 3 : 3 - form),
              "halves, form %d: %ld launches", form, emulation.launches - launches);
        check_gemm("halves", &d, &a, &b, &c, before, 0);
        free(before);
        release(d.workspace);
        release(a.data), release(b.data), release(c.data);
    }
    pretend_device(90, 4);
#endif
}

#ifndef TEST_ON_DEVICE
/* Two copies, the product in parts, their sum: all but the first may begin before the one before has ended, where the
   device, its code and the driver know how. The emulation sees to it that each waits. */
static void test_gemm_early(void) {
    static const struct {
        int arch, driver;
        bool wgmma, early;
    } devices[] = {{90, 13000, true, true},  {90, 13000, false, true},  {120, 12030, false, true},
                   {90, 12020, true, false}, {89, 13000, false, false}, {80, 13000, false, false}};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        const size_t m = 70, n = 90, k = 701;
        matrix a, b, c;
        mixprec_gemm_desc d = make_unaligned(m, n, k, &a, &b, &c);
        void *before = malloc(c.bytes);
        mixprec_cuda_gemm_options options;
        size_t bytes = 0;
        memcpy(before, c.data, c.bytes);
        memset(&options, 0, sizeof options);
        pretend_device(devices[i].arch, 4, devices[i].wgmma);
        emulation_device.driver = devices[i].driver;
        options.split_k = 3;
        OK(mixprec_cuda_gemm_workspace(&d, &options, &bytes));
        d.workspace = memory(bytes), d.workspace_size = bytes;
        const long launches = emulation.launches, early = emulation.early_launches;
        OK(mixprec_cuda_gemm_ex(&d, &options, NULL));
        CHECK(emulation.launches - launches == 4 && emulation.early_launches - early == (devices[i].early ? 3 : 0),
              "sm_%d, driver %d: %ld launches, %ld of them early", devices[i].arch, devices[i].driver,
              emulation.launches - launches, emulation.early_launches - early);
        check_gemm("early", &d, &a, &b, &c, before, 0);
        free(before);
        release(d.workspace);
        release(a.data), release(b.data), release(c.data);
    }
    emulation_device.driver = 13000;
    pretend_device(90, 4);
}
#endif

static void test_gemm_tf32(void) {
    static const gemm_kind kinds[] = {{MIXPREC_F32, MIXPREC_F32, MIXPREC_CUDA_PATH_AUTO, 1, 80, 4, 4}};
    RUN_GEMMS("mma, TF32", kinds, 20, 200);
    /* Operands are rounded to nearest, not cut: 1 + 0.75 * 2^-10 becomes 1 + 2^-10, for every thread that copies. */
    for (int path = MIXPREC_CUDA_PATH_WMMA; path <= MIXPREC_CUDA_PATH_WGMMA; path++) {
        const size_t n = 130, k = 4;
        float *a = (float *)memory(n * k * 4), *b = (float *)memory(n * k * 4), *c = (float *)memory(n * n * 4);
        mixprec_gemm_desc d;
        mixprec_cuda_gemm_options options;
        memset(&d, 0, sizeof d);
        memset(&options, 0, sizeof options);
#ifndef TEST_ON_DEVICE
        pretend_device(90, 4, true);
#endif
        for (size_t i = 0; i < n * k; i++)
            a[i] = b[i] = 1 + 0.75f / 1024;
        d.m = d.n = n, d.k = k, d.a = a, d.b = b, d.c = c, d.trans_b = MIXPREC_TRANS, d.native = 1;
        d.a_type = d.b_type = d.c_type = MIXPREC_F32;
        options.path =
            path == MIXPREC_CUDA_PATH_WGMMA && !has_wgmma() ? MIXPREC_CUDA_PATH_AUTO : (mixprec_cuda_path)path;
        OK(mixprec_cuda_gemm_ex(&d, &options, NULL));
        for (size_t i = 0; i < n * n; i++)
            CHECK(c[i] == 4 * (1 + 1 / 1024.0f) * (1 + 1 / 1024.0f), "TF32, path %d: (%zu, %zu): got %a", path, i / n,
                  i % n, (double)c[i]);
        release(a), release(b), release(c);
    }
#ifndef TEST_ON_DEVICE
    pretend_device(90, 4);
#endif
}

/* Every layout of every kind of mma.sync kernel: what is aligned is copied 16 bytes at a time, but for A^T B^T of other
   types than f16 and bf16, and no fragment meets a bank twice; what is not aligned, or odd, is as right. */
static void test_gemm_layouts(void) {
    static const gemm_kind kinds[] = {{MIXPREC_F16, MIXPREC_F16, MIXPREC_CUDA_PATH_MMA, 0, 86, 4, 0},
                                      {MIXPREC_BF16, MIXPREC_BF16, MIXPREC_CUDA_PATH_MMA, 0, 90, 1, 0},
                                      {MIXPREC_F32, MIXPREC_F32, MIXPREC_CUDA_PATH_MMA, 1, 80, 4, 0},
                                      {MIXPREC_I8, MIXPREC_I8, MIXPREC_CUDA_PATH_MMA, 0, 80, 4, 0},
                                      {MIXPREC_E4M3, MIXPREC_E5M2, MIXPREC_CUDA_PATH_MMA, 0, 80, 4, 0},
                                      {MIXPREC_E5M2, MIXPREC_E4M3, MIXPREC_CUDA_PATH_MMA, 0, 89, 4, 0},
                                      {MIXPREC_E4M3, MIXPREC_E5M2, MIXPREC_CUDA_PATH_MMA, 1, 89, 4, 0},
                                      {MIXPREC_F16, MIXPREC_F16, MIXPREC_CUDA_PATH_WGMMA, 0, 90, 4, 0},
                                      {MIXPREC_E5M2, MIXPREC_E4M3, MIXPREC_CUDA_PATH_WGMMA, 0, 90, 1, 0}};
    static const size_t shapes[][3] = {{48, 144, 160}, {131, 77, 75}, {1, 130, 200}};
    const size_t count = test_quick ? 2 : 3;
    size_t kind, shape;
    for (kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
        for (shape = 0; shape < count; shape++)
            for (int layout = 0; layout < 8; layout++) {
                const size_t m = shapes[shape][0], n = shapes[shape][1], k = shapes[shape][2];
                const bool aligned = layout < 4;
                matrix a, b, c;
                mixprec_gemm_desc d;
                mixprec_cuda_gemm_options options;
                void *before;
                memset(&d, 0, sizeof d);
                memset(&options, 0, sizeof options);
                d.trans_a = (mixprec_transpose)(layout & 1), d.trans_b = (mixprec_transpose)(layout >> 1 & 1);
                a = make_matrix(kinds[kind].a, d.trans_a ? k : m, d.trans_a ? m : k, 1, aligned, true);
                b = make_matrix(kinds[kind].b, d.trans_b ? n : k, d.trans_b ? k : n, 1, aligned, true);
                c = make_matrix(MIXPREC_F32, m, n, 1, aligned, false);
                d.m = m, d.n = n, d.k = k, d.a = a.data, d.b = b.data, d.c = c.data, d.native = kinds[kind].native;
                d.a_type = a.type, d.b_type = b.type, d.c_type = MIXPREC_F32;
                d.lda = a.ld, d.ldb = b.ld, d.ldc = c.ld;
                options.path = kinds[kind].path;
                before = malloc(c.bytes);
                memcpy(before, c.data, c.bytes);
#ifdef TEST_ON_DEVICE
                mixprec_status status = mixprec_cuda_gemm_ex(&d, &options, NULL);
                finish();
                CHECK(status == MIXPREC_OK || status == MIXPREC_ERR_DEVICE, "status %d", (int)status);
                if (status == MIXPREC_OK)
#else
                pretend_device(kinds[kind].arch, kinds[kind].multiprocessors,
                               kinds[kind].path == MIXPREC_CUDA_PATH_WGMMA);
                emulation.gathered = emulation.conflicts = 0;
                OK(mixprec_cuda_gemm_ex(&d, &options, NULL));
                CHECK(!aligned || shape || emulation.gathered == 0 || (layout == 3 && kind > 1 && kind < 7),
                      "%s %s layout %d: %ld elements one by one", mixprec_dtype_name(a.type),
                      mixprec_dtype_name(b.type), layout, emulation.gathered);
                CHECK(emulation.conflicts == 0, "%s %s layout %d: %ld bank conflicts", mixprec_dtype_name(a.type),
                      mixprec_dtype_name(b.type), layout, emulation.conflicts);
#endif
                    check_gemm("layouts", &d, &a, &b, &c, before, a.type == MIXPREC_F32 ? 0x1p-11 : 0);
                free(before);
                release(a.data), release(b.data), release(c.data);
            }
#ifndef TEST_ON_DEVICE
    pretend_device(90, 4);
#endif
}

/* The reference path and the default one: each within the bound of what is exact, hence of each other, is checked
   above; here on the same numbers. Where every sum is exact, small integers, they and the CPU agree bit for bit. */
static void test_gemm_paths(void) {
    static const mixprec_dtype types[] = {MIXPREC_F16, MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2, MIXPREC_I8};
    int trial;
    for (trial = 0; trial < (test_quick ? 10 : 40); trial++) {
        mixprec_dtype type = types[trial % 5];
        size_t m = random_size(200), n = random_size(200), k = random_size(300), i;
        mixprec_gemm_desc d;
        mixprec_cuda_gemm_options options;
        const bool trans_b = type == MIXPREC_I8 || trial % 2; /* all that wgmma has of i8 */
        const size_t b_rows = trans_b ? n : k, b_columns = trans_b ? k : n;
        float *c[4];
        matrix a = make_matrix(type, m, k, 1, trial % 2, true);
        matrix b = make_matrix(type, b_rows, b_columns, 1, trial % 3 > 0, true);
        memset(&d, 0, sizeof d);
        memset(&options, 0, sizeof options);
        for (i = 0; i < m * k; i++)
            put(a.data, type, i / k * a.ld + i % k, (double)(int)(random_u32() % 7) - 3);
        for (i = 0; i < k * n; i++)
            put(b.data, type, i / b_columns * b.ld + i % b_columns, (double)(int)(random_u32() % 7) - 3);
        d.m = m, d.n = n, d.k = k, d.a = a.data, d.b = b.data, d.lda = a.ld, d.ldb = b.ld;
        d.trans_b = trans_b ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
        d.a_type = d.b_type = type, d.c_type = MIXPREC_F32;
#ifndef TEST_ON_DEVICE
        pretend_device(90, 4, true);
#endif
        for (i = 0; i < 4; i++) {
            c[i] = (float *)memory(m * n * 4);
            memset(c[i], 0xFF, m * n * 4);
            d.c = c[i];
            options.path = (mixprec_cuda_path)(MIXPREC_CUDA_PATH_EXACT + i);
            if (options.path == MIXPREC_CUDA_PATH_WGMMA && !has_wgmma())
                options.path = MIXPREC_CUDA_PATH_AUTO;
            d.native = i == 3 && trial % 4 > 1; /* the fp8 units, whose 13 bits hold these sums */
            OK(mixprec_cuda_gemm_ex(&d, &options, NULL));
        }
        for (i = 0; i < m * n; i++)
            CHECK(float_bits(c[0][i]) == float_bits(c[1][i]) && float_bits(c[0][i]) == float_bits(c[2][i]) &&
                      float_bits(c[0][i]) == float_bits(c[3][i]),
                  "%s, m %zu n %zu k %zu: element %zu: exact %a, wmma %a, mma %a, wgmma %a", mixprec_dtype_name(type),
                  m, n, k, i, (double)c[0][i], (double)c[1][i], (double)c[2][i], (double)c[3][i]);
        for (i = 0; i < 4; i++)
            release(c[i]);
        release(a.data);
        release(b.data);
    }
#ifndef TEST_ON_DEVICE
    pretend_device(90, 4);
#endif
}

/* All that is special comes through: NaN, Inf, subnormals, and zero times NaN; a NaN in C only when beta is not 0. */
static void test_gemm_special(void) {
    static const mixprec_dtype types[] = {MIXPREC_F16, MIXPREC_BF16, MIXPREC_E4M3, MIXPREC_E5M2, MIXPREC_F32};
    static const mixprec_cuda_path paths[] = {MIXPREC_CUDA_PATH_EXACT, MIXPREC_CUDA_PATH_WMMA, MIXPREC_CUDA_PATH_MMA,
                                              MIXPREC_CUDA_PATH_WGMMA};
    int t, p, arch;
    for (t = 0; t < 5; t++)
        for (p = 0; p < 4; p++)
            for (arch = 80; arch <= 90; arch += 10) {
#ifndef TEST_ON_DEVICE
                pretend_device(arch, 4, arch == 90);
#endif
                if (paths[p] == MIXPREC_CUDA_PATH_WGMMA && (types[t] == MIXPREC_F32 || !has_wgmma()))
                    continue; /* it has no TF32 of this layout */
                const size_t n = 40;
                void *a = memory(n * n * 4), *b = memory(n * n * 4);
                float *c = (float *)memory(n * n * 4);
                mixprec_format_info info;
                mixprec_gemm_desc d;
                mixprec_cuda_gemm_options options;
                size_t i, j;
                double zero = 0, one = 1;
                memset(&d, 0, sizeof d);
                memset(&options, 0, sizeof options);
                mixprec_format(types[t], &info);
                for (i = 0; i < n * n; i++) {
                    put(a, types[t], i, i / n == i % n ? 1 : 0);
                    put(b, types[t], i, 0.5);
                    c[i] = float_from_bits(0x7FC00000u);
                }
                for (i = 0; i < n; i++)
                    put(b, types[t], 3 * n + i, types[t] == MIXPREC_F32 ? info.min_normal : info.min_subnormal);
                put(a, types[t], 5 * n + 5, info.has_inf ? HUGE_VAL : (double)NAN);
                put(b, types[t], 7 * n + 9, (double)NAN);
                d.m = d.n = d.k = n, d.a = a, d.b = b, d.c = c, d.a_type = d.b_type = types[t], d.c_type = MIXPREC_F32;
                d.native = types[t] == MIXPREC_F32 && p > 0;
                d.beta = &zero;
                options.path = paths[p];
                OK(mixprec_cuda_gemm_ex(&d, &options, NULL));
                for (i = 0; i < n; i++)
                    for (j = 0; j < n; j++) {
                        double want = i == 3 ? (types[t] == MIXPREC_F32 ? info.min_normal : info.min_subnormal) : 0.5;
                        float got = c[i * n + j];
                        bool nan = j == 9 || (i == 5 && !info.has_inf), inf = i == 5 && info.has_inf;
                        if (nan)
                            CHECK(got != got, "%s path %d: (%zu, %zu): got %g, want NaN", info.name, p, i, j,
                                  (double)got);
                        else
                            CHECK(inf ? got == HUGE_VALF : (double)got == want,
                                  "%s path %d: (%zu, %zu): got %g, want %g", info.name, p, i, j, (double)got,
                                  inf ? HUGE_VAL : want);
                    }
                /* narrowed: NaN, Inf, and what overflows */
                for (int narrowing = 0; narrowing < 8; narrowing++) {
                    const mixprec_dtype narrow = narrowing % 2 ? MIXPREC_BF16 : MIXPREC_F16;
                    mixprec_format_info to;
                    double large = 3e38;
                    mixprec_format(narrow, &to);
                    d.c_type = narrow;
                    d.alpha = narrowing & 2 ? &large : NULL;
                    d.overflow = narrowing & 4 ? MIXPREC_OVERFLOW_SATURATE : MIXPREC_OVERFLOW_IEEE;
                    OK(mixprec_cuda_gemm_ex(&d, &options, NULL));
                    for (i = 4; i < n; i++)
                        for (j = 0; j < n; j++) {
                            bool nan = j == 9 || (i == 5 && !info.has_inf);
                            double got = value_at(c, narrow, i * n + j);
                            double want = i != 5 && !(d.alpha && narrow == MIXPREC_F16) ? 0.5
                                          : narrowing & 4                               ? to.max
                                                                                        : HUGE_VAL;
                            CHECK(nan ? got != got : got == want || (d.alpha && narrow == MIXPREC_BF16 && got > 1e38),
                                  "%s path %d, to %s, policy %d: (%zu, %zu): got %g, want %g", info.name, p, to.name,
                                  (int)d.overflow, i, j, got, want);
                        }
                }
                d.alpha = NULL, d.overflow = MIXPREC_OVERFLOW_IEEE;
                d.c_type = MIXPREC_F32;
                /* alpha = 0 and k = 0 read neither A, B nor scales */
                d.a = d.b = NULL;
                d.scale_a.values = d.scale_b.values = (const float *)(uintptr_t)256;
                d.scale_b.block_columns = 1;
                d.alpha = &zero;
                d.beta = &one;
                for (i = 0; i < n * n; i++)
                    c[i] = i ? (float)i : -0.0f;
                OK(mixprec_cuda_gemm_ex(&d, &options, NULL));
                d.alpha = NULL;
                d.k = 0;
                OK(mixprec_cuda_gemm_ex(&d, &options, NULL));
                for (i = 0; i < n * n; i++)
                    CHECK(float_bits(c[i]) == float_bits(i ? (float)i : -0.0f), "%s path %d: beta C alone: element %zu",
                          info.name, p, i);
                release(a);
                release(b);
                release(c);
            }
#ifndef TEST_ON_DEVICE
    pretend_device(90, 4);
#endif
}

/* i8 sums are exact beyond 2^24. */
static void test_gemm_int8(void) {
    const size_t m = 3, n = 5, k = 5000;
    signed char *a = (signed char *)memory(m * k), *b = (signed char *)memory(n * k);
    float *c = (float *)memory(m * n * 4), *workspace = (float *)memory(4096);
    size_t i, j, p;
    int path;
#ifndef TEST_ON_DEVICE
    pretend_device(90, 4, true);
#endif
    for (path = MIXPREC_CUDA_PATH_WMMA; path <= (has_wgmma() ? MIXPREC_CUDA_PATH_WGMMA : MIXPREC_CUDA_PATH_MMA);
         path++) {
        mixprec_gemm_desc d;
        mixprec_cuda_gemm_options options;
        memset(&d, 0, sizeof d);
        memset(&options, 0, sizeof options);
        options.path = (mixprec_cuda_path)path;
        for (i = 0; i < m * k; i++)
            a[i] = (signed char)(127 - (int)(i % 3));
        for (i = 0; i < n * k; i++)
            b[i] = (signed char)(-128 + (int)(i % 7));
        d.m = m, d.n = n, d.k = k, d.trans_b = MIXPREC_TRANS;
        d.a = a, d.b = b, d.c = c, d.a_type = d.b_type = MIXPREC_I8, d.c_type = MIXPREC_F32;
        d.workspace = workspace, d.workspace_size = 4096;
        options.split_k = 4; /* which is not for integers */
        OK(mixprec_cuda_gemm_ex(&d, &options, NULL));
        for (i = 0; i < m; i++)
            for (j = 0; j < n; j++) {
                long sum = 0;
                for (p = 0; p < k; p++)
                    sum += a[i * k + p] * b[j * k + p];
                CHECK(c[i * n + j] == (float)sum, "path %d: got %.0f, want %ld", path, (double)c[i * n + j], sum);
            }
    }
#ifndef TEST_ON_DEVICE
    pretend_device(90, 4);
#endif
    release(workspace);
    release(a);
    release(b);
    release(c);
}

static void test_gemm_arrays(void) { /* pointers to the matrices of a batch; 16-bit, fast and slow */
    const size_t m = 20, n = 30, k = 40, count = 3;
    const void **a = (const void **)memory(count * 8), **b = (const void **)memory(count * 8);
    void **c = (void **)memory(count * 8);
    matrix x[3], y[3], z[3];
    mixprec_gemm_desc d;
    size_t l;
    memset(&d, 0, sizeof d);
    for (l = 0; l < count; l++) {
        x[l] = make_matrix(MIXPREC_BF16, m, k, 1, true, true), y[l] = make_matrix(MIXPREC_BF16, k, n, 1, true, true);
        z[l] = make_matrix(MIXPREC_F32, m, n, 1, true, false);
        x[l].ld = 48, y[l].ld = 48, z[l].ld = 32;
        release(x[l].data), release(y[l].data), release(z[l].data);
        x[l].data = memory(m * 48 * 2 + 64, l == 1 ? 2 : 0), y[l].data = memory(k * 48 * 2 + 64, l == 2 ? 6 : 0);
        z[l].bytes = m * 32 * 4;
        z[l].data = memory(z[l].bytes);
        for (size_t i = 0; i < m * 48; i++)
            put(x[l].data, MIXPREC_BF16, i, random_unit());
        for (size_t i = 0; i < k * 48; i++)
            put(y[l].data, MIXPREC_BF16, i, random_unit());
        a[l] = x[l].data, b[l] = y[l].data, c[l] = z[l].data;
    }
    d.m = m, d.n = n, d.k = k, d.batch = count, d.lda = 48, d.ldb = 48, d.ldc = 32;
    d.a_array = a, d.b_array = b, d.c_array = c, d.a_type = d.b_type = MIXPREC_BF16, d.c_type = MIXPREC_F32;
    for (int wgmma = 0; wgmma < 2; wgmma++) {
#ifndef TEST_ON_DEVICE
        pretend_device(90, 4, wgmma != 0);
#endif
        for (l = 0; l < count; l++)
            memset(z[l].data, 0xFF, z[l].bytes);
        if (wgmma) /* with arrays no stride counts */
            d.stride_a = d.stride_b = d.stride_c = SIZE_MAX / 8;
        OK(mixprec_cuda_gemm_ex(&d, NULL, NULL));
        for (l = 0; l < count; l++) {
            void *before = malloc(z[l].bytes);
            memset(before, 0xFF, z[l].bytes);
            check_gemm("arrays", &d, &x[l], &y[l], &z[l], before, 0);
            free(before);
        }
    }
#ifndef TEST_ON_DEVICE
    pretend_device(90, 4);
#endif
    for (l = 0; l < count; l++)
        release(x[l].data), release(y[l].data), release(z[l].data);
    release(a), release(b), release(c);
}

/* The short form, in every transposition; and k that is split where there is a workspace for it, in 7 parts on 64
   multiprocessors, and is not where there is none: small integers have exact sums, so all agree with the CPU. */
static void test_gemm_short(void) {
    const size_t m = 5, n = 70, k = 4000;
    uint16_t *a = (uint16_t *)memory(m * k * 2), *b = (uint16_t *)memory(k * n * 2);
    float *c = (float *)memory(m * n * 4), *want = (float *)malloc(m * n * 4);
    mixprec_gemm_desc d;
    size_t i, bytes = 0;
    int t;
    for (i = 0; i < m * k; i++)
        put(a, MIXPREC_F16, i, (double)(int)(random_u32() % 7) - 3);
    for (i = 0; i < k * n; i++)
        put(b, MIXPREC_F16, i, (double)(int)(random_u32() % 7) - 3);
    pretend_multiprocessors(64);
    for (t = 0; t < 8; t++) {
        const mixprec_transpose ta = (mixprec_transpose)(t & 1), tb = (mixprec_transpose)(t >> 1 & 1);
        for (i = 0; i < m * n; i++)
            c[i] = want[i] = (float)i;
        CHECK(mixprec_gemm(ta, tb, m, n, k, 2, a, MIXPREC_F16, ta ? m : k, b, MIXPREC_F16, tb ? k : n, -1, want,
                           MIXPREC_F32, n) == MIXPREC_OK,
              "the CPU refuses");
        if (t < 4)
            OK(mixprec_cuda_gemm(ta, tb, m, n, k, 2, a, MIXPREC_F16, ta ? m : k, b, MIXPREC_F16, tb ? k : n, -1, c,
                                 MIXPREC_F32, n, NULL));
        else {
            double alpha = 2, beta = -1;
            memset(&d, 0, sizeof d);
            d.trans_a = ta, d.trans_b = tb, d.m = m, d.n = n, d.k = k, d.alpha = &alpha, d.beta = &beta;
            d.a = a, d.b = b, d.c = c, d.a_type = d.b_type = MIXPREC_F16, d.c_type = MIXPREC_F32;
            CHECK(mixprec_cuda_gemm_workspace(&d, NULL, &bytes) == MIXPREC_OK && bytes > m * n * 4, "workspace %zu",
                  bytes);
            /* too small: as if none; in form 6 nothing is copied */
            d.workspace = memory(bytes), d.workspace_size = t % 2 ? bytes : t == 6 ? bytes - 1 : 16;
            memset(d.workspace, 0xFF, bytes);
            OK(mixprec_cuda_gemm_ex(&d, NULL, NULL));
            for (i = 0; i < bytes && ((unsigned char *)d.workspace)[i] == 0xFF; i++)
                ;
            CHECK((i < bytes) == (t % 2), "a workspace of %zu bytes, %zu needed", d.workspace_size, bytes);
            release(d.workspace);
        }
        for (i = 0; i < m * n; i++)
            CHECK(c[i] == want[i], "form %d: element %zu: got %g, want %g", t, i, (double)c[i], (double)want[i]);
    }
    pretend_multiprocessors(4);
    free(want);
    release(a), release(b), release(c);
}

/* What is copied to the workspace, as far as it reaches: operands that are not aligned, line by line with zeros at
   their ends; for TF32, i8 and the fp8 units of sm_90a transposed ones; f32 rounded to TF32. Sums of small integers,
   which is what f32 is rounded to, are exact, so the result has the same bits on every path. */
static void test_gemm_copied(void) {
    static const struct {
        mixprec_dtype type;
        int native;
    } kinds[] = {{MIXPREC_F16, 0}, {MIXPREC_E4M3, 0}, {MIXPREC_I8, 0}, {MIXPREC_F32, 1}, {MIXPREC_E4M3, 1}};
    static const struct {
        size_t m, n, k, batch;
    } shapes[] = {{37, 130, 201, 1}, {70, 45, 77, 3},  {3, 5, 700, 2},   {1, 1, 1, 1},
                  {140, 33, 300, 2}, {19, 260, 33, 1}, {130, 129, 64, 1}};
    const int kind_count = 5, shape_count = 7;
    for (int t = 0; t < kind_count * shape_count * 4 * 2 * 3; t += test_quick ? 23 : 11) {
        const auto kind = kinds[t % kind_count];
        const auto shape = shapes[t / kind_count % shape_count];
        const mixprec_dtype type = kind.type;
        const int rest = t / kind_count / shape_count, layout = rest % 4, form = rest / 8;
        bool wgmma = rest / 4 % 2;
        const size_t size = size_of(type);
        mixprec_gemm_desc d = {};
        mixprec_cuda_gemm_options options = {};
        matrix x[2];
        size_t bytes = 0, at = 0, needed = 0, c_bytes = shape.m * shape.n * shape.batch * 4;
        float *without = (float *)memory(c_bytes), *with = (float *)memory(c_bytes);
        unsigned char *workspace;
#ifdef TEST_ON_DEVICE
        wgmma &= has_wgmma();
#else
        pretend_device(90, 4, wgmma);
#endif
        options.path = wgmma ? MIXPREC_CUDA_PATH_AUTO : MIXPREC_CUDA_PATH_MMA;
        options.split_k = 1;
        d.trans_a = (mixprec_transpose)(layout & 1), d.trans_b = (mixprec_transpose)(layout >> 1);
        d.m = shape.m, d.n = shape.n, d.k = shape.k, d.native = kind.native;
        d.batch = shape.batch;
        if (shape.m > 128 && t % 2)
            d.row_begin = 37, d.row_end = d.m - t % 3 * 30;
        x[0] = make_matrix(type, d.trans_a ? d.k : d.m, d.trans_a ? d.m : d.k, d.batch, form == 1, true);
        x[1] = make_matrix(type, d.trans_b ? d.n : d.k, d.trans_b ? d.k : d.n, d.batch, form == 2, true);
        if (form == 1) /* the stride of A alone is not aligned */
            x[0].stride--;
        for (const matrix &of : x)
            for (size_t line = 0; line < of.count * of.rows; line++)
                for (size_t e = 0; e < of.columns; e++)
                    put(of.data, type, line / of.rows * of.stride + line % of.rows * of.ld + e,
                        ((int)(random_u32() % 7) - 3) * (1 + (type == MIXPREC_F32 ? 0x1p-13 * random_unit() : 0)));
        d.a = x[0].data, d.a_type = type, d.lda = x[0].ld, d.stride_a = x[0].stride;
        d.b = x[1].data, d.b_type = type, d.ldb = x[1].ld, d.stride_b = t % 3 ? x[1].stride : 0;
        d.c = without, d.c_type = MIXPREC_F32;
        memset(without, 0, c_bytes), memset(with, 0, c_bytes);
        OK(mixprec_cuda_gemm_ex(&d, &options, NULL));
        const bool along_k[2] = {!d.trans_a, d.trans_b != 0};
        /* which want k contiguous; others are transposed at any cost where the path is asked for */
        const bool units = wgmma && (kind.native || type == MIXPREC_I8) && (along_k[0] || !d.row_begin);
        if (units && !(along_k[0] && along_k[1])) {
            options.path = MIXPREC_CUDA_PATH_WGMMA;
            CHECK(mixprec_cuda_gemm_ex(&d, &options, NULL) == (type == MIXPREC_E4M3 ? MIXPREC_OK : MIXPREC_ERR_ISA),
                  "case %d: without a workspace", t); /* exact products have all layouts */
        }
        OK(mixprec_cuda_gemm_workspace(&d, &options, &bytes));
        workspace = (unsigned char *)memory(bytes + 16);
        memset(workspace, 0xFF, bytes + 16);
        d.c = with, d.workspace = workspace, d.workspace_size = bytes;
        OK(mixprec_cuda_gemm_ex(&d, &options, NULL));
        finish();
        CHECK(!memcmp(with, without, c_bytes), "case %d: other bits", t);
        /* what is transposed comes first: without it there is no product */
        for (int n = 0; n < 4; n++) {
            const int i = n % 2;
            const size_t matrices = i == 0 || d.stride_b ? d.batch : 1,
                         stride = d.batch > 1 ? i ? d.stride_b : d.stride_a : 0;
            const bool turned = units && !along_k[i], round = units && type == MIXPREC_F32;
            const size_t lines = turned ? x[i].columns : x[i].rows, width = turned ? x[i].rows : x[i].columns;
            const uint32_t pad = (uint32_t)((width * size + 15) / 16 * 16 / size);
            size_t wrong = 0;
            if (turned != (n < 2) || (i == 0 && d.row_begin) ||
                (!turned && ((uintptr_t)x[i].data | (x[i].rows > 1 ? x[i].ld * size : 0) | stride * size) % 16 == 0))
                continue;
            for (size_t line = 0; line < matrices * lines; line++)
                for (size_t e = 0; e < pad; e++, at += size) {
                    const size_t from =
                        line / lines * stride + (turned ? e * x[i].ld + line % lines : line % lines * x[i].ld + e);
                    uint32_t want = 0, got = 0;
                    memcpy(&got, workspace + at, size);
                    if (e < width)
                        memcpy(&want, (const char *)x[i].data + from * size, size);
                    if (round) /* to nearest, ties away */
                        want = (want + 0x1000) & ~(uint32_t)0x1FFF;
                    wrong += got != want;
                }
            CHECK(!wrong, "case %d: %zu elements of operand %d's copy are wrong", t, wrong, i);
            if (turned)
                needed = at;
            if (at == bytes)
                break;
        }
        CHECK(at == bytes, "case %d: %zu bytes of workspace, copies of %zu", t, bytes, at);
        for (size_t i = 0; i < 16; i++)
            CHECK(workspace[bytes + i] == 0xFF, "case %d: written beyond the workspace", t);
        if (bytes) { /* room for one of them, or for none */
            options.path = wgmma ? MIXPREC_CUDA_PATH_AUTO : MIXPREC_CUDA_PATH_MMA;
            memset(workspace, 0xFF, bytes), memset(with, 0, c_bytes);
            d.workspace_size = bytes - 1;
            OK(mixprec_cuda_gemm_ex(&d, &options, NULL));
            finish();
            CHECK(!memcmp(with, without, c_bytes) && workspace[bytes - 1] == 0xFF, "case %d: with less workspace", t);
            if (units)
                options.path = MIXPREC_CUDA_PATH_WGMMA;
            d.workspace_size = needed;
            OK(mixprec_cuda_gemm_ex(&d, &options, NULL));
            finish();
            CHECK(!memcmp(with, without, c_bytes), "case %d: with what is needed", t);
            d.workspace_size = needed - 1;
            if (needed)
                CHECK(mixprec_cuda_gemm_ex(&d, &options, NULL) == (type == MIXPREC_E4M3 ? MIXPREC_OK : MIXPREC_ERR_ISA),
                      "case %d: with a byte less", t);
            d.workspace_size = bytes, d.workspace = workspace + 8;
            CHECK(mixprec_cuda_gemm_ex(&d, &options, NULL) == MIXPREC_ERR_WORKSPACE, "case %d: misaligned", t);
        }
        if (bytes) {
            double zero = 0;
            size_t none = 1;
            d.workspace = with, d.workspace_size = bytes;
            CHECK(mixprec_cuda_gemm_ex(&d, &options, NULL) == MIXPREC_ERR_OVERLAP, "case %d: workspace on C", t);
            d.c_array = (void *const *)(void *)workspace, d.workspace = workspace;
            CHECK(mixprec_cuda_gemm_ex(&d, &options, NULL) == MIXPREC_ERR_OVERLAP, "case %d: pointers to C in it", t);
            d.c_array = NULL, options.alpha = (const float *)(const void *)(workspace + bytes - 4);
            CHECK(mixprec_cuda_gemm_ex(&d, &options, NULL) == MIXPREC_ERR_OVERLAP, "case %d: alpha in it", t);
            options.alpha = NULL;
            d.m = d.row_begin = d.row_end = 0;
            CHECK(mixprec_cuda_gemm_workspace(&d, &options, &none) == MIXPREC_OK && !none, "case %d: no rows: %zu", t,
                  none);
            d.m = shape.m;
            d.workspace = workspace + 8, d.workspace_size = 0; /* not looked at */
            d.c = without;
            if (!needed)
                OK(mixprec_cuda_gemm_ex(&d, &options, NULL));
            d.c = with, d.workspace_size = bytes;
            /* alpha is 0: nothing is looked at, so nothing copied */
            d.alpha = &zero, d.a = d.b = NULL, d.workspace = workspace + 8;
            CHECK(mixprec_cuda_gemm_workspace(&d, &options, &none) == MIXPREC_OK && !none, "case %d: alpha 0: %zu", t,
                  none);
            OK(mixprec_cuda_gemm_ex(&d, &options, NULL));
            finish();
            for (size_t i = 0; i < c_bytes / 4; i++)
                CHECK(with[i] == 0, "case %d: alpha is 0, but not element %zu", t, i);
        }
        release(workspace), release(with), release(without), release(x[0].data), release(x[1].data);
    }
#ifndef TEST_ON_DEVICE
    pretend_device(90, 4);
#endif
}

/* Of A A^T and A^T A one copy is enough, unless B is A with another layout, stride or number of rows; the scales stay
   those of A and of B. */
static void test_gemm_gram_copied(void) {
    static const mixprec_dtype types[] = {MIXPREC_F16, MIXPREC_I8, MIXPREC_F32};
    for (int t = 0; t < 3 * 2 * 6; t++) {
        const mixprec_dtype type = types[t % 3];
        const bool trans_a = t / 3 % 2, other = t / 6 == 1, square = t / 6 == 2, once = t / 6 == 3, fewer = t / 6 == 4,
                   trans_b = trans_a == square;
        const size_t m = 21, n = fewer ? 13 : m, k = square ? m : 75, count = 2, size = size_of(type);
        mixprec_gemm_desc d = {};
        mixprec_cuda_gemm_options options = {};
        size_t bytes = 0, want = 0, c_bytes = count * m * m * 4;
        float *scales = (float *)memory(4), *with = (float *)memory(c_bytes), *without = (float *)memory(c_bytes);
        matrix a = make_matrix(type, trans_a ? k : m, trans_a ? m : k, 2 * count, t / 6 == 5, true);
        bool units = type != MIXPREC_F16;
        void *workspace;
#ifndef TEST_ON_DEVICE
        pretend_device(90, 4, true);
#else
        units &= has_wgmma();
#endif
        for (size_t line = 0; line < a.count * a.rows; line++)
            for (size_t e = 0; e < a.columns; e++)
                put(a.data, type, line / a.rows * a.stride + line % a.rows * a.ld + e, (int)(random_u32() % 7) - 3);
        *scales = 0.5f;
        d.trans_a = trans_a ? MIXPREC_TRANS : MIXPREC_NO_TRANS, d.trans_b = trans_b ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
        d.m = m, d.n = n, d.k = k, d.batch = count, d.native = 1;
        d.a = a.data, d.b = (const char *)a.data + (other ? count * a.stride * size : 0);
        d.a_type = d.b_type = type, d.lda = d.ldb = a.ld, d.stride_a = a.stride, d.stride_b = once ? 0 : a.stride;
        d.c = without, d.c_type = MIXPREC_F32, d.scale_b.values = scales;
        memset(with, 0, c_bytes), memset(without, 0, c_bytes);
        OK(mixprec_cuda_gemm_ex(&d, &options, NULL));
        options.split_k = 1;
        if (units && (trans_a || !trans_b))
            options.path = MIXPREC_CUDA_PATH_WGMMA;
        for (int i = 0; i < (t / 6 % 5 ? 2 : 1); i++) {
            const bool along_k = (i ? trans_b : !trans_a) || units;
            const size_t rows = i ? n : m, stride = i ? d.stride_b : d.stride_a;
            if (along_k != (i ? trans_b : !trans_a) || ((uintptr_t)(i ? d.b : d.a) | a.ld * size | stride * size) % 16)
                want += (stride ? count : 1) * (along_k ? rows : k) * (((along_k ? k : rows) * size + 15) / 16 * 16);
        }
        OK(mixprec_cuda_gemm_workspace(&d, &options, &bytes));
        CHECK(bytes == want, "case %d: %zu bytes, want %zu", t, bytes, want);
        d.c = with, d.workspace = workspace = memory(bytes + 16), d.workspace_size = bytes;
        OK(mixprec_cuda_gemm_ex(&d, &options, NULL));
        finish();
        CHECK(!memcmp(with, without, c_bytes), "case %d: other bits", t);
        release(workspace), release(with), release(without), release(scales), release(a.data);
    }
#ifndef TEST_ON_DEVICE
    pretend_device(90, 4);
#endif
}

/* Activations of one f16 in seven, in wgmma's tiles that end in place, in those that do not, and by mma.sync. */
static void test_gemm_activations(void) {
    const size_t step = test_quick ? 29 : 7, count = 65536 / step + 1;
    uint16_t *x = (uint16_t *)memory(count * 2), *one = (uint16_t *)memory(8);
    float *y = (float *)memory(count * 16), *bias = (float *)memory(16);
    for (int i = 0; i < 4; i++)
        bias[i] = (float)i * 0x1.2345p-9f; /* the square of an f16 is exact, that of a sum is not */
    for (size_t i = 0; i < count; i++)
        x[i] = (uint16_t)(i * step);
    x[0] = 0x8000, x[1] = 0x7C00, x[2] = 0xFC00, x[3] = 0x7E00;
    for (int i = 0; i < 4; i++)
        put(one, MIXPREC_F16, i, 1);
    for (int t = 0; t < 5 * 3; t++) {
        const mixprec_activation activation = (mixprec_activation)(1 + t % 5);
        const bool ends = activation != MIXPREC_ACTIVATION_TANH; /* in 0 and in x */
        const double relative = activation == MIXPREC_ACTIVATION_GELU_TANH ? 0x1p-15 : 0x1p-20;
        void *pointer = y;
        mixprec_gemm_desc d = {};
        size_t wrong = 0;
#ifndef TEST_ON_DEVICE
        pretend_device(90, 4, t / 5 > 0);
#endif
        d.m = count, d.n = 4, d.k = 1, d.a = x, d.b = one, d.c = y, d.bias = bias;
        d.a_type = d.b_type = MIXPREC_F16, d.c_type = MIXPREC_F32, d.activation = activation;
        memset(y, 0xFF, count * 16);
#ifndef TEST_ON_DEVICE
        if (t / 5 == 2) /* pointers to C: a block for each tile */
            d.c = NULL, d.c_array = &pointer;
#endif
        OK(mixprec_cuda_gemm_ex(&d, NULL, NULL));
        finish();
        for (size_t i = 0; i < count * 4; i++) {
            const double v = (double)((float)value_at(x, MIXPREC_F16, i / 4) + bias[i % 4]), got = (double)y[i];
            const double want = ends && v < -100 ? -0.0 : ends && v > 100 ? v : activate(v, activation);
            const bool right = v != v        ? got != got
                               : want == got ? true
                                             : fabs(got - want) <= fmax(fabs(want) * relative, 0x1p-119);
            wrong += !right || (ends && activation > MIXPREC_ACTIVATION_RELU && v < -100 && !signbit(got));
        }
        CHECK(!wrong, "case %d: %zu are wrong", t, wrong);
        (void)pointer;
    }
#ifndef TEST_ON_DEVICE
    pretend_device(90, 4);
#endif
    release(x), release(one), release(y), release(bias);
}

/* Where copies pay they are made without being asked for, if there is room beside the sums that are. */
static void test_gemm_room(void) {
    const size_t n = 512, k = 1800, copy = n * k * 4, sums = 2 * n * n * 4;
    const struct {
        size_t split_k, room;
        bool copies;
    } cases[] = {{1, copy, true}, {1, copy - 1, false}, {2, copy + sums, true}, {2, copy + sums - 1, false}};
    float *a = (float *)memory(copy), *b = (float *)memory(copy), *c = (float *)memory(n * n * 4);
    float *want = (float *)malloc(n * n * 4);
    unsigned char *workspace = (unsigned char *)memory(copy + sums);
    mixprec_gemm_desc d = {};
    mixprec_cuda_gemm_options options = {};
    size_t bytes = 0;
    bool here = true;
#ifdef TEST_ON_DEVICE
    here = has_wgmma();
#else
    pretend_device(90, 4, true);
#endif
    for (size_t i = 0; i < n * k; i++)
        a[i] = (float)(random_u32() % 7) - 3, b[i] = (float)(random_u32() % 7) - 3;
    CHECK(mixprec_gemm(MIXPREC_TRANS, MIXPREC_TRANS, n, n, k, 1, a, MIXPREC_F32, n, b, MIXPREC_F32, k, 0, want,
                       MIXPREC_F32, n) == MIXPREC_OK,
          "the CPU refuses");
    d.m = d.n = n, d.k = k, d.trans_a = d.trans_b = MIXPREC_TRANS, d.a = a, d.b = b, d.c = c, d.native = 1;
    d.a_type = d.b_type = d.c_type = MIXPREC_F32, d.workspace = workspace;
    for (const auto &x : cases) {
        size_t changed = 0;
        options.split_k = x.split_k;
        OK(mixprec_cuda_gemm_workspace(&d, &options, &bytes));
        CHECK(!here || bytes == copy + (x.split_k == 2 ? sums : 0), "%zu bytes", bytes);
        memset(workspace, 0xFF, copy + sums), memset(c, 0xFF, n * n * 4);
        d.workspace_size = x.room;
        OK(mixprec_cuda_gemm_ex(&d, &options, NULL));
        finish();
        CHECK(!memcmp(c, want, n * n * 4), "split_k %zu, room for %zu bytes: wrong", x.split_k, x.room);
        for (size_t i = 0; i < copy + sums; i++)
            changed += workspace[i] != 0xFF;
        CHECK(!here || (changed > sums) == x.copies, "split_k %zu, room for %zu bytes: %zu changed", x.split_k, x.room,
              changed);
    }
    options.path = MIXPREC_CUDA_PATH_WGMMA;
    d.workspace_size = copy + sums - 1;
    if (here)
        CHECK(mixprec_cuda_gemm_ex(&d, &options, NULL) == MIXPREC_ERR_WORKSPACE, "no room for the sums asked for");
    /* a copy of A, or sums: only where there is room for it does it matter where the workspace lies */
    for (const size_t small_k : {(size_t)24, k}) {
        const size_t small = 16;
        void *const bad[2] = {workspace + 8, c};
        d = {};
        d.m = d.n = small, d.k = small_k, d.lda = small_k == k ? k : k + 1, d.a = a, d.b = b, d.c = c;
        d.a_type = d.b_type = MIXPREC_BF16, d.c_type = MIXPREC_F32;
        OK(mixprec_cuda_gemm_workspace(&d, NULL, &bytes));
        CHECK(!here || bytes, "k %zu: no workspace", small_k);
        OK(mixprec_cuda_gemm_ex(&d, NULL, NULL));
        memcpy(want, c, small * small * 4);
        for (int i = 0; i < 2 && bytes; i++) {
            d.workspace = bad[i], d.workspace_size = bytes;
            CHECK(mixprec_cuda_gemm_ex(&d, NULL, NULL) == (i ? MIXPREC_ERR_OVERLAP : MIXPREC_ERR_WORKSPACE),
                  "k %zu: a bad workspace is used", small_k);
            d.workspace_size = bytes - 1;
            memset(c, 0xFF, small * small * 4);
            OK(mixprec_cuda_gemm_ex(&d, NULL, NULL));
            CHECK(!memcmp(c, want, small * small * 4), "k %zu, too small a workspace: wrong", small_k);
        }
        if (bytes) { /* nothing is written to a good one that is too small */
            unsigned char *own = (unsigned char *)memory(bytes);
            size_t changed = 0;
            d.workspace = own, d.workspace_size = bytes - 1;
            memset(own, 0xFF, bytes), memset(c, 0xFF, small * small * 4);
            OK(mixprec_cuda_gemm_ex(&d, NULL, NULL));
            for (size_t i = 0; i < bytes; i++)
                changed += own[i] != 0xFF;
            CHECK(!memcmp(c, want, small * small * 4) && !changed, "k %zu, too small a workspace: %zu bytes changed",
                  small_k, changed);
            release(own);
        }
    }
#ifndef TEST_ON_DEVICE
    pretend_device(90, 4);
#endif
    free(want);
    release(a), release(b), release(c), release(workspace);
}

/* 2^64 tiles, which is 0 if it wraps: more than enough, so nothing is split. */
static void test_gemm_vast(void) {
    mixprec_gemm_desc d = {};
    d.m = 2048, d.n = 8192, d.k = 64, d.batch = (size_t)1 << 55, d.stride_c = 1;
    d.a_type = d.b_type = MIXPREC_F16, d.c_type = MIXPREC_F32;
    for (int wgmma = 0; wgmma < 2; wgmma++) {
        size_t bytes = 1;
#ifndef TEST_ON_DEVICE
        pretend_device(90, 4, wgmma != 0);
#endif
        OK(mixprec_cuda_gemm_workspace(&d, NULL, &bytes));
        CHECK(bytes == 0, "%zu bytes", bytes);
    }
#ifndef TEST_ON_DEVICE
    pretend_device(90, 4);
#endif
}

/* Which copies pay, as measured on an H200: what the query asks for tells. */
static void test_gemm_copies_pay(void) {
    static const struct {
        mixprec_dtype type;
        const char *layout;
        size_t m, n, k, a, b; /* a, b: bytes of copies */
    } cases[] = {{MIXPREC_F32, "NT", 1024, 1024, 1024, 0, 0},
                 {MIXPREC_F32, "NT", 2048, 2048, 2048, 0, 1 << 24},
                 {MIXPREC_F32, "NT", 4096, 4096, 4096, 1 << 26, 1 << 26},
                 {MIXPREC_F32, "NT", 256, 4096, 4096, 1 << 22, 0},
                 {MIXPREC_F32, "NT", 4096, 512, 4096, 0, 1 << 23},
                 {MIXPREC_F32, "NN", 1024, 1024, 1024, 0, 0},
                 {MIXPREC_F32, "NN", 2048, 2048, 2048, 0, 1 << 24},
                 {MIXPREC_F32, "TT", 1024, 1024, 1024, 1 << 22, 0},
                 {MIXPREC_F32, "TN", 4096, 4096, 4096, 1 << 26, 1 << 26},
                 {MIXPREC_E4M3, "NN", 512, 512, 512, 0, 0},
                 {MIXPREC_E4M3, "NN", 2048, 2048, 2048, 0, 1 << 22},
                 {MIXPREC_E4M3, "TN", 2048, 2048, 2048, 1 << 22, 1 << 22},
                 {MIXPREC_I8, "NT", 4096, 4096, 4096, 0, 0},
                 {MIXPREC_I8, "NN", 1024, 1024, 1024, 0, 0},
                 {MIXPREC_I8, "NN", 2048, 2048, 2048, 0, 1 << 22},
                 {MIXPREC_I8, "TN", 2048, 2048, 2048, 0, 0},
                 {MIXPREC_I8, "TT", 1024, 1024, 1024, 1 << 20, 0},
                 {MIXPREC_F16, "TN", 4096, 4096, 4096, 0, 0}};
#ifdef TEST_ON_DEVICE
    test_needs("WGMMA");
    if (!has_wgmma())
        return;
#else
    pretend_device(90, 132, true);
#endif
    for (const auto &x : cases) {
        mixprec_gemm_desc d = {};
        mixprec_cuda_gemm_options options = {};
        size_t bytes = 1;
        d.m = x.m, d.n = x.n, d.k = x.k, d.a_type = d.b_type = x.type, d.c_type = MIXPREC_F32, d.native = 1;
        d.trans_a = x.layout[0] == 'T' ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
        d.trans_b = x.layout[1] == 'T' ? MIXPREC_TRANS : MIXPREC_NO_TRANS;
        options.split_k = 1;
        OK(mixprec_cuda_gemm_workspace(&d, &options, &bytes));
        CHECK(bytes == x.a + x.b, "%s %s %zu x %zu x %zu: %zu bytes, want %zu + %zu", mixprec_dtype_name(x.type),
              x.layout, x.m, x.n, x.k, bytes, x.a, x.b);
        d.a_array = d.b_array = (const void *const *)(uintptr_t)256;
        OK(mixprec_cuda_gemm_workspace(&d, &options, &bytes));
        CHECK(bytes == 0, "%zu bytes to copy what pointers point to", bytes);
    }
#ifndef TEST_ON_DEVICE
    pretend_device(90, 4);
#endif
}

/* The products of a batch may lie side by side, as the heads of attention do: [row][head][column]. */
static void test_gemm_heads(void) {
    const size_t heads = 3, m = 17, n = 8, k = 16;
    mixprec_gemm_desc d;
    float *a = (float *)memory(m * heads * k * 4), *b = (float *)memory(heads * k * n * 4);
    float *c = (float *)memory(m * heads * n * 4), *want = (float *)malloc(m * heads * n * 4);
    size_t i;
    for (i = 0; i < m * heads * k; i++)
        a[i] = (float)random_unit();
    for (i = 0; i < heads * k * n; i++)
        b[i] = (float)random_unit();
    memset(&d, 0, sizeof d);
    d.m = m, d.n = n, d.k = k, d.batch = heads, d.a = a, d.b = b, d.a_type = d.b_type = d.c_type = MIXPREC_F32;
    d.lda = heads * k, d.stride_a = k, d.stride_b = k * n, d.ldc = heads * n, d.stride_c = n;
    d.c = want;
    CHECK(mixprec_gemm_ex(&d) == MIXPREC_OK, "the CPU refuses");
    d.c = c;
    OK(mixprec_cuda_gemm_ex(&d, NULL, NULL));
    for (i = 0; i < m * heads * n; i++)
        CHECK(float_bits(c[i]) == float_bits(want[i]), "element %zu: got %a, want %a", i, (double)c[i],
              (double)want[i]);
    free(want);
    release(a), release(b), release(c);
}

/* A batch's matrices C in gaps between its A's, and an element into one of them; the CPU is asked, too. A's of 32
   elements, 16 apart; then side by side, of 284 from the first to the last: one begins before others end. */
static void test_gemm_gaps(void) {
    static const struct {
        size_t lda, stride_a;
        int c, stride_c, third; /* where C of the first product, or the third, begins, counted from the first A */
        mixprec_status status;
    } cases[] = {{4, 48, 31, 512, 0, MIXPREC_ERR_OVERLAP},          /* the last element of the first */
                 {4, 48, 5 * 48 + 31, 512, 1, MIXPREC_ERR_OVERLAP}, /* of the sixth */
                 {4, 48, 5 * 48 + 32, 512, 1, MIXPREC_OK},
                 {4, 48, 6 * 48 - 8, 512, 1, MIXPREC_OK},
                 {4, 48, 6 * 48 - 7, 512, 1, MIXPREC_ERR_OVERLAP}, /* the first element of the seventh */
                 {4, 48, 31, 48, 0, MIXPREC_ERR_OVERLAP},          /* each C in a gap */
                 {4, 48, 32, 48, 0, MIXPREC_OK},
                 {4, 48, 33, 48, 0, MIXPREC_OK},
                 {4, 48, 40, 48, 0, MIXPREC_OK},
                 {4, 48, 41, 48, 0, MIXPREC_ERR_OVERLAP},
                 {4, 48, 33, 96, 0, MIXPREC_OK}, /* in every other gap */
                 {4, 48, 33, 95, 0, MIXPREC_ERR_OVERLAP},
                 {40, 4, -8, 512, 1, MIXPREC_OK},
                 {40, 4, -7, 512, 1, MIXPREC_ERR_OVERLAP},
                 {40, 4, 5 * 4 + 283, 512, 1, MIXPREC_ERR_OVERLAP},
                 {40, 4, 7 * 4 + 283, 512, 1, MIXPREC_ERR_OVERLAP}, /* of all A's only the last */
                 {40, 4, 7 * 4 + 284, 512, 1, MIXPREC_OK}};
    const size_t m = 8, k = 4, batch = 8, elements = 4096, first = 1088;
    float *block = (float *)memory(elements * 4), *b = (float *)memory(k * 4), *want = (float *)malloc(elements * 4);
    for (size_t i = 0; i < k; i++)
        b[i] = (float)random_unit();
    for (size_t t = 0; t < sizeof cases / sizeof *cases; t++) {
        const auto &x = cases[t];
        const size_t c = (size_t)((int)first + x.c - (x.third ? 2 * x.stride_c : 0));
        mixprec_gemm_desc d = {};
        mixprec_status status;
        for (size_t i = 0; i < elements; i++)
            want[i] = block[i] = (float)random_unit();
        d.m = m, d.n = 1, d.k = k, d.batch = batch, d.lda = x.lda, d.stride_a = x.stride_a;
        d.stride_c = (size_t)x.stride_c, d.a_type = d.b_type = d.c_type = MIXPREC_F32, d.b = b;
        d.a = want + first, d.c = want + c;
        status = mixprec_gemm_ex(&d);
        CHECK(status == x.status, "case %zu: the CPU says %d, not %d", t, (int)status, (int)x.status);
        d.a = block + first, d.c = block + c;
        status = mixprec_cuda_gemm_ex(&d, NULL, NULL);
        finish();
        CHECK(status == x.status, "case %zu: %d, want %d", t, (int)status, (int)x.status);
        CHECK(!memcmp(block, want, elements * 4), "case %zu: other bits than the CPU's", t);
    }
    free(want);
    release(block), release(b);
}

/* A workspace in a gap between the matrices A, B or C of a batch, or between rows, and a byte into them. */
static void test_gemm_workspace_gaps(void) {
    const size_t k = 400, batch = 3, sums = 2 * batch * 8 * 8 * 4, all = 65536;
    unsigned char *block = (unsigned char *)memory(all), *want = (unsigned char *)malloc(all);
    for (int t = 0; t < 2 * 6 * 3; t++) {
        const int which = t % 3, place = t / 3 % 6; /* 0: it just fits, 1, 2: not at its begin, end */
        const bool row = place == 3 || place == 4;  /* 3, 4: the same between rows; 5: the bias lies in its end */
        const bool fits = place == 0 || place == 3;
        size_t columns[3] = {k, k, 8}, ld[3], strides[3], at[3], end = 0, workspace, changed = 0;
        mixprec_gemm_desc d = {};
        mixprec_cuda_gemm_options options = {};
        mixprec_status status;
        for (int i = 0; i < 3; i++) {
            const size_t gap = i != which ? 0 : place == 2 || place == 4 ? sums - 1 : sums;
            ld[i] = i == which && row ? (columns[i] + 15) / 16 * 16 + gap : columns[i];
            strides[i] = 8 * ld[i] + (row ? 0 : gap);
            at[i] = end + (i == which && (place == 1 || place == 2));
            end = (at[i] + batch * strides[i] + 15) / 16 * 16;
        }
        /* behind the first row, else the second matrix, or its last byte */
        workspace = at[which] / 16 * 16 +
                    (row ? (columns[which] + 15) / 16 * 16 : 8 * columns[which] + sums + 8 * columns[which]);
        for (size_t i = 0; i < all; i++)
            put(block, MIXPREC_E4M3, i, (double)(random_u32() % 7) - 3);
        memcpy(want, block, all);
        d.m = d.n = 8, d.k = k, d.batch = batch, d.trans_b = MIXPREC_TRANS;
        d.lda = ld[0], d.ldb = ld[1], d.ldc = ld[2];
        d.stride_a = strides[0], d.stride_b = strides[1], d.stride_c = strides[2];
        d.a_type = d.b_type = d.c_type = d.bias_type = MIXPREC_E4M3;
        d.a = want + at[0], d.b = want + at[1], d.c = want + at[2];
        if (fits)
            CHECK(mixprec_gemm_ex(&d) == MIXPREC_OK, "the CPU refuses");
        d.a = block + at[0], d.b = block + at[1], d.c = block + at[2];
        d.bias = place == 5 ? block + workspace + sums - 1 : NULL;
        d.workspace = block + workspace, d.workspace_size = sums;
        options.split_k = 2;
#ifndef TEST_ON_DEVICE
        pretend_device(90, 4, t / 18 > 0);
#endif
        status = mixprec_cuda_gemm_ex(&d, &options, NULL);
        finish();
        CHECK(status == (fits ? MIXPREC_OK : MIXPREC_ERR_OVERLAP), "case %d: %d", t, (int)status);
        for (size_t i = 0; i < sums && fits; i++) {
            changed += block[workspace + i] != want[workspace + i];
            want[workspace + i] = block[workspace + i];
        }
        CHECK(!fits || changed, "case %d: the workspace is not used", t);
        CHECK(!memcmp(block, want, all), "case %d: other bits than the CPU's", t);
    }
#ifndef TEST_ON_DEVICE
    pretend_device(90, 4);
#endif
    free(want);
    release(block);
}

/* ---- training kernels ---- */

static void fill(void *p, mixprec_dtype type, size_t n, double amplitude) {
    size_t i;
    for (i = 0; i < n; i++)
        put(p, type, i, (random_unit() * 2 - 1) * amplitude);
}

static void test_scaler(void) {
    static const float special[] = {1, HUGE_VALF, -HUGE_VALF, NAN};
    mixprec_scaler *device = (mixprec_scaler *)memory(sizeof *device), host;
    int32_t *take = (int32_t *)memory(4);
    int step, t;
    mixprec_scaler_init(&host);
    host.growth_interval = 3;
    host.hysteresis = 2;
    host.growth_factor = 3.3;
    host.backoff_factor = 0.7;
    memcpy(device, &host, sizeof host);
    for (step = 0; step < 400; step++) {
        int took = 0;
        if (step == 200)
            host.min_scale = device->min_scale = NAN;
        if (step >= 250)
            host.max_scale = device->max_scale = step < 300 ? 1000 : 0; /* 0: no limit */
        host.found_inf = device->found_inf = random_u32() % 3 == 0;
        took = mixprec_scaler_update(&host);
        OK(mixprec_cuda_scaler_update(device, step % 2 ? take : NULL, NULL));
        CHECK(!memcmp(&host, device, sizeof host) && (step % 2 == 0 || *take == took), "step %d: scale %a, want %a",
              step, (double)device->scale, (double)host.scale);
    }
    for (t = 0; t < 5; t++)
        for (step = 0; step < 12; step++) {
            size_t n = 10000, at = random_u32() % n, i;
            mixprec_dtype from = compute_types[t], to = compute_types[step % 5];
            void *src = memory(n * 4), *dst = memory(n * 4);
            float *want = (float *)malloc(n * 4);
            mixprec_cuda_tensor list[2];
            int found;
            bool check_only = step == 11;
            mixprec_scaler_init(&host);
            host.scale = step == 5 ? 0x1p-14f : step == 6 ? 3.0f : 65536.0f;
            memcpy(device, &host, sizeof host);
            fill(src, from, n, step == 5 && from != MIXPREC_E4M3 ? 0x1p14 : 100);
            if (step == 5 && (from == MIXPREC_F32 || from == MIXPREC_BF16))
                put(src, from, at, 3e38);
            if (step >= 8) {
                uint32_t code = mixprec_encode((double)special[step - 8], from, MIXPREC_ROUND_NEAREST_EVEN,
                                               MIXPREC_OVERFLOW_IEEE, 0);
                memcpy((char *)src + at * size_of(from), &code, size_of(from));
            }
            found = mixprec_scaler_unscale(&host, want, src, from, n);
            list[0].dst = dst, list[0].src = src, list[0].n = 777;
            list[1].dst = (char *)dst + 777 * size_of(to), list[1].src = (char *)src + 777 * size_of(from);
            list[1].n = n - 777;
            if (check_only)
                list[0].dst = list[1].dst = NULL;
            OK(mixprec_cuda_scaler_unscale(device, list, 2, check_only ? MIXPREC_NONE : to, from, NULL));
            CHECK(device->found_inf == found, "%s case %d: found_inf %d, want %d", mixprec_dtype_name(from), step,
                  (int)device->found_inf, found);
            for (i = 0; i < n && !check_only; i++) {
                uint32_t code =
                    mixprec_encode((double)want[i], to, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0);
                CHECK(code_at(dst, to, i) == code, "%s to %s: element %zu", mixprec_dtype_name(from),
                      mixprec_dtype_name(to), i);
            }
            release(src);
            release(dst);
            free(want);
        }
    release(device);
    release(take);
}

static void test_norm(void) {
    int t;
    for (t = 0; t < 5; t++) {
        static const size_t lengths[] = {3, 8192 * 3, 0, 50001, 100};
        mixprec_cuda_tensor list[60];
        size_t count = t == 2 ? 60 : 5, i, j, bytes;
        mixprec_dtype type = compute_types[t];
        float *norm = (float *)memory(8), *amax = norm + 1;
        void *workspace;
        double sum = 0, largest = 0, factor;
        for (i = 0; i < count; i++) {
            list[i].n = i < 5 ? lengths[i] : i;
            list[i].src = list[i].dst = memory(list[i].n * 4, i % 2 * 4);
            fill(list[i].dst, type, list[i].n, 3);
            for (j = 0; j < list[i].n; j++) {
                double x = value_at(list[i].src, type, j);
                sum += x * x;
                largest = fabs(x) > largest ? fabs(x) : largest;
            }
        }
        bytes = mixprec_cuda_norm2_workspace(list, count);
        workspace = memory(bytes);
        memset(workspace, 0xFF, bytes);
        *norm = *amax = -1;
        OK(mixprec_cuda_norm2(norm, list, count, type, workspace, bytes, NULL));
        CHECK(fabs((double)*norm - sqrt(sum)) < 1e-6 * sqrt(sum), "%s: norm %.9g, want %.9g", mixprec_dtype_name(type),
              (double)*norm, sqrt(sum));
        OK(mixprec_cuda_amax(amax, list, count, type, NULL));
        CHECK((double)*amax == largest, "%s: amax %g, want %g", mixprec_dtype_name(type), (double)*amax, largest);
        if (t < 3) {
            void *copy = malloc(50001 * 4);
            float max_norm = t == 1 ? 1e9f : 0.5f;
            factor = (double)mixprec_clip_coefficient((double)*norm, (double)max_norm);
            memcpy(copy, list[3].src, 50001 * size_of(type));
            OK(mixprec_cuda_clip(list, count, type, norm, max_norm, NULL));
            for (j = 0; j < 50001; j++) {
                float want = rounded((float)value_at(copy, type, j) * (float)factor);
                CHECK(code_at(list[3].dst, type, j) ==
                          mixprec_encode((double)want, type, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0),
                      "%s: clipped element %zu", mixprec_dtype_name(type), j);
            }
            free(copy);
        }
        put(list[1].dst, type, 4321, (double)NAN);
        OK(mixprec_cuda_amax(amax, list, count, type, NULL));
        CHECK(*amax != *amax, "%s: amax %g hides a NaN", mixprec_dtype_name(type), (double)*amax);
        for (i = 0; i < count; i++)
            release(list[i].src);
        release(norm);
        release(workspace);
    }
    /* the norm may lie in what is only read */
    float *x = (float *)memory(64), factor = mixprec_clip_coefficient(5, 2);
    mixprec_cuda_tensor apart = {x + 4, x, 3};
    x[0] = 3, x[1] = 5, x[2] = 4;
    OK(mixprec_cuda_clip(&apart, 1, MIXPREC_F32, x + 1, 2, NULL));
    for (t = 0; t < 3; t++)
        CHECK(x[4 + t] == rounded(x[t] * factor), "clipped element %d, the norm in src: %g", t, (double)x[4 + t]);
    release(x);
}

static void test_clip_coefficient(void) {
    static const double limits[] = {1, 0.3, 1e-300, 0, -1, 1e30, HUGE_VAL, -HUGE_VAL, NAN, -NAN};
    static const float norms[] = {0, 1e-30f, 0.7f, 3e7f, 3e38f, HUGE_VALF, NAN};
    float *values = (float *)memory(64);
    mixprec_scaler *scaler = (mixprec_scaler *)memory(sizeof *scaler);
    size_t n, l, s;
    for (n = 0; n < 7; n++)
        for (l = 0; l < 10; l++)
            for (s = 0; s < 6; s++) {
                static const float scales[5] = {65536.0f, 3.0f, 0x1p127f, 0x1.fffffep126f, 0.5f};
                float inverse = s < 5 ? mixprec_inverse_scale(scales[s]) : 1.0f;
                float clip = mixprec_clip_coefficient((double)norms[n] * (double)inverse, limits[l]);
                const int found = n >= 5 || (n == 4 && scales[s % 5] < 1); /* 3e38 / 0.5 */
                mixprec_scaler_init(scaler);
                scaler->scale = scales[s % 5];
                values[0] = norms[n], values[1] = values[2] = -1;
                OK(mixprec_cuda_clip_coefficient(values + 1, values + 2, values, limits[l], s < 5 ? scaler : NULL,
                                                 NULL));
                CHECK(same_bits(values[1], clip) && values[2] == inverse,
                      "norm %g, at most %g, scale %zu: clip %a, want %a; inverse %a, want %a", (double)norms[n],
                      limits[l], s, (double)values[1], (double)clip, (double)values[2], (double)inverse);
                CHECK(scaler->found_inf == (s < 5 && found), "norm %g: found_inf %d", (double)norms[n],
                      (int)scaler->found_inf);
                scaler->found_inf = 0;
                OK(mixprec_cuda_clip_coefficient(NULL, NULL, values, limits[l], scaler, NULL));
                CHECK(scaler->found_inf == found, "norm %g alone: found_inf %d", (double)norms[n],
                      (int)scaler->found_inf);
            }
    release(values);
    release(scaler);
}

/* More blocks than a launch has, and a second launch with few. */
static void test_norm_large(void) {
    const size_t large = (size_t)8192 * 1030, count = 58;
    mixprec_cuda_tensor list[58];
    unsigned char *x = (unsigned char *)memory(large);
    float *norm = (float *)memory(4);
    size_t i, bytes;
    void *workspace;
    memset(x, 0x38, large); /* 1 in e4m3 */
    for (i = 0; i < count; i++)
        list[i].dst = NULL, list[i].src = x, list[i].n = i ? 100 : large;
    bytes = mixprec_cuda_norm2_workspace(list, count);
    workspace = memory(bytes);
    memset(workspace, 0xFF, bytes);
    OK(mixprec_cuda_norm2(norm, list, count, MIXPREC_E4M3, workspace, bytes, NULL));
    CHECK(*norm == (float)sqrt((double)(large + 57 * 100)), "got %.9g", (double)*norm);
    release(x);
    release(norm);
    release(workspace);
}

/* TransformerEngine's values: amax, then scale of e4m3, its power of two, scale of e5m2, its power of two, as bits. */
static const uint32_t golden_scales[][5] = {{0x00000000u, 0x3f800000u, 0x3f800000u, 0x3f800000u, 0x3f800000u},
                                            {0x00000001u, 0x7f7fffffu, 0x7f000000u, 0x7f7fffffu, 0x7f000000u},
                                            {0x000116c2u, 0x7f7fffffu, 0x7f000000u, 0x7f7fffffu, 0x7f000000u},
                                            {0x00800000u, 0x7f7fffffu, 0x7f000000u, 0x7f7fffffu, 0x7f000000u},
                                            {0x02081ceau, 0x7f7fffffu, 0x7f000000u, 0x7f7fffffu, 0x7f000000u},
                                            {0x0da24260u, 0x75b0b471u, 0x75800000u, 0x7930b471u, 0x79000000u},
                                            {0x2b8cbcccu, 0x57cbba10u, 0x57800000u, 0x5b4bba10u, 0x5b000000u},
                                            {0x33d6bf95u, 0x4f8583b0u, 0x4f800000u, 0x530583b0u, 0x53000000u},
                                            {0x3a83126fu, 0x48dabfffu, 0x48800000u, 0x4c5abfffu, 0x4c000000u},
                                            {0x3ee00000u, 0x44800000u, 0x44800000u, 0x48000000u, 0x48000000u},
                                            {0x3f000000u, 0x44600000u, 0x44000000u, 0x47e00000u, 0x47800000u},
                                            {0x3f800000u, 0x43e00000u, 0x43800000u, 0x47600000u, 0x47000000u},
                                            {0x3fc00000u, 0x43955555u, 0x43800000u, 0x47155555u, 0x47000000u},
                                            {0x3fe00000u, 0x43800000u, 0x43800000u, 0x47000000u, 0x47000000u},
                                            {0x3fe66666u, 0x4378e38fu, 0x43000000u, 0x46f8e38fu, 0x46800000u},
                                            {0x3ffeb852u, 0x43612029u, 0x43000000u, 0x46e12029u, 0x46800000u},
                                            {0x40000000u, 0x43600000u, 0x43000000u, 0x46e00000u, 0x46800000u},
                                            {0x40400000u, 0x43155555u, 0x43000000u, 0x46955555u, 0x46800000u},
                                            {0x43df8000u, 0x3f80494eu, 0x3f800000u, 0x4300494eu, 0x43000000u},
                                            {0x43e00000u, 0x3f800000u, 0x3f800000u, 0x43000000u, 0x43000000u},
                                            {0x43e08000u, 0x3f7f6e0au, 0x3f000000u, 0x42ff6e0au, 0x42800000u},
                                            {0x43e80000u, 0x3f772c23u, 0x3f000000u, 0x42f72c23u, 0x42800000u},
                                            {0x43f00000u, 0x3f6eeeefu, 0x3f000000u, 0x42eeeeefu, 0x42800000u},
                                            {0x43ff8000u, 0x3f607038u, 0x3f000000u, 0x42e07038u, 0x42800000u},
                                            {0x44000000u, 0x3f600000u, 0x3f000000u, 0x42e00000u, 0x42800000u},
                                            {0x47600000u, 0x3c000000u, 0x3c000000u, 0x3f800000u, 0x3f800000u},
                                            {0x47700000u, 0x3beeeeefu, 0x3b800000u, 0x3f6eeeefu, 0x3f000000u},
                                            {0x477fe000u, 0x3be01c04u, 0x3b800000u, 0x3f601c04u, 0x3f000000u},
                                            {0x501502f9u, 0x33406a1fu, 0x33000000u, 0x36c06a1fu, 0x36800000u},
                                            {0x7e967699u, 0x04be8ee2u, 0x04800000u, 0x083e8ee2u, 0x08000000u},
                                            {0x7f7fffffu, 0x03e00001u, 0x03800000u, 0x07600001u, 0x07000000u},
                                            {0x7f800000u, 0x3f800000u, 0x3f800000u, 0x3f800000u, 0x3f800000u},
                                            {0x7fc00000u, 0x3f800000u, 0x3f800000u, 0x3f800000u, 0x3f800000u}};

static void test_fp8_scale(void) {
    const size_t count = sizeof golden_scales / sizeof *golden_scales;
    float *amax = (float *)memory(count * 4), *scale = (float *)memory(count * 4),
          *inverse = (float *)memory(count * 4);
    size_t i;
    int form;
    for (i = 0; i < count; i++)
        amax[i] = float_from_bits(golden_scales[i][0]);
    for (form = 0; form < 4; form++) {
        OK(mixprec_cuda_scale_of_amax(scale, form == 3 ? NULL : inverse, amax, count,
                                      form / 2 ? MIXPREC_E5M2 : MIXPREC_E4M3, form % 2, NULL));
        for (i = 0; i < count; i++)
            CHECK(float_bits(scale[i]) == golden_scales[i][1 + form] &&
                      (form == 3 || inverse[i] == rounded(1.0f / scale[i])),
                  "amax %a, form %d: scale %a, want %a", (double)amax[i], form, (double)scale[i],
                  (double)float_from_bits(golden_scales[i][1 + form]));
    }
    release(amax);
    release(scale);
    release(inverse);
}

static void test_quantize(void) {
    int t;
    size_t i, j;
    /* beyond the range of dst, and within it; then to nearest alone, which has its own kernel */
    for (t = 0; t < 15; t++) {
        mixprec_dtype type = compute_types[t % 5], to = t % 2 ? MIXPREC_E4M3 : MIXPREC_E5M2;
        mixprec_cuda_quantized list[12]; /* two to each mode; the second has neither amax nor inverse, or a step */
        float *state = (float *)memory(12 * 16);
        uint64_t *step = (uint64_t *)memory(8);
        *step = 77;
        memset(list, 0, sizeof list);
        for (i = 0; i < 12; i++) {
            list[i].n = (i + (size_t)t) % 3 * 5000 + 3 + i;
            list[i].src = memory(list[i].n * 4);
            list[i].dst = memory(list[i].n, i % 2 * 4);
            fill((void *)list[i].src, type, list[i].n, i % 4 == 3 ? 1e-3 : 30);
            state[4 * i] = 0.7f + (float)i * (t < 5 ? 20 : 1);
            state[4 * i + 1] = 0, state[4 * i + 2] = -1;
            list[i].scale = state + 4 * i;
            list[i].amax = i % 2 ? NULL : state + 4 * i + 1;
            list[i].inverse = i % 2 ? NULL : state + 4 * i + 2;
            list[i].step = i % 2 ? step : NULL;
            list[i].round = t < 10 ? (mixprec_round)(i / 2) : MIXPREC_ROUND_NEAREST_EVEN;
            list[i].seed = random_u32(), list[i].offset = random_u32();
            if (i == 10) /* stochastic, and it wraps */
                list[i].offset = UINT64_MAX - random_u32() % list[i].n;
        }
        if (type != MIXPREC_E4M3) { /* what is special: Inf saturates, NaN stays */
            put((void *)list[0].src, type, 1, (double)NAN);
            put((void *)list[4].src, type, 2, HUGE_VAL);
        }
        OK(mixprec_cuda_quantize(list, 12, to, type, NULL));
        for (i = 0; i < 12; i++) { /* the CPU's bits */
            size_t n = list[i].n;
            unsigned char *want = (unsigned char *)malloc(n);
            float scale = *list[i].scale, inverse, amax;
            mixprec_quantize_desc d;
            memset(&d, 0, sizeof d);
            d.rows = 1, d.columns = n, d.src = list[i].src, d.src_type = type, d.dst = want, d.dst_type = to;
            d.scales = &inverse, d.scale = &scale, d.amax = &amax;
            d.round = list[i].round, d.seed = list[i].seed + (i % 2 ? 77 : 0), d.offset = list[i].offset;
            CHECK(mixprec_quantize(&d) == MIXPREC_OK, "the CPU refuses");
            for (j = 0; j < n; j++)
                CHECK(((unsigned char *)list[i].dst)[j] == want[j], "%s to %s, mode %zu: element %zu: %02x, want %02x",
                      mixprec_dtype_name(type), mixprec_dtype_name(to), i / 2, j, ((unsigned char *)list[i].dst)[j],
                      want[j]);
            CHECK(i % 2 ? state[4 * i + 1] == 0 && state[4 * i + 2] == -1
                        : same_bits(state[4 * i + 1], amax) && state[4 * i + 2] == inverse,
                  "%s: tensor %zu: amax %g, want %g; inverse %a, want %a", mixprec_dtype_name(type), i,
                  (double)state[4 * i + 1], (double)amax, (double)state[4 * i + 2], (double)inverse);
            release(list[i].src);
            release(list[i].dst);
            free(want);
        }
        release(state);
        release(step);
    }
    /* more tensors than blocks, each smaller than the one before: a block that goes on to the next forgets the last */
#ifndef TEST_ON_DEVICE
    const int multiprocessors = emulation_device.multiprocessors;
    emulation_device.multiprocessors = 1;
#endif
    const size_t count = 100;
    mixprec_cuda_quantized *many = (mixprec_cuda_quantized *)calloc(count, sizeof *many);
    float *values = (float *)memory(count * 4), *amax = (float *)memory(count * 4), *one = (float *)memory(4);
    unsigned char *codes = (unsigned char *)memory(count);
    *one = 1;
    for (i = 0; i < count; i++) {
        values[i] = 200.0f - (float)i, amax[i] = 0;
        many[i].n = 1, many[i].src = values + i, many[i].dst = codes + i, many[i].scale = one, many[i].amax = amax + i;
    }
    OK(mixprec_cuda_quantize(many, count, MIXPREC_E4M3, MIXPREC_F32, NULL));
    for (i = 0; i < count; i++)
        CHECK(amax[i] == values[i], "tensor %zu of many: amax %g, want %g", i, (double)amax[i], (double)values[i]);
    free(many);
    release(values), release(amax), release(one), release(codes);
#ifndef TEST_ON_DEVICE
    emulation_device.multiprocessors = multiprocessors;
#endif
}

/* A NaN above all. */
static float larger_magnitude(float largest, float x) {
    return isnan(largest) || fabsf(x) <= largest ? largest : fabsf(x);
}
static void test_quantize_blocks(void) {
    static const size_t shapes[][2] = {{1, 1}, {9, 130},  {0, 4},     {128, 128}, {300, 260},
                                       {5, 0}, {17, 128}, {300, 264}, {130, 256}, {131, 128}};
    const size_t shape_count = sizeof shapes / sizeof *shapes;
    int t, form;
    pretend_multiprocessors(1);
    for (t = 0; t < 5; t++)
        for (form = 0; form < 4; form++) {
            mixprec_dtype type = compute_types[t], to = t % 2 ? MIXPREC_E4M3 : MIXPREC_E5M2;
            const size_t high = form / 2 ? 128 : 1;
            enum { COUNT = 60 }; /* more than one launch takes */
            mixprec_cuda_quantized_blocks list[COUNT];
            size_t m, i, j, b;
            for (m = 0; m < COUNT; m++) {
                mixprec_cuda_quantized_blocks *x = &list[m];
                x->rows = m < shape_count ? shapes[m][0] : m % 19;
                x->columns = m < shape_count ? shapes[m][1] : m * 23 % 150;
                size_t n = x->rows * x->columns, blocks = (x->rows + high - 1) / high * ((x->columns + 127) / 128);
                x->src = n ? memory(n * 4, m < shape_count ? 0 : m % 3 * 4) : NULL;
                x->dst = n ? memory(n, m < shape_count ? 0 : m % 5) : NULL;
                x->inverse = n ? (float *)memory(blocks * 4, m % 2 * 4) : NULL;
                fill((void *)x->src, type, n, 12);
                if (m == 4 || m == 7)
                    for (j = 0; j < 128; j++)
                        put((void *)x->src, type, 5 * x->columns + j, 0); /* a block of nothing */
                if (m == 7) {
                    put((void *)x->src, type, 77 * x->columns + 63, (double)NAN);
                    put((void *)x->src, type, 140 * x->columns + 200, (double)-INFINITY);
                }
            }
            OK(mixprec_cuda_quantize_blocks(list, COUNT, to, type, high, form % 2, NULL));
            for (m = 0; m < COUNT; m++) {
                const mixprec_cuda_quantized_blocks *x = &list[m];
                size_t rows = x->rows, columns = x->columns, bands = (columns + 127) / 128;
                for (b = 0; b < (rows + high - 1) / high * bands; b++) {
                    size_t i0 = b / bands * high, j0 = b % bands * 128;
                    float amax = 0, scale;
                    for (i = i0; i < rows && i < i0 + high; i++)
                        for (j = j0; j < columns && j < j0 + 128; j++)
                            amax = larger_magnitude(amax, (float)value_at(x->src, type, i * columns + j));
                    scale = mixprec_scale_of_amax(amax, to, form % 2);
                    CHECK(x->inverse[b] == rounded(1.0f / scale),
                          "%zu x %zu form %d: block %zu: inverse scale %a, want %a", rows, columns, form, b,
                          (double)x->inverse[b], (double)(1.0f / scale));
                    for (i = i0; i < rows && i < i0 + high; i++)
                        for (j = j0; j < columns && j < j0 + 128; j++) {
                            float value = rounded((float)value_at(x->src, type, i * columns + j) * scale);
                            CHECK(code_at(x->dst, to, i * columns + j) == mixprec_encode((double)value, to,
                                                                                         MIXPREC_ROUND_NEAREST_EVEN,
                                                                                         MIXPREC_OVERFLOW_SATURATE, 0),
                                  "%zu x %zu form %d: element %zu, %zu", rows, columns, form, i, j);
                        }
                }
                release(x->src);
                release(x->dst);
                release(x->inverse);
            }
        }
    pretend_multiprocessors(4);
}

/* Histories of several lengths in one launch against the CPU, step by step, with amaxes of every kind. */
static void test_delayed_scaling(void) {
    static const size_t lengths[] = {1, 2, 3, 16, 255, 256, 257, 258, 1024};
    enum { COUNT = 36 };
    mixprec_delayed_scaling *device = (mixprec_delayed_scaling *)memory(COUNT * sizeof *device), host[COUNT];
    float *amax = (float *)memory(COUNT * 4);
    size_t i, j;
    int step;
    for (i = 0; i < COUNT; i++) {
        static const mixprec_dtype types[] = {MIXPREC_E4M3, MIXPREC_E5M2,     MIXPREC_F16,
                                              MIXPREC_I8,   MIXPREC_E4M3FNUZ, MIXPREC_E2M1};
        size_t length = lengths[i % 9];
        CHECK(mixprec_delayed_scaling_init(&host[i], types[i % 6], (float *)malloc(length * 4), length) == MIXPREC_OK,
              "init");
        host[i].margin = i % 7 == 3 ? 64 : i % 7 == 5 ? -64 : (int)(i % 3);
        host[i].most_recent = i % 4 == 2;
        device[i] = host[i];
        device[i].history = (float *)memory(length * 4);
        memcpy(device[i].history, host[i].history, length * 4);
        if (i == 9) /* what makes no sense stays as it is */
            device[i].margin = 65;
        if (i == 10)
            device[i].dtype = MIXPREC_F32;
        if (i == 11)
            device[i].history_length = 0;
        if (i == 12)
            device[i].dtype = MIXPREC_E8M0;
        if (i == 13)
            device[i].history_length = (size_t)1 << 31;
    }
    for (step = 0; step < (test_quick ? 40 : 400); step++) {
        float given[COUNT];
        for (i = 0; i < COUNT; i++) {
            uint32_t kind = random_u32() % 12;
            float x = (float)ldexp(1 + random_unit(), (int)(random_u32() % 60) - 30);
            given[i] = amax[i] = kind == 0                ? 0
                                 : kind == 1              ? NAN
                                 : kind == 2              ? HUGE_VALF
                                 : kind == 3              ? float_from_bits(random_u32() % 0x800000u)
                                 : kind == 4 && step % 40 ? -x
                                 : kind == 5              ? 3e38f
                                 : kind == 6              ? -0.0f
                                                          : x;
        }
        if (step == 20)
            for (i = 0; i < COUNT; i++)
                for (j = 0; j < host[i].history_length; j++) /* a tie of both signs, and nothing but NaN */
                    host[i].history[j] = device[i].history[j] = i % 2 ? NAN : j % 2 ? -3.0f : 3.0f;
        OK(mixprec_cuda_delayed_scaling_update(device, amax, COUNT, NULL));
        for (i = 0; i < COUNT; i++) {
            bool sound = i < 9 || i > 13;
            if (sound)
                CHECK(mixprec_delayed_scaling_update(&host[i], given[i]) == MIXPREC_OK, "the CPU refuses");
            CHECK(same_bits(device[i].scale, host[i].scale), "step %d, history of %zu, amax %a: scale %a, want %a",
                  step, host[i].history_length, (double)given[i], (double)device[i].scale, (double)host[i].scale);
            for (j = 0; j < host[i].history_length; j++)
                CHECK(same_bits(device[i].history[j], host[i].history[j]), "step %d, history of %zu: [%zu] %a, want %a",
                      step, host[i].history_length, j, (double)device[i].history[j], (double)host[i].history[j]);
            CHECK(sound ? float_bits(amax[i]) == 0 : same_bits(amax[i], given[i]), "step %d: amax[%zu] is %a now", step,
                  i, (double)amax[i]);
        }
    }
    for (i = 0; i < COUNT; i++)
        release(device[i].history), free(host[i].history);
    release(device);
    release(amax);
}

/* The CPU's bits, over several steps: every dtype of gradient and model, with master weights, without, with
   compensation; every mode; one tensor of three not aligned; skipped steps, values from the device. */
static bool same_number(const void *a, const void *b, mixprec_dtype type, size_t i) { /* a NaN is a NaN */
    double x = value_at(a, type, i), y = value_at(b, type, i);
    return code_at(a, type, i) == code_at(b, type, i) || (x != x && y != y);
}
static void run_optimizer(int trial) {
    static const size_t lengths[3] = {8192 + 5, 1, 1000};
    const int adam = trial % 2, way = trial / 2 % 3, steps = 4; /* way: master, model alone, compensation */
    mixprec_cuda_optimizer_state *state = (mixprec_cuda_optimizer_state *)memory(sizeof *state);
    float *values = (float *)memory(64);
    int32_t *found = (int32_t *)(void *)(values + 2);
    double *rate = (double *)(void *)(values + 4);
    mixprec_parameter device[3], host[3];
    mixprec_cuda_step step;
    mixprec_adam adam_options;
    mixprec_sgd sgd_options;
    uint64_t taken = trial % 5 == 4 ? 1000 : 0;
    size_t i, j;
    int round;
    memset(&step, 0, sizeof step);
    memset(state, 0, sizeof *state);
    state->step = taken;
    mixprec_adam_init(&adam_options);
    mixprec_sgd_init(&sgd_options);
    if (trial % 4 == 3)
        mixprec_adamw_init(&adam_options);
    if (trial % 8 > 3)
        adam_options.weight_decay = 0.1;
    adam_options.learning_rate = sgd_options.learning_rate = 1e-2;
    if (trial / 4 % 3) {
        sgd_options.momentum = 0.9, sgd_options.weight_decay = 0.05;
        if (trial / 4 % 3 == 1)
            sgd_options.nesterov = 1;
        else
            sgd_options.dampening = 0.3;
    }
    if (trial % 5 == 1) { /* -0 is as good as 0 */
        double *zeros[] = {&sgd_options.momentum, &sgd_options.dampening, &sgd_options.weight_decay,
                           &adam_options.weight_decay};
        for (double *zero : zeros)
            *zero = *zero == 0 ? -0.0 : *zero;
        adam_options.beta1 = trial == 11 ? -0.0 : adam_options.beta1;
        adam_options.beta2 = trial == 21 ? -0.0 : adam_options.beta2;
        adam_options.epsilon = trial == 1 ? -0.0 : adam_options.epsilon;
    }
    memset(device, 0, sizeof device);
    for (i = 0; i < 3; i++) {
        mixprec_parameter *d = &device[i], *h = &host[i];
        size_t n = d->n = lengths[i], shift = i == 2 ? 4 : 0;
        d->grad_type = compute_types[random_u32() % 5];
        d->model_type = compute_types[random_u32() % 5];
        d->overflow = (mixprec_overflow)(random_u32() % 3);
        d->seed = random_u32(), d->offset = trial % 3 ? random_u32() : UINT64_MAX - random_u32() % n; /* which wraps */
        d->round = way == 2 || random_u32() % 3 == 0 ? MIXPREC_ROUND_NEAREST_EVEN
                   : random_u32() % 2                ? MIXPREC_ROUND_STOCHASTIC
                                                     : (mixprec_round)(random_u32() % 6);
        if (i == 0 && random_u32() % 2)
            d->model_type = MIXPREC_BF16;
        if (i == 0 && trial % 12 == 0)
            d->model_type = MIXPREC_F32, d->overflow = MIXPREC_OVERFLOW_SATURATE, d->round = MIXPREC_ROUND_NEAREST_EVEN;
        d->grad = memory(n * 4, shift);
        d->moment1 = (float *)memory(n * 4, shift), d->moment2 = (float *)memory(n * 4, shift);
        memset(d->moment1, 0, n * 4), memset(d->moment2, 0, n * 4);
        *h = *d;
        h->moment1 = (float *)calloc(n, 4), h->moment2 = (float *)calloc(n, 4);
        if (way == 0) {
            d->master = (float *)memory(n * 4, shift);
            fill(d->master, MIXPREC_F32, n, i == 2 ? 1e5 : 1); /* beyond f16 and fp8 */
            d->master[n / 3] = HUGE_VALF;                      /* saturates, but not in f32 */
            h->master = (float *)malloc(n * 4);
            memcpy(h->master, d->master, n * 4);
        }
        if (way || i != 1) {
            d->model = memory(n * 4, shift);
            memset(d->model, 0, n * 4);
            fill(d->model, d->model_type, n, 1);
            h->model = malloc(n * 4);
            memcpy(h->model, d->model, n * 4);
        }
        if (way == 2) {
            d->compensation = memory(n * 4, shift);
            memset(d->compensation, 0, n * 4);
            h->compensation = calloc(n, 4);
        }
        if (!adam && sgd_options.momentum == 0) /* the host needs none; what is there must stay as it is */
            memset(d->moment1, 0x55, n * 4), memset(h->moment1, 0x55, n * 4);
    }
    for (round = 1; round <= steps; round++) {
        float inverse = trial % 3 ? 1.0f / 1024 : 1.0f, clip = trial % 5 ? 0.75f : trial % 10 ? 1.0f : -0.0f;
        int skip = 0;
        mixprec_status want = MIXPREC_OK, got;
        for (i = 0; i < 3; i++) {
            fill((void *)device[i].grad, device[i].grad_type, lengths[i], 2 / (double)inverse);
            if (round == 4 && trial % 7 == 6)
                put((void *)device[i].grad, device[i].grad_type, lengths[i] / 2, (double)NAN);
        }
        values[0] = inverse, values[1] = clip, *found = 0, *rate = trial % 5 == 1 && round == 4 ? -0.0 : 1e-2 * round;
        if (trial % 4 > 1) { /* from the device */
            step.inverse_scale = values, step.clip = values + 1, step.found_inf = found, step.learning_rate = rate;
            adam_options.learning_rate = sgd_options.learning_rate = *rate;
            if (round == 2) {
                static const uint32_t bad[3] = {0, 0x7FC00000u, 0xBF800000u};
                skip = 1;
                switch (trial / 4 % 5) { /* what the CPU would refuse skips the step, too */
                case 0: *found = 1; break;
                case 1: values[0] = float_from_bits(bad[trial / 20 % 3]); break;
                case 2: values[1] = float_from_bits(bad[1 + trial / 20 % 2]); break;
                case 3: *rate = -1; break;
                default: *rate = (double)NAN; break;
                }
            }
        }
        if (round == 3 && trial % 4 == 1)
            skip = 1;
        if (adam)
            got = mixprec_cuda_adam_step(&adam_options, device, 3, step.clip ? -1 : inverse, step.clip ? -1 : clip,
                                         round == 3 && skip, state, step.clip ? &step : NULL, NULL);
        else
            got = mixprec_cuda_sgd_step(&sgd_options, device, 3, step.clip ? -1 : inverse, step.clip ? -1 : clip,
                                        round == 3 && skip, state, step.clip ? &step : NULL, NULL);
        finish();
        if (!skip) {
            adam_options.step = sgd_options.step = ++taken;
            for (i = 0; i < 3; i++) {
                host[i].seed = device[i].seed + taken;
                if (want == MIXPREC_OK)
                    want = adam ? mixprec_adam_step(&adam_options, &host[i], inverse, clip, 0)
                                : mixprec_sgd_step(&sgd_options, &host[i], inverse, clip, 0);
            }
        }
        CHECK(got == MIXPREC_OK && want == MIXPREC_OK, "trial %d: status %d, the CPU's %d", trial, (int)got, (int)want);
        CHECK(state->step == taken, "trial %d: counted %d steps, not %d", trial, (int)state->step, (int)taken);
        for (i = 0; i < 3; i++) {
            const mixprec_parameter *d = &device[i], *h = &host[i];
            for (j = 0; j < lengths[i]; j++)
                CHECK((!d->master || same_number(d->master, h->master, MIXPREC_F32, j)) &&
                          (!d->model || same_number(d->model, h->model, d->model_type, j)) &&
                          (!d->compensation || same_number(d->compensation, h->compensation, d->model_type, j)) &&
                          same_number(d->moment1, h->moment1, MIXPREC_F32, j) &&
                          same_number(d->moment2, h->moment2, MIXPREC_F32, j),
                      "%s trial %d step %d: tensor %zu, element %zu of %s from %s, mode %d: %a, want %a",
                      adam ? "Adam" : "SGD", trial, round, i, j, mixprec_dtype_name(d->model_type),
                      mixprec_dtype_name(d->grad_type), (int)d->round,
                      value_at(d->model ? d->model : d->master, d->model ? d->model_type : MIXPREC_F32, j),
                      value_at(h->model ? h->model : h->master, d->model ? d->model_type : MIXPREC_F32, j));
        }
    }
    for (i = 0; i < 3; i++) {
        release(device[i].grad), release(device[i].moment1), release(device[i].moment2);
        release(device[i].master);
        release(device[i].model);
        release(device[i].compensation);
        free(host[i].master), free(host[i].model), free(host[i].compensation);
        free(host[i].moment1), free(host[i].moment2);
    }
    release(state);
    release(values);
}
static void test_optimizers(void) {
    int trial;
    for (trial = 0; trial < (test_quick ? 30 : 120); trial++)
        run_optimizer(trial);
}

/* A step of training as a captured graph, run three times, against the same calls made three times: norm, clipping,
   Adam with stochastic rounding, fp8 with delayed scaling, a product, the scaler. */
#ifdef TEST_ON_DEVICE
typedef struct {
    float *values; /* norm, clip, inverse scale, amax */
    mixprec_scaler *scaler;
    mixprec_delayed_scaling *scaling;
    mixprec_cuda_optimizer_state *state;
    mixprec_parameter parameter;
    void *workspace, *gradient, *fp8;
    float *product;
} graph_step;
enum { GRAPH_N = 128 * 130, GRAPH_HISTORY = 5 };
static graph_step make_graph_step(const float *weights, const float *gradients) {
    graph_step g;
    memset(&g, 0, sizeof g);
    g.values = (float *)memory(64);
    memset(g.values, 0, 64);
    g.scaler = (mixprec_scaler *)memory(sizeof *g.scaler);
    mixprec_scaler_init(g.scaler);
    g.scaler->growth_interval = 2;
    g.scaling = (mixprec_delayed_scaling *)memory(sizeof *g.scaling);
    mixprec_delayed_scaling_init(g.scaling, MIXPREC_E4M3, (float *)memory(GRAPH_HISTORY * 4), GRAPH_HISTORY);
    g.state = (mixprec_cuda_optimizer_state *)memory(sizeof *g.state);
    memset(g.state, 0, sizeof *g.state);
    g.workspace = memory(1 << 20), g.gradient = memory(GRAPH_N * 2), g.fp8 = memory(GRAPH_N);
    g.product = (float *)memory(128 * 128 * 4);
    g.parameter.n = GRAPH_N, g.parameter.grad = g.gradient, g.parameter.grad_type = MIXPREC_BF16;
    g.parameter.master = (float *)memory(GRAPH_N * 4), g.parameter.model = memory(GRAPH_N * 2);
    g.parameter.model_type = MIXPREC_BF16, g.parameter.round = MIXPREC_ROUND_STOCHASTIC, g.parameter.seed = 5;
    g.parameter.moment1 = (float *)memory(GRAPH_N * 4), g.parameter.moment2 = (float *)memory(GRAPH_N * 4);
    memset(g.parameter.moment1, 0, GRAPH_N * 4), memset(g.parameter.moment2, 0, GRAPH_N * 4);
    memset(g.parameter.model, 0, GRAPH_N * 2);
    memcpy(g.parameter.master, weights, GRAPH_N * 4);
    mixprec_convert(g.gradient, MIXPREC_BF16, gradients, MIXPREC_F32, GRAPH_N);
    return g;
}
static void run_graph_step(graph_step *g, cudaStream_t s) {
    mixprec_cuda_stream stream = (mixprec_cuda_stream)s;
    mixprec_cuda_tensor tensor = {NULL, g->gradient, GRAPH_N};
    mixprec_cuda_quantized quantized;
    mixprec_cuda_step step;
    mixprec_adam adam;
    mixprec_gemm_desc product; /* of several kernels: a copy, as rows are not aligned, two parts of k, their sum */
    mixprec_cuda_gemm_options options;
    memset(&quantized, 0, sizeof quantized);
    memset(&step, 0, sizeof step);
    memset(&product, 0, sizeof product);
    memset(&options, 0, sizeof options);
    product.m = product.n = 128, product.k = 130, product.trans_b = MIXPREC_TRANS, options.split_k = 2;
    product.a = product.b = g->parameter.model, product.a_type = product.b_type = MIXPREC_BF16;
    product.c = g->product, product.c_type = MIXPREC_F32, product.workspace = g->workspace;
    product.workspace_size = 1 << 20;
    mixprec_adamw_init(&adam);
    step.inverse_scale = g->values + 2, step.clip = g->values + 1, step.found_inf = &g->scaler->found_inf;
    quantized.dst = g->fp8, quantized.src = g->parameter.model, quantized.n = GRAPH_N;
    quantized.scale = &g->scaling->scale, quantized.amax = g->values + 3, quantized.inverse = g->values + 4;
#define QUEUED(call) CHECK((call) == MIXPREC_OK, "%s: %s", #call, mixprec_cuda_last_error())
    QUEUED(mixprec_cuda_norm2(g->values, &tensor, 1, MIXPREC_BF16, g->workspace, 1 << 20, stream));
    QUEUED(mixprec_cuda_clip_coefficient(g->values + 1, g->values + 2, g->values, 1.0, g->scaler, stream));
    QUEUED(mixprec_cuda_adam_step(&adam, &g->parameter, 1, 1, 1, 0, g->state, &step, stream));
    QUEUED(mixprec_cuda_quantize(&quantized, 1, MIXPREC_E4M3, MIXPREC_BF16, stream));
    QUEUED(mixprec_cuda_delayed_scaling_update(g->scaling, g->values + 3, 1, stream));
    QUEUED(mixprec_cuda_gemm_ex(&product, &options, stream));
    QUEUED(mixprec_cuda_scaler_update(g->scaler, NULL, stream));
#undef QUEUED
}
static void test_graph(void) {
    float *weights = (float *)malloc(GRAPH_N * 4), *gradients = (float *)malloc(GRAPH_N * 4);
    graph_step direct, captured;
    cudaStream_t stream;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t program = NULL;
    int run;
    fill(weights, MIXPREC_F32, GRAPH_N, 1);
    fill(gradients, MIXPREC_F32, GRAPH_N, 1000);
    direct = make_graph_step(weights, gradients), captured = make_graph_step(weights, gradients);
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess, "no stream");
    for (run = 0; run < 3; run++)
        run_graph_step(&direct, stream);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess, "the calls failed");
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess, "no capture");
    run_graph_step(&captured, stream);
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess, "the capture failed");
    CHECK(captured.state->step == 0, "something ran while it was captured");
    CHECK(graph && cudaGraphInstantiateWithFlags(&program, graph, 0) == cudaSuccess, "no graph");
    for (run = 0; run < 3 && program; run++)
        CHECK(cudaGraphLaunch(program, stream) == cudaSuccess, "launch");
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess, "the graph failed");
    CHECK(direct.state->step == 3 && captured.state->step == 3 &&
              !memcmp(direct.parameter.master, captured.parameter.master, GRAPH_N * 4) &&
              !memcmp(direct.parameter.model, captured.parameter.model, GRAPH_N * 2) &&
              !memcmp(direct.fp8, captured.fp8, GRAPH_N) && !memcmp(direct.product, captured.product, 128 * 128 * 4) &&
              !memcmp(direct.values, captured.values, 5 * 4) &&
              !memcmp(direct.scaler, captured.scaler, sizeof *direct.scaler) &&
              direct.scaling->scale == captured.scaling->scale && direct.scaling->scale != 1,
          "the graph's results are others: %d steps, not %d", (int)captured.state->step, (int)direct.state->step);
    cudaGraphExecDestroy(program);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    free(weights);
    free(gradients);
}
#endif

/* Arrays again, on devices that lack some or all of the instructions for conversion. */
#ifndef TEST_ON_DEVICE
static void test_old_devices(void) {
    int arch;
    for (arch = 75; arch <= 86; arch += 11) {
        pretend_device(arch, 4);
        test_convert_every_code();
        test_convert_every_float();
        test_convert_list();
        test_convert_transpose();
        test_quantize();
        test_quantize_blocks();
    }
    pretend_device(90, 4);
}
#endif

/* ---- errors ---- */

static void test_statuses(void) {
    const size_t bytes = 4096;
    unsigned char *block = (unsigned char *)memory(bytes), *saved = (unsigned char *)malloc(bytes);
    float *x = (float *)(void *)block, *y = x + 256, *z = x + 512;
    mixprec_convert_options how;
    mixprec_gemm_desc d;
    mixprec_cuda_gemm_options options;
    mixprec_adam adam;
    mixprec_sgd sgd;
    mixprec_cuda_step step;
    mixprec_cuda_optimizer_state *state = (mixprec_cuda_optimizer_state *)(void *)(x + 768);
    mixprec_scaler *scaler = (mixprec_scaler *)(void *)(x + 800);
    mixprec_cuda_tensor one = {y, x, 50}, bad;
    mixprec_cuda_quantized quantized = {y, x, 50, z, NULL, NULL, MIXPREC_ROUND_NEAREST_EVEN, 0, 0, NULL};
    mixprec_parameter parameter;
    size_t size, i;
    for (i = 0; i < bytes; i++)
        block[i] = (unsigned char)(i * 37);
    memcpy(saved, block, bytes);
#define REFUSED(call, status)                                                                                          \
    do {                                                                                                               \
        mixprec_status got = call;                                                                                     \
        finish();                                                                                                      \
        CHECK(got == (status), "%s: got %d, want %d", #call, (int)got, (int)(status));                                 \
        CHECK(!memcmp(block, saved, bytes), "%s: something was written", #call);                                       \
    } while (0)
/* The same with a change to a record, which is undone. */
#define CHANGED(record, change, call, status)                                                                          \
    do {                                                                                                               \
        const std::remove_reference<decltype(record)>::type kept = record;                                             \
        change;                                                                                                        \
        REFUSED(call, status);                                                                                         \
        record = kept;                                                                                                 \
    } while (0)
    memset(&how, 0, sizeof how);
    REFUSED(mixprec_cuda_convert(NULL, MIXPREC_F16, x, MIXPREC_F32, 50, NULL), MIXPREC_ERR_NULL);
    REFUSED(mixprec_cuda_convert(y, MIXPREC_F16, NULL, MIXPREC_F32, 50, NULL), MIXPREC_ERR_NULL);
    REFUSED(mixprec_cuda_convert(y, MIXPREC_NONE, x, MIXPREC_F32, 50, NULL), MIXPREC_ERR_DTYPE);
    REFUSED(mixprec_cuda_convert(y, MIXPREC_F16, x, (mixprec_dtype)MIXPREC_DTYPE_COUNT, 50, NULL), MIXPREC_ERR_DTYPE);
    REFUSED(mixprec_cuda_convert(y, MIXPREC_F16, x, MIXPREC_F32, SIZE_MAX, NULL), MIXPREC_ERR_SIZE);
    REFUSED(mixprec_cuda_convert(x, MIXPREC_F16, x, MIXPREC_F32, 50, NULL), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_cuda_convert(x + 1, MIXPREC_F32, x, MIXPREC_F32, 50, NULL), MIXPREC_ERR_OVERLAP);
    how.round = (mixprec_round)6;
    REFUSED(mixprec_cuda_convert_ex(y, MIXPREC_F16, x, MIXPREC_F32, 50, &how, NULL), MIXPREC_ERR_ROUND);
    how.round = MIXPREC_ROUND_UP, how.overflow = (mixprec_overflow)3;
    REFUSED(mixprec_cuda_convert_ex(y, MIXPREC_F16, x, MIXPREC_F32, 50, &how, NULL), MIXPREC_ERR_OVERFLOW);
    how.overflow = MIXPREC_OVERFLOW_IEEE, how.scale = -1;
    REFUSED(mixprec_cuda_convert_ex(y, MIXPREC_F16, x, MIXPREC_F32, 50, &how, NULL), MIXPREC_ERR_SCALE);
    how.scale = 0, how.isa = MIXPREC_ISA_C;
    REFUSED(mixprec_cuda_convert_ex(y, MIXPREC_F16, x, MIXPREC_F32, 50, &how, NULL), MIXPREC_ERR_ISA);
    REFUSED(mixprec_cuda_convert(NULL, MIXPREC_F16, NULL, MIXPREC_F32, 0, NULL), MIXPREC_OK);

    REFUSED(mixprec_cuda_convert_list(NULL, 1, MIXPREC_F16, MIXPREC_F32, MIXPREC_OVERFLOW_IEEE, NULL),
            MIXPREC_ERR_NULL);
    REFUSED(mixprec_cuda_convert_list(&one, 1, MIXPREC_F64, MIXPREC_F32, MIXPREC_OVERFLOW_IEEE, NULL),
            MIXPREC_ERR_DTYPE);
    REFUSED(mixprec_cuda_convert_list(&one, 1, MIXPREC_F16, MIXPREC_I8, MIXPREC_OVERFLOW_IEEE, NULL),
            MIXPREC_ERR_DTYPE);
    REFUSED(mixprec_cuda_convert_list(&one, 1, MIXPREC_F16, MIXPREC_F32, (mixprec_overflow)3, NULL),
            MIXPREC_ERR_OVERFLOW);
    bad = one, bad.dst = NULL;
    REFUSED(mixprec_cuda_convert_list(&bad, 1, MIXPREC_F16, MIXPREC_F32, MIXPREC_OVERFLOW_IEEE, NULL),
            MIXPREC_ERR_NULL);
    bad = one, bad.n = SIZE_MAX / 2;
    REFUSED(mixprec_cuda_convert_list(&bad, 1, MIXPREC_F16, MIXPREC_F32, MIXPREC_OVERFLOW_IEEE, NULL),
            MIXPREC_ERR_SIZE);
    bad = one, bad.dst = x + 1;
    REFUSED(mixprec_cuda_convert_list(&bad, 1, MIXPREC_F32, MIXPREC_F32, MIXPREC_OVERFLOW_IEEE, NULL),
            MIXPREC_ERR_OVERLAP);
    mixprec_cuda_transposed turned[2] = {{NULL, x, 5, 5, y, NULL}, {NULL, x, 5, 5, y, NULL}};
#define TURN(change, status) /* the first of the list is good */                                                       \
    CHANGED(turned[1], change,                                                                                         \
            mixprec_cuda_convert_transpose(turned, 2, MIXPREC_F32, MIXPREC_F32, MIXPREC_OVERFLOW_IEEE, NULL), status)
    TURN(turned[1].transposed = NULL, MIXPREC_ERR_NULL);
    TURN(turned[1].src = NULL, MIXPREC_ERR_NULL);
    TURN(turned[1].transposed = x, MIXPREC_ERR_OVERLAP);
    TURN(turned[1].dst = y + 10, MIXPREC_ERR_OVERLAP);
    TURN(turned[1].dst = x, MIXPREC_ERR_OVERLAP);
    TURN((turned[1].rows = turned[1].columns = SIZE_MAX / 2), MIXPREC_ERR_SIZE);
    TURN((turned[1].rows = (size_t)1 << 38, turned[1].columns = 1), MIXPREC_ERR_SIZE); /* too many tiles */
    REFUSED(mixprec_cuda_convert_transpose(NULL, 1, MIXPREC_F16, MIXPREC_F32, MIXPREC_OVERFLOW_IEEE, NULL),
            MIXPREC_ERR_NULL);
    REFUSED(mixprec_cuda_convert_transpose(NULL, 0, MIXPREC_F16, MIXPREC_F32, MIXPREC_OVERFLOW_IEEE, NULL), MIXPREC_OK);
    REFUSED(mixprec_cuda_convert_transpose(turned, 1, MIXPREC_I8, MIXPREC_F32, MIXPREC_OVERFLOW_IEEE, NULL),
            MIXPREC_ERR_DTYPE);
    REFUSED(mixprec_cuda_convert_transpose(turned, 1, MIXPREC_F16, MIXPREC_F64, MIXPREC_OVERFLOW_IEEE, NULL),
            MIXPREC_ERR_DTYPE);
    REFUSED(mixprec_cuda_convert_transpose(turned, 1, MIXPREC_F16, MIXPREC_F32, (mixprec_overflow)9, NULL),
            MIXPREC_ERR_OVERFLOW);

    memset(&d, 0, sizeof d);
    d.m = 8, d.n = 8, d.k = 8, d.a = x, d.b = y, d.c = z;
    d.a_type = d.b_type = MIXPREC_BF16, d.c_type = MIXPREC_F32;
#define GEMM(change, status)                                                                                           \
    CHANGED(d, options = mixprec_cuda_gemm_options(); change, mixprec_cuda_gemm_ex(&d, &options, NULL), status)
    REFUSED(mixprec_cuda_gemm_ex(NULL, NULL, NULL), MIXPREC_ERR_NULL);
    GEMM(d.a = NULL, MIXPREC_ERR_NULL);
    GEMM(d.b = NULL, MIXPREC_ERR_NULL);
    GEMM(d.c = NULL, MIXPREC_ERR_NULL);
#if HAVE_ENVIRONMENT
    { /* a subnormal alpha is none of 0, whatever the environment does to it: A is read */
        const environment before = get_environment();
        double alpha = 1e-39;
        for (size_t i = 0; i < sizeof environments / sizeof *environments; i++) {
            set_environment(environments[i]);
            const mixprec_status got =
                mixprec_cuda_gemm(MIXPREC_NO_TRANS, MIXPREC_NO_TRANS, 8, 8, 8, 1e-39f, NULL, MIXPREC_BF16, 8, y,
                                  MIXPREC_BF16, 8, 0, z, MIXPREC_F32, 8, NULL);
            d.a = NULL, d.alpha = &alpha;
            const mixprec_status got_ex = mixprec_cuda_gemm_ex(&d, NULL, NULL);
            d.a = x, d.alpha = NULL;
            set_environment(before);
            CHECK(got == MIXPREC_ERR_NULL && got_ex == MIXPREC_ERR_NULL, "environment %zu: %s, %s", i,
                  mixprec_status_string(got), mixprec_status_string(got_ex));
        }
    }
#endif
    GEMM(d.a_type = MIXPREC_F64, MIXPREC_ERR_DTYPE);
    GEMM(d.b_type = MIXPREC_I8, MIXPREC_ERR_DTYPE);
    GEMM(d.c_type = MIXPREC_I8, MIXPREC_ERR_DTYPE);
    GEMM(d.bias_type = MIXPREC_F64, MIXPREC_ERR_DTYPE); /* as the CPU, bias or not */
    GEMM(d.trans_a = (mixprec_transpose)2, MIXPREC_ERR_TRANSPOSE);
    GEMM(d.trans_b = (mixprec_transpose)2, MIXPREC_ERR_TRANSPOSE);
    GEMM(d.round = (mixprec_round)6, MIXPREC_ERR_ROUND);
    GEMM(d.overflow = (mixprec_overflow)3, MIXPREC_ERR_OVERFLOW);
    GEMM(d.activation = (mixprec_activation)6, MIXPREC_ERR_ACTIVATION);
    GEMM(d.isa = MIXPREC_ISA_C, MIXPREC_ERR_ISA);
    GEMM(options.path = (mixprec_cuda_path)5, MIXPREC_ERR_ISA);
    GEMM((d.a_type = MIXPREC_F16, options.path = MIXPREC_CUDA_PATH_MMA), MIXPREC_ERR_ISA);
    GEMM((d.a_type = MIXPREC_F16, options.path = MIXPREC_CUDA_PATH_WGMMA), MIXPREC_ERR_ISA);
#ifndef TEST_ON_DEVICE
    pretend_device(90, 4, true);
    GEMM((d.a_type = d.b_type = MIXPREC_I8, d.trans_b = MIXPREC_NO_TRANS, options.path = MIXPREC_CUDA_PATH_WGMMA),
         MIXPREC_ERR_ISA);
    GEMM((d.a_type = d.b_type = MIXPREC_F32, d.native = 1, options.path = MIXPREC_CUDA_PATH_WGMMA), MIXPREC_ERR_ISA);
    pretend_device(90, 4);
    GEMM((d.a_type = d.b_type = MIXPREC_F16, options.path = MIXPREC_CUDA_PATH_WGMMA), MIXPREC_ERR_DEVICE);
#endif
    GEMM((d.scale_a.values = x, d.scale_a.block_columns = 4, options.path = MIXPREC_CUDA_PATH_WMMA), MIXPREC_ERR_ISA);
    GEMM(d.packed_size = 1, MIXPREC_ERR_PACKED);
    GEMM(d.triangle = (mixprec_triangle)3, MIXPREC_ERR_TRIANGLE);
    GEMM((d.triangle = MIXPREC_LOWER, d.n = 7), MIXPREC_ERR_TRIANGLE);
    GEMM((d.triangle = MIXPREC_LOWER, d.row_end = 7), MIXPREC_ERR_TRIANGLE);
    GEMM((d.row_begin = 3, d.row_end = 2), MIXPREC_ERR_RANGE);
    GEMM(d.row_end = 9, MIXPREC_ERR_RANGE);
    GEMM(d.lda = 7, MIXPREC_ERR_LEADING_DIMENSION);
    GEMM(d.ldb = 7, MIXPREC_ERR_LEADING_DIMENSION);
    GEMM(d.ldc = 7, MIXPREC_ERR_LEADING_DIMENSION);
    GEMM((d.scale_a.values = x, d.scale_a.block_columns = 4, d.scale_a.ld = 1), MIXPREC_ERR_LEADING_DIMENSION);
    GEMM(d.m = SIZE_MAX / 4, MIXPREC_ERR_SIZE);
    GEMM((d.batch = SIZE_MAX / 4, d.stride_a = 64), MIXPREC_ERR_SIZE);
    GEMM(d.a = z, MIXPREC_ERR_OVERLAP);
    GEMM(d.b = z + 4, MIXPREC_ERR_OVERLAP);
    GEMM(d.bias = z + 63, MIXPREC_ERR_OVERLAP);
    GEMM(d.scale_a.values = z, MIXPREC_ERR_OVERLAP);
    GEMM((d.scale_b.values = z - 7, d.scale_b.block_columns = 1), MIXPREC_ERR_OVERLAP);
    GEMM((d.row_begin = d.row_end = 2, d.c = NULL), MIXPREC_ERR_NULL); /* no rows, but the pointers are looked at */
    GEMM((d.row_begin = d.row_end = 2, d.a = z), MIXPREC_ERR_OVERLAP);
    GEMM((d.row_begin = d.row_end = 2, d.k = 0, d.scale_a.values = z), MIXPREC_OK); /* of nothing */
    GEMM(options.alpha = z + 9, MIXPREC_ERR_OVERLAP);
    GEMM(options.beta = z, MIXPREC_ERR_OVERLAP);
    GEMM(d.a_array = (const void *const *)(void *)(z + 2), MIXPREC_ERR_OVERLAP);
    GEMM(d.b_array = (const void *const *)(void *)z, MIXPREC_ERR_OVERLAP);
    GEMM((d.batch = 2, d.stride_c = 63), MIXPREC_ERR_OVERLAP);
    GEMM((d.batch = 2, d.stride_a = 1024, d.stride_c = 64), MIXPREC_ERR_OVERLAP); /* the second A is C */
    GEMM((d.k = 400, d.a_type = d.b_type = MIXPREC_E4M3, d.lda = d.ldb = 0, options.split_k = 2), MIXPREC_ERR_OVERLAP);
    GEMM((d.c = (void *)0x10000000, d.k = 400, d.a = x, d.b = (void *)0x20000000, options.split_k = 2),
         MIXPREC_ERR_WORKSPACE);
    GEMM((d.c = (void *)0x10000000, d.k = 400, d.b = (void *)0x20000000, options.split_k = 2, d.workspace = block + 8,
          d.workspace_size = 1 << 20),
         MIXPREC_ERR_WORKSPACE);
    /* of two the one that the CPU finds first */
    GEMM((d.row_end = 9, d.triangle = (mixprec_triangle)3, d.isa = MIXPREC_ISA_C), MIXPREC_ERR_RANGE);
    GEMM((d.triangle = (mixprec_triangle)3, d.isa = MIXPREC_ISA_C, d.packed_size = 1), MIXPREC_ERR_TRIANGLE);
    GEMM((d.a_type = d.b_type = MIXPREC_I8, d.k = 131072, d.lda = d.ldb = 0, d.trans_b = MIXPREC_TRANS,
          options.path = MIXPREC_CUDA_PATH_MMA),
         MIXPREC_ERR_ISA);                                                /* int32 would overflow */
    GEMM((d.batch = 3, d.ldc = 16, d.stride_c = 8), MIXPREC_ERR_OVERLAP); /* the third is in the first one's rows */
    GEMM(d.m = 0, MIXPREC_OK);
#ifdef TEST_ON_DEVICE
    const int last = MIXPREC_CUDA_PATH_EXACT; /* it may be too old for the others */
#else
    const int last = MIXPREC_CUDA_PATH_MMA;
#endif
    for (int wgmma = 0; wgmma < 2; wgmma++) { /* without columns there are no tiles, however many rows */
#ifndef TEST_ON_DEVICE
        pretend_device(90, 4, wgmma != 0);
#endif
        for (int path = MIXPREC_CUDA_PATH_AUTO; path <= last; path++) {
#define VAST(rows, columns, depth, status)                                                                             \
    GEMM((d.m = rows, d.n = columns, d.k = depth, options.path = (mixprec_cuda_path)path), status)
            VAST((size_t)1 << 40, 0, 8, MIXPREC_OK);
            VAST(SIZE_MAX, 0, 0, MIXPREC_OK);
            VAST(0, SIZE_MAX, 0, MIXPREC_OK);
            VAST((size_t)1 << 40, 1, 8, MIXPREC_ERR_SIZE);
            VAST(1, (size_t)1 << 40, 8, MIXPREC_ERR_SIZE);
#undef VAST
        }
    }
#ifndef TEST_ON_DEVICE
    pretend_device(90, 4);
#endif
    CHANGED(d, (d.m = (size_t)1 << 40, d.n = 0), mixprec_gemm_ex(&d), MIXPREC_OK); /* the CPU says so, too */
    CHANGED(d, (d.m = (size_t)1 << 40, d.n = 0), mixprec_cuda_gemm_workspace(&d, NULL, &size), MIXPREC_OK);
    CHECK(size == 0, "%zu bytes of workspace for nothing", size);
    REFUSED(mixprec_cuda_gemm_workspace(&d, NULL, NULL), MIXPREC_ERR_NULL);
    REFUSED(mixprec_cuda_gemm_workspace(NULL, NULL, &size), MIXPREC_ERR_NULL);
    REFUSED(mixprec_cuda_gemm(MIXPREC_NO_TRANS, MIXPREC_NO_TRANS, 8, 8, 8, 1, x, MIXPREC_F16, 0, y, MIXPREC_F16, 8, 0,
                              z, MIXPREC_F32, 8, NULL),
            MIXPREC_ERR_LEADING_DIMENSION);
    REFUSED(mixprec_cuda_gemm(MIXPREC_NO_TRANS, MIXPREC_NO_TRANS, 8, 8, 8, 1, x, MIXPREC_F64, 0, y, MIXPREC_F16, 8, 0,
                              z, MIXPREC_F32, 8, NULL),
            MIXPREC_ERR_DTYPE);

    REFUSED(mixprec_cuda_scaler_unscale(NULL, &one, 1, MIXPREC_F32, MIXPREC_F32, NULL), MIXPREC_ERR_NULL);
    REFUSED(mixprec_cuda_scaler_unscale(scaler, &one, 1, MIXPREC_F64, MIXPREC_F32, NULL), MIXPREC_ERR_DTYPE);
    REFUSED(mixprec_cuda_scaler_unscale(scaler, &one, 1, MIXPREC_F32, MIXPREC_NONE, NULL), MIXPREC_ERR_DTYPE);
    REFUSED(mixprec_cuda_scaler_unscale(scaler, &bad, 1, MIXPREC_F32, MIXPREC_F32, NULL), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_cuda_scaler_update(NULL, NULL, NULL), MIXPREC_ERR_NULL);
    REFUSED(mixprec_cuda_norm2(NULL, &one, 1, MIXPREC_F32, z, 800, NULL), MIXPREC_ERR_NULL);
    REFUSED(mixprec_cuda_norm2(x, &one, 1, MIXPREC_F64, z, 800, NULL), MIXPREC_ERR_DTYPE);
    REFUSED(mixprec_cuda_norm2(x + 1000, &one, 1, MIXPREC_F32, z, 7, NULL), MIXPREC_ERR_WORKSPACE);
    REFUSED(mixprec_cuda_norm2(x + 1000, &one, 1, MIXPREC_F32, z + 1, 800, NULL), MIXPREC_ERR_WORKSPACE);
    REFUSED(mixprec_cuda_norm2(x + 1000, &one, 1, MIXPREC_F32, NULL, 800, NULL), MIXPREC_ERR_WORKSPACE);
    REFUSED(mixprec_cuda_clip(&one, 1, MIXPREC_F32, NULL, 1, NULL), MIXPREC_ERR_NULL);
    REFUSED(mixprec_cuda_clip(&one, 1, MIXPREC_NONE, z, 1, NULL), MIXPREC_ERR_DTYPE);
    REFUSED(mixprec_cuda_clip(&one, 1, MIXPREC_F32, z, 0, NULL), MIXPREC_ERR_SCALE);
    REFUSED(mixprec_cuda_clip(&one, 1, MIXPREC_F32, z, NAN, NULL), MIXPREC_ERR_SCALE);
    REFUSED(mixprec_cuda_clip(&one, 1, MIXPREC_F32, z, HUGE_VALF, NULL), MIXPREC_ERR_SCALE);
    REFUSED(mixprec_cuda_clip(&one, 1, MIXPREC_F32, z, -1, NULL), MIXPREC_ERR_SCALE);
    REFUSED(mixprec_cuda_amax(NULL, &one, 1, MIXPREC_F32, NULL), MIXPREC_ERR_NULL);
    REFUSED(mixprec_cuda_amax(z, &one, 1, MIXPREC_I8, NULL), MIXPREC_ERR_DTYPE);
    REFUSED(mixprec_cuda_scale_of_amax(NULL, NULL, x, 4, MIXPREC_E4M3, 0, NULL), MIXPREC_ERR_NULL);
    REFUSED(mixprec_cuda_scale_of_amax(y, NULL, x, 4, MIXPREC_F16, 0, NULL), MIXPREC_ERR_DTYPE);
    REFUSED(mixprec_cuda_scale_of_amax(y, NULL, x, SIZE_MAX, MIXPREC_E4M3, 0, NULL), MIXPREC_ERR_SIZE);
    REFUSED(mixprec_cuda_quantize(&quantized, 1, MIXPREC_F16, MIXPREC_F32, NULL), MIXPREC_ERR_DTYPE);
#define QUANTIZE(change, status)                                                                                       \
    CHANGED(quantized, change, mixprec_cuda_quantize(&quantized, 1, MIXPREC_E4M3, MIXPREC_F32, NULL), status)
    QUANTIZE((quantized.round = (mixprec_round)6, quantized.dst = NULL), MIXPREC_ERR_ROUND);
    QUANTIZE(quantized.scale = NULL, MIXPREC_ERR_NULL);
    QUANTIZE(quantized.dst = x, MIXPREC_ERR_OVERLAP);
    QUANTIZE(quantized.amax = x + 49, MIXPREC_ERR_OVERLAP);
    QUANTIZE(quantized.amax = z, MIXPREC_ERR_OVERLAP);    /* the scale, which other blocks still read */
    QUANTIZE(quantized.inverse = z, MIXPREC_ERR_OVERLAP); /* likewise */
    QUANTIZE(quantized.inverse = y, MIXPREC_ERR_OVERLAP);
    QUANTIZE((quantized.inverse = z + 1, quantized.amax = z + 1), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_cuda_quantize(NULL, 1, MIXPREC_E4M3, MIXPREC_F32, NULL), MIXPREC_ERR_NULL);
    /* a value of the call within what it reads */
    REFUSED(mixprec_cuda_amax(x + 3, &one, 1, MIXPREC_F32, NULL), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_cuda_norm2(x + 3, &one, 1, MIXPREC_F32, z, 800, NULL), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_cuda_norm2(z, &one, 1, MIXPREC_F32, x + 48, 800, NULL), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_cuda_norm2(z, &one, 1, MIXPREC_F32, z, 800, NULL), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_cuda_clip(&one, 1, MIXPREC_F32, y + 49, 1, NULL), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_cuda_scaler_unscale((mixprec_scaler *)(void *)y, &one, 1, MIXPREC_F32, MIXPREC_F32, NULL),
            MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_cuda_scaler_update(scaler, (int32_t *)(void *)scaler, NULL), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_cuda_scale_of_amax(y, x + 3, x, 4, MIXPREC_E4M3, 0, NULL), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_cuda_scale_of_amax(x + 1, NULL, x, 4, MIXPREC_E4M3, 0, NULL), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_cuda_delayed_scaling_update((mixprec_delayed_scaling *)(void *)y, y + 2, 1, NULL),
            MIXPREC_ERR_OVERLAP);
    mixprec_cuda_quantized_blocks blocks[2] = {{y, x, 4, 4, z}, {y, x, 4, 4, z}};
#define BLOCKS(change, status)                                                                                         \
    CHANGED(blocks[1], change, mixprec_cuda_quantize_blocks(blocks, 2, MIXPREC_E4M3, MIXPREC_E5M2, 1, 0, NULL), status)
    BLOCKS(blocks[1].dst = NULL, MIXPREC_ERR_NULL);
    BLOCKS(blocks[1].src = NULL, MIXPREC_ERR_NULL);
    BLOCKS(blocks[1].inverse = NULL, MIXPREC_ERR_NULL);
    BLOCKS(blocks[1].dst = x, MIXPREC_ERR_OVERLAP);
    BLOCKS(blocks[1].inverse = x + 3, MIXPREC_ERR_OVERLAP);
    BLOCKS(blocks[1].inverse = y - 3, MIXPREC_ERR_OVERLAP);
    BLOCKS(blocks[1].rows = SIZE_MAX / 2, MIXPREC_ERR_SIZE);
    BLOCKS((blocks[1].rows = 1, blocks[1].columns = (size_t)1 << 38, blocks[1].src = (void *)((uintptr_t)1 << 50)),
           MIXPREC_ERR_SIZE); /* too many tiles */
    REFUSED(mixprec_cuda_quantize_blocks(NULL, 1, MIXPREC_E4M3, MIXPREC_F32, 1, 0, NULL), MIXPREC_ERR_NULL);
    REFUSED(mixprec_cuda_quantize_blocks(NULL, 0, MIXPREC_E4M3, MIXPREC_F32, 128, 0, NULL), MIXPREC_OK);
    REFUSED(mixprec_cuda_quantize_blocks(blocks, 1, MIXPREC_E4M3, MIXPREC_F32, 2, 0, NULL), MIXPREC_ERR_RANGE);
    REFUSED(mixprec_cuda_quantize_blocks(blocks, 1, MIXPREC_F32, MIXPREC_F32, 1, 0, NULL), MIXPREC_ERR_DTYPE);
    REFUSED(mixprec_cuda_quantize_blocks(blocks, 1, MIXPREC_E4M3, MIXPREC_F64, 1, 0, NULL), MIXPREC_ERR_DTYPE);

    REFUSED(mixprec_cuda_clip_coefficient(x, y, NULL, 1, scaler, NULL), MIXPREC_ERR_NULL);
    REFUSED(mixprec_cuda_clip_coefficient(x, y, x, 1, scaler, NULL), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_cuda_clip_coefficient(x, y, y, 1, scaler, NULL), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_cuda_clip_coefficient(x, x, y, 1, scaler, NULL), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_cuda_clip_coefficient(x, &scaler->scale, y, 1, scaler, NULL), MIXPREC_ERR_OVERLAP);
    REFUSED(mixprec_cuda_delayed_scaling_update(NULL, x, 1, NULL), MIXPREC_ERR_NULL);
    REFUSED(mixprec_cuda_delayed_scaling_update((mixprec_delayed_scaling *)(void *)y, NULL, 1, NULL), MIXPREC_ERR_NULL);
    REFUSED(mixprec_cuda_delayed_scaling_update((mixprec_delayed_scaling *)(void *)y, x, SIZE_MAX, NULL),
            MIXPREC_ERR_SIZE);
    REFUSED(mixprec_cuda_delayed_scaling_update(NULL, NULL, 0, NULL), MIXPREC_OK);

    memset(&parameter, 0, sizeof parameter);
    memset(&step, 0, sizeof step);
    mixprec_adam_init(&adam);
    mixprec_sgd_init(&sgd);
    sgd.momentum = 0.9;
    parameter.n = 50, parameter.grad = x, parameter.grad_type = MIXPREC_F32, parameter.master = y;
    parameter.moment1 = z, parameter.moment2 = z + 100;
#define STEP(change, status)                                                                                           \
    do {                                                                                                               \
        float inverse = 1, clip = 1;                                                                                   \
        CHANGED(parameter, change, mixprec_cuda_adam_step(&adam, &parameter, 1, inverse, clip, 0, state, &step, NULL), \
                status);                                                                                               \
        CHANGED(parameter, change, mixprec_cuda_sgd_step(&sgd, &parameter, 1, inverse, clip, 0, state, NULL, NULL),    \
                status);                                                                                               \
        (void)inverse, (void)clip;                                                                                     \
    } while (0)
    STEP(parameter.grad_type = MIXPREC_F64, MIXPREC_ERR_DTYPE);
    STEP((parameter.model = x + 960, parameter.model_type = MIXPREC_NONE), MIXPREC_ERR_DTYPE);
    STEP(parameter.round = (mixprec_round)6, MIXPREC_ERR_ROUND);
    STEP(parameter.overflow = (mixprec_overflow)3, MIXPREC_ERR_OVERFLOW);
    STEP(parameter.isa = MIXPREC_ISA_C, MIXPREC_ERR_ISA);
    STEP((parameter.compensation = x + 960), MIXPREC_ERR_OPTIMIZER);
    STEP((parameter.master = NULL, parameter.model = x + 960, parameter.model_type = MIXPREC_BF16,
          parameter.compensation = x + 990, parameter.round = MIXPREC_ROUND_STOCHASTIC),
         MIXPREC_ERR_OPTIMIZER);
    STEP(parameter.grad = NULL, MIXPREC_ERR_NULL);
    STEP(parameter.master = NULL, MIXPREC_ERR_NULL);
    STEP(parameter.moment1 = NULL, MIXPREC_ERR_NULL);
    STEP(inverse = 0, MIXPREC_ERR_SCALE);
    STEP(inverse = HUGE_VALF, MIXPREC_ERR_SCALE);
    STEP(clip = -1, MIXPREC_ERR_SCALE);
    STEP(clip = NAN, MIXPREC_ERR_SCALE);
    STEP((parameter.n = SIZE_MAX, clip = -1), MIXPREC_ERR_SCALE);
    STEP(parameter.n = SIZE_MAX, MIXPREC_ERR_SIZE);
    STEP((parameter.model = y, parameter.model_type = MIXPREC_F16), MIXPREC_ERR_OVERLAP);
    STEP(parameter.moment1 = x + 49, MIXPREC_ERR_OVERLAP);
    STEP(parameter.moment1 = (float *)(void *)state - 49, MIXPREC_ERR_OVERLAP);
    STEP(parameter.grad = (char *)state + sizeof *state - 4, MIXPREC_ERR_OVERLAP);
#undef STEP
#define ADAM(field, value)                                                                                             \
    CHANGED(adam, adam.field = value, mixprec_cuda_adam_step(&adam, &parameter, 1, 1, 1, 0, state, NULL, NULL),        \
            MIXPREC_ERR_OPTIMIZER)
    ADAM(learning_rate, (double)NAN);
    ADAM(beta1, 1);
    ADAM(beta2, (double)NAN);
    ADAM(epsilon, -1);
    ADAM(weight_decay, HUGE_VAL);
#undef ADAM
#define SGD(field, value)                                                                                              \
    CHANGED(sgd, sgd.field = value, mixprec_cuda_sgd_step(&sgd, &parameter, 1, 1, 1, 0, state, NULL, NULL),            \
            MIXPREC_ERR_OPTIMIZER)
    SGD(learning_rate, -1);
    SGD(momentum, (double)NAN);
    SGD(dampening, -1);
    SGD(weight_decay, -1);
    SGD(momentum, 0; sgd.nesterov = 1);
    SGD(dampening, 0.1; sgd.nesterov = 1);
#undef SGD
    REFUSED(mixprec_cuda_adam_step(NULL, &parameter, 1, 1, 1, 0, state, NULL, NULL), MIXPREC_ERR_NULL);
    REFUSED(mixprec_cuda_sgd_step(NULL, &parameter, 1, 1, 1, 0, state, NULL, NULL), MIXPREC_ERR_NULL);
    REFUSED(mixprec_cuda_adam_step(&adam, NULL, 1, 1, 1, 0, state, NULL, NULL), MIXPREC_ERR_NULL);
    REFUSED(mixprec_cuda_sgd_step(&sgd, NULL, 1, 1, 1, 0, state, NULL, NULL), MIXPREC_ERR_NULL);
    REFUSED(mixprec_cuda_sgd_step(&sgd, &parameter, 1, 1, 1, 0, NULL, NULL, NULL), MIXPREC_ERR_NULL);
    /* a list that is not there comes before the hyperparameters, as on the CPU */
    CHANGED(adam, adam.beta1 = 1, mixprec_cuda_adam_step(&adam, NULL, 1, 1, 1, 0, state, NULL, NULL), MIXPREC_ERR_NULL);
    CHANGED(adam, adam.beta1 = 1, mixprec_cuda_adam_step(&adam, NULL, 0, 1, 1, 0, state, NULL, NULL),
            MIXPREC_ERR_OPTIMIZER);
    CHANGED(sgd, sgd.momentum = -1, mixprec_cuda_sgd_step(&sgd, NULL, 1, 1, 1, 0, state, NULL, NULL), MIXPREC_ERR_NULL);
    CHANGED(sgd, sgd.momentum = -1, mixprec_cuda_sgd_step(&sgd, NULL, 0, 1, 1, 0, state, NULL, NULL),
            MIXPREC_ERR_OPTIMIZER);
    parameter.moment2 = NULL;
    REFUSED(mixprec_cuda_adam_step(&adam, &parameter, 1, 1, 1, 0, state, NULL, NULL), MIXPREC_ERR_NULL);
    parameter.moment2 = z + 100;
    REFUSED(mixprec_cuda_adam_step(&adam, &parameter, 1, 0, -1, 1, state, NULL, NULL), MIXPREC_OK); /* found_inf */
    parameter.grad_type = MIXPREC_NONE;
    REFUSED(mixprec_cuda_adam_step(&adam, &parameter, 1, 1, 1, 1, state, NULL, NULL), MIXPREC_ERR_DTYPE);
#ifndef TEST_ON_DEVICE
    /* devices that cannot: too old; new, but the program holds code for an old one, in which a kernel is empty */
    emulation_device.major = 7, emulation_device.minor = 0;
    REFUSED(mixprec_cuda_gemm_ex(&d, NULL, NULL), MIXPREC_ERR_DEVICE);
    REFUSED(mixprec_cuda_convert(y, MIXPREC_F16, x, MIXPREC_F32, 50, NULL), MIXPREC_ERR_DEVICE);
    REFUSED(mixprec_cuda_check(), MIXPREC_ERR_DEVICE);
    CHECK(strstr(mixprec_cuda_last_error(), "no kernel image"), "last error: %s", mixprec_cuda_last_error());
    pretend_device(90, 4);
    emulation_device.compiled = 75;
    GEMM(options.path = MIXPREC_CUDA_PATH_MMA, MIXPREC_ERR_DEVICE);
    GEMM(options.path = MIXPREC_CUDA_PATH_WMMA, MIXPREC_ERR_DEVICE);
    emulation_device.compiled = 70;
    REFUSED(mixprec_cuda_check(), MIXPREC_ERR_DEVICE);
    pretend_device(90, 4);
    emulation_device.error = cudaErrorNoDevice;
    REFUSED(mixprec_cuda_scaler_update(scaler, NULL, NULL), MIXPREC_ERR_DEVICE);
    emulation_device.error = cudaErrorInvalidValue;
    REFUSED(mixprec_cuda_adam_step(&adam, &parameter, 0, 1, 1, 0, state, NULL, NULL), MIXPREC_ERR_CUDA);
    emulation_device.error = cudaErrorUnsupportedPtxVersion;
    REFUSED(mixprec_cuda_check(), MIXPREC_ERR_DEVICE);
    emulation_device.error = cudaSuccess;
    CHECK(mixprec_cuda_check() == MIXPREC_OK, "the device is there again");
    /* Nothing is left for the caller's own check to find, but what was there before a call that asked CUDA nothing. */
    CHECK(cudaGetLastError() == cudaSuccess, "a refused call's error is pending");
    emulation_last_error = cudaErrorInvalidValue;
    REFUSED(mixprec_cuda_convert((char *)z + 1, MIXPREC_F16, x, MIXPREC_F32, 50, NULL), MIXPREC_ERR_CUDA);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue, "the caller's own error is gone");
#endif
    /* arrays that are not aligned to their elements; a byte always is */
    char *odd = (char *)z + 1;
    mixprec_cuda_tensor odd_dst = {odd, x, 50}, odd_src = {y, odd, 50}, odd_empty = {odd, odd, 0};
    mixprec_cuda_transposed odd_turned[3] = {
        {odd, x, 5, 5, y, NULL}, {NULL, odd, 5, 5, y, NULL}, {NULL, x, 5, 5, odd, NULL}};
    mixprec_cuda_quantized_blocks odd_blocks = {odd, odd + 400, 4, 4, z - 8};
#define MISALIGNED(call)                                                                                               \
    do {                                                                                                               \
        REFUSED(call, MIXPREC_ERR_CUDA);                                                                               \
        CHECK(strstr(mixprec_cuda_last_error(), "misaligned"), "last error: %s", mixprec_cuda_last_error());           \
    } while (0)
    MISALIGNED(mixprec_cuda_convert(odd, MIXPREC_F16, x, MIXPREC_F32, 50, NULL));
    MISALIGNED(mixprec_cuda_convert(y, MIXPREC_F16, odd, MIXPREC_BF16, 50, NULL));
    MISALIGNED(mixprec_cuda_convert(y + 1, MIXPREC_F64, x, MIXPREC_E4M3, 50, NULL)); /* of f32 it would be */
    MISALIGNED(mixprec_cuda_convert_list(&odd_dst, 1, MIXPREC_F16, MIXPREC_F32, MIXPREC_OVERFLOW_IEEE, NULL));
    MISALIGNED(mixprec_cuda_convert_list(&odd_src, 1, MIXPREC_E4M3, MIXPREC_F32, MIXPREC_OVERFLOW_IEEE, NULL));
    REFUSED(mixprec_cuda_convert_list(&odd_empty, 1, MIXPREC_F16, MIXPREC_F32, MIXPREC_OVERFLOW_IEEE, NULL),
            MIXPREC_OK);
    for (i = 0; i < 3; i++)
        MISALIGNED(
            mixprec_cuda_convert_transpose(odd_turned + i, 1, MIXPREC_F16, MIXPREC_F32, MIXPREC_OVERFLOW_IEEE, NULL));
    MISALIGNED(mixprec_cuda_quantize_blocks(&odd_blocks, 1, MIXPREC_E4M3, MIXPREC_F16, 1, 0, NULL));
    MISALIGNED(mixprec_cuda_scaler_unscale(scaler, &odd_dst, 1, MIXPREC_BF16, MIXPREC_F32, NULL));
    MISALIGNED(mixprec_cuda_norm2(x + 1000, &odd_src, 1, MIXPREC_F16, x, 800, NULL));
    MISALIGNED(mixprec_cuda_norm2((float *)(void *)odd, &one, 1, MIXPREC_F32, z + 2, 800, NULL));
    MISALIGNED(mixprec_cuda_amax((float *)(void *)odd, &one, 1, MIXPREC_F32, NULL));
    MISALIGNED(mixprec_cuda_clip(&one, 1, MIXPREC_F32, (float *)(void *)odd, 1, NULL));
    MISALIGNED(mixprec_cuda_clip_coefficient(NULL, (float *)(void *)odd, x, 1, NULL, NULL));
    MISALIGNED(mixprec_cuda_scaler_update(scaler, (int32_t *)(void *)odd, NULL));
    MISALIGNED(mixprec_cuda_scaler_update((mixprec_scaler *)(void *)(x + 801), NULL, NULL));
    MISALIGNED(mixprec_cuda_scale_of_amax(y, (float *)(void *)odd, x, 4, MIXPREC_E4M3, 0, NULL));
    MISALIGNED(mixprec_cuda_delayed_scaling_update((mixprec_delayed_scaling *)(void *)(y + 1), x, 1, NULL));
    QUANTIZE(quantized.scale = (float *)(void *)odd, MIXPREC_ERR_CUDA);
    QUANTIZE(quantized.step = (uint64_t *)(void *)(z + 1), MIXPREC_ERR_CUDA);
    GEMM(options.alpha = (float *)(void *)((char *)x + 2), MIXPREC_ERR_CUDA);
    GEMM(d.scale_a.values = (float *)(void *)((char *)x + 2), MIXPREC_ERR_CUDA);
    GEMM((d.batch = 2, d.a_array = (const void *const *)(void *)(x + 1)), MIXPREC_ERR_CUDA);
    GEMM(d.a = (char *)x + 1, MIXPREC_ERR_CUDA);
    GEMM(d.b = (char *)x + 1, MIXPREC_ERR_CUDA);
    GEMM(d.c = odd, MIXPREC_ERR_CUDA);
    GEMM((d.bias = (char *)x + 2), MIXPREC_ERR_CUDA);
    parameter.grad_type = MIXPREC_F16, parameter.grad = (char *)x + 1;
    MISALIGNED(mixprec_cuda_adam_step(&adam, &parameter, 1, 1, 1, 0, state, NULL, NULL));
    parameter.grad = x, parameter.model_type = MIXPREC_F16, parameter.model = (char *)x + 2901;
    MISALIGNED(mixprec_cuda_sgd_step(&sgd, &parameter, 1, 1, 1, 0, state, NULL, NULL));
#undef MISALIGNED
#undef GEMM
#undef QUANTIZE
#undef CHANGED
#undef REFUSED
    release(block);
    free(saved);
}

#ifndef TEST_ON_DEVICE
/* The emulation itself: without a barrier the poison must show. */
static void racy_kernel(float *out, int barrier) {
    float *shared = (float *)(void *)mixprec_cuda_shared_();
    shared[threadIdx.x] = (float)threadIdx.x;
    if (barrier)
        __syncthreads();
    out[threadIdx.x] = shared[(threadIdx.x + 32) % 128];
}
static void test_emulation(void) {
    float out[128];
    int barrier, i;
    for (barrier = 0; barrier < 2; barrier++) {
        long nan = 0;
        cudaLaunchConfig_t config = cudaLaunchConfig_t();
        config.gridDim = dim3(1), config.blockDim = dim3(128), config.dynamicSmemBytes = 512;
        CHECK(cudaLaunchKernelEx(&config, racy_kernel, out, barrier) == cudaSuccess, "launch");
        for (i = 0; i < 128; i++)
            nan += out[i] != out[i];
        CHECK(barrier ? nan == 0 : nan >= 32, "%ld NaN %s a barrier", nan, barrier ? "with" : "without");
    }
}
#endif

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
        {"cuda: scalar narrowing of f32", test_scalar_narrow},
        {"cuda: scalar encode, every format and mode", test_scalar_encode},
        {"cuda: scalar decode, every code", test_scalar_decode},
        {"cuda: scalar functions by name, random bits", test_scalar_names},
#ifndef TEST_ON_DEVICE
        {"cuda: pairs of fp8 to fp16", test_fp8_pairs},
#endif
        {"cuda: fragments of mma.sync, by CuTe's layouts", test_fragments},
        {"cuda: ldmatrix, by CuTe's layouts", test_ldmatrix},
        {"cuda: halves of cvt, cp.async", test_halves},
        {"cuda: convert, every pair of dtypes", test_convert},
        {"cuda: convert, every code", test_convert_every_code},
        {"cuda: convert, every float", test_convert_every_float},
        {"cuda: convert lists", test_convert_list},
        {"cuda: convert whole chunks and their edges", test_convert_chunks},
        {"cuda: convert and transpose", test_convert_transpose},
        {"cuda: GEMM, exact path", test_gemm_exact},
        {"cuda: GEMM, the CPU's bits", test_gemm_bits},
        {"cuda: GEMM, WMMA", test_gemm_wmma},
        {"cuda: GEMM, mma.sync, f16 and bf16", test_gemm_mma_16},
        {"cuda: GEMM, mma.sync, fp8 and int8", test_gemm_mma_8},
        {"cuda: GEMM, mma.sync, TF32", test_gemm_tf32},
        {"cuda: GEMM, wgmma", test_gemm_wgmma},
        {"cuda: GEMM, wgmma, tile after tile", test_gemm_wgmma_tiles},
#ifndef TEST_ON_DEVICE
        {"cuda: narrowing in 32 bits", test_code32},
#endif
        {"cuda: GEMM, every rounding mode of C", test_gemm_rounded},
        {"cuda: GEMM, k halved by clusters", test_gemm_halves},
#ifndef TEST_ON_DEVICE
        {"cuda: GEMM, kernels that begin early", test_gemm_early},
#endif
        {"cuda: GEMM, mma.sync, every layout", test_gemm_layouts},
        {"cuda: GEMM, the paths agree", test_gemm_paths},
        {"cuda: GEMM, NaN, Inf, subnormals, zero coefficients", test_gemm_special},
        {"cuda: GEMM, int8 sums are exact", test_gemm_int8},
        {"cuda: GEMM, arrays of pointers", test_gemm_arrays},
        {"cuda: GEMM, the short form and split k", test_gemm_short},
        {"cuda: GEMM, operands that are copied", test_gemm_copied},
        {"cuda: GEMM, A A^T that is copied", test_gemm_gram_copied},
        {"cuda: GEMM, activations", test_gemm_activations},
        {"cuda: GEMM, when copies pay", test_gemm_copies_pay},
        {"cuda: GEMM, room for copies that pay", test_gemm_room},
        {"cuda: GEMM, a vast batch", test_gemm_vast},
        {"cuda: GEMM, heads side by side", test_gemm_heads},
        {"cuda: GEMM, C in the gaps of a batch", test_gemm_gaps},
        {"cuda: GEMM, a workspace in the gaps of a batch", test_gemm_workspace_gaps},
        {"cuda: the loss scaler", test_scaler},
        {"cuda: norm, clip, amax", test_norm},
        {"cuda: clip coefficient, inverse scale", test_clip_coefficient},
        {"cuda: norm of more blocks than a launch has", test_norm_large},
        {"cuda: fp8 scales of TransformerEngine", test_fp8_scale},
        {"cuda: quantise to fp8", test_quantize},
        {"cuda: quantise to fp8 in blocks", test_quantize_blocks},
        {"cuda: delayed scaling", test_delayed_scaling},
        {"cuda: Adam, AdamW and SGD", test_optimizers},
#ifdef TEST_ON_DEVICE
        {"cuda: a step of training as a graph", test_graph},
#endif
#ifndef TEST_ON_DEVICE
        {"cuda: conversions of older devices", test_old_devices},
#endif
        {"cuda: every error status", test_statuses},
#ifndef TEST_ON_DEVICE
        {"cuda: the emulation shows a missing barrier", test_emulation},
#endif
    };
    size_t i;
    test_init(argc, argv);
#ifdef TEST_ON_DEVICE
    if (mixprec_cuda_check() != MIXPREC_OK) {
        test_skip("cuda: everything on a device", mixprec_cuda_last_error());
        return test_summary();
    }
#endif
    for (i = 0; i < sizeof tests / sizeof *tests; i++)
        if (test_begin(tests[i].name)) {
            tests[i].run();
            test_end();
        }
    return test_summary();
}
