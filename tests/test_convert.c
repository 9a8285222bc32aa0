/* The CONVERT room on every path that this CPU has: every float to the formats that GEMM takes and, on the best path
   alone, to most of the others; all pairs of types, all modes and policies, scaling, lengths, alignment, memory bounds,
   in place, the stochastic stream, its splits and its mean, the caller's floating-point environment; and mixprec_stats.
   Every float and the statistics are compared with oracle.h; the rest with mixprec_encode, mixprec_decode and
   mixprec_random_bits, which test_scalar.c compares with it. --quick takes a sample of the floats. */
#define _GNU_SOURCE
#include "library.h"
#include "test.h"

#include "guard.h"
#include "oracle.h"

#include <fenv.h>
#include <float.h>

/* ---- the floating-point environment ---- */

static const int rounding_modes[4] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};

/* One word of controls and flags that can be read and set whole. x87's control word follows fesetround. */
#if defined(__SSE__)
#include <xmmintrin.h>
#define ENVIRONMENTS 64
static uint64_t environment_get(void) {
    return _mm_getcsr();
}
static void environment_set(uint64_t word) {
    _mm_setcsr((unsigned)word);
}
/* Rounding mode, FTZ, DAZ; all exceptions masked or none; no flag set or all: with flags clear and exceptions
   unmasked, one careless instruction ends the program. */
static uint64_t environment_number(unsigned i) {
    return i % 4 * 0x2000u + (i & 4 ? 0x8000u : 0) + (i & 8 ? 0x40u : 0) + (i & 16 ? 0 : 0x1F80u) +
           (i & 32 ? 0x3Fu : 0);
}
#elif defined(__aarch64__)
#define ENVIRONMENTS 32
/* FPCR in the upper half, FPSR in the lower. */
static uint64_t environment_get(void) {
    uint64_t control, flags;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("mrs %0, fpsr" : "=r"(flags));
    return control << 32 | (flags & 0xFFFFFFFFu);
}
static void environment_set(uint64_t word) {
    uint64_t control = word >> 32, flags = word & 0xFFFFFFFFu;
    __asm__ volatile("msr fpcr, %0" : : "r"(control) : "memory");
    __asm__ volatile("msr fpsr, %0" : : "r"(flags) : "memory");
}
/* Rounding mode, FZ, DN; no flag set or all. */
static uint64_t environment_number(unsigned i) {
    uint64_t control = i % 4 * (1u << 22) + (i & 4 ? 1u << 24 : 0) + (i & 8 ? 1u << 25 : 0);
    return control << 32 | (i & 16 ? 0x9Fu : 0);
}
#else
#include "environment.h"
#if HAVE_ENVIRONMENT
#define ENVIRONMENTS (sizeof environments / sizeof *environments)
static uint64_t environment_get(void) {
    return get_environment();
}
static void environment_set(uint64_t word) {
    set_environment((environment)word);
}
static uint64_t environment_number(unsigned i) {
    return environments[i];
}
#else
#if !defined(__i386__) || defined(__TINYC__)
#define SCALE_FOLLOWS_ENVIRONMENT /* the library cannot set it here */
#endif
#define ENVIRONMENTS 4
static uint64_t environment_get(void) {
    unsigned i = 0;
    while (rounding_modes[i] != fegetround())
        i++;
    return i;
}
static void environment_set(uint64_t word) {
    fesetround(rounding_modes[word]);
}
static uint64_t environment_number(unsigned i) {
    return i;
}
#endif
#endif
#ifdef SCALE_FOLLOWS_ENVIRONMENT
#define SCALES 1
#else
#define SCALES 2 /* none and one */
#endif

/* ---- paths, types, elements ---- */

static mixprec_isa paths[5]; /* AUTO, then what this CPU has */
static int path_count;

#define TYPES 15
static const mixprec_dtype types[TYPES] = {MIXPREC_F32,      MIXPREC_F64,      MIXPREC_F16,
                                           MIXPREC_BF16,     MIXPREC_E4M3,     MIXPREC_E5M2, /* GEMM's, then others */
                                           MIXPREC_E4M3FNUZ, MIXPREC_E5M2FNUZ, MIXPREC_E4M3IEEE,
                                           MIXPREC_E3M4,     MIXPREC_E2M3,     MIXPREC_E3M2,
                                           MIXPREC_E2M1,     MIXPREC_E8M0,     MIXPREC_I8};
#define GEMM_TYPES 6

/* The pairs that get every test; the values of the others are tested, but go through the same two kernels. */
static int thorough(mixprec_dtype to, mixprec_dtype from) {
    return to <= MIXPREC_F64 || from <= MIXPREC_BF16 || (to <= MIXPREC_E5M2 && from <= MIXPREC_E5M2);
}

static uint64_t get(const void *array, mixprec_dtype type, size_t i) {
    size_t size = mixprec_dtype_size(type);
    const unsigned char *at = (const unsigned char *)array + i * size;
    uint16_t bits16;
    uint32_t bits32;
    uint64_t bits64;
    if (type == MIXPREC_E2M1) {
        at = (const unsigned char *)array + i / 2;
        return i % 2 ? *at / 16 : *at % 16;
    }
    switch (size) {
    case 1: return *at;
    case 2: memcpy(&bits16, at, 2); return bits16;
    case 4: memcpy(&bits32, at, 4); return bits32;
    default: memcpy(&bits64, at, 8); return bits64;
    }
}
/* Bits above the type's width are dropped. */
static void put(void *array, mixprec_dtype type, size_t i, uint64_t bits) {
    size_t size = mixprec_dtype_size(type);
    unsigned char *at = (unsigned char *)array + i * size;
    uint16_t bits16 = (uint16_t)bits;
    uint32_t bits32 = (uint32_t)bits;
    if (type == MIXPREC_E2M1) {
        at = (unsigned char *)array + i / 2;
        *at = (unsigned char)(i % 2 ? *at % 16 + bits % 16 * 16 : *at / 16 * 16 + bits % 16);
        return;
    }
    switch (size) {
    case 1: *at = (unsigned char)(type == MIXPREC_E2M3 || type == MIXPREC_E3M2 ? bits % 64 : bits); break;
    case 2: memcpy(at, &bits16, 2); break;
    case 4: memcpy(at, &bits32, 4); break;
    default: memcpy(at, &bits, 8); break;
    }
}

static void *allocate(size_t bytes) {
    void *memory = malloc(bytes);
    if (!memory) {
        fprintf(stderr, "out of memory\n");
        exit(2);
    }
    return memory;
}

/* ---- what is expected ---- */

static uint64_t quiet(uint64_t x) {
    return x % ORACLE_SIGN > ORACLE_INF ? x | ORACLE_QUIET : x;
}

/* x * scale as a double's pattern: rounded to fp32, or to f64 when the source is f64. x87 rounds to 53 bits meanwhile,
   once but for subnormal products: there README allows the second rounding, and this reference has it, too. */
static uint64_t product(uint64_t x, mixprec_dtype source, float scale) {
    volatile double factor, result; /* each operation by itself, rounded as it is written */
    if (x % ORACLE_SIGN >= ORACLE_INF)
        return quiet(x);
    factor = oracle_double(x);
#if (defined(__i386__) || defined(__x86_64__)) && FLT_EVAL_METHOD == 2
    {
        unsigned short saved, control = 0x027F;
        __asm__ volatile("fnstcw %0\n\tfldcw %1" : "=m"(saved) : "m"(control));
        result = factor * (double)scale;
        __asm__ volatile("fldcw %0" : : "m"(saved));
    }
#else
    result = factor * (double)scale;
#endif
    if (source == MIXPREC_F64)
        return oracle_bits(result);
    return oracle_bits(mixprec_decode(
        mixprec_encode(result, MIXPREC_F32, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0), MIXPREC_F32));
}

static uint64_t expected(uint64_t bits, mixprec_dtype to, mixprec_dtype from, const mixprec_convert_options *options,
                         size_t i) {
    int scaled = oracle_bits((double)options->scale) % ORACLE_SIGN != 0;
    uint64_t value = from == MIXPREC_F64 ? quiet(bits) : oracle_bits(mixprec_decode((uint32_t)bits, from));
    if (to == from && !scaled)
        return bits;
    if (scaled)
        value = product(value, from, options->scale);
    if (to == MIXPREC_F64) /* nothing to round; but saturation has no Inf in any type */
        return value - (value % ORACLE_SIGN == ORACLE_INF && options->overflow == MIXPREC_OVERFLOW_SATURATE);
    return mixprec_encode(oracle_double(value), to, options->round, options->overflow,
                          mixprec_random_bits(options->seed, options->offset + i));
}

static void expect(void *want, mixprec_dtype to, const void *source, mixprec_dtype from, size_t n,
                   const mixprec_convert_options *options) {
    size_t i;
    for (i = 0; i < n; i++)
        put(want, to, i, expected(get(source, from, i), to, from, options, i));
}

/* Compares n converted elements; `source` is for the message only. */
static void compare(const void *got, const void *want, mixprec_dtype to, const void *source, mixprec_dtype from,
                    size_t n, const mixprec_convert_options *options) {
    int half_byte = to == MIXPREC_E2M1 && n % 2;
    size_t i;
    if (half_byte && (to != from || options->scale > 0))
        CHECK(get(got, to, n) == 0, "%s, %s to %s, %lu elements: the bits beyond the last are not zero",
              mixprec_isa_name(options->isa), mixprec_dtype_name(from), mixprec_dtype_name(to), (unsigned long)n);
    if (n && (half_byte || memcmp(got, want, mixprec_dtype_bytes(to, n))))
        for (i = 0; i < n; i++)
            CHECK(get(got, to, i) == get(want, to, i),
                  "%s, %s to %s, round %d, overflow %d, scale %g, offset %llx, element %lu of %lu, %llx: "
                  "got %llx, want %llx",
                  mixprec_isa_name(options->isa), mixprec_dtype_name(from), mixprec_dtype_name(to), (int)options->round,
                  (int)options->overflow, (double)options->scale, (unsigned long long)options->offset, (unsigned long)i,
                  (unsigned long)n, (unsigned long long)get(source, from, i), (unsigned long long)get(got, to, i),
                  (unsigned long long)get(want, to, i));
}

/* Through a pointer that the compiler cannot see through, so that no arithmetic moves across a change of
   environment. */
static mixprec_status (*volatile convert)(void *, mixprec_dtype, const void *, mixprec_dtype, size_t,
                                          const mixprec_convert_options *) = mixprec_convert_ex;

static void check(void *got, const void *want, mixprec_dtype to, const void *source, mixprec_dtype from, size_t n,
                  const mixprec_convert_options *options) {
    mixprec_status status = convert(got, to, source, from, n, options);
    CHECK(status == MIXPREC_OK, "%s, %s to %s, %lu elements: %s", mixprec_isa_name(options->isa),
          mixprec_dtype_name(from), mixprec_dtype_name(to), (unsigned long)n, mixprec_status_string(status));
    if (status == MIXPREC_OK)
        compare(got, want, to, source, from, n, options);
}

/* A number of type `from`, often at or beside a point where rounding to one of the formats turns. */
static uint64_t interesting(mixprec_dtype from) {
    uint64_t random = oracle_random(), x;
    const oracle_format *format =
        &oracle_formats[random % (from == MIXPREC_F64 ? ORACLE_FORMATS : ORACLE_SMALL_FORMATS)];
    if (random >> 60 < 4 || (from != MIXPREC_F32 && from != MIXPREC_F64))
        return oracle_random();
    x = oracle_bits(oracle_point(format, (uint32_t)(random >> 8) % oracle_point_count(format)));
    if (from == MIXPREC_F32)
        x = mixprec_encode(oracle_double(x), MIXPREC_F32, MIXPREC_ROUND_TOWARD_ZERO, MIXPREC_OVERFLOW_IEEE, 0);
    x += (random >> 40) % 5 - 2;
    return random >> 63 ? x ^ (from == MIXPREC_F32 ? 0x80000000u : ORACLE_SIGN) : x;
}
static void fill(void *array, mixprec_dtype type, size_t n) {
    size_t i;
    for (i = 0; i < n; i++)
        put(array, type, i, interesting(type));
}

/* Kernels look at 64 elements at once: groups without anything special, which come first, and groups of one kind each:
   with zeros, zeros alone, sizes from vanishing to overflowing, sizes at the limits within which statistics square in
   fp32, points where rounding turns, anything. */
static void fill_groups(void *array, mixprec_dtype type, size_t n) {
    size_t i, kind = 0;
    for (i = 0; i < n; i++) {
        uint64_t random = oracle_random();
        double x = 1 + ldexp((double)(random >> 12), -52);
        if (i % 64 == 0)
            kind = i < 1280 ? 0 : i / 64 % 8;
        switch (kind) {
        case 0: x = ldexp(x, (int)(random % 16) - 8); break;
        case 1: x = random % 4 ? 2 - ldexp((double)(random >> 9 & 2047), -23) : 0; break; /* just below 2 */
        case 2: x = 0; break;
        case 3: x = ldexp(x, (int)(random % 80) - 40); break;
        case 4: x = ldexp(x, (i / 512 % 2 ? 60 : 61) - 1 - (int)(random % 3)); break;
        case 5: x = ldexp(x, (i / 512 % 2 ? -48 : -49) - (int)(random % 3)); break;
        case 6: x = ldexp(x, (int)(random % 24) - 20); break;
        default: put(array, type, i, interesting(type)); continue;
        }
        if (random >> 8 & 1)
            x = -x;
        put(array, type, i,
            type == MIXPREC_F64 ? oracle_bits(x)
                                : mixprec_encode(x, type, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0));
    }
}

/* ---- values ---- */

/* Time is short: fp6 follows fp4, and the small IEEE formats follow E5M2 and FNUZ, in all but the numbers of their
   tables. */
static int every_float(const oracle_format *format) {
    return format - oracle_formats < ORACLE_GEMM_FORMATS || (format->family != ORACLE_IEEE && format->bits != 6);
}

static void test_every_float(const oracle_format *format) {
    static uint32_t source[65536];
    static uint16_t codes[65536];
    static unsigned char want[2 * 65536], got[2 * 65536];
    int path, gemm_format = format - oracle_formats < ORACLE_GEMM_FORMATS, all_paths = test_quick || gemm_format;
    /* 93: every exponent, and in fp8 ties of both kinds. */
    uint32_t block, i, step = test_quick ? (gemm_format ? 93 : 601) : every_float(format) ? 1 : 7;
    for (block = 0; block < 65536; block += step) {
        oracle_block(format, MIXPREC_OVERFLOW_IEEE, block, codes);
        for (i = 0; i < 65536; i++)
            source[i] = block * 65536 + i;
        if (format->bits == 16)
            memcpy(want, codes, sizeof codes);
        else if (format->bits == 4)
            for (i = 0; i < 32768; i++)
                want[i] = (unsigned char)(codes[2 * i] + 16 * codes[2 * i + 1]);
        else
            for (i = 0; i < 65536; i++)
                want[i] = (unsigned char)codes[i];
        for (path = all_paths ? 1 : path_count - 1; path < path_count; path++) {
            mixprec_convert_options options = {0};
            options.isa = paths[path];
            check(got, want, format->dtype, source, MIXPREC_F32, 65536, &options);
        }
    }
}

/* Every mode and policy at, and one and two units from, each point where rounding turns, from f64 also a power of two of
   them, and on random patterns. */
static void test_modes(mixprec_dtype to, mixprec_dtype from) {
    const oracle_format *format = oracle_format_of(to);
    uint32_t points = oracle_point_count(format), step = to == MIXPREC_F32 ? 39983 : 1, point;
    size_t capacity = (size_t)(points / step + 1) * 12 + 4096, n = 0;
    size_t from_size = mixprec_dtype_size(from), to_size = mixprec_dtype_size(to);
    void *source = allocate(capacity * from_size), *want = allocate(capacity * to_size);
    void *got = allocate(capacity * to_size);
    int round, overflow, path;
    uint64_t unit;
    if (test_quick && format->bits > 8)
        step *= 31;
    for (point = 0; point < points - step; point += step) {
        double x = oracle_point(format, point);
        uint64_t bits = from == MIXPREC_F64
                            ? oracle_bits(x)
                            : mixprec_encode(x, MIXPREC_F32, MIXPREC_ROUND_TOWARD_ZERO, MIXPREC_OVERFLOW_IEEE, 0);
        for (unit = 0; unit < 5; unit++) {
            put(source, from, n++, bits + unit - 2);
            put(source, from, n++, (bits + unit - 2) ^ (from == MIXPREC_F64 ? ORACLE_SIGN : 0x80000000u));
        }
        for (unit = 0; unit < 2 && from == MIXPREC_F64; unit++) { /* one bit of those that are lost decides */
            const uint64_t bit = (uint64_t)1 << oracle_random() % 48;
            put(source, from, n++, unit ? (bits - bit) ^ ORACLE_SIGN : bits + bit);
        }
    }
    for (; n % 4096; n++)
        put(source, from, n, interesting(from));
    for (round = 0; round < 6; round++)
        for (overflow = 0; overflow < 3; overflow++) {
            mixprec_convert_options options = {0};
            options.round = (mixprec_round)round;
            options.overflow = (mixprec_overflow)overflow;
            options.seed = 0x0123456789ABCDEFu;
            options.offset = (uint64_t)round + 77;
            expect(want, to, source, from, n, &options);
            for (path = 0; path < path_count; path++) {
                options.isa = paths[path];
                check(got, want, to, source, from, n, &options);
            }
        }
    free(source);
    free(want);
    free(got);
}

/* Every code of the small formats, random patterns of the wide ones: to all types, all modes, policies, and scales. */
static void test_pair(mixprec_dtype to, mixprec_dtype from) {
    static uint64_t source[65536], want[65536], got[65536];
    static const float scales[] = {0.0f, 1.0f / 1024, 4096.0f, 1.1f, 3e-12f, 7e20f};
    const int wide = from == MIXPREC_F32 || from == MIXPREC_F64,
              step = test_quick && mixprec_dtype_size(from) == 2 ? 5 : 1;
    size_t n = wide ? 20000 : ((size_t)1 << 8 * mixprec_dtype_size(from)) / (size_t)step, i;
    int round, overflow, scale, path;
    fill(source, from, n);
    if (!wide)
        for (i = 0; i < n; i++)
            put(source, from, i, i * (size_t)step);
    for (round = 0; round < 6; round++)
        for (overflow = 0; overflow < 3; overflow++)
            for (scale = 0; scale < 6; scale++) {
                mixprec_convert_options options = {0};
                if (test_quick && (round * 3 + overflow + scale) % (thorough(to, from) ? 5 : 17))
                    continue;
                options.round = (mixprec_round)round;
                options.overflow = (mixprec_overflow)overflow;
                options.scale = scales[scale];
                options.seed = 42;
                expect(want, to, source, from, n, &options);
                for (path = 0; path < path_count; path++) {
                    options.isa = paths[path];
                    check(got, want, to, source, from, n, &options);
                }
            }
    {
        mixprec_convert_options none = {0};
        mixprec_status status = mixprec_convert(got, to, source, from, n);
        expect(want, to, source, from, n, &none);
        CHECK(status == MIXPREC_OK, "mixprec_convert: %s", mixprec_status_string(status));
        compare(got, want, to, source, from, n, &none);
        memset(got, 0, sizeof got);
        status = mixprec_convert_ex(got, to, source, from, n, NULL);
        CHECK(status == MIXPREC_OK, "options NULL: %s", mixprec_status_string(status));
        compare(got, want, to, source, from, n, &none);
    }
}

/* A subnormal scale is a scale; the smallest and the largest one. */
static void test_extreme_scales(void) {
    static uint64_t source[2048], want[2048], got[2048];
    static const uint32_t scale_bits[] = {1, 0x007FFFFF, 0x00800000, 0x7F7FFFFF};
    int i, to, from, path;
    for (i = 0; i < 4; i++)
        for (from = 0; from < TYPES; from++) {
            fill(source, types[from], 2048);
            for (to = 0; to < TYPES; to++) {
                mixprec_convert_options options = {0};
                if (!thorough(types[to], types[from]))
                    continue;
                options.scale = oracle_float(scale_bits[i]);
                expect(want, types[to], source, types[from], 2048, &options);
                for (path = 0; path < path_count; path++) {
                    options.isa = paths[path];
                    check(got, want, types[to], source, types[from], 2048, &options);
                }
            }
        }
}

/* ---- memory ---- */

#define LONGEST 131 /* odd, and beyond a few vectors of any width */
#define GUARD 64

/* Options that take a path through each kind of kernel: plain, another mode, scaled, stochastic. */
static mixprec_convert_options variant(int i) {
    mixprec_convert_options options = {0};
    options.round = i == 1 ? MIXPREC_ROUND_UP : i == 3 ? MIXPREC_ROUND_STOCHASTIC : MIXPREC_ROUND_NEAREST_EVEN;
    options.overflow = i == 1 || i == 4 ? MIXPREC_OVERFLOW_SATURATE : MIXPREC_OVERFLOW_IEEE;
    options.scale = i == 2 ? 0.3f : 0.0f;
    options.seed = 5;
    options.offset = 1;
    return options;
}
#define VARIANTS 5

/* All lengths from all alignments; or, of a pair that is not thorough, some. */
static void test_lengths(mixprec_dtype to, mixprec_dtype from) {
    static const size_t few[] = {1, 7, 33, 63, 64, 65, LONGEST};
    const int all = thorough(to, from);
    const size_t lengths = all ? LONGEST + 1 : sizeof few / sizeof few[0];
    static uint64_t source_memory[LONGEST + 32], got_memory[LONGEST + 32], want[LONGEST];
    size_t from_size = mixprec_dtype_size(from), to_size = mixprec_dtype_size(to), i;
    unsigned char untouched[GUARD];
    static const size_t shifts[] = {0, 1, 3}; /* in elements, or bytes of two */
    int path, shift, kind;
    memset(untouched, 0xA5, sizeof untouched);
    for (kind = 0; kind < VARIANTS; kind++)
        for (shift = 0; shift < 9; shift += all ? 1 : test_quick ? 4 : 2) {
            unsigned char *source = (unsigned char *)source_memory + shifts[shift / 3] * from_size;
            unsigned char *got = (unsigned char *)got_memory + GUARD + shifts[shift % 3] * to_size;
            mixprec_convert_options options = variant(kind);
            fill(source, from, LONGEST);
            expect(want, to, source, from, LONGEST, &options);
            for (path = 0; path < path_count; path++)
                for (i = 0; i < lengths; i++) {
                    const size_t n = all ? i : few[i];
                    options.isa = paths[path];
                    memset(got_memory, 0xA5, sizeof got_memory);
                    check(got, want, to, source, from, n, &options);
                    CHECK(!memcmp(got - GUARD, untouched, GUARD) &&
                              !memcmp(got + mixprec_dtype_bytes(to, n), untouched, GUARD),
                          "%s, %s to %s, %lu elements: bytes before or after dst were written",
                          mixprec_isa_name(options.isa), mixprec_dtype_name(from), mixprec_dtype_name(to),
                          (unsigned long)n);
                }
        }
}

/* Arrays that start and end at a page that may not be touched: a stray read ends the program too. */
static void test_guard_pages(void) {
    unsigned char *source_start = guarded(GUARD_PAGE), *source_end = source_start + GUARD_PAGE;
    unsigned char *got_start = guarded(GUARD_PAGE), *got_end = got_start + GUARD_PAGE;
    uint64_t want[LONGEST];
    int to, from, path, kind, at_end;
    size_t n;
    for (from = 0; from < TYPES; from++)
        for (to = 0; to < TYPES; to++)
            for (kind = 0; kind < (thorough(types[to], types[from]) ? VARIANTS : 1); kind++)
                for (at_end = 0; at_end < 2; at_end++)
                    for (n = 1; n <= LONGEST; n += thorough(types[to], types[from]) ? 1 + n / 70 : 13) {
                        unsigned char *source =
                            at_end ? source_end - mixprec_dtype_bytes(types[from], n) : source_start;
                        unsigned char *got = at_end ? got_end - mixprec_dtype_bytes(types[to], n) : got_start;
                        mixprec_convert_options options = variant(kind);
                        fill(source, types[from], n);
                        expect(want, types[to], source, types[from], n, &options);
                        for (path = 0; path < path_count; path++) {
                            options.isa = paths[path];
                            check(got, want, types[to], source, types[from], n, &options);
                        }
                    }
}

/* dst == src, for narrowing and widening: short, and longer than any internal buffer is likely to be. */
static void test_in_place(mixprec_dtype to, mixprec_dtype from) {
    static uint64_t source[70001], want[70001], memory[70001];
    static const size_t lengths[] = {1,  2,   7,   15,  16,  17,  31,   32,   33,   63,   64,
                                     65, 127, 131, 255, 256, 257, 1023, 1025, 4099, 70000};
    const size_t longest = !thorough(to, from) ? (test_quick ? 300 : 1025) : test_quick ? 5000 : 70000;
    const int step = longest == 300 ? 2 : 1;
    size_t i;
    int path, kind;
    fill(source, from, longest + 1);
    for (kind = 0; kind < VARIANTS; kind += step) {
        mixprec_convert_options options = variant(kind);
        expect(want, to, source, from, longest + 1, &options);
        for (path = 0; path < path_count; path++)
            for (i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
                size_t n = lengths[i];
                mixprec_status status;
                if (n > longest)
                    continue;
                options.isa = paths[path];
                memcpy(memory, source, mixprec_dtype_bytes(from, n));
                status = convert(memory, to, memory, from, n, &options);
                CHECK(status == MIXPREC_OK, "in place: %s", mixprec_status_string(status));
                compare(memory, want, to, source, from, n, &options);
            }
    }
}

static void test_narrow_pairs(void) {
    enum { LONG = 2501 }; /* more than an internal buffer */
    static uint64_t source[LONG], want[LONG], got[LONG];
    int to, from, path;
    for (from = 0; from < TYPES; from++)
        for (to = 0; to < TYPES; to++)
            if (!thorough(types[to], types[from])) {
                mixprec_convert_options options = variant((from + to) % VARIANTS);
                test_lengths(types[to], types[from]);
                test_in_place(types[to], types[from]);
                fill(source, types[from], LONG);
                expect(want, types[to], source, types[from], LONG, &options);
                for (path = 0; path < path_count; path++) {
                    options.isa = paths[path];
                    check(got, want, types[to], source, types[from], LONG, &options);
                }
            }
}

/* ---- the stochastic stream ---- */

static void test_stochastic(mixprec_dtype to, mixprec_dtype from) {
    enum { count = 3000 };
    static uint64_t sources[3][count], want[count], got[count];
    static const uint64_t offsets[] = {0,
                                       1,
                                       0xFFFFFFF0u,
                                       0x1FFFFFFF1u, /* the counter's low word carries within the array */
                                       (uint64_t)1 << 63,
                                       (uint64_t)0 - 500}; /* the index itself wraps */
    static const uint64_t seeds[] = {0, 0xFFFFFFFFu, 0xDEADBEEF00000000u, 0x243F6A8885A308D3u};
    mixprec_format_info info;
    int path, i, j;
    fill(sources[0], from, count);
    fill_groups(sources[1], from, count);
    fill(sources[2], from, count);
    if (from == MIXPREC_F32 && mixprec_format(to, &info) == MIXPREC_OK && info.min_normal > 0)
        /* Where a normal number's bits begin to lie wholly beyond the random ones: up once in 200 times. */
        for (i = 0; i < count; i++)
            put(sources[2], from, (size_t)i,
                mixprec_encode(info.min_normal * ldexp(1.9, i % 2 - 9 - info.mantissa_bits), from,
                               MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0));
    for (i = 0; i < 6; i++)
        for (j = 0; j < 4; j++) {
            const uint64_t *source = sources[j % 3];
            mixprec_convert_options options = {0};
            options.round = MIXPREC_ROUND_STOCHASTIC;
            options.seed = seeds[j];
            options.offset = offsets[i];
            expect(want, to, source, from, count, &options);
            for (path = 0; path < path_count; path++) {
                size_t start = 0;
                options.isa = paths[path];
                options.offset = offsets[i];
                check(got, want, to, source, from, count, &options);
                memset(got, 0, sizeof got);
                while (start < count) { /* in pieces */
                    size_t n = 1 + (size_t)(oracle_random() % 70);
                    mixprec_status status;
                    if (to == MIXPREC_E2M1 || from == MIXPREC_E2M1)
                        n += n % 2; /* whole bytes */
                    n = n < count - start ? n : count - start;
                    options.offset = offsets[i] + start;
                    status = convert((char *)got + mixprec_dtype_bytes(to, start), to,
                                     (const char *)source + mixprec_dtype_bytes(from, start), from, n, &options);
                    CHECK(status == MIXPREC_OK, "piece: %s", mixprec_status_string(status));
                    start += n;
                }
                compare(got, want, to, source, from, count, &options);
            }
        }
}

/* Is the mean of what x becomes x itself? Between two codes x is rounded up with a probability f, and of n draws the
   share that goes up has a standard deviation of sqrt(f (1 - f) / n). It must lie within five of them: a correct
   generator fails once in 1.7 million such tests, and so for one seed in 60000 of those that could stand here. */
static void test_unbiased(const oracle_format *format) {
    const size_t count = test_quick ? 1 << 16 : 1 << 20;
    static const double fractions[] = {0.5, 0.25, 1.0 / 3, 0.9, 0.01};
    float *source = (float *)allocate(count * sizeof *source);
    void *got = allocate(count * 2);
    int i, negative;
    for (i = 0; i < 5; i++)
        for (negative = 0; negative < 2; negative++) {
            /* In the upper half of the codes and, the second time, between the two smallest. */
            uint32_t code = negative ? 0 : format->finite / 2;
            double lower = oracle_value(format, code), ulp = oracle_value(format, code + 1) - lower, f, deviation;
            mixprec_convert_options options = {0};
            uint64_t up = 0;
            size_t j;
            float x = (float)(lower + fractions[i] * ulp);
            mixprec_status status;
            if (format->family == ORACLE_POWERS && negative)
                continue;
            f = ((double)x - lower) / ulp;
            for (j = 0; j < count; j++)
                source[j] = negative ? -x : x;
            options.round = MIXPREC_ROUND_STOCHASTIC;
            options.seed = 20220707;
            options.offset = (uint64_t)i * count;
            status = mixprec_convert_ex(got, format->dtype, source, MIXPREC_F32, count, &options);
            CHECK(status == MIXPREC_OK, "%s", mixprec_status_string(status));
            for (j = 0; j < count; j++) {
                uint64_t to = get(got, format->dtype, j);
                up += to == oracle_signed(format, negative, code + 1);
                CHECK(to == oracle_signed(format, negative, code) || to == oracle_signed(format, negative, code + 1),
                      "%g became %02llx", (double)source[j], (unsigned long long)to);
            }
            deviation = ((double)up / (double)count - f) / sqrt(f * (1 - f) / (double)count);
            CHECK(deviation > -5 && deviation < 5, "%s, %g: up %llu times in %lu, want a share of %g: %.1f deviations",
                  format->name, (double)source[0], (unsigned long long)up, (unsigned long)count, f, deviation);
        }
    free(source);
    free(got);
}

/* ---- statistics ---- */

/* x^2 + sum, not negative, to the nearest float, by integers: both as multiples of 2^exponent below 2^62, the smaller
   one shifted to the other's exponent, with a last bit that says whether something was lost. */
static float add_square(float x, float sum) {
    uint64_t parts[2], total, rest, half;
    int exponents[2], large, shift, i;
    parts[0] = (uint64_t)ldexp(frexp(x < 0 ? -(double)x : (double)x, &exponents[0]), 24);
    parts[0] *= parts[0];
    exponents[0] = 2 * (exponents[0] - 24);
    parts[1] = (uint64_t)ldexp(frexp((double)sum, &exponents[1]), 24);
    exponents[1] -= 24;
    for (i = 0; i < 2; i++)
        for (; parts[i] && parts[i] < (uint64_t)1 << 61; exponents[i]--)
            parts[i] *= 2;
    large = !parts[0] || (parts[1] && exponents[1] > exponents[0]);
    shift = parts[!large] ? exponents[large] - exponents[!large] : 0;
    half = shift < 63 ? (uint64_t)1 << shift : (uint64_t)1 << 63;
    total = parts[large] + (parts[!large] / half | (parts[!large] % half != 0));
    for (shift = 0; shift < 63 && (total >> shift >= 1u << 24 || exponents[large] + shift < -149);)
        shift++;
    if (!total || exponents[large] + shift < -149)
        return 0;
    rest = total % ((uint64_t)1 << shift);
    half = (uint64_t)1 << shift >> 1;
    total >>= shift;
    total += shift && (rest > half || (rest == half && total % 2));
    return (float)ldexp((double)total, exponents[large] + shift);
}

/* The sum of squares as the contract has it: a group of 256 in fp32 where its sizes allow, in 32 lanes. */
static double sum_of_squares(const double *x, size_t n, const unsigned char *single) {
    volatile double lanes[16] = {0}, wide;
    size_t i, j;
    for (i = 0; i < n; i += 256) {
        float sums[32] = {0};
        for (j = i; j < i + 256 && j < n; j++)
            if (single[i / 256]) {
                volatile float value = (float)x[j];
                sums[j % 32] = add_square(value, sums[j % 32]);
            } else {
                wide = x[j] * x[j];
                lanes[j % 16] = lanes[j % 16] + wide;
            }
        for (j = 0; j < 16; j++) {
            volatile float sum = sums[j] + sums[j + 16];
            lanes[j] = lanes[j] + (double)sum;
        }
    }
    for (i = 8; i; i /= 2)
        for (j = 0; j < i; j++)
            lanes[j] = lanes[j] + lanes[j + i];
    return lanes[0];
}

/* x87 rounds a double twice. */
static int same_sum(double got, double want, size_t n) {
#if defined(__i386__) || FLT_EVAL_METHOD == 2
    double difference = got < want ? want - got : got - want;
    return oracle_bits(got) == oracle_bits(want) || difference <= want * ((double)n + 4) * 2.3e-16;
#else
    (void)n;
    return oracle_bits(got) == oracle_bits(want);
#endif
}

#define STATS_COUNT 4000
#define STATS_LONG 9001

static void expect_stats(mixprec_statistics *want, const void *source, mixprec_dtype from, size_t n, mixprec_dtype to,
                         const mixprec_convert_options *options) {
    const oracle_format *format = oracle_format_of(to);
    const int has_subnormals = format->family != ORACLE_POWERS && format->family != ORACLE_INTEGERS;
    const uint64_t max = oracle_bits(oracle_value(format, format->finite - 1));
    const uint64_t min_normal = has_subnormals ? oracle_bits(oracle_value(format, 1u << format->mantissa_bits)) : 0;
    uint64_t amax = 0, min_nonzero = ORACLE_INF, group_amax = 0;
    static double numbers[STATS_LONG], errors[STATS_LONG];
    static unsigned char single[STATS_LONG / 256 + 1];
    size_t i;
    memset(want, 0, sizeof *want);
    want->count = n;
    for (i = 0; i < n; i++) {
        uint64_t bits = get(source, from, i);
        uint64_t x = from == MIXPREC_F64 ? bits : oracle_decode(oracle_format_of(from), (uint32_t)bits), magnitude, q;
        oracle_place place;
        int exponent;
        if (i % 256 == 0)
            group_amax = 0;
        numbers[i] = errors[i] = 0;
        if (options->scale > 0)
            x = product(x, from, options->scale);
        magnitude = x % ORACLE_SIGN;
        want->nan += magnitude > ORACLE_INF;
        want->inf += magnitude == ORACLE_INF;
        group_amax = magnitude < ORACLE_INF && magnitude > group_amax ? magnitude : group_amax;
        single[i / 256] = from != MIXPREC_F64 && (group_amax == 0 || (group_amax >= oracle_bits(ldexp(1.0, -48)) &&
                                                                      group_amax < oracle_bits(ldexp(1.0, 60))));
        if (magnitude >= ORACLE_INF) {
            want->exponents[255]++;
            continue;
        }
        place = oracle_locate(format, x);
        q = oracle_decode(format, oracle_round(&place, options->round, MIXPREC_OVERFLOW_SATURATE,
                                               mixprec_random_bits(options->seed, options->offset + i)));
        frexp(oracle_double(magnitude), &exponent);
        exponent += 126;
        want->exponents[magnitude == 0 || exponent < 0 ? 0 : exponent > 254 ? 254 : exponent]++;
        want->zero += magnitude == 0;
        /* -128 is there, 128 is not */
        want->overflow += magnitude > (to == MIXPREC_I8 && x >= ORACLE_SIGN ? oracle_bits(128.0) : max);
        want->underflow += magnitude > 0 && q % ORACLE_SIGN == 0;
        want->subnormal += q % ORACLE_SIGN > 0 && q % ORACLE_SIGN < min_normal;
        amax = magnitude > amax ? magnitude : amax;
        min_nonzero = magnitude > 0 && magnitude < min_nonzero ? magnitude : min_nonzero;
        numbers[i] = oracle_double(x);
        /* What has no number in the format is lost whole. */
        errors[i] = q % ORACLE_SIGN > ORACLE_INF ? numbers[i] : numbers[i] - oracle_double(q);
    }
    want->amax = oracle_double(amax);
    want->min_nonzero = min_nonzero == ORACLE_INF ? 0 : oracle_double(min_nonzero);
    want->signal = sum_of_squares(numbers, n, single);
    want->noise = sum_of_squares(errors, n, single);
}

/* On every path, AUTO is one of them, in the environment of this number. */
static unsigned stats_environment;
static void check_stats(const void *source, mixprec_dtype from, size_t n, mixprec_dtype to,
                        mixprec_convert_options options) {
    const uint64_t initial = environment_get(), foreign = environment_number(stats_environment);
    mixprec_statistics got, want;
    int path, i;
    expect_stats(&want, source, from, n, to, &options);
    for (path = 1; path < path_count; path++) {
        mixprec_status status;
        options.isa = paths[path];
        memset(&got, 0xA5, sizeof got);
        if (stats_environment) {
            uint64_t after;
            fesetround(rounding_modes[stats_environment % 4]);
            environment_set(foreign);
            status = mixprec_stats(&got, source, from, n, to, &options);
            after = environment_get();
            fesetround(FE_TONEAREST);
            environment_set(initial);
            CHECK(after == foreign, "%s: environment %llx became %llx", mixprec_isa_name(options.isa),
                  (unsigned long long)foreign, (unsigned long long)after);
        } else
            status = mixprec_stats(&got, source, from, n, to, &options);
        CHECK(status == MIXPREC_OK, "%s", mixprec_status_string(status));
#define CHECK_COUNT(field)                                                                                             \
    CHECK(got.field == want.field, "%s, %s to %s, round %d, scale %g, %lu elements: " #field " is %llu, want %llu",    \
          mixprec_isa_name(options.isa), mixprec_dtype_name(from), mixprec_dtype_name(to), (int)options.round,         \
          (double)options.scale, (unsigned long)n, (unsigned long long)got.field, (unsigned long long)want.field)
        CHECK_COUNT(count);
        CHECK_COUNT(nan);
        CHECK_COUNT(inf);
        CHECK_COUNT(zero);
        CHECK_COUNT(overflow);
        CHECK_COUNT(underflow);
        CHECK_COUNT(subnormal);
        for (i = 0; i < 256; i++)
            CHECK_COUNT(exponents[i]);
#undef CHECK_COUNT
        CHECK(oracle_bits(got.amax) == oracle_bits(want.amax) &&
                  oracle_bits(got.min_nonzero) == oracle_bits(want.min_nonzero),
              "%s to %s: amax %g, min_nonzero %g, want %g and %g", mixprec_dtype_name(from), mixprec_dtype_name(to),
              got.amax, got.min_nonzero, want.amax, want.min_nonzero);
        CHECK(same_sum(got.signal, want.signal, n) && same_sum(got.noise, want.noise, n),
              "%s, %s to %s, round %d, scale %g: signal %.17g, noise %.17g, want %.17g and %.17g",
              mixprec_isa_name(options.isa), mixprec_dtype_name(from), mixprec_dtype_name(to), (int)options.round,
              (double)options.scale, got.signal, got.noise, want.signal, want.noise);
    }
}

static void test_stats(mixprec_dtype from) {
    enum { count = 2000 };
    static const size_t lengths[] = {0, 1, 2, 17, 64, 255, count};
    static const float scales[] = {0.0f, 1024.0f, 1.1f, 1e-6f};
    static uint64_t any[count], usual[count], groups[STATS_COUNT];
    const mixprec_convert_options nearest = {0};
    int to, scale;
    size_t i;
    fill(any, from, count);
    fill_groups(groups, from, STATS_COUNT);
    for (i = 0; i < count; i++) { /* sizes that the sums can tell apart, some zeros, Infs and NaNs */
        double x = ldexp((double)(int64_t)oracle_random(), (int)(oracle_random() % 24) - 76);
        put(usual, from, i,
            from == MIXPREC_F64 ? oracle_bits(x)
                                : mixprec_encode(x, from, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0));
        if (i % 100 == 99)
            put(usual, from, i, get(any, from, i));
        if (i % 50 == 49)
            put(usual, from, i, 0);
    }
    for (to = 0; to < TYPES; to++)
        for (scale = 0; scale < 4; scale++)
            for (i = 0; i < sizeof lengths / sizeof lengths[0] && types[to] != MIXPREC_F64; i++) {
                mixprec_convert_options options = {0};
                options.round = (mixprec_round)((i + (size_t)scale) % 6);
                options.overflow = (mixprec_overflow)(i % 3); /* ignored */
                options.scale = scales[scale];
                options.seed = 3;
                options.offset = 9;
                check_stats(usual, from, lengths[i], types[to], options);
                check_stats(any, from, lengths[i], types[to], options);
            }
    /* Groups without Inf and NaN: a least number or a largest one that changes within its binade, then numbers on and
       beside the thresholds of the format. */
    for (to = 0; to < 3 * TYPES; to++) {
        const oracle_format *format;
        double half_step, max, min_normal;
        if (types[to / 3] == MIXPREC_F64)
            continue;
        format = oracle_format_of(types[to / 3]);
        half_step = oracle_value(format, 1) / 2;
        max = oracle_value(format, format->finite - 1);
        min_normal = oracle_value(format, 1u << format->mantissa_bits);
        for (i = 0; i < 1024; i++) {
            double x = to % 3 ? 1 + (double)i / 1024 : (2 - (double)i / 1024) / 8;
            if (to % 3 == 2)
                x = i % 8 == 0                          ? half_step
                    : i % 8 == 1                        ? half_step * 1.125
                    : i % 8 == 2                        ? min_normal - half_step
                    : i % 8 == 3                        ? min_normal - half_step * 1.125
                    : max < 1e15 || from == MIXPREC_F64 ? max * (1 + (double)(i % 8 - 4) / 1024)
                                                        : 1;
            else if (i == 0)
                x = to % 3 ? 0x1p-7 : 8;
            x = i % 3 ? x : -x;
            put(usual, from, i,
                from == MIXPREC_F64 ? oracle_bits(x)
                                    : mixprec_encode(x, from, MIXPREC_ROUND_NEAREST_EVEN, MIXPREC_OVERFLOW_IEEE, 0));
        }
        check_stats(usual, from, 1024, types[to / 3], nearest);
    }
    /* To nearest even, from an element that no vector is aligned to: all groups, then one by one and pairs of them, for
       large squares hide small ones. */
    for (to = 0; to < TYPES; to++)
        if (types[to] != MIXPREC_F64) {
            const size_t odd = from != MIXPREC_E2M1;
            check_stats((const char *)groups + mixprec_dtype_bytes(from, odd), from, STATS_COUNT - 1, types[to],
                        nearest);
            for (i = 1280; i + 192 <= STATS_COUNT; i += 64) {
                check_stats((const char *)groups + mixprec_dtype_bytes(from, i), from, 64, types[to], nearest);
                check_stats((const char *)groups + mixprec_dtype_bytes(from, i + odd), from, 128, types[to], nearest);
            }
        }
}

/* More than any block, of every kind of group; and no options, which are those that are all 0. */
static void test_stats_blocks(void) {
    static const mixprec_dtype sources[] = {MIXPREC_F32, MIXPREC_F64, MIXPREC_BF16, MIXPREC_E5M2};
    static const mixprec_dtype targets[] = {MIXPREC_F16, MIXPREC_E4M3, MIXPREC_I8};
    static const size_t lengths[] = {0, 4097, STATS_LONG};
    static const mixprec_convert_options none = {0};
    static uint64_t source[STATS_LONG];
    size_t from, to, i;
    for (from = 0; from < sizeof sources / sizeof *sources; from++) {
        fill_groups(source, sources[from], STATS_LONG);
        for (to = 0; to < sizeof targets / sizeof *targets; to++)
            for (i = 0; i < sizeof lengths / sizeof *lengths; i++) {
                mixprec_statistics with, without;
                mixprec_convert_options options = {0};
                options.round = i % 2 ? MIXPREC_ROUND_NEAREST_EVEN : MIXPREC_ROUND_STOCHASTIC;
                options.scale = i % 2 ? 0.0f : 3.0f;
                options.seed = 8;
                options.offset = 0xFFFFF000u;
                check_stats(source, sources[from], lengths[i], targets[to], options);
                memset(&with, 0x5A, sizeof with);
                memset(&without, 0xA5, sizeof without);
                CHECK(mixprec_stats(&with, source, sources[from], lengths[i], targets[to], &none) == MIXPREC_OK &&
                          mixprec_stats(&without, source, sources[from], lengths[i], targets[to], NULL) == MIXPREC_OK &&
                          !memcmp(&with, &without, sizeof with),
                      "%s to %s, %lu elements: options NULL give other statistics", mixprec_dtype_name(sources[from]),
                      mixprec_dtype_name(targets[to]), (unsigned long)lengths[i]);
            }
    }
}

/* Element i and, after it in the same lane, element i + 32: the sum of their squares is just below, or just above, the
   middle of two floats, by less than f64 tells, and a tie would go the other way. */
static void test_stats_ties(void) {
    static const float pairs[][2] = {{0x1.783be4p-17f, 0x1.e62ccep+0f}, {0x1.2a3386p-16f, 0x1.a9da9ap+0f},
                                     {0x1.da078ep-17f, 0x1.41898cp+0f}, {0x1.06a2p-16f, 0x1.167134p+0f},
                                     {0x1.5614f6p-16f, 0x1.9ba3d6p+0f}, {0x1.ec0c7ep-17f, 0x1.848354p+0f},
                                     {0x1.012d5p-16f, 0x1.020a26p+0f},  {0x1.021bc8p-16f, 0x1.48a0b2p+0f}};
    static float source[64];
    const mixprec_convert_options options = {0};
    size_t i;
    for (i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        source[i] = pairs[i][0];
        source[i + 32] = pairs[i][1];
    }
    check_stats(source, MIXPREC_F32, 64, MIXPREC_E4M3, options);
}

/* More exponents than the counters of a vector's places hold, at each place always the same one; those of the second
   half are far from the first. */
static void test_stats_long(void) {
    enum { count = 40960 };
    static float source[count];
    static double wide[count];
    int path, j;
    size_t i;
    for (i = 0; i < count; i++) {
        wide[i] = ldexp(i % 5 ? 1.25 : 1.5, (i % 4 ? 0 : -10) - (i < count / 2 ? 0 : 30));
        source[i] = (float)wide[i];
    }
    for (path = 0; path < path_count; path++)
        for (j = 0; j < 2; j++) {
            static mixprec_statistics got;
            mixprec_convert_options options = {0};
            mixprec_status status;
            options.isa = paths[path];
            status = mixprec_stats(&got, j ? (const void *)wide : (const void *)source, j ? MIXPREC_F64 : MIXPREC_F32,
                                   count, MIXPREC_BF16, &options);
            CHECK(status == MIXPREC_OK, "%s", mixprec_status_string(status));
            CHECK(got.exponents[127] == count / 8 * 3 && got.exponents[117] == count / 8 &&
                      got.exponents[97] == count / 8 * 3 && got.exponents[87] == count / 8,
                  "%s: exponents %llu %llu %llu %llu", mixprec_isa_name(paths[path]),
                  (unsigned long long)got.exponents[127], (unsigned long long)got.exponents[117],
                  (unsigned long long)got.exponents[97], (unsigned long long)got.exponents[87]);
        }
}

/* The call must return `want` and not write. */
static void refuse_stats(mixprec_status want, mixprec_statistics *stats, const void *source, mixprec_dtype from,
                         size_t n, mixprec_dtype to, const mixprec_convert_options *options, const char *what) {
    mixprec_statistics before;
    mixprec_status status;
    if (stats)
        memcpy(&before, stats, sizeof before);
    status = mixprec_stats(stats, source, from, n, to, options);
    CHECK(status == want, "%s: got %d (%s), want %d", what, (int)status, mixprec_status_string(status), (int)want);
    if (stats)
        CHECK(!memcmp(&before, stats, sizeof before), "%s: stats were written", what);
}

static void test_stats_errors(void) {
    static const int unknown_types[] = {0, MIXPREC_DTYPE_COUNT, 1000, -1};
    static const uint32_t bad_scales[] = {0x7FC00000, 0x7F800000, 0xFF800000, 0xBF800000, 0x80000001};
    static mixprec_statistics memory[2], empty;
    const float source[4] = {1, 2, 3, 4};
    mixprec_statistics *stats = memory;
    mixprec_convert_options options;
    int i;
    memset(memory, 0x5A, sizeof memory);
    refuse_stats(MIXPREC_ERR_NULL, NULL, source, MIXPREC_F32, 4, MIXPREC_F16, NULL, "stats NULL");
    refuse_stats(MIXPREC_ERR_NULL, stats, NULL, MIXPREC_F32, 4, MIXPREC_F16, NULL, "src NULL");
    refuse_stats(MIXPREC_ERR_DTYPE, stats, source, MIXPREC_F32, 4, MIXPREC_F64, NULL, "to f64");
    refuse_stats(MIXPREC_ERR_SIZE, stats, source, MIXPREC_F32, SIZE_MAX / 4 + 1, MIXPREC_F16, NULL, "n too large");
    refuse_stats(MIXPREC_ERR_OVERLAP, stats, stats, MIXPREC_F32, 4, MIXPREC_F16, NULL, "stats are src");
    refuse_stats(MIXPREC_ERR_OVERLAP, stats, (char *)stats + sizeof *stats - 1, MIXPREC_E4M3, 4, MIXPREC_F16, NULL,
                 "src begins in stats");
    for (i = 0; i < 4; i++) {
        refuse_stats(MIXPREC_ERR_DTYPE, stats, source, (mixprec_dtype)unknown_types[i], 4, MIXPREC_F16, NULL,
                     "unknown src type");
        refuse_stats(MIXPREC_ERR_DTYPE, stats, source, MIXPREC_F32, 4, (mixprec_dtype)unknown_types[i], NULL,
                     "unknown type");
    }
    for (i = 0; i < 5; i++) {
        memset(&options, 0, sizeof options);
        options.scale = oracle_float(bad_scales[i]);
        refuse_stats(MIXPREC_ERR_SCALE, stats, source, MIXPREC_F32, 4, MIXPREC_F16, &options, "bad scale");
    }
    memset(&options, 0, sizeof options);
    options.round = (mixprec_round)6;
    refuse_stats(MIXPREC_ERR_ROUND, stats, source, MIXPREC_F32, 4, MIXPREC_F16, &options, "unknown mode");
    memset(&options, 0, sizeof options);
    options.overflow = (mixprec_overflow)3;
    refuse_stats(MIXPREC_ERR_OVERFLOW, stats, source, MIXPREC_F32, 4, MIXPREC_F16, &options, "unknown policy");
    memset(&options, 0, sizeof options);
    options.isa = (mixprec_isa)99;
    refuse_stats(MIXPREC_ERR_ISA, stats, source, MIXPREC_F32, 4, MIXPREC_F16, &options, "unknown instruction set");
    CHECK(mixprec_stats(stats, NULL, MIXPREC_F32, 0, MIXPREC_F16, NULL) == MIXPREC_OK &&
              !memcmp(stats, &empty, sizeof empty),
          "nothing has statistics");
    CHECK(mixprec_stats(stats, stats + 1, MIXPREC_F16, 4, MIXPREC_E4M3, NULL) == MIXPREC_OK,
          "src that begins at its end");
}

/* ---- the caller's environment ---- */

static void test_environments(int path) {
    enum { count = 203 };
    static uint64_t source[count], want[count], got[count];
    uint64_t initial = environment_get(), before, after;
    int to, from, round, scaled, rounding_before, rounding_after;
    unsigned i;
    for (from = 0; from < TYPES; from++)
        for (to = 0; to < TYPES; to++)
            for (round = 0; round < 6; round++)
                for (scaled = 0; scaled < SCALES; scaled++) {
                    mixprec_convert_options options = {0};
                    options.round = (mixprec_round)round;
                    options.overflow = (mixprec_overflow)(round % 3);
                    options.scale = !scaled ? 0.0f : round == 1 ? 1e-40f : 0.7f; /* DAZ takes the second for 0 */
                    options.isa = paths[path];
                    if (!thorough(types[to], types[from]))
                        continue;
                    fill(source, types[from], count);
                    expect(want, types[to], source, types[from], count, &options);
                    for (i = 0; i < ENVIRONMENTS; i++) {
                        mixprec_status status;
                        fesetround(rounding_modes[i % 4]);
                        environment_set(environment_number(i));
                        before = environment_get();
                        rounding_before = fegetround();
                        status = convert(got, types[to], source, types[from], count, &options);
                        after = environment_get();
                        rounding_after = fegetround();
                        fesetround(FE_TONEAREST);
                        environment_set(initial);
                        CHECK(status == MIXPREC_OK, "%s", mixprec_status_string(status));
                        CHECK(after == before && rounding_after == rounding_before,
                              "%s, %s to %s, round %d, scale %d: environment %llx, %d became %llx, %d",
                              mixprec_isa_name(options.isa), mixprec_dtype_name(types[from]),
                              mixprec_dtype_name(types[to]), round, scaled, (unsigned long long)before, rounding_before,
                              (unsigned long long)after, rounding_after);
                        compare(got, want, types[to], source, types[from], count, &options);
                    }
                }
}

#ifndef SCALE_FOLLOWS_ENVIRONMENT
static void test_stats_environments(void) {
    enum { count = 331 };
    static const mixprec_dtype sources[] = {MIXPREC_F32, MIXPREC_F64, MIXPREC_F16, MIXPREC_BF16, MIXPREC_E4M3};
    static const mixprec_dtype targets[] = {MIXPREC_F16, MIXPREC_E5M2, MIXPREC_E4M3FNUZ};
    static uint64_t source[count];
    size_t from, to;
    for (from = 0; from < sizeof sources / sizeof *sources; from++)
        for (to = 0; to < sizeof targets / sizeof *targets; to++)
            for (stats_environment = 1; stats_environment < ENVIRONMENTS; stats_environment++) {
                mixprec_convert_options options = {0};
                options.round = (mixprec_round)(stats_environment % 6);
                options.scale = stats_environment % 2 ? 0.0f : 0.7f;
                fill(source, sources[from], count);
                check_stats(source, sources[from], count, targets[to], options);
            }
    stats_environment = 0;
}
#endif

/* ---- errors ---- */

static unsigned char error_source[256], error_dst[256];

/* The call must return `want` and leave error_dst alone. */
static void refuse(mixprec_status want, void *dst, mixprec_dtype to, const void *source, mixprec_dtype from, size_t n,
                   const mixprec_convert_options *options, const char *what) {
    unsigned char before[256];
    mixprec_status status;
    memcpy(before, error_dst, sizeof before);
    status = mixprec_convert_ex(dst, to, source, from, n, options);
    CHECK(status == want, "%s: got %d (%s), want %d", what, (int)status, mixprec_status_string(status), (int)want);
    CHECK(!memcmp(before, error_dst, sizeof before), "%s: dst was written", what);
    if (!options) {
        status = mixprec_convert(dst, to, source, from, n);
        CHECK(status == want, "%s, mixprec_convert: got %d, want %d", what, (int)status, (int)want);
        CHECK(!memcmp(before, error_dst, sizeof before), "%s, mixprec_convert: dst was written", what);
    }
}

static void test_errors(void) {
    static const int unknown_types[] = {0, MIXPREC_DTYPE_COUNT, 1000, -1};
    static const uint32_t bad_scales[] = {0x7FC00000, 0x7F800001, 0xFFC00000, 0x7F800000,
                                          0xFF800000, 0xBF800000, 0x80000001, 0xFF7FFFFF};
    unsigned char *d = error_dst, *s = error_source;
    mixprec_convert_options options;
    int i, j;
    memset(error_dst, 0xA5, sizeof error_dst);
    memset(error_source, 0x3C, sizeof error_source);

    refuse(MIXPREC_ERR_NULL, NULL, MIXPREC_F16, s, MIXPREC_F32, 4, NULL, "dst NULL");
    refuse(MIXPREC_ERR_NULL, d, MIXPREC_F16, NULL, MIXPREC_F32, 4, NULL, "src NULL");
    refuse(MIXPREC_OK, NULL, MIXPREC_F16, NULL, MIXPREC_F32, 0, NULL, "n = 0, both NULL");
    refuse(MIXPREC_OK, d, MIXPREC_F16, s, MIXPREC_F32, 0, NULL, "n = 0");
    for (i = 0; i < 4; i++) {
        refuse(MIXPREC_ERR_DTYPE, d, (mixprec_dtype)unknown_types[i], s, MIXPREC_F32, 4, NULL, "unknown dst type");
        refuse(MIXPREC_ERR_DTYPE, d, MIXPREC_F32, s, (mixprec_dtype)unknown_types[i], 4, NULL, "unknown src type");
    }
    refuse(MIXPREC_ERR_SIZE, d, MIXPREC_F64, s, MIXPREC_F16, SIZE_MAX / 8 + 1, NULL, "dst larger than memory");
    refuse(MIXPREC_ERR_SIZE, d, MIXPREC_E4M3, s, MIXPREC_F32, SIZE_MAX / 4 + 1, NULL, "src larger than memory");
    refuse(MIXPREC_ERR_SIZE, d, MIXPREC_F64, s, MIXPREC_F64, SIZE_MAX, NULL, "n = SIZE_MAX");

    refuse(MIXPREC_ERR_OVERLAP, d, MIXPREC_F16, d + 2, MIXPREC_F16, 4, NULL, "dst just before src");
    refuse(MIXPREC_ERR_OVERLAP, d + 2, MIXPREC_F16, d, MIXPREC_F16, 4, NULL, "dst just after src");
    refuse(MIXPREC_ERR_OVERLAP, d + 60, MIXPREC_F16, d, MIXPREC_F32, 16, NULL, "dst begins in the last element of src");
    refuse(MIXPREC_ERR_OVERLAP, d + 60, MIXPREC_F64, d, MIXPREC_F32, 16, NULL, "the same, widening");
    refuse(MIXPREC_ERR_OVERLAP, d, MIXPREC_F16, d + 30, MIXPREC_E4M3, 16, NULL,
           "src begins in the last element of dst");
    refuse(MIXPREC_ERR_OVERLAP, d + 8, MIXPREC_E4M3, d, MIXPREC_F64, 16, NULL, "dst within src");
    refuse(MIXPREC_ERR_OVERLAP, d, MIXPREC_F64, d + 8, MIXPREC_E4M3, 16, NULL, "src within dst");

    for (i = 0; i < 2; i++) {
        static const int unknown[] = {6, -1}, unknown_policy[] = {3, -1}, unknown_isa[] = {99, -1};
        memset(&options, 0, sizeof options);
        options.round = (mixprec_round)unknown[i];
        refuse(MIXPREC_ERR_ROUND, d, MIXPREC_F16, s, MIXPREC_F32, 4, &options, "unknown mode");
        memset(&options, 0, sizeof options);
        options.overflow = (mixprec_overflow)unknown_policy[i];
        refuse(MIXPREC_ERR_OVERFLOW, d, MIXPREC_F16, s, MIXPREC_F32, 4, &options, "unknown policy");
        memset(&options, 0, sizeof options);
        options.isa = (mixprec_isa)unknown_isa[i];
        refuse(MIXPREC_ERR_ISA, d, MIXPREC_F16, s, MIXPREC_F32, 4, &options, "unknown instruction set");
    }
    memset(&options, 0, sizeof options);
    for (i = 0; i < 8; i++) {
        options.scale = oracle_float(bad_scales[i]);
        refuse(MIXPREC_ERR_SCALE, d, MIXPREC_F16, s, MIXPREC_F32, 4, &options, "bad scale");
        refuse(MIXPREC_ERR_SCALE, d, MIXPREC_F32, s, MIXPREC_F32, 4, &options, "bad scale, equal types");
    }
    memset(&options, 0, sizeof options);
    for (i = MIXPREC_ISA_C; i <= MIXPREC_ISA_NEON; i++)
        if (!mixprec_isa_available((mixprec_isa)i)) {
            options.isa = (mixprec_isa)i;
            for (j = 0; j < TYPES; j++)
                refuse(MIXPREC_ERR_ISA, d, types[j], s, MIXPREC_F32, 4, &options, "unavailable instruction set");
        }

    refuse(MIXPREC_ERR_OVERLAP, d + 7, MIXPREC_E4M3, d, MIXPREC_E2M1, 16, NULL, "dst begins in the last byte of fp4");
    refuse(MIXPREC_ERR_OVERLAP, d + 8, MIXPREC_E4M3, d, MIXPREC_E2M1, 17, NULL, "the same, half a byte");

    CHECK(mixprec_convert(d + 8, MIXPREC_E4M3, d, MIXPREC_E2M1, 16) == MIXPREC_OK, "dst that begins at fp4's end");
    CHECK(mixprec_convert(d + 64, MIXPREC_F16, d, MIXPREC_F32, 16) == MIXPREC_OK, "dst that begins at src's end");
    CHECK(mixprec_convert(d, MIXPREC_F16, d + 32, MIXPREC_F32, 16) == MIXPREC_OK, "dst that ends at src's start");
}

/* More than the caches hold, in one call and in parts that they do hold. dst begins `elements` after an array. */
static void test_large(mixprec_dtype to, mixprec_dtype from, int kind, size_t elements) {
    const size_t period = mixprec_dtype_bytes(from, 65536), part = 65536 + 2 * 77;
    const size_t n = ((size_t)64 << 20) / (mixprec_dtype_bytes(to, 2) + mixprec_dtype_bytes(from, 2)) * 2 + 12345;
    const size_t from_bytes = mixprec_dtype_bytes(from, n), to_bytes = mixprec_dtype_bytes(to, n);
    const size_t shift = mixprec_dtype_size(to) * elements;
    unsigned char *source_memory = malloc(from_bytes + 8), *source = source_memory + mixprec_dtype_size(from);
    unsigned char *got = malloc(to_bytes + 2 * GUARD), *want = malloc(mixprec_dtype_bytes(to, part));
    unsigned char untouched[GUARD];
    int path;
    size_t i, count;
    if (!source_memory || !got || !want) {
        CHECK(0, "no memory");
    } else {
        memset(untouched, 0xA5, sizeof untouched);
        fill(source, from, 65536);
        for (i = period; i < from_bytes; i += period)
            memcpy(source + i, source, period < from_bytes - i ? period : from_bytes - i);
        for (path = 1; path < path_count; path++) {
            mixprec_convert_options options = variant(kind);
            const uint64_t offset = options.offset;
            size_t wrong = 0;
            options.isa = paths[path];
            if (options.isa == MIXPREC_ISA_C)
                continue;
            memset(got, 0xA5, to_bytes + 2 * GUARD);
            CHECK(mixprec_convert_ex(got + shift, to, source, from, n, &options) == MIXPREC_OK, "refused");
            for (i = 0; i < n; i += count) {
                count = n - i < part ? n - i : part;
                options.offset = offset + i;
                CHECK(mixprec_convert_ex(want, to, source + mixprec_dtype_bytes(from, i), from, count, &options) ==
                          MIXPREC_OK,
                      "a part: refused");
                wrong += memcmp(got + shift + mixprec_dtype_bytes(to, i), want, mixprec_dtype_bytes(to, count)) != 0;
            }
            CHECK(!wrong, "%s, %s to %s: %lu of the parts are other than in the whole", mixprec_isa_name(options.isa),
                  mixprec_dtype_name(from), mixprec_dtype_name(to), (unsigned long)wrong);
            CHECK(!memcmp(got, untouched, shift) && !memcmp(got + shift + to_bytes, untouched, GUARD),
                  "%s, %s to %s: bytes before or after dst were written", mixprec_isa_name(options.isa),
                  mixprec_dtype_name(from), mixprec_dtype_name(to));
        }
    }
    free(source_memory);
    free(got);
    free(want);
}

#if !defined(MIXPREC_NO_GEMM) && !defined(MIXPREC_NO_SCALER)
/* GEMM and the scaler refuse the types that only conversion knows. */
static void test_conversion_only(void) {
    float c[4] = {1, 2, 3, 4}, operand[4] = {1, 1, 1, 1};
    mixprec_scaler scaler;
    int i;
    mixprec_scaler_init(&scaler);
    for (i = GEMM_TYPES; i < TYPES; i++) {
        mixprec_dtype gemm_types[3];
        int which;
        for (which = 0; which < 3; which++) {
            mixprec_status status;
            gemm_types[0] = gemm_types[1] = gemm_types[2] = MIXPREC_F32;
            gemm_types[which] = types[i];
            status = mixprec_gemm(MIXPREC_NO_TRANS, MIXPREC_NO_TRANS, 2, 2, 2, 1, operand, gemm_types[0], 2, operand,
                                  gemm_types[1], 2, 0, c, gemm_types[2], 2);
            CHECK(status == MIXPREC_ERR_DTYPE, "gemm with %s as %c: %s", mixprec_dtype_name(types[i]), "ABC"[which],
                  mixprec_status_string(status));
        }
        CHECK(mixprec_scaler_unscale(&scaler, c, operand, types[i], 4) == -MIXPREC_ERR_DTYPE, "unscale takes %s",
              mixprec_dtype_name(types[i]));
        CHECK(oracle_bits((double)c[0]) == oracle_bits(1) && oracle_bits((double)c[3]) == oracle_bits(4),
              "%s: the output was written", mixprec_dtype_name(types[i]));
    }
}
#endif

static const char *pair_name(const char *what, mixprec_dtype to, mixprec_dtype from) {
    static char name[80];
    snprintf(name, sizeof name, "convert: %s, %s to %s", what, mixprec_dtype_name(from), mixprec_dtype_name(to));
    return name;
}

int main(int argc, char **argv) {
    int i, j;
    test_init(argc, argv);
    environment_set(environment_number(0)); /* -ffast-math sets FTZ and DAZ when a program starts */
    paths[path_count++] = MIXPREC_ISA_AUTO;
    for (i = MIXPREC_ISA_C; i <= MIXPREC_ISA_NEON; i++) {
        if (mixprec_isa_available((mixprec_isa)i)) {
            paths[path_count++] = (mixprec_isa)i;
        } else {
            char name[40];
            snprintf(name, sizeof name, "convert: path %s", mixprec_isa_name((mixprec_isa)i));
            test_skip(name, "not compiled in, or not on this CPU");
        }
    }
    if (test_begin("convert: errors"))
        test_errors(), test_end();
#if !defined(MIXPREC_NO_GEMM) && !defined(MIXPREC_NO_SCALER)
    if (test_begin("convert: types that only conversion knows"))
        test_conversion_only(), test_end();
#endif
    for (i = 0; i < TYPES; i++)
        for (j = 0; j < TYPES; j++) {
            mixprec_dtype from = types[i], to = types[j];
            if (test_begin(pair_name("values, modes, policies, scales", to, from)))
                test_pair(to, from), test_end();
            if (!thorough(to, from))
                continue;
            if (test_begin(pair_name("lengths and alignment", to, from)))
                test_lengths(to, from), test_end();
            if (test_begin(pair_name("in place", to, from)))
                test_in_place(to, from), test_end();
            if (to != MIXPREC_F64 && to != from && test_begin(pair_name("stochastic stream", to, from)))
                test_stochastic(to, from), test_end();
            if (to != MIXPREC_F64 && to != from && i < 2 && test_begin(pair_name("beside every point", to, from)))
                test_modes(to, from), test_end();
        }
    if (test_begin("convert: lengths, alignment and in place, the other pairs"))
        test_narrow_pairs(), test_end();
    for (i = 0; i < 3; i++) {
        const mixprec_dtype to = i < 2 ? MIXPREC_F32 : MIXPREC_BF16;
        const mixprec_dtype from = i == 0 ? MIXPREC_E4M3 : i == 1 ? MIXPREC_E5M2 : MIXPREC_F32;
        const char *name = pair_name("without AVX512_VBMI and AVX512_BF16", to, from);
        if (!library_hide_units(1))
            test_skip(name, "this CPU has no such units");
        else if (test_begin(name)) {
            test_pair(to, from);
            test_lengths(to, from);
            test_end();
        }
    }
    library_hide_units(0);
    for (i = 0; i < ORACLE_SMALL_FORMATS; i++)
        if (test_begin(pair_name("stochastic mean", oracle_formats[i].dtype, MIXPREC_F32)))
            test_unbiased(&oracle_formats[i]), test_end();
    for (i = 0; i < TYPES; i++) {
        char name[60];
        snprintf(name, sizeof name, "convert: statistics of %s", mixprec_dtype_name(types[i]));
        if (test_begin(name))
            test_stats(types[i]), test_end();
    }
    if (test_begin("convert: statistics of sums beside a tie"))
        test_stats_ties(), test_end();
    if (test_begin("convert: statistics of several blocks, and without options"))
        test_stats_blocks(), test_end();
    if (test_begin("convert: statistics of many elements"))
        test_stats_long(), test_end();
    if (test_begin("convert: statistics, errors"))
        test_stats_errors(), test_end();
    if (test_begin("convert: extreme scales"))
        test_extreme_scales(), test_end();
    if (!mixprec_isa_available(MIXPREC_ISA_AVX2))
        test_skip("convert: more than the caches hold", "written around them only with AVX2");
    else if (test_begin("convert: more than the caches hold")) {
        library_write_around();
        for (i = 0; i < VARIANTS; i++) {
            test_large(MIXPREC_F32, MIXPREC_F16, i, i ? 5 : 1);
            test_large(MIXPREC_E4M3, MIXPREC_F32, i, i ? 5 : 1);
            test_large(MIXPREC_E2M1, MIXPREC_BF16, i, i ? 5 : 1);
            test_large(MIXPREC_F64, MIXPREC_E2M1, i, i ? 5 : 1);
        }
        /* Straight from one kernel, but for E8M0 and fp4 that would begin within a byte. */
        for (i = 0; i < TYPES; i++)
            if (types[i] != MIXPREC_F32 && (!test_quick || i < GEMM_TYPES || types[i] == MIXPREC_E2M1)) {
                test_large(MIXPREC_F32, types[i], 0, 0);
                test_large(types[i], MIXPREC_F32, 0, (size_t)i % 3);
            }
        test_large(MIXPREC_F32, MIXPREC_E2M1, 0, 1);
        library_hide_units(0);
        test_end();
    }
    if (test_begin("convert: guard pages"))
        test_guard_pages(), test_end();
    for (i = 1; i < path_count; i++) {
        char name[60];
        snprintf(name, sizeof name, "convert: floating-point environments, %s", mixprec_isa_name(paths[i]));
        if (test_begin(name))
            test_environments(i), test_end();
    }
#ifndef SCALE_FOLLOWS_ENVIRONMENT
    if (test_begin("convert: floating-point environments, statistics"))
        test_stats_environments(), test_end();
#else
    test_skip("convert: floating-point environments, scaled", "here .scale follows the caller's, as the manual says");
#endif
    for (i = 0; i < ORACLE_SMALL_FORMATS; i++)
        if (test_begin(
                pair_name(!test_quick && every_float(&oracle_formats[i]) ? "every float" : "a sample of the floats",
                          oracle_formats[i].dtype, MIXPREC_F32)))
            test_every_float(&oracle_formats[i]), test_end();
    return test_summary();
}
